"""Caveats of watched programs: files on another file system, and a server that answers from its memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from checks.test_checks import MIB, build, found, make, the_only
from checks.test_checks_machine import during
from mountlab.checks import CHECKS, Evidence
from mountlab.core.mountinfo import mount_lines
from mountlab.filesystems.cache_counters import NfsBytes
from mountlab.filesystems.evidence import DeviceBytes
from mountlab.filesystems.open_files import OpenDirectory, OpenFiles

MOUNTS = mount_lines(
    "27 1 254:0 / / rw - ext4 /dev/vda rw\n"
    "30 27 8:1 / /srv/data rw - xfs /dev/sda1 rw\n"
    "31 27 0:40 / /mnt/nfs rw - nfs4 127.0.0.1:/ rw\n"
    "32 27 0:41 / /mnt/far rw - nfs4 10.0.0.7:/export rw\n"
)


def watched(**directories: int) -> Evidence:
    """A program in /srv/data with files of so many bytes; `data` is there, `root` and others elsewhere."""
    places = {"data": "/srv/data/x", "root": "/var/lib", "nfs": "/mnt/nfs/x"}
    rows = [OpenDirectory(places[name], 2, 1, 1, size) for name, size in directories.items()]
    evidence = build(make(filesystems={"here": {"type": "dir", "path": "/srv/data"}}))
    files = OpenFiles(5, 0, rows, MOUNTS)
    return replace(evidence, open_files=dict.fromkeys(evidence.traffic, files))


def test_files_on_another_file_system_are_named_with_where_to_look() -> None:
    caveat = the_only("files-elsewhere", watched(data=MIB, root=64 * MIB))
    assert (caveat.severity, caveat.scope) == ("warning", "cell")
    assert "lay on / (ext4), and not on the file system of /srv/data" in caveat.message
    assert "--in and a directory there" in caveat.message


def test_files_where_the_program_runs_and_a_few_small_ones_elsewhere_raise_nothing() -> None:
    assert found("files-elsewhere", watched(data=64 * MIB, root=MIB)) == []
    assert found("files-elsewhere", watched(root=MIB)) == []
    assert found("files-elsewhere", watched()) == []


# --- a server ---------------------------------------------------------------------------------------------------------


def read_over_nfs(point: str, *, sent: int, disks: int) -> Evidence:
    moved = NfsBytes(sent, 0, 0, sent)
    return during(
        evidence=watched(nfs=MIB),
        nfs={point: moved},
        traffic={"254:0": DeviceBytes(disks, 0), "7:0": DeviceBytes(0, 0)},
    )


def test_a_server_here_that_answers_from_its_memory_is_named_with_both_amounts() -> None:
    caveat = the_only("server-answered", read_over_nfs("/mnt/nfs", sent=100 * MIB, disks=10 * MIB))
    assert caveat.severity == "warning"
    assert "the server of /mnt/nfs sent up to 100 MiB, and its devices delivered 10% of it" in caveat.message
    assert "the server's memory answered the rest" in caveat.message


def test_a_server_here_that_reads_its_disks_raises_nothing() -> None:
    assert found("server-answered", read_over_nfs("/mnt/nfs", sent=100 * MIB, disks=99 * MIB)) == []
    assert found("server-answered", read_over_nfs("/mnt/nfs", sent=MIB, disks=0)) == []


def test_of_a_server_elsewhere_it_is_noted_that_its_memory_cannot_be_seen() -> None:
    caveat = the_only("server-answered", read_over_nfs("/mnt/far", sent=100 * MIB, disks=0))
    assert caveat.severity == "note"
    assert "/mnt/far is served by another machine" in caveat.message
    assert "cannot be seen from here" in caveat.message


def test_without_looks_at_its_processes_it_is_not_known_where_files_are() -> None:
    raw: dict[str, Any] = {"filesystems": {"here": {"type": "in_place", "path": "/srv"}}}
    sweep = make(**raw, workloads={"p": {"tool": "watched", "argv": "x"}})
    evidence = replace(watched(data=MIB), sweep=sweep, open_files={})
    assert "could not be looked at" in str(CHECKS["files-elsewhere"].blind(evidence))
    assert CHECKS["files-elsewhere"].blind(watched(data=MIB)) is None

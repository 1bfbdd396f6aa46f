"""Caveats of watched programs: files on another file system, and a server that answers from its memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from checks.test_checks import MIB, READ, build, found, make, the_only
from checks.test_checks_limits import with_timeouts
from checks.test_checks_machine import during
from facts import known
from mountlab.checks import CHECKS, Evidence
from mountlab.checks.flushed import flushed_devices
from mountlab.checks.levels import over_all
from mountlab.core.mountinfo import mount_lines
from mountlab.filesystems.cache_counters import NfsBytes
from mountlab.filesystems.evidence import DeviceBytes, server_of
from mountlab.filesystems.open_files import OpenDirectory, OpenFiles
from mountlab.sentences.trust import watch_advice
from rows import every_row

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


def test_files_where_a_symbolic_link_to_the_directory_leads_are_not_elsewhere() -> None:
    evidence = watched(root=64 * MIB)
    linked = {name: replace(files, place="/var") for name, files in evidence.open_files.items()}
    assert found("files-elsewhere", evidence)
    assert found("files-elsewhere", replace(evidence, open_files=linked)) == []


# --- a server ---------------------------------------------------------------------------------------------------------


def read_over_nfs(point: str, *, sent: int, disks: int) -> Evidence:
    moved = NfsBytes(sent, 0, 0, sent, 0)
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


def over_nfs(*, sent: int, disks: int, **served: Any) -> Evidence:
    """512 MiB that dd read over NFS: what the server sent, and what its devices delivered."""
    point, kind = "/run/x/mnt", served.pop("type", "nfs")
    server, disk = server_of(point), "254:0"
    levels = ((server,), (disk,)) if disks else ((server,),)
    raw = make(filesystems={"ext4": {"type": kind, **served}}, workloads={"r": READ}, design={"repeats": 5})
    traffic = {server: DeviceBytes(sent, 0), disk: DeviceBytes(disks, 0)}
    evidence = build(raw, levels={"m-ext4": levels}, traffic=traffic)
    return during(evidence=evidence, nfs={point: NfsBytes(512 * MIB, 0, 0, sent, 0)}, traffic=traffic)


def read_caveats(evidence: Evidence) -> dict[str, str]:
    codes = ("cache-served", "server-answered", "device-read-less")
    return {code: caveats[0].message for code in codes if (caveats := found(code, evidence))}


@every_row(
    ("sent", "disks", "words"),
    [
        (512 * MIB, 512 * MIB, {}),
        (128 * MIB, 128 * MIB, {"cache-served": "the device delivered 25% of the bytes read"}),
        (512 * MIB, 64 * MIB, {"server-answered": "its devices delivered 12% of it"}),
        (512 * MIB, 0, {"server-answered": "its devices delivered 0% of it"}),
    ],
)
def test_of_reads_over_nfs_the_memory_of_the_client_and_of_the_server_are_told_apart(
    sent: int, disks: int, words: dict[str, str]
) -> None:
    caveats = read_caveats(over_nfs(sent=sent, disks=disks))
    assert caveats.keys() == words.keys()
    assert all(said in caveats[code] for code, said in words.items())


def test_a_directory_on_a_server_elsewhere_has_figures_of_the_mount_alone() -> None:
    caveats = read_caveats(over_nfs(sent=128 * MIB, disks=0, type="dir", path="/far"))
    assert "25% of the bytes read" in caveats["cache-served"]
    assert "is served by another machine" in caveats["server-answered"]


def test_flushes_of_a_server_elsewhere_are_not_known() -> None:
    levels = (("nfs:/mnt",),)
    assert flushed_devices(levels, ["nfs:/mnt"], {"nfs:/mnt": "the server of /mnt"}, known(kernel="6.1.0")) == (
        (),
        "the server of /mnt counts them, and not this box",
    )
    assert flushed_devices((*levels, ("7:0",)), ["7:0"], {"7:0": "loop0"}, known(kernel="6.1.0")) == (("7:0",), "")


def test_without_looks_at_its_processes_it_is_not_known_where_files_are() -> None:
    raw: dict[str, Any] = {"filesystems": {"here": {"type": "in_place", "path": "/srv"}}}
    sweep = make(**raw, workloads={"p": {"tool": "watched", "argv": "x"}})
    evidence = replace(watched(data=MIB), sweep=sweep, open_files={})
    assert "could not be looked at" in str(CHECKS["files-elsewhere"].blind(evidence))
    assert CHECKS["files-elsewhere"].blind(watched(data=MIB)) is None


# --- what a user of `mountlab watch` can do ---------------------------------------------------------------------------

HERE: dict[str, Any] = {"ext4": {"type": "in_place", "path": "/srv"}}
PROGRAM = make(filesystems=HERE, workloads={"r": {"tool": "watched", "argv": "x"}})
OF_A_SWEEP = (
    "the sweep",
    "design.",
    "trial_timeout",
    "until.",
    "Set repeats",
    "factor",
    "warm up longer",
    "cell",
    "ratio",
)
"""Words of somebody who wrote a sweep."""


def of_program(*values: float) -> Evidence:
    """A watched program, with these figures."""
    return replace(build(make(), values={"ext4/r": list(values)}), sweep=PROGRAM)


def discarding() -> Evidence:
    evidence = replace(of_program(*[100e6] * 5), in_effect={"ext4": {"discard": ""}})
    return during("t0002", evidence=evidence, discarded={"7:0": 40 * MIB})


@every_row(
    ("code", "evidence", "words"),
    [
        ("too-few", of_program(1e8), "watched once: what it did was counted"),
        ("too-few", of_program(1e8, 1.1e8, 1e8), "Watch it with --repeats 5 or more."),
        ("timed-out", replace(with_timeouts(2, 5), sweep=PROGRAM), "raise --timeout only if the work takes so long"),
        ("failed-trials", replace(build(make(), failed=1), sweep=PROGRAM), "1 of its 6 trials gave no figure"),
        ("discards", discarding(), "as the mount option discard has it. Compare with `nodiscard`."),
        ("noisy", of_program(1e8, 2e8, 1e8, 2e8, 3e8), "The figures vary by more than 10% from trial to trial"),
        ("drift", of_program(*(1e8 - 2e6 * i for i in range(12))), "not independent. Find what changes (a filling"),
        ("two-modes", of_program(*[1e8, 2e8, 1.01e8, 2.01e8] * 5), "(order, place on the device, cache hits)."),
        ("outlier", of_program(1e8, 1.01e8, 0.99e8, 1.02e8, 0.98e8, 1e8, 5e8), "far from their median: t0007"),
        (
            "warm-up-too-short",
            of_program(0.3e8, 1e8, 1.01e8, 0.99e8, 1e8, 1.01e8),
            "the caches before each: --drop-caches",
        ),
    ],
)
def test_caveats_of_a_watched_program_speak_of_what_its_user_typed(code: str, evidence: Evidence, words: str) -> None:
    message = the_only(code, evidence).message
    assert words in message
    assert [word for word in OF_A_SWEEP if word in message] == []


def test_the_advice_of_a_watched_program_names_no_key_of_a_sweep() -> None:
    texts = watch_advice(PROGRAM)
    assert "--repeats 5" in texts["too-few"]
    assert "--timeout" in texts["timed-out"]
    assert [text for text in texts.values() if any(word in text for word in OF_A_SWEEP)] == []
    assert watch_advice(make()) == {}


def test_discards_are_noted_where_the_mount_that_is_watched_has_the_option() -> None:
    assert the_only("discards", discarding()).severity == "note"
    trimmed = replace(discarding(), in_effect={"ext4": {"rw": ""}})
    assert the_only("discards", trimmed).severity == "warning"


def test_levels_of_several_metrics_of_one_program_are_not_called_cells() -> None:
    samples = [*of_program(1e8, 2e8).samples]
    assert [over_all([*samples, *samples]), over_all(samples)] == ["over all metrics", ""]

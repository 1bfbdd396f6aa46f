"""What answered reads, on loop devices of our own: files without data on the device are named, written ones are not."""

from __future__ import annotations

from typing import Any

import pytest
from mountlab.results import store
from mountlab.results.store import Run
from mountlab.runner import workflow
from rows import every_row
from sweeps import TMPFS, sweep

pytestmark = [
    pytest.mark.box, pytest.mark.long, pytest.mark.alone, pytest.mark.requires_root,
    pytest.mark.requires_program("fio"), pytest.mark.requires_program("filefrag"),
    pytest.mark.requires_program("mkfs.xfs"), pytest.mark.requires_program("mkfs.btrfs"),
]  # fmt: skip

IMAGE = {"type": "ext4", "image": "128MiB"}
MADE = {"ext4": IMAGE, "xfs": {"type": "xfs", "image": "320MiB"}, "btrfs": {"type": "btrfs", "image": "256MiB"}}
WRITTEN = "dd if=/dev/urandom of={directory}/f bs=1M count=16 conv=fsync"
KEPT = f"sh -c 'fallocate -n -l 24M {{directory}}/f && {WRITTEN},notrunc'"
CLONED = f"sh -c '{WRITTEN.replace('/f', '/g')} && cp {{directory}}/g {{directory}}/f && sync {{directory}}/f'"
OURS = ("cache-served", "device-read-less", "direct-not-honoured")


SMALL = "sh -c 'for i in $(seq 1000); do head -c 500 /dev/urandom > {directory}/$i; done'"
BYTES_READ = {"bytes/read": {"pattern": r"(\d+) bytes", "unit": "B", "from": "stderr"}}


def own(argv: str, prepare: str = WRITTEN, **more: Any) -> dict[str, Any]:
    """A program that tells how long it takes only, unless `metrics` are given."""
    metrics = {"elapsed": {"from": "clock"}}
    return {"tool": "command", "argv": argv, "prepare": prepare, "space": "40MiB", "metrics": metrics, **more}


def direct(prepare: str) -> dict[str, Any]:
    """Direct reads of what a command lays out, by a program that tells its bytes."""
    return own("dd if={directory}/f of=/dev/null bs=1M iflag=direct", prepare, metrics=BYTES_READ)


FIO = {"tool": "fio", "bs": "64KiB", "size": "16MiB", "direct": True, "clocksource": "clock_gettime"}
READS = {
    "hole": direct("truncate -s 16M {directory}/f"),
    "unwritten": direct("fallocate -l 16M {directory}/f"),
    "skipped": direct("dd if=/dev/urandom of={directory}/f bs=1M count=2 seek=14 conv=fsync"),
    "written": direct(WRITTEN),
    "kept": direct(KEPT),
    "cloned": direct(CLONED),
    "cached": own("md5sum {directory}/f", cache="as_is"),
    "into-null": own("sh -c 'cat {directory}/f > /dev/null'", cache="as_is"),
    "cold": own("md5sum {directory}/f"),
    "piped": own("sh -c 'tar -C {directory} -cf - f | gzip -1 > {directory}/g'"),
    "zeros": own("dd if=/dev/zero of={directory}/w bs=1M count=16 conv=fsync"),
    "cold-hole": own("md5sum {directory}/f", "truncate -s 16M {directory}/f"),
    "dd": {"tool": "dd", "direction": "read", "bs": "1MiB", "count": 16, "iflag": ["direct", "none"]},
    "fio": {**FIO, "rw": ["read", "randread", "randrw"]},
    "laid-out": {**FIO, "rw": "randrw", "fallocate": "native"},
    "append": {**FIO, "rw": "write", "file_append": 1},
    "marks": {"tool": "fs_mark", "count": 100, "file_size": "16KiB"},
}


def measured(results: pytest.TempPathFactory, **given: Any) -> Run:
    resolved = sweep(**given, design={"repeats": 1, "warmup": 0})
    return store.load_run(workflow.run(resolved, results=results.mktemp("results")))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return measured(tmp_path_factory, filesystems=MADE, workloads=READS)


def told(run: Run, filesystem: str) -> dict[str, tuple[str, str]]:
    """Workload to the code and the message of its caveat; a workload has one of these at most."""
    rows = [(each.subject.partition("/"), each) for each in run.caveats if each.code in OURS]
    return {workload: (each.code, each.message) for (name, _, workload), each in rows if name == filesystem}


@every_row("filesystem", list(MADE))
def test_files_without_data_are_named_and_written_ones_raise_nothing(run: Run, filesystem: str) -> None:
    expected = {
        "hole": ("device-read-less", "100% holes"),
        "unwritten": ("device-read-less", "100% unwritten extents"),
        "skipped": ("device-read-less", "88% holes"),
        "cold-hole": ("device-read-less", "100% holes"),
        "cached": ("cache-served", "storage delivered 0 B of"),
        "into-null": ("cache-served", "storage delivered 0 B of"),
    }
    found = told(run, filesystem)
    assert {workload: code for workload, (code, _) in found.items()} == {
        workload: code for workload, (code, _) in expected.items()
    }
    for workload, (_, words) in expected.items():
        assert words in found[workload][1]


@pytest.fixture(scope="module")
def optional(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """File systems whose options change what answers."""
    return measured(
        tmp_path_factory,
        filesystems={
            "inline": {**IMAGE, "mkfs": ["-O", "inline_data", "-I", "1024"]},
            "journal": {**IMAGE, "options": ["data=journal"]},
            "compressed": {**MADE["btrfs"], "options": ["compress-force=zstd"]},
            "ext4": IMAGE,
            "never": TMPFS,
            "always": {**TMPFS, "options": ["huge=always"]},
        },
        workloads={
            "small": own("sh -c 'cat {directory}/* {directory}/* {directory}/* {directory}/* | dd of=/dev/null'", SMALL,
                         metrics=BYTES_READ),
            "direct": {**FIO, "rw": "read", "size": "4MiB"},
            "zeros": own("md5sum {directory}/f", WRITTEN.replace("urandom", "zero")),
            "warm": {"tool": "dd", "direction": "read", "bs": "1MiB", "count": 16, "cache": "warm"},
        },
        baseline="ext4",
    )  # fmt: skip


def test_inline_data_compression_and_the_journal_are_named(optional: Run) -> None:
    code, message = told(optional, "inline")["small"]
    assert (code, "100% inline data" in message) == ("device-read-less", True)
    code, message = told(optional, "compressed")["zeros"]
    assert (code, "100% compressed extents" in message) == ("device-read-less", True)
    code, message = told(optional, "journal")["direct"]
    assert (code, "data=journal is in effect" in message) == ("direct-not-honoured", True)
    assert "small" not in told(optional, "ext4") or "extents" not in told(optional, "ext4")["small"][1]
    assert told(optional, "ext4").keys() - {"small"} == {"warm"}


def test_the_pages_of_tmpfs_stand_beside_the_folios_of_ext4_with_the_facts(optional: Run) -> None:
    """No rate is asserted: only what the kernel of this machine says of both."""
    huge = optional.info.facts.memory.huge_files
    if huge not in ("never", "advise"):
        pytest.skip(f"this kernel decides by itself (shmem_enabled: {huge})")
    major, minor = map(int, optional.info.facts.kernel.release.split("-")[0].split(".")[:2])
    odd = "never" if (major, minor) >= (6, 16) else "always"
    notes = {each.subject: each.message for each in optional.caveats if each.code == "folios-differ"}
    assert f"(huge={odd}, shmem_enabled: {huge})" in notes[odd]
    assert "ext4 of Linux" in notes[odd]

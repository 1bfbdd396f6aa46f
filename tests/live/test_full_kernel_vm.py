"""f2fs, and xfs with a realtime device, in a virtual box whose kernel has them: options, super block, devices, states,
and what a kill leaves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from guests import clean_all, make_until, measured, place_of, prepare_run, sh, virtual_box
from mountlab.analysis.compare.runs import compare_runs
from mountlab.box.connection import BoxConnection
from mountlab.core.trial_files import TrialFiles
from mountlab.filesystems.evidence import device_levels, device_traffic
from mountlab.results import store
from mountlab.sentences.comparison import comparison_text
from option_bench import Bench, Request, compare, guest, parse, refine, set_up
from rows import every_row

pytestmark = [
    pytest.mark.box, pytest.mark.slow, pytest.mark.long, pytest.mark.requires_program("qemu-system-x86_64"),
]  # fmt: skip

KERNEL, NEXT_KERNEL = "6.1", "6.12"
RUN_DIR = "/var/tmp/f2fs/20260101T000000-f2fs"
DD = {"tool": "dd", "direction": "write", "bs": "64KiB", "count": 32, "cache": "as_is"}

# As in test_option_table.py: type | mkfs | mount options | their states | what the kernel says of them | added, or the
# kernel that the line is true of.
TABLE = """
f2fs | | background_gc=off                  | in effect  | background_gc=off         |
f2fs | | background_gc=sync,gc_merge        | in effect; in effect | background_gc=sync; gc_merge |
f2fs | | background_gc=never                | refused    |                           |
f2fs | | nonsense                           | refused    | nonsense                  |
f2fs | | norecovery                         | refused    |                           |
f2fs | | disable_roll_forward               | in effect  | disable_roll_forward      |
f2fs | | nodiscard                          | in effect  | nodiscard                 |
f2fs | | discard,discard_unit=segment       | in effect; in effect | discard; discard_unit=segment |
f2fs | | heap                               | in effect  | heap                      | <6.8
f2fs | | nouser_xattr                       | in effect  | nouser_xattr              |
f2fs | | noinline_xattr                     | in effect  | noinline_xattr            |
f2fs | | noacl                              | in effect  | noacl                     |
f2fs | | active_logs=2                      | in effect  | active_logs=2             |
f2fs | | active_logs=3                      | refused    |                           |
f2fs | | disable_ext_identify               | in effect  | disable_ext_identify      |
f2fs | | noinline_data                      | in effect  | noinline_data             |
f2fs | | noinline_dentry                    | in effect  | noinline_dentry           |
f2fs | | noflush_merge                      | in effect  | noflush_merge             |
f2fs | | nobarrier                          | in effect  | nobarrier                 |
f2fs | | nobarrier,flush_merge              | in effect; without effect | nobarrier; no flush |
f2fs | | fastboot                           | in effect  | fastboot                  |
f2fs | | noextent_cache                     | in effect  | noextent_cache            |
f2fs | | data_flush                         | in effect  | data_flush                |
f2fs | | mode=lfs                           | in effect  | mode=lfs                  |
f2fs | | mode=fragment:block                | in effect  | mode=fragment:block       |
f2fs | | reserve_root=1000,resuid=5,resgid=6 | in effect; in effect; in effect | reserve_root=1000; resuid=5; resgid=6 |
f2fs | | alloc_mode=reuse                   | in effect  | alloc_mode=reuse          |
f2fs | | fsync_mode=strict                  | in effect  | fsync_mode=strict         |
f2fs | | fsync_mode=nobarrier               | in effect  | fsync_mode=nobarrier      |
f2fs | | checkpoint=disable                 | in effect  | checkpoint=disable        |
f2fs | | checkpoint=disable:10%             | in effect  | checkpoint=disable        |
f2fs | | checkpoint=enable                  | in effect  | checkpoint is absent      |
f2fs | | checkpoint_merge                   | in effect  | checkpoint_merge          |
f2fs | | nocheckpoint_merge                 | in effect  | nocheckpoint_merge        |
f2fs | | atgc,memory=low                    | in effect; in effect | atgc; memory=low |
f2fs | | sync,dirsync                       | in effect; in effect | sync; dirsync   |
f2fs | | nolazytime                         | ignored    | lazytime                  |
f2fs | | noatime                            | in effect  | noatime                   |
f2fs | | usrquota                           | in effect  | usrquota                  |
f2fs | | compress_algorithm=zstd            | ignored    | no compression            |
f2fs | | compress_extension=log,compress_extension=txt | ignored; ignored | no compression; no compression |
f2fs | -O extra_attr,compression            | compress_algorithm=zstd:6 | without effect; in effect; in effect | extension; extra_attr is; compression is | + compress_log_size=2
f2fs | -O extra_attr,compression            | compress_algorithm=lzo-rle,compress_extension=* | in effect; in effect; in effect; in effect | lzo-rle; *; ; |
f2fs | -O extra_attr,compression            | compress_extension=log,compress_extension=txt | in effect; in effect; in effect; in effect | log:txt; log:txt; ; |
f2fs | -O extra_attr,compression            | compress_mode=user,compress_extension=log | in effect; without effect; in effect; in effect | user; ioctl; ; |
f2fs | -O extra_attr,flexible_inline_xattr  | inline_xattr_size=60 | in effect; in effect; in effect | inline_xattr_size=60; ; |
f2fs | | inline_xattr_size=60               | refused    | xattr                     |
f2fs | -O extra_attr,quota,inode_checksum,sb_checksum,lost_found,verity,inode_crtime,encrypt | | in effect; in effect; in effect; in effect; in effect; in effect; in effect; in effect | ; ; ; ; ; ; ; |
f2fs | -s 2 -z 2 -o 20                      | | in effect; in effect; in effect | segs_per_sec: 2; secs_per_zone: 2; set aside |
f2fs | -e xyz -E foo -R 5:6                 | | in effect; in effect; in effect | xyz; foo; 5:6 |
f2fs | -O casefold -C utf8 -i               | | in effect; in effect; in effect | casefold; utf8; large bitmap: 1 |
f2fs | -t 0 -a 1                            | | not visible; not visible | nothing; nothing |
"""  # noqa: E501

REQUESTS = [parse(refine(line)) for line in TABLE.strip().splitlines()]


@pytest.fixture(scope="module")
def full() -> Iterator[BoxConnection]:
    """A virtual box with the whole kernel of Debian, built unless it is there."""
    with virtual_box(kernel=KERNEL, disks=2) as connection:
        yield connection


WHAT_IS_LEFT = """
losetup --list --noheadings | grep -v mountlab-options; grep -E ' (f2fs|xfs) ' /proc/mounts
grep ^md /proc/mdstat; true"""
"""Without the device of the bench."""


# --- options ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bench(full: BoxConnection) -> Iterator[Bench]:
    with ExitStack() as stack:
        machine = guest(full)
        sh(full, "modprobe f2fs")
        directory = machine("mktemp", "-d", "/var/tmp/mountlab-options-XXXXXX").out.strip()
        yield set_up(machine, directory, stack)


@pytest.mark.parametrize("request_", REQUESTS, ids=str)
def test_what_is_asked_for_is_told_from_what_is_in_effect(bench: Bench, request_: Request) -> None:
    compare(bench, request_)


# --- runs -------------------------------------------------------------------------------------------------------------

PLACES: dict[str, dict[str, Any]] = {
    "image": {"type": "f2fs", "image": "128MiB", "options": ["background_gc=off", "fsync_mode=strict"]},
    "smallest": {"type": "f2fs", "image": "64MiB"},
    "sparse": {"type": "f2fs", "image": "128MiB", "preallocate": False, "mkfs": ["-O", "extra_attr,compression"],
               "options": ["compress_algorithm=zstd", "compress_extension=*"]},
    "several": {"type": "f2fs", "image": "64MiB", "members": 3},
    "zram": {"type": "f2fs", "zram": "128MiB"},
    "tuned": {"type": "f2fs", "image": "128MiB", "tunables": {"gc_min_sleep_time": 40000, "queue/read_ahead_kb": 64}},
    "mirror": {"type": "f2fs", "image": "128MiB", "members": 2, "stack": [{"layer": "md", "level": "raid1"}]},
    "disk": {"type": "f2fs", "device": "disk1"},
    "realtime": {"type": "xfs", "image": "320MiB", "realtime_image": "64MiB", "mkfs": ["-r", "extsize=64k"]},
    "realtime-log": {"type": "xfs", "image": "320MiB", "realtime_image": "64MiB", "journal_image": "80MiB"},
    "log": {"type": "xfs", "image": "320MiB", "journal_image": "80MiB"},
}  # fmt: skip
FIO = {
    "tool": "fio", "rw": "randwrite", "bs": "4KiB", "size": "2MiB", "ioengine": "psync", "fsync": 8, "cache": "as_is",
    "clocksource": "clock_gettime",
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, full: BoxConnection) -> store.Run:
    results, design = tmp_path_factory.mktemp("results"), {"repeats": 1, "on_ineffective": "caveat"}
    return measured(full, results, filesystems=PLACES, workloads={"fio": FIO}, design=design)


@every_row("name", list(PLACES))
def test_it_is_measured_and_every_option_is_in_effect(run: store.Run, name: str) -> None:
    (row,) = run.trials[run.trials["filesystem"] == name].to_dict("records")
    assert (row["status"], row["reason"]) == ("ok", "")
    states = {row.option: (row.state, row.kernel_says) for row in run.options if row.filesystem == name}
    assert {state for state, _ in states.values()} <= {"in effect", "added"}, states


@every_row(("name", "loops"), [("several", 3), ("realtime", 2), ("realtime-log", 3), ("log", 2), ("image", 1)])
def test_each_of_its_devices_is_counted(run: store.Run, name: str, loops: int) -> None:
    setup = next(setup for setup in run.setups if setup.filesystem == name)
    assert len([device for device in setup.devices if device.name.startswith("loop")]) == loops


@pytest.mark.parametrize("name", ["realtime", "realtime-log"])
def test_what_the_tool_wrote_went_to_the_realtime_device(run: store.Run, name: str) -> None:
    """Which is the last of its devices: of 2 MiB nearly all, and the log and the inodes elsewhere."""
    (row,) = run.trials[run.trials["filesystem"] == name].to_dict("records")
    raw = run.path / "raw"
    before, after = ((raw / row["trial_id"] / file).read_text() for file in (TrialFiles.BEFORE, TrialFiles.AFTER))
    evidence = {"evidence.txt": (raw / row["mount"] / "evidence.txt").read_text()}
    *others, realtime = device_levels(evidence)[0]
    traffic = device_traffic(before, after)
    assert traffic[realtime].written > 1.9 * 2**20
    assert sum(traffic[device].written for device in others) < 2**20


def test_nothing_is_left(run: store.Run, full: BoxConnection) -> None:
    assert sh(full, WHAT_IS_LEFT) == ""


def test_what_a_state_holds_is_restored_before_each_mount(full: BoxConnection, tmp_path: Path) -> None:
    run = measured(
        full,
        tmp_path,
        filesystems={"f2fs": {"type": "f2fs", "image": "256MiB", "state": ["fresh", "half"]}},
        states={"half": {"fill": "40%", "churn": 1, "profile": "mail"}},
        workloads={"dd": DD},
        design={"repeats": 2},
    )
    assert list(run.trials["status"].unique()) == ["ok"]
    (record,) = run.states
    assert record.reached.fill == pytest.approx(0.4, abs=0.05)
    assert record.reached.free is not None
    assert record.fresh.free is not None
    assert record.reached.free.extents > record.fresh.free.extents
    assert len(record.identities) == 1


def test_what_a_kill_leaves_of_it_is_undone(full: BoxConnection) -> None:
    """Nothing undoes it here, as after a kill."""
    prepare_run(full, RUN_DIR)
    make_until(full, {"type": "f2fs", "image": "64MiB", "members": 2}, place_of(RUN_DIR))
    assert sh(full, f"grep -c ' {RUN_DIR}/mnt/f f2fs ' /proc/mounts") == "1"
    clean_all(full, RUN_DIR)
    assert sh(full, f"{WHAT_IS_LEFT}; ls {RUN_DIR.rpartition('/')[0]} 2>/dev/null; true") == ""


# --- one sweep on two kernels -----------------------------------------------------------------------------------------


def test_one_sweep_on_two_kernels_is_compared_as_such_and_no_cause_is_named(
    full: BoxConnection, tmp_path: Path
) -> None:
    """The kernels differ in much beside their version, and the guests in what lies on their disks."""
    sides = [compared_side(full, tmp_path)]
    with virtual_box(kernel=NEXT_KERNEL) as connection:
        sides.append(compared_side(connection, tmp_path))
    found = compare_runs(sides)
    (kernels,) = [each.values for each in found.differences if (each.area, each.what) == ("system", "kernel")]
    assert [".".join(str(kernel).split(".")[:2]) for kernel in kernels] == [KERNEL, NEXT_KERNEL]
    text = comparison_text(found)
    assert f"system: kernel: {kernels[0]} in A, {kernels[1]} in B" in text
    assert "A ratio is about all of them together." in text
    for word in ("because", "due to", "caused by", "thanks to"):
        assert word not in text


def compared_side(box: BoxConnection, results: Path) -> store.Run:
    systems = {"ext4": {"type": "ext4", "image": "64MiB"}}
    return measured(box, results, filesystems=systems, workloads={"w": DD}, design={"repeats": 2})

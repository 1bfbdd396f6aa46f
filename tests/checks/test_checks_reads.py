"""Caveats about what answered reads: the page cache, files without data on the device, or pieces of another size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from checks.test_checks import CHAIN, EXT4, KNOWN, MIB, QUIET, READ, build, found, make, moved, quiet, the_only
from checks.test_checks_machine import DIRECT, during
from facts import known
from mountlab.checks import Evidence, foresee
from mountlab.core.mountinfo import mount_lines
from mountlab.filesystems.cache_counters import ArcReads
from mountlab.filesystems.counters import Extents
from mountlab.filesystems.evidence import DeviceBytes, every_device
from mountlab.filesystems.open_files import OpenDirectory, OpenFiles
from rows import every_row

ROOT = mount_lines("27 1 254:0 / / rw - ext4 /dev/vda rw\n")
WHOLE = Extents(files=1, size=512 * MIB)
OWN = {"tool": "command", "argv": "mine {directory}", "space": "512MiB", "metrics": {"elapsed": {"from": "clock"}}}


def delivered(share: float, evidence: Evidence) -> Evidence:
    """The same, of whose reads the devices delivered this share."""
    return replace(evidence, traffic=dict.fromkeys(evidence.traffic, moved(share)))


def direct(share: float, **values: Any) -> Evidence:
    """Direct reads of dd."""
    return delivered(share, during(evidence=quiet(make(workloads=DIRECT)), **values))


# --- files without data on the device ---------------------------------------------------------------------------------


@every_row(
    ("share", "extents", "words"),
    [
        (0.0, {"hole": 512 * MIB}, "FIEMAP of 1 file shows 100% holes (nothing was ever written there)"),
        (0.0, {"unwritten": 512 * MIB}, "100% unwritten extents (allocated, never written)"),
        (0.01, {"inline": 512 * MIB}, "100% inline data (kept beside the metadata)"),
        (0.25, {"hole": 128 * MIB, "unwritten": 256 * MIB}, "25% holes"),
        (0.03, {"compressed": 512 * MIB}, "100% compressed extents"),
    ],
)
def test_files_without_data_on_the_device_are_named_and_the_page_cache_is_not(
    share: float, extents: dict[str, int], words: str
) -> None:
    for evidence in (direct(share, extents=replace(WHOLE, **extents)), buffered(share, **extents)):
        caveat = the_only("device-read-less", evidence)
        assert (caveat.severity, caveat.subject, caveat.metrics) == ("warning", "ext4/r", "read_")
        assert f"the device delivered {share:.0%} of the bytes read, and the page cache is not why" in caveat.message
        assert words in caveat.message
        assert found("cache-served", evidence) == []


def test_what_is_not_allocated_yet_was_read_from_the_page_cache() -> None:
    evidence = buffered(0.0)
    assert "the page cache answered" in the_only("cache-served", evidence).message
    assert found("device-read-less", evidence) == []


def buffered(share: float, **extents: int) -> Evidence:
    return delivered(share, during(extents=replace(WHOLE, **extents)))


@every_row("compressed", [512 * MIB, 16 * MIB])
def test_compressed_files_of_which_the_device_was_asked_for_next_to_nothing_were_in_the_page_cache(
    compressed: int,
) -> None:
    """Even compressed bytes come from the device: one part in 32, at least."""
    evidence = buffered(0.0, compressed=compressed)
    assert "the page cache answered" in the_only("cache-served", evidence).message
    assert found("device-read-less", evidence) == []


def test_a_hole_that_explains_a_part_only_leaves_the_rest_to_the_page_cache() -> None:
    """Of a file with a hole in its first half the device delivered 5 %, not 50 %."""
    evidence = buffered(0.05, hole=256 * MIB)
    assert "the page cache answered" in the_only("cache-served", evidence).message
    assert found("device-read-less", evidence) == []


def test_files_whose_data_is_on_the_device_are_no_reason() -> None:
    assert found("device-read-less", direct(1.0, extents=WHOLE)) == []
    assert found("device-read-less", delivered(0.0, during(extents=WHOLE))) == [], "the page cache"


def test_direct_reads_that_left_nothing_in_the_page_cache_are_not_blamed_on_it() -> None:
    evidence = direct(0.0, resident_bytes=0)
    message = the_only("device-read-less", evidence).message
    assert "how they lie on the device could not be seen (filefrag of e2fsprogs, FIEMAP)" in message
    assert found("cache-served", evidence) == []
    assert "the files have their data on the device" in (
        the_only("device-read-less", direct(0.0, resident_bytes=0, extents=WHOLE)).message
    )


def test_direct_reads_that_went_through_the_page_cache_are_blamed_on_it() -> None:
    resident = direct(0.0, resident_bytes=512 * MIB)
    journal = replace(direct(0.0, resident_bytes=None), in_effect={"ext4": {"data": "journal"}})
    for evidence in (resident, journal):
        assert "the page cache answered" in the_only("cache-served", evidence).message
        assert found("device-read-less", evidence) == []


def test_an_image_with_parts_that_were_never_written_is_no_page_cache() -> None:
    """A raw loop device past the page cache below: it was asked for everything, and its disk for nothing."""
    evidence = replace(quiet(), traffic=dict.fromkeys(quiet().traffic, moved(1.0, disk=0.0)))
    assert "parts of its image have no data" in the_only("device-read-less", evidence).message
    assert found("cache-served", evidence) == []


# --- programs without a figure of bytes -------------------------------------------------------------------------------


def program(
    *, read: float, written: float = 0, dirtied: float = 0, device: tuple[float, float], **more: Any
) -> Evidence:
    """Ten trials of a program that tells no bytes; all in MiB. `device`: what it read and wrote."""
    the_sweep = make(workloads={"r": {**OWN, **more}})
    evidence = quiet(replace(make(), filesystems=the_sweep.filesystems))
    rows = evidence.measurements[evidence.measurements["metric"] != "bytes"]
    traffic = DeviceBytes(*(int(each * MIB) for each in device))
    read_calls, write_calls, dirtied_bytes = (int(each * MIB) for each in (read, written, dirtied))
    calls = {"read_calls": read_calls, "write_calls": write_calls, "dirtied_pages": dirtied_bytes // 4096}
    return replace(
        evidence,
        sweep=the_sweep,
        measurements=rows,
        traffic=dict.fromkeys(evidence.traffic, dict.fromkeys(every_device(CHAIN), traffic)),
        around=dict.fromkeys(evidence.around, replace(QUIET, **calls)),
    )


@every_row(
    ("what", "calls"),
    [
        ("md5sum of a cached file", {"read": 512, "device": (0, 0)}),
        ("cat of a cached file into /dev/null", {"read": 512, "written": 512, "device": (0, 0)}),
        ("a search in half of it", {"read": 512, "device": (256, 0)}),
    ],
)
def test_a_program_that_the_page_cache_served_is_told_by_its_read_calls(what: str, calls: dict[str, Any]) -> None:
    caveat = the_only("cache-served", program(**calls))
    assert (caveat.severity, caveat.subject, caveat.metrics) == ("warning", "ext4/r", ""), what
    assert "of 512 MiB or more that read calls returned (/proc/PID/io)" in caveat.message


def test_a_program_that_was_to_read_warm_is_noted() -> None:
    warm = program(read=512, device=(0, 0), cache="warm", prepare="lay-out {directory}")
    assert the_only("cache-served", warm).severity == "note"


@every_row(
    ("what", "calls"),
    [
        ("md5sum of a cold file", {"read": 512, "device": (512, 0)}),
        ("cat of a cold file into /dev/null", {"read": 512, "written": 512, "device": (512, 0)}),
        ("dd of /dev/zero into a file", {"read": 512, "written": 512, "device": (0, 512)}),
        ("the same, not flushed", {"read": 512, "written": 512, "dirtied": 512, "device": (0, 0)}),
        ("tar of a cold tree into gzip", {"read": 1024, "written": 520, "dirtied": 8, "device": (512, 8)}),
        ("a cold file through three pipes", {"read": 1536, "written": 1536, "device": (512, 0)}),
        ("a program that reads its libraries", {"read": 20, "device": (0, 0)}),
        ("one that writes only", {"read": 0.1, "written": 512, "device": (0, 512)}),
    ],
)
def test_a_program_that_read_from_the_device_or_from_no_file_raises_nothing(what: str, calls: dict[str, Any]) -> None:
    assert found("cache-served", program(**calls)) == [], what


def test_a_tool_that_copies_from_memory_is_not_judged_by_its_read_calls() -> None:
    """rsync reads the tree that it copies, and what compares the copies reads both."""
    evidence = program(read=512, device=(0, 0))
    assert found("cache-served", evidence)
    copied = make(workloads={"r": {"tool": "rsync", "files": 1000}})
    assert found("cache-served", replace(evidence, sweep=copied)) == []


def test_a_kernel_that_does_not_count_the_calls_of_processes_says_nothing() -> None:
    evidence = program(read=512, device=(0, 0))
    assert found("cache-served", replace(evidence, around=dict.fromkeys(evidence.around, QUIET))) == []


def test_a_watched_program_that_reads_pipes_and_no_files_is_not_served_by_the_page_cache() -> None:
    evidence, lines = program(read=512, device=(0, 0)), mount_lines("27 1 254:0 / / rw - ext4 /dev/vda rw\n")
    small = OpenFiles(5, 3, [OpenDirectory("/srv", 1, 1, 0, 4096)], lines)
    large = OpenFiles(5, 3, [OpenDirectory("/srv", 1, 1, 0, 512 * MIB)], lines)
    assert found("cache-served", replace(evidence, open_files=dict.fromkeys(evidence.traffic, small))) == []
    assert the_only("cache-served", replace(evidence, open_files=dict.fromkeys(evidence.traffic, large)))


@every_row(("fstype", "raised"), [("ext4", True), ("xfs", False), ("btrfs", False)])
def test_a_copy_that_shares_the_blocks_of_its_source_was_not_read_from_memory(fstype: str, raised: bool) -> None:
    """copy_file_range counts as 512 MiB read and written, and nothing had to be."""
    evidence = during(evidence=program(read=512, written=512, device=(0, 0)), fetched=0, charged=0)
    lines = mount_lines(f"27 1 254:0 / / rw - {fstype} /dev/vda rw\n")
    files = OpenFiles(5, 0, [OpenDirectory("/srv", 2, 1, 1, 1024 * MIB)], lines)
    evidence = replace(evidence, open_files=dict.fromkeys(evidence.traffic, files))
    assert bool(found("cache-served", evidence)) == raised


def test_of_a_watched_program_whose_files_were_not_seen_the_page_cache_is_blamed_with_a_reserve() -> None:
    words = (
        "the page cache answered, unless it read pipes, /dev/zero, /proc or holes (its files were not seen): storage"
    )
    evidence = program(read=512, device=(0, 0))
    place = make(
        filesystems={"ext4": {"type": "in_place", "path": "/srv"}}, workloads={"r": {"tool": "watched", "argv": "x"}}
    )
    watched = replace(evidence, sweep=place)
    assert words in the_only("cache-served", watched).message
    lines = mount_lines("27 1 254:0 / / rw - ext4 /dev/vda rw\n")
    files = OpenFiles(5, 0, [OpenDirectory("/srv", 1, 1, 0, 512 * MIB)], lines)
    seen = replace(watched, open_files=dict.fromkeys(evidence.traffic, files))
    assert "the page cache answered: storage" in the_only("cache-served", seen).message
    assert "the page cache answered: storage" in the_only("cache-served", evidence).message


@every_row(
    ("what", "size", "fetched", "raised"),
    [
        ("zcat of a cold file, grep and sort", 20, 20, False),
        ("the same, of a larger one that was cached", 150, 0, True),
        ("a cached file through pipes", 200, 0, True),
        ("a cold file through eleven pipes", 40, 40, False),
    ],
)
def test_what_went_through_pipes_is_not_held_against_the_files(
    what: str, size: int, fetched: int, raised: bool
) -> None:
    calls = {"read_calls": 512 * MIB, "write_calls": 492 * MIB, "fetched": fetched * MIB, "charged": 0}
    evidence = during(evidence=program(read=512, device=(0, 0)), **calls)
    files = OpenFiles(5, 9, [OpenDirectory("/srv", 1, 1, 0, size * MIB)], ROOT)
    evidence = replace(evidence, open_files=dict.fromkeys(evidence.traffic, files))
    assert bool(found("cache-served", evidence)) == raised, what


@every_row(
    ("what", "files", "raised"),
    [
        ("gzip of a cached file", OpenFiles(5, 0, [OpenDirectory("/srv", 2, 1, 1, 600 * MIB)], ROOT), True),
        ("the same, from a pipe", OpenFiles(5, 3, [OpenDirectory("/srv", 2, 1, 1, 600 * MIB)], ROOT), False),
        ("dd of /dev/zero into a file", OpenFiles(5, 3, [OpenDirectory("/srv", 1, 0, 1, 510 * MIB)], ROOT), False),
        ("the same, looked at once", OpenFiles(1, 0, [OpenDirectory("/srv", 2, 1, 1, 600 * MIB)], ROOT), False),
        (
            "a small file, and what was not seen",
            OpenFiles(5, 0, [OpenDirectory("/srv", 1, 1, 0, 9 * MIB)], ROOT),
            False,
        ),
    ],
)
def test_what_was_written_may_have_come_from_a_pipe_unless_only_files_were_seen(
    what: str, files: OpenFiles, raised: bool
) -> None:
    calls = {"read_calls": 512 * MIB, "write_calls": 510 * MIB, "fetched": 0, "charged": 510 * MIB}
    evidence = during(evidence=program(read=512, device=(0, 0)), **calls)
    evidence = replace(evidence, open_files=dict.fromkeys(evidence.traffic, files))
    assert bool(found("cache-served", evidence)) == raised, what


def test_a_program_that_reads_holes_is_told_so() -> None:
    evidence = during(evidence=program(read=512, device=(0, 0)), read_calls=512 * MIB, write_calls=0,
                      extents=replace(WHOLE, hole=512 * MIB))  # fmt: skip
    assert "100% holes" in the_only("device-read-less", evidence).message
    assert found("cache-served", evidence) == []


@every_row(
    ("what", "own", "raised"),
    [
        ("others wrote while it read from memory", {"fetched": 0, "charged": 0}, True),
        ("others read while it read from memory", {"fetched": 16 * MIB, "charged": 0}, True),
        ("it read from the device, and others from memory", {"fetched": 512 * MIB, "charged": 0}, False),
    ],
)
def test_what_other_programs_moved_is_not_taken_for_its_own(what: str, own: dict[str, int], raised: bool) -> None:
    """The device and the dirtied pages are those of all programs: of the amounts of its own processes it is judged."""
    evidence = program(read=512, dirtied=480, device=(900, 480))
    assert bool(found("cache-served", during(evidence=evidence, **own))) == raised, what


def test_files_on_another_device_are_not_taken_for_memory() -> None:
    """Its processes got all of it from some storage, and the device below its directory gave nothing."""
    evidence = during(evidence=program(read=512, device=(0, 0)), fetched=512 * MIB, charged=0)
    assert found("cache-served", evidence) == []


@every_row(("fstype", "raised"), [("ext4", True), ("fuse.sshfs", False), ("zfs", False), ("9p", False)])
def test_reads_from_a_file_system_that_counts_no_deliveries_are_not_taken_for_memory(fstype: str, raised: bool) -> None:
    lines = mount_lines(f"27 1 254:0 / / rw - ext4 /dev/vda rw\n31 27 0:50 / /far rw - {fstype} far rw\n")
    files = OpenFiles(3, 0, [OpenDirectory("/far/x", 1, 1, 0, 512 * MIB)], lines)
    evidence = during(evidence=program(read=512, device=(0, 0)), fetched=0, charged=0)
    evidence = replace(evidence, open_files=dict.fromkeys(evidence.traffic, files))
    assert bool(found("cache-served", evidence)) == raised


# --- direct I/O with data=journal -------------------------------------------------------------------------------------


def test_direct_io_with_data_journal_in_effect_is_a_warning_without_a_look_at_the_cache() -> None:
    """ext4 takes O_DIRECT through the page cache there: also by a super block that asks for it (tune2fs -o)."""
    evidence = replace(direct(1.0, resident_bytes=None), in_effect={"ext4": {"data": "journal"}})
    caveat = the_only("direct-not-honoured", evidence)
    assert (caveat.severity, caveat.subject) == ("warning", "ext4/r")
    assert "data=journal is in effect: with it ext4 takes direct I/O through the page cache" in caveat.message


@every_row("options", [{"data": "ordered"}, {}, {"data": "writeback"}])
def test_other_modes_of_the_journal_take_direct_io(options: dict[str, str]) -> None:
    assert found("direct-not-honoured", replace(direct(1.0, resident_bytes=0), in_effect={"ext4": options})) == []


def test_buffered_io_with_data_journal_is_no_caveat() -> None:
    assert found("direct-not-honoured", replace(quiet(), in_effect={"ext4": {"data": "journal"}})) == []


def test_direct_io_with_data_journal_is_foreseen() -> None:
    for options, codes in ((["data=journal"], {"direct-not-honoured"}), (["noatime"], set[str]())):
        the_sweep = make(filesystems={"ext4": {**EXT4, "options": options}}, workloads=DIRECT)
        foreseen = {caveat.code for caveat in foresee(the_sweep, KNOWN)} & {"direct-not-honoured"}
        assert foreseen == codes


# --- caches that could not be dropped ---------------------------------------------------------------------------------


FIO = {"tool": "fio", "rw": "read", "bs": "1MiB", "size": "64MiB"}


def driven(**clients: str) -> Evidence:
    """Trials that these clients drove, with what each said of its cache."""
    shared = {"d": {"type": "dir", "path": "/mnt/d"}}
    the_sweep = make(filesystems=shared, workloads={"r": {**FIO, "clients": ["a", "b"]}})
    evidence = quiet()
    renamed = evidence.trials.assign(cell="d/r", filesystem="d")
    around = dict.fromkeys(evidence.around, replace(QUIET, clients=clients))
    return replace(evidence, sweep=the_sweep, trials=renamed, around=around)


def test_a_client_whose_caches_could_not_be_dropped_is_named() -> None:
    caveat = the_only("caches-not-dropped", driven(a="drop_caches", b="fadvise"))
    assert (caveat.severity, caveat.subject) == ("note", "d/r")
    assert "in 10 of its 10 trials (t0001, t0002, t0003, ...) the kernel of client b did not let its caches" in (
        caveat.message
    )
    assert "client a" not in caveat.message


@every_row("clients", [{"a": "drop_caches", "b": "drop_caches"}, {"a": "filled", "b": "filled"}, {}])
def test_clients_that_dropped_theirs_or_were_not_asked_to_are_not(clients: dict[str, str]) -> None:
    assert found("caches-not-dropped", driven(**clients)) == []


def test_a_kernel_that_refuses_root_is_told() -> None:
    """As in a container without /proc/sys."""
    assert "the kernel of the box did not let its caches be dropped" in (
        the_only("caches-not-dropped", during("t0002", cache="fadvise")).message
    )
    assert found("caches-not-dropped", during(cache="drop_caches")) == []


# --- pieces of files in memory ----------------------------------------------------------------------------------------


def beside(
    options: dict[str, str], *, enabled: str | None = "never", kernel: str = "6.18.1", other: str = "ext4", **more: Any
) -> Evidence:
    """Warm reads of tmpfs beside those of another file system."""
    the_sweep = make(
        filesystems={"tmpfs": {"type": "tmpfs", "size": "1GiB"}, other: {**EXT4, "type": other}},
        workloads={"r": {**READ, "cache": "warm", **more}},
        baseline=other,
    )
    facts = known(KNOWN, kernel=kernel, huge_pages={"shmem_enabled": enabled} if enabled else None)
    effect = {"tmpfs": options, other: {}}
    return build(the_sweep, facts=facts, in_effect=effect, fstypes={"tmpfs": "tmpfs", other: other})


def test_single_pages_beside_large_folios_are_noted_with_the_option_the_setting_and_the_kernel() -> None:
    """tmpfs read warm at 0.36 of ext4's speed, and with huge=always at 1.37."""
    caveat = the_only("folios-differ", beside({"size": "1g"}))
    assert (caveat.severity, caveat.scope, caveat.subject) == ("note", "filesystem", "tmpfs")
    assert "in single pages (huge=never, shmem_enabled: never)" in caveat.message
    assert "large folios (ext4 of Linux 6.18.1; large since 6.16) of ext4" in caveat.message


@every_row(
    ("what", "raised", "given"),
    [
        ("huge=always beside large folios", False, {"options": {"huge": "always"}}),
        ("huge=always beside single pages", True, {"options": {"huge": "always"}, "kernel": "6.1.0-18-amd64"}),
        ("single pages beside single pages", False, {"options": {}, "kernel": "6.1.0-18-amd64"}),
        ("huge=always, and the kernel denies it", True, {"options": {"huge": "always"}, "enabled": "deny"}),
        ("no option, and the kernel forces it", False, {"options": {}, "enabled": "force"}),
        ("huge=advise, and nobody advises", True, {"options": {"huge": "advise"}}),
        ("xfs of a kernel since 5.18", True, {"options": {}, "kernel": "6.1.0", "other": "xfs"}),
        ("xfs of a kernel before", False, {"options": {}, "kernel": "5.10.0", "other": "xfs"}),
        ("a file system of which it is not known", False, {"options": {}, "other": "btrfs"}),
        ("a kernel of which it is not known", False, {"options": {}, "kernel": "unknown"}),
        ("a kernel without huge pages", False, {"options": {}, "enabled": None}),
        ("cold reads", False, {"options": {}, "cache": "cold"}),
        ("direct reads", False, {"options": {}, "iflag": "direct"}),
    ],
)
def test_pieces_differ_by_option_setting_and_kernel(what: str, raised: bool, given: dict[str, Any]) -> None:
    assert bool(found("folios-differ", beside(**given))) == raised, what


def test_an_ext4_with_data_journal_has_single_pages() -> None:
    evidence = beside({"huge": "always"})
    assert found("folios-differ", evidence) == []
    evidence = replace(evidence, in_effect={**evidence.in_effect, "ext4": {"data": "journal"}})
    assert "single pages (data=journal) of ext4" in the_only("folios-differ", evidence).message


@pytest.mark.slow
def test_writes_have_no_such_caveat() -> None:
    write = {"tool": "dd", "direction": "write", "bs": "1MiB", "count": 8}
    evidence = beside({})
    the_sweep = make(filesystems={"tmpfs": {"type": "tmpfs", "size": "1GiB"}, "ext4": EXT4}, workloads={"w": write})
    assert found("folios-differ", replace(evidence, sweep=the_sweep)) == []


# --- ZFS --------------------------------------------------------------------------------------------------------------


@every_row(
    ("options", "arc", "words"),
    [
        ((), ArcReads(hits=900, misses=100), ["the ARC of ZFS (it had 90% of the blocks that were looked up) answered",
                                              "unless compression left less to read: the device delivered 10%"]),
        (("compression=off",), None, ["the ARC of ZFS answered: the device delivered 10% of the bytes read"]),
    ],
)  # fmt: skip
def test_reads_that_the_cache_of_zfs_answered_direct_ones_too_are_told_with_its_share_of_hits(
    options: tuple[str, ...], arc: ArcReads | None, words: list[str]
) -> None:
    zfs = {"type": "zfs", "image": "1GiB", "options": list(options)}
    for workload in (READ, DIRECT["r"]):
        sweep = make(filesystems={"ext4": zfs}, workloads={"r": workload})
        seen = during(evidence=delivered(0.1, build(sweep, fstypes={"ext4": "zfs"})), arc=arc, resident_bytes=0)
        message = the_only("cache-served", seen).message
        assert all(word in message for word in words), message
        assert found("device-read-less", seen) == []

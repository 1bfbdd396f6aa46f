"""What a watched program did, in sentences and tables: computed from what the kernel counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from mountlab.analysis.run_view import TrialRecord
from mountlab.checks import Below
from mountlab.core.findings import Caveat
from mountlab.core.mountinfo import mount_lines
from mountlab.core.units import MIB
from mountlab.filesystems.cache_counters import ArcReads, NfsBytes
from mountlab.filesystems.counters import Around, Extents
from mountlab.filesystems.evidence import DeviceBytes
from mountlab.filesystems.open_files import OpenDirectory, OpenFiles
from mountlab.report import sections
from mountlab.report.terminal import run_answer
from mountlab.sentences.watched import same_work, watched_lines
from mountlab.sweep.sweep_file import resolve
from mountlab.sweep.watch_sweep import WatchRequest
from rows import every_row
from synthetic_run import SyntheticRun, synthetic_run

SWEEP = resolve(WatchRequest(("prog",), "/srv", "local", repeats=2).parameters(), where="watch").sweep
MOUNTS = mount_lines("27 1 254:0 / / rw,noatime - ext4 /dev/vda rw\n")
FILES = OpenFiles(3, 0, [OpenDirectory("/srv/x", 4, 4, 1, 5 * MIB)], MOUNTS)
AROUND: dict[str, Any] = {
    "seconds": 2.0, "read_calls": 100 * MIB, "read_count": 50, "write_calls": 40 * MIB, "write_count": 60,
    "fetched": 100 * MIB, "charged": 40 * MIB, "own": 0.25, "others": 0.0, "pressure": {"io": 0.5},
}  # fmt: skip
DEVICE = Below(100 * MIB, 44 * MIB, lost=0, flushes=10)


def run_of(*trials: dict[str, Any], device: Below | None = DEVICE, files: OpenFiles | None = FILES) -> SyntheticRun:
    """A run of a watched program; `trials`: what is not as in AROUND, for each."""
    plain = synthetic_run(blocks=1)
    rows = plain.trials[~plain.trials["warmup"].astype(bool)].iloc[: len(trials)]
    records = {
        name: TrialRecord(around=Around(**{**AROUND, **changes}), device=device, open_files=files)
        for name, changes in zip(rows["trial_id"], trials, strict=True)
    }
    (cell,) = SWEEP.cells
    trials_of_cell, nothing = rows.assign(cell=cell.id, status="ok"), plain.estimates.iloc[:0]
    return replace(plain, sweep=SWEEP, trials=trials_of_cell, records=records, estimates=nothing, comparisons=[])


def said(*trials: dict[str, Any], **more: Any) -> str:
    run, (cell,) = run_of(*trials, **more), SWEEP.cells
    compressed = any("extents" in trial and trial["extents"].compressed for trial in trials)
    code = "device-read-less" if compressed else "cache-served"
    doubt = Caveat(code=code, severity="warning", message="", scope="cell", subject=cell.id)
    ((first, rest),) = watched_lines(replace(run, caveats=[doubt]))
    return f"{first} {rest}"


def test_an_honest_program_is_described_by_its_amounts() -> None:
    assert said({}) == (
        "prog took 2.00 s (1 run). Of 100 MiB that its calls read, pipes included, storage delivered 100%. It wrote "
        "40.0 MiB to files, and the device took 1.10 times as much. The device was flushed 5.0 times a second, by all "
        "programs together. It had files open on / (ext4)."
    )


@every_row(
    ("trials", "words"),
    [
        ([{"fetched": 20 * MIB}], "storage delivered 20%; memory answered the rest"),
        ([{}, {"fetched": 0}], "storage delivered 0% to 100%; memory answered in some of the runs"),
        ([{"fetched": 95 * MIB}], "storage delivered 95%. It wrote"),
        ([{"fetched": 0, "extents": Extents(files=1, size=100, hole=100)}],
         "storage delivered 0%; 100% of the bytes in its files has no data there (holes, unwritten space)"),
        ([{"fetched": 4 * MIB, "extents": Extents(files=1, size=100, compressed=90)}],
         "storage delivered 4%; 90% of the bytes in its files is compressed there. It wrote"),
        ([{"read_calls": MIB}],
         "Its calls read 1.00 MiB, without AIO, io_uring, mmap, splice, and children that it did not wait for: too "
         "little to say what answered."),
        ([{"arc": ArcReads(30, 10)}, {"arc": ArcReads(0, 0)}], "The ARC of ZFS answered 75% of what all programs"),
        ([{"seconds": 1.0}, {"seconds": 3.0}], "took 1.00 s to 3.00 s (2 runs)"),
        ([{"nfs": {"/mnt": NfsBytes(100 * MIB, 0, 0, 25 * MIB, 0)}}],
         "On /mnt (NFS) the server delivered 25% of 100 MiB; the client's memory the rest."),
    ],
)  # fmt: skip
def test_what_answered_its_reads_is_said(trials: list[dict[str, Any]], words: str) -> None:
    assert words in said(*trials)


def test_memory_is_blamed_without_reserve_where_files_that_it_read_were_seen() -> None:
    words = "memory answered the rest, unless that was pipes, /dev/zero, /proc or holes"
    large = replace(FILES, directories=[OpenDirectory("/srv/x", 4, 4, 1, 50 * MIB)])
    for files, is_seen in ((large, True), (FILES, False), (None, False)):
        assert (words not in said({"fetched": 20 * MIB}, files=files)) == is_seen


def test_it_took_what_the_clock_beside_it_says_without_the_shells_around_it() -> None:
    run = run_of({}, {})
    (first, second) = run.records
    clock = run.measurements.iloc[:2].assign(trial_id=[first, second], metric="elapsed", label="", value=[0.5, 0.75])
    timed = replace(run, measurements=clock)
    assert watched_lines(timed)[0][0].startswith("prog took 500 ms to 750 ms (2 runs).")
    assert list(sections.watched(timed).frame["seconds"]) == [0.5, 0.75]


def test_more_from_storage_than_its_calls_read_tells_nothing_of_these_calls() -> None:
    """20 MiB of calls from memory, and 200 MiB by mmap from storage, are not 100 % from storage."""
    mapped = {"read_calls": 20 * MIB, "fetched": 200 * MIB}
    text = said(mapped)
    assert (
        "Storage delivered 200 MiB to it, and its calls read 20.0 MiB: the rest was metadata, read ahead, or for mmap"
        in text
    )
    assert "100%" not in text
    text = said(mapped, {"read_calls": 20 * MIB, "fetched": 0})
    assert "In 1 of 2 runs storage delivered 200 MiB to it" in text
    assert "storage delivered 0%; memory answered the rest" in text


def test_pipes_that_its_calls_read_are_not_taken_for_memory() -> None:
    """Without a caveat that holds it against the reads: `head -c 2G /dev/zero | wc -c` reads no file."""
    ((first, _),) = watched_lines(replace(run_of({"fetched": 0}), caveats=[]))
    assert "storage delivered 0%." in first


def test_others_that_read_from_the_device_do_not_make_up_for_what_memory_answered() -> None:
    busy = replace(DEVICE, read=900 * MIB)
    assert "storage delivered 20%" in said({"fetched": 20 * MIB}, device=busy)


def test_flushes_of_several_devices_are_said_to_be_a_sum() -> None:
    of_raid = replace(DEVICE, flushes=20, flushes_of="2 loop devices")
    assert "2 loop devices were flushed, in sum, 10.0 times a second, by all programs together." in said(
        {}, device=of_raid
    )
    assert "(flushes: of 2 loop devices, in sum)" in str(sections.watched(run_of({}, device=of_raid)))


def test_writes_that_stay_in_memory_and_a_device_that_is_never_flushed_are_said() -> None:
    waiting = {"waiting_pages": 36 * MIB // 4096}
    text = said(waiting, device=replace(DEVICE, written=4 * MIB, flushes=0))
    assert "the device took 0.10 times as much; the rest was still in memory when it ended" in text
    assert "The device was never flushed." in text


@every_row("waiting", [{"waiting_pages": 0}, {"waiting_pages": None}, {"waiting_pages": -9000}])
def test_writes_that_are_neither_on_the_device_nor_dirty_are_not_said_to_be_in_memory(waiting: dict[str, Any]) -> None:
    """Compressed by btrfs, or written past the page cache to a block device."""
    text = said(waiting, device=replace(DEVICE, written=4 * MIB))
    assert "still in memory" not in text
    assert "where the rest was is not known (in memory, compressed, or on another device)" in text


TWO_MOUNTS = mount_lines("27 1 254:0 / / rw - ext4 /dev/vda rw\n28 27 8:1 / /far rw - xfs /dev/sda1 rw\n")


def test_writes_to_another_device_are_not_held_against_that_below_its_directory() -> None:
    files = OpenFiles(3, 0, [OpenDirectory("/far", 1, 0, 1, 40 * MIB)], TWO_MOUNTS)
    run = {"waiting_pages": 36 * MIB // 4096}
    text = said(run, device=replace(DEVICE, written=0, flushes=0), files=files)
    assert "It wrote 40.0 MiB to files, also on /far (xfs): what the device there took is not known." in text
    assert "flushed" not in text
    page = str(sections.watched(run_of(run, files=files)))
    assert "what the device of /far (xfs) took, and how often it was flushed: watch it with --in there." in page


@every_row(
    ("files", "counts"),
    [
        ([OpenDirectory("/srv/x", 1, 0, 1, 4096), OpenDirectory("/far", 1, 1, 0, 400 * MIB)], True),
        ([OpenDirectory("/srv/x", 1, 0, 1, 40 * MIB), OpenDirectory("/far", 1, 0, 1, 4096)], True),
        ([OpenDirectory("/srv/x", 1, 0, 1, 400 * MIB), OpenDirectory("/far", 1, 0, 1, 40 * MIB)], False),
        ([OpenDirectory("/far", 1, 0, 1, 4096)], False),
    ],
)
def test_reads_and_a_few_small_writes_elsewhere_leave_the_device_what_it_is(
    files: list[OpenDirectory], counts: bool
) -> None:
    assert ("times as much" in said({}, files=OpenFiles(3, 0, files, TWO_MOUNTS))) == counts


def test_files_on_another_device_are_judged_by_what_its_own_processes_got() -> None:
    assert "storage delivered 100%" in said({}, device=replace(DEVICE, read=0))


def test_what_a_loop_device_got_from_memory_below_it_was_not_delivered_by_storage() -> None:
    assert "storage delivered 10%" in said({}, device=replace(DEVICE, read=10 * MIB, lost=90 * MIB))


@every_row(
    ("chain", "read", "known"),
    [(("254:0",), 100 * MIB, False), (("7:1", "254:0"), 100 * MIB, True), (("254:0",), 5 * MIB, True)],
)
def test_what_a_loop_device_elsewhere_delivered_may_have_come_from_memory(
    chain: tuple[str, ...], read: int, known: bool
) -> None:
    """Its image may be in the page cache: of the loop device below its directory both sides are counted."""
    counted = {"names": {"7:1": "loop1", "254:0": "vda"}, "traffic": {"7:1": DeviceBytes(read, 0)}}
    run = run_of(counted, device=replace(DEVICE, chain=chain))
    text = " ".join(watched_lines(run)[0])
    assert ("storage delivered 100%" in text) == known
    why = "loop1, which is not below its directory: memory may have answered the reads of its image"
    assert (f"it is not known what storage delivered ({why})" in text) != known
    assert (f"what storage delivered to it: {why}." in str(sections.watched(run))) != known


@every_row(
    ("size", "source", "known"),
    [
        (95 * MIB, "/dev/vdb", True),
        (95 * MIB, "/dev/loop1", False),
        (95 * MIB, "overlay", False),
        # Of what storage delivered most came from files that were not seen.
        (50 * MIB, "/dev/vdb", False),
    ],
)
def test_loop_devices_of_other_programs_matter_only_where_its_files_may_lie_there(
    size: int, source: str, known: bool
) -> None:
    counted = {"names": {"7:1": "loop1", "254:0": "vda"}, "traffic": {"7:1": DeviceBytes(100 * MIB, 0)}}
    lines = mount_lines(f"27 1 254:0 / / rw - ext4 /dev/vda rw\n31 27 0:40 / /data rw - btrfs {source} rw\n")
    files = OpenFiles(3, 0, [OpenDirectory("/data/x", 4, 4, 0, size)], lines)
    text = " ".join(watched_lines(run_of(counted, files=files))[0])
    assert ("storage delivered 100%" in text) == known


def test_beside_loop_devices_of_others_memory_answered_what_storage_cannot_have_delivered() -> None:
    counted = {
        "names": {"7:1": "loop1"}, "traffic": {"7:1": DeviceBytes(100 * MIB, 0)}, "fetched": 25 * MIB,
    }  # fmt: skip
    assert "storage delivered at most 25%; memory answered the rest" in said(counted)


def test_the_sentence_has_the_same_median_of_flushes_as_the_table() -> None:
    """Of 10, 20 and 1 a second."""
    run = run_of({"seconds": 1.0}, {"seconds": 2.0}, {"seconds": 8.0})
    flushes = dict(zip(run.records, (10, 40, 8), strict=True))
    records = {
        name: replace(record, device=replace(DEVICE, flushes=flushes[name])) for name, record in run.records.items()
    }
    changed = replace(run, records=records)
    assert "flushed 10.0 times a second" in watched_lines(changed)[0][1]
    assert "1.0 to 20.0" in str(sections.headline(changed))


def test_flushes_that_no_device_counts_are_not_known_instead_of_none() -> None:
    why = "the kernel counts flushes of a device with a volatile cache only, and vda has no volatile cache"
    device = replace(DEVICE, flushes=None, flushes_unseen=why)
    assert "flushed" not in said({}, device=device)
    page = str(sections.watched(run_of({}, device=device)))
    assert f"flushes: {why}." in page
    assert "Flushes a write call" in page


@every_row(
    ("mount", "why"),
    [
        ("fuse.sshfs", "fuse.sshfs has no counters of what its server reads"),
        ("fuseblk", "fuseblk has no counters of what its server reads"),
        ("zfs", "ZFS counts what its ARC answers as if storage had delivered it"),
    ],
)
def test_where_the_kernel_does_not_count_what_storage_delivered_nothing_is_made_up(mount: str, why: str) -> None:
    lines = mount_lines(f"27 1 0:50 / / rw - {mount} pool/data rw\n")
    files = OpenFiles(3, 0, [OpenDirectory("/srv/x", 4, 4, 1, 50 * MIB)], lines)
    text = said({"fetched": 0}, files=files)
    assert f"Its calls read 100 MiB; of that it is not known what storage delivered (/: {why})." in text
    assert "memory answered" not in text
    assert f"what storage delivered to it: /: {why}" in str(sections.watched(run_of({}, files=files)))


def test_its_own_waiting_is_beside_that_of_the_box_and_is_missed_where_it_is_not_counted() -> None:
    own = str(sections.watched(run_of({"own_pressure": {"cpu": 0.0, "io": 0.25}})))
    assert "It waited for I/O" in own
    assert "25%" in own
    assert "it had no cgroup of version 2" not in own
    assert "it had no cgroup of version 2" in str(sections.watched(run_of({})))


def test_what_is_not_known_is_not_said() -> None:
    text = said(
        {"read_calls": None, "write_calls": None, "write_count": None, "charged": None}, device=None, files=None
    )
    assert text == "prog took 2.00 s (1 run). "


# --- the page ---------------------------------------------------------------------------------------------------------


def test_the_first_screen_has_the_sentence_and_the_amounts() -> None:
    page = str(sections.headline(run_of({}, {"fetched": 0})))
    assert "storage delivered 0% to 100%" in page
    assert "Amounts of one run" in page
    assert "No ratio to plot" not in page


def test_the_part_has_a_row_a_trial_and_says_what_could_not_be_seen() -> None:
    part = sections.watched(run_of({}, {"fetched": 0}, files=None))
    assert list(part.frame["fetched"]) == [100 * MIB, 0]
    assert "which files it had open, in some run: it ended before its processes could be looked at" in str(part)
    assert "files that it only mapped" in str(part)


def test_directories_are_shown_with_the_options_in_effect() -> None:
    page = str(sections.watched(run_of({})))
    assert all(words in page for words in ("/srv/x", "rw,noatime,rw", "/dev/vda", "seen by 3 looks"))


def test_a_run_of_another_kind_has_no_such_part() -> None:
    assert "No program was watched in place" in str(sections.watched(synthetic_run(blocks=1)))


@every_row(
    ("statuses", "reason", "words"),
    [
        (
            ["failed", "skipped"],
            "the command failed with exit status 3",
            "prog gave no figure: the command failed with",
        ),
        (["timeout", "timeout"], "ran longer than 1 s", "prog was ended at its time limit"),
        (["ok", "ok"], "", "What prog did was not counted."),
        ([], "", "prog has not ended yet."),
    ],
)
def test_a_program_without_figures_is_described_by_how_it_ended(statuses: list[str], reason: str, words: str) -> None:
    """Defect: `There is one file system only, so nothing is compared; its means are below`, twice, and no means."""
    run = run_of(*[{}] * len(statuses))
    ended = replace(run, records={}, trials=run.trials.assign(status=statuses, reason=reason))
    for text in (run_answer(ended), str(sections.headline(ended))):
        assert words in text
        assert "nothing is compared" not in text
        assert "Amounts of one run" not in text


def test_the_terminal_counts_no_cells_where_there_is_one() -> None:
    (cell,) = SWEEP.cells
    doubt = Caveat(code="too-few", severity="warning", message="n = 2.", scope="cell", subject=cell.id)
    run = replace(run_of({}, {}), caveats=[doubt], answer_metrics={cell.workload.label: ("elapsed",)})
    text = run_answer(run)
    assert "warning: Too few trials: n = 2" in text
    assert "Next. Watch it with --repeats 5 or more." in text
    assert [word for word in ("cell", "until.min") if word in text] == []
    assert "(1 cell)" not in str(sections.caveats(run))


# --- two runs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [{}, {"read_calls": 103 * MIB}, {"seconds": 9.0, "fetched": 0}])
def test_two_runs_that_did_the_same_work(change: dict[str, Any]) -> None:
    (line,) = same_work([run_of({}), run_of(change)], ["A", "B"])
    assert line.startswith("Both did the same work, within 5\N{NO-BREAK SPACE}%: read 100 MiB")
    assert ("100 MiB and 103 MiB" in line) == ("read_calls" in change)


@every_row(
    ("change", "words"),
    [
        ({"read_calls": 50 * MIB}, "A read 100 MiB and B 50.0 MiB"),
        ({"write_calls": 80 * MIB}, "A wrote 40.0 MiB and B 80.0 MiB"),
        ({"read_count": 5000}, "A made 110 calls and B 5060 calls"),
    ],
)
def test_two_runs_that_did_other_work_are_told_apart_first(change: dict[str, Any], words: str) -> None:
    (line,) = same_work([run_of({}), run_of(change)], ["A", "B"])
    assert line == f"The two did not do the same work: {words}."


def test_single_amounts_are_in_the_singular_and_files_that_were_not_seen_are_no_difference() -> None:
    """Defect: `A had open 0 files`, of a program that ended before a look, was called other work."""
    one = run_of({"read_count": 0, "write_count": 1}, device=replace(DEVICE, flushes=1))
    (line,) = same_work([one, one], ["A", "B"])
    assert line.endswith("made 1 call, saw 1 flush and had open 4 files.")
    unseen = run_of({}, files=OpenFiles(0, 0, [], MOUNTS))
    assert "had open" not in same_work([run_of({}), unseen], ["A", "B"])[0]


def test_flushes_tell_two_sides_apart_where_one_syncs_and_the_other_does_not() -> None:
    (line,) = same_work([run_of({}), run_of({}, device=replace(DEVICE, flushes=1000))], ["A", "B"])
    assert "A saw 10 flushes and B 1000 flushes" in line


def test_flushes_beside_other_programs_tell_nothing() -> None:
    other = run_of({"others": 0.4}, device=replace(DEVICE, flushes=1000))
    assert same_work([run_of({"others": 0.4}), other], ["A", "B"])[0].startswith("Both did the same work")


def test_runs_of_other_tools_are_not_judged_by_their_work() -> None:
    assert same_work([synthetic_run(blocks=1), run_of({})], ["A", "B"]) == []

"""What a trace explains: latencies by layer, ratios of work, slowest operations, stacks; and when it is withheld."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from mountlab.tracing.explained import Explained, ToolFigures, explained, files_of, names_of
from mountlab.tracing.operations import OpenFiles, operations_of
from mountlab.tracing.requests import requests_of
from mountlab.tracing.spent import Processors
from mountlab.tracing.tasks import Tasks
from mountlab.tracing.work import work_of
from rows import every_row
from synthetic_trace import DEV, DEVICE, Timeline, seen

PAGE = "folio_wait_bit_common"


def written(count: int, device_ns: int = 800, each: int = 2000) -> Timeline:
    """A tool (5) that writes 4 KiB and syncs, again and again; each sync writes them and flushes."""
    line = Timeline(names={5: "fio", 7: "jbd2/loop3-8", 30: "kworker/u8:1"})
    line.comes(5, 0)
    for at in range(1000, 1000 + count * each, each):
        line.call("pwrite64", 5, at, at + 100, ret=4096, fd=3)
        line.call("fsync", 5, at + 100, at + 300 + device_ns, fd=3)
        line.request(5, at + 150, at + 160, at + 160 + device_ns // 2, "WS", on=1)
        line.request(7, at + 165 + device_ns // 2, at + 170 + device_ns // 2, at + 170 + device_ns, "FF", size=0, on=1)
        line.sleeps(5, at + 155, at + 160 + device_ns // 2, PAGE, on=1)
        line.sleeps(5, at + 170 + device_ns // 2, at + 170 + device_ns, "submit_bio_wait", on=1)
    line.leaves(99, 1000 + count * each + 5000, to=98)
    return line


def explain(line: Timeline, tool: Mapping[str, float] | None = None, **more: Any) -> Explained:
    told = {"tasks": "", "fds": "5 3 /srv/trial/f\n", "directory": "trial", "devices": [DEVICE], **more}
    return explained(line.perf_data(), kallsyms=line.kallsyms, tool=ToolFigures(tool or {}), **told)


def ns(found: Explained, operation: str, statistic: str = "mean") -> dict[str, float]:
    rows = (each for each in found.layers if (each.operation, each.statistic) == (operation, statistic))
    return {f"{each.layer} {each.through}": round(each.seconds * 1e9, 3) for each in rows}


def test_the_mean_of_each_operation_by_layer() -> None:
    found = explain(written(10), {"sync": 1100e-9})
    assert ns(found, "write") == {"processor own": 100}
    assert ns(found, "sync") == {"processor own": 195, "queue own": 5, "device own": 400, "flush own": 400}
    (write, sync) = found.trace
    assert (sync.operation, sync.operations, sync.withheld, sync.lost_events) == ("sync", 10, "", 0)
    assert (sync.traced_mean, sync.tool_mean) == pytest.approx((1000e-9, 1100e-9))
    assert np.isnan(write.tool_mean)


def test_what_a_tool_reads_beside_the_writes_that_it_measures_is_no_operation_of_it() -> None:
    line = written(10)
    line.call("read", 5, 100, 400, ret=832, fd=3)
    measured = {"write": 100e-9, "sync": 1100e-9}
    assert {each.operation for each in explain(line, measured).trace} == {"write", "sync"}
    assert {each.operation for each in explain(line, {"sync": 1100e-9}).trace} == {"read", "write", "sync"}
    assert {each.operation for each in explain(line, {**measured, "read": 300e-9}).trace} == {"read", "write", "sync"}


@pytest.mark.slow
def test_the_99th_percentile_is_that_of_the_latencies_and_its_parts_those_of_operations_there() -> None:
    line = written(1000)
    slow = written(20, device_ns=80_000, each=100_000)
    for each in slow.happened:
        line.happened.append(type(each)(**{**each.__dict__, "at": each.at + 3_000_000}))
    found, latencies = explain(line), [each for each in seen(line).operations if each.name == "sync"]
    whole = np.quantile([each.end - each.begin for each in latencies], 0.99)
    assert sum(ns(found, "sync", "p99").values()) == pytest.approx(float(whole), rel=1e-6)
    assert max(ns(found, "sync", "p99"), key=ns(found, "sync", "p99").__getitem__) in ("flush own", "device own")
    assert ns(explain(written(999)), "sync", "p99") == {}


def test_the_slowest_operations_are_kept_piece_by_piece() -> None:
    rows = [each for each in explain(written(20)).slowest if each.operation == "sync"]
    assert {each.rank for each in rows} == set(range(1, 11))
    first = [each for each in rows if each.rank == 1]
    assert [each.layer for each in first] == ["processor", "queue", "device", "processor", "flush", "processor"]
    assert sum(each.seconds for each in first) == pytest.approx(1000e-9)
    ends = [each.begin_s + each.seconds for each in first]
    assert [each.begin_s for each in first] == pytest.approx([0, *ends[:-1]])


# --- work -------------------------------------------------------------------------------------------------------------


def work(found: Explained) -> dict[str, float]:
    return {f"{each.quantity} {each.label}".strip(): each.value for each in found.work}


def test_the_work_that_was_done_for_an_operation() -> None:
    line = written(10)
    for at in range(1500, 21_000, 2000):
        line.add("jbd2:jbd2_end_commit", at, 7, dev=DEV)
        line.add("jbd2:jbd2_end_commit", at, 7, dev=DEV + 1)  # of another file system
    line.add("block:block_bio_backmerge", 1200, 5, dev=DEV, sector=1, nr_sector=8, rwbs="W")
    line.add("block:block_bio_backmerge", 25_000, 5, dev=DEV, sector=1, nr_sector=8, rwbs="W")  # behind the last
    line.request(30, 1200, 1300, 1400, "WM", size=40960, on=1)
    found = work(explain(line, tasks="7 jbd2/loop3-8\n30 kworker/u8:1\n"))
    assert found["device_ios_per_op"] == 1.1
    assert found["device_bytes_per_op"] == 2 * 4096
    assert found["write_amplification"] == 2
    assert found["merges_per_io"] == pytest.approx(1 / 11)
    assert (found["flushes_per_sync"], found["fua_per_sync"], found["commits_per_sync"]) == (1, 0, 1)
    assert found["context_switches_per_op"] == 2
    assert found["processor_s_per_op"] == pytest.approx((19_100 - 10 * 805) / 10 * 1e-9)
    shares = {label: found[f"share_of_ios {label}"] for label in ("tool", "journal", "writeback", "other")}
    assert shares == {"tool": 10 / 21, "journal": 10 / 21, "writeback": 1 / 21, "other": 0}


def test_work_of_a_tool_that_hardly_reads_or_writes_is_for_each_operation() -> None:
    """It removes 200 files with a request each, and prints a line."""
    line = Timeline(names={5: "rm"})
    line.comes(5, 0)
    for at in range(1000, 401_000, 2000):
        line.call("unlink", 5, at, at + 1000, ret=0)
        line.request(5, at + 100, at + 110, at + 500, "WM")
    line.call("pwrite64", 5, 401_000, 401_100, ret=20, fd=3)
    line.leaves(99, 500_000, to=98)
    assert work(explain(line))["device_ios_per_op"] == pytest.approx(200 / 201)


def test_work_is_counted_in_the_windows_in_which_operations_were_seen() -> None:
    """Ten syncs, of which three and two were recorded: between them goes on what belongs to the others."""
    line = written(10)
    for at in range(1500, 21_000, 2000):
        line.add("jbd2:jbd2_end_commit", at, 7, dev=DEV)
    whole = work(explain(line))
    paused = replace(line.trace(), pauses=((6_950, 14_950), (18_950, 1 << 62)))
    requests, tasks = requests_of(paused, [DEV]), Tasks(paused)
    operations = operations_of(paused, requests, [5], OpenFiles())
    assert len(operations) == 2 * 5
    rows = work_of(paused, operations, requests, tasks, {5}, {5: "fio", 7: "jbd2/loop3-8"}, [DEV])
    found = {f"{row.quantity} {row.label}".strip(): row.value for row in rows}
    same = (
        "device_ios_per_op", "device_bytes_per_op", "flushes_per_sync", "commits_per_sync", "context_switches_per_op",
    )  # fmt: skip
    assert {name: found[name] for name in same} == {name: whole[name] for name in same}
    assert found["processor_s_per_op"] == pytest.approx((5_100 + 3_100 - 5 * 805) / 5 * 1e-9)


def test_a_tool_that_never_leaves_its_processor_used_it_all_the_time() -> None:
    line = Timeline()
    for at in range(0, 1000, 100):
        line.call("pwrite64", 5, at, at + 60, ret=4096, fd=3)
    line.comes(8, 990, cpu=1)
    assert work(explain(line))["processor_s_per_op"] == pytest.approx(96e-9)


def test_a_file_system_without_a_device_has_no_shares_of_one() -> None:
    line = Timeline()
    line.comes(5, 0)
    line.call("pwrite64", 5, 100, 200, ret=4096, fd=3)
    found = work(explain(line, devices=[]))
    assert found["device_ios_per_op"] == 0
    assert not [name for name in found if "share" in name or "sync" in name]


def test_of_a_device_that_is_not_known_no_work_is_counted() -> None:
    """It did some: none would be false."""
    whole, found = work(explain(written(10))), work(explain(written(10), devices=None))
    of_others = {"commit_share_of_sync", "context_switches_per_op", "processor_s_per_op", "processor_waits_per_op"}
    assert found == {name: value for name, value in whole.items() if name.partition(" ")[0] in of_others}


# --- when nothing is shown --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lost", "shown"), [(2, True), (3, False), (5000, False)])
def test_with_more_than_one_event_in_a_hundred_lost_no_split_is_shown(lost: int, shown: bool) -> None:
    line = written(10)
    while len(line.happened) < 198:
        line.wakes(4711, 5000)
    line.lost = lost
    found = explain(line)
    assert bool(found.layers) == bool(found.work) == bool(found.slowest) == shown
    reason = "" if shown else f"the kernel had no room for {lost} of {198 + lost} events"
    assert {each.withheld for each in found.trace} == {reason}
    assert {each.lost_events for each in found.trace} == {lost}


@pytest.mark.parametrize(("without", "shown"), [(1, True), (2, False)])
def test_with_more_than_one_request_in_a_hundred_without_an_end_no_split_is_shown(without: int, shown: bool) -> None:
    """Where perf sees nothing of an idle processor, ends of requests are missing, and are not counted as lost."""
    line = written(10)
    for at in range(100 - 20 - without):
        line.request(5, 10_000 + at, 10_000 + at, 10_001 + at)
    for _ in range(without):
        line.add("block:block_rq_issue", 20_000, 5, **line._place(None, 4096, "WS"))
    line.wakes(4711, 3_000_000_000)
    found = explain(line)
    assert bool(found.layers) == shown
    said = f"perf did not see the end of {without} of 100 requests: this kernel hides idle processors"
    assert {each.withheld for each in found.trace} == {"" if shown else said}


def test_a_request_that_is_under_way_when_the_trace_ends_is_none_without_an_end() -> None:
    line = written(10)
    line.add("block:block_rq_issue", 20_000, 5, **line._place(None, 4096, "WS"))
    line.wakes(4711, 900_000_000)
    assert {each.withheld for each in explain(line).trace} == {""}


def test_a_trace_without_an_operation_of_the_tool_says_so() -> None:
    found = explain(written(3), fds="4711 3 /srv/trial/f\n")
    (row,) = found.trace
    assert (row.operation, row.operations, row.withheld) == ("", 0, "no operation of the tool lies in the trace")
    assert (found.layers, found.work, found.stacks) == ((), (), ())


def test_operations_that_took_no_time_have_no_parts() -> None:
    line = Timeline()
    line.comes(5, 0)
    for _ in range(1000):
        line.call("pwrite64", 5, 100, 100, ret=1, fd=3)
    found = explain(line)
    assert found.layers == ()


# --- whose ------------------------------------------------------------------------------------------------------------


SEEN = """\
7 0 /dev/null
7 3 /dev/shm/mountlab-out/20261123T192700-tiny/x0001/fio.json
7 4 /dev/shm/mountlab-root/20261123T192700-tiny/mnt/ext4/x0001/mountlab.0.0
8 5 /srv/mountlab-20261123T192700-tiny-ext4/x0001/mountlab.0.0
9 6 /srv/out/20261123T192700-tiny/x0001/fio.json
9 7 /dev/loop3
9 8 /srv/mountlab-20261123T192700-tiny-ext4/x00012/mountlab.0.0
"""


def test_a_mount_below_dev_shm_is_under_test_and_the_report_beside_it_is_not() -> None:
    files = files_of(SEEN, "ext4/x0001")
    assert files.tested == {(7, 4), (8, 5), (9, 7)}
    assert files.strange == {(7, 0), (7, 3)}


def test_what_the_tool_starts_is_the_tool() -> None:
    line = written(3)
    line.forks = {5: 4, 4: 3, 8: 4711}
    assert explain(line, fds="3 0 /dev/null\n").trace[-1].operations == 3


@every_row(
    "fds", ["5 \N{SUPERSCRIPT TWO} x", "\N{ARABIC-INDIC DIGIT FIVE} 3 /x", "9" * 5000 + " 3 x", "\0", "5", "-5 3 x"]
)
def test_a_line_of_files_that_is_none_is_passed_over(fds: str) -> None:
    found = explain(written(3), fds=f"{fds}\n5 3 /srv/trial/f\n5 0 pipe:[1]\n")
    assert found.trace[-1].operations == 3


def test_a_name_is_the_one_seen_at_the_end_or_at_the_first_switch() -> None:
    line = Timeline(names={5: "sh", 6: "worker"})
    line.leaves(5, 100)
    line.leaves(6, 200)
    assert names_of(line.trace(), "5 fio\n\N{SUPERSCRIPT TWO} x\n" + "9" * 5000 + " y\nz\n") == {5: "fio", 6: "worker"}


def test_stacks_are_those_of_the_tool_and_of_the_kernels_threads() -> None:
    line = written(1)
    line.processes = {6: 5}
    line.names |= {6: "fio;<b>", 40: "bash", 30: "kworker/u8:1-events"}
    for tid, stack in (
        (5, ("a", "b")),
        (5, ("a", "b")),
        (6, ("c",)),
        (30, ("d",)),
        (40, ("e",)),
        (0, ("idle",)),
        (5, ()),
    ):
        line.add("cpu-clock", 1500, tid, stack=stack)
    found = explain(line, tasks="5 fio\n6 fio;<b>\n30 kworker/u8:1-events\n40 bash\n0 swapper\n")
    assert {each.stack: each.samples for each in found.stacks} == {
        "fio;b;a": 2, "fio??b?;c": 1, "kworker;d": 1, "fio;outside of the kernel": 1,
    }  # fmt: skip
    assert found.stacks[0].samples == 2


# --- where threads slept, and what ran instead ------------------------------------------------------------------------


def slept(line: Timeline, **more: Any) -> dict[str, tuple[int, int]]:
    """Stack to how often, and for how many ns."""
    return {each.stack: (each.sleeps, round(each.seconds * 1e9)) for each in explain(line, **more).sleeps}


def one_write(**names: str) -> Timeline:
    """A write from 1000 to 3000 by a tool (5), and the kernel's threads with these names: w30 is thread 30."""
    line = Timeline(names={5: "fio"} | {int(tid[1:]): name for tid, name in names.items()})
    line.comes(5, 0)
    line.call("pwrite64", 5, 1000, 3000, ret=4096, fd=3)
    line.leaves(99, 9000, to=98)
    return line


def test_threads_of_operations_sleep_where_their_stacks_say_while_an_operation_is_under_way() -> None:
    line = one_write()
    line.sleeps(5, 200, 900, "hrtimer_nanosleep", "sys_nanosleep")
    line.sleeps(5, 1200, 1500, "io_schedule", "folio_wait_bit", "write")
    line.sleeps(5, 2000, 2100, "schedule_timeout", "io_schedule_timeout", "folio_wait_bit", "write")
    line.sleeps(5, 2900, 3500, "down_read", "write")
    assert slept(line) == {"fio;write;folio_wait_bit": (2, 400), "fio;write;down_read": (1, 100)}


def test_a_thread_of_the_kernel_that_waits_for_work_sleeps_nowhere() -> None:
    line = one_write(w30="kworker/u8:1", w31="jbd2/loop3-8", w32="kswapd0", w40="bash")
    for tid, *stack in (
        (30, "worker_thread", "kthread", "ret_from_fork"),
        (31, "kjournald2", "kthread", "ret_from_fork"),
        (32, "kswapd_try_to_sleep", "kswapd", "kthread"),
        (40, "do_wait", "sys_wait4"),
    ):
        line.sleeps(tid, 1000, 2000, *stack, cpu=1)
    assert slept(line) == {}


def test_a_thread_of_the_kernel_that_waits_at_work_is_seen_while_any_operation_is_under_way() -> None:
    line = one_write(w31="jbd2/loop3-8")
    stack = ("bit_wait_io", "jbd2_journal_commit_transaction", "kjournald2", "kthread")
    line.sleeps(31, 500, 1600, *stack, cpu=1)
    line.sleeps(31, 4000, 5000, *stack, cpu=1)
    where = "jbd2;kthread;kjournald2;jbd2_journal_commit_transaction;bit_wait_io"
    assert slept(line) == {where: (1, 600)}


def instead(line: Timeline) -> dict[str, float]:
    rows = (each for each in explain(line).work if each.quantity == "ran_instead_s_per_op")
    return {each.label: round(each.value * 1e9) for each in rows}


def test_what_ran_instead_is_what_had_the_processor_that_a_waiting_thread_came_to() -> None:
    line = one_write(w99="stress-ng", w30="kworker/0:1", w31="kworker/0:2")
    line.leaves(5, 1500, state=0, to=99)
    line.leaves(99, 1700, state=0, to=30)
    line.leaves(30, 1800, to=31)
    line.leaves(31, 1900, to=0)
    line.comes(5, 1950)
    line.leaves(99, 1600, cpu=1, to=98)  # on another one
    assert instead(line) == {"stress-ng": 200, "kworker": 200, "idle": 50}


def test_an_item_of_a_work_queue_waits_for_what_the_processor_of_its_worker_ran() -> None:
    line = Timeline()
    line.comes(99, 100, cpu=1)
    line.leaves(99, 1700, cpu=1, state=0, to=30)
    trace, began = line.trace(), np.array([(1750, 1)], [("TIME", "<u8"), ("CPU", "<u4")])
    trace = replace(trace, events={**trace.events, "workqueue:workqueue_execute_start": began})
    found = Processors(trace, {30: "kworker", 99: "stress-ng"}).ran([(1400, 1750)])
    assert found == {"stress-ng": 300, "kworker": 50}


def one_long_write() -> Timeline:
    line = one_write(w99="stress-ng")
    line.call("pwrite64", 5, 10_000, 9_000_000, ret=4096, fd=3)
    return line


def test_a_processor_that_has_a_thread_and_is_idle_for_long_holds_it_back() -> None:
    line = one_long_write()
    line.leaves(5, 20_000, state=0, to=0)
    line.comes(5, 1_020_000)
    line.leaves(5, 1_100_000, state=0, to=0)
    line.comes(5, 2_099_999)
    assert instead(line) == {"held back": 500_000, "idle": pytest.approx(500_000, abs=1)}


def test_a_processor_that_gets_a_thread_from_another_one_late_does_not_hold_it_back() -> None:
    line = one_long_write()
    line.leaves(5, 20_000, state=0, to=99)
    line.comes(5, 4_020_000, cpu=1)
    assert instead(line) == {"idle": 2_000_000}


def test_what_ran_instead_is_together_as_long_as_operations_waited_for_a_processor() -> None:
    line = written(10)
    for at in range(1000, 21_000, 2000):
        line.waits_for_processor(5, at + 20, at + 70, to=99)
    found = explain(line)
    waited = {each.operation: each.seconds for each in found.layers if each.layer == "run_queue"}
    ran = {each.operation: each.value for each in found.work if each.quantity == "ran_instead_s_per_op"}
    assert ran == pytest.approx(waited)


def test_how_often_an_operation_waits_for_a_processor() -> None:
    """Twice in each of two writes of three; a thread that another one wakes is ready before it comes to a processor."""
    line = one_write()
    for at in (10_000, 20_000):
        line.call("pwrite64", 5, at, at + 5000, ret=4096, fd=3)
        line.waits_for_processor(5, at + 100, at + 200, to=99)
        line.sleeps(5, at + 1000, at + 2000, "schedule", back=at + 2100)
    often = {each.operation: each.value for each in explain(line).work if each.quantity == "processor_waits_per_op"}
    assert often == {"write": pytest.approx(4 / 3)}

"""System calls of the tool alone, by number, in windows: they explain what calls by name do, and no other program."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from mountlab.core.errors import ParseError
from mountlab.tracing.calls import NUMBERS, seen_weights, stretches
from mountlab.tracing.events import CALLS
from mountlab.tracing.explained import Calls, Explained, ToolFigures, explained
from mountlab.tracing.perf_data import read_trace
from rows import every_row
from synthetic_trace import DEVICE, PerfData, Timeline

ARCH, CLOCK = 6, 29
"""Numbers of parts of perf's header (tools/perf/util/header.h)."""
EPOCH = 1_700_000_000_000_000_000
SHELL, TOOL, JOB, OTHER = 4, 5, 6, 9


def calls_of(line: Timeline, machine: str = "x86_64", clock: int | None = 1000) -> bytes:
    """The system calls of a timeline as a file of their own, as perf writes it on such a machine. `clock`: what the
    clock of the events was at EPOCH + clock."""
    file = PerfData(features={ARCH: struct.pack("<I", 64) + machine.encode().ljust(64, b"\0")})
    if clock is not None:
        file.features[CLOCK] = struct.pack("<IIQQ", 1, 1, EPOCH + clock, clock)
    for each in line.in_order():
        group, _, name = each.name.partition(":sys_")
        way, _, call = name.partition("_")
        if group == "syscalls":
            number = NUMBERS[machine][call]
            first = each.values.get("dfd", each.values.get("fd", 0))
            arguments = struct.pack("<6Q", first, 0, each.values.get("flags", 0), 0, 0, 0)
            values = {"id": number, "args": arguments, "ret": each.values.get("ret", 0)}
            file.sample(type(each)(f"raw_syscalls:sys_{way}", each.at, each.tid, each.pid, each.cpu, values))
    for child, parent in line.forks.items():
        file.record(7, struct.pack("<IIIIQ", child, parent, child, parent, 0))
    return file.bytes()


def without_calls(line: Timeline) -> Timeline:
    rest = [each for each in line.happened if not each.name.startswith("syscalls:")]
    return Timeline(line.processes, line.names, rest, line.functions, line.lost, line.forks)


def explain(
    line: Timeline,
    windows: str = "",
    root: int = SHELL,
    tool: Mapping[str, float] | None = None,
    **more: Any,
) -> Explained:
    calls = Calls(calls_of(line, **more), windows, root)
    return beside(line, calls, tool=ToolFigures(tool or {}))


def beside(
    line: Timeline, calls: Calls, said: str = "", fds: str = "", tool: ToolFigures = ToolFigures()  # noqa: B008
) -> Explained:  # fmt: skip
    return explained(
        without_calls(line).perf_data(), calls=calls, said=said, kallsyms=line.kallsyms, tasks="", fds=fds,
        directory="trial", devices=[DEVICE], tool=tool,
    )  # fmt: skip


def writing(times: list[int], tid: int = TOOL, length: int = 100, line: Timeline | None = None) -> Timeline:
    """A tool that a shell starts, and that writes at these times."""
    line = line or Timeline(names={TOOL: "fio"}, forks={TOOL: SHELL, JOB: TOOL})
    for at in times:
        line.call("pwrite64", tid, at, at + length, ret=4096, fd=3)
    line.sleeps(99, 1, 2, "schedule")
    line.leaves(99, max(times) + 100_000, to=98)
    line.address("pwrite")
    return line


def operations(found: Explained) -> dict[str, int]:
    return {row.operation: row.operations for row in found.trace}


@every_row("machine", NUMBERS)
def test_calls_by_number_explain_what_those_by_name_do(machine: str) -> None:
    line = writing([1000, 2000, 3000])
    line.call("fsync", TOOL, 5000, 9000, fd=3)
    line.sleeps(TOOL, 5100, 8000, "jbd2_log_wait_commit")
    by_name = explained(
        line.perf_data(), kallsyms=line.kallsyms, tasks="", fds=f"{TOOL} 3 /srv/trial/f\n", directory="trial",
        devices=[DEVICE], tool=ToolFigures(),
    )  # fmt: skip
    found = explain(line, machine=machine)
    assert found.layers == by_name.layers
    assert operations(found) == {"write": 3, "sync": 1}


@every_row(("machine", "numbers"), NUMBERS.items())
def test_each_call_has_its_own_number(machine: str, numbers: Mapping[str, int]) -> None:
    assert len(set(numbers.values())) == len(numbers)
    old = {"open", "creat", "unlink", "rename", "mkdir"}
    assert set(CALLS) - set(numbers) == (set() if machine == "x86_64" else old), "those that arm never had"


@every_row("fds", ["", f"{TOOL} 4 /srv/trial/f\n"])
def test_the_directory_that_a_call_starts_from_is_not_the_file_that_it_is_about(fds: str) -> None:
    """A program opens a directory as it opens its libraries, and works below that: its number comes first. sync() has
    no argument at all: what its register holds says nothing."""
    line = writing([1000])
    line.call("openat", TOOL, 2000, 2100, ret=3, dfd=(1 << 64) - 100, flags=0o2200000)  # O_CLOEXEC and O_DIRECTORY
    for at in (3000, 4000):
        line.call("openat", TOOL, at, at + 100, ret=4, dfd=3, flags=0o2000301)  # O_CREAT and O_EXCL as well
    for at, call in enumerate(("mkdirat", "unlinkat", "renameat")):
        line.call(call, TOOL, 5000 + 1000 * at, 5100 + 1000 * at, dfd=3)
    line.call("sync", TOOL, 9000, 9500, fd=3)
    found = operations(beside(line, Calls(calls_of(line), "", SHELL), fds=fds))
    assert {name: found.get(name) for name in ("open", "mkdir", "unlink", "rename", "sync")} == {
        "open": 2, "mkdir": 1, "unlink": 1, "rename": 1, "sync": 1,
    }  # fmt: skip


def test_an_operation_that_overlaps_a_pause_is_none() -> None:
    line = writing([10_000, 20_000, 60_000], length=1000)
    begins = [each for each in line.happened if each.name == "syscalls:sys_enter_pwrite64"]
    ends = [each for each in line.happened if each.name == "syscalls:sys_exit_pwrite64"]
    line.happened = [each for each in line.happened if each not in (begins[2], ends[1])]  # the pause has hidden them
    windows = f"enable {EPOCH}\ndisable {EPOCH + 20_500}\nenable {EPOCH + 50_000}\n"
    found = explain(line, windows)
    assert operations(found) == {"write": 1}, "not one of 41,000 ns, from the begin of one to the end of another"
    (row,) = found.trace
    assert row.seen == pytest.approx(1 - 29_500 / (160_000 - 1), abs=1e-3)


@every_row(("pauses", "left"), [
    ([], [(0, 100)]),
    ([(10, 20)], [(0, 10), (20, 100)]),
    ([(0, 20), (90, 1 << 62)], [(20, 90)]),
    ([(-50, -10), (30, 30), (40, 200)], [(0, 30), (30, 40)]),
    ([(-5, 500)], []),
])  # fmt: skip
def test_what_is_left_of_a_time_outside_of_pauses(pauses: list[tuple[int, int]], left: list[tuple[int, int]]) -> None:
    assert stretches(0, 100, pauses) == left


def test_operations_that_seldom_fit_between_two_pauses_count_for_those_that_did_not() -> None:
    rng = np.random.default_rng(7)
    lengths = rng.choice([10.0, 1000.0, 20_000.0], p=[0.9, 0.09, 0.01], size=40_000)
    begins = np.concatenate([[0.0], np.cumsum(lengths)[:-1]])
    whole = int(lengths.sum())
    pauses = [(at, at + 30_000) for at in range(50_000, whole, 80_000)]
    lows, highs = (np.array(ends) for ends in zip(*pauses, strict=True))
    ends = begins + lengths
    nearest = np.minimum(np.searchsorted(highs, begins, side="right"), len(highs) - 1)
    seen = ~((lows[nearest] < ends) & (highs[nearest] > begins))
    weights = seen_weights(lengths[seen], 0, whole, pauses)
    assert lengths[seen].mean() < 0.9 * lengths.mean(), "long ones are cut off more often"
    assert np.average(lengths[seen], weights=weights) == pytest.approx(lengths.mean(), rel=0.03)
    for elsewhere in ([], [(-9, 0)], [(whole, whole + 9)]):
        assert seen_weights(lengths[:3], 0, whole, elsewhere).tolist() == [1, 1, 1]


def test_while_a_tool_is_not_yet_at_work_none_of_its_operations_is_missed() -> None:
    line = writing([60_000, 62_000, 64_000])
    line = writing([70_000], length=30_000, line=line)
    found = explain(line, f"enable {EPOCH}\ndisable {EPOCH + 20_000}\nenable {EPOCH + 50_000}\n")
    (row,) = found.trace
    assert row.traced_mean == pytest.approx((3 * 100 + 30_000) / 4 / 1e9)
    assert row.traced_in_flight == pytest.approx((3 * 100 + 30_000) / (100_000 - 60_000))


def test_ratios_of_work_count_only_while_calls_are_recorded() -> None:
    line = writing([1000, 2000, 81_000, 82_000])
    for at in range(1000, 90_000, 1000):
        line.request(TOOL, at, at + 10, at + 50)
    windows = f"enable {EPOCH}\ndisable {EPOCH + 3000}\nenable {EPOCH + 80_500}\n"
    work = {row.quantity: row.value for row in explain(line, windows).work}
    assert work["device_ios_per_op"] == pytest.approx(1, abs=0.3), "77 others were done while no call was recorded"


def test_a_program_beside_the_tool_has_no_operations() -> None:
    line = writing([1000, 2000])
    writing([1500, 2500, 3500], tid=OTHER, line=line)
    line.forks[OTHER] = 1
    assert operations(explain(line)) == {"write": 2}


def test_where_the_tool_is_not_known_nothing_is_shown() -> None:
    found = explain(writing([1000, 2000]), root=0)
    assert not found.layers
    assert {row.withheld for row in found.trace} == {"which process is the tool is not known"}


def test_what_a_tool_writes_before_its_jobs_begin_is_set_up() -> None:
    line = writing([1000, 2000])
    writing([5000, 6000, 7000, 8000], tid=JOB, line=line)
    writing([9000], line=line)
    assert operations(explain(line)) == {"write": 5}, "four of the job, and one of the tool after it began"
    line = writing([1000, 2000, 3000])
    writing([5000], tid=JOB, line=line)
    assert operations(explain(line)) == {"write": 4}, "a thread that does less is no job"


@every_row(("said", "cut"), [
    ("[ perf record: Captured and wrote 1.2 MB data ]\n", ""),
    ("[ perf record: perf size limit reached (49157 KB), stopping session ]\n", "the record of events reached"),
    ("calls: [ perf record: perf size limit reached (24580 KB), stopping session ]\n", "the record of system calls"),
])  # fmt: skip
def test_a_record_that_reached_its_limit_says_so(said: str, cut: str) -> None:
    line = writing([1000, 2000])
    (row,) = beside(line, Calls(calls_of(line), "", SHELL), said).trace
    assert row.cut.startswith(cut)
    assert bool(row.cut) == bool(cut)


@every_row(("mean_s", "withheld"), [
    (100e-9, ""),
    (4e-6, ""),  # the way into the kernel and back lies outside of the call
    (100e-6, "its parts add up to 0.00 of the latency that the tool measured"),
])  # fmt: skip
def test_parts_that_are_far_from_what_the_tool_measured_are_no_split(mean_s: float, withheld: str) -> None:
    found = explain(writing([1000, 2000]), tool={"write": mean_s})
    assert [row.withheld for row in found.trace] == [withheld]
    assert bool(found.layers) == (not withheld)


@every_row(("mean_s", "times_itself", "is_split"), [(300e-6, False, False), (300e-6, True, True), (50e-6, True, False)])
def test_a_program_that_times_itself_may_take_longer_than_its_calls(
    mean_s: float, times_itself: bool, is_split: bool
) -> None:
    line = writing([1000, 200_000], length=100_000)
    tool = ToolFigures({"write": mean_s}, times_itself=times_itself)
    found = beside(line, Calls(calls_of(line), "", SHELL), tool=tool)
    assert bool(found.layers) == is_split


@every_row(("mean_s", "rate", "is_split"), [
    (60e-6, 10_000, True),  # 0.6 under way at a time, as in the trace: slower while it is traced
    (60e-6, 3_000, False),
    (300e-6, 2_000, False),  # faster
    (40e-6, 15_000, False),  # more than twice as slow
])  # fmt: skip
def test_operations_that_are_slower_while_they_are_traced_are_split_where_as_many_are_under_way(
    mean_s: float, rate: float, is_split: bool
) -> None:
    """Each takes 100 us, and they begin 167 us apart."""
    line = writing([1000 + round(number * 166_667) for number in range(50)], length=100_000)
    found = beside(line, Calls(calls_of(line), "", SHELL), tool=ToolFigures({"write": mean_s}, {"write": rate}))
    assert bool(found.layers) == is_split
    (row,) = found.trace
    assert row.traced_in_flight == pytest.approx(0.6, rel=0.02)
    assert row.tool_in_flight == pytest.approx(mean_s * rate)


def test_what_a_tool_measured_and_no_call_shows_is_withheld_with_the_reason() -> None:
    found = explain(writing([1000, 2000]), tool={"write": 100e-9, "read": 1e-6})
    by_name = {row.operation: row.withheld for row in found.trace}
    assert by_name["write"] == ""
    assert by_name["read"].startswith("no read is a system call of the tool: mapped memory, or a thread of the kernel")


def test_a_machine_whose_calls_have_unknown_numbers_is_refused() -> None:
    line = writing([1000])
    data = calls_of(line).replace(b"x86_64", b"sparc\0")
    with pytest.raises(ParseError, match="not known by number"):
        beside(line, Calls(data, "", SHELL))


def test_windows_need_the_clock_of_the_record() -> None:
    windows = f"enable {EPOCH}\ndisable {EPOCH + 1000}\n"
    assert read_trace(calls_of(writing([1000]))).epoch_ns == EPOCH
    with pytest.raises(ParseError, match="by which clock"):
        explain(writing([1000]), windows, clock=None)
    assert operations(explain(writing([1000]), f"enable {EPOCH}\n", clock=None)) == {"write": 1}

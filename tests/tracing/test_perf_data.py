"""perf.data: read as it is defined; whatever is in a file, the end is a trace or a ParseError."""

from __future__ import annotations

import re
import struct
import tracemalloc
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from mountlab.core.errors import ParseError
from mountlab.tracing.explained import Explained, ToolFigures, explained
from mountlab.tracing.perf_data import Trace, read_trace
from rows import every_row
from synthetic_trace import (
    ADDR,
    DEVICE,
    FORMATS,
    ID,
    IDENTIFIER,
    KERNEL_FOLLOWS,
    SAMPLE_TYPE,
    STREAM,
    Happened,
    PerfData,
    Timeline,
    config_of,
    dtype_of,
    fields_of,
    format_text,
    raw_of,
)  # fmt: skip

HOSTILE_NAMES = ("a\nb", "12 jbd2/x\n1 y", "\x1b[2J\x1b]0;x", "; fsync", "\x7f\x01\r\t", "--all\n-e x")


def whole() -> Timeline:
    """One of each event that the builder knows."""
    line = Timeline(names={5: "fio", 7: "jbd2/loop3-8"}, processes={6: 5})
    line.call("pwrite64", 5, 100, 150, ret=4096, fd=3)
    line.call("fsync", 5, 200, 2000, fd=3)
    line.request(5, 210, 220, 700, on=1)
    line.sleeps(5, 230, 1900, "jbd2_log_wait_commit", "ext4_sync_file", by=7, on=1, back=1950)
    line.sleeps(7, 300, 800, "folio_wait_bit_common", on=1)
    line.request(7, 810, 820, 1500, "FF", size=0)
    line.submits(6, 2100, 0xFFFF888000000000)
    line.completes(2200, 0xFFFF888000000000, result=-5)
    line.bio(6, 2300, 2400)
    line.add("cpu-clock", 2500, 5, stack=("vfs_read",))
    for event in FORMATS:
        line.add(event, 3000, 5, dev=DEVICE[0] << 20 | DEVICE[1], rwbs="R")
    return line


FILE = whole().perf_data()


def explain(data: bytes, line: Timeline | None = None) -> Explained:
    return explained(
        data, kallsyms=(line or whole()).kallsyms, tasks="", fds="5 3 /x/f\n", directory="x", devices=[DEVICE],
        tool=ToolFigures(),
    )  # fmt: skip


def same(read: Trace, made: Trace) -> None:
    assert set(read.events) == set(made.events)
    for name, rows in made.events.items():
        for column in rows.dtype.names or ():
            if column != "STACK":
                assert np.array_equal(read.events[name][column], rows[column]), (name, column)
        stacks = [[trace.stacks[at] if at >= 0 else () for at in trace.events[name]["STACK"]] for trace in (read, made)]
        assert stacks[0] == stacks[1], name
    assert (read.lost, dict(read.parents)) == (made.lost, dict(made.parents))


def test_each_event_comes_out_as_it_went_in() -> None:
    line = replace(whole(), lost=7, forks={6: 5, 8: 6})
    same(read_trace(line.perf_data()), line.trace())


def test_other_parts_of_records_are_skipped() -> None:
    sample = Happened("sched:sched_waking", 77, 5, 4, 1, {"pid": 9})
    file = PerfData(sample_type=SAMPLE_TYPE | ADDR | ID | STREAM)
    file.events[sample.name] = 100
    raw = raw_of(sample)
    body = struct.pack("<QQiiQ", 100, 0, 4, 5, 77) + struct.pack("<QQQ", 1, 2, 3)
    body += struct.pack("<IIQ", 1, 0, 1) + struct.pack("<I", len(raw)) + raw
    file.record(9, body)
    rows = read_trace(file.bytes()).events["sched:sched_waking"]
    assert rows[["TIME", "CPU", "PID", "TID", "pid"]].tolist() == [(77, 1, 4, 5, 9)]


def test_an_event_that_is_asked_for_with_a_stack_and_without_is_one() -> None:
    line = Timeline()
    for at in (10, 20, 30):
        line.leaves(5, at, state=1)
    file = PerfData()
    for each in line.happened:
        file.sample(each, stack=each.at != 20)
    trace = read_trace(file.bytes())
    rows = trace.events["sched:sched_switch"]
    assert rows["TIME"].tolist() == [10, 20, 30]
    assert [at >= 0 for at in rows["STACK"].tolist()] == [True, False, True]
    assert rows["prev_pid"].tolist() == [5, 5, 5]


def test_records_of_other_kinds_and_ids_are_not_events() -> None:
    file = PerfData()
    file.sample(Happened("sched:sched_waking", 5, 1, 1, 0, {"pid": 2}))
    file.record(3, b"comm".ljust(16, b"\0"))
    file.record(68, b"")
    file.record(9, struct.pack("<Q", 4711) + bytes(40))
    assert read_trace(file.bytes()).total == 1


def test_events_come_in_order_of_time_whatever_processor_wrote_first() -> None:
    line = Timeline()
    for at in (30, 10, 20):
        line.wakes(5, at)
    file = PerfData()
    for each in line.happened:
        file.sample(each)
    assert read_trace(file.bytes()).events["sched:sched_waking"]["TIME"].tolist() == [10, 20, 30]


@pytest.mark.parametrize(("kind", "body"), [(2, struct.pack("<QQ", 100, 5)), (13, struct.pack("<Q", 5))])
def test_lost_events_are_counted(kind: int, body: bytes) -> None:
    file = PerfData()
    file.record(kind, body)
    file.record(kind, body + bytes(32))
    assert read_trace(file.bytes()).lost == 10


def test_processes_and_threads_are_children_of_the_thread_that_started_them() -> None:
    file = PerfData()
    file.record(7, struct.pack("<IIIIQ", 8, 5, 8, 5, 0))
    file.record(7, struct.pack("<IIIIQ", 5, 5, 9, 5, 0))
    assert read_trace(file.bytes()).parents == {8: 5, 9: 5}


@pytest.mark.slow
@every_row("name", HOSTILE_NAMES)
def test_the_name_of_a_process_changes_nothing_else(name: str) -> None:
    plain, hostile = whole(), replace(whole(), names={})
    hostile.happened = []
    hostile.names = {5: name, 7: "jbd2/loop3-8"}
    for each in plain.happened:
        values = {key: name if value == "fio" else value for key, value in each.values.items()}
        hostile.happened.append(replace(each, values=values))
    read = read_trace(hostile.perf_data())
    same(read, hostile.trace())
    assert name.encode()[:15] in {bytes(each)[:15] for each in read.events["sched:sched_switch"]["prev_comm"]}
    found, without = explain(hostile.perf_data(), hostile), explain(plain.perf_data(), plain)
    assert replace(found, stacks=(), sleeps=()) == replace(without, stacks=(), sleeps=())
    assert all(re.fullmatch(r"[-\w.?]+;vfs_read", row.stack) for row in found.stacks)
    assert all(re.fullmatch(r"[-\w.?]+(;\w+)+", row.stack) for row in found.sleeps)


# --- damage -----------------------------------------------------------------------------------------------------------


def damaged(data: bytes) -> str:
    with pytest.raises(ParseError) as error:
        read_trace(data)
    return str(error.value)


def test_a_text_is_no_trace() -> None:
    assert "it begins with b'# perf r'" in damaged(b"# perf report\n" * 20)
    damaged(b"")
    damaged(b"PERFILE2")


def test_a_file_without_its_end_is_refused() -> None:
    killed = bytearray(FILE)
    killed[48:56] = bytes(8)
    assert "perf was killed" in damaged(bytes(killed))
    assert "that it speaks of" in damaged(FILE[:2000])


@every_row("field", ["prev_pid", "prev_state", "next_pid", "prev_comm"])
def test_an_event_without_a_field_that_is_needed_is_refused(field: str) -> None:
    file = PerfData()
    file.sample(Happened("sched:sched_switch", 5, 1, 1, 0, {}))
    fields = [each for each in fields_of("sched:sched_switch") if each.name != field]
    file.formats["sched:sched_switch"] = format_text("sched:sched_switch", fields)
    assert f"sched:sched_switch without its field {field}" in damaged(file.bytes())


def test_a_number_that_is_a_text_is_not_that_field() -> None:
    file = PerfData()
    file.sample(Happened("sched:sched_waking", 5, 1, 1, 0, {}))
    file.formats["sched:sched_waking"] = format_text("sched:sched_waking").replace("pid_t pid;", "char pid[4];")
    assert "sched:sched_waking without its field pid" in damaged(file.bytes())


def test_an_event_that_another_kernel_lays_out_without_our_fields_is_left_out() -> None:
    line = Timeline()
    line.completes(5, 1)
    line.wakes(5, 6)
    file = PerfData(
        formats={"io_uring:io_uring_complete": format_text("io_uring:io_uring_complete").replace(" res;", " r;")}
    )
    for each in line.happened:
        file.sample(each)
    assert set(read_trace(file.bytes()).events) == {"sched:sched_waking"}


def test_an_event_without_its_fields_in_the_records_is_one_that_lacks_them() -> None:
    line = Timeline()
    line.wakes(5, 6)
    data = bytearray(line.perf_data())
    at = 104 + 8 + 24  # one id, then type, size, config and period
    data[at : at + 8] = struct.pack("<Q", SAMPLE_TYPE)  # without RAW
    assert "sched:sched_waking without its field pid" in damaged(bytes(data))


def test_a_record_shorter_than_its_fields_is_refused_and_none_is_read_out_of_the_next() -> None:
    file = PerfData()
    sample = Happened("sched:sched_waking", 5, 1, 1, 0, {"pid": 9})
    file.sample(sample, raw_of(sample)[:20])
    file.sample(sample)
    assert "smaller than its fields" in damaged(file.bytes())


def with_stack_of(depth: int) -> bytes:
    file = PerfData(events={"sched:sched_switch": 100})
    body = struct.pack("<QQiiQIIQ", 100, 0, 1, 1, 5, 0, 0, 1) + struct.pack("<QQ", depth, KERNEL_FOLLOWS)
    file.record(9, body)
    file.record(9, body)
    return file.bytes()


@every_row("depth", [2, 3, 1 << 20, 1 << 32, 1 << 60, 1 << 61, (1 << 61) + 1, (1 << 64) - 1])
def test_a_stack_deeper_than_its_record_is_refused(depth: int) -> None:
    assert "a stack without end" in damaged(with_stack_of(depth))


@pytest.mark.parametrize("lost", [1 << 48, (1 << 64) - 1])
def test_more_lost_events_than_there_can_be_are_refused(lost: int) -> None:
    file = PerfData()
    file.record(2, struct.pack("<QQ", 0, lost))
    assert "lost events" in damaged(file.bytes())


def test_a_time_that_no_clock_shows_is_refused() -> None:
    line = Timeline()
    line.wakes(5, 1 << 63)
    assert "no clock" in damaged(line.perf_data())


@pytest.mark.parametrize("sample_type", [SAMPLE_TYPE & ~IDENTIFIER, SAMPLE_TYPE | 1 << 4, SAMPLE_TYPE | 1 << 11])
def test_parts_of_records_that_nobody_asked_for_are_refused(sample_type: int) -> None:
    file = PerfData(sample_type=sample_type)
    file.sample(Happened("sched:sched_waking", 5, 1, 1, 0, {}))
    assert "not asked for" in damaged(file.bytes())


def test_samples_without_time_and_thread_are_events_at_zero() -> None:
    file = PerfData(sample_type=IDENTIFIER, events={"jbd2:jbd2_end_commit": 100})
    raw = raw_of(Happened("jbd2:jbd2_end_commit", 0, 0, 0, 0, {"dev": 9}))
    file.record(9, struct.pack("<QI", 100, len(raw)) + raw)
    assert read_trace(file.bytes()).events["jbd2:jbd2_end_commit"][["TIME", "TID", "dev"]].tolist() == [(0, 0, 9)]


def in_memory_of(data: bytes) -> float:
    """How many times its size the reader takes."""
    tracemalloc.start()
    with suppress(ParseError):
        read_trace(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / len(data)


HUGE = (1 << 16, 1 << 31, (1 << 32) - 1, 1 << 40, 1 << 61, (1 << 63) - 1, (1 << 64) - 1)


@pytest.mark.slow
@every_row("at", [16, 24, 32, 40, 48, 104 + 8 * 30 + 128, 104 + 8 * 30 + 136])
@every_row("huge", HUGE)
def test_no_size_in_the_file_is_trusted(at: int, huge: int) -> None:
    data = bytearray(FILE)
    data[at : at + 8] = struct.pack("<Q", huge)
    assert in_memory_of(bytes(data)) < 60


@every_row("part", [1, 12])
@every_row("huge", [0, 1 << 31, (1 << 32) - 1])
def test_no_count_in_its_header_is_trusted(part: int, huge: int) -> None:
    file = PerfData()
    file.sample(Happened("jbd2:jbd2_end_commit", 5, 1, 1, 0, {}))
    own = file.tracing_data() if part == 1 else file.event_desc()
    for at in range(0, len(own) - 4, 4 if part == 1 else 2):
        file.features[part] = own[:at] + struct.pack("<I", huge) + own[at + 4 :]
        with suppress(ParseError):
            read_trace(file.bytes())


@pytest.mark.parametrize("part", [1, 12])
def test_an_empty_part_of_the_header_is_none(part: int) -> None:
    file = PerfData(features={part: b""})
    file.sample(Happened("jbd2:jbd2_end_commit", 5, 1, 1, 0, {}))
    found = read_trace(file.bytes())
    assert found.total == (0 if part == 1 else 1)


@pytest.mark.slow
@every_row(
    "lines",
    [
        ["\tfield:char x[1099511627776];\toffset:8;\tsize:1099511627776;\tsigned:0;"],
        ["\tfield:char x[9];\toffset:2147483647;\tsize:9;\tsigned:0;"],
        ["\tfield:char x[9];\toffset:99999999999999999999;\tsize:9;\tsigned:0;"],
        ["\tfield: ;\toffset:8;\tsize:4;\tsigned:0;"],
        ["\tfield:u32 TIME;\toffset:8;\tsize:4;\tsigned:0;"],
        [f"\tfield:char x{each}[20];\toffset:0;\tsize:20;\tsigned:0;" for each in range(200)],
        [f"\tfield:u8 x{each};\toffset:8;\tsize:1;\tsigned:0;" for each in range(5_000)],
        ["\tfield:" * 100_000],
    ],
    ids=["huge", "far", "further", "nameless", "ours", "overlapping", "many", "endless"],
)
def test_a_description_of_fields_costs_little_whatever_it_says(lines: list[str]) -> None:
    text = f"name: x\nID: {config_of('jbd2:jbd2_end_commit')}\nformat:\n" + "\n".join(lines)
    file = PerfData(formats={"jbd2:jbd2_end_commit": text})
    for at in range(1000):
        file.sample(Happened("jbd2:jbd2_end_commit", at, 1, 1, 0, {}))
    assert in_memory_of(file.bytes()) < 60


def test_ids_that_lie_on_each_other_do_not_multiply() -> None:
    names = [f"jbd2:event_{at}" for at in range(2000)]
    file = PerfData(events={name: 100 + at for at, name in enumerate(names)})
    file.record(68, bytes(60_000))
    data = bytearray(file.bytes())
    for at in range(2000):
        attr = 104 + 8 * 2000 + 144 * at
        data[attr + 128 : attr + 144] = struct.pack("<QQ", 104, 400_000)
    assert "ids" in damaged(bytes(data))


def test_what_the_reader_of_fields_keeps_is_what_the_kernel_says() -> None:
    for event in FORMATS:
        line = Timeline()
        line.add(event, 5, 1)
        rows = read_trace(line.perf_data()).events[event]
        assert {name: rows.dtype[name].str for name, _ in dtype_of(event)} == {
            name: np.dtype(kind).str for name, kind in dtype_of(event)
        }

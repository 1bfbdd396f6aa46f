"""Shares of a sync: behind the journal, and meanwhile beside data of others, by their definitions."""

from __future__ import annotations

import pytest
from mountlab.tracing.requests import requests_of
from rows import every_row
from synthetic_trace import DEV, Timeline
from tracing.test_explained import explain
from tracing.test_recordings import OPERATION, of

TOOL, CHILD, JOURNAL, NEIGHBOUR, WORKER = 5, 6, 7, 40, 30
COMMIT, OTHERS = "commit_share_of_sync", "others_share_of_sync"


def one_sync() -> Timeline:
    """A sync of 10,000 ns of which 6,000, from 3,000 to 9,000, wait for a commit: a block of the journal (M)."""
    line = Timeline(names={TOOL: "fio", JOURNAL: "jbd2/loop3-8", NEIGHBOUR: "fio", WORKER: "kworker/u8:1"})
    line.comes(TOOL, 0)
    line.call("fsync", TOOL, 1000, 11_000, fd=3)
    line.comes(JOURNAL, 0, cpu=1)
    line.request(JOURNAL, 3100, 3200, 8900, "WSM", on=1)
    line.sleeps(TOOL, 3000, 9000, "jbd2_log_wait_commit", by=JOURNAL, on=1)
    line.leaves(99, 20_000, to=98)
    return line


def shares(line: Timeline, **more: object) -> tuple[float, float]:
    work = {row.quantity: row.value for row in explain(line, **more).work if row.operation == "sync"}
    return work[COMMIT], work[OTHERS]


def test_alone_a_sync_waits_for_the_journal_and_for_no_data_of_others() -> None:
    assert shares(one_sync()) == (pytest.approx(0.6), 0)


@every_row(
    ("issued", "done", "share"),
    [
        (4000, 6000, 0.2),
        (1000, 5000, 0.2),  # from 3,000 on
        (8000, 20_000, 0.1),  # until 9,000
        (0, 20_000, 0.6),
        (1000, 3000, 0),  # the sync does not wait for the journal yet
        (9000, 11_000, 0),  # nor any longer
    ],
)
def test_data_of_others_counts_while_the_device_works_on_it_and_the_sync_waits_for_the_journal(
    issued: int, done: int, share: float
) -> None:
    line = one_sync()
    line.request(NEIGHBOUR, 0, issued, done, "W")
    assert shares(line) == (pytest.approx(0.6), pytest.approx(share))


def test_two_writes_of_others_at_one_time_count_once() -> None:
    line = one_sync()
    line.request(NEIGHBOUR, 3500, 4000, 6000, "W")
    line.request(WORKER, 3500, 5000, 7000, "W")
    assert shares(line)[1] == pytest.approx(0.3)


@every_row(
    ("tid", "flags", "size", "counts"),
    [
        (NEIGHBOUR, "W", 4096, True),
        (NEIGHBOUR, "WS", 4096, True),
        (NEIGHBOUR, "FWFS", 4096, True),
        (WORKER, "W", 4096, True),  # writeback
        (JOURNAL, "WS", 4096, True),  # a commit writes the data of files first
        (JOURNAL, "WSM", 4096, False),
        (WORKER, "WM", 4096, False),
        (NEIGHBOUR, "R", 4096, False),
        (NEIGHBOUR, "FF", 0, False),
        (TOOL, "WS", 4096, False),
        (CHILD, "WS", 4096, False),
    ],
)
def test_data_of_others_is_what_no_thread_of_the_tool_queued_and_what_is_no_metadata(
    tid: int, flags: str, size: int, *, counts: bool
) -> None:
    line = one_sync()
    line.forks[CHILD] = TOOL
    line.request(tid, 4000, 4000, 6000, flags, size=size)
    assert (shares(line)[1] > 0) == counts


@every_row(("queued_by", "share"), [(TOOL, 0), (NEIGHBOUR, 0.2)])
def test_of_a_write_that_is_split_each_piece_is_of_who_queued_the_whole(queued_by: int, share: float) -> None:
    """The first piece holds the first sector; a worker of the block layer sends the rest later."""
    line = one_sync()
    line.add("block:block_bio_queue", 500, queued_by, dev=DEV, sector=5000, nr_sector=4096, rwbs="W")
    for at, sector, count, sender in ((600, 5000, 2560, queued_by), (4000, 7560, 1536, WORKER)):
        piece = {"dev": DEV, "sector": sector, "nr_sector": count, "rwbs": "W"}
        line.add("block:block_rq_issue", at, sender, **piece)
        line.add("block:block_rq_complete", at + 2000, 0, **piece)
    assert shares(line)[1] == pytest.approx(share)
    pieces = [request for request in requests_of(line.trace(), [DEV]).all if request.tid != JOURNAL]
    assert [(request.queued, request.tid) for request in pieces] == [(500, queued_by)] * 2


def test_a_later_bio_that_ends_before_a_request_does_not_hold_it() -> None:
    line = one_sync()
    for at, sector, count, tid in ((500, 5000, 4096, TOOL), (700, 5100, 8, NEIGHBOUR), (9500, 5200, 4096, NEIGHBOUR)):
        line.add("block:block_bio_queue", at, tid, dev=DEV, sector=sector, nr_sector=count, rwbs="W")
    piece = {"dev": DEV, "sector": 7560, "nr_sector": 8, "rwbs": "W"}
    line.add("block:block_rq_issue", 4000, WORKER, **piece)
    line.add("block:block_rq_complete", 6000, 0, **piece)
    assert shares(line)[1] == 0, "queued later, or shorter"


def test_threads_with_operations_are_the_tools_also_where_no_file_of_it_was_seen_open() -> None:
    line = one_sync()
    line.request(TOOL, 4000, 4000, 6000, "W")
    assert shares(line, fds="") == (pytest.approx(0.6), 0)


def test_syncs_that_wait_for_one_commit_count_each() -> None:
    line = one_sync()
    line.forks[CHILD] = TOOL
    line.comes(CHILD, 0, cpu=2)
    line.call("fsync", CHILD, 2000, 12_000, fd=3)
    line.sleeps(CHILD, 5000, 9000, "jbd2_log_wait_commit", by=JOURNAL, on=1, cpu=2)
    line.request(NEIGHBOUR, 7000, 7000, 9000, "W")
    assert shares(line) == (pytest.approx((6000 + 4000) / 20_000), pytest.approx((2000 + 2000) / 20_000))


def test_without_a_known_device_nothing_is_known_of_data_of_others() -> None:
    line = one_sync()
    line.request(NEIGHBOUR, 4000, 4000, 6000, "W")
    quantities = {row.quantity for row in explain(line, devices=None).work}
    assert COMMIT in quantities
    assert OTHERS not in quantities


def test_a_neighbour_that_has_the_name_of_the_tool_is_another_one() -> None:
    line = one_sync()
    line.leaves(TOOL, 1500, state=0, to=NEIGHBOUR)
    line.leaves(NEIGHBOUR, 1700, state=0, to=WORKER)
    line.leaves(WORKER, 1800, to=0)
    line.comes(TOOL, 1850)
    rows = (row for row in explain(line).work if row.quantity == "ran_instead_s_per_op")
    assert {row.label: round(row.value * 1e9) for row in rows} == {"another fio": 200, "kworker": 100, "idle": 50}


# --- recordings -------------------------------------------------------------------------------------------------------


def recorded(name: str) -> dict[str, float]:
    return {row.quantity: row.value for row in of(name).work if row.quantity in (COMMIT, OTHERS)}


@every_row("name", [name for name in OPERATION if name.endswith("_fsync")])
def test_in_recordings_of_a_tool_alone_no_data_is_of_others(name: str) -> None:
    assert recorded(name)[OTHERS] == 0
    assert 0 < recorded(name)[COMMIT] <= 1


def test_in_a_recording_beside_another_fio_on_ext4_two_syncs_of_six_wait_beside_its_data() -> None:
    """They are the long ones: 60 ms each, and the others less than 1 ms."""
    (row,) = (row for row in of("ext4_beside_fsync").trace if row.operation == "sync")
    assert (row.operations, row.withheld) == (6, "")
    assert recorded("ext4_beside_fsync") == pytest.approx({COMMIT: 0.628, OTHERS: 0.560}, abs=5e-4)

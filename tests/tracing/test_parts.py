"""The split of an operation: timelines made by hand, whose parts are known."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_trace import Timeline, plain_parts, seen

PAGE, JOURNAL, LOCK = "folio_wait_bit_common", "jbd2_log_wait_commit", "rwsem_down_write_slowpath"
STACKS = (
    *(PAGE, JOURNAL, LOCK, "balance_dirty_pages", "worker_thread", "blk_mq_get_tag", "jbd2_log_do_checkpoint"),
    "reclaim_throttle",
)


def synced(begin: int = 100, end: int = 10_000, tid: int = 5) -> Timeline:
    line = Timeline()
    line.comes(tid, 0)
    line.call("fsync", tid, begin, end)
    line.leaves(99, 20_000, to=98)  # an event behind it: the trace goes on
    return line


def test_an_operation_that_never_leaves_its_processor() -> None:
    assert seen(synced()).parts() == [(9900, "processor", "own")]


def test_own_write_and_then_a_flush() -> None:
    line = synced()
    line.request(5, 200, 300, 3000, on=1)
    line.sleeps(5, 250, 3000, PAGE, on=1, back=3010)
    line.request(5, 3100, 3120, 9000, "FF", size=0, on=1)
    line.sleeps(5, 3110, 9000, "submit_bio_wait", "blkdev_issue_flush", on=1, back=9000)
    assert seen(line).parts() == [
        (150, "processor", "own"), (50, "queue", "own"), (2700, "device", "own"), (10, "run_queue", "own"),
        (100, "processor", "own"), (10, "queue", "own"), (5880, "flush", "own"), (1000, "processor", "own"),
    ]  # fmt: skip


def committed(*waiting: int) -> Timeline:
    """Threads that wait for one commit, in which jbd2 (7) writes a block and flushes the device."""
    line = Timeline()
    for tid in waiting:
        line.comes(tid, 0, cpu=tid)
        line.call("fsync", tid, 100 + tid, 10_000 + tid)
        line.sleeps(tid, 300, 9000, JOURNAL, "ext4_sync_file", by=7, on=1, cpu=tid, back=9050)
    line.leaves(7, 50, cpu=1, stack=("kjournald2",))
    line.wakes(7, 290, by=waiting[0], cpu=waiting[0])
    line.comes(7, 340, cpu=1)
    line.request(7, 450, 460, 3000, "WS", on=2)
    line.sleeps(7, 500, 3000, PAGE, "jbd2_journal_commit_transaction", on=2, cpu=1)
    line.request(7, 3050, 3060, 8800, "FF", size=0, on=2)
    line.sleeps(7, 3100, 8800, "submit_bio_wait", "blkdev_issue_flush", on=2, cpu=1)
    line.leaves(7, 9020, cpu=1, stack=("kjournald2",))
    line.leaves(99, 20_000, to=98)
    return line


COMMIT = [
    (40, "run_queue", "journal"), (160, "journal", "journal"), (2500, "device", "journal"),
    (100, "journal", "journal"), (5700, "flush", "journal"), (200, "journal", "journal"), (50, "run_queue", "own"),
]  # fmt: skip


def test_a_commit_that_is_waited_for_writes_and_flushes_on_behalf_of_the_operation() -> None:
    assert seen(committed(5)).parts() == [(195, "processor", "own"), *COMMIT, (955, "processor", "own")]


def test_a_commit_that_two_operations_share_is_a_part_of_each() -> None:
    found = seen(committed(5, 6))
    assert found.parts(5) == [(195, "processor", "own"), *COMMIT, (955, "processor", "own")]
    assert found.parts(6) == [(194, "processor", "own"), *COMMIT, (956, "processor", "own")]


@pytest.mark.parametrize("state", [0, 0x100], ids=["yielded", "preempted"])
def test_a_thread_that_was_taken_off_waits_for_a_processor(state: int) -> None:
    line = synced()
    line.leaves(5, 200, state=state, to=99)
    line.comes(5, 9000, after=99)
    assert seen(line).parts() == [(100, "processor", "own"), (8800, "run_queue", "own"), (1000, "processor", "own")]


def test_a_request_that_is_held_back_before_the_queue_waits_in_it() -> None:
    line = synced()
    line.request(20, 8000, 8010, 9000, on=1)  # by the worker that lets it pass
    line.sleeps(5, 200, 9000, PAGE, on=1)
    assert seen(line).parts()[1:3] == [(7810, "queue", "own"), (990, "device", "own")]


def test_a_wait_for_a_device_that_is_not_known_is_not_one_for_its_queue() -> None:
    line = synced()
    line.request(5, 200, 210, 9000)
    line.sleeps(5, 220, 9000, PAGE)
    assert seen(line, devices=None).parts()[1:] == [(8780, "unattributed", "own"), (1000, "processor", "own")]


@pytest.mark.parametrize("held", [150, 3000], ids=["at once", "held back"])
def test_a_worker_that_ends_the_writing_is_followed_to_the_request(held: int) -> None:
    line = synced()
    line.request(5, held, held + 10, 4000, on=1)
    line.sleeps(5, 200, 5000, "folio_wait_writeback", "xfs_file_fsync", by=30, on=1)
    line.leaves(30, 10, cpu=1, stack=("worker_thread",))
    line.wakes(30, 4000, by=0, cpu=1)
    line.comes(30, 4100, cpu=1)
    line.leaves(30, 5500, cpu=1, stack=("worker_thread",))
    queued = [(held + 10 - 200, "queue", "own")] if held > 200 else []
    assert seen(line).parts() == [
        (100, "processor", "own"), *queued, (4000 - max(held + 10, 200), "device", "own"), (100, "run_queue", "own"),
        (5900, "processor", "own"),
    ]  # fmt: skip


def test_the_end_of_a_request_is_not_that_of_another_processor_or_of_long_ago() -> None:
    line = synced(end=4_000_000)
    line.request(8, 150, 160, 190_000, on=1)
    line.sleeps(5, 200, 3_000_000, "pipe_read", on=1)
    assert seen(line).parts()[1] == (2_999_800, "unattributed", "own")
    line = synced()
    line.request(8, 150, 160, 1900, on=2)
    line.sleeps(5, 200, 2000, "pipe_read", on=1)
    assert seen(line).parts()[1] == (1800, "unattributed", "own")


def test_where_another_thread_came_in_between_the_request_did_not_wake() -> None:
    line = synced()
    line.request(8, 150, 160, 1900, on=1)
    line.comes(9, 1950, cpu=1)
    line.sleeps(5, 200, 2000, "pipe_read", on=1)
    assert seen(line).parts()[1] == (1800, "unattributed", "own")


def test_the_requests_of_strangers_are_not_those_that_an_operation_waits_for() -> None:
    line = synced()
    line.request(8, 250, 260, 8000, on=2)
    line.request(5, 150, 7000, 9000, on=1)
    line.sleeps(5, 200, 9000, PAGE, on=1)
    assert seen(line).parts()[1:3] == [(6800, "queue", "own"), (2000, "device", "own")]


def chain(links: int) -> Timeline:
    """Threads that each wait for the next; the last of them for the device."""
    line = synced()
    last = 5 + links
    for tid in range(6, last + 1):
        line.comes(tid, 10, cpu=tid)
    for tid in range(5, last):
        line.sleeps(tid, 200, 9000, "worker_thread", by=tid + 1, on=1, cpu=tid)
    line.request(last, 150, 160, 9000, on=1)
    line.sleeps(last, 200, 9000, PAGE, on=1, cpu=last)
    return line


def test_threads_that_wait_for_threads_are_followed_some_way() -> None:
    for links in (1, 2, 16, 63):
        assert seen(chain(links)).parts()[1] == (8800, "device", "own"), links
    for links in (64, 65, 100):
        assert seen(chain(links)).parts()[1] == (8800, "unattributed", "own"), links


def test_threads_that_wait_for_each_other_come_to_an_end() -> None:
    line = synced()
    line.comes(6, 10, cpu=1)
    line.sleeps(5, 200, 9000, "worker_thread", by=6, on=1)
    line.sleeps(6, 200, 9000, "worker_thread", by=5, cpu=1)
    assert seen(line).parts()[1] == (8800, "unattributed", "own")


def test_a_request_that_began_before_the_trace_is_none() -> None:
    line = synced()
    line.add("block:block_rq_complete", 9000, 0, 1, dev=7 << 20 | 3, sector=8, nr_sector=8, rwbs="WS")
    line.sleeps(5, 200, 9000, "worker_thread", on=1)
    found = seen(line)
    assert found.requests.all == ()
    assert found.parts()[1] == (8800, "unattributed", "own")


def test_a_thread_that_is_first_seen_when_it_wakes_is_of_no_known_state_before() -> None:
    line = committed(5)
    line.happened = [each for each in line.happened if each.at != 50]  # jbd2 went to sleep before the trace
    assert seen(line).parts()[1] == (200, "journal", "journal")
    assert sum(length for length, _, _ in seen(line).parts()) == 9900


# --- io_uring and libaio ----------------------------------------------------------------------------------------------


def test_operations_of_io_uring_overlap_and_each_has_its_own_parts() -> None:
    line = Timeline()
    line.comes(5, 0)
    line.call("io_uring_enter", 5, 100, 400)
    for request, at, done in ((0xA0, 150, 2000), (0xB0, 250, 1500)):
        line.submits(5, at, request)
        line.request(5, at + 10, at + 20, done, "R", on=1)
        line.completes(done, request)
    line.call("io_uring_enter", 5, 500, 1510)
    line.sleeps(5, 510, 1500, "io_cqring_wait", on=1)
    line.call("io_uring_enter", 5, 1520, 2050)
    line.sleeps(5, 1530, 2000, "io_cqring_wait", on=1, back=2020)
    line.leaves(99, 20_000, to=98)
    found = seen(line)
    assert [(each.name, each.begin, each.end, each.bytes) for each in found.operations] == [
        ("read", 250, 1510, 4096), ("read", 150, 2050, 4096),
    ]  # fmt: skip
    b, a = (plain_parts(found.splitter.parts(each)) for each in found.operations)
    assert b == [(10, "processor", "own"), (10, "queue", "own"), (1230, "device", "own"), (10, "tool", "own")]
    assert a == [
        (10, "processor", "own"), (10, "queue", "own"), (1830, "device", "own"), (20, "run_queue", "own"),
        (30, "tool", "own"),
    ]  # fmt: skip


def test_what_io_uring_finds_in_the_page_cache_is_done_at_once_and_collected_later() -> None:
    line = Timeline()
    line.comes(5, 0)
    line.call("io_uring_enter", 5, 100, 400)
    line.submits(5, 150, 0xA0)
    line.completes(250, 0xA0, tid=5)
    line.leaves(99, 20_000, to=98)
    assert seen(line).parts() == [(100, "processor", "own"), (150, "tool", "own")]


def test_what_a_worker_of_io_uring_does_is_not_known() -> None:
    line = Timeline()
    line.comes(5, 0)
    line.call("io_uring_enter", 5, 100, 400)
    line.submits(5, 150, 0xA0)
    line.completes(3000, 0xA0, tid=77)
    line.leaves(99, 20_000, to=98)
    assert seen(line).parts() == [(250, "processor", "own"), (2600, "unattributed", "own")]


def test_operations_of_libaio_are_collected_in_order_some_at_a_time() -> None:
    line = Timeline()
    line.comes(5, 0)
    line.call("io_submit", 5, 100, 300, ret=3)
    for queued, done in ((120, 1000), (150, 3000), (180, 2000)):
        line.request(5, queued, queued + 5, done, "R", on=1)
    line.call("io_getevents", 5, 400, 1100, ret=1)
    line.call("io_getevents", 5, 1200, 1250, ret=0)
    line.call("io_getevents", 5, 1300, 3100, ret=2)
    line.leaves(99, 20_000, to=98)
    found = seen(line)
    assert [(each.begin, each.done, each.end) for each in found.operations] == [
        (100, 1000, 1100), (100, 2000, 3100), (100, 3000, 3100),
    ]  # fmt: skip
    first, second, third = (plain_parts(found.splitter.parts(each)) for each in found.operations)
    assert first == [(20, "processor", "own"), (5, "queue", "own"), (875, "device", "own"), (100, "tool", "own")]
    assert second == [(80, "processor", "own"), (5, "queue", "own"), (1815, "device", "own"), (1100, "tool", "own")]
    assert third == [(50, "processor", "own"), (5, "queue", "own"), (2845, "device", "own"), (100, "tool", "own")]


def test_a_device_without_requests_of_the_kernels_is_seen_by_its_bios() -> None:
    line = synced()
    line.bio(5, 150, 9000)
    line.sleeps(5, 200, 9000, PAGE)
    assert seen(line).parts() == [(100, "processor", "own"), (8800, "device", "own"), (1000, "processor", "own")]


# --- what always holds ------------------------------------------------------------------------------------------------

times = st.tuples(*[st.integers(0, 3000)] * 4).map(sorted)
tids = st.integers(5, 9)
things = st.lists(
    st.tuples(
        st.sampled_from(["sleep", "off", "request", "flush", "call", "uring", "aio", "come", "leave", "wake", "bio",
                         "item", "reclaim"]),
        times, tids, tids | st.just(0), st.integers(0, 2), st.sampled_from(STACKS),
    ),
    max_size=40,
)  # fmt: skip


def at_random(what: list[tuple[str, list[int], int, int, int, str]]) -> Timeline:
    """Things that no kernel would say one after the other, too: as if events were lost."""
    line = Timeline()
    for kind, (a, b, c, d), tid, other, cpu, stack in what:
        if kind == "sleep":
            line.sleeps(tid, a, b, stack, by=other, on=cpu, cpu=cpu, back=c)
        elif kind == "off":
            line.waits_for_processor(tid, a, b, cpu)
        elif kind in ("request", "flush"):
            line.request(
                tid, a, b, c, "FF" if kind == "flush" else "W", size=4096 * (kind == "request"), by=other, on=cpu
            )
        elif kind == "bio":
            line.bio(tid, a, c)
        elif kind == "call":
            line.call("fsync", tid, a, d)
        elif kind == "uring":
            line.call("io_uring_enter", tid, a, d)
            line.submits(tid, b, other)
            line.completes(c, other)
        elif kind == "aio":
            line.call("io_submit", tid, a, b, ret=1)
            line.call("io_getevents", tid, c, d, ret=2)
        elif kind == "item":
            line.queues(c, a, other, cpu)
            line.begins(c, b, tid, cpu)
        elif kind == "reclaim":
            line.reclaims(tid, a, b, "memcg" if other else "direct")
        elif kind == "come":
            line.comes(tid, a, cpu)
        elif kind == "leave":
            line.leaves(tid, a, cpu, stack=(stack,))
        else:
            line.wakes(tid, a, other, cpu)
    return line


@given(what=things)
def test_the_parts_are_exactly_as_long_as_the_operation(what: list[tuple[str, list[int], int, int, int, str]]) -> None:
    found = seen(at_random(what))
    whole = found.splitter.on_processor(found.operations)
    for operation, on_processor in zip(found.operations, whole, strict=True):
        parts = found.splitter.parts(operation)
        assert sum(each.end - each.begin for each in parts) == operation.end - operation.begin
        assert all(each.end > each.begin for each in parts)
        assert all(a.end == b.begin and a[2:] != b[2:] for a, b in pairwise(parts))
        assert not parts or (parts[0].begin, parts[-1].end) == (operation.begin, operation.end)
        if on_processor and found.tasks.thread(operation.tid).spans == ():
            assert {each.layer for each in parts} <= {"processor"}

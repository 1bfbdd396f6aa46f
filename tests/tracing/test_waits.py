"""What a waiting operation depends on: work items, holders of locks, memory, frozen file systems, tags of the queue."""

from __future__ import annotations

import pytest
from rows import every_row
from synthetic_trace import Timeline, plain_parts, seen

LOCK, TAG, WRITEBACK = "rwsem_down_write_slowpath", "blk_mq_get_tag", "folio_wait_writeback"
CHECKPOINT = ("__wait_on_buffer", "jbd2_log_do_checkpoint", "__jbd2_log_wait_for_space", "start_this_handle")
KWORKER, OTHER_WORKER = 130, 131


def synced(call: str = "fsync") -> Timeline:
    """An operation of thread 5 from 100 to 10,000."""
    line = Timeline(names={KWORKER: "kworker/u8:1", OTHER_WORKER: "kworker/1:1"})
    line.comes(5, 0)
    line.call(call, 5, 100, 10_000)
    line.leaves(99, 20_000, to=98)
    return line


# --- workers of pools -------------------------------------------------------------------------------------------------


def written_by_a_busy_worker(with_items: bool) -> Timeline:
    """The bio is held back until 7,000. Its request is done at 8,000; a worker that handled another device from 300 to
    8,400 ends the writeback in an item from 8,500 on."""
    line = synced()
    line.sleeps(5, 200, 9000, WRITEBACK, "ext4_sync_file", by=KWORKER, on=1)
    line.comes(KWORKER, 300, cpu=1)
    line.request(OTHER_WORKER, 7000, 7100, 8000, on=0)
    line.sleeps(KWORKER, 8400, 8450, "worker_thread", cpu=1, back=8460)
    line.leaves(KWORKER, 9500, cpu=1, stack=("worker_thread",))
    if with_items:
        line.queues(0xAA, 250, by=9)
        line.begins(0xAA, 300, KWORKER, cpu=1)
        line.queues(0xBB, 8000)
        line.begins(0xBB, 8500, KWORKER, cpu=1)
    return line


def test_a_worker_is_followed_to_its_work_item_and_not_to_what_it_did_for_others_before() -> None:
    assert seen(written_by_a_busy_worker(with_items=True)).parts() == [
        (100, "processor", "own"), (6900, "queue", "own"), (900, "device", "own"), (500, "run_queue", "own"),
        (1500, "processor", "own"),
    ]  # fmt: skip


def test_without_work_items_the_requests_say_what_was_waited_for() -> None:
    assert seen(written_by_a_busy_worker(with_items=False)).parts() == [
        (100, "processor", "own"), (6900, "queue", "own"), (900, "device", "own"), (450, "unattributed", "own"),
        (10, "run_queue", "own"), (1540, "processor", "own"),
    ]  # fmt: skip


def test_where_a_thread_queued_the_item_it_is_followed_on() -> None:
    line = synced()
    line.sleeps(5, 200, 9000, "wait_for_completion", by=KWORKER, on=1)
    line.request(7, 250, 260, 6000, on=2)
    line.sleeps(7, 300, 6000, "submit_bio_wait", on=2, cpu=2)
    line.comes(7, 150, cpu=2)
    line.queues(0xAA, 7000, by=7, cpu=2)
    line.leaves(7, 7100, cpu=2)
    line.begins(0xAA, 8000, KWORKER, cpu=1)
    line.comes(KWORKER, 100, cpu=1)
    line.leaves(KWORKER, 9100, cpu=1)
    assert seen(line).parts() == [
        (200, "processor", "own"), (5700, "device", "own"), (1000, "processor", "own"), (1000, "run_queue", "own"),
        (2000, "processor", "own"),
    ]  # fmt: skip


def test_an_item_that_a_worker_ran_before_it_was_waited_for_is_followed_from_then_on() -> None:
    line = synced()
    line.sleeps(5, 200, 9000, "wait_for_completion", by=KWORKER, on=1)
    line.queues(0xAA, 20, by=7)
    line.begins(0xAA, 50, KWORKER, cpu=1)
    line.comes(KWORKER, 10, cpu=1)
    line.sleeps(KWORKER, 400, 8000, TAG, cpu=1)
    line.leaves(KWORKER, 9100, cpu=1)
    assert seen(line).parts() == [(300, "processor", "own"), (7600, "queue", "own"), (2000, "processor", "own")]


def test_a_request_that_a_worker_had_to_make_first_is_waited_for_from_its_item_on() -> None:
    """As compressed data: from 300 to 1,000 the item waits for a worker, which has the request ready at 5,000."""
    line = synced()
    line.sleeps(5, 200, 8000, WRITEBACK, "btrfs_sync_file", on=1)
    line.queues(0xAA, 300, by=40)
    line.comes(KWORKER, 900, cpu=2)
    line.begins(0xAA, 1000, KWORKER, cpu=2)
    line.waits_for_processor(KWORKER, 2000, 3000, cpu=2)
    line.request(KWORKER, 5000, 5100, 8000, on=1)
    assert seen(line).parts() == [
        (100, "processor", "own"), (100, "queue", "own"), (700, "run_queue", "own"), (1000, "processor", "own"),
        (1000, "run_queue", "own"), (2000, "processor", "own"), (100, "queue", "own"), (2900, "device", "own"),
        (2000, "processor", "own"),
    ]  # fmt: skip


def test_an_item_whose_queueing_was_not_seen_was_not_queued_when_it_ran_before() -> None:
    """Some machines show nothing of an idle processor, whose timer queued it."""
    line = synced()
    line.sleeps(5, 200, 8000, WRITEBACK, "ext4_sync_file", on=1)
    line.comes(KWORKER, 90, cpu=2)
    line.queues(0xAA, 80)
    line.begins(0xAA, 95, KWORKER, cpu=2)
    line.begins(0xAA, 4900, KWORKER, cpu=2)
    line.request(KWORKER, 5000, 5100, 8000, on=1)
    assert seen(line).parts() == [
        (100, "processor", "own"), (4700, "queue", "own"), (100, "processor", "own"), (100, "queue", "own"),
        (2900, "device", "own"), (2000, "processor", "own"),
    ]  # fmt: skip


# --- holders of locks -------------------------------------------------------------------------------------------------


def queue_for_a_lock(waiters: int) -> Timeline:
    """Threads 5, 6, ... wait for one lock, which the last one holds: it sleeps for a request from 500 to 2,500. Each of
    the others holds it for 10 before it lets the one with the lower number have it, 5 at 9,000."""
    line = synced()
    holder = 5 + waiters
    line.comes(holder, 10, cpu=9)
    line.request(holder, 450, 500, 2500, on=9)
    line.sleeps(holder, 500, 2500, "submit_bio_wait", on=9, cpu=9)
    for tid in range(5, holder):
        line.sleeps(tid, 200 - tid, 9000 - 10 * (tid - 5), LOCK, "path_openat", by=tid + 1, on=tid + 1, cpu=tid)
    return line


@every_row("waiters", [1, 3, 16, 60])
def test_a_lock_is_waited_for_while_its_holders_run_and_what_they_sleep_for_counts_instead(waiters: int) -> None:
    assert seen(queue_for_a_lock(waiters)).parts() == [
        (95, "processor", "own"), (305, "lock", "own"), (2000, "device", "own"), (6500, "lock", "own"),
        (1000, "processor", "own"),
    ]  # fmt: skip


def test_a_holder_that_waits_for_a_processor_or_another_lock_is_a_lock_that_is_waited_for() -> None:
    line = synced()
    line.sleeps(5, 200, 9000, LOCK, by=6, on=1)
    line.comes(6, 100, cpu=1)
    line.waits_for_processor(6, 300, 4000, cpu=1)
    line.sleeps(6, 5000, 7000, "__mutex_lock", by=7, on=2, cpu=1)
    line.comes(7, 150, cpu=2)
    line.sleeps(7, 5500, 6000, "balance_dirty_pages", cpu=2)
    assert seen(line).parts() == [
        (100, "processor", "own"), (5300, "lock", "own"), (500, "writeback", "writeback"), (3000, "lock", "own"),
        (1000, "processor", "own"),
    ]  # fmt: skip


def test_a_checkpoint_behind_a_lock() -> None:
    line = synced()
    line.sleeps(5, 200, 9000, LOCK, "path_openat", by=6, on=1)
    line.comes(6, 100, cpu=1)
    line.request(6, 450, 460, 3000, on=1)
    line.sleeps(6, 500, 3000, *CHECKPOINT, on=1, cpu=1)
    line.request(6, 3200, 3300, 8000, "FF", size=0, on=1)
    line.sleeps(6, 3100, 8000, "submit_bio_wait", "jbd2_log_do_checkpoint", on=1, cpu=1)
    assert seen(line).parts() == [
        (100, "processor", "own"), (300, "lock", "own"), (2500, "device", "checkpoint"), (100, "lock", "own"),
        (200, "queue", "checkpoint"), (4700, "flush", "checkpoint"), (1000, "lock", "own"), (1000, "processor", "own"),
    ]  # fmt: skip


def test_a_checkpoint_that_another_thread_makes() -> None:
    """No event says for which requests it waits: those of the device count."""
    line = synced()
    line.request(40, 1000, 2000, 6000, on=2)
    line.sleeps(5, 200, 9000, "schedule_timeout", "xlog_grant_head_wait", "xfs_log_reserve")
    assert seen(line).parts() == [
        (100, "processor", "own"), (800, "journal", "checkpoint"), (1000, "queue", "checkpoint"),
        (4000, "device", "checkpoint"), (3000, "journal", "checkpoint"), (1000, "processor", "own"),
    ]  # fmt: skip


def test_threads_that_wait_for_locks_of_each_other_come_to_an_end() -> None:
    line = synced()
    line.comes(6, 10, cpu=1)
    line.sleeps(5, 200, 9000, LOCK, by=6, on=1)
    line.sleeps(6, 300, 9000, LOCK, by=5, cpu=1)
    assert seen(line).parts()[1] == (8800, "lock", "own")


# --- frozen file systems, memory --------------------------------------------------------------------------------------


def test_a_write_to_a_frozen_file_system() -> None:
    line = synced("pwrite64")
    line.sleeps(5, 200, 9000, "percpu_rwsem_wait", "__percpu_down_read", "vfs_write", by=6, on=1)
    line.comes(6, 100, cpu=1)
    assert seen(line).parts()[1] == (8800, "freeze", "own")


@pytest.mark.parametrize("kind", ["direct", "memcg"])
def test_memory_is_freed_on_a_processor_and_asleep(kind: str) -> None:
    line = synced("pwrite64")
    line.reclaims(5, 1000, 4000, kind)
    line.waits_for_processor(5, 1500, 1700)
    line.sleeps(5, 2000, 3000, "schedule_timeout", "reclaim_throttle", "shrink_node")
    assert seen(line).parts() == [
        (900, "processor", "own"), (500, "reclaim", "own"), (200, "run_queue", "own"), (2300, "reclaim", "own"),
        (6000, "processor", "own"),
    ]  # fmt: skip


def test_an_operation_that_frees_memory_without_a_sleep_is_not_all_on_the_processor() -> None:
    line = synced("pwrite64")
    line.reclaims(5, 1000, 4000)
    found = seen(line)
    assert found.splitter.on_processor(found.operations) == [False]
    assert found.parts() == [(900, "processor", "own"), (3000, "reclaim", "own"), (6000, "processor", "own")]


def test_memory_that_was_freed_when_the_trace_began_or_ended() -> None:
    line = synced("pwrite64")
    line.add("vmscan:mm_vmscan_memcg_reclaim_end", 300, 5)
    line.add("vmscan:mm_vmscan_direct_reclaim_begin", 9000, 5)
    assert seen(line).parts() == [(200, "reclaim", "own"), (8700, "processor", "own"), (1000, "reclaim", "own")]


# --- the block queue --------------------------------------------------------------------------------------------------


def test_who_sleeps_for_a_tag_waits_in_the_queue_whatever_is_at_the_device() -> None:
    line = synced()
    line.request(8, 150, 160, 8990, on=1)
    line.sleeps(5, 200, 9000, "io_schedule", TAG, "blk_mq_submit_bio", on=1)
    assert seen(line).parts() == [(100, "processor", "own"), (8800, "queue", "own"), (1000, "processor", "own")]


def test_a_request_that_is_done_while_its_thread_sleeps_for_the_tag_of_a_later_one() -> None:
    line = Timeline()
    line.comes(5, 0)
    line.call("io_submit", 5, 100, 200, ret=1)
    line.request(5, 150, 160, 1000, "R", on=1)
    line.call("io_submit", 5, 300, 4100, ret=1)
    line.sleeps(5, 400, 4000, "io_schedule", TAG, "blk_mq_submit_bio", on=1, back=4050)
    line.request(5, 350, 4060, 5000, "R", on=1)
    line.call("io_getevents", 5, 4200, 5100, ret=2)
    line.sleeps(5, 4300, 5000, "read_events", on=1)
    line.leaves(99, 20_000, to=98)
    found = seen(line)
    first, second = (plain_parts(found.splitter.parts(each)) for each in found.operations)
    assert first == [
        (50, "processor", "own"), (10, "queue", "own"), (840, "device", "own"), (3000, "queue", "own"),
        (50, "run_queue", "own"), (1050, "tool", "own"),
    ]  # fmt: skip
    assert second == [(50, "processor", "own"), (3710, "queue", "own"), (940, "device", "own"), (100, "tool", "own")]


def test_what_io_uring_has_read_is_noticed_by_its_thread_only_after_that_has_slept_for_a_tag() -> None:
    line = Timeline()
    line.comes(5, 0)
    line.call("io_uring_enter", 5, 100, 4100)
    line.submits(5, 150, 0xA0)
    line.request(5, 160, 170, 1000, "R", on=1)
    line.submits(5, 200, 0xB0)
    line.sleeps(5, 300, 4000, "io_schedule", TAG, on=1, back=4010)
    line.completes(4050, 0xA0, tid=5)
    line.leaves(99, 20_000, to=98)
    assert seen(line).parts() == [
        (10, "processor", "own"), (10, "queue", "own"), (830, "device", "own"), (3000, "queue", "own"),
        (10, "run_queue", "own"), (90, "tool", "own"),
    ]  # fmt: skip


def test_requests_that_one_call_submits_wait_for_the_tags_of_those_before() -> None:
    line = Timeline()
    line.comes(5, 0)
    line.call("io_submit", 5, 100, 2200, ret=2)
    line.request(5, 120, 130, 1900, "R", on=1)
    line.sleeps(5, 200, 2000, "io_schedule", TAG, on=1)
    line.request(5, 2100, 2110, 3000, "R", on=1)
    line.call("io_getevents", 5, 2500, 3100, ret=2)
    line.leaves(99, 20_000, to=98)
    found = seen(line)
    assert plain_parts(found.splitter.parts(found.operations[1])) == [
        (100, "processor", "own"), (1800, "queue", "own"), (100, "processor", "own"), (10, "queue", "own"),
        (890, "device", "own"), (100, "tool", "own"),
    ]  # fmt: skip

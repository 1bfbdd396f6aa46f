"""Threads, requests and operations as they are read out of a trace: timelines made by hand, with known answers."""

from __future__ import annotations

import pytest
from mountlab.core.errors import ParseError
from mountlab.tracing.operations import OpenFiles
from mountlab.tracing.requests import Request
from mountlab.tracing.symbols import Wait, read_symbols, wait_of
from rows import every_row
from synthetic_trace import DEV, KERNEL_FOLLOWS, Timeline, seen

# --- threads ----------------------------------------------------------------------------------------------------------


def states(line: Timeline, tid: int = 5) -> list[tuple[int, int, str]]:
    return [(each.begin, each.end, each.state) for each in seen(line).tasks.thread(tid).spans]


def over(line: Timeline, begin: int = 0, end: int = 1000) -> Timeline:
    """The same in a trace that is as long as this."""
    for at in (begin, end):
        line.add("block:block_rq_issue", at, 1)
    return line


def test_a_thread_runs_sleeps_is_woken_and_waits_for_a_processor() -> None:
    line = over(Timeline())
    line.comes(5, 100)
    line.leaves(5, 200, stack=("x",))
    line.wakes(5, 300, by=8, cpu=1)
    line.comes(5, 400)
    assert states(line) == [
        (0, 100, "unknown"), (100, 200, "running"), (200, 300, "asleep"), (300, 400, "runnable"),
        (400, 1000, "running"),
    ]  # fmt: skip
    waking = seen(line).tasks.thread(5).spans[2].waking
    assert waking == (300, 8, 1)


def test_a_thread_that_first_leaves_was_running() -> None:
    line = over(Timeline())
    line.leaves(5, 200)
    assert states(line) == [(0, 200, "running"), (200, 1000, "asleep")]


def test_a_waking_of_a_thread_that_did_not_sleep_changes_nothing() -> None:
    line = over(Timeline())
    line.comes(5, 0)
    line.wakes(5, 300)
    line.leaves(5, 400, state=0)
    line.wakes(5, 500)
    line.comes(5, 600)
    assert states(line) == [(0, 400, "running"), (400, 600, "runnable"), (600, 1000, "running")]


def test_a_thread_whose_waking_was_lost_slept_until_it_came() -> None:
    line = over(Timeline())
    line.leaves(5, 200)
    line.comes(5, 400)
    assert states(line) == [(0, 200, "running"), (200, 400, "asleep"), (400, 1000, "running")]


def test_what_a_thread_did_that_came_again_without_leaving_is_not_known() -> None:
    line = over(Timeline())
    line.comes(5, 100)
    line.comes(5, 400)
    assert states(line) == [(0, 100, "unknown"), (100, 400, "unknown"), (400, 1000, "running")]


def test_what_a_thread_did_in_a_time_is_cut_to_it() -> None:
    line = over(Timeline())
    line.leaves(5, 200)
    line.comes(5, 400)
    thread = seen(line).tasks.thread(5)
    assert [(each.begin, each.end) for each in thread.between(250, 300)] == [(250, 300)]
    assert [(each.begin, each.end) for each in thread.between(100, 500)] == [(100, 200), (200, 400), (400, 500)]
    assert [*thread.between(200, 200)] == []
    assert [*seen(line).tasks.thread(4711).between(0, 1000)] == []


def test_how_often_a_thread_left_its_processor() -> None:
    line = over(Timeline())
    for at in (200, 400, 600):
        line.sleeps(5, at, at + 50)
    tasks = seen(line).tasks
    assert [tasks.left(5, 200, 600), tasks.left(5, 201, 599), tasks.left(4711, 0, 1000)] == [3, 1, 0]


# --- names ------------------------------------------------------------------------------------------------------------


@every_row(
    ("stack", "wait"),
    [
        ("schedule jbd2_log_wait_commit ext4_sync_file", "journal"),
        ("schedule io_schedule folio_wait_bit_common folio_wait_writeback ext4_sync_file", "device"),
        ("schedule folio_wait_bit_common jbd2_journal_commit_transaction kjournald2", "device"),
        ("schedule rwsem_down_write_slowpath down_write xfs_ilock", "lock"),
        ("schedule io_schedule_timeout balance_dirty_pages generic_perform_write", "writeback"),
        ("schedule io_schedule folio_wait_bit_common xlog_wait_on_iclog", "journal"),
        ("schedule mutex_lock jbd2_log_wait_commit", "lock"),
        ("schedule io_schedule blk_mq_get_tag blk_mq_submit_bio submit_bio jbd2_journal_commit_transaction", "queue"),
        ("schedule io_schedule rq_qos_wait wbt_wait __rq_qos_throttle blk_mq_submit_bio", "queue"),
        ("schedule_hrtimeout_range schedule_hrtimeout jbd2_journal_stop __ext4_journal_stop ext4_create", "journal"),
        ("schedule pipe_read vfs_read", "unattributed"),
        ("", "unattributed"),
    ],
)
def test_the_innermost_function_that_says_it_decides_what_is_waited_for(stack: str, wait: str) -> None:
    assert wait_of(stack.split()) == Wait(wait)  # type: ignore[arg-type]


@every_row(
    "stack",
    [
        "schedule_timeout io_schedule_timeout reclaim_throttle shrink_node do_try_to_free_pages try_to_free_pages",
        "schedule_timeout mem_cgroup_handle_over_high irqentry_exit_to_user_mode",
        "schedule __mutex_lock xfs_inode_ag_walk xfs_reclaim_inodes_nr super_cache_scan do_shrink_slab shrink_slab",
        "io_schedule folio_wait_bit_common folio_wait_writeback shrink_folio_list evict_folios",
    ],
)
def test_what_is_waited_for_to_free_memory_is_part_of_that(stack: str) -> None:
    assert wait_of(stack.split()) == Wait("reclaim")


@every_row(
    ("stack", "kind"),
    [
        ("schedule percpu_rwsem_wait __percpu_down_read mnt_want_write path_openat do_filp_open", "freeze"),
        ("schedule percpu_rwsem_wait __percpu_down_read vfs_write ksys_pwrite64 do_syscall_64", "freeze"),
        ("schedule percpu_rwsem_wait __percpu_down_read ext4_page_mkwrite do_page_mkwrite do_wp_page", "freeze"),
        ("schedule percpu_rwsem_wait __percpu_down_read ext4_writepages do_writepages vfs_fsync_range", "lock"),
        ("schedule percpu_rwsem_wait __percpu_down_read cpus_read_lock static_key_slow_inc vfs_write", "lock"),
        ("schedule rwsem_down_write_slowpath down_write vfs_write", "lock"),
    ],
)
def test_a_lock_of_a_superblock_is_a_frozen_file_system(stack: str, kind: str) -> None:
    assert wait_of(stack.split()).kind == kind


@every_row(
    ("stack", "kind"),
    [
        ("schedule io_schedule bit_wait_io __wait_on_buffer jbd2_log_do_checkpoint __jbd2_log_wait_for_space"
         " add_transaction_credits start_this_handle jbd2__journal_start", "journal"),
        ("schedule __mutex_lock mutex_lock_io __jbd2_log_wait_for_space add_transaction_credits", "lock"),
        ("io_schedule blk_mq_get_tag blk_mq_submit_bio __jbd2_write_superblock jbd2_log_do_checkpoint", "queue"),
        ("schedule xlog_grant_head_wait xlog_grant_head_check xfs_log_reserve xfs_trans_reserve", "journal"),
    ],
)  # fmt: skip
def test_who_waits_for_room_in_a_log_waits_for_a_checkpoint(stack: str, kind: str) -> None:
    assert wait_of(stack.split()) == Wait(kind, for_checkpoint=True)  # type: ignore[arg-type]


def test_an_address_lies_in_the_function_that_begins_before_it() -> None:
    symbols = read_symbols(
        "ffffffff81000000 T first\nffffffff81000100 t second.isra.0\nffffffffc0000000 t in_module\t[ext4]\n"
        "0000000000000000 A fixed_percpu_data\nno line at all\n"
    )
    stack = (
        KERNEL_FOLLOWS, 0xFFFFFFFF81000150, 0xFFFFFFFF810000FF, 0xFFFFFFFFC0000001, 0xFFFFFFFF80000000,
        0x7F0012345678,
    )  # fmt: skip
    assert symbols.functions(stack) == ("second", "first", "in_module")


@pytest.mark.parametrize("text", ["", "0000000000000000 T vfs_read\n", "\0\n\x1b[2J"])
def test_a_kernel_that_hides_its_addresses_is_an_error(text: str) -> None:
    with pytest.raises(ParseError, match="does not show where its functions lie"):
        read_symbols(text)


# --- requests ---------------------------------------------------------------------------------------------------------


def requests(line: Timeline) -> list[Request]:
    return list(seen(line).requests.all)


def test_a_request_has_its_times_its_thread_and_what_told_of_its_end() -> None:
    line = Timeline()
    line.request(5, 100, 200, 900, "WFS", size=8192, by=77, on=3)
    assert requests(line) == [Request(100, 200, 900, 5, 8192, "WFS", 3, 77)]
    assert requests(line)[0].is_fua
    assert not requests(line)[0].is_flush


def test_who_queued_a_request_is_not_who_sent_it_to_the_device() -> None:
    line = Timeline()
    place = {"dev": DEV, "sector": 64, "nr_sector": 16, "rwbs": "W"}
    line.add("block:block_bio_queue", 100, 5, dev=DEV, sector=72, nr_sector=8, rwbs="W")  # merged into it at its end
    line.add("block:block_bio_queue", 50, 6, dev=DEV, sector=64, nr_sector=8, rwbs="W")
    line.add("block:block_rq_issue", 200, 30, **place)
    line.add("block:block_rq_complete", 900, 0, **place)
    assert [(each.queued, each.tid) for each in requests(line)] == [(100, 5)]


def test_a_sector_that_is_written_again_belongs_to_the_last_who_queued_it_before() -> None:
    line = Timeline()
    for tid, at in ((5, 100), (6, 1000), (7, 2000)):
        line.request(tid, at, at + 10, at + 500, sector=64)
    assert [(each.queued, each.tid) for each in requests(line)] == [(100, 5), (1000, 6), (2000, 7)]


def test_a_request_that_is_put_back_is_in_the_queue_until_it_is_sent_again() -> None:
    line = Timeline()
    place = {"dev": DEV, "sector": 64, "nr_sector": 8, "rwbs": "W"}
    line.add("block:block_bio_queue", 100, 5, **place)
    line.add("block:block_rq_issue", 200, 5, **place)
    line.add("block:block_rq_requeue", 300, 5, **place)
    line.add("block:block_rq_issue", 1000, 30, **place)
    line.add("block:block_rq_complete", 2000, 0, **place)
    assert [each[:4] for each in requests(line)] == [(100, 1000, 2000, 5)]


def test_a_request_that_is_sent_again_without_having_been_put_back_has_lost_its_end() -> None:
    line = Timeline()
    for at in (200, 400):
        line.add("block:block_rq_issue", at, 5, dev=DEV, sector=64, nr_sector=8, rwbs="W")
    line.add("block:block_rq_complete", 900, 0, dev=DEV, sector=64, nr_sector=8, rwbs="W")
    assert (len(requests(line)), seen(line).requests.endless) == (1, 1)


def test_a_flush_behind_a_write_with_fua_belongs_to_that_write() -> None:
    line = Timeline()
    line.request(8, 50, 60, 90, "FF", size=0)
    line.request(5, 100, 200, 500, "WFS")
    line.add("block:block_rq_issue", 510, 30, dev=DEV, sector=0, nr_sector=0, rwbs="FF")
    line.add("block:block_rq_complete", 900, 0, dev=DEV, sector=0, nr_sector=0, rwbs="FF")
    assert [(each.queued, each.tid) for each in requests(line) if each.is_flush] == [(50, 8), (100, 5)]


def test_requests_of_other_devices_are_none() -> None:
    line = Timeline()
    line.request(5, 100, 200, 900)
    for each in line.happened:
        each.values["dev"] += 1  # type: ignore[index]
    assert requests(line) == []


def test_the_requests_around_a_time_are_found_beside_very_long_ones() -> None:
    line = Timeline()
    line.request(5, 0, 10, 100_000)
    for at in range(100, 50_000, 100):
        line.request(5 + at // 100 % 3, at, at + 10, at + 90)
    found = seen(line).requests
    spans = {(each.queued, each.done) for each in found.around(1095, 1250)}
    assert spans == {(0, 100_000), (1100, 1190), (1200, 1290)}
    assert {each.tid for each in found.around(1000, 3000, {6})} == {6}
    assert [*found.around(1000, 3000, {4711})] == []
    assert [(each.queued, each.tid) for each in found.queued_by(5, 300, 900)] == [(300, 5), (600, 5), (900, 5)]


# --- operations -------------------------------------------------------------------------------------------------------


def operations(line: Timeline, *threads: int, files: OpenFiles | None = None) -> list[tuple[str, int, int, int, int]]:
    return [(each.name, each.tid, each.begin, each.end, each.bytes) for each in seen(line, threads, files).operations]


def test_a_call_is_an_operation_if_it_began_and_ended_in_the_trace_and_had_success() -> None:
    line = Timeline()
    line.add("syscalls:sys_exit_read", 50, 5, ret=10)  # began before
    line.call("pread64", 5, 100, 200, ret=4096)
    line.call("pwrite64", 5, 300, 400, ret=512)
    line.call("fdatasync", 5, 500, 600)
    line.call("read", 5, 700, 800, ret=-5)
    line.add("syscalls:sys_enter_fsync", 900, 5)  # goes on behind the end
    assert operations(line) == [("read", 5, 100, 200, 4096), ("write", 5, 300, 400, 512), ("sync", 5, 500, 600, 0)]


def test_only_the_operations_of_the_tool_are_counted_with_those_of_its_threads() -> None:
    line = Timeline(processes={6: 5})
    for tid in (5, 6, 7):
        line.call("fsync", tid, 100, 200 + tid)
    assert [each[1] for each in operations(line, 5)] == [5, 6]
    assert [each[1] for each in operations(line)] == [5, 6, 7]


def test_calls_on_pipes_and_devices_are_no_operations() -> None:
    line = Timeline()
    line.call("read", 5, 100, 200, ret=1, fd=0)
    line.call("read", 5, 300, 400, ret=1, fd=3)
    assert [each[2] for each in operations(line, files=OpenFiles(strange=frozenset({(5, 0)})))] == [300]


def test_where_files_under_test_are_known_others_count_only_if_the_tool_made_them() -> None:
    line = Timeline()
    line.call("openat", 5, 10, 20, ret=4, flags=0)  # a library
    line.call("read", 5, 30, 40, ret=1, fd=4)
    line.call("openat", 5, 50, 60, ret=4, flags=0o101)  # made by it
    line.call("write", 5, 70, 80, ret=1, fd=4)
    line.call("write", 5, 90, 100, ret=1, fd=3)
    known = OpenFiles(tested=frozenset({(5, 3)}))
    assert [(name, begin) for name, _, begin, _, _ in operations(line, files=known)] == [
        ("open", 50), ("write", 70), ("write", 90),
    ]  # fmt: skip


@every_row("tested", [frozenset(), frozenset({(5, 3)})])
def test_the_sync_of_a_directory_is_an_operation(tested: frozenset[tuple[int, int]]) -> None:
    """As a database makes one when it has made or removed a file."""
    line = Timeline()
    line.call("openat", 5, 10, 20, ret=4, flags=0o2000000)  # O_RDONLY | O_CLOEXEC
    line.call("fdatasync", 5, 30, 90, fd=4)
    line.call("fsync", 5, 100, 190, fd=1)
    files = OpenFiles(tested=tested, strange=frozenset({(5, 1)}))
    assert [(name, begin) for name, _, begin, _, _ in operations(line, files=files) if name == "sync"] == [("sync", 30)]


def test_a_file_under_test_is_the_one_that_stays_open_under_a_number_that_libraries_had_before() -> None:
    line = Timeline()
    for at in (10, 110, 210):  # as an interpreter opens its modules
        line.call("openat", 5, at, at + 5, ret=3, flags=0o2000000)
        line.call("read", 5, at + 10, at + 20, ret=1, fd=3)
    line.call("openat", 5, 310, 315, ret=3, flags=0o2000000)
    for at in (320, 420, 520):
        line.call("read", 5, at, at + 20, ret=1, fd=3)
    line.leaves(99, 9000, to=98)
    known = OpenFiles(tested=frozenset({(5, 3)}))
    assert [begin for name, _, begin, _, _ in operations(line, files=known) if name == "read"] == [320, 420, 520]


def test_where_no_file_under_test_was_seen_libraries_are_left_out() -> None:
    line = Timeline()
    line.call("openat", 5, 10, 20, ret=4, flags=0o2000000)  # as the loader opens libraries
    line.call("read", 5, 30, 40, ret=832, fd=4)
    line.call("openat", 5, 50, 60, ret=4, flags=0)
    line.call("read", 5, 70, 80, ret=1, fd=4)
    line.call("openat", 5, 82, 84, ret=4, flags=0o2000102)  # made
    line.call("read", 5, 90, 100, ret=1, fd=4)
    assert [begin for _, _, begin, _, _ in operations(line)] == [50, 70, 82, 90]


def test_the_address_of_a_request_of_io_uring_is_used_again() -> None:
    line = Timeline()
    for at in (100, 1000, 2000):
        line.submits(5, at, 0xA0, opcode=23)
        if at != 1000:  # the end of the second was lost
            line.completes(at + 300, 0xA0, 512)
    assert [(each[0], each[2], each[3]) for each in operations(line)] == [("write", 100, 400), ("write", 2000, 2300)]


def test_failed_and_other_operations_of_io_uring_are_left_out() -> None:
    line = Timeline()
    line.submits(5, 100, 0xA0)
    line.completes(200, 0xA0, -11)
    line.submits(5, 300, 0xA0, opcode=6)  # poll
    line.completes(400, 0xA0, 1)
    line.submits(5, 500, 0xA0)  # ends behind the trace
    assert operations(line) == []


def test_what_libaio_submitted_and_did_not_collect_is_no_operation() -> None:
    line = Timeline()
    line.call("io_submit", 5, 100, 200, ret=2)
    line.request(5, 120, 130, 1000, "R")
    line.request(5, 150, 160, 5000, "R")
    line.call("io_getevents", 5, 900, 1100, ret=1)
    assert operations(line) == [("read", 5, 100, 1100, 4096)]


@every_row(("pauses", "ends"), [((), [5010, 6300, 9000]), (((9500, 1 << 62),), [5010, 6300, 9000])])
def test_what_is_done_before_a_thread_asks_for_it_is_collected_by_the_call_that_follows(
    pauses: tuple[tuple[int, int], ...], ends: list[int]
) -> None:
    """Its processor was taken from the thread between the two calls."""
    line = Timeline()
    for begin, done, asks, end in ((100, 300, 5000, 5010), (5100, 6200, 5300, 6300), (6400, 6600, 8900, 9000)):
        line.call("io_submit", 5, begin, begin + 100, ret=1)
        line.request(5, begin + 50, begin + 60, done, "R")
        line.call("io_getevents", 5, asks, end, ret=1)
    line.leaves(99, 20_000, to=98)
    assert [each.end for each in seen(line, pauses=pauses).operations] == ends

"""The profile of a program: exact on operations that are chosen, whatever way strace prints them."""

from __future__ import annotations

import math
import shutil
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mountlab.core.errors import ParseError
from mountlab.tracing.program import Profile
from mountlab.tracing.program_calls import read_calls
from mountlab.tracing.program_figures import profile_of, spread
from rows import every_row
from strace_text import ROOT, Strace, profile_text, without_names

AT = "1700000000"


def lines_of(*calls: str) -> str:
    """Calls one after another, 100 µs apart, each 10 µs long; 'THREAD|CALL' names another thread than 7."""
    made = []
    for number, call in enumerate(calls):
        thread, _, text = call.partition("|") if call.partition("|")[0].isdigit() else ("7", "", call)
        made.append(f"{thread} {AT}.{number * 100:06d} {text} <0.000010>\n")
    return "".join(made)


def profiled(tmp_path: Path, *calls: str) -> Profile:
    return profile_text(lines_of(*calls), tmp_path)


OPEN = f'openat(AT_FDCWD<{ROOT}>, "f", O_RDWR|O_CREAT, 0644) = 3<{ROOT}/f>'
F = f"<{ROOT}/f>"

OPERATIONS = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(["read", "write"]),
            st.integers(3, 5),
            st.integers(1, 9000),
            st.none() | st.integers(0, 9999),
        ),
        st.tuples(st.just("seek"), st.integers(3, 5), st.integers(0, 20_000), st.none()),
        st.tuples(st.sampled_from(["fsync", "fdatasync"]), st.integers(3, 5), st.just(0), st.none()),
    ),
    min_size=1,
    max_size=40,
)


def written(operations: list[tuple[str, int, int, int | None]]) -> Strace:
    strace = Strace()
    for descriptor in (3, 4, 5):
        strace.open(f"file{descriptor}", descriptor)
    for kind, descriptor, size, offset in operations:
        if kind in ("read", "write"):
            strace.move(kind, descriptor, size, offset)
        elif kind == "seek":
            strace.seek(descriptor, size)
        else:
            strace.sync(descriptor, kind)
    return strace


@pytest.mark.slow
@given(operations=OPERATIONS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_profile_of_chosen_operations_has_their_own_figures(
    tmp_path: Path, operations: list[tuple[str, int, int, int | None]]
) -> None:
    strace = written(operations)
    profile = profile_text(strace.text, tmp_path)
    rows = {row.operation: row for row in profile.operations}
    for kind, side in (("read", profile.reads), ("write", profile.writes)):
        assert (rows[kind].calls if kind in rows else 0) == strace.calls[kind]
        assert (rows[kind].bytes if kind in rows else 0) == strace.bytes[kind]
        assert (side.bytes if side else 0) == strace.bytes[kind]
        assert (side.unique_bytes if side else 0) == len(strace.touched[kind])
        assert (sum(side.how.values()) if side else 0) == len(strace.began[kind])
    if profile.reads:
        assert Counter({size.size: size.calls for size in profile.reads.sizes}).items() <= strace.read_sizes.items()
    assert profile.syncs.calls == strace.calls["sync"]
    assert profile.syncs.empty == strace.synced.count(0)
    assert profile.syncs.writes_between.n == len([count for count in strace.synced if count])
    assert profile.syncs.writes_between.most == max(strace.synced, default=0)
    assert profile.files.sizes.most == max(strace.sizes.values())
    assert profile.hidden.unknown_positions == 0
    assert profile.seen.unread == 0
    drawn = [
        (bool(is_write), offset)
        for is_write, offset in zip(profile.points.is_write, profile.points.offset, strict=True)
    ]
    both = [(kind == "write", at) for kind in ("read", "write") for _, at in strace.began[kind]]
    assert Counter(drawn) == Counter(both)


# --- how one access follows another -----------------------------------------------------------------------------------


def pattern(tmp_path: Path, *offsets: int, size: int = 10) -> tuple[str, dict[str, int]]:
    reads = (f'pread64(3{F}, ""..., {size}, {offset}) = {size}' for offset in offsets)
    side = profiled(tmp_path, OPEN, *reads).reads
    assert side is not None
    return side.pattern, side.how


def test_how_reads_follow_each_other_decides_the_pattern(tmp_path: Path) -> None:
    assert pattern(tmp_path, 0, 10, 20, 30) == ("sequential", {"consecutive": 3, "first": 1})
    assert pattern(tmp_path, 50) == ("sequential", {"first": 1})
    name, how = pattern(tmp_path, *range(0, 2200, 100))
    assert (name, how) == ("strided", {"strided": 20, "forward": 1, "first": 1})
    assert pattern(tmp_path, 500, 100, 900, 300) == ("random", {"forward": 1, "backward": 2, "first": 1})
    assert pattern(tmp_path, 0, 10, 20, 500, 510, 0, 10, 20)[0] == "mixed"


def test_accesses_that_prefer_few_blocks_are_skewed(tmp_path: Path) -> None:
    block, hot = 4096, [3, 11, 5]
    places = [hot[n % 3] if n % 5 else (n * 37) % 100 for n in range(300)]
    name, _ = pattern(tmp_path, *(place * block for place in places), size=100)
    assert name == "skewed"
    even = [(n * 37) % 100 for n in range(300)]
    assert pattern(tmp_path, *(place * block for place in even), size=100)[0] != "skewed"


# --- descriptors ------------------------------------------------------------------------------------------------------

R5 = f'read(3{F}, ""..., 5) = 5'


def offsets(tmp_path: Path, *calls: str) -> list[int]:
    profile = profiled(tmp_path, OPEN, *calls)
    assert profile.hidden.unknown_positions == 0
    return list(profile.points.offset)


def test_duplicates_share_one_position(tmp_path: Path) -> None:
    for dup in (f"dup(3{F}) = 4{F}", f"dup2(3{F}, 4) = 4{F}", f"fcntl(3{F}, F_DUPFD_CLOEXEC, 0) = 4{F}"):
        assert offsets(tmp_path, R5, dup, f'read(4{F}, ""..., 7) = 7', R5) == [0, 5, 12]


def test_a_second_open_has_a_position_of_its_own(tmp_path: Path) -> None:
    again = OPEN.replace("= 3", "= 4")
    assert offsets(tmp_path, R5, again, f'read(4{F}, ""..., 7) = 7', R5) == [0, 0, 5]


def test_a_forked_child_shares_positions_even_if_it_runs_before_fork_returns(tmp_path: Path) -> None:
    fork = "clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD, child_tidptr=0x7f) = 8"
    assert offsets(tmp_path, R5, f"8|{R5}", fork, R5) == [0, 5, 10]
    closed = f"8|close(3{F}) = 0"
    assert offsets(tmp_path, R5, fork, closed, R5) == [0, 5]  # the parent's descriptor is its own


def test_threads_share_descriptors_and_are_one_process(tmp_path: Path) -> None:
    thread = "clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD, exit_signal=0} => {}, 88) = 8"
    opened = f"8|{OPEN.replace('= 3', '= 5')}"
    profile = profiled(tmp_path, OPEN, thread, opened, f'read(5{F}, ""..., 4) = 4', f'8|read(5{F}, ""..., 4) = 4')
    assert profile.points.offset == (0, 4)
    assert (profile.concurrency.threads, profile.concurrency.processes) == (2, 1)


def test_a_number_that_stands_for_another_file_has_no_known_position(tmp_path: Path) -> None:
    profile = profiled(tmp_path, OPEN, R5, f'read(3<{ROOT}/other>, ""..., 5) = 5')
    assert profile.hidden.unknown_positions == 1
    sought = (f"lseek(3<{ROOT}/other>, 40, SEEK_SET) = 40", f'read(3<{ROOT}/other>, ""..., 5) = 5')
    assert profiled(tmp_path, OPEN, R5, *sought).hidden.unknown_positions == 0


def test_a_renamed_and_a_removed_file_stay_the_same_file(tmp_path: Path) -> None:
    rename, gone = f'rename("{ROOT}/f", "{ROOT}/g") = 0', f'unlink("{ROOT}/g") = 0'
    moved, removed = R5.replace("/f", "/g"), R5.replace("/f>", "/g>(deleted)")
    profile = profiled(tmp_path, OPEN, R5, rename, moved, gone, removed)
    assert profile.points.offset == (0, 5, 10)
    assert (profile.files.opened, profile.files.renamed, profile.files.removed) == (1, 1, 1)
    assert len(profile.busiest) == 1


def test_appends_go_to_the_end_whatever_offset_is_given(tmp_path: Path) -> None:
    appends = OPEN.replace("O_CREAT", "O_CREAT|O_TRUNC|O_APPEND")
    calls = [f'write(3{F}, ""..., 6) = 6', f'pwrite64(3{F}, ""..., 6, 0) = 6', f"writev(3{F}, [...], 2) = 6"]
    profile = profiled(tmp_path, appends, *calls)
    assert profile.points.offset == (0, 6, 12)
    assert profile.writes
    assert profile.writes.pattern == "sequential"
    assert profile.flags == {"opens": 1, "O_APPEND": 1, "O_TRUNC": 1}


def test_vectors_take_their_offset_or_the_position(tmp_path: Path) -> None:
    calls = [f"preadv2(3{F}, [...], 2, 100, 0) = 9", f"preadv2(3{F}, [...], 2, -1, RWF_NOWAIT) = 9", R5]
    assert offsets(tmp_path, *calls) == [100, 0, 9]


# --- what strace may print --------------------------------------------------------------------------------------------


def test_calls_that_others_interrupt_are_put_together(tmp_path: Path) -> None:
    text = (
        f"7 {AT}.000000 {OPEN} <0.000010>\n"
        f"7 {AT}.000100 read(3{F},  <unfinished ...>\n"
        f"8 {AT}.000150 getpid() = 8 <0.000001>\n"
        f'7 {AT}.000900 <... read resumed>""..., 50) = 50 <0.000800>\n'
        f"7 {AT}.001000 fsync(3{F} <unfinished ...>\n"
        f"7 {AT}.001500 <... fsync resumed>) = 0 <0.000500>\n"
        f"7 {AT}.001600 --- SIGCHLD {{si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=9, si_uid=0}} ---\n"
        f"7 {AT}.001700 read(3{F}, 0x55d, 10) = ? ERESTARTSYS (To be restarted if SA_RESTART is set) <0.000040>\n"
        f"7 {AT}.001800 pause( <unfinished ...>) = ?\n"
        f'7 {AT}.001900 write(3{F}, ""..., 4 <unfinished ...>\n'
        f"7 {AT}.002000 +++ killed by SIGKILL +++\n"
    )
    profile = profile_text(text, tmp_path)
    assert profile.reads
    assert (profile.reads.calls, profile.reads.bytes) == (1, 50)
    assert profile.writes is None  # killed in it: what it wrote is not known
    assert (profile.syncs.calls, round(profile.syncs.seconds, 6)) == (1, 0.0005)
    assert {row.operation: row.seconds for row in profile.operations}["read"] == pytest.approx(0.0008)


NAMES = ['we\\"ird \\303\\251', "a <b> c", "semi; 'quote'", "comma, ) = 7", "tab\\there", "-rf", "$HOME `id`"]


@every_row("name", NAMES)
def test_no_name_of_a_file_leaves_the_box(name: str, tmp_path: Path) -> None:
    in_brackets = name.replace("<", "\\74").replace(">", "\\76")
    path = f"{ROOT}/{in_brackets}"
    calls = [
        f'openat(AT_FDCWD<{ROOT}>, "{name}", O_RDWR|O_CREAT, 0644) = 3<{path}>',
        f'write(3<{path}>, ""..., 6) = 6',
        f'unlink("{name}") = 0',
        f"fsync(3<{path}>(deleted)) = 0",
        f'execve("/srv/anna/{name}", ["{name}", "--password=secret"], 0x7ffe /* 9 vars */) = 0',
        f'openat(AT_FDCWD<{ROOT}>, "/srv/anna/{name}", O_RDONLY) = -1 ENOENT (No such file or directory)',
    ]
    kept = without_names(lines_of(*calls), tmp_path)
    assert kept[-1].split()[:4] == ["#", "6", "0", "0"]
    text = "\n".join(kept)
    assert not any(word in text for word in ("anna", "secret", "ird", "quote", "comma", "there", "rf", "HOME", "run"))
    assert "write(3<t/1>" in text
    assert "unlink(<t/1>)" in text
    assert "fsync(3<t/1>)" in text


def test_pseudonyms_keep_directories_and_kinds(tmp_path: Path) -> None:
    calls = [
        f'mkdir("{ROOT}/a", 0777) = 0',
        f'openat(AT_FDCWD<{ROOT}/a>, "../a/./b", O_RDONLY) = 3<{ROOT}/a/b>',
        f'chdir("{ROOT}/a") = 0',
        'unlink("c") = 0',
        'read(0<pipe:[123]>, "", 10) = 0',
        'read(5<socket:[99]>, "", 10) = 0',
        'read(6</dev/urandom>, ""..., 10) = 10',
        'read(6</proc/self/maps>, ""..., 10) = 10',
        'read(6</dev/shm/x>, ""..., 10) = 10',
        f'rename("{ROOT}/a/b", "c") = 0',
    ]
    text = "\n".join(without_names(lines_of(*calls), tmp_path))
    assert "openat(AT_FDCWD<t/1>, <t/1/2>, O_RDONLY) = 3<t/1/2>" in text
    assert "unlink(<t/1/3>)" in text
    assert "rename(<t/1/2>, <t/1/3>)" in text
    assert [part in text for part in ("0<pipe>", "5<socket>", "6<device>", "6<system>", "6<e/")] == [True] * 5


@pytest.mark.parametrize("awk", ["gawk", "mawk", "busybox awk"])
def test_each_awk_keeps_the_same(awk: str, tmp_path: Path) -> None:
    if not shutil.which(awk.split()[0]):
        pytest.skip(f"no {awk} here")
    strace = written([("write", 3, 5000, None), ("read", 4, 10, 0), ("fsync", 3, 0, None)])
    path = shutil.which(awk.split()[0]) or ""
    kept = without_names(strace.text, tmp_path, awk=" ".join([path, *awk.split()[1:]]))
    assert kept == without_names(strace.text, tmp_path)
    assert len(kept) == 7


def test_lines_that_are_not_understood_are_counted_and_never_kept(tmp_path: Path) -> None:
    text = lines_of(OPEN) + 'strace: Process 9 attached\n7 1700000000.000200 read(3<"/srv/anna) = 5\n'
    kept = without_names(text, tmp_path)
    assert len(kept) == 2
    assert "anna" not in kept[0]
    assert profile_of(kept).seen.unread == 2


def test_a_long_program_is_cut_with_a_note_of_how_much_was_seen(tmp_path: Path) -> None:
    profile = profile_text(lines_of(OPEN, *[R5] * 99), tmp_path, most=50)
    assert (profile.seen.calls, profile.seen.skipped) == (50, 50)
    assert profile.seen.share == pytest.approx(4910 / 9900, abs=1e-3)


@every_row("line", ["what is this", "7 12.5 read(3", "7 12.5 +++ exited", "# 1 2 3"])
def test_a_record_with_another_line_is_refused(line: str) -> None:
    with pytest.raises(ParseError, match="not a system call") as caught:
        read_calls([line])
    assert caught.value.where == "line 1"


def test_a_record_without_its_last_line_was_ended() -> None:
    assert not profile_of([]).seen.is_whole
    assert not read_calls(["7 1.000000 fsync(3<t/1>) = 0 <0.000010>"]).is_whole


# --- further figures --------------------------------------------------------------------------------------------------


def test_calls_under_way_are_counted_over_time(tmp_path: Path) -> None:
    def span(thread: int, begin: int, took: int) -> str:
        return f'{thread} {AT}.{begin:06d} pread64(3{F}, ""..., 10, 0) = 10 <0.{took:06d}>\n'

    text = span(7, 0, 100_000) + span(8, 50_000, 100_000) + span(7, 300_000, 100_000)
    flow = profile_text(text, tmp_path).concurrency
    assert {depth: round(share, 3) for depth, share in flow.shares.items()} == {0: 0.375, 1: 0.5, 2: 0.125}
    assert (flow.most, round(flow.mean, 3), round(flow.busy_share, 3)) == (2, 1.2, 0.625)
    assert math.fsum(flow.course) / len(flow.course) == pytest.approx(0.75)


def test_requests_of_io_submit_are_reads_and_writes_with_offsets(tmp_path: Path) -> None:
    def request(command: str, offset: int) -> str:
        return (
            f"{{aio_data=0, aio_lio_opcode=IOCB_CMD_{command}, aio_fildes=3{F}, aio_buf=0x7f, aio_nbytes=4096, "
            f"aio_offset={offset}}}"
        )

    submit = f"io_submit(0x7fb2, 3, [{request('PREAD', 8192)}, {request('PWRITE', 0)}, {request('PREAD', 0)}]) = 2"
    collect = "io_getevents(0x7fb2, 1, 2, [{data=0, obj=0x7f, res=4096, res2=0}], NULL) = 2"
    direct = OPEN.replace("O_RDWR", "O_RDWR|O_DIRECT")
    profile = profiled(tmp_path, direct, submit, collect)
    assert profile.reads
    assert profile.writes
    assert (profile.reads.calls, profile.reads.direct_share, profile.reads.async_share) == (1, 1.0, 1.0)
    assert profile.points.offset == (8192, 0)
    assert profile.concurrency.requests_most == 2


def test_maps_and_io_uring_are_counted_as_what_cannot_be_seen(tmp_path: Path) -> None:
    calls = [
        f"mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_SHARED, 3{F}, 0) = 0x7f00",
        "mmap(NULL, 4096, PROT_READ, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f01",
        "io_uring_enter(6<anon_inode:[io_uring]>, 4, 0, IORING_ENTER_GETEVENTS, NULL, 0) = 4",
    ]
    hidden = profiled(tmp_path, OPEN, *calls).hidden
    assert (hidden.map_calls, hidden.map_bytes, hidden.shared_maps) == (1, 8192, 1)
    assert (hidden.uring_calls, hidden.uring_requests) == (1, 4)


def test_files_are_counted_by_what_happens_to_them(tmp_path: Path) -> None:
    there = f'openat(AT_FDCWD<{ROOT}>, "old", O_RDWR|O_CREAT, 0644) = 4<{ROOT}/old>'
    calls = [
        OPEN,
        there,
        f'newfstatat(4<{ROOT}/old>, "", {{st_mode=S_IFREG|0644, st_size=70, ...}}, AT_EMPTY_PATH) = 0',
        f'mkdir("{ROOT}/d", 0777) = 0',
        f'openat(AT_FDCWD<{ROOT}>, "d", O_RDONLY|O_DIRECTORY) = 5<{ROOT}/d>',
        f"getdents64(5<{ROOT}/d>, 0x55 /* 2 entries */, 32768) = 48",
        f'rmdir("{ROOT}/d") = 0',
        f'linkat(AT_FDCWD<{ROOT}>, "f", AT_FDCWD<{ROOT}>, "g", 0) = 0',
        f"ftruncate(3{F}, 1000) = 0",
        f'unlink("{ROOT}/none") = -1 ENOENT (No such file or directory)',
    ]
    files = profiled(tmp_path, *calls).files
    assert (files.opened, files.created, files.linked, files.removed) == (2, 1, 1, 0)
    assert (files.directories_made, files.directories_removed) == (1, 1)
    assert (files.sizes.least, files.sizes.most) == (70, 1000)


def test_syncs_of_all_files_count_what_was_written_to_each(tmp_path: Path) -> None:
    other = OPEN.replace("= 3", "= 4").replace('"f"', '"g"').replace("/f>", "/g>")
    calls = [
        f'write(3{F}, ""..., 10) = 10',
        f'write(4<{ROOT}/g>, ""..., 20) = 20',
        f"syncfs(3{F}) = 0",
        f"fsync(3{F}) = 0",
    ]
    syncs = profiled(tmp_path, OPEN, other, *calls).syncs
    assert (syncs.names, syncs.empty, syncs.bytes_between.most) == ({"fsync": 1, "syncfs": 1}, 1, 30)


def test_writes_that_wait_for_the_device_need_no_sync(tmp_path: Path) -> None:
    calls = [OPEN.replace("O_RDWR", "O_RDWR|O_DSYNC"), f'write(3{F}, ""..., 10) = 10', f"fsync(3{F}) = 0"]
    profile = profiled(tmp_path, *calls)
    assert profile.writes
    assert profile.writes.through_share == 1
    assert profile.syncs.empty == 1


def test_think_time_is_the_time_of_a_thread_between_its_calls(tmp_path: Path) -> None:
    assert profiled(tmp_path, OPEN, R5, R5).think_s.median == pytest.approx(90e-6, abs=1e-6)


@every_row(("values", "median", "p90"), [([], 0, 0), ([3], 3, 3), ([1, 2], 1, 2), (list(range(1, 11)), 5, 9)], ids=str)
def test_percentiles_of_a_spread_are_values_of_it(values: list[float], median: float, p90: float) -> None:
    shown = spread(values)
    assert (shown.n, shown.median, shown.p90) == (len(values), median, p90)

"""Profiles of programs that were not made here: what strace recorded of fio, sqlite, git, tar, rsync and Python."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from mountlab.programs import TOOLS
from mountlab.sweep.sweep_file import resolve
from mountlab.tracing.fio_workload import fio_workload
from mountlab.tracing.program import Profile
from mountlab.tracing.program_calls import KINDS
from rows import every_row
from strace_text import ROOT, profile_text

DATA = Path(__file__).parents[1] / "data" / "strace"
NAMES = sorted(file.name.partition(".")[0] for file in DATA.glob("*.gz"))
_WHOLE = re.compile(r"(\w+)\(.*\) += (-?\d+|\?)")
_FIRST = re.compile(rf"\w+\(\d+<{ROOT}/")


def text_of(name: str) -> str:
    return gzip.decompress((DATA / f"{name}.txt.gz").read_bytes()).decode()


@cache
def recorded(name: str, directory: Path) -> Profile:
    return profile_text(text_of(name), directory)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("strace")


def counted(name: str) -> tuple[Counter[str], Counter[str]]:
    """Count the calls by name, and the bytes of reads and writes below the directory, by another way than the
    product's: interrupted calls are put together with a search from the end of the text."""
    calls: Counter[str] = Counter()
    moved: Counter[str] = Counter()
    open_calls: dict[str, str] = {}
    for line in text_of(name).splitlines():
        thread, _, rest = line.split(" ", 2)
        if rest.endswith("<unfinished ...>"):
            open_calls[thread] = rest.removesuffix("<unfinished ...>")
            continue
        if rest.startswith("<... "):
            rest = open_calls.pop(thread) + rest.partition("resumed>")[2]
        if match := _WHOLE.match(rest):
            if match[2] != "?":
                calls[match[1]] += 1
            kind = KINDS.get(match[1])
            if kind in ("read", "write") and _FIRST.match(rest) and int(match[2]) > 0:
                moved[kind] += int(match[2])
    return calls, moved


@pytest.mark.slow
@every_row("name", NAMES)
def test_every_call_and_byte_is_counted_once(name: str, directory: Path) -> None:
    profile, (calls, moved) = recorded(name, directory), counted(name)
    named: Counter[str] = Counter()
    for row in profile.operations:
        named.update({call: count for call, count in row.names.items() if call not in ("io_submit", "mmap")})
    expected = {call: count for call, count in calls.items() if call in KINDS and call not in ("io_submit", "mmap")}
    assert named == expected
    assert profile.seen.unread == 0
    for kind, side in (("read", profile.reads), ("write", profile.writes)):
        by_submit = round(side.async_share * side.calls) * side.sizes[0].size if side else 0
        assert (side.bytes if side else 0) == moved[kind] + by_submit


def test_random_reads_of_fio_come_out_as_such(directory: Path) -> None:
    profile = recorded("fio-randread", directory)
    assert profile.reads
    assert profile.writes is None
    assert (profile.reads.pattern, profile.reads.calls, profile.reads.unique_bytes) == ("random", 512, 2 << 20)
    assert [(size.size, size.calls) for size in profile.reads.sizes] == [(4096, 512)]
    assert (profile.syncs.calls, profile.hidden.unknown_positions, profile.concurrency.movers) == (0, 0, 1)
    assert fio_workload(profile).options == {"tool": "fio", "rw": "randread", "bs": "4096B", "size": "2097152B"}


def test_depth_direct_and_syncs_of_fio_come_out_as_they_were_asked_for(directory: Path) -> None:
    profile = recorded("fio-aio-write", directory)
    assert profile.writes
    assert (profile.writes.pattern, profile.writes.calls) == ("random", 128)
    assert (profile.writes.direct_share, profile.writes.async_share, profile.writes.files) == (1.0, 1.0, 2)
    assert (profile.syncs.names, profile.syncs.writes_between.most) == ({"fdatasync": 30}, 4)
    options = fio_workload(profile).options
    expected = {"rw": "randwrite", "bs": "8192B", "numjobs": 2, "iodepth": 8, "direct": True, "fdatasync": 4}
    assert options.items() >= {**expected, "io_size": f"{512 * 1024}B"}.items()


def test_a_mix_of_fio_has_its_sizes_and_syncs(directory: Path) -> None:
    profile = recorded("fio-mix", directory)
    assert profile.reads
    assert profile.writes
    assert {size.size for size in profile.reads.sizes} == {4096, 16384}
    assert (profile.reads.pattern, profile.writes.pattern) == ("sequential", "sequential")
    assert (profile.syncs.writes_between.median, profile.files.created) == (8, 1)  # and one after the file is laid out
    assert profile.writes.again_share > 0  # the file was laid out before


def test_sqlite_syncs_its_journal_and_its_database_in_each_transaction(directory: Path) -> None:
    profile = recorded("sqlite", directory)
    assert profile.syncs.names == {"fdatasync": 4 * 11}
    assert (profile.files.created, profile.files.removed, profile.files.opened) == (12, 11, 12 + 1)
    assert profile.concurrency.processes == 12
    assert profile.concurrency.movers == 1


def test_git_renames_what_it_has_written(directory: Path) -> None:
    files = recorded("git", directory).files
    assert files.linked + files.renamed > 7  # an object of each file, tree and commit, and what locks protect
    assert files.mapped > 0
    assert files.directories_made > 10


def test_tar_writes_what_it_has_read(directory: Path) -> None:
    profile = recorded("tar", directory)
    assert profile.reads
    assert profile.writes
    assert profile.files.created == 7
    assert profile.files.sizes.most > 210_000
    assert (profile.reads.pattern, profile.writes.pattern) == ("sequential", "sequential")
    assert profile.reads.unique_bytes == profile.reads.bytes


def test_rsync_writes_each_file_once(directory: Path) -> None:
    profile = recorded("rsync", directory)
    assert profile.writes
    assert profile.writes.unique_bytes == profile.writes.bytes == 210_000
    assert (profile.files.read, profile.files.written) == (6, 6)


def test_descriptors_of_python_share_positions_as_they_should(directory: Path) -> None:
    profile = recorded("python", directory)
    assert profile.writes
    assert profile.reads
    assert (profile.writes.calls, profile.writes.bytes, profile.writes.threads) == (80, 80_000, 4)
    assert (profile.syncs.names, profile.syncs.writes_between.least) == ({"fsync": 4}, 20)
    offsets = [at for at, is_write in zip(profile.points.offset, profile.points.is_write, strict=True) if not is_write]
    assert offsets == [0, 500, 1000, 1500, 19_900]
    assert (profile.concurrency.threads, profile.concurrency.processes) == (6, 2)


@every_row("name", NAMES)
def test_the_workload_of_fio_is_one_that_a_sweep_takes(name: str, directory: Path) -> None:
    workload = fio_workload(recorded(name, directory))
    raw = {
        "name": "s", "question": "?", "box": "local", "filesystems": {"tmpfs": {"type": "tmpfs", "size": "64MiB"}},
        "workloads": {"fio-it": workload.options},
    }  # fmt: skip
    (read,) = resolve(raw, where="s.yml").sweep.workloads
    assert TOOLS["fio"].space_bytes(read) > 0
    assert workload.not_carried[-1].startswith("Never carried over")

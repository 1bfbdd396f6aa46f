"""The state of file systems, from recorded output: e2fsprogs 1.47, xfsprogs 6.1 and btrfs-progs 6.2, and older ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mountlab.core.errors import ParseError
from mountlab.filesystems.state_evidence import FreeSpace, StateEvidence, read_made, read_state

DATA = Path(__file__).parents[1] / "data" / "state"
MOUNTED = "==> df <==\n/dev/loop0 1000 800 200 80% /srv/bench\n==> files <==\n3\n"
MADE = (
    "capacity 473296896\nfill 0.8016\nfiles 981\nwritten 1350897664\nage 2.854\nrounds 106\nlargest 59162112\nseed 7\n"
    "digest 45e4ffcb\n"
)
OLD_E2FREEFRAG = """\
==> e2freefrag <==
Device: /dev/sdb1
Blocksize: 4096 bytes
Total blocks: 1504085
Free blocks: 292995 (19.5%)

Min. free extent: 4 KB
Max. free extent: 24008 KB
Avg. free extent: 252 KB

HISTOGRAM OF FREE EXTENT SIZES:
Extent Size Range :  Free extents   Free Blocks  Percent
    4K...    8K-  :           704           704     0.2%
    8K...   16K-  :           810          1979     0.7%
   16K...   32K-  :           843          4467     1.5%
   32K...   64K-  :           579          6263     2.1%
   64K...  128K-  :           493         11067     3.8%
  128K...  256K-  :           394         18097     6.2%
  256K...  512K-  :           281         25477     8.7%
  512K... 1024K-  :           253         44914    15.3%
    1M...    2M-  :           143         51897    17.7%
    2M...    4M-  :            73         50683    17.3%
    4M...    8M-  :            37         52417    17.9%
    8M...   16M-  :             7         19028     6.5%
   16M...   32M-  :             1          6002     2.0%
"""
"""Of the manual page of e2freefrag(8), which has no number of extents."""


def recorded(kind: str, when: str) -> StateEvidence:
    return read_state(*((DATA / f"{kind}-{when}-{part}.txt").read_text() for part in ("mounted", "unmounted")))


@pytest.mark.parametrize(
    ("kind", "fill", "files", "extents_per_file", "extents", "mean_kib"),
    [
        ("ext4", 0.8016, 981, 1.0195, 458, 280),
        ("xfs", 0.8005, 816, 1.0025, 253, 119.648 * 4),
        ("btrfs", 0.7959, 942, 1.0512, 295, 311.6),
    ],
)
def test_an_aged_file_system(
    kind: str, fill: float, files: int, extents_per_file: float, extents: int, mean_kib: float
) -> None:
    """Where a tool prints the mean or the number itself, it is the same."""
    state = recorded(kind, "aged")
    assert state.fill == pytest.approx(fill, abs=1e-4)
    assert state.files == files
    assert state.extents_per_file == pytest.approx(extents_per_file, abs=1e-4)
    assert state.free is not None
    assert state.free.extents == extents
    assert state.free.mean_bytes / 1024 == pytest.approx(mean_kib, rel=0.01)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_a_fresh_file_system_has_one_piece_for_each_group(kind: str) -> None:
    state = recorded(kind, "fresh")
    assert (state.files, state.extents, state.extents_per_file, state.fragmented_share) == (0, {}, None, None)
    assert state.fill < 0.1
    assert state.free is not None
    assert state.free.extents < 30


def test_an_older_e2freefrag_that_prints_no_number_of_extents() -> None:
    state = read_state(MOUNTED, OLD_E2FREEFRAG)
    assert state.free == FreeSpace(292995 * 4096, 4618)
    assert state.free.mean_bytes / 1024 == pytest.approx(252, rel=0.01)


def test_metadata_of_btrfs_is_no_free_space_for_data() -> None:
    """The third block group is for data and metadata together, as mixed file systems have them."""
    chunks = "".join(
        f"\titem 1 key (FIRST_CHUNK_TREE CHUNK_ITEM {start}) itemoff 16105 itemsize 80\n"
        f"\t\tlength 8388608 owner 2 stripe_len 65536 type {kind}\n"
        for start, kind in ((1, "METADATA|DUP"), (2, "DATA|single"), (3, "DATA|METADATA"))
    )
    space = "".join(
        f"\titem 0 key ({start} FREE_SPACE_INFO 4194304) itemoff 16275 itemsize 8\n"
        f"\t\tfree space info extent count {count} flags 0\n"
        for start, count in ((1, 100), (2, 20), (3, 3), (4, 1000))
    )
    usage = "==> btrfs-usage <==\nData,single: Size:1000, Used:400 (40.00%)\n"
    state = read_state(MOUNTED + usage, f"==> btrfs-chunks <==\n{chunks}==> btrfs-free-space <==\n{space}")
    assert state.free == FreeSpace(600, 23)


def test_free_space_of_f2fs_is_what_its_table_of_segments_leaves() -> None:
    assert read_state(MOUNTED, "==> f2fs-free <==\n97608 4\n").free == FreeSpace(97608 * 4096, 4)
    assert read_state(MOUNTED, "==> f2fs-free <==\n").free is None


def test_a_full_file_system_has_no_free_extent() -> None:
    text = "==> xfs-blocksize <==\nblocksize = 4096\n==> xfs-freesp <==\ntotal free extents 0\ntotal free blocks 0\n"
    free = read_state(MOUNTED, text).free
    assert free is not None
    assert free.mean_bytes == 0.0


def test_without_a_program_the_figures_of_it_are_missing() -> None:
    state = read_state(MOUNTED, "")
    assert (state.fill, state.files, state.extents_per_file, state.free) == (0.8, 3, None, None)


@given(st.dictionaries(st.integers(1, 1000), st.integers(1, 1000), min_size=1, max_size=20))
def test_extents_of_a_sample(extents: dict[int, int]) -> None:
    rows = "\n".join(f"{number:7} {count}" for count, number in extents.items())
    state = read_state(f"{MOUNTED}==> extents <==\n{rows}\n", "")
    files = [count for count, number in extents.items() for _ in range(number)]
    assert state.extents_per_file == pytest.approx(sum(files) / len(files))
    assert state.fragmented_share == pytest.approx(sum(count > 1 for count in files) / len(files))


def test_what_is_cut_short_is_an_error() -> None:
    with pytest.raises(ParseError, match="the use of space is missing"):
        read_state("==> df <==\n", "")


def test_what_age_sh_prints() -> None:
    made = read_made(MADE)
    assert (made.capacity_bytes, made.fill, made.files, made.written_bytes) == (473296896, 0.8016, 981, 1350897664)
    assert (made.age, made.rounds, made.seed, made.digest) == (2.854, 106, 7, "45e4ffcb")


@pytest.mark.parametrize("line", MADE.splitlines()[:6])
def test_a_line_that_is_missing_is_an_error(line: str) -> None:
    with pytest.raises(ParseError, match=r"age\.sh did not print what it made"):
        read_made(MADE.replace(f"{line}\n", ""))

"""What developers do with a source tree: make it, copy it, search it, look at each file, `git status`, remove it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from mountlab.core.model import FILES, Program, Target, Workload, everywhere
from mountlab.core.options import Option
from mountlab.core.units import KIB
from mountlab.tools.base import Written
from mountlab.tools.operations import COLD, OperationsTool, operations_option

Quantiles = tuple[tuple[int, int], ...]
"""Pairs of thousandths and a value."""
LINUX_SIZES: Quantiles = (
    (0, 0), (10, 73), (50, 254), (100, 446), (200, 959), (300, 1621), (400, 2525), (500, 3874), (600, 5910),
    (700, 9044), (800, 14833), (900, 28759), (950, 48093), (980, 83945), (990, 124858), (995, 191202), (998, 402767),
    (1000, 402767),
)  # fmt: skip
"""Sizes of the 78,579 files of Linux 6.1.192, as kernel.org publishes it: mean 16.5 kB, without the largest 2 in 1000
12.1 kB. Those are cut off here, so that one of them does not decide a trial."""
LINUX_ROOMS: Quantiles = (
    (0, 0), (100, 1), (200, 2), (300, 3), (400, 4), (500, 6), (600, 8), (700, 11), (800, 18), (900, 32), (950, 52),
    (980, 104), (990, 156), (995, 210), (998, 328), (1000, 328),
)  # fmt: skip
"""Files in each of its 5,096 directories: 15.4 on average. (Each directory has eight others below it: so its files are
3.7 directories deep on average, as there.)"""
_ORDER = ("make", "git-status", "copy", "grep", "stat", "remove")
_MARKED_EVERY, _MARKED_RANK, _MARKED_LEAST = 10, 5, 64
"""By the rank of its size one file of ten has the line that grep looks for, where it has that many bytes."""
_BLOCK_BYTES = 4 * KIB
TEXT = Written("text of some forty words, as source files are", True)
_GIT = Program(name="git", packages=everywhere("git"), version=("git", "--version"))


class Amounts(NamedTuple):
    """What a tree holds, whatever its seed."""

    size: int
    """Bytes of all files."""
    blocks: int
    """Bytes of the blocks that hold them."""
    marked: int
    """Files in which grep finds its word."""


class Tree(OperationsTool):
    """A source tree of text files, with the sizes and directories of the source of Linux 6.1. Up to six operations:

    - make: `tar` unpacks the tree, which `awk` writes into a pipe meanwhile; then the file system is flushed.
    - git-status: `git status` of the tree after a commit, which is not measured. It finds no change.
    - copy: `cp -R` within the file system, by reading and writing (`--reflink=never`), and a flush.
    - grep: `grep -rF` for a word that is in one of ten files.
    - stat: `find` hands all files to `stat`.
    - remove: `rm -rf` of the tree, and a flush. (Flushes are `sync -f`.)

    `file_rate` is files by time, which compares trees of different numbers of files; `elapsed` without a label is the
    time of all operations. Each block has another tree: the same sizes in other directories, and other text. A trial
    fails where files, bytes or matches are not those of its tree. The programs' own time is a part of each figure: on
    tmpfs, with two processors, make took 37 us a file, copy 34, grep 24, stat 5 and remove 9.
    """

    name = "tree"
    order = _ORDER
    amount, noun = "files", "files"
    script = "tree.sh"
    loads = ("sh", "awk", "tr", "sync", "stat", "rm", "wc", "date")
    programs: tuple[Program, ...] = (
        Program(name="tar", packages=everywhere("tar"), version=("tar", "--version")),
        Program(name="cp", packages=everywhere("coreutils"), version=("cp", "--version")),
        Program(name="find", packages=everywhere("findutils"), version=("find", "--version")),
        Program(name="grep", packages=everywhere("grep"), version=("grep", "--version")),
    )
    options: Mapping[str, Option] = {
        "files": Option(kind="int", help="how many files the tree has, up to 1000000; 10000 hold 125 MB"),
        "operations": operations_option(
            [name for name in _ORDER if name != "git-status"],
            "which are measured, with blanks between; git-status where the box has git. The tree is made in any case",
        ),
        "cache": COLD,
    }
    reserved: Mapping[str, str] = {
        "seed": "each block has a seed of its own; -p seed=... repeats those of a run",
    }
    longer = "more files"

    def programs_for(self, workload: Workload) -> tuple[Program, ...]:
        return (*self.programs, _GIT) if "git-status" in self.measured(workload) else self.programs

    def arguments(self, workload: Workload, output: str) -> tuple[str, ...]:
        return tables()

    def expected_counts(self, workload: Workload) -> Mapping[str, tuple[int, ...]]:
        files = int(workload.options["files"])
        amounts = amounts_of(files)
        whole = (files, amounts.size)
        changed = 0
        return {
            **dict.fromkeys(("make", "copy", "stat"), whole),
            "git-status": (changed, files),
            "grep": (amounts.marked,),
            "remove": (0,),
        }

    def space_bytes(self, workload: Workload, target: Target = FILES) -> int:
        """Return the space for the tree and its copy, in whole blocks; and for inodes, names and git's index."""
        files, measured = int(workload.options["files"]), self.measured(workload)
        return amounts_of(files).blocks * (2 if "copy" in measured else 1) + KIB * files + 16 * _BLOCK_BYTES

    def written(self, workload: Workload) -> Written:
        return TEXT


def tables() -> tuple[str, str]:
    """Return what source_tree.sh takes for the sizes of files, and for their number in a directory."""
    sizes, rooms = (" ".join(f"{at}:{value}" for at, value in table) for table in (LINUX_SIZES, LINUX_ROOMS))
    return sizes, rooms


@lru_cache
def amounts_of(files: int) -> Amounts:
    """Return what a tree of so many files holds: source_tree.sh computes the same sizes."""
    sizes = list(_sizes(files))
    blocks = sum(math.ceil(size / _BLOCK_BYTES) for size in sizes) * _BLOCK_BYTES
    marked = sum(size >= _MARKED_LEAST for size in sizes[_MARKED_RANK::_MARKED_EVERY])
    return Amounts(sum(sizes), blocks, marked)


def _sizes(files: int) -> Iterator[int]:
    """Yield the sizes of all files, the least first: quantiles of LINUX_SIZES, rounded down."""
    pieces = pairwise(LINUX_SIZES)
    (low_at, low), (high_at, high) = next(pieces)
    for rank in range(files):
        permille = (2 * rank + 1) * 1000 / (2 * files)
        while high_at < permille:
            (low_at, low), (high_at, high) = next(pieces)
        yield int(low + (high - low) * (permille - low_at) / (high_at - low_at))

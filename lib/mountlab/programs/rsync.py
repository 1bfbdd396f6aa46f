"""rsync: a source tree copied from memory into the file system, copied again, and again after a change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mountlab.core.errors import ParameterError
from mountlab.core.model import FILES, Program, Scalar, Target, Workload, everywhere
from mountlab.core.options import Option
from mountlab.core.units import KIB, parse_percent
from mountlab.programs.send import RSYNC
from mountlab.programs.tree import TEXT, amounts_of, tables
from mountlab.tools.base import Manner, Written
from mountlab.tools.operations import COLD, OperationsTool, operations_option
from mountlab.tools.words import option_words

_ORDER = ("first", "unchanged", "changed")
CHANGE_BYTES = len("int changed;\n")
"""The line that a changed file ends with."""
_FORMS = {"inplace": "--inplace", "fsync": "--fsync"}


class Rsync(OperationsTool):
    """The tree of the tool `tree`, made in the box's memory, is copied with `rsync -a` into a directory of the file
    system, and the file system flushed (`sync -f`):

    - first: all files are new.
    - unchanged: nothing has changed. rsync compares names, sizes and times of all files.
    - changed: a share of the files, `change`, has a line more at its end.

    `file_rate` is all files of the tree by time, also where few were sent; `elapsed` without a label is the time of all
    copies. The time of rsync itself is a part of each figure. A trial fails where rsync sends another number of files
    than have changed, or where the checksum of the copy is not that of the tree. Between directories of a machine rsync
    sends whole files by itself. With `whole_file: false` it reads both sides to find what differs.
    """

    name = "rsync"
    order = _ORDER
    amount, noun = "files", "files"
    script = "rsync.sh"
    loads = ("sh", "awk", "tr", "tar", "sync", "date")
    programs: tuple[Program, ...] = (
        RSYNC,
        Program(name="find", packages=everywhere("findutils"), version=("find", "--version")),
    )
    options: Mapping[str, Option] = {
        "files": Option(kind="int", help="how many files the tree has, up to 1000000; 10000 hold 125 MB"),
        "operations": operations_option(
            _ORDER, "which copies are measured, with blanks between; the first two are made"
        ),
        "change": Option(kind="text", default="2%", help="the share of the files that changes before the last copy"),
        "whole_file": Option(
            kind="flag", default=1, help="send whole files (--whole-file); false: what differs (--no-whole-file)"
        ),
        "inplace": Option(
            kind="flag", default=0, help="write into the file itself, not into a new one that replaces it (--inplace)"
        ),
        "fsync": Option(kind="flag", default=0, help="flush each file (--fsync), which takes rsync 3.2.4 or later"),
        "cache": replace(COLD, help=f"{COLD.help}. The tree itself is in memory in any case"),
    }
    reserved: Mapping[str, str] = {
        "seed": "each block has a seed of its own; -p seed=... repeats those of a run",
        "source": "Mountlab makes the tree, so that its copies can be checked",
        "delete": "nothing is removed from the tree",
        "checksum": "it would read all files of both sides each time",
    }
    longer = "more files"

    def check(self, options: Mapping[str, Scalar], *, where: str) -> None:
        super().check(options, where=where)
        share = parse_percent(options["change"], where=f"{where}.change")
        if not 0 < share <= 1:
            raise ParameterError(
                "rsync cannot change this share of the files",
                where=f"{where}.change",
                got=str(options["change"]),
                allowed="more than 0 %, at most 100 %",
            )

    def arguments(self, workload: Workload, output: str) -> tuple[str, ...]:
        options = workload.options
        whole = "--whole-file" if options["whole_file"] else "--no-whole-file"
        words = " ".join((whole, *option_words(options, _FORMS)))
        return (*tables(), f"{output}.data", str(_changed(workload)), words)

    def expected_counts(self, workload: Workload) -> Mapping[str, tuple[int, ...]]:
        files, changed = int(workload.options["files"]), _changed(workload)
        size = amounts_of(files).size
        return {"first": (files, size), "unchanged": (0, size), "changed": (changed, size + CHANGE_BYTES * changed)}

    def source_bytes(self, workload: Workload) -> int:
        """Return the memory for the tree."""
        return amounts_of(int(workload.options["files"])).blocks

    def space_bytes(self, workload: Workload, target: Target = FILES) -> int:
        """Return the space for the copy in whole blocks, with a block more for each file that changes."""
        files = int(workload.options["files"])
        return amounts_of(files).blocks + KIB * files + 4 * KIB * (_changed(workload) + 16)

    def written(self, workload: Workload) -> Written:
        return TEXT

    def manner(self, workload: Workload) -> Manner:
        return Manner(engine="rsync", depth="1", jobs="1")


def _changed(workload: Workload) -> int:
    return max(1, round(parse_percent(workload.options["change"]) * int(workload.options["files"])))

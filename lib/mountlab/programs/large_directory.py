"""Very many names in one directory: created, listed, looked up and removed."""

from __future__ import annotations

from collections.abc import Mapping

from mountlab.core.model import FILES, Program, Target, Workload, everywhere
from mountlab.core.options import Option
from mountlab.tools.base import Written
from mountlab.tools.operations import COLD, OperationsTool, operations_option

_ORDER = ("create", "list", "stat", "remove")
_LS = Program(name="ls", packages=everywhere("coreutils"), version=("ls", "--version"))
_LISTING_LS = Program(
    name="ls", packages=_LS.packages, version=_LS.version, busybox_lacks="-f, which lists names without looking them up"
)
_LISTED_BYTES = 8
"""Of a name in the list, with its newline."""
_HELD_BYTES = 600
"""Of a name and its inode: XFS takes 530, btrfs 350 twice over, ext4 has its inodes in tables from the start."""


class LargeDirectory(OperationsTool):
    """One directory with 10^5 to 10^6 empty files, whose names are numbers of seven digits. Four operations:

    - create: `touch` makes the files, in an order of numbers that leaps about, another one in each block; then the file
      system is flushed (`sync -f`).
    - list: `ls -f` reads the names, and looks none up.
    - stat: `stat` looks up each name, in the order of the names.
    - remove: `rm -rf`, and a flush.

    `file_rate` is names by time; `elapsed` without a label is the time of all operations. A trial in which a name is
    not found again fails. The programs' own time is a part of each figure: on tmpfs, with two processors, create took
    5 us a name, list 0.6, stat 2.5 and remove 4.
    """

    name = "large-directory"
    order = _ORDER
    amount, noun = "names", "names"
    script = "large_directory.sh"
    loads = ("sh", "awk", "sync", "touch", "wc", "stat", "rm", "date")
    programs: tuple[Program, ...] = (
        _LS,
        Program(name="xargs", packages=everywhere("findutils"), version=("xargs", "--version")),
    )
    options: Mapping[str, Option] = {
        "names": Option(kind="int", help="how many names are created in the directory, up to 1000000"),
        "operations": operations_option(
            _ORDER, "which are measured, with blanks between; files are created in any case, and stay without remove"
        ),
        "cache": COLD,
    }
    reserved: Mapping[str, str] = {
        "seed": "each block has a seed of its own; -p seed=... repeats those of a run",
    }
    longer = "more names"

    def programs_for(self, workload: Workload) -> tuple[Program, ...]:
        ls, *others = self.programs
        return (_LISTING_LS if "list" in self.measured(workload) else ls, *others)

    def arguments(self, workload: Workload, output: str) -> tuple[str, ...]:
        return (f"{output}.data",)

    def expected_counts(self, workload: Workload) -> Mapping[str, tuple[int, ...]]:
        names = int(workload.options["names"])
        return {"create": (names,), "list": (names,), "stat": (names,), "remove": (0,)}

    def source_bytes(self, workload: Workload) -> int:
        return _LISTED_BYTES * int(workload.options["names"])

    def space_bytes(self, workload: Workload, target: Target = FILES) -> int:
        return _HELD_BYTES * int(workload.options["names"])

    def written(self, workload: Workload) -> Written:
        return Written("nothing: the files are empty", False)

"""reflink: clones of a file that share its blocks, and what the first overwrite of a clone costs."""

from __future__ import annotations

from collections.abc import Mapping

from mountlab.core.errors import ParameterError
from mountlab.core.model import FILES, Measurement, Program, Scalar, Target, Workload, everywhere
from mountlab.core.options import Option
from mountlab.core.resolution import Step
from mountlab.core.units import KIB
from mountlab.programs.dd import Dd, Summary, read_summaries
from mountlab.tools import own_script
from mountlab.tools.base import CACHE, GUESSED_BYTES_PER_S, Command, Manner, Tool, ToolOutput, Written, check_cache

SCRIPT = "reflink.sh"
DATA_FILE = ".data"
"""Behind the name of the output directory, as that of dd: trial.sh removes it."""
CANNOT = ("ext2", "ext3", "ext4", "tmpfs", "ramfs", "hugetlbfs", "pmfs", "raw")
"""File systems whose files share no blocks. Others are tried on the box."""
CLONES = Program(name="cp", packages=everywhere("coreutils"), version=("cp", "--version"))
PASSES = ("first", "second")
_LARGEST_SHARE_BYTES = 128 * KIB
"""xfs may set aside as much for each block that it unshares (cowextsize)."""
_MOST: dict[str, int] = {"clones": 1000, "blocks": 10_000}


class Reflink(Tool):
    """Clones a file of seeded bytes `clones` times by `cp --reflink=always`, overwrites `blocks` blocks of one clone,
    overwrites the same blocks once more, and deletes the clones. On btrfs, and on xfs made with reflink=1.

    `clone` and `delete` are one clone with a flush of the file system, on average, with the start of cp or rm.
    The first overwrite unshares the blocks; the second one of the same blocks is the contrast: what is slower in the
    first is the cost of sharing. dd times both: with `order: random` each block by a dd of its own, with fsync; with
    `sequential` all blocks from the first on by one dd, with one fsync. Data is copied from a file in the box's
    memory. The clones must hold the blocks of the source in common, and overwriting one must leave the others alone.
    """

    name = "reflink"
    programs: tuple[Program, ...] = (CLONES, *Dd.programs)
    options: Mapping[str, Option] = {
        "size": Option(kind="size", help="the file that is cloned"),
        "clones": Option(kind="int", default=10, help="how many clones are made"),
        "bs": Option(kind="size", default=4 * KIB, help="bytes of one overwritten block"),
        "blocks": Option(kind="int", default=500, help="blocks of the first clone that are overwritten"),
        "order": Option(
            kind="choice",
            choices=("random", "sequential"),
            default="random",
            help="blocks all over the file, with an fsync after each; or from its beginning on, with one at the end",
        ),
        "cache": CACHE,
    }
    reserved: Mapping[str, str] = {"directory": "Mountlab names the directory, so that nothing else is cloned"}
    clock_s = 1e-6
    longer = "more clones and blocks"
    steps: Mapping[str, Step] = {"bytes": Step(absolute=1)}
    gives: tuple[str, ...] = (
        "operation_latency", "operation_latency_max", "write_bandwidth", "elapsed", "bytes",
    )  # fmt: skip

    def check(self, options: Mapping[str, Scalar], *, where: str) -> None:
        self.check_given(options, {"size": "text with a unit, such as '64MiB'"}, where=where)
        size, bs = int(options["size"]), int(options["bs"])
        for name, most in _MOST.items():
            if not 1 <= int(options[name]) <= most:
                raise ParameterError(
                    "reflink cannot do this", where=f"{where}.{name}", got=str(options[name]), allowed=f"1 to {most}"
                )
        if not bs or bs % (4 * KIB):
            raise ParameterError(
                "reflink overwrites whole blocks",
                where=f"{where}.bs",
                got=f"{bs} B",
                allowed="a multiple of 4KiB: of a smaller block the file system reads the rest first",
            )
        if size % bs or size < int(options["blocks"]) * bs:
            raise ParameterError(
                "the file is too small for what is overwritten, or not of whole blocks",
                where=f"{where}.size",
                got=f"{size} B",
                allowed=f"a multiple of bs ({bs} B), at least blocks times bs ({int(options['blocks']) * bs} B)",
            )
        check_cache(options, reads=False, where=where)

    def refuses(self, kind: str, workload: Workload) -> str | None:
        if kind not in CANNOT:
            return None
        return f"files of {kind} cannot share blocks; measure btrfs, or xfs made with reflink=1"

    def command(self, workload: Workload, directory: str, output: str, target: Target = FILES) -> Command:
        options = workload.options
        sizes = (directory, f"{output}{DATA_FILE}", *(str(options[name]) for name in ("size", "bs", "blocks")))
        how = (str(options["clones"]), str(options["order"]), output)
        return own_script.Script(SCRIPT, CLONES.name, sizes, how).command(output, target, self.cache_of(workload))

    def parse(self, workload: Workload, output: ToolOutput) -> list[Measurement]:
        """Return times and rates. Raises ToolError unless the clones shared blocks, and only one was overwritten."""
        self.check_exit(output, output.stderr)
        options, notes = workload.options, own_script.read_notes(self.name, output.stdout)
        size, clones, blocks = (int(options[name]) for name in ("size", "clones", "blocks"))
        notes.require("bytes of the file and of its clone", notes.numbers("size", 2), [size, size])
        before, shared = notes.numbers("used", 2)
        grown, most = shared - before, clones * size // 2
        notes.require("bytes that the clones take", grown, f"less than {most}: they share blocks", good=grown < most)
        words = " ".join(notes.of("sums")).split()
        notes.require("checksums", len(words), 4)
        laid_out, source, overwritten, other = words
        notes.require("the file after its clone was overwritten", source, laid_out)
        notes.require("the overwritten clone", overwritten, "another checksum", good=overwritten != laid_out)
        if clones > 1:
            notes.require("the last clone", other, laid_out)
        each = 1 if options["order"] == "random" else blocks
        passes = {name: self._read_pass(output, name, blocks // each, each * int(options["bs"])) for name in PASSES}
        rows = [row for name, runs in passes.items() for row in _measure(runs, f"{name} overwrite")]
        cloned, deleted = notes.timing("clone", 1), notes.timing("delete", 1)
        spent = own_script.elapsed(cloned, deleted)
        took = spent.value + sum(run.seconds for runs in passes.values() for run in runs)
        return [
            *cloned.rows("clone", done=clones),
            *deleted.rows("delete", done=clones),
            *rows,
            Measurement(metric="elapsed", value=took, unit="s", step=spent.step),
            Measurement(metric="bytes", label="write", value=2.0 * blocks * int(options["bs"]), unit="B"),
        ]

    def _read_pass(self, output: ToolOutput, name: str, count: int, copied: int) -> list[Summary]:
        """Return the summary of each run of dd. Raises ToolError where these are others."""
        runs = read_summaries(output.files.get(name, ""))
        got = {run.copied for run in runs}
        notes = own_script.Notes(self.name, (), {})
        notes.require(f"runs of dd in the {name} overwrite", len(runs), count)
        notes.require(f"bytes of each run in the {name} overwrite", got, {copied})
        return runs

    def space_bytes(self, workload: Workload, target: Target = FILES) -> int:
        options = workload.options
        bs, blocks, size = (int(options[name]) for name in ("bs", "blocks", "size"))
        return size + 2 * blocks * bs + min(size, blocks * _LARGEST_SHARE_BYTES)

    def source_bytes(self, workload: Workload) -> int:
        return (int(workload.options["blocks"]) + 1) * int(workload.options["bs"])

    def expected_s(self, workload: Workload) -> float:
        options = workload.options
        blocks, clones = int(options["blocks"]), int(options["clones"])
        runs = 2 * (blocks if options["order"] == "random" else 1)
        return 1.5 + 3 * int(options["size"]) / GUESSED_BYTES_PER_S + clones * 0.05 + runs * 2 * own_script.PROCESS_S

    def written(self, workload: Workload) -> Written:
        return Written(own_script.DATA, False)

    def manner(self, workload: Workload) -> Manner:
        return Manner(engine=str(workload.options["order"]), depth="1", jobs="1")

    def main_metrics(self, workload: Workload) -> tuple[str, ...]:
        return ("operation_latency", "write_bandwidth")


def _measure(runs: list[Summary], label: str) -> list[Measurement]:
    """Return the rate of one pass of overwrites, and where each block has its own fsync its latencies."""
    times = own_script.Timed(tuple(run.seconds for run in runs), sum(run.step_s for run in runs) / len(runs))
    bandwidth = times.rate(label, sum(run.copied for run in runs), "write_bandwidth")
    return [bandwidth, *(times.rows(label) if len(runs) > 1 else [])]

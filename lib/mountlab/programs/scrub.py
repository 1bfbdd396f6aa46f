"""scrub: errors planted on a device below a file system: what is served, found and repaired."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mountlab.core.array import Array
from mountlab.core.errors import ParameterError
from mountlab.core.model import FILES, Filesystem, Measurement, Program, Scalar, Target, Workload
from mountlab.core.options import Option
from mountlab.core.redundancy import plain_devices
from mountlab.core.resolution import Step
from mountlab.core.shell import script_text
from mountlab.core.units import SECTOR_BYTES
from mountlab.programs.dd import Dd
from mountlab.programs.degrade import DATA_FILE, LAYERS
from mountlab.tools import own_script
from mountlab.tools.base import CACHE, GUESSED_BYTES_PER_S, Command, Manner, Tool, ToolOutput, Written
from mountlab.tools.own_script import BLOCK_BYTES, Notes

SCRIPT = "scrub.sh"
_MOST_ERRORS = 1000
_GUESSED_S = 10.0


class Scrub(Tool):
    """Overwrites `errors` blocks of a file on one device below the file system, behind its back. Then it reads the
    file, scrubs, and reads the file again, each time from the device.

    Each block of 4 KiB begins with words by which it is found on the device. The scrub is `btrfs scrub`, `zpool
    scrub`, or of an array of md `check` and then `repair`. On other file systems, and on raid0, there is none: nothing
    is found.

    `blocks` counts those that are not right: `wrong before` and `wrong after` are served without an error, `refused
    before` and `refused after` give an I/O error; `unrepaired` are wrong on the device at the end. `operations` counts
    what is `found`, as the system says: blocks (btrfs), checksums (ZFS: one a record), or the blocks that md compares
    at a time (of raid1 64 KiB). btrfs and ZFS repair what they read: `healed` blocks are right on the device before
    the scrub, which does not find them. `repaired` are right at the end. A `repair` of md makes copies alike, and does
    not know which was right: it may spread an error. `elapsed` is the time of the first reading and of the scrub.
    """

    name = "scrub"
    programs: tuple[Program, ...] = Dd.programs
    options: Mapping[str, Option] = {
        "size": Option(kind="size", help="the file whose blocks are overwritten"),
        "errors": Option(kind="int", default=10, help="how many blocks of 4 KiB are overwritten on the device"),
        "member": own_script.MEMBER,
        "cache": replace(CACHE, default="cold"),
    }
    reserved: Mapping[str, str] = {"device": "only devices that this run has made or claimed are overwritten"}
    clock_s = 1e-6
    longer = "a larger size"
    changes_devices = True
    provokes = r"BTRFS \w+ \(device .*(csum|checksum|read error corrected|fixed up error|unable to fixup|errs:)"
    steps: Mapping[str, Step] = {"blocks": Step(absolute=1), "operations": Step(absolute=1)}
    gives: tuple[str, ...] = ("blocks", "operations", "operation_latency", "bandwidth", "elapsed")

    def check(self, options: Mapping[str, Scalar], *, where: str) -> None:
        self.check_given(options, {"size": "text with a unit, such as '64MiB'"}, where=where)
        own_script.check_member(self.name, options, where)
        size, errors = int(options["size"]), int(options["errors"])
        most = min(_MOST_ERRORS, size // BLOCK_BYTES)
        if not 1 <= errors <= most:
            raise ParameterError(
                f"{self.name} cannot plant so many errors",
                where=f"{where}.errors",
                got=str(errors),
                allowed=f"1 to {most}: the blocks of the file, and {_MOST_ERRORS} at most",
            )
        if options["cache"] != "cold":
            raise ParameterError(
                "memory holds the blocks as they were before the errors",
                where=f"{where}.cache",
                got=repr(options["cache"]),
                allowed="cold, which is the default",
            )

    def refuses_place(self, fs: Filesystem, workload: Workload) -> str | None:
        array = plain_devices(fs)
        if isinstance(array, str):
            return array
        member = str(workload.options["member"])
        if member.isdecimal() and int(member) > array.count:
            return f"{fs.name} has no device {member}: member is first, last, or 1 to {array.count}"
        return None

    def command(self, workload: Workload, directory: str, output: str, target: Target = FILES) -> Command:
        options = workload.options
        array = target.array or Array("device", (), "-", "-")
        places = {"first": 1, "last": array.count}
        member = str(places.get(str(options["member"]), options["member"]))
        blocks = str(int(options["size"]) // BLOCK_BYTES)
        place = (array.kind, array.run_dir, array.uuid, member)
        common = (directory, f"{output}{DATA_FILE}", blocks, *place, str(options["errors"]))
        script = own_script.Script(SCRIPT, Dd.programs[0].name, common, (output,), beside={LAYERS: script_text(LAYERS)})
        return script.command(output, target, self.cache_of(workload))

    def parse(self, workload: Workload, output: ToolOutput) -> list[Measurement]:
        """Return counts and times. Raises ToolError unless all errors were planted and all blocks were looked at."""
        self.check_exit(output, output.stderr)
        options, notes = workload.options, own_script.read_notes(self.name, output.stdout)
        errors, blocks = int(options["errors"]), int(options["size"]) // BLOCK_BYTES
        notes.require("planted errors", notes.numbers("planted", 1), [errors])
        before, after = (_counts(notes, name, blocks) for name in ("before", "after"))
        healed, repaired = (_counts(notes, name, errors)[0] for name in ("healed", "repaired"))
        (found,) = notes.numbers("found", 1)
        counts = {
            "planted": errors, "wrong before": before[1], "refused before": before[2], "unrepaired": errors - repaired,
            "wrong after": after[1], "refused after": after[2],
        }  # fmt: skip
        timings = [notes.timing("read", 1)]
        rows = list[Measurement]()
        for name in ("check", "repair"):
            if name in notes.timed:
                timings.append(notes.timing(name, 1))
                rows += timings[-1].rows(name)
        if "check" in notes.timed:
            (sectors,) = notes.numbers("scanned", 1)
            rows.append(timings[1].rate("check", sectors * SECTOR_BYTES))
        done = {"found": found, "healed": healed, "repaired": repaired}
        return [
            *(Measurement(metric="blocks", label=name, value=float(n), unit="1") for name, n in counts.items()),
            *(Measurement(metric="operations", label=name, value=float(n), unit="1") for name, n in done.items()),
            *rows,
            own_script.elapsed(*timings),
        ]

    def space_bytes(self, workload: Workload, target: Target = FILES) -> int:
        return int(workload.options["size"]) + own_script.POOL_BYTES

    def expected_s(self, workload: Workload) -> float:
        writes = 3 * int(workload.options["errors"]) * own_script.PROCESS_S
        return _GUESSED_S + writes + 4 * int(workload.options["size"]) / GUESSED_BYTES_PER_S

    def written(self, workload: Workload) -> Written:
        return Written("letters by a seed, which only compression by entropy makes smaller", None)

    def manner(self, workload: Workload) -> Manner:
        return Manner(engine="scrub", depth="", jobs="1")

    def main_metrics(self, workload: Workload) -> tuple[str, ...]:
        """Counts of blocks are 0 on one side or the other, and have no ratio: sentences state them (damage.py)."""
        return ("elapsed",)


def _counts(notes: Notes, name: str, blocks: int) -> list[int]:
    """Return how many blocks are right, wrong and refused. Raises ToolError unless that is all of them."""
    counts = notes.numbers(name, 3)
    notes.require(f"blocks, {name}", sum(counts), blocks)
    return counts

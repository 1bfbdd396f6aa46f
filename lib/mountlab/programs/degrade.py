"""degrade: a member of an array is lost, files are read and overwritten meanwhile, and the array is made whole."""

from __future__ import annotations

from collections.abc import Mapping

from mountlab.core.array import Array
from mountlab.core.errors import ParameterError
from mountlab.core.model import FILES, Filesystem, Measurement, Program, Scalar, Target, Workload
from mountlab.core.options import Option
from mountlab.core.redundancy import redundant_array
from mountlab.core.resolution import Step
from mountlab.core.shell import script_text
from mountlab.core.units import MIB, SECTOR_BYTES
from mountlab.programs.dd import Dd
from mountlab.tools import own_script
from mountlab.tools.base import CACHE, GUESSED_BYTES_PER_S, Command, Manner, Tool, ToolOutput, Written
from mountlab.tools.own_script import Notes, Timed

SCRIPT = "degrade.sh"
LAYERS = "layer.sh"
"""What takes a member out of an array that this run has made, and gives it back."""
DATA_FILE = ".data"
"""Behind the name of the output directory, as that of dd: trial.sh removes it."""
_STATES = ("healthy", "degraded")
_TICKS_PER_S = 100
"""Of /proc/uptime."""
_LOOKED_AT_BYTES = MIB
"""What the box itself may read of a lost disk, to see what is on it."""
_GUESSED_REBUILD_S = 10.0


class Degrade(Tool):
    """Takes one member out of an array of md (raid1, 4, 5, 6, 10) or a pool of ZFS (mirrors, raidz), and gives it
    back. Reads one file and overwrites it with a flush while all is `healthy`; then does this to another file of the
    same size while it is `degraded`. `rebuild` is the time from the command that gives the member back until the
    array is whole.

    The member is failed and removed (md), or taken offline (ZFS). With `back: replaced` it comes back as a new, blank
    disk, and is filled as a whole (md), or with what is in use (ZFS). With `returned` it comes back as it was: only
    what was written meanwhile is copied, which md knows by its bitmap alone. `bandwidth` of the rebuild is what was
    written to the member by its time. Nothing else runs meanwhile.

    The kernel bounds a rebuild: of md by sync_speed_max of the array or /proc/sys/dev/raid/speed_limit_max, of ZFS by
    its parameters zfs_scan_* and zfs_resilver_*. Their values are in `limits` of the raw output. Files are read and
    written by dd, from the first byte to the last, and its start is in the time. Both files are read for the first
    time, and so from the devices with `cache: cold`. The array must be whole before, degraded in between, with no
    write to the lost member, and whole at the end; the files must have their checksums.
    """

    name = "degrade"
    programs: tuple[Program, ...] = Dd.programs
    options: Mapping[str, Option] = {
        "size": Option(kind="size", help="each of two files: one for the healthy array, one for the degraded one"),
        "member": own_script.MEMBER,
        "back": Option(
            kind="choice",
            choices=("replaced", "returned"),
            default="replaced",
            help="whether it comes back as a new, blank disk, or as it was; md needs `bitmap: internal` for the latter",
        ),
        "cache": CACHE,
    }
    reserved: Mapping[str, str] = {"device": "only devices that this run has made or claimed are taken away"}
    clock_s = 1e-6
    longer = "a larger size"
    changes_devices = True
    provokes = r"\bmd/raid\S* (Disk failure on|Operation continuing on) "
    steps: Mapping[str, Step] = {"bytes": Step(absolute=1)}
    gives: tuple[str, ...] = (
        "read_bandwidth", "write_bandwidth", "operation_latency", "bandwidth", "elapsed", "bytes",
    )  # fmt: skip

    def check(self, options: Mapping[str, Scalar], *, where: str) -> None:
        self.check_given(options, {"size": "text with a unit, such as '64MiB'"}, where=where)
        own_script.check_member(self.name, options, where)
        if options.get("cache") == "warm":
            raise ParameterError(
                "reads from memory say nothing about a degraded array",
                where=f"{where}.cache",
                got="'warm'",
                allowed="cold or as_is",
            )

    def refuses(self, kind: str, workload: Workload) -> str | None:
        return "a raw device has no files" if kind == "raw" else None

    def refuses_place(self, fs: Filesystem, workload: Workload) -> str | None:
        array = redundant_array(fs)
        if isinstance(array, str):
            return array
        member = str(workload.options["member"])
        if member.isdecimal() and int(member) not in array.members:
            numbers = ", ".join(map(str, array.members))
            return f"device {member} is none whose loss {fs.name} survives: member is first, last, or one of {numbers}"
        bitmap = fs.stack[0].options.get("bitmap") if array.kind == "md" else "internal"
        if workload.options["back"] == "returned" and bitmap != "internal":
            return (
                "md takes a member back as it was by its bitmap: give its layer bitmap: internal, or say back: replaced"
            )
        return None

    def command(self, workload: Workload, directory: str, output: str, target: Target = FILES) -> Command:
        options = workload.options
        array = target.array or Array("md", (1,), "-", "-")
        places = {"first": array.members[0], "last": array.members[-1]}
        member = str(places.get(str(options["member"]), options["member"]))
        common = (directory, f"{output}{DATA_FILE}", str(options["size"]), array.run_dir, array.uuid, member)
        script = own_script.Script(
            SCRIPT, Dd.programs[0].name, common, (str(options["back"]), output), beside={LAYERS: script_text(LAYERS)}
        )
        return script.command(output, target, self.cache_of(workload))

    def parse(self, workload: Workload, output: ToolOutput) -> list[Measurement]:
        """Return rates and the time of the rebuild. Raises ToolError unless a member was lost and came back."""
        self.check_exit(output, output.stderr)
        size, notes = int(workload.options["size"]), own_script.read_notes(self.name, output.stdout)
        rebuilt = _check_states(notes, size)
        rows, timings = list[Measurement](), list[Timed]()
        for state in _STATES:
            for side in ("read", "write"):
                timings.append(notes.timing(f"{side}_{state}", 1))
                rows.append(timings[-1].rate(state, size, f"{side}_bandwidth"))
        rebuild = notes.timing("rebuild", 1)
        not_yet, whole = notes.numbers("ended", 2)
        rebuild = Timed(rebuild.seconds, rebuild.step_s + (whole - not_yet) / _TICKS_PER_S)
        moved = 2.0 * size
        return [
            *rows,
            *rebuild.rows("rebuild"),
            rebuild.rate("rebuild", rebuilt),
            own_script.elapsed(*timings, rebuild),
            *(Measurement(metric="bytes", label=side, value=moved, unit="B") for side in ("read", "write")),
        ]

    def space_bytes(self, workload: Workload, target: Target = FILES) -> int:
        """Return the space of both files, and of one that is written elsewhere before the old one is given up."""
        return 3 * int(workload.options["size"]) + own_script.POOL_BYTES

    def source_bytes(self, workload: Workload) -> int:
        return int(workload.options["size"])

    def expected_s(self, workload: Workload) -> float:
        return 2.0 + 6 * int(workload.options["size"]) / GUESSED_BYTES_PER_S + _GUESSED_REBUILD_S

    def written(self, workload: Workload) -> Written:
        return Written(own_script.DATA, False)

    def manner(self, workload: Workload) -> Manner:
        return Manner(engine="dd", depth="1", jobs="1")

    def main_metrics(self, workload: Workload) -> tuple[str, ...]:
        return ("operation_latency", "read_bandwidth", "write_bandwidth")


def _check_states(notes: Notes, size: int) -> int:
    """Return the bytes that were written to the member that came back. Raises ToolError unless the array was whole,
    then degraded, and whole again, the lost member was not used, and no file is other than it should be."""
    notes.require("bytes of the files", notes.numbers("sizes", 2), [size, size])
    for state in ("state_healthy", "state_whole"):
        notes.require(state, notes.of(state), ["whole"])
    for state in ("state_degraded", "state_still"):
        (text,) = notes.of(state) or [""]
        notes.require(state, text, "degraded", good=text.startswith("degraded"))
    notes.require("checksums of the files that were read", notes.of("served"), notes.of("laid"))
    notes.require("files that were read", len(notes.of("served")), 2)
    notes.require("different checksums of overwritten files", len({*notes.of("kept")}), 1)
    notes.require("files with the data of the overwrites", len(notes.of("kept")), 3)
    before, after, blank, rebuilt = (notes.numbers(name, 2) for name in ("before", "after", "blank", "rebuilt"))
    notes.require("sectors written to the lost member", after[1] - before[1], 0)
    looked_at = (after[0] - before[0]) * SECTOR_BYTES
    notes.require("bytes read from the lost member", looked_at, "none", good=looked_at < min(_LOOKED_AT_BYTES, size))
    filled = (rebuilt[1] - blank[1]) * SECTOR_BYTES
    notes.require("bytes written to the member that came back", filled, "more than 0", good=filled > 0)
    return filled

"""snapshot: what snapshots of a changing volume cost, and how soon the space of deleted ones is back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mountlab.core.errors import ParameterError
from mountlab.core.model import FILES, Measurement, Program, Scalar, Target, Workload
from mountlab.core.options import Option
from mountlab.core.resolution import Step
from mountlab.core.units import KIB
from mountlab.tools import own_script
from mountlab.tools.base import CACHE, GUESSED_BYTES_PER_S, Command, Manner, Tool, ToolOutput, Written, check_cache
from mountlab.tools.own_script import BTRFS, ZFS

SCRIPT = "snapshot.sh"
KINDS: Mapping[str, Program] = {"btrfs": BTRFS, "zfs": ZFS}
"""File systems whose snapshots the tool knows, with their program. Their commands are functions at the head of
snapshot.sh."""
_MOST_SNAPSHOTS = 1000
_MOST_LIMIT_S = 3600


class Snapshot(Tool):
    """Takes `snapshots` read-only snapshots of a volume of seeded files. A share of these, `change`, is overwritten
    before each, and once more after the last. Then it lists them, deletes all, and waits until their space is back.
    On btrfs and zfs.

    The overwritten files are flushed before the clock starts. `create` is one snapshot with a commit after it, on
    average; `list` is all, warm; `delete` is one command that deletes all and commits once, divided by their number.
    `space back` counts from the beginning of that command, until the used space of the file system has fallen by 90 %
    of what only snapshots held. Meanwhile the file system is asked to commit again and again; with `free: wait` it is
    left alone, and a commit interval (btrfs: 30 s, zfs: 5 s) may pass. On zfs the volume is a dataset of its own below
    that of the file system, with its properties. Each time includes the start of the program. Where the
    space is not back within `limit`, the trial fails. Each snapshot must still hold what its volume held.
    """

    name = "snapshot"
    programs: tuple[Program, ...] = (BTRFS,)
    """Of every box; zfs is needed on a file system of that type."""
    options: Mapping[str, Option] = {
        "size": Option(kind="size", help="all files together"),
        "file_size": Option(kind="size", default=64 * KIB, help="each file; a change overwrites whole files"),
        "snapshots": Option(kind="int", default=10, help="how many are taken"),
        "change": Option(kind="text", default="2%", help="the share of the files that is overwritten before each"),
        "free": Option(
            kind="choice",
            choices=("sync", "wait"),
            default="sync",
            help="whether the file system is asked to commit while its space is waited for",
        ),
        "limit": Option(kind="duration", default=60.0, help="how long the space is waited for"),
        "cache": CACHE,
    }
    reserved: Mapping[str, str] = {"directory": "Mountlab names the directory, so that nothing else is snapshotted"}
    clock_s = 1e-6
    longer = "more snapshots"
    steps: Mapping[str, Step] = {}
    gives: tuple[str, ...] = ("operation_latency", "operation_latency_max", "elapsed")

    def check(self, options: Mapping[str, Scalar], *, where: str) -> None:
        self.check_given(options, {"size": "text with a unit, such as '64MiB'"}, where=where)
        own_script.check_tree(self.name, options, where)
        for name, most, unit in (("snapshots", _MOST_SNAPSHOTS, ""), ("limit", _MOST_LIMIT_S, " s")):
            if not 1 <= float(options[name]) <= most:
                raise ParameterError(
                    f"{self.name} cannot do this",
                    where=f"{where}.{name}",
                    got=f"{float(options[name]):g}{unit}",
                    allowed=f"1{unit} to {most}{unit}",
                )
        check_cache(options, reads=False, where=where)

    def refuses(self, kind: str, workload: Workload) -> str | None:
        if kind in KINDS:
            return None
        return f"{kind} has no snapshots that this tool can take; measure {', '.join(KINDS)}, or exclude this"

    def programs_on(self, fstype: str, workload: Workload) -> tuple[Program, ...]:
        """A directory may lie on btrfs: there the box has to try."""
        return (KINDS.get(fstype, BTRFS),)

    def command(self, workload: Workload, directory: str, output: str, target: Target = FILES) -> Command:
        options = workload.options
        sizes = (directory, str(options["size"]), str(options["file_size"]))
        amounts = (str(options["snapshots"]), str(own_script.changed_files(options)))
        waiting = (str(options["free"]), f"{float(options['limit']):.0f}")
        (program,) = self.programs_on(target.fstype, workload)
        script = own_script.Script(SCRIPT, program.name, sizes, (*amounts, *waiting))
        return script.command(output, target, self.cache_of(workload))

    def parse(self, workload: Workload, output: ToolOutput) -> list[Measurement]:
        """Return the time of each operation. Raises ToolError unless all snapshots were made, kept and deleted."""
        self.check_exit(output, output.stderr)
        options, notes = workload.options, own_script.read_notes(self.name, output.stdout)
        snapshots = int(options["snapshots"])
        files = int(options["size"]) // int(options["file_size"])
        notes.require("files and bytes", notes.numbers("content", 2), [files, int(options["size"])])
        notes.require("snapshots in the list", notes.numbers("listed", 1), [snapshots])
        notes.require("witnesses of snapshots", len(notes.of("kept")), snapshots)
        for line in notes.of("kept"):
            number, taken, kept, now = [*line.split(), "", "", "", ""][:4]
            notes.require(f"a file of snapshot {number}", kept, taken)
            changed = now not in ("", taken)
            notes.require(f"the same file of the volume, after snapshot {number}", now, "another sum", good=changed)
        notes.require("snapshots after deletion", notes.numbers("left", 1), [0])
        created, listed = notes.timing("create", snapshots), notes.timing("list", 1)
        deleted, back = notes.timing("delete", 1), notes.timing("space_back", 1)
        (looks,) = notes.numbers("looks", 1)
        between_looks_s = max(0.0, sum(back.seconds) - sum(deleted.seconds)) / max(1, looks)
        return [
            *created.rows("create"),
            *listed.rows("list"),
            *deleted.rows("delete", done=snapshots),
            *replace(back, step_s=back.step_s + between_looks_s).rows("space back"),
            own_script.elapsed(created, listed, back),  # in which the deletion is
        ]

    def space_bytes(self, workload: Workload, target: Target = FILES) -> int:
        options = workload.options
        changed = own_script.changed_files(options) * int(options["file_size"])
        return int(options["size"]) + (int(options["snapshots"]) + 2) * changed + own_script.POOL_BYTES

    def expected_s(self, workload: Workload) -> float:
        waiting = 30.0 if workload.options["free"] == "wait" else 0.1
        files = own_script.changed_files(workload.options)
        rounds = int(workload.options["snapshots"]) * (0.04 + files * own_script.PROCESS_S)
        return 1.0 + self.space_bytes(workload) / GUESSED_BYTES_PER_S + rounds + waiting

    def written(self, workload: Workload) -> Written:
        return Written(own_script.DATA, False)

    def manner(self, workload: Workload) -> Manner:
        return Manner(engine="snapshot", depth="1", jobs="1")

    def main_metrics(self, workload: Workload) -> tuple[str, ...]:
        return ("operation_latency",)

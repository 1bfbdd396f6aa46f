"""send: a backup of a tree of files, whole and then of what has changed, by btrfs send, zfs send or rsync."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from mountlab.core.errors import ParameterError, ParseError
from mountlab.core.model import FILES, Measurement, Program, Scalar, Target, Workload, everywhere
from mountlab.core.options import Option
from mountlab.core.resolution import Step
from mountlab.core.units import KIB
from mountlab.tools import own_script
from mountlab.tools.base import CACHE, GUESSED_BYTES_PER_S, Command, Manner, Tool, ToolOutput, Written
from mountlab.tools.own_script import BTRFS, ZFS, Notes

SCRIPT = "send.sh"
RSYNC = Program(name="rsync", packages=everywhere("rsync"), version=("rsync", "--version"))
SENDERS: Mapping[str, Program] = {"btrfs": BTRFS, "zfs": ZFS}
"""File systems that send, with the program that does it."""
_COPIES: tuple[tuple[Literal["first", "second"], str], ...] = (("first", "full"), ("second", "incremental"))
"""The state that is copied, and what the copy of it is called."""
_TRANSFERRED = "Number of regular files transferred: "


class Send(Tool):
    """Copies a tree of seeded files to another place of the same file system, overwrites `change` of it, and copies
    what has changed. `via: send` pipes `btrfs send` into `btrfs receive`, or `zfs send` into `zfs receive`, or with
    `to: null` into `wc`; `via: rsync` runs `rsync -a` on any file system. On zfs source and copy are datasets of their
    own below that of the file system, with its properties; the stream holds records as they are without compression.

    `full` and `incremental` are the time of a copy with a flush of the file system, and the bytes of the files that
    are copied by that time. The snapshot or flush of the source before each is not timed. The first copy reads from
    the device, unless `cache` says something else; the changed files are in memory. A copy must have the files, bytes
    and checksum of its source, and rsync must send as many files as have changed.
    """

    name = "send"
    programs: tuple[Program, ...] = (BTRFS,)
    """Of every box; rsync and zfs are needed where a workload, or a file system, says so."""
    options: Mapping[str, Option] = {
        "via": Option(kind="choice", choices=("send", "rsync"), help="the file system's own send, or rsync"),
        "size": Option(kind="size", help="all files together"),
        "file_size": Option(kind="size", default=64 * KIB, help="each file; a change overwrites whole files"),
        "change": Option(kind="text", default="2%", help="the share of the files that is overwritten between copies"),
        "to": Option(
            kind="choice",
            choices=("directory", "null"),
            default="directory",
            help="where copies go: to another directory; or, of send, nowhere: the stream is counted only",
        ),
        "cache": CACHE,
    }
    reserved: Mapping[str, str] = {"directory": "Mountlab names both directories, so that nothing else is overwritten"}
    clock_s = 1e-6
    longer = "a larger size"
    steps: Mapping[str, Step] = {"bytes": Step(absolute=1)}
    gives: tuple[str, ...] = ("operation_latency", "bandwidth", "elapsed", "bytes")

    def check(self, options: Mapping[str, Scalar], *, where: str) -> None:
        needed = {"via": "send (btrfs, zfs) or rsync", "size": "text with a unit, such as '64MiB'"}
        self.check_given(options, needed, where=where)
        own_script.check_tree(self.name, options, where)
        if options["via"] == "rsync" and options["to"] == "null":
            raise ParameterError(
                "rsync copies to a directory", where=f"{where}.to", got="'null'", allowed="directory; null with send"
            )

    def refuses(self, kind: str, workload: Workload) -> str | None:
        if workload.options["via"] == "rsync" or kind in SENDERS:
            return None
        return f"{kind} cannot send; write via: rsync, or measure {' or '.join(SENDERS)}"

    def programs_for(self, workload: Workload) -> tuple[Program, ...]:
        return (RSYNC,) if workload.options["via"] == "rsync" else self.programs

    def programs_on(self, fstype: str, workload: Workload) -> tuple[Program, ...]:
        """A directory may lie on btrfs: there the box has to try."""
        if workload.options["via"] == "rsync":
            return (RSYNC,)
        return (SENDERS.get(fstype, BTRFS),)

    def command(self, workload: Workload, directory: str, output: str, target: Target = FILES) -> Command:
        options = workload.options
        program = self.programs_on(target.fstype, workload)[0].name
        sizes = (directory, str(options["size"]), str(options["file_size"]))
        how = (str(own_script.changed_files(options)), str(options["to"]), output)
        fill = ("find", f"{directory}/source", "-type", "f", "-exec", "cat", "{}", "+")
        script = own_script.Script(SCRIPT, program, sizes, how)
        return script.command(output, target, self.cache_of(workload), fill=(fill,))

    def parse(self, workload: Workload, output: ToolOutput) -> list[Measurement]:
        """Return time and rate of both copies. Raises ToolError unless each is what its source was."""
        self.check_exit(output, output.stderr)
        options, notes = workload.options, own_script.read_notes(self.name, output.stdout)
        file_size = int(options["file_size"])
        files, changed = int(options["size"]) // file_size, own_script.changed_files(options)
        rows, sums, timings = list[Measurement](), set[str](), list[own_script.Timed]()
        for (state, label), copied in zip(_COPIES, (files, changed), strict=True):
            sums.add(_check_copy(notes, state, files, file_size, copied, str(options["to"])))
            if options["via"] == "rsync":
                sent = _read_transferred(output.files.get(f"rsync.{state}", ""))
                notes.require(f"files that rsync sent, {label}", sent, copied)
            timings.append(notes.timing(label, 1))
            rows += [*timings[-1].rows(label), timings[-1].rate(label, copied * file_size)]
        notes.require("states of the source that differ", len(sums), 2)
        moved = float((files + changed) * file_size)
        sides = ("read", "write") if options["to"] == "directory" else ("read",)
        return [
            *rows,
            own_script.elapsed(*timings),
            *(Measurement(metric="bytes", label=side, value=moved, unit="B") for side in sides),
        ]

    def space_bytes(self, workload: Workload, target: Target = FILES) -> int:
        """Return the space of the source and its copy; what was overwritten stays in the first snapshots of both."""
        options = workload.options
        changed = own_script.changed_files(options) * int(options["file_size"])
        return (1 + (options["to"] == "directory")) * (int(options["size"]) + changed) + own_script.POOL_BYTES

    def expected_s(self, workload: Workload) -> float:
        changed = own_script.changed_files(workload.options) * own_script.PROCESS_S
        return 1.5 + 3 * self.space_bytes(workload) / GUESSED_BYTES_PER_S + changed

    def written(self, workload: Workload) -> Written:
        return Written(own_script.DATA, False)

    def manner(self, workload: Workload) -> Manner:
        return Manner(engine=str(workload.options["via"]), depth="1", jobs="1")

    def main_metrics(self, workload: Workload) -> tuple[str, ...]:
        return ("operation_latency",)


def _check_copy(notes: Notes, state: str, files: int, file_size: int, copied: int, to: str) -> str:
    """Return the checksum of a state of the source. Raises ToolError unless its copy is the same, or its stream holds
    what there was to copy."""
    size = files * file_size
    (*amount, checksum) = " ".join(notes.of(state)).split() or [""]
    notes.require(f"files and bytes of the {state} state", amount, [str(files), str(size)])
    if to == "directory":
        notes.require(f"the copy of the {state} state", notes.of(f"copy_{state}"), [f"{files} {size} {checksum}"])
    else:
        (stream,) = notes.numbers(f"stream_{state}", 1)
        least = copied * file_size
        notes.require(f"bytes of the stream of the {state} state", stream, f"{least} or more", good=stream >= least)
    return checksum


def _read_transferred(text: str) -> int:
    """Return how many files rsync says that it sent. Raises ParseError where it does not say so."""
    words = [line.removeprefix(_TRANSFERRED) for line in text.splitlines() if line.startswith(_TRANSFERRED)]
    if len(words) != 1 or not words[0].strip().isdecimal():
        raise ParseError("rsync's statistics cannot be read", got=text.strip()[:120] or "nothing", allowed=_TRANSFERRED)
    return int(words[0])

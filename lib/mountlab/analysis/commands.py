"""The commands of a run, alike where they differ only in what each trial or mount has of its own.

That is named by a placeholder: the trial's directory and its output, the seed; the run's directory, the device, the
UUID of a file system.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mountlab.analysis.run_view import RunView
from mountlab.core.model import Workload
from mountlab.core.run_info import RunInfo
from mountlab.filesystems.making import RanCommand, Setup
from mountlab.fio.seeds import layout_of

DIRECTORY, OUTPUT, SEED, LAYOUT_SEED = "{directory}", "{output}", "{seed}", "{layout_seed}"
RUN, DEVICE, UUID = "{run}", "{device}", "{uuid}"
MEANINGS: Mapping[str, str] = {
    DIRECTORY: "the trial's own directory on the file system under test",
    OUTPUT: "the trial's own directory for what its tool writes, which is not on the file system under test",
    SEED: "the seed of the trial, in trials.csv",
    LAYOUT_SEED: "a seed drawn from that of the trial",
    RUN: "the run's directory on the box",
    DEVICE: "the device of the mount",
    UUID: "an identity that marks the file system as Mountlab's, new for each mount",
}
_PLACEHOLDER = re.compile("|".join(map(re.escape, MEANINGS)))
_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


@dataclass(frozen=True)
class CellCommand:
    """A command, and the cells of one workload that ran it."""

    workload: Workload
    argv: tuple[str, ...]
    before: tuple[RanCommand, ...]
    trials: Mapping[str, tuple[int, int]]
    """File system to how many of its trials of this workload ran it, and how many there are with a command."""


def cell_commands(run: RunView) -> list[CellCommand]:
    """Return every command that trials ran, workloads in the order of the sweep."""
    counts: dict[str, dict[_Command, Counter[str]]] = {workload.label: {} for workload in run.sweep.workloads}
    for row in run.trials.to_dict("records"):
        record = run.records.get(row["trial_id"])
        if record and record.argv:
            general = _Placeholders.of(row, run.info)
            before = tuple(RanCommand(command.why, general(command.argv)) for command in record.before)
            label = run.sweep.combinations[row["cell"]].workload.label
            counts[label].setdefault((general(record.argv), before), Counter())[row["filesystem"]] += 1
    commands = []
    for workload in run.sweep.workloads:
        by_command = counts[workload.label]
        total = sum(by_command.values(), Counter[str]())
        for (argv, before), trials in by_command.items():
            shares = {name: (count, total[name]) for name, count in trials.items()}
            commands.append(CellCommand(workload, argv, before, shares))
    return commands


_Command = tuple[tuple[str, ...], tuple[RanCommand, ...]]
"""Its words, and the commands before it."""


@dataclass(frozen=True)
class _Placeholders:
    """Puts placeholders into the words of a trial's commands."""

    trial_id: str
    output: str
    """'' where it is not known."""
    seed: int | None

    @staticmethod
    def of(row: Mapping[Any, Any], info: RunInfo) -> _Placeholders:
        root = info.facts.storage.output_root
        output = f"{root}/{info.run_id}/{row['trial_id']}" if root else ""
        seed = row.get("seed")
        return _Placeholders(str(row["trial_id"]), output, None if seed is None or seed != seed else int(seed))

    def __call__(self, argv: Sequence[str]) -> tuple[str, ...]:
        return tuple(self._word(word) for word in argv)

    def _word(self, word: str) -> str:
        text = word.replace(self.output, OUTPUT) if self.output else word
        text = re.sub(rf"(?<![\w.}}-])/[^\s'\"=,;]*/{re.escape(self.trial_id)}(?![\w-])", DIRECTORY, text)
        if self.seed is not None:
            text = re.sub(rf"seed={self.seed}\b", f"seed={SEED}", text)
            text = re.sub(rf"seed={layout_of(self.seed)}\b", f"seed={LAYOUT_SEED}", text)
        return text


def general(text: str, setup: Setup, info: RunInfo) -> str:
    """Return a command of a mount with placeholders for what is that mount's alone."""
    root = info.facts.storage.mount_root
    for path, placeholder in (
        (f"{root}/{info.run_id}" if root else "", RUN),
        (f"/dev/{setup.devices[0].name}" if setup.devices else "", DEVICE),
    ):
        text = re.sub(rf"{re.escape(path)}(?!\w)", placeholder, text) if path else text
    return _UUID.sub(UUID, text)


def general_mountinfo(setup: Setup, info: RunInfo) -> str:
    """Return a line of mountinfo without what differs from mount to mount by itself: its own number and that of its
    parent, the number of the device (proc(5))."""
    return general(" ".join(setup.mountinfo.split(" ")[3:]), setup, info)


def line(argv: Sequence[str]) -> str:
    """Return a command as a shell takes it, but for its placeholders."""
    words = []
    for word in argv:
        rest = _PLACEHOLDER.sub("x", word)
        words.append(word if shlex.quote(rest) == rest else shlex.quote(word))
    return " ".join(words)


def used(texts: Sequence[str]) -> dict[str, str]:
    """Return the placeholders in some texts, with what they stand for."""
    return {name: meaning for name, meaning in MEANINGS.items() if any(name in text for text in texts)}

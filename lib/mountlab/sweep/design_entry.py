"""The `design` of a sweep file: from what YAML gives to a Design, strictly."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, Field

from mountlab.core.errors import ParameterError
from mountlab.core.model import Design
from mountlab.core.units import LEVELS, TimeText, parse_seconds
from mountlab.sweep.until_entry import UntilFile, read_until
from mountlab.sweep.validated import AS_SHARE, File

LONGEST_TRIAL_S = 7 * 24 * 3600.0
LEAST_SAMPLE_S = 0.1
MOST_DIAGNOSTIC, LEAST_DIAGNOSTIC, USUAL_DIAGNOSTIC = 50, 2, 5
"""Diagnostic blocks: of one alone nothing tells how much the parts of a latency vary."""


class DesignFile(File):
    """The `design` section of a sweep file."""

    sections: ClassVar[dict[str, type[BaseModel]]] = {"until": UntilFile}

    repeats: Annotated[int, Field(ge=1, le=10_000)] = 5
    """How many blocks are counted: every block holds each cell once. Not together with `until`."""
    until: UntilFile | None = None
    """In the place of `repeats`: blocks go on until the figures are precise."""
    seed: Annotated[int, Field(ge=0)] | None = None
    """Of the order of trials. Without it one is drawn, shown by the plan and kept in `run.json`."""
    warmup: Annotated[int, Field(ge=0, le=100)] = 1
    """Blocks that are run first, kept and marked, and not counted."""
    fresh_filesystem: Literal["block", "cell", "never"] = "block"
    """How often a file system is made: in each block, before each trial, or once for the whole run."""
    drop_caches: bool = True
    """Whether the box's page cache is emptied before each trial whose workload says nothing else (`cache`)."""
    level: Annotated[float, AS_SHARE, Field(ge=LEVELS[0], le=LEVELS[1])] = 0.95
    """Of the intervals, as a share: 0.95 or `95%`. Under `until` its `confidence` takes this place."""
    estimate: Literal["mean", "median", "geometric", "harmonic"] = "mean"
    """How the trials of a cell are summed up: [which is for what](../../METHODS.md#estimates)."""
    smallest_effect: Annotated[float, AS_SHARE, Field(ge=0, lt=1)] = 0.02
    """The smallest difference that matters to you, as a share: from 1/1.02 to 1.02 counts as the same."""
    on_ineffective: Literal["error", "caveat"] = "error"
    """What a mount option, mkfs option or tunable is that the kernel ignored or changed: its trials fail, or a caveat
    tells."""
    shortest_trial: TimeText = "1s"
    """A caveat tells where trials measured for less. `0s` switches it off."""
    trial_timeout: TimeText = "10min"
    """A trial that runs longer is stopped. It is a timeout: worse than every trial that ended."""
    retries: Annotated[int, Field(ge=0, le=10)] = 1
    """How often a trial is tried again at once that failed for a reason that may pass: it was killed, memory ran
    out, or a client was lost. A timeout is never repeated. Two trials of a cell in a row that fail so in every attempt,
    or one that fails for another reason, set the cell aside: it has no more trials."""
    sample_every: TimeText | Literal[False] = "100ms"
    """How often the box's counters are read while a tool runs, for the figures over time: at most ten times a second,
    and half as often after each hundred times. `false`: never."""
    explain: bool | Annotated[int, Field(ge=0, le=MOST_DIAGNOSTIC)] = False
    """Diagnostic blocks after all others: each cell is run again while the kernel is traced, for the section Why of the
    report. `true` means 5, a number from 2 to 50 so many, `false` and 0 none. These trials are never counted, and the
    order of the others is the same without them. What it takes on the box: docs/why.md."""
    profile: bool = False
    """Whether each cell is run once more, after all others and never counted, while strace records its system calls:
    for the section about what the program does, of any tool. What it takes on the box: docs/why.md."""
    strict: bool = False
    """Makes warnings errors: foreseen, the plan is refused (exit code 2); found, the run ends with exit code 1."""


def read_design(file: DesignFile, baseline: str | None, where: str) -> Design:
    """Return the design that a file asks for. Raises ParameterError."""
    timeout = parse_seconds(file.trial_timeout, where=f"{where}: design.trial_timeout")
    if not 0 < timeout <= LONGEST_TRIAL_S:  # timeout(1) takes 0 for no limit at all
        raise ParameterError(
            "a trial needs some time, and an end",
            where=f"{where}: design.trial_timeout",
            got=file.trial_timeout,
            allowed="more than 0s, at most 168h",
        )
    shortest = parse_seconds(file.shortest_trial, where=f"{where}: design.shortest_trial")
    if shortest > timeout:
        raise ParameterError(
            "no trial could be long enough",
            where=f"{where}: design.shortest_trial",
            got=file.shortest_trial,
            allowed=f"at most the trial_timeout, {file.trial_timeout}; 0s for no limit",
        )
    read = {
        **file.model_dump(exclude={"shortest_trial", "trial_timeout", "sample_every", "until", "explain"}),
        "shortest_trial_s": shortest,
        "trial_timeout_s": timeout,
        "sample_every_s": _sample_every(file, f"{where}: design.sample_every"),
        "explain": diagnostic_blocks(file.explain, f"{where}: design.explain"),
    }
    if file.until is None:
        return Design(**read)
    if "repeats" in file.model_fields_set:
        raise ParameterError(
            "both repeats and until say how many blocks there are",
            where=f"{where}: design",
            got=f"repeats: {file.repeats} and until",
            allowed="one of them",
            next_step="-p until=null drops the rule, -p repeats=null the number",
        )
    until = read_until(file.until, baseline=baseline, where=f"{where}: design.until")
    if "level" in file.model_fields_set and file.level != until.confidence:
        raise ParameterError(
            "level and until.confidence are one thing here",
            where=f"{where}: design.level",
            got=f"{file.level:g}",
            allowed=f"{until.confidence:g}, which is until.confidence",
            next_step="leave out level",
        )
    if file.estimate != "mean":
        raise ParameterError(
            "a stopping rule looks at means",
            where=f"{where}: design.estimate",
            got=file.estimate,
            allowed="mean",
            next_step="for another figure write repeats in the place of until",
        )
    return Design(**{**read, "repeats": until.max, "level": until.confidence}, until=until)


def diagnostic_blocks(explain: bool | int, where: str) -> int:
    """Return how many diagnostic blocks `explain` asks for. Raises ParameterError."""
    if isinstance(explain, bool):
        return USUAL_DIAGNOSTIC if explain else 0
    if explain and not LEAST_DIAGNOSTIC <= explain <= MOST_DIAGNOSTIC:
        raise ParameterError(
            "so many diagnostic blocks explain nothing with an interval",
            where=where,
            got=str(explain),
            allowed=f"true for {USUAL_DIAGNOSTIC}, {LEAST_DIAGNOSTIC} to {MOST_DIAGNOSTIC}; false or 0 for none",
        )
    return explain


def _sample_every(file: DesignFile, where: str) -> float:
    """Return seconds between two looks at the counters; 0 for none. Raises ParameterError for more than ten a
    second."""
    seconds = parse_seconds(file.sample_every, where=where) if file.sample_every else 0.0
    if file.sample_every and seconds < LEAST_SAMPLE_S:
        raise ParameterError(
            "the box's counters are read ten times a second at most",
            where=where,
            got=str(file.sample_every),
            allowed="100ms or more; false for never",
        )
    return seconds

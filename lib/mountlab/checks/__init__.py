"""Trials and facts to caveats: reasons to doubt a number, each saying what was seen, why it matters, what to do.

One file a theme. A new check is one function and one entry in the CHECKS of its file: what it looks for, when it could
not look, and what can be foreseen of it. A check that could not look has not passed, and the report says
so. Checks of plug-ins look at every run where they are installed.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mountlab.checks import (
    arrays,
    beside,
    burst_credits,
    caches,
    clients,
    control,
    data,
    device,
    durable,
    few,
    imported,
    length,
    load,
    machine,
    missing,
    options,
    ran,
    reads,
    record,
    shape,
    sides,
    states,
    steady,
    watched,
    work,
)
from mountlab.checks.asked import asks_direct
from mountlab.checks.base import CaveatKind, Check, Evidence, fills_memory, stays_in_memory
from mountlab.checks.device import asks_lazy_init
from mountlab.checks.layers import CellWrites, layer_writes
from mountlab.checks.steady import steadiness
from mountlab.checks.traffic import Below, Moved, moved, moved_below
from mountlab.core import plugins
from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import MountlabWarning, PlanError, PluginError
from mountlab.core.findings import Caveat, Severity
from mountlab.core.model import Sweep

__all__ = [
    "CHECKS",
    "OF_SEVERAL_RUNS",
    "Below",
    "CellWrites",
    "Check",
    "Evidence",
    "Findings",
    "Moved",
    "asks_direct",
    "asks_lazy_init",
    "fills_memory",
    "find_caveats",
    "foresee",
    "layer_writes",
    "moved",
    "moved_below",
    "named",
    "refuse_foreseen",
    "stays_in_memory",
    "steadiness",
]  # fmt: skip

_OF_TRIALS = (
    *record.CHECKS,
    *imported.CHECKS,
    *ran.CHECKS,
    *missing.CHECKS,
    *reads.CHECKS,
    *caches.CHECKS,
    *control.CHECKS,
    *durable.CHECKS,
    *data.CHECKS,
    *options.CHECKS,
    *sides.CHECKS,
    *states.CHECKS,
    *watched.CHECKS,
    *work.CHECKS,
)
_OF_BOX_AND_FIGURES = (
    *machine.CHECKS,
    *device.CHECKS,
    *arrays.CHECKS,
    *length.CHECKS,
    *load.CHECKS,
    *burst_credits.CHECKS,
    *few.CHECKS,
    *shape.CHECKS,
    *steady.CHECKS,
    *clients.CHECKS,
    *beside.CHECKS,
)
CHECKS = plugins.Registry(
    plugins.CHECKS, {check.code: check for check in (*_OF_TRIALS, *_OF_BOX_AND_FIGURES)}, Check, key="code"
)
"""Caveat code to check."""
OF_SEVERAL_RUNS: dict[str, CaveatKind] = {
    "runs-not-paired": CaveatKind(
        "warning", "Two runs share no blocks: whatever changed between them is in every ratio.",
        "Run A and B again, in turns, before a small ratio is believed.",
        "Two runs are compared."),
    "sides-differ": CaveatKind(
        "warning", "Two runs differ in more than one respect.",
        "Change one thing at a time.",
        "The runs differ in two or more respects."),
    "unequal-work": CaveatKind(
        "warning", "Two runs did not do the same work, so that a ratio is not of what was to be compared alone.",
        "Compare runs of equal work, or say that the work differs wherever you show the ratio.",
        "The runs differ in a duration, an amount, the number of jobs or the engine of a workload. Or trials of two "
        "runs measured neither for the same time nor for the same amount (5 % or more apart), and one of the runs is "
        "imported."),
    "sides-alike": CaveatKind(
        "note", "Nothing that was kept differs between two runs.",
        "Take the ratios for how much a run differs from its repetition.",
        "The runs differ in no respect that was kept, and none is imported."),
    "few-runs": CaveatKind(
        "note", "So few runs say little about the spread between runs.",
        "Run it five times or more.",
        "Fewer than five runs of a sweep are compared."),
    "box-missing": CaveatKind(
        "warning", "A box of the sweep has no figures: what holds over boxes is said without it.",
        "Look at its reason; `batch --resume` tries it again.",
        "A box of the sweep has no figures."),
    "not-on-all-boxes": CaveatKind(
        "warning", "Some figures are not there on every box.",
        "Look at the failed and left-out cells of the box that has none.",
        "Some box lacks some figures."),
    "timed-out-ratios": CaveatKind(
        "warning", "On a box, trials of a ratio ran into their time limit; its ratio there is a median.",
        "See what stalls there, or raise design.trial_timeout.",
        "On a box, trials of a ratio ran into their time limit. Its ratio there is a median. A bound does not count "
        "over boxes."),
    "one-machine": CaveatKind(
        "warning", "Boxes that are one machine, by its host name and processor, are counted as several.",
        "Name each machine once: what holds over boxes is about machines.",
        "Two boxes have the same host name and processor."),
    "few-boxes": CaveatKind(
        "note", "So few boxes say little about other boxes.",
        "Take five or more, as unlike each other as those that the answer is to hold for.",
        "Fewer than five boxes. Intervals over boxes and the spread between them are wide."),
    "one-run-a-box": CaveatKind(
        "note", "Each box was measured in one run: what differs from run to run is part of what differs between boxes.",
        "Repeat the sweep on one box, and compare its runs, to learn how much that is.",
        "Each box was measured in one run."),
    "imported": CaveatKind(
        "warning", "One of them was imported: of its box it is not known what differs.",
        "Measure both with Mountlab before you decide.",
        "One of the runs is imported."),
    "unfinished": CaveatKind(
        "warning", "One of them is not complete: its figures are of the trials so far.",
        "Go on with `mountlab resume`.",
        "One of the runs is not complete."),
}  # fmt: skip
"""Code of a caveat to its text about compared runs: analysis.compare.caveats raises them."""
_WORST_FIRST: dict[Severity, int] = {"error": 0, "warning": 1, "note": 2}
FROM_FIGURES = (
    "altered", "imported", "logs-differ", "failed-trials", "excluded", "few-operations", "figures-missing", "too-few",
    "noisy", "too-short", "rounded", "outlier", "two-modes", "unequal-work",
)  # fmt: skip
"""The checks that need no more than what a log tells."""
ELSEWHERE = "the figures are from logs made elsewhere, which do not tell it"


@dataclass(frozen=True)
class Findings:
    """The results of all checks."""

    caveats: list[Caveat]
    """Worst first."""
    passed: list[str]
    """Codes of the checks that looked and found nothing."""
    not_checked: dict[str, str]
    """Codes of the checks that could not look, and why."""


def find_caveats(evidence: Evidence) -> Findings:
    """Return all caveats, the checks that found nothing, and those that could not look. Of logs from elsewhere, only
    what a figure can show is checked. With `strict` in the design a warning is an error."""
    results = {code: _look(check, evidence) for code, check in CHECKS.own.items()}
    for entry, part in CHECKS.of_plugins():
        code = entry.name if entry.name not in results else f"{entry.name} ({entry.distribution})"
        results[code] = _look_of_plugin(entry, part, evidence)
    return Findings(
        _sorted([caveat for caveats, _ in results.values() for caveat in caveats], strict=evidence.sweep.design.strict),
        [code for code, (caveats, why) in results.items() if not caveats and not why],
        {code: why for code, (caveats, why) in results.items() if not caveats and why},
    )


def _look(check: Check, evidence: Evidence) -> tuple[list[Caveat], str | None]:
    """Return the caveats of a check, and why it could not look (None where it could)."""
    if evidence.sweep.imported and check.code not in FROM_FIGURES:
        return [], ELSEWHERE
    return list(check(evidence)), check.blind(evidence)


def _look_of_plugin(
    entry: plugins.Entry, part: Check | PluginError, evidence: Evidence
) -> tuple[list[Caveat], str | None]:
    """Return the caveats of a plug-in's check, and why it could not look: it cannot be used, or it fails."""
    if isinstance(part, PluginError):
        return [], part.in_short
    try:
        with plugins.calling(entry):
            result = _look(part, evidence)
        plugins.check_answer(entry, result[0], list[Caveat], "find()")
        plugins.check_answer(entry, result[1], str | None, "blind()")
        return result
    except PluginError as error:
        return [], error.in_short


def foresee(sweep: Sweep, facts: BoxFacts) -> list[Caveat]:
    """Return the caveats that the sweep and the facts of the box alone tell, before anything runs, worst first."""
    caveats = [caveat for check in CHECKS.own.values() for caveat in check.foreseen(sweep, facts)]
    for entry, part in CHECKS.usable():
        try:
            with plugins.calling(entry):
                found_caveats = list(part.foreseen(sweep, facts))
            plugins.check_answer(entry, found_caveats, list[Caveat], "foresee()")
            caveats += found_caveats
        except PluginError as error:
            warnings.warn(error.in_short, MountlabWarning, stacklevel=2)
    return _sorted(caveats, strict=sweep.design.strict)


def _sorted(caveats: list[Caveat], *, strict: bool) -> list[Caveat]:
    """Return caveats, worst first; where the design is strict a warning is an error."""
    if strict:
        caveats = [replace(caveat, severity="error") if caveat.severity == "warning" else caveat for caveat in caveats]
    return sorted(caveats, key=lambda caveat: _WORST_FIRST[caveat.severity])


def refuse_foreseen(sweep: Sweep, facts: BoxFacts) -> None:
    """Raise PlanError where a strict design is certain to end in an error."""
    errors = [caveat for caveat in foresee(sweep, facts) if caveat.severity == "error"] if sweep.design.strict else []
    if errors:
        raise PlanError(
            "what is planned cannot be trusted",
            where="design.strict: true",
            got=named(errors),
            allowed="a sweep without foreseeable warnings",
            next_step=f"{errors[0].code}: {errors[0].message} "
            "Or leave strict away, and the warnings will stand in the report.",
        )


def named(caveats: Sequence[Caveat]) -> str:
    """List each code of caveats once, with its subjects: 'too-few; not-flushed (ext4/w, xfs/w)'."""
    subjects: dict[str, dict[str, None]] = {}
    for caveat in caveats:
        subjects.setdefault(caveat.code, {}).update({caveat.subject: None} if caveat.subject else {})
    return "; ".join(f"{code} ({', '.join(names)})" if names else code for code, names in subjects.items())

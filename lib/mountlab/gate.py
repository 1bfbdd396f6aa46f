"""May a change pass? Two runs beside each other, judged against a margin: for scripts, such as those of a CI.

Each ratio is judged by the interval that holds together with those of all other ratios of the two runs, so that the
chance that *any* of them is called worse by mistake is at most 1 - level. An interval can lie beyond the margin
(worse), within it (fine), or across it (open): nothing is shown then, neither that it is worse nor that it is not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mountlab import words
from mountlab.compare_runs import RunComparison
from mountlab.model import higher_is_better
from mountlab.run_ratios import CellRatio

Judgement = Literal["worse", "open", "fine"]
_ORDER: tuple[Judgement, ...] = ("worse", "open", "fine")


@dataclass(frozen=True)
class Judged:
    """One ratio of B to A, and what the margin makes of it."""

    of: CellRatio
    judgement: Judgement
    at_least: float
    at_most: float
    """How many times as bad B is as A, whichever way is better; NaN where there is no interval."""


@dataclass(frozen=True)
class Gate:
    """All ratios of two runs against one margin, the worst first."""

    margin: float
    level: float
    judged: tuple[Judged, ...]
    missing: tuple[str, ...] = ()
    """Cells of which A has figures, and B none that could be held against them."""

    def passes(self, *, sure: bool) -> bool:
        """Whether nothing is missing or shown to be worse; with `sure` whether all is shown not to be."""
        return not self.missing and all(
            each.judgement == "fine" or (each.judgement == "open" and not sure) for each in self.judged
        )


def judge(compared: RunComparison, margin: float) -> Gate:
    """Each ratio of two runs against a margin: 0.05 lets B be up to 1.05 times as bad as A."""
    judged = [_judged(each, margin) for each in compared.ratios]
    found = sorted(judged, key=lambda each: (_ORDER.index(each.judgement), -_finite(each.at_least)))
    known = {each.cell.id for each in compared.ratios}
    missing = tuple(cell for cell in compared.a.measurements["cell"].unique() if cell not in known)
    return Gate(margin=margin, level=compared.level, judged=tuple(found), missing=missing)


def _judged(ratio: CellRatio, margin: float) -> Judged:
    low, high = ratio.comparison.low_all, ratio.comparison.high_all
    if higher_is_better(ratio.comparison.metric):
        low, high = (1 / high if high else math.inf), (1 / low if low else math.inf)
    judgement: Judgement = "open"  # NaN compares as false: what has no interval shows nothing
    if low > 1 + margin:
        judgement = "worse"
    elif high <= 1 + margin:
        judgement = "fine"
    return Judged(ratio, judgement, low, high)


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def gate_text(gate: Gate) -> str:
    """One line a ratio, the worst first, and how many of which kind there are."""
    rows = [_row(each) for each in gate.judged]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    absent = [f"missing: {cell}: the second run has no figure of it" for cell in gate.missing]
    counts = ", ".join(f"{sum(each.judgement == kind for each in gate.judged)} {kind}" for kind in _ORDER)
    return "\n".join([*absent, *lines, "", f"{counts}; margin {words.percent(gate.margin)}"])


def _row(each: Judged) -> Sequence[str]:
    comparison = words.together(each.of.comparison)
    figures = words.ratio_figures(comparison.ratio, comparison.low, comparison.high)
    noun = words.metric_noun(comparison.metric, comparison.label)
    return (each.judgement, each.of.cell.id, noun, figures.value, figures.interval)


def gate_json(gate: Gate) -> dict[str, Any]:
    """The same as data; what is infinite or not known is null."""
    return {
        "margin": gate.margin, "level": gate.level, "missing": list(gate.missing),
        "ratios": [
            {
                "judgement": each.judgement, "cell": each.of.cell.id, "metric": each.of.comparison.metric,
                "label": each.of.comparison.label, "ratio": each.of.comparison.ratio,
                **{name: _plain(value) for name, value in (("at_least", each.at_least), ("at_most", each.at_most))},
            }
            for each in gate.judged
        ],
    }  # fmt: skip


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None

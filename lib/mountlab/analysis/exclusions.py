"""What the excluded trials of a run change: its figures and verdicts without them and with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from mountlab.analysis.compare.comparisons import key_of
from mountlab.analysis.estimates import estimate_frame
from mountlab.analysis.measurements import without_partial
from mountlab.analysis.sweep_comparisons import comparisons
from mountlab.analysis.time_limits import OF_A_MOUNT, Censored
from mountlab.core.findings import Comparison, Estimate, Exclusions, FigureTwice, RatioTwice
from mountlab.core.frames import pd
from mountlab.core.model import Sweep
from mountlab.wording.verdicts import cell_id

_COLUMNS = tuple(field.name for field in fields(Estimate))


@dataclass(frozen=True)
class Figures:
    """The figures of a run, without the excluded trials or with them."""

    measurements: pd.DataFrame
    censored: Censored
    estimates: pd.DataFrame
    comparisons: Sequence[Comparison]

    @classmethod
    def of(cls, sweep: Sweep, measurements: pd.DataFrame, censored: Censored) -> Figures:
        estimates = estimate_frame(sweep, measurements, run_id="", box="", censored=censored)
        return cls(measurements, censored, estimates, comparisons(sweep, measurements, censored))

    def with_trials(self, sweep: Sweep, more: pd.DataFrame, censored: Censored) -> Figures:
        """Return the figures with those of the excluded trials, `more`. How long a file system took to make and to
        mount belongs to its mount, and not to a trial."""
        of_trials = more[~more["metric"].isin(OF_A_MOUNT)]
        whole = pd.concat([self.measurements, of_trials], ignore_index=True) if len(of_trials) else self.measurements
        return Figures.of(sweep, without_partial(whole), censored)


def exclusions(
    sweep: Sweep,
    without: Figures,
    counted: Figures,
    *,
    cells: frozenset[str],
    answers: Mapping[str, tuple[str, ...]],
    unread: Sequence[str] = (),
) -> Exclusions:
    """Return what the figures of `cells`, which have excluded trials, are without these and with them."""
    of_answer = {(cell, metric) for cell in cells for metric in answers[sweep.combinations[cell].workload.label]}
    first, second = _by_figure(without.estimates), _by_figure(counted.estimates)
    figures = tuple(
        FigureTwice(cell=key[0], metric=key[1], label=key[2], without=first.get(key, _NONE), counted=second[key])
        for key in second
        if key[:2] in of_answer
    )
    ratios = []
    comparisons_without = {key_of(comparison): comparison for comparison in without.comparisons}
    for comparison in counted.comparisons:
        other = comparisons_without.get(key_of(comparison))
        sides = {cell_id(name, comparison) for name in (comparison.candidate, comparison.baseline)}
        if other and (sides & cells or other.verdict != comparison.verdict):
            ratios.append(RatioTwice(without=other, counted=comparison))
    return Exclusions(figures=figures, ratios=tuple(ratios), unread=tuple(unread))


def _by_figure(estimates: pd.DataFrame) -> dict[tuple[str, str, str], Estimate]:
    rows: list[dict[Any, Any]] = estimates[["cell", "metric", "label", *_COLUMNS]].to_dict("records")
    return {(row["cell"], row["metric"], row["label"]): Estimate(**{n: row[n] for n in _COLUMNS}) for row in rows}


_NAN = float("nan")
_NONE = Estimate(mean=_NAN, low=_NAN, high=_NAN, sd=_NAN, cv=_NAN, n=0, level=_NAN, method="")
"""Of a cell whose trials are all excluded."""

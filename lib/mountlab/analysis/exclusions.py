"""What the excluded trials of a run change: its figures and verdicts without them and with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
        own = more[~more["metric"].isin(OF_A_MOUNT)]
        whole = pd.concat([self.measurements, own], ignore_index=True) if len(own) else self.measurements
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
    wanted = {(cell, metric) for cell in cells for metric in answers[sweep.combinations[cell].workload.label]}
    first, second = (_by_figure(each.estimates) for each in (without, counted))
    figures = tuple(
        FigureTwice(cell=key[0], metric=key[1], label=key[2], without=first.get(key, _NONE), counted=second[key])
        for key in second
        if key[:2] in wanted
    )
    ratios = tuple(_twice(sweep, without.comparisons, counted.comparisons, cells))
    return Exclusions(figures=figures, ratios=ratios, unread=tuple(unread))


def _twice(
    sweep: Sweep, without: Sequence[Comparison], counted: Sequence[Comparison], cells: frozenset[str]
) -> Iterator[RatioTwice]:
    known = {key_of(each): each for each in without}
    for each in counted:
        own = known.get(key_of(each))
        sides = {cell_id(name, each) for name in (each.candidate, each.baseline)}
        if own and (sides & cells or own.verdict != each.verdict):
            yield RatioTwice(without=own, counted=each)


def _by_figure(estimates: pd.DataFrame) -> dict[tuple[str, str, str], Estimate]:
    rows: list[dict[Any, Any]] = estimates[["cell", "metric", "label", *_COLUMNS]].to_dict("records")
    return {(row["cell"], row["metric"], row["label"]): Estimate(**{n: row[n] for n in _COLUMNS}) for row in rows}


_NAN = float("nan")
_NONE = Estimate(mean=_NAN, low=_NAN, high=_NAN, sd=_NAN, cv=_NAN, n=0, level=_NAN, method="")
"""Of a cell whose trials are all excluded."""

"""By how much two runs of the same thing differ by themselves: measured by earlier runs of the sweep, or assumed.

The trials of one run cannot tell. Each figure has a spread of its own: figures differ in it by factors, and those of
one run move together. So a common spread would be too small for some figures, with fewer degrees of freedom than it
seems.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np

from mountlab.analysis.run_view import ComparedRun
from mountlab.analysis.same_cells import Same, same_cell
from mountlab.core import numbers
from mountlab.core.errors import ParameterError
from mountlab.core.model import Cell
from mountlab.core.units import parse_percent
from mountlab.stats.changes import Level, find_changes
from mountlab.stats.run_spread import ASSUMED, RunSpread, columns

FEWEST_EARLIER = 5
"""Earlier runs from which on these tell the spread: with fewer, an interval by t is wider than one by ASSUMED for
nearly any spread. Whether they tell depends on their number, never on their figures."""
WHERE = "--runs-differ"
_WHAT = "standard deviation from run to run"
FigureName = tuple[tuple[str, Same], str, str, str]
"""What is the same figure in two runs: cell, metric, label and unit."""


@dataclass(frozen=True)
class EarlierFigure:
    """One figure of one run: its mean logarithm over n trials, and their standard deviation."""

    at: datetime
    n: int
    log_mean: float
    log_sd: float


@dataclass(frozen=True)
class FigureSpread:
    """By how much runs differ in one figure: the standard deviation of the logarithm of a run's level."""

    sd: float
    degrees: float = math.inf
    covered: float = 0.0
    """As in stats.run_spread.RunSpread."""
    runs: int = 0
    """Earlier runs that it is measured from; 0 where it is assumed."""


Earlier = Mapping[FigureName, Sequence[EarlierFigure]]


@dataclass(frozen=True)
class RunsDiffer:
    """What is known of how much runs differ."""

    stated: float | None = None
    """By the user, as a share; it takes the place of earlier runs. None: nothing is stated."""
    measured: Mapping[str, Mapping[FigureName, FigureSpread]] = field(default_factory=dict, repr=False)
    """The id of a compared run to the spread of its figures over earlier runs."""

    @classmethod
    def of(cls, stated: str | None, earlier: Mapping[str, Earlier]) -> RunsDiffer:
        """Return what a user states ('3%'), or else what earlier runs tell, by the id of the run that they are earlier
        runs of. Raises ParameterError for what is no share of 0 to 100 %."""
        if stated is None:
            return cls(measured={run: dict(_spreads(figures)) for run, figures in earlier.items()})
        share = parse_percent(stated, where=WHERE, bare=True)
        if not 0 <= share <= 1:
            raise ParameterError("runs cannot differ by so much", where=WHERE, got=stated, allowed="0% to 100%")
        return cls(share)

    def figure(self, run: ComparedRun, cell: Cell, metric: str, label: str, unit: str) -> FigureSpread:
        """Return by how much runs like this one differ in a figure."""
        if self.stated is not None:
            return FigureSpread(self.stated)
        measured = self.measured.get(run.info.run_id, {})
        return measured.get((same_cell(cell), metric, label, unit), FigureSpread(ASSUMED))


def side_of(spreads: Iterable[FigureSpread]) -> RunSpread:
    """Return one side of many comparisons."""
    return columns([(spread.sd**2, spread.degrees, spread.covered) for spread in spreads])


def _spreads(earlier: Earlier) -> Iterator[tuple[FigureName, FigureSpread]]:
    """Yield the spread of each figure with enough runs, about the level that it had at the time: a change of level that
    the history would report is no spread between runs. The figures of one metric are a family."""
    for metric in {name[1] for name in earlier}:
        names = [name for name, runs in earlier.items() if name[1] == metric and len(runs) >= FEWEST_EARLIER]
        series = [sorted(earlier[name], key=lambda run: run.at) for name in names]
        levels = [[level_of_mean(run.log_mean, run.log_sd, run.n) for run in runs] for runs in series]
        for name, runs, changes in zip(names, series, find_changes(levels), strict=True):
            parts = np.split(np.array([run.log_mean for run in runs]), [change.at for change in changes])
            degrees = len(runs) - len(parts)
            squares = sum(float(((part - part.mean()) ** 2).sum()) for part in parts)
            covered = float(np.mean([1 / run.n for run in runs]))
            yield name, FigureSpread(math.sqrt(squares / degrees), degrees, covered, len(runs))


def level_of_mean(log_mean: float, log_sd: float, n: int) -> Level:
    """Return the level of one run, from the mean and the standard deviation of the logarithms of its values."""
    if n < 2 or not math.isfinite(log_sd):
        return Level(log_mean)
    return Level(log_mean, log_sd / math.sqrt(n), n - 1)


def below(sd: float) -> str:
    """'1.8 %': a break-even with two digits, never above it."""
    decimals = 1 - math.floor(math.log10(sd)) if sd > 0 else 0
    return numbers.percent(math.floor(round(sd * 10**decimals, 6)) / 10**decimals)


def source(runs_differ: RunsDiffer, spreads: Iterable[FigureSpread]) -> str:
    """Say by how much runs differ, and how that is known: 'Runs are assumed to differ by 5 % ...'."""
    rows = list(spreads)
    measured = [spread for spread in rows if spread.runs]
    if runs_differ.stated is not None:
        share = numbers.percent(runs_differ.stated)
        return f"Runs differ by {share} or less ({_WHAT}), as {WHERE} states."
    assumed = f"are assumed to differ by {numbers.percent(ASSUMED)} or less"
    why = f"as fewer than {FEWEST_EARLIER} earlier runs of the sweep on the box are known"
    if not measured:
        return f"Runs {assumed} ({_WHAT}), {why}. If you know it, name it with {WHERE}."
    ends = dict.fromkeys(numbers.percent(end(one.sd for one in measured)) for end in (min, max))
    count = numbers.counted(max(spread.runs for spread in measured), "earlier run")
    text = f"Runs differ by {' to '.join(ends)} ({_WHAT}), measured from {count} of the sweep on the box"
    if len(measured) == len(rows):
        return f"{text}."
    return f"{text}; in {len(rows) - len(measured)} of {len(rows)} cases they {assumed}, {why}."

"""Series of runs whose truth is known, sent through the search for changes: false alarms, power, place and ratio."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from mountlab.stats.changes import Change, Level, find_changes
from mountlab.stats.simulated import LEVEL, Floats, Generator, generator

from mountlab_dev.calibration.document import Runs, Share, Table
from mountlab_dev.calibration.tables import Effort

RUNS = (30, 100)
MANY_LOOKS = 1_000
RUN_SD, TRIAL_SD, TRIALS = 0.02, 0.05, 5
"""Spread of the logarithm from run to run and from trial to trial; trials of a run."""
SERIES_SD = math.sqrt(RUN_SD**2 + TRIAL_SD**2 / TRIALS)
"""Of the mean of a run of so many trials: the sd of the table."""
FAMILY = 20
Sizes = Callable[[Generator, int], Floats]


@dataclass(frozen=True)
class _Truth:
    """How the levels of a series come about: (rng, runs) to the true level of each run; and how many trials they
    have."""

    levels: Callable[[Generator, int], Floats]
    sizes: Sizes = lambda _, runs: np.full(runs, TRIALS)


def _quiet(rng: Generator, runs: int) -> Floats:
    return np.asarray(rng.normal(0, RUN_SD, runs))


def _odd_runs(rng: Generator, runs: int) -> Floats:
    """Return levels with one run in ten far off: other programs were busy on the box."""
    return _quiet(rng, runs) - np.where(rng.random(runs) < 0.1, rng.exponential(10 * RUN_SD, runs), 0)


def _two_odd(rng: Generator, runs: int) -> Floats:
    """Return levels with two neighbouring runs off by five standard deviations."""
    first = rng.integers(0, runs - 1)
    return _quiet(rng, runs) - np.where(np.isin(np.arange(runs), (first, first + 1)), 5 * SERIES_SD, 0)


def _alike(rng: Generator, runs: int, correlation: float) -> Floats:
    """Return levels with a first-order autoregressive part; FIGURES of neighbouring runs have the correlation given:
    what differs from trial to trial is a part of it."""
    steps = rng.normal(0, 1, runs)
    for place in range(1, runs):
        steps[place] = correlation * steps[place - 1] + math.sqrt(1 - correlation**2) * steps[place]
    return np.asarray(SERIES_SD * steps)


def _stepped(rng: Generator, runs: int, sd: float) -> Floats:
    return _quiet(rng, runs) - np.where(np.arange(runs) >= _change_at(runs), sd * SERIES_SD, 0)


def _change_at(runs: int) -> int:
    """Return the run of a change two thirds through: one that was found late."""
    return 2 * runs // 3


def _mended(rng: Generator, runs: int, sd: float) -> Floats:
    within = (np.arange(runs) >= runs // 3) & (np.arange(runs) < 2 * runs // 3)
    return _quiet(rng, runs) - np.where(within, sd * SERIES_SD, 0)


def _uneven(rng: Generator, runs: int) -> Floats:
    return rng.integers(3, 21, runs).astype(float)


def _exact(_: Generator, runs: int) -> Floats:
    return np.full(runs, float(MANY))


def _more_later(_: Generator, runs: int) -> Floats:
    return np.where(np.arange(runs) < runs // 2, 3.0, 20.0)


MANY = 10_000
"""Trials of a run whose figure has no error of its own to speak of."""
NOTHING = {
    "nothing changed": _Truth(_quiet),
    "nothing changed, 3 to 20 trials a run": _Truth(_quiet, _uneven),
    "nothing changed, 3 trials a run in the first half and 20 in the second": _Truth(_quiet, _more_later),
    "nothing changed, one run in ten is far off": _Truth(_odd_runs),
    "nothing changed, two neighbouring runs are off by 5 sd": _Truth(_two_odd),
    "nothing changed, figures correlate by 0.3": _Truth(lambda rng, runs: _alike(rng, runs, 0.3), _exact),
    "nothing changed, figures correlate by 0.6": _Truth(lambda rng, runs: _alike(rng, runs, 0.6), _exact),
}
LOOKED_AT = ("nothing changed", "nothing changed, figures correlate by 0.3")
"""Those that are simulated over 1,000 looks, too."""
CHANGED = {
    "a change of 4 sd": _Truth(lambda rng, runs: _stepped(rng, runs, 4)),
    "a change of 4 sd that was mended again": _Truth(lambda rng, runs: _mended(rng, runs, 4)),
}


def changes_over_runs(effort: Effort) -> Table:
    """Return how often a change is ever reported in a series of runs, when it should be and when it should not."""
    says = (
        f"**Changes over runs**, looked for after every run, in series of runs of {TRIALS} trials. Figures vary by "
        f"{100 * TRIAL_SD:g} % from trial to trial and by {100 * RUN_SD:g} % from run to run: an sd of "
        f"{100 * SERIES_SD:.1f} % for the mean of a run. How often any change is ever reported, in bold where there is "
        f"one; then how right the report is. Over {MANY_LOOKS:,} looks half as many are simulated."
    )
    rows = [
        (name, (*(_any(name, truth, runs, effort.series) for runs in RUNS), _over_many(name, truth, effort)))
        for name, truth in NOTHING.items()
    ]
    rows.append((f"nothing changed in any of {FAMILY} series", (*(_any_of_many(runs, effort) for runs in RUNS), None)))
    rows += [
        (name, (*(_any(name, each, runs, effort.series, meant=True) for runs in RUNS), None))
        for name, each in CHANGED.items()
    ]
    rows += [row for sd in (1, 2) for row in _of_one_change(sd, effort)]
    header = ("series", *(f"{runs:,} runs" for runs in (*RUNS, MANY_LOOKS)))
    return Table("changes", says, effort.series, header, tuple(rows))


def _over_many(name: str, truth: _Truth, effort: Effort) -> Share | None:
    return _any(name, truth, MANY_LOOKS, max(1, effort.series // 2)) if name in LOOKED_AT else None


BEFORE = (10, 20, 30, 100)
_AFTER = 60


def delays_over_runs(effort: Effort) -> Table:
    """Return how many runs after a change it is reported."""
    says = (
        f"**Delay** of a report: runs after a change, the first of them included, until it is reported; {_AFTER} where "
        f"it is not by then. Figures vary by {100 * RUN_SD:g} % from run to run, and trials add nothing."
    )
    falls = {size: math.log1p(size / 100) for size in (-5, 5)}
    rows = [
        (f"{size:+d} %, {name}", tuple(Runs(float(of(delays(by, before, 0, effort)))) for before in BEFORE))
        for size, by in falls.items()
        for name, of in (("mean", np.mean), ("median", np.median))
    ]
    alike = tuple(Runs(float(np.mean(delays(falls[-5], before, 0.3, effort)))) for before in BEFORE)
    rows.append(("-5 %, figures correlate by 0.3, mean", alike))
    header = ("change", *(f"after {runs} runs" for runs in BEFORE))
    return Table("delays", says, effort.series, header, tuple(rows))


@cache
def delays(by: float, before: int, correlation: float, effort: Effort) -> Floats:
    """Return the delay of each of several series; reports before the change do not count."""
    rng, found = generator("delays", by, before, correlation), []
    for _ in range(effort.series):
        values = _alike(rng, before + _AFTER, correlation) * (RUN_SD / SERIES_SD)
        values[before:] += by
        reported = _found([[Level(float(each)) for each in values]])[0]
        late = [change.reported - before + 1 for change in reported if change.reported >= before]
        found.append(min(late, default=_AFTER))
    return np.array(found, dtype=float)


def _any(name: str, truth: _Truth, runs: int, series: int, *, meant: bool = False) -> Share:
    rng = generator("changes", name, runs)
    hits = sum(bool(_found([simulated(rng, truth, runs)])[0]) for _ in range(series))
    return Share(hits, series, meant=meant)


def simulated(rng: Generator, truth: _Truth, runs: int) -> list[Level]:
    """Return one series."""
    sizes, levels = truth.sizes(rng, runs), truth.levels(rng, runs)
    values = levels + rng.normal(0, 1, runs) * TRIAL_SD / np.sqrt(sizes)
    errors = TRIAL_SD / np.sqrt(sizes) * np.sqrt(rng.chisquare(sizes - 1) / (sizes - 1))
    columns = (values, errors, (sizes - 1).astype(int))
    return [Level(*each) for each in zip(*(column.tolist() for column in columns), strict=True)]


def _found(series: Sequence[Sequence[Level]]) -> list[list[Change]]:
    return find_changes(series, level=LEVEL)


def _any_of_many(runs: int, effort: Effort) -> Share:
    """At least one change in a family of series in which nothing changed. As many families as `_any` has series would
    take long."""
    rng, families, hits = generator("changes of many", runs), max(1, effort.series // 8), 0
    for _ in range(families):
        hits += any(_found([simulated(rng, NOTHING["nothing changed"], runs) for _ in range(FAMILY)]))
    return Share(hits, families)


def _of_one_change(sd: float, effort: Effort) -> Iterator[tuple[str, tuple[Share | None, ...]]]:
    """Yield how often is one change reported? Where it is: are others, and does its place hold it?"""
    name = f"a change of {sd} sd"
    said = [_one_change(name, sd, runs, effort.series) for runs in RUNS]
    yield name, (*(each[0] for each in said), None)
    names = ("another change is reported, too", "its interval of places holds it")
    for number, what in enumerate(names, start=1):
        yield f"{name}: {what}", (*(each[number] for each in said), None)


def _one_change(name: str, sd: float, runs: int, series: int) -> tuple[Share, ...]:
    rng, truth, at = generator("one", name, runs), _Truth(lambda rng, runs: _stepped(rng, runs, sd)), _change_at(runs)
    found = [_found([simulated(rng, truth, runs)])[0] for _ in range(series)]
    known = [each for each in found if each]
    nearest = [min(each, key=lambda change: abs(change.at - at)) for each in known]
    of = max(1, len(known))
    return (
        Share(len(known), series, meant=True),
        Share(sum(len(each) > 1 for each in known), of),
        Share(sum(each.first <= at <= each.last for each in nearest), of, meant=True),
    )


SIZES_OF = ((0.5, 100), (1.0, 30), (1.0, 100), (2.0, 30), (2.0, 100), (4.0, 30))
"""Changes in standard deviations, and runs: from those that are hardly ever reported to those that always are."""


def sizes_of_changes(effort: Effort) -> Table:
    """Return how right the size of a change is, of changes that were reported."""
    says = (
        "**Sizes of changes** that were reported, two thirds through a series as above. How often a change is "
        "reported; how often its interval then contains the true ratio, and how often it is estimated too large. A "
        "report before the change is a false one, and not counted here."
    )
    rows = tuple((f"a change of {sd:g} sd in {runs} runs", _sizes(sd, runs, effort.gates)) for sd, runs in SIZES_OF)
    return Table("change-sizes", says, effort.gates, ("change", "reported", "interval holds", "too large"), rows)


def _sizes(sd: float, runs: int, reports: int) -> tuple[Share, ...]:
    """Simulate series until so many of them have reported the change."""
    rng, truth, at = generator("sizes", sd, runs), _Truth(lambda rng, runs: _stepped(rng, runs, sd)), _change_at(runs)
    ratio, series, found = math.exp(-sd * SERIES_SD), 0, list[Change]()
    while len(found) < reports:
        late = [change for change in _found([simulated(rng, truth, runs)])[0] if change.reported >= at]
        found += sorted(late, key=lambda change: abs(change.at - at))[:1]
        series += 1
    return (
        Share(reports, series, meant=True),
        Share(sum(change.low <= ratio <= change.high for change in found), reports),
        Share(sum(change.ratio < ratio for change in found), reports),
    )

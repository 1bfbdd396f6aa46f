"""Series of runs whose truth is known, sent through the search for changes: false alarms, power, place and ratio."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mountlab.calibrate.document import Share, Table
from mountlab.calibrate.processes import Floats, Generator
from mountlab.calibrate.tables import LEVEL, Effort, generator
from mountlab.stats.changes import SHORTEST, Change, Level, find_changes
from mountlab.stats.comparisons import compare_rows_unpaired

RUNS = (12, 30, 100)
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
    """One run in ten is far off: somebody else was busy on the box."""
    return _quiet(rng, runs) - np.where(rng.random(runs) < 0.1, rng.exponential(10 * RUN_SD, runs), 0)


def _alike(rng: Generator, runs: int, correlation: float) -> Floats:
    levels = _quiet(rng, runs)
    for place in range(1, runs):
        levels[place] = correlation * levels[place - 1] + math.sqrt(1 - correlation**2) * levels[place]
    return levels


def _stepped(rng: Generator, runs: int, sd: float) -> Floats:
    return _quiet(rng, runs) - np.where(np.arange(runs) >= _change_at(runs), sd * SERIES_SD, 0)


def _change_at(runs: int) -> int:
    """Two thirds through, as what was found late."""
    return 2 * runs // 3


def _mended(rng: Generator, runs: int, sd: float) -> Floats:
    within = (np.arange(runs) >= runs // 3) & (np.arange(runs) < 2 * runs // 3)
    return _quiet(rng, runs) - np.where(within, sd * SERIES_SD, 0)


def _uneven(rng: Generator, runs: int) -> Floats:
    return rng.integers(3, 21, runs).astype(float)


def _more_later(_: Generator, runs: int) -> Floats:
    return np.where(np.arange(runs) < runs // 2, 3.0, 20.0)


NOTHING = {
    "nothing changed": _Truth(_quiet),
    "nothing changed, 3 to 20 trials a run": _Truth(_quiet, _uneven),
    "nothing changed, 3 trials a run in the first half and 20 in the second": _Truth(_quiet, _more_later),
    "nothing changed, one run in ten is far off": _Truth(_odd_runs),
    "nothing changed, neighbouring runs are alike (0.3)": _Truth(lambda rng, runs: _alike(rng, runs, 0.3)),
    "nothing changed, neighbouring runs are alike (0.6)": _Truth(lambda rng, runs: _alike(rng, runs, 0.6)),
}
CHANGED = {
    "a change of 1 sd": _Truth(lambda rng, runs: _stepped(rng, runs, 1)),
    "a change of 2 sd": _Truth(lambda rng, runs: _stepped(rng, runs, 2)),
    "a change of 4 sd": _Truth(lambda rng, runs: _stepped(rng, runs, 4)),
    "a change of 4 sd that was mended again": _Truth(lambda rng, runs: _mended(rng, runs, 4)),
}


def changes_over_runs(effort: Effort) -> Table:
    """How often a change is reported in a series of runs, when it should be and when it should not."""
    says = (
        f"**Changes over runs**: series of runs of {TRIALS} trials, whose figures vary by {100 * TRIAL_SD:g} % from "
        f"trial to trial and by {100 * RUN_SD:g} % from run to run, which is an sd of {100 * SERIES_SD:.1f} % for the "
        "mean of a run. How often any change is reported, in bold where there is one; then, where the only change is "
        "of 4 sd, what is said of it."
    )
    rows = [(name, tuple(_any(name, truth, runs, effort) for runs in RUNS)) for name, truth in NOTHING.items()]
    rows.append((f"nothing changed in any of {FAMILY} series", tuple(_any_of_many(runs, effort) for runs in RUNS)))
    rows.append(("nothing changed, by a t test at its best split", tuple(_careless(runs, effort) for runs in RUNS)))
    rows += [
        (name, tuple(_any(name, each, runs, effort, meant=True) for runs in RUNS)) for name, each in CHANGED.items()
    ]
    rows += list(_of_one_change(effort))
    return Table("changes", says, effort.sweeps, ("series", *(f"{runs} runs" for runs in RUNS)), tuple(rows))


def _any(name: str, truth: _Truth, runs: int, effort: Effort, *, meant: bool = False) -> Share:
    rng = generator("changes", name, runs)
    hits = sum(bool(_found(rng, [simulated(rng, truth, runs)])[0]) for _ in range(effort.sweeps))
    return Share(hits, effort.sweeps, meant=meant)


def simulated(rng: Generator, truth: _Truth, runs: int) -> list[Level]:
    """One series."""
    sizes, levels = truth.sizes(rng, runs), truth.levels(rng, runs)
    values = levels + rng.normal(0, 1, runs) * TRIAL_SD / np.sqrt(sizes)
    errors = TRIAL_SD / np.sqrt(sizes) * np.sqrt(rng.chisquare(sizes - 1) / (sizes - 1))
    return [
        Level(*each) for each in zip(values.tolist(), errors.tolist(), (sizes - 1).astype(int).tolist(), strict=True)
    ]


def _found(rng: Generator, series: Sequence[Sequence[Level]]) -> list[list[Change]]:
    return find_changes(series, rng.integers(0, 2**32, len(series)).tolist(), level=LEVEL)


def _any_of_many(runs: int, effort: Effort) -> Share:
    """At least one change in a family of series in which nothing changed. As many families as `_any` has series would
    take long."""
    rng, families, hits = generator("changes of many", runs), max(1, effort.sweeps // 4), 0
    for _ in range(families):
        hits += any(_found(rng, [simulated(rng, NOTHING["nothing changed"], runs) for _ in range(FAMILY)]))
    return Share(hits, families)


def _careless(runs: int, effort: Effort) -> Share:
    """What is often done: the smallest p value of Welch's t test over all splits, below 5 %."""
    rng, hits = generator("changes by t", runs), 0
    places = range(SHORTEST, runs - SHORTEST + 1)
    for _ in range(effort.sweeps):
        values = np.exp([each.value for each in simulated(rng, NOTHING["nothing changed"], runs)])
        table = np.tile(values, (len(places), 1))
        later = np.arange(runs) >= np.array(places)[:, None]
        p = compare_rows_unpaired(np.where(later, table, np.nan), np.where(later, np.nan, table)).p()
        hits += bool(p.min() < 1 - LEVEL)
    return Share(hits, effort.sweeps)


def _of_one_change(effort: Effort) -> Iterator[tuple[str, tuple[Share, ...]]]:
    """Where one change of 4 sd was reported: were others, and do the intervals of its place and ratio hold it?"""
    told = [_one_change(runs, effort.sweeps) for runs in RUNS]
    names = (
        "another change is reported, too",
        "its interval of places holds the change",
        "its interval holds the ratio",
    )
    for number, name in enumerate(names):
        yield name, tuple(each[number] for each in told)


def _one_change(runs: int, series: int) -> tuple[Share, Share, Share]:
    rng, truth, at = generator("one change", runs), CHANGED["a change of 4 sd"], _change_at(runs)
    found = [_found(rng, [simulated(rng, truth, runs)])[0] for _ in range(series)]
    known = [each for each in found if each]
    nearest = [min(each, key=lambda change: abs(change.at - at)) for each in known]
    ratio, of = math.exp(-4 * SERIES_SD), max(1, len(known))
    return (
        Share(sum(len(each) > 1 for each in known), of),
        Share(sum(each.first <= at <= each.last for each in nearest), of, meant=True),
        Share(sum(each.low <= ratio <= each.high for each in nearest), of, meant=True),
    )

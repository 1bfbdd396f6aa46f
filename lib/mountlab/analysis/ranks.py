"""Which file system for this workload: ranks with their uncertainty, from all pairs of file systems of one run.

A rank is a range: a file system stands behind those that are shown to be better, and before those that are shown to be
worse. Whom the data cannot tell apart share their ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from mountlab.analysis.conditions import shifts_of
from mountlab.analysis.run_view import RunView
from mountlab.analysis.sweep_comparisons import comparisons
from mountlab.core import numbers
from mountlab.core.conditions import condition_words
from mountlab.core.errors import InputError
from mountlab.core.findings import Comparison, Verdict
from mountlab.core.groups import by_key
from mountlab.core.names import metric_noun, workload_label
from mountlab.wording.verdicts import workload_of

Key = tuple[str, str, str]
"""Workload with its factors, metric, label."""


@dataclass(frozen=True)
class Rank:
    """The places that a file system may have for one workload and metric: 1 is the best."""

    workload_label: str
    """The name, with the levels of the factors."""
    metric: str
    label: str
    filesystem: str
    first: int
    last: int
    of: int

    @property
    def text(self) -> str:
        """'1', or '1 to 2'."""
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"


def ranks(run: RunView, *, workloads: Sequence[str] | None = None) -> list[Rank]:
    """Return the ranks of all file systems, for each workload and metric that the answer is about.

    All pairs are compared. Pairs with the baseline have the verdicts of the run; those of all other pairs hold
    together at the design's level, too. `workloads`: names of those that matter; None: all. Raises InputError for a
    name that the run does not have, and for fewer than two file systems.
    """
    present = dict.fromkeys(workload.name for workload in run.sweep.workloads)
    unknown = [name for name in workloads or () if name not in present]
    if unknown:
        raise InputError("the run has no such workload", got=unknown[0], allowed=", ".join(present))
    names = [fs.name for fs in run.sweep.filesystems]
    if len(names) < 2:
        raise InputError("there is nothing to choose from", got=", ".join(names), allowed="two file systems or more")
    pairs = by_key(
        ((workload_of(comparison), comparison.metric, comparison.label), comparison)
        for comparison in _all_pairs(run, names)
        if workloads is None or comparison.workload in workloads
    )
    return [rank for key, group in pairs.items() for rank in _ranked(key, group, names)]


def _groups(ranks: Sequence[Rank]) -> list[list[Rank]]:
    """Return the ranks of each workload and metric."""
    return list(by_key(((rank.workload_label, rank.metric, rank.label), rank) for rank in ranks).values())


def _all_pairs(run: RunView, names: Sequence[str]) -> list[Comparison]:
    """Return each pair once. Those with the baseline are the comparisons of the run, so that no rank contradicts their
    verdicts. Of the others there is a family for each but the last, and each family gets its share of the error
    (Bonferroni)."""
    sweep = run.sweep
    others = [name for name in names if name != sweep.baseline]
    level = 1 - (1 - sweep.design.level) / max(len(others) - 1, 1)
    design = replace(sweep.design, level=level)
    pairs = list(run.comparisons)
    for place, baseline in enumerate(others[:-1]):
        of_one = comparisons(replace(sweep, baseline=baseline, design=design), run.measurements, run.censored)
        pairs += [comparison for comparison in of_one if comparison.candidate in others[place + 1 :]]
    return pairs


_BETTER: dict[Verdict, int] = {"faster": 1, "slower": -1, "same": 0, "undecided": 0, "not usable": 0}


def _ranked(key: Key, pairs: Sequence[Comparison], names: Sequence[str]) -> list[Rank]:
    there = [name for name in names if any(name in (comparison.candidate, comparison.baseline) for comparison in pairs)]
    better: dict[tuple[str, str], int] = {}
    for comparison in pairs:
        sign = _BETTER[comparison.verdict]
        better[comparison.candidate, comparison.baseline] = sign
        better[comparison.baseline, comparison.candidate] = -sign
    ranked = [
        Rank(
            *key,
            name,
            of=len(there),
            first=1 + sum(better.get((other, name), 0) > 0 for other in there),
            last=len(there) - sum(better.get((name, other), 0) > 0 for other in there),
        )
        for name in there
    ]
    return sorted(ranked, key=lambda rank: (rank.first, rank.last))


def rank_frame(found: Sequence[Rank]) -> pd.DataFrame:
    """Return one row a workload and metric, one column a file system: its ranks as text."""
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for rank in found:
        row = rows.setdefault((rank.workload_label, metric_noun(rank.metric, rank.label)), {})
        row[rank.filesystem] = rank.text
    index = pd.MultiIndex.from_tuples(list(rows), names=["workload", "metric"])
    return pd.DataFrame(list(rows.values()), index=index).fillna("")


def choice_sentences(found: Sequence[Rank]) -> list[str]:
    """Return one sentence for each workload and metric, and one on who is never beaten."""
    groups = _groups(found)
    choices = [_choice(group) for group in groups]
    return [*choices, _never_beaten(groups)] if len(choices) > 1 else choices


def _choice(group: Sequence[Rank]) -> str:
    what = f"{metric_noun(group[0].metric, group[0].label)} under {group[0].workload_label}"
    firsts = [rank.filesystem for rank in group if rank.first == 1]
    if len(firsts) == len(group):
        return f"For {what} nothing is shown to be better than anything else."
    rest = [f"{rank.filesystem} has place {rank.text}" for rank in group if rank.first > 1]
    best = f"{numbers.listed(firsts)} {'is the best' if len(firsts) == 1 else 'are not distinguishable at the top'}"
    return f"For {what} {best}; {numbers.listed(rest)} of {group[0].of}."


_DEPENDS = {"state": "the state", "beside": "the neighbour"}


def condition_sentences(run: RunView, found: Sequence[Rank]) -> list[str]:
    """Return where the best file system depends on the state, or on what runs beside the workload: where none of those
    that may be the best at the reference may be so at a level; or that this is shown nowhere. Empty where the run has
    no such factor."""
    best: dict[Key, list[str]] = by_key(
        ((rank.workload_label, rank.metric, rank.label), rank.filesystem) for rank in found if rank.first == 1
    )
    groups = by_key(
        ((shift.condition, shift.before.label, metric, label), shift)
        for shift in shifts_of(run.sweep)
        for at, metric, label in best
        if at == shift.workload.label and (shift.before.label, metric, label) in best
    )
    depends = []
    for (condition, before, metric, label), shifts in groups.items():
        reference, workload = shifts[0].reference, shifts[0].before
        firsts = {reference: best[before, metric, label]}
        firsts |= {shift.level: best[shift.workload.label, metric, label] for shift in shifts}
        if any(set(names).isdisjoint(firsts[reference]) for names in firsts.values()):
            places = by_key((tuple(names), condition_words(condition, level)) for level, names in firsts.items())
            texts = [f"{numbers.listed(names)} {numbers.listed(levels)}" for names, levels in places.items()]
            others = {name: level for name, level in workload.factors.items() if name != condition}
            what = f"{metric_noun(metric, label)} under {workload_label(workload.name, others)}"
            depends.append(f"For {what} the best depends on {_DEPENDS[condition]}: {'; '.join(texts)}.")
    none = "That another file system is the best in another state, or beside a neighbour, is not shown."
    return depends or ([none] if groups else [])


def _never_beaten(groups: Sequence[Sequence[Rank]]) -> str:
    beaten = {rank.filesystem for group in groups for rank in group if rank.first > 1}
    names = dict.fromkeys(rank.filesystem for group in groups for rank in group)
    never = [name for name in names if name not in beaten]
    if not never:
        return "No file system is best everywhere: each is shown to be slower than another somewhere, so it is a trade."
    if len(never) == len(names):
        return "No file system is shown to be slower than another anywhere."
    verb = "is" if len(never) == 1 else "are"
    return f"{numbers.listed(never)} {verb} never shown to be slower than another."

"""Figures that are missing: of a tool that printed none, or of a trial with too few I/Os for a percentile."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mountlab.checks.base import Check, Doubt, Evidence
from mountlab.core.frames import pd, rows_of
from mountlab.core.groups import by_key
from mountlab.core.metrics import LATENCY_PARTS, PERCENT_OF
from mountlab.core.names import metric_noun
from mountlab.core.numbers import counted
from mountlab.programs import TOOLS
from mountlab.stats.histograms import FEWEST_BEYOND, enough, ios_needed


def missing_figures(evidence: Evidence) -> Iterator[Doubt]:
    """Figures that others of the sweep have: other file systems, or other trials of the same cell.

    A metric of the answer has fewer rows on this file system than on others, as where pg_test_fsync prints `n/a`. A
    warning where some trials of a cell have a figure and others do not.
    """
    yield from _missing_here(evidence)
    yield from _missing_in_some(evidence)


def _missing_here(evidence: Evidence) -> Iterator[Doubt]:
    """Rows of a metric that a workload gave on some file systems, and on another, where it ran too, did not."""
    labels = evidence.once(_labels)
    of_workload = by_key((cell.workload.label, cell) for cell in evidence.sweep.cells)
    for workload, cells in of_workload.items():
        for metric in evidence.answer_metrics[workload]:
            labels_of = {cell.id: labels.get(cell.id, {}).get(metric, ()) for cell in cells}
            all_labels = dict.fromkeys(label for present in labels_of.values() for label in present)
            for cell in cells if metric not in PERCENT_OF else ():  # few_ios says why a percentile is missing
                absent = [label for label in all_labels if label not in labels_of[cell.id]]
                if absent and cell.id in labels:
                    yield Doubt.of_cell(
                        cell,
                        f"{metric} has no figure{_for(absent)}, which others of the sweep have: the output of the tool "
                        "holds none here. (For one, pg_test_fsync prints n/a where a file system takes no direct I/O.) "
                        "It is missing, not zero.",
                        metrics=metric,
                    )


def _missing_in_some(evidence: Evidence) -> Iterator[Doubt]:
    """Figures of the answer that some trials of a cell have, and others of it do not."""
    with_any, trials_with = dict[str, set[str]](), dict[tuple[str, str, str], set[str]]()
    for name, metric, label, trial_id in rows_of(evidence.measurements, "cell", "metric", "label", "trial_id"):
        if metric not in PERCENT_OF:
            with_any.setdefault(name, set()).add(trial_id)
            trials_with.setdefault((name, metric, label), set()).add(trial_id)
    for (name, metric, label), ids in trials_with.items():
        trials = with_any[name] & {*evidence.counted.get(name, ())}
        lacking, cell = len(trials - ids), evidence.sweep.combinations[name]
        if metric in evidence.answer_metrics[cell.workload.label] and 0 < lacking < len(trials):
            yield Doubt.of_cell(
                cell,
                f"{lacking} of its {len(trials)} trials have no figure of {metric}{_for([label])}: the estimate is of "
                "the others, which may be the faster ones or the slower ones. Look at the raw output of both.",
                severity="warning",
                metrics=metric,
            )


def _for(labels: list[str]) -> str:
    """' for a, b', of rows that have a label."""
    named = ", ".join(filter(None, labels))
    return f" for {named}" if named else ""


def few_ios(evidence: Evidence) -> Iterator[Doubt]:
    """Percentiles that are missing because a trial did too few I/Os for them.

    A trial of the cell did fewer I/Os than the percentile needs: ten above it, and ten below it. A warning where
    `metrics` asks for that percentile, otherwise one note for the run.
    """
    labels, fewest = evidence.once(_labels), fewest_ios(evidence.measurements)
    others: list[str] = []
    for cell in evidence.sweep.cells:
        lacks = [
            (metric, ios)
            for metric in _PERCENTILES
            if metric not in labels.get(cell.id, {})
            and (ios := fewest.get((cell.id, metric.split("_")[0])))
            and not enough(ios, PERCENT_OF[metric])
        ]
        for metric, ios in lacks:
            if metric in evidence.sweep.metrics:
                yield Doubt.of_cell(cell, f"{too_few(metric, ios)} {_WHY_IOS}", metrics=metric)
            elif metric in _MAIN_PERCENTILES:
                others.append(f"{cell.id}: {too_few(metric, ios)}")
    if others:
        count = len(others) - 1
        more = f" {counted(count, 'other figure')} {'is' if count == 1 else 'are'} missing, too." if count else ""
        yield Doubt.of_run(f"{others[0]}{more} {_WHY_IOS}", severity="note")


_PERCENTILES = tuple(PERCENT_OF)
_MAIN_PERCENTILES = tuple(f"{side}_latency_{part}" for side in ("read", "write", "sync") for part in LATENCY_PARTS[1:])
_WHY_IOS = (
    f"A percentile needs {FEWEST_BEYOND} I/Os above it, and as many below it, in every trial of the cell: with fewer "
    "it rests on a handful. It is missing, not zero."
)


def too_few(metric: str, ios: float) -> str:
    """Say why a percentile is missing: '99.9th-percentile read latency is missing: a trial did 812 I/Os, and 10,000 are
    needed.'"""
    needed = ios_needed(PERCENT_OF[metric])
    return f"{metric_noun(metric)} is missing: a trial did {ios:,.0f} I/Os, and {needed:,} are needed."


def fewest_ios(measurements: pd.DataFrame) -> dict[tuple[str, str], float]:
    """(cell, side) to the fewest I/Os of any counted trial: of all its jobs, or of one where only these are known."""
    fewest: dict[tuple[str, str], dict[str, float]] = {}
    rows = measurements[measurements["metric"].isin(_IOS) & ~measurements["warmup"].astype(bool)]
    for cell, metric, label, value in rows_of(rows, "cell", "metric", "label", "value"):
        by_label = fewest.setdefault((cell, _IOS[metric]), {})
        by_label[label] = min(by_label.get(label, math.inf), float(value))
    return {key: by_label.get("", min(by_label.values())) for key, by_label in fewest.items()}


_IOS = {f"{side}_ios": side for side in ("read", "write", "sync")}


def _no_ios(evidence: Evidence) -> str | None:
    if evidence.measurements["metric"].isin(_IOS).any():
        return None
    count = any(set(_IOS) & {*TOOLS[workload.tool].gives} for workload in evidence.sweep.workloads)
    return "no trial says how many I/Os its latencies are of" if count else None


def _labels(evidence: Evidence) -> dict[str, dict[str, list[str]]]:
    """Return cell to metric to the labels of its rows."""
    labels: dict[str, dict[str, list[str]]] = {}
    for cell, metric, label in dict.fromkeys(rows_of(evidence.measurements, "cell", "metric", "label")):
        labels.setdefault(cell, {}).setdefault(metric, []).append(label)
    return labels


CHECKS = (
    Check(
        "few-operations",
        few_ios,
        "Run trials longer, take smaller blocks, or ask for a lower percentile.",
        severities=("warning", "note"),
        blind=_no_ios,
    ),
    Check(
        "figures-missing",
        missing_figures,
        "Compare only rows that both sides have. Missing is not zero.",
        severities=("note", "warning"),
    ),
)

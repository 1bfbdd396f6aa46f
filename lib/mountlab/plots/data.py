"""Trials and means as plots take them: read from the frames of a Run, in the order of the sweep."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from mountlab.core import numbers
from mountlab.core.names import is_diagnostic, workload_label
from mountlab.core.units import Scale, scale_for
from mountlab.plots.base import require


@dataclass(frozen=True)
class TrialPoint:
    """One value of one trial; `group` is its workload, and its label where rows have one."""

    filesystem: str
    group: str
    block: int
    warmup: bool
    value: float
    place: float
    """Where it came in the run: 1, 2, ... over all trials of the frame."""
    trial_id: str = ""

    @property
    def diagnostic(self) -> bool:
        return is_diagnostic(self.trial_id)

    def label(self, factor: float, unit: str) -> str:
        """Return 'ext4, block 3: 512 MB/s (t0012)'."""
        value = numbers.mean_figures(self.value, math.nan, math.nan, factor=factor).value
        return f"{self.filesystem}, block {self.block}: {value} {unit} ({self.trial_id})"


@dataclass(frozen=True)
class MeanPoint:
    """The mean of one cell with its interval, in the unit that is shown."""

    filesystem: str
    group: str
    n: int
    figures: numbers.Figures
    """As they are shown."""
    mean: float
    low: float
    high: float

    def label(self, unit: str) -> str:
        """Return 'ext4, fio bs=4KiB: 512 [498, 530] MB/s, n = 5'."""
        return f"{self.filesystem}, {self.group}: {self.figures} {unit}, n = {self.n}"


_TRIAL = ["trial_id", "cell", "label", "filesystem", "block", "warmup", "value", "place"]


def trials_of(measurements: pd.DataFrame, metric: str, groups: Sequence[str] = ()) -> list[TrialPoint]:
    """Return the trials of one metric in run order, of all groups or of some. Raises InputError where there is none."""
    first_seen = {trial: place for place, trial in enumerate(measurements["trial_id"].unique())}
    order = measurements["seq"] if "seq" in measurements else measurements["trial_id"].map(first_seen)
    placed = measurements.assign(place=order.rank(method="dense"))
    rows = placed.loc[placed["metric"] == metric, _TRIAL].sort_values("place", kind="stable").to_dict("records")
    require(rows, f"trial with {metric}")
    named = groups_of(measurements)
    points = []
    for row in rows:
        name, group, trial_id = row["filesystem"], named[_figure_of(row)], str(row["trial_id"])
        if not groups or group in groups:
            block, warmup, value = int(row["block"]), bool(row["warmup"]), float(row["value"])
            points.append(TrialPoint(name, group, block, warmup, value, row["place"], trial_id))
    return points


def means_of(estimates: pd.DataFrame, measurements: pd.DataFrame, metric: str, scale: Scale) -> list[MeanPoint]:
    """Return the estimates of one metric of the cells that were measured, in the unit of the scale."""
    means, groups = [], groups_of(measurements)
    for row in estimates[estimates["metric"] == metric].to_dict("records"):
        if _figure_of(row) in groups:
            mean, low, high = (float(row[name]) for name in ("mean", "low", "high"))
            figures = numbers.mean_figures(mean, low, high, factor=scale.factor)
            shown = (bound / scale.factor for bound in (mean, low, high))
            means.append(MeanPoint(row["filesystem"], groups[_figure_of(row)], int(row["n"]), figures, *shown))
    return means


def _figure_of(row: Mapping[Any, Any]) -> tuple[str, str]:
    """Return the cell and the label of a row of a frame; a table that was read from CSV has NaN in the place of ''."""
    return row["cell"], row["label"] if isinstance(row["label"], str) else ""


def groups_of(measurements: pd.DataFrame) -> dict[tuple[str, str], str]:
    """Return cell and label of each row to its group: its workload, and the label where there is one."""
    groups = {}
    columns = measurements[["cell", "label", "workload", "factors"]]
    for row in columns.drop_duplicates(["cell", "label"]).to_dict("records"):
        workload, (cell, label) = workload_label(row["workload"], row["factors"]), _figure_of(row)
        groups[cell, label] = f"{workload} ({label})" if label else workload
    return groups


def scale_of(measurements: pd.DataFrame, metric: str) -> Scale:
    """Return the unit in which the values of a metric are shown: that of the largest mean of a cell, as in the
    tables."""
    part = measurements[measurements["metric"] == metric]
    counted = part[~part["warmup"].astype(bool)] if "warmup" in part else part
    means = (counted if len(counted) else part).groupby(["cell", "label"], dropna=False)["value"].mean()
    return scale_for(str(part["unit"].iloc[0]), float(means.max()))


def names_by_group(
    trials: Sequence[TrialPoint], filesystems: Sequence[str], workloads: Sequence[str]
) -> dict[str, list[str]]:
    """Return groups in the order of the workloads, and in each the file systems that occur, in their order."""
    present = {(trial.group, trial.filesystem) for trial in trials}
    groups = ordered({trial.group for trial in trials}, workloads)
    return {group: [name for name in filesystems if (group, name) in present] for group in groups}


def ordered(groups: Iterable[str], workloads: Sequence[str]) -> list[str]:
    """Return groups as the workloads are ordered; those of one workload, and unknown ones, by name."""
    places = {f"{workload} (": place for place, workload in enumerate(workloads)}
    ranks = {group: [place for start, place in places.items() if f"{group} (".startswith(start)] for group in groups}
    return sorted(ranks, key=lambda group: (min(ranks[group], default=len(places)), group))

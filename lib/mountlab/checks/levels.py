"""What the blocks of a run have in common over all of its cells: what changes the box changes all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mountlab.checks.base import Evidence, Sample
from mountlab.checks.burst import stepped_down
from mountlab.stats import shape


def block_levels(samples: Sequence[Sample]) -> list[float]:
    """For each block that every sample has: the geometric mean, over the samples, of value / geometric mean; of a
    metric where less is better, of the reciprocal. So a box that slows down does so in rates and in times."""
    _, common, logs = _common_logs(samples)
    return [float(level) for level in np.exp(logs.mean(axis=0))] if common else []


def _common_logs(samples: Sequence[Sample]) -> tuple[list[Sample], list[int], NDArray[np.float64]]:
    """Return the samples without a zero, the blocks that all of them have, and the logarithms of their values there,
    (samples, blocks), each about the mean of its sample, and more of it better."""
    usable = [sample for sample in samples if min(sample.values) > 0]
    common = sorted(set.intersection(*(set(sample.blocks) for sample in usable))) if usable else []
    values = [[dict(zip(s.blocks, s.values, strict=True))[block] for block in common] for s in usable]
    signs = np.array([-1.0 if _less_is_better(sample) else 1.0 for sample in usable])
    logs = signs[:, np.newaxis] * np.log(np.array(values).reshape(len(usable), len(common)))
    return usable, common, logs - logs.mean(axis=1, keepdims=True) if common else logs


def _less_is_better(sample: Sample) -> bool:
    return sample.cell.workload.metric(sample.metric).better == "lower"


def turned(samples: Sequence[Sample]) -> str:
    """Return the words for levels that count the reciprocals of some metrics."""
    return " (times as rates)" if any(map(_less_is_better, samples)) else ""


def levels_of_many(evidence: Evidence) -> list[float]:
    """Return the level of each block where there are several samples; of a single one its own test tells all."""
    samples = without_steps_down(evidence)
    return block_levels(samples) if len(samples) > 1 else []


def over_all(samples: Sequence[Sample]) -> str:
    """'over all cells', what levels of blocks hold for; '' of a single sample."""
    many_cells = len({sample.cell.id for sample in samples}) > 1
    return "over all cells" if many_cells else "over all metrics" if len(samples) > 1 else ""


def orders(evidence: Evidence) -> list[shape.BlockOrder]:
    """Return the order inside of each block that every sample has. Of several metrics of a trial the mean counts."""
    usable, blocks, logs = _common_logs(without_steps_down(evidence))
    place = {trial: number for number, trial in enumerate(evidence.trials["trial_id"])}
    systems = {name: number for number, name in enumerate(dict.fromkeys(s.cell.filesystem.name for s in usable))}
    block_orders = []
    for block, column in zip(blocks, (logs - logs.mean(axis=0)).T, strict=True):
        trials: dict[int, list[float]] = {}
        turns: dict[int, int] = {}
        for sample, value in zip(usable, column.tolist(), strict=True):
            number = place[sample.trials[sample.blocks.index(block)]]
            trials.setdefault(number, []).append(value)
            turns[number] = systems[sample.cell.filesystem.name]
        order = sorted(trials)
        means = np.array([np.mean(trials[number]) for number in order])
        block_orders.append(shape.BlockOrder(means, np.array([turns[number] for number in order])))
    return block_orders


def without_steps_down(evidence: Evidence) -> list[Sample]:
    """Return the samples without those of cells that `burst-credits` is raised for."""
    stepped = evidence.once(stepped_down)
    return [sample for sample in evidence.samples if sample.cell.id not in stepped]

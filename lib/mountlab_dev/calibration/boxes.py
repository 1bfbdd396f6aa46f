"""The simulations behind what is said over boxes: how often intervals from a few boxes hold the truth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from mountlab.stats.between import spread
from mountlab.stats.estimates import t_quantile
from mountlab.stats.over_boxes import further_box, over_boxes
from mountlab.stats.simulated import LEVEL, NOISE, Floats, Generator, generator
from numpy.typing import NDArray

from mountlab_dev.calibration.document import Share, Table
from mountlab_dev.calibration.tables import Effort

BOXES = (2, 3, 5, 10)
BLOCKS = 5
TIMES = 10.0
"""How many times as noisy as the others one box may be."""


@dataclass(frozen=True)
class BoxPopulation:
    """Boxes, and the log ratios of their blocks; the true mean over boxes is 0."""

    name: str
    between: float
    """Standard deviation of the true log ratio from box to box."""
    times: float = 1.0
    """How noisy the first box is, the others being 1."""
    skewed: bool = False

    def draw(self, rng: Generator, size: tuple[int, int]) -> tuple[Floats, Floats]:
        """Return the true log ratio of each box, of shape (cases, boxes), and those of its blocks, (cases, boxes,
        blocks)."""
        standard = rng.exponential(1, size) - 1 if self.skewed else rng.normal(size=size)
        truth = self.between * standard
        noise = NOISE * np.where(np.arange(size[1]) == 0, self.times, 1.0)
        return truth, truth[..., None] + rng.normal(size=(*size, BLOCKS)) * noise[:, None]


KINDS = (
    BoxPopulation("boxes alike", 0.0),
    BoxPopulation("boxes differ by 3 %", 0.03),
    BoxPopulation("boxes differ by 20 %", 0.2),
    BoxPopulation("boxes differ by 3 %, one is ten times as noisy", 0.03, TIMES),
    BoxPopulation("boxes differ by 20 %, skewed", 0.2, skewed=True),
)


def over_few_boxes(effort: Effort) -> Table:
    """Return how often the interval of a ratio over boxes holds the truth, that of a further box what is seen there;
    and what other methods hold."""
    says = (
        f"**Over boxes**: intervals of a ratio at {100 * LEVEL:g} %, from {BLOCKS} blocks with cv {100 * NOISE:g} % on "
        "each box. How often they contain the truth over boxes, or what a run on a further box shows. The last rows "
        "are two other methods, which Mountlab does not use."
    )
    rows = tuple(
        (f"{name}: {kind.name}", tuple(_share(kind, k, effort.samples, method) for k in BOXES))
        for name, method in _METHODS
        for kind in KINDS
    )
    return Table("boxes", says, effort.samples, ("interval", *(f"{k} boxes" for k in BOXES)), rows)


Held = NDArray[np.bool_]
Method = Callable[[Floats, Floats, Floats], Held]
"""Log ratios of blocks on the boxes, of shape (cases, boxes, blocks), the true one of a further box and what a run
shows there, (cases,), to whether what is to be held is held."""


def _share(kind: BoxPopulation, boxes: int, cases: int, method: Method) -> Share:
    truth, blocks = kind.draw(generator("boxes", kind.name, boxes), (cases, boxes + 1))
    # The last box, which is never the noisy one, is the further one.
    held = method(blocks[:, :-1], truth[:, -1], blocks[:, -1].mean(axis=1))
    return Share(int(np.count_nonzero(held)), cases)


def _ours(blocks: Floats, _: Floats, __: Floats) -> Held:
    low, high = over_boxes(blocks.mean(axis=2)).bounds(LEVEL)
    return (low <= 1) & (high >= 1)


def _further(blocks: Floats, _: Floats, shown: Floats) -> Held:
    found = further_box(over_boxes(blocks.mean(axis=2)), LEVEL)
    return (np.log(found.low) <= shown) & (np.log(found.high) >= shown)


def _pooled(blocks: Floats, _: Floats, __: Floats) -> Held:
    """As if the blocks of all boxes were one sample."""
    values = blocks.reshape(len(blocks), -1)
    n = values.shape[1]
    half = t_quantile(LEVEL, n - 1) * values.std(axis=1, ddof=1) / np.sqrt(n)
    return np.asarray(np.abs(values.mean(axis=1)) <= half)


def _weighted(blocks: Floats, _: Floats, __: Floats) -> Held:
    """Weights from the variances as DerSimonian and Laird estimate them, and Hartung and Knapp's interval."""
    y, v, k = blocks.mean(axis=2), blocks.var(axis=2, ddof=1) / BLOCKS, blocks.shape[1]
    w = 1 / v
    total = w.sum(axis=1)
    q = (w * (y - ((w * y).sum(axis=1) / total)[:, None]) ** 2).sum(axis=1)
    between = np.maximum(0, (q - (k - 1)) / (total - (w**2).sum(axis=1) / total))
    w = 1 / (v + between[:, None])
    mean = (w * y).sum(axis=1) / w.sum(axis=1)
    se = np.sqrt((w * (y - mean[:, None]) ** 2).sum(axis=1) / ((k - 1) * w.sum(axis=1)))
    return np.asarray(np.abs(mean) <= t_quantile(LEVEL, k - 1) * se)


_METHODS: tuple[tuple[str, Method], ...] = (
    ("over boxes", _ours), ("a further box", _further), ("weighted (Hartung and Knapp)", _weighted),
    ("all blocks as one sample", _pooled),
)  # fmt: skip


def parts_of_variance(effort: Effort) -> Table:
    """Return how often the intervals of the parts of the variance hold them, and how often boxes are said to differ."""
    says = (
        f"**Between boxes and inside a box**: {BLOCKS} trials on each box, cv {100 * NOISE:g} %. How often the 95 % "
        "intervals contain the standard deviation between boxes, that inside a box, and the share of the variance "
        "between boxes. *Differ*: how often p < 5 %, in bold where boxes do differ."
    )
    columns = tuple(f"{what}, {k} boxes" for k in _PARTS_OF for what in ("between", "inside", "share", "differ"))
    cases = effort.checks
    rows = tuple((kind.name, tuple(s for k in _PARTS_OF for s in _parts(kind, k, cases))) for kind in KINDS[:3])
    return Table("parts", says, cases, ("boxes", *columns), rows)


_PARTS_OF = (3, 10)
_UNLIKE = ((3, 3, 20), (2, 2, 2, 2, 40, 40, 40))


def parts_of_unlike_runs(effort: Effort) -> Table:
    """Return the same where runs have unlike numbers of trials."""
    says = (
        f"**Run to run with unlike numbers of trials**, cv {100 * NOISE:g} %. How often the 95 % intervals contain the "
        "standard deviation between runs, that inside a run, and the share of the variance between runs. *Differ*: "
        "how often p < 5 %, in bold where runs do differ."
    )
    named = [(" + ".join(map(str, sizes)), sizes) for sizes in _UNLIKE]
    columns = tuple(f"{what}, {name}" for name, _ in named for what in ("between", "inside", "share", "differ"))
    cases = effort.sweeps
    found = {kind.name: tuple(s for _, sizes in named for s in _unlike(kind, sizes, cases)) for kind in KINDS[:3]}
    rows = tuple((name.replace("boxes", "runs"), shares) for name, shares in found.items())
    return Table("unlike-runs", says, cases, ("runs", *columns), rows)


def _unlike(kind: BoxPopulation, sizes: Sequence[int], cases: int) -> tuple[Share, ...]:
    rng = generator("unlike", kind.name, *sizes)
    drawn = ([rng.normal(0, kind.between) + rng.normal(0, NOISE, n) for n in sizes] for _ in range(cases))
    return _held_parts(kind, drawn, cases)


def _parts(kind: BoxPopulation, boxes: int, cases: int) -> tuple[Share, ...]:
    _, blocks = kind.draw(generator("parts", kind.name, boxes), (cases, boxes))
    return _held_parts(kind, blocks, cases)


def _held_parts(kind: BoxPopulation, logs: Iterable[Sequence[Floats] | Floats], cases: int) -> tuple[Share, ...]:
    share = kind.between**2 / (kind.between**2 + NOISE**2)
    hits = np.zeros(4, dtype=int)
    for case in logs:
        found = spread([np.exp(each).tolist() for each in case], level=LEVEL)
        hits += [
            found.low <= kind.between <= found.high,
            found.within_low <= NOISE <= found.within_high,
            found.share_low <= share <= found.share_high,
            found.p < 1 - LEVEL,
        ]
    *parts, differ = (Share(int(each), cases) for each in hits)
    return (*parts, replace(differ, meant=kind.between > 0))

"""Samples: the counted values of each figure of a run, one after the other in flat arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mountlab.analysis.measurements import FIGURE, FigureKey
from mountlab.core.frames import pd, rows_of
from mountlab.core.model import Sweep
from mountlab.stats.comparisons import Flags


@dataclass(frozen=True)
class Samples:
    """The counted values of a run, sample after sample: those of one cell together, cells in the order of the sweep,
    and within a cell in the order in which figures first stood."""

    names: pd.DataFrame
    """One row a sample: its cell, metric, label."""
    cells: NDArray[np.int64]
    """The place of each sample's cell in the sweep."""
    sizes: NDArray[np.int64]
    """How many values each sample has."""
    values: NDArray[np.float64]
    blocks: NDArray[np.int64]
    value_steps: NDArray[np.float64]
    """To what each value is rounded (model.Measurement)."""

    @classmethod
    def of(cls, sweep: Sweep, measurements: pd.DataFrame, names: Sequence[str] = FIGURE) -> Samples:
        """Return a sample for the counted values that are alike in `names`. A cell that is not of the sweep has
        none."""
        codes = {name: pd.factorize(measurements[name]) for name in names}
        row_cells, ids = codes["cell"]
        places = {cell.id: place for place, cell in enumerate(sweep.cells)}
        cells = np.array([places.get(cell, -1) for cell in ids], dtype=np.int64)[row_cells]
        rows = np.flatnonzero(~measurements["warmup"].to_numpy(dtype=bool) & (cells >= 0))
        rows = rows[np.argsort(cells[rows], kind="stable")]
        key = np.zeros(len(rows), dtype=np.int64)  # one number for the combination of all names
        for row_codes, unique in codes.values():
            key = key * max(len(unique), 1) + row_codes[rows]
        number, _ = pd.factorize(key)
        rows = rows[np.argsort(number, kind="stable")]
        sizes = np.bincount(number).astype(np.int64)
        first = rows[np.cumsum(sizes) - sizes]
        steps = measurements["step"].to_numpy(dtype=float) if "step" in measurements else np.zeros(len(measurements))
        return cls(
            # Column by column: of a small frame, pandas takes longer to choose rows and columns than all the rest does.
            names=pd.DataFrame({name: measurements[name].array.take(first) for name in names}),
            cells=cells[first],
            sizes=sizes,
            values=measurements["value"].to_numpy(dtype=float)[rows],
            blocks=measurements["block"].to_numpy(dtype=np.int64)[rows],
            value_steps=steps[rows],
        )

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The sample of each value."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def steps(self) -> NDArray[np.float64]:
        """The step of each sample: the root mean square of those of its values, which differ where a program prints so
        many digits. Rounding adds step^2 / 12 to the variance of a value, so that of the mean has the mean square;
        where all are rounded alike, the mean is off by at most half the mean step, which is no larger."""
        return np.sqrt(np.bincount(self.numbers, self.value_steps**2, len(self.sizes)) / self.sizes)

    @property
    def signed(self) -> Flags:
        """Of each sample whether its metric may be negative, as one of a sweep's own may: in any cell, a value is."""
        metrics = self.names["metric"]
        negative = metrics.iloc[self.numbers[self.values < 0]].unique()
        return np.asarray(metrics.isin(negative), dtype=np.bool_)


def figure_steps(sweep: Sweep, measurements: pd.DataFrame) -> dict[FigureKey, float]:
    """(cell, metric, label) to the step to which its counted figures are rounded, in base units; 0 where it is not
    known."""
    samples = Samples.of(sweep, measurements)
    return dict(zip(rows_of(samples.names, *FIGURE), samples.steps.tolist(), strict=True))


def pools_of(sweep: Sweep, keys: Iterable[tuple[Any, ...]]) -> NDArray[np.int64] | None:
    """Return which samples share their blocks, by what is the same of their cells: of a run that a stopping rule ended,
    whose intervals allow for trials that are like their neighbours; None of others."""
    if sweep.design.until is None:
        return None
    numbers: dict[tuple[Any, ...], int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)

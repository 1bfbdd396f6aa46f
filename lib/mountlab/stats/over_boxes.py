"""The ratio of two cells over boxes: on average, and on a further box.

The unit is a box: boxes differ in what a ratio is on them, so that the many blocks of one box are no
repetitions of it. Each box gives one figure, the mean of its log ratios, and all count alike: the mean over boxes has
the t interval of these figures, with one degree of freedom less than there are boxes.

It needs no estimate of any variance but that of the figures themselves, and no weights made of such estimates. Where
boxes are not equally noisy, figures have unlike variances; the two-sided t test at 5 % (up to 8.3 %) never errs more
often for that (Bakirov and Szekely, J. Math. Sci. 139, 2006; Ibragimov and Mueller, J. Bus. Econ. Stat. 28, 2010), for
any number of boxes from two on. Where all boxes have the same design and noise it is the interval of Hartung, Knapp,
Sidik and Jonkman (Hartung 1999; Sidik and Jonkman 2002) whatever the variance between boxes is estimated to be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mountlab.stats.comparisons import Ratios, compare_rows
from mountlab.stats.estimates import Floats, t_quantile

OVER_BOXES_METHOD = "geometric mean over boxes, t interval on their logs, a box being one value"


@dataclass(frozen=True)
class FurtherBox:
    """Where the ratio on a further box is expected, as columns of shape (comparisons,); NaN for fewer than two."""

    low: Floats
    high: Floats


def over_boxes(log_ratios: Floats) -> Ratios:
    """Return the mean log ratio over boxes, from the mean log ratio on each, of shape (comparisons, boxes), NaN where a
    box has none. `n` counts boxes. One box has a ratio and no interval."""
    return compare_rows(np.exp(log_ratios), np.where(np.isnan(log_ratios), math.nan, 1.0))


def further_box(ratios: Ratios, level: float) -> FurtherBox:
    """Return the interval that holds what a run of the same design shows on a further box, by the t distribution: exact
    for normal figures of one variance. The true ratio of that box, without the noise of its run, it holds at least as
    often (Anderson 1955)."""
    n = np.maximum(ratios.n, 2)
    factors = np.array([t_quantile(level, int(each) - 1) for each in n])
    with np.errstate(over="ignore"):
        half = factors * ratios.log_se * np.sqrt(n + 1.0)
        return FurtherBox(np.exp(ratios.log_mean - half), np.exp(ratios.log_mean + half))

"""What rounding does to a mean: figures that lie on a grid hide the spread that is finer than its step.

Rounding a figure makes an error of up to half a step. Where the trials spread over several steps, these errors differ
from trial to trial: they are in the standard deviation already, and the mean averages them out (Sheppard 1898; Widrow &
Kollar, Quantization Noise, 2008, ch. 4: the bias of the mean falls with exp(-2 pi^2 sd^2 / step^2)). Where the trials
spread less than a step, all are rounded alike: the error is common to all of them, and no number of trials averages it
out (JCGM 100:2008, F.2.2.1).

One rule covers both. Of trials that all lie on two neighbouring points of the grid, a share p on the upper one, the
mean is off by at most |p - 1/2| steps, and their variance is p (1 - p) steps squared = (1/4 - (p - 1/2)^2). So a
standard deviation s leaves room for a common error of sqrt(step^2 / 4 - s^2), and for none from half a step on. As JCGM
100:2008, 4.3.7 does with bounds, the error counts as uniform between them: a third of the bound squared is its
variance. With s = 0 that is step^2 / 12.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_ALIKE = 8 * float(np.finfo(float).eps)


def common_deviation(step: Floats, spread: Floats) -> Floats:
    """Return the standard deviation of the error that rounding to `step` puts into a mean and that more trials do not
    reduce, given the standard deviation of the rounded values. Shapes broadcast; 0 where there is no step, NaN where
    there is no spread. Nothing is squared, so that values of any size have theirs."""
    return np.asarray(np.sqrt(np.maximum(step / 2 - spread, 0) / 3) * np.sqrt(step / 2 + spread))


def common_variance(step: Floats, spread: Floats) -> Floats:
    """Its square, for logarithms and other values of ordinary size."""
    return np.asarray(common_deviation(step, spread) ** 2)


def alike(spread: Floats, size: Floats) -> NDArray[np.bool_]:
    """Return whether a standard deviation is zero but for the last bits of numbers as large as `size`."""
    return np.asarray(spread <= _ALIKE * np.abs(size))

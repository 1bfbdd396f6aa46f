"""The share of a difference that one part of it has: of two figures that are sums, how much of what lies between them
lies between two of their addends.

In each block A and B differ by D = A - B, and one part of them by d; the parts add up to the whole, and so do the d to
D. Latencies are compared as ratios, so the parts are those of log(A / B): with the logarithmic mean L = D / log(A / B),
the d / L of all parts add up to log(A / B) in each block (Ang, Energy Policy 33, 2005: the decomposition LMDI I). A
slow block then counts no more than a fast one. The share of a part is E (d / L) / E log(A / B), a ratio of two means
that vary together.

Its interval is that of Fieller (J. R. Stat. Soc. B 16, 1954): all shares s for which the t test of the values
d / L - s log(A / B) does not reject a mean of 0. For normal differences it covers exactly what it says, at any n from 2
on, which a t interval of the ratios d / D does not: where D may be near 0 these have no mean. Where the t interval of
the whole holds 0 the shares that are not rejected have no end: the data say nothing about any share. Such an interval
is from minus to plus infinity here, whatever its exact shape.

The parts of one difference are a family: who reads them looks for the largest. Their intervals hold all together, each
at 1 - alpha / m for m candidates (Bonferroni). A bound that uses how they correlate would have to estimate that of ten
parts from five blocks; and of five blocks all changes of sign give no p value below 6 %. The whole is tested first, at
alpha by itself (a gate: Marcus, Peritz & Gabriel, Biometrika 63, 1976). Where it differs, and its interval at
1 - alpha / m holds 0 all the same, a share has one end: that of the sign which is known.

Which part is the largest is another question than how large each is. What makes one block slow is in many parts, so
their intervals overlap while one is larger in each block. It is asked by multiple comparisons with the best (Hsu, Ann.
Stat. 12, 1984): `not_smaller`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mountlab.stats.estimates import Flags, Floats, checked, t_quantile
from mountlab.stats.rounding import alike


@dataclass(frozen=True)
class DifferenceShare:
    """The share of a difference that a part of it has: 0.8 is 80 %. It may be negative, and above 1: parts may point
    against each other."""

    share: float
    low: float
    high: float
    n: int
    """Blocks that hold both sides."""
    level: float
    """Of this interval by itself: it is higher than that at which all parts hold together."""

    @property
    def shown(self) -> bool:
        """Whether it is known not to be 0."""
        return self.low > 0 or self.high < 0


MINOR = 0.01
"""Of both sums together: a smaller part is no candidate for the largest of their difference. The choice looks at the
sum of both sides, which does not depend on their difference where both vary alike."""


def shares_of_parts(
    ours: Floats, theirs: Floats, groups: Sequence[Sequence[int]], *, level: float = 0.95
) -> list[DifferenceShare]:
    """Return the share that each group of parts has in the log ratio of two sums. All of their intervals hold together.

    `ours`, `theirs`: the addends of each block, of shape (parts, blocks), with sums above 0; `groups`: parts by their
    rows. Two groups that are the same parts, or all parts between them, are one candidate; all parts together are none.
    MINOR parts make no difference to this.
    """
    parts, major = parts_of_log_ratio(ours, theirs), frozenset(_major(ours, theirs))
    sides = [major & frozenset(group) for group in groups]
    candidates = {frozenset((side, major - side)) for side in sides if side and side != major}
    joint, whole = 1 - (1 - level) / max(len(candidates), 1), parts.sum(axis=0)
    of_groups = np.array([parts[list(group)].sum(axis=0) for group in groups]).reshape(len(groups), len(whole))
    return _shares(of_groups, np.broadcast_to(whole, of_groups.shape), joint, level)


def not_smaller(
    ours: Floats, theirs: Floats, groups: Sequence[Sequence[int]], *, level: float = 0.95
) -> list[list[int]]:
    """Return for each group the rows of other parts that are not shown to have a smaller share than it: those for which
    the one-sided paired t test does not reject, at (1 - level) / (m - 1) for m parts.

    The largest of all parts is the one with the largest share, or one of those that are not shown to be smaller, with
    the probability `level` at least. MINOR parts are left out. Raises as `t_quantile`.
    """
    parts, major = parts_of_log_ratio(ours, theirs), _major(ours, theirs)
    parts, two_sided = parts * np.sign(parts.sum()), 1 - 2 * (1 - level) / max(len(major) - 1, 1)
    found = []
    for group in groups:
        others = [row for row in major if row not in group]
        larger = _are_larger(parts[list(group)].sum(axis=0) - parts[others], two_sided)
        found.append([row for row, is_larger in zip(others, larger, strict=True) if not is_larger])
    return found


def _major(ours: Floats, theirs: Floats) -> list[int]:
    sizes = (ours + theirs).sum(axis=1)
    return np.flatnonzero(sizes >= MINOR * sizes.sum()).tolist()


def _are_larger(by: Floats, level: float) -> Flags:
    """Return whether the t interval of each row of differences lies above 0; False of one block."""
    rows, n = by.shape
    if n <= 1:
        return np.zeros(rows, dtype=bool)
    reach = t_quantile(level, n - 1) * by.std(axis=1, ddof=1) / math.sqrt(n)
    return np.asarray(by.mean(axis=1) > reach)


def parts_of_log_ratio(ours: Floats, theirs: Floats) -> Floats:
    """Return what each addend makes of the logarithm of the ratio of two sums, in each block: (parts, blocks)."""
    differences, (a, b) = ours - theirs, (side.sum(axis=0) for side in (ours, theirs))
    return np.asarray(differences * np.divide(np.log1p((a - b) / b), a - b, out=1 / a, where=a != b))


def share_of_difference(
    part: Sequence[float] | Floats, whole: Sequence[float] | Floats, *, level: float = 0.95, gate: float | None = None
) -> DifferenceShare:
    """Return the share s = E d / E D of a difference that a part of it has, from the differences of the part d and of
    the whole D in each block (B - A, in the same unit), with Fieller's interval.

    With the means d, D, the variances and the covariance of these means v_d, v_D, v_dD, and t the quantile with n - 1
    degrees of freedom, the interval is all s with (d - s D)^2 <= t^2 (v_d - 2 s v_dD + s^2 v_D). Where D^2 <= t^2 v_D
    it has no end: the bounds are then infinite, or one of them is: where D differs from 0 at the level `gate` (None:
    `level`), the interval is those s whose sign that gives. They are NaN for n < 2 and where neither difference has a
    spread, the share for n < 1 and a mean difference of 0. Raises ParameterError for a level out of range, ValueError
    for values that are not finite and for unlike counts. Source: Fieller (1954).
    """
    ours, all_of_it = checked(part, level), checked(whole, level)
    if len(ours) != len(all_of_it):
        raise ValueError("the part and the whole have one difference a block each")
    (share,) = _shares(ours[None, :], all_of_it[None, :], level, gate)
    return share


def _shares(parts: Floats, wholes: Floats, level: float, gate: float | None) -> list[DifferenceShare]:
    """Return the share of each row of parts. Raises as `share_of_difference`."""
    rows = shares_of_rows(checked(parts, level), checked(wholes, level), level=level, gate=gate)
    n = parts.shape[1]
    return [DifferenceShare(float(s), float(low), float(high), n, level) for s, low, high in zip(*rows, strict=True)]


def shares_of_rows(
    parts: Floats, wholes: Floats, *, level: float, gate: float | None = None
) -> tuple[Floats, Floats, Floats]:
    """Return share, low and high of many shares at once, from differences of shape (shares, blocks): those of
    `share_of_difference`."""
    rows, n = parts.shape
    if n == 0:
        none = np.full(rows, math.nan)
        return none, none.copy(), none.copy()
    d, whole = parts.mean(axis=1), wholes.mean(axis=1)
    share = _quotient(d, whole, whole != 0)
    if n == 1:
        return share, np.full(rows, math.nan), np.full(rows, math.nan)
    own, all_of_it = parts - d[:, None], wholes - whole[:, None]
    factor = t_quantile(level, n - 1) ** 2 / (n * (n - 1))
    v_d, v_both, v_whole = (
        factor * np.sum(one * other, axis=1) for one, other in ((own, own), (own, all_of_it), (all_of_it, all_of_it))
    )
    opened = (t_quantile(gate or level, n - 1) / t_quantile(level, n - 1)) ** 2 * v_whole < whole**2
    low, high = _ends(d**2 - v_d, d * whole - v_both, whole**2 - v_whole, np.where(opened, np.sign(d * whole), 0))
    unknown = _without_spread(parts, d) & _without_spread(wholes, whole)
    return share, np.where(unknown, math.nan, low), np.where(unknown, math.nan, high)


def _ends(c: Floats, b: Floats, a: Floats, sign: Floats) -> tuple[Floats, Floats]:
    """Return the ends of a s^2 - 2 b s + c <= 0. Where a is not positive they are infinite, but for that which is next
    to 0 where c is positive: then s is beyond one root or the other, which have unlike signs. `sign`: that of s, 0
    where it is not known."""
    half = np.sqrt(np.maximum(b**2 - a * c, 0))
    one, other = (_quotient(b + side * half, a, a > 0) for side in (-1, 1))
    bounded, open_ended = a > 0, (a <= 0) & (c > 0)
    above, below = open_ended & (sign > 0), open_ended & (sign < 0)
    low = np.where(bounded, one, np.where(above, _quotient(c, b + half, above), -math.inf))
    high = np.where(bounded, other, np.where(below, _quotient(c, b - half, below), math.inf))
    return low, high


def _quotient(above: Floats, below: Floats, where: Flags) -> Floats:
    return np.asarray(np.divide(above, below, out=np.full(below.shape, math.nan), where=where))


def _without_spread(rows: Floats, mean: Floats) -> Flags:
    return alike(rows.std(axis=1, ddof=1), mean)

"""Means, standard deviations and analyses of variance against the values that NIST certifies (StRD).

A certified value is exact for the decimal numbers of the data set. A double holds those numbers to 16 digits only, so
where all of the leading digits are alike, no program that reads doubles can reach the certified value: for these sets
the exact result for the doubles themselves is computed with fractions, and it is that which we must meet to 12 digits.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mountlab.stats import estimate
from mountlab.stats.anova import variance_table
from rows import every_row

STRD: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "nist" / "strd.json").read_text())


def digits(ours: float, certified: Fraction | float | str) -> float:
    """How many significant digits agree (the log relative error of the literature); 16 where all do."""
    wanted = Fraction(certified)
    error = abs(Fraction(ours) - wanted) / abs(wanted)
    return -math.log10(error) if error > Fraction(1, 10**16) else 16.0


def square_root(x: Fraction) -> Fraction:
    """To 40 digits."""
    scale = 10**40
    return Fraction(math.isqrt(x.numerator * scale * scale // x.denominator), scale)


# --- summaries --------------------------------------------------------------------------------------------------------


def pi_digits(count: int) -> list[int]:
    """The first digits of pi, 3 included, by Machin's formula in whole numbers."""
    unit = 10 ** (count + 10)

    def arctangent_of_inverse(x: int) -> int:
        term, total, k = unit // x, 0, 0
        while term:
            total += (-1) ** k * (term // (2 * k + 1))
            term, k = term // (x * x), k + 1
        return total

    pi = 4 * (4 * arctangent_of_inverse(5) - arctangent_of_inverse(239))
    half = 10 ** (count // 2 + 9)  # Python writes out no more than 4,300 digits at once
    text = f"{pi // half}{pi % half:0{count // 2 + 9}d}"
    return [int(digit) for digit in text[:count]]


def nist_digits() -> list[int]:
    """Those of the data set, which are the digits of pi but for one: where pi has an 8 it has a 3."""
    found = pi_digits(5000)
    assert found[956] == 8
    return [*found[:956], 3, *found[957:]]


def accuracy(start: str, step: str = "0.1") -> list[float]:
    """NumAcc2 to 4: one value, then 500 pairs of it less and more 0.1."""
    middle, by = Decimal(start), Decimal(step)
    return [float(middle), *[float(middle - by), float(middle + by)] * 500]


UNIVARIATE: dict[str, tuple[Sequence[float], str, str]] = {
    **{name: (each["values"], each["mean"], each["sd"]) for name, each in STRD["univariate"].items()},
    "PiDigits": (nist_digits(), "4.53480000000000", "2.86733906028871"),
    "NumAcc1": ([10000001, 10000003, 10000002], "10000002", "1"),
    "NumAcc2": (accuracy("1.2"), "1.2", "0.1"),
    "NumAcc3": (accuracy("1000000.2"), "1000000.2", "0.1"),
    "NumAcc4": (accuracy("10000000.2"), "10000000.2", "0.1"),
}
REACHED = {"NumAcc3": 9.4, "NumAcc4": 8.2}
"""Digits of the standard deviation that doubles allow, where that is fewer than 12."""


def test_all_nine_sets_are_there() -> None:
    lengths = {name: len(values) for name, (values, _, _) in UNIVARIATE.items()}
    assert lengths == {
        "Lottery": 218,
        "Lew": 200,
        "Mavro": 50,
        "Michelso": 100,
        "PiDigits": 5000,
        "NumAcc1": 3,
        "NumAcc2": 1001,
        "NumAcc3": 1001,
        "NumAcc4": 1001,
    }


@every_row("name", UNIVARIATE)
def test_mean_and_standard_deviation_have_the_digits_that_nist_certifies(name: str) -> None:
    values, mean, sd = UNIVARIATE[name]
    ours = estimate(values)
    assert digits(ours.mean, mean) >= 14
    assert digits(ours.sd, sd) >= REACHED.get(name, 12)


@every_row("name", UNIVARIATE)
def test_the_standard_deviation_of_the_doubles_is_right_to_14_digits(name: str) -> None:
    """By fractions: what is missing above is lost in reading the data, and none of it here."""
    values = [Fraction(value) for value in UNIVARIATE[name][0]]
    mean = sum(values) / len(values)
    exact = square_root(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
    assert digits(estimate([float(value) for value in values]).sd, exact) >= 14


# --- one-way analysis of variance -------------------------------------------------------------------------------------


def steps(leading: str, replicates: int) -> dict[str, list[float]]:
    """SmLs01 to 09: nine treatments around .4, .3 and .5, each one value and then pairs of 0.1 less and more."""
    middles = [Decimal(leading) + Decimal(tenths) / 10 for tenths in (4, 3, 5, 3, 5, 3, 5, 3, 5)]
    tenth = Decimal("0.1")
    return {
        str(number): [float(middle), *[float(middle - tenth), float(middle + tenth)] * (replicates // 2)]
        for number, middle in enumerate(middles, start=1)
    }


CERTIFIED = {21: ("1.68", "1.8", "21"), 201: ("16.08", "18", "201"), 2001: ("160.08", "180", "2001")}
"""Of SmLs by the number of replicates: sums of squares between and within, and F."""
ANOVA: dict[str, tuple[Mapping[str, Sequence[float]], tuple[str, str, str]]] = {
    **{
        name: (each["values"], (each["between"][1], each["within"][1], each["f"]))
        for name, each in STRD["anova"].items()
    },
    **{
        f"SmLs0{3 * row + column + 1}": (steps(leading, n), CERTIFIED[n])
        for row, leading in enumerate(("1", "1000000", "1000000000000"))
        for column, n in enumerate(CERTIFIED)
    },
}
ALLOWED = {
    "AtmWtAg": 10.0, "SmLs04": 10.0, "SmLs05": 9.8, "SmLs06": 9.8, "SmLs07": 3.9, "SmLs08": 3.8, "SmLs09": 3.8,
}  # fmt: skip
"""Digits that doubles allow, where that is fewer than 12: 3 to 13 of the 16 are the same in all values of the set."""


def table(values: Mapping[str, Sequence[float]]) -> tuple[float, float, float]:
    """Sums of squares between and within, and F."""
    groups = [name for name, own in values.items() for _ in own]
    found = variance_table(np.array([*chain(*values.values())]), {"group": groups})
    assert list(found["effect"]) == ["group", "residual"]
    assert list(found["df"]) == [len(values) - 1, len(groups) - len(values)]
    return float(found["sum_sq"][0]), float(found["sum_sq"][1]), float(found["f"][0])


@every_row("name", ANOVA)
def test_the_analysis_of_variance_has_the_digits_that_nist_certifies(name: str) -> None:
    values, certified = ANOVA[name]
    reached = [digits(ours, theirs) for ours, theirs in zip(table(values), certified, strict=True)]
    assert min(reached) >= ALLOWED.get(name, 12)


@every_row("name", ANOVA)
@pytest.mark.slow
def test_the_analysis_of_variance_of_the_doubles_is_right_to_12_digits(name: str) -> None:
    groups = [[Fraction(value) for value in own] for own in ANOVA[name][0].values()]
    everything = [*chain(*groups)]
    grand = sum(everything) / len(everything)
    means = [sum(own) / len(own) for own in groups]
    between = sum(len(own) * (mean - grand) ** 2 for own, mean in zip(groups, means, strict=True))
    within = sum((value - mean) ** 2 for own, mean in zip(groups, means, strict=True) for value in own)
    f = between / (len(groups) - 1) / (within / (len(everything) - len(groups)))
    for ours, exact in zip(table(ANOVA[name][0]), (between, within, f), strict=True):
        assert digits(ours, exact) >= 12


@pytest.mark.parametrize("name", STRD["anova"])
def test_r_squared_and_the_residual_deviation_follow(name: str) -> None:
    between, within, _ = table(ANOVA[name][0])
    df = STRD["anova"][name]["within"][0]
    assert digits(between / (between + within), STRD["anova"][name]["r_squared"]) >= ALLOWED.get(name, 12)
    assert digits(math.sqrt(within / df), STRD["anova"][name]["residual_sd"]) >= ALLOWED.get(name, 12)

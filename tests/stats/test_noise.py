"""Where the noise of a ratio comes from: each source made on purpose, and named; and how much of it must go."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mountlab.core.findings import NoiseSource
from mountlab.stats import adjust_comparisons, compare_rows, power
from mountlab.stats.comparisons import Ratios
from mountlab.stats.estimates import Floats
from mountlab.stats.noise import noise_sources
from repetition import few_then_many
from rows import every_row

N = 30


def noise_source(a: Floats, b: Floats, *, steps: tuple[float, float] = (0.0, 0.0)) -> NoiseSource:
    """Of one comparison."""
    return noise_sources(a[None, :], b[None, :], steps=steps)[0]


def made(source: NoiseSource, seed: int, n: int = N) -> tuple[Floats, Floats]:
    """Two sides of which the ratio varies because of `source`; what blocks have in common varies by 3 %."""
    rng = np.random.default_rng(seed)
    a, b = 0.01 * rng.normal(size=(2, n))
    common, places = 0.03 * rng.normal(size=n), np.arange(n)
    match source:
        case "candidate":
            a *= 8
        case "baseline":
            b *= 8
        case "one block":
            a[n // 3] += 0.5
        case "few blocks":
            a[[1, n // 2]] += 0.5
        case "step":
            a[places > n // 2] += 0.1
        case "drift":
            b += 0.004 * places
        case "two modes":
            a += 0.1 * rng.permutation(np.arange(n) % 2)
    return np.exp(a + common), np.exp(b + common)


@pytest.mark.slow
@every_row("source", ["candidate", "baseline", "both", "one block", "few blocks", "step", "drift", "two modes"])
def test_each_source_is_named_in_most_runs(source: NoiseSource) -> None:
    """What a block does to both sides is three times the noise of a calm side, and is in no ratio."""
    told = [noise_source(*made(source, seed)) for seed in range(20)]
    assert told.count(source) >= 17, told


@pytest.mark.parametrize("runs", few_then_many(120, 400))
def test_sides_that_are_alike_are_rarely_told_apart(runs: int) -> None:
    """5 % by the test of the sides, some more by the tests over the blocks."""
    told = [noise_source(*made("both", seed, n=8)) for seed in range(runs)]
    assert told.count("both") > 0.88 * runs


def test_swapping_the_sides_swaps_what_is_said() -> None:
    a, b = made("candidate", 1)
    assert (noise_source(a, b), noise_source(b, a)) == ("candidate", "baseline")


def test_too_few_blocks_tell_nothing() -> None:
    a, b = made("candidate", 1)
    assert noise_source(a[:2], b[:2]) == "unknown"


def test_a_step_of_the_tool_that_explains_the_spread_is_the_source() -> None:
    """A tool of whole ones that printed 10 and 11 by turns."""
    a, b = 10.0 + np.arange(8) % 2, np.full(8, 10.0)
    assert noise_source(a, b, steps=(2.5, 2.5)) == "rounding"
    assert noise_source(a, b, steps=(1e-9, 1e-9)) != "rounding"


def test_sides_that_share_too_few_blocks_are_judged_by_their_own_spread() -> None:
    a, b = made("candidate", 2)
    a, b = np.exp(np.log(a) - np.log(b)), np.exp(0.001 * np.log(b))
    a[::2], b[1::2] = math.nan, math.nan
    assert noise_source(a, b) == "candidate"
    assert noise_source(np.append(a[1:3], math.nan), np.append(math.nan, b[0:2])) == "unknown"


def test_missing_blocks_are_left_out() -> None:
    a, b = made("one block", 3)
    a[5], b[7] = math.nan, math.nan
    assert noise_source(a, b) == "one block"


def test_many_at_once_are_as_each_alone() -> None:
    kinds: list[NoiseSource] = ["candidate", "one block", "step", "drift", "two modes", "both"]
    pairs = [made(kind, seed) for seed, kind in enumerate(kinds)]
    pairs[1][0][4] = math.nan
    together = noise_sources(*(np.array(side) for side in zip(*pairs, strict=True)))
    assert together == [noise_source(a, b) for a, b in pairs]


# --- how much of it must go -------------------------------------------------------------------------------------------


def noisy(effects: Floats, sd: float, n: int) -> Ratios:
    """Ratios of just these effects and this spread."""
    rng = np.random.default_rng(5)
    logs = rng.normal(size=(len(effects), n))
    logs -= logs.mean(axis=1, keepdims=True)
    logs *= sd / logs.std(axis=1, ddof=1, keepdims=True)
    return compare_rows(np.exp(logs + effects[:, None]), np.ones((len(effects), n)))


def test_noise_that_is_reduced_by_the_factor_lets_so_many_blocks_decide() -> None:
    """One comparison alone, by the power of its t test: 80 % with the factor, less with 2 % more noise."""
    found = adjust_comparisons(noisy(np.array([0.03]), 0.5, 5), level=0.95, smallest_effect=0.0)
    assert found.needed[0] == power.needed_blocks(math.exp(0.03), 0.5)
    quieter = 0.5 / found.reduce[0]
    assert power.needed_blocks(math.exp(0.03), 0.999 * quieter) == power.QUIET_BLOCKS
    assert power.needed_blocks(math.exp(0.03), 1.05 * quieter) > power.QUIET_BLOCKS


def test_a_ratio_that_is_nearly_the_same_needs_less_to_be_shown_the_same() -> None:
    """A ratio of 1.0001 is never shown to differ; that it lies within 20 % is."""
    near = adjust_comparisons(noisy(np.array([1e-4]), 0.5, 5), level=0.95, smallest_effect=0.2)
    far = adjust_comparisons(noisy(np.array([1e-4]), 0.5, 5), level=0.95, smallest_effect=1e-3)
    assert near.reduce[0] < 10 < far.reduce[0]


def test_more_blocks_than_anybody_runs_are_too_many() -> None:
    assert power.too_many([200, 201, 300, 301, math.inf, math.nan], [5, 5, 150, 150, 5, 5]).tolist() == [
        False,
        True,
        False,
        True,
        True,
        False,
    ]
    assert power.blocks_when_quieter([3, 20, 40]).tolist() == [20, 20, 40]

"""What excluded trials change, in words."""

from __future__ import annotations

from mountlab.core.findings import Comparison, Estimate, FigureTwice, RatioTwice
from mountlab.core.names import metric_noun, workload_label
from mountlab.core.numbers import MISSING, mean_figures, ratio_figures
from mountlab.core.units import scale_for


def figure_text(both: FigureTwice) -> str:
    """Return 'write bandwidth is 370 [360, 380] MB/s (n = 5), without them 380 [370, 390] MB/s (n = 4)'."""
    noun = metric_noun(both.metric, both.label)
    return f"{noun} is {estimate_text(both.counted)}, without them {estimate_text(both.without, both.counted)}"


def estimate_text(estimate: Estimate, like: Estimate | None = None) -> str:
    """Return '370 [360, 380] MB/s (n = 5)', in the unit that suits the value of `like`, else its own."""
    if not estimate.n:
        return MISSING
    reference = like or estimate
    scale = scale_for(reference.unit, abs(reference.mean))
    figures = mean_figures(estimate.mean, estimate.low, estimate.high, factor=scale.factor)
    unit = "" if scale.unit == "1" else f"\u00a0{scale.unit}"
    return f"{figures}{unit} (n = {estimate.n})"


def ratio_text(comparison: Comparison) -> str:
    """Return '0.98 [0.95, 1.02]', with the interval of its verdict."""
    interval = comparison.verdict_interval
    return str(ratio_figures(comparison.ratio, interval.low, interval.high))


def verdict_text(both: RatioTwice) -> str:
    """Return 'The verdict on tmpfs against ext4 under w (write bandwidth) is undecided with them, faster without'."""
    subject = f"The verdict on {sides_text(both.counted)}"
    if both.counted.verdict == both.without.verdict:
        return f"{subject} is {both.counted.verdict} with them and without them"
    return f"{subject} is {both.counted.verdict} with them, {both.without.verdict} without them"


def sides_text(comparison: Comparison) -> str:
    """Return 'tmpfs against ext4 under w (write bandwidth)'."""
    under = workload_label(comparison.workload, comparison.factors)
    noun = metric_noun(comparison.metric, comparison.label)
    return f"{comparison.candidate} against {comparison.baseline} under {under} ({noun})"

"""What is found out: estimates, comparisons, caveats, options in effect, and what others have published."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from mountlab.core.metrics import Better, higher_is_better
from mountlab.core.shown import Shown

Verdict = Literal["faster", "slower", "same", "undecided", "not usable"]
"""`not usable`: an error is about one of the two cells, so that no verdict is given."""
Claim = Literal["faster", "slower", "same"]
Agreement = Literal[
    "agrees", "same direction, smaller", "same direction, larger", "contradicts", "undecided", "not measured"
]
"""How a measured ratio relates to a published one."""
Severity = Literal["note", "warning", "error"]
NoiseSource = Literal[
    "candidate", "baseline", "both", "one block", "few blocks", "step", "drift", "two modes", "rounding", "boxes",
    "unknown",
]  # fmt: skip
"""What most of the spread of a ratio comes from: the trials of one side, or of both where neither stands out; what its
blocks show; boxes that differ. `unknown`: too few blocks tell."""
OptionState = Literal["in effect", "not visible", "ignored", "changed", "without effect", "added"]
"""State of a requested option: the kernel shows it; shows it nowhere; did without it; chose another value; has it
without effect. `added`: shown, and not requested."""
NOT_IN_EFFECT: tuple[OptionState, ...] = ("ignored", "changed", "without effect")
"""States of a requested option that did not act on the figures."""


@dataclass(frozen=True)
class Interval:
    """Where a figure lies, at a level such as 0.95. Bounds may be infinite; both are NaN where nothing is known."""

    low: float = math.nan
    high: float = math.nan
    level: float = math.nan
    """The share of such intervals that hold the true value."""

    @property
    def is_known(self) -> bool:
        """Whether both bounds are known."""
        return not (math.isnan(self.low) or math.isnan(self.high))


@dataclass(frozen=True, kw_only=True)
class Estimate(Shown):
    """A mean with its interval, from the trials of one cell. n counts trials. Bounds are NaN for n < 2. Where the
    method can give none at this n they are infinite; the lower one of a positive quantity is then 0."""

    mean: float
    """The mean, or the statistic that `method` names: geometric mean, median, harmonic mean."""
    low: float
    high: float
    sd: float
    cv: float
    n: int
    level: float
    method: str
    unit: str = ""


@dataclass(frozen=True, kw_only=True)
class Comparison(Shown):
    """The ratio candidate / baseline of one metric, with intervals and verdict. `method`: whether paired by block.

    Its intervals are computed by stats.adjusted, kept in tables by results.tables, and shown with the words of
    wording.verdicts by report.sections and plots.ratios.
    """

    baseline: str
    candidate: str
    workload: str
    tool: str
    factors: Mapping[str, str]
    metric: str
    label: str
    ratio: float
    own: Interval
    """The interval of this comparison alone. In tables: `low`, `high`, `level`."""
    n: int
    """Blocks that hold both sides; not paired, as of two runs: values of the side that has fewer."""
    p: float
    p_adjusted: float
    verdict: Verdict
    method: str
    joint: Interval = Interval()
    """The interval that holds together with those of all other comparisons of the sweep. It lies on one side of 1
    exactly where p_adjusted shows a difference. In tables: `low_all`, `high_all`."""
    equivalence: Interval = Interval()
    """The interval of the two one-sided tests of a verdict `same`. It lies inside the margin. With a level of 95 % it
    is the 90 % interval, or wider where the tests were corrected for others. In tables: `low_same`, `high_same`,
    `level_same`."""
    needed: int | None = None
    """Blocks (of two runs: runs of each side) that would decide it with a chance of 80 %, were ratio and spread those
    measured. None: it is decided, nothing is known, or no sensible number would do: `reduce` then says what would."""
    reduce: float = math.nan
    """Where no sensible number of blocks would decide: the factor by which its noise must fall so that
    stats.power.blocks_when_quieter(n) blocks do; else NaN."""
    noise: NoiseSource | Literal[""] = ""
    """Where no sensible number of blocks would decide: where most of the noise comes from, '' if unknown."""
    censored: int = 0
    """Blocks in which a side ran into its time limit: the ratio is then a median over blocks, such a trial being worse
    than every one that ended. NaN where the median lies among these."""
    better: Better | Literal[""] = ""
    """Which direction is better, for a metric that the sweep defines; '' for one of METRICS."""

    @property
    def more_is_better(self) -> bool:
        """Whether a larger figure is the better one."""
        return higher_is_better(self.metric, self.better)

    @property
    def verdict_interval(self) -> Interval:
        """The interval that is shown beside the verdict: `equivalence` of `same`, where it is known, else `joint`."""
        same = self.verdict == "same" and not math.isnan(self.equivalence.level)
        return self.equivalence if same else self.joint

    @classmethod
    def of_columns(
        cls,
        *,
        low: float,
        high: float,
        level: float,
        low_all: float = math.nan,
        high_all: float = math.nan,
        low_same: float = math.nan,
        high_same: float = math.nan,
        level_same: float = math.nan,
        **values: Any,
    ) -> Comparison:
        """Return the comparison that has these columns in a table."""
        return cls(
            own=Interval(low, high, level),
            joint=Interval(low_all, high_all, level),
            equivalence=Interval(low_same, high_same, level_same),
            **values,
        )

    @property
    def columns(self) -> dict[str, Any]:
        """Name to value of each column that it has in a table, in their order; `factors` is a column each there."""
        row = {field.name: getattr(self, field.name) for field in fields(self)}
        own, joint, same = row.pop("own"), row.pop("joint"), row.pop("equivalence")
        row |= {"factors": dict(self.factors), "low": own.low, "high": own.high, "level": own.level}
        row |= {"low_all": joint.low, "high_all": joint.high}
        row |= {"low_same": same.low, "high_same": same.high, "level_same": same.level}
        return {name: row[name] for name in COMPARISON_COLUMNS}


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What a file system keeps of a figure under a condition (a state, a neighbour)."""

    condition: str
    """Factor: state or beside."""
    level: str
    reference: str
    """The level that this one is compared with: fresh, none."""
    ratio: Comparison
    """The figure at the level by that at the reference, of one file system: its `candidate` and its `baseline`. Its
    factors are those of the level."""


def flips(before: Verdict, after: Verdict) -> bool:
    """Return whether of two verdicts of one answer one is 'faster' and the other 'slower'. As any false one of these
    has a chance of 1 - level at most, so has any false flip."""
    return {before, after} == {"faster", "slower"}


ChangeVerdict = Literal["flips", "changes", "does not change", "undecided", "not usable"]


@dataclass(frozen=True, kw_only=True)
class ConditionChange:
    """Whether a condition (a state, a neighbour) changes the ratio of a file system to the baseline."""

    condition: str
    level: str
    reference: str
    before: Comparison
    """The ratio at the reference: one of the answer."""
    after: Comparison
    """The ratio at the level: one of the answer."""
    change: Comparison
    """`after` by `before`, from blocks that hold all four cells. 'faster': the candidate stands better at the level
    than at the reference. Its factors are those of the level."""
    kept: Comparison
    """What the candidate keeps of its figure at the reference."""
    baseline_kept: Comparison
    """What the baseline keeps."""

    @property
    def flips(self) -> bool:
        """Whether the ranking flips."""
        return flips(self.before.verdict, self.after.verdict)

    @property
    def verdict(self) -> ChangeVerdict:
        """What is shown of the change."""
        if self.flips:
            return "flips"
        words: Mapping[Verdict, ChangeVerdict] = {"faster": "changes", "slower": "changes", "same": "does not change"}
        return words.get(self.change.verdict) or ("not usable" if self.change.verdict == "not usable" else "undecided")


COMPARISON_COLUMNS: Mapping[str, type] = {
    "baseline": str, "candidate": str, "workload": str, "tool": str, "factors": dict, "metric": str, "label": str,
    "ratio": float, "low": float, "high": float, "n": int, "level": float, "p": float, "p_adjusted": float,
    "verdict": str, "method": str, "low_all": float, "high_all": float, "low_same": float, "high_same": float,
    "level_same": float, "needed": int, "reduce": float, "noise": str, "censored": int, "better": str,
}  # fmt: skip
"""Column of a table of comparisons to the type of its values."""


@dataclass(frozen=True, kw_only=True)
class FigureTwice:
    """A figure of a cell without its excluded trials, and with them."""

    cell: str
    metric: str
    label: str
    without: Estimate
    counted: Estimate
    """The estimate with all trials."""


@dataclass(frozen=True, kw_only=True)
class RatioTwice:
    """A comparison without the excluded trials, and with them."""

    without: Comparison
    counted: Comparison
    """The comparison with all trials."""


@dataclass(frozen=True, kw_only=True)
class Exclusions:
    """What the excluded trials change."""

    figures: tuple[FigureTwice, ...] = ()
    """Figures of the cells with excluded trials, in the metrics of the answer."""
    ratios: tuple[RatioTwice, ...] = ()
    """The comparisons with excluded trials on a side, and those whose verdict is another one without them."""
    unread: tuple[str, ...] = ()
    """Excluded trials whose raw output was altered: what they change is not known."""


@dataclass(frozen=True, kw_only=True)
class Caveat(Shown):
    """A reason to doubt a number: what was seen, why it matters, what to do."""

    code: str
    severity: Severity
    message: str
    scope: Literal["run", "filesystem", "cell", "trial"]
    subject: str = ""
    """The cell id, trial id or file system that it is about; '' for the run."""
    metrics: str = ""
    """For a cell: how the names of the metrics begin that it weakens; '' for all of them."""
    asked: bool = False
    """Whether the sweep asks for what the caveat notes (`cache: warm`): its author knows it already."""


@dataclass(frozen=True, kw_only=True)
class OptionEvidence:
    """One requested option, and what the kernel reports of it; or one that the kernel added by itself."""

    filesystem: str
    option: str
    """The option as it was requested; '' for one that the kernel added."""
    kind: Literal["mount", "mkfs", "tunable", "backing"]
    """Where it is given: at the mount, at mkfs, as a tunable, or to the device below."""
    state: OptionState
    """Whether it is in effect, ignored, changed, and so on."""
    kernel_says: str
    """The kernel's own words."""


@dataclass(frozen=True, kw_only=True)
class PublishedFigure:
    """A ratio that somebody published, or the direction in which they say that it points, beside which ours is set."""

    study: str
    """A short name of the study."""
    source: str
    """Where it was published."""
    what: str
    """What was measured, in words."""
    workload: str
    factors: Mapping[str, str]
    metric: str
    candidate: str
    baseline: str
    candidate_value: float = math.nan
    """The published figure of the candidate, in `unit`."""
    baseline_value: float = math.nan
    """The published figure of the baseline."""
    unit: str = ""
    label: str = ""
    """Which row of the metric it is, where there are several."""
    claim: Claim | None = None
    """What was concluded, where no figures were published, or that the two are the same: within `within`."""
    within: float | None = None
    """For the claim `same`: how far from 1 the ratio may be."""
    says: str = ""
    """The conclusion in words."""
    baseline_factors: Mapping[str, str] = field(default_factory=dict)
    """Where two levels of a factor are compared: those of the baseline, in the place of `factors`."""

    @property
    def ratio(self) -> float:
        """Candidate by baseline; NaN where a conclusion was published, not two figures."""
        return math.nan if self.claim else self.candidate_value / self.baseline_value

"""The conformance suite of checks: what a report relies on. `mountlab conform` runs it for plug-ins."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from mountlab.checks.base import Check, Evidence
from mountlab.core.findings import Severity
from mountlab.runner.conformance.rules import NAME, Rule, require

SEVERITIES = get_args(Severity)


@dataclass(frozen=True)
class CheckExample:
    """A run that a check is raised on, or is not."""

    code: str
    raised: bool
    sweep: Mapping[str, Any]
    """As in a sweep file; its question may be left out."""
    figures: Mapping[str, Sequence[float]]
    """`metric` or `metric/label` to its value in each block, in base units; the same in every cell."""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """Attributes of Evidence that are known beside the figures, such as `facts`."""


@dataclass(frozen=True)
class CheckCase:
    """A check on one run."""

    check: Check
    evidence: Evidence
    empty: Evidence
    """Of a sweep without a cell."""
    raised: bool


# --- of a check -------------------------------------------------------------------------------------------------------


def says_what_it_is(check: Check) -> None:
    """It has a plain code, a docstring, advice, and severities that there are."""
    require(re.fullmatch(NAME, check.code), "not a code for a caveat", got=check.code, allowed=f"as in {NAME}")
    require(check.find.__doc__, "its function has no docstring", allowed="a sentence: what the caveat is about")
    require(check.advice.endswith("."), "advice", got=repr(check.advice), allowed="a sentence: what a reader can do")
    is_allowed = check.severities and {*check.severities} <= {*SEVERITIES}
    require(is_allowed, "severities", got=check.severities, allowed=", ".join(SEVERITIES))


# --- of a run ---------------------------------------------------------------------------------------------------------


def finds_nothing_without_trials(case: CheckCase) -> None:
    """It finds nothing where nothing was measured."""
    messages = [caveat.message for caveat in case.check(case.empty)]
    require(not messages, "caveats of an empty run", got=messages, allowed="none")


def is_raised_where_it_should_be(case: CheckCase) -> None:
    """It is raised where it should be, and not where it should not."""
    messages = [caveat.message for caveat in case.check(case.evidence)]
    what = "no caveat on an example that should raise it" if case.raised else "a caveat on an example that should not"
    require(bool(messages) == case.raised, what, got=messages, allowed="as the example says")


def says_what_it_saw(case: CheckCase) -> None:
    """Its messages are sentences about a run, a file system or a cell that there is."""
    cells = {cell.id for cell in case.evidence.sweep.cells}
    names = {fs.name for fs in case.evidence.sweep.filesystems}
    of = {"run": {""}, "filesystem": names, "cell": cells}
    for caveat in case.check(case.evidence):
        require(caveat.message.rstrip().endswith("."), "a message", got=repr(caveat.message), allowed="sentences")
        require(
            caveat.subject in of[caveat.scope],
            f"a subject of a {caveat.scope}",
            got=caveat.subject,
            allowed=", ".join(sorted(of[caveat.scope])),
        )
        is_listed = caveat.severity in case.check.severities
        require(is_listed, "the severity of a doubt", got=caveat.severity, allowed=", ".join(case.check.severities))


def says_why_it_cannot_look(case: CheckCase) -> None:
    """It says in words why it cannot look, or None."""
    why = case.check.blind(case.evidence)
    require(why is None or why, "blind", got=repr(why), allowed="words, or None")


OF_CHECK: tuple[Rule[Check], ...] = (says_what_it_is,)
OF_RUN: tuple[Rule[CheckCase], ...] = (
    is_raised_where_it_should_be, finds_nothing_without_trials, says_what_it_saw, says_why_it_cannot_look,
)  # fmt: skip

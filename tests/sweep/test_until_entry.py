"""The `until` of a sweep file: what is read, and what is refused, with file, key, got and allowed."""

from __future__ import annotations

from typing import Any

import pytest
from mountlab.core.errors import ParameterError
from mountlab.core.model import Design, Until
from mountlab.sweep.sweep_file import resolve
from rows import every_row
from sweeps import DD_WRITE, TMPFS

RULE = {"half_width": "3%"}


def read(until: Any, *, overrides: dict[str, Any] | None = None, baseline: str | None = None, **design: Any) -> Design:
    raw = {
        "name": "s",
        "question": "How precise?",
        "filesystems": {"a": TMPFS, "b": TMPFS},
        "workloads": {"w": DD_WRITE},
        "design": {"until": until, **design},
        **({"baseline": baseline} if baseline else {}),
    }
    return resolve(raw, where="s.yml", overrides=overrides).sweep.design


def refusal(until: Any, **more: Any) -> ParameterError:
    with pytest.raises(ParameterError) as caught:
        read(until, **more)
    return caught.value


def test_a_half_width_is_enough() -> None:
    design = read(RULE)
    assert design.until == Until(half_width=0.03, confidence=0.95, min=5, max=40, budget_s=None, of="cells")
    assert (design.repeats, design.level) == (40, 0.95), "the plan lists up to max blocks"


def test_the_whole_rule_is_read_with_its_units() -> None:
    rule = {"half_width": "2.5 %", "confidence": "90%", "min": 4, "max": 12, "budget": "30m", "of": "comparisons"}
    design = read(rule, baseline="a")
    assert design.until == Until(half_width=0.025, confidence=0.9, min=4, max=12, budget_s=1800.0, of="comparisons")
    assert (design.repeats, design.level) == (12, 0.9), "the report shows the intervals that the rule looked at"


def test_without_until_nothing_changes() -> None:
    assert read(None).until is None
    assert read(None, repeats=7).repeats == 7


@every_row(
    ("until", "where", "got", "allowed"),
    [
        ({"half_width": "3"}, "half_width", "'3' (str)", "a share such as '3%' or 0.03"),
        ({"half_width": "three %"}, "half_width", "'three %' (str)", "a share such as '3%' or 0.03"),
        ({"half_width": "-3%"}, "half_width", "'-3%' (str)", "a share such as '3%' or 0.03"),
        ({"half_width": 3}, "half_width", "3 (int)", "a share such as '3%' or 0.03"),
        ({"half_width": "0%"}, "half_width", "'0%'", "above 0%, up to 50%"),
        ({"half_width": "51%"}, "half_width", "'51%'", "above 0%, up to 50%"),
        ({**RULE, "confidence": "50%"}, "confidence", "'50%'", "above 50%, up to 99.9%"),
        ({**RULE, "confidence": "100%"}, "confidence", "'100%'", "above 50%, up to 99.9%"),
        ({**RULE, "confidence": 95}, "confidence", "95 (int)", "a share such as '3%' or 0.03"),
        ({**RULE, "min": 2}, "min", "2 (int)", "3 or more, 200 or less"),
        ({**RULE, "max": 201}, "max", "201 (int)", "3 or more, 200 or less"),
        ({**RULE, "min": 10, "max": 10}, "max", "min 10, max 10", "11 to 200"),
        ({**RULE, "max": 4}, "max", "min 5, max 4", "6 to 200"),
        ({**RULE, "budget": "30"}, "budget", "'30' (str)", "units ns"),
        ({**RULE, "budget": 1800}, "budget", "1800 (int)", "text such as '60s'"),
        ({**RULE, "budget": "0s"}, "budget", "'0s'", "'30min'"),
        ({**RULE, "of": "ratios"}, "of", "'ratios' (str)", "'cells' or 'comparisons'"),
        ({**RULE, "of": "comparisons"}, "of", "comparisons, and no baseline", "of: cells, or a baseline"),
        ({"min": 5}, "half_width", "nothing", "half_width: ..."),
        ({**RULE, "halfwidth": "3%"}, "halfwidth", "'halfwidth'", "half_width"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(until: Any, where: str, got: str, allowed: str) -> None:
    error = refusal(until)
    assert error.where == f"s.yml: design.until.{where}"
    assert got in error.got
    assert allowed in str(error)


def test_a_rule_that_is_no_mapping_is_refused() -> None:
    assert refusal("3%").where == "s.yml: design.until"


def test_repeats_and_until_together_are_refused_and_how_to_drop_either_is_said() -> None:
    error = refusal(RULE, repeats=5)
    assert (error.where, error.got) == ("s.yml: design", "repeats: 5 and until")
    assert "one of them" in error.allowed
    assert error.next_step == "-p until=null drops the rule, -p repeats=null the number"
    assert read(RULE, overrides={"until": None}, repeats=5).repeats == 5


def test_a_level_beside_the_confidence_is_refused_unless_it_is_the_same() -> None:
    error = refusal(RULE, level=0.9)
    assert (error.where, error.got) == ("s.yml: design.level", "0.9")
    assert "0.95, which is until.confidence" in error.allowed
    assert read(RULE, level=0.95).level == 0.95


@pytest.mark.parametrize("figure", ["median", "geometric", "harmonic"])
def test_a_figure_that_the_rule_does_not_look_at_is_refused(figure: str) -> None:
    """The correction for looking again is that of a mean."""
    error = refusal(RULE, estimate=figure)
    assert (error.where, error.got, error.allowed) == ("s.yml: design.estimate", figure, "mean")
    assert "repeats" in error.next_step
    assert read(RULE, estimate="mean").estimate == "mean"


def test_an_override_changes_one_key_of_the_rule() -> None:
    until = read(RULE, overrides={"until.max": 9, "design.until.budget": "2h"}).until
    assert until is not None
    assert (until.max, until.budget_s) == (9, 7200.0)

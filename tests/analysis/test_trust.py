"""How far an answer can be trusted, by the stated rule; and verdicts that are withheld."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mountlab.analysis.trust import trust_of, withhold_verdicts
from mountlab.core.findings import Caveat
from mountlab.sentences.trust import next_steps, trust_sentence
from rows import every_row
from synthetic_run import SyntheticRun, comparison, synthetic_run

COLD = {"workload": "dd-read", "factors": {"cache": "cold"}, "metric": "read_bandwidth"}
WARM = {"workload": "dd-read", "factors": {"cache": "warm"}, "metric": "read_bandwidth"}


def caveat(severity: Any, subject: str = "", *, code: str = "box-busy", **more: Any) -> Caveat:
    scope = "run" if not subject else "cell" if "/" in subject else "filesystem"
    return Caveat(**{"code": code, "severity": severity, "scope": scope, "subject": subject, "message": "m", **more})


def run_of(*caveats: Caveat, status: str = "complete") -> SyntheticRun:
    """Three comparisons of tmpfs to ext4, on six cells."""
    run = synthetic_run(caveats=False)
    info = replace(run.info, status=status)
    return replace(
        run, comparisons=[comparison(), comparison(**COLD), comparison(**WARM)], caveats=[*caveats], info=info
    )


@every_row(
    ("caveats", "grade"),
    [
        ([], "high"),
        ([caveat("note", "ext4/dd-write")], "high"),
        ([caveat("warning", "ext4/dd-write")], "medium"),
        ([caveat("warning", "ext4/dd-write"), caveat("warning", "tmpfs/dd-read cache=cold")], "low"),
        ([caveat("error", "tmpfs/dd-write")], "low"),
        ([caveat("error", "ramfs/dd-write")], "high"),
        ([caveat("error", "ext4/dd-write", metrics="read_")], "high"),
        ([caveat("warning")], "medium"),
        ([caveat("error")], "low"),
        ([caveat("warning", "tmpfs")], "low"),
    ],
)
def test_the_grade_follows_the_caveats_of_the_cells_that_the_answer_rests_on(caveats: list[Caveat], grade: str) -> None:
    assert trust_of(run_of(*caveats)).grade == grade


def test_what_is_not_finished_is_at_most_of_medium_trust() -> None:
    trust = trust_of(run_of(status="interrupted"))
    assert (trust.grade, trust_sentence(trust, [])) == ("medium", "The run is not complete.")


def test_where_nothing_is_compared_the_cells_count() -> None:
    alone = replace(run_of(caveat("error", "ramfs/dd-write")), comparisons=[])
    assert trust_of(alone).grade == "low"


def test_the_reasons_are_counted_in_cells_the_gravest_first() -> None:
    busy = [caveat("warning", name) for name in ("ext4/dd-write", "tmpfs/dd-write")]
    trust = trust_of(
        run_of(caveat("warning", code="clock-stepped"), *busy, caveat("error", "ext4/dd-write", code="too-few"))
    )
    assert trust_sentence(trust, []) == (
        "Too few trials (do not use) in 1 of 6 cells, box busy in 2 of 6 cells and clock stepped."
    )


def test_the_next_step_is_about_the_gravest_doubt_and_what_is_undecided() -> None:
    trust = trust_of(run_of(caveat("warning", "ext4/dd-write")))
    undecided = comparison(verdict="undecided", needed=14)
    assert next_steps(trust, [undecided, comparison()], 480.0).replace("\u00a0", " ") == (
        "Run again when the box is quiet. This run took 8 min. "
        "Up to 14 blocks in all would decide the undecided comparison."
    )
    assert next_steps(trust_of(run_of()), [comparison()], 480.0) == ""
    hopeless = comparison(verdict="undecided", needed=None)
    for found, decided in (([undecided, hopeless], "1 of 2"), ([undecided, undecided], "2")):
        text = next_steps(trust_of(run_of()), found, None).replace("\u00a0", " ")
        assert text == f"Up to 14 blocks in all would decide {decided} undecided comparisons."


@every_row(
    ("error", "withheld"),
    [
        (caveat("error", "ext4/dd-write"), True),
        (caveat("error", "tmpfs/dd-write"), True),
        (caveat("error", "tmpfs"), True),
        (caveat("error"), True),
        (caveat("error", "ext4/dd-write", metrics="write_"), True),
        (caveat("error", "ext4/dd-write", metrics="read_"), False),
        (caveat("error", "ext4/dd-read cache=cold"), False),
        (caveat("warning", "ext4/dd-write"), False),
    ],
)
def test_what_rests_on_a_cell_that_is_not_to_be_used_has_no_verdict(error: Caveat, withheld: bool) -> None:
    (result,) = withhold_verdicts([comparison(verdict="undecided", needed=9)], [error])
    assert (result.verdict, result.needed) == (("not usable", None) if withheld else ("undecided", 9))

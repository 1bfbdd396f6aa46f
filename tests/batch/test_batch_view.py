"""A batch in the terminal and as a page: what is told, and that text stays text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from batch.test_batch_file import batch, outcome
from mountlab.analysis.published import Beside
from mountlab.batch import view as batch_view
from mountlab.batch.batch_file import Item
from mountlab.batch.view import Ahead, BatchView, ItemResult, Planned, result_of
from mountlab.core.findings import Caveat, PublishedFigure
from pages import Page
from rows import every_row
from synthetic_run import comparison, synthetic_run

HOSTILE = '<script>alert(1)</script><img src=x onerror="alert(2)">"\'&'
PARTS = (
    batch_view.title, batch_view.answer, batch_view.items, batch_view.published, batch_view.failures,
    batch_view.left_out, batch_view.again,
)  # fmt: skip
CLAIM = PublishedFigure(
    study="D.2", source="an article", what="small files", workload="dd-write", factors={}, metric="write_bandwidth",
    candidate="tmpfs", baseline="ext4", claim="faster", says="It is faster.",
)  # fmt: skip


def view(**changes: Any) -> BatchView:
    made = batch({"g": {"sweep": list("abcd")}})
    first, second, third, _ = made.items
    result = ItemResult(
        question="Is it?", verdict="tmpfs writes 6.9 times as fast.", caveats={"warning": 2}, bad_trials={},
        left_out={"xfs": "no mkfs"}, beside=[Beside(CLAIM, comparison(), "agrees")],
    )  # fmt: skip
    broke = {"reason": "it broke\n  got: 3", "error": "PlanError", "notebook": "notebooks/2.failed.ipynb"}
    values: dict[str, Any] = {
        "batch": made, "name": "batch-b-1", "created_at": "2026-11-20T10:00:00+00:00", "command": "again",
        "outcomes": {
            first.id: outcome(first.id, run="r1", page="../r1/report.html", notebook="notebooks/1.ipynb"),
            second.id: outcome(second.id, state="failed", **broke),
            third.id: outcome(third.id, state="left out", reason="no such box"),
        },
        "results": {first.id: result},
        "expected": {third.id: [CLAIM]},
    }  # fmt: skip
    return BatchView(**{**values, **changes})


def text_of(the_view: BatchView) -> str:
    return "".join(part(the_view) for part in PARTS)


def test_the_verdict_counts_items_and_published_results() -> None:
    assert batch_view.verdict(view()) == (
        "Of 4 items: 1 done, 1 failed, 1 left out and 1 not begun; it can be cited. Ours agrees with the one published "
        "result that was measured; 1 was not measured."
    )


@every_row(
    ("reasons", "says"),
    [
        ((), "Both items finished."),
        (("", ""), "Both items finished; both can be cited."),
        (("x", "y"), "Both items finished; neither can be cited. “a”: X. “b”: Y."),
        (("x", "x"), "Both items finished; neither can be cited. “a”, “b”: X."),
        (("", "", ""), "All 3 items finished; all 3 can be cited."),
        (("x", "", "y"), "All 3 items finished; “b” can be cited, “a” and “c” cannot. “a”: X. “c”: Y."),
        (("x", "", "", ""), "All 4 items finished; 3 of 4 can be cited. “a”: X."),
        (
            ("v", "w", "x", "y"),
            "All 4 items finished; none of 4 can be cited. “a”: V. “b”: W. “c”: X. The table has the other reasons.",
        ),
        (("x",) * 5, "All 5 items finished; none of 5 can be cited. “a”, “b”, “c” and 2 more: X."),
    ],
)
def test_the_verdict_says_which_answers_can_be_cited_and_why_others_cannot(reasons: Sequence[str], says: str) -> None:
    """`reasons`: why an item of each cannot be cited; '' where it can. Without any, two items without a run."""
    made = batch({"g": {"sweep": list("abcdef"[: len(reasons) or 2])}})
    result = replace(view().results["01-a"], beside=[])
    results = {item.id: replace(result, not_citable=why) for item, why in zip(made.items, reasons, strict=False)}
    ended = {item.id: outcome(item.id) for item in made.items}
    assert batch_view.verdict(view(batch=made, outcomes=ended, results=results, expected={})) == says


def test_an_answer_with_an_error_or_without_a_verdict_cannot_be_cited() -> None:
    run = synthetic_run(caveats=False)
    bad = Caveat(scope="cell", subject="ext4/dd-write", code="not-flushed", severity="error", message="it was not")
    open_ = replace(run, comparisons=[replace(c, verdict="undecided", needed=18) for c in run.comparisons])
    assert result_of(run).not_citable == ""
    assert result_of(replace(run, caveats=[bad])).not_citable == "1 cell not to be used"
    assert result_of(replace(run, caveats=[replace(bad, scope="run")])).not_citable == "figures not to be used"
    assert result_of(open_).not_citable == "undecided; up to 18 blocks needed"
    noisy = [replace(bad, subject=cell.id, code="noisy", severity="warning") for cell in run.sweep.cells]
    doubtful = result_of(replace(run, caveats=noisy))
    assert re.fullmatch(r"low trust \(noisy in all \d+ cells\)", doubtful.not_citable)
    shown = Page(batch_view.answer(view(results={"01-a": doubtful}))).words
    assert f"“a”: L{doubtful.not_citable[1:]}." in shown
    assert f"Next for “a”: {doubtful.next_step}" in shown
    row = Page(batch_view.items(view(results={"01-a": doubtful}))).words
    assert f"Cannot be cited, {doubtful.not_citable}: {doubtful.verdict}" in row
    assert re.search(r"low\s*1 × Doubt", row)


def test_the_summary_tells_what_failed_and_why_and_where_its_notebook_is() -> None:
    text = batch_view.summary_text(view())
    assert "✓ done        01-a  a\n" in text
    assert "tmpfs writes 6.9 times as fast." in text
    assert "failed: 02-b\n  it broke\n    got: 3\n  notebook: batch-b-1/notebooks/2.failed.ipynb" in text
    assert "left out: 03-c\n  no such box" in text


def test_the_page_links_reports_and_notebooks_and_tells_both_sides_of_a_claim() -> None:
    text = text_of(view())
    for target in ("../r1/report.html", "notebooks/1.ipynb", "notebooks/2.failed.ipynb"):
        assert f'href="{target}"' in text
    words = Page(text).words
    assert "✓\u00a0agrees" in words
    assert "6.9" in words
    assert "It is faster." in words
    assert "not measured" in words
    assert "01-a: xfs" in words
    assert "Not finished: 02-b and 04-d." in words


def test_a_batch_in_which_nothing_went_wrong_says_so() -> None:
    made = batch({"g": {"sweep": "a"}})
    calm = view(batch=made, outcomes={made.items[0].id: outcome(made.items[0].id)}, results={}, expected={})
    words = Page(text_of(calm)).words
    assert "Nothing failed." in words
    assert "Nothing was left out." in words
    assert "No sweep of this batch names published figures." in words
    assert "Not finished" not in words
    assert "Nothing is left to do." in words
    assert "again" not in words, "the command that resumes it"


def test_items_stand_below_the_name_of_their_group_where_there_are_several() -> None:
    for groups in ({"alone": {"sweep": "a"}}, {"alone": {"sweep": "a"}, "other": {"sweep": "b"}}):
        words = Page(batch_view.items(view(batch=batch(groups), outcomes={}, results={}, expected={}))).words
        assert ("alone" in words) == (len(groups) > 1)


def hostile_view() -> BatchView:
    """Hostile text wherever a batch file, a sweep, a box or a notebook could put its own."""
    run = synthetic_run(hostile=HOSTILE)
    item = Item(id="01-x", group="g", notebook="n", sweep=f"x{HOSTILE}.yml", box=HOSTILE, overrides={HOSTILE: HOSTILE})
    other = replace(item, id="02-x")
    made = replace(batch({"g": {"sweep": "a"}}), title=HOSTILE, items=(item, other))
    found = outcome(item.id, run="r", page="../r/report.html", reason="", notebook=f"notebooks/{HOSTILE}.ipynb")
    bad = outcome(other.id, state="failed", reason=f"{HOSTILE}\n{HOSTILE}", error=HOSTILE)
    claim = replace(CLAIM, study=HOSTILE, source=HOSTILE, what=HOSTILE, says=HOSTILE, candidate=HOSTILE)
    said = replace(result_of(run), left_out={HOSTILE: HOSTILE}, beside=[Beside(claim, None, "not measured")])
    return view(
        batch=made, name=HOSTILE, outcomes={item.id: found, other.id: bad}, results={item.id: said}, command=HOSTILE
    )


@pytest.mark.slow
@every_row("part", PARTS, ids=lambda part: part.__name__)
def test_hostile_text_stays_text(part: Any) -> None:
    text = part(hostile_view())
    assert "<script" not in text
    assert "<img" not in text
    assert "alert(1)" in text or "alert" not in Page(text).words


def test_the_plan_tells_each_item_and_all_of_it() -> None:
    made = batch({"g": {"sweep": ["a", "b"]}, "o": {"sweep": "c", "optional": True}})
    one, two, three = made.items
    planned = [
        Planned(one, 90.0, 12, note="goes on with r1"),
        Planned(two, problem="the box lacks fio\n  next: x"),
        Planned(three, problem="no box"),
    ]
    text = batch_view.plan_text(made, planned, 90.0)
    lines = text.splitlines()
    assert lines[0] == "Some"
    assert [" ".join(line.split()) for line in lines[3:6]] == [
        "01-a a 12 90.0 s goes on with r1",
        "02-b b fails: the box lacks fio",
        "03-c c left out: no box",
    ]
    assert lines[-1] == "1 item would run, one after another: about 90 s in all."
    assert batch_view.plan_text(made, planned, 60.0).splitlines()[-1] == (
        "1 item would run, the boxes at the same time: about 60 s in all."
    )


def test_the_time_that_is_left_learns_from_what_items_took() -> None:
    made = batch({"g": {"sweep": list("abc")}})
    ahead = Ahead([Planned(item, 100.0) for item in made.items])
    first, second, third = (item.id for item in made.items)
    assert ahead.seconds() == 300
    assert ahead.seconds(running=first, running_s=40) == 260
    ahead.end(first, 50.0)
    assert ahead.seconds() == 100, "the guesses were twice too long"
    assert ahead.seconds(running=second, running_s=400) == 50, "what takes longer than thought has nothing left"
    ahead.end(second, 0.0)
    assert ahead.seconds() == 50, "what was left out teaches nothing"
    ahead.end(third, 50.0)
    assert ahead.seconds() == 0


@every_row(
    ("states", "error", "bad", "code"),
    [
        (["done", "left out"], "", {}, 0), (["done", "failed"], "BoxError", {}, 1),
        (["failed", "failed"], "BoxError", {}, 3), (["failed", "failed"], "PlanError", {}, 1),
        (["done", "stopped"], "", {}, 1), (["done", "done"], "", {"failed": 1}, 1),
    ],
)  # fmt: skip
def test_exit_codes(states: list[str], error: str, bad: dict[str, int], code: int) -> None:
    made = batch({"g": {"sweep": ["a", "b"]}})
    ended = {
        item.id: outcome(item.id, state=state, error=error) for item, state in zip(made.items, states, strict=True)
    }
    said = ItemResult(question="?", verdict="!", caveats={}, bad_trials=bad, left_out={})
    done = {item.id: said for item, state in zip(made.items, states, strict=True) if state == "done"}
    found = view(batch=made, outcomes=ended, results=done, expected={})
    assert batch_view.exit_code(found) == code


def test_the_entry_for_the_index() -> None:
    made = batch_view.entry(view())
    assert made == {
        "kind": "batch",
        "title": "Some",
        "created_at": "2026-11-20T10:00:00+00:00",
        "page": "report.html",
        "verdict": batch_view.verdict(view()),
        "caveats": {"error": 0, "warning": 2, "note": 0},
        "runs": ["r1"],
    }

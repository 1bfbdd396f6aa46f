"""Two runs, many, and boxes beside each other: as frames, as data and as the parts of a page."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from compared_runs import HOSTILE
from compared_runs import run as with_noise
from mountlab.analysis.compare.runs import RunComparison, compare_runs
from mountlab.report import sections
from mountlab.sentences import comparison as comparison_text
from pages import COMPARED, Page
from synthetic_run import SyntheticRun, synthetic_run


def run(name: str, **options: object) -> SyntheticRun:
    made = synthetic_run(**options)  # type: ignore[arg-type]
    made.info = replace(made.info, run_id=name, box={"name": f"box-{name}"})
    return made


def without(made: SyntheticRun, name: str) -> SyntheticRun:
    """A run of the same sweep that has left one file system out."""
    kept = tuple(fs for fs in made.sweep.filesystems if fs.name != name)
    frames = {what: getattr(made, what) for what in ("trials", "measurements", "estimates")}
    fewer = {what: frame[frame["filesystem"] != name] for what, frame in frames.items()}
    return replace(made, sweep=replace(made.sweep, filesystems=kept), **fewer)


def test_the_ratios_of_two_runs_are_rows_with_the_interval_of_their_verdict() -> None:
    found = compare_runs((run("a"), run("b")))
    rows = found.figures.to_dict("records")
    assert len(rows) == len(found.ratios)
    for row, each in zip(rows, found.ratios, strict=True):
        ours = each.comparison
        assert (row["ratio"], row["low"], row["high"], row["verdict"]) == pytest.approx(
            (ours.ratio, ours.verdict_interval.low, ours.verdict_interval.high, ours.verdict), nan_ok=True
        )
        assert (row["mean_a"], row["n_b"], row["filesystem"]) == (each.mean_a, each.n_b, each.cell.filesystem.name)


def test_the_verdicts_of_each_run_are_those_of_its_own_report() -> None:
    runs = [run("a"), run("b")]
    frame = compare_runs(runs).verdicts
    for name, own in zip("AB", runs, strict=True):
        assert list(frame[frame["run"] == name]["verdict"]) == [each.verdict for each in own.comparisons]
        assert list(frame[frame["run"] == name]["high"]) == pytest.approx(
            [each.verdict_interval.high for each in own.comparisons], nan_ok=True
        )


def test_the_figures_of_many_runs_have_a_ratio_to_the_first() -> None:
    found = compare_runs([run("a"), run("b"), run("c")])
    frame = found.figures
    assert set(frame["run"]) == {"A", "B", "C"}
    assert frame[frame["run"] == "A"]["ratio"].isna().all()
    one, last = found.cells[0], frame[frame["run"] == "C"].iloc[0]
    estimate, ratio = one.estimates[2], one.ratios[2]
    assert estimate is not None
    assert ratio is not None
    assert (last["mean"], last["low"], last["ratio"]) == (estimate.mean, estimate.low, ratio.comparison.ratio)


def test_over_boxes_the_verdicts_also_hold_a_row_over_all_of_them() -> None:
    found = compare_runs([run("a"), run("b"), run("c")], factor="box")
    frame = found.verdicts
    over = frame[frame["run"] == "all boxes"]
    assert list(over["ratio"]) == [each.over.ratio for each in found.over_boxes]
    assert list(over["n"]) == [each.over.n for each in found.over_boxes]
    assert all(math.isfinite(mean) for mean in found.figures["mean"])
    assert set(found.figures["run"]) == {"box-a", "box-b", "box-c"}


def test_cells_that_some_runs_lack_are_named_with_the_runs_that_have_them() -> None:
    runs = [run("a"), without(run("b"), "tmpfs"), run("c")]
    found = compare_runs(runs)
    (where,) = found.only_in
    assert where == "A and C"
    assert all(cell.startswith("tmpfs/") for cell in found.only_in[where])
    assert f"Only in A and C: {len(found.only_in[where])}" in sections.not_compared(found)
    assert "All runs have the same cells." in sections.not_compared(compare_runs([run("a"), run("b"), run("c")]))


KINDS: dict[str, dict[str, Any]] = {"ab": {}, "abc": {}, "ab on boxes": {"factor": "box"}}
"""The names of runs, and what else is asked of their comparison."""


def hostile(names: str, **options: Any) -> RunComparison:
    runs = []
    for name in names.partition(" ")[0]:
        made = with_noise(
            name, hostile=HOSTILE, factor=1.5 if name == "b" else 1, kernel=HOSTILE if name == "b" else "6"
        )
        runs.append(replace(made, info=replace(made.info, box={"name": f"{HOSTILE}{name}"})))
    more = {"missing": {HOSTILE: HOSTILE}} if options else {}
    return compare_runs(runs, **options, **more)


@pytest.mark.slow
@pytest.mark.parametrize(("names", "options"), KINDS.items(), ids=KINDS)
def test_the_page_has_all_its_parts_and_hostile_text_stays_text(names: str, options: dict[str, Any]) -> None:
    page = Page("".join(getattr(sections, part)(hostile(names, **options)) for part in COMPARED))
    assert page.active() == set()
    assert page.crossed == page.open == []
    assert page.tags["h1"] == 1
    assert page.tags["svg"] == (1 if names == "ab" else 2)
    assert all(len(text) > 40 for text in page.values("aria-label", "svg"))
    assert HOSTILE in page.words
    assert ("1 difference in 1 respect" if options else "2 differences in 2 respects") in page.words
    whose = {"ab": "Both runs", "abc": "All runs"}.get(names, "All boxes")
    assert f"{whose} have the same cells." in page.words


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [1, 5])
@pytest.mark.parametrize(("names", "options"), KINDS.items(), ids=KINDS)
def test_as_data_nothing_is_infinite_or_nan(names: str, options: dict[str, Any], blocks: int) -> None:
    """Also of one block, which gives no interval."""
    runs = [
        replace(made, info=replace(made.info, box={"name": made.info.run_id}))
        for made in (with_noise(name, blocks=blocks) for name in names.partition(" ")[0])
    ]
    found = compare_runs(runs, **options)
    read = json.loads(json.dumps(comparison_text.comparison_json(found), allow_nan=False))
    assert read["sentences"] == comparison_text.sentences(found)
    if names == "ab":
        assert (read["a"], read["b"], len(read["ratios"])) == ("a", "b", len(found.ratios))
        assert read["ratios"][0]["ratio"] == pytest.approx(found.ratios[0].comparison.ratio)
        assert (read["ratios"][0]["low"] is None) == (blocks == 1)
    elif names == "abc":
        assert read["runs"] == {"A": "a", "B": "b", "C": "c"}
        assert [len(cell["to_first"]) for cell in read["cells"]] == [3] * len(found.cells)
        assert read["cells"][0]["to_first"][0] is None
    else:
        assert read["boxes"] == {"a": "a", "b": "b"}
        assert len(read["ratios"]) == len(found.over_boxes)
        assert len(read["figures"]) == len(found.cells)

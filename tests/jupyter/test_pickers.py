"""Choosing a run and looking into it: as widgets before a person, as text and one still picture elsewhere."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from mountlab.core import disk
from mountlab.core.errors import InputError, StoreError
from mountlab.jupyter import pickers
from mountlab.jupyter.pickers import KINDS, Explorer, Slice, browse, entries, explore
from mountlab.plots import Plot
from mountlab.results import store
from mountlab.results.info import read_info
from mountlab.results.store import Run

TOUR = disk.ROOT / "results" / "tour"


@pytest.fixture(scope="module")
def run() -> Run:
    return store.load_run(TOUR)


@pytest.fixture
def results(results_dir: Path) -> Path:
    """Three runs of different days, one of them interrupted and with what it derived; and something that is no run."""
    for name, changed in (
        ("a", {"created_at": "2026-01-01T10:00:00+00:00"}),
        ("b", {"created_at": "2026-03-01T10:00:00+00:00", "status": "interrupted"}),
        ("c", {"created_at": "2026-02-01T10:00:00+00:00", "parameters": {"question": "<b>Which?</b>"}}),
    ):
        (results_dir / name).mkdir()
        info = json.loads((TOUR / "run.json").read_text())
        (results_dir / name / "run.json").write_text(json.dumps({**info, **changed}))
    (results_dir / "b" / "comparisons.csv").write_text("verdict,n\nfaster,5\nundecided,5\nfaster,5\n")
    (results_dir / "odd").mkdir()
    (results_dir / "odd" / "run.json").write_text("{}")
    return results_dir


# --- the browser ------------------------------------------------------------------------------------------------------


def test_runs_are_listed_newest_first_with_what_they_say(results: Path) -> None:
    found = entries(results)
    assert [each.path.name for each in found] == ["b", "c", "a"]
    assert found[0].verdict == "2 faster, 1 undecided"
    assert found[0].line.startswith("2026-03-01 10:00 · local · How much faster than ext4")
    assert found[0].line.endswith("· 2 faster, 1 undecided · interrupted")
    assert found[2].verdict == ""


def test_the_newest_is_chosen_unless_another_is_named(results: Path) -> None:
    assert browse(results).chosen.path.name == "b"
    assert browse(results, chosen=results / "a").chosen.path.name == "a"
    assert browse(results, chosen="results/tour").run.info["run_id"] == read_info(TOUR)["run_id"]


def test_where_there_is_no_run_the_next_step_is_told(results_dir: Path) -> None:
    with pytest.raises(StoreError) as caught:
        browse(results_dir)
    assert caught.value.next_step == "make demo"


def test_without_a_person_it_is_a_table_in_which_text_stays_text(results: Path) -> None:
    browser = browse(results)
    assert browser._widget is None
    page = browser._page().text
    assert page.count("<tr") == 4
    assert "&lt;b&gt;Which?" in page
    assert repr(browser).splitlines()[0].startswith("* b  2026-03-01")


def test_a_person_narrows_the_list_and_chooses(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickers, "person_is_there", lambda: True)
    browser = browse(results)
    search, listed, about = browser._widget.children
    assert len(listed.options) == 3
    search.value = "which local"
    assert [path.name for _, path in listed.options] == ["c"]
    listed.value = results / "c"
    assert browser.chosen.path.name == "c"
    assert "&lt;b&gt;Which?" in about.value
    search.value = "nobody asked this"
    assert [line for line, _ in listed.options] == ["No run matches. Still chosen: c"]
    assert browser.chosen.path.name == "c"
    assert "not derived yet" in about.value
    search.value = "undecided"
    assert [path.name for _, path in listed.options] == ["b"]
    search.value = ""
    assert len(listed.options) == 3


def test_all_of_the_question_and_the_name_are_searched(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line in the list has room for the beginning of a question only."""
    monkeypatch.setattr(pickers, "person_is_there", lambda: True)
    browser = browse(results)
    search, listed, _ = browser._widget.children
    first = browser.entries[0]
    last = first.question.split()[-1]
    assert last not in first.line
    search.value = last
    assert [path.name for _, path in listed.options] == ["b", "a"]
    assert [each.searched.split()[0] for each in browser.entries] == ["b", "c", "a"]


# --- the explorer -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_draws_a_whole_run(run: Run, kind: str) -> None:
    plot = explore(run, kind=kind).plot()
    assert isinstance(plot, Plot)
    assert "<svg" in plot.svg()


def test_the_main_metrics_come_first(run: Run) -> None:
    explorer = explore(run)
    assert explorer.metrics[:2] == ["write_bandwidth", "read_bandwidth"]
    assert set(explorer.metrics) == set(run.measurements["metric"])


def test_a_slice_is_the_rows_of_what_is_picked(run: Run) -> None:
    part = Slice(run, "read_bandwidth", ("tmpfs", "ext4"), ("dd-read cache=cold",))
    by_hand = run.measurements.query(
        "metric == 'read_bandwidth' and cell in ('tmpfs/dd-read cache=cold', 'ext4/dd-read cache=cold')"
    )
    assert sorted(part.measurements["value"]) == sorted(by_hand["value"])
    assert set(part.estimates["cell"]) == {"tmpfs/dd-read cache=cold", "ext4/dd-read cache=cold"}
    assert [(c.candidate, c.factors["cache"]) for c in part.comparisons] == [("tmpfs", "cold")]


def test_a_file_system_keeps_its_colour_in_every_slice(run: Run) -> None:
    whole = Slice(run, "read_bandwidth", ("tmpfs", "ramfs", "ext4"), ("dd-read cache=cold",))
    one = Slice(run, "read_bandwidth", ("ext4",), ("dd-read cache=cold",))
    assert one.orders == whole.orders


def test_names_that_the_run_has_not_are_told(run: Run) -> None:
    with pytest.raises(InputError, match="no such metric of this run") as caught:
        explore(run, metric="speed")
    assert "write_bandwidth" in caught.value.allowed
    with pytest.raises(InputError, match="no such kind of plot"):
        explore(run, kind="pie")


def person(monkeypatch: pytest.MonkeyPatch, run: Run) -> tuple[Explorer, Any, Any]:
    monkeypatch.setattr(pickers, "person_is_there", lambda: True)
    explorer = explore(run)
    left, drawn = explorer._widget.children
    return explorer, left.children, drawn


@pytest.mark.slow
def test_every_pick_draws_anew(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    explorer, (kind, metric, names, labels), drawn = person(monkeypatch, run)
    first = drawn.value
    kind.value = "Ratios to the baseline"
    assert drawn.value != first
    metric.value = "read_bandwidth"
    names.value = ("tmpfs",)
    labels.value = ("dd-read cache=cold",)
    assert explorer.slice == Slice(run, "read_bandwidth", ("tmpfs",), ("dd-read cache=cold",))
    assert explorer.plot().alt in drawn.value


@pytest.mark.slow
def test_nothing_picked_is_said_and_no_error(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    _, (_, _, names, _), drawn = person(monkeypatch, run)
    names.value = ()
    assert "Nothing to draw" in drawn.value


def test_a_slice_without_data_says_so_where_its_figures_are_asked_for(run: Run) -> None:
    with pytest.raises(InputError) as caught:
        _ = Slice(run, "write_bandwidth", ("tmpfs",), ("dd-read cache=cold",)).measurements
    assert caught.value.got == "write_bandwidth of tmpfs under dd-read cache=cold"
    assert "pick another metric" in caught.value.next_step


def test_a_slice_is_shown_in_a_unit_that_fits(run: Run) -> None:
    part = explore(run, metric="write_bandwidth").slice
    shown = part.measurements["value"].max() / part.scale.factor
    assert 1 <= shown < 1000
    assert part.scale.unit in {"MB/s", "GB/s"}


def test_without_a_person_it_is_one_still_picture(run: Run) -> None:
    explorer = explore(run)
    assert explorer._widget is None
    assert "<svg" in explorer._drawn().text
    assert repr(explorer) == (
        "Every trial: write_bandwidth of tmpfs, ramfs, ext4; dd-write, dd-read cache=cold, dd-read cache=warm"
    )


def test_a_run_without_derived_files_is_listed_all_the_same(results_dir: Path) -> None:
    shutil.copytree(TOUR, results_dir / "tour", ignore=shutil.ignore_patterns("raw", "*.csv", "*.parquet"))
    assert [each.path.name for each in entries(results_dir)] == ["tour"]

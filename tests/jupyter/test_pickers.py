"""Choosing a run and looking into it: as widgets before a person, as text and one still picture elsewhere."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import ipywidgets
import pytest
from mountlab.core.errors import InputError, StoreError
from mountlab.core.places import SHIPPED
from mountlab.jupyter import pickers
from mountlab.jupyter.pickers import KINDS, Slice, browse, entries, explore
from mountlab.plots import Plot
from mountlab.results import store
from mountlab.results.info import read_info
from mountlab.results.store import Run

TOUR = SHIPPED / "tests" / "data" / "earlier_run"


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
    first, second, third = entries(results)
    assert [first.path.name, second.path.name, third.path.name] == ["b", "c", "a"]
    assert first.verdict == "2 faster, 1 undecided"
    assert first.line.startswith("2026-03-01 10:00 · local · How much faster than ext4")
    assert first.line.endswith("· 2 faster, 1 undecided · interrupted")
    assert third.verdict == ""
    shutil.copytree(TOUR, results / "tour", ignore=shutil.ignore_patterns("raw", "*.csv", "*.parquet"))
    assert "tour" in {entry.path.name for entry in entries(results)}, "without derived files, too"


@pytest.mark.slow
def test_the_newest_is_chosen_unless_another_is_named(results: Path) -> None:
    assert browse(results).chosen.path.name == "b"
    assert browse(results, chosen=results / "a").chosen.path.name == "a"
    assert browse(results, chosen="results/tour").run.info.run_id == read_info(SHIPPED / "results" / "tour").run_id


def test_where_there_is_no_run_the_next_step_is_told(results_dir: Path) -> None:
    with pytest.raises(StoreError) as caught:
        browse(results_dir)
    assert caught.value.next_step == "mountlab demo"


class Screen:
    """What is displayed, before a person or nobody; its fields are found by the words beside or in them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, person: bool) -> None:
        monkeypatch.setattr(pickers, "widgets_show", lambda: person)
        monkeypatch.setattr(pickers, "show", self._show)
        self.parts: list[Any] = []

    def _show(self, shown: Any) -> None:
        self.parts = [shown]
        for part in self.parts:
            self.parts += getattr(part, "children", ())

    def field(self, words: str) -> Any:
        texts = ("description", "placeholder")
        (field,) = [part for part in self.parts if any(words in getattr(part, text, "") for text in texts)]
        return field

    @property
    def listed(self) -> Any:
        (select,) = [part for part in self.parts if isinstance(part, ipywidgets.Select)]
        return select

    @property
    def text(self) -> str:
        texts = (part.value if isinstance(part, ipywidgets.HTML) else part for part in self.parts)
        return "".join(text for text in texts if isinstance(text, str))


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Screen:
    return Screen(monkeypatch, person=True)


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> Screen:
    return Screen(monkeypatch, person=False)


def test_without_a_person_it_is_a_table_in_which_text_stays_text(results: Path, nobody: Screen) -> None:
    browser = browse(results)
    browser._ipython_display_()
    assert nobody.text.count("<tr") == 4
    assert "&lt;b&gt;Which?" in nobody.text
    assert repr(browser).splitlines()[0].startswith("* b  2026-03-01")


def test_a_person_narrows_the_list_and_chooses(results: Path, person: Screen) -> None:
    browser = browse(results)
    browser._ipython_display_()
    search, listed = person.field("Search"), person.listed
    assert len(listed.options) == 3
    search.value = "which local"
    assert [path.name for _, path in listed.options] == ["c"]
    listed.value = results / "c"
    assert browser.chosen.path.name == "c"
    assert "&lt;b&gt;Which?" in person.text
    search.value = "nobody asked this"
    assert [line for line, _ in listed.options] == ["No run matches. Still chosen: c"]
    assert browser.chosen.path.name == "c"
    assert "not derived yet" in person.text
    # The line in the list has room for the beginning of a question only; all of it is searched.
    last = browser.entries[0].question.split()[-1]
    assert last not in browser.entries[0].line
    for words, names in (("undecided", ["b"]), (last, ["b", "a"]), ("", ["b", "c", "a"])):
        search.value = words
        assert [path.name for _, path in listed.options] == names


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


@pytest.mark.slow
def test_every_pick_draws_anew_and_nothing_picked_is_said(run: Run, person: Screen) -> None:
    explorer = explore(run)
    explorer._ipython_display_()
    first = person.text
    person.field("Plot").value = "Ratios to the baseline"
    assert person.text != first
    person.field("Metric").value = "read_bandwidth"
    person.field("File systems").value = ("tmpfs",)
    person.field("Workloads").value = ("dd-read cache=cold",)
    assert explorer.slice == Slice(run, "read_bandwidth", ("tmpfs",), ("dd-read cache=cold",))
    assert explorer.plot().alt in person.text
    person.field("File systems").value = ()
    assert "Nothing to draw" in person.text


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


def test_without_a_person_it_is_one_still_picture(run: Run, nobody: Screen) -> None:
    explorer = explore(run)
    explorer._ipython_display_()
    assert "<svg" in nobody.text
    assert repr(explorer) == (
        "Every trial: write_bandwidth of tmpfs, ramfs, ext4; dd-write, dd-read cache=cold, dd-read cache=warm"
    )

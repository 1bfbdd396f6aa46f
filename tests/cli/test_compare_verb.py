"""`mountlab compare` as a person types it, on the recorded run and a second one made of it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from copied_run import copied
from mountlab import __main__
from mountlab.core import disk
from mountlab.core.places import SHIPPED
from mountlab.report import execute
from mountlab.results import paths
from mountlab.results.info import read_info
from pages import Page
from synthetic_report import execute_here

pytestmark = [pytest.mark.slow]
TOUR = SHIPPED / "tests" / "data" / "earlier_run"


@pytest.fixture
def faster(tmp_path: Path) -> Path:
    """The recorded run on another kernel, where dd took 0.4 of the time."""
    path = tmp_path / "faster"
    shutil.copytree(TOUR, path)
    info = json.loads((path / "run.json").read_text())
    info |= {"run_id": "faster", "facts": {**info["facts"], "kernel": "99.1"}}
    (path / "run.json").write_text(json.dumps(info))
    for file in path.glob("raw/t*/stderr"):
        seconds = re.sub(r"copied, ([0-9.]+) s", lambda m: f"copied, {float(m[1]) * 0.4:.6f} s", file.read_text())
        file.write_text(seconds)
    return path


def test_compare_says_what_differs_and_writes_a_page(
    faster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(execute, "execute", execute_here)
    assert __main__.main(["compare", str(TOUR), str(faster)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^differs +system: kernel: \S+ in A, 99\.1 in B$", out, re.MULTILINE)
    rows = [line for line in out.splitlines() if re.match(r"(tmpfs|ramfs|ext4)/dd", line)]
    assert len(rows) == 9
    assert all(" 2.5 " in row for row in rows)
    assert sum(row.endswith("faster") for row in rows) >= 6, "of five trials a side, some of them noisy"
    made = tmp_path / "results" / f"compare-{read_info(TOUR).run_id}-faster" / "report.html"
    assert f"report: {disk.path_text(made)}" in out
    page = Page(made.read_text())
    assert re.search(r"Yes: B is faster in \d .*of 9 ratios, and one setting differs: kernel\.", page.words)
    ids = [read_info(TOUR).run_id, "faster"]
    assert [text for level, text in page.headings if level == 1] == [f"Do {ids[0]} and {ids[1]} differ?"]
    assert all(f"· {run_id}" in page.words for run_id in ids)
    assert not page.crossed
    entry = json.loads((made.parent / "entry.json").read_text())
    assert (entry["kind"], entry["page"]) == ("comparison", "report.html")
    assert entry["verdict"] in page.words
    assert entry["runs"] == [read_info(TOUR).run_id, "faster"]
    index = Page((tmp_path / "results" / "index.html").read_text())
    assert f"./{made.parent.name}/report.html" in index.values("href", "a")
    assert page.active() == {"script"}
    assert page.tags["script"] == 1


@pytest.mark.long
def test_compare_of_many_runs_tells_whether_the_answer_held(
    faster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page is made without a kernel, which the page of two has."""
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(execute, "execute", execute_here)
    third = copied(faster, tmp_path / "third")
    info = json.loads((third / "run.json").read_text())
    (third / "run.json").write_text(json.dumps({**info, "run_id": "third"}))
    assert __main__.main(["compare", str(TOUR), str(faster), str(third)]) == 0
    out = capsys.readouterr().out
    assert "The answer held: all 6 comparisons have the same verdict in every run." in out
    assert "Against A, 18 ratios corrected together: B and C are each faster in" in out
    (made,) = (tmp_path / "results").glob(f"compare-{read_info(TOUR).run_id}-and-2-more-*/report.html")
    page = Page(made.read_text())
    assert "The answer held" in page.words
    assert page.tags["svg"] == 2
    assert page.active() == {"script"}


def test_compare_as_data(faster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["compare", str(TOUR), str(faster), "--json"]) == 0
    read = json.loads(capsys.readouterr().out)
    assert [each["ratio"] for each in read["ratios"]] == pytest.approx([2.5] * 9, rel=1e-3)


def test_compare_refuses_a_run_and_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["compare", str(TOUR), str(TOUR)]) == 2
    assert "error: a run is not compared with itself" in capsys.readouterr().err

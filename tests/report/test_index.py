"""results/index.html: every run is listed, what it says is what its report says, and a damaged one says why."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mountlab import __main__
from mountlab.core import disk
from mountlab.core.errors import StoreError
from mountlab.core.places import SHIPPED
from mountlab.report import execute, index
from mountlab.results import listing, store, tables
from mountlab.results.entries import IndexEntry, comparison_of
from mountlab.wording import verdicts
from mountlab.wording.caveats import caveat_counts
from pages import Page

TOUR = SHIPPED / "tests" / "data" / "earlier_run"
HOSTILE = "</script></style><script>alert(1)</script><img src=x onerror=alert(1)>\"'\u202e=1+1"
SMALL_FILES = ("run.json", "comparisons.csv", "caveats.csv")


@pytest.fixture(scope="module")
def derived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded run with its derived files, in a directory of results of its own."""
    path = tmp_path_factory.mktemp("derived") / "tour"
    shutil.copytree(TOUR, path)
    tables.write_derived(store.load_run(path))
    return path


@pytest.fixture
def results(derived: Path, tmp_path: Path) -> Path:
    """Results with one run that is whole, with its small files only."""
    a_run(derived, tmp_path / "results" / "whole")
    return tmp_path / "results"


def a_run(derived: Path, path: Path, **info: Any) -> Path:
    path.mkdir(parents=True)
    for name in SMALL_FILES:
        shutil.copy(derived / name, path / name)
    read = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**read, **info}))
    return path


def listed(results: Path) -> dict[str, IndexEntry]:
    return {entry.path: entry for entry in listing.entries(results)}


def shown(results: Path) -> Page:
    return Page(execute.write_index(results).read_text())


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_a_run_says_what_its_report_says(derived: Path, results: Path) -> None:
    run, entry = store.load_run(derived), listed(results)["whole"]
    strongest = verdicts.strongest_first(run.comparisons)[0]
    assert entry.sentence == f"Strongest of 6: {verdicts.comparison_sentence(strongest, smallest_effect=0.02)}"
    assert entry.title == run.sweep.question
    assert (entry.box, entry.sweep, entry.n, entry.status) == ("local", "tour", "5 blocks", "complete")
    assert entry.created_at == "2026-11-20T10:19:02+00:00"
    assert entry.caveats == caveat_counts((caveat.severity, caveat.code) for caveat in run.caveats)
    assert set(entry.verdicts) == {each.verdict for each in run.comparisons}


@pytest.mark.slow
def test_a_comparison_is_read_as_it_was_written(derived: Path) -> None:
    rows = csv.DictReader(io.StringIO((derived / "comparisons.csv").read_text()))
    for row, ours in zip(rows, store.load_run(derived).comparisons, strict=True):
        read = comparison_of(row)
        assert (read.candidate, read.factors, read.verdict) == (ours.candidate, dict(ours.factors), ours.verdict)
        assert (read.ratio, read.joint.low, read.n, read.needed) == (ours.ratio, ours.joint.low, ours.n, ours.needed)


@pytest.mark.slow
def test_only_small_files_are_read(derived: Path, results: Path) -> None:
    for name in ("trials.jsonl", "estimates.csv", "measurements.parquet", "raw"):
        (results / "whole" / name).mkdir()
    assert listed(results)["whole"].problem == ""


@pytest.mark.slow
def test_without_a_report_it_says_how_to_make_one(results: Path) -> None:
    assert f"No report yet: mountlab report {disk.path_text(results / 'whole')}" in shown(results).words
    (results / "whole" / "report.html").write_text("")
    page = shown(results)
    assert "No report yet" not in page.words
    assert "./whole/report.html" in page.values("href", "a")


def test_a_run_that_was_stopped_is_resumed_first_and_one_of_logs_is_marked(derived: Path, results: Path) -> None:
    path = a_run(derived, results / "stopped", status="interrupted")
    (path / "comparisons.csv").unlink()
    assert listed(results)["stopped"].next_step == f"mountlab resume {disk.path_text(path)}"
    assert listed(results)["stopped"].status == "interrupted"
    (path / "report.html").write_text("")
    assert f"To resume it: mountlab resume {disk.path_text(path)}" in shown(results).words
    a_run(derived, results / "logs", imported={"sweep": {}, "files": {}})
    assert listed(results)["logs"].status == "imported"


def test_a_run_that_compares_nothing_says_so(derived: Path, results: Path) -> None:
    path = a_run(derived, results / "alone", parameters={"question": "How fast?", "filesystems": {"ext4": {}}})
    (path / "comparisons.csv").write_text((path / "comparisons.csv").read_text().splitlines()[0] + "\n")
    assert listed(results)["alone"].sentence == "There is one file system only, so nothing is compared."


def test_the_newest_comes_first_and_links_are_quoted(derived: Path, results: Path) -> None:
    a_run(derived, results / "a-newer", created_at="2026-12-01T00:00:00+00:00")
    a_run(derived, results / "z-older", created_at="2025-12-01T00:00:00+00:00")
    text = shown(results).words
    assert text.index("a-newer") < text.index("whole") < text.index("z-older")
    assert "Nothing was measured yet" in shown(results / "nothing").words
    (a_run(derived, results / 'a #1?"%<b>') / "report.html").write_text("")
    assert "./a%20%231%3F%22%25%3Cb%3E/report.html" in shown(results).values("href", "a")


def test_filters_offer_what_occurs(derived: Path, results: Path) -> None:
    a_run(derived, results / "other", box={"name": "db1"})
    page = shown(results)
    assert page.values("name", "select") == ["box", "verdict", "severity"], "one sweep and one kind need no choice"
    assert {"db1", "local", "faster", "slower", "undecided"} <= set(page.values("value", "option"))


# ── damage ───────────────────────────────────────────────────────────────────────────────────────────────────────────

Damage = Callable[[Path], object]
DAMAGES: dict[str, tuple[Damage, str]] = {
    "cut": (lambda path: (path / "run.json").write_text('{"schema": 1, '), "run.json is not whole"),
    "gone": (lambda path: [(path / "run.json").unlink(), (path / "raw").mkdir()], "no such run"),
    "a list": (lambda path: (path / "run.json").write_text("[]"), "not a run of Mountlab's"),
    "later": (lambda path: change(path, schema=99), "written by a later Mountlab"),
    "no box": (lambda path: change(path, box=[]), "not a run of Mountlab's: list"),
    "parameters": (lambda path: change(path, parameters="x"), "not a run of Mountlab's: str"),
    "verdict": (lambda path: edit(path / "comparisons.csv", "faster", "best"), "no verdict: 'best'"),
    "number": (lambda path: edit(path / "comparisons.csv", ",5,0.95", ",five,0.95"), "ValueError"),
    "severity": (lambda path: edit(path / "caveats.csv", "warning", "worry"), "no severity: 'worry'"),
    "not text": (lambda path: (path / "caveats.csv").write_bytes(b"\xff\xfe\x00"), "UnicodeDecodeError"),
    "deep": (lambda path: (path / "run.json").write_text("[" * 100_000), "run.json is not whole"),
}


def change(path: Path, **info: Any) -> None:
    read = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**read, **info}))


def edit(path: Path, before: str, after: str) -> None:
    path.write_text(path.read_text().replace(before, after))


@pytest.mark.parametrize(("damage", "said"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_run_is_listed_with_the_reason(damage: Damage, said: str, derived: Path, results: Path) -> None:
    damage(a_run(derived, results / "damaged"))
    found = listed(results)
    assert said in found["damaged"].problem
    assert found["whole"].problem == ""
    page = shown(results)
    assert "1 of 2 cannot be read; each says why." in page.words
    assert said in page.words


def test_what_is_no_run_is_not_listed(results: Path) -> None:
    (results / "notes").mkdir()
    (results / ".hidden" / "raw").mkdir(parents=True)
    (results / "README.md").write_text("")
    assert set(listed(results)) == {"whole"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_directory_that_may_not_be_read_is_listed(derived: Path, results: Path) -> None:
    closed = a_run(derived, results / "closed")
    closed.chmod(0)
    assert listed(results)["closed"].problem
    closed.chmod(0o700)


# ── comparisons, batches, bundles ────────────────────────────────────────────────────────────────────────────────────

ENTRY = {
    "kind": "batch", "title": "Studies A to E", "created_at": "2026-11-20T12:00:00+00:00", "page": "report.html",
    "verdict": "4 of 5 runs are complete", "caveats": {"error": 1, "warning": 0, "note": 3}, "runs": ["a", "b"],
}  # fmt: skip


def an_entry(path: Path, **changes: Any) -> None:
    path.mkdir(parents=True)
    (path / "report.html").write_text("")
    (path / "entry.json").write_text(json.dumps({**ENTRY, **changes}))


@pytest.mark.parametrize("kind", index.KINDS)
def test_an_entry_of_any_kind_is_listed(kind: str, results: Path) -> None:
    an_entry(results / "nested" / "it", kind=kind)
    entry = listed(results)["nested/it"]
    assert (entry.kind, entry.title, entry.sentence, entry.n) == (kind, ENTRY["title"], ENTRY["verdict"], "2 runs")
    assert dict(entry.caveats) == ENTRY["caveats"]
    assert "./nested/it/report.html" in shown(results).values("href", "a")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kind": "poem"}, "not an entry of the index: 'poem'"),
        ({"title": None}, "not an entry of the index"),
        ({"page": "../whole/run.json"}, "the page that entry.json names is not there"),
        ({"page": "javascript:alert(1)"}, "the page that entry.json names is not there"),
        ({"page": ""}, "the page that entry.json names is not there"),
        ({"caveats": {"error": "many"}}, "ValueError"),
    ],
)
def test_an_entry_that_is_wrong_says_why(changes: dict[str, Any], said: str, results: Path) -> None:
    an_entry(results / "it", **changes)
    assert said in listed(results)["it"].problem
    assert not [link for link in shown(results).values("href", "a") if "it/" in link]


# ── text stays text ──────────────────────────────────────────────────────────────────────────────────────────────────


def hostile(value: Any) -> Any:
    """The value with every string of it followed by markup."""
    if isinstance(value, dict):
        return {f"{key}{HOSTILE}": hostile(each) for key, each in value.items()}
    if isinstance(value, list):
        return [hostile(each) for each in value]
    return f"{value}{HOSTILE}" if isinstance(value, str) else value


def test_hostile_text_stays_text(derived: Path, results: Path) -> None:
    """Every string of run.json, of the derived tables and of entry.json, and the name of the directory."""
    read = json.loads((derived / "run.json").read_text())
    texts = {key: hostile(value) for key, value in read.items() if key not in ("box", "parameters", "created_at")}
    asked = {**hostile(read["parameters"]), "question": HOSTILE, "name": HOSTILE, "baseline": HOSTILE}
    name = HOSTILE.replace("/", "")
    path = a_run(derived, results / name, **{**texts, "box": {"name": HOSTILE}, "parameters": asked})
    edit(path / "comparisons.csv", "ramfs,dd-read", f'"ramfs{HOSTILE.replace(chr(34), chr(34) * 2)}",dd-read')
    a_run(derived, results / "odd", status=HOSTILE, created_at=HOSTILE, schema=99, run_id=HOSTILE)
    an_entry(results / "entry", title=HOSTILE, verdict=HOSTILE, created_at=HOSTILE, runs=[HOSTILE])
    an_entry(results / "bad", kind=HOSTILE)
    page = shown(results)
    assert page.active() == {"script"}
    assert page.tags["script"] == 1, "our own"
    assert page.tags["style"] == 1
    assert page.crossed == page.open == []
    assert page.words.count("<script>alert(1)</script>") > 8
    assert "\u202e" not in page.words
    assert not listed(results)[name].problem


# ── the file ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_index_of_somebody_else_is_left_alone(results: Path) -> None:
    (results / "index.html").write_text("<title>My site</title>")
    with pytest.raises(StoreError, match="not overwritten"):
        execute.write_index(results)
    assert (results / "index.html").read_text() == "<title>My site</title>"


def test_it_is_made_by_a_verb(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["index", str(results)]) == 0
    assert capsys.readouterr().out == f"index: {disk.path_text(results / 'index.html')}\n"
    assert __main__.main(["index", str(results / "nowhere")]) == 2
    assert sorted(each.name for each in results.iterdir()) == ["index.html", "whole"]
    assert "/results/*" in (SHIPPED / ".gitignore").read_text().splitlines()

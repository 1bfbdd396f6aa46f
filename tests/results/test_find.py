"""A run has several names: where it lies, its id, the name of its sweep, `latest`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from mountlab.core.errors import StoreError
from mountlab.core.places import SHIPPED
from mountlab.results import paths
from mountlab.results.find import run_path

EARLIER = SHIPPED / "tests" / "data" / "earlier_run"


def add(results: Path, folder: str, *, day: int, sweep: str = "", **changed: Any) -> Path:
    """A run without its raw output; its id is that of its folder unless another is given."""
    info = json.loads((EARLIER / "run.json").read_text())
    parameters = {**info["parameters"], **({"name": sweep} if sweep else {})}
    created = f"2026-01-{day:02}T10:00:00+00:00"
    shutil.copytree(EARLIER, results / folder, ignore=shutil.ignore_patterns("raw"))
    info |= {"run_id": folder, "created_at": created, "parameters": parameters, **changed}
    (results / folder / "run.json").write_text(json.dumps(info))
    return results / folder


@pytest.fixture
def results(results_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "RESULTS", results_dir)
    return results_dir


def test_each_name_of_a_run_finds_it(results: Path) -> None:
    renamed = add(results, "kept", day=1, run_id="20260101T100000-mail-db1-0a1b", sweep="mail")
    older = add(results, "a", day=2, sweep="disk")
    newest = add(results, "b", day=3, sweep="disk")
    for name, path in (
        (renamed, renamed),
        ("kept", renamed),
        ("20260101T100000-mail-db1-0a1b", renamed),
        ("mail", renamed),
        ("disk", newest),
        ("a", older),
        ("latest", newest),
    ):
        assert run_path(name) == path, name


def test_a_batch_is_found_by_its_directory(results: Path) -> None:
    batch = results / "batch-nightly-20260101T100000"
    batch.mkdir()
    (batch / "batch.json").write_text("{}")
    assert run_path(batch.name) == batch
    with pytest.raises(StoreError) as caught:
        run_path("batch-nightly-20260101T100001")
    assert caught.value.next_step == f"did you mean {batch.name!r}?"


def test_a_run_at_a_path_comes_before_a_name_and_a_name_before_other_files(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = add(results, "a", day=1, sweep="disk")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "disk").mkdir()
    assert run_path("disk") == named
    beside = add(tmp_path, "a", day=2)
    assert run_path("a").absolute() == beside


@pytest.mark.parametrize(
    ("given", "near"),
    [
        ("lastest", "latest"),
        ("mial", "mail"),
        ("20260101T100000-mail-db1-0a1c", "20260101T100000-mail-db1-0a1b"),
        ("{results}/nightli", "nightly"),
    ],
)
def test_an_unknown_name_suggests_the_nearest(given: str, near: str, results: Path) -> None:
    add(results, "nightly", day=1, run_id="20260101T100000-mail-db1-0a1b", sweep="mail")
    with pytest.raises(StoreError) as caught:
        run_path(given.format(results=results))
    assert (caught.value.what, caught.value.got) == ("no such run", Path(given).name)
    assert caught.value.next_step == f"did you mean {near!r}?"


def test_a_path_to_elsewhere_is_no_name(results: Path, tmp_path: Path) -> None:
    add(results, "nightly", day=1)
    assert run_path(tmp_path / "other" / "nightly") == tmp_path / "other" / "nightly"
    with pytest.raises(StoreError) as caught:
        run_path("qqqqqq")
    assert "`latest`" in caught.value.allowed
    assert caught.value.next_step == "open results/index.html, which lists all runs"


def test_without_a_run_the_latest_says_how_to_make_one(results: Path) -> None:
    with pytest.raises(StoreError, match="there is no run yet") as caught:
        run_path("latest")
    assert caught.value.next_step == "mountlab demo"


def test_a_run_that_cannot_be_read_hides_no_other(results: Path) -> None:
    kept = add(results, "kept", day=1)
    (results / "odd").mkdir()
    (results / "odd" / "run.json").write_text("{")
    assert run_path("latest") == kept
    assert run_path("odd") == results / "odd"

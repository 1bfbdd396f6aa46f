"""Which run a notebook takes where none is named: the newest that fits, or words that say what to name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from mountlab.batch import store as batch_store
from mountlab.core.errors import StoreError
from mountlab.core.places import SHIPPED
from mountlab.jupyter import comparing
from mountlab.results import find

TOUR = SHIPPED / "tests" / "data" / "earlier_run"


def add(results: Path, name: str, day: int, **changed: Any) -> Path:
    """A copy of the tour as another run, without its raw output."""
    shutil.copytree(TOUR, results / name, ignore=shutil.ignore_patterns("raw"))
    info = json.loads((TOUR / "run.json").read_text())
    changed = {"run_id": name, "created_at": f"2026-01-{day:02}T10:00:00+00:00", **changed}
    (results / name / "run.json").write_text(json.dumps({**info, **changed}))
    return results / name


def test_the_newest_run_and_the_newest_that_was_stopped_have_names(results_dir: Path) -> None:
    add(results_dir, "a", 1, status="interrupted")
    stopped = add(results_dir, "b", 2, status="interrupted")
    newest = add(results_dir, "c", 3)
    (results_dir / "odd").mkdir()
    (results_dir / "odd" / "run.json").write_text("{}")
    assert find.run_path("latest", results_dir) == newest
    assert find.run_path("interrupted", results_dir) == stopped


def test_the_newest_that_shares_a_cell_is_compared(results_dir: Path) -> None:
    first = add(results_dir, "a", 1)
    with pytest.raises(StoreError, match="name more in `runs`"):
        comparing.newest_beside(first, results_dir)
    second = add(results_dir, "b", 2)
    empty = add(results_dir, "c", 3)
    (empty / "trials.jsonl").write_text("")
    parameters = json.loads((TOUR / "run.json").read_text())["parameters"]
    workloads = {f"other-{name}": entry for name, entry in parameters["workloads"].items()}
    add(results_dir, "d", 4, parameters={**parameters, "name": "other", "workloads": workloads})
    assert comparing.newest_beside(first, results_dir) == second
    assert comparing.newest_beside(str(second), results_dir) == first
    assert comparing.newest_of_one_sweep(results_dir) == [first, second]


def test_over_boxes_the_newest_run_of_each_is_taken(results_dir: Path) -> None:
    add(results_dir, "a", 1, box={"name": "db1"})
    other = add(results_dir, "b", 2, box={"name": "db2"})
    newest = add(results_dir, "c", 3, box={"name": "db1"})
    parameters = json.loads((TOUR / "run.json").read_text())["parameters"]
    add(results_dir, "d", 4, box={"name": "db1"}, parameters={**parameters, "name": "on-one-box"})
    assert comparing.newest_over_boxes(results_dir) == [other, newest]


def test_where_nothing_fits_it_is_said_what_to_name(results_dir: Path) -> None:
    add(results_dir, "a", 1)
    for ask, said in (
        (lambda: find.run_path("interrupted", results_dir), "there is no interrupted run yet"),
        (lambda: comparing.newest_of_one_sweep(results_dir), "name some in `runs`"),
        (lambda: comparing.newest_over_boxes(results_dir), "no sweep has runs on two boxes below"),
        (lambda: batch_store.newest_batch(results_dir), "name one in `batch`"),
    ):
        with pytest.raises(StoreError, match=said):
            ask()


def test_the_newest_batch_is_taken(results_dir: Path) -> None:
    for name, created in (("batch-z", "2026-01-01"), ("batch-a", "2026-02-01")):
        (results_dir / name).mkdir()
        info = {"schema": 1, "name": name, "title": "", "items": [], "created_at": created}
        (results_dir / name / "batch.json").write_text(json.dumps(info))
    assert batch_store.newest_batch(results_dir).name == "batch-a"

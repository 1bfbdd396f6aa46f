"""A sweep on several boxes, from its file to its pages: which boxes, which batch, what its runs say together."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from mountlab import __main__
from mountlab.batch import boxes as everywhere
from mountlab.batch import commands
from mountlab.batch.batch_file import Batch, ItemOutcome, over_boxes, parse_batch, unfinished
from mountlab.batch.commands import ItemAttempt, run_batch
from mountlab.batch.store import BatchDirectory, load_batch, read_view
from mountlab.batch.view import Planned
from mountlab.core import disk
from mountlab.core.errors import BoxError, ParameterError, PlanError, StoreError
from mountlab.core.places import SHIPPED
from mountlab.jupyter import api, comparing
from mountlab.report import execute
from mountlab.results import paths, store
from mountlab.runner import workflow
from mountlab.sweep.sweep_file import Resolved, on_box, resolve
from pages import Page
from repetition import few_then_many
from rows import every_row
from synthetic_report import execute_here

TOUR = SHIPPED / "tests" / "data" / "earlier_run"
SWEEP: dict[str, Any] = {
    "name": "s", "question": "Is it so?", "boxes": ["a", "b", "c"],
    "filesystems": {"tmpfs": {"type": "tmpfs", "size": "64MiB"}, "ramfs": {"type": "ramfs", "size": "64MiB"}},
    "workloads": {"write": {"tool": "dd", "direction": "write", "bs": "64KiB", "count": 16}},
}  # fmt: skip


def resolved(changes: Mapping[str, Any] | None = None, **keys: Any) -> Resolved:
    return resolve({**SWEEP, **keys}, where="s.yml", overrides=changes)


# ── the sweep ────────────────────────────────────────────────────────────────────────────────────────────────────────


@every_row(
    ("keys", "what", "got"),
    [
        ({"boxes": ["a"]}, "one box is no factor", "a"), ({"boxes": []}, "one box is no factor", "an empty list"),
        ({"boxes": ["a", "b", "a"]}, "a box is named twice", "a"),
        ({"box": "a"}, "both box and boxes say where the sweep runs", "box: a and boxes"),
        ({"boxes": ["a", "../b"]}, "a name may hold letters", "'../b'"),
        ({"boxes": "a"}, "wrong type or value", "'a' (str)"),
    ],
)  # fmt: skip
def test_boxes_that_are_no_factor_are_refused(keys: dict[str, Any], what: str, got: str) -> None:
    with pytest.raises(ParameterError, match=what) as error:
        resolved(**keys)
    assert error.value.got == got


def test_a_box_from_outside_takes_the_place_of_all_and_boxes_that_of_one() -> None:
    sweep = resolved().sweep
    assert (sweep.box, sweep.boxes) == ("a", ("a", "b", "c"))
    alone = resolved({"box": "z"})
    assert (alone.sweep.box, alone.sweep.boxes) == ("z", ())
    assert "boxes" not in alone.parameters
    one_box = {**{key: value for key, value in SWEEP.items() if key != "boxes"}, "box": "z"}
    assert resolve(one_box, where="s.yml", overrides={"boxes": ["a", "b"]}).sweep.boxes == ("a", "b")


def test_a_run_is_made_on_one_box_and_what_it_keeps_makes_it_again() -> None:
    one = on_box(resolved(), "b")
    assert (one.sweep.box, one.sweep.boxes) == ("b", ())
    assert resolve(one.parameters, where="run.json").sweep == one.sweep
    with pytest.raises(PlanError, match="the sweep names several") as error, workflow.planned(resolved()):
        pass
    assert error.value.got == "a, b, c"


# ── the batch ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_it_is_a_batch_of_one_item_a_box_that_begun_again_is_the_same(results_dir: Path) -> None:
    made = everywhere.batch_of(resolved(), results_dir)
    assert [(item.id, item.box) for item in made.items] == [("01-s-a", "a"), ("02-s-b", "b"), ("03-s-c", "c")]
    assert everywhere.batch_of(resolved(), results_dir) == made
    (kept,) = {item.sweep for item in made.items}
    assert paths.load_sweep(Path(str(kept)), {"box": "a"}).sweep == on_box(resolved(), "a").sweep
    changed = everywhere.batch_of(resolved({"repeats": 3}), results_dir)
    assert {item.sweep for item in changed.items} != {kept}


def written(directory: Path) -> Path:
    path = directory / "s.yml"
    path.write_text(yaml.safe_dump(SWEEP))
    return path


def test_in_a_batch_file_such_a_sweep_is_an_item_for_each_box(tmp_path: Path) -> None:
    groups = {
        "all": {"sweep": str(written(tmp_path)), "overrides": [{"repeats": 3}, {"repeats": 4}]},
        "one": {"sweep": str(tmp_path / "s.yml"), "box": "a"},
        "other": {"notebook": "40_plan_repeats"},
    }
    (tmp_path / "b.yml").write_text(yaml.safe_dump({"title": "T", "groups": groups}))
    items = load_batch(tmp_path / "b.yml").items
    everywhere_twice = [("all", box) for box in "abcabc"]
    assert [(item.group, item.box) for item in items] == [*everywhere_twice, ("one", "a"), ("other", None)]
    assert [item.id[:2] for item in items] == [f"{number:02d}" for number in range(1, 9)]
    assert [[item.id[:2] for item in group] for group in over_boxes(items)] == [["01", "02", "03"], ["04", "05", "06"]]
    listed = {"g": {"sweep": ["tour", "ramdisk"], "box": ["a", "b"]}, "h": {"sweep": "e-nvm", "box": "a"}}
    items = parse_batch({"title": "T", "groups": listed}, name="b", where="b.yml").items
    assert [[item.box for item in group] for group in over_boxes(items)] == [["a", "b"], ["a", "b"]]


# ── its runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Recorded:
    """In the place of a kernel: the recorded run, as if it had been made on the box of the item; none on `lost`."""

    def __init__(self, *lost: str) -> None:
        self.lost = lost

    def __call__(self, job: ItemAttempt) -> ItemOutcome:
        ended = ItemOutcome(item=job.item.id, state="done", ended_at="2026-11-20T10:00:00+00:00", elapsed_s=1.0)
        if job.item.box is None or job.item.box in self.lost:
            return replace(ended, state="failed", reason="the box cannot be reached\n  where: b", error="BoxError")
        box, path = str(job.item.box), job.results / f"run-{job.item.box}"
        shutil.copytree(TOUR, path)
        info = json.loads((path / "run.json").read_text())
        info |= {"run_id": path.name, "batch": job.directory.mark(job.item), "box": {**info["box"], "name": box}}
        info["created_at"] = f"2026-11-20T1{ord(box) - ord('a')}:00:00+00:00"
        (path / "run.json").write_text(json.dumps(info))
        times = {"a": 1.0, "b": 0.8}.get(box, 1.3)
        for file in path.glob("raw/t*/stderr"):
            text = re.sub(r"copied, ([0-9.]+) s", lambda m: f"copied, {float(m[1]) * times:.6f} s", file.read_text())
            file.write_text(text)
        return replace(ended, run=path.name)


def left(made: Batch, *, directory: BatchDirectory, results: Path) -> list[Planned]:
    """What is still to be done, without a look at the boxes."""
    return [Planned(item) for item in unfinished(made, directory.outcomes)]


@pytest.fixture
def boxes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, results_dir: Path) -> Path:
    """Boxes a, b and c, each of which can do everything; results go to `results_dir`."""
    directory = tmp_path / "params" / "boxes"
    directory.mkdir(parents=True)
    for name in "abc":
        (directory / f"{name}.yml").write_text("embedded: loopback\n")
    monkeypatch.setattr(paths, "PARAMS", tmp_path / "params")
    monkeypatch.setattr(paths, "RESULTS", results_dir)
    monkeypatch.setattr(commands, "plan_batch", left)
    return results_dir


@pytest.mark.slow
def test_what_it_has_measured_is_loaded_with_the_boxes_that_failed(
    boxes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "write_page", lambda directory: (directory.path / "report.html", None))
    page, _ = run_batch(everywhere.batch_of(resolved(), boxes), results=boxes, execute=Recorded("b"))
    loaded = api.load_result(page.parent)
    assert not isinstance(loaded, store.Run)
    assert loaded.names == ("a", "c")
    assert dict(loaded.missing) == {"b": "the box cannot be reached"}
    assert isinstance(api.load_result(TOUR), store.Run)


@pytest.mark.slow
def test_with_one_box_left_nothing_is_said_over_boxes(boxes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "write_page", lambda directory: (directory.path / "report.html", None))
    page, _ = run_batch(everywhere.batch_of(resolved(), boxes), results=boxes, execute=Recorded("b", "c"))
    with pytest.raises(PlanError, match="one box says nothing of others") as error:
        api.load_result(page.parent)
    assert "b: the box cannot be reached" in error.value.got
    (told,) = everywhere.write_pages(BatchDirectory(page.parent)).values()
    assert told.startswith("one box says nothing of others")


def test_a_batch_that_is_something_else_has_no_one_answer(boxes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "write_page", lambda directory: (directory.path / "report.html", None))
    made = parse_batch({"title": "T", "groups": {"g": {"notebook": "40_plan_repeats"}}}, name="x", where="b.yml")
    page, _ = run_batch(made, results=boxes, execute=Recorded())
    with pytest.raises(StoreError, match="not one sweep on several boxes"):
        everywhere.load_across(page.parent)


# ── verbs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize("paged", few_then_many(False, True))
def test_run_and_resume_end_with_what_holds_over_boxes_and_a_page_of_it(
    paged: bool, boxes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first time a box is lost, and no page is made, which takes seconds; the second time only where `paged`."""
    real_run, real_resume, write_page = commands.run_batch, commands.resume_batch, commands.write_page
    monkeypatch.setattr(commands, "run_batch", lambda made, **more: real_run(made, execute=Recorded("b"), **more))
    monkeypatch.setattr(commands, "resume_batch", lambda path: real_resume(path, execute=Recorded()))
    monkeypatch.setattr(commands, "write_page", lambda held: (held.path / "report.html", read_view(held.path)))
    assert __main__.main(["run", str(written(tmp_path))]) == 1
    said = capsys.readouterr().out
    assert "✗ failed" in said
    assert "Over 2 boxes " in said
    assert "Without b: there are no figures of it" in said
    (directory,) = boxes.glob("batch-s-*")
    if paged:
        monkeypatch.setattr(commands, "write_page", write_page)
        monkeypatch.setattr(execute, "execute", execute_here)
    assert __main__.main(["resume", str(directory)]) == 0, capsys.readouterr().err
    said = capsys.readouterr().out
    assert comparing.newest_over_boxes(boxes) == [boxes / "run-a", boxes / "run-b", boxes / "run-c"]
    if not paged:
        return
    assert "Over 3 boxes " in said
    (found,) = boxes.glob("boxes-tour-*/report.html")
    assert f"report over boxes: {disk.path_text(found)}\n" in said
    read = Page(found.read_text())
    assert "Over 3 boxes " in read.words
    assert (read.tags["svg"], read.active()) == (2, {"script"})
    assert f"../{found.parent.name}/report.html" in Page((directory / "report.html").read_text()).values("href", "a")
    entry = json.loads((found.parent / "entry.json").read_text())
    assert entry["runs"] == ["run-a", "run-b", "run-c"]
    assert entry["verdict"] in read.words


def test_a_scheduler_is_for_several_boxes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["run", str(written(tmp_path)), "--box", "a", "--scheduler", "tcp://127.0.0.1:8786"]
    assert __main__.main(asked) == 2
    assert "a scheduler gives out boxes" in capsys.readouterr().err


def test_plan_shows_every_box_and_the_one_that_cannot(
    boxes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def planned(of: Resolved, *, box: str) -> Any:
        assert of.sweep.boxes == ()
        raise BoxError(f"no way to {box}")

    monkeypatch.setattr(workflow, "planned", planned)
    assert __main__.main(["plan", str(written(tmp_path))]) == 3
    said = capsys.readouterr().out
    assert said.startswith("one run on each of 3 boxes:")
    for name in "abc":
        assert f"  {name}  cannot: no way to {name}" in said
    assert __main__.main(["plan", str(tmp_path / "s.yml"), "--json"]) == 3
    assert set(json.loads(capsys.readouterr().out)) == {"a", "b", "c"}

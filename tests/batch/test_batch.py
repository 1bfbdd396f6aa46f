"""Batches: they go on after a failure, do again only what did not finish, and belong to one process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import pytest
from mountlab.batch import commands
from mountlab.batch.batch_file import Batch, ItemOutcome, ItemState, parse_batch
from mountlab.batch.commands import ItemAttempt, resume_batch, run_batch
from mountlab.batch.item import attempt
from mountlab.batch.store import BatchDirectory, held_batch, parameters_of, read_view
from mountlab.batch.view import Planned, exit_code
from mountlab.core.errors import KeepError, MountlabError, ParameterError, StoreError
from mountlab.report import execute
from mountlab.report.kernels import Kernels, own_loop
from mountlab.results import paths
from waiting import LIMIT_S, wait_until

NOW = "2026-11-20T10:00:00+00:00"


def of_notebooks(count: int = 3, **more: Any) -> Batch:
    """Items that need no box: a notebook with one other parameter each."""
    groups = {f"g{n}": {"notebook": "40_plan_repeats", "parameters": {"n": n}, **more} for n in range(3, count + 3)}
    return parse_batch({"title": "Some", "groups": groups}, name="some", where="b.yml")


class Fake:
    """Does items at once, each with a given end; `done` has the numbers of those that were begun."""

    def __init__(self, *states: ItemState | type[BaseException]) -> None:
        self.states, self.done = list(states), list[str]()

    def __call__(self, job: ItemAttempt) -> ItemOutcome:
        self.done.append(job.item.id[:2])
        state = self.states.pop(0)
        if not isinstance(state, str):
            raise state
        return ItemOutcome(job.item.id, state, NOW, 1.0, reason="because", error="PlanError")


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Batches whose page would have been written: a kernel takes seconds, and these tests look at something else."""
    written: list[Path] = []

    def write_page(directory: BatchDirectory) -> Any:
        written.append(directory.path)
        return directory.path / "report.html", read_view(directory.path)

    monkeypatch.setattr(commands, "write_page", write_page)
    return written


def test_it_goes_on_after_a_failure_and_does_again_only_what_did_not_finish(
    results_dir: Path, pages: list[Path]
) -> None:
    first = Fake("done", "failed", "left out")
    _, view = run_batch(of_notebooks(), results=results_dir, execute=first)
    assert first.done == ["01", "02", "03"]
    assert exit_code(view) == 1
    assert json.loads((pages[0] / "batch.json").read_text())["status"] == "unfinished"
    again = Fake("done")
    _, view = run_batch(of_notebooks(), results=results_dir, execute=again)
    assert again.done == ["02"]
    assert exit_code(view) == 0
    assert pages[0] == pages[1], "it is the same batch"
    assert json.loads((pages[0] / "batch.json").read_text())["status"] == "complete"


def test_what_is_complete_begins_again_and_so_does_another_batch(
    tmp_path: Path, results_dir: Path, pages: list[Path]
) -> None:
    sweep = tmp_path / "s.yml"
    sweep.write_text((paths.PARAMS / "sweeps" / "tour.yml").read_text())
    swept = broken(notebook="40_plan_repeats", sweep=str(sweep))
    run_batch(of_notebooks(), results=results_dir, execute=Fake("done", "done", "done"))
    run_batch(of_notebooks(), results=results_dir, execute=Fake("done", "failed", "done"))
    run_batch(of_notebooks(2), results=results_dir, execute=Fake("done", "done"))
    run_batch(of_notebooks(), results=results_dir, new=True, execute=Fake("done", "done", "done"))
    run_batch(swept, results=results_dir, execute=Fake("failed"))
    run_batch(swept, results=results_dir, execute=Fake("failed"))
    sweep.write_text(sweep.read_text() + "# more\n")
    run_batch(swept, results=results_dir, execute=Fake("failed"))
    assert pages[4] == pages[5], "it has not changed"
    assert len(set(pages)) == 6


def test_stopped_by_ctrl_c_it_says_how_to_go_on_and_does(results_dir: Path, pages: list[Path]) -> None:
    with pytest.raises(KeyboardInterrupt) as raised:
        run_batch(of_notebooks(), results=results_dir, execute=Fake("done", KeyboardInterrupt))
    (path,) = results_dir.glob("batch-some-*")
    told, page = raised.value.args
    assert told == f"go on with: mountlab batch --resume {path}"
    assert page == f"report so far: {path / 'report.html'}", "what is done is there to be read"
    assert json.loads((path / "batch.json").read_text())["status"] == "unfinished"
    rest = Fake("done", "done")
    _, view = resume_batch(path, execute=rest)
    assert rest.done == ["02", "03"]
    assert exit_code(view) == 0


def test_a_disk_that_takes_no_more_ends_the_batch_and_not_only_its_item(results_dir: Path, pages: list[Path]) -> None:
    """Each of the next items would measure, and nothing of it could be kept."""

    def full(job: commands.ItemAttempt) -> ItemOutcome:
        return replace(Fake("failed")(job), error="KeepError", reason="what is measured cannot be written any more")

    with pytest.raises(KeepError) as caught:
        run_batch(of_notebooks(), results=results_dir, execute=full)
    (path,) = results_dir.glob("batch-some-*")
    assert caught.value.next_step == f"make room; then: mountlab batch --resume {path}"
    assert list(BatchDirectory(path).outcomes) == [BatchDirectory(path).batch.items[0].id]
    rest = Fake("done", "done", "done")
    resume_batch(path, execute=rest)
    assert rest.done == ["01", "02", "03"]


def test_a_damaged_line_of_the_journal_is_an_error_and_a_torn_last_one_counts_as_nothing(
    results_dir: Path, pages: list[Path]
) -> None:
    run_batch(of_notebooks(), results=results_dir, execute=Fake("done", "failed", "done"))
    journal = pages[0] / "journal.jsonl"
    whole = journal.read_bytes()
    lines = whole.splitlines(keepends=True)
    journal.write_bytes(lines[0] + b"garbage\n" + lines[2])
    with pytest.raises(StoreError) as caught:
        resume_batch(pages[0], execute=Fake())
    assert caught.value.what == "a line of the journal is not the outcome of an item"
    assert caught.value.where == f"{journal}, line 2"
    assert caught.value.next_step.endswith(f"sed -i.bak 2d {journal}")
    journal.write_bytes(whole + b'{"item": "02-')
    rest = Fake("done")
    resume_batch(pages[0], execute=rest)
    assert rest.done == ["02"]
    states = [json.loads(line)["state"] for line in journal.read_text().splitlines()]
    assert states == ["done", "failed", "done", "done"]


HOLD = """
import sys, time
from pathlib import Path
from mountlab.batch.store import held_batch, load_batch
with held_batch(load_batch(Path(sys.argv[1])), results=Path(sys.argv[2])) as directory:
    print(directory.path, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def elsewhere(tmp_path: Path, results_dir: Path) -> Iterator[Callable[[], tuple[Batch, Path]]]:
    """Another process that works on a batch: gives the batch and its directory."""
    started: list[subprocess.Popen[str]] = []

    def start() -> tuple[Batch, Path]:
        file = tmp_path / "some.yml"
        file.write_text(json.dumps({"title": "Some", "groups": {"g": {"notebook": "40_plan_repeats"}}}))
        command = [sys.executable, "-c", HOLD, str(file), str(results_dir)]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        assert started[0].stdout is not None
        path = Path(started[0].stdout.readline().strip())
        return parse_batch(json.loads(file.read_text()), name="some", where="b.yml"), path

    yield start
    for process in started:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


@pytest.mark.slow
def test_the_second_of_two_processes_is_refused_until_the_first_is_gone(
    elsewhere: Callable[[], tuple[Batch, Path]], results_dir: Path, pages: list[Path]
) -> None:
    made, path = elsewhere()
    for begin in (lambda: run_batch(made, results=results_dir), lambda: resume_batch(path)):
        with pytest.raises(StoreError) as raised:
            begin()
        assert "another process is writing to this batch" in str(raised.value)
        assert path.name in str(raised.value)
    assert [path.name for path in results_dir.iterdir()] == [path.name]
    holder = next(pid for pid in Path("/proc").glob("[0-9]*") if _runs(pid, str(results_dir)))
    os.kill(int(holder.name), signal.SIGKILL)
    wait_until("a batch that no process has", lambda: _free(made, results_dir))
    _, view = run_batch(made, results=results_dir, execute=Fake("done"))
    assert view.name == path.name, "what a killed process began is resumed"


def _runs(process: Path, text: str) -> bool:
    with suppress(OSError):
        command = (process / "cmdline").read_bytes()
        return b"held_batch" in command and text.encode() in command
    return False


def _free(made: Batch, results: Path) -> bool:
    try:
        with held_batch(made, results=results):
            return True
    except StoreError:
        return False


# --- what is wrong is said before anything runs -----------------------------------------------------------------------


def broken(**group: Any) -> Batch:
    return parse_batch({"title": "T", "groups": {"g": group}}, name="b", where="b.yml")


@pytest.mark.parametrize(
    ("group", "told"),
    [
        ({"sweep": "absent"}, "no such sweep file"),
        ({"sweep": "tour", "box": "absent"}, "no such box file"),
        ({"sweep": "tour", "overrides": {"repeets": 3}}, "'repeets'"),
        ({"notebook": "99_absent", "sweep": "tour"}, "no such notebook"),
        ({"notebook": "45_compare_filesystems", "sweep": "tour"}, "unknown parameter of this notebook"),
        ({"sweep": "tour", "parameters": {"repeats": 3}}, "unknown parameter of this notebook"),
    ],
)
def test_bad_input_is_refused_before_anything_is_run(group: dict[str, Any], told: str, results_dir: Path) -> None:
    with pytest.raises((ParameterError, StoreError), match=told):
        run_batch(broken(**group), results=results_dir, execute=Fake())
    assert list(results_dir.iterdir()) == []


def test_what_is_no_batch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such batch"):
        resume_batch(tmp_path)
    later = '{"schema": 9, "name": 1, "title": 1, "items": []}'
    for text, what in (("{", "not whole"), ("[]", "not a batch"), (later, "later")):
        (tmp_path / "batch.json").write_text(text)
        with pytest.raises(StoreError, match=what):
            resume_batch(tmp_path)


def test_parameters_are_read_from_the_tagged_cell(tmp_path: Path) -> None:
    assert parameters_of(paths.NOTEBOOKS / "20_report.ipynb") == ["run"]
    for text, told in (("nothing", "not a notebook"), (json.dumps(nbformat.v4.new_notebook()), "no cell tagged")):
        path = tmp_path / "n.ipynb"
        path.write_text(text)
        with pytest.raises((StoreError, ParameterError), match=told):
            parameters_of(path)


def test_what_a_box_cannot_do_is_left_out_only_where_that_is_allowed(
    results_dir: Path, pages: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A box whose file says nothing that can be reached: it is tried in the plan, and not again."""
    groups = {"a": {"sweep": "tour", "optional": True}, "b": {"sweep": "ramdisk"}}
    made = parse_batch({"title": "T", "groups": groups}, name="b", where="b.yml")
    planned = [Planned(item, problem="the box lacks fio", error="BoxError") for item in made.items]
    monkeypatch.setattr(commands, "plan_batch", lambda *_, **__: planned)
    _, view = run_batch(made, results=results_dir, execute=Fake())
    assert [outcome.state for outcome in view.outcomes.values()] == ["left out", "failed"]
    assert exit_code(view) == 3
    monkeypatch.setattr(commands, "plan_batch", lambda *_, **__: [])
    assert exit_code(resume_batch(pages[0], execute=Fake())[1]) == 3


# --- in a kernel ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_notebook_that_fails_is_kept_and_the_page_links_it(tmp_path: Path, results_dir: Path) -> None:
    """The whole way, with kernels: one notebook that fails, one that does not, and the page on both."""
    made = [
        _notebook(tmp_path / f"{name}.ipynb", code) for name, code in (("fails", "1 / number"), ("works", "1 + number"))
    ]
    groups = {path.stem: {"notebook": str(path.with_suffix("")), "parameters": {"number": 0}} for path in made}
    the_batch = parse_batch({"title": "Of <b>two</b>", "groups": groups}, name="two", where="b.yml")
    page, view = run_batch(the_batch, results=results_dir)
    assert exit_code(view) == 1
    failed, done = (view.outcomes[item.id] for item in the_batch.items)
    assert (failed.state, failed.error, failed.reason) == ("failed", "ZeroDivisionError", "division by zero")
    assert (page.parent / failed.notebook).name == "01-fails.failed.ipynb"
    assert "ZeroDivisionError" in (page.parent / failed.notebook).read_text()
    assert (done.state, done.page) == ("done", "02-works.html")
    text = page.read_text()
    assert f'href="{failed.notebook}"' in text
    assert 'href="02-works.html"' in text
    assert "Of &lt;b&gt;two&lt;/b&gt;" in text
    entry = json.loads((page.parent / "entry.json").read_text())
    assert (entry["kind"], entry["title"], entry["runs"]) == ("batch", "Of <b>two</b>", [])


def _notebook(path: Path, code: str) -> Path:
    parameters = nbformat.v4.new_code_cell("number: int = 3  # some number", metadata={"tags": ["parameters"]})
    notebook = nbformat.v4.new_notebook(cells=[parameters, nbformat.v4.new_code_cell(code)])
    notebook.metadata["kernelspec"] = {"name": "python3", "language": "python", "display_name": "Python 3"}
    nbformat.write(notebook, path)
    return path


class CellError(Exception):
    """What nbclient raises for a cell that failed."""

    ename, evalue = "", "no such thing"


@pytest.mark.parametrize(
    ("name", "state", "reason"),
    [("KeyboardInterrupt", "stopped", "stopped by Ctrl-C"), ("ValueError", "failed", "no such thing")],
)
def test_an_item_whose_cell_was_interrupted_is_stopped_and_any_other_has_failed(
    name: str, state: str, reason: str, results_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        error = CellError()
        error.ename = name
        raise MountlabError("the notebook failed") from error

    monkeypatch.setattr(execute, "execute", fail)
    made = of_notebooks(1)
    with held_batch(made, results=results_dir) as directory:
        outcome, stopped = attempt(ItemAttempt(made.items[0], directory, results_dir))
    assert (outcome.state, outcome.error, outcome.reason, stopped) == (state, name, reason, state == "stopped")


@pytest.mark.slow
def test_a_running_cell_is_interrupted_from_outside(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    path = _notebook(
        tmp_path / "sleeps.ipynb", f"open({str(tmp_path / 'up')!r}, 'w').close(); import time; time.sleep(600)"
    )
    kernels = Kernels({"MARK": "here"})
    assert not kernels.interrupt(), "nothing is running yet"
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(_execute, path, tmp_path / "o" / "o.ipynb", kernels)
        wait_until("the cell", (tmp_path / "up").exists)
        assert kernels.interrupt()
        problem = future.exception(timeout=LIMIT_S)
    assert "KeyboardInterrupt" in str(problem)
    assert not kernels.interrupt(), "its kernel is gone"


def _execute(notebook: Path, executed: Path, kernels: Kernels) -> None:
    with own_loop():
        execute.execute(notebook, executed, {}, kernels=kernels)

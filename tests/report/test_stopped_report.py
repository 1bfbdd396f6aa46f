"""A report that is stopped says how to go on and leaves nothing, whichever signal it was; nor does kill -9."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from mountlab import __main__
from mountlab.core import signals
from mountlab.core.places import SHIPPED
from mountlab.report import execute
from mountlab.results import info
from mountlab.results.writer import RunWriter
from mountlab.runner import workflow
from results.test_store import BEFORE, create, the_plan, written
from waiting import LIMIT_S, wait_until

CONNECTION = ".20_report.kernel.json"
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SHIPPED / "tests" / "data" / "earlier_run", tmp_path / "results" / "tour"))


@pytest.fixture
def started(run: Path, tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """`mountlab report` of the run, as often as it is called, with a notebook that has this one cell; none outlives the
    test."""
    processes: list[subprocess.Popen[str]] = []
    notebook = tmp_path / execute.NOTEBOOK.name
    command = (
        "import sys; from pathlib import Path; from mountlab import __main__; from mountlab.report import execute\n"
        f"execute.write_report.__kwdefaults__.update(notebook=Path({str(notebook)!r}))\n"
        f"sys.exit(__main__.main(['report', {str(run)!r}]))"
    )

    def start(source: str) -> subprocess.Popen[str]:
        parameters = nbformat.v4.new_code_cell("# Parameters", metadata={"tags": ["parameters"]})
        cells = [parameters, nbformat.v4.new_code_cell(source)]
        nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=KERNEL), notebook)
        processes.append(
            subprocess.Popen(
                [sys.executable, "-c", command],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "MOUNTLAB_RESULTS": str(run.parent)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
                # Below nohup a SIGHUP is ignored, also by what is started there.
                preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # noqa: PLW1509
            )
        )
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    ended = lambda: process.poll() is not None and "".join(process.communicate())  # noqa: E731
    wait_until("a part of the report", condition, ended=ended)


def left(run: Path) -> list[str]:
    """What only a report that is being written has."""
    found = [*run.rglob(".*"), *run.rglob("*.unfinished.ipynb"), *run.rglob("*.failed.ipynb")]
    return sorted(str(path.relative_to(run)) for path in found)


DERIVED, STARTS, RUNS = "estimates.csv", f"notebooks/{CONNECTION}", "cell"
"""Files below the run that are there from the moment on at which files are derived, a kernel starts, a cell runs."""


def long_cell(run: Path) -> str:
    return f"import pathlib, time; pathlib.Path({str(run / RUNS)!r}).touch(); time.sleep(600)"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("begun", "number"),
    [
        (STARTS, signal.SIGTERM),
        *(
            pytest.param(begun, number, marks=pytest.mark.long)
            for begun, number in (
                (DERIVED, signal.SIGHUP),
                (RUNS, signal.SIGINT),
            )
        ),
    ],
)
def test_a_stopped_report_says_how_to_go_on_and_leaves_nothing(
    begun: str, number: signal.Signals, run: Path, started: Callable[[str], subprocess.Popen[str]]
) -> None:
    process = started(long_cell(run))
    wait_for((run / begun).exists, process)
    os.kill(process.pid, number)
    _, said = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130, said
    assert f"mountlab report {run}" in said
    assert "stopped; no report is written, and all measurements are kept" in said
    assert left(run) == []


@pytest.mark.long
@pytest.mark.slow
def test_a_report_that_is_killed_leaves_nothing_once_it_is_written(
    run: Path, started: Callable[[str], subprocess.Popen[str]]
) -> None:
    """What another process must see as a lock goes with the killed one. (At random moments: faults/test_kill9.py.)"""
    for begun in (DERIVED, STARTS, RUNS):
        process = started(long_cell(run))
        wait_for((run / begun).exists, process)
        process.kill()
        process.wait()
        info.read_info(run)
        assert [name for name in left(run) if name in (".owner", ".reporting", ".deriving")] == []
    assert left(run) != [], "a kill leaves something"
    last = started("1 + 1")
    assert last.wait(LIMIT_S) == 0, last.communicate()
    assert left(run) == []


def stop(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["report", "finish"])
def test_it_is_said_wherever_a_report_is_written(
    verb: str, results_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`run`, `resume`, `import` and `demo` end with `finish`."""
    path = written(results_dir)
    monkeypatch.setattr(execute, "write_report", stop)
    if verb == "finish":
        monkeypatch.setattr(workflow, "resume", lambda run, **_: run)
    assert __main__.main(["resume" if verb == "finish" else verb, str(path)]) == 130
    assert f"write its report with: mountlab report {path}" in capsys.readouterr().err


@pytest.mark.parametrize(("status", "verb"), [("complete", "report"), ("interrupted", "resume")])
def test_a_run_that_is_stopped_while_it_ends_says_what_is_left_to_do(
    status: str, verb: str, results_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = create(results_dir, BEFORE).path
    session = SimpleNamespace(plan=the_plan(), facts=BEFORE)
    monkeypatch.setattr(workflow, "planned", lambda *_, **__: nullcontext(session))

    def ends(*_: object, **__: object) -> None:
        RunWriter(run).finish(status)
        raise KeyboardInterrupt

    monkeypatch.setattr(workflow, "progress_display", ends)
    with pytest.raises(workflow.Interrupted) as caught:
        workflow.resume(run)
    assert caught.value.next_step.endswith(f"mountlab {verb} {run}")


def _send_myself(*numbers: signal.Signals) -> None:
    for number in numbers:
        os.kill(os.getpid(), number)
    time.sleep(1)


def test_signals_are_what_they_were_before_and_one_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with pytest.raises(KeyboardInterrupt), signals.as_interrupts():
            _send_myself(signal.SIGHUP, signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.slow
def test_each_stop_reaches_the_work_once() -> None:
    """A second interrupt would break into what the first one has begun to undo."""
    asked, reached = list[bool](), threading.Event()

    def stop() -> bool:
        asked.append(len(asked) == 1)  # the first time nothing runs yet that could be stopped
        if asked[-1]:
            reached.set()
        return asked[-1]

    def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        assert reached.wait(LIMIT_S)
        time.sleep(3 * signals._TICK_S)

    with pytest.raises(KeyboardInterrupt):
        signals.in_a_thread(work, stop)
    assert asked == [False, True]

"""Blocks until the figures are precise, for real: on tmpfs, interrupted and resumed, from the command line's own path
and from a notebook's."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from mountlab.box.embedded import open_box
from mountlab.box.leftovers import Leftover, remove_leftovers
from mountlab.report import execute
from mountlab.results import paths, store
from mountlab.results.info import read_info
from mountlab.runner import workflow
from mountlab.sweep.sweep_file import Resolved, resolve
from ownbox import own_box
from sweeps import DD_WRITE, TMPFS
from waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("sshd")]

STEADY_OR_NOT = """#!/bin/sh
# Always the same rate, of five digits so that rounding hides little, or in turn 20, 40 and 60 MB/s.
rate=12345
if [ "$1" = restless ]; then
    n=$(cat "$0.n" 2>/dev/null || echo 0)
    echo $((n + 1)) >"$0.n"
    rate=$(((n % 3 + 1) * 20000))
fi
sleep "$2"
echo "rate: $rate KiB/s"
"""
RULE = {"half_width": "5%", "min": 3, "max": 6}


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    own_box(tmp_path, monkeypatch)
    program = tmp_path / "rate"
    program.write_text(STEADY_OR_NOT)
    program.chmod(0o755)
    return tmp_path / "results"


def entry(results: Path, word: str, sleep: str = "0") -> dict[str, Any]:
    rate = {"pattern": r"rate: (?P<value>\d+) (?P<unit>\S+)"}
    program = results.parent / "rate"
    argv = f"{program} {word} {sleep} {{directory}}"
    return {"tool": "command", "argv": argv, "space": "1MiB", "metrics": {"write_bandwidth": rate}}


def resolved(workloads: dict[str, Any], *, two: bool = False, **design: Any) -> Resolved:
    return resolve(
        {
            "name": "until",
            "question": "How many blocks does it take?",
            "filesystems": {"one": TMPFS, **({"two": TMPFS} if two else {})},
            "workloads": workloads,
            "baseline": "one",
            "design": {"until": RULE, "warmup": 1, "seed": 7, "trial_timeout": "60s", "drop_caches": False, **design},
        },
        where="tests",
    )


def leftovers() -> list[Leftover]:
    with open_box(paths.load_box("local")) as connection:
        return remove_leftovers(connection, dry_run=True)


def test_what_is_steady_ends_after_min_blocks_and_what_is_not_goes_on_to_max(results: Path) -> None:
    workloads = {"steady": entry(results, "steady"), "restless": entry(results, "restless")}
    path = workflow.run(resolved(workloads), results=results)
    run = store.load_run(path)
    assert [*run.trials["reason"].unique()] == [""]
    counted = run.trials[~run.trials["warmup"]]
    assert counted.groupby("workload")["block"].max().to_dict() == {"steady": 3, "restless": 6}
    assert {(stop.cell, stop.reason, stop.blocks) for stop in run.stops} == {
        ("one/steady", "precise", 3),
        ("one/restless", "max reached", 6),
    }
    assert run.info.status == "complete"
    assert {cell: stop["reason"] for cell, stop in run.info.stopped.items()} == {
        stop.cell: stop.reason for stop in run.stops
    }
    estimates = pd.read_csv(path / "estimates.csv")
    assert dict(zip(estimates["workload"], estimates["stopped"], strict=True)) == {
        "steady": "precise",
        "restless": "max reached",
    }
    assert leftovers() == []


@pytest.mark.long
def test_a_benchmark_stops_within_its_rule_and_its_intervals_are_as_narrow_as_was_asked(results: Path) -> None:
    until = {"half_width": "40%", "min": 4, "max": 12, "of": "comparisons"}
    run = store.load_run(workflow.run(resolved({"dd": DD_WRITE}, two=True, until=until), results=results))
    assert [*run.trials["status"].unique()] == ["ok"]
    blocks = int(run.trials["block"].max())
    assert 4 <= blocks <= 12
    assert {stop.blocks for stop in run.stops} == {blocks}
    (ratio,) = run.comparisons
    (stop,) = [stop for stop in run.stops if stop.cell == "two/dd"]
    assert stop.reason == ("precise" if stop.half_width <= 0.4 else "max reached")
    assert ratio.n == blocks
    assert ratio.own.level == 0.95
    assert ratio.own.high / ratio.ratio - 1 == pytest.approx(stop.half_width, rel=1e-6)


@pytest.mark.long
def test_a_budget_ends_it_before_a_block_that_would_be_too_long(results: Path) -> None:
    until = {**RULE, "max": 40, "budget": "2s"}
    restless = {"restless": entry(results, "restless", "0.4")}
    path = workflow.run(resolved(restless, until=until, warmup=0), results=results)
    run = store.load_run(path)
    assert {stop.reason for stop in run.stops} == {"budget"}
    assert 3 <= run.trials["block"].max() <= 5
    before_last = run.trials["elapsed_s"][:-1]  # of trials of one cell, each a block
    assert before_last.sum() + before_last.mean() <= 2.0 or run.trials["block"].max() == 3


def interrupt_after(results: Path, trials: int) -> threading.Thread:
    """Sends this process a SIGINT once the journal holds so many trials."""

    def watch() -> None:
        journals = lambda: [path.read_bytes() for path in results.glob("*/trials.jsonl")]  # noqa: E731
        wait_until(f"{trials} trials", lambda: sum(text.count(b"\n") for text in journals()) >= trials)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


@pytest.mark.long
def test_an_interrupted_run_goes_on_and_stops_where_it_would_have_stopped(results: Path) -> None:
    """Stopped in the fourth block, when half of its cells have left."""
    workloads = {"steady": entry(results, "steady"), "restless": entry(results, "restless", "0.2")}
    watcher = interrupt_after(results, 2 * 3)
    with pytest.raises(KeyboardInterrupt):
        workflow.run(resolved(workloads, warmup=0), results=results)
    watcher.join()
    (path,) = (file.parent for file in results.glob("*/run.json"))
    assert leftovers() == []
    info = read_info(path)
    assert info.status == "interrupted"
    assert info.stopped["one/steady"]["reason"] == "precise"
    assert info.stopped["one/restless"]["reason"] == "not finished"
    workflow.resume(path)
    run = store.load_run(path)
    assert run.info.status == "complete"
    assert run.trials.groupby("cell")["block"].max().to_dict() == {"one/steady": 3, "one/restless": 6}
    assert list(run.trials["trial_id"]) == [trial for trial in run.info.order if trial in set(run.trials["trial_id"])]
    assert not run.trials["trial_id"].duplicated().any()
    assert leftovers() == []


@pytest.mark.long
def test_the_sweep_notebook_runs_it_too(results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a kernel the progress is a widget, whose end moves when cells leave."""
    monkeypatch.setenv("MOUNTLAB_RESULTS", str(results))
    parameters = {
        "question": "How many blocks does it take?",
        "name": "until",
        "box": "local",
        "filesystems": {"disk": {"type": "dir"}, "shm": {"type": "dir", "path": "/dev/shm"}},
        "workloads": {"steady": entry(results, "steady")},
        "design": {"until": RULE, "warmup": 0},
    }
    executed = tmp_path / "out" / "sweep.ipynb"
    execute.execute(paths.NOTEBOOKS / "10_run_sweep.ipynb", executed, parameters)
    (path,) = (file.parent for file in results.glob("*/run.json"))
    assert {stop.blocks for stop in store.load_run(path).stops} == {3}
    assert "until every mean is within" in executed.read_text()

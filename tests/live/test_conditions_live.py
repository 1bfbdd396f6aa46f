"""A real run whose figures have true ratios: a command prints them, of 1.10 in one state and 0.91 in another."""

from __future__ import annotations

import sys
from typing import Any

import pandas as pd
import pytest
from mountlab.analysis.conditions import effects_of
from mountlab.report.terminal import run_answer
from mountlab.results import store
from mountlab.results.store import Run
from mountlab.results.tables import write_derived
from mountlab.runner import workflow
from sweeps import TMPFS, as_is

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.slow]
RATE = """
import random, sys
place, state = sys.argv[1:]
filesystem, trial = place.split("/")[-2:]
random.seed(filesystem + trial)
means = {"fresh": {"one": 3000, "two": 3300}, "aged": {"one": 1830, "two": 1665.3}}
mean = means[state][filesystem]
print("rate", mean * random.lognormvariate(0, 0.03))
"""
"""Ratios of 1.10 and 0.91, a cv of 3 %. The noise of a trial follows from its name, and so from the seed."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    script = tmp_path_factory.mktemp("program") / "rate.py"
    script.write_text(RATE)
    command: dict[str, Any] = {
        "tool": "command",
        "argv": f"{sys.executable} {script} {{directory}} {{state}}",
        "state": ["fresh", "aged"],
        "space": "1MiB",
        "metrics": {"operation_rate": {"pattern": r"rate ([0-9.]+)", "unit": "1/s"}},
    }
    resolved = as_is(
        filesystems={"one": TMPFS, "two": TMPFS},
        workloads={"app": command},
        design={"repeats": 10, "sample_every": False},
        baseline="one",
    )
    return store.load_run(workflow.run(resolved, results=tmp_path_factory.mktemp("results")))


def test_the_planted_flip_is_found_and_its_interval_holds_the_truth(run: Run) -> None:
    (change,) = effects_of(run).changes
    assert (change.condition, change.reference, change.level, change.verdict) == ("state", "fresh", "aged", "flips")
    assert change.change.n == 10
    for ratio, true in ((change.change, 0.91 / 1.10), (change.baseline_kept, 0.61), (change.kept, 1665.3 / 3300)):
        assert ratio.joint.low < true < ratio.joint.high


def test_the_terminal_and_the_table_say_so(run: Run) -> None:
    assert "two" in run_answer(run)
    assert "in state fresh" in run_answer(run)
    write_derived(run)
    table = pd.read_csv(run.path / "condition_changes.csv")
    assert list(table["flips"]) == [False, False, True]
    assert list(table["state"]) == ["aged"] * 3

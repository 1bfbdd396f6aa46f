"""The gate on this machine, where nothing changes: how often one run beside one fails, and three beside three."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from mountlab import __main__
from mountlab.results import paths
from mountlab.runner import workflow
from ownbox import own_box
from sweeps import DD_WRITE, TMPFS, as_is

pytestmark = [pytest.mark.soak, pytest.mark.box, pytest.mark.requires_root, pytest.mark.machine]
GATES = 100
MOST = 10
"""A gate that errs in 5 % fails more often in one of 90 such tests."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Path]:
    """101 runs of one quick sweep in a row: about two minutes."""
    scratch: Path = tmp_path_factory.mktemp("gates")
    workload = {**DD_WRITE, "count": 16}
    resolved = as_is(filesystems={"tmpfs": TMPFS}, workloads={"dd": workload}, design={"repeats": 5, "warmup": 1})
    with pytest.MonkeyPatch.context() as patch:
        own_box(scratch, patch)
        return [workflow.run(resolved, results=scratch / "results") for _ in range(GATES + 1)]


Outcome = Callable[[Sequence[Path], Sequence[Path]], str]


@pytest.fixture
def outcome(runs: Sequence[Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Outcome:
    """Judges as a person does: with what the runs below results/ tell."""
    monkeypatch.setattr(paths, "RESULTS", runs[0].parent)

    def judged(change: Sequence[Path], baseline: Sequence[Path]) -> str:
        __main__.main(["gate", *map(str, change), "--against", *map(str, baseline), "--json"])
        return str(json.loads(capsys.readouterr().out)["outcome"])

    return judged


def test_one_run_beside_the_one_before_seldom_fails(
    runs: Sequence[Path], outcome: Outcome, record_property: Callable[[str, object], None]
) -> None:
    found = Counter(outcome([runs[place + 1]], [runs[place]]) for place in range(GATES))
    record_property("outcomes", dict(found))
    assert found["fails"] <= MOST, found


def test_three_runs_beside_three_in_turns_seldom_fail(
    runs: Sequence[Path], outcome: Outcome, record_property: Callable[[str, object], None]
) -> None:
    sixes = [runs[place : place + 6] for place in range(0, GATES - 5, 2)]
    found = Counter(outcome(six[1::2], six[::2]) for six in sixes)
    record_property("outcomes", dict(found))
    assert found["fails"] <= MOST * len(sixes) // GATES + 1, found

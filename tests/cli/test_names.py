"""Every verb that takes a run or a sweep takes its name, and suggests the nearest for a wrong one."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import pytest
from mountlab.__main__ import main
from mountlab.cli import parser
from mountlab.cli.arguments import RUN, SWEEP, ArgumentKind
from mountlab.core.places import SHIPPED
from mountlab.results import paths

EARLIER = SHIPPED / "tests" / "data" / "earlier_run"
TAKE_RUNS = {
    "report": ["report", "{}"],
    "resume": ["resume", "{}"],
    "extend": ["extend", "{}", "-p", "repeats=20"],
    "explain": ["explain", "{}"],
    "exclude": ["exclude", "{}", "t0001", "--undo"],
    "reparse": ["reparse", "{}"],
    "export": ["export", "{}"],
    "fstab": ["fstab", "{}", "ext4"],
    "publish": ["publish", "{}"],
    "compare": ["compare", "kept", "{}"],
    "compare more": ["compare", "kept", "kept", "{}"],
    "gate": ["gate", "{}", "--against", "kept"],
    "gate against": ["gate", "kept", "--against", "{}"],
    "plan": ["plan", "ramdisk", "--box", "local", "--pilot", "{}"],
    "batch": ["batch", "--resume", "{}"],
}
TAKE_SWEEPS = ("plan", "run")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run called kept, for all: a command that is refused writes nothing."""
    results = tmp_path_factory.mktemp("results")
    shutil.copytree(EARLIER, results / "kept")
    return results


@pytest.fixture
def results(kept: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "RESULTS", kept)
    return kept


def verbs_with(kind: ArgumentKind) -> set[str]:
    """Verbs with an argument of this kind."""
    (below,) = (each for each in parser()._actions if isinstance(each, argparse._SubParsersAction))
    return {
        name
        for name, verb in below.choices.items()
        if any(getattr(action, "completer", None) is kind for action in verb._actions)
    }


def test_the_verbs_below_are_all() -> None:
    assert verbs_with(RUN) == {words[0] for words in TAKE_RUNS.values()}
    assert verbs_with(SWEEP) == {*TAKE_SWEEPS, "extend", "history"}


@pytest.mark.parametrize("words", TAKE_RUNS.values(), ids=TAKE_RUNS)
def test_a_wrong_name_of_a_run_suggests_the_nearest(
    words: list[str], results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word.format("kpet") for word in words]) == 2
    error = capsys.readouterr().err
    assert "error: no such run" in error
    assert "did you mean 'kept'?" in error


@pytest.mark.parametrize("verb", TAKE_SWEEPS)
def test_a_wrong_name_of_a_sweep_suggests_the_nearest(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "ramdsik"]) == 2
    error = capsys.readouterr().err
    assert "error: no such sweep file" in error
    assert "did you mean 'ramdisk'?" in error


@pytest.mark.slow
def test_a_verb_says_which_run_a_name_means(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reparse", "latest"]) == 0
    said = capsys.readouterr()
    assert said.err.splitlines()[0] == f"latest: {results / 'kept'}"
    assert said.out.splitlines() == [f"derived again: {results / 'kept'}"]
    assert main(["reparse", str(results / "kept")]) == 0
    assert capsys.readouterr().err == ""


def test_a_batch_is_named_as_a_sweep_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["batch", "studeis", "--plan"]) == 2
    assert "did you mean 'studies'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["tour"], ["--sweep", "tour"], ["--box", "b", "tour"], ["tour", "--page"]], ids=" ".join
)
def test_a_history_takes_the_name_of_a_sweep_as_the_other_verbs_do(words: list[str]) -> None:
    assert parser(["history"]).parse_args(["history", *words]).sweep == "tour"


def test_a_history_of_all_sweeps_names_none() -> None:
    assert parser(["history"]).parse_args(["history", "--box", "b"]).sweep is None

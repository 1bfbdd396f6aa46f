"""Input from others, in its long form: more than 10,000 sweep and box files, and the command lines of every plan that a
hostile word gets into. `lost` is what was neither planned nor refused, `left behind` what was touched or executed.

The short form are tests/test_hostile_*.py.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import test_hostile_runs as runs
import test_hostile_words as words
from hostile_input import CANARY, Hostile, write
from mountlab import store
from mountlab.errors import MountlabError
from mountlab.params import parse_box, parse_yaml
from test_hostile_input import WATCHED, nothing_is_touched, plan_of, soon

faults = pytest.importorskip("faults.counting", reason="the table of the faults is not here")
pytestmark = pytest.mark.soak


def looked_at(name: str, look: Callable[[], object]) -> tuple[str, ...]:
    """What went another way than planned or refused; () where nothing did."""
    try:
        with nothing_is_touched(), soon():
            look()
    except MountlabError:
        return ()
    except Exception as error:  # noqa: BLE001  # whatever it is, it counts
        return (f"{name}: {error!r}"[:400],)
    return ()


def told(report: Any, fault: str, tries: int, lost: list[str], place: Path, started: float) -> None:
    left = (*WATCHED, *(str(path) for path in place.rglob(f"*{CANARY}*")))
    report(fault, tries, faults.Count(lost=tuple(lost), left=left), time.monotonic() - started)


def test_ten_thousand_sweeps(report: Any, tmp_path: Path) -> None:
    hostile, started, lost = Hostile(2026), time.monotonic(), list[str]()
    for number in range(10_000):
        path = write(tmp_path / "hostile.yml", hostile.sweep())
        lost += looked_at(f"sweep {number}", lambda: plan_of(path))  # noqa: B023  # it is called at once
    told(report, "hostile sweep files: planned or refused", 10_000, lost, tmp_path, started)


def test_five_thousand_box_files(report: Any, tmp_path: Path) -> None:
    hostile, started, lost = Hostile(2027), time.monotonic(), list[str]()
    for number in range(5_000):
        path = write(tmp_path / "hostile.yml", hostile.box())

        def look() -> object:
            return parse_box(parse_yaml(store.read_text(path, "box file", ""), where="b"), name="b", where="b")  # noqa: B023

        lost += looked_at(f"box {number}", look)
    told(report, "hostile box files: read or refused", 5_000, lost, tmp_path, started)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_runs_that_were_damaged(run: Path, report: Any, tmp_path: Path) -> None:
    damage, started, lost = runs.Damage(2028), time.monotonic(), list[str]()
    kept = {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}
    for number in range(300):
        damage.change(run)
        lost += looked_at(f"run {number}", lambda: runs.look_at(run))
        (run / "exclude.yml").unlink(missing_ok=True)
        for file, data in kept.items():
            file.write_bytes(data)
    told(report, "damaged and made-up runs: read or refused", 300, lost, tmp_path, started)


run = runs.run
recorders = words.recorders


@pytest.mark.parametrize("shell", words.SHELLS, ids=lambda shell: Path(shell[0]).name)
def test_every_command_line(shell: list[str], recorders: Path, report: Any, tmp_path: Path) -> None:
    plans, started, place = words.plans_with_hostile_words(100_000), time.monotonic(), tmp_path / "here"
    place.mkdir()
    random.Random(1).shuffle(plans)
    lost = list[str]()
    for check in (words.test_each_word_of_a_trial_arrives_as_one_and_nothing_else_runs, _lines):
        try:
            check(shell, plans, recorders, place)
        except AssertionError as error:
            lost.append(str(error)[:400])
    name = " ".join([Path(shell[0]).name, *shell[1:]])
    told(report, f"hostile words in command lines, read by {name}", 2 * len(plans), lost, place, started)


def _lines(shell: list[str], plans: Any, recorders: Path, place: Path) -> None:
    words.test_each_argument_arrives_as_one_and_nothing_else_runs(shell, False, plans, recorders, place)

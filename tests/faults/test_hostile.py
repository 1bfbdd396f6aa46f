"""Input from others, by the ten thousand: the tests of hostile input with as many examples as that."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from faults.counting import Count
from faults.table import Report

TESTS = Path(__file__).parents[1]
MANY, WORDS = 10_000, 1_000


@pytest.mark.soak
@pytest.mark.parametrize(
    ("fault", "tries", "file", "variable"),
    [
        ("hostile sweeps and box files", 2 * MANY, "sweep/test_hostile_input.py", "MOUNTLAB_HOSTILE"),
        ("plans of hostile words, read by shells", WORDS, "sweep/test_hostile_words.py", "MOUNTLAB_HOSTILE_WORDS"),
    ],
    ids=["input", "words"],
)
def test_hostile_input_by_the_thousand(fault: str, tries: int, file: str, variable: str, report: Report) -> None:
    started = time.monotonic()
    many = str(WORDS if "WORDS" in variable else MANY)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(TESTS / file)]
    done = subprocess.run(argv, env={**os.environ, variable: many}, capture_output=True, text=True, check=False)
    found = tuple(line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR")))
    assert done.returncode in (0, 1), done.stdout[-2000:]
    report(fault, tries, Count(lost=found), time.monotonic() - started)

"""Each program that tests need, missing: what needs it is skipped, and all else passes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import own_mounts
import pytest
from mountlab_dev import needs

TESTS = Path(__file__).parents[1]
ALWAYS_THERE = {"bash", "coreutils", "tar", "util-linux"}
"""Packages without which there is no Debian."""
NAMES = [
    name
    for name, package in needs.PACKAGES.items()
    if package not in ALWAYS_THERE and not name.endswith((".ttf", ".1"))
]


def files_that_name(program: str) -> list[str]:
    """The files of tests on the box, and those whose text has the program's name."""
    word = re.compile(rf"\b{re.escape(program)}\b")
    own = (file for file in TESTS.glob("*/test_*.py") if word.search(file.read_text()))
    return sorted({str(file) for file in (*own, *(TESTS / "live").glob("test_*.py"))} - {__file__})


@pytest.mark.soak
@pytest.mark.requires_root
@pytest.mark.parametrize("name", NAMES)
def test_without_a_program_nothing_fails(name: str) -> None:
    if not own_mounts.is_separate():
        pytest.skip(own_mounts.NEEDED)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("MOUNTLAB_", "PYTEST_"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", "-m", "not (long or repository)",
         *files_that_name(name)],
        cwd=TESTS.parent, env={**environment, own_mounts.WITHOUT: name}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]

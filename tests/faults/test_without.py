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
ALWAYS_THERE = {"bash", "coreutils", "dash", "git", "make", "tar", "util-linux"}
"""Packages without which there is no Debian, no clone of this and no `make test`."""
NAMES = [
    name
    for name, package in needs.PACKAGES.items()
    if package not in ALWAYS_THERE and not name.endswith((".ttf", ".1"))
]


def files_that_name(program: str) -> list[str]:
    """The files of tests that name the program, its file system, or a helper whose text names one of them."""
    word = re.compile(rf"\b({re.escape(program)}|{re.escape(program.removeprefix('mkfs.'))})\b")
    helpers = [file.stem for file in (TESTS / "support").glob("*.py") if word.search(file.read_text())]
    helped = re.compile(rf"^(from|import) ({'|'.join(helpers)})\b" if helpers else r"(?!)", re.MULTILINE)
    texts = {str(file): file.read_text() for file in TESTS.glob("*/test_*.py") if file != Path(__file__)}
    return sorted(file for file, text in texts.items() if word.search(text) or helped.search(text))


@pytest.mark.soak
@pytest.mark.requires_root
@pytest.mark.parametrize("name", NAMES)
def test_without_a_program_nothing_fails(name: str) -> None:
    if not own_mounts.is_separate():
        pytest.skip(own_mounts.NEEDED)
    ours = ("MOUNTLAB_", "PYTEST_", "TMPDIR")  # a socket below another session's TMPDIR has too long a name
    environment = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", "-m", "not (long or repository)",
         *files_that_name(name)],
        cwd=TESTS.parent, env={**environment, own_mounts.WITHOUT: name}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED), done.stdout[-4000:]

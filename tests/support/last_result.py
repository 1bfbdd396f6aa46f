"""What the parts of `make test-all` ended with the last time, in docs/data/test-all.csv."""

from __future__ import annotations

import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import data_files
import pytest

PART = "MOUNTLAB_TESTS_PART"
"""Variable that names the part; without it nothing is recorded."""
DATA = "test-all"
"""Name of the table in docs/data/."""


def commit(table: Path) -> str:
    """Return the commit that is checked out there, with a + where files other than the table were changed since."""
    commands = (
        ["rev-parse", "--short=8", "HEAD"],
        ["status", "--porcelain", "--untracked-files=no", ":/", f":!{table.name}"],
    )
    said = [
        subprocess.run(["git", *words], cwd=table.parent, capture_output=True, text=True, check=False).stdout.strip()
        for words in commands
    ]
    return said[0] + ("+" if said[1] else "") or "unknown"


class LastResult:
    """Counts the tests of a session, and writes its row at the end."""

    def __init__(self, part: str) -> None:
        self._part, self._began = part, time.monotonic()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        stats, path = terminalreporter.stats, data_files.path_of(DATA)
        counts = [len(stats.get("passed", [])), len(stats.get("skipped", []))]
        counts.append(len(stats.get("failed", [])) + len(stats.get("error", [])))
        minutes = f"{(time.monotonic() - self._began) / 60:.0f} min"
        cells = [commit(path), f"{datetime.now(UTC):%Y-%m-%d}", *(f"{count:,}" for count in counts), minutes]
        data_files.update(DATA, [[f"`{self._part}`", *cells]])
        terminalreporter.write_line(f"written to {path}")

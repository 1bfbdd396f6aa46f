"""What the parts of `make test-all` ended with the last time, in docs/test-all.md."""

from __future__ import annotations

import re
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

PART = "MOUNTLAB_TESTS_PART"
"""Variable that names the part; without it nothing is recorded."""
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "test-all.md"


def put(page: str, part: str, cells: list[str]) -> str:
    """Return the page with a new row for a part, in the place of its old one. Raises ValueError where it has none."""
    row = f"| `{part}` | {' | '.join(cells)} |"
    changed, number = re.subn(rf"^\| `{re.escape(part)}` \|.*$", lambda _: row, page, flags=re.MULTILINE)
    if number != 1:
        raise ValueError(f"{number} rows of part {part}, and not one")
    return changed


def _commit() -> str:
    """Return the commit that is checked out, with a + where files were changed since."""
    described = ["git", "describe", "--always", "--abbrev=8", "--dirty=+", "--exclude=*"]
    done = subprocess.run(described, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


class LastResult:
    """Counts the tests of a session, and writes its row at the end."""

    def __init__(self, part: str, page: Path = PAGE) -> None:
        self._part, self._page = part, page
        self._began = time.monotonic()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        stats = terminalreporter.stats
        counts = [len(stats.get("passed", [])), len(stats.get("skipped", []))]
        counts.append(len(stats.get("failed", [])) + len(stats.get("error", [])))
        minutes = f"{(time.monotonic() - self._began) / 60:.0f} min"
        cells = [_commit(), f"{datetime.now(UTC):%Y-%m-%d}", *(f"{count:,}" for count in counts), minutes]
        self._page.write_text(put(self._page.read_text(), self._part, cells))
        terminalreporter.write_line(f"written to {self._page}")

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


def commit(page: Path) -> str:
    """Return the commit that is checked out there, with a + where files other than the page were changed since."""
    commands = (
        ["rev-parse", "--short=8", "HEAD"],
        ["status", "--porcelain", "--untracked-files=no", ":/", f":!{page.name}"],
    )
    said = [
        subprocess.run(["git", *words], cwd=page.parent, capture_output=True, text=True, check=False).stdout.strip()
        for words in commands
    ]
    return said[0] + ("+" if said[1] else "") or "unknown"


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
        cells = [commit(self._page), f"{datetime.now(UTC):%Y-%m-%d}", *(f"{count:,}" for count in counts), minutes]
        self._page.write_text(put(self._page.read_text(), self._part, cells))
        terminalreporter.write_line(f"written to {self._page}")

"""A table of values in one test: a row that fails is a failure with its name, and the others are tried all the same."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rows import every_row

TABLES = """\
import pytest
from rows import every_row

TRIED = []

@every_row("number", [1, pytest.param(2, id="two"), 3])
@every_row(("word", "size"), [("a", 1), ("bcd", 3)], ids=["short", "long"])
def test_rows(number, word, size, tmp_path):
    TRIED.append((number, word))
    if number == 3:
        pytest.skip("three")
    assert tmp_path.is_dir() and len(word) == size
    assert (number, word) != (2, "bcd")

def test_all_were_tried():
    assert TRIED == [(number, word) for number in (1, 2, 3) for word in ("a", "bcd")]
"""


def test_each_row_is_tried_and_those_that_fail_are_named(tmp_path: Path) -> None:
    (tmp_path / "test_tables.py").write_text(TABLES)
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "-rf", "-p", "no:cacheprovider", "test_tables.py"]
    support = str(Path(__file__).parents[1] / "support")
    environment = {**os.environ, "PYTHONPATH": support, "PYTEST_ADDOPTS": ""}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert re.findall(r"^SUBFAILED\[(.+?)\]", done.stdout, re.MULTILINE) == ["two-long"], done.stdout + done.stderr
    assert "2 failed, 1 passed" in done.stdout  # the row, the table that holds it, and the test that looks at all rows
    assert done.returncode == 1


def test_a_table_without_rows_is_refused() -> None:
    with pytest.raises(AssertionError, match="a table without rows tests nothing"):
        every_row("number", [])(lambda number: None)

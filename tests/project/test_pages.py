"""Pages of docs/ that quote figures or messages: what they quote is so."""

from __future__ import annotations

import re

import pytest
from mountlab.core import disk
from mountlab.results import paths, store

ROOT = disk.ROOT
DOCS = ROOT / "docs"
UNITS = {"GB/s": 1e9, "µs": 1e-6, "thousand/s": 1e3}


# --- what to expect ---------------------------------------------------------------------------------------------------


def test_the_figures_of_the_own_machine_are_those_of_the_recorded_run() -> None:
    text = (DOCS / "what-to-expect.md").read_text().partition("<!-- tour")[2]
    rows = re.findall(r"^\| (\S+/.+?) \| (\w+) \| ([\d.]+) \| ([\d.]+) \| (\S+) \|$", text, re.MULTILINE)
    assert len(rows) == 10
    estimates = store.load_run(ROOT / "results" / "tour").estimates
    for cell, metric, low, high, unit in rows:
        measured = estimates[(estimates["cell"] == cell) & (estimates["metric"] == metric)].iloc[0]
        assert float(low) == pytest.approx(measured["low"] / UNITS[unit], rel=0.005)
        assert float(high) == pytest.approx(measured["high"] / UNITS[unit], rel=0.005)


def test_every_range_names_a_source_that_is_listed() -> None:
    text = (DOCS / "what-to-expect.md").read_text()
    ranges, _, rest = text.partition("## What one small")
    listed = set(re.findall(r"^\| (\d+) \|", rest.partition("## Sources")[2], re.MULTILINE))
    assert set(re.findall(r"\[(\d+)\]\(#sources\)", ranges)) == listed
    rows = [row for row in ranges.splitlines() if row.startswith("| ") and "---" not in row][1:]
    for cell in (cell for row in rows for cell in row.split("|")[2:-1]):
        assert "(#sources)" in cell or not re.search(r"\d", cell.replace("7,200/min", "").replace("8.3 ms", "")), cell


def test_the_published_figures_of_the_page_are_those_of_their_files() -> None:
    rows = [*paths.load_published(("c-memory-fsync",)), *paths.load_published(("b-tmpfs-cloud", "a-ramdisk-2013"))]
    known = {f"{value:.0f}" for row in rows for value in (row.candidate_value, row.baseline_value)}
    text = (DOCS / "what-to-expect.md").read_text().partition("## Sources")[2]
    (line,) = (line for line in text.splitlines() if "pg_test_fsync" in line)
    assert {figure.replace(",", "") for figure in re.findall(r"\d+,\d+(?:,\d+)?", line)} <= known

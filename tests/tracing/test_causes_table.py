"""The table of planted causes in docs/why.md: rows by cause, each replaced by a later count."""

from __future__ import annotations

import pytest
from causes import CAUSES
from causes_table import PAGE, Found, put

EMPTY = "before\n<!-- causes -->\n<!-- end of causes -->\nafter\n"


def test_a_later_count_replaces_that_of_the_same_cause_and_leaves_others() -> None:
    queue, flush = CAUSES[0], CAUSES[1]
    text = put(
        put(EMPTY, Found(queue, [{"queue": 1.0}], [])),
        Found(flush, [{"flush": 0.7, "device": 0.3}, {"device": 1.0}, {}], [{"device": 0.9, "flush": 0.1}]),
    )
    text = put(text, Found(queue, [{"queue": 0.9}, {"device": 1.0}, {"queue": 0.8}], [{}]))
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert [row.split("`")[1] for row in rows] == [queue.name, flush.name]
    assert "| 2 of 3 | 80% | `device` 1 | 0 of 1 | withheld |" in rows[0]
    assert "| 1 of 3 | 35% | `device` 1, `withheld` 1 | 0 of 1 | 10% |" in rows[1]
    assert text.startswith("before\n")
    assert text.endswith("<!-- end of causes -->\nafter\n")


def test_the_page_has_a_place_for_the_table() -> None:
    assert put(PAGE.read_text(), Found(CAUSES[0], [{"queue": 1.0}], []))
    with pytest.raises(ValueError, match="no line '<!-- causes -->'"):
        put("", Found(CAUSES[0], [], []))

"""Pages that are built from data: each table of docs/data/ stands on one, and a table is Markdown."""

from __future__ import annotations

import json
import re

from mountlab_dev import evidence


def test_each_table_of_the_data_stands_on_one_page() -> None:
    text = "\n".join(evidence.pages().values())
    by_csv = [evidence.table_of(evidence.rows(path.stem)) for path in evidence.DATA.glob("*.csv")]
    by_json = [
        str(evidence.captioned(path.stem, name))
        for path in evidence.DATA.glob("*.json")
        for name in json.loads(path.read_text())
    ]
    assert by_csv
    assert len(by_json) >= 39
    assert {text.count(table) for table in (*by_csv, *by_json)} == {1}
    assert not re.findall(r"<!-- table:", text)


def test_columns_of_figures_are_aligned_to_the_right_and_bars_end_no_cell() -> None:
    lines = [["a|b", "n", "words"], ["1", "2.5 %", "3 of them"], ["x", "–", "none"], ["y", "**7**", ""]]
    assert evidence.table_of(lines).splitlines() == [
        "| a\\|b | n | words |", "|---|---:|---|", "| 1 | 2.5 % | 3 of them |", "| x | – | none |", "| y | **7** |  |",
    ]  # fmt: skip


def test_tables_with_captions_are_kept_one_line_a_row() -> None:
    text = evidence.as_json({"x": ("What “it” is.", [["name", "n"], ["a", "1"]]), "y": ("", [["b"]])})
    assert text.splitlines()[1:5] == [
        '"x": {"caption": "What “it” is.", "rows": [',
        '["name", "n"],',
        '["a", "1"]',
        "]},",
    ]
    assert json.loads(text)["x"] == {"caption": "What “it” is.", "rows": [["name", "n"], ["a", "1"]]}

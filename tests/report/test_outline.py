"""Parts of a notebook that have nothing to show."""

from __future__ import annotations

from typing import Any

import nbformat
from mountlab.report import execute, html
from mountlab.report.outline import without_empty_parts
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from rows import every_row


def shown(text: Any) -> Any:
    data = {"text/html": text._repr_html_() if isinstance(text, html.Html) else text, "text/plain": "x"}
    return new_code_cell("part(run)", outputs=[new_output("execute_result", data=data, execution_count=1)])


def sources(*cells: Any) -> list[str]:
    return [cell.source for cell in without_empty_parts(new_notebook(cells=list(cells)), {})[0].cells]


NOTHING = html.nothing("None was <kept> & asked for.")
SOME = html.paragraph("Something.")


def test_a_part_with_nothing_leaves_with_its_heading_and_is_listed_at_the_end() -> None:
    one, two = (new_markdown_cell(f"## {name}\n\nText.") for name in ("One", "Two"))
    three = new_markdown_cell("## Three")
    told = sources(new_markdown_cell("# What?"), one, shown(SOME), two, shown(NOTHING), three, shown(SOME))
    left_out = "### Not in this report\n\n- Two: None was <kept> & asked for."
    assert told == ["# What?", "## One\n\nText.", "part(run)", "## Three", "part(run)", left_out]


@every_row(
    "cells",
    [
        [shown(NOTHING)],
        [new_markdown_cell("# Title"), shown(NOTHING)],
        [new_markdown_cell("## One"), shown(NOTHING), shown(SOME)],
        [new_markdown_cell("## One"), new_code_cell("x = 1")],
        [new_markdown_cell("## One"), shown("plain")],
        [new_markdown_cell("## One"), new_code_cell("x", outputs=[new_output("stream", text="a warning")])],
        [],
    ],
)
def test_everything_else_stays(cells: list[Any]) -> None:
    assert sources(*cells) == [cell.source for cell in cells]


def test_a_hidden_heading_begins_no_part() -> None:
    hidden = new_markdown_cell("## Hidden", metadata={"tags": ["notebook-only"]})
    assert len(sources(new_markdown_cell("## One"), shown(SOME), hidden, shown(NOTHING))) == 4


def test_a_hidden_cell_keeps_no_part() -> None:
    hidden = shown(SOME)
    hidden.metadata.tags = ["notebook-only"]
    assert sources(new_markdown_cell("## One"), shown(html.nothing("")), hidden) == []


def test_several_parts_are_told_in_their_order() -> None:
    cells = [each for name in "abc" for each in (new_markdown_cell(f"## {name}"), shown(html.nothing(f"No {name}.")))]
    assert sources(*cells) == ["### Not in this report\n\n- a: No a.\n- b: No b.\n- c: No c."]
    assert without_empty_parts(new_notebook(cells=cells), {}, reasons_at_end=False)[0].cells == []
    silent = [new_markdown_cell("## One"), shown(SOME), new_markdown_cell("### Two"), shown(html.nothing(""))]
    assert sources(*silent) == ["## One", "part(run)"], "without a reason it leaves without a word"


def test_a_part_within_another_leaves_alone_and_its_place_stays() -> None:
    parts = {"## Results": NOTHING, "### One": SOME, "### Two": NOTHING, "## Trials": html.nothing("No trial.")}
    parts["### Order"] = html.nothing("No order.")
    told = sources(*(cell for title, part in parts.items() for cell in (new_markdown_cell(title), shown(part))))
    reasons = "- Two: None was <kept> & asked for.\n- Trials: No trial.\n- Order: No order."
    left_out = f"### Not in this report\n\n{reasons}"
    assert told == ["## Results", "part(run)", "### One", "part(run)", left_out]


def test_a_bare_heading_leaves_with_the_last_part_in_it() -> None:
    bare, inside = new_markdown_cell("## Results"), new_markdown_cell("### One")
    assert sources(bare, inside, shown(SOME)) == ["## Results", "### One", "part(run)"]
    assert sources(bare, inside, shown(html.nothing(""))) == []


def test_the_report_answers_first_and_ends_with_the_appendix() -> None:
    notebook = nbformat.read(execute.NOTEBOOK, as_version=4)
    sources = [cell.source.splitlines()[0] for cell in notebook.cells if cell.source]
    headings = [line.removeprefix("## ") for line in sources if line.startswith("## ")]
    assert [heading.split(":")[0] for heading in headings] == [
        "Caveats",
        "Options in effect",
        "What the program did",
        "Results",
        "What each program does",
        "Why",
        "Trials",
        "Comparison with published figures",
        "Analysis of variance",
        "Appendix",
    ]
    texts = "\n".join(cell.source for cell in notebook.cells).split("\n## ")[0]
    assert texts.index("mountlab.sections.question(the_run)") < texts.index("mountlab.sections.headline(the_run)")

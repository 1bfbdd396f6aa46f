"""The language check: which words and sentences it finds, where, and what it leaves alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mountlab_dev.__main__ import main
from mountlab_dev.language import findings, in_markdown, in_notebook, long_sentences, phrases
from rows import every_row


def words(text: str) -> list[str]:
    return [each.words for each in phrases(text)]


@every_row(
    ("text", "found"),
    [
        ("It cannot be told.", "told"),
        ("Nobody knows.", "Nobody"),
        ("It is made anew", "anew"),
        ("what the tool does not heed", "heed"),
        ("options that it heeds", "heeds"),
        ("an option is heeded", "heeded"),
        ("Whoever looks again", "Whoever"),
        ("what each had of a workload", "had of"),
        ("what the kernel says of it", "says of"),
        ("what they say of it", "say of"),
        ("cells of which some failed", "of which"),
        ("What was begun is gone on with", "What was begun is"),
        ("How root is had", "is had"),
        ("Not to be had are `raw`", "to be had"),
        ("client X knows no way to the server", "knows no"),
        ("it has not our libraries", "has not our"),
        ("neither way", "neither way"),
        ("a line that is none", "that is none"),
        ("All of this is doubtful: noisy.", "All of this is doubtful"),
        ("How the trials lie", "How the trials lie"),
        ("tmpfs reads 0.34 times as fast as ext4", "0.34 times as fast"),
        ("about 24 blocks or fewer would decide", "or fewer would decide"),
    ],
)
def test_a_listed_phrase_is_found(text: str, found: str) -> None:
    assert found in words(text)


@every_row(
    "text",
    [
        "identical cells, one of which is the baseline",
        "each of\n    # which has a directory",
        "untold Gold is mouldy",
        "tmpfs reads 6.9 times as fast as ext4",
        "It said: of course",
        "what is it?",
        "It had to stop; it has not run.",
    ],
)
def test_plain_english_is_left_alone(text: str) -> None:
    assert words(text) == []


@every_row(
    "text",
    [
        "what the kernel says\n    of it",
        "# what the kernel says\n# of it",
        'text = "what the kernel says "\n    f"of {it}"',
        "// what the kernel says\n// of it",
    ],
)
def test_a_phrase_over_a_line_break_or_a_seam_of_strings_is_found(text: str) -> None:
    assert words(text) == ["says of"]


def test_names_in_code_count_as_their_words() -> None:
    assert words("def told_frame(told): ...\nclass Told: ...") == ["told", "told", "Told"]


def test_a_finding_names_its_line_and_what_to_write() -> None:
    (found,) = phrases("one\ntwo\nthe cells of which some failed")
    assert str(found) == "3: “of which”: begin with the thing: whose, that has, with"


LONG = " ".join(f"Word{n}" for n in range(36))


def test_a_sentence_of_35_words_passes_and_one_of_36_does_not() -> None:
    assert long_sentences(f"Short. {LONG.removesuffix(' Word35')}. Short.") == []
    (found,) = long_sentences(f"A first one.\nShort. {LONG}. Short.")
    assert found.line == 2
    assert found.advice.startswith("36 words")


@every_row(
    "page",
    [
        f"```sh\n{LONG}\n```",
        f"`{LONG}`",
        f"Gives: {', '.join(['`a`'] * 40)} and `b`.",
        f"[a link](https://example.org/{LONG.replace(' ', '/')})",
        "\n".join(f"- {LONG[:100]}" for _ in range(5)),
        f"| {LONG[:150]} | {LONG[:150]} |",
        f"# {LONG[:150]}\n{LONG[:150]}",
        f"{LONG[:150]}\n\n{LONG[:150]}",
        f"{LONG[:150]}? {LONG[:150].capitalize()}!",
        "| " + " | ".join(["-- a"] * 40) + " |",
    ],
)
def test_code_links_items_cells_headings_and_paragraphs_make_no_long_sentence(page: str) -> None:
    assert long_sentences(page) == []


@every_row("page", [f"- {LONG}", f"| a | {LONG} |", f"> {LONG}", f"1. Short. {LONG}", f"e.g. {LONG}"])
def test_long_sentences_of_items_cells_and_quotations_are_found(page: str) -> None:
    assert len(long_sentences(page)) == 1


def test_a_page_is_judged_outside_of_inline_code_and_link_targets() -> None:
    assert in_markdown("`told` and [here](told.md)") == []
    assert [each.words for each in in_markdown("[told](here.md)")] == ["told"]


def test_inline_code_over_two_lines_keeps_the_lines_below_in_place() -> None:
    (found,) = in_markdown("`a\nb`\ntold")
    assert found.line == 3


def test_a_notebook_is_judged_by_its_cells() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", f"{LONG}"]},
        {"cell_type": "code", "source": ["told = 1\n", f"# {LONG}"]},
    ]
    assert [(each.line, each.words.split()[0]) for each in in_notebook(json.dumps({"cells": cells}))] == [
        (2, "Word0"),
        (3, "told"),
    ]


def test_long_comments_of_code_pass_and_files_without_prose_are_not_read() -> None:
    assert findings("x.py", f"# {LONG}") == []
    assert findings("x.png", "told") == []
    assert [each.words for each in findings("Makefile", "all: ## told")] == ["told"]


def test_the_verb_prints_each_finding_with_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "page.md").write_text("It cannot\nbe told.")
    assert main(["language", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert f"{tmp_path / 'page.md'}:2: “told”" in said
    assert said.endswith("1 findings\n")
    (tmp_path / "page.md").write_text("It is unknown.")
    assert main(["language", str(tmp_path)]) == 0

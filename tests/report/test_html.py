"""Pieces of a page: valid, labelled, and never more than text where text was given."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mountlab.core import numbers
from mountlab.core.findings import Caveat
from mountlab.core.text import visible
from mountlab.report import html
from mountlab.report.html import Column, Html, Rows
from mountlab.wording import caveats
from pages import Page
from rows import every_row

HOSTILE = """<script>alert("x")</script><img src=x onerror='alert(1)'> & =HYPERLINK("a") {{ 7*7 }} {% raw %}"""

OTHER_FORMAT = {
    *range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD, *range(0x13430, 0x13440),
    *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B),
}  # fmt: skip
"""Format characters that belong to a script: signs before Arabic numbers, hieroglyphs, shorthand, music."""


def caveat(subject: str = "ext4/dd", message: str = "seen") -> Caveat:
    return Caveat(code="noisy", severity="warning", message=message, scope="cell", subject=subject)


def pieces(text: str) -> list[Html]:
    """One of each kind of piece, with `text` wherever text can go."""
    table = html.table(
        [Column(text), Column(text, "number"), Column(text, "code")], [Rows([[text, text, text]], text)], caption=text
    )
    group = caveats.CaveatGroup(text, "warning", (caveat(text, text),))
    several = caveats.CaveatGroup(text, "note", (caveat(text, text), caveat("b", f"{text}2")))
    key = html.swatch(text, "#000", "●")
    return [
        html.paragraph(text),
        html.heading(text, level=2),
        html.code_block(text),
        html.code(text),
        html.items([text]),
        key,
        html.labelled(text, text),
        html.details(text, text),
        html.definitions({text: text}),
        html.columns(text, text),
        html.figure(text, html.paragraph(text), keys=[key]),
        html.stacked(text, text),
        html.joined(text),
        html.box("answer", text),
        html.link("#there", text),
        table,
        html.caveat_box(group),
        html.caveat_box(several),
    ]


@every_row("piece", pieces(HOSTILE), ids=lambda piece: piece[:24])
def test_hostile_text_stays_text(piece: Html) -> None:
    page = Page(piece)
    assert page.active() == set()
    assert HOSTILE in page.words
    assert page.crossed == page.open == [], "every tag is closed in order"


@given(st.text(max_size=60))
def test_any_text_comes_out_as_it_went_in(text: str) -> None:
    """But for characters that nobody could see, which are named."""
    page = Page(html.paragraph(text))
    assert page.tags == {"p": 1}
    lines = text.split("\r\n")
    expected = "\n".join("".join(each if seen(each) else f"[U+{ord(each):04X}]" for each in line) for line in lines)
    assert page.words.replace("\r\n", "\n") == expected


def seen(character: str) -> bool:
    """By Unicode's own tables: neither a control nor a format character, but for new lines, tabs and joiners; and not
    half of a pair, a separator of lines, or no character at all."""
    if character in "\n\t\u200c\u200d" or ord(character) in OTHER_FORMAT:
        return True
    return unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp") and character not in "\ufffe\uffff"


@every_row("mark", ["\u202e", "\u2066", "\u200f", "\u061c", "\u200b", "\ufeff", "\x1b", "\x00", "\x7f"])
def test_what_turns_text_around_or_hides_is_named(mark: str) -> None:
    assert html.items([f"a{mark}b"]) == f"<ul><li>a[U+{ord(mark):04X}]b</li></ul>"
    assert visible(visible(f"a{mark}b")) == f"a[U+{ord(mark):04X}]b"
    assert visible(joined := "نمی\u200cخواهم 👩\u200d🔬 שלום") == joined, "scripts that need joiners are left alone"


def test_a_piece_shows_itself_in_a_notebook_and_in_a_terminal() -> None:
    piece = html.paragraph("6 < 7 & more")
    assert piece._repr_html_() == html.JUPYTERLAB_STYLE + "<p>6 &lt; 7 &amp; more</p>"
    assert repr(piece) == "6 < 7 & more"
    assert html.items([html.paragraph("<b>")]) == "<ul><li><p>&lt;b&gt;</p></li></ul>", "it is escaped once"


def test_a_table_says_what_its_cells_belong_to() -> None:
    text = html.table(
        [Column("File system"), Column("Mean, MB/s", "number")], [Rows([["ext4", "60.1"]], "dd")], caption="Speed"
    )
    assert '<th scope="col">File system</th>' in text
    assert '<th scope="col" class="number">Mean, MB/s</th>' in text
    assert '<th scope="rowgroup" colspan="2">dd</th>' in text
    assert '<th scope="row">ext4</th>' in text
    assert '<td class="number">60.1</td>' in text
    assert "<caption>Speed</caption>" in text
    assert 'role="region" aria-label="Speed" tabindex="0"' in text


def test_numbers_of_a_column_are_aligned_over_all_groups() -> None:
    text = html.table(
        [Column("a"), Column("b", "number")], [Rows([["x", "60.1"]], "one"), Rows([["y", "9000"]], "two")], caption="c"
    )
    assert f"9000{numbers.PUNCTUATION_SPACE}{numbers.FIGURE_SPACE}</td>" in text
    with pytest.raises(ValueError, match="2 cells for 1 column"):
        html.table([Column("a")], [Rows([["x", "y"]])], caption="c")


def test_one_message_is_said_once_for_many_cells() -> None:
    many = caveats.CaveatGroup("noisy", "warning", tuple(caveat(f"ext4/w{i}") for i in range(9)))
    text = html.caveat_box(many)
    assert text.count("seen") == 1
    assert "Noisy (9 cells)" in text
    assert "<summary>All 9</summary>" in text
    few = caveats.CaveatGroup("noisy", "warning", (caveat("ext4/a"), caveat("ext4/b")))
    assert "ext4/a, ext4/b" in html.caveat_box(few)


def test_of_two_messages_about_many_cells_each_stands_once_with_its_cells() -> None:
    members = [caveat(f"ext4/w{i}", "n = 3: too few." if i < 3 else "n = 4: too few.") for i in range(5)]
    words = html.words_of(html.caveat_box(caveats.CaveatGroup("too-few", "warning", tuple(members))))
    assert "n = 3: too few. ext4/w0, ext4/w1, ext4/w2 n = 4: too few. ext4/w3, ext4/w4" in words
    assert "what was seen in each" not in words


def test_messages_that_differ_are_all_there() -> None:
    group = caveats.CaveatGroup(
        "noisy", "error", (caveat("a", "by 12 %"), caveat("b", "by 20 %"), caveat("c", "by 11 %"))
    )
    text = html.caveat_box(group)
    assert text.index("by 12 %") < text.index("what was seen in each") < text.index("20 %") < text.index("11 %")
    assert "Do not use" in text

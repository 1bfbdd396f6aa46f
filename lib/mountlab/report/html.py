"""Pieces of a page: tables, lists, boxes, figures. All text is escaped, by markupsafe; only `Html` passes as it is.

What comes from a box, a log or a YAML file is text, whatever it looks like.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import unescape
from typing import TYPE_CHECKING, Any, Literal

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from mountlab.analysis.trust import Grade
from mountlab.core import numbers
from mountlab.core.frames import pd
from mountlab.core.groups import by_key
from mountlab.core.text import capital, visible
from mountlab.wording.caveats import SEVERITY_WORDS, CaveatGroup

if TYPE_CHECKING:  # pages without plots need no Matplotlib
    from mountlab.plots import Plot

_NOT_IN_ADDRESS = re.compile(r"[^\w.~,:;/()\[\]|*!$@=+-]+", re.ASCII)
"""What an address holds only as the hexadecimal figures of its bytes (RFC 3986), or would be stripped of."""
_IN_BACKTICKS = re.compile(r"`([^`]+)`")
_MOST_SUBJECTS, _MOST_MESSAGES = 6, 2
"""A caveat about more cells than these lists them behind a summary; of no more messages than these, each stands with
its cells."""

_RULES = (
    ".caveat{max-width:48rem;margin:.5rem 0;padding:.25rem .875rem;background:var(--jp-layout-color2);"
    "border-left:4px solid var(--jp-border-color1)}",
    ".caveat.warning{border-color:var(--jp-warn-color1)}",
    ".caveat.error{border-color:var(--jp-error-color1)}",
    ".caveat p{margin:.25rem 0}",
    ".caveat-head{font-weight:600}",
    ".caveat-head .badge::after{content:':'}",
    ".columns{display:flex;flex-wrap:wrap;gap:1rem 2rem}",
    ".column{min-width:0;flex:1 1 26rem}",
    ".number{text-align:right}",
    ".group th{text-align:left}",
    ".scroll{overflow-x:auto}",
    ".scroll :is(th,td):where(:not(.number,.interval)){text-align:left}",
    ".scroll td.code code{white-space:pre-wrap;overflow-wrap:anywhere}",
    ":is(.facts,.notes){margin:.5rem 0}",
    ":is(.facts,.notes) div{display:flex;gap:1rem}",
    ":is(.facts,.notes) :is(dt,dd){float:none;width:auto;margin:0}",
    ":is(.facts,.notes) dt{flex:0 0 12rem;font-weight:600}",
    ":is(.facts,.notes) dd{min-width:0;overflow-wrap:anywhere}",
    ".frame{color:var(--jp-ui-font-color2)}",
)
JUPYTERLAB_STYLE = f"<style>{''.join(f'.jp-OutputArea {rule}' for rule in _RULES)}</style>"
"""Looks of the same pieces in JupyterLab, in its own colours. A report has a style sheet, and leaves this out."""


class Html(Markup):
    """Finished HTML. It shows itself in a notebook. Text that `format`, `join` and `+` put into it is made visible, and
    escaped."""

    __slots__ = ()

    @classmethod
    def escape(cls, s: Any, /) -> Html:
        """Return what is not HTML already as HTML."""
        return cls(escape(_shown(s)))

    def _repr_html_(self) -> str:
        return JUPYTERLAB_STYLE + str(self)

    def __repr__(self) -> str:
        """The words without the tags, for a terminal."""
        return words_of(self)


class Section(Html):
    """A part of a report, and the frame behind it. A notebook names the frame below the part; a page does not."""

    _make: Callable[[], pd.DataFrame] | None = None

    @classmethod
    def of(cls, part: Html, make: Callable[[], pd.DataFrame]) -> Section:
        """Return a part with its frame, which is made when it is asked for."""
        section = cls(part)
        section._make = make
        return section

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Return the figures that the part shows: tidy, in base units, with every digit. Text that was added to a part
        has none."""
        return self._make() if self._make else pd.DataFrame()

    @property
    def _size(self) -> str:
        """'15 rows × 9 columns'; '' where the part has no data."""
        if self.startswith(NOTHING):
            return ""
        rows, columns = self.frame.shape
        return f"{numbers.counted(rows, 'row')} × {numbers.counted(columns, 'column')}" if rows else ""

    def _repr_html_(self) -> str:
        size = self._size
        return super()._repr_html_() + (_FRAME_NAME.format(size) if size else "")

    def __repr__(self) -> str:
        size = self._size
        return super().__repr__() + (f"\nframe: {size}: .frame" if size else "")


_FRAME_NAME = '<p class="frame">frame: {}: <code>.frame</code></p>'


def on_page(output: str) -> str:
    """Return what a cell shows as a page has it: without the looks of JupyterLab and the names of frames."""
    return re.sub(_FRAME_NAME.format(".*?"), "", output.replace(JUPYTERLAB_STYLE, ""))


Text = str
"""Text, which is escaped, or `Html`."""


def _shown(value: object) -> object:
    """Return what Jinja puts into a piece: text that is not ours already is made visible, and then escaped."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


ENVIRONMENT = Environment(
    autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined, finalize=_shown
)
"""How pieces are made: all text is escaped, and no name may be forgotten."""

_PIECES: Any = ENVIRONMENT.from_string(
    """
{%- macro class_of(kind) %}{% if kind %} class="{{ kind }}"{% endif %}{% endmacro %}

{%- macro figure(title, keys, drawing) %}
<figure class="plot"><figcaption>{{ title }}</figcaption>
{% if keys %}<p class="legend">{% for key in keys %}{{ key }} {% endfor %}</p>{% endif %}
{{ drawing }}</figure>
{% endmacro %}

{%- macro stacked(above, below) %}
{{ above }}<br><small>{{ below }}</small>
{%- endmacro %}

{%- macro table(caption, label, head, groups) %}
<div class="scroll" role="region" aria-label="{{ label }}" tabindex="0"><table><caption>{{ caption }}</caption>
<thead><tr>
{% for column in head %}<th scope="col"{{ class_of(column.kind) }}>{{ column.heading }}</th>{% endfor %}
</tr></thead>
{% for group in groups %}
<tbody>
{% if group.heading %}
<tr class="group"><th scope="rowgroup" colspan="{{ head | length }}">{{ group.heading }}</th></tr>
{% endif %}
{% for row in group.rows %}<tr>{% for cell in row %}
{% if loop.first %}
<th scope="row"{{ class_of(head[0].kind) }}>{{ cell }}</th>
{%- else %}
<td{{ class_of(head[loop.index0].kind) }}>
{%- if head[loop.index0].kind == "code" and cell %}<code>{{ cell }}</code>{% else %}{{ cell }}{% endif %}</td>
{%- endif %}
{% endfor %}</tr>
{% endfor %}
</tbody>
{% endfor %}
</table></div>
{% endmacro %}

{%- macro caveat(severity, badge, heading, body) %}
<div class="caveat {{ severity }}">
<p class="caveat-head"><span class="badge">{{ badge }}</span> {{ heading }}</p>{{ body }}</div>
{% endmacro %}

{%- macro narrowed(label, body) %}
<div class="narrowed"><p class="narrow" hidden><label>{{ label }} <input type="search"></label>
<span role="status"></span></p>
{{ body }}</div>
{% endmacro %}

"""
).module
"""The pieces of more than a line, a macro each."""


def _made(macro: str, *arguments: object) -> Html:
    return Html(getattr(_PIECES, macro)(*arguments))


def words_of(text: Text) -> str:
    """Plain words: the tags taken out of HTML, text as it is."""
    if not isinstance(text, Markup):
        return text
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", re.sub(r"</?code>", "", text))).split())


def joined(*parts: Text) -> Html:
    """Return parts below each other, without the empty ones."""
    return Html().join(Html("{}\n").format(part) for part in parts if part)


def paragraph(text: Text, *, kind: str = "") -> Html:
    """Return a paragraph; `kind` is the name of its style. What stands in backticks is code, as in items and notes."""
    body = _with_code(text)
    return Html('<p class="{}">{}</p>').format(kind, body) if kind else Html("<p>{}</p>").format(body)


def _with_code(text: Text) -> Html:
    """Return plain text with what stands in backticks as code; HTML as it is."""
    return text if isinstance(text, Html) else Html(_IN_BACKTICKS.sub(r"<code>\1</code>", str(Html.escape(text))))


NOTHING = '<p class="nothing">'
"""What `nothing` begins with: a page leaves such parts out."""


def nothing(why: str) -> Html:
    """Return the reason why a part has no data. On a page it goes away together with its heading, and without a word
    where `why` is empty."""
    return paragraph(why, kind="nothing") if why else Html(f"{NOTHING}</p>")


def box(kind: str, *parts: Text) -> Html:
    """Return parts in a box of a style."""
    return Html('<div class="{}">{}</div>').format(kind, joined(*parts))


def heading(text: Text, *, level: int) -> Html:
    """Return a heading, 1 for the page's own."""
    return Html("<h{level}>{text}</h{level}>").format(level=level, text=text)


def code(text: str) -> Html:
    """Return a word as it is typed or shown by a machine, inside other text."""
    return Html("<code>{}</code>").format(text)


def code_block(text: str) -> Html:
    """Return text as it is, in a box that scrolls inside itself, by keyboard too."""
    return Html('<pre tabindex="0"><code>{}</code></pre>').format(text)


def items(texts: Iterable[Text]) -> Html:
    """Return a list with a bullet for each text."""
    return Html("<ul>{}</ul>").format(Html().join(Html("<li>{}</li>").format(_with_code(text)) for text in texts))


def details(summary: Text, body: Text, *, printed: bool = False) -> Html:
    """Return a part that the reader opens; printed as the reader left it, or with `printed` always."""
    kind = Html(' class="printed"') if printed else Html()
    return Html("<details{}><summary>{}</summary>{}</details>").format(kind, summary, body)


def definitions(pairs: Mapping[str, Text], *, kind: str = "facts") -> Html:
    """Return names and what they are, as a definition list; `facts` are short, and stand in several columns."""
    rows = (Html("<div><dt>{}</dt><dd>{}</dd></div>").format(name, text) for name, text in pairs.items())
    return Html('<dl class="{}">{}</dl>\n').format(kind, Html().join(rows))


def swatch(name: str, colour: str, glyph: str) -> Html:
    """Return a name behind the mark that stands for it in the plots. The colour says nothing that the glyph does
    not."""
    mark = Html('<span class="mark" style="color:{}" aria-hidden="true">{}</span>').format(colour, glyph)
    return Html('<span class="key">{} {}</span>').format(mark, name)


def columns(*parts: Text) -> Html:
    """Return parts side by side where there is room, below each other where there is none."""
    boxes = Html().join(Html('<div class="column">{}</div>').format(part) for part in parts if part)
    return Html('<div class="columns">{}</div>\n').format(boxes)


def link(target: str, text: Text) -> Html:
    """Return a link within the page."""
    return Html('<a href="{}">{}</a>').format(target, text)


def aside(text: Text, more: Text) -> Html:
    """Return text with more of it in small behind it."""
    return Html("{} <small>{}</small>").format(text, more)


def beside(path: str, text: Text) -> Html:
    """Return text that links to a file of the run, once the page stands beside it (`execute.write_report`): a notebook
    may be anywhere, and shows the text alone. `path`: from the directory of the run."""
    return Html('<a data-beside="{}">{}</a>').format(_in_address(path), text)


def with_links_beside(page: str) -> str:
    """Return a page that stands in the directory of its run, with what is `beside` it linked."""
    return str(page).replace('<a data-beside="', '<a href="')


def download(name: str, csv: str, text: Text) -> Html:
    """Return a link that saves a CSV which the page holds itself. Its text stands in the address as it is but for what
    an address cannot hold: so the page can be searched, and what tells a machine be replaced in it."""
    address = f"data:text/csv;charset=utf-8,{_in_address(csv)}"
    return Html('<a download="{}" href="{}">{}</a>').format(name, address, text)


def _in_address(text: str) -> str:
    return _NOT_IN_ADDRESS.sub(
        lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode(errors="surrogateescape")), text
    )


def narrowed(body: Html, *, label: str) -> Html:
    """Return a table with a field above it that leaves the rows with certain words; without a script there is no
    field."""
    return _made("narrowed", label, body)


def labelled(subject: Text, message: Text) -> Html:
    """Return a message after its subject: 'subject: message', or the message alone."""
    return Html("<b>{}</b>: {}").format(subject, _with_code(message)) if subject else _with_code(message)


def figure(title: str, drawing: Html, *, keys: Sequence[Html] = ()) -> Html:
    """Return a drawing below its title and the keys to its marks."""
    return _made("figure", title, keys, drawing)


def plot(drawing: Plot) -> Html:
    """Return a plot below its title and the keys to its marks."""
    keys = [swatch(name, mark.on_page, mark.glyph) for name, mark in drawing.legend.items()]
    return figure(drawing.title, Html(drawing.svg()), keys=keys)


def stacked(above: Text, below: Text) -> Html:
    """Return two lines in one cell, the lower one small."""
    return _made("stacked", above, below)


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Column:
    """A column: numbers are set right with their decimal points below each other, code in a fixed-width type; intervals
    are kept on one line, as is other text of kind `line`; links, which lead nowhere on paper, are not printed."""

    heading: Text
    kind: Literal["", "number", "interval", "code", "line", "links"] = ""


Head = Sequence[Column | Text]
"""The columns of a table; a text is a column of text with that heading."""


def numeric(*headings: Text) -> list[Column]:
    """Columns of numbers."""
    return [Column(heading, "number") for heading in headings]


@dataclass(frozen=True)
class Rows:
    """Rows of a table below a heading of their own, or below none. The first cell of a row is its heading."""

    rows: Sequence[Sequence[Text]]
    heading: Text = ""


def table(head: Head, groups: Sequence[Rows], *, caption: Text) -> Html:
    """Return a table with caption and scoped headings, in a box that scrolls sideways by itself where it is too wide.

    Raises ValueError for a row that has more or fewer cells than there are columns.
    """
    odd = next((row for group in groups for row in group.rows if len(row) != len(head)), None)
    if odd is not None:
        raise ValueError(f"{len(odd)} cells for {numbers.counted(len(head), 'column')}: {odd}")
    columns = [column if isinstance(column, Column) else Column(column) for column in head]
    return _made("table", caption, words_of(caption), columns, _aligned(columns, groups))


def grouped_table(head: Head, rows: Iterable[tuple[Text, Sequence[Text]]], *, caption: Text) -> Html:
    """Return a table whose rows lie below the heading that comes with each."""
    groups = by_key(rows)
    return table(head, [Rows(members, heading) for heading, members in groups.items()], caption=caption)


def _aligned(head: Sequence[Column], groups: Sequence[Rows]) -> list[Rows]:
    """Return the groups with the decimal points of each column of numbers aligned over the whole table."""
    flat = [list(row) for group in groups for row in group.rows]
    for place, column in enumerate(head):
        plain = [row for row in flat if column.kind == "number" and not isinstance(row[place], Markup)]
        for row, text in zip(plain, numbers.align_decimals([row[place] for row in plain]), strict=True):
            row[place] = text
    rows = iter(flat)
    return [Rows([next(rows) for _ in group.rows], group.heading) for group in groups]


# ── caveats ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def caveat_box(group: CaveatGroup) -> Html:
    """Return the caveats of one code: what was seen and what to do, and whom it is about."""
    return _made("caveat", group.severity, SEVERITY_WORDS[group.severity], group.heading, caveat_body(group))


def caveat_body(group: CaveatGroup) -> Html:
    """Return what the caveats of one code say: the message once, and what differs from subject to subject as a
    table."""
    first = group.caveats[0]
    messages = by_key((caveat.message, caveat.subject) for caveat in group.caveats)
    if 1 < len(messages) <= _MOST_MESSAGES < len(group.caveats):
        return joined(*(_said_of(message, subjects) for message, subjects in messages.items()))
    if len(messages) > 1:
        differing = group.differing
        rows = [Rows([[subject or "whole run", text] for subject, text in differing])]
        body = table(["Where", "Seen"], rows, caption=f"{group.heading}: what was seen in each")
        folded = details(f"All {len(differing)}", body) if len(differing) > _MOST_SUBJECTS else body
        return joined(_message(first.subject, first.message), folded)
    return _said_of(first.message, [caveat.subject for caveat in group.caveats])


def _said_of(message: str, about_each: Iterable[str]) -> Html:
    """Return a message, and whom it is about."""
    subjects = list(dict.fromkeys(filter(None, about_each)))
    if len(subjects) == 1:
        return _message(subjects[0], message)
    about: Text = paragraph(", ".join(subjects), kind="subjects") if subjects else ""
    if len(subjects) > _MOST_SUBJECTS:
        about = details(f"All {len(subjects)}", items(subjects))
    return joined(_message("", message), about)


def _message(subject: str, message: str) -> Html:
    is_word = re.match(r"[a-z]{2,} ", message)  # 'n = 3' and 'ext4/dd-write' keep their first letter
    return paragraph(labelled(subject, capital(message) if is_word and not subject else message))


def caveat_notes(groups: Sequence[CaveatGroup]) -> Html:
    """Return groups of caveats as a list: what it is, and beside it what was seen."""
    return definitions({group.heading: caveat_body(group) for group in groups}, kind="notes")


def trust_paragraphs(grade: Grade, lines: Sequence[tuple[str, str]]) -> list[Html]:
    """Return how far an answer can be trusted, with a link to its caveats, and what follows from it, each below its
    name."""
    if not lines:
        return []
    (label, reasons), *others = lines
    alert = paragraph(labelled(link("#Caveats", label), reasons), kind=f"alert {_ALERTS[grade]}")
    return [alert, *(paragraph(labelled(name, text)) for name, text in others)]


_ALERTS: Mapping[Grade, str] = {"low": "error", "medium": "warning", "high": "high"}

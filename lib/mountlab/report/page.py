"""The frame that every page stands in: policy, style, script, header, contents. One file that loads nothing.

The only script that may run is our own (template/page.js), by its SHA-256 in the page's Content-Security-Policy. What
could turn text around or hide it (controls for the direction of writing, characters without a width) is made visible.
"""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from jinja2 import FileSystemLoader

from mountlab.core.text import visible
from mountlab.report.html import ENVIRONMENT, Html, words_of

TEMPLATE = Path(__file__).parent / "template"
"""Frame, style, script, and what nbconvert makes of the cells of a notebook."""
_FEWEST = 3
"""Parts that a page has at least, to have a table of contents."""
_HEADING = re.compile(r"<h([1-6])(?: id=\"[^\"]*\")?>(.*?)</h\1>", re.DOTALL)
_CODE = '<pre class="source"'
_EVIDENCE = 'id="Trials"'
"""Where the short version ends on paper (style.css)."""


@dataclass(frozen=True)
class Heading:
    """A heading with the id by which it is linked to."""

    level: int
    id: str
    text: str


def page(body: Html, *, title: str, kind: str = "report") -> str:
    """Return a whole page. Its headings get ids; those of the second level are its contents where there are three or
    more.

    `kind` stands in the header beside the name of Mountlab.
    """
    with_anchors, headings = with_ids(body)
    top = [Heading(1, heading.id, "Top") for heading in headings[:1] if heading.level == 1]
    parts = [heading for heading in headings if heading.level == 2]
    html = _frame().render(
        title=title,
        kind=kind,
        body=with_anchors,
        contents=[*top, *parts] if len(parts) >= _FEWEST else [],
        code=_CODE in with_anchors,
        short=_EVIDENCE in with_anchors,
        style=Html(_template("style.css")),
        script=Html(_template("page.js")),
        policy=policy(),
    )
    return visible(html)


def with_ids(body: Html) -> tuple[Html, list[Heading]]:
    """Return the body with an id of its own for each heading, and the headings.

    'Every trial' has the id 'Every-trial'; a second one 'Every-trial-2'.
    """
    headings: list[Heading] = []

    def number(match: re.Match[str]) -> str:
        text = words_of(Html(match[2]))
        heading = Heading(int(match[1]), _new_id(text, {earlier.id for earlier in headings}), text)
        headings.append(heading)
        return f'<h{heading.level} id="{heading.id}">{match[2]}</h{heading.level}>'

    return Html(_HEADING.sub(number, body)), headings


def _new_id(text: str, ids: set[str]) -> str:
    """Letters, digits and hyphens; never one that is taken, or that the frame has."""
    name = re.sub(r"[^\w]+", "-", text).strip("-") or "part"
    others = (f"{name}-{number}" for number in range(2, len(ids) + 3))
    return name if name not in ids | {"report"} else next(other for other in others if other not in ids)


def policy() -> str:
    """Return what a page may load and run: nothing but what is in it, and of scripts only ours."""
    ours = b64encode(sha256(_template("page.js").encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{ours}'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


@cache
def _template(name: str) -> str:
    return (TEMPLATE / name).read_text(encoding="utf-8")


@cache
def _frame() -> Any:
    return ENVIRONMENT.overlay(loader=FileSystemLoader(TEMPLATE)).get_template("frame.html.j2")

"""How far the boxes of a batch are, one line a box: for the terminal, for a log and for a notebook. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mountlab.core.text import one_line
from mountlab.report import html
from mountlab.report.html import Column, Html, Rows

_BAR = 10
"""How many characters the bar of a box has."""


@dataclass(frozen=True)
class BoardRow:
    """One box at one moment."""

    box: str
    done: int
    """Items that it is done with, whatever came of them."""
    total: int
    """Of those that are to be done on it, as far as that is known."""
    doing: str = ""
    """The item that runs, or why none does."""
    trials: tuple[int, int] | None = None
    """Of that item: done, and planned."""
    left_s: float | None = None
    """The time that its own items will take; None where it is unknown."""
    failed: int = 0

    @property
    def left(self) -> str:
        """'about 02:10 left'; '' where it is unknown, or nothing is left."""
        return words_left(self.left_s) if self.left_s is not None and self.done < self.total else ""


def lines(rows: Sequence[BoardRow], pools: Mapping[str, int], *, width: int) -> list[str]:
    """Return a line a box, and one for the items that wait for any box of a label; none is longer than the terminal."""
    names = max((len(row.box) for row in rows), default=0)
    texts = []
    for row in rows:
        full = round(_BAR * row.done / row.total) if row.total else 0
        texts.append(f"{row.box:{names}} |{'█' * full}{'·' * (_BAR - full)}| {_row_text(row)}")
    texts += [f"{'':{names}} {text}" for text in _waiting(pools)]
    shown = map(one_line, texts)
    return [text if len(text) < width else f"{text[: max(width - 2, 1)]}…" for text in shown]


def _row_text(row: BoardRow) -> str:
    """'2/4 items, 03-ramdisk-db1, 17/40 trials, about 02:10 left, 1 failed'."""
    trials = f"{row.trials[0]}/{row.trials[1]} trials" if row.trials and row.trials[1] else ""
    failed = f"{row.failed} failed" if row.failed else ""
    return ", ".join(filter(None, (f"{row.done}/{row.total} items", row.doing, trials, row.left, failed)))


def words_left(seconds: float) -> str:
    """'about 02:10 left'."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    return f"about {minutes:02d}:{rest:02d} left"


def _waiting(pools: Mapping[str, int]) -> list[str]:
    return [f"{count} for any box of {label}" for label, count in pools.items() if count]


def table(rows: Sequence[BoardRow], pools: Mapping[str, int], news: Sequence[str]) -> Html:
    """Return a row a box for a notebook, with the last messages."""
    head = [Column("Box"), Column("Items", "number"), Column("Now")]
    head += [Column(name, "number") for name in ("Trials", "Left", "Failed")]
    cells: list[list[html.Text]] = [
        [
            row.box,
            f"{row.done}/{row.total}",
            row.doing,
            "/".join(map(str, row.trials or ())),
            row.left,
            str(row.failed or ""),
        ]
        for row in rows
    ]
    waiting = _waiting(pools)
    return html.joined(
        html.table(head, [Rows(cells)], caption="The boxes of this batch"),
        html.paragraph(f"Waiting: {'; '.join(waiting)}.") if waiting else html.joined(),
        html.items(news) if news else html.joined(),
    )

"""One line a box: what it says, how it is drawn over, and what a log and a notebook have in its place."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mountlab.batch import board, progress
from mountlab.batch.batch_file import Batch, Item, ItemOutcome, parse_batch
from mountlab.batch.board import BoardRow
from mountlab.batch.progress import Page, Screen, Watch
from mountlab.batch.queue import Queue, Task
from mountlab.batch.store import BatchDirectory, held_batch
from mountlab.batch.view import Planned
from mountlab.runner import live

ROWS = [
    BoardRow("db1", done=2, total=4, doing="03-x", trials=(17, 40), left_s=130.0, failed=1),
    BoardRow("rack-12", done=0, total=4, doing="planning"),
    BoardRow("db3", done=3, total=3, left_s=0.0),
    BoardRow("any", done=1, total=1),
]


def test_a_line_a_box() -> None:
    assert board.lines(ROWS, {"rack": 2, "empty": 0}, width=120) == [
        "db1     |█████·····| 2/4 items, 03-x, 17/40 trials, about 02:10 left, 1 failed",
        "rack-12 |··········| 0/4 items, planning",
        "db3     |██████████| 3/3 items",
        "any     |██████████| 1/1 items",
        "        2 for any box of rack",
    ]


def test_no_line_is_longer_than_the_terminal_nor_moves_its_cursor() -> None:
    rows = [BoardRow("db1", done=0, total=1, doing="waits: \x1b[2J" + "x" * 200)]
    (line,) = board.lines(rows, {}, width=60)
    assert len(line) < 60
    assert line.endswith("…")
    assert "\x1b" not in line


def test_the_table_of_a_notebook_says_the_same_and_text_stays_text() -> None:
    text = board.table([*ROWS, BoardRow("<b>x</b>", 0, 1, doing="<script>")], {"rack": 2}, ["worker <w> is gone"])
    assert "17/40" in text
    assert "about 02:10 left" in text
    assert "Waiting: 2 for any box of rack." in text
    assert "worker &lt;w&gt; is gone" in text
    assert "<script>" not in text
    assert "<b>x" not in text


# --- what it is told --------------------------------------------------------------------------------------------------


@pytest.fixture
def made() -> Batch:
    groups = {"g": {"sweep": ["tour", "ramdisk"], "box": ["db1", "db2"]}, "h": {"sweep": "tour", "box": "label:rack"}}
    return parse_batch({"title": "T", "groups": groups}, name="b", where="b.yml")


@pytest.fixture
def directory(made: Batch, results_dir: Path) -> BatchDirectory:
    with held_batch(made, results=results_dir) as found:
        return found


class Seen(Screen):
    """Keeps what would be on the screen."""

    rows: list[BoardRow]

    def draw(self, rows: Any, pools: Any) -> None:
        self.rows = list(rows)
        super().draw(rows, pools)


def outcome(item: Item, state: Any = "done") -> ItemOutcome:
    return ItemOutcome(
        item=item.id, state=state, ended_at="", elapsed_s=5.0, reason="no fio" if state == "failed" else ""
    )


def test_what_is_told_of_each_box_is_in_its_row(
    made: Batch, directory: BatchDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Seen()
    monkeypatch.setattr(progress, "_screen", lambda: screen)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: 0.0))
    queue = _queue(made)
    watch = Watch(queue, ["db1", "db2"], directory, directory.path.parent)
    plans = {task.box: task for task in queue.ready(0.0)}
    for task in plans.values():
        watch.begin(task)
    watch.tick()
    assert [(row.box, row.done, row.total, row.doing) for row in screen.rows] == [
        ("db1", 0, 2, "planning"),
        ("db2", 0, 2, "planning"),
    ]
    queue.ended(plans["db1"])
    watch.end(plans["db1"], None)
    watch.planned("db1", [Planned(item, 30.0, 12) for item in plans["db1"].items])
    (begun,) = queue.ready(0.0)
    watch.begin(begun)
    watch.tick()
    row = screen.rows[0]
    assert (row.total, row.doing, row.trials) == (2, begun.item.id, (0, 12))
    assert row.left_s == 60.0
    queue.ended(begun)
    watch.end(begun, outcome(begun.item, "failed"))
    watch.waits(begun, "somebody is there")
    watch.tick()
    row = screen.rows[0]
    assert (row.done, row.total, row.failed, row.doing) == (1, 2, 1, "waits: somebody is there")


def _queue(made: Batch) -> Queue:
    boxes = {item.id: ["db1", "db2"] if item.pool else [str(item.box)] for item in made.items}
    return Queue(made.items, boxes, {"db1": "m1", "db2": "m2"})


def test_a_screen_is_drawn_over_and_what_is_said_stays_above(capsys: Any) -> None:
    screen = Screen()
    screen.draw(ROWS[:2], {})
    screen.draw(ROWS[:2], {})
    first = capsys.readouterr().err
    assert first.count("\n") == 2, "nothing has changed, and nothing is drawn"
    screen.say("db2 is lost")
    screen.draw(ROWS[:1], {})
    said, drawn = capsys.readouterr().err.split("\x1b[2F\x1b[J")[1:]
    assert said.startswith("db2 is lost\ndb1 ")
    assert drawn.startswith("db1 ")
    assert drawn.count("\n") == 1


def test_a_log_has_a_line_for_what_begins_ends_and_waits(made: Batch, directory: BatchDirectory, capsys: Any) -> None:
    """Standard error is no terminal here."""
    one = made.items[0]
    task = Task((one,), "db1", "m1")
    with Watch(_queue(made), ["db1"], directory, directory.path.parent) as watch:
        watch.begin(task)
        watch.waits(task, "the box is in use")
        watch.waits(task, "the box is in use")
        watch.begin(task)
        watch.end(task, outcome(one))
        watch.cannot("db1", made.items[2], outcome(made.items[2], "failed"))
    assert capsys.readouterr().err.splitlines() == [
        "db1: 01-tour-db1: tour on db1",
        "db1: 01-tour-db1 waits: the box is in use",
        "db1: 01-tour-db1: tour on db1",
        "done: 01-tour-db1 tour on db1",
        "failed: 03-ramdisk-db1 ramdisk on db1: no fio",
    ]


def test_a_notebook_with_a_person_before_it_has_one_table_that_is_drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, picture: Any) -> None:
            shown.append(picture)

    def show(picture: Any, **_: Any) -> Handle:
        shown.append(picture)
        return Handle()

    monkeypatch.setattr(live, "person_is_there", lambda: True)
    monkeypatch.setattr(live, "show", show)
    page = progress._screen()
    assert isinstance(page, Page)
    page.say("db2 is lost")
    page.draw(ROWS[:1], {})
    page.draw(ROWS[:1], {})
    page.draw(ROWS[:2], {})
    assert len(shown) == 2
    assert "db2 is lost" in shown[0]
    assert "rack-12" in shown[1]

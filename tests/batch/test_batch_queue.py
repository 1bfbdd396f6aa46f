"""Which item goes to which box: never two on one machine, in the order of the file, and nobody waits without need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from mountlab.batch.batch_file import Item
from mountlab.batch.queue import HERE, Queue, machine_of, makespan
from mountlab.batch.view import Planned
from mountlab.core.model import Box
from rows import every_row


def item(number: int, box: str | None = None) -> Item:
    return Item(id=f"{number:02d}", group="g", notebook="10_run_sweep", sweep="x" if box else None, box=box)


def queue_of(
    items: Sequence[Item],
    *,
    labelled: Sequence[str] = (),
    at_once: int | None = None,
    machines: Mapping[str, str] | None = None,
    pinned: Mapping[str, str] | None = None,
) -> Queue:
    boxes = {each.id: list(labelled) if each.pool else [each.box] if each.box else [] for each in items}
    names = {name for found in boxes.values() for name in found}
    return Queue(items, boxes, machines or {name: name for name in names}, pinned=pinned, at_once=at_once)


def begun(queue: Queue, now: float = 0.0) -> list[tuple[str, str]]:
    """What may begin, once the boxes have been planned for."""
    tasks = queue.ready(now)
    while any(task.planning for task in tasks):
        for task in tasks:
            assert task.planning, "an item began while the boxes were planned for"
            queue.ended(task)
        tasks = queue.ready(now)
    return [(task.item.id, task.box) for task in tasks]


def end(queue: Queue, name: str) -> None:
    queue.ended(next(task for task in queue.running.values() if task.item.id == name))


def test_each_box_is_planned_for_first_and_then_does_its_items_in_their_order() -> None:
    queue = queue_of([item(1, "a"), item(2, "a"), item(3, "b"), item(4, "a")])
    plans = queue.ready(0.0)
    assert [(task.box, [each.id for each in task.items]) for task in plans] == [
        ("a", ["01", "02", "04"]),
        ("b", ["03"]),
    ]
    queue.ended(plans[1])
    assert [(task.item.id, task.planning) for task in queue.ready(0.0)] == [("03", False)], "b does not wait for a"
    queue.ended(plans[0])
    assert begun(queue) == [("01", "a")]
    end(queue, "01")
    assert begun(queue) == [("02", "a")]


def test_two_boxes_on_one_machine_never_work_at_the_same_time() -> None:
    queue = queue_of([item(1, "local"), item(2, "vm"), item(3, "db")], machines={"local": HERE, "vm": HERE, "db": "d"})
    assert sorted(begun_one_by_one(queue)) == [("01", "local"), ("03", "db")]
    end(queue, "01")
    assert begun(queue) == [("02", "vm")]


def begun_one_by_one(queue: Queue) -> list[tuple[str, str]]:
    """As `begun`, where items begin while other boxes are still planned for."""
    found: list[tuple[str, str]] = []
    while tasks := queue.ready(0.0):
        found += [(task.item.id, task.box) for task in tasks if not task.planning]
        for task in tasks:
            if task.planning:
                queue.ended(task)
    return found


def test_any_box_of_a_label_takes_the_next_item() -> None:
    queue = queue_of([item(n, "label:rack") for n in range(1, 5)], labelled=["r1", "r2", "r3"])
    assert begun(queue) == [("01", "r1"), ("02", "r2"), ("03", "r3")]
    end(queue, "02")
    assert begun(queue) == [("04", "r2")]


def test_an_item_of_a_label_leaves_the_box_alone_that_others_need() -> None:
    queue = queue_of([item(1, "label:rack"), item(2, "r1")], labelled=["r1", "r2"])
    assert begun_one_by_one(queue) == [("01", "r2"), ("02", "r1")]


def test_what_has_a_run_goes_on_where_that_is() -> None:
    items = [item(1, "label:rack"), item(2, "label:rack")]
    queue = queue_of(items, labelled=["r1", "r2"], pinned={"01": "r2"})
    assert begun(queue) == [("01", "r2"), ("02", "r1")]


def test_a_lost_box_is_not_waited_for_by_those_who_may_go_elsewhere() -> None:
    items = [item(1, "label:rack"), item(2, "label:rack"), item(3, "label:rack")]
    queue = queue_of(items, labelled=["r1", "r2"], pinned={"01": "r1"})
    assert begun(queue) == [("01", "r1"), ("02", "r2")]
    task = next(task for task in queue.running.values() if task.box == "r1")
    queue.lost("r1")
    assert queue.elsewhere(task)
    assert begun(queue) == [], "r2 is busy, and r1 is lost"
    end(queue, "02")
    assert begun(queue) == [("01", "r2")], "not on the box that has its run any more"
    task = next(iter(queue.running.values()))
    assert not queue.elsewhere(task), "that was the last one"
    queue.ended(task)
    assert begun(queue) == [("03", "r2")]


def test_an_item_without_a_box_waits_for_all_before_it_and_for_nobody_else() -> None:
    queue = queue_of([item(1, "a"), item(2), item(3, "b"), item(4)])
    assert begun(queue) == [("01", "a"), ("03", "b")]
    end(queue, "03")
    assert begun(queue) == []
    end(queue, "01")
    assert begun(queue) == [("02", "")]
    end(queue, "02")
    assert begun(queue) == [("04", "")]


def test_an_item_that_is_to_be_tried_later_holds_its_machine_and_no_other() -> None:
    queue = queue_of([item(1, "a"), item(2, "a"), item(3, "b")])
    assert begun(queue) == [("01", "a"), ("03", "b")]
    queue.again(next(task for task in queue.running.values() if task.box == "a"), at=10.0)
    assert begun(queue, 9.0) == [], "02 does not overtake 01"
    assert begun(queue, 10.0) == [("01", "a")]
    queue = queue_of([item(1, "a"), item(2, "b")])
    queue.again(next(task for task in queue.ready(0.0) if task.box == "a"), at=5.0)
    assert queue.ready(4.0) == [], "nor is anything done on a box whose plan is to be tried later"
    assert [(task.box, task.planning) for task in queue.ready(5.0)] == [("a", True)]


def test_what_its_box_cannot_do_by_the_plan_is_not_given_out() -> None:
    items = [item(1, "a"), item(2, "a")]
    queue = queue_of(items)
    (plan,) = queue.ready(0.0)
    queue.ended(plan)
    hopeless = queue.planned([Planned(items[0], problem="no fio", error="PlanError"), Planned(items[1])])
    assert [each.item.id for each in hopeless] == ["01"]
    assert begun(queue) == [("02", "a")]


def test_an_item_with_clients_has_their_machines_too_and_is_not_overtaken() -> None:
    items = [item(1, "b"), item(2, "a"), item(3, "a"), item(4, "c"), item(5, "c")]
    boxes = {each.id: [str(each.box)] for each in items}
    queue = Queue(items, boxes, {name: name for name in "abc"}, clients={"02": ["b"], "04": ["a"]})
    assert begun(queue) == [("01", "b")], "02 waits for b, 03 for 02, and 04 for both"
    end(queue, "01")
    assert begun(queue) == [("02", "a")]
    assert next(iter(queue.running.values())).machines == ("a", "b")
    end(queue, "02")
    assert begun(queue) == [("03", "a")]
    end(queue, "03")
    assert begun(queue) == [("04", "c")]
    end(queue, "04")
    assert begun(queue) == [("05", "c")]


def test_at_most_so_many_at_once() -> None:
    queue = queue_of([item(1, "a"), item(2, "b"), item(3, "c")], at_once=2)
    assert [task.box for task in queue.ready(0.0)] == ["a", "b"]
    assert queue.ready(0.0) == []


@every_row("seed", range(40))
def test_every_item_is_done_once_and_never_two_on_one_machine(seed: int) -> None:
    """Any batch, any order of ends, and boxes that are lost or busy in between."""
    random = Random(seed)
    boxes = [f"b{n}" for n in range(random.randint(1, 5))]
    kinds = [*boxes, "label:rack", None]
    items = [item(n, random.choice(kinds)) for n in range(1, random.randint(2, 15))]
    machines = {box: random.choice(["m1", "m2", "m3"]) for box in boxes}
    queue = queue_of(items, labelled=boxes, machines=machines, at_once=random.choice([None, 1, 2]))
    done: list[str] = []
    now = 0.0
    while queue.pending:
        now += 1.0
        queue.ready(now)
        busy = [task.machine for task in queue.running.values() if task.machine]
        assert len(busy) == len(set(busy))
        if queue.running:
            done += ended_somehow(queue, random, now)
        assert now < 1000
    assert sorted(done) == [each.id for each in items]


def ended_somehow(queue: Queue, random: Random, now: float) -> list[str]:
    task = random.choice(list(queue.running.values()))
    if not task.planning and task.item.pool and random.random() < 0.3 and queue.elsewhere(task):
        return []
    if random.random() < 0.2:
        queue.again(task, at=now + 3.0)
        return []
    queue.ended(task)
    return [] if task.planning else [task.item.id]


def test_how_long_it_takes_is_that_of_the_boxes_at_the_same_time() -> None:
    items = [item(1, "a"), item(2, "a"), item(3, "b"), item(4, "label:r"), item(5)]
    queue = queue_of(items, labelled=["a", "b"])
    assert makespan(queue, {"01": 10.0, "02": 10.0, "03": 5.0, "04": 20.0, "05": 1.0}) == 26.0
    assert makespan(queue_of([item(1, "a"), item(2, "a")]), {"01": 3.0, "02": 4.0}) == 7.0


@every_row(
    ("box", "machine"),
    [
        (Box(name="a", host="db1"), "db1:22"), (Box(name="a", host="root@DB1"), "db1:22"),
        (Box(name="a", host="db1", port=2222), "db1:2222"), (Box(name="a", host="", embedded="loopback"), HERE),
        (Box(name="a", host="", embedded="vm"), HERE),
    ],
)  # fmt: skip
def test_what_counts_as_one_machine(box: Box, machine: str) -> None:
    assert machine_of(box) == machine
    assert machine_of(replace(box, name="another", mount_root="/srv/other")) == machine

"""Which item of a batch may go to which box now: never two on one machine, in the order of the file on each. Pure.

A box is one machine, whatever file names it; the boxes that Mountlab starts by itself are all the machine on which they
are started. An item with a label takes whichever box of that label is free. One without a box reads what the items
before it have measured, and waits for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mountlab.batch.batch_file import Item
from mountlab.batch.view import Planned
from mountlab.core.groups import by_key
from mountlab.core.model import Box

HERE = "this machine"
"""The machine of every box that is started where its item is done."""
DEFAULT_PORT = 22


def machine_of(box: Box) -> str:
    """Return what two boxes share that would measure each other: host and port, or the machine that starts them."""
    if box.embedded is not None:
        return HERE
    return f"{box.host.rpartition('@')[2].lower()}:{box.port or DEFAULT_PORT}"


@dataclass(frozen=True)
class Task:
    """Something that one box is to do now: an item, or to be asked what it would do for several (`planning`)."""

    items: tuple[Item, ...]
    box: str
    """'' for an item that needs none."""
    machine: str
    others: tuple[str, ...] = ()
    """The machines of its clients, which drive the same file system."""
    planning: bool = False

    @property
    def machines(self) -> tuple[str, ...]:
        """All machines that the task holds alone meanwhile."""
        return tuple(sorted({self.machine, *self.others} - {""}))

    @property
    def item(self) -> Item:
        """The one that is to be done; of a plan the first."""
        return self.items[0]

    @property
    def key(self) -> str:
        """Names it among all that are given out at one time."""
        return f"{'plan' if self.planning else 'do'}-{self.item.id}-{self.box or 'no-box'}"


class Queue:
    """The items that are still to be done, those that are being done, and what each may be done on."""

    def __init__(
        self,
        items: Sequence[Item],
        boxes: Mapping[str, Sequence[str]],
        machines: Mapping[str, str],
        *,
        pinned: Mapping[str, str] | None = None,
        clients: Mapping[str, Sequence[str]] | None = None,
        at_once: int | None = None,
    ) -> None:
        """`boxes`: item to the boxes that may do it, none for one without a box. `machines`: box to its machine.
        `pinned`: item to the box that has its run, before all others. `clients`: item to the boxes that it needs
        besides. `at_once`: so many tasks at a time."""
        self.waiting = list(items)
        self.running: dict[str, Task] = {}
        """By their keys."""
        self._number = {item.id: number for number, item in enumerate(items)}
        self._boxes = {item.id: list(boxes.get(item.id, ())) for item in items}
        self._alone = {item.id for item in items if not self._boxes[item.id]}
        self._machines, self._pinned, self._at_once = machines, dict(pinned or {}), at_once
        self._others = {name: tuple(machines[box] for box in used) for name, used in (clients or {}).items()}
        self._not_before: dict[str, float] = {}
        """By the id of an item, or by the box that is to be planned for."""
        self._unplanned = by_key(
            (self._boxes[item.id][0], item) for item in items if not item.pool and item.id not in self._alone
        )

    @property
    def pending(self) -> bool:
        """Whether anything is left to be done, or is being done."""
        return bool(self.waiting or self.running)

    # ── what may begin ───────────────────────────────────────────────────────────────────────────────────────────────

    def ready(self, now: float) -> list[Task]:
        """Return what may begin at this moment, which counts as running from here on."""
        taken = {machine for task in self.running.values() for machine in task.machines}
        room = self._at_once - len(self.running) if self._at_once else len(self._number) + len(self._machines)
        tasks: list[Task] = []
        for task in self._candidates(taken, now):
            if len(tasks) >= room:
                break
            tasks.append(task)
            self.running[task.key] = task
        for task in tasks:
            if task.planning:
                del self._unplanned[task.box]
            else:
                self.waiting.remove(task.item)
        return tasks

    def _candidates(self, taken: set[str], now: float) -> Iterator[Task]:
        """Yield what may begin. `taken`: the machines that are busy. One that an earlier item waits for is not given
        to a later one."""
        for box, items in self._unplanned.items():
            if self._machines[box] not in taken:
                taken.add(self._machines[box])
                if self._not_before.get(box, 0.0) <= now:
                    yield Task(tuple(items), box, self._machines[box], planning=True)
        first = min(
            (self._number[item.id] for item in (*self.waiting, *(task.item for task in self.running.values()))),
            default=0,
        )
        for item in self.waiting:
            late = self._not_before.get(item.id, 0.0) > now
            if item.id in self._alone:
                if not late and self._number[item.id] == first:
                    yield Task((item,), "", "")
                continue
            boxes = self._boxes[item.id]
            free = self._free_box(item, taken) if len(boxes) > 1 else boxes[0]
            if free is not None:
                task = Task((item,), free, self._machines[free], self._others.get(item.id, ()))
                begins = not late and not taken.intersection(task.machines)
                taken.update(task.machines)
                if begins:
                    yield task

    def _free_box(self, item: Item, taken: set[str]) -> str | None:
        """Return the free box of an item that fewest other items wait for; None where all are busy."""
        boxes, pinned = self._boxes[item.id], self._pinned.get(item.id)
        wanted = Counter(self._boxes[other.id][0] for other in self.waiting if len(self._boxes[other.id]) == 1)
        usable = [pinned] if pinned in boxes else boxes
        free = [box for box in usable if box and self._machines[box] not in taken]
        return min(free, key=lambda box: wanted[box], default=None)

    # ── how it ended ─────────────────────────────────────────────────────────────────────────────────────────────────

    def ended(self, task: Task) -> None:
        """Take a task off the running ones, whatever came of it."""
        del self.running[task.key]

    def planned(self, plans: Iterable[Planned]) -> list[Planned]:
        """Take out the items that their box cannot do, and return their plans."""
        hopeless = [plan for plan in plans if plan.problem]
        names = {plan.item.id for plan in hopeless}
        self.waiting = [item for item in self.waiting if item.id not in names]
        return hopeless

    def again(self, task: Task, *, at: float = 0.0) -> None:
        """Queue a task that ended without an outcome once more, not before a moment of the clock of `ready`."""
        del self.running[task.key]
        if task.planning:
            self._unplanned[task.box] = list(task.items)
            self._not_before[task.box] = at
            return
        self._not_before[task.item.id] = at
        self.waiting = sorted([*self.waiting, task.item], key=lambda item: self._number[item.id])

    def elsewhere(self, task: Task) -> bool:
        """Queue a task that its box cannot do for another one. Return False where there is none: it still counts as
        running."""
        boxes = self._boxes[task.item.id]
        boxes.remove(task.box)
        if not boxes:
            return False
        self.again(task)
        return True

    def lost(self, box: str) -> None:
        """Give up a box: items that may go to others do not wait for it any more."""
        for item in self.waiting:
            boxes = self._boxes[item.id]
            if item.pool and box in boxes and len(boxes) > 1:
                boxes.remove(box)

    def of_box(self, box: str) -> int:
        """Return how many items wait for this very box."""
        return sum(self._boxes[item.id] == [box] and not item.pool for item in self.waiting)


def makespan(queue: Queue, expected_s: Mapping[str, float]) -> float:
    """Return how long all of it takes, where each item takes what is expected of it and boxes are planned for in no
    time."""
    now = 0.0
    ends: dict[str, float] = {}
    while queue.pending:
        ends |= {task.key: now + (0.0 if task.planning else expected_s[task.item.id]) for task in queue.ready(now)}
        key = min(ends, key=lambda running: ends[running])
        now = ends.pop(key)
        queue.ended(queue.running[key])
    return now

"""Parts of the runner by themselves: steps and their undo, the states of cells, the uses of mounts, interruptions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest
from mountlab.analysis.stopping import Decision
from mountlab.box.connection import Completed
from mountlab.core.cell_stop import CellStop
from mountlab.core.errors import BoxRestarted, BoxTimeout, CommandError, UnsafeError
from mountlab.core.model import Step
from mountlab.filesystems.guard import REFUSED
from mountlab.runner import cell_state
from mountlab.runner.cell_state import CellStates
from mountlab.runner.interruption import Interruption
from mountlab.runner.steps import StepRunner
from mountlab.runner.sweep_runner import run_sweep
from mountlab.runner.trial_executor import MountUses
from mountlab.sweep.plan import PlannedBlock
from rows import every_row
from runner.test_sweep_runner import FACTS, Memory, ScriptedBox, plan
from sweeps import Silent, sweep


class Box(ScriptedBox):
    """A scripted box that keeps whole commands. `refuses`: it refuses all of them, as a guard does."""

    refuses = False

    def run(self, argv: Sequence[str], **more: Any) -> Completed:
        self.argvs = [*getattr(self, "argvs", ()), tuple(argv)]
        done = super().run(argv, **more)
        return Completed(done.argv, 1, b"", f"{REFUSED}: x\n".encode(), 0.0) if self.refuses else done


def steps(box: Box) -> StepRunner:
    return StepRunner(box, "R", privileged=True, sleep=lambda seconds: None)


# --- steps ------------------------------------------------------------------------------------------------------------


def test_what_a_step_printed_stands_in_later_steps_and_in_its_undo_and_never_in_a_script() -> None:
    box, names = Box(), dict[str, str]()
    attach = Step(argv=("losetup", "--find"), why="", binds="device", undo=("losetup", "--detach", "{device}"))
    script = "echo\n{device}"
    with ExitStack() as undo:
        steps(box).do(attach, undo, names)
        steps(box).do(Step(argv=("sh", "-c", script, "timed.sh", "mkfs", "{device}"), why=""), undo, names)
    assert box.argvs == [
        ("losetup", "--find"),
        ("sh", "-c", script, "timed.sh", "mkfs", "/dev/loop9"),
        ("losetup", "--detach", "/dev/loop9"),
    ]


def test_what_a_step_that_never_ends_has_started_is_ended() -> None:
    box = Box(mount=[BoxTimeout("no answer in 180 s")])
    with pytest.raises(BoxTimeout):
        steps(box).do(Step(argv=("mount", "x"), why=""), ExitStack())
    assert box.calls == ["mount", "kill"]


@every_row(
    ("argv", "rights", "released"),
    [
        (("umount", "/m"), "root", True),
        (("rmdir", "/m"), "none", True),
        (("umount", "/m"), "helper", False),
        (("losetup", "--detach", "/dev/loop9"), "root", False),
        (("rm", "/i.img"), "root", False),
    ],
)
def test_only_mounts_and_their_directories_are_released_and_by_no_helper(
    argv: tuple[str, ...], rights: Any, released: bool
) -> None:
    box = Box()
    box.rights = rights
    assert steps(box).release(argv, last=False) is released
    assert box.calls == ["free_mount"] * released


def test_a_mount_is_left_to_the_kernel_at_the_last_try_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mountlab.runner.steps.UNDO_TRIES", 3)
    box = Box(umount=[32] * 3, free_mount=[1, 1, 0])
    steps(box).undo(("umount", "/m"))
    assert [argv[-1] for argv in box.argvs if "free_mount.sh" in argv] == ["", "", "lazily"]


@every_row(
    ("argv", "guard", "kind"),
    [
        (("sh", "-c", "x", "image.sh", "/i.img"), False, UnsafeError),
        (("sh", "-c", "x", "look.sh"), True, UnsafeError),
        (("mkfs", "x"), False, CommandError),
    ],
)
def test_a_refusal_is_unsafe_where_a_guard_or_an_image_speaks(
    argv: tuple[str, ...], guard: bool, kind: type[Exception]
) -> None:
    box = Box()
    box.refuses = True
    with pytest.raises((UnsafeError, CommandError)) as caught:
        steps(box).do(Step(argv=argv, why="it", guard=guard), ExitStack())
    assert caught.type is kind


def test_after_a_restart_the_roots_of_the_run_are_cleaned() -> None:
    box = Box(trial=[BoxRestarted("the box was restarted")])
    run_sweep(plan({"tmpfs": {"type": "tmpfs", "size": "64MiB"}}), box, Memory(), Silent())
    (clean,) = (argv for argv in box.argvs if argv[3:5] == ("mountlab-clean", "clean"))
    assert clean[7:9] == FACTS.storage.roots


# --- cells and mounts -------------------------------------------------------------------------------------------------


class Rule:
    """Ends one cell before each block, and keeps what it was asked."""

    fewest_blocks = 2

    def __init__(self) -> None:
        self.asked: list[tuple[int, set[str]]] = []

    def decide(self, *of: Any, before: int, stopped: dict[str, CellStop]) -> Decision:
        self.asked.append((before, set(stopped)))
        cell = f"c{before}"
        stop = CellStop(cell=cell, reason="precise", blocks=before - 1, n=1, half_width=0.01, metric="elapsed")
        return Decision({cell: stop}, {f"r{before}": float(before)})


def test_a_stop_rule_is_applied_once_before_each_block_behind_the_fewest(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = Rule()
    monkeypatch.setattr(cell_state, "stop_rule", lambda swept: rule)
    journal: Any = SimpleNamespace(measured=lambda swept: ([], None), has=lambda trial_id: trial_id == "done")
    states = CellStates(sweep().sweep, journal)

    def stops(number: int, *, diagnostic: bool = False) -> list[str]:
        block = PlannedBlock(number=number, diagnostic=diagnostic, mount_groups=())
        return [stop.cell for stop in states.decide_stops(block)]

    assert [stops(number) for number in (1, 2, 3, 3, 2, 4)] == [[], [], ["c3"], [], [], ["c4"]]
    assert stops(9, diagnostic=True) == []
    assert rule.asked == [(3, set()), (4, {"c3"})]
    assert states.rates == {"r4": 4.0}, "of cells that still search"

    def wants(cell: str, *, trial_id: str = "t", diagnostic: bool = False) -> bool:
        planned: Any = SimpleNamespace(cell=SimpleNamespace(id=cell), trial_id=trial_id, diagnostic=diagnostic)
        return states.wants(planned)

    assert (wants("c1"), wants("c3"), wants("c3", diagnostic=True)) == (True, False, True)
    assert not wants("c1", trial_id="done")


def test_a_file_system_that_is_made_again_was_never_used() -> None:
    uses = MountUses({"m", "n"}, {("m", "a"), ("n", "a")})
    uses.forget("m")
    assert (uses.used, uses.preconditioned) == ({"n"}, {("n", "a")})
    uses.clear()
    assert (uses.used, uses.preconditioned) == (set(), set())


# --- interruptions ----------------------------------------------------------------------------------------------------


def test_signals_interrupt_a_trial_once_and_nothing_else() -> None:
    early, late = Interruption(), Interruption()
    with late.at_once():
        late.check()
    for one in (early, late):
        one.handle(2, None)
        assert one.requested
        with pytest.raises(KeyboardInterrupt):
            one.check()
        with pytest.raises(KeyboardInterrupt), one.at_once():
            pytest.fail("a trial was begun")
    during = Interruption()

    def trial() -> None:
        with during.at_once():
            try:
                during.handle(2, None)
            finally:
                during.handle(2, None)

    with pytest.raises(KeyboardInterrupt) as caught:
        trial()
    assert caught.value.__context__ is None, "the second one does not cut off what the first has begun"

"""Run steps on a box, and undo them. Processes of the run that keep a mount busy are killed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field

from mountlab.box import roots
from mountlab.box.connection import BoxConnection, Completed, command_text
from mountlab.box.leftovers import kill_run
from mountlab.core.errors import KERNEL, BoxRestarted, BoxTimeout, CommandError, LeftoverError, UnsafeError
from mountlab.core.model import Box, Step
from mountlab.core.shell import script_argv
from mountlab.filesystems.backing import DETACH
from mountlab.filesystems.directory import OPEN
from mountlab.filesystems.evidence import parts_by_heading
from mountlab.filesystems.guard import GUARD, REFUSED, formatted, permitting, read_refusal
from mountlab.filesystems.making import TIMED, RanCommand, ran_command

STEP_TIMEOUT_S = 1800.0
"""mkfs on a large disk may take long; everything else is over in milliseconds."""
UNDO_TRIES = 6
RELEASABLE = ("umount", "rmdir")
"""Commands that undo a mount and its directory: free_mount.sh removes what a tool has put in their way."""
IMAGE = "image.sh"
"""A script below mountlab/filesystems by the name that it is run under."""


@dataclass
class StepRunner:
    """Runs the steps of one run on one box."""

    box: BoxConnection
    run_id: str
    privileged: bool
    sleep: Callable[[float], None] = time.sleep
    say: Callable[[str], None] = field(default=lambda text: None)
    """Reports to the person who runs it."""
    interruptible: Callable[[], AbstractContextManager[None]] = nullcontext
    """Within it a signal ends a step that may take hours."""
    cut_off: set[str] = field(default_factory=set)
    """Scratch devices that were being formatted when the box was restarted."""

    def execute(self, argv: tuple[str, ...], timeout_s: float = STEP_TIMEOUT_S) -> Completed:
        return self.box.run(argv, timeout_s=timeout_s, root=self.privileged)

    def do(
        self,
        step: Step,
        undo: ExitStack,
        values: dict[str, str] | None = None,
        commands: list[RanCommand] | None = None,
    ) -> Completed:
        """Run one step and register its undo. `values`: name to what an earlier step printed; `commands` takes the
        command. Raises CommandError, or UnsafeError for a guard that refuses."""
        values = values if values is not None else {}
        argv = permitting(_bind(step.argv, values), self.cut_off)
        try:
            with self.interruptible() if step.timeout_s else nullcontext():
                completed = self.execute(argv, step.timeout_s or STEP_TIMEOUT_S)
        except (BoxTimeout, KeyboardInterrupt):
            kill_run(self.box, self.run_id)
            raise
        except BoxRestarted:
            self.cut_off |= {*formatted(argv)}
            raise
        self.cut_off -= {*formatted(argv)} if completed.ok else set()
        if commands is not None and (command := ran_command(step, argv)):
            commands.append(command)
        if not completed.ok:
            if OPEN in argv and completed.error_text.startswith(REFUSED):
                raise roots.refusal(completed.error_text, self.box.box.name, mount_root=argv[-3].rpartition("/")[0])
            raise (
                _refusal(self.box.box, step, argv, completed)
                if _is_refusal(step, completed)
                else _failure(step, argv, completed)
            )
        for sentence in roots.sharing_notices(completed.text, self.box.box.name) if OPEN in argv else ():
            self.say(sentence)
        if step.binds:
            values[step.binds] = completed.text.strip()
        if step.undo:
            undo.callback(self.undo, _bind(step.undo, values))
        return completed

    def undo(self, argv: tuple[str, ...]) -> None:
        """Undo one step; what keeps a mount busy is killed if it is ours, and released if a tool made it. Raises
        LeftoverError."""
        for attempt in range(UNDO_TRIES):
            completed = self.execute(argv)
            if completed.ok:
                for path in roots.read_kept_paths(completed.text):
                    self.say(f"{path} on box {self.box.box.name} is not Mountlab's: it stays")
                for line in completed.text.splitlines() if DETACH in argv else ():
                    self.say(f"box {self.box.box.name}: {line}")
                return
            kill_run(self.box, self.run_id)
            if self.release(argv, last=attempt == UNDO_TRIES - 1):
                return
            self.sleep(0.05 * 2**attempt)
        raise LeftoverError(
            f"could not undo: {command_text(argv)}",
            where=f"box {self.box.box.name}",
            evidence=completed.error_text,
            next_step=f"mountlab box clean {self.box.box.name}",
        )

    def release(self, argv: tuple[str, ...], *, last: bool) -> bool:
        """Remove what a tool has put in the way of an undo, and return whether the undo is done. With `last`, the
        kernel undoes the mount as soon as nothing holds it any more."""
        if argv[0] not in RELEASABLE or self.box.rights == "helper":
            return False
        completed = self.execute(script_argv("free_mount.sh", *argv, "lazily" if last else ""))
        for line in completed.text.splitlines():
            self.say(line)
        return completed.ok


def _bind(argv: tuple[str, ...], values: Mapping[str, str]) -> tuple[str, ...]:
    """Put what earlier steps printed in the place of '{name}'; scripts stay as they are."""
    return tuple(word if "\n" in word else _fill(word, values) for word in argv)


def _fill(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", value)
    return word


def _is_refusal(step: Step, completed: Completed) -> bool:
    """Return whether a guard refused: as a step of its own, before the command that it protects, or an image file."""
    return step.guard or (bool({GUARD, IMAGE} & {*step.argv}) and completed.error_text.startswith(REFUSED))


def _refusal(box: Box, step: Step, argv: tuple[str, ...], completed: Completed) -> UnsafeError:
    refusal = read_refusal(completed.text + completed.error_text)
    next_step = "look at it yourself; if nothing in it is needed, empty it yourself and run again"
    if GUARD in argv:
        next_step = refusal.next_step(box, argv[argv.index(GUARD) + 1])
    return UnsafeError(
        f"refused to go on: {step.why}",
        where=command_text(argv),
        got=refusal.reason,
        allowed="a device that was claimed for Mountlab, a directory that Mountlab made",
        next_step=next_step,
    )


def _failure(step: Step, argv: tuple[str, ...], completed: Completed) -> CommandError:
    """Return an error with the command's output and the kernel's log of that time: mount(8) prints "wrong fs type,
    bad option, bad superblock" for most causes."""
    logged = parts_by_heading(completed.text).get("kernel", "") if TIMED in step.argv else ""
    output = (completed.error_text or ("" if TIMED in step.argv else completed.text)).strip()
    return CommandError(
        f"{step.why}: the command failed with exit status {completed.exit_status}",
        where=command_text(argv),
        evidence=output + (f"\n{KERNEL}\n{logged}" if logged else ""),
    )

"""The plan: every command that a run will send to the box, in order, before anything is changed."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby

from mountlab.core.held import Lease
from mountlab.core.model import Box, Cell, ClientEndpoint, Filesystem, Place, Step, StepRole, Sweep
from mountlab.core.shell import SharedScript, script_text
from mountlab.filesystems import is_made
from mountlab.sweep.beside import AwayNeighbours, PlannedNeighbour
from mountlab.sweep.clients import ClientMount, PlannedClient
from mountlab.sweep.planned_state import MOUNT_S, PlannedState
from mountlab.tools.base import Command


@dataclass(frozen=True, kw_only=True)
class PlannedMount:
    """One making of one file system: its steps, evidence last, and the directory for trials."""

    id: str
    filesystem: Filesystem
    place: Place
    steps: tuple[Step, ...]
    root: str
    skip_reason: str = ""
    """Why it is not made at all on this box."""
    clients: tuple[ClientMount, ...] = ()
    """Who else is to see it, where workloads have clients."""
    state: str = ""
    """The state in which trials find it; '' where the sweep has none."""
    made_state: PlannedState | None = None
    """How that state is made, where files make it."""
    expected_s: float = MOUNT_S
    """A guess at how long it takes to make or restore, mount and unmount."""
    beside: tuple[PlannedMount, ...] = ()
    """Other file systems, on which neighbours of its trials run: made before it, and undone after it."""

    def makes_state_after(self, step: Step) -> bool:
        """Return whether the state is made again in this mount, right after `step`."""
        return self.made_state is not None and self.made_state.again and step.role is StepRole.FORMAT


@dataclass(frozen=True, kw_only=True)
class PlannedTrial:
    """One trial: a single command for the box, which prepares, measures, counts and cleans up."""

    trial_id: str
    block: int
    warmup: bool
    cell: Cell
    mount: str
    command: Command
    run_id: str
    head: str
    """What stands in the script before contain.sh and trial.sh (mountlab.sweep.trial_head)."""
    timeout_s: float
    expected_s: float
    ready: tuple[tuple[str, ...], ...] = ()
    """Commands after the box's caches were dropped, right before the measured one."""
    endpoints: tuple[ClientEndpoint, ...] = ()
    """The clients that drive it, where that is not the box itself."""
    beside: tuple[PlannedNeighbour, ...] = ()
    """What runs meanwhile on the box."""
    away: tuple[AwayNeighbours, ...] = ()
    """What runs meanwhile on clients."""
    skip_reason: str = ""
    """Why it is not run: its file system cannot be mounted on this box, or cannot take such a workload."""
    diagnostic: bool = False
    """Whether it is traced: for the cause of a figure or the profile of the program, and never counted."""
    profiled: bool = False
    """Whether strace records its system calls, in the place of the trace of the kernel."""
    redrawn: Callable[[int], PlannedTrial] | None = field(default=None, compare=False, repr=False)
    """The same trial as the given round of its precondition, with a seed of its own; None where it has none."""
    at_rate: Callable[[float], PlannedTrial] | None = field(default=None, compare=False, repr=False)
    """The same trial at the given arrival rate, of a search; None of any other trial."""

    @property
    def argv(self) -> tuple[str, ...]:
        """The command for the box. Made when it is asked for: the script is the longest part of a large plan."""
        script = SharedScript(
            f"{self.head}\n", _trial_script(traced=self.diagnostic and not self.profiled, beside=bool(self.beside))
        )
        return ("env", f"MOUNTLAB_RUN={self.run_id}", "sh", "-c", script, self.trial_id)

    @property
    def neighbours(self) -> tuple[tuple[str, PlannedNeighbour], ...]:
        """All that runs meanwhile, with the client that it runs on, '' for the box."""
        away = ((group.client, planned) for group in self.away for planned in group.neighbours)
        return (*(("", planned) for planned in self.beside), *away)


@cache
def _trial_script(*, traced: bool, beside: bool) -> str:
    """Return what follows the head of a trial's script."""
    tracing = script_text("trace.sh") if traced else ""
    neighbours = script_text("neighbour.sh") if beside else ""
    return f"sampling={shlex.quote(script_text('sampler.sh'))}\n{tracing}\n{neighbours}\n{script_text('trial.sh')}"


@dataclass(frozen=True, kw_only=True)
class PlannedMountGroup:
    """Trials on one mount. `mount` is None where the mount lasts for the whole run."""

    mount: PlannedMount | None
    trials: tuple[PlannedTrial, ...]

    @property
    def block(self) -> int:
        return self.trials[0].block

    @property
    def diagnostic(self) -> bool:
        return self.trials[0].diagnostic

    @property
    def mount_s(self) -> float:
        """A guess at what its own mount takes, with those of neighbours beside it."""
        return _mount_s(self.mount)


@dataclass(frozen=True, kw_only=True)
class PlannedBlock:
    """The mount groups of one block. Diagnostic blocks have numbers of their own."""

    number: int
    diagnostic: bool
    mount_groups: tuple[PlannedMountGroup, ...]

    @property
    def trials(self) -> Iterator[PlannedTrial]:
        return (trial for group in self.mount_groups for trial in group.trials)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run will do. The runner does this and nothing else."""

    sweep: Sweep
    box: Box
    run_id: str
    seed: int
    privileged: bool
    """Whether the commands run as root on the box, or by its helper."""
    lease: Lease
    opening: Step
    controls: tuple[PlannedMount, ...]
    """File systems with options, made once without them: what the kernel shows by itself."""
    lasting: tuple[PlannedMount, ...]
    mount_groups: tuple[PlannedMountGroup, ...]
    states: tuple[PlannedState, ...] = ()
    """The states that are made in each session, before its first trial, of those whose trials are still wanted."""
    user: str = ""
    """Who logs in on the box."""
    clients: tuple[PlannedClient, ...] = ()
    """Further boxes that the run holds."""

    @property
    def trials(self) -> tuple[PlannedTrial, ...]:
        return tuple(trial for group in self.mount_groups for trial in group.trials)

    @property
    def blocks(self) -> tuple[PlannedBlock, ...]:
        """The blocks in the order in which they run."""
        groups_by_block = groupby(self.mount_groups, key=lambda group: (group.block, group.diagnostic))
        return tuple(
            PlannedBlock(number=number, diagnostic=diagnostic, mount_groups=tuple(groups))
            for (number, diagnostic), groups in groups_by_block
        )

    @property
    def counted_blocks(self) -> tuple[PlannedBlock, ...]:
        """All but the diagnostic ones; blocks of the warm-up are among them."""
        return tuple(block for block in self.blocks if not block.diagnostic)

    @property
    def mounts(self) -> tuple[PlannedMount, ...]:
        return self.lasting + tuple(group.mount for group in self.mount_groups if group.mount)

    @property
    def skipped(self) -> dict[str, str]:
        """Cell to the reason for which none of its trials is run."""
        return {trial.cell.id: trial.skip_reason for trial in self.trials if trial.skip_reason}

    @property
    def expected_s(self) -> float:
        """A guess at the whole duration in seconds; with a stopping rule, of all the blocks that there may be."""
        return self.expected_until_s(self.sweep.design.repeats)

    def expected_until_s(self, block: int) -> float:
        """Return a guess at the duration in seconds if this is the last block but for diagnostic ones."""
        groups = [group for group in self.mount_groups if group.block <= block and not group.diagnostic]
        states_s = sum(state.cost.makes_s or 0.0 for state in self.states if not state.again)
        return states_s + _expected_s(groups, (*self.controls, *self.lasting)) + self.diagnostic_s

    @property
    def diagnostic_s(self) -> float:
        """A guess at what the diagnostic blocks add to that."""
        return _expected_s([group for group in self.mount_groups if group.diagnostic], ())

    @property
    def fresh_more_s(self) -> float:
        """A guess at what it would take beyond this plan to make every file system in each block; 0 where that is done
        already."""
        count = sum(is_made(mount.filesystem) and not mount.skip_reason for mount in self.lasting)
        return MOUNT_S * count * (len(self.blocks) - 1)

    def commands(self) -> tuple[tuple[str, ...], ...]:
        """Return every command of an undisturbed run, in order. '{device}' stands for the loop device that losetup
        names."""
        return tuple(self._commands())

    def _commands(self) -> Iterator[tuple[str, ...]]:
        yield self.opening.argv
        for control in self.controls:
            yield from _do(control)
            yield from _undo(control)
        for state in self.states:
            yield from () if state.again else _make(state)
        yield from (argv for mount in self.lasting for argv in _do(mount))
        for group in self.mount_groups:
            trials = [trial.argv for trial in group.trials if not trial.skip_reason]
            if trials:
                yield from _do(group.mount)
                yield from trials
                yield from _undo(group.mount)
        yield from (argv for mount in reversed(self.lasting) for argv in _undo(mount))
        for state in reversed(self.states):
            yield from () if state.again else _undone((*state.lasting, *state.keeping))
        assert self.opening.undo is not None
        yield self.opening.undo


def _expected_s(mount_groups: Sequence[PlannedMountGroup], mounts: tuple[PlannedMount, ...]) -> float:
    """Return a guess at how long these take, and the making of further mounts."""
    trials_s = [trial.expected_s for group in mount_groups for trial in group.trials if not trial.skip_reason]
    return sum(map(_mount_s, (*mounts, *(group.mount for group in mount_groups)))) + sum(trials_s)


def _mount_s(mount: PlannedMount | None) -> float:
    """Return a guess at what a mount takes, with those of neighbours beside it."""
    mounts = (mount, *mount.beside) if mount else ()
    return sum(each.expected_s for each in mounts if not each.skip_reason)


def _do(mount: PlannedMount | None) -> Iterator[tuple[str, ...]]:
    if mount and not mount.skip_reason:
        yield from (argv for other in mount.beside for argv in _do(other))
    for step in mount.steps if mount and not mount.skip_reason else ():
        yield step.argv
        if mount and mount.makes_state_after(step) and mount.made_state:
            yield from _make(mount.made_state)


def _undo(mount: PlannedMount | None) -> Iterator[tuple[str, ...]]:
    if mount and not mount.skip_reason:
        yield from _undone(mount.steps)
        if mount.made_state and mount.made_state.again:
            yield from _undone(mount.made_state.keeping)
        yield from (argv for other in reversed(mount.beside) for argv in _undo(other))


def _make(state: PlannedState) -> Iterator[tuple[str, ...]]:
    yield from (step.argv for step in (*state.lasting, *state.making, *state.ageing))
    yield from _undone(state.ageing)
    yield from (step.argv for step in state.keeping)
    yield from _undone(state.making)


def _undone(steps: Sequence[Step]) -> Iterator[tuple[str, ...]]:
    return (step.undo for step in reversed(steps) if step.undo)

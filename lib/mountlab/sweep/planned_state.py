"""How each state of a sweep is made and restored on one box, and what that costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mountlab.box.survey import USABLE
from mountlab.core.box_facts import BoxFacts
from mountlab.core.model import Filesystem, Place, Step, StepRole, Sweep
from mountlab.core.state import Origin, State
from mountlab.filesystems import FAMILIES, guarded_steps
from mountlab.filesystems.kept import POOL, ageing_steps, can_be_kept, free_space_step, keep_step
from mountlab.sweep.run_directories import marked

MOUNT_S = 0.3
"""Guess at the time to make, mount and unmount one small file system, for the plan."""
AGEING_BYTES_PER_S, COPY_BYTES_PER_S, CHECK_BYTES_PER_S, WEAR_BYTES_PER_S = 60e6, 250e6, 300e6, 250e6
"""Guesses for the plan: files that come and go, an image that is copied, a checksum on one processor, random numbers of
the kernel on a whole device."""


@dataclass(frozen=True, kw_only=True)
class StateCost:
    """Guesses at what a state of one file system costs; None: the size of its device is not known."""

    makes_s: float | None
    restores_s: float | None
    kept_bytes: int | None
    """The room that it takes on the box while the run goes on."""


@dataclass(frozen=True, kw_only=True)
class PlannedState:
    """How one file system is brought into one state beside the trials: once in each session of a run, or (`again`)
    before each mount."""

    id: str
    """Of its directory of raw output."""
    filesystem: Filesystem
    state: State
    origin: Origin
    """From what its mounts begin."""
    place: Place
    lasting: tuple[Step, ...]
    """What holds it until the session ends."""
    making: tuple[Step, ...]
    ageing: tuple[Step, ...]
    """Steps on the mounted file system; undone before it is kept."""
    keeping: tuple[Step, ...]
    """What reads the free space, and then lists, copies and checks the blocks in use."""
    again: bool
    """Whether it cannot be kept, or there is no room: each mount makes it from the seed."""
    cost: StateCost
    again_s: float | None
    """A guess at what each mount would cost if it were made again for each."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps, in order."""
        return (*self.lasting, *self.making, *self.ageing, *self.keeping)


def state_id(filesystem: str, state: str) -> str:
    """Return the id of the making of a state."""
    return f"s-{filesystem}-{state}"


def makes_states(sweep: Sweep) -> bool:
    """Return whether any file system of the sweep is in another state than FRESH."""
    return any(state in sweep.states for _, state in sweep.turns)


def purged_devices(sweep: Sweep) -> frozenset[str]:
    """Return the scratch devices that a state wears, and that are discarded before a mount in another state."""
    states = ((fs, sweep.states[name]) for fs, name in sweep.turns if name in sweep.states)
    return frozenset(fs.device for fs, state in states if state.worn and state.purge == "discard" and fs.device)


def first_origin(sweep: Sweep, fs: Filesystem, state: str) -> Origin:
    """Return from what mkfs makes a file system that is to be in a state."""
    write = sweep.states[state].write if state in sweep.states else 0.0
    return Origin(written=makes_states(sweep), write=write, discard=not write and fs.device in purged_devices(sweep))


def device_bytes(fs: Filesystem, facts: BoxFacts) -> int | None:
    """Return the size of what a file system lies on; None where it is not known."""
    usable = facts.surveyed.room.get(fs.name)
    offered = fs.image_bytes if can_be_kept(fs) else FAMILIES[fs.type].capacity_bytes(fs)
    return offered or (int(usable / USABLE) if usable else None)


def kept_bytes(fs: Filesystem, state: State, size: int) -> int:
    """Return the room that a kept state takes: of an image all of it, of a device about what its files take."""
    return size if fs.image_bytes and fs.preallocate else int(size * state.taken)


def planned_state(sweep: Sweep, facts: BoxFacts, fs: Filesystem, state: State, place: Place) -> PlannedState:
    """Return how a state is made, kept and restored. `place`: of a mount that makes it from `first_origin`; its image,
    where it has one, is the one that is kept.

    On an image it is always kept. On a device it is where the box has the room, since to copy blocks takes less time
    than to write them again in the order of their age: else each mount makes it again. So does each mount of a
    pool, and of a file system on layers or on several devices, which have UUIDs and labels of their own.
    """
    name = state_id(fs.name, state.name)
    size, room = device_bytes(fs, facts), facts.storage.mount_root_free_bytes
    taken = None if size is None else kept_bytes(fs, state, size)
    keeps = can_be_kept(fs)
    crowded = fs.device is not None and taken is not None and room is not None and taken > room
    again = crowded or not keeps
    kept, used = place.image, place.image.removesuffix(".img") + ".used"
    steps = tuple(marked(step, place.run_id) for step in guarded_steps(fs, place))
    ageing = tuple(marked(step, place.run_id) for step in ageing_steps(fs, place, state))
    free_before, free_after, keep = (
        marked(step, place.run_id)
        for step in (
            free_space_step(fs, "fresh"),
            free_space_step(fs, "made"),
            keep_step(fs, used, kept if fs.device and not again else ""),
        )
    )
    format_at = next(number for number, step in enumerate(steps) if step.role is StepRole.FORMAT)
    held = format_at - 1 if fs.image_bytes and not again else 0
    costs = _costs(state, size, taken if keeps else 0, state.taken if keeps else 0.0)
    before, after = ((free_before,), (free_after,)) if fs.type != POOL else ((), ())
    return PlannedState(
        id=name,
        filesystem=fs,
        state=state,
        origin=place.origin if again else replace(place.origin, kept=kept, used=used),
        place=place,
        lasting=steps[:held],
        making=(*(() if again else steps[held : format_at + 1]), *before),
        ageing=(*steps[format_at + 1 :], *ageing),
        keeping=(*after, *((keep,) if keeps else ())),
        again=again,
        cost=replace(costs, kept_bytes=0) if again else costs,
        again_s=costs.makes_s,
    )


def _costs(state: State, size: int | None, taken: int | None, checked: float) -> StateCost:
    """Return what a state costs. `taken`: the bytes that are copied; `checked`: the share of the device whose checksum
    is computed."""
    if size is None or taken is None:
        return StateCost(makes_s=None, restores_s=None, kept_bytes=taken)
    check_s = size * checked / CHECK_BYTES_PER_S
    copied_s = taken / COPY_BYTES_PER_S
    return StateCost(
        makes_s=size * state.moved / AGEING_BYTES_PER_S + copied_s + check_s,
        restores_s=copied_s + check_s,
        kept_bytes=taken,
    )


def mount_s(sweep: Sweep, facts: BoxFacts, fs: Filesystem, state: str, planned: PlannedState | None) -> float:
    """Return a guess at the time that one mount takes."""
    size = device_bytes(fs, facts) or 0
    if planned:
        return MOUNT_S + ((planned.again_s if planned.again else planned.cost.restores_s) or 0.0)
    written = makes_states(sweep) and fs.image_bytes and fs.preallocate
    worn = sweep.states[state].write if state in sweep.states else 0.0
    return MOUNT_S + (size / COPY_BYTES_PER_S if written else 0.0) + size * worn / WEAR_BYTES_PER_S


def made_states(sweep: Sweep) -> Mapping[tuple[str, str], tuple[Filesystem, State]]:
    """Return the states that files make, by the name of the file system and of the state."""
    return {
        (fs.name, name): (fs, sweep.states[name])
        for fs, name in sweep.turns
        if name in sweep.states and not sweep.states[name].worn
    }

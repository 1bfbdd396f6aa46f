"""The states of a plan, for people and for programs: how each is made, how long it takes, how much room."""

from __future__ import annotations

from collections.abc import Iterator

from mountlab.core.box_facts import BoxFacts
from mountlab.core.numbers import counted, percent, rough_duration
from mountlab.core.state import State
from mountlab.core.units import format_bytes
from mountlab.filesystems.kept import can_be_kept
from mountlab.sweep.plan import Plan
from mountlab.sweep.planned_state import COPY_BYTES_PER_S, WEAR_BYTES_PER_S, PlannedState, device_bytes, makes_states

_WORN = "the whole device is written {times} before each mount, in its order, in random data, but for its first MiB"


def states_json(plan: Plan) -> list[dict[str, object]]:
    """Return how each state is made, and what it costs, JSON-able; None for what is not known."""
    return [
        {
            "filesystem": planned.filesystem.name,
            "state": planned.state.name,
            "kept": not planned.again,
            "makes_s": _rounded(planned.cost.makes_s),
            "restores_s": _rounded(planned.again_s if planned.again else planned.cost.restores_s),
            "kept_bytes": planned.cost.kept_bytes,
            "commands": [list(step.argv) for step in planned.steps],
        }
        for planned in plan.states
    ]


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)


def state_lines(plan: Plan, facts: BoxFacts) -> Iterator[str]:
    """Yield for each state of each file system how it is made, and what that costs; then what holds for all."""
    for planned in plan.states:
        yield f"{planned.filesystem.name}, {planned.state.name}: {made_text(planned.state)}; {_cost_text(planned)}"
    for fs, name in plan.sweep.turns:
        if name in plan.sweep.states and plan.sweep.states[name].worn:
            yield f"{fs.name}, {name}: {_worn_text(plan.sweep.states[name], device_bytes(fs, facts))}"
    images = [fs for fs in plan.sweep.filesystems if fs.image_bytes and fs.preallocate]
    if makes_states(plan.sweep) and images:
        largest_s = max(fs.image_bytes or 0 for fs in images) / COPY_BYTES_PER_S
        yield (
            f"every block of an image is written before each mount, of a fresh one, too: about {_time(largest_s)}. "
            "No copy shares blocks (reflink): the first write to a shared or only allocated block costs more"
        )


def made_text(state: State) -> str:
    """Return how a state is made: '80 % filled with files of the profile developer, then churned 10 times (seed 7)'."""
    parts = [f"{percent(state.fill)} filled with files of the profile {state.profile}"]
    parts += [f"the capacity written {state.churn:g} times by files that come and go"] if state.churn else []
    if state.snapshots:
        parts.append(f"{counted(state.snapshots, 'snapshot')}, {percent(state.change)} overwritten before each")
    return f"{', '.join(parts)} (seed {state.seed})"


def _cost_text(planned: PlannedState) -> str:
    cost = planned.cost
    if planned.again:
        keeps = can_be_kept(planned.filesystem)
        why = "there is no room to keep its blocks in use" if keeps else "only a state on one device can be kept"
        return f"made again from the seed before each mount, about {_time(planned.again_s)}: {why}"
    of_what = "image" if planned.filesystem.image_bytes else "blocks in use"
    again = "" if planned.filesystem.image_bytes else f" (made again instead: about {_time(planned.again_s)})"
    kept = f"its {of_what}, {_room(cost.kept_bytes)}, kept on the box, restored and checked before each mount"
    return f"made once in each session, about {_time(cost.makes_s)}; {kept}, about {_time(cost.restores_s)}{again}"


def _worn_text(state: State, size: int | None) -> str:
    times = "once" if state.write == 1 else f"{state.write:g} times"
    wears_s = None if size is None else size * state.write / WEAR_BYTES_PER_S
    purge = "discarded before" if state.purge == "discard" else "left as it is for"
    return f"{_WORN.format(times=times)}, about {_time(wears_s)}; {purge} mounts in another state"


def _time(seconds: float | None) -> str:
    return "an unknown time" if seconds is None else rough_duration(max(1.0, float(round(seconds))))


def _room(size: int | None) -> str:
    return "of a size that is not known" if size is None else format_bytes(size)

"""`states` of a sweep file and `state` of its file systems: in which states each is measured, strictly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from mountlab.core.conditions import STATE
from mountlab.core.errors import ParameterError
from mountlab.core.model import Design, Filesystem, Workload
from mountlab.core.names import cell_id
from mountlab.core.options import unknown_key
from mountlab.core.state import FRESH, Profile, Purge, State
from mountlab.filesystems import FAMILIES
from mountlab.sweep.validated import AS_SHARE, File

MOST_FILLED = 0.98
"""The largest share of a file system that files, and what snapshots keep, may take."""
_FILL_BELOW_SNAPSHOTS = 0.25
"""Where a state of snapshots does not say how much data there is."""


class StateFile(File):
    """One entry of `states`."""

    fill: Annotated[float, AS_SHARE, Field(gt=0, le=MOST_FILLED)] | None = None
    """The share of the capacity that is in use: `90%`. With `snapshots` 25 % where nothing is said."""
    churn: Annotated[float, Field(gt=0, le=1000)] | None = None
    """How often files that come and go write the whole capacity, at that fill."""
    profile: Profile = "developer"
    """Which sizes and lifetimes the files have."""
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 1
    """Of names, sizes, contents and order: the same seed makes the same files."""
    snapshots: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """How many snapshots are taken and kept. Only of btrfs and zfs, and of ext4 and xfs on a thin volume
    of LVM."""
    change: Annotated[float, AS_SHARE, Field(gt=0, le=1)] | None = None
    """The share of the data that is overwritten before each snapshot. 1 % where nothing is said."""
    write: Annotated[float, Field(gt=0, le=100)] | None = None
    """How often the whole device is written before the file system is made. Only with `device`, and with no other key
    but `seed` and `purge`."""
    purge: Purge = "discard"
    """How a device that `write` has worn is emptied before it is used in another state."""


def read_states(entries: Mapping[str, StateFile], where: str) -> dict[str, State]:
    """Return the states that a sweep file defines. Raises ParameterError."""
    return {name: _state(name, entry, f"{where}.{name}") for name, entry in entries.items()}


def _state(name: str, entry: StateFile, where: str) -> State:
    if name == FRESH:
        raise ParameterError(
            f"{FRESH} is the state of a file system that was just made",
            where=where,
            got=name,
            allowed="any other name",
            next_step=f"take it out: every file system can be in the state {FRESH}",
        )
    given = entry.model_fields_set - {"seed", "purge", "profile"}
    if not given:
        raise _wrong("a state says what is made of a file system", where, "nothing", "fill, churn, snapshots or write")
    if entry.write is not None and (given != {"write"} or "profile" in entry.model_fields_set):
        others = ", ".join(sorted(entry.model_fields_set - {"write", "seed", "purge"}))
        raise _wrong("a worn device has no files", where, f"write and {others}", "write alone, with seed and purge")
    if "purge" in entry.model_fields_set and entry.write is None:
        raise _wrong("only a device that is written whole is purged", where, "purge without write", "purge with write")
    if entry.churn is not None and entry.fill is None:
        raise _wrong("churn needs the fill that it keeps", where, f"churn: {entry.churn:g}", "fill and churn")
    if entry.change is not None and entry.snapshots is None:
        raise _wrong("data change between snapshots", where, "change without snapshots", "snapshots and change")
    return _checked_room(
        State(
            name=name,
            fill=entry.fill or (_FILL_BELOW_SNAPSHOTS if entry.snapshots else 0.0),
            churn=entry.churn or 0.0,
            profile=entry.profile,
            seed=entry.seed,
            snapshots=entry.snapshots or 0,
            change=entry.change or (0.01 if entry.snapshots else 0.0),
            write=entry.write or 0.0,
            purge=entry.purge,
        ),
        where,
    )


def _checked_room(state: State, where: str) -> State:
    """Return a state whose snapshots have room for what they keep. Raises ParameterError."""
    if state.taken > MOST_FILLED:
        raise ParameterError(
            "the snapshots keep more than there is room for",
            where=where,
            got=f"{state.fill:.0%} of files, and {state.snapshots} times {state.change:.1%} of them: {state.taken:.0%}",
            allowed=f"{MOST_FILLED:.0%} of the capacity",
            next_step="fewer snapshots, a smaller change, or a smaller fill",
        )
    return state


def _wrong(what: str, where: str, got: str, allowed: str) -> ParameterError:
    return ParameterError(what, where=where, got=got, allowed=allowed)


def read_turns(
    entries: Mapping[str, str | list[str] | None],
    *,
    states: Mapping[str, State],
    filesystems: Iterable[Filesystem],
    where: str,
) -> dict[str, tuple[str, ...]]:
    """Return file system to its states, in the order of its entry; all of them () where no entry names one. `entries`:
    what each says for `state`. Raises ParameterError."""
    if all(entry is None for entry in entries.values()):
        return {fs.name: () for fs in filesystems}
    return {fs.name: _of_one(fs, entries[fs.name], states, f"{where}.{fs.name}.{STATE}") for fs in filesystems}


def _of_one(fs: Filesystem, entry: str | list[str] | None, states: Mapping[str, State], where: str) -> tuple[str, ...]:
    names = [FRESH] if entry is None else [entry] if isinstance(entry, str) else entry
    for name in names:
        if name not in (FRESH, *states):
            raise unknown_key(name, [FRESH, *states], where=where, what="state")
        if name != FRESH and (reason := FAMILIES[fs.type].refuses_state(fs, states[name])):
            raise ParameterError(
                f"{fs.name} cannot be in the state {name}", where=where, got=reason, allowed="another state"
            )
    if not names or len({*names}) < len(names):
        raise ParameterError("states are named once each", where=where, got=repr(entry), allowed=f"[{FRESH}, NAME]")
    return tuple(names)


def check_restored(states: Mapping[str, tuple[str, ...]], design: Design, where: str) -> None:
    """Raise ParameterError for states that no mount would restore. `states`: of each file system."""
    if any(states.values()) and design.fresh_filesystem == "never":
        raise ParameterError(
            "a state is restored before each mount, and here file systems are mounted once",
            where=where,
            got="never",
            allowed="block or cell",
        )


def in_each_state(
    workloads: Sequence[Workload], turns: Mapping[str, tuple[str, ...]], where: str
) -> tuple[Workload, ...]:
    """Return the workloads, each once for every state that any file system is in: `state` is a factor of theirs.
    `where` names the section of the workloads. Raises ParameterError for one that has a factor of that name."""
    states = dict.fromkeys(state for of_one in turns.values() for state in of_one)
    if not states:
        return tuple(workloads)
    for workload in workloads:
        if STATE in workload.factors:
            raise ParameterError(
                f"`{STATE}` is a factor of the file systems of this sweep",
                where=f"{where}.{workload.name}.{STATE}",
                got=workload.factors[STATE],
                allowed="an option with one value, or one of another name",
            )
    ordered = sorted(states, key=lambda state: state != FRESH)
    return tuple(
        replace(workload, state=state, factors={**workload.factors, STATE: state})
        for workload in workloads
        for state in ordered
    )


def absent_cells(
    filesystems: Iterable[Filesystem], workloads: Sequence[Workload], turns: Mapping[str, tuple[str, ...]]
) -> frozenset[str]:
    """Return ids of the combinations of file systems and workloads in a state that the file system is not in."""
    return frozenset(
        cell_id(fs.name, workload.label)
        for fs in filesystems
        for workload in workloads
        if workload.state and workload.state not in turns[fs.name]
    )

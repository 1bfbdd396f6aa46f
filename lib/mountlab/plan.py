"""The plan: every command that a run will send to the box, in order, before anything is changed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from mountlab.design import Visit, visits
from mountlab.errors import PlanError
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.base import evidence_step
from mountlab.model import Box, Cell, Filesystem, Place, Program, Rights, Step, Sweep, everywhere
from mountlab.tools import TOOLS
from mountlab.tools.base import Cache, Command
from mountlab.units import format_bytes

Facts = Mapping[str, Any]
MOUNT_S = 0.3
"""Guess at the time to make, mount and unmount one small file system, for the plan."""
MEMORY_SHARE = 0.8
"""The largest part of the box's available memory that file systems in memory may be allowed to fill."""


TRIAL_PROGRAMS = (
    Program(name="tar", packages=everywhere("tar"), version=("tar", "--version")),
    Program(name="awk", packages=everywhere("gawk", apt="mawk"), version=("awk", "-W", "version")),
    Program(name="find", packages=everywhere("findutils"), version=("find", "--version")),
)
"""What trial.sh itself runs, beside what every system has."""


@dataclass(frozen=True, kw_only=True)
class PlannedMount:
    """One making of one file system: its steps, evidence last, and the directory for trials."""

    id: str
    filesystem: Filesystem
    place: Place
    steps: tuple[Step, ...]
    root: str


@dataclass(frozen=True, kw_only=True)
class PlannedTrial:
    """One trial: a single command for the box, which prepares, measures, counts and cleans up."""

    trial_id: str
    block: int
    warmup: bool
    cell: Cell
    mount: str
    command: Command
    argv: tuple[str, ...]
    timeout_s: float
    expected_s: float


@dataclass(frozen=True, kw_only=True)
class Turn:
    """Trials on one mount. `mount` is None where the mount lasts for the whole run."""

    mount: PlannedMount | None
    trials: tuple[PlannedTrial, ...]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run will do. The runner does this and nothing else."""

    sweep: Sweep
    box: Box
    run_id: str
    seed: int
    privileged: bool
    """Whether the commands run as root on the box."""
    opening: Step
    lasting: tuple[PlannedMount, ...]
    turns: tuple[Turn, ...]

    @property
    def trials(self) -> tuple[PlannedTrial, ...]:
        return tuple(trial for turn in self.turns for trial in turn.trials)

    @property
    def mounts(self) -> tuple[PlannedMount, ...]:
        return self.lasting + tuple(turn.mount for turn in self.turns if turn.mount)

    @property
    def expected_s(self) -> float:
        """A guess at the whole duration in seconds."""
        return MOUNT_S * len(self.mounts) + sum(trial.expected_s for trial in self.trials)

    def commands(self) -> tuple[tuple[str, ...], ...]:
        """Every command of an undisturbed run, in order. '{device}' stands for the loop device that losetup names."""
        return tuple(self._commands())

    def _commands(self) -> Iterator[tuple[str, ...]]:
        yield self.opening.argv
        yield from (argv for mount in self.lasting for argv in _do(mount))
        for turn in self.turns:
            yield from _do(turn.mount)
            yield from (trial.argv for trial in turn.trials)
            yield from _undo(turn.mount)
        yield from (argv for mount in reversed(self.lasting) for argv in _undo(mount))
        assert self.opening.undo is not None
        yield self.opening.undo


def _do(mount: PlannedMount | None) -> Iterator[tuple[str, ...]]:
    return (step.argv for step in (mount.steps if mount else ()))


def _undo(mount: PlannedMount | None) -> Iterator[tuple[str, ...]]:
    return (step.undo for step in reversed(mount.steps if mount else ()) if step.undo)


def make_plan(sweep: Sweep, box: Box, facts: Facts, *, run_id: str, seed: int, owner: str) -> Plan:
    """Everything that a run of `sweep` on `box` will do. `owner` is the name that holds the box meanwhile.

    Raises PlanError where the box cannot run it: rights, programs, kernel, sizes, scratch devices.
    """
    check_feasible(sweep, box, facts)
    context = _Context(sweep, box, facts, run_id, owner)
    order = visits(sweep, seed)
    lasting = _lasting(context) if sweep.design.fresh_filesystem == "never" else {}
    return Plan(
        sweep=sweep, box=box, run_id=run_id, seed=seed, privileged=_privileged(facts),
        opening=context.opening(),
        lasting=tuple(lasting.values()),
        turns=tuple(_turns(context, order, lasting)),
    )  # fmt: skip


def _lasting(context: _Context) -> dict[str, PlannedMount]:
    return {fs.name: context.mount(f"m000-{fs.name}", fs) for fs in context.sweep.filesystems}


def _turns(context: _Context, order: tuple[Visit, ...], lasting: Mapping[str, PlannedMount]) -> Iterator[Turn]:
    number = 0
    for index, visit in enumerate(order, start=1):
        fresh = None if lasting else context.mount(f"m{index:03d}-{visit.filesystem.name}", visit.filesystem)
        mount = fresh or lasting[visit.filesystem.name]
        trials = tuple(context.trial(number + i, visit, cell, mount) for i, cell in enumerate(visit.cells, start=1))
        number += len(trials)
        yield Turn(mount=fresh, trials=trials)


@dataclass(frozen=True)
class _Context:
    """What every command of one run is made from."""

    sweep: Sweep
    box: Box
    facts: Facts
    run_id: str
    owner: str

    @property
    def run_dir(self) -> str:
        return f"{self.facts['mount_root']}/{self.run_id}"

    @property
    def output_dir(self) -> str:
        return f"{self.facts['output_root']}/{self.run_id}"

    def opening(self) -> Step:
        script = files("mountlab").joinpath("open.sh").read_text()
        command = ("sh", "-c", script, "open.sh")
        return Step(
            argv=(*command, "open", self.run_dir, self.output_dir, self.owner),
            why="the directories of this run",
            undo=(*command, "close", self.run_dir, self.output_dir, self.owner),
            guard=True,
        )

    def place(self, fs: Filesystem) -> Place:
        device = {scratch.name: scratch.device for scratch in self.box.scratch}.get(fs.device or "")
        return Place(
            run_id=self.run_id,
            run_dir=self.run_dir,
            mountpoint=f"{self.run_dir}/mnt/{fs.name}",
            image=f"{self.run_dir}/img/{fs.name}.img",
            device=device,
        )

    def mount(self, mount_id: str, fs: Filesystem) -> PlannedMount:
        place, family = self.place(fs), FAMILIES[fs.type]
        root = family.root_of(fs, place)
        steps = tuple(self._marked(step) for step in (*family.steps(fs, place), evidence_step(root)))
        return PlannedMount(id=mount_id, filesystem=fs, place=place, steps=steps, root=root)

    def _marked(self, step: Step) -> Step:
        """With the run's name in its environment, by which what a crash left running is found and ended."""
        return replace(step, argv=("env", f"MOUNTLAB_RUN={self.run_id}", *step.argv))

    def trial(self, number: int, visit: Visit, cell: Cell, mount: PlannedMount) -> PlannedTrial:
        trial_id = f"t{number:04d}"
        directory, output = f"{mount.root}/{trial_id}", f"{self.output_dir}/{trial_id}"
        tool = TOOLS[cell.workload.tool]
        asked = cell.workload.options.get("cache")
        cache: Cache = asked or ("cold" if self.sweep.design.drop_caches else "as_is")  # type: ignore[assignment]
        workload = replace(cell.workload, options={**cell.workload.options, "cache": cache})
        command = replace(tool.command(workload, directory, output), timeout_s=self.sweep.design.trial_timeout_s)
        script = self._script(command, tool.programs, cache, mount, directory, output)
        return PlannedTrial(
            trial_id=trial_id, block=visit.block, warmup=visit.warmup, cell=cell, mount=mount.id, command=command,
            argv=("env", f"MOUNTLAB_RUN={self.run_id}", "sh", "-c", script, trial_id),
            # Preparation (laying out a file) may take as long as the measured part again.
            timeout_s=2 * command.timeout_s + 60, expected_s=tool.expected_s(cell.workload),
        )  # fmt: skip

    def _script(
        self,
        command: Command,
        programs: tuple[Program, ...],
        cache: Cache,
        mount: PlannedMount,
        directory: str,
        output: str,
    ) -> str:
        family = FAMILIES[mount.filesystem.type]
        variables = {
            "out": output,
            "directory": directory,
            "mountpoint": mount.root,
            "fstype": mount.filesystem.type if family.needs_root else "",
            "cache": cache,
        }
        limited = ("timeout", "-k", "5", f"{command.timeout_s:g}", *command.argv)
        lines = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
        lines += [_function("prepare", command.prepare), _function("warm", command.warm)]
        lines += [_function("load_program", tuple(program.version for program in programs))]
        lines += [_function("measured", (limited,)), files("mountlab").joinpath("trial.sh").read_text()]
        return "\n".join(lines)


def _function(name: str, commands: tuple[tuple[str, ...], ...]) -> str:
    return f"{name}() {{ {' && '.join(shlex.join(argv) for argv in commands) or ':'}; }}"


def _privileged(facts: Facts) -> bool:
    return facts["rights"] in ("root", "sudo")


def all_programs() -> tuple[Program, ...]:
    """Programs of every tool and every family, each once: what facts and `box check` ask for."""
    programs = [*TRIAL_PROGRAMS, *(program for tool in TOOLS.values() for program in tool.programs)]
    programs += [program for family in FAMILIES.values() for program in family.programs]
    return tuple({program.name: program for program in programs}.values())


def needed_programs(sweep: Sweep) -> tuple[Program, ...]:
    """Programs that the box must have for this sweep, each once."""
    programs = [*TRIAL_PROGRAMS, *(p for w in sweep.workloads for p in TOOLS[w.tool].programs)]
    programs += [p for fs in sweep.filesystems for p in FAMILIES[fs.type].programs]
    return tuple({program.name: program for program in programs}.values())


def without_rights(sweep: Sweep, rights: Rights) -> dict[str, str]:
    """File systems of the sweep that cannot be mounted with these rights, and why."""
    if rights != "none":
        return {}
    reason = "mounting needs root or password-less sudo on the box"
    return {fs.name: f"{fs.type}: {reason}" for fs in sweep.filesystems if FAMILIES[fs.type].needs_root}


def check_feasible(sweep: Sweep, box: Box, facts: Facts) -> None:
    """Raise PlanError for the first thing that this box cannot do."""
    _check_rights(sweep, box, facts)
    _check_programs(sweep, box, facts)
    for fs in sweep.filesystems:
        _check_filesystem(fs, sweep, box, facts)
    if sweep.design.fresh_filesystem == "never":
        _check_together(sweep, facts)


def _check_together(sweep: Sweep, facts: Facts) -> None:
    """Where file systems last for the whole run, they need their room at the same time."""
    images = sum(fs.image_bytes or 0 for fs in sweep.filesystems)
    sizes = sum(fs.size_bytes or 0 for fs in sweep.filesystems if FAMILIES[fs.type].in_memory)
    memory = facts.get("memory_available_bytes")
    room = memory and int(memory * MEMORY_SHARE)
    where = "design.fresh_filesystem: never"
    free = facts.get("mount_root_free_bytes")
    _check_size("all images together", images, free, where, f"free in {facts['mount_root']}")
    _check_size("all sizes together", sizes, room, where, f"{MEMORY_SHARE:.0%} of the available memory")


def _check_rights(sweep: Sweep, box: Box, facts: Facts) -> None:
    refused = without_rights(sweep, facts["rights"])
    if refused:
        raise PlanError(
            f"the box does not let us mount {', '.join(refused)}",
            where=f"box {box.name}, user {facts.get('user')}",
            got="neither root nor password-less sudo",
            allowed="root or password-less sudo; file systems of type dir need neither",
            next_step="allow one of them, measure directories instead (type: dir), or run `make demo`, which does "
            "so by itself",
        )


def _check_programs(sweep: Sweep, box: Box, facts: Facts) -> None:
    missing = [program for program in needed_programs(sweep) if program.name not in facts["programs"]]
    if missing:
        raise PlanError(
            f"the box lacks {', '.join(program.name for program in missing)}",
            where=f"box {box.name}",
            got=f"not on its PATH: {', '.join(program.name for program in missing)}",
            next_step=f"python -m mountlab box prepare {box.name}",
        )


def _check_filesystem(fs: Filesystem, sweep: Sweep, box: Box, facts: Facts) -> None:
    where = f"filesystems.{fs.name}"
    known = facts.get("kernel_filesystems")
    if fs.type != "dir" and known is not None and fs.type not in known and not facts.get("modules"):
        raise PlanError(
            f"the kernel of the box has no {fs.type}", where=where, got=fs.type, allowed=", ".join(sorted(known))
        )
    _check_size(
        "image", fs.image_bytes, facts.get("mount_root_free_bytes"), f"{where}.image", f"free in {facts['mount_root']}"
    )
    if FAMILIES[fs.type].in_memory:
        memory = facts.get("memory_available_bytes")
        _check_size(
            "size",
            fs.size_bytes,
            memory and int(memory * MEMORY_SHARE),
            f"{where}.size",
            f"{MEMORY_SHARE:.0%} of the available memory",
        )
    if fs.device and fs.device not in {scratch.name for scratch in box.scratch}:
        raise PlanError(
            "the box file lists no such scratch device", where=f"{where}.device", got=fs.device,
            allowed=", ".join(scratch.name for scratch in box.scratch) or "none is listed",
            next_step=f"params/boxes/{box.name}.yml: scratch: {{{fs.device}: /dev/disk/by-id/...}}",
        )  # fmt: skip
    _check_workloads(fs, sweep, facts, where)


def _check_workloads(fs: Filesystem, sweep: Sweep, facts: Facts, where: str) -> None:
    capacity = FAMILIES[fs.type].capacity_bytes(fs)
    room = facts.get("room", {}).get(fs.name) if capacity is None else capacity
    for workload in sweep.workloads:
        needs = TOOLS[workload.tool].space_bytes(workload)
        _check_size(f"{workload.label} writes", needs, room, f"workloads.{workload.name}", f"room in {where}")


def _check_size(what: str, needs: int | None, room: int | None, where: str, of_what: str) -> None:
    if needs is not None and room is not None and needs > room:
        raise PlanError(
            f"too large: {what} {format_bytes(float(needs))}", where=where, got=format_bytes(float(needs)),
            allowed=f"at most {format_bytes(float(room))} ({of_what})", next_step="make it smaller, or the file "
            "system larger",
        )  # fmt: skip

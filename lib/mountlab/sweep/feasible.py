"""What a box must have for a sweep, and why it cannot run there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mountlab.box.helper import not_permitted
from mountlab.box.tracing import PROFILING_PROGRAMS
from mountlab.box.tracing import PROGRAMS as TRACING_PROGRAMS
from mountlab.checks import refuse_foreseen
from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import PlanError, UnsafeError
from mountlab.core.model import FILES, Box, Filesystem, Program, Sweep, Target, everywhere
from mountlab.core.names import cell_id
from mountlab.core.state import State
from mountlab.core.units import format_bytes
from mountlab.filesystems import FAMILIES, kept
from mountlab.filesystems.backing import GUARD_PROGRAMS, LOSETUP
from mountlab.filesystems.base import BLOCK_DEVICE
from mountlab.filesystems.pmfs import PREFIX as MEMORY
from mountlab.filesystems.stack import layer_modules
from mountlab.programs import TOOLS
from mountlab.sweep import profiled, traced
from mountlab.sweep.beside import filesystems_beside, neighbours_of, place_of, programs_on
from mountlab.sweep.clients import check_clients, refusal
from mountlab.sweep.planned_state import kept_bytes, made_states, makes_states, purged_devices

TRIAL_PROGRAMS = (
    Program(name="tar", packages=everywhere("tar"), version=("tar", "--version")),
    Program(name="awk", packages=everywhere("gawk", apt="mawk"), version=("awk", "-W", "version")),
    Program(name="find", packages=everywhere("findutils"), version=("find", "--version")),
)
"""Programs that trial.sh runs, beside those that every system has."""

MEMORY_SHARE = 0.8
"""The largest part of the box's available memory that file systems in memory may be allowed to fill."""


def all_programs(sweep: Sweep | None = None) -> tuple[Program, ...]:
    """Return programs of every tool and every family, and those that the sweep itself names, each once: what facts and
    `box check` ask for, of clients too. Those of plug-ins only where the sweep names them, or where there is none."""
    tools, families = (TOOLS, FAMILIES) if sweep is None else (TOOLS.own, FAMILIES.own)
    programs = [*TRIAL_PROGRAMS, *(program for tool in tools.values() for program in tool.programs)]
    programs += (*TRACING_PROGRAMS, *PROFILING_PROGRAMS)
    programs += [program for family in families.values() for program in family.programs]
    programs += [LOSETUP, *GUARD_PROGRAMS, *kept.ALL_PROGRAMS]
    named = [*needed_programs(sweep), *(p for c in sweep.clients for p in programs_on(sweep, c))] if sweep else []
    return tuple({program.name: program for program in (*named, *programs)}.values())


def needed_programs(sweep: Sweep) -> tuple[Program, ...]:
    """Return programs that the box must have for this sweep, each once."""
    programs = [*TRIAL_PROGRAMS, *programs_on(sweep)]
    programs += [p for fs in sweep.filesystems for p in FAMILIES[fs.type].needed_programs(fs)]
    programs += TRACING_PROGRAMS if sweep.design.explain else ()
    programs += PROFILING_PROGRAMS if sweep.design.profile else ()
    programs += [p for fs in sweep.filesystems for p in kept.programs(fs, _states_of(fs, sweep))]
    return tuple({program.name: program for program in programs}.values())


def _states_of(fs: Filesystem, sweep: Sweep) -> tuple[State, ...]:
    """Return the states that a file system is brought into."""
    return tuple(sweep.states[name] for other, name in sweep.turns if other.name == fs.name and name in sweep.states)


def without_rights(sweep: Sweep, facts: BoxFacts) -> dict[str, str]:
    """Return the file systems that cannot be mounted with the rights of this box: name to why."""
    confined = facts.rights.cannot_mount
    if facts.rights.level == "helper" and not confined:
        reasons = {fs.name: not_permitted(fs) for fs in sweep.filesystems}
        return {name: f"not by the helper of the box: {reason}" for name, reason in reasons.items() if reason}
    if facts.rights.privileged and not confined:
        return {}
    right = "CAP_SYS_ADMIN, which the container lacks" if confined else "root or password-less sudo on the box"
    reason = f"mounting needs {right}"
    return {fs.name: f"{fs.type}: {reason}" for fs in sweep.filesystems if FAMILIES[fs.type].needs_root}


def check_feasible(sweep: Sweep, box: Box, facts: BoxFacts) -> None:
    """Raise PlanError for the first thing that this box cannot do, UnsafeError for a device that is not ours to use."""
    _check_rights(sweep, box, facts)
    available = _available(sweep, facts)
    refuse_foreseen(available, facts)
    for fs in available.filesystems:  # before the programs: no package brings another kernel
        _check_kernel(fs, facts, f"filesystems.{fs.name}")
    _check_programs(available, box, facts)
    traced.check_traceable(sweep, box, facts)
    profiled.check_profiled(sweep)
    _check_sources(available, facts)
    _check_owners(available, box, facts)
    _check_scratch(available, box)
    _check_filesystems(available, facts)
    _check_room_beside(available, facts)
    _check_states(available, box, facts)
    check_clients(available, box.name, facts)


def check_without_box(sweep: Sweep) -> None:
    """Raise PlanError for the first thing that no box can do, whatever its facts are."""
    refuse_foreseen(sweep, BoxFacts())
    _check_filesystems(sweep, BoxFacts())


def _check_filesystems(sweep: Sweep, facts: BoxFacts) -> None:
    for fs in sweep.filesystems:
        _check_filesystem(fs, sweep, facts)
    if sweep.design.fresh_filesystem == "never":
        _check_together(sweep, facts)


def _available(sweep: Sweep, facts: BoxFacts) -> Sweep:
    """Return the sweep without the file systems that are skipped on this box. Raises PlanError where none remains."""
    reasons = {fs.name: FAMILIES[fs.type].unavailable(fs, facts) for fs in sweep.filesystems}
    filesystems = tuple(fs for fs in sweep.filesystems if not reasons[fs.name])
    if not filesystems:
        raise PlanError(
            "none of the file systems can be mounted on this box",
            where="filesystems",
            got="; ".join(dict.fromkeys(filter(None, reasons.values()))),
        )
    return replace(sweep, filesystems=filesystems)


def _check_states(sweep: Sweep, box: Box, facts: BoxFacts) -> None:
    """Raise PlanError where states cannot be made, kept or undone."""
    if makes_states(sweep) and facts.rights.level == "helper":
        raise PlanError(
            "the helper of the box makes no states",
            where=f"params/boxes/{box.name}.yml: become: helper",
            got=f"states {', '.join(sweep.states)}: images would be copied, and files made, by root",
            allowed="root or password-less sudo on the box",
            next_step="leave `state` out, or measure on a box that gives root",
        )
    for name in sorted(purged_devices(sweep)):
        if facts.surveyed.device_discards.get(name) is False:
            raise PlanError(
                "the device cannot discard what a worn state leaves",
                where=f"box {box.name}: scratch device {name}",
                got="queue/discard_max_bytes is 0",
                next_step="write purge: none in the state; then the device stays worn for the other states, too",
            )
    _check_room_of_states(sweep, facts)


def _check_room_of_states(sweep: Sweep, facts: BoxFacts) -> None:
    """Raise PlanError where images of states, and the one that is mounted beside them, need more than there is. What
    each mount makes again is not kept."""
    needs: dict[str, list[int]] = {}
    for fs, state in made_states(sweep).values():
        if fs.image_bytes and kept.can_be_kept(fs):
            where = fs.image_dir or str(facts.storage.mount_root)
            needs.setdefault(where, []).append(kept_bytes(fs, state, fs.image_bytes))
    for where, sizes in needs.items():
        on_it = [fs for fs in sweep.filesystems if (fs.image_dir or str(facts.storage.mount_root)) == where]
        mounted = max((fs.image_bytes or 0) * fs.members for fs in on_it)
        rooms = [facts.surveyed.image_room.get(fs.name) for fs in on_it if fs.image_dir]
        room = rooms[0] if rooms else facts.storage.mount_root_free_bytes
        what = f"{len(sizes)} kept images of states, and the one that is mounted,"
        _check_size(what, sum(sizes) + mounted, room, "states", f"free in {where}")


def _check_room_beside(sweep: Sweep, facts: BoxFacts) -> None:
    """Raise PlanError where a file system, and those of its neighbours that are mounted meanwhile, need images that do
    not fit together into the mount root."""
    for fs in sweep.filesystems:
        for workload in sweep.workloads:
            if not sweep.has_cell(cell_id(fs.name, workload.label)):
                continue
            mounted = [other.over or other for other in (fs, *filesystems_beside(sweep, fs, [workload]))]
            images = [one.images_bytes for one in mounted if not one.image_dir]
            if len(images) > 1:
                where = f"workloads.{workload.name}.beside"
                free, of_what = facts.storage.mount_root_free_bytes, f"free in {facts.storage.mount_root}"
                _check_size(f"{fs.name} and the file systems beside it", sum(images), free, where, of_what)


def _check_together(sweep: Sweep, facts: BoxFacts) -> None:
    """Raise PlanError where file systems that last for the whole run need too much room, or one device, together."""
    backed = [fs.over or fs for fs in sweep.filesystems]
    images = sum(fs.images_bytes for fs in backed if not fs.image_dir)
    sizes = sum(_memory_of(fs, facts) for fs in backed)
    room = _memory_room(facts)
    where = "design.fresh_filesystem: never"
    free = facts.storage.mount_root_free_bytes
    _check_size("all images together", images, free, where, f"free in {facts.storage.mount_root}")
    _check_size("all sizes together", sizes, room, where, f"{MEMORY_SHARE:.0%} of the available memory")
    devices = [name for fs in backed for name in fs.scratch]
    shared = [name for name in devices if devices.count(name) > 1]
    if shared:
        raise PlanError(
            "a device cannot hold two file systems at the same time",
            where=where,
            got=f"{shared[0]} is the device of {devices.count(shared[0])} of them",
            allowed="fresh_filesystem: block or cell",
        )


def _check_rights(sweep: Sweep, box: Box, facts: BoxFacts) -> None:
    reasons = without_rights(sweep, facts)
    if reasons and facts.rights.cannot_mount:
        raise PlanError(
            f"the box does not let us mount {', '.join(reasons)}",
            where=f"box {box.name}, user {facts.rights.user}",
            got="a container without CAP_SYS_ADMIN: not even root may mount",
            allowed="a container with it (`--privileged`), or the host itself; file systems of type dir need no mount",
            next_step="measure directories instead (type: dir), or run `mountlab demo`, which does so by itself",
        )
    if reasons and facts.rights.level == "helper":
        raise PlanError(
            f"the box does not let us mount {', '.join(reasons)}",
            where=f"params/boxes/{box.name}.yml: become: helper",
            got="; ".join(reasons.values()),
            next_step="leave it out, or measure it on a box that gives root",
        )
    if reasons:
        raise PlanError(
            f"the box does not let us mount {', '.join(reasons)}",
            where=f"box {box.name}, user {facts.rights.user}",
            got="neither root nor password-less sudo",
            allowed="root or password-less sudo; file systems of type dir need neither",
            next_step="allow one of them, measure directories instead (type: dir), or run `mountlab demo`, which does "
            "so by itself",
        )


def _check_programs(sweep: Sweep, box: Box, facts: BoxFacts) -> None:
    missing = [program for program in needed_programs(sweep) if facts.programs.unfit(program)]
    if missing:
        absent = [program.name for program in missing if program.name not in facts.programs.installed]
        unfit = [facts.programs.unfit(program) for program in missing if program.name not in absent]
        raise PlanError(
            f"the box lacks {', '.join(program.name for program in missing)}",
            where=f"box {box.name}",
            got="; ".join([*([f"not on its PATH: {', '.join(absent)}"] if absent else []), *unfit]),
            next_step=_how_to_get(missing, box, facts),
        )


def _how_to_get(missing: list[Program], box: Box, facts: BoxFacts) -> str:
    """Return the hints of missing programs without a package, and the verb that installs the others."""
    manager = facts.programs.package_manager
    hints = [program.hint for program in missing if program.by_hand(manager)]
    prepare = [f"mountlab box prepare {box.name}"] if len(hints) < len(missing) else []
    return "; ".join([*prepare, *hints])


def _check_filesystem(fs: Filesystem, sweep: Sweep, facts: BoxFacts) -> None:
    where = f"filesystems.{fs.name}"
    backed = fs.over or fs
    images = backed.images_bytes
    room, place = facts.storage.mount_root_free_bytes, facts.storage.mount_root
    if backed.image_dir:
        room, place = facts.surveyed.image_room.get(fs.name), backed.image_dir
    _check_size("image", images, room, f"{where}.image", f"free in {place}")
    key = "zram" if backed.zram_bytes else "image" if backed.image_bytes else "size"
    of_what = f"{MEMORY_SHARE:.0%} of the available memory"
    _check_size(key, _memory_of(backed, facts), _memory_room(facts), f"{where}.{key}", of_what)
    _check_workloads(fs, sweep, facts, where)


def _memory_of(fs: Filesystem, facts: BoxFacts) -> int:
    """Return the bytes of memory that a file system may fill: in memory itself, on a zram device (data may not
    compress), or on an image in memory."""
    in_memory = fs.image_dir is not None and fs.image_dir in facts.surveyed.memory_directories
    image = (fs.image_bytes or 0) * fs.members if in_memory else 0
    return (fs.size_bytes or 0 if FAMILIES[fs.type].in_memory else 0) + (fs.zram_bytes or 0) + image


def _memory_room(facts: BoxFacts) -> int | None:
    memory = facts.memory.available_bytes
    return memory and int(memory * MEMORY_SHARE)


def _check_kernel(fs: Filesystem, facts: BoxFacts, where: str) -> None:
    kinds = (fs.type, *((fs.over.type,) if fs.over else ()))
    needed = tuple(kernel_type for kind in kinds for kernel_type in FAMILIES[kind].kernel_types)
    if absent := facts.kernel.lacks(needed):
        allowed = ", ".join(sorted(facts.kernel.filesystems or ()))
        lacking = next(FAMILIES[kind] for kind in kinds if absent[0] in FAMILIES[kind].kernel_types)
        raise PlanError(
            f"the kernel of the box has no {absent[0]}",
            where=where,
            got=fs.type,
            allowed=allowed,
            next_step=lacking.kernel_hint,
        )
    features = facts.kernel.features
    if (fs.over or fs).zram_bytes and features is not None and "zram" not in features:
        raise PlanError("the kernel of the box has no zram", where=f"{where}.zram", got=f"Linux {facts.kernel.release}")
    modules = layer_modules(fs.over or fs) if features is not None else ()
    for module in (module for module in modules if module not in (features or ())):
        raise PlanError(
            f"the kernel of the box has no {module}",
            where=f"{where}.stack",
            got=f"Linux {facts.kernel.release}, with {', '.join(features or ())}",
            allowed="layers whose modules it has",
            next_step="try it in the virtual box: --box vm",
        )


def _check_scratch(sweep: Sweep, box: Box) -> None:
    devices = {scratch.name: scratch.device for scratch in box.scratch}
    for fs in sweep.filesystems:
        backed = fs.over or fs
        for name in backed.scratch:
            key = "device" if name in backed.devices else "journal_device"
            _check_device(backed, f"filesystems.{fs.name}.{key}", name, devices, box)


def _check_device(fs: Filesystem, where: str, name: str, devices: Mapping[str, str], box: Box) -> None:
    memory = fs.type == "pmfs"
    if name not in devices:
        example = f"{MEMORY}0x100000000" if memory else "/dev/disk/by-id/..."
        raise UnsafeError(
            "the box file lists no such scratch device",
            where=where,
            got=name,
            allowed=", ".join(devices) or "none is listed",
            next_step=f"params/boxes/{box.name}.yml: scratch: {{{name}: {example}}}",
        )
    if devices[name].startswith(MEMORY) != memory:
        raise PlanError(
            f"{fs.type} cannot lie on this scratch device",
            where=where,
            got=f"{name}: {devices[name]}",
            allowed=f"{MEMORY}0x... for pmfs" if memory else "a block device; memory:0x... is for pmfs",
        )


def _check_workloads(fs: Filesystem, sweep: Sweep, facts: BoxFacts, where: str) -> None:
    family = FAMILIES[fs.type]
    capacity = family.capacity_bytes(fs)
    room = facts.surveyed.room.get(fs.name) if capacity is None else capacity
    target = Target(kind="device") if family.mounted_as(fs) == BLOCK_DEVICE else FILES
    for workload in sweep.workloads:
        if refusal(fs, workload) or not sweep.has_cell(cell_id(fs.name, workload.label)):
            continue
        needs = TOOLS[workload.tool].space_bytes(workload, target)
        for neighbour in neighbours_of(sweep, workload):
            if place_of(sweep, neighbour, fs).name == fs.name:
                needs += TOOLS[neighbour.workload.tool].space_bytes(neighbour.workload)
        taken = sweep.states[workload.state].taken if workload.state in sweep.states else 0.0
        left, of_what = room and int(room * (1 - taken)), f"room in {where}"
        of_what += f" beside the {taken:.0%} that the state {workload.state} takes" if taken else ""
        _check_size(f"{workload.label} writes", needs, left, f"workloads.{workload.name}", of_what)


def _check_sources(sweep: Sweep, facts: BoxFacts) -> None:
    """Raise PlanError where random data to copy from would not fit into the box's memory, or would not lie there."""
    for workload in sweep.workloads:
        tool = TOOLS[workload.tool]
        size = tool.source_bytes(workload)
        if not size:
            continue
        option = "data" if "data" in tool.options else "tool"
        where, fstype = f"workloads.{workload.name}.{option}", facts.storage.output_root_fstype
        if fstype not in (None, "tmpfs", "ramfs"):
            raise PlanError(
                "random data would be copied from a disk, whose speed would be in the figure",
                where=where,
                got=f"output_root {facts.storage.output_root} on {fstype}",
                allowed="an output_root in memory (tmpfs)",
                next_step="set output_root in the box file" + (", or write data: zeros" if option == "data" else ""),
            )
        room = facts.storage.output_root_free_bytes
        _check_size("random data", size, room, where, f"free in {facts.storage.output_root}")


def _check_owners(sweep: Sweep, box: Box, facts: BoxFacts) -> None:
    """Raise PlanError where a directory would be given to another account by one that is not root."""
    owners = {w.name: w.options["owner"] for w in sweep.workloads if w.tool == "command" and "owner" in w.options}
    for name, owner in owners.items() if not facts.rights.as_root else ():
        raise PlanError(
            "only root gives a directory to another account",
            where=f"workloads.{name}.owner",
            got=f"{owner}, on box {box.name} as {facts.rights.user} with the rights: {facts.rights.level}",
            allowed="root or password-less sudo on the box",
            next_step="leave `owner` out, and let the command run as the user who logs in",
        )


def _check_size(subject: str, needs: int | None, room: int | None, where: str, of_what: str) -> None:
    if needs is not None and room is not None and needs > room:
        raise PlanError(
            f"too large: {subject} {format_bytes(float(needs))}",
            where=where,
            got=format_bytes(float(needs)),
            allowed=f"at most {format_bytes(float(room))} ({of_what})",
            next_step="make it smaller, or the file system larger",
        )

"""From a sweep and the facts of a box to the plan: each file system with its steps, and each trial with its command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

from mountlab.checks import stays_in_memory
from mountlab.checks.asked import cache_state
from mountlab.core.box_facts import BoxFacts
from mountlab.core.held import Lease
from mountlab.core.model import Box, Cell, Filesystem, Neighbour, Place, Program, Step, StepRole, Sweep, Workload
from mountlab.core.names import DIAGNOSTIC, PROFILED
from mountlab.core.seeds import derived
from mountlab.core.state import NEW, State
from mountlab.filesystems import FAMILIES, guarded_steps
from mountlab.filesystems.base import evidence_step, script_step
from mountlab.filesystems.evidence import split_options
from mountlab.filesystems.guard import uuid_for
from mountlab.filesystems.members import planned_array
from mountlab.filesystems.overlay import BELOW
from mountlab.filesystems.read_back import control_ids, wants_second_control
from mountlab.programs import TOOLS
from mountlab.programs.precondition import WINDOW
from mountlab.sweep.beside import (
    AwayNeighbours,
    PlannedNeighbour,
    filesystems_beside,
    neighbour_refusal,
    neighbours_of,
    place_of,
    planned_neighbour,
)
from mountlab.sweep.clients import PlannedClient, check_sockets, client_mounts, endpoints, planned_client, refusal
from mountlab.sweep.design import MountGroup, diagnostic_mount_groups, mount_groups, profiled_mount_groups
from mountlab.sweep.feasible import check_feasible
from mountlab.sweep.plan import Plan, PlannedMount, PlannedMountGroup, PlannedTrial
from mountlab.sweep.planned_state import PlannedState, first_origin, made_states, mount_s, planned_state, state_id
from mountlab.sweep.profiled import PROFILING_S, profiled
from mountlab.sweep.run_directories import marked, open_run_step
from mountlab.sweep.traced import TRACING_S, kernel_symbols_step, traced_head
from mountlab.sweep.trial_head import TrialHead
from mountlab.sweep.untrusted import check_plain
from mountlab.tools.base import Command

FILLS = 2
"""How often a file is read before warm reads of it are measured. On its second read Linux moves each page to its active
list, which made a second read of tmpfs take 1.4 to 1.9 times as long as the first or the third."""


def make_plan(sweep: Sweep, box: Box, facts: BoxFacts, *, run_id: str, seed: int, owner: str) -> Plan:
    """Return everything that a run of `sweep` on `box` will do. `owner` is the name that holds the box meanwhile.

    Raises PlanError where the box cannot run it: rights, programs, kernel, sizes, scratch devices.
    """
    check_plain([run_id], "name of the run")  # directories of the box get it
    check_feasible(sweep, box, facts)
    planner = Planner(sweep, box, facts, run_id, owner, seed)
    order, diagnostic = mount_groups(sweep, seed), diagnostic_mount_groups(sweep, seed)
    traced = bool(sweep.design.explain)
    lasting = {
        (number, fs.name): planner.mount(f"m000{f'.{number}' if number else ''}-{fs.name}", fs, diagnostic=traced)
        for number, stage in enumerate(sweep.stages if sweep.design.fresh_filesystem == "never" else ())
        for fs in stage.sweep.filesystems
    }
    orders = (order, diagnostic, profiled_mount_groups(sweep, seed))
    groups = tuple(group for part in orders for group in _planned_groups(planner, part, lasting))
    client_endpoints = tuple(endpoint for group in groups for trial in group.trials for endpoint in trial.endpoints)
    check_sockets(client_endpoints, planner.clients)
    controls = tuple(control for fs in sweep.filesystems for control in planner.controls(fs))
    return planner.plan(controls=controls, lasting=tuple(lasting.values()), mount_groups=groups)


def _planned_groups(
    planner: Planner, order: tuple[MountGroup, ...], lasting: Mapping[tuple[int, str], PlannedMount]
) -> Iterator[PlannedMountGroup]:
    number = 0
    for index, group in enumerate(order, start=1):
        name = f"{_letter(group, 'm')}{index:03d}-{group.filesystem.name}"
        beside = filesystems_beside(planner.sweep, group.filesystem, (cell.workload for cell in group.cells))
        fresh = (
            None
            if lasting
            else planner.mount(
                name,
                group.filesystem,
                group.state,
                diagnostic=group.diagnostic and not group.profiled,
                beside=beside,
            )
        )
        mount = fresh or lasting[group.stage, group.filesystem.name]
        trials = tuple(planner.trial(number + i, group, cell, mount) for i, cell in enumerate(group.cells, start=1))
        number += len(trials)
        yield PlannedMountGroup(mount=fresh, trials=trials)


def _letter(group: MountGroup, otherwise: str) -> str:
    """Return the first letter of the ids of trials, or of mounts."""
    return PROFILED if group.profiled else DIAGNOSTIC if group.diagnostic else otherwise


@dataclass(frozen=True)
class Planner:
    """Plans the mounts and trials of one run on one box."""

    sweep: Sweep
    box: Box
    facts: BoxFacts
    run_id: str
    owner: str
    seed: int

    @property
    def run_dir(self) -> str:
        return f"{self.facts.storage.roots[0]}/{self.run_id}"

    @property
    def lease(self) -> Lease:
        mount_root, output_root = self.facts.storage.roots
        return Lease(run_id=self.run_id, owner=self.owner, mount_root=mount_root, output_root=output_root)

    @property
    def clients(self) -> tuple[PlannedClient, ...]:
        facts = self.facts.clients
        return tuple(planned_client(name, facts[name], self.box.name, self.lease) for name in self.sweep.clients)

    def plan(
        self,
        *,
        controls: tuple[PlannedMount, ...] = (),
        lasting: tuple[PlannedMount, ...] = (),
        mount_groups: tuple[PlannedMountGroup, ...] = (),
    ) -> Plan:
        """Return the plan of a run with these mounts and groups."""
        return Plan(
            sweep=self.sweep,
            box=self.box,
            run_id=self.run_id,
            seed=self.seed,
            privileged=self.facts.rights.privileged,
            lease=self.lease,
            opening=open_run_step(self.lease),
            controls=controls,
            lasting=lasting,
            mount_groups=mount_groups,
            states=tuple(self.states.values()),
            user=str(self.facts.rights.user),
            clients=self.clients,
        )

    @cached_property
    def states(self) -> Mapping[tuple[str, str], PlannedState]:
        """The states that files make, by the name of the file system and of the state."""
        return {
            (fs.name, state.name): planned_state(self.sweep, self.facts, fs, state, self._making_place(fs, state))
            for fs, state in made_states(self.sweep).values()
            if not FAMILIES[fs.type].unavailable(fs, self.facts)
        }

    def _making_place(self, fs: Filesystem, state: State) -> Place:
        """Return where a state is made: its image is the one that is kept, in a directory that no mount removes."""
        place = self.place(fs, state_id(fs.name, state.name))
        directory, _, _ = place.image.rpartition("/")
        directory += f"+{state.name}" if fs.image_dir else ""
        image = f"{directory}/{fs.name}+{state.name}.img"
        return replace(place, image=image, origin=first_origin(self.sweep, fs, state.name))

    def place(self, fs: Filesystem, mount_id: str) -> Place:
        backed = fs.over or fs
        scratch = {device.name: device.device for device in self.box.scratch}
        identities = self.facts.surveyed.device_ids
        device_id, journal_id = (identities.get(name or "", "") for name in (backed.device, backed.journal_device))
        numbers = range(1, len(backed.stack) + 1)
        beside = f"{backed.image_dir}/mountlab-{self.run_id}-{fs.name}" if backed.image_dir else f"{self.run_dir}/img"
        return Place(
            run_id=self.run_id,
            run_dir=self.run_dir,
            mountpoint=f"{self.run_dir}/mnt/{fs.name}",
            image=f"{beside}/{fs.name}.img",
            uuid=uuid_for(device_id, self.run_id, mount_id),
            journal_uuid=uuid_for(journal_id, self.run_id, mount_id, "journal"),
            device=scratch.get(backed.device or ""),
            device_id=device_id,
            more_devices=tuple((scratch.get(name, ""), identities.get(name, "")) for name in backed.more_devices),
            layer_uuids=tuple(uuid_for("", self.run_id, mount_id, f"layer{number}") for number in numbers),
            journal=scratch.get(backed.journal_device or ""),
            journal_id=journal_id,
            peers=tuple(self.facts.surveyed.peers.get(fs.name, ())),
        )

    def mount(
        self,
        mount_id: str,
        fs: Filesystem,
        state: str = "",
        *,
        diagnostic: bool = False,
        beside: tuple[Filesystem, ...] = (),
    ) -> PlannedMount:
        """Return the plan of one mount, in a state where there is one; for diagnostic trials with the step that keeps
        the kernel's symbols. `beside`: other file systems that are mounted meanwhile, fresh."""
        family, made = FAMILIES[fs.type], self.states.get((fs.name, state))
        origin = made.origin if made else first_origin(self.sweep, fs, state) if state else NEW
        place = replace(self.place(fs, made.id if made else mount_id), origin=origin)
        target = family.target_of(fs, place)
        read_back = evidence_step(target.device or family.root_of(fs, place), *family.evidence_devices(fs))
        symbols = (kernel_symbols_step(),) if diagnostic else ()
        steps = (*guarded_steps(fs, place), read_back, *symbols)
        return PlannedMount(
            id=mount_id,
            filesystem=fs,
            place=place,
            steps=tuple(marked(step, self.run_id) for step in steps),
            root=family.root_of(fs, place),
            skip_reason=family.unavailable(fs, self.facts) or "",
            clients=client_mounts(self.clients, fs, place),
            state=state,
            made_state=made,
            expected_s=mount_s(self.sweep, self.facts, fs, state, made),
            beside=tuple(replace(self.mount(f"{mount_id}.{other.name}", other), clients=()) for other in beside),
        )

    def controls(self, fs: Filesystem) -> Iterator[PlannedMount]:
        """Yield the control of a file system, which is made without the options of the sweep, so that these can be
        distinguished from the kernel's defaults. And a second one where only a difference can prove an option."""
        family, bare = FAMILIES[fs.type], _without_options(fs)
        if not family.controlled or family.unavailable(fs, self.facts) or fs == bare:
            return
        first, second = control_ids(fs.name)
        control = replace(self.mount(first, bare), clients=())
        yield replace(control, steps=tuple(self._with_probes(fs, control.steps)))
        if wants_second_control(fs):
            yield replace(self.mount(second, bare), clients=())

    def _with_probes(self, fs: Filesystem, steps: tuple[Step, ...]) -> Iterator[Step]:
        """Yield the steps of a control, and probes of the kernel: before each mount, whether it refuses an unknown
        option, and after its evidence, what each option shows alone."""
        for step in steps:
            mounts = [other for other in steps if other.role is StepRole.MOUNT and other.below == step.below]
            if step.role not in (StepRole.MOUNT, StepRole.EVIDENCE) or not mounts:
                yield step  # without a mount: below an overlay may lie a directory that was there before
                continue
            suffix = BELOW if step.below else ""
            mount = mounts[0].argv[mounts[0].argv.index("timed.sh") + 1 :]
            options_of = fs.over if step.below and fs.over else fs
            words = [word for option in options_of.options for word in split_options(option)]
            if step.role is StepRole.MOUNT:
                why = "is an unknown option refused?"
                yield marked(script_step("strict.sh", *mount, why=why, keep=f"strict{suffix}.txt"), self.run_id)
                yield step
                continue
            yield step
            # The two mounts judge one option; some options of an overlay leave its layers unfit for the next mount.
            if len(words) > 1 and not options_of.over:
                why = "what does each show alone?"
                alone = script_step("alone.sh", "\n".join(words), *mount, why=why, keep=f"alone{suffix}.txt")
                yield marked(alone, self.run_id)

    def trial(
        self, number: int, group: MountGroup, cell: Cell, mount: PlannedMount, precondition: int = 0, rate: float = 0.0
    ) -> PlannedTrial:
        """Plan a trial, or a round of its precondition, which differs in its seed. `rate`: the arrival rate of a trial
        of a search, in requests per second; 0: the first rate of the search."""
        trial_id = f"{_letter(group, 't')}{number:04d}"
        output = f"{self.lease.output_dir}/{trial_id}"
        tool, fs, design = TOOLS[cell.workload.tool], mount.filesystem, self.sweep.design
        in_place = FAMILIES[fs.type].in_place
        directory = mount.root if in_place else f"{mount.root}/{trial_id}"
        seed = self._seed(group, cell, precondition)
        client_endpoints = endpoints(cell.workload, mount.clients, mount.root, output, seed)
        in_memory = stays_in_memory(fs, self.facts)
        target = FAMILIES[fs.type].target_of(fs, mount.place)
        target = replace(
            target,
            endpoints=client_endpoints,
            seed=seed,
            in_memory=in_memory,
            fstype=fs.type,
            rate=rate,
            array=planned_array(fs, mount.place),
        )
        cache = cache_state(cell.workload, design)
        workload = replace(cell.workload, options={**cell.workload.options, "cache": cache})
        programs = tool.programs_on(fs.type, cell.workload)
        command = _as_installed(tool.command(workload, directory, output, target), programs, self.facts)
        command = replace(command, timeout_s=design.trial_timeout_s)
        # Preparation (laying out a file) may take as long as the measured part again.
        limit_s = 2 * command.timeout_s + 60
        ready = _ready(command, cache, in_memory=in_memory)
        beside = tuple(self._beside(cell.workload, mount, output, seed))
        is_diagnostic = group.diagnostic and not precondition
        traced, profiles = is_diagnostic and not group.profiled, is_diagnostic and group.profiled
        measured = replace(command, argv=profiled(command.argv, output, directory)) if profiles else command
        head = TrialHead(
            sweep=self.sweep,
            facts=self.facts,
            filesystem=fs,
            place=mount.place,
            workload=workload,
            programs=programs,
            command=measured,
            ready=ready,
            directory=f"{output}.files" if in_place else directory,
            output=output,
            beside=beside,
        ).text()
        expected_s = tool.expected_s(cell.workload) * (1 + min(WINDOW, cell.workload.precondition))
        return PlannedTrial(
            trial_id=trial_id,
            block=group.block,
            warmup=group.warmup,
            cell=cell,
            mount=mount.id,
            command=command,
            run_id=self.run_id,
            head=f"{head}\n{traced_head(cell.workload, command.timeout_s, self.facts)}" if traced else head,
            timeout_s=limit_s,
            expected_s=expected_s + TRACING_S * traced + PROFILING_S * profiles,
            ready=ready,
            endpoints=client_endpoints,
            beside=beside,
            away=tuple(self._away(cell.workload, mount, trial_id, seed, limit_s)),
            skip_reason=mount.skip_reason or self._refusal(fs, cell.workload),
            diagnostic=is_diagnostic,
            profiled=profiles,
            redrawn=partial(self.trial, number, group, cell, mount) if cell.workload.precondition else None,
            at_rate=partial(self.trial, number, group, cell, mount, 0) if cell.workload.search else None,
        )

    def _beside(self, workload: Workload, mount: PlannedMount, output: str, seed: int) -> Iterator[PlannedNeighbour]:
        """Yield what runs on the box beside a trial. `output`: the directory of the trial's output."""
        for neighbour in neighbours_of(self.sweep, workload):
            fs = place_of(self.sweep, neighbour, mount.filesystem)
            if not neighbour.place.client:
                root = FAMILIES[fs.type].root_of(fs, self.place(fs, mount.id))
                yield self._neighbour(neighbour, fs, root, output, seed, self.sweep.design.trial_timeout_s)

    def _away(
        self, workload: Workload, mount: PlannedMount, trial_id: str, seed: int, limit_s: float
    ) -> Iterator[AwayNeighbours]:
        """Yield what runs on each client that sees the file system beside a trial, which takes `limit_s` at most."""
        roots = {seen.client: seen.root for seen in mount.clients}
        for client in self.clients:
            output = f"{client.lease.output_dir}/{trial_id}"
            planned = tuple(
                self._neighbour(neighbour, mount.filesystem, roots[client.name], output, seed, limit_s)
                for neighbour in neighbours_of(self.sweep, workload)
                if neighbour.place.client == client.name in roots
            )
            if planned:
                yield AwayNeighbours(client=client.name, run_id=client.lease.run_id, output=output, neighbours=planned)

    def _neighbour(
        self, neighbour: Neighbour, fs: Filesystem, root: str, output: str, seed: int, limit_s: float
    ) -> PlannedNeighbour:
        """Plan one neighbour (planned_neighbour), with the programs of the machine on which it runs."""
        client, in_memory = neighbour.place.client, stays_in_memory(fs, self.facts)
        planned = planned_neighbour(
            neighbour, root, output, limit_s=limit_s, seed=seed, in_memory=in_memory, fstype=fs.type
        )
        programs = TOOLS[neighbour.workload.tool].programs_on(fs.type, neighbour.workload)
        facts = self.facts.clients[client] if client else self.facts
        return replace(planned, command=_as_installed(planned.command, programs, facts))

    def _refusal(self, fs: Filesystem, workload: Workload) -> str:
        """Return why a workload cannot run on a file system, or what is to run beside it; '' where both can."""
        beside = (
            neighbour_refusal(fs, place_of(self.sweep, neighbour, fs), neighbour, self.facts)
            for neighbour in neighbours_of(self.sweep, workload)
        )
        return refusal(fs, workload) or next(filter(None, beside), "")

    def _seed(self, group: MountGroup, cell: Cell, precondition: int) -> int:
        """Return the seed of a block, or of a round before a trial of it. Cells of a search have arrivals of their
        own: the bets on two searches must be independent."""
        names: tuple[str | int, ...] = ()
        if cell.workload.search:
            names = ("cell", cell.id)
        elif precondition:
            names = ("round", precondition)
        kind = "profile" if group.profiled else "explain" if group.diagnostic else "block"
        return derived(self.seed, kind, group.block, *names)


def _as_installed(command: Command, programs: tuple[Program, ...], facts: BoxFacts) -> Command:
    """Return a command with the path of each program that does not lie on the box's PATH."""
    paths = {program.name: facts.programs.path(program.name) for program in programs if program.places}

    def full(argv: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(paths.get(word) or word for word in argv)

    return replace(command, argv=full(command.argv), prepare=tuple(full(argv) for argv in command.prepare))


def _ready(command: Command, cache: str, *, in_memory: bool) -> tuple[tuple[str, ...], ...]:
    """Return the commands between the dropping of the caches and the measured command. A file in memory cannot be cold:
    its pages are not dropped, only moved to the inactive list. So it is read as often as for a warm read, and both are
    measured in the same state."""
    if cache == "as_is":
        return ()
    fills = cache == "warm" or in_memory
    return (*command.drop, *(command.fill * FILLS if fills else ()))


def _without_options(fs: Filesystem) -> Filesystem:
    """Return a file system without the sweep's options of mkfs and mount, and without tunables."""
    return replace(fs, options=(), mkfs=(), tunables={}, over=_without_options(fs.over) if fs.over else None)

"""The plan: every command that a run will send to the box, in order, before anything is changed."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.resources import files
from itertools import groupby

from mountlab.box.containment import CGROUPS, namespaces
from mountlab.box.helper import COMMAND as HELPER
from mountlab.checks import asks_direct, asks_lazy_init, fills_memory, stays_in_memory
from mountlab.checks.asked import device_reads
from mountlab.checks.outcome import LARGEST_ARCHIVE, LARGEST_OUTPUT
from mountlab.core.box_facts import BoxFacts
from mountlab.core.model import Box, Cell, ClientEndpoint, Filesystem, Lease, Place, Program, Step, StepRole, Sweep
from mountlab.core.names import DIAGNOSTIC
from mountlab.core.seeds import derived
from mountlab.filesystems import FAMILIES, guarded_steps, is_made
from mountlab.filesystems.base import BLOCK_DEVICE, evidence_step, script_step
from mountlab.filesystems.evidence import split_options
from mountlab.filesystems.guard import uuid_for
from mountlab.filesystems.overlay import BELOW
from mountlab.filesystems.read_back import control_ids, wants_second_control
from mountlab.sweep.clients import (
    ClientMount,
    PlannedClient,
    check_sockets,
    client_mounts,
    endpoints,
    planned_client,
    refusal,
)
from mountlab.sweep.design import WholePlot, diagnostic_whole_plots, whole_plots
from mountlab.sweep.feasible import check_feasible
from mountlab.sweep.run_directories import marked, open_run_step
from mountlab.sweep.traced import TRACING_S, kernel_symbols_step, traced_head
from mountlab.sweep.untrusted import check_plain
from mountlab.tools import TOOLS
from mountlab.tools.base import Cache, Command
from mountlab.tools.precondition import WINDOW

FILLS = 2
"""How often a file is read before warm reads of it are measured. On its second read Linux moves each page to its active
list, which made a second read of tmpfs take 1.4 to 1.9 times as long as the first or the third."""
MOUNT_S = 0.3
"""Guess at the time to make, mount and unmount one small file system, for the plan."""


@dataclass(frozen=True, kw_only=True)
class PlannedMount:
    """One making of one file system: its steps, evidence last, and the directory for trials."""

    id: str
    filesystem: Filesystem
    place: Place
    steps: tuple[Step, ...]
    root: str
    skip: str = ""
    """Why it is not made at all on this box."""
    clients: tuple[ClientMount, ...] = ()
    """Who else is to see it, where workloads have clients."""


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
    """What stands in the script before contain.sh and trial.sh: their variables and functions."""
    timeout_s: float
    expected_s: float
    ready: tuple[tuple[str, ...], ...] = ()
    """Commands after the box's caches were dropped, right before the measured one."""
    endpoints: tuple[ClientEndpoint, ...] = ()
    """The clients that drive it, where that is not the box itself."""
    skip: str = ""
    """Why it is not run: its file system cannot be mounted on this box, or cannot take such a workload."""
    diagnostic: bool = False
    """Whether the kernel is traced meanwhile: for the cause of a figure, and never counted."""
    redrawn: Callable[[int], PlannedTrial] | None = field(default=None, compare=False, repr=False)
    """The same trial as the given round of its precondition, with a seed of its own; None where it has none."""
    at_rate: Callable[[float], PlannedTrial] | None = field(default=None, compare=False, repr=False)
    """The same trial at the given arrival rate, of a search; None of any other trial."""

    @property
    def argv(self) -> tuple[str, ...]:
        """The command for the box. Made when it is asked for: the script is the longest part of a large plan."""
        script = f"{self.head}\n{_trial_script(traced=self.diagnostic)}"
        return ("env", f"MOUNTLAB_RUN={self.run_id}", "sh", "-c", script, self.trial_id)


_LARGEST = {"largest_output": str(LARGEST_OUTPUT), "largest_archive": str(LARGEST_ARCHIVE)}
_TRIAL = (("box", "contain.sh"), ("sweep", "trial.sh"))


@cache
def _trial_script(*, traced: bool) -> str:
    sampling = files("mountlab.sweep").joinpath("sampler.sh").read_text()
    parts = (("sweep", "trace.sh"), *_TRIAL) if traced else _TRIAL
    functions = (files(f"mountlab.{room}").joinpath(name).read_text() for room, name in parts)
    return "\n".join([f"sampling={shlex.quote(sampling)}", *functions])


@cache
def _hand_over() -> str:
    return files("mountlab.sweep").joinpath("hand_over.sh").read_text()


@dataclass(frozen=True, kw_only=True)
class PlannedPlot:
    """Trials on one mount. `mount` is None where the mount lasts for the whole run."""

    mount: PlannedMount | None
    trials: tuple[PlannedTrial, ...]

    @property
    def block(self) -> int:
        return self.trials[0].block

    @property
    def diagnostic(self) -> bool:
        return self.trials[0].diagnostic


@dataclass(frozen=True, kw_only=True)
class PlannedBlock:
    """The whole plots of one block. Diagnostic blocks have numbers of their own."""

    number: int
    diagnostic: bool
    whole_plots: tuple[PlannedPlot, ...]

    @property
    def trials(self) -> Iterator[PlannedTrial]:
        return (trial for plot in self.whole_plots for trial in plot.trials)


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
    whole_plots: tuple[PlannedPlot, ...]
    user: str = ""
    """Who logs in on the box."""
    clients: tuple[PlannedClient, ...] = ()
    """Further boxes that the run holds."""

    @property
    def trials(self) -> tuple[PlannedTrial, ...]:
        return tuple(trial for whole_plot in self.whole_plots for trial in whole_plot.trials)

    @property
    def blocks(self) -> tuple[PlannedBlock, ...]:
        """The blocks in the order in which they run."""
        grouped = groupby(self.whole_plots, key=lambda plot: (plot.block, plot.diagnostic))
        return tuple(
            PlannedBlock(number=number, diagnostic=diagnostic, whole_plots=tuple(plots))
            for (number, diagnostic), plots in grouped
        )

    @property
    def counted_blocks(self) -> tuple[PlannedBlock, ...]:
        """All but the diagnostic ones; blocks of the warm-up are among them."""
        return tuple(block for block in self.blocks if not block.diagnostic)

    @property
    def mounts(self) -> tuple[PlannedMount, ...]:
        return self.lasting + tuple(whole_plot.mount for whole_plot in self.whole_plots if whole_plot.mount)

    @property
    def skipped(self) -> dict[str, str]:
        """Cell to the reason for which none of its trials is run."""
        return {trial.cell.id: trial.skip for trial in self.trials if trial.skip}

    @property
    def expected_s(self) -> float:
        """A guess at the whole duration in seconds; with a stopping rule, of all the blocks that there may be."""
        return self.expected_until_s(self.sweep.design.repeats)

    def expected_until_s(self, block: int) -> float:
        """Return the same where this is the last block but for diagnostic ones."""
        own = [each for each in self.whole_plots if each.block <= block and not each.diagnostic]
        return _expected_s(own, (*self.controls, *self.lasting)) + self.diagnostic_s

    @property
    def diagnostic_s(self) -> float:
        """A guess at what the diagnostic blocks add to that."""
        return _expected_s([each for each in self.whole_plots if each.diagnostic], ())

    @property
    def fresh_more_s(self) -> float:
        """A guess at what it would take beyond this plan to make every file system in each block; 0 where that is done
        already."""
        made = sum(is_made(mount.filesystem) and not mount.skip for mount in self.lasting)
        return MOUNT_S * made * (len({(each.diagnostic, each.block) for each in self.whole_plots}) - 1)

    def commands(self) -> tuple[tuple[str, ...], ...]:
        """Return every command of an undisturbed run, in order. '{device}' stands for the loop device that losetup
        names."""
        return tuple(self._commands())

    def _commands(self) -> Iterator[tuple[str, ...]]:
        yield self.opening.argv
        for control in self.controls:
            yield from _do(control)
            yield from _undo(control)
        yield from (argv for mount in self.lasting for argv in _do(mount))
        for whole_plot in self.whole_plots:
            trials = [trial.argv for trial in whole_plot.trials if not trial.skip]
            if trials:
                yield from _do(whole_plot.mount)
                yield from trials
                yield from _undo(whole_plot.mount)
        yield from (argv for mount in reversed(self.lasting) for argv in _undo(mount))
        assert self.opening.undo is not None
        yield self.opening.undo


def _expected_s(whole_plots: Sequence[PlannedPlot], mounts: tuple[PlannedMount, ...]) -> float:
    """Return a guess at how long these take, and the making of further mounts."""
    made = (*mounts, *(whole_plot.mount for whole_plot in whole_plots if whole_plot.mount))
    trials = [trial for whole_plot in whole_plots for trial in whole_plot.trials if not trial.skip]
    return MOUNT_S * sum(not mount.skip for mount in made) + sum(trial.expected_s for trial in trials)


def _do(mount: PlannedMount | None) -> Iterator[tuple[str, ...]]:
    return (step.argv for step in (mount.steps if mount and not mount.skip else ()))


def _undo(mount: PlannedMount | None) -> Iterator[tuple[str, ...]]:
    return (step.undo for step in reversed(mount.steps if mount and not mount.skip else ()) if step.undo)


def make_plan(sweep: Sweep, box: Box, facts: BoxFacts, *, run_id: str, seed: int, owner: str) -> Plan:
    """Return everything that a run of `sweep` on `box` will do. `owner` is the name that holds the box meanwhile.

    Raises PlanError where the box cannot run it: rights, programs, kernel, sizes, scratch devices.
    """
    check_plain([run_id], "name of the run")  # directories of the box get it
    check_feasible(sweep, box, facts)
    planner = Planner(sweep, box, facts, run_id, owner, seed)
    order, diagnostic = whole_plots(sweep, seed), diagnostic_whole_plots(sweep, seed)
    once = sweep.filesystems if sweep.design.fresh_filesystem == "never" else ()
    traced = bool(sweep.design.explain)
    lasting = {
        (number, fs.name): planner.mount(f"m000{f'.{number}' if number else ''}-{fs.name}", fs, diagnostic=traced)
        for number, stage in enumerate(sweep.stages)
        for fs in (stage.sweep.filesystems if once else ())
    }
    plots = (*_planned_plots(planner, order, lasting), *_planned_plots(planner, diagnostic, lasting))
    check_sockets(
        tuple(endpoint for plot in plots for trial in plot.trials for endpoint in trial.endpoints),
        planner.clients,
    )
    controls = tuple(each for fs in sweep.filesystems for each in planner.controls(fs))
    return planner.plan(controls=controls, lasting=tuple(lasting.values()), whole_plots=plots)


def _planned_plots(
    planner: Planner, order: tuple[WholePlot, ...], lasting: Mapping[tuple[int, str], PlannedMount]
) -> Iterator[PlannedPlot]:
    number = 0
    for index, plot in enumerate(order, start=1):
        name = f"{DIAGNOSTIC if plot.diagnostic else 'm'}{index:03d}-{plot.filesystem.name}"
        fresh = None if lasting else planner.mount(name, plot.filesystem, diagnostic=plot.diagnostic)
        mount = fresh or lasting[plot.stage, plot.filesystem.name]
        trials = tuple(planner.trial(number + i, plot, cell, mount) for i, cell in enumerate(plot.cells, start=1))
        number += len(trials)
        yield PlannedPlot(mount=fresh, trials=trials)


@dataclass(frozen=True)
class Planner:
    """What every command of one run is made from."""

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
        known = self.facts.clients
        return tuple(planned_client(name, known[name], self.box.name, self.lease) for name in self.sweep.clients)

    def plan(
        self,
        *,
        controls: tuple[PlannedMount, ...] = (),
        lasting: tuple[PlannedMount, ...] = (),
        whole_plots: tuple[PlannedPlot, ...] = (),
    ) -> Plan:
        """The plan of a run that does this."""
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
            whole_plots=whole_plots,
            user=str(self.facts.rights.user),
            clients=self.clients,
        )

    def place(self, fs: Filesystem, mount_id: str) -> Place:
        backed = fs.over or fs
        scratch = {each.name: each.device for each in self.box.scratch}
        identities = self.facts.surveyed.device_ids
        device_id, journal_id = (identities.get(name or "", "") for name in (backed.device, backed.journal_device))
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
            journal=scratch.get(backed.journal_device or ""),
            journal_id=journal_id,
            peers=tuple(self.facts.surveyed.peers.get(fs.name, ())),
        )

    def mount(self, mount_id: str, fs: Filesystem, *, diagnostic: bool = False) -> PlannedMount:
        """Return a making of a file system; of one for diagnostic trials with what names the kernel's addresses."""
        place, family = self.place(fs, mount_id), FAMILIES[fs.type]
        target = family.target_of(fs, place)
        read_back = evidence_step(target.device or family.root_of(fs, place), *family.evidence_devices(fs))
        more = (kernel_symbols_step(),) if diagnostic else ()
        steps = tuple(self._marked(step) for step in (*guarded_steps(fs, place), read_back, *more))
        return PlannedMount(
            id=mount_id,
            filesystem=fs,
            place=place,
            steps=steps,
            root=family.root_of(fs, place),
            skip=family.unavailable(fs, self.facts) or "",
            clients=client_mounts(self.clients, fs, place),
        )

    def control(self, fs: Filesystem) -> PlannedMount:
        """Return the same file system without the options of the sweep, and whether it accepts an unknown option."""
        plain = self.mount(control_ids(fs.name)[0], _plain(fs))
        steps = [each for step in plain.steps for each in self._questions(fs, step, plain.steps)]
        return replace(plain, steps=tuple(steps), clients=())

    def controls(self, fs: Filesystem) -> Iterator[PlannedMount]:
        """Yield the control of a file system whose options can be distinguished from the kernel's defaults; and a
        second making of it where only a difference can prove an option."""
        family = FAMILIES[fs.type]
        if family.controlled and not family.unavailable(fs, self.facts) and fs != _plain(fs):
            yield self.control(fs)
            if wants_second_control(fs):
                yield replace(self.mount(control_ids(fs.name)[1], _plain(fs)), clients=())

    def _questions(self, fs: Filesystem, step: Step, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """Return a step of a control, with what is asked of the kernel before a mount, and after its evidence."""
        mounts = [other for other in steps if other.role is StepRole.MOUNT and other.below == step.below]
        if step.role not in (StepRole.MOUNT, StepRole.EVIDENCE) or not mounts:
            return (step,)  # without a mount: below an overlay may lie a directory that was there before
        suffix = BELOW if step.below else ""
        mount = mounts[0].argv[mounts[0].argv.index("timed.sh") + 1 :]
        of = fs.over if step.below and fs.over else fs
        words = [word for option in of.options for word in split_options(option)]
        if step.role is StepRole.MOUNT:
            why = "is an unknown option refused?"
            return (self._marked(script_step("strict.sh", *mount, why=why, keep=f"strict{suffix}.txt")), step)
        # The two mounts judge one option; some options of an overlay leave its layers unfit for the next mount.
        if len(words) < 2 or of.over:
            return (step,)
        alone = script_step(
            "alone.sh", "\n".join(words), *mount, why="what does each show alone?", keep=f"alone{suffix}.txt"
        )
        return (step, self._marked(alone))

    def _marked(self, step: Step) -> Step:
        return marked(step, self.run_id)

    def trial(
        self,
        number: int,
        plot: WholePlot,
        cell: Cell,
        mount: PlannedMount,
        precondition: int = 0,
        rate: float = 0.0,
    ) -> PlannedTrial:
        """Return a trial; or that round of those that precede it, which differs in its seed. `rate`: of a search, the
        arrival rate that it has come to; the first one where it is 0."""
        trial_id = f"{DIAGNOSTIC if plot.diagnostic else 't'}{number:04d}"
        directory, output = f"{mount.root}/{trial_id}", f"{self.lease.output_dir}/{trial_id}"
        tool, family = TOOLS[cell.workload.tool], FAMILIES[mount.filesystem.type]
        series = "explain" if plot.diagnostic else "block"
        # Of a search each cell has arrivals of its own: the bets on two searches must be independent.
        own = ("cell", cell.id) if cell.workload.search else ("round", precondition) if precondition else ()
        seed = derived(self.seed, series, plot.block, *own)
        driven = endpoints(cell.workload, mount.clients, mount.root, output, seed)
        in_memory = stays_in_memory(mount.filesystem, self.facts)
        target = family.target_of(mount.filesystem, mount.place)
        target = replace(target, endpoints=driven, seed=seed, in_memory=in_memory, rate=rate)
        asked = cell.workload.options.get("cache")
        cache: Cache = asked or ("cold" if self.sweep.design.drop_caches else "as_is")  # type: ignore[assignment]
        workload = replace(cell.workload, options={**cell.workload.options, "cache": cache})
        programs = tool.programs_for(cell.workload)
        command = self._as_installed(tool.command(workload, directory, output, target), programs)
        command = replace(command, timeout_s=self.sweep.design.trial_timeout_s)
        ready = _ready(command, cache, in_memory=in_memory)
        traced = plot.diagnostic and not precondition
        head = self._head(command, ready, programs, cell, cache, mount, directory, output)
        head += f"\n{traced_head(cell.workload, command.timeout_s, self.facts)}" if traced else ""
        return PlannedTrial(
            trial_id=trial_id,
            block=plot.block,
            warmup=plot.warmup,
            cell=cell,
            mount=mount.id,
            command=command,
            run_id=self.run_id,
            head=head,
            # Preparation (laying out a file) may take as long as the measured part again.
            timeout_s=2 * command.timeout_s + 60,
            expected_s=tool.expected_s(cell.workload) * (1 + min(WINDOW, cell.workload.precondition))
            + (TRACING_S if traced else 0.0),
            ready=ready,
            endpoints=driven,
            skip=mount.skip or refusal(mount.filesystem, cell.workload) or "",
            diagnostic=traced,
            redrawn=partial(self.trial, number, plot, cell, mount) if cell.workload.precondition else None,
            at_rate=partial(self.trial, number, plot, cell, mount, 0) if cell.workload.search else None,
        )

    def _sampler(self) -> str:
        """Return the words of the shell that samples the counters inside a trial; '' where that is not wanted, or the
        box has none."""
        return (self.facts.programs.sampling_shell or "") if self.sweep.design.sample_every_s else ""

    def _reads(self, cell: Cell, mount: PlannedMount, cache: Cache) -> str:
        """Return what the device should deliver of the files (mountlab.checks.asked); '' where it is not asked."""
        fs = mount.filesystem
        of_files = FAMILIES[fs.type].mounted_as(fs) != BLOCK_DEVICE and not stays_in_memory(fs, self.facts)
        return device_reads(cell.workload, cache) if of_files else ""

    def _version(self, program: Program) -> tuple[str, ...]:
        path = self.facts.programs.path(program.name) if program.places else None
        return tuple(path if path and word == program.name else word for word in program.version)

    def _as_installed(self, command: Command, programs: tuple[Program, ...]) -> Command:
        """With the path of programs that do not lie on the box's PATH."""
        found = {p.name: self.facts.programs.path(p.name) for p in programs if p.places}

        def full(argv: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(found.get(word) or word for word in argv)

        return replace(command, argv=full(command.argv), prepare=tuple(full(argv) for argv in command.prepare))

    def _head(
        self,
        command: Command,
        ready: tuple[tuple[str, ...], ...],
        programs: tuple[Program, ...],
        cell: Cell,
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
            "fstype": family.mounted_as(mount.filesystem),
            "target": family.target_of(mount.filesystem, mount.place).device,
            "cache": cache,
            "lazy": _yes(asks_lazy_init(mount.filesystem)),
            "direct": _yes(asks_direct(cell.workload)),
            "reads": self._reads(cell, mount, cache),
            "sensors": " ".join(self.facts.storage.sensor_files),
            "in_memory": _yes(fills_memory(mount.filesystem)),
            "helper": shlex.join(HELPER) if self.facts.rights.level == "helper" else "",
            "cgroups": CGROUPS,
            "sampler": self._sampler(),
            "trace_around": "",
            "long_log": command.log,
            "sample_ms": str(round(self.sweep.design.sample_every_s * 1000)),
            **namespaces(self.facts),
            **_LARGEST,
        }
        limit_s = command.timeout_s
        # The outer one is for an inner one that is stopped (SIGSTOP) with its tool.
        outer = ("timeout", "-k", "5", f"{limit_s + 15:g}")
        limited = (*outer, "timeout", "-k", "5", f"{limit_s:g}", *command.argv)
        write = ("sh", "-c", 'printf %s "$1" >"$2"', "write")
        written = tuple((*write, text, path) for path, text in command.files.items())
        above = (mount.root, f"{self.run_dir}/mnt") if mount.root == mount.place.mountpoint else (mount.root,)
        given = (("sh", "-c", _hand_over(), "hand-over", command.owner, directory, *above), ("cd", directory))
        entered = given if command.owner else ()
        variables |= {"prepares": _yes(written or entered or command.prepare), "warms": _yes(ready)}
        lines = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
        lines += [_function("prepare", (*written, *entered, *command.prepare)), _function("warm", ready)]
        loaded = tuple(self._version(program) for program in programs) if _drops_caches(self.sweep) else ()
        loaded += (("nice", *self._sampler().split(), "-c", ":"),) if loaded and self._sampler() else ()
        lines += [_function("load_program", loaded)]
        logs = self.facts.drive_logs.items()
        shown = tuple(argv for name, log in logs for argv in (("echo", "drive", name), log))
        enter = f"cd {shlex.quote(directory)} && " if command.owner else ""
        lines += [_function("show_drives", shown), f'measured() {{ {enter}"$@" {shlex.join(limited)}; }}']
        return "\n".join(lines)


def _ready(command: Command, cache: Cache, *, in_memory: bool) -> tuple[tuple[str, ...], ...]:
    """Return what is done between the dropping of the caches and the measured command. A file in memory cannot be cold:
    its pages are not dropped, only moved to the inactive list. So it is read as often as for a warm read, and both are
    measured in the same state."""
    if cache == "as_is":
        return ()
    filled = cache == "warm" or in_memory
    return (*command.drop, *(command.fill * FILLS if filled else ()))


def _plain(fs: Filesystem) -> Filesystem:
    """Return the same file system, without what the sweep asks of mkfs and mount."""
    return replace(fs, options=(), mkfs=(), tunables={}, over=_plain(fs.over) if fs.over else None)


def _drops_caches(sweep: Sweep) -> bool:
    """Return whether any trial begins without what is in the page cache. Where none does, programs stay in it: facts
    were asked of each of them."""
    asked = {workload.options.get("cache") for workload in sweep.workloads}
    return bool(asked & {"cold", "warm"}) or (sweep.design.drop_caches and None in asked)


def _yes(asked: object) -> str:
    return "yes" if asked else ""


def _function(name: str, commands: tuple[tuple[str, ...], ...]) -> str:
    return f"{name}() {{ {' && '.join(shlex.join(argv) for argv in commands) or ':'}; }}"

"""File systems on the box: made, verified against the kernel's own report, and undone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from mountlab.core.errors import CommandError, ParseError
from mountlab.core.findings import OptionEvidence
from mountlab.core.model import Design, Filesystem, Step
from mountlab.core.trial_files import TrialFiles
from mountlab.filesystems.kept import AGE_FILE, CAPACITY, IDENTITY, StateOfMount, digest_of
from mountlab.filesystems.making import RanCommand, commands_text
from mountlab.filesystems.read_back import control_files, control_ids, ineffective, options_in_effect
from mountlab.filesystems.state_evidence import read_made
from mountlab.runner.clients import Clients
from mountlab.runner.contracts import Recorder
from mountlab.runner.steps import StepRunner
from mountlab.sweep.plan import PlannedMount
from mountlab.sweep.planned_state import PlannedState

MountFiles = dict[str, str]
"""Name of a file to the output of the step that made it: mkfs.txt, mount.txt, evidence.txt."""


@dataclass(frozen=True)
class _Record:
    """What the steps of one making have printed."""

    values: dict[str, str]
    """Names that later commands hold to what they stand for."""
    files: dict[str, bytes]
    commands: list[RanCommand]


class MountSession:
    """Makes the file systems of one run."""

    def __init__(self, steps: StepRunner, recorder: Recorder, clients: Clients, design: Design) -> None:
        self._steps, self._recorder, self._clients = steps, recorder, clients
        self._design = design
        self._controls: dict[str, MountFiles] = {}
        self._states: dict[str, StateOfMount] = {}
        """The last making of each state in this session, by the id of its plan."""

    def read_control(self, mount: PlannedMount) -> None:
        """Make a file system without its options once, keep what the kernel reports of it, and undo it.

        If that fails, the options have nothing to be compared with; the file system with options may still work.
        """
        if mount.id not in self._controls:
            with suppress(CommandError), self.made(mount) as files:
                self._controls[mount.id] = files

    def make_state(self, planned: PlannedState, kept: ExitStack) -> None:
        """Make a state and keep it until `kept` is closed. Raises CommandError for one that is not reached, or that is
        not what an earlier session of the run has made from the same seed."""
        with ExitStack() as lasting, ExitStack() as undo:
            record = _Record({}, {}, [])
            for step in planned.lasting:
                self._do(step, lasting, record)
            self._age(planned, lasting, undo, record)
            undo.close()  # what keeps it has no loop device, or it is not kept
            kept.enter_context(lasting.pop_all())

    def _age(self, planned: PlannedState, lasting: ExitStack, undo: ExitStack, record: _Record) -> None:
        """Make a state on {device}, or in a pool. `lasting` takes what undoes the keeping of it, `undo` all else."""
        earlier = self._recorder.mount_files(planned.id)
        record.values[CAPACITY.strip("{}")] = (
            str(read_made(earlier[AGE_FILE]).capacity_bytes) if AGE_FILE in earlier else ""
        )
        for step in planned.making:
            self._do(step, undo, record)
        with ExitStack() as mounted:
            for step in planned.ageing:
                self._do(step, mounted, record)
                if step.keep == AGE_FILE:
                    made = read_made(record.files[AGE_FILE].decode(errors="replace"))
                    record.values[CAPACITY.strip("{}")] = str(made.capacity_bytes)
        for step in planned.keeping:
            self._do(step, lasting, record)
        texts = {name: data.decode(errors="replace") for name, data in record.files.items()}
        state = StateOfMount(
            state=planned.state.name,
            making=planned.id,
            identity=record.values.get(IDENTITY.strip("{}"), ""),
            digest=digest_of(texts),
        )
        self._check_same(planned, state)
        self._keep(planned.id, record)
        self._states[planned.id] = state

    def _check_same(self, planned: PlannedState, made: StateOfMount) -> None:
        """Raise CommandError where an earlier making had other files."""
        earlier = self._recorder.mount_files(planned.id)
        before = digest_of(earlier) if AGE_FILE in earlier else made.digest
        if before != made.digest:
            raise CommandError(
                f"{planned.filesystem.name}: the state {made.state} is not what it was",
                where=f"filesystems.{planned.filesystem.name}.state: {made.state}",
                got=f"files with the digest {made.digest}, and before {before}",
                allowed="the same files from the same seed, on the same capacity",
                next_step="begin a new run: a part of this one was measured in the other state",
            )

    def _do(self, step: Step, undo: ExitStack, record: _Record) -> None:
        completed = self._steps.do(step, undo, record.values, record.commands)
        if step.keep:
            record.files[step.keep] = completed.stdout + (completed.stderr if step.guard else b"")

    def _keep(self, mount_id: str, record: _Record) -> None:
        record.files[TrialFiles.COMMANDS] = commands_text(record.commands).encode()
        self._recorder.keep_mount(mount_id, record.files)

    @contextmanager
    def made(self, mount: PlannedMount) -> Iterator[MountFiles]:
        """Make and mount a file system, record the output of its steps, and undo all of it at the end. A state is
        restored from where `make_state` has kept it, or made again. Those of its neighbours come first."""
        planned = mount.made_state
        record = _Record({}, {}, [])
        if planned and planned.id in self._states:
            record.values[IDENTITY.strip("{}")] = self._states[planned.id].identity
        with ExitStack() as undo:
            for other in mount.beside:
                undo.enter_context(self.made(other))
            for step in mount.steps:
                self._do(step, undo, record)
                if planned and mount.makes_state_after(step):
                    self._age(planned, undo, undo, _Record(record.values, {}, []))
            if planned:
                record.files[StateOfMount.FILE] = self._states[planned.id].text().encode()
            self._keep(mount.id, record)
            undo.enter_context(self._clients.mounted(mount))
            yield {name: data.decode(errors="replace") for name, data in record.files.items()}

    @contextmanager
    def verified(self, mount: PlannedMount) -> Iterator[MountFiles]:
        """Make a file system as `made` does. Raises CommandError if the kernel ignores one of its options, unless the
        design makes that a caveat (design.on_ineffective)."""
        with self.made(mount) as files:
            rows = ineffective(self.option_evidence(mount.filesystem, files))
            if rows and self._design.on_ineffective == "error":
                raise _ineffective_error(mount.filesystem.name, rows)
            yield files

    def option_evidence(self, fs: Filesystem, files: MountFiles) -> list[OptionEvidence]:
        """Compare each requested option with the kernel's report."""
        control = control_files(*(self._controls.get(control_id) for control_id in control_ids(fs.name)))
        return options_in_effect(fs, files, control)


class PersistentMounts:
    """The file systems that stay mounted for the whole run (`fresh_filesystem: never`); `undo` undoes all of them."""

    def __init__(self, session: MountSession, undo: ExitStack) -> None:
        self._session, self._undo = session, undo
        self._mounts: dict[str, tuple[PlannedMount, ExitStack]] = {}
        self.failures: dict[str, str] = {}
        """Id of a mount to why it could not be made."""

    def make(self, mount: PlannedMount) -> None:
        """Make a file system. A failure goes to `failures`, and its trials fail with it."""
        mount_undo = self._undo.enter_context(ExitStack())
        self._mounts[mount.id] = mount, mount_undo
        try:
            mount_undo.enter_context(self._session.verified(mount))
        except (CommandError, ParseError) as error:
            self.failures[mount.id] = str(error)

    def make_again(self, mount_id: str) -> None:
        """Undo a file system that a trial has spoilt, and make it again."""
        mount, mount_undo = self._mounts[mount_id]
        mount_undo.close()
        self.make(mount)


def _ineffective_error(name: str, rows: list[OptionEvidence]) -> CommandError:
    return CommandError(
        f"{name}: not in effect as asked: {', '.join(f'{row.option} ({row.state})' for row in rows)}",
        where=f"filesystems.{name}",
        got="; ".join(f"{row.option}: {row.state}, the kernel says {row.kernel_says}" for row in rows),
        allowed="every option in effect, or shown nowhere by a kernel that refuses what it does not know",
        next_step="remove what the kernel ignores, or measure without it: design.on_ineffective: caveat",
    )

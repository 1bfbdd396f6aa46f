"""File systems on the box: made, verified against the kernel's own report, and undone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from mountlab.core.errors import CommandError, ParseError
from mountlab.core.findings import OptionEvidence
from mountlab.core.model import Design, Filesystem
from mountlab.core.trial_files import TrialFiles
from mountlab.filesystems.making import RanCommand, commands_text
from mountlab.filesystems.read_back import control_files, control_ids, ineffective, options_in_effect
from mountlab.runner.clients import Clients
from mountlab.runner.contracts import Recorder
from mountlab.runner.steps import StepRunner
from mountlab.sweep.plan import PlannedMount

MountFiles = dict[str, str]
"""Name of a file to the output of the step that made it: mkfs.txt, mount.txt, evidence.txt."""


class MountSession:
    """Makes the file systems of one run."""

    def __init__(self, steps: StepRunner, recorder: Recorder, clients: Clients, design: Design) -> None:
        self._steps, self._recorder, self._clients = steps, recorder, clients
        self._design = design
        self._controls: dict[str, MountFiles] = {}

    def read_control(self, mount: PlannedMount) -> None:
        """Make a file system without its options once, keep what the kernel reports of it, and undo it.

        If that fails, the options have nothing to be compared with; the file system with options may still work.
        """
        if mount.id not in self._controls:
            with suppress(CommandError), self.made(mount) as files:
                self._controls[mount.id] = files

    @contextmanager
    def made(self, mount: PlannedMount) -> Iterator[MountFiles]:
        """Make and mount a file system, record the output of its steps, and undo all of it at the end."""
        values: dict[str, str] = {}
        files: dict[str, bytes] = {}
        commands: list[RanCommand] = []
        with ExitStack() as undo:
            for step in mount.steps:
                completed = self._steps.do(step, undo, values, commands)
                if step.keep:
                    files[step.keep] = completed.stdout + (completed.stderr if step.guard else b"")
            files[TrialFiles.COMMANDS] = commands_text(commands).encode()
            self._recorder.keep_mount(mount.id, files)
            undo.enter_context(self._clients.mounted(mount))
            yield {name: data.decode(errors="replace") for name, data in files.items()}

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

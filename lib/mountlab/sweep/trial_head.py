"""The head of a trial's script: the variables and functions that contain.sh and trial.sh find in front of them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from mountlab.box.containment import CGROUPS, namespaces
from mountlab.box.helper import COMMAND as HELPER
from mountlab.checks import asks_direct, asks_lazy_init, fills_memory, stays_in_memory
from mountlab.checks.asked import device_reads
from mountlab.core.box_facts import BoxFacts
from mountlab.core.model import Filesystem, Place, Program, Sweep, Workload
from mountlab.core.shell import script_text
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.base import BLOCK_DEVICE
from mountlab.filesystems.stack import layer_state_commands
from mountlab.outcome.archive import LARGEST_ARCHIVE, LARGEST_OUTPUT
from mountlab.sweep.beside import PlannedNeighbour, beside_head
from mountlab.tools.base import Command

Argv = tuple[str, ...]
_UMASK = "022"
"""Of a watched program, whose files stay: that of most logins. Files of a trial are seen by its user alone."""


@dataclass(frozen=True, kw_only=True)
class TrialHead:
    """What the head of one trial's script is made from."""

    sweep: Sweep
    facts: BoxFacts
    filesystem: Filesystem
    place: Place
    workload: Workload
    """Its option `cache` says how the page cache is at the start."""
    programs: tuple[Program, ...]
    """What the tool runs."""
    command: Command
    ready: tuple[Argv, ...]
    """Commands after the caches were dropped, right before the measured one."""
    directory: str
    """On the file system; a stand-in beside the output where that is used in place."""
    output: str
    """The directory of what it brings back."""
    beside: tuple[PlannedNeighbour, ...] = ()

    def text(self) -> str:
        command = self.command
        write = ("sh", "-c", 'printf %s "$1" >"$2"', "write")
        prepare: list[Argv] = [(*write, text, path) for path, text in command.files.items()]
        if command.owner:
            prepare += [self._hand_over(), ("cd", self.directory)]
        prepare += command.prepare
        variables = {**self._variables(), "prepares": _yes(prepare), "warms": _yes(self.ready)}
        drives = (argv for name, log in self.facts.drive_logs.items() for argv in (("echo", "drive", name), log))
        enter = f"cd {shlex.quote(self.directory)} && " if command.owner else ""
        enter += f"umask {_UMASK} && " if FAMILIES[self.filesystem.type].in_place else ""
        # The outer limit is for an inner one that is stopped (SIGSTOP) with its tool.
        limits = (f"timeout -k 5 {seconds:g}" for seconds in (command.timeout_s + 15, command.timeout_s))
        return "\n".join(
            [
                *(f"{name}={shlex.quote(value)}" for name, value in variables.items()),
                _function("prepare", prepare),
                _function("warm", self.ready),
                _function("load_program", self._loads()),
                _function("show_drives", drives),
                _function("show_state", self._state_commands()),
                f'measured() {{ {enter}exec "$@" {" ".join(limits)} {shlex.join(command.argv)}; }}',
                beside_head(self.beside),
            ]
        )

    def _variables(self) -> dict[str, str]:
        family, design, facts = FAMILIES[self.filesystem.type], self.sweep.design, self.facts
        return {
            "out": self.output,
            "directory": self.directory,
            "mountpoint": family.root_of(self.filesystem, self.place),
            "fstype": family.mounted_as(self.filesystem),
            "target": family.target_of(self.filesystem, self.place).device,
            "cache": str(self.workload.options["cache"]),
            "in_place": _yes(family.in_place),
            "lazy": _yes(asks_lazy_init(self.filesystem)),
            "direct": _yes(asks_direct(self.workload)),
            "reads": self._reads(),
            "sensors": " ".join((*facts.storage.sensor_files, *family.cache_counters)),
            # What neighbours write takes memory, too, and is in no figure of the trial's.
            "in_memory": _yes(fills_memory(self.filesystem) and not self.beside),
            "helper": shlex.join(HELPER) if facts.rights.level == "helper" else "",
            "cgroups": CGROUPS,
            "sampler": self._sampler(),
            "trace_around": "",
            "long_log": self.command.log,
            "sample_ms": str(round(design.sample_every_s * 1000)),
            # In a namespace of its own the program would not mount, or be seen, as it is without us.
            **(dict.fromkeys(namespaces(facts), "") if family.in_place else namespaces(facts)),
            "largest_output": str(LARGEST_OUTPUT),
            "largest_archive": str(LARGEST_ARCHIVE),
        }

    def _state_commands(self) -> tuple[Argv, ...]:
        of_family = FAMILIES[self.filesystem.type].state_commands(self.place)
        return (*of_family, *layer_state_commands(self.filesystem, self.place))

    def _sampler(self) -> str:
        """Return the words of the shell that samples the counters inside a trial; '' where that is not wanted, or the
        box has none."""
        return (self.facts.programs.sampling_shell or "") if self.sweep.design.sample_every_s else ""

    def _reads(self) -> str:
        """Return what the device should deliver of the files (mountlab.checks.asked); '' where it is not asked."""
        on_device = FAMILIES[self.filesystem.type].mounted_as(self.filesystem) == BLOCK_DEVICE
        if on_device or stays_in_memory(self.filesystem, self.facts):
            return ""
        return device_reads(self.workload, str(self.workload.options["cache"]))

    def _hand_over(self) -> Argv:
        """Return the command that gives the trial's directory, and the way to it, to the account that runs the tool."""
        root = FAMILIES[self.filesystem.type].root_of(self.filesystem, self.place)
        directories = (root, f"{self.place.run_dir}/mnt") if root == self.place.mountpoint else (root,)
        return ("sh", "-c", script_text("hand_over.sh"), "hand-over", self.command.owner, self.directory, *directories)

    def _loads(self) -> list[Argv]:
        """Return commands that bring the programs back into the page cache. Where no trial begins without what is in
        it they stay there: facts were asked of each of them."""
        states = {workload.options.get("cache") for workload in self.sweep.workloads}
        if not (states & {"cold", "warm"} or (self.sweep.design.drop_caches and None in states)):
            return []
        commands = []
        for program in self.programs:
            path = self.facts.programs.path(program.name) if program.places else None
            commands.append(tuple(path if path and word == program.name else word for word in program.version))
        if self._sampler():
            commands.append(("nice", *self._sampler().split(), "-c", ":"))
        return commands


def _yes(value: object) -> str:
    return "yes" if value else ""


def _function(name: str, commands: Iterable[Argv]) -> str:
    return f"{name}() {{ {' && '.join(shlex.join(argv) for argv in commands) or ':'}; }}"

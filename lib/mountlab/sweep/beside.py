"""The part of a plan that is about neighbours: workloads that run through the whole of a trial, beside the tool.

Their part of a trial's script is neighbour.sh; what it keeps of them is read by mountlab.filesystems.neighbours.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from mountlab.box.containment import CGROUPS
from mountlab.checks import asks_direct
from mountlab.core.box_facts import BoxFacts
from mountlab.core.model import FILES, Filesystem, Neighbour, Program, Scalar, Sweep, Workload
from mountlab.core.options import Option
from mountlab.core.seeds import derived
from mountlab.core.shell import SharedScript, script_text
from mountlab.core.units import format_bytes, format_seconds
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.base import BLOCK_DEVICE
from mountlab.programs import TOOLS
from mountlab.tools.base import Command

DIRECTORY = ".beside"
"""What is appended to the name of a trial, for the directory of its neighbours; ownership.sh knows it."""
START_S = 60
"""A neighbour has to move its first bytes within this time."""
AWAY_LOOK_S = "0.25"
"""How often a client looks at what its neighbours have moved: the ends of the measured time lie between two looks."""
LONGER_S = 120.0
"""A neighbour may run for so much longer than the measured command: it begins before it, and the tool has some time to
end."""


@dataclass(frozen=True, kw_only=True)
class PlannedNeighbour:
    """A neighbour of one trial."""

    neighbour: Neighbour
    command: Command
    directory: str
    """On its file system."""
    output: str
    """Where its own reports go. They are not brought back."""

    @property
    def name(self) -> str:
        return self.neighbour.name


def neighbours_of(sweep: Sweep, workload: Workload) -> tuple[Neighbour, ...]:
    """Return what runs beside a workload."""
    return tuple(sweep.neighbours[name] for name in workload.beside)


def used_neighbours(sweep: Sweep) -> tuple[Neighbour, ...]:
    """Return the neighbours that run beside some workload, each once."""
    names = dict.fromkeys(name for workload in sweep.workloads for name in workload.beside)
    return tuple(sweep.neighbours[name] for name in names)


def programs_on(sweep: Sweep, client: str = "") -> Iterator[Program]:
    """Yield the programs of tools that run on the box of a sweep, or as neighbours on a client."""
    beside = (neighbour for neighbour in used_neighbours(sweep) if neighbour.place.client == client)
    pairs = [(fs, workload) for workload in (() if client else sweep.workloads) for fs in sweep.filesystems]
    pairs += [(place_of(sweep, neighbour, fs), neighbour.workload) for neighbour in beside for fs in sweep.filesystems]
    for fs, workload in pairs:
        yield from TOOLS[workload.tool].programs_on(fs.type, workload)


@dataclass(frozen=True, kw_only=True)
class AwayNeighbours:
    """The neighbours of one trial that run on one client."""

    client: str
    run_id: str
    """That of the client's lease."""
    output: str
    """The directory there that takes what is kept of them."""
    neighbours: tuple[PlannedNeighbour, ...]

    def argv(self, mode: str) -> tuple[str, ...]:
        """Return the command for the client. `mode`: run, wait, stop or collect (away.sh)."""
        variables = {"out": self.output, "cgroups": CGROUPS, "look_s": AWAY_LOOK_S}
        lines = (f"{name}={shlex.quote(value)}" for name, value in variables.items())
        head = "\n".join([*lines, beside_head(self.neighbours)])
        script = SharedScript(f"{head}\n", script_text("away.sh"))
        return ("env", f"MOUNTLAB_RUN={self.run_id}", "sh", "-c", script, "away.sh", mode)


def planned_neighbour(
    neighbour: Neighbour, root: str, output: str, *, limit_s: float, seed: int, in_memory: bool, fstype: str = ""
) -> PlannedNeighbour:
    """Plan a neighbour of the trial whose output directory is `output`. `root`: the directory for trials of its file
    system; `limit_s`: the longest that the measured command, or on a client the whole trial, may run; `seed`: that of
    the trial. On a client both directories are as it sees them."""
    tool, trial_id, client = TOOLS[neighbour.workload.tool], output.rpartition("/")[2], neighbour.place.client
    beside = f"{trial_id}{DIRECTORY}{client and f'-{client}'}"
    directory, notes = f"{root}/{beside}/{neighbour.name}", f"{output}{DIRECTORY}/{neighbour.name}"
    workload = tool.lasting(neighbour.workload, limit_s + LONGER_S)
    target = replace(FILES, seed=derived(seed, "neighbour", neighbour.name), in_memory=in_memory, fstype=fstype)
    command = replace(tool.command(workload, directory, notes, target), timeout_s=limit_s + 2 * LONGER_S)
    return PlannedNeighbour(neighbour=neighbour, command=command, directory=directory, output=notes)


def beside_head(neighbours: Iterable[PlannedNeighbour]) -> str:
    """Return the variables and functions that neighbour.sh finds in front of it."""
    numbered = list(enumerate(neighbours, start=1))
    if not numbered:
        return "beside=''"
    cases = (
        f"{number}) name={shlex.quote(planned.name)} place={shlex.quote(planned.directory)} "
        f"notes={shlex.quote(planned.output)} limits={'yes' if planned.neighbour.limits else chr(39) * 2} "
        f"direct_io={'yes' if asks_direct(planned.neighbour.workload) else chr(39) * 2} ;;"
        for number, planned in numbered
    )
    return "\n".join(
        [
            f"beside={shlex.quote(' '.join(str(number) for number, _ in numbered))}",
            "watcher='' beside_began=''",
            f"beside_tries={20 * START_S}",
            f"neighbour() {{ case $1 in {' '.join(cases)} esac; }}",
            *(line for number, planned in numbered for line in _functions(number, planned)),
        ]
    )


def _functions(number: int, planned: PlannedNeighbour) -> tuple[str, ...]:
    command, limits = planned.command, planned.neighbour.limits
    write = ("sh", "-c", 'printf %s "$1" >"$2"', "write")
    lay_out = [*((*write, text, path) for path, text in command.files.items()), *command.prepare]
    limited = " && ".join(f"limit {name} {value}" for name, value in limits.items())
    return (
        f"lay_out_{number}() {{ {' && '.join(map(shlex.join, lay_out)) or ':'}; }}",
        f"limits_{number}() {{ {limited or ':'}; }}",
        f"run_{number}() {{ exec timeout -k 5 {command.timeout_s:g} {shlex.join(command.argv)}; }}",
    )


def place_of(sweep: Sweep, neighbour: Neighbour, fs: Filesystem) -> Filesystem:
    """Return the file system on which a neighbour of trials on `fs` runs."""
    if neighbour.place.kind != "filesystem":
        return fs
    return next(other for other in (*sweep.filesystems, fs) if other.name == neighbour.place.name)


def filesystems_beside(sweep: Sweep, fs: Filesystem, workloads: Iterable[Workload]) -> tuple[Filesystem, ...]:
    """Return the other file systems that are mounted while these workloads run on `fs`, each once."""
    places = (place_of(sweep, neighbour, fs) for workload in workloads for neighbour in neighbours_of(sweep, workload))
    return tuple({other.name: other for other in places if other.name != fs.name}.values())


def neighbour_refusal(fs: Filesystem, other: Filesystem, neighbour: Neighbour, facts: BoxFacts) -> str | None:
    """Return why a neighbour on file system `other` cannot run beside trials on `fs`; None where it can."""
    family = FAMILIES[other.type]
    if family.mounted_as(other) == BLOCK_DEVICE:
        return f"neighbour {neighbour.name} needs files of its own: a block device without a file system has none"
    if TOOLS[neighbour.workload.tool].changes_devices:
        return f"neighbour {neighbour.name}: {neighbour.workload.tool} changes devices below a file system: a workload"
    if neighbour.place.client and (unshared := family.refuses_clients(fs)):
        return f"neighbour {neighbour.name} runs on a client: {unshared}"
    if other.name != fs.name and (shared := _devices(fs) & _devices(other)):
        return f"neighbour {neighbour.name}: {fs.name} and {other.name} lie on one device, {min(shared)}"
    return family.unavailable(other, facts) or family.refuses(other, neighbour.workload)


def _devices(fs: Filesystem) -> set[str]:
    backed = fs.over or fs
    return {*backed.scratch}


def neighbour_texts(sweep: Sweep) -> list[str]:
    """Return each neighbour that runs beside some workload, in words."""
    return [f"{neighbour.name}: {_neighbour_text(neighbour)}" for neighbour in used_neighbours(sweep)]


def _neighbour_text(neighbour: Neighbour) -> str:
    """Return a neighbour in words: 'fio on the same file system: rw write, bs 1 MiB, rate 200m; limits: io_weight
    50'."""
    options = TOOLS[neighbour.workload.tool].options
    given = [
        f"{name} {_value_text(options.get(name), value)}"
        for name, value in neighbour.workload.options.items()
        if not (name in options and options[name].default == value)
    ]
    limits = ", ".join(f"{name} {value}" for name, value in neighbour.limits.items())
    name = neighbour.place.name
    place = {"same": "the same file system", "filesystem": name, "client": f"client {name}"}[neighbour.place.kind]
    return f"{neighbour.workload.tool} on {place}: {', '.join(given)}{f'; limits: {limits}' if limits else ''}"


def _value_text(option: Option | None, value: Scalar) -> str:
    texts = {"size": format_bytes, "duration": format_seconds}
    return texts[option.kind](float(value)) if option and option.kind in texts else str(value)

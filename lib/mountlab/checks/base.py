"""What every check is given and gives back: evidence in, caveats out; and how a check says that it could not look."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeVar

from mountlab.core.box_facts import BoxFacts
from mountlab.core.cell_stop import CellStop
from mountlab.core.findings import Caveat, Exclusions, OptionEvidence, Severity
from mountlab.core.frames import pd, rows_of
from mountlab.core.groups import by_key
from mountlab.core.model import Cell, Filesystem, Sweep
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.counters import Around
from mountlab.filesystems.evidence import Device, DeviceBytes, DeviceLevels
from mountlab.filesystems.neighbours import Beside
from mountlab.filesystems.open_files import OpenFiles
from mountlab.fio.series import Series
from mountlab.programs.precondition import Rounds

T = TypeVar("T")
Direction = Literal["read", "write"]
SIDES: tuple[Direction, ...] = ("read", "write")


@dataclass(frozen=True)
class Sample:
    """The values of one metric over the trials of one cell, oldest first."""

    cell: Cell
    metric: str
    label: str
    trials: tuple[str, ...]
    blocks: tuple[int, ...]
    values: tuple[float, ...]

    @property
    def name(self) -> str:
        return f"{self.metric} {self.label}".strip()


def samples_of(sweep: Sweep, measurements: pd.DataFrame, answer_metrics: Mapping[str, Sequence[str]]) -> list[Sample]:
    """Return every sample that the answer is about: the whole of a metric where there is one, else each of its rows."""
    rows = measurements[~measurements["warmup"].astype(bool)]
    columns = ("cell", "metric", "label", "block", "trial_id", "value")
    values = by_key(
        ((cell, metric, label), (int(block), trial_id, float(value)))
        for cell, metric, label, block, trial_id, value in rows_of(rows, *columns)
    )
    labels = by_key(((cell, metric), label) for cell, metric, label in values)
    samples = []
    for cell in sweep.cells:
        for metric in answer_metrics.get(cell.workload.label, ()):
            metric_labels = labels.get((cell.id, metric), [])
            for label in [""] if "" in metric_labels else metric_labels:
                blocks, trials, figures = zip(*sorted(values[cell.id, metric, label]), strict=True)
                samples.append(Sample(cell, metric, label, trials, blocks, figures))
    return samples


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Everything that the checks look at. Frames have the columns of Run (mountlab.results.store)."""

    sweep: Sweep
    trials: pd.DataFrame
    measurements: pd.DataFrame
    estimates: pd.DataFrame
    traffic: Mapping[str, Mapping[Device, DeviceBytes]]
    """Trial id to what each block device moved while the tool ran."""
    levels: Mapping[str, DeviceLevels]
    """Mount id to the block devices below it, level by level, top first; () for a file system without one."""
    backing_types: Mapping[str, str]
    """File system name to the type of the file system that holds its loop image."""
    unseen: Mapping[str, str]
    """File system name to its type, where the kernel does not tell the device below it."""
    answer_metrics: Mapping[str, tuple[str, ...]]
    """Workload label to the metrics that the answer is about."""
    options: list[OptionEvidence]
    facts: BoxFacts
    in_effect: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """File system name to the mount options in effect, and their values."""
    fstypes: Mapping[str, str] = field(default_factory=dict)
    """File system name to the type that the kernel gives it."""
    around: Mapping[str, Around] = field(default_factory=dict)
    """Trial id to what else changed on the box while the tool ran."""
    open_files: Mapping[str, OpenFiles] = field(default_factory=dict)
    """Trial id of a watched program to the files that it was seen to have open."""
    series: Mapping[str, Sequence[Series]] = field(default_factory=dict)
    """Trial id to what fio logged over time."""
    preconditioned: Mapping[str, Rounds] = field(default_factory=dict)
    """Trial id to the rounds that were run before it."""
    stops: Sequence[CellStop] = ()
    """Why each cell has no more trials, where the design has a stopping rule."""
    identities: Mapping[str, str] = field(default_factory=dict)
    """Mount to the checksum of the blocks in use that it began from, where files make its state."""
    zeroes: Mapping[str, int] = field(default_factory=dict)
    """File system name to the bytes that its device zeroes by one command; 0 where it has no such command, and without
    those whose kernel does not tell."""
    buffered_loops: frozenset[str] = frozenset()
    """Mounts on a loop device that goes through the page cache of the file system below."""
    altered: Sequence[str] = ()
    """Alterations of the run after it was written, which a person accepted."""
    plugins: Sequence[str] = ()
    """How plug-ins that are installed differ from those with which the run was measured."""
    has_checksums: bool = True
    """Whether an alteration could have been noticed: not in a run of an earlier version."""
    exclusions: Exclusions = field(default_factory=Exclusions)
    """What the excluded trials change."""
    steps: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    """(cell, metric, label) to the step to which its figures are rounded, in base units; 0 where none shows."""

    @cached_property
    def _results(self) -> dict[Any, Any]:
        return {}

    def once(self, make: Callable[[Evidence], T]) -> T:
        """Return what a function makes of this evidence, made the first time only: several checks need it."""
        if make not in self._results:
            self._results[make] = make(self)
        result: T = self._results[make]
        return result

    @cached_property
    def counted(self) -> Mapping[str, list[str]]:
        """Cell to its trials that count: ok, and no warm-up; in the order in which they ran."""
        good = self.trials[(self.trials["status"] == "ok") & ~self.trials["warmup"].astype(bool)]
        return {str(cell): list(ids) for cell, ids in good.groupby("cell", sort=False)["trial_id"]}

    @cached_property
    def mounts(self) -> Mapping[str, str]:
        """Trial id to its mount."""
        return dict(zip(self.trials["trial_id"], self.trials["mount"], strict=True))

    @cached_property
    def moved(self) -> Mapping[tuple[str, Direction], float]:
        """(trial id, side) to the bytes that the tool says it moved."""
        rows = self.measurements[self.measurements["metric"] == "bytes"]
        return {(trial_id, side): float(value) for trial_id, side, value in rows_of(rows, "trial_id", "label", "value")}

    @cached_property
    def elapsed(self) -> Mapping[str, float]:
        """Trial id to the seconds that the tool says it took."""
        rows = self.measurements[(self.measurements["metric"] == "elapsed") & (self.measurements["label"] == "")]
        return dict(zip(rows["trial_id"], rows["value"].astype(float), strict=True))

    @cached_property
    def device_names(self) -> Mapping[Device, str]:
        """Number of a device to its name: '8:0' to 'sda'."""
        return {number: name for around in self.around.values() for number, name in around.names.items()}

    @cached_property
    def samples(self) -> list[Sample]:
        """Every sample that the answer is about."""
        return samples_of(self.sweep, self.measurements, self.answer_metrics)

    def trials_with_counters(self) -> Iterator[tuple[Cell, list[tuple[str, Around]]]]:
        """Yield each cell with its counted trials whose counters were kept."""
        return self.trials_with(self.around)

    def trials_with(self, values: Mapping[str, T]) -> Iterator[tuple[Cell, list[tuple[str, T]]]]:
        """Yield each cell that has counted trials in `values`, with these trials and their values."""
        for cell in self.sweep.cells:
            trials = [(trial_id, values[trial_id]) for trial_id in self.counted.get(cell.id, ()) if trial_id in values]
            if trials:
                yield cell, trials

    def neighbours_on(self, trial_id: str, *, same: bool) -> list[Beside]:
        """Return what the neighbours of a trial did that run on its file system; with `same` False, of the others."""
        around, known = self.around.get(trial_id), self.sweep.neighbours
        loads = around.beside.items() if around else ()
        return [load for name, load in loads if (known[name].place.kind == "same") == same]

    def levels_of(self, trial_id: str) -> DeviceLevels:
        """Return the block devices below the file system of a trial, level by level, top first."""
        return self.levels.get(self.mounts[trial_id], ())


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """A reason to doubt a figure, found by a check. Without a severity it has the first one of its check."""

    message: str
    scope: Literal["run", "filesystem", "cell"]
    subject: str = ""
    metrics: str = ""
    severity: Severity | None = None
    asked: bool = False

    @classmethod
    def of_cell(
        cls, cell: Cell, message: str, *, severity: Severity | None = None, metrics: str = "", asked: bool = False
    ) -> Doubt:
        """Return a doubt about a cell, or about those of its metrics whose names begin with `metrics`."""
        return cls(message=message, scope="cell", subject=cell.id, metrics=metrics, severity=severity, asked=asked)

    @classmethod
    def of_filesystem(cls, name: str, message: str, *, severity: Severity | None = None) -> Doubt:
        return cls(message=message, scope="filesystem", subject=name, severity=severity)

    @classmethod
    def of_run(cls, message: str, *, severity: Severity | None = None) -> Doubt:
        return cls(message=message, scope="run", severity=severity)


Find = Callable[[Evidence], Iterator[Doubt]]
Foresee = Callable[[Sweep, BoxFacts], Iterator[Doubt]]
Blind = Callable[[Evidence], str | None]


def _never_blind(_: Evidence) -> None:
    return None


@dataclass(frozen=True)
class Check:
    """One reason to doubt a number, and how it is looked for. One entry of CHECKS."""

    code: str
    find: Find
    """The first paragraph of its docstring says what the caveat is about, the second one when it is raised."""
    advice: str
    """What a reader can do about it, for every case; the message of a caveat says it for its own."""
    _: KW_ONLY
    watched: str = ""
    """The advice for a program that is watched, whose user wrote no sweep; '' where `advice` fits."""
    severities: tuple[Severity, ...] = ("warning",)
    """How bad it can be; the first is that of a doubt that gives none. `strict` in the design makes an error of a
    warning."""
    blind: Blind = _never_blind
    """Return why this evidence could not show it; None where it could. A check that could not look has not passed."""
    foresee: Foresee | None = None
    """Yield the doubts that follow from the sweep and the facts of the box alone, before anything runs."""

    def __call__(self, evidence: Evidence) -> Iterator[Caveat]:
        return map(self._caveat, self.find(evidence))

    def foreseen(self, sweep: Sweep, facts: BoxFacts) -> Iterator[Caveat]:
        return map(self._caveat, self.foresee(sweep, facts) if self.foresee else ())

    def _caveat(self, doubt: Doubt) -> Caveat:
        return Caveat(
            code=self.code,
            severity=doubt.severity or self.severities[0],
            message=doubt.message,
            scope=doubt.scope,
            subject=doubt.subject,
            metrics=doubt.metrics,
            asked=doubt.asked,
        )


@dataclass(frozen=True)
class CaveatKind:
    """A caveat that is no check of one run."""

    severity: Severity
    about: str
    advice: str
    when: str
    """The condition under which it is raised."""


def standing(
    code: str, foresee: Foresee, advice: str, *, severities: tuple[Severity, ...] = ("warning",), needs: str = ""
) -> Check:
    """Return a check that needs the sweep, and the fact `needs` of the box, and so tells the same before and after a
    run."""

    def find(evidence: Evidence) -> Iterator[Doubt]:
        return foresee(evidence.sweep, evidence.facts)

    def blind(evidence: Evidence) -> str | None:
        return f"the box does not tell ({needs})" if needs and evidence.facts.value(needs) is None else None

    find.__doc__ = foresee.__doc__
    return Check(code, find, advice, severities=severities, blind=blind, foresee=foresee)


_OLDER = "no such counters were kept (by an earlier version of Mountlab, or by a kernel without them)"


def from_counters(name: str, why: str = _OLDER) -> Blind:
    """Return a `blind` that says `why` where no trial has a value of this attribute of Around."""

    def blind(evidence: Evidence) -> str | None:
        counted = any(getattr(around, name) not in (None, {}) for around in evidence.around.values())
        return None if counted else why

    return blind


def of_run(code: str, severity: Severity, message: str) -> Caveat:
    """Return a caveat about all of several runs that are compared."""
    return Caveat(code=code, severity=severity, message=message, scope="run")


def in_memory(fs: Filesystem) -> bool:
    """Return whether its files live in the page cache itself."""
    return FAMILIES[(fs.over or fs).type].in_memory


def stays_in_memory(fs: Filesystem, facts: BoxFacts) -> bool:
    """Return whether it lives in memory, or is a directory of such a file system: what is read of it cannot be cold."""
    lower = fs.over or fs
    directory = (lower.path or ".") if lower.type in ("dir", "bind") else None
    return in_memory(fs) or directory in facts.surveyed.memory_directories


def fills_memory(fs: Filesystem) -> bool:
    """Return whether what is written to it takes memory of the box: it lives there, or on a zram device."""
    return in_memory(fs) or bool((fs.over or fs).zram_bytes)


def of_trials(affected: Sequence[str], all_of: Sized) -> str:
    """Format affected trials: 'in 3 of its 10 trials (t0007, t0012, ...)'."""
    names = ", ".join(affected[:3]) + (", ..." if len(affected) > 3 else "")
    return f"in {len(affected)} of its {len(all_of)} trials ({names})"


def share(part: float) -> str:
    """Format a share: '7%', '0.4%'."""
    return f"{part:.0%}" if part >= 0.1 else f"{part:.1%}"

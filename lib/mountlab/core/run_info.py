"""A run as its run.json describes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from mountlab.core import chain, plugins
from mountlab.core.box_facts import BoxFacts
from mountlab.core.cell_stop import CellStop


@dataclass(frozen=True, kw_only=True)
class Addition:
    """Blocks that were added to a finished run."""

    at: str
    """When the addition was requested, in ISO 8601."""
    finished_at: str
    """When the run had ended before the addition."""
    programs: Mapping[str, Any]
    """Programs of the box that the run had not needed before, by name."""


@dataclass(frozen=True, kw_only=True)
class Extension(Addition):
    """Blocks, file systems and workloads that were added."""

    parameters: Mapping[str, Any]
    """Parameters of a sweep that would measure the extended run in one go."""
    only_new: bool
    """Whether the added blocks hold the new cells alone."""


@dataclass(frozen=True, kw_only=True)
class Explanation(Addition):
    """Diagnostic blocks that were added."""

    blocks: int
    """Number of diagnostic blocks that the run has with them."""
    events: Sequence[str]
    """The events of the kernel that are traced."""
    profile: bool = False
    """Whether the system calls of a trial of each cell are recorded, too."""


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """A run as its run.json describes it, extensions and explanations included. docs/reference/run-directory.md"""

    run_id: str
    schema: int = 0
    """Version of the directory's schema; 0 for a run without a directory."""
    status: str = "complete"
    """'running', 'complete' or 'interrupted'."""
    created_at: str = ""
    """In ISO 8601, UTC; '' where it is not known."""
    finished_at: str = ""
    """When its last session ended; '' while one runs."""
    box: Mapping[str, Any] = field(default_factory=dict)
    """The box as its file described it then (sweep.untrusted.kept_box)."""
    facts: BoxFacts = field(default_factory=BoxFacts)
    """Facts about the box."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions on the control machine: Python, kernel and libraries."""
    mountlab_version: str = ""
    """Version of Mountlab that began the run."""
    git_commit: str | None = None
    """Commit of Mountlab's working copy, with '+changes' where it had any; None outside one."""
    seed: int | None = None
    """Seed of the order of trials; None for imported logs."""
    order: Sequence[str] = ()
    """Ids of the trials, as they were planned at first."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of a sweep that would measure the whole run in one go."""
    first_parameters: Mapping[str, Any] = field(default_factory=dict)
    """Parameters that the run was begun with."""
    extensions: Sequence[Extension] = ()
    """What `extend` added, the first one first."""
    explanations: Sequence[Explanation] = ()
    """What `explain` added, the first one first."""
    left_out: Mapping[str, Any] = field(default_factory=dict)
    """Cells that the sweep leaves out, with the reason."""
    published: Sequence[Mapping[str, Any]] = ()
    """Figures of others to set beside it (sweep.published_file.kept_published)."""
    plugins: Sequence[plugins.Used] = ()
    """Plug-ins by which it was measured; none in a run of an earlier version."""
    batch: str | None = None
    """The item of a batch that made it."""
    by_hand: str | None = None
    """How a run by hand is described; None for a run with a plan."""
    imported: Mapping[str, Any] | None = None
    """`sweep` and `files` of logs from elsewhere; None for a run that Mountlab measured."""
    has_checksums: bool = False
    """Whether its journal has a checksum chain; runs of the first versions have none."""
    altered: Sequence[Mapping[str, Any]] = ()
    """Alterations that a person has accepted."""
    trials_at_end: int | None = None
    """How many trials the journal had when the last session ended; None where none has ended."""
    stopped: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Id of a cell to why it had no more trials then, where there is a stopping rule."""
    command: str = ""
    """The line that runs it all again from where its directory lies now."""

    @property
    def seconds(self) -> float | None:
        """How long its sessions took together; None where it is not known, or the clock was set back meanwhile."""
        if not self.created_at or not self.finished_at:
            return None
        later = sorted((*self.extensions, *self.explanations), key=lambda addition: addition.at)
        starts = [self.created_at, *(addition.at for addition in later)]
        ends = [*(addition.finished_at for addition in later), self.finished_at]
        moments = [[datetime.fromisoformat(moment) for moment in side] for side in (starts, ends)]
        total = sum((last - first).total_seconds() for first, last in zip(*moments, strict=True))
        return total if total >= 0 else None

    @property
    def box_name(self) -> str:
        """The name of the box; '' where it is not known."""
        return str(self.box.get("name", ""))

    @classmethod
    def from_record(cls, record: Mapping[str, Any], where: str = "run.json") -> RunInfo:
        """Decode a run.json whose types were checked (sweep.untrusted). Raises StoreError for facts of other types, and
        TypeError, LookupError or AttributeError for such `plugins`."""
        facts, first = record["facts"], record["parameters"]
        extensions = [
            Extension(**{name: entry[name] for name in Extension.__dataclass_fields__})
            for entry in record.get(chain.EXTENSIONS, ())
        ]
        explanations = [
            Explanation(**{name: entry[name] for name in Explanation.__dataclass_fields__ if name in entry})
            for entry in record.get(chain.EXPLAINED, ())
        ]
        parameters = extensions[-1].parameters if extensions else first
        if additions := [*extensions, *explanations]:
            programs = dict(facts.get("programs") or {})
            for addition in additions:
                programs |= addition.programs
            facts = {**facts, "programs": programs}
        if explanations:
            profiled = any(explanation.profile for explanation in explanations)
            parameters = with_explain(parameters, explanations[-1].blocks, profile=profiled)
            if explanations[-1].blocks:
                facts = {**facts, "trace_events": explanations[-1].events}
        commit = record.get("git_commit")
        ended_after = (record.get(chain.ENDING) or {}).get("trials")
        return cls(
            run_id=record["run_id"],
            schema=record["schema"],
            status=record["status"],
            created_at=record.get("created_at", ""),
            finished_at=record.get("finished_at") or "",
            box=record["box"],
            facts=BoxFacts.from_record(facts, f"{where}: facts"),
            versions=record.get("versions", {}),
            mountlab_version=str(record.get("mountlab_version") or ""),
            git_commit=None if commit is None else str(commit),
            seed=record["seed"],
            order=record["order"],
            parameters=parameters,
            first_parameters=first,
            extensions=extensions,
            explanations=explanations,
            left_out=record["left_out"],
            published=record["published"],
            plugins=plugins.recorded(record),
            batch=record.get("batch"),
            by_hand=record.get("by_hand"),
            imported=record.get("imported"),
            has_checksums=chain.KEY in record,
            altered=record.get(chain.ALTERED, ()),
            trials_at_end=ended_after if isinstance(ended_after, int) else None,
            stopped=record.get("stopped", {}),
        )

    def stops(self, cells: Sequence[str], trials: int) -> list[CellStop] | None:
        """Return why each cell has no more trials. None if that is not recorded for all of them, or if the journal has
        another number of `trials` than at the end of the last session. Raises TypeError for values of other types."""
        recorded = self.stopped if self.trials_at_end == trials else {}
        if any(cell not in recorded or recorded[cell]["half_width"] is None for cell in cells):
            return None
        return [CellStop(cell=cell, **recorded[cell]) for cell in cells]

    def accepted(self) -> list[str]:
        """Return each accepted alteration with its day. Raises AttributeError for values of other types."""
        return [
            f"{text} (accepted {str(entry.get('at', ''))[:10]})"
            for entry in self.altered
            for text in entry.get("found", ())
        ]


def with_explain(parameters: Mapping[str, Any], blocks: int, *, profile: bool = False) -> dict[str, Any]:
    """Return the parameters of a sweep with so many diagnostic blocks, and with `profile` if it is asked for here."""
    added = {"explain": blocks, **({"profile": True} if profile else {})}
    return {**parameters, "design": {**(parameters.get("design") or {}), **added}}

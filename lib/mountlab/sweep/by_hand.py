"""The sweep of a box that is used by hand: it begins empty, and each requested file system and workload joins it.
Requests are read by the rules of a sweep file, and get the same errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mountlab.core.conditions import STATE
from mountlab.core.errors import ParameterError
from mountlab.core.model import Filesystem, Sweep, Workload
from mountlab.core.options import unknown_key
from mountlab.core.safe_yaml import Raw
from mountlab.filesystems import FAMILIES
from mountlab.sweep.design_entry import DesignFile
from mountlab.sweep.filesystem_entry import check_type
from mountlab.sweep.sweep_file import Reader, Resolved, resolve

NAME = "by-hand"
QUESTION = "What do trials by hand show?"
IMAGE = "1GiB"
"""The loop image of a file system for which no device is named."""
NOT_BY_HAND = ("repeats", "until", "warmup", "fresh_filesystem", "explain", "profile")
"""Keys of a design that plan the order of trials: by hand a person chooses it."""
_BACKINGS = {"image", "device", "zram", "pmbd"}
_ANY_FILESYSTEM, _ANY_WORKLOAD = {"any": {"type": "dir"}}, {"any": {"tool": "dd", "direction": "write", "count": 1}}
"""Entries in the place of a section that is still empty."""
_LONGEST_NAME = 50


@dataclass(frozen=True)
class HandSweep:
    """The file systems and workloads that were requested on one box so far."""

    box: str
    question: str
    design: Raw
    baseline: str | None = None
    read: Reader | None = None
    """Returns the text of a file that a workload names."""
    filesystems: Mapping[str, Raw] = field(default_factory=dict)
    workloads: Mapping[str, Raw] = field(default_factory=dict)
    pairs: frozenset[tuple[str, str]] = frozenset()
    """Names of each file system and workload that have a trial in common."""
    blocks: int = 1
    remade: bool = True
    """Whether no mount has had two trials of one cell."""

    @property
    def where(self) -> str:
        """The place that errors name."""
        return f'mountlab.box("{self.box}")'

    @property
    def parameters(self) -> Raw:
        """The mapping of a sweep file that requests the same."""
        filesystems, workloads = self._with_trials()
        pairs = [(filesystem, workload) for filesystem in filesystems for workload in workloads]
        excluded = [{"filesystem": a, "workload": b} for a, b in pairs if (a, b) not in self.pairs]
        rest: Raw = {"exclude": excluded} if excluded else {}
        rest |= {"baseline": self.baseline} if self._has_baseline() else {}
        return {**self._head, "filesystems": filesystems, "workloads": workloads, **rest}

    @property
    def _head(self) -> Raw:
        design = {"repeats": self.blocks, "warmup": 0, "fresh_filesystem": "block" if self.remade else "never"}
        return {"name": NAME, "question": self.question, "box": self.box, "design": {**self.design, **design}}

    def resolved(self) -> Resolved:
        """Return the sweep of all requests so far. Raises ParameterError."""
        resolved_file = resolve(self.parameters, where=self.where)
        return replace(resolved_file, sweep=replace(resolved_file.sweep, by_hand=True))

    def empty(self) -> Sweep:
        """Return the sweep before the first request. Raises ParameterError for a wrong question or design."""
        for key in self.design:
            allowed = [name for name in DesignFile.model_fields if name not in NOT_BY_HAND]
            if key not in allowed:
                raise unknown_key(key, allowed, where=self.where, what="key")
        return replace(self._read(_ANY_FILESYSTEM, _ANY_WORKLOAD).sweep, filesystems=(), workloads=())

    def with_filesystem(self, kind: str, name: str, entry: Raw) -> tuple[HandSweep, Filesystem]:
        """Add a file system: `kind` is its type, `entry` has its other keys. An equal request gives the
        same one. Raises ParameterError."""
        check_type(kind, f"{self.where}: filesystems.{name or kind}.type")
        request = {"type": kind, **{key: value for key, value in entry.items() if value is not None}}
        if STATE in request:
            raise ParameterError(
                "a file system that is mounted by hand is fresh: nothing makes or restores a state there",
                where=f"{self.where}: filesystems.{name or kind}.{STATE}",
                got=str(request[STATE]),
                allowed="a file system without it, which you fill yourself",
                next_step="measure states by a sweep: `states` and `state` in params/sweeps/*.yml",
            )
        if "image" in FAMILIES[kind].keys and not _BACKINGS & request.keys():
            request["image"] = IMAGE
        name = _name_for(request, name, kind, self.filesystems, f"{self.where}: filesystems")
        (read,) = self._read({name: request}, _ANY_WORKLOAD).sweep.filesystems
        return replace(self, filesystems={**self.filesystems, name: request}), read

    def with_workload(self, filesystem: str, name: str, entry: Raw) -> tuple[HandSweep, tuple[Workload, ...]]:
        """Add a workload on a file system: `entry` as in a sweep file. An equal request gives the same one.
        Raises ParameterError."""
        request = {key: value for key, value in entry.items() if value is not None}
        self._check_entry(request)
        description = name or _describe(request)
        filled = self._read(_ANY_FILESYSTEM, {description: request}).parameters["workloads"][description]
        name = _name_for(filled, name, description, self.workloads, f"{self.where}: workloads")
        workloads = self._read(_ANY_FILESYSTEM, {name: filled}).sweep.workloads
        return (
            replace(self, workloads={**self.workloads, name: filled}, pairs=self.pairs | {(filesystem, name)}),
            workloads,
        )

    def _with_trials(self) -> tuple[Raw, Raw]:
        """Return the file systems and the workloads that have a trial."""
        filesystems, workloads = ({pair[side] for pair in self.pairs} for side in (0, 1))
        return (
            {name: entry for name, entry in self.filesystems.items() if name in filesystems},
            {name: entry for name, entry in self.workloads.items() if name in workloads},
        )

    def _read(self, filesystems: Mapping[str, Raw], workloads: Mapping[str, Raw]) -> Resolved:
        parts = {"filesystems": dict(filesystems), "workloads": dict(workloads)}
        return resolve({**self._head, **parts}, where=self.where, read=self.read)

    def _has_baseline(self) -> bool:
        """Return whether there is something to compare with the baseline."""
        shared = {workload for filesystem, workload in self.pairs if filesystem == self.baseline}
        return any(filesystem != self.baseline and workload in shared for filesystem, workload in self.pairs)

    def _check_entry(self, entry: Raw) -> None:
        if entry.get("capacity"):
            raise ParameterError(
                "a search for a capacity is not made by hand: it chooses its own trials",
                where=f"{self.where}: workloads.capacity",
                got=str(entry["capacity"])[:60],
                allowed="a workload without capacity",
                next_step="write a sweep file, and mountlab.run it",
            )
        if entry.get("beside"):
            raise ParameterError(
                "neighbours do not run by hand",
                where=f"{self.where}: workloads.beside",
                got=str(entry["beside"])[:60],
                allowed="a workload alone",
                next_step="write a sweep file, and mountlab.run it",
            )
        if entry.get("clients"):
            raise ParameterError(
                "several clients cannot be driven by hand",
                where=f"{self.where}: workloads.clients",
                got=str(entry["clients"]),
                allowed="the box alone",
                next_step="write a sweep file, and mountlab.run it",
            )


def _name_for(entry: Raw, wanted: str, description: str, present: Mapping[str, Raw], where: str) -> str:
    """Return the name of an entry: the wanted one; that of an equal entry; or its description, numbered if not free."""
    if wanted:
        if present.get(wanted, entry) != entry:
            raise ParameterError(
                "one name for two things",
                where=f"{where}.{wanted}",
                got=str(entry),
                allowed=str(present[wanted]),
                next_step="give it another name",
            )
        return wanted
    equal = next((name for name, other in present.items() if other == entry), None)
    names = (description if number == 1 else f"{description}-{number}" for number in range(1, len(present) + 2))
    return equal or next(name for name in names if name not in present)


def _describe(entry: Raw) -> str:
    """Return 'fio-randread-4KiB' for {tool: fio, rw: randread, bs: 4KiB}; a list of levels is left out."""
    words = [_word(key, value) for key, value in entry.items() if isinstance(value, str | int | float)]
    text = re.sub(r"[^A-Za-z0-9_.-]+", "-", "-".join(words))
    return text.strip("-._")[:_LONGEST_NAME].rstrip("-._") or "workload"


def _word(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return key if value else f"no-{key}"
    return str(value) if isinstance(value, str) else f"{key}-{value}"

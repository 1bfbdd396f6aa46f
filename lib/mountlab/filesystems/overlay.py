"""overlay: a union mount on any other file system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import ParameterError
from mountlab.core.model import Filesystem, Place, Program, Step
from mountlab.filesystems.base import Family, directory_step, evidence_step, mount_step

BELOW = "-below"
"""What the names of kept files have more where they are of the file system below an overlay."""


class Overlay(Family):
    """A mount of overlayfs whose lower, upper and work directories lie on a file system made for it: trials write to
    the upper one, through the overlay."""

    type = "overlay"
    keys = frozenset({"over", "options"})

    def __init__(self, families: Mapping[str, Family]) -> None:
        self.families = families
        """What may lie below, by type."""

    def check(self, fs: Filesystem, *, where: str) -> None:
        if (
            fs.over is None
            or fs.over.type == self.type
            or fs.over.type not in self.families
            or self.families[fs.over.type].mounted_as(fs.over) == "raw"
        ):
            raise ParameterError(
                "an overlay lies over another file system",
                where=f"{where}.over",
                got=fs.over.type if fs.over else "nothing",
                allowed="a file system, such as over: {type: ext4, image: 1GiB}",
            )

    def needed_programs(self, fs: Filesystem) -> tuple[Program, ...]:
        family, below = self._below(fs)
        return (*self.programs, *family.needed_programs(below))

    def _below(self, fs: Filesystem) -> tuple[Family, Filesystem]:
        assert fs.over is not None
        return self.families[fs.over.type], fs.over

    def steps(self, fs: Filesystem, place: Place) -> tuple[Step, ...]:
        family, below = self._below(fs)
        its_place = replace(place, mountpoint=f"{place.mountpoint}.below")
        root = family.root_of(below, its_place)
        inside = [f"{root}/{name}" for name in ("lower", "upper", "work")]
        layers = tuple(f"{name}dir={path}" for name, path in zip(("lower", "upper", "work"), inside, strict=True))
        return (
            *(_kept_apart(step) for step in family.steps(below, its_place)),
            _kept_apart(evidence_step(root, *family.evidence_devices(below))),
            Step(argv=("mkdir", *inside), why="the layers", undo=("rm", "-rf", "--one-file-system", *inside)),
            directory_step(place.mountpoint),
            mount_step(fs, "overlay", "mountlab", place, own=layers),
        )

    def capacity_bytes(self, fs: Filesystem) -> int | None:
        family, below = self._below(fs)
        return family.capacity_bytes(below)

    def refuses(self, fs: Filesystem, workload: Any) -> str | None:
        family, below = self._below(fs)
        return family.refuses(below, workload)

    def unavailable(self, fs: Filesystem, facts: BoxFacts) -> str | None:
        family, below = self._below(fs)
        return family.unavailable(below, facts)

    def foreseen(self, fs: Filesystem, facts: BoxFacts) -> dict[str, str]:
        family, below = self._below(fs)
        return super().foreseen(fs, facts) | {
            f"over: {option}": text for option, text in family.foreseen(below, facts).items()
        }


def _kept_apart(step: Step) -> Step:
    """Return a step of the file system below with a file name of its own: evidence-below.txt beside evidence.txt."""
    keep = step.keep and step.keep.replace(".txt", f"{BELOW}.txt")
    return replace(step, keep=keep, below=True)

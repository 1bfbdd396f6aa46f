"""What every layer between a file system and its devices tells Mountlab about itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from mountlab.core.errors import ParameterError
from mountlab.core.model import Program, everywhere
from mountlab.core.options import Option
from mountlab.core.stack_layer import StackLayer
from mountlab.core.units import format_bytes
from mountlab.filesystems.superblock import NOTHING, Judgement

LayerReport = Mapping[str, str]
"""Heading to text, as layer.sh shows a layer."""


DMSETUP = Program(name="dmsetup", packages=everywhere("device-mapper", apt="dmsetup"), version=("dmsetup", "--version"))


def name_of(uuid: str) -> str:
    """Return the name that layer.sh gives to what has this UUID."""
    return f"mountlab-{uuid.replace('-', '')[16:]}"


@dataclass(frozen=True)
class Blank:
    """How the devices below a layer are when it is made."""

    zeros: bool
    """Whether all that can be read from them is zeros: copies and parity are right without a first synchronisation."""


class LayerKind(ABC):
    """A kind of layer. Pure: it names commands, and runs nothing. Its script beside this file has `make_KIND`,
    `show_KIND` and `undo_KIND` (layer.sh)."""

    kind: str
    required = ""
    """The option that a sweep has to give; '' for none."""
    options: ClassVar[Mapping[str, Option]]
    """The options that a sweep may give it."""
    goes_with: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Option to the values of the required one that it has a meaning with; of any where it is not named."""
    programs: tuple[Program, ...]

    @abstractmethod
    def modules(self, layer: StackLayer) -> tuple[str, ...]:
        """Return the modules of the kernel that it needs."""

    def state_commands(self, layer: StackLayer, uuid: str) -> tuple[tuple[str, ...], ...]:
        """Return commands that show whether it is whole (filesystems.arrays), run around each trial: where no file that
        each trial reads shows that."""
        return ()

    @abstractmethod
    def check(self, layer: StackLayer, below: int, *, where: str) -> None:
        """Raise ParameterError where its options do not make sense together, or on `below` devices."""

    @abstractmethod
    def words(self, layer: StackLayer, below: tuple[str, ...], uuid: str, blank: Blank) -> tuple[str, ...]:
        """Return the words by which its script makes it, the devices last, after `--`."""

    @abstractmethod
    def holds(self, layer: StackLayer, size: int, below: int) -> int:
        """Return how many bytes it offers on `below` devices of `size` bytes each, at least."""

    @abstractmethod
    def judge(self, layer: StackLayer, report: LayerReport) -> Iterator[tuple[str, Judgement]]:
        """Yield each option as the sweep gives it, and what the kernel shows of it."""


def need_devices(layer: StackLayer, below: int, least: int, *, where: str, most: int | None = None) -> None:
    """Raise ParameterError for a layer that cannot lie on so many devices."""
    if below < least or (most is not None and below > most):
        allowed = f"{least}" if most == least else f"{least} or more" if most is None else f"{least} to {most}"
        raise ParameterError(
            f"{layer.text} cannot lie on {'one device' if below == 1 else f'{below} devices'}",
            where=where,
            got=f"{below} device{'s' if below > 1 else ''} below it",
            allowed=allowed,
            next_step="put md or lvm below it, which make one device of several"
            if most is not None
            else "say members: N beside `image`, or a list of scratch devices as `device`; "
            "md and lvm make one device of several",
        )


def words_that_hold(words: Mapping[str, bool]) -> tuple[str, ...]:
    """Return the words of a command that are wanted, in their order."""
    return tuple(word for word, holds in words.items() if holds)


def judged_flag(wanted: object, shown: bool, word: str) -> Judgement:
    """Return whether the mapping's table has a word, where the option asks for it."""
    return "in effect" if shown == bool(wanted) else "changed", f"the table has {'' if shown else 'no '}{word}"


def power_of_two(layer: StackLayer, key: str, least: int, most: int, *, where: str) -> None:
    """Raise ParameterError for a size that is no power of two, or out of its range, both in bytes."""
    size = layer.options.get(key)
    if size is not None and (not least <= int(size) <= most or int(size) & (int(size) - 1)):
        raise ParameterError(
            f"not a value for {key}",
            where=f"{where}.{key}",
            got=layer.labels[key],
            allowed=f"a power of two from {format_bytes(float(least))} to {format_bytes(float(most))}",
        )


def judged(wanted: object, shown: str, source: str) -> Judgement:
    """Return whether the kernel shows what was asked for, in the same words."""
    return ("in effect" if str(wanted) == shown else "changed", f"{source} says {shown}") if shown else NOTHING

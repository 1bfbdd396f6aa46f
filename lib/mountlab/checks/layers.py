"""What each layer below a file system moved: the devices of a level together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from mountlab.checks.base import Evidence
from mountlab.core.model import Cell
from mountlab.core.numbers import listed
from mountlab.filesystems.evidence import Device, DeviceBytes, DeviceLevels

_LOOP_MAJOR = "7:"
"""Of loop devices (kernel: admin-guide/devices.txt)."""
_MOST_NAMES = 4


@dataclass(frozen=True)
class LayerWrites:
    """What the devices of one level wrote in the trials of a cell, for all programs."""

    name: str
    """The name of a device, or '4 loop devices'."""
    per_byte: float
    """Bytes for each byte that the tool wrote, mean over trials."""


@dataclass(frozen=True)
class CellWrites:
    """What each layer below the file system of a cell wrote, top first."""

    cell: Cell
    trials: int
    """How many of its trials tell it."""
    layers: tuple[LayerWrites, ...]
    """Top first."""


def layer_writes(evidence: Evidence) -> list[CellWrites]:
    """Return what each layer wrote for each byte of the tool, of the cells on more than a device or a loop device on
    another. Trials that wrote nothing do not count, nor do those in which a device was not counted."""
    cells = ((cell, _cell_layers(evidence, cell)) for cell in evidence.sweep.cells)
    return [CellWrites(cell, trials, layers) for cell, (trials, layers) in cells if layers]


def _cell_layers(evidence: Evidence, cell: Cell) -> tuple[int, tuple[LayerWrites, ...]]:
    """Return how many trials tell what each layer wrote, and what that is."""
    names: list[str] = []
    trials: list[list[float]] = []
    for trial_id in evidence.counted.get(cell.id, ()):
        levels, tool_bytes = evidence.levels_of(trial_id), evidence.moved.get((trial_id, "write"))
        sums = level_sums(evidence.traffic.get(trial_id, {}), levels)
        if tool_bytes and _has_layers(levels) and len(sums) == len(levels) == len(names or levels):
            names = names or [level_name(level, evidence.device_names) for level in levels]
            trials.append([moved.written / tool_bytes for moved in sums])
    means = map(fmean, zip(*trials, strict=True))
    return len(trials), tuple(LayerWrites(name, mean) for name, mean in zip(names, means, strict=True))


def _has_layers(levels: DeviceLevels) -> bool:
    """Return whether a file system lies on several devices, or on one that is no loop device and lies on another."""
    return any(len(level) > 1 for level in levels) or not all(map(is_of_loops, levels[:-1]))


def is_of_loops(level: Sequence[Device]) -> bool:
    """Return whether all devices of a level are loop devices."""
    return all(device.startswith(_LOOP_MAJOR) for device in level)


def level_sums(traffic: Mapping[Device, DeviceBytes], levels: DeviceLevels) -> list[DeviceBytes]:
    """Return what the devices of each level moved together, of the levels whose devices were all counted."""
    counted = [level for level in levels if traffic.keys() >= set(level)]
    return [sum((traffic[device] for device in level), DeviceBytes(0, 0)) for level in counted]


def level_name(level: Sequence[Device], names: Mapping[Device, str]) -> str:
    """Return a name for the devices of a level: 'md127', '4 loop devices', 'sda and sdb', '24 devices (sda, ...)'.
    `names`: number of a device to its name."""
    known = [names.get(device, device) for device in level]
    if len(level) == 1:
        return known[0]
    if is_of_loops(level):
        return f"{len(level)} loop devices"
    return listed(known) if len(known) <= _MOST_NAMES else f"{len(known)} devices ({known[0]}, ...)"

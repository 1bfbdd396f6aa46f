"""The layers between a file system and its devices: the steps that make them, and what the kernel shows of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from mountlab.core.errors import ParameterError
from mountlab.core.findings import OptionEvidence
from mountlab.core.model import Filesystem, Place, Program, Step
from mountlab.core.shell import script_argv
from mountlab.core.stack_layer import StackLayer
from mountlab.core.units import format_bytes
from mountlab.filesystems.base import script_step, timed_step
from mountlab.filesystems.evidence import parts_by_heading
from mountlab.filesystems.guard import MAKES_DEVICES, guarded
from mountlab.filesystems.layers import STACK_LAYERS
from mountlab.filesystems.layers.base import Blank

LAYER_MADE = "layer{}-made.txt"
"""Name of the file of raw output with how long a layer took to be made."""
LONGEST_S = 24 * 3600.0
"""How long the first synchronisation of an array may take."""


def check_stack(fs: Filesystem, *, where: str) -> None:
    """Raise ParameterError where a layer cannot lie on what is below it."""
    below, each = devices_below(fs), fs.image_bytes or fs.zram_bytes
    for at, layer in enumerate(fs.stack):
        STACK_LAYERS[layer.kind].check(layer, below, where=f"{where}.stack[{at}]")
        if each is not None:
            each = _check_room(layer, each, below, f"{where}.stack[{at}]")
        if at and layer.kind == fs.stack[at - 1].kind == "lvm":
            raise ParameterError(
                "LVM takes no volume of its own as a device",
                where=f"{where}.stack[{at}]",
                got="lvm on lvm",
                allowed="lvm on devices, on md or on luks",
                next_step="take one of them out",
            )
        below = 1


def _check_room(layer: StackLayer, each: int, below: int, where: str) -> int:
    """Return how many bytes a layer offers on devices of `each` bytes. Raises ParameterError where that is nothing."""
    if offered := STACK_LAYERS[layer.kind].holds(layer, each, below):
        return offered
    large = next((key for key in ("volume", "chunk", "stripe") if key in layer.options), "")
    raise ParameterError(
        f"{layer.text} does not fit on its devices",
        where=f"{where}.{large}" if large else where,
        got=f"{format_bytes(float(each))} {'each' if below > 1 else 'below it'}: the layers offer 0 B",
        allowed=f"larger devices{f', or a smaller {large}' if large else ''}",
        next_step=f"make `image` larger{f', or {large} smaller' if large else ''}",
    )


def devices_below(fs: Filesystem) -> int:
    """Return on how many devices a file system, or the lowest of its layers, lies."""
    return len(fs.devices) or fs.members


def top_bytes(fs: Filesystem, each: int) -> int:
    """Return how many bytes the layers offer a file system on devices of `each` bytes; those of all where there are
    none."""
    below = devices_below(fs)
    for layer in fs.stack:
        each, below = STACK_LAYERS[layer.kind].holds(layer, each, below), 1
    return each * below


def layer_programs(fs: Filesystem) -> tuple[Program, ...]:
    """Return the programs that make the layers of a file system."""
    kinds = dict.fromkeys(layer.kind for layer in fs.stack)
    return tuple(program for kind in kinds for program in STACK_LAYERS[kind].programs)


def layer_modules(fs: Filesystem) -> tuple[str, ...]:
    """Return the modules of the kernel that the layers of a file system need."""
    return tuple(dict.fromkeys(module for layer in fs.stack for module in STACK_LAYERS[layer.kind].modules(layer)))


def layer_state_commands(fs: Filesystem, place: Place) -> tuple[tuple[str, ...], ...]:
    """Return commands that show whether the layers are whole, run around each trial."""
    layers = zip(fs.stack, place.layer_uuids, strict=True)
    return tuple(argv for layer, uuid in layers for argv in STACK_LAYERS[layer.kind].state_commands(layer, uuid))


def layer_steps(fs: Filesystem, place: Place, members: tuple[str, ...]) -> Iterator[Step]:
    """Yield the steps that make the layers on devices such as '{member1}'; the uppermost binds {device}."""
    below = members
    for number, (layer, uuid) in enumerate(zip(fs.stack, place.layer_uuids, strict=True), start=1):
        on_scratch = number == 1 and fs.device is not None
        blank = Blank(zeros=number == 1 and fs.image_bytes is not None)
        words = STACK_LAYERS[layer.kind].words(layer, below, uuid, blank)
        marked = "marked" if on_scratch else "images"
        argv = script_argv(MAKES_DEVICES, "make", place.run_dir, layer.kind, uuid, marked, *words)
        devices = place.scratch_devices if on_scratch else ()
        undo = script_argv(MAKES_DEVICES, "back", place.run_dir, uuid)
        made = timed_step(argv, why=f"make {layer.text}", keep=LAYER_MADE.format(number), undo=undo)
        yield replace(made, argv=guarded(made.argv, devices), timeout_s=LONGEST_S)
        name = "device" if number == len(fs.stack) else f"layer{number}"
        find, show = ((MAKES_DEVICES, verb, place.run_dir, uuid) for verb in ("find", "show"))
        yield script_step(*find, why=f"the device that {layer.kind} offers", binds=name)
        yield script_step(*show, why=f"read back what {layer.kind} is", keep=_file(number))
        below = (f"{{{name}}}",)


def _file(number: int) -> str:
    return f"layer{number}.txt"


def layers_in_effect(fs: Filesystem, files: Mapping[str, str]) -> Iterator[OptionEvidence]:
    """Yield each option of each layer, and what the kernel and the tool of the layer show of it."""
    for number, layer in enumerate(fs.stack, start=1):
        report = parts_by_heading(files.get(_file(number), ""))
        for option, (state, says) in STACK_LAYERS[layer.kind].judge(layer, report):
            yield OptionEvidence(filesystem=fs.name, option=option, kind="backing", state=state, kernel_says=says)

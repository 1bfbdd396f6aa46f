"""`stack` of a file system in a sweep file: the layers between its devices and itself, strictly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mountlab.core.errors import ParameterError
from mountlab.core.options import read_value, unknown_key
from mountlab.core.stack_layer import StackLayer
from mountlab.filesystems.layers import STACK_LAYERS

MOST_LAYERS = 8


def read_stack(entries: Sequence[Mapping[str, Any]], where: str) -> tuple[StackLayer, ...]:
    """Return the layers of a stack, from the devices upwards. Raises ParameterError for the first thing that is
    wrong."""
    if len(entries) > MOST_LAYERS:
        raise ParameterError("too many layers", where=where, got=str(len(entries)), allowed=f"up to {MOST_LAYERS}")
    return tuple(_read_layer(entry, f"{where}[{at}]") for at, entry in enumerate(entries))


def _read_layer(entry: Mapping[str, Any], where: str) -> StackLayer:
    name = entry.get("layer")
    if not isinstance(name, str):
        raise ParameterError(
            "each layer of a stack says which it is",
            where=f"{where}.layer",
            got="nothing" if name is None else repr(name),
            allowed=", ".join(STACK_LAYERS),
            next_step="such as stack: [{layer: luks}]",
        )
    if name not in STACK_LAYERS:
        raise unknown_key(name, list(STACK_LAYERS), where=f"{where}.layer", what="layer")
    options, required = STACK_LAYERS[name].options, STACK_LAYERS[name].required
    for key in (key for key in entry if key != "layer" and key not in options):
        raise unknown_key(key, ["layer", *options], where=f"{where}.{key}", what=f"key for layer {name}")
    if required and required not in entry:
        allowed = ", ".join(options[required].choices)
        raise ParameterError(f"{name} needs a {required}", where=f"{where}.{required}", got="nothing", allowed=allowed)
    values = {key: read_value(entry[key], options[key], where=f"{where}.{key}") for key in options if key in entry}
    return StackLayer(
        name,
        {key: value.value for key, value in values.items()},
        {
            key: str(bool(entry[key])).lower() if options[key].kind == "flag" else value.label
            for key, value in values.items()
        },
    )

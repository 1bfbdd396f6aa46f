"""`stack` of a file system in a sweep file: the layers between its devices and itself, strictly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mountlab.core.errors import ParameterError
from mountlab.core.options import read_value, unknown_key
from mountlab.core.stack_layer import StackLayer
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.layers import NOT_RUN, STACK_LAYERS
from mountlab.filesystems.layers.base import LayerKind

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
        raise _unknown_layer(name, f"{where}.layer")
    options, required = STACK_LAYERS[name].options, STACK_LAYERS[name].required
    for key in (key for key in entry if key != "layer" and key not in options):
        raise unknown_key(key, ["layer", *options], where=f"{where}.{key}", what=f"key for layer {name}")
    if required and required not in entry:
        allowed = ", ".join(options[required].choices)
        raise ParameterError(f"{name} needs a {required}", where=f"{where}.{required}", got="nothing", allowed=allowed)
    if required and entry[required] in list(NOT_RUN):
        raise _not_run(entry[required], f"{where}.{required}", ", ".join(options[required].choices))
    for key in entry:
        _check_meaning(STACK_LAYERS[name], entry, key, where)
    values = {key: read_value(entry[key], options[key], where=f"{where}.{key}") for key in options if key in entry}
    return StackLayer(
        name,
        {key: value.value for key, value in values.items()},
        {
            key: str(bool(entry[key])).lower() if options[key].kind == "flag" else value.label
            for key, value in values.items()
        },
    )


def _check_meaning(kind: LayerKind, entry: Mapping[str, Any], key: str, where: str) -> None:
    """Raise ParameterError for an option that goes with other values of the required one."""
    allowed = kind.goes_with.get(key)
    if allowed is not None and entry[kind.required] in set(kind.options[kind.required].choices) - {*allowed}:
        raise ParameterError(
            f"{key} has no meaning here",
            where=f"{where}.{key}",
            got=f"{key}: {entry[key]} with {kind.required}: {entry[kind.required]}",
            allowed=f"{kind.required}: {', '.join(allowed)}",
            next_step=f"take {key} out",
        )


def _unknown_layer(name: str, where: str) -> ParameterError:
    if name in NOT_RUN:
        return _not_run(name, where, ", ".join(STACK_LAYERS))
    if name in {*FAMILIES, "zfs", "bcachefs"}:
        return ParameterError(
            f"{name} is a file system, and no layer below one",
            where=where,
            got=repr(name),
            allowed=", ".join(STACK_LAYERS),
            next_step=f"name it as `type`: {{type: {name}, ...}}" if name in FAMILIES else "take this layer out",
        )
    return unknown_key(name, list(STACK_LAYERS), where=where, what="layer")


def _not_run(name: str, where: str, allowed: str) -> ParameterError:
    return ParameterError(
        f"{name} is not offered", where=where, got=repr(name), allowed=allowed, next_step=NOT_RUN[name]
    )

"""Values of tool options as people write them in YAML, checked and turned into base units."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from mountlab.core.errors import ParameterError, did_you_mean
from mountlab.core.model import Scalar
from mountlab.core.units import format_bytes, parse_bytes, parse_seconds

OptionKind = Literal["size", "duration", "int", "flag", "text", "choice", "any", "mapping"]
_EXPECTED: dict[OptionKind, str] = {
    "size": "text with a unit, such as '64KiB'", "duration": "text with a unit, such as '60s'", "int": "a whole number",
    "flag": "true or false", "text": "text", "choice": "one of its choices", "any": "text, a number, true or false",
    "mapping": "a mapping of names to text, numbers and mappings",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Option:
    """One option of a tool: the kind of its value, the choices, and the value where none is given."""

    kind: OptionKind
    choices: tuple[str, ...] = ()
    default: Scalar | None = None
    help: str = ""
    file_key: str = ""
    """The key by which a sweep file names a file that holds this text; '' where there is none."""
    can_be_off: bool = False
    """Whether `false` is a value of it, the number 0."""


@dataclass(frozen=True)
class OptionValue:
    """A checked value: in base units for the tool, and as people read it."""

    value: Scalar
    label: str


def read_value(raw: object, option: Option, *, where: str) -> OptionValue:
    """Check one value. Raises ParameterError with file, key, got and allowed."""
    if option.kind == "size":
        size = parse_bytes(raw, where=where)
        return OptionValue(size, format_bytes(size))
    if option.kind == "duration":
        return OptionValue(parse_seconds(raw, where=where), str(raw))
    if raw is False and option.can_be_off:
        raw = 0
    if isinstance(raw, bool) and (word := "on" if raw else "off") in option.choices:
        raw = word  # YAML reads the words on and off as true and false
    if not _fits(raw, option):
        raise _wrong_type(raw, option, where)
    if option.kind == "mapping":
        text = json.dumps(raw, ensure_ascii=False)
        return OptionValue(text, text)
    if option.kind == "flag":
        return OptionValue(int(bool(raw)), str(int(bool(raw))))
    assert isinstance(raw, (str, int, float, bool))
    value: Scalar = int(raw) if isinstance(raw, bool) else raw
    return OptionValue(value, str(value))


def _fits(raw: object, option: Option) -> bool:
    if option.kind == "int":
        return isinstance(raw, int) and not isinstance(raw, bool) and raw >= 0
    if option.kind == "flag":
        return isinstance(raw, bool) or raw in (0, 1)
    if option.kind == "choice":
        return isinstance(raw, str) and raw in option.choices
    if option.kind == "any":
        return isinstance(raw, (str, int)) or (isinstance(raw, float) and math.isfinite(raw))
    if option.kind == "mapping":
        return isinstance(raw, dict) and bool(raw) and _plain(raw)
    return isinstance(raw, str)


def _plain(raw: object) -> bool:
    """Return whether JSON holds it as it is, so that it can be read again from there."""
    if isinstance(raw, dict):
        return all(isinstance(key, str) and _plain(value) for key, value in raw.items())
    return isinstance(raw, (str, int)) or (isinstance(raw, float) and math.isfinite(raw))


def _wrong_type(raw: object, option: Option, where: str) -> ParameterError:
    hint = did_you_mean(str(raw), option.choices)
    if isinstance(raw, bool) and option.kind in ("choice", "text"):
        hint = "YAML reads yes, no, on and off as true and false: put the word in quotes"
    allowed = ", ".join(option.choices) or _EXPECTED[option.kind] + (", or false" if option.can_be_off else "")
    return ParameterError(
        "wrong value for an option",
        where=where,
        got=f"{raw!r} ({type(raw).__name__})",
        allowed=allowed,
        next_step=hint or "correct the value",
    )


def unknown_key(key: object, allowed: Mapping[str, object] | list[str], *, where: str, what: str) -> ParameterError:
    """Return the error for an unknown key."""
    names = sorted(map(str, allowed))
    return ParameterError(
        f"unknown {what}",
        where=where,
        got=repr(key),
        allowed=", ".join(names),
        next_step=did_you_mean(str(key), names) or "remove it, or use one of the allowed ones",
    )

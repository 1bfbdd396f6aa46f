"""Read the help of the box's own fio, and check that a sweep's options are in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mountlab.core.errors import ParameterError, did_you_mean
from mountlab.fio.metadata import SINCE
from mountlab.fio.options import numbers

SCRIPT = """
fio --cmdhelp=all
for name; do case $name in cache | jobs) ;; *) echo "option $name"; fio --cmdhelp="$name" ;; esac; done
for engine in libaio io_uring mmap pvsync2 filecreate filestat filedelete; do
    echo "engine $engine"; fio --enghelp=$engine
done
"""
"""Prints the list of all options, what the named ones take, and the options of those engines that have any. `cache` and
`jobs` are Mountlab's own."""
FEWEST = 50
"""A list of fewer options is none of fio's."""
_LISTED = re.compile(r" *([a-z][a-z0-9_]*) *: ")
_PART = re.compile(r"^(option|engine) (\w+)$", re.MULTILINE)
_FACT = re.compile(r" *(alias|type|default|range|valid values): *(.*)\Z")
_VALUE = re.compile(r" {15,}: *(\S+)")
_NUMBER_TYPE = re.compile(r"integer value|(empty or )?boolean value")
_RANGE = re.compile(r"(min|max)=(-?\d+)")


@dataclass(frozen=True)
class OptionHelp:
    """One option: what its value may be, as far as fio says."""

    type: str = ""
    values: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True)
class Help:
    """What one fio takes."""

    names: frozenset[str]
    described: Mapping[str, OptionHelp]
    engines: Mapping[str, frozenset[str]]
    """Engine to the options that it adds."""
    missing: frozenset[str]
    """Engines that it does not have, of those that SCRIPT asks for."""


def read_help(text: str) -> Help | None:
    """Return the help that SCRIPT printed; None where it is none, as from a box without fio."""
    listing, *parts = _PART.split(text)
    named = list(zip(parts[::3], parts[1::3], parts[2::3], strict=True))
    names = _listed(listing)
    if len(names) < FEWEST:
        return None
    described = {name: _option(body.splitlines()) for kind, name, body in named if kind == "option"}
    engines = {name: body for kind, name, body in named if kind == "engine"}
    missing = frozenset(name for name, body in engines.items() if f"{name} not found" in body)
    return Help(names, described, {name: _listed(body) for name, body in engines.items()}, missing)


def _listed(text: str) -> frozenset[str]:
    return frozenset(match[1] for line in text.splitlines() if (match := _LISTED.match(line)))


def _option(lines: list[str]) -> OptionHelp:
    attributes = {match[1]: match[2] for line in lines if (match := _FACT.match(line))}
    bounds = {match[1]: int(match[2]) for match in _RANGE.finditer(attributes.get("range", ""))}
    low, high = bounds.get("min"), bounds.get("max")
    first = attributes.get("valid values", "").split()[:1]
    values = (*first, *(match[1] for line in lines if (match := _VALUE.match(line))))
    # An upper bound that does not fit fio's own number is printed as -1.
    return OptionHelp(
        attributes.get("type", ""), values, low, high if high is not None and high >= (low or 0) else None
    )


def check_options(options: Mapping[str, str], box_help: Help, *, where: str) -> None:
    """Raise ParameterError for an option that this fio does not have, or a value beyond what it says."""
    engine = options.get("ioengine", "psync")
    if engine in box_help.missing and engine in SINCE:
        raise ParameterError(
            f"the box's fio has no engine {engine}",
            where=f"{where}.ioengine",
            got=repr(engine),
            allowed=f"fio {SINCE[engine]} or later for it",
            next_step="install a later fio on the box, or use tool: large-directory or tool: tree, which need none",
        )
    names = box_help.names | box_help.engines.get(engine, frozenset())
    for name, value in options.items():
        place = f"{where}.{name}"
        if name not in names:
            elsewhere = [other for other, added in box_help.engines.items() if name in added]
            raise ParameterError(
                "the box's fio has no such option" + (f" with ioengine {engine}" if elsewhere else ""),
                where=place,
                got=name,
                allowed=f"with ioengine {', '.join(elsewhere)}" if elsewhere else "what `fio --cmdhelp` lists",
                next_step=did_you_mean(name, sorted(names)),
            )
        listed = name != "ioengine" or value not in SINCE  # fio does not name all of these there
        if name in box_help.described and listed:
            _check_value(value, box_help.described[name], place)


def _check_value(value: str, option: OptionHelp, place: str) -> None:
    if _NUMBER_TYPE.match(option.type) and value not in option.values and not numbers(value):
        raise ParameterError(
            "the box's fio takes a number here",
            where=place,
            got=repr(value),
            allowed="0 or 1" if "boolean" in option.type else "a whole number, as 100 or 4k",
        )
    if option.values and not option.type.startswith(("integer", "boolean")):
        word = re.split(r"[:,]", value)[0]
        if word not in option.values:
            raise ParameterError(
                "the box's fio does not take this value",
                where=place,
                got=repr(value),
                allowed=", ".join(option.values),
                next_step=did_you_mean(word, option.values),
            )
    number = int(value) if re.fullmatch(r"-?\d{1,18}", value) else None
    low, high = option.low, option.high
    if number is not None and ((low is not None and number < low) or (high is not None and number > high)):
        bounds = f"from {low} on" if high is None else f"from {low or 0} to {high}"
        raise ParameterError("beyond what the box's fio takes", where=place, got=value, allowed=bounds)

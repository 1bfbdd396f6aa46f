"""What the scripts and the parsers of several facts share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

FUNCTIONS = r"""
# The first line of each file that can be read, behind $1 and its name. By `head`, since the `read` of some shells takes
# a file in bytes, and what is below /proc/sys gives one digit then. Where there is none, without a process.
values() {
    prefix=$1
    shift
    for file; do
        shift
        [ ! -r "$file" ] || set -- "$@" "$file"
    done
    [ $# -gt 0 ] || return 0
    head -n 1 "$@" /dev/null | while IFS= read -r line; do
        case $line in
            '==> '*' <==') file=${line#==> } file=${file% <==} ;;
            '') ;;
            *) printf '%s%s\t%.400s\n' "$prefix" "${file##*/}" "$line" ;;
        esac
    done
}
# The files $3... of a control group $2, and of those above it, in the hierarchy that is mounted at $1.
limits() {
    top=${1%/} at=${1%/}$2
    shift 2
    [ -d "$at" ] || at=$top
    at=${at%/}
    while :; do
        for name; do
            [ ! -r "$at/$name" ] || while IFS= read -r line; do printf '%s\t%.200s\n' "$name" "$line"; done <"$at/$name"
        done
        [ "$at" != "$top" ] || break
        at=${at%/*}
    done
}
# The nearest directory to $1 that exists: $1 itself, or the one in which it would be made.
existing() {
    directory=$1
    while [ ! -d "$directory" ]; do directory=$(dirname -- "$directory"); done
    (CDPATH='' cd -- "$directory" && pwd -P)
}
free_kib() { df -P -k "$(existing "$1")"; }
holder() { existing "$1"; cat /proc/self/mountinfo; }
"""
"""Functions that every script may call."""


def key_values(text: str, separator: str) -> dict[str, str]:
    """'key: value' lines; the first of each key."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        key, between, value = line.partition(separator)
        if between:
            values.setdefault(key.strip(), value.strip())
    return values


def parse_words(text: str) -> tuple[str, ...]:
    """Return each word once, sorted."""
    return tuple(sorted(set(text.split())))


def lines(text: str) -> list[tuple[str, str]]:
    """Return name and value of each line, which a tab parts; the last tab where a name has one."""
    parted = (line.rpartition("\t") for line in text.splitlines())
    return [(name, value.strip()) for name, tab, value in parted if tab]


def drop_unknown(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are there. Raises ValueError where none is."""
    kept = {key: value for key, value in values.items() if value not in (None, "")}
    if not kept:
        raise ValueError("nothing is known")
    return kept


def parse_values(text: str) -> dict[str, Any]:
    """Return names and values as they stand, numbers as numbers."""
    return drop_unknown(
        {name: int(value) if re.fullmatch(r"-?\d{1,18}", value) else value for name, value in lines(text)}
    )


def on_or_off(value: object) -> str | None:
    """On or off, of what the kernel writes as 1 and 0 or Y and N; None of anything else."""
    return {"1": "on", "y": "on", "true": "on", "0": "off", "n": "off", "false": "off"}.get(str(value).lower())


def chosen(value: str) -> str:
    """Return the word in brackets, as the kernel marks a choice; the whole where it marks none."""
    match = re.search(r"\[([^]]+)\]", value)
    return match[1] if match else value

"""The sweep that a new one begins with: valid as it is and with each entry that is off, and without a gap."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from mountlab.results.paths import PARAMS
from mountlab.sweep.new_sweep import new_sweep
from mountlab.sweep.sweep_file import SWEEP_KEYS, resolve
from rows import every_row

LINES = new_sweep("mine").splitlines()
OFF = re.compile(r"( *)# ([a-z_]+:.*)")
"""A line of a key or an entry that is off. Remarks begin with a capital letter."""
NOT_TOGETHER = {"boxes": "box", "until": "repeats"}
"""Key to the one in whose place it stands."""
NEEDED = {"old": "states", "disturbed": "neighbours"}
"""Entry to the key that defines what it names."""


def off() -> Iterator[tuple[str, range]]:
    """The entries that are off: the key, and its lines with those that are indented below it."""
    for number, line in enumerate(LINES):
        if match := OFF.fullmatch(line):
            end = number + 1
            while LINES[end].startswith(f"{match[1]}#   "):
                end += 1
            yield match[2].partition(":")[0], range(number, end)


ENTRIES = [*off()]


def with_on(*keys: str) -> dict[str, Any]:
    """The sweep with these entries on."""
    on = {number for key, lines in ENTRIES if key in keys for number in lines}
    text = [line.replace("# ", "", 1) if number in on else line for number, line in enumerate(LINES)]
    raw: dict[str, Any] = yaml.safe_load("\n".join(text))
    for other in (other for key, other in NOT_TOGETHER.items() if key in keys):
        raw.pop(other, None)
        raw["design"].pop(other, None)
    if "peak" in keys:
        raw = {**raw, "workloads": {"peak": raw["workloads"]["peak"]}, "expectation": "", "design": {}}
    return raw


@every_row("key", [key for key, _ in ENTRIES])
def test_an_entry_that_is_off_is_valid_when_it_is_on(key: str) -> None:
    as_it_is, changed = resolve(with_on(), where="new"), resolve(with_on(key, NEEDED.get(key, key)), where="new")
    assert changed.parameters != as_it_is.parameters
    assert changed.sweep.cells


def test_all_entries_but_a_search_can_be_on_together() -> None:
    sweep = resolve(with_on(*(key for key, _ in ENTRIES if key != "peak")), where="new").sweep
    assert {workload.tool for workload in sweep.workloads} >= {"fio", "dd", "fs_mark", "filebench", "command"}


def keys_of(raw: Mapping[str, Any]) -> set[str]:
    """The keys of a sweep and of its presets: design.KEY, filesystems.KEY, TOOL.OPTION and those of the file itself."""
    keys = {key for key in raw if key in SWEEP_KEYS}
    tools = {name: entry["tool"] for name, entry in raw.get("workloads", {}).items()}
    for part in (raw, *raw.get("presets", {}).values()):
        keys |= {f"design.{key}" for key in part.get("design", {})}
        for entry in filter(None, part.get("filesystems", {}).values()):
            keys |= {f"filesystems.{key}" for layer in (entry, entry.get("over") or {}) for key in layer}
        for name, entry in part.get("workloads", {}).items():
            tool = (entry or {}).get("tool") or tools.get(name)
            keys |= {f"{tool}.{key}" for key in entry or {} if (tool, key) != ("command", _own(key))}
    return keys


def _own(key: str) -> str:
    """A key that stands for its {name} in a command line has the name that its author likes."""
    return "" if key in {"argv", "prepare", "space", "time", "metrics", "tool"} else key


def test_it_names_every_key_that_the_shipped_sweeps_use() -> None:
    everything = with_on(*(key for key, _ in ENTRIES if key != "peak"))
    named = keys_of(everything) | keys_of(with_on("peak")) | keys_of(with_on())
    used = {key for path in PARAMS.glob("sweeps/*.yml") for key in keys_of(yaml.safe_load(path.read_text()))}
    assert len(used) > 60
    assert sorted(used - named) == []

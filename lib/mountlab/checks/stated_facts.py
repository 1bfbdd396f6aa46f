"""Sentences about the options of imported logs: which the logs state, and which are the user's word alone."""

from __future__ import annotations

from collections.abc import Mapping

from mountlab.core.box_facts.stated import WorkloadOfLogs
from mountlab.core.groups import by_key
from mountlab.core.model import Scalar
from mountlab.core.numbers import first_few
from mountlab.core.units import format_bytes
from mountlab.programs import TOOLS

NOT_GIVEN = "not given"
"""In the place of the value of an option that the sweep of a measured run does not give."""
VERSION = "version"
"""That of the tool, which stands among its options: of another version they may mean something else."""
_MOST_NAMED, _LONGEST = 3, 200


def unconfirmed(stated: Mapping[str, WorkloadOfLogs]) -> list[str]:
    """Return the options that the import gives and no log states."""
    options = (item for logs in stated.values() for item in logs.options.items())
    return list(dict.fromkeys(name for name, option in options if option.claimed is not None and not option.stated))


def differing(stated: Mapping[str, WorkloadOfLogs]) -> list[str]:
    """Return 'numjobs: 4 in ext4, 1 in tmpfs' for options in which the logs of a workload differ; behind the workloads
    where these are not all."""
    texts = ((f"{name}: {logs.shown(name)}", label) for label, logs in stated.items() for name in logs.differing())
    by_text = by_key(texts)
    return [
        text if len(labels) == len(stated) else f"{first_few(labels, _MOST_NAMED)}: {text}"
        for text, labels in by_text.items()
    ]


def value_text(tool: str, option: str, value: Scalar) -> str:
    """Return the value of an option as people read it; one text for what has two spellings."""
    definition = TOOLS[tool].options.get(option)
    if option == "rw" and value == "readwrite":
        return "rw"
    is_size = definition.kind == "size" if definition else option.endswith("size") or option.startswith("offset")
    if isinstance(value, str) or not (is_size or (definition and definition.kind == "duration")):
        return str(value)[:_LONGEST]
    return format_bytes(round(value)) if is_size else f"{value:g} s"

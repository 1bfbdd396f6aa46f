"""Many logs as one tidy frame, quickly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from mountlab.core.errors import MountlabError, ParseError
from mountlab.core.frames import pd
from mountlab.core.model import Measurement
from mountlab.logs import FORMATS, StatedValues, decoded, read_log

_OF_A_ROW = ("metric", "label", "unit", "value")
COLUMNS = ("file", "output", *_OF_A_ROW)


@dataclass(frozen=True)
class Tidy:
    """Figures of many logs, and why others have none."""

    frame: pd.DataFrame
    """One row a figure, with the columns of COLUMNS; `output` counts from 1 in each file."""
    problems: list[MountlabError]


def tidy(tool: str, logs: Iterable[tuple[str, bytes]], *, known: StatedValues | None = None) -> Tidy:
    """Return every figure in some logs, given by name and content. Raises ParameterError for an unknown tool."""
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    problems: list[MountlabError] = []
    for name, data in logs:
        for number, rows in _outputs(tool, name, data, known):
            if isinstance(rows, MountlabError):
                problems.append(rows)
                continue
            # Plain values at once: a hundred thousand objects kept would be searched for garbage again and again.
            columns["file"] += [name] * len(rows)
            columns["output"] += [number] * len(rows)
            for column in _OF_A_ROW:
                columns[column] += map(attrgetter(column), rows)
    return Tidy(pd.DataFrame(columns, columns=list(COLUMNS)), problems)


def _outputs(
    tool: str, name: str, data: bytes, known: StatedValues | None
) -> Iterable[tuple[int, list[Measurement] | MountlabError]]:
    quick = FORMATS[tool].quick(data) if tool in FORMATS else None
    if quick is not None:
        return [(1, quick)]
    try:
        outputs = read_log(tool, decoded(data), where=name, known=known)
    except ParseError as error:
        return [(1, error)]
    return [(number, output.problem or output.measurements) for number, output in enumerate(outputs, start=1)]

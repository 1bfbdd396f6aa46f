"""Logs that were made elsewhere: every format in which a tool's output is met, several outputs in one file.

    for output in read_log("dd", text, where="dd.txt"):
        output.figures, or output.problem

A log has no exit status, and its making was not observed. So an output counts only when all of it is there and its own
figures agree with each other; what was cut off, mixed up or ended early has a problem, and no figures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from mountlab.core.errors import ParseError, TrialError
from mountlab.core.figures import checked
from mountlab.core.options import unknown_key
from mountlab.logs import dd, filebench, fio, fs_mark, pg_test_fsync
from mountlab.logs.base import Figure, Format, Output, Part, StatedValues, decoded, elided, placed
from mountlab.logs.mailed import unmailed
from mountlab.programs import TOOLS

__all__ = ["FORMATS", "Figure", "Output", "Part", "StatedValues", "decoded", "read_log", "read_one"]

FORMATS: dict[str, Format] = {
    "dd": dd.FORMAT,
    "filebench": filebench.FORMAT,
    "fio": fio.FORMAT,
    "fs_mark": fs_mark.FORMAT,
    "pg_test_fsync": pg_test_fsync.FORMAT,
}
"""Tool to what reads its logs."""
_NEAR = 8
"""Lines below the last figure in which one for others that were left out is about them."""


def read_log(tool: str, text: str, *, where: str = "", known: StatedValues | None = None) -> list[Output]:
    """Return every output of a tool in a text, in order. `where` names the log in errors.

    Raises ParameterError for a tool without a reader of logs here, ParseError where the log holds no output of it.
    """
    if tool not in FORMATS:
        raise unknown_key(tool, FORMATS, where=where or "tool", what="tool with logs to read")
    log = FORMATS[tool]
    letter = unmailed(text)
    lines = log.apart(log.plain(letter.text))
    numbers = lines.numbers or letter.numbers
    if lines.numbers and letter.numbers:
        numbers = [letter.numbers[number - 1] for number in lines.numbers]
    parts = log.split(lines.text)
    if not parts:
        first = next((line.strip() for line in text.split("\n") if line.strip()), "nothing")
        raise ParseError(f"no output of {tool} in it", where=where, got=first[:160], allowed=f"what {tool} prints")
    outputs = [_read_part(tool, part, where, known or {}) for part in parts]
    return [_place_in_mail(output, text.split("\n"), numbers, where) for output in outputs] if numbers else outputs


def _place_in_mail(output: Output, stored: list[str], numbers: list[int], where: str) -> Output:
    """Return an output of a decoded mail with the lines of the mail as it is `stored`; `numbers` as in Letter."""

    def of(text: str) -> str:
        return re.sub(r"\bline (\d+)", lambda match: f"line {numbers[int(match[1]) - 1]}", text)

    part, problem = output.part, output.problem
    after = part.line - 1 + part.text.count("\n") + (not part.text.endswith("\n"))
    first, end = numbers[part.line - 1], numbers[after] - 1 if after < len(numbers) else len(stored)
    text = "".join(f"{line}\n" for line in stored[first - 1 : end])
    if problem:
        problem.where = where + of(problem.where.removeprefix(where))
    return replace(
        output,
        part=replace(part, line=first, text=text),
        figures=tuple(replace(figure, line=numbers[figure.line - 1]) for figure in output.figures),
        notes=tuple(map(of, output.notes)),
    )


def read_one(tool: str, text: str, *, where: str = "", known: StatedValues | None = None) -> Output:
    """Return the only output of a text. Raises its problem; and ParseError where there are several."""
    outputs = read_log(tool, text, where=where, known=known)
    if len(outputs) > 1:
        raise ParseError(f"several outputs of {tool}", where=where, got=str(len(outputs)), allowed="one")
    if outputs[0].problem:
        raise outputs[0].problem
    return outputs[0]


def _read_part(tool: str, part: Part, where: str, known: StatedValues) -> Output:
    log = FORMATS[tool]
    form = log.name(part)
    try:
        reading = log.read(part, known)
        figures = reading.figures
        rows = checked(
            [figure.measurement for figure in figures],
            {},
            TOOLS[tool].steps,
            giver=f"the reader of logs of {tool}",
            authors="the authors of Mountlab",
        )
    except TrialError as error:
        return Output(part=part, form=form, problem=placed(error, part, where))
    return Output(
        part=part,
        form=form,
        figures=tuple(
            Figure(measurement=row, line=figure.line + part.line - 1) for row, figure in zip(rows, figures, strict=True)
        ),
        notes=(*reading.notes, *_note_elisions(part, [figure.line for figure in figures])),
    )


def _note_elisions(part: Part, places: Sequence[int]) -> Iterator[str]:
    """Yield a note for each line about the figures that stands for lines which somebody left out."""
    first = min(places) + 1
    for number, line in enumerate(part.text.split("\n")[first - 1 : max(places) + _NEAR - 1], start=first):
        if elided(line):
            yield (
                f"line {number + part.line - 1}: lines were left out here ({line.strip()[:60]}): figures that stood "
                "there are missing"
            )

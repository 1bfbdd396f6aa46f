"""The values in a job file as fio reads them: with variables, its keywords, sums, and the base of its units."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from mountlab.core.errors import ParameterError, did_you_mean
from mountlab.core.sums import whole_sum
from mountlab.fio.grammar import JobLine, is_global, read_lines
from mountlab.fio.options import ALIASES, fio_bytes
from mountlab.fio.shares import SHARED

KEYWORDS = ("pagesize", "mb_memory", "ncpus")
"""Words behind '$' for which fio takes numbers of the box."""
IN_BYTES = "in bytes: kb_base=1000 is in effect"
_VARIABLES = "the values of its variables"
_LAST = "fio takes the last of several values, and %% for %"
_COMPUTED = "what fio computes"
_SIZES = (
    "bs", "ba", "bsrange", "bssplit", "size", "filesize", "io_size", "offset", "offset_increment", "rate", "rate_min",
    "number_ios", "hugepage-size", "iomem_align", "zonesize", "zonerange", "zoneskip", "verify_interval",
    "buffer_compress_chunk",
)  # fmt: skip
"""Options whose units are those of sizes; others are times, texts, or numbers without units."""
_VARIABLE = re.compile(r"\$\{(\w+)\}|\$(" + "|".join(KEYWORDS) + r")|\$(\w+)")
"""fio's own, and $NAME as in a text that a shell fills in before fio reads it."""
_UNIT = re.compile(r"\b\d+[kmgtp](?:i?b|i)?\b", re.IGNORECASE)
_SUM = re.compile(r"[\d\s*/+()-]+")


def filled_lines(text: str, values: Mapping[str, str]) -> Iterator[tuple[JobLine, JobLine, str]]:
    """Yield each line of a job file, the same with its value as fio reads it, and why that is another ('': it is not).

    A base of units holds for its whole section, as fio looks for `kb_base` first.
    """
    common = ""
    for section in _split_sections(read_lines(text)):
        filled = [_fill(line, values) for line in section]
        base = next((line.value or "" for line, _ in reversed(filled) if line.key == "kb_base"), common)
        if is_global(section[0].value or "") and not section[0].key:
            common = base
        for line, (with_values, why) in zip(section, filled, strict=True):
            in_bytes = _convert_to_bytes(with_values, base)
            yield line, in_bytes, IN_BYTES if in_bytes != with_values else why


def _split_sections(lines: Iterable[JobLine]) -> Iterator[list[JobLine]]:
    section: list[JobLine] = []
    for line in lines:
        if section and line.text.startswith("["):
            yield section
            section = []
        section.append(line)
    if section:
        yield section


def _fill(line: JobLine, values: Mapping[str, str]) -> tuple[JobLine, str]:
    """Return an option with the values of its variables, and of its sums: fio computes those with a keyword in them,
    by bc, and those in brackets."""
    if line.value is None or not line.key:
        return line, ""
    value = _VARIABLE.sub(lambda match: values.get(match[match.lastindex or 0], match[0]), line.value)
    is_size = ALIASES.get(line.key, line.key) in _SIZES
    if ALIASES.get(line.key, line.key) in SHARED and (last := _take_last(value)) != value:
        return replace(line, value=last), _LAST
    plain = _UNIT.sub(lambda match: str(fio_bytes(match[0])), value) if is_size and value.startswith("(") else value
    computes = value.startswith("(") or any(match[2] for match in _VARIABLE.finditer(line.value))
    if computes and _SUM.fullmatch(plain) and not plain.isdecimal():
        try:
            return replace(line, value=str(whole_sum(plain))), _COMPUTED
        except ValueError:
            pass  # no sum: as a value it is judged by the rules of its option
    return replace(line, value=value), _VARIABLES if value != line.value else ""


def _take_last(text: str) -> str:
    """Return the last of several sizes or shares, with one '%'; other texts as they are."""
    values = re.split("[:,-]", text)
    return values[-1].replace("%%", "%") if all(re.fullmatch(r"\d+(\w*|%%?)", value) for value in values) else text


def _convert_to_bytes(line: JobLine, base: str) -> JobLine:
    if base != "1000" or not line.value or ALIASES.get(line.key, line.key) not in _SIZES:
        return line
    return replace(line, value=_UNIT.sub(lambda match: str(fio_bytes(match[0], base)), line.value))


def unused_variables(values: Mapping[str, object], text: str, where: str) -> list[ParameterError]:
    """Return an error for each variable with a value that the text does not have."""
    names = dict.fromkeys(name for pair in re.findall(r"\$\{(\w+)\}|\$(\w+)", text) for name in pair if name)
    what, allowed = "the job file has no such variable", ", ".join(names) or "none: it has no variables"
    return [
        ParameterError(what, where=where, got=name, allowed=allowed, next_step=did_you_mean(name, names))
        for name in values
        if name not in names
    ]

"""fio's outputs of any version: JSON and human text, also both of one run in one file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from mountlab.core.errors import ToolError, TrialError
from mountlab.core.model import Measurement
from mountlab.fio import report as fio_report
from mountlab.logs import fio_json, fio_runs, fio_terse, fio_text, fio_wrapped
from mountlab.logs.base import Figure, Format, LogReading, Part, StatedValues, lines_of, parts_at
from mountlab.logs.logged import plain
from mountlab.tools.base import decode_json

_JSON = re.compile(r"^\{")
_INDENTED = re.compile(r"^[ \t]+\{\s*$")
_FIRST_KEY = re.compile(r'^\s*"fio version"\s*:')
_JSON_END = re.compile(r"^\}\s*$")
_SIGNAL = re.compile(r"\bfio: terminating on signal \d+")
_KILLED = re.compile(r"^.*?\bfio: terminating on signal \d+", re.MULTILINE)
_COMPLAINT = re.compile(r"^fio: .", re.MULTILINE)
_NEAR = 0.01
_LONGER = 2
"""fio waits for what is under way when its time is over."""
_PART, _ROUNDED_S = 1.02, 1e-5
"""How much longer than the whole the mean of a part may be, as it is printed."""


def _split(text: str) -> list[Part]:
    """Return the runs in a text: reports in any format, without the snapshots of the same run, and with its clients."""
    return fio_runs.joined(_split_wrapped(text) or _split_reports(text))


def _split_wrapped(text: str) -> list[Part]:
    """Return reports inside of other JSON, each without what is around it, and the runs in human text beside them."""
    parts: list[Part] = []
    place = line = 0
    spans = fio_wrapped.spans(text)
    if not spans:
        return []
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    around = [_SIGNAL.search(text, *edges[at : at + 2]) for at in range(0, len(edges), 2)]
    for (begin, end), messages in zip(spans, pairwise(around), strict=True):
        between = text[place:begin]
        parts += _split_beside(between, line)
        line += between.count("\n")
        # A message between two reports may be of either: neither counts.
        report = " ".join([text[begin:end], *(message[0] for message in messages if message)])
        parts.append(Part(text=report, line=line + 1, form="json", inside=True))
        place, line = end, line + text.count("\n", begin, end)
    return [*parts, *_split_beside(text[place:], line)]


def _split_beside(text: str, line: int) -> list[Part]:
    """Return the runs in a text above which there are so many lines."""
    runs = _split_reports(text) if fio_text.has_results(lines_of(text)) else []
    return [replace(run, line=run.line + line) for run in runs if run.form == "text"]


def _split_reports(text: str) -> list[Part]:
    """Split reports in JSON, each from its brace to the next; the text around them gives the runs without one."""
    lines = lines_of(text)
    keyed = {number - 1 for number, line in enumerate(lines) if _FIRST_KEY.match(line)}
    # A brace is at the margin, or somebody has indented it.
    braces = [at for at, line in enumerate(lines) if _JSON.match(line) or (at in keyed and _INDENTED.match(line))]
    reports = [
        number for number in braces if number in keyed
    ] or braces  # without its indentation a report has many lines that are a brace
    if not reports:
        starts = fio_text.starts(lines)
        if not fio_text.has_results(lines) and fio_terse.lines_in(text):
            return [Part(text=text, line=1, form=fio_terse.FORM)]
        parts = parts_at(lines, starts, ["text"] * len(starts))
        return parts or ([Part(text=text, line=1, form="text")] if _COMPLAINT.search(text) else [])
    runs_at: list[tuple[int, str]] = []
    place, report = 0, ""
    for begin, end in pairwise([*reports, len(lines)]):
        runs = list(_find_runs(lines, place, begin, report))
        # Before a report fio writes the header of the same run, without results.
        headed = bool(runs) and not fio_text.has_results(lines[runs[-1] : begin])
        runs_at += [(run, "text") for run in (runs[:-1] if headed else runs)]
        runs_at.append((runs[-1] if headed else begin, "json"))
        closing = next((number for number in range(begin, end) if _JSON_END.match(lines[number])), end - 1)
        place, report = closing + 1, "".join(lines[begin : closing + 1])
    runs_at += [(run, "text") for run in _find_runs(lines, place, len(lines), report)]
    return parts_at(lines, [start for start, _ in runs_at], [form for _, form in runs_at])


def _find_runs(lines: list[str], begin: int, end: int, report: str) -> Iterator[int]:
    """Yield the lines with which the runs in a text begin, but for the one that the report before it tells of."""
    starts = [begin + place for place in fio_text.starts(lines[begin:end])]
    for start, next_one in pairwise([*starts, end]):
        if not (report and _is_same_run(report, "".join(lines[start:next_one]))):
            yield start


def _is_same_run(report: str, text: str) -> bool:
    """Return whether a human text is that of the run whose JSON stands before it (--output-format=json,normal)."""
    try:
        # Of a snapshot, too, which is not the whole run.
        stated = {(row.metric, row.label): row.value for row in fio_json.unchecked(fio_json.decode(report))}
        again = fio_text.read(text).figures
    except TrialError:
        return False
    rates = [f.measurement for f in again if f.measurement.metric.endswith("_bandwidth")]
    pairs = [(stated.get((rate.metric, rate.label)), rate.value) for rate in rates]
    return bool(pairs) and all(ours is not None and abs(ours - value) <= _NEAR * value for ours, value in pairs)


def _read(part: Part, known: StatedValues) -> LogReading:
    report = fio_runs.the_report(part)
    figures, notes = _read_report(report)
    measured = [figure.measurement for figure in figures]
    impossible = _find_impossible(measured)
    possible = [figure for figure, wrong in zip(figures, impossible, strict=True) if not wrong]
    rows = fio_report.undirected([figure.measurement for figure in possible])
    named = [
        Figure(measurement=row, line=figure.line + part.skipped)
        for figure, row in zip(possible, rows, strict=True)
        if row
    ]
    return LogReading(named, [*notes, *_note_unmeasured(measured)])


def _find_impossible(rows: Sequence[Measurement]) -> list[bool]:
    """Return for each figure whether it cannot be: some versions print latencies longer than the run for none measured,
    or completions that take longer than the I/Os that they are a part of."""
    most_s = _LONGER * max((row.value for row in rows if row.metric == "elapsed"), default=0.0) + 1
    names = ("completion_latency_mean", *(f"latency_{name}" for name in fio_report.PERCENTILES))
    wrong = {(f"{side}_{name}", label) for side, label in _find_too_long(rows) for name in names}
    return ["_latency_" in row.metric and (row.value > most_s or (row.metric, row.label) in wrong) for row in rows]


def _find_too_long(rows: Sequence[Measurement]) -> list[tuple[str, str]]:
    """Return the directions, with the label of the job, whose completions last longer than the whole on average."""
    means = {(row.metric, row.label): row.value for row in rows if row.metric.endswith("_latency_mean")}
    sides: list[tuple[str, str]] = []
    for (metric, label), mean in means.items():
        side, completion, _ = metric.partition("_completion_latency_mean")
        if completion and mean > _PART * means.get((f"{side}_latency_mean", label), mean) + _ROUNDED_S:
            sides.append((side, label))
    return sides


def _note_unmeasured(rows: Sequence[Measurement]) -> Iterator[str]:
    for side, label in _find_too_long(rows):
        yield (
            f"{f'job {label}: ' if label else ''}completions of {side}s took longer than the whole {side}s, as fio "
            "prints them: latencies of completion, with the percentiles, are left out"
        )


def _read_report(part: Part) -> LogReading:
    if killed := _KILLED.search(part.text):
        line = part.text.count("\n", 0, killed.start()) + 1
        raise ToolError("fio was stopped before it was done", where=f"line {line}", got=killed[0])
    if part.form == "text":
        return fio_text.read(part.text)
    if part.form == fio_terse.FORM:
        return fio_terse.read(part)
    start = fio_json.brace(part.text)
    assert start is not None
    return fio_json.read(part.text[start:], part.text.count("\n", 0, start))


def _name(part: Part) -> str:
    version = re.search(r"fio-\d[\w.-]*", part.text)
    form = part.form if part.form in ("text", fio_terse.FORM) else "JSON"
    earlier = part.reports - 1
    after = f" after {earlier} snapshot{'s' * (earlier > 1)}" if earlier else ""
    return f"{form}{after} of {version[0] if version else 'fio, version unknown'}"


def _read_quickly(data: bytes) -> list[Measurement] | None:
    """Return a file that is one report and nothing else."""
    if data[:1] != b"{":
        return None
    try:
        report = decode_json(data)
        fio_json.check_torn(report, data)
        rows = fio_json.measurements(report)
    except (ValueError, TrialError):
        return None  # read line by line, for an error that says where
    possible = [row for row, wrong in zip(rows, _find_impossible(rows), strict=True) if not wrong]
    return [row for row in fio_report.undirected(possible) if row]


def _plain(text: str) -> str:
    text = fio_wrapped.as_objects(text)
    return text if fio_wrapped.are_whole(text) else fio_text.unwrapped(plain(text))


FORMAT = Format(split=_split, read=_read, name=_name, plain=_plain, quick=_read_quickly)

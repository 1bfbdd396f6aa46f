"""What watched programs did: amounts of each trial, the file systems below their files, and what could not be seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median

from mountlab.analysis.run_view import RunView
from mountlab.analysis.watched import Observation, is_watched, observations, unseen
from mountlab.core.model import Cell
from mountlab.core.numbers import number
from mountlab.core.units import format_bytes, format_seconds
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Rows, numeric
from mountlab.report.sections import frames

_MOST_DIRECTORIES = 20


@frames.attach(frames.observed)
def watched(run: RunView) -> Html:
    """Return what each run of a watched program moved, where its files were, and what could not be seen."""
    if not is_watched(run.sweep):
        return html.nothing("No program was watched in place.")
    parts: list[Html] = []
    for cell in run.sweep.cells:
        if rows := observations(run, cell):
            parts += [_amounts(cell, rows), _load(cell, rows), *_directories(cell, rows)]
            parts.append(html.paragraph("Not seen:", kind="meta"))
            parts.append(html.items(f"{text}." for text in unseen(run, rows)))
    return html.joined(*parts) if parts else html.nothing("No watched program ended as it should.")


def amounts(run: RunView) -> Html:
    """Return what each watched program moved: medians over its runs, and from the least to the most."""
    rows = []
    for cell in run.sweep.cells:
        seen = observations(run, cell)
        for noun, show, value in _AMOUNTS if seen else ():
            values = [float(figure) for row in seen if (figure := value(row)) is not None]
            ends = [show(min(values)), show(max(values))] if values else []
            spread = " to ".join(ends) if len(set(ends)) > 1 else ""
            rows.append([noun, show(median(values)) if values else "not known", spread])
    head: Head = ["What it did", Column("Median", "line"), Column("Least to most", "interval")]
    return html.table(head, [Rows(rows)], caption="Amounts of one run") if rows else html.joined()


_AMOUNTS: tuple[tuple[str, Callable[[float], str], Callable[[Observation], float | None]], ...] = (
    ("Read by its calls", format_bytes, lambda row: row.around.read_calls),
    ("Delivered to it by storage", format_bytes, lambda row: row.fetched),
    ("Written by its calls", format_bytes, lambda row: row.around.write_calls),
    ("Written to files, for storage", format_bytes, lambda row: row.to_storage),
    ("Taken by the device, of all programs", format_bytes, lambda row: row.device_written),
    ("Flushes a second, of all programs", lambda value: number(value, 1), lambda row: row.flush_rate),
    ("Flushes for each write call", lambda value: number(value, 3), lambda row: row.flushes_per_write),
    ("Processor time, of all processors", "{:.0%}".format, lambda row: row.around.own),
    ("Processor time of other programs", "{:.0%}".format, lambda row: row.around.others),
)


def _size(value: float | None) -> str:
    return "not known" if value is None else format_bytes(float(value))


def _share(value: float | None) -> str:
    return "not known" if value is None else f"{min(value, 1.0):.0%}"


def _amounts(cell: Cell, rows: Sequence[Observation]) -> Html:
    head: Head = [
        "Trial",
        *(Column(amount, "line") for amount in (
            "Time", "Read by calls", "Delivered to it", "Read from the device", "Written by calls", "Written to files",
            "Written to the device",
        )),
        *numeric("Amplification", "Flushes", "Flushes/s", "Flushes a write call"),
    ]  # fmt: skip
    body = [
        [
            row.trial_id,
            format_seconds(row.seconds) if row.seconds is not None else "not known",
            _size(row.around.read_calls),
            _size(row.fetched),
            _size(row.device_read),
            _size(row.around.write_calls),
            _size(row.to_storage),
            _size(row.device_written),
            number(row.amplification, 2) if row.amplification is not None else "",
            str(row.flushes) if row.flushes is not None else "not known",
            number(row.flush_rate, 1) if row.flush_rate is not None else "",
            number(row.flushes_per_write, 3) if row.flushes_per_write is not None else "",
        ]
        for row in rows
    ]
    caption = f"{cell.workload.label}: what its calls moved, and what the device below its directory moved meanwhile"
    several = next((row.below.flushes_of for row in rows if row.below and row.below.flushes_of), "")
    caption += f" (flushes: of {several}, in sum)" if several else ""
    return html.table(head, [Rows(body)], caption=caption)


def _load(cell: Cell, rows: Sequence[Observation]) -> Html:
    waits = [name for name in _WAITS if any(name in row.around.pressure for row in rows)]
    own_waits = [name for name in _WAITS if any(name in row.around.own_pressure for row in rows)]
    head: Head = [
        "Trial",
        *numeric("Its processor time", "Other programs"),
        *numeric(*(f"It waited for {_WAITS[name]}" for name in own_waits)),
        *numeric(*(f"Any program waited for {_WAITS[name]}" for name in waits)),
    ]
    body = [
        [
            row.trial_id,
            _share(row.around.own),
            _share(row.around.others),
            *(_share(row.around.own_pressure.get(name)) for name in own_waits),
            *(_share(row.around.pressure.get(name)) for name in waits),
        ]
        for row in rows
    ]
    caption = (
        f"{cell.workload.label}: shares of the time of all processors, and of the time in which some task of its own "
        "or of the box waited (PSI)"
    )
    return html.table(head, [Rows(body)], caption=caption)


_WAITS = {"cpu": "a processor", "io": "I/O", "memory": "memory"}


def _directories(cell: Cell, rows: Sequence[Observation]) -> Iterator[Html]:
    """Yield a table of the directories in which it had files open in the trial with the most looks."""
    seen = max((row.files for row in rows if row.files), key=lambda files: files.looks, default=None)
    if not seen or not seen.directories:
        return
    largest = sorted(seen.directories, key=lambda one: (-one.size_bytes, one.path))[:_MOST_DIRECTORIES]
    body = []
    for one in largest:
        mount = seen.mounts.get(one.path)
        on = [mount.mountpoint, mount.fstype, mount.source, mount.options] if mount else ["not known", "", "", ""]
        body.append(
            [one.path, str(one.files), str(one.read), str(one.written), format_bytes(float(one.size_bytes)), *on]
        )
    head: Head = [
        "Directory", *numeric("Files", "Read", "Written", "Size"), "Mounted at", "Type", "Source", "Options in effect",
    ]  # fmt: skip
    caption = (
        f"{cell.workload.label}: directories with files that it had open, seen by {seen.looks} looks at its processes"
    )
    yield html.table(head, [Rows(body)], caption=caption)

"""What a program does to its files, by its system calls: operations, sizes, offsets, syncs, and how much goes on at a
time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mountlab.core import numbers
from mountlab.core.units import Scale, format_bytes, scale_for
from mountlab.plots.axes import beside, in_alt
from mountlab.plots.base import Plot, require
from mountlab.plots.layout import lay_out, title_panel
from mountlab.plots.panels import ALONE_IN, LINED, OWN, figure_of, panel_figure, value_limits
from mountlab.plots.style import MARKS, ROW_IN, STYLE, TEXT_PT, WIDTH_IN
from mountlab.plots.ticks import plain_ticks
from mountlab.tracing.program import BINS, Profile, SizeCount
from mountlab.tracing.program_state import TEST

READS, WRITES, _OTHERS = MARKS[0], MARKS[1], MARKS[6]
"""What stands for reads, writes and all else."""
_SIDES = {"reads": READS, "writes": WRITES}
_MOST_OPERATIONS = 12
_MOST_FILES = 4


def plot_operations(profile: Profile, workload: str) -> Plot:
    """Return how often each kind of operation was called, with its bytes and its time. Raises InputError where there
    is no operation on files under test."""
    rows = [row for row in profile.operations if row.place == TEST][:_MOST_OPERATIONS]
    require(rows, f"operation of {workload}")
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH_IN, 2.0))
        axes = figure.subplots()
        axes.set_ylim(len(rows) - 0.45, -0.55)
        axes.set_yticks(range(len(rows)), labels=[row.operation for row in rows])
        axes.set_xlim(0, max(row.calls for row in rows) * 1.02)
        plain_ticks(axes.xaxis, 6, decimals=0)
        axes.set_xlabel("calls on files under test; beside: bytes, time in them")
        marks = {"read": READS, "write": WRITES}
        for y, row in enumerate(rows):
            axes.barh([y], [row.calls], height=0.7, color=marks.get(row.operation, _OTHERS).colour)
            moved = f"{format_bytes(float(row.bytes))}, " if row.bytes else ""
            beside(axes, 1, y, f"{moved}{numbers.quantity(row.seconds, 's')}")
        lay_out(figure, ROW_IN * len(rows))
    most = rows[0]
    share = numbers.percent(round(most.calls / sum(row.calls for row in rows), 2))
    lines = [f"{row.operation}: {numbers.counted(row.calls, 'call')}" for row in rows]
    return Plot(figure, f"{share} of the calls of {workload}: {most.operation}", f"Calls by kind. {in_alt(lines)}")


def plot_sizes(profile: Profile, workload: str) -> Plot:
    """Return the sizes of reads and writes by powers of two. Raises InputError where there is neither."""
    sides = {name: side for name, side in (("reads", profile.reads), ("writes", profile.writes)) if side}
    require(list(sides), f"read or write of {workload}")
    present = sorted({entry.size.bit_length() for side in sides.values() for entry in side.by_size})
    steps = range(present[0], present[-1] + 1)
    with mpl.rc_context({**STYLE, **LINED}):
        figure = Figure(figsize=(WIDTH_IN, 2.0))
        axes = figure.subplots()
        width = 0.8 / len(sides)
        for place, (name, side) in enumerate(sides.items()):
            counts = {entry.size.bit_length(): entry.calls for entry in side.by_size}
            at = [step + (place - (len(sides) - 1) / 2) * width for step in counts]
            axes.bar(at, list(counts.values()), width=width, color=_SIDES[name].colour)
        axes.set_xlim(steps[0] - 0.6, steps[-1] + 0.6)
        every = -(-len(steps) // 7)
        axes.set_xticks(steps[::every], labels=[format_bytes(1 << (step - 1)) for step in steps[::every]])
        value_limits(axes, [*(entry.calls for side in sides.values() for entry in side.by_size), 0], [])
        axes.set_xlabel("bytes of a call, from this up to the next power of two")
        axes.set_ylabel("calls")
        lay_out(figure, 0.6 * ALONE_IN)
    most = {name: side.sizes[0] for name, side in sides.items()}
    texts = [_most_text(name, most[name], sides[name].calls) for name in sides]
    alt = [f"{name}: {', '.join(map(_bin_text, side.by_size))}" for name, side in sides.items()]
    legend = {name: _SIDES[name] for name in sides}
    return Plot(figure, f"Most frequent sizes under {workload}: {numbers.listed(texts)}", in_alt(alt), legend)


def _most_text(name: str, most: SizeCount, calls: int) -> str:
    share = numbers.percent(round(most.calls / calls, 2))
    return f"{share} of the {name} {format_bytes(most.size)}"


def _bin_text(entry: SizeCount) -> str:
    return f"{entry.calls} from {format_bytes(entry.size)}"


def plot_offsets(profile: Profile, workload: str) -> Plot:
    """Return where the reads and writes of the busiest files began, over time: a panel a file. Raises InputError where
    no position is known."""
    points = profile.points
    files = [number for number in range(min(len(profile.busiest), _MOST_FILES)) if number in points.file]
    require(files, f"read or write of {workload} with a known position")
    scales = {number: scale_for("B", max(_of_file(points.offset, points.file, number), default=1)) for number in files}
    titles = {number: _file_title(profile, number, scales[number]) for number in files}
    with panel_figure(list(titles.values()), sharey=False) as panels:
        for number in files:
            axes, factor = panels[titles[number]], scales[number].factor
            for is_write, mark in ((False, READS), (True, WRITES)):
                chosen = [
                    place
                    for place, file in enumerate(points.file)
                    if file == number and points.is_write[place] == is_write
                ]
                at, offsets = [points.at[i] for i in chosen], [points.offset[i] / factor for i in chosen]
                axes.plot(
                    at, offsets, linestyle="", marker="s", markersize=1.6, color=mark.colour, alpha=0.7, rasterized=True
                )
            value_limits(axes, [0.0, *(offset / factor for offset in _of_file(points.offset, points.file, number))], [])
            _time_limits(axes, profile)
            title_panel(axes, "", note=OWN if len(panels) > 1 else "")
        figure_of(panels).supxlabel("seconds since the first call", fontsize=TEXT_PT)
    words = [f"{name} {side.pattern}" for name, side in (("reads", profile.reads), ("writes", profile.writes)) if side]
    shown = len(points.at)
    of = f"; {shown:,} of {points.of:,} drawn".replace(",", "\u202f") if shown < points.of else ""
    title = f"Offsets of the busiest files under {workload}: {', '.join(words)}{of}"
    lines = [f"{file.name}: {file.reads} reads, {file.writes} writes" for file in profile.busiest[:_MOST_FILES]]
    legend = {name: mark for name, mark in _SIDES.items() if (name == "writes") in points.is_write}
    return Plot(figure_of(panels), title, f"{title}. {in_alt(lines)}", legend)


def _of_file(offsets: Sequence[int], files: Sequence[int], number: int) -> list[int]:
    return [offset for offset, file in zip(offsets, files, strict=True) if file == number]


def _file_title(profile: Profile, number: int, scale: Scale) -> str:
    file = profile.busiest[number]
    size = f", {format_bytes(float(file.size))}" if file.size else ""
    return f"{file.name}{size}: {scale.unit}"


def _time_limits(axes: Axes, profile: Profile) -> None:
    axes.set_xlim(0, profile.seen.seen_s * 1.01 or 1.0)
    plain_ticks(axes.xaxis, 5, decimals=9)


def plot_syncs(profile: Profile, workload: str) -> Plot:
    """Return what each sync made safe, and how long it took, over time. Raises InputError where there is none."""
    points, syncs = profile.points, profile.syncs
    require(list(points.sync_at), f"sync of {workload}")
    size = scale_for("B", max(points.sync_bytes))
    took = scale_for("s", max(points.sync_s))
    titles = {"bytes": f"Made safe, {size.unit}", "s": f"Took, {took.unit}"}
    with panel_figure(list(titles.values()), sharey=False) as panels:
        for key, values in (
            ("bytes", [amount / size.factor for amount in points.sync_bytes]),
            ("s", [seconds / took.factor for seconds in points.sync_s]),
        ):
            axes = panels[titles[key]]
            axes.plot(points.sync_at, values, linestyle="", marker="o", markersize=2.4, color=WRITES.colour, alpha=0.7)
            value_limits(axes, [0.0, *values], [])
            _time_limits(axes, profile)
            title_panel(axes, "", note=OWN if len(panels) > 1 else "")
        figure_of(panels).supxlabel("seconds since the first call", fontsize=TEXT_PT)
    each = f", {format_bytes(syncs.bytes_between.median)} each (median)" if syncs.bytes_between.n else ""
    title = f"{numbers.counted(syncs.calls, 'sync')} under {workload}{each}"
    lines = [f"{name}: {count}" for name, count in syncs.names.items()]
    return Plot(figure_of(panels), title, f"{title}. {in_alt(lines)}")


def plot_concurrency(profile: Profile, workload: str) -> Plot:
    """Return how many calls, and requests of io_submit, were under way over time. Raises InputError where none was."""
    flow = profile.concurrency
    require(flow.course, f"call of {workload}")
    with mpl.rc_context({**STYLE, **LINED}):
        figure = Figure(figsize=(WIDTH_IN, 2.0))
        axes = figure.subplots()
        edges = [profile.seen.seen_s * place / BINS for place in range(BINS + 1)]
        axes.stairs(flow.course, edges, color=READS.colour, fill=True, alpha=0.5)
        value_limits(axes, [0.0, *flow.course], [])
        _time_limits(axes, profile)
        axes.set_xlabel("seconds since the first call")
        axes.set_ylabel("under way")
        lay_out(figure, 0.5 * ALONE_IN)
    busy = numbers.percent(round(flow.busy_share, 3 if flow.busy_share < 0.01 else 2))
    who = f"{numbers.counted(flow.threads, 'thread')} of {_processes(flow.processes)}"
    title = f"{who} under {workload}, with a call under way in {busy} of the time"
    shares: Mapping[int, float] = flow.shares
    lines = [f"{depth} under way: {numbers.percent(round(share, 3))}" for depth, share in shares.items()]
    return Plot(figure, title, f"{title}. Share of the time: {in_alt(lines[:8])}")


def _processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"

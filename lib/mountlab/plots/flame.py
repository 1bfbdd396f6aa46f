"""A flame graph: where the processors were or threads slept, function over its caller, each as wide as its time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from mountlab.core import numbers
from mountlab.core.groups import by_key
from mountlab.plots.axes import in_alt
from mountlab.plots.base import Plot, require
from mountlab.plots.style import SMALL_PT, STYLE, WIDTH_IN, Mark
from mountlab.plots.svg import INK
from mountlab.plots.texts import fitted, width_pt

KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "file system": (
        "#B57800", ("ext4", "jbd2", "xfs", "xlog", "btrfs", "f2fs", "iomap", "shmem", "simple_", "ramfs", "overlay"),
    ),
    "page cache and memory": (
        "#009E73",
        ("folio", "page", "filemap", "mem_cgroup", "alloc", "free", "copy", "_copy", "clear_", "__alloc",
         "balance_dirty", "shrink", "try_to_free", "reclaim"),
    ),
    "block layer and device": (
        "#0072B2",
        ("blk", "__blk", "bio", "submit_bio", "lo_", "loop", "nvme", "virt", "scsi", "dd_", "__submit_bio",
         "blkdev", "rq_qos", "wbt"),
    ),
    "scheduler and locks": (
        "#CC79A7",
        ("schedule", "__schedule", "try_to_wake", "ttwu", "finish_task", "mutex", "rwsem", "down", "up_", "_raw_spin"),
    ),
}  # fmt: skip
"""Kind of function to its colour, and to how the names of its functions begin."""
_OTHER = "#8C8C8C"
_MORE, _LESS = "#D55E00", "#0072B2"
TRUNK = frozenset((
    "entry_SYSCALL_64_after_hwframe", "do_syscall_64", "x64_sys_call", "ret_from_fork_asm", "ret_from_fork",
    "kthread", "worker_thread", "process_one_work", "el0t_64_sync", "el0t_64_sync_handler", "el0_svc", "do_el0_svc",
    "invoke_syscall", "el0_svc_common", "perf_trace_sched_switch", "asm_sysvec_apic_timer_interrupt",
))  # fmt: skip
"""Functions below all others, which tell nothing."""
_NARROWEST = 0.006
"""Of the whole width: what is narrower cannot be seen."""
_LEVEL_IN, _DEEPEST = 0.19, 24


@dataclass(frozen=True)
class _Frame:
    """One function above one caller."""

    path: tuple[str, ...]
    left: float
    width: float

    @property
    def name(self) -> str:
        return self.path[-1]


def plot_flame(
    stacks: Mapping[str, float],
    name: str,
    *,
    than: Mapping[str, float] | None = None,
    other: str = "",
    asleep: bool = False,
) -> Plot:
    """Return the flame graph of a cell; with `than` each function has the colour of its difference to the cell `other`.

    `stacks`: functions from the outermost to the innermost, separated by ';', to seconds of processor time for each
    operation, or with `asleep` of sleep. Raises InputError where there is none.
    """
    paths = _by_path(stacks)
    require([path for path, seconds in paths.items() if seconds > 0], "sleep" if asleep else "processor time")
    whole = sum(seconds for path, seconds in paths.items() if len(path) == 1)
    frames = list(_frames(paths, whole))
    levels = max(len(frame.path) for frame in frames)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH_IN, _LEVEL_IN * levels + 0.1))
        axes = figure.add_axes((0.005, 0.0, 0.99, 1.0))
        axes.set_axis_off()
        axes.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(0, levels))
        others = _by_path(than) if than is not None else {}
        for frame in frames:
            kind, alpha = _kind(frame.name), 0.4
            colour = KINDS[kind][0] if kind else _OTHER
            if than is not None:  # full where the difference is a fifth of the whole
                change = (paths[frame.path] - others.get(frame.path, 0.0)) / whole
                colour, alpha = _MORE if change > 0 else _LESS, 0.08 + 0.55 * min(1.0, abs(change) / 0.2)
            _draw_frame(axes, frame, colour, alpha)
    lines = [f"{frame.name} {_share(paths[frame.path], whole)}" for frame in frames if len(frame.path) == 1]
    time = numbers.quantity(whole, "s")
    title = f"{name} takes {time} of processor time an operation"
    if asleep:
        title, other = f"Threads on {name} sleep {time} an operation", f"on {other}"
    if than is not None:
        title += f", {other} {numbers.quantity(sum(than.values()), 's')}"
        legend = {"more time": Mark(_MORE, "s", "■"), "less time": Mark(_LESS, "s", "■")}
    else:
        kinds = _by_kind(paths)
        largest = max(kinds, key=lambda kind: kinds[kind])
        title += f", {_share(kinds[largest], whole)} of it in the {largest}" if kinds[largest] > 0 else ""
        legend = {kind: Mark(colour, "s", "■") for kind, (colour, _) in KINDS.items()}
        legend["other"] = Mark(_OTHER, "s", "■")
    of = f"the sleep of threads on {name}" if asleep else name
    return Plot(figure, title, f"Flame graph of {of}. {in_alt(lines)}", legend)


def _draw_frame(axes: Axes, frame: _Frame, colour: str, alpha: float) -> None:
    """A box, and the name of the function where it has room."""
    level = len(frame.path) - 1
    box = Rectangle((frame.left, level), frame.width, 0.94, facecolor=colour, alpha=alpha, edgecolor="none")
    axes.add_patch(box)
    room = 72 * WIDTH_IN * 0.99 * frame.width - 3
    if room > width_pt("mmm…", SMALL_PT):
        text = fitted(frame.name, room, size=SMALL_PT)
        axes.text(frame.left + 0.003, level + 0.44, text, fontsize=SMALL_PT, va="center", ha="left", color=INK)


def _by_path(stacks: Mapping[str, float]) -> dict[tuple[str, ...], float]:
    """Return each caller and function to the time in it and above it."""
    times: dict[tuple[str, ...], float] = {}
    for stack, seconds in stacks.items():
        functions = [frame for frame in stack.split(";") if frame not in TRUNK][:_DEEPEST]
        for depth in range(1, len(functions) + 1):
            path = tuple(functions[:depth])
            times[path] = times.get(path, 0.0) + seconds
    return times


def _frames(paths: Mapping[tuple[str, ...], float], whole: float) -> Iterator[_Frame]:
    """Yield each function that is wide enough to be seen: callees side by side over their caller."""
    children = by_key((path[:-1], path) for path in sorted(paths))

    def above(caller: tuple[str, ...], left: float) -> Iterator[_Frame]:
        for path in children.get(caller, ()):
            width = paths[path] / whole
            if width >= _NARROWEST:
                yield _Frame(path, left, width)
                yield from above(path, left)
            left += width

    return above((), 0.0)


def _kind(name: str) -> str:
    """Return the kind of a function; '' of another."""
    return next((kind for kind, (_, begins) in KINDS.items() if name.startswith(begins)), "")


def _by_kind(paths: Mapping[tuple[str, ...], float]) -> dict[str, float]:
    """Return each kind to its time: what a function takes itself is of its own kind, or of its nearest caller's."""
    alone = dict(paths)
    for path, seconds in paths.items():
        if len(path) > 1:
            alone[path[:-1]] -= seconds
    kinds = dict.fromkeys(KINDS, 0.0)
    for path, seconds in alone.items():
        kind = next((kind for name in reversed(path) if (kind := _kind(name))), "")
        if kind:
            kinds[kind] += seconds
    return kinds


def _share(seconds: float, whole: float) -> str:
    return numbers.percent(round(seconds / whole, 2))

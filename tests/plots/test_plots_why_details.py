"""Timelines of slow operations and flame graphs, by their artists."""

from __future__ import annotations

import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle
from mountlab import plots
from mountlab.core.errors import InputError
from mountlab.plots import LAYER_COLOURS, Plot, SlowOperation

STACKS = {"fio;do_syscall_64;write;ext4_write": 3e-6, "fio;write": 1e-6, "jbd2;commit;submit_bio": 4e-6}


def plain(text: str) -> str:
    """With blanks in the place of those at which no line breaks."""
    return " ".join(text.split())


def boxes(plot: Plot) -> list[Rectangle]:
    return [patch for patch in plot.figure.axes[0].patches if isinstance(patch, Rectangle)]


def flame(**more: dict[str, float] | str) -> dict[tuple[float, float], Rectangle]:
    """(left end, level) to each function of the graph of STACKS."""
    found = boxes(plots.plot_flame(STACKS, "ext4", **more))  # type: ignore[arg-type]
    return {(round(box.get_x(), 3), box.get_y()): box for box in found}


def test_each_function_is_as_wide_as_its_time_and_lies_on_its_caller() -> None:
    found = {place: round(box.get_width(), 3) for place, box in flame().items()}
    fio, write, ext4_write = ((0, 0), 0.5), ((0, 1), 0.5), ((0, 2), 0.375)
    jbd2, commit, submit_bio = ((0.5, 0), 0.5), ((0.5, 1), 0.5), ((0.5, 2), 0.5)
    assert found == dict([fio, write, ext4_write, jbd2, commit, submit_bio])


def test_a_difference_is_coloured_by_whether_it_is_more_or_less() -> None:
    than = {"fio;write;ext4_write": 1e-6, "fio;write": 1e-6, "jbd2;commit;submit_bio": 6e-6}
    found = {place: to_hex(box.get_facecolor()) for place, box in flame(than=than, other="xfs").items()}
    more, less = found[0, 2], found[0.5, 2]
    assert more != less
    assert {found[0, 0], found[0, 1]} == {more}
    assert {found[0.5, 0], found[0.5, 1]} == {less}


def test_the_title_of_a_flame_graph_says_how_long_and_in_what() -> None:
    assert plain(plots.plot_flame(STACKS, "ext4").title) == (
        "ext4 takes 8.00 µs of processor time an operation, 50 % of it in the block layer and device"
    )
    than = {"fio;write": 2e-6}
    assert plain(plots.plot_flame(STACKS, "ext4", than=than, other="xfs").title) == (
        "ext4 takes 8.00 µs of processor time an operation, xfs 2.00 µs"
    )


def test_the_title_of_a_flame_graph_of_sleep_says_that_threads_slept_and_for_what() -> None:
    slept = {"fio;ext4_sync_file;jbd2_log_wait_commit": 3e-3, "fio;blk_mq_get_tag": 1e-3}
    plot = plots.plot_flame(slept, "ext4", asleep=True)
    assert plain(plot.title) == "Threads on ext4 sleep 4.00 ms an operation, 75 % of it in the file system"
    assert plain(plot.alt).startswith("Flame graph of the sleep of threads on ext4. ")
    compared = plots.plot_flame(slept, "ext4", than={"fio;down_read": 2e-3}, other="xfs", asleep=True)
    assert plain(compared.title) == "Threads on ext4 sleep 4.00 ms an operation, on xfs 2.00 ms"


@pytest.mark.parametrize(("asleep", "what"), [(False, "processor time"), (True, "sleep")])
def test_without_time_there_is_no_flame_graph(asleep: bool, what: str) -> None:
    with pytest.raises(InputError, match=f"there is no {what} to plot"):
        plots.plot_flame({}, "ext4", asleep=asleep)


SLOW = [
    SlowOperation("1 in x0002", [("processor", "own", 1e-3), ("flush", "journal", 6e-3), ("processor", "own", 1e-3)]),
    SlowOperation("2 in x0001", [("device", "own", 2e-3)]),
]


def test_a_timeline_keeps_the_order_of_its_pieces() -> None:
    found = [
        (round(box.get_x(), 6), round(box.get_width(), 6), to_hex(box.get_facecolor()).upper())
        for box in boxes(plots.plot_slowest(SLOW, "sync", "ext4"))
    ]
    processor, flush, device = (LAYER_COLOURS[layer] for layer in ("processor", "flush", "device"))
    assert found == [(0, 1, processor), (1, 6, flush), (7, 1, processor), (0, 2, device)]


def test_the_title_names_the_largest_layer_of_the_slowest() -> None:
    plot = plots.plot_slowest(SLOW, "sync", "ext4")
    assert plain(plot.title) == "The slowest sync of ext4 took 8.00 ms: 75 % flushes (for the journal)"
    assert "2 in x0001: 2.00 ms: 100 % the device" in plain(plot.alt)


def test_without_operations_there_is_no_timeline() -> None:
    with pytest.raises(InputError, match="there is no slow sync operation to plot"):
        plots.plot_slowest([], "sync", "ext4")

"""The stacked bars of what an operation waits for, by their artists."""

from __future__ import annotations

from itertools import combinations

import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle
from mountlab import plots
from mountlab.analysis.why import splits
from mountlab.core.errors import InputError
from mountlab.core.layers import LAYERS
from mountlab.plots import LAYER_COLOURS, LayerBar, Plot
from mountlab.plots.style import MARKS
from mountlab.stats import estimate
from simulated_why import simulated_why, sweep_of


def drawn(*names: str, operation: str = "sync") -> Plot:
    sweep = sweep_of(*names)
    found = [each for each in splits(simulated_why(sweep), sweep) if each.operation == operation]
    bars = [
        LayerBar(each.filesystem, each.statistic, each.whole, {part: own.mean for part, own in each.parts.items()})
        for each in found
    ]
    return plots.plot_layers(bars, operation, "fsync")


def test_the_parts_of_a_bar_follow_each_other_and_end_at_the_latency() -> None:
    plot = drawn("ext4")
    for axes, due in zip(plot.figure.axes, (1.5, 5.2), strict=True):
        parts = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
        ends = [patch.get_x() + patch.get_width() for patch in parts]
        assert [patch.get_x() for patch in parts] == pytest.approx([0, *ends[:-1]])
        assert ends[-1] == pytest.approx(due, rel=0.1)
        assert axes.get_xlim()[0] == 0


def test_what_is_done_for_the_journal_is_patterned_and_has_the_colour_of_its_layer() -> None:
    found = {(to_hex(each.get_facecolor()), each.get_hatch() or "") for each in drawn("ext4").figure.axes[0].patches}
    device, flush = (LAYER_COLOURS[layer].lower() for layer in ("device", "flush"))
    assert {(device, ""), (device, "/////"), (flush, "/////")} <= found
    assert (flush, "") not in found


@pytest.mark.slow
def test_a_layer_has_one_colour_whatever_else_is_drawn_and_none_is_that_of_a_file_system() -> None:
    assert list(LAYER_COLOURS) == list(LAYERS)
    assert len(set(LAYER_COLOURS.values())) == len(LAYERS)
    assert not {each.lower() for each in LAYER_COLOURS.values()} & {mark.colour.lower() for mark in MARKS}
    for names in combinations(("ext4", "xfs", "btrfs", "tmpfs"), 2):
        for key, mark in drawn(*names).legend.items():
            layer = next((name for name, each in LAYERS.items() if each.key == key), "")
            assert not layer or mark.colour == LAYER_COLOURS[layer]


def test_the_title_names_the_largest_layer_of_each_file_system() -> None:
    plot = drawn("ext4", "xfs", "tmpfs")
    assert plot.title == (
        "Largest part of the mean sync latency under fsync: flush on ext4 and xfs, processor on tmpfs"
    )
    assert "ext4, mean sync latency: 1." in plot.alt
    assert "flushes (for the journal)" in plot.alt
    with pytest.raises(InputError, match="split of sync latency"):
        plots.plot_layers([LayerBar("ext4", "mean", estimate([0.0, 0.0]), {})], "sync", "fsync")


@pytest.mark.slow
def test_keys_are_those_of_the_parts_that_can_be_seen() -> None:
    keys = set(drawn("tmpfs").legend)
    assert keys == {"processor", "unattributed"}
    assert {"for the journal", "flush"} <= set(drawn("tmpfs", "xfs").legend)

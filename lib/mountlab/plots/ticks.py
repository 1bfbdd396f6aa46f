"""Ticks that people can read: round numbers, written as people do, and only as many as have room for their texts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from matplotlib.axis import Axis, XAxis
from matplotlib.ticker import FixedLocator, FuncFormatter, Locator, MaxNLocator, NullLocator

from mountlab.core import numbers
from mountlab.plots.texts import LINE, width_pt

OVERHANG_PT = 6.5
"""The text at the end of an axis may stand so far beyond it: figures leave that room beside each panel."""
_BETWEEN_PT = 4.0
"""Of two texts side by side: about a space."""
_DENSE_TO = 200.0
"""Where an axis reaches over more than this factor, ticks are powers of ten alone."""
_MOST_LOG = 7
Choices = Callable[[float, float], Iterable[Sequence[float]]]
"""Sets of ticks from one end of an axis to the other, fewer and fewer."""


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers for a log axis from `low` to `high` (> 0): 1-2-5 steps, decades if wide, even steps if narrow."""
    return next(_log_choices(low, high))


def _log_choices(low: float, high: float) -> Iterator[list[float]]:
    """Such numbers, fewer and fewer: always evenly spaced, or in 1-2-5 steps."""
    if high / low < 3:
        yield from _even_choices(low, high, 5)
        return
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    if high / low < _DENSE_TO:
        dense = [step * 10.0**decade for decade in decades for step in (1, 2, 5)]
        yield dense
        if sum(low <= 10.0**decade <= high for decade in decades) < 2:
            yield from ([*dense[start::2]] for start in (1, 0))
    first = max(1, len(decades) // 6)
    for every in range(first, max(first + 1, len(decades))):
        yield [10.0**decade for decade in decades if decade % every == 0]
    yield [10.0 ** decades[len(decades) // 2]]


def _even_choices(low: float, high: float, most: int) -> Iterator[list[float]]:
    """Even steps from low to high, at most so many, then fewer and fewer."""
    for count in range(most, 0, -1):
        yield [float(tick) for tick in MaxNLocator(nbins=count, steps=[1, 2, 5, 10]).tick_values(low, high)]


def tick_text(value: float) -> str:
    """Return a tick as people write it: '0.5', '1', '2 000'; never 10^x."""
    fraction = f"{value:.9f}".rstrip("0").partition(".")[2]
    return numbers.number(value, len(fraction))


class FittingLocator(Locator):
    """The most ticks whose texts have room beside each other on the axis as it is when it is drawn."""

    def __init__(self, choices: Choices, text: Callable[[float], str]):
        """`text`: that of a tick."""
        self._choices, self._text = choices, text
        self._last: tuple[object, list[float]] = (None, [])
        """The ticks that were found last, and for what: Matplotlib asks a dozen times for each drawing."""

    def __call__(self) -> list[float]:
        low, high = sorted(map(float, self._axis().get_view_interval()))
        return self.tick_values(low, high)

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Return the first choice that fits; where none does the last."""
        axis = self._axis()
        size = float(axis.get_major_ticks(1)[0].label1.get_fontsize())
        request = (vmin, vmax, axis.get_scale(), _length_pt(axis), size)
        if self._last[0] != request:
            self._last = request, self._chosen(vmin, vmax, _length_pt(axis), size)
        return self._last[1]

    def _axis(self) -> Axis:
        if not isinstance(self.axis, Axis):
            raise ValueError("a locator has an axis")
        return self.axis

    def _chosen(self, low: float, high: float, length_pt: float, size_pt: float) -> list[float]:
        axis, inside, slack = self._axis(), list[float](), 1e-9 * abs(high - low)
        across = isinstance(axis, XAxis)
        change = axis.get_transform().transform
        first, last = float(change(low)), float(change(high))
        for choice in self._choices(low, high):
            spans = {}
            for tick in (tick for tick in choice if low - slack <= tick <= high + slack):
                place = length_pt * (float(change(tick)) - first) / (last - first)
                half = width_pt(self._text(tick), size_pt) / 2 if across else LINE * size_pt / 2
                # At the ends of an axis from left to right there is only so much room for a text.
                if not across or (place - half >= -OVERHANG_PT and place + half <= length_pt + OVERHANG_PT):
                    spans[tick] = place - half, place + half
            between = _BETWEEN_PT if across else 0.0
            if spans and all(after[0] - before[1] >= between for before, after in pairwise(sorted(spans.values()))):
                return list(spans)
            inside = list(spans) or inside
        return inside[:1]


def _length_pt(axis: Axis) -> float:
    inside, figure = axis.axes.get_position(), axis.axes.get_figure(root=True)
    wide, high = figure.get_size_inches() if figure is not None else (1.0, 1.0)
    return float(72 * (inside.width * wide if isinstance(axis, XAxis) else inside.height * high))


def _set(
    axis: Axis, choices: Callable[[float, float], Iterable[Sequence[float]]], text: Callable[[float], str]
) -> None:
    axis.set_major_locator(FittingLocator(choices, text))
    axis.set_major_formatter(FuncFormatter(lambda tick, _: text(tick)))
    axis.set_minor_locator(NullLocator())


def log_number_ticks(axis: Axis) -> None:
    """Round numbers on a logarithmic axis."""

    def choices(low: float, high: float) -> Iterator[list[float]]:
        for ticks in _log_choices(low, high):
            if sum(low <= tick <= high for tick in ticks) <= _MOST_LOG:
                yield ticks

    _set(axis, choices, tick_text)


def plain_ticks(axis: Axis, most: int = 4, decimals: int = 6) -> None:
    """So many even steps at most, with numbers as people write them."""
    _set(axis, lambda low, high: _even_choices(low, high, most), lambda tick: tick_text(round(tick, decimals)))


def set_ticks(axis: Axis, places: Sequence[float], texts: Sequence[str]) -> None:
    """Ticks at these places, with these texts: where they have no room every second, third, ...; short ones without a
    text stand at the others."""
    labels = dict(zip(places, texts, strict=True))
    every = range(1, len(places) + 1)
    _set(axis, lambda _low, _high: (places[::n] for n in every), lambda tick: labels.get(tick, ""))
    axis.set_minor_locator(FixedLocator(list(places)))

"""Numbers as people read them: as many digits as the interval supports, quantities in units, shares, durations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mountlab.core.units import format_seconds, scale_for

THIN_SPACE, FIGURE_SPACE, PUNCTUATION_SPACE = "\u202f", "\u2007", "\u2008"
"""The space between thousands (without line breaks), and spaces as wide as a digit and as a full stop."""
MINUS, TIMES, MISSING = "\u2212", "\u00d7", "n/a"
_MEAN_DIGITS, _RATIO_DIGITS, _VAST = 3, 2, 100
_MOST_DECIMALS = 4
"""The most decimals of an interval's end that is near 1."""
_LARGEST = 1e6
"""An interval's end beyond it is shown as '>1 000 000': more digits would be noise."""


@dataclass(frozen=True)
class Figures:
    """A value and its interval as text, all three with the same number of decimals."""

    value: str
    low: str
    high: str
    level: str = ""
    """Level of the interval, where it differs from that of the page: '90 %'."""

    @property
    def interval(self) -> str:
        """The interval as text: '[6.5, 7.3]', '[0.99, 1.01] (90 %)', or '' where there is none."""
        level = f" ({self.level})" if self.level else ""
        return f"[{self.low}, {self.high}]{level}" if MISSING not in (self.low, self.high) else ""

    def __str__(self) -> str:
        return f"{self.value} {self.interval}".strip()


def number(value: float, decimals: int) -> str:
    """Return a number with a fixed count of decimals, thousands set apart by a thin space; 'n/a' for NaN. What is
    rounded to 0 has no sign."""
    if math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    return f"{value:z,.{decimals}f}".replace(",", THIN_SPACE).replace("-", MINUS)


def mean_figures(mean: float, low: float, high: float, *, factor: float = 1.0) -> Figures:
    """Return a mean and its interval, divided by `factor`: three significant digits, five where its interval is
    tight."""
    return _figures(mean / factor, low / factor, high / factor, digits=_MEAN_DIGITS)


def count_figures(mean: float, low: float, high: float) -> Figures:
    """Return a large number and its interval, as `mean_figures`, but rounded to two digits of how wide that is, or of
    its lower end where that is less: it is not 0 then."""
    if not 0 < high - low < math.inf:
        return mean_figures(mean, low, high)
    step = 10.0 ** max(0, math.floor(math.log10(min(high - low, low or math.inf))) - 1)
    return Figures(*(number(step * round(value / step), 0) for value in (mean, low, high)))


def ratio_figures(ratio: float, low: float, high: float) -> Figures:
    """Return a ratio and its interval: two significant digits, up to four where the interval is tight. An end that
    would be rounded to 1 gets the decimals that show its side, or where four do not show it, '<1.00' or '>1'; the ratio
    gets them, too, where it would be rounded to a value on the other side of that end."""
    figures = _figures(ratio, low, high, digits=_RATIO_DIGITS)
    ends = _beside_one(low, figures.low), _beside_one(high, figures.high)
    if ends == (figures.low, figures.high):
        return figures
    least, most = (round(end, len(_fraction(text))) for end, text in zip((low, high), ends, strict=True))
    decimals = sorted(len(_fraction(text)) for text in (figures.value, *ends))
    inside = (number(ratio, count) for count in decimals if least <= round(ratio, count) <= most)
    return Figures(next(inside, figures.value), *ends)


def _beside_one(end: float, text: str) -> str:
    """Return the text of an interval's end that does not say 1 where the end is not 1."""
    decimals = len(_fraction(text))
    if text != number(1, decimals) or end == 1:
        return text
    finer = (number(end, more) for more in range(decimals + 1, _MOST_DECIMALS + 1))
    beside = (longer for longer in finer if longer != number(1, len(_fraction(longer))))
    return next(beside, f"{'>' if end > 1 else '<'}{text}")


def _figures(value: float, low: float, high: float, *, digits: int) -> Figures:
    """Return value and interval as text. Where the interval is so wide that its ends would need other decimals, they
    are shown as '<0.1' and by two digits, or as beyond a million. Without a value the bounds set the decimals. An
    interval from 0 to infinity leaves nothing out, and is none."""
    if low == 0 and high == math.inf:
        low = high = math.nan
    finite = next((figure for figure in (value, low, high) if math.isfinite(figure)), value)
    decimals = max(_decimals(finite, digits), min(_decimals_of_spread((high - low) / 2), _decimals(finite, digits + 2)))
    smallest = 10.0**-decimals
    low_text = f"<{number(smallest, decimals)}" if 0 < low < smallest / 2 else number(low, decimals)
    vast = math.isfinite(high) and abs(high) > _VAST * abs(value)
    return Figures(number(value, decimals), low_text, _vast(high) if vast else number(high, decimals))


def _vast(high: float) -> str:
    return number(float(f"{high:.2g}"), 0) if abs(high) <= _LARGEST else f">{number(_LARGEST, 0)}"


def _decimals(value: float, digits: int) -> int:
    """Return decimals that show `digits` significant digits of `value`; none for zero and for what is not finite."""
    if not math.isfinite(value) or value == 0:
        return 0
    return max(0, digits - 1 - math.floor(math.log10(abs(value))))


def _decimals_of_spread(half: float) -> int:
    """Return decimals for half an interval: one significant digit, two where the first is a 1 (0.12, not 0.1)."""
    return _decimals(half, 2 if f"{half:e}".startswith("1") else 1)


def align_decimals(texts: Sequence[str]) -> list[str]:
    """Return the texts, filled up on the right so that the decimal points of a right-aligned column stand below each
    other."""
    widest = max((len(_fraction(text)) for text in texts), default=0)
    return [text + _filler(len(_fraction(text)), widest) for text in texts]


def _fraction(text: str) -> str:
    return text.partition(".")[2] if text != MISSING else ""


def _filler(digits: int, widest: int) -> str:
    point = PUNCTUATION_SPACE if digits == 0 < widest else ""
    return point + FIGURE_SPACE * (widest - digits)


def quantity(value: float, unit: str) -> str:
    """Return a value in base units with the unit that suits it: '598 MB/s'. Unknown units are shown as they are."""
    scale = scale_for(unit, abs(value))
    return f"{scale.show(value)}\u00a0{scale.unit}"


def percent(fraction: float) -> str:
    """Format a share by two significant digits: 0.02 as '2 %', 0.0123 as '1.2 %', with a no-break space."""
    return f"{number(fraction * 100, 0 if abs(fraction) >= 0.1 else _trimmed(fraction * 100))}\u00a0%"


def _trimmed(value: float) -> int:
    """Return decimals for two significant digits, without a zero at the end."""
    decimals = _decimals(value, 2)
    text = f"{value:.{decimals}f}"
    return decimals - (len(text) - len(text.rstrip("0"))) if "." in text else 0


def counted(n: int, noun: str) -> str:
    """Format a count with its noun: '1 block', '5 blocks', '3 boxes', '3 flushes'."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}{'es' if noun.endswith(('x', 'sh')) else 's'}"


def listed(parts: Sequence[str]) -> str:
    """Join words to a list: 'a', 'a and b', 'a, b and c'."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def first_few(names: Sequence[str], most: int) -> str:
    """Join the first `most` names: 'a, b', or 'a, b and 4 more'."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def level_text(level: float) -> str:
    """Format a level of confidence: '90 %', '99.4 %'."""
    return f"{100 * level:.4g}\u00a0%"


def duration_text(seconds: float) -> str:
    """Format a duration: '35.7 s', '2 min 5 s', '3 h 10 min'."""
    if not math.isfinite(seconds) or seconds < 3600:
        return format_seconds(seconds) if math.isfinite(seconds) else MISSING
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def rough_duration(seconds: float) -> str:
    """Return an expected duration without false precision: '8 s', '2 min 10 s', '47 min', '3 h 10 min'."""
    if not math.isfinite(seconds):
        return duration_text(seconds)
    if seconds < 1:
        return "1 s"
    step = 1 if seconds < 60 else 10 if seconds < 600 else 60
    whole = step * round(seconds / step)
    return f"{whole} s" if whole < 120 else duration_text(float(whole))


def p_text(p: float) -> str:
    """Return a p value by two digits: '0.012'; '<0.0001' below that."""
    return "<0.0001" if p < 1e-4 else number(p, _decimals(p, 2))

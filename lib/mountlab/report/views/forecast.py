"""A forecast as people and as programs read it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict

from mountlab.analysis.forecast import LATE, Forecast, Prediction
from mountlab.core import names, numbers
from mountlab.core.json import plain
from mountlab.core.model import Sweep
from mountlab.core.text import aligned, lines_of
from mountlab.core.units import format_seconds
from mountlab.report import html
from mountlab.report.html import Column, Html, Rows
from mountlab.stats.power import MOST_BLOCKS, MOST_RUN, POWER
from mountlab.sweep import plan_text

_MOST_NAMED = 4


def forecast_json(forecast: Forecast) -> dict[str, object]:
    """Return everything in the forecast, JSON-able: what is infinite or not known is null. `workload` is a label."""
    data = plain(asdict(forecast))
    for prediction in data["predictions"]:
        prediction["spread"]["workload"] = prediction["spread"].pop("workload_label")
    return {"power": POWER, "most_blocks": MOST_BLOCKS, **data}


def forecast_text(forecast: Forecast, sweep: Sweep) -> str:
    """Return the forecast for the terminal: what it rests on, a table of what is to be expected, and how to read it."""
    lines = [f"{'predicted' if not i else '':12} {line}" for i, line in enumerate(_rests_on(forecast))]
    table = aligned([heading(forecast, sweep), *(list(_row(prediction)) for prediction in forecast.predictions)])
    return lines_of([*lines, "", *table, "", *explained(forecast, sweep)])


def _rests_on(forecast: Forecast) -> Iterator[str]:
    yield f"from {forecast.pilot}, which has {len(forecast.used)} of the {numbers.counted(forecast.cells, 'cell')}"
    if forecast.missing:
        yield f"nothing is known of {numbers.first_few(forecast.missing, _MOST_NAMED)}"
    yield from forecast.notes
    yield f"time: about {numbers.rough_duration(forecast.expected_s)}, by what trials took there"
    if forecast.fresh_more_s:
        yield plan_text.fresh_cost(forecast.fresh_more_s, forecast.expected_s)


def heading(forecast: Forecast, sweep: Sweep) -> list[str]:
    """Headings of the columns of a forecast's table."""
    first = forecast.predictions[0]
    widths = [f"mean ±{numbers.percent(width)}" for width in first.for_half_width]
    ratios = [f"show {numbers.percent(ratio - 1)}" for ratio in first.for_ratio]
    same = f"same ±{numbers.percent(sweep.design.smallest_effect)}"
    return ["workload", "metric", "spread", "blocks", "time", "mean", "shows", "cautious", *widths, *ratios, same]


def _row(prediction: Prediction) -> Iterator[str]:
    spread = prediction.spread
    yield spread.workload_label
    yield names.metric_noun(spread.metric, spread.label)
    yield share(spread.cv)
    late = f" to {prediction.blocks_late:.0f}" if prediction.blocks_late != prediction.blocks else ""
    yield f"{prediction.blocks:.0f}{late}"
    yield format_seconds(float(f"{prediction.blocks * prediction.block_s:.2g}"))
    yield f"±{share(prediction.half_width)}" if math.isfinite(prediction.half_width) else numbers.MISSING
    yield difference(prediction.smallest_ratio)
    yield difference(prediction.smallest_ratio_cautious)
    yield from map(blocks, _all_blocks(prediction))


def share(fraction: float) -> str:
    """Return a relative spread; 'n/a' where none is known."""
    return numbers.percent(fraction) if math.isfinite(fraction) else numbers.MISSING


def difference(ratio: float) -> str:
    """'4.1 %' for 1.041, '2.4 times' for what is more than twice as much."""
    if not math.isfinite(ratio):
        return numbers.MISSING
    return numbers.percent(ratio - 1) if ratio < 2 else f"{numbers.number(ratio, 1 if ratio < 10 else 0)} times"


def blocks(n: float) -> str:
    """Return a number of blocks; '>200' where more are needed than can be run."""
    if math.isnan(n):
        return numbers.MISSING
    return f"{n:.0f}" if n <= MOST_RUN else f">{MOST_RUN}"


def explained(forecast: Forecast, sweep: Sweep) -> list[str]:
    """Return how to read the columns, one sentence a line."""
    together = f", corrected for {forecast.comparisons} comparisons" if forecast.comparisons > 1 else ""
    level = numbers.percent(sweep.design.level)
    late = f"; '17 to 21': half of such runs end by the first, {numbers.percent(LATE)} by the second"
    until = "" if sweep.design.until is None else late
    return [
        f"spread: standard deviation over mean, of the file system that varied most; blocks, time: as planned{until}.",
        f"mean: the {level} interval to be expected.",
        f"shows: the smallest difference from the baseline that these blocks show with a chance of "
        f"{numbers.percent(POWER)}, at {level}{together}.",
        "cautious: the same if the spread is as large as the pilot leaves possible.",
        "mean ±, show, same: blocks for an interval of that width, to show that difference, to show that two "
        "equal file systems are the same.",
        *_too_noisy(forecast),
    ]


def _too_noisy(forecast: Forecast) -> Iterator[str]:
    """Yield what to do about what would take too many blocks."""
    over = [prediction for prediction in forecast.predictions if any(n > MOST_RUN for n in _all_blocks(prediction))]
    if over:
        worst = max((prediction.spread for prediction in over), key=lambda spread: spread.cv)
        first = f"that of {worst.cell} ({share(worst.cv)} from trial to trial) first"
        less = "half of it takes a quarter of the blocks"
        yield f">{MOST_RUN}: cannot be decided at this noise. Reduce it, {first}: {less}."


def _all_blocks(prediction: Prediction) -> tuple[float, ...]:
    """Return every number of blocks in a prediction; NaN where it is not known."""
    return (*prediction.for_half_width.values(), *prediction.for_ratio.values(), prediction.for_same)


def forecast_table(forecast: Forecast, sweep: Sweep) -> Html:
    """Return the forecast as a table for a notebook."""
    head = [Column(name, "number" if i > 1 else "") for i, name in enumerate(heading(forecast, sweep))]
    table = html.table(
        head, [Rows([list(_row(prediction)) for prediction in forecast.predictions])], caption="Predicted"
    )
    return html.joined(html.items(list(_rests_on(forecast))), table, *map(html.paragraph, explained(forecast, sweep)))


def forecast_sentences(forecast: Forecast, sweep: Sweep) -> list[str]:
    """Return what the planned design can and cannot show, in sentences; the workload that needs most comes first."""
    predictions = [prediction for prediction in forecast.predictions if math.isfinite(prediction.smallest_ratio)]
    if not predictions:
        return ["Nothing is compared in this sweep, so there is no difference to show."]
    order = sorted(predictions, key=lambda prediction: -prediction.smallest_ratio)
    return [_sentence(prediction, sweep.design.smallest_effect) for prediction in order]


def _sentence(prediction: Prediction, smallest_effect: float) -> str:
    least = difference(prediction.smallest_ratio)
    text = f"{_name(prediction)}: {prediction.blocks:.0f} blocks show a difference of {least} or more"
    target = next((ratio for ratio in prediction.for_ratio if ratio - 1 >= smallest_effect), None)
    if target is None or prediction.smallest_ratio <= target:
        return f"{text}."
    return f"{text}; {numbers.percent(target - 1)} would take {blocks(prediction.for_ratio[target])} blocks."


def curves(forecast: Forecast) -> tuple[dict[str, dict[int, float]], dict[str, float]]:
    """For plots.plot_smallest_difference: name to blocks to ratio, and name to the planned blocks. Empty where nothing
    is compared, or the pilot holds no pairs."""
    shows, planned = {}, {}
    for prediction in forecast.predictions:
        if not math.isnan(prediction.smallest_ratio):
            curve = {**prediction.shows, int(prediction.blocks): prediction.smallest_ratio}
            shows[_name(prediction)] = dict(sorted(curve.items()))
            planned[_name(prediction)] = prediction.blocks
    return shows, planned


def _name(prediction: Prediction) -> str:
    return f"{prediction.spread.workload_label}: {names.metric_noun(prediction.spread.metric, prediction.spread.label)}"

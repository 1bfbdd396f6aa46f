"""The plots of a report as files of their own, at the size of a page or a column of a paper."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mountlab import plots
from mountlab.analysis.published import beside
from mountlab.analysis.run_view import RunView
from mountlab.core import plugins
from mountlab.core.errors import InputError
from mountlab.plots import Plot
from mountlab.report.sections.figures import PLOTS
from mountlab.report.sections.shared import names_of
from mountlab.wording import verdicts

FORMS = ("svg", "png", "pdf")
CM_PER_IN = 2.54
NARROWEST_CM, WIDEST_CM = 4.0, 60.0
COLUMN_CM = 8.5
"""Of a page with two columns."""


def figure_files(run: RunView, form: str, *, width_cm: float) -> dict[str, bytes]:
    """Return name to content of each plot of a run, and of a text with what each of them shows.

    Raises InputError for a width that no paper has, and where the run has nothing to plot.
    """
    if not NARROWEST_CM <= width_cm <= WIDEST_CM:
        raise InputError(
            "not the width of a figure",
            where="--width-cm",
            got=f"{width_cm:g}",
            allowed=f"{NARROWEST_CM:g} to {WIDEST_CM:g}",
        )
    drawn = dict(_drawn(run))
    if not drawn:
        raise InputError("the run has nothing to plot", where="--figures", got="no trial succeeded")
    files = {f"{name}.{form}": plot.save_bytes(form, width_in=width_cm / CM_PER_IN) for name, plot in drawn.items()}
    captions = []  # title, key and alternative text of each figure: a paper sets them itself
    for name, plot in drawn.items():
        keys = ", ".join(f"{mark.glyph} {key}" for key, mark in plot.legend.items())
        captions.append("\n  ".join(filter(None, (name, plot.title, keys, plot.alt))) + "\n")
    return {**files, "captions.txt": "\n".join(captions).encode()}


def _drawn(run: RunView) -> Iterator[tuple[str, Plot]]:
    names, smallest = names_of(run), run.sweep.design.smallest_effect
    if any(verdicts.effect(comparison) >= 0 for comparison in run.comparisons):
        yield "ratios", plots.plot_ratios(run.comparisons, smallest_effect=smallest, filesystems=names)
    for part, plugin_plots in PLOTS.items():
        with plugins.calling(PLOTS.entry(part)):
            drawn = list(plugin_plots.draw(run))
        plugins.check_answer(PLOTS.entry(part), drawn, list[Plot], "draw()")
        for number, plot in enumerate(drawn, start=1):
            yield f"{part}-{number}", plot
    pairs = [(figure.theirs, figure.ours) for figure in beside(run) if math.isfinite(figure.theirs.ratio)]
    if pairs:
        yield "published", plots.plot_published(pairs, filesystems=names)

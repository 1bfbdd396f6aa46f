"""Choosing before a person in JupyterLab: a run among those of results/, and what to look at in one.

Without a person (papermill, nbconvert, a terminal) the same calls show the same as text and one still picture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from mountlab import plots
from mountlab.core import disk, numbers
from mountlab.core.errors import AlteredError, InputError, MountlabError, StoreError
from mountlab.core.names import cell_id, metric_heading, workload_label
from mountlab.core.run_info import RunInfo
from mountlab.core.units import Scale, scale_for
from mountlab.plots import Plot
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Rows
from mountlab.report.sections.shared import orders
from mountlab.results import find, paths, store
from mountlab.results.info import is_derived, read_info, read_verdicts, runs_below
from mountlab.results.store import Run
from mountlab.runner.live import show, widgets_show

_LONGEST_QUESTION = 60


@dataclass(frozen=True)
class RunEntry:
    """One run of results/, as the browser lists it."""

    path: Path
    question: str
    created_at: str
    box: str
    status: str
    verdict: str
    """How often each verdict fell: '3 faster, 1 undecided'; '' where nothing was compared or derived yet."""
    derived: bool
    """Whether its figures were derived: a run that came by git has its raw output alone."""

    @property
    def line(self) -> str:
        """What is known of it, on one line."""
        shown = self.question if len(self.question) <= _LONGEST_QUESTION else f"{self.question[:_LONGEST_QUESTION]}…"
        status = "" if self.status == "complete" else self.status
        parts = (self.created_at[:16].replace("T", " "), self.box, shown, self.verdict, status)
        return " · ".join(part for part in parts if part)

    @property
    def searched(self) -> str:
        """Everything that can be searched for: more than the line has room for."""
        return f"{self.path.name} {self.question} {self.line}".casefold()

    @property
    def verdicts(self) -> str:
        """The verdicts, or why there are none."""
        return self.verdict or ("nothing is compared" if self.derived else "verdicts: not derived yet")


def entries(results: Path = paths.RESULTS) -> list[RunEntry]:
    """Return the runs below a directory, the newest first. What is no run of Mountlab's is passed over."""
    return [_entry(path, info) for path, info in runs_below(results)]


def _entry(path: Path, info: RunInfo) -> RunEntry:
    question = " ".join(str(info.parameters.get("question", "")).split())
    try:
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in read_verdicts(path).items())
    except AlteredError as error:
        verdicts = f"comparisons.csv: {error.what}"
    created, box, status = info.created_at, info.box_name, info.status
    return RunEntry(path, question, created, box, status, verdicts, is_derived(path))


# ── choosing a run ───────────────────────────────────────────────────────────────────────────────────────────────────


class RunBrowser:
    """The runs of results/ to choose from; `run` is the chosen one."""

    entries: list[RunEntry]
    """What is listed, newest first."""
    chosen: RunEntry
    """The entry that is chosen."""

    def __init__(self, results: Path, chosen: Path | None) -> None:
        self.entries = entries(results)
        if chosen is not None and not any(entry.path == chosen for entry in self.entries):
            self.entries.append(_entry(chosen, read_info(chosen)))
        if not self.entries:
            raise StoreError("there is no run yet", where=disk.path_text(results), next_step="mountlab demo")
        self.chosen = next((entry for entry in self.entries if entry.path == chosen), self.entries[0])
        self._widget = self._widgets() if widgets_show() else None

    @property
    def run(self) -> Run:
        """The chosen run, read when it is asked for."""
        return store.load_run(self.chosen.path)

    def _widgets(self) -> Any:
        import ipywidgets

        search = ipywidgets.Text(placeholder="Search question, name, box, date, verdict", layout={"width": "40rem"})
        wide = {"width": "calc(100% - 4px)", "max_width": "72rem"}
        listed = ipywidgets.Select(options=self._options(""), value=self.chosen.path, rows=8, layout=wide)
        about = ipywidgets.HTML(self._about())

        def narrow(_: object) -> None:
            none = (f"No run matches. Still chosen: {self.chosen.path.name}", self.chosen.path)
            listed.options = self._options(search.value) or [none]

        def choose(_: object) -> None:
            if listed.value is not None:
                self.chosen = next(entry for entry in self.entries if entry.path == listed.value)
                about.value = self._about()

        search.observe(narrow, "value")
        listed.observe(choose, "value")
        return ipywidgets.VBox([search, listed, about])

    def _options(self, searched: str) -> list[tuple[str, Path]]:
        wanted = searched.casefold().split()
        return [(entry.line, entry.path) for entry in self.entries if all(word in entry.searched for word in wanted)]

    def _about(self) -> Html:
        head = html.paragraph(html.labelled(disk.path_text(self.chosen.path), self.chosen.question))
        return html.joined(head, html.paragraph(f"{self.chosen.status}; {self.chosen.verdicts}", kind="meta"))

    def _ipython_display_(self) -> None:
        show(self._widget if self._widget is not None else self._page())

    def _page(self) -> Html:
        head: Head = [Column("Run", "code"), "Question", "Box", "Verdicts", "Status"]
        rows = [(html.code(run.path.name), run.question, run.box, run.verdict, run.status) for run in self.entries]
        caption = f"{numbers.counted(len(rows), 'run')}; chosen: {self.chosen.path.name}"
        return html.table(head, [Rows(rows)], caption=caption)

    def __repr__(self) -> str:
        return "\n".join(f"{'*' if run is self.chosen else ' '} {run.path.name}  {run.line}" for run in self.entries)


def browse(results: Path = paths.RESULTS, *, chosen: Path | str | None = None) -> RunBrowser:
    """Return the runs below results/ to choose from: `browse().run` is the one that is chosen, at first the newest, or
    the one that is named here. Raises StoreError where there is none."""
    return RunBrowser(results, find.run_path(chosen, results).resolve() if chosen else None)


# ── looking into a run ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Slice:
    """A part of a run: some metric, of some file systems and workloads."""

    run: Run
    metric: str
    filesystems: tuple[str, ...]
    workloads: tuple[str, ...]
    """Labels."""

    @property
    def measurements(self) -> pd.DataFrame:
        """The measurements of the part, warm-up too, with the place of each trial in the order of the run.

        Raises InputError where there is none."""
        measurements = self._part(self.run.measurements)
        if measurements.empty:
            filesystems, workloads = (", ".join(names) or "none" for names in (self.filesystems, self.workloads))
            raise InputError(
                "nothing was measured of what is picked",
                got=f"{self.metric} of {filesystems} under {workloads}",
                next_step="pick another metric, or more file systems and workloads",
            )
        return measurements.merge(self.run.trials[["trial_id", "seq"]], on="trial_id", how="left")

    @property
    def scale(self) -> Scale:
        """How its values are shown: value / scale.factor is in scale.unit, such as GB/s."""
        return scale_for(self.run.sweep.metric(self.metric).unit, float(self.measurements["value"].abs().max()))

    @property
    def estimates(self) -> pd.DataFrame:
        return self._part(self.run.estimates)

    @property
    def comparisons(self) -> list[Any]:
        return [
            ratio
            for ratio in self.run.comparisons
            if ratio.metric == self.metric
            and workload_label(ratio.workload, ratio.factors) in self.workloads
            and ratio.candidate in self.filesystems
        ]

    def _part(self, frame: pd.DataFrame) -> pd.DataFrame:
        cells = {cell_id(fs, workload) for fs in self.filesystems for workload in self.workloads}
        return frame[(frame["metric"] == self.metric) & frame["cell"].isin(cells)].reset_index(drop=True)

    @property
    def orders(self) -> dict[str, list[str]]:
        """The order of the whole sweep, by which a file system has the same colour in every slice."""
        return orders(self.run)


def _ratios(part: Slice) -> Plot:
    effect = part.run.sweep.design.smallest_effect
    return plots.plot_ratios(part.comparisons, smallest_effect=effect, filesystems=part.orders["filesystems"])


KINDS: dict[str, Callable[[Slice], Plot]] = {
    "Every trial": lambda part: plots.plot_trials(part.measurements, part.estimates, part.metric, **part.orders),
    "Ratios to the baseline": _ratios,
    "Trials in run order": lambda part: plots.plot_run_order(part.measurements, part.metric, **part.orders),
}
"""Name of a kind of plot to what draws a slice in it: a new kind is one entry."""


class Explorer:
    """A run to look into: `slice` is the selected part, and `plot()` draws it."""

    metrics: list[str]
    """The metrics of the run, those of the answer first."""
    kind: str
    """Which kind of plot."""
    slice: Slice
    """The run, the metric, the file systems and the workloads that are picked."""

    def __init__(self, run: Run, metric: str | None, kind: str) -> None:
        names = list(dict.fromkeys(run.measurements["metric"]))
        first = [name for metrics in run.answer_metrics.values() for name in metrics if name in names]
        self.metrics = list(dict.fromkeys([*first, *sorted(names)]))
        self.kind = _one_of(kind, list(KINDS), "kind of plot")
        whole = tuple(fs.name for fs in run.sweep.filesystems), tuple(w.label for w in run.sweep.workloads)
        self.slice = Slice(run, _one_of(metric or self.metrics[0], self.metrics, "metric of this run"), *whole)
        self._widget = self._widgets() if widgets_show() else None

    def plot(self) -> Plot:
        """Return what is picked, drawn. Raises InputError where there is nothing to draw."""
        return KINDS[self.kind](self.slice)

    def _drawn(self) -> Html:
        try:
            return html.plot(self.plot())
        except MountlabError as error:
            return html.paragraph(f"Nothing to draw: {error.what}.")

    def _widgets(self) -> Any:
        import ipywidgets

        part, wide = self.slice, {"width": "19rem"}
        kind = ipywidgets.Dropdown(options=list(KINDS), value=self.kind, description="Plot", layout=wide)
        headings = [(metric_heading(name), name) for name in self.metrics]
        metric = ipywidgets.Dropdown(options=headings, value=part.metric, description="Metric", layout=wide)
        names, labels = (
            ipywidgets.SelectMultiple(options=all_, value=all_, rows=min(6, len(all_)), description=text, layout=wide)
            for all_, text in ((part.filesystems, "File systems"), (part.workloads, "Workloads"))
        )
        drawn = ipywidgets.HTML(self._drawn())

        def pick(_: object) -> None:
            self.kind = kind.value
            self.slice = Slice(part.run, metric.value, tuple(names.value), tuple(labels.value))
            drawn.value = self._drawn()

        for widget in (kind, metric, names, labels):
            widget.style = {"description_width": "6rem"}
            widget.observe(pick, "value")
        left = ipywidgets.VBox([kind, metric, names, labels])
        return ipywidgets.HBox([left, drawn], layout={"flex_flow": "row wrap", "grid_gap": "1rem"})

    def _ipython_display_(self) -> None:
        show(self._widget if self._widget is not None else self._drawn())

    def __repr__(self) -> str:
        part = self.slice
        return f"{self.kind}: {part.metric} of {', '.join(part.filesystems)}; {', '.join(part.workloads)}"


def _one_of(name: str, allowed: Sequence[str], what: str) -> str:
    if name not in allowed:
        raise InputError(f"there is no such {what}", got=repr(name), allowed=", ".join(allowed))
    return name


def explore(run: Run, *, metric: str | None = None, kind: str = "Every trial") -> Explorer:
    """Return a run to look into: metric, kind of plot, file systems, workloads. Raises InputError for a name it has
    not."""
    return Explorer(run, metric, kind)

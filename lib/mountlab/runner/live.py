"""A running sweep before a person in JupyterLab: how far it is, its figures as they grow, and a button that stops it.

The kernel is busy while it measures. What the browser sends is heard all the same where it comes over a subshell
(JupyterLab 4.4 and ipykernel 7 or later); elsewhere the kernel's own interrupt is the only way to stop.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mountlab.analysis.estimates import estimate_frame
from mountlab.analysis.measurements import measurement_frame, without_partial
from mountlab.analysis.time_limits import censored_blocks
from mountlab.core import disk
from mountlab.core.cell_stop import CellStop
from mountlab.core.errors import MountlabError
from mountlab.core.extras import installed
from mountlab.core.model import Trial
from mountlab.report import html
from mountlab.results import store
from mountlab.results.writer import RunWriter
from mountlab.runner import live_view, progress
from mountlab.runner.live_view import LiveFigures
from mountlab.runner.progress import Bar, Standing
from mountlab.sweep.plan import Plan, PlannedTrial

if TYPE_CHECKING:
    import ipywidgets

TICK_S = 1.0
"""The shortest time between two redraws of the view."""
MOST_NOTICES = 3
SHARE = 1 / 20
"""The largest part of a run's time that may be spent on looking at what it has measured so far."""
BY_KEYS = "■ in the toolbar, or I I, stops too, and also cells that wait behind this one."


def progress_display(plan: Plan, writer: RunWriter, recorded_ids: set[str]) -> Bar | Live:
    """Return the display of a run's progress: a live view where a person can see it, else a bar."""
    if widgets_show() and threading.current_thread() is threading.main_thread():
        return Live(plan, writer, recorded_ids)
    return Bar(plan, recorded_ids)


def person_is_there() -> bool:
    """Return whether this cell was started by a front end that a person sits at: it says that it can be asked for
    input, which papermill and nbconvert deny."""
    kernel = _kernel()
    request = kernel.get_parent().get("content", {}) if kernel is not None else {}
    return bool(request.get("allow_stdin", False))


def widgets_show() -> bool:
    """Return whether a person sees widgets: without ipywidgets, of the extra `lab`, plain output takes their place."""
    return person_is_there() and installed("ipywidgets")


def _kernel() -> Any:
    """Return the Jupyter kernel that this process is, or None: IPython's terminal has none."""
    ipython = sys.modules.get("IPython")
    return getattr(ipython.get_ipython(), "kernel", None) if ipython is not None else None


def show(value: Any, **options: Any) -> Any:
    """Display a value below the running cell: IPython is loaded wherever there is a kernel."""
    return sys.modules["IPython"].display.display(value, **options)


class Ration:
    """Limits optional work to a small share of the time: at most once a tick, less often the longer it takes."""

    def __init__(self) -> None:
        self._next = 0.0

    def due(self) -> bool:
        return time.monotonic() >= self._next

    def spend(self, seconds: float) -> None:
        self._next = time.monotonic() + max(TICK_S, seconds / SHARE)


class Live:
    """Shows a run while it goes on, and stops it when its button is clicked (runner.Progress).

    Trials are followed in the main thread, which does nothing but take notes; a thread of its own draws, once a tick.
    At the end the widgets go, and a still picture stays in their place: a notebook that is saved holds no widget.
    """

    def __init__(self, plan: Plan, writer: RunWriter, recorded_ids: set[str]) -> None:
        self.stopped = False
        """Whether the button was clicked."""
        self._main = threading.get_ident()
        self._plan, self._writer = plan, writer
        self._standing = Standing(plan, recorded_ids)
        self._figures = _no_figures(plan)
        self._notices: list[str] = []
        self._figures_ration, self._caveats_ration = Ration(), Ration()
        self._started = self._trial_started = time.monotonic()
        self._over = threading.Event()
        self._ticking = threading.Thread(target=self._tick, name="mountlab-live", daemon=True)
        self._view = _View(self._stop)

    # ── reports of the runner ────────────────────────────────────────────────────────────────────────────────────────

    def begin(self, trial: PlannedTrial) -> None:
        self._trial_started = time.monotonic()
        self._standing.begin(trial)

    def end(self, planned: PlannedTrial, trial: Trial) -> None:
        self._standing.end(planned, trial)
        if self._figures_ration.due():
            self._read_figures()
        if self._is_last_of_block(planned) and self._caveats_ration.due():
            self._read_caveats()

    def end_cells(self, stops: Sequence[CellStop], trials: Sequence[PlannedTrial]) -> None:
        self._standing.end_cells(stops, trials)

    def notice(self, text: str) -> None:
        self._notices.append(text)

    # ── figures and caveats ──────────────────────────────────────────────────────────────────────────────────────────

    def _read_figures(self) -> None:
        began = time.monotonic()
        trials, measurements = self._writer.measured(self._plan.sweep)
        measurements, censored = without_partial(measurements), censored_blocks(trials)
        estimates = estimate_frame(self._plan.sweep, measurements, run_id="", box="", censored=censored)
        self._figures = replace(self._figures, measurements=measurements, estimates=estimates)
        self._figures_ration.spend(time.monotonic() - began)

    def _read_caveats(self) -> None:
        """Read the caveats as a report would now. The run itself reports at the end the one that it cannot read yet."""
        began = time.monotonic()
        with suppress(MountlabError):
            self._figures = replace(self._figures, caveats=store.load_run(self._writer.path).caveats)
        self._caveats_ration.spend(time.monotonic() - began)

    def _is_last_of_block(self, planned: PlannedTrial) -> bool:
        """Return whether all cells now have equally many trials. Warm-up trials have no figures to doubt."""
        block = [trial for trial in self._plan.trials if trial.block == planned.block and not trial.warmup]
        return bool(block) and block[-1].trial_id == planned.trial_id

    # ── drawing ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _tick(self) -> None:
        while not self._over.wait(TICK_S):
            self._draw()

    def _draw(self) -> None:
        standing, moment = self._standing, time.monotonic()
        now = standing.now
        trial_s = moment - self._trial_started if now else 0.0
        self._view.show(
            done=standing.done,
            total=standing.total,
            times=live_view.times(moment - self._started, standing.remaining.seconds() - trial_s),
            now=self._now(now),
            table=self._table(now.cell.id if now else ""),
            news=self._news(),
        )

    def _now(self, trial: PlannedTrial | None) -> str:
        if self.stopped:
            return "Stopping: what was done on the box is being undone."
        if trial is None:
            return "Now: a file system is made or undone"
        return f"Now: {progress.place_text(trial)}"

    def _table(self, now: str = "") -> html.Html:
        return live_view.estimates_table(
            self._plan.sweep, self._figures, now=now, stopped_cells=self._standing.stopped_cells
        )

    def _news(self) -> html.Html:
        return live_view.news(list(self._standing.failed), self._figures.caveats, self._notices[-MOST_NOTICES:])

    def _stop(self) -> None:
        """Interrupt the main thread as the keyboard does; it stops where it may. Called in a subshell's thread."""
        self.stopped = True
        self._draw()
        signal.pthread_kill(self._main, signal.SIGINT)

    def __enter__(self) -> Live:
        self._read_figures()  # those of an earlier session
        self._draw()
        self._view.put_up()
        self._ticking.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._ticking.join()
        self._read_figures()
        self._view.take_down(self._last_picture(stopped=kind is not None and issubclass(kind, KeyboardInterrupt)))

    def _last_picture(self, *, stopped: bool) -> html.Html:
        standing = self._standing
        summary = live_view.summary_text(
            standing.done, standing.total, time.monotonic() - self._started, standing.failed
        )
        by_hand = self._plan.sweep.by_hand
        advice = live_view.stop_advice("" if by_hand else disk.path_text(self._writer.path)) if stopped else ""
        return html.joined(
            advice, html.paragraph(summary, kind="meta"), self._table(), live_view.news(standing.failed, ())
        )


def _no_figures(plan: Plan) -> LiveFigures:
    nothing = measurement_frame([])
    return LiveFigures(nothing, estimate_frame(plan.sweep, nothing, run_id="", box=""))


class _View:
    """The widgets. Each gets only what has changed, so that nothing flickers and the scroll position stays."""

    def __init__(self, stop: Any) -> None:
        import ipywidgets

        self._bar = ipywidgets.IntProgress(min=0, layout={"width": "16rem"})
        self._count, self._times, self._now, self._table, self._news = (ipywidgets.HTML() for _ in range(5))
        self._button = ipywidgets.Button(
            description="Stop",
            icon="stop",
            layout={"width": "7rem"},
            tooltip="Stop cleanly: undo everything on the box, keep what was measured",
        )
        self._button.on_click(lambda _: self._handle_click(stop))
        _answer_in_subshell(self._button)
        self._box = self._arrange(ipywidgets)
        self._handle: Any = None

    def _arrange(self, widgets: Any) -> ipywidgets.VBox:
        kernel = _kernel()
        has_subshells = bool(getattr(kernel, "_supports_kernel_subshells", False))
        controls = [self._button] if has_subshells else []
        head = widgets.HBox(
            [self._bar, self._count, self._times, *controls], layout={"align_items": "center", "grid_gap": "1rem"}
        )
        scrolled = widgets.Box([self._table], layout={"max_height": "26rem", "overflow": "auto"})
        keys = BY_KEYS if has_subshells else BY_KEYS.replace(" too, and also", ", and so do")
        style, hint = (widgets.HTML(text) for text in (live_view.STYLE, html.paragraph(keys, kind="meta")))
        box = widgets.VBox([style, head, self._now, self._news, scrolled, hint])
        box.add_class("mountlab-live")
        return box

    def _handle_click(self, stop: Any) -> None:
        self._button.disabled, self._button.description = True, "Stopping"
        stop()

    def show(self, *, done: int, total: int, times: str, now: str, table: html.Html, news: html.Html) -> None:
        self._bar.max, self._bar.value = total, done
        texts = {
            self._count: html.paragraph(f"{done} of {total} trials"),
            self._times: html.paragraph(times, kind="meta"),
            self._now: html.paragraph(now),
            self._table: table,
            self._news: news,
        }
        for widget, piece in texts.items():
            widget.value = piece

    def put_up(self) -> None:
        self._handle = show(self._box, display_id=True)

    def take_down(self, last: html.Html) -> None:
        """Put a still picture in the place of the widgets, which are closed."""
        self._handle.update(html.joined(live_view.STYLE, html.box("mountlab-live", last)))
        for widget in (self._bar, self._count, self._times, self._now, self._table, self._news, self._button):
            widget.close()
        self._box.close()


def _answer_in_subshell(widget: ipywidgets.Widget) -> None:
    """Answer a click in the subshell that JupyterLab sends it to. ipykernel 7.4 answers in the shell that changed a
    widget last: here the main shell, which is busy. Earlier versions have no such choice."""
    comm: Any = widget.comm
    comm._reply_subshell_for = lambda _data, subshell: subshell

"""The live view of a sweep: what it says, whom it is shown to, and how its button stops."""

from __future__ import annotations

import signal
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mountlab
import pandas as pd
import pytest
from mountlab.analysis.estimates import estimate_frame
from mountlab.analysis.measurements import measurement_frame
from mountlab.batch import store as batch_store
from mountlab.core import disk
from mountlab.core.cell_stop import CellStop
from mountlab.core.errors import Interrupted, StoreError
from mountlab.core.findings import Caveat
from mountlab.core.model import Measurement, Sweep, Trial
from mountlab.core.places import SHIPPED
from mountlab.results import paths, store
from mountlab.results.writer import RunWriter
from mountlab.runner import live, live_view
from mountlab.runner.live import Live, Ration, person_is_there, progress_display
from mountlab.runner.live_view import LiveFigures, estimates_table, news, times
from mountlab.runner.progress import Bar
from mountlab.runner.trial_executor import as_trial
from mountlab.sweep.plan import Plan
from rows import every_row
from sweep.test_plan import BOX, FACTS, make_plan
from sweeps import DD_WRITE, RAMFS, TMPFS, sweep
from waiting import wait_until

NOW = datetime(2026, 11, 20, tzinfo=UTC)
SWEEP = sweep(filesystems={"tmpfs": TMPFS, "ramfs": RAMFS}, design={"repeats": 3}).sweep


def trial(cell: str, block: int, *, status: Any = "ok", reason: str = "", number: int = 1) -> Trial:
    filesystem, _, workload = cell.partition("/")
    return Trial(
        trial_id=f"t{number:04d}",
        block=block,
        warmup=block < 1,
        cell=cell,
        filesystem=filesystem,
        workload=workload,
        tool="dd",
        factors={},
        mount="m1",
        status=status,
        reason=reason,
        started_at="",
        elapsed_s=1.0,
    )


def figures(the_sweep: Sweep, *rows: tuple[str, int, float]) -> LiveFigures:
    """Write bandwidths: cell, block, value."""
    measured = [
        (trial(cell, block), Measurement(metric="write_bandwidth", value=value, unit="B/s"))
        for cell, block, value in rows
    ]
    frame = measurement_frame(measured)
    return LiveFigures(frame, estimate_frame(the_sweep, frame, run_id="", box=""))


# --- what it says -----------------------------------------------------------------------------------------------------


def test_each_cell_has_its_mean_interval_and_n() -> None:
    known = figures(SWEEP, ("tmpfs/dd-write", 1, 1e8), ("tmpfs/dd-write", 2, 1.1e8), ("ramfs/dd-write", 1, 3e8))
    text = repr(estimates_table(SWEEP, known, now="ramfs/dd-write"))
    assert "Write bandwidth, MB/s" in text
    assert "105 [57, 192] n = 2" in text
    assert "▸ 300 n = 1" in text


def test_before_the_first_figure_the_table_has_its_shape_already() -> None:
    text = repr(estimates_table(SWEEP, figures(SWEEP)))
    assert "tmpfs ramfs Write bandwidth" in text
    assert text.count("– n = 0") == 2


def test_warm_up_is_not_counted() -> None:
    assert "n = 0" in repr(estimates_table(SWEEP, figures(SWEEP, ("tmpfs/dd-write", 0, 1e8))))


def test_a_cell_that_left_says_why() -> None:
    left = CellStop(cell="tmpfs/dd-write", reason="precise", blocks=7, n=7, half_width=0.01, metric="write_bandwidth")
    text = repr(estimates_table(SWEEP, figures(SWEEP), stopped_cells={left.cell: left}))
    assert "n = 0 · precise after 7 blocks" in text


def test_cells_that_are_not_in_the_sweep_are_not_waited_for() -> None:
    thinned = sweep(
        filesystems={"tmpfs": TMPFS, "ramfs": RAMFS},
        workloads={"a": DD_WRITE, "b": DD_WRITE},
        exclude=[{"filesystem": "ramfs", "workload": "b"}],
    ).sweep
    assert "not in the sweep" in repr(estimates_table(thinned, figures(thinned)))


def test_failures_and_caveats_are_told_as_they_come_and_do_not_grow() -> None:
    hostile = "<script>x</script>"
    failed = [trial("tmpfs/dd-write", 1, status="failed", reason=hostile, number=n) for n in range(1, 30)]
    page = news(failed, [Caveat(code="noisy", severity="warning", message="m", scope="cell", subject="a/b")])
    assert page.count("<p") == live_view.MOST_FAILURES + 2
    assert "29 failed" in page
    assert "t0029" in page
    assert "t0001" not in page
    assert "<script" not in page
    assert "So far: Doubt: Noisy (1 cell): m." in page


@pytest.mark.parametrize(("code", "severity"), [("too-few", "error"), ("cache-served", "note")])
def test_what_every_run_has_before_its_end_and_notes_are_left_for_the_report(code: str, severity: Any) -> None:
    assert not news([], [Caveat(code=code, severity=severity, message="m", scope="run")])


@every_row(
    ("elapsed_s", "remaining_s", "said"),
    [
        (0.2, 17.4, "0 s elapsed, about 17 s left"),
        (125, 431, "2 min 5 s elapsed, about 7 min left"),
        (5, -3, "5 s elapsed, about 0 s left"),
        (4000, 11400, "1 h 7 min elapsed, about 3 h 10 min left"),
    ],
)
def test_time_is_told_in_whole_seconds_and_far_away_in_minutes(elapsed_s: float, remaining_s: float, said: str) -> None:
    assert times(elapsed_s, remaining_s) == said


# --- before whom ------------------------------------------------------------------------------------------------------


def kernel(monkeypatch: pytest.MonkeyPatch, *, asks: bool | None) -> None:
    """As if this were a kernel whose cell was started by a front end that says whether it can be asked for input."""
    content = {} if asks is None else {"allow_stdin": asks}
    own = SimpleNamespace(get_parent=lambda: {"content": content}, _supports_kernel_subshells=True)
    shell = SimpleNamespace(kernel=own)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))


@pytest.mark.parametrize(("asks", "there"), [(True, True), (False, False), (None, False)])
def test_papermill_and_nbconvert_deny_input_and_get_text(
    asks: bool | None, there: bool, monkeypatch: pytest.MonkeyPatch, the_plan: Plan, writer: RunWriter
) -> None:
    monkeypatch.setattr(live, "_View", Seen)
    kernel(monkeypatch, asks=asks)
    assert person_is_there() is there
    assert isinstance(progress_display(the_plan, writer, set()), Live if there else Bar)


def test_without_ipywidgets_a_person_gets_a_bar(
    the_plan: Plan, writer: RunWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel(monkeypatch, asks=True)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert isinstance(progress_display(the_plan, writer, set()), Bar)


def test_a_terminal_gets_a_bar(the_plan: Plan, writer: RunWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=SimpleNamespace))
    assert isinstance(progress_display(the_plan, writer, set()), Bar)
    monkeypatch.delitem(sys.modules, "IPython")
    assert isinstance(progress_display(the_plan, writer, set()), Bar)


def test_a_run_in_another_thread_gets_a_bar_since_no_signal_reaches_it(
    the_plan: Plan, writer: RunWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel(monkeypatch, asks=True)
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(progress_display(the_plan, writer, set())))
    thread.start()
    thread.join()
    assert isinstance(found[0], Bar)


# --- the view itself --------------------------------------------------------------------------------------------------


class Seen:
    """Stands for the widgets: keeps what they were told."""

    def __init__(self, stop: Any) -> None:
        self.stop, self.shown, self.last, self.up = stop, list[dict[str, Any]](), None, False

    def show(self, **pieces: Any) -> None:
        self.shown.append(pieces)

    def put_up(self) -> None:
        self.up = True

    def take_down(self, last: Any) -> None:
        self.up, self.last = False, last


@pytest.fixture
def the_plan() -> Plan:
    the_sweep = sweep(filesystems={"t": TMPFS}, workloads={"w": DD_WRITE}, design={"repeats": 3}).sweep
    return make_plan(the_sweep, BOX, FACTS, run_id="r1", owner="me", seed=1)


@pytest.fixture
def writer(the_plan: Plan, tmp_path: Path) -> RunWriter:
    resolved = sweep(filesystems={"t": TMPFS}, workloads={"w": DD_WRITE}, design={"repeats": 3})
    return RunWriter.create(the_plan, resolved, FACTS, results=tmp_path)


@pytest.fixture
def view(the_plan: Plan, writer: RunWriter, monkeypatch: pytest.MonkeyPatch) -> Live:
    monkeypatch.setattr(live, "_View", Seen)
    return Live(the_plan, writer, set())


def seen(view: Live) -> Seen:
    found: Any = view._view
    assert isinstance(found, Seen)
    return found


@pytest.mark.slow
def test_the_view_follows_the_trials_and_leaves_a_still_picture(
    view: Live, the_plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "time", SimpleNamespace(monotonic=lambda: view._started))
    with view:
        assert seen(view).up
        for planned, status in zip(the_plan.trials, ("ok", "failed", "skipped"), strict=True):
            view.begin(planned)
            view.end(planned, as_trial(planned, status, "no space" if status == "failed" else "", NOW, 2.0))
    assert not seen(view).up
    assert repr(seen(view).last).startswith("3 of 3 trials, this session took 0 s, 1 failed.")
    assert "failed: t0002 t/w: no space" in repr(seen(view).last)
    assert not view._ticking.is_alive()


@pytest.mark.slow
def test_the_view_is_drawn_once_a_tick_whatever_happens_meanwhile(
    view: Live, the_plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "TICK_S", 0.05)
    with view:
        view.begin(the_plan.trials[0])
        had = len(seen(view).shown)
        wait_until("three ticks", lambda: len(seen(view).shown) >= had + 3)
    assert seen(view).shown[0]["now"] == "Now: a file system is made or undone"
    assert {shown["now"] for shown in seen(view).shown[1:]} <= {"Now: block 1, t/w", seen(view).shown[0]["now"]}
    assert seen(view).shown[-1]["now"] == "Now: block 1, t/w"


@pytest.mark.slow
def test_the_button_interrupts_the_main_thread(view: Live) -> None:
    """From another thread, as a subshell's is."""

    def measure() -> None:
        with view:
            threading.Thread(target=seen(view).stop).start()
            threading.Event().wait(30)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            measure()
    finally:
        signal.signal(signal.SIGINT, before)
    assert view.stopped
    assert seen(view).shown[-1]["now"].startswith("Stopping")
    assert "Stopped: everything on the box is undone" in repr(seen(view).last)
    assert 'run_path = mountlab.resume("' in repr(seen(view).last)


@pytest.mark.slow
def test_an_interrupt_from_elsewhere_is_not_the_buttons(view: Live) -> None:
    with pytest.raises(KeyboardInterrupt), view:
        raise KeyboardInterrupt
    assert not view.stopped
    assert "To go on" in repr(seen(view).last)


def test_cells_that_leave_are_not_waited_for(view: Live, the_plan: Plan) -> None:
    stop = CellStop(cell="t/w", reason="precise", blocks=1, n=1, half_width=0.01, metric="write_bandwidth")
    with view:
        view.end_cells([stop], the_plan.trials[1:])
    assert "0 of 1 trial" in repr(seen(view).last)
    assert "precise after 1 block" in repr(seen(view).last)


@pytest.mark.slow
def test_a_resumed_run_starts_with_what_it_has(
    the_plan: Plan, writer: RunWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_View", Seen)
    with Live(the_plan, writer, {"t0001", "t0002"}) as resumed:
        assert seen(resumed).shown[0]["done"] == 2


def test_looking_costs_a_twentieth_of_the_time_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    ration = Ration()
    assert ration.due()
    ration.spend(0.001)
    clock[0] += 0.99
    assert not ration.due()
    clock[0] += 0.02
    assert ration.due()
    ration.spend(2.0)
    clock[0] += 39
    assert not ration.due()
    clock[0] += 2
    assert ration.due()


def test_figures_are_read_at_most_once_a_tick(
    view: Live, the_plan: Plan, writer: RunWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[int] = []
    measured = writer.measured
    monkeypatch.setattr(writer, "measured", lambda the_sweep: (reads.append(1), measured(the_sweep))[1])
    with view:
        began = time.monotonic()
        monkeypatch.setattr(live, "time", SimpleNamespace(monotonic=lambda: began))
        for planned in the_plan.trials:
            view.begin(planned)
            view.end(planned, as_trial(planned, "failed", "x", NOW, 0.01))
    assert len(reads) == 2, "at the beginning and at the end"


def test_caveats_are_read_after_counted_blocks_only(writer: RunWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    """The warm-up gives no figures that could be doubted."""
    warmed = sweep(filesystems={"t": TMPFS}, workloads={"w": DD_WRITE}, design={"repeats": 1, "warmup": 1}).sweep
    reads: list[Path] = []
    monkeypatch.setattr(live, "_View", Seen)
    monkeypatch.setattr(store, "load_run", lambda path: (reads.append(path), SimpleNamespace(caveats=()))[1])
    with Live(make_plan(warmed, BOX, FACTS, run_id="r1", owner="me", seed=1), writer, set()) as view:
        for planned in view._plan.trials:
            view.end(planned, as_trial(planned, "failed", "x", NOW, 0.01))
            assert len(reads) == (not planned.warmup)


def test_a_stop_is_shown_without_a_traceback() -> None:
    """The way to go on in a shell is for a shell, and that in Python for a notebook: nobody is told two."""
    stopped = Interrupted("go on with: mountlab resume results/x", in_python=live_view.resume_line("results/x"))
    assert isinstance(stopped, KeyboardInterrupt)
    assert stopped.args == ("go on with: mountlab resume results/x",)
    assert stopped._render_traceback_() == [
        "Stopped; everything on the box is undone, and all measurements are kept. To go on:",
        'run_path = mountlab.resume("results/x")',
    ]


def test_the_line_that_goes_on_can_be_typed_beside_the_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel of a notebook works in notebooks/, and the line names the run from the repository."""
    monkeypatch.chdir(paths.NOTEBOOKS)
    line = live_view.resume_line(disk.path_text(SHIPPED / "results" / "tour"))
    with pytest.raises(StoreError, match="the run is complete"):
        exec(line, {"mountlab": mountlab})


@pytest.mark.slow
def test_a_run_that_is_not_there_is_named_where_it_was_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(paths.NOTEBOOKS)
    assert mountlab.load_run("results/tour").path == SHIPPED / "results" / "tour"
    for read in (mountlab.load_run, mountlab.resume, mountlab.write_report, batch_store.read_view):
        with pytest.raises(StoreError) as caught:
            read("results/none")
        named = f"{caught.value.where}/{caught.value.got}"
        assert named.startswith("results/none"), "from the repository, as people know it"


@pytest.mark.slow
def test_estimates_so_far_are_those_of_the_report() -> None:
    """By another route: the frame of a recorded run against what the report's own store derives of it."""
    run = store.load_run(SHIPPED / "results" / "tour")
    frame = estimate_frame(run.sweep, run.measurements, run_id="", box="")
    pd.testing.assert_series_equal(frame["mean"], run.estimates["mean"])
    text = repr(estimates_table(run.sweep, LiveFigures(run.measurements, frame)))
    assert text.count("n = 10") == 14

"""What a trial costs beyond its tool: locally, over a link with latency, and how often that link is crossed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pandas as pd
from mountlab.box.embedded import loopback, open_box
from mountlab.box.ssh import Endpoint, SshBox, connect
from mountlab.core.cell_stop import CellStop
from mountlab.core.model import Box, Sweep, Trial
from mountlab.core.units import NS_PER_S
from mountlab.outcome.judging import Outcome
from mountlab.results import store
from mountlab.results.writer import RunWriter
from mountlab.runner import workflow
from mountlab.runner.sweep_runner import run_sweep
from mountlab.sweep.plan import PlannedTrial
from mountlab.sweep.sweep_file import Resolved, resolve

from mountlab_dev.bench.link import HOST, Link, link
from mountlab_dev.bench.table import Row, timed

LOCAL_GOAL_S, CACHES_GOAL_S, LINK_GOAL_S = 0.015, 0.15, 0.055
PROCESSES_GOAL = 31
"""What a trial of dd on tmpfs may start, the tool and its containment included."""
EACH_WAY_S = 0.020
"""Latency of the link: a round trip takes twice as long."""
OVER_LINK = f"over a link of {EACH_WAY_S * 1000:.0f} ms each way"
NO_LINK = "needs an embedded box (`embedded: loopback`)"


class Timed:
    """A journal that also notes what each trial cost."""

    def __init__(self, writer: RunWriter, count: Callable[[], int] = lambda: 0) -> None:
        self._writer, self._count = writer, count
        self.overhead_s: list[float] = []
        """Of each trial: until its result was here, and on the disk, beyond the time between the tool's two stamps."""
        self.stamps: list[tuple[float, float]] = []
        """When the tool of each trial began and ended, by the box's clock."""
        self._counts: list[int] = []

    def has(self, trial_id: str) -> bool:
        return self._writer.has(trial_id)

    def recorded_trials(self) -> list[Trial]:
        return self._writer.recorded_trials()

    def keep_mount(self, mount_id: str, files: Mapping[str, bytes]) -> None:
        self._writer.keep_mount(mount_id, files)

    def mount_files(self, mount_id: str) -> Mapping[str, str]:
        return self._writer.mount_files(mount_id)

    def measured(self, sweep: Sweep) -> tuple[list[Trial], pd.DataFrame]:
        return self._writer.measured(sweep)

    def record(self, trial: Trial, files: Mapping[str, bytes], outcome: Outcome) -> None:
        (kept_s,) = timed(lambda: self._writer.record(trial, files, outcome), 1)
        began, ended = (int(files[name]) / NS_PER_S for name in ("started_ns", "ended_ns"))
        self.overhead_s.append(trial.elapsed_s - (ended - began) + kept_s)
        self.stamps.append((began, ended))
        self._counts.append(self._count())

    @property
    def each_counted(self) -> list[float]:
        """By how much the count grew from one trial to the next."""
        return [float(later - earlier) for earlier, later in pairwise(self._counts)]


class Silent:
    """A progress that shows nothing."""

    def begin(self, trial: PlannedTrial) -> None: ...
    def end(self, planned: PlannedTrial, trial: Trial) -> None: ...
    def end_cells(self, stops: Sequence[CellStop], trials: Sequence[PlannedTrial]) -> None: ...
    def notice(self, text: str) -> None: ...


# --- sweeps -----------------------------------------------------------------------------------------------------------

DD = {"tool": "dd", "direction": "write", "bs": "64KiB", "count": 16}
FIO = {"tool": "fio", "rw": "randwrite", "bs": "4KiB", "size": "1MiB", "runtime": "1s", "time_based": True}


Options = Mapping[str, object]


def a_sweep(workload: Options, repeats: int, *, caches: bool = False, warmup: int = 1, **more: Options) -> Resolved:
    """Return one workload on one tmpfs that is mounted once; `more`: others of it, by name."""
    design = {"repeats": repeats, "warmup": warmup, "drop_caches": caches, "seed": 1, "fresh_filesystem": "never"}
    raw = {
        "name": "bench",
        "question": "What does a trial cost beyond its tool?",
        "workloads": {"w": workload, **more},
        "filesystems": {"tmpfs": {"type": "tmpfs", "size": "64MiB"}},
        "design": design,
    }
    return resolve(raw, where="bench")


def measured(connection: SshBox, resolved: Resolved, results: Path, count: Callable[[], int] = lambda: 0) -> Timed:
    """Run a sweep on a box that is connected. `count` is read when a trial is recorded."""
    session = workflow.planned_on({connection.box.name: connection}, resolved, connection.box, results=results)
    writer = RunWriter.create(session.plan, resolved, session.facts, results=results)
    journal = Timed(writer, count)
    run_sweep(session.plan, session.connection, journal, Silent())
    return journal


def processes_started() -> int:
    """Return how many processes this machine has started since it was booted."""
    (line,) = (each for each in Path("/proc/stat").read_text().splitlines() if each.startswith("processes "))
    return int(line.split()[1])


# --- the box over a link ----------------------------------------------------------------------------------------------


@contextmanager
def over_link(box: Box, scratch: Path, each_way_s: float) -> Iterator[tuple[SshBox, Link]]:
    """An embedded box behind a link with latency."""
    with loopback.private_sshd(box) as endpoint, link(endpoint.port, each_way_s) as wire:
        connection = connect(box, behind(endpoint, wire, scratch))
        try:
            yield connection, wire
        finally:
            connection.close()


def behind(endpoint: Endpoint, wire: Link, scratch: Path) -> Endpoint:
    """Return the same sshd, as it is reached through the link."""
    known = endpoint.known_hosts.read_text().replace(f"[{HOST}]:{endpoint.port}", f"[{HOST}]:{wire.port}")
    (hosts,) = store.write_files(scratch, {f"known_hosts.{wire.port}": known.encode()})
    return replace(endpoint, port=wire.port, known_hosts=hosts)


# --- rows -------------------------------------------------------------------------------------------------------------


def rows(box: Box, repeats: int, scratch: Path) -> Iterator[Row]:
    """Overhead of a trial of dd on a mounted tmpfs. The first trial of each, a warm-up, is not counted."""
    with open_box(box) as connection:
        yield Row("a command on the box (true), outside of a run", timed(lambda: connection.run(("true",)), repeats))
        here = box.embedded == "loopback"
        quick = measured(connection, a_sweep(DD, repeats), scratch, processes_started if here else lambda: 0)
        dropping = measured(connection, a_sweep(DD, repeats, caches=True), scratch)
    what = "overhead of a trial on a mounted tmpfs"
    yield Row(what, quick.overhead_s[1:], under=LOCAL_GOAL_S)
    yield Row(f"{what}, caches dropped before it", dropping.overhead_s[1:], under=CACHES_GOAL_S)
    if not here:
        yield Row(f"{what}, {OVER_LINK}", [], why_not=NO_LINK)
        return
    yield Row(
        "processes that this machine starts in a trial", quick.each_counted, unit="count", under=PROCESSES_GOAL + 1
    )
    with over_link(box, scratch, EACH_WAY_S) as (connection, wire):
        far = measured(connection, a_sweep(DD, repeats), scratch, lambda: wire.turns)
    yield Row(f"{what}, {OVER_LINK}", far.overhead_s[1:], under=LINK_GOAL_S)
    yield Row("round trips of a trial, counted on the link", far.each_counted, unit="count", under=1.5)

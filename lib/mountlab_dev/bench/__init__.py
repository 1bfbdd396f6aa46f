"""`make bench`: what Mountlab itself costs, in medians and spreads over repeats within one session, beside what others
cost that do the same."""

from __future__ import annotations

import json
import platform
import tempfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from mountlab.core import disk
from mountlab.core.errors import ParameterError, did_you_mean
from mountlab.core.model import Box
from mountlab.core.places import SHIPPED
from mountlab.results import paths, writer

from mountlab_dev import bench_catalog
from mountlab_dev.bench import (
    ageing,
    clone,
    control,
    gate,
    logs,
    naive,
    over_time,
    peer,
    perturbation,
    precision,
    reports,
    statistics,
    table,
    tracing,
    trials,
    watching,
)
from mountlab_dev.bench.cheap import many_cells
from mountlab_dev.bench.reports import recorded_run
from mountlab_dev.bench.table import Row

__all__ = ["SUBJECTS", "Row", "bench", "many_cells", "recorded_run"]

MEMORY = Path("/dev/shm")  # noqa: S108  # the directory in memory itself; what is made in it is private
ONCE = 3
"""Repeats of what takes seconds."""


@dataclass(frozen=True)
class Session:
    """What all subjects share."""

    box: Box
    repeats: int
    scratch: Path

    @property
    def few(self) -> int:
        return min(self.repeats, ONCE)


Subject = Callable[[Session], Iterator[Row]]


def _in_memory(session: Session, rows: Callable[[Box, int, Path], Iterator[Row]]) -> Iterator[Row]:
    """With a scratch directory in memory, where the box has one."""
    with tempfile.TemporaryDirectory(prefix="mountlab-bench-", dir=MEMORY if MEMORY.is_dir() else None) as scratch:
        yield from rows(session.box, session.repeats, Path(scratch))


def _catalog(session: Session) -> Iterator[Row]:
    for name, goal, values, unit in bench_catalog.rows(session.few, session.scratch):
        yield Row(name, values, unit, under=goal)


SUBJECTS: dict[str, Subject] = {
    "trials": lambda session: trials.rows(session.box, session.repeats, session.scratch / "trials"),
    "naive": lambda session: _in_memory(session, naive.rows),
    "peer": lambda session: _in_memory(session, peer.rows),
    "perturbation": lambda session: perturbation.rows(session.box, perturbation.PAIRS, session.scratch / "pairs"),
    "over-time": lambda session: over_time.rows(session.box, over_time.PAIRS, session.scratch / "over-time"),
    "watch": lambda session: watching.rows(session.box, watching.PAIRS, session.scratch / "watch"),
    "tracing": lambda session: tracing.rows(session.box, tracing.TRIALS, session.scratch / "tracing"),
    "precision": lambda _: precision.rows(),
    "memory": lambda session: control.memory(session.box, session.scratch),
    "startup": lambda session: control.startup(session.repeats),
    "logs": lambda session: logs.rows(session.few, session.scratch / "logs"),
    "ageing": lambda session: ageing.rows(session.few, session.scratch / "ageing"),
    "statistics": lambda session: statistics.rows(session.few),
    "reports": lambda session: reports.rows(session.box, session.few, session.scratch / "reports"),
    "catalog": _catalog,
    "ratios": lambda _: gate.rows(SHIPPED),
}
"""What can be asked for, in the order in which it is measured: while the process is young and small first."""


def bench(
    *,
    repeats: int,
    demo: bool,
    tests: bool,
    only: Collection[str] = (),
    box: str = "local",
    say: Callable[[str], None],
) -> None:
    """Measure, say the table as it grows, and keep it in results/bench.json.

    `only` names the subjects, without it all of them. `demo` adds `make demo` from a fresh clone (some minutes),
    `tests` adds `make check` and `make test` in it (many more). Raises ParameterError for an unknown subject.
    """
    chosen = _chosen(only)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="mountlab-bench-") as scratch:
        session = Session(paths.load_box(box), repeats, Path(scratch))
        for line in table.heading():
            say(line)
        for row in _measured(session, chosen, demo=demo, tests=tests):
            rows.append(row)
            say(table.line(row))
    kept = paths.RESULTS / "bench.json"
    disk.make_directory(kept.parent)
    disk.replace_file(kept, json.dumps(_kept(rows, box), indent=1).encode())
    say(f"kept in {disk.path_text(kept)}")


def _measured(session: Session, chosen: Collection[str], *, demo: bool, tests: bool) -> Iterator[Row]:
    for name in chosen:
        yield from SUBJECTS[name](session)
    if demo or tests:
        yield from clone.rows(session.scratch / "clone", tests=tests)


def _chosen(only: Collection[str]) -> list[str]:
    unknown = next((name for name in only if name not in SUBJECTS), None)
    if unknown is not None:
        raise ParameterError(
            "nothing of this name is measured",
            where="bench --only",
            got=unknown,
            allowed=", ".join(SUBJECTS),
            next_step=did_you_mean(unknown, SUBJECTS),
        )
    return [name for name in SUBJECTS if name in only or not only]


def _kept(rows: list[Row], box: str) -> dict[str, object]:
    """With where and when: figures of two machines are not one table."""
    return {
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "box": box,
        "kernel": platform.release(),
        "machine": platform.machine(),
        "versions": writer.versions(),
        "git_commit": writer.git_commit(),
        "rows": [row.as_json() for row in rows],
    }

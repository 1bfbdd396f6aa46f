"""The slowest operations of a run as a trace that Perfetto (and the tracing page of Chromium) opens.

The format is the "Trace Event Format" of Chromium, in JSON, which Perfetto reads: no library is needed to write it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from mountlab.core.errors import StoreError
from mountlab.core.frames import pd
from mountlab.core.layers import layer_noun

FILE = "slowest.perfetto.json"
_US_PER_S = 1e6


def perfetto_files(slowest: pd.DataFrame, where: str) -> dict[str, bytes]:
    """Return the file: a process for each trial, a thread for each operation, a slice for each of its pieces.

    `slowest`: the frame why_slowest. Raises StoreError where the run has no diagnostic trials.
    """
    if slowest.empty:
        raise StoreError(
            "the run has no timelines of operations",
            where=where,
            got="no diagnostic trials",
            next_step="mountlab explain",
        )
    return {FILE: json.dumps({"traceEvents": list(_events(slowest)), "displayTimeUnit": "ns"}).encode()}


def _events(slowest: pd.DataFrame) -> Iterator[dict[str, object]]:
    for process, (trial, frame) in enumerate(slowest.groupby("trial_id", sort=False), start=1):
        cell = str(frame["cell"].iloc[0])
        yield _named("process_name", f"{cell} ({trial})", process, 0)
        for thread, ((operation, rank), pieces) in enumerate(frame.groupby(["operation", "rank"], sort=False), start=1):
            yield _named("thread_name", f"{operation} {rank}", process, thread)
            for row in pieces.to_dict("records"):
                yield {
                    "ph": "X",
                    "name": layer_noun(row["layer"], row["through"]),
                    "cat": row["layer"],
                    "pid": process,
                    "tid": thread,
                    "ts": (row["began_s"] + row["begin_s"]) * _US_PER_S,
                    "dur": row["seconds"] * _US_PER_S,
                }


def _named(what: str, name: str, process: int, thread: int) -> dict[str, object]:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}}

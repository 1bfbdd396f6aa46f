"""A run.json decoded, of each version."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mountlab.core.cell_stop import CellStop
from mountlab.core.places import SHIPPED
from mountlab.core.run_info import Explanation, Extension, RunInfo

FIRST: dict[str, Any] = json.loads((SHIPPED / "tests" / "data" / "earlier_run" / "run.json").read_text())
"""Of schema 1: no chain, no plug-ins, no extensions."""
LATER = {"at": "2026-11-22", "finished_at": "2026-11-21", "programs": {"perf": {"version": "6"}}}
EXTENDED = {**LATER, "parameters": {"name": "tour", "design": {"repeats": 9}}, "only_new": True, "journal": {}}
EXPLAINED = {**LATER, "blocks": 5, "events": ["block:block_rq_issue"], "mountlab_version": "0.1.0"}


def test_a_run_of_the_first_version_lacks_what_came_later() -> None:
    info = RunInfo.from_record(FIRST)
    assert (info.schema, info.run_id, info.box_name, info.seed) == (1, "20261120T101902-tour-local", "local", 2026)
    assert info.parameters == info.first_parameters == FIRST["parameters"]
    assert info.facts.as_record() == FIRST["facts"]
    assert (info.has_checksums, info.trials_at_end, info.imported, info.by_hand, info.batch) == (False, *[None] * 4)
    assert not any((info.extensions, info.explanations, info.plugins, info.altered, info.stopped, info.accepted()))


def test_additions_change_the_parameters_the_programs_and_the_events() -> None:
    """The last extension has the parameters of all; an explanation adds its blocks to them."""
    info = RunInfo.from_record({**FIRST, "extensions": [EXTENDED], "explained": [EXPLAINED]})
    assert info.first_parameters == FIRST["parameters"]
    assert info.parameters == {"name": "tour", "design": {"repeats": 9, "explain": 5}}
    assert set(info.facts.programs.installed) == {*FIRST["facts"]["programs"], "perf"}
    assert list(info.facts.surveyed.trace_events) == ["block:block_rq_issue"]
    assert [(type(one), one.at, one.finished_at) for one in (*info.extensions, *info.explanations)] == [
        (Extension, "2026-11-22", "2026-11-21"),
        (Explanation, "2026-11-22", "2026-11-21"),
    ]


@pytest.mark.parametrize("missing", [None, "journal", "cell", "half_width"])
def test_stops_are_known_where_they_are_kept_of_all_trials_and_cells(missing: str | None) -> None:
    row = {"reason": "precise", "blocks": 4, "n": 4, "half_width": 0.1, "metric": "iops", "why": ""}
    stopped = {name: {**row, "half_width": None if missing == "half_width" else 0.1} for name in ("a/w", "b/w")}
    if missing == "cell":
        del stopped["b/w"]
    trials = 7 if missing == "journal" else 8
    info = RunInfo.from_record({**FIRST, "stopped": stopped, "journal": {"trials": trials, "head": "0"}})
    expected = [CellStop(cell="a/w", **row), CellStop(cell="b/w", **row)]  # type: ignore[arg-type]
    assert info.stops(["a/w", "b/w"], 8) == (None if missing else expected)


def test_what_was_accepted_has_its_day() -> None:
    entry = {"at": "2026-11-22T10:00:00+00:00", "found": ["line 3 was changed"]}
    assert RunInfo.from_record({**FIRST, "altered": [entry]}).accepted() == ["line 3 was changed (accepted 2026-11-22)"]

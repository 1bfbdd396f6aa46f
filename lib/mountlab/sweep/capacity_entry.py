"""The `capacity` of a workload: from what YAML gives to a search for the highest rate at which an objective holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from mountlab.core.errors import ParameterError
from mountlab.core.model import Scalar, Workload
from mountlab.core.search import Objective, Search
from mountlab.core.units import PercentText, parse_percent, parse_seconds
from mountlab.sweep.validated import AS_TEXT, File, validated
from mountlab.tools.base import Tool

PERCENTILES = {"p50": "p50", "p95": "p95", "p99": "p99", "p99.9": "p99_9"}
"""As a sweep writes them, and as metrics are named."""
NARROWEST, WIDEST = 0.005, 0.5
FEWEST, MOST = 15, 1000
"""Trials of a search. With fewer, no interval is bounded on both sides."""


class CapacityFile(File):
    """What YAML may hold: `{objective: {p99: 5ms, of: [read, write]}, half_width: 5%, max_trials: 60, start: 1000}`."""

    objective: Annotated[dict[str, Any], Field(min_length=1)]
    """Percentiles (p50, p95, p99, p99.9) with the latency that each may have at most, and `of`: the directions for
    which they are to hold, where that is not each that the workload has. Latency counts from when a request was due."""
    half_width: Annotated[PercentText, AS_TEXT] = "5%"
    """How precise: the search ends when both ends of the interval lie within so much of its middle."""
    max_trials: Annotated[int, Field(ge=FEWEST, le=MOST)] = Search.max_trials
    """How many trials at most."""
    start: Annotated[float | int, Field(gt=0)] = Search.start
    """Requests per second of the first trial. A guess: the search goes up and down from it by itself."""
    floor: Annotated[float | int, Field(gt=0)] | None = None
    """The lowest rate of a trial, in requests per second: where the objective already fails there, the search says so.
    Trials at low rates are long, since a p99 needs 1,000 requests. Usually the rate at which these take 40 s."""


def read_capacity(raw: Any, tool: Tool, options: Mapping[str, Scalar], where: str) -> Search | None:
    """Return the search that a workload asks for; None for none. Raises ParameterError with file, key, got, allowed."""
    if raw is None:
        return None
    if not isinstance(raw, dict):
        allowed = "{objective: {p99: 5ms}}"
        raise ParameterError("capacity needs an objective", where=where, got=repr(raw)[:60], allowed=allowed)
    file = validated(CapacityFile, raw, where, inside=True)
    half_width = parse_percent(file.half_width, where=f"{where}.half_width")
    if not NARROWEST <= half_width <= WIDEST:
        allowed = f"{NARROWEST:.1%} to {WIDEST:.0%}"
        raise ParameterError(
            "a share out of range", where=f"{where}.half_width", got=repr(file.half_width), allowed=allowed
        )
    directions = tool.check_open_loop(options, where=where.removesuffix(".capacity"))
    objective = _objective(file.objective, directions, f"{where}.objective")
    floor = float(file.floor or 0)
    if floor > file.start:
        raise ParameterError(
            "a search cannot begin below its floor",
            where=f"{where}.floor",
            got=f"{floor:g}",
            allowed=f"at most start, {file.start:g}",
        )
    return Search(
        objective=objective,
        half_width=half_width,
        max_trials=file.max_trials,
        start=float(file.start),
        floor=floor,
    )


def _objective(raw: Mapping[str, object], directions: Sequence[str], where: str) -> Objective:
    limits = {}
    for name, text in raw.items():
        if name == "of":
            continue
        if name not in PERCENTILES:
            allowed = ", ".join((*PERCENTILES, "of"))
            raise ParameterError("not a percentile of an objective", where=f"{where}.{name}", got=name, allowed=allowed)
        limits[PERCENTILES[name]] = parse_seconds(text, where=f"{where}.{name}")
        if not limits[PERCENTILES[name]] > 0:
            raise ParameterError("a limit is some time", where=f"{where}.{name}", got=str(text), allowed="such as 5ms")
    of = raw.get("of", list(directions))
    if not limits:
        raise ParameterError("an objective needs a percentile", where=where, got=str(dict(raw)), allowed="{p99: 5ms}")
    if not isinstance(of, list) or not of or not all(side in directions for side in of):
        allowed = f"what the workload does: [{', '.join(directions)}]"
        raise ParameterError("no such direction", where=f"{where}.of", got=repr(of)[:60], allowed=allowed)
    return Objective(limits=limits, of=tuple(side for side in directions if side in of))


def check_searches(workloads: Sequence[Workload], design: Mapping[str, object], where: str) -> int:
    """Return how many blocks a sweep of searches has at most; 0 of a sweep without any. Raises ParameterError where
    other workloads stand beside them, or where the design asks for what a search decides by itself (`design`: each
    such key that it gives, and its value)."""
    searches = [workload.search for workload in workloads if workload.search]
    if not searches:
        return 0
    plain = [workload.name for workload in workloads if not workload.search]
    if plain:
        raise ParameterError(
            "workloads with and without capacity stand in one sweep",
            where=f"{where}: workloads",
            got=f"without: {', '.join(dict.fromkeys(plain))}",
            allowed="a search for each, or for none: a search has as many blocks as it needs",
            next_step="write the others into a sweep of their own",
        )
    for key, value in design.items():
        raise ParameterError(
            "a search for a capacity decides this by itself",
            where=f"{where}: design.{key}",
            got=str(value)[:60],
            allowed=f"no {key}: capacity.half_width and capacity.max_trials say when a search ends",
            next_step=f"leave out {key}",
        )
    return max(search.max_trials for search in searches)

"""Workloads that several clients drive together: whether one of them lags behind, and whether all worked at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from mountlab.checks.base import Check, Doubt, Evidence
from mountlab.core.findings import Estimate
from mountlab.core.frames import pd
from mountlab.core.model import Cell, Sweep
from mountlab.stats import estimate

STRAGGLES = 0.8
"""A client straggles whose throughput is surely below this part of what the others have in the middle."""
APART = 0.9
"""Clients were apart where one was done after less than this part of the time of the slowest."""
LEVEL = 0.95
"""Of the intervals of all clients of a cell together."""
RATES = ("read_bandwidth", "write_bandwidth")


@dataclass(frozen=True, kw_only=True)
class Share:
    """What one client did of a cell, over its counted trials."""

    cell: Cell
    metric: str
    client: str
    rates: tuple[float, ...]
    """Of each trial, in bytes a second."""
    ratios: tuple[float, ...]
    """Of each trial: to the median of the other clients."""
    log_ratio: Estimate
    """Mean of their logarithms, with an interval that holds together with those of the cell's other clients."""

    @property
    def bounds(self) -> tuple[float, float, float]:
        """Geometric mean of the ratios, low, high; NaN bounds for one trial."""
        return math.exp(self.log_ratio.mean), math.exp(self.log_ratio.low), math.exp(self.log_ratio.high)

    @property
    def straggles(self) -> bool:
        return self.bounds[2] < STRAGGLES


def shares(sweep: Sweep, measurements: pd.DataFrame) -> list[Share]:
    """Return what each client did of each cell that two or more drive. Trials in which one has no such figure are left
    out."""
    several = _of_several(sweep)
    good = measurements[~measurements["warmup"].astype(bool)] if several else measurements
    return [share for cell in several for metric in RATES for share in _shares(cell, metric, good)]


def _of_several(sweep: Sweep) -> list[Cell]:
    return [cell for cell in sweep.cells if len(cell.workload.clients) > 1]


def _shares(cell: Cell, metric: str, measurements: pd.DataFrame) -> Iterator[Share]:
    clients = cell.workload.clients
    rows = _by_client(measurements, cell, metric)
    for name in clients if len(rows) else ():
        ratios = rows[name] / rows.drop(columns=name).median(axis=1)
        logs = [math.log(ratio) for ratio in ratios]
        interval = estimate(logs, level=LEVEL, within=1 - (1 - LEVEL) / len(clients), signed=True)
        yield Share(
            cell=cell, metric=metric, client=name, rates=tuple(rows[name]), ratios=tuple(ratios), log_ratio=interval
        )


def _by_client(measurements: pd.DataFrame, cell: Cell, metric: str) -> pd.DataFrame:
    """Return a row a trial, a column a client; only trials in which every client has a figure."""
    clients = list(cell.workload.clients)
    named = measurements["label"].isin(clients)
    chosen = (measurements["cell"] == cell.id) & (measurements["metric"] == metric) & named
    wide = measurements[chosen].pivot(index="trial_id", columns="label", values="value")  # one value each
    return wide.reindex(columns=clients).dropna()


def straggling(evidence: Evidence) -> Iterator[Doubt]:
    """A client that is much slower than the others which drive the same workload.

    Over two counted trials or more, a client's throughput relative to the median of the others is surely below 80 %.
    That is the upper end of the t interval of the log ratios, at 95 % for all clients of the cell together
    (Bonferroni). A client that truly has 80 % is named in 2.5 % of cells at most.
    """
    for share in shares(evidence.sweep, evidence.measurements):
        if share.straggles:
            mean, low, high = share.bounds
            yield Doubt.of_cell(
                share.cell,
                f"client {share.client} had {mean:.0%} ({low:.0%} to {high:.0%}, n = {len(share.ratios)}) of the "
                f"{share.metric.replace('_', ' ')} that the other clients have in the middle: the whole is bounded by "
                "it, and latencies mix two kinds of clients. Look at its network and its load, or leave it out.",
            )


def apart(evidence: Evidence) -> Iterator[Doubt]:
    """Clients that did not work at the same time.

    The quickest client was done after less than 90 % of the time of the slowest (median over the trials). Rates of all
    together are over the time of the slowest.
    """
    for cell in _of_several(evidence.sweep):
        rows = _by_client(evidence.measurements[~evidence.measurements["warmup"].astype(bool)], cell, "elapsed")
        part = median(rows.min(axis=1) / rows.max(axis=1)) if len(rows) else 1.0
        if part < APART:
            yield Doubt.of_cell(
                cell,
                f"the quickest client was done after {part:.0%} of the time of the slowest (median of {len(rows)} "
                "trials), and the rates of all together are over that whole time: for the rest of it fewer clients "
                "asked. Give the workload a time instead of an amount: runtime, with time_based.",
            )


def _too_few(evidence: Evidence) -> str | None:
    known_shares = shares(evidence.sweep, evidence.measurements)
    few = bool(known_shares) and all(len(share.ratios) < 2 for share in known_shares)
    return "one trial does not tell a slow client from a slow moment" if few else None


CHECKS: Sequence[Check] = (
    Check(
        "straggler",
        straggling,
        "Look at the network and the load of that client, or leave it out of `clients`.",
        blind=_too_few,
    ),
    Check("clients-apart", apart, "Give the workload a time (`runtime`, `time_based`) instead of an amount."),
)

"""Sentences on trials, options, stopping and effects. Every figure in them comes from the data.

Texts are plain: `mountlab.report.html` escapes them on their way into a page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from mountlab.core.cell_stop import CellStop
from mountlab.core.errors import in_one_line
from mountlab.core.findings import OptionState
from mountlab.core.numbers import MISSING, counted, listed, percent

NOT_IN_SWEEP = "not in the sweep"
NOT_MEASURED = "not measured"
"""In the place of a figure: the sweep file takes this cell out."""


# ── comparisons ──────────────────────────────────────────────────────────────────────────────────────────────────────


def trial_count(n: int, censored: int) -> str:
    """'10', or '10, 2 at the limit (median)': n of an estimate, with the trials that ran into the time limit."""
    if not censored:
        return str(n)
    return f"{n}, {'all' if censored == n else censored} at the limit ({'median' if 2 * censored < n else 'no figure'})"


def without_value(late: int) -> str:
    """'2 trials ran into the time limit and have no value', for what is made of the values of trials."""
    return f"{counted(late, 'trial')} ran into the time limit and {'has' if late == 1 else 'have'} no value"


# ── options ──────────────────────────────────────────────────────────────────────────────────────────────────────────

OPTION_STATES: dict[OptionState, str] = {
    "in effect": "✓ in effect",
    "changed": "✗ changed",
    "ignored": "✗ ignored",
    "without effect": "✗ shown, but without effect here",
    "not visible": "? not visible",
    "added": "+ added",
}
"""The state of an option, with a sign for those who skim."""


# ── stopping ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def stop_text(stop: CellStop) -> str:
    """Return why a cell has no more trials: 'precise after 7 blocks'."""
    blocks = counted(stop.blocks, "block")
    if stop.reason == "could not":
        because = f": {in_one_line(stop.why)}" if stop.why else ""
        few = "" if stop.metric == "capacity" else ", too few figures"
        return f"given up after {blocks}{few}{because}"
    return {
        "precise": f"precise after {blocks}",
        "max reached": f"not precise after {blocks}, the most that may be",
        "budget": f"out of time after {blocks}",
        "not finished": f"not finished, {blocks} so far",
    }[stop.reason]


# ── what explains how much ───────────────────────────────────────────────────────────────────────────────────────────

_SMALL_SHARE = 0.005


def explained_sentence(rows: Iterable[Mapping[str, Any]], what: str) -> str:
    """'Of the differences in read bandwidth under dd-read: filesystem × cache 62 % [37 %, 77 %], filesystem 19 % ...':
    the effects of an analysis of variance (rows of stats.explained), the largest first."""
    rows = list(rows)
    if any(math.isnan(row["share"]) for row in rows):
        alike = not any(row["sum_sq"] for row in rows)
        missing = "cells are missing, so that effects overlap (see F and p)"
        why = "all trials gave the same figure" if alike else missing
        return f"The shares of the differences in {what} are unknown: {why}."
    ordered = sorted(rows, key=lambda row: -row["share"])
    shares = [f"{effect_name(row['effect'])} {share_text(row)}" for row in ordered if row["share"] >= _SMALL_SHARE]
    return f"Of the differences in {what}: {listed(shares)}."


def effect_name(effect: str) -> str:
    """'filesystem × bs'."""
    spoken = effect.replace(" x ", " × ").replace("filesystem", "file system")
    return "from trial to trial" if effect == "residual" else spoken


def share_text(row: Mapping[str, Any]) -> str:
    """'62 % [37 %, 77 %]'; without an interval where there is none."""
    if math.isnan(row["share"]):
        return MISSING
    share = percent(round(row["share"], 2))
    if math.isnan(row["low"]):
        return share
    return f"{share} [{percent(round(row['low'], 2))}, {percent(round(row['high'], 2))}]"

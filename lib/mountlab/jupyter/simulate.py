"""Simulated runs with a known truth, evaluated by the statistics of the reports: what n trials show."""

from __future__ import annotations

from mountlab.stats.calibration import KINDS
from mountlab.stats.calibration import what_if_frame as frame
from mountlab.stats.calibration import what_if_sentence as sentence
from mountlab.stats.calibration import what_would as runs

__all__ = ["frame", "kinds", "runs", "sentence"]


def kinds() -> list[str]:
    """Return the names of the ways in which simulated trials vary."""
    return list(KINDS)

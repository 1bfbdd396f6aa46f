"""Simulated runs with a known truth: the processes that they come from, the tables of them, what n trials show."""

from mountlab.stats.calibration.document import Share, Table, put, read
from mountlab.stats.calibration.processes import KINDS, Process
from mountlab.stats.calibration.tables import FULL, SHORT, Effort, Maker
from mountlab.stats.calibration.what_if import SimulatedRuns, what_if_frame, what_if_sentence, what_would

__all__ = [
    "FULL", "KINDS", "SHORT", "Effort", "Maker", "Process", "Share", "SimulatedRuns", "Table", "put", "read",
    "what_if_frame", "what_if_sentence", "what_would",
]  # fmt: skip

"""`make calibrate`: simulations that show what the statistics hold, as the tables of METHODS.md.

Every figure has a seed of its own, so that the same code gives the same tables.
"""

from mountlab.calibrate import tables
from mountlab.calibrate.boxes import over_few_boxes, parts_of_variance
from mountlab.calibrate.document import Share, Table, put, read
from mountlab.calibrate.gates import gate_outcomes
from mountlab.calibrate.over_runs import changes_over_runs, delays_over_runs
from mountlab.calibrate.processes import KINDS, Process
from mountlab.calibrate.rules import trials_needed
from mountlab.calibrate.tables import FULL, SHORT, Effort, Maker
from mountlab.calibrate.what_if import Told, told_frame, told_sentence, what_would

TABLES: tuple[Maker, ...] = (
    *tables.TABLES, trials_needed, over_few_boxes, parts_of_variance, changes_over_runs, delays_over_runs,
    gate_outcomes,
)  # fmt: skip
"""All that METHODS.md holds."""

__all__ = [
    "FULL", "KINDS", "SHORT", "TABLES", "Effort", "Process", "Share", "Table", "Told", "put", "read", "told_frame",
    "told_sentence", "what_would",
]  # fmt: skip

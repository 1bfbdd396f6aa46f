"""`make calibrate`: simulations that show what the statistics hold, as the tables of METHODS.md.

Every figure has a seed of its own, so that the same code gives the same tables.
"""

from mountlab.calibrate.document import Share, Table, put, read
from mountlab.calibrate.processes import KINDS, Process
from mountlab.calibrate.tables import FULL, SHORT, TABLES, Effort
from mountlab.calibrate.what_if import Told, told_frame, told_sentence, what_would

__all__ = [
    "FULL", "KINDS", "SHORT", "TABLES", "Effort", "Process", "Share", "Table", "Told", "put", "read", "told_frame",
    "told_sentence", "what_would",
]  # fmt: skip

"""`make calibrate`: simulations that show what the statistics hold, as the tables of METHODS.md.

Every figure has a seed of its own, so that the same code gives the same tables.
"""

from mountlab.calibrate.document import Share, Table, put, read
from mountlab.calibrate.over_runs import changes_over_runs
from mountlab.calibrate.processes import KINDS, Process
from mountlab.calibrate.tables import FULL, SHORT, Effort
from mountlab.calibrate.tables import TABLES as OF_A_RUN
from mountlab.calibrate.what_if import Told, told_frame, told_sentence, what_would

TABLES = (*OF_A_RUN, changes_over_runs)

__all__ = [
    "FULL", "KINDS", "SHORT", "TABLES", "Effort", "Process", "Share", "Table", "Told", "put", "read", "told_frame",
    "told_sentence", "what_would",
]  # fmt: skip

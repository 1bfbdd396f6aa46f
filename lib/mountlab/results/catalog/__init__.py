"""The catalog: all runs of a directory as the tables of one DuckDB file, made from the run directories at any time.

`build` makes it or brings it up to date, `opened` answers queries about it. DuckDB is imported here only. (The list of
runs for people, results/index.html, is made by `results.listing` and `report.index`.)
"""

from mountlab.results.catalog.build import FILE, Built, CatalogCheck, build, check_runs
from mountlab.results.catalog.database import TABLES, QueryResult, ask, late_error, opened

__all__ = [
    "FILE", "TABLES", "Built", "CatalogCheck", "QueryResult", "ask", "build", "check_runs", "late_error", "opened",
]  # fmt: skip

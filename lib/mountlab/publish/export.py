"""The tables of a run as files for other programs (CSV, Parquet, one workbook for a spreadsheet) and for papers (LaTeX,
Markdown).

openpyxl writes the workbook, and not XlsxWriter, since it reads too: what was written can be opened and compared.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow
import pyarrow.parquet

from mountlab.analysis.run_view import RunView
from mountlab.core.errors import ParameterError
from mountlab.core.extras import need
from mountlab.core.metrics import METRICS, Metric
from mountlab.core.model import Sweep
from mountlab.core.names import metric_noun
from mountlab.core.options import unknown_key
from mountlab.core.text import visible
from mountlab.core.units import base_unit
from mountlab.publish import paper
from mountlab.results.tables import plain_csv

Tables = Mapping[str, pd.DataFrame]
FORMATS = ("csv", "xlsx", "parquet")
STATISTICS = ("mean", "low", "high", "n", "censored")
"""What a pivot shows, a table each, the last only where trials ran into their time limit; CSV and Parquet hold the
means and the last."""
_COUNTS = {"n": "n: trials", "censored": "censored: trials that ran into their time limit, whose cells show a median"}
_NEVER_FACTORS = ("filesystem", "workload")
_MOST_ROWS = 1_048_576
"""Of a sheet."""


@dataclass(frozen=True, kw_only=True)
class Pivot:
    """A table with a row for each combination of some factors, and a column for each level of another.

    Of several metrics every cell shows the one that it has: what read says its reads, what wrote its writes.
    """

    rows: tuple[str, ...]
    column: str
    metrics: tuple[str, ...]
    unit: str | None = None
    base: str = ""
    """The unit of the figures, in which they are shown without `unit`."""

    @classmethod
    def read(
        cls, text: str | None, metric: str | None, unit: str | None, defined: Mapping[str, Metric] | None = None
    ) -> Pivot | None:
        """From 'rw,numjobs:bs' and 'read_bandwidth,write_bandwidth'; None where none is asked for. `defined`: metrics
        that the sweep defines.

        Raises ParameterError.
        """
        if text is None:
            if metric or unit:
                raise ParameterError("--metric and --unit are for --pivot", where="export", got="no --pivot")
            return None
        rows, colon, column = text.partition(":")
        names = tuple(name.strip() for name in rows.split(",") if name.strip())
        if not colon or not names or not column.strip() or len({*names, column.strip()}) != len(names) + 1:
            raise ParameterError(
                "a pivot is ROWS:COLUMNS", where="--pivot", got=repr(text), allowed="factors, such as rw,numjobs:bs"
            )
        units = {**METRICS, **{name: definition.unit for name, definition in (defined or {}).items()}}
        metrics = _metrics(metric, units)
        base = units[metrics[0]]
        unit_base = base_unit(unit) if unit else None
        if unit and (unit_base is None or unit_base[0] != base):
            allowed = f"units of {base}" + (", such as MB/s" if base == "B/s" else "")
            raise ParameterError("not a unit for this metric", where="--unit", got=repr(unit), allowed=allowed)
        return cls(rows=names, column=column.strip(), metrics=metrics, unit=unit, base=base)

    @property
    def heading(self) -> str:
        return f"{' or '.join(self.metrics)}, {self.unit or self.base}"


def _metrics(text: str | None, unit_of: Mapping[str, str]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in (text or "").split(",") if name.strip()))
    if not names:
        raise ParameterError("a pivot is of a metric", where="--metric", got="nothing", allowed="--metric NAME")
    for name in names:
        if name not in unit_of:
            raise unknown_key(name, unit_of, where="--metric", what="metric")
    units = {unit_of[name] for name in names}
    if len(units) > 1:
        raise ParameterError(
            "the metrics of one table have one unit",
            where="--metric",
            got=", ".join(sorted(units)),
            allowed="such as read_bandwidth,write_bandwidth",
            next_step="export a table for each",
        )
    return names


def export_files(tables: Tables, sweep: Sweep, form: str, pivot: Pivot | None = None) -> dict[str, bytes]:
    """Return name to content of the files to write. Raises ParameterError for a pivot that the run cannot fill.

    Values are in base units, but for those of a pivot with a unit.
    """
    if form not in FORMATS:
        raise unknown_key(form, list(FORMATS), where="--format", what="format")
    name = "tables" if pivot is None else _pivot_name(pivot)
    frames = tables if pivot is None else pivot_tables(tables["estimates"], sweep, pivot)
    if pivot is not None and not frames["censored"].select_dtypes("number").gt(0).to_numpy().any():
        frames = {title: frame for title, frame in frames.items() if title != "censored"}
    if form == "xlsx":
        return {f"{name}.xlsx": workbook(frames)}
    if pivot is not None:
        titles = {"mean": name, "censored": f"{name}-censored"}
        frames = {title: frames[source] for source, title in titles.items() if source in frames}
    write = plain_csv if form == "csv" else _parquet
    return {f"{title}.{form}": write(frame) for title, frame in frames.items()}


def paper_files(run: RunView, form: str, pivot: Pivot | None = None) -> dict[str, bytes]:
    """Return name to content of the tables that people print, one each. Raises ParameterError as `export_files`
    does."""
    if pivot is not None:
        frames = pivot_tables(run.estimates, run.sweep, pivot)
        what = " or ".join(map(metric_noun, pivot.metrics))
        tables = {_pivot_name(pivot): paper.pivot_table(frames, what, pivot.base, pivot.unit)}
    else:
        tables = paper.estimate_tables(run.estimates, run.sweep)
        tables |= {"comparisons": paper.comparison_table(run.comparisons, run.sweep)} if run.comparisons else {}
    return {f"{name}.{paper.FORMATS[form]}": paper.written(table, form).encode() for name, table in tables.items()}


def _pivot_name(pivot: Pivot) -> str:
    return f"{'+'.join(pivot.metrics)}-by-{pivot.column}"


# --- pivot ------------------------------------------------------------------------------------------------------------


def pivot_tables(estimates: pd.DataFrame, sweep: Sweep, pivot: Pivot) -> dict[str, pd.DataFrame]:
    """Return one table for each of STATISTICS. The first columns say what a row is of: the file system and the workload
    where there are several, the metric where a cell has several of them, the label where there is one, and the factors
    of the rows joined by '-'."""
    rows = estimates[estimates["metric"].isin(pivot.metrics)]
    if rows.empty:
        got = ", ".join(pivot.metrics)
        allowed = ", ".join(dict.fromkeys(estimates["metric"])) or "none: no trial succeeded"
        raise ParameterError("the run has no such figures", where="--metric", got=got, allowed=allowed)
    factors = dict.fromkeys(name for workload in sweep.workloads for name in workload.factors)
    levels = {  # in the order of the sweep; '' where a workload has no such factor
        **{name: [*dict.fromkeys(workload.factors.get(name, "") for workload in sweep.workloads)] for name in factors},
        "filesystem": [fs.name for fs in sweep.filesystems],
        "workload": [*dict.fromkeys(workload.name for workload in sweep.workloads)],
    }
    _check_factors(rows, pivot, levels)
    cell = [name for name in rows if name in (*levels, "label")]
    leading = [
        name
        for name in (*_NEVER_FACTORS, "metric", "label")
        if name not in (*pivot.rows, pivot.column) and rows[name].nunique() > 1
        if name != "metric" or rows.duplicated(cell).any()
    ]
    keys = [*leading, *pivot.rows]
    order = rows.assign(**{name: pd.Categorical(rows[name], levels.get(name) or rows[name].unique()) for name in keys})
    order = order.assign(**{pivot.column: pd.Categorical(rows[pivot.column], levels[pivot.column])})
    return {statistic: _pivoted(order, pivot, keys, len(leading), statistic) for statistic in STATISTICS}


def _pivoted(rows: pd.DataFrame, pivot: Pivot, keys: Sequence[str], leading: int, statistic: str) -> pd.DataFrame:
    factor = base_unit(pivot.unit)[1] if pivot.unit and statistic not in _COUNTS else 1.0  # type: ignore[index]
    values = rows.assign(**{statistic: rows[statistic] / factor}) if factor != 1 else rows
    wide = values.pivot(index=list(keys), columns=pivot.column, values=statistic).sort_index()
    wide = wide[[column for column in wide.columns if wide[column].notna().any()]]
    index = wide.index.to_frame(index=False).astype(str)
    first = {name: index[name].tolist() for name in keys[:leading]}
    joined = {"-".join(keys[leading:]): index[list(keys[leading:])].agg("-".join, axis=1).tolist()}
    cells = {str(column): wide[column].tolist() for column in wide.columns}
    table = pd.DataFrame({**first, **joined, **cells})
    table.attrs["title"] = _COUNTS.get(statistic, f"{statistic}: {pivot.heading}")
    return table


def _check_factors(rows: pd.DataFrame, pivot: Pivot, levels: Mapping[str, Sequence[str]]) -> None:
    """Every factor of the pivot is one of the run, and no other one varies: else a cell would be of several."""
    names = (*pivot.rows, pivot.column)
    for name in names:
        if name not in levels:
            raise unknown_key(name, levels, where="--pivot", what="factor of this run")
    loose = [name for name in levels if name not in (*names, *_NEVER_FACTORS) and rows[name].nunique() > 1]
    if loose:
        raise ParameterError(
            "other factors vary too",
            where="--pivot",
            got=", ".join(loose),
            allowed="each in the rows or the columns",
            next_step=f"--pivot {','.join((*pivot.rows, *loose))}:{pivot.column}",
        )


# --- formats ----------------------------------------------------------------------------------------------------------


def _parquet(frame: pd.DataFrame) -> bytes:
    """Parquet with every text as it was: programs read it, and no terminal. A column without a value is one of text."""
    sink = io.BytesIO()
    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    fields = [
        field.with_type(pyarrow.large_string()) if pyarrow.types.is_null(field.type) else field
        for field in table.schema
    ]
    pyarrow.parquet.write_table(table.cast(pyarrow.schema(fields, table.schema.metadata)), sink)
    return sink.getvalue()


def workbook(tables: Tables) -> bytes:
    """Return an Excel workbook with a sheet a table. Text is text, however it begins; a missing value is empty."""
    need("excel", "a workbook")
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, frame in tables.items():
        _sheet(book, title, frame)
    sink = io.BytesIO()
    book.save(sink)
    return sink.getvalue()


def _sheet(book: Any, title: str, frame: pd.DataFrame) -> None:
    from openpyxl.styles import Font

    if len(frame) >= _MOST_ROWS:
        raise ParameterError(
            "more rows than a sheet holds",
            where=title,
            got=str(len(frame)),
            allowed=f"{_MOST_ROWS - 1}",
            next_step="--format parquet",
        )
    sheet = book.create_sheet(title[:31])
    note = [[frame.attrs["title"]]] if "title" in frame.attrs else []
    rows = [*note, list(frame.columns), *frame.itertuples(index=False, name=None)]
    for number, row in enumerate(rows, start=1):
        for place, value in enumerate(row, start=1):
            field = sheet.cell(number, place)
            field.value = visible(value) if isinstance(value, str) else _plain(value)
            if isinstance(value, str):
                field.data_type = "s"  # else text that begins with '=' would be a formula
            if number == len(note) + 1:
                field.font = Font(bold=True)
    sheet.freeze_panes = sheet.cell(len(note) + 2, 1)


def _plain(value: Any) -> Any:
    """Return a number as a spreadsheet knows it; None where there is none."""
    if value is None or value is pd.NA or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, bool | int | float):
        return value
    return value.item() if hasattr(value, "item") else str(value)

"""export: write the tables or the plots of a run for other programs and for papers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mountlab.cli.arguments import DIRECTORY, METRIC, RUN, argument
from mountlab.cli.shared import Arguments, run_of, verb
from mountlab.core import disk
from mountlab.core.errors import ParameterError

if TYPE_CHECKING:
    from mountlab.results.store import Run

_TABLES = ("csv", "xlsx", "parquet", "latex", "markdown")
_FORMATS = "of the tables; perfetto: the slowest operations of its diagnostic trials, for ui.perfetto.dev"


def add(verbs: Any) -> None:
    export = verb(verbs, "export", _export, "the tables of a run for other programs and for papers, or its plots")
    argument(export, RUN, "run")
    what = export.add_mutually_exclusive_group()
    what.add_argument("--format", choices=(*_TABLES, "perfetto"), default="csv", help=_FORMATS)
    what.add_argument(
        "--figures", choices=("svg", "png", "pdf"), help="the plots of the report, in the place of tables"
    )
    export.add_argument("--width-cm", type=float, help="with --figures: 8.5 (the default) for a column, 17 for a page")
    export.add_argument("--pivot", metavar="ROWS:COLUMNS", help="one table of means: rw,numjobs:bs")
    argument(
        export, METRIC, "--metric", help="with --pivot: one, or several of one unit: read_bandwidth,write_bandwidth"
    )
    export.add_argument("--unit", help="with --pivot: such as MB/s or MiB/s, in the place of base units")
    argument(export, DIRECTORY, "-o", "--output", help="a directory (default: RUN/export)")


def _export(arguments: Arguments) -> int:
    from mountlab.results import store

    run = store.load_run(run_of(arguments.run))
    files = _figures(run, arguments) if arguments.figures else _tables(run, arguments)
    for path in store.write_files(arguments.output or run.path / "export", files):
        print(disk.path_text(path))
    return 0


def _tables(run: Run, arguments: Arguments) -> dict[str, bytes]:
    from mountlab.publish import export, paper, perfetto
    from mountlab.results import tables

    if arguments.width_cm is not None:
        raise ParameterError("--width-cm is for --figures", where="export", got=f"--format {arguments.format}")
    if arguments.format == "perfetto":
        return perfetto.perfetto_files(run.why.slowest, disk.path_text(run.path))
    pivot = export.Pivot.read(arguments.pivot, arguments.metric, arguments.unit, run.sweep.own_metrics)
    if arguments.format in paper.FORMATS:
        return export.paper_files(run, arguments.format, pivot)
    return export.export_files(tables.tables(run), run.sweep, arguments.format, pivot)


def _figures(run: Run, arguments: Arguments) -> dict[str, bytes]:
    from mountlab.publish import figure_files

    if arguments.pivot or arguments.metric or arguments.unit:
        raise ParameterError("--pivot, --metric and --unit are for tables", where="export", got="--figures")
    width = figure_files.COLUMN_CM if arguments.width_cm is None else arguments.width_cm
    return figure_files.figure_files(run, arguments.figures, width_cm=width)

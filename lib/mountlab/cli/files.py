"""Verbs for what comes from elsewhere and goes there: parse, import, export, publish, reproduce."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mountlab.cli.shared import RUN, Arguments, finish, json_text, verb
from mountlab.core import disk
from mountlab.core.errors import ParameterError

if TYPE_CHECKING:
    from mountlab.results.store import Run


def add(verbs: Any) -> None:
    """Declare them."""
    _add_logs(verbs)
    _add_export(verbs)
    _add_bundles(verbs)


def _add_logs(verbs: Any) -> None:
    parse = verb(verbs, "parse", _parse, "the figures in a log from anywhere: metric, label, value, line")
    parse.add_argument("tool", help="dd, fio, filebench, fs_mark, pg_test_fsync")
    parse.add_argument("files", type=Path, nargs="+", metavar="FILE", help="logs; each may hold several outputs")
    parse.add_argument("--json", action="store_true", help="as data")
    bring = verb(verbs, "import", _import, "make a run of logs from anywhere, then report")
    bring.add_argument(
        "logs",
        nargs="+",
        metavar="FILE.yml | PATTERN",
        help="a YAML file that says which log is whose, or names of logs such as 'logs/{filesystem}/{bs}-{repeat}.txt'",
    )
    for key, text in (
        ("tool", "whose logs they are"),
        ("filesystem", "of which all logs are, where their names do not say it"),
        ("baseline", "the file system that the others are compared with"),
        ("question", "what the report asks"),
        ("name", "of the run"),
    ):
        bring.add_argument(f"--{key}", help=f"with PATTERN: {text}")


def _add_export(verbs: Any) -> None:
    export = verb(verbs, "export", _export, "the tables of a run for other programs and for papers, or its plots")
    export.add_argument("run", type=Path, help=RUN)
    what = export.add_mutually_exclusive_group()
    what.add_argument("--format", choices=("csv", "xlsx", "parquet", "latex", "markdown"), default="csv")
    what.add_argument(
        "--figures", choices=("svg", "png", "pdf"), help="the plots of the report, in the place of tables"
    )
    export.add_argument("--width-cm", type=float, help="with --figures: 8.5 (the default) for a column, 17 for a page")
    export.add_argument("--pivot", metavar="ROWS:COLUMNS", help="one table of means: rw,numjobs:bs")
    export.add_argument("--metric", help="with --pivot: one, or several of one unit: read_bandwidth,write_bandwidth")
    export.add_argument("--unit", help="with --pivot: such as MB/s or MiB/s, in the place of base units")
    export.add_argument("-o", "--output", type=Path, help="a directory (default: RUN/export)")


def _add_bundles(verbs: Any) -> None:
    publish = verb(verbs, "publish", _publish, "a folder and a zip of runs that stand alone, without names of machines")
    publish.add_argument("runs", type=Path, nargs="+", metavar="RUN", help=RUN)
    publish.add_argument("--to", type=Path, metavar="DIR", help="the folder (default: results/bundle-TITLE-DATE)")
    publish.add_argument("--title", help="default: the names of the sweeps")
    publish.add_argument("--author", action="append", default=[], help="as it is to be cited; may be given again")
    publish.add_argument("--licence", help="an SPDX identifier (default: CC-BY-4.0)")
    publish.add_argument(
        "--keep-identities", action="store_true", help="host names, addresses, serials, users as they are"
    )
    reproduce = verb(verbs, "reproduce", _reproduce, "check a published bundle; with --box run its sweeps again")
    reproduce.add_argument("bundle", type=Path, help="a folder or a zip made by publish")
    reproduce.add_argument("--box", help="a name from params/boxes: run the sweeps there, and compare")
    reproduce.add_argument(
        "--allow-commands", action="store_true", help="with --box: also run command lines of the bundle"
    )


def _parse(arguments: Arguments) -> int:
    from mountlab.results.imported import read_log_files
    from mountlab.tools.logs.view import as_json, as_table

    outputs = read_log_files(arguments.tool, arguments.files)
    print(json_text(as_json(outputs)) if arguments.json else as_table(outputs))
    problems = [output.problem for each in outputs.values() for output in each if output.problem]
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return problems[0].exit_code if problems else 0


def _import(arguments: Arguments) -> int:
    from mountlab.results.imported import import_file, import_patterns

    if len(arguments.logs) == 1 and Path(arguments.logs[0]).suffix in (".yml", ".yaml"):
        return finish(import_file(Path(arguments.logs[0])))
    given = {key: getattr(arguments, key) for key in ("tool", "baseline", "question", "name")}
    raw = {"question": "What do these logs say?", **{key: value for key, value in given.items() if value is not None}}
    if arguments.filesystem:
        return finish(import_patterns({**raw, "filesystems": {arguments.filesystem: {"files": arguments.logs}}}))
    return finish(import_patterns({**raw, "files": arguments.logs}))


def _export(arguments: Arguments) -> int:
    from mountlab.results import store

    run = store.load_run(arguments.run)
    files = _figures(run, arguments) if arguments.figures else _tables(run, arguments)
    for path in store.write_files(arguments.output or run.path / "export", files):
        print(disk.shown(path))
    return 0


def _tables(run: Run, arguments: Arguments) -> dict[str, bytes]:
    from mountlab.report import export, paper
    from mountlab.results import tables

    if arguments.width_cm is not None:
        raise ParameterError("--width-cm is for --figures", where="export", got=f"--format {arguments.format}")
    pivot = export.Pivot.read(arguments.pivot, arguments.metric, arguments.unit, run.sweep.own_metrics)
    if arguments.format in paper.FORMATS:
        return export.paper_files(run, arguments.format, pivot)
    return export.export_files(tables.tables(run), run.sweep, arguments.format, pivot)


def _figures(run: Run, arguments: Arguments) -> dict[str, bytes]:
    from mountlab.report import figure_files

    if arguments.pivot or arguments.metric or arguments.unit:
        raise ParameterError("--pivot, --metric and --unit are for tables", where="export", got="--figures")
    width = figure_files.COLUMN_CM if arguments.width_cm is None else arguments.width_cm
    return figure_files.figure_files(run, arguments.figures, width_cm=width)


def _publish(arguments: Arguments) -> int:
    from mountlab.publish.publish import Wishes, publish
    from mountlab.report.execute import write_index

    wishes = Wishes(
        to=arguments.to,
        title=arguments.title,
        authors=tuple(arguments.author),
        keep_identities=arguments.keep_identities,
        **({"licence": arguments.licence} if arguments.licence else {}),
    )
    folder, archive = publish(arguments.runs, wishes)
    write_index()
    print(f"bundle: {disk.shown(folder / 'index.html')}\nzip:    {disk.shown(archive)}")
    return 0


def _reproduce(arguments: Arguments) -> int:
    from mountlab.publish import reproduce
    from mountlab.publish.bundle_view import checked_text

    with reproduce.opened(arguments.bundle) as place:
        checked = reproduce.check(place)
        print(checked_text(checked), flush=True)
        if arguments.box and checked.same:
            reproduce.refuse_commands(place, allowed=arguments.allow_commands)
            for text, page in reproduce.again(place, arguments.box):
                print(f"\n{text}\n\nreport: {disk.shown(page)}", flush=True)
    return 0 if checked.same else 1

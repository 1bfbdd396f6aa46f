"""Thin verbs for the Makefile and for people without make. Exit codes: 0 done, 1 some trial failed, 2 bad input,
3 box unreachable, 4 unsafe, 130 stopped, 141 nobody read on."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mountlab.errors import InputError, MountlabError, ParameterError, Stopped, StoreError

if TYPE_CHECKING:
    from mountlab.store import Run

INTERRUPTED, PIPE_CLOSED = 130, 141
Arguments = argparse.Namespace


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code; what goes wrong is one clear error on standard error."""
    parsed = _parser().parse_args(arguments)
    verb: Callable[[Arguments], int] = parsed.verb
    try:
        code = verb(parsed)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return _nobody_reads()
    except MountlabError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"error: {error.strerror or error}\n  where:   {error.filename or 'this machine'}", file=sys.stderr)
        return InputError.exit_code
    except KeyboardInterrupt as stop:
        print(Stopped.what, file=sys.stderr)
        print(*stop.args, sep="\n", end="\n" if stop.args else "", file=sys.stderr)
        return INTERRUPTED


def _nobody_reads() -> int:
    """The exit code where the reader of our output has gone, as in `... | head`: that of a program ended by SIGPIPE."""
    with suppress(BrokenPipeError):
        sys.stdout.close()  # else Python tries once more as it ends
    return PIPE_CLOSED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mountlab", description="A research workbench for file systems.")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    plan = _sweep_verb(verbs, "plan", _plan, "what would run, every command, what would be formatted; changes nothing")
    plan.add_argument("--json", action="store_true", help="as data")
    plan.add_argument("--pilot", type=Path, metavar="RUN", help="an earlier run: predict precision, time and power")
    _sweep_verb(verbs, "run", _run, "measure a sweep, then report")
    for name, verb, text in (
        ("resume", _resume, "go on with a run that was stopped, then report"),
        ("report", _report, "write the report of a run again"),
        ("reparse", _reparse, "make the derived files of a run again from its raw output"),
    ):
        _verb(verbs, name, verb, text).add_argument("run", type=Path, help="a directory below results/")
    fstab = _verb(verbs, "fstab", _fstab, "the lines that would make a mount of a run permanent; changes nothing")
    fstab.add_argument("run", type=Path, help="a directory below results/")
    fstab.add_argument("filesystem", help="its name in the sweep")
    fstab.add_argument("--at", default=None, help="the mount point (default: /mnt/FILESYSTEM)")
    _verbs_of_many_runs(verbs)
    _log_verbs(verbs)
    _batch_verb(verbs)
    _bundle_verbs(verbs)
    demo = _verb(verbs, "demo", _demo, "studies A and B at a small size on this machine")
    demo.add_argument("--box", default="local", help="a name from params/boxes")
    demo.add_argument("--yes", action="store_true", help="install missing tools without asking")
    _override(demo)
    _box_verbs(_verb(verbs, "box", None, "look after a box").add_subparsers(required=True, metavar="VERB"))
    lab = _verb(verbs, "lab", _lab, "JupyterLab on the notebooks, with the kernel of this environment")
    lab.add_argument("--port", type=int, help="default: the first free one from 8888 on")
    lab.add_argument("--no-browser", action="store_true", help="start no browser here")
    _own_verbs(verbs)
    return parser


def _verbs_of_many_runs(verbs: Any) -> None:
    compare = _verb(
        verbs, "compare", _compare, "what differs between two runs, or among many of one sweep, and how much"
    )
    compare.add_argument("run_a", type=Path, metavar="RUN_A", help="a directory below results/: before, or the one box")
    compare.add_argument("run_b", type=Path, metavar="RUN_B", help="after, or the other box")
    compare.add_argument(
        "more", type=Path, metavar="RUN", nargs="*", help="more runs of the sweep: did the answer change"
    )
    compare.add_argument("--json", action="store_true", help="as data, without writing a page")
    gate = _verb(
        verbs, "gate", _gate, "for scripts: is run B worse than run A by more than a margin? exit code 1 if so"
    )
    gate.add_argument(
        "run_a", type=Path, metavar="RUN_A", help="a directory below results/: the run to hold it against"
    )
    gate.add_argument("run_b", type=Path, metavar="RUN_B", help="the run of the change")
    gate.add_argument("--margin", default="5%", help="how much worse does not matter")
    gate.add_argument("--sure", action="store_true", help="also exit code 1 where it is not shown that none is worse")
    gate.add_argument("--json", action="store_true", help="as data")
    index = _verb(verbs, "index", _index, "the list of all runs and reports, made anew: results/index.html")
    index.add_argument("results", type=Path, nargs="?", help="the directory of the runs (default: results/)")


def _verb(verbs: Any, name: str, verb: Callable[[Arguments], int] | None, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text)
    parser.set_defaults(**({"verb": verb} if verb else {}))
    return parser


def _sweep_verb(verbs: Any, name: str, verb: Callable[[Arguments], int], text: str) -> argparse.ArgumentParser:
    parser = _verb(verbs, name, verb, text)
    parser.add_argument("sweep", type=Path, help="such as params/sweeps/ramdisk.yml")
    parser.add_argument("--box", default=None, help="a name from params/boxes, in the place of the sweep's own")
    _override(parser)
    return parser


def _own_verbs(verbs: Any) -> None:
    """About Mountlab itself."""
    calibrate = _verb(verbs, "calibrate", _calibrate, "simulate what the statistics hold: the tables of METHODS.md")
    calibrate.add_argument("--short", action="store_true", help="few cases, only shown: METHODS.md is left as it is")
    bench = _verb(verbs, "bench", _bench, "how much time Mountlab itself takes")
    bench.add_argument("--repeats", type=int, default=30, help="trials of each kind")
    bench.add_argument("--demo", action="store_true", help="also time `make demo` from a fresh clone")
    bench.add_argument("--tests", action="store_true", help="also time `make demo` and `make test` in a fresh clone")
    docs = _verb(verbs, "docs", _docs, "make docs/reference again from the code")
    docs.add_argument("--check", action="store_true", help="only say which pages differ; exit code 1 where any does")


def _log_verbs(verbs: Any) -> None:
    parse = _verb(verbs, "parse", _parse, "the figures in a log from anywhere: metric, label, value, line")
    parse.add_argument("tool", help="dd, fio, filebench, fs_mark, pg_test_fsync")
    parse.add_argument("files", type=Path, nargs="+", metavar="FILE", help="logs; each may hold several outputs")
    parse.add_argument("--json", action="store_true", help="as data")
    bring = _verb(verbs, "import", _import, "make a run of logs from anywhere, then report")
    bring.add_argument(
        "logs", nargs="+", metavar="FILE.yml | PATTERN",
        help="a YAML file that says which log is whose, or names of logs such as 'logs/{filesystem}/{bs}-{repeat}.txt'",
    )  # fmt: skip
    for key, text in (
        ("tool", "whose logs they are"), ("filesystem", "of which all logs are, where their names do not say it"),
        ("baseline", "the file system that the others are compared with"), ("question", "what the report asks"),
        ("name", "of the run"),
    ):  # fmt: skip
        bring.add_argument(f"--{key}", help=f"with PATTERN: {text}")
    export = _verb(verbs, "export", _export, "the tables of a run for other programs and for papers, or its plots")
    export.add_argument("run", type=Path, help="a directory below results/")
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


def _bundle_verbs(verbs: Any) -> None:
    publish = _verb(
        verbs, "publish", _publish, "a folder and a zip of runs that stand alone, without names of machines"
    )
    publish.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="a directory below results/")
    publish.add_argument("--to", type=Path, metavar="DIR", help="the folder (default: results/bundle-TITLE-DATE)")
    publish.add_argument("--title", help="default: the names of the sweeps")
    publish.add_argument("--author", action="append", default=[], help="as it is to be cited; may be given again")
    publish.add_argument("--licence", help="an SPDX identifier (default: CC-BY-4.0)")
    publish.add_argument(
        "--keep-identities", action="store_true", help="host names, addresses, serials, users as they are"
    )
    reproduce = _verb(verbs, "reproduce", _reproduce, "check a published bundle; with --box run its sweeps again")
    reproduce.add_argument("bundle", type=Path, help="a folder or a zip made by publish")
    reproduce.add_argument("--box", help="a name from params/boxes: run the sweeps there, and compare")
    reproduce.add_argument(
        "--allow-commands", action="store_true", help="with --box: also run command lines of the bundle"
    )


def _batch_verb(verbs: Any) -> None:
    batch = _verb(verbs, "batch", _batch, "notebooks x sweeps x boxes x overrides, and one page on all of them")
    batch.add_argument("file", type=Path, nargs="?", help="such as params/batches/studies.yml")
    batch.add_argument("--plan", action="store_true", help="what would run, and how long; changes nothing")
    batch.add_argument("--resume", type=Path, metavar="DIR", help="go on with the batch of this directory")
    batch.add_argument(
        "--new", action="store_true", help="begin anew, where FILE would go on with what is not finished"
    )


def _override(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-p",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="overrides",
        help="change one key of the sweep, such as repeats=3 or preset=small",
    )


def _box_verbs(verbs: Any) -> None:
    for name, verb, text in (
        ("check", _box_check, "is it fit, and what mends it if not"),
        ("prepare", _box_prepare, "install the tools with the box's own package manager"),
        ("clean", _box_clean, "remove whatever Mountlab left there"),
    ):
        parser = _verb(verbs, name, verb, text)
        parser.add_argument("name", help="a name from params/boxes")
        if name == "prepare":
            parser.add_argument("--yes", action="store_true", help="do not ask")
        if name == "clean":
            parser.add_argument("--dry-run", action="store_true", help="only list")
            parser.add_argument("--force", action="store_true", help="even while a run may be going on there")


def _overrides(arguments: Arguments) -> dict[str, Any]:
    from mountlab.params import parse_override

    return dict(parse_override(text) for text in arguments.overrides)


def _plan(arguments: Arguments) -> int:
    from mountlab import store, workflow
    from mountlab.pilot import forecast
    from mountlab.pilot_view import forecast_json, forecast_text
    from mountlab.planview import plan_json, plan_text

    resolved = store.load_sweep(arguments.sweep, _overrides(arguments))
    pilot = store.load_run(arguments.pilot) if arguments.pilot else None
    with workflow.planned(resolved, box=arguments.box) as session:
        predicted = forecast(resolved.sweep, pilot, facts=session.facts) if pilot else None
        if arguments.json:
            more = {"pilot": forecast_json(predicted)} if predicted else {}
            print(json.dumps({**plan_json(session.plan, session.facts), **more}, indent=1))
        else:
            more_text = [forecast_text(predicted, resolved.sweep)] if predicted else []
            print(plan_text(session.plan, session.facts), *more_text, sep="\n\n")
    return 0


def _compare(arguments: Arguments) -> int:
    from mountlab import store
    from mountlab.report import write_comparison

    paths = [arguments.run_a, arguments.run_b, *arguments.more]
    as_text, as_json = _compared([store.load_run(path) for path in paths])
    if arguments.json:
        print(json.dumps(as_json(), indent=1))
        return 0
    print(f"\n{as_text()}\n", flush=True)
    print(f"report: {store.shown(write_comparison(*paths, results=store.RESULTS))}")
    return 0


def _compared(runs: Sequence[Any]) -> tuple[Callable[[], str], Callable[[], dict[str, Any]]]:
    """Two runs, or many of them, compared: as text and as data."""
    from mountlab import compare_many_view, compare_view
    from mountlab.compare_many import compare_many
    from mountlab.compare_runs import compare_runs

    if len(runs) == 2:
        two = compare_runs(*runs)
        return partial(compare_view.comparison_text, two), partial(compare_view.comparison_json, two)
    many = compare_many(runs)
    return partial(compare_many_view.many_text, many), partial(compare_many_view.many_json, many)


def _gate(arguments: Arguments) -> int:
    from mountlab import store
    from mountlab.compare_runs import compare_runs
    from mountlab.gate import gate_json, gate_text, judge
    from mountlab.units import parse_percent

    margin = parse_percent(arguments.margin, where="--margin")
    judged = judge(compare_runs(store.load_run(arguments.run_a), store.load_run(arguments.run_b)), margin)
    print(json.dumps(gate_json(judged), indent=1) if arguments.json else gate_text(judged))
    return 0 if judged.passes(sure=arguments.sure) else 1


def _run(arguments: Arguments) -> int:
    from mountlab import store, workflow

    return _finish(workflow.run(store.load_sweep(arguments.sweep, _overrides(arguments)), box=arguments.box))


def _resume(arguments: Arguments) -> int:
    from mountlab import workflow

    return _finish(workflow.resume(arguments.run))


def _demo(arguments: Arguments) -> int:
    from mountlab.demo import demo, may_ask

    ask = _ask if may_ask() and not arguments.yes else _announce
    return _finish(demo(arguments.box, _overrides(arguments), ask=ask, say=_say))


def _finish(path: Path) -> int:
    """Report on a run: the answer in the terminal, the page, and the exit code that its trials deserve."""
    from mountlab import store
    from mountlab.checks import named
    from mountlab.report import write_report
    from mountlab.terminal import answer_text

    run = store.load_run(path)
    print(f"\n{answer_text(run.sweep, run.comparisons, run.caveats)}\n", flush=True)
    page = write_report(path)
    print(f"report: {store.shown(page)}")
    errors = [each for each in run.caveats if each.severity == "error"] if run.sweep.design.strict else []
    if errors:
        print(f"error: strict: these figures cannot be trusted: {named(errors)}", file=sys.stderr)
    return 0 if run.trials["status"].isin(("ok", "skipped", "excluded")).all() and not errors else 1


def _batch(arguments: Arguments) -> int:
    from mountlab import batch, store
    from mountlab.batch_store import load_batch
    from mountlab.batch_view import plan_text, summary_text

    if (arguments.file is None) == (arguments.resume is None):
        raise InputError(
            "a batch is named by its file, or by its directory", allowed="batch FILE, or batch --resume DIR"
        )
    if arguments.plan:
        asked, planned = batch.plan(arguments.file, arguments.resume)
        print(plan_text(asked, planned))
        return 0
    if arguments.resume:
        page, view = batch.resume_batch(arguments.resume)
    else:
        page, view = batch.run_batch(load_batch(arguments.file), results=store.RESULTS, anew=arguments.new)
    print(f"\n{summary_text(view)}\n\nreport: {store.shown(page)}")
    return batch.exit_code(view)


def _report(arguments: Arguments) -> int:
    from mountlab import store
    from mountlab.report import write_report

    store.write_derived(store.load_run(arguments.run))  # trials may have been excluded since
    print(f"report: {store.shown(write_report(arguments.run))}")
    return 0


def _index(arguments: Arguments) -> int:
    from mountlab import store
    from mountlab.report import write_index

    if arguments.results and not arguments.results.is_dir():
        raise StoreError("no such directory", where=store.shown(arguments.results), next_step="name that of the runs")
    print(f"index: {store.shown(write_index((arguments.results or store.RESULTS).resolve()))}")
    return 0


def _reparse(arguments: Arguments) -> int:
    from mountlab import store

    store.write_derived(store.load_run(arguments.run))
    print(f"derived again: {store.shown(arguments.run.resolve())}")
    return 0


def _parse(arguments: Arguments) -> int:
    from mountlab.logs.view import as_json, as_table
    from mountlab.store import read_log_files

    outputs = read_log_files(arguments.tool, arguments.files)
    print(json.dumps(as_json(outputs), indent=1) if arguments.json else as_table(outputs))
    problems = [output.problem for each in outputs.values() for output in each if output.problem]
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return problems[0].exit_code if problems else 0


def _import(arguments: Arguments) -> int:
    from mountlab.importer import import_file, import_patterns

    if len(arguments.logs) == 1 and Path(arguments.logs[0]).suffix in (".yml", ".yaml"):
        return _finish(import_file(Path(arguments.logs[0])))
    given = {key: getattr(arguments, key) for key in ("tool", "baseline", "question", "name")}
    raw = {"question": "What do these logs say?", **{key: value for key, value in given.items() if value is not None}}
    if arguments.filesystem:
        return _finish(import_patterns({**raw, "filesystems": {arguments.filesystem: {"files": arguments.logs}}}))
    return _finish(import_patterns({**raw, "files": arguments.logs}))


def _export(arguments: Arguments) -> int:
    from mountlab import store

    run = store.load_run(arguments.run)
    files = _figures(run, arguments) if arguments.figures else _tables(run, arguments)
    for path in store.write_files(arguments.output or run.path / "export", files):
        print(store.shown(path))
    return 0


def _tables(run: Run, arguments: Arguments) -> dict[str, bytes]:
    from mountlab import export, paper, store

    if arguments.width_cm is not None:
        raise ParameterError("--width-cm is for --figures", where="export", got=f"--format {arguments.format}")
    pivot = export.Pivot.read(arguments.pivot, arguments.metric, arguments.unit)
    if arguments.format in paper.FORMATS:
        return export.paper_files(run, arguments.format, pivot)
    return export.export_files(store.tables(run), run.sweep, arguments.format, pivot)


def _figures(run: Run, arguments: Arguments) -> dict[str, bytes]:
    from mountlab import figures

    if arguments.pivot or arguments.metric or arguments.unit:
        raise ParameterError("--pivot, --metric and --unit are for tables", where="export", got="--figures")
    width = figures.COLUMN_CM if arguments.width_cm is None else arguments.width_cm
    return figures.figure_files(run, arguments.figures, width_cm=width)


def _publish(arguments: Arguments) -> int:
    from mountlab import store
    from mountlab.publish import Wishes, publish

    wishes = Wishes(
        to=arguments.to, title=arguments.title, authors=tuple(arguments.author),
        keep_identities=arguments.keep_identities, **({"licence": arguments.licence} if arguments.licence else {}),
    )  # fmt: skip
    folder, archive = publish(arguments.runs, wishes)
    print(f"bundle: {store.shown(folder / 'index.html')}\nzip:    {store.shown(archive)}")
    return 0


def _reproduce(arguments: Arguments) -> int:
    from mountlab import reproduce, store
    from mountlab.bundle_view import checked_text

    with reproduce.opened(arguments.bundle) as place:
        checked = reproduce.check(place)
        print(checked_text(checked), flush=True)
        if arguments.box and checked.same:
            reproduce.refuse_commands(place, allowed=arguments.allow_commands)
            for text, page in reproduce.again(place, arguments.box):
                print(f"\n{text}\n\nreport: {store.shown(page)}", flush=True)
    return 0 if checked.same else 1


def _fstab(arguments: Arguments) -> int:
    from mountlab import store
    from mountlab.options import unknown_key
    from mountlab.permanent import permanent_lines

    run = store.load_run(arguments.run)
    if run.sweep.imported:
        what = "how the file systems of imported logs were mounted is not known"
        raise StoreError(what, where=store.shown(arguments.run))
    by_name = {fs.name: fs for fs in run.sweep.filesystems}
    if arguments.filesystem not in by_name:
        raise unknown_key(
            arguments.filesystem, by_name, where=store.shown(arguments.run), what="file system of this run"
        )
    at = arguments.at or f"/mnt/{arguments.filesystem}"
    doubts = store.doubts_of_mount(run, arguments.filesystem)
    print(permanent_lines(by_name[arguments.filesystem], store.read_box(arguments.run), at=at, doubts=doubts))
    return 0


def _box_check(arguments: Arguments) -> int:
    from mountlab import care, store
    from mountlab.boxes import open_box
    from mountlab.facts import gather
    from mountlab.filesystems import FAMILIES
    from mountlab.plan import all_programs

    with open_box(store.load_box(arguments.name)) as connection:
        rows = care.check(
            connection,
            gather(connection, all_programs()),
            all_programs(),
            {kind for family in FAMILIES.values() for kind in family.kernel_types},
        )
    for row in rows:
        print(f"{row.state:8} {row.name:14} {row.seen}" + (f"\n{'':23} mend: {row.mend}" if row.mend else ""))
    return 0 if all(row.state != "missing" for row in rows) else 1


def _box_prepare(arguments: Arguments) -> int:
    from mountlab import care, store
    from mountlab.boxes import open_box, prepare_here
    from mountlab.facts import gather
    from mountlab.plan import all_programs

    box = store.load_box(arguments.name)
    prepare_here(box, yes=arguments.yes, ask=_ask, say=_say)
    with open_box(box) as connection:
        facts = gather(connection, all_programs())
        installed = care.prepare(connection, facts, all_programs(), yes=arguments.yes, ask=_ask)
    print(f"installed: {', '.join(installed)}" if installed else "nothing was installed")
    return 0


def _box_clean(arguments: Arguments) -> int:
    from mountlab import care, lock, store
    from mountlab.boxes import open_box
    from mountlab.facts import roots

    with open_box(store.load_box(arguments.name)) as connection:
        if not (arguments.force or arguments.dry_run):
            lock.check_free(connection, roots(connection)[0])
        found = care.clean(connection, dry_run=arguments.dry_run)
    for each in found:
        state = "found" if arguments.dry_run else "STILL THERE"
        if each.removed:
            state = "given back" if each.kind == "borrowed" else "removed"
        print(f"{state:12} {each.kind:8} {each.name} {each.note}".rstrip())
    if not found:
        print("nothing of ours is on the box")
    return 0 if arguments.dry_run or all(each.removed for each in found) else 1


def _lab(arguments: Arguments) -> int:
    from mountlab import lab

    port = lab.free_port(arguments.port)
    for line in lab.advice(port):
        _say(line)
    lab.run_lab(port, browser=not (arguments.no_browser or lab.is_remote(os.environ)))
    return 0


def _bench(arguments: Arguments) -> int:
    from mountlab.bench import bench

    print(bench(repeats=arguments.repeats, demo=arguments.demo, tests=arguments.tests))
    return 0


def _calibrate(arguments: Arguments) -> int:
    from mountlab import store
    from mountlab.calibrate import FULL, SHORT, TABLES, put

    tables = []
    for make in TABLES:
        tables.append(make(SHORT if arguments.short else FULL))
        print(f"{tables[-1].markdown()}\n", flush=True)
    if not arguments.short:
        methods = store.ROOT / "METHODS.md"
        store.replace_file(methods, put(methods.read_text(), tables, where=store.shown(methods)).encode())
        print(f"put into {store.shown(methods)}")
    return 0


def _docs(arguments: Arguments) -> int:
    import mountlab
    from mountlab import reference, store

    public = {name: getattr(mountlab, name) for name in mountlab.__all__}
    made = reference.pages(_parser(), public, store.columns())
    directory = store.ROOT / "docs" / "reference"
    kept = {path.name: path.read_text() for path in directory.glob("*.md")}
    changed = sorted(name for name in {*made, *kept} if made.get(name) != kept.get(name))
    if not arguments.check:
        store.write_files(directory, {name: made[name].encode() for name in changed if name in made})
    for name in changed:
        state = "differs" if arguments.check else "written" if name in made else "NO LONGER MADE: remove it"
        print(f"{state}: {store.shown(directory / name)}")
    return 1 if arguments.check and changed else 0


def _say(line: str) -> None:
    """A line of progress, beside the output that scripts may read."""
    print(line, file=sys.stderr, flush=True)


def _announce(question: str) -> bool:
    """The answer where nobody sits at the terminal: say what is done, and do it."""
    print(question.removesuffix("?"), flush=True)
    return True


def _ask(question: str) -> bool:
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


if __name__ == "__main__":
    sys.exit(main())

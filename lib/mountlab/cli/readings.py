"""Verbs that read what was measured: report, index, reparse, compare, fstab."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mountlab.cli.shared import RUN, Arguments, json_text, reporting, say, verb
from mountlab.core import disk
from mountlab.core.errors import StoreError
from mountlab.core.text import lines_of


def add(verbs: Any) -> None:
    """Declare them."""
    verb(verbs, "report", _report, "write the report of a run again").add_argument("run", type=Path, help=RUN)
    reparse = verb(verbs, "reparse", _reparse, "make the derived files of a run again from its raw output")
    reparse.add_argument("run", type=Path, help=RUN)
    reparse.add_argument(
        "--accept-altered",
        action="store_true",
        help="go on with a run whose journal or raw output was altered, as it is now; every report says so",
    )
    compare = verb(
        verbs, "compare", _compare, "what differs between two runs, or among many of one sweep, and how much"
    )
    compare.add_argument("run_a", type=Path, metavar="RUN_A", help="a directory below results/: before, or the one box")
    compare.add_argument("run_b", type=Path, metavar="RUN_B", help="after, or the other box")
    compare.add_argument(
        "more", type=Path, metavar="RUN", nargs="*", help="more runs of the sweep: did the answer change"
    )
    compare.add_argument(
        "--boxes", action="store_true", help="the runs are of one sweep, one a box: what holds over boxes"
    )
    compare.add_argument("--json", action="store_true", help="as data, without writing a page")
    index = verb(verbs, "index", _index, "the list of all runs and reports, made anew: results/index.html")
    index.add_argument("results", type=Path, nargs="?", help="the directory of the runs (default: results/)")
    fstab = verb(verbs, "fstab", _fstab, "the lines that would make a mount of a run permanent; changes nothing")
    fstab.add_argument("run", type=Path, help=RUN)
    fstab.add_argument("filesystem", help="its name in the sweep")
    fstab.add_argument("--at", default=None, help="the mount point (default: /mnt/FILESYSTEM)")


def _report(arguments: Arguments) -> int:
    from mountlab.report.execute import write_report
    from mountlab.results import tables, writer

    with reporting(arguments.run):
        tables.derive(arguments.run)  # trials may have been excluded since
        if going_on := writer.going_on(arguments.run):
            say(f"note: {going_on}")
        print(f"report: {disk.shown(write_report(arguments.run))}")
    return 0


def _reparse(arguments: Arguments) -> int:
    from mountlab.results import paths, tables
    from mountlab.results.accept import accept

    if arguments.accept_altered:
        found = accept(paths.found(arguments.run).resolve())
        print(lines_of(f"accepted: {each}" for each in found) or "nothing was altered")
    tables.derive(arguments.run)
    print(f"derived again: {disk.shown(arguments.run.resolve())}")
    return 0


def _index(arguments: Arguments) -> int:
    from mountlab.report.execute import write_index
    from mountlab.results import paths

    if arguments.results and not arguments.results.is_dir():
        raise StoreError("no such directory", where=disk.shown(arguments.results), next_step="name that of the runs")
    print(f"index: {disk.shown(write_index((arguments.results or paths.RESULTS).resolve()))}")
    return 0


def _compare(arguments: Arguments) -> int:
    from mountlab.report.execute import write_across, write_comparison
    from mountlab.results import paths, store

    asked = [arguments.run_a, arguments.run_b, *arguments.more]
    runs = [store.load_run(path) for path in asked]
    as_text, as_json = _over_boxes(runs) if arguments.boxes else _compared(runs)
    if arguments.json:
        print(json_text(as_json()))
        return 0
    print(f"\n{as_text()}\n", flush=True)
    page = (
        write_across(asked, results=paths.RESULTS)
        if arguments.boxes
        else write_comparison(*asked, results=paths.RESULTS)
    )
    print(f"report: {disk.shown(page)}")
    return 0


def _over_boxes(runs: Sequence[Any]) -> tuple[Callable[[], str], Callable[[], dict[str, Any]]]:
    """The runs as a sample of boxes: as text and as data."""
    from mountlab.analysis.compare.boxes import across_boxes
    from mountlab.report.views import boxes

    across = across_boxes(runs)
    return partial(boxes.across_text, across), partial(boxes.across_json, across)


def _compared(runs: Sequence[Any]) -> tuple[Callable[[], str], Callable[[], dict[str, Any]]]:
    """Two runs, or many of them, compared: as text and as data."""
    from mountlab.analysis.compare.many import compare_many
    from mountlab.analysis.compare.two import compare_runs
    from mountlab.report.views import compare as compare_view
    from mountlab.report.views import compare_many as compare_many_view

    if len(runs) == 2:
        two = compare_runs(*runs)
        return partial(compare_view.comparison_text, two), partial(compare_view.comparison_json, two)
    many = compare_many(runs)
    return partial(compare_many_view.many_text, many), partial(compare_many_view.many_json, many)


def _fstab(arguments: Arguments) -> int:
    from mountlab.core.options import unknown_key
    from mountlab.filesystems.fstab import permanent_lines
    from mountlab.results import info, store

    run = store.load_run(arguments.run)
    if run.sweep.imported:
        what = "how the file systems of imported logs were mounted is not known"
        raise StoreError(what, where=disk.shown(arguments.run))
    by_name = {fs.name: fs for fs in run.sweep.filesystems}
    if arguments.filesystem not in by_name:
        raise unknown_key(
            arguments.filesystem, by_name, where=disk.shown(arguments.run), what="file system of this run"
        )
    at = arguments.at or f"/mnt/{arguments.filesystem}"
    doubts = store.doubts_of_mount(run, arguments.filesystem)
    print(permanent_lines(by_name[arguments.filesystem], info.read_box(arguments.run), at=at, doubts=doubts))
    return 0

"""compare: compare two runs, many runs of one sweep, or one run on each of several boxes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mountlab.cli.shared import RUN, Arguments, json_text, refuse_runs_differ, run_of, runs_differ_option, say, verb
from mountlab.core import disk


def add(verbs: Any) -> None:
    text = "what differs between two runs, or among many of one sweep, and how much"
    compare = verb(verbs, "compare", _compare, text)
    compare.add_argument("run_a", type=Path, metavar="RUN_A", help=f"{RUN}: before, or the one box")
    compare.add_argument("run_b", type=Path, metavar="RUN_B", help="after, or the other box")
    compare.add_argument(
        "more", type=Path, metavar="RUN", nargs="*", help="more runs of the sweep: did the answer change"
    )
    compare.add_argument(
        "--boxes", action="store_true", help="the runs are of one sweep, one a box: what holds over boxes"
    )
    runs_differ_option(compare)
    compare.add_argument("--json", action="store_true", help="as data, without writing a page")


def _compare(arguments: Arguments) -> int:
    from mountlab.report.execute import write_across, write_comparison
    from mountlab.results import paths, store

    asked = [run_of(each) for each in (arguments.run_a, arguments.run_b, *arguments.more)]
    runs = [store.load_run(path) for path in asked]
    stated = arguments.runs_differ
    compared, as_text, as_json = _compared(runs, stated, over_boxes=arguments.boxes)
    if arguments.json:
        print(json_text(as_json(compared)))
        return 0
    print(f"\n{as_text(compared)}\n", flush=True)
    results = paths.RESULTS
    if arguments.boxes:
        page = write_across(asked, results=results)
    else:
        page = write_comparison(*asked, results=results, runs_differ=stated)
    print(f"report: {disk.shown(page)}")
    return 0


def _compared(
    runs: Sequence[Any], stated: str | None, *, over_boxes: bool
) -> tuple[Any, Callable[..., str], Callable[..., Any]]:
    """Return the comparison of two runs, of many, or of the boxes that they are from; what makes it text, and what
    data. `stated`: by how much runs differ; boxes are their own repetition."""
    from mountlab.analysis.compare import boxes as across
    from mountlab.analysis.compare import many, two
    from mountlab.report.views import boxes, compare, compare_many
    from mountlab.results.earlier import runs_differ

    if over_boxes:
        refuse_runs_differ(stated, "boxes are the unit, and tell themselves by how much they differ")
        return across.across_boxes(runs), boxes.across_text, boxes.across_json
    differ = runs_differ(runs, stated, say=say)
    if len(runs) == 2:
        return two.compare_runs(runs[0], runs[1], differ), compare.comparison_text, compare.comparison_json
    return many.compare_many(runs, differ), compare_many.many_text, compare_many.many_json

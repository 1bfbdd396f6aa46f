"""compare: compare two runs, many runs of one sweep, or one run on each of several boxes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mountlab.cli.arguments import RUN, argument
from mountlab.cli.shared import Arguments, json_text, refuse_runs_differ, run_of, runs_differ_option, say, verb
from mountlab.core import disk

if TYPE_CHECKING:
    from mountlab.analysis.compare.runs import Factor


def add(verbs: Any) -> None:
    text = "what differs between two runs, or among many of one sweep, and how much"
    compare = verb(verbs, "compare", _compare, text)
    argument(compare, RUN, "run_a", metavar="RUN_A", help=f"{RUN.text}: before, or the one box")
    argument(compare, RUN, "run_b", metavar="RUN_B", help="after, or the other box")
    argument(compare, RUN, "more", metavar="RUN", nargs="*", help="more runs of the sweep: did the answer change")
    compare.add_argument(
        "--boxes", action="store_true", help="the runs are of one sweep, one a box: what holds over boxes"
    )
    runs_differ_option(compare)
    compare.add_argument("--json", action="store_true", help="as data, without writing a page")


def _compare(arguments: Arguments) -> int:
    from mountlab.analysis.compare.runs import compare_runs
    from mountlab.report.execute import write_comparison
    from mountlab.results import earlier, paths, store
    from mountlab.sentences.comparison import comparison_json, comparison_text

    places = [run_of(path) for path in (arguments.run_a, arguments.run_b, *arguments.more)]
    runs = [store.load_run(path) for path in places]
    stated = arguments.runs_differ
    factor: Factor = "box" if arguments.boxes else "run"
    if arguments.boxes:
        refuse_runs_differ(stated, "boxes are the unit, and tell themselves by how much they differ")
    differ = None if arguments.boxes else earlier.runs_differ(runs, stated, say=say)
    comparison = compare_runs(runs, differ, factor=factor)
    if arguments.json:
        print(json_text(comparison_json(comparison)))
        return 0
    print(f"\n{comparison_text(comparison)}\n", flush=True)
    page = write_comparison(*places, factor=factor, results=paths.RESULTS, runs_differ=stated)
    print(f"report: {disk.path_text(page)}")
    return 0

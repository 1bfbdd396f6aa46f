"""compare: compare two runs, many runs of one sweep, or one run on each of several boxes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mountlab.cli.shared import Arguments, json_text, verb
from mountlab.core import disk


def add(verbs: Any) -> None:
    """Declare the command."""
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

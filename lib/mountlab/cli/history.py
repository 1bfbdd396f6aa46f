"""history: show figures over dates and kernels, and where a level changed."""

from __future__ import annotations

from argparse import SUPPRESS
from typing import Any

from mountlab.cli.arguments import BOX, METRIC, SWEEP, argument
from mountlab.cli.shared import Arguments, json_text, results_option, say, show_csv, verb
from mountlab.core import disk


def add(verbs: Any) -> None:
    history = verb(verbs, "history", _history, "how figures went over dates and kernels, and where a level changed")
    # Without a default it leaves --sweep as it is.
    argument(history, SWEEP, "sweep", type=str, nargs="?", default=SUPPRESS, help="the name of one sweep, as --sweep")
    argument(history, SWEEP, "--sweep", type=str, help="the name of one sweep")
    argument(history, BOX, "--box", help="the name of one box")
    argument(history, METRIC, "--metric", help="one metric (default: those of the answers)")
    for name, text in (
        ("cell", "one cell, such as 'ext4/fio bs=4KiB'"),
        ("kernel", "runs on kernels whose release begins so"),
        ("since", "runs from this date on, such as 2026-01-31"),
        ("until", "runs before this date"),
    ):
        history.add_argument(f"--{name}", help=text)
    history.add_argument("--by", choices=("kernel", "os", "year", "month"), help="runs taken together")
    results_option(history)
    how = history.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="as data")
    how.add_argument("--csv", action="store_true", help="one row a run and figure, as CSV")
    how.add_argument("--page", action="store_true", help="also as a page below results/, by the notebook of histories")


def _history(arguments: Arguments) -> int:
    from mountlab.results.histories import Wanted, load_years
    from mountlab.sentences.history import history_json, history_rows, history_text

    wanted = Wanted.of({name: getattr(arguments, name) for name in Wanted.__dataclass_fields__})
    years = load_years(arguments.results, wanted, say=say)
    if arguments.json:
        print(json_text(history_json(years.histories)))
        return 0
    if arguments.csv:
        show_csv(history_rows(years.histories))
        return 0
    for line in years.notes():
        say(f"note: {line}")
    print(history_text(years.histories, by=arguments.by), flush=True)
    if arguments.page:
        from mountlab.report.chronicle import write_history

        print(f"\nreport: {disk.path_text(write_history(wanted, results=years.results))}")
    return 0

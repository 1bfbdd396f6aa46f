"""exclude: leave trials of a run out of its figures."""

from __future__ import annotations

from typing import Any

from mountlab.cli.arguments import RUN, argument
from mountlab.cli.shared import Arguments, run_of, verb
from mountlab.core import disk
from mountlab.core.text import lines_of


def add(verbs: Any) -> None:
    exclude = verb(verbs, "exclude", _exclude, "leave trials of a run out of its figures, or let them count again")
    argument(exclude, RUN, "run")
    exclude.add_argument("trials", nargs="+", metavar="TRIAL", help="its id, such as t0012")
    exclude.add_argument("--reason", help="what was wrong with them: the report shows it")
    exclude.add_argument("--undo", action="store_true", help="let them count again")


def _exclude(arguments: Arguments) -> int:
    from mountlab.results.exclusion import exclude
    from mountlab.wording import exclusion_words

    path = run_of(arguments.run)
    run = exclude(path, *arguments.trials, reason=arguments.reason or "", undo=arguments.undo)
    changes = [f"{change.cell}: {exclusion_words.figure_text(change)}" for change in run.exclusions.figures]
    changes += [exclusion_words.verdict_text(change) for change in run.exclusions.ratios]
    names, what = ", ".join(arguments.trials), "counted again" if arguments.undo else "excluded"
    print(lines_of([f"{what}: {names}", *changes, f"write the report: mountlab report {disk.path_text(path)}"]))
    return 0

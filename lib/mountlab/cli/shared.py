"""What the commands share: how one is declared, how a run is reported at its end, and how people are spoken to."""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mountlab.cli.arguments import BOX, DIRECTORY, SWEEP, argument
from mountlab.core import disk
from mountlab.core.errors import Interrupted, MountlabError, ParameterError, did_you_mean, in_one_line
from mountlab.core.text import plain_cell, visible

Arguments = argparse.Namespace
PERCENT = "10%%, 10 and 0.1 are the same; without %% 1 is 1%%, and 0.5 is 50%%"


class Parser(argparse.ArgumentParser):
    """Python's parser of arguments, which suggests the nearest word, and takes '-5%' for a value."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._negative_number_matcher = re.compile(r"-\.?\d")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        choices = action.choices
        if choices is None or value in choices:
            return
        words = [str(choice) for choice in choices]
        near, allowed = did_you_mean(str(value), words), f"allowed are {', '.join(words)}"
        if isinstance(action, argparse._SubParsersAction):
            text = f"unknown verb {value!r}: {near or allowed} ({self.prog} --help lists all)"
            raise argparse.ArgumentError(None, text)
        raise argparse.ArgumentError(action, f"unknown value {value!r}: {f'{near} ' if near else ''}{allowed}")


def verb(verbs: Any, name: str, call: Callable[[Arguments], int], text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text)
    parser.set_defaults(verb=call)
    return parser


def verbs_below(verbs: Any, name: str, text: str, commands: Iterable[Any]) -> None:
    """Declare a verb that has verbs of its own; alone it shows them."""
    parser = verbs.add_parser(name, help=text, description=text)
    parser.set_defaults(verb=show_help(parser))
    below = parser.add_subparsers(metavar="VERB")
    for command in commands:
        command.add(below)


def show_help(parser: argparse.ArgumentParser) -> Callable[[Arguments], int]:
    """Return a verb that prints the help of a parser."""

    def show(_: Arguments) -> int:
        print(parser.format_help(), end="")
        return 0

    return show


def sweep_verb(verbs: Any, name: str, call: Callable[[Arguments], int], text: str) -> argparse.ArgumentParser:
    parser = verb(verbs, name, call, text)
    argument(parser, SWEEP, "sweep")
    argument(parser, BOX, "--box", help=f"{BOX.text}, in the place of the sweep's own")
    override(parser)
    return parser


def box_verb(verbs: Any, name: str, call: Callable[[Arguments], int], text: str) -> argparse.ArgumentParser:
    parser = verb(verbs, name, call, text)
    argument(parser, BOX, "name")
    return parser


def override(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-p",
        action="append", default=[], metavar="KEY=VALUE", dest="overrides",
        help="change one key of the sweep, such as repeats=3 or preset=small",
    )  # fmt: skip


def wrong_file(error: MountlabError) -> str:
    """Return what stands in the row of a list for a file with an error."""
    return f"wrong file: {in_one_line(str(error))}"


def run_of(given: Path) -> Path:
    """Return the directory of the run that an argument names, and say which it is where the argument is no path."""
    from mountlab.results.find import run_path

    path = run_path(given)
    if path.name != given.name:
        say(f"{given}: {disk.path_text(path)}")
    return path


def results_option(parser: argparse.ArgumentParser) -> None:
    argument(parser, DIRECTORY, "--results", help="the directory of the runs (default: results/)")


def runs_differ_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--runs-differ",
        metavar="PERCENT",
        help="by how much two runs of the same thing differ on this box, as a standard deviation (default: what 5 "
        f"earlier runs or more tell, else 5%%). {PERCENT}",
    )


def refuse_runs_differ(stated: str | None, why: str) -> None:
    """Raise ParameterError where --runs-differ is given and has no part in the answer."""
    if stated is not None:
        next_step = f"leave it out: {why}"
        raise ParameterError("it has no effect here", where="--runs-differ", got=stated, next_step=next_step)


def overrides(arguments: Arguments) -> dict[str, object]:
    from mountlab.sweep.sweep_file import parse_override

    return dict(parse_override(text) for text in arguments.overrides)


def finish(path: Path) -> int:
    """Report a run: the answer in the terminal, the page, and the exit code that its trials deserve."""
    from mountlab.checks import named
    from mountlab.report.execute import write_report
    from mountlab.report.kernels import prepare
    from mountlab.report.terminal import run_answer
    from mountlab.results import store

    with reporting(path):
        prepare()
        run = store.load_run(path)
        print(f"\n{run_answer(run)}\n", flush=True)
        page = write_report(path)
    print(f"report: {page.relative_to(Path.cwd()) if page.is_relative_to(Path.cwd()) else page}")
    errors = [caveat for caveat in run.caveats if run.sweep.design.strict and caveat.severity == "error"]
    if errors:
        print(f"error: strict: these figures cannot be trusted: {named(errors)}", file=sys.stderr)
    return 0 if run.trials["status"].isin(("ok", "skipped", "excluded")).all() and not errors else 1


def finish_boxes(ended: tuple[Path, Any]) -> int:
    """Report a sweep that was run on several boxes: what became of each, the answer over boxes, the pages."""
    from mountlab.batch import boxes
    from mountlab.sentences.comparison import comparison_text

    try:
        print(f"\n{comparison_text(boxes.load_across(ended[0].parent))}")
    except MountlabError as error:
        say(f"nothing is said over boxes: {error}")
    return finish_batch(ended)


def finish_batch(ended: tuple[Path, Any]) -> int:
    """Report a batch: what became of each item, and the pages."""
    from mountlab.batch.view import exit_code, summary_text

    page, view = ended
    print(f"\n{summary_text(view)}\n")
    for across in view.across.values():
        if across.startswith("../"):
            print(f"report over boxes: {disk.path_text((page.parent / across).resolve())}")
    print(f"report: {disk.path_text(page)}")
    return exit_code(view)


@contextmanager
def reporting(path: Path) -> Iterator[None]:
    """Say how to go on where the report of a run is stopped."""
    from mountlab.runner.live_view import report_line

    try:
        yield
    except KeyboardInterrupt:
        run = disk.path_text(path)
        raise Interrupted(
            f"write its report with: mountlab report {run}",
            in_python=report_line(run),
            what="stopped; no report is written, and all measurements are kept",
        ) from None


def say(line: str) -> None:
    """Print a line of progress, beside the output that scripts may read."""
    print(line, file=sys.stderr, flush=True)


def announce(question: str) -> bool:
    """Return the answer without a person at the terminal: say what is done, and do it."""
    print(question.removesuffix("?"), flush=True)
    return True


def ask(question: str) -> bool:
    # On a terminal `input` writes its prompt past sys.stdout.
    return input(visible(f"{question} [y/N] ")).strip().lower() in ("y", "yes")


def json_text(data: object, default: Callable[[object], object] | None = None) -> str:
    """Return JSON in plain ASCII, which keeps every character and steers no terminal. `default`: of json.dumps."""
    return json.dumps(data, indent=1, default=default).replace("\x7f", "\\u007f")


def show_csv(rows: Iterable[Sequence[object]]) -> None:
    """Print rows as CSV whose texts are visible, and no formulas."""
    csv.writer(sys.stdout, lineterminator="\n").writerows(list(map(plain_cell, row)) for row in rows)

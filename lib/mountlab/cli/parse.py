"""parse: show the figures in a log from anywhere."""

from __future__ import annotations

import sys
from typing import Any

from mountlab.cli.arguments import FILE, TOOL, argument
from mountlab.cli.shared import Arguments, json_text, verb


def add(verbs: Any) -> None:
    parse = verb(verbs, "parse", _parse, "the figures in a log from anywhere: metric, label, value, line")
    argument(parse, TOOL, "tool")
    argument(parse, FILE, "files", nargs="+", metavar="FILE", help="logs; each may hold several outputs")
    parse.add_argument("--json", action="store_true", help="as data")


def _parse(arguments: Arguments) -> int:
    from mountlab.logs.view import as_json, as_table
    from mountlab.results.imported import read_log_files

    outputs = read_log_files(arguments.tool, arguments.files)
    print(json_text(as_json(outputs)) if arguments.json else as_table(outputs))
    problems = [output.problem for of_file in outputs.values() for output in of_file if output.problem]
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return problems[0].exit_code if problems else 0

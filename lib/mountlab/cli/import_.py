"""import: make a run of logs from anywhere, then report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mountlab.cli.arguments import FILE, TOOL, argument
from mountlab.cli.shared import Arguments, finish, verb


def add(verbs: Any) -> None:
    bring = verb(verbs, "import", _import, "make a run of logs from anywhere, then report")
    argument(
        bring,
        FILE,
        "logs",
        type=str,
        nargs="+",
        metavar="FILE.yml | PATTERN",
        help="a YAML file that says which log is whose, or names of logs such as 'logs/{filesystem}/{bs}-{repeat}.txt'",
    )
    argument(bring, TOOL, "--tool", help="with PATTERN: whose logs they are")
    for key, text in (
        ("filesystem", "the file system of all logs, where their names do not say it"),
        ("baseline", "the file system that the others are compared with"),
        ("question", "what the report asks"),
        ("name", "of the run"),
    ):
        bring.add_argument(f"--{key}", help=f"with PATTERN: {text}")


def _import(arguments: Arguments) -> int:
    from mountlab.results.imported import import_file, import_patterns

    if len(arguments.logs) == 1 and Path(arguments.logs[0]).suffix in (".yml", ".yaml"):
        return finish(import_file(Path(arguments.logs[0])))
    given = {key: getattr(arguments, key) for key in ("tool", "baseline", "question", "name")}
    raw = {"question": "What do these logs say?", **{key: value for key, value in given.items() if value is not None}}
    if arguments.filesystem:
        return finish(import_patterns({**raw, "filesystems": {arguments.filesystem: {"files": arguments.logs}}}))
    return finish(import_patterns({**raw, "files": arguments.logs}))

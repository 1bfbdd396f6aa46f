"""Verbs about Mountlab itself: lab, bench, calibrate, docs, audit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from mountlab.verbs.shared import Arguments, say, verb


def add(verbs: Any) -> None:
    """Declare them."""
    lab = verb(verbs, "lab", _lab, "JupyterLab on the notebooks, with the kernel of this environment")
    lab.add_argument("--port", type=int, help="default: the first free one from 8888 on")
    lab.add_argument("--no-browser", action="store_true", help="start no browser here")
    calibrate = verb(verbs, "calibrate", _calibrate, "simulate what the statistics hold: the tables of METHODS.md")
    calibrate.add_argument("--short", action="store_true", help="few cases, only shown: METHODS.md is left as it is")
    bench = verb(verbs, "bench", _bench, "what Mountlab itself costs, beside others that do the same")
    bench.add_argument("--repeats", type=int, default=30, help="trials of each kind")
    bench.add_argument("--demo", action="store_true", help="also time `make demo` from a fresh clone")
    bench.add_argument("--tests", action="store_true", help="also time `make check` and `make test` there")
    bench.add_argument("--only", action="append", default=[], metavar="SUBJECT", help="measure only this (repeatable)")
    bench.add_argument("--box", default="local", help="the box whose trials are measured")
    docs = verb(verbs, "docs", _docs, "make docs/reference again from the code")
    docs.add_argument("--check", action="store_true", help="only say which pages differ; exit code 1 where any does")
    audit = verb(verbs, "audit", _audit, "known vulnerabilities of the libraries; secrets and permissions of the tree")
    audit.add_argument("--database", type=Path, help="an export of OSV for PyPI (all.zip), in the place of its service")
    audit.add_argument("--offline", action="store_true", help="ask nobody")


def _lab(arguments: Arguments) -> int:
    from mountlab import lab

    port = lab.free_port(arguments.port)
    for line in lab.advice(port):
        say(line)
    lab.run_lab(port, browser=not (arguments.no_browser or lab.is_remote(os.environ)))
    return 0


def _bench(arguments: Arguments) -> int:
    from mountlab.bench import bench

    bench(
        repeats=arguments.repeats, demo=arguments.demo, tests=arguments.tests, only=arguments.only, box=arguments.box,
        say=lambda line: print(line, flush=True),
    )  # fmt: skip
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
    from mountlab import reference, store, verbs

    public = {name: getattr(mountlab, name) for name in mountlab.__all__}
    made = reference.pages(verbs.parser(), public, store.columns())
    directory = store.ROOT / "docs" / "reference"
    kept = {path.name: path.read_text() for path in directory.glob("*.md")}
    changed = sorted(name for name in {*made, *kept} if made.get(name) != kept.get(name))
    if not arguments.check:
        store.write_files(directory, {name: made[name].encode() for name in changed if name in made})
    for name in changed:
        state = "differs" if arguments.check else "written" if name in made else "NO LONGER MADE: remove it"
        print(f"{state}: {store.shown(directory / name)}")
    return 1 if arguments.check and changed else 0


def _audit(arguments: Arguments) -> int:
    from mountlab import store
    from mountlab.audit import audit

    outcomes = audit(store.ROOT, database=arguments.database, offline=arguments.offline)
    for outcome in outcomes:
        print(outcome)
    return 1 if any(outcome.findings for outcome in outcomes) else 0

"""python -m mountlab_dev: runs one verb for those who develop Mountlab. Exit codes as those of `mountlab`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mountlab.__main__ import main as run_verb
from mountlab.cli.shared import Arguments, announce, ask, verb
from mountlab.core import disk
from mountlab.core.places import SHIPPED


def parser(_: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Return all verbs and their arguments; the function of the chosen one is `verb` of what it parses."""
    made = argparse.ArgumentParser(prog="mountlab_dev", description="What those need who develop Mountlab.")
    verbs = made.add_subparsers(required=True, metavar="VERB")
    calibrate = verb(verbs, "calibrate", _calibrate, "simulate how often the statistics are right")
    calibrate.add_argument("--short", action="store_true", help="few cases, only shown: docs/data is left as it is")
    bench = verb(verbs, "bench", _bench, "what Mountlab itself costs, beside others that do the same")
    bench.add_argument("--repeats", type=int, default=30, help="trials of each kind")
    bench.add_argument("--demo", action="store_true", help="also time `make demo` from a fresh clone")
    bench.add_argument("--tests", action="store_true", help="also time `make check` and `make test` there")
    bench.add_argument("--only", action="append", default=[], metavar="SUBJECT", help="measure only this (repeatable)")
    bench.add_argument("--box", default="local", help="the box whose trials are measured")
    gate = verb(verbs, "bench-gate", _bench_gate, "whether this commit is slower than the last recorded one")
    gate.add_argument("--against", default="", metavar="COMMIT", help="another than the last of docs/what-it-costs.csv")
    gate.add_argument("--only", action="append", default=[], metavar="SUBJECT", help="measure only this (repeatable)")
    docs = verb(verbs, "docs", _docs, "the documentation as a site: docs/_build/html/index.html")
    docs.add_argument("--unexecuted", action="store_true", help="show notebooks without outputs: a minute less")
    audit = verb(verbs, "audit", _audit, "known vulnerabilities of the libraries; secrets and permissions of the tree")
    audit.add_argument("--database", type=Path, help="an export of OSV for PyPI (all.zip), in the place of its service")
    audit.add_argument("--offline", action="store_true", help="ask no service")
    language = verb(verbs, "language", _language, "words and sentences to rewrite in files and folders")
    language.add_argument("paths", type=Path, nargs="+", metavar="PATH", help="a file, or a folder with all below it")
    tag = verb(verbs, "tag", _tag, "whether the tag of a release names the version that the files name")
    tag.add_argument("tag", help="v0.1.0 for version 0.1.0")
    needs = verb(verbs, "needs", _needs, "install the programs that the tests need, after asking")
    needs.add_argument("--all", action="store_true", help="also PostgreSQL's server; exit code 1 where any is missing")
    mutate = verb(verbs, "mutate", _mutate, "break the product in a few places, and see which tests notice")
    mutate.add_argument("--number", type=int, default=30, help="how many places, one of each room first")
    mutate.add_argument("--seed", type=int, default=19, help="other places with another")
    mutate.add_argument("--tree", type=Path, default=SHIPPED, help="another tree, whose last commit is judged")
    mutate.add_argument("--workers", type=int, default=2, help="tests at a time")
    mutate.add_argument("--limit", type=int, default=600, metavar="SECONDS", help="what takes longer is caught")
    mutate.add_argument(
        "--live", action="store_true", help="ask tests on the box and in the browser, too, for the rest"
    )
    mutate.add_argument(
        "--record",
        type=Path,
        help="also write what is found here, a line of JSON each; one that it has is not judged again",
    )
    mutate.add_argument("--again", type=Path, metavar="RECORD", help="only what was caught according to this record")
    return made


def _bench(arguments: Arguments) -> int:
    from mountlab_dev.bench import bench

    bench(
        repeats=arguments.repeats,
        demo=arguments.demo,
        tests=arguments.tests,
        only=arguments.only,
        box=arguments.box,
        say=lambda line: print(line, flush=True),
    )
    return 0


def _bench_gate(arguments: Arguments) -> int:
    from mountlab_dev.bench.gate import gate

    return gate(SHIPPED, against=arguments.against, only=arguments.only, say=lambda line: print(line, flush=True))


def _calibrate(arguments: Arguments) -> int:
    from mountlab_dev import evidence
    from mountlab_dev.calibration import TABLES
    from mountlab_dev.calibration.document import DATA, as_data
    from mountlab_dev.calibration.tables import FULL, SHORT

    tables = []
    for make in TABLES:
        tables.append(make(SHORT if arguments.short else FULL))
        print(f"{tables[-1].markdown()}\n", flush=True)
    if not arguments.short:
        path = evidence.DATA / f"{DATA}.json"
        disk.replace_file(path, as_data(tables).encode())
        print(f"written: {disk.path_text(path)}")
    return 0


def _docs(arguments: Arguments) -> int:
    from mountlab_dev.site.build import OUTPUT, build
    from mountlab_dev.site.notebooks import PARAMETERS

    code = build(execute=() if arguments.unexecuted else PARAMETERS)
    if not code:
        print(f"written: {disk.path_text(OUTPUT / 'html' / 'index.html')}")
    return code


def _audit(arguments: Arguments) -> int:
    from mountlab_dev.audit import audit

    outcomes = audit(SHIPPED, database=arguments.database, offline=arguments.offline)
    for outcome in outcomes:
        print(outcome)
    return 1 if any(outcome.findings for outcome in outcomes) else 0


def _language(arguments: Arguments) -> int:
    from mountlab_dev.language import READERS, findings

    below = (file for path in arguments.paths for file in ([path] if path.is_file() else sorted(path.rglob("*"))))
    found = [
        f"{file}:{each}"
        for file in below
        if file.suffix in READERS and file.is_file()
        for each in findings(file.name, file.read_text())
    ]
    print("\n".join([*found, f"{len(found)} findings"]))
    return 1 if found else 0


def _tag(arguments: Arguments) -> int:
    from mountlab_dev.release import check_tag

    check_tag(arguments.tag, SHIPPED)
    return 0


def _needs(arguments: Arguments) -> int:
    """Without --all nothing is an error: tests without their programs are skipped."""
    from mountlab.runner.demo import may_ask

    from mountlab_dev.needs import install

    still_missing = install(by_hand=arguments.all, ask=ask if may_ask() else announce, at_terminal=may_ask())
    if still_missing:
        print(still_missing)
    return 1 if still_missing and arguments.all else 0


def _mutate(arguments: Arguments) -> int:
    import tempfile

    from mountlab_dev.mutate import STAGES, Copy, judge_all, note, once, places, read, sample

    before, judged = once(), read(arguments.record) if arguments.record and arguments.record.exists() else {}
    with tempfile.TemporaryDirectory(prefix="mutate-") as place:
        copy = Copy(Path(place), arguments.workers, arguments.limit)
        copy.prepare(arguments.tree)
        found = places(copy.tree)
        if arguments.again:
            drawn = [each for each in read(arguments.again).values() if each.test]
        else:
            drawn = sample(found, arguments.number, arguments.seed)
        print("| place | mutation | change | stage | caught by |\n|---|---|---|---|---|", flush=True)
        for each in judge_all(drawn, copy, [each for each in STAGES if arguments.live or each != "live"], judged):
            if each.test:
                print(each, flush=True)
            if arguments.record:
                note(each, arguments.record)
    missed = [judged[each] for each in drawn if not judged[each].test]
    for each in missed:
        print(each)
    for test in sorted(copy.fails_anyway):
        print(f"fails without a mutation, too, and was not asked: {test}")
    for device in copy.left:
        print(f"was left, and is detached: {device}")
    for name, now in once().items():
        if now != before[name]:
            print(f"differs from before, by a mutation or by another program: {name}: {before[name]!r}, now {now!r}")
    print(f"{len(drawn)} mutations of {sum(map(len, found.values()))} possible ones, {len(missed)} not caught")
    return 1 if missed else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code."""
    return run_verb(arguments, made_by=parser)


if __name__ == "__main__":
    sys.exit(main())

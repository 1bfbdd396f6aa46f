"""What runs, bundles, logs and sweep files of others hold, as the commands print it: nothing in it steers a terminal,
turns text round, hides, or passes for a line of ours; no CSV file keeps it either."""

from __future__ import annotations

import ast
import copy
import csv
import io
import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mountlab import __main__
from mountlab.__main__ import main
from mountlab.core.errors import InputError, MountlabWarning
from mountlab.core.places import SHIPPED
from mountlab.core.text import Guarded, drawn_on, one_line, plain_cell, visible
from mountlab.results import store, tables
from mountlab.results.info import read_info
from mountlab.runner import workflow
from mountlab.runner.progress import Bar
from mountlab.runner.trial_executor import as_trial
from rows import every_row
from runner.test_progress import NOW, make

FORGED = "error: everything is lost"
STEERING = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\u200b\x08"
EVIL = f"{STEERING}\n{FORGED}"
TOUR = SHIPPED / "tests" / "data" / "earlier_run"
FREE = ("facts", "versions", "published", "mountlab_version", "created_at", "finished_at", "git_commit")
"""Keys of run.json that hold any text; the others are held against rules, and are tested where these are."""
FREE_BELOW = (("parameters", "question"), ("parameters", "expectation"), ("box", "host"), ("box", "become"))
PACKAGE = Path(__main__.__file__).parent


def evil(value: Any) -> Any:
    """A value with that behind each text in it."""
    if isinstance(value, dict):
        return {key: evil(each) for key, each in value.items()}
    if isinstance(value, list):
        return [evil(each) for each in value]
    return value + EVIL if isinstance(value, str) else value


def hostile_run(place: Path, kernel: str) -> Path:
    """The recorded run with such a text wherever a run may have one."""
    shutil.copytree(TOUR, place)
    info = json.loads((place / "run.json").read_text())
    info |= {"run_id": place.name, "facts": {**info["facts"], "kernel": kernel}}
    info |= {key: evil(info[key]) for key in FREE}
    for first, second in FREE_BELOW:
        info[first] = {**info[first], second: evil(info[first][second])}
    info["created_at"] = info["created_at"].removesuffix(EVIL)  # else no history has it
    (place / "run.json").write_text(json.dumps(info))
    lines = [json.loads(line) for line in (place / "trials.jsonl").read_text().splitlines()]
    last = {**lines[-1], "status": "failed", "reason": f"dd: {EVIL}"}
    (place / "trials.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [*lines[:-1], last]))
    for file in (place / "raw").glob("m*/mount.txt"):
        file.write_bytes(file.read_bytes() + EVIL.encode())
    return place


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("hostile") / "results"
    for name, kernel in (("a", "6.1"), ("b", "6.2"), ("c", "6.3")):
        hostile_run(made / name, kernel)
    return made


def is_plain(text: str, *, table: bool) -> None:
    """Fail where a character steers, turns or hides, and where a line is theirs (a field of CSV may have lines)."""
    assert visible(text) == text
    assert "\r" not in text
    assert table or not [line for line in text.splitlines() if line.strip().startswith(FORGED)]


COMMANDS: dict[str, list[str]] = {
    "compare two": ["compare", "{a}", "{b}"],
    "compare many": ["compare", "{a}", "{b}", "{c}"],
    "compare boxes": ["compare", "{a}", "{b}", "--boxes"],
    "compare as data": ["compare", "{a}", "{b}", "--json"],
    "gate": ["gate", "{b}", "--against", "{a}"],
    "gate as data": ["gate", "{b}", "--against", "{a}", "--json"],
    "fstab": ["fstab", "{a}", "ext4"],
    "fstab of what failed": ["fstab", "{a}", f"x{STEERING}"],
    "catalog": ["catalog", "{results}"],
    "catalog as data": ["catalog", "{results}", "--json"],
    "history": ["history", "--results", "{results}"],
    "history by kernel": ["history", "--results", "{results}", "--by", "kernel"],
    "history as CSV": ["history", "--results", "{results}", "--csv"],
    "history of another": ["history", "--results", "{results}", "--box", f"x{STEERING}"],
    "query": ["query", "SELECT question, facts, kernel FROM runs", "--results", "{results}"],
    "query as CSV": ["query", "SELECT question, facts, kernel FROM runs", "--csv", "--results", "{results}"],
    "query as data": ["query", "SELECT question, facts, kernel FROM runs", "--json", "--results", "{results}"],
    "a wrong query": ["query", f"SELECT {STEERING}", "--results", "{results}"],
    "reparse": ["reparse", "{a}"],
    "index": ["index", "{results}"],
    "export": ["export", "{a}", "-o", "{results}/out"],
    "parse": ["parse", "dd", "{results}/log"],
    "import": ["import", "{results}/x.yml"],
    "plan of a sweep": ["plan", "{results}/x.yml"],
    "a run that is not there": ["report", f"{{results}}/{STEERING}"],
    "an option that is not there": ["compare", f"--{STEERING}"],
}


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the pages, which take seconds and are tested where they are made."""
    monkeypatch.setattr("mountlab.report.execute.write_comparison", lambda *_, **__: Path("report.html"))
    monkeypatch.setattr("mountlab.report.chronicle.write_changes", lambda _: [])


@pytest.mark.slow
@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_no_command_prints_what_steers_a_terminal_or_passes_for_a_line_of_ours(
    command: list[str], results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (results / "log").write_text(f"{EVIL}\n1048576 bytes (1.0 MB, 1.0 MiB) copied, 0.1 s, 10.5 MB/s {STEERING}\n")
    (results / "x.yml").write_text(f'"q\\e": {{{STEERING}: [\n')
    places = {"results": str(results), **{name: str(results / name) for name in "abc"}}
    with suppress(SystemExit):  # of argparse
        main([word.format(**places) if "{" in word else word for word in command])
    said = capsys.readouterr()
    assert said.out or said.err
    is_plain(said.out, table="--csv" in command)
    is_plain(said.err, table=False)
    if "--json" in command:
        json.loads(said.out)


@pytest.mark.slow
@pytest.mark.usefixtures("quiet")
def test_the_texts_of_this_test_do_reach_the_terminal(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Else the test above would see nothing."""
    assert main(["compare", str(results / "a"), str(results / "b")]) == 0
    assert "[U+001B]" in capsys.readouterr().out


@pytest.mark.slow
def test_a_plan_with_an_earlier_run_is_plain_too(
    results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = read_info(TOUR).facts  # other ones than those of the pilot, which it names
    session = SimpleNamespace(plan=None, facts=here)

    @contextmanager
    def planned(*_: object, **__: object) -> Iterator[Any]:
        yield session

    monkeypatch.setattr(workflow, "planned", planned)
    monkeypatch.setattr("mountlab.sweep.plan_text.plan_text", lambda *_: "a plan")
    sweep = results / "s.yml"
    sweep.write_text((TOUR / "sweep.yml").read_text())
    assert main(["plan", str(sweep), "--pilot", str(results / "a")]) == 0
    said = capsys.readouterr().out
    is_plain(said, table=False)
    assert "another hostname: " in said
    assert f"{visible(STEERING)}[U+000A]{FORGED}" in said


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_csv_file_keeps_an_escape(results: Path, tmp_path: Path) -> None:
    run = hostile_run(tmp_path / "run", "6.1")
    tables.derive(run)
    assert main(["export", str(run), "-o", str(tmp_path / "out")]) == 0
    files = [*run.glob("*.csv"), *(tmp_path / "out").glob("*.csv")]
    assert len(files) > 5
    for file in files:
        assert visible(file.read_bytes().decode()).encode() == file.read_bytes(), file
    assert "[U+001B]" in (tmp_path / "out" / "trials.csv").read_text()


@pytest.mark.slow
def test_a_workbook_has_text_that_can_be_seen_and_parquet_has_it_as_it_was(tmp_path: Path) -> None:
    run = hostile_run(tmp_path / "run", "6.1")
    for form in ("xlsx", "parquet"):
        assert main(["export", str(run), "--format", form, "-o", str(tmp_path)]) == 0
    sheet = openpyxl.load_workbook(tmp_path / "tables.xlsx")["trials"]
    (reason,) = {cell.value for row in sheet.iter_rows() for cell in row if "dd: " in str(cell.value)}
    assert reason == visible(f"dd: {EVIL}")
    kept = store.load_run(run).trials["reason"].iloc[-1]
    import pandas as pd

    assert pd.read_parquet(tmp_path / "trials.parquet")["reason"].iloc[-1] == kept == f"dd: {EVIL}"


@pytest.mark.slow
def test_what_a_query_prints_as_csv_is_no_formula(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ["=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\uff1d1"]
    columns = [f"'{text}' AS \"{text}\"" for text in texts]
    sql = f"SELECT {', '.join(columns)}, -1 AS n"
    assert main(["query", sql, "--csv", "--results", str(results)]) == 0
    head, row = csv.reader(io.StringIO(capsys.readouterr().out))
    assert head == [*(f"'{text}" for text in texts), "n"]
    assert row == [*(f"'{text}" for text in texts), "-1"]


# --- the function, and the stream -------------------------------------------------------------------------------------


@pytest.mark.slow
@given(st.text(max_size=40))
def test_what_is_visible_stays_as_it_is_and_has_no_control_character(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown
    assert not [each for each in shown if (each < " " and each not in "\n\t\r") or "\x7f" <= each < "\xa0"]
    assert "\r" not in shown.replace("\r\n", "")
    assert len(one_line(text).splitlines()) <= 1
    assert shown.encode().decode() == shown


def test_joiners_other_alphabets_tabs_and_lines_are_text() -> None:
    text = "Wie schnell? 速度 سرعة 👩\u200d💻 می\u200cخواهم\tµ −\r\n"
    assert visible(text) == text


@every_row(("value", "shown"), [("\x1b=1", "[U+001B]=1"), ("=1\x1b", "'=1[U+001B]"), (-1, -1), (None, None)])
def test_a_cell_is_visible_and_no_formula(value: object, shown: object) -> None:
    assert plain_cell(value) == shown


def test_a_guarded_stream_is_otherwise_the_stream_below() -> None:
    below = io.StringIO()
    stream = Guarded(below)
    assert stream.write(STEERING) == len(STEERING)
    stream.writelines(["a", "\x1b"])
    assert below.getvalue() == f"{visible(STEERING)}a[U+001B]"
    assert (stream.isatty(), stream.closed) == (False, False)
    assert drawn_on(stream) is drawn_on(below) is below


def test_a_warning_and_an_error_of_ours_are_visible(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import warnings

    def verb(_: object) -> int:
        warnings.warn(f"odd {STEERING}", MountlabWarning, stacklevel=1)
        sys.stdout.write(f"out {STEERING}")
        raise InputError(f"wrong {STEERING}", where=STEERING, evidence=f"x\n{STEERING}")

    monkeypatch.setattr("mountlab.cli.index._index", verb)
    before = sys.stdout, sys.stderr
    assert main(["index"]) == 2
    assert (sys.stdout, sys.stderr) == before
    said = capsys.readouterr()
    assert "[U+001B]" in said.out
    assert said.err.count("[U+001B]") > 4
    assert visible(said.out + said.err) == said.out + said.err


@pytest.mark.slow
def test_a_traceback_of_a_fault_of_our_own_is_visible() -> None:
    code = "import sys; from mountlab import __main__, cli\n"
    code += f"def fail(_): raise RuntimeError({STEERING!r})\n"
    code += "from mountlab.cli import index; index._index = fail; sys.exit(__main__.main(['index']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "RuntimeError: [U+001B]" in done.stderr
    assert visible(done.stderr) == done.stderr


def test_a_question_on_a_real_terminal_is_visible(tmp_path: Path) -> None:
    """There `input` writes its prompt by itself, past sys.stdout."""
    code = f"from mountlab.cli.shared import ask; ask('sure? ' + {STEERING!r})"
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", code], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(ours, b"n\n")
    said = b""
    try:
        while piece := os.read(ours, 1000):
            said += piece
    except OSError:
        pass  # Linux says so where the other end is closed
    assert process.wait() == 0
    os.close(ours)
    assert b"[U+001B]" in said
    assert b"\x1b]0;" not in said


# --- the rule ---------------------------------------------------------------------------------------------------------

DRAW = {"runner/progress.py", "batch/progress.py", "batch/plan.py"}
"""Progress bars: they move the cursor themselves, and make each text visible."""


def names(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return found | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


@pytest.mark.slow
def test_only_progress_bars_write_past_the_guard() -> None:
    past_it = ("drawn_on", "__stdout__", "__stderr__", "buffer")
    asking = [path for path in PACKAGE.rglob("*.py") if any(word in path.read_text() for word in past_it)]
    own = {str(path.relative_to(PACKAGE)): names(path) for path in asking}
    assert {name for name, found in own.items() if "drawn_on" in found} - {"core/text.py"} == DRAW
    for past in past_it[1:]:
        assert {name for name, found in own.items() if past in found and "sys" in found} == set(), past


def test_what_a_progress_bar_draws_is_visible() -> None:
    """Each text that is given to a bar of tqdm goes through `visible` or `one_line`, or is made of figures alone."""
    for name in sorted(DRAW):
        tree = ast.parse((PACKAGE / name).read_text())
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            if method == "set_description_str" or (method == "write" and any(k.arg == "file" for k in call.keywords)):
                (text,) = call.args
                safe = isinstance(text, ast.Constant) or (
                    isinstance(text, ast.Call)
                    and isinstance(text.func, ast.Name)
                    and text.func.id in ("visible", "one_line")
                )
                assert safe, f"{name}, line {call.lineno}"


def test_the_copies_of_this_test_are_of_all_free_keys() -> None:
    """A new key of run.json that holds any text belongs into FREE."""
    info = json.loads((TOUR / "run.json").read_text())
    checked = {"schema", "run_id", "status", "box", "seed", "order", "parameters", "left_out"}
    assert set(copy.copy(info)) - set(FREE) <= checked


def test_a_bar_below_the_guard_draws_and_shows_texts_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, below = make(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", Guarded(below))
    with Bar(plan, recorded_ids=set()) as bar:
        bar.begin(plan.trials[0])
        bar.end(plan.trials[0], as_trial(plan.trials[0], "failed", f"no space {STEERING}", NOW, 2.0))
        bar.notice(f"lost: {STEERING}")
    drawn = below.getvalue()
    assert "\r" in drawn  # the bar goes over its own line
    assert "[U+000D]" not in drawn
    assert drawn.count(visible(STEERING)) == 2
    assert visible(drawn.replace("\r", "").replace("\x1b[A", "")) == drawn.replace("\r", "").replace("\x1b[A", "")

"""The catalog: right whatever lies in a run directory, the same however it was made, and readable only."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from copied_run import copied, earlier_run
from mountlab.__main__ import main
from mountlab.core.errors import InputError, StoreError
from mountlab.core.places import SHIPPED
from mountlab.publish.seal_again import seal_again
from mountlab.results import catalog, imported, stamp, store, tables
from mountlab.results import derived as derived_files
from mountlab.results.catalog import database, reading
from mountlab.results.catalog.build import FILE, Built
from rows import every_row
from years import SMALL, edit, run_of, small_with_catalog

MADE = "20261120T101902-tour-local"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs over some weeks with their catalog."""
    return small_with_catalog(tmp_path_factory)


@pytest.fixture
def results(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A few of them, of its own, where what was written just now counts as settled."""
    monkeypatch.setattr(reading, "SETTLED_S", 0.0)
    for run in sorted(made.glob("*-box0"))[:4]:
        shutil.copytree(run, tmp_path / "results" / run.name)
    return tmp_path / "results"


@pytest.fixture(scope="module")
def derived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded run with its derived files."""
    path = earlier_run(tmp_path_factory.mktemp("derived") / "tour")
    tables.derive(path)
    return path


@pytest.fixture
def tour(derived: Path, tmp_path: Path) -> Path:
    """Results with the recorded run alone."""
    copied(derived, tmp_path / "results" / "tour")
    return tmp_path / "results"


def rows(results: Path, sql: str) -> list[tuple[Any, ...]]:
    with catalog.opened(results / FILE) as connection:
        return catalog.ask(connection, sql).rows


def everything(results: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables, but for when it was made."""
    with catalog.opened(results / FILE) as connection:
        return {
            name: sorted(catalog.ask(connection, f"SELECT * FROM {name}").rows, key=repr)
            for name in catalog.TABLES
            if name != "about"
        }


def figures(results: Path, run: str) -> list[tuple[Any, ...]]:
    return rows(results, f"SELECT trial_id, metric, label, value FROM measurements WHERE run = '{run}' ORDER BY ALL")


# ── what it holds ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_it_says_what_the_run_says(tour: Path) -> None:
    built = catalog.build(tour)
    run = store.load_run(tour / "tour")
    assert (built.runs, built.from_raw, built.problems, built.copies) == (1, (), {}, {})
    own = run.measurements[["trial_id", "metric", "label", "value"]]
    assert figures(tour, "tour") == sorted(own.itertuples(index=False, name=None))
    assert rows(tour, "SELECT trial_id, status, block, cell, elapsed_s FROM trials ORDER BY trial_id") == [
        tuple(row) for row in run.trials[["trial_id", "status", "block", "cell", "elapsed_s"]].itertuples(index=False)
    ]
    ((sweep, box, kernel, trials, ok),) = rows(tour, "SELECT sweep, box, kernel, trials, ok FROM runs")
    assert (sweep, box, kernel) == ("tour", "local", run.info.facts.kernel.release)
    assert (trials, ok) == (len(run.trials), int((run.trials["status"] == "ok").sum()))


@pytest.mark.slow
def test_means_are_those_of_the_estimates(tour: Path) -> None:
    catalog.build(tour)
    run = store.load_run(tour / "tour")
    found = {row[:3]: row[3:] for row in rows(tour, "SELECT cell, metric, label, n, mean, sd FROM cells")}
    assert len(found) == len(run.estimates)
    for row in run.estimates.itertuples():
        n, mean, sd = found[row.cell, row.metric, row.label]
        assert n == row.n
        assert mean == pytest.approx(row.mean, rel=1e-12)
        assert sd == pytest.approx(row.sd, rel=1e-9, nan_ok=True)
    answers = rows(tour, "SELECT DISTINCT cell, metric FROM cells WHERE answer ORDER BY ALL")
    assert set(answers) == {
        (cell.id, metric) for cell in run.sweep.cells for metric in run.answer_metrics[cell.workload.label]
    }


# ── the truth ────────────────────────────────────────────────────────────────────────────────────────────────────────


def forge(run: Path, value: float) -> None:
    """Other figures than those of the raw output, under the stamp that the file has; without the checksums that would
    show it, as in a run of an earlier version."""
    (run / derived_files.FILE).unlink(missing_ok=True)
    file = run / store.MEASUREMENTS
    _, found = stamp.read_stamped(file.read_bytes())
    assert found is not None
    file.write_bytes(stamp.stamped(pd.read_parquet(file).assign(value=value), found))


Change = Callable[[Path], object]
CHANGES: dict[str, Change] = {
    "gone": lambda run: (run / store.MEASUREMENTS).unlink(),
    "without a stamp": lambda run: pd.read_parquet(run / store.MEASUREMENTS).to_parquet(run / store.MEASUREMENTS),
    "cut off": lambda run: os.truncate(run / store.MEASUREMENTS, 5000),
    "empty": lambda run: os.truncate(run / store.MEASUREMENTS, 0),
    "other parameters": lambda run: edit(run, lambda info: info["parameters"].update(question="Another?")),
    "a trial fewer": lambda run: edit_journal(run, lambda lines: lines[:-1]),
    "a trial excluded": lambda run: (run / "exclude.yml").write_text("exclude:\n  t0010: somebody ran a backup\n"),
}


def edit_journal(run: Path, change: Callable[[list[str]], list[str]]) -> None:
    lines = (run / "trials.jsonl").read_text().splitlines(keepends=True)
    (run / "trials.jsonl").write_text("".join(change(lines)))


@pytest.mark.parametrize(
    "change",
    [
        # One that is empty is cut off, and the stamp is of the journal as it is of the parameters.
        pytest.param(change, id=name, marks=() if name in ("cut off", "without a stamp") else pytest.mark.long)
        for name, change in CHANGES.items()
    ],
)
@pytest.mark.slow
def test_derived_figures_that_are_not_of_what_lies_there_are_not_believed(change: Change, tour: Path) -> None:
    forge(tour / "tour", 1.0)
    change(tour / "tour")
    if not (tour / "tour" / store.MEASUREMENTS).exists() or "exclude.yml" in os.listdir(tour / "tour"):
        assert catalog.build(tour).from_raw == ("tour",)
    else:
        catalog.build(tour)
    own = store.load_run(tour / "tour").measurements[["trial_id", "metric", "label", "value"]]
    assert figures(tour, "tour") == sorted(own.itertuples(index=False, name=None))


@pytest.mark.slow
def test_one_flipped_byte_of_derived_figures_is_seen(tour: Path) -> None:
    file = tour / "tour" / store.MEASUREMENTS
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 0x20
    file.write_bytes(data)
    assert catalog.build(tour).from_raw == ("tour",)


@pytest.mark.slow
def test_figures_that_others_parsed_are_parsed_again(tour: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forge(tour / "tour", 1.0)
    monkeypatch.setattr(stamp, "FIGURES", stamp.FIGURES + 1)
    assert catalog.build(tour).from_raw == ("tour",)


@pytest.mark.slow
def test_figures_that_were_exchanged_under_their_stamp_are_found_by_a_check(
    tour: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["catalog", str(tour), "--check", "5"]) == 0
    assert "1 of 1 checked runs are as their raw output says" in capsys.readouterr().out
    forge(tour / "tour", 1.0)
    assert main(["catalog", str(tour), "--check", "5"]) == 1
    assert "WRONG: tour: measurements.parquet is not what the raw output says" in capsys.readouterr().out


@pytest.mark.slow
def test_a_run_that_changed_while_it_was_derived_has_no_stamp_that_holds(tour: Path) -> None:
    run = store.load_run(tour / "tour")
    edit_journal(tour / "tour", lambda lines: lines[:-1])
    tables.write_derived(run)
    assert catalog.build(tour).from_raw == ("tour",)


# ── what changed since ───────────────────────────────────────────────────────────────────────────────────────────────

STEPS: dict[str, Change] = {
    "a run is gone": lambda results: shutil.rmtree(run_of(results, 0, 1)),
    "a run is new": lambda results: earlier_run(results / "new"),
    "a run is damaged": lambda results: (run_of(results, 0, 0) / "run.json").write_text("{"),
    "a run has another name": lambda results: run_of(results, 0, 2).rename(results / "elsewhere"),
    "a run is copied": lambda results: shutil.copytree(run_of(results, 0, 2), results / "copy"),
    "a question is another": lambda results: edit(run_of(results, 0, 3), lambda info: info.update(status="failed")),
    "figures are others": lambda results: forge(run_of(results, 0, 3), 2.0),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "step",
    [
        # Another name is one that is gone and one that is new; another question is read as other figures are.
        pytest.param(step, id=name, marks=() if name in ("a run is new", "a run is gone") else pytest.mark.long)
        for name, step in STEPS.items()
    ],
)
def test_brought_up_to_date_it_is_as_if_made_anew(step: Change, results: Path) -> None:
    assert catalog.build(results).read == 4
    assert catalog.build(results).read == 0
    step(results)
    built = catalog.build(results)
    assert built.read + built.gone <= 2, "only what changed is read"
    updated = everything(results)
    again = catalog.build(results, rebuild=True)
    assert everything(results) == updated
    assert (again.runs, again.problems, again.copies) == (built.runs, built.problems, built.copies)


@pytest.mark.slow
def test_what_was_written_just_now_is_read_again(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "SETTLED_S", 3600.0)
    assert [catalog.build(results).read for _ in range(2)] == [4, 4]


@pytest.mark.slow
def test_a_catalog_of_another_version_or_a_damaged_one_is_made_anew(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.build(results)
    whole = everything(results)
    (results / FILE).write_bytes(b"no database")
    assert catalog.build(results).read == 4
    assert everything(results) == whole
    monkeypatch.setattr(database, "VERSION", database.VERSION + 1)
    assert catalog.build(results).read == 4


@pytest.mark.slow
def test_half_written_ones_of_a_crash_are_cleared_away(results: Path) -> None:
    left = results / f"{FILE}.4711.tmp"
    left.write_bytes(b"half")
    catalog.build(results)
    assert not left.exists()
    assert not list(results.glob(f"{FILE}.*"))


@pytest.mark.slow
def test_where_a_new_one_cannot_be_made_the_old_one_stays(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog.build(results)
    before = (results / FILE).read_bytes()
    shutil.rmtree(run_of(results, 0, 0))

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(database, "settle", fails)
    with pytest.raises(StoreError, match="a file cannot be written"):
        catalog.build(results)
    assert (results / FILE).read_bytes() == before


# ── what others left there ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def mixed(made: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Built]:
    """Results with everything that is no good run, beside one that is."""
    results = tmp_path_factory.mktemp("mixed") / "results"
    good = shutil.copytree(run_of(made, 0, 0), results / "good")
    changed: dict[str, dict[str, Any]] = {"later": {"schema": 99}, "foreign": {"box": "?"}}
    for name, said in changed.items():
        shutil.copytree(good, results / name)
        edit(results / name, lambda info, said=said: info.update(said))  # type: ignore[misc]
    earlier_run(results / "undated")
    edit(results / "undated", lambda info: info.update(created_at="yesterday"))
    shutil.copytree(good, results / "again")
    for name, data in (("empty", ""), ("half", '{"schema": 1, "run_id"')):
        (results / name).mkdir()
        (results / name / "run.json").write_text(data)
    (results / "raw-only" / "raw").mkdir(parents=True)
    shutil.copytree(good, results / "no-trials")
    edit(results / "no-trials", lambda info: info.update(run_id="no-trials"))
    (results / "no-trials" / "trials.jsonl").unlink()
    seal_again(results / "no-trials")
    (results / "link").symlink_to(results / "good")
    (results / ".hidden").mkdir()
    (results / "compare").mkdir()
    (results / "compare" / "entry.json").write_text('{"kind": "comparison", "title": "x"}')
    shutil.copytree(good, results / "compare" / "inside")
    (results / "notes.txt").write_text("mine")
    return results, catalog.build(results)


@pytest.mark.slow
def test_what_is_no_run_of_ours_says_why_and_takes_nothing_from_the_others(mixed: tuple[Path, Built]) -> None:
    results, built = mixed
    assert set(built.problems) == {"later", "foreign", "empty", "half", "raw-only", "no-trials"}
    assert "written by a later Mountlab" in built.problems["later"]
    assert "run.json is not whole" in built.problems["half"]
    assert "holds no trials yet" in built.problems["no-trials"]
    assert {row[0] for row in rows(results, "SELECT run FROM runs")} == {"good", "again", "undated", "link"}


@pytest.mark.slow
def test_a_run_that_is_there_twice_counts_once(mixed: tuple[Path, Built]) -> None:
    assert mixed[1].copies == {"good": "again", "link": "again"}


@pytest.mark.slow
def test_a_run_without_a_date_is_in_the_tables_only(mixed: tuple[Path, Built]) -> None:
    assert (mixed[1].runs, mixed[1].dated) == (4, 3)


@pytest.mark.slow
def test_problems_are_told_and_not_fatal(mixed: tuple[Path, Built], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", str(mixed[0])]) == 0
    said = capsys.readouterr().out
    assert "cannot be read: half: run.json is not whole" in said
    assert "counted once: good is a copy of again" in said


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such directory"):
        catalog.build(tmp_path / "nowhere")


@pytest.mark.slow
def test_nothing_measured_is_a_catalog_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert catalog.build(tmp_path).runs == 0
    assert main(["catalog", str(tmp_path)]) == 0
    assert main(["history", "--results", str(tmp_path)]) == 2
    assert "nothing was measured that fits" in capsys.readouterr().err


# ── queries ──────────────────────────────────────────────────────────────────────────────────────────────────────────

REFUSED = {
    "write a file": "COPY runs TO '{here}/out.csv'",
    "write to the terminal": "COPY (SELECT 1) TO '/dev/stdout'",
    "read a file": "SELECT * FROM read_csv('{here}/secret')",
    "read text": "SELECT * FROM read_text('{here}/secret')",
    "read by name": "SELECT * FROM '{here}/secret.csv'",
    "list files": "SELECT * FROM glob('{here}/*')",
    "open another database": "ATTACH '{here}/other.db'",
    "export": "EXPORT DATABASE '{here}/dump'",
    "install": "INSTALL httpfs",
    "load": "LOAD httpfs",
    "unlock": "SET lock_configuration = false",
    "let it out": "SET enable_external_access = true",
    "more memory": "SET memory_limit = '100GB'",
    "delete": "DELETE FROM runs",
    "update": "UPDATE runs SET box = 'x'",
    "create": "CREATE TABLE mine (a INTEGER)",
    "drop": "DROP TABLE runs",
    "look into Python": "SELECT * FROM frame",
    "two at once": "SELECT 1; DELETE FROM runs",
    "none": "SELECT FROM",
}


@pytest.fixture(scope="module")
def connection(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[database.Connection]:
    """One for all, which each leaves as it was; to a file of its own, since DuckDB opens a file once in a process."""
    with catalog.opened(Path(shutil.copy(made / FILE, tmp_path_factory.mktemp("asked")))) as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize("sql", REFUSED.values(), ids=REFUSED)
def test_a_query_can_neither_write_nor_reach_another_file(
    sql: str, connection: database.Connection, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("a,b\n1,2\n")
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    frame = pd.DataFrame({"a": [1]})
    with pytest.raises(InputError) as refused:
        catalog.ask(connection, sql.format(here=tmp_path))
    assert refused.value.exit_code == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret", "secret.csv"], frame
    assert catalog.ask(connection, "SELECT count(*) FROM runs").rows == [(SMALL.count,)]


@pytest.mark.slow
@pytest.mark.parametrize("sql", ["", " ", "\n\t", "-- nothing", "/* nothing */", ";", " ; ; "])
def test_no_query_is_said(sql: str, made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", sql, "--results", str(made)]) == 2
    said = capsys.readouterr().err
    assert "there is no query" in said
    assert "DESCRIBE runs" in said


@pytest.mark.slow
@pytest.mark.parametrize("sql", ["SELECT 1; SELECT 2", "SELECT 1;;SELECT 2;", "SELECT 1; DROP TABLE runs"])
def test_several_queries_are_refused_and_none_of_them_is_run(
    sql: str, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["query", sql, "--results", str(made)]) == 2
    assert "only one query at a time" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("sql", ["SELECT 1 AS x;", "SELECT 1 AS x -- one", "-- one\nSELECT 1 AS x", "SELECT ';' AS x"])
def test_one_query_is_one_whatever_stands_around_it(sql: str, connection: database.Connection) -> None:
    assert len(catalog.ask(connection, sql).rows) == 1


@pytest.mark.slow
def test_a_query_that_is_no_text_is_refused(connection: database.Connection) -> None:
    with pytest.raises(InputError, match="text in UTF-8"):
        catalog.ask(connection, "SELECT '\udcff'")


ENDLESS = {
    "a cross join": "SELECT count(*) FROM range(10000000) AS a, range(10000000) AS b",
    "a recursion": "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t",
    "a join of our tables": "SELECT count(*) FROM measurements a, measurements b, measurements c, measurements d",
}


@pytest.mark.slow
@pytest.mark.parametrize("sql", ENDLESS.values(), ids=ENDLESS)
def test_a_query_without_end_is_cancelled_and_the_connection_goes_on(sql: str, connection: database.Connection) -> None:
    """Not much later: the join fills the memory for queries in half a second."""
    with pytest.raises(InputError, match="takes too long and was cancelled") as caught:
        catalog.ask(connection, sql, limit_s=0.1)
    assert (caught.value.exit_code, caught.value.got) == (2, "more than 0.1 s")
    assert "--time-limit" in caught.value.allowed
    assert "WHERE" in caught.value.next_step
    assert catalog.ask(connection, "SELECT count(*) FROM runs", limit_s=30).rows == [(SMALL.count,)]


@pytest.mark.slow
def test_the_time_limit_is_one_of_the_command_line(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", ENDLESS["a cross join"], "--time-limit", "500ms", "--results", str(made)]) == 2
    assert "more than 0.5 s" in capsys.readouterr().err
    for text in ("0s", "60", "infinite", "25h", "-1s"):
        assert main(["query", "SELECT 1", f"--time-limit={text}", "--results", str(made)]) == 2, text
        assert "--time-limit" in capsys.readouterr().err


@pytest.mark.slow
def test_ctrl_c_ends_a_query_as_it_ends_all_else(connection: database.Connection) -> None:
    """Trap: while another of its threads works, DuckDB does not look for signals. This is by chance, so ask often."""
    for _ in range(8):
        too_late = threading.Timer(20, connection.interrupt)
        press = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        too_late.start()
        with pytest.raises(KeyboardInterrupt), nullcontext(press.start()):
            catalog.ask(connection, ENDLESS["a cross join"])
        press.join()
        assert not too_late.finished.is_set()
        too_late.cancel()
    assert catalog.ask(connection, "SELECT 1").rows == [(1,)]


@pytest.mark.long
@pytest.mark.slow
def test_a_query_that_does_not_stop_when_it_is_cancelled_ends_the_process(made: Path) -> None:
    """DuckDB looks for a cancel between two pieces of its work, and one list is one piece."""
    code = "import sys; from mountlab.cli import query; query._LATE_S = 0.5\n"
    code += "from mountlab.__main__ import main; sys.exit(main(sys.argv[1:]))"
    words = ["query", "SELECT list_sort(range(80000000))", "--time-limit", "300ms", "--results", str(made)]
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 2
    assert done.stderr.count("takes too long and was cancelled") == 1


@pytest.mark.slow
def test_an_answer_beyond_what_memory_is_for_is_refused(
    connection: database.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="too many rows"):
        catalog.ask(connection, "SELECT * FROM range(100000000000)")
    with pytest.raises(InputError, match="1GB of memory"):
        catalog.ask(connection, "SELECT list(a.range) FROM range(1000000000) AS a")
    monkeypatch.setattr(database, "MOST_ROWS", 3)
    assert len(catalog.ask(connection, "SELECT * FROM range(3)").rows) == 3
    with pytest.raises(InputError, match="too many rows") as caught:
        catalog.ask(connection, "SELECT * FROM range(4)")
    assert "GROUP BY" in caught.value.next_step


@pytest.mark.slow
def test_maps_and_nested_values_are_data(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT MAP {DATE '2020-01-01': [MAP {1: 2}]} AS m, {'a': chr(127)} AS s"
    assert main(["query", sql, "--json", "--results", str(made)]) == 0
    assert json.loads(capsys.readouterr().out) == [{"m": {"2020-01-01": [{"1": 2}]}, "s": {"a": "\x7f"}}]


@pytest.mark.slow
def test_a_query_leaves_the_file_as_it_is(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (made / FILE).read_bytes()
    sql = "SELECT box, count(*) AS runs FROM runs GROUP BY box ORDER BY box"
    assert main(["query", sql, "--results", str(made)]) == 0
    assert capsys.readouterr().out == "box   runs\nbox0  18\nbox1  18\n"
    assert (made / FILE).read_bytes() == before


@pytest.mark.slow
def test_answers_as_data(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT run, created_at, facts->>'kernel' AS kernel, seed FROM runs ORDER BY run LIMIT 1"
    main(["query", sql, "--json", "--results", str(made)])
    (row,) = json.loads(capsys.readouterr().out)
    assert row == {
        "run": run_of(made, 0, 0).name,
        "created_at": "2021-01-04 02:00:00",
        "kernel": "6.1.0-0-amd64",
        "seed": 1,
    }
    main(["query", "SELECT 'a,b' AS x, NULL AS y", "--csv", "--results", str(made)])
    assert capsys.readouterr().out == 'x,y\n"a,b",\n'


@pytest.mark.slow
def test_an_answer_moves_no_cursor(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["query", "SELECT chr(27) || '[2J' AS x", "--results", str(made)])
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.slow
def test_a_long_answer_says_how_much_is_left(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["query", "SELECT * FROM range(1500)", "--results", str(made)])
    assert "... 500 more rows: --csv or --json give all of them" in capsys.readouterr().out


@pytest.mark.slow
def test_a_wrong_query_is_told_with_the_tables(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", "SELECT * FROM run", "--results", str(made)]) == 2
    said = capsys.readouterr().err
    assert "Table with name run does not exist" in said
    assert "did you mean 'runs'?" in said
    assert main(["query", "SELECT mean FROM runs", "--results", str(made)]) == 2
    assert "did you mean" not in capsys.readouterr().err, "a column is no table"


HOW_TO = (SHIPPED / "docs" / "how-to" / "years-of-results.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("sql", re.findall(r"```sql\n(.*?)```", HOW_TO, re.DOTALL))
def test_the_queries_of_the_docs_are_answered(sql: str, connection: database.Connection) -> None:
    assert catalog.ask(connection, sql).columns


def test_the_docs_know_every_table() -> None:
    assert {name for name in catalog.TABLES if f"| `{name}` |" not in HOW_TO} == {"about"}


# ── the number of the parsers ────────────────────────────────────────────────────────────────────────────────────────


RECORDED = {
    ("dd", "write-1m.stderr"): (3, 961027124.3867227, 2692.6008353994616),
    ("fio", "psync-randread-direct.jsonplus"): (17, 179306510.16457015, 29859.6807648491),
    ("filebench", "varmail.stdout"): (67, 1337192258.110775, 525630.6333942977),
    ("fs_mark", "S0-t4.stdout"): (5, 482024.35616045265, 2.69196973924),
    ("pg_test_fsync", "ext4.stdout"): (32, 1435852.6345853922, 0.01600000229535575),
}
"""Recorded output to how many figures it has, their sum and that of their steps, by the parsers of stamp.FIGURES."""


@every_row(("tool", "name"), RECORDED)
def test_stamps_are_raised_with_the_parsers(tool: str, name: str) -> None:
    """Where this fails, as a parser reads another figure out of the same output: raise stamp.FIGURES, and put the new
    sums above. Figures that were derived before then are derived anew."""
    (outputs,) = imported.read_log_files(tool, [SHIPPED / "tests" / "data" / tool / name]).values()
    rows = [each for output in outputs for each in output.measurements]
    sums = len(rows), sum(each.value for each in rows), sum(each.step for each in rows)
    assert sums == pytest.approx(RECORDED[tool, name])
    assert stamp.FIGURES == 4


@every_row(
    ("changes", "same"),
    [
        ({"filesystems": {"ext4": {"state": ["fresh", "aged", "full"]}}}, True),
        ({"states": {"full": {"fill": 0.5}}}, True),
        ({"states": {"aged": {"fill": 0.8, "churn": 3}}}, False),
        ({"neighbours": {"web": {"tool": "fio", "bs": "8KiB"}}}, False),
        ({"neighbours": {"mail": {"tool": "fio"}}}, True),
    ],
)
def test_a_cell_is_its_own_state_and_neighbours_and_not_those_of_others(changes: dict[str, Any], same: bool) -> None:
    trial = {"filesystem": "ext4", "workload": "app", "factors": {"state": "aged", "beside": "backup+web"}}
    parameters = {
        "filesystems": {"ext4": {"type": "ext4", "state": ["fresh", "aged"]}},
        "workloads": {"app": {"tool": "fio", "beside": ["none", ["backup", "web"]]}},
        "states": {"aged": {"fill": 0.8, "churn": 2}, "full": {"fill": 0.9}},
        "neighbours": {"backup": {"tool": "fio"}, "web": {"tool": "fio", "bs": "4KiB"}},
    }
    changed = {key: {**entries, **changes.get(key, {})} for key, entries in parameters.items()}
    if "filesystems" in changes:
        changed["filesystems"] = {"ext4": {"type": "ext4", **changes["filesystems"]["ext4"]}}
    ours, theirs = (reading.definition_of(asked, trial) for asked in (parameters, changed))
    assert (ours == theirs) is same


def test_a_cell_is_the_same_whatever_its_device_is_promised(tour: Path) -> None:
    run = tour / "tour"
    asked = reading.read_run(run, "tour").cells["asked"].to_pylist()
    record = json.loads((run / "run.json").read_text())
    record["parameters"]["filesystems"]["ext4"]["promised"] = {"read_iops": 3000}
    (run / "run.json").write_text(json.dumps(record))
    assert reading.read_run(run, "tour").cells["asked"].to_pylist() == asked

"""`make bench`: its rows, its link with latency, and what it says where it cannot measure."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from mountlab.core.errors import ParameterError
from mountlab.core.model import Box
from mountlab.results import paths
from mountlab_dev import bench
from mountlab_dev.__main__ import main
from mountlab_dev.bench import naive, peer, perturbation, table, trials
from mountlab_dev.bench.link import Link, link
from mountlab_dev.bench.table import Row
from rows import every_row

ELSEWHERE = Box(name="far", host="far.invalid")

# --- rows -------------------------------------------------------------------------------------------------------------


@every_row(
    ("row", "met", "says"),
    [
        (Row("a", [0.020, 0.021, 0.080], under=0.025), True, "under 25.0 ms, met"),
        (Row("a", [0.020, 0.026, 0.080], under=0.025), False, "under 25.0 ms, MISSED"),
        (Row("a", [1.0], unit="ratio", interval=(0.99, 1.01), inside=(0.98, 1.02)), True, "inside 0.98 to 1.02, met"),
        (Row("a", [1.0, 1.1], unit="ratio", interval=(0.97, 1.01), inside=(0.98, 1.02)), False, "0.970 to 1.010"),
        (Row("a", [1024.0], unit="B"), None, "1.00 KiB"),
        (Row("a", [], under=1.0, why_not="no fio here"), None, "not measured: no fio here"),
    ],
)
def test_a_row_says_whether_it_holds_its_goal(row: Row, met: bool | None, says: str) -> None:
    assert row.met is met
    assert says in table.line(row)


def test_a_row_keeps_its_spread() -> None:
    kept = Row("a", [5.0, 1.0, 2.0, 3.0, 4.0]).as_json()
    assert (kept["n"], kept["min"], kept["low"], kept["median"], kept["high"], kept["max"]) == (5, 1, 2, 3, 4, 5)
    assert Row("a", [1.0]).quartiles == (1.0, 1.0)


def test_what_was_not_measured_has_no_figures() -> None:
    kept = Row("a", [], why_not="no fio here").as_json()
    assert kept["not_measured"] == "no fio here"
    assert "median" not in kept


# --- the verb ---------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_one_subject_alone_is_measured_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    assert main(["bench", "--only", "startup", "--repeats", "1"]) == 0
    kept = json.loads((tmp_path / "results" / "bench.json").read_text())
    assert [(row["name"], row["n"]) for row in kept["rows"]] == [
        ("mountlab --help, the whole process", 1),
        ("mountlab plan of a shipped sweep, processor time", 1),
    ]
    assert kept["kernel"]
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("what ")
    assert said[1].startswith("mountlab --help")


def test_an_unknown_subject_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ParameterError, match="nothing of this name is measured") as error:
        bench.bench(repeats=1, demo=False, tests=False, only=["trails"], say=lambda _: None)
    assert "perturbation" in error.value.allowed
    assert error.value.next_step == "did you mean 'trials'?"


def test_what_needs_this_machine_says_so_of_another(tmp_path: Path) -> None:
    for rows in (naive.rows(ELSEWHERE, 1, tmp_path), perturbation.rows(ELSEWHERE, 1, tmp_path)):
        (row,) = rows
        assert "needs" in row.why_not


# --- the link ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def echo() -> Iterator[int]:
    """A port of this machine that sends back what comes."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                while data := connection.recv(65536):
                    connection.sendall(data)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


def test_a_link_passes_all_on_later_and_counts_round_trips(echo: int) -> None:
    data = bytes(range(256)) * 1000
    with link(echo, 0.03) as wire, closing(socket.create_connection(("127.0.0.1", wire.port))) as near:
        took = []
        for _ in range(3):
            start, came = time.monotonic(), b""
            near.sendall(data)
            while len(came) < len(data):
                came += near.recv(65536)
            took.append(time.monotonic() - start)
            assert came == data
        assert min(took) >= 0.06
        assert wire.turns >= 2  # echoed in pieces, it may turn more often


def test_a_link_counts_a_question_and_its_answer_once(echo: int) -> None:
    with link(echo, 0.001) as wire, closing(socket.create_connection(("127.0.0.1", wire.port))) as near:
        for _ in range(5):
            near.sendall(b"?")
            assert near.recv(1) == b"?"
        assert wire.turns == 4, "the first question follows nothing"


def test_a_link_ends_with_its_connections(echo: int) -> None:
    wire = Link(echo, 0.0)
    with closing(socket.create_connection(("127.0.0.1", wire.port))) as near:
        near.sendall(b"?")
        assert near.recv(1) == b"?"
        wire.close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", wire.port), timeout=1)


# --- peers ------------------------------------------------------------------------------------------------------------


def test_a_peer_that_cannot_be_installed_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere" / "python"))
    spans, _, why_not = peer.bench_fio(1, tmp_path)
    assert spans == []
    assert why_not.startswith("uv cannot install fio-plot: ")


def test_a_peer_that_fails_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "installed", lambda _: (Path("/bin/false"), ""))
    assert peer.bench_fio(1, tmp_path)[2] == "bench-fio failed: exit status 1"


@pytest.mark.slow
@pytest.mark.requires_program("fio")
def test_what_stands_before_fio_notes_its_begin_and_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that starts fio three times, as bench-fio does."""
    program = tmp_path / "peer.sh"
    program.write_text("#!/bin/sh\nfor n in 1 2 3; do fio --cpuclock-test >/dev/null; done; fio --version\n")
    program.chmod(0o700)
    monkeypatch.setattr(peer, "installed", lambda _: (program, ""))
    spans, took_s, why_not = peer.bench_fio(1, tmp_path)
    assert (len(spans), why_not) == (3, ""), "asking for the version is no run"
    assert all(began < ended for began, ended in spans)
    assert all(gap > 0 for gap in peer.gaps(spans))
    assert sum(ended - began for began, ended in spans) < took_s


def test_beyond_counts_from_start_to_start() -> None:
    assert peer.beyond([(0.0, 1.0), (1.5, 2.5), (3.2, 4.0)], 1.0) == pytest.approx([0.5, 0.7])


# --- a run of it ------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.box
@pytest.mark.requires_root
def test_trials_over_a_link_cross_it_once_each(tmp_path: Path) -> None:
    """Counted on the wire, not by us."""
    with trials.over_link(paths.load_box("local"), tmp_path, 0.005) as (connection, wire):
        journal = trials.measured(connection, trials.a_sweep(trials.DD, 6), tmp_path, lambda: wire.turns)
    turns = sorted(journal.each_counted)
    # The count may come a moment after its trial: that one has none then, and the next has two. What SSH says of its
    # windows, now and then, is not waited for.
    assert len(turns) - 1 <= sum(turns) <= len(turns) + 2
    assert min(journal.overhead_s) > 0.010


@pytest.mark.long
@pytest.mark.box
@pytest.mark.requires_root
@pytest.mark.requires_program("fio")
def test_a_job_bare_and_through_mountlab_in_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that others use five pairs say little of the ratio: that is for `make bench` to find."""
    monkeypatch.setattr(perturbation, "RUNTIME", "1s")
    through, again = perturbation.rows(paths.load_box("local"), 5, tmp_path)
    assert (len(through.values), len(again.values)) == (5, 2)
    for row in (through, again):
        assert row.interval is not None
        assert row.interval[0] < row.median < row.interval[1]
        assert 0.02 < row.median < 50
    assert through.inside == perturbation.INSIDE
    assert again.met is None, "what noise is has no goal"


# --- what is imported -------------------------------------------------------------------------------------------------

HEAVY = (
    "asyncio", "distributed", "duckdb", "fabric", "IPython", "ipywidgets", "jinja2", "matplotlib", "nbconvert", "numpy",
    "orjson", "pandas", "papermill", "paramiko", "pydantic", "pyarrow", "scipy", "seaborn", "yaml",
)  # fmt: skip


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["report", "--help"]])
def test_help_loads_nothing_heavy(words: list[str]) -> None:
    """So that it is there at once."""
    text = (
        "import sys\nfrom mountlab.__main__ import main\ntry: main(sys.argv[2:])\nexcept SystemExit: pass\n"
        "print(*sorted(set(sys.argv[1].split()) & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", text, " ".join(HEAVY), *words], capture_output=True, text=True, check=True
    )
    assert "usage: mountlab" in done.stdout
    assert done.stderr.split() == []


@pytest.mark.slow
def test_a_history_loads_neither_what_forecasts_need_nor_what_plots_need() -> None:
    """`from scipy import stats` in a module of figures would cost every verb half a second."""
    modules = "mountlab.results.histories, mountlab.sentences.history"
    text = f"import sys, {modules}; print(*sorted(set(sys.argv[1:]) & set(sys.modules)))"
    argv = [sys.executable, "-c", text, "scipy.stats", "scipy.optimize", "matplotlib", "IPython", "fabric"]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split() == []

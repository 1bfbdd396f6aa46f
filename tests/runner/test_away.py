"""Neighbours of a trial on a client: what the runner asks of the client, and what becomes of the trial."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping

import pytest
from mountlab.box.connection import Completed
from mountlab.core.errors import CommandError, NeighbourFault
from mountlab.runner.away import NeighboursAway
from mountlab.sweep.beside import AwayNeighbours, PlannedNeighbour
from mountlab.tools.base import Command
from sweeps import DD_WRITE, sweep

LOST = "n: the connection to client b was cut, or what ran it there was killed"


def archive(files: Mapping[str, str]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    return file.getvalue()


class Connection:
    ended = False

    def __init__(self, calls: list[str]) -> None:
        self._calls = calls

    def close(self) -> None:
        self._calls.append("close")


class Client:
    """Answers each mode of away.sh with an exit status, 0 where none is given, and what it prints."""

    def __init__(self, **answers: tuple[int, bytes]) -> None:
        self.calls: list[str] = []
        self.connection = Connection(self.calls)
        kept = archive({"neighbours": "n look 600.00 0 0 0 0 0 0 0 1 0\n", "neighbour-n.txt": "no such disk"})
        self._answers = {"stop": (0, kept), "collect": (0, kept), "cat": (0, b"600.00 1.00"), **answers}

    def run(self, argv: tuple[str, ...], timeout_s: float = 0.0) -> Completed:
        mode = argv[0] if argv[0] == "cat" else argv[-1]
        if mode != "cat":
            self.calls.append(mode)
        status, output = self._answers.get(mode, (0, b""))
        return Completed(argv, status, output, b"", 0.0)

    def attend(self, argv: tuple[str, ...]) -> Connection:
        self.calls.append(argv[-1])
        return self.connection

    def kill_all(self) -> None:
        self.calls.append("kill_all")


def away(client: Client) -> NeighboursAway:
    given = sweep(
        filesystems={"s": {"type": "dir", "path": "/mnt"}},
        workloads={"w": {**DD_WRITE, "beside": "n"}},
        neighbours={"n": {**DD_WRITE, "where": {"client": "b"}}},
    )
    (neighbour,) = given.sweep.neighbours.values()
    planned = PlannedNeighbour(neighbour=neighbour, command=Command(argv=("fio",)), directory="/d", output="/o")
    group = AwayNeighbours(client="b", run_id="R-b", output="/o", neighbours=(planned,))
    return NeighboursAway([(group, client)], lambda argv, _: Completed(argv, 0, b"100.00 1.00", b"", 0.0))


def test_it_runs_from_before_the_trial_until_the_files_of_the_trial_are_there() -> None:
    client = Client()
    neighbours = away(client)
    with neighbours.running():
        assert client.calls == ["run", "wait"]
        files = neighbours.with_files({"stdout": b"measured", "neighbours": b"here begun 100.00\n"})
    assert client.calls == ["run", "wait", "close", "stop"], "once"
    assert files["stdout"] == b"measured"
    begun, look, ahead = files["neighbours"].decode().splitlines()
    assert (begun, look.split()[:3]) == ("here begun 100.00", ["n", "look", "600.00"])
    assert ahead.startswith("n ahead ")
    assert float(ahead.split()[2]) == pytest.approx(500, abs=1)
    assert "neighbour_failed" not in files


def test_one_that_does_not_begin_is_ended_before_anything_is_measured() -> None:
    client = Client(wait=(1, b"n: it moved no bytes\n"))
    with pytest.raises(NeighbourFault, match="neighbour n on client b did not run: it moved no bytes") as error:
        away(client).running().__enter__()
    assert error.value.evidence == "no such disk"
    assert client.calls == ["run", "wait", "close", "stop"]


def test_a_connection_that_was_cut_meanwhile_is_the_reason_but_for_one_of_the_box_itself() -> None:
    for before, reason in (({}, LOST), ({"neighbour_failed": b"here: it moved no bytes"}, "here: it moved no bytes")):
        client = Client()
        neighbours = away(client)
        with neighbours.running():
            client.connection.ended = True
            assert neighbours.with_files(before)["neighbour_failed"].decode() == reason


def test_what_cannot_be_stopped_is_killed_and_then_collected() -> None:
    client = Client(stop=(1, b""))
    neighbours = away(client)
    with neighbours.running():
        assert neighbours.with_files({})["neighbour-n.txt"] == b"no such disk"
    assert client.calls == ["run", "wait", "close", "stop", "kill_all", "collect"]


def test_what_cannot_be_removed_ends_the_run() -> None:
    client = Client(stop=(1, b""), collect=(1, b""))
    with (
        pytest.raises(CommandError, match="what neighbours on client b leave cannot be removed"),
        away(client).running(),
    ):
        pass


def test_a_run_that_is_stopped_ends_them() -> None:
    client = Client()
    with pytest.raises(KeyboardInterrupt), away(client).running():
        raise KeyboardInterrupt
    assert client.calls == ["run", "wait", "close", "stop"]

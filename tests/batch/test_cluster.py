"""Work on the workers of a scheduler: one task at a time on a machine, stopped when asked, and what goes wrong is said.

The scheduler and its worker are real, in this process; only the work is made up.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mountlab.batch import cluster
from mountlab.batch.cluster import Broken, Cluster, Taken, Unfit, WorkerStatus
from mountlab.core.errors import InputError, SchedulerError
from rows import every_row
from waiting import LIMIT_S, happens, wait_until


def fit() -> str:
    return ""


def unfit() -> str:
    return "it is too old"


def append(file: Path, word: str, seconds: float, asked: Any) -> str:
    """Says when it begins and ends; ends early where it is asked to."""
    with file.open("a") as log:
        log.write(f"{word}+\n")
    happens(asked, seconds)
    with file.open("a") as log:
        log.write(f"{word}-\n")
    return word


def hold(file: Path, word: str, until: Path, asked: Any) -> str:
    """Says when it begins, and keeps its machine until there is a file `until`."""
    with file.open("a") as log:
        log.write(f"{word}+\n")
    happens(lambda: until.exists() or asked())
    return word


def fail(asked: Any) -> None:
    raise ValueError(f"asked: {asked()}")


@pytest.fixture(scope="module")
def here() -> Iterator[Cluster]:
    with cluster.opened(None, fit, threads=4) as made:
        yield made


def answers(engine: Cluster, count: int) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def look() -> bool:
        found.update(engine.ended(0.05))
        return len(found) == count

    wait_until(f"{count} answers", look)
    return found


@pytest.mark.slow
def test_two_tasks_on_one_machine_are_never_there_together(here: Cluster, tmp_path: Path) -> None:
    log, told = tmp_path / "log", tmp_path / "told"
    here.give("one", partial(hold, log, "a", told), machines=("m",))
    wait_until("the first task", log.exists)
    here.give("two", partial(append, log, "b", 0.0), machines=("m",))
    here.give("three", partial(append, log, "c", 0.0), machines=("another",))
    here.give("four", partial(append, log, "d", 0.0), machines=())
    found = answers(here, 3)
    told.touch()
    found |= answers(here, 1)
    assert isinstance(found.pop("two"), Taken), "it gives its thread back instead of waiting"
    assert found == {"one": "a", "three": "c", "four": "d"}
    assert "b+" not in log.read_text()
    here.give("two", partial(append, log, "b", 0.0), machines=("m",))
    assert answers(here, 1) == {"two": "b"}, "the machine was given back"


@pytest.mark.slow
def test_a_task_of_several_machines_has_all_of_them_or_none(here: Cluster, tmp_path: Path) -> None:
    told = tmp_path / "told"
    here.give("one", partial(hold, tmp_path / "log", "a", told), machines=("m2",))
    wait_until("the first task", (tmp_path / "log").exists)
    here.give("both", partial(append, tmp_path / "both", "b", 0.0), machines=("m1", "m2"))
    ((name, answer),) = answers(here, 1).items()
    assert (name, answer) == ("both", Taken())
    here.give("other", partial(append, tmp_path / "other", "c", 0.0), machines=("m1",))
    told.touch()
    assert answers(here, 2) == {"one": "a", "other": "c"}, "what was had of it was given back"
    here.give("both", partial(append, tmp_path / "both", "b", 0.0), machines=("m1", "m2"))
    assert answers(here, 1) == {"both": "b"}


def test_what_a_task_raises_is_its_answer(here: Cluster) -> None:
    here.give("x", fail, machines=("m",))
    assert answers(here, 1) == {"x": Broken("ValueError", "asked: False")}
    here.give("x", fail, machines=("m",))
    assert answers(here, 1) == {"x": Broken("ValueError", "asked: False")}, "and the machine was given back"


@pytest.mark.slow
def test_all_tasks_end_when_they_are_told_to(tmp_path: Path) -> None:
    with cluster.opened(None, fit, threads=2) as engine:
        for word in "ab":
            engine.give(word, partial(append, tmp_path / word, word, 2 * LIMIT_S), machines=(word,))
        wait_until("both tasks", lambda: all((tmp_path / word).exists() for word in "ab"))
        engine.stop()
        assert answers(engine, 2) == {"a": "a", "b": "b"}


def test_a_worker_that_is_not_fit_does_nothing(tmp_path: Path) -> None:
    with cluster.opened(None, unfit, threads=1) as engine:
        engine.give("x", partial(append, tmp_path / "log", "x", 0.0), machines=("m",))
        (answer,) = answers(engine, 1).values()
        assert isinstance(answer, Unfit)
        assert answer.why == "it is too old"
        assert not (tmp_path / "log").exists()


def test_workers_say_what_they_see_and_who_is_not_fit_gets_nothing(here: Cluster, monkeypatch: Any) -> None:
    """As if the worker of this process were one elsewhere."""
    other = Cluster(here.client, unfit, here=False)
    (worker,) = other.workers
    (status,) = other.look_around().values()
    assert status.why == "it is too old"
    assert other.fit(("m",)) is None
    assert other.fit((cluster.HERE,)) is None
    other = Cluster(here.client, fit, here=False)
    assert other.fit(("m",)) == (), "whom nobody has asked may be fit"
    other.look_around()
    assert other.fit((cluster.HERE,)) == (worker,)
    monkeypatch.setattr(cluster.socket, "gethostname", lambda: "elsewhere")
    assert other.fit((cluster.HERE,)) is None
    other.statuses["tcp://gone"] = WorkerStatus("h", "")
    assert other.gone() == {}
    monkeypatch.setattr(Cluster, "workers", {})
    assert other.gone() == {worker: 0.0}


def test_a_task_whose_workers_are_all_gone_is_given_to_others(here: Cluster, tmp_path: Path) -> None:
    other = Cluster(here.client, fit, here=False)
    other.look_around()
    other.give("x", partial(append, tmp_path / "log", "x", 0.0), machines=("m",), only=("tcp://127.0.0.1:1",))
    assert answers(other, 1) == {"x": "x"}


@pytest.mark.slow
def test_a_task_whose_client_is_gone_stops_by_itself(here: Cluster, tmp_path: Path) -> None:
    here.give("x", partial(append, tmp_path / "log", "x", 2 * LIMIT_S), machines=("m",))
    wait_until("the first task", (tmp_path / "log").exists)
    here._given.pop("x").future.release()
    wait_until("its end", lambda: "x-" in (tmp_path / "log").read_text())
    assert list(here.ended(0.0)) == []


KEEPS_BUSY = """
import ctypes, sys
from functools import partial
from mountlab.batch import cluster
def compute(seconds, asked):
    ctypes.PyDLL(None).sleep(seconds)  # holds the interpreter's lock: nothing else in the process runs
    return "done"
def end(engine, name, seconds):
    engine.gone()
    engine.give("x", partial(compute, seconds), machines=())
    for _ in range(8 * seconds):
        answers, left = dict(engine.ended(0.25)), engine.gone()
        if answers or left:
            return print(name, answers, *left.values())
if __name__ == "__main__":
    from distributed import LocalCluster
    with cluster.opened(None, str, threads=2) as here:
        end(here, "here:", 7)
    with LocalCluster(n_workers=1, processes=True, dashboard_address="127.0.0.1:0") as there:
        with cluster.opened(there.scheduler_address, str, threads=1) as engine:
            engine.look_around()
            end(engine, "there:", 40)
"""


@pytest.mark.long
def test_a_worker_that_is_busy_is_not_gone() -> None:
    """Defect: a worker that computed for five minutes was given up, and the one of this process never came back."""
    short = {**os.environ, "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "5s"}
    done = subprocess.run(
        [sys.executable, "-c", KEEPS_BUSY], capture_output=True, text=True, check=False, env=short, timeout=120
    )
    assert done.stdout.splitlines() == ["here: {'x': 'done'}", "there: {} 5.0"], done.stderr


async def give_up(dask_scheduler: Any) -> None:
    """As if no worker had given a sign of life for a long time."""
    dask_scheduler.worker_ttl = 5.0
    for state in dask_scheduler.workers.values():
        state.last_seen = 0.0
    await dask_scheduler.check_worker_ttl()


def test_of_a_worker_that_did_not_answer_it_is_known_for_how_long() -> None:
    with cluster.opened(None, fit, threads=1) as engine:
        (worker,) = engine.workers
        assert engine.gone() == {}
        engine.client.run_on_scheduler(give_up)
        assert engine.gone() == {worker: 5.0}
        assert engine.gone() == {}


def test_a_cluster_of_this_process_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with cluster.opened(None, fit, threads=1) as engine:
        assert engine.workers
        assert len(list(tmp_path.rglob("dask-scratch-space"))) == 1
    assert list(tmp_path.iterdir()) == []


def test_nobody_outside_hears_the_scheduler_of_this_process(here: Cluster) -> None:
    assert str(here.client.scheduler.address).startswith("inproc://")
    own = [each for each in Path("/proc/self/net/tcp").read_text().splitlines()[1:] if _listens(each)]
    assert all(line.split()[1].startswith("0100007F") for line in own), own


WITHOUT_A_WAY = """
from functools import partial
from distributed.comm import inproc
from distributed.utils import get_ip
from mountlab.batch import cluster
inproc.get_ip = partial(get_ip, "255.255.255.255")  # a socket has to ask for broadcasts: no machine has a way there
with cluster.opened(None, str, threads=1) as here:
    print(here.client.scheduler.address)
"""


@pytest.mark.slow
def test_without_a_network_nobody_is_warned() -> None:
    """In a process of its own: dask asks for the address once."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_A_WAY], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("inproc://")
    assert done.stderr == ""


def _listens(line: str) -> bool:
    """Whether a line of net/tcp is a socket of this process that listens."""
    fields = line.split()
    inodes = {_target(link) for link in Path("/proc/self/fd").iterdir()}
    return fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


@every_row("address", ["127.0.0.1:8786", "http://h:1", "h", "inproc://x"])
def test_an_address_needs_its_scheme(address: str) -> None:
    with pytest.raises(InputError, match="not the address of a scheduler"), cluster.opened(address, fit, threads=1):
        pass


@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_said(monkeypatch: Any) -> None:
    monkeypatch.setattr(cluster, "CONNECT_S", 0.3)
    with pytest.raises(SchedulerError) as raised, cluster.opened("tcp://127.0.0.1:9", fit, threads=1):
        pass
    assert raised.value.what == "the scheduler cannot be reached"
    assert raised.value.where == "tcp://127.0.0.1:9"
    assert raised.value.exit_code == 3

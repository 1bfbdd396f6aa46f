"""The order of effects of a run that searches for capacities: each rate follows from the trials before it."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mountlab.box.connection import Completed
from mountlab.core.errors import StoreError
from mountlab.report.terminal import run_answer
from mountlab.results.journal import read_journal
from mountlab.results.store import load_run
from mountlab.results.tables import write_derived
from mountlab.results.writer import RunWriter
from mountlab.runner.explain import explain
from mountlab.runner.sweep_runner import run_sweep
from mountlab.sweep.plan import Plan
from mountlab.sweep.planner import make_plan
from mountlab.sweep.sweep_file import Resolved, resolve
from runner.test_sweep_runner import FACTS, LOCAL, ScriptedBox, archive
from sweeps import TMPFS, Silent

SERVERS = {"t": 140.0, "u": 280.0}
"""File system to the capacity of the server that the box pretends to have."""
START = 60
"""A p95 needs 200 requests: a trial counts for 3.3 s at this rate, and for 1 s from 200 requests/s on."""


def resolved(**capacity: Any) -> Resolved:
    asked = {"objective": {"p95": "5ms"}, "start": START, "max_trials": 60, **capacity}
    fio = {"tool": "fio", "rw": "randread", "bs": "4KiB", "size": "1MiB", "runtime": "1s", "capacity": asked}
    return resolve(
        {
            "name": "tiny",
            "question": "How much can it take?",
            "filesystems": {"t": TMPFS, "u": TMPFS},
            "workloads": {"mail": fio},
            "baseline": "t",
            "design": {"warmup": 1, "seed": 7, "trial_timeout": "60s"},
        },
        where="tests",
    )


class Server(ScriptedBox):
    """Its fio has each request done at once up to the capacity of the file system, and after 50 ms beyond it."""

    def __init__(self, **script: Sequence[Any]) -> None:
        super().__init__(**script)
        self.ran: list[tuple[str, str, int]] = []

    def run(self, argv: Sequence[str], *, timeout_s: float = 60.0, root: bool = False) -> Completed:
        done = super().run(argv, timeout_s=timeout_s, root=root)
        if self.name(argv) != "trial" or not done.ok:
            return done
        groups = [(int(clones), int(each)) for clones, each in re.findall(r"numjobs=(\d+)\nrate_iops=(\d+)", argv[-2])]
        filesystem = re.search(r"/mnt/(\w+)/", argv[-2])
        assert filesystem
        times = dict(re.findall(r"^(runtime|startdelay)=(\S+)$", argv[-2], re.M))
        rate = sum(clones * each for clones, each in groups)
        self.ran.append((argv[-1], filesystem[1], rate))
        return replace(done, stdout=self.answer(groups, rate, times, slow=rate > SERVERS[filesystem[1]]))

    def output(self, name: str) -> bytes:
        return b"==> elapsed_ns <==\n1000\n" if name == "mount" else super().output(name)

    @staticmethod
    def answer(groups: Sequence[tuple[int, int]], rate: int, times: dict[str, str], *, slow: bool) -> bytes:
        """The log of the whole time: each request from a thread of its own."""
        latency_ms, count = 50 if slow else 1, int(int(times["runtime"].removesuffix("us")) / 1e6 * rate)
        log = "".join(
            f"{90_000_000 - place}, {latency_ms * 1_000_000}, 0, 4096, 0\n"
            for place in (int(number * 1000 / rate) for number in range(count + 1))
        )
        asked = [{"rw": "randread", "numjobs": str(clones), "rate_iops": str(each)} for clones, each in groups]
        jobs = [{"read": {}, "write": {}, "jobname": "read", "error": 0, "job options": each} for each in asked]
        report = json.dumps({"fio version": "fio-3.33", "global options": times, "jobs": jobs}).encode()
        return archive(
            {"exit_status": b"0\n", "stdout": b"", "stderr": b"", "fio.json": report, "open_lat.log": log.encode()}
        )


def planned(the_sweep: Resolved) -> Plan:
    return make_plan(the_sweep.sweep, LOCAL, FACTS, run_id="R", owner="me", seed=7)


def run(the_sweep: Resolved, results: Path) -> tuple[Server, RunWriter]:
    plan, box = planned(the_sweep), Server()
    writer = RunWriter.create(plan, the_sweep, FACTS, results=results)
    run_sweep(plan, box, writer, Silent())
    writer.finish("complete", writer.stops(plan.sweep))
    return box, writer


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Server, RunWriter]:
    """A run of both searches to their ends."""
    return run(resolved(), tmp_path_factory.mktemp("whole"))


@pytest.mark.slow
def test_each_search_ends_at_the_capacity_of_its_file_system(whole: tuple[Server, RunWriter]) -> None:
    _, writer = whole
    write_derived(load_run(writer.path))
    found = load_run(writer.path)
    rows = found.estimates[found.estimates["metric"] == "capacity"].set_index("filesystem")
    for name, true in SERVERS.items():
        assert rows.loc[name, "low"] <= true <= rows.loc[name, "high"]
        assert rows.loc[name, "high"] / rows.loc[name, "low"] < 1.11
    assert {(stop.reason, stop.n) for stop in found.stops} == {("precise", int(n)) for n in rows["n"]}
    (compared,) = found.comparisons
    assert (compared.metric, compared.verdict) == ("capacity", "faster")
    assert compared.own.low <= 2 <= compared.own.high
    assert found.answer_metrics == {"mail": ("capacity",)}
    assert set(found.estimates["metric"]) <= {"capacity", "mkfs_time", "mount_time"}, "no mean over unlike rates"


@pytest.mark.slow
def test_every_block_holds_each_cell_that_still_searches_once(whole: tuple[Server, RunWriter]) -> None:
    box, writer = whole
    journal = read_journal(writer.path)
    by_block = {block: [t.filesystem for t in journal if t.block == block] for block in {t.block for t in journal}}
    assert all(len(cells) == len(set(cells)) for cells in by_block.values())
    assert {rate for trial, _, rate in box.ran if trial in ("t0001", "t0002", "t0003", "t0004")} == {START}, "as begun"
    assert len({tuple(cells) for cells in by_block.values() if len(cells) == 2}) == 2, "in random order"


@pytest.mark.slow
@pytest.mark.long
def test_a_resumed_search_tries_the_rates_of_the_whole_one(tmp_path: Path, whole: tuple[Server, RunWriter]) -> None:
    """Interrupted in its first trial, in its second, its sixth and its ninth."""
    of_whole, writer = whole
    cut = RunWriter.create(planned(resolved()), resolved(), FACTS, results=tmp_path / "cut")
    ran: list[tuple[str, str, int]] = []
    for after in (0, 1, 5, 8):
        more = after - len(ran)
        box = Server(trial=[0] * more + [lambda: os.kill(os.getpid(), signal.SIGINT)])
        with pytest.raises(KeyboardInterrupt):
            run_sweep(planned(resolved()), box, RunWriter(cut.path), Silent())
        ran += box.ran[:more]
        assert ran == of_whole.ran[:after], f"interrupted after {after} trials"
    box = Server()
    run_sweep(planned(resolved()), box, RunWriter(cut.path), Silent())
    assert [*ran, *box.ran] == of_whole.ran
    assert RunWriter(cut.path).stops(planned(resolved()).sweep) == writer.stops(planned(resolved()).sweep)


@pytest.mark.long
@pytest.mark.slow
def test_a_budget_ends_a_search_that_is_not_precise(tmp_path: Path) -> None:
    _, writer = run(resolved(max_trials=15, half_width="2%"), tmp_path)
    assert {(stop.reason, stop.blocks) for stop in load_run(writer.path).stops} == {("max reached", 15)}
    with pytest.raises(StoreError, match="differ in their rate"):
        explain(writer.path, blocks=3)


@pytest.mark.long
@pytest.mark.slow
def test_an_objective_that_never_holds_and_one_that_always_does_end(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(SERVERS, "t", 0.0)
    monkeypatch.setitem(SERVERS, "u", 1e9)
    monkeypatch.setattr("mountlab.fio.open_loop.MOST_REQUESTS", 5_000)
    _, writer = run(resolved(), tmp_path)
    found = {stop.cell: stop for stop in load_run(writer.path).stops}
    assert "already fails at the floor of 5 requests/s" in found["t/mail"].why
    assert "the highest rate that a trial can have" in found["u/mail"].why
    assert {stop.reason for stop in found.values()} == {"could not"}
    (compared,) = load_run(writer.path).comparisons
    assert (compared.verdict, compared.own.low > 100) == ("faster", True)
    text = " ".join(run_answer(load_run(writer.path)).split())
    assert "At read p95 ≤ 5 ms, t already fails at 5 requests/s; u takes at least " in text
    assert re.search(r"requests/s, at least \d+ times as many: faster\.", text)

"""The `capacity` of a workload: what is read, and what is refused, with file, key, got and allowed."""

from __future__ import annotations

from typing import Any

import pytest
from mountlab.core.errors import ParameterError
from mountlab.core.model import Sweep
from mountlab.core.search import Objective, Search
from mountlab.sweep.sweep_file import resolve
from rows import every_row
from sweeps import DD_WRITE, TMPFS

FIO = {"tool": "fio", "rw": "randrw", "bs": "4KiB", "size": "16MiB", "runtime": "5s"}
ASKED = {"objective": {"p99": "5ms"}}


def read(
    capacity: Any, *, others: dict[str, Any] | None = None, fio: dict[str, Any] | None = None, **design: Any
) -> Sweep:
    mail = {**FIO, **(fio or {}), "capacity": capacity}
    return resolve(
        {
            "name": "s",
            "question": "How much can it take?",
            "filesystems": {"a": TMPFS, "b": TMPFS},
            "workloads": {"mail": mail, **(others or {})},
            **({"design": design} if design else {}),
        },
        where="s.yml",
    ).sweep


def refusal(capacity: Any, **more: Any) -> ParameterError:
    with pytest.raises(ParameterError) as caught:
        read(capacity, **more)
    return caught.value


def test_an_objective_is_enough() -> None:
    found = read(ASKED)
    objective = Objective(limits={"p99": 0.005}, of=("read", "write"))
    assert found.workloads[0].search == Search(objective=objective, half_width=0.05, max_trials=60, start=1000.0)
    assert found.design.repeats == 60, "the plan lists a block for each trial that there may be"
    assert found.searches
    assert found.decides
    assert not read(None).searches


def test_the_whole_search_is_read_with_its_units() -> None:
    asked = {
        "objective": {"p99": "5ms", "p99.9": "20ms", "of": ["write"]},
        "half_width": "10 %",
        "max_trials": 25,
        "start": 250,
        "floor": 50,
    }
    objective = Objective(limits={"p99": 0.005, "p99_9": 0.02}, of=("write",))
    found = read(asked)
    assert found.workloads[0].search == Search(
        objective=objective, half_width=0.1, max_trials=25, start=250.0, floor=50.0
    )
    assert found.design.repeats == 25


def test_a_factor_beside_it_makes_a_search_of_each_level() -> None:
    found = read(ASKED, fio={"bs": ["4KiB", "16KiB"]})
    assert [each.search is not None for each in found.workloads] == [True, True]


@every_row(
    ("asked", "where", "got", "allowed"),
    [
        ("5ms", "", "'5ms'", "{objective: {p99: 5ms}}"),
        ({}, "objective", "nothing", "objective: ..."),
        ({"objective": {}}, "objective", "{} (dict)", "one entry or more"),
        ({"objective": {"of": ["read"]}}, "objective", "{'of': ['read']}", "{p99: 5ms}"),
        ({"objective": {"p98": "5ms"}}, "objective.p98", "p98", "p50, p95, p99, p99.9, of"),
        ({"objective": {"p99": 5}}, "objective.p99", "5 (int)", "'60s'"),
        ({"objective": {"p99": "0s"}}, "objective.p99", "0s", "5ms"),
        ({"objective": {"p99": "5ms", "of": ["sync"]}}, "objective.of", "['sync']", "[read, write]"),
        ({**ASKED, "half_width": "90%"}, "half_width", "'90%'", "0.5% to 50%"),
        ({**ASKED, "max_trials": 3}, "max_trials", "3 (int)", "15"),
        ({**ASKED, "floor": 2000}, "floor", "2000", "at most start, 1000"),
        ({**ASKED, "until": 3}, "until", "'until'", "floor, half_width, max_trials, objective, start"),
    ],
)
def test_what_makes_no_search_is_refused(asked: Any, where: str, got: str, allowed: str) -> None:
    error = refusal(asked)
    assert error.where == "s.yml: workloads.mail.capacity" + (f".{where}" if where else "")
    assert (error.got or "").startswith(got)
    assert allowed in (error.allowed or "")


def test_workloads_with_and_without_a_search_do_not_stand_together() -> None:
    error = refusal(ASKED, others={"plain": DD_WRITE})
    assert (error.where, error.got) == ("s.yml: workloads", "without: plain")


@pytest.mark.parametrize("key", [{"repeats": 5}, {"until": {"half_width": "3%"}}, {"explain": True}])
def test_a_design_does_not_say_what_a_search_decides(key: dict[str, Any]) -> None:
    error = refusal(ASKED, **key)
    assert error.where == f"s.yml: design.{next(iter(key))}"
    assert "capacity.half_width" in (error.allowed or "")


def test_other_tools_and_other_loads_are_refused() -> None:
    raw = {"mail": {**DD_WRITE, "capacity": ASKED}}
    with pytest.raises(ParameterError, match="dd has no open-loop load"):
        resolve({"name": "s", "question": "?", "filesystems": {"a": TMPFS}, "workloads": raw}, where="s.yml")
    assert "no precondition" in (refusal(ASKED, fio={"precondition": 5}).allowed or "")
    assert "no iodepth" in refusal(ASKED, fio={"iodepth": 32}).what

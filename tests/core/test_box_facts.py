"""Facts about a box: what a run.json holds comes back as it was, and a survey is added in one way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from facts import known
from mountlab.core.box_facts import BoxFacts, Surveyed
from mountlab.core.errors import BoxError, StoreError
from rows import every_row

ROOT = Path(__file__).parents[2]
RECORDED = ("results/tour", "results/why-sync-example", "results/how-much-example", "tests/data/earlier_run")


@every_row("run", RECORDED)
def test_facts_of_a_recorded_run_are_written_as_they_were_read(run: str) -> None:
    """Also those of an earlier version, which lack some."""
    record = json.loads((ROOT / run / "run.json").read_text())["facts"]
    facts = BoxFacts.from_record(record)
    assert facts.as_record() == record
    assert facts.kernel.release == record["kernel"]
    assert facts.programs.version("fio") == record["programs"]["fio"]["version"]


@every_row(
    "record",
    [
        {},
        {"cpus": None},
        {"cpu_idle": {"driver": "x", "later": [1]}, "later": {"a": None}},
        {"block_devices": [{"name": "vda", "later": 1}], "programs": {"fio": {}}},
        {"clients": {"a": {"kernel": "6.1", "later": 1}}},
        {"stated": {"w": {"outputs": 1, "options": {"bs": {"values": {"ext4": ["4KiB"]}}}}}},
    ],
)
def test_what_is_missing_unknown_or_of_a_later_version_survives(record: dict[str, Any]) -> None:
    assert BoxFacts.from_record(record).as_record() == record


@every_row(
    ("record", "where", "allowed"),
    [
        ({"cpus": "two"}, "cpus", "a valid integer"),
        ({"cpus": True}, "cpus", "a valid integer"),
        ({"block_devices": [{"name": "vda", "size_bytes": []}]}, "block_devices.0.size_bytes", "a valid integer"),
        ({"programs": None}, "programs", "a valid dictionary"),
        ({"clients": {"a": {"kernel": 6.1}}}, "clients.a.kernel", "a valid string"),
        ({"clients": {"a": []}}, "clients", "an object of objects"),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_place(record: dict[str, Any], where: str, allowed: str) -> None:
    with pytest.raises(StoreError) as caught:
        BoxFacts.from_record(record, "r/run.json: facts")
    assert caught.value.where == f"r/run.json: facts.{where}"
    assert allowed in caught.value.allowed


def test_a_survey_adds_what_is_known_by_name_and_replaces_the_rest() -> None:
    before = known(kernel="6.1", room={"a": 1}, memory_directories=["/dev/shm"], trace_reason="no")
    more = Surveyed(room={"b": 2}, memory_directories=("/run",), devices={"b": "blank"}, trace_reason="")
    assert before.with_survey(more).as_record() == {
        "kernel": "6.1", "room": {"a": 1, "b": 2}, "memory_directories": ["/dev/shm", "/run"],
        "devices": {"b": "blank"}, "trace_reason": "",
    }  # fmt: skip
    assert before.with_survey(Surveyed()) == before


def test_a_run_cannot_be_planned_where_the_directories_of_the_box_are_unknown() -> None:
    with pytest.raises(BoxError, match="the box's directories are unknown"):
        _ = known(mount_root="/m").storage.roots


@every_row(
    ("limit", "memory", "known_limit"),
    [(5, 10, 5), (10, 10, None), (11, 10, None), (5, None, 5), ("no limit", 10, None), (None, 10, None)],
)
def test_the_session_s_limit_of_memory_is_one_where_the_box_has_more(
    limit: int | str | None, memory: int | None, known_limit: int | None
) -> None:
    facts = known(session_limits={"memory_bytes": limit}, memory_bytes=memory)
    assert facts.memory_limit == known_limit


def test_a_processor_that_polls_enters_no_idle_state() -> None:
    idle = {"cpu_idle": {"times": "C1 1/2 µs"}}
    assert [state.name for state in known(**idle).idle_states] == ["C1"]
    assert known(**idle, kernel_command_line={"idle": "poll"}).idle_states == []


def test_a_partition_lies_on_its_disk_and_any_other_device_is_its_own() -> None:
    devices = [
        {"name": "sda", "type": "disk"},
        {"name": "sda1", "type": "part", "parent": "sda"},
        {"name": "dm-0", "type": "crypt", "parent": "sda1"},
    ]
    storage = known(block_devices=devices).storage
    found = [storage.disk_of(name) for name in ("sda", "sda1", "dm-0", "sdz")]
    assert [device.name if device else None for device in found] == ["sda", "sda", "dm-0", None]

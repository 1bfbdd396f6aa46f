"""What is foreseen before a run, what a strict design refuses, and what an old run could not tell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from checks.test_checks import EXT4, KNOWN, MIB, READ, WRITE, make, quiet
from facts import known
from mountlab.checks import CHECKS, find_caveats, foresee, named, refuse_foreseen
from mountlab.core.errors import PlanError
from mountlab.core.findings import Caveat
from mountlab.core.model import Sweep, Until
from mountlab.results import store
from mountlab.sweep.plan_text import plan_json, plan_text
from mountlab.sweep.planner import make_plan
from rows import every_row
from sweep.test_plan import BOX, FACTS

MEMORY = known(KNOWN, memory_bytes=23 * 1024**3)
FIO = {"tool": "fio", "rw": "randread", "bs": "4KiB", "size": "64MiB"}


def codes(the_sweep: Sweep, **facts: Any) -> list[tuple[str, str]]:
    return [(each.severity, each.code) for each in foresee(the_sweep, known(MEMORY, **facts))]


def reading(**options: Any) -> Sweep:
    return make(workloads={"r": {**FIO, **options}})


# --- the page cache, before -------------------------------------------------------------------------------------------


def test_a_small_buffered_read_on_a_large_box_is_foreseen_to_measure_the_page_cache() -> None:
    (caveat,) = foresee(reading(cache="as_is"), MEMORY)
    assert (caveat.code, caveat.severity, caveat.subject) == ("fits-in-memory", "warning", "ext4/r")
    assert caveat.message.startswith(
        "this reads 64.0 MiB buffered on a box with 23.0 GiB of memory, and what was written just before is left in "
        "the cache (cache: as_is): it measures the page cache. Read more than the memory holds"
    )


@pytest.mark.parametrize(
    "options", [{"norandommap": 1, "time_based": True, "runtime": "5s"}, {"random_distribution": "zipf:1.2"}]
)
def test_reads_that_come_back_to_the_same_blocks_are_foreseen(options: dict[str, Any]) -> None:
    assert ("warning", "fits-in-memory") in codes(reading(**options))


@every_row(
    "options",
    [
        {},
        {"time_based": True, "runtime": "5s"},
        {"direct": True, "cache": "as_is"},
        {"size": "32GiB", "cache": "as_is"},
    ],
    ids=["once", "fio drops its file before each pass", "direct", "larger than the memory"],
)
def test_reads_that_come_from_the_device_are_not(options: dict[str, Any]) -> None:
    assert codes(reading(**options)) == []


def test_a_design_that_leaves_the_caches_alone_is_foreseen_too() -> None:
    assert ("warning", "fits-in-memory") in codes(make(design={"drop_caches": False}))
    assert ("note", "fits-in-memory") in codes(make(workloads={"r": {**READ, "cache": "warm"}}))


def test_a_fileset_of_filebench_in_memory_is_foreseen() -> None:
    assert ("warning", "fits-in-memory") in codes(make(workloads={"w": {"tool": "filebench", "workload": "webserver"}}))


@pytest.mark.parametrize(
    "workload",
    [
        {**WRITE, "conv": "none"},
        {"tool": "fio", "rw": "write", "size": "64MiB"},
        {"tool": "fs_mark", "count": 10, "file_size": "4KiB", "sync": "none"},
    ],
    ids=["dd", "fio", "fs_mark"],
)
def test_writes_that_nothing_flushes_are_foreseen(workload: dict[str, Any]) -> None:
    assert ("warning", "not-flushed") in codes(make(workloads={"w": workload}))
    memory = make(workloads={"w": workload}, filesystems={"t": {"type": "tmpfs", "size": "1GiB"}})
    assert ("warning", "not-flushed") not in codes(memory)


@every_row(
    "workload",
    [
        WRITE,
        {**WRITE, "conv": "none", "oflag": "direct"},
        {"tool": "fio", "rw": "write", "size": "64MiB", "fsync": 1},
        {"tool": "fio", "rw": "write", "size": "64MiB", "direct": True},
        {"tool": "pg_test_fsync"},
        {"tool": "fs_mark", "count": 10, "file_size": "4KiB"},
    ],
    ids=["dd", "dd direct", "fio fsync", "fio direct", "pg_test_fsync", "fs_mark"],
)
def test_writes_that_are_flushed_are_not(workload: dict[str, Any]) -> None:
    assert codes(make(workloads={"w": workload})) == []


# --- the rest, before -------------------------------------------------------------------------------------------------


def test_too_few_repeats_are_foreseen_once_for_the_run() -> None:
    (caveat,) = foresee(make(design={"repeats": 3}, workloads={"a": READ, "b": READ}), MEMORY)
    assert (caveat.code, caveat.severity, caveat.scope) == ("too-few", "warning", "run")
    assert codes(make(design={"repeats": 1})) == [("error", "too-few")]
    until = replace(make(), design=replace(make().design, repeats=40, until=Until(half_width=0.03, min=3)))
    assert codes(until) == [("warning", "too-few")]


def test_lazy_initialisation_that_is_asked_for_is_foreseen() -> None:
    for words in (["-E", "lazy_itable_init=1"], ["-E", "lazy_journal_init,stride=4"]):
        assert ("warning", "lazy-init") in codes(make(filesystems={"e": {**EXT4, "mkfs": words}}))
    assert codes(make(filesystems={"e": {**EXT4, "mkfs": ["-E", "lazy_itable_init=0"]}})) == []


def test_an_image_has_no_zeros_to_save() -> None:
    """mke2fs zeroes a loop device by fallocate() of its image, lazily or not."""
    lazy, eager = ({**EXT4, "mkfs": ["-E", f"lazy_itable_init={each}"]} for each in (1, 0))
    asked = {"filesystems": {"lazy": lazy, "eager": eager}, "metrics": ["mkfs_time", "read_bandwidth"]}
    assert codes(make(**asked)).count(("warning", "zeroed-by-device")) == 2
    assert ("warning", "zeroed-by-device") not in codes(make(**{**asked, "metrics": ["read_bandwidth"]}))


def test_what_the_facts_of_the_box_tell_is_foreseen() -> None:
    facts = {"power": "battery (20 %)", "cpu_governor": "powersave", "virtualization": "kvm", "swap_used_bytes": MIB}
    assert codes(make(), **facts, mount_root_fstype="tmpfs") == [
        ("warning", "image-in-memory"),
        ("warning", "on-battery"),
        ("note", "compressible-data"),
        ("note", "virtualised"),
        ("note", "frequency-scaling"),
        ("note", "swap-in-use"),
    ]
    assert codes(make(), **dict.fromkeys(facts), memory_bytes=None) == [], "what is not known is not foreseen"


def test_nothing_is_foreseen_that_only_counters_can_tell() -> None:
    foreseen = {code for code, check in CHECKS.items() if check.foresee}
    assert foreseen.isdisjoint({"box-busy", "cache-served", "drift", "noisy", "kernel-message", "time-stolen"})


def test_the_plan_says_what_is_foreseen_each_thing_once() -> None:
    the_sweep = make(workloads={"r": {**FIO, "bs": ["4KiB", "8KiB"], "cache": "as_is"}}, filesystems={"ext4": EXT4})
    facts = known(FACTS, **MEMORY.as_record(), room={})
    the_plan = make_plan(the_sweep, BOX, facts, run_id="r1", owner="me", seed=1)
    text = plan_text(the_plan, facts)
    assert "\ncaveats      warning: fits in memory, ext4/r bs=4KiB and 1 more: this reads 64.0 MiB buffered" in text
    rows = plan_json(the_plan, facts)["caveats"]
    assert [row["subject"] for row in rows] == ["ext4/r bs=4KiB", "ext4/r bs=8KiB"]


def test_the_plan_of_a_sound_sweep_has_no_such_line() -> None:
    facts = known(FACTS, **MEMORY.as_record(), room={})
    the_plan = make_plan(make(), BOX, facts, run_id="r1", owner="me", seed=1)
    assert "caveats " not in plan_text(the_plan, facts)


# --- strict -----------------------------------------------------------------------------------------------------------


def strict(**more: Any) -> Sweep:
    return make(**{**more, "design": {"repeats": 5, "strict": True, **more.get("design", {})}})


def test_a_strict_design_is_refused_where_a_warning_is_foreseen() -> None:
    with pytest.raises(PlanError) as caught:
        make_plan(
            strict(design={"repeats": 3}), BOX, known(FACTS, **MEMORY.as_record()), run_id="r", owner="me", seed=1
        )
    error = caught.value
    assert (error.what, error.where, error.got) == (
        "what is planned cannot be trusted",
        "design.strict: true",
        "too-few",
    )
    assert error.next_step.startswith("too-few: n = 3: too few.")
    assert error.next_step.endswith("Or leave strict away, and the warnings will stand in the report.")
    assert error.exit_code == 2


def test_a_strict_design_goes_on_where_only_notes_are_foreseen() -> None:
    refuse_foreseen(strict(), known(MEMORY, virtualization="kvm"))
    refuse_foreseen(make(design={"repeats": 1}), MEMORY)


def test_strict_makes_warnings_errors_and_leaves_notes() -> None:
    evidence = quiet(strict(), backing_types={"ext4": "tmpfs"}, facts=known(KNOWN, virtualization="kvm"))
    assert {each.code: each.severity for each in find_caveats(evidence).caveats} == {
        "image-in-memory": "error",
        "loop-image": "note",
        "compressible-data": "note",
        "virtualised": "note",
    }


def test_caveats_are_named_by_code_with_what_they_are_about() -> None:
    def one(code: str, subject: str) -> Caveat:
        return Caveat(code=code, severity="error", message="", scope="cell", subject=subject)

    assert named([one("noisy", "a/x"), one("too-few", ""), one("noisy", "b/x"), one("noisy", "b/x")]) == (
        "noisy (a/x, b/x); too-few"
    )


# --- a run of an earlier version --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_it_is_read_and_says_what_could_not_be_looked_at() -> None:
    run = store.load_run(Path(__file__).parents[1] / "data" / "earlier_run")
    assert {"box-busy", "clock-stepped", "kernel-message", "drift", "two-modes"} <= set(run.not_checked)
    assert {"cache-served", "swapping", "time-stolen", "excluded"} <= set(run.checks_passed) | {
        each.code for each in run.caveats
    }
    told = [*{each.code for each in run.caveats}, *run.checks_passed, *run.not_checked]
    assert sorted(told) == sorted(CHECKS)


BY_THE_MACHINE = {"frequency-scaling", "throttled", "drive-hot"}
"""A virtual machine has no governor, counts no throttling, and has no sensors of drives."""


@pytest.mark.slow
def test_every_check_could_look_at_the_recorded_tour_that_the_machine_lets_look() -> None:
    run = store.load_run(Path(__file__).parents[2] / "results" / "tour")
    assert set(run.not_checked) <= BY_THE_MACHINE
    assert {"control-failed", "too-short"} <= set(run.checks_passed)

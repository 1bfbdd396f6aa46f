"""Caveats: each check raised and not raised, and what its message says."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from facts import known
from mountlab.analysis.answer_metrics import answer_metrics
from mountlab.analysis.estimates import estimate_frame
from mountlab.analysis.measurements import measurement_frame, without_partial
from mountlab.analysis.samples import figure_steps
from mountlab.checks import CHECKS, Evidence, find_caveats
from mountlab.core.cell_stop import CellStop
from mountlab.core.findings import Caveat, OptionEvidence
from mountlab.core.metrics import METRICS
from mountlab.core.model import Cell, Measurement, Sweep, Trial, Until
from mountlab.filesystems.counters import Around
from mountlab.filesystems.evidence import DeviceBytes, device_levels, device_traffic, every_device
from mountlab.runner.conformance import checks as conformance
from mountlab.stats.histograms import enough
from mountlab.wording.caveats import doubts_by_cell
from rows import every_row
from sweeps import sweep

DATA = Path(__file__).parents[1] / "data"
MIB = 1024**2
READ = {"tool": "dd", "direction": "read", "bs": "1MiB", "count": 512}
WRITE = {"tool": "dd", "direction": "write", "bs": "1MiB", "count": 512}
EXT4 = {"type": "ext4", "image": "1GiB"}
CHAIN = (("7:0",), ("254:0",))


def make(**more: Any) -> Sweep:
    given = {
        "filesystems": {"ext4": EXT4},
        "workloads": {"r": READ},
        "design": {"repeats": 5, "trial_timeout": "10min"},
        **more,
    }
    return sweep(**given).sweep


def build(
    the_sweep: Sweep,
    *,
    values: dict[str, list[float]] | None = None,
    traffic: dict[str, DeviceBytes] | None = None,
    failed: int = 0,
    **more: Any,
) -> Evidence:
    """Five good trials of each cell on a device that moved all bytes of it, or what a test changes."""
    key = repr((the_sweep, values, failed))
    if key not in _MADE:
        _MADE[key] = _made(the_sweep, values or {}, failed)
    made = {
        name: each.copy(deep=False) if isinstance(each, pd.DataFrame) else each for name, each in _MADE[key].items()
    }
    trials = list(made["trials"]["trial_id"])
    moved = traffic or dict.fromkeys(every_device(CHAIN), DeviceBytes(512 * MIB, 512 * MIB))
    parts: dict[str, Any] = {
        "sweep": the_sweep,
        **made,
        "traffic": dict.fromkeys(trials, moved),
        "levels": {"m-ext4": CHAIN, "m-tmpfs": ()},
        "backing_types": {},
        "options": [],
        "facts": known(rights="root"),
        "unseen": {},
        "around": {trial: Around() for trial in trials},
    }
    return Evidence(**{**parts, **more})


_MADE: dict[str, dict[str, Any]] = {}
"""Parts of the evidence by what they are made of: most tests look at the same trials."""


def _made(the_sweep: Sweep, values: dict[str, list[float]], failed: int) -> dict[str, Any]:
    rows: list[tuple[Trial, Measurement]] = []
    trials: list[Trial] = []
    for cell in the_sweep.cells:
        side = str(cell.workload.options["direction"])
        for block, value in enumerate(values.get(cell.id, [100e6, 101e6, 99e6, 100.5e6, 99.5e6]), start=1):
            trial = _trial(cell, block, len(trials) + 1)
            trials.append(trial)
            rows += [(trial, m) for m in _measurements(side, value)]
        trials += [replace(_trial(cell, 9, len(trials) + 1), status="failed", reason="fio: no space\nmore")] * failed
    measurements = measurement_frame(rows)
    return {
        "trials": pd.DataFrame([vars(trial) for trial in trials], columns=list(Trial.__dataclass_fields__)),
        "measurements": measurements,
        "estimates": estimate_frame(the_sweep, measurements, run_id="r", box="b"),
        "answer_metrics": answer_metrics(the_sweep, measurements),
        "steps": figure_steps(the_sweep, measurements),
    }


def _trial(cell: Cell, block: int, number: int) -> Trial:
    return Trial(
        trial_id=f"t{number:04d}",
        block=block,
        warmup=block < 1,
        cell=cell.id,
        filesystem=cell.filesystem.name,
        workload=cell.workload.name,
        tool="dd",
        factors=cell.workload.factors,
        mount=f"m-{cell.filesystem.name}",
        status="ok",
        reason="",
        started_at="",
        elapsed_s=1.0,
    )


def _measurements(side: str, value: float) -> list[Measurement]:
    table = [(f"{side}_bandwidth", value, ""), ("elapsed", 5.0, ""), ("bytes", 512.0 * MIB, side)]
    return [Measurement(metric=metric, value=v, unit=METRICS[metric], label=label) for metric, v, label in table]


def found(code: str, evidence: Evidence) -> list[Caveat]:
    caveats = list(CHECKS[code](evidence))
    assert all(caveat.code == code for caveat in caveats)
    assert all(caveat.severity in CHECKS[code].severities for caveat in caveats)
    return caveats


def the_only(code: str, evidence: Evidence) -> Caveat:
    (caveat,) = found(code, evidence)
    return caveat


def the_two(code: str, evidence: Evidence) -> tuple[Caveat, Caveat]:
    first, second = found(code, evidence)
    return first, second


def moved(share: float, **devices: float) -> dict[str, DeviceBytes]:
    """Traffic of both devices of the chain, as shares of 512 MiB."""
    shares = {"loop": share, "disk": share, **devices}
    numbers = {"loop": "7:0", "disk": "254:0"}
    return {numbers[name]: DeviceBytes(int(each * 512 * MIB), int(each * 512 * MIB)) for name, each in shares.items()}


# --- served from the cache --------------------------------------------------------------------------------------------


def test_a_read_that_the_page_cache_answered_is_a_warning() -> None:
    """Trap: a read served from the page cache is reported as the disk's speed."""
    caveat = the_only("cache-served", build(make(), traffic=moved(0.0)))
    assert (caveat.severity, caveat.scope, caveat.subject) == ("warning", "cell", "ext4/r")
    assert "the device delivered 0% of the bytes read" in caveat.message
    assert "This is not the speed of the device: read more than the memory holds, or cold" in caveat.message


def test_a_warm_read_that_was_asked_for_is_only_noted() -> None:
    the_sweep = make(workloads={"r": {**READ, "cache": "warm"}})
    caveat = the_only("cache-served", build(the_sweep, traffic=moved(0.0)))
    assert caveat.severity == "note"
    assert "as the sweep asks with cache: warm. This is not the speed of the device." in caveat.message


def test_an_image_in_the_cache_below_the_loop_device_is_caught() -> None:
    """The loop device delivered every byte, but the device below it did not: the image was in the page cache."""
    through = frozenset({"m-ext4"})
    caveat = the_only("cache-served", build(make(), traffic=moved(1.0, disk=0.02), buffered_loops=through))
    assert "the device delivered 2% of the bytes read" in caveat.message


def test_a_part_from_the_cache_is_told_as_a_range_over_the_trials() -> None:
    evidence = build(make())
    traffic = dict(zip(evidence.traffic, map(moved, (0.5, 0.75, 1.0, 1.0, 1.0)), strict=True))
    assert "delivered 50% to 100% of" in the_only("cache-served", replace(evidence, traffic=traffic)).message


@pytest.mark.parametrize("share", [0.91, 1.0, 1.3])
def test_a_read_from_the_device_raises_nothing(share: float) -> None:
    assert found("cache-served", build(make(), traffic=moved(share))) == []


def test_a_file_system_in_memory_has_no_device_that_could_deliver() -> None:
    the_sweep = make(filesystems={"tmpfs": {"type": "tmpfs", "size": "1GiB"}})
    assert found("cache-served", build(the_sweep, traffic=moved(0.0))) == []


def test_warm_up_trials_and_trials_without_counters_are_not_judged() -> None:
    evidence = build(make(), traffic=moved(0.0))
    assert found("cache-served", replace(evidence, trials=evidence.trials.assign(warmup=True))) == []
    assert found("cache-served", replace(evidence, traffic={})) == []


def test_devices_that_the_kernel_does_not_count_say_nothing() -> None:
    """Missing stays missing: not counted is not 0 %."""
    assert found("cache-served", build(make(), traffic={"8:0": DeviceBytes(0, 0)})) == []


@pytest.mark.parametrize(("name", "raised"), [("ext4-cold-read", False), ("ext4-warm-read", True)])
def test_recorded_counters_of_a_cold_and_a_warm_read_are_told_apart(name: str, raised: bool) -> None:
    levels = device_levels({"evidence.txt": (DATA / "evidence" / "ext4.txt").read_text()})
    before, after = ((DATA / "trials" / name / f"{when}.txt").read_text() for when in ("before", "after"))
    evidence = build(make(), traffic=device_traffic(before, after), levels={"m-ext4": levels})
    assert bool(found("cache-served", evidence)) == raised


# --- not flushed ------------------------------------------------------------------------------------------------------


def test_a_write_that_had_not_reached_the_device_is_a_warning() -> None:
    """Trap: 598 MB/s into the page cache."""
    caveat = the_only("not-flushed", build(make(workloads={"w": WRITE}), traffic=moved(0.05)))
    assert (caveat.severity, caveat.subject) == ("warning", "ext4/w")
    assert "the device had taken 5% of the bytes written when the tool finished" in caveat.message
    assert "dd: conv=fdatasync, fio: end_fsync" in caveat.message


def test_a_write_that_reached_the_device_raises_nothing_nor_does_a_read() -> None:
    assert found("not-flushed", build(make(workloads={"w": WRITE}))) == []
    assert found("not-flushed", build(make(), traffic=moved(0.0))) == []


def test_writes_that_are_not_told_by_side_are_weakened_whole() -> None:
    """fs_mark counts files: what was not flushed is in that rate, and no metric begins with write_."""
    own = build(make(workloads={"w": WRITE}), traffic=moved(0.05))
    assert the_only("not-flushed", own).metrics == "write_"
    renamed = own.measurements.replace({"metric": {"write_bandwidth": "file_rate"}})
    assert the_only("not-flushed", replace(own, measurements=renamed)).metrics == ""


# --- flushed, but not only this ---------------------------------------------------------------------------------------


def of_fs_mark(sync: str) -> Evidence:
    workloads = {"f": {"tool": "fs_mark", "count": 10, "file_size": "1KiB", "sync": sync}}
    return replace(build(make()), sweep=make(workloads=workloads))


@pytest.mark.parametrize("sync", ["sync", "sync_post", "sync_post_reverse"])
def test_a_method_of_fs_mark_that_flushes_the_whole_machine_is_a_warning(sync: str) -> None:
    """Trap: fs_mark -S 2|4|6 call sync() for the whole machine."""
    caveat = the_only("syncs-everything", of_fs_mark(sync))
    assert (caveat.severity, caveat.scope, caveat.subject) == ("warning", "cell", "ext4/f")
    assert f"sync: {sync} calls sync(), which flushes every file system of the machine" in caveat.message


@every_row("sync", ["none", "fsync", "post", "post_reverse"])
def test_a_method_that_flushes_its_own_files_raises_nothing(sync: str) -> None:
    assert found("syncs-everything", of_fs_mark(sync)) == []


def on_lvm(kind: str, cache: str) -> Evidence:
    stacked = {"type": "ext4", "image": "1GiB", "members": 2, "stack": [{"layer": "lvm", "kind": kind}]}
    sweep = make(filesystems={"f": stacked}, workloads={"r": {**READ, "cache": cache}}, baseline="f")
    return replace(build(make()), sweep=sweep)


@pytest.mark.parametrize("kind", ["cache", "writecache"])
def test_cold_trials_on_a_cache_of_lvm_are_cold_in_memory_alone(kind: str) -> None:
    caveat = the_only("tier-not-cold", on_lvm(kind, "cold"))
    assert (caveat.severity, caveat.subject) == ("note", "f/r")
    assert "cold in memory alone" in caveat.message


@every_row(("kind", "cache"), [("cache", "warm"), ("striped", "cold")])
def test_other_trials_on_lvm_have_no_tier_that_stays_warm(kind: str, cache: str) -> None:
    assert found("tier-not-cold", on_lvm(kind, cache)) == []


# --- figures that one has and another has not -------------------------------------------------------------------------


def labelled(**labels: tuple[str, ...]) -> Evidence:
    """One trial on each of two file systems, with a sync rate for each of the labels."""
    filesystems = dict.fromkeys(labels, EXT4)
    the_sweep = make(filesystems=filesystems, workloads={"p": {"tool": "pg_test_fsync"}})
    rows = measurement_frame(
        (_trial(cell, 1, number), Measurement(metric="sync_rate", value=9.0, unit="1/s", label=label))
        for number, cell in enumerate(the_sweep.cells, start=1)
        for label in labels[cell.filesystem.name]
    )
    return replace(build(make()), sweep=the_sweep, measurements=rows, answer_metrics=answer_metrics(the_sweep, rows))


def with_ios(*ios: int, metrics: tuple[str, ...] = (), label: str = "") -> Evidence:
    """Trials of two cells that read so often, with the percentiles that they all give."""
    the_sweep = make(metrics=list(metrics))
    rows = without_partial(
        measurement_frame(
            (_trial(cell, block, block), row)
            for cell in the_sweep.cells
            for block, number in enumerate(ios, start=1)
            for row in [
                Measurement(metric="read_bandwidth", value=1e8, unit="B/s"),
                Measurement(metric="read_ios", value=number, unit="1", label=label),
                *(
                    Measurement(metric=f"read_latency_{part}", value=1e-4, unit="s", label=label)
                    for part, percent in (("p50", 50), ("p95", 95), ("p99", 99), ("p99_9", 99.9))
                    if enough(number, percent)
                ),
            ]
        )
    )
    return replace(build(make()), sweep=the_sweep, measurements=rows, answer_metrics=answer_metrics(the_sweep, rows))


def test_a_percentile_that_one_trial_has_too_few_ios_for_is_missing_with_the_reason() -> None:
    warning = the_only("few-operations", with_ios(20_000, 9_999, metrics=("read_latency_p99_9", "read_latency_p99")))
    assert (warning.severity, warning.metrics) == ("warning", "read_latency_p99_9")
    assert "9,999 I/Os, and 10,000 are needed" in warning.message
    assert found("few-operations", with_ios(20_000, 10_000, metrics=("read_latency_p99_9",))) == []
    assert found("figures-missing", with_ios(20_000, 9_999, metrics=("read_latency_p99_9",))) == []


def test_percentiles_that_were_not_asked_for_are_told_to_be_missing_in_one_note() -> None:
    note = the_only("few-operations", with_ios(5_000, 100, label="job"))
    assert (note.severity, note.scope) == ("note", "run")
    assert "100 I/Os, and 200 are needed" in note.message
    assert " 2 other figures are missing, too." in note.message


def test_methods_that_one_file_system_does_not_offer_are_told_to_be_missing() -> None:
    """Trap: n/a rows are neither zero nor a failure."""
    note = the_only("figures-missing", labelled(disk=("fsync", "open_sync", "open_datasync"), ramfs=("fsync",)))
    assert (note.severity, note.subject, note.metrics) == ("note", "ramfs/p", "sync_rate")
    assert note.message.startswith("sync_rate has no figure for open_sync, open_datasync, which others of the sweep")


def test_a_metric_that_a_file_system_lacks_whole_is_named_without_an_empty_label() -> None:
    """Trap: "has no figure for , which others have: the tool gave none", of a line that was not read."""
    the_sweep = make(filesystems={"a": EXT4, "b": EXT4}, metrics=["read_bandwidth", "read_latency_mean"])
    rows = measurement_frame(
        (_trial(cell, 1, number), Measurement(metric=metric, value=9.0, unit=METRICS[metric]))
        for number, cell in enumerate(the_sweep.cells, start=1)
        for metric in ("read_bandwidth", "read_latency_mean")[: 1 if cell.filesystem.name == "b" else 2]
    )
    lacking = replace(build(make()), sweep=the_sweep, measurements=rows, answer_metrics=answer_metrics(the_sweep, rows))
    notes = found("figures-missing", lacking)
    assert {(caveat.severity, caveat.subject.split("/")[0]) for caveat in notes} == {("note", "b")}
    for caveat in notes:
        assert caveat.message.startswith("read_latency_mean has no figure, which others of the sweep have")


def test_a_figure_that_some_trials_of_a_cell_lack_is_a_warning() -> None:
    """Trap: the mean of a cell over the trials that happened to have the figure, and no word."""
    the_sweep = make(metrics=["read_latency_mean"])
    cell = the_sweep.cells[0]
    whole = build(the_sweep)
    trials = whole.counted[cell.id]
    rows = measurement_frame(
        (replace(_trial(cell, block, block), trial_id=trial_id), Measurement(metric=metric, value=9.0, unit=unit))
        for block, trial_id in enumerate(trials, start=1)
        for metric, unit in (("read_bandwidth", "B/s"), ("read_latency_mean", "s"))[: 1 if block == 1 else 2]
    )
    partly = replace(whole, measurements=rows, answer_metrics=answer_metrics(the_sweep, rows))
    (caveat,) = [each for each in found("figures-missing", partly) if each.severity == "warning"]
    assert caveat.subject == cell.id
    assert caveat.message.startswith(f"1 of its {len(trials)} trials have no figure of read_latency_mean: ")


def test_methods_that_all_offer_or_none_raise_nothing() -> None:
    assert found("figures-missing", labelled(disk=("fsync",), ramfs=("fsync",))) == []
    assert found("figures-missing", labelled(disk=("fsync",), ramfs=())) == []  # all its trials failed: told elsewhere


# --- options ----------------------------------------------------------------------------------------------------------


def test_a_file_system_whose_device_the_kernel_hides_is_told() -> None:
    """/ is overlay in most containers: no check of the cache must be taken for passed there."""
    why = "the kernel does not tell the device below overlay"
    caveat = the_only("cache-not-checked", build(make(), unseen={"ext4": why}))
    assert (caveat.severity, caveat.subject) == ("warning", "ext4")
    assert "the kernel does not tell the device below overlay" in caveat.message


def option(state: str, name: str = "data=writeback", filesystem: str = "ramfs") -> OptionEvidence:
    return OptionEvidence(filesystem=filesystem, option=name, kind="mount", state=state, kernel_says="nothing")  # type: ignore[arg-type]


@every_row(("on_ineffective", "severity"), [("error", "error"), ("caveat", "warning")])
@every_row("state", ["ignored", "changed"])
def test_an_option_that_was_not_heeded_is_never_silence(state: str, on_ineffective: str, severity: str) -> None:
    """Trap: ramfs takes data=writeback, nobarrier and nonsense, and returns 0."""
    heard = build(make(design={"on_ineffective": on_ineffective}), options=[option(state)])
    caveat = the_only("option-not-in-effect", heard)
    assert (caveat.severity, caveat.scope, caveat.subject) == (severity, "filesystem", "ramfs")
    assert f"data=writeback was asked for and was {state}: the kernel says nothing" in caveat.message
    assert "remove the option" in caveat.message
    assert found("option-not-visible", heard) == []


def test_options_that_nothing_shows_are_one_note_for_each_file_system() -> None:
    two = [option("not visible", "a"), option("not visible", "b")]
    note = the_only("option-not-visible", build(make(), options=two))
    assert (note.severity, note.scope, note.subject) == ("note", "filesystem", "ramfs")
    assert note.message.startswith("a, b: asked for, not refused, and shown nowhere")
    assert "nothing here can confirm" in note.message
    assert found("option-not-in-effect", build(make(), options=two)) == []
    more = build(make(), options=[*two, option("not visible", "c", "other")])
    assert [each.subject for each in found("option-not-visible", more)] == ["ramfs", "other"]


@pytest.mark.parametrize("state", ["in effect", "added"])
def test_an_option_in_effect_and_one_that_the_kernel_added_raise_nothing(state: str) -> None:
    heard = build(make(), options=[option(state)])
    assert found("option-not-in-effect", heard) + found("option-not-visible", heard) == []


# --- too few, noisy, short --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "severity", "words"),
    [
        (
            [100e6],
            "error",
            "n = 1: one trial has no spread and so no interval. Set repeats (or until.min) to 5 or more.",
        ),
        ([100e6, 101e6], "warning", "n = 2: too few"),
        ([100e6, 101e6, 102e6, 103e6], "warning", "n = 4: too few"),
    ],
)
def test_too_few_trials_for_an_interval(values: list[float], severity: str, words: str) -> None:
    """n < 2 gives NaN bounds and a caveat."""
    caveat = the_only("too-few", build(make(), values={"ext4/r": values}))
    assert caveat.severity == severity
    assert words in caveat.message


def test_how_many_cells_vary_by_more_than_a_tenth_is_noted_and_weakens_none() -> None:
    """The intervals hold it already."""
    values = {"ext4/a": [50e6, 100e6, 150e6, 100e6, 100e6], "ext4/b": [80e6, 100e6, 120e6, 100e6, 100e6]}
    caveat = the_only("noisy", build(make(workloads=dict.fromkeys("abc", READ)), values=values))
    assert (caveat.severity, caveat.scope) == ("note", "run")
    assert caveat.message.startswith(
        "Of 3 cells, 2 vary by more than 10% from trial to trial (coefficient of variation), most of all "
        "read_bandwidth of ext4/a, by 35%. "
    )
    assert doubts_by_cell([caveat]) == {}


def test_steady_trials_and_a_single_one_are_not_noisy() -> None:
    assert found("noisy", build(make(), values={"ext4/r": [100e6]})) == []


# --- failed and left out ----------------------------------------------------------------------------------------------


def test_failed_trials_are_told_with_count_and_reason() -> None:
    """Trap: a failed mkfs that is only a log line. An error where no trial of the cell is left."""
    caveat = the_only("failed-trials", build(make(), failed=2))
    assert (caveat.severity, caveat.subject) == ("warning", "ext4/r")
    assert the_only("failed-trials", build(make(), failed=2, values={"ext4/r": []})).severity == "error"
    assert caveat.message.startswith("2 of its 7 trials gave no figure: fio: no space. ")


@pytest.mark.parametrize(
    ("entry", "where"),
    [({"size": "64MiB"}, "mounted with that source"), ({}, "the box's own")],
    ids=["own", "the box's"],
)
def test_what_shmfs_is_today_is_told(entry: dict[str, str], where: str) -> None:
    caveat = the_only("historic-name", build(make(filesystems={"shm": {"type": "shmfs", **entry}})))
    assert (caveat.severity, caveat.subject) == ("note", "shm")
    assert "the name that tmpfs had in kernel 2.4" in caveat.message
    assert where in caveat.message


def test_a_cell_that_was_set_aside_is_told_with_the_failure_that_did_it_and_is_not_skipped() -> None:
    evidence = build(make(), failed=1)
    failed = evidence.trials["status"] == "failed"
    cell = evidence.trials[failed].iloc[0]["cell"]
    later = evidence.trials[failed & (evidence.trials["cell"] == cell)].assign(
        trial_id="t0099", status="skipped", reason="set aside: t0006 failed: fio: no space"
    )
    aside = replace(evidence, trials=pd.concat([evidence.trials, later, later]))
    (caveat,) = [each for each in found("failed-trials", aside) if each.subject == cell]
    assert caveat.message == (
        "1 of its 8 trials gave no figure: fio: no space. It was set aside: 2 of its trials were not run any more. "
        "The estimate rests on the others."
    )
    assert found("skipped", aside) == []
    none = replace(aside, trials=aside.trials[aside.trials["status"] != "ok"])
    assert "It has no estimate." in found("failed-trials", none)[0].message


def test_a_figure_of_a_second_attempt_is_noted() -> None:
    evidence = build(make())
    trials = evidence.trials.copy()
    trials.loc[trials["trial_id"] == "t0003", "attempts"] = 2
    caveat = the_only("retried", replace(evidence, trials=trials))
    assert caveat.message.startswith("in 1 of its 5 trials (t0003) the first attempt failed for a reason that may pass")
    assert "raw/t0003/attempt-1/reason" in caveat.message


def test_trials_of_one_attempt_and_those_that_failed_all_the_same_are_not_noted() -> None:
    failed = build(make(), failed=1)
    trials = failed.trials.assign(attempts=[2 if each == "failed" else 1 for each in failed.trials["status"]])
    assert found("retried", replace(failed, trials=trials)) == []


def test_cells_that_were_skipped_are_named_with_the_reason_and_count_as_no_failure() -> None:
    the_sweep = make(filesystems={"ext4": EXT4, "huge": {"type": "hugetlbfs", "size": "64MiB"}})
    evidence = build(the_sweep)
    trials = evidence.trials.copy()
    huge = trials["filesystem"] == "huge"
    trials.loc[huge, ["status", "reason"]] = ["skipped", "hugetlbfs has no write()"]
    evidence = replace(evidence, trials=trials)
    caveat = the_only("skipped", evidence)
    assert (caveat.severity, caveat.scope, caveat.subject) == ("warning", "filesystem", "huge")
    assert caveat.message == "r: not measured. hugetlbfs has no write()."
    assert found("failed-trials", evidence) == []


def test_file_systems_that_were_left_out_are_named_with_the_reason_once() -> None:
    reason = "mounting needs root or password-less sudo on the box"
    the_sweep = replace(make(), left_out={"tmpfs": f"tmpfs: {reason}", "ext4": f"ext4: {reason}"})
    caveat = the_only("left-out", build(the_sweep))
    assert (caveat.severity, caveat.scope) == ("warning", "run")
    assert caveat.message.startswith(f"tmpfs, ext4 were left out: {reason}. ")


# --- images and memory ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fstype", ["tmpfs", "ramfs"])
def test_an_image_in_memory_measures_no_disk(fstype: str) -> None:
    caveat = the_only("image-in-memory", build(make(), backing_types={"ext4": fstype}))
    assert (caveat.severity, caveat.subject) == ("warning", "ext4")
    assert f"its image lies on {fstype}, so no disk is measured. Set mount_root" in caveat.message


def test_an_image_on_a_disk_is_noted_as_an_image() -> None:
    evidence = build(make(), backing_types={"ext4": "xfs"})
    assert found("image-in-memory", evidence) == []
    caveat = the_only("loop-image", evidence)
    assert caveat.severity == "note"
    assert "an image file of 1GiB on xfs" in caveat.message
    assert "give the box a scratch device" in caveat.message


def test_a_file_system_that_is_on_no_image_is_not_called_one() -> None:
    assert found("loop-image", build(make(filesystems={"d": {"type": "dir"}}), levels={"m-d": CHAIN})) == []


def test_ramfs_is_noted_to_have_no_size_of_its_own() -> None:
    """Trap: ramfs has no size limit at all."""
    the_sweep = make(filesystems={"ramfs": {"type": "ramfs", "size": "1GiB"}})
    caveat = the_only("size-not-enforced", build(the_sweep, levels={"m-ramfs": ()}))
    assert (caveat.severity, caveat.subject) == ("note", "ramfs")
    assert "below 1GiB by its plan" in caveat.message


def test_tmpfs_has_a_size_that_the_kernel_keeps() -> None:
    assert found("size-not-enforced", build(make(filesystems={"tmpfs": {"type": "tmpfs", "size": "1GiB"}}))) == []


def test_without_root_the_caches_could_not_be_dropped() -> None:
    caveat = the_only("caches-not-dropped", build(make(), facts=known(rights="none")))
    assert (caveat.severity, caveat.scope) == ("note", "run")
    assert "without root only the pages of the measured files could be evicted" in caveat.message


@pytest.mark.parametrize("rights", ["root", "sudo"])
def test_with_root_or_where_it_was_not_asked_nothing_is_said_of_caches(rights: str) -> None:
    assert found("caches-not-dropped", build(make(), facts=known(rights=rights))) == []
    careless = make(design={"repeats": 5, "drop_caches": False})
    assert found("caches-not-dropped", build(careless, facts=known(rights="none"))) == []


def test_an_emulated_box_is_told() -> None:
    caveat = the_only("emulated", build(make(), facts=known(rights="root", emulated=True)))
    assert (caveat.severity, caveat.scope, caveat.subject) == ("warning", "run", "")
    assert "the box is emulated" in caveat.message
    assert "Measure there before you decide." in caveat.message


@pytest.mark.parametrize("emulated", [False, None])
def test_nothing_is_said_of_a_box_that_is_not_emulated_or_does_not_tell(emulated: bool | None) -> None:
    assert found("emulated", build(make(), facts=known(rights="root", emulated=emulated))) == []


# --- all of them ------------------------------------------------------------------------------------------------------


QUIET = Around(
    contained_by="cgroup v2",
    seconds=5.0,
    clock_step_s=0.002,
    stolen=0.0,
    others=0.01,
    own=0.2,
    pressure={"cpu": 0.05, "io": 0.3, "memory": 0.0},
    swapped_pages=0,
    resident_bytes=0,
    throttled=0,
    celsius={"/sys/class/hwmon/hwmon2/temp1_input": 40.0},
    discarded={"254:0": 0},
    lazy_init=False,
    kernel_log=(),
    names={"7:0": "loop0", "254:0": "vda"},
)
"""What a box that does nothing else tells of a trial."""
KNOWN = known(
    rights="root",
    virtualization="none",
    emulated=False,
    power="mains",
    cpu_governor="performance",
    swap_used_bytes=0,
    page_bytes=4096,
    memory_bytes=16 * 1024**3,
    block_devices=[{"name": "vda", "type": "disk", "rotational": True, "parent": None}],
    kernel_config={"KASAN": "n"},
    session_limits={"memory_bytes": "no limit"},
    reclaim={"damon": "not running"},
)
"""The facts of a box that hides nothing, and of which nothing speaks against it."""
TEN = [100e6, 101e6, 99e6, 100.5e6, 99.5e6, 100.2e6, 98.9e6, 101.3e6, 99.9e6, 100.8e6]


def quiet(the_sweep: Sweep | None = None, **more: Any) -> Evidence:
    """Ten trials of each cell on a box that hides nothing."""
    chosen = the_sweep or make()
    evidence = build(chosen, values={cell.id: TEN for cell in chosen.cells}, facts=KNOWN)
    return replace(evidence, **{"around": dict.fromkeys(evidence.around, QUIET), **more})


@pytest.mark.slow
def test_a_good_run_has_no_caveat_but_that_of_its_image() -> None:
    findings = find_caveats(quiet(backing_types={"ext4": "ext4"}))
    assert [caveat.code for caveat in findings.caveats] == ["loop-image"]
    assert findings.not_checked == {
        "not-steady": "no trial kept a log over time of ten windows or more (fio: log_avg_msec)",
        "control-failed": "no workload was measured both cold and warm on a file system in memory, in two blocks or "
        "more",
    }
    assert set(findings.passed) == set(CHECKS) - {"loop-image", *findings.not_checked}


def test_a_run_of_an_earlier_version_says_what_could_not_be_looked_at() -> None:
    """Missing stays missing: what was not kept has not passed."""
    findings = find_caveats(build(make(), facts=known(rights="root"), traffic=moved(1.0)))
    assert set(findings.not_checked) >= {
        "box-busy",
        "time-stolen",
        "throttled",
        "swapping",
        "clock-stepped",
        "kernel-message",
        "discards",
        "implausible",
        "on-battery",
        "frequency-scaling",
        "virtualised",
        "emulated",
        "drift",
    }
    assert all(findings.not_checked.values())
    assert not set(findings.not_checked) & set(findings.passed)
    assert set(findings.passed) >= {"cache-served", "not-flushed", "failed-trials", "noisy", "too-few"}


@pytest.mark.slow
def test_every_check_has_passed_or_raised_or_says_why_not() -> None:
    for evidence in (quiet(), build(make()), build(replace(make(), imported=True))):
        findings = find_caveats(evidence)
        told = [*{each.code for each in findings.caveats}, *findings.passed, *findings.not_checked]
        assert sorted(told) == sorted(CHECKS)


def test_the_worst_comes_first() -> None:
    the_sweep = replace(make(), left_out={"x": "x: y"})
    evidence = build(
        the_sweep, failed=1, backing_types={"ext4": "tmpfs"}, facts=known(rights="none"), values={"ext4/r": [1.0]}
    )
    severities = [caveat.severity for caveat in find_caveats(evidence).caveats]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)
    assert set(severities) == {"error", "warning", "note"}


def test_a_run_in_which_everything_failed_is_told_and_does_not_crash() -> None:
    caveats = find_caveats(build(make(), values={"ext4/r": []}, failed=3)).caveats
    assert [caveat.code for caveat in caveats if caveat.severity == "error"] == ["failed-trials"]


@pytest.mark.slow
@every_row("code", CHECKS)
def test_every_check_keeps_the_rules_of_checks(code: str) -> None:
    """On a good run; where each is raised, the tests of these files say one by one."""
    for rule in conformance.OF_CHECK:
        rule(CHECKS[code])
    empty, evidence = build(replace(make(), filesystems=(), workloads=())), quiet()
    case = conformance.CheckCase(CHECKS[code], evidence, empty, raised=bool([*CHECKS[code](evidence)]))
    for each in conformance.OF_RUN:
        each(case)


def _codes_of(tree: ast.AST, name: Callable[..., Any]) -> set[str]:
    """The codes with which tests call this: each by itself, or in the rows of a table."""
    codes = set()
    for test in ast.walk(tree):
        for call in ast.walk(test) if isinstance(test, ast.FunctionDef) else ():
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == name.__name__:
                rows = [call.args[0]] if isinstance(call.args[0], ast.Constant) else test.decorator_list
                codes |= {part.value for row in rows for part in ast.walk(row) if isinstance(part, ast.Constant)}
    return {code for code in codes if code in CHECKS}


def test_logs_from_elsewhere_are_told_and_only_their_figures_checked() -> None:
    imported = replace(make(), imported=True)
    caveat = the_only("imported", build(imported, facts=known(rights="none", emulated=True)))
    assert (caveat.severity, caveat.scope, caveat.subject) == ("warning", "run", "")
    assert "not known, and were not checked" in caveat.message
    findings = find_caveats(build(imported))
    assert findings.passed == [
        "altered",
        "logs-differ",
        "failed-trials",
        "excluded",
        "few-operations",
        "figures-missing",
        "unequal-work",
        "too-short",
        "too-few",
        "noisy",
        "rounded",
    ], "a check that looked at nothing has not passed"
    assert findings.not_checked["cache-served"] == "the figures are from logs made elsewhere, which do not tell it"


def test_logs_that_do_not_all_state_the_same_options_have_a_caveat_that_lists_them() -> None:
    values = {"ext4": ("4",), "tmpfs": ("1", "not stated")}
    options = {"numjobs": {"stated": 3, "values": values}, "bs": {"stated": 3, "values": {"ext4": ("4KiB",)}}}
    stated = {"r": {"outputs": 3, "options": options, "filesystems": ("ext4", "tmpfs")}}
    imported = replace(make(), imported=True)
    caveat = the_only("logs-differ", build(imported, facts=known(stated=stated)))
    assert (caveat.severity, caveat.scope) == ("warning", "run")
    lines = "numjobs: 4 in ext4, 1 or not stated in tmpfs; bs: 4KiB in ext4, not stated in tmpfs."
    assert f"do not all state the same options. They differ in this: {lines}" in caveat.message
    del options["numjobs"], options["bs"]
    assert found("logs-differ", build(imported, facts=known(stated=stated))) == []


def test_trials_by_hand_are_a_note_and_a_comparison_of_them_is_a_warning() -> None:
    alone = the_only("by-hand", build(replace(make(), by_hand=True)))
    assert alone.severity == "note"
    assert "not fixed beforehand" in alone.message
    two = make(filesystems={"ext4": EXT4, "tmpfs": {"type": "tmpfs", "size": "1GiB"}}, baseline="ext4")
    compared = the_only("by-hand", build(replace(two, by_hand=True)))
    assert compared.severity == "warning"
    assert "No order was drawn" in compared.message


def test_what_was_altered_and_accepted_is_a_warning() -> None:
    caveat = the_only("altered", build(make(), altered=["trials.jsonl, line 3: t0003 (accepted 2026-11-22)"]))
    assert (caveat.severity, caveat.scope) == ("warning", "run")
    assert "altered after it was written: trials.jsonl, line 3: t0003 (accepted 2026-11-22)." in caveat.message


def test_a_run_without_checksums_has_not_passed() -> None:
    assert "an earlier version" in find_caveats(build(make(), has_checksums=False)).not_checked["altered"]


def test_plug_ins_of_another_version_are_a_warning() -> None:
    said = "mountlab-untar 0.1.0 (tools: untar): version 0.2.0 is installed now"
    caveat = the_only("plug-ins-differ", build(make(), plugins=[said]))
    assert (caveat.severity, caveat.scope) == ("warning", "run")
    assert said in caveat.message


NOT_OF_A_PLAIN_RUN = (
    "altered", "by-hand", "cache-not-checked", "clients-apart", "emulated", "extended", "failed-trials",
    "figures-missing", "historic-name", "imported", "left-out", "noisy", "not-precise", "plug-ins-differ",
    "retried", "rounded", "skipped", "straggler", "syncs-everything", "tier-not-cold", "timed-out", "too-few",
)  # fmt: skip
NOT_OF_A_QUIET_RUN = (
    "box-busy", "compressible-data", "debug-kernel", "device-read-less", "excluded", "frequency-scaling",
    "implausible", "kernel-message", "memory-limited", "sides-differ", "swap-in-use", "throttled",
    "virtualised",
)  # fmt: skip


def test_a_run_in_which_nothing_is_wrong_raises_none_of_these() -> None:
    assert [code for code in NOT_OF_A_PLAIN_RUN if found(code, build(make()))] == []
    assert [code for code in NOT_OF_A_QUIET_RUN if found(code, quiet())] == []


def test_each_check_is_raised_and_not_raised_in_these_files() -> None:
    """A new entry of CHECKS fails here until it has both tests."""
    trees = [ast.parse(file.read_text()) for file in sorted(Path(__file__).parent.glob("test_checks*.py"))]
    assert {code for tree in trees for one in (the_only, the_two) for code in _codes_of(tree, one)} == set(CHECKS)
    silent = {code for tree in trees for code in _codes_of(tree, found)}
    assert silent | {*NOT_OF_A_PLAIN_RUN, *NOT_OF_A_QUIET_RUN} == set(CHECKS)


@every_row("code", CHECKS)
def test_every_check_says_when_it_raises_its_caveat(code: str) -> None:
    _, _, when = (CHECKS[code].find.__doc__ or "").partition("\n\n")
    assert when.strip().endswith((".", ")."))


# --- a stopping rule that gave up, and figures of few digits ----------------------------------------------------------

RULE = Until(half_width=0.03, min=5, max=40)
STOP = CellStop(cell="ext4/r", reason="max reached", blocks=40, n=40, half_width=0.071, metric="read_bandwidth")


def stopped(**changes: Any) -> Evidence:
    evidence = build(make())
    design = replace(evidence.sweep.design, until=RULE)
    return replace(evidence, sweep=replace(evidence.sweep, design=design), stops=[replace(STOP, **changes)])


@pytest.mark.parametrize(("reason", "key"), [("max reached", "until.max"), ("budget", "until.budget")])
def test_a_rule_that_ended_before_the_cell_was_precise_is_noted(reason: str, key: str) -> None:
    caveat = the_only("not-precise", stopped(reason=reason))
    assert (caveat.severity, caveat.subject) == ("note", "ext4/r")
    assert "after 40 blocks the half width is ± 7.1% (read_bandwidth), and ± 3.0% was asked for" in caveat.message
    assert key in caveat.message


@pytest.mark.parametrize("changes", [{"reason": "precise"}, {"half_width": 0.029}, {"reason": "not finished"}])
def test_a_cell_that_is_precise_or_was_interrupted_raises_nothing(changes: dict[str, Any]) -> None:
    assert found("not-precise", stopped(**changes)) == []


def of_filebench(latency_s: float) -> Evidence:
    entry = {"tool": "filebench", "workload": "createfiles", "nfiles": 100, "filesize": "1KiB", "threads": 1}
    the_sweep = make(workloads={"w": entry})
    rows = [
        (_trial(cell, block, block), Measurement(metric="operation_latency", value=latency_s, unit="s", step=1e-6))
        for cell in the_sweep.cells
        for block in range(1, 6)
    ]
    frame = measurement_frame(rows)
    estimates = estimate_frame(the_sweep, frame, run_id="r", box="b")
    base, answers = build(make()), answer_metrics(the_sweep, frame)
    steps = figure_steps(the_sweep, frame)
    return replace(base, sweep=the_sweep, measurements=frame, estimates=estimates, answer_metrics=answers, steps=steps)


def test_a_latency_of_few_microseconds_is_told_to_be_rounded() -> None:
    caveat = the_only("rounded", of_filebench(2e-6))
    assert (caveat.severity, caveat.metrics) == ("note", "operation_latency")
    assert "500\u00a0ns (25.0%)" in caveat.message


def test_a_latency_of_many_digits_and_other_figures_raise_nothing() -> None:
    assert found("rounded", of_filebench(150e-6)) == []


def test_what_has_no_ratio_cannot_be_imprecise_as_one() -> None:
    evidence = stopped(half_width=math.nan)
    assert len(found("not-precise", evidence)) == 1
    design = replace(evidence.sweep.design, until=replace(RULE, of="comparisons"))
    assert found("not-precise", replace(evidence, sweep=replace(evidence.sweep, design=design))) == []


@pytest.mark.parametrize(
    ("estimate", "words"), [("mean", "roughly normal: then"), ("median", "no end below 6"), ("geometric", "logarithms")]
)
def test_too_few_says_what_the_interval_of_that_figure_rests_on(estimate: str, words: str) -> None:
    evidence = build(make(), values={"ext4/r": [1e8, 1.1e8, 1.2e8]})
    design = replace(evidence.sweep.design, estimate=estimate)
    assert words in the_only("too-few", replace(evidence, sweep=replace(evidence.sweep, design=design))).message

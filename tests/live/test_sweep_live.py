"""Whole sweeps on the local box: real mounts, real tools, and nothing left afterwards."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mountlab.box.connection import BoxConnection
from mountlab.box.embedded import open_box
from mountlab.box.leftovers import Leftover, remove_leftovers
from mountlab.box.testing import RecordingBox
from mountlab.core.units import MIB
from mountlab.results import paths, store
from mountlab.results.journal import read_journal
from mountlab.results.store import Run
from mountlab.results.writer import RunWriter
from mountlab.runner import workflow
from mountlab.runner.sweep_runner import run_sweep
from scipy import stats
from sweeps import DD_READ, DD_WRITE, DIR, EXT4, FIO, RAMFS, TMPFS, Silent, as_is

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("fio")]


def leftovers(connection: BoxConnection | None = None) -> list[Leftover]:
    """On the box, by a connection that is open already, or one more."""
    if connection:
        return remove_leftovers(connection, dry_run=True)
    with open_box(paths.load_box("local")) as another:
        return remove_leftovers(another, dry_run=True)


CELLS = 3 + 2


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Three file systems, dd on all and fio on one of them, two blocks and a warm-up."""
    resolved = as_is(
        filesystems={"tmpfs": TMPFS, "ramfs": {**RAMFS, "options": ["data=writeback"]}, "ext4": EXT4},
        workloads={"dd-write": DD_WRITE, "fio": {**FIO, "rw": ["randread", "write"]}},
        design={"repeats": 2, "warmup": 1, "on_ineffective": "caveat"},
        baseline="ext4",
        exclude=[{"filesystem": name, "workload": "fio"} for name in ("tmpfs", "ramfs")],
    )
    path = workflow.run(resolved, results=tmp_path_factory.mktemp("results"))
    return store.load_run(path)


def test_every_trial_gives_figures(run: Run) -> None:
    assert list(run.trials["status"].unique()) == ["ok"], run.trials[["cell", "reason"]]
    assert len(run.trials) == CELLS * 3
    assert run.info.status == "complete"


def test_nothing_of_ours_is_left_on_the_box(run: Run) -> None:
    assert leftovers() == []


def test_warmup_trials_are_kept_and_not_counted(run: Run) -> None:
    assert run.trials["warmup"].sum() == CELLS
    main = run.estimates[run.estimates["metric"].isin(["read_bandwidth", "write_bandwidth", "mount_time"])]
    assert set(main["n"]) == {2}  # others may be missing from a trial: fio counts no disk in a few milliseconds


@pytest.mark.long
@pytest.mark.machine
def test_a_warm_read_is_recognised_as_served_by_the_page_cache_and_a_cold_one_is_not(results_dir: Path) -> None:
    """886 MB/s were once published for a hard disk that reads 60 MB/s. Somebody else who drops caches meanwhile makes a
    warm read cold: what the device of our own has counted decides."""
    resolved = as_is(filesystems={"ext4": EXT4}, workloads={"dd": DD_READ, "fio": {**FIO, "rw": "randread"}})
    run = store.load_run(workflow.run(resolved, results=results_dir))
    trials = run.trials.groupby("cell")["trial_id"]
    delivered = {cell: min(read_by_the_device(run, trial) for trial in rows) for cell, rows in trials}
    served = {caveat.subject: caveat.severity for caveat in run.caveats if caveat.code == "cache-served"}
    cached = [cell for cell, count in delivered.items() if count < 0.9 * 8 * MIB]
    assert served == {cell: "note" if "warm" in cell else "warning" for cell in cached}
    assert set(cached) <= {"ext4/dd cache=warm"}, "nobody else reads this device"


def read_by_the_device(run: Run, trial: str) -> int:
    """Bytes that our loop device delivered while the tool ran."""
    evidence = run.path / "raw" / run.trials.set_index("trial_id")["mount"][trial] / "evidence.txt"
    (name,) = re.findall(rf"/{run.path.name}/mnt/\S+ .* - ext4 /dev/(loop\d+) ", evidence.read_text())
    texts = [(run.path / "raw" / trial / side).read_text() for side in ("before.txt", "after.txt")]
    before, after = (int(re.findall(rf" {name} \d+ \d+ (\d+) ", text)[0]) for text in texts)
    return 512 * (after - before)


def test_what_was_asked_of_mount_is_compared_with_what_the_kernel_says(run: Run) -> None:
    """ramfs takes any word as an option, returns 0, and heeds none."""
    states = {(option.filesystem, option.option): option.state for option in run.options}
    assert states[("tmpfs", "size=67108864")] == "in effect"
    assert states[("ext4", "noatime")] == "in effect"
    assert states[("ext4", "direct_io: true")] == "in effect"
    assert states[("ramfs", "data=writeback")] == "ignored"
    assert [caveat.subject for caveat in run.caveats if caveat.code == "option-not-in-effect"] == ["ramfs"]


def test_raw_output_and_counters_are_kept_for_every_trial(run: Run) -> None:
    for row in run.trials.itertuples():
        kept = {file.name for file in (run.path / "raw" / row.trial_id).iterdir()}
        assert {"stdout", "stderr", "exit_status", "before.txt", "after.txt", "argv"} <= kept
        counters = (run.path / "raw" / row.trial_id / "before.txt").read_text()
        assert all(name in counters for name in ("/proc/diskstats", "/proc/vmstat", "/proc/stat"))
        assert ("fio.json" in kept) == (row.tool == "fio")


def test_estimates_can_be_recomputed_from_the_journal_and_the_raw_output_alone(run: Run) -> None:
    """The few lines of pandas and scipy that a reviewer would write."""
    journal = pd.read_json(run.path / "trials.jsonl", lines=True)
    journal = journal[(journal.tool == "fio") & (journal.status == "ok") & ~journal.warmup]
    journal["rw"] = journal.factors.map(lambda factors: factors["rw"])
    journal["value"] = journal.trial_id.map(lambda trial: bandwidth(run.path / "raw" / trial / "fio.json"))
    saved = pd.read_csv(run.path / "estimates.csv")
    for (filesystem, rw), values in journal.groupby(["filesystem", "rw"])["value"]:
        metric = "read_bandwidth" if "read" in rw else "write_bandwidth"
        row = saved[(saved.filesystem == filesystem) & (saved.rw == rw) & (saved.metric == metric)].squeeze()
        factor = np.exp(stats.t.ppf(0.975, len(values) - 1) * values.std() / values.mean() / np.sqrt(len(values)))
        by_hand = [values.mean(), values.mean() / factor, values.mean() * factor, values.std()]
        assert np.allclose([row["mean"], row.sd], [by_hand[0], by_hand[3]], rtol=1e-9)
        # Where trials take about as many whole milliseconds, what rounding may hide is added.
        tiny = 1e-9 * values.mean()
        assert 0 < row.low <= by_hand[1] + tiny
        assert row.high >= by_hand[2] - tiny
        took = saved[(saved.filesystem == filesystem) & (saved.rw == rw) & (saved.metric == "elapsed")].squeeze()[
            "mean"
        ]
        if values.std() > 0.51 * values.mean() * 1e-3 / took:
            assert np.allclose([row.low, row.high], by_hand[1:3], rtol=1e-9)


def bandwidth(report: Path) -> float:
    job: dict[str, Any] = json.loads(report.read_text())["jobs"][0]
    return float(job["read"]["bw_bytes"] or job["write"]["bw_bytes"])


def test_comparisons_are_paired_by_block(run: Run) -> None:
    values = run.measurements.query("metric == 'write_bandwidth' and workload == 'dd-write' and not warmup")
    table = values.pivot_table(index="block", columns="filesystem", values="value")
    logs = np.log(table["tmpfs"] / table["ext4"])
    ours = next(c for c in run.comparisons if c.candidate == "tmpfs" and c.workload == "dd-write")
    assert ours.ratio == pytest.approx(np.exp(logs.mean()))
    assert ours.own.low == pytest.approx(np.exp(stats.t.interval(0.95, 1, logs.mean(), stats.sem(logs))[0]))


@pytest.mark.parametrize("fresh", ["block", pytest.param("cell", marks=pytest.mark.long), "never"])
def test_the_run_sends_exactly_the_commands_of_the_plan(fresh: str, results_dir: Path) -> None:
    resolved = as_is(
        filesystems={"tmpfs": TMPFS, "ext4": EXT4, "disk": DIR},
        workloads={"dd-write": DD_WRITE},
        design={"fresh_filesystem": fresh},
    )
    with workflow.planned(resolved, results=results_dir) as session:
        box = RecordingBox(session.connection)
        run_sweep(
            session.plan, box, RunWriter.create(session.plan, resolved, session.facts, results=results_dir), Silent()
        )
        assert leftovers(session.connection) == []
    sent = [tuple("{device}" if word.startswith("/dev/loop") else word for word in call.argv) for call in box.calls]
    assert sent == list(session.plan.commands())


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A value that only fio itself can judge, and an option that only the kernel can."""
    failing = {"tool": "fio", "rw": "write", "bs": "64KiB", "size": "8MiB", "buffer_pattern": "no-such-pattern"}
    resolved = as_is(
        filesystems={"broken": {**TMPFS, "options": ["no_such_option"]}, "tmpfs": TMPFS},
        workloads={"bad": failing, "dd-write": DD_WRITE},
    )
    path = workflow.run(resolved, results=tmp_path_factory.mktemp("troubled"))
    assert leftovers() == []
    return store.load_run(path)


def statuses(run: Run, filesystem: str, workload: str) -> list[str]:
    trials = run.trials[(run.trials["filesystem"] == filesystem) & (run.trials["workload"] == workload)]
    return list(trials["status"])


def test_a_failing_workload_is_recorded_and_the_others_go_on(troubled: Run) -> None:
    assert statuses(troubled, "tmpfs", "bad") == ["failed", "skipped"], "it is set aside"
    assert statuses(troubled, "tmpfs", "dd-write") == ["ok", "ok"]
    assert "no-such-pattern" in troubled.trials.query("cell == 'tmpfs/bad'")["reason"].iloc[0]
    failed = {caveat.subject for caveat in troubled.caveats if caveat.code == "failed-trials"}
    assert "tmpfs/bad" in failed
    assert {caveat.code for caveat in troubled.caveats if caveat.severity == "error"} == {"failed-trials"}


def test_a_file_system_that_cannot_be_mounted_fails_its_own_trials_only(troubled: Run) -> None:
    """mount says 'wrong fs type, bad option' for everything; the trials carry its words."""
    assert {*statuses(troubled, "broken", "dd-write")} == {"failed"}
    assert {*statuses(troubled, "tmpfs", "dd-write")} == {"ok"}
    reason = troubled.trials.query("filesystem == 'broken'")["reason"].iloc[0]
    assert "mount broken" in reason
    assert "no_such_option" in reason


def test_a_trial_on_a_file_system_that_was_unmounted_behind_our_back_is_invalid(results_dir: Path) -> None:
    """A refused mount, then a benchmark on the bare directory: fio ran happily and reported the root disk."""
    resolved = as_is(design={"repeats": 1})
    with workflow.planned(resolved, results=results_dir) as session:
        writer = RunWriter.create(session.plan, resolved, session.facts, results=results_dir)
        mountpoint = session.plan.mounts[0].root
        box = Unmounter(session.connection, mountpoint)
        run_sweep(session.plan, box, writer, Silent())
        assert leftovers(session.connection) == [], "the undo does not mind that the mount is gone"
    trial = read_journal(writer.path)[0]
    assert trial.status == "invalid"
    assert trial.reason == f"no tmpfs is mounted on {mountpoint}"


class Unmounter(RecordingBox):
    """Unmounts the file system under test just before the first trial."""

    def __init__(self, inner: Any, mountpoint: str) -> None:
        super().__init__(inner)
        self.mountpoint = mountpoint

    def run(self, argv: Any, **more: Any) -> Any:
        if argv[-1].startswith("t0"):
            assert self.inner.run(("umount", self.mountpoint), root=True).ok
        return super().run(argv, **more)


@pytest.mark.soak
def test_the_program_of_the_tool_is_not_taken_for_reads_of_the_device(results_dir: Path) -> None:
    """fio and its libraries are tens of MB; dropped with the caches, they would be read between the counters. On a disk
    that others read meanwhile nothing can be said."""
    read = {"tool": "fio", "rw": "read", "bs": "64KiB", "size": "16MiB", "cache": "warm"}
    path = workflow.run(as_is(filesystems={"disk": DIR}, workloads={"warm": read}), results=results_dir)
    served = {
        caveat.subject: caveat.severity for caveat in store.load_run(path).caveats if caveat.code == "cache-served"
    }
    assert served == {"disk/warm": "note"}


@pytest.mark.long
def test_what_comes_next_begins_after_the_last_trial_and_before_figures_are_derived(results_dir: Path) -> None:
    seen: list[tuple[int, bool]] = []

    def look() -> None:
        (run,) = (each.parent for each in results_dir.glob("*/run.json"))
        seen.append((len(read_journal(run)), (run / store.MEASUREMENTS).exists()))

    resolved = as_is(filesystems={"disk": DIR}, workloads={"dd": DD_WRITE}, design={"repeats": 2})
    path = workflow.run(resolved, results=results_dir, measured=look)
    assert seen == [(2, False)]
    assert (path / store.MEASUREMENTS).exists()

"""Caveats from evidence that is really gathered: on the local box, with what disturbs a measurement made on purpose."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from mountlab.__main__ import main
from mountlab.checks import CHECKS
from mountlab.results import store
from mountlab.results.store import Run
from mountlab.runner import workflow
from sweeps import CLOCK, DIR, TMPFS, as_is, sweep

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("fio")]

IMAGE = {"type": "ext4", "image": "128MiB"}
WRITE = {"tool": "fio", "rw": "write", "bs": "1MiB", "size": "64MiB", "direct": True, **CLOCK}
READ = {"tool": "fio", "rw": "randread", "bs": "64KiB", "size": "16MiB", "direct": True, "time_based": True,
        "runtime": "600ms", "log_avg_msec": 20, "rate_iops": 600, **CLOCK}  # fmt: skip
SYNCED = """
n=0
while [ $n -lt 60 ]; do n=$((n + 1)); echo $n >> "$1/log"; [ $((n % $2)) != 0 ] || sync "$1/log"; done
echo "commits $n"
"""
COMMITS: dict[str, Any] = {
    "tool": "command", "argv": f"sh -c '{SYNCED}' synced {{directory}} {{every}}", "every": [1, 10], "space": "1MiB",
    "metrics": {"commits": {"pattern": r"commits (\d+)", "unit": "1", "better": "higher"}},
}  # fmt: skip
"""A log of 60 commits, of which each is synced, or each tenth."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Direct writes and reads with and without data=journal, with logs over time; rounds before a write in memory."""
    resolved = sweep(
        filesystems={"ext4": IMAGE, "journal": {**IMAGE, "options": ["data=journal"]}, "tmpfs": TMPFS},
        workloads={
            "write": {**WRITE, "size": "16MiB"},
            "read": READ,
            "again": {"tool": "dd", "direction": "write", "count": 16, "precondition": 6},
            "commits": COMMITS,
        },
        design={"repeats": 2, "warmup": 0},
        baseline="ext4",
        exclude=[
            *({"filesystem": name, "workload": "again"} for name in ("ext4", "journal")),
            *({"filesystem": name, "workload": "commits"} for name in ("tmpfs", "journal")),
        ],
    )
    return store.load_run(workflow.run(resolved, results=tmp_path_factory.mktemp("results")))


def raised(run: Run, code: str) -> set[str]:
    return {caveat.subject for caveat in run.caveats if caveat.code == code and caveat.severity != "note"}


@pytest.mark.machine
def test_every_check_has_passed_or_raised_or_says_why_it_could_not_look(run: Run) -> None:
    told = [*{each.code for each in run.caveats}, *run.checks_passed, *run.not_checked]
    assert sorted(told) == sorted(CHECKS)
    of_the_box = {"frequency-scaling", "throttled", "on-battery", "swap-in-use", "virtualised", "emulated"}
    of_the_box |= {"debug-kernel", "memory-limited", "pages-taken", "memory-given-back", "drive-hot", "folios-differ"}
    of_few_trials = {"outlier", "two-modes", "drift", "step", "autocorrelated", "warm-up-too-short"}
    of_their_limits = {"implausible", "garbage-collection", "kernel-message", "control-failed"}
    assert set(run.not_checked) <= of_the_box | of_few_trials | of_their_limits, (
        "two trials, on whatever box this is; none cold and warm"
    )


@pytest.mark.machine
@pytest.mark.requires_program("fincore")
def test_direct_io_with_data_journal_is_seen_to_go_through_the_page_cache(run: Run) -> None:
    """data=journal makes O_DIRECT go through the page cache: 122k "direct" IOPS against 26k."""
    assert raised(run, "direct-not-honoured") == {"journal/write", "journal/read"}
    noted = {each.subject for each in run.caveats if each.code == "direct-not-honoured" and each.severity == "note"}
    assert noted == {"tmpfs/write", "tmpfs/read"}


@pytest.mark.machine
def test_commits_that_are_synced_each_tenth_time_were_not_durable(run: Run) -> None:
    assert raised(run, "not-durable") == {"ext4/commits every=10"}


@pytest.mark.machine
def test_sides_that_differ_in_what_the_kernel_added_are_noted(run: Run) -> None:
    (told,) = [each.message for each in run.caveats if each.code == "sides-differ" and each.subject == "journal"]
    assert "nodelalloc" in told


@pytest.mark.machine
def test_clocks_and_swap_were_looked_at(run: Run) -> None:
    """What they did meanwhile is the machine's own affair, and no fault of a test."""
    assert not {"clock-stepped", "swapping"} & {*run.not_checked}
    assert all((run.path / "raw" / trial / "uptime").read_text().count(" ") == 4 for trial in run.trials["trial_id"])


@pytest.mark.machine
def test_rounds_were_run_first_and_are_kept_beside_the_trial(run: Run) -> None:
    kept = sorted(file.parent.name for file in (run.path / "raw").glob("*/precondition.json"))
    own = run.trials[run.trials["workload"] == "again"]
    assert kept == sorted(own["trial_id"])
    assert len(own) == 2
    assert len(run.trials) == 2 * 9
    assert list(run.trials["status"].unique()) == ["ok"]


@pytest.mark.machine
def test_the_bandwidth_inside_of_a_trial_was_judged(run: Run) -> None:
    assert "not-steady" not in run.not_checked
    logged = {file.parent.name for file in (run.path / "raw").glob("*/fio_bw.1.log")}
    assert logged == {*run.trials.query("tool == 'fio'")["trial_id"]}


@contextmanager
def burning() -> Iterator[None]:
    """Somebody else who keeps every processor busy."""
    others = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


@pytest.mark.long
def test_somebody_else_on_the_processors_is_seen(results_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only while it is measured: the rest of a run would take as much again."""
    measure = workflow.run_sweep

    def disturbed(*given: Any) -> None:
        with burning():
            measure(*given)

    monkeypatch.setattr(workflow, "run_sweep", disturbed)
    resolved = as_is(filesystems={"d": DIR}, workloads={"r": READ}, design={"repeats": 2, "warmup": 0})
    run = store.load_run(workflow.run(resolved, results=results_dir))
    assert raised(run, "box-busy") == {"d/r"}


def test_a_strict_sweep_is_refused_by_its_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "small.yml"
    text = {
        "question": "How fast?", "filesystems": {"d": DIR}, "design": {"repeats": 5, "strict": True},
        "workloads": {"r": {"tool": "dd", "direction": "read", "count": 64, "cache": "as_is"}},
    }  # fmt: skip
    file.write_text(yaml.safe_dump(text))
    assert main(["plan", str(file), "-p", "strict=false"]) == 0
    assert "caveats      warning: fits in memory, d/r: this reads 64.0 MiB buffered on a box with" in (
        capsys.readouterr().out
    )
    assert main(["plan", str(file)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: what is planned cannot be trusted\n  where:   design.strict: true\n")
    assert "got:     fits-in-memory (d/r)" in said

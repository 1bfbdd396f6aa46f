"""fio on the local box: every engine, job files, clones told apart, logs over time, options that fio does not know."""

from __future__ import annotations

import json
import subprocess
import zlib
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import yaml
from mountlab import __main__
from mountlab.analysis.inside import points_of
from mountlab.box import leftovers
from mountlab.box.embedded import open_box
from mountlab.core.units import NS_PER_S
from mountlab.fio.report import histograms_of
from mountlab.fio.series import read_series
from mountlab.results import paths, store
from mountlab.results.store import Run
from mountlab.runner import workflow
from mountlab.stats import histograms
from mountlab.sweep.plan import PlannedTrial
from mountlab.sweep.planner import make_plan
from ownbox import own_box
from repetition import others_long
from sweep.test_plan import BOX, FACTS
from sweeps import CLOCK, EXT4, TMPFS, as_is
from waiting import LIMIT_S

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("fio")]

ENGINES = ["psync", "sync", "libaio", "io_uring", "mmap"]
SMALL = {"tool": "fio", "rw": "randrw", "bs": "4KiB", "size": "12MiB", **CLOCK}
"""Some 1,500 reads and as many writes: p99 needs 1,000."""
JOBS = """
[global]
size=2m
bs=8k
[log]
rw=write
fdatasync=8
[data]
rw=randrw
numjobs=2
[after]
stonewall
rw=read
"""
WORKLOADS: dict[str, dict[str, Any]] = {
    "engine": {**SMALL, "ioengine": ENGINES, "iodepth": 4},
    "direct": {**SMALL, "ioengine": "libaio", "direct": True, "iodepth": 8, "slat_percentiles": 1},
    "mix": {"tool": "fio", "rw": "randwrite", "size": "4MiB", "bssplit": "4k/60:64k/40", "fsync": 1},
    "jobs": {"tool": "fio", "jobs": JOBS},
    "clones": {**SMALL, "numjobs": 2, "thread": True, "group_reporting": False},
    "series": {**SMALL, "time_based": True, "runtime": "1s", "log_avg_msec": 100, "rate_iops": 500},
}


def has_io_uring() -> bool:
    tried = subprocess.run(
        ["fio", "--name=try", "--ioengine=io_uring", "--rw=read", "--size=4k", "--filename=/dev/zero"],
        capture_output=True,
        check=False,
        timeout=LIMIT_S,
    )
    return tried.returncode == 0


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One run of all of them on ext4, and of one on tmpfs."""
    exclude = [{"filesystem": "tmpfs", "workload": name} for name in WORKLOADS if name != "series"]
    return one_run(tmp_path_factory.mktemp("fio"), {"tmpfs": TMPFS, "ext4": EXT4}, WORKLOADS, exclude=exclude)


@pytest.fixture(scope="module")
def run_in_memory(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """And on tmpfs those that `run` leaves out."""
    workloads = {name: WORKLOADS[name] for name in WORKLOADS if name != "series"}
    return one_run(tmp_path_factory.mktemp("fio-in-memory"), {"tmpfs": TMPFS}, workloads)


def one_run(place: Path, filesystems: dict[str, Any], workloads: dict[str, Any], **more: Any) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        own_box(place, patch)
        design = {"repeats": 1, "drop_caches": False}
        resolved = as_is(filesystems=filesystems, workloads=workloads, design=design, **more)
        path = workflow.run(resolved, results=place / "results")
        with open_box(paths.load_box("local")) as connection:
            assert leftovers.remove_leftovers(connection, dry_run=True) == []
        return store.load_run(path)


def places_and_data(trial: PlannedTrial, place: Path) -> tuple[list[str], bytes]:
    """The planned commands of a trial, run in another directory: the offsets in order, and what its files hold."""
    place.mkdir()
    (there,) = (word for word in trial.command.argv if word.startswith("--directory="))
    (report,) = (word for word in trial.command.argv if word.startswith("--output="))
    ours = {there: f"--directory={place}", report: f"--output={place}/report"}
    for argv in (*trial.command.prepare, (*trial.command.argv, f"--write_iolog={place}/iolog")):
        subprocess.run([ours.get(word, word) for word in argv], check=True, capture_output=True, timeout=LIMIT_S)
    lines = [line.split() for line in (place / "iolog").read_text().splitlines()]
    offsets = [line[-2] for line in lines if line[-3:-2] in (["read"], ["write"])]
    return offsets, b"".join(file.read_bytes() for file in sorted(place.glob("mountlab*")))


def test_every_trial_of_a_second_has_its_logs_and_the_counters_of_the_box_over_time(run: Run) -> None:
    """Of the right order of magnitude, and of the device of the file system alone."""
    rows = run.trials.query("workload == 'series' and status == 'ok'").to_dict("records")
    assert {row["filesystem"] for row in rows} == {"tmpfs", "ext4"}
    for row in rows:
        inside = run.inside(row["trial_id"])
        points = points_of(inside, run.sweep.combinations[row["cell"]].workload)
        assert {"read_bandwidth", "read_iops", "read_latency_mean", "user", "system", "dirty"} <= points.keys()
        assert ("device_busy" in points) == (row["filesystem"] == "ext4")
        assert inside.box is not None
        assert inside.box.length is not None
        looks = raw(run, row["filesystem"], "series")["over_time"].count("\n")  # few where others leave no time for it
        assert looks // 3 <= len(points["user"]) <= 11 * inside.box.length
        assert 5 < median(value for _, value in points["read_iops"]) < 50_000, "it was asked for 500 a second"


@pytest.mark.parametrize("rw", ["randwrite", pytest.param("randread", marks=pytest.mark.long)])
def test_blocks_differ_in_places_and_data_and_cells_of_a_block_do_not(rw: str, tmp_path: Path) -> None:
    resolved = as_is(
        filesystems={"a": TMPFS, "b": EXT4}, workloads={"w": {**SMALL, "size": "4MiB", "rw": rw, "log_avg_msec": False}}
    )
    the_plan = make_plan(resolved.sweep, BOX, FACTS, run_id="r", owner="me", seed=7)
    found = {
        (trial.block, trial.cell.filesystem.name): places_and_data(trial, tmp_path / trial.trial_id)
        for trial in the_plan.trials
    }
    assert found[1, "a"] == found[1, "b"]
    assert found[2, "a"] == found[2, "b"]
    (first, data), (second, other) = found[1, "a"], found[2, "a"]
    assert sorted(first) == sorted(second), "each place once"
    assert sum(one == two for one, two in zip(first, second, strict=True)) < len(first) / 20
    blocks = [{text[i : i + 4096] for i in range(0, len(text), 4096)} for text in (data, other)]
    assert len(blocks[0]) == len(data) / 4096, "no block of data twice"
    assert blocks[0].isdisjoint(blocks[1])
    assert len(zlib.compress(data)) > 0.99 * len(data)


def values(run: Run, filesystem: str, workload: str) -> dict[tuple[str, str], float]:
    rows = run.measurements
    own = rows[(rows["filesystem"] == filesystem) & (rows["workload"] == workload)]
    return dict(zip(zip(own["metric"], own["label"], strict=True), own["value"], strict=True))


def raw(run: Run, filesystem: str, workload: str) -> dict[str, str]:
    trials = run.trials[(run.trials["filesystem"] == filesystem) & (run.trials["workload"] == workload)]
    (trial,) = trials["trial_id"]
    return {file.name: file.read_text() for file in (run.path / "raw" / trial).iterdir()}


@pytest.fixture
def run_on(request: pytest.FixtureRequest, filesystem: str) -> Run:
    """The run that has a workload on this file system."""
    run: Run = request.getfixturevalue("run" if filesystem == "ext4" else "run_in_memory")
    return run


each_filesystem = pytest.mark.parametrize("filesystem", others_long(["tmpfs", "ext4"], kept=["ext4"]))


@pytest.mark.parametrize("engine", ENGINES)
def test_each_engine_gives_figures_of_both_directions(run: Run, engine: str) -> None:
    figures_of_both_directions(run, "ext4", engine)


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
def test_each_engine_gives_them_on_tmpfs_too(run_in_memory: Run, engine: str) -> None:
    figures_of_both_directions(run_in_memory, "tmpfs", engine)


def figures_of_both_directions(run: Run, filesystem: str, engine: str) -> None:
    if engine == "io_uring" and not has_io_uring():
        pytest.skip("the kernel here has no io_uring")
    cell = f"{filesystem}/engine ioengine={engine}"
    (trial,) = run.trials[run.trials["cell"] == cell].itertuples()
    assert (trial.status, trial.reason) == ("ok", "")
    metrics = set(run.measurements[run.measurements["cell"] == cell]["metric"])
    assert {
        "read_bandwidth",
        "write_iops",
        "read_latency_p99",
        "write_completion_latency_mean",
        "context_switches",
    } <= metrics


@each_filesystem
@pytest.mark.parametrize("workload", ["direct", "mix", "jobs", "clones"])
def test_every_other_kind_of_workload_gives_figures(run_on: Run, filesystem: str, workload: str) -> None:
    run = run_on
    trials = run.trials[(run.trials["filesystem"] == filesystem) & (run.trials["workload"] == workload)]
    if workload == "direct" and filesystem == "tmpfs" and list(trials["status"]) == ["failed"]:
        assert "Invalid argument" in trials["reason"].iloc[0]  # tmpfs takes O_DIRECT from Linux 6.6 on only
        return
    assert list(trials["status"] + trials["reason"]) == ["ok"]


def test_submission_and_completion_are_told_apart(run: Run) -> None:
    figures = values(run, "ext4", "direct")
    assert 0 < figures["read_submission_latency_mean", ""] < figures["read_latency_mean", ""]
    parts = figures["read_submission_latency_mean", ""] + figures["read_completion_latency_mean", ""]
    assert parts == pytest.approx(figures["read_latency_mean", ""], rel=0.05)
    assert figures["read_submission_latency_p99", ""] > 0


def test_flushes_are_timed(run: Run) -> None:
    figures = values(run, "ext4", "mix")
    assert 0 < figures["sync_latency_p50", ""] <= figures["sync_latency_p95", ""]
    assert figures["bytes", "write"] == 4 * 1024**2


@each_filesystem
def test_the_jobs_of_a_job_file_are_told_apart_and_together(run_on: Run, filesystem: str) -> None:
    figures = values(run_on, filesystem, "jobs")
    assert {label for metric, label in figures if metric == "write_bandwidth"} == {"", "log", "data"}
    assert {label for metric, label in figures if metric == "read_bandwidth"} == {"", "data", "after"}
    assert figures["bytes", "read"] + figures["bytes", "write"] == 2 * 1024**2 * (1 + 2 + 1)
    assert "[after]" in raw(run_on, filesystem, "jobs")["jobs.fio"]


@each_filesystem
def test_percentiles_of_clones_are_merged_from_their_bins(run_on: Run, filesystem: str) -> None:
    figures = values(run_on, filesystem, "clones")
    found = histograms_of(json.loads(raw(run_on, filesystem, "clones")["fio.json"]))
    merged = histograms.merge(h for (_, place), h in found.items() if place == "read.clat_ns")
    assert len(found) >= 4
    assert figures["read_latency_p99", ""] == histograms.percentile_ns(merged, 99) / NS_PER_S
    assert {"mountlab.0", "mountlab.1"} <= {label for _, label in figures}


@pytest.mark.parametrize("filesystem", ["tmpfs", "ext4"])
def test_logs_over_time_come_back(run: Run, filesystem: str) -> None:
    series = {each.metric: each for each in read_series(raw(run, filesystem, "series"))}
    assert {"read_bandwidth", "write_iops", "read_latency_mean"} <= set(series)
    assert len(series["read_iops"].points) >= 5
    figures = values(run, filesystem, "series")
    assert 0 < series["read_iops"].points[-1].seconds <= figures["elapsed", ""] + 0.5
    middle = median(point.value for point in series["read_iops"].points)
    assert 0.1 < middle / figures["read_iops", ""] < 10, "another unit would be a thousand times as many, or as few"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"iodpeth": 4}, ["the box's fio has no such option", "workloads.fio.iodpeth", "iodepth"]),
        pytest.param({"rwmixread": 101}, ["beyond what the box's fio takes", "from 0 to 100"], marks=pytest.mark.long),
        pytest.param(
            {"verify": "crc32d"}, ["the box's fio does not take this value", "crc32c"], marks=pytest.mark.long
        ),
    ],
)
def test_what_the_boxs_fio_does_not_know_is_refused_in_the_plan(
    options: dict[str, Any],
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = own_box(tmp_path, monkeypatch)
    parameters = {"question": "?", "filesystems": {"tmpfs": TMPFS}, "workloads": {"fio": {**SMALL, **options}}}
    path = tmp_path / "x.yml"
    path.write_text(yaml.safe_dump(parameters))
    assert __main__.main(["plan", str(path)]) == 2
    error = capsys.readouterr().err
    assert all(word in error for word in words), error
    assert not root.exists()

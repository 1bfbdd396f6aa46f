"""The count itself: it finds what it is there for, so that the zeros of the table mean something."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from data_files import replaced
from faults import counting, table
from faults.counting import Count, Kept
from faults.scenes import scene
from faults.table import Row
from installed_programs import program
from mountlab_dev.evidence import rows
from waiting import LIMIT_S

NAMES = ("t0001", "t0002", "t0003")
TRIAL = {key: key for key in counting.WHAT_COUNTS} | {"status": "ok", "reason": "", "started_at": "now"}
WHOLE = tuple({**TRIAL, "trial_id": name} for name in NAMES)
EXPECTED = Kept(WHOLE, 0, dict.fromkeys(NAMES, frozenset({"stdout", "argv"})), ())


def written(path: Path, *trials: dict[str, Any], tail: str = "") -> Path:
    """A run directory with these trials in its journal, and the files of all that were to be in it."""
    for name in NAMES:
        (path / "raw" / name).mkdir(parents=True)
        for file in EXPECTED.raw[name]:
            (path / "raw" / name / file).write_text("1\n")
    (path / "trials.jsonl").write_text("".join(f"{json.dumps(trial)}\n" for trial in trials) + tail)
    return path


def test_a_run_that_is_as_it_should_be_has_cost_nothing(tmp_path: Path) -> None:
    run = written(tmp_path, *WHOLE)
    assert counting.kept(run) == EXPECTED
    assert counting.compare(run, EXPECTED) == Count()


def test_a_missing_trial_is_lost(tmp_path: Path) -> None:
    assert counting.compare(written(tmp_path, *WHOLE[:2]), EXPECTED).lost == ("t0003: not in the journal",)


def test_a_trial_twice_is_duplicated(tmp_path: Path) -> None:
    assert counting.compare(written(tmp_path, *WHOLE, WHOLE[1]), EXPECTED).duplicated == (
        "t0002: 2 times in the journal",
    )


def test_a_trial_that_nobody_asked_for_is_seen(tmp_path: Path) -> None:
    extra = counting.compare(written(tmp_path, *WHOLE, {**TRIAL, "trial_id": "t9"}), EXPECTED).duplicated
    assert extra == ("t9: in the journal, and not in the sweep",)


def test_another_order_is_seen(tmp_path: Path) -> None:
    (lost,) = counting.compare(written(tmp_path, WHOLE[1], WHOLE[0], WHOLE[2]), EXPECTED).lost
    assert lost.endswith("another order: t0002 t0001 t0003")


@pytest.mark.parametrize("tail", ['{"trial_id": "t00', "\0\0\0\0\n", "[]\n"])
def test_a_torn_line_is_seen(tmp_path: Path, tail: str) -> None:
    assert counting.compare(written(tmp_path, *WHOLE, tail=tail), EXPECTED).lost == (f"{tmp_path.name}: 1 torn lines",)


def test_a_file_that_is_not_there_or_empty_is_lost(tmp_path: Path) -> None:
    run = written(tmp_path, *WHOLE)
    (run / "raw" / "t0001" / "stdout").unlink()
    (run / "raw" / "t0002" / "argv").write_text("")
    assert counting.compare(run, EXPECTED).lost == ("t0001: no stdout", "t0002: no argv")


def test_a_trial_that_failed_is_lost_unless_it_may_fail_and_says_why(tmp_path: Path) -> None:
    run = written(tmp_path, WHOLE[0], {**WHOLE[1], "status": "failed", "reason": "the box restarted"}, WHOLE[2])
    assert counting.compare(run, EXPECTED).lost == ("t0002: failed: the box restarted",)
    assert counting.compare(run, EXPECTED, may_fail=["t0002"]) == Count()
    silent = written(tmp_path / "silent", WHOLE[0], {**WHOLE[1], "status": "failed"}, WHOLE[2])
    assert counting.compare(silent, EXPECTED, may_fail=["t0002"]).lost == ("t0002: failed without a reason",)


def test_a_trial_of_another_cell_under_the_same_name_is_seen(tmp_path: Path) -> None:
    run = written(tmp_path, *WHOLE[:2], {**WHOLE[2], "cell": "another"})
    assert counting.compare(run, EXPECTED).lost == ("t0003: cell is another, and was cell",)


def test_what_is_half_written_is_left_behind(tmp_path: Path) -> None:
    run = written(tmp_path, *WHOLE)
    (run / ".run.json.1.tmp").touch()
    assert counting.compare(run, EXPECTED).left == (str(run / ".run.json.1.tmp"),)


def test_files_and_processes_are_left_behind_until_they_go(tmp_path: Path) -> None:
    assert counting.left_behind([tmp_path], patience_s=0) == ()
    (tmp_path / "file").touch()
    code = "import time; print('up', flush=True); time.sleep(60)"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = counting.left_behind([tmp_path], patience_s=0)
        assert [each.split(":")[0] for each in found] == [f"process {process.pid}", f"file {tmp_path / 'file'}"]
        assert counting.left_behind([tmp_path], but=[process.pid], patience_s=0) == found[1:]
        process.kill()
    (tmp_path / "file").unlink()
    assert counting.left_behind([tmp_path], patience_s=0) == ()


@pytest.mark.requires_program("losetup")
@pytest.mark.requires_root
def test_a_mount_and_a_loop_device_are_left_behind(tmp_path: Path) -> None:
    place, image = tmp_path / "m", tmp_path / "image"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(2**20)
    subprocess.run([program("mount"), "-t", "tmpfs", "tmpfs", place], check=True)
    loop = subprocess.run(["losetup", "--find", "--show", image], capture_output=True, text=True, check=True).stdout
    try:
        found = counting.left_behind([tmp_path], patience_s=0)
        assert found[:2] == (f"mount {place}", f"loop {Path(loop.strip()).name} on {image}")
    finally:
        subprocess.run(["losetup", "-d", loop.strip()], check=True)
        subprocess.run(["umount", place], check=True)


@pytest.mark.requires_program("losetup")
@pytest.mark.requires_root
def test_a_scene_that_ends_takes_all_of_it_along() -> None:
    with scene() as place:
        image = place.mount_root / "image"
        (place.mount_root / "m").mkdir(parents=True)
        with image.open("wb") as file:
            file.truncate(2**20)
        subprocess.run([program("mount"), "-t", "tmpfs", "tmpfs", image.with_name("m")], check=True)
        subprocess.run(["losetup", "--find", image], check=True)
        process = subprocess.Popen(["sleep", "60"], cwd=place.mount_root)
        assert len(counting.left_behind([place.mount_root], patience_s=0)) == 5
    assert process.wait(LIMIT_S) < 0
    assert counting.left_behind([place.home]) == ()


def test_without_an_undisturbed_run_each_trial_is_wanted_once_and_ok(tmp_path: Path) -> None:
    assert counting.once(written(tmp_path / "good", *WHOLE), 3) == Count()
    failed = {**WHOLE[1], "status": "failed"}
    bad = written(tmp_path / "bad", WHOLE[0], WHOLE[0], failed, tail="{")
    found = counting.once(bad, 3)
    assert found.lost == (
        "t0002: not in the journal, or not ok",
        "t0003: not in the journal, or not ok",
        "bad: 1 torn lines",
    )
    assert found.duplicated == ("t0001: 2 times in the journal",)
    assert counting.once(bad, 3, may_fail=["t0002", "t0003"]).lost[0].startswith("t0003")


# --- the table --------------------------------------------------------------------------------------------------------

NOTHING = Row("kill9", "kill -9", 200, (0, 0, 0), 400.0)


def test_a_row_replaces_that_of_the_same_fault_and_leaves_the_others() -> None:
    lines = replaced([table.HEADER], [row.cells() for row in (NOTHING, Row("link", "cut", 100, (1, 2, 3), 30.0))])
    lines = replaced(lines, [Row("kill9", "kill -9", 2000, (0, 0, 0), 4000.0).cells()])
    assert lines == [
        list(table.HEADER),
        ["`kill9`: kill -9", "2,000", "0", "0", "0", "67 min"],
        ["`link`: cut", "100", "1", "2", "3", "30 s"],
    ]


def test_a_row_travels_as_text() -> None:
    assert Row.unpacked(NOTHING.packed()) == NOTHING


def test_the_table_that_is_kept_has_no_row_that_has_cost_anything() -> None:
    header, *kept = rows(table.DATA)
    assert header == list(table.HEADER)
    assert kept
    for row in kept:
        assert row[2:5] == ["0", "0", "0"], row

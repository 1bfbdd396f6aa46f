"""fs_mark, for real: on tmpfs and on ext4, what it does when the file system is full, and nothing left of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mountlab.box import leftovers
from mountlab.box.embedded import open_box
from mountlab.results import paths, store
from mountlab.runner import workflow
from ownbox import own_box
from sweeps import EXT4, TMPFS, as_is

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("fs_mark")]

FS_MARK: dict[str, Any] = {"tool": "fs_mark", "count": 40, "file_size": "6000B", "threads": 2}
WORKLOADS: dict[str, dict[str, Any]] = {
    "plain": {**FS_MARK, "sync": ["none", "fsync", "sync", "post"]},
    "everything": {**FS_MARK, "loops": 2, "directories": 10, "files_per_directory": 3, "write_size": "1KiB",
                   "name_length": 30, "random_length": 12, "call_times": True},
    "unlinked": {**FS_MARK, "keep_files": False, "call_times": True},
}  # fmt: skip


def run_once(place: Path, patch: pytest.MonkeyPatch, **parts: Any) -> store.Run:
    own_box(place, patch)
    path = workflow.run(
        as_is(**{"design": {"repeats": 1, "trial_timeout": "600s"}, **parts}), results=place / "results"
    )
    with open_box(paths.load_box("local")) as connection:
        assert leftovers.remove_leftovers(connection, dry_run=True) == []
    return store.load_run(path)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    with pytest.MonkeyPatch.context() as patch:
        place = tmp_path_factory.mktemp("fs_mark")
        return run_once(place, patch, filesystems={"tmpfs": TMPFS, "ext4": EXT4}, workloads=WORKLOADS)


def rows(run: store.Run, cell: str) -> dict[str, float]:
    own = run.measurements[run.measurements["cell"] == cell]
    return {f"{m} {k}".strip(): v for m, k, v in zip(own["metric"], own["label"], own["value"], strict=True)}


def test_every_trial_is_a_measurement(run: store.Run) -> None:
    assert [*run.trials["reason"]] == [""] * 12
    assert set(run.trials["status"]) == {"ok"}


@pytest.mark.parametrize("filesystem", ["tmpfs", "ext4"])
def test_files_and_bytes_are_those_that_were_asked(run: store.Run, filesystem: str) -> None:
    found = rows(run, f"{filesystem}/everything")
    assert found["bytes write"] == 40 * 2 * 2 * 6000
    assert found["file_rate"] == pytest.approx(160 / found["elapsed"])
    assert found["file_rate iteration 1"] > 0
    assert found["file_rate iteration 2"] > 0
    assert found["operation_latency creat"] > 0
    assert "operation_latency unlink" not in found
    assert rows(run, f"{filesystem}/unlinked")["operation_latency unlink"] > 0


def test_a_flush_of_the_whole_machine_is_told(run: store.Run) -> None:
    told = {caveat.subject for caveat in run.caveats if caveat.code == "syncs-everything"}
    assert told == {"tmpfs/plain sync=sync", "ext4/plain sync=sync"}


def test_its_version_is_in_the_raw_output(run: store.Run) -> None:
    first = run.path / "raw" / run.trials["trial_id"].iloc[0]
    assert "Version 3." in (first / "stdout").read_text()


@pytest.mark.long
def test_a_file_system_without_room_for_its_inodes_fails_the_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan counts bytes; inodes run out first here."""
    few = {**TMPFS, "options": ["nr_inodes=50"]}
    found = run_once(tmp_path, monkeypatch, filesystems={"few": few}, workloads={"w": FS_MARK})
    assert set(found.trials["status"]) == {"failed"}
    assert "fs_mark failed with exit status 1" in found.trials["reason"].iloc[0]
    assert "fopen failed" in found.trials["reason"].iloc[0] or "No space left" in found.trials["reason"].iloc[0]
    assert len(found.measurements[found.measurements["metric"] == "file_rate"]) == 0

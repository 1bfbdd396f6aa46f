"""pg_test_fsync, for real: found where the distribution hides it, with n/a on ramfs and figures on the others."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from pathlib import Path

import pytest
from mountlab import care, store, workflow
from mountlab.boxes import open_box
from mountlab.tools import TOOLS
from ownbox import own_box
from sweeps import EXT4, RAMFS, TMPFS, sweep

INSTALLED = [*chain.from_iterable(Path("/").glob(f"{place[1:]}/pg_test_fsync") for place in
                                  TOOLS["pg_test_fsync"].programs[0].places)]  # fmt: skip
pytestmark = [
    pytest.mark.box, pytest.mark.requires_root,
    pytest.mark.skipif(not INSTALLED, reason="no pg_test_fsync on this machine (Debian: postgresql)"),
]  # fmt: skip
METHODS = {"fdatasync", "fsync"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    """One trial on each: it takes its sixteen seconds."""
    place = tmp_path_factory.mktemp("pg")
    with pytest.MonkeyPatch.context() as patch:
        own_box(place, patch)
        resolved = sweep(
            filesystems={"tmpfs": TMPFS, "ramfs": RAMFS, "ext4": EXT4}, design={"repeats": 1}, baseline="ext4",
            workloads={"methods": {"tool": "pg_test_fsync", "time_per_test": "1s"}},
        )  # fmt: skip
        path = workflow.run(resolved, results=place / "results")
        with open_box(store.load_box("local")) as connection:
            assert care.clean(connection, dry_run=True) == []
        return store.load_run(path)


def labels(run: store.Run, filesystem: str) -> set[str]:
    own = run.measurements[(run.measurements["filesystem"] == filesystem) & (run.measurements["metric"] == "sync_rate")]
    return set(own["label"])


def test_every_trial_is_a_measurement(run: store.Run) -> None:
    assert [*run.trials["reason"]] == [""] * 3


def test_the_program_was_found_beside_the_path(run: store.Run) -> None:
    program = run.info["facts"]["programs"]["pg_test_fsync"]
    assert Path(program["path"]) in INSTALLED
    assert program["version"].startswith("pg_test_fsync (PostgreSQL)")


def test_ext4_offers_every_method_and_ramfs_those_without_direct_io(run: store.Run) -> None:
    """Trap: n/a rows."""
    assert len(labels(run, "ext4")) == 16
    assert labels(run, "ramfs") == {
        *(f"{times} 8kB: {method}" for times in ("one", "two") for method in METHODS),
        "descriptor: write, fsync, close", "descriptor: write, close, fsync", "non-sync: write",
    }  # fmt: skip
    assert "ramfs/methods" in {caveat.subject for caveat in run.caveats if caveat.code == "figures-missing"}


def test_methods_are_compared_each_with_itself(run: store.Run) -> None:
    compared = {(c.candidate, c.label) for c in run.comparisons}
    assert ("ramfs", "one 8kB: fdatasync") in compared
    rates = run.estimates[run.estimates["metric"] == "sync_rate"].set_index(["filesystem", "label"])["mean"]
    assert rates["ramfs", "one 8kB: fdatasync"] > rates["ext4", "one 8kB: fdatasync"]


def failed(place: Path, patch: pytest.MonkeyPatch, filesystem: Mapping[str, object], **design: object) -> str:
    """The reason for which its only trial failed."""
    own_box(place, patch)
    resolved = sweep(
        filesystems={"one": filesystem}, workloads={"methods": {"tool": "pg_test_fsync"}},
        design={"repeats": 1, **design},
    )  # fmt: skip
    found = store.load_run(workflow.run(resolved, results=place / "results"))
    with open_box(store.load_box("local")) as connection:
        assert care.clean(connection, dry_run=True) == []
    assert [*found.trials["status"]] == ["failed"]
    assert len(found.measurements[found.measurements["metric"] == "sync_rate"]) == 0
    return str(found.trials["reason"].iloc[0])


def test_one_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "ran longer than 1 s" in failed(tmp_path, monkeypatch, TMPFS, trial_timeout="1s")


def test_a_file_system_that_is_too_small_fails_the_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of inodes takes what the plan could not know of."""
    reason = failed(tmp_path, monkeypatch, {"type": "ext4", "image": "24MiB", "mkfs": ["-N", "30000"]})
    assert "pg_test_fsync failed with exit status 1" in reason
    assert "write failed" in reason

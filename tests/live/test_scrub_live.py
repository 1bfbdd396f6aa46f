"""scrub on loop images of this machine: what file systems serve, find and repair of errors behind their backs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mountlab.results import store
from mountlab.runner import workflow
from ownbox import own_box
from rows import every_row
from sweeps import as_is

pytestmark = [
    pytest.mark.box,
    pytest.mark.slow,
    pytest.mark.requires_root,
    pytest.mark.requires_program("sshd"),
    pytest.mark.requires_program("btrfs"),
]

FILESYSTEMS: dict[str, dict[str, Any]] = {
    "ext4": {"type": "ext4", "image": "64MiB"},
    "btrfs": {"type": "btrfs", "image": "128MiB"},
    "mirror": {"type": "btrfs", "image": "128MiB", "members": 2, "mkfs": ["-d", "raid1", "-m", "raid1"]},
    "journal": {"type": "ext4", "image": "64MiB", "options": ["data=journal"]},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> store.Run:
    place = tmp_path_factory.mktemp("scrub")
    bad = {"tool": "scrub", "size": "2MiB", "errors": 7, "member": "first"}
    with pytest.MonkeyPatch.context() as patch:
        own_box(place, patch)
        resolved = as_is(filesystems=FILESYSTEMS, workloads={"bad": bad}, design={"repeats": 1})
        return store.load_run(workflow.run(resolved, results=place / "results"))


def counts(run: store.Run, name: str) -> dict[str, int]:
    own = run.measurements[run.measurements["filesystem"] == name]
    own = own[own["metric"].isin(["blocks", "operations"])]
    return {str(label): int(value) for label, value in zip(own["label"], own["value"], strict=True)}


@every_row(
    ("name", "wrong", "refused", "found", "repaired"),
    [("ext4", 7, 0, 0, 0), ("btrfs", 0, 7, 7, 0), ("mirror", 0, 0, None, 7)],
)
def test_errors_are_served_refused_or_repaired(
    run: store.Run, name: str, wrong: int, refused: int, found: int | None, repaired: int
) -> None:
    """What a mirror has healed when it was read, its scrub does not find."""
    seen = counts(run, name)
    assert (seen["wrong before"], seen["refused before"]) == (wrong, refused)
    assert (seen["wrong after"], seen["refused after"]) == (wrong, refused)
    assert seen["found"] == (7 - seen["healed"] if found is None else found)
    assert (seen["repaired"], seen["unrepaired"]) == (repaired, 7 - repaired)


def test_blocks_that_lie_in_two_places_are_not_overwritten(run: store.Run) -> None:
    """A journal of data has a copy of each."""
    (row,) = run.trials[run.trials["filesystem"] == "journal"].to_dict("records")
    assert row["status"] == "failed"
    assert "lie there once and in clear text" in row["reason"]
    assert Path(run.path).exists()

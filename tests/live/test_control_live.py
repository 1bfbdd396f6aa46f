"""The negative control on real mounts: what the kernel does during cold and warm reads where no device is involved."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mountlab.results import store
from mountlab.runner import workflow
from sweeps import as_is

pytestmark = [
    pytest.mark.box,
    pytest.mark.machine,
    pytest.mark.requires_root,
    pytest.mark.requires_program("sshd"),
]

MIB = 1024**2
PAGES = 128 * MIB // 4096


def activated(run: store.Run, trial_id: str) -> int:
    """Pages that the kernel moved to its active lists while the tool ran."""
    texts = [(run.path / "raw" / trial_id / name).read_text() for name in ("before.txt", "after.txt")]
    before, after = (int(match[1]) for text in texts if (match := re.search(r"^pgactivate (\d+)$", text, re.MULTILINE)))
    return after - before


def test_neither_a_cold_nor_a_warm_read_in_memory_is_the_one_at_which_pages_become_active(tmp_path: Path) -> None:
    """The second read of a page of tmpfs moves it to the active list, which takes as long as half of the read: with one
    read before it every warm read was that one, and no cold read."""
    resolved = as_is(
        filesystems={"tmpfs": {"type": "tmpfs", "size": "160MiB"}},
        workloads={"r": {"tool": "dd", "direction": "read", "count": 128, "cache": ["cold", "warm"]}},
    )
    run = store.load_run(workflow.run(resolved, results=tmp_path))
    assert list(run.trials["status"]) == ["ok"] * 4
    found = {cell: [activated(run, each) for each in rows] for cell, rows in run.trials.groupby("cell")["trial_id"]}
    assert {len(pages) for pages in found.values()} == {2}
    # Of the whole machine: what others do only adds, and a defect would show in each block.
    assert max(map(min, found.values())) < PAGES / 2, found

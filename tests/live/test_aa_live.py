"""A/A on the local box: the same file system twice. Whatever Mountlab calls faster here is false."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mountlab.results import store
from mountlab.results.store import Run
from mountlab.runner import workflow
from ownbox import own_box
from sweeps import DD_WRITE, TMPFS, as_is

pytestmark = [
    pytest.mark.long,
    pytest.mark.box,
    pytest.mark.requires_root,
    pytest.mark.requires_program("fio"),
    pytest.mark.machine,
]

BLOCKS = 20
LEVEL = 0.999
"""So that a false alarm of this test is as rare as one run in a thousand: at 95 % it would be one in twenty."""


WORKLOADS = {
    "dd-write": {**DD_WRITE, "count": 16},
    "fio-read": {"tool": "fio", "rw": "randread", "bs": "4KiB", "size": "16MiB"},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Two tmpfs with the same options, in a random order within each block."""
    scratch: Path = tmp_path_factory.mktemp("aa")
    with pytest.MonkeyPatch.context() as patch:
        own_box(scratch, patch)
        resolved = as_is(
            filesystems={"a": TMPFS, "b": TMPFS},
            workloads=WORKLOADS,
            # Another order each time: with one seed, whatever the order does would be the same in every run.
            design={"repeats": BLOCKS, "warmup": 1, "level": LEVEL, "seed": None, "drop_caches": True},
            baseline="a",
        )
        yield store.load_run(workflow.run(resolved, results=scratch / "results"))


def test_it_runs_to_its_end(run: Run) -> None:
    assert run.info.status == "complete"
    assert list(run.trials["status"].unique()) == ["ok"], run.trials[["cell", "reason"]]


def test_both_are_measured_in_every_block(run: Run) -> None:
    assert {each.workload: each.n for each in run.comparisons} == dict.fromkeys(WORKLOADS, BLOCKS)
    assert {each.own.level for each in run.comparisons} == {LEVEL}


def test_neither_goes_first_in_every_block(run: Run) -> None:
    """An order that is always the same would make whatever the first one warms up a difference between the two."""
    first = run.trials.query("not warmup").drop_duplicates("block")["filesystem"]
    assert set(first) == {"a", "b"}


def test_a_file_system_is_neither_faster_nor_slower_than_itself(run: Run) -> None:
    """Rightly 'same' or 'undecided'; anything else in one run of a thousand, by the level of this sweep."""
    assert {each.verdict for each in run.comparisons} <= {"same", "undecided"}, run.comparisons

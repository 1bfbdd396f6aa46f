"""Syncs beside a neighbour in a trace: data of others is only where the neighbour writes to the same device."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mountlab.core.layers import COMMIT_SHARE, OTHERS_SHARE
from mountlab.report import html, sections
from mountlab.results import store
from mountlab.runner import workflow
from sweeps import CLOCK, EXT4, sweep

pytestmark = [
    pytest.mark.box,
    pytest.mark.alone,
    pytest.mark.long,
    pytest.mark.requires_root,
    pytest.mark.requires_program("fio"),
    pytest.mark.requires_program("perf"),
    pytest.mark.requires_program("losetup"),
]
OF_THE_MACHINE = re.compile("the kernel had no room|this kernel hides idle processors")
SYNCS = {"tool": "fio", "rw": "write", "bs": "4KiB", "size": "1MiB", "direct": True, "fsync": 1, **CLOCK}
"""Direct: no thread of the kernel writes data of the tool. Each write appends, so that each sync needs a commit."""
STREAM = {"tool": "fio", "rw": "write", "bs": "1MiB", "size": "32MiB", "direct": True, **CLOCK}


def test_data_of_others_is_written_beside_a_neighbour_on_the_same_file_system_and_nowhere_else(
    results_dir: Path,
) -> None:
    place = workflow.run(
        sweep(
            filesystems={"here": {**EXT4, "options": ["data=ordered"]}, "there": EXT4},
            workloads={"commit": {**SYNCS, "beside": ["none", "at_here", "at_there"]}},
            neighbours={f"at_{name}": {**STREAM, "where": {"filesystem": name}} for name in ("here", "there")},
            exclude=[{"filesystem": "there", "beside": "none"}, {"filesystem": "there", "beside": "at_here"}],
            design={"repeats": 1, "explain": 2},
        ),
        results=results_dir,
    )
    run = store.load_run(place)
    withheld = set(run.why.traces["withheld"]) - {""}
    if withheld and all(map(OF_THE_MACHINE.search, withheld)):
        pytest.skip(f"trials without a split: {min(withheld)}")
    assert not withheld
    work = run.why.work.set_index("cell")
    shares = {
        quantity: {cell: list(rows["value"]) for cell, rows in work[work["quantity"] == quantity].groupby("cell")}
        for quantity in (COMMIT_SHARE, OTHERS_SHARE)
    }
    commit, others = shares[COMMIT_SHARE], shares[OTHERS_SHARE]
    alone, same, other, there = (
        "here/commit beside=none", "here/commit beside=at_here", "here/commit beside=at_there",
        "there/commit beside=at_there",
    )  # fmt: skip
    assert commit.keys() == others.keys() == {alone, same, other, there}
    assert {len(values) for values in others.values()} == {2}
    assert all(0 < value <= 1 for values in commit.values() for value in values), commit
    assert others[alone] == others[other] == [0, 0], others
    assert all(
        0 < value <= whole for cell in (same, there) for value, whole in zip(others[cell], commit[cell], strict=True)
    ), others
    text = html.words_of(sections.why(run))
    assert re.search(r"commit beside=at_here : On here a sync waits for the journal in ", text), text

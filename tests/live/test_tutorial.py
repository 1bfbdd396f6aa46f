"""The tutorial, done: its sweep is planned, run until it is precise, made again from its raw output, and handed on."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from mountlab import __main__
from mountlab.core.places import SHIPPED
from mountlab.results import paths, store, tables
from mountlab.runner import workflow
from ownbox import own_box
from project.test_docs import FILE

pytestmark = [
    pytest.mark.box,
    pytest.mark.long,
    pytest.mark.requires_root,
    pytest.mark.requires_program("sshd"),
    pytest.mark.requires_program("fio"),
]

TUTORIAL = (SHIPPED / "docs" / "tutorial.md").read_text()
SMALL = {
    "workloads.write.size": "4MiB", "workloads.write.runtime": "150ms", "filesystems.ext4.image": "64MiB",
    "filesystems.tmpfs.size": "64MiB", "workloads.write.bs": ["4KiB"], "warmup": 0, "seed": 7, "until.min": 3,
    "until.max": 4, "drop_caches": False,
}  # fmt: skip
"""Of a size for a test: one of the two block sizes, and fewer blocks."""


def test_what_the_tutorial_tells_one_to_do(
    tmp_path: Path, results_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own_box(tmp_path, monkeypatch)
    sweep = tmp_path / "flush.yml"
    text = next(body for name, body in FILE.findall(TUTORIAL) if name.endswith("flush.yml"))
    sweep.write_text(text)

    assert __main__.main(["plan", str(sweep)]) == 0
    plan = capsys.readouterr().out
    shown = re.search(r"```text\n(trials .*?)```", TUTORIAL, re.DOTALL)
    assert shown is not None
    for line in shown[1].splitlines():
        assert line.partition("…")[0].strip() in plan, "what the tutorial shows is what the plan says"
    assert list(results_dir.iterdir()) == []

    (rule,) = re.findall(r"^design: \{until.*\}$", TUTORIAL, re.MULTILINE)
    sweep.write_text(text.replace("design: {repeats: 3}", rule))
    resolved = paths.load_sweep(sweep, SMALL)
    path = workflow.run(resolved, results=results_dir)
    run = store.load_run(path)
    assert {each.workload for each in run.comparisons} == {"write"}
    assert len(run.comparisons) == 2
    assert {stop.reason for stop in run.stops} <= {"precise", "max reached"}

    tables.write_derived(run)
    estimates = (path / "estimates.csv").read_bytes()
    (path / "estimates.csv").unlink()
    assert __main__.main(["reparse", str(path)]) == 0
    assert (path / "estimates.csv").read_bytes() == estimates
    assert __main__.main(["export", str(path), "--format", "xlsx"]) == 0
    (book,) = (path / "export").glob("*.xlsx")
    assert len(pd.read_excel(book, sheet_name="comparisons")) == 2

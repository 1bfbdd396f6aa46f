"""What a program does, for real: one whose operations are chosen, through a run, its report, its YAML and fio."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
import yaml
from mountlab.box import leftovers
from mountlab.box.embedded import open_box
from mountlab.report.execute import write_report
from mountlab.results import paths, store
from mountlab.results.paths import load_sweep
from mountlab.runner import workflow
from ownbox import own_box
from sweeps import TMPFS, as_is

pytestmark = [
    pytest.mark.box,
    pytest.mark.requires_root,
    pytest.mark.requires_program("sshd"),
    pytest.mark.requires_program("strace"),
    pytest.mark.requires_program("fio"),
]

PROGRAM = """\
import os, sys, threading
os.chdir(sys.argv[1])
os.mkdir("secret-customers")
fd = os.open("secret-customers/accounts.db", os.O_RDWR | os.O_CREAT)
for n in range(64):
    os.pwrite(fd, b"x" * 4096, n * 4096)
    if n % 4 == 3:
        os.fdatasync(fd)
for n in range(64):
    os.pread(fd, 4096, n * 37 % 64 * 4096)
os.rename("secret-customers/accounts.db", "secret-customers/new.db")
os.posix_fallocate(os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 0, 100_000)
os.unlink("log")
print("worked 7 things")
"""


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    own_box(tmp_path, monkeypatch)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    program.chmod(0o644)
    return {
        "tool": "command",
        "argv": f"/usr/bin/env python3 -I -S {program} {{directory}}",
        "space": "1MiB",
        "time": "1s",
        "metrics": {"things": {"pattern": r"worked (\d+) things", "unit": "things", "better": "neither"}},
    }


def test_a_program_is_profiled_reported_and_imitated(tmp_path: Path, entry: dict[str, Any]) -> None:
    design = {"repeats": 1, "profile": True}
    resolved = as_is(filesystems={"tmpfs": TMPFS}, workloads={"mine": entry}, design=design)
    path = workflow.run(resolved, results=tmp_path / "results")
    run = store.load_run(path)
    assert [trial for trial in run.trials["trial_id"] if trial.startswith("p")] == ["p0001"]
    assert set(run.measurements[~run.measurements["warmup"]]["trial_id"]) == {"t0001"}
    (program,) = run.programs
    profile = program.profile
    assert profile is not None, program.reason
    assert profile.reads
    assert profile.writes
    assert (profile.writes.pattern, profile.writes.calls, profile.writes.bytes) == ("sequential", 64, 64 * 4096)
    assert (profile.reads.calls, profile.reads.unique_bytes) == (64, 64 * 4096)
    assert profile.reads.pattern in ("random", "strided")
    assert (profile.syncs.names, profile.syncs.writes_between.median) == ({"fdatasync": 16}, 4)
    files = profile.files
    assert (files.created, files.removed, files.renamed, files.directories_made) == (2, 1, 1, 1)
    assert profile.flags["O_APPEND"] == 1
    kept = gzip.decompress((path / "raw" / "p0001" / "program_calls.gz").read_bytes()).decode()
    assert not any(word in kept for word in ("secret", "accounts", "log", str(tmp_path)))

    page = write_report(path).read_text()
    assert "What each program does" in page
    assert "16 syncs under mine" in page
    figures = yaml.safe_load((path / "program.yml").read_text())["mine"]["tmpfs"]
    assert (figures["writes"]["sizes"], figures["syncs"]["calls"]) == ({4096: 64}, 16)

    imitation = load_sweep(path / "program-fio.yml", {"design.repeats": 1, "design.warmup": 0, "design.profile": True})
    again = store.load_run(workflow.run(imitation, results=tmp_path / "results"))
    (fio,) = again.programs
    assert fio.profile is not None, fio.reason
    assert fio.profile.writes
    assert {size.size for size in fio.profile.writes.sizes} == {4096}
    assert fio.profile.syncs.writes_between.median == 4
    with open_box(paths.load_box("local")) as connection:
        assert leftovers.remove_leftovers(connection, dry_run=True) == []

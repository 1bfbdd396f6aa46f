"""`make demo` at a very small size: as root, and as an ordinary user who may not mount anything."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from facts import known
from mountlab.__main__ import main
from mountlab.box import leftovers
from mountlab.box.embedded import open_box
from mountlab.results import paths
from mountlab.runner import workflow
from mountlab.runner.demo import choose
from ordinary import ordinary_user

pytestmark = [pytest.mark.box, pytest.mark.requires_program("sshd"), pytest.mark.requires_program("fio")]

TINY = [
    "repeats=2", "warmup=0", "drop_caches=false", "design.shortest_trial=0s",
    "workloads.dd-write.count=8", "workloads.dd-write.runtime=100ms", "workloads.dd-read=null",
    "workloads.fio-random-write.size=8MiB", "workloads.fio-random-write.runtime=200ms",
    "workloads.fio-random-read=null",
]  # fmt: skip
"""One workload of each tool."""


def demo(changes: list[str]) -> list[str]:
    return ["demo", "--yes", *(word for change in changes for word in ("-p", change))]


@pytest.mark.requires_root
def test_the_demo_prints_the_answer_and_the_path_of_the_report_and_leaves_nothing(
    results_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(workflow.run.__kwdefaults__, "results", results_dir)
    once = "exclude=[{filesystem: tmpfs, workload: fio-random-write}, {filesystem: ramfs, workload: dd-write}]"
    assert main(demo([*TINY, once])) == 0
    stdout = capsys.readouterr().out
    (page,) = results_dir.glob("*/report.html")
    assert stdout.splitlines()[-1] == f"report: {page}"
    rows = [line.split()[:4] for line in stdout.splitlines()]
    assert ["dd-write", "tmpfs", "/", "ext4"] in rows
    assert ["fio-random-write", "ramfs", "/", "ext4"] in rows
    with open_box(paths.load_box("local")) as connection:
        assert leftovers.remove_leftovers(connection, dry_run=True) == []


@pytest.mark.long
@pytest.mark.requires_root
@pytest.mark.requires_program("useradd")
@pytest.mark.requires_program("setpriv")
def test_an_ordinary_user_gets_a_report_of_the_directories_that_he_may_write() -> None:
    with ordinary_user() as user:
        results = f"MOUNTLAB_RESULTS={user.home}/results"
        become, python = user.python[:-1], user.python[-1]
        done = subprocess.run(
            [*become, results, python, "-m", "mountlab", *demo(TINY)],
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        rows = [line.split()[:4] for line in done.stdout.splitlines()]
        assert ["dd-write", "shm", "/", "disk"] in rows
        assert "tmpfs, ramfs, ext4 were left out: mounting needs root or password-less sudo on the box" in done.stdout
        (page,) = (user.home / "results").glob("*/report.html")
        assert "mounting needs root or password-less sudo on the box" in page.read_text()
        left = [path for root in (Path("/var/tmp"), Path("/dev/shm")) for path in root.glob(f"mountlab-{user.name}*")]
        assert left == []


FACTS = known(rights="root", programs={"dd": {}, "fio": {}}, hostname="box")


def test_with_all_rights_and_tools_nothing_is_left_out() -> None:
    assert choose(FACTS, {}).sweep.left_out == {}


def test_without_fio_its_workloads_are_left_out_and_said_to_be() -> None:
    sweep = choose(known(FACTS, programs={"dd": {}}), {}).sweep
    assert {workload.tool for workload in sweep.workloads} == {"dd"}
    assert sweep.left_out["fio-sequential"] == "fio-sequential: the box has no fio, and installing it needs root"

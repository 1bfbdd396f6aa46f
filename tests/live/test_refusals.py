"""Bad input of every kind: one clear error, the exit code of the design, and nothing touched on the box."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from mountlab import __main__
from mountlab.box import leftovers
from mountlab.box.embedded import open_box
from mountlab.report import execute, kernels, sections
from mountlab.results import paths, store
from mountlab.runner import workflow
from pages import Page
from sweeps import DD_WRITE, TMPFS

pytestmark = [pytest.mark.box, pytest.mark.requires_program("sshd")]

SWEEP = {
    "question": "Is it refused?",
    "filesystems": {"tmpfs": TMPFS},
    "workloads": {"dd": DD_WRITE},
    "design": {"repeats": 1, "warmup": 0},
}


@pytest.fixture
def parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A params/ of the test's own, with the repository's local box."""
    for name in ("boxes", "sweeps", "published"):
        (tmp_path / "params" / name).mkdir(parents=True)
    shutil.copy(paths.PARAMS / "boxes" / "local.yml", tmp_path / "params" / "boxes")
    monkeypatch.setattr(paths, "PARAMS", tmp_path / "params")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "params"


@pytest.fixture(autouse=True)
def box_stays_clean() -> Iterator[None]:
    yield
    with open_box(paths.load_box("local")) as connection:
        assert leftovers.remove_leftovers(connection, dry_run=True) == []


def refused(
    parameters: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], *more: str
) -> tuple[int, str]:
    """Exit code and error text of `mountlab run` on the sweep with these changes."""
    path = parameters / "sweeps" / "x.yml"
    path.write_text(yaml.safe_dump({**SWEEP, **changes}))
    code = __main__.main(["run", str(path), *more])
    return code, capsys.readouterr().err


@pytest.mark.requires_root  # others are refused the mount first
def test_an_image_larger_than_the_disk_has_room_for(parameters: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, error = refused(parameters, capsys, {"filesystems": {"big": {"type": "ext4", "image": "900TiB"}}})
    assert code == 2
    assert "error: too large: image 900 TiB" in error
    assert "filesystems.big.image" in error
    assert "free in /var/tmp/mountlab-" in error


@pytest.mark.requires_root
def test_a_ram_disk_larger_than_the_memory_allows(parameters: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, error = refused(parameters, capsys, {"filesystems": {"t": {"type": "ramfs", "size": "100TiB"}}})
    assert code == 2
    assert "too large: size 100 TiB" in error
    assert "80% of the available memory" in error


@pytest.mark.requires_root
@pytest.mark.requires_program("fio")
def test_jobs_that_together_write_more_than_the_file_system_holds(
    parameters: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """8 jobs of 8G on a 4G device: size counts for each job."""
    fio = {"tool": "fio", "rw": "write", "size": "16MiB", "numjobs": 8}
    code, error = refused(parameters, capsys, {"workloads": {"fio": fio}})
    assert code == 2
    assert "too large: fio writes 128 MiB" in error
    assert "allowed: at most 64.0 MiB (room in filesystems.tmpfs)" in error


def test_a_box_that_nobody_described(parameters: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, error = refused(parameters, capsys, {}, "--box", "nowhere")
    assert code == 2
    assert "no such box file" in error
    assert "use one of: example, local, vm. " in error, "local of the workspace, the others come with Mountlab"


def test_a_box_that_does_not_answer(parameters: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        (parameters / "boxes" / "gone.yml").write_text(f"host: 127.0.0.1\nport: {port}\n")
        code, error = refused(parameters, capsys, {}, "--box", "gone")
    assert code == 3
    assert "params/boxes/gone.yml" in error
    assert "next:" in error


def test_mounting_without_the_right_to(parameters: Path, capsys: pytest.CaptureFixture[str]) -> None:
    box = parameters / "boxes" / "local.yml"
    box.write_text(f"{box.read_text()}become: none\n")
    code, error = refused(parameters, capsys, {})
    assert code == 2
    assert "the box does not let us mount tmpfs" in error
    assert "type: dir" in error


def test_a_directory_that_does_not_exist(parameters: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, error = refused(parameters, capsys, {"filesystems": {"d": {"type": "dir", "path": "/var/no-such-place"}}})
    assert code == 2
    assert "/var/no-such-place is not a directory" in error


@pytest.mark.requires_program("fio")
def test_a_workload_that_fails_ends_with_exit_code_1_and_still_gives_a_report(
    parameters: Path, capsys: pytest.CaptureFixture[str], results_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[Path] = []
    monkeypatch.setattr(kernels, "prepare", lambda: None)
    monkeypatch.setattr(execute, "write_report", lambda run: reported.append(run) or run / "report.html")
    monkeypatch.setitem(workflow.run.__kwdefaults__, "results", results_dir)
    fio = {"tool": "fio", "rw": "write", "size": "1MiB", "buffer_pattern": "no-such-pattern"}
    path = parameters / "sweeps" / "x.yml"
    filesystems = {"d": {"type": "dir"}}
    path.write_text(yaml.safe_dump({**SWEEP, "filesystems": filesystems, "workloads": {"fio": fio, "dd": DD_WRITE}}))
    assert __main__.main(["run", str(path)]) == 1
    output = capsys.readouterr()
    assert "error: Failed trials (1 cell): " in output.out
    assert "no-such-pattern" in output.out
    (run,) = results_dir.glob("2*")
    assert reported == [run]
    shown = Page(sections.trials(store.load_run(run))._repr_html_()).words
    assert "Trials that gave no measurement" in shown
    assert "no-such-pattern" in shown


def test_plan_changes_nothing_and_names_everything(parameters: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = parameters / "sweeps" / "x.yml"
    path.write_text(yaml.safe_dump({**SWEEP, "filesystems": {"d": {"type": "dir"}}}))
    assert __main__.main(["plan", str(path)]) == 0
    text = capsys.readouterr().out
    assert "trials       1: 1 cells x 1 blocks" in text
    assert "formats      nothing" in text
    assert not Path(str(paths.load_box("local").mount_root)).exists()

"""The record of layers, where the disk is full or a tool is gone. No layer is made here."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from mountlab.core.shell import script_argv

BELOW = "6d6f756e-746c-6162-1111-111111111111 md images /dev/loop98 /dev/loop99"
ABOVE = "6d6f756e-746c-6162-2222-222222222222 luks images /dev/md99"
ORDINARY = ("awk", "cat", "cut", "dd", "grep", "ls", "mv", "readlink", "rm", "sed", "sh", "stat", "tail", "tr")


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """A run's directory, and beside it `tools`: all that the script finds."""
    (tmp_path / "tools").mkdir()
    for name in ORDINARY:
        (tmp_path / "tools" / name).symlink_to(str(shutil.which(name)))
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def tool(run_dir: Path, name: str, text: str) -> None:
    path = run_dir.parent / "tools" / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def layer(run_dir: Path, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
    argv = script_argv("layer.sh", verb, str(run_dir), *words)
    return subprocess.run(
        argv, env={"PATH": str(run_dir.parent / "tools")}, cwd=run_dir, capture_output=True, text=True, check=False
    )


def test_a_layer_that_only_a_missing_tool_could_see_does_not_pass_for_undone(run_dir: Path) -> None:
    (run_dir / "layers").write_text(f"{BELOW}\n")
    done = layer(run_dir, "back", BELOW.split()[0])
    assert (done.returncode, (run_dir / "layers").read_text()) == (1, f"{BELOW}\n")
    assert done.stderr.startswith("refused: the box lacks mdadm")


def test_a_full_disk_does_not_lose_the_layers_that_remain(run_dir: Path) -> None:
    (run_dir / "layers").write_text(f"{BELOW}\n{ABOVE}\n")
    (run_dir / "layers.new").symlink_to("/dev/full")
    done = layer(run_dir, "back", ABOVE.split()[0])
    assert done.returncode == 0
    assert BELOW in (run_dir / "layers").read_text().splitlines()
    tool(run_dir, "mdadm", "exit 0")
    assert layer(run_dir, "back", BELOW.split()[0]).returncode == 0
    assert layer(run_dir, "back", ABOVE.split()[0]).returncode == 0
    assert not (run_dir / "layers").exists(), "with room again, nothing remains"


def made(run_dir: Path, marked: str) -> list[str]:
    """What `seen` has after a try to make an array, which its stand-in for mdadm refuses."""
    words = (BELOW.split()[0], marked, "--level=raid1", "--", "/dev/loop98", "/dev/loop99")
    assert layer(run_dir, "make", "md", *words).returncode == 1
    return (run_dir / "seen").read_text().splitlines()


def test_the_line_of_a_layer_is_whole_though_an_earlier_one_was_cut(run_dir: Path) -> None:
    (run_dir / "layers").write_text(ABOVE[:20])
    tool(run_dir, "mdadm", "case $1 in --create) cat layers >seen; exit 1 ;; esac")
    assert BELOW in made(run_dir, "images")


def test_the_record_of_what_a_restart_does_not_undo_is_on_the_medium_before_it_is_made(run_dir: Path) -> None:
    tool(run_dir, "mdadm", "case $1 in --create) echo create >>seen; exit 1 ;; esac")
    tool(run_dir, "sync", 'echo "sync ${1##*/}" >>seen')
    assert made(run_dir, "marked") == ["sync layers", "create"]


def test_no_list_of_volumes_or_lock_manager_of_the_box_s_own_keeps_a_group_from_its_volume(run_dir: Path) -> None:
    tool(run_dir, "lvm", 'for word; do case $word in *activation*) echo "$word" >>seen ;; esac; done; exit 1')
    for name in ("blkid", "dmsetup"):
        tool(run_dir, name, "exit 1")
    words = ("lvm", BELOW.split()[0], "images", "volumes=1,2", "--type=linear", "--", "/dev/loop98", "/dev/loop99")
    assert layer(run_dir, "make", *words).returncode == 1
    seen = (run_dir / "seen").read_text()
    assert 'volume_list = [ "mountlab-1111111111111111" ]' in seen
    assert "use_lvmlockd = 0" in seen


@pytest.mark.parametrize(
    ("same_boot", "signature", "marked"), [(True, "", True), (False, "", False), (True, "xfs", False)]
)
def test_a_device_without_a_signature_is_marked_again_but_after_a_restart_it_may_be_another_disk(
    same_boot: bool, signature: str, marked: bool, run_dir: Path
) -> None:
    """Defect: a device that carries no UUID, or was not there, passed for one of the layer."""
    device = next((path for path in Path("/dev").iterdir() if path.is_block_device()), None)
    if device is None:
        pytest.skip("needs the node of a block device, which is not opened")
    tool(run_dir, "wipefs", f'echo "$*" >>seen; [ "$1" != -n ] || printf %s "{signature}"')
    for name in ("mke2fs", "blkid", "blockdev"):
        tool(run_dir, name, "exit 0")
    (run_dir / "layers").write_text(f"{ABOVE.split()[0]} luks marked {device} /dev/no-such-disk\n")
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip() if same_boot else "another"
    (run_dir / "layers.process").write_text(f"{ABOVE.split()[0]} {boot} made\n")
    done = layer(run_dir, "back", ABOVE.split()[0])
    assert done.returncode == 0, done.stderr
    wiped = [line for line in (run_dir / "seen").read_text().splitlines() if line.startswith("-a")]
    assert wiped == ([f"-a -q -- {device}"] if marked else [])

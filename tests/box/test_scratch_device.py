"""Scratch devices: formatted only when blank or ours, and every refused device stays as it was, to the byte."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from mountlab import care, store, workflow
from mountlab.boxes import open_box
from mountlab.errors import PlanError, UnsafeError
from sweeps import DD_WRITE, sweep

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("losetup")]

SIZE = 64 * 2**20
BY_ID = Path("/dev/disk/by-id")


@dataclass(frozen=True)
class Device:
    """A loop device of the test's own, under a stable name such as a disk has."""

    path: str
    stable: str
    image: Path

    def digest(self) -> str:
        return hashlib.sha256(self.image.read_bytes()).hexdigest()


def command(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


def missing_parents(directory: Path) -> list[Path]:
    return [each for each in (directory, *directory.parents) if not each.exists()]


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Device]:
    image = tmp_path / "disk.img"
    with image.open("wb") as file:
        file.truncate(SIZE)
    made = missing_parents(BY_ID)
    BY_ID.mkdir(parents=True, exist_ok=True)
    path = command("losetup", "--find", "--show", str(image))
    stable = BY_ID / f"mountlab-test-{path.rpartition('/')[2]}"
    stable.symlink_to(path)
    try:
        yield Device(path, str(stable), image)
    finally:
        stable.unlink()
        command("losetup", "-d", path)
        for directory in made:
            directory.rmdir()


@pytest.fixture
def scratch_box(device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Device:
    """The local box, with the device as its scratch device `data`."""
    boxes = tmp_path / "params" / "boxes"
    boxes.mkdir(parents=True)
    (boxes / "local.yml").write_text(f"embedded: loopback\nscratch:\n  data: {device.stable}\n")
    monkeypatch.setattr(store, "PARAMS", tmp_path / "params")
    return device


def measure(results: Path) -> store.Run:
    resolved = sweep(filesystems={"ext4": {"type": "ext4", "device": "data"}}, workloads={"dd-write": DD_WRITE})
    return store.load_run(workflow.run(resolved, results=results))


def test_a_blank_device_is_formatted_measured_and_recognised_as_ours_the_next_time(
    scratch_box: Device, results_dir: Path
) -> None:
    for _ in range(2):
        run = measure(results_dir)
        assert list(run.trials["status"].unique()) == ["ok"]
    guard = next(run.path.glob("raw/*/guard.txt")).read_text()
    assert guard.strip().endswith("holds a file system that Mountlab made (label mountlab)")
    with open_box(store.load_box("local")) as connection:
        assert care.clean(connection, dry_run=True) == []


def test_the_plan_says_what_is_on_the_device(scratch_box: Device, results_dir: Path) -> None:
    resolved = sweep(filesystems={"ext4": {"type": "ext4", "device": "data"}})
    with workflow.planned(resolved, results=results_dir) as session:
        assert session.facts["devices"] == {"ext4": f"{scratch_box.stable}: {scratch_box.path} is blank"}


def ext4_with_data(device: Device) -> None:
    command("mke2fs", "-q", "-F", "-t", "ext4", "-L", "MYDATA", device.path)


def sfdisk(device: Device, label: str) -> None:
    program = shutil.which("sfdisk", path="/usr/sbin:/sbin:/usr/bin:/bin")
    assert program is not None
    table = f"label: {label}\n,\n"
    subprocess.run([program, "-q", "--no-reread", device.path], input=table, text=True, check=True, capture_output=True)


def partition_table(device: Device) -> None:
    sfdisk(device, "gpt")


def dos_partition_table(device: Device) -> None:
    sfdisk(device, "dos")


def swap(device: Device) -> None:
    command("mkswap", device.path)


def bytes_without_a_signature(device: Device) -> None:
    """A database on a raw device looks like nothing at all to blkid."""
    command("dd", "if=/dev/urandom", f"of={device.path}", "bs=4096", "count=1", "seek=100", "conv=fsync")


@pytest.mark.parametrize(
    ("fill", "found"),
    [
        (ext4_with_data, "holds data: "),
        pytest.param(partition_table, "holds data: ", marks=pytest.mark.requires_program("sfdisk")),
        pytest.param(dos_partition_table, "holds data: ", marks=pytest.mark.requires_program("sfdisk")),
        (swap, "holds data: "),
        (bytes_without_a_signature, "is not blank (MiB 0 is not all zeros)"),
    ],
)
def test_a_device_with_data_is_refused_and_not_touched(
    fill: Callable[[Device], None], found: str, scratch_box: Device, results_dir: Path
) -> None:
    """mke2fs with no terminal overwrites an existing file system without -F and returns 0."""
    fill(scratch_box)
    command("sync")
    before = scratch_box.digest()
    with pytest.raises(UnsafeError) as refusal:
        measure(results_dir)
    assert refusal.value.exit_code == 4
    assert f"{scratch_box.stable} will not be formatted" in str(refusal.value)
    assert found in refusal.value.got
    assert scratch_box.digest() == before


@contextmanager
def mounted(device: Device, place: Path) -> Iterator[None]:
    place.mkdir()
    command("mke2fs", "-q", "-F", "-t", "ext4", "-L", "mountlab", device.path)
    command("mount", device.path, str(place))
    try:
        yield
    finally:
        command("umount", str(place))


def test_a_mounted_device_is_refused_even_with_our_own_label(
    scratch_box: Device, results_dir: Path, tmp_path: Path
) -> None:
    with (
        mounted(scratch_box, tmp_path / "pytest-of-mount"),
        pytest.raises(UnsafeError, match="will not be formatted") as refusal,
    ):
        measure(results_dir)
    assert refusal.value.got == f"{scratch_box.path} is mounted"


def test_a_device_that_fills_between_plan_and_run_is_refused_before_mkfs(
    scratch_box: Device, results_dir: Path
) -> None:
    """The guard runs again before every mkfs, not only when the plan is made."""
    from mountlab.runner import run_sweep
    from sweeps import Silent

    resolved = sweep(filesystems={"ext4": {"type": "ext4", "device": "data"}}, workloads={"dd-write": DD_WRITE})
    with workflow.planned(resolved, results=results_dir) as session:
        ext4_with_data(scratch_box)
        command("sync")
        before = scratch_box.digest()
        writer = store.RunWriter.create(session.plan, resolved, session.facts, results=results_dir)
        with pytest.raises(UnsafeError, match="refused to go on: the device must be blank, or ours"):
            run_sweep(session.plan, session.connection, writer, Silent())
    assert scratch_box.digest() == before


def test_a_workload_larger_than_the_device_is_refused_in_the_plan(scratch_box: Device, results_dir: Path) -> None:
    resolved = sweep(
        filesystems={"ext4": {"type": "ext4", "device": "data"}}, workloads={"dd": {**DD_WRITE, "count": 100}}
    )
    with pytest.raises(PlanError, match="too large: dd writes 100 MiB") as refusal:
        workflow.run(resolved, results=results_dir)
    assert refusal.value.allowed == "at most 57.6 MiB (room in filesystems.ext4)"

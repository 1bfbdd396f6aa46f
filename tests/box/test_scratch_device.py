"""Scratch devices: formatted only when blank or ours, and every refused device stays as it was, to the byte."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from mountlab import care, store, workflow
from mountlab.box import BoxConnection, Completed, RecordingBox
from mountlab.boxes import open_box
from mountlab.errors import PlanError, UnsafeError
from mountlab.runner import run_sweep
from sweeps import DD_WRITE, Silent, sweep

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
        assert session.facts["devices"] == {"ext4": f"{scratch_box.stable}: {scratch_box.path} looks blank"}


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


def bytes_in_the_middle(device: Device) -> None:
    """The first and the last MiB say nothing of what lies between."""
    command("dd", "if=/dev/urandom", f"of={device.path}", "bs=1", "count=9", "seek=40000000", "conv=fsync")


def a_wiped_beginning(device: Device) -> None:
    """The usual accident: the signature is gone, the data can still be rescued."""
    ext4_with_data(device)
    command("dd", "if=/dev/zero", f"of={device.path}", "bs=1M", "count=1", "conv=fsync")


@pytest.mark.parametrize(
    ("fill", "found"),
    [
        (ext4_with_data, "holds data: "),
        pytest.param(partition_table, "holds data: ", marks=pytest.mark.requires_program("sfdisk")),
        pytest.param(dos_partition_table, "holds data: ", marks=pytest.mark.requires_program("sfdisk")),
        (swap, "holds data: "),
        (bytes_without_a_signature, "has no known signature, but is not blank"),
        (bytes_in_the_middle, "has no known signature, but is not blank"),
        (a_wiped_beginning, "is not blank"),
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


def test_a_device_mounted_in_another_namespace_only_is_refused(
    scratch_box: Device, results_dir: Path, tmp_path: Path
) -> None:
    """/proc/self/mountinfo does not show it; an exclusive open does."""
    place = tmp_path / "elsewhere"
    place.mkdir()
    command("mke2fs", "-q", "-F", "-t", "ext4", "-L", "mountlab", scratch_box.path)
    hidden = f"mount {scratch_box.path} {place} && echo mounted && read _"
    with subprocess.Popen(
        ["unshare", "-m", "sh", "-c", hidden], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        if holder.stdout.readline() != "mounted\n":
            pytest.skip("a mount cannot be hidden here: unshare -m does not work (inside a chroot, say)")
        with pytest.raises(UnsafeError) as refusal:
            measure(results_dir)
        holder.communicate("\n")
    assert refusal.value.got == f"{scratch_box.path} is in use, or too small"


def test_a_second_loop_device_on_the_same_file_is_refused(scratch_box: Device, results_dir: Path) -> None:
    other = command("losetup", "--find", "--show", str(scratch_box.image))
    try:
        with pytest.raises(UnsafeError) as refusal:
            measure(results_dir)
    finally:
        command("losetup", "-d", other)
    assert refusal.value.got == f"{other.rpartition('/')[2]} is on the same file as {scratch_box.path}"


def test_a_stable_name_that_is_swapped_after_the_guard_has_looked_does_no_harm(
    scratch_box: Device, results_dir: Path, tmp_path: Path
) -> None:
    """What is formatted is the device that was looked at, not what its name means a moment later."""
    precious_image = tmp_path / "precious.img"
    with precious_image.open("wb") as file:
        file.truncate(SIZE)
    precious = command("losetup", "--find", "--show", str(precious_image))
    try:
        command("mke2fs", "-q", "-F", "-t", "ext4", "-L", "MYDATA", precious)
        command("sync")
        before = hashlib.sha256(precious_image.read_bytes()).hexdigest()
        resolved = sweep(filesystems={"ext4": {"type": "ext4", "device": "data"}}, workloads={"dd-write": DD_WRITE})
        with workflow.planned(resolved, results=results_dir) as session:
            box = Swapper(session.connection, Path(scratch_box.stable), precious)
            writer = store.RunWriter.create(session.plan, resolved, session.facts, results=results_dir)
            run_sweep(session.plan, box, writer, Silent())
        assert box.swapped
        assert hashlib.sha256(precious_image.read_bytes()).hexdigest() == before
    finally:
        command("losetup", "-d", precious)


class Swapper(RecordingBox):
    """Lets the stable name lead to another device as soon as the guard has answered for the first time."""

    def __init__(self, inner: BoxConnection, link: Path, target: str) -> None:
        super().__init__(inner)
        self.link, self.target, self.swapped = link, target, False

    def run(self, argv: Sequence[str], *, timeout_s: float = 60.0, root: bool = False) -> Completed:
        done = super().run(argv, timeout_s=timeout_s, root=root)
        if "guard.sh" in argv and not self.swapped:
            self.link.unlink()
            self.link.symlink_to(self.target)
            self.swapped = True
        elif argv[0] == "umount" and self.swapped:  # the second block would, rightly, be refused
            self.link.unlink()
            self.link.symlink_to(self._first_device())
        return done

    def _first_device(self) -> str:
        return next(call.argv[-1] for call in self.calls if "mke2fs" in call.argv)

"""Claiming a scratch device, from the command line to the mark. What it makes of each state: test_guard_states.py."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import disks
import pytest
from device_states import claim, guard
from disks import MIB, RECORDS, THEIRS, Disks
from mountlab import __main__
from mountlab.core.shell import script_argv
from ownbox import own_box

pytestmark = [
    pytest.mark.box,
    pytest.mark.requires_root,
    pytest.mark.requires_program("losetup", "mke2fs", "wipefs"),
]
STATE = Path("/run/mountlab-claim")
GIB = 2**30


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Disks]:
    with ExitStack() as undo:
        own = Disks(tmp_path, undo)
        yield own
        for device in own.loops:
            position(device).unlink(missing_ok=True)


def position(device: str) -> Path:
    return STATE / device.rpartition("/")[2]


# --- reading all of it ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [pytest.param(2 * GIB, marks=pytest.mark.long), 64 * GIB])
def test_holes_of_the_file_below_a_loop_device_take_no_time(size: int, made: Disks) -> None:
    device = made.loop(size=size)
    assert claim(device, seconds=0).stdout.startswith("claimed "), "one call, which was to read for no time"


def test_data_far_inside_of_a_sparse_file_is_found(made: Disks) -> None:
    """Among extents that hold zeros, and at no place that a list could name."""
    device = made.loop(size=64 * GIB)
    for at in (5 * GIB + 4096, 17 * GIB, 40 * GIB + 12_288):
        disks.write(device, bytes(8192), at=at)
    disks.write(device, b"x", at=41 * GIB + 77_777)
    refused = claim(device)
    assert f"there is data at byte {41 * GIB + 77_777} " in refused.stderr
    assert not position(f"{device}.sparse").exists(), "what was found there is its owner's"
    disks.write(device, b"\0", at=41 * GIB + 77_777)
    assert claim(device).returncode == 0


def test_what_was_written_and_is_still_on_its_way_to_the_file_is_found(made: Disks) -> None:
    device = made.loop(size=GIB)
    descriptor = os.open(device, os.O_WRONLY)
    os.pwrite(descriptor, b"x", 700 * MIB)
    os.close(descriptor)
    assert f"there is data at byte {700 * MIB} " in claim(device).stderr


def test_all_of_a_file_with_an_offset_is_read(made: Disks) -> None:
    """Its holes lie elsewhere than in the device."""
    image = made.image(100 * MIB)
    with image.open("r+b") as file:
        file.seek(99 * MIB)
        file.write(b"x")
    device = made.loop(image, "--offset", str(10 * MIB))
    assert f"there is data at byte {89 * MIB} " in claim(device).stderr


# --- interrupted ------------------------------------------------------------------------------------------------------


FULL = GIB // 4


def full(made: Disks, size: int = FULL) -> str:
    """A device of zeros without a hole: all of it is read."""
    image = made.image(size)
    with image.open("r+b") as file:
        os.posix_fallocate(file.fileno(), 0, size)
    return made.loop(image)


def test_reading_goes_on_where_it_stopped(made: Disks) -> None:
    """One part of 64 MiB for each call, as a limit of no seconds has it."""
    device, size = full(made), FULL
    seen = []
    while (said := claim(device, seconds=0).stdout).startswith("reading ") and len(seen) < 20:
        seen.append(int(said.split()[1]))
        assert int(said.split()[2]) == size
    assert said.startswith("claimed ")
    assert seen == sorted(set(seen))
    assert len(seen) >= 3
    assert not position(device).exists()


@pytest.mark.parametrize("writes", ["zeros", pytest.param("data", marks=pytest.mark.long)])
def test_a_device_that_was_written_to_in_between_is_read_from_the_beginning(writes: str, made: Disks) -> None:
    device = full(made)
    (first, second) = (claim(device, seconds=0).stdout.split()[1] for _ in range(2))
    assert int(second) > int(first)
    disks.write(device, b"x" if writes == "data" else b"\0", at=MIB)
    again = claim(device, seconds=0)
    if writes == "data":
        assert f"there is data at byte {MIB} " in again.stderr
    else:
        assert again.stdout.split()[1] == first


def test_a_position_is_not_that_of_another_file_on_the_same_loop_device(made: Disks) -> None:
    device = full(made)
    assert claim(device, seconds=0).stdout.startswith("reading ")
    kept = position(device).read_text()
    other = full(made)
    position(other).write_text(kept)
    disks.write(other, b"x", at=3 * MIB)
    assert f"there is data at byte {3 * MIB} " in claim(other, seconds=0).stderr


def test_a_kernel_that_does_not_count_what_is_written_gets_one_reading_of_all(made: Disks) -> None:
    device = full(made)
    counts = Path(f"/sys/block/{device.rpartition('/')[2]}/queue/iostats")
    counts.write_text("0")
    try:
        assert claim(device, seconds=0).stdout.startswith("claimed ")
    finally:
        counts.write_text("1")


def test_where_the_kernel_counts_nothing_content_is_compared(made: Disks) -> None:
    device = made.loop()
    counts = Path(f"/sys/block/{device.rpartition('/')[2]}/queue/iostats")
    counts.write_text("0")
    try:
        assert claim(device).returncode == 0
        assert guard(device).returncode == 0
        disks.write(device, b"x", at=3 * MIB)
        assert "since Mountlab claimed it: its first 4 MiB are not what they were" in guard(device).stderr
    finally:
        counts.write_text("1")


@pytest.mark.parametrize(("mode", "owner"), [(0o755, 0), (0o700, 65534)])
def test_a_record_that_others_could_have_written_is_none(mode: int, owner: int, made: Disks, tmp_path: Path) -> None:
    records = tmp_path / "records"

    def run(script: str, *words: str) -> subprocess.CompletedProcess[str]:
        argv = [word.replace(f"RECORDS={RECORDS} ", f"RECORDS={records} ") for word in script_argv(script, *words)]
        return subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)

    device = made.loop()
    assert run("claim.sh", device, "", "60").returncode == 0
    assert run("guard.sh", device, "", "").returncode == 0
    records.chmod(mode)
    os.chown(records, owner, 0)
    assert f"{records} has no claim of this device" in run("guard.sh", device, "", "").stderr
    refused = run("claim.sh", made.loop(), "", "60").stderr
    assert f"{records}, where the claim of /dev/loop" in refused
    assert "cannot be written, or is not root's own (mode 700)" in refused


def test_a_write_while_it_is_read_is_seen(made: Disks) -> None:
    """To what was read before: it was blank then. Here to the file below, which no open device shows."""
    device = full(made, 2 * FULL)
    write = "while dd if=/dev/zero of=$0 bs=4096 count=1 conv=notrunc 2>/dev/null; do sleep 0.02; done"
    writer = subprocess.Popen(["sh", "-c", write, str(made.images[-1])])
    try:
        done = claim(device)
    finally:
        writer.terminate()
        writer.wait()
    assert "was written to while it was read" in done.stderr


# --- from the command line --------------------------------------------------------------------------------------------


@pytest.fixture
def listed(made: Disks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The device behind `data` of the box file of the local box."""
    device = made.loop()
    own_box(tmp_path, monkeypatch, scratch={"data": str(made.by_id(device))})
    return device


def test_box_claim_claims_a_blank_device_and_box_check_names_it(
    listed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    __main__.main(["box", "check", "local"])
    shown = capsys.readouterr().out
    assert "Mountlab has not claimed it" in shown
    assert "mend: mountlab box claim local data" in shown
    assert __main__.main(["box", "claim", "local", "data"]) == 0
    assert (
        f"{listed} (64 MiB), every byte of it zero; the mark is bound to its size and file=" in capsys.readouterr().out
    )
    __main__.main(["box", "check", "local"])
    assert "holds ext2 of Mountlab's own" in capsys.readouterr().out
    assert guard(listed).returncode == 0


def test_box_claim_refuses_data_and_names_the_id_that_erases_it(
    listed: str, made: Disks, capsys: pytest.CaptureFixture[str]
) -> None:
    disks.ext4(listed)
    before = made.digests()
    assert __main__.main(["box", "claim", "local", "data"]) == 4
    said = capsys.readouterr().err
    assert f"holds ext4, id {THEIRS}" in said
    assert f"mountlab box claim local data --erase {THEIRS}" in said
    assert __main__.main(["box", "claim", "local", "data", "--erase", THEIRS[:-1]]) == 4
    assert made.digests() == before
    assert __main__.main(["box", "claim", "local", "data", "--erase", THEIRS]) == 0
    assert guard(listed).returncode == 0


def test_a_device_that_the_box_file_does_not_list_is_not_claimed(
    listed: str, made: Disks, capsys: pytest.CaptureFixture[str]
) -> None:
    before = made.digests()
    for name in ("other", listed):
        assert __main__.main(["box", "claim", "local", name]) == 2
        assert "lists no such scratch device" in capsys.readouterr().err
    assert made.digests() == before

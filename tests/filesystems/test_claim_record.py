"""What a record of a claim compares, by the shell functions themselves: nothing here needs a device."""

from __future__ import annotations

import shutil
import subprocess
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import pytest
from rows import every_row

MIB = 2**20
PAGE = 4096
ENDS = 4 * MIB


def shell(script: str, *words: str, path: str = "") -> str:
    """Run a script behind the functions of device.sh and claim_record.sh."""
    package = files("mountlab.filesystems")
    functions = "".join(package.joinpath(name).read_text() for name in ("device.sh", "claim_record.sh"))
    environment = {"PATH": path} if path else None
    argv = (str(shutil.which("sh")), "-c", f"{functions}\n{script}", "sh", *words)
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def pages(size: int, seed: str = "1844312584 2127658484", awk: str = "awk") -> list[int]:
    """The first byte of each page that is compared."""
    numbers = shell(f'awk() {{ command {awk} "$@"; }}; size=$1 seed=$2; page_numbers', str(size), seed)
    return [int(number) * PAGE for number in numbers.split()]


@pytest.mark.slow
@every_row("size", [9 * MIB, 64 * MIB, 300 * MIB + 512, 10 * 2**30, 2**40], ids=str)
def test_less_than_4_mib_lies_between_two_pages_that_are_compared(size: int) -> None:
    """So a change of 4 MiB in a row touches one of them, or an end."""
    compared = [ENDS - PAGE, *pages(size), size - ENDS]
    gaps = [after - before - PAGE for before, after in pairwise(compared)]
    assert min(gaps) >= 0, "in order, and none at an end"
    assert max(gaps) < 4 * MIB


def test_a_small_device_is_compared_whole() -> None:
    assert pages(8 * MIB) == pages(MIB) == []


def test_the_places_are_spread_evenly_and_follow_from_the_seed() -> None:
    """By the chi-squared test with 15 degrees of freedom, whose 99.9 % point is 37.7."""
    size = 2 * ENDS + 8000 * 2 * MIB
    offsets = [at % (2 * MIB) for at in pages(size)]
    counts = [sum(at * 16 // (2 * MIB) == part for at in offsets) for part in range(16)]
    assert sum((count - 500) ** 2 / 500 for count in counts) < 37.7
    other = [at % (2 * MIB) for at in pages(size, "1844312585 2127658484")]
    assert sum(ours == theirs for ours, theirs in zip(offsets, other, strict=True)) < 8000 / 512 * 3


@pytest.mark.parametrize("awk", ["mawk", "gawk", "busybox awk", "original-awk"])
def test_every_awk_finds_the_same_places(awk: str) -> None:
    if not shutil.which(awk.split()[0]):
        pytest.skip(f"{awk} is not installed")
    python = [ENDS + 2 * MIB * at + PAGE * place for at, place in enumerate(by_python(4000))]
    assert pages(2 * ENDS + 4000 * 2 * MIB, awk=awk) == python


def by_python(count: int) -> list[int]:
    """The two generators of L'Ecuyer (1988), with Python's own whole numbers."""
    first, second = 1844312584 % 2147483562 + 1, 2127658484 % 2147483398 + 1
    places = []
    for _ in range(count):
        first, second = first * 40014 % 2147483563, second * 40692 % 2147483399
        places.append((first + second) % 2147483563 * 512 // 2147483563)
    return places


def test_pages_are_read_alike_with_perl_and_without(tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(bytes(range(256)) * 16 + b"\x07" * PAGE + b"\xff" * PAGE)
    read = 'device=$1; printf "%s\\n" 2 0 1 | read_pages | od -A n -v -t x1 | tr -d " \\n"'
    plain = tmp_path / "bin"
    plain.mkdir()
    for tool in ("dd", "od", "tr"):
        (plain / tool).symlink_to(str(shutil.which(tool)))
    without = shell(read, str(image), path=str(plain))
    assert without == (b"\xff" * PAGE + bytes(range(256)) * 16 + b"\x07" * PAGE).hex()
    if shutil.which("perl"):
        assert shell(read, str(image)) == without


LOCAL = "/sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda"


@every_row(
    ("disk", "hypervisor", "is_shared"),
    [
        (LOCAL, False, False),
        ("/sys/devices/pci0000:00/0000:00:1d.0/nvme/nvme0/nvme0n1", False, False),
        (LOCAL, True, True),
        ("/sys/devices/platform/host3/session1/target3:0:0/3:0:0:1/block/sdb", False, True),
        ("/sys/devices/pci0000:00/0000:03:00.0/host1/rport-1:0-2/target1:0:0/1:0:0:0/block/sdc", False, True),
        ("/sys/devices/virtual/nvme-fabrics/ctl/nvme1/nvme1n1", False, True),
        ("/sys/devices/virtual/block/nbd0", False, True),
        ("/sys/devices/virtual/block/drbd1", False, True),
        ("/sys/devices/virtual/block/zram0", True, False),
    ],
)
def test_a_disk_that_others_reach_past_this_kernel_is_known_by_how_it_is_attached(
    disk: str, hypervisor: bool, is_shared: bool
) -> None:
    script = "grep() { return $has; }; disk=$1 has=$2 backing=; shared && echo shared || echo local"
    assert shell(script, disk, "0" if hypervisor else "1") == ("shared\n" if is_shared else "local\n")

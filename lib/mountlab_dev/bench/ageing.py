"""How long it takes to fill and age a file system, in times of writing as many bytes with dd."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from mountlab.core.units import MIB
from mountlab.filesystems.profiles import PROFILES, AgeingProfile, ageing_argv

from mountlab_dev.bench.table import Row, timed

SIZE, FILL, CHURN = 512 * MIB, 0.8, 2.0


def rows(repeats: int, scratch: Path) -> Iterator[Row]:
    """Yield for tmpfs and for ext4 on a loop device, and each profile: the ratio to dd, bytes and files a second."""
    if os.geteuid() != 0:
        yield Row("ageing in times of dd", [], "times", why_not="file systems are mounted by root only")
        return
    for kind in ("tmpfs", "ext4"):
        for profile in PROFILES.values():
            runs = [_once(kind, profile, scratch / f"{kind}-{profile.name}-{number}") for number in range(repeats)]
            title = f"{kind} of {SIZE // MIB} MiB, profile {profile.name}"
            ratios = [aged_s / dd_s for aged_s, dd_s, _, _ in runs]
            yield Row(f"fill {FILL} and write {CHURN:g} capacities, {title}, in times of dd", ratios, "times")
            yield Row(f"bytes written per second, {title}", [written / aged_s for aged_s, _, written, _ in runs], "B")
            yield Row(f"files created per second, {title}", [files / aged_s for aged_s, _, _, files in runs], "count")


def _once(kind: str, profile: AgeingProfile, scratch: Path) -> tuple[float, float, int, int]:
    """Return seconds of ageing and of dd, each on a fresh file system, with the bytes written and files created."""
    printed = ""

    def age() -> None:
        nonlocal printed
        argv = ageing_argv(str(directory), fill=FILL, churn=CHURN, profile=profile, seed=7)
        printed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout

    with _mounted(kind, scratch / "aged") as directory:
        (aged_s,) = timed(age, 1)
        created = max(int(path.name) for path in directory.rglob("*") if path.is_file())
    figures = dict(line.split() for line in printed.splitlines())
    written, largest = int(figures["written"]), int(int(figures["capacity"]) * FILL)
    with _mounted(kind, scratch / "dd") as directory:
        (dd_s,) = timed(lambda: _write(directory / "data", written, largest), 1)
    return aged_s, dd_s, written, created


def _write(path: Path, size: int, largest: int) -> None:
    """Write so many bytes with dd, in a file that is written again from the start as often as it takes."""
    while size > 0:
        count = min(size, largest) // MIB + 1
        argv = ("dd", "if=/dev/zero", f"of={path}", "bs=1M", f"count={count}", "conv=fsync")
        subprocess.run(argv, capture_output=True, check=True)
        size -= count * MIB


@contextmanager
def _mounted(kind: str, scratch: Path) -> Iterator[Path]:
    """An empty directory in a fresh file system."""
    image, place = scratch / "image", scratch / "mount"
    place.mkdir(parents=True)
    with ExitStack() as undo:
        if kind == "tmpfs":
            _run("mount", "-t", "tmpfs", "-o", f"size={SIZE}", "mountlab", str(place))
        else:
            image.touch()
            os.truncate(image, SIZE)
            _run("mke2fs", "-q", "-F", "-t", kind, "-E", "lazy_itable_init=0,lazy_journal_init=0", str(image))
            _run("mount", "-o", "loop", str(image), str(place))
            undo.callback(image.unlink)
        undo.callback(_run, "umount", str(place))
        (place / "aged").mkdir()
        yield place / "aged"


def _run(*argv: str) -> None:
    subprocess.run(argv, capture_output=True, check=True)

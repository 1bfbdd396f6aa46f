"""What strace prints of a program whose operations are chosen, written from strace's manual, and the figures of these
operations, counted apart from the product."""

from __future__ import annotations

import gzip
import os
import shlex
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from mountlab.core.shell import script_text
from mountlab.tracing.program import Profile
from mountlab.tracing.program_figures import profile_of

ROOT = "/mnt/run/t0001"


def without_names(text: str, directory: Path, *, most: int = 500_000, awk: str = "awk", root: str = ROOT) -> list[str]:
    """Return the lines that program_calls.sh keeps of strace's text, of a program with its directory at `root`."""
    test = directory / "test"
    test.mkdir(exist_ok=True)
    bin_directory = directory / f"bin-{Path(awk).name}"
    bin_directory.mkdir(exist_ok=True)
    wanted = bin_directory / "awk"
    if awk != "awk" and not wanted.exists():
        wanted.write_text(f'#!/bin/sh\nexec {awk} "$@"\n')
        wanted.chmod(0o755)
    head = f"out={shlex.quote(str(directory))} directory={shlex.quote(str(test))} most={most}"
    script = f"{head}\n{script_text('program_calls.sh')}"
    env = {**os.environ, "PATH": f"{bin_directory}:{os.environ['PATH']}"}
    subprocess.run(
        ["sh", "-c", script], input=text.replace(root, str(test)).encode(), cwd=test, env=env, check=True, timeout=60
    )
    return gzip.decompress((directory / "program_calls.gz").read_bytes()).decode().splitlines()


def profile_text(text: str, directory: Path, **more: object) -> Profile:
    """Return the profile of strace's text, by way of program_calls.sh."""
    return profile_of(without_names(text, directory, **more))  # type: ignore[arg-type]


@dataclass
class Strace:
    """Writes the lines of one or more threads, each call after the last one."""

    now_us: int = 1_700_000_000_000_000
    lines: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    offsets: dict[int, tuple[str, int]] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)
    read_sizes: Counter[int] = field(default_factory=Counter)
    touched: dict[str, set[int]] = field(default_factory=lambda: {"read": set(), "write": set()})
    unsynced: Counter[str] = field(default_factory=Counter)
    synced: list[int] = field(default_factory=list)
    began: dict[str, list[tuple[str, int]]] = field(default_factory=lambda: {"read": [], "write": []})

    def call(self, text: str, result: str, *, thread: int = 100, took_us: int = 20, gap_us: int = 5) -> None:
        """Add one call."""
        at = f"{self.now_us // 1_000_000}.{self.now_us % 1_000_000:06d}"
        self.lines.append(f"{thread} {at} {text} = {result} <{took_us / 1e6:.6f}>")
        self.now_us += took_us + gap_us

    def open(self, name: str, descriptor: int, flags: str = "O_RDWR|O_CREAT", *, thread: int = 100) -> None:
        """Add an open of a file below the directory under test."""
        path = f"{ROOT}/{name}"
        self.call(f'openat(AT_FDCWD<{ROOT}>, "{path}", {flags}, 0644)', f"{descriptor}<{path}>", thread=thread)
        self.sizes.setdefault(name, 0)
        if "O_TRUNC" in flags:
            self.sizes[name] = 0
        self.offsets[descriptor] = (name, 0)

    def move(self, kind: str, descriptor: int, size: int, offset: int | None = None, *, thread: int = 100) -> None:
        """Add a read or a write, at the position or at an offset; a read gets what there is."""
        name, position = self.offsets[descriptor]
        at = position if offset is None else offset
        moved = min(size, max(self.sizes[name] - at, 0)) if kind == "read" else size
        shown = '""...' if moved else '""'
        where = "" if offset is None else f", {offset}"
        call = kind if offset is None else {"read": "pread64", "write": "pwrite64"}[kind]
        self.call(f"{call}({descriptor}<{ROOT}/{name}>, {shown}, {size}{where})", str(moved), thread=thread)
        self.calls[kind] += 1
        if offset is None:
            self.offsets[descriptor] = (name, at + moved)
        if not moved:
            return
        self.bytes[kind] += moved
        self.touched[kind].update((hash(name) << 40) + place for place in range(at, at + moved))
        self.began[kind].append((name, at))
        if kind == "write":
            self.sizes[name] = max(self.sizes[name], at + moved)
            self.unsynced[name] += 1
        else:
            self.read_sizes[moved] += 1

    def seek(self, descriptor: int, offset: int) -> None:
        """Add a seek from the beginning."""
        name, _ = self.offsets[descriptor]
        self.call(f"lseek({descriptor}<{ROOT}/{name}>, {offset}, SEEK_SET)", str(offset))
        self.offsets[descriptor] = (name, offset)

    def sync(self, descriptor: int, call: str = "fsync") -> None:
        """Add a sync of the file."""
        name, _ = self.offsets[descriptor]
        self.call(f"{call}({descriptor}<{ROOT}/{name}>)", "0", took_us=900)
        self.calls["sync"] += 1
        self.synced.append(self.unsynced.pop(name, 0))

    @property
    def text(self) -> str:
        """Return all lines."""
        return "".join(f"{line}\n" for line in self.lines)

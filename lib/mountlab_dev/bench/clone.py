"""What a newcomer waits for: `make demo`, and the tests, in a fresh clone."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from mountlab.core.errors import CommandError
from mountlab.core.places import SHIPPED
from mountlab.results import journal

from mountlab_dev.bench.table import Row


def rows(clone: Path, *, tests: bool) -> Iterator[Row]:
    """`make demo` as a newcomer sees it, warm package caches aside, and the part of it that is not measuring."""
    subprocess.run(["git", "clone", "--quiet", str(SHIPPED), str(clone)], check=True)
    took_s = _make("demo", clone)
    (run,) = (file.parent for file in (clone / "results").glob("2*/run.json"))
    measuring_s = sum(trial.elapsed_s for trial in journal.read_journal(run))
    yield Row("make demo from a fresh clone, warm package caches", [took_s], under=300.0)
    yield Row("the part without measuring (environment, mounts, report)", [took_s - measuring_s], under=60.0)
    if tests:
        yield Row("make check in the same clone", [_make("check", clone)], under=90.0)
        yield Row("make test in the same clone", [_make("test", clone)], under=360.0)


_OF_OUR_MAKE = ("MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS", "ARGS")
"""What `make bench ARGS=...` would hand down to the makes that it starts."""


def _make(target: str, clone: Path) -> float:
    """Return seconds that a make target takes. Raises CommandError with the end of its output where it fails."""
    environment = {name: value for name, value in os.environ.items() if name not in _OF_OUR_MAKE}
    start = time.perf_counter()
    done = subprocess.run(
        ["make", "-C", str(clone), target],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise CommandError(f"make {target} failed in a fresh clone", evidence=done.stdout + done.stderr)
    return time.perf_counter() - start

"""kill -9 of Mountlab at random instants of a run of a database: no server, socket, mount or cluster stays."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from faults.scenes import Control, Scene, control, scene, undisturbed
from installed_programs import program
from waiting import wait_until

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("sshd")]

FILESYSTEMS = {"tmpfs": {"type": "tmpfs", "size": "256MiB"}, "ext4": {"type": "ext4", "image": "256MiB"}}
WORKLOADS: Mapping[str, dict[str, Any]] = {
    "pgbench": {"tool": "pgbench", "scale": 1, "sessions": 4, "runtime": "1s", "wal_segment_size": "1MiB",
                "max_wal_size": "16MiB"},
    "sqlite": {"tool": "sqlite", "rows": 400, "journal_mode": ["wal", "delete"], "cache": "as_is"},
}  # fmt: skip
INSTANTS = 20


def segments() -> int:
    """How many segments of System V shared memory this machine has: a server that is killed could leave one."""
    return len(Path("/proc/sysvipc/shm").read_text().splitlines())


def at_work(place: Scene) -> list[str]:
    """What runs in a directory of the scene, whatever it calls itself."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            where = os.readlink(process / "cwd")
            files = [os.readlink(file) for file in (process / "fd").iterdir()]
        except OSError:
            continue
        if any(name.startswith((f"{place.mount_root}/", f"{place.output_root}/")) for name in (where, *files)):
            found.append((process / "cmdline").read_text(errors="replace"))
    return found


def sockets() -> set[str]:
    """Which sockets of PostgreSQL this machine has."""
    return {line for line in Path("/proc/net/unix").read_text().splitlines() if ".s.PGSQL" in line}


def put_sweep(place: Scene, tool: str) -> Path:
    return place.put_sweep(
        filesystems=FILESYSTEMS,
        workloads={"w": WORKLOADS[tool]},
        design={"repeats": 1, "warmup": 0, "seed": 7, "trial_timeout": "60s", "drop_caches": False},
    )


def assert_cleaned(place: Scene, machine: Control, before: set[str]) -> None:
    """After a cleaning nothing of a database is left, and no socket that was not there before."""
    machine.type("box", "clean", "local", "--force")
    assert machine.wait() == 0, machine.said()
    assert place.left().left == ()
    assert at_work(place) == []
    assert sockets() <= before


@pytest.mark.faults
def test_nothing_of_a_server_stays_after_a_kill_while_it_is_at_work() -> None:
    """The short form: one instant, of the tool with a server."""
    program("pgbench")
    shared, before = segments(), sockets()
    with scene() as place, control(place) as machine:
        number = machine.start("run", put_sweep(place, "pgbench"))
        wait_until(
            "a server is at work",
            lambda: sockets() > before and at_work(place),
            ended=lambda: machine.ended(0) and machine.said(),
        )
        os.kill(number, signal.SIGKILL)
        assert machine.wait() == -signal.SIGKILL
        assert_cleaned(place, machine, before)
    assert segments() <= shared


@pytest.mark.long
@pytest.mark.faults
@pytest.mark.parametrize("tool", WORKLOADS)
def test_nothing_of_a_database_stays_after_a_kill_and_a_cleaning(tool: str) -> None:
    program({"sqlite": "sqlite3"}.get(tool, tool))
    draw, shared = random.Random(42), segments()
    with scene() as place, control(place) as machine:
        sweep = put_sweep(place, tool)
        kept, took = undisturbed(machine, sweep)
        assert {trial["status"] for trial in kept.trials} == {"ok"}, machine.said()
        before = sockets()
        seen, kills = 0, 0
        while kills < INSTANTS:
            number = machine.start("run", sweep)
            time.sleep(draw.uniform(0, took))
            seen += bool(at_work(place))
            os.kill(number, signal.SIGKILL)
            kills += machine.wait() == -signal.SIGKILL
            assert_cleaned(place, machine, before)
        assert seen >= INSTANTS // 4, "it was at work at too few instants for the test to say anything"
    assert segments() <= shared
    assert [*Path("/tmp").glob(".s.PGSQL*"), *Path("/dev/shm").glob("PostgreSQL*")] == []

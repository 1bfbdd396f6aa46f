"""kill -9 of Mountlab at random instants of a run of a database: no server, socket, mount or cluster stays."""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
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


def at_work(place: Scene) -> dict[int, str]:
    """Process to command line of what runs in a directory of the scene, whatever it calls itself."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            where = os.readlink(process / "cwd")
            files = [os.readlink(file) for file in (process / "fd").iterdir()]
            if any(name.startswith((f"{place.mount_root}/", f"{place.output_root}/")) for name in (where, *files)):
                found[int(process.name)] = (process / "cmdline").read_text(errors="replace")
        except OSError:
            continue
    return found


def held_by(processes: Iterable[int]) -> set[str]:
    """What could outlive these processes: their sockets of PostgreSQL, segments of System V shared memory that they
    made, and files of /dev/shm that they mapped. Other tests may have servers of their own."""
    own, fds, maps = set(processes), set(), set()
    for number in own:
        with suppress(OSError):
            fds |= {os.readlink(file) for file in Path(f"/proc/{number}/fd").iterdir()}
            maps |= set(re.findall(r"/dev/shm/PostgreSQL\S+", Path(f"/proc/{number}/maps").read_text()))
    return {
        name for name in there() if name in fds or name in maps or (name.startswith("segment ") and _made(name, own))
    }


def there() -> set[str]:
    """All sockets of PostgreSQL, segments of System V shared memory and files of PostgreSQL in /dev/shm."""
    unix = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()]
    segments = [line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]
    return {
        *(f"socket:[{words[6]}]" for words in unix if ".s.PGSQL" in words[-1]),
        *(f"segment {words[1]} of {words[4]}" for words in segments),
        *map(str, Path("/dev/shm").glob("PostgreSQL*")),
    }


def _made(segment: str, processes: Container[int]) -> bool:
    return int(segment.rpartition(" ")[2]) in processes


def put_sweep(place: Scene, tool: str) -> Path:
    return place.put_sweep(
        filesystems=FILESYSTEMS,
        workloads={"w": WORKLOADS[tool]},
        design={"repeats": 1, "warmup": 0, "seed": 7, "trial_timeout": "60s", "drop_caches": False},
    )


def assert_cleaned(place: Scene, machine: Control, held: set[str]) -> None:
    """After a cleaning nothing of a database is left, and nothing that its processes held."""
    machine.type("box", "clean", "local", "--force")
    assert machine.wait() == 0, machine.said()
    assert place.left().left == ()
    assert at_work(place) == {}
    assert held & there() == set()


@pytest.mark.faults
def test_nothing_of_a_server_stays_after_a_kill_while_it_is_at_work() -> None:
    """The short form: one instant, of the tool with a server."""
    program("pgbench")
    with scene() as place, control(place) as machine:
        number = machine.start("run", put_sweep(place, "pgbench"))
        wait_until(
            "a server at work",
            lambda: any(name.startswith("socket:") for name in held_by(at_work(place))),
            ended=lambda: machine.ended(0) and machine.said(),
        )
        held = held_by(at_work(place))
        os.kill(number, signal.SIGKILL)
        assert machine.wait() == -signal.SIGKILL
        assert_cleaned(place, machine, held)


@pytest.mark.long
@pytest.mark.faults
@pytest.mark.parametrize("tool", WORKLOADS)
def test_nothing_of_a_database_stays_after_a_kill_and_a_cleaning(tool: str) -> None:
    program({"sqlite": "sqlite3"}.get(tool, tool))
    draw = random.Random(42)
    with scene() as place, control(place) as machine:
        sweep = put_sweep(place, tool)
        kept, took = undisturbed(machine, sweep)
        assert {trial["status"] for trial in kept.trials} == {"ok"}, machine.said()
        seen, kills = 0, 0
        while kills < INSTANTS:
            number = machine.start("run", sweep)
            time.sleep(draw.uniform(0, took))
            working = at_work(place)
            seen, held = seen + bool(working), held_by(working)
            os.kill(number, signal.SIGKILL)
            kills += machine.wait() == -signal.SIGKILL
            assert_cleaned(place, machine, held)
        assert seen >= INSTANTS // 4, "it was at work at too few instants for the test to say anything"
    assert [*Path("/tmp").glob(".s.PGSQL*")] == []

"""Tools that leave daemons or take the file system away: on boxes with and without cgroups, nothing stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from faults import counting, escapes
from faults.counting import Count
from faults.escapes import DAEMONS, HELD, SPOILERS, WORLDS
from faults.scenes import EXT4, TMPFS, Scene, scene
from faults.table import Report
from mountlab.core.shell import script_text
from mountlab.results import paths
from mountlab.runner import workflow
from repetition import others_long
from waiting import LIMIT_S, wait_until

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("sshd")]

EXPECTED = {"stays": "ok", "daemon": "failed", "busy": "failed", "loop": "failed"}
"""What becomes of a trial; of the other ways, `invalid`."""


def unexpected(place: Scene, world: str) -> tuple[str, ...]:
    """Trials of the only run that have another status than their way asks for, or were held by something else."""
    (run,) = place.runs
    wrong = [] if json.loads((run / "run.json").read_text())["status"] == "complete" else ["the run is not complete"]
    for trial in counting.kept(run).trials:
        wanted = EXPECTED.get(trial["workload"], "invalid")
        held = (run / "raw" / trial["trial_id"] / "contained_by").read_text().strip()
        if trial["status"] != wanted or held != HELD[world]:
            wrong.append(f"{trial['cell']}: {trial['status']}, held by {held}: {trial['reason']}")
    return tuple(wrong)


def measured(world: str, ways: Sequence[str], times: int = 1, **filesystems: dict[str, object]) -> tuple[Count, int]:
    """What is wrong with, and left of, one run in which tools get away; and how many trials that were."""
    with scene() as place, escapes.world(world, place.home / "cgroups"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "PARAMS", place.params)
        patch.setenv("MOUNTLAB_PARAMS", str(place.params))
        patch.setenv("TMPDIR", str(place.temporary))
        workflow.run(escapes.sweep(place.home, ways, times, filesystems), results=place.results)
        wrong = unexpected(place, world)
        (run,) = place.runs
        left = (*escapes.groups(run.name), *escapes.loops(place.home))
        return Count(lost=wrong, left=left) + place.left(), len(counting.kept(run).trials)


@pytest.mark.faults
@pytest.mark.parametrize("world", others_long(WORLDS, kept=["v2"]))
def test_nothing_stays_of_a_tool_that_leaves_a_daemon_or_unmounts(report: Report, world: str) -> None:
    started = time.monotonic()
    count, tries = measured(world, ("busy", "umount"), tmpfs=TMPFS)
    report(f"tools that get away, cgroups: {world}", tries, count, time.monotonic() - started)


@pytest.mark.long
@pytest.mark.faults
@pytest.mark.parametrize("world", WORLDS)
def test_nothing_stays_of_a_tool_that_gets_away(report: Report, world: str) -> None:
    started = time.monotonic()
    count, tries = measured(world, (*DAEMONS, *SPOILERS), ext4=EXT4)
    report(f"tools that get away, cgroups: {world}", tries, count, time.monotonic() - started)


@pytest.mark.faults
def test_without_cgroups_and_namespaces_what_a_tool_does_to_mounts_is_undone_and_the_others_finish(
    report: Report,
) -> None:
    started = time.monotonic()
    count, tries = measured("bare", SPOILERS, ext4=EXT4)
    report("tools that get away, no cgroups and no namespaces", tries, count, time.monotonic() - started)


@pytest.mark.soak
@pytest.mark.parametrize("world", WORLDS)
def test_nothing_stays_of_twenty_in_each_way(report: Report, world: str) -> None:
    started = time.monotonic()
    count, tries = measured(world, (*DAEMONS, *SPOILERS), times=20, ext4=EXT4)
    report(f"tools that get away, cgroups: {world}", tries, count, time.monotonic() - started)


@pytest.mark.parametrize("mode", ["kill", "clean"])
@pytest.mark.parametrize(("hierarchy", "door"), [("freezer", "tasks"), ("unified", "cgroup.threads")])
def test_cleaning_ends_what_a_dead_trial_left_in_its_cgroup(
    tmp_path: Path, hierarchy: str, door: str, mode: str
) -> None:
    if not Path("/sys/fs/cgroup", hierarchy).is_dir():
        pytest.skip(f"this machine has no cgroup hierarchy {hierarchy}")
    run = f"left-by-{os.getpid()}"
    root, group = tmp_path / "root", Path("/sys/fs/cgroup", hierarchy, f"mountlab-{run}.t0001")
    (root / run).mkdir(parents=True)
    (root / ".mountlab").touch()
    group.mkdir()
    if hierarchy == "unified":
        (group / "cgroup.type").write_text("threaded")
    enter = f"echo 0 >{group}/{door}; exec env -i sleep 300"
    with subprocess.Popen(["sh", "-c", enter], start_new_session=True) as daemon:
        wait_until("a member of the group", (group / door).read_text)
        which = run if mode == "kill" else ""
        argv = ["sh", "-c", script_text("leftovers.sh"), "clean", mode, "0", which, str(root), "", ""]
        said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        assert daemon.wait(LIMIT_S) == -signal.SIGKILL
    assert f"cgroup\t1\t{group}\t" in said
    assert not group.exists()

"""Tools that leave daemons or take the file system away: on boxes with and without cgroups, nothing stays."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

import pytest
from faults import counting, escapes
from faults.counting import Count
from faults.escapes import DAEMONS, HELD, SPOILERS, WORLDS
from faults.scenes import EXT4, TMPFS, Scene, scene
from faults.table import Report
from mountlab import store, workflow

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
        patch.setattr(store, "PARAMS", place.params)
        patch.setenv("MOUNTLAB_PARAMS", str(place.params))
        patch.setenv("TMPDIR", str(place.temporary))
        workflow.run(escapes.sweep(place.home, ways, times, filesystems), results=place.results)
        wrong = unexpected(place, world)
        return Count(lost=wrong, left=(*escapes.groups(), *escapes.loops())) + place.left(), len(
            counting.kept(place.runs[0]).trials
        )


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
    count, tries = measured("bare", SPOILERS, ext4=EXT4, tmpfs=TMPFS)
    report("tools that get away, no cgroups and no namespaces", tries, count, time.monotonic() - started)


@pytest.mark.soak
@pytest.mark.parametrize("world", WORLDS)
def test_nothing_stays_of_twenty_in_each_way(report: Report, world: str) -> None:
    started = time.monotonic()
    count, tries = measured(world, (*DAEMONS, *SPOILERS), times=20, ext4=EXT4)
    report(f"tools that get away, cgroups: {world}", tries, count, time.monotonic() - started)

"""Tools that misbehave in every way that the parsers know, and in some that they do not: no figure is made of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from faults import counting, misbehaviour
from faults.counting import Count, Kept
from faults.misbehaviour import MARK, WAYS, Way
from faults.scenes import TMPFS, Scene, control, scene
from faults.table import Report
from installed_programs import search_path_of_boxes
from mountlab.box.embedded.loopback import private_sshd
from mountlab.core.model import Box
from mountlab_dev import needs
from waiting import LIMIT_S

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("sshd")]

FIO = {"tool": "fio", "rw": "write", "bs": "4KiB", "fsync": 1}
ASKED: dict[str, Callable[[list[int]], dict[str, Any]]] = {
    "dd": lambda numbers: {"tool": "dd", "direction": "write", "bs": "4KiB", "count": numbers},
    "fio": lambda numbers: {
        "tool": "fio",
        "rw": "write",
        "bs": "4KiB",
        "fsync": 1,
        "size": [f"{n}KiB" for n in numbers],
    },
    "fs_mark": lambda numbers: {"tool": "fs_mark", "count": numbers, "file_size": "512B"},
    "pg_test_fsync": lambda numbers: {"tool": "pg_test_fsync", "time_per_test": [f"{number}s" for number in numbers]},
}
"""How a tool is asked for a number. (filebench is not packaged by distributions: its parser is tried by tests/fuzz.)"""
FAILED = 1


@contextmanager
def stage(tools: Iterable[str]) -> Iterator[Scene]:
    """A scene whose box finds programs that misbehave before all others."""
    with scene() as place, pytest.MonkeyPatch.context() as patch:
        programs = place.home / "bin"
        programs.mkdir()
        for tool in tools:
            misbehaviour.put(programs, tool)

        search_path_of_boxes(patch, programs, "/usr/sbin", "/usr/bin", "/sbin", "/bin")
        with private_sshd(Box(name="local", host="", embedded="loopback")) as endpoint:
            place.put_ssh(endpoint, endpoint.port)
            place.put_box(host="behind")
            yield place


def keys(tools: Iterable[str], ways: Sequence[Way]) -> dict[str, Any]:
    """A cell for each tool and way, each tried once."""
    numbers = [MARK + WAYS.index(way) for way in ways]
    limit = f"{LIMIT_S:g}s" if all(way.short for way in ways) else "2s"  # a tool that hangs is waited for
    return {
        "filesystems": {"tmpfs": TMPFS},
        "workloads": {tool: ASKED[tool](numbers) for tool in tools},
        "design": {"repeats": 1, "warmup": 0, "seed": 9, "trial_timeout": limit, "drop_caches": False},
    }


def judged(found: Kept, tools: Sequence[str], ways: Sequence[Way]) -> Count:
    """Lost is a trial that is not there, one that is ok though its tool was not, one that is not although it was, and
    one that has failed and does not say why."""
    lost = []
    for trial in found.trials:
        (level,) = trial["factors"].values()
        way = WAYS[int(str(level).rstrip("KiBs")) - MARK]
        name = f"{trial['tool']}, which {way.name}"
        if (trial["status"] == "ok") != way.honest:
            lost.append(f"{name}: {trial['status']}: {trial['reason']}")
        elif trial["status"] != "ok" and len(trial["reason"]) < 10:
            lost.append(f"{name}: failed with no more to say than {trial['reason']!r}")
    missing = len(tools) * len(ways) - len({*found.order})
    return Count((*lost, *(["trials are missing"] if missing else [])), tuple(found.order[len({*found.order}) :]))


def misbehave(report: Report, tools: Sequence[str], ways: Sequence[Way]) -> None:
    here = [tool for tool in tools if needs.find(tool)]
    if not here:
        pytest.skip(f"needs one of {', '.join(tools)}")
    started = time.monotonic()
    with stage(here) as place, control(place) as machine:
        assert machine.do("run", place.put_sweep(**keys(here, ways))) == 0, machine.said()
        (run,) = place.runs
        count = judged(counting.kept(run), here, ways) + place.left()
    report("tools that misbehave", len(here) * len(ways), count, time.monotonic() - started)


@pytest.mark.faults
def test_tools_that_misbehave_for_a_moment(report: Report) -> None:
    misbehave(report, ["dd", "fio"], [way for way in WAYS if way.short])


@pytest.mark.soak
def test_tools_that_misbehave_in_every_way(report: Report) -> None:
    misbehave(report, [*ASKED], WAYS)

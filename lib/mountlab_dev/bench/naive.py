"""The way in which one would do it at first: one Fabric `run` for each step of a trial, with the same steps."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from pathlib import Path

from fabric import Connection
from mountlab.box.embedded import loopback
from mountlab.box.ssh import Endpoint
from mountlab.core.model import Box
from mountlab.core.units import NS_PER_S

from mountlab_dev.bench.link import link
from mountlab_dev.bench.table import Row
from mountlab_dev.bench.trials import EACH_WAY_S, NO_LINK, OVER_LINK, behind

MOST = 10
"""Trials of each kind: they are slow."""
_COUNTERS = "cat /proc/diskstats /proc/vmstat /proc/stat /proc/loadavg"


def steps(place: str) -> tuple[str, ...]:
    """Return the commands of a trial; the one that measures prints the clock before and after."""
    here = shlex.quote(place)
    dd = f"timeout 60 dd if=/dev/zero of={here}/t/file bs=64k count=16 2>{here}/stderr"
    return (
        f"mkdir {here} && mkdir {here}/t",
        f"grep -q . /proc/self/mountinfo && stat -c %d {here}/t",
        "sync",
        _COUNTERS,
        f"date +%s%N; {dd}; echo $?; date +%s%N",
        _COUNTERS,
        "grep -lsz NO_SUCH_TRIAL /proc/[0-9]*/environ; true",
        f"cat {here}/stderr",
        f"rm -rf {here}",
    )


def overheads(endpoint: Endpoint, trials: int, place: str) -> list[float]:
    """Return seconds of each trial beyond its tool, on a connection that is opened once."""
    keys = {"key_filename": str(endpoint.key_file), "allow_agent": False, "look_for_keys": False}
    found = []
    with Connection(endpoint.host, endpoint.user, endpoint.port, connect_kwargs=keys) as connection:
        connection.open()
        for number in range(trials):
            start, tool_s = time.perf_counter(), 0.0
            for step in steps(f"{place}/n{number}"):
                said = connection.run(step, hide=True, in_stream=False).stdout
                if step.startswith("date"):
                    began, _, ended = said.split()
                    tool_s = (int(ended) - int(began)) / NS_PER_S
            found.append(time.perf_counter() - start - tool_s)
    return found


def rows(box: Box, repeats: int, scratch: Path) -> Iterator[Row]:
    """On the same box, directly and over the same link. `scratch` lies in memory, as the tmpfs of the others does."""
    what = f"the naive way, one Fabric run for each of {len(steps('.'))} steps"
    if box.embedded != "loopback":
        yield Row(what, [], why_not=NO_LINK)
        return
    with loopback.private_sshd(box) as endpoint, link(endpoint.port, EACH_WAY_S) as wire:
        yield Row(what, overheads(endpoint, min(repeats, MOST), str(scratch)))
        far = overheads(behind(endpoint, wire, scratch), min(repeats, MOST), str(scratch))
        yield Row(f"the same {OVER_LINK}", far)

"""Sweep and box files from others: each is planned or refused with a reason, soon, and nothing else is touched.

A short form here; `MOUNTLAB_HOSTILE=10000` generates as many of each (`make soak`).
"""

from __future__ import annotations

import os
import re
import resource
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from facts import known
from hostile_input import CANARY, Hostile, write
from mountlab.core.errors import MountlabError
from mountlab.core.model import Box, ScratchDevice
from mountlab.core.safe_yaml import parse_yaml
from mountlab.results import paths
from mountlab.sweep.box_file import parse_box
from mountlab.sweep.feasible import needed_programs
from mountlab.sweep.plan import Plan
from mountlab.sweep.plan_text import plan_json, plan_text
from mountlab.sweep.planner import make_plan
from mountlab.sweep.sweep_file import Resolved
from sweep.test_plan import FACTS
from waiting import no_hang

MANY = int(os.environ.get("MOUNTLAB_HOSTILE", "80"))
few_and_many = pytest.mark.parametrize("many", [30, pytest.param(MANY, marks=pytest.mark.long)])
MOST_MIB = 600
WATCHED: list[str] = []
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_ACTS = {
    "os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "os.fork", "socket.connect", "os.remove", "os.rename",
    "os.rmdir", "os.mkdir", "os.symlink", "os.link", "os.chmod", "os.truncate", "shutil.rmtree",
}  # fmt: skip
_watching = False


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching and (event in _ACTS or (event == "open" and arguments[2] & _WRITING)):
        WATCHED.append(f"{event} {arguments[:2]!r}")


sys.addaudithook(_audit)  # for good: Python knows no way to take one back


@contextmanager
def nothing_is_touched() -> Iterator[None]:
    """Fails where a file is opened for writing, or anything is started, removed or connected to. What Python compiles
    when it imports is not kept meanwhile."""
    global _watching  # noqa: PLW0603  # an audit hook has no other place to look
    WATCHED.clear()
    keeps_none = sys.dont_write_bytecode
    _watching = sys.dont_write_bytecode = True
    try:
        yield
    finally:
        _watching, sys.dont_write_bytecode = False, keeps_none
    assert WATCHED == []


def test_what_touches_a_file_is_seen(tmp_path: Path) -> None:
    with pytest.raises(AssertionError), nothing_is_touched():
        (tmp_path / "x").write_text("")
    with pytest.raises(AssertionError), nothing_is_touched():
        os.system("true")
    with nothing_is_touched():
        Path(__file__).read_text()


def planned(resolved: Resolved) -> Plan:
    """As `mountlab plan` does, on a box that has all that the sweep names."""
    programs = {**FACTS.programs.installed, **{each.name: {} for each in needed_programs(resolved.sweep)}}
    facts = known(
        FACTS,
        programs=programs,
        memory_available_bytes=2**50,
        mount_root_free_bytes=2**50,
        kernel_filesystems=["btrfs", "ext2", "ext3", "ext4", "hugetlbfs", "overlay", "ramfs", "tmpfs", "xfs"],
    )
    names = [name for fs in resolved.sweep.filesystems for name in fs.scratch if name]
    scratch = tuple(ScratchDevice(name=name, device="/dev/disk/by-id/x") for name in dict.fromkeys(names))
    box = Box(name="local", host="", embedded="loopback", scratch=scratch)
    plan = make_plan(resolved.sweep, box, facts, run_id="r1", owner="me", seed=7)
    no_control_characters(plan_text(plan, facts))
    plan_json(plan, facts)
    return plan


def no_control_characters(text: str) -> None:
    """What is printed must not steer a terminal."""
    assert re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", text) is None, ascii(text[:2000])


def plan_of(path: Path) -> Plan | MountlabError:
    try:
        return planned(paths.load_sweep(path))
    except MountlabError as error:
        no_control_characters(str(error))
        return error


def plans(seed: int, many: int, place: Path) -> Iterator[tuple[str, Plan | MountlabError]]:
    """The text of each hostile sweep, and what became of it."""
    hostile = Hostile(seed)
    for _ in range(many):
        text = hostile.sweep()
        path = write(place / "hostile.yml", text)
        try:
            with nothing_is_touched(), no_hang():
                outcome = plan_of(path)
        except BaseException as error:
            raise AssertionError(f"{error!r} for:\n{text[:3000]!a}") from error
        yield text, outcome


@pytest.mark.slow
@few_and_many
def test_hostile_box_files_are_read_or_refused(many: int, tmp_path: Path) -> None:
    hostile, boxes, refused = Hostile(11), 0, 0
    for _ in range(many):
        text = hostile.box()
        path = write(tmp_path / "hostile.yml", text)
        with nothing_is_touched(), no_hang():
            try:
                box = parse_box(
                    parse_yaml(paths.read_text(path, "box file", ""), where="b.yml"), name="b", where="b.yml"
                )
                boxes += 1
            except MountlabError as error:
                no_control_characters(str(error))
                refused += 1
                continue
        assert not box.host.startswith("-")
        assert not set(box.host + (box.user or "") + (box.mount_root or "")) & set(" ;$`'\"|&<>*?(){}!\n")
        assert all(re.fullmatch(r"(/dev/|memory:)[\w:./+-]+", each.device) for each in box.scratch)
    assert boxes > many / 50
    assert refused > many / 2


@pytest.mark.slow
@few_and_many
def test_hostile_sweeps_are_planned_or_refused(many: int, tmp_path: Path) -> None:
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcomes = Counter(type(outcome).__name__ for _, outcome in plans(7, many, tmp_path))
    assert outcomes["Plan"] > many / 20, f"too few get as far as a plan for this to mean anything: {outcomes}"
    assert outcomes["ParameterError"] > many / 4
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024 < MOST_MIB
    assert not list(tmp_path.rglob(f"*{CANARY}*"))
    assert not Path(CANARY).exists()

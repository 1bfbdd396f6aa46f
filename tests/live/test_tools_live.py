"""Every tool for real, as a table: on tmpfs and ext4, or where it can run, ended when it takes too long, on a full file
system, and missing from the box. A new tool is one more entry of LIVE."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from installed_programs import program, search_path_of_boxes
from mountlab import __main__
from mountlab.box import leftovers
from mountlab.box.embedded import here, open_box
from mountlab.core.errors import ParameterError
from mountlab.core.model import Workload
from mountlab.core.units import MIB
from mountlab.programs import TOOLS
from mountlab.results import paths, store
from mountlab.results.store import Run
from mountlab.runner import workflow
from mountlab.tools.base import Tool
from mountlab_dev import needs
from ownbox import own_box
from processes import mapped, processes_with
from sweeps import CLOCK, DD_WRITE, EXT4, RAMFS, TMPFS, as_is

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("sshd")]

LIMIT = "500ms"
SLOW = "pg_test_fsync"
ROOM = {"type": "tmpfs", "size": "1GiB"}
FULL = {"type": "ext4", "image": "24MiB", "mkfs": ["-N", "30000"]}
"""Its table of inodes takes what the plan cannot know of: 15 MB are left."""
TIGHT = {"type": "ext4", "image": "40MiB", "mkfs": ["-N", "28000", "-I", "1024"]}
"""The same for a tool that cannot be asked for so little: 6 MB are left."""
BTRFS = {"type": "btrfs", "image": "128MiB"}
"""Its metadata takes what the plan cannot know of."""
FIGURES = {
    "bytes/write": {"pattern": r"^(\d+) bytes", "unit": "B", "from": "stderr"},
    "elapsed": {"pattern": r"copied, ([\d.e-]+) s", "unit": "s", "from": "stderr"},
}
COPY = {"argv": "dd if=/dev/zero of={directory}/x bs=1k count={n}", "n": 500, "space": "18MiB", "metrics": FIGURES}
FILES = "define fileset name=tree,path=$dir,size=1m,entries=18,prealloc=100"
READ_FILES = f"""{FILES}
define process name=reader {{
  thread name=worker,memsize=2m {{
    flowop openfile name=open-it,filesetname=tree,fd=1
    flowop closefile name=close-it,fd=1
  }}
}}
"""


@dataclass(frozen=True)
class Live:
    """What a tool is asked to do."""

    short: Mapping[str, Any]
    long: Mapping[str, Any]
    """More than LIMIT."""
    full: Mapping[str, Any]
    """More than FULL has room for, and no more than it seems to have."""
    words: tuple[str, ...]
    """What it says of that."""
    leaves: str = ""
    """Files in /tmp, as a pattern, that it would leave where it is ended."""
    on: tuple[str, ...] = ("tmpfs", "ext4")
    """File systems on which it gives figures."""
    room: str = "tmpfs"
    """The one on which `long` is ended."""
    too_small: str = "full"
    """The one that `full` does not fit."""


FIO = {"rw": "randrw", "bs": "16KiB", "size": "4MiB", **CLOCK}
FS_MARK = {"count": 40, "file_size": "6000B", "threads": 2}
TREE = {"workload": "fileserver", "nfiles": 500, "filesize": "8KiB", "threads": 4, "runtime": "1s"}
PGBENCH = {"scale": 1, "sessions": 2, "wal_segment_size": "1MiB", "max_wal_size": "2MiB"}
ON_BTRFS: dict[str, Any] = {"on": ("btrfs",), "room": "btrfs", "too_small": "btrfs"}
LIVE: dict[str, Live] = {
    "command": Live(
        COPY,
        {
            **COPY,
            "argv": "sh -c 'sleep 300 & echo \"$1\"; sleep $2' it {directory}/x {n}",
            "n": 300,
        },
        {**COPY, "n": 18_000},
        ("exit status 1", "No space left on device"),
    ),
    "db_bench": Live(
        {"benchmark": "readrandom", "num": 2000, "memtable": "1MiB"},
        {"benchmark": "fillseq", "num": 10_000_000, "memtable": "1MiB", "value_size": "1B"},
        {"benchmark": "fillseq", "num": 12_500, "value_size": "1KiB", "memtable": "64KiB", "disable_wal": True},
        ("db_bench failed with exit status 1", "No space left on device"),
    ),
    "dbench": Live(
        {"processes": 1, "time": "2s"},
        {"processes": 2, "time": "50s"},
        {"processes": 1, "time": "5s", "sync": True},
        ("dbench failed with exit status 1", "No space left on device"),
        too_small="tight",
    ),
    "dd": Live(
        {"direction": "write", "bs": "1MiB", "count": 8},
        {"direction": "write", "bs": "1B", "count": 90_000_000},
        {"direction": "write", "bs": "1MiB", "count": 18},
        ("dd failed with exit status 1", "No space left on device"),
    ),
    "filebench": Live(
        TREE,
        {**TREE, "threads": 1, "runtime": "50s"},
        {"wml": READ_FILES, "space": "18MiB", "runtime": "1s"},
        ("No space left on device",),
        leaves="filebench-shm-*",
    ),
    "fio": Live(
        FIO,
        {**FIO, "time_based": True, "runtime": "50s", "numjobs": 2, "rate_iops": 50},
        {**FIO, "rw": "write", "size": "18MiB"},
        ("fio failed with exit status 1", "No space left on device"),
    ),
    "fs_mark": Live(
        FS_MARK,
        {"count": 200_000, "file_size": "1B"},
        {"count": 18, "file_size": "1MiB"},
        ("fs_mark failed with exit status 1", "Insufficient free space"),
    ),
    "ioping": Live(
        {"operation": "write", "count": 20},
        {"operation": "read", "time": "50s"},
        {"operation": "write", "count": 5, "working_set": "18MiB"},
        ("ioping failed with exit status 2", "No space left on device"),
    ),
    "large-directory": Live(
        {"names": 500},
        {"names": 100_000},
        {"names": 30_000},
        ("large-directory failed with exit status 1", "No space left on device"),
    ),
    "rsync": Live(
        {"files": 100},
        {"files": 10_000},
        {"files": 1150, "operations": "first"},
        ("rsync failed with exit status 1", "No space left on device"),
    ),
    "sysbench": Live(
        {"mode": "rndrw", "size": "2MiB", "files": 4, "events": 200},
        {"mode": "rndrd", "size": "2MiB", "files": 4, "time": "50s"},
        {"mode": "seqwr", "size": "18MiB", "files": 4, "events": 5000, "fsync_every": 0},
        ("sysbench failed with exit status 1", "No space left on device"),
    ),
    "tree": Live(
        {"files": 200},
        {"files": 10_000},
        {"files": 1150, "operations": "make"},
        ("tree failed with exit status 1", "No space left on device"),
    ),
    "pg_test_fsync": Live(
        {"time_per_test": "1s"},
        {"time_per_test": "5s"},
        {"time_per_test": "1s"},
        ("pg_test_fsync failed with exit status 1", "write failed"),
    ),
    "pgbench": Live(
        {**PGBENCH, "transactions": 100},
        {**PGBENCH, "runtime": "50s"},
        {
            **PGBENCH,
            "transactions": 1,
            "script": "INSERT INTO pgbench_history (filler) SELECT 'x' FROM generate_series(1, 2000000);",
        },
        ("pgbench failed with exit status 2", "No space left on device"),
        too_small="tmpfs",
    ),
    "sqlite": Live(
        {"rows": 200, "journal_mode": "wal"},
        {"rows": 300_000, "transaction": 100},
        {"rows": 5700, "row_size": "1000B", "page_size": "1KiB", "transaction": 5700},
        ("sqlite failed with exit status 1", "database or disk is full"),
    ),
    "reflink": Live(
        {"size": "4MiB", "clones": 3, "blocks": 20},
        {"size": "4MiB", "clones": 3, "blocks": 1000},
        {"size": "90MiB", "blocks": 2},
        ("the preparation failed", "No space left on device"),
        **ON_BTRFS,
    ),
    "send": Live(
        {"via": "send", "size": "4MiB"},
        {"via": "send", "size": "40MiB", "file_size": "4KiB", "change": "20%"},
        {"via": "send", "to": "null", "size": "90MiB", "file_size": "1MiB"},
        ("the preparation failed", "No space left on device"),
        **ON_BTRFS,
    ),
    "snapshot": Live(
        {"size": "4MiB", "snapshots": 3},
        {"size": "4MiB", "snapshots": 500},
        {"size": "90MiB", "file_size": "1MiB", "snapshots": 1},
        ("the preparation failed", "No space left on device"),
        **ON_BTRFS,
    ),
}


def entries(part: str) -> dict[str, dict[str, Any]]:
    """That part of the table for every tool that is installed here: workloads of a sweep, for the part `full` by names
    such as `fio-full`."""
    return {
        name if part != "full" else f"{name}-full": {"tool": name, **getattr(live, part)}
        for name, live in LIVE.items()
        if not here.missing(TOOLS[name].programs)
    }


def need(tool: Tool) -> None:
    for lacking in here.missing(tool.programs):
        pytest.skip(needs.reason(lacking.name))


def ran(place: Path, workloads: Mapping[str, Any], filesystems: Mapping[str, Any], **more: Any) -> Run:
    """One run of parts of the table, after which nothing of it is on the box."""
    with pytest.MonkeyPatch.context() as patch:
        root = own_box(place, patch)
        before = elsewhere()
        design = {"repeats": 1, "fresh_filesystem": "cell", **more.pop("design", {})}
        resolved = as_is(filesystems=dict(filesystems), workloads=dict(workloads), design=design, **more)
        path = workflow.run(resolved, results=place / "results")
        with open_box(paths.load_box("local")) as connection:
            assert leftovers.remove_leftovers(connection, dry_run=True) == []
        assert (processes_with(str(root)), elsewhere() - before) == ([], set())
        assert str(root) not in Path("/proc/self/mountinfo").read_text()
        assert not root.exists() or not [*root.iterdir()]
    return store.load_run(path)


def elsewhere() -> set[Path]:
    """What tools leave outside of their directory: what a process has mapped is of a tool that is at work."""
    found = {path for live in LIVE.values() if live.leaves for path in Path("/tmp").glob(live.leaves)}
    return {path for path in found if not mapped(path)}


def of(run: Run, tool: Tool) -> Workload:
    return next(each for each in run.sweep.workloads if each.tool == tool.name)


def trial(run: Run, filesystem: str, tool: Tool, suffix: str = "") -> Any:
    rows = run.trials[(run.trials["filesystem"] == filesystem) & (run.trials["workload"] == f"{tool.name}{suffix}")]
    (found,) = rows.itertuples()
    return found


MOUNTED = {name: tool for name, tool in TOOLS.items() if not (tool.in_place or tool.changes_devices)}
"""Without those that work in a directory that is there: tests/live/test_watch_live.py has these. And without those that
need an array: tests/live/test_redundancy_tools_vm.py."""
each_tool = pytest.mark.parametrize("tool", MOUNTED.values(), ids=list(MOUNTED))


def test_every_tool_is_in_the_table() -> None:
    assert set(LIVE) == set(MOUNTED)


# --- it works ---------------------------------------------------------------------------------------------------------


FILESYSTEMS = {"tmpfs": TMPFS, "ramfs": RAMFS, "ext4": EXT4}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """All tools at once but pg_test_fsync, which takes sixteen seconds on each file system; on ramfs the one that is
    not tried there; and all on a file system that is too small for what they are asked to do."""
    short, full = {name: entry for name, entry in entries("short").items() if name != SLOW}, entries("full")
    wanted = {(filesystem, name) for name in short for filesystem in LIVE[name].on}
    wanted |= {(LIVE[name.removesuffix("-full")].too_small, name) for name in full}
    wanted |= {("ramfs", name) for name in short if name == "fs_mark"}
    return ran_some(tmp_path_factory.mktemp("tools"), {**short, **full}, wanted, baseline="ext4")


def ran_some(place: Path, workloads: Mapping[str, Any], wanted: set[tuple[str, str]], **more: Any) -> Run:
    """One run of these workloads, each on its own file systems of FILESYSTEMS."""
    used = {filesystem for filesystem, _ in wanted}
    filesystems = {
        name: entry
        for name, entry in {**FILESYSTEMS, "full": FULL, "tight": TIGHT, "btrfs": BTRFS}.items()
        if name in used
    }
    pairs = [(filesystem, workload) for filesystem in filesystems for workload in workloads]
    exclude = [{"filesystem": pair[0], "workload": pair[1]} for pair in pairs if pair not in wanted]
    return ran(place, workloads, filesystems, exclude=exclude, **more)


@pytest.mark.parametrize(
    ("filesystem", "tool"),
    [
        pytest.param(filesystem, tool, id=f"{filesystem}-{name}")
        for name, tool in MOUNTED.items()
        for filesystem in LIVE[name].on
        if name != SLOW
    ],
)
def test_a_trial_gives_the_main_figures(run: Run, filesystem: str, tool: Tool) -> None:
    need(tool)
    gives_the_main_figures(run, filesystem, tool)


def gives_the_main_figures(run: Run, filesystem: str, tool: Tool) -> None:
    found = trial(run, filesystem, tool)
    assert (found.status, found.reason) == ("ok", "")
    own = run.measurements[run.measurements["trial_id"] == found.trial_id]
    assert set(tool.main_metrics(of(run, tool))) <= set(own["metric"])
    assert (own["value"] >= 0).all()


@each_tool
def test_path_and_version_of_its_programs_are_known(run: Run, too_long: Run, tool: Tool) -> None:
    """Trap: no tool version, no measurement."""
    need(tool)
    run = too_long if tool.name == SLOW else run
    for each in tool.programs_for(of(run, tool)):
        known = run.info.facts.programs.installed[each.name]
        assert known.path == here.find(each)
        assert any(digit in (known.version or "") for digit in "0123456789"), known.version


def test_fs_mark_is_not_tried_where_it_would_see_no_space(run: Run) -> None:
    need(TOOLS["fs_mark"])
    found = trial(run, "ramfs", TOOLS["fs_mark"])
    assert found.status == "skipped"
    assert "ramfs tells of none" in found.reason


# --- it takes too long ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def too_long(tmp_path_factory: pytest.TempPathFactory) -> Run:
    design = {"trial_timeout": LIMIT, "retries": 0}
    long = entries("long")
    rooms = {"tmpfs": ROOM, **({"btrfs": BTRFS} if any(LIVE[name].room == "btrfs" for name in long) else {})}
    exclude = [{"filesystem": room, "workload": name} for room in rooms for name in long if LIVE[name].room != room]
    return ran(tmp_path_factory.mktemp("long"), long, rooms, design=design, exclude=exclude)


@each_tool
def test_one_that_takes_too_long_is_ended_with_all_its_processes(too_long: Run, tool: Tool) -> None:
    """That no process, mount and directory is left was seen when the run was over."""
    need(tool)
    found = trial(too_long, LIVE[tool.name].room, tool)
    assert found.status == "timeout"
    # On a busy machine it may take longer to end than it is given.
    assert re.match(r"ran longer than 0.5 s( and was ended)? \(design\.trial_timeout\)", found.reason), found.reason
    assert not set(tool.main_metrics(of(too_long, tool))) & set(too_long.measurements["metric"])


# --- it finds no room -------------------------------------------------------------------------------------------------


@each_tool
def test_a_full_file_system_fails_the_trial_with_the_words_of_the_tool(run: Run, tool: Tool) -> None:
    need(tool)
    found = trial(run, LIVE[tool.name].too_small, tool, "-full")
    assert found.status == "failed"
    assert all(words in found.reason for words in LIVE[tool.name].words), found.reason
    measured = run.measurements[run.measurements["trial_id"] == found.trial_id]
    assert not set(tool.main_metrics(of(run, tool))) & set(measured["metric"])


# --- it is not there --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is said of a plan that needs a program for each tool that no box has, whatever this one has."""
    place = tmp_path_factory.mktemp("missing")
    workloads: dict[str, Any] = {name: {"tool": name, **live.short} for name, live in LIVE.items()}
    workloads["command"]["argv"] = f"{absent(TOOLS['command'])} {{directory}} {{n}}"
    path = place / "x.yml"
    path.write_text(yaml.safe_dump({"question": "?", "filesystems": {"tmpfs": TMPFS}, "workloads": workloads}))
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(io.StringIO()) as error:
        root = own_box(place, patch)
        for tool in TOOLS.values():
            programs = tuple(replace(program, name=absent(tool)) for program in tool.programs[:1])
            patch.setattr(tool, "programs", programs)
            if programs:
                patch.setattr(tool, "programs_for", lambda _workload, own=programs: own)
                patch.setattr(tool, "programs_on", lambda _fstype, _workload, own=programs: own)
        assert __main__.main(["plan", str(path)]) == 2
    assert not root.exists()
    return error.getvalue()


def absent(tool: Tool) -> str:
    return f"{tool.name}-that-nobody-has"


@each_tool
def test_a_box_without_it_is_told_by_the_plan_with_how_to_get_it(refused: str, tool: Tool) -> None:
    said, _, next_step = refused.partition("next:")
    assert said.startswith("error: the box lacks ")
    assert absent(tool) in said
    needed = [program.hint for program in tool.programs[:1] if program.by_hand(here.manager())]
    hint = needed[0] if needed else "mountlab box prepare local"
    assert (hint if tool.programs else f"install {absent(tool)} on the box") in next_step


# --- pg_test_fsync ----------------------------------------------------------------------------------------------------

BUFFERED = {"fdatasync", "fsync"}
"""Its figures are `long`: in `make test` it is ended and fails for real, and programs/test_pg_test_fsync.py reads
what it has printed elsewhere."""


@pytest.fixture(scope="module")
def everywhere(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """pg_test_fsync on each file system."""
    need(TOOLS["pg_test_fsync"])
    return ran(tmp_path_factory.mktemp("fsync"), {SLOW: entries("short")[SLOW]}, FILESYSTEMS, baseline="ext4")


def labels(run: Run, filesystem: str) -> set[str]:
    own = run.measurements[(run.measurements["filesystem"] == filesystem) & (run.measurements["metric"] == "sync_rate")]
    return set(own["label"])


@pytest.mark.long
@pytest.mark.parametrize("filesystem", ["tmpfs", "ext4"])
def test_it_gives_the_main_figures(everywhere: Run, filesystem: str) -> None:
    gives_the_main_figures(everywhere, filesystem, TOOLS[SLOW])


@pytest.mark.long
def test_ext4_offers_every_method(everywhere: Run) -> None:
    assert len(labels(everywhere, "ext4")) == 16


@pytest.mark.long
def test_ramfs_offers_those_without_direct_io(everywhere: Run) -> None:
    """Trap: n/a rows."""
    assert labels(everywhere, "ramfs") == {
        *(f"{times} 8kB: {method}" for times in ("one", "two") for method in BUFFERED),
        "descriptor: write, fsync, close",
        "descriptor: write, close, fsync",
        "non-sync: write",
    }
    missed = {caveat.subject for caveat in everywhere.caveats if caveat.code == "figures-missing"}
    assert "ramfs/pg_test_fsync" in missed


@pytest.mark.long
def test_methods_are_compared_each_with_itself(everywhere: Run) -> None:
    assert set(everywhere.trials["status"]) == {"ok"}
    assert ("ramfs", "one 8kB: fdatasync") in {(c.candidate, c.label) for c in everywhere.comparisons}


# --- dd of BusyBox ----------------------------------------------------------------------------------------------------


@pytest.fixture
def busybox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What BusyBox's dd says of a copy. The box of the test finds it before any other dd."""
    path = program("busybox")
    own_box(tmp_path, monkeypatch)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "dd").symlink_to(path)
    search_path_of_boxes(monkeypatch, tmp_path / "bin", "/usr/bin", "/bin")
    tried = [tmp_path / "bin" / "dd", "if=/dev/zero", "of=/dev/null", "bs=512", "count=1"]
    return subprocess.run(tried, capture_output=True, text=True, check=True).stderr


def copied(place: Path, **options: Any) -> Run:
    entry = {**DD_WRITE, **options}
    resolved = as_is(filesystems={"ext4": EXT4}, workloads={"dd": entry}, design={"repeats": 1})
    return store.load_run(workflow.run(resolved, results=place / "results"))


def test_the_dd_of_busybox_is_measured_where_it_tells_the_time_and_refused_where_not(
    busybox: str, tmp_path: Path
) -> None:
    if "copied" not in busybox:
        with pytest.raises(ParameterError, match="does not tell how long it took") as caught:
            copied(tmp_path, conv="fsync")
        assert "install coreutils on the box" in caught.value.next_step
        return
    run = copied(tmp_path, conv="fsync", direction=["write", "read"])
    assert [*run.trials["reason"]] == ["", ""]
    assert "BusyBox" in run.info.facts.programs.version("dd")
    found = run.measurements[run.measurements["tool"] == "dd"].set_index(["metric", "label"])["value"]
    assert found["bytes", "write"] == found["bytes", "read"] == 8 * MIB
    assert found["read_bandwidth", ""] > 0
    assert found["write_bandwidth", ""] > 0


def test_an_option_that_the_dd_of_busybox_lacks_is_refused_in_the_plan(busybox: str, tmp_path: Path) -> None:
    """conv=fdatasync, the default, among them."""
    with pytest.raises(ParameterError, match="the box's dd, which is BusyBox's") as caught:
        copied(tmp_path)
    assert ("has no such conv" in caught.value.what) == ("copied" in busybox)
    assert not (tmp_path / "mountlab-root").exists()

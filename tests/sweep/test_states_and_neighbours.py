"""`states` and `neighbours` of a sweep file: factors of its cells, each file system in its own states, and refusals."""

from __future__ import annotations

from typing import Any

import pytest
from mountlab.core.conditions import NeighbourPlace
from mountlab.core.errors import ParameterError
from mountlab.core.model import Sweep
from mountlab.core.safe_yaml import as_yaml, parse_yaml
from mountlab.core.state import State
from mountlab.sweep.design import mount_groups
from mountlab.sweep.sweep_file import Resolved, resolve
from rows import every_row

FIO = {"tool": "fio", "rw": "randwrite", "size": "16MiB"}
STATES = {"full": {"fill": "90%"}, "aged": {"fill": 0.8, "churn": 10, "seed": 7}, "many": {"snapshots": 50}}
NEIGHBOURS = {"backup": {**FIO, "rw": "write", "limits": {"io_weight": 50}}, "web": FIO}
SWEEP: dict[str, Any] = {
    "name": "s", "question": "Does the state matter?", "baseline": "ext4", "states": STATES, "neighbours": NEIGHBOURS,
    "filesystems": {
        "ext4": {"type": "ext4", "image": "256MiB", "state": ["aged", "fresh"]},
        "btrfs": {"type": "btrfs", "image": "256MiB", "state": ["fresh", "aged", "many"]},
        "tmpfs": {"type": "tmpfs", "size": "64MiB"},
    },
    "workloads": {"app": {**FIO, "bs": ["4KiB", "64KiB"]}},
}  # fmt: skip


def read(**changes: Any) -> Resolved:
    return resolve({**SWEEP, **changes}, where="s.yml")


def cells(sweep: Sweep, filesystem: str) -> list[str]:
    return [cell.workload.label for cell in sweep.cells if cell.filesystem.name == filesystem]


def test_each_file_system_is_measured_in_its_own_states_and_fresh_without_any() -> None:
    sweep = read(workloads={"app": FIO}).sweep
    assert cells(sweep, "ext4") == ["app state=fresh", "app state=aged"]
    assert cells(sweep, "btrfs") == ["app state=fresh", "app state=aged", "app state=many"]
    assert cells(sweep, "tmpfs") == ["app state=fresh"]
    assert {cell.workload.state for cell in sweep.cells} == {"fresh", "aged", "many"}


def test_without_states_no_cell_has_that_factor() -> None:
    filesystems = {name: {**entry, "state": None} for name, entry in SWEEP["filesystems"].items()}
    sweep = read(filesystems=filesystems).sweep
    assert {tuple(cell.workload.factors) for cell in sweep.cells} == {("bs",)}
    assert [state for _, state in sweep.turns] == ["", "", ""]


def test_a_mount_is_the_turn_of_one_file_system_in_one_state_and_each_block_has_all_turns() -> None:
    sweep = read().sweep
    for block in (0, 1, 2):
        groups = [group for group in mount_groups(sweep, seed=3) if group.block == block]
        turns = [(group.filesystem.name, group.state) for group in groups]
        wanted = {("ext4", "fresh"), ("ext4", "aged"), ("btrfs", "fresh"), ("btrfs", "aged"), ("btrfs", "many")}
        assert sorted(turns) == sorted({*wanted, ("tmpfs", "fresh")})
        assert all({cell.workload.state for cell in group.cells} == {group.state} for group in groups)


def test_the_turns_of_one_file_system_are_not_kept_together() -> None:
    """Else a state would be compared across a different stretch of time in each block."""
    orders = [
        [group.filesystem.name for group in mount_groups(read().sweep, seed) if group.block == 1] for seed in range(40)
    ]
    assert any(order[0] == order[-1] for order in orders)


@every_row(
    ("entry", "state"),
    [
        ({"fill": "90%"}, State(name="a", fill=0.9, purge="discard")),
        (
            {"fill": 0.5, "churn": 2, "profile": "mail"},
            State(name="a", fill=0.5, churn=2.0, profile="mail", purge="discard"),
        ),
        ({"snapshots": 3, "change": "2%"}, State(name="a", fill=0.25, snapshots=3, change=0.02, purge="discard")),
        ({"write": 2, "purge": "none"}, State(name="a", write=2.0, purge="none")),
    ],
)
def test_a_state_has_the_values_of_its_entry(entry: Any, state: State) -> None:
    assert read(states={**STATES, "a": entry}).sweep.states["a"] == state


@every_row(
    ("entry", "words"),
    [
        ({}, ["s.yml: states.a", "what is made", "fill, churn, snapshots or write"]),
        ({"fill": "120%"}, ["states.a.fill", "0.98 or less"]),
        ({"churn": 5}, ["states.a", "churn needs the fill"]),
        ({"change": "1%"}, ["states.a", "change without snapshots"]),
        ({"write": 2, "fill": "50%"}, ["states.a", "a worn device has no files", "fill"]),
        ({"fill": "50%", "purge": "none"}, ["states.a", "purge without write"]),
        ({"snapshots": 50, "change": "20%"}, ["states.a", "more than there is room for", "50 times 20.0%", "fewer"]),
        ({"fill": "50%", "profile": "games"}, ["states.a.profile", "developer", "mail", "media"]),
    ],
)
def test_a_state_that_cannot_be_is_refused(entry: Any, words: list[str]) -> None:
    refused(words, states={**STATES, "a": entry})


def refused(words: list[str], **changes: Any) -> None:
    with pytest.raises(ParameterError) as error:
        read(**changes)
    for word in words:
        assert word in str(error.value)


def test_fresh_is_no_state_of_the_file() -> None:
    refused(["states.fresh", "just made"], states={"fresh": {"fill": "50%"}})


@every_row(
    ("filesystem", "words"),
    [
        ({"type": "ext4", "image": "256MiB", "state": ["age"]}, ["filesystems.a.state", "unknown state", "aged"]),
        ({"type": "ext4", "image": "256MiB", "state": []}, ["filesystems.a.state", "once each"]),
        ({"type": "ext4", "image": "256MiB", "state": ["aged", "aged"]}, ["filesystems.a.state", "once each"]),
        ({"type": "ext4", "image": "256MiB", "state": "many"}, ["a cannot be in the state many", "no snapshots"]),
        ({"type": "ext4", "image": "256MiB", "state": "worn"}, ["cannot be in the state worn", "device: NAME"]),
        ({"type": "ext4", "zram": "256MiB", "state": "aged"}, ["cannot be in the state aged", "image: SIZE"]),
        ({"type": "tmpfs", "size": "1MiB", "state": "full"}, ["cannot be in the state full", "tmpfs is none"]),
        (
            {"type": "ext4", "image": "256MiB", "journal_image": "64MiB", "state": "aged"},
            ["cannot be in the state aged", "journal lies outside"],
        ),
    ],
)
def test_a_state_that_a_file_system_cannot_have_is_refused(filesystem: Any, words: list[str]) -> None:
    filesystems = {**SWEEP["filesystems"], "a": filesystem}
    refused(words, states={**STATES, "worn": {"write": 2}}, filesystems=filesystems)


@every_row(
    "filesystem",
    [
        {"type": "zfs", "image": "256MiB", "members": 2},
        {"type": "ext4", "image": "256MiB", "members": 2, "stack": [{"layer": "md", "level": "raid1"}]},
        {"type": "btrfs", "image": "256MiB", "members": 2},
    ],
)
def test_pools_layers_and_several_devices_have_the_states_of_files_and_no_worn_ones(filesystem: Any) -> None:
    filesystems = {**SWEEP["filesystems"], "a": {**filesystem, "state": ["fresh", "aged"]}}
    sweep = read(filesystems=filesystems, workloads={"app": FIO}).sweep
    assert cells(sweep, "a") == ["app state=fresh", "app state=aged"]
    worn = {**SWEEP["filesystems"], "a": {**filesystem, "state": "worn"}}
    refused(["a cannot be in the state worn"], states={**STATES, "worn": {"write": 2}}, filesystems=worn)


def test_a_pool_has_snapshots() -> None:
    filesystems = {**SWEEP["filesystems"], "a": {"type": "zfs", "image": "256MiB", "state": "many"}}
    assert cells(read(filesystems=filesystems, workloads={"app": FIO}).sweep, "a") == ["app state=many"]


THIN = {"layer": "lvm", "kind": "thin", "chunk": "64KiB"}
FEW = {"few": {"fill": "10%", "snapshots": 3, "change": "5%"}}


def on_thin(image: str = "256MiB", kind: str = "ext4", **layer: Any) -> dict[str, Any]:
    volume = {"type": kind, "image": image, "stack": [{**THIN, **layer}], "state": ["fresh", "few"]}
    return {**SWEEP["filesystems"], "a": volume}


def on_old_style() -> dict[str, Any]:
    """LVM's own kind of snapshots before thin ones: a volume beside it for each."""
    stack = [{"layer": "lvm", "kind": "snapshot"}]
    return {**SWEEP["filesystems"], "a": {"type": "ext4", "image": "256MiB", "stack": stack, "state": "few"}}


@every_row("filesystems", [on_thin(volume="64MiB"), on_thin("900MiB", "xfs", volume="304MiB")])
def test_what_lies_on_a_thin_volume_has_snapshots_where_the_pool_has_room_for_them(filesystems: Any) -> None:
    sweep = read(filesystems=filesystems, workloads={"app": FIO}, states={**STATES, **FEW}).sweep
    assert cells(sweep, "a") == ["app state=fresh", "app state=few"]


@every_row(
    ("filesystems", "words"),
    [
        (on_thin(), ["its pool of 214 MiB could overflow", "volume: 84MiB or less"]),
        (on_thin(volume="92MiB"), ["could overflow: 3 snapshots of a volume of 92.0 MiB", "volume: 84MiB or less"]),
        (on_thin(volume="64MiB", chunk="64MiB"), ["could overflow", "or a smaller change or chunk"]),
        (on_thin("900MiB", "xfs"), ["could overflow", "volume: 3"]),
        (on_thin("600MiB", "xfs", volume="400MiB"), ["could overflow", "larger devices"]),
        (on_thin(kind="ext2", volume="64MiB"), ["ext2 has no snapshots", "ext4 and xfs right on lvm (kind thin)"]),
        (on_old_style(), ["kind: snapshot alone", "kind: thin has many"]),
    ],
)
def test_a_volume_whose_snapshots_could_fill_the_pool_is_refused_with_one_that_fits(
    filesystems: Any, words: list[str]
) -> None:
    refused(["a cannot be in the state few", *words], filesystems=filesystems, states={**STATES, **FEW})


def test_states_need_mounts_that_begin_anew() -> None:
    refused(
        ["design.fresh_filesystem", "restored before each mount", "block or cell"], design={"fresh_filesystem": "never"}
    )


def test_state_cannot_be_a_factor_of_a_workload_too() -> None:
    command = {"tool": "command", "argv": "touch {directory}/{state}", "state": ["a", "b"], "space": "1MiB"}
    command["metrics"] = {"elapsed": {"from": "clock"}}
    refused(["workloads.app.state", "factor of the file systems"], workloads={"app": command})


def test_beside_is_a_factor_whose_inner_list_runs_together() -> None:
    sweep = read(workloads={"app": {**FIO, "beside": ["none", "backup", ["backup", "web"]]}}).sweep
    beside = {cell.workload.factors["beside"]: cell.workload.beside for cell in sweep.cells}
    assert beside == {"none": (), "backup": ("backup",), "backup+web": ("backup", "web")}
    assert all("beside" not in cell.workload.options for cell in sweep.cells)


def test_one_neighbour_for_all_is_no_factor() -> None:
    sweep = read(workloads={"app": {**FIO, "beside": "backup"}}).sweep
    assert {cell.workload.beside for cell in sweep.cells} == {("backup",)}
    assert all("beside" not in cell.workload.factors for cell in sweep.cells)


def test_beside_varies_one_at_a_time_with_the_options() -> None:
    entry = {**FIO, "vary": "one-at-a-time", "bs": ["4KiB", "64KiB"], "beside": ["none", "web"]}
    filesystems = {"ext4": {"type": "ext4", "image": "256MiB"}}
    sweep = read(workloads={"app": entry}, filesystems=filesystems, baseline=None).sweep
    labels = {"app bs=4KiB beside=none", "app bs=64KiB beside=none", "app bs=4KiB beside=web"}
    assert {workload.label for workload in sweep.workloads} == labels


@every_row(
    ("entry", "left"),
    [
        ({"state": "aged"}, ["beside=none state=fresh", "beside=web state=fresh"]),
        ({"beside": "web"}, ["beside=none state=fresh", "beside=none state=aged"]),
        (
            {"state": ["aged"], "beside": ["none"]},
            ["beside=none state=fresh", "beside=web state=fresh", "beside=web state=aged"],
        ),
    ],
)
def test_cells_are_excluded_by_state_and_neighbour(entry: Any, left: list[str]) -> None:
    sweep = read(workloads={"app": {**FIO, "beside": ["none", "web"]}}, exclude=[{"filesystem": "ext4", **entry}]).sweep
    assert sorted(cells(sweep, "ext4")) == sorted(f"app {label}" for label in left)
    assert len(cells(sweep, "btrfs")) == 6


@every_row(
    ("entry", "words"),
    [
        ({"state": "old"}, ["exclude[0].state", "unknown level of state", "aged"]),
        ({"beside": "webs"}, ["exclude[0].beside", "unknown level of beside", "web"]),
    ],
)
def test_an_exclusion_by_a_state_that_no_cell_has_is_refused(entry: Any, words: list[str]) -> None:
    refused(words, workloads={"app": {**FIO, "beside": ["none", "web"]}}, exclude=[entry])


@every_row(
    ("beside", "words"),
    [
        ("backups", ["workloads.app.beside", "unknown neighbour", "backup"]),
        ([], ["workloads.app.beside", "once each"]),
        (["none", "none"], ["workloads.app.beside", "once each"]),
        ([["web", "web"]], ["workloads.app.beside", "not neighbours"]),
        (3, ["workloads.app.beside", "not neighbours", "3"]),
    ],
)
def test_a_neighbour_that_there_is_none_of_is_refused(beside: Any, words: list[str]) -> None:
    refused(words, workloads={"app": {**FIO, "beside": beside}})


@every_row(
    ("entry", "words"),
    [
        ({**FIO, "bs": ["4KiB", "1MiB"]}, ["neighbours.a.bs", "one value for each option"]),
        ({**FIO, "precondition": 25}, ["neighbours.a.precondition", "not measured"]),
        ({**FIO, "where": "there"}, ["neighbours.a.where", "same", "{filesystem: NAME}"]),
        ({**FIO, "where": {"client": "far off"}}, ["neighbours.a.where.client", "a client is a box", "params/boxes"]),
        ({**FIO, "limits": {"cpu_max": 50}}, ["neighbours.a.limits.cpu_max", "%"]),
        (
            {**FIO, "where": {"client": "b"}, "limits": {"cpu_max": "50%", "io_max_read": "1MiB"}},
            ["neighbours.a.limits.io_max_read", "no block device", "{client: b}", "limits of cpu and memory"],
        ),
        ({**FIO, "limits": {"memory_max": 50.5}}, ["neighbours.a.limits.memory_max", "KiB"]),
        ({**FIO, "where": {"filesystem": "xfs"}}, ["neighbours.a.where.filesystem", "unknown file system", "ext4"]),
        ({**FIO, "limits": {"io_weigh": 5}}, ["neighbours.a.limits.io_weigh", "unknown limit", "io_weight"]),
        ({**FIO, "limits": {"io_weight": 0}}, ["neighbours.a.limits.io_weight", "1 to 10000"]),
        ({"tool": "fios"}, ["neighbours.a.tool", "unknown tool", "fio"]),
    ],
)
def test_a_neighbour_that_cannot_be_is_refused(entry: Any, words: list[str]) -> None:
    refused(words, neighbours={**NEIGHBOURS, "a": entry})


def test_a_neighbour_has_the_values_of_its_entry() -> None:
    backup = read().sweep.neighbours["backup"]
    assert (backup.workload.tool, backup.workload.options["rw"]) == ("fio", "write")
    assert (backup.place, backup.limits) == (NeighbourPlace(), {"io_weight": 50})


def test_a_run_keeps_states_and_neighbours_as_its_file_has_them() -> None:
    resolved = read(workloads={"app": {**FIO, "beside": ["none", ["backup", "web"]]}})
    again = resolve(parse_yaml(as_yaml(resolved.parameters), where="run.json"), where="run.json", kept=True)
    assert again.sweep == resolved.sweep

"""degrade and scrub in a virtual box with md and ZFS: a member is lost and comes back, and what a kill leaves in
between is undone. Errors are planted on a device: what is served, found and repaired."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import pytest
from guests import as_line, clean, disks_of, measured, place_of, prepare_run, prepared_run, put, read, sh, virtual_box
from mountlab.box.connection import BoxConnection
from mountlab.core.model import Place, Step
from mountlab.core.shell import script_argv, script_text
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.guard import uuid_for
from mountlab.filesystems.members import planned_array
from mountlab.results import store
from rows import every_row

pytestmark = [
    pytest.mark.box,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.requires_program("qemu-system-x86_64"),
]

ROOT = "/var/tmp/redundant"
RUN_DIR = f"{ROOT}/20260101T000000-redundant"
PLACE = place_of(RUN_DIR)
DISKS = 3
LEFT = "zpool list -H -o name; grep ^md /proc/mdstat; losetup --list --noheadings; ls /dev /dev/md | grep mountlab-"


def md(level: str, members: int, *above: dict[str, Any], **options: Any) -> dict[str, Any]:
    stack = [{"layer": "md", "level": level, **options}, *above]
    return {"type": "ext4", "image": "48MiB", "members": members, "stack": stack}


def pool(kind: str, members: int) -> dict[str, Any]:
    vdevs = [{kind: [*range(1, members + 1)]}]
    return {"type": "zfs", "image": "80MiB", "members": members, "preallocate": False, "vdevs": vdevs}


ARRAYS: dict[str, dict[str, Any]] = {
    "raid1": md("raid1", 2, bitmap="internal"),
    "raid4": md("raid4", 3),
    "raid5": md("raid5", 4, journal=True),
    "raid6": md("raid6", 4, {"layer": "luks"}),
    "raid10": md("raid10", 4),
    "mirror": pool("mirror", 2),
    "raidz1": pool("raidz1", 3),
}
RETURNS = ("raid1", "mirror", "raidz1")
"""Those that know what was written while a member was away."""


@pytest.fixture(scope="module")
def redundant_box() -> Iterator[BoxConnection]:
    """It takes ten minutes to build where this machine has no such box yet."""
    with virtual_box(**{"with": ["zfs"], "disks": DISKS}) as connection:
        yield connection


# --- lost, and given back ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, redundant_box: BoxConnection) -> store.Run:
    lost = {"tool": "degrade", "size": "2MiB", "cache": "cold"}
    workloads = {"replaced": lost, "returned": {**lost, "back": "returned", "member": "first"}}
    results, design = tmp_path_factory.mktemp("results"), {"repeats": 1, "on_ineffective": "caveat"}
    return measured(redundant_box, results, filesystems=ARRAYS, workloads=workloads, design=design)


@every_row(
    ("name", "workload"),
    [(name, "replaced") for name in ARRAYS] + [(name, "returned") for name in RETURNS],
)
def test_a_lost_member_is_not_written_to_and_the_array_is_whole_again(run: store.Run, name: str, workload: str) -> None:
    """The tool itself refuses a trial without a degraded array, or with other contents of its files."""
    rows = run.trials[(run.trials["filesystem"] == name) & (run.trials["workload"] == workload)]
    (row,) = rows.to_dict("records")
    assert (row["status"], row["reason"]) == ("ok", "")
    figures = run.measurements[run.measurements["trial_id"] == row["trial_id"]]
    assert {("read_bandwidth", "degraded"), ("write_bandwidth", "degraded"), ("operation_latency", "rebuild")} <= {
        *zip(figures["metric"], figures["label"], strict=True)
    }


@every_row("name", [name for name in ARRAYS if name not in RETURNS])
def test_a_member_does_not_return_without_a_bitmap(run: store.Run, name: str) -> None:
    rows = run.trials[(run.trials["filesystem"] == name) & (run.trials["workload"] == "returned")]
    (row,) = rows.to_dict("records")
    assert (row["status"], "bitmap: internal" in row["reason"]) == ("skipped", True)


@every_row("name", RETURNS)
def test_less_is_copied_to_a_member_that_returns_than_to_a_new_one(run: store.Run, name: str) -> None:
    """What it holds already is not copied: of md all but the overwritten file, of ZFS what is in use but that."""
    own = run.measurements[run.measurements["filesystem"] == name]
    filled = {}
    for workload in ("replaced", "returned"):
        figures = own[(own["workload"] == workload) & (own["label"] == "rebuild")].set_index("metric")["value"]
        filled[workload] = figures["bandwidth"] * figures["operation_latency"]
    assert 0 < filled["returned"] < filled["replaced"]


def test_nothing_of_them_is_left(run: store.Run, redundant_box: BoxConnection) -> None:
    assert run.trials["status"].isin(["ok", "skipped"]).all()
    assert redundant_box.run(("sh", "-c", LEFT), root=True).text.strip() == ""


# --- killed in between ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kill:
    """Where the script that loses a member ends."""

    stage: str
    """What it does, or has done, last."""
    after_s: float = 0.0


KILLS = (Kill("losing", 0.1), Kill("lost"), Kill("blank"), Kill("filling", 0.4), Kill("whole"))
ENTRIES: dict[str, dict[str, Any]] = {
    "md": {"type": "ext4", "mkfs": ["-N", "512"], "stack": [{"layer": "md", "level": "raid5"}]},
    "zfs": {"type": "zfs", "vdevs": [{"raidz1": ["a", "b", "c"]}]},
}
ON_IMAGES = {"image": "80MiB", "members": 3, "preallocate": False}


@pytest.fixture
def run_dir(redundant_box: BoxConnection) -> Iterator[str]:
    with prepared_run(redundant_box, RUN_DIR):
        yield RUN_DIR


def losing_script(entry: dict[str, Any], place: Place) -> str:
    """What makes and mounts a file system, loses its second device and gives it back, and stops at stage $1."""
    fs = read(entry)
    place = replace(place, layer_uuids=tuple(uuid_for("", place.uuid, str(n)) for n, _ in enumerate(fs.stack)))
    array = planned_array(fs, place)
    assert array is not None
    verb = f'sh {ROOT}/layer.sh "$1" {RUN_DIR} {array.uuid} 2'
    lines = [as_line(_assuming_clean(step)) for step in FAMILIES[fs.type].steps(fs, place)]
    head = (
        f"reached() {{ echo $1 >>{ROOT}/stage; [ $1 != $stop ] || exec sleep 300; }}\nlayer() {{ {verb} $2; }}\nstop=$1"
    )
    acts = ("reached losing", "layer lose", "reached lost", "layer blank", "reached blank", "reached filling")
    return "\n".join([head, *lines, *(f"{act} || exit" for act in acts), "layer bring replaced", "reached whole"])


def _assuming_clean(step: Step) -> Step:
    """Nothing is written to the disks, and so what they hold need not be alike."""
    pairs = ((each, "--assume-clean") if each == "--level=raid5" else (each,) for each in step.argv)
    return replace(step, argv=tuple(chain.from_iterable(pairs)))


def _killed(kill: Kill) -> str:
    """The script that begins the other one, waits for a stage of it and kills it."""
    stop = kill.stage if not kill.after_s else "nowhere"
    return f"""cd {ROOT}; : >stage; setsid sh script {stop} >said 2>&1 & pid=$!
        until grep -qx {kill.stage} {ROOT}/stage; do
            kill -0 $pid 2>/dev/null || {{ cat {ROOT}/said >&2; exit 1; }}
            sleep 0.05
        done
        sleep {kill.after_s}; kill -s KILL -- -$pid; true"""


@every_row("kind", list(ENTRIES))
@pytest.mark.parametrize("marked", [False, True], ids=["images", "disks"])
def test_a_trial_that_is_killed_while_a_member_is_lost_leaves_nothing(
    redundant_box: BoxConnection, run_dir: str, kind: str, marked: bool
) -> None:
    """Afterwards the guard knows each disk for one that Mountlab may use."""
    disks = disks_of(redundant_box, DISKS)
    place, entry = PLACE, {**ENTRIES[kind], **ON_IMAGES}
    if marked:
        entry = {**ENTRIES[kind], "device": ["a", "b", "c"]}
        first, *more = disks
        uuid = uuid_for(first[1], "redundant")
        place = replace(PLACE, device=first[0], device_id=first[1], more_devices=tuple(more), uuid=uuid)
    elif kind == "zfs":
        entry = {**entry, "vdevs": [{"raidz1": [1, 2, 3]}]}
    for kill in KILLS[: -1 if marked else None]:  # a whole disk is filled slowly
        prepare_run(redundant_box, RUN_DIR)
        put(redundant_box, f"{ROOT}/layer.sh", script_text("layer.sh"))
        put(redundant_box, f"{ROOT}/script", f"export MOUNTLAB_RUN=redundant\n{losing_script(entry, place)}")
        sh(redundant_box, _killed(kill))
        sh(redundant_box, f"rm {ROOT}/layer.sh {ROOT}/script {ROOT}/stage {ROOT}/said")
        removed = clean(redundant_box, RUN_DIR)
        assert [found for found in removed if not found.removed and found.kind != "foreign"] == [], kill
        assert "mountlab-" not in redundant_box.run(("sh", "-c", LEFT), root=True).text, kill
        assert "md" not in sh(redundant_box, "grep ^md /proc/mdstat || true"), kill
        assert disks_of(redundant_box, DISKS) == disks, kill


def test_only_members_of_an_array_that_this_run_made_are_taken_out(redundant_box: BoxConnection, run_dir: str) -> None:
    """Another UUID, another number, and a record that names an array of others: nothing is lost."""
    uuid = uuid_for("", "redundant", "0")
    loops = sh(
        redundant_box,
        f"cd {RUN_DIR}/img; for n in 1 2; do truncate -s 32M f-$n.img; losetup --find --show $PWD/f-$n.img; done",
    ).split()
    create = f"mdadm --create /dev/md/others --level=1 --raid-devices=2 --run --assume-clean --quiet {' '.join(loops)}"
    try:
        sh(redundant_box, f"{create} </dev/null")
        refused = {}
        for name, record in {"unknown": "", "of others": f"{uuid} md images {' '.join(loops)}"}.items():
            sh(redundant_box, f"echo '{record}' >{run_dir}/layers")
            done = redundant_box.run(script_argv("layer.sh", "lose", run_dir, uuid, "1"), root=True)
            refused[name] = (done.ok, done.error_text.strip())
        assert refused == {
            "unknown": (False, f"refused: {run_dir} has no record of a layer {uuid}"),
            "of others": (False, f"refused: md {uuid} is not there"),
        }
        assert sh(redundant_box, "cat /sys/block/$(basename $(readlink -f /dev/md/others))/md/degraded") == "0"
    finally:
        stop = f"mdadm --stop --quiet /dev/md/others; losetup -d {' '.join(loops)}; rm -f {run_dir}/layers"
        redundant_box.run(("sh", "-c", stop), root=True)


# --- scrub ------------------------------------------------------------------------------------------------------------

BAD = {"tool": "scrub", "size": "4MiB", "errors": 5}
SCRUBBED: dict[str, dict[str, Any]] = {
    "ext4": {"type": "ext4", "image": "48MiB"},
    "raid0": md("raid0", 2),
    "raid1": md("raid1", 2),
    "raid5": md("raid5", 3),
    "lvm": {"type": "ext4", "image": "48MiB", "members": 2, "stack": [{"layer": "lvm", "kind": "striped"}]},
    "mirror": pool("mirror", 2),
    "raidz1": pool("raidz1", 3),
    "pool": {"type": "zfs", "image": "80MiB", "preallocate": False},
    "btrfs-raid1": {"type": "btrfs", "image": "128MiB", "members": 2, "mkfs": ["-d", "raid1", "-m", "raid1"]},
}


@pytest.fixture(scope="module")
def scrubbed(tmp_path_factory: pytest.TempPathFactory, redundant_box: BoxConnection) -> store.Run:
    results, design = tmp_path_factory.mktemp("scrubbed"), {"repeats": 1, "on_ineffective": "caveat"}
    return measured(redundant_box, results, filesystems=SCRUBBED, workloads={"bad": BAD}, design=design)


def counts(run: store.Run, name: str) -> dict[str, int]:
    """Label to number, of blocks and of what was done."""
    (row,) = run.trials[run.trials["filesystem"] == name].to_dict("records")
    assert (row["status"], row["reason"]) == ("ok", "")
    own = run.measurements[run.measurements["filesystem"] == name]
    own = own[own["metric"].isin(["blocks", "operations"])]
    return {str(label): int(value) for label, value in zip(own["label"], own["value"], strict=True)}


@every_row("name", ["ext4", "raid0", "lvm"])
def test_without_checksums_and_copies_every_error_is_served_and_none_is_found(scrubbed: store.Run, name: str) -> None:
    assert counts(scrubbed, name) == {
        "planted": 5, "wrong before": 5, "refused before": 0, "unrepaired": 5, "wrong after": 5, "refused after": 0,
        "found": 0, "healed": 0, "repaired": 0,
    }  # fmt: skip


@every_row("name", ["mirror", "raidz1", "btrfs-raid1"])
def test_with_checksums_and_copies_no_error_is_served_and_all_are_repaired(scrubbed: store.Run, name: str) -> None:
    found = counts(scrubbed, name)
    assert {found[label] for label in ("wrong before", "refused before", "wrong after", "refused after")} == {0}
    assert (found["repaired"], found["unrepaired"]) == (5, 0)
    assert found["found"] > 0 or found["healed"] == 5


def test_with_checksums_alone_errors_are_refused_and_never_served(scrubbed: store.Run) -> None:
    found = counts(scrubbed, "pool")
    assert (found["wrong before"], found["wrong after"], found["repaired"]) == (0, 0, 0)
    assert found["refused before"] >= 5
    assert found["found"] > 0


def test_md_counts_mismatches_of_copies_and_does_not_know_which_is_right(scrubbed: store.Run) -> None:
    """Of raid5 it makes the parity fit the errors: they stay, and no later check finds them."""
    mirror, parity = counts(scrubbed, "raid1"), counts(scrubbed, "raid5")
    assert mirror["found"] >= 5
    assert mirror["wrong before"] <= 5
    assert parity["found"] >= 1
    assert (parity["wrong before"], parity["wrong after"], parity["unrepaired"]) == (5, 5, 5)

"""Scratch devices, from the sweep file to mkfs: formatted only when claimed. test_guard_live.py has the guard itself,
test_claim_live.py the claim."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import disks
import pytest
from device_states import claim
from disks import MIB, THEIRS, XFS_SIZE, Disks, records_of
from mountlab import __main__
from mountlab.box import leftovers
from mountlab.box.connection import BoxConnection, Completed
from mountlab.box.embedded import open_box
from mountlab.box.testing import RecordingBox
from mountlab.core.errors import ParameterError, PlanError, UnsafeError
from mountlab.results import paths, store
from mountlab.results.writer import RunWriter
from mountlab.runner import workflow
from mountlab.runner.sweep_runner import run_sweep
from ownbox import own_box
from sweeps import DD_WRITE, Silent, as_is

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("losetup", "mke2fs")]

EXT4 = {"type": "ext4", "device": "data"}


@dataclass(frozen=True)
class Scratch:
    """The local box with a scratch device `data`, and the loop devices behind it."""

    made: Disks
    path: str
    stable: Path

    def links_to(self, device: str) -> None:
        self.stable.unlink(missing_ok=True)
        self.stable.symlink_to(device)


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scratch]:
    with ExitStack() as undo:
        made = Disks(tmp_path, undo)
        path = made.loop()
        stable = made.by_id(path)
        own_box(tmp_path, monkeypatch, scratch={"data": str(stable)})
        yield Scratch(made, path, stable)


def measure(results: Path, **filesystem: str) -> store.Run:
    resolved = as_is(
        filesystems={"ext4": {**EXT4, **filesystem}}, workloads={"dd-write": DD_WRITE}, design={"repeats": 1}
    )
    return store.load_run(workflow.run(resolved, results=results))


def claimed(scratch: Scratch) -> None:
    done = claim(scratch.stable)
    assert done.returncode == 0, done.stderr


# --- permitted --------------------------------------------------------------------------------------------------------


def test_a_claimed_device_is_formatted_measured_and_recognised_as_ours_the_next_time(
    scratch: Scratch, results_dir: Path
) -> None:
    claimed(scratch)
    for _ in range(2):
        run = measure(results_dir)
        assert list(run.trials["status"].unique()) == ["ok"]
    guard = next(run.path.glob("raw/m*/guard*.txt")).read_text()
    assert "holds ext4 of Mountlab's own (UUID 6d6f756e-746c-6143-" in guard
    with open_box(paths.load_box("local")) as connection:
        assert leftovers.remove_leftovers(connection, dry_run=True) == []


def test_what_others_write_after_a_run_is_noticed_by_the_next(scratch: Scratch, results_dir: Path) -> None:
    """One byte, that no signature tells of."""
    claimed(scratch)
    measure(results_dir)
    disks.write(scratch.path, b"x", at=33 * MIB)
    before = scratch.made.digests()
    with pytest.raises(UnsafeError, match="others have changed the device since Mountlab's last use of it") as refusal:
        measure(results_dir)
    assert re.search("mountlab box claim local data --erase 6d6f756e-746c-6143-", refusal.value.next_step)
    assert scratch.made.digests() == before


@pytest.mark.long
@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_a_file_system_with_its_journal_on_another_device_is_recorded_on_both(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, results_dir: Path
) -> None:
    with ExitStack() as undo:
        made = Disks(tmp_path, undo)
        devices = {name: str(made.by_id(made.loop(size=XFS_SIZE))) for name in ("data", "log")}
        own_box(tmp_path, monkeypatch, scratch=devices)
        for device in devices.values():
            assert claim(device).returncode == 0
        for _ in range(2):
            run = measure(results_dir, type=kind, journal_device="log")
            assert list(run.trials["status"].unique()) == ["ok"], list(run.trials["reason"])
        records = [record.read_text() for image in made.images for record in records_of(image.stat().st_ino)]
        assert ["\nstate used\n" in record for record in records] == [True, True]


def test_the_plan_says_what_is_on_the_device_and_what_will_become_of_it(scratch: Scratch, results_dir: Path) -> None:
    claimed(scratch)
    with workflow.planned(as_is(filesystems={"ext4": EXT4}), results=results_dir) as session:
        found = session.facts.surveyed.devices["ext4"]
        assert found.startswith(f"{scratch.stable}: {scratch.path} (64 MiB) holds ext2 of Mountlab's own (UUID 6d6f")
        assert found.endswith("; will be written over")
        assert re.match(r"boot=[0-9a-f]{8},7:\d+,sectors=131072,", session.facts.surveyed.device_ids["data"])


def test_a_workload_larger_than_the_device_is_refused_in_the_plan(scratch: Scratch, results_dir: Path) -> None:
    claimed(scratch)
    resolved = as_is(filesystems={"ext4": EXT4}, workloads={"dd": {**DD_WRITE, "count": 100}})
    with pytest.raises(PlanError, match="too large: dd writes 100 MiB") as refusal:
        workflow.run(resolved, results=results_dir)
    assert refusal.value.allowed == "at most 57.6 MiB (room in filesystems.ext4)"


# --- refused ----------------------------------------------------------------------------------------------------------


def a_database(device: str) -> None:
    disks.write(device, b"rows", at=400_000)


@pytest.mark.parametrize(
    ("fill", "found", "permit"),
    [
        (disks.ext4, f"holds ext4, id {THEIRS}", f"mountlab box claim local data --erase {THEIRS}"),
        (a_database, "Mountlab has not claimed it", "mountlab box claim local data "),
    ],
)
def test_a_device_with_data_is_refused_and_not_touched(
    fill: Callable[[str], object], found: str, permit: str, scratch: Scratch, results_dir: Path
) -> None:
    """mke2fs with no terminal overwrites an existing file system without -F and returns 0."""
    fill(scratch.path)
    before = scratch.made.digests()
    with pytest.raises(UnsafeError) as refusal:
        measure(results_dir)
    assert refusal.value.exit_code == 4
    assert f"{scratch.stable} will not be formatted" in str(refusal.value)
    assert found in refusal.value.got
    assert permit in refusal.value.next_step
    assert scratch.made.digests() == before
    assert not list(results_dir.iterdir()), "a run directory of nothing"


def test_make_plan_ends_with_4_for_a_device_with_data(
    scratch: Scratch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disks.ext4(scratch.path)
    path = tmp_path / "tiny.yml"
    path.write_text(
        "question: Is it safe?\nbox: local\nfilesystems: {ext4: {type: ext4, device: data}}\n"
        "workloads: {w: {tool: dd, direction: write, bs: 1MiB, count: 4}}\ndesign: {repeats: 2}\n"
    )
    assert __main__.main(["plan", str(path)]) == 4
    assert f"holds ext4, id {THEIRS}" in capsys.readouterr().err


def test_a_device_in_use_is_refused_and_no_id_helps(scratch: Scratch, results_dir: Path) -> None:
    disks.ext4(scratch.path)
    place = scratch.made.mount(scratch.path)
    before = scratch.made.digests()
    with pytest.raises(UnsafeError, match="will not be formatted") as refusal:
        measure(results_dir)
    assert refusal.value.got == f"{scratch.path} is in use: {scratch.path} is mounted on {place}"
    assert refusal.value.next_step == "end that use, or name another device"
    assert scratch.made.digests() == before


def test_a_device_that_the_box_file_does_not_list_is_refused(scratch: Scratch, results_dir: Path) -> None:
    """Neither by another name of a listed device nor by that of another: only names of the list are names."""
    other = scratch.made.loop()
    before = scratch.made.digests()
    with pytest.raises((PlanError, UnsafeError), match="the box file lists no such scratch device"):
        measure(results_dir, device="other")
    with pytest.raises(ParameterError, match="a sweep knows a scratch device by its name in the box file"):
        measure(results_dir, device=other)
    assert scratch.made.digests() == before


# --- between plan and run ---------------------------------------------------------------------------------------------


@contextlib.contextmanager
def planned(results: Path, scratch: Scratch) -> Iterator[tuple[workflow.Session, RunWriter]]:
    claimed(scratch)
    resolved = as_is(filesystems={"ext4": EXT4}, workloads={"dd-write": DD_WRITE})
    with workflow.planned(resolved, results=results) as session:
        yield session, RunWriter.create(session.plan, resolved, session.facts, results=results)


def test_a_device_that_fills_between_plan_and_run_is_refused_before_mkfs(scratch: Scratch, results_dir: Path) -> None:
    """The guard runs again before every mkfs, not only when the plan is made."""
    with planned(results_dir, scratch) as (session, writer):
        disks.ext4(scratch.path)
        before = scratch.made.digests()
        with pytest.raises(UnsafeError, match=f"holds ext4, id {THEIRS}") as refusal:
            run_sweep(session.plan, session.connection, writer, Silent())
    assert f"mountlab box claim local data --erase {THEIRS}" in refusal.value.next_step
    assert scratch.made.digests() == before


def test_a_name_that_is_swapped_between_plan_and_run_is_refused_though_it_leads_to_a_blank_device(
    scratch: Scratch, results_dir: Path
) -> None:
    claimed(scratch)
    other = scratch.made.loop()
    before = scratch.made.digests()
    with planned(results_dir, scratch) as (session, writer):
        scratch.links_to(other)
        with pytest.raises(UnsafeError, match="is not the device that the plan looked at"):
            run_sweep(session.plan, session.connection, writer, Silent())
    assert scratch.made.digests() == before


class Meanwhile(RecordingBox):
    """Does something as soon as the guard has answered for the first time, before mkfs is sent."""

    def __init__(self, inner: BoxConnection, act: Callable[[], object]) -> None:
        super().__init__(inner)
        self.act, self.done = act, False

    def run(self, argv: Sequence[str], *, timeout_s: float = 60.0, root: bool = False) -> Completed:
        done = super().run(argv, timeout_s=timeout_s, root=root)
        if "guard.sh" in argv and not self.done:
            self.done = True
            self.act()
        return done


@pytest.mark.long
def test_a_name_that_is_swapped_after_the_guard_has_looked_does_no_harm(scratch: Scratch, results_dir: Path) -> None:
    claimed(scratch)
    other = scratch.made.loop()
    disks.ext4(other)
    before = scratch.made.digests()
    with planned(results_dir, scratch) as (session, writer):
        box = Meanwhile(session.connection, lambda: scratch.links_to(other))
        with pytest.raises(UnsafeError, match="is not the device that the plan looked at"):
            run_sweep(session.plan, box, writer, Silent())
    assert box.done
    assert scratch.made.digests() == before


def test_a_mount_after_the_guard_has_looked_is_seen(scratch: Scratch, results_dir: Path) -> None:
    with planned(results_dir, scratch) as (session, writer):
        box = Meanwhile(session.connection, lambda: scratch.made.mount(scratch.path))
        with pytest.raises(UnsafeError, match=f"{scratch.path} is mounted on "):
            run_sweep(session.plan, box, writer, Silent())
    assert box.done

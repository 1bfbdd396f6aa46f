"""A box by hand: the order of effects is that of a run, and whatever is raised, all of it is undone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import mountlab
import pytest
from facts import known
from mountlab.box import lock
from mountlab.box.containment import ask_argv
from mountlab.box.testing import ReplayBox
from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import BoxInUse, CommandError, MountlabError, ParameterError, PlanError, StoreError
from mountlab.results import store
from mountlab.results.altered import altered
from mountlab.results.info import read_sweep
from mountlab.results.journal import read_journal
from mountlab.runner import hand_session, workflow
from mountlab.runner.by_hand import OpenBox
from mountlab.runner.hand_session import HandSession
from mountlab.sweep.by_hand import HandSweep
from runner.test_sweep_runner import CONTROL, EXT4_SETUP, EXT4_UNDO, FACTS, LOCAL, ScriptedBox
from sweeps import Silent

TMPFS_SETUP, TMPFS_UNDO = ["mkdir", "mount", "evidence"], ["umount", "rmdir"]
LOOK = ask_argv()
WRITE = {"tool": "dd", "direction": "write", "bs": "1MiB", "count": 8}
EXT4 = {"image": "128MiB", "options": ["noatime"]}
EFFECTS = {"open", "close", "trial", "collect", "strict", *EXT4_SETUP, *EXT4_UNDO}


class Machine(ScriptedBox):
    """A scripted box that is looked at, too, and says how long a mount took."""

    def __init__(self, **script: Any) -> None:
        took = b"==> elapsed_ns <==\n2229657\n==> kernel <==\n"
        super().__init__(said={"mount": took, "mke2fs": took, **script.pop("said", {})}, **script)

    @staticmethod
    def name(argv: Sequence[str]) -> str:
        return argv[3] if len(argv) == len(LOOK) and argv[:2] == LOOK[:2] else ScriptedBox.name(argv)

    def effects(self) -> list[str]:
        """Without what only looks."""
        return [call for call in self.calls if call in EFFECTS]


def opened(machine: ScriptedBox, results: Path, *, facts: BoxFacts = FACTS, **asked: Any) -> OpenBox:
    words = {"question": "What does it do?", "design": {"seed": 7, "shortest_trial": "0s"}, **asked}
    with ExitStack() as undo:
        run_end = undo.enter_context(ExitStack())
        session = HandSession(HandSweep(box="local", **words), LOCAL, machine, facts, results=results, run_end=run_end)
        session.hold(undo)
    return OpenBox(session)


def test_a_trial_by_hand_does_what_a_sweep_does_in_the_same_order(tmp_path: Path) -> None:
    machine = Machine()
    with opened(machine, tmp_path) as box, box.mounted("ext4", **EXT4) as place:
        assert machine.effects() == ["open", *CONTROL, *EXT4_SETUP]
        assert box.trial(place, **WRITE).status == "ok"
    assert machine.effects() == ["open", *CONTROL, *EXT4_SETUP, "trial", *EXT4_UNDO, "close"]


@pytest.mark.slow
def test_mounts_inside_each_other_are_undone_inside_out(tmp_path: Path) -> None:
    machine = Machine()
    with (
        opened(machine, tmp_path) as box,
        box.mounted("tmpfs", size="64MiB") as outer,
        box.mounted("tmpfs", size="64MiB", name="inner") as inner,
    ):
        assert (outer.name, inner.name) == ("tmpfs", "inner")
        assert outer.path != inner.path
        box.trial(outer, **WRITE)
        box.trial(inner, **WRITE)
    both = [*TMPFS_SETUP, *TMPFS_SETUP, "trial", "trial", *TMPFS_UNDO, *TMPFS_UNDO]
    assert machine.effects() == ["open", *both, "close"]
    run = mountlab.load_run(box.path)
    assert sorted(run.trials["filesystem"]) == ["inner", "tmpfs"]


def test_what_is_still_mounted_is_unmounted_when_the_box_is_closed(tmp_path: Path) -> None:
    machine = Machine()
    box = opened(machine, tmp_path)
    place = box.mounted("tmpfs", size="64MiB")
    box.close()
    assert machine.effects() == ["open", *TMPFS_SETUP, *TMPFS_UNDO, "close"]
    place.unmount()
    box.close()
    assert machine.effects()[-1] == "close", "neither does anything a second time"
    assert machine.effects().count("umount") == 1
    assert not box.path.exists(), "nothing was measured"
    with pytest.raises(PlanError, match="the box is closed"):
        box.mounted("tmpfs", size="64MiB")


LEFT_OPEN = """
import os, sys
from types import SimpleNamespace
from mountlab.core.errors import CommandError
from mountlab.runner.by_hand import OpenBox

class Session:
    def __init__(self, name, error=None):
        self.name, self.error = name, error
        self.planner = SimpleNamespace(box=SimpleNamespace(name=name))
    def close(self, *_):
        print(self.name, flush=True)
        if self.error:
            raise self.error

first, second = OpenBox(Session("first")), OpenBox(Session("second", CommandError("the box is gone")))
closed = OpenBox(Session("closed"))
closed.close()
child = os.fork()
if not child:
    sys.exit(0)
os.waitpid(child, 0)
print("end", flush=True)
sys.exit(3)
"""


@pytest.mark.slow
def test_boxes_left_open_are_closed_when_the_process_that_opened_them_ends_the_last_one_first() -> None:
    done = subprocess.run([sys.executable, "-c", LEFT_OPEN], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["closed", "end", "second", "first"]
    assert done.stderr == "box second was left open: the box is gone\n"
    assert done.returncode == 3


@pytest.mark.slow
@pytest.mark.parametrize("error", [ZeroDivisionError(), KeyboardInterrupt(), CommandError("no")])
def test_everything_is_undone_where_the_users_own_code_raises(error: BaseException, tmp_path: Path) -> None:
    machine = Machine()
    box = opened(machine, tmp_path)

    def by_user() -> None:
        with box, box.mounted("tmpfs", size="64MiB") as place:
            box.trial(place, **WRITE)
            raise error

    with pytest.raises(type(error)):
        by_user()
    assert machine.effects() == ["open", *TMPFS_SETUP, "trial", *TMPFS_UNDO, "close"]
    assert store.load_run(box.path).info.status == "complete"


@pytest.mark.slow
def test_an_interrupted_trial_is_not_recorded_and_the_box_stays_open(tmp_path: Path) -> None:
    machine = Machine(trial=[0, KeyboardInterrupt()])
    with opened(machine, tmp_path) as box, box.mounted("tmpfs", size="64MiB") as place:
        with pytest.raises(KeyboardInterrupt):
            box.trials(place, n=3, **WRITE)
        assert box.trial(place, **WRITE).status == "ok"
    assert [trial.block for trial in read_journal(box.path)] == [1, 2]
    assert mountlab.load_run(box.path).sweep.design.repeats == 2


def test_a_stop_while_a_file_system_is_made_waits_until_it_can_be_undone(tmp_path: Path) -> None:
    machine = Machine(mkdir=[lambda: os.kill(os.getpid(), signal.SIGINT)])
    with opened(machine, tmp_path) as box, pytest.raises(KeyboardInterrupt):
        box.mounted("tmpfs", size="64MiB")
    assert machine.effects() == ["open", *TMPFS_SETUP, *TMPFS_UNDO, "close"]


def test_a_mount_that_fails_is_undone_and_leaves_the_box_usable(tmp_path: Path) -> None:
    machine = Machine(mount=[0, 32])
    with opened(machine, tmp_path) as box:
        with pytest.raises(CommandError, match="mount"):
            box.mounted("ext4", **EXT4)
        with box.mounted("tmpfs", size="64MiB") as place:
            assert box.trial(place, **WRITE).status == "ok"
    assert "ext4" not in {fs.name for fs in mountlab.load_run(box.path).sweep.filesystems}


def test_a_trial_that_fails_is_returned_with_its_reason_and_gives_no_figures(tmp_path: Path) -> None:
    machine = Machine(said={"trial": b"no archive"})
    with opened(machine, tmp_path) as box, box.mounted("tmpfs", size="64MiB") as place:
        trial = box.trial(place, **WRITE)
    assert trial.status == "failed"
    assert trial.reason
    with pytest.raises(StoreError, match="t0001 gave no figures"):
        _ = trial.metrics


# --- what it leaves ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_it_leaves_a_run_that_follows_its_chain_while_it_grows_and_afterwards(tmp_path: Path) -> None:
    with (
        opened(Machine(), tmp_path, baseline="tmpfs") as box,
        box.mounted("tmpfs", size="64MiB") as place,
        box.mounted("tmpfs", size="32MiB") as small,
    ):
        box.trial(place, **WRITE)
        assert altered(box.path) == []
        box.trials(place, n=2, warmup=1, **{**WRITE, "count": 4})
        box.trials(small, n=3, **WRITE)
        assert altered(box.path) == []
        assert [trial.trial_id for trial in read_journal(box.path)] == [f"t{n:04d}" for n in range(1, 8)]
    assert altered(box.path) == []
    run = mountlab.load_run(box.path)
    assert run.info.status == "complete"
    assert run.info.order == list(run.trials["trial_id"])
    assert {cell.id for cell in run.sweep.cells} == set(run.trials["cell"])
    assert [(each.candidate, each.baseline, each.n) for each in run.comparisons] == [("tmpfs-2", "tmpfs", 1)]
    assert "by-hand" in {caveat.code for caveat in run.caveats}
    assert workflow.read_sweep(box.path).sweep == run.sweep


def test_a_change_to_its_parameters_is_noticed(tmp_path: Path) -> None:
    with opened(Machine(), tmp_path) as box, box.mounted("tmpfs", size="64MiB") as place:
        box.trial(place, **WRITE)
    info = json.loads((box.path / "run.json").read_text())
    info["parameters"]["filesystems"]["tmpfs"]["size"] = "32MiB"
    (box.path / "run.json").write_text(json.dumps(info))
    with pytest.raises(MountlabError, match="altered"):
        mountlab.load_run(box.path)


@pytest.mark.slow
def test_trials_of_one_workload_are_blocks_and_a_list_is_a_factor(tmp_path: Path) -> None:
    with opened(Machine(), tmp_path) as box, box.mounted("tmpfs", size="64MiB") as place:
        box.trial(place, warmup=True, **WRITE)
        first = box.trial(place, **WRITE)
        assert read_sweep(box.path).sweep.design.fresh_filesystem == "block", "no mount had two counted trials"
        more = box.trials(place, n=2, **WRITE)
        assert read_sweep(box.path).sweep.design.fresh_filesystem == "never"
        both = box.trials(place, n=2, data=["zeros", "random"], **WRITE)
    assert [each.record.block for each in (first, *more)] == [1, 2, 3]
    assert len({each.record.cell for each in (first, *more)}) == 1
    assert sorted((each.record.factors["data"], each.record.block) for each in both) == [
        ("random", 1), ("random", 2), ("zeros", 1), ("zeros", 2),
    ]  # fmt: skip
    assert read_journal(box.path)[0].block == 0
    assert mountlab.load_run(box.path).estimates.query("metric == 'write_bandwidth'")["n"].tolist() == [3, 2, 2]


@pytest.mark.slow
def test_figures_raw_files_and_frames_of_trials(tmp_path: Path) -> None:
    with opened(Machine(), tmp_path) as box, box.mounted("ext4", **EXT4) as place:
        with pytest.raises(StoreError, match="nothing was measured yet"):
            _ = box.measurements
        one, ten = box.trial(place, **WRITE), box.trials(place, n=10, **WRITE)
        assert one.metrics["write_bandwidth"] == pytest.approx(8388608 / 0.01, rel=0.01)
        assert "839 MB/s" in one.raw["stderr"]
        assert ten.values("write_bandwidth") == [one.metrics["write_bandwidth"]] * 10
        assert len(ten[2:4]) == 2
        assert set(ten.measurements["trial_id"]) == {trial.id for trial in ten}
        assert set(box.measurements["trial_id"]) == {one.id, *(trial.id for trial in ten)}
        assert place.options.set_index("option")["state"]["noatime"] == "in effect"
        assert "/mnt/ext4" in place.evidence["mountinfo"]
        with pytest.raises(ParameterError, match="no such metric") as error:
            ten.values("read_bandwidth")
        assert "write_bandwidth" in error.value.allowed
    assert list(box.measurements.columns) == list(mountlab.load_run(box.path).measurements.columns)
    assert "too-few" not in {caveat.code for caveat in one.caveats}


class Clicked(Silent):
    """A view whose Stop button was clicked."""

    stopped = True

    def __enter__(self) -> Clicked:
        return self

    def __exit__(self, *_error: object) -> None: ...


@pytest.mark.slow
def test_the_stop_button_ends_the_trials_and_returns_those_that_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hand_session, "progress_display", lambda *_: Clicked())
    machine = Machine(trial=[0, KeyboardInterrupt()])
    with opened(machine, tmp_path) as box, box.mounted("tmpfs", size="64MiB") as place:
        assert len(box.trials(place, n=3, **WRITE)) == 1
        assert box.trial(place, **WRITE).status == "ok"
    assert machine.effects()[-1] == "close"


@pytest.mark.slow
def test_a_run_by_hand_is_neither_resumed_nor_extended(tmp_path: Path) -> None:
    with opened(Machine(), tmp_path) as box, box.mounted("tmpfs", size="64MiB") as place:
        box.trial(place, **WRITE)
    with pytest.raises(StoreError, match="a run by hand cannot be extended"):
        mountlab.extend(box.path, repeats=5)
    with pytest.raises(StoreError, match="nothing that waits to be run") as error:
        mountlab.resume(box.path)
    assert "sweep.yml" in error.value.next_step


# --- wrong words ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "entry", "what", "hint"),
    [
        ("ext5", {}, "unknown file system type", "'ext4'"),
        ("ext4", {"option": ["noatime"]}, "unknown key", "'options'"),
        ("ext4", {"image": "128"}, "a number with its unit", ""),
        ("tmpfs", {}, "tmpfs needs a size", ""),
        ("ntfs", {}, "does not support ntfs", "type: dir"),
        ("ext4", {"image": "1000TiB"}, "too large", ""),
    ],
)
def test_wrong_file_systems_get_the_errors_of_a_sweep_file(
    kind: str, entry: dict[str, Any], what: str, hint: str, tmp_path: Path
) -> None:
    machine = Machine()
    with opened(machine, tmp_path) as box, pytest.raises(MountlabError, match=what) as error:
        box.mounted(kind, **entry)
    assert hint in error.value.next_step
    assert error.value.where
    assert machine.effects() == ["open", "close"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entry", "what", "hint"),
    [
        ({"tool": "fioo"}, "unknown tool", "'fio'"),
        ({"tool": "dd", "direction": "wriet"}, "wrong value", "'write'"),
        ({"tool": "dd", "directoin": "write"}, "unknown", "'direction'"),
        ({**WRITE, "count": 8192}, "too large", ""),
        ({**WRITE, "bs": ["1MiB", "2MiB"]}, "not a number of trials", "box.trials"),
        ({**WRITE, "clients": ["a", "b"]}, "several clients", "sweep file"),
    ],
)
def test_wrong_workloads_get_the_errors_of_a_sweep_file(
    entry: dict[str, Any], what: str, hint: str, tmp_path: Path
) -> None:
    machine = Machine()
    with opened(machine, tmp_path) as box, box.mounted("tmpfs", size="64MiB") as place:
        with pytest.raises(MountlabError, match=what) as error:
            box.trial(place, **entry)
        assert hint in error.value.next_step
        assert box.trial(place, **WRITE).id == "t0001", "what was wrong has left nothing"
    assert "trial" in machine.effects()


@pytest.mark.parametrize("n", [0, -1, 100_000])
def test_a_number_of_trials_is_a_number(n: int, tmp_path: Path) -> None:
    with (
        opened(Machine(), tmp_path) as box,
        box.mounted("tmpfs", size="64MiB") as place,
        pytest.raises(ParameterError, match="not a number of trials"),
    ):
        box.trials(place, n=n, **WRITE)


def test_a_place_that_is_unmounted_or_named_twice_is_an_error(tmp_path: Path) -> None:
    with opened(Machine(), tmp_path) as box:
        with box.mounted("tmpfs", size="64MiB") as place:
            with pytest.raises(PlanError, match="of this name is mounted"):
                box.mounted("tmpfs", size="64MiB")
            with pytest.raises(ParameterError, match="one name for two things"):
                box.mounted("tmpfs", size="32MiB", name="tmpfs")
        with pytest.raises(PlanError, match="nothing can be run here"):
            box.trial(place, **WRITE)
        with box.mounted("tmpfs", size="64MiB") as again:
            assert again.name == "tmpfs", "it is the same file system, mounted once more"


@pytest.mark.parametrize("key", ["repeats", "until", "levle"])
def test_a_design_by_hand_has_no_number_of_blocks(key: str) -> None:
    with pytest.raises(ParameterError, match="unknown key") as error:
        HandSweep(box="local", question="?", design={key: 1}).empty()
    assert key not in error.value.allowed
    assert "level" in error.value.allowed


def test_a_file_system_without_a_device_gets_an_image(tmp_path: Path) -> None:
    with opened(Machine(), tmp_path) as box, box.mounted("ext4", options=["noatime"]) as place:
        assert place.filesystem.image_bytes == 2**30


def test_the_room_of_all_that_is_mounted_counts(tmp_path: Path) -> None:
    facts = known(FACTS, mount_root_free_bytes=1024**3)
    with (
        opened(Machine(), tmp_path, facts=facts) as box,
        box.mounted("ext4", image="700MiB"),
        pytest.raises(PlanError, match="too large: all images together"),
    ):
        box.mounted("ext4", image="700MiB", name="second")


def test_a_box_that_this_process_has_open_says_so() -> None:
    owner = str(lock.this_process("20260101T000000-by-hand-local-aaaa"))
    machine = ReplayBox().when(lambda argv: argv[3] == "mountlab-locks", f"/m {owner}\n")
    with pytest.raises(BoxInUse, match="is running on this box") as error:
        lock.check_free(machine, "/m")
    assert error.value.next_step.startswith("it is this Python process: stop its run, or close() the box")


def test_the_name_opens_a_box_and_is_still_the_package() -> None:
    assert callable(mountlab.box)
    assert mountlab.box.lock is lock  # type: ignore[attr-defined]
    with pytest.raises(StoreError, match="no such box file"):
        mountlab.box("nosuchbox")

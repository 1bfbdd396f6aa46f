"""A loop device is detached from the file that we attached it to: its number alone may be somebody else's by now."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from disks import command
from mountlab.core.model import Filesystem, Place
from mountlab.filesystems import FAMILIES
from namespaces import entered, mount_namespace
from waiting import LIMIT_S, wait_until

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("losetup")]


@dataclass
class Loop:
    """A loop device on an image, and another file."""

    device: str
    image: Path
    other: Path

    @property
    def backing(self) -> str:
        """The file of ours that it lies on; '' where it is free, or others have the number by now."""
        return self.shown if self.shown.startswith(str(self.image.parent)) else ""

    @property
    def shown(self) -> str:
        """The file that it lies on, as the kernel calls it here."""
        file = Path("/sys/block", Path(self.device).name, "loop", "backing_file")
        return file.read_text().strip() if file.exists() else ""

    @property
    def is_free(self) -> bool:
        return not Path("/sys/block", Path(self.device).name, "loop").exists()

    def undo(self, **environment: str) -> str:
        """What the undo of the step that attached it says."""
        place = Place(run_id="r", run_dir="/none", mountpoint="/none", image=str(self.image))
        steps = FAMILIES["ext4"].steps(Filesystem(name="e", type="ext4", image_bytes=2**26), place)
        (undo,) = [step.undo for step in steps if step.binds == "device"]
        assert undo is not None
        argv = [word.replace("{device}", self.device) if "\n" not in word else word for word in undo]
        done = subprocess.run(
            argv, capture_output=True, text=True, check=False, timeout=LIMIT_S, env={**os.environ, **environment}
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.replace(self.device, "LOOP").replace(str(self.image), "IMAGE")

    def give_away(self) -> None:
        """Somebody else detaches it, and gets the number for a file of his own. A third one who looks for a free number
        may be quicker: then it is done with another number."""
        for _ in range(20):
            command("losetup", "--detach", self.device)
            if (
                subprocess.run(["losetup", self.device, str(self.other)], capture_output=True, check=False).returncode
                == 0
            ):
                return
            self.device = command("losetup", "--find", "--show", str(self.image))
        pytest.fail(f"others took the number of {self.image} 20 times")


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Loop]:
    files = [tmp_path / name for name in ("image", "other")]
    for file in files:
        with file.open("xb") as opened:
            opened.truncate(2**20)
    made = Loop(command("losetup", "--find", "--show", str(files[0])), *files)
    yield made
    if made.backing:
        command("losetup", "--detach", made.device)


def test_ours_is_detached_and_once_more_is_nothing(loop: Loop) -> None:
    assert (loop.undo(), loop.backing) == ("", "")
    assert loop.undo() == "" or not loop.is_free  # what others have by now is named


def test_a_number_that_was_given_to_another_file_stays(loop: Loop) -> None:
    loop.give_away()
    assert loop.undo() == f"not ours: LOOP lies on {loop.other} by now: left alone\n"
    assert loop.backing == str(loop.other)


RACE = """#!/bin/sh
case $1 in -d)
    losetup=$(PATH=$OLD command -v losetup)
    "$losetup" -d "$2"
    "$losetup" "$2" "$OTHER" 2> "$SAID" && echo taken > "$SAID" ;;
esac
PATH=$OLD exec losetup "$@"
"""


def test_nobody_gets_the_number_between_the_check_and_the_detach(loop: Loop, tmp_path: Path) -> None:
    """Somebody is as quick as can be: after our look, and before our losetup has begun."""
    programs, said = tmp_path / "bin", tmp_path / "said"
    programs.mkdir()
    (programs / "losetup").write_text(RACE)
    (programs / "losetup").chmod(0o755)
    old = os.environ["PATH"]
    loop.undo(PATH=f"{programs}:{old}", OLD=old, OTHER=str(loop.other), SAID=str(said))
    assert "busy" in said.read_text()
    assert loop.backing == ""


def test_one_that_stays_in_use_is_named_and_goes_with_its_last_user(loop: Loop) -> None:
    with ExitStack() as user:
        user.callback(os.close, os.open(loop.device, os.O_RDONLY))
        assert loop.undo() == (
            "lazily: LOOP on IMAGE is still in use: the kernel detaches it when nothing uses it any more\n"
        )
        assert loop.backing == str(loop.image)
    wait_until("a device that is free", lambda: loop.backing == "")


def test_a_file_that_was_removed_is_known_by_its_name(loop: Loop) -> None:
    loop.image.unlink()
    assert (loop.undo(), loop.backing) == ("", "")


@pytest.mark.requires_program("unshare", "nsenter")
def test_a_file_of_the_same_name_in_another_container_is_not_ours(loop: Loop, tmp_path: Path) -> None:
    command("losetup", "--detach", loop.device)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with (elsewhere / loop.image.name).open("xb") as opened:
        opened.truncate(2**20)
    with mount_namespace("private") as pid:
        command(*entered(pid), "mount", "--bind", str(elsewhere), str(tmp_path))
        loop.device = command(*entered(pid), "losetup", "--find", "--show", str(loop.image))
        if loop.shown != str(loop.image) and loop.shown.endswith(str(loop.image)):
            command("losetup", "--detach", loop.device)
            pytest.skip("in a chroot the kernel calls files of another container otherwise")
        assert loop.backing == str(loop.image), "so it is called here, too"
        assert loop.undo() == "not ours: LOOP lies on IMAGE by now: left alone\n"
        assert loop.backing == str(loop.image)
        command("losetup", "--detach", loop.device)

"""kill -9 of the control process while a state is made, and while it is restored: resumed, with the same files."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from faults.scenes import control, scene
from mountlab.filesystems.kept import StateOfMount
from mountlab.results.journal import read_journal

pytestmark = [pytest.mark.box, pytest.mark.slow, pytest.mark.requires_root, pytest.mark.requires_program("sshd")]

LONGEST_S = 120.0
POLL_S = 0.02
"""Each look reads /proc; a copy of an image and its flush take several times as long."""


def at_work(root: Path, words: tuple[str, ...]) -> bool:
    """Whether a process works below this root with arguments that end in all of these words."""
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = process.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        ours = any(argument.startswith(f"{root}/") for argument in arguments)
        if ours and all(any(argument.endswith(word) for argument in arguments) for word in words):
            return True
    return False


@pytest.mark.parametrize(
    ("moment", "words"), [("ageing", ("age.sh", "/aged")), ("restoring", ("image.sh", "ext4+aged.img", "/ext4.img"))]
)
def test_a_killed_run_is_resumed_with_the_same_state_and_leaves_nothing(moment: str, words: tuple[str, ...]) -> None:
    with scene() as place, control(place) as machine:
        sweep_file = place.put_sweep(
            filesystems={"ext4": {"type": "ext4", "image": "128MiB", "state": ["fresh", "aged"]}},
            states={"aged": {"fill": "40%", "churn": 0.5, "profile": "mail"}},
            workloads={"seen": place.seen()},
            design={"repeats": 2, "warmup": 0, "seed": 7, "trial_timeout": "60s", "drop_caches": False},
        )
        number = machine.start("run", sweep_file)
        until = time.monotonic() + LONGEST_S
        while not at_work(place.mount_root, words):
            assert time.monotonic() < until, f"{moment} was not seen: {machine.said()}"
            time.sleep(POLL_S)
        os.kill(number, signal.SIGKILL)
        assert machine.wait() == -signal.SIGKILL
        (run,) = place.runs
        before = digests(run)
        assert machine.do("resume", run) == 0, machine.said()
        assert [trial.status for trial in read_journal(run)] == ["ok"] * 4
        after = digests(run)
        assert len({*before, *after}) == 1, "the same files from the same seed"
        assert place.left().left == ()


def digests(run: Path) -> list[str]:
    return [StateOfMount.read(file.read_text()).digest for file in run.glob("raw/*/state.json")]

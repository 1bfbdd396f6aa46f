"""The helper on a box, used by a real second user: sweeps in his name, and hundreds of attempts to get more of it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from mountlab import helper, store
from mountlab.model import Box
from ordinary import Ordinary, ordinary_user
from sweeps import EXT4, TMPFS, sweep

pytestmark = [
    pytest.mark.box,
    pytest.mark.requires_root,
    *(pytest.mark.requires_program(name) for name in ("sudo", "visudo", "useradd", "setpriv", "flock")),
]
INSTALLED = Path(helper.PROGRAM).parent
RULE = Path("/etc/sudoers.d/mountlab-helper")
MAIN = """
import sys
from pathlib import Path
from mountlab import store
from mountlab.__main__ import main
store.PARAMS = Path(sys.argv.pop(1))
sys.exit(main())
"""
"""Mountlab with box files of a test's own."""


@dataclass(frozen=True)
class Helped:
    """A user for whom the helper is installed."""

    user: Ordinary
    mount_root: Path

    def mountlab(self, *words: str) -> subprocess.CompletedProcess[str]:
        results = f"MOUNTLAB_RESULTS={self.user.home}/results"
        command = [*self.user.python[:-1], results, self.user.python[-1], "-c", MAIN, str(self.user.home / "params")]
        return subprocess.run([*command, *words], capture_output=True, text=True, check=False, cwd="/", timeout=120)


def install(script: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-s", "--", *words], input=script, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.fixture(scope="module")
def helped() -> Iterator[Helped]:
    if INSTALLED.exists() or RULE.exists():
        pytest.skip(f"a helper is installed on this machine already ({INSTALLED}, {RULE})")
    with ordinary_user() as user:
        root = Path(f"/var/lib/mountlab-of-{user.name}")
        box = Box(name="local", host="", embedded="loopback", mount_root=str(root))
        script = helper.install_script(user.name, box)
        boxes = user.home / "params" / "boxes"
        boxes.mkdir(parents=True)
        (boxes / "local.yml").write_text(yaml.safe_dump({"embedded": "loopback", "become": "helper"}))
        try:
            done = install(script)
            assert done.returncode == 0, done.stderr
            yield Helped(user, root)
        finally:
            install(script, "remove")
            (root / ".mountlab").unlink(missing_ok=True)
            if root.exists():
                root.rmdir()


def test_a_sweep_with_the_helper_mounts_measures_and_leaves_nothing(helped: Helped) -> None:
    parameters = {**sweep(filesystems={"tmpfs": TMPFS, "ext4": EXT4}).parameters, "baseline": "ext4"}
    file = helped.user.home / "x.yml"
    file.write_text(yaml.safe_dump(parameters))
    done = helped.mountlab("run", str(file))
    clean = helped.mountlab("box", "clean", "local")
    assert done.returncode == 0, done.stderr
    (path,) = (file.parent for file in (helped.user.home / "results").glob("*/run.json"))
    run = store.load_run(path)
    assert list(run.trials["status"].unique()) == ["ok"]
    assert run.info["facts"]["rights"] == "helper"
    assert run.info["facts"]["user"] == helped.user.name
    assert clean.stdout == "nothing of ours is on the box\n"

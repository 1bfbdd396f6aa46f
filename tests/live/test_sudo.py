"""A user with password-less sudo: mounting works as it does for root, and what is left is removed too."""

from __future__ import annotations

import subprocess

import pytest
import yaml
from mountlab.results import store
from ordinary import allow_sudo, ordinary_user
from sweeps import EXT4, TMPFS, as_is
from waiting import LIMIT_S

pytestmark = [
    pytest.mark.box,
    pytest.mark.requires_root,
    pytest.mark.requires_program("sudo"),
    pytest.mark.requires_program("useradd"),
    pytest.mark.requires_program("setpriv"),
]

RUN_AND_CLEAN = """
import sys
from pathlib import Path
from mountlab.__main__ import main
from mountlab.results import paths
from mountlab.runner import workflow
workflow.run(paths.load_sweep(Path(sys.argv[1])))
sys.exit(main(["box", "clean", "local"]))
"""
"""Without the report, whose page is the same whoever makes it."""


def test_a_sweep_with_sudo_mounts_measures_and_leaves_nothing() -> None:
    with ordinary_user() as user:
        allow_sudo(user)
        asked = as_is(filesystems={"tmpfs": TMPFS, "ext4": EXT4}, design={"repeats": 1})
        parameters = {**asked.parameters, "baseline": "ext4"}
        file = user.home / "x.yml"
        file.write_text(yaml.safe_dump(parameters))
        results = f"MOUNTLAB_RESULTS={user.home}/results"
        command = [*user.python[:-1], results, user.python[-1], "-c", RUN_AND_CLEAN, str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", timeout=LIMIT_S)
        assert done.returncode == 0, done.stderr
        (path,) = (file.parent for file in (user.home / "results").glob("*/run.json"))
        run = store.load_run(path)
        assert list(run.trials["status"].unique()) == ["ok"]
        assert run.info.facts.rights.level == "sudo"
        assert run.info.facts.rights.user == user.name
        assert done.stdout.endswith("nothing of ours is on the box\n")

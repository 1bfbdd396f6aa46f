"""The local box with roots and scratch devices of a test's own."""

from __future__ import annotations

from pathlib import Path

import pytest
import workers
import yaml
from mountlab.results import paths


def output_root(tmp_path: Path) -> str:
    """The output root of the box of a test: in memory, and of a name that no other session on this machine has."""
    return f"/dev/shm/{workers.PLACE.name}-{workers.WORKER}-{tmp_path.name}"


def own_box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **keys: object) -> Path:
    """Makes `local` a box whose mount root lies below `tmp_path`, with more keys of a box file. Gives that root."""
    boxes = tmp_path / "params" / "boxes"
    boxes.mkdir(parents=True)
    root = tmp_path / "mountlab-root"
    own = {"embedded": "loopback", "mount_root": str(root), "output_root": output_root(tmp_path)}
    text = yaml.safe_dump({**own, **keys})
    (boxes / "local.yml").write_text(text)
    monkeypatch.setattr(paths, "PARAMS", tmp_path / "params")
    monkeypatch.setenv("MOUNTLAB_PARAMS", str(tmp_path / "params"))  # of kernels, and of other processes
    return root

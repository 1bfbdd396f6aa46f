"""extended: blocks that were added after a look at the results."""

from __future__ import annotations

from checks.test_checks import EXT4, READ, build, the_only
from mountlab.sweep.extension import extended
from sweeps import sweep


def test_a_run_that_was_extended_is_named_with_its_blocks() -> None:
    begun = sweep(filesystems={"ext4": EXT4}, workloads={"r": READ}, design={"repeats": 5})
    asked = sweep(filesystems={"ext4": EXT4}, workloads={"r": READ}, design={"repeats": 8})
    whole = extended(begun, asked, at="2026-11-23T10:00:00+00:00", only_new=False, where="r").sweep
    caveat = the_only("extended", build(whole))
    assert caveat.message.startswith("Extended on 2026-11-23 with ")

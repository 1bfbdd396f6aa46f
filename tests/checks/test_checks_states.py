"""Caveats of states: raised and not raised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from checks.test_checks import build, found, make, the_only

STATES = {"states": {"aged": {"fill": "80%", "churn": 2}}}
EXT4 = {"type": "ext4", "image": "256MiB", "state": ["fresh", "aged"]}


def evidence(identities: Mapping[str, str]) -> Any:
    """A run of a file system fresh and aged; `identities`: mount to the checksum of what it began from."""
    whole = build(make(filesystems={"ext4": EXT4}, **STATES))
    trials = whole.trials.assign(mount=[f"m{place}" for place in range(len(whole.trials))])
    of_state = trials.cell.str.endswith("state=aged")
    kept = {mount: identities.get(mount, "a") for mount in trials.mount[of_state]}
    return replace(whole, trials=trials, identities=kept)


def aged_mounts() -> list[str]:
    """The mounts of the counted trials of the aged file system."""
    return list(evidence({}).identities)


def test_trials_of_one_making_are_not_doubted() -> None:
    assert len(aged_mounts()) > 1
    assert found("several-makings", evidence({})) == []


def test_trials_of_two_makings_of_a_state_are_named() -> None:
    caveat = the_only("several-makings", evidence({aged_mounts()[-1]: "b"}))
    assert caveat.severity == "note"
    assert "2 makings of the state aged" in caveat.message
    assert "state=aged" in str(caveat.subject)


def test_mounts_without_a_checksum_say_nothing() -> None:
    whole = evidence({})
    assert found("several-makings", replace(whole, identities={aged_mounts()[0]: "b"})) == []

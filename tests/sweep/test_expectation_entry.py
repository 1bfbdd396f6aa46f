"""Expectations of a sweep file that are held against the result."""

from __future__ import annotations

from typing import Any

import pytest
from mountlab.core.errors import ParameterError
from mountlab.sweep.sweep_file import resolve
from rows import every_row

SWEEP = {
    "name": "s", "question": "Is it so?", "baseline": "ext4",
    "filesystems": {"tmpfs": {"type": "tmpfs", "size": "64MiB"}, "ext4": {"type": "ext4", "image": "256MiB"}},
    "workloads": {"w": {"tool": "dd", "direction": "write", "bs": "1MiB", "count": 8, "data": "zeros"}},
}  # fmt: skip


def sweep(expectation: Any) -> Any:
    return resolve({**SWEEP, "expectation": expectation}, where="s.yml").sweep


def test_a_text_claims_nothing() -> None:
    found = sweep("  faster,\n  I think ")
    assert (found.expectation, found.expected) == ("faster, I think", {})


def test_claims_are_of_all_file_systems_or_of_one() -> None:
    found = sweep({"says": "why", "flushed writes": "faster", "w": {"tmpfs": "same"}})
    assert found.expectation == "why"
    assert found.expected == {"flushed writes": {"": "faster"}, "w": {"tmpfs": "same"}}


@every_row(
    ("expectation", "words"),
    [
        ({"flushed write": "faster"}, ["s.yml: expectation", "flushed write", "flushed writes"]),
        ({"flushed writes": "quicker"}, ["s.yml: expectation.flushed writes", "'quicker'", "faster, slower, same"]),
        ({"flushed writes": {"ext4": "faster"}}, ["expectation.flushed writes", "ext4", "tmpfs"]),
        ({"flushed writes": {"tmpfs": 3}}, ["expectation.flushed writes.tmpfs", "3", "faster, slower, same"]),
    ],
)
def test_what_is_no_claim_is_refused_with_what_is_allowed(expectation: Any, words: list[str]) -> None:
    with pytest.raises(ParameterError) as refused:
        sweep(expectation)
    assert all(word in str(refused.value) for word in words), str(refused.value)

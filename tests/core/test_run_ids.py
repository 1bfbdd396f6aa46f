"""Names of runs: what is made is read again, of every version, and only the box in it changes."""

from __future__ import annotations

from datetime import UTC, datetime
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mountlab.core import run_ids
from mountlab.core.shell import script_text
from rows import every_row

AT = datetime(2026, 11, 20, 10, 19, 2, tzinfo=UTC)
NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,12}", fullmatch=True)


@pytest.mark.slow
@given(NAMES, NAMES, st.sampled_from(["", "2", "17", "3f9a", "0000"]), NAMES)
def test_the_box_in_a_name_is_found_whatever_the_parts_are_called(sweep: str, box: str, end: str, new: str) -> None:
    tail = f"-{end}" if end else ""
    made = run_ids.new_id(AT, sweep, box, end)
    assert made == f"20261120T101902-{sweep}-{box}{tail}"
    parts = run_ids.read(made, box)
    assert parts is not None
    assert str(parts) == made
    assert run_ids.with_box(made, box, new).startswith("20261120T101902-")


@every_row(
    ("name", "box", "expected"),
    [
        ("20261120T101902-tour-mybox-3f9a", "mybox", "20261120T101902-tour-box-1-3f9a"),
        ("20261120T101902-tour-mybox-2", "mybox", "20261120T101902-tour-box-1-2"),
        ("20261120T101902-tour-mybox", "mybox", "20261120T101902-tour-box-1"),
        ("20261120T101902-data-sync-data-3f9a", "data", "20261120T101902-data-sync-box-1-3f9a"),
        ("20261120T101902-tour-lab-rack-2-3f9a", "lab-rack-2", "20261120T101902-tour-box-1-3f9a"),
        ("first-try_on-MyBox.old", "mybox", "first-try_on-box-1.old"),
        ("20261120T101902-tour-other-3f9a", "mybox", "20261120T101902-tour-other-3f9a"),
    ],
)
def test_another_box_takes_the_place_of_the_box_and_of_nothing_else(name: str, box: str, expected: str) -> None:
    assert run_ids.with_box(name, box, "box-1") == expected


def test_the_parts_of_a_name_can_be_read() -> None:
    read = run_ids.read("20261120T101902-tour-mybox-3f9a", "mybox")
    assert read == run_ids.RunId(time="20261120T101902", sweep="tour", box="mybox", end="3f9a")
    assert run_ids.read("tour", "mybox") is None


def test_the_shell_that_cleans_a_box_knows_a_name_again() -> None:
    script = script_text("ownership.sh")
    form = script.partition("case ${1##*/} in\n")[2].partition(")")[0].strip()
    made = run_ids.new_id(AT, "tour", "mybox", "3f9a")
    assert fnmatchcase(made, form)
    assert fnmatchcase(run_ids.of_client(made, "other"), form)
    assert not fnmatchcase("lost+found", form)

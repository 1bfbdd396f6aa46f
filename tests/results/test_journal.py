"""The journal: a torn end counts as not run, and whatever else is wrong with it is said with its line."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict
from pathlib import Path

import pytest
from mountlab.core.chain import digest
from mountlab.core.errors import StoreError
from mountlab.results.journal import FILE, append, mend, read_journal
from results.test_store import ok, the_plan

TRIALS = [ok(planned) for planned in the_plan().trials[:4]]
LINES = [f"{json.dumps(asdict(trial))}\n".encode() for trial in TRIALS]
"""As an earlier version wrote them, without checksums."""


def ids(run: Path) -> list[str]:
    return [trial.trial_id for trial in read_journal(run)]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    head = ""
    for trial in TRIALS:
        head = append(tmp_path, trial, raw="", before=head)
    assert read_journal(tmp_path) == TRIALS
    assert mend(tmp_path / FILE) == ""


@pytest.mark.parametrize(
    ("tail", "said"),
    [
        (LINES[2][:40], "it begins with b'{"),
        (b"\0" * 4096, "zero bytes, as a power cut leaves them"),
        (LINES[2][:30] + b"\0" * 100, "zero bytes"),
        (b"\0" * 30 + LINES[2][30:], "zero bytes"),
        (LINES[2][:30] + b"\0" * 10 + LINES[2][40:], "zero bytes"),
    ],
    ids=["cut off", "zeros", "begun, then zeros", "zeros, then its end", "a hole in it"],
)
def test_what_a_power_cut_leaves_at_the_end_counts_as_not_run(tail: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.write_bytes(LINES[0] + LINES[1] + tail)
    assert ids(tmp_path) == ["t0001", "t0002"]
    assert file.read_bytes() == LINES[0] + LINES[1] + tail, "reading changes nothing"
    told = mend(file)
    assert f"was torn ({len(tail)} B: {said}" in told
    assert told.endswith("counts as not done")
    append(tmp_path, TRIALS[2], raw="", before=digest([line.rstrip(b"\n") for line in LINES[:2]]))
    assert ids(tmp_path) == ["t0001", "t0002", "t0003"]


def test_it_may_be_nothing_but_torn(tmp_path: Path) -> None:
    for torn in (b"", b"\0" * 9, b"{", b"\0\n"):
        (tmp_path / FILE).write_bytes(torn)
        assert read_journal(tmp_path) == []
        mend(tmp_path / FILE)
        assert (tmp_path / FILE).read_bytes() == b""


@pytest.mark.parametrize(
    ("middle", "got"),
    [
        (LINES[1][:40] + b"\n", "Unterminated string"),
        (LINES[1][:40] + LINES[2], "delimiter"),
        (b"\0" * 50 + b"\n", "Expecting value"),
        (b"\n", "Expecting value"),
        (b"\xff\xfe\n", "codec can't decode"),
        (b"[]\n", "'list'"),
        (b"[" * 100_000 + b"\n", "recursion"),
        (b'{"trial_id": "t0002"}\n', "missing"),
        (b'{"more": 1, ' + LINES[1][1:], "unexpected keyword argument 'more'"),
        (LINES[1].replace(b'"ok"', b'"fine"'), "status: 'fine'"),
        (LINES[1].replace(b'"t0002"', b"2"), "trial_id: 2 is no text"),
    ],
)
def test_a_damaged_line_in_the_middle_is_an_error_with_its_number_and_how_to_go_on(
    middle: bytes, got: str, tmp_path: Path
) -> None:
    (tmp_path / FILE).write_bytes(LINES[0] + middle + LINES[3])
    with pytest.raises(StoreError) as caught:
        read_journal(tmp_path)
    assert caught.value.what == "a line of the journal is not a trial"
    assert caught.value.where == f"{tmp_path / FILE}, line 2"
    assert got in caught.value.got
    way_out = f"sed -i.bak 2d {tmp_path / FILE} && mountlab reparse {tmp_path} --accept-altered"
    assert caught.value.next_step.endswith(way_out)


def test_a_trial_that_is_there_twice_is_an_error_that_names_both_lines(tmp_path: Path) -> None:
    """Two processes wrote, or somebody has put two journals together: the raw output is of the later one."""
    (tmp_path / FILE).write_bytes(LINES[0] + LINES[1] + LINES[2] + LINES[1])
    with pytest.raises(StoreError) as caught:
        read_journal(tmp_path)
    assert caught.value.what == "a trial is in the journal twice"
    assert caught.value.got == "t0002 in lines 2 and 4"
    way_out = f"sed -i.bak 2d {tmp_path / FILE} && mountlab reparse {tmp_path} --accept-altered"
    assert caught.value.next_step.endswith(way_out)


def test_the_way_out_that_is_told_is_one(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(LINES[0] + b"garbage\n" + LINES[3])
    with pytest.raises(StoreError) as caught:
        read_journal(tmp_path)
    subprocess.run(caught.value.next_step.rpartition(": ")[2].partition(" && ")[0].split(), check=True)
    assert ids(tmp_path) == ["t0001", "t0004"]
    assert b"garbage" in (tmp_path / f"{FILE}.bak").read_bytes()


def test_a_gigantic_journal_is_refused_without_being_read(tmp_path: Path) -> None:
    with (tmp_path / FILE).open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(StoreError, match="too large"):
        read_journal(tmp_path)

"""What is read of a run beside its figures: commands, files, devices; of runs of earlier versions, too."""

from __future__ import annotations

import json
import shutil
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from mountlab.analysis.run_view import TrialRecord
from mountlab.checks import Below
from mountlab.core import chain
from mountlab.core.errors import ParseError
from mountlab.core.places import SHIPPED
from mountlab.core.trial_files import TrialFiles
from mountlab.filesystems.evidence import device_traffic
from mountlab.results import derived, records, tables
from mountlab.results.journal import read_as_it_is, read_journal
from mountlab.results.raw import read_trial
from mountlab.results.store import load_run

TOUR = SHIPPED / "tests" / "data" / "earlier_run"


def test_of_an_earlier_version_all_is_read_that_it_kept() -> None:
    run = load_run(TOUR)
    assert [each.mount for each in run.setups] == list(dict.fromkeys(run.trials["mount"]))
    assert {each.mountinfo.split(" - ")[1].split(" ")[0] for each in run.setups} == {"tmpfs", "ramfs", "ext4"}
    for row in run.trials.to_dict("records"):
        record = run.records[row["trial_id"]]
        assert record.argv == tuple(json.loads((TOUR / "raw" / row["trial_id"] / "argv").read_text()))
        assert record.argv[0] == row["tool"]


@pytest.mark.slow
def test_the_bytes_of_a_trial_are_those_of_the_least_busy_device_below_its_file_system() -> None:
    run = load_run(TOUR)
    chains = {each.mount: [device.number for device in each.devices] for each in run.setups}
    for row in run.trials.to_dict("records"):
        raw = TOUR / "raw" / row["trial_id"]
        traffic = device_traffic((raw / "before.txt").read_text(), (raw / "after.txt").read_text())
        below = [traffic[number] for number in chains[row["mount"]] if number in traffic]
        least = None
        if below:  # a file system asks the top one for flushes: a loop device, which counts them
            read, written = min(each.read for each in below), min(each.written for each in below)
            least = Below(
                read, written, lost=below[0].read - read, flushes=below[0].flushes, chain=tuple(chains[row["mount"]])
            )
        assert run.records[row["trial_id"]].device == least


def record_in(directory: Path) -> TrialRecord:
    trial = replace(read_journal(TOUR)[0], status="failed")
    return read_trial(directory, trial, None, imported=False)


def test_files_that_hold_nothing_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("")
    (tmp_path / "argv").write_text('["dd"]')
    record = record_in(tmp_path)
    assert (record.files, record.argv, record.before) == (("argv",), ("dd",), ())


def test_of_a_trial_without_a_directory_nothing_is_known(tmp_path: Path) -> None:
    assert record_in(tmp_path / "t0001") == TrialRecord()


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    return shutil.copytree(TOUR / "raw" / "t0001", tmp_path / "t0001")


@pytest.mark.parametrize("text", ['{"a": 1}', "[1]", '["\\user"]', ""])
def test_a_damaged_argument_list_is_not_known(text: str, trial: Path) -> None:
    (trial / "argv").write_text(text)
    assert record_in(trial).argv == ()


def test_commands_that_are_none_are_refused_where_they_are_asked_for(trial: Path) -> None:
    (trial / TrialFiles.COMMANDS).write_text("[{}]")
    record = record_in(trial)
    record.check("series")
    with pytest.raises(ParseError, match="cannot be read"):
        record.check("commands")


@pytest.mark.slow
def test_the_file_holds_of_every_trial_what_its_raw_output_says(tmp_path: Path) -> None:
    run = Path(shutil.copytree(SHIPPED / "results" / "tour", tmp_path / "tour"))
    tables.derive(run)
    found = records.read_kept(run, records.made_from(read_as_it_is(run)))
    again = load_run(run, as_it_is=True).all_records
    assert found == {name: replace(record, device=None) for name, record in again.items()}
    filled = {field.name for record in found.values() for field in fields(record) if getattr(record, field.name)}
    assert {"measurements", "around", "memory", "bandwidth", "argv", "before", "files", "detail"} <= filled
    assert all(record.measurements for record in found.values())


def test_a_record_holds_while_parsers_run_line_and_raw_output_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = read_as_it_is(SHIPPED / "results" / "tour")
    name, other = journal.trials[0].trial_id, "0" * 64
    now = records.made_from(journal)

    def made(**changes: Any) -> str:
        return records.made_from(replace(journal, **changes))[name]

    altered = made(raw={**journal.raw, name: other})
    accepted = made(record={**journal.record, chain.ALTERED: [{"raw": {name: other}}]})
    line = made(lines=[journal.lines[0] + b" ", *journal.lines[1:]])
    another = made(record={**journal.record, chain.KEY: other})
    assert accepted == altered
    assert len({now[name], altered, line, another}) == 4
    assert made(lines=[journal.lines[0], *(each + b" " for each in journal.lines[1:])]) == now[name]
    for parsers in ("FIGURES", "RECORDS"):
        with monkeypatch.context() as newer:
            newer.setattr(records, parsers, 99)
            assert made() != now[name], parsers
    assert records.made_from(replace(journal, record={})) == {}


def test_a_file_that_was_written_again_since_it_was_sealed_is_not_believed(tmp_path: Path) -> None:
    ours, others = ({"t0001": TrialRecord(argv=(word,))} for word in ("dd", "other"))
    made = {"t0001": "a digest"}
    derived.write(tmp_path, {}, {records.FILE: records.as_parquet(ours, made)})
    assert records.read_kept(tmp_path, made) == ours
    assert records.read_kept(tmp_path, {"t0001": "another"}) == {}
    (tmp_path / records.FILE).write_bytes(records.as_parquet(others, made))
    assert records.read_kept(tmp_path, made) == {}

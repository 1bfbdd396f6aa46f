"""What is read of a run beside its figures: commands, files, devices; of runs of earlier versions, too."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from mountlab.core import disk
from mountlab.core.errors import ParseError
from mountlab.filesystems.evidence import DeviceBytes, device_traffic
from mountlab.filesystems.making import COMMANDS
from mountlab.results.raw import read_record
from mountlab.results.store import load_run

TOUR = disk.ROOT / "tests" / "data" / "earlier_run"


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
        least = DeviceBytes(min(each.read for each in below), min(each.written for each in below)) if below else None
        assert run.records[row["trial_id"]].device == least


def test_files_that_hold_nothing_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("")
    (tmp_path / "argv").write_text('["dd"]')
    record = read_record(tmp_path, device=None, busy=None)
    assert (record.files, record.argv, record.before) == (("argv",), ("dd",), ())


def test_of_a_trial_without_a_directory_nothing_is_known(tmp_path: Path) -> None:
    record = read_record(tmp_path / "t0001", device=None, busy=0.5)
    assert (record.files, record.argv, record.busy) == ((), (), 0.5)


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    return shutil.copytree(TOUR / "raw" / "t0001", tmp_path / "t0001")


@pytest.mark.parametrize("text", ['{"a": 1}', "[1]", '["\\user"]', ""])
def test_a_damaged_argument_list_is_not_known(text: str, trial: Path) -> None:
    (trial / "argv").write_text(text)
    assert read_record(trial, device=None, busy=None).argv == ()


def test_commands_that_are_none_are_refused(trial: Path) -> None:
    (trial / COMMANDS).write_text("[{}]")
    with pytest.raises(ParseError):
        read_record(trial, device=None, busy=None)

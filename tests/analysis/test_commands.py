"""Commands of trials and mounts, alike where they differ only in what is each one's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from facts import known
from mountlab.analysis.commands import cell_commands, general, general_mountinfo, line, used
from mountlab.analysis.run_view import TrialRecord
from mountlab.core.run_info import RunInfo
from mountlab.core.seeds import derived
from mountlab.filesystems.making import BlockDevice, RanCommand, Setup
from mountlab.fio.seeds import layout_of
from synthetic_run import SyntheticRun, synthetic_run

RUN = synthetic_run()
INFO = RunInfo(run_id="R", facts=known(mount_root="/var/m", output_root="/dev/shm/o"))
UUID = "6d6f756e-746c-6162-0bc0-c7a0692ff00f"


def running(argv_of: Any, before_of: Any = lambda row: ()) -> SyntheticRun:
    """A run whose trials ran what is made of each of them; their seeds are 1000 and their number."""
    trials = RUN.trials.assign(seed=[1000 + seq for seq in RUN.trials.seq])
    rows = trials.to_dict("records")
    records = {row["trial_id"]: TrialRecord(argv=argv_of(row), before=before_of(row)) for row in rows}
    return replace(RUN, trials=trials, records=records, info=INFO)


def test_trials_that_differ_in_places_and_seeds_ran_one_command() -> None:
    def argv(row: Any) -> tuple[str, ...]:
        place = f"/var/m/R/mnt/{row['filesystem']}/{row['trial_id']}"
        own = f"/dev/shm/o/R/{row['trial_id']}"
        return ("dd", f"if={own}.data", f"of={place}/dd.img", f"--output={own}/fio.json", f"--randseed={row['seed']}")

    found = cell_commands(running(argv))
    assert [each.workload.label for each in found] == [workload.label for workload in RUN.sweep.workloads]
    assert {each.argv for each in found} == {
        ("dd", "if={output}.data", "of={directory}/dd.img", "--output={output}/fio.json", "--randseed={seed}")
    }
    assert found[0].trials == dict.fromkeys(("tmpfs", "ramfs", "ext4"), (6, 6))


def test_the_seed_of_what_is_laid_out_is_told_from_that_of_the_trial() -> None:
    before = lambda row: (RanCommand("lay out", ("fio", f"--randseed={layout_of(row['seed'])}")),)  # noqa: E731
    found = cell_commands(running(lambda row: ("fio",), before))
    assert {each.before for each in found} == {(RanCommand("lay out", ("fio", "--randseed={layout_seed}")),)}


def test_a_seed_of_the_sweep_and_the_directory_of_another_trial_stay() -> None:
    argv = ("fio", "--randseed=7", "/x/t9999/file", "--size=1001")
    assert {each.argv for each in cell_commands(running(lambda row: argv))} == {argv}


def test_a_command_that_differs_from_trial_to_trial_is_told_with_how_many_ran_it() -> None:
    found = cell_commands(running(lambda row: ("dd", "late" if row["block"] == 5 else "early")))
    first = [each for each in found if each.workload.label == "dd-write"]
    assert {each.argv[1]: each.trials["ext4"] for each in first} == {"early": (5, 6), "late": (1, 6)}


def setup(device: str, number: str = "7:0") -> Setup:
    mountinfo = f"42 27 {number} / /var/m/R/mnt/x rw - ext4 /dev/{device} rw"
    return Setup("m1", "x", mountinfo, (BlockDevice(number, device),))


@pytest.mark.parametrize("device", ["loop0", "loop1"])
def test_commands_of_mounts_are_alike_but_for_device_identity_and_place(device: str) -> None:
    said = f"mke2fs -U {UUID} /dev/{device} /var/m/R/mnt"
    assert general(said, setup(device), INFO) == "mke2fs -U {uuid} {device} {run}/mnt"


def test_a_device_whose_name_begins_with_the_other_is_another() -> None:
    assert general("/dev/loop10", setup("loop1"), INFO) == "/dev/loop10"


def test_lines_of_mountinfo_are_alike_but_for_numbers_and_device() -> None:
    assert general_mountinfo(setup("loop0"), INFO) == general_mountinfo(setup("loop1", "7:1"), INFO)
    other = replace(setup("loop0"), mountinfo=setup("loop0").mountinfo.replace(" rw - ", " rw,noatime - "))
    assert general_mountinfo(setup("loop0"), INFO) != general_mountinfo(other, INFO)


def test_a_shell_takes_the_words_of_a_line_as_they_were() -> None:
    assert line(["dd", "of={directory}/a b", "{output}/c", "$x", ""]) == "dd 'of={directory}/a b' {output}/c '$x' ''"


def test_placeholders_are_explained_where_they_are_used() -> None:
    assert list(used(["a {seed}", "{directory}"])) == ["{directory}", "{seed}"]
    assert used([f"{derived(1, 'x')}"]) == {}

"""Rounds before the first trial of a workload on a mount: how many, what is kept, and what is said of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from checks.test_checks import found, quiet, the_only
from mountlab.core.errors import BoxTimeout, ParameterError
from mountlab.core.metrics import METRICS
from mountlab.core.model import Measurement, Workload
from mountlab.core.trial_files import TrialFiles
from mountlab.programs.precondition import Rounds, level, read_rounds
from mountlab.runner.sweep_runner import run_sweep
from mountlab.sweep.plan import Plan
from mountlab.sweep.plan_text import plan_text
from mountlab.sweep.planner import make_plan
from rows import every_row
from runner.test_sweep_runner import FACTS, LOCAL, Memory, ScriptedBox, archive
from sweeps import DD_WRITE, TMPFS, Silent, sweep

FLAT = (100.0, 101.0, 99.0, 100.0, 100.5)
FALLING = (200.0, 150.0, 120.0, 101.0, 100.0, 99.0, 100.0, 100.5)


def planned(precondition: Any = 25, **design: Any) -> Plan:
    workloads = {"w": {**DD_WRITE, "precondition": precondition}}
    resolved = sweep(filesystems={"tmpfs": TMPFS}, workloads=workloads, design={"repeats": 2, **design})
    return make_plan(resolved.sweep, LOCAL, FACTS, run_id="R", owner="me", seed=1)


class Slowing(ScriptedBox):
    """A box whose dd takes, one trial after the other, so long; at the end always as long."""

    def __init__(self, seconds: list[float], **script: Any) -> None:
        super().__init__(**script)
        self.seconds = seconds

    def output(self, name: str) -> bytes:  # type: ignore[override]
        if name != "trial":
            return super().output(name)
        took = self.seconds.pop(0) if len(self.seconds) > 1 else self.seconds[0]
        summary = f"8+0 records in\n8+0 records out\n8388608 bytes (8.4 MB, 8.0 MiB) copied, {took} s, 839 MB/s\n"
        return archive({"exit_status": b"0\n", "stdout": b"", "stderr": summary.encode()})


def rounds_in(journal: Memory) -> dict[str, Rounds]:
    found = {trial_id: files.get(TrialFiles.ROUNDS) for trial_id, files in journal.files.items()}
    return {trial_id: read_rounds(text.decode()) for trial_id, text in found.items() if text}


# --- the rule ---------------------------------------------------------------------------------------------------------


def test_rounds_end_when_the_last_five_are_steady_or_when_there_are_enough() -> None:
    assert not Rounds(25, FLAT[:4]).done
    assert Rounds(25, FLAT).done
    assert not Rounds(25, FALLING[:5]).done
    assert Rounds(25, FALLING).done
    assert Rounds(5, FALLING[:5]).done, "as many as there may be"
    assert Rounds(25, (), failed="dd failed").done


def test_what_is_kept_of_rounds_can_be_read_back() -> None:
    rounds = Rounds(25, FALLING, "x")
    assert read_rounds(rounds.text()) == rounds
    assert '"steady": true' in Rounds(25, FLAT).text()
    with pytest.raises(ValueError, match="Expecting value"):
        read_rounds("no JSON")


def test_the_level_of_a_round_is_the_geometric_mean_of_what_the_answer_is_about() -> None:
    both = Workload(name="w", tool="fio", options={"rw": "randrw", "size": 4096, "bs": 4096, "numjobs": 1})
    rows = [
        Measurement(metric=metric, value=value, unit=METRICS[metric])
        for metric, value in (("read_bandwidth", 4.0), ("write_bandwidth", 9.0), ("elapsed", 5.0))
    ]
    assert level(both, rows) == pytest.approx(6.0)
    assert level(both, rows[2:]) == 0.0


# --- in a run ---------------------------------------------------------------------------------------------------------


def test_a_steady_workload_takes_five_rounds_before_each_new_mount_and_only_trials_are_recorded() -> None:
    box, journal = Slowing([0.01]), Memory()
    run_sweep(planned(), box, journal, Silent())
    assert box.calls.count("trial") == 2 * (5 + 1)
    assert [trial.status for trial in journal.trials] == ["ok", "ok"]
    assert {key: len(rounds.levels) for key, rounds in rounds_in(journal).items()} == {"t0001": 5, "t0002": 5}


def test_a_mount_that_lasts_is_preconditioned_once() -> None:
    box, journal = Slowing([0.01]), Memory()
    run_sweep(planned(fresh_filesystem="never"), box, journal, Silent())
    assert box.calls.count("trial") == 5 + 2
    assert list(rounds_in(journal)) == ["t0001"]


def test_a_device_that_slows_down_takes_more_rounds_until_it_is_steady() -> None:
    box, journal = Slowing([0.005, 0.0066, 0.0083, 0.0099, 0.01]), Memory()
    run_sweep(planned(fresh_filesystem="never", repeats=1), box, journal, Silent())
    rounds = rounds_in(journal)["t0001"]
    assert len(rounds.levels) == 8
    assert rounds.steady.ok
    assert rounds.levels[0] == pytest.approx(8388608 / 0.005)


def test_rounds_are_bounded() -> None:
    box, journal = Slowing([0.01 * 1.1**i for i in range(60)]), Memory()
    run_sweep(planned(7, repeats=1), box, journal, Silent())
    assert box.calls.count("trial") == 7 + 1
    assert not rounds_in(journal)["t0001"].steady.ok


def test_a_round_that_fails_ends_them_and_the_trial_is_run_all_the_same() -> None:
    box, journal = Slowing([0.01], trial=[0, BoxTimeout("no answer for 180 s")]), Memory()
    run_sweep(planned(repeats=1), box, journal, Silent())
    assert box.calls.count("trial") == 3
    assert rounds_in(journal)["t0001"].failed.startswith("ran longer than 180 s in all")
    assert journal.trials[0].status == "ok"


def test_a_stop_during_the_rounds_undoes_everything() -> None:
    box, journal = Slowing([0.01], trial=[0, KeyboardInterrupt()]), Memory()
    with pytest.raises(KeyboardInterrupt):
        run_sweep(planned(), box, journal, Silent())
    assert box.calls[-4:] == ["kill", "umount", "rmdir", "close"]
    assert journal.trials == []


# --- in the sweep and the plan ----------------------------------------------------------------------------------------


@every_row("wrong", [4, -1, 1001, True, "25", 5.5, [25]])
def test_what_is_no_number_of_rounds_is_refused(wrong: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        planned(wrong)
    assert (caught.value.what, caught.value.got) == ("not a number of rounds", repr(wrong))
    assert caught.value.where.endswith("workloads.w.precondition")
    assert caught.value.allowed == "5 to 1000: at most so many; the rule looks at the last 5"


def test_without_the_key_nothing_is_run_first() -> None:
    box = ScriptedBox()
    plan = planned(0)
    run_sweep(plan, box, Memory(), Silent())
    assert box.calls.count("trial") == 2
    assert "rounds of it" not in plan_text(plan, FACTS)


def test_the_plan_says_so_and_counts_the_time_of_the_fewest_rounds() -> None:
    assert "    first    up to 25 rounds of it on each new mount, until the last 5 are steady\n" in (
        plan_text(planned(), FACTS)
    )
    assert planned().trials[0].expected_s == pytest.approx(6 * planned(0).trials[0].expected_s)


# --- the caveat -------------------------------------------------------------------------------------------------------


def test_rounds_that_never_were_steady_are_told() -> None:
    evidence = quiet(preconditioned={"t0001": Rounds(8, FALLING[:4] * 2), "t0002": Rounds(25, FLAT)})
    caveat = the_only("not-steady", evidence)
    assert (caveat.severity, caveat.subject) == ("warning", "ext4/r")
    assert (
        "in 1 of its 2 trials (t0001) the rounds before it were not steady after 8 of at most 8 (the" in caveat.message
    )
    failed = replace(evidence, preconditioned={"t0001": Rounds(8, FLAT[:2], failed="dd: no space")})
    assert "after 2 of at most 8, and then one failed: dd: no space" in the_only("not-steady", failed).message


def test_rounds_that_were_steady_are_not() -> None:
    assert found("not-steady", quiet(preconditioned={"t0001": Rounds(25, FALLING)})) == []

"""Which file system for which workload: ranks with their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mountlab.analysis.ranks import Rank, choice_sentences, condition_sentences, rank_frame, ranks
from mountlab.analysis.sweep_comparisons import comparisons
from mountlab.core.errors import InputError
from mountlab.core.model import Filesystem, Workload
from repetition import few_then_many
from scipy import stats
from state_runs import state_run, state_sweep
from synthetic_run import SyntheticRun, synthetic_run

WORKLOAD = "dd-write"


def run_of(means: dict[str, float], *, spread: float = 0.005, blocks: int = 6, seed: int = 1) -> Any:
    """The synthetic run, with file systems that write at the given means and nothing else measured."""
    base: SyntheticRun = synthetic_run()
    workload = Workload(name=WORKLOAD, tool="dd", options={"direction": "write"})
    filesystems = tuple(Filesystem(name=name, type="tmpfs") for name in means)
    sweep = replace(base.sweep, filesystems=filesystems, workloads=(workload,), baseline=next(iter(means)))
    rng = np.random.default_rng(seed)
    rows = [
        {
            "trial_id": f"{name}{block}",
            "block": block,
            "warmup": False,
            "cell": f"{name}/{WORKLOAD}",
            "tool": "dd",
            "filesystem": name,
            "workload": WORKLOAD,
            "factors": {},
            "metric": "write_bandwidth",
            "label": "",
            "unit": "B/s",
            "value": mean * rng.lognormal(0, spread),
        }
        for block in range(1, blocks + 1)
        for name, mean in means.items()
    ]
    base.sweep, base.measurements = sweep, pd.DataFrame(rows)
    base.comparisons = comparisons(sweep, base.measurements)
    return base


def places(run: Any) -> dict[str, tuple[int, int]]:
    return {rank.filesystem: (rank.first, rank.last) for rank in ranks(run)}


def test_what_is_clearly_apart_has_one_place_each() -> None:
    assert places(run_of({"a": 1e8, "b": 3e8, "c": 2e8})) == {"b": (1, 1), "c": (2, 2), "a": (3, 3)}


def test_what_cannot_be_told_apart_shares_places() -> None:
    found = places(run_of({"a": 1e8, "b": 3e8, "c": 3.0001e8}, spread=0.02))
    assert found == {"b": (1, 2), "c": (1, 2), "a": (3, 3)}


def test_no_rank_contradicts_a_verdict_of_the_run() -> None:
    """Ratios of 3 % at a spread of 2 %: a verdict of the run, at its level, need not hold at that of all pairs."""
    decided = 0
    for seed in range(8):
        run = run_of({"a": 1e8, "b": 1.03e8, "c": 0.97e8, "d": 1.02e8}, spread=0.02, seed=seed)
        found = places(run)
        for each in run.comparisons:
            names = (each.candidate, each.baseline)
            if each.verdict in ("faster", "slower"):
                decided += 1
                better, worse = names if each.verdict == "faster" else names[::-1]
                assert found[worse][0] > 1, (seed, each)
                assert found[better][1] < 4, (seed, each)
    assert decided > 5


def test_every_pair_counts_and_not_only_those_with_the_baseline() -> None:
    """b and c both beat the baseline a; that c beats b shows only when they are compared with each other. By hand: a
    paired t test of each pair at a level that Bonferroni's rule makes hold for all of them."""
    run = run_of({"a": 1e8, "b": 2e8, "c": 2.2e8, "d": 2.21e8}, spread=0.02, blocks=8)
    logs = np.log(run.measurements.pivot_table(index="block", columns="filesystem", values="value"))
    found = places(run)
    for one, two in combinations("abcd", 2):
        p = stats.ttest_rel(logs[one], logs[two]).pvalue
        if p < 0.05 / 6:
            worse, better = (one, two) if logs[one].mean() < logs[two].mean() else (two, one)
            assert found[better][0] < found[worse][0] or found[better][1] < found[worse][1]
    assert found["a"] == (4, 4)
    assert found["c"][0] == found["d"][0] == 1


@pytest.mark.slow
@pytest.mark.parametrize(("sweeps", "most"), few_then_many((5, 2), (15, 4)))
def test_identical_file_systems_are_rarely_ranked(sweeps: int, most: int) -> None:
    """The error is held over the pairs with the baseline, and over the others: at most about one in ten sweeps ranks
    what is the same."""
    wrong = 0
    for seed in range(sweeps):
        found = places(run_of(dict.fromkeys("abcd", 1e8), spread=0.05, blocks=5, seed=seed))
        wrong += any(place != (1, 4) for place in found.values())
    assert wrong <= most, "binomial(15, 0.1) exceeds 4 once in 79 times, binomial(5, 0.1) 2 once in 117; seeded"


def test_sentences_and_the_table() -> None:
    own = [
        Rank("w", "write_bandwidth", "", "a", 1, 1, 3),
        Rank("w", "write_bandwidth", "", "b", 2, 3, 3),
        Rank("w", "write_bandwidth", "", "c", 2, 3, 3),
        Rank("r", "read_bandwidth", "", "a", 1, 2, 3),
        Rank("r", "read_bandwidth", "", "b", 1, 2, 3),
        Rank("r", "read_bandwidth", "", "c", 3, 3, 3),
    ]
    assert choice_sentences(own) == [
        "For write bandwidth under w a is the best; b has place 2 to 3 and c has place 2 to 3 of 3.",
        "For read bandwidth under r a and b are not distinguishable at the top; c has place 3 of 3.",
        "a is never shown to be slower than another.",
    ]
    frame = rank_frame(own)
    assert frame.loc[("w", "write bandwidth"), "b"] == "2 to 3"
    open_ = [Rank("w", "write_bandwidth", "", name, 1, 2, 2) for name in "ab"]
    assert choice_sentences(open_) == ["For write bandwidth under w nothing is shown to be better than anything else."]
    crossed = [
        Rank(w, "write_bandwidth", "", fs, place, place, 2)
        for w, places in (("w", "ab"), ("v", "ba"))
        for place, fs in enumerate(places, start=1)
    ]
    assert choice_sentences(crossed)[-1].startswith("No file system is best everywhere")


def in_states(**firsts: Sequence[str]) -> list[str]:
    """The sentences of a run of two file systems; state to those that may be the best there."""
    levels = [{"state": state, "bs": "4KiB"} for state in firsts]
    run = state_run(
        state_sweep(levels), dict.fromkeys([f"{fs} {s} 4KiB" for fs in ("ext4", "btrfs") for s in firsts], 1.0)
    )
    found = [
        Rank(f"app state={state} bs=4KiB", "write_iops", "", fs, 1 if fs in names else 2, 2, 2)
        for state, names in firsts.items()
        for fs in ("ext4", "btrfs")
    ]
    return condition_sentences(run, found)


def test_where_the_best_depends_on_the_state() -> None:
    assert in_states(fresh=["btrfs"], aged=["ext4"], full=["btrfs"]) == [
        "For write IOPS under app bs=4KiB the best depends on the state: btrfs in state fresh and in state full; "
        "ext4 in state aged."
    ]
    (none,) = in_states(fresh=["btrfs"], aged=["btrfs", "ext4"])
    assert none == "That another file system is the best in another state, or beside a neighbour, is not shown."
    assert in_states(fresh=["btrfs"]) == []


def test_what_cannot_be_ranked_is_refused() -> None:
    with pytest.raises(InputError, match="no such workload"):
        ranks(run_of({"a": 1e8, "b": 2e8}), workloads=["absent"])
    with pytest.raises(InputError, match="nothing to choose from"):
        ranks(run_of({"a": 1e8}))

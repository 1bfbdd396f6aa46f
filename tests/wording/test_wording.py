"""Numbers and sentences of the reports, as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mountlab.core import names, numbers
from mountlab.core.cell_stop import CellStop, StopReason
from mountlab.core.findings import (
    COMPARISON_COLUMNS,
    Caveat,
    Comparison,
    Interval,
    NoiseSource,
    OptionState,
    PublishedFigure,
)
from mountlab.core.metrics import METRICS
from mountlab.core.model import Until
from mountlab.runner import progress
from mountlab.stats import WELCH_METHOD
from mountlab.sweep import plan_text
from mountlab.wording import caveats, phrases, verdicts
from rows import every_row
from synthetic_run import comparison, synthetic_run

NAN = math.nan
finite = st.floats(min_value=1e-9, max_value=1e12)


def sentence(doubts: Sequence[str] = (), **changes: Any) -> str:
    return verdicts.comparison_sentence(comparison(**changes), smallest_effect=0.02, doubts=doubts)


# --- numbers ----------------------------------------------------------------------------------------------------------


@every_row(
    ("value", "low", "high", "text"),
    [
        (6.9, 6.5, 7.3, "6.9 [6.5, 7.3]"),
        (1.0031, 0.9951, 1.0111, "1.003 [0.995, 1.011]"),
        (0.1451, 0.1392, 0.1511, "0.145 [0.139, 0.151]"),
        (46.2, 44.1, 48.4, "46 [44, 48]"),
        (151.2, 140.0, 163.0, "151 [140, 163]"),
        (6.9, NAN, NAN, "6.9"),
        (NAN, NAN, NAN, "n/a"),
        (2.18, 6.9e-06, 688743.3, "2.2 [<0.1, 690\u202f000]"),
        (math.inf, math.inf, math.inf, "∞ [∞, ∞]"),
        (6.9, 0.0, math.inf, "6.9"),
        # An end is never rounded onto 1, and has no noise.
        (27.0, 1.0 + 1e-15, 782.0, "27 [>1, 782]"),
        (0.64, 0.43, 1.0 - 1e-15, "0.64 [0.43, <1.00]"),
        (0.64, 0.43, 1.0, "0.64 [0.43, 1.00]"),
        (4.2, 1.02, 17.0, "4.2 [1.02, 17.0]"),
        (27.0, 1.0004, 782.0, "27 [1.0004, 782]"),
        (0.64, 0.43, 0.9996, "0.64 [0.43, 0.9996]"),
        (75.0, 0.3, 6.9e37, "75 [<1, >1\u202f000\u202f000]"),
    ],
)
def test_ratios_have_the_digits_of_their_interval(value: float, low: float, high: float, text: str) -> None:
    assert str(numbers.ratio_figures(value, low, high)) == text


@every_row(
    ("mean", "low", "high", "factor", "text"),
    [
        (2.7e9, 2.61e9, 2.79e9, 1e9, "2.70 [2.61, 2.79]"),
        (2.7123e9, 2.7093e9, 2.7153e9, 1e9, "2.712 [2.709, 2.715]"),
        (598e6, 590e6, 606e6, 1e6, "598 [590, 606]"),
        (1234567.0, 1200000.0, 1270000.0, 1.0, "1\u202f234\u202f567 [1\u202f200\u202f000, 1\u202f270\u202f000]"),
        (1.89, -15.73, 19.51, 1.0, "1.89 [\u221215.73, 19.51]"),
        (0.0, 0.0, 0.0, 1.0, "0 [0, 0]"),
    ],
)
def test_means_have_three_digits_or_more(mean: float, low: float, high: float, factor: float, text: str) -> None:
    assert str(numbers.mean_figures(mean, low, high, factor=factor)) == text


@given(value=finite, below=st.floats(0, 0.99), above=st.floats(0, 10))
def test_value_and_interval_share_their_decimals(value: float, below: float, above: float) -> None:
    """But for an end that these decimals would show as 1, and a value that they would show beyond it."""
    low, high = value * (1 - below), value * (1 + above)
    figures = numbers.ratio_figures(value, low, high)
    shown = {len(text.lstrip("<>").partition(".")[2]) for text in (figures.value, figures.low, figures.high)}
    at_one = any(end != 1 and numbers.number(end, min(shown)) == numbers.number(1, min(shown)) for end in (low, high))
    assert len(shown) == 1 or at_one


@given(value=st.floats(0.5, 2), below=st.floats(0, 0.99), above=st.floats(0, 10))
@example(value=1.04, below=0.02, above=0.83)
@example(value=0.97, below=0.5, above=0.02)
@example(value=1.03125, below=0.0, above=0.0)
def test_a_ratio_is_shown_inside_of_its_interval(value: float, below: float, above: float) -> None:
    figures = numbers.ratio_figures(value, value * (1 - below), value * (1 + above))
    low, shown, high = (float(text.lstrip("<>")) for text in (figures.low, figures.value, figures.high))
    assert low <= shown <= high


@given(value=finite)
def test_a_shown_ratio_is_near_the_real_one(value: float) -> None:
    shown = float(numbers.ratio_figures(value, NAN, NAN).value.replace(numbers.THIN_SPACE, ""))
    assert shown == pytest.approx(value, rel=0.051)


def test_numbers_as_people_read_them() -> None:
    percents = [(0.02, "2 %"), (0.95, "95 %"), (0.0123, "1.2 %"), (0.005, "0.5 %"), (0.12, "12 %"), (0.0, "0 %")]
    assert [numbers.percent(share).replace("\u00a0", " ") for share, _ in percents] == [text for _, text in percents]
    times = {48.0: "48.0 s", 132: "2 min 12 s", 11400: "3 h 10 min", 7200: "2 h", NAN: "n/a"}
    assert [numbers.duration_text(seconds) for seconds in times] == list(times.values())
    p_values = {0.0123: "0.012", 0.5: "0.50", 1.0: "1.0", 3e-7: "<0.0001", 0.0: "<0.0001"}
    assert [numbers.p_text(p) for p in p_values] == list(p_values.values())
    rounded = {-0.001: "0.00", 0.0: "0.00", -0.006: "\u22120.01"}
    assert [numbers.number(value, 2) for value in rounded] == list(rounded.values()), "0 has no sign"
    quantities = [(598e6, "B/s", "598 MB/s"), (46574.176, "1/s", "46.6 k/s"), (12.0, "furlongs", "12.0 furlongs")]
    for value, unit, text in quantities:
        assert numbers.quantity(value, unit).replace("\u00a0", " ") == text
    assert [numbers.listed(parts) for parts in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
    assert [numbers.counted(n, "block") for n in (0, 1, 2)] == ["0 blocks", "1 block", "2 blocks"]


def test_decimals_are_aligned_by_filling_up() -> None:
    texts = numbers.align_decimals(["60.1", "9000", "0.25", "n/a"])
    spaces = numbers.FIGURE_SPACE + numbers.PUNCTUATION_SPACE
    assert [text.rstrip(spaces) for text in texts] == ["60.1", "9000", "0.25", "n/a"]
    widths = {len(text) - len(text.partition(".")[0].rstrip(spaces)) for text in texts}
    assert widths == {3}, "a point and two digits, or the spaces for them"
    assert numbers.align_decimals(["5", "12"]) == ["5", "12"]
    assert numbers.align_decimals([]) == []


# --- names ------------------------------------------------------------------------------------------------------------


def test_every_metric_has_words_that_make_a_sentence() -> None:
    assert set(names.METRIC_WORDS) == set(METRICS)
    for metric in METRICS:
        text = sentence(metric=metric)
        assert all(part in text for part in ("tmpfs", "6.9 times [6.5, 7.3]", "ext4")), text
        assert "{" not in text


def test_a_workload_is_named_with_its_factors_once() -> None:
    assert names.workload_label("fio", {"rw": "read", "bs": "4KiB"}) == "fio rw=read bs=4KiB"
    assert names.workload_label("fio rw=read", {"rw": "read"}) == "fio rw=read"
    assert names.workload_label("dd-write", {}) == "dd-write"


# --- one comparison ---------------------------------------------------------------------------------------------------


@every_row(
    ("changes", "text"),
    [
        ({}, "tmpfs writes 6.9 times [6.5, 7.3] as fast as ext4 under dd-write: faster; n = 5 blocks."),
        (
            {"ratio": 0.5, "low": 0.48, "high": 0.52, "verdict": "slower"},
            "tmpfs writes at 0.50 [0.48, 0.52] of ext4's speed under dd-write: slower; n = 5 blocks.",
        ),
        (
            {"ratio": 1.003, "low": 0.995, "high": 1.011, "verdict": "same"},
            "tmpfs and ext4 have the same write bandwidth within 2\u00a0% under dd-write: ratio 1.003 [0.995, 1.011]; "
            "n = 5 blocks.",
        ),
        (
            {"ratio": 1.04, "low": 0.93, "high": 1.16, "verdict": "undecided"},
            "Undecided: whether the write bandwidth of tmpfs differs from that of ext4 under dd-write; ratio 1.04 "
            "[0.93, 1.16]; n = 5 blocks.",
        ),
        (
            {"metric": "read_latency_p99", "ratio": 0.145, "low": 0.139, "high": 0.151, "factors": {"rw": "read"}},
            "tmpfs has 0.145 times [0.139, 0.151] the 99th-percentile read "
            "completion latency of ext4 under dd-write rw=read: "
            "faster, as less is better; n = 5 blocks.",
        ),
        (
            {"low": NAN, "high": NAN, "n": 1, "verdict": "undecided"},
            "tmpfs writes 6.9 times as fast as ext4 under dd-write; n = 1 block, so there is no interval and no "
            "verdict.",
        ),
        (
            {"ratio": NAN, "low": NAN, "high": NAN, "n": 0, "verdict": "undecided"},
            "No block holds the write bandwidth of both tmpfs and ext4 under dd-write, so they cannot be compared.",
        ),
        (
            {"doubts": ["cache-served", "too-few"], "candidate": "fs{0}{times}"},
            "fs{0}{times} writes 6.9 times [6.5, 7.3] as fast as ext4 under dd-write: faster; n = 5 blocks. Doubtful: "
            "cache served and too few trials (see the caveats).",
        ),
        (
            {"method": WELCH_METHOD},
            "tmpfs writes 6.9 times [6.5, 7.3] as fast as ext4 under dd-write: faster; n = 5 on the side with fewer "
            "trials.",
        ),
        (
            {"verdict": "undecided", "needed": 23},
            "Undecided: whether the write bandwidth of tmpfs differs from that of ext4 under dd-write; ratio 6.9 [6.5, "
            "7.3]; n = 5 blocks; up to 23 blocks needed.",
        ),
    ],
)
def test_a_comparison_as_a_sentence(changes: dict[str, Any], text: str) -> None:
    assert sentence(**changes) == text


# --- many comparisons ------------------------------------------------------------------------------------------------


def summary(*comparisons: Any) -> str:
    return verdicts.summary(comparisons, 0.02)


def test_the_strongest_effect_comes_first_and_undecided_last() -> None:
    ordered = verdicts.strongest_first(
        [
            comparison(candidate="a", ratio=9.0, low=0.5, high=160.0, verdict="undecided"),
            comparison(candidate="b", ratio=2.0, low=1.9, high=2.1),
            comparison(candidate="c", ratio=1.0, low=0.99, high=1.01, verdict="same"),
            comparison(candidate="d", ratio=0.1, low=0.09, high=0.11, verdict="slower"),
        ]
    )
    assert [one.candidate for one in ordered] == ["d", "b", "c", "a"]


def test_many_comparisons_are_summed_up() -> None:
    run = synthetic_run()
    assert summary(*[c for c in run.comparisons if "bandwidth" in c.metric]) == (
        "Against ext4, in all: tmpfs and ramfs are each faster in 6 and undecided in 1 (dd-read cache=warm) "
        "of 7 comparisons."
    )


def test_a_summary_does_not_hide_a_loss() -> None:
    wins = [comparison(workload=f"w{i}", ratio=5.0 + i, low=4.5 + i, high=5.5 + i) for i in range(8)]
    loss = comparison(workload="lost", ratio=0.9, low=0.88, high=0.92, verdict="slower")
    assert summary(*wins, loss) == (
        "Against ext4, in all: tmpfs is faster in 8 and slower in 1 (lost) of 9 comparisons."
    )


def test_what_one_side_has_no_figure_for_is_counted_nowhere() -> None:
    """pg_test_fsync gives no figure for a method that a file system cannot do: no block has both sides."""
    nan = {"ratio": math.nan, "low": math.nan, "high": math.nan, "verdict": "undecided", "n": 0}
    wins = [comparison(workload=f"w{i}", ratio=5.0 + i, low=4.5 + i, high=5.5 + i) for i in range(8)]
    without = [comparison(workload=f"x{i}", **nan) for i in range(9)]
    assert summary(*wins, *without) == "Against ext4, in all: tmpfs is faster in all 8 comparisons."
    open_ = [comparison(workload=f"w{i}", low=0.5, high=90.0, verdict="undecided", n=2) for i in range(7)]
    assert summary(*open_, without[0]) == (
        "Nothing is shown to be faster or slower than ext4, in 7 comparisons; n = 2 blocks."
    )


def test_the_finding_of_a_plot() -> None:
    texts: dict[Any, str] = {
        "faster": "The largest effect: tmpfs writes 6.9 times [6.5, 7.3] as fast as ext4 under dd-write",
        "same": "All are the same as ext4 within 2\u00a0%",
        "undecided": "Nothing is shown to be faster or slower than ext4",
    }
    for verdict, text in texts.items():
        assert verdicts.finding([comparison(verdict=verdict)], 0.02) == text


def test_a_doubtful_extreme_is_no_finding() -> None:
    weak, sound = comparison(ratio=90.0), comparison(workload="dd-read", ratio=2.0, low=1.8, high=2.2)
    doubts = caveats.doubts_by_cell([caveat("noisy-box", "warning", "tmpfs/dd-write")])
    assert verdicts.finding([weak, sound], 0.02, doubts) == (
        "The largest effect that is not doubtful: tmpfs writes 2.0 times [1.8, 2.2] as fast as ext4 under dd-read"
    )
    assert verdicts.finding([weak], 0.02, doubts) == "1 of 1 comparison shows a difference, but it is doubtful"
    unusable = comparison(verdict="not usable")
    assert verdicts.finding([unusable], 0.02, doubts) == "Nothing is shown to be faster or slower than ext4"


# --- published figures ------------------------------------------------------------------------------------------------


def published(**changes: Any) -> PublishedFigure:
    values: dict[str, Any] = {
        "study": "A", "source": "an article", "what": "write", "workload": "dd-write", "factors": {}, "unit": "B/s",
        "metric": "write_bandwidth", "candidate": "tmpfs", "baseline": "ext4",
        "candidate_value": 598e6, "baseline_value": 54e6,
    }  # fmt: skip
    return PublishedFigure(**{**values, **changes})


def test_ours_is_found_beside_a_published_figure() -> None:
    ours = [
        comparison(metric="read_bandwidth"),
        comparison(),
        comparison(workload="fio", factors={"rw": "read", "bs": "4KiB"}),
    ]
    assert verdicts.ours_beside(published(), ours) is ours[1]
    by_rw = published(workload="fio", factors={"rw": "read"})
    assert verdicts.ours_beside(by_rw, ours) is ours[2], "factors that were not published may have any level"
    assert verdicts.ours_beside(published(workload="fio", factors={"rw": "write"}), ours) is None
    assert verdicts.ours_beside(published(metric="sync_rate"), ours) is None
    rows = [comparison(metric="sync_rate", label=label) for label in ("fsync", "fdatasync")]
    assert verdicts.ours_beside(published(metric="sync_rate", label="fdatasync"), rows) is rows[1]
    assert verdicts.ours_beside(published(metric="sync_rate"), rows) is None
    assert verdicts.ours_beside(published(candidate="ramfs"), ours) is None


def test_how_published_ratios_point() -> None:
    pairs = [
        (published(), comparison()),
        (published(), comparison(ratio=0.5, verdict="slower")),
        (published(), comparison(verdict="undecided")),
        (published(), None),
    ]
    assert verdicts.published_sentence(pairs) == (
        "Of 3 published ratios, 1 points the same way as ours, 1 points the other way and for 1 ours is undecided."
    )
    assert verdicts.published_sentence(pairs[3:]) == "None of the published ratios was measured in this run."


# --- options ----------------------------------------------------------------------------------------------------------


def test_every_state_of_an_option_has_its_word_and_a_sign() -> None:
    assert set(phrases.OPTION_STATES) == set(get_args(OptionState))
    assert all(f" {state}" in text or f", but {state}" in text for state, text in phrases.OPTION_STATES.items())


# --- caveats ----------------------------------------------------------------------------------------------------------


def caveat(code: str, severity: Any, subject: str = "", scope: Any = "cell") -> Caveat:
    return Caveat(code=code, severity=severity, message=f"about {subject}", scope=scope, subject=subject)


def test_caveats_are_grouped_worst_first() -> None:
    of_cells = [caveat("too-short", "note", "a/x"), caveat("noisy", "warning", "a/x")]
    of_cells += [caveat("failed-trials", "error", "b/x"), caveat("noisy", "warning", "b/x")]
    groups = caveats.grouped([*of_cells, caveat("busy", "warning", scope="run")])
    headings = ["Failed trials (1 cell)", "Noisy (2 cells)", "Busy", "Trials too short (1 cell)"]
    assert [group.heading for group in groups] == headings
    assert caveats.caveat_line(groups) == (
        "Do not use: Failed trials (1 cell): about b/x. Doubt: Noisy (2 cells), Busy. 1 note."
    )


def test_a_kind_of_caveat_counts_once_for_each_severity() -> None:
    codes = [("warning", "noisy"), ("warning", "noisy"), ("note", "noisy"), ("warning", "busy")]
    assert caveats.caveat_counts(codes) == {"error": 0, "warning": 2, "note": 1}
    assert caveats.caveat_counts([]) == {"error": 0, "warning": 0, "note": 0}


@every_row(
    ("message", "seen"),
    [
        ("n = 4: too few. Set repeats to 5 or more.", "n = 4: too few"),
        (
            "the device delivered 3% of the bytes read. This is not its speed.",
            "the device delivered 3% of the bytes read",
        ),
        ("it took 1.5 s; run longer", "it took 1.5 s"),
        ("one\n  line", "one line"),
        ("word " * 40, ""),
    ],
)
def test_what_was_seen_is_the_first_sentence_where_it_fits_into_a_line(message: str, seen: str) -> None:
    (group,) = caveats.grouped([Caveat(code="c", severity="warning", scope="run", message=message)])
    assert group.seen == seen
    assert group.heading == "C", "the run is no subject to be counted"


def differing(*messages: str) -> list[str]:
    told = [Caveat(code="c", severity="note", scope="cell", subject=str(i), message=m) for i, m in enumerate(messages)]
    (group,) = caveats.grouped(told)
    assert [subject for subject, _ in group.differing] == [str(i) for i in range(len(messages))]
    return [seen for _, seen in group.differing]


def test_what_differs_from_cell_to_cell_is_told_with_its_units() -> None:
    assert differing(
        "in 5 of its 5 trials (t0035, t0059, ...) the device moved up to 2,020 MB/s, more than 281 MB/s. Move more.",
        "in 1 of its 5 trials (t0067) the device moved up to 645 MB/s, more than 281 MB/s. Move more.",
    ) == ["in 5 · trials t0035, t0059 · up to 2,020 MB/s", "in 1 · trials t0067 · up to 645 MB/s"]


def test_messages_that_differ_in_their_order_only_are_told_whole() -> None:
    assert differing("1 2", "2 1") == ["1 2", "2 1"]


@given(st.lists(st.text("ab,. ", min_size=1).filter(str.strip), min_size=2, max_size=4))
def test_what_differs_tells_different_messages_apart(messages: list[str]) -> None:
    plain, seen = [" ".join(message.split()) for message in messages], differing(*messages)
    assert [[one == other for other in seen] for one in seen] == [[one == other for other in plain] for one in plain]


def test_only_the_first_reasons_to_doubt_are_told_in_the_line() -> None:
    groups = caveats.grouped([caveat(code, "warning", "a/x") for code in ("one", "two", "three")])
    line = caveats.caveat_line(groups)
    assert line == "Doubt: One (1 cell): about a/x; Two (1 cell); Three (1 cell)."


def test_notes_do_not_weaken_a_number_nor_does_a_doubt_about_reads_weaken_writes() -> None:
    noisy, note = caveat("noisy", "warning", "a/x"), caveat("too-short", "note", "a/x")
    of_filesystem = caveat("size-not-enforced", "warning", "a", scope="filesystem")
    doubts = caveats.doubts_by_cell([noisy, noisy, note, of_filesystem])
    assert {cell: codes for cell, codes in doubts.items() if "\t" not in cell} == {"a/x": ["noisy"]}
    reads = Caveat(code="cache-served", severity="warning", message="", scope="cell", subject="a/x", metrics="read_")
    doubts = caveats.doubts_by_cell([reads, caveat("too-few", "warning", "a/x")])
    assert doubts[caveats.doubt_key("a/x", "read_latency_p99")] == ["cache-served", "too-few"]
    assert doubts[caveats.doubt_key("a/x", "write_bandwidth")] == ["too-few"]


def test_why_nothing_is_compared() -> None:
    assert verdicts.nothing_compared("ext4", 1).startswith("There is one file system only")
    assert verdicts.nothing_compared(None, 2).startswith("No baseline is named")
    assert verdicts.nothing_compared("ext4", 2) == "Nothing can be compared: no trial succeeded."


# --- stopping ---------------------------------------------------------------------------------------------------------


def stop(reason: StopReason, cell: str = "tmpfs/fio rw=read", **more: Any) -> CellStop:
    return CellStop(cell=cell, reason=reason, blocks=7, n=7, half_width=0.028, metric="read_bandwidth", **more)


@pytest.mark.parametrize(
    ("until", "text"),
    [
        (Until(half_width=0.03), "until every mean is within ± 3 % at 95 %, 5 to 40 blocks"),
        (
            Until(half_width=0.025, confidence=0.9, min=3, max=9, budget_s=5400.0, of="comparisons"),
            "until every ratio is within ± 2.5 %, all together at 90 %, 3 to 9 blocks, at most 1 h 30 min",
        ),
    ],
)
def test_a_rule_is_told_with_its_limits(until: Until, text: str) -> None:
    assert plan_text.rule_text(until).replace("\u00a0", " ") == text


def test_why_a_cell_has_no_more_trials_is_one_line() -> None:
    texts: dict[StopReason, str] = {
        "precise": "precise after 7 blocks",
        "max reached": "not precise after 7 blocks, the most that may be",
        "budget": "out of time after 7 blocks",
        "not finished": "not finished, 7 blocks so far",
        "could not": "given up after 7 blocks, too few figures",
    }
    assert {reason: phrases.stop_text(stop(reason)) for reason in get_args(StopReason)} == texts
    failed = stop("could not", why="dd failed with exit status 1\n  it said:\n    | no space")
    assert phrases.stop_text(failed) == f"{texts['could not']}: dd failed with exit status 1 (no space)"


def test_those_that_leave_a_workload_together_are_told_in_one_line() -> None:
    left = [stop("precise"), stop("precise", "ext4/fio rw=read"), stop("budget", "ext4/fio rw=write")]
    assert progress.stop_notices(left, synthetic_run().sweep) == [
        "fio rw=read: precise after 7 blocks (tmpfs, ext4)",
        "fio rw=write: out of time after 7 blocks (ext4)",
    ]


# --- all together, and what it would take -----------------------------------------------------------------------------


def test_where_nobody_would_run_so_many_blocks_it_says_by_how_much_the_noise_must_fall_and_where_it_is() -> None:
    said = sentence(verdict="undecided", reduce=9.46, noise="candidate", candidate="tmpfs")
    assert said.endswith(
        "; 20 blocks suffice only with 9.5 times less noise (most of it is in tmpfs, from trial to trial)."
    )
    assert "30 blocks suffice only with 95 times less noise." in sentence(verdict="undecided", reduce=94.6, n=30)
    others = {sentence(verdict="undecided", reduce=2.0, noise=noise) for noise in get_args(NoiseSource)}
    assert len(others) == len(get_args(NoiseSource))


def test_the_interval_beside_a_verdict_is_that_of_all_together_or_of_equivalence_with_its_level() -> None:
    bounds = {"low_all": 6.1, "high_all": 7.9, "low_same": 0.99, "high_same": 1.01, "level_same": 0.9}
    assert comparison(**bounds).verdict_interval == Interval(6.1, 7.9, 0.95)
    assert str(verdicts.compared_figures(comparison(**bounds))) == "6.9 [6.1, 7.9]"
    same = comparison(**bounds, ratio=1.0, verdict="same")
    assert same.verdict_interval == Interval(0.99, 1.01, 0.9)
    assert str(verdicts.compared_figures(same)) == "1.000 [0.990, 1.010] (90\u00a0%)"
    assert same.own == Interval(6.5, 7.3, 0.95)
    earlier = comparison(low_all=6.1, high_all=7.9, verdict="same")
    assert earlier.verdict_interval == Interval(6.1, 7.9, 0.95), "runs of before did not keep that of equivalence"


def test_a_comparison_is_what_its_columns_in_a_table_say() -> None:
    bounds = {"low_all": 6.1, "high_all": 7.9, "low_same": 0.99, "high_same": 1.01, "level_same": 0.9}
    one = comparison(**bounds, factors={"bs": "4KiB"}, reduce=2.0)
    assert list(one.columns) == list(COMPARISON_COLUMNS)
    assert {name: one.columns[name] for name in bounds} == bounds
    assert Comparison.of_columns(**one.columns) == one


def test_an_infinite_bound_is_an_interval_and_an_unknown_one_is_none() -> None:
    assert verdicts.has_interval(comparison(high=math.inf))
    assert not verdicts.has_interval(comparison(high=NAN))


ROWS: list[dict[str, Any]] = [
    {"effect": "filesystem", "share": 0.187, "low": 0.054, "high": 0.342},
    {"effect": "filesystem x bs", "share": 0.623, "low": 0.368, "high": 0.766},
    {"effect": "block", "share": 0.001, "low": 0.0, "high": 0.005},
    {"effect": "residual", "share": 0.189, "low": NAN, "high": NAN},
]


def test_what_explains_how_much_is_a_sentence_with_the_largest_share_first() -> None:
    assert phrases.explained_sentence(ROWS, "read bandwidth under dd").replace("\u00a0", " ") == (
        "Of the differences in read bandwidth under dd: file system × bs 62 % [37 %, 77 %], from trial to trial 19 % "
        "and file system 19 % [5 %, 34 %]."
    )

"""Sentences on what states and neighbours change."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from mountlab.core.conditions import condition_words
from mountlab.core.findings import Comparison, ConditionChange, Kept
from mountlab.wording import conditions
from rows import every_row
from synthetic_run import comparison

NAN = math.nan
AGED = {"state": "aged"}


def ratio(value: float, verdict: str = "undecided", **changes: Any) -> Comparison:
    about = {"candidate": "btrfs", "workload": "app", "metric": "write_iops", "factors": AGED, "verdict": verdict}
    return comparison(**{**about, "ratio": value, "low": value - 0.02, "high": value + 0.02, **changes})


def change(
    before: tuple[float, str],
    after: tuple[float, str],
    changed: tuple[float, str],
    kept: tuple[float, float] = (0.5, 0.61),
    **changes: Any,
) -> ConditionChange:
    """The ratio in two states, its change, and what candidate and baseline keep."""
    own, theirs = kept
    more = changes.pop("of_change", {})
    return ConditionChange(
        condition="state",
        level="aged",
        reference="fresh",
        before=ratio(*before, factors={"state": "fresh"}, **changes),
        after=ratio(*after, **changes),
        change=ratio(*changed, **{**changes, **more}),
        kept=ratio(own, "slower", baseline="btrfs", **changes),
        baseline_kept=ratio(theirs, "slower", candidate="ext4", **changes),
    )


FLIP = change((1.10, "faster"), (0.91, "slower"), (0.83, "slower"))
LOSES = change((0.9, "slower"), (0.6, "slower"), (0.67, "slower"))
OPEN = change((1.0, "undecided"), (1.1, "undecided"), (1.1, "undecided"))


@every_row(
    "condition, level, words",
    [
        ("state", "aged", "in state aged"),
        ("state", "fresh", "in state fresh"),
        ("beside", "none", "alone"),
        ("beside", "backup", "beside backup"),
        ("beside", "backup+web", "beside backup and web"),
    ],
)
def test_a_level_in_words(condition: str, level: str, words: str) -> None:
    assert condition_words(condition, level) == words


@every_row(
    "of, sentence",
    [
        (
            FLIP,
            "The ranking flips in state aged under app: the write IOPS of btrfs is 1.10 [1.08, 1.12] times that of "
            "ext4 "
            "in state fresh, and 0.91 [0.89, 0.93] times in state aged. There btrfs loses more than ext4: its write "
            "IOPS falls to 0.50 [0.48, 0.52] of that in state fresh, that of ext4 to 0.61 [0.59, 0.63], a factor of "
            "1.20 [1.18, 1.23] between them.",
        ),
        (
            LOSES,
            "In state aged under app, btrfs loses more than ext4: its write IOPS falls to 0.50 [0.48, 0.52] of that in "
            "state fresh, that of ext4 to 0.61 [0.59, 0.63], a factor of 1.49 [1.45, 1.54] between them.",
        ),
        (
            change((0.9, "slower"), (1.3, "faster"), (1.45, "faster"), (1.2, 0.83)),
            "The ranking flips in state aged under app: the write IOPS of btrfs is 0.90 [0.88, 0.92] times that of "
            "ext4 "
            "in state fresh, and 1.30 [1.28, 1.32] times in state aged. There ext4 loses, and btrfs does not: its "
            "write "
            "IOPS rises to 1.20 [1.18, 1.22] times that in state fresh, that of ext4 falls to 0.83 [0.81, 0.85], a "
            "factor of 1.45 [1.43, 1.47] between them.",
        ),
        (
            change((1.0, "undecided"), (1.001, "undecided"), (1.001, "same")),
            "In state aged under app, the ratio of btrfs to ext4 in write IOPS stays within 2\u00a0% of that in state "
            "fresh: change 1.00 [0.98, 1.02].",
        ),
        (
            change((1.0, "undecided"), (1.1, "undecided"), (1.1, "undecided"), of_change={"needed": 31}),
            "Undecided: whether the ratio of btrfs to ext4 in write IOPS changes in state aged under app; 1.10 [1.08, "
            "1.12]; up to 31 blocks needed.",
        ),
        (
            change((1.0, "faster"), (1.1, "not usable"), (1.1, "not usable")),
            "In state aged under app, the ratio of btrfs to ext4 in write IOPS is not to be used.",
        ),
        (
            change((1.0, "undecided"), (1.1, "faster"), (NAN, "undecided"), of_change={"n": 0, "censored": 3}),
            "Whether the ratio of btrfs to ext4 in write IOPS changes in state aged under app is open: trials ran into "
            "their time limit.",
        ),
        (
            change((1.2, "slower"), (0.8, "faster"), (0.66, "faster"), (2.0, 3.0), metric="read_latency_p99"),
            "The ranking flips in state aged under app: the 99th-percentile read completion latency of btrfs is 1.20 "
            "[1.18, 1.22] times that of ext4 in state fresh, and 0.80 [0.78, 0.82] times in state aged. There btrfs "
            "loses less than ext4: its 99th-percentile read completion latency rises to 2.00 [1.98, 2.02] times that "
            "in "
            "state fresh, that of ext4 to 3.00 [2.98, 3.02] times, a factor of 1.52 [1.47, 1.56] between them.",
        ),
    ],
)
def test_a_change_in_sentences(of: ConditionChange, sentence: str) -> None:
    assert conditions.change_sentences(of, 0.02) == sentence


@every_row(
    "kept, words",
    [
        ((0.5, 0.6), "btrfs loses more than ext4"),
        ((0.6, 0.5), "btrfs loses less than ext4"),
        ((1.5, 1.2), "btrfs gains more than ext4"),
        ((1.2, 1.5), "btrfs gains less than ext4"),
        ((0.9, 1.2), "btrfs loses, and ext4 does not"),
        ((1.2, 0.9), "ext4 loses, and btrfs does not"),
        ((NAN, NAN), "the ratio of btrfs to ext4 changes"),
        ((NAN, 0.9), "ext4 loses, which is not shown of btrfs"),
    ],
)
def test_who_loses(kept: tuple[float, float], words: str) -> None:
    """By the means of both, whichever way the ratio was before."""
    of = change((0.9, "slower"), (0.6, "slower"), (0.67, "slower"), kept)
    assert f", {words}: its write IOPS" in conditions.change_sentences(of, 0.02)


@every_row(
    "kept, verdicts, words",
    [
        ((0.98, 1.06), ("undecided", "faster"), "ext4 gains, which is not shown of btrfs"),
        ((0.6, 0.98), ("slower", "undecided"), "btrfs loses, which is not shown of ext4"),
        ((0.95, 1.03), ("undecided", "undecided"), "the ratio of btrfs to ext4 changes"),
        ((1.0, 0.98), ("same", "not usable"), "the ratio of btrfs to ext4 changes"),
    ],
)
def test_only_what_is_shown_to_lose_loses(kept: tuple[float, float], verdicts: tuple[str, str], words: str) -> None:
    of = change((1.0, "undecided"), (0.9, "undecided"), (0.9, "slower"), kept)
    pairs = zip((of.kept, of.baseline_kept), verdicts, strict=True)
    own, theirs = (replace(each, verdict=verdict) for each, verdict in pairs)
    text = conditions.change_sentences(replace(of, kept=own, baseline_kept=theirs), 0.02)
    assert f", {words}: its write IOPS" in text


def test_what_is_not_shown_to_fall_does_not_fall() -> None:
    own = ratio(0.99, "undecided", baseline="btrfs")
    kept = Kept(condition="state", level="aged", reference="fresh", ratio=own)
    assert "the write IOPS of btrfs is 0.99 [0.97, 1.01] times that in state fresh." in conditions.kept_sentence(kept)


def test_a_doubtful_change_says_why() -> None:
    assert conditions.change_sentences(LOSES, 0.02, ["noisy"]).endswith(" Doubtful: noisy (see the caveats).")
    doubts = {"ext4/app state=fresh": ["noisy"], "btrfs/app state=aged": ["drift"], "xfs/app state=aged": ["step"]}
    assert conditions.doubts_about(LOSES, doubts) == ["drift", "noisy"]


@every_row(
    "changes, sure, sentence",
    [
        ([], True, ""),
        (
            [FLIP],
            True,
            "The ranking flips: btrfs is faster than ext4 in state fresh (×1.10) and slower in state aged (×0.91) "
            "under app.",
        ),
        (
            [FLIP],
            False,
            "The ranking seems to flip: btrfs looks faster than ext4 in state fresh (×1.10) and slower in state aged "
            "(×0.91) under app.",
        ),
        (
            [FLIP, change((1.2, "faster"), (0.9, "slower"), (0.8, "slower"), workload="web")],
            True,
            "The ranking flips: btrfs is faster than ext4 in state fresh and slower in state aged under app and web.",
        ),
        (
            [LOSES, LOSES],
            False,
            "In state aged under app, it looks as if btrfs loses more than ext4: its write IOPS falls to 0.50 [0.48, "
            "0.52] of that in state fresh, that of ext4 to 0.61 [0.59, 0.63], a factor of 1.49 [1.45, 1.54] between "
            "them. 1 more ratio changes.",
        ),
        (
            [change((1.0, "undecided"), (1.1, "undecided"), (1.1, "undecided"))],
            True,
            "No ratio is shown to change in state aged.",
        ),
    ],
)
def test_the_sentence_of_a_first_screen(changes: list[ConditionChange], sure: bool, sentence: str) -> None:
    assert conditions.first_sentence(changes, sure=sure) == sentence


@every_row(
    "changes, title",
    [
        ([FLIP], "In state aged the ranking of btrfs and ext4 flips under app"),
        ([FLIP, FLIP, LOSES], "In state aged the ranking of btrfs and ext4 flips under app; 1 more flips"),
        ([LOSES], "1 of 1 ratio changes, none flips"),
        ([OPEN], "No ratio is shown to change"),
    ],
)
def test_the_title_of_a_plot(changes: list[ConditionChange], title: str) -> None:
    assert conditions.finding(changes) == title


def test_what_a_file_system_keeps() -> None:
    kept = Kept(condition="state", level="aged", reference="fresh", ratio=LOSES.baseline_kept)
    text = "In state aged under app, the write IOPS of ext4 falls to 0.61 [0.59, 0.63] of that in state fresh."
    assert conditions.kept_sentence(kept) == text
    alone = Kept(condition="state", level="aged", reference="fresh", ratio=ratio(NAN, n=1, low=NAN, high=NAN))
    assert conditions.kept_sentence(alone).endswith("has no ratio to that in state fresh: n is below 2.")

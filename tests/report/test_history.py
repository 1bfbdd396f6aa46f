"""Histories: what changed, where and with what, in words, as data and on pages."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from mountlab import plots
from mountlab.__main__ import main
from mountlab.analysis.history import History, HistoryPoint, Key, grouped, histories
from mountlab.core.errors import InputError
from mountlab.core.places import SHIPPED
from mountlab.report import chronicle, execute, html
from mountlab.report.page import page
from mountlab.report.views import history as history_view
from mountlab.results import listing
from mountlab.results.histories import Wanted, histories_of, load_years
from mountlab.sentences.history import (
    change_sentence,
    changed,
    history_json,
    history_rows,
    history_text,
    range_sentence,
    report_sentence,
    run_row,
    sentences,
    turn_sentences,
)
from pages import Page
from scipy import stats
from svg_marks import colours, drawings
from synthetic_report import execute_here
from years import SMALL, edit, run_of, small_with_catalog

KEY = Key(sweep="nightly", box="db1", cell="ext4/dd", metric="write_bandwidth", unit="B/s")
ORDER = ("tmpfs", "ramfs", "ext4")
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
PARTS = (history_view.title, history_view.answer, history_view.overview, history_view.changes_table,
         history_view.histories_table, history_view.by_kernel)  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """From the ninth run on, one cell on box0 is slower by 30 %; only the kernel changes too, with the eleventh."""
    return small_with_catalog(tmp_path_factory)


def made(values: Sequence[float], *, key: Key = KEY, facts: Sequence[dict[str, str]] = (), n: int = 5) -> History:
    """The history of runs with these means, whose trials vary by 2 %."""
    points = [
        HistoryPoint(
            run=f"r{place:03d}", at=BEGAN + timedelta(days=place), n=n, mean=value, sd=0.02 * value,
            log_mean=math.log(value), log_sd=0.02, filesystem="ext4", filesystems=ORDER,
            facts=facts[place] if facts else {},
        )
        for place, value in enumerate(values)
    ]  # fmt: skip
    (found,) = histories([(key, point) for point in reversed(points)])
    return found


def stepped(runs: int, at: int, by: float = 0.8) -> list[float]:
    noise = np.random.default_rng(4).lognormal(0, 0.01, runs)
    return [float(1e8 * each * (by if place >= at else 1)) for place, each in enumerate(noise)]


def kernels(*runs: str) -> list[dict[str, str]]:
    return [{"kernel": each, "fio": "fio-3.33"} for each in runs]


# ── what else changed there ──────────────────────────────────────────────────────────────────────────────────────────


def test_what_changed_with_the_level_is_named() -> None:
    history = made(stepped(16, 8), facts=kernels(*["6.1-gaaaaaaa0"] * 8, *["6.2-gbbbbbbb1"] * 8))
    (change,) = history.changes
    (turn,) = history.turns(change)
    assert (turn.what, turn.at, turn.only_there) == ("kernel", 8, True)
    assert turn.commits == "aaaaaaa0..bbbbbbb1"
    assert turn_sentences(history, change) == [
        "There the kernel changed from 6.1-gaaaaaaa0 to 6.2-gbbbbbbb1, as in no run before "
        "(git log aaaaaaa0..bbbbbbb1)."
    ]


def test_what_had_been_so_before_is_less_likely_the_cause() -> None:
    facts = kernels(*["6.2", "6.1", "6.1", "6.1"] * 2, *["6.2"] * 8)
    for place, known in enumerate(facts):
        known["cpu governor"] = "performance" if place < 8 else "powersave"
    history = made(stepped(16, 8), facts=facts)
    told = turn_sentences(history, history.changes[0])
    assert told[0].startswith("There the cpu governor changed from performance to powersave, as in no run before")
    assert told[1].endswith("; but it had been so before.")


def test_one_value_of_a_fact_is_named_with_the_fact_and_is_data_where_it_changes() -> None:
    steady = {"kernel": "6.1", "control group: tasks": "5"}
    facts = [{**steady, "mitigations: mds": "on (VERW)" if place < 8 else "off"} for place in range(16)]
    history = made(stepped(16, 8), facts=facts)
    told = "There mitigations: mds changed from on (VERW) to off, as in no run before."
    assert turn_sentences(history, history.changes[0]) == [told]
    (data,) = history_json([history])["histories"]
    assert data["runs"][0]["facts"] == {"kernel": "6.1", "mitigations: mds": "on (VERW)"}


@pytest.mark.slow
def test_facts_of_run_directories_reach_the_history_value_by_value(tmp_path: Path) -> None:
    for number in range(3):
        own = shutil.copytree(SHIPPED / "tests" / "data" / "earlier_run", tmp_path / f"tour{number}")
        more = {"cpu_mitigations": {"mds": "Vulnerable"}, "disk_settings": {"vda": {"write_cache": f"write {number}"}}}
        edit(own, lambda info, more=more, day=number + 1: (  # type: ignore[misc]
            info.update(run_id=f"tour{day}", created_at=f"2026-11-0{day}T00:00:00+00:00"),
            info["facts"].update(more if day > 1 else {}),
        ))  # fmt: skip
    first, *later = load_years(tmp_path, Wanted(sweep="tour")).histories[0].points
    assert not any(name.startswith(("mitigations", "disk vda: write")) for name in first.facts), "it was not recorded"
    assert first.facts["kernel"].startswith("6.")
    assert [point.facts["mitigations: mds"] for point in later] == ["off", "off"]
    assert [point.facts["disk vda: write cache"] for point in later] == ["write 1", "write 2"]


def test_mountlabs_own_commits_are_a_range_too() -> None:
    facts = [{"Mountlab's commit": "a" * 40 if place < 8 else f"{'b' * 40}+changes"} for place in range(16)]
    history = made(stepped(16, 8), facts=facts)
    assert history.turns(history.changes[0])[0].commits == f"{'a' * 12}..{'b' * 12}"


def test_what_is_alike_unknown_or_changed_elsewhere_is_no_change_there() -> None:
    unknown = kernels(*["6.1"] * 16)
    del unknown[8]["kernel"]
    for facts in (kernels(*["6.1"] * 16), kernels(*["6.1"] * 15, *["6.2"] * 5), unknown):
        history = made(stepped(len(facts), 8), facts=facts)
        assert history.turns(history.changes[0]) == []
        said = ["Nothing that runs keep of box and tools changed there."]
        assert turn_sentences(history, history.changes[0]) == said


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_change_is_told_with_ratio_interval_and_verdict() -> None:
    history = made(stepped(16, 8))
    (change,) = history.changes
    said = change_sentence(history, change)
    assert said.startswith("The write bandwidth of ext4/dd is 0.8")
    assert said.endswith("corrected over 1 history and all looks): slower.")
    assert range_sentence(history, change) == (
        "It changed between the runs of 2026-01-08 00:00 and 2026-01-09 00:00, with more than 95 % probability just "
        "there."
    )
    assert sentences([history])[0] == "1 change in 1 of 1 history over 16 runs."


def test_an_uncertain_place_is_told_as_a_range() -> None:
    rng = np.random.default_rng(11)
    history = made([float(each) for each in 1e8 * rng.lognormal(0, 0.03, 40) * np.where(np.arange(40) < 20, 1, 0.965)])
    (change,) = history.changes
    assert change.first < change.last
    first, last = (history.points[place].at for place in (change.first - 1, change.last))
    assert f"with 95 % probability between those of {first:%Y-%m-%d %H:%M} and {last:%Y-%m-%d %H:%M}" in range_sentence(
        history, change
    )


@pytest.mark.parametrize(
    ("metric", "by", "verdict"),
    [("write_bandwidth", 1.3, "faster"), ("elapsed", 1.3, "slower"), ("elapsed", 0.7, "faster")],
)
def test_the_verdict_knows_which_way_is_better(metric: str, by: float, verdict: str) -> None:
    history = made(stepped(16, 8, by), key=replace(KEY, metric=metric))
    assert history.verdict(history.changes[0]) == verdict


def test_quiet_histories_say_so_and_short_ones_what_they_would_need() -> None:
    said = sentences([made(stepped(7, 7))])
    assert said[0] == "Nothing shows that a level changed: 1 history over 7 runs."
    assert said[1] == "1 history is too short to show any change: it takes 12 runs or more."
    quiet = sentences([made(stepped(30, 30))])
    assert len(quiet) == 3
    assert "from now on would be reported after 6 runs" in quiet[1]


def test_the_first_report_is_named() -> None:
    history = made(stepped(30, 20, 0.74))
    (change,) = history.changes
    said = report_sentence(history, change)
    assert f"{history.points[change.reported].at:%Y-%m-%d}" in said
    assert f"{change.reported - 19} runs" in said


def test_how_many_false_changes_are_to_be_expected_is_computed() -> None:
    many = [made(stepped(12, 12), key=replace(KEY, box=f"db{number}")) for number in range(6)]
    assert "of these 6 at most 0.30" in sentences(many)[-1]


def test_a_hostile_name_moves_no_cursor() -> None:
    assert "\x1b" not in history_text([made(stepped(16, 8), key=replace(KEY, cell="ext4/\x1b[2J"))])


@pytest.mark.slow
def test_a_history_is_drawn_in_the_colour_that_its_file_system_has_in_a_report() -> None:
    drawn = history_view.overview([made(stepped(40, 20))])
    found = set().union(*map(colours, drawings(drawn)))
    assert plots.colour_of(ORDER)["ext4"].colour.lower() in found
    assert plots.colour_of(ORDER)["tmpfs"].colour.lower() not in found


# ── figures ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_interval_of_a_run_is_that_of_its_trials() -> None:
    values = np.array([9.0, 10.0, 12.0])
    (point,) = made([10.0], n=3).points
    point = replace(point, mean=values.mean(), sd=values.std(ddof=1))
    factor = np.exp(stats.t.ppf(0.975, 2) * stats.sem(values) / values.mean())
    expected = (values.mean() / factor, values.mean() * factor)
    assert (point.estimate.low, point.estimate.high) == pytest.approx(expected)
    assert math.isnan(replace(point, n=1, sd=math.nan).estimate.low)


def test_groups_are_of_runs() -> None:
    history = made(stepped(16, 8), facts=kernels(*["6.1"] * 8, *["6.2"] * 8))
    first, second = grouped(history, "kernel")
    values = [point.mean for point in history.points]
    assert (first.name, second.name, first.estimate.n) == ("6.1", "6.2", 8)
    assert first.estimate.mean == pytest.approx(np.mean(values[:8]))
    assert second.ratio == pytest.approx(np.exp(np.mean(np.log(values[8:])) - np.mean(np.log(values[:8]))))
    assert second.low < second.ratio < second.high < 1
    assert math.isnan(first.ratio)
    assert [group.name for group in grouped(history, "year")] == ["2026"]


def with_runs(history: History, **changed: HistoryPoint) -> History:
    """The same history with other figures in some runs."""
    points = [changed.get(point.run, point) for point in history.points]
    (found,) = histories((history.key, point) for point in points)
    return found


def test_a_trial_of_0_does_not_silence_a_history() -> None:
    history = made(stepped(60, 40, 0.74))
    odd = replace(history.points[10], mean=0.8 * history.points[10].mean, log_mean=math.nan, log_sd=math.nan)
    found = with_runs(history, r010=odd)
    assert [change.at for change in found.changes] == [40]
    assert found.by_mean == (odd,)
    assert any("1 figure of 1 run hold a trial of 0" in each for each in sentences([found]))


@pytest.mark.parametrize("mean", [0.0, math.nan])
def test_a_run_without_a_mean_is_left_out_and_named(mean: float) -> None:
    history = made(stepped(60, 40, 0.74))
    nothing = replace(history.points[10], mean=mean, log_mean=math.nan, log_sd=math.nan)
    found = with_runs(history, r010=nothing)
    assert [found.points[change.at].run for change in found.changes] == ["r040"]
    assert [point.run for point in found.left_out] == ["r010"]
    assert any("Left out: 1 figure of 1 run" in each and "2026-01-11" in each for each in sentences([found]))
    json.dumps(history_json([found]), allow_nan=False)


def test_a_history_of_which_no_run_counts_has_a_page() -> None:
    history = made(stepped(12, 12))
    found = with_runs(history, **{point.run: replace(point, mean=0.0, log_mean=math.nan) for point in history.points})
    assert found.points == ()
    assert "Left out: 12 figures of 12 runs" in history_text([found])
    assert "none yet" in history_text([found] * 7)
    assert all(part([found]) for part in PARTS)
    assert grouped(found, "year") == []


# ── trials that ran into their time limit ────────────────────────────────────────────────────────────────────────────


def late(point: HistoryPoint, figure: float) -> HistoryPoint:
    """The run with one of its five trials at the limit."""
    return replace(point, mean=figure, sd=math.nan, log_mean=math.nan, log_sd=math.nan, censored=1)


@pytest.mark.slow
def test_a_run_with_trials_at_their_limit_counts_by_its_median_and_is_named() -> None:
    history = made(stepped(60, 40, 0.74))
    found = with_runs(history, r010=late(history.points[10], 0.97e8))
    assert [change.at for change in found.changes] == [40]
    (point,) = found.by_median
    assert (point.level.value, point.level.degrees) == (math.log(0.97e8), 0)
    assert found.by_mean == ()
    (said,) = [each for each in sentences([found]) if "time limit" in each]
    assert "1 figure of 1 run has trials" in said
    assert "median" in said
    assert "2026-01-11" in said
    (row,) = [row for row in csv.DictReader(_as_csv(history_rows([found]))) if row["run"] == "r010"]
    assert (row["n"], row["censored"]) == ("5", "1")
    assert "5, 1 at the limit (median)" in run_row(found, 10)
    assert "none" in run_row(found, 10), "a median has no interval of a mean"
    assert "5, 1 at the limit (median)" in history_view.change_body(
        history_of(found, 34), history_of(found, 34).changes[0], {}, compare=""
    )


def test_a_run_whose_median_lies_among_the_trials_at_their_limit_is_left_out_and_named() -> None:
    history = made(stepped(60, 40, 0.74))
    point = replace(late(history.points[10], math.nan), censored=3)
    found = with_runs(history, r010=point)
    assert [each.run for each in found.left_out] == ["r010"]
    (said,) = [each for each in sentences([found]) if "Left out" in each]
    assert "half or more of their trials at the time limit" in said
    assert "2026-01-11" in said
    assert history_json([found])["histories"][0]["left_out"][0]["censored"] == 3


def history_of(found: History, place: int) -> History:
    """The same history with a run at its limit close before its change."""
    return with_runs(found, **{found.points[place].run: late(found.points[place], 1e8)})


def _as_csv(rows: Iterable[tuple[object, ...]]) -> io.StringIO:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    text.seek(0)
    return text


# ── out of the catalog ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_the_change_that_was_made_is_the_one_that_is_found(results: Path) -> None:
    ((history, change),) = changed(load_years(results).histories)
    assert (history.key.cell, history.key.box, history.family) == ("ext4/fio bs=4KiB", "box0", 10)
    assert history.points[change.at].run == run_of(results, 0, SMALL.changed_at).name
    assert change.low < SMALL.change < change.high


@pytest.mark.slow
def test_a_filter_of_cells_changes_no_p_value(results: Path) -> None:
    ((_, whole),) = changed(load_years(results).histories)
    ((_, alone),) = changed(load_years(results, Wanted(cell="ext4/fio bs=4KiB", box="box0")).histories)
    assert alone == whole


@pytest.mark.slow
def test_only_the_metrics_of_answers_are_shown_unless_one_is_named(results: Path) -> None:
    assert {each.key.metric for each in load_years(results).histories} == {"read_bandwidth"}
    latencies = load_years(results, Wanted(metric="read_latency_mean")).histories
    assert {each.key.metric for each in latencies} == {"read_latency_mean"}
    assert len(latencies) == 20


@pytest.mark.slow
def test_filters_of_runs(results: Path) -> None:
    later = load_years(
        results, Wanted(since=datetime(2021, 1, 10, tzinfo=UTC), until=datetime(2021, 1, 15, tzinfo=UTC))
    )
    assert {len(each.points) for each in later.histories} == {5}
    assert {len(each.points) for each in load_years(results, Wanted(kernel="6.2.")).histories} == {8}
    assert histories_of(results, box="box1", since="2021-01-10")[0].key.box == "box1"


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"box": "box7"}, "no run has this box"),
        ({"sweep": "x"}, "no run has this sweep"),
        ({"cell": "ext4/dd"}, "no run has this cell"),
        ({"metric": "speed"}, "no run has this metric"),
        ({"since": "1.2."}, "not a date"),
        ({"since": "2031-01-01"}, "nothing was measured that fits"),
        ({"kernel": "7"}, "nothing was measured that fits"),
    ],
)
@pytest.mark.slow
def test_a_filter_that_nothing_fits_says_what_there_is(wanted: dict[str, str], said: str, results: Path) -> None:
    with pytest.raises(InputError, match=said) as refused:
        histories_of(results, **wanted)
    assert refused.value.allowed


@pytest.mark.slow
def test_what_was_asked_otherwise_is_another_history(results: Path, tmp_path: Path) -> None:
    for box_run in range(3):
        shutil.copytree(run_of(results, 0, box_run), tmp_path / f"r{box_run}")
    tour = SHIPPED / "tests" / "data" / "earlier_run"
    for number, size in enumerate(("512MiB", "256MiB")):
        shutil.copytree(tour, tmp_path / f"tour{number}")
        edit(
            tmp_path / f"tour{number}",
            lambda info, size=size, number=number: (
                info.update(run_id=f"tour{number}"),
                info["parameters"]["filesystems"]["tmpfs"].update(size=size),
            ),
        )  # type: ignore[misc]
    years = load_years(tmp_path, Wanted(sweep="tour"))
    lengths = {
        cell: [len(h.points) for h in years.histories if h.key.cell == cell]
        for cell in ("tmpfs/dd-write", "ext4/dd-write")
    }
    assert lengths == {"tmpfs/dd-write": [1, 1], "ext4/dd-write": [2]}
    assert any("asked something else of a cell" in note for note in years.notes())


@pytest.mark.slow
def test_data(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "--results", str(results), "--json"]) == 0
    read = json.loads(capsys.readouterr().out)
    assert len(read["histories"]) == 20
    ((told,),) = [each["changes"] for each in read["histories"] if each["changes"]]
    assert told["verdict"] == "slower"
    assert told["after"] == run_of(results, 0, SMALL.changed_at).name
    assert main(["history", "--results", str(results), "--csv", "--box", "box0", "--cell", "ext4/fio bs=4KiB"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [bool(row["since"]) for row in rows] == [False] * SMALL.changed_at + [True] * (SMALL.runs - SMALL.changed_at)
    json.dumps(history_json([made([1e8])]), allow_nan=False)


@pytest.mark.slow
def test_in_the_terminal(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "--results", str(results), "--box", "box0", "--cell", "ext4/fio bs=4KiB"]) == 0
    said = capsys.readouterr().out
    assert "1 change in 1 of 1 history over 18 runs." in said
    assert "-- × 0." in said
    assert said.count("-nightly-00-box0") == SMALL.runs
    main(["history", "--results", str(results), "--box", "box0", "--cell", "ext4/fio bs=4KiB", "--by", "kernel"])
    assert "6.2.0-1-amd64  8 " in capsys.readouterr().out


# ── pages ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def own(results: Path, tmp_path: Path) -> Path:
    """Results of its own that can be changed, without the lock of another worker that looks at the shared ones."""
    shutil.copytree(results, tmp_path / "results", ignore=shutil.ignore_patterns(".cataloguing"))
    return tmp_path / "results"


@pytest.mark.long
def test_each_change_has_a_page_and_an_entry(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own / "index.html").write_text('<meta name="generator" content="Mountlab">')
    assert main(["catalog", str(own)]) == 0
    assert "changes: 1" in capsys.readouterr().out
    (entry,) = [each for each in listing.entries(own) if each.kind == "change"]
    assert (entry.problem, entry.box, entry.sweep, entry.verdicts) == ("", "box0", "nightly-00", ("slower",))
    assert entry.created_at.startswith("2021-01-12")
    shown = Page((own / entry.path / entry.page).read_text())
    assert "slower" in shown.words
    assert "The runs on either side" in shown.words
    before = run_of(own, 0, SMALL.changed_at - 1).name
    assert f"../../{before}/report.html" in shown.values("href", "a")
    assert (own / entry.path / f"../../{before}/report.html").exists()
    assert "Kind" in Page((own / "index.html").read_text()).words


@pytest.mark.long
@pytest.mark.slow
def test_a_change_that_is_found_no_more_has_no_page_any_more(own: Path) -> None:
    (made_page,) = chronicle.write_changes(load_years(own))
    (own / "changes" / "mine").mkdir()
    (own / "changes" / "mine" / "notes.txt").write_text("mine")
    written = made_page.stat().st_mtime_ns
    assert chronicle.write_changes(load_years(own)) == [made_page]
    assert made_page.stat().st_mtime_ns == written, "what is the same is not written again"
    for _ in range(SMALL.changed_at, SMALL.runs):
        shutil.rmtree(run_of(own, 0, SMALL.changed_at))
    assert chronicle.write_changes(load_years(own)) == []
    assert [path.name for path in (own / "changes").iterdir()] == ["mine"]


@pytest.mark.slow
def test_the_parts_of_a_page_with_hostile_names() -> None:
    hostile = "</script><script>alert(1)</script>\u202e"
    history = made(
        stepped(16, 8),
        key=replace(KEY, cell=f"ext4/{hostile}", sweep=hostile, box=hostile),
        facts=kernels(*["6.1"] * 8, *[hostile] * 8),
    )
    parts = [part([history]) for part in PARTS]
    parts.append(history_view.change_body(history, history.changes[0], {}, compare=hostile))
    whole = page(html.joined(*parts), title=hostile)
    assert "<script>alert" not in whole
    assert "\u202e" not in whole


@pytest.mark.long
@pytest.mark.slow
def test_the_page_of_histories(own: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "execute", execute_here)
    typed = ["history", "--results", str(own), "nightly-00", "--box", "box0", "--page"]
    assert main(typed) == 0
    assert "report: " in capsys.readouterr().out
    (entry,) = [each for each in listing.entries(own) if each.kind == "history"]
    assert (entry.problem, entry.box, entry.sweep) == ("", "box0", "nightly-00")
    shown = Page((own / entry.path / entry.page).read_text())
    assert "1 change in 1 of 10 histories over 18 runs." in shown.words

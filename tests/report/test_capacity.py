"""The section How much can it take: what its sentences and tables say, and what other parts say of a search."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from mountlab.analysis.run_view import RunView
from mountlab.core.cell_stop import CellStop
from mountlab.core.findings import Caveat, Verdict
from mountlab.core.numbers import count_figures
from mountlab.report import html, sections
from mountlab.report.sections.capacity import capacity_plots
from mountlab.report.terminal import run_answer
from mountlab.results import paths
from rows import every_row
from searched_run import MAIL, SearchedRun, searched_run
from synthetic_report import executed_here
from synthetic_run import synthetic_run


def plain(text: str) -> str:
    """With blanks in the place of those at which no line breaks, and without the marks of code."""
    return " ".join(text.replace("`", "").split())


def shown(run: RunView) -> str:
    return plain(html.words_of(sections.capacity(run)))


def test_the_answer_comes_first_with_the_ratio_to_the_baseline_also_on_the_first_screen() -> None:
    run = searched_run("ext4", "xfs")
    answer = (
        "At read p99 ≤ 5 ms, ext4 takes 3 080 [2 930, 3 230] requests/s; "
        "xfs takes 3 980 [3 780, 4 180] requests/s, 1.29 times as many [1.17, 1.43]: faster."
    )
    assert shown(run).startswith(answer)
    first = plain(html.words_of(sections.answer(run)))
    assert first.startswith(answer)
    assert first.count("1.29 times") == 1
    assert "holds up to 3 080 [2 930, 3 230] requests/s on ext4" in plain(html.words_of(sections.headline(run)))
    stopping = plain(html.words_of(sections.stopping(run)))
    assert "until the capacity at read p99 ≤ 5 ms is within ± 5 %, 60 trials at most" in stopping
    assert "fixed beforehand" not in stopping


def test_capacities_that_are_alike_stand_together() -> None:
    run = searched_run("ext4", "xfs", capacities=dict.fromkeys(("ext4", "xfs"), (3300.0, 2000.0, 5800.0)))
    assert shown(replace(run, ratios=[])).startswith(
        "At read p99 ≤ 5 ms, ext4 and xfs each take 3 300 [2 000, 5 800] requests/s: no difference is shown."
    )


@every_row(
    ("capacity", "said"),
    [
        ((3600.0, 1900.0, 5800.0),
         " On ext4 the objective held at up to 2 000 requests/s and failed from 4 000 requests/s on. The interval "
         "reaches further, since a search of 5 trials is short."),
        ((3000.0, 2000.0, 4000.0), ""),
    ],
)  # fmt: skip
def test_an_interval_that_reaches_beyond_what_the_trials_answered_says_between_which_rates_they_did(
    capacity: tuple[float, float, float], said: str
) -> None:
    run = searched_run("ext4", trials=5, spread=0, capacities={"ext4": capacity})
    text = shown(run)
    assert ("The interval reaches further" in text) == bool(said)
    assert said in text


def test_an_interval_as_wide_as_was_asked_for_says_that_the_search_ended_there() -> None:
    asked = replace(MAIL, search=replace(MAIL.search, half_width=0.6))  # type: ignore[type-var]
    run = searched_run("ext4", trials=5, spread=0, workloads=(asked,), capacities={"ext4": (3600.0, 1900.0, 5800.0)})
    assert "The interval reaches further, since the search was allowed to stop at ± 60 %." in shown(run)


def test_the_step_about_few_late_requests_has_its_runtime() -> None:
    few = doubted("few-late-requests", "at the capacity a trial has 3,080 requests, and 31 of them may be late.")
    run = replace(searched_run("ext4"), caveats=[few])
    runtime = math.ceil(100 / (run.capacities["ext4/mail"][0] * 0.01))
    text = plain(html.words_of(sections.answer(run)))
    assert f"Make the trials longer: a runtime of at least {runtime} s." in text


def test_a_search_has_no_empty_paragraph_in_the_place_of_means() -> None:
    assert html.NOTHING not in sections.headline(searched_run("ext4", "xfs"))


NEVER, ALWAYS = (math.nan, 0.0, 800.0), (math.nan, 12000.0, math.inf)
NOTHING = (math.nan, 0.0, math.inf)


@every_row(
    ("bounds", "verdict", "said", "why"),
    [
        (ALWAYS, "faster", "; tmpfs takes at least 12 000 requests/s, at least 3.7 times as many: faster.",
         "tmpfs: no upper bound, since the objective did not fail often enough at the highest rates."),
        (NEVER, "slower", "; tmpfs already fails at 800 requests/s, at most 0.27 times as many: slower.",
         "tmpfs: no lower bound, since the objective did not hold often enough at the lowest rates."),
    ],
)  # fmt: skip
def test_an_interval_without_an_end_is_said_as_what_is_known(
    bounds: tuple[float, float, float], verdict: Verdict, said: str, why: str
) -> None:
    run = searched_run("ext4", "tmpfs", capacities={"tmpfs": bounds})
    text = shown(replace(run, ratios=[replace(each, verdict=verdict) for each in run.ratios]))
    assert f"requests/s{said}" in text
    assert why in text


@pytest.mark.slow
@every_row(
    ("ext4", "tmpfs", "said"),
    [
        (NOTHING, None, "tmpfs takes 49 100 [46 600, 51 500] requests/s."),
        (
            NOTHING,
            NOTHING,
            "Not measured: how much ext4 and tmpfs take at read p99 ≤ 5 ms. 24 trials of ext4",
        ),
        (NOTHING, ALWAYS, "tmpfs takes at least 12 000 requests/s."),
        (ALWAYS, ALWAYS, "ext4 and tmpfs each take at least 12 000 requests/s."),
    ],
)
def test_where_nothing_bounds_a_ratio_none_is_printed(
    ext4: tuple[float, float, float], tmpfs: tuple[float, float, float] | None, said: str
) -> None:
    known = {"ext4": ext4, **({"tmpfs": tmpfs} if tmpfs else {})}
    run = searched_run("ext4", "tmpfs", capacities=known)
    run = replace(run, ratios=[replace(each, verdict="undecided") for each in run.ratios])
    texts = [shown(run), plain(html.words_of(sections.headline(run))), plain(run_answer(run))]
    for text in texts:
        assert said in text
        assert not re.search(r"unknown|nan|∞|times as many|times the capacity", text)


def test_answers_that_contradict_each_other_are_said_with_their_rates() -> None:
    text = shown(searched_run("ext4", spread=0.6, capacities={"ext4": NOTHING}))
    first = re.search(r"the objective held and failed by turns between ([\d ]+) and ([\d ]+) requests/s\.", text)
    assert first
    rates = [float(rate.replace(" ", "")) for rate in first.groups()]
    assert rates == sorted(rates)


LATE = tuple(range(5))
SHORT = math.nan
"""A percentile that a trial has too few requests for."""


@pytest.mark.slow
@every_row(
    ("short", "late", "reason", "steps"),
    [
        ({"ext4": 8, "xfs": 7}, {"tmpfs": LATE},
         "8 of 8 trials of ext4 and 7 of 8 trials of xfs had too few requests for read p99. 5 of 8 trials of tmpfs "
         "missed their schedule of arrivals.", "A runtime of 2 s or a looser objective; a quiet box."),
        ({}, {"ext4": LATE, "xfs": LATE, "tmpfs": LATE},
         "5 of 8 trials of ext4, 5 of 8 trials of xfs and 5 of 8 trials of tmpfs missed their schedule of arrivals.",
         "A quiet box."),
        ({}, {"ext4": LATE, "xfs": LATE},
         "5 of 8 trials of ext4 and 5 of 8 trials of xfs missed their schedule of arrivals. 8 trials of tmpfs were too "
         "few: the objective held at up to 32 000 requests/s and failed from 64 000 requests/s on.",
         "More trials (max_trials above 60); a quiet box."),
    ],
)  # fmt: skip
def test_what_was_not_measured_has_its_reason_and_the_next_step(
    short: dict[str, int], late: dict[str, tuple[int, ...]], reason: str, steps: str
) -> None:
    names = ("ext4", "xfs", "tmpfs")
    run = searched_run(*names, trials=8, capacities=dict.fromkeys(names, NOTHING))
    figures = dict(run.of_cells)
    for name in names:
        of_cell = dict(figures[f"{name}/mail"])
        latencies, used = of_cell["read_latency_p99"], of_cell["objective_used"]
        missing = short.get(name, 0)
        of_cell["read_latency_p99"] = [SHORT] * missing + latencies[missing:]
        of_cell["objective_used"] = [SHORT if at in late.get(name, ()) else each for at, each in enumerate(used)]
        figures[f"{name}/mail"] = of_cell
    run = replace(run, of_cells=figures)
    for text in (shown(run), plain(html.words_of(sections.answer(run))), plain(run_answer(run))):
        assert f"Not measured: how much ext4, xfs and tmpfs take at read p99 ≤ 5 ms. {reason} To measure it" in text
        assert f": {steps}" in text
    assert shown(run).count("not measured") == len(names), "each row of the table"


def test_beside_measured_capacities_those_that_were_not_are_named() -> None:
    text = shown(searched_run("ext4", "tmpfs", capacities={"ext4": NOTHING}))
    assert "Not measured: ext4. 24 trials of ext4 were too few" in text


def test_a_search_that_is_not_finished_is_finished_first() -> None:
    run = searched_run("ext4", capacities={"ext4": NOTHING})
    stops = [replace(run.stops[0], reason="not finished")]
    assert "To measure it : The rest of the search (mountlab resume)." in shown(replace(run, stops=stops))


def test_an_interval_that_is_wider_than_was_asked_for_says_so() -> None:
    run = searched_run("ext4", capacities={"ext4": (3000.0, 1500.0, 4500.0)})
    run = replace(run, stops=[replace(run.stops[0], reason="max reached", half_width=0.5)])
    assert shown(run).startswith(
        "At read p99 ≤ 5 ms, ext4 takes 3 000 [1 500, 4 500] requests/s (± 50 %, where ± 5 % was asked for)."
    )


def doubted(code: str, message: str) -> Caveat:
    return Caveat(code=code, severity="warning", message=message, scope="cell", subject="ext4/mail")


def test_a_search_that_fails_on_a_busy_box_says_so() -> None:
    others = doubted("box-busy", "other programs took 45% of the processors while it ran. They slow what is measured.")
    run = replace(searched_run("ext4", capacities={"ext4": (math.nan, 0.0, 25.0)}), caveats=[others])
    assert shown(run).startswith("At read p99 ≤ 5 ms, ext4 already fails at 25 requests/s on this busy box.")


def test_a_capacity_that_moved_is_said_to_lie_between_two_rates() -> None:
    moved = doubted("capacity-changed", "the capacity fell while it was searched for.")
    run = replace(searched_run("ext4", capacities={"ext4": (3000.0, 2000.0, 4500.0)}), caveats=[moved])
    assert shown(run).startswith(
        "At read p99 ≤ 5 ms, ext4 takes between 2 000 and 4 500 requests/s (its capacity changed during the search)."
    )


@every_row(
    ("lost", "said"),
    [
        ((4, 9), "2 of 24 trials of ext4 missed their schedule, from 2 580 requests/s on, and do not count. Some "
                 "requests started up to 800 ms late."),
        ((0,), "1 of 24 trials of ext4 missed its schedule, at 500 requests/s, and does not count. Some requests "
               "started up to 800 ms late."),
        ((), ""),
    ],
)  # fmt: skip
def test_trials_whose_schedule_was_not_kept_are_counted_and_said_not_to_count(lost: tuple[int, ...], said: str) -> None:
    text = shown(searched_run("ext4", lost=lost))
    assert said in text
    assert text.count("not known: schedule not kept") == len(lost)
    assert ("not count" in text) == bool(lost)


def test_requests_that_were_never_issued_were_not_issued_zero_seconds_late() -> None:
    run = searched_run("ext4", lost=(4, 9))
    figures = {**run.of_cells["ext4/mail"], "largest_lateness": [0.0004] * 24}
    text = shown(replace(run, of_cells={"ext4/mail": figures}))
    assert "and do not count. Some requests were never issued." in text
    assert "late." not in text


def test_the_table_says_how_many_trials_and_why_a_search_ended() -> None:
    run = searched_run("ext4", "xfs")
    ends = [
        replace(run.stops[0], reason="max reached"),
        replace(run.stops[1], reason="could not", why="more than 9,000 requests per second cannot be generated"),
    ]
    text = shown(replace(run, stops=ends))
    assert "24 trials, the most that were allowed, not precise" in text
    assert "24 trials: more than 9,000 requests per second cannot be generated" in text
    assert "too few figures" not in text


def test_a_row_of_the_table_of_trials_is_a_trial() -> None:
    run = searched_run("ext4", trials=5, spread=0)
    text = shown(run)
    assert "t0001 1 500 500 500 1.32 0.400 held" in text
    assert "t0004 4 4 000 3 996 4 000 10.0 0.400 failed" in text


def test_the_knee_is_said_where_it_shows_and_nowhere_else() -> None:
    knee = r"Read p99 is flat up to [\d ]+ requests/s on ext4, and more than twice as long from [\d ]+ requests/s on\."
    assert re.search(knee, shown(searched_run("ext4")))
    assert "is flat" not in shown(searched_run("ext4", trials=3))


def test_trials_with_too_few_requests_for_the_percentile_are_counted_below_the_figure() -> None:
    run = searched_run("ext4", trials=6)
    figures = {**run.of_cells["ext4/mail"]}
    figures["read_latency_p99"] = [math.nan, math.nan, *figures["read_latency_p99"][2:]]
    text = shown(replace(run, of_cells={"ext4/mail": figures}))
    assert "Not drawn: 2 trials of ext4, with too few requests for read p99. Longer trials have more." in text
    assert "Not drawn" not in shown(run)


@pytest.mark.slow
def test_each_workload_has_a_line_and_a_figure() -> None:
    other = replace(MAIL, name="spool")
    run = searched_run("ext4", "xfs", workloads=(MAIL, other))
    text = shown(run)
    assert "mail : At read p99 ≤ 5 ms, ext4 takes" in text
    assert "spool : At read p99 ≤ 5 ms, ext4 takes" in text
    assert [plot.title.partition(":")[0] for plot in capacity_plots(run)] == ["mail", "spool"]


def test_a_run_without_a_search_has_no_such_section() -> None:
    assert sections.capacity(synthetic_run()).startswith(html.NOTHING)
    assert list(capacity_plots(synthetic_run())) == []


@every_row(
    "part", [sections.every_trial, sections.run_order, sections.distributions, sections.bar_charts, sections.latencies]
)
def test_parts_that_would_mix_rates_are_left_out_and_say_why(part: Callable[[RunView], html.Html]) -> None:
    text = part(searched_run("ext4", "xfs"))
    assert text.startswith(html.NOTHING)
    assert "The trials of a search differ in their rate" in html.words_of(text)


def test_no_other_part_shows_a_mean_over_rates_nor_the_capacity_once_more() -> None:
    run = searched_run("ext4", "xfs")
    assert sections.means(run).startswith(html.NOTHING)
    text = html.words_of(sections.tables(run))
    assert "latency" not in text
    assert "Capacity" not in text


def test_a_search_that_was_interrupted_shows_what_it_has() -> None:
    run = searched_run("ext4", trials=4, capacities={"ext4": (math.nan, 0.0, math.inf)})
    stop = CellStop(cell="ext4/mail", reason="not finished", blocks=4, n=4, half_width=math.nan, metric="capacity")
    assert "4 trials, not finished" in shown(replace(run, stops=[stop]))
    nothing = SearchedRun(run.sweep, {})
    assert shown(nothing).startswith(
        "Not measured: how much ext4 takes at read p99 ≤ 5 ms. No trial of ext4 counts. "
        "To measure it : The rest of the search (mountlab resume)."
    )


def test_the_notebook_shows_the_answer_and_its_frames(tmp_path: Path) -> None:
    notebook, runs = paths.NOTEBOOKS / "65_capacity.ipynb", {"it": searched_run("ext4", "xfs", lost=(4,))}
    executed = nbformat.read(executed_here(notebook, {"run": "it"}, runs, tmp_path), as_version=4)
    pages = [output.data["text/html"] for cell in executed.cells for output in cell.get("outputs", ())]
    answer, capacities, points, trials = (plain(html.words_of(html.Html(page))) for page in pages)
    assert "ext4 takes 3 080 [2 930, 3 230] requests/s" in answer
    assert "3079.0" in capacities
    assert "p99" in points
    assert trials.endswith("3.99 ms")
    assert "t0048" in trials


@every_row(
    ("mean", "low", "high", "shown"),
    [
        (23_145, 19_495, 29_006, "23 100 [19 500, 29 000]"),
        (56_668, 11_889, 72_791, "57 000 [12 000, 73 000]"),
        (973, 926, 1021, "973 [926, 1 021]"),
        (60, 2, 2000, "60 [2, 2 000]"),
        (224, 200, 1722, "220 [200, 1 720]"),
        (973, 0, math.inf, "973"),
    ],
)
def test_a_rate_has_the_digits_that_its_interval_allows(mean: float, low: float, high: float, shown: str) -> None:
    assert plain(str(count_figures(mean, low, high))) == shown

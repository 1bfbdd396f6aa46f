"""What did not run, what gave no figure, and what was left out by somebody's word."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from mountlab.checks.base import Check, Doubt, Evidence, of_trials, standing
from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import in_one_line
from mountlab.core.findings import Exclusions
from mountlab.core.frames import pd
from mountlab.core.model import Cell, Sweep
from mountlab.core.units import format_seconds
from mountlab.filesystems import is_in_place
from mountlab.outcome.consequences import SET_ASIDE
from mountlab.programs import TOOLS
from mountlab.wording import exclusion_words, extension_words

NEAR_LIMIT = 0.5
"""A trial that is expected to take more than this share of its time limit may well run into it."""


def _by_cell(
    evidence: Evidence, *statuses: str, attempts: int = 0
) -> Iterator[tuple[Cell, pd.DataFrame, pd.DataFrame]]:
    """Yield each cell with trials that ended so, after so many attempts or more: these trials, and all of the cell.
    Cells in the order of these trials."""
    trials = evidence.trials
    chosen = trials["status"].isin(statuses) & (trials["attempts"] >= attempts)
    for cell, group in trials[chosen].groupby("cell", sort=False) if chosen.any() else ():
        yield evidence.sweep.combinations[str(cell)], group, trials[trials["cell"] == cell]


def failed_trials(evidence: Evidence) -> Iterator[Doubt]:
    """Trials that gave no figure.

    A trial gave no figure; an error where the cell has no other trial. One that failed for good sets its cell aside:
    its later trials are not run.
    """
    for cell, group, trials in _by_cell(evidence, "failed", "invalid"):
        reason = in_one_line(str(group.iloc[0]["reason"]))
        whole = not trials["status"].isin(("ok", "excluded")).any()
        later = _count_skipped(trials)
        yield Doubt.of_cell(
            cell,
            f"{len(group)} of its {len(trials)} trials gave no figure: {reason}. "
            + (f"It was set aside: {later} of its trials were not run any more. " if later else "")
            + ("It has no estimate." if whole else "The estimate rests on the others."),
            severity="error" if whole else "warning",
        )


def _count_skipped(trials: pd.DataFrame) -> int:
    """Return how many trials of a cell were not run, since an earlier one had failed for good."""
    return int(trials["reason"].astype(str).str.startswith(SET_ASIDE).sum())


def timed_out(evidence: Evidence) -> Iterator[Doubt]:
    """Trials that ran into their time limit: what the figure of their cell is then.

    A trial ran into `trial_timeout`. The figures of its cell are then medians over all its trials, or there is none.
    The plan foresees it where a trial is expected to take more than half of its limit.
    """
    limit = format_seconds(evidence.sweep.design.trial_timeout_s)
    for cell, group, trials in _by_cell(evidence, "timeout"):
        late, n = _counted(group), _counted(group) + len(evidence.counted.get(cell.id, ()))
        names, later = ", ".join(map(str, group["trial_id"])), _count_skipped(trials)
        key = "--timeout" if is_in_place(cell.filesystem) else "trial_timeout"
        yield Doubt.of_cell(
            cell,
            f"{late} of its {n} counted trials ran into the time limit of {limit} ({names}): they took at "
            f"least that long, and count as that. {_figure_with(late, n)} "
            + (f"All of its trials did, so that it was set aside: {later} were not run any more. " if later else "")
            + f"See raw/{group.iloc[0]['trial_id']} for what stalled; raise {key} only if the work takes so long.",
        )


def _counted(trials: pd.DataFrame) -> int:
    return int((~trials["warmup"].astype(bool)).sum())


def _figure_with(late: int, n: int) -> str:
    """Return what the figure of a cell is when so many of its trials ran into the limit."""
    if not late:
        return "They are of the warm-up, and count in no figure."
    if 2 * late < n:
        return (
            f"Its figures are medians of all {n}, those counting as worse than all others: a mean would leave out the "
            "slow ones."
        )
    return "No figure is given, as half of them or more did not end: only a bound."


def may_time_out(sweep: Sweep, _: BoxFacts) -> Iterator[Doubt]:
    """Trials that are expected to take nearly as long as they may."""
    limit_s = sweep.design.trial_timeout_s
    for cell in () if sweep.imported else sweep.cells:
        expected_s = TOOLS[cell.workload.tool].expected_s(cell.workload)
        if expected_s > NEAR_LIMIT * limit_s:
            yield Doubt.of_cell(
                cell,
                f"a trial is expected to take about {format_seconds(expected_s)}, and is ended after "
                f"{format_seconds(limit_s)} (design.trial_timeout). A trial that is ended has no value, and the figure "
                "of its cell is then a median, or none. Set trial_timeout to several times what a trial takes.",
            )


def retried_trials(evidence: Evidence) -> Iterator[Doubt]:
    """Trials that gave their figure only when they were tried again.

    A trial gave its figure only in a later attempt (`design.retries`). The first was killed, ran out of memory, or lost
    a client.
    """
    for cell, group, trials in _by_cell(evidence, "ok", attempts=2):
        names = [str(name) for name in group["trial_id"]]
        yield Doubt.of_cell(
            cell,
            f"{of_trials(names, trials)} the first attempt failed for a reason that may pass, and a later one gave the "
            f"figure: see raw/{names[0]}/attempt-1/reason. What made them fail may have slowed others.",
        )


def excluded_trials(evidence: Evidence) -> Iterator[Doubt]:
    """Trials that somebody has excluded, with the reason that was given, and what the figures are with them.

    `exclude.yml` beside the run names trials of the cell, each with its reason.
    """
    for cell, group, _ in _by_cell(evidence, "excluded"):
        named = "; ".join(f"{row.trial_id} ({row.reason})" for row in group.itertuples())
        left = len(evidence.counted.get(cell.id, ()))
        yield Doubt.of_cell(
            cell,
            f"By a person's decision these trials do not count: {named}. {left} are left. "
            f"{_with_them(evidence.exclusions, cell, [str(name) for name in group['trial_id']])}",
        )


def extended_run(sweep: Sweep, _: BoxFacts) -> Iterator[Doubt]:
    """Blocks that were added after a look at the results, and cells that were measured later than the others.

    `mountlab extend` added blocks to a finished run. A further caveat names each cell that was added, its first blocks,
    and whether any block holds it together with the baseline.
    """
    texts = [*extension_words.extended_texts(sweep), extension_words.corrected_text(sweep)]
    if sweep.extended:
        yield Doubt.of_run(" ".join(filter(None, texts)))
    apart = set(extension_words.uncompared(sweep))
    cells = sweep.combinations
    for name, stage in extension_words.late_cells(sweep).items():
        blocks = f"blocks {extension_words.numbers_text(stage.counted)} of {stage.at[:10]}"
        ratio = "It has no block together with the baseline, and is not compared with it."
        together = "Its ratios are made inside blocks that hold both sides."
        yield Doubt.of_cell(
            cells[name],
            f"It was measured later than the others, first in {blocks}. {ratio if name in apart else together}",
        )


def _with_them(exclusions: Exclusions, cell: Cell, names: Sequence[str]) -> str:
    """Say what the figures and the verdicts of a cell are with its excluded trials."""
    if unread := [name for name in names if name in exclusions.unread]:
        return f"What they change is not known: the raw output of {', '.join(unread)} was altered."
    figures = [figure for figure in exclusions.figures if figure.cell == cell.id]
    sentences = [f"With them the {exclusion_words.figure_text(figure)}." for figure in figures]
    changed = [ratio for ratio in exclusions.ratios if ratio.without.verdict != ratio.counted.verdict]
    sentences += [f"{exclusion_words.verdict_text(ratio)}." for ratio in changed]
    if exclusions.ratios and not changed:
        sentences.append("No verdict of the run depends on them.")
    return " ".join(sentences)


def skipped(evidence: Evidence) -> Iterator[Doubt]:
    """Cells that this box, or their file system, cannot run at all.

    A cell cannot run on this box, or on its file system at all (hugetlbfs without mmap, pmfs without its kernel).
    """
    skips = evidence.trials[evidence.trials["status"] == "skipped"]
    cells = skips[~skips["reason"].astype(str).str.startswith(SET_ASIDE)].drop_duplicates("cell")
    for filesystem, group in cells.groupby("filesystem", sort=False):
        for reason, of_reason in group.groupby("reason", sort=False):
            names = ", ".join(evidence.sweep.combinations[cell].workload.label for cell in of_reason["cell"])
            yield Doubt.of_filesystem(str(filesystem), f"{names}: not measured. {reason}.")


def left_out(sweep: Sweep, _: BoxFacts) -> Iterator[Doubt]:
    """File systems of the sweep that were not measured.

    A file system or a workload of the sweep was not measured.
    """
    if sweep.left_out:
        names = ", ".join(sweep.left_out)
        reasons = sorted({reason.partition(": ")[2] for reason in sweep.left_out.values()})
        yield Doubt.of_run(
            f"{names} were left out: {'; '.join(reasons)}. What could be written without that was "
            "measured in their place."
        )


def not_precise(evidence: Evidence) -> Iterator[Doubt]:
    """Cells that a stopping rule gave up before they were as precise as was asked.

    A stopping rule ended at `max` or at the budget, or a search at `max_trials`, and the cell was not as precise as
    required.
    """
    until = evidence.sweep.design.until
    for stop in evidence.stops:
        cell = evidence.sweep.combinations[stop.cell]
        search = cell.workload.search
        alone = until is not None and until.of == "comparisons" and math.isnan(stop.half_width)  # it has no ratio
        wanted = search.half_width if search else until.half_width if until else math.inf
        if stop.reason in ("max reached", "budget") and not (stop.half_width <= wanted or alone):
            key = "until.max" if stop.reason == "max reached" else "until.budget"
            measured = not math.isnan(stop.half_width)
            seen = f"± {stop.half_width:.1%} ({stop.metric})" if measured else "not known"
            right = "The interval is right, and wider than was wanted" if measured else "At most a bound is known"
            yield Doubt.of_cell(
                cell,
                f"after {stop.blocks} blocks the half width is {seen}, and ± {wanted:.1%} was asked for "
                f"({stop.reason}). {right}: raise {'capacity.max_trials' if search else key}, or make trials longer or "
                "the box quieter.",
            )


CHECKS = (
    Check(
        "failed-trials",
        failed_trials,
        "Read the reason beside it; mend the cause, then `mountlab resume` or run again.",
        watched="Read the reason beside it, mend the cause, and watch it again.",
        severities=("error", "warning"),
    ),
    Check(
        "timed-out",
        timed_out,
        "Find out what stalled. Raise `trial_timeout` only if the work takes that long.",
        watched="Find out what stalled. Raise `--timeout` only if the work takes that long.",
        foresee=may_time_out,
    ),
    Check(
        "retried",
        retried_trials,
        "Read why in the files of the first attempt; `retries: 0` in the design tries nothing again.",
        severities=("note",),
    ),
    Check(
        "excluded",
        excluded_trials,
        "Look at these trials, and see whether the answer is the same with them.",
    ),
    standing(
        "extended",
        extended_run,
        "Write the number of blocks, or a stopping rule (`until`), into the sweep before the first look.",
        severities=("note",),
    ),
    Check("skipped", skipped, "Choose another box, or another workload for this file system: the reason says which."),
    Check(
        "not-precise",
        not_precise,
        "Raise `until.max` or `until.budget`, make trials longer, or the box quieter.",
        severities=("note",),
    ),
    standing("left-out", left_out, "Give the box root or password-less sudo, or take a box that has what is missing."),
)

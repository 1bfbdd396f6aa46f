"""How far a run came that is not complete, and how to resume it, in sentences."""

from __future__ import annotations

from mountlab.analysis.answers import answering
from mountlab.analysis.run_view import RunView
from mountlab.core.frames import rows_of
from mountlab.core.numbers import counted
from mountlab.wording.verdicts import has_blocks

ONE_SIDED = "no block has figures of both sides of a comparison"
"""Why a run that was stopped has no answer."""


def so_far(run: RunView) -> str:
    """Return how far a run came that is running or was stopped; '' of a complete one."""
    if run.info.status == "complete":
        return ""
    if run.info.status == "running":
        return f"This run is not finished: {_blocks(run)} so far. A report after its end has all of them."
    return f"Stopped {_where(run)} Resume it: `mountlab resume {run.info.run_id}`."


def _where(run: RunView) -> str:
    """'before the first counted block; 3 warm-up trials were ok.', 'after 4 of 10 blocks.'"""
    if _any_counted(run):
        if _whole_blocks(run):
            return f"after {_blocks(run)}."
        count = int((~run.trials["warmup"].astype(bool)).sum())
        return f"in the first counted block; {counted(count, 'trial')} of it {'was' if count == 1 else 'were'} run."
    warm = int((run.trials["warmup"].astype(bool) & (run.trials["status"] == "ok")).sum())
    ok = f"{counted(warm, 'warm-up trial')} {'was' if warm == 1 else 'were'} ok" if warm else "no trial was ok"
    return f"before the first counted block; {ok}."


def nothing_compared_yet(run: RunView) -> str:
    """Return why a run that is not complete has no answer; '' where it has some ratio, or can have none."""
    if run.info.status == "complete":
        return ""
    if not _any_counted(run):
        return "no counted trial has a figure"
    compared = answering(run)
    if not compared or run.sweep.searches or any(map(has_blocks, compared)):
        return ""
    names = list(dict.fromkeys(run.estimates["filesystem"]))
    return f"only {names[0]} has been measured so far" if len(names) == 1 else ONE_SIDED


def _any_counted(run: RunView) -> bool:
    """Return whether any counted trial gave a figure, or a bound."""
    return bool((run.trials["status"].isin(("ok", "timeout")) & ~run.trials["warmup"].astype(bool)).any())


def _blocks(run: RunView) -> str:
    most = "at most " if run.sweep.design.until else ""
    return f"{len(_whole_blocks(run))} of {most}{counted(run.sweep.design.repeats, 'block')}"


def _whole_blocks(run: RunView) -> list[int]:
    """Return the counted blocks whose trials were all run or skipped."""
    rows = run.trials[~run.trials["warmup"].astype(bool)]
    present = set(rows_of(rows, "cell", "block"))
    cells_of: dict[int, set[str]] = {}
    for cell in run.sweep.cells:
        for block in run.sweep.blocks_of(cell.id):
            cells_of.setdefault(block, set()).add(cell.id)
    return [block for block, cells in cells_of.items() if all((cell, block) in present for cell in cells)]

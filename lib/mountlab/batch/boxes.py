"""One sweep on several boxes: the batch that runs it, what its runs say together, and the page on that.

The batch is one item a box, so that boxes are scheduled, resumed and reported as those of every batch are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from mountlab.analysis.compare.runs import RunComparison, compare_runs
from mountlab.batch.batch_file import SWEEP_NOTEBOOK, Batch, Item, on_each_box, over_boxes
from mountlab.batch.store import BatchDirectory
from mountlab.core import disk
from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import MountlabError, StoreError, in_one_line
from mountlab.core.numbers import rough_duration
from mountlab.core.safe_yaml import as_yaml
from mountlab.report import execute
from mountlab.results import journal, paths, store
from mountlab.runner import workflow
from mountlab.sweep.plan import Plan
from mountlab.sweep.plan_text import plan_json, plan_text
from mountlab.sweep.sweep_file import Resolved, on_box

SWEEPS = ".sweeps"
"""Below results/: sweeps as they were when they were begun, which the items of a batch name."""


def batch_of(resolved: Resolved, results: Path = paths.RESULTS) -> Batch:
    """Return a sweep with `boxes` as a batch. The sweep is kept below `results`, named by what is in it: the same
    sweep, begun again, is the same batch, which goes on where it stopped."""
    sweep = resolved.sweep
    text = as_yaml({key: value for key, value in resolved.parameters.items() if key != "boxes"}).encode()
    path = results / SWEEPS / sha256(text).hexdigest()[:12] / f"{sweep.name}.yml"
    disk.make_directory(path.parent)
    disk.replace_file(path, text)
    item = Item(id="", group="boxes", notebook=SWEEP_NOTEBOOK, sweep=str(path.resolve()))
    title = f"{' '.join(sweep.question.split())} On {len(sweep.boxes)} boxes."
    return on_each_box(Batch(name=sweep.name, title=title, items=(item,)), lambda _: sweep.boxes)


# ── the plan ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class PlannedBox:
    """What would run on one box, or why nothing can."""

    box: str
    made: tuple[Plan, BoxFacts] | None = None
    """The plan, and the facts of the box."""
    error: MountlabError | None = None


def plans(resolved: Resolved) -> list[PlannedBox]:
    """Return the plan of a sweep for each of its boxes. Connects to all and changes nothing; a box that cannot be
    reached, or cannot run it, is reported and delays no other."""
    rows = []
    for name in resolved.sweep.boxes:
        try:
            with workflow.planned(on_box(resolved, name), box=name) as session:
                rows.append(PlannedBox(name, (session.plan, session.facts)))
        except MountlabError as error:
            rows.append(PlannedBox(name, error=error))
    return rows


def plans_text(planned: Sequence[PlannedBox]) -> str:
    """Return each box in a line, then the plan of each, for the terminal."""
    width = max(len(row.box) for row in planned)
    lines = [f"one run on each of {len(planned)} boxes:"]
    for row in planned:
        outcome = f"cannot: {in_one_line(str(row.error))}"
        if row.made:
            plan, _ = row.made
            outcome = f"{len(plan.trials)} trials, about {rough_duration(plan.expected_s)}"
        lines.append(f"  {row.box:{width}}  {outcome}")
    lines += [f"\n── {row.box} ──\n\n{plan_text(*row.made)}" for row in planned if row.made]
    return "\n".join(lines)


def plans_json(planned: Sequence[PlannedBox]) -> dict[str, object]:
    """Return the plan of each box, or its error, by box."""
    return {row.box: plan_json(*row.made) if row.made else {"error": str(row.error)} for row in planned}


# ── what its runs say ────────────────────────────────────────────────────────────────────────────────────────────────


def is_batch(path: Path | str) -> bool:
    """Return whether a directory is that of a batch."""
    return (paths.locate(path) / "batch.json").is_file()


def measured(path: Path | str) -> tuple[list[Path], dict[str, str]]:
    """Return the runs of a batch that is one sweep on several boxes, and the boxes that have none, with the reason.

    Raises StoreError for another batch.
    """
    directory = BatchDirectory(paths.locate(path).resolve())
    groups = over_boxes(directory.batch.items)
    if len(groups) != 1:
        raise StoreError(
            "the batch is not one sweep on several boxes",
            where=disk.path_text(directory.path),
            got=f"{len(groups)} sweeps on several boxes",
            next_step="its page links to one report for each of them",
        )
    return _runs_of(directory, groups[0])


def _runs_of(directory: BatchDirectory, items: Sequence[Item]) -> tuple[list[Path], dict[str, str]]:
    runs: list[Path] = []
    missing: dict[str, str] = {}
    outcomes = directory.outcomes
    for item in items:
        run, outcome = directory.run_of(item, directory.path.parent), outcomes.get(item.id)
        if run and journal.read_journal(run):
            runs.append(run)
        else:
            why = outcome.reason if outcome and outcome.reason else "its run has not begun"
            missing[str(item.box)] = in_one_line(why)
    return runs, missing


def load_across(path: Path | str) -> RunComparison:
    """Return what the runs of such a batch say together. Raises StoreError, and PlanError where fewer than two boxes
    have figures."""
    runs, missing = measured(path)
    return compare_runs([store.load_run(run) for run in runs], factor="box", missing=missing)


def write_page(path: Path | str) -> Path:
    """Return the page across boxes of such a batch, and its path. Raises as `load_across` does."""
    runs, missing = measured(path)
    return execute.write_comparison(*runs, factor="box", missing=missing, results=paths.locate(path).resolve().parent)


def write_pages(directory: BatchDirectory) -> dict[str, str]:
    """Return the pages across boxes of every sweep of a batch that is run on two boxes or more: its label to the page,
    from the directory of the batch, or to the reason why there is none."""
    results, pages = directory.path.parent, {}
    done = {name for name, outcome in directory.outcomes.items() if outcome.state == "done"}
    for items in over_boxes(directory.batch.items):
        runs, missing = _runs_of(directory, items)
        label = replace(items[0], box=None).label
        if not runs and all(item.id in done for item in items):
            continue  # their notebook makes no runs
        try:
            page = execute.write_comparison(*runs, factor="box", missing=missing, results=results)
            pages[label] = f"../{page.relative_to(results)}"
        except MountlabError as error:
            pages[label] = in_one_line(str(error))
    return pages

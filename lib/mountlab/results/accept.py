"""Accept a run that was altered after it was written: run.json keeps the list of changes, and every report shows it.

Nothing is repaired and nothing is removed. The journal stays as it is; its chain goes on from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mountlab.core import chain
from mountlab.results import raw_sums, writer
from mountlab.results.altered import altered_raw
from mountlab.results.info import read_sweep
from mountlab.results.journal import Journal, altered, read_as_it_is
from mountlab.results.run_file import check_is_run, read_record, write_record

MOST = 20
"""Alterations that run.json names: a journal that another program has written again has one in each line."""


def accept(path: Path) -> list[str]:
    """Accept a run as it is now, and return what was found altered; nothing where nothing was.

    Raises RunInUse where another process writes to the run, and StoreError for a journal that cannot be read.
    """
    check_is_run(path)
    with writer.held_run(path):
        record = read_record(path)
        journal = read_as_it_is(path)
        in_journal = altered(path, journal)
        problems = altered_raw(path, read_sweep(path).sweep, journal, journal.trials)
        in_raw = {problem.name: problem for problem in problems if (path / "raw" / problem.name).is_dir()}
        alterations = [f"{problem.where}: {problem.what}" for problem in (*in_journal, *in_raw.values())]
        if len(alterations) > MOST:
            alterations[MOST:] = [f"and {len(alterations) - MOST} more"]
        if alterations:
            changed = _accepted(record, journal, alterations, whole=bool(in_journal))
            raw = {name: raw_sums.digest_on_disk(path / "raw" / name) for name in in_raw}
            changed[chain.ALTERED][-1]["raw"] = raw
            write_record(path, changed)
    return alterations


def _accepted(record: Mapping[str, Any], journal: Journal, alterations: list[str], *, whole: bool) -> dict[str, Any]:
    """run.json with one more entry. `whole`: the journal itself was altered, and not only raw output."""
    before = list(record.get(chain.ALTERED, ()))
    at, count = datetime.now(UTC).isoformat(timespec="seconds"), len(journal.lines)
    reached = {"trials": count, "digest": chain.digest(journal.lines)}
    if not whole:
        reached = {key: value for key, value in (before[-1] if before else {}).items() if key in reached}
    changed = {**record, chain.ALTERED: [*before, {"at": at, "found": alterations, **reached}]}
    if whole:
        changed[chain.ENDING] = {"trials": count, "head": reached["digest"]}
    if journal.followed.missing:
        changed["status"] = "interrupted"  # `resume` measures what is missing
    return chain.bound(changed) if chain.KEY in record else changed

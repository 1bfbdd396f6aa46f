"""The entries of the index: one for each run, comparison, batch, bundle, history or change.

What a run says is taken from its small files (run.json, comparisons.csv, caveats.csv), as they were written when its
figures were last derived; nothing is recomputed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from mountlab.analysis.progress import ONE_SIDED
from mountlab.core.errors import StoreError
from mountlab.core.findings import COMPARISON_COLUMNS, Comparison, Severity, Verdict
from mountlab.core.model import Design
from mountlab.core.numbers import counted
from mountlab.core.run_info import RunInfo
from mountlab.wording.caveats import caveat_counts
from mountlab.wording.verdicts import (
    comparison_sentence,
    has_blocks,
    has_interval,
    nothing_compared,
    strongest_first,
)

CsvRow = Mapping[str, str]
"""A row of a CSV file."""
SEVERITIES: tuple[Severity, ...] = get_args(Severity)[::-1]
"""The worst first."""
KINDS = {
    "run": "runs", "comparison": "comparisons", "batch": "batches", "bundle": "published bundles",
    "history": "histories", "change": "changes",
}  # fmt: skip
_TYPES = {name: kind for name, kind in COMPARISON_COLUMNS.items() if name != "factors"}
"""Column of comparisons.csv to its type; all others are factors."""


@dataclass(frozen=True, kw_only=True)
class IndexEntry:
    """One line of the index: a directory with a page, or one that should have one."""

    path: str
    """Of its directory, below the directory of the index."""
    kind: str = "run"
    title: str = ""
    """The question, for a run."""
    box: str = ""
    sweep: str = ""
    created_at: str = ""
    """ISO 8601."""
    n: str = ""
    sentence: str = ""
    """The strongest verdict, as a sentence."""
    verdicts: tuple[str, ...] = ()
    """All that fell."""
    caveats: Mapping[str, int] = field(default_factory=dict)
    """Severity to how many kinds of caveats there are."""
    status: str = "complete"
    page: str = ""
    """Name of the page in the directory; '' where there is none yet."""
    next_step: str = ""
    """What makes the page, where there is none; of an interrupted run what resumes it."""
    problem: str = ""
    """Why it has no summary."""


def entry_of_run(
    path: str, info: RunInfo, comparisons: Sequence[CsvRow] | None, caveats: Iterable[CsvRow], **page: str
) -> IndexEntry:
    """Return the index entry of a run. `comparisons` is None where nothing was derived yet; `page`: page, next_step.

    Raises KeyError, TypeError or ValueError for files that are not what Mountlab writes.
    """
    parameters = info.parameters
    family = [comparison_of(row) for row in comparisons or ()]
    status = info.status if info.imported is None else "imported"
    return IndexEntry(
        path=path,
        title=" ".join(str(parameters.get("question", "")).split()) or info.run_id,
        box=info.box_name,
        sweep=str(parameters.get("name", "")),
        created_at=info.created_at,
        n=_blocks(family),
        sentence=_sentence(parameters, family, derived=comparisons is not None),
        verdicts=tuple(dict.fromkeys(comparison.verdict for comparison in family if has_interval(comparison))),
        caveats=caveat_counts((_severity(row), row["code"]) for row in caveats),
        status=status,
        **page,
    )


def comparison_of(row: CsvRow) -> Comparison:
    """Return a row of comparisons.csv as the comparison that it was written from."""
    columns: dict[str, Any] = {name: float(row.get(name) or "nan") for name, kind in _TYPES.items() if kind is float}
    columns |= {name: row[name] for name, kind in _TYPES.items() if kind is str and name not in ("noise", "better")}
    if row["verdict"] not in get_args(Verdict):
        raise ValueError(f"no verdict: {row['verdict']!r}")
    factors = {key: text for key, text in row.items() if key not in _TYPES and text}
    needed = int(float(row["needed"])) if row["needed"] else None
    late = int(row.get("censored") or 0)  # runs of before have no such column
    columns |= {name: row.get(name) or "" for name in ("noise", "better")}  # nor these; `better` only of own metrics
    return Comparison.of_columns(factors=factors, n=int(row["n"]), needed=needed, censored=late, **columns)


def _severity(row: CsvRow) -> str:
    if row["severity"] not in SEVERITIES:
        raise ValueError(f"no severity: {row['severity']!r}")
    return row["severity"]


def _blocks(comparisons: Sequence[Comparison]) -> str:
    counts = sorted({comparison.n for comparison in comparisons})
    if not counts:
        return ""
    return counted(counts[0], "block") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} blocks"


def _sentence(parameters: Mapping[str, Any], comparisons: Sequence[Comparison], *, derived: bool) -> str:
    """Return the strongest verdict, as the report tells it."""
    if not derived:
        return ""
    if not comparisons:
        why = nothing_compared(parameters.get("baseline"), len(parameters.get("filesystems") or ()))
        return f"{why.partition(';')[0].rstrip('.')}."  # the rest is about what stands below, in a report
    if not any(map(has_blocks, comparisons)):
        return f"No answer yet: {ONE_SIDED}."
    design = parameters.get("design") or {}
    smallest = float(design.get("smallest_effect", Design.smallest_effect))
    sentence = comparison_sentence(strongest_first(comparisons)[0], smallest_effect=smallest)
    return sentence if len(comparisons) == 1 else f"Strongest of {len(comparisons)}: {sentence}"


def entry_of_json(path: str, raw: Any) -> IndexEntry:
    """Return what an entry.json says: of anything in the index that is no run. Raises StoreError for what is none."""
    is_entry = isinstance(raw, dict) and raw.get("kind") in KINDS and isinstance(raw.get("title"), str)
    if not is_entry:
        got = raw.get("kind") if isinstance(raw, dict) else raw
        raise StoreError(
            "not an entry of the index", where=f"{path}/entry.json", got=repr(got)[:80], allowed=", ".join(KINDS)
        )
    counts: dict[str, int] = {severity: int((raw.get("caveats") or {}).get(severity, 0)) for severity in SEVERITIES}
    if min(counts.values()) < 0:
        raise StoreError("a number of caveats", where=f"{path}/entry.json", got=str(counts), allowed="0 or more")
    verdicts = [verdict for verdict in raw.get("verdicts") or () if verdict in get_args(Verdict)]
    return IndexEntry(
        path=path,
        kind=raw["kind"],
        title=raw["title"],
        created_at=str(raw.get("created_at", "")),
        box=str(raw.get("box") or ""),
        sweep=str(raw.get("sweep") or ""),
        verdicts=tuple(verdicts),
        sentence=str(raw.get("verdict", "")),
        caveats=counts,
        page=str(raw.get("page", "")),
        n=counted(len(raw.get("runs") or ()), "run"),
    )

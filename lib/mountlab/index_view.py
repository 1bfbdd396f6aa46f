"""The list of all runs, comparisons, batches and bundles: what is said of each, and the page of it.

What a run says is taken from its small files (run.json, comparisons.csv, caveats.csv), as they were written when its
figures were last derived; nothing is computed anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from mountlab import html, words
from mountlab.errors import StoreError
from mountlab.html import Html
from mountlab.model import Comparison, Design, Severity, Verdict

Row = Mapping[str, str]
"""A row of a CSV file."""
SEVERITIES: tuple[Severity, ...] = get_args(Severity)[::-1]
"""The worst first."""
KINDS = {
    "run": "runs", "comparison": "comparisons", "batch": "batches", "bundle": "published bundles",
    "history": "histories", "change": "changes",
}  # fmt: skip
_OF_A_ROW = (
    "baseline", "candidate", "workload", "tool", "metric", "label", "ratio", "low", "high", "n", "level", "p",
    "p_adjusted", "verdict", "method", "low_all", "high_all", "low_same", "high_same",
    "level_same", "needed", "censored", "better",
)  # fmt: skip
"""Columns of comparisons.csv; all others are factors."""


@dataclass(frozen=True, kw_only=True)
class Entry:
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
    said: str = ""
    """The strongest verdict, as a sentence."""
    verdicts: tuple[str, ...] = ()
    """All that fell."""
    caveats: Mapping[str, int] = field(default_factory=dict)
    """Severity to number."""
    status: str = "complete"
    page: str = ""
    """Name of the page in the directory; '' where there is none yet."""
    next_step: str = ""
    """What makes the page, where there is none."""
    problem: str = ""
    """Why nothing can be said of it."""


def entry_of_run(
    path: str, info: Mapping[str, Any], comparisons: Sequence[Row] | None, caveats: Iterable[Row], **page: str
) -> Entry:
    """What the index says of a run. `comparisons` is None where nothing was derived yet; `page`: page, next_step.

    Raises KeyError, TypeError or ValueError for files that are not what Mountlab writes.
    """
    asked = info["parameters"]
    compared = [words.together(comparison_of(row)) for row in comparisons or ()]
    status = "imported" if "imported" in info else str(info["status"])
    return Entry(
        path=path, title=" ".join(str(asked.get("question", "")).split()) or str(info["run_id"]),
        box=str(info["box"]["name"]), sweep=str(asked.get("name", "")), created_at=str(info.get("created_at") or ""),
        n=_blocks(compared), said=_said(asked, compared, derived=comparisons is not None),
        verdicts=tuple(dict.fromkeys(each.verdict for each in compared if words.has_interval(each))),
        caveats=Counter(_severity(row) for row in caveats), status=status, **page,
    )  # fmt: skip


def comparison_of(row: Row) -> Comparison:
    """A row of comparisons.csv as the comparison that it was written from."""
    numbers = (
        "ratio",
        "low",
        "high",
        "level",
        "p",
        "p_adjusted",
        "low_all",
        "high_all",
        "low_same",
        "high_same",
        "level_same",
    )
    known: dict[str, Any] = {name: float(row.get(name) or "nan") for name in numbers}
    known |= {name: row[name] for name in ("baseline", "candidate", "workload", "tool", "metric", "label", "method")}
    if row["verdict"] not in get_args(Verdict):
        raise ValueError(f"no verdict: {row['verdict']!r}")
    factors = {key: text for key, text in row.items() if key not in _OF_A_ROW and text}
    needed = int(float(row["needed"])) if row["needed"] else None
    late = int(row.get("censored") or 0)  # runs of before have no such column
    known |= {"verdict": row["verdict"], "better": row.get("better") or ""}  # only of metrics that a sweep defines
    return Comparison(factors=factors, n=int(row["n"]), needed=needed, censored=late, **known)


def _severity(row: Row) -> str:
    if row["severity"] not in SEVERITIES:
        raise ValueError(f"no severity: {row['severity']!r}")
    return row["severity"]


def _blocks(compared: Sequence[Comparison]) -> str:
    counts = sorted({each.n for each in compared})
    if not counts:
        return ""
    return words.counted(counts[0], "block") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} blocks"


def _said(asked: Mapping[str, Any], compared: Sequence[Comparison], *, derived: bool) -> str:
    """The strongest verdict, as the report tells it."""
    if not derived:
        return ""
    if not compared:
        return words.nothing_compared(asked.get("baseline"), len(asked.get("filesystems") or ()))
    design = asked.get("design") or {}
    smallest = float(design.get("smallest_effect", Design.smallest_effect))
    sentence = words.comparison_sentence(words.strongest_first(compared)[0], smallest_effect=smallest)
    return sentence if len(compared) == 1 else f"Strongest of {len(compared)}: {sentence}"


def entry_of_json(path: str, raw: Any) -> Entry:
    """What an entry.json says: of anything in the index that is no run. Raises StoreError for what is none."""
    known = isinstance(raw, dict) and raw.get("kind") in KINDS and isinstance(raw.get("title"), str)
    if not known:
        got = raw.get("kind") if isinstance(raw, dict) else raw
        raise StoreError(
            "not an entry of the index", where=f"{path}/entry.json", got=repr(got)[:80], allowed=", ".join(KINDS)
        )
    counts: dict[str, int] = {each: int((raw.get("caveats") or {}).get(each, 0)) for each in SEVERITIES}
    if min(counts.values()) < 0:
        raise StoreError("a number of caveats", where=f"{path}/entry.json", got=str(counts), allowed="0 or more")
    verdicts = [each for each in raw.get("verdicts") or () if each in get_args(Verdict)]
    return Entry(
        path=path, kind=raw["kind"], title=raw["title"], created_at=str(raw.get("created_at", "")),
        box=str(raw.get("box") or ""), sweep=str(raw.get("sweep") or ""), verdicts=tuple(verdicts),
        said=str(raw.get("verdict", "")), caveats=counts,
        page=str(raw.get("page", "")), n=words.counted(len(raw.get("runs") or ()), "run"),
    )  # fmt: skip


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────────

_LIST: Any = html.ENVIRONMENT.from_string(
    """
{%- macro choice(name, label, values) %}
{% if values | length > 1 %}
<div><label for="by-{{ name }}">{{ label }}</label><select name="{{ name }}" id="by-{{ name }}">
<option value="">all</option>
{% for value, text in values.items() %}<option value="{{ value }}">{{ text }}</option>{% endfor %}</select></div>
{% endif %}
{% endmacro %}

{%- macro filters(choices) %}
<div class="filters" role="search" hidden>
<div class="search"><label for="search">Search</label>
<input type="search" id="search" autocomplete="off" spellcheck="false"></div>
{% for each in choices %}{{ choice(*each) }}{% endfor %}
<button type="button">Show all</button>
<p role="status"></p></div>
{% endmacro %}

{%- macro entry(each) %}
<tr data-kind="{{ each.kind }}" data-box="{{ each.box }}" data-sweep="{{ each.sweep }}" data-verdict="
{{- each.verdicts | join(' ') or each.nothing }}" data-severity="{{ each.severities | join(' ') or each.nothing }}">
<th scope="row">
<p class="question">
{%- if each.link %}<a href="{{ each.link }}">{{ each.title }}</a>{% else %}{{ each.title }}{% endif %}</p>
{% if each.problem %}<p class="broken">Cannot be read: {{ each.problem }}</p>{% endif %}
{% if each.said %}<p>{{ each.said }}</p>{% endif %}
{% if each.next_step %}<p>No report yet: <code>{{ each.next_step }}</code></p>{% endif %}
<p class="id">{% if each.kind != "run" %}{{ each.kind | capitalize }}: {% endif %}
{%- if each.title != each.path %}{{ each.path }}{% endif %}</p></th>
<td data-name="Box">{{ each.box }}</td>
<td class="when">{{ each.day }}</td>
<td data-name="n" class="count">{{ each.n }}</td>
<td data-sort="{{ each.weight }}">
{%- for severity, count in each.counts %}<span class="caveat-count {{ severity }}">{{ count }}</span>
{%- if not loop.last %}<br>{% endif %}{% endfor %}</td>
<td>{{ each.status }}</td></tr>
{% endmacro %}

{%- macro list(caption, entries) %}
<table class="entries"><caption>{{ caption }}</caption>
<thead><tr><th scope="col">Question and answer</th><th scope="col">Box</th><th scope="col">Date, UTC</th>
<th scope="col">n</th><th scope="col">Caveats</th><th scope="col">Status</th></tr></thead>
<tbody>
{% for each in entries %}{{ entry(each) }}{% endfor %}
</tbody></table>
{% endmacro %}

{%- macro link(path) %}./{{ path | urlencode }}{% endmacro %}
"""
).module


def body(entries: Sequence[Entry]) -> Html:
    """The page between its header and its end: the newest first, with filters where a script may run."""
    title = html.heading("What was measured, and what it said", level=1)
    if not entries:
        return html.joined(title, html.paragraph("Nothing was measured yet. make demo does, in two minutes."))
    told = [_told(each) for each in sorted(entries, key=lambda each: (each.created_at, each.path), reverse=True)]
    counts = Counter(each.kind for each in entries if not each.problem)
    named = [f"{counts[kind]} {kind if counts[kind] == 1 else plural}" for kind, plural in _named(counts)]
    filters = Html(str(_LIST.filters(_choices(entries))))
    table = Html(str(_LIST.list(f"{words.listed(named)}; the newest first", told)))
    return html.joined(title, _broken(entries), filters, table)


def _named(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    return [(kind, plural) for kind, plural in KINDS.items() if counts[kind]]


def _broken(entries: Sequence[Entry]) -> html.Text:
    count = sum(bool(each.problem) for each in entries)
    said = f"{count} of {len(entries)} cannot be read; each says why."
    return html.paragraph(said, kind="alert error") if count else ""


def _told(entry: Entry) -> dict[str, Any]:
    """An entry as the list shows it."""
    present = {severity: entry.caveats.get(severity, 0) for severity in SEVERITIES if entry.caveats.get(severity)}
    link = str(_LIST.link(f"{entry.path}/{entry.page}")) if entry.page and not entry.problem else ""
    return {
        **entry.__dict__, "link": link, "title": entry.title or entry.path, "severities": list(present),
        "day": entry.created_at[:16].replace("T", " "),
        "counts": [(each, f"{words.SEVERITY_WORDS[each]}: {count}") for each, count in present.items()],
        "weight": sum(entry.caveats.get(each, 0) * 1000**place for place, each in enumerate(SEVERITIES[::-1])),
        "status": "broken" if entry.problem else entry.status,
        "nothing": "unknown" if _unknown(entry) else "none",
    }  # fmt: skip


def _unknown(entry: Entry) -> bool:
    """Whether nothing can be said of its verdicts and caveats yet."""
    return bool(entry.problem) or (entry.kind == "run" and not entry.said)


def _choices(entries: Sequence[Entry]) -> list[tuple[str, str, dict[str, str]]]:
    """What the list can be narrowed by: name, label, and the values that occur."""
    known = [entry for entry in entries if not _unknown(entry)]
    verdicts = {each for entry in known for each in entry.verdicts or ("none",)}
    severities = {each for entry in entries for each in SEVERITIES if entry.caveats.get(each)}
    without = {"none"} if any(not any(entry.caveats.values()) for entry in known) else set()
    kinds = {entry.kind for entry in entries}
    return [
        ("kind", "Kind", {kind: plural for kind, plural in KINDS.items() if kind in kinds}),
        ("box", "Box", {each: each for each in sorted({entry.box for entry in entries if entry.box})}),
        ("sweep", "Sweep", {each: each for each in sorted({entry.sweep for entry in entries if entry.sweep})}),
        ("verdict", "Verdict", {each: each for each in (*get_args(Verdict), "none") if each in verdicts}),
        ("severity", "Caveats", {
            **{each: words.SEVERITY_WORDS[each] for each in SEVERITIES if each in severities},
            **dict.fromkeys(without, "no caveats"),
        }),
    ]  # fmt: skip

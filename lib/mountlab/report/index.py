"""The list of all runs, comparisons, batches and bundles: a summary of each, and its page.

What a run says is taken from its small files (run.json, comparisons.csv, caveats.csv), as they were written when its
figures were last derived; nothing is recomputed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, get_args

from mountlab.core.findings import Verdict
from mountlab.core.numbers import listed
from mountlab.report import html
from mountlab.report.html import Html
from mountlab.results.entries import KINDS, SEVERITIES, IndexEntry
from mountlab.wording.caveats import SEVERITY_WORDS

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
{% if each.sentence %}<p>{{ each.sentence }}</p>{% endif %}
{% if each.next_step %}
<p>{{ "To resume it" if each.page else "No report yet" }}: <code>{{ each.next_step }}</code></p>
{% endif %}
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


def body(entries: Sequence[IndexEntry]) -> Html:
    """Return the page between its header and its end: the newest first, with filters where a script may run."""
    title = html.heading("What was measured, and what it said", level=1)
    if not entries:
        return html.joined(title, html.paragraph("Nothing was measured yet. mountlab demo does, in two minutes."))
    rows = [_row(entry) for entry in sorted(entries, key=lambda entry: (entry.created_at, entry.path), reverse=True)]
    counts = Counter(entry.kind for entry in entries if not entry.problem)
    present = ((counts[kind], kind, plural) for kind, plural in KINDS.items() if counts[kind])
    kinds = [f"{count} {kind if count == 1 else plural}" for count, kind, plural in present]
    filters = Html(_LIST.filters(_choices(entries)))
    table = Html(_LIST.list(f"{listed(kinds)}; the newest first", rows))
    count = sum(bool(entry.problem) for entry in entries)
    broken = f"{count} of {len(entries)} cannot be read; each says why." if count else ""
    return html.joined(title, html.paragraph(broken, kind="alert error") if count else "", filters, table)


def _row(entry: IndexEntry) -> dict[str, object]:
    """Return an entry as the list shows it."""
    present = {severity: entry.caveats.get(severity, 0) for severity in SEVERITIES if entry.caveats.get(severity)}
    link = str(_LIST.link(f"{entry.path}/{entry.page}")) if entry.page and not entry.problem else ""
    return {
        **entry.__dict__,
        "link": link,
        "title": entry.title or entry.path,
        "severities": list(present),
        "day": entry.created_at[:16].replace("T", " "),
        "counts": [(severity, f"{SEVERITY_WORDS[severity]}: {count}") for severity, count in present.items()],
        "weight": sum(entry.caveats.get(name, 0) * 1000**place for place, name in enumerate(SEVERITIES[::-1])),
        "status": "broken" if entry.problem else entry.status,
        "nothing": "unknown" if _unknown(entry) else "none",
    }


def _unknown(entry: IndexEntry) -> bool:
    """Return whether its verdicts and caveats are unknown yet."""
    return bool(entry.problem) or (entry.kind == "run" and not entry.sentence)


def _choices(entries: Sequence[IndexEntry]) -> list[tuple[str, str, dict[str, str]]]:
    """Return what the list can be narrowed by: name, label, and the values that occur."""
    readable = [entry for entry in entries if not _unknown(entry)]
    verdicts = {verdict for entry in readable for verdict in entry.verdicts or ("none",)}
    severities = [name for name in SEVERITIES if any(entry.caveats.get(name) for entry in entries)]
    words = {name: SEVERITY_WORDS[name] for name in severities}
    without = {"none": "no caveats"} if any(not any(entry.caveats.values()) for entry in readable) else {}
    kinds = {entry.kind for entry in entries}
    return [
        ("kind", "Kind", {kind: plural for kind, plural in KINDS.items() if kind in kinds}),
        ("box", "Box", {box: box for box in sorted({entry.box for entry in entries if entry.box})}),
        ("sweep", "Sweep", {sweep: sweep for sweep in sorted({entry.sweep for entry in entries if entry.sweep})}),
        ("verdict", "Verdict", {verdict: verdict for verdict in (*get_args(Verdict), "none") if verdict in verdicts}),
        ("severity", "Caveats", words | without),
    ]

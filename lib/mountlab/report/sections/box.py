"""The box: its facts in groups, named for people. What the box does not tell is one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mountlab.analysis.run_view import RunView
from mountlab.core import numbers
from mountlab.core.box_facts import FACTS, SECTIONS, BoxFacts, InstalledProgram, fact_of
from mountlab.core.box_facts.rights import ALL, NO_LIMIT
from mountlab.core.fact_words import fact_name, fact_text, heading, mitigation_text, part_name
from mountlab.core.groups import by_key
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Rows, Text

_TABLES = ("programs", "block_devices", "disk_settings", "clients", "stated")
"""Facts that have a table of their own, or are shown elsewhere."""
_MOST_PARTS = 6
"""A fact with more values than these lists them behind a summary."""
_OF_A_CLIENT = ("hostname", "os", "kernel", "cpu_model", "cpus", "memory_bytes")


def box(run: RunView) -> Html:
    """Return what the box is, as it was found when the run began."""
    return facts(run.info.facts)


def facts(box_facts: BoxFacts) -> Html:
    """Return the facts about a box by section, its disks, its programs, its clients, and what it does not tell."""
    record = box_facts.as_record()
    sections = []
    for section in SECTIONS:
        keys = [key for key in {**FACTS, **record} if fact_of(key).section == section and key not in _TABLES]
        rows = {heading(fact_name(key)): _shown(key, record[key]) for key in keys if _says(record.get(key), key)}
        if rows:
            sections.append(html.joined(html.heading(section, level=4), html.definitions(rows)))
    tables = [_disks(box_facts), _programs(box_facts.programs.installed), _clients(box_facts.clients)]
    if not sections:
        return html.joined(html.paragraph("Nothing is known of the box itself."), *tables)
    unknown = [fact_name(key) for key, value in record.items() if value is None]
    note = html.paragraph(f"The box does not tell: {', '.join(unknown)}.", kind="meta") if unknown else ""
    return html.joined(html.columns(*sections), *tables, note)


# --- sections ---------------------------------------------------------------------------------------------------------


def _says(value: object, key: str) -> bool:
    """Return whether there is something; of nothing there are also 0 bytes."""
    return value not in (None, "", {}, [], ()) and not (value == 0 and key.endswith("_bytes"))


def _shown(key: str, value: object) -> Text:
    """Return a fact, its values behind a summary where they are many."""
    if not isinstance(value, Mapping):
        return fact_text(key, value)
    if key == "session_limits":  # the limits that there are, and in a word what has none
        free = [part_name(key, part) for part, limit in value.items() if limit in (NO_LIMIT, ALL)]
        limits = {part: limit for part, limit in value.items() if limit not in (NO_LIMIT, ALL)}
        none = f"no limit of {numbers.listed(free)}" if free else ""
        return "; ".join(filter(None, (fact_text(key, limits) if limits else "", none)))
    if len(value) <= _MOST_PARTS:
        return fact_text(key, value)
    summary = numbers.counted(len(value), "setting")
    if key == "cpu_mitigations":  # '2 on, 1 off (retbleed), 15 not affected'
        states = by_key((mitigation_text(str(state)).partition(" (")[0], name) for name, state in value.items())
        counts = []
        for state, names in sorted(states.items(), reverse=True):
            counts.append(f"{len(names)} {state}" + ("" if state == "not affected" else f" ({', '.join(names)})"))
        summary = ", ".join(counts)
    parts = (
        f"{part_name(key, str(part))}: {fact_text(key, part_value, str(part))}" for part, part_value in value.items()
    )
    return html.details(summary, html.items(parts))


# --- tables -----------------------------------------------------------------------------------------------------------


def _disks(box_facts: BoxFacts) -> Text:
    """Return the block devices, with the columns in which something is known of one of them."""
    devices = [device.as_record() for device in box_facts.storage.block_devices or ()]
    for device in devices:
        if settings := (box_facts.storage.settings or {}).get(device["name"]):
            device |= settings.as_record()
    columns = {key: None for device in devices for key in device if _says(device[key], key)}
    if not columns:
        return ""
    rows = [
        [fact_text(key, device[key]) if _says(device.get(key), key) else "" for key in columns] for device in devices
    ]
    head = [heading(part_name("block_devices", key)) for key in columns]
    return html.table(head, [Rows(rows)], caption="Block devices of the box")


def _programs(programs: Mapping[str, InstalledProgram]) -> Text:
    rows = [[name, program.version or "", program.path or ""] for name, program in programs.items()]
    head: Head = ["Program", "Version", Column("Path", "code")]
    table = html.table(head, [Rows(rows)], caption="Programs on the box")
    return html.details(f"{numbers.counted(len(rows), 'program')} on the box", table) if rows else ""


def _clients(clients: Mapping[str, BoxFacts]) -> Text:
    """Return what the further boxes are from which workloads were driven."""
    rows: Sequence[Sequence[Text]] = [
        [name, *(fact_text(key, client.value(key)) for key in _OF_A_CLIENT)] for name, client in clients.items()
    ]
    head = ["Client", *(heading(fact_name(key)) for key in _OF_A_CLIENT)]
    return html.table(head, [Rows(rows)], caption="Clients") if rows else ""

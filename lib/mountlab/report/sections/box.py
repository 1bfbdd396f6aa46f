"""The box: its facts in groups, named for people. What the box does not tell is one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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


def facts(found: BoxFacts) -> Html:
    """Return the facts about a box by section, its disks, its programs, its clients, and what it does not tell."""
    record = found.as_record()
    sections = [part for section in SECTIONS if (part := _section(section, record))]
    tables = [_disks(found), _programs(found.programs.installed), _clients(found.clients)]
    known = html.columns(*sections) if sections else html.paragraph("Nothing is known of the box itself.")
    return html.joined(known, *tables, _unknown(record) if sections else "")


# --- sections ---------------------------------------------------------------------------------------------------------


def _section(section: str, record: Mapping[str, Any]) -> Text:
    """Return the facts of one section that say something, in the order of FACTS."""
    keys = [key for key in {**FACTS, **record} if fact_of(key).section == section and key not in _TABLES]
    rows = {heading(fact_name(key)): _shown(key, record[key]) for key in keys if _says(record.get(key), key)}
    return html.joined(html.heading(section, level=4), html.definitions(rows)) if rows else ""


def _says(value: object, key: str) -> bool:
    """Return whether there is something; of nothing there are also 0 bytes."""
    return value not in (None, "", {}, [], ()) and not (value == 0 and key.endswith("_bytes"))


def _shown(key: str, value: object) -> Text:
    """Return a fact, its values behind a summary where they are many."""
    if not isinstance(value, Mapping):
        return fact_text(key, value)
    if key == "session_limits":
        return _limits(value)
    if len(value) <= _MOST_PARTS:
        return fact_text(key, value)
    parts = (f"{part_name(key, str(part))}: {fact_text(key, each, str(part))}" for part, each in value.items())
    return html.details(_summary(key, value), html.items(parts))


def _limits(value: Mapping[str, Any]) -> str:
    """Return the limits that there are, and in a word what has none."""
    free = [part_name("session_limits", part) for part, each in value.items() if each in (NO_LIMIT, ALL)]
    held = {part: each for part, each in value.items() if each not in (NO_LIMIT, ALL)}
    none = f"no limit of {numbers.listed(free)}" if free else ""
    return "; ".join(filter(None, (fact_text("session_limits", held) if held else "", none)))


def _summary(key: str, value: Mapping[str, Any]) -> str:
    """'2 on, 1 off (retbleed), 15 not affected', or how many values there are."""
    if key != "cpu_mitigations":
        return numbers.counted(len(value), "setting")
    states = by_key((mitigation_text(str(said)).partition(" (")[0], name) for name, said in value.items())
    named = {state: "" if state == "not affected" else f" ({', '.join(names)})" for state, names in states.items()}
    return ", ".join(f"{len(states[state])} {state}{named[state]}" for state in sorted(states, reverse=True))


def _unknown(record: Mapping[str, Any]) -> Text:
    """Return one sentence for all that was asked for and is not known."""
    unknown = [fact_name(key) for key, value in record.items() if value is None]
    return html.paragraph(f"The box does not tell: {', '.join(unknown)}.", kind="meta") if unknown else ""


# --- tables -----------------------------------------------------------------------------------------------------------


def _disks(found: BoxFacts) -> Text:
    """Return the block devices, with the columns in which something is known of one of them."""
    settings = found.storage.settings or {}
    devices = [
        {**device.as_record(), **(settings[device.name].as_record() if device.name in settings else {})}
        for device in found.storage.block_devices or ()
    ]
    columns = {key: None for device in devices for key in device if _says(device[key], key)}
    if not columns:
        return ""
    rows = [
        [fact_text(key, device[key]) if _says(device.get(key), key) else "" for key in columns] for device in devices
    ]
    head = [heading(part_name("block_devices", key)) for key in columns]
    return html.table(head, [Rows(rows)], caption="Block devices of the box")


def _programs(programs: Mapping[str, InstalledProgram]) -> Text:
    rows = [[name, own.version or "", own.path or ""] for name, own in programs.items()]
    head: Head = ["Program", "Version", Column("Path", "code")]
    listed = html.table(head, [Rows(rows)], caption="Programs on the box")
    return html.details(f"{numbers.counted(len(rows), 'program')} on the box", listed) if rows else ""


def _clients(clients: Mapping[str, BoxFacts]) -> Text:
    """Return what the further boxes are from which workloads were driven."""
    rows: Sequence[Sequence[Text]] = [
        [name, *(fact_text(key, own.value(key)) for key in _OF_A_CLIENT)] for name, own in clients.items()
    ]
    head = ["Client", *(heading(fact_name(key)) for key in _OF_A_CLIENT)]
    return html.table(head, [Rows(rows)], caption="Clients") if rows else ""

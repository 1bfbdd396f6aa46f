"""What was run, word by word: how each file system was made and mounted, and the command of each cell."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from mountlab.analysis.commands import CellCommand, cell_commands, general, general_mountinfo, line, used
from mountlab.analysis.run_view import RunView
from mountlab.checks.asked import streams
from mountlab.core import numbers
from mountlab.core.checksums import MANIFEST
from mountlab.core.groups import by_key
from mountlab.core.model import Workload
from mountlab.core.units import format_bytes
from mountlab.filesystems.making import BlockDevice, RanCommand, Setup
from mountlab.programs import TOOLS
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Rows, Text, numeric
from mountlab.report.sections.shared import names_of, swatches
from mountlab.tools.base import Manner

NOT_RECORDED = "not recorded by the version that made this run"
_NONE = "none"
_LOOP = re.compile(r"\bloop\d+")
OfSetup = Callable[[Setup], str | None]
"""One property of a setup; None where it was not recorded."""


def commands(run: RunView) -> Html:
    """Return a table of how each file system was made, mounted and queued, and one of the command of each cell."""
    if run.sweep.imported:
        return html.nothing("The logs come from elsewhere: the commands are unknown.")
    return html.joined(_file_systems(run), _cells(run))


# ── file systems ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _file_systems(run: RunView) -> Html:
    setups, marks = by_key((setup.filesystem, setup) for setup in run.setups), swatches(run)
    groups = [Rows(_rows(run, setups[name]), marks[name]) for name in names_of(run) if name in setups]
    if not groups:
        return html.paragraph(f"How the file systems were made is {NOT_RECORDED}.")
    texts = [words for group in groups for row in group.rows for words in map(html.words_of, row)]
    caption = "How each file system was made, and on what"
    return html.joined(_meanings(texts), html.table([Column("What", "line"), "As it was"], groups, caption=caption))


def _rows(run: RunView, setups: Sequence[Setup]) -> list[Sequence[Text]]:
    rows = [
        *_variants("Made by", setups, lambda setup: _kept(run, setup, "mkfs", "restore")),
        *_variants("Mounted by", setups, lambda setup: _kept(run, setup, "mount")),
        *_variants("mountinfo", setups, lambda s: s.mountinfo or _NONE, alike=lambda s: general_mountinfo(s, run.info)),
        *_variants("Device", setups, lambda s: " on ".join(device.name for device in s.devices) or _NONE),
    ]
    # A run of an earlier version holds the schedulers only as they were when it began.
    devices = run.info.facts.storage.block_devices or ()
    at_first = {device.name: f"{device.scheduler} when the run began" for device in devices if device.scheduler}

    def scheduler(device: BlockDevice) -> str:
        return device.scheduler or (at_first.get(device.name) if device.scheduler is None else "") or NOT_RECORDED

    def read_ahead(device: BlockDevice) -> str:
        return NOT_RECORDED if device.read_ahead_bytes is None else format_bytes(device.read_ahead_bytes)

    if any(setup.devices for setup in setups):
        for name, text_of in (("Scheduler", scheduler), ("Read-ahead", read_ahead)):
            rows += _variants(name, setups, partial(_each_device, text_of=text_of))
    return [*rows, ["Raw output", _raw(run, setups[0])]]


def _variants(
    name: str, setups: Sequence[Setup], text_of: OfSetup, *, alike: Callable[[Setup], str] | None = None
) -> list[Sequence[Text]]:
    """Return a row for each thing that the mounts of a file system say, the first as it was said; `alike`: what makes
    two of them the same, else their words with any loop device for another."""

    def key(setup: Setup) -> str | None:
        text = text_of(setup)
        if text is None or text == _NONE:
            return text
        return alike(setup) if alike else _LOOP.sub("loop", text)

    groups = by_key((key(setup), setup) for setup in setups)
    rows: list[Sequence[Text]] = []
    for group in groups.values():
        count, text = f"{len(group)} of {numbers.counted(len(setups), 'mount')}", text_of(group[0])
        cell = NOT_RECORDED if text is None else text if text == _NONE else html.code(text)
        rows.append([name if len(group) == len(setups) else html.aside(name, count), cell])
    return rows


def _each_device(setup: Setup, text_of: Callable[[BlockDevice], str]) -> str:
    return "; ".join(f"{device.name}: {text_of(device)}" for device in setup.devices) or _NONE


def _kept(run: RunView, setup: Setup, *whats: str) -> str | None:
    """Return the commands whose output is kept as that of mkfs, or of mount; below an overlay there is another one."""
    if setup.commands is None:
        return None
    names = {f"{what}{below}.txt" for what in whats for below in ("", "-below")}
    commands = [command for command in setup.commands if command.keep in names]
    return "\n".join(_line(run, setup, command) for command in commands) or _NONE


def _line(run: RunView, setup: Setup, command: RanCommand) -> str:
    return line([general(word, setup, run.info) for word in command.argv])


def _raw(run: RunView, setup: Setup) -> Text:
    """Return where all of this stands, of the first mount; and the commands that are no mkfs and no mount."""
    links = html.joined(*(html.beside(f"raw/{setup.mount}/{name}", name) for name in setup.files if name != MANIFEST))
    if setup.commands is None:
        return links
    lines = [f"# {command.why}\n{_line(run, setup, command)}" for command in setup.commands]
    count = numbers.counted(len(lines), "command")
    return html.joined(html.details(f"All {count} in their order", html.code_block("\n".join(lines))), links)


# ── cells ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _cells(run: RunView) -> Html:
    commands = cell_commands(run)
    if not commands:
        return html.paragraph("No command was run.")
    columns: Head = ["Workload", "File systems", "Tool", "Engine", *numeric("Depth", "Jobs")]
    head: Head = [*columns, "Direct", *numeric("Size"), "Command"]
    rows: list[list[Text]] = []
    texts = []
    for command in commands:
        before = [f"# {earlier.why}\n{line(earlier.argv)}" for earlier in command.before]
        texts.append("\n".join((*before, *(["# measured"] if before else []), line(command.argv))))
        workload, manner, direct, size = command.workload, Manner(), "", ""
        if workload.options:
            tool, direct = TOOLS[workload.tool], _direct(workload)
            manner, size = tool.manner(workload), format_bytes(tool.space_bytes(workload))
        about = [workload.tool, manner.engine, manner.depth, manner.jobs, direct, size]
        text = html.details("Command", html.code_block(texts[-1]), printed=True)
        rows.append([workload.label, _who(run, command), *about, text])
    note = (
        "Depth is of one job; size is the most that the workload holds at a time. A command stands once for all cells "
        "that ran it, with what was run before and not measured."
    )
    if all(setup.commands is None for setup in run.setups):
        note += f" What was run before is {NOT_RECORDED}."
    table = html.table(head, [Rows(rows)], caption="The command of each cell")
    return html.joined(_meanings(texts), html.paragraph(note, kind="meta"), table)


def _direct(workload: Workload) -> str:
    """Return whether it goes past the page cache: 'yes', 'no' or 'in part'; '' where it has no stream."""
    direct = {stream.direct for stream in streams(workload)}
    if len(direct) > 1:
        return "in part"
    return "" if not direct else "yes" if True in direct else "no"


def _who(run: RunView, command: CellCommand) -> str:
    """'all 3', or the names of the file systems; with how many of their trials, where that is not all."""
    having = [name for name in names_of(run) if run.sweep.has_cell(f"{name}/{command.workload.label}")]
    whole = all(count == of for count, of in command.trials.values())
    if whole and set(command.trials) == set(having):
        return f"all {len(having)}" if len(having) > 1 else having[0]
    trials = (
        name if count == of else f"{name} ({count} of {of} trials)" for name, (count, of) in command.trials.items()
    )
    return ", ".join(trials)


def _meanings(texts: Sequence[str]) -> Text:
    """Return what the placeholders in some texts stand for."""
    meanings = used(texts)
    return html.items(html.labelled(html.code(name), meaning) for name, meaning in meanings.items()) if meanings else ""

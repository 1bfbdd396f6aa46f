"""What was run, word by word: how each file system was made and mounted, and the command of each cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mountlab.analysis.commands import CellCommand, cell_commands, general, general_mountinfo, line, used
from mountlab.analysis.run_view import RunView
from mountlab.checks.asked import streams
from mountlab.core import numbers
from mountlab.core.checksums import MANIFEST
from mountlab.core.groups import by_key
from mountlab.core.model import Workload
from mountlab.core.units import format_bytes
from mountlab.filesystems.making import BlockDevice, RanCommand, Setup
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Rows, Text, numeric
from mountlab.report.sections.shared import names_of, swatches
from mountlab.tools import TOOLS
from mountlab.tools.base import Manner

NOT_RECORDED = "not recorded by the version that made this run"
_NONE = "none"
OfSetup = Callable[[Setup], str | None]
"""One property of a setup; None where it was not recorded."""


def commands(run: RunView) -> Html:
    """Return a table of how each file system was made, mounted and queued, and one of the command of each cell."""
    if run.sweep.imported:
        return html.nothing("The logs come from elsewhere: the commands are unknown.")
    return html.joined(_file_systems(run), _cells(run))


# ── file systems ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _file_systems(run: RunView) -> Html:
    groups = [Rows(_rows(run, own), swatches(run)[name]) for name in names_of(run) if (own := _setups(run, name))]
    if not groups:
        return html.paragraph(f"How the file systems were made is {NOT_RECORDED}.")
    texts = [words for group in groups for row in group.rows for words in map(html.words_of, row)]
    table = html.table(
        [Column("What", "line"), "As it was"], groups, caption="How each file system was made, and on what"
    )
    return html.joined(_meanings(texts), table)


def _setups(run: RunView, name: str) -> list[Setup]:
    return [each for each in run.setups if each.filesystem == name]


def _rows(run: RunView, own: Sequence[Setup]) -> list[Sequence[Text]]:
    rows = [
        *_variants("Made by", own, lambda setup: _kept(run, setup, "mkfs")),
        *_variants("Mounted by", own, lambda setup: _kept(run, setup, "mount")),
        *_variants("mountinfo", own, lambda s: s.mountinfo or _NONE, alike=lambda s: general_mountinfo(s, run.info)),
        *_variants("Device", own, lambda s: " on ".join(each.name for each in s.devices) or _NONE),
    ]
    if any(setup.devices for setup in own):
        known = _known_schedulers(run)
        rows += _variants("Scheduler", own, lambda s: _of_devices(s, lambda each: _scheduler(each, known)))
        rows += _variants("Read-ahead", own, lambda s: _of_devices(s, _read_ahead))
    return [*rows, ["Raw output", _raw(run, own[0])]]


def _variants(
    name: str, own: Sequence[Setup], said: OfSetup, *, alike: Callable[[Setup], str] | None = None
) -> list[Sequence[Text]]:
    """Return a row for each thing that the mounts of a file system say, the first as it was said; `alike`: what makes
    two of them the same."""
    groups = by_key((alike(each) if alike and said(each) not in (None, _NONE) else said(each), each) for each in own)
    return [[_named(name, len(group), len(own)), _shown(said(group[0]))] for group in groups.values()]


def _named(name: str, count: int, of: int) -> Text:
    return name if count == of else html.aside(name, f"{count} of {numbers.counted(of, 'mount')}")


def _shown(text: str | None) -> Text:
    if text is None:
        return NOT_RECORDED
    return text if text == _NONE else html.code(text)


def _kept(run: RunView, setup: Setup, what: str) -> str | None:
    """Return the commands whose output is kept as that of mkfs, or of mount; below an overlay there is another one."""
    if setup.commands is None:
        return None
    own = [each for each in setup.commands if each.keep in (f"{what}.txt", f"{what}-below.txt")]
    return "\n".join(_line(run, setup, each) for each in own) or _NONE


def _line(run: RunView, setup: Setup, command: RanCommand) -> str:
    return line([general(word, setup, run.info) for word in command.argv])


def _known_schedulers(run: RunView) -> Mapping[str, str]:
    """Device to its scheduler as it was when the run began."""
    devices = run.info.facts.storage.block_devices or ()
    return {device.name: device.scheduler for device in devices if device.scheduler}


def _of_devices(setup: Setup, said: Callable[[BlockDevice], str]) -> str:
    return "; ".join(f"{each.name}: {said(each)}" for each in setup.devices) or _NONE


def _scheduler(device: BlockDevice, known: Mapping[str, str]) -> str:
    if device.scheduler is None and device.name in known:
        return f"{known[device.name]} when the run began"
    return device.scheduler or NOT_RECORDED


def _read_ahead(device: BlockDevice) -> str:
    return NOT_RECORDED if device.read_ahead_bytes is None else format_bytes(device.read_ahead_bytes)


def _raw(run: RunView, setup: Setup) -> Text:
    """Return where all of this stands, of the first mount; and the commands that are no mkfs and no mount."""
    links = html.joined(*(html.beside(f"raw/{setup.mount}/{name}", name) for name in setup.files if name != MANIFEST))
    if setup.commands is None:
        return links
    lines = [f"# {each.why}\n{_line(run, setup, each)}" for each in setup.commands]
    count = numbers.counted(len(lines), "command")
    return html.joined(html.details(f"All {count} in their order", html.code_block("\n".join(lines))), links)


# ── cells ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _cells(run: RunView) -> Html:
    found = cell_commands(run)
    if not found:
        return html.paragraph("No command was run.")
    columns: Head = ["Workload", "File systems", "Tool", "Engine", *numeric("Depth", "Jobs")]
    head: Head = [*columns, "Direct", *numeric("Size"), "Command"]
    rows = [_cell_row(run, each) for each in found]
    lines = [_text(each) for each in found]
    table = html.table(head, [Rows(rows)], caption="The command of each cell")
    return html.joined(_meanings(lines), _about_cells(run), table)


def _about_cells(run: RunView) -> Html:
    said = (
        "Depth is of one job; size is the most that the workload holds at a time. A command stands once for all cells "
        "that ran it, with what was run before and not measured."
    )
    recorded = any(setup.commands is not None for setup in run.setups)
    return html.paragraph(said if recorded else f"{said} What was run before is {NOT_RECORDED}.", kind="meta")


def _cell_row(run: RunView, each: CellCommand) -> list[Text]:
    manner, direct, size = _asked(each.workload)
    about = [manner.engine, manner.depth, manner.jobs, direct, size]
    command = html.details("Command", html.code_block(_text(each)))
    return [each.workload.label, _who(run, each), each.workload.tool, *about, command]


def _asked(workload: Workload) -> tuple[Manner, str, str]:
    """Return how it does its I/O, whether past the page cache, and how much it holds; '' where its options are not
    known."""
    if not workload.options:
        return Manner(), "", ""
    tool, direct = TOOLS[workload.tool], {each.direct for each in streams(workload)}
    said = {frozenset({True}): "yes", frozenset({False}): "no", frozenset({True, False}): "in part"}
    return tool.manner(workload), said.get(frozenset(direct), ""), format_bytes(tool.space_bytes(workload))


def _who(run: RunView, each: CellCommand) -> str:
    """'all 3', or the names of the file systems; with how many of their trials, where that is not all."""
    having = [name for name in names_of(run) if run.sweep.has_cell(f"{name}/{each.workload.label}")]
    whole = all(count == of for count, of in each.trials.values())
    if whole and set(each.trials) == set(having):
        return f"all {len(having)}" if len(having) > 1 else having[0]
    trials = (name if count == of else f"{name} ({count} of {of} trials)" for name, (count, of) in each.trials.items())
    return ", ".join(trials)


def _text(each: CellCommand) -> str:
    measured = line(each.argv)
    return "\n".join((*map(_before, each.before), "# measured", measured)) if each.before else measured


def _before(command: RanCommand) -> str:
    return f"# {command.why}\n{line(command.argv)}"


def _meanings(texts: Sequence[str]) -> Text:
    """Return what the placeholders in some texts stand for."""
    meanings = used(texts)
    return html.items(html.labelled(html.code(name), meaning) for name, meaning in meanings.items()) if meanings else ""

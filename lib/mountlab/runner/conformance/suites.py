"""Whether the parts of an installed plug-in are fit: the conformance suites of their kinds, on their own examples."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mountlab.analysis.example import ExampleRun
from mountlab.checks import CHECKS
from mountlab.checks.base import Check
from mountlab.core import plugins
from mountlab.core.errors import InputError, MountlabError, NonConforming, PluginError, did_you_mean, in_one_line
from mountlab.core.model import Sweep
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.base import Family
from mountlab.filesystems.guard import uuid_for
from mountlab.plots import ReportPlot
from mountlab.programs import TOOLS
from mountlab.report.sections.figures import PLOTS
from mountlab.runner.conformance import checks as of_checks
from mountlab.runner.conformance import filesystems as of_filesystems
from mountlab.runner.conformance import plots as of_plots
from mountlab.runner.conformance import tools as of_tools
from mountlab.runner.conformance.rules import Rule, title
from mountlab.sweep.sweep_file import resolve
from mountlab.tools.base import Tool

LOADS, HAS_EXAMPLES = "It is loaded", "It has examples"
_FS = {"d": {"type": "dir"}}
_WORK = {"w": {"tool": "dd", "direction": "write", "count": 8}}


@dataclass(frozen=True)
class Item:
    """One thing that is asked of one part."""

    part: str
    asked: str
    problem: str = ""
    """Why it does not hold, and what would; '' where it does."""

    def __str__(self) -> str:
        state, why = ("failed", f": {self.problem}") if self.problem else ("passed", "")
        return f"{state}  {self.part}: {self.asked}{why}"


@dataclass(frozen=True)
class Suite:
    """What is asked of the parts of one kind."""

    kind: str
    registry: plugins.Registry[Any]
    of_part: Sequence[Rule[Any]]
    of_case: Sequence[Rule[Any]]
    example: type
    key: str
    """The attribute of an example that names its part."""
    case: Callable[[Any, Any], Any]
    """A part and an example of it, to the case that the rules are about."""
    lacking: Callable[[Sequence[Any]], str] = lambda examples: "" if examples else "there is none"
    """What is missing among the examples; '' where nothing is."""


# --- from examples to cases -------------------------------------------------------------------------------------------


def tool_case(tool: Tool, example: of_tools.ToolExample) -> of_tools.ToolCase:
    """Read the workloads of an example as from a sweep file."""
    output = of_tools.output_of({name: text.encode() for name, text in example.files.items()})
    other = {**example.options, **example.other_work}
    return of_tools.ToolCase(
        tool,
        _workload(tool, example.options),
        output,
        _workload(tool, other) if example.other_work else None,
    )


def _workload(tool: Tool, options: Mapping[str, Any]) -> Any:
    return _sweep({"filesystems": _FS, "workloads": {"w": {"tool": tool.name, **options}}}).workloads[0]


def filesystem_case(family: Family, example: of_filesystems.FilesystemExample) -> of_filesystems.FamilyCase:
    """Read a file system as from a sweep file, and say where it is made."""
    fs = _sweep({"filesystems": {"f": {"type": family.type, **example.entry}}, "workloads": _WORK}).filesystems[0]
    place = of_filesystems.PLACE
    if fs.device:
        further = tuple((f"/dev/disk/by-id/x{at}", f"8:16,x{at}") for at in range(len(fs.more_devices)))
        place = replace(place, device="/dev/disk/by-id/x", device_id="8:16,x", more_devices=further)
    layers = tuple(uuid_for("", place.run_id, f"layer{at}") for at in range(len(fs.stack)))
    place = replace(place, layer_uuids=layers)
    if fs.journal_device:
        place = replace(place, journal="/dev/disk/by-id/j", journal_id="8:32,j")
    return of_filesystems.FamilyCase(family, fs, place)


def check_case(check: Check, example: of_checks.CheckExample) -> of_checks.CheckCase:
    """Make the evidence of an example."""
    sweep = _sweep(example.sweep)
    empty = ExampleRun(replace(sweep, filesystems=(), workloads=()), {}).evidence()
    evidence = ExampleRun(sweep, example.figures).evidence(**example.evidence)
    return of_checks.CheckCase(check, evidence, empty, example.raised)


def plot_case(plot: ReportPlot, example: of_plots.PlotExample) -> of_plots.PlotCase:
    """Make the run of an example, and the same one before its first trial."""
    sweep = _sweep(example.sweep)
    return of_plots.PlotCase(plot, ExampleRun(sweep, example.figures), ExampleRun(sweep, {}))


def _sweep(raw: Mapping[str, Any]) -> Sweep:
    return resolve({"name": "example", "question": "?", **raw}, where="the example").sweep


def _both_ways(examples: Sequence[of_checks.CheckExample]) -> str:
    missing = [word for word, raised in (("raised", True), ("not raised", False)) if raised not in _ways(examples)]
    return f"there is none in which it is {' and none in which it is '.join(missing)}" if missing else ""


def _ways(examples: Iterable[of_checks.CheckExample]) -> set[bool]:
    return {each.raised for each in examples}


SUITES: dict[str, Suite] = {
    plugins.TOOLS: Suite("tool", TOOLS, of_tools.OF_TOOL, of_tools.OF_EXAMPLE, of_tools.ToolExample, "tool", tool_case),
    plugins.FILESYSTEMS: Suite(
        "file system",
        FAMILIES,
        of_filesystems.OF_FAMILY,
        of_filesystems.OF_EXAMPLE,
        of_filesystems.FilesystemExample,
        "type",
        filesystem_case,
    ),
    plugins.CHECKS: Suite(
        "check", CHECKS, of_checks.OF_CHECK, of_checks.OF_RUN, of_checks.CheckExample, "code", check_case, _both_ways
    ),
    plugins.PLOTS: Suite("plot", PLOTS, of_plots.OF_PLOT, of_plots.OF_RUN, of_plots.PlotExample, "name", plot_case),
}
"""Group of entry points to suite."""


# --- of a distribution ------------------------------------------------------------------------------------------------


def entries_of(package: str) -> list[plugins.Entry]:
    """Return the entry points of a distribution, however its name is written. Raises InputError where it has none."""
    entries = {_normal(name): group for name, group in plugins.distributions().items()}
    if (registered := entries.get(_normal(package))) is not None:
        return registered
    raise InputError(
        "no plug-in of this name is installed",
        got=repr(package),
        allowed=", ".join(sorted(entries)) or f"an installed distribution with entry points {', '.join(SUITES)}",
        next_step=did_you_mean(_normal(package), entries) or "install it: .venv/bin/uv pip install PACKAGE",
    )


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def conform(entries: Sequence[plugins.Entry]) -> Iterator[Item]:
    """Yield what is asked of the parts of one distribution, and whether it holds."""
    examples: list[Any] = []
    for entry in plugins.declared(plugins.EXAMPLES):
        if entry.distribution == entries[0].distribution:
            try:
                with plugins.calling(entry):
                    examples += list(entry.load())  # type: ignore[call-overload]  # what is no list is refused
            except PluginError as error:
                yield Item(f"examples {entry.name}", LOADS, error.in_short)
    for entry in entries:
        yield from _of_entry(entry, SUITES[entry.group], examples)


def _of_entry(entry: plugins.Entry, suite: Suite, examples: Sequence[Any]) -> Iterator[Item]:
    part, name = dict(suite.registry.of_plugins())[entry], f"{suite.kind} {entry.name}"
    if isinstance(part, PluginError):
        yield Item(name, LOADS, _said(part))
        return
    yield Item(name, LOADS)
    yield from (_held(entry, name, rule, [part]) for rule in suite.of_part)
    matching = [item for item in examples if isinstance(item, suite.example) and getattr(item, suite.key) == entry.name]
    allowed = (
        f"{suite.example.__name__}({suite.key}={entry.name!r}, ...) in the list of an entry point {plugins.EXAMPLES}"
    )
    lacking = suite.lacking(matching)
    yield Item(name, HAS_EXAMPLES, f"{lacking}; allowed: {allowed}" if lacking else "")
    try:
        with plugins.calling(entry):
            cases = [suite.case(part, example) for example in matching]
    except MountlabError as error:
        yield Item(name, "Its examples can be read", _said(error))
        return
    yield from (_held(entry, name, rule, cases) for rule in suite.of_case if cases)


def _held(entry: plugins.Entry, name: str, rule: Rule[Any], cases: Iterable[Any]) -> Item:
    """Hold cases against a rule; the first that does not keep it says why."""
    try:
        with plugins.calling(entry):
            for case in cases:
                rule(case)
    except MountlabError as error:
        return Item(name, title(rule), _said(error))
    return Item(name, title(rule))


def _said(error: MountlabError) -> str:
    """What happened, what was got, and what is allowed, in a line."""
    parts = {"": error.what, "where: ": error.where, "got: ": error.got, "allowed: ": error.allowed}
    if isinstance(error, NonConforming):
        del parts["where: "]
    return in_one_line("; ".join(f"{label}{text}" for label, text in parts.items() if text).replace("\n", " "))

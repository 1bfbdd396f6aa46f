"""The `workloads` of a sweep file, and which combinations of their levels there are, strictly.

A list in the options of a workload is a factor, its entries are its levels. Three keys beside the options say which
combinations become cells; without them all do:

    vary: one-at-a-time                     each factor by itself, the others at their first level: the baseline
    exclude: [{rw: read, bs: 1KiB}]         without the combinations that an entry matches
    also: [{rw: write, bs: 1MiB}]           and these

in this order, so that `also` may bring back one of many that were excluded. `precondition: 25` runs up to 25 rounds of
the workload first on each new mount, until they are steady. `clients: [a, b]` has these boxes drive it together (fio
only). `capacity: {objective: {p99: 5ms}}` makes each cell a search. The sweep's own `exclude` takes out cells, by file
system and workload too: [{filesystem: tmpfs, workload: fio, direct: true}].
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mountlab.core import plugins
from mountlab.core.conditions import ALONE, BESIDE, TOGETHER
from mountlab.core.errors import ParameterError, did_you_mean
from mountlab.core.metrics import METRICS, Metric
from mountlab.core.model import COLUMNS, Workload
from mountlab.core.options import Option, OptionValue, read_value, unknown_key
from mountlab.core.search import Search
from mountlab.programs import TOOLS
from mountlab.programs.precondition import WINDOW
from mountlab.sweep.capacity_entry import read_capacity
from mountlab.tools.base import Tool
from mountlab.tools.own_metrics import METRIC_NAME, is_metric_name

Raw = dict[str, Any]
VARY = ("all-combinations", "one-at-a-time")
MOST_ROUNDS = 1000
MOST_CLIENTS = 64
BOX_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
"""Of a client: it names files and a socket."""
MOST_LEVELS, MOST_CELLS = 1000, 10_000
"""Of a factor, and of a workload: more than anybody measures, and few enough to be planned in seconds."""
MOST_LOOKS = 1_000_000
"""Exclusions times the combinations that they are held against."""
DESIGN_KEYS: dict[str, str] = {
    "vary": f"Which combinations of the levels become cells: {' or '.join(VARY)}. The first where nothing is said. The "
    "second takes the first level of every list together, then each other level with all others at their first.",
    "exclude": "Without the combinations that an entry matches: `[{rw: read, bs: 1KiB}]`. A factor that it does not "
    "name matches at all levels, a list of levels matches each. An entry that matches nothing is an error.",
    "also": "And these: `[{rw: write, bs: 1MiB}]`. Applied after `exclude`, so that it may bring some back. A factor "
    "that an entry does not name has all its levels, or with one-at-a-time its first. It may name options that are"
    " swept nowhere else. A combination that exists already is an error.",
    "precondition": f"Up to so many rounds are run first on each new mount, until they are steady: {WINDOW} to "
    f"{MOST_ROUNDS}; 0, and where nothing is said: none.",
    "clients": "Boxes that drive it together, by fio's client/server mode: `[a, b]`, names of files in params/boxes/. "
    "Each has files of its own, on a file system that all of them see (nfs, dir).",
    BESIDE: "Neighbours that run through the whole of each trial, by name. A list is a factor, with the level "
    f"`{ALONE}` for none, and an inner list for several together: `[{ALONE}, backup, [backup, web]]`.",
    "capacity": "The search for the highest rate of arriving requests at which a latency objective holds: "
    "`{objective: {p99: 5ms, of: [read, write]}, half_width: 5%, max_trials: 60}` (docs/how-to/capacity.md).",
}
"""Keys of a workload that no tool may have for an option, and what they are for."""


@dataclass(frozen=True)
class Level:
    """One value of an option: as YAML gave it, and as it was read."""

    raw: Any
    read: OptionValue

    def same(self, other: Level) -> bool:
        """Return whether they mean one value, or would give cells one id: 4KiB and 4096B, 1 and '1'."""
        return self.read.value == other.read.value or self.read.label == other.read.label


Settings = frozenset[tuple[str, Any]]
Levels = dict[str, list[Level]]
Combination = dict[str, Level]


def read_workloads(name: str, entry: Mapping[str, Any], where: str) -> list[Workload]:
    """Return one workload for each combination of levels, in the order of the file. Raises ParameterError."""
    tool_name = entry.get("tool")
    if not isinstance(tool_name, str) or tool_name not in TOOLS:
        raise unknown_key(tool_name, TOOLS, where=f"{where}.tool", what="tool")
    return _WorkloadEntry(name, TOOLS[tool_name], dict(entry), where).workloads()


def _check_plugin(tool: Tool, workload: Workload, entry: plugins.Entry) -> None:
    """Ask the tool of a plug-in before anything runs what is asked of it afterwards. Raises PluginError where that is
    nothing to plan, run or answer with."""
    tool.written(workload), tool.manner(workload), tool.space_bytes(workload)
    for name, took in (("expected_s", tool.expected_s(workload)), ("uncounted_s", tool.uncounted_s(workload))):
        if not math.isfinite(took):
            raise entry.unusable(f"{name}()", repr(took), "seconds")
    for name, metric in workload.own_metrics.items():
        if not is_metric_name(name) or name in METRICS or not metric.unit:
            allowed = f"a unit, and a name of its own: {METRIC_NAME}; not one of the metrics of Mountlab"
            raise entry.unusable("own_metrics()", f"{name!r} in {metric.unit!r}", allowed)
    main = tool.main_metrics(workload)
    if not main or not {*main} <= {*METRICS, *workload.own_metrics}:
        allowed = "one or more of the documentation's page Metrics and of own_metrics()"
        raise entry.unusable("main_metrics()", repr(main), allowed)


def same_definitions(workloads: Sequence[Workload], where: str) -> dict[str, Metric]:
    """Return the metrics that workloads define. Raises ParameterError where two of them define one differently."""
    definitions: dict[str, tuple[Workload, Metric]] = {}
    for workload in workloads:
        for name, metric in workload.own_metrics.items():
            first, before = definitions.setdefault(name, (workload, metric))
            if metric != before:
                raise ParameterError(
                    "one metric is defined in two ways",
                    where=f"{where}.{workload.name}.metrics.{name}",
                    got=f"unit {metric.unit}, better {metric.better}",
                    allowed=f"as in {first.name}: unit {before.unit}, better {before.better}",
                    next_step="give one of the two another name",
                )
    return {name: metric for name, (_, metric) in definitions.items()}


@dataclass(frozen=True)
class _WorkloadEntry:
    """One entry of `workloads`."""

    name: str
    tool: Tool
    raw: Raw
    where: str

    @property
    def given(self) -> Raw:
        """Its options, and what runs beside it."""
        reserved = {"tool", *DESIGN_KEYS} - {BESIDE}
        return {key: raw for key, raw in self.raw.items() if key not in reserved}

    def workloads(self) -> list[Workload]:
        factors = {key: self.levels(key, raw, self.where) for key, raw in self.given.items() if isinstance(raw, list)}
        alone = self.one_at_a_time(factors)
        _check_count(1 if alone else math.prod(map(len, factors.values())), self.where)
        designed = one_at_a_time(factors) if alone else all_combinations(factors)
        left = self.without_excluded(designed, factors)
        made = [self.workload(combination, self.where) for combination in left]
        workloads = {_settings(workload): workload for workload in made}
        for number, addition in enumerate(read_combinations(self.raw.get("also"), f"{self.where}.also")):
            for workload in self.added(addition, factors, alone, workloads, f"{self.where}.also[{number}]"):
                workloads[_settings(workload)] = workload
            _check_count(len(workloads), f"{self.where}.also")
        if not workloads:
            raise ParameterError(
                "no combination is left",
                where=f"{self.where}.exclude",
                got=f"all {len(designed)} are excluded",
                allowed="at least one",
                next_step="remove the workload, or an exclusion",
            )
        return list(workloads.values())

    def levels(self, key: str, raw: Any, where: str) -> list[Level]:
        if key == BESIDE:
            return beside_levels(raw, f"{where}.{key}")
        option = option_of(self.tool, key, where)
        return read_levels(raw if isinstance(raw, list) else [raw], option, f"{where}.{key}")

    def one_at_a_time(self, factors: Levels) -> bool:
        """Return whether `vary` asks for that."""
        vary, where = self.raw.get("vary", VARY[0]), f"{self.where}.vary"
        if vary not in VARY:
            raise unknown_key(vary, list(VARY), where=where, what="way to vary")
        if vary != VARY[0] and not factors:
            raise ParameterError(
                "nothing varies",
                where=where,
                got="no option with a list of levels",
                allowed="one list or more",
                next_step="give an option a list, such as bs: [4KiB, 64KiB]; its first level is the baseline",
            )
        return bool(vary == VARY[1])

    def without_excluded(self, designed: list[Combination], factors: Levels) -> list[Combination]:
        gone: set[int] = set()
        entries = read_combinations(self.raw.get("exclude"), f"{self.where}.exclude")
        check_looks(len(entries) * len(designed), f"{self.where}.exclude")
        for number, entry in enumerate(entries):
            where = f"{self.where}.exclude[{number}]"
            pattern = {key: self.pattern(key, raw, factors, where) for key, raw in entry.items()}
            matched = {place for place, combination in enumerate(designed) if _matches(combination, pattern)}
            if not matched:
                why = "with vary: one-at-a-time one factor at most leaves its first level"
                raise matches_nothing(entry, where, why)
            gone |= matched
        return [combination for place, combination in enumerate(designed) if place not in gone]

    def pattern(self, key: str, raw: Any, factors: Levels, where: str) -> list[Level]:
        """Return the levels of a factor that an exclusion names."""
        if key not in factors:
            error = unknown_key(key, list(factors), where=f"{where}.{key}", what="factor of this workload")
            if key in self.given:
                error.next_step = f"{key} has one value here: give it a list of levels, or exclude the whole workload"
            raise error
        named = self.levels(key, raw, where)
        for level in named:
            check_level(level, factors[key], f"{where}.{key}")
        return named

    def added(
        self, entry: Raw, factors: Levels, alone: bool, present: Mapping[Settings, Workload], where: str
    ) -> list[Workload]:
        """Return the combinations of an addition: what it does not name has all its levels, or one at a time the
        first."""
        named = {key: self.levels(key, raw, where) for key, raw in entry.items()}
        others = {key: levels[:1] if alone else levels for key, levels in factors.items() if key not in named}
        levels = {key: {**others, **named}[key] for key in dict.fromkeys([*factors, *named])}
        _check_count(math.prod(map(len, levels.values())), where)
        additions = [self.workload(combination, where) for combination in all_combinations(levels)]
        for workload in additions:
            twin = present.get(_settings(workload))
            if twin:
                raise ParameterError(
                    "an addition is there already",
                    where=where,
                    got=str(entry),
                    allowed="what the levels do not give",
                    next_step=f"it is the cell {twin.label}",
                )
        return additions

    def workload(self, combination: Combination, where: str) -> Workload:
        read = {key: level.read for key, level in combination.items()}
        for key, raw in self.given.items():
            if key == BESIDE and key not in combination:
                read[key] = beside_levels(raw, f"{self.where}.{key}")[0].read
            elif key not in combination:
                read[key] = read_value(raw, option_of(self.tool, key, self.where), where=f"{self.where}.{key}")
        beside = read.pop(BESIDE).value if BESIDE in read else ALONE
        defaults = {key: option.default for key, option in self.tool.options.items() if option.default is not None}
        options = {**defaults, **{key: value.value for key, value in read.items()}}
        self.tool.check(options, where=where)
        clients = read_clients(self.raw.get("clients", []), self.tool, options, self.where)
        factors = {key: level.read.label for key, level in combination.items()}
        for key in factors:
            check_factor(key, f"{self.where}.{key}")
        workload = Workload(
            name=self.name,
            tool=self.tool.name,
            options=options,
            factors=factors,
            precondition=self.precondition(),
            clients=clients,
            own_metrics=self.tool.own_metrics(options),
            search=self.search(options),
            beside=() if beside == ALONE else tuple(str(beside).split(TOGETHER)),
        )
        if entry := TOOLS.entry(self.tool.name):
            _check_plugin(self.tool, workload, entry)
        return workload

    def search(self, options: Mapping[str, Any]) -> Search | None:
        """Return what is searched for with these options; None where nothing is."""
        place = f"{self.where}.capacity"
        search = read_capacity(self.raw.get("capacity"), self.tool, options, place)
        for key in ("clients", "precondition") if search else ():
            if self.raw.get(key):
                what = f"a search for a capacity has no {key}"
                raise ParameterError(what, where=place, got=f"{key}: {self.raw[key]}", allowed=f"no {key}")
        return search

    def precondition(self) -> int:
        """Return the most rounds that are run first, until they are steady; 0 where none are asked for."""
        rounds = self.raw.get("precondition", 0)
        if isinstance(rounds, bool) or not isinstance(rounds, int) or (rounds and not WINDOW <= rounds <= MOST_ROUNDS):
            raise ParameterError(
                "not a number of rounds",
                where=f"{self.where}.precondition",
                got=repr(rounds),
                allowed=f"{WINDOW} to {MOST_ROUNDS}: at most so many; the rule looks at the last {WINDOW}",
            )
        return rounds


def read_clients(raw: Any, tool: Tool, options: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Return names of the boxes that drive a workload together. Raises ParameterError for what are none, and where the
    tool cannot be driven from several."""
    place = f"{where}.clients"
    named = isinstance(raw, list) and all(isinstance(name, str) and BOX_NAME.fullmatch(name) for name in raw)
    if not named or len({*raw}) < len(raw) or len(raw) > MOST_CLIENTS:
        raise ParameterError(
            "clients are boxes, each named once",
            where=place,
            got=repr(raw)[:80],
            allowed=f"a list of names of params/boxes/*.yml, such as [alpha, beta]; {MOST_CLIENTS} at most",
        )
    if raw and not tool.drives_clients:
        able = ", ".join(name for name, other in TOOLS.items() if other.drives_clients)
        what = f"{tool.name} cannot be driven from several clients"
        raise ParameterError(what, where=place, got=", ".join(raw), allowed=able)
    if raw:
        tool.check_clients(options, where=where)
    return tuple(raw)


def _settings(workload: Workload) -> Settings:
    """Return what tells a workload from its neighbours."""
    return frozenset({**workload.options, BESIDE: workload.beside}.items())


def _check_count(count: int, where: str) -> None:
    if count > MOST_CELLS:
        raise ParameterError(
            "too many combinations for one workload",
            where=where,
            got=f"{count:,}",
            allowed=f"{MOST_CELLS:,}",
            next_step="vary: one-at-a-time, fewer levels, or several sweeps",
        )


def check_looks(count: int, where: str) -> None:
    """Raise ParameterError where exclusions times combinations are more than can be compared in seconds."""
    if count > MOST_LOOKS:
        raise ParameterError(
            "too many exclusions for so many combinations",
            where=where,
            got=f"{count:,} to look at",
            allowed=f"{MOST_LOOKS:,}",
            next_step="name several levels in one exclusion: {rw: [read, write]}",
        )


def all_combinations(factors: Mapping[str, Sequence[Level]]) -> list[Combination]:
    """Return the full factorial: every level of each factor with every level of the others; one empty one of no
    factor."""
    return [dict(zip(factors, choice, strict=True)) for choice in itertools.product(*factors.values())]


def one_at_a_time(factors: Mapping[str, Sequence[Level]]) -> list[Combination]:
    """Return the first levels together, the baseline; and it with each other level of each factor in turn."""
    baseline = {key: levels[0] for key, levels in factors.items()}
    return [baseline, *({**baseline, key: level} for key, levels in factors.items() for level in levels[1:])]


def read_levels(values: list[Any], option: Option, where: str) -> list[Level]:
    """Return the levels of a factor, which must differ in what they mean: 4KiB and 4096B are one."""
    if not values:
        raise ParameterError("a factor needs at least one level", where=where, got="[]")
    if len(values) > MOST_LEVELS:
        raise ParameterError(
            "too many levels for one factor", where=where, got=f"{len(values):,}", allowed=f"{MOST_LEVELS:,}"
        )
    levels = [Level(value, read_value(value, option, where=where)) for value in values]
    if any("\n" in level.read.label for level in levels):
        raise ParameterError(
            "a level of a factor is one line, since it names a cell",
            where=where,
            got="text of several lines",
            allowed="one text",
            next_step="write a workload for each text",
        )
    repeated = [level.raw for i, level in enumerate(levels) if any(level.same(other) for other in levels[:i])]
    if repeated:
        raise ParameterError("a level is given twice", where=where, got=repr(repeated[0]), allowed="each level once")
    return levels


def beside_levels(raw: Any, where: str) -> list[Level]:
    """Return the levels of `beside`: one of a name, one for each entry of a list. Neighbours that run together are an
    inner list, or named with TOGETHER between them. Raises ParameterError; whether they exist is for others to see."""
    levels: list[Level] = []
    for entry in raw if isinstance(raw, list) else [raw]:
        names = entry if isinstance(entry, list) else entry.split(TOGETHER) if isinstance(entry, str) else []
        if not names or not all(isinstance(name, str) and name for name in names) or len({*names}) < len(names):
            raise ParameterError(
                "not neighbours that run beside a workload",
                where=where,
                got=repr(entry),
                allowed=f"{ALONE}, a name of `neighbours`, or a list of several that run together",
            )
        label = TOGETHER.join(names)
        levels.append(Level(entry, OptionValue(label, label)))
    labels = [level.read.label for level in levels]
    if not levels or len({*labels}) < len(labels):
        raise ParameterError("neighbours are named once each", where=where, got=repr(raw), allowed=f"[{ALONE}, NAME]")
    return levels


def check_level(level: Level, known: Iterable[Level], where: str) -> None:
    """Raise ParameterError for a level that a factor does not have."""
    levels = list(known)
    if not any(level.same(other) for other in levels):
        labels = [other.read.label for other in levels]
        raise ParameterError(
            "no such level",
            where=where,
            got=repr(level.raw),
            allowed=", ".join(labels),
            next_step=did_you_mean(level.read.label, labels),
        )


def option_of(tool: Tool, key: str, where: str) -> Option:
    """Return the option of a tool that a key names. Raises ParameterError for one that is reserved or not known."""
    if key in tool.reserved:
        raise ParameterError(
            f"{tool.name}'s option {key} is not for a sweep to set",
            where=f"{where}.{key}",
            got=key,
            allowed=tool.reserved[key],
        )
    if key in tool.options:
        return tool.options[key]
    if tool.any_option and key not in ("tool", *DESIGN_KEYS):
        return Option(kind="any")
    raise unknown_key(key, tool.options, where=f"{where}.{key}", what=f"option for {tool.name}")


def _matches(combination: Combination, pattern: Mapping[str, Sequence[Level]]) -> bool:
    return all(any(combination[key].same(level) for level in levels) for key, levels in pattern.items())


def read_combinations(raw: object, where: str) -> list[Raw]:
    """Return a list of mappings that say something. Raises ParameterError for anything else."""
    if raw is None:
        return []
    example = "a list of combinations, such as [{rw: read, bs: 1MiB}]"
    if not isinstance(raw, list) or not raw:
        raise ParameterError("a list of combinations is needed", where=where, got=repr(raw), allowed=example)
    for number, entry in enumerate(raw):
        if not isinstance(entry, dict) or not entry or not all(isinstance(key, str) for key in entry):
            raise ParameterError(
                "a combination names options and their values",
                where=f"{where}[{number}]",
                got=repr(entry),
                allowed=example,
            )
    return raw


def matches_nothing(entry: Raw, where: str, next_step: str) -> ParameterError:
    """Return the error of an exclusion without a cell."""
    return ParameterError(
        "an exclusion matches nothing",
        where=where,
        got=str(entry),
        allowed="what the sweep would measure",
        next_step=next_step,
    )


def check_factor(name: str, where: str) -> None:
    """Raise ParameterError for a factor that would be a second column of that name in the tables of a run."""
    if name in COLUMNS:
        raise ParameterError(
            "a factor cannot have the name of a column of the results",
            where=where,
            got=repr(name),
            allowed="any other name",
            next_step="write a workload for each value, or name the option otherwise",
        )

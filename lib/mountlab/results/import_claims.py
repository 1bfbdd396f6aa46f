"""Compare what an import states about its logs with what each log states about itself.

The options of a workload in the import file, the levels in the names of the files and, where nothing else tells, the
name of a workload are claims. A log that states something else is refused; so are logs of one cell that differ. What a
log does not state is the user's word alone, and the report says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mountlab.checks.stated_facts import value_text
from mountlab.core.box_facts.stated import NOT_STATED, OptionOfLogs, WorkloadOfLogs
from mountlab.core.errors import ParameterError
from mountlab.core.groups import by_key
from mountlab.core.model import Scalar
from mountlab.core.names import cell_id
from mountlab.core.numbers import first_few
from mountlab.core.options import read_value
from mountlab.logs.stated import PERSONALITY_NAMES
from mountlab.logs.statement import Stated
from mountlab.programs import TOOLS
from mountlab.results.import_file import ImportFile, LogFile
from mountlab.results.import_levels import MAIN, normal, readings

MAY_DIFFER = frozenset(
    {"runtime", "ramp_time", "time_based", "time_per_test", "log_avg_msec", "group_reporting", "keep_files"}
)
"""Options that may differ among the logs of one cell: how long, and what is printed or left; not what is measured."""
_MOST_NAMED = 3


@dataclass(frozen=True)
class Claim:
    """What an import states about one option of a log."""

    option: str
    values: tuple[Scalar, ...]
    """What it may mean: '4k' is 4096 to fio and 4000 to many people."""
    text: str
    """As the user wrote it."""
    source: str
    """Where it stands: 'old.yml: workloads.write.bs', or 'the name of the file'."""


@dataclass(frozen=True)
class CheckedLog:
    """A log, and what each of its outputs states."""

    log: LogFile
    outputs: tuple[Mapping[str, Stated], ...]
    """Option to what is stated, of those outputs that have figures."""


@dataclass(frozen=True)
class _Conflict:
    claim: Claim
    stated: Stated
    log: LogFile


def check(file: ImportFile, logs: Sequence[CheckedLog], *, where: str) -> None:
    """Raise ParameterError for a log that states another value than the import says, and for logs of one cell that
    differ in what they state."""
    conflicts = [
        _Conflict(claim, output[claim.option], log.log)
        for log in logs
        for claim in claims(file, log.log, where)
        for output in log.outputs
        if claim.option in output
        and not output[claim.option].vague
        and not any(map(output[claim.option].fits, claim.values))
    ]
    if conflicts:
        raise _contradiction(conflicts)
    statements = (
        ((checked.log.filesystem, checked.log.workload.label), (checked.log, stated))
        for checked in logs
        for output in checked.outputs
        for stated in output.values()
    )
    for cell in by_key(statements).values():
        _check_alike(cell)


def claims(file: ImportFile, log: LogFile, where: str) -> Iterator[Claim]:
    """Yield what an import states about a log, by option of its tool."""
    options, entries = TOOLS[log.workload.tool].options, file.workloads.get(log.workload.name, {})
    for name in filter(options.__contains__, entries):
        source = f"{where}: workloads.{log.workload.name}.{name}"
        value = normal(name, read_value(entries[name], options[name], where=source).value)
        if name != "installed" or value in PERSONALITY_NAMES:  # a file of the user's own may print any name
            yield Claim(name, (value,), f"{name}: {entries[name]}", source)
    for name, level in log.workload.factors.items():
        if name in options and (values := readings(name, level, options[name])):
            yield Claim(name, values, f"{name}={level}", "the name of the file")
    main = MAIN.get(log.workload.tool, "")
    if main and main not in entries and main not in log.workload.factors:
        values = readings(main, log.workload.name, options[main])
        if values:
            yield Claim(main, (*values, *map("rand{}".format, values)), log.workload.name, "the name of the workload")


# --- what is refused --------------------------------------------------------------------------------------------------


def _contradiction(conflicts: Sequence[_Conflict]) -> ParameterError:
    """Return the first contradiction with both values; how many other logs have one."""
    first = conflicts[0]
    option = first.claim.option
    others = list(dict.fromkeys(conflict.log.name for conflict in conflicts if conflict.log.name != first.log.name))
    more = f". Other logs contradict it, too: {first_few(others, _MOST_NAMED)}" if others else ""
    return ParameterError(
        f"a log contradicts the import: {option}",
        where=f"{first.log.name}, line {first.stated.line}",
        got=f"{_option_text(first.stated, first.log.workload.tool)}, from {first.stated.text!r}",
        allowed=f"{first.claim.text}, as in {first.claim.source}",
        next_step=f"correct {option} in the import, or take it out; give logs of another workload a name of their own"
        f"{more}",
    )


def _check_alike(cell: Sequence[tuple[LogFile, Stated]]) -> None:
    first: dict[str, tuple[LogFile, Stated]] = {}
    for log, stated in cell:
        is_modelled = stated.option in TOOLS[log.workload.tool].options
        if stated.computed or stated.vague or stated.option in MAY_DIFFER or not is_modelled:
            continue
        other, one = first.setdefault(stated.option, (log, stated))
        if not one.agrees(stated):
            raise _unlike(other, one, log, stated)


def _unlike(log: LogFile, one: Stated, other: LogFile, another: Stated) -> ParameterError:
    option, tool = one.option, log.workload.tool
    pairs = ((log, one), (other, another))
    values = [f"{_option_text(value, tool)} in {source.name}, line {value.line}" for source, value in pairs]
    return ParameterError(
        f"logs of one cell differ in {option}",
        where=cell_id(log.filesystem, log.workload.label),
        got="; ".join(values),
        allowed=f"one {option} in all logs of a cell: their figures become one mean",
        next_step=f"tell the logs apart: {{{option}}} in the pattern, or an entry of workloads for each",
    )


def _option_text(stated: Stated, tool: str) -> str:
    return f"{stated.option}={value_text(tool, stated.option, stated.value)}"


# --- what was confirmed -----------------------------------------------------------------------------------------------


def confirmed(file: ImportFile, logs: Sequence[CheckedLog], *, where: str) -> dict[str, WorkloadOfLogs]:
    """Return, by workload, the options that the import gives or that a log states."""
    labels = dict.fromkeys(log.log.workload.label for log in logs)
    return {
        label: _confirmed(file, [log for log in logs if log.log.workload.label == label], where) for label in labels
    }


def _confirmed(file: ImportFile, logs: Sequence[CheckedLog], where: str) -> WorkloadOfLogs:
    texts = {claim.option: claim.text for log in logs for claim in claims(file, log.log, where)}
    outputs = [(log.log, output) for log in logs for output in log.outputs]
    names = dict.fromkeys([*texts, *(name for _, output in outputs for name in output)])
    return WorkloadOfLogs(
        outputs=len(outputs),
        options={name: _option(name, texts.get(name), outputs) for name in names},
        filesystems=tuple(dict.fromkeys(log.filesystem for log, _ in outputs)),
    )


def _option(name: str, claimed: str | None, outputs: Sequence[tuple[LogFile, Mapping[str, Stated]]]) -> OptionOfLogs:
    """Return what logs state of one option: what agrees, but for how it is rounded, has one text."""
    texts: list[tuple[Stated, str]] = []
    values: dict[str, tuple[str, ...]] = {}
    number = 0
    for log, output in outputs:
        one = output.get(name)
        if one and one.computed and name in MAY_DIFFER:
            continue  # how long it took is a figure, and compared as one
        text = next((text for other, text in texts if one and (other.agrees(one) or one.agrees(other))), None)
        if one and text is None:
            text = value_text(log.workload.tool, name, one.value)
            texts.append((one, text))
        values[log.filesystem] = tuple(dict.fromkeys((*values.get(log.filesystem, ()), text or NOT_STATED)))
        number += bool(one and not (one.computed or one.vague))
    stated_values = {fs: words for fs, words in values.items() if set(words) != {NOT_STATED}}
    return OptionOfLogs(claimed=claimed, stated=number, values=stated_values)

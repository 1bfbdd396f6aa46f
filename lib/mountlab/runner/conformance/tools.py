"""The conformance suite of tools: what a sweep, a plan and a trial rely on. `mountlab conform` runs it for plug-ins."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mountlab.core.errors import MountlabError, ParameterError, ParseError, TrialError
from mountlab.core.figures import checked
from mountlab.core.model import Program, Target, Workload
from mountlab.runner.conformance.rules import NAME, Rule, raised_by, require
from mountlab.tools.base import CACHE, Command, Tool, ToolOutput

DIRECTORY, OUTPUT = "/srv/run/mnt/fs/t0001", "/dev/shm/run/t0001"  # noqa: S108  # of a box, and never touched
DEVICES = ("/dev/zero", "/dev/null", "/dev/urandom")
PACKAGE_MANAGERS = {"apt", "dnf", "zypper", "pacman"}
_LONGEST_GUESS_S = 3600.0


@dataclass(frozen=True)
class ToolExample:
    """A workload of a tool, with what a real trial of it left behind."""

    tool: str
    options: Mapping[str, Any]
    """As in a sweep file, with every needed one."""
    files: Mapping[str, str]
    """What a trial brought back, by name: `stdout`, `stderr`, and what it wrote into its output directory."""
    other_work: Mapping[str, Any] = field(default_factory=dict)
    """Changes of the options that these files do not fit; {} where the output does not tell how much was done."""


@dataclass(frozen=True)
class ToolCase:
    """An example of a tool as its workloads are read from a sweep."""

    tool: Tool
    workload: Workload
    output: ToolOutput
    other: Workload | None = None
    """A workload whose output this is not."""

    @property
    def commands(self) -> list[tuple[str, ...]]:
        """All command lines of a trial."""
        command = self.command()
        return [command.argv, *command.prepare, *command.drop, *command.fill]

    def command(self, **target: Any) -> Command:
        return self.tool.command(self.workload, DIRECTORY, OUTPUT, Target(**target))

    def parse(self, **changes: Any) -> set[tuple[str, str]]:
        """The metrics and labels that are found in the output with such changes."""
        return {(row.metric, row.label) for row in self.tool.parse(self.workload, replace(self.output, **changes))}


def output_of(files: Mapping[str, bytes]) -> ToolOutput:
    """Return what a trial with exit status 0 left behind."""
    return ToolOutput.from_files({"exit_status": b"0\n", "stdout": b"", "stderr": b"", **files})


# --- of a tool --------------------------------------------------------------------------------------------------------


def says_what_it_is(tool: Tool) -> None:
    """It has a plain name, and a docstring that says what it is."""
    require(re.fullmatch(NAME, tool.name), "not a name for a tool", got=tool.name, allowed=f"as in {NAME}")
    require(type(tool).__doc__, "the class of the tool has no docstring", allowed="a sentence: what it measures")


def options_are_of_their_kind(tool: Tool) -> None:
    """Its options have choices and defaults of their own kind, and its reserved ones a reason."""
    for name, option in tool.options.items():
        choice = option.kind == "choice"
        require(choice == bool(option.choices), f"option {name}", got=option.choices, allowed="choices for a choice")
        if option.default is not None:
            good = option.default in option.choices if choice else True
            whole = isinstance(option.default, int) if option.kind in ("int", "flag", "size") else True
            require(good and whole, f"the default of {name}", got=repr(option.default), allowed=f"a {option.kind}")
        require(option.help, f"option {name} has no help", allowed="words for the reference")
    both = {*tool.options} & {*tool.reserved}
    require(not both, "options that are reserved too", got=", ".join(sorted(both)), allowed="one or the other")
    require(all(tool.reserved.values()), "a reserved option without a reason", allowed="why a sweep may not set it")


def asks_for_what_it_needs(tool: Tool) -> None:
    """An option that is needed and not given is asked for by its name."""
    defaults = {key: option.default for key, option in tool.options.items() if option.default is not None}
    try:
        tool.check(defaults, where="s.yml: workloads.w")
    except ParameterError as error:
        named = error.where.startswith("s.yml: workloads.w.") and error.allowed
        require(f"{tool.name} needs" in error.what, "check", got=error.what, allowed=f"'{tool.name} needs OPTION'")
        require(named, "the error of check", got=str(error), allowed="where=f'{where}.OPTION', and what is allowed")


def has_a_clock(tool: Tool) -> None:
    """The resolution of its clock is a positive number of seconds, up to one."""
    require(0 < tool.clock_s <= 1, "clock_s", got=tool.clock_s, allowed="more than 0, up to 1")


def knows_the_cache(tool: Tool) -> None:
    """The state of the page cache is one of its options."""
    option = tool.options.get("cache")
    has_cache = option is not None and option.choices == CACHE.choices
    require(has_cache, "no option `cache`", allowed="'cache': CACHE of mountlab.tools.base in its options")


# --- of an example ----------------------------------------------------------------------------------------------------


def programs_tell_their_version(case: ToolCase) -> None:
    """Its programs say how to ask their version, and where to get them."""
    programs = case.tool.programs_for(case.workload)
    require(programs, "no programs", allowed="each program that a trial starts")
    for program in programs:
        has_version(program)


def has_version(program: Program) -> None:
    """Raise NonConforming for a program whose version is unknown, or that cannot be installed."""
    require(program.name in program.version, f"the version of {program.name}", got=program.version, allowed="a command")
    origin = program.hint or {*program.packages} >= PACKAGE_MANAGERS
    require(origin, f"where {program.name} is from", got=dict(program.packages), allowed="packages=everywhere('NAME')")


def commands_are_plain_words(case: ToolCase) -> None:
    """Its commands are lists of plain words, and one of them is its program."""
    for argv in case.commands:
        plain = argv and all(word and "\n" not in word for word in argv)
        require(plain, "a command", got=argv, allowed="words that are not empty, each on one line")
    names = {program.name for program in case.tool.programs_for(case.workload)}
    require({*case.command().argv} & names, "the command", got=case.command().argv, allowed=f"one of {sorted(names)}")


def touches_its_two_directories(case: ToolCase) -> None:
    """Its commands name no path but those below the two directories that it is given."""
    for path in _paths(case):
        inside = path.startswith((DIRECTORY, OUTPUT)) or path in DEVICES
        require(inside, "a path elsewhere", got=path, allowed=f"below `directory` or `output`, or {', '.join(DEVICES)}")


def _paths(case: ToolCase) -> Iterator[str]:
    for argv in case.commands:
        for word in argv:
            yield from re.findall(r"(?:^|=)(/.*)", word)


def is_deterministic(case: ToolCase) -> None:
    """The same workload gives the same command, with the cache that it asks for."""
    require(case.command() == case.command(), "two commands for one workload", allowed="no clock and no randomness")
    cache, requested = case.command().cache, case.workload.options.get("cache")
    require(cache == requested, "the cache of the command", got=cache, allowed=f"{requested!r}, as the options say")


def says_what_it_writes(case: ToolCase) -> None:
    """The data that it writes is said in words."""
    require(case.tool.written(case.workload).text, "written() has no text", allowed="such as 'zeros', 'random bytes'")


def says_its_seed(case: ToolCase) -> None:
    """A seed changes its command where it says that it takes one, and nowhere else."""
    first, same, other = (case.command(seed=seed) for seed in (11, 11, 13))
    require(first == same, "two commands for one seed", allowed="one")
    require(
        (first != other) == (first.seed is not None), "Command.seed", got=first.seed, allowed="the seed that it uses"
    )
    require(first.seed in (None, 11), "Command.seed", got=first.seed, allowed="None, or that of the target")


def guesses_space_and_time(case: ToolCase) -> None:
    """Space and time are guessed before anything runs; not the space of what works in place."""
    space, took = case.tool.space_bytes(case.workload), case.tool.expected_s(case.workload)
    require(
        space > 0 or case.tool.in_place,
        "space_bytes",
        got=space,
        allowed="the most that it holds at any time, in bytes",
    )
    require(0 < took < _LONGEST_GUESS_S, "expected_s", got=took, allowed="a guess in seconds, below an hour")


def gives_known_metrics(case: ToolCase) -> None:
    """The recorded output gives known metrics in base units, the main ones among them."""
    answer, metrics = case.tool.parse(case.workload, case.output), case.tool.own_metrics(case.workload.options)
    rows = checked(answer, metrics, case.tool.steps, giver=case.tool.name, authors="its authors")
    names, main = {row.metric for row in rows}, {*case.tool.main_metrics(case.workload)}
    require(main and main <= names, "main_metrics", got=sorted(main), allowed=f"some of {sorted(names)}")
    require(names <= {*case.tool.gives}, "gives", got=case.tool.gives, allowed=f"all of {sorted(names)}")
    whole = ("elapsed", "") in {(row.metric, row.label) for row in rows}
    require(whole or "elapsed" not in case.tool.gives, "no `elapsed`", allowed="how long it took, as `gives` has it")


def tells_bytes_by_side(case: ToolCase) -> None:
    """The bytes that it moved are reported by side, where it gives them."""
    sides = {label for metric, label in case.parse() if metric == "bytes"}
    reported = bool(sides) == ("bytes" in case.tool.gives)
    require(reported, "bytes", got=sides or "none", allowed="rows of `bytes` where `gives` has them")
    require(sides <= {"read", "write"}, "the labels of bytes", got=sides, allowed="read, write")


def a_failed_trial_gives_no_figures(case: ToolCase) -> None:
    """A trial whose program failed gives no figures, and says the exit status."""
    for status in (1, 128, 137):
        call = lambda status=status: case.parse(exit_status=status)  # noqa: E731
        error = raised_by(call, TrialError, f"figures with exit status {status}", "a ToolError")
        require(
            str(status) in str(error), "the error", got=error.what, allowed=f"the exit status, {status}, in its text"
        )


def empty_output_gives_no_figures(case: ToolCase) -> None:
    """Empty output gives no figures, whatever the exit status."""
    empty = {"stdout": "", "stderr": "", "files": {}}
    raised_by(lambda: case.parse(**empty), TrialError, "figures of empty output", "a ParseError or a ToolError")


def output_of_other_work_is_refused(case: ToolCase) -> None:
    """Output of another amount of work is refused."""
    other = case.other
    if other is None:
        return
    error = raised_by(
        lambda: case.tool.parse(other, case.output), TrialError, "figures of other work", "a ToolError or a ParseError"
    )
    require(error.got and error.allowed, "the error", got=str(error), allowed="what was got, and what is allowed")


def noise_is_an_error(case: ToolCase) -> None:
    """Bytes that are no text are an error of Mountlab's."""
    noise = (bytes(range(256)) * 3).decode(errors="replace")
    files = dict.fromkeys(case.output.files, noise)
    call = lambda: case.parse(stdout=noise, stderr=noise, files=files)  # noqa: E731
    try:
        raised_by(call, MountlabError, "figures of noise", "a ParseError")
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        require(
            False, "noise in its output", got=f"{type(error).__name__}: {error}", allowed=f"a {ParseError.__name__}"
        )


OF_TOOL: tuple[Rule[Tool], ...] = (
    says_what_it_is, options_are_of_their_kind, asks_for_what_it_needs, has_a_clock, knows_the_cache,
)  # fmt: skip
OF_EXAMPLE: tuple[Rule[ToolCase], ...] = (
    programs_tell_their_version, commands_are_plain_words, touches_its_two_directories, is_deterministic,
    says_what_it_writes, says_its_seed, guesses_space_and_time, gives_known_metrics, tells_bytes_by_side,
    a_failed_trial_gives_no_figures, empty_output_gives_no_figures, output_of_other_work_is_refused, noise_is_an_error,
)  # fmt: skip

"""What the tools `tree` and `large-directory` share: operations on many files, timed by the box's clock in a script."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mountlab.core.errors import ParameterError, ParseError, ToolError, did_you_mean
from mountlab.core.model import FILES, Measurement, Scalar, Target, Workload
from mountlab.core.options import Option
from mountlab.core.shell import script_text
from mountlab.tools import wall_clock
from mountlab.tools.base import CACHE, Command, Manner, Tool, ToolOutput

COLD = replace(
    CACHE,
    default="cold",
    help="cold: the kernel's caches, of names too, are dropped before each operation, which takes root or the helper; "
    "as_is: they are left as the operation before leaves them. warm is refused: there is nothing to fill them with",
)
MOST = 1_000_000
_LINE = re.compile(r"([a-z][a-z-]{0,20}) (\d{1,18}(?: \d{1,18})?) : (\S.{0,200})")
_GUESSED_FILES_PER_S = 10_000


def operations_option(names: Sequence[str], help_text: str) -> Option:
    """Return the option for what is measured, all of `names` by default."""
    return Option(kind="text", default=" ".join(names), help=help_text)


@dataclass(frozen=True)
class Timed:
    """The line of one operation in the output of the script."""

    counts: tuple[int, ...]
    """What it found, or left: files and bytes."""
    seconds: float
    step_s: float


class OperationsTool(Tool):
    """A tool whose script does one operation after the other on all its files, and times each of them."""

    order: tuple[str, ...]
    """Every operation, in the order in which they are done."""
    amount: str
    """The option for the number of files."""
    noun: str
    """What its script works on: files, names."""
    script: str
    """Beside this module."""
    loads: tuple[str, ...]
    """Programs of the operations, which are loaded again where caches are dropped."""
    clock_s = 1e-9
    """Each trial says what a reading of the clock takes (`Measurement.step`)."""
    gives: tuple[str, ...] = ("file_rate", "elapsed")

    @abstractmethod
    def expected_counts(self, workload: Workload) -> Mapping[str, tuple[int, ...]]:
        """Return what each operation must count, where it does what is asked."""

    @abstractmethod
    def arguments(self, workload: Workload, output: str) -> tuple[str, ...]:
        """Return the arguments of the script between the seed and its programs."""

    def check(self, options: Mapping[str, Scalar], *, where: str) -> None:
        self.check_given(options, {self.amount: "a whole number, such as 10000"}, where=where)
        if not 1 <= int(options[self.amount]) <= MOST:
            raise ParameterError(
                f"not a number of {self.noun} for {self.name}",
                where=f"{where}.{self.amount}",
                got=str(options[self.amount]),
                allowed=f"1 to {MOST}",
            )
        if options["cache"] == "warm":
            raise ParameterError(
                f"{self.name} has nothing to fill the caches with",
                where=f"{where}.cache",
                got="'warm'",
                allowed="cold, or as_is: each operation begins with what the one before leaves in memory",
            )
        words = _split(options)
        unknown = [word for word in words if word not in self.order]
        if unknown or not words:
            raise ParameterError(
                f"{self.name} has no such operation",
                where=f"{where}.operations",
                got=repr(unknown[0]) if unknown else "no operation",
                allowed=f"one or more of {', '.join(self.order)}, with blanks between",
                next_step=did_you_mean(unknown[0], self.order) if unknown else "",
            )

    def measured(self, workload: Workload) -> tuple[str, ...]:
        """Return the operations that are measured, in their order."""
        words = _split(workload.options)
        return tuple(name for name in self.order if name in words)

    def command(self, workload: Workload, directory: str, output: str, target: Target = FILES) -> Command:
        cache, script = self.cache_of(workload), f"{output}/{self.script}"
        about = (str(workload.options[self.amount]), f"seed={target.seed or 0}", *self.arguments(workload, output))
        programs = dict.fromkeys((*(program.name for program in self.programs_for(workload)), *self.loads))
        measured = ",".join(self.measured(workload))
        return Command(
            argv=("sh", script, directory, str(cache), measured, *about, *programs),
            cache=cache,
            files={script: script_text(self.script)},
            seed=target.seed,
        )

    def parse(self, workload: Workload, output: ToolOutput) -> list[Measurement]:
        """Return the rate and the time of each operation under its name, and the time of all."""
        self.check_exit(output, output.stderr.strip() or output.stdout.strip()[-200:])
        timed, measured = self._read_lines(output.stdout), self.measured(workload)
        if tuple(timed) != measured:
            raise ParseError(
                f"{self.name} did not report on what was asked",
                got=", ".join(timed) or "no operation",
                allowed=", ".join(measured),
            )
        expected = self.expected_counts(workload)
        for name, line in timed.items():
            if line.counts != expected[name]:
                raise ToolError(
                    f"{self.name} did not do what was asked",
                    where=name,
                    got=self._words(line.counts),
                    allowed=self._words(expected[name]),
                    evidence=output.stderr.strip(),
                )
        lines = timed.values()
        seconds, step_s = sum(line.seconds for line in lines), sum(line.step_s for line in lines)
        whole = Measurement(metric="elapsed", value=seconds, unit="s", step=step_s)
        return [whole, *(row for name, line in timed.items() for row in self.figures(name, line, workload))]

    def figures(self, name: str, line: Timed, workload: Workload) -> Sequence[Measurement]:
        """Return the figures of one operation."""
        return rate_and_time("file_rate", name, int(workload.options[self.amount]), line)

    def _read_lines(self, text: str) -> dict[str, Timed]:
        lines: dict[str, Timed] = {}
        for number, line in enumerate(text.splitlines(), start=1):
            match = _LINE.fullmatch(line)
            if not match or match[1] not in self.order or match[1] in lines:
                raise ParseError(
                    f"a line of {self.name}'s output cannot be read",
                    where=f"line {number}",
                    got=repr(line[:120]),
                    allowed=f"an operation that was not there before ({', '.join(self.order)}), what it counted, "
                    "a colon, and when it began and ended",
                )
            seconds, step_s = wall_clock.elapsed(f"{match[3]}\n", where=f"line {number}")
            lines[match[1]] = Timed(tuple(map(int, match[2].split())), seconds, step_s)
        return lines

    def _words(self, counts: Sequence[int]) -> str:
        """'1000 files, 14000000 B'."""
        return ", ".join(f"{count} {unit}" for count, unit in zip(counts, (self.noun, "B"), strict=False))

    def expected_s(self, workload: Workload) -> float:
        return 1.0 + len(self.order) * int(workload.options[self.amount]) / _GUESSED_FILES_PER_S

    def manner(self, workload: Workload) -> Manner:
        return Manner(engine=", ".join(self.measured(workload)), depth="1", jobs="1")

    def main_metrics(self, workload: Workload) -> tuple[str, ...]:
        return ("file_rate",)


def _split(options: Mapping[str, Scalar]) -> list[str]:
    return str(options["operations"]).replace(",", " ").split()


def rate_and_time(metric: str, name: str, number: int, line: Timed) -> tuple[Measurement, Measurement]:
    """Return how often a second an operation was done, and how long `number` of it took. `metric`: of the rate."""
    rate = number / line.seconds
    return (
        Measurement(metric=metric, label=name, value=rate, unit="1/s", step=rate * line.step_s / line.seconds),
        Measurement(metric="elapsed", label=name, value=line.seconds, unit="s", step=line.step_s),
    )

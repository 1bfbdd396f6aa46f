"""Whether what a trial sent back is a measurement, and if not, why. The kinds of failure are types of
mountlab.core.errors; mountlab.outcome.consequences has what follows from each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mountlab.core.errors import (
    LONGEST_PART,
    EnvironmentFault,
    FigureError,
    MountChanged,
    NeighbourFault,
    ParseError,
    TimedOut,
    ToolError,
    TransientError,
    TrialError,
    failure_headline,
    in_one_line,
)
from mountlab.core.model import Measurement, Status, Workload
from mountlab.core.trial_files import TrialFiles
from mountlab.core.units import format_bytes
from mountlab.filesystems.counters import around
from mountlab.filesystems.neighbours import MOST_GAP, neighbour_file, read_beside
from mountlab.outcome.archive import LARGEST_ARCHIVE, LARGEST_OUTPUT, Files
from mountlab.outcome.consequences import consequence_of
from mountlab.outcome.kernel_log import kernel_lines, out_of_memory_programs, with_kernel
from mountlab.tools.base import ToolOutput

TIMED_OUT = 124
LIMIT = "(design.trial_timeout)"
"""Words in the reason of each trial that ran into its time limit."""
_NOT_STARTED = {126: "cannot be run", 127: "is not there"}
_SIGTERM = 15
_SIGNALS = {
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL",
    11: "SIGSEGV", 13: "SIGPIPE", 14: "SIGALRM", _SIGTERM: "SIGTERM", 24: "SIGXCPU", 25: "SIGXFSZ", 31: "SIGSYS",
}  # fmt: skip
"""Number of a signal on Linux to its name; an exit status is 128 more."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of one attempt at a trial."""

    files: Files = field(default_factory=dict)
    output: ToolOutput | None = None
    """The files as text; None for an attempt that is no measurement."""
    measurements: Sequence[Measurement] = ()
    error: TrialError | None = None
    """Why it is no measurement; None for a measurement."""

    @property
    def status(self) -> Status:
        if self.error is None:
            return "ok"
        if isinstance(self.error, TimedOut):
            return "timeout"
        return (
            "invalid"
            if self.found_mount_unfit or isinstance(self.error, MountChanged | FigureError | NeighbourFault)
            else "failed"
        )

    @property
    def reason(self) -> str:
        """Why it failed, with what the kernel logged meanwhile."""
        return with_kernel(str(self.error), kernel_lines(self.files)) if self.error else ""

    @property
    def found_mount_unfit(self) -> bool:
        """Whether its script found the file system unfit, and measured nothing."""
        return TrialFiles.REFUSED in self.files

    @property
    def spoilt_mount(self) -> bool:
        """Whether the file system is unfit for a further trial. What a tool unmounts in its own mount namespace stays
        fit."""
        return TrialFiles.MOUNT_SPOILT in self.files or TrialFiles.NOT_WRITABLE in self.files

    @property
    def retry(self) -> bool:
        """Whether there is no measurement, and another attempt may give one."""
        return self.error is not None and consequence_of(self.error).retry


@dataclass(frozen=True)
class Attempts:
    """What all attempts at a trial gave, first to last. The last one is what counts."""

    outcomes: tuple[Outcome, ...]

    @property
    def last(self) -> Outcome:
        return self.outcomes[-1]

    @property
    def reason(self) -> str:
        """Why there is no measurement, with how often it was tried; '' where there is one."""
        first, _, rest = self.last.reason.partition("\n")
        times = f" (the last of {len(self.outcomes)} attempts)" if first and len(self.outcomes) > 1 else ""
        return f"{first}{times}\n{rest}" if rest else f"{first}{times}"

    @property
    def files(self) -> dict[str, bytes]:
        """Files of the last attempt, and below `attempt-N/` those of earlier ones, each with its reason."""
        files = dict(self.last.files)
        for number, outcome in enumerate(self.outcomes[:-1], start=1):
            attempt_files = {**outcome.files, TrialFiles.REASON: outcome.reason.encode()}
            files |= {f"attempt-{number}/{name}": data for name, data in attempt_files.items()}
        return files


@dataclass(frozen=True, kw_only=True)
class ScriptExit:
    """How the script of a trial ended, in terms of its connection."""

    exit_status: int
    archive: bytes
    error_text: str
    """The script's standard error: empty if all went well."""


Parse = Callable[[Workload, ToolOutput], Sequence[Measurement]]
"""Finds the figures in a tool's output. Raises ToolError or ParseError."""


def judge(workload: Workload, files: Files, script_exit: ScriptExit, *, timeout_s: float, parse: Parse) -> Outcome:
    """Judge an attempt by its files: a measurement, or the error why not."""
    try:
        _check_script(files, script_exit)
        _check_bounds(files, script_exit)
        _check_preparation(files)
        _check_trace(files)
        _check_neighbours(workload, files)
        output, measurements = _check_end(workload, files, timeout_s, parse)
    except TrialError as error:
        return Outcome(files=files, error=_out_of_memory(files, error) or error)
    return Outcome(files=files, output=output, measurements=measurements)


def _check_script(files: Files, script_exit: ScriptExit) -> None:
    if script_exit.exit_status:
        headline = failure_headline(
            f"the trial's script failed with exit status {script_exit.exit_status}", script_exit.error_text
        )
        kind = TransientError if script_exit.exit_status - 128 in _SIGNALS else EnvironmentFault
        raise kind(headline, evidence=script_exit.error_text[-LONGEST_PART:])
    problems = [line for line in script_exit.error_text.splitlines() if line.startswith("mountlab: ")]
    if problems:
        raise EnvironmentFault(
            "the box's directory for output is full",
            got="; ".join(line.removeprefix("mountlab: ") for line in problems),
            evidence=script_exit.error_text,
            next_step="see what fills it: `df` of the box's output_root (`mountlab box check`)",
        )
    if TrialFiles.REFUSED in files:
        raise EnvironmentFault(_text(files, TrialFiles.REFUSED))


def _check_bounds(files: Files, script_exit: ScriptExit) -> None:
    for name, part in (
        (TrialFiles.STDOUT, "standard output"),
        (TrialFiles.STDERR, "standard error"),
        (TrialFiles.PREPARATION, "its preparation"),
    ):
        if len(files.get(name, b"")) > LARGEST_OUTPUT:
            raise ToolError(
                f"it printed without end: more than {format_bytes(float(LARGEST_OUTPUT))} in {part}, where it was cut",
                evidence=files[name][:1000].decode(errors="replace"),
            )
    if len(script_exit.archive) > LARGEST_ARCHIVE:
        raise ToolError(
            f"it left more than {format_bytes(float(LARGEST_ARCHIVE))} beside its output; only a part of it was kept",
            got=", ".join(f"{name}: {format_bytes(float(len(data)))}" for name, data in _largest(files)),
            next_step="let it log less (fio: log_avg_msec), or into its directory on the file system",
        )


def _largest(files: Files) -> list[tuple[str, bytes]]:
    return sorted(files.items(), key=lambda item: -len(item[1]))[:3]


def _check_preparation(files: Files) -> None:
    if TrialFiles.UNPREPARED in files:
        text = files[TrialFiles.UNPREPARED].decode(errors="replace")
        raise ToolError(failure_headline("the preparation failed", text), evidence=text)


def _check_trace(files: Files) -> None:
    """Raise EnvironmentFault for a diagnostic trial that perf or strace never recorded, TransientError for a record
    that broke off."""
    if TrialFiles.UNTRACED in files:
        text = f"it was not traced: {_text(files, TrialFiles.UNTRACED)}"
        raise TransientError(text) if TrialFiles.STARTED in files else EnvironmentFault(text)
    if TrialFiles.UNPROFILED in files:
        raise EnvironmentFault(f"its system calls were not recorded: {_text(files, TrialFiles.UNPROFILED)}")


def _check_neighbours(workload: Workload, files: Files) -> None:
    """Raise NeighbourFault where what should run beside it did not begin, or did not run all the time."""
    if TrialFiles.NEIGHBOUR_FAILED in files:
        name, _, why = files[TrialFiles.NEIGHBOUR_FAILED].decode(errors="replace").strip().partition(": ")
        raise NeighbourFault(f"neighbour {name} did not run: {why}", evidence=_last_words(files, name))
    if not workload.beside or TrialFiles.EXIT_STATUS not in files:
        return
    names = (TrialFiles.NEIGHBOURS, TrialFiles.UPTIME)
    beside = read_beside({name: files.get(name, b"").decode(errors="replace") for name in names})
    for name in workload.beside:
        if name not in beside:
            raise NeighbourFault(f"neighbour {name} did not run: nothing is known of what it did")
        load = beside[name]
        if load.gap_share > MOST_GAP:
            times = ", ".join(f"{begin:.2f} s to {end:.2f} s" for begin, end in load.gaps[:4])
            status = "" if load.last_status is None else f"; it had ended with exit status {load.last_status}"
            raise NeighbourFault(
                f"neighbour {name} did not run all the time",
                got=f"{load.gap_share:.0%} of {load.seconds:.2f} s without it ({times}){status}",
                allowed=f"{MOST_GAP:.0%}",
                evidence=_last_words(files, name),
            )
        if not load.read_bytes + load.write_bytes:
            raise NeighbourFault(
                f"neighbour {name} moved no bytes while the trial was measured", evidence=_last_words(files, name)
            )


def _last_words(files: Files, name: str) -> str:
    return files.get(neighbour_file(name), b"").decode(errors="replace")[-LONGEST_PART:]


def _text(files: Files, name: str) -> str:
    return files[name].decode(errors="replace").strip()[-300:]


def _check_end(
    workload: Workload, files: Files, timeout_s: float, parse: Parse
) -> tuple[ToolOutput, Sequence[Measurement]]:
    output = _output(files)
    _check_time(output, timeout_s)
    _check_mount(files)
    _check_leftovers(files)
    try:
        return output, parse(workload, output)
    except TrialError as error:
        stderr = output.stderr[-LONGEST_PART:]
        if signal := _SIGNALS.get(output.exit_status - 128):
            headline = failure_headline(f"{workload.tool} was killed by {signal}", stderr)
            raise TransientError(headline, evidence=stderr) from error
        if output.exit_status in _NOT_STARTED:
            headline = failure_headline(f"a program of {workload.tool} {_NOT_STARTED[output.exit_status]}", stderr)
            raise ToolError(headline, evidence=stderr) from error
        if output.exit_status:
            error.what = failure_headline(error.what, error.evidence)
        raise


def _output(files: Files) -> ToolOutput:
    try:
        return ToolOutput.from_files(files)
    except ParseError as error:  # the part of the script that measures was ended
        raise TransientError(error.what, got=error.got, allowed=error.allowed, next_step=error.next_step) from error


def _check_time(output: ToolOutput, timeout_s: float) -> None:
    """Raise TimedOut by the exit status of `timeout`: 124, or of busybox, or after SIGKILL, the signal's number."""
    counters = around(output.files) if output.exit_status > 128 else None
    late = counters is not None and (counters.seconds or 0.0) >= timeout_s
    if output.exit_status == TIMED_OUT or (late and output.exit_status == 128 + _SIGTERM):
        raise TimedOut(f"ran longer than {timeout_s:g} s and was ended {LIMIT}")
    if late:
        raise TimedOut(f"ran longer than {timeout_s:g} s {LIMIT}, ignored SIGTERM and was killed")


def _check_mount(files: Files) -> None:
    """Raise MountChanged where the tool did something to the file system under test."""
    record = files.get(TrialFiles.MOUNT_SPOILT) or files.get(TrialFiles.MOUNT_CHANGED)
    if record is not None:
        before, after = [*record.decode(errors="replace").splitlines(), "", ""][:2]
        action = "changed what is mounted on" if after else "unmounted"
        raise MountChanged(
            f"the tool {action} the directory under test",
            got=after or "nothing is mounted there",
            allowed=before,
            next_step="let it leave the mount alone: what it measured may be another file system",
        )
    if TrialFiles.NOT_WRITABLE in files:
        message = files[TrialFiles.NOT_WRITABLE].decode(errors="replace").strip()
        raise MountChanged("after the tool the file system cannot be written", got=message)


def _check_leftovers(files: Files) -> None:
    if TrialFiles.LEFT_RUNNING in files:
        names = sorted(set(_text(files, TrialFiles.LEFT_RUNNING).split("\n")))
        raise ToolError(
            "it ended and left processes running, which were killed",
            got=", ".join(names),
            allowed="a command that ends after all that it has started",
        )
    if TrialFiles.LEFT_DEVICES in files:
        raise ToolError(
            "it ended and left loop devices on its files, which were detached",
            got=", ".join(_text(files, TrialFiles.LEFT_DEVICES).split("\n")),
            allowed="a command that detaches what it has attached",
        )


def script_timeout(files: Files, whole_s: float) -> TimedOut:
    """Return the error of a trial whose script, preparation included, did not end in its time and was stopped by the
    box itself: a lost connection is another error. `files`: the files that it left."""
    stamps = [name for name in (TrialFiles.STARTED, TrialFiles.ENDED) if name in files]
    part = ("its preparation", "the tool", "its end")[len(stamps)]
    return TimedOut(f"ran longer than {whole_s:g} s in all, and was ended in {part} {LIMIT}")


def is_late(reason: str) -> bool:
    """Return whether a reason, of a trial or of one attempt at it, is that it ran into the time limit. Journals of
    before schema 4 tell this only there."""
    return reason.startswith("ran longer than ") and LIMIT in reason


def _out_of_memory(files: Files, error: TrialError) -> TransientError | None:
    """Return the error of a box without memory, whatever the tool reported; None where memory did not run out."""
    programs = out_of_memory_programs(files)
    if not programs or isinstance(error, EnvironmentFault):
        return None
    return TransientError(
        f"the box had no memory left: its kernel killed {', '.join(programs)}", got=in_one_line(str(error))
    )

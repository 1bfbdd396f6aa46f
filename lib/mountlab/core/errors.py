"""Everything that Mountlab raises on purpose.

    MountlabError                 exit code
    ├── InputError                2   what was asked cannot be: mend the file or the command line
    │   ├── ParameterError        2   a key or value of a parameter file
    │   │   └── ParameterErrors   2   several of one file
    │   ├── PlanError             2   a sweep that this box cannot run (size, rights, missing tool)
    │   ├── MissingExtra          2   a library of an extra that is not installed
    │   ├── PluginError           2   a part of an installed plug-in that cannot be used
    │   ├── NonConforming         2   a part that does not keep a rule of its conformance suite
    │   └── StoreError            2   a run directory that is absent, damaged or not one of ours
    │       ├── KeepError         2   what was measured cannot be written: a disk that is full, read-only or gone
    │       ├── AlteredError      2   a measurement was altered after it was written
    │       └── RunInUse          3   another process writes to this run or batch
    ├── BoxError                  3   the box cannot be reached, or was lost
    │   ├── HostKeyError          3   its host key is unknown or has changed
    │   ├── BoxInUse              3   another run is on it
    │   ├── FloodError            3   it sends more than this machine is ready to hold
    │   ├── BoxTimeout            3   a command did not end in the time that it was given
    │   ├── BoxLost               3   the connection is gone: it may come back, and what ran may run on
    │   │   └── ClientLost        3   the same of a client, which the box itself does not need
    │   └── BoxRestarted          3   it was started again, or cleaned itself: what had been made on it is gone
    ├── SchedulerError            3   the scheduler of a batch cannot be reached, or has no worker that is fit
    ├── UnsafeError               4   going on could destroy somebody's data
    ├── CommandError              1   a command on the box failed (mkfs, mount, umount, ...)
    ├── TrialError                1   one trial is not a measurement
    │   ├── ToolError             1   the tool failed, or ran something else than was asked
    │   │   └── MountChanged       1   it changed the file system under test, or what is mounted in its place
    │   ├── ParseError            1   its output cannot be read as figures
    │   │   └── FigureError        1   what its tool gave is no figure: the trial is invalid
    │   │       └── ValueRefused   1   a value that no trial can have; that of the next one may be good
    │   ├── TimedOut              1   it ran into its time limit: an outcome, never repeated
    │   ├── TransientError        1   it may go another way next time: killed, no memory, a client lost
    │   │   └── NeighbourFault     1   what should run beside it did not run through all of it
    │   └── EnvironmentFault      1   box, directory or file system are not fit for it: the cell is not to blame
    └── LeftoverError             1   something of ours could not be removed from the box

    Interrupted                 130   a person stopped a run: a KeyboardInterrupt, which no handler of errors takes

An error says what happened, where, what was got, what is allowed and what to do next; each part is optional.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

from mountlab.core.text import visible

EXIT_CODES: dict[int, str] = {
    0: "Done.",
    1: "Some trial failed or ran into its time limit, or with `strict` a figure cannot be trusted. Of a check: it "
    "found something.",
    2: "Bad input: a parameter file, a command line, a run directory, a disk that takes no more; or a sweep that this "
    "box cannot run.",
    3: "The box cannot be reached, its host key is not known, or another run is on it; or another process writes to "
    "the same run; or the scheduler of a batch cannot be reached.",
    4: "Unsafe: going on could destroy somebody's data. Nothing was touched.",
    5: "Of `gate`: inconclusive with this number of blocks. Neither a slowdown nor its absence is shown.",
    130: "Stopped by Ctrl-C. All measurements are kept; `resume` goes on.",
    141: "The reader of the output ended first, as `| head` does: the output was cut off.",
}
"""Exit code of the command line to what it means."""


LONGEST_PART = 4000
"""Characters of one part of an error's text."""


class MountlabError(Exception):
    """Base of all errors that are meant to be read by people.

    `str(error)` is the whole text, one labelled line for each part that is known.
    """

    exit_code = 1

    def __init__(
        self, what: str, *, where: str = "", got: str = "", allowed: str = "", next_step: str = "", evidence: str = ""
    ) -> None:
        super().__init__(what)
        self.what, self.where, self.got = what, where, got
        self.allowed, self.next_step, self.evidence = allowed, next_step, evidence

    def __str__(self) -> str:
        parts = {"where": self.where, "got": self.got, "allowed": self.allowed, "next": self.next_step}
        lines = [self.what] + [f"  {label + ':':9}{_short(text)}" for label, text in parts.items() if text]
        printed = self.evidence.strip().splitlines()
        if printed and not (len(printed) == 1 and self.what.endswith(f": {printed[0]}")):
            lines += ["  it said:"] + [f"    | {line}" for line in _ends(printed)]
        return visible("\n".join(lines))

    def _render_traceback_(self) -> list[str]:
        """Return what IPython asks for before it makes a traceback: the message says where, and a way through our own
        code would only hide it."""
        return str(self).splitlines()


class Interrupted(KeyboardInterrupt):
    """A run was stopped by a person; what it did on the box is undone, and what it measured is kept.

    `next_step` goes on with it in a shell, `in_python` in a notebook, which shows these words in the place of a
    traceback. `what`: how things are now, where that was no run on a box.
    """

    what = "stopped; everything on the box is undone, and all measurements are kept"

    def __init__(self, next_step: str, *, in_python: str, what: str = what) -> None:
        super().__init__(next_step)
        self.next_step, self.in_python, self.what = next_step, in_python, what

    def _render_traceback_(self) -> list[str]:
        """Return what IPython asks for before it makes a traceback."""
        return [f"{self.what[0].upper()}{self.what[1:]}. To go on:", self.in_python]


def _short(text: str) -> str:
    """Leave out the middle of a text that would fill the terminal: `got` may be a whole file."""
    excess = len(text) - LONGEST_PART
    half = LONGEST_PART // 2
    return text if excess <= 0 else f"{text[:half]} ... ({excess} characters) ... {text[-half:]}"


def _ends(lines: list[str]) -> list[str]:
    """Return at most a dozen lines from both ends: some programs print the reason first, others last."""
    return lines if len(lines) <= 12 else [*lines[:3], f"... ({len(lines) - 11} lines)", *lines[-8:]]


KERNEL = "the kernel logged:"
"""Heading of the kernel's log in an error's evidence."""


class InputError(MountlabError):
    exit_code = 2


class ParameterError(InputError): ...


class ParameterErrors(ParameterError):
    """Several errors of one file, in its order. Its own parts are those of the first."""

    def __init__(self, errors: Sequence[ParameterError]) -> None:
        first = errors[0]
        parts = {"where": first.where, "got": first.got, "allowed": first.allowed, "next_step": first.next_step}
        super().__init__(first.what, **parts, evidence=first.evidence)
        self.errors = [single for error in errors for single in all_of(error)]

    def __str__(self) -> str:
        return "\nerror: ".join(map(str, self.errors))


def all_of(error: ParameterError) -> list[ParameterError]:
    """Return the errors that one stands for."""
    return error.errors if isinstance(error, ParameterErrors) else [error]


def raise_all(errors: Sequence[ParameterError]) -> None:
    """Raise these errors as one, where there are any."""
    if errors:
        raise ParameterErrors(errors) if len(errors) > 1 else errors[0]


class PlanError(InputError): ...


class MissingExtra(InputError): ...


class PluginError(InputError):
    @property
    def in_short(self) -> str:
        """What happened and why, in a line."""
        return in_one_line(f"{self.what}: {self.got}")


class NonConforming(InputError): ...


class StoreError(InputError): ...


class KeepError(StoreError): ...


class AlteredError(StoreError): ...


class RunInUse(StoreError):
    exit_code = 3


class BoxError(MountlabError):
    exit_code = 3


class HostKeyError(BoxError): ...


class BoxInUse(BoxError): ...


class FloodError(BoxError): ...


class BoxTimeout(BoxError): ...


class BoxLost(BoxError): ...


class ClientLost(BoxLost):
    """A box from which a workload was driven together with others did not come back."""


class BoxRestarted(BoxError): ...


class SchedulerError(MountlabError):
    exit_code = 3


class UnsafeError(MountlabError):
    exit_code = 4


class CommandError(MountlabError): ...


class TrialError(MountlabError): ...


class ToolError(TrialError): ...


class MountChanged(ToolError):
    """The tool changed the file system under test, or what is mounted in its place."""


class ParseError(TrialError): ...


class FigureError(ParseError):
    """What the tool of a trial, or its plug-in, gave for its figures are none."""


class ValueRefused(FigureError):
    """A value that no trial can have."""


class TimedOut(TrialError): ...


class TransientError(TrialError): ...


class NeighbourFault(TransientError):
    """What should run beside the measured command did not run through all of it."""


class EnvironmentFault(TrialError):
    """The box, its directories or the file system were not fit for the trial: its cell is not to blame."""


class LeftoverError(MountlabError): ...


class MountlabWarning(UserWarning):
    """Something that a person should know, and that does not stop what goes on."""


_ONLY_A_HINT = re.compile(r"\bhint:|^(try|see|usage)\b|for more information", re.IGNORECASE)
_COUNTS_OF_DD = re.compile(r"\d+\+\d+ records (in|out)|\d+ bytes .*copied")
"""dd prints them after its reason."""
_LONGEST_WORDS = 300
"""Characters of a line that a program prints, in a headline."""


def failure_headline(what: str, printed: str) -> str:
    """Return a headline for a program that failed: what happened, and the last line that the program printed.

    A program ends with its reason, after progress and warnings. A last line that is only a hint takes the line before
    it along: `Try 'tar --help' for more information.`
    """
    last = _last_words(printed.splitlines())
    return f"{what}: {last}" if last else what


def _last_words(lines: Iterable[str]) -> str:
    words = [line.strip() for line in lines if line.strip() and not _COUNTS_OF_DD.match(line)]
    number = 2 if words and _ONLY_A_HINT.search(words[-1]) else 1
    return "; ".join(line[-_LONGEST_WORDS:] for line in words[-number:])


def in_one_line(text: str) -> str:
    """Return the text of an error for a place with room for a line: what happened, and what tells most of its evidence:
    a refusal of our own scripts, else its first line, unless the headline quotes the last, and the last that the
    kernel logged. What the kernel logged would not do alone: it may be of another device of the box."""
    lines = text.splitlines() or [""]
    evidence = [line.strip().removeprefix("| ") for line in lines[1:] if line.lstrip().startswith("| ")]
    refusals = [line.removeprefix("refused: ") for line in evidence if line.startswith("refused: ")]
    kernel = evidence.index(KERNEL) if KERNEL in evidence else len(evidence)
    last = _last_words(evidence[:kernel])
    first = [] if last and f": {last}" in lines[0] else evidence[:kernel][:1]
    best = "; ".join(refusals[:1] or [*first, *evidence[kernel + 1 :][-1:]])
    return f"{lines[0]} ({best})" if best else lines[0]


def did_you_mean(got: str, allowed: Iterable[str]) -> str:
    """Return 'did you mean X?' for the nearest allowed word, whatever its case, or '' where none is near. A word of the
    same letters is nearest, as 'runtime' to 'run_time'; then one that shares a part and whose others `got` shortens, as
    'write_bandwidth' to 'write_bw'. One that `got` shortens altogether is the last."""
    words, wrong = {word.casefold(): word for word in allowed}, got.casefold()
    same = [word for word in words if re.sub("[_-]", "", word) == re.sub("[_-]", "", wrong)]
    short = [word for word in words if _shortens(_parts(wrong), _parts(word))]
    partly = [word for word in short if {*_parts(wrong)} & {*_parts(word)}]
    near = same or partly or difflib.get_close_matches(wrong, words, n=1) or short
    best = difflib.get_close_matches(wrong, near, n=1, cutoff=0.0)
    return f"did you mean {words[best[0]]!r}?" if best else ""


def _parts(name: str) -> list[str]:
    return re.split("[_-]", name)


def _shortens(parts: Sequence[str], whole: Sequence[str]) -> bool:
    """Return whether each part is one of the whole or one with letters left out, in order and from the first on."""
    rest = iter(whole)
    return _leaves_out(parts[0], whole[0]) and all(any(_leaves_out(part, full) for full in rest) for part in parts)


def _leaves_out(short: str, full: str) -> bool:
    letters = iter(full)
    return short == full or (len(short) > 1 and short[0] == full[:1] and all(letter in letters for letter in short))

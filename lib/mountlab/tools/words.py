"""What tools share that hand options of a sweep to a program: its words, their limits, and what it says that it did."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from mountlab.core.errors import ParameterError, ToolError
from mountlab.core.model import Scalar

LONGEST_S = 3600


def option_words(options: Mapping[str, Scalar], forms: Mapping[str, str]) -> tuple[str, ...]:
    """Return the words for the options that are given. `forms`: option to its words, as in '--threads={}' or '-s {}';
    without braces, those of a flag that is on."""
    words = list[str]()
    for name, form in forms.items():
        value = options.get(name)
        if value is not None and (value or "{" in form):
            words += form.format(value).split()
    return tuple(words)


def run_inside(directory: str, *argv: str) -> tuple[str, ...]:
    """Return the command that runs `argv` in a directory, for a program that puts its files where it is started."""
    return ("sh", "-c", 'cd "$1" && shift && exec "$@"', "inside", directory, *argv)


def check_numbers(
    tool: str, options: Mapping[str, Scalar], limits: Mapping[str, tuple[int, int]], *, where: str
) -> None:
    """Raise ParameterError for an option beyond its limits, both of which are allowed."""
    for name, (least, most) in limits.items():
        if name in options and not least <= float(options[name]) <= most:
            raise ParameterError(
                f"{tool} cannot do this",
                where=f"{where}.{name}",
                got=str(options[name]),
                allowed=f"{least} to {most}",
            )


def check_seconds(tool: str, options: Mapping[str, Scalar], name: str, *, where: str, least: int = 1) -> None:
    """Raise ParameterError where an option that is given is not in whole seconds, or too few."""
    seconds = float(options.get(name, least))
    if not least <= seconds <= LONGEST_S or seconds != int(seconds):
        raise ParameterError(
            f"{tool} counts whole seconds",
            where=f"{where}.{name}",
            got=f"{seconds:g} s",
            allowed=f"{least}s to {LONGEST_S}s, without a fraction",
        )


def check_stated(tool: str, lines: Container[str], requested: Sequence[str]) -> None:
    """Raise ToolError for the first line that a program prints when it does what was asked, and that is not there."""
    for line in requested:
        if line not in lines:
            raise ToolError(
                f"{tool} does not say that it did what was asked", where="its output", got="no such line", allowed=line
            )


def refuse_direct(kind: str, options: Mapping[str, Scalar], name: str, value: Scalar = 1) -> str | None:
    """Return why an option that asks for direct I/O cannot be on a file system of this kind; None where it may."""
    if kind == "ramfs" and options.get(name) == value:
        return f"ramfs opens no file for direct I/O; leave {name} out, or measure another file system"
    return None

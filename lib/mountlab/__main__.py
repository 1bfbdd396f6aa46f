"""mountlab, or python -m mountlab: runs one verb. Exit codes: 0 done, 1 some trial failed, 2 bad input, 3 box
unreachable, 4 unsafe, 130 stopped, 141 the reader of the output is gone."""

from __future__ import annotations

import sys
import warnings
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from traceback import format_exception
from types import TracebackType
from typing import Any, TextIO, cast

from mountlab.cli import parser
from mountlab.cli.completion import answer_tab
from mountlab.cli.shared import Arguments
from mountlab.core import plugins
from mountlab.core.errors import InputError, Interrupted, MountlabError, MountlabWarning
from mountlab.core.signals import as_interrupts
from mountlab.core.text import Guarded, visible

INTERRUPTED, PIPE_CLOSED = 130, 141


def main(arguments: Sequence[str] | None = None, *, made_by: Callable[[Sequence[str]], ArgumentParser] = parser) -> int:
    """Run one verb and return its exit code; what goes wrong is one clear error on standard error."""
    words = sys.argv[1:] if arguments is None else arguments
    sys.excepthook = _uncaught
    with _guarded():
        made = made_by(words)
        answer_tab(made)
        parsed = made.parse_args(words)
        verb: Callable[[Arguments], int] = parsed.verb
        with warnings.catch_warnings():
            warnings.simplefilter("always", MountlabWarning)
            warnings.showwarning = _warn(warnings.showwarning)
            with as_interrupts():
                return _code(verb, parsed)


@contextmanager
def _guarded() -> Iterator[None]:
    """All that a command prints goes through `text.visible`: runs, logs and sweep files are anybody's."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = cast("tuple[TextIO, TextIO]", tuple(map(Guarded, before)))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a traceback of our own fault as visible text: the message of an error may quote a run."""
    sys.stderr.write(visible("".join(format_exception(kind, error, trace))))


def _warn(show: Callable[..., None]) -> Callable[..., None]:
    """Shows what people should know as one line of words, each once, and the warnings of others as they are."""
    said = set[str]()

    def warn(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if not issubclass(category, MountlabWarning):
            show(message, category, *where, **more)
        elif str(message) not in said:
            said.add(str(message))
            print(f"warning: {message}", file=sys.stderr)

    return warn


def _code(verb: Callable[[Arguments], int], parsed: Arguments) -> int:
    try:
        with plugins.blaming():
            code = verb(parsed)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return _reader_gone()
    except MountlabError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"error: {error.strerror or error}\n  where:   {error.filename or 'this machine'}", file=sys.stderr)
        return InputError.exit_code
    except KeyboardInterrupt as stop:
        print(_stopped(stop), file=sys.stderr)
        print(*stop.args, sep="\n", end="\n" if stop.args else "", file=sys.stderr)
        return INTERRUPTED


def _stopped(stop: KeyboardInterrupt) -> str:
    """Return what a stop has left: only what runs on a box says how to go on, or says it itself."""
    if isinstance(stop, Interrupted):
        return stop.what
    return Interrupted.what if stop.args else "stopped"


def _reader_gone() -> int:
    """Return the exit code where the reader of our output has gone, as in `... | head`: that of a program ended by
    SIGPIPE."""
    with suppress(BrokenPipeError):
        sys.stdout.close()  # else Python tries once more as it ends
    return PIPE_CLOSED


if __name__ == "__main__":
    sys.exit(main())

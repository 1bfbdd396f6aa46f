"""Watch any program: from its command line to a run. `mountlab.watch` in Python, `mountlab watch` in a shell."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from mountlab.core.errors import ParameterError
from mountlab.results import paths
from mountlab.runner import workflow
from mountlab.sweep.sweep_file import resolve
from mountlab.sweep.watch_sweep import LONGEST, WatchRequest


def watch(
    argv: Sequence[str],
    *,
    directory: str | Path | None = None,
    box: str = "local",
    repeats: int = 1,
    name: str = "",
    metrics: Sequence[str] = (),
    environment: Sequence[str] = (),
    drop_caches: bool = False,
    trace: bool = False,
    commit_clients: int = 1,
    timeout: str = LONGEST,
    measured: Callable[[], object] | None = None,
) -> Path:
    """Run a program as it is, and return the run directory: `mountlab.watch(["make", "-j4"], repeats=5)`.

    `directory` is where it runs: here, where none is given; on another box a path there. `name` is what tables call it.
    `metrics` are written NAME=PATTERN:UNIT:BETTER, as for `mountlab watch`. `environment` names variables that it gets;
    on the local box it gets PATH and the language, too. `trace`: it runs once more, with its system calls recorded.
    `commit_clients`: how many can wait for a commit at the same time, where a metric is `commits`. `measured`: as
    for `run`. Raises MountlabError.
    """
    here = paths.load_box(box).embedded == "loopback"
    place = _directory(directory, here=here, box=box)
    asked = WatchRequest(
        argv=(_program(argv[0], place, here=here), *argv[1:]),
        directory=place,
        box=box,
        repeats=repeats,
        label=name,
        metrics=metrics,
        environment=_environment(environment, here=here),
        cold=drop_caches,
        trace=trace,
        commit_clients=commit_clients,
        longest=timeout,
    )
    resolved = resolve(asked.parameters(), where="mountlab watch")
    return workflow.run(resolved, results=paths.RESULTS, measured=measured)


_OF_SHELL = ("PATH", "LANG", "LC_ALL")
"""Variables of this shell that a program on this machine gets."""


def _directory(given: str | Path | None, *, here: bool, box: str) -> str:
    """Return the directory in which the program runs."""
    if here:
        return str(Path(given or ".").absolute())
    if given is None or not str(given).startswith("/"):
        raise ParameterError(
            "on another box the program needs a directory",
            where="--in",
            got=str(given or "nothing"),
            allowed=f"a path on {box} that begins with /",
        )
    return str(given)


def _program(name: str, directory: str, *, here: bool) -> str:
    """Return the path of the program where this shell knows it better than a login on the box."""
    if "/" in name:
        return name if name.startswith("/") else f"{directory}/{name}"
    return (shutil.which(name) or name) if here else name


def _environment(names: Sequence[str], *, here: bool) -> dict[str, str]:
    """Return the variables that the program gets beside those of a login. Raises ParameterError for one that is not
    set."""
    for name in names:
        if name not in os.environ:
            raise ParameterError(
                "a variable that is not set", where="--env", got=name, allowed="a variable of this shell"
            )
    return {name: os.environ[name] for name in [*(name for name in _OF_SHELL if here and name in os.environ), *names]}

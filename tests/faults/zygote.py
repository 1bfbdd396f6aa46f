"""A process that has imported all of Mountlab, and forks one that uses it whenever it is told to.

To start Python and import the libraries takes seconds, and a fault wants hundreds of processes that can be killed. The
forked process is one as any other: a session of its own, its own files and threads, killed by its number.

Standard input: one line of JSON a process: `do` (run, resume: only measured; report, reparse), `target` (sweep file or
run directory), or in their place `words` (a whole command line, as a person types it) and `directory` (where it is
typed); `params` and `results` (directories), `log`, `environment` (more of it). Standard output: its number, and
`ended` when it has. After an empty line its exit status.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

from mountlab.results import paths

_IMPORTED = (
    "mountlab.__main__", "mountlab.runner.workflow", "mountlab.results.store", "mountlab.results.tables",
    "pyarrow.pandas_compat", "pyarrow.parquet",
)  # fmt: skip
"""What a run needs: they take two seconds, and a process more would take them again."""


def serve() -> None:
    """Fork for each line, until there are no more."""
    for name in _IMPORTED:
        import_module(name)
    gc.collect()
    gc.freeze()
    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _child(asked)
        print(pid, flush=True)
        # It is reaped when the next one is asked for: until then its number is nobody else's, and may be killed.
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        print("ended", flush=True)
        sys.stdin.readline()
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def _child(asked: dict[str, Any]) -> None:
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    nothing, log = os.open(os.devnull, os.O_RDONLY), os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number, file in enumerate((nothing, log, log)):
        os.dup2(file, number)
    code = 70
    try:
        code = _do(asked)
    except BaseException:  # noqa: BLE001  (told, and the process ends)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _do(asked: dict[str, Any]) -> int:
    from mountlab.__main__ import main
    from mountlab.core.errors import InputError, MountlabError
    from mountlab.runner import workflow

    os.environ.update(asked["environment"])
    paths.PARAMS, paths.RESULTS = Path(asked["params"]), Path(asked["results"])
    if words := asked["words"]:
        os.chdir(asked["directory"])
        workflow.run.__kwdefaults__["results"] = paths.RESULTS  # as if the library had been imported only now
        return main(words)
    target = Path(asked["target"])
    try:
        match asked["do"]:
            case "run":
                workflow.run(paths.load_sweep(target), results=paths.RESULTS)
            case "resume":
                workflow.resume(target)
            case verb:
                return main([verb, str(target)])
    except MountlabError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return InputError.exit_code
    return 0


if __name__ == "__main__":
    serve()

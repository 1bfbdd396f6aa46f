"""`make lab`: JupyterLab on the notebooks, with the kernel of this environment, here or through a tunnel."""

from __future__ import annotations

import getpass
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from mountlab.core.disk import path_text
from mountlab.core.errors import InputError
from mountlab.core.places import WORKSPACE
from mountlab.results.paths import NOTEBOOKS, RESULTS

FIRST_PORT, PORTS = 8888, 20
TOUR = NOTEBOOKS / "00_tour.ipynb"
SETTINGS = Path(__file__).parent
"""A directory of Jupyter configuration: what JupyterLab does unless the user's own settings say otherwise. Widgets are
heard while a cell runs (the Stop button of a sweep), and no server in the network is asked for news."""


def free_port(wanted: int | None = None) -> int:
    """Return the port that is wanted, or the first free one from 8888 on. Raises InputError where it is taken."""
    candidates = [wanted] if wanted else range(FIRST_PORT, FIRST_PORT + PORTS)
    for port in candidates:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise InputError(
        "no port is free for JupyterLab", got=", ".join(map(str, candidates)), next_step="name another: --port 9000"
    )


def server_root(results: Path = RESULTS) -> Path:
    """Return the directory that JupyterLab shows: the workspace, or what holds it and the results, where these lie
    elsewhere; a link from a notebook to a report then always opens."""
    return Path(os.path.commonpath([WORKSPACE, results.resolve()]))


def check_workspace(notebooks: Path = NOTEBOOKS) -> None:
    """Raise InputError where there is no notebook to open: those inside an installed package are not to be edited."""
    if not any(notebooks.glob("*.ipynb")):
        raise InputError(
            "no notebooks here",
            where=path_text(notebooks),
            next_step="mountlab init DIR makes a workspace with notebooks to edit; then cd DIR",
        )


def command(port: int, *, browser: bool, root: Path | None = None, notebook: Path = TOUR) -> list[str]:
    """Return what starts JupyterLab on a notebook below `root`. The token stays as Jupyter makes it, and only this
    machine can connect."""
    root = (root or server_root()).resolve()
    opened = notebook if notebook.exists() else notebook.parent
    return [
        sys.executable,
        "-m",
        "jupyterlab",
        f"--ServerApp.root_dir={root}",
        f"--LabApp.default_url=/lab/tree/{opened.resolve().relative_to(root).as_posix()}",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        "--ServerApp.ip=127.0.0.1",
        *([] if browser else ["--no-browser"]),
        *(["--allow-root"] if os.geteuid() == 0 else []),
    ]


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of JupyterLab: the kernel of this environment, whatever the user's home holds, and our
    settings before the system's."""
    paths = [str(SETTINGS), *filter(None, [given.get("JUPYTER_CONFIG_PATH")])]
    return {**given, "JUPYTER_PREFER_ENV_PATH": "1", "JUPYTER_CONFIG_PATH": os.pathsep.join(paths)}


def is_remote(given: Mapping[str, str]) -> bool:
    """Return whether a person came by SSH and sees no browser that is started here."""
    return bool(given.get("SSH_CONNECTION")) and not (given.get("DISPLAY") or given.get("WAYLAND_DISPLAY"))


def tunnel(port: int) -> str:
    """Return the line that makes the server's port one of the machine where the browser is."""
    return f"ssh -N -L {port}:localhost:{port} {getpass.getuser()}@{socket.gethostname()}"


def advice(port: int) -> Sequence[str]:
    """Return what to tell before JupyterLab starts."""
    return (
        "JupyterLab on the notebooks; Ctrl-C twice ends it.",
        f"From another machine, there:  {tunnel(port)}",
        f"and open the address below that begins with http://127.0.0.1:{port}/ and ends with the token.",
    )


def run_lab(port: int, *, browser: bool) -> None:
    """Become JupyterLab: this process is replaced, so that signals and the exit code are its own."""
    os.execve(sys.executable, command(port, browser=browser), environment(os.environ))  # noqa: S606  # becomes JupyterLab

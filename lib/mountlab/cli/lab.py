"""lab: start JupyterLab."""

from __future__ import annotations

import os
from typing import Any

from mountlab.cli.shared import Arguments, say, verb
from mountlab.core.extras import need


def add(verbs: Any) -> None:
    lab = verb(verbs, "lab", _lab, "JupyterLab on the notebooks, with the kernel of this environment")
    lab.add_argument("--port", type=int, help="default: the first free one from 8888 on")
    lab.add_argument("--no-browser", action="store_true", help="start no browser here")


def _lab(arguments: Arguments) -> int:
    from mountlab.jupyter import lab

    need("lab", "mountlab lab")
    lab.check_workspace()
    port = lab.free_port(arguments.port)
    for line in lab.advice(port):
        say(line)
    lab.run_lab(port, browser=not (arguments.no_browser or lab.is_remote(os.environ)))
    return 0

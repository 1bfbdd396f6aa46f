"""Mountlab: a research workbench for file systems.

The names that notebooks use, loaded when they are first asked for:

    sweep = mountlab.load_sweep("params/sweeps/ramdisk.yml", preset="small")
    mountlab.show_plan(sweep)
    run = mountlab.load_run(mountlab.run(sweep))
    mountlab.sections.answer(run)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from mountlab.model import Shown

if TYPE_CHECKING:
    from mountlab import plots, sections
    from mountlab.notebook import (
        load_result,
        load_sweep,
        newest_beside,
        newest_of_one_sweep,
        newest_over_boxes,
        newest_run,
        report_link,
        run,
        show_plan,
        sweep_from_notebook,
    )  # fmt: skip
    from mountlab.pickers import browse, explore
    from mountlab.report import write_report
    from mountlab.stats import compare, estimate
    from mountlab.store import Run, load_run
    from mountlab.workflow import resume

_HOME = {
    "load_sweep": "notebook", "sweep_from_notebook": "notebook", "show_plan": "notebook", "newest_run": "notebook",
    "newest_beside": "notebook", "newest_of_one_sweep": "notebook", "newest_over_boxes": "notebook",
    "load_result": "notebook",
    "report_link": "notebook", "browse": "pickers", "explore": "pickers",
    "run": "notebook", "resume": "workflow", "load_run": "store", "Run": "store", "write_report": "report",
    "estimate": "stats", "compare": "stats", "plots": "", "sections": "",
}  # fmt: skip
__all__ = [
    "Run", "browse", "compare", "estimate", "explore", "load_result", "load_run", "load_sweep", "newest_beside",
    "newest_of_one_sweep", "newest_over_boxes", "newest_run", "plots", "report_link", "resume", "run", "sections",
    "show_plan", "sweep_from_notebook", "write_report",
]  # fmt: skip


Shown.looks = staticmethod(lambda: import_module("mountlab.looks"))


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"mountlab has no {name!r}; it has {', '.join(sorted(_HOME))}")
    home = _HOME[name]
    return getattr(import_module(f"mountlab.{home}"), name) if home else import_module(f"mountlab.{name}")

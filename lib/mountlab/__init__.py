"""Mountlab: a research workbench for file systems.

The names that notebooks use, listed in __init__.pyi and loaded when they are first asked for:

    sweep = mountlab.load_sweep("params/sweeps/ramdisk.yml", preset="small")
    mountlab.show_plan(sweep)
    run = mountlab.load_run(mountlab.run(sweep))
    mountlab.sections.answer(run)
"""

from __future__ import annotations

from importlib import import_module

import lazy_loader

from mountlab.core.shown import Shown

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

Shown.looks = staticmethod(lambda: import_module("mountlab.report.display"))

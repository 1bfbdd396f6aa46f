"""Mountlab: a research workbench for file systems.

The names that notebooks use, listed in __init__.pyi and loaded when they are first asked for:

    sweep = mountlab.load_sweep("params/sweeps/ramdisk.yml", preset="small")
    mountlab.show_plan(sweep)
    run = mountlab.load_run(mountlab.run(sweep))
    mountlab.sections.answer(run)

or by hand, with Fabric's Connection as box.fabric:

    with mountlab.box("local") as box, box.mounted("ext4", options=["noatime"]) as place:
        trial = box.trial(place, tool="fio", rw="randread", bs="4KiB", size="64MiB")
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import lazy_loader

import mountlab.box
from mountlab.core.shown import Shown

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


class _OpensBoxes(ModuleType):
    """The package mountlab.box, which can be called as well: mountlab.box("local") opens that box by hand."""

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        """What is called: help and signatures are of this."""
        opens: Callable[..., Any] = import_module("mountlab.runner.by_hand").box
        return opens

    def __call__(self, *arguments: Any, **words: Any) -> Any:
        return self.__wrapped__(*arguments, **words)


mountlab.box.__class__ = _OpensBoxes
Shown.looks = staticmethod(lambda: import_module("mountlab.report.display"))

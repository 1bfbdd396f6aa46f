"""The extras of the package: libraries that only some commands need, and the error where one is not installed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from mountlab.core.errors import MissingExtra

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "lab": ("jupyterlab", "ipywidgets"),
    "fleet": ("dask", "distributed"),
    "catalog": ("duckdb",),
    "publish": ("rocrate", "detect_secrets"),
    "excel": ("openpyxl",),
}
"""Extra, as in `pip install 'mountlab[lab]'`, to the modules of it without which a command cannot work."""


def installed(module: str) -> bool:
    """Return whether a module can be imported, without importing it."""
    return find_spec(module) is not None


def need(extra: str, what: str) -> None:
    """Raise MissingExtra where a module of an extra is not installed. `what`: that which needs it."""
    missing = [module for module in EXTRAS[extra] if not installed(module)]
    if missing:
        raise MissingExtra(
            f"{what} needs a library that is not installed",
            got=", ".join(f"no {module}" for module in missing),
            next_step=f"pip install 'mountlab[{extra}]'",
        )

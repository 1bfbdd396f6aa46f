"""The sweep file that a new sweep begins with."""

from __future__ import annotations

from importlib.resources import files


def new_sweep(name: str) -> str:
    """Return the text of a small valid sweep file with comments, which name the sweep."""
    return files("mountlab.sweep").joinpath("new_sweep.yml").read_text().replace("NAME", name)

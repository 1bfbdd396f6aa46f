"""A figure at the size of a paper: on white, in black, with everything in it that it needs."""

from __future__ import annotations

import io
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from mountlab.plots.style import STYLE, WIDTH_IN, Mark
from mountlab.plots.svg import INK

FORMS = ("svg", "png", "pdf")
_BLACK = "#000000"
_DPI, _KEYS_IN = 300, 0.3
_SETTINGS: dict[Any, Any] = {"svg.fonttype": "path", "pdf.fonttype": 42, "savefig.facecolor": "white"}
"""Text as paths: an SVG then looks alike wherever it is opened. PDFs hold the fonts: their text can be found."""
_METADATA: dict[str, dict[str, Any]] = {
    "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
    "png": {"Software": None},
    "pdf": dict.fromkeys(("CreationDate", "ModDate", "Creator", "Producer")),
}
"""Nothing that changes from one day, or one version of the library, to the next."""


def on_paper(figure: Figure, form: str, *, width_in: float, legend: Mapping[str, Mark]) -> bytes:
    """The bytes of a file. `figure` stays as it is; `legend`: names to explain, and their marks."""
    copy, buffer, scale = deepcopy(figure), io.BytesIO(), min(1.0, width_in / WIDTH_IN)
    with mpl.rc_context({**STYLE, **_SETTINGS}):
        if legend:
            keys = [_key(name, mark) for name, mark in legend.items()]
            look: dict[str, Any] = {"ncols": 4, "frameon": False, "fontsize": "small", "handletextpad": 0.3}
            copy.legend(handles=keys, loc="outside upper left", **look)
        _scale(copy, scale)
        _in_black(copy)
        copy.set_size_inches(width_in, scale * (figure.get_figheight() + (_KEYS_IN if legend else 0)))
        copy.set_layout_engine("constrained")
        copy.savefig(buffer, format=form, dpi=_DPI, metadata=_METADATA[form])
    return buffer.getvalue()


def _key(name: str, mark: Mark) -> Line2D:
    return Line2D([], [], color=mark.colour, marker=mark.marker, markersize=5, linestyle="none", label=name)


def _scale(figure: Figure, scale: float) -> None:
    """Text, lines and markers as much smaller as the whole."""
    for text in figure.findobj(Text):
        text.set_fontsize(scale * float(text.get_fontsize()))
    for line in figure.findobj(Line2D):
        line.set_linewidth(scale * line.get_linewidth())
        line.set_markersize(scale * line.get_markersize())


def _in_black(figure: Figure) -> None:
    """What takes the colour of the page's text is black."""
    for artist in figure.findobj():
        for setting in ("color", "edgecolor", "facecolor", "markeredgecolor", "markerfacecolor"):
            get, put = getattr(artist, f"get_{setting}", None), getattr(artist, f"set_{setting}", None)
            if get and put and _is_ink(get()):
                put(_BLACK)


def _is_ink(colour: Any) -> bool:
    """Of a name, of red, green, blue and alpha, or of several of these (a collection has one for each part)."""
    if isinstance(colour, str):
        return colour == INK
    parts = np.atleast_2d(np.asarray(colour, dtype=float)) if len(colour) else np.empty((0, 4))
    return len(parts) > 0 and all(to_hex((part[0], part[1], part[2])) == INK for part in parts)

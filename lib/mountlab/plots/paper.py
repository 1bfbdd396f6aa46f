"""A figure at the size of a paper: on white, in black, with everything in it that it needs."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from mountlab.plots.style import SMALL_PT, STYLE, WIDTH_IN, Mark
from mountlab.plots.svg import INK
from mountlab.plots.texts import width_pt

FORMS = ("svg", "png", "pdf")
_BLACK = "#000000"
_DPI = 300
_KEY_ROW_IN, _KEYS_IN, _KEY_PT = 0.2, 0.1, 22.0
"""Height of a row of keys, and of what is around them all; width of a key beside its name."""
_SETTINGS: dict[Any, Any] = {"svg.fonttype": "path", "pdf.fonttype": 42, "savefig.facecolor": "white"}
"""Text as paths: an SVG then looks alike wherever it is opened. PDFs hold the fonts: their text can be found."""
_METADATA: dict[str, dict[str, Any]] = {
    "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
    "png": {"Software": None},
    "pdf": dict.fromkeys(("CreationDate", "ModDate", "Creator", "Producer")),
}
"""Nothing that changes from one day, or one version of the library, to the next."""


def on_paper(figure: Figure, form: str, *, width_in: float, legend: Mapping[str, Mark]) -> bytes:
    """Return the bytes of a file. `figure` stays as it is; `legend`: names to explain, and their marks."""
    copy, buffer, scale = deepcopy(figure), io.BytesIO(), min(1.0, width_in / WIDTH_IN)
    with mpl.rc_context({**STYLE, **_SETTINGS}):
        if legend:
            _explain(copy, legend)
        height_in = copy.get_figheight()
        _scale(copy, scale)
        _in_black(copy)
        copy.set_size_inches(width_in, scale * height_in)
        copy.savefig(buffer, format=form, dpi=_DPI, metadata=_METADATA[form])
    return buffer.getvalue()


def _explain(figure: Figure, legend: Mapping[str, Mark]) -> None:
    """Keys above the panels, as many in a row as have room."""
    widest = max(width_pt(name, SMALL_PT) for name in legend) + _KEY_PT
    columns = min(len(legend), max(1, int(72 * WIDTH_IN / widest)))
    keys_in = _KEY_ROW_IN * math.ceil(len(legend) / columns) + _KEYS_IN
    part = figure.get_figheight() / (figure.get_figheight() + keys_in)
    for axes in figure.axes:
        at = axes.get_position()
        axes.set_position((at.x0, at.y0 * part, at.width, at.height * part))
    for text in figure.texts:
        text.set_y(text.get_position()[1] * part)
    figure.set_figheight(figure.get_figheight() + keys_in)
    handles = [
        Line2D([], [], color=mark.colour, marker=mark.marker, markersize=5, linestyle="none", label=name)
        for name, mark in legend.items()
    ]
    look: dict[str, Any] = {"ncols": columns, "frameon": False, "fontsize": SMALL_PT, "handletextpad": 0.3}
    figure.legend(handles=handles, loc="upper left", borderaxespad=0.2, borderpad=0.1, **look)


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
        artist.set_gid(None)  # what its marks say on a page
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

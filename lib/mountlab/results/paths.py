"""Where sweeps, boxes, notebooks and results lie, and how they are opened. No other module knows a path of theirs.

What reads a file is imported where one is read: a Tab in a shell asks for the names alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mountlab.core.disk import path_text
from mountlab.core.errors import StoreError, did_you_mean
from mountlab.core.places import SHIPPED, WORKSPACE
from mountlab.results.plain_files import check_text, read_below

if TYPE_CHECKING:
    from mountlab.core.findings import PublishedFigure
    from mountlab.core.model import Box
    from mountlab.core.safe_yaml import Raw
    from mountlab.sweep.sweep_file import Resolved

PARAMS = Path(os.environ.get("MOUNTLAB_PARAMS", WORKSPACE / "params")).absolute()
"""Where boxes, sweeps, batches and published figures are; the environment variable puts them elsewhere."""
SWEEPS, BATCHES, BOXES, PUBLISHED = "sweeps", "batches", "boxes", "published"
"""Folders of `PARAMS`. What is in none of them is looked for among those that come with Mountlab."""
NOTEBOOKS = WORKSPACE / "notebooks"
RESULTS = Path(os.environ.get("MOUNTLAB_RESULTS", WORKSPACE / "results")).absolute()
"""Where runs are kept; the environment variable puts them elsewhere."""


def read_text(path: Path, what: str, next_step: str) -> str:
    """Return the text of a file. Raises StoreError where it is not there, and where it is none."""
    try:
        check_text(path, path_text(path))
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise StoreError(f"a {what} is text in UTF-8", where=path_text(path), got=str(error)) from error
    except OSError as error:
        raise StoreError(
            f"no such {what}", where=path_text(path), got=error.strerror or str(error), next_step=next_step
        ) from error


def load_sweep(name: Path | str, overrides: Mapping[str, object] | None = None) -> Resolved:
    """Return the sweep of a YAML file, named as for `sweep_path`, overrides applied. Raises StoreError or
    ParameterError."""
    from mountlab.sweep.all_errors import read_all
    from mountlab.sweep.sweep_file import resolve

    path = sweep_path(name)
    text = read_text(path, "sweep file", _nearest(path.stem, sweep_names(), "params/sweeps"))
    where, read = path_text(path), reader_in(path.parent)

    def resolved(raw: Raw) -> Resolved:
        return resolve({"name": path.stem, **raw}, where=where, overrides=overrides, read=read)

    return read_all(text, resolved, where=where, overrides=overrides)


def sweep_path(name: Path | str) -> Path:
    """Return the file of a sweep: the name of one in params/sweeps, without .yml, or a path as for `locate`."""
    return _file_of(name, SWEEPS)


def batch_path(name: Path | str) -> Path:
    """Return the file of a batch: the name of one in params/batches, or a path, as for a sweep."""
    return _file_of(name, BATCHES)


def _file_of(name: Path | str, folder: str) -> Path:
    path = Path(name)
    file = params_file(folder, str(path))
    is_name = len(path.parts) == 1 and path.suffix not in (".yml", ".yaml") and not path.exists()
    return file if file.is_file() or is_name else locate(path)


def params_file(folder: str, name: str) -> Path:
    """Return <folder>/<name>.yml of the workspace; where it has none, that which comes with Mountlab."""
    own, shipped = (place / folder / f"{name}.yml" for place in _params())
    return shipped if shipped.is_file() and not own.is_file() else own


def _params() -> tuple[Path, Path]:
    return PARAMS, SHIPPED / "params"


def sweep_names() -> list[str]:
    """Return the names of all sweeps: below params/sweeps, and those that come with Mountlab."""
    return _names_below(SWEEPS)


def batch_names() -> list[str]:
    """Return the names of all batches: below params/batches, and those that come with Mountlab."""
    return _names_below(BATCHES)


def batch_hint(name: str = "") -> str:
    """Return what to do where no batch has this name: take the nearest, or one of all."""
    return _nearest(name, batch_names(), "params/batches")


def _names_below(folder: str) -> list[str]:
    places = [place / folder for place in _params()]
    return sorted({str(path.relative_to(place).with_suffix("")) for place in places for path in place.rglob("*.yml")})


def _nearest(name: str, names: Sequence[str], place: str) -> str:
    return did_you_mean(name, names) or f"name one of {place}: {', '.join(names)}"


def reader_in(directory: Path) -> Callable[[str, str], str]:
    """Reads the files that a sweep names: those in `directory` and below it, and no others. Of a sweep file that is its
    own directory, also for what `-p` names; of parameters without a file it is the current one."""
    return lambda name, where: read_below(directory, name, where)


def load_box(name: str) -> Box:
    """Return the box of params/boxes/<name>.yml. Raises StoreError or ParameterError."""
    from mountlab.sweep.all_errors import read_all
    from mountlab.sweep.box_file import parse_box
    from mountlab.sweep.untrusted import check_plain

    check_plain([name], "name of a box")
    path = params_file(BOXES, name)
    near = did_you_mean(name, box_names()) or f"use one of: {', '.join(box_names())}."
    text = read_text(path, "box file", f"{near} Or copy params/boxes/example.yml to it")
    where = path_text(path)
    return read_all(text, lambda raw: parse_box(raw, name=name, where=where), where=where)


def box_names() -> list[str]:
    """Return the names of the files of params/boxes, and of those that come with Mountlab."""
    return sorted({path.stem for place in _params() for path in (place / BOXES).glob("*.yml")})


def load_published(names: tuple[str, ...]) -> list[PublishedFigure]:
    """Return the figures of the named files of params/published/. Raises StoreError for a name that leads elsewhere."""
    from mountlab.core.safe_yaml import parse_yaml
    from mountlab.sweep.published_file import parse_published
    from mountlab.sweep.untrusted import check_plain

    check_plain(names, "published")
    paths = [params_file(PUBLISHED, name) for name in names]
    texts = [read_text(path, "file of published figures", "correct `published` in the sweep file") for path in paths]
    return [
        figure
        for path, text in zip(paths, texts, strict=True)
        for figure in parse_published(parse_yaml(text, where=path_text(path)), where=path_text(path))
    ]


def locate(path: Path | str) -> Path:
    """Return a path that a person gave: from here where it is there, else from the workspace, else that of a file which
    comes with Mountlab."""
    found = (place for place in (Path(), WORKSPACE, SHIPPED) if (place / path).exists())
    return next(found, WORKSPACE) / path


def notebook_path(name: str) -> Path:
    """Return <name>.ipynb of the workspace, which may be changed there; else that which comes with Mountlab."""
    own = NOTEBOOKS / f"{name}.ipynb"
    return own if own.is_file() else SHIPPED / "notebooks" / own.name


def notebook_names() -> list[str]:
    """Return the names of all notebooks that `notebook_path` finds."""
    return sorted({path.stem for place in (NOTEBOOKS, SHIPPED / "notebooks") for path in place.glob("*.ipynb")})

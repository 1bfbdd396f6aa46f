"""What a published bundle is: its files, its description, and whether two tables of figures are the same."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from mountlab.core.checksums import safe_parts
from mountlab.core.errors import InputError, StoreError, did_you_mean

FORMAT = 1
"""Version of a bundle's layout. 1: first (2026)."""
DESCRIPTION, REPLACED, ENTRY = "bundle.json", "identities.json", "entry.json"
DEFAULT_AUTHOR = "The authors of this bundle"
"""Who made a bundle whose authors were not named."""
TABLES = ("measurements", "estimates", "comparisons")
"""The tables of a run that are made again and held against those that were published."""
_FIGURES_WORDS = """
    value unit n mean low high sd cv level method stopped ratio p p_adjusted low_all high_all
    low_same high_same level_same needed reduce noise verdict
"""
_FIGURES = frozenset(_FIGURES_WORDS.split())
"""Columns of figures and of their verdicts; the others identify the row."""


@dataclass(frozen=True, kw_only=True)
class PublishedRun:
    """One run of a bundle, as its pages speak of it."""

    run_id: str
    name: str
    question: str
    box: str
    created_at: str
    finished_at: str
    status: str
    sentences: tuple[str, ...]
    caveats: Mapping[str, int]
    """Severity to count."""
    trials: int

    @property
    def path(self) -> str:
        """Its directory in the bundle."""
        return f"runs/{self.run_id}"

    def described(self) -> dict[str, Any]:
        """As bundle.json holds it."""
        return {**asdict(self), "path": self.path}


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """Everything that the pages and the metadata of a bundle say."""

    title: str
    authors: tuple[str, ...]
    licence: str
    """An SPDX identifier."""
    runs: tuple[PublishedRun, ...]
    comparisons: Mapping[str, str]
    """Directory of each comparison of two runs to its title."""
    replaced: tuple[Mapping[str, Any], ...] | None
    """What was replaced, by kind; None where identities were kept."""
    ordinary: tuple[str, ...]
    """Kinds with a name that is an ordinary word, which was replaced only where it stands as a name."""
    versions: Mapping[str, str]
    mountlab_version: str

    @property
    def date(self) -> str:
        """The day on which the last of its runs ended: a bundle of the same runs is the same on any day."""
        return self.moment[:10]

    @property
    def moment(self) -> str:
        """When the last of its runs ended."""
        return max(run.finished_at or run.created_at for run in self.runs)

    def described(self) -> dict[str, Any]:
        """As bundle.json holds it."""
        return {"format": FORMAT, **asdict(self), "runs": [run.described() for run in self.runs]}

    def entry(self) -> dict[str, Any]:
        """As the index of results/ wants it."""
        about = {"kind": "bundle", "title": self.title, "created_at": self.moment, "page": "index.html"}
        return {**about, **said_in_index(self.runs)}


def said_in_index(runs: Sequence[PublishedRun]) -> dict[str, Any]:
    """Return what follows from the figures of its runs in the entry of a bundle."""
    caveats = {severity: sum(run.caveats[severity] for run in runs) for severity in runs[0].caveats}
    return {"verdict": runs[0].sentences[0], "caveats": caveats, "runs": [run.run_id for run in runs]}


def slug(title: str) -> str:
    """Return a title as a part of a file name: 'Is tmpfs worth it?' gives 'is-tmpfs-worth-it'."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60].strip("-") or "untitled"


DATA_LICENCES = (
    "CC0-1.0", "CC-BY-4.0", "CC-BY-SA-4.0", "CC-BY-NC-4.0", "CC-BY-NC-SA-4.0", "PDDL-1.0", "ODC-By-1.0", "ODbL-1.0",
    "CDLA-Permissive-2.0", "CDLA-Sharing-1.0", "MIT", "Apache-2.0",
)  # fmt: skip
"""The usual licences of data, which an error names and suggests. Every other identifier of SPDX is allowed, too."""
_IDENTIFIER = re.compile(r"(?!LicenseRef-)[A-Za-z0-9][A-Za-z0-9.-]{1,60}", re.IGNORECASE)
"""One licence that has a page at SPDX: neither an expression of several nor the name of a licence of one's own."""


def check_licence(name: str) -> str:
    """Return the identifier of a licence as SPDX spells it. Raises InputError for a name that SPDX does not list."""
    try:
        if _IDENTIFIER.fullmatch(name):
            return str(canonicalize_license_expression(name))
    except InvalidLicenseExpression:
        pass
    raise InputError(
        "not a licence that SPDX lists",
        where="--licence",
        got=repr(name),
        allowed=f"{', '.join(DATA_LICENCES)}, or another identifier of https://spdx.org/licenses",
        next_step=did_you_mean(name, DATA_LICENCES),
    )


# --- names of files ---------------------------------------------------------------------------------------------------


def plain_name(name: str, where: str) -> str:
    """Return a name that is used as one of a file. Raises StoreError where it would lead elsewhere."""
    if len(safe_parts(name)) != 1:
        raise StoreError("a name that would lead to another directory", where=where, got=repr(name))
    return name


# --- figures ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """One figure that is not the same."""

    run_id: str
    table: str
    row: str
    column: str
    published: str
    recomputed: str

    def __str__(self) -> str:
        return f"{self.run_id}, {self.table}: {self.row}, {self.column}: {self.published}; now {self.recomputed}"


@dataclass(frozen=True)
class Damage:
    """A file that is not what the checksums say. `what`: damaged, missing or extra."""

    what: str
    name: str

    def __str__(self) -> str:
        return f"{self.what}: {self.name}"


@dataclass(frozen=True)
class BundleCheck:
    """What became of a bundle's figures."""

    title: str
    runs: tuple[str, ...]
    damage: tuple[Damage, ...]
    differences: tuple[Difference, ...]
    figures: int
    """How many were held against those that were published."""
    versions: tuple[str, ...]
    """Libraries whose version here is another: 'numpy 2.4.6, here 2.5.0'."""
    lost: tuple[str, ...] = ()
    """Runs without any figure that could be made again."""

    @property
    def same(self) -> bool:
        """Whether all is as it was published."""
        return not self.damage and not self.differences


def differences(run_id: str, table: str, published: str, recomputed: str) -> list[Difference]:
    """Return where two tables, as CSV text, differ in a printed figure; the order of their rows does not matter."""
    theirs, ours = _rows(published), _rows(recomputed)
    return [
        Difference(run_id, table, row, column, *pair)
        for row in dict.fromkeys([*theirs, *ours])
        for column, pair in _pairs(theirs.get(row), ours.get(row))
        if pair[0] != pair[1]
    ]


def _pairs(a: Mapping[str, str] | None, b: Mapping[str, str] | None) -> Iterator[tuple[str, tuple[str, str]]]:
    if a is None or b is None:
        yield "the row", ("absent" if a is None else "present", "absent" if b is None else "present")
        return
    yield from ((name, (a.get(name, "absent"), b.get(name, "absent"))) for name in dict.fromkeys([*a, *b]))


def _rows(text: str) -> dict[str, dict[str, str]]:
    """Return what tells a row from others, as text, to its figures."""
    found, times = dict[str, dict[str, str]](), Counter[str]()
    for row in csv.DictReader(io.StringIO(text)):
        known = {str(key): str(value) for key, value in row.items()}
        name = " ".join(f"{key}={value}" for key, value in known.items() if key not in _FIGURES and value)
        times[name] += 1
        unique = name if times[name] == 1 else f"{name} ({times[name]})"
        found[unique] = {key: value for key, value in known.items() if key in _FIGURES}
    return found


def count_figures(text: str) -> int:
    """Return the cells of a table that hold figures."""
    return sum(value != "" for row in _rows(text).values() for value in row.values())


# --- notebooks --------------------------------------------------------------------------------------------------------


def without_outputs(notebook: Mapping[str, Any]) -> dict[str, Any]:
    """Return a notebook as it is before it is run."""
    return {**notebook, "cells": [_without_output(cell) for cell in notebook["cells"]]}


def _without_output(cell: Mapping[str, Any]) -> dict[str, Any]:
    return {**cell, "outputs": [], "execution_count": None} if cell["cell_type"] == "code" else dict(cell)


def without_clock(notebook: Mapping[str, Any], replace: Callable[[str], str]) -> dict[str, Any]:
    """Return an executed notebook without the times and places of its execution, so that it is the same each time;
    every text in it has gone through `replace`."""
    recorded = notebook["metadata"].get("papermill", {})
    kept = {key: recorded[key] for key in ("parameters", "version") if key in recorded}
    metadata = {**notebook["metadata"], **({"papermill": kept} if kept else {})}
    cells = [_without_time(cell) for cell in notebook["cells"]]
    cleaned: dict[str, Any] = _each_text({**notebook, "metadata": metadata, "cells": cells}, replace)
    return cleaned


def _without_time(cell: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in cell["metadata"].items() if key not in ("papermill", "execution")}
    injected = {"id": "injected-parameters"} if "injected-parameters" in metadata.get("tags", []) else {}
    return {**cell, "metadata": metadata, **injected}


def _each_text(value: Any, replace: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return replace(value)
    if isinstance(value, Mapping):
        return {key: _each_text(each, replace) for key, each in value.items()}
    return [_each_text(each, replace) for each in value] if isinstance(value, Sequence) else value


def of_same_title(names: Iterable[str]) -> str:
    """Return a title for runs of some sweeps: their names, each once."""
    return ", ".join(dict.fromkeys(names))

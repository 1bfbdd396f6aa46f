"""What a published bundle is: its files, its description, and whether two tables of figures are the same."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    """One run of a bundle, as its pages describe it."""

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
        """Return the entry of bundle.json."""
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
        """Return the content of bundle.json."""
        return {"format": FORMAT, **asdict(self), "runs": [run.described() for run in self.runs]}

    def entry(self) -> dict[str, Any]:
        """Return the content of entry.json, which the index of results/ shows."""
        about = {"kind": "bundle", "title": self.title, "created_at": self.moment, "page": "index.html"}
        return {**about, **entry_of_figures(self.runs)}


def entry_of_figures(runs: Sequence[PublishedRun]) -> dict[str, Any]:
    """Return the part of a bundle's entry that follows from the figures of its runs."""
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
    changes = []
    for row in dict.fromkeys([*theirs, *ours]):
        if row not in theirs or row not in ours:
            there = ("present" if row in rows else "absent" for rows in (theirs, ours))
            changes.append(Difference(run_id, table, row, "the row", *there))
            continue
        for column in dict.fromkeys([*theirs[row], *ours[row]]):
            before, after = (rows[row].get(column, "absent") for rows in (theirs, ours))
            if before != after:
                changes.append(Difference(run_id, table, row, column, before, after))
    return changes


def _rows(text: str) -> dict[str, dict[str, str]]:
    """Return the figures of each row by column. Its key is all that identifies the row; equal ones are numbered."""
    rows, times = dict[str, dict[str, str]](), Counter[str]()
    for record in csv.DictReader(io.StringIO(text)):
        cells = {str(key): str(value) for key, value in record.items()}
        name = " ".join(f"{key}={value}" for key, value in cells.items() if key not in _FIGURES and value)
        times[name] += 1
        unique = name if times[name] == 1 else f"{name} ({times[name]})"
        rows[unique] = {key: value for key, value in cells.items() if key in _FIGURES}
    return rows


def count_figures(text: str) -> int:
    """Return the cells of a table that hold figures."""
    return sum(value != "" for row in _rows(text).values() for value in row.values())


# --- notebooks --------------------------------------------------------------------------------------------------------


def without_outputs(notebook: Mapping[str, Any]) -> dict[str, Any]:
    """Return a notebook as it is before it is run."""
    cells = [
        {**cell, "outputs": [], "execution_count": None} if cell["cell_type"] == "code" else cell
        for cell in notebook["cells"]
    ]
    return {**notebook, "cells": cells}


def without_clock(notebook: Mapping[str, Any], replace: Callable[[str], str]) -> dict[str, Any]:
    """Return an executed notebook without the times and places of its execution, so that it is the same each time;
    every text in it has gone through `replace`."""
    recorded = notebook["metadata"].get("papermill", {})
    kept = {key: recorded[key] for key in ("parameters", "version") if key in recorded}
    metadata = {**notebook["metadata"], **({"papermill": kept} if kept else {})}
    cells = []
    for cell in notebook["cells"]:
        about = {key: value for key, value in cell["metadata"].items() if key not in ("papermill", "execution")}
        injected = {"id": "injected-parameters"} if "injected-parameters" in about.get("tags", []) else {}
        cells.append({**cell, "metadata": about, **injected})
    cleaned: dict[str, Any] = _map_texts({**notebook, "metadata": metadata, "cells": cells}, replace)
    return cleaned


def _map_texts(value: Any, replace: Callable[[str], str]) -> Any:
    """Return JSON with every text in it replaced; keys stay."""
    if isinstance(value, str):
        return replace(value)
    if isinstance(value, Mapping):
        return {key: _map_texts(inner, replace) for key, inner in value.items()}
    return [_map_texts(inner, replace) for inner in value] if isinstance(value, Sequence) else value


def of_same_title(names: Iterable[str]) -> str:
    """Return a title for runs of some sweeps: their names, each once."""
    return ", ".join(dict.fromkeys(names))

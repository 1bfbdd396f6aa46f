"""results/batch-<name>-<time>/: what a batch is made of, the journal of its items, its page, and who works on it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any
from uuid import uuid4

from mountlab.batch.batch_file import Batch, Item, ItemOutcome, on_each_box, parse_batch, unfinished
from mountlab.batch.view import BatchView, Planned, result_of
from mountlab.core import disk
from mountlab.core.errors import KeepError, MountlabError, ParameterError, StoreError, in_one_line
from mountlab.core.findings import PublishedFigure
from mountlab.results import paths, run_file, store, writer
from mountlab.results.journal import mend, read_journal, whole_lines
from mountlab.results.lock import held
from mountlab.results.paths import RESULTS, load_published, load_sweep, read_text
from mountlab.sweep.all_errors import read_all

SCHEMA = 2
"""Version of batch.json and of the journal beside it. 1: first. 2: an outcome may name the box."""


def load_batch(path: Path | str) -> Batch:
    """Return the batch of a YAML file, named as for `paths.batch_path`. Raises StoreError or ParameterError."""
    path = paths.batch_path(path)
    text = read_text(path, "batch file", paths.batch_hint(path.stem))
    where = disk.path_text(path)
    batch = read_all(text, lambda raw: parse_batch(raw, name=path.stem, where=where), where=where)

    def boxes_of(item: Item) -> tuple[str, ...]:
        sweep = sweep_path(item)
        return load_sweep(sweep, item.overrides).sweep.boxes if sweep and takes_box(item) else ()

    return on_each_box(batch, boxes_of)


def sweep_path(item: Item) -> Path | None:
    """Return the file of the item's sweep: a name of params/sweeps, or a path as for `paths.locate`."""
    return None if item.sweep is None else paths.sweep_path(item.sweep).absolute()


def notebook_path(item: Item) -> Path:
    """Return the file of the item's notebook, found as its sweep is. Raises StoreError where there is none."""
    name = Path(f"{item.notebook}.ipynb")
    found = [path for path in (paths.notebook_path(name.stem), paths.locate(name).absolute()) if path.is_file()]
    inside = found[:1] if len(name.parts) == 1 else [path for path in found if path.match(str(name))]
    if not inside:
        known = ", ".join(paths.notebook_names())
        raise StoreError("no such notebook", where=f"groups.{item.group}", got=item.notebook, allowed=known)
    return inside[0]


def takes_box(item: Item) -> bool:
    """Return whether the notebook of an item runs on a box."""
    return "box" in parameters_of(notebook_path(item))


class BatchDirectory:
    """A batch as it is kept; only the process that holds it (`held_batch`) may write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.document = _read_document(path)
        self._marks: dict[Path, tuple[str, str]] = {}

    @property
    def batch(self) -> Batch:
        items = tuple(Item(**item) for item in self.document["items"])
        return Batch(name=self.document["name"], title=self.document["title"], items=items)

    @property
    def command(self) -> str:
        """The line that goes on with it."""
        return f"mountlab batch --resume {disk.path_text(self.path)}"

    @property
    def journal(self) -> Path:
        return self.path / "journal.jsonl"

    @property
    def outcomes(self) -> dict[str, ItemOutcome]:
        """The last outcome of each item that was tried; a torn last line counts as nothing."""
        outcomes: dict[str, ItemOutcome] = {}
        for number, line in enumerate(whole_lines(self.journal), start=1):
            try:
                outcome = ItemOutcome(**json.loads(line))
            except (ValueError, TypeError, RecursionError) as error:
                file = disk.path_text(self.journal)
                raise StoreError(
                    "a line of the journal is not the outcome of an item",
                    where=f"{file}, line {number}",
                    got=str(error),
                    next_step=f"look at it; without that line its item counts as not done: sed -i.bak {number}d {file}",
                ) from error
            outcomes[outcome.item] = outcome
        return outcomes

    def mark(self, item: Item) -> str:
        """Return what the runs of an item have as `batch` in their run.json."""
        return f"{self.path.name}/{item.id}"

    def executed(self, item: Item) -> Path:
        """Return where the item's notebook is kept once it has been executed."""
        return self.path / "notebooks" / f"{item.id}.ipynb"

    def run_of(self, item: Item, results: Path) -> Path | None:
        """Return the newest run that this item has made, finished or not: on its box, where it names one."""
        mark, box = self.mark(item), None if item.pool else item.box
        runs = [path for path, (by, where) in self._marked(results) if by == mark and box in (None, where)]
        return runs[-1] if runs else None

    def box_of(self, item: Item, results: Path) -> str:
        """Return the box of that run; '' where there is none."""
        run = self.run_of(item, results)
        return self._marks[run / run_file.FILE][1] if run else ""

    def _marked(self, results: Path) -> Iterator[tuple[Path, tuple[str, str]]]:
        """Yield runs with their mark and their box, oldest first. Neither ever changes: each run is read once."""
        for file in sorted(results.glob(f"[!.]*/{run_file.FILE}")):
            if file not in self._marks:
                try:
                    record = run_file.read_unchecked(file.parent)
                    self._marks[file] = (str(record.get("batch", "")), str(record["box"]["name"]))
                except (MountlabError, OSError, KeyError, TypeError):  # no run of ours
                    continue
            yield file.parent, self._marks[file]

    def record(self, outcome: ItemOutcome) -> None:
        mend(self.journal)
        disk.append_line(self.journal, (json.dumps(asdict(outcome)) + "\n").encode())

    def finish(self, status: str) -> None:
        """Write the status to batch.json: complete, unfinished or running."""
        ended = now() if status == "complete" else None
        self.document = {**self.document, "schema": SCHEMA, "status": status, "finished_at": ended}
        self._write("batch.json", self.document)

    def begin(self) -> None:
        """Write that it is running, in a session of its own: a copy of the directory has another."""
        self.document = {**self.document, "session": uuid4().hex}
        self.finish("running")

    def keep(self, **facts: Any) -> None:
        """Write more keys to batch.json."""
        self.document = {**self.document, **facts}
        self._write("batch.json", self.document)

    def write_page(self, page: str, entry: Mapping[str, Any]) -> Path:
        """Write report.html, and entry.json beside it, by which the index of results knows the batch."""
        self._write("entry.json", entry)
        disk.replace_file(self.path / "report.html", page.encode())
        return self.path / "report.html"

    def write_item_page(self, item: Item, page: str) -> str:
        """Write the page of an item that is no run, and return its name."""
        disk.replace_file(self.path / f"{item.id}.html", page.encode())
        return f"{item.id}.html"

    def _write(self, name: str, data: Mapping[str, Any]) -> None:
        disk.replace_file(self.path / name, json.dumps(data, indent=1, default=str).encode())


def read_view(path: Path | str) -> BatchView:
    """Return a batch with what its runs say, as its page shows it. Figures are derived from the raw output once
    more."""
    directory = BatchDirectory(paths.locate(path).resolve())
    outcomes, results = directory.outcomes, directory.path.parent
    runs = {name: results / outcome.run for name, outcome in outcomes.items() if outcome.run}
    measured = {name: run for name, run in runs.items() if read_journal(run)}
    without = {name for name, outcome in outcomes.items() if outcome.state == "done"} | measured.keys()
    return BatchView(
        batch=directory.batch,
        created_at=str(directory.document["created_at"]),
        name=directory.path.name,
        outcomes=outcomes,
        results={name: result_of(store.load_run(run)) for name, run in measured.items()},
        expected={item.id: _published(item) for item in directory.batch.items if item.id not in without},
        across=dict(directory.document.get("across") or {}),
        command=directory.command,
    )


def newest_batch(results: Path = RESULTS) -> Path:
    """Return the batch below results/ that was begun last. Raises StoreError where there is none."""
    batches = [file.parent for file in results.glob("batch-*/batch.json")]
    if not batches:
        what = f"there is no batch below {disk.path_text(results)}/; name one in `batch`"
        raise StoreError(what, where=disk.path_text(results), next_step="mountlab batch studies")
    return max(batches, key=lambda path: str(_read_document(path).get("created_at", "")))


def _published(item: Item) -> list[PublishedFigure]:
    """Return what others published of the workloads of an item that was not measured; nothing where its sweep file is
    gone."""
    path = sweep_path(item)
    if path is None or not path.is_file():
        return []
    sweep = load_sweep(path, item.overrides).sweep
    workloads = {workload.name for workload in sweep.workloads}
    return [figure for figure in load_published(sweep.published) if figure.workload in workloads]


def cannot(planned: Planned) -> ItemOutcome:
    """Return the outcome of an item that its box cannot do: left out where the batch file says so."""
    return ItemOutcome(
        item=planned.item.id,
        state="left out" if planned.item.optional else "failed",
        ended_at=now(),
        elapsed_s=0.0,
        reason=planned.problem,
        error=planned.error,
    )


def full_disk(item: Item, outcome: ItemOutcome, directory: BatchDirectory) -> KeepError:
    """Return the error that ends a batch: nor would the disk take what the next items measure."""
    return KeepError(
        "the batch stops: what it measures cannot be written any more",
        where=f"{item.id} {item.label}",
        got=in_one_line(outcome.reason),
        next_step=f"make room; then: {directory.command}",
    )


def now() -> str:
    """Return the present moment, as files hold it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _read_document(path: Path) -> dict[str, Any]:
    text = read_text(path / "batch.json", "batch", "name a directory results/batch-...")
    try:
        document: Any = json.loads(text)
    except ValueError as error:
        raise StoreError("batch.json is not whole", where=disk.path_text(path), got=str(error)) from error
    if not isinstance(document, dict) or not {"schema", "name", "title", "items"} <= document.keys():
        raise StoreError("not a batch of Mountlab's", where=disk.path_text(path / "batch.json"))
    if document["schema"] > SCHEMA:
        got, allowed = f"schema {document['schema']}", f"up to {SCHEMA}"
        raise StoreError("written by a later Mountlab", where=disk.path_text(path), got=got, allowed=allowed)
    return document


# ── which directory ──────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def held_batch(batch: Batch, *, results: Path, new: bool = False) -> Iterator[BatchDirectory]:
    """The directory of a batch, held by this process: the newest that is the same batch and is not finished, or a new
    one. Raises StoreError where another process works on it."""
    with ExitStack() as stack:
        # Of two that start together, the second sees the directory of the first.
        with writer.beginning(results):
            directory = None if new else _unfinished(batch, results)
            path = directory.path if directory else _create(batch, results)
            stack.enter_context(held(path, what="batch"))
        yield BatchDirectory(path)


@contextmanager
def held_again(path: Path) -> Iterator[BatchDirectory]:
    """The directory of a batch that was begun, held by this process. Raises StoreError as `held_batch` does."""
    directory = BatchDirectory(path)
    with held(path, what="batch"):
        yield directory


def _unfinished(batch: Batch, results: Path) -> BatchDirectory | None:
    wanted = _as_kept(batch)
    for file in sorted(results.glob(f"batch-{batch.name}-*/batch.json"), reverse=True):
        directory = BatchDirectory(file.parent)
        same = all(directory.document.get(key) == wanted[key] for key in ("name", "items", "digests"))
        if same and (directory.document["status"] != "complete" or unfinished(directory.batch, directory.outcomes)):
            return directory
    return None


def _create(batch: Batch, results: Path) -> Path:
    base = f"batch-{batch.name}-{datetime.now(UTC):%Y%m%dT%H%M%S}"
    names = (base, *(f"{base}-{number}" for number in range(2, 1000)))
    path = next(results / name for name in names if not (results / name).exists())
    document = {
        "schema": SCHEMA,
        "mountlab_version": metadata.version("mountlab"),
        "status": "running",
        "created_at": now(),
        "finished_at": None,
        "git_commit": writer.git_commit(),
        **_as_kept(batch),
    }
    disk.new_directory(path, {"batch.json": json.dumps(document, indent=1, default=str).encode()}, empty="notebooks")
    return path


def _as_kept(batch: Batch) -> dict[str, Any]:
    """With a digest of each sweep file: one that has changed since makes another batch."""
    sweeps = {str(item.sweep): sweep_path(item) for item in batch.items if item.sweep}
    digests = {name: sha256(path.read_bytes()).hexdigest() for name, path in sweeps.items() if path and path.is_file()}
    items = [json.loads(json.dumps(asdict(item), default=str)) for item in batch.items]
    return {"name": batch.name, "title": batch.title, "items": items, "digests": digests}


def parameters_of(notebook: Path) -> list[str]:
    """Return the names of a notebook's parameters: what its cell tagged `parameters` assigns."""
    import ast

    from nbformat import ValidationError, read
    from nbformat.reader import NotJSONError

    try:
        cells = read(notebook, as_version=4).cells  # type: ignore[no-untyped-call]
    except (NotJSONError, ValidationError, UnicodeDecodeError) as error:
        raise StoreError("not a notebook", where=disk.path_text(notebook), got=str(error)) from error
    marked = [cell for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    if not marked:
        raise ParameterError(
            "the notebook has no cell tagged `parameters`", where=disk.path_text(notebook), got="none", allowed="one"
        )
    names = []
    for node in ast.parse(marked[0].source).body:
        match node:
            case ast.Assign(targets=targets):
                names += [target.id for target in targets if isinstance(target, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.append(name)
    return names

"""Notebooks as pages: executed on the runs that come with Mountlab, and written as Markdown with their outputs."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Collection
from functools import cache
from hashlib import sha256
from pathlib import Path

import nbformat
from mountlab.core import disk
from mountlab.core.places import SHIPPED
from mountlab.report.kernels import Kernels
from mountlab.results import paths
from nbformat import NotebookNode

PARAMETERS: dict[str, dict[str, object]] = {
    "00_tour": {},
    "20_report": {},
    "30_inspect_trials": {},
    "40_plan_repeats": {},
    "45_compare_filesystems": {},
    "60_why": {},
    "65_capacity": {},
    "70_explore": {"run": "results/tour"},
    "75_history": {},
}
"""Notebooks that need no box, and the parameters with which they are executed."""
NEEDS = {
    "05_check_box": "it examines a box",
    "10_run_sweep": "it measures on a box",
    "12_by_hand": "it measures on a box",
    "50_compare_runs": "it compares two runs of one sweep, and no two come with Mountlab",
    "80_batch": "it shows a batch, and none comes with Mountlab",
}
"""Why the others are shown without outputs."""
RECORDED = ("tour", "how-much-example", "why-sync-example")


def notebook_pages(cache: Path, execute: Collection[str] = PARAMETERS) -> dict[str, str]:
    """Return a page of each notebook: path in the repository to Markdown. Those of `execute` are executed, and kept in
    `cache` by what they were made from."""
    made = {}
    for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        source = executed(path, cache) if path.stem in execute else path
        why = "" if path.stem in execute else NEEDS.get(path.stem, "notebooks were not executed for this site")
        read = nbformat.read(source, as_version=4)  # type: ignore[no-untyped-call]
        made[f"notebooks/{path.name}"] = markdown(read, f"*Shown without outputs: {why}.*" if why else "")
    return made


def executed(notebook: Path, cache: Path) -> Path:
    """Return the executed notebook, from the cache where neither it nor the code has changed."""
    kept = cache / f"{notebook.stem}-{_digest(notebook)}.ipynb"
    if not kept.exists():
        for older in cache.glob(f"{notebook.stem}-*"):
            older.unlink()
        cache.mkdir(parents=True, exist_ok=True)
        _execute(notebook, kept)
    return kept


def _digest(notebook: Path) -> str:
    """Return a hash of all that an execution depends on."""
    found = sha256(json.dumps(PARAMETERS[notebook.stem]).encode())
    found.update(notebook.read_bytes())
    found.update(_digest_of_all())
    return found.hexdigest()[:16]


@cache
def _digest_of_all() -> bytes:
    """Return a hash of what every notebook depends on: the code, the libraries, the recorded runs, and params/."""
    code = [path for path in (SHIPPED / "lib" / "mountlab").rglob("*") if path.suffix in (".py", ".sh")]
    data = [path for name in RECORDED for path in (SHIPPED / "results" / name).rglob("*") if path.is_file()]
    params = list((SHIPPED / "params").rglob("*.yml"))
    found = sha256()
    for path in (SHIPPED / "requirements.lock", *sorted([*code, *data, *params])):
        found.update(path.read_bytes())
    return found.digest()


def _execute(notebook: Path, executed: Path) -> None:
    """Execute a notebook beside copies of the recorded runs, since it derives tables in them."""
    from papermill import execute_notebook

    with tempfile.TemporaryDirectory(prefix="mountlab-docs-") as place:
        for name in RECORDED:
            shutil.copytree(SHIPPED / "results" / name, Path(place, "results", name))
        kernels = Kernels({"MOUNTLAB_RESULTS": str(Path(place, "results"))})
        unfinished = Path(place, notebook.name)
        execute_notebook(
            notebook,
            unfinished,
            parameters=PARAMETERS[notebook.stem],
            kernel_name="python3",
            progress_bar=False,
            cwd=place,
            kernel_manager_class=kernels.manager(Path(place, "kernel.json")),
        )
        disk.replace_file(executed, unfinished.read_bytes())


def markdown(notebook: NotebookNode, note: str) -> str:
    """Return a notebook as Markdown: text as it is, code as blocks, what a cell shows as HTML or text. `note` is said
    below the title."""
    title, *rest = notebook.cells
    parts = [title.source, note]
    for cell in rest:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        elif cell.source.strip():
            parts += [_fenced("python", cell.source), *map(_output, cell.outputs)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _output(output: NotebookNode) -> str:
    data = output.get("data", {})
    if "text/html" in data:
        return _fenced("{raw} html", f'<div class="jp-OutputArea">{data["text/html"]}</div>')
    if "text/markdown" in data:
        return str(data["text/markdown"])
    return _fenced("text", output.get("text") or data.get("text/plain", ""))


def _fenced(kind: str, text: str) -> str:
    return f"``````{kind}\n{text.rstrip()}\n``````" if text.strip() else ""

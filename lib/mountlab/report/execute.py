"""A run directory to its report: papermill executes the report notebook, nbconvert makes one page of it.

The page holds everything in itself. papermill and nbconvert are imported when they are needed: together they take
three seconds, which a user who only wants a plan should not wait for.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from mountlab.analysis.compare.runs import Factor, compare_runs
from mountlab.core import disk
from mountlab.core.disk import clear
from mountlab.core.errors import MountlabError, MountlabWarning, StoreError, in_one_line
from mountlab.core.signals import in_a_thread
from mountlab.report import index
from mountlab.report.html import Html, on_page, with_links_beside
from mountlab.report.kernels import Kernels, own_loop, prepare
from mountlab.report.outline import without_empty_parts
from mountlab.report.page import TEMPLATE, page
from mountlab.results import find, listing, paths, store, tables
from mountlab.results.info import read_info
from mountlab.results.lock import alone, held
from mountlab.results.plain_files import refuse_others
from mountlab.sweep.untrusted import check_plain

NOTEBOOK = paths.notebook_path("20_report")
COMPARISON = paths.notebook_path("50_compare_runs")
EXECUTION_LIMIT_S = 600
INDEX = "index.html"
INDEX_S = 60.0
"""How long another process that makes the index is waited for."""
_TWO = 2


def write_report(run_path: Path | str, *, notebook: Path = NOTEBOOK) -> Path:
    """Execute the report notebook on a run and return the path of the run's report.html. `run_path` is a path or a
    name, as for `load_run`.

    The executed notebook is kept in <run>/notebooks/. Raises StoreError where there is no run, and MountlabError when a
    cell fails; then report.html is what it was before, and the notebook with the failed cell is kept as *.failed.ipynb.
    """
    run_path = find.run_path(run_path).resolve()
    info = read_info(run_path)
    refuse_others(run_path, disk.path_text(run_path))  # a link in it would have the notebook written elsewhere
    prepare()
    executed, page_file = run_path / "notebooks" / notebook.name, run_path / "report.html"
    question = " ".join(str(info.parameters.get("question", "")).split())
    tables.derive_outdated(run_path)
    try:
        with alone(run_path, what="run's report", fallback=run_path / ".reporting", wait_s=tables.DERIVE_S):
            clear(run_path, f".{page_file.name}.*.tmp")
            execute(notebook, executed, {"run": str(run_path)})
            html = export(executed, title=question or info.run_id)
            disk.replace_file(page_file, with_links_beside(html).encode())
    finally:
        refresh_index(run_path.parent)
    return page_file


def write_comparison(
    *run_paths: Path,
    factor: Factor = "run",
    missing: Mapping[str, str] | None = None,
    results: Path = paths.RESULTS,
    runs_differ: str | None = None,
) -> Path:
    """Execute the notebook that compares runs on two or more, and return the path of its page: below `results`, in a
    directory named after them. `factor`: box for one sweep on several boxes, one run each; `missing`: boxes without a
    run, and why. `runs_differ`: by how much, where that is stated. Raises as `write_report` does, and PlanError for
    runs that cannot be compared."""
    from mountlab.results import earlier  # takes half a second to import
    from mountlab.sentences import comparison

    requested = [path.resolve() for path in run_paths]
    names = [read_info(path).run_id for path in requested]
    check_plain(names, "run.json: run_id")
    runs = [store.load_run(path) for path in requested]
    parameters: dict[str, object] = {"runs": list(map(str, requested))}
    if factor == "box":
        compared = compare_runs(runs, factor=factor, missing=missing)
        parameters |= {"over_boxes": True, "missing": dict(missing or {})}
        ids = sorted(run.info.run_id for run in compared.runs)
        directory = results / f"boxes-{runs[0].sweep.name}-{_digest([*ids, *sorted(missing or {})])}"
    else:
        compared = compare_runs(runs, earlier.runs_differ(runs, runs_differ))
        parameters |= {"runs_differ": runs_differ}
        # Of many runs the first, and a hash of all of them: a name has no room for more.
        more = names[1] if len(names) == _TWO else f"and-{len(names) - 1}-more-{_digest(names)}"
        directory = results / f"compare-{names[0]}-{more}"
    executed, page_file = directory / "notebooks" / COMPARISON.name, directory / "report.html"
    execute(COMPARISON, executed, parameters)
    entry = comparison.entry(compared)
    disk.replace_file(page_file, export(executed, title=str(entry["title"]), kind="comparison").encode())
    disk.replace_file(directory / "entry.json", json.dumps(entry, indent=1).encode())
    refresh_index(directory.parent.resolve())
    return page_file


def _digest(names: Sequence[str]) -> str:
    return sha256(chr(0).join(names).encode()).hexdigest()[:8]


def write_index(results: Path = paths.RESULTS) -> Path:
    """Rewrite `results`/index.html, of all runs, comparisons, batches and bundles found below, and return its path.

    What cannot be read is listed with the reason. Raises StoreError where an index.html of another program lies.
    """
    index_file = results / INDEX
    if index_file.exists() and not _is_ours(index_file):
        raise StoreError(
            "an index.html that Mountlab has not made is not overwritten",
            where=disk.path_text(index_file),
            next_step="move it, or keep runs in a directory of their own (MOUNTLAB_RESULTS)",
        )
    disk.make_directory(results)
    with held(results, what="index", name=".indexing", wait_s=INDEX_S):
        clear(results, f".{INDEX}.*.tmp")
        html = page(index.body(listing.entries(results)), title="Mountlab: runs and reports", kind="index")
        disk.replace_file(index_file, html.encode())
    return index_file


def refresh_index(directory: Path, *, make: bool = False) -> None:
    """The index of the directory in which a run lies, where that is the one of all runs, or has an index already, or
    where one is to be made. One that cannot be written is a warning: what was measured and its report are there."""
    index_file = directory / INDEX
    if make or directory == paths.RESULTS.resolve() or (index_file.exists() and _is_ours(index_file)):
        try:
            write_index(directory)
        except StoreError as error:
            message = f"the list of all runs is as it was: {in_one_line(error.what)} ({error.where}; {error.next_step})"
            warnings.warn(message, MountlabWarning, stacklevel=2)


def _is_ours(index_file: Path) -> bool:
    with index_file.open("rb") as file:
        return b'<meta name="generator" content="Mountlab">' in file.read(4096)


def execute(
    notebook: Path,
    executed: Path,
    parameters: Mapping[str, object],
    *,
    kernels: Kernels | None = None,
    limit_s: int | None = EXECUTION_LIMIT_S,
) -> None:
    """Run a notebook with papermill, in a kernel of this environment, and keep it with its outputs as `executed`.

    `executed` is written whole or not at all. Raises MountlabError when a cell fails, or takes longer than `limit_s`.
    """
    from papermill import PapermillExecutionError, execute_notebook

    disk.make_directory(executed.parent)
    unfinished, failed = (executed.with_name(f"{executed.stem}.{state}.ipynb") for state in ("unfinished", "failed"))
    connection = executed.with_name(f".{executed.stem}.kernel.json")
    failed.unlink(missing_ok=True)
    pool = kernels or Kernels(alone=True)

    def work() -> None:
        with own_loop():
            execute_notebook(
                notebook,
                unfinished,
                parameters=dict(parameters),
                kernel_name="python3",
                progress_bar=False,
                request_save_on_cell_execute=False,
                execution_timeout=limit_s,
                kernel_manager_class=pool.manager(connection),
                shutdown_kernel="graceful" if kernels else "immediate",
            )

    try:
        # In this thread nbclient would take SIGINT and SIGTERM, and give SIGTERM back as the default.
        in_a_thread(work, pool.interrupt if kernels else pool.end)
    except KeyboardInterrupt:
        unfinished.unlink(missing_ok=True)
        raise
    except PapermillExecutionError as error:
        unfinished.replace(failed)
        raise MountlabError(
            "the report could not be made: a cell of its notebook failed",
            where=f"{disk.path_text(notebook)}, {str(error.source).strip().splitlines()[-1]}",
            got=f"{error.ename}: {error.evalue}",
            next_step=f"open {disk.path_text(failed)}, which holds the traceback",
        ) from error
    except (RuntimeError, TimeoutError) as error:  # the kernel died, or a cell took too long
        if unfinished.exists():
            unfinished.replace(failed)
        raise MountlabError(
            "the notebook did not come to its end",
            where=disk.path_text(notebook),
            got=str(error),
            next_step="run it in JupyterLab; of a run, `mountlab resume` does what is left",
        ) from error
    unfinished.replace(executed)


def export(executed: Path, *, title: str, kind: str = "report") -> str:
    """Return an executed notebook as one HTML page by our own template: nothing in it is loaded from anywhere. `kind`
    is what the header calls it."""
    from nbconvert.exporters import TemplateExporter

    # nbconvert's own HTML templates load require.js, MathJax and Mermaid from the network; its HTMLExporter also parses
    # the finished page once more, which costs a second and lowers the case of SVG's attributes.
    exporter = TemplateExporter(  # type: ignore[no-untyped-call]
        template_name=TEMPLATE.name, extra_template_basedirs=[str(TEMPLATE.parent)], file_extension=".html"
    )
    exporter.register_filter("markdown2html", _markdown)  # type: ignore[no-untyped-call]
    # What a batch has not is what went well: nothing failed, nothing was left out.
    outline = partial(without_empty_parts, reasons_at_end=kind != "batch")
    exporter.register_preprocessor(outline, enabled=True)  # type: ignore[no-untyped-call]
    body, _ = exporter.from_filename(str(executed))
    return page(Html(on_page(str(body))), title=title, kind=kind)


def _markdown(source: str) -> str:
    """Markdown of the notebook as HTML; the page gives ids to its headings."""
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    class Renderer(IPythonRenderer):
        def heading(self, text: str, level: int, **attrs: Any) -> str:
            return f"<h{level}>{text}</h{level}>\n"

    return str(MarkdownWithMath(renderer=Renderer(escape=True)).render(source))

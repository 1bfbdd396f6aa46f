"""A run directory to its report: papermill executes the report notebook, nbconvert makes one page of it.

The page holds everything in itself. papermill and nbconvert are imported when they are needed: together they take
three seconds, which nobody should wait for who only wants a plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mountlab import store
from mountlab.errors import MountlabError
from mountlab.html import JUPYTERLAB_STYLE
from mountlab.kernels import Kernels

TEMPLATE = Path(__file__).parent / "template"
NOTEBOOK = store.NOTEBOOKS / "20_report.ipynb"
COMPARISON = store.NOTEBOOKS / "50_compare_runs.ipynb"
EXECUTION_LIMIT_S = 600


def write_report(run_path: Path, *, notebook: Path = NOTEBOOK) -> Path:
    """Execute the report notebook on a run and return the path of the run's report.html.

    The executed notebook is kept in <run>/notebooks/. Raises StoreError where there is no run, and MountlabError when a
    cell fails; then report.html is what it was before, and the notebook with the failed cell is kept as *.failed.ipynb.
    """
    run_path = run_path.resolve()
    info = store.read_info(run_path)
    executed = run_path / "notebooks" / notebook.name
    execute(notebook, executed, {"run": str(run_path)})
    question = " ".join(str(info["parameters"].get("question", "")).split())
    page = run_path / "report.html"
    store.replace_file(page, export(executed, title=question or info["run_id"]).encode())
    return page


def write_comparison(run_a: Path, run_b: Path, *, results: Path = store.RESULTS) -> Path:
    """Execute the notebook that compares two runs, and return the path of its page: below `results`, in a directory
    named after both. Raises as `write_report` does."""
    run_a, run_b = run_a.resolve(), run_b.resolve()
    names = [str(store.read_info(path)["run_id"]) for path in (run_a, run_b)]
    directory = results / f"compare-{names[0]}-{names[1]}"
    directory.mkdir(parents=True, exist_ok=True)
    executed = directory / "notebooks" / COMPARISON.name
    execute(COMPARISON, executed, {"run_a": str(run_a), "run_b": str(run_b)})
    page = directory / "report.html"
    store.replace_file(page, export(executed, title=f"{names[0]} and {names[1]}").encode())
    return page


def execute(
    notebook: Path, executed: Path, parameters: Mapping[str, Any], *, kernels: Kernels | None = None,
    limit_s: int | None = EXECUTION_LIMIT_S,
) -> None:  # fmt: skip
    """Run a notebook with papermill, in a kernel of this environment, and keep it with its outputs as `executed`.

    `executed` is written whole or not at all. Raises MountlabError when a cell fails, or takes longer than `limit_s`.
    """
    from papermill import PapermillExecutionError, execute_notebook

    executed.parent.mkdir(exist_ok=True)
    unfinished, failed = (executed.with_name(f"{executed.stem}.{state}.ipynb") for state in ("unfinished", "failed"))
    failed.unlink(missing_ok=True)
    try:
        execute_notebook(
            notebook, unfinished, parameters=dict(parameters), kernel_name="python3", progress_bar=False,
            request_save_on_cell_execute=False, execution_timeout=limit_s,
            kernel_manager_class=(kernels or Kernels()).manager(),
        )  # fmt: skip
    except PapermillExecutionError as error:
        unfinished.replace(failed)
        raise _cell_failed(error, notebook, failed) from error
    except (RuntimeError, TimeoutError) as error:  # the kernel died, or a cell took too long
        raise MountlabError(
            "the report could not be made",
            where=store.shown(notebook),
            got=str(error),
            next_step="run it in JupyterLab",
        ) from error
    unfinished.replace(executed)


def _cell_failed(error: Any, notebook: Path, failed: Path) -> MountlabError:
    """`error` is papermill's: it knows the cell, its source and what was raised."""
    return MountlabError(
        "the report could not be made: a cell of its notebook failed",
        where=f"{store.shown(notebook)}, {str(error.source).strip().splitlines()[-1]}",
        got=f"{error.ename}: {error.evalue}",
        next_step=f"open {store.shown(failed)}, which holds the traceback",
    )


def export(executed: Path, *, title: str) -> str:
    """An executed notebook as one HTML page by our own template: nothing in it is loaded from anywhere."""
    from nbconvert.exporters import TemplateExporter

    # nbconvert's own HTML templates load require.js, MathJax and Mermaid from the network; its HTMLExporter also parses
    # the finished page once more, which costs a second and lowers the case of SVG's attributes.
    exporter = TemplateExporter(  # type: ignore[no-untyped-call]
        template_name=TEMPLATE.name,
        extra_template_basedirs=[str(TEMPLATE.parent)],
        file_extension=".html",
    )
    exporter.register_filter("markdown2html", _markdown)  # type: ignore[no-untyped-call]
    page, _ = exporter.from_filename(str(executed), resources={"title": title})
    return str(page).replace(JUPYTERLAB_STYLE, "")


def _markdown(source: str) -> str:
    """Markdown of the notebook as HTML; headings get ids, so that they can be linked to."""
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    class Renderer(IPythonRenderer):
        def heading(self, text: str, level: int, **attrs: Any) -> str:
            return f'<h{level} id="{text.replace(" ", "-")}">{text}</h{level}>\n'

    return str(MarkdownWithMath(renderer=Renderer(escape=True)).render(source))

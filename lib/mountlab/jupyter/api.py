"""What notebooks need beside the library's own names: sweeps from papermill parameters, plans to look at."""

from __future__ import annotations

import ast
import os
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mountlab.analysis.compare.runs import RunComparison
from mountlab.batch import boxes as everywhere
from mountlab.batch import commands
from mountlab.core import disk, numbers
from mountlab.core.errors import ParameterError
from mountlab.core.frames import pd
from mountlab.report import html
from mountlab.report.execute import write_report
from mountlab.results import find, journal, paths, store
from mountlab.results.info import read_info, read_sweep
from mountlab.results.paths import RESULTS, reader_in
from mountlab.runner import workflow
from mountlab.sweep.plan_text import plan_text
from mountlab.sweep.sweep_file import SWEEP_KEYS, Resolved, resolve, unknown_names

EXTRA_PARAMETERS = ("sweep_file", "overrides", "run")
"""Parameters of the sweep notebook that are not keys of a sweep file."""


def load_sweep(path: str | Path, *, preset: str | list[str] | None = None, **overrides: Any) -> Resolved:
    """Return the sweep of a YAML file: a path from here or from the workspace, or a name of params/sweeps ("tour").

    Overrides are keys of the design (repeats=3) or of the sweep. Raises ParameterError or StoreError.
    """
    changes = {**({"preset": preset} if preset else {}), **overrides}
    return paths.load_sweep(path, changes)


def sweep_from_notebook(namespace: Mapping[str, Any]) -> Resolved:
    """Return the sweep that a notebook's parameters describe: `globals()` in, strictly checked.

    Where `run` is given, it is the sweep of that run; where `workloads` is given (papermill -f params/sweeps/x.yml) the
    parameters are the sweep, without a `name` that of papermill's file; else `sweep_file` names it. `overrides` changes
    single keys, such as {"repeats": 3}.
    Raises ParameterError for an unknown parameter, and for `run` beside keys of a sweep.
    """
    for cell in namespace.get("In", []):
        unknown_names(_parameters_of(cell), EXTRA_PARAMETERS)
    given = {key: namespace.get(key) for key in SWEEP_KEYS if namespace.get(key) is not None}
    overrides = dict(namespace.get("overrides") or {})
    if isinstance(run := namespace.get("run"), str | Path):
        if others := [*given, *(["overrides"] if overrides else [])]:
            raise ParameterError(
                "a stopped run resumes with its own sweep and on its own box",
                where="notebook parameter run",
                got=f"{str(run)!r} beside {', '.join(others)}",
                allowed="`run` alone, or a sweep without `run`",
            )
        return read_sweep(find.run_path(run))
    if "workloads" in given:
        read = reader_in(Path.cwd())
        named = {"name": papermill_file(_words_of_parent()) or "sweep", **given}
        return resolve(named, where="notebook parameters", overrides=overrides, read=read)
    return load_sweep(namespace["sweep_file"], **{**given, **overrides})


def papermill_file(words: Sequence[str]) -> str:
    """Return the name of the first file of parameters on papermill's command line, without .yml; '' where there is
    none, and on that of another program."""
    if not any(Path(word).name == "papermill" for word in words[:4]):
        return ""
    options = ArgumentParser(add_help=False, allow_abbrev=False)
    options.add_argument("-f", "--parameters_file", action="append", default=[], type=Path)
    files: list[Path] = options.parse_known_args(words)[0].parameters_file
    return files[0].stem if files else ""


def _words_of_parent() -> list[str]:
    """Return the command line of the program that started this kernel: papermill passes on what is in a file, and not
    how it is called. [] where this system does not tell."""
    try:
        return os.fsdecode(Path(f"/proc/{os.environ['JPY_PARENT_PID']}/cmdline").read_bytes()).split("\0")
    except (KeyError, OSError):
        return []


def _parameters_of(cell: str) -> list[str]:
    """Return names assigned in a cell of parameters: papermill's own begins with '# Parameters', and so does ours."""
    if not cell.startswith("# Parameters"):
        return []
    body = ast.parse(cell).body
    targets = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
    targets += [node.target for node in body if isinstance(node, ast.AnnAssign)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


class PlanView(str):
    """A plan as text, which a notebook shows as it is, in a box that scrolls inside itself."""

    def _repr_html_(self) -> str:
        style = (
            "<style>.jp-OutputArea .plan pre{max-height:24rem;overflow:auto}"
            ".jp-OutputArea .plan :is(pre,code){white-space:pre-wrap;word-break:normal;overflow-wrap:break-word}"
            "</style>"
        )
        return style + str(html.box("plan", html.code_block(self)))

    def __repr__(self) -> str:
        return str(self)


def run(resolved: Resolved, *, box: str | None = None) -> Path:
    """Measure a sweep, and return the new run directory; of a sweep with `boxes` a run on each of them, and the
    directory of that batch, which begun again goes on where it stopped. `box` takes the place of the sweep's own.

    Raises as `workflow.run` and `commands.run_batch` do; Interrupted (a KeyboardInterrupt) when interrupted.
    """
    if resolved.sweep.boxes and box is None:
        page, _ = commands.run_batch(everywhere.batch_of(resolved), results=RESULTS)
        return page.parent
    return workflow.run(resolved, box=box)


def load_result(path: Path | str) -> store.Run | RunComparison:
    """Return what `run` has made: a run, or the runs of a sweep on several boxes beside each other. Raises StoreError,
    and PlanError where fewer than two boxes have figures."""
    path = find.run_path(path)
    return everywhere.load_across(path) if everywhere.is_batch(path) else store.load_run(path)


def show_plan(resolved: Resolved | Path | str, *, box: str | None = None) -> PlanView:
    """Show what a run would do, every command of it; of a sweep with `boxes` on each of them. Connects to the boxes and
    changes nothing. Of a stopped run (a path or a name) it says how many trials are left, and connects to nothing."""
    if not isinstance(resolved, Resolved):
        return PlanView(_left_of(find.run_path(resolved)))
    if resolved.sweep.boxes and box is None:
        return PlanView(everywhere.plans_text(everywhere.plans(resolved)))
    with workflow.planned(resolved, box=box) as session:
        return PlanView(plan_text(session.plan, session.facts))


def _left_of(run_path: Path) -> str:
    info, measured = read_info(run_path), len(journal.read_journal(run_path))
    status = f"{info.run_id} on box {info.box_name} is {info.status}."
    total, left = numbers.counted(len(info.order), "trial"), max(0, len(info.order) - measured)
    most = "at most " if read_sweep(run_path).sweep.design.until else ""
    return f"{status} Its journal has {measured} of {most}{total}: {most}{left} left."


@dataclass(frozen=True)
class PageLink:
    """A page of ours as a link that JupyterLab opens; as text the path, which a browser on this machine opens."""

    page: Path
    """The file."""

    def _repr_html_(self) -> str:
        name, target = html.code(disk.path_text(self.page)), _seen_from_notebook(self.page)
        return html.paragraph(
            html.labelled(html.link(target, "Open the report"), name) if target else name
        )._repr_html_()

    def __repr__(self) -> str:
        return disk.path_text(self.page)


def _seen_from_notebook(page: Path) -> str:
    """Return the link from the running notebook to a page, as Jupyter's server resolves it; '' outside of such a
    session.

    `mountlab lab` takes a directory as the server's root that holds both the notebooks and the results.
    """
    notebook = os.environ.get("JPY_SESSION_NAME", "")
    return quote(os.path.relpath(page.resolve(), Path(notebook).resolve().parent)) if notebook else ""


def report_link(run_path: Path | str) -> PageLink:
    """Write the report of a run, or that across boxes of a sweep on several, and give a link to it."""
    run_path = find.run_path(run_path)
    return PageLink(everywhere.write_page(run_path) if everywhere.is_batch(run_path) else write_report(run_path))


def readable(frame: pd.DataFrame, **units: str) -> pd.DataFrame:
    """Return a frame with figures as text for people: `readable(frame, mean="s")` has '8.83 ms' instead of 0.00883.

    `units`: column to its base unit (s, B, B/s, 1/s), to `%` for a share, or to the column that names the unit.
    """
    columns = {}
    for name, unit in units.items():
        of_rows = frame[unit] if unit in frame else [unit] * len(frame)
        columns[name] = [_readable(value, one) for value, one in zip(frame[name], of_rows, strict=True)]
    return frame.assign(**columns)


def _readable(value: float, unit: str) -> str:
    if value != value:
        return numbers.MISSING
    return numbers.percent(value) if unit == "%" else numbers.quantity(value, unit).removesuffix("\u00a01")

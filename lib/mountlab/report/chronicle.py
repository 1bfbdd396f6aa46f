"""The pages of histories: one that a notebook makes of what was asked for, and one for each change that is found.

The pages of changes are rewritten as a whole: a change that is not found any more, as
more runs or an excluded trial speak against it, has no page any more.
"""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import asdict
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from mountlab.analysis.history import History
from mountlab.core import disk
from mountlab.report.execute import execute, export, refresh_index
from mountlab.report.page import page
from mountlab.report.views import history as history_view
from mountlab.results import paths, store
from mountlab.results.histories import Wanted, Years, load_years
from mountlab.sentences import history as history_text
from mountlab.stats.changes import Change

NOTEBOOK = paths.notebook_path("75_history")
_FILES = {"entry.json", "report.html"}
CHANGES = "changes"
"""The directory of their pages, below that of all runs."""


def write_history(wanted: Wanted, *, results: Path = paths.RESULTS) -> Path:
    """Execute the notebook of histories and return the path of its page, in a directory named after what was asked for.
    Raises as `histories.load_years` and `execute.write_report` do."""
    years = load_years(results, wanted)
    parameters = {
        name: value.isoformat() if isinstance(value, datetime) else str(value)
        for name, value in asdict(wanted).items()
        if value is not None
    }
    name = sha256(json.dumps(parameters, sort_keys=True).encode()).hexdigest()[:10]
    directory = years.results / f"history-{name}"
    executed = directory / "notebooks" / NOTEBOOK.name
    execute(NOTEBOOK, executed, {"results": str(years.results), **parameters})
    title = "How did the figures change over the years?"
    disk.replace_file(directory / "report.html", export(executed, title=title, kind="history").encode())
    disk.replace_file(directory / "entry.json", json.dumps(_entry(years, parameters), indent=1).encode())
    refresh_index(years.results)
    return directory / "report.html"


def _entry(years: Years, parameters: dict[str, str]) -> dict[str, object]:
    """Return the index entry of the page; its date is that of the newest run, so that it is the same when it is made
    again."""
    newest = max(point.at for history in years.histories for point in (*history.points, *history.left_out))
    about = ", ".join(f"{name} {value}" for name, value in parameters.items()) or "everything"
    return {
        "kind": "history",
        "title": f"How did the figures change over the years? {about}",
        "page": "report.html",
        "created_at": newest.isoformat(timespec="seconds"),
        "box": parameters.get("box", ""),
        "sweep": parameters.get("sweep", ""),
        "verdict": history_text.sentences(years.histories)[0],
        "caveats": {},
        "runs": sorted({point.run for history in years.histories for point in history.points}),
    }


def write_changes(years: Years) -> list[Path]:
    """Rewrite the page and the index entry of each change, and remove those that are not found any more."""
    directory = years.results / CHANGES
    pairs = {history_view.change_id(*pair): pair for pair in history_text.changed(years.histories)}
    for path in directory.iterdir() if directory.is_dir() else ():
        ours = path.is_dir() and not path.is_symlink() and {file.name for file in path.iterdir()} <= _FILES
        if ours and path.name not in pairs:
            shutil.rmtree(path)
    return [_write_change(directory / name, *pair, years) for name, pair in pairs.items()]


def _write_change(directory: Path, history: History, change: Change, years: Years) -> Path:
    """Return the page of one change; it is left alone where it says the same already."""
    entry = json.dumps(history_view.change_entry(history, change), indent=1).encode()
    sides = [disk.path_text(years.results / history.points[place].run) for place in (change.at - 1, change.at)]
    compare = f"mountlab compare {shlex.join(sides)}"
    runs = [point.run for point in history.points[change.since : change.until]]
    links = {run: f"../../{run}/report.html" for run in runs if (years.results / run / "report.html").exists()}
    body = history_view.change_body(history, change, links, compare=compare)
    html = page(body, title=history_text.change_title(history, change), kind="change").encode()
    present = {file.name: file.read_bytes() for file in map(directory.joinpath, _FILES) if file.exists()}
    files = {"report.html": html, "entry.json": entry}
    store.write_files(directory, {name: data for name, data in files.items() if present.get(name) != data})
    return directory / "report.html"

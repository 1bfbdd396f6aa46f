"""The reference in docs/reference/: pages of Markdown made from the code, so that they cannot go stale.

What a page says stands where the thing itself stands: the docstring below a key of a parameter file, the help of an
option, the advice of a check, the help text of a verb; for metrics, columns and files in mountlab_dev.glossary.
"""

from __future__ import annotations

import inspect

import mountlab
from mountlab import cli
from mountlab.results import tables

from mountlab_dev.glossary import TERMS
from mountlab_dev.reference import files, names, registries, surface
from mountlab_dev.reference.markdown import page, table

_ABOUT = {
    "sweep-file.md": "every key of a sweep file",
    "box-file.md": "every key of a box file",
    "other-files.md": "imports, published figures, batches, exclusions",
    "tools.md": "every tool and its options",
    "filesystems.md": "every file system type: keys, how it is made, what is read back",
    "metrics.md": "every metric: unit, meaning, which way is better, who gives it",
    "caveats.md": "every caveat: severity, what it is about, what to do",
    "command-line.md": "every verb and exit code",
    "run-directory.md": "the files of a run and their columns",
    "python.md": "the public names of `mountlab`",
    "glossary.md": "the words of reports, plans and pages",
}


def pages() -> dict[str, str]:
    """Return every page of the reference: path below docs/ to Markdown."""
    public = {name: inspect.unwrap(getattr(mountlab, name)) for name in mountlab.__all__}
    made = {
        **files.pages(),
        **registries.pages(),
        "command-line.md": surface.verbs_page(cli.parser()),
        "run-directory.md": surface.runs_page(tables.columns()),
        "python.md": names.names_page(public),
        "glossary.md": _glossary(),
    }
    rows = [(f"[{name}]({name})", _ABOUT[name]) for name in made]
    index = page(
        "Reference",
        "Made from the code by `make docs`.",
        table(("Page", "What it holds"), rows),
    )
    return {f"reference/{name}": text for name, text in {"README.md": index, **made}.items()}


def _glossary() -> str:
    """The words, then where names of metrics, columns and files are explained."""
    return page(
        "Glossary",
        "The words of reports, plans and pages. Metrics are explained [here](metrics.md), columns and files "
        "[here](run-directory.md), caveats [here](caveats.md). How figures are made: [METHODS](../../METHODS.md).",
        table(("Word", "Meaning"), TERMS.items()),
    )

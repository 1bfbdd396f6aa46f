"""`make docs`: from text, code and notebooks to pages of HTML, by Sphinx. A warning of Sphinx is an error."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from mountlab.core.places import SHIPPED

from mountlab_dev.site import pages
from mountlab_dev.site.notebooks import PARAMETERS, notebook_pages
from mountlab_dev.site.stage import stage, written

OUTPUT = SHIPPED / "docs" / "_build"


def build(directory: Path = OUTPUT, execute: Collection[str] = PARAMETERS) -> int:
    """Build the site in `directory`/html and return the exit code of Sphinx. `execute`: names of notebooks; the others
    are shown without outputs."""
    built = {f"docs/{name}": text for name, text in pages().items()}
    notebooks = notebook_pages(directory / "notebooks", execute)
    return render({**written(), **built, **notebooks}, directory)


def render(texts: Mapping[str, str], directory: Path) -> int:
    """Make a site of pages (path in the repository to Markdown) and return the exit code of Sphinx: 1 for a link that
    leads nowhere, and for a page in no list."""
    source, doctrees, html = (directory / name for name in ("source", "doctrees", "html"))
    for folder in (source, doctrees, html):  # no page stays that is not made any more
        shutil.rmtree(folder, ignore_errors=True)
    stage(texts, source)
    # In a process of its own: it registers parts with docutils for good, and warns of its own deprecations.
    options = ["-q", "-W", "--keep-going", "-c", str(Path(__file__).parent), "-d", str(doctrees)]
    command = [sys.executable, "-m", "sphinx", *options, str(source), str(html)]
    return subprocess.run(command, check=False).returncode

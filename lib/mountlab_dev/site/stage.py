"""The pages as Sphinx reads them: in the layout of the repository, so that links between them stay as they are."""

from __future__ import annotations

import posixpath
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from mountlab.core.places import SHIPPED

LINK = re.compile(
    r"^(?P<fence>`{3,})[^\n]*\n.*?^(?P=fence)$|\[(?P<words>[^]]*)\]\((?P<target>[^)#\s:]+)(?P<anchor>#[^)\s]*)?\)",
    re.MULTILINE | re.DOTALL,
)
"""A link to a file; or a block of code, in which nothing is a link."""
HOME, INDEX = "README.md", "docs/README.md"


def written(root: Path = SHIPPED) -> dict[str, str]:
    """Return the pages that are kept as text: path in the repository to Markdown."""
    found = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    names = {path.relative_to(root).as_posix(): path for path in sorted(found)}
    return {name: path.read_text() for name, path in names.items() if not name.startswith("docs/_build/")}


def sections(index: str) -> dict[str, list[str]]:
    """Return the navigation, which is that of docs/README.md: heading to the pages that are linked below it."""
    found: dict[str, list[str]] = {}
    listed: set[str] = set()
    for part in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        names = dict.fromkeys(name for name in linked(INDEX, body) if name not in {HOME, *listed})
        found[heading] = list(names)
        listed.update(names)
    return found


def linked(page: str, text: str) -> Iterator[str]:
    """Yield the pages that a page links to: their paths in the repository."""
    for link in LINK.finditer(text):
        if (link["target"] or "").endswith(".md"):
            yield posixpath.normpath(posixpath.join(posixpath.dirname(page), link["target"]))


def stage(texts: Mapping[str, str], directory: Path, root: Path = SHIPPED) -> None:
    """Write pages (path in the repository to Markdown) and the files that they link to below `directory`."""
    for page, text in texts.items():
        links = _Links(page, texts, directory, root)
        target = directory / _staged(page)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"{links.of_site(text)}\n{_navigation(page, texts)}")


class _Links:
    """Links of one page, made to lead to staged pages and files."""

    def __init__(self, page: str, texts: Mapping[str, str], directory: Path, root: Path) -> None:
        self._folder, self._texts, self._directory, self._root = posixpath.dirname(page), texts, directory, root

    def of_site(self, text: str) -> str:
        return LINK.sub(self._link, text)

    def _link(self, match: re.Match[str]) -> str:
        if match["fence"]:
            return match[0]
        words, target, anchor = match["words"], match["target"], match["anchor"] or ""
        name = posixpath.normpath(posixpath.join(self._folder, target))
        if name in self._texts:
            return f"[{words}]({posixpath.relpath(_staged(name), self._folder or '.')}{anchor})"
        if (self._root / name).is_dir():  # a forge lists its files, a site does not
            return words
        copy = self._directory / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self._root / name, copy)
        return match[0]


def _staged(page: str) -> str:
    """Return the path of a page's source: the README is the home of the site."""
    return "index.md" if page == HOME else f"{page.removesuffix('.ipynb').removesuffix('.md')}.md"


def _navigation(page: str, texts: Mapping[str, str]) -> str:
    """Return the pages below a page, as Sphinx wants them: of the home all sections, of a folder's README its pages."""
    if page == HOME:
        notebooks = [name for name in texts if name.endswith(".ipynb")]
        return "\n".join(
            _toctree(heading, names)
            for heading, names in {"": [INDEX], **sections(texts[INDEX]), "Notebooks": notebooks}.items()
        )
    folder = posixpath.dirname(page)
    if posixpath.basename(page) != HOME or page == INDEX:
        return ""
    below = dict.fromkeys(name for name in linked(page, texts[page]) if posixpath.dirname(name) == folder)
    return _toctree("", list(below))


def _toctree(caption: str, pages: list[str]) -> str:
    lines = [f"/{_staged(page).removesuffix('.md')}" for page in pages]
    head = ["```{toctree}", ":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join([*head, "", *lines, "```", ""])

"""Plug-ins that are installed for a test: a module, and the metadata that pip would leave beside it."""

from __future__ import annotations

import shutil
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from mountlab import checks, filesystems, programs
from mountlab.core import plugins
from mountlab.core.places import SHIPPED
from mountlab.report.sections import figures

REGISTRIES = (programs.TOOLS, filesystems.FAMILIES, checks.CHECKS, figures.PLOTS)


class Site:
    """A directory of installed packages in front of the others."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def install(self, name: str, source: str, entries: Mapping[str, Mapping[str, str]], version: str = "1.0") -> None:
        """`entries`: kind ('tools') to name of a part to the object that it is ('SLOW', of the module)."""
        module = name.replace("-", "_")
        (self.path / f"{module}.py").write_text(source)
        named = {
            f"mountlab.{kind}": {part: f"{module}:{value}" for part, value in own.items()}
            for kind, own in entries.items()
        }
        self.describe(name, version, named)

    def describe(self, name: str, version: str, entries: Mapping[str, Mapping[str, str]]) -> None:
        """Write the metadata of a distribution; `entries`: group to entry points, as in a pyproject.toml."""
        info = self.path / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        sections = (
            "\n".join([f"[{group}]", *(f"{part} = {value}" for part, value in own.items())])
            for group, own in entries.items()
        )
        (info / "entry_points.txt").write_text("\n\n".join(sections) + "\n")
        forget()

    def uninstall(self, name: str) -> None:
        module = name.replace("-", "_")
        for info in self.path.glob(f"{module}-*.dist-info"):
            for file in info.iterdir():
                file.unlink()
            info.rmdir()
        forget()


def forget() -> None:
    """As in a new process: look again for what is installed."""
    plugins.installed.cache_clear()
    for registry in REGISTRIES:
        registry._loaded.clear()


@contextmanager
def site(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A place for plug-ins that is gone afterwards, with what was loaded from it."""
    monkeypatch.syspath_prepend(str(path))
    before = set(sys.modules)
    yield Site(path)
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(sys.modules[name].__file__).startswith(str(path)):
            del sys.modules[name]
    monkeypatch.undo()
    forget()


EXAMPLE = SHIPPED / "docs" / "example-plugin"


def install_example(made: Site, changes: Mapping[str, tuple[str, str]] | None = None) -> None:
    """Install the example package of the docs as pip would; `changes`: file to what is replaced in it."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    shutil.copytree(EXAMPLE / "src" / "mountlab_untar", made.path / "mountlab_untar")
    for name, (old, new) in (changes or {}).items():
        file = made.path / "mountlab_untar" / name
        text = file.read_text()
        assert old in text, f"{name} has no {old!r}"
        file.write_text(text.replace(old, new))
    made.describe(project["name"], project["version"], project["entry-points"])

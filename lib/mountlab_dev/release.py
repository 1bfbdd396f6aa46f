"""A release: its tag and the files that name a version agree."""

from __future__ import annotations

import tomllib
from pathlib import Path

import yaml
from mountlab.core.errors import InputError


def check_tag(tag: str, root: Path) -> None:
    """Raise InputError where a tag is not `v` and the version of pyproject.toml, or where CITATION.cff has another
    version, or CHANGELOG.md no section of it."""
    version = str(tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"])
    if tag != f"v{version}":
        raise InputError(
            "the tag names another version than the project",
            where="pyproject.toml: project.version",
            got=f"tag {tag}, version {version}",
            allowed=f"v{version}",
            next_step="set the version, commit, and tag that commit",
        )
    cited = str(yaml.safe_load((root / "CITATION.cff").read_text())["version"])
    if cited != version:
        raise InputError(
            "the citation names another version than the project",
            where="CITATION.cff: version",
            got=cited,
            allowed=version,
            next_step="set version and date-released there, commit, and tag that commit",
        )
    if f"## {version}" not in (root / "CHANGELOG.md").read_text().splitlines():
        raise InputError(
            "the changelog has no section of this version",
            where="CHANGELOG.md",
            allowed=f"a heading `## {version}`",
            next_step="put it below `## Unreleased`, commit, and tag that commit",
        )

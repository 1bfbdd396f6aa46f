"""What people read is plain English: no phrase that LANGUAGE lists, no sentence above 35 words in a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from mountlab.core.places import SHIPPED
from mountlab_dev import evidence
from mountlab_dev.language import READERS, findings
from rows import every_row

PLACES = (
    "lib", "docs", "params", "notebooks",
    "README.md", "METHODS.md", "CHANGELOG.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "Makefile",
)  # fmt: skip
"""Files and folders that are held to it."""

ALLOWED: Mapping[tuple[str, str], str] = {
    ("lib/mountlab_dev/language.py", ""): "the list itself",
    ("lib/mountlab/publish/identities/names.py", "nobody"): "a user that every machine has",
}
"""(File, words; '' for all) to the reason why they may stand there."""


def files(place: str) -> Iterator[Path]:
    """The files of a place that are read by people."""
    path = SHIPPED / place
    for file in [path] if path.is_file() else sorted(path.rglob("*")):
        if (file.suffix in READERS or file == path) and not {"__pycache__", "_build"} & {*file.parts}:
            yield file


def not_plain(file: Path) -> list[str]:
    """The findings of a file that are not allowed."""
    name = str(file.relative_to(SHIPPED))
    return [
        f"{name}:{each}"
        for each in findings(file.name, file.read_text())
        if not {(name, ""), (name, each.words)} & ALLOWED.keys()
    ]


@every_row("place", PLACES)
def test_text_is_plain_english(place: str) -> None:
    found = [each for file in files(place) for each in not_plain(file)]
    assert not found, "\n".join(found)


@every_row(("name", "text"), evidence.pages().items(), ids=evidence.pages())
def test_a_page_that_is_built_is_plain_english(name: str, text: str) -> None:
    assert not [str(each) for each in findings(name, text)]


def test_what_is_allowed_is_there() -> None:
    for name, words in ALLOWED:
        found = findings(name, (SHIPPED / name).read_text())
        assert any(words in ("", each.words) for each in found), (
            f"{name} no longer holds “{words}”: take it off the list"
        )

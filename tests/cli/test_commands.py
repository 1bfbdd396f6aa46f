"""One command a file, named as the command."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from built_pages import built_pages
from mountlab import cli
from mountlab.__main__ import main
from mountlab.cli import GROUPS, box, sweep
from mountlab.results import writer
from mountlab.results.writer import git_commit
from rows import every_row


def declared(commands: Sequence[Any]) -> list[str]:
    parsers = argparse.ArgumentParser().add_subparsers()
    for command in commands:
        command.add(parsers)
    return list(parsers.choices)


@pytest.mark.parametrize(
    ("room", "beside"), [(cli, {"arguments", "gate_text", "shared"}), (box, set[str]()), (sweep, set[str]())]
)
def test_a_file_is_named_as_its_command(room: ModuleType, beside: set[str]) -> None:
    """`import` is a word of Python's, so its file has a _ behind it; and a name of Python's has no -."""
    names = [command.__name__.rpartition(".")[2] for command in room.COMMANDS]
    assert [name.removesuffix("_").replace("_", "-") for name in names] == declared(room.COMMANDS)
    entries = {path.stem for path in Path(str(room.__file__)).parent.iterdir()} - {"__init__", "__pycache__"}
    assert entries == {*names, *beside}


def listed(text: str) -> list[str]:
    """The names of the verbs in a help, in its order."""
    return re.findall(r"^  ([a-z]\w*)  +\S", text, re.MULTILINE)


def test_alone_it_shows_its_verbs_grouped_by_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    said = capsys.readouterr().out
    assert re.findall(r"^(\w+):$", said, re.MULTILINE) == ["measure", "look", "share", "boxes", "develop", "options"]
    assert listed(said) == declared(cli.COMMANDS)
    first, _, rest = said.partition("\nlook:\n")
    assert {"plan", "run", "resume"} <= set(listed(first))
    assert {"report", "compare"} <= set(listed(rest.partition("\nshare:\n")[0]))
    with pytest.raises(SystemExit):
        main(["--help"])
    assert capsys.readouterr().out == said


def test_a_narrow_terminal_cuts_no_text(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    said = []
    for columns in ("70", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        main([])
        said.append(capsys.readouterr().out)
    narrow, wide = said
    assert max(map(len, narrow.partition("\noptions:")[0].splitlines())) <= 70
    assert narrow.split() == wide.split()


@pytest.mark.parametrize(("name", "room"), [("box", box), ("sweep", sweep)])
def test_a_verb_with_verbs_below_it_shows_them(name: str, room: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name]) == 0
    assert re.findall(r"^    ([a-z-]+)\s\s+\S", capsys.readouterr().out, re.MULTILINE) == declared(room.COMMANDS)


def test_the_reference_has_the_verbs_in_the_order_of_the_help() -> None:
    page = built_pages()["docs/reference/command-line.md"]
    headings = dict.fromkeys(name.split()[0] for name in re.findall(r"^## ([a-z][a-z ]*)$", page, re.MULTILINE))
    assert list(headings) == declared(cli.COMMANDS)
    assert re.findall(r"^\| (\w+) \| \[", page, re.MULTILINE) == list(GROUPS)


@pytest.mark.slow
def test_the_installed_command_says_its_version() -> None:
    command = Path(sys.executable).parent / "mountlab"
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    commit = git_commit()
    assert done.stdout == f"mountlab {version('mountlab')}" + (f" (commit {commit})\n" if commit else "\n")


@every_row(
    ("commit", "shown"), [(None, ""), ("1cff4dcd", " (commit 1cff4dcd)"), ("1cff+changes", " (commit 1cff+changes)")]
)
def test_the_version_has_the_commit_of_a_development_install(
    commit: str | None, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(writer, "git_commit", lambda: commit)
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out == f"mountlab {version('mountlab')}{shown}\n"

"""One command a file, named as the command."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from mountlab import cli
from mountlab.cli import box


def declared(commands: Sequence[Any]) -> list[str]:
    parsers = argparse.ArgumentParser().add_subparsers()
    for command in commands:
        command.add(parsers)
    return list(parsers.choices)


@pytest.mark.parametrize(("room", "beside"), [(cli, {"shared"}), (box, set[str]())])
def test_a_file_is_named_as_its_command(room: ModuleType, beside: set[str]) -> None:
    """`import` is a word of Python's, so its file has a _ behind it."""
    names = [command.__name__.rpartition(".")[2] for command in room.COMMANDS]
    assert [name.removesuffix("_") for name in names] == declared(room.COMMANDS)
    entries = {path.stem for path in Path(str(room.__file__)).parent.iterdir()} - {"__init__", "__pycache__"}
    assert entries == {*names, *beside}

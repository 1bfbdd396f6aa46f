"""The symbols of the kernel are kept once for all mounts that have the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from mountlab.core.errors import ParseError
from mountlab.results.symbols import REFERENCE, symbols_of, with_reference
from mountlab.sweep.traced import SYMBOLS


def keep(raw: Path, mount: str, symbols: bytes, holders: dict[str, str]) -> set[str]:
    """Keep a mount as a run does. Gives the names of its files."""
    directory = raw / mount
    directory.mkdir(parents=True, exist_ok=True)
    for file in directory.iterdir():
        file.unlink()
    files = with_reference({"evidence.txt": b"ext4", SYMBOLS: symbols}, mount, holders)
    for name, data in files.items():
        (directory / name).write_bytes(data)
    return set(files)


def test_mounts_under_one_kernel_share_its_symbols(tmp_path: Path) -> None:
    holders = dict[str, str]()
    assert keep(tmp_path, "x001-a", b"one", holders) == {"evidence.txt", SYMBOLS}
    assert keep(tmp_path, "x002-b", b"one", holders) == {"evidence.txt", REFERENCE}
    assert keep(tmp_path, "x003-a", b"another, with the module of b", holders) == {"evidence.txt", SYMBOLS}
    assert keep(tmp_path, "x004-b", b"another, with the module of b", holders) == {"evidence.txt", REFERENCE}
    assert [symbols_of(tmp_path, name)[:3] for name in ("x001-a", "x002-b", "x003-a", "x004-b")] == [
        b"one", b"one", b"ano", b"ano",
    ]  # fmt: skip


def test_a_mount_that_is_made_again_under_another_kernel_names_no_function_of_that_one(tmp_path: Path) -> None:
    holders = dict[str, str]()
    for mount in ("x001-a", "x002-b"):
        keep(tmp_path, mount, b"before the restart", holders)
    keep(tmp_path, "x001-a", b"after the restart", dict[str, str]())
    with pytest.raises(ParseError, match="another kernel"):
        symbols_of(tmp_path, "x002-b")
    assert symbols_of(tmp_path, "x001-a") == b"after the restart"


def test_a_mount_without_symbols_has_none(tmp_path: Path) -> None:
    assert with_reference({"evidence.txt": b"ext4"}, "x001-a", {}) == {"evidence.txt": b"ext4"}
    with pytest.raises(FileNotFoundError):
        symbols_of(tmp_path, "x001-a")

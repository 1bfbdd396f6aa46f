"""A sweep file with several errors: all are reported at once, each where it stands, and none that is not one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mountlab.core.errors import ParameterError
from mountlab.results import paths
from mountlab.results.paths import load_sweep

GOOD = """\
question: Does it work?
baseline: a
filesystems:
  a: {type: tmpfs, size: 64MiB}
  b: {type: ext4, image: 64MiB, direct_io: true}
workloads:
  w.1:
    tool: fio
    rw: [read, write]
    size: 8MiB
  x: {tool: dd, direction: write, count: 8}
exclude: [{filesystem: b, rw: write}]
design:
  repeats: 3
presets:
  small: {design: {repeats: 2}}
"""


def errors_of(tmp_path: Path, *changes: tuple[str, str], **overrides: object) -> list[tuple[str, str, str]]:
    """Line and column, place and what is wrong, of each error of the file above with these changes."""
    text = GOOD
    for before, after in changes:
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    (tmp_path / "x.yml").write_text(text)
    with pytest.raises(ParameterError) as caught:
        load_sweep(tmp_path / "x.yml", overrides)
    said = f"error: {caught.value}".replace(str(tmp_path / "x.yml"), "x.yml")
    found = re.findall(
        r"^error: (.*)\n  where:   x\.yml(?:, line (\d+), column (\d+))?(?:: (\S+))?$", said, re.MULTILINE
    )
    assert len(found) == said.count("error: ")
    return [(f"{line}:{column}", place, what) for what, line, column, place in found]


def test_one_error_has_its_line_and_column(tmp_path: Path) -> None:
    (found,) = errors_of(tmp_path, ("rw: [read", "rw: [reed"))
    assert found == ("9:5", "workloads.w.1.rw", "wrong value for an option")


def test_all_errors_are_reported_in_the_order_of_the_file(tmp_path: Path) -> None:
    found = errors_of(
        tmp_path,
        ("baseline: a", "baselin: a"),
        ("{type: tmpfs, size: 64MiB}", "{type: tmpfs, size: 64, sizze: 1}"),
        ("image: 64MiB, direct_io", "imagee: 64MiB, direct_io"),
        ("rw: [read", "rw: [reed"),
        ("size: 8MiB", "size: 8"),
        ("count: 8", "count: -8"),
        ("repeats: 3", "repeats: -3\n  levl: 2"),
    )
    assert [(place, keyed) for place, keyed, _ in found] == [
        ("2:1", ""),
        ("4:20", "filesystems.a.size"),
        ("4:30", "filesystems.a.sizze"),
        ("5:19", "filesystems.b.imagee"),
        ("9:5", "workloads.w.1.rw"),
        ("10:5", "workloads.w.1.size"),
        ("11:35", "workloads.x.count"),
        ("14:3", "design.repeats"),
        ("15:3", "design.levl"),
    ]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (("{type: ext4, image", "{type: ext5, image"), "filesystems.b.type"),  # the exclusion of b is no error
        (("image: 64MiB", "image: lots"), "filesystems.b.image"),  # nor is direct_io, which wants an image
        (("type: tmpfs", "type: tmpfss"), "filesystems.a.type"),  # nor is the baseline
        (("tool: fio", "tool: foi"), "workloads.w.1.tool"),  # nor is the exclusion of rw=write
        (("baseline: a", "baseline: c"), "baseline"),
    ],
)
def test_what_only_follows_from_an_error_is_not_reported(change: tuple[str, str], place: str, tmp_path: Path) -> None:
    (found,) = errors_of(tmp_path, change)
    assert found[1] == place


def test_what_comes_from_outside_has_no_line_and_what_a_preset_changes_has_that_of_the_preset(tmp_path: Path) -> None:
    assert errors_of(tmp_path, repeats=-1) == [(":", "design.repeats", "wrong type or value")]
    (found,) = errors_of(tmp_path, ("{repeats: 2}", "{repeats: -2}"), preset="small")
    assert found[:2] == ("16:20", "design.repeats")


def test_a_box_file_reports_all_its_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "PARAMS", tmp_path)
    (tmp_path / "boxes").mkdir()
    (tmp_path / "boxes" / "mine.yml").write_text("host: db1\nport: many\nuserr: me\n")
    with pytest.raises(ParameterError) as caught:
        paths.load_box("mine")
    assert re.findall(r"mine\.yml, (.*)$", str(caught.value), re.MULTILINE) == [
        "line 2, column 1: port",
        "line 3, column 1: userr",
    ]


def test_errors_of_a_file_with_aliases_are_found(tmp_path: Path) -> None:
    found = errors_of(tmp_path, ("  a: {type: tmpfs, size: 64MiB}", "  a: &a {type: tmpfs, size: 64}\n  c: *a"))
    assert {place for _, place, _ in found} == {"filesystems.a.size", "filesystems.c.size"}

"""The tools tree, rsync and large-directory: their scripts, run in a directory of this machine, and what they print."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from installed_programs import program
from mountlab.core.errors import ParameterError, ParseError, ToolError
from mountlab.core.model import Measurement, Target, Workload
from mountlab.programs import TOOLS
from mountlab.programs.tree import LINUX_SIZES, amounts_of
from mountlab.sweep.sweep_file import resolve
from mountlab.tools.base import ToolOutput
from rows import every_row

DATA = Path(__file__).parents[1] / "data"
TREE = {"tool": "tree", "files": 300, "operations": "make copy grep stat remove", "cache": "as_is"}
RSYNC = {"tool": "rsync", "files": 120, "change": "10%", "cache": "as_is"}
MANY = {"tool": "large-directory", "names": 3000, "cache": "as_is"}


def workload(options: Mapping[str, Any]) -> Workload:
    raw = {"name": "s", "question": "?", "filesystems": {"d": {"type": "dir"}}, "workloads": {"w": dict(options)}}
    return resolve(raw, where="s.yml").sweep.workloads[0]


@dataclass(frozen=True)
class Ran:
    workload: Workload
    output: ToolOutput
    directory: Path

    @property
    def figures(self) -> list[Measurement]:
        return TOOLS[self.workload.tool].parse(self.workload, self.output)


def run(place: Path, options: Mapping[str, Any], *, seed: int = 11, path: str = os.defpath, **environment: str) -> Ran:
    """Run the command of a workload as a trial does, and keep what it leaves."""
    own, directory, output = workload(options), place / "mnt", place / "out"
    directory.mkdir(parents=True)
    output.mkdir()
    command = TOOLS[own.tool].command(own, str(directory), str(output), Target(seed=seed))
    for name, text in command.files.items():
        Path(name).write_text(text)
    done = subprocess.run(command.argv, env={"PATH": path, **environment}, capture_output=True, text=True, check=False)
    return Ran(
        own, ToolOutput(exit_status=done.returncode, stdout=done.stdout, stderr=done.stderr, files={}), directory
    )


def shape_of(tree: Path) -> dict[str, bytes]:
    return {str(path.relative_to(tree)): path.read_bytes() for path in sorted(tree.rglob("*.c"))}


def only(place: Path, **programs: str) -> str:
    """A directory for PATH in which some programs are others than usual."""
    place.mkdir()
    for name, target in programs.items():
        (place / name).symlink_to(target)
    return f"{place}:{os.defpath}"


# --- what they do -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("files", [1, 7, 300])
def test_a_tree_holds_what_its_number_of_files_says(files: int, tmp_path: Path) -> None:
    ran = run(tmp_path, {**TREE, "files": files, "operations": "make"})
    assert ran.output.stderr == ""
    made, amounts = shape_of(ran.directory / "tree"), amounts_of(files)
    assert len(made) == files
    assert sum(map(len, made.values())) == amounts.size
    assert sum(b"mountlab_marker" in text for text in made.values()) == amounts.marked
    assert all(re.fullmatch(rb"[ -~\n]*", text) for text in made.values()), "text files"


def test_its_sizes_have_the_quantiles_of_the_source_of_linux(tmp_path: Path) -> None:
    """An exact one between two files; of a thousand files each is half a thousandth away from one."""
    made = shape_of(run(tmp_path, {**TREE, "files": 1000, "operations": "make"}).directory / "tree")
    sizes = sorted(map(len, made.values()))
    for permille, size in LINUX_SIZES[1:-2]:
        assert sizes[permille - 1] <= size <= sizes[permille]
    assert len({Path(name).parent for name in made}) > 30
    assert max(name.count("/") for name in made) >= 2


def test_each_seed_gives_another_tree_of_the_same_sizes_and_one_seed_the_same_tree(tmp_path: Path) -> None:
    entry = {**TREE, "operations": "make"}
    trees = [
        shape_of(run(tmp_path / name, entry, seed=seed).directory / "tree")
        for name, seed in (("a", 2**31 - 2), ("b", 2**31 - 2), ("c", 0))
    ]
    assert trees[0] == trees[1] != trees[2]
    assert sorted(map(len, trees[0].values())) == sorted(map(len, trees[2].values()))
    assert [*map(len, trees[0].values())] != [*map(len, trees[2].values())]


@pytest.mark.parametrize("awk", ["mawk", "gawk", "busybox"])
def test_every_awk_makes_the_same_tree(awk: str, tmp_path: Path) -> None:
    entry = {**TREE, "operations": "make"}
    made = run(tmp_path / "own", entry, path=only(tmp_path / "bin", awk=program(awk)))
    assert shape_of(made.directory / "tree") == shape_of(run(tmp_path / "usual", entry).directory / "tree")


@pytest.mark.parametrize("options", [TREE, {**MANY, "operations": "create stat remove"}], ids=["tree", "large"])
def test_the_programs_of_busybox_do_the_same(options: Mapping[str, Any], tmp_path: Path) -> None:
    busybox = program("busybox")
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    (tmp_path / "bin").mkdir()
    for name in applets:
        (tmp_path / "bin" / name).symlink_to(busybox)
    ran = run(tmp_path, options, path=str(tmp_path / "bin"))
    assert ran.output.stderr == ""
    assert {row.label for row in ran.figures if row.metric == "file_rate"} == {*str(options["operations"]).split()}


def test_a_tree_is_copied_searched_looked_at_and_removed(tmp_path: Path) -> None:
    program("git")
    ran = run(tmp_path, {**TREE, "operations": "make git-status copy grep stat remove"})
    assert ran.output.stderr == ""
    figures = {(row.metric, row.label): row for row in ran.figures}
    assert {label for metric, label in figures if metric == "elapsed"} == {"", *TOOLS["tree"].order}
    for name in TOOLS["tree"].order:
        rate, took = figures["file_rate", name], figures["elapsed", name]
        assert rate.value * took.value == pytest.approx(300)
        assert took.step > 0
        assert rate.step / rate.value == pytest.approx(took.step / took.value)
    whole = sum(row.value for (metric, label), row in figures.items() if metric == "elapsed" and label)
    assert figures["elapsed", ""].value == pytest.approx(whole)
    assert not (ran.directory / "tree").exists()
    copied = shape_of(ran.directory / "copy")
    assert sum(map(len, copied.values())) == amounts_of(300).size


@pytest.mark.slow
def test_a_large_directory_has_all_names_in_an_order_that_leaps_about(tmp_path: Path) -> None:
    ran = run(tmp_path, {**MANY, "operations": "list stat"})
    names = [path.name for path in (ran.directory / "names").iterdir()]
    assert sorted(names) == [f"{number:07d}" for number in range(3000)]
    assert {path.stat().st_size for path in (ran.directory / "names").iterdir()} == {0}
    order = (tmp_path / "out.data").read_text().split()
    assert sorted(order) == sorted(names) != order
    assert min(abs(int(a) - int(b)) for a, b in pairwise(order)) > 100
    assert order != (run(tmp_path / "other", MANY, seed=12).directory.parent / "out.data").read_text().split()
    assert [row.label for row in ran.figures if row.metric == "file_rate"] == ["list", "stat"]


@pytest.mark.parametrize("how", [{}, {"whole_file": False, "inplace": True, "fsync": True}], ids=["plain", "delta"])
def test_rsync_sends_all_files_then_none_then_those_that_changed(how: Mapping[str, Any], tmp_path: Path) -> None:
    program("rsync")
    ran = run(tmp_path, {**RSYNC, **how})
    assert ran.output.stderr == ""
    sent = [line.split()[1] for line in ran.output.stdout.splitlines()]
    assert sent == ["120", "0", "12"]
    source, copied = shape_of(tmp_path / "out.data"), shape_of(ran.directory / "copy")
    assert source == copied
    assert sum(text.endswith(b"int changed;\n") for text in copied.values()) == 12
    assert [path.name for path in ran.directory.iterdir()] == ["copy"]
    assert {row.label for row in ran.figures if row.metric == "file_rate"} == {"first", "unchanged", "changed"}


def test_each_seed_changes_other_files(tmp_path: Path) -> None:
    program("rsync")
    changed = [
        {name for name, text in shape_of(run(tmp_path / name, RSYNC, seed=seed).directory / "copy").items()
         if text.endswith(b"int changed;\n")}
        for name, seed in (("a", 3), ("b", 3), ("c", 4))
    ]  # fmt: skip
    assert changed[0] == changed[1] != changed[2]


@every_row(
    ("fault", "what"),
    [
        ('"$real" "$@"; printf x >> "$copy/unit_000001.c"', "the first copy differs from its source"),
        ('rm -rf "$copy"; "$real" "$@"', "rsync did not do what was asked"),
        ('"$real" "$@"; exit 23', "rsync failed with exit status 1"),
    ],
)
def test_a_copy_that_is_not_that_of_the_tree_gives_no_figure(
    fault: str, what: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What rsync itself says of it is not enough."""
    place = tmp_path_factory.mktemp("fault")
    (place / "bin").mkdir()
    fake = place / "bin" / "rsync"
    fake.write_text(f"#!/bin/sh\nreal={program('rsync')}\nfor copy; do :; done\n{fault}\n")
    fake.chmod(0o755)
    ran = run(place, RSYNC, path=f"{place}/bin:{os.defpath}")
    with pytest.raises(ToolError, match=what):
        _ = ran.figures


# --- caches -----------------------------------------------------------------------------------------------------------


def test_each_operation_begins_without_caches_which_the_helper_of_a_box_drops(tmp_path: Path) -> None:
    helper, seen = tmp_path / "helper", tmp_path / "seen"
    helper.write_text(f'#!/bin/sh\necho "$*" >> {seen}\n')
    helper.chmod(0o755)
    ran = run(tmp_path, {**TREE, "cache": "cold"}, MOUNTLAB_HELPER=str(helper))
    assert seen.read_text() == "60 - drop_caches\n" * 5
    assert len(ran.figures) == 11


@pytest.mark.parametrize("options", [TREE, MANY], ids=["tree", "large-directory"])
def test_what_cannot_be_dropped_is_an_error_and_no_figure(options: Mapping[str, Any], tmp_path: Path) -> None:
    """Trap: a warm look-up that passes for a cold one."""
    ran = run(tmp_path, {**options, "cache": "cold"}, MOUNTLAB_HELPER="false")
    with pytest.raises(ToolError, match="cannot be dropped without root or the helper of the box: write cache: as_is"):
        _ = ran.figures


# --- what is believed -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tree/btrfs.stdout", "large-directory/btrfs.stdout"])
def test_a_recorded_trial_is_read(name: str) -> None:
    """The clock's figures are those of the last line by hand: the third stamp less the second."""
    tool = name.partition("/")[0]
    given = {"files": 5000, "operations": " ".join(TOOLS["tree"].order)} if tool == "tree" else {"names": 100_000}
    text = (DATA / name).read_text()
    rows = {(row.metric, row.label): row for row in parsed({"tool": tool, **given}, text)}
    began, first, ended = (int(stamp) for stamp in text.splitlines()[-1].partition(" : ")[2].split()[:3])
    assert rows["elapsed", "remove"].value == (ended - first) / 1e9
    assert rows["elapsed", "remove"].step == 2 * (first - began) / 1e9


def parsed(options: Mapping[str, Any], text: str, *, exit_status: int = 0, error_text: str = "") -> list[Measurement]:
    own = workload(options)
    return TOOLS[own.tool].parse(own, ToolOutput(exit_status=exit_status, stdout=text, stderr=error_text, files={}))


STAMPS = "1796009359791000239 1796009359791824756 1796009360308894486 12520.11 12520.11 12520.63 12520.63"
STAT = {"tool": "tree", "files": 1, "operations": "stat remove"}
GOOD = f"stat 1 3874 : {STAMPS}\nremove 0 : {STAMPS}\n"


def test_the_plain_lines_are_read() -> None:
    assert [row.label for row in parsed(STAT, GOOD) if row.metric == "file_rate"] == ["stat", "remove"]


@pytest.mark.parametrize(
    ("old", "new", "what", "got"),
    [
        ("stat 1 3874", "stat 1 3873", "did not do what was asked", "1 files, 3873 B"),
        ("stat 1 3874", "stat 0 0", "did not do what was asked", "0 files, 0 B"),
        ("remove 0", "remove 1", "did not do what was asked", "1 files"),
        ("remove 0", "remove", "cannot be read", "remove : 1796"),
        ("remove 0", "rename 0", "cannot be read", "rename 0"),
        ("remove 0", "stat 1 3874", "cannot be read", "stat 1 3874"),
        (f"remove 0 : {STAMPS}\n", "", "did not report on what was asked", "stat"),
        (GOOD, "", "did not report on what was asked", "no operation"),
        (STAMPS, "1796", "the box's clock was not read", "1796"),
    ],
)
def test_what_is_not_of_the_work_is_refused(old: str, new: str, what: str, got: str) -> None:
    with pytest.raises((ToolError, ParseError)) as caught:
        parsed(STAT, GOOD.replace(old, new, 1))
    assert what in caught.value.what
    assert got in caught.value.got


@pytest.mark.parametrize(
    ("changes", "key", "got", "next_step"),
    [
        ({"operations": "make grpe"}, "operations", "'grpe'", "did you mean 'grep'?"),
        ({"operations": " "}, "operations", "no operation", ""),
        ({"cache": "warm"}, "cache", "'warm'", ""),
    ],
)
def test_what_a_tree_cannot_do_is_refused(changes: Mapping[str, Any], key: str, got: str, next_step: str) -> None:
    with pytest.raises(ParameterError) as caught:
        workload({**TREE, **changes})
    assert caught.value.where.endswith(f"workloads.w.{key}")
    assert (caught.value.got, caught.value.next_step) == (got, next_step)


def test_a_list_needs_an_ls_that_looks_no_name_up_and_git_status_needs_git() -> None:
    """BusyBox's ls has no -f."""
    lacks = {True: "-f, which lists names without looking them up", False: ""}
    for listed, operations in ((True, "list"), (False, "create stat")):
        own = workload({**MANY, "operations": operations})
        assert TOOLS[own.tool].programs_for(own)[0].busybox_lacks == lacks[listed]
    with_git, without = (workload({**TREE, "operations": words}) for words in ("git-status", "grep"))
    assert "git" in {program.name for program in TOOLS["tree"].programs_for(with_git)}
    assert "git" not in {program.name for program in TOOLS["tree"].programs_for(without)}

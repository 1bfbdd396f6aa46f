"""`mountlab conform`: the example package passes, and each part that breaks a rule fails by that rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from installed import Site, install_example, site
from mountlab.__main__ import main
from mountlab.core import plugins
from mountlab.core.errors import NonConforming
from mountlab.core.model import Filesystem, Place, Step
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.guard import unguarded
from mountlab.runner.conformance import filesystems as conformance
from mountlab.runner.conformance.suites import Item, conform, entries_of
from rows import every_row

SCRATCH = replace(conformance.PLACE, device="/dev/disk/by-id/x", device_id="8:16,x")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with site(tmp_path, monkeypatch) as made:
        yield made


def failed(group: str) -> list[Item]:
    """What does not hold of the parts in a group of entry points; '': in all of them."""
    entries = [entry for entry in entries_of("mountlab-untar") if group in ("", entry.group)]
    return [item for item in conform(entries) if item.problem]


@pytest.mark.slow
def test_the_example_package_passes(packages: Site, capsys: pytest.CaptureFixture[str]) -> None:
    install_example(packages)
    assert main(["conform", "mountlab-untar"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split("  ")[0] for line in lines[:-1]} == {"passed"}
    assert {line.split("  ")[1].split(":")[0] for line in lines[:-1]} == {
        "tool untar", "file system huge_tmpfs", "check few-files", "plot time-per-file",
    }  # fmt: skip
    assert lines[-1] == f"mountlab-untar 0.1.0: {len(lines) - 1} items passed, 0 failed"


TOOL, FAMILY, CHECK, PLOT, EXAMPLES = "tool.py", "filesystem.py", "check.py", "plot.py", "examples.py"
GROUPS = {TOOL: plugins.TOOLS, FAMILY: plugins.FILESYSTEMS, CHECK: plugins.CHECKS, PLOT: plugins.PLOTS, EXAMPLES: ""}
"""The parts that a file can break: pictures are drawn only where they or the examples of all parts are broken."""
GIVEN = 'self.check_given(options, {"files": "a whole number, such as 10000"}, where=where)'
UNDONE = """type = "huge_tmpfs"

    def steps(self, fs, place):
        return tuple(dataclasses.replace(step, undo=None) for step in super().steps(fs, place))
"""
ELSEWHERE = """type = "huge_tmpfs"

    def steps(self, fs, place):
        return super().steps(fs, dataclasses.replace(place, mountpoint="/mnt"))
"""
NOT_MOUNTED = """type = "huge_tmpfs"

    def mounted_as(self, fs):
        return ""
"""
BROKEN: list[tuple[str, str, str, str, str]] = [
    (TOOL, 'name = "untar"', 'name = "tar"', "It is loaded", "name = 'tar'"),
    (TOOL, "class Untar(Tool):", "class Untar:", "It is loaded", "mountlab.tools.base.Tool"),
    (TOOL, 'help="files in the archive"', 'help=""', "Its options have choices and defaults", "files has no help"),
    (TOOL, "default=4 * KIB", 'default="4KiB"', "Its options have choices and defaults", "the default of file_size"),
    (TOOL, GIVEN, "pass", "An option that is needed and not given", "KeyError: 'files'"),
    (TOOL, "clock_s = 1e-3", "clock_s = 0", "The resolution of its clock", "clock_s; got: 0"),
    (TOOL, '        "cache": CACHE,\n', "", "The state of the page cache", "no option `cache`"),
    (TOOL, '("tar", "--version")', '("--version",)', "Its programs say how to ask their version", "('--version',)"),
    (TOOL, 'f"{directory}/src.tar"', '"/srv/src.tar"', "Its commands name no path but those", "got: /srv/src.tar"),
    (TOOL, "cache=self.cache_of(workload)", 'cache="cold"', "The same workload gives the same command", "got: cold"),
    (TOOL, '"random bytes"', '""', "The data that it writes is said in words", "written() has no text"),
    (TOOL, "            cache=self", "            seed=3, cache=self", "A seed changes its command", "got: 3"),
    (TOOL, "return 0.1 + int", "return -1 + 0 * int", "Its examples can be read", "expected_s(); got: -0.99"),
    (TOOL, "return 0.1 + int", "return 9e9 + int", "Space and time are guessed", "below an hour"),
    (TOOL, '"elapsed", "bytes")', '"bytes")', "The recorded output gives known metrics", "gives"),
    (TOOL, 'unit="1/s"', 'unit="1/min"', "The recorded output gives known metrics", "got: '1/min'"),
    (TOOL, 'label="write"', 'label="out"', "The bytes that it moved are reported by side", "the labels of bytes"),
    (TOOL, "output.exit_status != 0", "False", "A trial whose program failed gives no figures", "exit status 1"),
    (TOOL, "(expected := _archive(workload))", "(expected := int(found[1]))", "Output of another amount", "other work"),
    (TOOL, "if not found:", "if not output.stderr:", "Bytes that are no text", "TypeError"),
    (FAMILY, 'type = "huge_tmpfs"', UNDONE, "What a step makes is undone", "got: None"),
    (FAMILY, 'type = "huge_tmpfs"', ELSEWHERE, "It is made and mounted below", "got: /mnt"),
    (FAMILY, 'type = "huge_tmpfs"', NOT_MOUNTED, "What a step makes is undone", "mounted_as"),
    (FAMILY, "*super().own_options(fs)", "str(next(TURNS))", "The same file system gives", "clock"),
    (CHECK, "Unpack {FEW} or more.", "unpack more", "Its messages are sentences", "a message"),
    (CHECK, "if files < FEW", "if files < 5000", "It is raised where it should be", "should not"),
    (CHECK, "if files < FEW", "if files < 5", "It is raised where it should be", "no caveat"),
    (CHECK, 'f"Unpack {FEW} files or more."', '"?"', "It has a plain code, a docstring, advice", "advice"),
    (CHECK, '    """An archive with so few', '    f"""An archive', "It has a plain code, a docstring", "no docstring"),
    (CHECK, "    for cell in sweep.cells:", '    yield Doubt.of_run("Empty.")\n    for cell in sweep.cells:',
     "It finds nothing where nothing was measured", "Empty."),
    (CHECK, "cell, f", "Cell, f", "It is raised where it should be", "NameError"),
    (PLOT, "if rows.empty:", "if False:", "It draws nothing of a run without figures", "Error"),
    (PLOT, 'f"Mean time per unpacked file. {cells}."', '""', "Each plot has a title of one line", "alt"),
    (PLOT, 'US / row["mean"], (', "next(TURNS), (", "The same run gives", "two"),
    (PLOT, '"tool"] == "untar"', '"tool"] == "tar"', "It draws a run of its example", "nothing was drawn"),
    (EXAMPLES, '    PlotExample("time-per-file"', '    PlotExample("other"', "It has examples", "there is none"),
    (EXAMPLES, "raised=False, sweep=sweep(1000)", "raised=True, sweep=sweep(10)", "It has examples", "is not raised"),
    (EXAMPLES, '"tool": "untar", "files"', '"tool": "untar", "fiels"', "Its examples can be read", "unknown option"),
    (EXAMPLES, "EXAMPLES = [", "EXAMPLES = 3, [", "It has examples", "there is none"),
    (EXAMPLES, "from typing import Any", "from typing import Many", "It is loaded", "ImportError"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "old", "new", "asked", "words"), BROKEN, ids=[f"{row[0]}-{row[2][:30]}" for row in BROKEN]
)
def test_a_part_that_breaks_a_rule_fails_by_it(
    packages: Site, file: str, old: str, new: str, asked: str, words: str
) -> None:
    future = "from __future__ import annotations\n"
    header = f"{future}import dataclasses, itertools\nTURNS = itertools.count(1)\n"
    install_example(packages, {file: (future, header)})
    path = packages.path / "mountlab_untar" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    broken = failed(GROUPS[file])
    found = [item for item in broken if item.asked.startswith(asked) and words in item.problem]
    assert found, [str(item) for item in broken]
    assert all("\n" not in str(item) for item in broken)


@pytest.mark.slow
def test_a_failure_is_a_line_with_what_was_got_and_what_is_allowed_and_exit_code_one(
    packages: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    install_example(packages, {"tool.py": ("clock_s = 1e-3", "clock_s = 2")})
    assert main(["conform", "Mountlab.Untar"]) == 1
    out = capsys.readouterr().out
    assert (
        "failed  tool untar: The resolution of its clock is a positive number of seconds, up to one: "
        "clock_s; got: 2; allowed: more than 0, up to 1\n" in out
    )
    assert out.endswith(" 1 failed\n")


def test_an_unknown_package_is_refused_with_the_nearest(packages: Site, capsys: pytest.CaptureFixture[str]) -> None:
    install_example(packages)
    assert main(["conform", "mountlab-untra"]) == 2
    said = capsys.readouterr().err
    assert "no plug-in of this name is installed" in said
    assert "did you mean 'mountlab-untar'?" in said


def test_a_distribution_without_parts_is_refused_with_the_groups(
    packages: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["conform", "pandas"]) == 2
    assert "mountlab.tools, mountlab.filesystems, mountlab.checks, mountlab.plots" in capsys.readouterr().err


# --- the guard --------------------------------------------------------------------------------------------------------


def steps_of(fs: Filesystem, place: Place) -> tuple[Step, ...]:
    return FAMILIES[fs.type].steps(fs, place)


def test_no_step_of_mountlabs_own_names_a_scratch_device_without_the_guard() -> None:
    fs = Filesystem(name="f", type="ext4", device="data", tunables={"inode_readahead_blks": "64"})
    assert list(unguarded(steps_of(fs, SCRATCH), SCRATCH)) == []


@every_row(
    "argv",
    [
        ("mkfs.ext4", "{device}"),
        ("wipefs", "-a", "/dev/disk/by-id/x"),
        ("sh", "-c", "dd of=$1", "dd", "/dev/disk/by-id/x"),
        ("sh", "-c", "dd of=/dev/disk/by-id/x"),
        ("sh", "-c", 'exec "$@"', "timed.sh", "mkfs.ext4", "{device}"),
    ],
)
def test_a_step_that_writes_to_a_scratch_device_itself_is_found(argv: tuple[str, ...]) -> None:
    for step in (Step(argv=argv, why="?"), Step(argv=("true",), undo=argv, why="?")):
        assert list(unguarded([step], SCRATCH)) == [step]
        assert list(unguarded([step], conformance.PLACE)) == []
        family = type("Bad", (type(FAMILIES["tmpfs"]),), {"steps": lambda self, fs, place, step=step: (step,)})
        case = conformance.FamilyCase(family(), Filesystem(name="f", type="ext4", device="data"), SCRATCH)
        with pytest.raises(NonConforming, match="format_step"):
            conformance.formats_below_the_guard(case)

"""What every tool must keep. A new tool is complete when this passes: it adds its examples to EXAMPLES."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from mountlab.errors import MountlabError, ParameterError, TrialError
from mountlab.model import METRICS, Workload
from mountlab.options import read_value
from mountlab.params import resolve
from mountlab.tools import TOOLS
from mountlab.tools.base import Tool, ToolOutput

DATA = Path(__file__).parent / "data"
DIRECTORY, OUTPUT = "/srv/run/mnt/fs/t0001", "/dev/shm/run/t0001"

EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "dd": [
        {"direction": "write", "bs": "1MiB", "count": 200},
        {"direction": "read", "bs": "1MiB", "count": 200, "cache": "warm"},
    ],
    "fio": [
        {"rw": "randread", "size": "64MiB", "direct": True, "runtime": "2s"},
        {"rw": "randwrite", "size": "64MiB", "runtime": "2s"},
        {"rw": "randrw", "size": "256KiB", "numjobs": 2, "cache": "cold"},
    ],
}
"""Options as in a sweep file, with every needed one."""
RECORDED: dict[str, list[dict[str, str]]] = {
    "dd": [{"stderr": "dd/write-1m.stderr"}, {"stderr": "dd/write-1m.stderr"}],
    "fio": [
        {"fio.json": "fio/psync-randread-direct.jsonplus"},
        {"fio.json": "fio/psync-randwrite-fsync1.jsonplus"},
        {"fio.json": "fio/mixed-two-jobs.json"},
    ],
}
"""For each example the files of a recorded trial of it."""

each_tool = pytest.mark.parametrize("tool", TOOLS.values(), ids=list(TOOLS))
each_example = pytest.mark.parametrize(
    ("tool", "number"), [(TOOLS[name], i) for name, examples in EXAMPLES.items() for i in range(len(examples))],
    ids=lambda value: getattr(value, "name", value),
)  # fmt: skip


def workload(tool: Tool, number: int, **changes: Any) -> Workload:
    entry = {"tool": tool.name, **EXAMPLES[tool.name][number], **changes}
    raw = {"name": "s", "question": "?", "filesystems": {"d": {"type": "dir"}}, "workloads": {"w": entry}}
    return resolve(raw, where="tests").sweep.workloads[0]


def recorded(tool: Tool, number: int, *, exit_status: str = "0", **more: str) -> ToolOutput:
    files = {name: (DATA / path).read_bytes() for name, path in RECORDED[tool.name][number].items()}
    given = {"exit_status": exit_status, "stdout": "", "stderr": ""} | more
    return ToolOutput.from_files({**{name: text.encode() for name, text in given.items()}, **files})


def test_every_tool_has_examples_and_recordings_here() -> None:
    assert set(EXAMPLES) == set(RECORDED) == set(TOOLS)
    assert all(len(EXAMPLES[name]) == len(RECORDED[name]) for name in TOOLS)


@each_tool
def test_a_tool_is_registered_under_its_own_name_and_says_what_it_is(tool: Tool) -> None:
    assert TOOLS[tool.name] is tool
    assert re.fullmatch(r"[a-z][a-z0-9_]*", tool.name)
    assert type(tool).__doc__


@each_tool
def test_its_programs_say_how_to_ask_their_version_and_where_to_get_them(tool: Tool) -> None:
    """Trap: no tool version, no measurement."""
    assert tool.programs
    for program in tool.programs:
        assert program.version[0] == program.name
        assert set(program.packages) >= {"apt", "dnf", "zypper", "pacman"}


@each_tool
def test_its_options_have_choices_and_defaults_of_their_own_kind(tool: Tool) -> None:
    for name, option in tool.options.items():
        assert (option.kind == "choice") == bool(option.choices), name
        if option.kind == "choice" and option.default is not None:
            assert option.default in option.choices, name
        if option.kind in ("int", "flag", "size") and option.default is not None:
            assert isinstance(option.default, int), name
    assert not set(tool.options) & set(tool.reserved)
    assert all(tool.reserved.values())


@each_tool
def test_what_it_needs_is_asked_for_by_name(tool: Tool) -> None:
    defaults = {key: option.default for key, option in tool.options.items() if option.default is not None}
    with pytest.raises(ParameterError, match=f"{tool.name} needs") as caught:
        tool.check(defaults, where="s.yml: workloads.w")
    assert caught.value.where.startswith("s.yml: workloads.w.")
    assert caught.value.allowed


@each_tool
def test_the_resolution_of_its_clock_is_a_positive_number_of_seconds(tool: Tool) -> None:
    assert 0 < tool.clock_s <= 1


@each_example
def test_commands_are_lists_of_plain_words(tool: Tool, number: int) -> None:
    command = tool.command(workload(tool, number), DIRECTORY, OUTPUT)
    for argv in (command.argv, *command.prepare, *command.warm):
        assert argv
        assert all(isinstance(word, str) and word and "\n" not in word for word in argv)
    assert command.argv[0] in {program.name for program in tool.programs}


@each_example
def test_commands_touch_only_the_two_directories_that_they_were_given(tool: Tool, number: int) -> None:
    command = tool.command(workload(tool, number), DIRECTORY, OUTPUT)
    for argv in (command.argv, *command.prepare, *command.warm):
        for word in argv:
            for path in re.findall(r"(?:^|=)(/.*)", word):
                assert path.startswith((DIRECTORY, OUTPUT)) or path in ("/dev/zero", "/dev/null"), word


@each_example
def test_the_same_workload_gives_the_same_command(tool: Tool, number: int) -> None:
    own = workload(tool, number)
    assert tool.command(own, DIRECTORY, OUTPUT) == tool.command(own, DIRECTORY, OUTPUT)
    assert tool.command(own, DIRECTORY, OUTPUT).cache == own.options.get("cache")


@each_example
def test_space_and_time_are_guessed_before_anything_runs(tool: Tool, number: int) -> None:
    own = workload(tool, number)
    assert tool.space_bytes(own) > 0
    assert 0 < tool.expected_s(own) < 3600


@each_example
def test_the_recording_gives_known_metrics_in_base_units_the_main_ones_among_them(tool: Tool, number: int) -> None:
    own = workload(tool, number)
    rows = tool.parse(own, recorded(tool, number))
    assert all(row.unit == METRICS[row.metric] for row in rows)
    assert all(0 < row.value < float("inf") for row in rows)
    assert len({(row.metric, row.label) for row in rows}) == len(rows)
    unlabelled = {row.metric for row in rows if not row.label}
    assert tool.main_metrics(own)
    assert set(tool.main_metrics(own)) <= unlabelled
    assert "elapsed" in unlabelled


@each_example
def test_the_bytes_that_it_moved_are_told_by_side(tool: Tool, number: int) -> None:
    """The checks compare them with what the device moved."""
    sides = {row.label for row in tool.parse(workload(tool, number), recorded(tool, number)) if row.metric == "bytes"}
    assert sides
    assert sides <= {"read", "write"}


@each_example
@pytest.mark.parametrize("exit_status", ["1", "128", "137"])
def test_a_tool_that_failed_gives_no_figures_and_says_its_status(tool: Tool, number: int, exit_status: str) -> None:
    with pytest.raises(TrialError, match=exit_status):
        tool.parse(workload(tool, number), recorded(tool, number, exit_status=exit_status))


@each_example
def test_empty_output_gives_no_figures_whatever_the_exit_status(tool: Tool, number: int) -> None:
    """Trap: a tool's exit status is never believed alone."""
    empty = ToolOutput(exit_status=0, stdout="", stderr="", files={})
    with pytest.raises(TrialError):
        tool.parse(workload(tool, number), empty)


@each_example
def test_output_of_another_amount_of_work_is_refused(tool: Tool, number: int) -> None:
    changes = {"count": 201} if "count" in tool.options else {"size": "1GiB"}
    with pytest.raises(TrialError) as caught:
        tool.parse(workload(tool, number, **changes), recorded(tool, number))
    assert caught.value.got
    assert caught.value.allowed


@each_example
def test_bytes_that_are_no_text_are_an_error_of_ours(tool: Tool, number: int) -> None:
    noise = bytes(range(256)) * 3
    names = {"stdout", "stderr", *RECORDED[tool.name][number]}
    output = ToolOutput.from_files({"exit_status": b"0\n", **dict.fromkeys(names, noise)})
    with pytest.raises(MountlabError):
        tool.parse(workload(tool, number), output)


@each_tool
def test_the_state_of_the_cache_is_an_option_of_every_tool_that_reads_files(tool: Tool) -> None:
    assert tool.options["cache"].choices == ("cold", "warm", "as_is")
    assert read_value("cold", tool.options["cache"], where="w").value == "cold"


# --- what a trial brings back -----------------------------------------------------------------------------------------


def test_what_a_trial_brings_back_is_read_as_text() -> None:
    output = ToolOutput.from_files({"exit_status": b"3\n", "stdout": b"a\xff", "stderr": b"", "x.json": b"{}"})
    assert (output.exit_status, output.stdout, output.stderr) == (3, "a\ufffd", "")
    assert output.files["x.json"] == "{}"


@pytest.mark.parametrize(
    ("files", "got"),
    [({}, "no exit_status, stdout, stderr"), ({"stdout": b"", "stderr": b""}, "no exit_status"),
     ({"exit_status": b"", "stdout": b"", "stderr": b""}, "exit status ''")],
)  # fmt: skip
def test_a_trial_that_brought_back_too_little_is_a_failed_trial(files: dict[str, bytes], got: str) -> None:
    """Trap: one bad cell aborts the night. A full output directory cuts off what a trial writes last."""
    with pytest.raises(TrialError) as caught:
        ToolOutput.from_files(files)
    assert caught.value.what == "the trial brought back less than it should"
    assert caught.value.got == got
    assert "output_root" in caught.value.next_step

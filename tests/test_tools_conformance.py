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
from mountlab.tools.base import Tool, ToolOutput, programs_for

DATA = Path(__file__).parent / "data"
DIRECTORY, OUTPUT = "/srv/run/mnt/fs/t0001", "/dev/shm/run/t0001"

DD_BY_COMMAND = {
    "argv": "dd if=/dev/zero of={directory}/x bs={block} count=200 conv=fdatasync", "block": "1M", "space": "200MiB",
    "metrics": {
        "write_bandwidth": {"pattern": r"([\d.]+) MB/s$", "unit": "MB/s", "from": "stderr"},
        "elapsed": {"pattern": r"copied, ([\d.]+) s", "unit": "s", "from": "stderr"},
        "bytes/write": {"pattern": r"^(\d+) bytes", "unit": "B", "from": "stderr"},
    },
}  # fmt: skip
EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "command": [DD_BY_COMMAND],
    "dd": [
        {"direction": "write", "bs": "1MiB", "count": 200},
        {"direction": "read", "bs": "1MiB", "count": 200, "cache": "warm"},
    ],
    "filebench": [
        {"workload": "fileserver", "nfiles": 2000, "filesize": "8KiB", "threads": 4, "appendsize": "4KiB",
         "iosize": "8KiB", "runtime": "1s"},
        {"workload": "seqread", "filesize": "16MiB", "threads": 4, "iosize": "8KiB", "runtime": "1s", "cache": "cold"},
    ],
    "fio": [
        {"rw": "randread", "size": "64MiB", "direct": True, "runtime": "2s"},
        {"rw": "randwrite", "size": "64MiB", "runtime": "2s"},
        {"rw": "randrw", "size": "256KiB", "numjobs": 2, "cache": "cold"},
    ],
    "fs_mark": [
        {"count": 50, "file_size": "20000B", "sync": "sync_post_reverse", "threads": 2, "write_size": "4KiB",
         "loops": 3, "call_times": True},
        {"count": 200, "file_size": "100B", "sync": "none", "call_times": True, "keep_files": False, "cache": "as_is"},
    ],
    "pg_test_fsync": [{"time_per_test": "1s"}, {"time_per_test": "1s", "cache": "cold"}],
}  # fmt: skip
"""Options as in a sweep file, with every needed one."""
RECORDED: dict[str, list[dict[str, str]]] = {
    "command": [{"stderr": "dd/write-1m.stderr"}],
    "dd": [{"stderr": "dd/write-1m.stderr"}, {"stderr": "dd/write-1m.stderr"}],
    "filebench": [
        {"stdout": "filebench/fileserver.stdout", "settled": "filebench/settled"},
        {"stdout": "filebench/seqread.stdout", "settled": "filebench/settled"},
    ],
    "fio": [
        {"fio.json": "fio/psync-randread-direct.jsonplus"},
        {"fio.json": "fio/psync-randwrite-fsync1.jsonplus"},
        {"fio.json": "fio/mixed-two-jobs.json"},
    ],
    "fs_mark": [{"stdout": "fs_mark/v-S4-L3-ext4.stdout"}, {"stdout": "fs_mark/v-unlinked-tmpfs.stdout"}],
    "pg_test_fsync": [{"stdout": "pg_test_fsync/ext4.stdout"}, {"stdout": "pg_test_fsync/ramfs.stdout"}],
}
"""For each example the files of a recorded trial of it."""
OTHER_WORK: dict[str, dict[str, Any]] = {
    "command": {"metrics": {"file_rate": {"pattern": r"(\d+) files/s", "unit": "1/s"}}},
    "dd": {"count": 201},
    "filebench": {"runtime": "60s"},
    "fio": {"size": "1GiB"},
    "fs_mark": {"count": 201},
    "pg_test_fsync": {"time_per_test": "2s"},
}
"""Changes of the examples that the recordings do not fit."""
NEEDS_NOTHING = {"pg_test_fsync"}
TELLS_NO_AMOUNT = {"pg_test_fsync"}
"""Tools that print neither how much they moved nor how long they took."""

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
    programs = tool.programs or programs_for(tool, workload(tool, 0))
    assert programs
    for program in programs:
        assert program.name in program.version
        assert program.hint or set(program.packages) >= {"apt", "dnf", "zypper", "pacman"}


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
    if tool.name in NEEDS_NOTHING:
        assert tool.check(defaults, where="s.yml: workloads.w") is None  # type: ignore[func-returns-value]
        return
    with pytest.raises(ParameterError, match=f"{tool.name} needs") as caught:
        tool.check(defaults, where="s.yml: workloads.w")
    assert caught.value.where.startswith("s.yml: workloads.w.")
    assert caught.value.allowed


@each_tool
def test_the_resolution_of_its_clock_is_a_positive_number_of_seconds(tool: Tool) -> None:
    assert 0 < tool.clock_s <= 1


@each_example
def test_commands_are_lists_of_plain_words(tool: Tool, number: int) -> None:
    own = workload(tool, number)
    command = tool.command(own, DIRECTORY, OUTPUT)
    for argv in (command.argv, *command.prepare, *command.warm):
        assert argv
        assert all(isinstance(word, str) and word and "\n" not in word for word in argv)
    assert {*command.argv} & {program.name for program in programs_for(tool, own)}


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
    assert all((0 if row.unit == "1" else 1e-12) <= row.value < float("inf") for row in rows)  # a count may be none
    assert len({(row.metric, row.label) for row in rows}) == len(rows)
    assert tool.main_metrics(own)
    assert set(tool.main_metrics(own)) <= {row.metric for row in rows}
    assert tool.name in TELLS_NO_AMOUNT or "elapsed" in {row.metric for row in rows if not row.label}


@each_example
def test_the_bytes_that_it_moved_are_told_by_side(tool: Tool, number: int) -> None:
    """The checks compare them with what the device moved."""
    sides = {row.label for row in tool.parse(workload(tool, number), recorded(tool, number)) if row.metric == "bytes"}
    assert bool(sides) == (tool.name not in TELLS_NO_AMOUNT)
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
    with pytest.raises(TrialError) as caught:
        tool.parse(workload(tool, number, **OTHER_WORK[tool.name]), recorded(tool, number))
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

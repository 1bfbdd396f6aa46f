"""The tool for any program in place, and figures that it prints as JSON."""

from __future__ import annotations

from typing import Any

import pytest
from mountlab.core.errors import ParameterError, ParseError
from mountlab.core.model import Filesystem, Workload
from mountlab.programs import TOOLS
from mountlab.sweep.clients import refusal
from mountlab.sweep.sweep_file import resolve
from mountlab.tools.base import ToolOutput
from programs.test_conformance import read
from rows import every_row

TOOL = TOOLS["watched"]
JSON = 'note: starting\n{"jobs": [{"read": {"iops": 1250.5, "bw": 3}}], "a name": {"x": "7"}, "none": null}\ntrailing'


def workload(**options: Any) -> Workload:
    return read(TOOL, {"argv": "prog x", **options})


def found(path: str, stdout: str = JSON) -> float:
    entry = {"rate": {"json": path, "unit": "1/min", "better": "higher"}}
    output = ToolOutput(exit_status=0, stdout=stdout, stderr="", files={})
    (row,) = TOOL.parse(workload(metrics=entry), output)
    return row.value


def test_it_runs_in_the_directory_with_its_words_as_they_are() -> None:
    command = TOOL.command(
        workload(argv="prog '{x} y' $HOME", metrics={"rate": {"json": "$.a", "unit": "1/s", "better": "higher"}}),
        "/srv",
        "/out",
    )
    assert command.argv[-5:] == ("watched", "/srv", "prog", "{x} y", "$HOME")
    assert (command.prepare, command.files, command.cache) == ((), {}, "as_is")


def test_its_variables_are_given_by_env() -> None:
    command = TOOL.command(workload(environment={"A": "1 2"}), "/srv", "/out")
    assert command.argv[-4:] == ("env", "A=1 2", "prog", "x")


@every_row(
    ("path", "value"),
    [("$.jobs[0].read.iops", 1250.5 / 60), ("$.jobs[0].read.bw", 3 / 60), ('$["a name"].x', 7 / 60)],
)
def test_a_figure_is_found_by_its_path_in_json(path: str, value: float) -> None:
    assert found(path) == pytest.approx(value)


@every_row(
    ("path", "stdout", "words"),
    [
        ("$.jobs[1].read", JSON, "no 1 below $[\"jobs\"]"),
        ("$.jobs[0].write", JSON, "no 'write' below $[\"jobs\"][0]"),
        ("$.none", JSON, "is not a number"),
        ("$.jobs", JSON, "is not a number"),
        ("$.x", "no json", "was not found"),
        ("$.x", '{"x": ', "was not found"),
    ],
)  # fmt: skip
def test_a_path_that_leads_nowhere_fails_the_trial_with_its_place(path: str, stdout: str, words: str) -> None:
    with pytest.raises(ParseError) as caught:
        found(path, stdout)
    assert words in f"{caught.value.what} {caught.value.got}"


@every_row(
    ("options", "where"),
    [
        ({"metrics": {"rate": {"json": "jobs.x", "unit": "1/s", "better": "higher"}}}, "json"),
        ({"metrics": {"rate": {"json": "$.x", "pattern": "(.)", "unit": "1/s", "better": "higher"}}}, "pattern"),
        ({"metrics": {"rate": {"json": "$.x", "all": "sum", "unit": "1/s", "better": "higher"}}}, "all"),
        ({"argv": "prog 'x"}, "argv"),
        ({"argv": "  "}, "argv"),
        ({"cache": "warm"}, "cache"),
        ({"environment": {"A-B": "x"}}, "environment.A-B"),
    ],
)
def test_what_cannot_be_watched_is_refused_by_key(options: dict[str, Any], where: str) -> None:
    with pytest.raises(ParameterError) as caught:
        workload(**options)
    assert caught.value.where.endswith(where)


def test_only_a_watched_program_works_in_place_and_only_there() -> None:
    place, other = Filesystem(name="here", type="in_place", path="/srv"), Filesystem(name="d", type="dir")
    dd = read(TOOLS["dd"], {"direction": "write", "count": 1})
    assert refusal(place, workload()) is None
    assert "in_place" in str(refusal(other, workload()))
    assert "in_place" in str(refusal(place, dd))


def test_a_directory_in_place_needs_its_path() -> None:
    raw = {
        "name": "x",
        "question": "?",
        "filesystems": {"h": {"type": "in_place"}},
        "workloads": {"p": {"tool": "watched", "argv": "a"}},
    }
    with pytest.raises(ParameterError, match="needs its path"):
        resolve(raw, where="x")

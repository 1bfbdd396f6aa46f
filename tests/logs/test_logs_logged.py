"""Outputs within logs of services, pages and programs: each line has something before it, or is a string."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from mountlab.core.errors import MountlabError
from mountlab.logs import decoded, read_log, read_one
from rows import every_row

DATA = Path(__file__).parents[1] / "data"
OUTPUTS = {
    "fio/human-randrw.stdout": "fio", "fio/mixed-two-jobs.json": "fio", "fio/terse-3.stdout": "fio",
    "fs_mark/S1-L2.stdout": "fs_mark", "pg_test_fsync/ext4.stdout": "pg_test_fsync",
    "filebench/fileserver.stdout": "filebench",
}  # fmt: skip


def recorded(name: str) -> str:
    return decoded((DATA / name).read_bytes()).rstrip("\n") + "\n"


def figures(tool: str, text: str) -> list[tuple[str, str, float, int]]:
    """Metric, label, value and line."""
    output = read_one(tool, text)
    return sorted(
        (each.measurement.metric, each.measurement.label, each.measurement.value, each.line) for each in output.figures
    )


def strings(lines: list[str]) -> list[str]:
    return [f"        {json.dumps(line)}," for line in lines]


def docker(lines: list[str]) -> list[str]:
    return [json.dumps({"log": f"{line}\n", "stream": "stdout", "time": "2026-01-02T03:04:05.6Z"}) for line in lines]


@every_row("name", OUTPUTS)
@every_row(
    "before",
    [
        "[pod/fio-0/fio] ", "INFO: ", "2026-05-05 10:11:{n:02d},345 - root - INFO - ",
        "2026-05-05 10:11:12,{n:03d} INFO ", "{n:5d}  ", "{n}:", "+", "-", "% ", "-- ", "; ", " * ",
    ],
)  # fmt: skip
def test_what_a_service_writes_before_each_line_is_taken_away(name: str, before: str) -> None:
    text, tool = recorded(name), OUTPUTS[name]
    lines = [before.format(n=number % 60) + line for number, line in enumerate(text.split("\n")[:-1], start=1)]
    assert figures(tool, "\n".join([*lines, ""])) == figures(tool, text)


@every_row("name", OUTPUTS)
@every_row("wrap", [strings, docker])
def test_lines_that_are_strings_of_json_are_read(name: str, wrap: object) -> None:
    assert callable(wrap)
    text, tool = recorded(name), OUTPUTS[name]
    assert figures(tool, "\n".join([*wrap(text.split("\n")[:-1]), ""])) == figures(tool, text)


@every_row("name", OUTPUTS)
@every_row(("front", "end"), [("<pre><code>", "</code></pre>"), ("{noformat}", "{noformat}"), ("{code:sh}", "{code}")])
def test_marks_of_pages_and_trackers_are_taken_away(name: str, front: str, end: str) -> None:
    text, tool = recorded(name), OUTPUTS[name]
    assert figures(tool, f"{front}{text}{end}\n") == figures(tool, text)
    assert figures(tool, text.replace("\n", "<br/>\n")) == figures(tool, text)


@every_row("name", ["fio/mixed-two-jobs.json", "fio/terse-3.stdout", "pg_test_fsync/ext4.stdout"])
@every_row("front", ["2026-05-05 10:11:12,345 - root - INFO - ", "output: "])
def test_words_before_the_first_line_are_taken_away(name: str, front: str) -> None:
    text, tool = recorded(name), OUTPUTS[name]
    assert figures(tool, f"{front}{text}2026-05-05 10:11:13 done\n") == figures(tool, text)


@pytest.mark.parametrize("before", ["INFO: ", "[pod/fio-0/fio] ", "2026-05-05 10:11:12,345 INFO "])
def test_a_fio_that_was_stopped_is_refused_in_a_log_too(before: str) -> None:
    stopped = "\nfio: terminating on signal 2"
    text = "".join(f"{before}{line}\n" for line in recorded("fio/human-randrw.stdout").strip("\n").split("\n"))
    for other in (before, "ERROR: "):
        with pytest.raises(MountlabError, match="fio was stopped before it was done"):
            read_one("fio", stopped.replace("\n", other) + "\n" + text)


def test_an_output_beside_one_with_something_before_its_lines_is_read_as_before() -> None:
    text = recorded("fio/human-randrw.stdout")
    logged = "".join(f"INFO: {line}\n" for line in text.strip("\n").split("\n"))
    assert read_log("fio", text + logged)[0].measurements == read_log("fio", text)[0].measurements


def test_an_empty_line_between_numbered_lines_stays_a_line() -> None:
    text = recorded("fs_mark/S1-L2.stdout")
    lines = text.split("\n")[:-1]
    numbered = "\n".join(f"{number:5d}  {line}" if line else "" for number, line in enumerate(lines, start=1)) + "\n"
    assert figures("fs_mark", numbered) == figures("fs_mark", text)


def test_keys_of_json_before_a_known_one_stay() -> None:
    text = recorded("fio/mixed-two-jobs.json")
    shorter = re.sub(r'("job_runtime" : \d+,)\n\s*', r"\1 ", text)
    assert shorter != text
    values = [row[:3] for row in figures("fio", text)]
    assert [row[:3] for row in figures("fio", shorter)] == values

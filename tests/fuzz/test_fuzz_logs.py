"""Logs that were cut, torn, mixed up or changed: the documented error or honest figures, and never anything else.

A few damages of each in `make test`, and a hundred or more prefixes of every recording in `make test-all`. `make
fuzz` tries every prefix, and some hundred times as many damages.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from mountlab.core.errors import MountlabError, ParameterError, TrialError
from mountlab.core.metrics import METRICS
from mountlab.core.model import Measurement
from mountlab.logs import FORMATS, Output, decoded, read_log
from mountlab.logs.base import original
from mountlab.logs.frame import tidy
from rows import every_row

DATA = Path(__file__).parents[1] / "data"
NOT_LOGS = ("help-3.33.txt", "languages.tsv", "settled")
RECORDINGS = {
    f"{path.relative_to(DATA)}": path.read_bytes()
    for tool in FORMATS
    for path in sorted((DATA / tool).rglob("*"))
    if path.is_file() and path.name not in NOT_LOGS and not path.name.startswith("fio_")
}
BY_TOOL = {tool: [name for name in RECORDINGS if name.startswith(f"{tool}/")] for tool in FORMATS}
# fio prints nothing by which the first of its snapshots (--status-interval) differs from the report of a whole run.
# Where lines of such a log are lost, a snapshot may be left.
ONCE = [name for name in RECORDINGS if "status-interval" not in name]
# Lines of terse output have no header, and beside other reports they are those of the same run in another format.
WITH_HEADER = {tool: [name for name in names if "terse" not in name] for tool, names in BY_TOOL.items()}
SMALL = 1000
"""Up to so many bytes every prefix of a recording is tried in `make test-all` too."""
FEW = 15
"""Prefixes of each recording in `make test`."""

recordings = st.sampled_from(list(RECORDINGS))
once = st.sampled_from(ONCE)
tools = st.sampled_from(list(FORMATS))


def thorough() -> bool:
    return settings.default is not None and settings.default.max_examples > 1000


def outputs(name: str, data: bytes) -> list[Output]:
    """What is found in a damaged recording; [] where nothing is. Anything but the documented errors is a failure."""
    try:
        found = read_log(name.split("/")[0], decoded(data), where="log.txt")
    except TrialError:
        return []
    for output in found:
        assert isinstance(output.problem, TrialError | None)
        assert bool(output.figures) != bool(output.problem)
        if output.problem:
            assert re.match(r"log\.txt, (after )?line \d+", output.problem.where)
        check_honest(output)
    return found


def check_honest(output: Output) -> None:
    lines = range(output.part.line, output.part.line + output.part.text.count("\n") + 1)
    names = set()
    for figure in output.figures:
        row = figure.measurement
        assert METRICS[row.metric] == row.unit
        assert math.isfinite(row.value)
        assert row.value > 0 or (row.value == 0 and row.unit == "1")
        assert figure.line in lines
        names.add((row.metric, row.label))
    assert len(names) == len(output.figures), "one figure a metric and label"


def rows(found: list[Output]) -> list[Measurement]:
    return [row for output in found for row in output.measurements]


def assert_none_invented(found: list[Output], *whole: str) -> None:
    """Every figure is one of the whole recordings', whatever it is called, but for the last digits: a rate may be
    computed again, and where JSON is cut off the text after it has the same with fewer digits. A percentile whose
    histogram is missing is what fio printed: the middle of a bin, which has its width as its step."""
    known: dict[str, list[float]] = {}
    for name in whole:
        for row in rows(outputs(name, RECORDINGS[name])):
            known.setdefault(row.metric, []).append(row.value)
    for row in rows(found):
        assert any(
            math.isclose(row.value, value, rel_tol=2e-3, abs_tol=2 * row.step) for value in known.get(row.metric, [])
        ), row


# --- cut off ----------------------------------------------------------------------------------------------------------


def ends(data: bytes) -> list[int]:
    """Where to cut: everywhere in a small recording, else about each end of a line and at some places between."""
    if thorough() or len(data) <= SMALL:
        return list(range(len(data)))
    about = {place + step for place, byte in enumerate(data) if byte == 10 for step in (-1, 0, 1)}
    chosen = random.Random(len(data)).sample(range(len(data)), 60)
    return sorted(
        {*random.Random(1).sample(sorted(about), min(60, len(about))), *chosen, *range(len(data) - 50, len(data))}
    )


def assert_figures_or_none(name: str, cuts: list[int]) -> None:
    data = RECORDINGS[name]
    whole = [output.measurements for output in outputs(name, data)]
    for end in cuts:
        for number, output in enumerate(outputs(name, data[:end])):
            assert output.problem or output.notes or output.measurements == whole[number], f"cut at byte {end}"
            assert_none_invented([output], name)  # a note says what is missing


@pytest.mark.slow
@every_row("name", ONCE)
def test_the_beginning_of_a_recording_gives_its_figures_or_none(name: str) -> None:
    cuts = ends(RECORDINGS[name])
    assert_figures_or_none(name, random.Random(name).sample(cuts, min(FEW, len(cuts))))


@pytest.mark.long
@pytest.mark.parametrize("name", ONCE)
def test_wherever_a_recording_is_cut_its_beginning_gives_its_figures_or_none(name: str) -> None:
    assert_figures_or_none(name, ends(RECORDINGS[name]))


@pytest.mark.slow
@given(once, st.data())
def test_the_end_of_a_recording_invents_nothing(name: str, data: st.DataObject) -> None:
    whole = RECORDINGS[name]
    start = data.draw(st.integers(0, len(whole)))
    assert_none_invented(outputs(name, whole[start:]), name)


# --- torn and mixed up ------------------------------------------------------------------------------------------------


HEADING = re.compile(rb"  +(read|write|trim|mixed) ?: IOPS=")
"""The line of fio's text that begins the figures of one direction."""


@pytest.mark.slow
@given(once, st.data())
def test_lines_that_are_missing_invent_nothing(name: str, data: st.DataObject) -> None:
    lines = RECORDINGS[name].splitlines(keepends=True)
    first = data.draw(st.integers(0, len(lines)))
    count = data.draw(st.integers(1, 12))
    assume(not join_sections(lines, first, first + count))
    assert_none_invented(outputs(name, b"".join(lines[:first] + lines[first + count :])), name)


def join_sections(lines: list[bytes], first: int, end: int) -> bool:
    """Whether these lines are all of one section of fio's text but its heading, and the heading of the next: without
    them the text is a whole log, in which the latencies of one direction stand under another. No reader can tell."""
    return first > 0 and end <= len(lines) and all(map(HEADING.match, (lines[first - 1], lines[end - 1])))


@settings(derandomize=True)  # other mixtures are known to give a figure of neither log
@given(tools, st.data())
@pytest.mark.long
def test_two_logs_in_turns_invent_nothing(tool: str, data: st.DataObject) -> None:
    """Trap: two runs wrote into one file at the same time. Of logs that are read: what one that is refused says may
    become readable by a line of the other."""
    names = [name for name in BY_TOOL[tool] if name in ONCE and rows(outputs(name, RECORDINGS[name]))]
    one, other = (data.draw(st.sampled_from(names)) for _ in range(2))
    queues = [RECORDINGS[name].splitlines(keepends=True)[::-1] for name in (one, other)]
    mixed = []
    while all(queues):
        queue = queues[data.draw(st.integers(0, 1))]
        mixed += [queue.pop() for _ in range(min(len(queue), data.draw(st.integers(1, 8))))]
    mixed += queues[0][::-1] + queues[1][::-1]
    assert_none_invented(outputs(one, b"".join(mixed)), one, other)


@pytest.mark.slow
@given(tools, st.lists(st.integers(0, 1000), min_size=2, max_size=4))
def test_logs_one_after_the_other_give_the_outputs_of_each(tool: str, picks: list[int]) -> None:
    names = [WITH_HEADER[tool][pick % len(WITH_HEADER[tool])] for pick in picks]
    names = [name for name in names if any(not output.problem for output in outputs(name, RECORDINGS[name]))]
    together = outputs(f"{tool}/", b"".join(RECORDINGS[name] for name in names))
    assert [output.measurements for output in together] == [
        output.measurements for name in names for output in outputs(name, RECORDINGS[name])
    ]


@pytest.mark.slow
@given(recordings, st.integers(1, 5))
def test_the_parts_of_a_log_are_the_log_and_read_alone_as_together(name: str, times: int) -> None:
    data = RECORDINGS[name] * times
    found = outputs(name, data)
    kept = [original(data, output.part) for output in found]
    assert not found or b"".join(kept) == data
    for output, part in zip(found, kept, strict=True):
        (again,) = outputs(name, part)
        assert again.measurements == output.measurements


# --- changed ----------------------------------------------------------------------------------------------------------

ODD = (
    b"nan",
    b"-1",
    b"inf",
    b"1e999",
    b"0",
    b"",
    b"9" * 30,
    b"null",
    b"{",
    b"\0",
    b"\xff",
    b"0x10",
    b"1,5",
    b"\xd9\xa3",
)


@pytest.mark.slow
@given(recordings, st.data())
def test_a_changed_number_is_an_honest_figure_or_the_documented_error(name: str, data: st.DataObject) -> None:
    whole = RECORDINGS[name]
    place = data.draw(st.integers(0, max(0, len(whole) - 1)))
    end = place
    while end < len(whole) and whole[end : end + 1].isdigit():
        end += 1
    odd = data.draw(st.sampled_from(ODD))
    outputs(name, whole[:place] + odd + whole[end:])


@given(tools, st.binary(max_size=300))
@example("fio", b"\x0b{")
@example("dd", b"1+0\x0c1+0\x1d8 bytes copied, 1.5 s, 5 B/s")
def test_no_bytes_are_anything_but_an_honest_figure_or_the_documented_error(tool: str, data: bytes) -> None:
    outputs(f"{tool}/", data)


@given(tools, st.text(alphabet="0123456789.,+-e sbMGK()/{}[]:\"'\n\r\t|#%u=", max_size=300))
@example("dd", "8 bytes copied, 1e-999 s, 1 B/s\n")
@example("dd", "1+0\n1+0\n٣ bytes, 1 s, 3 B/s\n")
@example("dd", "8 bytes copied, 1e999 s, 1 B/s\n8 bytes copied, 8 s, 1e999 B/s\n")
@example("fio", '{"jobs": [{"jobname": "x", "error": 0, "read": {"bw": 1, "runtime": true, "io_bytes": 1}}]}')
def test_no_text_is_anything_but_an_honest_figure_or_the_documented_error(tool: str, text: str) -> None:
    outputs(f"{tool}/", text.encode())


JSON_VALUES: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.slow
@given(st.sampled_from([name for name in BY_TOOL["fio"] if "json" in name]), st.data())
def test_any_value_in_a_report_is_an_honest_figure_or_the_documented_error(name: str, data: st.DataObject) -> None:
    import json

    text = decoded(RECORDINGS[name])
    report = json.loads(text[text.index("{\n") : text.rindex("\n}") + 2])
    parent, key = report, data.draw(st.sampled_from(sorted(report)))
    for _ in range(data.draw(st.integers(0, 5))):
        below = parent[key]
        keys = sorted(below) if isinstance(below, dict) else list(range(len(below))) if isinstance(below, list) else []
        if not keys:
            break
        parent, key = below, data.draw(st.sampled_from(keys))
    parent[key] = data.draw(JSON_VALUES)
    outputs(name, json.dumps(report, indent=1).encode())


# --- many at once -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(st.lists(recordings, max_size=6), tools)
def test_a_frame_of_many_logs_holds_what_each_of_them_does(names: list[str], tool: str) -> None:
    logs = [(f"{number}", RECORDINGS[name]) for number, name in enumerate(names) if name.startswith(f"{tool}/")]
    whole = tidy(tool, logs)
    alone = [read_or_error(tool, data) for _, data in logs]
    figures = [(row.metric, row.label, row.value) for found in alone if isinstance(found, list) for row in rows(found)]
    assert list(zip(whole.frame["metric"], whole.frame["label"], whole.frame["value"], strict=True)) == figures
    problems = [found for found in alone if not isinstance(found, list)]
    problems += [output for found in alone if isinstance(found, list) for output in found if output.problem]
    assert len(whole.problems) == len(problems)


def read_or_error(tool: str, data: bytes) -> list[Output] | MountlabError:
    try:
        return read_log(tool, decoded(data))
    except TrialError as error:
        return error


@pytest.mark.parametrize("ask", [lambda: read_log("fooo", ""), lambda: tidy("fooo", [("x", b"")])])
def test_a_tool_that_nobody_reads_is_said(ask: Callable[[], object]) -> None:
    with pytest.raises(ParameterError, match="unknown tool with logs to read"):
        ask()

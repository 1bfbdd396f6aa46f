"""fio's reports inside of other JSON, as scripts, operators and CI keep them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mountlab.logs import Output, decoded, read_log, read_one
from mountlab.logs.base import original
from rows import every_row

DATA = Path(__file__).parents[1] / "data" / "fio"
NAMES = ("mixed-two-jobs.json", "psync-randwrite-fsync1.jsonplus")
REPORTS = [json.loads((DATA / name).read_text()) for name in NAMES]
Rows = set[tuple[str, str, float]]


def rows(output: Output) -> Rows:
    assert output.problem is None
    return {(row.metric, row.label, row.value) for row in output.measurements}


PLAIN = [rows(read_one("fio", json.dumps(report))) for report in REPORTS]


def lines(reports: list[Any]) -> str:
    return "".join(f"{json.dumps({'run': 1, 'readjobs': 2, 'data': report})}\n" for report in reports)


def reversed_keys(report: dict[str, Any]) -> dict[str, Any]:
    return dict(reversed(report.items()))


WRAPPERS: dict[str, Callable[[list[Any]], str]] = {
    "a line a run": lines,
    "a list": json.dumps,
    "an indented list": lambda reports: json.dumps(reports, indent=2),
    "results": lambda reports: json.dumps({"results": [{"jobname": "x", "fio": report} for report in reports]}),
    "indented results": lambda reports: json.dumps({"all": [{"ctx": 1, "fio": each} for each in reports]}, indent=4),
    "sorted keys": lambda reports: json.dumps([{"fio": each} for each in reports], sort_keys=True, indent=1),
    "version at the end": lambda reports: json.dumps([reversed_keys(report) for report in reports], indent=2),
    "words before": lambda reports: "result {of 2}: " + json.dumps({"fio": reports}),
    "strings": lambda reports: json.dumps([{"rc": 0, "stdout": json.dumps(report, indent=2)} for report in reports]),
    "strings in strings": lambda reports: json.dumps({"log": json.dumps({"out": list(map(json.dumps, reports))})}),
    "stamped": lambda reports: "".join(
        f"2026-05-05T10:11:12Z {line}\n" for line in json.dumps({"jobname": "x", "fio": reports}, indent=2).split("\n")
    ),
}  # fmt: skip


@every_row("wrapper", WRAPPERS)
def test_each_report_inside_of_other_json_is_an_output(wrapper: str) -> None:
    text = WRAPPERS[wrapper](REPORTS)
    outputs = read_log("fio", text)
    assert [rows(output) for output in outputs] == PLAIN
    begins = [number for number, line in enumerate(text.split("\n"), start=1) if "fio version" in line]
    begins = begins if len(begins) == 2 else begins * 2
    for output, begin in zip(outputs, begins, strict=True):
        assert output.part.line <= begin
        last = output.part.line + output.part.text.count("\n")
        assert all(output.part.line <= figure.line <= last for figure in output.figures)


@every_row("wrapper", WRAPPERS)
def test_what_is_kept_of_a_report_inside_of_other_json_is_that_report(wrapper: str) -> None:
    data = WRAPPERS[wrapper](REPORTS).encode()
    kept = [original(data, output.part) for output in read_log("fio", decoded(data))]
    assert [rows(read_one("fio", decoded(one))) for one in kept] == PLAIN


@every_row("share", [0.6, 0.9])
@every_row("wrapper", ["results", "indented results", "a list"])
def test_a_report_that_is_cut_off_inside_of_other_json_has_no_figures(wrapper: str, share: float) -> None:
    """And the whole one before it has."""
    text = WRAPPERS[wrapper](REPORTS)
    second = text.rindex("fio version")
    first, last = read_log("fio", text[: second + round(share * (len(text) - second))])
    assert rows(first) == PLAIN[0]
    assert last.problem is not None
    assert not last.figures


def test_a_report_that_lost_its_end_does_not_take_that_of_the_next_line() -> None:
    text = lines(REPORTS)
    first, last = read_log("fio", text[:3000] + text[text.index("\n") :])
    assert "not whole" in str(first.problem)
    assert rows(last) == PLAIN[1]


MESSAGE = "fio: terminating on signal 15"
STOPPED: dict[str, Callable[[Any, Any], Any]] = {
    "a key before": lambda first, last: [{"fio": first}, {"note": [], "stderr": MESSAGE, "fio": last}],
    "a key behind": lambda first, last: [{"fio": first}, {"fio": last, "stderr": MESSAGE}],
    "in the string": lambda first, last: [{"out": json.dumps(first)}, {"out": f"{MESSAGE}\n{json.dumps(last)}"}],
}


@every_row("place", STOPPED)
def test_a_report_inside_of_other_json_whose_fio_was_stopped_has_no_figures(place: str) -> None:
    text = json.dumps(STOPPED[place](*REPORTS))
    last = read_log("fio", text)[-1]
    assert "fio was stopped" in str(last.problem)
    (kept,) = read_log("fio", decoded(original(text.encode(), last.part)))
    assert kept.problem is not None


def test_text_beside_json_with_a_report_is_read_too() -> None:
    human = (DATA / "human-randrw.stdout").read_text()
    above, wrapped, below = read_log("fio", f"{human}\n{json.dumps({'fio': REPORTS[0]})}\n{human}")
    assert rows(above) == rows(below) == rows(read_one("fio", human))
    assert rows(wrapped) == PLAIN[0]
    assert below.figures[0].line - above.figures[0].line == human.count("\n") + 2


def test_snapshots_inside_of_other_json_are_one_run() -> None:
    early, late = (json.loads(json.dumps(REPORTS[1])) for _ in range(2))
    side = early["jobs"][0]["write"]
    for key in ("io_bytes", "io_kbytes", "total_ios", "runtime"):
        side[key] //= 2
    early["timestamp_ms"] -= 1
    (output,) = read_log("fio", json.dumps([early, late]))
    assert rows(output) == PLAIN[1]
    assert "after 1 snapshot" in output.form


@pytest.mark.parametrize("report", REPORTS)
def test_a_plain_report_below_a_script_is_no_piece_of_json(report: Any) -> None:
    (output,) = read_log("fio", "run() {\n  fio --name=x\n" + json.dumps(report, indent=2) + "\n}\n")
    assert not output.part.inside

"""fio's terse output, and figures of reads and writes together (unified_rw_reporting)."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
from logs.test_logs_fio import figures, problem, recorded
from mountlab.logs import read_log
from rows import every_row

KEPT = ("p50", "p95", "p99", "p99_9")


UNIFIED = {
    "unified.stdout": {
        "bandwidth": 81.6 * 2**20, "bytes": 2**22, "elapsed": 0.049, "operation_rate": 1024 / 0.049, "operations": 1024,
        "operation_latency": 46994.56e-9, "operation_latency_p50": 5664e-9, "operation_latency_p99": 602112e-9,
    },
    "unified.report": {
        "bandwidth": 33554432, "bytes": 2**22, "elapsed": 0.125, "operation_rate": 8192, "operations": 1024,
        "operation_latency": 119128.144531e-9, "operation_latency_p99": 3063808e-9,
    },
    "unified-both.stdout": {
        "read_ios": 496, "write_ios": 528, "bytes read": 1984 * 1024, "bytes write": 2112 * 1024,
        "operation_latency": 92383.46e-9, "operation_latency_p50": 7520e-9, "operation_latency_p99": 2072576e-9,
    },
}  # fmt: skip


@every_row("name", UNIFIED)
def test_directions_that_fio_added_up_are_figures_of_all_operations(name: str) -> None:
    found = figures(recorded(name))
    assert found | UNIFIED[name] == pytest.approx(found, rel=2e-3)
    assert UNIFIED[name].keys() <= found.keys()
    assert not any("mixed" in key for key in found)
    assert ("bytes" in found) == ("both" not in name), "bytes count once"
    assert "operation_latency_p99_9" not in found, "of 1024 operations"


def test_a_sum_of_directions_beside_them_is_read_where_fio_prints_it() -> None:
    """Versions after 3.33 give it rates."""
    text = recorded("unified-both.stdout")
    rates = "mixed: IOPS=10.7k, BW=41.7MiB/s (43.7MB/s)(4096KiB/96msec)"
    today = figures(text.replace("mixed: IOPS=0, BW=0 (0)(0B/96msec)", rates))
    added = {"bandwidth": 41.7 * 2**20, "operation_rate": 1024 / 0.096, "operations": 1024}
    assert {key: today[key] for key in today.keys() - figures(text).keys()} == pytest.approx(added, rel=2e-3)


def terse_parts(version: int) -> tuple[str, str, str, str]:
    """What stands before the directions of a recorded line, the reads, the writes, and the rest."""
    fields = recorded(f"terse-{version}.stdout").split(";")
    first, width = 5 - (version == 2), 41 + 6 * (version == 5)
    edges = [0, first, first + width, first + 2 * width, len(fields)]
    head, reads, writes, rest = (";".join(fields[a:b]) for a, b in itertools.pairwise(edges))
    return head, reads, writes, rest


@every_row("version", [2, 3, 4, 5])
def test_terse_output_of_directions_that_fio_added_up_is_of_all_operations(version: int) -> None:
    head, reads, writes, rest = terse_parts(version)
    plain = figures(";".join([head, reads, writes, rest]))
    together = {
        "bandwidth": plain["read_bandwidth"], "operation_rate": plain["read_iops"],
        "operation_latency": plain["read_latency_mean"], "operation_latency_p50": plain["read_latency_p50"],
        "operation_latency_p95": plain["read_latency_p95"],
    }  # fmt: skip
    trims = ";".join(rest.split(";")[: 0 if version == 3 else 41 + 6 * (version == 5)])
    machine = rest.removeprefix(f"{trims};") if trims else rest
    alone = figures(";".join([head, reads, machine]))
    assert together.items() | {("bytes", plain["bytes read"])} <= alone.items()
    assert not any(key.startswith(("read", "write")) for key in alone)
    both = figures(";".join(filter(None, [head, reads, writes, trims, reads, machine])))
    assert both == {**plain, **together}


def test_terse_output_of_fio_1_is_read() -> None:
    """It has neither IOPS nor percentiles."""
    head, reads, writes, rest = terse_parts(2)
    today = figures(";".join([head, reads, writes, rest]))
    machine = ";".join(rest.split(";")[41:])
    old = [";".join(side[:2] + side[3:12] + side[32:]) for side in (reads.split(";"), writes.split(";"))]
    found = figures(";".join([head, *old, machine]))
    assert found == {key: value for key, value in today.items() if "iops" not in key and not key.endswith(KEPT)}


def test_terse_lines_of_one_name_are_numbered_where_they_cannot_be_snapshots() -> None:
    line = recorded("terse-3.stdout")
    (output,) = read_log("fio", line * 2)
    found = {f"{row.metric} {row.label}".strip(): row.value for row in output.measurements}
    alone = {key: value for key, value in figures(line).items() if not key.startswith("bytes ")}
    assert found == {f"{key} t.{number}": value for key, value in alone.items() for number in (0, 1)}
    assert output.notes[0] == "2 lines, some of one name: jobs of one run, or runs"
    assert output.notes[1] == "amounts of single jobs are left out"


def growing(line: str) -> str:
    """The line, and one of 30 times the bytes in 30 times the time."""
    fields = line.split(";")
    later = list(fields)
    for first in (5, 46):
        for at, factor in ((first, 30), (first + 3, 30)):
            later[at] = str(int(fields[at]) * factor)
    return line + ";".join(later)


TERSE = ("fio/terse-2.stdout", "fio/terse-3.stdout", "fio/terse-4.stdout", "fio/terse-5.stdout")


@every_row("name", TERSE)
def test_one_line_of_terse_output_is_read(name: str) -> None:
    text = recorded(name.removeprefix("fio/"))
    version = int(text[0])
    fields, found = text.split(";"), figures(text)
    width, first = 47 if version == 5 else 41, 5 - (version == 2)
    for side, at_field in (("read", first), ("write", first + width)):
        kib, rate, iops, ms = map(int, fields[at_field : at_field + 4])
        assert (found[f"bytes {side}"], found[f"{side}_iops"]) == (kib * 1024, iops)
        assert found[f"{side}_bandwidth"] == pytest.approx(rate * 1024, rel=1e-3)
        assert found[f"{side}_bandwidth"] == pytest.approx(kib * 1024e3 / ms)
        assert found[f"{side}_latency_mean"] == pytest.approx(float(fields[at_field + 4 + 4 + 4 + 20 + 2]) / 1e6)
        assert found[f"{side}_completion_latency_mean"] == pytest.approx(float(fields[at_field + 4 + 4 + 2]) / 1e6)
        for name, percent in zip(KEPT, (50, 95, 99, 99.9), strict=True):
            us = re.search(rf";{percent:f}%=(\d+)", ";".join(fields[at_field : at_field + width]))
            rests_on_enough = (iops * ms / 1e3) * (100 - percent) / 100 >= 10
            assert us
            assert found.get(f"{side}_latency_{name}") == (int(us[1]) / 1e6 if rests_on_enough else None)


POINTS = {
    "of many": ({}, {"p50": 2050e-6, "p95": 6000e-6, "p99": 23725e-6, "p99_9": 31000e-6}),
    "of few": ({2: 200}, {"p50": 2050e-6, "p95": 6000e-6}),
    "not computed": ({12 + at: "0%=0" for at in range(20)}, {}),
    "listed by hand": ({12: "99.9%=777", 13: "42%=5", **{14 + at: "0%=0" for at in range(18)}}, {"p99_9": 777e-6}),
}  # fmt: skip


@every_row("row", POINTS)
@every_row("version", [2, 3, 4, 5])
def test_percentiles_of_terse_output_are_read_where_enough_ios_give_them(version: int, row: str) -> None:
    """Of 20,000 reads, or of 400."""
    head, reads, writes, rest = terse_parts(version)
    fields = reads.split(";")
    points = {1: 10, 5: 100, 50: 2050, 95: 6000, 99: 23725, 99.9: 31000}
    values = [f"{percent:f}%={us}" for percent, us in points.items()] + ["0%=0"] * 14
    fields = ["80000", "40000", "10000", "2000", *fields[4:12], *values, *fields[32:]]
    changes, expected = POINTS[row]
    for place, value in changes.items():
        fields[place] = str(value)
    fields[0], fields[1] = str(8 * int(fields[2])), str(4 * int(fields[2]))
    (output,) = read_log("fio", ";".join([head, *fields, writes, rest]))
    found = {
        each.metric.removeprefix("read_latency_"): each.value
        for each in output.measurements
        if each.metric.startswith("read_latency_p")
    }
    assert found == expected
    assert any("lat_percentiles" in note for note in output.notes)


def test_the_sum_of_clients_in_terse_output_is_that_of_all() -> None:
    line = recorded("terse-3.stdout")
    fields = line.split(";")
    for first in (5, 46):
        for at in (first, first + 1, first + 2):
            fields[at] = str(2 * int(fields[at]))
    whole = ";".join([*fields[:2], "All clients", *fields[3:]])
    alone, text = figures(whole), f"{line}{line.replace(';t;', ';u;')}{whole}<host> \n"
    found = figures(text)
    assert {key: value for key, value in found.items() if not key.endswith((" t", " u"))} == alone
    assert found["bytes read"] == 2 * figures(line)["bytes read"]
    assert found["read_iops t"] == figures(line)["read_iops"]
    assert "do not agree" in problem(text.replace(line, "", 1))


@every_row(
    ("text", "said", "advice"),
    [
        (lambda: growing(recorded("terse-3.stdout")), "several lines of terse output", "each into a file of its own"),
        (lambda: recorded("terse-3.stdout")[:600], "cannot be read", "--output-format=json"),
        (lambda: recorded("terse-3.stdout").replace(";t;0;0;", ";t;0;28;"), "fio failed with error 28", ""),
        (lambda: recorded("terse-3.stdout").replace(";t;0;0;", ";t;u;0;0;"), "cannot be read", "--output-format=json"),
    ],
)
def test_terse_output_that_could_be_misread_is_refused_with_advice(text: Any, said: str, advice: str) -> None:
    found = problem(text())
    assert said in found
    assert advice in found

"""From the arguments of `mountlab watch` to a sweep that does the same."""

from __future__ import annotations

from typing import Any

import pytest
from mountlab.analysis.watched import is_watched
from mountlab.core.errors import ParameterError
from mountlab.sweep.sweep_file import resolve
from mountlab.sweep.watch_sweep import WatchRequest, read_metric_text
from rows import every_row


@every_row(
    ("argv", "name"),
    [
        (("make", "-j4"), "make"),
        (("/usr/bin/git", "status"), "git-status"),
        (("python3", "./Train.py", "--epochs"), "python3-train-py"),
        (("sh", "-c", "exit 3"), "sh"),
        (("échо",), "ch"),
        (("---",), "program"),
    ],
)
def test_a_program_is_named_as_people_call_it(argv: tuple[str, ...], name: str) -> None:
    assert WatchRequest(argv, "/srv", "local").name == name
    assert WatchRequest(argv, "/srv", "local", label="mine").name == "mine"


@every_row(
    ("text", "name", "entry"),
    [
        ("tps=tps = ([0-9.]+):1/s:higher", "tps", {"pattern": "tps = ([0-9.]+)", "unit": "1/s", "better": "higher"}),
        ("n=stderr:n=([0-9]+):1:neither", "n",
         {"pattern": "n=([0-9]+)", "unit": "1", "better": "neither", "from": "stderr"}),
        ("elapsed=took: ([0-9.]+):s", "elapsed", {"pattern": "took: ([0-9.]+)", "unit": "s"}),
        ("p=a:b:([0-9]+):ms:lower", "p", {"pattern": "a:b:([0-9]+)", "unit": "ms", "better": "lower"}),
        ("iops=$.jobs[0].read.iops:1/s:higher", "iops",
         {"json": "$.jobs[0].read.iops", "unit": "1/s", "better": "higher"}),
    ],
)  # fmt: skip
def test_a_metric_is_read_from_the_right_so_that_a_pattern_may_hold_colons(
    text: str, name: str, entry: dict[str, Any]
) -> None:
    assert read_metric_text(text) == (name, entry)


@every_row("text", ["tps", "tps=", "=x:s", "tps=(.*)", "tps=:1/s:higher"])
def test_what_is_no_metric_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ParameterError, match="not a metric") as caught:
        read_metric_text(text)
    assert caught.value.where == "--metric"
    assert "NAME=PATTERN:UNIT:BETTER" in caught.value.allowed


def test_its_sweep_is_read_by_the_rules_of_sweep_files() -> None:
    watch = WatchRequest(
        ("my prog", "a b", "{x}"), "/srv/data", "local", repeats=3, metrics=["tps=([0-9]+) tps:1/s:higher"],
        environment={"PATH": "/usr/bin"},
    )  # fmt: skip
    sweep = resolve(watch.parameters(), where="watch").sweep
    assert is_watched(sweep)
    design = sweep.design
    assert (design.repeats, design.warmup, design.drop_caches) == (3, 0, False)
    (cell,) = sweep.cells
    assert (cell.filesystem.type, cell.filesystem.path) == ("in_place", "/srv/data")
    assert cell.workload.options["argv"] == "'my prog' 'a b' '{x}'"
    assert "tps" in cell.workload.own_metrics

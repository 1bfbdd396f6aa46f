"""The command tool: a benchmark from a YAML entry alone, and what is wrong in such an entry is told before it runs."""

from __future__ import annotations

import json
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from facts import known
from hypothesis import given
from hypothesis import strategies as st
from mountlab.core.errors import MountlabError, ParameterError, ParseError, PlanError, ToolError, TrialError
from mountlab.core.metrics import METRICS, Metric
from mountlab.core.model import Box, Measurement, Workload
from mountlab.programs import TOOLS
from mountlab.sweep.feasible import all_programs, check_feasible, needed_programs
from mountlab.sweep.planner import make_plan
from mountlab.sweep.sweep_file import resolve
from mountlab.tools import wall_clock
from mountlab.tools.base import ToolOutput
from rows import every_row

COMMAND = TOOLS["command"]
RATE = {"file_rate": {"pattern": r"(\S+) files/s", "unit": "1/s"}}
ENTRY: dict[str, Any] = {"argv": "mybench {directory}", "space": "1MiB", "metrics": RATE}


def sweep(**options: Any) -> Any:
    entry = {key: value for key, value in {"tool": "command", **ENTRY, **options}.items() if value is not None}
    raw = {"name": "s", "question": "?", "filesystems": {"d": {"type": "dir"}}, "workloads": {"w": entry}}
    return resolve(raw, where="s.yml").sweep


def workload(**options: Any) -> Workload:
    found: Workload = sweep(**options).workloads[0]
    return found


def argv(template: str, **options: Any) -> tuple[str, ...]:
    return COMMAND.command(workload(argv=template, **options), "/m/t1", "/o/t1").argv


def parse(stdout: str, metrics: Any = RATE, *, status: int = 0, **more: Any) -> list[Measurement]:
    """`stderr` and `files` of the output may be among `more`; the rest are options."""
    files, stderr = more.pop("files", {}), more.pop("stderr", "")
    output = ToolOutput(exit_status=status, stdout=stdout, stderr=stderr, files=files)
    return COMMAND.parse(workload(metrics=metrics, **more), output)


def one(pattern: str, unit: str, stdout: str, metric: str = "write_bandwidth", **more: str) -> float:
    (row,) = parse(stdout, {metric: {"pattern": pattern, "unit": unit, **more}})
    assert (row.metric, row.unit) == (metric, METRICS[metric])
    return row.value


def refused(**options: Any) -> ParameterError:
    with pytest.raises(ParameterError) as caught:
        workload(**options)
    assert caught.value.where.startswith("s.yml: workloads.w")
    assert caught.value.got
    assert caught.value.allowed
    return caught.value


# --- the command line -------------------------------------------------------------------------------------------------


def test_places_are_filled_after_the_line_is_split() -> None:
    """A value is one word, whatever is in it: nothing of it is read as a further argument or by a shell."""
    found = argv("mybench -d {directory}/x --out={output} '{a word}' {text} x{n}y", text="a b; rm -rf '", n=3)
    assert found == ("mybench", "-d", "/m/t1/x", "--out=/o/t1", "{a word}", "a b; rm -rf '", "x3y")


def test_other_braces_stay_and_doubled_ones_are_braces() -> None:
    assert argv("awk '{print $1}' {{n}} {} ${HOME} {directory}")[1:5] == ("{print $1}", "{n}", "{}", "${HOME}")


def test_a_line_may_be_folded_and_values_may_be_numbers() -> None:
    assert argv("mybench\n  {directory}\n  -x {ratio} {on}", ratio=0.1, on=True) == (
        "mybench", "/m/t1", "-x", "0.1", "1",
    )  # fmt: skip


def test_lists_are_factors() -> None:
    found = sweep(argv="mybench {directory} {mode} {count}", mode=["a", "b"], count=[1, 2]).workloads
    assert [each.factors for each in found] == [{"mode": m, "count": n} for m in "ab" for n in "12"]
    assert [COMMAND.command(each, "/m", "/o").argv[2:] for each in found] == [(m, n) for m in "ab" for n in "12"]


@every_row(
    ("options", "key", "words"),
    [
        ({"argv": None}, "argv", "command needs argv"),
        ({"space": None}, "space", "command needs space"),
        ({"metrics": None}, "metrics", "command needs metrics"),
        ({"space": "0B"}, "space", "takes room"),
        ({"space": 5}, "space", "number with its unit"),
        ({"argv": "mybench"}, "argv", "would not measure"),
        ({"argv": "mybench '{directory}"}, "argv", "not a command line"),
        ({"argv": ""}, "argv", "begins with a program"),
        ({"argv": "{n} {directory}", "n": 1}, "argv", "begins with a program"),
        ({"argv": "x {directory} {size}"}, "argv", "nothing is known"),
        ({"size": "1MiB"}, "size", "no command line uses"),
        ({"argv": "x {directory} {si}", "size": 1}, "argv", "{size}"),
        ({"directory": "/etc"}, "directory", "not for a sweep"),
        ({"output": "/etc"}, "output", "not for a sweep"),
        ({"Size": 1}, "Size", "not a name"),
        ({"version": "x {directory}"}, "version", "nothing is known"),
        ({"version": ""}, "version", "begins with"),
        ({"prepare": "'"}, "prepare", "not a command line"),
        ({"ok_status": "x"}, "ok_status", "not exit statuses"),
        ({"ok_status": 124}, "ok_status", "not exit statuses"),
        ({"ok_status": ""}, "ok_status", "not exit statuses"),
        ({"owner": "-R"}, "owner", "not an account"),
        ({"owner": "a:b"}, "owner", "not an account"),
        ({"cache": "warm"}, "cache", "no file to fill the page cache with"),
        ({"metrics": {}}, "metrics", "wrong value"),
        ({"metrics": "x"}, "metrics", "wrong value"),
    ],
)
def test_what_is_wrong_is_told_before_anything_runs(options: dict[str, Any], key: str, words: str) -> None:
    error = refused(**options)
    assert error.where == f"s.yml: workloads.w.{key}"
    assert words in str(error)


POWER = {"pattern": r"(\S+) watts", "unit": "W", "better": "lower"}


@every_row(
    ("metric", "entry", "key", "words"),
    [
        ("file_rate", {"pattern": "(x)", "unit": "furlong"}, ".unit", "not a unit"),
        ("file_rate", {"pattern": "(x)"}, ".unit", "nothing"),
        ("file_rate", {"pattern": "(x)", "unit": "s"}, ".unit", "1/s, 1/min"),
        ("file_rate", {"pattern": "(x", "unit": "1/s"}, ".pattern", "regular"),
        ("file_rate", {"pattern": "x", "unit": "1/s"}, ".pattern", "one group"),
        ("file_rate", {"pattern": "(x)(y)", "unit": "1/s"}, ".pattern", "one"),
        ("file_rate", {"pattern": "(?P<v>x)", "unit": "1/s"}, ".pattern", "P<value>"),
        ("file_rate", {"unit": "1/s"}, ".pattern", "one group"),
        ("file_rate", {"pattern": "(?P<value>x)(?P<unit>y)", "unit": "1/s"}, ".unit", "finds it"),
        ("file_rate", {"pattern": "(x)", "unit": "1/s", "from": "../x"}, ".from", "stdout"),
        ("file_rate", {"pattern": "(x)", "unit": "1/s", "all": "max"}, ".all", "mean"),
        ("file_rate", {"pattern": "(x)", "unit": "1/s", "al": "sum"}, "", "did you mean 'all'"),
        ("file_rate", "(x)", "", "a mapping of texts"),
        ("file_rate", {"pattern": 7, "unit": "1/s"}, "", "a mapping of texts"),
        ("elapsed", {"from": "clock", "pattern": "(x)"}, ".pattern", "the clock has no pattern"),
        ("elapsed", {"from": "clock", "all": "sum"}, ".all", "the clock has no all"),
        ("file_rate", {"from": "clock"}, ".from", "file_rate is no time"),
        ("power", {"from": "clock", "unit": "W", "better": "lower"}, ".from", "power is no time"),
        ("power", {"pattern": "(x)", "unit": "W"}, "", "better: higher, lower, neither"),
        ("power", {**POWER, "better": "more"}, ".better", "unknown direction"),
        ("power", {"pattern": "(x)", "better": "lower"}, ".unit", "a metric of your own needs a unit"),
        ("power", {**POWER, "unit": "W m"}, ".unit", "a metric of your own needs a unit"),
        ("power", {**POWER, "unit": "KB/s"}, ".unit", "write kB or KiB/s"),
        ("power", {**POWER, "unit": "sec"}, ".unit", "write s"),
        ("power", {**POWER, "unit": "mb/sec"}, ".unit", "write MB or MiB/s"),
        ("Power", POWER, "", "not a name for a metric"),
        ("p" * 41, POWER, "", "40 characters"),
        ("ratio", POWER, "", "a table has a column of this name"),
        ("file_rate", {**RATE["file_rate"], "better": "lower"}, ".better", "is a metric of Mountlab"),
    ],
)
def test_a_metric_that_is_not_whole_is_refused(metric: str, entry: Any, key: str, words: str) -> None:
    error = refused(metrics={metric: entry})
    assert error.where == f"s.yml: workloads.w.metrics.{metric}{key}"
    assert words in str(error)


def test_argv_is_one_text_and_a_list_of_words_says_so() -> None:
    """A list is a factor: each of its words would be a command line of its own."""
    for words in (["mybench", "{directory}"], ["{directory}", "mybench"]):
        error = refused(argv=words)
        assert error.where == "s.yml: workloads.w.argv"
        assert error.next_step.startswith("write the whole command line as one text; a list is a factor")


def test_a_unit_that_yaml_reads_as_a_number_must_be_quoted() -> None:
    error = refused(metrics={"file_rate": {"pattern": "(x)", "unit": 1}})
    assert error.what == "a metric is a mapping of texts"
    assert error.next_step == "put the value of unit in quotes: unit: '1'"
    assert one(r"(\d+) errors", "1", "3 errors", "space_used") == 3


@pytest.mark.parametrize("key", ["elapsed/", "elapsed/ "])
def test_an_empty_label_is_refused(key: str) -> None:
    """It would be pooled with the metric that has none."""
    entry = {"pattern": "(x)", "unit": "s"}
    error = refused(metrics={"elapsed": entry, key: entry})
    assert (error.what, error.got) == ("a label that is empty", repr(key))
    assert error.next_step == "write elapsed"


def test_a_metric_with_one_label_is_told_once() -> None:
    entry = {"pattern": "(x)", "unit": "s"}
    error = refused(metrics={"elapsed/a": entry, "elapsed/a ": entry})
    assert error.what == "a metric with one label is given twice"
    assert error.where == "s.yml: workloads.w.metrics"
    workload(metrics={"elapsed/a": entry, "elapsed/b": entry, "elapsed": entry})


def test_a_metric_that_nobody_knows_is_refused_with_the_near_one() -> None:
    assert "did you mean 'file_rate'?" in str(refused(metrics={"filerate/a": RATE["file_rate"]}))


def test_kb_is_1000_to_some_and_1024_to_others() -> None:
    error = refused(metrics={"bandwidth": {"pattern": "(x)", "unit": "KB/s"}})
    assert "write kB or KiB" in error.next_step


# --- figures ----------------------------------------------------------------------------------------------------------


@every_row(
    ("unit", "metric", "value"),
    [
        ("B/s", "bandwidth", 2.0), ("kB/s", "bandwidth", 2e3), ("KiB/s", "bandwidth", 2048.0),
        ("MB/s", "bandwidth", 2e6), ("MiB/s", "bandwidth", 2097152.0), ("1/s", "file_rate", 2.0),
        ("1/min", "file_rate", 2 / 60), ("s", "elapsed", 2.0), ("ms", "elapsed", 2e-3), ("us", "elapsed", 2e-6),
        ("ns", "elapsed", 2e-9), ("MiB", "bytes", 2097152.0),
    ],
)  # fmt: skip
def test_units_become_base_units(unit: str, metric: str, value: float) -> None:
    assert one("^(.+) x", unit, "2 x", metric) == pytest.approx(value, rel=1e-15)


def test_a_unit_that_the_program_prints() -> None:
    metrics = {"write_bandwidth": {"pattern": r"at (?P<value>[\d.]+) (?P<unit>\S+)$"}}
    assert parse("at 1.5 MiB/s\n", metrics)[0].value == 1.5 * 1024**2
    with pytest.raises(ParseError, match="not a unit of write_bandwidth") as caught:
        parse("at 1.5 KB/s\n", metrics)
    assert caught.value.got == "'KB/s'"


@every_row(
    ("printed", "value"),
    [
        (".4188", 0.4188), ("5.", 5.0), ("1e-3", 1e-3), ("1.5E+06", 1.5e6), (".5e1", 5.0), ("+.25", 0.25),
        ("007", 7.0), ("1,234.5", 1234.5), ("12,345,678", 12345678.0), ("1,234,567.25", 1234567.25),
    ],
)  # fmt: skip
def test_every_form_of_a_number_that_programs_print(printed: str, value: float) -> None:
    """bc prints .4188; commas are taken where they cannot be decimal ones."""
    assert one(r"^took (\S+) s", "s", f"took {printed} s", "elapsed") == value


@pytest.mark.slow
@given(st.floats(1e-6, 1e15, allow_subnormal=False), st.sampled_from(["%g", "%e", "%.17g", "%f", "%.0f.", "#"]))
def test_a_number_in_the_form_of_printf_is_read_as_it_stands(value: float, form: str) -> None:
    """As C's printf writes it, and (#) as bc does, without the 0 in front."""
    text = (f"{value:.9f}"[1:] if 1e-6 <= value < 1 else f"{value:.3f}") if form == "#" else form % value
    if float(text) > 0:
        assert one(r"is (\S+) s", "s", f"it is {text} s", "elapsed") == float(text)


@pytest.mark.slow
@given(st.integers(1, 10**12), st.integers(0, 999))
def test_a_number_with_thousands_commas_is_read_or_refused_as_ambiguous(whole: int, part: int) -> None:
    assert one(r"(\S+) f", "1/s", f"{whole:,}.{part:03} f", "file_rate") == float(f"{whole}.{part:03}")
    if 1000 <= whole < 10**6:
        with pytest.raises(ParseError, match="is not a number") as caught:
            one(r"(\S+) f", "1/s", f"{whole:,} f", "file_rate")
        assert "may be a decimal or a thousands comma" in caught.value.next_step
    else:
        assert one(r"(\S+) f", "1/s", f"{whole:,} f", "file_rate") == whole


def test_a_label_tells_rows_of_one_metric_apart() -> None:
    metrics = {f"sync_rate/{name}": {"pattern": rf"^{name}: (\d+)", "unit": "1/s"} for name in ("one", "two")}
    assert [(row.label, row.value) for row in parse("one: 1\ntwo: 2\n", metrics)] == [("one", 1.0), ("two", 2.0)]
    assert COMMAND.main_metrics(workload(metrics=metrics)) == ("sync_rate",)


def test_an_answer_is_about_rates_before_bytes_and_times() -> None:
    elapsed = {"elapsed": {"pattern": "(x)", "unit": "s"}}
    assert COMMAND.main_metrics(workload(metrics={**elapsed, **RATE})) == ("file_rate",)
    assert COMMAND.main_metrics(workload(metrics=elapsed)) == ("elapsed",)


def test_an_answer_is_about_the_time_where_no_other_metric_can_be_better() -> None:
    """Defect: two runs whose only other metric was `commits`, with `better: neither`, had no figure to compare."""
    metrics = {"elapsed": {"from": "clock"}, "commits": {"pattern": "(x)", "unit": "1", "better": "neither"}}
    assert COMMAND.main_metrics(workload(metrics=metrics)) == ("elapsed", "commits")


def test_several_matches_without_a_word_on_it_are_an_error() -> None:
    with pytest.raises(ParseError, match="found more than once") as caught:
        parse("1 files/s\n2 files/s\n")
    assert caught.value.got == "2 matches"
    assert "sum, mean, first, last" in caught.value.next_step


def test_figures_of_standard_error_and_of_a_file() -> None:
    metrics = {"file_rate": {**RATE["file_rate"], "from": "stderr"}}
    assert parse("9 files/s", metrics, stderr="7 files/s")[0].value == 7
    metrics = {"file_rate": {**RATE["file_rate"], "from": "r.txt"}}
    assert parse("9 files/s", metrics, files={"r.txt": "5 files/s"})[0].value == 5
    with pytest.raises(ParseError, match="no such file"):
        parse("9 files/s", metrics)


@every_row(
    "number",
    ["nan", "inf", "-1", "0", "1,5", "1,234", "1,23.5", "1.234,5", "1e400", "", "0x10", "1_000", ".", "--", "٣"],
)
def test_what_is_no_figure_is_never_one(number: str) -> None:
    with pytest.raises(ParseError):
        one(r"^(.*) x$", "1/s", f"{number} x", "file_rate")


# --- the clock --------------------------------------------------------------------------------------------------------

CLOCKED = {"elapsed": {"from": "clock"}}
SHELLS = [shell for shell in (["dash"], ["bash", "--posix"], ["busybox", "ash"]) if shutil.which(shell[0])]


def stamps(first: str, start: str, end: str, uptimes: str = "10.00 10.00 12.50 12.50") -> str:
    return f"{first} {start} {end} {uptimes}\n"


def clocked(text: str) -> Measurement:
    (row,) = parse("", CLOCKED, files={".wall_clock": text})
    return row


def test_a_command_that_prints_nothing_is_timed() -> None:
    row = clocked(stamps("1700000000000000000", "1700000000002000000", "1700000002505000000"))
    assert (row.metric, row.unit, row.value) == ("elapsed", "s", 2.503)
    assert row.step == pytest.approx(0.004)  # a reading took 2 ms, and so much may be off
    command = COMMAND.command(workload(metrics=CLOCKED), "/m/t1", "/o/t1")
    assert command.argv[:2] == ("sh", "-c")
    assert command.argv[3:] == ("timed", "/o/t1/.wall_clock", "mybench", "/m/t1")
    assert "\n" not in command.argv[2]
    assert [program.name for program in COMMAND.programs_for(workload(metrics=CLOCKED))] == ["mybench"]
    assert COMMAND.main_metrics(workload(metrics=CLOCKED)) == ("elapsed",)


@every_row(
    "text",
    [
        stamps("1700000000000000000", "1700000000002000000", "1700003602505000000"),  # set forward by an hour
        stamps("1700000000000000000", "1700000000002000000", "1699990000000000000"),  # set back
        stamps("1700000000%N", "1700000000%N", "1700000002%N"),
        stamps("1700000000", "1700000000", "1700000002"),
    ],
)
def test_where_the_wall_clock_cannot_be_used_the_uptime_counts(text: str) -> None:
    row = clocked(text)
    assert row.value == pytest.approx(2.5)
    assert row.step == pytest.approx(0.02)


@pytest.mark.parametrize("text", ["", "1 2 3\n", stamps("1", "2", "3")[:-1]])
def test_a_clock_that_was_not_read_is_an_error(text: str) -> None:
    with pytest.raises(ParseError, match="the box's clock was not read"):
        clocked(text)


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_the_clock_is_read_around_the_command_by_every_shell(shell: list[str], tmp_path: Path) -> None:
    """The figure is the time of the command, its output, input and exit status are its own."""
    script = "read -r x; echo out-$x; echo err >&2; sleep 0.3; exit 3"
    argv = wall_clock.timed((*shell, "-c", script), str(tmp_path))
    done = subprocess.run([*shell, *argv[1:]], input="in\n", capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("out-in\n", "err\n", 3)
    took, step = wall_clock.elapsed((tmp_path / wall_clock.FILE).read_text())
    assert 0.3 <= took < 3
    assert 0 < step < 1


def test_a_missing_metric_offers_the_clock() -> None:
    assert "{elapsed: {from: clock}}" in refused(metrics=None).allowed


# --- metrics of the user's own ----------------------------------------------------------------------------------------


def test_a_metric_of_the_users_own_has_unit_and_direction() -> None:
    own = workload(metrics={"power": POWER, "p99_commit/big": {"pattern": r"c=(\S+)", "unit": "ms", "better": "lower"}})
    assert own.own_metrics == {"power": Metric("W", "lower"), "p99_commit": Metric("s", "lower")}
    rows = COMMAND.parse(own, ToolOutput(exit_status=0, stdout="12.5 watts c=3\n", stderr="", files={}))
    assert [(row.metric, row.label, row.value, row.unit) for row in rows] == [
        ("power", "", 12.5, "W"),
        ("p99_commit", "big", 3e-3, "s"),
    ]
    assert COMMAND.main_metrics(own) == ("power", "p99_commit")
    assert workload().own_metrics == {}


def test_a_time_by_the_clock_may_have_a_name_of_its_own() -> None:
    own = workload(metrics={"build_time": {"from": "clock", "better": "lower"}})
    assert own.own_metrics == {"build_time": Metric("s", "lower")}


def test_the_answer_of_a_sweep_may_be_about_them() -> None:
    raw = {"name": "s", "question": "?", "filesystems": {"d": {"type": "dir"}}, "metrics": ["power"],
           "workloads": {"w": {"tool": "command", **ENTRY, "metrics": {**RATE, "power": POWER}}}}  # fmt: skip
    assert resolve(raw, where="s.yml").sweep.metrics == ("power",)
    with pytest.raises(ParameterError, match="unknown metric") as caught:
        resolve({**raw, "metrics": ["pover"]}, where="s.yml")
    assert "did you mean 'power'" in caught.value.next_step


def test_two_workloads_define_a_metric_in_one_way() -> None:
    def both(**other: str) -> dict[str, Any]:
        entries = {"a": POWER, "b": {**POWER, **other}}
        workloads = {n: {"tool": "command", **ENTRY, "metrics": {"power": each}} for n, each in entries.items()}
        return {"name": "s", "question": "?", "filesystems": {"d": {"type": "dir"}}, "workloads": workloads}

    assert resolve(both(), where="s.yml").sweep.own_metrics == {"power": Metric("W", "lower")}
    for other in ({"better": "higher"}, {"unit": "mW"}):
        with pytest.raises(ParameterError, match="one metric is defined in two ways") as caught:
            resolve(both(**other), where="s.yml")
        assert caught.value.where == "s.yml: workloads.b.metrics.power"
        assert caught.value.allowed == "as in a: unit W, better lower"


def test_a_unit_of_its_own_that_the_pattern_finds_must_be_that_unit() -> None:
    entry = {"pattern": r"(?P<value>\d+) (?P<unit>\w+)", "unit": "W", "better": "lower"}
    assert parse("7 W", {"power": entry})[0].value == 7
    with pytest.raises(ParseError, match="not a unit of power"):
        parse("7 kW", {"power": entry})
    time = {"pattern": r"(?P<value>\d+) (?P<unit>\w+)", "unit": "s", "better": "lower"}
    assert parse("7 ms", {"lag": time})[0].value == 7e-3


def test_a_count_of_the_users_own_may_be_0_and_a_time_may_not() -> None:
    assert parse("0 watts", {"power": POWER})[0].value == 0
    with pytest.raises(ParseError, match="cannot be this"):
        parse("0 watts", {"power": {**POWER, "unit": "ms"}})
    with pytest.raises(ParseError):
        parse("-1 watts", {"power": POWER})


@every_row(
    ("pattern", "line", "part"),
    [
        (r"(\d+) MB/s", "1,234 MB/s", "234"), (r"(\d+)", "12,5 MB/s", None), (r"^(\d+)", "12,5 MB/s", "12"),
        (r"([0-9.]+) MB/s", "-12.5 MB/s", "12.5"), (r"([0-9.]+) MB/s", "\u221212.5 MB/s", "12.5"),
        (r"bw=(\d+)", "bw=12.5", "12"), (r"bw=([0-9.]+)", "bw=1.2e+06", "1.2"),
        (r"(\d+) MB/s", "1.2e+06 MB/s", "06"), (r"(\d+) MB/s", "1.2e-06 MB/s", "06"),
        (r"(\d+) MB/s", ".5 MB/s", "5"), (r"bw=(\d)", "bw=25", "2"), (r".*(\d+) MB/s", "bw 25 MB/s", "5"),
        (r"bw=(?P<value>\d+)", "bw=12.5", "12"), (r"bw=(\d+)", "bw=3E9", "3"),
    ],
)  # fmt: skip
def test_a_pattern_that_takes_a_part_of_a_number_is_an_error(pattern: str, line: str, part: str | None) -> None:
    with pytest.raises(ParseError) as caught:
        one(pattern, "MB/s", f"first\n{line}\nlast")
    if part is None:
        assert "more than once" in caught.value.what
        return
    assert caught.value.what == "the pattern takes only a part of the number of write_bandwidth"
    assert caught.value.where == f"stdout, pattern {pattern!r}, line 2"
    assert caught.value.got == f"{part!r} of {line!r}"
    assert "widen" in caught.value.next_step


@every_row(
    ("pattern", "line", "value"),
    [
        (r"(\d+) MB/s", "run-12 MB/s", 12), (r"(\d+) MB/s", "10-12 MB/s", 12), (r"bw=(\d+)", "bw=12.", 12),
        (r"bw=(\d+)", "bw=12, 13", 12), (r"bw=(\d+)", "bw=12end", 12), (r"bw=([0-9.]+)", "bw=12MB/s", 12),
        (r"^write,(\d+),", "write,12,7", 12), (r"^write,\d+,(\d+)", "write,12,7", 7), (r"\+(\d+)", "+12", 12),
        (r": *(\d+)", "rate: 12", 12), (r"(\d+) MB/s", "done...12 MB/s", 12),
    ],
)  # fmt: skip
def test_a_whole_number_is_taken_whatever_stands_beside_it(pattern: str, line: str, value: float) -> None:
    assert one(pattern, "MB/s", line) == value * 1e6


@pytest.mark.slow
@given(st.integers(1, 10**12), st.integers(1, 10**12))
def test_no_part_of_a_number_is_a_figure(first: int, second: int) -> None:
    for line in (f"{first}.{second} MB/s", f"{first},{second} MB/s", f"{first}e{second} MB/s"):
        with pytest.raises(ParseError, match="only a part"):
            one(r"(\d+) MB/s", "MB/s", line)
        with pytest.raises(ParseError, match="only a part"):
            one(r"^(\d+)", "MB/s", line)


def test_a_pattern_that_does_not_match_fails_the_trial_and_shows_the_output() -> None:
    with pytest.raises(ParseError, match="file_rate was not found") as caught:
        parse("mybench: cannot open the directory")
    assert caught.value.got == "mybench: cannot open the directory"
    assert "files/s" in caught.value.where


def test_one_missing_metric_fails_all() -> None:
    with pytest.raises(ParseError, match="elapsed was not found"):
        parse("1 files/s", {**RATE, "elapsed": {"pattern": "took (.*) s", "unit": "s"}})


def test_exit_statuses() -> None:
    with pytest.raises(ToolError, match="exit status 3") as caught:
        parse("1 files/s", status=3, stderr="it broke")
    assert caught.value.evidence == "it broke"
    assert parse("1 files/s", status=3, ok_status="0, 3")[0].value == 1
    with pytest.raises(ToolError, match="exit status 0"):
        parse("1 files/s", ok_status=3)


# --- programs ---------------------------------------------------------------------------------------------------------

FACTS = known(
    programs={program.name: {} for program in all_programs()},
    rights="root",
    mount_root="/m/r",
    output_root="/o/r",
    package_manager="apt",
    mount_root_free_bytes=10**12,
)
BOX = Box(name="b", host="h")


def test_the_program_of_the_command_is_needed_on_the_box() -> None:
    own = sweep(prepare="/opt/x/setup {directory}")
    names = [program.name for program in needed_programs(own)]
    assert names[-2:] == ["mybench", "/opt/x/setup"]
    assert {"mybench", "/opt/x/setup"} <= {program.name for program in all_programs(own)}
    assert "mybench" not in {program.name for program in all_programs()}
    with pytest.raises(PlanError, match="the box lacks mybench, /opt/x/setup") as caught:
        check_feasible(own, BOX, known(FACTS, room={"d": 10**9}))
    assert "install mybench on the box" in caught.value.next_step


def test_a_plan_runs_the_line_in_the_trials_own_directories() -> None:
    own = sweep(argv="mybench {directory} {output}/log")
    programs = {**FACTS.programs.installed, "mybench": {}}
    plan = make_plan(own, BOX, known(FACTS, programs=programs, room={"d": 10**9}), run_id="r", seed=1, owner="o")
    first = plan.trials[0]
    assert first.command.argv[0] == "mybench"
    assert first.command.argv[1].endswith(f"/{first.trial_id}")
    assert first.command.argv[2] == f"/o/r/r/{first.trial_id}/log"
    assert "sha256sum" in first.argv[-2]


# --- properties -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(st.text(max_size=60), st.sampled_from(["sum", "mean", "first", "last", ""]))
def test_no_output_gives_a_figure_that_cannot_be(stdout: str, of_all: str) -> None:
    entry = {"pattern": r"(\S+) f", "unit": "1/s", **({"all": of_all} if of_all else {})}
    rows: list[Measurement] = []
    with suppress(TrialError):
        rows = parse(stdout, {"file_rate": entry})
    assert all(0 < row.value < float("inf") for row in rows)


@given(st.text(max_size=40))
def test_any_command_line_is_split_or_refused(template: str) -> None:
    words: tuple[str, ...] = ("mybench",)
    with suppress(MountlabError):
        words = argv(f"mybench {template} {{directory}}")
    assert words[0] == "mybench"


@pytest.mark.slow
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
        max_leaves=6,
    )
)
def test_any_metrics_are_taken_or_refused(metrics: Any) -> None:
    text = '{"taken": "or refused"}'
    with suppress(ParameterError):
        text = str(workload(metrics=metrics).options["metrics"])
    assert json.loads(text)

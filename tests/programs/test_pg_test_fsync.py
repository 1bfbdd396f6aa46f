"""pg_test_fsync: every row of every recording, in every language, and nothing from an output that is not whole."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mountlab.core.errors import ParameterError, ParseError, ToolError, TrialError
from mountlab.core.model import Measurement, Workload
from mountlab.programs import TOOLS
from mountlab.programs.pg_test_fsync import NO_DIRECT_IO, NOT_HERE, measurements, read_report
from mountlab.results.paths import load_published
from mountlab.sweep.sweep_file import resolve
from mountlab.tools.base import ToolOutput
from rows import every_row

DATA = Path(__file__).parents[1] / "data" / "pg_test_fsync"
PG = TOOLS["pg_test_fsync"]
RECORDED = sorted(path.name for path in DATA.glob("*.stdout"))
DIRECT = ("open_datasync", "open_sync")
WITHOUT_DIRECT_IO = {
    *(f"{times} 8kB: {method}" for times in ("one", "two") for method in DIRECT),
    *(f"write sizes: {16 // kb} * {kb}kB open_sync" for kb in (16, 8, 4, 2, 1)),
}
NOWHERE_ON_LINUX = {"one 8kB: fsync_writethrough", "two 8kB: fsync_writethrough"}


def workload(**options: Any) -> Workload:
    entry = {"tool": "pg_test_fsync", **options}
    raw = {"name": "s", "question": "?", "filesystems": {"d": {"type": "dir"}}, "workloads": {"w": entry}}
    return resolve(raw, where="s.yml").sweep.workloads[0]


def text(name: str) -> str:
    return (DATA / name).read_text()


def rates(name: str) -> dict[str, float | None]:
    return {row.label: row.rate for row in read_report(text(name)).rows}


# --- the command ------------------------------------------------------------------------------------------------------


def test_it_writes_into_our_directory_only() -> None:
    command = PG.command(workload(time_per_test="2s"), "/m/t1", "/o/t1")
    assert command.argv == ("pg_test_fsync", "-s", "2", "-f", "/m/t1/pg_test_fsync.out")
    assert PG.command(workload(), "/m", "/o").argv[2] == "5"
    assert PG.space_bytes(workload()) == 16 * 1024**2
    assert 80 <= PG.expected_s(workload()) < 90


def test_it_is_looked_for_where_distributions_hide_it() -> None:
    (program,) = PG.programs
    assert "/usr/lib/postgresql/*/bin" in program.places
    assert "/usr/pgsql-*/bin" in program.places


def test_no_database_is_set_up_on_a_box_for_its_sake() -> None:
    """Debian's only package of it makes a database server that starts at the next boot."""
    (program,) = PG.programs
    assert "apt" not in program.packages
    assert "apt-get install postgresql" in program.hint


@every_row(
    ("options", "key"),
    [
        ({"time_per_test": "0s"}, "time_per_test"), ({"time_per_test": "500ms"}, "time_per_test"),
        ({"time_per_test": "1.5s"}, "time_per_test"), ({"time_per_test": "2h"}, "time_per_test"),
        ({"time_per_test": 5}, "time_per_test"), ({"s": 5}, "s"), ({"filename": "/etc/x"}, "filename"),
        ({"cache": "warm"}, "cache"),
    ],
)  # fmt: skip
def test_what_it_cannot_do_is_refused_before_it_runs(options: dict[str, Any], key: str) -> None:
    with pytest.raises(ParameterError) as caught:
        workload(**options)
    assert caught.value.where == f"s.yml: workloads.w.{key}"


# --- recordings -------------------------------------------------------------------------------------------------------


def test_a_rate_and_the_time_of_one_operation_unrounded() -> None:
    """1317471.841 operations a second are 0.76 us each; it prints 1."""
    output = ToolOutput(exit_status=0, stdout=text("ext4.stdout"), stderr="", files={})
    found = {(row.metric, row.label): row.value for row in PG.parse(workload(time_per_test="1s"), output)}
    assert found["sync_rate", "non-sync: write"] == 1317471.841
    assert found["operation_latency", "non-sync: write"] == pytest.approx(0.759e-6, rel=1e-3)
    assert len(found) == 2 * 16


@every_row("name", [name for name in RECORDED if name.startswith("ramfs")])
def test_methods_that_are_not_offered_are_missing_with_the_reason(name: str) -> None:
    """Trap: n/a and n/a* rows, in thirteen languages, one of them with a comma in its numbers."""
    report = read_report(text(name))
    assert report.seconds == 1
    assert {row.label for row in report.rows if row.missing == NO_DIRECT_IO} == WITHOUT_DIRECT_IO
    assert {row.label for row in report.rows if row.missing == NOT_HERE} == NOWHERE_ON_LINUX
    assert all(1e5 < row.rate < 1e7 for row in report.rows if row.rate is not None)
    assert {row.label for row in measurements_of(name)} == {row.label for row in report.rows if not row.missing}


def measurements_of(name: str) -> list[Any]:
    return [row for row in measurements(read_report(text(name))) if row.metric == "sync_rate"]


def test_a_decimal_comma_is_a_decimal_comma() -> None:
    assert rates("ramfs-de_DE.stdout")["two 8kB: fdatasync"] == 555683.997


def test_tmpfs_takes_direct_io_on_a_kernel_of_today() -> None:
    assert {row.label for row in read_report(text("tmpfs.stdout")).rows if row.missing} == NOWHERE_ON_LINUX


def test_another_size_of_page_is_in_the_label() -> None:
    other = text("ext4.stdout").replace("one 8kB write", "one 16kB write")
    assert read_report(other).rows[1].label == "one 16kB: fdatasync"


def test_published_figures_name_rows_that_there_are() -> None:
    labels = {row.label for row in read_report(text("ext4.stdout")).rows}
    published = load_published(("c-memory-fsync",))
    assert {figure.label for figure in published} <= labels
    assert {(figure.candidate, figure.baseline) for figure in published} == {("tmpfs", "disk"), ("ramfs", "disk")}
    assert len(published) == 12


# --- failures ---------------------------------------------------------------------------------------------------------


def test_a_failed_run_tells_what_it_said() -> None:
    head = "1 second per test\nO_DIRECT supported on this platform for open_datasync and open_sync.\n"
    said = "pg_test_fsync: error: write failed: No space left on device\n"
    with pytest.raises(ToolError, match="exit status 1") as caught:
        PG.parse(workload(), ToolOutput(exit_status=1, stdout=head, stderr=said, files={}))
    assert "No space left" in str(caught.value)
    with pytest.raises(ParseError):
        read_report(head)


def test_another_time_than_was_asked_is_refused() -> None:
    output = ToolOutput(exit_status=0, stdout=text("ext4.stdout"), stderr="", files={})
    with pytest.raises(ToolError) as caught:
        PG.parse(workload(), output)
    assert (caught.value.got, caught.value.allowed) == ("1 s per test", "5 s")


@every_row(
    "change",
    [
        ("12043.664", "12143.664"),
        ("12043.664", "0.000"),
        ("12043.664", "inf"),
        ("12043.664", "-12043.664"),
        ("12043.664", "12043.66"),
        ("      83 usecs/op", ""),
        ("        fdatasync  ", "        fdatasink  "),
        ("        9415.482 ops/sec     106 usecs/op", "          n/a"),
        ("16 *  1kB", "16 *  2kB"),
        ("        open_sync                         10284.972 ops/sec      97 usecs/op\n", ""),
        ("        fsync_writethrough                              n/a\n", "        fsync_writethrough\n"),
        ("1 second per test", "second per test"),
        ("1 second per test", "0 second per test"),
        ("one 8kB", "one kB"),
    ],
)
def test_a_damaged_output_gives_no_figure(change: tuple[str, str]) -> None:
    damaged = text("ext4.stdout").replace(change[0], change[1], 1)
    assert damaged != text("ext4.stdout")
    with pytest.raises(ParseError) as caught:
        read_report(damaged)
    assert caught.value.got
    assert caught.value.allowed


@pytest.mark.parametrize("name", ["ext4.stdout", "ramfs-sv.stdout"])
def test_no_beginning_of_an_output_gives_a_figure(name: str) -> None:
    """Trap: a killed run. Every cut, character by character; what `time` adds afterwards may go."""
    whole = text(name)
    known = read_report(whole)
    shortest = whole.index("\n", whole.rindex("        write")) + 1
    for end in range(shortest):
        with pytest.raises(ParseError):
            read_report(whole[:end])
    assert read_report(whole[:shortest]) == known


def test_two_outputs_in_one_text_are_not_one() -> None:
    with pytest.raises(ParseError, match="36 rows"):
        read_report(text("ext4.stdout") * 2)


@pytest.mark.slow
@given(
    st.sampled_from(RECORDED),
    st.integers(0, 3000),
    st.integers(0, 60),
    st.text(alphabet="0123456789.,- \n/*na", max_size=8),
)
def test_a_damaged_output_gives_a_documented_error_or_figures_that_can_be(
    name: str, at: int, cut: int, put: str
) -> None:
    whole = text(name)
    at %= len(whole)
    rows: list[Measurement] = []
    with suppress(TrialError):
        rows = measurements(read_report(whole[:at] + put + whole[at + cut :]))
    assert all(0 < row.value < float("inf") for row in rows)


@given(st.text())
def test_any_other_text_is_an_error(noise: str) -> None:
    with pytest.raises(TrialError):
        read_report(noise)

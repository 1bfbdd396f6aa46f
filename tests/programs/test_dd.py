"""dd: golden commands, and real recordings in several languages."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mountlab.core.errors import MountlabError, ParameterError, ParseError, ToolError, TrialError
from mountlab.core.model import Scalar, Workload
from mountlab.programs.dd import Dd, read_summary
from mountlab.tools.base import ToolOutput
from rows import every_row
from waiting import LIMIT_S

DATA = Path(__file__).parents[1] / "data" / "dd"
DEFAULTS: dict[str, Scalar] = {key: o.default for key, o in Dd.options.items() if o.default is not None}


def workload(**options: Any) -> Workload:
    given_options = {"direction": "write", "count": 8, **options}
    return Workload(name="w", tool="dd", options={**DEFAULTS, **given_options})


def recording(name: str, *, exit_status: int = 0) -> ToolOutput:
    return ToolOutput(exit_status=exit_status, stdout="", stderr=(DATA / f"{name}.stderr").read_text(), files={})


def said(stderr: str, exit_status: int = 0) -> ToolOutput:
    return ToolOutput(exit_status=exit_status, stdout="", stderr=stderr, files={})


# --- commands ---------------------------------------------------------------------------------------------------------


def test_a_write_is_one_command_with_nothing_prepared() -> None:
    """Trap: dd writes timed without a flush. conv=fdatasync is the default. (Other options: GOLDEN of all tools.)"""
    command = Dd().command(workload(), "/m/t", "/out")
    assert " ".join(command.argv) == "dd if=/dev/zero of=/m/t/dd.img bs=1048576 count=8 conv=fdatasync"
    assert (command.prepare, command.fill, command.cache) == ((), (), None)


def run(command: tuple[str, ...], path: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C", **({"PATH": f"{path}:{os.environ['PATH']}"} if path else {})}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)


FAKE = """#!/bin/sh
echo "$*" >> {calls}
case $* in *nocache*) exit {evicted} ;; esac
echo '8388608 bytes (8.4 MB, 8.0 MiB) copied, {took} s, 21 MB/s' >&2
exit {status}
"""


def passes_of(
    tmp_path: Path, options: dict[str, Any], *, status: int = 0, evicted: int = 0, took: str = "0.4"
) -> tuple[Any, list[str]]:
    """What a workload's command did with a dd that always takes so long, and how it called that."""
    calls, fake = tmp_path / "calls", tmp_path / "dd"
    fake.write_text(FAKE.format(calls=calls, status=status, evicted=evicted, took=took))
    fake.chmod(0o755)
    done = run(Dd().command(workload(**options), str(tmp_path), "/out").argv, str(tmp_path))
    return done, calls.read_text().splitlines()


def test_with_a_runtime_dd_runs_again_until_its_runs_took_so_long(tmp_path: Path) -> None:
    done, calls = passes_of(tmp_path, {"runtime": 1.0})
    assert (done.returncode, done.stdout) == (0, "")
    assert calls == [f"if=/dev/zero of={tmp_path}/dd.img bs=1048576 count=8 conv=fdatasync"] * 3
    rows = Dd().parse(workload(runtime=1.0), said(done.stderr))
    assert {row.metric: row.value for row in rows} == pytest.approx(
        {"write_bandwidth": 8388608 / 0.4, "elapsed": 1.2, "bytes": 3 * 8388608}
    )


@pytest.mark.parametrize(("took", "runs"), [("0.0166666", 4), ("0.0166667", 3), ("5e-02", 1)])
def test_the_runs_take_the_runtime_in_full(tmp_path: Path, took: str, runs: int) -> None:
    """Three times 0.0166666 s is less than 0.05 s, if only by 200 ns."""
    _, calls = passes_of(tmp_path, {"runtime": 0.05}, took=took)
    assert len(calls) == runs


@pytest.mark.parametrize(("cache", "evicts"), [("cold", True), ("warm", False), ("as_is", False)])
def test_a_cold_read_forgets_its_file_before_each_further_run(tmp_path: Path, cache: str, evicts: bool) -> None:
    read = f"if={tmp_path}/dd.img of=/dev/null bs=1048576 count=8"
    forget = [f"if={tmp_path}/dd.img iflag=nocache count=0"] * evicts
    _, calls = passes_of(tmp_path, {"direction": "read", "runtime": 1.0, "cache": cache})
    assert calls == [read, *forget, read, *forget, read]


def test_a_run_that_fails_ends_the_trial_with_its_status_and_words(tmp_path: Path) -> None:
    done, calls = passes_of(tmp_path, {"runtime": 1.0}, status=3)
    assert (done.returncode, len(calls)) == (3, 1)
    assert "copied" in done.stderr
    cold = {"direction": "read", "runtime": 1.0, "cache": "cold"}
    done, calls = passes_of(tmp_path, cold, evicted=1)
    assert done.returncode == 1
    assert "could not be dropped for the next pass" in done.stderr


def test_the_real_dd_is_timed_by_its_own_summaries(tmp_path: Path) -> None:
    for options in ({}, {"direction": "read", "cache": "cold"}):
        own = workload(**options, runtime=0.05, conv="none")
        done = run(Dd().command(own, str(tmp_path), "/out").argv)
        found = {row.metric: row.value for row in Dd().parse(own, said(done.stderr, done.returncode))}
        assert found["elapsed"] >= 0.05
        assert found["bytes"] % (8 * 1048576) == 0


def test_what_stopped_before_its_runtime_gives_no_figures() -> None:
    """A killed run looks like a good one."""
    once = "8388608 bytes (8.4 MB, 8.0 MiB) copied, 0.4 s, 21 MB/s\n"
    with pytest.raises(ToolError, match="stopped early"):
        Dd().parse(workload(runtime=1.0), said(once * 2))
    with pytest.raises(ToolError, match="did not copy what was asked"):
        Dd().parse(workload(runtime=1.0, count=9), said(once * 3))


def test_a_runtime_of_nothing_is_refused_and_so_are_cold_reads_again_by_busybox() -> None:
    with pytest.raises(ParameterError, match="runs once"):
        Dd().check(workload(runtime=0.0).options, where="w")
    reads = {"direction": "read", "runtime": 1.0}
    with pytest.raises(ParameterError, match="cannot drop the pages"):
        Dd().check_help(workload(**reads).options, BUSYBOX + TOLD, where="w")
    Dd().check_help(workload(**reads, cache="warm").options, BUSYBOX + TOLD, where="w")


BUSYBOX = (DATA.parent / "versions" / "dd-busybox-1.35.0.txt").read_text()
TOLD = "1+0 records in\n1+0 records out\n512 bytes (512B) copied, 0.000024 seconds, 20.3MB/s\n"


@pytest.mark.parametrize(
    ("options", "key", "allowed"),
    [
        ({}, "conv", "fsync, none"),
        ({"conv": "fsync", "oflag": "dsync"}, "oflag", "direct, none"),
        ({"conv": "fsync", "oflag": "sync"}, "oflag", "direct, none"),
    ],
)
def test_what_busybox_does_not_know_is_refused_with_what_it_knows(
    options: dict[str, Scalar], key: str, allowed: str
) -> None:
    own = workload(**options).options
    with pytest.raises(ParameterError, match=f"which is BusyBox's, has no such {key}") as caught:
        Dd().check_help(own, BUSYBOX + TOLD, where="w")
    assert (caught.value.where, caught.value.got, caught.value.allowed) == (f"w.{key}", repr(own[key]), allowed)
    assert "install coreutils" in caught.value.next_step
    gnu = (DATA.parent / "versions" / "dd-9.1-help.txt").read_text()
    Dd().check_help(own, gnu, where="w")


@every_row(
    "options",
    [
        {"conv": "fsync"}, {"conv": "none", "oflag": "direct"}, {"direction": "read"},
        {"direction": "read", "iflag": "direct"},
    ],
)  # fmt: skip
def test_what_busybox_knows_passes(options: dict[str, Scalar]) -> None:
    """A read lays out its file with a flush that BusyBox knows too."""
    Dd().check_help(workload(**options).options, BUSYBOX + TOLD, where="w")
    prepare = Dd().command(workload(**options), "/m/t", "/out").prepare
    assert all("conv=fdatasync" not in argv for argv in prepare)


def test_a_busybox_that_does_not_tell_the_time_is_refused_in_the_plan() -> None:
    """That of Debian prints its records and nothing else."""
    with pytest.raises(ParameterError, match="does not tell how long it took") as caught:
        Dd().check_help(workload(conv="fsync").options, f"{BUSYBOX}1+0 records in\n1+0 records out\n", where="w")
    assert (caught.value.where, caught.value.got) == ("w.tool", "1+0 records out")
    assert "install coreutils" in caught.value.next_step


def test_the_space_that_it_takes_is_blocks_times_block_size() -> None:
    assert Dd().space_bytes(workload(bs=4096, count=10)) == 40960
    assert Dd().main_metrics(workload(direction="read")) == ("read_bandwidth",)
    assert Dd().expected_s(workload(direction="read")) > Dd().expected_s(workload())


# --- recordings -------------------------------------------------------------------------------------------------------


@every_row(
    ("name", "copied", "seconds"),
    [
        ("write-1m", 209715200, 0.279132), ("direct", 104857600, 0.0457039), ("dsync", 4096000, 0.147769),
        ("status-progress", 104857600, 0.0263561), ("locale-de_DE", 209715200, 0.0971606),
        ("512-bytes", 512, 7.7536e-05), ("einval", 0, 0.000208741), ("no-space", 0, 0.000207369),
    ],
)  # fmt: skip
def test_a_recorded_summary_gives_bytes_and_seconds(name: str, copied: int, seconds: float) -> None:
    """Trap: the summary is on stderr, translated, without a parenthesis under 1 kB, and printed after errors too."""
    assert read_summary((DATA / f"{name}.stderr").read_text())[:2] == (copied, seconds)


LANGUAGES: dict[str, str] = {}
for _line in (DATA / "languages.tsv").read_text().splitlines():
    _language, _text = _line.split("\t")
    LANGUAGES[_language] = LANGUAGES.get(_language, "") + _text + "\n"


@every_row("language", LANGUAGES)
def test_every_language_that_dd_speaks_is_read(language: str) -> None:
    """Recorded with dd 9.1: the verb may come first (uk), be two words (hr), and commas may be wide (zh_CN)."""
    copied, seconds, _ = read_summary(LANGUAGES[language])
    assert copied == 20971520
    assert 1e-4 < seconds < 1e-1
    assert f"{seconds:g}".replace(".", ",") in LANGUAGES[language]


def test_figures_are_computed_from_bytes_and_seconds_in_base_units() -> None:
    """The rate that dd prints has two or three digits: 751 MB/s here."""
    rows = Dd().parse(workload(count=200), recording("write-1m"))
    assert [(row.metric, row.label, row.unit) for row in rows] == [
        ("write_bandwidth", "", "B/s"), ("elapsed", "", "s"), ("bytes", "write", "B"),
    ]  # fmt: skip
    assert rows[0].value == pytest.approx(209715200 / 0.279132, rel=1e-12)
    assert rows[0].value == pytest.approx(751e6, rel=1e-3)
    assert (rows[1].value, rows[2].value) == (0.279132, 209715200.0)
    read = Dd().parse(workload(direction="read", count=200), recording("locale-de_DE"))
    assert (read[0].metric, read[2].label) == ("read_bandwidth", "read")


@pytest.mark.parametrize("name", ["einval", "no-space", "512-bytes"])
def test_a_short_copy_is_not_believed_whatever_the_exit_status_says(name: str) -> None:
    """Trap: a tool's exit status is never believed alone."""
    with pytest.raises(ToolError) as caught:
        Dd().parse(workload(), recording(name))
    assert caught.value.what == "dd did not copy what was asked"
    assert caught.value.allowed == "8388608 B"
    assert caught.value.got in ("0 B", "512 B")


@every_row(
    "stderr",
    [
        "", "200+0 records in\n200+0 records out\n", "dd: failed to open '/srv/x1/y2': Permission denied\n",
        "209715200 bytes (210 MB, 200 MiB) copied, 0.2", "dd: closing '/d1/2 s, 3': bad\n",
    ],
)  # fmt: skip
def test_without_a_whole_summary_there_is_no_figure(stderr: str) -> None:
    with pytest.raises(ParseError, match="dd printed no summary line") as caught:
        Dd().parse(workload(), said(stderr))
    assert caught.value.got == (stderr.strip() or "nothing")


@every_row("seconds", ["0", "0.0", "0,000", "0e-05", "9e999", "1e-999"])
def test_a_time_of_zero_or_beyond_all_bounds_gives_no_figure(seconds: str) -> None:
    with pytest.raises(ParseError, match="dd tells no time that can have passed"):
        Dd().parse(workload(), said(f"8388608 bytes (8.4 MB, 8.0 MiB) copied, {seconds} s, Infinity B/s\n"))


def test_the_last_summary_counts() -> None:
    text = (DATA / "512-bytes.stderr").read_text() + (DATA / "write-1m.stderr").read_text()
    assert read_summary(text)[0] == 209715200


def test_a_summary_cut_anywhere_gives_the_true_figure_or_none() -> None:
    text = (DATA / "write-1m.stderr").read_text()
    for end in range(len(text)):
        try:
            rows = Dd().parse(workload(count=200), said(text[:end]))
        except TrialError:
            continue
        assert rows[1].value == 0.279132


@given(st.text(alphabet="0123456789.,e+- sbytescopied()MB/\n'，", max_size=200))
def test_no_text_gives_anything_but_positive_figures_or_a_documented_error(text: str) -> None:
    try:
        rows = Dd().parse(workload(bs=1, count=1), said(text))
    except MountlabError:
        return
    assert all(0 < row.value < float("inf") for row in rows)

"""Outputs as people post them: quoted, wrapped, with lines left out, cut off; and those that contradict themselves."""

from __future__ import annotations

import base64
import json
import quopri
import re
import subprocess
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from mountlab.core.errors import ParseError
from mountlab.logs import Output, decoded, read_log, read_one
from mountlab.logs.base import original, unpasted
from mountlab.logs.view import as_json, as_table
from rows import every_row

DATA = Path(__file__).parents[1] / "data"
EXPECTED: dict[str, dict[str, Any]] = json.loads((DATA / "pasted" / "expected.json").read_text())


def recorded(name: str) -> str:
    return decoded((DATA / name).read_bytes())


def by_name(output: Output) -> dict[str, float]:
    assert output.problem is None, str(output.problem)
    return {f"{row.metric} {row.label}".strip(): row.value for row in output.measurements}


@every_row("name", EXPECTED)
def test_a_posted_output_gives_the_figures_that_a_person_reads(name: str) -> None:
    rows = read_one(EXPECTED[name]["tool"], recorded(f"pasted/{name}")).measurements
    for value, unit in EXPECTED[name]["any"]:
        assert any(row.unit == unit and abs(row.value - value) <= max(row.step, 1e-3 * value) for row in rows), value


ROWS = "340+0 records in\n340+0 records out\n"


# --- dd ---------------------------------------------------------------------------------------------------------------


@every_row("version", ["0.0.17", "0.0.30", "0.12"])
def test_every_run_of_uutils_is_read_with_an_interval_that_holds_its_time(version: str) -> None:
    """0.0.17 divides by whole milliseconds, cut off: 4.2 GB/s of 8 MiB is a time of 2 to 3 ms."""
    outputs = read_log("dd", recorded(f"dd/uutils-{version}.stderr"))
    lines = [line for line in recorded(f"dd/uutils-{version}.stderr").split("\n") if "copied" in line]
    last = [line for line in lines if not line.startswith("1048576 ")]  # its progress
    assert len(outputs) == len(last)
    for output, line in zip(outputs, last, strict=True):
        elapsed = next(row for row in output.measurements if row.metric == "elapsed")
        rate = re.search(r"([\d.]+) ([kMG])B/s", line)
        assert rate is not None
        ms = int(line.split()[0]) / (float(rate[1]) * {"k": 1e3, "M": 1e6, "G": 1e9}[rate[2]]) * 1e3
        printed = re.search(r"copied, ([\d.e-]+) s", line)
        assert printed is not None
        if version == "0.0.17":
            assert elapsed.value - elapsed.step / 2 <= round(ms) / 1e3 + 1e-9
            assert elapsed.value + elapsed.step / 2 >= (round(ms) + 1) / 1e3 - 1e-9
        else:
            assert (elapsed.value, elapsed.step) == (float(printed[1]), pytest.approx(0, abs=1e-5))


def test_a_progress_of_several_lines_is_no_output() -> None:
    text = "".join(f"{n}00000000 bytes (x MB) copied, {n}.0 s, 100 MB/s\n" for n in (1, 2)).replace("x", "100", 1)
    text = (
        text.replace("x", "200")
        + "30+0 records in\n30+0 records out\n300000000 bytes (300 MB) copied, 3.1 s, 97 MB/s\n"
    )
    assert [by_name(output)["bytes"] for output in read_log("dd", text)] == [3e8]


def test_a_summary_that_a_mailer_broke_is_whole_again() -> None:
    text = "1000+0 records in\n1000+0 records out\n1048576000 bytes transferred in 16.0 secs (65536000\nbytes/sec)"
    text = re.sub("^", "> ", text, flags=re.MULTILINE)
    assert by_name(read_one("dd", text)) == {"elapsed": 16.0, "bytes": 1048576000, "bandwidth": 65536000}


def test_a_rate_of_nothing_is_no_rate() -> None:
    """The first uutils divided whole numbers."""
    text = "0+2 records in\n2+0 records out\n4 bytes (4 B, 4 B) copied, 1.0 s, 0 B/s\n"
    assert by_name(read_one("dd", text)) == {"elapsed": 1.0, "bytes": 4, "bandwidth": 4}


def test_a_last_progress_in_whole_seconds_is_no_output() -> None:
    """dd flushes after it: so the summary of the same bytes may be of a later time."""
    last = "8589934592 bytes (8.6 GB, 8.0 GiB) copied, 126.453 s, 67.9 MB/s\n"
    text = f"{last.replace('126.453 s, 67.9', '126 s, 68.2')}2048+0 records in\n2048+0 records out\n{last}"
    assert [by_name(output)["elapsed"] for output in read_log("dd", text)] == [126.453]


@every_row("head", ["Run 1: ", "[12] ", "1+0 records in 1+0 records out "])
def test_words_with_digits_before_a_summary_are_no_part_of_it(head: str) -> None:
    text = f"{head}1073741824 bytes (1.1 GB, 1.0 GiB) copied, 48.7581 s, 22.0 MB/s\n"
    assert by_name(read_one("dd", text))["elapsed"] == 48.7581


def test_a_rate_in_mib_without_its_b_tells_no_time() -> None:
    """Toybox: 356515840 B in 0.5 s are 680 MiB/s, which it writes as 680 M/s."""
    assert by_name(read_one("dd", f"{ROWS}356515840 bytes (340 M) copied, 0.5 s, 680 M/s\n"))["elapsed"] == 0.5


@every_row(
    ("line", "passes"),
    [
        ("209715200 bytes (210 MB, 200 MiB) copied, 0.0 s, 4.9 GB/s", 5),  # 42.8 ms each
        ("209715200 bytes (210 MB, 200 MiB) copied, 0.1 s, 2.0 GB/s", 2),  # 104.9 ms
        ("209715200 bytes (210 MB, 200 MiB) copied, 0.0427991 s, 4.9 GB/s", 5),
    ],
)
def test_passes_of_a_dd_that_prints_tenths_of_a_second_come_to_an_end(line: str, passes: int, tmp_path: Path) -> None:
    """Printed times of 0.0 s added up to nothing, and dd ran until the limit of its trial."""
    dd = tmp_path / "dd"
    dd.write_text(f"#!/bin/sh\necho '{line}' >&2\n")
    dd.chmod(0o755)
    script = files("mountlab.programs").joinpath("dd_again.sh").read_text()
    argv = ("sh", "-c", script, "dd-again", "200000000", "", str(dd))
    run = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True)
    assert run.stderr.count("copied") == passes


# --- quotes, wraps, stamps --------------------------------------------------------------------------------------------


def wrapped(text: str) -> str:
    """As a mailer breaks lines at the last blank before column 72."""
    found = []
    for line in text.split("\n"):
        while len(line) > 72 and line.strip() and " " in line[8:72]:
            head, line = line[: line.rindex(" ", 0, 72)], line[line.rindex(" ", 0, 72) + 1 :]
            found.append(head)
        found.append(line)
    return "\n".join(found)


def each(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "\n".join(map(change, text.split("\n")))


def encoded(text: str) -> str:
    """As mail programs send it."""
    return quopri.encodestring(text.encode()).decode()


def soft(text: str) -> str:
    """With lines that end anywhere, even in numbers."""
    return re.sub(r"((?:=3D|[^\n]){31})(?=[^\n])", r"\1=\n", text.replace("=", "=3D"))


def mailed(text: str) -> str:
    """A quoted mail as an archive stores it."""
    head = "Content-Type: text/plain; charset=UTF-8; format=flowed\nContent-Transfer-Encoding: quoted-printable\n\n"
    return head + encoded("On Friday I wrote:\n" + each(lambda line: f"> {line}")(text) + "\nGrüße\n-- \nA. Person\n")


def marked(mark: str, end: str = "") -> Callable[[str], str]:
    """Every third line and its first word in a mark of HTML."""
    end = end or f"</{mark.split()[0]}>"
    return lambda text: "\n".join(
        re.sub(r"^(\s*)(\S+)(.*)$", rf"\1<{mark}>\2{end}<{mark}>\3{end}", line) if number % 3 else line
        for number, line in enumerate(text.split("\n"))
    )


HARM: dict[str, Callable[[str], str]] = {
    "quote marks": each(lambda line: f"> {line}".rstrip()),
    "quotes of quotes": each(lambda line: f"> >> {line}"),
    "bars": each(lambda line: f"| {line}"),
    "an answer above": lambda text: "On Friday I wrote:\n\n" + each(lambda line: f"> {line}")(text) + "\nThanks!\n",
    "a list item": lambda text: "1. Result:\n" + each(lambda line: f"       {line}")(text) + "\nAnd so on.\n",
    "no indentation": each(str.lstrip),
    "a mailer's lines": wrapped,
    "quoted and wrapped": lambda text: each(lambda line: f"> {line}")(wrapped(text)),
    "a test runner": each(lambda line: f"20:17:58 DEBUG| [stdout] {line}"),
    "times": each(lambda line: f"2024-02-03T10:11:12.1234567Z {line}"),
    "a container": each(lambda line: f"fio-1  | {line}"),
    "a comment": each(lambda line: f"    # {line}"),
    "a comment without blanks": each(lambda line: f"//{line}"),
    "entities": lambda text: text.replace(">", "&gt;").replace("    ", "&nbsp;   "),
    "quoted-printable": encoded,
    "a mail as it is stored": mailed,
    "quoted as it is stored": lambda text: each(lambda line: f"> {line}")(encoded(text)),
    "soft ends anywhere": soft,
    "base64": lambda text: (
        "Content-Type: text/plain\nContent-Transfer-Encoding: base64\nX-A: b\n\n"
        + base64.encodebytes(text.replace("\n", "\r\n").encode()).decode()
        + "\n--- \nA list\n"
    ),
    "every second line empty": each(lambda line: f"{line}\n"),
    "no empty lines": lambda text: re.sub(r"\n\s*\n", "\n", text),
    "squeezed without empty lines": lambda text: re.sub(r"\n+", "\n", re.sub(r"[ \t]+", " ", text)).strip() + "\n",
    "squeezed": each(lambda line: re.sub(r"[ \t]+", " ", line).strip()),
    "rows of a table": each(lambda line: f"{re.sub(' +', ' ', line)} |"),
    "rows of a table with an empty cell": each(lambda line: f"{line} | |" if line else line),
    "a table": each(lambda line: f"| {line} |"),
    "tabs": each(lambda line: re.sub(r" {2,}", "\t", line)),
    "blanks that do not break": lambda text: text.replace(" ", "\u00a0"),
    "bold": marked("b"),
    "italics and a font": lambda text: marked('font color="#aa0000" face=mono')(marked("EM")(text)),
    "links": marked('a href="http://x.example/?a=b" rel=nofollow'),
    "cells": lambda text: "<table><tr><td>" + marked("td class=x")(text) + "</td></tr></table>",
    "a forum": lambda text: f"[quote=someone][code]{text.rstrip()}[/code][/quote]\nThanks\n",
    "bold of a forum": each(lambda line: f"[b]{line}[/b]"),
    "carriage returns": lambda text: text.replace("\n", "\r\n"),
    "zero-width spaces": lambda text: text.replace("\n", "\u200b\n"),
    "trailing blanks": lambda text: text.replace("\n", "  \n"),
    "trailing tabs": lambda text: text.replace("\n", "\t\n"),
    "a tab": each(lambda line: f"\t{line}" if line.strip() else line),
    "a terminal": each(lambda line: f"\x1b[1;32m{line}\x1b[0m\x1b]0;title\x07"),
}


@pytest.mark.slow
@every_row("harm", HARM)
@every_row(
    "log",
    [
        "fio/human-randrw.stdout", "fio/2.1.10-randrw.stdout", "fio/clones.jsonplus", "fio/terse-3.stdout",
        "dd/write-1m.stderr", "fs_mark/S1-L2.stdout", "pg_test_fsync/ext4.stdout", "filebench/oltp.stdout",
    ],
)  # fmt: skip
def test_what_posting_does_to_an_output_is_undone(log: str, harm: str) -> None:
    tool, text = log.split("/")[0], recorded(log)
    assert by_name(read_one(tool, decoded(HARM[harm](text).encode()))) == by_name(read_one(tool, text))


@every_row(
    ("posted", "plain"),
    [
        ("| one\n|\n| two\n\nthree\n", "one\n\ntwo\n\nthree\n"),
        ("| one\n\nthree\n", "| one\n\nthree\n"),
        ("| a | b |\n| 1 | 2 |\n\nthree\nfour\nfive\n", "| a | b |\n| 1 | 2 |\n\nthree\nfour\nfive\n"),
    ],
)
def test_a_bar_before_several_lines_that_are_no_rows_of_a_table_is_a_quote_mark(posted: str, plain: str) -> None:
    assert unpasted(posted) == plain


@every_row("harm", ["carriage returns", "blanks that do not break", "trailing blanks", "a tab", "quote marks"])
@every_row("log", ["filebench/1.4.9.1.stdout", "fs_mark/verbose.stdout", "pg_test_fsync/ramfs.stdout"])
def test_what_posting_does_to_rows_of_other_forms_is_undone(log: str, harm: str) -> None:
    tool, text = log.split("/")[0], recorded(log)
    assert by_name(read_one(tool, decoded(HARM[harm](text).encode()))) == by_name(read_one(tool, text))


def test_a_time_inside_of_a_line_is_no_mark_of_a_log_service() -> None:
    line = "job: (groupid=0, jobs=1): err= 0: pid=7: Sat Feb  3 10:11:12 2024"
    assert unpasted(f"10:11:12 Starting\n10:11:13 Laying out\n{line}") == f"Starting\nLaying out\n{line}"


# --- what was left out ------------------------------------------------------------------------------------------------


@every_row("mark", ["...", "[...]", "<snip>", "[snip]", "--- 8< ---", "(lines omitted)"])
def test_lines_that_were_left_out_are_named(mark: str) -> None:
    lines = recorded("fio/human-randrw.stdout").split("\n")
    first = next(n for n, line in enumerate(lines) if "clat percentiles" in line)
    text = "\n".join([*lines[:first], mark, *lines[first + 6 :]])
    output = read_one("fio", text)
    assert "read_latency_p50" not in by_name(output)
    assert any(note.startswith(f"line {first + 1}: lines were left out here ({mark})") for note in output.notes)


def test_notes_are_shown_on_the_terminal_and_to_programs() -> None:
    outputs = {"log.txt": read_log("fio", recorded("pasted/fio-elided.txt"))}
    assert "note: line 22: lines were left out here (...)" in as_table(outputs)
    assert "latencies of writes" in as_json(outputs)[0]["notes"][0]


def test_a_whole_output_has_no_notes() -> None:
    for name in ("dd/write-1m.stderr", "fio/human-randrw.stdout", "fio/clones.jsonplus", "fs_mark/S1-L2.stdout"):
        assert read_one(name.split("/")[0], recorded(name)).notes == ()


def test_the_digits_at_the_end_of_a_text_that_was_cut_off_are_not_believed() -> None:
    text = recorded("fio/human-randrw.stdout")
    cut = text[: text.index("minf=24") + 6]
    found, whole = by_name(read_one("fio", cut)), by_name(read_one("fio", text))
    assert "minor_faults" not in found
    assert found["context_switches"] == whole["context_switches"]


@every_row(
    "line", ["     | 70.00th=[  100], 80.00th=[   9", "  cpu          : usr=1.75%, sys=2", "     issued rwts: total=39"]
)
def test_a_line_that_was_cut_off_leaves_those_above_it(line: str) -> None:
    text = recorded("fio/human-randrw.stdout")
    head = text[: text.index("  write: IOPS")]
    found = by_name(read_one("fio", f"{head}{line}"))
    assert found["read_bandwidth"] == by_name(read_one("fio", text))["read_bandwidth"]
    assert "write_bandwidth" not in found


def test_results_without_the_line_of_their_job_are_outputs_of_their_own() -> None:
    text = (
        "Reads:\n  read: IOPS=3100, BW=24.2MiB/s (25.4MB/s)(1453MiB/60001msec)\nWrites:\n"
        "write: IOPS=1331, BW=10.4MiB/s (10.9MB/s)(624MiB/60001msec); 0 zone resets\n"
    )
    one, two = map(by_name, read_log("fio", text))
    assert (one["read_iops"], two["write_iops"]) == (3100, 1331)
    read, write = text.split("\n")[1:4:2]
    together = f"{read}\n    clat (usec): min=1, max=9, avg=4.50, stdev=1\n{write}\n"
    assert {"read_iops", "write_iops"} <= {*by_name(read_one("fio", together))}


def test_sums_without_their_jobs_are_read() -> None:
    rates = "bw=421MiB/s (442MB/s), 421MiB/s-421MiB/s (442MB/s-442MB/s)"
    line = f"   READ: {rates}, io=24.7GiB (26.5GB), run=60003-60003msec\n"
    output = read_one("fio", f"Run status group 0 (all jobs):\n{line}")
    assert by_name(output)["read_bandwidth"] == pytest.approx(441.5e6, rel=2e-3)
    assert "the jobs are not in this text" in output.notes[0]


# --- figures that contradict others -----------------------------------------------------------------------------------


def test_iops_of_a_run_with_a_ramp_are_those_of_the_completed_ios() -> None:
    """fio counts I/Os as it issues them, but bytes and latencies as they complete."""
    report = json.loads(recorded("pasted/fio-ramp.json"))
    output = read_one("fio", json.dumps(report, indent=1))
    assert by_name(output)["read_iops"] == pytest.approx(8016 / 60.509)
    assert "IOPS of 115.355 from the 6980 reads" in output.notes[0]
    both = {**report, "jobs": [report["jobs"][0], {**report["jobs"][0], "jobname": "2"}]}
    assert by_name(read_one("fio", json.dumps(both, indent=1)))["read_iops"] == pytest.approx(2 * 8016 / 60.509)


def test_ios_that_were_in_flight_at_the_end_of_a_ramp_may_be_in_the_bins_alone() -> None:
    """As in fio 3.1: total_ios and N are 4 less than 1,004 blocks of 128 KiB and than the bins."""
    latency: dict[str, Any] = {"min": 1, "max": 1, "mean": 1.0, "stddev": 0.0, "N": 1000, "bins": {"1": 1004}}
    side = {"io_bytes": 1004 << 17, "bw_bytes": (1004 << 17) / 10, "iops": 100.0, "runtime": 10_000, "total_ios": 1000}
    writes = {**side, "clat_ns": latency, "lat_ns": latency}
    job = {"jobname": "j", "error": 0, "job options": {"ramp_time": "1"}, "read": {"io_bytes": 0}, "write": writes}
    report = {"fio version": "fio-3.1", "jobs": [job]}
    assert by_name(read_one("fio", json.dumps(report, indent=1)))["write_iops"] == pytest.approx(100.4)
    latency["bins"] = {"1": 999}
    with pytest.raises(ParseError, match="the bins of the histogram are not whole"):
        read_one("fio", json.dumps(report, indent=1))


def test_an_only_sum_that_was_cut_off_leaves_the_job_its_figures() -> None:
    text = recorded("pasted/fio-quoted.txt")
    output = read_one("fio", text[: text.rindex(", run=")])
    assert by_name(output)["write_bandwidth"] == 5771
    assert any("before the last of fio's sums: 0 of 1" in note for note in output.notes)


def test_terse_lines_of_several_names_are_jobs() -> None:
    line = recorded("fio/terse-3.stdout")
    head, alone = recorded("fio/human-randrw.stdout").split("\n")[0], by_name(read_one("fio", line))
    jobs = by_name(read_one("fio", f"{head}\n{line}{line.replace(';t;', ';u;', 1)}"))
    assert jobs == {f"{metric} {job}": alone[metric] for metric in alone if " " not in metric for job in "tu"}


def test_iops_in_text_that_its_bytes_contradict_are_computed_from_these() -> None:
    text = recorded("fio/human-write.stdout")
    size = re.search(r"\(W\) (\d+)KiB-", text)
    assert size is not None
    # A third of the I/Os was issued before fio began to measure.
    wrong = text.replace("IOPS=2186", "IOPS=1457").replace("issued rwts: total=0,4376", "issued rwts: total=0,2917")
    output = read_one("fio", wrong)
    assert by_name(output)["write_iops"] == pytest.approx(2187 * 1024 / int(size[1]), rel=2e-3)
    assert "write_ios" not in by_name(output)
    assert "and not 1458 as fio prints" in output.notes[0]


def test_a_rate_of_fio_1_is_computed_from_bytes_and_time() -> None:
    """It prints bytes a millisecond as KiB/s."""
    text = (
        "x: (groupid=0, jobs=1): err= 0: pid=8045\n  read : io=264KiB, bw=90112KiB/s, iops=22000, runt=     3msec\n"
        "  cpu          : usr=0.00%, sys=0.00%, ctx=1\n     issued r/w: total=66/0, short=0/0\n\n"
        "Run status group 0 (all jobs):\n   READ: io=264KiB, aggrb=90112KiB/s, minb=90112KiB/s, maxb=90112KiB/s, "
        "mint=3msec, maxt=3msec\n"
    )
    assert by_name(read_one("fio", text))["read_bandwidth"] == 264 * 1024 / 0.003


def test_blanks_and_commas_in_numbers_of_fio_1_are_read() -> None:
    text = (
        "x: (groupid=0, jobs=1): err= 0: pid=8045\n"
        "  write: io=  1,024MB, bw= 57,349KB/s, iops=14,337 , runt= 18284msec\n"
        "     issued r/w: total=0/262144, short=0/0\n\nRun status group 0 (all jobs):\n"
        "  WRITE: io=  1,024MB, aggrb= 57,349KB/s, minb=58,725KB/s, maxb=58,725KB/s, mint=18284msec, maxt=18284msec\n"
    )
    found = by_name(read_one("fio", text))
    assert found["bytes write"] == 2**30
    assert found["write_bandwidth"] == pytest.approx(57349 * 1024)
    assert found["write_iops"] == 262144 / 18.284


SUMMARY = "10485760 bytes (10 MB, 10 MiB) copied, 0.0951237 s, 110 MB/s"
RECORDS = "10+0 records in 10+0 records out"


@every_row(
    ("text", "line"),
    [
        (f"{RECORDS} {SUMMARY}", 1),
        (f"dd if=/dev/zero of=x bs=1M count=10 {RECORDS} {SUMMARY} which is slow", 1),
        (f"$ dd of=x bs=1M\n{RECORDS} 10485760 bytes (10 MB)\ncopied, 0.0951237 s, 110 MB/s\n$", 2),
        (RECORDS.replace(" ", "\n") + f" {SUMMARY}".replace(" ", "\n"), 1),
        (f"10+0 records in\n10+0 records out {SUMMARY}", 2),
        (f"10+0 records in\n10+0 records out\n{SUMMARY} (cached)", 1),
        (f"I got {SUMMARY} on this box.", 1),
        (f"10+0 records in\n10+0 records out\n{SUMMARY.replace('110 MB/s', '**110 MB/s**')}", 3),
        (f"5242880 bytes (5.2 MB) copied, 1 s, 5.2 MB/s10+0 records in\n10+0 records out\n{SUMMARY}", 3),
        (f"{RECORDS} 10485760 bytes transferred in 0.095124 secs (110232539 bytes/sec)", 1),
        ("10+0 Datensätze ein 10+0 Datensätze aus 10485760 Bytes (10 MB, 10 MiB) kopiert, 0,0951237 s, 110 MB/s", 1),
        ("10+0 lus 10+0 écrits 10485760 octets (10 MB) copiés, 0,0951237 s, 110 MB/s bof", 1),
    ],
)
def test_a_summary_of_dd_among_other_words_is_read(text: str, line: int) -> None:
    output = read_one("dd", text)
    assert by_name(output)["bandwidth"] == pytest.approx(10485760 / 0.0951237, rel=1e-5)
    assert {figure.line for figure in output.figures} == {line}


@every_row(
    ("text", "said"),
    [
        (f"before: {SUMMARY}, after: {SUMMARY}", "dd printed no whole summary"),
        (f"{SUMMARY}10+0 records in\n10+0 records out\n{SUMMARY}", "mixed up, or lines are missing"),
        (f"10+0 records in 9+0 records out {SUMMARY}", "dd did not write all that it read"),
        (f"dd: error writing 'x': No space left on device {RECORDS} {SUMMARY} hm", "dd failed"),
        (f"10+0 records in\n^C10+0 records out {SUMMARY} hm", "dd failed"),
        (f"I got {SUMMARY.replace('110 MB', '130 MB')} on this box.", "do not agree"),
        ("so far 52428800 bytes (52 MB, 50 MiB) copied, 5 s, 10.5 MB/s hm", "dd printed no whole summary"),
        ("10485760 bytes (10 MB)\n\ncopied, 0.0951237 s, 110 MB/s", "dd printed no whole summary"),
    ],
)
def test_words_around_a_summary_of_dd_do_not_hide_what_is_wrong_with_it(text: str, said: str) -> None:
    (output,) = read_log("dd", text)
    assert said in str(output.problem)


# --- fs_mark, filebench, pg_test_fsync --------------------------------------------------------------------------------


def test_rows_of_fs_mark_that_were_left_out_leave_the_others_theirs() -> None:
    text = recorded("pasted/fs_mark-table.txt")
    lines = text.split("\n")
    output = read_one("fs_mark", "\n".join([*lines[:2], "  ...", *lines[4:]]))
    found = by_name(output)
    assert {name for name in found if "iteration" in name} == {f"file_rate iteration {n}" for n in (1, 4, 5)}
    assert len(found) == 3, "nothing of the whole run"
    assert any("2 iterations are not in this text" in note for note in output.notes)


def test_a_table_of_fs_mark_whose_counts_do_not_go_up_evenly_is_refused() -> None:
    text = recorded("pasted/fs_mark-table.txt").replace("20000", "25000")
    assert "counts of files in fs_mark's table do not agree" in str(read_log("fs_mark", text)[0].problem)


def test_a_summary_of_filebench_alone_is_read() -> None:
    text = "601.581: IO Summary: 4844834 ops 8073.867 ops/s 1242/1242 rd/wr  49.4mb/s   3.2ms/op\n"
    output = read_one("filebench", text)
    assert by_name(output)["operation_rate"] == 8073.867
    assert "the breakdown by operation is not in this text" in output.notes


@every_row("above", ["", "\n", "\n\n"])
def test_pg_test_fsync_without_its_first_lines_has_the_same_rows(above: str) -> None:
    text = recorded("pg_test_fsync/ext4.stdout")
    pasted = above + text[text.index("Compare file sync methods using one") :]
    assert by_name(read_one("pg_test_fsync", pasted)) == by_name(read_one("pg_test_fsync", text))


def test_a_row_of_pg_test_fsync_that_was_cut_off_is_missing() -> None:
    text = recorded("pg_test_fsync/ext4.stdout")
    whole = by_name(read_one("pg_test_fsync", text))
    cut = text[: [match.end() for match in re.finditer("ops/sec", text)][6]] + "\n"
    found = by_name(read_one("pg_test_fsync", cut))
    assert found.items() < whole.items()
    assert len(found) == 2 * 6


# --- mails as they are stored, marks of pages, lines joined -----------------------------------------------------------


@every_row("harm", ["quoted-printable", "a mail as it is stored", "base64", "every second line empty"])
def test_figures_of_a_stored_mail_have_the_lines_of_the_mail(harm: str) -> None:
    """The lines of base64 hold several each, so only their order is tested."""
    text = HARM[harm](recorded("fio/human-randrw.stdout"))
    places = {figure.measurement.metric: figure.line for figure in read_one("fio", text).figures}
    lines = ["", *text.split("\n")]
    assert places["read_iops"] < places["write_iops"] < places["read_ios"] < len(lines)
    if harm != "base64":
        assert "read: IOPS=" in lines[places["read_iops"]]
        assert "issued rwts:" in lines[places["write_ios"]]


def test_an_error_in_a_stored_mail_has_the_line_of_the_mail() -> None:
    text = encoded("On Friday I ran a command that is long enough to be broken into several lines, as they do:\n" * 3)
    stopped = text + encoded("fio: terminating on signal 2\n\n" + recorded("fio/human-randrw.stdout"))
    (output,) = read_log("fio", stopped, where="line 7.txt")
    line = stopped.split("\n").index("fio: terminating on signal 2") + 1
    assert output.problem is not None
    assert output.problem.where == f"line 7.txt, line {line}"


@every_row("end", ["", "\n"])
def test_the_bytes_of_an_output_are_those_of_the_stored_mail(end: str) -> None:
    once = recorded("fio/human-randrw.stdout").rstrip("\n")
    data = encoded(f"{once}\n\n{once}{end}").encode()
    first, second = (original(data, output.part) for output in read_log("fio", decoded(data)))
    assert first + second == data


def test_an_option_that_looks_like_an_escape_changes_nothing() -> None:
    text = recorded("fio/human-randrw.stdout")
    command = "$ fio --verify_pattern=3D3D --name=3D --rw=randrw\n"
    assert by_name(read_one("fio", command + text)) == by_name(read_one("fio", text))


@every_row("name", ["b", "a", "tt", "table", "vm-1"])
def test_a_client_with_the_name_of_a_mark_keeps_its_lines(name: str) -> None:
    text = recorded("fio/clients.stdout")
    client = re.search(r"^<([^<>]+)> ", text, re.MULTILINE)
    assert client is not None
    renamed = read_one("fio", text.replace(f"<{client[1]}>", f"<{name}>"))
    assert [row.value for row in renamed.measurements] == [row.value for row in read_one("fio", text).measurements]


@every_row(
    ("log", "row"),
    [
        ("fs_mark/S1-L2.stdout", r"^(?= +\d+ +\d+ )"),
        ("pg_test_fsync/ext4.stdout", r"^(?= {8}.*(?:ops/sec|n/a))"),
        ("filebench/oltp.stdout", r"^(?=[\w-]+ +\d+ops)"),
        ("fio/human-randrw.stdout", r"^(?=  +(?:read: |write: |clat \(|cpu  |issued rwts:))"),
        ("dd/write-1m.stderr", r"^(?=\d+)"),
    ],
)
@every_row("bullet", ["o ", "* ", "- ", "  \u2022 ", "1. "])
def test_the_marks_of_a_list_before_rows_are_no_part_of_them(log: str, row: str, bullet: str) -> None:
    tool, text = log.split("/")[0], recorded(log)
    first = re.sub(row, bullet, text, count=1, flags=re.MULTILINE)
    assert first != text
    assert by_name(read_one(tool, re.sub(row, bullet, text, flags=re.MULTILINE))) == by_name(read_one(tool, text))
    assert by_name(read_one(tool, first)) == by_name(read_one(tool, text))


def joined(text: str) -> str:
    return " ".join(text.split())


@every_row("log", ["fs_mark/S1-L2.stdout", "pg_test_fsync/ext4.stdout", "dd/write-1m.stderr"])
@every_row("around", [("", "\n"), ("It is slow here: ", "\n"), ("", " That is slow.\n")])
def test_an_output_in_one_line_is_read(log: str, around: tuple[str, str]) -> None:
    tool, text = log.split("/")[0], recorded(log)
    if tool == "fs_mark" and around[1] != "\n":
        return  # the end of its last row would not be known
    output = read_one(tool, around[0] + joined(text.rstrip()) + around[1])
    assert by_name(output) == by_name(read_one(tool, text))
    assert {figure.line for figure in output.figures} == {1}


def of_9_1(text: str) -> str:
    """As versions up to 9.2 print it: operations a second alone, and sizes without their number."""
    text = re.sub(r"\d+ \* +(?=\d+kB)", "", re.sub(r" +\d+ usecs/op", "", text))
    return text.replace("1 second per test", "2000 operations per test")


def test_an_old_pg_test_fsync_in_one_line_is_read() -> None:
    text = of_9_1(recorded("pg_test_fsync/ext4.stdout"))
    assert by_name(read_one("pg_test_fsync", f"{joined(text)}\n")) == by_name(read_one("pg_test_fsync", text))


def heads_joined(text: str) -> str:
    """The command, the head and the names of the columns in comment lines, as a page flows them."""
    head, table = text.strip().split("\n\n")
    names, rows = table.split("\n", 1)
    head = joined(head).replace(" # App overhead", "\n# App overhead")
    return f"{head} {joined(names)}\n{rows}\n"


@every_row(
    "change",
    [
        heads_joined,
        lambda text: re.sub(r"(Overhead)\n\s+", r"\1 ", heads_joined(text)),
        lambda text: f"# ./fs_mark -n 200 -L 3\n{text}# fs_mark -n 7\n",
        lambda text: re.sub(r"^#\s+", "#", text, count=1),
        lambda text: re.sub(r"^\s+(?=\d)", "o ", heads_joined(text), flags=re.MULTILINE),
    ],
)
def test_the_head_of_fs_mark_may_share_lines(change: Callable[[str], str]) -> None:
    text = recorded("fs_mark/S1-L2.stdout")
    output = read_one("fs_mark", change(text))
    assert by_name(output) == by_name(read_one("fs_mark", text))
    assert output.form == "fs_mark 3.3"


PIPED = "00000000  68 65 6c 6c 6f 77 6f 72  6c 64 0a 00 00 00 00 00  |helloworld......|\n*\n"


@every_row(
    ("text", "line"),
    [
        (f"$ dd if=x | hexdump -C\n10+0 records in\n10+0 records out\n{PIPED}{SUMMARY}\n00001000\n", 6),
        (f"10+0 records in\n10+0 records out\n\n7d793037a0760186  -\n{SUMMARY}\n", 5),
        (f"10+0 records in\n\n10+0 records out\n\n{SUMMARY}\n", 5),
        (f"<i>10+0 records in</i>\n10+0 records out\n<B>{SUMMARY}</B>\n", 3),
    ],
)
def test_what_dd_writes_into_a_pipe_may_stand_between_its_lines(text: str, line: int) -> None:
    output = read_one("dd", text)
    assert by_name(output)["elapsed"] == 0.0951237
    assert {figure.line for figure in output.figures} == {line}


@every_row(
    ("between_records", "before_summary"),
    [
        ("", "[...]\n"),
        ("", "$ dd if=a of=b bs=1M count=7\n"),
        ("", "7+0 records in\n"),
        ("", "52428800 bytes (52 MB) copied, 5 s, 10.5 MB/s\n"),
        ("hello world\n", ""),
    ],
)
def test_what_may_be_of_another_program_between_the_lines_of_dd_is_refused(
    between_records: str, before_summary: str
) -> None:
    (output,) = read_log("dd", f"10+0 records in\n{between_records}10+0 records out\n{before_summary}{SUMMARY}\n")
    assert "mixed up, or lines are missing" in str(output.problem)

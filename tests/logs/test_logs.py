"""Logs from elsewhere: other languages, versions and makes, several outputs in a file, and what is never believed."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mountlab.__main__ import main
from mountlab.core.errors import ParameterError, ParseError, ToolError, TrialError
from mountlab.logs import FORMATS, Output, decoded, read_log, read_one
from mountlab.logs.frame import tidy
from mountlab.logs.view import as_json, as_table
from mountlab.programs import TOOLS
from mountlab.results.imported import read_log_files
from rows import every_row
from waiting import no_hang

DATA = Path(__file__).parents[1] / "data"
KIB, MIB = 1024, 1024**2


def figures(tool: str, text: str, **known: Any) -> dict[str, float]:
    """The figures of the only output of a log, by metric and label."""
    rows = read_one(tool, text, where="log.txt", known=known).measurements
    return {f"{row.metric} {row.label}".strip(): row.value for row in rows}


def recorded(name: str) -> str:
    return decoded((DATA / name).read_bytes())


def problem(tool: str, text: str, **known: Any) -> str:
    """Why the only output of a log has no figures."""
    with pytest.raises((ToolError, ParseError)) as caught:
        read_one(tool, text, where="log.txt", known=known)
    assert caught.value.where.startswith("log.txt")
    return str(caught.value)


# --- dd ---------------------------------------------------------------------------------------------------------------

MAKES = {
    "GNU, old, Chinese": (
        "记录了2048+0 的读入\n记录了2048+0 的写出\n2147483648字节(2.1 GB)已复制，3.59279 秒，598 MB/秒\n",
        2147483648, 3.59279,
    ),
    "GNU, Japanese": (
        "1024+0 レコード入力\n1024+0 レコード出力\n"
        "67108864 バイト (67 MB) コピーされました、 0.176746 秒、 380 MB/秒\n",
        67108864, 0.176746,
    ),
    "GNU, old, English": (
        "1024+0 records in\n1024+0 records out\n67108864 bytes (67 MB) copied, 0.0252552 s, 2.7 GB/s\n",
        67108864, 0.0252552,
    ),
    "GNU 5, seconds in full": (
        "200+0 records in\n200+0 records out\n209715200 bytes (210 MB) copied, 0.279132 seconds, 751 MB/s\n",
        209715200, 0.279132,
    ),
    "GNU, Russian, Cyrillic units": (
        "200+0 записей получено\n200+0 записей отправлено\n"
        "скопировано 209715200 байт (210 MB, 200 MiB), 0,279132 c, 751 MB/c\n", 209715200, 0.279132,
    ),
    "GNU, Polish": (
        "200+0 przeczytanych rekordów\n200+0 zapisanych rekordów\n"
        "skopiowane 209715200 bajtów (210 MB, 200 MiB), 0,279132 s, 751 MB/s\n", 209715200, 0.279132,
    ),
    "BusyBox": (
        "100+0 records in\n100+0 records out\n104857600 bytes (100.0MB) copied, 0.059173 seconds, 1.7GB/s\n",
        104857600, 0.059173,
    ),
    "FreeBSD": (
        "1024+0 records in\n1024+0 records out\n1073741824 bytes transferred in 2.215131 secs (484730548 bytes/sec)\n",
        1073741824, 2.215131,
    ),
    "the summary alone": ("2147483648 bytes (2.1 GB) copied, 35.7114 s, 60.1 MB/s\n", 2147483648, 35.7114),
    "a short read": (
        "dd: warning: partial read (512 bytes); suggest iflag=fullblock\n0+2 records in\n0+2 records out\n"
        "1024 bytes (1.0 kB, 1.0 KiB) copied, 0.001 s, 1.0 MB/s\n", 1024, 0.001,
    ),
}  # fmt: skip


@every_row("make", MAKES)
def test_dd_of_every_make_and_language_is_read(make: str) -> None:
    text, copied, seconds = MAKES[make]
    expected = {"bandwidth": copied / seconds, "elapsed": seconds, "bytes": copied}
    assert figures("dd", text) == pytest.approx(expected, rel=1e-6)  # the rate of FreeBSD tells the time more closely


LANGUAGES: dict[str, str] = {}
for _line in (DATA / "dd" / "languages.tsv").read_text().splitlines():
    _language, _text = _line.split("\t")
    LANGUAGES[_language] = LANGUAGES.get(_language, "") + _text + "\n"


@every_row("language", LANGUAGES)
def test_recorded_languages_of_dd_are_read_alone_and_together(language: str) -> None:
    assert figures("dd", LANGUAGES[language])["bytes"] == 20971520
    assert len(read_log("dd", "".join(LANGUAGES.values()))) == len(LANGUAGES)


def test_the_direction_that_the_user_knows_names_the_metric() -> None:
    text = recorded("dd/write-1m.stderr")
    assert set(figures("dd", text, direction="write")) == {"write_bandwidth", "elapsed", "bytes write"}


@every_row(
    ("text", "said"),
    [
        (
            "dd: Fehler beim Schreiben von '/m/x': Auf dem Gerät ist kein Speicherplatz mehr verfügbar\n"
            "5+0 Datensätze ein\n"
            "4+0 Datensätze aus\n4194304 Bytes (4,2 MB, 4,0 MiB) kopiert, 0,01 s, 419 MB/s\n",
            "dd failed",
        ),
        ("/bin/dd: error writing 'x': Input/output error\n", "dd failed"),
        ("1+0 records in\n0+0 records out\n0 bytes copied, 0.0002 s, 0.0 kB/s\n", "dd copied nothing"),
        (
            "2+0 records in\n2+0 records in\n2+0 records out\n2048 bytes (2.0 kB, 2.0 KiB) copied, 1.5 s, 1.4 kB/s\n",
            "several dd are mixed up",
        ),
        ("2+0 records in\n2048 bytes (2.0 kB, 2.0 KiB) copied, 1.5 s, 1.4 kB/s\n", "several dd are mixed up"),
        ("2+0 records in\n2+0 records out\n", "no whole summary"),
        ("2+0 records in\n2+0 records out\n209715200 bytes (210 MB, 200 MiB) copied, 0.2", "no whole summary"),
        ("9715200 bytes (210 MB, 200 MiB) copied, 0.279132 s, 751 MB/s\n", "do not agree"),
        ("209715200 bytes (210 MB, 200 MiB) copied, 0.79132 s, 751 MB/s\n", "do not agree"),
        ("209715200 bytes (210 MB, 200 MiB) copied, 0.279132 s, 75.1 MB/s\n", "do not agree"),
        (
            "3+0 records in\n3+0 records out\n209715200 bytes (210 MB, 200 MiB) copied, 0.279132 s, 751 MB/s\n",
            "records and bytes do not agree",
        ),
        ("8 bytes copied, 0 s, Infinity B/s\n", "no output of dd"),
    ],
)
def test_what_dd_did_not_finish_or_what_does_not_agree_is_not_believed(text: str, said: str) -> None:
    assert said in problem("dd", text)


def test_a_dd_that_was_stopped_shows_only_to_who_knows_what_was_asked() -> None:
    text = recorded("dd/write-1m.stderr")
    assert figures("dd", text, bs=MIB, count=200)["bytes"] == 200 * MIB
    assert "dd did not copy what was asked" in problem("dd", text, bs=MIB, count=400)


@every_row("text", [text for text, _, _ in MAKES.values() if re.match(r"\D*\d+\+0", text)] + [*LANGUAGES.values()])
def test_a_dd_of_any_make_and_language_that_read_more_than_it_wrote_is_not_believed(text: str) -> None:
    """Trap: one that failed or was stopped prints a whole summary, and what it complained of may be elsewhere."""
    lines = text.split("\n")
    whole = int(re.findall(r"(\d+)\+0", lines[0])[0])
    torn = "\n".join([lines[0].replace(f"{whole}+0", f"{whole + 1}+0"), *lines[1:]])
    said = problem("dd", torn)
    assert said.startswith("dd did not write all that it read: it failed or was stopped\n  where:   log.txt, line 1\n")
    assert f"{whole + 1}+0" in said


def test_a_dd_whose_last_write_was_short_is_not_believed() -> None:
    records = "101+0 records in\n100+1 records out\n"
    short = records + "104860000 bytes (105 MB, 100 MiB) copied, 0.1 s, 1.0 GB/s\n"
    assert "dd did not write all that it read" in problem("dd", short)
    two_sizes = records + "101000 bytes (101 kB, 99 KiB) copied, 0.1 s, 1.0 MB/s\n"
    assert figures("dd", two_sizes)["bytes"] == 101000, "ibs=1000 obs=1005"


@every_row("records", ["100+1 {}\n100+1 {}\n", "2+0 {}\n1+0 {}\n", "3+0 {}\n3+0 {}\n", "0+3 {}\n2+1 {}\n"])
def test_a_partial_last_block_and_blocks_of_two_sizes_are_no_failure_of_dd(records: str) -> None:
    text = records.format("records in", "records out") + "104857602 bytes (105 MB, 100 MiB) copied, 0.1 s, 1.0 GB/s\n"
    assert figures("dd", text)["bytes"] == 104857602


@pytest.mark.parametrize("line", ["gdd: error writing '/mnt/x': No space left on device\n", "^C"])
def test_a_complaint_of_homebrews_dd_and_an_interrupt_are_seen(line: str) -> None:
    said = problem("dd", line + recorded("dd/write-1m.stderr"))
    assert said.startswith("dd failed\n  where:   log.txt, line 1\n")


def test_a_torn_line_of_progress_is_no_summary() -> None:
    torn = "197837979648 bytes iB) copied, 2 s, 98.9 GB/s\n"
    assert "dd printed no whole summary" in problem("dd", torn)
    first, second = read_log("dd", recorded("dd/write-1m.stderr") + torn)
    assert (first.problem, second.figures) == (None, ())


def test_lines_of_progress_are_no_outputs() -> None:
    """status=progress overwrites its line with carriage returns, and leaves the last one."""
    assert figures("dd", recorded("dd/progress.stderr"))["elapsed"] == 2.64289
    said = "52428800 bytes (52 MB, 50 MiB) copied, 1 s, 52 MB/s\n"
    assert figures("dd", said + recorded("dd/write-1m.stderr"))["bytes"] == 209715200
    for alone in (said, recorded("dd/killed-progress.stderr")):
        assert "dd printed no whole summary" in problem("dd", alone)
    long_run = "9+0 records in\n9+0 records out\n9437184 bytes (9.4 MB, 9.0 MiB) copied, 4321 s, 2.2 kB/s\n"
    assert figures("dd", long_run)["elapsed"] == 4321, "six digits of a long run may be whole seconds"


@pytest.mark.slow
@given(st.integers(1, 2**60), st.integers(1, 10**9), st.sampled_from(".,"))
def test_bytes_and_seconds_of_dd_come_back_exactly(copied: int, microseconds: int, decimal: str) -> None:
    seconds, rate = microseconds / 1e6, copied / (microseconds / 1e6)
    power = max(p for p in range(7) if p == 0 or rate >= 1000**p)
    shown = f"{rate / 1000**power:.1f} {' kMGTPE'[power].strip()}B/s"
    text = f"{copied} bytes copied, {seconds:.6f} s, {shown}\n".replace(".", decimal)
    assert figures("dd", text) == {"bandwidth": copied / seconds, "elapsed": seconds, "bytes": float(copied)}


# --- fio --------------------------------------------------------------------------------------------------------------


def test_kb_and_mb_of_fio_2_are_kib_and_mib() -> None:
    """Trap: units, KB/s that means KiB/s."""
    old = figures("fio", recorded("fio/2.1.10-randrw.stdout"))
    assert (old["read_bandwidth"], old["write_bandwidth"]) == (100317 * KIB, 95972 * KIB)
    assert (old["bytes read"], int(old["read_iops"]), old["elapsed"]) == (201336 * KIB, 25079, 2.007)
    assert (old["read_latency_mean"], old["read_latency_p99"]) == (67.10e-6, 241e-6)
    assert figures("fio", recorded("fio/2.2.10-randrw.stdout"))["read_bandwidth"] == 3372.2 * MIB
    assert figures("fio", recorded("fio/2.21-randrw.stdout"))["read_bandwidth"] == 3471 * MIB
    for found in (old, figures("fio", recorded("fio/2.2.10-randrw.stdout"))):
        assert found["read_bandwidth"] == pytest.approx(found["read_iops"] * 4096, rel=1e-3), "blocks of 4 KiB"


@pytest.mark.parametrize("version", ["2.1.10", "2.2.10", "2.21"])
def test_json_of_fio_2_in_kib_and_microseconds_is_read(version: str) -> None:
    text = recorded(f"fio/{version}-write.json")
    side = json.loads(text)["jobs"][0]["write"]
    found = figures("fio", text)
    assert found["bytes write"] == 256 * MIB
    assert found["write_bandwidth"] == 256 * MIB * 1e3 / side["runtime"]
    assert found["write_bandwidth"] == pytest.approx(side["bw"] * KIB, rel=1e-3)
    assert found["write_latency_mean"] == pytest.approx(side["lat"]["mean"] / 1e6)
    assert found["write_ios"] == 256
    assert found["write_latency_p95"] == pytest.approx(side["clat"]["percentile"]["95.000000"] / 1e6)
    assert "write_latency_p99" not in found, "of 256 writes"


def test_bytes_that_may_be_kib_are_not_believed() -> None:
    """fio 2 says KiB where fio 3 says bytes, under one name; only its bandwidth tells which."""
    lines = [line for line in recorded("fio/2.2.10-write.json").split("\n") if '"bw" :' not in line]
    assert "the unit of io_bytes, bytes or KiB, is unknown" in problem("fio", "\n".join(lines))


def test_json_of_fio_3_0_has_no_bandwidth_in_bytes() -> None:
    report = json.loads(recorded("fio/psync-randread-direct.jsonplus"))
    for side in ("read", "write", "trim"):
        report["jobs"][0][side].pop("bw_bytes")
        report["jobs"][0][side]["lat_ns"].pop("N")
    found = figures("fio", json.dumps(report, indent=1))
    assert found["read_bandwidth"] == pytest.approx(59724633, rel=1e-6)


def test_a_report_and_the_text_of_the_same_run_are_one_output() -> None:
    text = recorded("fio/json-and-normal.stdout")
    assert len(read_log("fio", text)) == 1
    assert len(read_log("fio", text + recorded("fio/human-write.stdout"))) == 2
    mixed = text + recorded("fio/2.1.10-randrw.stdout") + recorded("fio/2.1.10-write.json")
    assert [output.form for output in read_log("fio", mixed)] == [
        "JSON of fio-3.33", "text of fio-2.1.10", "JSON of fio-2.1.10",
    ]  # fmt: skip


def test_several_jobs_in_text_have_labels_and_their_sum_has_none() -> None:
    one = recorded("fio/human-write.stdout")
    block = one[one.index("h: (groupid=0") : one.index("\nRun status")]
    other = block.replace("h: (groupid", "log: (groupid")
    text = one.replace(block, block + other).replace("io=4376MiB (4589MB)", "io=8752MiB (9177MB)")
    text = text.replace("WRITE: bw=2187MiB/s (2293MB/s)", "WRITE: bw=4374MiB/s (4586MB/s)")
    found = figures("fio", text)
    assert (found["write_bandwidth"], found["bytes write"]) == (4374 * MIB, 8752 * MIB)
    assert found["write_bandwidth h"] == found["write_bandwidth log"] == 2187 * MIB
    assert "write_iops" not in found, "fio prints no sum of it"


@every_row(
    ("old", "new", "said"),
    [
        (
            "err= 0:",
            "err=28 (file:io_u.c:1876, func=io_u error, error=No space left on device):",
            "failed with error 28",
        ),
        ("BW=2187MiB/s", "BW=218MiB/s", "bandwidth, bytes and time do not agree"),
        ("BW=2187MiB/s (2293MB/s)", "BW=2187MiB/s (2193MB/s)", "do not agree"),
        ("io=4376MiB", "io=437MiB", "a sum of fio's does not agree with itself"),
        (
            "WRITE: bw=2187MiB/s (2293MB/s), 2187MiB/s-2187MiB/s (2293MB/s-2293MB/s), io=4376MiB (4589MB)",
            "WRITE: bw=1094MiB/s (1147MB/s), 1094MiB/s-1094MiB/s (1147MB/s-1147MB/s), io=2188MiB (2294MB)",
            "jobs and their sum do not agree",
        ),
        ("  WRITE: bw=2187", "  READ: bw=2187", "not whole"),
        ("50.00th=[  347]", "50.00th=[  34", "percentiles cannot be read"),
        ("write: IOPS=2186", "write: IOPS=a lot", "cannot be read"),
        ("fio-3.33", "fio: terminating on signal 15\nfio-3.33", "fio was stopped before it was done"),
    ],
)
def test_text_of_fio_that_does_not_agree_with_itself_is_not_believed(old: str, new: str, said: str) -> None:
    text = recorded("fio/human-write.stdout")
    assert text.count(old) >= 1
    assert said in problem("fio", text.replace(old, new, 1))


@every_row("name", ["killed-size.json", "killed-time-based.json"])
@every_row("told", [True, False])
def test_a_report_of_a_killed_fio_is_not_believed(name: str, told: bool) -> None:
    """Trap: on SIGTERM the JSON is complete and `error` 0; without the note above it the amount shows it."""
    text = recorded(f"fio/{name}")
    said = problem("fio", text if told else text[text.index("{\n") :])
    assert ("stopped before it was done" if told else "fio stopped early") in said


def test_a_report_that_lost_the_lines_between_two_jobs_is_not_believed() -> None:
    """JSON keeps the last of two keys: the figures of the first job would be gone without a word."""
    lines = recorded("fio/two-groups.json").split("\n")
    torn = "\n".join(lines[:251] + lines[257:])
    assert len(json.loads(torn)["jobs"]) == 1
    assert "lines of fio's report are missing" in problem("fio", torn)
    assert tidy("fio", [("x.json", torn.encode())]).frame.empty


def changed(name: str, key: str, factor: float, *, section: str = "") -> str:
    """A recorded report of one job with another figure in its reads."""
    report = json.loads(recorded(name))
    side = report["jobs"][0]["read"]
    place = side[section] if section else side
    place[key] = type(place[key])(place[key] * factor)
    return json.dumps(report, indent=1)


@every_row(("key", "section"), [("bw_bytes", ""), ("iops", ""), ("total_ios", ""), ("N", "clat_ns"), ("N", "lat_ns")])
@every_row("factor", [0.1, 0.95, 1.05, 10])
def test_json_of_fio_that_does_not_agree_with_itself_is_not_believed(key: str, section: str, factor: float) -> None:
    """Trap: a digit lost or changed in a report that is JSON all the same."""
    name = "fio/psync-randread-direct.jsonplus"
    bins = json.loads(recorded(name))["jobs"][0]["read"]
    text = changed(name, key, factor, section=section)
    if section and not bins[section].get("bins"):
        assert figures("fio", text), "no histogram, no count"
        return
    said = problem("fio", text)
    assert said.startswith("fio's figures do not agree: read.")
    assert "log.txt, line " in said
    assert tidy("fio", [("x.json", text.encode())]).frame.empty
    nearly = changed(name, key, 1.005, section=section)
    if section:
        assert "the bins of the histogram are not whole" in problem("fio", nearly)
    else:
        assert figures("fio", nearly), "fio rounds"


REPORTS = sorted(path.name for path in (DATA / "fio").iterdir() if path.suffix in (".json", ".jsonplus"))


@every_row("name", [name for name in REPORTS if not name.startswith("killed")])
def test_every_recorded_report_of_fio_agrees_with_itself(name: str) -> None:
    assert [output.problem for output in read_log("fio", recorded(f"fio/{name}"))] == [None]


# --- the others -------------------------------------------------------------------------------------------------------


def test_filebench_1_4_is_read_in_its_own_words() -> None:
    found = figures("filebench", recorded("filebench/1.4.9.1.stdout"))
    assert (found["operations"], found["operation_rate"]) == (209479, 41878.596)
    assert found["bandwidth"] == found["bandwidth read1"] == 214.5 * MIB
    assert (found["operations open1"], found["operation_latency_max open1"]) == (69827, 0.016)
    assert "operation_latency" not in found, "0.0 ms is below its last digit, and not zero"


@every_row(
    ("old", "new", "said"),
    [
        ("13959ops/s 214.5", "1395ops/s 214.5", "count and rate do not agree"),
        ("24us/op-cpu", "24us/", "cannot be read"),
        ("Running...", "Run stopped early: out of files", "filebench failed"),
        ("209479 ops, 41878.596", "0 ops, 0.000", "did nothing"),
    ],
)
def test_filebench_1_4_that_does_not_agree_with_itself_is_not_believed(old: str, new: str, said: str) -> None:
    text = recorded("filebench/1.4.9.1.stdout")
    assert text.count(old) == 1
    assert said in problem("filebench", text.replace(old, new))


@pytest.mark.parametrize(
    ("name", "lost"), [("samples/fileserver", "createfile1"), ("fileserver", "read-3"), ("1.4.9.1", "open1")]
)
def test_filebench_that_lost_a_line_is_not_believed(name: str, lost: str) -> None:
    lines = recorded(f"filebench/{name}.stdout").split("\n")
    said = problem("filebench", "\n".join(line for line in lines if not line.startswith(lost)))
    assert said.startswith("lines of filebench's report are missing\n  where:   log.txt, line ")
    assert "IO Summary" in said


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("samples/seqread", "wr 6030.5mb/s", "wr 603.5mb/s"), ("samples/fileserver", "1199.3mb/s", "9119.3mb/s"),
        ("1.4.9.1", "r/w), 214.5mb/s", "r/w),  21.5mb/s"),
    ],
)  # fmt: skip
def test_filebench_with_an_operation_that_moved_more_than_all_is_not_believed(name: str, old: str, new: str) -> None:
    text = recorded(f"filebench/{name}.stdout")
    assert text.count(old) == 1
    assert "filebench's lines and its summary do not agree" in problem("filebench", text.replace(old, new))


RECORDED = sorted(path.name for path in (DATA / "filebench").glob("*.stdout"))


@every_row("name", RECORDED)
def test_every_recorded_report_of_filebench_agrees_with_itself(name: str) -> None:
    assert figures("filebench", recorded(f"filebench/{name}"))


def test_a_prompt_above_pg_test_fsync_is_not_its_own() -> None:
    text = recorded("pg_test_fsync/ext4.stdout")
    for above in ("$ pg_test_fsync\n", "Last login\n\n$ cd /mnt\n$ pg_test_fsync -s 1\n"):
        plain, pasted = read_one("pg_test_fsync", text), read_one("pg_test_fsync", above + text)
        assert pasted.measurements == plain.measurements
        shift = above.count("\n")
        assert [figure.line for figure in pasted.figures] == [figure.line + shift for figure in plain.figures]


def test_errors_of_pg_test_fsync_below_a_prompt_give_the_line_of_the_log() -> None:
    text = recorded("pg_test_fsync/ext4.stdout")
    headless = "some seconds per test" + text[text.index("\n") :].replace("one 8kB", "one kB")
    assert "where:   log.txt, line 1 (its first lines)" in problem("pg_test_fsync", headless)
    assert "where:   log.txt, line 2 (its first lines)" in problem("pg_test_fsync", "$ pg_test_fsync\n" + headless)
    row = next(number for number, line in enumerate(text.split("\n"), start=1) if "11886.728" in line)
    wrong = "$ pg_test_fsync\n" + text.replace("11886.728", "1886.728", 1)
    assert f"where:   log.txt, line {row + 1}\n" in problem("pg_test_fsync", wrong)


@every_row("path", sorted((DATA / "pg_test_fsync").iterdir()), ids=lambda path: path.stem)
def test_pg_test_fsync_in_every_language_has_the_same_rows(path: Path) -> None:
    english = figures("pg_test_fsync", recorded("pg_test_fsync/ext4.stdout"))
    found = figures("pg_test_fsync", decoded(path.read_bytes()))
    assert set(found) <= set(english)
    assert {"sync_rate one 8kB: fdatasync", "sync_rate non-sync: write"} <= set(found)


def test_each_run_of_a_file_is_an_output_with_its_own_lines() -> None:
    found = read_log("fs_mark", recorded("fs_mark/two-runs.log"))
    assert [output.part.line for output in found] == [1, 14]
    assert [len(output.figures) for output in found] == [7, 20]
    assert found[1].figures[0].line > found[1].part.line


# --- files ------------------------------------------------------------------------------------------------------------


@every_row("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
@every_row("end", ["\n", "\r\n"])
def test_a_log_is_read_in_the_encodings_in_which_terminals_write(encoding: str, end: str) -> None:
    text = (
        "200+0 Datensätze ein\n200+0 Datensätze aus\n209715200 Bytes (210 MB, 200 MiB) kopiert, 0,0971606 s, 2,2 GB/s\n"
    )
    data = text.replace("\n", end).encode(encoding)
    assert figures("dd", decoded(data))["elapsed"] == 0.0971606


@every_row(
    ("data", "text"),
    [(b"a\rb\rc\nd\r\n", "c\nd\n"), (b"a\rb\r\r\n\re", "b\ne"), (b"a\r", "a"), (b"\r\r\n", "\n"), (b"", "")],
)
def test_of_what_was_overwritten_the_last_stays(data: bytes, text: str) -> None:
    assert decoded(data) == text


MANY = 3_000_000


@pytest.mark.parametrize("line", [b"x" * MANY, b"x" * MANY + b"\r", b"x\r" * MANY + b"y"])
def test_a_long_line_does_not_hang(line: bytes) -> None:
    """Most of an hour, when each character was tried as the beginning of what was overwritten."""
    with no_hang():
        decoded(line + b"\nz\r\n")


def test_a_file_that_cannot_be_read_leaves_the_others_their_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good, other, absent = DATA / "dd" / "write-1m.stderr", tmp_path / "other.txt", tmp_path / "absent.txt"
    other.write_text("nothing of the kind\n")
    found = read_log_files("dd", [absent, other, good, tmp_path])
    assert [[bool(output.problem) for output in found[str(path)]] for path in (absent, other, good, tmp_path)] == [
        [True], [True], [False], [True],
    ]  # fmt: skip
    assert [str(output.problem).split("\n")[0] for output in (*found[str(absent)], *found[str(other)])] == [
        "the log cannot be read",
        "no output of dd in it",
    ]
    assert main(["parse", "dd", str(absent), str(other), str(good)]) == 2
    said = capsys.readouterr()
    assert "751.3 MB/s" in said.out
    assert said.err.count("error: ") == 2
    with pytest.raises(ParameterError, match="unknown tool"):
        read_log_files("bonnie", [good])
    monkeypatch.setattr("mountlab.results.imported.LARGEST_LOG", 60)
    (large,) = read_log_files("dd", [good])[str(good)]
    assert str(large.problem).split("\n")[0] == "too large for a log"


def test_an_error_shows_file_line_and_text() -> None:
    (_, bad) = read_log("dd", recorded("dd/write-1m.stderr") + recorded("dd/no-space.stderr"), where="old/dd.log")
    assert str(bad.problem).splitlines()[:3] == [
        "dd failed",
        "  where:   old/dd.log, line 4",
        "  got:     dd: error writing '/dev/full': No space left on device",
    ]


def test_a_log_of_another_tool_holds_no_output() -> None:
    with pytest.raises(ParseError, match="no output of fio in it") as caught:
        read_log("fio", recorded("pg_test_fsync/ext4.stdout"), where="x.txt")
    assert (caught.value.where, caught.value.got) == ("x.txt", "1 second per test")
    with pytest.raises(ParameterError, match="unknown tool with logs to read") as unknown:
        read_log("fi", "", where="x.txt")
    assert unknown.value.next_step == "did you mean 'fio'?"


def test_the_logs_of_every_tool_can_be_read() -> None:
    """But for those of `command` and `watched`, whose sweep says how their output is read, and of the tools that are
    scripts of Mountlab: elsewhere nothing writes such logs, or (pgbench) what the server stated is not in them. For
    some there is no format yet."""
    own_scripts = {
        "degrade",
        "large-directory",
        "pgbench",
        "reflink",
        "rsync",
        "scrub",
        "send",
        "snapshot",
        "sqlite",
        "tree",
    }
    without_format = {"db_bench", "dbench", "ioping", "sysbench"}
    assert set(FORMATS) == set(TOOLS) - {"command", "watched"} - own_scripts - without_format


def test_one_output_is_wanted_and_two_are_there() -> None:
    with pytest.raises(ParseError, match="several outputs of dd"):
        read_one("dd", recorded("dd/direct.stderr") * 2)


def test_a_table_shows_metric_label_value_with_unit_and_line() -> None:
    outputs: dict[str, list[Output]] = {"a.txt": read_log("dd", recorded("dd/write-1m.stderr") + "1+0 records in\n")}
    assert as_table(outputs).splitlines() == [
        "a.txt, from line 1: dd's summary", "metric     label       value  line",
        "bandwidth         751.3 MB/s     3", "elapsed             279.1 ms     3",
        "bytes               209.7 MB     3", "", "a.txt, from line 4: dd's summary",
        "no figures: dd printed no whole summary",
    ]  # fmt: skip
    first, second = as_json(outputs)
    assert first["figures"][1] == {"metric": "elapsed", "label": "", "value": 0.279132, "unit": "s", "line": 3}
    assert (first["error"], second["figures"]) == (None, [])
    assert "line 4" in second["error"]


LONG = 200_000
LONG_LINES = {
    "blanks": " " * LONG + "x", "blanks and tabs": " \t" * LONG + "{", "words": "a " * LONG, "digits": "1" * LONG,
    "numbers": "1.0 " * LONG, "quote marks": "> " * LONG, "a mark and blanks": "#" + " " * LONG + "x",
    "a job": "a: (groupid=0, jobs=1): err= 0: " + "a " * LONG, "brackets": "1 bytes (" * LONG,
}  # fmt: skip


@pytest.mark.slow
@every_row("tool", sorted(FORMATS))
@every_row("kind", LONG_LINES)
def test_a_line_of_any_length_is_read_in_bounded_time(tool: str, kind: str) -> None:
    """A pattern that tries every pair of places takes ten minutes over such a line."""
    with no_hang(), suppress(ParameterError, TrialError):
        read_log(tool, LONG_LINES[kind])

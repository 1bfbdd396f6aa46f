"""Logs of old versions, of other translations, and pasted ones.

Each is made here by the print statements of its tool (dd.c and the translations of coreutils, pg_test_fsync.c and
test_fsync.c, stats.c of filebench) with figures of our own, or is a recording of this directory to which something was
done."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mountlab.core.errors import ParseError
from mountlab.logs import decoded, read_log, read_one
from rows import every_row

DATA = Path(__file__).parents[1] / "data"


def figures(tool: str, text: str) -> dict[str, float]:
    rows = read_one(tool, decoded(text.encode()), where="log.txt").measurements
    return {f"{row.metric} {row.label}".strip(): row.value for row in rows}


def problem(tool: str, text: str) -> str:
    (output,) = read_log(tool, decoded(text.encode()), where="log.txt")
    assert output.problem is not None
    return str(output.problem)


def recorded(name: str) -> str:
    return (DATA / name).read_text()


# --- dd ---------------------------------------------------------------------------------------------------------------


def of_prefix(value: float, base: int, units: str) -> str:
    """As human_readable() of coreutils prints: one digit after the point below 10, none above, rounded up."""
    power = 0
    while value >= base and power < len(units):
        value, power = value / base, power + 1
    number = f"{value:.1f}" if power and value < 10 else f"{value:.0f}"
    return f"{number} {units[power - 1] if power else ''}{'iB' if base == 1024 and power else 'B'}"


TRANSLATIONS: dict[str, tuple[str, str, str, str]] = {
    # records in, records out, the summary, seconds
    "zh_CN of 8.22": ("记录了{} 的读入", "记录了{} 的写出", "{bytes}字节({si})已复制，{s} 秒，{rate}/秒", "."),
    "zh_CN of 8.25 to 8.32": (
        "记录了{} 的读入", "记录了{} 的写出", "{bytes}字节（{si}，{iec}）已复制，{s} s，{rate}/s", ".",
    ),
    "zh_CN of 9": ("输入了 {} 块记录", "输出了 {} 块记录", "{bytes} 字节 ({si}, {iec}) 已复制，{s} s，{rate}/s", "."),
    "zh_TW": ("讀入了 {} 個紀錄", "寫出了 {} 個紀錄", "複製了 {bytes} 位元組 （{si}，{iec}），{s} s，{rate}/s", "."),
    "zh_TW of 6": ("讀入了 {}", "寫出了 {}", "複製了 {bytes} 位元組 ({si})，{s} 秒，{rate}/s", "."),
    "ja of 8.22": (
        "{} レコード入力", "{} レコード出力", "{bytes} バイト ({si}) コピーされました、 {s} 秒、 {rate}/秒", ".",
    ),
    "ja": ("{} レコード入力", "{} レコード出力", "{bytes} bytes ({si}, {iec}) copied, {s} s, {rate}/s", "."),
    "sv": ("{} poster in", "{} poster ut", "{bytes} byte ({si}, {iec}) kopierade, {s} s, {rate}/s", ","),
    "pl of 6": (
        "{} przeczytanych rekordów", "{} zapisanych rekordów", "skopiowane {bytes} bajtów ({si}), {s} s, {rate}/s", ",",
    ),
    "be": ("{} запісаў уведзена", "{} запісаў выведзена", "{bytes} байтаў ({si}) скапіявана, {s} s, {rate}/s", ","),
}  # fmt: skip


def of_dd(language: str, bytes_: int, blocks: int, seconds: float) -> str:
    came, went, summary, mark = TRANSLATIONS[language]
    texts = {
        "si": of_prefix(bytes_, 1000, "kMGT"), "iec": of_prefix(bytes_, 1024, "KMGT"), "s": f"{seconds:.6g}",
        "rate": of_prefix(bytes_ / seconds, 1000, "kMGT"),
    }  # fmt: skip
    marked = {name: text.replace(".", mark) for name, text in texts.items()}
    records = f"{blocks}+0"
    return f"{came.format(records)}\n{went.format(records)}\n{summary.format(bytes=bytes_, **marked)}\n"


@given(
    st.sampled_from(sorted(TRANSLATIONS)),
    st.integers(1, 5000),
    st.sampled_from([4096, 65536, 1 << 20]),
    st.floats(0.001, 5000).map(lambda seconds: float(f"{seconds:.6g}")).filter(lambda seconds: seconds % 1),
)
def test_dd_is_read_whatever_brackets_and_commas_its_translation_has(
    language: str, blocks: int, size: int, seconds: float
) -> None:
    """Whole seconds are those of status=progress: they are left out here, and have tests of their own."""
    text = of_dd(language, blocks * size, blocks, seconds)
    assert figures("dd", text) == {
        "bandwidth": blocks * size / seconds, "elapsed": seconds, "bytes": blocks * size,
    }  # fmt: skip
    assert len(read_log("dd", text * 3)) == 3


def test_a_chinese_summary_that_is_torn_or_wrong_is_not_believed() -> None:
    text = of_dd("zh_CN of 8.25 to 8.32", 75497472, 72, 11.5758)
    assert "75497472字节（75 MB，72 MiB）已复制，11.5758 s，6.5 MB/s" in text
    assert "no whole summary" in problem("dd", text[:-20])
    assert "do not agree" in problem("dd", text.replace("75497472字", "7549747字"))
    assert "do not agree" in problem("dd", text.replace("75 MB", "57 MB"))


def test_a_chinese_summary_of_less_than_a_kilobyte_has_no_brackets() -> None:
    text = "记录了0+1 的读入\n记录了0+1 的写出\n512字节已复制，0.00268164 s，191 kB/s\n"
    assert figures("dd", text)["bytes"] == 512


def test_chinese_progress_is_no_summary() -> None:
    text = of_dd("zh_CN of 8.25 to 8.32", 1 << 30, 1024, 9.52341)
    progress = "\r314572800字节（315 MB，300 MiB）已复制，3 s，105 MB/s\r"
    progress += "1069547520字节（1.1 GB，1020 MiB）已复制，9 s，119 MB/s\n"
    assert figures("dd", progress + text) == figures("dd", text)


# --- pg_test_fsync ----------------------------------------------------------------------------------------------------

SIZES = {16: "16kB open_sync write", 8: " 8kB open_sync writes", 4: " 4kB open_sync writes", 2: " 2kB open_sync writes",
         1: " 1kB open_sync writes"}  # fmt: skip


def of_pg(rates: list[float | None], head: str, *, sizes: bool = True) -> str:
    """As pg_test_fsync of 9.1 and 9.2 prints: rates in operations a second only; None: no direct I/O."""
    left = iter(rates)

    def row(label: str) -> str:
        rate = next(left)
        return f"        {label:<32}" + (f"{'n/a*':>17}\n" if rate is None else f"{rate:9.3f} ops/sec\n")

    methods = ("open_datasync", "fdatasync", "fsync", "fsync_writethrough", "open_sync")
    preference = "(in wal_sync_method preference order, except fdatasync\nis Linux's default)\n"
    labels = SIZES if sizes else {kb: f"{16 // kb:2} * {kb:2}kB open_sync write" for kb in SIZES}
    text = f"{head}\nO_DIRECT supported on this platform for open_datasync and open_sync.\n"
    for times in ("one 8kB write", "two 8kB writes"):
        text += f"\nCompare file sync methods using {times}:\n{preference}"
        text += "".join(
            row(name) if name != "fsync_writethrough" else f"        {name:<32}{'n/a':>17}\n" for name in methods
        )
        text += "* This file system and its mount options do not support direct\nI/O, e.g. ext4 in journaled mode.\n"
    text += "\nCompare open_sync with different write sizes:\n(This is designed to compare the cost of writing 16kB\n"
    text += "in different write open_sync sizes.)\n" + "".join(row(label) for label in labels.values())
    text += "\nTest if fsync on non-write file descriptor is honored:\n(If the times are similar, fsync() can sync "
    text += "data written\non a different descriptor.)\n" + row("write, fsync, close") + row("write, close, fsync")
    return text + "\nNon-Sync'ed 8kB writes:\n" + row("write")


OLD_HEADS = {"2 seconds per test": False, "2000 operations per test": True}
PG_RATE = st.floats(0.5, 5e6).map(lambda rate: round(rate, 3))


@pytest.mark.slow
@given(st.lists(PG_RATE, min_size=16, max_size=16), st.sampled_from(sorted(OLD_HEADS)), st.booleans(), st.booleans())
def test_pg_test_fsync_without_microseconds_is_read(rates: list[float], head: str, sizes: bool, direct: bool) -> None:
    """9.1 and 9.2 print operations a second only: the time of one is the inverse, as of every version."""
    shown: list[float | None] = list(rates)
    if not direct:
        shown = [None if place in (0, 3, 4, 7, *range(8, 13)) else rate for place, rate in enumerate(rates)]
    found = figures("pg_test_fsync", of_pg(shown, head, sizes=sizes))
    own = [rate for rate in shown if rate is not None]
    assert [value for name, value in found.items() if name.startswith("sync_rate")] == own
    assert [value for name, value in found.items() if name.startswith("operation_latency")] == [1 / r for r in own]
    assert found["sync_rate one 8kB: fdatasync"] == rates[1]
    assert found["sync_rate non-sync: write"] == rates[15]
    assert ("sync_rate write sizes: 16 * 1kB open_sync" in found) == direct


def test_pg_test_fsync_tells_seconds_and_operations_apart() -> None:
    from mountlab.programs.pg_test_fsync import read_report

    rates: list[float | None] = [100.0] * 16
    assert (read_report(of_pg(rates, "2 seconds per test")).seconds, 0) == (2, 0)
    counted = read_report(of_pg(rates, "2000 operations per test"))
    assert counted.seconds == 0


def test_a_row_that_lost_its_microseconds_is_not_of_an_old_version() -> None:
    text = recorded("pg_test_fsync/ext4.stdout")
    line = next(line for line in text.split("\n") if line.strip().startswith("fsync "))
    said = problem("pg_test_fsync", text.replace(line, line.partition("ops/sec")[0] + "ops/sec", 1))
    assert "microseconds that fit each other" in said
    assert "'fsync '" not in said
    old = of_pg([100.0] * 16, "2 seconds per test")
    assert "as in '1250.000 ops/sec'" in problem("pg_test_fsync", old.replace("100.000 ops/sec", "100.000 ops", 1))


NINE = (
    "8k write", "open_datasync 8k write", "open_sync 8k write", "8k write, fdatasync", "8k write, fsync",
    "2 open_datasync 8k writes", "2 open_sync 8k writes", "8k write, 8k write, fdatasync", "8k write, 8k write, fsync",
    "open_sync 16k write", "2 open_sync 8k writes", "8k write, fsync, close", "8k write, close, fsync",
)  # fmt: skip


def of_nine(rates: list[float]) -> str:
    """As test_fsync of 9.0 prints."""
    heads = {0: "Simple write:\n", 1: "\nCompare file sync methods using one write:\n",
             5: "\nCompare file sync methods using two writes:\n", 9: "\nCompare open_sync with different sizes:\n",
             11: "\nTest if fsync on non-write file descriptor is honored:\n(If the times are similar, fsync() can "
                 "sync data written\non a different descriptor.)\n"}  # fmt: skip
    rows = (
        heads.get(n, "") + f"\t{name:<30}{rate:9.3f}/second\n"
        for n, (name, rate) in enumerate(zip(NINE, rates, strict=True))
    )
    return "Loops = 10000\n\n" + "".join(rows)


@pytest.mark.slow
@given(st.lists(PG_RATE, min_size=13, max_size=13))
def test_test_fsync_of_9_0_is_read_under_its_own_names(rates: list[float]) -> None:
    found = figures("pg_test_fsync", of_nine(rates))
    assert [value for name, value in found.items() if name.startswith("sync_rate")] == rates
    assert found["sync_rate one write: 8k write, fdatasync"] == rates[3]
    assert found["sync_rate write sizes: 2 open_sync 8k writes"] == rates[10]
    assert len(read_log("pg_test_fsync", of_nine(rates) * 2)) == 2
    assert not any("kB" in name for name in found)


def test_old_and_new_runs_in_one_log() -> None:
    text = of_pg([50.0] * 16, "2 seconds per test") + "\n" + recorded("pg_test_fsync/ext4.stdout") + of_nine([5.0] * 13)
    first, second, third = read_log("pg_test_fsync", text)
    assert [each.problem for each in (first, second, third)] == [None, None, None]
    assert [each.measurements[0].value for each in (first, second, third)] == [50.0, 12043.664, 5.0]


def test_what_is_wrong_in_a_row_can_be_seen() -> None:
    """Got and allowed must not look alike."""
    text = recorded("pg_test_fsync/ramfs.stdout")
    said = problem("pg_test_fsync", text.replace("        fdatasync  ", "        fdatasynk  ", 1))
    assert "got:     'fdatasynk   " in said
    assert "allowed: 'fdatasync', two blanks or more, then operations a second" in said


# --- filebench --------------------------------------------------------------------------------------------------------


def of_filebench(
    periods: list[tuple[float, float, int]], *, version: str = "1.4.9.1", pid: int | None = 731, end: bool = True
) -> str:
    """As filebench prints with several summaries: start and end of what each covers, and its operations.

    1.4 puts the pid before each line where it says more than usual, padded to five places."""
    own = f"{pid:5d}: " if pid is not None else ""
    old = version.startswith("1.4")
    lines = [f"Filebench Version {version}", f"{own}0.000: Allocated 170MB of shared memory", f"{own}1.064: Running..."]
    for number, (start, stop, count) in enumerate(periods, start=1):
        took, half = stop - start, count // 2
        if number == len(periods) and end:
            lines.append(f"{own}{stop:4.3f}: Run took {round(took)} seconds...")
        lines.append(f"{own}{stop:4.3f}: Per-Operation Breakdown")
        for name, part in (("read1", half), ("write1", count - half)):
            cpu = f" {18:8.0f}us/op-cpu [0ms - 7ms]" if old else f" [0.01ms - {7.25:5.2f}ms]"
            lines.append(f"{name:<20} {part}ops {part / took:8.0f}ops/s {0.5:5.1f}mb/s {0.3:8.1f}ms/op{cpu}")
        rates = f"{count / took:5.3f} ops/s"
        sides = f"{half / took:0.0f}/{(count - half) / took:0.0f}"
        lines.append(
            f"{own}{stop:4.3f}: IO Summary: {count:5d} "
            + (
                f"ops, {rates}, ({sides} r/w), {1.0:5.1f}mb/s, {139:6.0f}us cpu/op, {0.3:5.1f}ms latency"
                if old
                else f"ops {rates} {sides} rd/wr {1.0:5.1f}mb/s {0.312:5.3f}ms/op"
            )
        )
    return "\n".join([*lines, f"{own}{periods[-1][1] + 0.001:4.3f}: Shutting down processes"]) + "\n"


VERSIONS = st.sampled_from(["1.4.9.1", "1.5-alpha3"])


@pytest.mark.slow
@given(VERSIONS, st.integers(2, 99999) | st.none(), st.integers(100, 10**7))
def test_filebench_with_any_pid_is_read(version: str, pid: int | None, count: int) -> None:
    found = figures("filebench", of_filebench([(1.064, 61.065, count)], version=version, pid=pid))
    assert found["operations"] == count
    assert found["elapsed"] == pytest.approx(60.001, rel=1e-3)


@pytest.mark.slow
@given(VERSIONS, st.lists(st.integers(1, 10**6), min_size=2, max_size=6), st.integers(1, 30), st.booleans())
def test_the_last_of_several_summaries_of_filebench_covers_all(
    version: str, counts: list[int], period: int, headless: bool
) -> None:
    """`stats snap` and psrun count from the last `stats clear`: each summary holds those before it."""
    periods = [(1.064, 1.064 + n * (period + 0.001), 1000 * n + sum(counts[:n])) for n in range(1, len(counts) + 1)]
    text = of_filebench(periods, version=version)
    if headless and version.startswith("1.4"):
        text = text.partition("\n")[2]
    (output,) = read_log("filebench", text)
    assert output.problem is None
    found = {f"{row.metric} {row.label}".strip(): row.value for row in output.measurements}
    assert found["operations"] == periods[-1][2]
    assert found["elapsed"] == pytest.approx(len(counts) * (period + 0.001), rel=1e-2)
    lines = text.split("\n")
    assert {lines[figure.line - 1].split()[0] for figure in output.figures if figure.measurement.label} == {
        "read1",
        "write1",
    }


@pytest.mark.slow
@given(VERSIONS, st.lists(st.floats(0, 1.5), min_size=2, max_size=6))
def test_a_slow_box_prints_its_summaries_late(version: str, late: list[float]) -> None:
    """The count is frozen before the summary is printed: it seems to count from a later moment."""
    counts = [10000 * n for n in range(1, len(late) + 1)]
    periods = [(1.064 + after, 1.064 + 10 * n + after, 10000 * n) for n, after in enumerate(late, start=1)]
    assert figures("filebench", of_filebench(periods, version=version))["operations"] == counts[-1]


def test_runs_of_other_lengths_without_a_version_line_are_not_merged() -> None:
    """Nothing tells whether these are two summaries of a run or two runs: neither is believed."""
    texts = [of_filebench([span], pid=None) for span in ((1.064, 61.065, 90000), (8.3, 128.3, 99000))]
    pasted = "\n".join(line for text in texts for line in text.split("\n") if "ops" in line or "Per-Op" in line)
    assert "does not cover all of its run" in problem("filebench", pasted)


@given(VERSIONS, st.integers(2, 5))
def test_summaries_of_one_period_each_are_added_up(version: str, parts: int) -> None:
    """psrun with a negative period clears the figures after each summary."""
    periods = [(1.064 + 10 * n, 11.064 + 10 * n, 5000 + 1000 * n) for n in range(parts)]
    found = figures("filebench", of_filebench(periods, version=version))
    total = sum(count for _, _, count in periods)
    assert found["operations"] == total
    assert found["elapsed"] == pytest.approx(10 * parts, rel=1e-3)
    assert found["operation_rate"] == pytest.approx(total / (10 * parts), rel=1e-3)
    assert found["bandwidth"] == pytest.approx(2**20)


@pytest.mark.parametrize("version", ["1.4.9.1", "1.5-alpha3"])
def test_a_run_after_a_warm_up_is_not_added_to_it(version: str) -> None:
    """`stats clear` after a warm-up: nothing but its length tells it from a period of psrun."""
    periods = [(1.064, 11.064, 5000), (11.064, 71.064, 30000), (71.064, 81.064, 5000)]
    said = problem("filebench", of_filebench(periods, version=version))
    assert "filebench printed 3 summaries, and the last one does not cover all of its run" in said
    assert "1.1 s to 11.1 s, 11.1 s to 71.1 s" in said
    assert "in a file of its own" in said


@pytest.mark.parametrize("version", ["1.4.9.1", "1.5-alpha3"])
def test_filebench_that_ended_after_an_interim_summary_is_refused(version: str) -> None:
    periods = [(1.064, 11.064, 5000), (1.064, 21.064, 9000)]
    said = problem("filebench", of_filebench(periods, version=version, end=False))
    assert "ended after an interim summary" in said


def test_two_runs_without_a_version_line_are_two_runs() -> None:
    """Scripts of one length print summaries at nearly the same moment after their own beginning."""
    one = of_filebench([(1.064, 61.065, 90000)], pid=None).split("\n", 1)[1]
    two = of_filebench([(1.070, 61.071, 95000)], pid=None).split("\n", 1)[1]
    assert [output.measurements[1].value for output in read_log("filebench", one + two)] == [90000, 95000]
    pasted = ["\n".join(line for line in text.split("\n") if "ops" in line or "Per-Op" in line) for text in (one, two)]
    assert [each.measurements[1].value for each in read_log("filebench", "\n".join(pasted))] == [90000, 95000]


# --- pasted -----------------------------------------------------------------------------------------------------------


LOGS = {
    "dd/write-1m.stderr": "dd", "filebench/fileserver.stdout": "filebench", "filebench/1.4.9.1.stdout": "filebench",
    "fs_mark/S1-L2.stdout": "fs_mark", "fs_mark/verbose.stdout": "fs_mark",
    "pg_test_fsync/ramfs.stdout": "pg_test_fsync",
}  # fmt: skip


@every_row("log", [name for name, tool in LOGS.items() if tool in ("fs_mark", "pg_test_fsync")])
@every_row("blanks", ["tabs as blanks", "blanks as tabs", "one blank"])
def test_columns_that_lost_their_tabs_or_blanks(log: str, blanks: str) -> None:
    tool, text = LOGS[log], recorded(log)
    squeezed = {
        "tabs as blanks": text.replace("\t", "        "),
        "blanks as tabs": "\n".join("\t".join(part for part in line.split("  ") if part) for line in text.split("\n")),
        "one blank": "\n".join(" ".join(line.split()) for line in text.split("\n")),
    }[blanks]
    assert figures(tool, squeezed) == figures(tool, text)


@pytest.mark.parametrize("log", ["fs_mark/S1-L2.stdout", "fs_mark/verbose.stdout"])
def test_a_row_of_fs_mark_that_was_cut_is_refused_where_widths_tell(log: str) -> None:
    text = recorded(log).rstrip()
    assert "each column in its full width" in problem("fs_mark", text[:-2] + "\n")
    assert "each column in its full width" in problem("fs_mark", " ".join(text[:-2].split(" ")))


# --- found in logs of others ------------------------------------------------------------------------------------------


def test_a_table_with_a_rate_in_brackets_is_no_summary_of_dd() -> None:
    text = recorded("dd/write-1m.stderr")
    table = "FIO   4k random read   2793 IOPS (11175 KB/s)\nHDParm   disk read   88.31 MB/sec\n"
    (output,) = [each for each in read_log("dd", text + table) if each.problem is None]
    assert {f"{r.metric} {r.label}".strip(): r.value for r in output.measurements} == figures("dd", text)
    assert len(read_log("dd", text + table)) == 1


def test_progress_of_bsd_is_no_summary() -> None:
    rows = "10240+0 records in\n10240+0 records out\n"
    summary = "10737418240 bytes transferred in 31.114429 secs (345094501 bytes/sec)\n"
    progress = "  10600000000 bytes (11 GB, 9.9 GiB) transferred 31.000s, 342 MB/s\n"
    (output,) = read_log("dd", progress + rows + summary)
    assert [row.value for row in output.measurements if row.metric == "elapsed"] == [pytest.approx(31.114429)]
    assert figures("dd", rows + summary)["bytes"] == 10737418240


@pytest.mark.parametrize("comma", [".", ","])
def test_progress_of_dd_with_fractions_of_a_second_is_no_summary(comma: str) -> None:
    """coreutils 8.24 to 8.29 print it so; a carriage return became the end of a line where it was pasted."""
    rows = "7500+0 records in\n7500+0 records out\n"
    progress = "7759462400 bytes (7.8 GB, 7.2 GiB) copied, 2021.05 s, 3.8 MB/s\n".replace(".", comma)
    summary = "7864320000 bytes (7.9 GB, 7.3 GiB) copied, 2048.21 s, 3.8 MB/s\n".replace(".", comma)
    (output,) = read_log("dd", progress + rows + summary)
    assert {row.metric: row.value for row in output.measurements}["bytes"] == 7_864_320_000
    assert len(read_log("dd", progress + summary)) == 2  # what `grep copied` leaves of two runs
    assert len(read_log("dd", rows + summary + rows + summary)) == 2


def test_as_many_bytes_twice_are_one_run_only_where_the_seconds_tell() -> None:
    """The first line may be the progress before a long flush, or a run whose rows were left out."""
    rows = "256+0 records in\n256+0 records out\n"
    first = "1073741824 bytes (1.1 GB, 1.0 GiB) copied, 31.6279 s, 33.9 MB/s\n"
    (one,) = read_log("dd", first + rows + "1073741824 bytes (1.1 GB, 1.0 GiB) copied, 31.6423 s, 33.9 MB/s\n")
    assert {row.metric: row.value for row in one.measurements}["elapsed"] == 31.6423
    (doubt,) = read_log("dd", first + rows + "1073741824 bytes (1.1 GB, 1.0 GiB) copied, 35.6423 s, 30.1 MB/s\n")
    assert not doubt.measurements
    assert doubt.problem is not None
    assert "may be dd's progress, or another run" in str(doubt.problem)
    assert "line 1" in str(doubt.problem)
    assert "take this line away where it is progress" in str(doubt.problem)


def test_a_complaint_of_dd_is_quoted_with_the_lines_near_it() -> None:
    noise = "".join(f"note {place} of a long file\n" for place in "abcdefgh")
    said = problem("dd", noise + "dd: error writing 'x': Input/output error\n" + noise.replace("note", "word"))
    assert "note h of a long file" in said
    assert "note a of" not in said
    assert "word h of" not in said


def test_periods_of_filebench_without_a_version_line_are_one_run_too() -> None:
    periods = [(1.064 + 10 * n, 11.064 + 10 * n, 5000 + n) for n in range(3)]
    assert figures("filebench", of_filebench(periods).partition("\n")[2])["operations"] == 15003


@pytest.mark.slow
@given(st.sampled_from(["dd", "filebench", "fs_mark", "pg_test_fsync"]), st.text(max_size=60))
def test_a_text_that_is_of_no_tool_is_refused_and_not_more(tool: str, text: str) -> None:
    with pytest.raises(ParseError, match="no output of"):
        read_log(tool, f"{text.replace('0', '')}\n")


def test_a_filebench_of_microseconds_is_named() -> None:
    text = of_filebench([(1.064, 11.064, 5000)], version="1.5-alpha3").replace("0.3ms/op", "0.185 us/op")
    assert "this filebench was changed: it counts latencies in us" in problem("filebench", text)


@every_row(("latency", "wrong"), [("0.312ms/op", False), ("0.3ms/op", True), ("0.0ms/op", False)])
def test_a_mean_that_filebench_gets_wrong_is_left_out_with_a_note(latency: str, wrong: bool) -> None:
    text = of_filebench([(1.064, 11.064, 5000)], version="1.5-alpha3")
    (output,) = read_log("filebench", text.replace("0.312ms/op", latency))
    assert any("wrong mean latency" in note for note in output.notes) == wrong
    means = {row.label for row in output.measurements if row.metric == "operation_latency"}
    assert ("" in means) == (latency == "0.312ms/op")


def test_a_summary_of_filebench_1_3_is_read() -> None:
    text = (
        " 8395: 29.347: IO Summary:      21272 iops 2126.0 iops/s, (1063/1063 r/w)  32.1mb/s,    338us cpu/op,   "
        "0.3ms latency\n"
    )
    found = figures("filebench", text)
    assert (found["operations"], found["operation_rate"], found["operation_latency"]) == (21272, 2126, 0.0003)
    assert found["bandwidth"] == 32.1 * 2**20


def test_fs_mark_without_its_header_is_read_and_says_so() -> None:
    text = recorded("fs_mark/S1-L2.stdout")
    (output,) = read_log("fs_mark", text[text.index("FSUse%") :])
    assert output.measurements == read_log("fs_mark", text)[0].measurements
    assert "fs_mark's header is not in this text" in output.notes[0]
    stamped = text.replace("\n#\tVersion", "\n2021-06-07 09:52:25 fs_mark -d x\n#\tVersion")
    assert figures("fs_mark", stamped + "\nAverage Files/sec: 8324.0\np50 Files/sec: 8324\n") == figures(
        "fs_mark", text
    )


def test_the_first_sections_of_pg_test_fsync_are_read_alone() -> None:
    text = recorded("pg_test_fsync/ext4.stdout")
    (output,) = read_log("pg_test_fsync", text[: text.index("Compare open_sync")])
    assert len(output.measurements) == 2 * 8
    assert output.notes == ("the rows of its last 8 tests are not in this text",)
    said = problem("pg_test_fsync", text[: text.index("        fdatasync")] + text[text.index("Compare open_sync") :])
    assert "a row of pg_test_fsync's cannot be read" in said

"""The table of all trials, what ran, and the tables that a page holds to be saved."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from importlib import import_module
from typing import Any
from urllib.parse import unquote

import html5lib
import pandas as pd
import pytest
from facts import known
from mountlab.analysis.run_view import TrialRecord
from mountlab.core import numbers
from mountlab.filesystems.counters import Around
from mountlab.filesystems.evidence import DeviceBytes
from mountlab.filesystems.making import BlockDevice
from mountlab.report import html, sections
from mountlab.report.sections.commands import NOT_RECORDED
from mountlab.results.tables import tables
from pages import Page
from synthetic_run import SyntheticRun, synthetic_run

RUN = synthetic_run()
# In their package a function has the name of each.
trials_part, downloads_part = (import_module(f"mountlab.report.sections.{name}") for name in ("trials", "downloads"))


def tables_of(part: html.Html) -> list[pd.DataFrame]:
    """The tables of a part as they are on the page, every cell as text; a heading of rows is a row of its own."""
    document = html5lib.parse(part, namespaceHTMLElements=False)
    return [_frame([[" ".join("".join(cell.itertext()).split()) for cell in row] for row in table.iter("tr")])
            for table in document.iter("table")]  # fmt: skip


def _frame(rows: list[list[str]]) -> pd.DataFrame:
    return pd.DataFrame([row * (len(rows[0]) if len(row) == 1 else 1) for row in rows[1:]], columns=rows[0])


def columns_of(run: SyntheticRun) -> pd.DataFrame:
    """The table of all trials."""
    return tables_of(sections.trials(run))[-1]


# --- trials -----------------------------------------------------------------------------------------------------------


def test_a_trial_has_its_figure_and_its_multiple_of_the_mean_of_its_cell() -> None:
    table = columns_of(RUN)
    trial = RUN.trials[(RUN.trials.cell == "ext4/dd-write") & ~RUN.trials.warmup].iloc[0]
    rows = RUN.measurements
    value = rows[(rows.trial_id == trial.trial_id) & (rows.metric == "write_bandwidth")].value.item()
    mean = RUN.estimates[(RUN.estimates.cell == trial.cell) & (RUN.estimates.metric == "write_bandwidth")][
        "mean"
    ].item()
    place = list(table.columns).index("Write bandwidth, GB/s")
    shown = table[table["Trial"] == trial.trial_id].iloc[0, place : place + 2]
    assert [each.strip() for each in shown] == [f"{value / 1e9:.3g}", numbers.number(value / mean, 2)]


def test_a_trial_has_what_the_box_did_meanwhile() -> None:
    table = columns_of(RUN).set_index("File system")
    assert set(table["Processors, %"]) == {"42"}
    assert set(table.loc["ext4", "Device read, MB"].str.strip()) == {"67.1"}
    assert set(table.loc["tmpfs", "Device read, MB"].str.strip()) == {""}


def test_a_column_without_a_value_is_left_out() -> None:
    bare = {trial_id: TrialRecord() for trial_id in RUN.records}
    assert {"Device read, MB", "Processors, %", "Raw output"} & set(columns_of(replace(RUN, records=bare))) == set()


def test_names_of_files_become_links_where_the_page_stands_beside_them() -> None:
    text = sections.trials(RUN)
    assert Page(text).values("href") == []
    links = Page(html.with_links_beside(text)).values("href", "a")
    assert {"raw/t0001/", "raw/t0001/argv", "raw/t0001/stdout"} <= set(links)
    assert "raw/t0001/after.txt" not in links
    assert "data-beside" not in sections.trials(replace(RUN, records={})), "without files there is no link"
    hostile = html.with_links_beside(html.beside('raw/"onclick="x', "a"))
    assert hostile == '<a href="raw/%22onclick=%22x">a</a>', "no name leaves the directory"


@pytest.mark.slow
def test_a_large_run_shows_the_first_trials_and_says_where_all_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials_part, "MOST_ROWS", 100)
    assert len(columns_of(RUN)) == 100
    assert "The first 100 of 126 trials; trials.csv (Downloads) has all of them." in repr(sections.trials(RUN))
    assert len(saved(RUN)["trials"]) == 126


@pytest.mark.slow
def test_a_run_of_four_hundred_trials_stays_small() -> None:
    large = synthetic_run(blocks=20)
    assert len(large.trials) > 400
    parts = (sections.trials, sections.commands, sections.downloads)
    assert sum(len(part(large).encode()) for part in parts) < 1_500_000


# --- downloads --------------------------------------------------------------------------------------------------------


def saved(run: SyntheticRun) -> dict[str, pd.DataFrame]:
    """The tables that the page would save, by name."""
    page = Page(sections.downloads(run))
    names = [re.fullmatch(r"(.+)-(\w+)\.csv", name) for name in page.values("download", "a")]
    texts = [unquote(address.partition(",")[2]) for address in page.values("href", "a")]
    return {each[2]: pd.read_csv(io.StringIO(text)) for each, text in zip(names, texts, strict=True) if each}


def test_the_tables_that_are_saved_are_those_of_the_run() -> None:
    found = saved(RUN)
    assert list(found) == ["estimates", "comparisons", "trials", "measurements"]
    for name in ("estimates", "comparisons", "measurements"):
        expected = tables(RUN)[name]
        assert list(found[name].columns) == list(expected.columns)
        numeric = [column for column in expected if pd.api.types.is_float_dtype(expected[column])]
        pd.testing.assert_frame_equal(found[name][numeric], expected[numeric].reset_index(drop=True), rtol=0, atol=0)


def test_trials_are_saved_with_the_columns_of_their_table_in_base_units() -> None:
    record = replace(RUN.records["t0001"], device=DeviceBytes(3, 4), around=Around(busy=0.25))
    first = saved(replace(RUN, records={**RUN.records, "t0001": record}))["trials"].iloc[0]
    assert (first.device_bytes_read, first.device_bytes_written, first.processor_share) == (3, 4, 0.25)
    rows = RUN.measurements[RUN.measurements.trial_id == "t0001"].set_index("metric")["value"]
    (metric,) = RUN.answer_metrics[RUN.sweep.combinations[first.cell].workload.label]
    assert first[metric] == rows[metric]


def test_what_is_too_large_is_named_with_the_command_that_writes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(downloads_part.MOST_BYTES, "measurements", 1000)
    text = repr(sections.downloads(RUN))
    assert "measurements" not in saved(RUN)
    assert re.search(r"Too large for this page: measurements\.csv \([\d.]+ kB\)", text)
    assert "mountlab export results/20261120-093000-ramdisk-local --format csv" in text


def test_a_saved_table_holds_no_formula_and_the_address_no_markup() -> None:
    trials = RUN.trials.assign(reason='=HYPERLINK("x")<&>"\u202e')
    run = replace(RUN, trials=trials)
    assert set(saved(run)["trials"]["reason"]) == {'\'=HYPERLINK("x")<&>"[U+202E]'}
    assert Page(sections.downloads(run)).active() == set()


# --- commands ---------------------------------------------------------------------------------------------------------


def made_rows(run: SyntheticRun) -> list[tuple[str, str]]:
    table = tables_of(sections.commands(run))[0]
    return list(zip(table["What"], table["As it was"], strict=True))


def test_each_file_system_is_told_with_its_commands_its_line_and_its_queues() -> None:
    rows = made_rows(RUN)
    own = dict(rows[rows.index(("▲ ext4", "▲ ext4")) :])
    assert own["Made by"] == "mke2fs -q -t ext4 {device}"
    assert own["mountinfo"].startswith("42 27 7:0 / /var/tmp/mountlab-root/")
    assert own["Device"] == "loop0 on vda"
    assert own["Scheduler"] == "loop0: none; vda: mq-deadline"
    assert own["Read-ahead"] == "loop0: 128KiB; vda: 128KiB"
    first = dict(rows[: rows.index(("■ ramfs", "■ ramfs"))])
    assert first["Made by"] == first["Device"] == "none"
    assert "Scheduler" not in first


def test_what_differs_from_mount_to_mount_is_told_with_how_many() -> None:
    slow = (BlockDevice("7:0", "loop0", "none", 4096), *RUN.setups[0].devices[1:])
    setups = [replace(each, devices=slow) if each.mount == "m3-ext4" else each for each in RUN.setups]
    rows = [row for row in made_rows(replace(RUN, setups=setups)) if row[0].startswith("Read-ahead")]
    assert rows == [
        ("Read-ahead 5 of 6 mounts", "loop0: 128KiB; vda: 128KiB"),
        ("Read-ahead 1 of 6 mounts", "loop0: 4KiB; vda: 128KiB"),
    ]


def test_a_run_of_an_earlier_version_says_what_was_not_recorded() -> None:
    facts = known(RUN.info.facts, block_devices=[{"name": "vda", "scheduler": "bfq"}])
    bare = (BlockDevice("7:0", "loop0"), BlockDevice("254:0", "vda"))
    old = [replace(each, commands=None, devices=bare[: len(each.devices)]) for each in RUN.setups]
    run = replace(RUN, setups=old, info=replace(RUN.info, facts=facts))
    rows = made_rows(run)
    own = dict(rows[rows.index(("▲ ext4", "▲ ext4")) :])
    assert own["Made by"] == own["Mounted by"] == NOT_RECORDED
    assert own["Scheduler"] == f"loop0: {NOT_RECORDED}; vda: bfq when the run began"
    assert own["Read-ahead"] == f"loop0: {NOT_RECORDED}; vda: {NOT_RECORDED}"
    assert f"What was run before is {NOT_RECORDED}." in repr(sections.commands(run))


def test_cells_that_ran_one_command_are_told_once() -> None:
    table = tables_of(sections.commands(RUN))[1]
    assert list(table["Workload"]) == [workload.label for workload in RUN.sweep.workloads]
    assert set(table["File systems"]) == {"all 3"}
    gone = "ramfs/dd-write"
    trials = RUN.trials[RUN.trials.cell != gone]
    fewer = tables_of(sections.commands(replace(RUN, sweep=replace(RUN.sweep, excluded=(gone,)), trials=trials)))[1]
    assert set(fewer["File systems"][fewer["Workload"] == "dd-write"]) == {"all 2"}
    assert re.search(
        r"not measured touch \S+ # measured dd --directory=\{directory\} --cache=cold$", table["Command"][1]
    )


def test_a_file_system_that_ran_another_command_is_told_apart() -> None:
    ids = RUN.trials[RUN.trials.cell == "ext4/dd-write"].trial_id
    other = {trial_id: replace(RUN.records[trial_id], argv=("dd", "other")) for trial_id in ids}
    table = tables_of(sections.commands(replace(RUN, records={**RUN.records, **other})))[1]
    own = table[table["Workload"] == "dd-write"]
    assert sorted(own["File systems"]) == ["ext4", "tmpfs, ramfs"]


@pytest.mark.parametrize(
    ("tool", "options", "said"),
    [
        ("dd", {"direction": "read", "iflag": "direct", "bs": 2**20, "count": 4}, ["read", "1", "1", "yes", "4MiB"]),
        (
            "fio",
            {"rw": "randrw", "size": 2**20, "numjobs": 3, "ioengine": "libaio", "iodepth": 32, "bs": 4096},
            ["libaio", "32", "3", "no", "3MiB"],
        ),
    ],
)
def test_how_a_workload_does_its_io(tool: str, options: dict[str, Any], said: list[str]) -> None:
    workloads = tuple(replace(w, tool=tool, options=options) for w in RUN.sweep.workloads)
    run = replace(RUN, sweep=replace(RUN.sweep, workloads=workloads))
    table = tables_of(sections.commands(run))[1]
    assert list(table.loc[0, ["Engine", "Depth", "Jobs", "Direct", "Size"]]) == said


def test_logs_from_elsewhere_have_no_commands() -> None:
    run = replace(RUN, sweep=replace(RUN.sweep, imported=True))
    assert sections.commands(run).startswith(html.NOTHING)

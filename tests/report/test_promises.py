"""What devices are promised, as the report shows it."""

from __future__ import annotations

from dataclasses import replace

from mountlab.core.promises import Promise
from mountlab.report import sections
from mountlab.report.terminal import run_answer
from pages import Page
from synthetic_run import SyntheticRun, synthetic_run

WRITES = Promise(metric="write_bandwidth", value=1e8, by=("dd-write",), burst=1e9)
READS = Promise(metric="read_latency_p99", value=1.0, by=("<b>",))


def promised(*promises: Promise) -> SyntheticRun:
    run = synthetic_run()
    return replace(run, sweep=replace(run.sweep, promised={"ext4": promises}))


def test_the_first_screen_marks_each_promise() -> None:
    page = sections.answer(promised(WRITES, READS))
    text = repr(page)
    assert "Promised by the device of ext4:" in text
    assert "✓ Write bandwidth of at least 100 MB/s : kept, 379 [" in text
    assert "under dd-write (above what was promised: within the burst figure of 1.00 GB/s)." in text
    assert "– 99th-percentile read completion latency of at most 1.00 s : not asked (" in text
    assert "&lt;b&gt;" in page._repr_html_()
    assert "Promised by the device of ext4: Write bandwidth" in run_answer(promised(WRITES))


def test_the_section_has_a_row_for_each_promise_and_workload() -> None:
    page = Page(sections.promised(promised(replace(WRITES, by=()), READS))._repr_html_())
    assert "Device of ext4" in page.words
    assert page.words.count("Write bandwidth of at least") == 3  # of dd and of two workloads of fio
    assert "hold at 95\u00a0% for all 3 figures together" in page.words


def test_without_promises_the_section_says_so() -> None:
    assert "names no promises" in repr(sections.promised(synthetic_run()))
    assert "Promised" not in repr(sections.answer(synthetic_run()))

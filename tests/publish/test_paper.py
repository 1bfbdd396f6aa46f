"""Tables and figures for papers: sensible digits, the size that was asked for, and text that stays text."""

from __future__ import annotations

import io
import math
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from mountlab.__main__ import PIPE_CLOSED, main
from mountlab.core.errors import InputError
from mountlab.publish import paper
from mountlab.publish.export import Pivot, export_files, paper_files
from mountlab.publish.figure_files import figure_files
from mountlab.publish.paper import PaperTable, estimate_tables, latex, latex_text, markdown, markdown_text, mean_text
from mountlab.results.store import load_run
from results.test_store import written
from rows import every_row
from synthetic_run import WORKLOADS, comparison, synthetic_run

HOSTILE = (
    r"\input{/etc/passwd}", r"\write18{rm -rf ~}", r"a & b \\ c", "100 % of $x$ #1 _y_ ^z", "~{}[]<>|\"'`", "--- ?` !`",
    "a | b | c", "<script>alert(1)</script>", "![x](http://x)", "**bold** `code`", "line\nbreak\r\n| cell |",
    "\x07\x1b[31m",
)  # fmt: skip
COMMANDS = {
    r"\textbackslash{}", r"\textasciicircum{}", r"\textasciitilde{}", r"\textless{}", r"\textgreater{}",
    r"\textbar{}", r"\textquotedbl{}", r"\textmu{}", r"\pm", r"\times", r"\infty", r"\,", r"\{", r"\}", r"\$", r"\&",
    r"\#", r"\_", r"\%",
}  # fmt: skip


# --- digits -----------------------------------------------------------------------------------------------------------


@every_row(
    ("values", "text"),
    [
        ((2.7134e9, 2.6534e9, 2.7734e9), "2.71 ± 0.06"),
        ((139e6, 126e6, 152e6), "0.139 ± 0.013"),
        ((2.7134e9, math.nan, math.nan), "2.71"),
        ((2.7134e9, 2.6e9, math.inf), "2.71"),
        ((2.0e9, 1.0e9, 4.0e9), "2.00 [1.00, 4.00]"),
    ],
)
def test_a_mean_and_its_half_width_have_the_same_digits(values: tuple[float, float, float], text: str) -> None:
    assert mean_text(*values, factor=1e9) == text


def test_every_cell_has_a_row_in_the_order_of_the_sweep_in_one_unit() -> None:
    run = synthetic_run()
    tables = estimate_tables(run.estimates.sample(frac=1, random_state=1), run.sweep)
    table = tables["estimates-write_bandwidth"]
    assert table.head == ("file system", "workload", "write bandwidth, GB/s", "n")
    expected = [tuple(cell.id.split("/", 1)) for cell in run.sweep.cells if "write" in cell.id]
    assert [row[:2] for row in table.rows] == expected
    own = run.estimates.set_index(["cell", "metric"])["mean"]
    for row in table.rows:
        assert float(row[2].split(" ")[0]) == pytest.approx(
            own[f"{row[0]}/{row[1]}", "write_bandwidth"] / 1e9, rel=0.005
        )


def test_comparisons_have_the_interval_that_holds_for_all_of_them() -> None:
    each = comparison(low_all=5.9, high_all=8.1)
    table = paper.comparison_table([each], synthetic_run().sweep)
    assert table.rows == (("dd-write", "write bandwidth", "tmpfs / ext4", "6.9", "[5.9, 8.1]", "5", "faster"),)


@pytest.mark.slow
def test_a_pivot_shows_means_with_half_widths(results_dir: Path) -> None:
    wanted = Pivot.read("filesystem:cache", "read_bandwidth", "GB/s")
    run = load_run(written(results_dir))
    ((name, content),) = paper_files(run, "markdown", wanted).items()
    assert name == "read_bandwidth-by-cache.md"
    lines = content.decode().splitlines()
    assert lines[0] == "Read bandwidth, GB/s: mean ± half width of the interval"
    cells = [re.split(r" *\| *", line)[1:-1] for line in lines[4:]]
    assert [row[0] for row in cells] == ["ext4", "tmpfs"]
    means = run.estimates.query("metric == 'read_bandwidth'").set_index(["filesystem", "cache"])["mean"] / 1e9
    for row in cells:
        for cache, cell in zip(("cold", "warm"), row[1:], strict=True):
            assert re.fullmatch(r"\d+\.?\d* ± \d+\.?\d*", cell)
            assert float(cell.split(" ")[0]) == pytest.approx(means[row[0], cache], rel=0.005)


# --- text stays text --------------------------------------------------------------------------------------------------


@every_row("text", HOSTILE)
def test_latex_prints_what_would_be_a_command(text: str) -> None:
    table = latex(PaperTable(text, (text, "n"), ((text, "1"),), frozenset({1})))
    rows = [line for line in table.splitlines() if line.endswith(r"\\")]
    assert len(rows) == 2
    for line in rows:
        cells = line.removesuffix(r" \\")
        assert len(re.findall(r"(?<!\\)&", cells)) == 1
        assert set(re.findall(r"\\(?:[a-z]+(?:\{\})?|.)", cells)) <= COMMANDS
        assert not re.search(r"(?<!\\)[%#_^~]|--", cells)
    assert not re.search(r"[\x00-\x08\x0e-\x1f]", table)


@every_row("text", HOSTILE)
def test_markdown_shows_what_would_be_markup(text: str) -> None:
    """Rendered by the library that Jupyter uses, the page shows the text and nothing else."""
    from nbconvert.filters.markdown_mistune import markdown2html_mistune

    table = markdown(PaperTable("c", ("t", "n"), ((text, "1"),), frozenset({1})))
    assert len(table.splitlines()) == 5
    page = str(markdown2html_mistune(table))
    cell = re.search(r"<td[^>]*>(.*?)</td>", page)
    assert cell is not None
    shown = re.sub("&lt;", "<", re.sub("&gt;", ">", re.sub("&quot;", '"', cell[1]))).replace("&amp;", "&")
    plain = re.sub(r"[\x00-\x1f\x7f]", " ", text)
    assert shown.split() == plain.split()


@pytest.mark.slow
@every_row("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", '=HYPERLINK("http://x")', "＝1"])
def test_no_text_in_csv_is_a_formula(text: str) -> None:
    frame = pd.DataFrame({"reason": [text, "ok"], "value": [-1.5, 2.0], text: ["a", "b"]})
    ((_, content),) = export_files({"t": frame}, synthetic_run().sweep, "csv").items()
    back = pd.read_csv(io.BytesIO(content), lineterminator="\n")
    assert [str(cell)[0] for cell in (back.columns[2], back.iloc[0, 0])] == ["'", "'"]
    assert back["value"].tolist() == [-1.5, 2.0], "numbers are numbers"
    assert back.iloc[1, 0] == "ok"


def test_a_whole_run_of_hostile_text_exports_as_text(tmp_path: Path) -> None:
    run = synthetic_run(hostile=r"\input{x} | <script> =1")
    for form in paper.FORMATS:
        for content in paper_files(run, form).values():
            assert b"<script>" not in content
            assert b"\\input{" not in content


def test_other_characters_are_as_latex_needs_them() -> None:
    assert latex_text("12 µs ± 3, −1, 2×, a--b") == r"12 \textmu{}s $\pm$ 3, $-$1, 2$\times$, a-{}-b"
    assert markdown_text("a_b|c") == r"a\_b\|c"


# --- figures ----------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.slow
def test_figures_have_the_width_that_was_asked_for(results_dir: Path) -> None:
    run = load_run(written(results_dir))
    svg = figure_files(run, "svg", width_cm=8.5)
    assert {"ratios.svg", "trials-1.svg", "run-order-1.svg", "bars-1.svg", "captions.txt"} <= set(svg)
    width = re.search(rb'<svg[^>]* width="([\d.]+)pt"', svg["ratios.svg"])
    assert width is not None
    assert float(width[1]) == pytest.approx(8.5 / 2.54 * 72, abs=1)
    small = synthetic_run(workloads=WORKLOADS[:1], blocks=2)
    png = figure_files(small, "png", width_cm=8.5)["ratios.png"]
    assert struct.unpack(">I", png[16:20])[0] == pytest.approx(8.5 / 2.54 * 300, abs=2)
    assert figure_files(small, "pdf", width_cm=17)["ratios.pdf"].startswith(b"%PDF")
    assert b"Ratios to ext4" in svg["captions.txt"]


@pytest.mark.slow
@every_row("width", [0, -1, 3.9, 61, math.nan, math.inf])
def test_a_width_that_no_paper_has_is_refused(width: float) -> None:
    with pytest.raises(InputError, match="not the width of a figure"):
        figure_files(synthetic_run(), "svg", width_cm=width)


# --- the verb ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_verb_writes_tables_and_figures(results_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(written(results_dir))
    for more in (["--format", "latex"], ["--format", "markdown"], ["--figures", "svg", "--width-cm", "12"]):
        assert main(["export", path, *more]) == 0
    said = capsys.readouterr().out.split()
    assert all(Path(name).stat().st_size for name in said)
    assert {Path(name).suffix for name in said} == {".tex", ".md", ".svg", ".txt"}


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--width-cm", "8"], ["--figures", "svg", "--metric", "read_bandwidth"]])
def test_what_does_not_go_together_is_said(
    arguments: list[str], results_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(written(results_dir)), *arguments]) == 2
    assert "for --figures" in (said := capsys.readouterr().err) or "are for tables" in said


@pytest.mark.long
def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    """What `... | head -1` does: more is written than a pipe holds, and nobody reads it."""
    log = tmp_path / "dd.txt"
    log.write_text("1+0 records in\n1+0 records out\n1024 bytes copied, 1 s, 1 kB/s\n" * 3000)
    argv: list[Any] = [sys.executable, "-m", "mountlab", "parse", "dd", log]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout
        assert running.stderr
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait() == PIPE_CLOSED

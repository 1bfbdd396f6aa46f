"""How values show themselves: as HTML in JupyterLab, as words in a terminal."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import mountlab
import pytest
from mountlab.core.findings import Caveat, Estimate, Interval
from mountlab.core.places import SHIPPED
from mountlab.core.shown import Several, Shown
from mountlab.results import store
from mountlab.results.store import Run
from sweeps import TMPFS, sweep

HOSTILE = "<script>alert(1)</script>"
ESTIMATE = Estimate(
    mean=598e6, low=586e6, high=610e6, sd=9.7e6, cv=0.016, n=5, level=0.95, method="mean, t interval", unit="B/s"
)
CAVEAT = Caveat(code="noisy", severity="warning", message=f"varies {HOSTILE}", scope="cell", subject="ext4/dd-write")


class Tags(HTMLParser):
    """The tags of a page, which must be closed in the order in which they were opened."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        self.open.extend([tag] if tag not in ("br", "img") else [])

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def in_ipython(value: Shown) -> str:
    """What IPython prints: it takes what the class itself has, before what its parents have."""
    told: list[str] = []
    type(value).__dict__["_repr_pretty_"](value, SimpleNamespace(text=told.append), False)
    return "".join(told)


@pytest.fixture(scope="module")
def run() -> Run:
    return store.load_run(SHIPPED / "tests" / "data" / "earlier_run")


@pytest.fixture(scope="module")
def values(run: Run) -> dict[str, Shown]:
    resolved = sweep(filesystems={"tmpfs": TMPFS, "t2": TMPFS}, baseline="tmpfs")
    return {
        "sweep": resolved.sweep,
        "resolved": resolved,
        "run": run,
        "estimate": ESTIMATE,
        "caveat": CAVEAT,
        "comparison": run.comparisons[0],
        "comparisons": Several(run.comparisons),
        "caveats": Several([CAVEAT]),
        "nothing": Several(),
    }


def test_each_is_html_in_the_colours_of_jupyterlab_and_words_in_a_terminal(values: dict[str, Shown]) -> None:
    for name, value in values.items():
        page = value._repr_html_()
        assert "var(--jp-" in page, name
        assert "style" in Tags(page).seen, name
        text = str(value).replace(HOSTILE, "")
        assert text, name
        assert re.search(r"<[a-z/!]", text) is None, name
        assert in_ipython(value) == str(value), name


def test_an_estimate_has_its_interval_unit_and_n() -> None:
    assert str(ESTIMATE) == "598 [586, 610] MB/s; mean, t interval at 95\u00a0%, n = 5, CV 1.6\u00a0%"
    assert "598 [586, 610] MB/s" in ESTIMATE._repr_html_()
    assert repr(ESTIMATE).startswith("Estimate(mean=598000000.0, low="), "every field, for who debugs"
    one = mountlab.estimate([5e8], unit="B/s")
    assert math.isnan(one.low)
    assert str(one) == "500 MB/s; mean, t interval on the log scale at 95\u00a0%, n = 1"


def test_a_comparison_is_its_sentence(run: Run) -> None:
    cold = next(c for c in run.comparisons if c.verdict == "faster")
    assert " times" in str(cold)
    assert "as fast as ext4" in str(cold)
    assert "n = 5 blocks" in cold._repr_html_()


def test_comparisons_are_one_table_with_a_row_each(run: Run) -> None:
    assert isinstance(run.comparisons, Several)
    assert run.comparisons._repr_html_().count("<tr") == len(run.comparisons) + 1
    assert str(run.comparisons).count("\n") == len(run.comparisons) - 1


def test_a_terminal_and_a_notebook_show_the_interval_for_all_comparisons_together(run: Run) -> None:
    """Defect: the text had each comparison's own interval beside the corrected verdict."""
    faster = next(comparison for comparison in run.comparisons if comparison.verdict == "faster")
    several = Several([replace(faster, ratio=5.0, own=Interval(4.9, 5.1, 0.95), joint=Interval(4.1, 6.2, 0.95))])
    for shown in (str(several), str(several[0]), several._repr_html_()):
        assert "4.1" in shown
        assert "6.2" in shown
        assert "4.9" not in shown


def test_a_caveat_says_what_to_do_with_the_figure_and_never_becomes_markup() -> None:
    assert str(CAVEAT).startswith("Doubt: noisy (ext4/dd-write): varies ")
    assert "script" not in Tags(CAVEAT._repr_html_()).seen
    assert "&lt;script&gt;" in CAVEAT._repr_html_()


def test_a_sweep_tells_its_question_cells_and_blocks() -> None:
    resolved = sweep(filesystems={"a": TMPFS, "b": TMPFS}, baseline="a", design={"warmup": 1}, question=HOSTILE)
    text = str(resolved)
    assert text == str(resolved.sweep)
    assert "a (tmpfs, baseline), b (tmpfs)" in text
    assert "2 blocks, after 1 block of warm-up" in text
    assert "script" not in Tags(resolved._repr_html_()).seen


def test_a_run_is_short_where_it_is_an_element_of_something_else(run: Run) -> None:
    assert repr([run]) == "[<Run tests/data/earlier_run: 54 trials>]"
    assert str(run).startswith("Run 20261120T101902-tour-local (complete; trials: 54 ok)")


def test_values_are_shown_in_html_only_where_that_is_asked_for() -> None:
    """The core knows no HTML: its looks are loaded when a value is first shown."""
    import subprocess
    import sys

    code = "import sys, mountlab.core.model; print('mountlab.report.html' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"

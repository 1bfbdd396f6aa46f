"""A box by hand on the local box: evidence and figures in the form of a sweep, nothing left, also of a killed notebook;
and the page and the notebook that show it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import mountlab
import pytest
from mountlab import sections
from mountlab.box.embedded import open_box
from mountlab.box.leftovers import Leftover, remove_leftovers
from mountlab.core.errors import BoxInUse
from mountlab.core.places import SHIPPED
from mountlab.report.execute import execute
from mountlab.results import paths, store
from mountlab.results.altered import altered
from mountlab.results.raw import text_files
from mountlab.results.store import Run
from mountlab.runner import workflow
from pages import Page
from project.test_docs import FENCE
from sweeps import EXT4, FIO, TMPFS, as_is

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("fio")]

RANDREAD = {**FIO, "rw": "randread"}
TINY = {"drop_caches": False, "shortest_trial": "0s", "trial_timeout": "60s"}


def leftovers() -> list[Leftover]:
    with open_box(paths.load_box("local")) as another:
        return remove_leftovers(another, dry_run=True)


def entry(raw: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in raw.items() if key != "type"}


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two file systems, one inside the other, each with two trials of fio."""
    with mountlab.box("local", results=tmp_path_factory.mktemp("results"), baseline="ext4", **TINY) as box:
        assert box.fabric.run("uname -r", hide=True).stdout.strip() == os.uname().release
        with box.mounted("ext4", **entry(EXT4)) as outer, box.mounted("tmpfs", **entry(TMPFS)) as inner:
            for place in (outer, inner):
                assert box.fabric.run(f"findmnt -n -o FSTYPE {place.path}", hide=True).stdout.strip() == place.name
            for _ in range(2):
                box.trial(outer, name="fio", **RANDREAD)
                box.trial(inner, name="fio", **RANDREAD)
        assert box.fabric.run(f"findmnt {outer.path}", hide=True, warn=True).exited == 1
    return mountlab.load_run(box.path)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The same as a sweep."""
    asked = as_is(
        filesystems={"ext4": EXT4, "tmpfs": TMPFS},
        workloads={"fio": RANDREAD},
        design={"fresh_filesystem": "never"},
        baseline="ext4",
    )
    return mountlab.load_run(workflow.run(asked, results=tmp_path_factory.mktemp("swept")))


def test_nothing_of_it_is_left_on_the_box(by_hand: Run) -> None:
    assert leftovers() == []
    assert by_hand.info.run_id not in Path("/proc/self/mountinfo").read_text()


def test_figures_have_the_form_of_a_sweeps(by_hand: Run, swept: Run) -> None:
    assert list(by_hand.trials["status"]) == ["ok"] * 4
    for frame in ("trials", "measurements", "estimates"):
        assert list(getattr(by_hand, frame).columns) == list(getattr(swept, frame).columns)
    # Whether a trial of a few milliseconds has percentiles, processor time or utilization is chance.
    kinds = [set(map(tuple, run.measurements[["cell", "metric", "label", "unit"]].values)) for run in (by_hand, swept)]
    about = [
        {kind for kind in each if "percentile" not in kind[1] and not re.search(r"p9|disk|_cpu", kind[1])}
        for each in kinds
    ]
    assert about[0] == about[1]
    pairs = [(each.candidate, each.baseline, each.metric, each.n) for each in by_hand.comparisons]
    assert pairs == [(each.candidate, each.baseline, each.metric, each.n) for each in swept.comparisons]


def test_evidence_has_the_form_of_a_sweeps(by_hand: Run, swept: Run) -> None:
    def files(run: Run, filesystem: str, column: str) -> set[str]:
        names = set(run.trials.loc[run.trials["filesystem"] == filesystem, column])
        return {file for name in names for file in text_files(run.path / "raw" / name)}

    for filesystem in ("ext4", "tmpfs"):
        for column in ("mount", "trial_id"):
            assert files(by_hand, filesystem, column) == files(swept, filesystem, column)
    states = [{(row.filesystem, row.option): row.state for row in run.options} for run in (by_hand, swept)]
    assert states[0] == states[1]
    assert states[0]["ext4", "noatime"] == "in effect"
    assert (by_hand.path / "raw" / "c-ext4").is_dir(), "ext4 was made once without its options"
    assert altered(by_hand.path) == []


def test_its_section_on_stopping_says_that_it_was_made_by_hand(by_hand: Run) -> None:
    words = Page(sections.stopping(by_hand)._repr_html_()).words
    assert words.endswith("Trials were asked for by hand: their number was not fixed beforehand.")


@pytest.mark.long
def test_its_report_says_that_it_was_made_by_hand(by_hand: Run) -> None:
    page = mountlab.write_report(by_hand.path).read_text()
    assert "their number was not fixed beforehand" in page
    assert "was fixed beforehand:" not in page


@pytest.mark.long
def test_a_box_is_not_opened_twice(tmp_path: Path) -> None:
    with mountlab.box("local", results=tmp_path), pytest.raises(BoxInUse, match="is running on this box") as error:
        mountlab.box("local", results=tmp_path)
    assert "this Python process" in error.value.next_step
    assert "close()" in error.value.next_step
    assert leftovers() == []


KILLED = """
import sys, mountlab
box = mountlab.box("local", results=sys.argv[1])
place = box.mounted("ext4", image="64MiB")
print(place.path, flush=True)
box.trial(place, tool="dd", direction="write", bs="1MiB", count=4)
print(box.path, flush=True)
sys.stdin.read()
"""


@pytest.mark.long
def test_what_a_killed_notebook_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", KILLED, str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        mounted, path = (process.stdout.readline().strip() for _ in range(2))
        assert f" {mounted} " in Path("/proc/self/mountinfo").read_text()
        process.send_signal(signal.SIGKILL)
    with mountlab.box("local", results=tmp_path):
        assert f" {mounted} " not in Path("/proc/self/mountinfo").read_text()
    killed = store.load_run(path)
    assert (killed.info.status, len(killed.trials)) == ("interrupted", 1)
    assert leftovers() == []


LARGE, SMALL = 'bs="4KiB", size="64MiB"', 'bs="4KiB", size="2MiB"'
"""Read in random order, from a disk that may be slow."""


@pytest.mark.long
def test_the_page_on_work_by_hand_says_what_works(tmp_path: Path) -> None:
    page = (SHIPPED / "docs" / "how-to" / "by-hand.md").read_text()
    code = "\n".join(body for language, body in FENCE.findall(page) if language == "python")
    assert (code.count(LARGE), code.count("n=10")) == (2, 1)
    done = subprocess.run(
        [sys.executable, "-c", code.replace(LARGE, SMALL).replace("n=10", "n=3")],
        env={**os.environ, "MOUNTLAB_RESULTS": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "dd-write" in done.stdout
    assert len(list(tmp_path.glob("*/report.html"))) == 0
    assert len(list(tmp_path.glob("*/run.json"))) == 2
    assert leftovers() == []


@pytest.mark.long
def test_the_notebook_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOUNTLAB_RESULTS", str(tmp_path / "results"))
    executed = tmp_path / "executed" / "by_hand.ipynb"
    name = paths.NOTEBOOKS / "12_by_hand.ipynb"
    execute(name, executed, {"box_name": "local", "n": 3, "runtime": "200ms"})
    text = executed.read_text()
    assert os.uname().release in text
    assert "<svg" in text
    assert "image/png" not in text, "the figure takes the colours of the theme"
    assert re.search(r"ext4: [\d,]+ random reads a second \[[\d,]+, [\d,]+\], n = 4", text)
    assert leftovers() == []

"""Sweeps whose cells are not all combinations, measured; and the plan of a sweep from such a run as its pilot."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from mountlab import __main__
from mountlab.analysis.compare.runs import compare_runs
from mountlab.report import sections
from mountlab.results import store
from mountlab.results.store import Run
from mountlab.runner import workflow
from ownbox import own_box
from pages import Page
from sweeps import DD_WRITE, DIR, TMPFS, as_is

pytestmark = [pytest.mark.long, pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("sshd")]
FILESYSTEMS = {"disk": DIR, "tmpfs": TMPFS}
WORKLOADS = {
    "w": {
        **DD_WRITE, "bs": ["64KiB", "256KiB", "1MiB"], "count": [4, 8], "vary": "one-at-a-time",
        "exclude": [{"bs": "1MiB"}], "also": [{"bs": "1MiB", "count": 2}],
    },
    "plain": DD_WRITE,
}  # fmt: skip
EXCLUDE = [{"filesystem": "tmpfs", "workload": "plain"}, {"filesystem": "disk", "workload": "w", "count": 8}]
CELLS = [
    "disk/w bs=64KiB count=4", "disk/w bs=256KiB count=4", "disk/w bs=1MiB count=2", "disk/plain",
    "tmpfs/w bs=64KiB count=4", "tmpfs/w bs=256KiB count=4", "tmpfs/w bs=64KiB count=8", "tmpfs/w bs=1MiB count=2",
]  # fmt: skip


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """One run, on a box that the tests of this file share."""
    place = tmp_path_factory.mktemp("factors")
    resolved = as_is(
        filesystems=FILESYSTEMS,
        workloads=WORKLOADS,
        exclude=EXCLUDE,
        baseline="disk",
        design={"repeats": 3, "drop_caches": False},
    )
    with pytest.MonkeyPatch.context() as patch:
        own_box(place, patch)
        yield store.load_run(workflow.run(resolved, results=place / "results"))


def test_only_what_the_sweep_has_is_measured_compared_and_reported(measured: Run) -> None:
    assert set(measured.trials["status"]) == {"ok"}, measured.trials[["cell", "reason"]]
    assert Counter(measured.trials["cell"]) == dict.fromkeys(CELLS, 3)
    assert set(measured.estimates["cell"]) == set(CELLS)
    compared = [(each.candidate, each.workload, *each.factors.values()) for each in measured.comparisons]
    assert sorted(compared) == [
        ("tmpfs", "w", "1MiB", "2"),
        ("tmpfs", "w", "256KiB", "4"),
        ("tmpfs", "w", "64KiB", "4"),
    ]
    assert not [caveat for caveat in measured.caveats if caveat.scope == "cell" and caveat.subject not in CELLS]
    parts = (sections.answer, sections.overview, sections.tables, sections.responses, sections.bar_charts)
    page = Page("".join(part(measured)._repr_html_() for part in parts))
    assert "not in the sweep" in page.words
    assert "No block holds" not in page.words


def test_the_plan_shows_cells_and_prediction(measured: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "next.yml"
    file.write_text(
        yaml.safe_dump({**measured.info.parameters, "design": {"repeats": 10, "warmup": 1, "drop_caches": False}})
    )
    assert __main__.main(["plan", str(file), "--pilot", str(measured.path)]) == 0
    text = capsys.readouterr().out
    assert "8 cells x 10 blocks" in text
    assert "w: 4 of the 9 combinations of bs (3) and count (3)" in text
    assert "tmpfs: without plain" in text
    assert "which has 8 of the 8 cells" in text
    assert "corrected for 3 comparisons" in text

    assert __main__.main(["plan", str(file), "--pilot", str(measured.path), "--json"]) == 0
    read = json.loads(capsys.readouterr().out)
    assert sorted(read["cells"]) == sorted(CELLS)
    assert read["excluded"] == ["disk/w bs=64KiB count=8", "tmpfs/plain"]
    assert len(read["order"]) == 8 * 11
    assert {each["blocks"] for each in read["pilot"]["predictions"]} == {10}
    assert read["pilot"]["expected_s"] > 0


@pytest.mark.machine
def test_two_runs_of_one_sweep_on_one_box_differ_in_nothing_that_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_box(tmp_path, monkeypatch)
    alike = {"repeats": 3, "seed": None, "drop_caches": False}
    resolved = as_is(filesystems=FILESYSTEMS, baseline="disk", design=alike)
    a, b = (store.load_run(workflow.run(resolved, results=tmp_path / "results")) for _ in range(2))
    found = compare_runs((a, b))
    elsewhere = {"swap_bytes", "swap_areas"}  # of this machine, where another worker's test may swap meanwhile
    assert {each.what for each in found.differences} <= elsewhere
    assert found.differences or "sides-alike" in {each.code for each in found.caveats}
    assert [each.cell.id for each in found.ratios] == ["disk/dd-write", "tmpfs/dd-write"]


def test_a_pilot_of_something_else_is_refused(
    measured: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "other.yml"
    file.write_text(yaml.safe_dump(as_is(filesystems={"other": DIR}).parameters))
    assert __main__.main(["plan", str(file), "--pilot", str(measured.path)]) == 2
    assert "error: the pilot has none of the cells of this sweep" in capsys.readouterr().err

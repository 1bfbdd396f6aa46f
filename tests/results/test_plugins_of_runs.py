"""What a run keeps of the plug-ins that it used, and what is said where others are installed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from copied_run import earlier_run
from installed import Site, install_example, site
from mountlab.__main__ import main
from mountlab.core import plugins
from mountlab.core.errors import FigureError, MountlabWarning, PlanError, PluginError, StoreError, UnsafeError
from mountlab.core.model import Filesystem, Measurement, Workload
from mountlab.filesystems import guarded_steps
from mountlab.programs.parsing import parsed
from mountlab.report import sections
from mountlab.results import raw, store, tables
from mountlab.results.info import read_info
from mountlab.runner import workflow
from mountlab.tools.base import ToolOutput
from runner.test_conform import SCRATCH
from sweeps import sweep

CHECKS_ONLY = {"mountlab-untar": {"version": "0.1.0", "checks": ["few-files"]}}
A_TOOL = {"mountlab-untar": {"version": "0.1.0", "tools": ["untar"], "checks": ["few-files"]}}


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    (tmp_path / "site").mkdir()
    with site(tmp_path / "site", monkeypatch) as made:
        yield made


def run_with(tmp_path: Path, used: Mapping[str, Any]) -> Path:
    """A recorded run that says that it used plug-ins; it has no seal against that."""
    path = earlier_run(tmp_path / "run")
    info = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**info, "plugins": used}))
    return path


def test_a_run_keeps_what_it_used_with_the_version(packages: Site) -> None:
    install_example(packages)
    packages.install("mountlab-other", "", {"tools": {"other": "Other"}})
    used = sweep(
        filesystems={"huge": {"type": "huge_tmpfs", "size": "64MiB"}}, workloads={"w": {"tool": "untar", "files": 9}}
    )
    of_all = {"checks": ["few-files"], "plots": ["time-per-file"]}
    assert plugins.record(used.sweep) == {
        "mountlab-untar": {"version": "0.1.0", "tools": ["untar"], "filesystems": ["huge_tmpfs"], **of_all}
    }
    assert plugins.record(sweep().sweep) == {"mountlab-untar": {"version": "0.1.0", **of_all}}


def test_a_file_system_below_an_overlay_is_kept_too(packages: Site) -> None:
    install_example(packages)
    over = sweep(filesystems={"o": {"type": "overlay", "over": {"type": "huge_tmpfs", "size": "64MiB"}}})
    assert plugins.record(over.sweep)["mountlab-untar"]["filesystems"] == ["huge_tmpfs"]


@pytest.mark.slow
def test_the_report_shows_them(packages: Site, tmp_path: Path) -> None:
    install_example(packages)
    run = store.load_run(run_with(tmp_path, A_TOOL))
    shown = str(sections.versions(run))
    assert "Plug-in mountlab-untar" in shown
    assert "0.1.0 (tools: untar; checks: few-files)" in shown
    assert "plug-ins-differ" not in {each.code for each in run.caveats}


@pytest.mark.slow
def test_without_a_check_that_looked_the_run_opens_with_a_warning_and_a_caveat(tmp_path: Path) -> None:
    path = run_with(tmp_path, CHECKS_ONLY)
    with pytest.warns(MountlabWarning, match=r"measured with mountlab-untar 0\.1\.0 .*: it is not installed now"):
        run = store.load_run(path)
    (caveat,) = (each for each in run.caveats if each.code == "plug-ins-differ")
    assert "mountlab-untar 0.1.0 (checks: few-files): it is not installed now" in caveat.message


@pytest.mark.slow
def test_with_another_version_reparse_says_so(
    packages: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install_example(packages)
    path = run_with(tmp_path, {"mountlab-untar": {"version": "0.0.9", "tools": ["untar"]}})
    assert main(["reparse", str(path)]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "was measured with mountlab-untar 0.0.9 (tools: untar): version 0.1.0 is installed now" in said
    assert "plug-ins-differ" in (path / "caveats.csv").read_text()


def test_without_its_tool_the_error_says_which_package_is_missing(tmp_path: Path) -> None:
    path = run_with(tmp_path, A_TOOL)
    for read in (store.load_run, tables.derive, workflow.resume):
        with pytest.raises(StoreError) as caught:
            read(path)
        assert caught.value.what == (
            "the run was measured with the plug-in mountlab-untar 0.1.0, which is not installed"
        )
        assert caught.value.got == "nothing that has tool untar"
        assert caught.value.next_step == "install it: .venv/bin/uv pip install mountlab-untar==0.1.0"


def test_a_run_is_not_resumed_with_another_version_of_its_tool(packages: Site, tmp_path: Path) -> None:
    install_example(packages)
    path = run_with(tmp_path, {"mountlab-untar": {"version": "0.0.9", "tools": ["untar"]}})
    with pytest.warns(MountlabWarning, match=r"0\.0\.9"), pytest.raises(PlanError, match="not as it was") as caught:
        workflow.check_same_plugins(path, read_info(path))
    assert caught.value.got == "mountlab-untar 0.1.0"
    assert caught.value.allowed == "mountlab-untar 0.0.9"


@pytest.mark.slow
def test_a_run_is_resumed_with_another_version_of_a_check(packages: Site, tmp_path: Path) -> None:
    install_example(packages)
    path = run_with(tmp_path, {"mountlab-untar": {"version": "0.0.9", "checks": ["few-files"]}})
    with pytest.warns(MountlabWarning, match=r"0\.0\.9"):
        workflow.check_same_plugins(path, read_info(path))


def test_an_extension_keeps_what_it_used_beside_what_was_used_before() -> None:
    later = {"at": "2026-11-23", "plugins": {"mountlab-untar": {"version": "0.1.0", "tools": ["untar"]}}}
    (used,) = plugins.recorded({"plugins": CHECKS_ONLY, "extensions": [later]})
    assert used.words == "mountlab-untar 0.1.0 (tools: untar; checks: few-files)"
    other = {"plugins": {"mountlab-untar": {"version": "0.2.0", "checks": ["few-files"]}}}
    assert [each.version for each in plugins.recorded({"plugins": CHECKS_ONLY, "extensions": [other]})] == [
        "0.1.0",
        "0.2.0",
    ]


@pytest.mark.parametrize("used", [{"x": 3}, {"x": {}}, {"x": {"version": "1", "tools": 7}}, {"x": None}])
def test_words_of_others_about_plug_ins_are_not_believed(tmp_path: Path, used: Mapping[str, Any]) -> None:
    with pytest.raises(StoreError, match="not a run of Mountlab's"):
        read_info(run_with(tmp_path, used))


@pytest.mark.slow
def test_nothing_is_loaded_because_a_run_names_it(packages: Site, tmp_path: Path) -> None:
    packages.install("mountlab-other", "raise SystemExit(9)", {"plots": {"other": "Other"}})
    path = run_with(tmp_path, {"os": {"version": "1", "checks": ["system"]}})
    with pytest.warns(MountlabWarning, match="it is not installed now"):
        assert store.load_run(path).sweep


# --- mistakes of a plug-in --------------------------------------------------------------------------------------------


BAD = """
from mountlab.filesystems.ext import Ext4
from mountlab.core.model import Step
class Bad(Ext4):
    type = "bad_ext4"
    kernel_types = ("ext4",)
    def steps(self, fs, place):
        return (*super().steps(fs, place), Step(argv=("wipefs", "-a", "{device}"), why="a mistake"))
    def capacity_bytes(self, fs):
        return {}["no such key"]
"""


def test_a_file_system_that_goes_round_the_guard_is_refused_before_anything_is_touched(packages: Site) -> None:
    packages.install("mountlab-bad", BAD, {"filesystems": {"bad_ext4": "Bad"}})
    fs = Filesystem(name="f", type="bad_ext4", device="data")
    with pytest.raises(UnsafeError) as caught:
        guarded_steps(fs, SCRATCH)
    assert "wipefs -a {device}" in caught.value.got
    assert "mountlab-bad" in caught.value.next_step
    assert guarded_steps(Filesystem(name="f", type="ext4", device="data"), SCRATCH)


def test_an_error_anywhere_in_a_plug_in_names_it_and_is_no_traceback(
    packages: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = BAD.replace("def steps", "def check(self, fs, *, where):\n        [][3]\n    def other_steps")
    packages.install("mountlab-bad", source, {"filesystems": {"bad_ext4": "Bad"}})
    file = tmp_path / "s.yml"
    file.write_text(
        "question: Does it?\nfilesystems: {b: {type: bad_ext4, image: 64MiB}}\n"
        "workloads: {w: {tool: dd, direction: write, count: 8}}\n"
    )
    assert main(["sweep", "check", str(file)]) == PluginError.exit_code
    said = capsys.readouterr().err
    assert "the plug-in mountlab-bad 1.0 failed" in said
    assert "IndexError: list index out of range (" in said
    assert "Traceback" not in said


def test_an_error_of_our_own_stays_what_it_is(packages: Site) -> None:
    install_example(packages)
    with pytest.raises(ZeroDivisionError), plugins.blaming():
        raise ZeroDivisionError


@pytest.mark.slow
def test_a_trial_that_was_recorded_with_what_is_no_figure_is_invalid_and_the_run_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a version that did not check what a plug-in gave."""
    path, read = earlier_run(tmp_path / "run"), list[str]()
    whole = store.load_run(path)

    def of_plugin(workload: Workload, output: ToolOutput) -> list[Measurement]:
        read.append(workload.name)
        if len(read) == 1:
            raise FigureError("the plug-in mountlab-slow 1.0 gave no figures: None")
        return parsed(workload, output)

    monkeypatch.setattr(raw, "parsed", of_plugin)
    run = store.load_run(path)
    (refused,) = run.trials[run.trials["status"] == "invalid"].to_dict("records")
    assert refused["reason"] == "the plug-in mountlab-slow 1.0 gave no figures: None"
    assert set(whole.measurements["trial_id"]) - set(run.measurements["trial_id"]) == {refused["trial_id"]}
    assert "mountlab-slow 1.0" in " ".join(each.message for each in run.caveats if each.code == "failed-trials")

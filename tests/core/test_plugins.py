"""Plug-ins: found by their entry points, loaded when they are asked for, and refused with names and reasons."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from checks.test_checks import build, make
from installed import Site, site
from mountlab.__main__ import main
from mountlab.checks import CHECKS, find_caveats, foresee
from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import MountlabWarning, ParameterError, ParseError, PluginError
from mountlab.core.model import Place, Workload
from mountlab.core.places import SHIPPED
from mountlab.filesystems import FAMILIES
from mountlab.outcome.consequences import CellEnds, consequence_of
from mountlab.outcome.judging import ScriptExit, judge
from mountlab.programs import TOOLS
from mountlab.programs.parsing import parsed
from mountlab.publish import figure_files as figures_of_reports
from mountlab.report import sections
from mountlab.report.sections.figures import PLOTS
from mountlab.sweep.feasible import all_programs
from mountlab.tools.base import ToolOutput
from sweeps import DD_WRITE, sweep
from synthetic_run import synthetic_run

TOOL = """
from mountlab.core.model import Program, everywhere
from mountlab.programs.dd import Dd
class Slow(Dd):
    name = "slow_dd"
    programs = (Program(name="slowdd", packages=everywhere("slow"), version=("slowdd", "-V")),)
    def parse(self, workload, output):
        return {}["no such key"]
"""
FAMILY = """
from mountlab.filesystems.memory import Tmpfs
class Huge(Tmpfs):
    type = "huge_tmpfs"
    kernel_types = ("tmpfs",)
"""
CHECK = """
from mountlab.checks.base import Check, Doubt
def find(evidence):
    "A check of a plug-in."
    yield Doubt.of_run("seen by a plug-in")
def foresee(sweep, facts):
    yield Doubt.of_run("foreseen by a plug-in")
def fail(evidence):
    raise ZeroDivisionError("by a plug-in")
    yield
SEEN = Check("seen", find, "Look.", foresee=foresee)
FAILS = Check("fails", fail, "Look.")
FAILS_BEFORE = Check("fails-before", find, "Look.", foresee=lambda sweep, facts: iter([1 / 0]))
NOISY = Check("noisy", find, "Look.")
"""
PLOT = """
from matplotlib.figure import Figure
from mountlab.plots import Plot, ReportPlot
def draw(run):
    yield Plot(Figure(), "Three of three", "Nothing is drawn.")
def fail(run):
    raise LookupError("by a plug-in")
    yield
THREE = ReportPlot("three", draw, heading="Three of them")
FAILS = ReportPlot("fails", fail)
"""
PLACE = Place(run_id="r", run_dir="/r", mountpoint="/r/m", image="/r/i")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with site(tmp_path, monkeypatch) as made:
        yield made


# --- found, and loaded when they are asked for ------------------------------------------------------------------------


def test_a_tool_of_a_plug_in_is_a_tool_of_a_sweep(packages: Site) -> None:
    packages.install("mountlab-slow", TOOL, {"tools": {"slow_dd": "Slow"}})
    resolved = sweep(workloads={"w": {**DD_WRITE, "tool": "slow_dd"}})
    assert resolved.sweep.workloads[0].tool == "slow_dd"
    assert type(TOOLS["slow_dd"]).__module__ == "mountlab_slow"
    assert "slow_dd" in list(TOOLS)
    assert "slowdd" in {program.name for program in all_programs(resolved.sweep)}
    assert "slowdd" in {program.name for program in all_programs()}


def test_facts_of_a_box_do_not_depend_on_plug_ins_that_a_sweep_does_not_use(packages: Site) -> None:
    """Else a run could not be resumed after an unrelated plug-in was uninstalled."""
    before = all_programs(sweep().sweep)
    packages.install("mountlab-slow", TOOL, {"tools": {"slow_dd": "Slow"}})
    assert all_programs(sweep().sweep) == before


def test_a_file_system_of_a_plug_in_is_one_of_a_sweep_and_may_lie_below_an_overlay(packages: Site) -> None:
    packages.install("mountlab-huge", FAMILY, {"filesystems": {"huge_tmpfs": "Huge"}})
    own = {"type": "huge_tmpfs", "size": "64MiB"}
    resolved = sweep(filesystems={"huge": own, "over": {"type": "overlay", "over": own}})
    assert [fs.type for fs in resolved.sweep.filesystems] == ["huge_tmpfs", "overlay"]
    assert FAMILIES["huge_tmpfs"].in_memory


@pytest.mark.slow
def test_nothing_of_a_plug_in_is_loaded_for_what_does_not_use_it(packages: Site) -> None:
    packages.install("mountlab-slow", "1 / 0", {"tools": {"slow_dd": "Slow"}, "checks": {"x": "X"}})
    code = (
        "import sys; from mountlab.__main__ import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "from mountlab.results.paths import load_sweep\nload_sweep('params/sweeps/ramdisk.yml')\n"
        "from mountlab.programs import TOOLS\nassert TOOLS['dd'].name == 'dd'\n"
        "print('mountlab_slow' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=SHIPPED,
        env={"PYTHONPATH": str(packages.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.endswith("False\n")


def test_a_check_of_a_plug_in_looks_at_every_run_and_at_every_plan(packages: Site) -> None:
    packages.install("mountlab-seen", CHECK, {"checks": {"seen": "SEEN"}})
    evidence = build(make())
    assert [each.message for each in find_caveats(evidence).caveats if each.code == "seen"] == ["seen by a plug-in"]
    assert [each.message for each in foresee(make(), BoxFacts()) if each.code == "seen"] == ["foreseen by a plug-in"]
    assert find_caveats(replace(evidence, sweep=replace(make(), imported=True))).not_checked["seen"]


class Only(dict[str, Any]):
    """Some of the plots of reports, in the place of the registry."""

    entry = staticmethod(figures_of_reports.PLOTS.entry)


def test_a_plot_of_a_plug_in_stands_in_the_report_and_is_exported(
    packages: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages.install("mountlab-three", PLOT, {"plots": {"three": "THREE"}})
    shown = str(sections.plots_of_plugins(synthetic_run()))
    assert "Three of three" in shown
    assert "Three of them" in shown
    assert "Drawn by mountlab-three 1.0." in shown
    monkeypatch.setattr(figures_of_reports, "PLOTS", Only(three=figures_of_reports.PLOTS["three"]))
    run = replace(synthetic_run(), comparisons=[], published=[])
    assert set(figures_of_reports.figure_files(run, "svg", width_cm=8)) == {"three-1.svg", "captions.txt"}


def test_without_plug_ins_a_report_says_nothing_of_them() -> None:
    assert sections.plots_of_plugins(synthetic_run()) == '<p class="nothing"></p>'


# --- refused, with names and reasons ----------------------------------------------------------------------------------


def test_one_that_cannot_be_loaded_is_an_error_for_the_sweep_that_names_it(packages: Site) -> None:
    packages.install("mountlab-slow", "import no_such_module", {"tools": {"slow_dd": "Slow"}})
    with pytest.raises(PluginError) as caught:
        sweep(workloads={"w": {"tool": "slow_dd"}})
    error = caught.value
    assert error.what == "the plug-in mountlab-slow 1.0 cannot be used"
    assert error.where == "entry point mountlab.tools: slow_dd = mountlab_slow:Slow"
    assert error.got.startswith("ModuleNotFoundError: No module named 'no_such_module' (")
    assert error.got.endswith("/mountlab_slow.py, line 1)")
    assert "mountlab.tools.base.Tool" in error.allowed
    assert "mountlab conform mountlab-slow" in error.next_step
    assert "pip uninstall mountlab-slow" in error.next_step
    assert error.exit_code == 2


def test_one_that_cannot_be_loaded_is_a_warning_for_everything_else(packages: Site) -> None:
    packages.install("mountlab-slow", "1 / 0", {"tools": {"slow_dd": "Slow"}, "plots": {"three": "THREE"}})
    assert sweep().sweep.workloads
    with pytest.warns(MountlabWarning, match=r"mountlab-slow 1\.0 cannot be used: ZeroDivisionError"):
        assert "slow_dd" not in list(TOOLS)
    with pytest.warns(MountlabWarning, match="mountlab-slow"), pytest.raises(ParameterError, match="unknown tool"):
        sweep(workloads={"w": {"tool": "slow_d"}})
    assert "three: the plug-in mountlab-slow 1.0 cannot be used" in str(sections.plots_of_plugins(synthetic_run()))


@pytest.mark.parametrize(
    ("source", "got", "allowed"),
    [
        ("Slow = 3", "builtins.int", "a subclass or an instance of mountlab.tools.base.Tool"),
        (TOOL.replace('"slow_dd"', '"other"'), "name = 'other'", "the name of its entry point, 'slow_dd'"),
        ("", "AttributeError", "mountlab.tools.base.Tool"),
        ("raise SystemExit(3)", "SystemExit: 3", "mountlab.tools.base.Tool"),
    ],
    ids=["kind", "name", "absent", "exit"],
)
def test_what_is_no_tool_is_refused_with_what_it_is(packages: Site, source: str, got: str, allowed: str) -> None:
    packages.install("mountlab-slow", source, {"tools": {"slow_dd": "Slow"}})
    with pytest.raises(PluginError) as caught:
        TOOLS["slow_dd"]
    assert got in caught.value.got
    assert allowed in caught.value.allowed


def test_a_name_of_mountlabs_own_is_refused_and_its_own_part_goes_on(packages: Site) -> None:
    packages.install("mountlab-seen", CHECK + TOOL, {"tools": {"dd": "Slow"}, "checks": {"noisy": "NOISY"}})
    assert type(TOOLS["dd"]).__module__ == "mountlab.programs.dd"
    with pytest.warns(MountlabWarning, match="the name 'dd', which Mountlab itself registers too"):
        assert list(TOOLS) == list(TOOLS.own)
    findings = find_caveats(build(make()))
    assert "which Mountlab itself registers too" in findings.not_checked["noisy (mountlab-seen)"]
    assert "noisy" in findings.passed


def test_a_name_of_two_plug_ins_is_refused_with_both(packages: Site) -> None:
    packages.install("mountlab-slow", TOOL, {"tools": {"slow_dd": "Slow"}})
    packages.install("mountlab-slower", TOOL, {"tools": {"slow_dd": "Slow"}}, version="2.1")
    with pytest.raises(PluginError) as caught:
        TOOLS["slow_dd"]
    assert "mountlab-slow 1.0" in str(caught.value)
    assert "mountlab-slower 2.1" in str(caught.value)


WHOLE = {
    "programs": "(Program(name='x', packages={'apt': 'x'}, version=('x', '-V')),)", "options": "{}", "reserved": "{}",
    "clock_s": "1e-6", "gives": "('elapsed',)", "command": "Command(argv=('x',))", "parse": "[]",
    "space_bytes": "4096", "expected_s": "1.0", "written": "Written('zeros', True)", "main_metrics": "('elapsed',)",
}  # fmt: skip
"""Attribute or method of a tool to its value, or to what it returns."""
METHODS = (
    "command", "parse", "space_bytes", "expected_s", "written", "main_metrics", "uncounted_s", "own_metrics", "manner",
    "programs_for", "check",
)  # fmt: skip


def tool_with(**changes: str | None) -> str:
    """A tool that measures nothing. None: it does not define it; 'raise X': a method does that."""
    lines = ["from mountlab.core.metrics import Metric", "from mountlab.core.model import *",
             "from mountlab.tools.base import *", "class Slow(Tool):", "    name = 'slow_dd'"]  # fmt: skip
    for name, value in {**WHOLE, **changes}.items():
        if value is not None and name in METHODS:
            does = value if value.startswith("raise ") else f"return {value}"
            lines.append(f"    def {name}(self, *args, **more): {does}")
        elif value is not None:
            lines.append(f"    {name} = {value}")
    return "\n".join(lines)


def refusal(packages: Site, source: str) -> PluginError:
    packages.install("mountlab-slow", source, {"tools": {"slow_dd": "Slow"}})
    with pytest.raises(PluginError) as caught:
        sweep(workloads={"w": {"tool": "slow_dd"}})
    assert "mountlab-slow 1.0" in caught.value.what
    return caught.value


def test_a_tool_with_all_that_is_needed_is_planned(packages: Site) -> None:
    packages.install("mountlab-slow", tool_with(), {"tools": {"slow_dd": "Slow"}})
    assert sweep(workloads={"w": {"tool": "slow_dd"}}).sweep.workloads


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("expected_s", "expected_s(self, workload: 'Workload') -> 'float': Return a rough guess at its duration"),
        ("command", "command(self, workload"),
        ("main_metrics", "Return the metrics that an answer is about"),
        ("clock_s", "clock_s: float"),
        ("options", "options: Mapping[str, Option]"),
    ],
)
def test_a_tool_that_lacks_a_part_is_refused_with_what_it_lacks(packages: Site, name: str, needed: str) -> None:
    error = refusal(packages, tool_with(**{name: None}))
    assert error.what == "the plug-in mountlab-slow 1.0 cannot be used"
    assert error.got == f"name slow_dd without {name}"
    assert needed in error.allowed
    assert "mountlab conform mountlab-slow" in error.next_step


@pytest.mark.parametrize(
    ("changes", "place", "got", "allowed"),
    [
        ({"clock_s": "'1 us'"}, "clock_s", "'1 us' (str)", "float"),
        ({"gives": "['elapsed']"}, "gives", "['elapsed'] (list)", "tuple[str, ...]"),
        ({"options": "{'n': 3}"}, "options['n']", "3 (int)", "Option"),
        ({"programs": "('x',)"}, "programs[0]", "'x' (str)", "Program"),
    ],
)
def test_a_tool_with_a_value_of_another_type_is_not_used(
    packages: Site, changes: dict[str, str], place: str, got: str, allowed: str
) -> None:
    error = refusal(packages, tool_with(**changes))
    assert (error.what, error.got) == ("the plug-in mountlab-slow 1.0 cannot be used", f"{place} = {got}")
    assert error.allowed == allowed


@pytest.mark.parametrize(
    ("name", "answer", "got", "allowed"),
    [
        ("expected_s", "None", "None (NoneType)", "float. Return a rough guess at its duration, for the plan."),
        ("expected_s", "'10 s'", "'10 s' (str)", "float"),
        ("expected_s", "float('nan')", "nan", "a number, 0 or more"),
        ("expected_s", "float('inf')", "inf", "seconds"),
        ("space_bytes", "-1", "-1", "a number, 0 or more"),
        ("space_bytes", "2.5", "2.5 (float)", "int"),
        ("written", "'zeros'", "'zeros' (str)", "Written"),
        ("main_metrics", "'elapsed'", "'elapsed' (str)", "tuple[str, ...]"),
        ("main_metrics", "()", "()", "one or more of the documentation's page Metrics"),
        ("main_metrics", "('speed',)", "('speed',)", "one or more of the documentation's page Metrics"),
        ("own_metrics", "None", "None (NoneType)", "Mapping[str, mountlab.core.metrics.Metric]"),
        ("own_metrics", "{'elapsed': Metric('h', 'lower')}", "'elapsed' in 'h'", "not one of the metrics of Mountlab"),
        ("own_metrics", "{'value': Metric('s', 'lower')}", "'value' in 's'", "a name of its own"),
    ],
)
def test_an_answer_that_cannot_be_used_is_refused_before_anything_runs(
    packages: Site, name: str, answer: str, got: str, allowed: str
) -> None:
    error = refusal(packages, tool_with(**{name: answer}))
    assert error.what == "the plug-in mountlab-slow 1.0 gave an answer that cannot be used"
    assert error.where == f"entry point mountlab.tools: slow_dd = mountlab_slow:Slow, {name}()"
    assert error.got == got
    assert allowed in error.allowed
    assert error.next_step == "report it to the authors of mountlab-slow"


def test_an_answer_that_is_wrong_inside_is_refused_with_the_place(packages: Site) -> None:
    packages.install("mountlab-slow", tool_with(command="Command(argv=('x', 3))"), {"tools": {"slow_dd": "Slow"}})
    with pytest.raises(PluginError) as caught:
        TOOLS["slow_dd"].command(Workload(name="w", tool="slow_dd", options={}), "/d", "/o")
    assert caught.value.where.endswith("Slow, command().argv[1]")
    assert (caught.value.got, caught.value.allowed.partition(".")[0]) == ("3 (int)", "str")


def test_what_a_method_raises_names_the_plug_in_and_the_method(packages: Site) -> None:
    error = refusal(packages, tool_with(expected_s="raise KeyError('no such option')"))
    assert error.what == "the plug-in mountlab-slow 1.0 failed in expected_s()"
    assert error.got.startswith("KeyError: 'no such option' (")


@pytest.mark.parametrize(
    ("change", "place", "got"),
    [
        ("def steps(self, fs, place): return None", "steps()", "None (NoneType)"),
        ("def steps(self, fs, place): return (('mkdir', 'x'),)", "steps()[0]", "('mkdir', 'x') (tuple)"),
        ("def capacity_bytes(self, fs): return '1GiB'", "capacity_bytes()", "'1GiB' (str)"),
    ],
)
def test_an_answer_of_a_file_system_is_checked_as_well(packages: Site, change: str, place: str, got: str) -> None:
    packages.install("mountlab-huge", f"{FAMILY}    {change}\n", {"filesystems": {"huge_tmpfs": "Huge"}})
    (fs,) = sweep(filesystems={"huge": {"type": "huge_tmpfs", "size": "64MiB"}}).sweep.filesystems
    with pytest.raises(PluginError) as caught:
        FAMILIES["huge_tmpfs"].steps(fs, PLACE) if "steps" in place else FAMILIES["huge_tmpfs"].capacity_bytes(fs)
    assert caught.value.where == f"entry point mountlab.filesystems: huge_tmpfs = mountlab_huge:Huge, {place}"
    assert caught.value.got == got


def test_a_caveat_that_is_none_is_no_caveat(packages: Site) -> None:
    source = CHECK.replace('Doubt.of_run("seen by a plug-in")', "Doubt.of_run(None)", 1)
    packages.install("mountlab-seen", source, {"checks": {"seen": "SEEN", "noisier": "NOISY"}})
    why = find_caveats(build(make())).not_checked["seen"]
    assert "the plug-in mountlab-seen 1.0 gave an answer that cannot be used: None (NoneType)" in why


def test_a_plot_that_is_none_says_so_in_its_place(packages: Site) -> None:
    source = PLOT.replace('yield Plot(Figure(), "Three of three", "Nothing is drawn.")', "yield 3")
    packages.install("mountlab-three", source, {"plots": {"three": "THREE"}})
    shown = str(sections.plots_of_plugins(synthetic_run()))
    assert "three: the plug-in mountlab-three 1.0 gave an answer that cannot be used: 3 (int)" in shown


# --- what it gives for figures ----------------------------------------------------------------------------------------

ELAPSED = "Measurement(metric='elapsed', value=float('{}'), unit='s')"
ENDED = ScriptExit(exit_status=0, archive=b"", error_text="")


@pytest.mark.parametrize(
    ("rows", "what", "ends_cell"),
    [
        (f"[{ELAPSED.format('nan')}]", "a value of elapsed that cannot be: nan", CellEnds.NEVER),
        (f"[{ELAPSED.format('0.0')}]", "a value of elapsed that cannot be: 0 s", CellEnds.NEVER),
        (
            f"[{ELAPSED.format('2.0')}, {ELAPSED.format('3.0')}]",
            "two values of elapsed in one trial: 2, 3",
            CellEnds.AT_ONCE,
        ),
        ("None", "no figures: None (NoneType)", CellEnds.AT_ONCE),
    ],
)
def test_a_trial_whose_figures_are_none_is_invalid_by_the_name_of_the_plug_in(
    packages: Site, rows: str, what: str, ends_cell: str
) -> None:
    """Where the next trial may be good, the cell has more trials."""
    packages.install("mountlab-slow", tool_with(parse=rows), {"tools": {"slow_dd": "Slow"}})
    files = {"exit_status": b"0\n", "stdout": b"", "stderr": b""}
    outcome = judge(Workload(name="w", tool="slow_dd", options={}), files, ENDED, timeout_s=1.0, parse=parsed)
    assert outcome.error is not None
    assert (outcome.status, consequence_of(outcome.error).cell_ends, outcome.retry) == ("invalid", ends_cell, False)
    assert outcome.reason.startswith(f"the plug-in mountlab-slow 1.0 gave {what}\n")


def test_a_good_figure_of_a_plug_in_is_a_measurement(packages: Site) -> None:
    packages.install("mountlab-slow", tool_with(parse=f"[{ELAPSED.format('2.0')}]"), {"tools": {"slow_dd": "Slow"}})
    files = {"exit_status": b"0\n", "stdout": b"", "stderr": b""}
    workload = Workload(name="w", tool="slow_dd", options={})
    assert judge(workload, files, ENDED, timeout_s=1.0, parse=parsed).status == "ok"


# --- what fails later -------------------------------------------------------------------------------------------------


def test_a_check_that_fails_could_not_look_and_the_others_did(packages: Site) -> None:
    packages.install("mountlab-seen", CHECK, {"checks": {"fails": "FAILS", "seen": "SEEN"}})
    findings = find_caveats(build(make()))
    assert "ZeroDivisionError: by a plug-in" in findings.not_checked["fails"]
    assert "seen" in {each.code for each in findings.caveats}
    assert set(CHECKS.own) <= {*(each.code for each in findings.caveats), *findings.passed, *findings.not_checked}


def test_a_check_that_fails_before_a_run_is_a_warning(packages: Site) -> None:
    packages.install("mountlab-seen", CHECK, {"checks": {"fails-before": "FAILS_BEFORE"}})
    with pytest.warns(MountlabWarning, match=r"mountlab-seen 1\.0 failed: ZeroDivisionError"):
        foresee(make(), BoxFacts())


def test_output_that_a_plug_in_cannot_read_is_a_failed_trial_that_names_it(packages: Site) -> None:
    packages.install("mountlab-slow", TOOL, {"tools": {"slow_dd": "Slow"}})
    output = ToolOutput(exit_status=0, stdout="", stderr="", files={})
    with pytest.raises(ParseError) as caught:
        parsed(Workload(name="w", tool="slow_dd", options={}), output)
    assert caught.value.what == "the plug-in mountlab-slow 1.0 failed to read the output"
    assert "KeyError: 'no such key' (" in caught.value.got


def test_a_plot_that_fails_says_so_in_its_place(packages: Site) -> None:
    packages.install("mountlab-three", PLOT, {"plots": {"fails": "FAILS", "three": "THREE"}})
    shown = str(sections.plots_of_plugins(synthetic_run()))
    assert "fails: the plug-in mountlab-three 1.0 failed: LookupError: by a plug-in" in shown
    assert "Three of three" in shown
    assert "three" in PLOTS


def test_the_error_of_a_plug_in_ends_a_command_with_two(packages: Site, capsys: pytest.CaptureFixture[str]) -> None:
    packages.install("mountlab-slow", "1 / 0", {"tools": {"slow_dd": "Slow"}})
    (packages.path / "s.yml").write_text(
        "question: Does it?\nfilesystems: {t: {type: tmpfs, size: 64MiB}}\nworkloads: {w: {tool: slow_dd}}\n"
    )
    assert main(["sweep", "check", str(packages.path / "s.yml")]) == 2
    assert "the plug-in mountlab-slow 1.0 cannot be used" in capsys.readouterr().err

"""Commands without the library that they need: each says which, and how to install it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mountlab.__main__ import main
from mountlab.core.errors import MissingExtra
from mountlab.core.extras import EXTRAS, need
from mountlab.results import writer
from rows import every_row

TOUR = Path(__file__).parents[2] / "results" / "tour"
EARLIER = Path(__file__).parents[1] / "data" / "earlier_run"
"""A measured run with a third of the trials of the tour."""
COMMANDS = {
    "lab": ("lab", "mountlab lab", "no jupyterlab, no ipywidgets"),
    "catalog": ("catalog DIR", "the catalog of runs", "no duckdb"),
    "catalog by query": ("query runs --results DIR", "the catalog of runs", "no duckdb"),
    "catalog by history": ("history --results DIR", "the catalog of runs", "no duckdb"),
    "publish": ("publish RUN --to DIR", "a bundle", "no rocrate, no detect_secrets"),
    "excel": ("export RUN --format xlsx --output DIR", "a workbook", "no openpyxl"),
}
"""Extra to a command, what needs it, and what is missing; tests/batch/test_batch_many.py has that of `fleet`."""


def hide(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if an extra were not installed."""
    for module in EXTRAS[extra]:
        monkeypatch.setitem(sys.modules, module, None)


@every_row("extra", EXTRAS)
def test_an_installed_extra_is_enough(extra: str) -> None:
    need(extra, "this test")


def test_only_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(MissingExtra) as raised:
        need("lab", "this test")
    text = "this test needs a library that is not installed\n  got:     no ipywidgets\n"
    assert str(raised.value) == f"{text}  next:    pip install 'mountlab[lab]'"


def test_versions_leave_out_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "LIBRARIES", ("numpy", "of-no-distribution"))
    assert list(writer.versions()) == ["python", "control kernel", "numpy"]


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_command_names_the_extra(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command, what, missing = COMMANDS[name]
    extra = name.partition(" ")[0]
    hide(extra, monkeypatch)
    places = {"RUN": str(TOUR), "DIR": str(tmp_path)}
    assert main([places.get(word, word) for word in command.split()]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    text = f"error: {what} needs a library that is not installed\n  got:     {missing}\n"
    assert err == f"{text}  next:    pip install 'mountlab[{extra}]'\n"
    assert list(tmp_path.iterdir()) == []


# --- the core ---------------------------------------------------------------------------------------------------------

FIO = Path(__file__).parents[1] / "data" / "fio" / "2.1.10-write.json"
HIDDEN = """
import os, sys
for module in {modules}:
    sys.modules[module] = None
with open(os.path.join({place!r}, str(os.getpid())), "w") as file:
    file.write(" ".join(sys.orig_argv))
"""
"""What each process of Python runs as it starts: no extra is installed. It leaves its command line."""


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with results, for commands of processes that have the core only."""
    place = tmp_path_factory.mktemp("core")
    (place / "started").mkdir()
    (place / "results").mkdir()
    modules = [module for extra in EXTRAS.values() for module in extra]
    (place / "sitecustomize.py").write_text(HIDDEN.format(modules=modules, place=str(place / "started")))
    return place


def run(core: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(core), "MOUNTLAB_RESULTS": str(core / "results")}
    command = [sys.executable, "-m", "mountlab", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_core_reads_a_log(core: Path) -> None:
    parsed = run(core, "parse", "fio", str(FIO))
    assert (parsed.returncode, parsed.stderr) == (0, "")
    assert "write_bandwidth" in parsed.stdout


@pytest.mark.slow
def test_core_imports_logs_and_reports_them(core: Path) -> None:
    imported = run(core, "import", str(FIO), "--tool", "fio", "--filesystem", "ext4", "--name", "old")
    assert imported.returncode == 0, imported.stderr
    (page,) = (core / "results").glob("*-old-*/report.html")
    assert "What do these logs say?" in page.read_text()
    started = [file.read_text() for file in (core / "started").iterdir()]
    assert [command for command in started if "kernel" in command], "the notebook ran in a process of its own"


@pytest.mark.slow
def test_core_reports_a_run_again(core: Path) -> None:
    measured = shutil.copytree(EARLIER, core / "results" / "earlier")
    reported = run(core, "report", str(measured))
    assert (reported.returncode, reported.stderr) == (0, "")
    assert "</html>" in (measured / "report.html").read_text()

"""`make lab`: what is started, with which kernel and settings, and the line for another machine. (A real JupyterLab:
tests/browser/test_lab_*.py.)"""

from __future__ import annotations

import getpass
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from mountlab.core.errors import InputError
from mountlab.core.places import SHIPPED
from mountlab.jupyter import lab
from mountlab.jupyter.api import PageLink, papermill_file, sweep_from_notebook
from mountlab.results import paths
from rows import every_row


def test_the_tour_is_opened_below_the_repository_for_this_machine_alone_and_the_token_stays() -> None:
    words = lab.command(8890, browser=True, root=SHIPPED)
    assert f"--ServerApp.root_dir={SHIPPED}" in words
    assert "--LabApp.default_url=/lab/tree/notebooks/00_tour.ipynb" in words
    assert {"--ServerApp.ip=127.0.0.1", "--ServerApp.port=8890"} <= set(words)
    assert not [word for word in words if "token" in word or "password" in word]
    assert "--no-browser" not in words
    assert "--no-browser" in lab.command(8888, browser=False, root=SHIPPED)


def test_results_elsewhere_are_below_the_root_too(tmp_path: Path) -> None:
    assert lab.server_root(SHIPPED / "results") == SHIPPED
    root = lab.server_root(tmp_path / "results")
    assert SHIPPED.is_relative_to(root)
    assert (tmp_path / "results").is_relative_to(root)
    opened = paths.NOTEBOOKS.relative_to(root).as_posix()
    assert f"--LabApp.default_url=/lab/tree/{opened}/00_tour.ipynb" in lab.command(8888, browser=False, root=root)


def test_a_kernelspec_of_the_users_own_does_not_win() -> None:
    variables = lab.environment({"HOME": "/home/user", "JUPYTER_CONFIG_PATH": "/etc/mine"})
    assert variables["JUPYTER_PREFER_ENV_PATH"] == "1"
    assert variables["HOME"] == "/home/user"
    assert variables["JUPYTER_CONFIG_PATH"] == f"{lab.SETTINGS}:/etc/mine"


def test_our_settings_are_ones_that_jupyterlab_knows() -> None:
    overrides = json.loads((lab.SETTINGS / "labconfig" / "default_setting_overrides.json").read_text())
    """Those of JupyterLab's own plugins, and those that an extension brings."""
    shared = Path(sys.prefix) / "share" / "jupyter"
    for plugin, settings in overrides.items():
        extension, _, name = plugin.partition(":")
        own, brought = shared / "lab" / "schemas", shared / "labextensions" / extension / "schemas"
        (schema,) = (path for place in (own, brought) if (path := place / extension / f"{name}.json").exists())
        known = json.loads(schema.read_text())["properties"]
        assert set(settings) <= set(known)
    assert overrides["@jupyterlab/apputils-extension:kernels-settings"] == {"commsOverSubshells": "perCommTarget"}
    assert overrides["@jupyter-widgets/jupyterlab-manager:plugin"] == {"saveState": True}, "widgets outlive the kernel"


def test_a_taken_port_is_passed_over_and_one_that_is_wanted_is_refused() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError) as caught:
            lab.free_port(port)
        assert caught.value.got == str(port)
    assert lab.free_port() >= lab.FIRST_PORT


def test_the_line_for_another_machine_is_told_with_the_port() -> None:
    told = "\n".join(lab.advice(8890))
    assert f"ssh -N -L 8890:localhost:8890 {getpass.getuser()}@{socket.gethostname()}" in told
    assert "token" in told


@every_row(
    ("given", "remote"),
    [
        ({}, False), ({"SSH_CONNECTION": "1 2 3 4"}, True), ({"SSH_CONNECTION": "1 2 3 4", "DISPLAY": ":10"}, False),
        ({"DISPLAY": ":0"}, False),
    ],
)  # fmt: skip
def test_no_browser_is_started_where_nobody_would_see_it(given: dict[str, str], remote: bool) -> None:
    assert lab.is_remote(given) is remote


# --- what notebooks need ----------------------------------------------------------------------------------------------


def test_parameters_may_have_types_and_an_unknown_one_is_an_error() -> None:
    cell = '# Parameters\nsweep_file: str = "params/sweeps/tour.yml"  # the sweep\nbox: str = None  # a box'
    resolved = sweep_from_notebook({"In": ["", cell], "sweep_file": "params/sweeps/tour.yml", "box": None})
    assert resolved.sweep.name == "tour"
    with pytest.raises(InputError, match="unknown parameter"):
        sweep_from_notebook({"In": ["# Parameters\nrepeets: int = 3  # blocks"], "sweep_file": "x"})


NOTEBOOK = ["10_run_sweep.ipynb", "out.ipynb"]


@every_row(
    ("words", "name"),
    [
        (["/e/bin/python", "/e/bin/papermill", *NOTEBOOK, "-f", "/sweeps/disk.yml", "-p", "box", "local"], "disk"),
        (["python", "-P", "-m", "papermill", *NOTEBOOK, "--parameters_file", "a.b.yaml", "-k", "python3", ""], "a.b"),
        (["papermill", "-fx.yml", *NOTEBOOK], "x"),
        (["papermill", *NOTEBOOK, "--parameters_file=x.yml", "-f", "more.yml"], "x"),
        (["papermill", *NOTEBOOK, "-p", "name", "mine"], ""),
        (["python", "-m", "jupyterlab", "-f", "x.yml"], ""),
        ([], ""),
    ],
)
def test_the_file_of_papermill_is_found_on_its_command_line(words: list[str], name: str) -> None:
    """papermill passes on what is in the file, and not its name."""
    assert papermill_file(words) == name


SWEEP = {
    "question": "Why?", "filesystems": {"t": {"type": "tmpfs", "size": "64MiB"}},
    "workloads": {"w": {"tool": "dd", "direction": "write", "count": 8}}, "In": [],
}  # fmt: skip


@pytest.mark.parametrize(
    ("given", "name"), [(SWEEP, "disk"), ({**SWEEP, "name": "mine"}, "mine"), ({**SWEEP, "name": None}, "disk")]
)
def test_a_run_by_papermill_is_named_after_its_file(
    given: dict[str, object], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trap: every sweep file without a `name` made runs called `sweep`."""
    with subprocess.Popen(
        [sys.executable, "-c", "input(1)", "papermill", *NOTEBOOK, "-f", str(tmp_path / "disk.yml")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as parent:
        assert parent.stdout
        assert parent.stdout.read(1) == b"1", "it runs, and has its command line"
        monkeypatch.setenv("JPY_PARENT_PID", str(parent.pid))
        assert sweep_from_notebook(given).sweep.name == name
        parent.communicate(b"\n")


def test_a_sweep_that_no_file_names_is_called_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JPY_PARENT_PID", raising=False)
    assert sweep_from_notebook(SWEEP).sweep.name == "sweep"


def test_a_report_is_linked_from_the_notebook_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "results" / "a <run>" / "report.html"
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "notebooks" / "10_run_sweep.ipynb"))
    assert 'href="../results/a%20%3Crun%3E/report.html"' in PageLink(page)._repr_html_()
    monkeypatch.delenv("JPY_SESSION_NAME")
    assert "href" not in PageLink(page)._repr_html_(), "of a batch nobody knows from where it is opened"
    assert repr(PageLink(page)) == str(page)


def test_without_notebooks_to_edit_nothing_is_started(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no notebooks here") as refused:
        lab.check_workspace(tmp_path)
    assert "mountlab init DIR" in str(refused.value)


def test_where_the_tour_is_removed_the_folder_is_opened(tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()
    words = lab.command(8890, browser=False, root=tmp_path, notebook=tmp_path / "notebooks" / "00_tour.ipynb")
    assert "--LabApp.default_url=/lab/tree/notebooks" in words

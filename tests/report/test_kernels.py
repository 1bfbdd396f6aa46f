"""Kernels that the kernel server forks: each is a process of its own, and a server that will not do is not taken."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
from mountlab.report import kernels
from mountlab.report.execute import execute

KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
SAYS = "import json, os, sys; print(json.dumps([os.getpid(), os.getppid(), os.getcwd(), os.environ.get('MARK')]))"


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """None from another test, and none for the next."""
    monkeypatch.setattr(kernels, "_server", None)
    yield
    if kernels._server is not None:
        kernels._server.end()


def said(directory: Path) -> list[str]:
    """What a kernel for a report says of itself."""
    notebook, executed = directory / "n.ipynb", directory / "o" / "n.ipynb"
    cells = [nbformat.v4.new_code_cell("# Parameters", metadata={"tags": ["parameters"]}),
             nbformat.v4.new_code_cell(SAYS)]  # fmt: skip
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=KERNEL), notebook)
    execute(notebook, executed, {})
    outputs = [each for cell in nbformat.read(executed, 4).cells for each in cell.get("outputs", ())]
    found: list[str] = json.loads(outputs[-1]["text"])
    return found


@pytest.mark.slow
def test_each_report_has_a_new_kernel_of_one_server(
    prepare: Callable[[], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    first = said(tmp_path)
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "the next one")  # else each test would start a server
    second = said(tmp_path)
    server = kernels._server
    assert server is not None
    assert first[0] != second[0]
    assert first[1] == second[1] == server._process.pid
    assert not server.is_busy, "they have ended"
    assert len(os.listdir(f"/proc/{server._process.pid}/task")) == 1, "a fork loses threads, and Python warns of it"
    assert first[2:] == [str(Path.cwd()), None]
    monkeypatch.setenv("MARK", "here")
    third = said(tmp_path)
    assert third[1] != first[1], "what it imported may depend on the environment"
    assert third[3] == "here"
    assert kernels._server is not None
    kernels._server._process.kill()  # as when it had nothing to do for a minute
    kernels._server._process.wait()
    prepare()
    assert kernels._server._process.pid not in (first[1], third[1])
    assert kernels._server.is_fit
    assert capfd.readouterr().err == ""


@pytest.mark.long
@pytest.mark.slow
def test_beside_one_that_is_busy_a_kernel_is_started_as_any_other(
    prepare: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare()
    monkeypatch.setattr(kernels.KernelServer, "is_busy", True)
    assert int(said(tmp_path)[1]) == os.getpid()

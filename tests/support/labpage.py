"""A JupyterLab of a test's own, started as `make lab` starts it, and a notebook in it before a real browser."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from mountlab.jupyter import lab
from mountlab.results import paths
from playwright.sync_api import Page
from waiting import LIMIT_S, wait_until

WINDOW = {"width": 1280, "height": 900}
CELL_S = 600.0
"""How long is waited at most: on an idle machine it takes seconds."""
POLL_MS = 200
"""How often a page is asked. Playwright would ask at every frame, which keeps a processor busy while it waits."""
ERRORS = '.jp-OutputArea-output[data-mime-type="application/vnd.jupyter.stderr"], .jp-RenderedText .ansi-red-fg'


def copied(name: str, root: Path, **parameters: str) -> Path:
    """A notebook below `root`, since JupyterLab saves what it opens; defaults of its parameters may be others."""
    notebook = nbformat.read(paths.NOTEBOOKS / name, as_version=4)
    cell = next(each for each in notebook.cells if "parameters" in each.metadata.get("tags", []))
    lines = cell.source.splitlines()
    for key, value in parameters.items():
        place = next(number for number, line in enumerate(lines) if line.startswith(f"{key}:"))
        lines[place] = f"{key}: str = {value!r}"
    cell.source = "\n".join(lines)
    path = root / "notebooks" / name
    path.parent.mkdir(exist_ok=True)
    nbformat.write(notebook, path)
    return path


class Server:
    """A running JupyterLab."""

    def __init__(self, root: Path, address: str, token: str, kernel: str = "Mountlab (.venv)") -> None:
        self.root, self.address, self.token, self.kernel = root, address, token, kernel

    def opened(self, page: Page, name: str) -> OpenNotebook:
        """A notebook below notebooks/, its kernel ready and its first cell selected.

        JupyterLab itself is loaded once in a page, which takes five seconds of a processor: later notebooks are opened
        beside the first, from its list of files.
        """
        if page.url.startswith(self.address):
            page.locator(".jp-DirListing-item", has_text=name).dblclick()
        else:
            page.set_default_timeout(CELL_S * 1000)
            page.goto(f"{self.address}/lab/tree/notebooks/{name}?token={self.token}&reset")
        return OpenNotebook(page, name, self.kernel)


@contextmanager
def jupyterlab(root: Path, **environment: str) -> Iterator[Server]:
    """JupyterLab on `root`, with settings, runtime files and token that no other has; ended with its kernels."""
    port, private = lab.free_port(), root.parent / "jupyter-home"
    own = {f"JUPYTER_{name}_DIR": str(private / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    variables = lab.environment({**os.environ, **own, "IPYTHONDIR": str(private / "ipython"), **environment})
    log = root.parent / "jupyterlab.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            lab.command(port, browser=False, root=root, notebook=next(root.glob("notebooks/*.ipynb"))),
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        info = _running(process, Path(own["JUPYTER_RUNTIME_DIR"]), log)
        yield Server(root.resolve(), f"http://127.0.0.1:{port}", str(info["token"]))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(LIMIT_S)


def _running(process: subprocess.Popen[bytes], runtime: Path, log: Path) -> Mapping[str, Any]:
    """What the server says of itself, as soon as it answers."""
    from urllib.error import URLError
    from urllib.request import urlopen

    def answer() -> Mapping[str, Any]:
        for file in runtime.glob("jpserver-*.json"):
            try:
                info = json.loads(file.read_text())
                urlopen(f"http://127.0.0.1:{info['port']}/api/status?token={info['token']}", timeout=LIMIT_S).close()
            except (ValueError, URLError, TimeoutError):
                continue
            assert isinstance(info, dict)
            return info
        return {}

    return wait_until("JupyterLab", answer, ended=lambda: process.poll() is not None and log.read_text())


class OpenNotebook:
    """A notebook in the browser, worked with by keyboard."""

    def __init__(self, page: Page, name: str, kernel: str) -> None:
        self.page, self.kernel = page, kernel
        tab = page.locator("#jp-main-dock-panel .lm-TabBar-tab.lm-mod-current", has_text=name)
        self.panel = page.locator(f"[id='{tab.get_attribute('data-id')}']")
        self.panel.locator(".jp-KernelName", has_text=kernel).wait_for()
        self._wait_for_kernel()
        self.notebook = self.panel.locator(".jp-Notebook")
        self.cells = self.notebook.locator(".jp-Cell")
        self._select_first()

    def _wait_for_kernel(self) -> None:
        """Until it is there and idle, as the status bar says it: what is run before that is dropped."""
        self.page.wait_for_function(
            "idle => document.querySelector('#jp-main-statusbar')?.textContent.includes(idle)",
            arg=f"{self.kernel} | Idle",
            polling=POLL_MS,
        )

    def _select_first(self) -> None:
        """Upwards by keyboard: a click may meet another cell, since cells move while those above get their height."""
        self.cells.first.locator(".jp-InputPrompt").click()
        self.page.keyboard.press("Escape")
        for _ in range(self.cells.count()):
            self.page.keyboard.press("k")
        self.notebook.locator(".jp-Cell.jp-mod-active[data-windowed-list-index='0']").wait_for()

    def run(self, count: int) -> None:
        """Shift+Enter in so many cells, from the selected one on; they wait for each other in the kernel."""
        for _ in range(count):
            self.page.keyboard.press("Shift+Enter")

    def run_rest(self) -> None:
        """The selected cell and all below it."""
        selected = self.notebook.locator(".jp-Cell.jp-mod-active").get_attribute("data-windowed-list-index")
        self.run(self.cells.count() - int(selected or 0))

    def select(self, start: str) -> None:
        """The cell whose source begins so, as the one that keys go to."""
        cell = self.cells.filter(has=self.page.locator(".jp-InputArea", has_text=start)).first
        cell.locator(".jp-InputPrompt").click()
        self.page.keyboard.press("Escape")

    def insert(self, source: str) -> None:
        """A new cell above the selected one, with this in it, run; the selected one is selected again."""
        self.page.keyboard.press("a")
        self.page.keyboard.press("Enter")
        self.page.keyboard.insert_text(source)
        self.run(1)

    def wait(self) -> None:
        """Until no cell waits and none runs."""
        self.page.wait_for_function(
            "() => ![...document.querySelectorAll('.jp-InputPrompt')].some(each => each.textContent.includes('*'))",
            polling=POLL_MS,
        )
        self._wait_for_kernel()

    def wait_for_text(self, text: str) -> None:
        self.panel.locator(".jp-Notebook", has_text=text).wait_for()

    def output_of(self, start: str) -> str:
        """What stands below the cell whose source begins so; also where it is scrolled out of sight, and not drawn."""
        cell = self.cells.filter(has=self.page.locator(".jp-InputArea", has_text=start)).first
        return cell.locator(".jp-Cell-outputArea").text_content() or ""

    def errors(self) -> list[str]:
        """Tracebacks and what cells wrote on standard error."""
        return self.panel.locator(ERRORS).all_text_contents()

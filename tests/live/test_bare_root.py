"""From a wheel to a published bundle, on a Debian that has Python and nothing of Mountlab: install, init, demo, a sweep
of one's own, JupyterLab in a browser, and a bundle that others can check."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from bare_root import BareRoot, make_root, run
from chromium import needs_chromium, started
from installed_programs import NO_PACKAGES
from labpage import WINDOW, Server
from mountlab.box.embedded import guest
from mountlab.core.errors import BoxError
from mountlab.core.places import SHIPPED
from waiting import wait_until

pytestmark = [
    pytest.mark.box,
    pytest.mark.browser,
    pytest.mark.long,
    pytest.mark.requires_root,
    pytest.mark.requires_program("mmdebstrap"),
    needs_chromium,
]
PACKAGES = ("ca-certificates", "make", "python3", "python3-venv", "fio", "openssh-server", "e2fsprogs", "xfsprogs")
OWN = """question: Does data=writeback pay on this machine?
baseline: ordered
filesystems:
  ordered: {type: ext4, image: 256MiB, options: [data=ordered]}
  writeback: {type: ext4, image: 256MiB, options: [data=writeback]}
workloads:
  random: {tool: fio, rw: randwrite, bs: 4KiB, size: 64MiB, fdatasync: 1, runtime: 1s, time_based: true}
design: {repeats: 3}
"""


@pytest.fixture(scope="module")
def root() -> Iterator[BareRoot]:
    """The root, with a wheel of this working copy in /wheels: 2 GB on a disk, which are not kept."""
    with TemporaryDirectory(prefix="mountlab-bare-", dir=guest.temporary_directory()) as place:
        directory = Path(place) / "root"
        with servers_within_reach("Debian's packages"):
            make_root(directory, PACKAGES)
        build = ("build", "-t", "wheel", "-d", str(directory / "wheels"))
        run(sys.executable, "-m", "hatchling", *build, cwd=SHIPPED)
        yield BareRoot(directory)


@pytest.fixture(scope="module")
def study(root: BareRoot) -> BareRoot:
    """With a workspace in /root/study, made by a Mountlab that was installed without JupyterLab."""
    (wheel,) = (path.name for path in (root.directory / "wheels").glob("mountlab-*.whl"))
    root.run("python3", "-m", "venv", "/root/first")
    with servers_within_reach("the libraries of Mountlab"):
        root.run("/root/first/bin/pip", "install", "--quiet", f"/wheels/{wheel}")
    assert not list(root.directory.glob("root/first/lib/python*/site-packages/jupyterlab"))
    said = root.run("/root/first/bin/mountlab", "init", "study")
    assert f"wheels/{wheel}" in said
    root.run("make", "env", cwd="/root/study")
    return root


@contextmanager
def servers_within_reach(what: str) -> Iterator[None]:
    """Skip where what is fetched inside cannot be reached from this machine."""
    try:
        yield
    except (AssertionError, BoxError) as error:
        if NO_PACKAGES.search(str(error)):
            pytest.skip(f"needs {what}, from the network")
        raise


def make(study: BareRoot, *words: str) -> str:
    return study.run("make", *words, cwd="/root/study")


def newest_run(study: BareRoot) -> Path:
    runs = (study.directory / "root" / "study" / "results").glob("*/run.json")
    return max(runs, key=lambda path: path.stat().st_mtime).parent


def test_the_demo_measures_and_names_its_version(study: BareRoot) -> None:
    said = make(study, "demo", "ARGS=-p repeats=2 -p warmup=0")
    run_directory = newest_run(study)
    assert f"results/{run_directory.name}/report.html" in said
    assert "tmpfs / ext4" in said
    described = json.loads((run_directory / "run.json").read_text())
    assert described["git_commit"] is None, "a wheel has no commit"
    assert described["versions"]["mountlab"]


def test_a_sweep_of_ones_own_is_measured(study: BareRoot) -> None:
    place = study.directory / "root" / "study" / "params" / "sweeps"
    assert "mine" in make(study, "plan", "SWEEP=mine")
    (place / "own.yml").write_text(OWN)
    said = make(study, "run", "SWEEP=own")
    assert "writeback / ordered" in said
    assert "own" in newest_run(study).name


def test_the_lab_opens_the_tour_in_a_browser(study: BareRoot) -> None:
    with lab(study) as server, started() as browser, browser.new_page(viewport=WINDOW) as page:  # type: ignore[arg-type]
        tour = server.opened(page, "00_tour.ipynb")
        tour.run(tour.cells.count())
        tour.wait()
        assert tour.errors() == []
        assert "faster than ext4" in tour.output_of("mountlab.sections.answer(the_run)")


@contextmanager
def lab(study: BareRoot) -> Iterator[Server]:
    log = study.directory / "lab.log"
    words = study.argv(".venv/bin/mountlab", "lab", "--no-browser", cwd="/root/study")
    with log.open("wb") as file, subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=file, stderr=file) as process:
        try:
            found = wait_until(
                "JupyterLab",
                lambda: re.search(r"(http://127\.0\.0\.1:\d+)/lab\S*token=(\w+)", log.read_text()),
                ended=lambda: process.poll() is not None and log.read_text(),
            )
            yield Server(study.directory / "root" / "study", found[1], found[2])
        finally:
            process.kill()  # and with it all in its namespace


def test_a_report_is_written_again_and_a_bundle_published_and_checked(study: BareRoot) -> None:
    assert "report.html" in make(study, "report", "RUN=own")
    make(study, "publish", "RUNS=own")
    (bundle,) = (study.directory / "root" / "study" / "results").glob("bundle-*.zip")
    said = make(study, "reproduce", f"BUNDLE=results/{bundle.name}")
    assert "Files: all as published" in said
    assert re.search(r"Figures: all \d+ figures made again from the raw output equal", said)

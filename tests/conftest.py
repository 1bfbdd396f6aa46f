"""What holds for every test: the user's settings are hidden, each worker has a box and temporary files of its own, what
cannot run says why, nothing is left behind."""

from __future__ import annotations

import gc
import os
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import last_result
import pytest
import workers  # first: the library reads where its box files are when it is imported
from faults.table import Rows
from hypothesis import settings
from mountlab.report import kernels
from mountlab.results import paths
from waiting import LIMIT_S, happens
from whole_machine import only_session

if TYPE_CHECKING:  # at run time only in the fixtures: libraries read the user's settings when they are imported
    from mountlab.box.connection import BoxConnection
    from mountlab.core.model import Box

# How long an example takes says nothing on a machine that others use. `make fuzz` tries more of them.
# The same examples each time, so that a failure is of a change; `make fuzz` draws anew.
settings.register_profile("mountlab", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("mountlab")

_start_kernel_server = kernels.prepare
# It imports for seconds what a report needs, ahead of reports that most tests never make. A notebook that is executed
# starts it by itself. Here, and not in a fixture: commands take the function by its name.
kernels.prepare = lambda: None

HIDDEN = ("SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_ASKPASS", "MOUNTLAB_RUN", "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "ARGS")
"""The user's agent would offer keys; make's own variables would reach the makes that tests start."""
OF_THE_PROGRAM = {
    "test_how_to", "test_notebook_colours", "test_notebooks_run",
    "test_calibration", "test_capacity_calibration", "test_capacity_servers",
}  # fmt: skip
"""What of tests/project and tests/dev runs the program: notebooks, commands of the documents, simulated statistics."""

FIRST = "box", "browser", "slow"
"""Tests with these marks begin first, in this order."""

LONGEST_NAME = 120
"""So many characters of a parameter are in the name of a test."""

_old_environment = pytest.StashKey[dict[str, str]]()


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def _soak(config: pytest.Config) -> bool:
    """Whether this is `make soak`, which names its mark."""
    return str(config.option.markexpr) == "soak"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What mostly waits begins first, beside what computes, and what is short comes last. Without `make soak` its tests
    are not there: they take the better part of an hour."""
    items.sort(key=lambda item: [item.get_closest_marker(mark) is None for mark in FIRST])
    soak = [item for item in items if item.get_closest_marker("soak") and not _soak(config)]
    if soak:
        config.hook.pytest_deselected(items=soak)
        items[:] = [item for item in items if item not in soak]


# --- the user's own settings ------------------------------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    """Give the whole session an empty home; xdist's workers inherit it."""
    # A shell starts what runs in its background with Ctrl-C ignored, and every child would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.set_threshold(100_000, 50, 100)  # thousands of tests hold much that never becomes garbage: a fifth of the time
    if _is_worker(config):
        return
    if workers.MADE_HERE:  # else tests of a test: what the others of its session use is not left behind
        config.pluginmanager.register(LeftoverGuard())
    config.pluginmanager.register(Rows(kept=_soak(config)))
    config.pluginmanager.register(SkippedTests())
    if part := os.environ.pop(last_result.PART, ""):
        config.pluginmanager.register(last_result.LastResult(part))
    config.stash[_old_environment] = dict(os.environ)
    # Caches (fonts of matplotlib, wheels of uv) are not settings, and filling them again would take a minute.
    os.environ.setdefault("XDG_CACHE_HOME", str(Path.home() / ".cache"))
    home = workers.PLACE / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    os.environ["HOME"] = str(home)
    for name in (*HIDDEN, "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        os.environ.pop(name, None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let each worker of a whole session import another share of the tests first: in a fresh clone the others find what
    it has compiled, else each would compile all of it, for half a minute."""
    config = session.config
    if not _is_worker(config) or config.args != config.getini("testpaths") or config.option.ignore:
        return
    first, step = int(workers.WORKER.removeprefix("gw")), int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    for path in sorted(Path(__file__).parent.glob("*/test_*.py"))[first::step]:
        with suppress(pytest.Collector.CollectError):  # it is shown when the tests are collected
            _ = pytest.Module.from_parent(session, path=path).obj


def pytest_unconfigure(config: pytest.Config) -> None:
    gc.unfreeze()  # what is left would be told as leaked at the end, by the library of DuckDB
    if _old_environment in config.stash:
        old: dict[str, str] = config.stash[_old_environment]
        os.environ.clear()
        os.environ.update(old)
        workers.remove()


# --- what can run here ------------------------------------------------------------------------------------------------


def pytest_make_parametrize_id(val: object) -> str | None:
    """A long text is shortened in the name of its test: each worker sends the names of all tests."""
    return repr(val[:LONGEST_NAME]) if isinstance(val, str | bytes) and len(val) > LONGEST_NAME else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Say why a test cannot run here; let tests on one box share a worker, so that they run one after another.

    Here, and not when collection is over: by then xdist has read the groups.
    """
    if item.path.parent.name in ("dev", "project") and item.path.stem not in OF_THE_PROGRAM:
        item.add_marker(pytest.mark.repository)
    if item.path.parent.name in ("live", "browser"):
        item.add_marker(pytest.mark.slow)
    for reason in _obstacles(item):
        item.add_marker(pytest.mark.skip(reason=reason))
    if not item.config.pluginmanager.hasplugin("xdist"):
        return
    if not item.get_closest_marker("xdist_group"):
        item.add_marker(pytest.mark.xdist_group(_group_of(item)))


def _group_of(item: pytest.Item) -> str:
    """Which tests run one after another in one worker: those of a file, whose runs and pages are made once; those on
    the one virtual box; those that change what the machine has only once; and those that share a process which starts
    Mountlab."""
    if _on_the_vm(item):
        return "vm"
    if item.get_closest_marker("machine"):
        return "machine"
    return "zygote" if _has_zygote(item) else f"{item.path.parent.name}-{item.path.stem}"


def _has_zygote(item: pytest.Item) -> bool:
    """Return whether the file of a test starts Mountlab by the process of its worker (faults/scenes.py)."""
    control = getattr(item.module, "control", None) if isinstance(item, pytest.Function) else None
    return getattr(control, "__module__", "") == "faults.scenes"


def _on_the_vm(item: pytest.Item) -> bool:
    """The virtual box has a kernel and devices of its own: its tests and those of the local box do not meet."""
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return item.path.stem.endswith("_vm") or "vm" in parameters.values()


@pytest.fixture(scope="session")
def _sshd() -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """What has sessions on the local box meet one private sshd, which ends with the last test."""
    from one_sshd import OneSshd

    with OneSshd() as sshd:
        yield sshd.shared


@pytest.fixture(scope="module", autouse=True)
def _one_sshd(request: pytest.FixtureRequest) -> Iterator[None]:
    """Sessions of a file meet the sshd of their worker, but for those of test_loopback.py, which looks at its life."""
    if request.path.parent.name not in ("live", "faults", "batch") or request.path.stem == "test_loopback":
        yield
        return
    with request.getfixturevalue("_sshd")():
        yield


def pytest_collection_finish(session: pytest.Session) -> None:
    """Stop where pytest-xdist did not heed the groups: tests that share the box would disturb each other."""
    gc.freeze()  # modules and tests stay to the end: what looks for garbage need not pass them each time
    if getattr(session.config.option, "loadgroup", False):
        boxed = [item for item in session.items if item.get_closest_marker("box")]
        loose = [item.nodeid for item in boxed if not item.nodeid.endswith(f"@{_group_of(item)}")]
        if loose:
            raise pytest.UsageError(f"pytest-xdist did not group the tests on the box, such as {loose[0]}")


def _obstacles(item: pytest.Item) -> Iterator[str]:
    if item.get_closest_marker("requires_root") and os.geteuid() != 0:
        yield "needs root, and this is an ordinary user"
    from mountlab_dev import needs

    asked = [name for marker in item.iter_markers("requires_program") for name in marker.args]
    if item.get_closest_marker("box"):
        asked.append("mount")
    for alternatives in (name.split("|") for name in asked):
        if not any(map(needs.find, alternatives)):
            yield needs.reason(*alternatives)


class SkippedTests:
    """Ends the output with one block: why tests were skipped, and the one command that brings the missing programs."""

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        from mountlab_dev import needs

        skipped = [report.longrepr[2] for report in terminalreporter.getreports("skipped")]
        reasons = Counter(reason.removeprefix("Skipped: ") for reason in skipped)
        if reasons:
            terminalreporter.section("skipped", sep="-")
        for reason, count in sorted(reasons.items()):
            terminalreporter.line(f"{count:5} {reason}")
        if any("(apt-get" in reason for reason in reasons):
            terminalreporter.line(f"      all programs that tests need: {needs.command(needs.missing())}")


@pytest.fixture
def results_dir(tmp_path: Path) -> Path:
    """An empty directory in the place of results/."""
    path = tmp_path / "results"
    path.mkdir()
    return path


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Of all sessions on this machine one at a time changes what it has once."""
    with only_session() if item.get_closest_marker("machine") else nullcontext():
        return (yield)


@pytest.fixture
def prepare() -> Callable[[], None]:
    """What every command that ends with a report calls first, and tests do not."""
    return _start_kernel_server


# --- the virtual box --------------------------------------------------------------------------------------------------


def prepared_vm(box: Box) -> Box:
    """Return a virtual box that is built, in the user's cache, where it stays for the next time; or skip the test."""
    from installed_programs import NO_PACKAGES
    from mountlab.box.embedded import guest, here, prepare_here
    from mountlab.core.errors import BoxError, CommandError
    from mountlab_dev import needs

    for absent in here.missing(guest.BUILDERS):
        pytest.skip(needs.reason(absent.name))
    try:
        prepare_here(box, yes=False, ask=lambda _: False, say=lambda _: None)
    except (BoxError, CommandError) as error:
        if NO_PACKAGES.search(f"{error.what} {error.evidence}"):
            pytest.skip("needs Debian's packages, from the network, to build the virtual box")
        raise
    return box


@pytest.fixture(scope="session")
def vm_box() -> Box:
    """The box of params/boxes/vm.yml, built."""
    return prepared_vm(paths.load_box("vm"))


@pytest.fixture(scope="session")
def vm_connection(vm_box: Box) -> Iterator[BoxConnection]:
    """The virtual box, started once for all tests on it: they clean up after themselves. For tests marked `box`."""
    from mountlab.box.embedded import open_box

    with open_box(vm_box) as connection:
        yield connection


@pytest.fixture
def vm_runs(vm_connection: BoxConnection, monkeypatch: pytest.MonkeyPatch) -> BoxConnection:
    """Sweeps that are run on box `vm` meet the one that is up already, instead of starting one more."""
    share_vm(vm_connection, monkeypatch)
    return vm_connection


def share_vm(vm_connection: BoxConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `vm_runs` does, for fixtures of another scope."""
    from mountlab.box.embedded import open_box
    from mountlab.runner import workflow

    @contextmanager
    def shared(box: Box, *, forwards: bool = False) -> Iterator[BoxConnection]:
        with nullcontext(vm_connection) if box.embedded == "vm" else open_box(box, forwards=forwards) as connection:
            yield connection

    monkeypatch.setattr(workflow, "open_box", shared)


# --- nothing is left behind -------------------------------------------------------------------------------------------


def leftovers(ours: Sequence[str]) -> frozenset[str]:
    """One line for each mount, loop device and process with one of these in its path, command line or run."""
    return frozenset([*_mounts(ours), *_loop_devices(ours), *_processes(ours)])


def _mounts(ours: Sequence[str]) -> Iterator[str]:
    for line in _lines(Path("/proc/self/mountinfo")):
        mountpoint = line.split(" ")[4]
        if any(mark in mountpoint for mark in ours):
            yield f"mount {mountpoint}"


def _loop_devices(ours: Sequence[str]) -> Iterator[str]:
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        for file in _lines(backing):
            if any(mark in file for mark in ours):
                yield f"loop device {backing.parts[3]} on {file}"


def _processes(ours: Sequence[str]) -> Iterator[str]:
    """Private sshds and virtual boxes have their temporary directory in their command lines; processes of a trial carry
    MOUNTLAB_RUN, the name of a directory of results."""
    for process in Path("/proc").glob("[0-9]*"):
        command = _bytes(process / "cmdline").decode(errors="replace")
        run = re.search(rb"(?:^|\0)MOUNTLAB_RUN=([^\0]+)", _bytes(process / "environ"))
        known = run and any(next(Path(mark).rglob(run[1].decode()), None) for mark in ours if mark.startswith("/"))
        if process.name != str(os.getpid()) and (known or any(mark in command for mark in ours)):
            yield f"process {process.name}: {command.replace(chr(0), ' ').strip()}"


def _lines(path: Path) -> list[str]:
    return _bytes(path).decode(errors="replace").splitlines()


def _bytes(path: Path) -> bytes:
    """The content of a file of the kernel's; b'' when what it describes has just gone, or is another user's."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


class LeftoverGuard:
    """Fails a session that has left something that it has made."""

    left: Sequence[str] = ()

    @pytest.hookimpl(trylast=True)  # after xdist has ended its workers
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        base = session.config._tmp_path_factory.getbasetemp()  # as pytest-xdist asks for it
        stopped = session.exitstatus == pytest.ExitCode.INTERRUPTED  # by a person, who waits no longer than this
        self.left = self._wait((workers.PLACE.name, str(base)), 5.0 if stopped else LIMIT_S)
        if self.left and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _wait(self, ours: Sequence[str], within_s: float) -> list[str]:
        left: frozenset[str] = frozenset()

        def nothing() -> bool:
            nonlocal left
            left = leftovers(ours)
            return not left

        happens(nothing, within_s)
        return sorted(left)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in self.left:
            # As an error of its own, so that the last line of the output does not say that all passed.
            report = pytest.TestReport(
                "nothing is left behind",
                ("", None, ""),
                {},
                "failed",
                longrepr=line,
                when="teardown",
            )
            terminalreporter.stats.setdefault("error", []).append(report)

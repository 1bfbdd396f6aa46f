"""Several boxes drive one shared directory: three private sshd's of this machine, each with roots of its own."""

from __future__ import annotations

import os
import re
import shutil
import stat
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from mountlab.box.embedded import open_box
from mountlab.box.ssh import SshBox
from mountlab.checks.clients import shares
from mountlab.core.errors import ClientLost
from mountlab.core.shell import script_argv
from mountlab.filesystems.directory import Directory
from mountlab.fio import clients as fio_clients
from mountlab.publish import reproduce
from mountlab.publish.publish import Wishes, publish
from mountlab.results import paths, store
from mountlab.runner import workflow
from sshds import kill_sshd_of, opened_boxes
from sweeps import as_is
from waiting import wait_until

pytestmark = [pytest.mark.box, pytest.mark.requires_program("sshd"), pytest.mark.requires_program("fio")]

NAMES = ("ask", "a", "b", "c", "data", "worker")
WRITE = {"tool": "fio", "rw": "randwrite", "bs": "4KiB", "size": "2MiB", "runtime": "400ms", "time_based": 1}
SLOWLY = {**WRITE, "rate_iops": 100}
"""Without a processor for each client."""
READ = {"tool": "fio", "rw": "randread", "bs": "4KiB", "size": "2MiB", "numjobs": 2}
ONCE = {"repeats": 1, "warmup": 0, "retries": 0}


@pytest.fixture(autouse=True)
def boxes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Four boxes; afterwards nothing of ours is left on any of them."""
    (tmp_path / "params" / "boxes").mkdir(parents=True)
    (tmp_path / "shared").mkdir()
    for name in NAMES:
        # Paths of sockets are short.
        roots = {"mount_root": f"{tmp_path}/{name}", "output_root": f"/dev/shm/ml-{os.getpid()}-{name}"}
        text = yaml.safe_dump({"embedded": "loopback", "grace": "5s", **roots})
        (tmp_path / "params" / "boxes" / f"{name}.yml").write_text(text)
    monkeypatch.setattr(paths, "PARAMS", tmp_path / "params")
    yield tmp_path
    assert not with_servers(), "a server of fio's is left"
    assert list((tmp_path / "shared").iterdir()) == []
    assert [path for path in own_roots() if path.exists()] == []


def own_roots() -> list[Path]:
    boxes = [paths.load_box(name) for name in NAMES]
    return [Path(str(root)) for box in boxes for root in (box.mount_root, box.output_root)]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> dict[str, SshBox]:
    return opened_boxes(monkeypatch)


def with_servers(word: bytes = b"MOUNTLAB_SERVE=") -> list[int]:
    """Processes that a client's server has started, of this test."""
    mine = f"/ml-{os.getpid()}-".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes()
        except OSError:
            continue
        found += [int(process.name) for each in environment.split(b"\0") if word in each and mine in each]
    return found


def measure(tmp_path: Path, workloads: dict[str, object], box: str = "ask", **design: object) -> Path:
    shared = {"shared": {"type": "dir", "path": f"{tmp_path}/shared"}}
    given = as_is(filesystems=shared, workloads=workloads, design={**ONCE, **design})
    return workflow.run(given, box=box, results=tmp_path / "results")


def table(path: Path, metric: str) -> dict[tuple[str, str], float]:
    rows: pd.DataFrame = store.load_run(path).measurements
    own = rows[rows["metric"] == metric]
    return dict(zip(zip(own["workload"], own["label"], strict=True), own["value"], strict=True))


@pytest.mark.long
@pytest.mark.machine
def test_three_clients_drive_one_directory(tmp_path: Path) -> None:
    clients = ["a", "b", "c"]
    path = measure(
        tmp_path, {"w": {**SLOWLY, "clients": clients}, "r": {**READ, "clients": ["a", "ask"]}}, drop_caches=True
    )
    trials = store.load_run(path).trials
    assert list(trials["status"]) == ["ok", "ok"], list(trials["reason"])
    rates = table(path, "write_bandwidth")
    assert set(rates) == {("w", ""), *(("w", name) for name in clients)}
    took = table(path, "elapsed")
    moved = sum(rates["w", name] * took["w", name] for name in clients)
    assert rates["w", ""] == pytest.approx(moved / took["w", ""], rel=0.02), "all bytes, over the time of the slowest"
    reads = table(path, "bytes")
    assert reads["r", "read"] == 2 * 2 * 2 * 1024**2, "two jobs on each of two clients, all they were asked"
    (raw,) = (path / "raw").glob("t*/client-c-cache")
    how = b"drop_caches\n" if os.geteuid() == 0 else b"fadvise\n"
    assert raw.read_bytes() == how, "on every client, too"
    run = store.load_run(path)
    assert run.latencies("shared/r")["read.clat_ns"].total == 2 * 2 * 512, "histograms are merged over the clients"
    assert [caveat.code for caveat in run.caveats if caveat.code == "failed-trials"] == []


@pytest.mark.long
def test_clients_that_are_called_by_ordinary_words_are_not_in_a_bundle(tmp_path: Path) -> None:
    several = {"w": {**SLOWLY, "clients": ["data", "worker"]}, "r": {**READ, "clients": ["data", "worker"]}}
    measured = measure(tmp_path, several, box="data")
    folder, _ = publish([measured], Wishes(to=tmp_path / "bundle"))
    assert reproduce.check(folder).same
    run = store.load_run(next((folder / "runs").iterdir()))
    assert set(run.measurements["label"]) == {"", "read", "write", "box-1", "box-2"}
    named = re.compile(r"\b(?:data|worker)\b")
    assert [path for path in (run.path / "raw").rglob("*") if named.search(path.name)] == []
    files = [path for path in (run.path / "raw").rglob("*") if path.is_file()]
    assert [path for path in files if named.search(path.read_text())] == []


def test_a_server_listens_at_a_socket_that_only_its_user_reaches() -> None:
    """And nowhere else; it ends with the connection of whoever started it."""
    directory = f"/dev/shm/ml-{os.getpid()}-a/serve"
    Path(directory).parent.mkdir()
    (Path(directory).parent / ".mountlab").touch()
    with open_box(paths.load_box("a")) as connection:
        script = script_argv("serve.sh", "serve", directory, "30", connection._connection.user)
        heard = connection.attend(script)  # it goes with the last word of it
        wait_until("a server", Path(directory).is_dir)
        assert connection.run(script_argv("serve.sh", "wait", directory)).ok
        assert stat.S_IMODE(Path(directory).stat().st_mode) == 0o700
        servers = with_servers()
        assert len(servers) >= 2, "timeout, and fio below it"
        sockets = {link for pid in servers for link in open_files(pid) if link.startswith("socket:")}
        inodes = {link[len("socket:[") : -1] for link in sockets}
        assert inodes, "it listens"
        for table in ("tcp", "tcp6", "udp", "udp6", "raw"):
            lines = Path(f"/proc/net/{table}").read_text().splitlines()[1:]
            assert not inodes & {line.split()[9] for line in lines}
    wait_until("no server", lambda: heard.ended and not with_servers())
    shutil.rmtree(Path(directory).parent)


@pytest.mark.long
def test_a_client_that_is_lost_in_the_middle_fails_the_trial_and_nothing_is_left(
    tmp_path: Path, opened: dict[str, SshBox]
) -> None:
    hit: list[int] = []
    killer = threading.Thread(target=lambda: hit.extend(kill_sshd(opened, "b")))
    killer.start()
    with pytest.raises(ClientLost, match="client b was lost") as error:
        measure(tmp_path, {"w": {**SLOWLY, "runtime": "4s", "clients": ["a", "b"]}})
    killer.join()
    assert len(hit) > 1, "the listener and the session"
    (path,) = (tmp_path / "results").glob("2*")
    assert f"mountlab resume {path}" in str(error.value)
    (trial,) = store.load_run(path).trials.to_dict("records")
    assert trial["status"] == "failed"
    assert trial["reason"].startswith("client b was lost")
    assert not with_servers(), "those of the client that is there are ended, those of the other end by themselves"
    wait_until("the lost box cleans itself", lambda: not any(path.exists() for path in own_roots()))


def kill_sshd(opened: dict[str, SshBox], name: str) -> list[int]:
    """Kill a box's sshd, and its sessions, when its client measures."""
    wait_until("two servers", lambda: len(with_servers()) >= 2 and name in opened)
    wait_until("a client that measures", lambda: any(is_measuring(pid, name) for pid in with_servers()))
    return kill_sshd_of(opened[name])


def is_measuring(pid: int, name: str) -> bool:
    """Whether a job of fio's writes on that client: its file is open."""
    return any(f"/{name}/mountlab." in link for link in open_files(pid))


def open_files(pid: int) -> list[str]:
    """What the process has open; of one that has ended, what it still had."""
    found = []
    with suppress(OSError):
        for each in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                found.append(os.readlink(each))
    return found


@pytest.mark.long
def test_a_client_that_is_slow_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is held back by a rate in its job that nobody asked for, as a slow network would."""
    real = fio_clients.files

    def held_back(*given: Any, **more: Any) -> dict[str, str]:
        return {name: text + "rate=2m\n" * name.endswith("/c-jobs.fio") for name, text in real(*given, **more).items()}

    monkeypatch.setattr(fio_clients, "files", held_back)
    # Four trials: with two, on a busy machine, the interval of the ratio holds almost anything.
    path = measure(tmp_path, {"w": {**WRITE, "clients": ["a", "c"]}}, repeats=4, drop_caches=False)
    run = store.load_run(path)
    stragglers = [caveat.message for caveat in run.caveats if caveat.code == "straggler"]
    assert len(stragglers) == 1, [(share.client, share.ratios) for share in shares(run.sweep, run.measurements)]
    assert stragglers[0].startswith("client c had ")


@pytest.mark.long
def test_a_client_that_sees_another_directory_fails_the_file_system_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere(self: Directory, fs: object, place: object, own: object) -> str:
        (tmp_path / "other").mkdir(exist_ok=True)
        return str(tmp_path / "other")

    monkeypatch.setattr(Directory, "client_root", elsewhere)
    path = measure(tmp_path, {"w": {**WRITE, "clients": ["a"]}})
    (trial,) = store.load_run(path).trials.to_dict("records")
    assert trial["status"] == "failed"
    assert "client a does not see the same file system as the box" in trial["reason"]

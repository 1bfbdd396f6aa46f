"""A place of its own for each fault: box file, sweep, results, temporary files, and processes that may be killed."""

from __future__ import annotations

import atexit
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from faults import counting
from faults.counting import Count, Kept
from faults.proxy import Link, link
from mountlab.box.embedded.loopback import private_sshd
from mountlab.box.ssh import Endpoint
from mountlab.core.model import Box
from waiting import LIMIT_S

LIBRARY = Path(__file__).parents[2] / "lib"
MEMORY = Path("/dev/shm")
TMPFS = {"type": "tmpfs", "size": "64MiB"}
EXT4 = {"type": "ext4", "image": "64MiB"}
DD = {"tool": "dd", "direction": "write", "bs": "64KiB", "count": 4}


@dataclass(frozen=True)
class Scene:
    """Directories that are nobody else's. Their names are random, so that whatever holds one in it belongs here."""

    home: Path
    """Box files, results, logs and the witness."""
    temporary: Path
    """TMPDIR of the control machine."""
    mount_root: Path
    output_root: Path

    @property
    def params(self) -> Path:
        return self.home / "params"

    @property
    def results(self) -> Path:
        return self.home / "results"

    @property
    def witness(self) -> Path:
        """Where the tools of trials write that they were there."""
        return self.home / "witness"

    @property
    def log(self) -> Path:
        return self.home / "log"

    @property
    def runs(self) -> tuple[Path, ...]:
        """Run directories that are whole enough to go on with."""
        return tuple(sorted(file.parent for file in self.results.glob("[!.]*/run.json")))

    @property
    def environment(self) -> dict[str, str]:
        """Of the control machine."""
        directories = {"MOUNTLAB_PARAMS": str(self.params), "MOUNTLAB_RESULTS": str(self.results)}
        return {"HOME": str(self.home), "TMPDIR": str(self.temporary), **directories}

    def put_box(self, **keys: Any) -> None:
        """The box file of `local`: with the roots of the scene, whatever else it says."""
        own = {"mount_root": str(self.mount_root), "output_root": str(self.output_root)}
        kind = {} if "host" in keys else {"embedded": "loopback"}
        (self.params / "boxes" / "local.yml").write_text(yaml.safe_dump({**kind, **own, **keys}))

    def put_ssh(self, endpoint: Endpoint, port: int) -> None:
        """An ssh configuration of the scene's own, in which `behind` is a sshd that is reached at `port`."""
        ssh = self.home / ".ssh"
        ssh.mkdir(mode=0o700)
        (ssh / "config").write_text(
            f"Host behind\n HostName {endpoint.host}\n Port {port}\n User {endpoint.user}\n"
            f" IdentityFile {endpoint.key_file}\n"
        )
        kind, key = endpoint.known_hosts.read_text().split()[1:]
        (ssh / "known_hosts").write_text(f"[{endpoint.host}]:{port} {kind} {key}\n")

    def put_sweep(self, **keys: Any) -> Path:
        """A sweep file; without `keys` the one of 30 short trials."""
        raw = {"question": "Does every trial arrive once?", "box": "local", **(keys or self.keys())}
        path = self.home / "faults.yml"
        path.write_text(yaml.safe_dump(raw, sort_keys=False))
        return path

    def keys(self, repeats: int = 5) -> dict[str, Any]:
        """Three workloads on two file systems, so often. Two of the three leave a word with the witness."""
        return {
            "filesystems": {"tmpfs": TMPFS, "ext4": EXT4},
            "workloads": {"seen": self.seen(), "again": self.seen(bytes=8192), "dd": DD},
            "design": {"repeats": repeats, "warmup": 0, "seed": 7, "trial_timeout": "30s", "drop_caches": False},
        }

    def seen(self, seconds: float = 0.0, **options: Any) -> dict[str, Any]:
        """A command that tells the witness of its directory, which has the trial's name, and takes `seconds`."""
        script = f'echo "$1" >>{self.witness}; head -c "$2" /dev/zero >"$1/x"; sleep {seconds:g}; wc -c <"$1/x"'
        return {
            "tool": "command",
            "argv": f"sh -c '{script}' seen {{directory}} {{bytes}}",
            "bytes": 4096,
            "space": "1MiB",
            "metrics": {"bytes": {"pattern": r"^(\d+)$", "unit": "B"}},
            **options,
        }

    def left(self) -> Count:
        """What is still there of the scene, results and box files aside."""
        roots = (self.mount_root, self.output_root, self.temporary)
        gone = tuple(f"file {root}" for root in roots[:2] if root.exists())
        return Count(left=(*counting.left_behind(roots), *gone))


@contextmanager
def scene(**box: Any) -> Iterator[Scene]:
    """A scene with its box file, removed at the end with all its directories."""
    home = Path(tempfile.mkdtemp(prefix="mountlab-faults-", dir="/var/tmp"))
    mark = home.name.removeprefix("mountlab-faults-")
    made = Scene(home, home / f"tmp-{mark}", home / f"root-{mark}", MEMORY / f"mountlab-faults-{mark}")
    for directory in (made.temporary, made.params / "boxes", made.params / "published", made.results):
        directory.mkdir(parents=True)
    made.put_box(**box)
    try:
        yield made
    finally:
        _strike(made)
        shutil.rmtree(home, ignore_errors=True)
        shutil.rmtree(made.output_root, ignore_errors=True)


def _strike(scene: Scene) -> None:
    """End, unmount and detach what a test that failed has left of its scene. It has been counted by then."""
    undo = {"process": ("kill", "-9"), "mount": ("umount", "--lazy"), "loop": ("losetup", "--detach")}
    for kind, command in undo.items():
        for found in reversed(
            counting.left_behind((scene.mount_root, scene.output_root, scene.temporary), patience_s=0)
        ):
            word, name = found.replace(":", "").split()[:2]
            if word == kind:
                subprocess.run([*command, name], cwd="/dev", capture_output=True, check=False)


class Zygote:
    """A process that starts Mountlab in processes of its own, one after another (zygote.py). `around`: words before
    it."""

    def __init__(self, *around: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(LIBRARY), "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [*around, sys.executable, str(Path(__file__).with_name("zygote.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=environment,
            start_new_session=True,
        )
        assert self.line() == "ready"

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().decode().strip()

    def says(self, within_s: float) -> bool:
        """Whether there is a line to be read."""
        return bool(select.select([self.process.stdout], [], [], within_s)[0])


_zygotes: list[Zygote] = []
"""The one of this session, once there is one."""


def zygote() -> Zygote:
    """The one of this session: all tests share it, since it is slow to start."""
    if not _zygotes:
        made = Zygote()
        _zygotes.append(made)
        atexit.register(made.process.communicate, timeout=LIMIT_S)
    return _zygotes[0]


class Control:
    """The control machine of a scene: at most one Mountlab at a time."""

    def __init__(self, scene: Scene, starter: Zygote | None = None) -> None:
        self.scene = scene
        self._zygote = starter or zygote()
        self._over = False
        self._running = 0

    def start(self, do: str, target: Path) -> int:
        """Start `do` (run, resume, report) and give its process number, which stays its own until `wait`."""
        return self._start({"do": do, "target": str(target), "words": []})

    def type(self, *words: str, directory: Path = Path("/")) -> int:
        """The same for `mountlab WORDS`, typed in a directory: all that a person gets, with the report."""
        return self._start({"words": words, "directory": str(directory)})

    def _start(self, asked: dict[str, Any]) -> int:
        paths = {"params": self.scene.params, "results": self.scene.results, "log": self.scene.log}
        asked |= {"environment": self.scene.environment, **{key: str(path) for key, path in paths.items()}}
        self._zygote.tell(json.dumps(asked))
        self._running = int(self._zygote.line())
        return self._running

    def wait(self) -> int:
        """Its exit status, negative where a signal ended it."""
        if not self._over:
            assert self._zygote.line() == "ended"
        self._over, self._running = False, 0
        self._zygote.tell("")
        return int(self._zygote.line())

    def ended(self, within_s: float) -> bool:
        """Whether it ends by itself within this time."""
        if not self._over and self._zygote.says(within_s):
            self._over = self._zygote.line() == "ended"
        return self._over

    def do(self, do: str, target: Path) -> int:
        self.start(do, target)
        return self.wait()

    def said(self) -> str:
        """What the last process printed."""
        return self.scene.log.read_text(errors="replace") if self.scene.log.exists() else ""

    def close(self) -> None:
        if self._running:  # the test has failed, and nobody waits for it any more
            os.kill(self._running, signal.SIGKILL)
            self.wait()


@contextmanager
def control(scene: Scene, starter: Zygote | None = None) -> Iterator[Control]:
    """A Control, ended when nobody uses it any more."""
    made = Control(scene, starter)
    try:
        yield made
    finally:
        made.close()


def undisturbed(control: Control, sweep: Path) -> tuple[Kept, float]:
    """What a run keeps that nobody disturbs, and how long it takes. The run is removed again."""
    started = time.monotonic()
    assert control.do("run", sweep) == 0, control.said()
    took = time.monotonic() - started
    (run,) = control.scene.runs
    found = counting.kept(run)
    shutil.rmtree(run)
    control.scene.witness.unlink(missing_ok=True)
    return found, took


@contextmanager
def linked(grace: str) -> Iterator[tuple[Scene, Link]]:
    """A scene whose box is a sshd of its own behind a link, found by an ssh configuration of its own."""
    box = Box(name="local", host="", embedded="loopback")
    with scene() as place, private_sshd(box) as endpoint, link(endpoint.port) as wire:
        place.put_ssh(endpoint, wire.port)
        place.put_box(host="behind", grace=grace)
        yield place, wire

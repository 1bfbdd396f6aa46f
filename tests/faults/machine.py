"""A virtual machine whose power button is ours: reset, switched off and on again, its disks looked at from outside."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mountlab.box.embedded import guest, here, vm
from mountlab.box.embedded.child import free_port, greets, poll, spawn, stop
from mountlab.box.embedded.guest import Guest
from mountlab.box.embedded.keys import known_hosts
from mountlab.box.ssh import Endpoint
from mountlab.core.model import Box
from waiting import LIMIT_S

BOOT_S = 60.0
ATTEMPTS = 3
SOUND = (0, 1)
"""Exit statuses of `e2fsck -p`: nothing to do, or the journal was replayed."""


class Machine:
    """The guest of the virtual box on disks that outlive it."""

    def __init__(self, box: Box, directory: Path) -> None:
        self._guest = _writable(guest.built(box), directory)
        self._directory = directory
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        vm.make_disks(directory)

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(
            host=vm.HOST,
            port=self._port,
            user="root",
            key_file=self._guest.client_key,
            known_hosts=known_hosts(self._directory, self._port, self._guest.host_key),
            log=self._directory / "console",
        )

    # --- the button ---------------------------------------------------------------------------------------------------

    def on(self) -> None:
        """Switch it on, and wait until it answers."""
        qemu = here.find_program(guest.QEMU.name)
        assert qemu is not None
        (self._directory / "console").unlink(missing_ok=True)
        accelerator = vm.choose_accelerator(qemu, self._guest)
        words = vm.qemu_argv(qemu, self._guest, self._directory, port=self._port, accelerator=accelerator)
        argv = [word.replace("snapshot=on", "snapshot=off") for word in words]
        control = ["-qmp", f"unix:{self._directory / 'qmp'},server=on,wait=off"]
        for _ in range(ATTEMPTS):
            self._process = spawn([*argv, *control], self._directory / "qemu")
            if self._boots_until(1):
                return
            stop(self._process)
        raise AssertionError(self._said())

    def reset(self) -> None:
        """As the button at the front does it; and wait until it answers again."""
        boots = self._boots()
        self._say("system_reset")
        if not self._boots_until(boots + 1):  # an emulated machine hangs now and then: it is switched off and on
            self.off_and_on()

    def off_and_on(self) -> None:
        """The power goes, and comes back."""
        self._say("quit")
        assert self._process is not None
        self._process.wait(LIMIT_S)
        self.on()

    def off(self) -> None:
        stop(self._process)

    def _say(self, command: str) -> None:
        with socket.socket(socket.AF_UNIX) as wire:
            wire.settimeout(10)
            wire.connect(str(self._directory / "qmp"))
            with wire.makefile("rw") as lines:
                lines.readline()  # its greeting
                for each in ("qmp_capabilities", command):
                    print(json.dumps({"execute": each}), file=lines, flush=True)
                    lines.readline()

    def _boots(self) -> int:
        console = self._directory / "console"
        return console.read_text(errors="replace").count(vm.READY) if console.exists() else 0

    def _boots_until(self, number: int) -> bool:
        return poll(lambda: self._boots() >= number and greets(self._port, 5.0), BOOT_S)

    def _said(self) -> str:
        files = (self._directory / name for name in ("console", "qemu"))
        return "\n".join(file.read_text(errors="replace")[-2000:] for file in files if file.exists())

    # --- its disk, from outside ---------------------------------------------------------------------------------------

    def fsck(self) -> str | None:
        """What e2fsck has against the ext4 on the scratch disk as it is at this instant; '' for nothing, None where
        none is mounted there."""
        copy = self._directory / "copy.img"
        self._say("stop")
        try:
            subprocess.run(["cp", "--sparse=always", self._directory / "scratch.img", copy], check=True)
        finally:
            self._say("cont")
        try:
            features = subprocess.run(["dumpe2fs", "-h", copy], capture_output=True, text=True, check=False).stdout
            if "needs_recovery" not in features:
                return None
            done = subprocess.run(["e2fsck", "-f", "-p", copy], capture_output=True, text=True, check=False)
            return "" if done.returncode in SOUND else f"e2fsck: exit status {done.returncode}: {done.stdout[-500:]}"
        finally:
            copy.unlink()


def _writable(built: Guest, directory: Path) -> Guest:
    """The same guest with a copy of the disk that it writes to."""
    for file in built.directory.iterdir():
        if file != built.work:
            (directory / file.name).symlink_to(file)
    made = Guest(directory)
    subprocess.run(["cp", "--sparse=always", built.work, made.work], check=True)
    return made


@contextmanager
def machine(box: Box, directory: Path) -> Iterator[Machine]:
    """A machine that is switched on; at the end it is off, and its disks are gone."""
    directory.mkdir(mode=0o700)
    made = Machine(box, directory)
    try:
        made.on()
        yield made
    finally:
        made.off()
        shutil.rmtree(directory)


def over_ssh(config: Path, script: str) -> str:
    """What a script says in the guest, by the ssh of this machine and not by Mountlab's."""
    argv = [
        "ssh",
        "-F",
        str(config),
        "-o",
        f"UserKnownHostsFile={config.parent / 'known_hosts'}",
        "-o",
        "BatchMode=yes",
        "-o",
        "ConnectTimeout=30",
        "behind",
        "sh",
        "-s",
    ]
    environment = {**os.environ, "HOME": str(config.parents[1])}
    return subprocess.run(argv, input=script, capture_output=True, text=True, check=True, env=environment).stdout

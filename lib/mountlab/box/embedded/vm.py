"""The `vm` box: a small virtual machine with its own kernel, for what should not be tried on a machine that one needs.

QEMU runs the guest that `mountlab box prepare vm` built, with KVM where that boots its kernel and by emulation where
not, as an ordinary process of the user. It has disks that may be formatted: `mountlab-scratch`, `mountlab-journal`, an
NVDIMM in fsdax mode, and `mountlab-disk1` and so on where the box file has `disks`. They are new and empty at every
start, and are kept while the guest reboots: they are files in a directory of the session, removed at its end. What the
guest writes to its own disk is gone at the end too.

The guest reaches no network; it is reached through one port of 127.0.0.1. Several may run at once.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from mountlab.box.embedded import here
from mountlab.box.embedded.child import HOST, Watch, free_port, greets, private_directory, spawn, stop
from mountlab.box.embedded.guest import QEMU, Guest, built, temporary_directory
from mountlab.box.embedded.keys import known_hosts
from mountlab.box.ssh import Endpoint
from mountlab.core.errors import BoxError
from mountlab.core.model import Box
from mountlab.core.units import GIB, MIB
from mountlab.core.virtual import VM_DISKS

Accelerator = Literal["kvm", "tcg"]

MEMORY_BYTES = 1536 * MIB
"""1 GiB for file systems and their caches, and the rest for the guest itself."""
CPUS: dict[Accelerator, int] = {"kvm": 2, "tcg": 1}
"""Two emulated processors wait for each other: most work takes longer on them than on one."""
KERNEL_WORDS: dict[Accelerator, str] = {"kvm": "", "tcg": "norandmaps tsc=reliable mitigations=off"}
"""QEMU translates code again for each new address, and address randomisation has one for each process. The HPET (as the
clock) and mitigations take time, too."""
SCRATCH_BYTES = 8 * GIB
JOURNAL_BYTES = 256 * MIB
DISK_BYTES = GIB
"""Of each of the disks that `disks` of a box file counts."""
NVDIMM_BYTES = 768 * MIB
"""Below 512 MiB mke2fs would choose blocks of 1 KiB, for which ext4 has no DAX."""
START_TIMEOUT_S = 120.0
"""Until the guest says that it is ready: twenty times what emulation takes on a machine that is otherwise idle."""
_HANGS = f"not ready after {START_TIMEOUT_S:g} s"
GREETING_TIMEOUT_S = 5.0
PROBE_TIMEOUT_S = 5.0
START_ATTEMPTS = 5
READY = "mountlab: ready"
STARTS = "mountlab: the kernel starts"
GIVES_UP = ("mountlab: gives up", "Kernel panic")
KVM = Path("/dev/kvm")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@contextmanager
def virtual_box(box: Box, _forwards: bool = False) -> Iterator[Endpoint]:
    """Start the virtual box, give its Endpoint, stop it and remove its disks at the end. Its sshd always forwards.

    Raises BoxError where it was not built, QEMU is missing, or the guest does not boot; its console is in the error.
    """
    guest = built(box)
    qemu = here.needed(QEMU, "the virtual box runs in it", where=f"box {box.name}")
    with private_directory("mountlab-vm-", parent=temporary_directory()) as (directory, watch):
        accelerator = choose_accelerator(qemu, guest)
        make_disks(directory, extra_disks(box))
        with _running(box, qemu, guest, directory, accelerator, watch) as (port, machine):
            yield Endpoint(
                host=HOST,
                port=port,
                user="root",
                key_file=guest.client_key,
                known_hosts=known_hosts(directory, port, guest.host_key),
                log=directory / "console",
                alive=lambda: machine.poll() is None,
            )


# --- the machine ------------------------------------------------------------------------------------------------------


def extra_disks(box: Box) -> tuple[str, ...]:
    """Return the names of the disks that the box's scratch devices ask for beside those that every guest has."""
    devices = {scratch.device for scratch in box.scratch}
    return tuple(name for name, device in VM_DISKS.items() if device in devices)


def make_disks(directory: Path, extra: Sequence[str] = ()) -> None:
    """Make the disks of one session: sparse files, so that they take only what is written to them."""
    sizes = {"scratch": SCRATCH_BYTES, "journal": JOURNAL_BYTES, "nvdimm": NVDIMM_BYTES}
    for name, size in (sizes | dict.fromkeys(extra, DISK_BYTES)).items():
        with (directory / f"{name}.img").open("wb") as file:
            file.truncate(size)


def qemu_argv(
    qemu: str, guest: Guest, directory: Path, *, port: int, accelerator: Accelerator, extra: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the command line of QEMU: kernel and initrd directly, disks that are known by their serial numbers."""
    forward, nvdimm = f"hostfwd=tcp:{HOST}:{port}-10.0.2.15:22", _escaped(directory / "nvdimm.img")
    words = f"console=ttyS0 mountlab.accelerator={accelerator} {KERNEL_WORDS[accelerator]}".strip()
    return (
        *_machine(qemu, guest, accelerator, words),
        "-m", f"{MEMORY_BYTES // MIB},slots=2,maxmem=4G", "-smp", str(CPUS[accelerator]),
        "-chardev", f"file,id=console,path={_escaped(directory / 'console')}", "-serial", "chardev:console",
        *_disk("root", guest.root, "readonly=on"),
        *_disk("work", guest.work, "snapshot=on"),
        *(word for name in ("scratch", "journal", *extra)
          for word in _disk(name, directory / f"{name}.img", "discard=unmap")),
        "-object", f"memory-backend-file,id=nvdimm-file,share=on,mem-path={nvdimm},size={NVDIMM_BYTES}",
        "-device", "nvdimm,id=nvdimm,memdev=nvdimm-file",
        # restrict: the guest cannot reach this machine or any other.
        "-netdev", f"user,id=net,restrict=on,{forward}", "-device", "virtio-net-pci,netdev=net,romfile=",
        "-device", "virtio-rng-pci",
    )  # fmt: skip


def probe_argv(qemu: str, guest: Guest) -> tuple[str, ...]:
    """Return a machine with KVM and no disks, whose kernel says that it starts and goes off again."""
    machine = _machine(qemu, guest, "kvm", "console=ttyS0 panic=-1 mountlab.probe")
    return (*machine, "-m", "256", "-no-reboot", "-serial", "stdio")


def _machine(qemu: str, guest: Guest, accelerator: Accelerator, words: str) -> tuple[str, ...]:
    how = "kvm" if accelerator == "kvm" else "tcg,thread=multi"
    return (
        qemu, "-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none",
        "-machine", "pc,nvdimm=on", "-accel", how, "-cpu", "max",
        "-kernel", str(guest.kernel), "-initrd", str(guest.initrd), "-append", words,
    )  # fmt: skip


def _disk(name: str, file: Path, options: str) -> tuple[str, ...]:
    """Return a virtio disk. Like a hard disk it has no command that zeroes blocks: what mkfs zeroes is written."""
    drive = f"file={_escaped(file)},if=none,id={name},format=raw,{options}"
    return ("-drive", drive, "-device", f"virtio-blk-pci,write-zeroes=off,drive={name},serial=mountlab-{name}")


def _escaped(path: Path) -> str:
    """Return a path inside of an option of QEMU's, where a comma would end it."""
    return str(path).replace(",", ",,")


# --- KVM or emulation -------------------------------------------------------------------------------------------------


def choose_accelerator(qemu: str, guest: Guest) -> Accelerator:
    """KVM where it boots the guest's kernel, else emulation. Tried once for each boot of this machine, and kept."""
    if not os.access(KVM, os.R_OK | os.W_OK):
        return "tcg"
    verdict = guest.directory / f"kvm-{BOOT_ID.read_text().strip()}"
    if not verdict.exists():
        for old in guest.directory.glob("kvm-*"):
            old.unlink(missing_ok=True)
        verdict.write_text("boots" if kvm_boots(qemu, guest) else "does not boot")
    return "kvm" if verdict.read_text() == "boots" else "tcg"


def kvm_boots(qemu: str, guest: Guest) -> bool:
    """Return whether the guest's kernel starts under KVM, which may be present and yet refuse, or hang."""
    with suppress(subprocess.TimeoutExpired):
        completed = subprocess.run(
            probe_argv(qemu, guest), stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_TIMEOUT_S, check=False
        )
        return completed.returncode == 0 and STARTS.encode() in completed.stdout
    return False


# --- starting it ------------------------------------------------------------------------------------------------------


@contextmanager
def _running(
    box: Box, qemu: str, guest: Guest, directory: Path, accelerator: Accelerator, watch: Watch
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """The guest, ready for SSH at the port that is given, and its process. If somebody takes the port first, another is
    tried; one that hangs in emulation, as happens on a busy machine, is switched off and on once."""
    # QEMU keeps what the guest writes to its own disk in a nameless file there.
    environment = {**os.environ, "TMPDIR": str(directory)}
    for attempt in range(START_ATTEMPTS):
        port = free_port()
        argv = qemu_argv(qemu, guest, directory, port=port, accelerator=accelerator, extra=extra_disks(box))
        machine = spawn(argv, directory / "qemu", environment)
        watch(machine)
        try:
            got = _wait_until_ready(machine, directory / "console", port)
            if not got:
                yield port, machine
                return
        finally:
            stop(machine)
        hangs = got == _HANGS and accelerator == "tcg" and attempt == 0
        taken = "host forwarding" in _text(directory / "qemu") and attempt + 1 < START_ATTEMPTS
        if not (hangs or taken):
            raise _did_not_boot(box, guest, directory, f"{got}, accelerator {accelerator}")


def _wait_until_ready(machine: subprocess.Popen[bytes], console: Path, port: int) -> str:
    """Wait until the guest reports that it is ready and its sshd answers. Return '' then, or why it will not be."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        status, output = machine.poll(), _text(console)
        if READY in output and greets(port, GREETING_TIMEOUT_S):
            return ""
        reason = next((line for line in output.splitlines() if any(words in line for words in GIVES_UP)), "")
        if reason or status is not None:
            return reason or f"QEMU ended with exit status {status}"
        time.sleep(0.02)
    return _HANGS


def _did_not_boot(box: Box, guest: Guest, directory: Path, got: str) -> BoxError:
    return BoxError(
        "the virtual box did not boot",
        where=f"box {box.name}: {QEMU.name}",
        got=got,
        next_step="see the end of its console below; to rebuild it: "
        f"rm -r {guest.directory} && mountlab box prepare {box.name}",
        evidence=_text(directory / "console") + _text(directory / "qemu"),
    )


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""

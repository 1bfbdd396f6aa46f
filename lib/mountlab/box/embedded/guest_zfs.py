"""ZFS in the virtual box: its kernel modules, built on the control machine for the very kernel that the box has.

Debian has ZFS as source (package zfs-dkms of contrib), since its licence does not go with the kernel's in one binary.
So Mountlab brings none either: each user's machine builds it, in a root directory of its own with compiler and headers,
which is removed again. The modules are kept beside the guests, and any later guest with this kernel takes them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mountlab.box.embedded.child import resource
from mountlab.box.embedded.guest_kernel import kernel_packages
from mountlab.core.errors import ParameterError
from mountlab.core.model import Box
from mountlab.core.virtual import VM_KERNELS

CONTRIB_PACKAGES = ("zfsutils-linux",)
"""What the guest itself has of the archive's component contrib: the programs."""
LICENCE = "Debian ships ZFS as source, since its licence and the kernel's do not go together in one binary"
DURATION = "about 10 minutes on two processors"


@dataclass(frozen=True, kw_only=True)
class ZfsBuild:
    """What is built: ZFS of this version for this kernel, as `uname -r` names it."""

    version: str
    kernel: str

    @property
    def file_name(self) -> str:
        return f"zfs-{self.version}-{self.kernel}.tar"


RECIPE = ("guest_zfs.sh", "guest_zfs_start.sh")


def has_zfs(box: Box) -> bool:
    """Return whether the box file asks for ZFS."""
    return "zfs" in box.extras


def check_kernel(box: Box, suite: str) -> None:
    """Raise ParameterError where the kernel is of another Debian release than the programs of ZFS would be."""
    if not has_zfs(box) or box.kernel is None or VM_KERNELS[box.kernel] == suite:
        return
    own = [kernel for kernel, release in VM_KERNELS.items() if release == suite]
    raise ParameterError(
        "ZFS goes with a kernel of the Debian release that the rest of the virtual box is of",
        where=f"params/boxes/{box.name}.yml: with",
        got=f"zfs, with the kernel {box.kernel} of {VM_KERNELS[box.kernel]} in a box of {suite}",
        allowed=" or ".join([*(f"kernel: {kernel}" for kernel in own), "no kernel"]),
    )


def with_contrib(lines: Sequence[str]) -> tuple[str, ...]:
    """Return lines of sources.list, and for each of the component main one more of contrib."""
    contrib = (f"{line.removesuffix(' main')} contrib" for line in lines if line.endswith(" main"))
    return tuple(dict.fromkeys((*lines, *contrib)))


def question(box: Box, answer: Path) -> tuple[str, ...]:
    """Return hooks that leave in a file what the archive has of the box's kernel and of ZFS."""
    names = f"{kernel_packages(box)[0]} zfs-dkms"
    return (
        f'APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-cache show --no-all-versions {names} >"$1/answer"',
        f"download /answer {shlex.quote(str(answer))}",
    )


def read_answer(answer: str) -> ZfsBuild | None:
    """Return what is to be built from apt's description of both packages; None where one is missing."""
    kernel = re.search(r"^Depends:.*\blinux-image-(\d\S*)", answer, re.MULTILINE)
    zfs = re.search(r"^Package: zfs-dkms\n(?:.+\n)*?Version: (\S+)", answer, re.MULTILINE)
    return ZfsBuild(version=zfs[1], kernel=kernel[1]) if kernel and zfs else None


def builder_packages(build: ZfsBuild) -> tuple[str, ...]:
    """Return the packages of the root directory in which ZFS is built."""
    return (f"linux-headers-{build.kernel}", "zfs-dkms", "dkms", "gcc", "make", "libc6-dev")


NOT_BY_ITSELF = 'mkdir -p "$1/etc/dkms"; : >"$1/etc/dkms/no-autoinstall"'
"""Before the package is there: its script would build for whatever kernel runs here."""


def builder_hooks(build: ZfsBuild, modules: Path) -> tuple[str, ...]:
    """Return hooks that build the modules and leave them in a tar file."""
    script = shlex.quote(resource("guest_zfs.sh"))
    return (
        f'chroot "$1" sh -c {script} zfs {shlex.quote(build.kernel)}',
        f"download /zfs.tar {shlex.quote(str(modules))}",
    )


def guest_hooks(build: ZfsBuild, modules: Path) -> tuple[str, ...]:
    """Return hooks that bring the modules into the guest, after guest_customize.sh, and have them loaded at its start.
    They fail where its kernel is another one: the archive has changed since it was asked."""
    kernel, start = shlex.quote(build.kernel), shlex.quote(resource("guest_zfs_start.sh"))
    return (
        f'[ -d "$1/usr/lib/modules/"{kernel} ] || {{ echo "the archive has another kernel now" >&2; exit 1; }}',
        f"tar-in {shlex.quote(str(modules))} /",
        f'chroot "$1" depmod {kernel}',
        f'printf %s {start} >"$1/etc/mountlab/zfs"',
        'sed -i "/^# --- network/i . /etc/mountlab/zfs" "$1/etc/mountlab/start"',
    )

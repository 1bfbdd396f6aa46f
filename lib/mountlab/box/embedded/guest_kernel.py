"""The kernel of the virtual box: which packages it takes, and from which Debian release.

With `kernel` in the box file the rest of the guest still comes from the release that it always comes from: two guests
with different kernels differ in nothing else.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from mountlab.core.model import Box
from mountlab.core.virtual import VM_KERNELS

CLOUD_KERNEL = "linux-image-cloud-amd64"
FULL_KERNEL = ("linux-image-amd64", "initramfs-tools")
"""The second is named since the packages of some releases prefer another one for what is never used here."""
KERNEL_PACKAGES = "linux-image-* linux-binary-* linux-modules-* linux-base linux-base-*"
"""Packages of a kernel and its modules, as patterns of apt: what may come from another release."""
_PREFERENCES = "etc/apt/preferences.d/mountlab-kernel"
_SUFFIXES = ("", "-updates", "-security")


def kernel_packages(box: Box) -> tuple[str, ...]:
    """Return the packages that bring the box's kernel."""
    return (CLOUD_KERNEL,) if box.kernel is None else FULL_KERNEL


def other_suite(box: Box, suite: str) -> str | None:
    """Return the Debian release that only the kernel comes from; None where that is `suite`, as all else."""
    kernel_suite = suite if box.kernel is None else VM_KERNELS[box.kernel]
    return None if kernel_suite == suite else kernel_suite


def lines_of(suite: str | None, lines: Sequence[str]) -> tuple[str, ...]:
    """Return lines of sources.list that name another release at the same addresses, updates and security fixes too."""
    changed = []
    for line in lines if suite else ():
        *before, release, component = line.split()
        suffix = release[len(release.partition("-")[0]) :]
        if suffix in _SUFFIXES:
            changed.append(" ".join((*before, f"{suite}{suffix}", component)))
    return tuple(dict.fromkeys(changed))


def pin(suite: str | None) -> tuple[str, ...]:
    """Return shell text that makes apt take the kernel from another release into the root "$1", and nothing else."""
    if suite is None:
        return ()
    names = [f"{suite}{suffix}" for suffix in _SUFFIXES]
    only = (f"Package: {KERNEL_PACKAGES}\nPin: release n={name}\nPin-Priority: 990\n" for name in names)
    never = (f"Package: *\nPin: release n={name}\nPin-Priority: -1\n" for name in names)
    text = "\n".join((*only, *never))
    return (f'printf %s {shlex.quote(text)} >"$1/{_PREFERENCES}"',)


def left_out(box: Box) -> tuple[str, ...]:
    """Return patterns of files that dpkg leaves out. Scripts of newer kernels need a newer run-parts than the guest may
    have, and `place_kernel` does what they do."""
    return () if box.kernel is None else ("/usr/share/kernel/*",)


def place_kernel(box: Box) -> tuple[str, ...]:
    """Return shell text that puts the kernel of the root "$1" into /boot, and its configuration where facts find it.

    It fails where the kernel is of another release than the box file names: a Debian release that is not stable yet
    changes its kernel. Removes what `pin` wrote.
    """
    if box.kernel is None:
        return ()
    error = f"the archive has kernel $made now, not {box.kernel}: name another in the box file, or none"
    commands = (
        f'rm -f "$1/{_PREFERENCES}"',
        'made=$(ls "$1/lib/modules")',
        f'case $made in {box.kernel}.*) ;; *) echo "{error}" >&2; exit 1 ;; esac',
        "modules=$1/lib/modules/$made",
        'if [ -e "$modules/vmlinuz" ]; then mv "$modules/vmlinuz" "$1/boot/vmlinuz-$made"; fi',
        'if ! [ -e "$modules/config" ]; then cp "$1/boot/config-$made" "$modules/config"; fi',
        'rm -f "$modules/System.map"',
    )
    return ("; ".join(commands),)

"""nfs: a directory of the box, exported by its kernel for the time of a mount, and mounted over NFS version 4.

The box mounts its own export, so that it makes directories, looks and counts as on any file system; clients mount it
from its address. Who may: the addresses of the box itself and of the run's clients, one by one. The server is ours
alone, and exports nothing else: one that runs already is refused, and left as it is.
"""

from __future__ import annotations

import re
from dataclasses import replace

from mountlab.core.errors import ParameterError
from mountlab.core.model import Filesystem, Place, Program, Step
from mountlab.filesystems.base import MOUNT, Family, borrow_step, directory_step, mount_step
from mountlab.filesystems.cache_counters import MOUNTSTATS
from mountlab.filesystems.directory import made_directory, own_directory

HERE = "127.0.0.1"
VERSION = "4.2"
_SERVERS = {"apt": "nfs-kernel-server", "dnf": "nfs-utils", "zypper": "nfs-kernel-server", "pacman": "nfs-utils"}
_CLIENTS = {"apt": "nfs-common", "dnf": "nfs-utils", "zypper": "nfs-client", "pacman": "nfs-utils"}
_HINT = "{} comes with {} (Debian) or nfs-utils (Fedora, Arch), which starts services at each boot: install it by hand"
MOUNT_NFS = Program(
    name="mount.nfs",
    packages=_CLIENTS,
    version=("mount.nfs", "-V"),
    version_word="nfs-utils",
    services=True,
    hint=_HINT.format("mount.nfs", "nfs-common"),
)
EXPORTFS = Program(
    name="exportfs",
    packages=_SERVERS,
    version=("exportfs", "-h"),
    services=True,
    hint=_HINT.format("exportfs", "nfs-kernel-server"),
)
_EVERYWHERE = re.compile(r"[0.]+|[0:]+")


class Nfs(Family):
    """NFS version 4, served by the box's own kernel. What another server exports is measured as a directory (dir)."""

    type = "nfs"
    expected = False
    cache_counters = (MOUNTSTATS,)
    keys = frozenset({"path", "server", "options"})

    programs = (MOUNT, MOUNT_NFS, EXPORTFS)
    client_programs = (MOUNT, MOUNT_NFS)
    kernel_types = ("nfs4", "nfsd")
    client_kernel_types = ("nfs4",)

    def check(self, fs: Filesystem, *, where: str) -> None:
        if fs.server is not None and _EVERYWHERE.fullmatch(fs.server):
            raise ParameterError(
                "a server listens at one address of the box, not at all of them",
                where=f"{where}.server",
                got=fs.server,
                allowed="the address under which the clients reach the box, such as 192.168.7.1",
            )
        for option in fs.options:
            name, _, value = option.partition("=")
            if name in ("vers", "nfsvers") and not re.fullmatch(r"4(\.[012])?", value):
                raise ParameterError(
                    "only version 4 of NFS is measured: the others need services beside the kernel's",
                    where=f"{where}.options",
                    got=option,
                    allowed="vers=4.0, vers=4.1, vers=4.2",
                )

    def steps(self, fs: Filesystem, place: Place) -> tuple[Step, ...]:
        directory, server = own_directory(fs, place), fs.server or HERE
        addresses, why = dict.fromkeys((HERE, server)), f"the kernel's NFS server, at {server} only"
        return (
            made_directory(directory, place, fs.path),
            borrow_step(place, "nfsd", *addresses, back=("nfsd", "ours"), why=why),
            *(_export(directory, place, address) for address in dict.fromkeys((*addresses, *place.peers))),
            directory_step(place.mountpoint),
            self._mount(fs, HERE, place),
        )

    def _mount(self, fs: Filesystem, server: str, place: Place) -> Step:
        source = f"[{server}]:/" if ":" in server else f"{server}:/"  # the server exports nothing else
        return mount_step(fs, "nfs4", source, place, own=self.own_options(fs))

    def own_options(self, fs: Filesystem) -> tuple[str, ...]:
        named = any(option.partition("=")[0] in ("vers", "nfsvers") for option in fs.options)
        return () if named else (f"vers={VERSION}",)

    def refuses_clients(self, fs: Filesystem) -> str | None:
        return None

    def client_steps(self, fs: Filesystem, place: Place, own: Place) -> tuple[Step, ...]:
        mount = self._mount(fs, fs.server or HERE, own)
        # The server may be gone before the client: then the mount must go all the same.
        undo = ("sh", "-c", 'timeout 60 umount "$1" || umount -f "$1" || umount -l "$1"', "umount-nfs", own.mountpoint)
        return directory_step(own.mountpoint), replace(mount, keep=None, undo=undo)

    def client_root(self, fs: Filesystem, place: Place, own: Place) -> str:
        return own.mountpoint


def _export(directory: str, place: Place, address: str) -> Step:
    name = f"{address}:{directory}"
    return borrow_step(place, "export", name, "fsid=0", back=("export", name), why=f"{address} may mount it")

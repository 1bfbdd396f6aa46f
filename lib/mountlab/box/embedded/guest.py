"""The guest of the virtual box: what it is built from, and building it (`mountlab box prepare vm`).

A small Debian with a distribution kernel, made by mmdebstrap: a squashfs image for the root, an empty ext4 for
/var/tmp, kernel, initial memory disk, and keys of its own. It lies in the user's cache directory under a name that
changes whenever anything does that it is built from, so that a new version of Mountlab never runs an old guest.
"""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import json
import os
import platform
import shlex
import shutil
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO

from mountlab.box.embedded import guest_zfs, here
from mountlab.box.embedded.child import Watch, private_directory, resource, stop
from mountlab.box.embedded.guest_kernel import kernel_packages, left_out, lines_of, other_suite, pin, place_kernel
from mountlab.box.embedded.keys import make_keys
from mountlab.box.readiness import Ask
from mountlab.box.tracing import PROFILING_PROGRAMS
from mountlab.box.tracing import PROGRAMS as TRACING_PROGRAMS
from mountlab.core.errors import BoxError, CommandError
from mountlab.core.model import Box, Program, everywhere
from mountlab.core.units import GIB
from mountlab.core.virtual import VM_KERNELS
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.layers import STACK_LAYERS
from mountlab.programs import TOOLS

Say = Callable[[str], None]
"""Shows a line of progress to the user."""

DEBIAN_KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
FALLBACK_SUITE = "bookworm"
"""What is built where the control machine is no Debian; on Debian, the suite that the machine itself has."""
BASE_PACKAGES = (
    "busybox-static", "openssh-server", "kmod", "ndctl", "e2fsprogs", "xfsprogs", "btrfs-progs", "util-linux",
    "mount", "fdisk", "coreutils", "diffutils", "tar", "mawk", "findutils",
)  # fmt: skip
RECIPE = ("guest_customize.sh", "guest_init.sh", "guest_start.sh", "guest_sshd.conf")
ALONE = ("unshare", "--mount", "--propagation", "slave", "--pid", "--mount-proc", "--fork", "--kill-child")
"""Words before a builder that root runs: it has name spaces of its own. If it is killed, nothing runs on or stays
mounted; and what is unmounted here meanwhile is let go there."""
APT_OPTIONS = ("Acquire::http::", "Acquire::https::", "Acquire::Retries", "Acquire::Check-Valid-Until")
"""Options of this machine's apt that hold for building, too."""
WORK_BYTES = 8 * GIB
"""Of the disk below /var/tmp, where images of file systems are made: sparse."""

QEMU = Program(
    name="qemu-system-x86_64",
    packages=everywhere("qemu-system-x86", dnf="qemu-system-x86-core", zypper="qemu-x86"),
)
KEYGEN = Program(
    name="ssh-keygen",
    packages={"apt": "openssh-client", "dnf": "openssh", "zypper": "openssh-common", "pacman": "openssh"},
)
BUILDERS = (
    QEMU,
    Program(name="mmdebstrap", packages={"apt": "mmdebstrap", "dnf": "mmdebstrap"}),
    Program(name="sqfstar", packages=everywhere("squashfs-tools", zypper="squashfs")),
    Program(name="mke2fs", packages=everywhere("e2fsprogs")),
    KEYGEN,
)
"""What the control machine needs; an ordinary user needs UIDMAP too."""
UIDMAP = Program(name="newuidmap", packages=everywhere("shadow", apt="uidmap", dnf="shadow-utils"))


class Guest:
    """A guest that is built: the files in its directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.kernel, self.initrd = directory / "vmlinuz", directory / "initrd"
        self.root = directory / "root.squashfs"
        """The root file system, only ever read."""
        self.work = directory / "work.img"
        """The empty file system for /var/tmp, only ever copied from."""
        self.client_key = directory / "client_key"
        self.host_key = directory / "host_key.pub"
        """Its public half; the other one is in the guest."""


# --- what it is built from --------------------------------------------------------------------------------------------


def packages(box: Box) -> tuple[str, ...]:
    """Debian packages of the guest: kernel and base, and what tracing and each tool, file system and layer of our own
    want."""
    programs = [program for tool in TOOLS.own.values() for program in tool.programs]
    programs += [program for family in FAMILIES.own.values() for program in family.programs]
    programs += [program for layer in STACK_LAYERS.values() for program in layer.programs]
    programs += (*TRACING_PROGRAMS, *PROFILING_PROGRAMS)
    named = {*kernel_packages(box), *BASE_PACKAGES, *(p.packages["apt"] for p in programs if "apt" in p.packages)}
    contrib = {*guest_zfs.CONTRIB_PACKAGES}
    return tuple(sorted(named | contrib if guest_zfs.has_zfs(box) else named - contrib))


def suite() -> str:
    """Return the Debian release that is built: the control machine's own, or FALLBACK_SUITE."""
    release = _os_release()
    return release.get("VERSION_CODENAME", FALLBACK_SUITE) if release.get("ID") == "debian" else FALLBACK_SUITE


def key(box: Box) -> str:
    """Return the name of the box's guest in the cache: a digest of all that it is built from."""
    parts = [suite(), packages(box), WORK_BYTES, *(resource(name) for name in RECIPE)]
    if box.kernel is not None:
        parts += [*pin(other_suite(box, suite())), *place_kernel(box), *left_out(box)]
    if guest_zfs.has_zfs(box):
        parts += [resource(name) for name in guest_zfs.RECIPE]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def cache_directory() -> Path:
    """Return where guests are kept: below $XDG_CACHE_HOME or ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mountlab" / "vm"


def built(box: Box) -> Guest:
    """Return the guest of this version of Mountlab. Raises BoxError where it was not built yet, or this is no x86-64
    Linux."""
    _check_machine(box)
    guest_zfs.check_kernel(box, suite())
    guest = Guest(cache_directory() / key(box))
    if not guest.directory.exists():
        raise BoxError(
            "the virtual box is not built",
            where=f"box {box.name}",
            got=f"no {guest.directory}",
            next_step=f"mountlab box prepare {box.name}",
        )
    return guest


def _check_machine(box: Box) -> None:
    system = os.uname()
    if (system.sysname, system.machine) != ("Linux", "x86_64"):
        raise BoxError(
            "the virtual box is made for x86-64 Linux machines",
            where=f"box {box.name}",
            got=f"{system.sysname} on {system.machine}",
            next_step="measure another machine over ssh: see params/boxes/example.yml",
        )


# --- building it ------------------------------------------------------------------------------------------------------


def build(box: Box, *, yes: bool, ask: Ask, say: Say) -> None:
    """Build the guest unless it is there, after installing what this machine lacks for it.

    Raises BoxError where that cannot be done here, CommandError with what the failing program said.
    """
    _check_machine(box)
    guest_zfs.check_kernel(box, suite())
    target = cache_directory() / key(box)
    if target.exists():
        return
    _check_programs(box, yes=yes, ask=ask)
    if os.geteuid() != 0:
        _check_namespaces(box)
    started = time.monotonic()
    cache_directory().mkdir(mode=0o700, parents=True, exist_ok=True)
    say(f"building the virtual box: Debian {suite()}{_kernel_text(box)}, in {target}")
    with _places() as (staging, scratch, watch):
        _fill(box, staging, scratch, watch, lambda line: say(f"{time.monotonic() - started:4.0f} s  {line}"))
        try:
            staging.rename(target)
        except OSError:
            if not target.exists():  # or somebody else was quicker
                raise
    say(f"{time.monotonic() - started:4.0f} s  built")
    others = sorted(path.name for path in cache_directory().iterdir() if path.is_dir() and path != target)
    if others:
        say(f"{cache_directory()} holds others, for other boxes or versions of Mountlab: {', '.join(others)}")


def _kernel_text(box: Box) -> str:
    """Return the words for a kernel that the box file names."""
    return "" if box.kernel is None else f" with the kernel {box.kernel} of Debian {VM_KERNELS[box.kernel]}"


@contextmanager
def _places() -> Iterator[tuple[Path, Path, Watch]]:
    """Where the guest is put together, beside its final place, and where mmdebstrap works: a directory that other users
    can pass through, as apt and the user name spaces want it."""
    with (
        private_directory("building-", parent=str(cache_directory())) as (beside, _),
        private_directory("mountlab-vm-", parent=temporary_directory()) as (scratch, watch),
    ):
        scratch.chmod(0o711)
        staging = beside / "guest"
        staging.mkdir(mode=0o700)
        yield staging, scratch, watch


def temporary_directory() -> str:
    """For files of several GiB: /tmp is often in memory."""
    return os.environ.get("TMPDIR") or "/var/tmp"  # noqa: S108  # where a directory of our own is made


def _fill(box: Box, staging: Path, scratch: Path, watch: Watch, say: Say) -> None:
    guest = Guest(staging)
    make_keys(box, _path(KEYGEN.name), staging)
    recipe, archive = staging / "recipe.tar", scratch / "root.tar"
    _write_recipe(recipe, guest)
    lines = sources(box)
    more = _zfs_hooks(box, staging.parent, scratch, lines, watch, say) if guest_zfs.has_zfs(box) else ()
    _bootstrap(box, bootstrap_argv(box, staging, archive, lines, more), scratch, watch, say)
    say("packing the root image")
    with archive.open("rb") as tar:
        argv = ("sqfstar", "-quiet", "-no-progress", "-comp", "lz4", str(guest.root))
        _run(box, argv, stdin=tar)
    with guest.work.open("wb") as file:
        file.truncate(WORK_BYTES)
    # All tables are written now: nothing is left for the guest to do while it measures.
    lazy = "lazy_itable_init=0,lazy_journal_init=0"
    _run(box, ("mke2fs", "-q", "-F", "-t", "ext4", "-m", "0", "-E", lazy, str(guest.work)))
    for completed in (recipe, staging / "host_key"):
        completed.unlink()


def _write_recipe(path: Path, guest: Guest) -> None:
    """The files for guest_customize.sh, which finds them in /mountlab."""
    contents = {name: resource(name).encode() for name in RECIPE}
    contents["host_key"] = (guest.directory / "host_key").read_bytes()
    contents["authorized_keys"] = (guest.directory / "client_key.pub").read_bytes()
    with tarfile.open(path, "w") as tar:
        for name, content in contents.items():
            entry = tarfile.TarInfo(f"mountlab/{name}")
            entry.size, entry.mode = len(content), 0o600
            tar.addfile(entry, BytesIO(content))


def _zfs_hooks(box: Box, beside: Path, scratch: Path, lines: Sequence[str], watch: Watch, say: Say) -> tuple[str, ...]:
    """Return hooks that bring the modules of ZFS into the guest, after building them unless the cache has them.
    `beside` is a directory in the cache."""
    answer, made = scratch / "answer", scratch / "zfs.tar"
    argv = root_argv("/dev/null", lines, variant="custom", customize=guest_zfs.question(box, answer))
    _bootstrap(box, argv, scratch, watch, lambda _: None)
    zfs = guest_zfs.read_answer(answer.read_text())
    if zfs is None:
        raise BoxError(
            "the package archive of this machine has no ZFS",
            where=f"box {box.name}: with",
            got="no zfs-dkms in its component contrib",
            next_step="take a mirror of Debian that has contrib, or leave `with` out of the box file",
        )
    modules = cache_directory() / zfs.file_name
    if modules.exists():
        say(f"ZFS {zfs.version} for the kernel {zfs.kernel} was built before: {modules}")
        return guest_zfs.guest_hooks(zfs, modules)
    say(f"ZFS {zfs.version} is built for the kernel {zfs.kernel}, once: {guest_zfs.DURATION}. {guest_zfs.LICENCE}.")
    argv = root_argv(
        "/dev/null",
        lines,
        variant="apt",
        include=guest_zfs.builder_packages(zfs),
        essential=(guest_zfs.NOT_BY_ITSELF,),
        customize=guest_zfs.builder_hooks(zfs, made),
    )
    _bootstrap(box, argv, scratch, watch, say)
    shutil.copyfile(made, beside / zfs.file_name)
    made.unlink()
    (beside / zfs.file_name).rename(modules)
    return guest_zfs.guest_hooks(zfs, modules)


def bootstrap_argv(
    box: Box, staging: Path, archive: Path, lines: Sequence[str], more: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the command that makes `archive` of the guest's root, and kernel and initrd in `staging`. `lines`: of
    sources.list, for all but the kernel; () for mmdebstrap's own choice. `more`: hooks after guest_customize.sh."""
    kernel_suite = other_suite(box, suite())
    hooks = (
        *place_kernel(box),
        'mkdir "$1/mountlab"',
        f"tar-in {shlex.quote(str(staging / 'recipe.tar'))} /",
        'chroot "$1" sh /mountlab/guest_customize.sh',
        *more,
        *(f"download /mountlab/{name} {shlex.quote(str(staging / name))}" for name in ("vmlinuz", "initrd")),
        'rm -r "$1/mountlab"',
    )
    return root_argv(
        str(archive),
        (*lines, *lines_of(kernel_suite, lines)),
        variant="essential",
        include=packages(box),
        without=left_out(box),
        setup=pin(kernel_suite),
        customize=hooks,
    )


def root_argv(
    target: str,
    lines: Sequence[str],
    *,
    variant: str,
    include: Sequence[str] = (),
    without: Sequence[str] = (),
    setup: Sequence[str] = (),
    essential: Sequence[str] = (),
    customize: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return the command that makes a root directory of Debian, and a tar file of it unless that is /dev/null: with
    these packages, without these files, and with hooks of mmdebstrap."""
    how: tuple[str, ...] = (_path("mmdebstrap"), "--mode=unshare")
    if os.geteuid() == 0:
        how = (*ALONE, _path("mmdebstrap"), "--mode=root")
    not_wanted = (*(f"/usr/share/{name}/*" for name in ("man", "doc", "locale", "info")), *without)
    hooks = {"setup": setup, "essential": essential, "customize": customize}
    return (
        *how,
        f"--format={'null' if target == '/dev/null' else 'tar'}",
        f"--variant={variant}",
        "--architectures=amd64",
        *((f"--include={','.join(include)}",) if include else ()),
        "--dpkgopt=force-unsafe-io",
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in not_wanted),
        *(f"--aptopt={option}" for option in apt_options()),
        *(f"--{stage}-hook={hook}" for stage, texts in hooks.items() for hook in texts),
        suite(),
        target,
        *lines,
    )


def _bootstrap(box: Box, argv: Sequence[str], scratch: Path, watch: Watch, say: Say) -> None:
    """Run mmdebstrap, and tell how it goes on: its own lines begin with 'I: '."""
    environment = {**os.environ, "TMPDIR": str(scratch), "LC_ALL": "C", "PATH": f"{os.environ['PATH']}:{here.SBIN}"}
    environment["INITRD"] = "No"  # the kernel's package would make one for any machine
    lines: list[str] = []
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
        errors="replace",
    ) as process:
        watch(process)
        try:
            for line in process.stderr or ():
                lines.append(line)
                if line.startswith("I: ") and line.endswith("...\n") and "tempdir" not in line:
                    say(line[3:].strip())
        except BaseException:
            stop(process)
            raise
    if process.returncode != 0:
        raise CommandError(
            "mmdebstrap could not build the virtual box",
            where=f"box {box.name}",
            got=f"exit status {process.returncode}",
            next_step="where it could not fetch packages, see that `apt-get update` works here; then prepare again",
            evidence="".join(line for line in lines if not line.startswith("I: ")),
        )


def _run(box: Box, argv: Sequence[str], stdin: IO[bytes] | int = subprocess.DEVNULL) -> None:
    completed = here.run([_path(argv[0]), *argv[1:]], stdin)
    if completed.returncode != 0:
        raise CommandError(
            f"`{shlex.join(argv)}` failed", where=f"box {box.name}", evidence=completed.stderr or completed.stdout
        )


def _path(name: str) -> str:
    """Return where a program is that was there a moment ago."""
    return here.find_program(name) or name


# --- where packages come from -----------------------------------------------------------------------------------------


def sources(box: Box) -> tuple[str, ...]:
    """Return lines of sources.list: those of this machine's Debian; where it is none, () for mmdebstrap's own choice.

    Raises BoxError where this is a Debian that has no package lists, or none and the box needs more than the default.
    """
    zfs = guest_zfs.has_zfs(box)
    if here.find_program("apt-get") is not None and _os_release().get("ID") == "debian":
        lines = _lines_here(box)
    else:
        if zfs or other_suite(box, suite()):
            raise BoxError(
                "a kernel of another release, and ZFS, come only from the servers of a control machine with Debian",
                where=f"box {box.name}",
                got=_os_release().get("ID", "an unknown distribution"),
                next_step="prepare it on Debian, or leave `kernel` and `with` out of the box file",
            )
        lines = ()
    return guest_zfs.with_contrib(lines) if zfs else lines


def _lines_here(box: Box) -> tuple[str, ...]:
    fields = "$(ORIGIN)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)"
    argv = ("apt-get", "indextargets", "--format", fields, "Created-By: Packages", "Architecture: amd64")
    lines = source_lines(here.run(argv).stdout)
    if not lines:
        raise BoxError(
            "this machine has no package lists of Debian",
            where=f"box {box.name}",
            got="nothing from `apt-get indextargets`",
            next_step="as root: apt-get update",
        )
    return lines


def source_lines(targets: str) -> tuple[str, ...]:
    """Return lines of sources.list from 'origin|address|release|component' lines; only Debian's own servers count."""
    rows = (line.split("|") for line in targets.splitlines())
    return tuple(
        f"deb [signed-by={DEBIAN_KEYS}] {uri} {release} {component}"
        for origin, uri, release, component in rows
        if origin == "Debian" and "://" in uri
    )


def apt_options() -> tuple[str, ...]:
    """Return how this machine's apt reaches its servers: proxies, certificates, time limits, whether lists expire."""
    if here.find_program("apt-config") is None:
        return ()
    argv = ("apt-config", "dump", "--no-empty", "--format", '%f "%v";%n', "Acquire")
    lines = here.run(argv).stdout.splitlines()
    return tuple(line for line in lines if line.startswith(APT_OPTIONS))


def _os_release() -> dict[str, str]:
    with contextlib.suppress(OSError):
        return platform.freedesktop_os_release()
    return {}


# --- what this machine must have --------------------------------------------------------------------------------------


def _check_programs(box: Box, *, yes: bool, ask: Ask) -> None:
    needs = BUILDERS if os.geteuid() == 0 else (*BUILDERS, UIDMAP)
    here.install(needs, where=f"box {box.name}", yes=yes, ask=ask)
    absent = here.missing(needs)
    if absent:
        raise BoxError(
            "the virtual box cannot be built without these programs on this machine",
            where=f"box {box.name}",
            got=f"no {', '.join(program.name for program in absent)}",
            next_step=here.install_line(absent),
        )
    if not DEBIAN_KEYS.exists():
        raise BoxError(
            "the keys of Debian's archive are missing on this machine: packages could not be checked",
            where=f"box {box.name}",
            got=f"no {DEBIAN_KEYS}",
            next_step="install the package debian-archive-keyring",
        )


def _check_namespaces(box: Box) -> None:
    """An ordinary user builds in a user name space, which needs numbers of users to map and a kernel that allows it."""
    user = getpass.getuser()
    absent = [
        str(path) for path in (Path("/etc/subuid"), Path("/etc/subgid")) if not has_range(path, user, os.getuid())
    ]
    if absent:
        raise BoxError(
            "an ordinary user needs a range of user and group numbers to build the virtual box",
            where=f"box {box.name}",
            got=f"no line for {user} in {' and '.join(absent)}",
            next_step=f"as root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {user}; "
            "or prepare the box as root",
        )
    tried = here.run(("unshare", "--user", "true"))
    if tried.returncode != 0:
        raise BoxError(
            "this machine does not allow ordinary users to make user name spaces",
            where=f"box {box.name}",
            got=tried.stderr.strip(),
            next_step="prepare the box as root; or allow it (sysctl kernel.unprivileged_userns_clone=1, "
            "kernel.apparmor_restrict_unprivileged_userns=0)",
        )


def has_range(path: Path, user: str, uid: int) -> bool:
    """Return whether /etc/subuid or /etc/subgid gives the user a range."""
    with contextlib.suppress(OSError):
        return any(line.split(":")[0] in (user, str(uid)) for line in path.read_text().splitlines())
    return False

"""Least privilege on the box (`become: helper`): an ordinary user, and one program of root's that sudo lets him run.

The program (launch.sh, helper.sh) lies on the box, where root has put it once (install.sh), with copies of the scripts
that it runs. It takes the commands of a plan, looks at each word itself, and does nothing else: what is
sent to it need not be trusted. Here is what the control side knows of it: which commands of a plan are for the helper,
in which words (`user_argv`), and what it cannot do (`not_permitted`). All else, the tools above all, runs as the
user.
"""

from __future__ import annotations

import re
import shlex
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from gzip import compress
from hashlib import sha256
from importlib.resources import files

from mountlab.core.errors import ParameterError
from mountlab.core.model import Box, Filesystem
from mountlab.core.units import whole_seconds
from mountlab.filesystems.backing import DETACH

PROGRAM = "/usr/local/lib/mountlab/helper"
"""The only program that the sudoers file names."""
COMMAND = ("sudo", "-n", PROGRAM)
DEFAULT_ROOT = "/var/lib/mountlab"
"""The mount root where the box file names none: only root may exchange what lies above it."""
ASK_S = 30
LONGEST_S = 99999
"""The longest time limit that launch.sh takes, in seconds."""

_HELPER_SCRIPTS = ("helper.sh", "checks.sh", "record.sh", "umount.sh")
_COPIED_SCRIPTS = (
    "box/leftovers.sh", "box/perf.sh", "box/tracing.sh", "filesystems/kallsyms.sh", "filesystems/ownership.sh",
    "filesystems/open.sh", "filesystems/alone.sh", "filesystems/borrow.sh", "filesystems/evidence.sh",
    "filesystems/claim.sh", "filesystems/claim_record.sh", "filesystems/detach.sh", "filesystems/device.sh",
    "filesystems/guard.sh", "filesystems/image.sh", "filesystems/settle.sh", "filesystems/strict.sh",
    "filesystems/timed.sh",
)  # fmt: skip
_PREFIXES = {"guard.sh": 3, "timed.sh": 0, "strict.sh": 0, "alone.sh": 1}
"""Scripts that run the command behind so many words of their own."""
_KERNEL_SCRIPTS = ("tracing.sh", "kallsyms.sh")
"""Scripts of no run, which the helper runs where root permits tracing."""
_SCRIPTS = {"image.sh", DETACH, "borrow.sh", "evidence.sh", "claim.sh", "settle.sh", *_KERNEL_SCRIPTS}
_COMMANDS = {
    "mount", "umount", "mkdir", "rmdir", "rm", "losetup", "mke2fs", "mkfs.xfs", "mkfs.btrfs", "mkfs.f2fs", "blockdev",
}  # fmt: skip
_WITHOUT_RUN = "-"
_PATH = re.compile(r"(/[A-Za-z0-9._:+@,=-]+)+\Z")
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}\Z")
_END = "MOUNTLAB_END_OF_FILE"


# --- what lies on the box ---------------------------------------------------------------------------------------------


@cache
def installed_files() -> dict[str, str]:
    """Return name below /usr/local/lib/mountlab to text, in the order in which the helper reads them for its
    version."""
    package = files("mountlab")
    texts = {"helper": package.joinpath("box/helper/launch.sh").read_text()}
    texts |= {name: package.joinpath("box/helper", name).read_text() for name in _HELPER_SCRIPTS}
    texts |= {path.rpartition("/")[2]: package.joinpath(path).read_text() for path in _COPIED_SCRIPTS}
    return {"helper": texts.pop("helper"), **dict(sorted(texts.items()))}


@cache
def version() -> str:
    """Return the digest of `installed_files`, as the helper computes it from the files on the box."""
    return sha256("".join(installed_files().values()).encode()).hexdigest()


def sudoers(user: str) -> str:
    """Return the whole sudoers file: one program, with whatever words, which the program looks at itself."""
    return (
        f"# Lets {user} run Mountlab's helper as root, and nothing else. Made by `mountlab box helper`.\n"
        f"Defaults!{PROGRAM} env_reset, !setenv, !requiretty\n"
        f"{user} ALL=(root) NOPASSWD: NOSETENV: {PROGRAM}\n"
    )


def install_script(user: str, box: Box, *, tracing: bool = False) -> str:
    """Return a script for sh that installs the helper on the box, to be run there as root: with `remove` it takes it
    away. `tracing`: whether the helper lets perf record what the whole machine does.

    Raises ParameterError for a name or path that could mean something else to a shell, to sudo or to the helper.
    """
    where = f"box {box.name}"
    devices = list(box.block_devices.values())
    mount_root = box.mount_root or DEFAULT_ROOT
    if not _USER.match(user):
        raise ParameterError("no name for an ordinary user", where=where, got=repr(user), allowed="such as mountlab")
    for path in (mount_root, *devices):
        if not _PATH.match(path) or ".." in path.split("/"):
            raise ParameterError(
                "the helper takes plain paths only", where=where, got=repr(path), allowed="letters, digits and ._:+@,=-"
            )
    texts = {name: _here_document(name, text) for name, text in installed_files().items()}
    return "\n".join(
        [
            "#!/bin/sh",
            f"user={user} mount_root={mount_root} tracing={'yes' if tracing else ''}",
            f"scratch={shlex.quote(' '.join(devices))}",
            f"sudoers() {{\n{_here_document('', sudoers(user))}\n}}",
            "write_files() {",
            *texts.values(),
            "}",
            files("mountlab").joinpath("box/helper/install.sh").read_text(),
        ]
    )


def install_argv(script: str, *words: str) -> tuple[str, ...]:
    """Return the command that runs an install script on a box. The script is compressed: ssh hands a command to a shell
    as one argument, which Linux limits to 128 KiB."""
    packed = b64encode(compress(script.encode())).decode()
    return ("sh", "-c", _UNPACK, "mountlab-install", packed, *words)


_UNPACK = """
for program in base64 gzip; do
    command -v "$program" >/dev/null || { echo "not installed: there is no $program" >&2; exit 1; }
done
packed=$1
shift
printf %s "$packed" | base64 -d | gzip -d | sh -s -- "$@"
"""


def _here_document(name: str, text: str) -> str:
    assert _END not in text
    assert text.endswith("\n")
    return f"cat {f'>{name} ' if name else ''}<<'{_END}'\n{text}{_END}"


# --- what it reports about itself -------------------------------------------------------------------------------------

PROBE = f"""id -u
if [ -d /dev/shm ] && [ -w /dev/shm ]; then echo "/dev/shm/mountlab-$(id -un)"
else echo "/var/tmp/mountlab-$(id -un)-out"; fi
{shlex.join(COMMAND)} {ASK_S} {_WITHOUT_RUN} version"""
"""For sh on the box: who we are, where output goes by default, and what the helper reports about itself."""


@dataclass(frozen=True)
class Introduction:
    """What PROBE printed."""

    uid: str
    output_root: str
    version: str = ""
    user: str = ""
    mount_root: str = ""
    scratch: tuple[str, ...] = ()


def read_introduction(printed: str) -> Introduction:
    """Parse the output of PROBE; without a helper it has only the user and the output root."""
    lines = [*printed.splitlines(), "", ""]
    pairs = [line.partition(" ")[::2] for line in lines[2:]]
    values = dict(pairs)
    return Introduction(
        lines[0].strip(),
        lines[1],
        values.get("version", ""),
        values.get("user", ""),
        values.get("mount_root", ""),
        tuple(value for key, value in pairs if key == "scratch"),
    )


def check_introduction(introduction: Introduction, box: Box, user: str) -> None:
    """Raise ParameterError where the box has no helper for us, another one than ours, or one with other directories."""
    where = f"params/boxes/{box.name}.yml: become: helper"
    install = f"mountlab box helper {box.name} > install.sh; read it; on the box, as root: sh install.sh"
    if introduction.uid == "0":
        raise ParameterError(
            "root needs no helper",
            where=where,
            got=f"user {user}, who is root",
            allowed="an ordinary user",
            next_step="set `user` to the one that the helper is for, or `become: root`",
        )
    if introduction.version != version():
        problem = "the helper on the box is of another version of Mountlab"
        got = f"version {introduction.version[:12]}, and we are {version()[:12]}"
        if not introduction.version:
            problem, got = "the box has no helper that lets us in", f"`{shlex.join(COMMAND)}` does not answer {user}"
        allowed = f"the helper of this Mountlab, for {user}"
        raise ParameterError(problem, where=where, got=got, allowed=allowed, next_step=install)
    if box.mount_root not in (None, introduction.mount_root):
        raise ParameterError(
            "the helper on the box has another mount root",
            where=f"params/boxes/{box.name}.yml: mount_root",
            got=str(box.mount_root),
            allowed=introduction.mount_root,
            next_step=f"write that; or change it there: {install}",
        )


# --- in which words ---------------------------------------------------------------------------------------------------


def user_argv(argv: Sequence[str], box: Box, *, timeout_s: float) -> tuple[str, ...]:
    """Return what to run as the user for a command that would be run as root: the helper with the words of that
    command, or, where it is none of the helper's, the command itself.

    `box` holds both roots, as the helper reported them. Nothing is taken on trust here or there: words that it does
    not know it refuses.
    """
    argv = tuple(argv)
    wrapped = _lease_argv(argv, box) or _argv_for_both_roots(argv, box, timeout_s)
    return wrapped or _helper_argv(argv, box, timeout_s) or argv


def _lease_argv(argv: tuple[str, ...], box: Box) -> tuple[str, ...] | None:
    """Return the command of a lease, which runs as the user, and whose clean-up runs by the helper; None for others."""
    match argv:
        case ("env", mark, "sh", "-c", text, "lease.sh", base, grace, run, clean, name, *arguments):
            inner = user_argv(("sh", "-c", clean, name, *arguments), box, timeout_s=600)
            return ("env", mark, "sh", "-c", text, "lease.sh", base, grace, run, inner[2], name)
    return None


def _argv_for_both_roots(argv: tuple[str, ...], box: Box, timeout_s: float) -> tuple[str, ...] | None:
    """Return a command on both roots: by the helper below the mount root, as the user for output; None for others."""
    run, words = _split_mark(argv)
    helper = _Helper(box, run, timeout_s)
    match words:
        case ("sh", "-c", text, "open.sh", "look", _, output_root):
            looks = ("sh", "-c", text, "open.sh", "look", output_root, output_root)
            return _sequence(helper.argv(_WITHOUT_RUN, "look"), looks)
        case ("sh", "-c", text, "open.sh", verb, run_dir, output_dir, owner):
            ours = ("sh", "-c", text, "open.sh", verb, output_dir, output_dir, owner)
            run_id = run_dir.rpartition("/")[2]
            theirs, closing = (helper.argv(run_id, "open.sh", word, owner) for word in (verb, "close"))
            return _open_both(theirs, ours, closing) if verb == "open" else _both(ours, theirs)
        case ("sh", "-c", _, "mountlab-clean", "kill", _, name, *_):
            return _sequence(words, helper.argv(name, "kill"))
        case ("sh", "-c", text, "mountlab-clean", mode, uid, name, _, output_root, borrow, owner, layer):
            mine = ("sh", "-c", text, "mountlab-clean", mode, uid, name, output_root, "", borrow, owner, layer)
            return _sequence(mine, helper.argv(_WITHOUT_RUN, "clean", mode, *filter(None, [owner])))
        case ("sh", "-c", text, "make-dir", directory, run_dir) if not directory.startswith(f"{run_dir}/"):
            # somewhere on the box: as the user, who keeps the record of it with his own files
            return ("sh", "-c", text, "make-dir", directory, f"{box.output_root}/{run_dir.rpartition('/')[2]}")
        case ("sh", "-c", _, "make-dir", directory, run_dir):
            mark = ("sh", "-c", 'umask 077; echo made > "$1/.mountlab"', "mark-dir", directory)
            return _sequence(helper.argv(run_dir.rpartition("/")[2], "make-dir", directory), mark)
        case ("sh", "-c", text, "remove-dir", directory) if directory.startswith(f"{box.mount_root}/"):
            contents = ("sh", "-c", text, "remove-dir", directory, "contents")
            removal = helper.argv(_run_of((directory,), box), "rmdir", directory)
            not_empty = f'[ -n "$(ls -A {shlex.quote(directory)})" ]'
            return ("sh", "-c", f"{shlex.join(contents)} && {not_empty} || {shlex.join(removal)}")
    return None


def _sequence(*commands: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command that runs these in order until one fails, with its exit status."""
    return ("sh", "-c", " && ".join(map(shlex.join, commands)))


def _open_both(theirs: tuple[str, ...], ours: tuple[str, ...], closing: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command that opens both roots, or none: where the user's cannot be opened, it closes the helper's."""
    first, second, close = map(shlex.join, (theirs, ours, closing))
    return ("sh", "-c", f"{first} && {{ {second} || {{ status=$?; {close}; exit $status; }}; }}")


def _both(ours: tuple[str, ...], theirs: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command that runs both, even if the first fails; then with its exit status."""
    return ("sh", "-c", f"{shlex.join(ours)}; status=$?; {shlex.join(theirs)} && exit $status")


def _helper_argv(argv: tuple[str, ...], box: Box, timeout_s: float) -> tuple[str, ...] | None:
    run, rest = _split_mark(argv)
    words = tuple(_words(rest))
    if not words or not _is_ours(words, box):
        return None
    run = _WITHOUT_RUN if words[0] in _KERNEL_SCRIPTS else run or _run_of(words, box)
    return _Helper(box, run, timeout_s).argv(run, *words)


def _is_ours(words: tuple[str, ...], box: Box) -> bool:
    """Return whether a command is about a path below the mount root, or a device: other directories are the user's."""
    if words[0] == "evidence.sh":
        return words[1].startswith(f"{box.mount_root}/") and words[1].split("/")[-2] == "mnt"
    if words[0] in ("blockdev", "claim.sh", "settle.sh", *_KERNEL_SCRIPTS, *_PREFIXES):
        return True
    return any(word == box.mount_root or word.startswith(f"{box.mount_root}/") for word in words)


@dataclass(frozen=True)
class _Helper:
    box: Box
    run: str
    timeout_s: float

    def argv(self, run: str, *words: str) -> tuple[str, ...]:
        limit = min(LONGEST_S, whole_seconds(self.timeout_s))
        return (*COMMAND, str(limit), run or _WITHOUT_RUN, *words)


def _split_mark(argv: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the run that a command is marked with ('' for none), and the command."""
    if argv[:1] == ("env",) and argv[1].startswith("MOUNTLAB_RUN="):
        return argv[1].removeprefix("MOUNTLAB_RUN="), argv[2:]
    return "", argv


def _words(argv: tuple[str, ...]) -> Iterator[str]:
    """Yield a command with the names of our scripts in the place of their text; nothing for what is not the
    helper's."""
    if argv[:2] == ("sh", "-c") and len(argv) > 3:
        name = argv[3]
        if name in _PREFIXES:
            end = 4 + _PREFIXES[name]
            inner = tuple(_words(argv[end:]))
            if inner or len(argv) == end:
                yield from (*argv[3:end], *inner)
        elif name in _SCRIPTS:
            yield from argv[3:]
    elif argv[:1] and argv[0] in _COMMANDS:
        yield from argv


def _run_of(words: tuple[str, ...], box: Box) -> str:
    """Return the id of the run in whose directory the first path below the mount root lies."""
    root = f"{box.mount_root}/"
    paths = (word.removeprefix(root) for word in words if word.startswith(root))
    return next((path.partition("/")[0] for path in paths), _WITHOUT_RUN)


# --- what the helper cannot do ----------------------------------------------------------------------------------------


def not_permitted(fs: Filesystem) -> str:
    """Return why the helper cannot make a file system; '' where it can."""
    below = fs.over or fs
    reasons = {
        "raw: who may write a device as he likes could have anything mounted from it": below.type == "raw",
        "nfs: a server for others is root's alone to start": below.type == "nfs",
        "pmfs: it writes to physical memory": below.type == "pmfs",
        "pmbd: loading kernel modules needs root": below.pmbd is not None,
        "stack: layers on devices need root": bool(below.stack),
        "zfs: pools are root's alone to make": below.type == "zfs",
        "a file system on several devices needs root": len(below.devices) > 1 or below.members > 1,
        "realtime_image: a realtime device needs root": below.realtime_image_bytes is not None,
        "image_dir: images lie below the mount root of the helper only": below.image_dir is not None,
        "bind: a directory of others could be reached by another name": below.type == "bind" and below.path is not None,
        "overlay: its layers have to lie where only root may write": fs.over is not None
        and below.type in ("dir", "bind", "shmfs")
        and below.size_bytes is None,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")

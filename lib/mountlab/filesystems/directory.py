"""dir, in_place and bind: an existing directory, measured as it is, or through a mount of its own."""

from __future__ import annotations

from mountlab.core.errors import ParameterError
from mountlab.core.model import Filesystem, Place, Program, Step, StepRole
from mountlab.core.shell import script_text
from mountlab.filesystems.base import ANYTHING, MOUNT, NOT_MOUNTED, OF_ANY_MOUNT, Family, directory_step, timed_step
from mountlab.filesystems.cache_counters import CACHE_COUNTERS

OPEN = "open.sh"
"""Name of the script of a run's directories in the argument list of a command."""
MAKE = """
umask 077
printf '%s\\n' "$1" >> "$2/elsewhere" || exit
# What is somebody else's in it kept it, when it was to be removed.
[ ! -L "$1" ] && [ -f "$1/.mountlab" ] && read -r head < "$1/.mountlab" && [ "$head" = kept ] && head=made || head=
[ "$head" = made ] || mkdir "$1" || exit
echo made > "$1/.mountlab"
"""
REMOVE = """
foreign() { printf 'kept: %s\\n' "$(printf '%s' "$1" | tr '\\n\\t' '??')"; }
stuck() { [ -n "$blocked" ] || blocked=$1; }
act=remove blocked=''
# With a word after the directory: leave that itself to somebody who may remove it.
if [ -n "${2:-}" ]; then end_directory() { [ "$(ls -A "$1")" != .mountlab ] || rm -f -- "$1/.mountlab"; }; fi
marked_directory "$1" || { echo "$1 is not a directory of Mountlab's" >&2; exit 1; }
walk_own "$1"
[ -z "$blocked" ] || { echo "$blocked" >&2; exit 1; }
"""
"""Needs ownership.sh."""


def made_directory(directory: str, place: Place, inside: str | None) -> Step:
    """Return a new directory of our own with our marker; written down where it lies outside of the run's directory."""
    return Step(
        argv=("sh", "-c", MAKE, "make-dir", directory, place.run_dir),
        why=f"our own directory in {inside or 'the mount root'}",
        undo=("sh", "-c", script_text("ownership.sh") + REMOVE, "remove-dir", directory),
    )


def own_directory(fs: Filesystem, place: Place) -> str:
    """Our own directory in the one that is named, or in the run's."""
    return f"{fs.path}/mountlab-{place.run_id}-{fs.name}" if fs.path else f"{place.run_dir}/{fs.name}"


class Directory(Family):
    """Whatever file system holds the directory. We make one directory of our own inside it, and remove that."""

    type = "dir"
    needs_root = False
    controlled = False
    made = False
    cache_counters = CACHE_COUNTERS
    keys = frozenset({"path"})
    programs: tuple[Program, ...] = ()
    kernel_types = ()

    def check(self, fs: Filesystem, *, where: str) -> None:
        """Any path will do here; whether it exists and can be written is asked of the box before the run."""

    def steps(self, fs: Filesystem, place: Place) -> tuple[Step, ...]:
        return (made_directory(own_directory(fs, place), place, fs.path),)

    def root_of(self, fs: Filesystem, place: Place) -> str:
        return own_directory(fs, place)

    def mounted_as(self, fs: Filesystem) -> str:
        return NOT_MOUNTED

    def refuses_clients(self, fs: Filesystem) -> str | None:
        return None if fs.path else "clients share a directory that all of them see under the same path: give `path`"


class InPlace(Directory):
    """A directory of the user's, left as it is: nothing is made in it, mounted or removed. For the tool `watched`."""

    type = "in_place"
    in_place = True

    def check(self, fs: Filesystem, *, where: str) -> None:
        if fs.path is None:
            raise ParameterError(
                "a directory in place needs its path",
                where=f"{where}.path",
                got="nothing",
                allowed="a directory of the box",
            )

    def steps(self, fs: Filesystem, place: Place) -> tuple[Step, ...]:
        return ()

    def root_of(self, fs: Filesystem, place: Place) -> str:
        return str(fs.path)

    def refuses_clients(self, fs: Filesystem) -> str | None:
        return "a program is watched on one box: the counters of that box are read"


class Bind(Directory):
    """The same, mounted once more elsewhere, with the options that a mount point of its own may have (noatime, ...).

    It shows what a bind mount costs, and what those options change; the file system below stays as it is."""

    type = "bind"
    needs_root = True
    keys = frozenset({"path", "options"})
    programs = (MOUNT,)

    def check(self, fs: Filesystem, *, where: str) -> None:
        wrong = [option for option in fs.options if option not in OF_ANY_MOUNT]
        if wrong:
            raise ParameterError(
                "a bind mount applies the options of a mount point only, and silently ignores all others",
                where=f"{where}.options",
                got=", ".join(wrong),
                allowed=", ".join(OF_ANY_MOUNT),
            )

    def steps(self, fs: Filesystem, place: Place) -> tuple[Step, ...]:
        directory = own_directory(fs, place)
        argv = ("mount", "--bind", *(("-o", ",".join(fs.options)) if fs.options else ()), directory, place.mountpoint)
        mount = timed_step(
            argv, StepRole.MOUNT, why=f"mount {fs.name}", keep="mount.txt", undo=("umount", place.mountpoint)
        )
        return (*super().steps(fs, place), directory_step(place.mountpoint), mount)

    def root_of(self, fs: Filesystem, place: Place) -> str:
        return place.mountpoint

    def mounted_as(self, fs: Filesystem) -> str:
        return ANYTHING

    def refuses_clients(self, fs: Filesystem) -> str | None:
        return Family.refuses_clients(self, fs)

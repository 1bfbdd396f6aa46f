"""dir: an existing directory, measured without mounting anything, for people without root."""

from __future__ import annotations

from mountlab.evidence import mount_options
from mountlab.filesystems.base import Evidence
from mountlab.model import Filesystem, Place, Program, Step

MAKE = 'umask 077; mkdir "$1" && : > "$1/.mountlab" && printf "%s\\n" "$1" >> "$2/elsewhere"'
REMOVE = '[ -f "$1/.mountlab" ] && rm -rf --one-file-system "$1"'


class Directory:
    """Whatever file system holds the directory. We make one directory of our own inside it, and remove that."""

    type = "dir"
    needs_root = False
    in_memory = False
    keys = frozenset({"path"})
    programs: tuple[Program, ...] = ()

    def check(self, fs: Filesystem, *, where: str) -> None:
        """Any path will do here; whether it exists and can be written is asked of the box before the run."""

    def steps(self, fs: Filesystem, place: Place) -> tuple[Step, ...]:
        root = self.root_of(fs, place)
        return (
            Step(
                argv=("sh", "-c", MAKE, "make-dir", root, place.run_dir),
                why=f"our own directory in {fs.path or 'the mount root'}",
                undo=("sh", "-c", REMOVE, "remove-dir", root),
            ),
        )

    def root_of(self, fs: Filesystem, place: Place) -> str:
        return f"{fs.path}/mountlab-{place.run_id}-{fs.name}" if fs.path else f"{place.run_dir}/{fs.name}"

    def capacity_bytes(self, fs: Filesystem) -> int | None:
        return None

    def in_effect(self, fs: Filesystem, evidence: Evidence) -> dict[str, str]:
        return mount_options(evidence)

"""Checksums of raw output: of a trial in its line of the journal, of a mount in a file beside its evidence.

A mount may be made again when a run is resumed, and its evidence is then written again: its checksums lie with it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from mountlab.core.checksums import MANIFEST, files_digest, manifest, read_manifest, sums_of
from mountlab.core.disk import path_text, read_plain
from mountlab.core.errors import AlteredError, StoreError

ACCEPT = "mountlab reparse {run} --accept-altered"
"""What goes on with a run that was altered, as it is now."""


class Problem(NamedTuple):
    """What is not as it was written."""

    where: str
    what: str
    name: str = ""
    """Of the trial or the mount; '' of the journal."""


def with_sums(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of a mount, and the file of their checksums."""
    return {**files, MANIFEST: manifest(sums_of(files)).encode()}


def digest_of(files: Mapping[str, bytes]) -> str:
    """Return the digest of a trial's raw output, as its line of the journal holds it."""
    return files_digest(sums_of(files))


def digest_on_disk(directory: Path) -> str:
    """Return the same of what lies on the disk. Raises OSError, and StoreError for what is no plain file."""
    return files_digest(on_disk(directory))


def altered_trials(raw: Path, digests: Mapping[str, str]) -> Iterator[Problem]:
    """Find trials whose raw output is not what it was. `digests`: trial id to what it was."""
    for trial_id, expected in digests.items():
        directory = raw / trial_id
        if not directory.is_dir():
            yield Problem(path_text(directory), f"the raw output of {trial_id} is missing", trial_id)
        elif digest_on_disk(directory) != expected:
            what = f"a file of the raw output of {trial_id} was changed, added or removed"
            yield Problem(path_text(directory), what, trial_id)


def altered_mounts(raw: Path, names: Iterable[str], accepted: Mapping[str, str]) -> Iterator[Problem]:
    """Find files of mounts that are not what they were. `accepted`: mount to the digest that a person accepted."""
    for name in names:
        directory = raw / name
        if not directory.is_dir():
            continue  # nothing was mounted: its trials say why
        sums = on_disk(directory)
        if accepted.get(name) == files_digest(sums):
            continue
        for file in _differing(directory, sums):
            what = f"a file of the evidence of mount {name} was changed, added or removed"
            yield Problem(path_text(directory / file), what, name)


def refuse_altered(problems: Sequence[Problem], run: str, what: str, *, allowed: str, or_else: str = "") -> None:
    """Raise AlteredError for the first problem, where there is one. `or_else`: a way on without accepting it."""
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise AlteredError(
            f"{what} was altered after it was written",
            where=problems[0].where,
            got=problems[0].what + more,
            allowed=allowed,
            next_step=f"bring it back from a copy or a bundle. {or_else}Or accept the run as it is now; its reports "
            f"will say so: {ACCEPT.format(run=run)}",
        )


def _differing(directory: Path, sums: dict[str, str]) -> list[str]:
    """Return names of files that are not as the file of checksums says; that file itself where it cannot be read."""
    sums = {name: digest for name, digest in sums.items() if name != MANIFEST}
    try:
        expected = read_manifest(read_plain(directory / MANIFEST).decode())
    except (OSError, ValueError, StoreError):
        return [MANIFEST]
    return sorted(name for name in {*sums, *expected} if sums.get(name) != expected.get(name))


def on_disk(directory: Path) -> dict[str, str]:
    """SHA-256 of every file below a directory, by its name there."""
    sums: dict[str, str] = {}
    top, pending = str(directory), [""]
    while pending:
        below = pending.pop()
        with os.scandir(f"{top}/{below}") as entries:
            for entry in entries:
                name = f"{below}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    pending.append(f"{name}/")
                else:
                    sums[name] = sha256(read_plain(entry.path)).hexdigest()
    return sums

"""What a trial sends back, as one tar archive."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Mapping

from mountlab.core.units import MIB

Files = Mapping[str, bytes]
"""Name of a file of raw output to its content."""
LARGEST_OUTPUT = 16 * MIB
"""Of its standard output, of its standard error, and of what its preparation says: more than this is cut off."""
LARGEST_ARCHIVE = 64 * MIB
"""Of all that a trial brings back."""


def unpack(archive: bytes) -> dict[str, bytes]:
    """Plain files of a tar archive by name; anything else in it (links, devices, paths upwards) is passed over.

    Of one that is cut off the files that are whole. Where there is none, what came back as one file, `archive`, so that
    it can be looked at.
    """
    files = dict(_plain_files(archive))
    return files if files or not archive else {"archive": archive}


def _plain_files(archive: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
            for member in tar:
                name = member.name.removeprefix("./")
                if member.isfile() and "/" not in name and name not in ("", "..") and (data := tar.extractfile(member)):
                    yield name, data.read()
    except tarfile.TarError:
        return

"""What a trial sends back, as one tar archive."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Mapping

from mountlab.core.units import MIB

Files = Mapping[str, bytes]
"""Name of a file of raw output to its content."""
LARGEST_OUTPUT = 16 * MIB
"""Limit in bytes for standard output, standard error and the preparation's output each: the rest is cut off."""
LARGEST_ARCHIVE = 64 * MIB
"""Limit in bytes for all files of a trial together."""


def unpack(archive: bytes) -> dict[str, bytes]:
    """Return the plain files of a tar archive by name; anything else in it (links, devices, paths upwards) is ignored.

    A truncated archive gives its complete files. Without any, the whole content is one file `archive`, for inspection.
    """
    files = dict(_plain_files(archive))
    return files if files or not archive else {"archive": archive}


def _plain_files(archive: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
            for member in tar:
                name = member.name.removeprefix("./")
                plain = member.isfile() and "/" not in name and name not in ("", ".", "..")
                if plain and (data := tar.extractfile(member)):
                    yield name, data.read()
    except tarfile.TarError:
        return

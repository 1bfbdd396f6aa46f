"""untar: GNU tar unpacks an archive of many files of one size, and flushes them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mountlab.core.errors import ParameterError, ParseError, ToolError
from mountlab.core.model import FILES, Measurement, Program, Scalar, Target, Workload, everywhere
from mountlab.core.options import Option
from mountlab.core.units import KIB
from mountlab.tools import wall_clock
from mountlab.tools.base import CACHE, GUESSED_BYTES_PER_S, Command, Tool, ToolOutput, Written, check_cache

_TOTAL = re.compile(r"^Total bytes read: (\d{1,18}) \(", re.MULTILINE | re.ASCII)
_MAKE = (
    'mkdir "$1/src" "$1/out" && head -c "$2" /dev/urandom | split -b "$3" -a 6 - "$1/src/f" && '
    'tar -C "$1" -cf "$1/src.tar" src && rm -r "$1/src"'
)
_FLUSHED = 'flushed=$1; shift; "$@" && sync -f "$flushed"'
_HEADER, _RECORD, _BLOCK = 512, 10240, 4096
"""Bytes of tar's header of a file, of what it reads and writes at a time, and of a block of most file systems."""


class Untar(Tool):
    """Unpacks an archive of many files of random bytes; the flush at its end is in its time."""

    name = "untar"
    programs: tuple[Program, ...] = (Program(name="tar", packages=everywhere("tar"), version=("tar", "--version")),)
    options: Mapping[str, Option] = {
        "files": Option(kind="int", help="files in the archive"),
        "file_size": Option(kind="size", default=4 * KIB, help="bytes of each file"),
        "cache": CACHE,
    }
    reserved: Mapping[str, str] = {"archive": "the archive is made for each trial, in its own directory"}
    clock_s = 1e-3
    longer = "more files"
    gives: tuple[str, ...] = ("file_rate", "elapsed", "bytes")

    def check(self, options: Mapping[str, Scalar], *, where: str) -> None:
        self.check_given(options, {"files": "a whole number, such as 10000"}, where=where)
        for name in ("files", "file_size"):
            if int(options[name]) < 1:
                raise ParameterError(
                    "nothing to unpack", where=f"{where}.{name}", got=f"{options[name]}", allowed="1 or more"
                )
        check_cache(options, reads=True, where=where)

    def command(self, workload: Workload, directory: str, output: str, target: Target = FILES) -> Command:
        size, archive = str(workload.options["file_size"]), f"{directory}/src.tar"
        unpack = ("tar", "-C", f"{directory}/out", "--totals", "-xf", archive)
        return Command(
            argv=wall_clock.timed(("sh", "-c", _FLUSHED, "untar", f"{directory}/out", *unpack), output),
            prepare=(("sh", "-c", _MAKE, "make", directory, str(_content(workload)), size),),
            fill=(("dd", f"if={archive}", "of=/dev/null", "bs=1048576"),),
            cache=self.cache_of(workload),
        )

    def parse(self, workload: Workload, output: ToolOutput) -> list[Measurement]:
        """What tar says that it read must be the archive: an exit status is never believed alone."""
        if output.exit_status != 0:
            raise ToolError(f"tar failed with exit status {output.exit_status}", evidence=output.stderr)
        found = _TOTAL.search(output.stderr)
        if not found:
            raise ParseError(
                "tar printed no total", got=output.stderr.strip()[:120] or "nothing", allowed="Total bytes read"
            )
        if int(found[1]) != (expected := _archive(workload)):
            raise ToolError("tar did not unpack what was asked", got=f"{found[1]} B", allowed=f"{expected} B")
        took, step = wall_clock.elapsed(output.files.get(wall_clock.FILE))
        rate = int(workload.options["files"]) / took
        return [
            Measurement(metric="file_rate", value=rate, unit="1/s", step=rate * step / took),
            Measurement(metric="elapsed", value=took, unit="s", step=step),
            Measurement(metric="bytes", label="write", value=float(_content(workload)), unit="B"),
        ]

    def space_bytes(self, workload: Workload, target: Target = FILES) -> int:
        """The archive and the files at the same time, each file in whole blocks."""
        blocks = int(workload.options["files"]) * _up(int(workload.options["file_size"]), _BLOCK)
        return _archive(workload) + blocks + int(workload.options["files"]) * _HEADER

    def expected_s(self, workload: Workload) -> float:
        return 0.1 + int(workload.options["files"]) * 5e-5 + _content(workload) / GUESSED_BYTES_PER_S

    def written(self, workload: Workload) -> Written:
        return Written("random bytes", False)

    def main_metrics(self, workload: Workload) -> tuple[str, ...]:
        return ("file_rate",)


def _content(workload: Workload) -> int:
    return int(workload.options["files"]) * int(workload.options["file_size"])


def _archive(workload: Workload) -> int:
    """The size of the archive: a header for the directory and for each file, its bytes in blocks of 512, two empty
    blocks, and the rest of the last record."""
    file = _HEADER + _up(int(workload.options["file_size"]), _HEADER)
    return _up(_HEADER + int(workload.options["files"]) * file + 2 * _HEADER, _RECORD)


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit

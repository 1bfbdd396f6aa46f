"""What a log states about itself: the options of its tool that it repeats, or that follow from its counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from mountlab.logs.base import Output, matches_in
from mountlab.logs.dd import RECORDS
from mountlab.logs.stated_fio import fio
from mountlab.logs.statement import Stated, words
from mountlab.programs import wml

States = Callable[[Output], Iterator[Stated]]


def stated(tool: str, output: Output) -> dict[str, Stated]:
    """Return what one output of a log states, by option; lines count from the first of the log.

    {} for an output without figures: it is refused for another reason.
    """
    if output.problem or tool not in STATES:
        return {}
    by_option = {option.option: option for option in STATES[tool](output)}
    return {name: replace(option, line=option.line + output.part.line - 1) for name, option in by_option.items()}


# --- dd ---------------------------------------------------------------------------------------------------------------


def _dd(output: Output) -> Iterator[Stated]:
    """dd prints records and bytes: whole records are blocks of `bs`, and `count` counts whole and partial ones."""
    copied = next(round(row.value) for row in output.measurements if row.metric == "bytes")
    records = matches_in(output.part.text.split("\n"), RECORDS)
    if len(records) != 2 or records[0][1].groups() != records[1][1].groups():
        return  # no lines of records, or blocks that are written in another size than they are read
    line, out = records[1]
    whole, partial = int(out[1]), int(out[2])
    text = f"{out[0].strip()}, {copied} bytes"
    if whole:
        most, least = copied / whole, copied / (whole + partial)
        middle = (most + least) / 2
        value = round(middle) if not partial else middle
        yield Stated(option="bs", value=value, text=text, line=line, slack=(most - least) / 2, computed=bool(partial))
    yield Stated(option="count", value=whole + partial, text=text, line=line)


# --- fs_mark ----------------------------------------------------------------------------------------------------------

_FS_MARK: Mapping[str, str] = {
    "threads": r"^#\s+Version \S+, (\d{1,18}) thread\(s\) starting",
    "files_per_directory": r"^#\s+Directories: .* with (\d{1,18}) files per subdirectory",
    "directories": r"^#\s+Directories: .* across (\d{1,18}) subdirectories",
    "name_length": r"^#\s+File names: (\d{1,18}) bytes long",
    "random_length": r"^#\s+File names: .* with (\d{1,18}) random bytes",
    "file_size": r"^#\s+Files info: size (\d{1,18}) bytes",
    "write_size": r"^#\s+Files info: .* IO size of (\d{1,18}) bytes",
    "count": r"^#\s+\S*fs_mark\s.*\s-n\s*(\d{1,18})",
    "loops": r"^#\s+\S*fs_mark\s.*\s-L\s*(\d{1,18})",
}  # fmt: skip
"""Option to the line of the header that holds it. The lines below the command line hold what was in effect."""
_SYNC_WORDS = {
    "NO SYNC": "none", "INBAND FSYNC": "fsync", "SYSTEM SYNC/SINGLE FSYNC": "sync", "POST REVERSE": "post_reverse",
    "SYNC POST REVERSE": "sync_post_reverse", "POST": "post", "SYNC POST": "sync_post",
}  # fmt: skip
_COMMAND = re.compile(r"^#\s+\S*fs_mark\s(.*)$", re.MULTILINE)
_SYNC = re.compile(r"^#\s+Sync method: ([A-Z /]+):", re.MULTILINE)


def _fs_mark(output: Output) -> Iterator[Stated]:
    text = output.part.text
    for option, pattern in _FS_MARK.items():
        if match := re.search(pattern, text, re.MULTILINE):
            yield Stated(option=option, value=int(match[1]), **words(text, match))
    if (match := _SYNC.search(text)) and match[1] in _SYNC_WORDS:
        yield Stated(option="sync", value=_SYNC_WORDS[match[1]], **words(text, match))
    if match := _COMMAND.search(text):
        letters = {word[:2] for word in match[1].split() if word.startswith("-")}
        yield Stated(option="call_times", value=int("-v" in letters), **words(text, match))
        yield Stated(option="keep_files", value=int(bool(letters & {"-k", "-L", "-F"})), **words(text, match))
        if not letters & {"-L", "-F"}:
            yield Stated(option="loops", value=1, **words(text, match))


# --- pg_test_fsync ----------------------------------------------------------------------------------------------------

_SECONDS = re.compile(r"^(?!.*operations? per test)[^0-9]*([0-9]{1,9})[^0-9]*$")
"""Before version 9.2 it was operations."""


def _pg_test_fsync(output: Output) -> Iterator[Stated]:
    """Yield the seconds per test, from the lines above the heading of the first section, in any language."""
    lines = output.part.text.split("\n")
    heading = next((number for number, line in enumerate(lines) if line.rstrip().endswith((":", "："))), 0)
    above = [number for number in range(heading) if lines[number].strip()]
    for number in reversed(above[-3:]):  # below it a line on direct I/O, which a terminal may have folded
        if match := _SECONDS.match(lines[number]):
            yield Stated(option="time_per_test", value=float(match[1]), text=match[0].strip(), line=number + 1)
            return


# --- filebench --------------------------------------------------------------------------------------------------------

_STAMP = r"^(?: *\d+: )?\d+\.\d+: "
_PERSONALITY = re.compile(rf"{_STAMP}(\S.*?) Version \S+ +personality successfully loaded", re.MULTILINE)
_TOOK = re.compile(rf"{_STAMP}Run took (\d{{1,18}}) seconds", re.MULTILINE)
_FILES = re.compile(
    rf"{_STAMP}(?:Fileset \S+: |\S+ populated: )(\d{{1,18}}) files, .*?avg\.? dir\.? width = (\d{{1,18}})", re.MULTILINE
)
_PROCESSES = re.compile(rf"{_STAMP}Starting (\d{{1,18}}) \S+ instances", re.MULTILINE)
_THREADS = re.compile(rf"{_STAMP}Starting (\d{{1,18}}) \S+ threads", re.MULTILINE)
_PERSONALITIES: Mapping[str, tuple[str, ...]] = {
    "fileserver": ("fileserver",), "varmail": ("varmail",), "webserver": ("webserver",),
    "webproxyserver": ("webproxy",), "oltp": ("oltp",), "videoserver": ("videoserver",), "copyfiles": ("copyfiles",),
    "createfiles": ("createfiles",), "listdirs": ("listdirs",), "makedirs": ("makedirs",),
    "openfiles": ("openfiles",), "removedir": ("removedirs",), "statfile": ("statfile", "filemicro_statfile"),
    "filemicrocreatefiles": ("createfiles", "filemicro_createfiles"),
    "filemicrocreate": ("filemicro_create",), "filemicrocreaterand": ("filemicro_createrand",),
    "filemicrodelete": ("delete", "filemicro_delete"), "filemicroreadrand": ("rread", "filemicro_rread"),
    "filemicrowriterand": ("rwrite", "filemicro_rwrite"), "filemicroseqread": ("seqread", "filemicro_seqread"),
    "filemicrowriteranddsync": ("rwritedsync", "filemicro_rwritedsync"),
    "filemicrowriterandfsync": ("rwritefsync", "filemicro_rwritefsync"),
    "filemicroseqwrite": ("seqwrite", "filemicro_seqwrite"),
    "filemicroseqwriterand": ("filemicro_seqwriterand",),
    "filemicrowritefsync": ("writefsync", "filemicro_writefsync"), "randomread": ("randomread",),
    "randomwrite": ("randomwrite",), "randomrw": ("randomrw",), "singlestreamread": ("singlestreamread",),
    "singlestreamwrite": ("singlestreamwrite",), "singlestreamdirectread": ("singlestreamreaddirect",),
    "singlestreamdirectwrite": ("singlestreamwritedirect",), "fivestreamread": ("fivestreamread",),
    "fivestreamwrite": ("fivestreamwrite",), "fivestreamdirectread": ("fivestreamreaddirect",),
    "fivestreamdirectwrite": ("fivestreamwritedirect",), "networkfileserver": ("netsfs", "networkfs"),
    "networkserver": ("randomfileaccess",), "mongolike": ("mongo",), "tpcso": ("tpcso",),
    "ratelimcopyfiles": ("ratelimcopyfiles",), "compflowdemo": ("compflow_demo",),
}  # fmt: skip
"""What the workload files of filebench 1.4 and 1.5 print of themselves, letters and digits only, to their names."""
PERSONALITY_NAMES = frozenset(name for names in _PERSONALITIES.values() for name in names)
_LATE_S = 2
"""Seconds by which a run may take longer than asked: filebench looks at its clock once a second."""


def _filebench(output: Output) -> Iterator[Stated]:
    text = output.part.text
    match = _PERSONALITY.search(text)
    names = _PERSONALITIES.get(re.sub(r"[^a-z0-9]", "", match[1].lower()), ()) if match else ()
    if match and names:
        for option in ("workload", "installed"):
            yield Stated(option=option, value=names[0], also=names[1:], **words(text, match))
    ends = any(name in wml.RECIPES and wml.RECIPES[name].ends for name in names)
    if not ends and (match := _TOOK.search(text)):
        took = int(match[1])
        earlier = tuple(range(max(took - _LATE_S, 0), took))
        yield Stated(option="runtime", value=took, also=earlier, computed=True, **words(text, match))
    yield from _filebench_sizes(text)


def _filebench_sizes(text: str) -> Iterator[Stated]:
    """Yield files and directories of the sets, whichever the option is about; threads of the only process."""
    sets, processes = list(_FILES.finditer(text)), [match[1] for match in _PROCESSES.finditer(text)]
    threads = list(_THREADS.finditer(text)) if processes == ["1"] else []
    for option, matches, place in (("nfiles", sets, 1), ("dirwidth", sets, 2), ("threads", threads, 1)):
        numbers = [(int(match[place]), match) for match in matches if int(match[place])]
        if numbers:
            also = tuple(number for number, _ in numbers[1:])
            yield Stated(option=option, value=numbers[0][0], also=also, **words(text, numbers[0][1]))


STATES: Mapping[str, States] = {
    "dd": _dd, "filebench": _filebench, "fio": fio, "fs_mark": _fs_mark, "pg_test_fsync": _pg_test_fsync,
}  # fmt: skip
"""Tool to what finds the options in an output of it."""

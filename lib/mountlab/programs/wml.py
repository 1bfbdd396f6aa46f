"""Workloads of filebench in its own language (WML), written from a compact table, and the checks of a user's own text.

In the table an operation is 'KIND NAME ATTRIBUTE ...', where '@tree' stands for the file set of that name and '#1' for
a file descriptor; words in braces are options of the workload. Names avoid filebench's own words, such as `files`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mountlab.core.errors import ParameterError
from mountlab.core.sums import whole_sum
from mountlab.core.units import GIB, KIB, MIB

Amounts = Mapping[str, int]
BLOCK = 4 * KIB
"""What a file takes at least, and by what its last block may be larger than itself."""
SHAPE = 1.5
"""Of the gamma distribution of file sizes, as in filebench's own workloads."""
_UNLUCKY = 6
"""Standard deviations that a sum of random file sizes is allowed above its mean."""


@dataclass(frozen=True, kw_only=True)
class FileSet:
    """Files that filebench makes before it measures, and those (above `prealloc` percent) that it may make later."""

    name: str = "tree"
    size: str = "{size}"
    entries: str = "{nfiles}"
    kind: str = "entries"
    """`entries` for files, `leafdirs` for empty directories."""
    prealloc: str = "{prealloc}"
    width: str = "{dirwidth}"
    more: str = ""

    @property
    def text(self) -> str:
        attributes = f"size={self.size},{self.kind}={self.entries},dirwidth={self.width},prealloc={self.prealloc}"
        return f"define fileset name={self.name},path=$dir,{attributes}{self.more}"


@dataclass(frozen=True, kw_only=True)
class Process:
    """Processes of one kind, each with threads that go through the operations again and again."""

    loop: tuple[str, ...]
    name: str = "mountlab"
    instances: str = "1"
    threads: str = "{threads}"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One workload: what it does, and the values of its options that its authors published."""

    about: str
    defaults: Amounts
    processes: tuple[Process, ...]
    sets: tuple[FileSet, ...] = (FileSet(),)
    gamma: bool = False
    """Whether file sizes vary around their mean, where the sweep says nothing else."""
    ends: str = ""
    """The operation that ends it by its own count; '' for a workload that goes on for as long as it is asked."""
    count: str = ""
    """How often that operation is to run, as a formula in braces."""
    before: tuple[str, ...] = ()
    space: Mapping[str, float] = field(default_factory=lambda: {"files": 1.0})
    """Parts of the space that it takes at most: `files` (sets of nfiles), `appends` (to each file), `file` (single
    files of filesize), `grows` (a log), `late` (what is written before filebench begins to count)."""


def _make_loop(*operations: str, **more: str) -> tuple[Process, ...]:
    return (Process(loop=operations, **more),)


_READ = ("openfile open-{n} @tree #1", "readwholefile read-{n} #1 iosize={{iosize}}", "closefile close-{n} #1")


def _read_operations(first: int, last: int) -> tuple[str, ...]:
    return tuple(line.format(n=number) for number in range(first, last + 1) for line in _READ)


def _make_single(
    about: str, *operations: str, more: Amounts, size: str = "{filesize}", ends: str = "", count: str = ""
) -> Recipe:
    """Return a workload on one file, which is there before the measured part unless it begins empty: then one thread
    appends, since each of several would append the whole."""
    return Recipe(
        about=about,
        defaults={"filesize": GIB, "iosize": 2 * KIB, **({} if ends else {"threads": 1}), **more},
        sets=(FileSet(size=size, entries="1", prealloc="100", width="20"),),
        processes=_make_loop(*operations, threads="1" if ends else "{threads}"),
        ends=ends,
        count=count,
        space={"file": 1.0, **({"late": 1.0} if ends else {})},
    )


_TREE = {"nfiles": 10_000, "filesize": 128 * KIB, "dirwidth": 20, "threads": 50, "iosize": MIB, "prealloc": 80}
_SMALL = {**_TREE, "filesize": 16 * KIB}

RECIPES: dict[str, Recipe] = {
    "fileserver": Recipe(
        about="create, write, append, read, delete and stat whole files",
        defaults={**_TREE, "appendsize": 16 * KIB},
        gamma=True,
        space={"files": 1.0, "appends": 1.0},
        processes=_make_loop(
            "createfile create-file @tree #1",
            "writewholefile write-file #1 srcfd=1 iosize={iosize}",
            "closefile close-1 #1",
            "openfile open-2 @tree #1",
            "appendfilerand append #1 iosize={appendsize}",
            "closefile close-2 #1",
            *_read_operations(3, 3),
            "deletefile delete-file @tree",
            "statfile stat-file @tree",
        ),
    ),
    "varmail": Recipe(
        about="mail in one directory: create, append, fsync, read, delete",
        defaults={**_SMALL, "nfiles": 1000, "dirwidth": 1_000_000, "threads": 16, "appendsize": 16 * KIB},
        gamma=True,
        space={"files": 1.0, "appends": 1.0},
        processes=_make_loop(
            "deletefile delete-file @tree",
            "createfile create-file @tree #1",
            "appendfilerand append-1 #1 iosize={appendsize}",
            "fsync fsync-1 #1",
            "closefile close-1 #1",
            "openfile open-2 @tree #1",
            "readwholefile read-2 #1 iosize={iosize}",
            "appendfilerand append-2 #1 iosize={appendsize}",
            "fsync fsync-2 #1",
            "closefile close-2 #1",
            *_read_operations(3, 3),
        ),
    ),
    "webserver": Recipe(
        about="read ten whole files, then append to one log",
        defaults={**_SMALL, "nfiles": 1000, "threads": 100, "appendsize": 16 * KIB, "prealloc": 100},
        gamma=True,
        space={"files": 1.0, "grows": 1.0},
        sets=(FileSet(), FileSet(name="weblog", size="{appendsize}", entries="1", prealloc="100")),
        processes=_make_loop(*_read_operations(1, 10), "appendfilerand append-log @weblog #2 iosize={appendsize}"),
    ),
    "webproxy": Recipe(
        about="delete a file, create and append to another, read five",
        defaults={**_SMALL, "dirwidth": 1_000_000, "threads": 100, "appendsize": 16 * KIB},
        space={"files": 1.0, "appends": 1.0},
        processes=_make_loop(
            "deletefile delete-file @tree",
            "createfile create-file @tree #1",
            "appendfilerand append #1 iosize={appendsize}",
            "closefile close-1 #1",
            *_read_operations(2, 6),
        ),
    ),
    "oltp": Recipe(
        about="a database: many readers, writers with synchronous asynchronous I/O, one log",
        defaults={"nfiles": 10, "filesize": 10 * MIB, "iosize": 2 * KIB, "threads": 200, "writers": 10},
        space={"files": 1.0, "file": 1.0},
        sets=(
            FileSet(prealloc="100", width="1024"),
            FileSet(name="dblog", size="{filesize}", entries="1", prealloc="100", width="1024"),
        ),
        processes=(
            Process(
                name="logger",
                threads="1",
                loop=(
                    "aiowrite log-write @dblog iosize=262144 random directio={direct} dsync",
                    "aiowait log-wait",
                    "semblock log-block value=3200 highwater=1000",
                ),
            ),
            Process(
                name="writer",
                instances="{writers}",
                threads="1",
                loop=(
                    "aiowrite db-write @tree iosize={iosize} random iters=100 opennext directio={direct} dsync",
                    "hog db-think value=10000",
                    "semblock db-block value=1000 highwater=2000",
                    "aiowait db-wait",
                ),
            ),
            Process(
                name="reader",
                instances="{threads}",
                threads="1",
                loop=(
                    "read db-read @tree iosize={iosize} random opennext directio={direct}",
                    "hog read-think value=200000",
                    "sempost post-log value=1 target=log-block blocking",
                    "sempost post-db value=1 target=db-block blocking",
                ),
            ),
        ),
    ),
    "videoserver": Recipe(
        about="stream from active videos at a set rate, while a writer replaces passive ones",
        defaults={"nfiles": 32, "filesize": 10 * GIB, "threads": 48, "iosize": 256 * KIB, "rate": 96},
        before=("eventgen rate={rate}",),
        space={"files": 7.0},
        sets=(
            FileSet(prealloc="100", width="4", more=",paralloc"),
            FileSet(name="passive", entries="{passive}", prealloc="50", width="20", more=",paralloc"),
        ),
        processes=(
            Process(
                name="replacer",
                threads="1",
                loop=(
                    "deletefile remove-video @passive",
                    "createfile new-video @passive #1",
                    "writewholefile write-video #1 srcfd=1 iosize=1048576",
                    "closefile close-video #1",
                    "delay pause value=10",
                ),
            ),
            Process(name="reader", loop=("read stream @tree iosize={iosize}", "bwlimit server-limit target=stream")),
        ),
    ),
    "seqread": _make_single(
        "read one file from its beginning to its end, again and again",
        "read read-block @tree iosize={iosize} directio={direct}",
        more={"iosize": MIB},
    ),
    "rread": _make_single(
        "read one file at random places", "read read-block @tree random iosize={iosize} directio={direct}", more={}
    ),
    "rwrite": _make_single(
        "write one file at random places", "write write-block @tree random iosize={iosize} directio={direct}", more={}
    ),
    "rwritedsync": _make_single(
        "write one file at random places, each write synchronous",
        "write write-block @tree random iosize={iosize} directio={direct} dsync",
        more={},
    ),
    "rwritefsync": _make_single(
        "write one file at random places, with fsync after every `burst` writes",
        "write write-block @tree random iosize={iosize} iters={burst} directio={direct}",
        "fsync fsync-file @tree",
        more={"iosize": 8 * KIB, "burst": 16_384},
    ),
    "seqwrite": _make_single(
        "append to an empty file until it has its size",
        "appendfile append @tree iosize={iosize} iters={blocks} directio={direct}",
        "finishoncount finish value=1",
        more={"iosize": MIB},
        size="0",
        ends="append",
        count="{blocks}",
    ),
    "writefsync": _make_single(
        "append to an empty file until it has its size, with fsync after every `burst` writes",
        "appendfile append @tree iosize={iosize} iters={burst} directio={direct}",
        "fsync fsync-file @tree",
        "finishoncount finish value={bursts} target=fsync-file",
        more={"iosize": 8 * KIB, "burst": 1024},
        size="0",
        ends="fsync-file",
        count="{bursts}",
    ),
    "createfiles": Recipe(
        about="create every file of a set, and write it",
        defaults={**_TREE, "nfiles": 50_000, "filesize": 16 * KIB, "dirwidth": 100, "threads": 16},
        ends="create-file",
        count="{nfiles}",
        sets=(FileSet(prealloc="0"),),
        processes=_make_loop(
            "createfile create-file @tree #1", "writewholefile write-file #1 iosize={iosize}", "closefile close-file #1"
        ),
    ),
    "createdelete": Recipe(
        about="create and write a file, delete another: creation at a steady rate",
        defaults={**_TREE, "nfiles": 10_000, "filesize": 16 * KIB, "dirwidth": 100, "threads": 16},
        processes=_make_loop(
            "createfile create-file @tree #1",
            "writewholefile write-file #1 srcfd=1 iosize={iosize}",
            "closefile close-file #1",
            "deletefile delete-file @tree",
        ),
    ),
    "delete": Recipe(
        about="delete every file of a set",
        defaults={"nfiles": 5000, "filesize": 16 * KIB, "dirwidth": 100, "threads": 16},
        ends="delete-file",
        count="{nfiles}",
        sets=(FileSet(prealloc="100"),),
        processes=_make_loop("deletefile delete-file @tree"),
    ),
    "statfile": Recipe(
        about="stat files of a set",
        defaults={"nfiles": 10_000, "filesize": 128 * KIB, "dirwidth": 20, "threads": 20, "prealloc": 100},
        processes=_make_loop("statfile stat-file @tree"),
    ),
    "openfiles": Recipe(
        about="open and close empty files of a set",
        defaults={"nfiles": 50_000, "filesize": 0, "dirwidth": 100, "threads": 16, "prealloc": 100},
        processes=_make_loop("openfile open-file @tree #1", "closefile close-file #1"),
    ),
    "copyfiles": Recipe(
        about="copy every file of a set",
        defaults={"nfiles": 1000, "filesize": 16 * KIB, "dirwidth": 20, "threads": 1, "iosize": MIB},
        sets=(FileSet(prealloc="100"), FileSet(name="copies", prealloc="0")),
        space={"files": 2.0},
        ends="create-copy",
        count="{nfiles}",
        processes=_make_loop(
            "openfile open-source @tree #1",
            "readwholefile read-source #1 iosize={iosize}",
            "createfile create-copy @copies #2",
            "writewholefile write-copy #2 srcfd=1 iosize={iosize}",
            "closefile close-source #1",
            "closefile close-copy #2",
        ),
    ),
    "makedirs": Recipe(
        about="make every directory of a tree",
        defaults={"nfiles": 10_000, "dirwidth": 100, "threads": 16},
        ends="make-directory",
        count="{nfiles}",
        sets=(FileSet(size="0", kind="leafdirs", prealloc="0"),),
        processes=_make_loop("makedir make-directory @tree"),
    ),
    "removedirs": Recipe(
        about="remove every empty directory of a tree",
        defaults={"nfiles": 10_000, "dirwidth": 100, "threads": 16},
        ends="remove-directory",
        count="{nfiles}",
        sets=(FileSet(size="0", kind="leafdirs", prealloc="100"),),
        processes=_make_loop("removedir remove-directory @tree"),
    ),
    "listdirs": Recipe(
        about="list the directories of a tree of empty files",
        defaults={"nfiles": 50_000, "dirwidth": 5, "threads": 16, "filesize": 0, "prealloc": 100},
        processes=_make_loop("listdir list-directory @tree"),
    ),
}
"""Workload name to what it does."""

COMMON: Amounts = {"direct": 0}
READS = frozenset(("read", "readwholefile"))
WRITES = frozenset(("write", "writewholefile", "appendfile", "appendfilerand", "aiowrite"))
"""Kinds of operations that move bytes, by their side."""
IDLE = frozenset((
    "hog", "delay", "eventlimit", "bwlimit", "iopslimit", "opslimit", "finishoncount", "finishonbytes", "block",
    "wakeup", "semblock", "sempost", "print",
))  # fmt: skip
"""Kinds of operations that filebench leaves out of its summary."""
_APPENDS_PER_S = 30_000
"""To a log, each of half of `appendsize` on average: twice of what was seen on memory."""
_LATE_BYTES = 64 * MIB
"""More than was appended in any trial on memory before filebench began to count."""


_COMPUTED = ("filesize", "iosize", "burst")
"""Options that the text mentions only through what is computed of them."""


def takes(name: str) -> frozenset[str]:
    """Return the options that a workload of the table uses."""
    recipe = RECIPES[name]
    template = _make_template(recipe)
    used = {*recipe.defaults, *COMMON} & {*_COMPUTED, *re.findall(r"{(\w+)}", template)}
    used |= set() if recipe.ends else {"runtime"}
    varied = "size={size}" in template and recipe.defaults["filesize"]
    return frozenset(used | ({"sizes"} if varied else set()))


def amounts(name: str, given: Amounts) -> dict[str, int]:
    """Return every amount that the workload's text mentions, from what is given and what was published."""
    whole = {**COMMON, **RECIPES[name].defaults, **given}
    blocks = math.ceil(whole.get("filesize", 0) / max(whole.get("iosize", 1), 1))
    largest = max(whole.get("iosize", 0), whole.get("appendsize", 0), MIB)
    bursts = math.ceil(blocks / max(whole.get("burst", 1), 1))
    passive = 6 * whole.get("nfiles", 0)
    return {**whole, "memory": 2 * largest, "blocks": blocks, "bursts": bursts, "passive": passive}


def generate(name: str, given: Amounts, sizes: str = "", seed: int | None = None) -> str:
    """Return the text of a workload of the table, but for its first line (where it works) and its last (for how long).
    File sizes that vary are drawn from `seed`; filebench has none for the files and places that it picks."""
    recipe, values = RECIPES[name], amounts(name, given)
    text = {**{key: str(value) for key, value in values.items()}, "size": str(values.get("filesize", 0))}
    first = []
    if varies(name, sizes):
        shape = f"min=0,mean={text['size']},gamma={SHAPE * 1000:.0f}"
        first = [f"set $size=randvar(type=gamma,randsrc=rand48,seed={seed or 0},{shape})"]
        text["size"] = "$size"
    ends = ["set mode quit firstdone"] if recipe.ends else []
    return "\n".join([*first, *ends, _make_template(recipe).format_map(text)])


def varies(name: str, sizes: str) -> bool:
    """Return whether file sizes differ from file to file."""
    return (sizes == "gamma" or (not sizes and RECIPES[name].gamma)) and "sizes" in takes(name)


def whole(body: str, directory: str, settle: str, runtime_s: int | None) -> str:
    """Return a script for filebench: our directory, the workload, files made and settled, and then the measured run."""
    run = "run" if runtime_s is None else f"run {runtime_s}"
    return f'set $dir={directory}\n{body}\ncreate files\nsystem "{settle}"\n{run}\n'


def space_bytes(name: str, given: Amounts, sizes: str, runtime_s: int) -> int:
    """Return the most that the workload's files take, file sizes being random and blocks whole."""
    values, parts = amounts(name, given), RECIPES[name].space
    nfiles, mean = values.get("nfiles", 0), values.get("filesize", 0)
    spread = 1 + _UNLUCKY / math.sqrt(SHAPE * max(nfiles, 1)) if varies(name, sizes) else 1.0
    # A file that is appended to at random gets, until it is deleted, as many appends as files there are per file.
    file_bytes = mean * spread + parts.get("appends", 0) * 2 * values.get("appendsize", 0) + BLOCK
    directories = BLOCK * (nfiles / max(values.get("dirwidth", nfiles + 1), 1) + 2)
    once = (
        parts.get("file", 0) * (mean + BLOCK)
        + parts.get("grows", 0) * _APPENDS_PER_S * values.get("appendsize", 0) / 2 * runtime_s
    )
    once += parts.get("late", 0) * _LATE_BYTES
    return math.ceil(parts.get("files", 0) * (nfiles * file_bytes + directories) + once)


def _make_template(recipe: Recipe) -> str:
    lines = [*recipe.before, *(files.text for files in recipe.sets)]
    for process in recipe.processes:
        lines += [f"define process name={process.name},instances={process.instances}", "{{"]
        lines += [f"  thread name={process.name}-thread,memsize={{memory}},instances={process.threads}", "  {{"]
        lines += [f"    {_format_operation(operation)}" for operation in process.loop]
        lines += ["  }}", "}}"]
    return "\n".join(lines)


def _format_operation(operation: str) -> str:
    kind, name, *attributes = operation.split()
    words = [re.sub(r"\A@", "filesetname=", re.sub(r"\A#", "fd=", word)) for word in attributes]
    return f"flowop {kind} {','.join([f'name={name}', *words])}"


# --- a user's own text ------------------------------------------------------------------------------------------------

_PLAIN = re.compile(r"[A-Za-z0-9_$=,.{}() \t\n-]*")
_CVAR = re.compile(r"parameters=[A-Za-z0-9_.:;-]+")
_FORBIDDEN = re.compile(
    r"(?<![\w-])(system|psrun|run|(?<!mode )quit|domultisync|enable|create|list|debug|sleep|echo)(?![\w-])"
)
_FLOWOP = re.compile(r"\bflowop\s+(\w+)[^#{}]*?\bname\s*=\s*([\w-]+)")
_DIR = re.compile(r"\$dir(?!\w)")
"""Our directory, and not another variable such as `$directio`."""
_SET = re.compile(r"\s*set\s+(\$\w+)\s*=\s*(.*\S)\s*")
_SUM = re.compile(r"[\w$() \t*/+-]*[*/+-][\w$() \t*/+-]*")
_UNITS = {"": 1, "k": KIB, "m": MIB, "g": GIB}
_OURS = re.compile(r"\s*(set\s+\$dir\s*=|run\b|echo\b|version\b)")
_ALLOWED = "file sets with path=$dir, plain names; `set $dir=` and `run` are written by Mountlab"


def read_text(text: str, *, where: str) -> str:
    """Return the lines of a user's workload that are his: without comments, messages, `set $dir=...` and `run`.

    Raises ParameterError for what would lead out of our directory, run a command, or measure nothing. filebench hands
    paths to a shell (`rm -rf`), so that the text may hold nothing that has a meaning to a shell.
    """
    body = "\n".join(_compute_sums([line for line in _strip_comments(text) if not _OURS.match(line)], where))
    doubt = next(_find_doubts(body), None)
    if doubt:
        raise ParameterError(doubt[0], where=where, got=doubt[1].strip(), allowed=_ALLOWED)
    if not kinds(body):
        raise ParameterError("the workload does nothing", where=where, got="no `flowop`", allowed="one flowop or more")
    return body


def _compute_sums(lines: Sequence[str], where: str) -> Iterator[str]:
    """Yield lines with the value of each sum in `set $name=$other * 2`, as filebench 1.4 takes it; 1.5 does not.

    Raises ParameterError where a value is no whole number above 0, or is of a variable that is not set above.
    """
    variables: dict[str, int] = {}
    for line in lines:
        match = _SET.fullmatch(line)
        text = match[2].lower() if match else ""
        if match and _SUM.fullmatch(text):
            variables[match[1]] = _compute(text, variables, line, where)
            line = f"set {match[1]}={variables[match[1]]}"
        elif match and (number := re.fullmatch(r"(\d{1,18})([kmg]?)", text)):
            variables[match[1]] = int(number[1]) * _UNITS[number[2]]
        yield line


def _compute(text: str, variables: Mapping[str, int], line: str, where: str) -> int:
    def shown(match: re.Match[str]) -> str:
        return str(variables[f"${match[1]}"] if match[1] else int(match[2]) * _UNITS[match[3]])

    try:
        value = whole_sum(re.sub(r"\$(\w+)|(\d{1,18})([kmg]?)", shown, text))
    except (KeyError, ValueError) as error:
        raise _no_value_error(line, where, str(error)) from error
    if value <= 0:
        raise _no_value_error(line, where, str(value))
    return value


def _no_value_error(line: str, where: str, got: str) -> ParameterError:
    return ParameterError(
        "a sum in `set` has no value",
        where=where,
        got=f"{line.strip()}: {got}",
        allowed="whole numbers with k, m or g, variables set above to such, and + - * / ( )",
    )


def run_seconds(text: str) -> int | None:
    """For how long the text's own `run` line goes on; None where it does not say."""
    variables = dict(re.findall(r"(?m)^\s*set\s+(\$\w+)\s*=\s*(\d{1,9})\s*$", "\n".join(_strip_comments(text))))
    run = re.search(r"(?m)^\s*run\s+(\$?\w+)\s*$", "\n".join(_strip_comments(text)))
    seconds = str(variables.get(run[1], run[1])) if run else ""
    return int(seconds) if seconds.isdecimal() and int(seconds) else None


def kinds(text: str) -> dict[str, str]:
    """Return name of each operation in a workload's text to its kind."""
    return {name: kind for kind, name in _FLOWOP.findall("\n".join(_strip_comments(text)))}


def is_fixed_work(text: str) -> bool:
    """Return whether the workload ends by itself, instead of after a time."""
    return bool(
        re.search(r"\bset\s+mode\s+quit\s+(firstdone|alldone)|\bflowop\s+finishon", "\n".join(_strip_comments(text)))
    )


def _strip_comments(text: str) -> list[str]:
    bare = (line.split("#")[0].rstrip() for line in text.splitlines())
    return [line for line in bare if line]


def _find_doubts(body: str) -> Iterator[tuple[str, str]]:
    """Yield what in the text is not to be given to filebench, and why."""
    for line in body.splitlines():
        if not _PLAIN.fullmatch(_CVAR.sub("", line)):
            yield "a workload may name no path, and hold only plain characters", line
        if "$(" in line or "${" in line:
            yield "$ stands before the name of a variable, and nothing else", line
        if re.search(r"=\s*\.|\.\.", line):
            yield "dots are no name", line
        if word := _FORBIDDEN.search(line):
            yield f"`{word[1]}` is not for a workload to use", line
        if _DIR.search(re.sub(rf"\bpath={_DIR.pattern}", "", line)):
            yield "$dir stands for our directory, and only after path=", line
        if re.search(rf"\bpath\b(?!={_DIR.pattern})", line):
            yield "files must be made in our directory", line

"""pgbench: transactions of PostgreSQL, on a cluster that lies on the file system under test."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate

from mountlab.core.errors import ParameterError, ParseError, ToolError
from mountlab.core.metrics import LATENCY_PARTS, PERCENT_OF
from mountlab.core.model import FILES, Measurement, Program, Scalar, Target, Workload
from mountlab.core.options import Option
from mountlab.core.resolution import last_digit
from mountlab.core.shell import script_text
from mountlab.core.units import KIB, MIB, format_bytes
from mountlab.programs.pg_test_fsync import PgTestFsync
from mountlab.tools.base import CACHE, GUESSED_BYTES_PER_S, Command, Commits, Manner, Tool, ToolOutput, Written

SCRIPT, OWN = "pgbench.sh", "own.sql"
SERVER, LATENCIES = "server", "latencies"
"""Files in the output directory: what the server stated, and how many transactions took which time."""
TPCB, SELECT_ONLY = "tpcb-like", "select-only"
_TYPES = {
    TPCB: "<builtin: TPC-B (sort of)>",
    "simple-update": "<builtin: simple update>",
    SELECT_ONLY: "<builtin: select only>",
}
_BYTES_PER_SCALE = 16 * MIB
_EMPTY_CLUSTER = 28 * MIB
"""Without its log."""
_DEFAULT_SEGMENT, _DEFAULT_WAL = 16 * MIB, 1024 * MIB
_GUESSED_TRANSACTIONS_PER_S = 1000
_UNIT_BYTES = {"B": 1, "kB": KIB, "8kB": 8 * KIB, "16MB": 16 * MIB, "MB": MIB, "GB": 1024 * MIB, "TB": 1024**2 * MIB}
_UNIT_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
_FACTS = ("listen_addresses", "wal_level", "autovacuum", "max_connections", "block_size")
"""Settings that are kept with those that an option names."""
_LINE = re.compile(r"^([a-z][a-z ]{1,60}?)(?:: | = )(.{1,200})$", re.MULTILINE)
_SERVER_LINE = re.compile(r"(setting|before|after) ([a-z_]{1,60}) (\S{0,60})(?: (\S{0,10}))?")
_COUNT = re.compile(r"([0-9]{1,15})(?:/([0-9]{1,15}))?")
_MILLISECONDS = re.compile(r"([0-9]{1,12}\.[0-9]{1,6}) ms")
_WRITES = re.compile(r"\b(?:insert|update|delete|merge)\b", re.IGNORECASE)
_RATE = re.compile(r"([0-9]{1,12}\.[0-9]{1,9})(?: \(.*)?")


@dataclass(frozen=True)
class Bounds:
    """What the server takes for a setting with a number."""

    least: int
    most: int
    step: int = 1
    """In what the server counts it: bytes, seconds, or 1."""


_BOUNDS = {
    "commit_delay": Bounds(0, 100_000),
    "shared_buffers": Bounds(128 * KIB, 1024**2 * MIB, 8 * KIB),
    "max_wal_size": Bounds(2 * MIB, 1024**2 * MIB, MIB),
    "checkpoint_timeout": Bounds(30, 86_400),
    "wal_segment_size": Bounds(MIB, 1024 * MIB, MIB),
}


@dataclass(frozen=True)
class ServerReport:
    """What the server stated before and after pgbench ran."""

    settings: Mapping[str, tuple[str, str]]
    """Name to value and unit."""
    grown: Mapping[str, int]
    """Counter to how much it grew."""


def _setting(kind: str, help_text: str, choices: tuple[str, ...] = ()) -> Option:
    return Option(kind=kind, choices=choices, help=f"{help_text}; without it as the server has it")  # type: ignore[arg-type]


class Pgbench(Tool):
    """Transactions of PostgreSQL by pgbench, on a cluster that is made on the file system under test.

    The server is an ordinary user's: that of the account `postgres`, or else of number 65534, where root runs it. It
    listens on a socket in its own directory only. It starts and ends within a trial, and neither is in the figures. The
    counters of a trial hold both: its last checkpoint writes what was still in memory. Options that are settings of the
    server are read back from it. A trial fails where one is not in effect, where a transaction failed, or where the
    server committed fewer than pgbench counts.

    The cluster is made once a run (initdb, `pgbench -i`) and kept as a compressed archive in the run's output
    directory. Each trial unpacks it before the caches are dropped: all trials begin with the same files, written one
    after the other, without the gaps that loading leaves. With scale 10 (188 MB) making it took 4.5 s and unpacking
    1.1 s on tmpfs with two processors; its archive took 14 MB.
    """

    name = "pgbench"
    programs: tuple[Program, ...] = tuple(
        Program(
            name=name,
            packages={"pacman": "postgresql", "dnf": package, "zypper": package},
            hint="pgbench and PostgreSQL's server are installed by hand (Debian: `apt-get install postgresql`). The "
            "package also sets up a database that starts with the machine; `systemctl disable --now postgresql` stops "
            "it",
            version=(name, "--version"),
            places=PgTestFsync.programs[0].places,
        )
        for name, package in (("pgbench", "postgresql-contrib"), ("postgres", "postgresql-server"))
    )
    options: Mapping[str, Option] = {
        "builtin": Option(
            kind="choice", choices=tuple(_TYPES), help="a script of pgbench's own; tpcb-like without `script`"
        ),
        "script": Option(kind="text", help="a script of your own, as text", file_key="script_file"),
        "scale": Option(kind="int", help="size of the tables: 100,000 accounts (15 MB) each"),
        "sessions": Option(kind="int", default=1, help="at the same time (-c, which pgbench calls clients)"),
        "threads": Option(kind="int", default=1, help="of pgbench, at most one a session"),
        "runtime": Option(kind="duration", help="whole seconds; or give transactions"),
        "transactions": Option(kind="int", help="of each session, instead of runtime"),
        "protocol": Option(
            kind="choice", choices=("simple", "extended", "prepared"), default="simple", help="how queries are sent"
        ),
        "percentiles": Option(
            kind="flag", default=1, help="whether the latency of each transaction is kept, in a log in memory"
        ),
        "synchronous_commit": _setting("flag", "whether a commit waits for the flush of its log"),
        "fsync": _setting("flag", "whether anything is flushed at all"),
        "full_page_writes": _setting(
            "flag", "whether the log holds each page whole at its first change after a checkpoint"
        ),
        "wal_sync_method": _setting(
            "choice", "how the log is flushed", ("fdatasync", "fsync", "open_datasync", "open_sync")
        ),
        "wal_init_zero": _setting("flag", "whether new files of the log are filled with zeros first"),
        "wal_recycle": _setting("flag", "whether old files of the log are written over"),
        "wal_compression": _setting(
            "choice", "how whole pages in the log are compressed", ("off", "pglz", "lz4", "zstd")
        ),
        "commit_delay": _setting("int", "microseconds that a commit waits for others"),
        "shared_buffers": _setting("size", "the server's own cache"),
        "max_wal_size": _setting("size", "the log that starts a checkpoint"),
        "checkpoint_timeout": _setting("duration", "the time that starts a checkpoint"),
        "data_checksums": Option(kind="flag", default=0, help="whether pages of the tables have checksums"),
        "wal_segment_size": Option(kind="size", default=_DEFAULT_SEGMENT, help="a file of the log"),
        "cache": CACHE,
    }
    reserved: Mapping[str, str] = {
        "host": "the server is Mountlab's own, and listens on no address",
        "port": "the server is Mountlab's own, and listens on no address",
        "random_seed": "each block has a seed of its own; -p seed=... repeats those of a run",
    }
    clock_s = 1e-6
    longer = "runtime"
    gives: tuple[str, ...] = (
        "operation_rate", "operation_latency", "operation_latency_min", "operation_latency_max",
        *(f"operation_latency_{part}" for part in LATENCY_PARTS[1:]), "operations", "sync_rate", "elapsed",
    )  # fmt: skip

    def check(self, options: Mapping[str, Scalar], *, where: str) -> None:
        self.check_given(options, {"scale": "a whole number, such as 10"}, where=where)
        if "transactions" not in options:
            self.check_given(options, {"runtime": "text such as 60s, or transactions"}, where=where)
        for one, other in (("builtin", "script"), ("runtime", "transactions")):
            if one in options and other in options:
                raise ParameterError(
                    f"pgbench takes {one} or {other}", where=f"{where}.{other}", got="both", allowed="one of the two"
                )
        for name, least, most in (("scale", 1, 21_474), ("sessions", 1, 1000), ("transactions", 1, 10**9)):
            if name in options and not least <= int(options[name]) <= most:
                raise _beyond(name, options[name], f"{least} to {most}", where)
        if not 1 <= int(options["threads"]) <= int(options["sessions"]):
            raise _beyond("threads", options["threads"], f"1 to {options['sessions']}, the number of sessions", where)
        runtime = float(options.get("runtime", 1))
        if runtime < 1 or runtime % 1:
            raise _beyond("runtime", f"{runtime:g} s", "1s or more, without a fraction", where)
        for name, bounds in _BOUNDS.items():
            value = float(options.get(name, bounds.least))
            if not bounds.least <= value <= bounds.most or value % bounds.step:
                raise _beyond(name, _as_read(name, value), _words(name, bounds), where)
        segment = int(options["wal_segment_size"])
        if segment & (segment - 1):
            raise _beyond("wal_segment_size", _as_read("wal_segment_size", segment), "1, 2, 4 ... 1024 MiB", where)
        if int(options.get("max_wal_size", 2 * segment)) < 2 * segment:
            raise _beyond(
                "max_wal_size", _as_read("max_wal_size", float(options["max_wal_size"])),
                f"two files of the log or more, {format_bytes(2 * segment)}", where,
            )  # fmt: skip

    def command(self, workload: Workload, directory: str, output: str, target: Target = FILES) -> Command:
        options, script = workload.options, f"{output}/{SCRIPT}"
        common = ("sh", script, "postgres", "pgbench")
        cluster = (str(options["scale"]), str(int(options["wal_segment_size"]) // MIB), str(options["data_checksums"]))
        requested = (f"{name}={value}" for name, value in _server_settings(options).items() if name not in _AT_INITDB)
        seed = 1 if target.seed is None else target.seed
        files = {script: script_text(SCRIPT)}
        if "script" in options:
            files[f"{output}/{OWN}"] = str(options["script"])
        return Command(
            argv=(
                *common, "measure", directory, output, *requested, *_AT_INITDB, *_FACTS, "--",
                *_own_options(options, output), f"--random-seed={seed}",
            ),
            prepare=((*common, "prepare", directory, output, *cluster),),
            fill=(("find", directory, "-type", "f", "-exec", "cat", "{}", "+"),),
            files=files,
            cache=self.cache_of(workload),
            seed=target.seed,
        )  # fmt: skip

    def parse(self, workload: Workload, output: ToolOutput) -> list[Measurement]:
        """Return rate and latencies. Raises ToolError where the server or pgbench did other work than was asked."""
        self.check_exit(output, output.stderr.strip() or output.stdout.strip()[-200:])
        options, lines = workload.options, dict(_LINE.findall(output.stdout))
        for name, requested in _expected(options).items():
            if lines.get(name) != requested:
                raise ToolError(
                    "pgbench did other work than was asked",
                    where=name,
                    got=lines.get(name, "nothing"),
                    allowed=requested,
                    evidence=output.stdout,
                )
        count = _count(lines, "number of transactions actually processed")
        failed = _count(lines, "number of failed transactions") if "number of failed transactions" in lines else 0
        if failed or not count:
            raise ToolError(
                f"{failed} transactions failed" if failed else "pgbench made no transaction",
                got=f"{count} transactions, {failed} failed",
                allowed="one or more, and none that failed",
                evidence=output.stderr.strip(),
            )
        wanted = int(options.get("transactions", 0)) * int(options["sessions"])
        if wanted and count != wanted:
            raise ToolError("pgbench ended early", got=f"{count} transactions", allowed=f"{wanted} transactions")
        rate, mean = _number(lines, "tps", _RATE), _number(lines, "latency average", _MILLISECONDS)
        report = read_server(output.files.get(SERVER, ""))
        _check_server(options, report, count)
        seconds = count / float(rate)
        rows = [
            Measurement(metric="operation_rate", value=float(rate), unit="1/s", step=last_digit(rate)),
            Measurement(metric="operation_latency", value=float(mean) / 1e3, unit="s", step=last_digit(mean) / 1e3),
            Measurement(metric="operations", value=float(count), unit="1", step=1),
            Measurement(metric="elapsed", value=seconds, unit="s", step=seconds * last_digit(rate) / float(rate)),
        ]
        if report.grown.get("wal_sync"):
            syncs = report.grown["wal_sync"] / seconds
            rows.append(Measurement(metric="sync_rate", label="log", value=syncs, unit="1/s", step=1 / seconds))
        return rows + (list(_percentiles(output.files.get(LATENCIES), count)) if options["percentiles"] else [])

    def commits(self, workload: Workload, figures: Mapping[tuple[str, str], float]) -> Commits | None:
        """Each transaction that writes, unless the sweep asks the server not to flush."""
        options = workload.options
        off = [name for name in ("synchronous_commit", "fsync") if not options.get(name, 1)]
        reads = options.get("builtin") == SELECT_ONLY or not _WRITES.search(str(options.get("script", "update")))
        if off or reads or ("operation_rate", "") not in figures:
            return None
        return Commits(figures["operation_rate", ""], int(options["sessions"]), figures["elapsed", ""])

    def space_bytes(self, workload: Workload, target: Target = FILES) -> int:
        """Return the space for tables, for new versions of rows, and for the log, which may pass its limit a little."""
        options = workload.options
        tables = _EMPTY_CLUSTER + int(options["scale"]) * _BYTES_PER_SCALE
        if options.get("builtin") == SELECT_ONLY:
            return tables + 4 * int(options["wal_segment_size"])
        log = int(options.get("max_wal_size", max(_DEFAULT_WAL, 2 * int(options["wal_segment_size"]))))
        return (tables + log) * 5 // 4 + 2 * int(options["wal_segment_size"])

    def expected_s(self, workload: Workload) -> float:
        options = workload.options
        counted = int(options.get("transactions", 0)) * int(options["sessions"]) / _GUESSED_TRANSACTIONS_PER_S
        unpacked = (_EMPTY_CLUSTER + int(options["scale"]) * _BYTES_PER_SCALE) / GUESSED_BYTES_PER_S
        return 1.0 + 2 * unpacked + float(options.get("runtime", counted))

    def written(self, workload: Workload) -> Written:
        return Written("pages of tables, with rows that are padded with blanks, and their log", True)

    def manner(self, workload: Workload) -> Manner:
        name = "a script of the user's" if "script" in workload.options else str(workload.options.get("builtin", TPCB))
        return Manner(engine=name, depth="1", jobs=str(workload.options["sessions"]))

    def main_metrics(self, workload: Workload) -> tuple[str, ...]:
        return ("operation_rate",)


_AT_INITDB = ("data_checksums", "wal_segment_size")
"""Settings that a cluster is made with."""


def _beyond(name: str, got: object, allowed: str, where: str) -> ParameterError:
    return ParameterError("pgbench cannot do this", where=f"{where}.{name}", got=str(got), allowed=allowed)


def _as_read(name: str, value: float) -> str:
    kind = Pgbench.options[name].kind
    return format_bytes(value) if kind == "size" else f"{value:g}" + (" s" if kind == "duration" else "")


def _words(name: str, bounds: Bounds) -> str:
    whole = f", whole {_as_read(name, bounds.step)}" if bounds.step > 1 else ""
    return f"{_as_read(name, bounds.least)} to {_as_read(name, bounds.most)}{whole}"


def _server_settings(options: Mapping[str, Scalar]) -> dict[str, str]:
    """Return the settings that options name, as the server reads them."""
    words = {}
    for name in (*_SETTINGS, *_AT_INITDB):
        if name in options:
            kind, value = Pgbench.options[name].kind, options[name]
            word = f"{int(value)}B" if kind == "size" else f"{float(value):.0f}s" if kind == "duration" else str(value)
            words[name] = ("on" if value else "off") if kind == "flag" else word
    return words


_SETTINGS = (
    "synchronous_commit", "fsync", "full_page_writes", "wal_sync_method", "wal_init_zero", "wal_recycle",
    "wal_compression", "commit_delay", "shared_buffers", "max_wal_size", "checkpoint_timeout",
)  # fmt: skip


def _own_options(options: Mapping[str, Scalar], output: str) -> Iterator[str]:
    """Yield the options of pgbench's own."""
    yield from ("-c", str(options["sessions"]), "-j", str(options["threads"]), "-M", str(options["protocol"]))
    if "transactions" in options:
        yield from ("-t", str(options["transactions"]))
    else:
        yield from ("-T", f"{float(options['runtime']):.0f}")
    if "script" in options:
        yield from ("-f", f"{output}/{OWN}", "-s", str(options["scale"]))
    else:
        yield from ("-b", str(options.get("builtin", TPCB)))
    if options["percentiles"]:
        yield from ("-l", f"--log-prefix={output}/log")


def _expected(options: Mapping[str, Scalar]) -> dict[str, str]:
    """Return lines of pgbench's report that follow from the options. With a script of the user's it repeats `scale`."""
    lines = {
        "scaling factor": str(options["scale"]),
        "query mode": str(options["protocol"]),
        "number of clients": str(options["sessions"]),
        "number of threads": str(options["threads"]),
    }
    if "script" not in options:
        lines["transaction type"] = _TYPES[str(options.get("builtin", TPCB))]
    if "transactions" in options:
        lines["number of transactions per client"] = str(options["transactions"])
    else:
        lines["duration"] = f"{float(options['runtime']):.0f} s"
    return lines


def _count(lines: Mapping[str, str], name: str) -> int:
    match = _COUNT.match(lines.get(name, ""))
    if not match:
        raise _unreadable(name, lines.get(name))
    return int(match[1])


def _number(lines: Mapping[str, str], name: str, pattern: re.Pattern[str]) -> str:
    match = pattern.fullmatch(lines.get(name, ""))
    if not match or not float(match[1]):
        raise _unreadable(name, lines.get(name))
    return match[1]


def _unreadable(what: str, got: str | None) -> ParseError:
    return ParseError(
        "pgbench's report cannot be read", where=what, got=repr(got) if got else "nothing", allowed="a number"
    )


def read_server(text: str) -> ServerReport:
    """Return what the server stated. Raises ParseError for a line of another form, and where something is missing."""
    settings: dict[str, tuple[str, str]] = {}
    counted: dict[tuple[str, str], int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        match = _SERVER_LINE.fullmatch(line)
        if not match or (match[1] != "setting" and not match[3].isdecimal()):
            raise ParseError(
                "what the server stated cannot be read",
                where=f"{SERVER}, line {number}",
                got=repr(line[:120]),
                allowed="setting NAME VALUE UNIT, or before|after COUNTER NUMBER",
            )
        if match[1] == "setting":
            settings[match[2]] = (match[3], match[4] or "")
        else:
            counted[match[1], match[2]] = int(match[3])
    after = {name: value for (when, name), value in counted.items() if when == "after" and ("before", name) in counted}
    if not settings or "xact_commit" not in after:
        raise ParseError(
            "the server stated too little",
            where=SERVER,
            got=text[-120:].strip() or "nothing",
            allowed="its settings, and its commits before and after",
        )
    return ServerReport(settings, {name: value - counted["before", name] for name, value in after.items()})


def _check_server(options: Mapping[str, Scalar], report: ServerReport, count: int) -> None:
    """Raise ToolError where a setting is not in effect, the server has a network, or it committed too little."""
    for name, requested in {**_server_settings(options), "listen_addresses": ""}.items():
        value, unit = report.settings.get(name, (None, ""))
        if value is None or not _is_equal(name, value, unit, requested):
            raise ToolError(
                "a setting is not in effect",
                where=name,
                got="nothing" if value is None else f"{value} {unit}".strip(),
                allowed=requested or "no address",
                next_step="the version of the server may not have it; leave it out, or take another value",
            )
    committed = report.grown["xact_commit"]
    if "script" not in options and committed < count:
        raise ToolError(
            "the server committed fewer transactions than pgbench counts",
            got=f"{committed} commits",
            allowed=f"{count} or more",
        )


def _is_equal(name: str, value: str, unit: str, requested: str) -> bool:
    kind = Pgbench.options[name].kind if name in Pgbench.options else "text"
    if kind not in ("size", "duration"):
        return value == requested
    factor = (_UNIT_BYTES if kind == "size" else _UNIT_SECONDS).get(unit)
    return factor is not None and value.isdecimal() and int(value) * factor == float(requested.rstrip("Bs"))


def _percentiles(text: str | None, count: int) -> Iterator[Measurement]:
    """Yield least and longest latency and percentiles (nearest rank), from a line 'MICROSECONDS TRANSACTIONS' each."""
    pairs = []
    for number, line in enumerate((text or "").splitlines(), start=1):
        words = line.split()
        if len(words) != 2 or not all(word.isascii() and word.isdecimal() for word in words):
            raise ParseError(
                "the latencies cannot be read",
                where=f"{LATENCIES}, line {number}",
                got=repr(line[:120]),
                allowed="microseconds, and how many transactions took them",
            )
        pairs.append((int(words[0]), int(words[1])))
    pairs.sort()
    sums = list(accumulate(transactions for _, transactions in pairs))
    if not sums or sums[-1] != count:
        raise ParseError(
            "pgbench's log and its report do not agree",
            where=LATENCIES,
            got=f"{sums[-1] if sums else 0} latencies",
            allowed=f"{count}, one of each transaction",
        )
    at = {
        "operation_latency_min": pairs[0][0],
        "operation_latency_max": pairs[-1][0],
        **{
            metric: next(
                us for (us, _), total in zip(pairs, sums, strict=True) if total >= math.ceil(percent / 100 * count)
            )
            for metric, percent in PERCENT_OF.items()
            if metric.startswith("operation_latency_")
        },
    }
    yield from (Measurement(metric=name, value=us * 1e-6, unit="s", step=1e-6) for name, us in at.items() if us)

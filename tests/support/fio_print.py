"""Reports as fio prints them for people, of any figures: by the print statements of its versions (stat.c, num2str.c).

What differs from version to version is what a reader of old logs has to know: units, carries, blanks, words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

PERCENTS = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99)
VERSIONS = ((2, 0, 8), (2, 0, 14), (2, 1, 10), (2, 16), (2, 21), (3, 1), (3, 7), (3, 25), (3, 33), (3, 42))


@dataclass(frozen=True)
class Latency:
    """In nanoseconds."""

    least: int
    most: int
    mean: float
    deviation: float


@dataclass(frozen=True)
class Side:
    ios: int
    block: int
    ms: int
    whole: Latency
    points: Sequence[int]
    """One for each of PERCENTS, rising, in nanoseconds."""

    @property
    def moved(self) -> int:
        return self.ios * self.block


@dataclass(frozen=True)
class Job:
    name: str
    sides: dict[str, Side]
    flushes: int = 0
    flush: Latency | None = None
    flush_points: Sequence[int] = ()
    pid: int = 4711
    user: float = 1.5
    system: float = 8.25
    switches: int = 1382


@dataclass(frozen=True)
class Style:
    """What the options of a run change of its output."""

    version: tuple[int, ...]
    bits: bool = False
    """unit_base=1"""
    date: str = "Sun Nov 22 10:28:07 2026"
    header: bool = True
    more: Sequence[str] = field(default_factory=tuple)
    """Lines of other things that fio may print below a job."""


# --- numbers ----------------------------------------------------------------------------------------------------------


def number(value: int, version: tuple[int, ...], *, base: int = 1000, unit: str = "") -> str:
    """A count as num2str prints it: of six digits before 2.17, later of four, with the carries of its time."""
    if version < (2, 17):
        return _old_number(value, base, unit, blank=" " if version < (2, 1) else "")
    prefixes = ("", "Ki", "Mi", "Gi", "Ti", "Pi") if base == 1024 else ("", "k", "M", "G", "T", "P")
    rest, power = None, 0
    while len(str(value)) > 4:
        value, rest = divmod(value, base)
        power += 1
    room = 4 - len(str(value)) - 1
    if rest is None or room <= 0:
        return f"{value + (rest is not None and rest >= base // 2)}{prefixes[power]}{unit}"
    decimals = f"{rest / base:.{room}f}"
    carry = decimals[0] == "1" and version >= (3, 26)
    return f"{value + carry}.{decimals[2:]}{prefixes[power]}{unit}"


def _old_number(value: int, base: int, unit: str, *, blank: str, power: int = 0) -> str:
    """Its decimals are the digits of the remainder, without their place: 4251005 is 4251.5K, of fio 2."""
    prefixes = (blank, "K", "M", "G", "P", "E")
    rest = None
    while len(str(value)) > 6:
        value, rest = divmod(value, base)
        power += 1
    room = 6 - len(str(value)) - 1
    if rest is None or room <= 0:
        return f"{value + (rest is not None and rest >= base // 2)}{prefixes[power]}{unit}"
    while len(str(rest)) > room:
        rest = (rest + 9) // 10
    return f"{value}.{rest}{prefixes[power]}{unit}"


def _rate(value: int, style: Style, base: int) -> str:
    return number(value * 8 if style.bits else value, style.version, base=base, unit="bit" if style.bits else "B")


# --- lines ------------------------------------------------------------------------------------------------------------


def report(jobs: Sequence[Job], style: Style) -> str:
    """What one fio prints."""
    version = ".".join(map(str, style.version))
    head = [
        *(f"{job.name}: (g=0): rw=randrw, bs={_blocks(job)}, ioengine=sync, iodepth=1" for job in jobs),
        f"fio-{version}",
        f"Starting {len(jobs)} process{'es' * (len(jobs) > 1)}",
    ]
    lines = [*(head if style.header else ()), "", *(line for job in jobs for line in _job(job, style)), ""]
    disk = "  vda: ios=556/7905, merge=2215/230, ticks=192/1840, in_queue=2111, util=28.95%"
    sums = ["Run status group 0 (all jobs):", *_sums(jobs, style)]
    return "\n".join([*lines, *sums, "", "Disk stats (read/write):", disk, ""])


def _job(job: Job, style: Style) -> Iterator[str]:
    dated = f": {style.date}" if style.version >= (2, 0, 9) else ""
    yield f"{job.name}: (groupid=0, jobs=1): err= 0: pid={job.pid}{dated}"
    for name, side in job.sides.items():
        yield from _side(name, side, style)
    yield "    lat (usec) : 4=80.21%, 10=13.75%" if style.version < (3,) else "  lat (usec)   : 4=80.21%, 10=13.75%"
    if job.flush and style.version >= (3, 4):
        yield "  fsync/fdatasync/sync_file_range:"
        yield _latency("sync", job.flush, style)
        yield from _points("sync", job.flush_points, style)
    yield (f"  cpu          : usr={job.user:3.2f}%, sys={job.system:3.2f}%, ctx={job.switches}, majf=0, minf=15")
    yield "  IO depths    : 1=112.5%, 2=0.0%, 4=0.0%, 8=0.0%, 16=0.0%, 32=0.0%, >=64=0.0%"
    yield _issued(job, style)
    yield from style.more


def _side(name: str, side: Side, style: Style) -> Iterator[str]:
    rate, iops = side.moved * 1000 // side.ms, number(side.ios * 1000 // side.ms, style.version)
    moved = number(side.moved, style.version, base=1024, unit="B")
    if style.version < (2, 17):
        yield (f"  {name.ljust(5)}: io={moved}, bw={_rate(rate, style, 1024)}/s, iops={iops}, runt={side.ms:6d}msec")
    else:
        both = f"{_rate(rate, style, 1024)}/s ({_rate(rate, style, 1000)}/s)"
        resets = "; 0 zone resets" if name == "write" and style.version >= (3, 9) else ""
        shown = name.rjust(5) if style.version < (3,) else name
        yield f"  {shown}: IOPS={iops}, BW={both}({moved}/{side.ms}msec){resets}"
    yield _latency("clat", side.whole, style)
    yield _latency(" lat", side.whole, style)
    yield from _points("clat", side.points, style)
    yield "    bw (KB/s)  : min=  102, max= 5012, per=65.77%, avg=2809.00, stdev=12.00"


def _latency(name: str, of: Latency, style: Style) -> str:
    least, most, mean, deviation, unit = of.least, of.most, of.mean, of.deviation, "nsec"
    if style.version < (2, 99):
        least, most, mean, deviation, unit = least // 1000, most // 1000, mean / 1e3, deviation / 1e3, "usec"
        if least > 1000 and most > 1000 and mean > 1000 and deviation > 1000:
            least, most, mean, deviation, unit = least // 1000, most // 1000, mean / 1e3, deviation / 1e3, "msec"
    elif least > 2_000_000 and most > 99_999_999 and mean > 2e6 and deviation > 1e6:
        least, most, mean, deviation, unit = least // 10**6, most // 10**6, mean / 1e6, deviation / 1e6, "msec"
    elif least > 2000 and most > 99_999 and mean > 2000 and deviation > 1000:
        least, most, mean, deviation, unit = least // 1000, most // 1000, mean / 1e3, deviation / 1e3, "usec"
    low, high = (_six(value, style.version) for value in (least, most))
    return f"    {name} ({unit}): min={low}, max={high}, avg={mean:5.2f}, stdev={deviation:5.2f}"


def _six(value: int, version: tuple[int, ...]) -> str:
    """num2str of six digits, which min and max have in all versions."""
    if version < (2, 17):
        return number(value, version)
    power, rest = 0, 0
    while len(str(value)) > 6:
        value, rest = divmod(value, 1000)
        power += 1
    room = 6 - len(str(value)) - 1
    decimals = f"{rest / 1000:.{room}f}"[2:] if power and room > 0 else ""
    return f"{value}{'.' + decimals if decimals else ''}{('', 'k', 'M', 'G')[power]}"


def _points(name: str, points: Sequence[int], style: Style) -> Iterator[str]:
    unit, divisor = "nsec", 1
    if style.version < (2, 99):
        unit, divisor = ("msec", 10**6) if points[0] > 2_000_000 and points[-1] > 99_999_999 else ("usec", 1000)
    elif points[0] > 2_000_000 and points[-1] > 99_999_999:
        unit, divisor = "msec", 10**6
    elif points[0] > 2000 and points[-1] > 99_999:
        unit, divisor = "usec", 1000
    yield f"    {name} percentiles ({unit}):"
    shown = [f" {percent:5.2f}th=[{-(-point // divisor):5d}]" for percent, point in zip(PERCENTS, points, strict=True)]
    for begin in range(0, len(shown), 4):
        end = "" if begin + 4 >= len(shown) else ","
        yield "     |" + ",".join(shown[begin : begin + 4]) + end


def _issued(job: Job, style: Style) -> str:
    reads, writes, trims = (job.sides[name].ios if name in job.sides else 0 for name in ("read", "write", "trim"))
    if style.version < (2, 17):
        return f"     issued    : total=r={reads}/w={writes}/d={trims}, short=r=0/w=0/d=0"
    if style.version < (3, 4):
        return f"     issued rwt: total={reads},{writes},{trims}, short=0,0,0, dropped=0,0,0"
    return f"     issued rwts: total={reads},{writes},{trims},{job.flushes} short=0,0,0,0 dropped=0,0,0,0"


def _sums(jobs: Sequence[Job], style: Style) -> Iterator[str]:
    for name in ("read", "write", "trim"):
        sides = [job.sides[name] for job in jobs if name in job.sides]
        if not sides:
            continue
        longest, shortest = max(side.ms for side in sides), min(side.ms for side in sides)
        moved = sum(side.moved for side in sides)
        if style.version < (2, 17):
            kib = sum(side.moved // 1024 for side in sides)
            both = [_old_number(each, 1024, "B", blank="", power=1) for each in (kib, kib * 1000 // longest)]
            yield (
                f"{name.upper():>7}: io={both[0]}, aggrb={both[1]}/s, minb={both[1]}/s, maxb={both[1]}/s, "
                f"mint={shortest}msec, maxt={longest}msec"
            )
            continue
        rate = moved * 1000 // longest
        each, again = f"{_rate(rate, style, 1024)}/s", f"{_rate(rate, style, 1000)}/s"
        amounts = (number(moved, style.version, base=base, unit="B") for base in (1024, 1000))
        yield (
            f"{name.upper():>7}: bw={each} ({again}), {each}-{each} ({again}-{again}), io={next(amounts)} "
            f"({next(amounts)}), run={shortest}-{longest}msec"
        )


def _blocks(job: Job) -> str:
    """'4K-4K/512-512/4K-4K': least and most bytes of reads, writes and trims."""
    sizes = [job.sides[name].block if name in job.sides else 4096 for name in ("read", "write", "trim")]
    texts = [str(size) if size % 1024 else f"{size // 1024}K" for size in sizes]
    return "/".join(f"{text}-{text}" for text in texts)

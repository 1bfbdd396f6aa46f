"""What a watched program did, in sentences: what answered its reads, what took its writes, what made them last."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from mountlab.analysis.run_view import RunView
from mountlab.analysis.watched import Observation, is_watched, observations
from mountlab.checks.places import saw_files_read
from mountlab.checks.traffic import CACHED_BELOW, TELLING_BYTES, range_of
from mountlab.checks.work import is_same_amount
from mountlab.core.errors import in_one_line
from mountlab.core.model import Cell
from mountlab.core.numbers import counted, listed, number
from mountlab.core.units import MIB, format_bytes, format_seconds

_MOST_PLACES = 3
"""Mounts that a sentence names."""


def watched_text(run: RunView) -> list[str]:
    """Return the sentences on watched programs for a first screen, the leading one first; [] of other runs."""
    return [text for lines in watched_lines(run) for text in lines if text] if is_watched(run.sweep) else []


def watched_lines(run: RunView) -> list[tuple[str, str]]:
    """Return what each watched program of a run did: what answered its reads, and then the rest."""
    return [
        (
            " ".join([_time(cell, rows), *_reads(rows, _codes(run, cell)), *_arc(rows)]),
            " ".join([*_writes(rows), *_flushes(rows), *_places(rows)]),
        )
        if (rows := observations(run, cell))
        else (_unobserved(run, cell), "")
        for cell in run.sweep.cells
    ]


def _unobserved(run: RunView, cell: Cell) -> str:
    """Return why nothing is known of what a program did."""
    trials = run.trials[run.trials["cell"] == cell.id]
    statuses = set(trials["status"])
    if statuses & {"ok", "excluded"}:
        return f"What {cell.workload.label} did was not counted."
    failed = trials[trials["status"].isin(("failed", "invalid"))]
    if len(failed):
        return f"{cell.workload.label} gave no figure: {in_one_line(str(failed.iloc[0]['reason']))}."
    if "timeout" in statuses:
        return f"{cell.workload.label} was ended at its time limit: what it did until then is in no figure."
    return f"{cell.workload.label} has not ended yet."


def _codes(run: RunView, cell: Cell) -> set[str]:
    """Return the codes of the caveats on a cell."""
    return {caveat.code for caveat in run.caveats if caveat.subject == cell.id}


def _typical(rows: Sequence[Observation], value: Callable[[Observation], float | None]) -> float | None:
    """Return the median of a figure over the trials that have it; None where none has."""
    values = [figure for row in rows if (figure := value(row)) is not None]
    return float(median(values)) if values else None


def _time(cell: Cell, rows: Sequence[Observation]) -> str:
    seconds = [row.seconds for row in rows if row.seconds is not None]
    ran = counted(len(rows), "run")
    if not seconds:
        return f"{cell.workload.label} was watched ({ran})."
    least, most = format_seconds(min(seconds)), format_seconds(max(seconds))
    took = f"took {least}" if least == most else f"took {least} to {most}"
    return f"{cell.workload.label} {took} ({ran})."


def _reads(rows: Sequence[Observation], codes: set[str]) -> Iterator[str]:
    read = _typical(rows, lambda row: row.around.read_calls)
    if read is None:
        return
    if read < TELLING_BYTES:
        yield (
            f"Its calls read {format_bytes(read)}, without AIO, io_uring, mmap, splice, and children that it did not "
            "wait for: too little to say what answered."
        )
        return
    if beyond := [float(row.beyond_calls) for row in rows if row.beyond_calls is not None]:
        where = f"In {len(beyond)} of {counted(len(rows), 'run')} storage" if len(beyond) < len(rows) else "Storage"
        yield (
            f"{where} delivered {format_bytes(max(beyond))} to it, and its calls read {format_bytes(read)}: the rest "
            "was metadata, read ahead, or for mmap, AIO, io_uring or splice. What answered the calls is not known."
        )
    shares = [row.delivered_share for row in rows if row.delivered_share is not None]
    if shares:
        share = range_of([min(share, 1.0) for share in shares])
        what = f"{format_bytes(read)} that its calls read, pipes included,"
        most = "at most " if any(row.loops_unseen for row in rows if row.delivered_share is not None) else ""
        yield f"Of {what} storage delivered {most}{share}{_rest(rows, shares, codes)}."
    elif reasons := [why for row in rows if (why := row.fetches_unseen or row.loops_unseen)]:
        yield f"Its calls read {format_bytes(read)}; of that it is not known what storage delivered ({reasons[0]})."
    for point in dict.fromkeys(point for row in rows for point, _ in row.nfs):
        moved = [nfs for row in rows for name, nfs in row.nfs if name == point]
        asked = median([nfs.read + nfs.direct_read for nfs in moved])
        served = [nfs.from_server / (nfs.read + nfs.direct_read) for nfs in moved if nfs.read + nfs.direct_read]
        if asked >= TELLING_BYTES and served:
            total = format_bytes(float(asked))
            share = range_of([min(share, 1.0) for share in served])
            yield f"On {point} (NFS) the server delivered {share} of {total}; the client's memory the rest."


def _arc(rows: Sequence[Observation]) -> Iterator[str]:
    looked_up = [arc for row in rows if (arc := row.around.arc) and arc.hits + arc.misses]
    if looked_up:
        shares = range_of([arc.hits / (arc.hits + arc.misses) for arc in looked_up])
        yield f"The ARC of ZFS answered {shares} of what all programs looked up there."


def _rest(rows: Sequence[Observation], shares: Sequence[float], codes: set[str]) -> str:
    """Return what answered the rest of the reads, where a caveat holds that against it: calls on pipes count, too."""
    if min(shares) >= CACHED_BELOW or not codes & {"cache-served", "device-read-less"}:
        return ""
    seen = [row.around.extents for row in rows if row.around.extents]
    without = max((extents.without_data for extents in seen), default=0.0)
    if without >= 1 - CACHED_BELOW:
        return f"; {without:.0%} of the bytes in its files has no data there (holes, unwritten space)"
    compressed = max((extents.compressed_share for extents in seen), default=0.0)
    if compressed >= 1 - CACHED_BELOW and "device-read-less" in codes:
        return f"; {compressed:.0%} of the bytes in its files is compressed there"
    looked = [row.files for row in rows if row.files]
    unless = "" if any(map(saw_files_read, looked)) else ", unless that was pipes, /dev/zero, /proc or holes"
    return f"; memory answered {'the rest' if max(shares) < CACHED_BELOW else 'in some of the runs'}{unless}"


def same_work(runs: Sequence[RunView], names: Sequence[str]) -> list[str]:
    """Return whether a watched program did the same work in two runs; [] of other runs."""
    if not all(is_watched(run.sweep) for run in runs):
        return []
    lines = []
    for cell in runs[0].sweep.cells:
        sides = [observations(run, cell) for run in runs]
        if all(sides):
            known = [amount for one in _AMOUNTS if (amount := _Amount.of(sides, *one))]
            unequal = [amount for amount in known if not amount.is_same]
            if unequal:
                lines.append(f"The two did not do the same work: {'; '.join(one.against(names) for one in unequal)}.")
            elif known:
                lines.append(
                    f"Both did the same work, within 5\N{NO-BREAK SPACE}%: {listed([one.together() for one in known])}."
                )
    return lines


@dataclass(frozen=True)
class _Amount:
    """What both sides did, as medians over their trials."""

    verb: str
    unit: str
    values: tuple[float, float]

    @classmethod
    def of(
        cls, sides: Sequence[Sequence[Observation]], verb: str, unit: str, value: Callable[[Observation], float | None]
    ) -> _Amount | None:
        first, second = (_typical(rows, value) for rows in sides)
        return None if first is None or second is None else cls(verb, unit, (first, second))

    @property
    def is_same(self) -> bool:
        return abs(self.values[0] - self.values[1]) < _TELLING[self.unit] or is_same_amount(*self.values)

    def against(self, names: Sequence[str]) -> str:
        first, second = map(self._text, self.values)
        return f"{names[0]} {self.verb} {first} and {names[1]} {second}"

    def together(self) -> str:
        return f"{self.verb} {' and '.join(dict.fromkeys(map(self._text, self.values)))}"

    def _text(self, value: float) -> str:
        return format_bytes(value) if self.unit == "B" else counted(round(value), self.unit)


_TELLING = {"B": MIB, "flush": 20, "call": 1000, "file": 2}
"""Differences below these may have other reasons."""
_QUIET = 0.1
"""Flushes are counted for all programs: where others take more of the processors, these may be theirs."""
_AMOUNTS: tuple[tuple[str, str, Callable[[Observation], float | None]], ...] = (
    ("read", "B", lambda row: row.around.read_calls),
    ("wrote", "B", lambda row: row.around.write_calls),
    ("made", "call", lambda row: row.call_count),
    ("saw", "flush", lambda row: row.flushes if (row.around.others or 0.0) < _QUIET else None),
    ("had open", "file", lambda row: row.file_count),
)


def _writes(rows: Sequence[Observation]) -> Iterator[str]:
    written = _typical(rows, lambda row: row.to_storage)
    if written is None or written < TELLING_BYTES:
        return
    ratio = _typical(rows, lambda row: row.amplification)
    if ratio is None:
        places = dict.fromkeys(row.wrote_elsewhere for row in rows if row.wrote_elsewhere)
        where = f", also on {listed(list(places))}: what the device there took is not known" if places else ""
        yield f"It wrote {format_bytes(written)} to files{where}."
        return
    took = f"the device took {number(ratio, 2)} times as much"
    yield f"It wrote {format_bytes(written)} to files, and {took}{_not_taken(rows) if ratio < CACHED_BELOW else ''}."


def _not_taken(rows: Sequence[Observation]) -> str:
    """Return where the bytes were that the device had not taken: in memory, as far as dirty pages account for them."""
    shares = [
        row.waiting / (row.to_storage - row.device_written)
        for row in rows
        if row.waiting is not None and row.amplification is not None and row.amplification < CACHED_BELOW
        if row.to_storage and row.device_written is not None
    ]
    if shares and min(shares) >= _ACCOUNTED:
        return "; the rest was still in memory when it ended"
    return "; where the rest was is not known (in memory, compressed, or on another device)"


_ACCOUNTED = 0.5
"""Dirty pages explain what a device did not take where they are at least this share of it."""


def _flushes(rows: Sequence[Observation]) -> Iterator[str]:
    rate = _typical(rows, lambda row: row.flush_rate)
    wrote = _typical(rows, lambda row: row.around.write_count)
    if rate is None or not wrote or any(row.wrote_elsewhere for row in rows):
        return
    if not any(row.flushes for row in rows):
        yield "The device was never flushed."
    else:
        several = next((row.below.flushes_of for row in rows if row.below and row.below.flushes_of), "")
        who = f"{several[:1].upper()}{several[1:]} were flushed, in sum," if several else "The device was flushed"
        yield f"{who} {number(rate, 1)} times a second, by all programs together."


def _places(rows: Sequence[Observation]) -> Iterator[str]:
    """Yield where its files were."""
    mounts = {
        mount.mountpoint: mount.label for row in rows for mount in (row.files.mounts.values() if row.files else ())
    }
    if mounts:
        named = list(mounts.values())
        more = [f"{len(named) - _MOST_PLACES} more"] if len(named) > _MOST_PLACES else []
        yield f"It had files open on {listed([*named[:_MOST_PLACES], *more])}."

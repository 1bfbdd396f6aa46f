"""What a run says about its planted cause: judged, kept as a line of JSON, and counted in docs/data/causes.csv."""

from __future__ import annotations

import json
import math
import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import get_args

import data_files
from cause_parts import EXPECTED, Verdict
from causes import CAUSES, Cause
from mountlab.analysis import why, why_doubts
from mountlab.core.layers import QUANTITIES
from mountlab.results.store import Run
from mountlab.sentences import why as why_sentences

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "results" / "why-causes.jsonl"
QUIET, LOADED = "quiet", "loaded"
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
HEADER = (
    "planted", "operation", "right", "quiet", "loaded", "past the run queue", "its share", "work", "on", "kernel",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Record:
    """One run, judged."""

    cause: str
    beside: str
    """QUIET or LOADED."""
    run: str
    """Its name, which begins with its time."""
    verdict: Verdict
    named: Sequence[tuple[str, str]]
    """Layer and through of the largest part, and of those that may be larger."""
    next_verdict: Verdict
    """The same; of a wait for a processor that is not right, which the answer calls a consequence, of the next part."""
    load: float
    """Of the machine over the last minute, when its trials had ended."""
    share: float
    low: float
    high: float
    """Of its share."""
    work: str
    """The sentence on the ratios of work."""
    work_named: bool | None
    """Whether that names the ratio that is expected; None where none is."""
    sentence: str
    """The whole answer."""
    ratio: float
    """Of the latency."""
    parts: Mapping[str, Mapping[str, float]]
    """Side to the mean seconds of each layer/through."""
    sums: Mapping[str, float]
    """Side to the median of the sum of the parts as a multiple of the tool's own mean, where it has one."""
    withheld: Sequence[str]
    cost: Mapping[str, float]
    """'metric cell' to what tracing made of it."""
    took_s: float
    kernel: str = platform.release()


def judged(cause: Cause, run: Run, *, beside: str, load: float, took_s: float) -> Record:
    """Return the answer of a run about the mean of the operation that the cause is planted for."""
    expected, figures = EXPECTED[cause.name], why.work(run.why, run.sweep)
    found = why.causes(run.why, run.sweep, run.comparisons)
    own = next((each for each in found if (each.operation, each.statistic) == (expected.operation, "mean")), None)
    largest = own.largest if own else None
    named = [each.part for each in (largest, *own.as_large)] if own and largest else []
    verdict = expected.verdict(named)
    share = largest.share if largest else None
    others = [each.part for each in own.parts if each.share.shown and not each.is_wait_for_processor] if own else []
    waits = bool(largest and largest.is_wait_for_processor and verdict != "right")
    words = why_sentences.work_words(own, figures) if own else ""
    traces = run.why.traces[(run.why.traces["operation"] == expected.operation) & (run.why.traces["withheld"] == "")]
    sums = (traces["traced_mean"] / traces["tool_mean"]).groupby(traces["filesystem"]).median()
    return Record(
        cause=cause.name,
        beside=beside,
        run=run.path.name,
        verdict=verdict,
        named=named,
        next_verdict=expected.verdict(others[:1]) if waits else verdict,
        load=load,
        share=share.share if share else math.nan,
        low=share.low if share else math.nan,
        high=share.high if share else math.nan,
        work=words,
        work_named=_names(words, expected.ratio) if expected.ratio else None,
        sentence=why_sentences.cause_sentence(own, figures, lambda *_: {}) if own else "",
        ratio=own.ratio.ratio if own else math.nan,
        parts={
            split.filesystem: {"/".join(part): value.mean for part, value in split.parts.items()}
            for split in why.splits(run.why, run.sweep)
            if (split.operation, split.statistic) == (expected.operation, "mean")
        },
        sums={str(side): float(value) for side, value in sums.items() if math.isfinite(value)},
        withheld=[f"{each.cell} {each.operations}: {each.reason}" for each in why_doubts.withheld(run.why)],
        cost={
            f"{each.metric} {each.cell}": each.ratio.ratio
            for each in why_doubts.costs(run.why, run.measurements, run.answer_metrics, run.sweep)
        },
        took_s=took_s,
    )


def _names(words: str, quantity: str) -> bool:
    """Whether the sentence on the work says that this ratio differs."""
    return "same work" not in words and QUANTITIES[quantity].noun.partition(" per ")[0] in words


def kept(path: Path) -> list[Record]:
    """Return the records of a file, none where it is not there yet."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [Record(**json.loads(line)) for line in lines]


def keep(path: Path, record: Record) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(asdict(record)) + "\n")


# --- the table --------------------------------------------------------------------------------------------------------


def counted(verdicts: Iterable[Verdict]) -> str:
    """'4 / 0 / 1 / 0 / 0': how many of each."""
    number = Counter(verdicts)
    return " / ".join(str(number[verdict]) for verdict in VERDICTS) if number else "not run"


def columns(records: Sequence[Record]) -> list[str]:
    """Count the verdicts on a quiet machine, on a loaded one, and those past the run queue."""
    apart = ([each.verdict for each in records if each.beside == beside] for beside in (QUIET, LOADED))
    return [*map(counted, apart), counted(each.next_verdict for each in records)]


def shares_of(records: Sequence[Record], beside: str) -> tuple[float, float]:
    """Return the share of runs in which the planted part is named, and in which a wrong one is; of causes that can be
    split, without other load or beside one."""
    mapped = {cause.name for cause in CAUSES if cause.is_mapped}
    verdicts = Counter(each.verdict for each in records if each.beside == beside and each.cause not in mapped)
    named = verdicts["right"] + verdicts["among several"]
    return named / verdicts.total(), verdicts["wrong"] / verdicts.total()


def named(records: Sequence[Record]) -> list[tuple[str, ...]]:
    """Return how often the planted part is named and a wrong one is, beside each load that has runs."""
    loads = [each for each in (QUIET, LOADED) if any(record.beside == each for record in records)]
    counted_rows = ((load, *(f"{share:.1%}" for share in shares_of(records, load))) for load in loads)
    return [("machine", "planted part named", "wrong part named"), *counted_rows]


def row(cause: Cause, records: Sequence[Record]) -> tuple[str, ...]:
    expected = EXPECTED[cause.name]
    shares = [record.share for record in records if record.verdict == "right"]
    work_named = [record.work_named for record in records if record.work_named is not None]
    newest = max(record.run for record in records)
    return (
        f"`{cause.name}`: {cause.does}",
        expected.operation,
        ", ".join(f"`{part}`" for part in expected.right),
        *columns(records),
        f"{median(shares):.0%}" if shares else "",
        f"{sum(work_named)} of {len(work_named)}" if work_named else "",
        "-".join((newest[:4], newest[4:6], newest[6:8])),
        max(record.kernel for record in records),
    )


def table(records: Sequence[Record]) -> list[tuple[str, ...]]:
    """Return a row for each cause that has runs, and one for all of them."""
    rows = [row(cause, own) for cause in CAUSES if (own := [each for each in records if each.cause == cause.name])]
    return [HEADER, *rows, ("**all**", "", "", *columns(records), "", "", "", "")]


def write_tables(records: Sequence[Record]) -> None:
    data_files.write("causes", table(records))
    data_files.write("causes-named", named(records))


def shown(records: Sequence[Record]) -> str:
    """Return what was named, for a test that fails."""
    return "\n".join(
        f"{each.verdict}: {', '.join(map('/'.join, each.named))} {each.share:.0%} of {each.ratio:.2f}"
        for each in records
    )

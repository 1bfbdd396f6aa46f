"""records.parquet: what was read from the raw output of each trial, so that no later reader decodes it again.

A row is trusted only while it was made by the parsers of today from the line of the journal, and from the digest of raw
output, that the run has now, and while derived.json vouches for the file. Others are made again from the raw output.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path

from pydantic import TypeAdapter

from mountlab.analysis.run_view import TrialRecord
from mountlab.core import chain
from mountlab.core.disk import read_plain
from mountlab.core.model import Sweep, Trial
from mountlab.results import derived
from mountlab.results.altered import accepted_raw
from mountlab.results.journal import Journal
from mountlab.results.raw import read_trial
from mountlab.results.stamp import FIGURES, LARGEST

FILE = "records.parquet"
RECORDS = 2
"""Raised whenever a record holds something else of the same raw output than the figures, which FIGURES counts."""
NONE: Mapping[str, TrialRecord] = {}
"""For a reader that is to make all records from the raw output."""


@cache
def _record() -> TypeAdapter[TrialRecord]:
    """Made when it is needed first: that takes some hundredths of a second."""
    return TypeAdapter(TrialRecord)


def made_from(journal: Journal) -> dict[str, str]:
    """Return trial id to the hash of what its record is made from; {} of a run of a version without checksums."""
    if chain.KEY not in journal.record:
        return {}
    digests = {**journal.raw, **accepted_raw(journal.record)}
    about = f"{FIGURES} {RECORDS} {journal.record[chain.KEY]}"
    return {
        trial.trial_id: sha256(f"{about} {digests.get(trial.trial_id)} ".encode() + line).hexdigest()
        for trial, line in zip(journal.trials, journal.lines, strict=True)
    }


def as_parquet(records: Mapping[str, TrialRecord], digests: Mapping[str, str]) -> bytes:
    """Return the file. `digests`: as `made_from` says; a trial that is not in it has no row."""
    import pyarrow as pa
    from pyarrow import parquet

    rows = [
        (name, digests[name], _record().dump_json(record, exclude={"detail", "device"}), record.detail)
        for name, record in records.items()
        if name in digests
    ]
    columns = zip(*rows, strict=True) if rows else ((), (), (), ())
    types = (("trial_id", pa.string()), ("made_from", pa.string()), ("record", pa.binary()), ("detail", pa.binary()))
    table = pa.table({name: pa.array(column, kind) for (name, kind), column in zip(types, columns, strict=True)})
    whole = io.BytesIO()
    parquet.write_table(table, whole, compression="zstd", write_page_checksum=True)
    return whole.getvalue()


def read_kept(run: Path, digests: Mapping[str, str]) -> dict[str, TrialRecord]:
    """Return the records in the file that hold now, by trial; none where the file is missing or damaged."""
    try:
        seal, data = derived.read(run), read_plain(run / FILE, LARGEST)
        if seal is None or not seal.vouches(FILE, data):
            return {}
        import pyarrow as pa
        from pyarrow import parquet

        columns = parquet.ParquetFile(pa.BufferReader(data), page_checksum_verification=True).read(use_threads=False)
        names = ("trial_id", "made_from", "record", "detail")
        rows = zip(*(columns[name].to_pylist() for name in names), strict=True)
        return {
            name: replace(_record().validate_json(text), detail=detail)
            for name, digest, text, detail in rows
            if digests.get(name) == digest
        }
    except (*derived.DAMAGE, LookupError):
        return {}


def complete(
    run: Path, trials: Sequence[Trial], sweep: Sweep, records: Mapping[str, TrialRecord]
) -> dict[str, TrialRecord]:
    """Return a record of each trial: those that are given, and the others from the raw output. Raises as
    `raw.read_trial` does, and KeyError for a trial with figures whose cell is not of the sweep."""
    workloads = {cell.id: cell.workload for cell in sweep.cells}
    return {
        trial.trial_id: records[trial.trial_id]
        if trial.trial_id in records
        else read_trial(
            run / "raw" / trial.trial_id, trial, workloads[trial.cell] if trial.status == "ok" else None, sweep.imported
        )
        for trial in trials
    }

"""measurements.parquet with a stamp that says what it was made from, so that a reader can tell whether it still is the
truth without reading the raw output again.

What may change in a run directory is hashed into the stamp: run.json, the journal, the list of excluded trials. Raw
output is never changed, by the contract of a run directory; what parsers make of it may, and has a number for it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from mountlab.core.disk import read_plain
from mountlab.core.frames import pd

FIGURES = 4
"""Raised whenever a parser reads another figure, or another step, out of the same raw output: figures that were derived
before then are derived again. A test holds it against recorded output. 2: the step of a figure was that of its
tool, or of the digits that all figures of a run happened to have. 3: percentiles of a search's trials left out requests
that were due and never issued."""
MADE_FROM = ("run.json", "trials.jsonl", "exclude.yml")
LARGEST = 1 << 30
"""Bytes of one of these; as for a journal."""
_KEY = b"mountlab"
_REPEATED = ("trial_id", "cell", "filesystem", "workload", "tool", "factors", "metric", "label", "unit")
"""Columns that say few things many times."""


@dataclass(frozen=True)
class Stamp:
    """What the figures of a run were made from."""

    truth: Mapping[str, str]
    """Name of a file to its SHA-256; '' where there was none."""
    answers: Mapping[str, Sequence[str]]
    """Workload label to the metrics that the answer is about."""
    figures: int = FIGURES

    def holds(self, truth: Mapping[str, str]) -> bool:
        """Return whether figures with this stamp are those of this truth."""
        return self.figures == FIGURES and dict(self.truth) == dict(truth)


def truth_of(run: Path) -> dict[str, str]:
    """Return the hash of each file that figures depend on."""
    return {name: digest(truth_bytes(run / name)) for name in MADE_FROM}


def truth_bytes(file: Path) -> bytes | None:
    """Return one of these files; None where there is none. Raises StoreError for what is no plain file."""
    try:
        return read_plain(file, LARGEST)
    except FileNotFoundError:
        return None


def digest(data: bytes | None) -> str:
    """As a stamp holds it."""
    return "" if data is None else sha256(data).hexdigest()


def figure_types(text: Any) -> Any:
    """Return the columns of measurements.parquet with their types, as a schema of pyarrow; `text` is that of all
    texts."""
    import pyarrow as pa

    others = {"block": pa.int64(), "warmup": pa.bool_(), "value": pa.float64(), "step": pa.float64()}
    names = ("trial_id", "block", "warmup", *_REPEATED[1:], "value", "step")
    return pa.schema([(name, others.get(name, text)) for name in names])


def stamped(frame: pd.DataFrame, stamp: Stamp) -> bytes:
    """Return a frame as the bytes of a Parquet file that has the stamp in its metadata."""
    import pyarrow as pa
    from pyarrow import parquet

    types = None if len(frame) else figure_types(pa.large_string())  # what has no rows tells no types
    table = pa.Table.from_pandas(frame, schema=types, preserve_index=False)
    content = {
        "truth": dict(stamp.truth),
        "answers": {key: list(metrics) for key, metrics in stamp.answers.items()},
        "figures": stamp.figures,
    }
    metadata = {**(table.schema.metadata or {}), _KEY: json.dumps(content).encode()}
    whole = io.BytesIO()
    parquet.write_table(table.replace_schema_metadata(metadata), whole, write_page_checksum=True)
    return whole.getvalue()


def read_stamped(data: bytes) -> tuple[Any, Stamp | None]:
    """Return the table (of pyarrow) in the bytes of such a file, and its stamp; None where it has none, as those of
    earlier versions. One without rows has the types of one with rows, which earlier versions did not write. Raises
    ValueError or OSError where it is damaged."""
    import pyarrow as pa
    from pyarrow import parquet

    file = parquet.ParquetFile(pa.BufferReader(data), read_dictionary=_REPEATED, page_checksum_verification=True)
    table = file.read(use_threads=False)
    text = (table.schema.metadata or {}).get(_KEY)
    if not table.num_rows:
        table = figure_types(pa.dictionary(pa.int32(), pa.string())).empty_table()
    if text is None:
        return table, None
    content = json.loads(text)
    try:
        return table, Stamp(dict(content["truth"]), dict(content["answers"]), int(content["figures"]))
    except (LookupError, TypeError) as error:
        raise ValueError(f"not a stamp: {text[:200]!r}") from error

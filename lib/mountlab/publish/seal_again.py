"""Compute the checksums of a copy of a run again: in a bundle names are replaced, and every checksum is another."""

from __future__ import annotations

import json
from pathlib import Path

from mountlab.core import chain
from mountlab.core.checksums import MANIFEST, manifest
from mountlab.core.disk import replace_file
from mountlab.results import raw_sums
from mountlab.results.journal import FILE, whole_lines
from mountlab.results.run_file import read_record, write_record


def seal_again(run: Path) -> None:
    """Write the checksums of a run in run.json, its journal and its mounts, where it has any: a run of an earlier
    version has none, and stays as it is."""
    record = read_record(run)
    rows = [json.loads(line) for line in whole_lines(run / FILE)]
    if chain.KEY not in record and not any(chain.KEY in row for row in rows):
        return
    for sums in (run / "raw").glob(f"*/{MANIFEST}"):
        digests = {name: digest for name, digest in raw_sums.on_disk(sums.parent).items() if name != MANIFEST}
        replace_file(sums, manifest(digests).encode())
    if chain.ALTERED in record:  # accepted changes stay listed; the new checksums are of the files as they are
        record[chain.ALTERED] = [{key: entry[key] for key in ("at", "found")} for entry in record[chain.ALTERED]]
    record, lines = chain.bound(record), list[bytes]()
    head = chain.anchor(record).start
    for row in rows:
        content = {key: value for key, value in row.items() if key not in (chain.KEY, chain.RAW)}
        raw = run / "raw" / str(row["trial_id"])
        if raw.is_dir():
            content[chain.RAW] = raw_sums.digest_on_disk(raw)
        line, head = chain.chained(content, head)
        lines.append(line + b"\n")
    replace_file(run / FILE, b"".join(lines))
    ending = {chain.ENDING: {"trials": len(lines), "head": head}} if chain.ENDING in record else {}
    write_record(run, {**record, **ending})

"""few-files: a rate over so few files that starting tar is a large part of it."""

from __future__ import annotations

from collections.abc import Iterator

from mountlab.checks.base import Check, Doubt, standing
from mountlab.core.box_facts import BoxFacts
from mountlab.core.model import Sweep

FEW = 1000


def few_files(sweep: Sweep, facts: BoxFacts) -> Iterator[Doubt]:
    """An archive with so few files that starting tar is a large part of the time."""
    for cell in sweep.cells:
        files = int(cell.workload.options["files"]) if cell.workload.tool == "untar" else FEW
        if files < FEW:
            yield Doubt.of_cell(
                cell, f"the archive has {files} files: starting tar is a large part of the time. Unpack {FEW} or more."
            )


FEW_FILES: Check = standing("few-files", few_files, f"Unpack {FEW} files or more.", severities=("note",))

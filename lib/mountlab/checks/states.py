"""Did the trials of a cell begin from the same state?"""

from __future__ import annotations

from collections.abc import Iterator

from mountlab.checks.base import Check, Doubt, Evidence
from mountlab.core.numbers import counted


def several_makings(evidence: Evidence) -> Iterator[Doubt]:
    """Trials of a cell that began from several makings of its state: the same files, in other blocks.

    The mounts of a cell began from blocks in use with two or more checksums: the run was resumed, or each mount made
    the state again, as on layers and in pools. The digest of the files was the same each time.
    """
    for cell in evidence.sweep.cells:
        mounts = {evidence.mounts[trial_id] for trial_id in evidence.counted.get(cell.id, ())}
        identities = {evidence.identities[mount] for mount in mounts if mount in evidence.identities}
        if len(identities) > 1:
            yield Doubt.of_cell(
                cell,
                f"Its trials began from {counted(len(identities), 'making')} of the state {cell.workload.state}: the "
                "same files from the same seed, but the file system may have placed them in other blocks.",
            )


CHECKS = (
    Check(
        "several-makings",
        several_makings,
        "Nothing, where its figures do not change at the boundary; else measure in one session, with room to keep the "
        "state.",
        severities=("note",),
    ),
)

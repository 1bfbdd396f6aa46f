"""Whether the files of a run are as they were written, and what reads them as it was."""

from __future__ import annotations

from collections.abc import Iterator

from mountlab.checks.base import Check, Doubt, Evidence

_NAMED = 3
"""Alterations that a caveat names."""


def altered(evidence: Evidence) -> Iterator[Doubt]:
    """Measurements that were altered after they were written, and that a person accepted.

    The journal, its checksums or raw output were altered after they were written, and a person accepted them as they
    are.
    """
    if evidence.altered:
        said, more = "; ".join(evidence.altered[:_NAMED]), len(evidence.altered) - _NAMED
        rest = f"; and {more} more" if more > 0 else ""
        yield Doubt.of_run(
            f"a measurement was altered after it was written: {said}{rest}. The figures are those of the altered "
            "files, and nothing shows what they were before: measure again before you decide."
        )


def other_plugins(evidence: Evidence) -> Iterator[Doubt]:
    """The plug-ins that are installed are not those with which the run was measured.

    A plug-in that the run used is not installed where the run is read, or has another version there.
    """
    for each in evidence.plugins:
        yield Doubt.of_run(
            f"measured with the plug-in {each}. Its figures, caveats and plots may be others than they were: install "
            "the version with which the run was measured."
        )


def _no_checksums(evidence: Evidence) -> str | None:
    why = "an earlier version of Mountlab recorded the run, without checksums: a later change cannot be noticed"
    return None if evidence.has_checksums else why


CHECKS = (
    Check("altered", altered, "Bring the files back from a copy or a bundle, or measure again.", blind=_no_checksums),
    Check("plug-ins-differ", other_plugins, "Install the plug-ins with which the run was measured."),
)

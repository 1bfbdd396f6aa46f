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
        shown, more = "; ".join(evidence.altered[:_NAMED]), len(evidence.altered) - _NAMED
        rest = f"; and {more} more" if more > 0 else ""
        yield Doubt.of_run(
            f"a measurement was altered after it was written: {shown}{rest}. The figures are those of the altered "
            "files, and nothing shows what they were before: measure again before you decide."
        )


def other_plugins(evidence: Evidence) -> Iterator[Doubt]:
    """The plug-ins that are installed are not those with which the run was measured.

    A plug-in that the run used is not installed where the run is read, or has another version there.
    """
    for plugin in evidence.plugins:
        yield Doubt.of_run(
            f"measured with the plug-in {plugin}. Its figures, caveats and plots may be others than they were: install "
            "the version with which the run was measured."
        )


def by_hand(evidence: Evidence) -> Iterator[Doubt]:
    """Trials that were asked for one by one.

    The run was made by hand (`mountlab.box`). A warning where file systems are compared, else a note.
    """
    if evidence.sweep.by_hand:
        compared = evidence.sweep.baseline is not None
        order = (
            "No order was drawn: what changed on the box meanwhile is part of every comparison. " if compared else ""
        )
        yield Doubt.of_run(
            "its trials were asked for by hand, one by one, and their number was not fixed beforehand. Stopping when "
            f"the figures look good makes intervals too narrow. {order}Take it for a look, and let a sweep confirm it: "
            "sweep.yml beside this run asks for the same.",
            severity="warning" if compared else "note",
        )


def _no_checksums(evidence: Evidence) -> str | None:
    why = "an earlier version of Mountlab recorded the run, without checksums: a later change cannot be noticed"
    return None if evidence.has_checksums else why


CHECKS = (
    Check("altered", altered, "Bring the files back from a copy or a bundle, or measure again.", blind=_no_checksums),
    Check("plug-ins-differ", other_plugins, "Install the plug-ins with which the run was measured."),
    Check("by-hand", by_hand, "Run its sweep.yml as a sweep.", severities=("note", "warning")),
)

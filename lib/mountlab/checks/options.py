"""Were the options that were asked for in effect?"""

from __future__ import annotations

from collections.abc import Iterator

from mountlab.checks.base import Check, Evidence, of_filesystem
from mountlab.core.findings import Caveat, Severity
from mountlab.filesystems.read_back import became, ineffective


def ineffective_options(evidence: Evidence) -> Iterator[Caveat]:
    """Options that were asked for and that the kernel ignored or changed, or that do nothing here."""
    severity: Severity = "error" if evidence.sweep.design.on_ineffective == "error" else "warning"
    for option in ineffective(evidence.options):
        yield of_filesystem(
            option.filesystem,
            "option-not-in-effect",
            severity,
            f"{option.option} was asked for and {became(option)}: the kernel says {option.kernel_says}. "
            "Figures are of the file system without it; remove the option, or use a file system that has it.",
        )


def invisible_options(evidence: Evidence) -> Iterator[Caveat]:
    """Options of which nothing shows whether they are in effect."""
    unseen: dict[str, list[str]] = {}
    for option in evidence.options:
        if option.state == "not visible":
            unseen.setdefault(option.filesystem, []).append(option.option)
    for filesystem, names in unseen.items():
        yield of_filesystem(
            filesystem,
            "option-not-visible",
            "note",
            f"{', '.join(names)}: asked for, not refused, and shown nowhere by the kernel. Defaults are often "
            "not shown; nothing here can confirm that it is in effect.",
        )


CHECKS = (
    Check(
        code="option-not-in-effect",
        severities=("error", "warning"),
        advice="Remove the option, or correct it: the kernel's own word stands beside it.",
        find=ineffective_options,
    ),
    Check(
        code="option-not-visible",
        severities=("note",),
        advice="Nothing, if the kernel's documentation says that it is heeded; it read the word at least.",
        find=invisible_options,
    ),
)

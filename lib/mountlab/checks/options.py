"""Were the options that were asked for in effect?"""

from __future__ import annotations

from collections.abc import Iterator

from mountlab.checks.base import Check, Doubt, Evidence, standing
from mountlab.core.box_facts import BoxFacts
from mountlab.core.findings import Severity
from mountlab.core.groups import by_key
from mountlab.core.model import Sweep
from mountlab.filesystems.read_back import ineffective, outcome_text
from mountlab.fio.jobs import change_words, read_jobs, takes_usual_size


def ineffective_options(evidence: Evidence) -> Iterator[Doubt]:
    """Options that were asked for and that the kernel ignored or changed, or that do nothing here.

    A mount option, mkfs option or tunable was ignored or changed, or is shown and does nothing here. Evidence:
    `/proc/self/mountinfo`, `/proc/fs/ext4/*/options`, `/sys`, the super block and the kernel's log, against the same
    file system mounted without options. An error; with `on_ineffective: caveat` a warning.
    """
    severity: Severity = "error" if evidence.sweep.design.on_ineffective == "error" else "warning"
    for option in ineffective(evidence.options):
        yield Doubt.of_filesystem(
            option.filesystem,
            f"{option.option} was asked for and {outcome_text(option)}: the kernel says {option.kernel_says}. "
            "Figures are of the file system without it; remove the option, or use a file system that has it.",
            severity=severity,
        )


def invisible_options(evidence: Evidence) -> Iterator[Doubt]:
    """Options that neither the kernel nor the file system shows to be in effect.

    Neither the kernel, the super block nor the log shows whether the option is in effect, and the kernel refuses words
    that it does not know.
    """
    unseen = by_key((option.filesystem, option.option) for option in evidence.options if option.state == "not visible")
    for filesystem, names in unseen.items():
        yield Doubt.of_filesystem(
            filesystem,
            f"{', '.join(names)}: asked for, not refused, and shown nowhere by the kernel. Defaults are often "
            "not shown; nothing here can confirm that it is in effect.",
        )


def job_file_changed(sweep: Sweep, _: BoxFacts) -> Iterator[Doubt]:
    """Lines of a job file that fio gets in another form, or does not get.

    Mountlab drops or maps a line of `jobs`, or adds one. A warning where it chooses a size because the file has none.
    """
    for workload in () if sweep.imported else {workload.name: workload for workload in sweep.workloads}.values():
        changes = read_jobs(workload.options).changes if workload.tool == "fio" else ()
        if changes:
            yield Doubt.of_run(
                f"Of the job file of {workload.name}: {'. '.join(change_words(changes))}.",
                severity="warning" if takes_usual_size(changes) else "note",
            )


CHECKS = (
    Check(
        "option-not-in-effect",
        ineffective_options,
        "Remove the option, or correct it: the kernel's own word stands beside it.",
        severities=("error", "warning"),
    ),
    Check(
        "option-not-visible",
        invisible_options,
        "Nothing, if the kernel's documentation says that the option has an effect: it was accepted at least.",
        severities=("note",),
    ),
    standing(
        "job-file-changed",
        job_file_changed,
        "Nothing, if the lines do what you mean; a size beside `jobs` is yours. "
        "`mountlab sweep import-job FILE` writes them down.",
        severities=("note", "warning"),
    ),
)

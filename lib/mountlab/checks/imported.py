"""Figures from logs that were made elsewhere, and what their logs tell of themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mountlab.checks import stated_facts
from mountlab.checks.base import Doubt, standing
from mountlab.core.box_facts import BoxFacts
from mountlab.core.box_facts.stated import WorkloadOfLogs
from mountlab.core.model import Sweep


def imported(sweep: Sweep, facts: BoxFacts) -> Iterator[Doubt]:
    """Logs that were made elsewhere.

    The figures are from logs made elsewhere, whose caches, device and order are not known. The message names the
    options that no log states.
    """
    if not sweep.imported:
        return
    stated = facts.surveyed.stated
    yield Doubt.of_run(
        f"these figures were read from logs; Mountlab did not measure them. {_options_known(stated)} The state of the "
        "caches, the device and the order of the trials are not known. Trials are paired by their number. Measure with "
        "Mountlab before you decide."
    )


def logs_differ(sweep: Sweep, facts: BoxFacts) -> Iterator[Doubt]:
    """Imported logs of one workload that do not all state the same options.

    The logs of one workload state different values of an option, or only some of them state it. The message lists each
    such option with its values, and the version of the tool where that differs.
    """
    stated = facts.surveyed.stated if sweep.imported else None
    if differing := stated_facts.differing(stated or {}):
        yield Doubt.of_run(
            "the logs of a workload do not all state the same options. They differ in this: "
            f"{'; '.join(differing)}. A figure or ratio of them is of all together: compare logs with the same "
            "options, or give each a workload of its own."
        )


def _options_known(stated: Mapping[str, WorkloadOfLogs] | None) -> str:
    if stated is None:
        return "Options are not known, and were not checked."
    alone = stated_facts.unconfirmed(stated)
    named = f"; no log states {', '.join(alone)}, which only the import says" if alone else ""
    return f"No log contradicts what the import says about its options{named}."


CHECKS = (
    standing("imported", imported, "Measure with Mountlab before you decide."),
    standing("logs-differ", logs_differ, "Compare logs with the same options, or give each a workload of its own."),
)

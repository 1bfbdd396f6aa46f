"""What a sweep file expects: a text, or claims about parts of the question, which are held against the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import get_args

from mountlab.checks.asked import PARTS, part_of
from mountlab.core.errors import ParameterError
from mountlab.core.findings import Claim
from mountlab.core.model import Design, Filesystem, Workload
from mountlab.programs import TOOLS
from mountlab.sweep.validated import check_choices

Claims = Mapping[str, Mapping[str, Claim]]
"""Part of the question to file system ('': all that are compared) to what is expected of it."""
SAYS = "says"
_CLAIMS: tuple[Claim, ...] = get_args(Claim)


def expectation_text(entry: str | Mapping[str, object]) -> str:
    """Return the words of an expectation."""
    return " ".join(str(entry if isinstance(entry, str) else entry.get(SAYS, "")).split())


def read_expectation(
    entry: str | Mapping[str, object],
    *,
    compared: Iterable[Filesystem],
    workloads: Iterable[Workload],
    metrics: Iterable[str],
    design: Design,
    where: str,
) -> Claims:
    """Return the claims of an expectation: `{says: in words, cold reads: faster, warm reads: {tmpfs: same}}`.

    A key is a part of the question (checks.asked.PARTS, or one that the sweep's `metrics` ask of a workload) or the
    name of a workload. Raises ParameterError for another key, for a bad claim, and for a file system that is
    not among those that are compared.
    """
    if isinstance(entry, str):
        return {}
    filesystems, wanted = {fs.name: fs for fs in compared}, list(metrics)
    parts, names = [*PARTS], list[str]()
    for workload in workloads:
        metrics_of = wanted or TOOLS[workload.tool].main_metrics(workload)
        parts += [part_of(workload, metric, design) for metric in metrics_of]
        names.append(workload.name)
    claims = {part: value for part, value in entry.items() if part != SAYS}
    check_choices(list(claims), dict.fromkeys((*parts, *names)), where, "part of the question")
    return {part: _claims(value, filesystems, f"{where}.{part}") for part, value in claims.items()}


def _claims(value: object, compared: Mapping[str, Filesystem], where: str) -> Mapping[str, Claim]:
    if not isinstance(value, Mapping):
        return {"": _claim(value, where)}
    check_choices([str(name) for name in value], compared, where, "compared file system")
    return {str(name): _claim(claim, f"{where}.{name}") for name, claim in value.items()}


def _claim(value: object, where: str) -> Claim:
    known_claim = next((claim for claim in _CLAIMS if claim == value), None)
    if known_claim is None:
        raise ParameterError("this is no claim", where=where, got=repr(value), allowed=", ".join(_CLAIMS))
    return known_claim

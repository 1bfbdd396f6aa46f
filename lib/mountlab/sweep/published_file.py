"""Figures that others have published, beside which ours are put."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import BaseModel, Field

from mountlab.core.errors import ParameterError
from mountlab.core.findings import Claim, PublishedFigure
from mountlab.core.metrics import METRICS
from mountlab.sweep.validated import AS_SHARE, File, check_choices, validated

SMALLEST_FIGURE, LARGEST_FIGURE = 1e-30, 1e30
"""Of a published figure: a ratio needs both sides above nothing, and finite."""


class PublishedRow(File):
    """One pair of published figures, `candidate_value` and `baseline_value`; or a `claim`, where there were none.

    A study that prints figures and concludes that they do not differ has both: ours is then held against `claim: same`.
    """

    what: str
    """What was compared, in a few words."""
    workload: str
    """The name of the workload in the sweep that is to be like it."""
    factors: dict[str, str] = Field(default_factory=dict)
    """The levels of that workload: `{bs: 4KiB}`."""
    baseline_factors: dict[str, str] = Field(default_factory=dict)
    """The levels of the baseline's workload, where it is another: `{fdatasync: "1"}`."""
    metric: str
    """One of the metrics."""
    label: str = ""
    """Which row of the metric it is, where there are several."""
    candidate: str
    """The name of the file system in the sweep."""
    baseline: str
    """What it was compared with."""
    candidate_value: Annotated[float, Field(ge=SMALLEST_FIGURE, le=LARGEST_FIGURE)] | None = None
    """The figure as published."""
    baseline_value: Annotated[float, Field(ge=SMALLEST_FIGURE, le=LARGEST_FIGURE)] | None = None
    """The figure as published."""
    unit: str | None = None
    """Of both figures, as published."""
    claim: Claim | None = None
    """What was concluded: where no figures were published, or that the two are the same."""
    within: Annotated[float, AS_SHARE, Field(gt=0, lt=1)] | None = None
    """Of the claim `same`: by how much the two may differ."""
    says: str = ""
    """The conclusion in the words of the study."""


class PublishedFile(File):
    """A file of params/published/."""

    sections: ClassVar[dict[str, type[BaseModel]]] = {"rows": PublishedRow}

    study: str
    """Who published it, and when."""
    source: str
    """Where: a title, an address."""
    rows: list[PublishedRow]
    """The pairs of figures."""


def parse_published(raw: Mapping[str, object], *, where: str) -> list[PublishedFigure]:
    """Return the figures of one file of params/published/."""
    file = validated(PublishedFile, raw, where)
    for row in file.rows:
        check_choices([row.metric], METRICS, f"{where}: {row.what}", "metric")
        _check_claim(row, f"{where}: {row.what}")
    return [
        PublishedFigure(study=file.study, source=file.source, **row.model_dump(exclude_none=True)) for row in file.rows
    ]


def kept_published(row: Mapping[str, object], where: str) -> PublishedFigure:
    """Return the published figure of a run.json, held against the types and ranges of a file. Raises ParameterError."""
    figures = {key: value for key, value in row.items() if key not in ("study", "source")}
    checked = validated(PublishedRow, figures, where, kept=True).model_dump(exclude_none=True)
    return PublishedFigure(study=str(row["study"]), source=str(row["source"]), **checked)


def _check_claim(row: PublishedRow, where: str) -> None:
    figures = [row.candidate_value, row.baseline_value, row.unit]
    given = sum(figure is not None for figure in figures)
    partly, neither = 0 < given < len(figures), not given and row.claim is None
    if partly or neither or (given and row.claim in ("faster", "slower")):
        raise ParameterError(
            "a row has published figures or a claim",
            where=where,
            got="some of the figures" if partly else "neither" if neither else "both",
            allowed="candidate_value, baseline_value and unit; or claim: faster, slower or same; both with claim: same",
        )
    if row.within is not None and row.claim != "same":
        raise ParameterError("only `claim: same` has a bound", where=f"{where}: within", got=f"claim: {row.claim}")

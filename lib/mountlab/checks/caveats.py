"""Caveats as readers meet them: those of one kind together, the gravest first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from mountlab.core.findings import Caveat, Severity
from mountlab.core.metrics import METRICS
from mountlab.core.names import spoken_code
from mountlab.core.numbers import counted, listed


def doubt_text(codes: Sequence[str]) -> str:
    """'noisy and too few (see the caveats)' for the codes of caveats."""
    return f"{listed([spoken_code(code) for code in codes])} (see the caveats)"


_CLAUSE_ENDS = (",", ":", ";", ".", "),")
_SENTENCE_END = re.compile(r"(?<=[a-z)%\"])\.(?= |$)|; |(?<=\d)\.(?= [A-Z])")


@dataclass(frozen=True)
class CaveatGroup:
    """The caveats of one code and severity."""

    code: str
    severity: Severity
    caveats: tuple[Caveat, ...]

    @property
    def heading(self) -> str:
        """'Cache served read (12 cells)'."""
        name = spoken_code(self.code).capitalize()
        subjects = {c.subject for c in self.caveats if c.subject}
        scope = self.caveats[0].scope.replace("filesystem", "file system")
        return f"{name} ({counted(len(subjects), scope)})" if subjects and scope != "run" else name

    @property
    def asked(self) -> bool:
        """Whether the sweep asks for what they note."""
        return self.caveats[0].asked

    @property
    def seen(self) -> str:
        """What was seen: the first sentence of the first message; '' where it is too long to stand in a line."""
        line = " ".join(self.caveats[0].message.split())
        sentence = _SENTENCE_END.split(line, maxsplit=1)[0].rstrip(".;:, ")
        return sentence if len(sentence) <= _LONGEST_SEEN else ""

    @property
    def differing(self) -> list[tuple[str, str]]:
        """Each subject with what its message says otherwise than the others: the clauses in which they differ."""
        words = [caveat.message.split() for caveat in self.caveats]
        start, end = _common(words), _common([each[::-1] for each in words])
        return [(caveat.subject, _clauses(own, start, end)) for caveat, own in zip(self.caveats, words, strict=True)]


def _common(texts: Sequence[Sequence[str]]) -> int:
    """How many words all texts have in common from their beginning on."""
    pairs = zip(*texts, strict=False)
    return len(list(takewhile(lambda own: len(set(own)) == 1, pairs)))


def _clauses(words: Sequence[str], start: int, end: int) -> str:
    """The words from the clause with the first that is not common, to the end of that with the last."""
    last = max(len(words) - end, start)
    first = next((at + 1 for at in range(start - 1, -1, -1) if words[at].endswith(_CLAUSE_ENDS)), 0)
    stop = next((at + 1 for at in range(max(last - 1, 0), len(words)) if words[at].endswith(_CLAUSE_ENDS)), len(words))
    return " ".join(words[first:stop]).rstrip(".,;:")


def grouped(caveats: Iterable[Caveat]) -> list[CaveatGroup]:
    """Caveats by severity (errors first), code and whether it was asked for, in the order in which they were raised."""
    rank = {"error": 0, "warning": 1, "note": 2}
    groups: dict[tuple[Severity, str, bool], list[Caveat]] = {}
    for caveat in caveats:
        groups.setdefault((caveat.severity, caveat.code, caveat.asked), []).append(caveat)
    ordered = sorted(groups.items(), key=lambda item: rank[item[0][0]])
    return [CaveatGroup(code, severity, tuple(members)) for (severity, code, _), members in ordered]


SEVERITY_WORDS: dict[Severity, str] = {"error": "Do not use", "warning": "Doubt", "note": "Note"}
"""What the reader should do with a figure that has a caveat."""


_TOLD_IN_LINE, _LONGEST_SEEN = 2, 90


def caveat_line(groups: Sequence[CaveatGroup]) -> str:
    """All groups in one line; of the first few, unless they are notes, also what was seen. Notes are counted only.

    'Do not use: Cache served (1 cell): the page cache answered. 9 notes.'
    """
    doubts = [group for group in groups if group.severity != "note"]
    lines: dict[Severity, list[str]] = {}
    for place, group in enumerate(doubts):
        line = f"{group.heading}: {group.seen}" if place < _TOLD_IN_LINE and group.seen else group.heading
        lines.setdefault(group.severity, []).append(line)
    told = [f"{SEVERITY_WORDS[severity]}: {_in_line(texts)}." for severity, texts in lines.items()]
    notes = len(groups) - len(doubts)
    return " ".join([*told, *([f"{counted(notes, 'note')}."] if notes else [])])


def _in_line(texts: Sequence[str]) -> str:
    """Set apart by commas, or by semicolons where one of them has a comma or a colon."""
    return ("; " if any(":" in text or "," in text for text in texts) else ", ").join(texts)


def doubts_by_cell(caveats: Iterable[Caveat], own_metrics: Iterable[str] = ()) -> dict[str, list[str]]:
    """Codes of the warnings and errors about each cell, by cell id and by doubt_key; notes do not weaken a number.
    `own_metrics`: those that the sweep defines."""
    metrics = (*METRICS, *own_metrics)
    doubts: dict[str, list[str]] = {}
    for caveat in caveats:
        if caveat.scope == "cell" and caveat.severity != "note":
            for key in (caveat.subject, *(doubt_key(caveat.subject, metric) for metric in metrics)):
                codes = doubts.setdefault(key, [])
                weakens = "\t" not in key or key.rpartition("\t")[2].startswith(caveat.metrics)
                codes.extend([caveat.code] if weakens and caveat.code not in codes else [])
    return doubts


def doubt_key(cell: str, metric: str) -> str:
    """The key of what weakens one metric of a cell, in what `doubts_by_cell` gives."""
    return f"{cell}\t{metric}"


def no_caveats(checks: Sequence[str]) -> str:
    """'No caveats: 23 checks passed'."""
    return f"No caveats: {counted(len(checks), 'check')} passed"

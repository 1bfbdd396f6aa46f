"""Caveats as readers meet them: those of one kind together, the gravest first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile

from mountlab.core.findings import Caveat, Severity
from mountlab.core.groups import by_key
from mountlab.core.metrics import METRICS
from mountlab.core.names import code_words
from mountlab.core.numbers import counted, listed


def doubt_text(codes: Sequence[str]) -> str:
    """'noisy and too few (see the caveats)' for the codes of caveats."""
    return f"{listed([code_words(code) for code in codes])} (see the caveats)"


_SENTENCE_END = re.compile(r"(?<=[a-z)%\"])\.(?= |$)|; |(?<=\d)\.(?= [A-Z])")


@dataclass(frozen=True)
class CaveatGroup:
    """The caveats of one code and severity."""

    code: str
    severity: Severity
    caveats: tuple[Caveat, ...]
    only_cell: bool = False
    """Whether the run has no other cell than theirs."""

    @property
    def heading(self) -> str:
        """'Cache served read (12 cells)'."""
        name = code_words(self.code).capitalize()
        subjects = {c.subject for c in self.caveats if c.subject}
        scope = self.caveats[0].scope.replace("filesystem", "file system")
        located = subjects and scope != "run" and not self.only_cell
        return f"{name} ({counted(len(subjects), scope)})" if located else name

    @property
    def asked(self) -> bool:
        """Whether the sweep asks for what they note."""
        return self.caveats[0].asked

    @property
    def first_sentence(self) -> str:
        """What was seen: the first sentence of the first message."""
        line = " ".join(self.caveats[0].message.split())
        return _SENTENCE_END.split(line, maxsplit=1)[0].rstrip(".;:, ")

    @property
    def seen(self) -> str:
        """The first sentence; '' where it is too long to stand in a line."""
        return self.first_sentence if len(self.first_sentence) <= _LONGEST_SEEN else ""

    @property
    def differing(self) -> list[tuple[str, str]]:
        """Each subject with what its message says otherwise than the others: figures with their units, mostly. Where
        that would not tell two messages apart, the messages."""
        messages = [" ".join(caveat.message.split()) for caveat in self.caveats]
        differing = _differing([message.split() for message in messages])
        whole = len(set(differing)) < len(set(messages))
        return [
            (caveat.subject, text) for caveat, text in zip(self.caveats, messages if whole else differing, strict=True)
        ]


_UNIT = re.compile(r"(?:[kMGTP]?i?B(?:/s)?|[µnm]?s|steps|IOPS|%)[,.;:)]*\Z")


def _differing(messages: Sequence[Sequence[str]]) -> list[str]:
    """Of each message the words that the others do not have at that place, runs of them set apart by dots."""
    first, *others = messages
    pairs = [_matched(first, other) for other in others]
    common = [word for word in range(len(first)) if all(word in pair for pair in pairs)]
    kept = [set(common), *({pair[word] for word in common} for pair in pairs)]
    return [_own_words(words, shared) for words, shared in zip(messages, kept, strict=True)]


def _matched(words: Sequence[str], others: Sequence[str]) -> dict[int, int]:
    """Place of a word to the place of the same one among the others, in the order of both."""
    blocks = SequenceMatcher(None, words, others, autojunk=False).get_matching_blocks()
    return {block.a + step: block.b + step for block in blocks for step in range(block.size)}


def _own_words(words: Sequence[str], common: Container[int]) -> str:
    """Return the words that are not common, with up to two plain ones before them; a unit stays with its figure."""
    runs: list[list[str]] = []
    for place, word in enumerate(words):
        own, before = place not in common, place > 0 and place - 1 not in common
        if own and not before:
            runs.append(_before(place, words, common))
        if own or (before and _UNIT.match(word)):
            runs[-1].append(word.lstrip("("))
    return " · ".join(" ".join(run).strip(" .,;:()") for run in runs)


def _before(end: int, words: Sequence[str], common: Container[int]) -> list[str]:
    """'up to', 'sloped by': what a figure is, by the words that stand before it in every message."""
    nearest = range(end - 1, max(end - 3, -1), -1)
    plain = takewhile(lambda place: place in common and words[place].isalpha(), nearest)
    return [words[place] for place in sorted(plain)]


def grouped(caveats: Iterable[Caveat], *, only_cell: bool = False) -> list[CaveatGroup]:
    """Return caveats by severity (errors first), code and whether it was asked for, in the order in which they were
    raised. `only_cell`: they are those of a run with one cell."""
    rank = {"error": 0, "warning": 1, "note": 2}
    groups = by_key(((caveat.severity, caveat.code, caveat.asked), caveat) for caveat in caveats)
    ordered = sorted(groups.items(), key=lambda item: rank[item[0][0]])
    return [CaveatGroup(code, severity, tuple(members), only_cell) for (severity, code, _), members in ordered]


SEVERITY_WORDS: dict[Severity, str] = {"error": "Do not use", "warning": "Doubt", "note": "Note"}
"""What the reader should do with a figure that has a caveat."""


def caveat_counts(codes: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Return how many kinds of caveats there are of each severity, the worst first. `codes`: severity and code of each
    caveat. A code counts once however many cells it is about."""
    counts = Counter(severity for severity, _ in set(codes))
    return {severity: counts[severity] for severity in SEVERITY_WORDS}


_SHOWN_IN_LINE, _LONGEST_SEEN = 1, 90


def caveat_line(groups: Sequence[CaveatGroup]) -> str:
    """Return all groups in one line; of the first, unless it is a note, also what was seen. Notes are counted only.

    'Do not use: Cache served (1 cell): the page cache answered. 9 notes.'
    """
    doubts = [group for group in groups if group.severity != "note"]
    lines = by_key(
        (group.severity, f"{group.heading}: {group.seen}" if place < _SHOWN_IN_LINE and group.seen else group.heading)
        for place, group in enumerate(doubts)
    )
    differing = [f"{SEVERITY_WORDS[severity]}: {_in_line(texts)}." for severity, texts in lines.items()]
    notes = caveat_counts((group.severity, group.code) for group in groups)["note"]
    return " ".join([*differing, *([f"{counted(notes, 'note')}."] if notes else [])])


def _in_line(texts: Sequence[str]) -> str:
    """Set apart by commas, or by semicolons where one of them has a comma or a colon."""
    return ("; " if any(":" in text or "," in text for text in texts) else ", ").join(texts)


def doubts_by_cell(caveats: Iterable[Caveat], own_metrics: Iterable[str] = ()) -> dict[str, list[str]]:
    """Return codes of the warnings and errors about each cell, by cell id and by doubt_key; notes do not weaken a
    number. `own_metrics`: those that the sweep defines."""
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
    """Return the key of what weakens one metric of a cell, in what `doubts_by_cell` gives."""
    return f"{cell}\t{metric}"


def no_caveats(checks: Sequence[str]) -> str:
    """'No caveats: 23 checks passed'."""
    return f"No caveats: {counted(len(checks), 'check')} passed"

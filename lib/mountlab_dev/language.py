"""Find words and sentences that a reader must read twice: inverted clauses, archaic words, long sentences.

Pure: text in, findings out. `python -m mountlab_dev language` prints them, and
tests/project/test_language.py allows none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePosixPath

LONGEST_SENTENCE = 35
"""Words. A longer sentence of a page of documentation is a finding."""


@dataclass(frozen=True)
class Finding:
    """One place to rewrite: its line (from 1), the words, and what to write instead."""

    line: int
    words: str
    advice: str

    def __str__(self) -> str:
        return f"{self.line}: “{self.words}”: {self.advice}"


_QUANTIFIED = "(?P<standard>(?:one|each|all|none|both|some|most|half|many|any|two|three|few|part|either|neither) )?"
"""Before "of which" these are standard English: such a hit is no finding."""

PHRASES: Mapping[str, str] = {
    # single words
    "told": "say who reports what: stated, reported, shown, known, distinguished",
    "nobody": "name who or what: not used, no process, unknown, no user",
    "anew": "again, new, or a verb: rebuild, reconnect, redraw",
    "heed(?:s|ed|ing)?": "ignored, obeyed, takes effect",
    "whoever": "name the reader: a user, a reader, the caller",
    # relative clauses in reverse order
    f"{_QUANTIFIED}of which": "begin with the thing: whose, that has, with",
    "of whose": "begin with the thing: its, their",
    "had of": "say who measured or got what",
    "(?:says?|said) of": "reports, states, shows",
    r"what (?:is|was|are|were|has been|had been) \w+ (?:is|was|are|were)": "subject, verb, object",
    r"what(?:ever)? it (?:\w+ or )?(?:makes|changes|does|has) it": "subject, verb, object",
    "(?:is|are|was|were|to be|can be|be) had(?! to)": "available, exists, obtained",
    "gone on with": "resumed, continued",
    "kn(?:ow|ows|ew) no": "does not know, has no",
    r"(?:has|have) not (?:our|its|the|a|an|all|any)": "lacks, does not have",
    "neither way": "inconclusive",
    "that (?:is|are) none": "name what is missing",
    "of the like": "name the thing, or leave it out",
    "allow(?:s|ed)? for having": "corrects for",
    "takes and does not": "ignores",
    "so often": "say how often: retries, the number of times",
    # the left column of LANGUAGE.md that the above does not find
    "all of this is doubtful": "say what varies, and by how much",
    "how the trials lie": "Distribution of trials",
    "figures of each metric": "Results by metric",
    "nothing to show": "Sections without data",
    "or fewer would decide": "up to N blocks needed",
    r"0\.\d+ times as \w+": "at about a third of the other's speed (0.34)",
    "interval meets its own": "not distinguishable from",
    "having looked": "Stopping as soon as results look good ...",
    "made again of": "retried",
}
"""What is not written (regular expressions, spaces standing for any gap) to what to write instead."""

_LETTER = r"A-Za-zÀ-ÿ0-9"
_GAP = r"""(?:[\s#>*"'/\\]|\bf(?=["']))+"""
"""What may stand between two words of a phrase: a line break, its comment sign, the seam of two strings."""


def _compiled(phrase: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![{_LETTER}])(?:{phrase.replace(' ', _GAP)})(?![{_LETTER}])", re.IGNORECASE)


def _key(phrase: str) -> str:
    """Return the longest word that every hit of a phrase holds: most texts lack it, and need no search."""
    outside = phrase
    while "(" in outside:
        outside = re.sub(r"\([^()]*\)\??", " ", outside)
    return max(re.findall(r"(?<!\\)\b[a-z]+", outside), key=len, default="")


_PATTERNS = [(_key(phrase), _compiled(phrase), advice) for phrase, advice in PHRASES.items()]


def phrases(text: str) -> list[Finding]:
    """Return every listed phrase in a text, by line; names in code count as the words they are made of."""
    lowered = text.lower()
    found = [
        Finding(text.count("\n", 0, hit.start()) + 1, " ".join(re.split(_GAP, hit.group())), advice)
        for key, pattern, advice in _PATTERNS
        if key in lowered
        for hit in pattern.finditer(text)
        if not hit.groupdict().get("standard")
    ]
    return sorted(found, key=lambda each: each.line)


# ── Markdown ─────────────────────────────────────────────────────────────────────────────────────────────────────────

_INLINE_CODE = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"!?\[([^]]*)\]\([^)]*\)")
_LIST_OF_NAMES = re.compile(r"`x`(?:,?(?:\s+(?:and|or))?\s+`x`)+")
"""Names in a row are looked up, not read."""
_SENTENCE_END = re.compile(r"(?<=[.!?])[)*_”\"]*\s+(?=[(*_“\"\[]*[A-Za-z0-9`])")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+|\s*>\s?")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|vs|cf|etc|Dr|No|Fig)\.$")


def _same_lines(replacement: str) -> Callable[[re.Match[str]], str]:
    return lambda hit: replacement + "\n" * hit.group().count("\n")


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of each paragraph, list item, heading and table cell; fenced code is left out."""
    start, kept, fence = 1, list[str](), ""
    for number, line in enumerate([*text.split("\n"), ""], start=1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        fenced = bool(fence)
        if mark and (not fence or line.strip() == fence):
            fence = "" if fence else mark.group(1)
        alone = line.lstrip().startswith(("#", "|", "<!--"))
        ends = mark or fenced or alone or not line.strip() or _ITEM.match(line)
        if ends and kept:
            yield start, "\n".join(kept)
            kept = []
        if mark or fenced or not line.strip():
            continue
        if alone:
            yield from ((number, cell) for cell in line.split("|") if cell.strip())
        else:
            start = start if kept else number
            kept.append(_ITEM.sub("", line, count=1) if ends else line)


def _sentences(paragraph: str) -> Iterator[tuple[int, str]]:
    """Yield (lines below the first, text) of each sentence of a paragraph."""
    begin = 0
    for end in chain((hit for hit in _SENTENCE_END.finditer(paragraph)), (None,)):
        text = paragraph[begin : end.start() if end else len(paragraph)]
        if end and _ABBREVIATION.search(text):
            continue
        yield paragraph.count("\n", 0, begin), text
        begin = end.end() if end else begin


def long_sentences(markdown: str, longest: int = LONGEST_SENTENCE) -> list[Finding]:
    """Return the sentences of a page with too many words; code counts as one word, a link as its text."""
    plain = _LINK.sub(lambda hit: hit.group(1), _INLINE_CODE.sub(_same_lines("`x`"), markdown))
    plain = _LIST_OF_NAMES.sub(_same_lines("`x`"), plain)
    found = []
    for line, paragraph in _paragraphs(plain):
        for below, sentence in _sentences(paragraph):
            words = [word for word in sentence.split() if re.search(rf"[{_LETTER}]", word)]
            if len(words) > longest:
                advice = f"{len(words)} words, at most {longest}: make two sentences of it"
                found.append(Finding(line + below, " ".join(words[:6]) + " ...", advice))
    return found


def in_markdown(text: str) -> list[Finding]:
    """Return the findings in a page: phrases outside of inline code and link targets, and long sentences."""
    prose = _LINK.sub(lambda hit: hit.group(1), _INLINE_CODE.sub(_same_lines("`x`"), text))
    return sorted([*phrases(prose), *long_sentences(text)], key=lambda each: each.line)


def in_notebook(text: str) -> list[Finding]:
    """Return the findings in the cells of a notebook; lines count through the sources of all cells."""
    found, above = list[Finding](), 0
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        judged = in_markdown(source) if cell["cell_type"] == "markdown" else phrases(source)
        found += [Finding(above + each.line, each.words, each.advice) for each in judged]
        above += source.count("\n") + 1
    return found


READERS: Mapping[str, Callable[[str], list[Finding]]] = {
    **dict.fromkeys((".py", ".pyi", ".sh", ".j2", ".html", ".js", ".css", ".yml", ".yaml", ".conf"), phrases),
    ".md": in_markdown,
    ".ipynb": in_notebook,
}
"""What judges a file, by the ending of its name."""


def findings(name: str, text: str) -> list[Finding]:
    """Return the findings in one file; none in a kind of file that holds no prose."""
    path = PurePosixPath(name)
    reader = phrases if path.name == "Makefile" else READERS.get(path.suffix)
    return reader(text) if reader else []

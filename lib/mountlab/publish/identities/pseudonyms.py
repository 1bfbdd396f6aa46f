"""Replacing: the same placeholder for the same value in every file, and a count of what was replaced."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import Any

from mountlab.core import run_ids
from mountlab.publish.identities import contexts
from mountlab.publish.identities.known import Identity
from mountlab.publish.identities.names import LONG, OWN_BOXES, PUBLIC_HOSTS, PUBLIC_USERS, distinctive, neutral
from mountlab.publish.identities.patterns import BEFORE, NO_UUID, PATTERNS, Pattern

KINDS = {
    "host": "host names", "domain": "domains", "address": "network addresses", "mac": "hardware addresses",
    "serial": "serial numbers", "wwn": "world-wide names", "device": "stable names of devices", "uuid": "UUIDs",
    "user": "user names", "place": "names of directories", "box": "names of boxes",
    "key": "keys and their fingerprints", "machine": "ids of machines", "container": "ids of containers",
}  # fmt: skip
"""Every kind of identity, as the bundle's list of what was replaced calls it."""

_EXACT = {"key", "place", "wwn"}
"""Kinds whose values are other ones in other cases of their letters, or have no letters that are written otherwise."""
_JOINED = {"host", "domain", "box", "user", "serial", "device"}
"""Kinds of names that file names, LVM and udev write with other marks between their parts: 'my_box' for 'my-box'."""
_PUBLIC: Mapping[str, frozenset[str]] = {"user": PUBLIC_USERS, "host": PUBLIC_HOSTS, "box": OWN_BOXES}
_AFTER = r"(?![A-Za-z0-9])"
_SHORT = 200
_STRUCTURED = {
    "hostname": "host", "host": "host", "server": "host", "user": "user", "serial": "serial", "box": "box",
    "boxes": "box", "client": "box", "clients": "box",
}  # fmt: skip
"""Keys of JSON and columns of tables whose texts are names, and so are the keys of a mapping below one."""
_LITERAL_WORDS = """
    versions programs kernel os machine cpu_model git_commit mountlab_version source kernel_filesystems tool
    plugins status schema metric unit options firmware kernel_build cpu_microcode machine_model disk_settings
"""
_LITERAL = frozenset(_LITERAL_WORDS.split())
"""Keys of run.json whose values hold versions, or words of others: only known values are replaced."""


@dataclass(frozen=True)
class Found:
    """An identity in a text, and where it begins."""

    kind: str
    value: str
    start: int


class Pseudonyms:
    """Names in the place of identities: `host-1`, `address-2`, numbered in the order in which they were first seen.

    Known identities are replaced wherever they stand, in the forms that JSON, HTML, URLs and /proc give them; others
    are found by their form. A name that is an ordinary word is replaced only where it stands as a name.
    """

    def __init__(
        self, identities: Iterable[Identity], runs: Mapping[str, str] | None = None, clients: Iterable[str] = ()
    ) -> None:
        """`runs`: the id of each run, which names its box, to that name. `clients`: other boxes that took part in
        runs, whose names stand behind these ids, and are labels of their figures."""
        self._clients = frozenset(clients)
        self._times = Counter[str]()
        """How often something of each kind was replaced."""
        self._word_kinds: set[str] = set()
        """Kinds with a name that is an ordinary word."""
        self._placeholders: dict[tuple[str, str], str] = {}
        self._forms: dict[str, tuple[str, str]] = {}
        self._plain: list[str] = []
        self._alternatives: dict[str, list[str]] = {"inside": [], "word": [], "exact": [], "path": []}
        self._ordinary: dict[tuple[str, str], Pattern] = {}
        """Kind and word to where it stands as a name."""
        self._nameless = set[tuple[str, bool]]()
        """Short texts without a name, and whether patterns were looked for: commands repeat most of their words."""
        listed = list(identities)
        self._taken = {identity.value for identity in listed if _is_placeholder(identity.value)}
        for identity in listed:
            self._add(identity)
        self._all_forms = self._compile()
        """One expression for every form of every known value."""
        for run_id, box in (runs or {}).items():
            name = self.text(run_ids.with_box(run_id, box, self.placeholder("box", box)))
            ids = {run_id: name}
            for client in sorted(self._clients):
                ids[run_ids.of_client(run_id, client)] = run_ids.of_client(name, self.placeholder("box", client))
            for old, new in ids.items():
                if old != new:
                    self._search_for("box", old, new, "inside")
        self._times.clear()
        self._nameless.clear()
        self._all_forms = self._compile()

    # --- what is looked for -------------------------------------------------------------------------------------------

    def _add(self, identity: Identity) -> None:
        kind, value = identity.kind, identity.value
        if self._stays(kind, value):
            return
        if kind == "place":
            self._add_path(value)
            return
        name = self.placeholder(kind, identity.same_as or value)
        self._placeholders[kind, _key(kind, value)] = name
        if not distinctive(value):
            self._word_kinds |= {kind}
            if kind in contexts.KINDS:
                self._ordinary[kind, value.lower()] = contexts.as_name(kind, value)
            return
        if kind == "domain":
            self._plain.append(value)
        where = "inside" if len(value) >= LONG and not value.isalpha() else "word"
        self._search_for(kind, value, name, "exact" if kind in _EXACT else where)

    def _add_path(self, path: str) -> None:
        """Add a path, and every directory above it whose name tells something."""
        parts = path.strip("/").split("/")
        replaced = [self._part(part, above) for part, above in zip(parts, ["", *parts], strict=False)]
        for count in range(1, len(parts) + 1):
            if parts[:count] != replaced[:count]:
                before, after = ("/" + "/".join(names[:count]) for names in (parts, replaced))
                self._search_for("place", before, after, "path")

    def _part(self, part: str, above: str) -> str:
        """Return one directory's name; below /home it is a user."""
        if above in ("home", "Users") and part not in PUBLIC_USERS:
            return self.placeholder("user", part)
        for kind in ("user", "host", "box"):
            if name := self._placeholders.get((kind, _key(kind, part))):
                return name
        if neutral(part):
            return part
        head, dash, rest = part.partition("-")
        if head == "mountlab":
            return head + dash + (rest and self._part(rest, ""))
        return part if re.fullmatch(r"place-\d+|user-\d+", part) else self.placeholder("place", part)

    def _search_for(self, kind: str, value: str, name: str, where: str) -> None:
        encoded = {_in_url(value, slash): _in_url(name, slash) for slash in ("%2F", "%2f")} if where == "path" else {}
        for form, replacement in {**dict.fromkeys(_forms(value), name), **encoded}.items():
            self._forms[form if where in ("exact", "path") else form.lower()] = (kind, replacement)
            if kind in _JOINED and where in ("inside", "word"):
                self._forms.setdefault(_parts_of(form), (kind, replacement))
                self._alternatives[where].append(_joined(form))
            else:
                self._alternatives[where].append(re.escape(form))

    def _compile(self) -> re.Pattern[str] | None:
        """Return one expression for all that is known; longer values first, since a shorter one may be their
        beginning."""
        self._pieces = {
            max(re.findall(r"[^\W_]+", form.lower()) or [form], key=len) for form in (*self._forms, *self._plain)
        }
        self._alternatives["domain"] = [rf"(?:[A-Za-z0-9-]+\.)+{re.escape(domain)}" for domain in self._plain]
        word = (f"{BEFORE}(?i:", _AFTER, ")")
        frames = {
            "inside": ("(?i:", "", ")"), "domain": word, "path": ("(?:", "(?![A-Za-z0-9_-])", ")"), "word": word,
            "exact": (f"{BEFORE}(?:", _AFTER, ")"),
        }  # fmt: skip
        parts = [
            start + "|".join(sorted(self._alternatives[where], key=len, reverse=True)) + end + after
            for where, (start, after, end) in frames.items()
            if self._alternatives.get(where)
        ]
        return re.compile("|".join(parts)) if parts else None

    # --- replacing ----------------------------------------------------------------------------------------------------

    def placeholder(self, kind: str, value: str) -> str:
        """Return what stands for a value of a kind, a new one for a new value. A name that everybody has stays, and so
        does a placeholder: of a run that was made from a published sweep."""
        if self._stays(kind, value):
            return value
        key = (kind, _key(kind, value))
        if key not in self._placeholders:
            used = self._taken | {name for (of, _), name in self._placeholders.items() if of == kind}
            numbered = (f"{NO_UUID}{n:012d}" if kind == "uuid" else f"{kind}-{n}" for n in itertools.count(1))
            self._placeholders[key] = next(name for name in numbered if name not in used)
        return self._placeholders[key]

    def text(self, text: str, *, patterns: bool = True) -> str:
        """Return a text with every identity replaced; without `patterns` only those that are known."""
        if (text, patterns) not in self._nameless:
            replaced = self._replaced(text, patterns=patterns)
            if replaced != text or len(text) > _SHORT:
                return replaced
            self._nameless.add((text, patterns))
        return text

    def _replaced(self, text: str, *, patterns: bool) -> str:
        lowered = text.lower()
        if self._all_forms and any(piece in lowered for piece in self._pieces):
            text = self._all_forms.sub(self._replacement, text)
        for (_, word), pattern in self._ordinary.items():
            text = self._replace_by(pattern, text) if word in lowered else text
        for pattern in PATTERNS if patterns else ():
            text = self._replace_by(pattern, text)
        return text

    def _replacement(self, match: re.Match[str]) -> str:
        kind, name = self._resolve(match[0])
        self._times[kind] += 1
        return name or self.placeholder("host", match[0])

    def _resolve(self, written: str) -> tuple[str, str]:
        """Return kind and placeholder of a known value; of a machine of a known domain, which may be new, no
        placeholder."""
        forms = (written, written.lower(), _parts_of(written))
        return next((self._forms[form] for form in forms if form in self._forms), ("host", ""))

    def _stays(self, kind: str, value: str) -> bool:
        """Return whether what has the form of an identity is none: a placeholder, or a name that everybody has."""
        return _is_placeholder(value) or value in _PUBLIC.get(kind, ())

    def _replace_by(self, pattern: Pattern, text: str) -> str:
        if not pattern.may_match(text):
            return text
        done, parts = 0, []
        for match in pattern.find(text):
            value = match["value"]
            if self._stays(pattern.kind, value):
                continue
            parts += [text[done : match.start("value")], self.placeholder(pattern.kind, value)]
            done = match.end("value")
            self._times[pattern.kind] += 1
        return "".join([*parts, text[done:]]) if parts else text

    def expressions(self) -> list[re.Pattern[str]]:
        """Return expressions one of which matches in each text that holds an identity."""
        known = [self._all_forms] if self._all_forms else []
        return [*known, *(pattern.for_sieve for pattern in (*self._ordinary.values(), *PATTERNS))]

    def data(self, data: bytes) -> bytes:
        """Return the content of a file, in whatever encoding: what is no UTF-8 stays byte for byte."""
        return self.text(data.decode(errors="surrogateescape")).encode(errors="surrogateescape")

    def value(self, value: Any, key: str = "", *, under: str = "", literal: bool = False) -> Any:
        """Return JSON with its texts replaced, keys too. `key`: the key of the value, `under`: the key of the mapping
        around it; some keys tell what a value is."""
        literal = literal or key in _LITERAL
        if isinstance(value, str):
            is_box = (key == "name" and under == "box") or (key == "label" and value in self._clients)
            kind = _STRUCTURED.get(key, "box" if is_box else "")
            return self._placeholder_of(kind, value) or self.text(value, patterns=not literal)
        if isinstance(value, Mapping):
            kind = _STRUCTURED.get(key, "")
            replaced = {}
            for name, inner in value.items():
                new_name = self._placeholder_of(kind, name) or self.text(name, patterns=not literal)
                replaced[new_name] = self.value(inner, name, under=key, literal=literal)
            return replaced
        return [self.value(inner, key, literal=literal) for inner in value] if isinstance(value, list) else value

    def _placeholder_of(self, kind: str, value: str) -> str | None:
        """Return the placeholder of a value that stands where a name of this kind does."""
        name = self._placeholders.get((kind, _key(kind, value))) if kind else None
        self._times[kind] += name is not None
        return name

    def rows(self, table: str) -> str:
        """Return a table as CSV, each cell replaced as the value of its column."""
        replace = cache(self.value)  # few different cells, many times
        head, *rows = csv.reader(io.StringIO(table)) if table else [[]]
        sink = io.StringIO()
        replaced = [[replace(cell, column) for cell, column in zip(row, head, strict=True)] for row in rows]
        csv.writer(sink, lineterminator="\n").writerows([head, *replaced])
        return sink.getvalue()

    def left(self, text: str, *, patterns: bool = True) -> list[Found]:
        """Return the identities that a text still holds, which it never does after it was replaced."""
        lowered, left = text.lower(), list[Found]()
        if self._all_forms and any(piece in lowered for piece in self._pieces):
            for match in self._all_forms.finditer(text):
                left.append(Found(self._resolve(match[0])[0], match[0], match.start()))
        ordinary = (pattern for (_, word), pattern in self._ordinary.items() if word in lowered)
        for pattern in filter(lambda form: form.may_match(text), (*ordinary, *(PATTERNS if patterns else ()))):
            for match in pattern.find(text):
                if not self._stays(pattern.kind, match["value"]):
                    left.append(Found(pattern.kind, match["value"], match.start("value")))
        return left

    def kind_of(self, word: str) -> str:
        """Return the kind of an ordinary word that is a name; '' for another one."""
        return next((kind for kind, name in self._ordinary if name == word.lower()), "")

    def ordinary(self) -> tuple[str, ...]:
        """Return kinds of names with one that is an ordinary word."""
        return tuple(kind for kind in KINDS if kind in self._word_kinds)

    def summary(self) -> list[dict[str, Any]]:
        """Return what was replaced: kind, how many different ones, how often. Never a value."""
        names: dict[str, set[str]] = {}
        for (kind, _), name in self._placeholders.items():
            names.setdefault(kind, set()).add(name)
        return [
            {"kind": KINDS[kind], "different": len(names[kind]), "times": self._times[kind]}
            for kind in KINDS
            if self._times[kind] and kind in names
        ]


def _key(kind: str, value: str) -> str:
    if kind == "mac":
        return re.sub(r"[:.-]", "", value.lower())
    return value if kind in _EXACT else value.lower()


def _is_placeholder(value: str) -> bool:
    return re.fullmatch(rf"(?:{'|'.join(KINDS)})-\d+", value) is not None or value.startswith(NO_UUID)


def _forms(value: str) -> list[str]:
    """Return a value as it stands in plain text, in JSON, HTML, URLs, mountinfo and names made by udev, systemd and
    LVM."""
    octal = "".join(f"\\{ord(char):03o}" if char in " \t\n\\" else char for char in value)
    udev = "".join(char if char.isalnum() or char in "#+-.:=@_/" else f"\\x{ord(char):02x}" for char in value)
    forms = [value, json.dumps(value)[1:-1], octal, octal.replace("\\", "\\\\"), escape(value), _in_url(value), udev]
    forms.append(value.replace("-", "--"))  # LVM: /dev/mapper/nova--bench--vg-root
    return list(dict.fromkeys(forms))


def _in_url(value: str, slash: str = "/") -> str:
    encoded = re.sub(r"[^A-Za-z0-9_.~/-]", lambda char: "".join(f"%{byte:02X}" for byte in char[0].encode()), value)
    return encoded.replace("/", slash)


def _parts_of(value: str) -> str:
    return re.sub(r"[-_.]", "", value.lower())


def _joined(form: str) -> str:
    """Return the expression of a name with any marks between its parts; none at all where it is long."""
    parts = re.split(r"[-_.]+", form)
    least = 0 if len("".join(parts)) >= LONG else 1
    return f"[-_.]{{{least},2}}".join(map(re.escape, parts))

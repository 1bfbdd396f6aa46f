"""The last search of a finished bundle: no identity that should be gone, and no secret, in any file and encoding."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mountlab.core.checksums import MANIFEST
from mountlab.core.errors import StoreError
from mountlab.publish import reproduce
from mountlab.publish.bundle import DESCRIPTION, ENTRY
from mountlab.publish.decoded import COMPRESSED, DecodedText, decoded_texts, unpacked
from mountlab.publish.identities.pages import texts_of_notebook, texts_of_page
from mountlab.publish.identities.pseudonyms import KINDS, Found, Pseudonyms
from mountlab.publish.secret_forms import expressions, secrets_in
from mountlab.publish.sieve import Sieve

_SAYS_AUTHORS = ("index.html", "README.md", "LICENSE", "CITATION.cff", "ro-crate-metadata.json", DESCRIPTION, ENTRY)
"""Files in which the author and the title stand, which are as they were given."""
_SAME_IN_EVERY_BUNDLE = ("environment/", "notebooks/", MANIFEST)
_LEAST_UNCLEAR = 5
"""Letters of a name that checksums, when they are decoded, do not have by chance."""


@dataclass(frozen=True, order=True)
class Leak:
    """Something that must not be published, and its place; never the value itself."""

    file: str
    line: int
    """0: the name of the file, or a place in a page that has no line of its own."""
    what: str
    fingerprint: str
    """By which the one who publishes lets it pass: a secret or an encoded name wherever it is, a name in this file."""
    is_secret: bool

    @property
    def place(self) -> str:
        return f"{self.file}, line {self.line}" if self.line else self.file

    def __str__(self) -> str:
        return f"{self.place}: {self.what} ({self.fingerprint})"


@dataclass(frozen=True)
class _Piece:
    """A text that is searched, decoded, and the file in which it stands."""

    file: str
    decoded: DecodedText
    whole: str = ""
    """The whole file, where its lines are not those of the text."""
    is_name: bool = False
    """Whether it is the file's name, and not its content."""


def search(files: Mapping[str, Path], names: Pseudonyms | None, given: Sequence[str]) -> Iterator[Leak]:
    """Yield every leak of a bundle, once for each line. `given`: title and authors, which are as they are wished.

    Without `names` identities are kept, and only secrets are searched for.
    """
    wished, leaks = " ".join(given).lower(), list[Leak]()
    sieve = Sieve((*expressions(), *(names.expressions() if names else ())))
    pieces = _pieces(files, with_names=names is not None)
    for piece, may_leak in sieve.sift(pieces, lambda piece: piece.decoded.text.encode(errors="surrogatepass")):
        if may_leak or piece.decoded.is_word:
            leaks += _in_piece(piece, names, wished if piece.file in _SAYS_AUTHORS else "")
    yield from dict.fromkeys(leaks)


def _pieces(files: Mapping[str, Path], *, with_names: bool) -> Iterator[_Piece]:
    decoded_words = set[tuple[str, str]]()
    for name, path in files.items():
        if name.startswith(_SAME_IN_EVERY_BUNDLE):
            continue
        of_run = name if "/raw/" in name else name.rpartition("/")[0]  # other last parts are the same in every bundle
        for decoded in decoded_texts(of_run, decoded_words) if with_names else ():
            yield _Piece(name, decoded, is_name=True)
        for text, whole in _texts(name, path):
            yield from (_Piece(name, decoded, whole) for decoded in decoded_texts(text, decoded_words))


def _in_piece(piece: _Piece, names: Pseudonyms | None, allowed: str) -> Iterator[Leak]:
    name, decoded, whole = piece.file, piece.decoded, piece.whole
    if piece.is_name:
        yield from (_identity(name, 0, decoded, identity) for identity in (names.left(decoded.text) if names else ()))
        return
    for secret in secrets_in(decoded.text) if decoded.is_clear else ():
        line = _line(decoded, secret.start, secret.value, whole)
        yield Leak(name, line, _encoded(secret.kind, decoded), _fingerprint(secret.kind, secret.value), True)
    for identity in _identities(decoded, names, is_raw="/raw/" in name) if names else ():
        if identity.value.lower() not in allowed:
            yield _identity(name, _line(decoded, identity.start, identity.value, whole), decoded, identity)


def _identities(decoded: DecodedText, names: Pseudonyms, *, is_raw: bool) -> Iterator[Found]:
    """Yield what is left in a text: known values, in raw output and in decoded words also what has the form of an
    address or an id, and a decoded word that is a name as a whole. By chance only short names are in a word."""
    patterns = is_raw or (decoded.is_word and decoded.is_clear)
    for identity in names.left(decoded.text, patterns=patterns):
        if decoded.is_clear or len(identity.value) >= _LEAST_UNCLEAR:
            yield identity
    if decoded.is_word and (kind := names.kind_of(decoded.text.strip())):
        yield Found(kind, decoded.text.strip(), 0)


def _identity(name: str, line: int, decoded: DecodedText, identity: Found) -> Leak:
    mark = _fingerprint(identity.kind, identity.value.lower(), *(() if decoded.is_word else (name,)))
    return Leak(name, line, _encoded(KINDS[identity.kind], decoded), mark, is_secret=False)


def _encoded(what: str, decoded: DecodedText) -> str:
    return " in ".join((what, *reversed(decoded.how)))


def _fingerprint(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()[:12]


def _line(decoded: DecodedText, start: int, value: str, whole: str) -> int:
    """Return the line of the file; of a page, whose parts stand elsewhere in it, that which has the value first."""
    if not whole:
        return decoded.line_of(start)
    place = whole.find(value)
    return whole.count("\n", 0, place) + 1 if place >= 0 else 0


def _texts(name: str, path: Path) -> Iterator[tuple[str, str]]:
    """Yield what a file states about the run, without the words of its format, and the whole of it where its lines are
    others; what is in a compressed file."""
    if path.suffix == ".parquet":
        yield reproduce.parquet_text(path).partition("\n")[2], ""
        return
    data = path.read_bytes()
    pieces = [data]
    if data.startswith(COMPRESSED):
        with suppress(StoreError):  # it only begins so, and is searched as it is
            pieces = list(unpacked(data, name))
    stated = None if "/raw/" in name else _STATED.get(path.suffix)
    for piece in pieces:
        text = piece.decode(errors="replace")
        yield (stated(text), text) if stated else (text, "")


_STATED: Mapping[str, Callable[[str], str]] = {
    ".html": texts_of_page, ".ipynb": texts_of_notebook, ".csv": lambda table: table.partition("\n")[2],
}  # fmt: skip
"""What a file of ours states about the run, by its ending."""

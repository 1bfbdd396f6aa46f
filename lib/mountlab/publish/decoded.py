"""What a file says when it is decoded: without escapes of URLs, HTML and JSON, from Base64, hexadecimal and gzip."""

from __future__ import annotations

import base64
import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from html import unescape
from typing import IO
from urllib.parse import unquote

import pyarrow as pa

from mountlab.core.disk import LARGEST_FILE
from mountlab.core.errors import StoreError

DEEPEST = 3
"""So many encodings, one in the other, are undone."""


@dataclass(frozen=True)
class DecodedText:
    """A text, the encodings that were undone for it, and the line of the file in which it begins."""

    text: str
    how: tuple[str, ...] = ()
    line: int = 1
    is_word: bool = False
    """Whether it is all that one word of the file holds, and not the file's own lines."""
    is_clear: bool = True
    """Whether it is text beyond doubt: a checksum may be decoded, too, and then has letters by chance."""

    def line_of(self, start: int) -> int:
        """Return the line of the file in which an offset of the text lies."""
        return self.line if self.is_word else self.line + self.text.count("\n", 0, start)


def decoded_texts(text: str | DecodedText, done: set[tuple[str, str]]) -> Iterator[DecodedText]:
    """Yield a text, and all that can be decoded of it. `done`: words that were decoded in other files already and need
    not be again, by their encoding; is added to."""
    decoded = DecodedText(text) if isinstance(text, str) else text
    yield decoded
    if len(decoded.how) < DEEPEST and decoded.is_clear:
        for inner in (*_unescaped(decoded), *_words(decoded, done)):
            yield from decoded_texts(inner, done)


# --- escapes: of a whole text -----------------------------------------------------------------------------------------

_ESCAPE = re.compile(
    r"\\(?:u(?P<u>[0-9a-fA-F]{4})|x(?P<x>[0-9a-fA-F]{2})|(?P<o>[0-3][0-7]{2})|(?P<c>[/\"'\\])|(?P<end>[rnt]))"
)
_OF_URL = re.compile("%0[Aa]")
_HTML = re.compile(r"&(?:#\w+|[A-Za-z]\w+);")


def _unescaped(decoded: DecodedText) -> Iterator[DecodedText]:
    """Yield a text without the escapes of URLs, HTML, JSON and /proc, and UTF-16 as the letters in it. The lines are
    those that it had: the end of one, where it is escaped, becomes a carriage return."""
    text = decoded.text.replace("\0", "")
    text = unquote(_OF_URL.sub("%0D", text), errors="replace") if "%" in text else text
    text = _HTML.sub(lambda entity: unescape(entity[0]).replace("\n", "\r"), text) if "&" in text else text
    text = _ESCAPE.sub(_character, text) if "\\" in text else text
    if text != decoded.text:
        yield replace(decoded, text=text, how=(*decoded.how, "escapes"))


def _character(match: re.Match[str]) -> str:
    code = int(match["u"] or match["x"] or "0", 16) or int(match["o"] or "0", 8)
    return "\r" if match["end"] or chr(code) == "\n" else chr(code) if code else match["c"] or ""


# --- words: Base64 and hexadecimal ------------------------------------------------------------------------------------

_SHORTEST, _CLEAR = 6, 12
"""Characters of a word that is decoded; and of text that is one beyond doubt."""
_PARTS = re.compile(rf"[A-Za-z0-9]{{{_SHORTEST},}}")
_BYTE = "(?:[2-7][0-9A-Fa-f]|0[9AaDd])"
"""A byte of plain text: numbers are hexadecimal, too, and seldom all of such."""
_FORMS = (
    ("Base64", re.compile(r"(?:[A-Za-z0-9+/]{40,}(?:\r\n?|\n)[ \t]*)+[A-Za-z0-9+/]+")),
    ("Base64", re.compile(rf"[A-Za-z0-9+/_-]{{{_SHORTEST},}}")),
    ("hexadecimal", re.compile(rf"(?<!\w){_BYTE}{{4,}}(?!\w)")),
    ("hexadecimal", re.compile(rf"(?<!\w)(?:{_BYTE}[ :]){{3,}}{_BYTE}(?!\w)")),
    ("hexadecimal", re.compile(rf"(?<!\w)(?:{_BYTE}{{2}} )+{_BYTE}{{1,2}}(?!\w)")),
)
"""The last two as hexdump and xxd print bytes."""
_STANDARD = str.maketrans("-_", "+/", " :\r\n\t")
_RUNS = re.compile(rb"[\x20-\x7e]{4,}")


def _words(decoded: DecodedText, done: set[tuple[str, str]]) -> Iterator[DecodedText]:
    for how, regex in _FORMS:
        for match in regex.finditer(decoded.text):
            word = match[0]
            if (how, word) in done or (how == "Base64" and word.isdigit()):
                continue
            done.add((how, word))
            for data in _bytes_of(word, how):
                text, is_clear = _as_text(data)
                if text:
                    line = decoded.line_of(match.start())
                    yield DecodedText(text, (*decoded.how, how), line, is_word=True, is_clear=is_clear)


def _bytes_of(word: str, how: str) -> Iterator[bytes]:
    """Yield what a word may hold; of Base64 also in its parts: a path may have one between its slashes."""
    joined = word.translate(_STANDARD)
    if how == "hexadecimal":
        yield bytes.fromhex(joined)
        return
    parts = _PARTS.findall(word)
    for candidate in (joined,) if parts == [word] else dict.fromkeys((joined, *parts)):
        whole = candidate[: len(candidate) - (len(candidate) % 4 == 1)]
        yield base64.b64decode(whole + "=" * (-len(whole) % 4))


def _as_text(data: bytes) -> tuple[str, bool]:
    """Return what stands in data as text, and whether it is text as a whole: in UTF-8, or in UTF-16. Of compressed data
    its content, of other data its runs of letters."""
    if data.startswith(COMPRESSED):
        with suppress(StoreError):  # a word that only begins so
            return "\n".join(piece.decode(errors="replace") for piece in unpacked(data, "")), True
    plain = data.replace(b"\0", b"")
    text = plain.decode(errors="replace")
    if len(plain) >= _CLEAR and all((char.isprintable() and char != "\ufffd") or char in "\t\r\n" for char in text):
        return text, True
    runs = [run.decode() for run in _RUNS.findall(plain)]  # in a certificate, '0' stands behind each name
    return "\n".join([*runs, *(run[:-1] for run in runs)]), False


# --- compressed data --------------------------------------------------------------------------------------------------

_CODECS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2", b"\x04\x22\x4d\x18": "lz4"}
_XZ, _ZIP = b"\xfd7zXZ", b"PK\x03\x04"
COMPRESSED = (*_CODECS, _XZ, _ZIP)
"""How compressed files begin."""


def unpacked(data: bytes, where: str) -> Iterator[bytes]:
    """Yield the content of compressed data, file by file of an archive. Raises StoreError where it cannot be read, or
    is larger than any file of a run."""
    try:
        yield from _unpacked(data)
    except (OSError, EOFError, ValueError, RuntimeError, lzma.LZMAError, zlib.error, zipfile.BadZipFile) as error:
        raise StoreError("a compressed file cannot be searched", where=where, got=str(error)) from error


def _unpacked(data: bytes) -> Iterator[bytes]:
    if data.startswith(_ZIP):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for entry in archive.infolist():
                yield entry.filename.encode()
                with archive.open(entry) as file:
                    yield _read(file)
    elif data.startswith(_XZ):
        with lzma.open(io.BytesIO(data)) as file:
            yield _read(file)
    else:
        codec = next(name for start, name in _CODECS.items() if data.startswith(start))
        yield _read(pa.CompressedInputStream(pa.BufferReader(data), codec))


def _read(file: IO[bytes]) -> bytes:
    content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise ValueError(f"more than {LARGEST_FILE} bytes")
    return content

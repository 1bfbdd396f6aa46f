"""What a file holds once more in another encoding."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import json
import lzma
import secrets
import zipfile
from html import escape
from urllib.parse import quote

import pyarrow as pa
import pytest
from mountlab.core.errors import StoreError
from mountlab.publish.decoded import decoded_texts, unpacked
from rows import every_row

SAID = "user carol on mybox"


def based(data: bytes) -> str:
    return base64.b64encode(data).decode()


def zipped(data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("notes.txt", data)
    return file.getvalue()


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, "zstd", asbytes=True))


@every_row(
    "text",
    [
        based(SAID.encode()), f"auth={based(SAID.encode())};", f"/tmp/{based(SAID.encode()).strip('=')}/x",
        base64.urlsafe_b64encode(f"?>{SAID}~~?".encode()).decode(), based(based(SAID.encode()).encode()),
        based(SAID.encode("utf-16le")), based(gzip.compress(SAID.encode())),
        base64.encodebytes(f"{'x' * 70} {SAID} {'y' * 70}".encode()).decode(),
        json.dumps(base64.encodebytes(f"{'x' * 40} {SAID} {'y' * 70}".encode()).decode()),
        based(b"\x0c\x13" + SAID.encode() + b"0\x82\x01"), json.dumps({"id": f"one\n{based(SAID.encode())}\ttwo"}),
        SAID.encode().hex(), SAID.encode().hex(" "), SAID.encode().hex(":").upper(),
        "00000000: 7573 6572 2063 6172 6f6c 206f 6e20 6d79 626f 78  what xxd prints", quote(SAID), quote(quote(SAID)),
        quote(based(SAID.encode()), safe=""), "".join(f"\\u{ord(char):04x}" for char in SAID),
        json.dumps(json.dumps(SAID.replace("carol", "carol\N{ZERO WIDTH SPACE}"))).replace("\\\\u200b", ""),
        SAID.replace(" ", "\\040"), "".join(f"&#{ord(char)};" for char in SAID), escape(based(SAID.encode())),
        "\0".join(SAID), based(secrets.token_bytes(30) + b"\n" + SAID.encode() + b"\n" + secrets.token_bytes(30)),
    ],
)  # fmt: skip
def test_what_is_encoded_is_read(text: str) -> None:
    assert any(SAID in decoded.text for decoded in decoded_texts(f"first\nsecond {text}\n", set())), text


def test_a_layer_tells_the_line_and_the_encodings() -> None:
    text = f"one%0Atwo\\n&#10;\ntwo\nthree {based(SAID.encode())}\nfour {quote(SAID)} five\n"
    found = {
        decoded.how: decoded.line_of(decoded.text.index(SAID))
        for decoded in decoded_texts(text, set())
        if SAID in decoded.text
    }
    assert found == {("Base64",): 3, ("escapes",): 4}


def test_a_word_is_decoded_once_however_many_files_have_it() -> None:
    known = set[tuple[str, str]]()
    assert len(list(decoded_texts(based(SAID.encode()), known))) == 2
    assert len(list(decoded_texts(based(SAID.encode()), known))) == 1


@every_row("pack", [gzip.compress, bz2.compress, lzma.compress, zipped, zstd])
def test_what_is_compressed_is_unpacked(pack: object) -> None:
    assert callable(pack)
    assert SAID.encode() in b"\n".join(unpacked(pack(SAID.encode()), "log"))


@every_row(
    "data",
    [
        gzip.compress(b"x" * 100)[:20], b"BZh9 is a name", b"PK\x03\x04...", b"\x28\xb5\x2f\xfd...",
        b"\xfd7zXZ" + b"?" * 40,
    ],
)  # fmt: skip
def test_what_is_damaged_is_told_with_its_place(data: bytes) -> None:
    with pytest.raises(StoreError) as caught:
        list(unpacked(data, "raw/t0001/log"))
    assert caught.value.where == "raw/t0001/log"

"""The link that is broken on purpose does what it says, or the faults of it would show nothing."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from faults.proxy import HOST, Link, link
from waiting import LIMIT_S


@pytest.fixture
def echo() -> Iterator[int]:
    """A port on which everything comes back."""
    with socket.create_server((HOST, 0)) as server:
        threading.Thread(target=_serve, args=(server,), daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def _serve(server: socket.socket) -> None:
    with suppress(OSError):
        while True:
            threading.Thread(target=_echo, args=(server.accept()[0],), daemon=True).start()


def _echo(connection: socket.socket) -> None:
    with connection, suppress(OSError):
        while data := connection.recv(1000):
            connection.sendall(data)


@pytest.fixture
def through(echo: int) -> Iterator[Link]:
    with link(echo) as made:
        yield made


@pytest.fixture
def wire(through: Link) -> Iterator[socket.socket]:
    with socket.create_connection((HOST, through.port), timeout=LIMIT_S) as connection:
        assert said(connection, b"hello") == b"hello"
        yield connection


def said(connection: socket.socket, words: bytes) -> bytes:
    connection.sendall(words)
    return connection.recv(1000)


def test_a_dropped_connection_ends_and_the_next_one_works(through: Link, wire: socket.socket) -> None:
    through.drop()
    assert wire.recv(1) == b""
    with socket.create_connection((HOST, through.port), timeout=LIMIT_S) as again:
        assert said(again, b"again") == b"again"
    assert (through.connections, through.passed) == (2, 20)


def test_a_reset_is_no_ordinary_end(through: Link, wire: socket.socket) -> None:
    through.reset()
    with pytest.raises(ConnectionResetError):
        wire.recv(1)


@pytest.mark.slow
def test_a_stall_holds_all_back_and_lets_it_go_later(through: Link, wire: socket.socket) -> None:
    through.stall()
    wire.sendall(b"late")
    wire.settimeout(0.3)
    with pytest.raises(TimeoutError):
        wire.recv(1)
    through.flow()
    wire.settimeout(5)
    assert wire.recv(1000) == b"late"


def test_one_bit_is_turned_and_the_rest_is_as_it_was(through: Link, wire: socket.socket) -> None:
    through.corrupt()
    assert said(wire, b"aaaa") == b"aaa`"
    assert said(wire, b"aaaa") == b"aaaa"


def test_a_cut_link_refuses_until_it_is_mended(through: Link, wire: socket.socket) -> None:
    through.cut()
    with pytest.raises(ConnectionResetError):
        wire.recv(1)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, through.port), timeout=LIMIT_S)
    through.mend()
    with socket.create_connection((HOST, through.port), timeout=LIMIT_S) as again:
        assert said(again, b"again") == b"again"

"""A link that can be broken: passes TCP connections on, on 127.0.0.1 only, until it is told to misbehave."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

T = TypeVar("T")
HOST = "127.0.0.1"
CHUNK = 65536
RESET_AT_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER of no time: closing sends RST, and what was not sent yet is thrown away."""


class Link:
    """Passes on what comes to `port` to another port of this machine, and back. Used from any thread."""

    def __init__(self, target: int) -> None:
        self.target = target
        self._held = socket.socket()  # keeps the port while the link is cut: bound, and not listening
        self._held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._held.bind((HOST, 0))
        self.port: int = self._held.getsockname()[1]
        self.passed = 0
        """Bytes, both ways together."""
        self.connections = 0
        """So many have been made through it."""
        self._open: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._flows = asyncio.Event()
        self._flip = 0
        self._server: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="link", daemon=True)
        self._thread.start()
        self._call(self._listen())

    # --- faults -------------------------------------------------------------------------------------------------------

    def drop(self) -> None:
        """Every connection ends, as if the other side had closed it."""
        self._call(self._end(reset=False))

    def reset(self) -> None:
        """Every connection is reset."""
        self._call(self._end(reset=True))

    def stall(self) -> None:
        """From now on nothing is passed on, either way, and nobody is told; until `flow`."""
        self._soon(self._flows.clear)

    def flow(self) -> None:
        """All goes through again, what was held back included."""
        self._soon(self._flows.set)

    def corrupt(self) -> None:
        """One bit of the next bytes that come, from whichever side, is turned."""
        self._soon(lambda: setattr(self, "_flip", 1))

    def cut(self) -> None:
        """Every connection is reset, and new ones are refused; until `mend`."""
        self._call(self._shut())

    def mend(self) -> None:
        self._call(self._listen())

    def close(self) -> None:
        self._call(self._shut())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()
        self._held.close()

    # --- in its own thread --------------------------------------------------------------------------------------------

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def _soon(self, work: Callable[[], object]) -> None:
        self._loop.call_soon_threadsafe(work)

    async def _listen(self) -> None:
        self._flows.set()
        self._server = await asyncio.start_server(self._accept, HOST, self.port)

    async def _shut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        self._flows.set()
        await self._end(reset=True)

    async def _end(self, *, reset: bool) -> None:
        for pair in self._open:
            for writer in pair:
                own = writer.get_extra_info("socket")
                if reset and own.fileno() >= 0:  # or the other side has closed it meanwhile
                    own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
                writer.transport.abort() if reset else writer.close()
        self._open.clear()
        await asyncio.sleep(0)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection(HOST, self.target)
        except OSError:
            writer.transport.abort()
            return
        self.connections += 1
        pair = (writer, back)
        self._open.add(pair)
        both = asyncio.gather(self._pass(reader, back), self._pass(there, writer), return_exceptions=True)
        await both
        self._open.discard(pair)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                await self._flows.wait()
                if self._flip:
                    self._flip = 0
                    data = bytes([*data[:-1], data[-1] ^ 1])
                self.passed += len(data)
                writer.write(data)
                await writer.drain()
        writer.close()


@contextmanager
def link(target: int) -> Iterator[Link]:
    """A link to a port of this machine, gone at the end with all that goes through it."""
    made = Link(target)
    try:
        yield made
    finally:
        made.close()

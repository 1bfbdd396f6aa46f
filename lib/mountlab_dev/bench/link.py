"""A link with latency: passes TCP connections on to another port of this machine, each byte later by the same time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

T = TypeVar("T")
HOST = "127.0.0.1"
CHUNK = 65536
Chunks = asyncio.Queue[tuple[float, bytes]]


class Link:
    """Used from any thread; works in one of its own."""

    def __init__(self, target: int, each_way_s: float) -> None:
        self.target, self.each_way_s = target, each_way_s
        self.turns = 0
        """How often the near side has spoken after the far one had: round trips that somebody waited for."""
        self.port = 0
        self._far_spoke = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ends: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="link", daemon=True)
        self._thread.start()
        self._server = self._call(asyncio.start_server(self._accept, HOST, 0))
        self.port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """Nothing is passed on any more."""
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _end(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._ends:
            writer.transport.abort()
        await asyncio.sleep(0)  # for what the transports still have to say

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(HOST, self.target)
        self._ends |= {writer, back}
        for source, sink, near in ((reader, back, True), (there, writer, False)):
            chunks: Chunks = asyncio.Queue()
            for work in (self._take(source, chunks, near), self._give(chunks, sink)):
                task = self._loop.create_task(work)
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _take(self, source: asyncio.StreamReader, chunks: Chunks, near: bool) -> None:
        while True:
            try:
                data = await source.read(CHUNK)
            except OSError:
                data = b""
            self.turns += near and self._far_spoke and bool(data)
            self._far_spoke = not near
            await chunks.put((self._loop.time() + self.each_way_s, data))
            if not data:
                return

    async def _give(self, chunks: Chunks, sink: asyncio.StreamWriter) -> None:
        while True:
            due, data = await chunks.get()
            await asyncio.sleep(due - self._loop.time())
            if not data:
                break
            with suppress(OSError):
                sink.write(data)
                await sink.drain()
        sink.close()
        self._ends.discard(sink)


@contextmanager
def link(target: int, each_way_s: float) -> Iterator[Link]:
    """A link to a port of this machine, gone at the end with all that goes through it."""
    made = Link(target, each_way_s)
    try:
        yield made
    finally:
        made.close()

"""A FUSE file system of one file, `image`, whose reads, writes and flushes take as long as asked.

`python slow_device.py MOUNT BACKING READ_S WRITE_S FLUSH_S` serves until it is unmounted. The messages are those of
include/uapi/linux/fuse.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

FILE = "image"
ROOT_NODE, FILE_NODE, LARGEST, READERS = 1, 2, 128 * 1024, 4
"""Each reader answers one request at a time: while one of them waits, the others answer."""
HEADER, ANSWER = struct.Struct("<IIQQIIIHH"), struct.Struct("<IiQ")
READ_OR_WRITE = struct.Struct("<QQI")
ATTRIBUTES = struct.Struct("<6Q10I")
VALID_S = 3600
NO_ANSWER = (2, 36, 42)  # FORGET, INTERRUPT, BATCH_FORGET
PAST_THE_CACHE = 1
"""FOPEN_DIRECT_IO: otherwise the kernel keeps what it has read, and a read of a loop device meets no delay."""


class SlowDevice:
    """Answers what the kernel asks of the file system."""

    def __init__(self, device: int, backing: int, read_s: float, write_s: float, flush_s: float) -> None:
        self.device, self.backing = device, backing
        self.read_s, self.write_s, self.flush_s = read_s, write_s, flush_s
        self.answers: dict[int, Callable[[int, bytes], bytes]] = {
            1: self.lookup,
            3: lambda node, _: struct.pack("<QII", VALID_S, 0, 0) + self.attributes(node),  # GETATTR
            4: lambda node, _: struct.pack("<QII", VALID_S, 0, 0) + self.attributes(node),  # SETATTR
            14: lambda *_: struct.pack("<QII", 0, PAST_THE_CACHE, 0),  # OPEN
            15: self.read,
            16: self.write,
            17: lambda *_: bytes(80),  # STATFS
            18: lambda *_: b"",  # RELEASE
            20: self.flush,  # FSYNC
            25: lambda *_: b"",  # FLUSH: a file is closed
            26: self.begin,
            27: lambda *_: bytes(16),  # OPENDIR
            29: lambda *_: b"",  # RELEASEDIR
            38: lambda *_: b"",  # DESTROY
        }

    def serve(self) -> None:
        """Answer until the file system is unmounted."""
        while True:
            try:
                message = os.read(self.device, LARGEST + 4096)
            except OSError as error:
                if error.errno in (errno.EINTR, errno.EAGAIN, errno.ENOENT):
                    continue
                return
            if not message:
                return
            self.answer(message)

    def answer(self, message: bytes) -> None:
        _, opcode, unique, node, *_ = HEADER.unpack_from(message)
        if opcode in NO_ANSWER:
            return
        try:
            if opcode not in self.answers:
                raise OSError(errno.ENOSYS, "not of this file system")
            body, failed = self.answers[opcode](node, message[HEADER.size :]), 0
        except OSError as error:
            body, failed = b"", -(error.errno or errno.EIO)
        try:
            os.write(self.device, ANSWER.pack(ANSWER.size + len(body), failed, unique) + body)
        except OSError:  # whoever asked is gone, or the file system is
            return

    def begin(self, _: int, body: bytes) -> bytes:
        major, minor, readahead = struct.unpack_from("<III", body)
        return struct.pack("<IIIIHHIIHHI28x", major, min(minor, 31), readahead, 0, 16, 12, LARGEST, 1, 0, 0, 0)

    def lookup(self, _: int, body: bytes) -> bytes:
        if body.rstrip(b"\0") != FILE.encode():
            raise FileNotFoundError(errno.ENOENT, "there is one file")
        return struct.pack("<QQQQII", FILE_NODE, 0, VALID_S, VALID_S, 0, 0) + self.attributes(FILE_NODE)

    def attributes(self, node: int) -> bytes:
        size = os.fstat(self.backing).st_size if node == FILE_NODE else 0
        mode = stat.S_IFREG | 0o600 if node == FILE_NODE else stat.S_IFDIR | 0o700
        return ATTRIBUTES.pack(node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def read(self, _: int, body: bytes) -> bytes:
        _, offset, size = READ_OR_WRITE.unpack_from(body)
        time.sleep(self.read_s)
        return os.pread(self.backing, size, offset)

    def write(self, _: int, body: bytes) -> bytes:
        _, offset, size = READ_OR_WRITE.unpack_from(body)
        time.sleep(self.write_s)
        return struct.pack("<II", os.pwrite(self.backing, body[40 : 40 + size], offset), 0)

    def flush(self, *_: object) -> bytes:
        time.sleep(self.flush_s)
        return b""


def main(place: str, backing: str, *delays_s: str) -> None:
    device = os.open("/dev/fuse", os.O_RDWR)
    file = os.open(backing, os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"mountlab-slow-device", place.encode(), b"fuse", 0, options) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), place)
    served = SlowDevice(device, file, *map(float, delays_s))
    readers = [threading.Thread(target=served.serve) for _ in range(READERS)]
    for reader in readers:
        reader.start()
    Path(f"{backing}.ready").touch()
    for reader in readers:
        reader.join()


if __name__ == "__main__":
    main(*sys.argv[1:])

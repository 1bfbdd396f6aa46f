"""Programs as a user has them, for the tool `command`: they print what they took by their own clock.

`small_files.py create DIRECTORY FILES PROCESSES LENGTH` makes empty files with names of this length; each process has a
directory of its own. `small_files.py read FILE BYTES SECONDS` reads a file from its begin to its end, so many bytes at
a time, and again without its pages in memory until so many seconds are over.
"""

from __future__ import annotations

import os
import sys
import time


def create(directory: str, files: str, processes: str, length: str) -> None:
    each = int(files) // int(processes)
    began = time.perf_counter()
    for process in range(int(processes)):
        if os.fork() == 0:
            place = os.path.join(directory, str(process))
            os.mkdir(place)
            where = os.open(place, os.O_RDONLY)
            for number in range(each):
                name = str(number).rjust(int(length), "x")
                os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, dir_fd=where))
            os._exit(0)
    for _ in range(int(processes)):
        if os.wait()[1] != 0:
            sys.exit("a process has failed")
    sys.stdout.write(f"each took {(time.perf_counter() - began) / each:.9f} s\n")


def read(path: str, size: str, seconds: str) -> None:
    file, amount, calls = os.open(path, os.O_RDONLY), int(size), 0
    began = time.perf_counter()
    while (took := time.perf_counter() - began) < float(seconds):
        if os.read(file, amount):
            calls += 1
        else:
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.lseek(file, 0, os.SEEK_SET)
    sys.stdout.write(f"each took {took / calls:.9f} s\n")


if __name__ == "__main__":
    if sys.argv[1] == "create":
        create(*sys.argv[2:])
    else:
        read(*sys.argv[2:])

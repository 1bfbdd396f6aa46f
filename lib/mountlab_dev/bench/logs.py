"""Logs of tools to one tidy frame: how long, and in how much memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from mountlab.core.units import GIB, KIB
from mountlab.logs.frame import tidy
from mountlab.results import store
from mountlab.tools.base import decode_json

from mountlab_dev.bench.cheap import RECORDED, varied_logs
from mountlab_dev.bench.table import Row, timed

LOGS = 10_000
_MEMORY = """
import re, sys
from pathlib import Path
from mountlab.logs.frame import tidy
tidy("fio", ((path.name, path.read_bytes()) for path in Path(sys.argv[1]).iterdir()))
print(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""
"""How much memory a process takes that does nothing else, in KiB. (getrusage counts what was before it began.)"""


def rows(repeats: int, directory: Path) -> Iterator[Row]:
    """10,000 reports of fio as one tidy frame; only decoding them; and what pandas makes of them by itself."""
    varied = {f"{number}.json": data for number, data in enumerate(varied_logs(LOGS))}
    files = store.write_files(directory, varied)

    def ours() -> None:
        read = tidy("fio", ((path.name, path.read_bytes()) for path in files))
        assert not read.problems, read.problems[0]
        assert len(read.frame) >= LOGS

    def decoding() -> None:
        for path in files:
            decode_json(path.read_bytes())

    def pandas_alone() -> None:
        pd.json_normalize([json.loads(path.read_bytes()) for path in files], record_path="jobs")

    times: dict[str, list[float]] = {"ours": [], "decoding": [], "pandas": []}
    for _ in range(repeats):  # in turns, so that a busy machine slows all of them
        for name, action in (("ours", ours), ("decoding", decoding), ("pandas", pandas_alone)):
            times[name] += timed(action, 1)
    ratios = [mine / least for mine, least in zip(times["ours"], times["decoding"], strict=True)]
    yield Row(
        f"{LOGS} fio json+ logs of {len(RECORDED.read_bytes()) // 1000} kB to one tidy frame", times["ours"], under=5.0
    )
    yield Row("only decoding their JSON (orjson)", times["decoding"])
    yield Row("to a frame, in times of only decoding", ratios, "times", under=5.0)
    yield Row("the same logs by pandas.json_normalize and the standard decoder", times["pandas"])
    said = subprocess.run([sys.executable, "-c", _MEMORY, str(directory)], capture_output=True, text=True, check=True)
    yield Row("memory of a process that makes the frame", [float(said.stdout) * KIB], "B", under=float(GIB))

"""What `make bench-gate` measures: one subject in a process of its own, `python -P cheap.py SUBJECT`.

PYTHONPATH says whose library is measured: that of this commit, or that of an earlier one. So this file imports nothing
of mountlab_dev, and of mountlab, inside of functions, the few names that a subject is about. It prints seconds of
processor time, which other programs of a shared machine change less than the time of a clock.
"""

from __future__ import annotations

import importlib.util
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    from mountlab.core.model import Sweep

RECORDED = Path(__file__).resolve().parents[3] / "tests" / "data" / "fio" / "psync-randread-direct.jsonplus"
LOGS, DIFFERENT = 2_000, 100
CELLS, BLOCKS = 2_000, 10
METRICS = (
    "read_bandwidth", "write_bandwidth", "read_iops", "write_iops", "read_latency_mean", "read_latency_p99",
    "write_latency_mean", "write_latency_p99",
)  # fmt: skip
SWEEP = """
name: cheap
question: What does a plan cost?
baseline: tmpfs
filesystems: {tmpfs: {type: tmpfs, size: 64MiB}, ramfs: {type: ramfs, size: 64MiB}}
workloads: {w: {tool: dd, direction: [write, read], bs: [4KiB, 64KiB], count: 16}}
design: {repeats: 10}
"""
_DECIMAL = re.compile(r'(?<!"iops" : )(?<=: )\d+\.\d+')
"""Not the rate, which has to agree with the amounts beside it."""

# --- logs -------------------------------------------------------------------------------------------------------------


def varied_logs(count: int) -> Iterator[bytes]:
    """Yield json+ reports of fio: the recorded one with other decimals in each."""
    recorded, rng = RECORDED.read_text(), random.Random(1)  # noqa: S311  # no secret
    for _ in range(count):
        yield _DECIMAL.sub(lambda found: f"{float(found[0]) * rng.uniform(0.9, 1.1):.6f}", recorded).encode()


def _logs() -> list[tuple[str, bytes]]:
    return [(f"{number}.json", data) for number, data in enumerate([*varied_logs(DIFFERENT)] * (LOGS // DIFFERENT))]


def logs() -> float:
    """Reports of fio to one tidy frame."""
    from mountlab.logs.frame import tidy

    files = _logs()
    tidy("fio", files[:1])  # imports what is imported late
    return _processor_s(lambda: tidy("fio", files))


def decoding() -> float:
    """Only decode the JSON of these reports, with orjson."""
    import orjson

    files = _logs()
    return _processor_s(lambda: [orjson.loads(data) for _, data in files])


# --- statistics -------------------------------------------------------------------------------------------------------


def many_cells(count: int) -> tuple[Sweep, pd.DataFrame]:
    """Return a sweep of so many cells (a multiple of 8), and made-up figures of 10 trials and 8 metrics of each."""
    import numpy as np
    import pandas as pd
    from mountlab.core import metrics
    from mountlab.core.model import Design, Filesystem, Sweep, Workload

    filesystems = tuple(Filesystem(name=f"fs{number}", type="tmpfs") for number in range(8))
    workloads = tuple(
        Workload(name="fio", tool="fio", options={"rw": "read"}, factors={"bs": f"{number}KiB"})
        for number in range(count // len(filesystems))
    )
    sweep = Sweep(
        name="many",
        question="How long does it take?",
        box="local",
        filesystems=filesystems,
        workloads=workloads,
        design=Design(repeats=BLOCKS),
        metrics=METRICS,
        baseline="fs0",
    )
    cells, shape = sweep.cells, (len(sweep.cells), BLOCKS, len(METRICS))
    cell, block, metric = (place.ravel() for place in np.indices(shape))
    columns = {
        "cell": np.array([each.id for each in cells], dtype=object)[cell],
        "block": block + 1,
        "warmup": False,
        "filesystem": np.array([each.filesystem.name for each in cells], dtype=object)[cell],
        "metric": np.array(METRICS, dtype=object)[metric],
        "label": "",
        "unit": np.array([metrics.METRICS[name] for name in METRICS], dtype=object)[metric],
        "value": np.random.default_rng(1).lognormal(10, 0.05, len(cell)),
    }
    return sweep, pd.DataFrame(columns)


def statistics() -> float:
    """Estimates and comparisons of many cells."""
    from mountlab.analysis.estimates import estimate_frame
    from mountlab.analysis.sweep_comparisons import comparisons

    def analyse(sweep: Sweep, frame: pd.DataFrame) -> None:
        estimate_frame(sweep, frame, run_id="", box="")
        comparisons(sweep, frame)

    analyse(*many_cells(8))  # imports what is imported late, and makes tables that are made once
    many = many_cells(CELLS)
    return _processor_s(lambda: analyse(*many))


def arithmetic() -> float:
    """As many samples sorted and summed up by numpy and scipy, twenty times."""
    import numpy as np
    from scipy import special

    samples = np.random.default_rng(1).lognormal(10, 0.05, (CELLS * len(METRICS), BLOCKS))

    def work() -> None:
        for _ in range(20):
            logs = np.log(np.sort(samples, axis=1))
            special.stdtr(BLOCKS - 1, (logs.mean(axis=1) - 10) / logs.std(axis=1, ddof=1))

    return _processor_s(work)


# --- whole processes --------------------------------------------------------------------------------------------------


def pandas_alone() -> float:
    """A process that imports pandas."""
    return _process_s("-c", "import pandas")


def importing() -> float:
    """A process that imports all that notebooks use of mountlab."""
    return _process_s("-c", "import mountlab\nfor name in mountlab.__all__: getattr(mountlab, name)")


def plan() -> float:
    """The plan of a small sweep on the box `local`, as a command."""
    sweep = Path("cheap.yml")
    sweep.write_text(SWEEP)
    return _process_s("-m", "mountlab", "plan", str(sweep))


def report() -> float:
    """The report of a copy of the example run, as a command."""
    return _process_s("-m", "mountlab", "report", str(Path(os.environ["MOUNTLAB_RESULTS"], "tour")))


# --- time -------------------------------------------------------------------------------------------------------------


def _processor_s(action: Callable[[], object]) -> float:
    """Return seconds of processor time of this process."""
    start = time.process_time()
    action()
    return time.process_time() - start


def _process_s(*words: str) -> float:
    """Return seconds of processor time of a process of Python, with all that it started and waited for."""
    before = os.times()
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    after = os.times()
    if done.returncode != 0:
        sys.exit(done.stderr)
    return sum(after[2:4]) - sum(before[2:4])


ACTIONS: dict[str, Callable[[], float]] = {
    action.__name__: action
    for action in (logs, decoding, statistics, arithmetic, pandas_alone, importing, plan, report)
}

if __name__ == "__main__":
    library = importlib.util.find_spec("mountlab")
    sys.stdout.write(f"{library and library.origin}\n{ACTIONS[sys.argv[1]]()}\n")

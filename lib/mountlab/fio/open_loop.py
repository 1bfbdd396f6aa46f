"""Open-loop load with fio: requests arrive at random times, whether or not earlier ones are done.

Each of many threads has a Poisson process of its own and one request at a time; together their arrivals are one Poisson
process of the rate that is asked. fio keeps the schedule of a thread from its beginning, so a thread that was kept
waiting catches up. It counts latency from when a request is issued, though: of a request that was due while its thread
was busy, the time until then is missing. `arrivals` puts it back, from what a Poisson process lets expect.

Measured with fio 3.33, on a device limited to 50 reads/s by blkio and on memory:

- One `psync` job with `rate_iops` counts latency from when a read was issued: its wait for its turn is missing.
- `libaio` or `io_uring` with `iodepth=256` waits for all requests before it sleeps until the next is due: no
  open loop.
- `io_submit_mode=offload`, which would be one, hangs: it was still there 60 s after the end of a runtime of 5 s.
- 150 threads that were asked for 4,550 requests/s issued 4,555. The number of arrivals in 5, 10, 50 and 200 ms had
  1.00, 1.01, 1.08 and 1.07 times the variance of a Poisson process. Asked for 100,000/s, two processors issued 100,379.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mountlab.core.errors import ParameterError, ParseError, ToolError
from mountlab.core.metrics import PERCENT_OF
from mountlab.core.model import Measurement, Scalar
from mountlab.core.search import Objective, Search
from mountlab.stats.arrivals import Arrivals
from mountlab.stats.histograms import ios_needed

LOG = "open"
LOG_FILE = f"{LOG}_lat.log"
SPREAD_S = 2.0
"""The threads begin at random inside this time or a shorter one (`spread_s`): all issue a request at once then."""
SETTLE_SHARE, SETTLE_S = 0.2, 1.0
"""How long all threads run before requests count: a share of the time that counts, and no less than this."""
LONGEST_S = 40.0
"""A trial counts for no longer, unless `runtime` is longer: what a slow rate needs for its percentiles ends here."""
FEWEST_THREADS, MOST_THREADS = 16, 1024
MOST_REQUESTS = 1_500_000
"""Of one trial: each is a line of a log, about 30 bytes."""
PATTERNS: Mapping[str, tuple[str, ...]] = {
    "randread": ("read",), "randwrite": ("write",), "randrw": ("read", "write"),
}  # fmt: skip
REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("numjobs", "iodepth", "thinktime", "rate", "rate_iops", "rate_process", "io_submit_mode",
                     "startdelay", "thread"), "the search sets how many requests arrive, and how"),
    **dict.fromkeys(("jobs", "io_size", "loops", "number_ios", "ramp_time", "steadystate", "log_avg_msec", "nrfiles",
                     "bssplit", "bsrange"), "a search has requests of one kind for a set time"),
    **dict.fromkeys(("fsync", "fdatasync", "end_fsync"),
                    "a flush is no part of a request: sync: dsync writes each request through"),
}  # fmt: skip
_USUAL: Mapping[str, Scalar] = {"numjobs": 1, "iodepth": 1}


def check(options: Mapping[str, Scalar], *, where: str) -> tuple[str, ...]:
    """Return the directions of an open-loop workload. Raises ParameterError for options that it cannot have."""
    for name, why in REFUSED.items():
        if name in options and options[name] != _USUAL.get(name):
            raise ParameterError(
                f"an open-loop workload has no {name}",
                where=f"{where}.{name}",
                got=str(options[name])[:60],
                allowed=f"nothing: {why}",
            )
    if options.get("rw") not in PATTERNS:
        raise ParameterError(
            "requests that arrive by themselves have no order",
            where=f"{where}.rw",
            got=repr(options.get("rw")),
            allowed=", ".join(PATTERNS),
        )
    if not float(options.get("runtime", 0)) >= 1:
        got = str(options.get("runtime", "nothing"))
        raise ParameterError("a trial of a search needs time", where=f"{where}.runtime", got=got, allowed="1s or more")
    return PATTERNS[str(options["rw"])]


# ── what is run ──────────────────────────────────────────────────────────────────────────────────────────────────────


def counted_s(options: Mapping[str, Scalar], objective: Objective, rate: float) -> float:
    """Return how long requests count in a trial of this rate: `runtime`, or as long as it takes until each direction of
    the objective has the requests that its percentiles need, and no longer than LONGEST_S for that."""
    runtime = float(options["runtime"])
    return max(runtime, min(LONGEST_S, _needed(objective) / (rate * _rarest(options, objective))))


def least_rate(options: Mapping[str, Scalar], objective: Objective) -> float:
    """Return the lowest rate whose trials have the requests that the objective needs: a whole number."""
    longest = max(LONGEST_S, float(options["runtime"]))
    return float(max(2, math.ceil(_needed(objective) / (longest * _rarest(options, objective)))))


def _needed(objective: Objective) -> int:
    """Return the requests of one direction that give each percentile of the objective."""
    return max(ios_needed(PERCENT_OF[f"read_latency_{name}"]) for name in objective.limits)


def _rarest(options: Mapping[str, Scalar], objective: Objective) -> float:
    """Return the share of requests that the rarest direction of the objective has."""
    if len(PATTERNS[str(options["rw"])]) == 1:
        return 1.0
    reads = int(options.get("rwmixread", 50))
    return min(max({"read": reads, "write": 100 - reads}[name], 1) for name in objective.of) / 100


def spread_s(driven: Mapping[str, tuple[float, int]]) -> float:
    """Return inside which time the threads of a trial begin, in whole ms: so long that the first requests of all of
    them are no more than those that are missing meanwhile, since half of the threads have not begun. `driven`:
    direction to requests per second and threads."""
    return min(SPREAD_S, math.ceil(2e3 * max(count / rate for rate, count in driven.values())) / 1e3)


def settle_s(counted: float, spread: float = SPREAD_S) -> float:
    """Return how long requests arrive before they count for so many seconds."""
    return spread + max(SETTLE_S, SETTLE_SHARE * counted)


def threads(rate: int, objective: Objective, runtime_s: float) -> int:
    """Return how many threads take requests of this rate, so that next to none is due while its thread is busy: as many
    as requests in flight where latency is four times its limit, and twice as many as the requests that may be late, so
    that a pause of the device does not occupy all of them."""
    late = max(1 - PERCENT_OF[f"read_latency_{name}"] / 100 for name in objective.limits)
    wanted = rate * (4 * max(objective.limits.values()) + 2 * late * runtime_s)
    return min(rate, max(FEWEST_THREADS, min(MOST_THREADS, math.ceil(wanted))))


def lasts_s(counted: float, spread: float = SPREAD_S) -> float:
    """Return how long a trial takes whose requests count for so many seconds."""
    return spread + settle_s(counted, spread) + counted


def trial_s(options: Mapping[str, Scalar], objective: Objective, rate: float) -> float:
    """Return how long fio runs in a trial of this rate."""
    counted = counted_s(options, objective, rate)
    return lasts_s(counted, spread_s(_driven(rate, options, objective, counted)))


def _driven(
    rate: float, options: Mapping[str, Scalar], objective: Objective, counted: float
) -> dict[str, tuple[int, int]]:
    """Return direction to requests per second and threads."""
    directions = _directions(rate, options)
    return {name: (share, threads(share, objective, counted)) for name, share in directions.items()}


def job_file(given: Mapping[str, str], search: Search, rate: float, options: Mapping[str, Scalar], output: str) -> str:
    """Return the text of the jobs. `given`: fio's options for all of them, `options`: those of the workload."""
    counted = counted_s(options, search.objective, rate)
    driven = _driven(rate, options, search.objective, counted)
    spread = spread_s(driven)
    runtime_us = round((settle_s(counted, spread) + counted) * 1e6)
    common = {
        **{name: value for name, value in given.items() if name not in ("rw", "rwmixread", "numjobs", "iodepth")},
        "runtime": f"{runtime_us}us",
        "startdelay": f"0-{round(spread * 1e3)}ms",
        "rate_process": "poisson",
        **dict.fromkeys(("thread", "time_based", "norandommap", "group_reporting", "log_unix_epoch"), "1"),
        "disable_slat": "1",
        "disable_clat": "1",
        "write_lat_log": f"{output}/{LOG}",
        "per_job_logs": "0",
    }
    lines = ["[global]", *(f"{name}={value}" for name, value in common.items())]
    for direction, (share, count) in driven.items():
        for clones, per_thread in _shared(share, count):
            lines += [f"[{direction}-{per_thread}]", "new_group=1", f"rw=rand{direction}"]
            lines += [f"numjobs={clones}", f"rate_iops={per_thread}"]
    return "\n".join(lines) + "\n"


def _directions(rate: float, options: Mapping[str, Scalar]) -> dict[str, int]:
    """Return the requests per second of each direction. Two Poisson processes of these rates are one that is mixed."""
    names = PATTERNS[str(options["rw"])]
    if len(names) == 1:
        return {names[0]: max(1, round(rate))}
    whole = max(2, round(rate))
    reads = min(whole - 1, max(1, round(whole * int(options.get("rwmixread", 50)) / 100)))
    return {"read": reads, "write": whole - reads}


def _shared(rate: int, count: int) -> list[tuple[int, int]]:
    """Return how many threads have which rate: whole numbers, since fio's rates are, with the sum that is asked."""
    least, more = divmod(rate, count)
    return [(clones, per) for clones, per in ((more, least + 1), (count - more, least)) if clones]


# ── what came of it ──────────────────────────────────────────────────────────────────────────────────────────────────


def arrivals(log: str, driven: Mapping[str, tuple[float, int]], settle: float, runtime_s: float) -> dict[str, Arrivals]:
    """Return the requests of each direction from fio's log of every latency. `driven`: direction to requests per second
    and threads. Threads stand one after another in the log, each in the order of its own time."""
    if not log.strip():
        raise ToolError("fio issued no request", where=LOG_FILE, got="an empty log")
    try:
        rows = np.loadtxt(log.splitlines(), delimiter=",", usecols=(0, 1, 2), ndmin=2)
    except ValueError as error:
        raise ParseError("fio's log of latencies cannot be read", where=LOG_FILE, got=str(error)[:80]) from error
    begin = float((rows[:, 0] - rows[:, 1] / 1e6).min()) + 1e3 * settle
    names = {"read": 0, "write": 1}
    by_direction = {}
    for name, (rate, count) in driven.items():
        end, latency, _ = rows[rows[:, 2] == names[name]].T
        by_direction[name] = Arrivals.of(end, latency, rate, count, begin, runtime_s)
    return by_direction


def measurements(by_direction: Mapping[str, Arrivals], objective: Objective) -> list[Measurement]:
    """Return the figures of a trial. `objective_used` is missing where the schedule was not kept so closely that it is
    known whether the objective held: the largest ratio of a percentile to its limit."""
    rows = [
        _rate("asked_rate", sum(arrived.asked for arrived in by_direction.values())),
        _rate("arrival_rate", sum(len(arrived.latency) / arrived.seconds for arrived in by_direction.values())),
        _rate("completion_rate", sum(arrived.completed for arrived in by_direction.values())),
    ]
    latest = max(
        max(float(arrived.lateness.max(initial=0.0)), float(arrived.waiting.max(initial=0.0)), arrived.stall)
        for arrived in by_direction.values()
    )
    rows.append(Measurement(metric="largest_lateness", value=latest, unit="s"))
    for name, arrived in by_direction.items():
        rows += [
            Measurement(metric=f"{name}_latency_{part}", value=value, unit="s")
            for part, value in _percentiles(name, arrived).items()
        ]
    used = [
        _used(by_direction[name], name, part, limit) if name in by_direction else None
        for name in objective.of
        for part, limit in objective.limits.items()
    ]
    if (fails := [value for value in used if value is not None and value > 1]) or None not in used:
        largest = max(fails or [value for value in used if value is not None])
        rows.append(Measurement(metric="objective_used", value=largest, unit="1"))
    return rows


def _rate(metric: str, value: float) -> Measurement:
    return Measurement(metric=metric, value=value, unit="1/s")


def _percentiles(name: str, arrived: Arrivals) -> dict[str, float]:
    count = arrived.due
    wanted = {metric.rpartition("latency_")[2]: percent for metric, percent in PERCENT_OF.items()
              if metric.startswith(f"{name}_latency_")}  # fmt: skip
    enough = {part: percent for part, percent in wanted.items() if count * (1 - percent / 100) >= 1}
    return {part: arrived.percentile(percent) for part, percent in enough.items()}


def _used(arrived: Arrivals, name: str, part: str, limit: float) -> float | None:
    """Return a percentile as a share of its limit; None where it is not known on which side of it. More than 1 if, and
    only if, more requests were late than may be."""
    percent = PERCENT_OF[f"{name}_latency_{part}"]
    held = arrived.holds(percent, limit)
    if held is None:
        return None
    share = arrived.percentile(percent) / limit
    return min(share, 1.0) if held else max(share, math.nextafter(1, 2))


def parse(
    log: str, report: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], search: Search
) -> list[Measurement]:
    """Return the figures of a trial from its log, and what fio says that it was asked, job by job."""
    spread, counted = _times(report)
    by_direction = arrivals(log, _echoed_rates(entries), settle_s(counted, spread), counted)
    return measurements(by_direction, search.objective)


def _times(report: Mapping[str, Any]) -> tuple[float, float]:
    """Return inside which time threads began, and how long requests counted, from what fio says that it was asked."""
    echoed = {name: str((report.get("global options") or {}).get(name, "")) for name in ("startdelay", "runtime")}
    delay, runtime = re.fullmatch(r"0-(\d+)(m?s)", echoed["startdelay"]), re.fullmatch(r"(\d+)us", echoed["runtime"])
    if not delay or not runtime:
        raise ParseError(
            "fio does not say when its threads were to begin, and for how long to run",
            where="fio.json: global options",
            got=str(echoed)[:80],
            allowed="startdelay as 0-240ms, runtime as 8000000us",
        )
    spread = int(delay[1]) / (1e3 if delay[2] == "ms" else 1)
    arriving = int(runtime[1]) / 1e6 - spread
    return spread, min(arriving - SETTLE_S, arriving / (1 + SETTLE_SHARE))


def _echoed_rates(entries: Sequence[Mapping[str, Any]]) -> dict[str, tuple[float, int]]:
    """Return direction to requests per second and threads, from what fio says that each group of threads was asked."""
    driven: dict[str, tuple[float, int]] = {}
    for number, entry in enumerate(entries):
        options = entry["job options"]
        try:
            name, clones = str(options["rw"]).removeprefix("rand"), int(options["numjobs"])
            rate, count = driven.get(name, (0.0, 0))
            driven[name] = (rate + clones * float(options["rate_iops"]), count + clones)
        except (KeyError, ValueError) as error:
            place = f"fio.json: jobs[{number}].job options"
            raise ParseError("fio does not say which rate it was asked for", where=place, got=str(error)) from error
    if not {*driven} <= {"read", "write"} or any(rate <= 0 or count <= 0 for rate, count in driven.values()):
        raise ParseError("fio was not asked for requests at a rate", where="fio.json", got=str(driven)[:80])
    return driven

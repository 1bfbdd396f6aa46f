"""ioping: how long single requests take, one after the other."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mountlab.core.errors import ParameterError, ParseError, ToolError
from mountlab.core.model import FILES, Measurement, Program, Scalar, Target, Workload, everywhere
from mountlab.core.options import Option
from mountlab.core.resolution import Step
from mountlab.core.units import KIB, MIB
from mountlab.tools.base import CACHE, GUESSED_BYTES_PER_S, Command, Manner, Tool, ToolOutput, Written, check_cache
from mountlab.tools.words import check_numbers, option_words, refuse_direct

_FORMS = {
    "order": "{}", "access": "{}", "durability": "{}", "operation": "{}", "size": "-s {}", "working_set": "-S {}",
    "interval": "-i {:.9f}",
}  # fmt: skip
_LETTERS: dict[str, dict[str, str]] = {
    "operation": {"read": "", "write": "-W"},
    "order": {"random": "", "linear": "-L"},
    "access": {"uncached": "", "cached": "-C", "direct": "-D"},
    "durability": {"none": "", "dsync": "-y", "sync": "-Y"},
}
"""Our word for each letter; '' for what ioping does without one."""
WARM_UP = 1
"""Requests at the beginning that ioping leaves out of its figures (-a)."""
_BATCH = re.compile(r"(\d{1,18}) (\d{1,18}) (\d{1,18}) (\d{1,18}) (\d{1,18}) (\d{1,18}) (\d{1,18}) (\d{1,18}) "
                    r"(\d{1,18}) (\d{1,18})\n", re.ASCII)  # fmt: skip
_GUESSED_S = 1e-3


class Ioping(Tool):
    """Single requests in a file of `working_set`, each after the one before has ended. The file has random bytes, is
    flushed, and has no name.

    The time of a request is that of its read or write. With `access: uncached` it is forgotten by the page cache before
    (posix_fadvise), and a write is followed by fdatasync, whose time counts; with `cached` neither is done. In the
    memory of tmpfs and ramfs nothing is forgotten. The first request is a warm-up: it is in no figure but `elapsed`,
    which also has the pauses, and the making of random bytes before each write.
    """

    name = "ioping"
    programs: tuple[Program, ...] = (Program(name="ioping", packages=everywhere("ioping"), version=("ioping", "-v")),)
    options: Mapping[str, Option] = {
        "operation": Option(kind="choice", choices=("read", "write"), help="what a request does (-W: write)"),
        "count": Option(kind="int", help="requests in the figures; one more is made before (-c); or give time"),
        "time": Option(kind="duration", help="how long requests are made (-w); or give count"),
        "interval": Option(kind="duration", default=0.0, help="from one request to the next, at least (-i)"),
        "size": Option(kind="size", default=4 * KIB, help="bytes of a request (-s)"),
        "working_set": Option(kind="size", default=MIB, help="the file in which requests lie (-S)"),
        "order": Option(
            kind="choice", choices=("random", "linear"), default="random", help="where requests lie (-L: linear)"
        ),
        "access": Option(
            kind="choice",
            choices=("uncached", "cached", "direct"),
            default="uncached",
            help="whether requests are forgotten by the page cache and flushed, left to it (-C), or pass it by (-D)",
        ),
        "durability": Option(
            kind="choice", choices=("none", "dsync", "sync"), default="none", help="how the file is opened (-y, -Y)"
        ),
        "cache": CACHE,
    }
    reserved: Mapping[str, str] = {
        "a": "one request is the warm-up, as of every ioping",
        "B": "Mountlab reads its raw figures",
        "t": "requests that are left out for their time would change what the figures are about",
        "T": "requests that are left out for their time would change what the figures are about",
        "k": "the file goes when ioping ends, so that each trial begins alike",
        "e": "each block has a seed of its own; -p seed=... repeats those of a run",
        "c": "write count",
        "w": "write time",
        "i": "write interval",
        "s": "write size",
        "S": "write working_set",
    }
    clock_s = 1e-9
    longer = "a larger count or time"
    steps: Mapping[str, Step] = {
        **dict.fromkeys(
            ("operation_latency", "operation_latency_min", "operation_latency_max", "elapsed"), Step(absolute=1e-9)
        ),
        **dict.fromkeys(("operations", "bytes"), Step(absolute=1)),
    }
    gives: tuple[str, ...] = (
        "operation_latency", "operation_latency_min", "operation_latency_max", "operations", "elapsed", "bytes",
    )  # fmt: skip

    def check(self, options: Mapping[str, Scalar], *, where: str) -> None:
        self.check_given(options, {"operation": "read or write"}, where=where)
        limits = {"count": (1, 10**9), "size": (1, 1024 * MIB), "interval": (0, 3600), "time": (0, 3600)}
        check_numbers(self.name, options, limits, where=where)
        if int(options["working_set"]) < int(options["size"]):
            raise ParameterError(
                "a request of ioping does not fit into its file",
                where=f"{where}.working_set",
                got=f"{options['working_set']} B",
                allowed=f"size ({options['size']} B) or more",
            )
        if ("time" in options) == ("count" in options) or not options.get("time", 1):
            raise ParameterError(
                "ioping needs to know when to end",
                where=f"{where}.count",
                got="both count and time" if {"count", "time"} <= {*options} else "neither count nor time",
                allowed="one of them",
            )
        check_cache(options, reads=False, where=where)

    def command(self, workload: Workload, directory: str, output: str, target: Target = FILES) -> Command:
        options = workload.options
        words = {name: _LETTERS[name][str(value)] if name in _LETTERS else value for name, value in options.items()}
        end = ("-c", str(int(options["count"]) + WARM_UP)) if "count" in options else ("-w", f"{options['time']}")
        seed = () if target.seed is None else ("-e", str(target.seed % 2**31 or 1))
        return Command(
            argv=("ioping", "-B", "-a", str(WARM_UP), *option_words(words, _FORMS), *end, *seed, directory),
            cache=self.cache_of(workload),
            seed=target.seed,
        )

    def parse(self, workload: Workload, output: ToolOutput) -> list[Measurement]:
        """Return the latency of requests. Raises ToolError where some failed or are missing."""
        self.check_exit(output, output.stderr.strip() or output.stdout.strip()[-300:])
        options, match = workload.options, _BATCH.fullmatch(output.stdout)
        if not match:
            raise ParseError(
                "ioping's figures cannot be read",
                got=output.stdout.strip()[:120] or "nothing",
                allowed="ten whole numbers on one line (-B)",
            )
        counted, _, _, _, least, mean, most, _, made, ran_ns = map(int, match.groups())
        asked = int(options.get("count", counted))
        elapsed_s, wanted_s = ran_ns / 1e9, float(options.get("time", 0))
        if counted != asked or made != counted + WARM_UP or not counted:
            raise ToolError(
                "ioping did not make the requests that were asked",
                where="its counts",
                got=f"{made} made, {counted} counted",
                allowed=f"{max(asked, 1)} counted, and {WARM_UP} more made",
                evidence=output.stderr.strip(),
            )
        if elapsed_s < wanted_s:
            raise ToolError(
                "ioping ended too early", where="its time", got=f"{elapsed_s:g} s", allowed=f"{wanted_s:g} s or more"
            )
        latencies = {"operation_latency": mean, "operation_latency_min": least, "operation_latency_max": most}
        moved = float(made * int(options["size"]))
        return [
            *(Measurement(metric=name, value=value / 1e9, unit="s") for name, value in latencies.items()),
            Measurement(metric="operations", value=float(counted), unit="1"),
            Measurement(metric="elapsed", value=elapsed_s, unit="s"),
            Measurement(metric="bytes", label=str(options["operation"]), value=moved, unit="B"),
        ]

    def space_bytes(self, workload: Workload, target: Target = FILES) -> int:
        return int(workload.options["working_set"])

    def expected_s(self, workload: Workload) -> float:
        options = workload.options
        requests = int(options.get("count", 0)) * max(float(options["interval"]), _GUESSED_S)
        return 0.1 + float(options.get("time", requests)) + int(options["working_set"]) / GUESSED_BYTES_PER_S

    def written(self, workload: Workload) -> Written:
        return Written("random bytes, others in each request", False)

    def manner(self, workload: Workload) -> Manner:
        return Manner(engine="pread" if workload.options["operation"] == "read" else "pwrite", depth="1", jobs="1")

    def refuses(self, kind: str, workload: Workload) -> str | None:
        return refuse_direct(kind, workload.options, "access", "direct")

    def main_metrics(self, workload: Workload) -> tuple[str, ...]:
        return ("operation_latency",)

"""Facts about the processors: their model, what they do at rest and at work, what protects them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from mountlab.core.box_facts.base import FactPart, Group, fact
from mountlab.core.box_facts.parsing import drop_unknown, key_values, lines, on_or_off, parse_values, parse_words

_MICROCODE = (
    "sed -n 's/^microcode[^:]*: *//p' /proc/cpuinfo; "
    "[ ! -r /sys/devices/system/cpu/cpu0/microcode/version ] || cat /sys/devices/system/cpu/cpu0/microcode/version"
)
_FREQUENCY = r"""
cd /sys/devices/system/cpu && {
    values '' cpu0/cpufreq/scaling_driver cpu0/cpufreq/scaling_min_freq cpu0/cpufreq/scaling_max_freq \
        cpu0/cpufreq/cpuinfo_max_freq cpu0/cpufreq/energy_performance_preference cpufreq/boost intel_pstate/no_turbo \
        intel_pstate/status amd_pstate/status
}
"""
_IDLE = r"""
cd /sys/devices/system/cpu && {
    values '' cpuidle/current_driver cpuidle/current_governor cpuidle/current_governor_ro
    for state in cpu0/cpuidle/state[0-9]*; do
        values "${state##*/} " "$state/name" "$state/latency" "$state/disable" "$state/residency"
        # What a program such as tuned holds the latency below: read only, which asks for no limit of our own.
        [ "${state##*/}" != state0 ] || [ ! -r /dev/cpu_dma_latency ] ||
            printf 'limit\t%s\n' "$(od -An -td4 -N4 /dev/cpu_dma_latency)"
    done
}
"""
_NUMA = "values '' /sys/devices/system/node/online /proc/sys/kernel/numa_balancing"
_MITIGATIONS = "values '' /sys/devices/system/cpu/vulnerabilities/*"
_NO_LATENCY_LIMIT = 2_000_000_000
"""What /dev/cpu_dma_latency holds where no program asks for a limit (PM_QOS_CPU_LATENCY_DEFAULT_VALUE), in µs."""
_IDLE_STATE = re.compile(r"(?P<name>[^,]+) (?P<exit>\d+)/(?P<stay>\d+) µs")
_FREQUENCIES = {"lowest_hz": "scaling_min_freq", "highest_hz": "scaling_max_freq", "possible_hz": "cpuinfo_max_freq"}
US_PER_S = 1_000_000


class Numa(FactPart):
    """Memory that is nearer to some processors than to others."""

    nodes: int | None = None
    balancing: str | None = None
    """Whether the kernel moves pages to where they are used."""


class Frequency(FactPart):
    """The driver and its mode, and between which frequencies processors choose."""

    driver: str | None = None
    mode: str | None = None
    boost: str | None = None
    """'on' or 'off': whether they go beyond their base frequency."""
    lowest_hz: int | None = None
    highest_hz: int | None = None
    possible_hz: int | None = None
    preference: str | int | None = None


@dataclass(frozen=True)
class IdleState:
    """A state in which a processor waits."""

    name: str
    exit_s: float
    """How long it takes to leave it, at worst."""
    stay_s: float
    """How long it must last to be worth it: the kernel chooses it for a wait that it expects to be as long."""


class Idle(FactPart):
    """Where processors wait."""

    driver: str | None = None
    governor: str | None = None
    deepest: str | None = None
    """The deepest state that is in use, and the time to leave it: 'C6 (133 µs)'."""
    states: str | None = None
    times: str | None = None
    """'C1 1/2 µs, C6 133/600 µs': to leave it, and to stay in it."""
    switched_off: str | None = None
    limit: str | None = None
    """'20 µs': a program asks that no state takes longer to leave."""

    @property
    def with_times(self) -> list[IdleState]:
        """The states that a processor may enter and whose times are known."""
        limit = re.match(r"\d+", self.limit or "")
        states = [
            IdleState(match["name"].strip(), int(match["exit"]) / US_PER_S, int(match["stay"]) / US_PER_S)
            for match in _IDLE_STATE.finditer(self.times or "")
        ]
        return [state for state in states if limit is None or state.exit_s <= int(limit[0]) / US_PER_S]


def parse_cpu_model(text: str) -> str:
    """Return the processor's name from `lscpu` or /proc/cpuinfo."""
    values = key_values(text, ":")
    for key in ("Model name", "model name", "cpu model", "cpu", "Model", "Hardware"):
        if values.get(key):
            return values[key]
    raise ValueError("no model name")


def parse_governor(text: str) -> str:
    """Return the governor of all processors, or all that are in use."""
    return ", ".join(parse_words(text))


def parse_smt(text: str) -> str:
    """Return whether a core runs several threads at a time."""
    return {"notsupported": "not supported", "notimplemented": "not supported", "forceoff": "off for good"}.get(
        text, text
    )


def parse_numa(text: str) -> Numa:
    """Return the number of nodes that are online, and whether the kernel balances them."""
    values = dict(lines(text))
    balancing = {"0": "off", "1": "on", "2": "by memory tier"}.get(values.get("numa_balancing", ""))
    nodes = len(_range_members(values["online"])) if "online" in values else None
    return Numa.of(nodes=nodes, balancing=balancing)


def _range_members(text: str) -> list[int]:
    """Return the numbers of a list of the kernel's: '0-2,5' are 0, 1, 2 and 5."""
    pairs = (part.partition("-")[::2] for part in text.strip().split(","))
    return [number for low, high in pairs for number in range(int(low), int(high or low) + 1)]


def parse_frequency(text: str) -> Frequency:
    """Return the settings of the first processor."""
    values = parse_values(text)
    boost = values.get("boost", None if "no_turbo" not in values else 1 - int(values["no_turbo"]))
    hertz = {key: int(values[name]) * 1000 for key, name in _FREQUENCIES.items() if name in values}
    return Frequency.of(
        driver=values.get("scaling_driver"),
        mode=values.get("status"),
        boost=on_or_off(boost),
        **hertz,
        preference=values.get("energy_performance_preference"),
    )


def parse_idle(text: str) -> Idle:
    """Return driver and governor, and the states of the first processor."""
    values = dict(lines(text))
    count = sum(re.fullmatch(r"state\d+ name", name) is not None for name in values)
    keys = ("name", "latency", "disable", "residency")
    states = [tuple(values.get(f"state{n} {key}", "") for key in keys) for n in range(count)]
    used = [(name, latency, stay) for name, latency, off, stay in states if off in ("", "0")]
    deepest = f"{used[-1][0]} ({used[-1][1]} µs)" if used else None
    times = [f"{name} {latency}/{stay} µs" for name, latency, stay in used if latency and stay]
    limit = values.get("limit", "")
    return Idle.of(
        driver=values.get("current_driver"),
        governor=values.get("current_governor") or values.get("current_governor_ro"),
        deepest=deepest,
        states=", ".join(name for name, _, _ in used),
        times=", ".join(times),
        switched_off=", ".join(name for name, _, off, _ in states if off not in ("", "0")),
        limit=f"{limit} µs" if limit.isdecimal() and int(limit) < _NO_LATENCY_LIMIT else None,
    )


def parse_mitigations(text: str) -> dict[str, Any]:
    """Return each weakness of processors that the kernel knows, and what it does about it, in the kernel's words."""
    return drop_unknown(dict(lines(text)))


def parse_different(text: str) -> str:
    """Return what all processors say, or all that they say, in the order in which it comes."""
    return ", ".join(dict.fromkeys(text.split()))


class ProcessorFacts(Group):
    """The processors."""

    section: ClassVar = "Processor"
    model: str | None = fact(
        "processor", "lscpu || cat /proc/cpuinfo", parse_cpu_model, key="cpu_model", area="machine", rank=30
    )
    architecture: str | None = fact("architecture", "uname -m", key="machine", area="machine", rank=20)
    count: int | None = fact(
        "processors in use", "getconf _NPROCESSORS_ONLN || nproc", int, key="cpus", area="machine", rank=40
    )
    smt: str | None = fact(
        "simultaneous multithreading", "cat /sys/devices/system/cpu/smt/control", parse_smt, area="machine", rank=80
    )
    numa: Numa | None = fact("NUMA", _NUMA, parse_numa, area="machine", rank=90)
    governor: str | None = fact("frequency governor",
        "cat /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor", parse_governor, key="cpu_governor",
        area="machine", rank=50)  # fmt: skip
    frequency: Frequency | None = fact("frequency", _FREQUENCY, parse_frequency, key="cpu_frequency",
        area="machine", rank=60,
        parts={"lowest_hz": "lowest", "highest_hz": "highest", "possible_hz": "highest possible"})  # fmt: skip
    idle: Idle | None = fact("idle states", _IDLE, parse_idle, key="cpu_idle", area="machine", rank=70,
        parts={"switched_off": "switched off", "times": "time to leave, and to stay in", "limit": "limit"})  # fmt: skip
    mitigations: Mapping[str, str] | None = fact(
        "mitigations", _MITIGATIONS, parse_mitigations, key="cpu_mitigations", area="system", rank=30
    )
    microcode: str | None = fact(
        "microcode", _MICROCODE, parse_different, key="cpu_microcode", area="machine", rank=170
    )
    clocksource: str | None = fact(
        "clock source", "cat /sys/devices/system/clocksource/clocksource0/current_clocksource", area="machine", rank=130
    )

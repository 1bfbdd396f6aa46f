"""What a box is, and what a session may do there: kernel, processors, memory, storage, programs, rights.

A fact is one field of a group. Its `fact(...)` says what it is called, how a box is asked for it, how the answer is
parsed, and whether runs are compared by it. None means unknown. In run.json `facts` is one flat object:
`BoxFacts.from_record` reads it, `as_record` writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from mountlab.core.box_facts.base import Fact, FactPart, Group
from mountlab.core.box_facts.kernel import KernelFacts
from mountlab.core.box_facts.machine import MachineFacts
from mountlab.core.box_facts.memory import MemoryFacts
from mountlab.core.box_facts.processors import IdleState, ProcessorFacts
from mountlab.core.box_facts.programs import InstalledProgram, ProgramFacts
from mountlab.core.box_facts.rights import RightsFacts
from mountlab.core.box_facts.storage import PART_WORDS, StorageFacts
from mountlab.core.box_facts.surveyed import Surveyed
from mountlab.core.errors import StoreError

__all__ = [
    "AREAS", "COMPARED", "FACTS", "SECTIONS", "BoxFacts", "Fact", "FactPart", "IdleState", "InstalledProgram",
    "RightsFacts", "Surveyed", "fact_of",
]  # fmt: skip

SECTIONS = (
    "Machine", "Processor", "Memory", "Kernel", "Storage", "Limits of the session", "Programs", "Mountlab's own",
)  # fmt: skip
"""In the order in which a report shows them."""
AREAS = ("system", "machine", "limits", "virtualisation", "device", "rights")
"""What an owner changes at a time, the likeliest causes of a difference first."""
_GROUPS: Mapping[str, type[Group]] = {
    "machine": MachineFacts,
    "processors": ProcessorFacts,
    "memory": MemoryFacts,
    "kernel": KernelFacts,
    "storage": StorageFacts,
    "programs": ProgramFacts,
    "rights": RightsFacts,
    "surveyed": Surveyed,
}
_CLIENTS = Fact("clients", key="clients", section="Mountlab's own", attribute="clients")
FACTS: Mapping[str, Fact] = {
    **{fact.key: fact for name, group in _GROUPS.items() for fact in group.facts(name)},
    _CLIENTS.key: _CLIENTS,
}
"""Every fact by its key in run.json, in the order of the groups."""
COMPARED: Mapping[str, tuple[str, ...]] = {
    area: tuple(fact.key for fact in sorted(FACTS.values(), key=lambda fact: fact.rank) if fact.area == area)
    for area in AREAS
}
"""The facts that are compared between runs, by area, the likeliest cause of a difference first."""


def fact_of(key: str) -> Fact:
    """Return what is known of a fact, of 'disk NAME', or of a key of another version: in the words of the key."""
    if key in FACTS:
        return FACTS[key]
    if key.startswith("disk "):
        return Fact(key, key=key, section="Storage", parts=PART_WORDS)
    plain = key.removesuffix("_bytes").removesuffix("_s").replace("_", " ")
    return Fact(plain, key=key, section="Mountlab's own")


@dataclass(frozen=True, kw_only=True)
class BoxFacts:
    """All that is known of a box."""

    machine: MachineFacts = field(default_factory=MachineFacts)
    processors: ProcessorFacts = field(default_factory=ProcessorFacts)
    memory: MemoryFacts = field(default_factory=MemoryFacts)
    kernel: KernelFacts = field(default_factory=KernelFacts)
    storage: StorageFacts = field(default_factory=StorageFacts)
    programs: ProgramFacts = field(default_factory=ProgramFacts)
    rights: RightsFacts = field(default_factory=RightsFacts)
    surveyed: Surveyed = field(default_factory=Surveyed)
    clients: Mapping[str, BoxFacts] = field(default_factory=dict)
    """Further boxes from which the workloads of the sweep are driven, by name."""
    of_other_versions: Mapping[str, Any] = field(default_factory=dict)
    """Facts of a run.json that this version does not know, as they are there."""

    @classmethod
    def from_record(cls, record: Mapping[str, Any], where: str = "run.json: facts") -> BoxFacts:
        """Read `facts` of a run.json. Raises StoreError for a value of another type than ours."""
        groups: dict[str, dict[str, Any]] = {name: {} for name in _GROUPS}
        others: dict[str, Any] = {}
        for key, value in record.items():
            fact = FACTS.get(key)
            if fact is None:
                others[key] = value
            elif fact is not _CLIENTS:
                groups[fact.group][fact.attribute] = value
        values: dict[str, Any] = {name: _checked(name, own, where) for name, own in groups.items() if own}
        clients = record.get(_CLIENTS.key) or {}
        if not isinstance(clients, Mapping) or not all(isinstance(own, Mapping) for own in clients.values()):
            raise _refusal(f"{where}.clients", clients, "an object of objects")
        read = {name: cls.from_record(own, f"{where}.clients.{name}") for name, own in clients.items()}
        return cls(**values, clients=read, of_other_versions=others)

    def as_record(self) -> dict[str, Any]:
        """Return `facts` of a run.json: what was read or found, None where it is unknown."""
        record: dict[str, Any] = {}
        groups = {name: getattr(self, name).as_record() for name in _GROUPS}
        for fact in FACTS.values():
            if fact.attribute in groups.get(fact.group, ()):
                record[fact.key] = groups[fact.group][fact.attribute]
        if self.clients:
            record[_CLIENTS.key] = {name: facts.as_record() for name, facts in self.clients.items()}
        return {**record, **self.of_other_versions}

    def value(self, key: str) -> Any:
        """Return a fact by its key in run.json; None where it is unknown."""
        fact = FACTS[key]
        return getattr(getattr(self, fact.group) if fact.group else self, fact.attribute)

    def with_survey(self, surveyed: Surveyed) -> BoxFacts:
        """Return the facts, and what was found for a sweep beside what was found before."""
        return replace(self, surveyed=self.surveyed.merged(surveyed))

    @property
    def memory_limit(self) -> int | None:
        """The memory that the session's control group may use, where that is less than the box has."""
        limit, memory = self.rights.limits and self.rights.limits.memory_bytes, self.memory.total_bytes
        return limit if isinstance(limit, int) and (memory is None or limit < memory) else None

    @property
    def idle_states(self) -> list[IdleState]:
        """The idle states that a processor may enter, with times; [] where they are not known."""
        polls = (self.kernel.command_line or {}).get("idle") == "poll"
        return self.processors.idle.with_times if self.processors.idle and not polls else []

    @property
    def drive_logs(self) -> dict[str, tuple[str, ...]]:
        """Drive to the command that prints its log of health, where root may ask for it."""
        sensors = (self.storage.sensors or {}) if self.rights.as_root else {}
        return {name: tuple(sensor.log.split()) for name, sensor in sensors.items() if sensor.log is not None}


def _checked(name: str, values: Mapping[str, Any], where: str) -> Group:
    try:
        return _GROUPS[name].model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        attribute, *inside = map(str, first["loc"])
        key = next(fact.key for fact in FACTS.values() if (fact.group, fact.attribute) == (name, attribute))
        place = ".".join((where, key, *inside))
        raise _refusal(place, first["input"], first["msg"].removeprefix("Input should be ")) from error


def _refusal(where: str, got: object, allowed: str) -> StoreError:
    return StoreError("not a run of Mountlab's", where=where, got=repr(got)[:200], allowed=allowed)

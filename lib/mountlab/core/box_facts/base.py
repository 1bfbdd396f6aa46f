"""What one fact is: how a box is asked for it, how the answer is parsed, and how people read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from mountlab.core.box_facts.parsing import drop_unknown

T = TypeVar("T")
Listed = Annotated[tuple[T, ...], Field(strict=False)]
"""A list of JSON."""


@dataclass(frozen=True)
class Fact:
    """How a box is asked for one fact, how the answer is parsed, what it is called, whether runs are compared by it."""

    words: str
    """What it is called inside a sentence."""
    script: str = ""
    """POSIX sh with $mount_root, $output_root and $user set; its standard error is thrown away. '' where the box is not
    asked for it by `mountlab.box.facts.gather`."""
    parse: Callable[[str], Any] = str
    """Gets what the script printed, without blank space around it, and never ''; a ValueError from it means unknown."""
    key: str = ""
    """Its name in run.json; '' for that of its field."""
    section: str = ""
    """In which section of a report it stands, one of SECTIONS; '' for that of its group."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """Of a fact with several values: what those are called whose key is no word of the kernel's."""
    lacking: str = ""
    """What it means that such a fact has no value of a name that another run has; '' where nothing is known then."""
    area: str = ""
    """One of AREAS, for a fact that is compared between runs."""
    rank: int = 0
    """Its place in its area: the likeliest cause of a difference has the lowest."""
    group: str = ""
    """Attribute of BoxFacts. This and the next are set by `facts()` of a group."""
    attribute: str = ""


def fact(
    words: str, script: str = "", parse: Callable[[str], Any] = str, *, default: object = None, **more: Any
) -> Any:
    """Return the default of a field of a group, with its Fact. `more`: other attributes of that."""
    return Field(default, json_schema_extra={"fact": Fact(words, script, parse, **more)})  # type: ignore[dict-item]


class FactPart(BaseModel):
    """Values that belong together. Those that another version of Mountlab kept, too, survive a round trip."""

    model_config = ConfigDict(frozen=True, strict=True, extra="allow", defer_build=True)

    @classmethod
    def of(cls, **values: Any) -> Self:
        """Return the values that are known. Raises ValueError where none is."""
        return cls(**drop_unknown(values))

    def as_record(self) -> dict[str, Any]:
        """Return what was given, as JSON has it: without the fields that were not given."""
        return self.model_dump(mode="json", exclude_unset=True)


class Group(FactPart):
    """Facts about one part of a box. None means unknown."""

    model_config = ConfigDict(extra="forbid")
    section: ClassVar[str]
    """Of a report."""

    @classmethod
    def facts(cls, group: str) -> Iterator[Fact]:
        """Yield the fact of each field; `group` is the name of the group in BoxFacts."""
        for name, info in cls.model_fields.items():
            extra: Any = info.json_schema_extra
            entry: Fact = extra["fact"]
            yield replace(
                entry, key=entry.key or name, section=entry.section or cls.section, group=group, attribute=name
            )

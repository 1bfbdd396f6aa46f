"""Parts of plug-ins: what installed packages register by entry points, beside Mountlab's own.

A part is loaded when it is first asked for. One that cannot be used is an error for a sweep that names it, and a
warning where all parts are listed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from traceback import extract_tb
from typing import Generic, TypeVar

from mountlab.core.errors import MountlabError, MountlabWarning, PluginError
from mountlab.core.numbers import listed

T = TypeVar("T")
TOOLS, FILESYSTEMS, CHECKS, PLOTS = GROUPS = (
    "mountlab.tools", "mountlab.filesystems", "mountlab.checks", "mountlab.plots",
)  # fmt: skip
"""The groups of entry points that are parts."""
EXAMPLES = "mountlab.examples"
"""The group of what `mountlab conform` tries them with."""


@dataclass(frozen=True)
class Entry:
    """One entry point of an installed distribution."""

    group: str
    name: str
    value: str
    distribution: str
    version: str
    load: Callable[[], object] = field(compare=False, repr=False)

    @property
    def owner(self) -> str:
        """The distribution with its version."""
        return f"{self.distribution} {self.version}"

    @property
    def where(self) -> str:
        """As it stands in a pyproject.toml."""
        return f"entry point {self.group}: {self.name} = {self.value}"

    def refuse(self, got: str, allowed: str) -> PluginError:
        """Return the error that says why this part is not used."""
        return PluginError(
            f"the plug-in {self.owner} cannot be used",
            where=self.where,
            got=got,
            allowed=allowed,
            next_step=f"mend it (`mountlab conform {self.distribution}` checks all of it), or uninstall it: "
            f".venv/bin/python -m pip uninstall {self.distribution}",
        )


@cache
def declared(group: str) -> tuple[Entry, ...]:
    """Return the entry points of a group that are installed, by distribution."""
    from importlib.metadata import entry_points  # takes as long as all else of `mountlab --help`

    found = [(each.dist, each) for each in entry_points(group=group)]
    entries = [
        Entry(group, each.name, each.value, own.name if own else "unknown", own.version if own else "", each.load)
        for own, each in found
    ]
    return tuple(sorted(entries, key=lambda each: (each.distribution, each.name)))


@contextmanager
def calling(entry: Entry | None, *, error: type[MountlabError] = PluginError, doing: str = "") -> Iterator[None]:
    """Turn what code of a plug-in raises into an error that names it. `entry`: None for a part of Mountlab's own."""
    try:
        yield
    except MountlabError:
        raise
    except (Exception, SystemExit) as failure:
        if entry is None:
            raise
        raise error(
            f"the plug-in {entry.owner} failed{f' {doing}' if doing else ''}",
            where=entry.where,
            got=words_of(failure),
            next_step=f"report it to the authors of {entry.distribution}",
        ) from failure


def words_of(failure: BaseException) -> str:
    """Return 'KeyError: 'x' (mountlab_tar/tool.py, line 3)': what was raised, and where."""
    frames = [each for each in extract_tb(failure.__traceback__) if not each.filename.startswith("<")]
    place = f" ({'/'.join(frames[-1].filename.split('/')[-2:])}, line {frames[-1].lineno})" if frames else ""
    return f"{type(failure).__name__}: {failure}{place}"


class Registry(Mapping[str, T], Generic[T]):
    """The parts of one kind by name: Mountlab's own, and those of plug-ins, each loaded when it is first asked for.

    As a mapping it has the parts that can be used: the others are left out with a warning. Asked for by its name, one
    that cannot be used raises PluginError.
    """

    def __init__(self, group: str, own: Mapping[str, T], kind: type[T], *, key: str) -> None:
        """`kind`: the class that every part derives from; `key`: the attribute that holds a part's name."""
        self.group, self.own, self.kind, self.key = group, own, kind, key
        self._loaded: dict[Entry, T | PluginError] = {}

    def __getitem__(self, name: str) -> T:
        if name in self.own:
            return self.own[name]
        entry = self.entry(name)
        if entry is None:
            raise KeyError(name)
        found = self._part(entry)
        if isinstance(found, PluginError):
            raise found
        return found

    def __contains__(self, name: object) -> bool:
        """Whether there is such a part, also one that cannot be used."""
        return name in self.own or any(each.name == name for each in declared(self.group))

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        yield from (entry.name for entry, _ in self.usable())

    def __len__(self) -> int:
        return len(list(iter(self)))

    def entry(self, name: str) -> Entry | None:
        """Return the entry point of a plug-in's part; None for one of Mountlab's own, and for an unknown name."""
        own = (each for each in declared(self.group) if each.name == name)
        return None if name in self.own else next(own, None)

    def of_plugins(self) -> Iterator[tuple[Entry, T | PluginError]]:
        """Load all parts of plug-ins; each with itself, or with why it cannot be used."""
        return ((entry, self._part(entry)) for entry in declared(self.group))

    def usable(self) -> Iterator[tuple[Entry, T]]:
        """Load all parts of plug-ins, and warn of those that cannot be used."""
        for entry, part in self.of_plugins():
            if isinstance(part, PluginError):
                warnings.warn(part.in_short, MountlabWarning, stacklevel=2)
            else:
                yield entry, part

    def _part(self, entry: Entry) -> T | PluginError:
        if entry not in self._loaded:
            try:
                self._loaded[entry] = self._load(entry)
            except PluginError as error:
                self._loaded[entry] = error
        return self._loaded[entry]

    def _load(self, entry: Entry) -> T:
        same = [each for each in declared(self.group) if each.name == entry.name]
        taken = ["Mountlab itself"] * (entry.name in self.own) + [each.owner for each in same if each != entry]
        if taken:
            raise entry.refuse(f"the name {entry.name!r}, which {listed(taken)} registers too", "a name of its own")
        needed = f"a subclass or an instance of {self.kind.__module__}.{self.kind.__qualname__}"
        try:
            found = entry.load()
            part = found() if isinstance(found, type) else found
        except (Exception, SystemExit) as failure:
            raise entry.refuse(words_of(failure), needed) from failure
        if self.kind not in type(part).__mro__:
            raise entry.refuse(f"{type(part).__module__}.{type(part).__qualname__}", needed)
        if (name := getattr(part, self.key, None)) != entry.name:
            raise entry.refuse(f"{self.key} = {name!r}", f"the name of its entry point, {entry.name!r}")
        return part  # type: ignore[return-value]  # the line above its own says so


def distributions(groups: Iterable[str] = GROUPS) -> dict[str, list[Entry]]:
    """Return the distributions that register parts, with their entry points."""
    found: dict[str, list[Entry]] = {}
    for group in groups:
        for entry in declared(group):
            found.setdefault(entry.distribution, []).append(entry)
    return found

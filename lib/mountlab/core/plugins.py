"""Parts of plug-ins: what installed packages register by entry points, beside Mountlab's own.

A part is loaded when it is first asked for. One that cannot be used is an error for a sweep that names it, and a
warning where all parts are listed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, is_dataclass
from functools import cache, partial
from traceback import extract_tb, walk_tb
from typing import Any, Generic, TypeVar

from mountlab.core import chain
from mountlab.core.answers import methods, mismatch, missing, wrong_values
from mountlab.core.errors import MountlabError, MountlabWarning, PluginError
from mountlab.core.groups import by_key
from mountlab.core.model import Sweep
from mountlab.core.numbers import listed

T = TypeVar("T")
TOOLS, FILESYSTEMS, CHECKS, PLOTS = GROUPS = (
    "mountlab.tools", "mountlab.filesystems", "mountlab.checks", "mountlab.plots",
)  # fmt: skip
"""The groups of entry points that are parts."""
EXAMPLES = "mountlab.examples"
"""The group of examples with which `mountlab conform` tries them."""


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
    def module(self) -> str:
        """The package that it comes from."""
        return self.value.partition(":")[0].partition(".")[0].strip()

    @property
    def where(self) -> str:
        """The entry point as it stands in a pyproject.toml."""
        return f"entry point {self.group}: {self.name} = {self.value}"

    def refuse(self, got: str, allowed: str) -> PluginError:
        """Return the error that says why this part is not used."""
        return PluginError(
            f"the plug-in {self.owner} cannot be used",
            where=self.where,
            got=got,
            allowed=allowed,
            next_step=f"mend it (`mountlab conform {self.distribution}` checks all of it), or uninstall it: "
            f".venv/bin/uv pip uninstall {self.distribution}",
        )

    def unusable(self, name: str, got: str, allowed: str) -> PluginError:
        """Return the error for an unusable answer of this part. `name`: the method or attribute."""
        return PluginError(
            f"the plug-in {self.owner} gave an answer that cannot be used",
            where=f"{self.where}, {name}",
            got=got,
            allowed=allowed,
            next_step=f"report it to the authors of {self.distribution}",
        )


def declared(group: str) -> tuple[Entry, ...]:
    """Return the entry points of a group that are installed, by distribution."""
    return tuple(entry for entry in installed() if entry.group == group)


@cache
def installed() -> tuple[Entry, ...]:
    """Return all entry points of plug-ins, read once: to look for them in every distribution takes 40 ms."""
    from importlib.metadata import entry_points  # takes as long as all else of `mountlab --help`

    everything = entry_points()
    points = [(ep.dist, ep) for group in (*GROUPS, EXAMPLES) for ep in everything.select(group=group)]
    entries = [
        Entry(ep.group, ep.name, ep.value, dist.name if dist else "unknown", dist.version if dist else "", ep.load)
        for dist, ep in points
    ]
    return tuple(sorted(entries, key=lambda entry: (entry.distribution, entry.name)))


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


@contextmanager
def blaming() -> Iterator[None]:
    """Turn an error that code of a plug-in raised, wherever it was called, into one that names the plug-in."""
    try:
        yield
    except MountlabError:
        raise
    except Exception as failure:
        modules = {
            str(frame.f_globals.get("__name__", "")).split(".")[0] for frame, _ in walk_tb(failure.__traceback__)
        }
        entries = [entry for group in distributions().values() for entry in group if entry.module in modules]
        if not entries:
            raise
        raise PluginError(
            f"the plug-in {entries[0].owner} failed",
            got=words_of(failure),
            next_step=f"report it to the authors of {entries[0].distribution}",
        ) from failure


def words_of(failure: BaseException) -> str:
    """Return 'KeyError: 'x' (mountlab_tar/tool.py, line 3)': what was raised, and where."""
    frames = [frame for frame in extract_tb(failure.__traceback__) if not frame.filename.startswith("<")]
    place = f" ({'/'.join(frames[-1].filename.split('/')[-2:])}, line {frames[-1].lineno})" if frames else ""
    return f"{type(failure).__name__}: {failure}{place}"


class Registry(Mapping[str, T], Generic[T]):
    """The parts of one kind by name: Mountlab's own, and those of plug-ins, each loaded when it is first asked for.

    As a mapping it has the parts that can be used: the others are left out with a warning. Asked for by its name, one
    that cannot be used raises PluginError.
    """

    def __init__(
        self, group: str, own: Mapping[str, T], kind: type[T], *, key: str, unchecked: Collection[str] = ()
    ) -> None:
        """`kind`: the class that every part derives from; `key`: the attribute that holds a part's name; `unchecked`:
        methods whose callers look at the answer themselves."""
        self.group, self.own, self.kind, self.key, self.unchecked = group, own, kind, key, unchecked
        self._loaded: dict[Entry, T | PluginError] = {}

    def __getitem__(self, name: str) -> T:
        if name in self.own:
            return self.own[name]
        entry = self.entry(name)
        if entry is None:
            raise KeyError(name)
        part = self._part(entry)
        if isinstance(part, PluginError):
            raise part
        return part

    def __contains__(self, name: object) -> bool:
        """Return whether there is a part of this name, even one that cannot be used."""
        return name in self.own or any(entry.name == name for entry in declared(self.group))

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        yield from (entry.name for entry, _ in self.usable())

    def __len__(self) -> int:
        return len(list(iter(self)))

    def entry(self, name: str) -> Entry | None:
        """Return the entry point of a plug-in's part; None for one of Mountlab's own, and for an unknown name."""
        entries = (entry for entry in declared(self.group) if entry.name == name)
        return None if name in self.own else next(entries, None)

    def of_plugins(self) -> Iterator[tuple[Entry, T | PluginError]]:
        """Load all parts of plug-ins. Yield each entry point with its part, or with the error why it cannot be used."""
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
        same = [other for other in declared(self.group) if other.name == entry.name]
        owners = ["Mountlab itself"] * (entry.name in self.own) + [other.owner for other in same if other != entry]
        if owners:
            raise entry.refuse(f"the name {entry.name!r}, which {listed(owners)} registers too", "a name of its own")
        needed = f"a subclass or an instance of {self.kind.__module__}.{self.kind.__qualname__}"
        try:
            loaded = entry.load()
            if self.kind in getattr(loaded, "__mro__", type(loaded).__mro__) and (lacks := missing(loaded, self.kind)):
                raise entry.refuse(f"{self.key} {entry.name} without {listed([*lacks])}", "; ".join(lacks.values()))
            part = loaded() if isinstance(loaded, type) else loaded
        except PluginError:
            raise
        except (Exception, SystemExit) as failure:
            raise entry.refuse(words_of(failure), needed) from failure
        if self.kind not in type(part).__mro__:
            raise entry.refuse(f"{type(part).__module__}.{type(part).__qualname__}", needed)
        if (name := getattr(part, self.key, None)) != entry.name:
            raise entry.refuse(f"{self.key} = {name!r}", f"the name of its entry point, {entry.name!r}")
        with calling(entry, doing="to say what it is"):
            values = list(wrong_values(part, self.kind))
        for name, wrong in values:
            raise entry.refuse(f"{name}{wrong.place} = {wrong.got}", wrong.allowed)
        if not is_dataclass(self.kind):
            _check_answers(part, entry, self.kind, self.unchecked)
        return part  # type: ignore[return-value]  # the line above its own says so


def _check_answers(part: object, entry: Entry, kind: type, unchecked: Collection[str]) -> None:
    """Have each method of a part raise PluginError for what it raises, and for an answer of another type."""
    for name, method, hint in methods(kind):
        if name not in unchecked:
            means = " ".join((method.__doc__ or "").split())
            object.__setattr__(part, name, partial(_ask, getattr(part, name), entry, f"{name}()", hint, means))


def _ask(
    method: Callable[..., Any], entry: Entry, name: str, hint: Any, means: str, /, *args: Any, **kwargs: Any
) -> Any:
    with calling(entry, doing=f"in {name}"):
        answer = method(*args, **kwargs)
    check_answer(entry, answer, hint, name, means=means)
    return answer


def check_answer(entry: Entry | None, answer: object, hint: Any, name: str, *, means: str = "") -> None:
    """Raise PluginError where a plug-in's part answered with another type than `hint`. `entry`: None for a part of
    Mountlab's own, which is not looked at; `means`: what the answer is, in words."""
    wrong = mismatch(answer, hint) if entry else None
    if entry and wrong:
        raise entry.unusable(f"{name}{wrong.place}", wrong.got, f"{wrong.allowed}. {means}".removesuffix(". "))


def distributions(groups: Iterable[str] = GROUPS) -> dict[str, list[Entry]]:
    """Return the distributions that register parts, with their entry points."""
    return by_key((entry.distribution, entry) for group in groups for entry in declared(group))


# --- what a run keeps of them -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Used:
    """A distribution whose parts a run used."""

    distribution: str
    version: str
    parts: Mapping[str, Sequence[str]]
    """Kind ('tools') to names."""

    @property
    def words(self) -> str:
        """The plug-in as text: 'mountlab-untar 0.1.0 (tools: untar; checks: few-files)'."""
        return f"{self.distribution} {self.version} ({self.parts_text})"

    @property
    def parts_text(self) -> str:
        """The parts as text: 'tools: untar; checks: few-files'."""
        return "; ".join(f"{kind}: {', '.join(names)}" for kind, names in self.parts.items())

    @property
    def installed(self) -> str | None:
        """The version that is installed now; None where there is none."""
        entries = distributions().get(self.distribution)
        return entries[0].version if entries else None

    @property
    def difference(self) -> str:
        """How the installed version differs from the used one; '' where it does not."""
        now = self.installed
        if now == self.version:
            return ""
        return f"{self.words}: {f'version {now} is installed now' if now else 'it is not installed now'}"


def used_by(sweep: Sweep) -> list[Used]:
    """Return the plug-ins that a run of a sweep uses: those of its tools and file systems, and all that have checks and
    plots, which look at every run."""
    families = [*sweep.filesystems, *(fs.over for fs in sweep.filesystems if fs.over)]
    names = {TOOLS: {workload.tool for workload in sweep.workloads}, FILESYSTEMS: {fs.type for fs in families}}
    used: dict[tuple[str, str], dict[str, list[str]]] = {}
    for group in GROUPS:
        for entry in declared(group):
            if entry.name in names.get(group, {entry.name}):
                parts = used.setdefault((entry.distribution, entry.version), {})
                parts.setdefault(kind_of(group), []).append(entry.name)
    return [Used(name, version, parts) for (name, version), parts in used.items()]


def record(sweep: Sweep) -> dict[str, dict[str, Any]]:
    """Return what run.json keeps of the plug-ins that a run of a sweep uses."""
    return {used.distribution: {"version": used.version, **used.parts} for used in used_by(sweep)}


def recorded(record: Mapping[str, Any]) -> list[Used]:
    """Return the plug-ins that a run.json names, its extensions included; none in a run of an earlier version. Raises
    TypeError, LookupError or AttributeError for values of other types."""
    used: dict[tuple[str, str], dict[str, list[str]]] = {}
    for part in (record, *record.get(chain.EXTENSIONS, ())):
        for name, plugin in part.get("plugins", {}).items():
            parts = used.setdefault((str(name), str(plugin["version"])), {})
            for kind in map(kind_of, GROUPS):
                names = [*parts.get(kind, ()), *(str(name) for name in plugin.get(kind, ()))]
                parts |= {kind: list(dict.fromkeys(names))} if names else {}
    kinds = tuple(map(kind_of, GROUPS))
    in_order = {key: {kind: parts[kind] for kind in kinds if kind in parts} for key, parts in used.items()}
    return [Used(name, version, parts) for (name, version), parts in in_order.items()]


def kind_of(group: str) -> str:
    """Return 'tools' of 'mountlab.tools'."""
    return group.removeprefix("mountlab.")

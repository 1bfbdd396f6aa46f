"""Compare the requested options of a file system with the kernel's report on it.

The rules are general, so that they judge unknown options too. What the kernel shows by itself is known
from the control: the same file system, mounted once without the user's options.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mountlab.core.findings import OptionEvidence, OptionState
from mountlab.core.model import Filesystem
from mountlab.core.units import kernel_bytes
from mountlab.filesystems.evidence import (
    ext4_options,
    file_system_device,
    images,
    kernel_log,
    mount_of,
    mount_options,
    parts_by_heading,
    settings,
    shown_alone,
    split_options,
)
from mountlab.filesystems.option_values import COMPARE, NEGATIONS, RIVALS, SHOWN_BY_ABSENCE
from mountlab.filesystems.superblock import NOTHING, Judgement, journal_features, read_back
from mountlab.filesystems.without_effect import MountState, kernel_version, undone, without_effect

Files = Mapping[str, str]
"""File name to text, as kept in raw/<mount id>/."""

AGAIN = "again-evidence.txt"
"""Among the files of a control: the evidence of the same file system made once more without options."""
_ELSEWHERE = "shown as "


def effects(
    fs: Filesystem, evidence: Files, control: Files | None = None, *, extra: Sequence[str] = ()
) -> list[OptionEvidence]:
    """Return the state of each mount option, mkfs option and tunable that was asked for, of what the file system lies
    on, and of every option that the kernel shows only with them.

    `evidence`: the files of this mount; `control`: those of the mount without options, None where there is none. Its
    `again-evidence.txt` is of a second making without options, which tells what differs at each making.
    `extra`: mount options of ours, judged before the user's.
    """
    now, plain = _seen(evidence), _seen(control) if control else None
    requested = list(_requested([word for text in (*extra, *fs.options) for word in split_options(text)]))
    mount, added = _mount(fs, requested, now, plain)
    again = parts_by_heading((control or {}).get(AGAIN, ""))
    made = read_back(fs.type, fs.mkfs, now.parts, plain.parts if plain else {}, again)
    rows = [
        *_rows(fs, "mount", ((option.text, effect) for option, effect in mount)),
        *_rows(fs, "mkfs", made),
        *_rows(fs, "tunable", ((f"{k}={v}", _in_sysfs(now, k, v) or NOTHING) for k, v in fs.tunables.items())),
        *_rows(fs, "backing", _backing(fs, evidence, now)),
    ]
    return [*rows, *_rows(fs, "mount", (("", ("added", word)) for word in added))]


def _rows(fs: Filesystem, kind: str, judgements: Iterator[tuple[str, Judgement]]) -> Iterator[OptionEvidence]:
    for option, (state, says) in judgements:
        yield OptionEvidence(filesystem=fs.name, option=option, kind=kind, state=state, kernel_says=says)  # type: ignore[arg-type]


# --- what the kernel says ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Seen:
    """The kernel's report on one mount."""

    fstype: str
    shown: Mapping[str, str]
    """Option to value, '' without one."""
    parts: Mapping[str, str]
    settings: Mapping[str, str]
    log: list[str]
    device: str
    kernel: tuple[int, ...]
    accepts_anything: bool
    alone: Mapping[str, Mapping[str, str]]
    """Option as asked for to what is shown with it and nothing else, of a control that was asked."""


def _seen(evidence: Files) -> _Seen:
    parts = parts_by_heading(evidence["evidence.txt"])
    line, options = mount_of(evidence), mount_options(evidence)
    return _Seen(
        fstype=line.fstype,
        shown={**options, **ext4_options(evidence), **options},  # in this order: what is not a default comes first
        parts=parts,
        settings=settings(evidence),
        log=kernel_log(evidence),
        device=parts.get("name") or line.source.rpartition("/")[2],
        kernel=kernel_version(parts.get("/proc/sys/kernel/osrelease", "")),
        accepts_anything=evidence.get("strict.txt", "").startswith("accepts"),
        alone=shown_alone(evidence),
    )


@dataclass(frozen=True)
class _RequestedOption:
    """One mount option that was asked for."""

    text: str
    key: str
    value: str
    later: tuple[str, ...]
    """The words that follow it."""

    @property
    def brings(self) -> tuple[str, ...]:
        """The flags that mount(8) sets with it, less those that a later word takes away."""
        flags = () if self.value else _BRINGS.get(self.key, ())
        return tuple(flag for flag in flags if flag.removeprefix("no") not in self.later)

    @property
    def opposites(self) -> tuple[str, ...]:
        """The names under which the kernel would show that the contrary holds."""
        positive = _OPPOSITE_FLAGS.get(self.key, self.key.removeprefix("no"))
        return (positive,) if positive != self.key else (f"no{self.key}",)


def _requested(words: list[str]) -> Iterator[_RequestedOption]:
    """Yield each option with the words that follow it: of two that contradict each other the last one wins."""
    for at, word in enumerate(words):
        key, _, value = word.partition("=")
        yield _RequestedOption(word, key, value.strip("\"'"), later=tuple(words[at + 1 :]))


def _shows(key: str, value: str) -> str:
    return f"{key}={value}" if value else key


# --- mount options ----------------------------------------------------------------------------------------------------

_USER_SPACE = {
    "defaults", "auto", "noauto", "nofail", "_netdev", "comment", "user", "nouser", "users", "nousers", "owner",
    "noowner", "group", "nogroup",
}  # fmt: skip
"""Words that mount(8) keeps to itself, beside those that begin with x- (mount(8), 'filesystem-independent')."""
_OF_USERS = ("nosuid", "nodev", "noexec")
_BRINGS = {"user": _OF_USERS, "users": _OF_USERS, "owner": _OF_USERS[:2], "group": _OF_USERS[:2]}
"""Flags that mount(8) sets with a word of its own. A later exec, suid or dev takes one away; user=NAME brings none."""
_ATIME = {"atime", "noatime", "relatime", "norelatime", "strictatime", "nostrictatime"}
_OF_THE_MOUNT = {"nosuid", "nodev", "noexec", "nodiratime", "nosymfollow"}
_FLAGS = {"sync", "dirsync", "mand", "lazytime"} | _OF_THE_MOUNT
"""What the kernel shows of every file system where it is set (fs/proc_namespace.c). Of those of the mount alone the
file system does not even learn."""
_OPPOSITE_FLAGS = {"async": "sync"}


def _mount(
    fs: Filesystem, requested: list[_RequestedOption], now: _Seen, plain: _Seen | None
) -> tuple[list[tuple[_RequestedOption, Judgement]], list[str]]:
    """Return each option with its state, and what is shown beyond them."""
    by_rule = {option: _first_of(option, now, plain) for option in requested}
    new = _news(fs, requested, now, plain)
    open_ones = [option for option, state in by_rule.items() if state is None]
    movers = [
        option
        for option, state in by_rule.items()
        if state and option.key not in _OF_THE_MOUNT | _ATIME and not _as_in(plain, now, option)
    ]
    only = len(open_ones) == 1 and not (movers or fs.mkfs or fs.tunables)
    states = []
    for option in requested:
        effect = by_rule[option] or _unnamed(option, now, plain, new, only)
        states.append((option, _idle(option, effect, now)))
    explained = {word for _, (_, says) in states for word in says.removeprefix(_ELSEWHERE).split(", ")}
    return _contradictions(states), [word for word in new if word not in explained]


def _idle(option: _RequestedOption, effect: Judgement, now: _Seen) -> Judgement:
    """Return the state of an option that the kernel shows and that does nothing here; else as it was found."""
    state, says = effect
    if (state not in _SHOWN and option.key not in now.shown) or _means_absence(option, now):
        return effect
    why = without_effect(now.fstype, option.key, option.value, MountState(now.shown, now.parts), now.kernel)
    return ("without effect", f"{says}, but without effect here: {why}") if why else effect


_SHOWN = ("in effect", "changed")


def _first_of(option: _RequestedOption, now: _Seen, plain: _Seen | None) -> Judgement | None:
    """Return the first rule that can tell; None where the kernel shows nothing under the option's name."""
    rules = (_by_family, _by_journal, _by_negation, _by_name, _by_absence, _by_order, _by_root, _by_setting, _by_log)
    return next((effect for rule in rules if (effect := rule(option, now, plain))), None)


def _by_family(option: _RequestedOption, now: _Seen, plain: _Seen | None) -> Judgement | None:
    """Return what the kernel does for every file system alike, and therefore always shows."""
    shown = now.shown
    if (option.key in _USER_SPACE or option.key.lower().startswith("x-")) and not option.brings:
        return ("in effect", "asks nothing of the kernel")
    if not shown:
        return ("not visible", "no such mount")
    if option.brings:
        absent = [flag for flag in option.brings if flag not in shown]
        return ("ignored", f"{', '.join(absent)}: absent") if absent else ("in effect", ", ".join(option.brings))
    if option.key in ("rw", "ro"):
        actual = "ro" if "ro" in shown else "rw"
        return ("in effect" if option.key == actual else "ignored", actual)
    if option.key in _ATIME:
        actual = next((word for word in ("noatime", "relatime") if word in shown), "strictatime")
        wanted = actual != f"no{option.key}" if option.key == "atime" else option.key == actual
        if option.key in ("norelatime", "nostrictatime"):
            wanted = option.key != f"no{actual}"
        return ("in effect" if wanted else "ignored", actual)
    if option.key in _FLAGS and option.key not in shown:
        return ("ignored", f"{option.key} is absent")
    opposite = option.opposites[0]
    if opposite not in _FLAGS:
        return None
    return ("ignored", opposite) if opposite in shown else ("in effect", f"{opposite} is absent")


def _by_journal(option: _RequestedOption, now: _Seen, plain: _Seen | None) -> Judgement | None:
    """ext3, ext4: what the journal's own super block says. /proc shows a bit that two options share only where both
    are set."""
    features = journal_features(now.parts)
    if features is None or option.key not in _OF_THE_JOURNAL:
        return None
    name = option.key.removeprefix("no")
    there = any(feature.startswith(name) for feature in features)
    says = f"journal features: {' '.join(features) or 'none'}"
    if there == (name == option.key):
        return ("in effect", says)
    return ("without effect", f"{option.key}, but {says}") if option.key in now.shown else ("ignored", says)


_OF_THE_JOURNAL = {"journal_async_commit", "journal_checksum", "nojournal_checksum"}


def _by_negation(option: _RequestedOption, now: _Seen, plain: _Seen | None) -> Judgement | None:
    """Return an option whose opposite the kernel shows wherever that is on."""
    other = NEGATIONS.get(now.fstype, {}).get(option.key) if not option.value else None
    if other is None or option.key in now.shown:
        return None
    return ("ignored", _shows(other, now.shown[other])) if other in now.shown else ("in effect", f"{other} is absent")


def _by_name(option: _RequestedOption, now: _Seen, plain: _Seen | None) -> Judgement | None:
    """Return the option under its own name, under that of another one which sets the same thing, or its opposite."""
    if option.key in now.shown:
        return _by_value(option, now, plain)
    rival = RIVALS.get((now.fstype, option.key), "")
    if rival in now.shown and not _means_absence(option, now):
        return ("changed", _shows(rival, now.shown[rival]))
    opposite = next((other for other in option.opposites if other in now.shown), None)
    if opposite is None:
        return None
    says = _shows(opposite, now.shown[opposite])
    return ("in effect" if option.value.lower() in _FALSE else "ignored", says)


def _by_value(option: _RequestedOption, now: _Seen, plain: _Seen | None) -> Judgement:
    """Judge an option that shows under its own name. The log may still say that it is ignored: discard, on a device
    without it. An option that the control shows too is in effect, whatever the log states."""
    fresh = plain is not None and plain.shown.get(option.key) != now.shown[option.key]
    logged = [line for line in _naming(option, now, plain) if _IGNORES.search(line)] if fresh else []
    says = "; ".join([_with_size(option.value, _shows(option.key, now.shown[option.key])), *logged])
    if not _fits(option, now, fresh=fresh):
        return ("changed", says)
    return ("ignored" if logged else "in effect", says)


def _by_absence(option: _RequestedOption, now: _Seen, plain: _Seen | None) -> Judgement | None:
    """Judge by absence: the opposite shows in the control and not here, or the kernel shows this value by nothing."""
    if _means_absence(option, now):
        rival = RIVALS.get((now.fstype, option.key), "")
        shows = _shows(rival, now.shown[rival]) if rival in now.shown else ""
        return ("ignored", shows) if shows else ("in effect", f"{option.key} is absent, which means {option.value}")
    gone = next(
        (other for other in option.opposites if plain and other in plain.shown and other not in now.shown), None
    )
    return ("in effect", f"{_shows(gone, plain.shown[gone])} is gone") if plain and gone and not option.value else None


def _means_absence(option: _RequestedOption, now: _Seen) -> bool:
    """Return whether the kernel shows the value that was asked for by showing nothing."""
    return option.value in SHOWN_BY_ABSENCE.get((now.fstype, option.key), ())


def _by_order(option: _RequestedOption, now: _Seen, plain: _Seen | None) -> Judgement | None:
    """Judge by order: a later option may turn this one off."""
    why = undone(now.fstype, option.key, option.later)
    return ("ignored", f"nothing: {why}") if why else None


def _by_root(option: _RequestedOption, now: _Seen, plain: _Seen | None) -> Judgement | None:
    """Mode and owner of the root directory, which stat shows where the mount options do not."""
    stated = dict(zip(("mode", "uid", "gid", "user", "group"), now.parts.get("root", "").split(), strict=False))
    if option.key not in ("mode", "uid", "gid") or "group" not in stated:
        return None
    names = {stated[option.key], stated.get({"uid": "user", "gid": "group"}.get(option.key, ""), "")}
    state: OptionState = "in effect" if option.value.lstrip("0") in {name.lstrip("0") for name in names} else "ignored"
    return (state, f"the root directory has {option.key} {stated[option.key]}")


def _by_setting(option: _RequestedOption, now: _Seen, plain: _Seen | None) -> Judgement | None:
    """Return a file of that name in the file system's own directory below /sys."""
    return _in_sysfs(now, option.key, option.value) if option.value else None


def _by_log(option: _RequestedOption, now: _Seen, plain: _Seen | None) -> Judgement | None:
    """Return a line of the kernel's log that names the option and says that it was ignored."""
    lines = [line for line in _naming(option, now, plain) if _IGNORES.search(line) or "disabled" in line]
    return ("ignored", "; ".join(lines)) if lines else None


def _unnamed(option: _RequestedOption, now: _Seen, plain: _Seen | None, new: list[str], only: bool) -> Judgement:
    """Return an option that shows nowhere under its own name. `only`: nothing else made a difference to the control."""
    if plain and option.text in plain.alone:
        if effect := _as_alone(plain.alone[option.text], now, plain):
            return effect
        new = []
    alike = [word for word in new if option.key.lower() in re.split(r"[^a-z0-9_]+", word.lower())]
    if alike or (only and new):
        return ("in effect", _ELSEWHERE + ", ".join(alike or new))
    logged = [line for line in _new_lines(now, plain) if _IGNORES.search(line) and _about(line, now)]
    if only and logged and plain is not None:
        return ("ignored", "; ".join(logged))
    if plain is not None and plain.accepts_anything:
        return ("ignored", f"nothing, and {now.fstype} accepts unknown options")
    if named := _naming(option, now, plain):
        return ("not visible", "nothing, but logged: " + "; ".join(named))
    return ("not visible", f"nothing of that name; one of these may be it: {', '.join(new)}") if new else NOTHING


def _as_alone(alone: Mapping[str, str], now: _Seen, plain: _Seen) -> Judgement | None:
    """Judge by the mount with this option alone: what it shows must show here too. None where it shows nothing."""
    brings = {key: value for key, value in alone.items() if plain.shown.get(key) != value}
    if not brings:
        return None
    words = ", ".join(_shows(key, value) for key, value in brings.items())
    if all(now.shown.get(key) == value for key, value in brings.items()):
        return ("in effect", f"{_ELSEWHERE}{words}")
    return ("ignored", f"nothing; alone it is shown as {words}")


def _as_in(plain: _Seen | None, now: _Seen, option: _RequestedOption) -> bool:
    """Return whether the kernel shows this option as it does without it being asked for."""
    names = (option.key, *option.opposites)
    return plain is not None and all(plain.shown.get(name) == now.shown.get(name) for name in names)


def _news(fs: Filesystem, requested: list[_RequestedOption], now: _Seen, plain: _Seen | None) -> list[str]:
    """Return what shows, is not in the control, and bears the name of nothing that was asked for."""
    if plain is None:
        return []
    claimed = {name for option in requested for name in (option.key, *option.opposites, *option.brings)}
    claimed |= {name.rpartition("/")[2] for name in fs.tunables} | {"rw", "ro"}
    if claimed & _ATIME:
        claimed |= _ATIME
    return [
        _shows(key, value)
        for key, value in now.shown.items()
        if key not in claimed and plain.shown.get(key) != value and not (key in plain.shown and value.startswith("/"))
    ]


def _contradictions(states: list[tuple[_RequestedOption, Judgement]]) -> list[tuple[_RequestedOption, Judgement]]:
    """Return the states with words for each option that another one overruled."""
    in_effect = [option for option, (state, _) in states if state == "in effect"]
    effective = {name: option for option in in_effect for name in (option.key, *option.brings)}

    def winner(option: _RequestedOption, says: str) -> str:
        names = [name for name in (option.key, *option.opposites, says) if name in effective]
        others = [name for name in names if effective[name].text != option.text]
        brought = [effective[name].text for name in others if name in effective[name].brings]
        return f", which {brought[0]} brings" if brought else ", which was asked for too" if others else ""

    return [
        (option, (state, f"{says}{winner(option, says)}" if state in ("ignored", "changed") else says))
        for option, (state, says) in states
    ]


# --- values -----------------------------------------------------------------------------------------------------------

_FALSE = {"0", "no", "off", "n", "false"}
_TRUE = {"1", "yes", "on", "y", "true"}
_WITHOUT = _FALSE | {"never", "none"}
_PAGE = 4096
_ROUNDING = 0.01


def _fits(option: _RequestedOption, now: _Seen, *, fresh: bool) -> bool:
    """Return whether the value that is shown is the one that was asked for. `fresh`: it is not what the control
    shows."""
    stated = now.shown[option.key]
    compare = COMPARE.get((now.fstype, option.key))
    if compare and compare(option.value, stated):
        return True
    if (now.fstype, option.key) in RIVALS:
        return False
    if not option.value:  # a default was filled in
        return stated.lower() not in _WITHOUT
    if not stated:  # a value that the kernel does not spell out
        return option.value.lower() in _TRUE or (fresh and option.value.lower() not in _WITHOUT)
    if option.value.endswith("%"):  # the kernel shows what the share comes to
        return fresh or option.value == stated
    return _same(option.value, stated) or stated in _ids(option, now)


def _ids(option: _RequestedOption, now: _Seen) -> set[str]:
    """uid=daemon is shown as a number: that of the root directory, if it bears this name."""
    root = now.parts.get("root", "").split()
    named = {"uid": (root[1], root[3]), "gid": (root[2], root[4])} if len(root) == 5 else {}
    number, name = named.get(option.key, ("", ""))
    return {number} if name == option.value else set()


def _same(requested: str, stated: str) -> bool:
    """Equal as text, number, size or set; or what is stated only adds a default after a colon. A size may be rounded up
    to whole pages."""
    ours, theirs = requested.lower(), stated.lower()
    if ours == theirs or theirs.startswith(f"{ours}:") or ours.lstrip("0") == theirs.lstrip("0"):
        return True
    if ":" in theirs and "/" not in theirs and (ours == "all" or set(ours.split(":")) == set(theirs.split(":"))):
        return True
    wanted, actual = kernel_bytes(ours), kernel_bytes(theirs)
    return wanted is not None and actual is not None and (wanted == actual or _rounded(wanted, actual, theirs))


def _rounded(wanted: int, actual: int, stated: str) -> bool:
    up = actual - wanted
    return stated[-1:].isalpha() and 0 < up < _PAGE and up < _ROUNDING * wanted


def _with_size(requested: str, says: str) -> str:
    wanted, actual = kernel_bytes(requested), kernel_bytes(says.partition("=")[2].lower())
    rounded = wanted is not None and actual is not None and _rounded(wanted, actual, says)
    return f"{says} (rounded up to whole pages)" if rounded else says


# --- the kernel's log -------------------------------------------------------------------------------------------------

_IGNORES = re.compile(
    r"ignor|\bnot support|unsupported|no effect|turn(ing|ed) off|not (available|enabled|built)|obsolete", re.IGNORECASE
)
_CHANGING = re.compile(r"\([^)]*\)|[0-9a-f]{8}-[0-9a-f-]{27}|\d+")
"""What differs between two mounts of one kind: the device, the UUID, numbers."""
_SHORT = 4
"""A name no longer than this must stand in a line as it is; a longer one may have an ending."""


def _new_lines(now: _Seen, plain: _Seen | None) -> list[str]:
    """Return the lines that the control's mount did not log."""
    usual = {_CHANGING.sub("#", line) for line in plain.log} if plain else set()
    return [line for line in now.log if _CHANGING.sub("#", line) not in usual]


def _naming(option: _RequestedOption, now: _Seen, plain: _Seen | None) -> list[str]:
    """Return the new lines that name the option: DAX, compress, compression."""
    key = re.escape(option.key)
    longer = "[a-z]*" if len(option.key) > _SHORT else ""
    name = re.compile(rf"(?<![\w-]){key}{longer}(?![\w-])", re.IGNORECASE)
    return [line for line in _new_lines(now, plain) if name.search(line)]


def _about(line: str, now: _Seen) -> bool:
    """Return whether a line is about this file system: others may log at the same time."""
    kind = "ext" if now.fstype.startswith("ext") else now.fstype
    return any(word and word.lower() in line.lower() for word in (kind, now.device))


# --- tunables and what lies below -------------------------------------------------------------------------------------


def _in_sysfs(now: _Seen, name: str, value: str) -> Judgement | None:
    """Return what the file below /sys that holds a setting says: queue/X of the device, any other name of the file
    system itself. None where there is none."""
    start = "/sys/class/block/" if name.startswith("queue/") else "/sys/fs/"
    path = next((path for path in now.settings if path.startswith(start) and path.endswith(f"/{name}")), None)
    if path is None:
        return None
    stated = _chosen(now.settings[path])
    fits = _same(value, stated) or value.split() == stated.split()
    return ("in effect" if fits else "changed", f"{path} says {stated}")


def _chosen(text: str) -> str:
    """Of a list such as '[none] mq-deadline' the one in brackets."""
    chosen = re.search(r"\[([^\]]+)\]", text)
    return chosen[1] if chosen else text


def _backing(fs: Filesystem, evidence: Files, now: _Seen) -> Iterator[tuple[str, Judgement]]:
    """Yield what the file system lies on: blocks of its image, compression of its device."""
    image = images(evidence).get(file_system_device(evidence))
    if fs.image_bytes and fs.preallocate and image:
        lacking = image.size - image.allocated
        state: OptionState = "in effect" if lacking <= _zeroed_late(fs, now) else "changed"
        yield ("preallocate: true", (state, f"{image.allocated} of {image.size} bytes are allocated"))
    if fs.zram_algorithm:
        stated = next((text for path, text in now.settings.items() if path.endswith("/comp_algorithm")), "")
        state = "in effect" if _chosen(stated) == fs.zram_algorithm else "changed"
        effect: Judgement = (state, f"comp_algorithm says {_chosen(stated)}") if stated else NOTHING
        yield (f"zram_algorithm: {fs.zram_algorithm}", effect)
    if fs.journal_device or fs.journal_image_bytes:
        yield ("external journal", _journal(now))


def _zeroed_late(fs: Filesystem, now: _Seen) -> int:
    """Return how many bytes the kernel may have given back meanwhile: where a sweep leaves the inode tables to its
    thread (lazy_itable_init), this zeroes them by punching holes into the image."""
    counts = re.findall(r"^Inode (?:count|size):\s+(\d+)$", now.parts.get("dumpe2fs", ""), re.MULTILINE)
    lazy = any(re.search(r"lazy_itable_init(=1)?(,|$)", word) for word in fs.mkfs)
    return math.prod(map(int, counts)) if lazy and len(counts) == 2 else 0


def _journal(now: _Seen) -> Judgement:
    """That the journal lies outside: dumpe2fs names its device, xfs_info says where the log is."""
    dump, info = now.parts.get("dumpe2fs", ""), now.parts.get("xfs_info", "")
    line = re.search(r"^Journal device:.*|^Journal UUID:.*|^log\s*=\S+", f"{dump}\n{info}", re.MULTILINE)
    if not line:
        return ("ignored", "no other device is named") if dump or info else NOTHING
    outside = "internal" not in line[0]
    return ("in effect" if outside else "ignored", re.sub(r"\s+", " ", line[0]))

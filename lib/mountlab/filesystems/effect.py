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
    device_levels,
    ext4_options,
    images,
    kernel_log,
    mount_of,
    mount_options,
    of_first_level,
    parts_by_heading,
    read_alone,
    settings,
    split_options,
)
from mountlab.filesystems.option_values import COMPARE, NEGATIONS, RIVALS, SHOWN_BY_ABSENCE
from mountlab.filesystems.superblock import NOTHING, Judgement, journal_features, lacks_compression, read_back
from mountlab.filesystems.without_effect import MountState, kernel_version, undone, without_effect

Files = Mapping[str, str]
"""File name to text, as kept in raw/<mount id>/."""

AGAIN = "again-evidence.txt"
"""Among the files of a control: the evidence of the same file system made once more without options."""
_ELSEWHERE = "shown as "


def effects(
    fs: Filesystem, evidence: Files, control: Files | None = None, *, extra: Sequence[str] = ()
) -> list[OptionEvidence]:
    """Return the state of each requested mount option, mkfs option and tunable, of the file system's backing, and of
    every option that the kernel shows only with them.

    `evidence`: the files of this mount; `control`: those of the mount without options, None where there is none. Its
    `again-evidence.txt` is of a second making without options: it shows what differs at each making.
    `extra`: mount options of ours, judged before the user's.
    """
    report, control_report = _read_report(evidence), _read_report(control) if control else None
    requested = list(_requested([word for text in (*extra, *fs.options) for word in split_options(text)]))
    mount, added = _mount(fs, requested, report, control_report)
    again = parts_by_heading((control or {}).get(AGAIN, ""))
    mkfs = read_back(fs.type, fs.mkfs, report.parts, control_report.parts if control_report else {}, again)
    rows = [
        *_rows(fs, "mount", ((option.text, effect) for option, effect in mount)),
        *_rows(fs, "mkfs", mkfs),
        *_rows(fs, "tunable", ((f"{k}={v}", _in_sysfs(report, k, v) or NOTHING) for k, v in fs.tunables.items())),
        *_rows(fs, "backing", _backing(fs, evidence, report)),
    ]
    return [*rows, *_rows(fs, "mount", (("", ("added", word)) for word in added))]


def _rows(fs: Filesystem, kind: str, judgements: Iterator[tuple[str, Judgement]]) -> Iterator[OptionEvidence]:
    for option, (state, says) in judgements:
        yield OptionEvidence(filesystem=fs.name, option=option, kind=kind, state=state, kernel_says=says)  # type: ignore[arg-type]


# --- what the kernel says ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Report:
    """The kernel's report on one mount."""

    fstype: str
    options: Mapping[str, str]
    """Mount option that is shown to its value, '' without one."""
    parts: Mapping[str, str]
    settings: Mapping[str, str]
    log: list[str]
    device: str
    kernel: tuple[int, ...]
    accepts_anything: bool
    alone: Mapping[str, Mapping[str, str]]
    """Requested option to the options that are shown when it alone is set. Only the control has them."""


def _read_report(evidence: Files) -> _Report:
    parts = parts_by_heading(evidence["evidence.txt"])
    line, options = mount_of(evidence), mount_options(evidence)
    return _Report(
        fstype=line.fstype,
        options={**options, **ext4_options(evidence), **options},  # in this order: what is not a default comes first
        parts=parts,
        settings=settings(evidence),
        log=kernel_log(evidence),
        device=parts.get("name") or line.source.rpartition("/")[2],
        kernel=kernel_version(parts.get("/proc/sys/kernel/osrelease", "")),
        accepts_anything=evidence.get("strict.txt", "").startswith("accepts"),
        alone=read_alone(evidence),
    )


@dataclass(frozen=True)
class _Option:
    """One mount option of the sweep, or of Mountlab."""

    text: str
    key: str
    value: str
    later: tuple[str, ...]
    """The requested options that follow it."""

    @property
    def implied_flags(self) -> tuple[str, ...]:
        """The flags that mount(8) sets with it, less those that a later word takes away."""
        flags = () if self.value else _IMPLIED_FLAGS.get(self.key, ())
        return tuple(flag for flag in flags if flag.removeprefix("no") not in self.later)

    @property
    def opposites(self) -> tuple[str, ...]:
        """The names under which the kernel would show that the contrary holds."""
        positive = _OPPOSITE_FLAGS.get(self.key, self.key.removeprefix("no"))
        return (positive,) if positive != self.key else (f"no{self.key}",)


def _requested(words: list[str]) -> Iterator[_Option]:
    """Yield each option with the words that follow it: of two that contradict each other the last one wins."""
    for at, word in enumerate(words):
        key, _, value = word.partition("=")
        yield _Option(word, key, value.strip("\"'"), later=tuple(words[at + 1 :]))


def _shows(key: str, value: str) -> str:
    return f"{key}={value}" if value else key


# --- mount options ----------------------------------------------------------------------------------------------------

_USER_SPACE = {
    "defaults", "auto", "noauto", "nofail", "_netdev", "comment", "user", "nouser", "users", "nousers", "owner",
    "noowner", "group", "nogroup",
}  # fmt: skip
"""Words that mount(8) keeps to itself, beside those that begin with x- (mount(8), 'filesystem-independent')."""
_OF_USERS = ("nosuid", "nodev", "noexec")
_IMPLIED_FLAGS = {"user": _OF_USERS, "users": _OF_USERS, "owner": _OF_USERS[:2], "group": _OF_USERS[:2]}
"""Flags that mount(8) sets with a word of its own. A later exec, suid or dev takes one away; user=NAME brings none."""
_ATIME = {"atime", "noatime", "relatime", "norelatime", "strictatime", "nostrictatime"}
_OF_THE_MOUNT = {"nosuid", "nodev", "noexec", "nodiratime", "nosymfollow"}
_FLAGS = {"sync", "dirsync", "mand", "lazytime"} | _OF_THE_MOUNT
"""What the kernel shows of every file system where it is set (fs/proc_namespace.c). Of those of the mount alone the
file system does not even learn."""
_OPPOSITE_FLAGS = {"async": "sync"}


def _mount(
    fs: Filesystem, requested: list[_Option], report: _Report, control: _Report | None
) -> tuple[list[tuple[_Option, Judgement]], list[str]]:
    """Return each option with its judgement, and the options that are shown beyond them."""
    by_rule = {option: _first_judgement(option, report, control) for option in requested}
    new = _new_words(fs, requested, report, control)
    open_ones = [option for option, state in by_rule.items() if state is None]
    movers = [
        option
        for option, state in by_rule.items()
        if state and option.key not in _OF_THE_MOUNT | _ATIME and not _is_unchanged(control, report, option)
    ]
    only = len(open_ones) == 1 and not (movers or fs.mkfs or fs.tunables)
    states = []
    for option in requested:
        effect = by_rule[option] or _unnamed(option, report, control, new, only)
        states.append((option, _judge_effect(option, effect, report)))
    explained = {word for _, (_, says) in states for word in says.removeprefix(_ELSEWHERE).split(", ")}
    return _contradictions(states), [word for word in new if word not in explained]


def _judge_effect(option: _Option, effect: Judgement, report: _Report) -> Judgement:
    """Return 'without effect' for an option that the kernel shows and that does nothing here; else `effect`."""
    state, says = effect
    if (state not in _SHOWN and option.key not in report.options) or _means_absence(option, report):
        return effect
    mount = MountState(report.options, report.parts)
    why = without_effect(report.fstype, option.key, option.value, mount, report.kernel)
    return ("without effect", f"{says}, but without effect here: {why}") if why else effect


_SHOWN = ("in effect", "changed")


def _first_judgement(option: _Option, report: _Report, control: _Report | None) -> Judgement | None:
    """Return the judgement of the first rule that applies; None where the kernel shows nothing by the option's name."""
    rules = (
        _by_family, _by_journal, _by_compression, _by_negation, _by_name, _by_absence, _by_order, _by_root, _by_setting,
        _by_log,
    )  # fmt: skip
    return next((effect for rule in rules if (effect := rule(option, report, control))), None)


def _by_family(option: _Option, report: _Report, control: _Report | None) -> Judgement | None:
    """Judge an option that the kernel applies to every file system alike, and therefore always shows."""
    options = report.options
    if (option.key in _USER_SPACE or option.key.lower().startswith("x-")) and not option.implied_flags:
        return ("in effect", "asks nothing of the kernel")
    if not options:
        return ("not visible", "no such mount")
    if option.implied_flags:
        absent = [flag for flag in option.implied_flags if flag not in options]
        return ("ignored", f"{', '.join(absent)}: absent") if absent else ("in effect", ", ".join(option.implied_flags))
    if option.key in ("rw", "ro"):
        actual = "ro" if "ro" in options else "rw"
        return ("in effect" if option.key == actual else "ignored", actual)
    if option.key in _ATIME:
        actual = next((word for word in ("noatime", "relatime") if word in options), "strictatime")
        wanted = actual != f"no{option.key}" if option.key == "atime" else option.key == actual
        if option.key in ("norelatime", "nostrictatime"):
            wanted = option.key != f"no{actual}"
        return ("in effect" if wanted else "ignored", actual)
    if option.key in _FLAGS and option.key not in options:
        return ("ignored", f"{option.key} is absent")
    opposite = option.opposites[0]
    if opposite not in _FLAGS:
        return None
    return ("ignored", opposite) if opposite in options else ("in effect", f"{opposite} is absent")


def _by_journal(option: _Option, report: _Report, control: _Report | None) -> Judgement | None:
    """Judge a journal option of ext3 or ext4 by the journal's super block. /proc shows a bit that two options share
    only where both are set."""
    features = journal_features(report.parts)
    if features is None or option.key not in _OF_THE_JOURNAL:
        return None
    name = option.key.removeprefix("no")
    there = any(feature.startswith(name) for feature in features)
    says = f"journal features: {' '.join(features) or 'none'}"
    if there == (name == option.key):
        return ("in effect", says)
    return ("without effect", f"{option.key}, but {says}") if option.key in report.options else ("ignored", says)


_OF_THE_JOURNAL = {"journal_async_commit", "journal_checksum", "nojournal_checksum"}


def _by_compression(option: _Option, report: _Report, control: _Report | None) -> Judgement | None:
    """Judge an option of compression of an f2fs that was made without it: the kernel takes it, and logs one line."""
    if report.fstype != "f2fs" or not option.key.startswith(("compress_", "nocompress_")):
        return None
    return ("ignored", "the super block has no compression") if lacks_compression(report.parts) else None


def _by_negation(option: _Option, report: _Report, control: _Report | None) -> Judgement | None:
    """Judge an option whose opposite the kernel shows wherever that is on."""
    other = NEGATIONS.get(report.fstype, {}).get(option.key) if not option.value else None
    options = report.options
    if other is None or option.key in options:
        return None
    return ("ignored", _shows(other, options[other])) if other in options else ("in effect", f"{other} is absent")


def _by_name(option: _Option, report: _Report, control: _Report | None) -> Judgement | None:
    """Judge an option by its own name, by that of another one which sets the same thing, or by its opposite."""
    if option.key in report.options:
        return _by_value(option, report, control)
    rival = RIVALS.get((report.fstype, option.key), "")
    if rival in report.options and not _means_absence(option, report):
        return ("changed", _shows(rival, report.options[rival]))
    opposite = next((other for other in option.opposites if other in report.options), None)
    if opposite is None:
        return None
    says = _shows(opposite, report.options[opposite])
    return ("in effect" if option.value.lower() in _FALSE else "ignored", says)


def _by_value(option: _Option, report: _Report, control: _Report | None) -> Judgement:
    """Judge an option that shows under its own name. The log may still say that it is ignored: discard, on a device
    without it. An option that the control shows too is in effect, whatever the log states."""
    fresh = control is not None and control.options.get(option.key) != report.options[option.key]
    logged = [line for line in _naming(option, report, control) if _IGNORES.search(line)] if fresh else []
    says = "; ".join([_with_size(option.value, _shows(option.key, report.options[option.key])), *logged])
    if not _fits(option, report, fresh=fresh):
        return ("changed", says)
    return ("ignored" if logged else "in effect", says)


def _by_absence(option: _Option, report: _Report, control: _Report | None) -> Judgement | None:
    """Judge by absence: the opposite shows in the control and not here, or the kernel shows this value by nothing."""
    if _means_absence(option, report):
        rival = RIVALS.get((report.fstype, option.key), "")
        shows = _shows(rival, report.options[rival]) if rival in report.options else ""
        return ("ignored", shows) if shows else ("in effect", f"{option.key} is absent, which means {option.value}")
    lost = [other for other in option.opposites if control and other in control.options and other not in report.options]
    if control and lost and not option.value:
        return ("in effect", f"{_shows(lost[0], control.options[lost[0]])} is gone")
    return None


def _means_absence(option: _Option, report: _Report) -> bool:
    """Return whether the kernel shows the requested value by showing nothing."""
    return option.value in SHOWN_BY_ABSENCE.get((report.fstype, option.key), ())


def _by_order(option: _Option, report: _Report, control: _Report | None) -> Judgement | None:
    """Judge by order: a later option may turn this one off."""
    why = undone(report.fstype, option.key, option.later)
    return ("ignored", f"nothing: {why}") if why else None


def _by_root(option: _Option, report: _Report, control: _Report | None) -> Judgement | None:
    """Judge mode and owner by the root directory, for which stat shows them where the mount options do not."""
    stated = dict(zip(("mode", "uid", "gid", "user", "group"), report.parts.get("root", "").split(), strict=False))
    if option.key not in ("mode", "uid", "gid") or "group" not in stated:
        return None
    names = {stated[option.key], stated.get({"uid": "user", "gid": "group"}.get(option.key, ""), "")}
    state: OptionState = "in effect" if option.value.lstrip("0") in {name.lstrip("0") for name in names} else "ignored"
    return (state, f"the root directory has {option.key} {stated[option.key]}")


def _by_setting(option: _Option, report: _Report, control: _Report | None) -> Judgement | None:
    """Judge an option by a file of its name in the file system's own directory below /sys."""
    return _in_sysfs(report, option.key, option.value) if option.value else None


def _by_log(option: _Option, report: _Report, control: _Report | None) -> Judgement | None:
    """Judge an option by lines of the kernel's log that name it and say that it was ignored."""
    lines = [line for line in _naming(option, report, control) if _IGNORES.search(line) or "disabled" in line]
    return ("ignored", "; ".join(lines)) if lines else None


def _unnamed(option: _Option, report: _Report, control: _Report | None, new: list[str], only: bool) -> Judgement:
    """Judge an option that shows nowhere by its own name. `only`: nothing else makes a difference to the control."""
    if control and option.text in control.alone:
        if effect := _judge_alone(control.alone[option.text], report, control):
            return effect
        new = []
    alike = [word for word in new if option.key.lower() in re.split(r"[^a-z0-9_]+", word.lower())]
    if alike or (only and new):
        return ("in effect", _ELSEWHERE + ", ".join(alike or new))
    logged = [line for line in _new_lines(report, control) if _IGNORES.search(line) and _about(line, report)]
    if only and logged and control is not None:
        return ("ignored", "; ".join(logged))
    if control is not None and control.accepts_anything:
        return ("ignored", f"nothing, and {report.fstype} accepts unknown options")
    if named := _naming(option, report, control):
        return ("not visible", "nothing, but logged: " + "; ".join(named))
    return ("not visible", f"nothing of that name; one of these may be it: {', '.join(new)}") if new else NOTHING


def _judge_alone(alone: Mapping[str, str], report: _Report, control: _Report) -> Judgement | None:
    """Judge by the mount with this option alone: what it shows must show here too. None where it shows nothing."""
    new_options = {key: value for key, value in alone.items() if control.options.get(key) != value}
    if not new_options:
        return None
    words = ", ".join(_shows(key, value) for key, value in new_options.items())
    if all(report.options.get(key) == value for key, value in new_options.items()):
        return ("in effect", f"{_ELSEWHERE}{words}")
    return ("ignored", f"nothing; alone it is shown as {words}")


def _is_unchanged(control: _Report | None, report: _Report, option: _Option) -> bool:
    """Return whether the kernel shows this option as it does without a request for it."""
    names = (option.key, *option.opposites)
    return control is not None and all(control.options.get(name) == report.options.get(name) for name in names)


def _new_words(fs: Filesystem, requested: list[_Option], report: _Report, control: _Report | None) -> list[str]:
    """Return the options that are shown, not in the control, and not by the name of a requested option."""
    if control is None:
        return []
    claimed = {name for option in requested for name in (option.key, *option.opposites, *option.implied_flags)}
    claimed |= {name.rpartition("/")[2] for name in fs.tunables} | {"rw", "ro"}
    if claimed & _ATIME:
        claimed |= _ATIME
    plain = control.options
    return [
        _shows(key, value)
        for key, value in report.options.items()
        if key not in claimed and plain.get(key) != value and not (key in plain and value.startswith("/"))
    ]


def _contradictions(states: list[tuple[_Option, Judgement]]) -> list[tuple[_Option, Judgement]]:
    """Return the states with words for each option that another one overruled."""
    in_effect = [option for option, (state, _) in states if state == "in effect"]
    effective = {name: option for option in in_effect for name in (option.key, *option.implied_flags)}

    def winner(option: _Option, says: str) -> str:
        names = [name for name in (option.key, *option.opposites, says) if name in effective]
        others = [name for name in names if effective[name].text != option.text]
        implying = [effective[name].text for name in others if name in effective[name].implied_flags]
        return f", which {implying[0]} brings" if implying else ", which was asked for too" if others else ""

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


def _fits(option: _Option, report: _Report, *, fresh: bool) -> bool:
    """Return whether the value that is shown is the requested one. `fresh`: the control shows another one."""
    stated = report.options[option.key]
    compare = COMPARE.get((report.fstype, option.key))
    if compare and compare(option.value, stated):
        return True
    if (report.fstype, option.key) in RIVALS:
        return False
    if not option.value:  # a default was filled in
        return stated.lower() not in _WITHOUT
    if not stated:  # a value that the kernel does not spell out
        return option.value.lower() in _TRUE or (fresh and option.value.lower() not in _WITHOUT)
    if option.value.endswith("%"):  # the kernel shows what the share comes to
        return fresh or option.value == stated
    return _is_same(option.value, stated) or stated in _ids(option, report)


def _ids(option: _Option, report: _Report) -> set[str]:
    """Return the number of a user or group given by name, as the root directory has both: uid=daemon shows a number."""
    root = report.parts.get("root", "").split()
    named = {"uid": (root[1], root[3]), "gid": (root[2], root[4])} if len(root) == 5 else {}
    number, name = named.get(option.key, ("", ""))
    return {number} if name == option.value else set()


def _is_same(requested: str, stated: str) -> bool:
    """Return whether two values are equal as text, number, size or set, or `stated` only adds a default after a colon.
    A size may be rounded up to whole pages."""
    ours, theirs = requested.lower(), stated.lower()
    if ours == theirs or theirs.startswith(f"{ours}:") or ours.lstrip("0") == theirs.lstrip("0"):
        return True
    if ":" in theirs and "/" not in theirs and (ours == "all" or set(ours.split(":")) == set(theirs.split(":"))):
        return True
    wanted, actual = kernel_bytes(ours), kernel_bytes(theirs)
    return wanted is not None and actual is not None and (wanted == actual or _is_rounded_up(wanted, actual, theirs))


def _is_rounded_up(wanted: int, actual: int, stated: str) -> bool:
    up = actual - wanted
    return stated[-1:].isalpha() and 0 < up < _PAGE and up < _ROUNDING * wanted


def _with_size(requested: str, says: str) -> str:
    wanted, actual = kernel_bytes(requested), kernel_bytes(says.partition("=")[2].lower())
    rounded = wanted is not None and actual is not None and _is_rounded_up(wanted, actual, says)
    return f"{says} (rounded up to whole pages)" if rounded else says


# --- the kernel's log -------------------------------------------------------------------------------------------------

_IGNORES = re.compile(
    r"ignor|\bnot support|unsupported|no effect|turn(ing|ed) off|not (available|enabled|built)|obsolete", re.IGNORECASE
)
_CHANGING = re.compile(r"\([^)]*\)|[0-9a-f]{8}-[0-9a-f-]{27}|\d+")
"""Parts of a line that differ between two mounts of one kind: the device, the UUID, numbers."""
_SHORT = 4
"""A name no longer than this must stand in a line as it is; a longer one may have an ending."""


def _new_lines(report: _Report, control: _Report | None) -> list[str]:
    """Return the lines that the control's mount did not log."""
    usual = {_CHANGING.sub("#", line) for line in control.log} if control else set()
    return [line for line in report.log if _CHANGING.sub("#", line) not in usual]


def _naming(option: _Option, report: _Report, control: _Report | None) -> list[str]:
    """Return the new lines that name the option: DAX, compress, compression."""
    key = re.escape(option.key)
    longer = "[a-z]*" if len(option.key) > _SHORT else ""
    name = re.compile(rf"(?<![\w-]){key}{longer}(?![\w-])", re.IGNORECASE)
    return [line for line in _new_lines(report, control) if name.search(line)]


def _about(line: str, report: _Report) -> bool:
    """Return whether a line is about this file system: others may log at the same time."""
    kind = "ext" if report.fstype.startswith("ext") else report.fstype
    return any(word and word.lower() in line.lower() for word in (kind, report.device))


# --- tunables and what lies below -------------------------------------------------------------------------------------


def _in_sysfs(report: _Report, name: str, value: str) -> Judgement | None:
    """Return what the file below /sys that holds a setting says: queue/X of the device, any other name of the file
    system itself. None where there is none."""
    start = "/sys/class/block/" if name.startswith("queue/") else "/sys/fs/"
    path = next((path for path in report.settings if path.startswith(start) and path.endswith(f"/{name}")), None)
    if path is None:
        return None
    stated = _active(report.settings[path])
    fits = _is_same(value, stated) or value.split() == stated.split()
    return ("in effect" if fits else "changed", f"{path} says {stated}")


def _active(text: str) -> str:
    """Return the one in brackets of a list such as '[none] mq-deadline'."""
    match = re.search(r"\[([^\]]+)\]", text)
    return match[1] if match else text


def _backing(fs: Filesystem, evidence: Files, report: _Report) -> Iterator[tuple[str, Judgement]]:
    """Yield the judgements of the backing: blocks of the image, compression of the device, an external journal."""
    found = of_first_level(images(evidence), device_levels(evidence))
    if fs.image_bytes and fs.preallocate and found:
        size, allocated = sum(image.size for image in found), sum(image.allocated for image in found)
        state: OptionState = "in effect" if size - allocated <= _zeroed_late(fs, report) else "changed"
        yield ("preallocate: true", (state, f"{allocated} of {size} bytes are allocated"))
    if fs.zram_algorithm:
        stated = next((text for path, text in report.settings.items() if path.endswith("/comp_algorithm")), "")
        state = "in effect" if _active(stated) == fs.zram_algorithm else "changed"
        effect: Judgement = (state, f"comp_algorithm says {_active(stated)}") if stated else NOTHING
        yield (f"zram_algorithm: {fs.zram_algorithm}", effect)
    if fs.journal_device or fs.journal_image_bytes:
        yield ("external journal", _journal(report))
    if fs.realtime_image_bytes:
        yield ("realtime device", _realtime(report))


def _realtime(report: _Report) -> Judgement:
    """Judge whether there is a realtime device, by xfs_info, and whether new files lie on it, by the root's flags."""
    line = re.search(r"^realtime\s*=\S+", report.parts.get("xfs_info", ""), re.MULTILINE)
    if not line:
        return NOTHING
    flags = report.parts.get("xfs-root-flags", "").strip()
    outside = "none" not in line[0]
    state: OptionState = "in effect" if outside and "t" in flags else "ignored"
    return (state, f"{re.sub(chr(32) + '+', ' ', line[0])}, flags of the root: {flags or 'unknown'}")


def _zeroed_late(fs: Filesystem, report: _Report) -> int:
    """Return how many bytes the kernel may have given back meanwhile: where a sweep leaves the inode tables to its
    thread (lazy_itable_init), this zeroes them by punching holes into the image. And md discards a journal of its
    own."""
    if any(layer.options.get("journal") for layer in fs.stack):
        return fs.image_bytes or 0
    counts = re.findall(r"^Inode (?:count|size):\s+(\d+)$", report.parts.get("dumpe2fs", ""), re.MULTILINE)
    lazy = any(re.search(r"lazy_itable_init(=1)?(,|$)", word) for word in fs.mkfs)
    return math.prod(map(int, counts)) if lazy and len(counts) == 2 else 0


def _journal(report: _Report) -> Judgement:
    """Judge whether the journal is external: dumpe2fs names its device, xfs_info prints where the log is."""
    dump, info = report.parts.get("dumpe2fs", ""), report.parts.get("xfs_info", "")
    line = re.search(r"^Journal device:.*|^Journal UUID:.*|^log\s*=\S+", f"{dump}\n{info}", re.MULTILINE)
    if not line:
        return ("ignored", "no other device is named") if dump or info else NOTHING
    outside = "internal" not in line[0]
    return ("in effect" if outside else "ignored", re.sub(r"\s+", " ", line[0]))

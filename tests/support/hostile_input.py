"""Sweep and box files as somebody would write them who wants harm: whole ones, changed at random by a seed."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml
from mountlab.results import paths

CANARY = "mountlab-canary"
"""A file of this name anywhere means that something was executed."""
Raw = dict[str, Any]

COMMANDS = (
    f"; touch {CANARY}", f"$(touch {CANARY})", f"`touch {CANARY}`", f"| touch {CANARY}", f"\ntouch {CANARY}\n",
    f"'; touch {CANARY}; '", f'"; touch {CANARY}; "', f"&& touch {CANARY}", f"a'\\''; touch {CANARY} #", "${IFS}",
    "!!", "!x",
    f"\\'; touch {CANARY}", f"'\"$(touch {CANARY})\"'", f"}}; touch {CANARY}; x() {{ ", f"%0a touch {CANARY}", "a\\\nb",
)  # fmt: skip
OPTIONS = (
    "--help", "-oProxyCommand=touch " + CANARY, "-rf", "--", "-", "--filename=/dev/sda", "-d /etc", "--rootdir=/etc",
    "noatime,suid,dev", "x,loop=/dev/sda", "size=1,exec", "logdev=/dev/sda", "helper=sh", "uhelper=sh",
    "X-mount.subdir=..", "lowerdir+=/etc", "datadir+=/etc", "remount", "journal_path=/dev/sda", "device=/dev/sda",
)  # fmt: skip
PATHS = (
    "/", "/etc/passwd", "../../../etc", "/srv/../etc", "/dev/sda", "/dev/disk/by-id/../../sda", "/proc/self/mem",
    "~root",
    "/srv/a b", "/srv/a\nb", "//srv//a", "/srv/a/", ".", "..", "C:\\x", "/srv/" + "a" * 5000, "file:///etc/passwd",
    "/dev/disk/by-id/x;y", "/srv/$(id)", "memory:0x1", "/sys/block/sda", "results/../../x",
)  # fmt: skip
TEXTS = (
    "", " ", "\t", "\0", "a\0b", "\x1b[2J\x1b]0;owned\a", "\r", "\x7f", "\x85", "\u2028", "\u202e\u2066", "\ufeff",
    "é", "😀",
    "\ud800", "\udcff", "\uffff", "İ", "ﬀ", "%s%n", "{directory}", "{output}", "{device}", "{journal}", "{{", "}",
    "{0}",
    "{a.__class__}", "<script>alert(1)</script>", "=cmd|' /C calc'!A0", "@SUM(1)", "a/b", "a=b", "a,b", "a:b", "no",
    "~",
    "1:30", "0x" + "f" * 400, "1e999", "nan", ".inf", "a" * 5000, "null", "__proto__", "__class__", "*", "?", "[a-z]",
)  # fmt: skip
SIZES = (
    "0B", "1B", "-1B", "1e9GiB", "9" * 400 + "B", "7EiB", "8388608TiB", "1.00000000000000000001MiB", "64k", "64 KiB",
    "64KiB\n", "0x10KiB", "٣KiB", "0.1B", "64MiB", "1GiB", "100GiB", "1TiB", "60s", "0s", "168h", "1e5h", "1000000h",
)  # fmt: skip
OTHERS = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    3,
    5,
    7,
    10_000,
    2**31,
    2**63,
    2**64,
    10**300,
    -(10**300),
    0.0,
    0.5,
    0.95,
    -0.0,
    1e308,
    float("nan"),
    float("inf"),
    [],
    {},
    [[]],
    [{}],
    {"a": {}},
    [None],
    b"\xff\0",
    (1, 2),
    {1: 2},
    {None: None},
    {True: 1},
)
PATTERNS = (
    "(a+)+$", "([0-9.]+) MB/s", "(?P<value>.*)*", "(((((", "(a|a)*b",
    "\\", "(?i)(x", "[", "(.*)(.*)", "(?P<value>a)(?P<u>b)",
    "(a{1,99999})", "(" * 200 + "a" + ")" * 200, "(?:(?:(?:a{999}){999}){999})(b)", "(\\d+)" + "a?" * 300,
)  # fmt: skip
KEYS = (
    "filename", "exec_prerun", "exec_pre", "directory", "output", "ioengine", "jobs", "job_file", "wml", "wml_file",
    "argv",
    "metrics", "preset", "presets", "exclude", "also", "vary", "precondition", "until", "mkfs", "options",
    "tunables", "over",
    "mount_root", "output_root", "scratch", "embedded", "host", "user", "become", "port", "path", "image",
    "image_dir", "device",
    "zram", "zram_algorithm", "pmbd", "journal_image", "journal_device", "type", "tool", "name", "box",
    "baseline",
    "cell", "block", "metric", "value", "space", "prepare", "version", "cache", "seed", "repeats", "published",
    "design.seed",
    "a.b", "", "-x", "--x", "$(id)", "a b", "é", "__class__", "0", "a\nb", "x" * 300,
)  # fmt: skip
STRINGS = (*COMMANDS, *OPTIONS, *PATHS, *TEXTS, *SIZES, *PATTERNS)

COMMAND: Raw = {
    "tool": "command", "argv": "mybench --dir {directory} --mode {mode} --out {output}/x", "mode": ["fast", "slow"],
    "space": "1MiB", "prepare": "mkfile {directory}/a {mode}", "version": "mybench -v",
    "metrics": {"bandwidth": {"pattern": "([0-9.]+) MB/s", "unit": "MB/s"}},
}  # fmt: skip
SMALL: Raw = {
    "question": "Is it safe?", "box": "local", "baseline": "tmpfs", "expectation": "yes", "metrics": ["bandwidth"],
    "filesystems": {
        "tmpfs": {"type": "tmpfs", "size": "64MiB", "options": ["noatime", "huge=never"]},
        "ext4": {"type": "ext4", "image": "128MiB", "options": ["noatime", "data=writeback"], "mkfs": ["-b", "4096"],
                 "tunables": {"inode_readahead_blks": 64, "queue/read_ahead_kb": 128}},
        "dir": {"type": "dir", "path": "/srv/data"},
        "xfs": {"type": "xfs", "device": "data", "journal_image": "64MiB"},
        "union": {"type": "overlay", "over": {"type": "ext4", "image": "64MiB"}, "options": ["redirect_dir=on"]},
        "z": {"type": "ext4", "zram": "64MiB", "zram_algorithm": "lz4"},
    },
    "workloads": {
        "dd": {"tool": "dd", "direction": "write", "bs": ["4KiB", "1MiB"], "count": 8},
        "fio": {"tool": "fio", "rw": ["read", "randwrite"], "bs": "4KiB", "size": "8MiB", "iodepth": 4, "rate": "10m"},
        "jobs": {"tool": "fio", "jobs": "[a]\nrw=write\nsize=4m\n[b]\nstonewall\nrw=read\nsize=4m\n"},
        "mail": {"tool": "filebench", "workload": "varmail", "nfiles": 10, "runtime": "1s"},
        "own": {"tool": "filebench", "space": "1MiB", "wml": "define fileset name=f,path=$dir,size=1k,entries=1\n"
                "define process name=p {\n thread name=t {\n flowop createfile name=c,filesetname=f\n }\n}\nrun 1\n"},
        "mark": {"tool": "fs_mark", "count": 10, "file_size": "1KiB"},
        "sync": {"tool": "pg_test_fsync", "time_per_test": "1s"},
        "command": COMMAND,
    },
    "exclude": [{"filesystem": "dir", "workload": "dd", "bs": "4KiB"}],
    "design": {"repeats": 3, "warmup": 0, "seed": 7, "trial_timeout": "60s", "fresh_filesystem": "block"},
    "presets": {"small": {"design": {"repeats": 2}}}, "preset": "small",
}  # fmt: skip
BOX: Raw = {
    "host": "bench1", "user": "alice", "port": 22, "become": "auto", "mount_root": "/srv/bench/mountlab",
    "output_root": "/dev/shm/mountlab-x", "scratch": {"data": "/dev/disk/by-id/nvme-A", "log": "/dev/pmem0"},
}  # fmt: skip


def _bombs() -> Iterator[str]:
    """YAML that would be large, deep or endless once it is read; or that would make objects."""
    yield "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in _pairs())
    yield "a: &a {k: v}\n" + "".join(f"{b}: &{b} {{<<: [{','.join([f'*{a}'] * 9)}], {b}: 1}}\n" for a, b in _pairs())
    yield from ("a: &a [*a]", "&a a: *a", "a: &a {b: *a}", "? &a [*a]\n: 1", "a: " + "[" * 5000, "a: " + "{b: " * 3000)
    yield "question: " + "- " * 3000
    yield from (
        f"a: !!python/object/apply:os.system ['touch {CANARY}']",
        "a: !!python/name:os.system",
        "a: !!binary x",
    )
    yield from (
        "a: !!timestamp 9999-99-99",
        "a: !!set {b}",
        "a: !!omap [b: c]",
        "? [a]\n: b",
        "? {a: b}\n: c",
        "!!map\n",
    )
    yield from (
        "a: " + "1" * 5000,
        "a: 0x" + "f" * 5000,
        "a: 1" + ":1" * 5000,
        "a: !!int " + "9" * 5000,
        "a: 1e" + "9" * 400,
    )
    yield from (
        "%YAML 9.9\n---\na: b",
        "a: b\n---\nc: d",
        "\t- a",
        "a: b: c",
        "a\0b",
        "\x1b",
        "",
        "---",
        "- a",
        "3",
        "\ufeffa: b",
    )
    yield "\n".join(f"k{n}: 1" for n in range(20_000))
    yield "filesystems: {" + ", ".join(f"f{n}: {{type: dir}}" for n in range(3000)) + "}"


def _pairs() -> list[tuple[str, str]]:
    return list(zip("abcdefgh", "bcdefghi", strict=True))


BOMBS = tuple(_bombs())


def sweeps_of_ours() -> list[Raw]:
    """The sweep files that Mountlab brings, and one with a workload of each tool."""
    return [
        SMALL,
        COMMAND_SWEEP,
        *(yaml.safe_load(file.read_text()) for file in sorted((paths.PARAMS / "sweeps").glob("*.yml"))),
    ]


COMMAND_SWEEP: Raw = {
    "question": "Is a command safe?", "filesystems": {"d": {"type": "dir"}}, "workloads": {"c": COMMAND},
    "design": {"repeats": 1, "seed": 1},
}  # fmt: skip


class Hostile:
    """Files without end, each drawn anew; the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.sweeps = sweeps_of_ours()
        self.changes: tuple[Callable[[Raw], None], ...] = (
            self._value, self._leaf, self._leaf, self._leaf, self._embedded, self._embedded, self._key, self._key,
            self._without, self._levels, self._nested, self._moved,
        )  # fmt: skip

    def sweep(self) -> str:
        """The text of a sweep file, most often a valid one with one to three changes."""
        return self._text(self._simple(self.random.choice(self.sweeps)))

    def box(self) -> str:
        return self._text(BOX)

    def word(self) -> str:
        """A text for whatever takes one."""
        pieces = [self.random.choice(STRINGS) for _ in range(self.random.choice((1, 1, 2)))]
        return "".join(pieces)

    def _simple(self, sweep: Raw) -> Raw:
        """With few of its parts, so that one change is more often the only thing that is wrong."""
        simple = copy.deepcopy(sweep)
        for part in ("filesystems", "workloads"):
            names = list(simple[part])
            kept = {*self.random.sample(names, self.random.randint(1, min(2, len(names))))} | {simple.get("baseline")}
            simple[part] = {name: simple[part][name] for name in names if name in kept} or simple[part]
        simple.pop("exclude", None)
        return simple

    def _text(self, raw: Raw) -> str:
        if self.random.random() < 0.04:
            return self.random.choice(BOMBS)
        changed = copy.deepcopy(raw)
        for _ in range(self.random.choice((1, 1, 1, 2, 3))):
            self.random.choice(self.changes)(changed)
        text = yaml.safe_dump(_without_tuples(changed), sort_keys=False, allow_unicode=self.random.random() < 0.5)
        return self._damaged(text) if self.random.random() < 0.1 else text

    def _damaged(self, text: str) -> str:
        at = self.random.randrange(len(text))
        return self.random.choice(
            (text[:at], text[:at] + self.word() + text[at:], text[:at] + "\t" + text[at:], text * 2)
        )

    # --- one change each ---

    def _anything(self) -> Any:
        if self.random.random() < 0.75:
            return self.word()
        return copy.deepcopy(self.random.choice(OTHERS))

    def _places(self, raw: Any) -> list[tuple[Any, Any]]:
        """Every (container, key) of a nested value."""
        keys = list(raw) if isinstance(raw, dict) else range(len(raw)) if isinstance(raw, list) else ()
        return [place for key in keys for place in ((raw, key), *self._places(raw[key]))]

    def _place(self, raw: Raw) -> tuple[Any, Any]:
        return self.random.choice(self._places(raw) or [({}, "")])

    def _value(self, raw: Raw) -> None:
        container, key = self._place(raw)
        container[key] = self._anything()

    def _leaf(self, raw: Raw) -> None:
        """A text or a number becomes another one: what a check of types alone lets through."""
        container, key = self.random.choice([p for p in self._places(raw) if _is_leaf(p[0][p[1]])] or [({}, "")])
        old = container.get(key) if isinstance(container, dict) else container[key]
        whole = [each for each in OTHERS if isinstance(each, type(old))] if not isinstance(old, str) else None
        container[key] = self.random.choice(whole or self._alike(str(old)))

    def _alike(self, old: str) -> tuple[str, ...]:
        kinds = (SIZES, OPTIONS, PATHS, COMMANDS, TEXTS, PATTERNS)
        return SIZES if old[:1].isdigit() else PATHS if old[:1] == "/" else self.random.choice(kinds)

    def _embedded(self, raw: Raw) -> None:
        """A text with another one in it: what was valid on both sides."""
        texts = [(container, key) for container, key in self._places(raw) if isinstance(container[key], str)]
        if texts:
            container, key = self.random.choice(texts)
            at = self.random.randint(0, len(container[key]))
            container[key] = container[key][:at] + self.word() + container[key][at:]

    def _key(self, raw: Raw) -> None:
        container = self.random.choice([raw, *(c[k] for c, k in self._places(raw) if isinstance(c[k], dict))])
        container[self.random.choice((*KEYS, self.word()))] = self._anything()

    def _without(self, raw: Raw) -> None:
        container, key = self._place(raw)
        del container[key]

    def _levels(self, raw: Raw) -> None:
        """One value becomes a factor, at times one with far too many levels; many factors multiply."""
        for _ in range(self.random.choice((1, 1, 10))):
            container, key = self._place(raw)
            many = self.random.choice((2, 2, 3, 30, 2000))
            container[key] = [f"{number}KiB" if self.random.random() < 0.5 else number for number in range(1, many)]

    def _nested(self, raw: Raw) -> None:
        container, key = self._place(raw)
        for _ in range(self.random.choice((1, 2, 100))):
            container[key] = self.random.choice(([container[key]], {"over": container[key]}, {"a": container[key]}))

    def _moved(self, raw: Raw) -> None:
        (one, key), (other, place) = self._place(raw), self._place(raw)
        one[key] = copy.deepcopy(other[place])


def _is_leaf(value: Any) -> bool:
    return isinstance(value, (str, int, float))


def _without_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_tuples(inner) for key, inner in value.items()}
    return [_without_tuples(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def write(path: Path, text: str) -> Path:
    """As bytes, halves of characters and all."""
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path

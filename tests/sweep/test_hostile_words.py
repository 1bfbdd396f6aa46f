"""No text of a sweep reaches a shell unquoted: real shells read every command line of hostile plans, and each program
that they would run only tells the words it was given."""

from __future__ import annotations

import copy
import os
import random
import re
import shutil
import subprocess
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hostile_input import COMMANDS, OPTIONS, PATHS, SMALL, STRINGS, TEXTS
from hypothesis import given, settings
from hypothesis import strategies as st
from mountlab.box.connection import command_line
from mountlab.core.errors import MountlabError
from mountlab.results import paths
from mountlab.sweep.filesystem_entry import _NOT_FOR_MOUNT
from mountlab.sweep.plan import Plan, PlannedTrial
from mountlab.sweep.sweep_file import resolve
from mountlab.sweep.untrusted import PLAIN
from rows import every_row
from sweep.test_hostile_input import planned
from waiting import LIMIT_S

MANY = int(os.environ.get("MOUNTLAB_HOSTILE_WORDS", "60"))
"""Plans whose command lines are read by shells; `make soak` takes all that there are."""
SHELLS = [[path, *more] for name, *more in (("dash",), ("bash",), ("busybox", "sh")) if (path := shutil.which(name))]
SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
RECORDER = '#!/bin/sh\nprintf "%s\\\\0" "${0##*/}" "$@"\nprintf "\\\\1\\\\0"\n'


@pytest.fixture
def recorders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which each program that is asked for only tells its words."""
    place = tmp_path_factory.mktemp("recorders")
    (place / ".recorder").write_text(RECORDER)
    (place / ".recorder").chmod(0o755)
    return place


def told(shell: Sequence[str], script: str, recorders: Path, names: Sequence[str], cwd: Path) -> list[list[str]]:
    """The words of each program that a script runs, where those are the only programs there are."""
    for name in names:
        if not (recorders / name).is_symlink():
            (recorders / name).symlink_to(".recorder")
    done = subprocess.run(
        [*shell, "-c", script], capture_output=True, check=False, timeout=LIMIT_S, cwd=cwd, env={"PATH": str(recorders)}
    )
    assert done.stderr == b"", (shell, script[:2000], done.stderr)
    return [each.split("\0")[:-1] for each in done.stdout.decode("utf-8", "surrogateescape").split("\1\0")[:-1]]


def functions(names: Sequence[str]) -> str:
    """The same as functions: a shell of busybox runs programs of its own before it looks for others."""
    return "".join(f"{name}() {{ printf '%s\\0' {name} \"$@\"; printf '\\1\\0'; }}\n" for name in names)


def sh_of(shell: Sequence[str], recorders: Path) -> None:
    """Have `sh` be this shell, in which `timeout` and `sudo` only tell their words. (A shell of busybox that is told to
    run `sh` takes its own, and not this one: there another shell reads the line first.)"""
    own = recorders / "sh"
    own.unlink(missing_ok=True)
    own.write_text(f'#!{shutil.which("dash") or "/bin/sh"}\nexec {" ".join(shell)} -c \'{_TELL}\'"$2" "$3" "$4"\n')
    own.chmod(0o755)


_TELL = functions(("timeout", "sudo")).replace("'", "'\\''")


# --- hostile words in every place that takes one ----------------------------------------------------------------------


def _put(*path: Any) -> Any:
    def put(sweep: dict[str, Any], word: str) -> None:
        target: Any = sweep
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = word

    return put


def _renamed(section: str, name: str) -> Any:
    return lambda sweep, word: sweep[section].__setitem__(word, sweep[section].pop(name))


def _added(*path: Any) -> Any:
    def add(sweep: dict[str, Any], word: str) -> None:
        target: Any = sweep
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = target[path[-1]] + ([word] if isinstance(target[path[-1]], list) else word)

    return add


FS, WORK = "filesystems", "workloads"
SLOTS = {
    "value of a command": _put(WORK, "command", "mode"),
    "command line": _added(WORK, "command", "argv"),
    "prepare": _added(WORK, "command", "prepare"),
    "version": _added(WORK, "command", "version"),
    "quoted in a command line": lambda sweep, word: _added(WORK, "command", "argv")(sweep, f" '{word}'"),
    "value of fio": _put(WORK, "fio", "rate"),
    "engine": _put(WORK, "fio", "ioengine"),
    "unknown option of fio": lambda sweep, word: sweep[WORK]["fio"].__setitem__(word, "1"),
    "job file": _added(WORK, "jobs", "jobs"),
    "beside a job file": _put(WORK, "jobs", "rate"),
    "WML": _added(WORK, "own", "wml"),
    "installed WML": lambda sweep, word: sweep[WORK].__setitem__(
        "own", {"tool": "filebench", "space": "1MiB", "installed": word}
    ),
    "mount option": _added(FS, "ext4", "options"),
    "end of a mount option": _added(FS, "ext4", "options", 1),
    "word for mkfs": _added(FS, "ext4", "mkfs"),
    "argument of mkfs": _put(FS, "ext4", "mkfs", 1),
    "setting": _put(FS, "ext4", "tunables", "inode_readahead_blks"),
    "name of a setting": lambda sweep, word: sweep[FS]["ext4"]["tunables"].__setitem__(word, 1),
    "directory": _put(FS, "dir", "path"),
    "directory of an image": _put(FS, "ext4", "image_dir"),
    "device": _put(FS, "xfs", "device"),
    "algorithm": _put(FS, "z", "zram_algorithm"),
    "option of an overlay": _added(FS, "union", "options"),
    "name of a file system": _renamed(FS, "dir"),
    "name of a workload": _renamed(WORK, "dd"),
    "name of the sweep": _put("name"),
}
_KEPT = {
    "job file": "jobs",
    "beside a job file": "jobs",
    "WML": "own",
    "installed WML": "own",
    "engine": "fio",
    "value of fio": "fio",
    "unknown option of fio": "fio",
    "device": "xfs",
    "algorithm": "z",
    "option of an overlay": "union",
    **dict.fromkeys(("directory", "name of a file system"), "dir"),
    "quoted in a command line": "command",
    **dict.fromkeys(("value of a command", "command line", "prepare", "version"), "command"),
}
"""Slot to the file system or the workload that it is about; ext4 and dd where it is not said."""


def plan_with(slot: str, word: str) -> Plan | MountlabError:
    """A plan with a hostile word in one place; or why there is none."""
    kept = {_KEPT.get(slot, "ext4"), "dd"}
    sweep: dict[str, Any] = {"question": "Is it safe?", "design": {"repeats": 1, "warmup": 0, "trial_timeout": "60s"}}
    for section, other in ((FS, "dir"), (WORK, "dd")):
        names = kept & {*SMALL[section]} or {other}
        sweep[section] = {name: copy.deepcopy(SMALL[section][name]) for name in sorted(names)}
    try:
        SLOTS[slot](sweep, word)
        return planned(resolve({"name": "s", **sweep}, where="hostile.yml"))
    except MountlabError as error:
        return error


def plans_with_hostile_words(many: int) -> list[tuple[str, str, Plan]]:
    """Those that were not refused, each slot in its turn: so many of them, or all that there are."""
    chance, found = random.Random(7), []
    words = {slot: chance.sample(STRINGS, len(STRINGS)) for slot in SLOTS}
    pairs = ((slot, words[slot][number]) for number in range(len(STRINGS)) for slot in SLOTS)
    for slot, word in pairs:
        plan = plan_with(slot, word)
        if isinstance(plan, Plan):
            found.append((slot, word, plan))
            if len(found) == many:
                break
    return found


@pytest.fixture(scope="module")
def hostile_plans() -> list[tuple[str, str, Plan]]:
    return plans_with_hostile_words(MANY)


def test_hostile_words_get_as_far_as_a_plan() -> None:
    """Else the tests below would look at nothing."""
    assert isinstance(plan_with("value of a command", COMMANDS[0]), Plan)
    assert isinstance(plan_with("command line", OPTIONS[1]), Plan)
    assert isinstance(plan_with("quoted in a command line", COMMANDS[1]), Plan)
    assert isinstance(plan_with("mount option", "data=journal"), Plan)


# --- the line that is sent --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: Path(shell[0]).name)
@pytest.mark.parametrize("sudo", [False, True], ids=["root", "sudo"])
@pytest.mark.slow
def test_each_argument_arrives_as_one_and_nothing_else_runs(
    shell: list[str], sudo: bool, hostile_plans: list[tuple[str, str, Plan]], recorders: Path, tmp_path: Path
) -> None:
    sh_of(shell, recorders)
    for argv in sampled(hostile_plans, len(hostile_plans) // (3 if sudo else 1)):
        line = command_line(argv, timeout_s=7, sudo=sudo)
        [words] = told(SHELLS[0] if "busybox" in shell[0] else shell, line, recorders, [], tmp_path)
        assert words[-len(argv) :] == [*argv]
        before = words[: -len(argv)]
        assert before[-4:] == ["timeout", "-k", "5", "7"]
        assert before[:-4] == (["sudo", "-n", "env", "LC_ALL=C", f"PATH={recorders}:{SBIN}"] if sudo else [])
    assert os.listdir(tmp_path) == []


def sampled(plans: Sequence[tuple[str, str, Plan]], many: int) -> list[tuple[str, ...]]:
    """Commands of plans, the hostile ones among them: of each plan one."""
    chance = random.Random(11)
    return [chance.choice(sorted({*plan.commands()}, key=len)) for _, _, plan in plans[:many]]


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: Path(shell[0]).name)
@pytest.mark.slow
def test_each_word_of_a_trial_arrives_as_one_and_nothing_else_runs(
    shell: list[str], hostile_plans: list[tuple[str, str, Plan]], recorders: Path, tmp_path: Path
) -> None:
    """What the control side puts in front of trial.sh: the values, and the functions that prepare, warm and measure."""
    for _, _, plan in hostile_plans:
        trial = plan.trials[-1]
        expected = _expected(trial)
        names = sorted({words[0] for words in expected})
        if any("/" in name or name in ("", ".", "..", "-", "--") or len(name) > 200 for name in names):
            continue  # the path of a program would be run as it is
        script = f'{_head(trial)}\nprepare; warm; measured; check "$out" "$directory" "$mountpoint" "$fstype"'
        if "busybox" in shell[0]:
            if not all(re.fullmatch(r"[a-z_]+", name) for name in names):
                continue  # not the name of a function
            script = functions([*names, "check"]) + script
        found = told(shell, script, recorders, [*names, "check"], tmp_path)
        assert found[:-1] == [list(words) for words in expected]
        assert found[-1][1:3] == [f"/dev/shm/mountlab-root/r1/{trial.trial_id}", _directory(plan, trial)]
    assert os.listdir(tmp_path) == []


def _head(trial: PlannedTrial) -> str:
    """The script without trial.sh itself. `timeout` and `sh` are recorders, so that nothing is run; `exec` would end
    the shell that asks them."""
    script = trial.argv[4]
    head, found, _ = script.partition(files("mountlab.sweep").joinpath("trial.sh").read_text())
    assert found
    measured = head.partition("measured() {")[2]
    assert measured.count('exec "$@"') == 1
    return head.replace('exec "$@"', '"$@"')


def _expected(trial: PlannedTrial) -> list[tuple[str, ...]]:
    command = trial.command
    written = [("sh", "-c", 'printf %s "$1" >"$2"', "write", text, path) for path, text in command.files.items()]
    outer = ("timeout", "-k", "5", f"{command.timeout_s + 15:g}")
    limited = (*outer, "timeout", "-k", "5", f"{command.timeout_s:g}", *command.argv)
    return [*written, *command.prepare, *trial.ready, limited]


def _directory(plan: Plan, trial: PlannedTrial) -> str:
    root = next(mount.root for mount in plan.mounts if mount.id == trial.mount)
    return f"{root}/{trial.trial_id}"


@pytest.mark.slow
def test_an_option_for_mount_is_one_option(hostile_plans: list[tuple[str, str, Plan]]) -> None:
    """A comma would begin another; a word in front of '=' says what it is, and some say where to look for more."""
    seen = 0
    for _, _, plan in hostile_plans:
        for mount in plan.mounts:
            for option in mount.filesystem.options:
                names = [re.split("[=.+]", each)[0] for each in option.split(",")]
                assert not {*names} & {*_NOT_FOR_MOUNT}
                assert all(re.fullmatch(r"\d[\d-]*", each) for each in names[1:]), option
                seen += 1
    assert seen > 10


@every_row(
    "option",
    [
        "noatime,suid",
        "a,b=c",
        "mode=0755,dev",
        "loop=/dev/sda",
        "lowerdir+=/etc",
        "datadir=/etc",
        "X-mount.subdir=etc",
        "X-mount.mkdir",
        "x-mount.idmap=b:0:0:1",
        "helper=x",
        "uhelper=x",
        "verity.hashdevice=/dev/sda",
        "offset=4096",
        "-o",
        "--bind",
        "/etc",
        "",
        " ",
        "a b",
        "a\nb",
        "a\\,b",
        'a"b',
        "journal_path=/dev/sda",
    ],
)
def test_options_that_reach_further_are_refused(option: str) -> None:
    assert isinstance(plan_with("mount option", option), MountlabError)


# --- names on the command line ----------------------------------------------------------------------------------------


@every_row("word", [*PATHS, *TEXTS, *OPTIONS, *COMMANDS])
def test_a_name_of_a_box_is_no_path_and_no_option(word: str) -> None:
    with pytest.raises(MountlabError) as caught:
        paths.load_box(word)
    assert caught.value.exit_code == 2


names = st.text(st.characters(codec="utf-8"), max_size=12)


@given(names)
def test_a_plain_name_stays_in_its_directory(name: str) -> None:
    if PLAIN.match(name):
        assert Path("/a", name).parent == Path("/a")
        assert os.path.normpath(f"/a/{name}") == f"/a/{name}"
        assert not name.startswith(("-", "."))


# --- login shells that are not here -----------------------------------------------------------------------------------

words_of_any_kind = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=15), min_size=1)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(words_of_any_kind)
def test_what_csh_and_fish_heed_inside_quotes_is_never_sent(words: list[str]) -> None:
    """csh: '!' and new lines, also inside single quotes. fish: backslashes there. sh: the quote itself."""
    line = command_line(words, timeout_s=5)
    inside = line.split("'")[1::2]
    outside = "".join(line.split("'")[0::2])
    assert line.count("'") % 2 == 0
    if len(inside) > 1:  # what begins to undo the escapes is a fixed text, with a backslash for nobody
        assert inside[0] == 'eval "$(printf %b "$1")"'
    assert not set("".join(inside[1:])) & set("!\n'")
    assert outside in ("exec sh -c ", "exec sh -c  sh ")
    assert re.search(r"\\(?!0(041|012|134|047))", "".join(inside[1:])) is None

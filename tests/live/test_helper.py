"""The helper on a box, used by a real second user: sweeps in his name, and hundreds of attempts to get more of it."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import disks
import own_mounts
import pytest
import yaml
from mountlab.__main__ import main
from mountlab.box import helper
from mountlab.core.errors import ParameterError
from mountlab.core.model import Box, ScratchDevice
from mountlab.results import paths, store
from ordinary import Ordinary, ordinary_user
from processes import processes_with, program_of
from sweeps import TMPFS, sweep
from waiting import LIMIT_S, wait_until

pytestmark = [
    pytest.mark.box,
    pytest.mark.machine,
    pytest.mark.requires_root,
    pytest.mark.requires_program("sudo", "visudo", "useradd", "setpriv", "flock", "losetup", "mke2fs"),
]
INSTALLED = Path(helper.PROGRAM).parent
RULE = Path("/etc/sudoers.d/mountlab-helper")
OWN_BOXES = """
import os, sys
from pathlib import Path
from mountlab.results import paths
paths.PARAMS = Path(os.environ["HOME"], "params")
"""
"""Box files of a test's own."""
RUN_ONLY = "from mountlab.runner import workflow; workflow.run(paths.load_sweep(Path(sys.argv[1])))"
"""Without the report."""


@dataclass(frozen=True)
class Helped:
    """A user for whom the helper is installed."""

    user: Ordinary
    mount_root: Path
    stable: str
    """The stable name of a scratch device, as helper.conf lists it."""
    device: str
    box: Box

    def python(self, script: str, *words: str) -> subprocess.CompletedProcess[str]:
        results = f"MOUNTLAB_RESULTS={self.user.home}/results"
        command = [*self.user.python[:-1], results, self.user.python[-1], "-c", OWN_BOXES + script]
        return subprocess.run([*command, *words], capture_output=True, text=True, check=False, cwd="/", timeout=LIMIT_S)

    def sh(self, script: str) -> subprocess.CompletedProcess[str]:
        """A script for sh, run as the user. From a file: an argument has no room for hundreds of commands."""
        file = self.user.home / "script.sh"
        file.write_text(script)
        become = self.user.python[: self.user.python.index("env")]
        command = [*become, "env", "-i", "PATH=/usr/bin:/bin", f"HOME={self.user.home}", "sh", str(file)]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", timeout=LIMIT_S)

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        """The helper, asked by the user. What sudo says of a machine that no file of hosts names is left out."""
        done = self.sh(shlex.join((*helper.COMMAND, "20", *words)))
        done.stderr = re.sub("^sudo: unable to resolve host .*\n", "", done.stderr)
        return done

    def answers(self, lists: Sequence[Sequence[str]]) -> list[str]:
        """Exit status and the first word on standard error, for each list of words."""
        head = """ask() {
            said=$("$@" 2>&1 >/dev/null </dev/null)
            status=$?
            case $said in "sudo: unable to resolve host "*) said=${said#*
} ;; esac
            echo "$status ${said%%[!a-z:]*}"
        }
        """
        lines = (f"ask {shlex.join((*helper.COMMAND, *words))}" for words in lists)
        return self.sh(head + "\n".join(lines)).stdout.splitlines()


def install(script: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-s", "--", *words], input=script, capture_output=True, text=True, check=False, timeout=LIMIT_S
    )


@contextmanager
def scratch_device(directory: Path) -> Iterator[tuple[str, str]]:
    """A blank device by a stable name, and what it is called now."""
    with ExitStack() as undo:
        made = disks.Disks(directory, undo)
        device = made.loop()
        yield str(made.by_id(device)), device


@pytest.fixture(scope="module")
def helped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Helped]:
    if INSTALLED.exists() or RULE.exists():
        pytest.skip(f"a helper is installed on this machine already ({INSTALLED}, {RULE})")
    yield from _installed(tmp_path_factory.mktemp("disk"))


def _installed(directory: Path) -> Iterator[Helped]:
    with ordinary_user() as user, scratch_device(directory) as (stable, device):
        root = own_mounts.ON_DISK / f"of-{user.name}"
        scratch = (ScratchDevice(name="data", device=stable),)
        box = Box(name="local", host="", embedded="loopback", mount_root=str(root), scratch=scratch)
        boxes = user.home / "params" / "boxes"
        boxes.mkdir(parents=True)
        keys = {"embedded": "loopback", "become": "helper", "scratch": {"data": stable}, "mount_root": str(root)}
        (boxes / "local.yml").write_text(yaml.safe_dump(keys))
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(paths, "PARAMS", user.home / "params")
                assert main(["box", "helper", "local", "--user", user.name, "--as", "root", "--yes"]) == 0
            yield Helped(user, root, stable, device, box)
        finally:
            install(helper.install_script(user.name, box), "remove")
            assert not INSTALLED.exists()
            assert not RULE.exists()
            (root / ".mountlab").unlink(missing_ok=True)
            if root.exists():
                root.rmdir()


def test_a_sweep_with_the_helper_mounts_measures_and_leaves_nothing(helped: Helped) -> None:
    every = {"zram": "128MiB", "journal_image": "16MiB", "tunables": {"inode_readahead_blks": 64, "queue/nomerges": 1}}
    filesystems = {
        "dir": {"type": "dir"}, "bind": {"type": "bind", "options": ["noatime"]},
        "ext4": {"type": "ext4", "options": ["noatime", "data=writeback"], **every},
        "overlay": {"type": "overlay", "over": TMPFS}, "scratch": {"type": "ext4", "device": "data"},
    }  # fmt: skip
    claimed = helped.ask("-", "claim.sh", helped.stable, "", "10")
    assert claimed.stdout.startswith(f"claimed {helped.device} "), claimed.stderr
    assert "is not among the scratch devices" in helped.ask("-", "claim.sh", helped.device, "", "10").stderr
    resolved = sweep(filesystems=filesystems, design={"repeats": 1}, baseline="ext4")
    file = helped.user.home / "x.yml"
    file.write_text(yaml.safe_dump(dict(resolved.parameters)))
    done = helped.python(RUN_ONLY, str(file))
    assert done.returncode == 0, done.stderr
    (path,) = (file.parent for file in (helped.user.home / "results").glob("*/run.json"))
    run = store.load_run(path)
    assert list(run.trials["status"]) == ["ok"] * len(filesystems), list(run.trials["reason"])
    assert (run.info.facts.rights.level, run.info.facts.rights.user) == ("helper", helped.user.name)
    assert {file.read_text() for file in path.glob("raw/*/cache")} == {"drop_caches\n"}
    (record,) = disks.records_of(disks.file_below(helped.device).stat().st_ino)
    assert "\nstate used\n" in record.read_text()
    assert [row for row in run.options if row.state in ("ignored", "changed", "added")] == []
    assert (helped.ask("-", "clean", "list").stdout, helped.mount_root.exists()) == ("", False)
    assert not Path(f"/dev/shm/mountlab-{helped.user.name}").exists()
    assert str(helped.mount_root) not in Path("/proc/self/mountinfo").read_text()


# --- tracing, where root permits it -----------------------------------------------------------------------------------

EVENT = "sched:sched_switch"
CALLS = "0,1,74"


@contextmanager
def tracing_permitted(helped: Helped) -> Iterator[None]:
    def put(*, tracing: bool) -> None:
        done = install(helper.install_script(helped.user.name, helped.box, tracing=tracing))
        assert done.returncode == 0, done.stderr

    put(tracing=True)
    try:
        yield
    finally:
        put(tracing=False)


@contextmanager
def empty_run(helped: Helped) -> Iterator[str]:
    opened = helped.ask("traced", "open.sh", "open", "me 1/2 traced")
    assert opened.returncode == 0, opened.stderr
    try:
        yield "traced"
    finally:
        helped.ask("-", "clean", "clean")
        assert not (helped.mount_root / "traced").exists()


@pytest.fixture
def mine(helped: Helped) -> Iterator[str]:
    """The number of a process of the user's."""
    become = helped.user.python[: helped.user.python.index("env")]
    with subprocess.Popen([*become, "sleep", "300"], cwd="/") as process:
        try:
            wait_until("the user's", lambda: Path(f"/proc/{process.pid}").owner() == helped.user.name)
            yield str(process.pid)
        finally:
            process.kill()


def begin(mine: str, *events: str, trial: str = "x0001", seconds: str = "20") -> tuple[str, ...]:
    return "record", "begin", trial, seconds, "1", mine, CALLS, *(events or (EVENT,))


def records(helped: Helped) -> list[int]:
    """Processes that record what belongs to the user's runs: two a trial."""
    return [pid for pid in processes_with(str(helped.mount_root)) if program_of(pid) == "perf"]


@pytest.mark.requires_program("perf")
def test_without_a_word_of_roots_nothing_is_traced(helped: Helped, mine: str) -> None:
    with empty_run(helped) as run:
        for asked in (
            ("-", "tracing.sh", EVENT),
            ("-", "kallsyms.sh"),
            (run, *begin(mine)),
            (run, "record", "end", "x0001", "data"),
        ):
            done = helped.ask(*asked)
            assert (done.returncode, done.stdout) == (1, ""), asked
            assert done.stderr.startswith("refused: root has not permitted tracing: it shows what all users"), (
                done.stderr
            )
    resolved = sweep(filesystems={"dir": {"type": "dir"}}, design={"repeats": 1, "explain": 2})
    file = helped.user.home / "untraced.yml"
    file.write_text(yaml.safe_dump(dict(resolved.parameters)))
    done = helped.python(RUN_ONLY, str(file))
    assert done.returncode != 0
    assert "the helper of the box refuses: root has not permitted tracing" in done.stderr
    assert "mountlab box helper local --tracing" in done.stderr


@pytest.mark.requires_program("perf")
def test_what_is_no_record_of_a_diagnostic_trial_is_refused(helped: Helped, mine: str) -> None:
    traced = (mine, CALLS)
    hostile = (
        *(("begin", name, "20", "1", *traced, EVENT) for name in (
            "t0001", "x", "x1/../../x", "../x0001", "x1 ", "-x1", ""
        )),
        *(("begin", "x0001", *times, *traced, EVENT) for times in (
            ("-1", "1"), ("100000", "1"), ("20", "1;id"), ("20", "")
        )),
        *(("begin", "x0001", "20", "1", pid, CALLS, EVENT) for pid in ("1", "0", "-1", "x", "", "self", "9999999")),
        *(("begin", "x0001", "20", "1", mine, calls, EVENT) for calls in (
            "", ",", "1,", ",1", "1,,2", "1 || 1", "x", "-1", "1;id"
        )),
        *(("begin", "x0001", "20", "1", *traced, event) for event in (
            "", "-o", "--output=/etc/x", "kprobes:x", "probe:x", "sched:", "sched:a b", "sched:../x",
            f"{EVENT}/call-graph=dwarf/", f"{EVENT}/name=x/", "cpu-clock", "cpu-clock/freq=99999,call-graph=fp/",
            "sched:*", "raw_syscalls:sys_enter",
        )),
        ("begin",), ("begin", "x0001"), ("begin", "x0001", "20"), ("end",), ("end", "x0001"),
        ("end", "x0001", "data"), ("end", "../x", "data"), ("end", "x0001", "status"), ("x",), (),
    )  # fmt: skip
    with tracing_permitted(helped), empty_run(helped) as run:
        for words in hostile:
            done = helped.ask(run, "record", *words)
            assert (done.returncode, done.stdout) == (1, ""), words
            assert done.stderr.startswith("refused: "), (words, done.stderr)
        assert sorted(path.name for path in (helped.mount_root / run).iterdir()) == [".mountlab", "alive", "img", "mnt"]
        assert helped.ask("-", "tracing.sh", "kprobes:x").returncode == 1
        assert records(helped) == []


@pytest.mark.long
@pytest.mark.requires_program("perf")
def test_a_record_is_roots_and_ends_whatever_becomes_of_its_run(helped: Helped, mine: str) -> None:
    with tracing_permitted(helped):
        with empty_run(helped) as run:
            begun = helped.ask(run, *begin(mine, f"{EVENT}/call-graph=fp/", "block:block_rq_issue"))
            assert begun.returncode == 0, begun.stderr
            assert len(records(helped)) == 2
            record = helped.mount_root / run / "x0001"
            assert (record.stat().st_uid, record.stat().st_mode & 0o777) == (0, 0o700)
            second = helped.ask(run, *begin(mine, trial="x0002"))
            assert "another trial of this run is recorded" in second.stderr
            for name in ("data", "calls"):
                ends = shlex.join((*helper.COMMAND, "20", run, "record", "end", "x0001", name))
                assert helped.sh(f"cd; {ends} >x.gz && gzip -d <x.gz | head -c 8; rm x.gz").stdout == "PERFILE2"
            assert helped.ask(run, "record", "end", "x0001", "windows").stdout.startswith("enable 1")
            assert not record.exists()
            assert helped.ask(run, *begin(mine)).returncode == 0
            assert len(records(helped)) == 2
        assert records(helped) == [], "`clean` ends it"
        with empty_run(helped) as run:
            assert helped.ask(run, *begin(mine)).returncode == 0
            assert helped.ask(run, "kill").returncode == 0
            assert records(helped) == []
            cut = helped.ask(run, "record", "end", "x0001", "data")
            assert (cut.returncode, cut.stdout) == (1, ""), "the shell that waited for perf is gone, too"
            assert "refused: perf was ended before its record was whole (exit status unknown)" in cut.stderr
            for _ in range(2):  # what a killed trial has left is in nobody's way
                assert helped.ask(run, *begin(mine, seconds="1")).returncode == 0
                wait_until("its end after its time", lambda: records(helped) == [])
                wait_until("its status", (helped.mount_root / run / "x0001" / "status").exists)


@pytest.mark.long
@pytest.mark.requires_program("perf")
def test_a_sweep_is_explained_where_root_permits_it(helped: Helped) -> None:
    job = {"tool": "fio", "rw": "write", "bs": "4KiB", "size": "2MiB", "fsync": 1}
    ext4 = {"type": "ext4", "image": "64MiB"}
    resolved = sweep(filesystems={"ext4": ext4}, workloads={"w": job}, design={"repeats": 1, "explain": 2})
    file = helped.user.home / "traced.yml"
    file.write_text(yaml.safe_dump(dict(resolved.parameters)))
    with tracing_permitted(helped):
        done = helped.python(RUN_ONLY, str(file))
    assert done.returncode == 0, done.stderr
    (path,) = (file.parent for file in (helped.user.home / "results").glob("*/raw/x0001/../../run.json"))
    run = store.load_run(path.resolve())
    assert list(run.trials["status"]) == ["ok"] * 3, list(run.trials["reason"])
    assert set(run.why.traces["operation"]) >= {"write", "sync"}
    assert run.why.stacks["stack"].str.contains("ext4").any()
    assert records(helped) == []


# --- attempts to get more ---------------------------------------------------------------------------------------------

RUN = "attack"


@dataclass(frozen=True)
class Open:
    """A run of the user's with an ext4 that is his, and things that are not."""

    helped: Helped
    loop: str
    foreign: str
    """A loop device of root's."""
    secret: Path

    @property
    def run_dir(self) -> Path:
        return self.helped.mount_root / RUN

    def path(self, *parts: str) -> str:
        return str(self.run_dir.joinpath(*parts))

    def must(self, *words: str) -> str:
        done = self.helped.ask(RUN, *words)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout.strip()

    def refuses(self, *words: str, because: str) -> None:
        done = self.helped.ask(RUN, *words)
        assert done.returncode == 1, done.stdout
        assert done.stderr.startswith("refused: "), done.stderr
        assert because in done.stderr


@pytest.fixture(scope="module")
def opened(helped: Helped, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    place = tmp_path_factory.mktemp("of-root")
    secret, image = place / "secret", place / "disk.img"
    secret.write_text("secret\n")
    secret.chmod(0o600)
    with image.open("xb") as file:
        file.truncate(2**24)
    foreign = subprocess.run(
        ["losetup", "--find", "--show", str(image)], capture_output=True, text=True, check=True
    ).stdout.strip()
    attack = Open(helped, "", foreign, secret)
    try:
        attack.must("open.sh", "open", "me 1/2 attack")
        attack.must("image.sh", attack.path("img", "e.img"), str(2**26), "sparse")
        loop = attack.must("losetup", "--find", "--show", "--direct-io=off", attack.path("img", "e.img"))
        attack.must("timed.sh", "mke2fs", "-q", "-F", "-t", "ext4", "-U", OURS, loop)
        attack.must("mkdir", "-p", attack.path("mnt", "e"))
        attack.must("mkdir", "-p", attack.path("mnt", "free"))
        attack.must("timed.sh", "mount", "-t", "ext4", "-o", "noatime", loop, attack.path("mnt", "e"))
        attack.must("make-dir", attack.path("own"))
        planted = f"ln -s /etc {attack.path('mnt', 'e', 'link')}; ln -s /etc {attack.path('own', 'link')}"
        assert helped.sh(planted).returncode == 0
        yield Open(helped, loop, foreign, secret)
    finally:
        helped.sh(f"rm -f {attack.path('own', 'link')}")  # it is the user's, and would stay
        helped.ask("-", "clean", "clean")
        subprocess.run(["losetup", "-d", foreign], check=True)


CLEAN = {"LC_ALL": "C", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
"""The environment that launch.sh leaves."""
OURS = "6d6f756e-746c-6162-0000-0000000000aa"


def commands(opened: Open) -> list[tuple[str, ...]]:
    """What the helper does for a run, with '@' before each word that an attacker may exchange."""
    at, loop = opened.path, opened.loop
    return [
        ("mount", "-t", "@ext4", "-o", "@noatime", f"@{loop}", f"@{at('mnt', 'free')}"),
        ("mount", "-t", "@tmpfs", "-o", "@size=1m,mode=755", "@mountlab", f"@{at('mnt', 'free')}"),
        ("mount", "@--bind", f"@{at('own')}", f"@{at('mnt', 'free')}"),
        ("timed.sh", "@mount", "-t", "xfs", "-o", "@noatime", f"@{loop}", f"@{at('mnt', 'free')}"),
        ("strict.sh", "@mount", "-t", "@tmpfs", "-o", "@size=1m", "mountlab", f"@{at('mnt', 'free')}"),
        ("alone.sh", "@noatime\nsuid", "mount", "-t", "tmpfs", "-o", "size=1m", "@mountlab", f"@{at('mnt', 'e')}"),
        ("umount", f"@{at('mnt', 'none')}"),
        ("mkdir", "@-p", f"@{at('mnt', 'e', 'x')}"),
        ("rmdir", f"@{at('mnt', 'e', 'x')}"),
        ("rm", "@-f", f"@{at('img', 'none', 'e.img')}"),
        (
            "rm",
            "-rf",
            "@--one-file-system",
            f"@{at('own', 'lower')}",
            f"@{at('own', 'upper')}",
            f"@{at('own', 'work')}",
        ),
        ("make-dir", f"@{at('mnt')}"),
        ("image.sh", f"@{at('img', 'e', 'f.img')}", "@1024", "@full"),
        ("losetup", "@--find", "@--show", "@--direct-io=on", f"@{at('own', 'x.img')}"),
        ("detach.sh", f"@{loop}", f"@{at('img', 'none.img')}"),
        ("mke2fs", "@-F", "-U", f"@{OURS}", f"@{loop}"),
        ("timed.sh", "mkfs.xfs", "@-f", "-m", f"@uuid={OURS}", "-l", "@size=16m", f"@{loop}"),
        ("mkfs.btrfs", "@-f", "-U", f"@{OURS}", f"@{loop}"),
        ("guard.sh", f"@{loop}", "@", "@"),
        ("settle.sh", f"@{loop}", "@"),
        ("guard.sh", f"@{loop}", "", "", "timed.sh", "@mke2fs", f"@{loop}"),
        ("borrow.sh", "@setting", f"@{opened.run_dir}", f"@queue:{loop}:queue_depth", "@512"),
        ("borrow.sh", "@module", f"@{opened.run_dir}", "@pmbd", "@mode=x"),
        ("borrow.sh", "back", f"@{opened.run_dir}", "@setting", "@/proc/sys/kernel/core_pattern"),
        ("evidence.sh", f"@{at('mnt', 'e', 'link')}", f"@{loop}"),
        ("open.sh", "@seize", "@me 1/2 attack"),
        ("record", "@begin", "@x0001", "@20", "@1", "@sched:sched_switch"),
        ("sh", "@-c", "@id"),
        ("@env", "id"),
    ]


def attempts(opened: Open) -> Iterator[tuple[str, ...]]:
    """Each command with each of its exchangeable words exchanged for each of these."""
    hostile = [
        "",
        "/",
        "/etc",
        "/etc/passwd",
        "/etc/shadow",
        "/dev/vda",
        opened.foreign,
        str(opened.secret),
        "../../etc",
        opened.path("mnt", "e", "link"),
        opened.path("own", "link"),
        opened.path("..", "..", "..", "etc"),
        f"{opened.run_dir}/mnt/../../../../etc",
        f"{opened.loop}/../vda",
        "-o",
        "--",
        "suid",
        "suid,dev",
        "size=1,suid",
        "$(id >/tmp/mountlab-attack)",
        "`id`",
        "a\nb",
        "a b",
        "*",
        "command_of",
        "check_root",
    ]
    for command in commands(opened):
        plain = [word.removeprefix("@") for word in command]
        for number, word in enumerate(command):
            if word.startswith("@"):
                yield from ((*plain[:number], each, *plain[number + 1 :]) for each in hostile)
    for run in ("", ".", "..", "../..", "/", "-x", "lock", "a/b", "a\nb", "$(id)", "x" * 200, "*"):
        yield ("in", run)


ACCOUNTS = ("passwd", "shadow", "group", "gshadow", "subuid", "subgid", "nshadow", ".pwd")
"""Files of /etc that change where another test makes a user of its own."""


def state_of_the_machine(opened: Open) -> dict[str, object]:
    """What no attempt may change."""
    places = (str(opened.helped.mount_root), "/etc", "/usr", "/root", "/home", "/boot", "/opt")
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    watched = [Path("/etc/sudoers"), RULE, opened.secret, *INSTALLED.iterdir()]
    accounts = [line for line in Path("/etc/passwd").read_text().splitlines() if not line.startswith("mlab")]
    return {
        "files": {file: (file.read_bytes(), file.stat().st_mode, file.stat().st_uid) for file in watched},
        "accounts": accounts,
        "etc": sorted(file.name for file in Path("/etc").iterdir() if not file.name.startswith(ACCOUNTS)),
        "mounts": sorted(point for point in mounts if point == "/" or point.startswith(places)),
        "ours": sorted(str(path) for path in opened.run_dir.rglob("*") if "mnt/e/" not in str(path)),
        "core_pattern": Path("/proc/sys/kernel/core_pattern").read_text(),
        "ran": Path("/tmp/mountlab-attack").exists(),
    }


def test_hundreds_of_hostile_lists_of_words_are_refused_and_change_nothing(opened: Open) -> None:
    """Of nearly two thousand lists every 16th: all of them take two minutes (MOUNTLAB_ALL_ATTEMPTS=1)."""
    step = 1 if os.environ.get("MOUNTLAB_ALL_ATTEMPTS") else 16
    before = state_of_the_machine(opened)
    lists = [
        ("20", *words[1:], "mkdir", "-p", "/") if words[0] == "in" else ("20", RUN, *words)
        for words in islice(attempts(opened), 0, None, step)
    ]
    said = opened.helped.answers(lists)
    assert len(said) == len(lists) > 1500 // step
    assert [(words, answer) for words, answer in zip(lists, said, strict=True) if answer != "1 refused:"] == []
    assert state_of_the_machine(opened) == before


@pytest.mark.requires_program("busybox")
def test_another_shell_refuses_the_same(opened: Open) -> None:
    """Where /bin/sh is busybox. Asked by root, beside sudo: what is looked at is the same."""
    lists = list(islice(attempts(opened), 0, None, 40))
    for words in lists:
        line = ["busybox", "sh", str(INSTALLED / "helper.sh"), RUN, *words]
        done = subprocess.run(line, capture_output=True, text=True, check=False, cwd="/", env=CLEAN, timeout=LIMIT_S)
        assert (done.returncode, done.stderr[:9]) == (1, "refused: "), words


def test_what_hangs_is_ended_at_its_limit_though_the_user_could_not_end_it(opened: Open) -> None:
    with subprocess.Popen(
        ["flock", str(INSTALLED / "lock"), "sleep", str(2 * LIMIT_S)], start_new_session=True
    ) as hanging:
        try:
            asks = ["flock", "-n", str(INSTALLED / "lock"), "true"]
            wait_until("the lock is taken", lambda: subprocess.run(asks, check=False).returncode == 1)
            done = opened.helped.sh(shlex.join((*helper.COMMAND, "1", RUN, "umount", opened.path("mnt", "free"))))
            assert done.returncode == 124
            assert hanging.poll() is None
        finally:
            os.killpg(hanging.pid, signal.SIGKILL)


def test_other_programs_and_other_ways_of_sudo_are_not_for_the_user(opened: Open) -> None:
    program = helper.PROGRAM
    for line in (
        "sudo -n id",
        "sudo -n sh -c id",
        f"sudo -n sh {program}.sh - version",
        f"sudo -n sh {program} 9 - version",
        f"sudo -n -s {program} 9 - version",
        f"sudo -n -i {program} 9 - version",
        f"sudo -n -E {program} 9 - version",
        f"sudo -n PATH=/tmp {program} 9 - version",
        f"sudo -n MKE2FS_CONFIG=/tmp/x {program} 9 - version",
        f"sudo -n -D /tmp {program} 9 - version",
        f"sudo -n -R /tmp {program} 9 - version",
        f"sudo -n -e {program}",
        f"sudo -n -g disk {program} 9 - version",
        f"sudo -n -u nobody {program} 9 - version",
        f"sudo -n {program}/../../../../bin/id",
        f"sudo -n {program}.sh 9 - version",
        f"echo id >> {program}",
        f"echo 'scratch /dev/vda' >> {INSTALLED}/helper.conf",
        f"mv {INSTALLED} {INSTALLED}.mine",
        f"ln -s /tmp {opened.run_dir}/mnt/mine",
        f"touch {opened.run_dir}/borrowed",
        f"cat {opened.secret}",
        f"touch {opened.helped.mount_root}/mine",
        f"ls {opened.run_dir}/img",
        f"cat < {INSTALLED}/lock",
        f"dd if={opened.loop} count=1 of=/dev/null",
    ):
        done = opened.helped.sh(line)
        assert done.returncode != 0, (line, done.stdout)


def test_nothing_of_the_callers_environment_directory_input_or_limits_counts(opened: Open) -> None:
    evil = opened.helped.user.home / "evil"
    names = "mount id stat awk sh env timeout flock umount mke2fs cat"
    script = f"""
        mkdir -p {evil} && cd {evil} || exit 9
        for name in {names}; do printf '#!/bin/sh\ntouch {evil}/ran\n' > $name; chmod 755 $name; done
        printf 'touch {evil}/ran\n' > rc; : > checks.sh
        export PATH={evil}:/usr/bin:/bin ENV={evil}/rc BASH_ENV={evil}/rc MKE2FS_CONFIG={evil}/rc IFS=/
        export LD_PRELOAD={evil}/rc MOUNTLAB_RUN=x CDPATH=/ TMPDIR={evil} LIBMOUNT_FSTAB={evil}/rc
        ulimit -f 0
        echo id | /usr/bin/sudo -n {helper.PROGRAM} 20 {RUN} mkdir -p {opened.path("mnt", "limits")}
        /usr/bin/sudo -n {helper.PROGRAM} 20 {RUN} rmdir {opened.path("mnt", "limits")}
    """
    done = opened.helped.sh(script)
    assert done.returncode == 0, done.stderr
    assert not (evil / "ran").exists()


def test_a_program_that_is_roots_on_a_file_system_of_the_users_makes_nobody_root(opened: Open) -> None:
    """The user cannot make one; and where there was one, or a device, it would not count."""
    shell, device = Path(opened.path("mnt", "e", "shell")), Path(opened.path("mnt", "e", "disk"))
    subprocess.run(["cp", "/bin/dash", str(shell)], check=True)
    shell.chmod(0o4755)
    subprocess.run(["mknod", "-m", "666", str(device), "b", "7", opened.foreign.removeprefix("/dev/loop")], check=True)
    done = opened.helped.sh(f"{shell} -p -c 'id -u'; dd if={device} of=/dev/null count=1")
    shell.unlink()
    device.unlink()
    assert done.stdout.strip() not in ("", "0")
    assert "Permission denied" in done.stderr


@pytest.mark.requires_program("mkfs.xfs")
def test_what_could_put_words_of_the_users_below_the_kernel_is_refused(opened: Open) -> None:
    image, mine, free = opened.path("img", "e.img"), opened.path("mnt", "e"), opened.path("mnt", "free")
    attach = ("losetup", "--find", "--show", "--direct-io=off", image)
    opened.refuses(*attach, because="has a loop device already")
    opened.must("umount", mine)
    opened.must("image.sh", opened.path("img", "f.img"), str(2**29), "sparse")
    other = opened.must("losetup", "--find", "--show", "--direct-io=off", opened.path("img", "f.img"))
    opened.must("mkfs.xfs", "-f", "-q", other)
    opened.must("mount", "-t", "ext4", opened.loop, mine)  # what is made elsewhere changes nothing here
    opened.must("umount", mine)
    opened.refuses("mke2fs", "-F", "-J", f"device={other}", opened.loop, because="was not made a journal")
    for kind in ("btrfs", "xfs"):  # among the data of the ext4 could be the super block of one that the user has made
        opened.refuses("mount", "-t", kind, opened.loop, free, because="is not mounted by the helper")
    broken = ("mkfs.btrfs", "-f", "-O", "nonsense", opened.loop)
    assert opened.helped.ask(RUN, *broken).returncode not in (0, 124)
    opened.refuses("mount", "-t", "btrfs", opened.loop, free, because="is not mounted by the helper")
    opened.must("mke2fs", "-q", "-F", "-O", "journal_dev", "-b", "4096", other)
    opened.refuses("mount", "-t", "ext4", other, free, because="is not mounted by the helper")
    opened.must("mke2fs", "-q", "-F", "-t", "ext4", "-U", OURS, opened.loop)
    opened.must("mount", "-t", "ext4", opened.loop, mine)
    opened.refuses("mke2fs", "-F", "-U", OURS, opened.loop, because="is mounted")
    opened.refuses("mke2fs", "-F", "-U", OURS, opened.foreign, because="is not a device of this run")
    opened.refuses(
        "mount", "-t", "ext4", opened.foreign, opened.path("mnt", "free"), because="is not mounted by the helper"
    )
    scratch = opened.helped.device
    subprocess.run(["mke2fs", "-q", "-F", "-U", "11111111-2222-3333-4444-555555555555", scratch], check=True)
    opened.refuses("mount", "-t", "ext4", scratch, free, because="is not mounted by the helper")  # somebody's data
    opened.refuses("mke2fs", "-F", "-U", OURS, scratch, because="formatted below the guard only")
    opened.refuses("guard.sh", scratch, "", "", because="is not among the scratch devices")  # not its stable name
    opened.refuses("mount", "-t", "tmpfs", "-o", "size=1m", "mountlab", mine, because="is mounted on")
    opened.refuses(
        "mount", "-t", "tmpfs", "-o", "noatime", "mountlab", opened.path("mnt", "free"), because="tmpfs of mountlab"
    )
    assert "is not a mount point of this run" in opened.helped.ask("another", "umount", mine).stderr
    opened.refuses("detach.sh", opened.foreign, "/etc/passwd", because="detach.sh")
    assert opened.must("detach.sh", opened.foreign, image).startswith(f"not ours: {opened.foreign} lies on ")
    assert "refused: " in opened.helped.ask("-", "losetup", "-d", opened.foreign).stderr
    assert subprocess.run(["losetup", opened.foreign], capture_output=True, check=False).returncode == 0


def test_nobody_but_root_comes_to_the_layers_of_an_overlay(opened: Open) -> None:
    """A link in their place would be an overlay over anything, that the user may write."""
    over = opened.path("mnt", "over")
    below, layers = f"{over}.below", [f"{over}.below/{name}" for name in ("lower", "upper", "work")]
    options = ",".join(f"{name}dir={path}" for name, path in zip(("lower", "upper", "work"), layers, strict=True))
    overlay = ("mount", "-t", "overlay", "-o", options, "mountlab", over)
    for directory in (over, below):
        opened.must("mkdir", "-p", directory)
    opened.refuses(*overlay, because="overlay of mountlab")  # nothing is mounted there: anybody could look in
    opened.must("mount", "-t", "tmpfs", "-o", "size=1m,mode=0777", "mountlab", below)
    assert opened.helped.sh(f"ls {below} || ln -s /etc {layers[1]}").returncode != 0
    opened.refuses(*overlay, because="overlay of mountlab")  # without layers
    opened.must("mkdir", *layers)
    opened.must(*overlay)
    assert opened.helped.sh(f"echo mine > {over}/file && cat {over}/file").stdout == "mine\n"
    assert opened.helped.sh(f"cat {layers[1]}/file").returncode != 0
    opened.must("umount", over)
    opened.must("rm", "-rf", "--one-file-system", *layers)
    opened.must("umount", below)


def test_a_mark_in_the_kernels_log_is_a_number(opened: Open) -> None:
    number = str(time.time_ns())[-15:].lstrip("0")
    assert opened.helped.ask("-", "kernel_mark", number).returncode == 0
    assert f"mountlab: trial failed ({number})" in opened.helped.ask("-", "dmesg").stdout
    for word in ("", "1)\n<0>panic", "1 2", "-1", "$(id)"):
        assert opened.helped.ask("-", "kernel_mark", word).stderr.startswith("refused: ")


def test_everything_that_is_mounted_makes_nobody_root(opened: Open) -> None:
    mounted = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    own = [line[5].split(",") for line in mounted if line[4].startswith(f"{opened.run_dir}/")]
    assert own
    assert all({"nosuid", "nodev"} <= {*options} for options in own)


def test_a_helper_that_was_changed_is_another_version(helped: Helped) -> None:
    def introduced() -> None:
        printed = helped.sh(helper.PROBE).stdout
        helper.check_introduction(helper.read_introduction(printed), Box(name="b", host="b"), helped.user.name)

    introduced()
    checks = INSTALLED / "checks.sh"
    text = checks.read_text()
    checks.write_text(f"{text}# changed\n")
    try:
        with pytest.raises(ParameterError, match="another version of Mountlab"):
            introduced()
    finally:
        checks.write_text(text)


def test_it_is_not_installed_for_who_could_become_root_anyway_nor_where_others_may_write(tmp_path: Path) -> None:
    for user, root, words in (
        ("root", "/var/lib/mountlab-x", "no name for|is root, who needs no helper"),
        ("nobody", "/tmp", "/tmp can be written by others"),
        ("nobody", str(tmp_path / "link" / "x"), "is a symbolic link"),
        ("nobody-there", "/var/lib/mountlab-x", "there is no user nobody-there; make one: useradd"),
    ):
        (tmp_path / "link").unlink(missing_ok=True)
        (tmp_path / "link").symlink_to(tmp_path)
        done = install(helper.install_script(user, Box(name="b", host="b", mount_root=root)))
        assert done.returncode == 1
        assert any(word in done.stderr for word in words.split("|")), done.stderr
    assert not RULE.exists() or "nobody" not in RULE.read_text()

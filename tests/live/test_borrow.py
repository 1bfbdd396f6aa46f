"""What is changed on the box for a mount is as it was afterwards: after success, after failure, after kill -9."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
import yaml
from disks import command
from mountlab.box import leftovers
from mountlab.box.embedded import open_box
from mountlab.results import paths, store
from mountlab.runner import workflow
from ownbox import own_box
from sweeps import CLOCK, as_is
from waiting import LIMIT_S, happens, wait_until

pytestmark = [pytest.mark.box, pytest.mark.machine, pytest.mark.requires_root, pytest.mark.requires_program("fio")]

BORROW = files("mountlab.filesystems").joinpath("borrow.sh").read_text()
HUGE = Path("/proc/sys/vm/nr_hugepages")
TUNED = ("read_ahead_kb", "nomerges", "scheduler")
LOOP = re.compile(rb"\bloop\d+\b")
ZRAM = 64 * 2**20 + 4096 * (os.getpid() % 4096)
"""Of a size that nobody else on this machine has."""
SETTINGS = {
    "huge": {"type": "hugetlbfs", "size": "16MiB"},
    "zram": {"type": "ext4", "zram": f"{ZRAM}B", "zram_algorithm": "lz4"},
    "tuned": {
        "type": "ext4", "image": "64MiB",
        "tunables": {"inode_readahead_blks": 128, "queue/read_ahead_kb": 1024, "queue/nomerges": 2},
    },
}  # fmt: skip
MAPPED = {"tool": "fio", "rw": "read", "bs": "64KiB", "size": "4MiB", "ioengine": "mmap", **CLOCK}
LONG = {**MAPPED, "time_based": True, "runtime": "30s", "rate_iops": 20}


def settings() -> dict[str, str]:
    """Every setting that these sweeps may touch: of the loop devices that are free, since they take any of those and
    let go of it; of the zram devices those of the size that these sweeps ask for."""
    free = [path for path in Path("/sys/block").glob("loop*") if not (path / "loop").exists()]
    tuned = [path / "queue" / name for path in free for name in TUNED]
    zram = [file.parent.name for file in Path("/sys/block").glob("zram*/disksize") if int(file.read_text()) == ZRAM]
    return {str(file): file.read_text() for file in (HUGE, *tuned)} | {"zram": " ".join(sorted(zram))}


def as_attached(image: Path) -> dict[str, str]:
    """What the kernel itself sets on a loop device when it is attached: Linux 6.18 then reads ahead further than on one
    that never was."""
    image.write_bytes(bytes(2**20))
    device = command("losetup", "--find", "--show", str(image))
    queue = Path("/sys/block") / Path(device).name / "queue"
    own = {name: (queue / name).read_text() for name in TUNED}
    command("losetup", "--detach", device)
    return own


def changed(before: dict[str, str], place: Path) -> dict[str, str]:
    """What is not as it was; of the loop devices only those of which a run or a box below `place` tells."""
    used = {name for file in place.rglob("*") if file.is_file() for name in LOOP.findall(file.read_bytes())}
    attached = as_attached(place / "attached.img")
    looked_at = {name for name in before if not (found := LOOP.search(name.encode())) or found[0] in used}
    after = {name: value for name, value in settings().items() if name in looked_at}
    return {name: value for name, value in after.items() if value not in (before[name], attached.get(Path(name).name))}


def given_back(before: dict[str, str], place: Path) -> bool:
    """Whether all is as it was. Whoever else has borrowed huge pages gives them back too."""
    return happens(lambda: not changed(before, place))


@pytest.fixture
def before() -> dict[str, str]:
    if not Path("/sys/class/zram-control").exists():
        pytest.skip("the kernel has no zram")
    return settings()


def borrow(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", BORROW, "borrow.sh", *arguments], capture_output=True, text=True, check=False, timeout=LIMIT_S
    )


@pytest.mark.requires_program("losetup", "mke2fs")
def test_settings_are_changed_for_the_time_of_the_mount_only(
    before: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_box(tmp_path, monkeypatch)
    resolved = as_is(filesystems=SETTINGS, workloads={"m": MAPPED}, design={"fresh_filesystem": "never", "repeats": 1})
    run = store.load_run(workflow.run(resolved, results=tmp_path / "results"))
    assert set(run.trials["status"]) == {"ok"}, list(run.trials["reason"])
    states = {row.option: row.state for row in run.options if row.kind == "tunable"}
    assert set(states.values()) == {"in effect"}, states
    assert len(states) == 3
    assert given_back(before, tmp_path), changed(before, tmp_path)


def test_settings_are_given_back_when_a_later_step_fails(
    before: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_box(tmp_path, monkeypatch)
    wrong = {
        "tuned": {**SETTINGS["tuned"], "tunables": {"queue/read_ahead_kb": 1024, "inode_readahead_blks": 33}},
        "zram": {**SETTINGS["zram"], "mkfs": ["-b", "3000"]},
        "huge": {**SETTINGS["huge"], "options": ["min_size=1T"]},
        "algorithm": {**SETTINGS["zram"], "zram_algorithm": "nonsense"},
        "unknown": {**SETTINGS["tuned"], "tunables": {"queue/no_such_setting": 1}},
    }
    resolved = as_is(filesystems=wrong, workloads={"m": MAPPED}, design={"repeats": 1})
    run = store.load_run(workflow.run(resolved, results=tmp_path / "results"))
    reasons = {row["filesystem"]: row["reason"] for row in run.trials.to_dict("records")}
    assert set(run.trials["status"]) == {"failed"}
    assert "the kernel does not take 33 for /sys/fs/ext4/loop" in reasons["tuned"]
    assert "make zram: the command failed" in reasons["zram"]
    assert "mount huge: the command failed" in reasons["huge"]
    assert f"does not take {ZRAM} bytes with nonsense" in reasons["algorithm"]
    assert "(it knows " in reasons["algorithm"]
    assert "the kernel has no setting /sys/devices/virtual/block/loop" in reasons["unknown"]
    assert given_back(before, tmp_path), changed(before, tmp_path)


@pytest.mark.requires_program("losetup", "mke2fs")
def test_settings_are_given_back_by_box_clean_after_kill_9(
    before: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_box(tmp_path, monkeypatch)
    resolved = as_is(filesystems=SETTINGS, workloads={"m": LONG}, design={"fresh_filesystem": "never", "repeats": 1})
    file = tmp_path / "long.yml"
    file.write_text(yaml.safe_dump({**resolved.parameters, "name": "long"}))
    script = (
        "import sys, pathlib; from mountlab.results import paths; from mountlab.runner import workflow; "
        f"paths.PARAMS = pathlib.Path({str(paths.PARAMS)!r}); "
        f"workflow.run(paths.load_sweep(pathlib.Path({str(file)!r})), results=pathlib.Path({str(tmp_path)!r}) / 'r')"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        begun = lambda: any((tmp_path / "mountlab-root").glob("*/mnt/*/t0*"))  # noqa: E731
        wait_until("a trial", begun, ended=lambda: process.poll() is not None)
        assert changed(before, tmp_path).keys() >= {str(HUGE), "zram"}
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with open_box(paths.load_box("local")) as connection:
        found = leftovers.remove_leftovers(connection)
    assert [each for each in found if not each.removed] == []
    kinds = [each.name.split()[0] for each in found if each.kind == "borrowed"]
    assert sorted(kinds) == ["setting"] * 4 + ["zram"]
    assert given_back(before, tmp_path), changed(before, tmp_path)


def test_what_was_borrowed_before_the_box_was_started_again_is_not_given_back_twice(tmp_path: Path) -> None:
    value = HUGE.read_text()
    (tmp_path / "borrowed").write_text(f"another-boot\tsetting\t{HUGE}\t99999\n")
    assert borrow("back", str(tmp_path), "setting", "sysctl:vm/nr_hugepages").returncode == 0
    assert HUGE.read_text() == value
    assert (tmp_path / "borrowed").read_text() == ""


def test_more_huge_pages_than_there_is_memory_for_are_refused_before_the_kernel_tries(tmp_path: Path) -> None:
    value = HUGE.read_text()
    done = borrow("hugepages", str(tmp_path), str(2**50))
    assert done.returncode == 1
    assert "are more than the memory that is available" in done.stderr
    assert HUGE.read_text() == value


def test_a_setting_that_is_borrowed_twice_is_given_back_in_two_steps(tmp_path: Path) -> None:
    value = int(HUGE.read_text())
    for more in (2, 3):
        assert borrow("setting", str(tmp_path), "sysctl:vm/nr_hugepages", f"+{more}").returncode == 0
    assert int(HUGE.read_text()) == value + 5
    for expected in (value + 2, value):
        assert borrow("back", str(tmp_path), "setting", "sysctl:vm/nr_hugepages").returncode == 0
        assert int(HUGE.read_text()) == expected


def test_a_module_that_is_loaded_already_is_somebody_else_s(tmp_path: Path) -> None:
    loaded = next(Path("/sys/module").iterdir()).name
    done = borrow("module", str(tmp_path), loaded, "mode=x")
    assert (done.returncode, "is loaded already" in done.stderr) == (1, True)


def test_what_another_run_has_borrowed_meanwhile_stays_with_it(tmp_path: Path) -> None:
    """Two runs with roots of their own on one machine: the first that ends takes no pages of the second."""
    runs = [(tmp_path / "first", 2), (tmp_path / "second", 3)]
    value = int(HUGE.read_text())
    for run, more in runs:
        run.mkdir()
        assert borrow("setting", str(run), "sysctl:vm/nr_hugepages", f"+{more}").returncode == 0
    for (run, _), left in zip(runs, (3, 0), strict=True):
        assert borrow("back", str(run), "setting", "sysctl:vm/nr_hugepages").returncode == 0
        assert int(HUGE.read_text()) == value + left


def test_what_cannot_be_given_back_keeps_its_record_until_it_can(
    before: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A zram device that a stranger holds open: the next clean must still know of it."""
    root = own_box(tmp_path, monkeypatch)
    run_dir = root / "20200101T000000-dead"
    run_dir.mkdir(parents=True)
    (root / ".mountlab").touch()
    device = borrow("zram", str(run_dir), str(ZRAM), "lz4").stdout.strip()
    with Path(device).open("rb") as held:
        holder = subprocess.Popen(["sleep", "60"], stdin=held)
    try:
        with open_box(paths.load_box("local")) as connection:
            stuck = [each for each in leftovers.remove_leftovers(connection) if not each.removed]
            assert "borrowed" in {each.kind for each in stuck}
            assert (run_dir / "borrowed").read_text().count("zram") == 1
            holder.kill()
            holder.wait()
            assert all(each.removed for each in leftovers.remove_leftovers(connection))
    finally:
        holder.kill()
        holder.wait()
    assert not root.exists()
    assert given_back(before, tmp_path), changed(before, tmp_path)


def test_what_another_scheduler_resets_is_given_back_with_the_old_one(tmp_path: Path) -> None:
    image = tmp_path / "disk.img"
    image.write_bytes(b"")
    os.truncate(image, 16 * 2**20)
    device = command("losetup", "--find", "--show", image)
    queue = Path("/sys/block") / Path(device).name / "queue"
    try:
        others = [name for name in (queue / "scheduler").read_text().split() if not name.startswith("[")]
        if not others:
            pytest.skip("the kernel has one scheduler only")
        requests = (queue / "nr_requests").read_text()
        (queue / "nr_requests").write_text("64")
        was = (queue / "scheduler").read_text()
        file = f"queue:{device}:scheduler"
        assert borrow("setting", str(tmp_path), file, others[0]).returncode == 0
        assert f"[{others[0]}]" in (queue / "scheduler").read_text()
        assert borrow("back", str(tmp_path), "setting", file).returncode == 0
        assert (queue / "scheduler").read_text() == was
        assert (queue / "nr_requests").read_text().strip() == "64"
        assert (tmp_path / "borrowed").read_text() == ""
        (queue / "nr_requests").write_text(requests)
    finally:
        command("losetup", "-d", device)

"""`make demo` at a very small size: as root, and as an ordinary user who may not mount anything."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from mountlab import care, store
from mountlab.boxes import open_box
from mountlab.demo import choose

pytestmark = [pytest.mark.box, pytest.mark.requires_program("sshd"), pytest.mark.requires_program("fio")]

TINY = [
    "repeats=2", "warmup=0", "workloads.dd-write.count=8", "workloads.dd-read.count=8",
    "workloads.fio-sequential.size=8MiB", "workloads.fio-random-read.size=8MiB",
    "workloads.fio-random-read.runtime=200ms", "workloads.fio-random-write.size=8MiB",
]  # fmt: skip
ARGUMENTS = ["-m", "mountlab", "demo", "--yes", *(word for change in TINY for word in ("-p", change))]


def run_demo(command: list[str], environment: dict[str, str], directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=environment, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200,
        check=False,
    )  # fmt: skip


@pytest.mark.requires_root
def test_the_demo_prints_the_answer_and_the_path_of_the_report_and_leaves_nothing(tmp_path: Path) -> None:
    done = run_demo([sys.executable, *ARGUMENTS], {**os.environ, "MOUNTLAB_RESULTS": str(tmp_path)}, store.ROOT)
    assert done.returncode == 0, done.stderr
    (page,) = tmp_path.glob("*/report.html")
    assert done.stdout.splitlines()[-1] == f"report: {page}"
    rows = [line.split()[:4] for line in done.stdout.splitlines()]
    assert ["dd-write", "tmpfs", "/", "ext4"] in rows
    assert ["fio-random-write", "ramfs", "/", "ext4"] in rows
    with open_box(store.load_box("local")) as connection:
        assert care.clean(connection, dry_run=True) == []


@pytest.fixture
def ordinary_user() -> Iterator[pwd.struct_passwd]:
    """A user of this machine that the test made, and removes again."""
    name = f"mlab{os.getpid()}"
    subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", name], check=True, capture_output=True)
    try:
        yield pwd.getpwnam(name)
    finally:
        subprocess.run(["userdel", "--remove", name], check=True, capture_output=True)


def as_user(user: pwd.struct_passwd) -> list[str]:
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


def python_for(user: pwd.struct_passwd) -> str:
    """An interpreter of our own version that this user may run: ours, or the distribution's."""
    ours = os.path.realpath(sys.executable)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (ours, f"/usr/bin/{version}"):
        # setpriv itself still may read everything: only what a shell below it may run counts.
        probe = [*as_user(user), "/bin/sh", "-c", 'exec "$0" -c ""', candidate]
        if subprocess.run(probe, check=False, capture_output=True, cwd="/").returncode == 0:
            return candidate
    pytest.skip(f"no {version} that an ordinary user may run")


def readable_environment(user: pwd.struct_passwd, home: Path) -> tuple[Path, Path]:
    """The installed packages and Jupyter's data files: our own, or copies where the user may not read those."""
    packages, jupyter = Path(sysconfig.get_paths()["purelib"]), Path(sys.prefix, "share/jupyter")
    readable = [*as_user(user), "/bin/sh", "-c", 'test -r "$0/pandas/__init__.py"', str(packages)]
    if subprocess.run(readable, check=False, cwd="/").returncode == 0:
        return packages, jupyter
    shutil.copytree(packages, home / "packages", symlinks=True)
    shutil.copytree(jupyter / "nbconvert", home / "jupyter/nbconvert")
    return home / "packages", home / "jupyter"


@pytest.mark.requires_root
def test_an_ordinary_user_gets_a_report_of_the_directories_that_he_may_write(
    ordinary_user: pwd.struct_passwd, tmp_path_factory: pytest.TempPathFactory
) -> None:
    user, home = ordinary_user, Path(ordinary_user.pw_dir)
    python = python_for(user)
    for part in ("lib", "params", "notebooks"):
        shutil.copytree(store.ROOT / part, home / "mountlab" / part)
    packages, jupyter = readable_environment(user, home)
    for path in (home, *home.rglob("*")):
        os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)
    environment = {
        "HOME": str(home), "USER": user.pw_name, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8",
        "PYTHONPATH": f"{home}/mountlab/lib:{packages}", "MOUNTLAB_RESULTS": f"{home}/results",
        "JUPYTER_PATH": str(jupyter),
    }  # fmt: skip
    done = run_demo([*as_user(user), python, *ARGUMENTS], environment, home)
    assert done.returncode == 0, done.stderr
    rows = [line.split()[:4] for line in done.stdout.splitlines()]
    assert ["dd-write", "shm", "/", "disk"] in rows
    assert "tmpfs, ramfs, ext4 were left out: mounting needs root or password-less sudo on the box" in done.stdout
    (page,) = (home / "results").glob("*/report.html")
    assert "mounting needs root or password-less sudo on the box" in page.read_text()
    left = [path for root in (Path("/var/tmp"), Path("/dev/shm")) for path in root.glob("mountlab-*")]
    assert left == []


FACTS = {"rights": "root", "programs": {"dd": {}, "fio": {}}, "hostname": "box"}


def test_with_all_rights_and_tools_nothing_is_left_out() -> None:
    assert choose(FACTS, {}).sweep.left_out == {}


def test_without_fio_its_workloads_are_left_out_and_said_to_be() -> None:
    sweep = choose({**FACTS, "programs": {"dd": {}}}, {}).sweep
    assert {workload.tool for workload in sweep.workloads} == {"dd"}
    assert sweep.left_out["fio-sequential"] == "fio-sequential: the box has no fio, and installing it needs root"

"""`mountlab box check`, `prepare` and `clean` as a person types them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from installed_programs import search_path_of_boxes
from mountlab import __main__
from mountlab.box.embedded import open_box
from mountlab.box.facts import roots
from mountlab.core.places import SHIPPED
from mountlab.results import paths
from mountlab.sweep.feasible import all_programs

pytestmark = [pytest.mark.box, pytest.mark.requires_program("sshd"), pytest.mark.requires_program("fio")]


def test_check_says_what_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["box", "check", "local"]) == 0
    has, _, works = capsys.readouterr().out.partition("\nWhat of Mountlab works here:\n")
    rows = {line.split()[1]: line.split()[0] for line in has.splitlines()}
    assert {rows[name] for name in ("kernel", "memory", "fio", "dd", "tar")} == {"ok"}
    assert "rights" in rows
    for row in (r"ok +tool fio +runs", r"ok +types +can be measured: .*\bdir\b", r"\w+ +cold reads ", r"\w+ +tracing "):
        assert re.search(rf"^{row}", works, re.MULTILINE)


APT_GET = """#!/bin/sh
echo "$*" >>{calls}
[ "$1" = update ] || {{ printf '#!/bin/sh\\necho fio-3.33\\n' >{programs}/fio && chmod 755 {programs}/fio; }}
"""
"""An apt-get that only brings fio."""


@pytest.mark.requires_root
def test_prepare_installs_what_is_missing_and_then_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    programs, calls = tmp_path / "programs", tmp_path / "calls"
    programs.mkdir()
    for directory in ("/usr/bin", "/usr/sbin", "/bin", "/sbin"):
        for file in Path(directory).iterdir():
            if file.name not in ("fio", "apt-get") and not (programs / file.name).is_symlink():
                (programs / file.name).symlink_to(file)
    for tool in {program.name for program in all_programs()} - {"fio"}:
        (programs / tool).is_symlink() or (programs / tool).symlink_to("/bin/true")
    (programs / "apt-get").write_text(APT_GET.format(calls=calls, programs=programs))
    (programs / "apt-get").chmod(0o755)
    search_path_of_boxes(monkeypatch, programs)

    assert __main__.main(["box", "prepare", "local", "--yes"]) == 0
    assert capsys.readouterr().out == "installed: fio\n"
    installed = [line for line in calls.read_text().splitlines() if line != "update"]
    assert installed == ["install -y --no-install-recommends -o DPkg::Lock::Timeout=120 -- fio"]

    assert __main__.main(["box", "prepare", "local", "--yes"]) == 0
    assert capsys.readouterr().out == "nothing was installed\n"
    assert [line for line in calls.read_text().splitlines() if line != "update"] == installed


def test_clean_finds_nothing_on_a_clean_box(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["box", "clean", "local"]) == 0
    assert capsys.readouterr().out == "nothing of ours is on the box\n"


def test_clean_lists_and_then_removes_a_directory_that_a_crash_has_left_elsewhere(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A file system of type dir has its directory outside of our roots."""
    with open_box(paths.load_box("local")) as connection:
        mount_root, _ = roots(connection)
    left = Path("/dev/shm") / f"mountlab-{os.getpid()}-{tmp_path.name}-shm"
    run = Path(mount_root) / f"20200101T000000-{tmp_path.name}"
    run.mkdir(parents=True)
    (run.parent / ".mountlab").touch()
    left.mkdir()
    (left / ".mountlab").touch()
    foreign = tmp_path / "mountlab-foreign"
    foreign.mkdir()
    (run / "elsewhere").write_text(f"{left}\n{foreign}\n")
    assert __main__.main(["box", "clean", "local", "--dry-run"]) == 0
    assert f"found        files    {left}" in capsys.readouterr().out
    assert left.is_dir()
    assert __main__.main(["box", "clean", "local"]) == 0
    assert f"removed      files    {left}" in capsys.readouterr().out
    assert not left.exists()
    assert not run.parent.exists()
    assert foreign.is_dir(), "without our marker it is not ours"


@pytest.mark.parametrize(
    ("verb", "named"), [("cleen", ["did you mean 'clean'?"]), ("frobnicate", ["list", "check", "prepare", "clean"])]
)
def test_an_unknown_verb_names_the_nearest_or_all_of_them(
    verb: str, named: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        __main__.main(["box", verb, "local"])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert f"'{verb}'" in error
    assert all(each in error for each in named)


def test_the_module_runs_from_anywhere() -> None:
    done = subprocess.run(
        [str(SHIPPED / ".venv/bin/python"), "-m", "mountlab", "--help"],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "A research workbench for file systems." in done.stdout

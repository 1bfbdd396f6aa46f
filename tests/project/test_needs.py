"""Programs that tests need: what is said where one is missing, and what brings it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import conftest
import pytest
from mountlab.box.embedded import here
from mountlab.core.errors import CommandError
from mountlab_dev import needs
from rows import every_row

TESTS = Path(__file__).parents[1]
OF_NO_PACKAGE = {"filebench", "server", "google-chrome", "chromium-browser"}
"""Programs that no Debian package of this name brings."""


def test_every_program_that_a_test_names_has_a_package() -> None:
    calls = re.compile(r"(?:requires_program|(?<![\w.])program)\((\"[^)]*)\)")
    named = {
        name
        for file in TESTS.rglob("*.py")
        for call in calls.findall(file.read_text())
        for names in re.findall(r'"([^"]+)"', call)
        for name in names.split("|")
    }
    assert len(named) > 20
    assert named - set(needs.PROGRAMS) - OF_NO_PACKAGE == set()


@every_row("name", needs.PROGRAMS)
def test_a_test_without_its_program_names_the_package(name: str, request: pytest.FixtureRequest) -> None:
    """Asked of each test of this session that says it needs the program."""
    plain = here.find
    expected = f"needs {name} (apt-get install {needs.PACKAGES[name]})"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(here, "find", lambda program: None if program.name == name else plain(program))
        assert needs.missing().count(name) == 1
        assert needs.reason(name) == expected
        for item in request.session.items:
            if any(name in mark.args for mark in item.iter_markers("requires_program")):
                assert expected in list(conftest._obstacles(item)), item.nodeid


def test_one_command_brings_all_that_is_missing() -> None:
    assert needs.command(["mkfs.xfs", "sudo", "visudo"]) == "apt-get install sudo xfsprogs"
    assert needs.command(["filebench"]) == ""


SKIPPED = "tests that need fio will be skipped: the answer was no\napt-get install fio"
INSTALLED = (
    # (missing before, missing after, asked for all, answer, what is asked, what is said)
    (["fio"], [], False, True, ["fio"], ""),
    (["fio"], ["fio"], False, False, ["fio"], SKIPPED),
    (["pg_test_fsync"], ["pg_test_fsync"], False, True, [], ""),
    (["pg_test_fsync"], [], True, True, ["postgresql"], ""),
    ([], [], True, True, [], ""),
)  # fmt: skip


@pytest.mark.parametrize(("before", "after", "by_hand", "answer", "asked", "said"), INSTALLED)
def test_what_is_missing_is_installed_after_asking(
    before: list[str], after: list[str], by_hand: bool, answer: bool, asked: list[str], said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    gone, questions, commands = set(before), list[str](), list[list[str]]()

    def run(argv: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(argv)
        gone.intersection_update(after)
        return subprocess.CompletedProcess(argv, 0, "")

    def answered(question: str) -> bool:
        questions.append(question)
        return answer

    monkeypatch.setattr(here, "find", lambda program: None if program.name in gone else f"/bin/{program.name}")
    monkeypatch.setattr(here, "manager", lambda: "apt")
    monkeypatch.setattr(here, "_as_root", tuple)
    monkeypatch.setattr(needs, "_obstacle", lambda **_: "")
    monkeypatch.setattr(here.subprocess, "run", run)
    assert needs.install(by_hand=by_hand, ask=answered, at_terminal=False) == said
    wanted = [f"On this machine, run: apt-get install -y {package}?" for package in asked]
    assert questions == wanted
    assert [argv[-1] for argv in commands] == (asked if answer else [])


def test_where_nothing_can_be_installed_the_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(here, "find", lambda program: None if program.name == "fio" else "/bin/x")
    monkeypatch.setattr(here, "manager", lambda: "dnf")
    said = needs.install(by_hand=False, ask=lambda _: True, at_terminal=False)
    assert said.startswith("tests that need fio will be skipped: this machine has no apt-get")
    assert said.endswith("\napt-get install fio")


def test_an_installation_that_fails_is_no_error_of_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise CommandError("`apt-get install -y fio` failed", evidence="no network")

    monkeypatch.setattr(here, "find", lambda program: None if program.name == "fio" else "/bin/x")
    monkeypatch.setattr(here, "install", fail)
    monkeypatch.setattr(needs, "_obstacle", lambda **_: "")
    said = needs.install(by_hand=False, ask=lambda _: True, at_terminal=False)
    assert "fio will be skipped: `apt-get install -y fio` failed" in said

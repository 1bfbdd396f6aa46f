"""Boxes whose users have other login shells and languages, through a private sshd: what is sent arrives there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from installed_programs import program
from mountlab.box.embedded import loopback, open_box
from mountlab.results import paths, store
from mountlab.runner import workflow
from ownbox import own_box
from repetition import others_long
from sweeps import as_is

pytestmark = [pytest.mark.box, pytest.mark.requires_program("sshd")]

SHELLS = {
    "bash": "bash", "dash": "dash", "fish": "fish", "zsh": "zsh", "tcsh": "tcsh", "busybox": "busybox ash",
}  # fmt: skip
LANGUAGES = ("ru_RU.UTF-8", "zh_CN.UTF-8", "ja_JP.UTF-8")
DD = {"tool": "dd", "direction": "write", "bs": "64KiB", "count": 4}


def logging_in_with(patch: pytest.MonkeyPatch, *, shell: str = "sh", language: str = "C") -> None:
    """Have sshd run what is sent as it would for a user with this login shell and language."""
    plain = loopback.configuration

    def changed(*given: Any, **more: Any) -> str:
        text = plain(*given, **more)
        languages = f"SHLVL=2 LANG={language} LC_ALL={language} LANGUAGE={language.partition('_')[0]}"
        return text.replace("SHLVL=2", languages) + f'ForceCommand exec {shell} -c "$SSH_ORIGINAL_COMMAND"\n'

    patch.setattr(loopback, "configuration", changed)


def measured(tmp_path: Path) -> store.Run:
    """A run of two trials in a directory."""
    resolved = as_is(filesystems={"here": {"type": "dir"}}, workloads={"dd": DD}, design={"repeats": 2})
    return store.load_run(workflow.run(resolved, results=tmp_path / "results"))


@pytest.mark.parametrize("shell", others_long(SHELLS, kept={"fish", "tcsh"}))
def test_a_sweep_runs_whatever_the_login_shell(shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(SHELLS[shell].split()[0])
    own_box(tmp_path, monkeypatch)
    logging_in_with(monkeypatch, shell=SHELLS[shell])
    run = measured(tmp_path)
    assert [*run.trials["status"]] == ["ok", "ok"]
    assert (run.info.facts.processors.count or 0) >= 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_programs_of_a_box_speak_english_whatever_the_language_of_the_login(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_box(tmp_path, monkeypatch)
    logging_in_with(monkeypatch, language=language)
    with open_box(paths.load_box("local")) as connection:
        printed = connection.run(("sh", "-c", "echo $LANG $LC_ALL; dd if=/dev/zero of=/dev/null bs=512 count=4"))
    assert printed.text == f"{language} C\n"
    assert " copied, " in printed.error_text

"""`make audit`: it finds what it is there to find, says what it could not look at, and finds nothing here."""

from __future__ import annotations

import json
import re
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
from mountlab.core.errors import StoreError
from mountlab.core.places import SHIPPED
from mountlab_dev.__main__ import parser
from mountlab_dev.audit import Outcome, audit
from mountlab_dev.audit.look import SERVICE
from mountlab_dev.audit.rules import advisories, pins, secrets
from rows import every_row

LOCK = """# by hand
Jinja2==2.10 ; python_version < '4' \\
    --hash=sha256:aaa \\
    --hash=sha256:bbb
    # via x
zope_interface==5.0 \\
    --hash=sha256:ccc
loose==1.0
"""
RECORD = {
    "id": "PYSEC-1", "summary": "Sandbox escape",
    "affected": [{"package": {"ecosystem": "PyPI", "name": "jinja2"}, "versions": ["2.9", "2.10"]}],
}  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A clone with a lock file."""
    (tmp_path / "requirements.lock").write_text(LOCK)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


def track(tree: Path, name: str, text: str, mode: int = 0o644) -> None:
    (tree / name).write_text(text)
    (tree / name).chmod(mode)
    subprocess.run(["git", "-C", str(tree), "add", "-A"], check=True)


def by_what(outcomes: list[Outcome], what: str) -> Outcome:
    return next(each for each in outcomes if each.what.startswith(what))


# --- here -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_this_tree_has_no_secret_and_every_library_a_checksum(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = parser().parse_args(["audit", "--offline"])
    assert arguments.verb(arguments) == 0
    advisories, *others = sorted(capsys.readouterr().out.splitlines())
    assert re.match(r"NOT LOOKED  advisories for \d+ libraries: --offline; ", advisories)
    assert [line for line in others if not line.startswith("ok ")] == []
    assert len(pins((SHIPPED / "requirements.lock").read_text())) > 100


def test_lints_for_unsafe_calls_are_on() -> None:
    """`make lint` runs them; an exception stands in pyproject.toml, or beside the line, with its reason."""
    assert '"S", ' in (SHIPPED / "pyproject.toml").read_text()
    for file in (SHIPPED / "lib").rglob("*.py"):
        for line in file.read_text().splitlines():
            assert "noqa: S" not in line or line.partition("noqa: S")[2].count("# ") == 1, f"no reason: {file}: {line}"


# --- what would be found ----------------------------------------------------------------------------------------------


def test_pins_are_read_with_their_checksums() -> None:
    found = [(each.name, each.version, each.has_checksum) for each in pins(LOCK)]
    assert found == [("jinja2", "2.10", True), ("zope-interface", "5.0", True), ("loose", "1.0", False)]


@every_row(
    ("change", "many"),
    [
        ({}, 1),
        ({"withdrawn": "2020-01-01"}, 0),
        ({"affected": [{"package": {"ecosystem": "npm", "name": "jinja2"}, "versions": ["2.10"]}]}, 0),
        ({"affected": [{"package": {"ecosystem": "PyPI", "name": "Zope.Interface"}, "versions": ["5.0"]}]}, 1),
        ({"affected": [{"package": {"ecosystem": "PyPI", "name": "jinja2"}, "versions": ["2.11"]}]}, 0),
        ({"affected": [{}]}, 0),
    ],
)
def test_an_advisory_is_for_a_version(change: dict[str, Any], many: int) -> None:
    assert len(list(advisories([{**RECORD, **change}], pins(LOCK)))) == many


def test_a_database_is_searched(tree: Path) -> None:
    with zipfile.ZipFile(tree / "all.zip", "w") as archive:
        archive.writestr("PYSEC-1.json", json.dumps(RECORD))
    found = by_what(audit(tree, database=tree / "all.zip"), "advisories")
    assert found.findings == ("jinja2 2.10: PYSEC-1 Sandbox escape",)
    (tree / "all.zip").write_text("no zip")
    with pytest.raises(StoreError, match="not a database of advisories"):
        audit(tree, database=tree / "all.zip")


def test_the_service_is_told_names_and_versions_only(tree: Path) -> None:
    asked: list[Any] = []

    def ask(question: bytes) -> Any:
        asked.append(json.loads(question))
        return {"results": [{"vulns": [{"id": "GHSA-1", "modified": "2020"}]}, {}, {}]}

    assert by_what(audit(tree, ask=ask), "advisories").findings == (
        "jinja2 2.10: GHSA-1 https://osv.dev/vulnerability/GHSA-1",
    )
    assert asked[0]["queries"][0] == {"package": {"name": "jinja2", "ecosystem": "PyPI"}, "version": "2.10"}


@pytest.mark.parametrize("answer", [OSError("no network"), {}, {"results": []}, [], {"results": [1, 2, 3]}])
def test_no_answer_is_no_pass(tree: Path, answer: Any) -> None:
    def ask(_: bytes) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    outcome = by_what(audit(tree, ask=ask), "advisories")
    assert outcome.not_looked.startswith(SERVICE)
    assert str(outcome).startswith("NOT LOOKED")


TOKEN = "ghp_" + "a1B2" * 9
SECRETS = {
    "-----BEGIN OPENSSH " + "PRIVATE KEY-----\n" + "b3BlbnNzaC1rZXktdjEAAAAA": "a private key",
    "key = 'AKIA" + "IOSFODNN7EXAMPLE'": "a key of a cloud",
    TOKEN: "a token",
    "url: https://alice:" + "hunter2@example.org/x": "a password in an address",
    "pass" + "word: 'correct horse'".replace(" horse", "-horse"): "a password",
}


@pytest.mark.parametrize("text", SECRETS)
def test_a_secret_in_the_tree_is_found(text: str, tree: Path) -> None:
    track(tree, "notes.txt", f"one\n{text}\n")
    assert by_what(audit(tree, offline=True), "secrets").findings == (f"notes.txt, line 2: {SECRETS[text]}",)


@every_row("text", ["password = getpass()", "token: {token}", "https://example.org:443/a@b", "user@host:path"])
def test_what_only_looks_like_one_is_none(text: str) -> None:
    assert list(secrets(text)) == []


def test_what_git_does_not_track_is_not_read(tree: Path) -> None:
    (tree / "mine.txt").write_text(TOKEN)
    assert by_what(audit(tree, offline=True), "secrets").findings == ()


def test_modes_and_links_of_the_tree(tree: Path) -> None:
    track(tree, "run", "#!/bin/sh\n", 0o644)
    track(tree, "data", "text\n", 0o755)
    track(tree, "open", "text\n", 0o646)
    (tree / "link").symlink_to("/etc/passwd")
    subprocess.run(["git", "-C", str(tree), "add", "-A"], check=True)
    assert sorted(by_what(audit(tree, offline=True), "permissions").findings) == [
        "data: may be run, and is no script",
        "link: a symbolic link",
        "open: writable for all, or setuid",
        "run: a script that cannot be run",
    ]


def test_outside_of_a_clone_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "requirements.lock").write_text(LOCK)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert "not a clone" in by_what(audit(tmp_path, offline=True), "secrets").not_looked

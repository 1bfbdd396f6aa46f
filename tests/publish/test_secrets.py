"""Secrets in the output of a tool: found by their form, refused with their place, and accepted one by one."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from mountlab.__main__ import main
from mountlab.core import disk
from mountlab.core.errors import MountlabError
from mountlab.publish.publish import Wishes, publish
from mountlab.publish.seal_again import seal_again
from mountlab.publish.secret_forms import secrets_in
from mountlab.report import execute
from results.test_store import written
from rows import every_row

BODY = "\n".join("b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gt" for _ in range(5))
KEY = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{BODY}\n-----END OPENSSH PRIVATE KEY-----\n"
LETTERS = "a1B2c3D4e5F6g7H8i9J0kLmNoPqRsTuVwXyZ"
TOKEN = f"ghp_{LETTERS}"


@every_row(
    ("text", "kind"),
    [
        (KEY, "private key"), (KEY.replace("OPENSSH", "RSA"), "private key"),
        (KEY.replace("OPENSSH", "ENCRYPTED"), "private key"), (json.dumps({"key": KEY}), "private key"),
        ("PuTTY-User-Key-File-3: ssh-ed25519\n", "private key"), (f"remote: {TOKEN}", "github token"),
        (f"github_pat_11{LETTERS}{LETTERS}", "access token"), (f"token glpat-{LETTERS[:20]}", "gitlab token"),
        ("AKIA" + "Q7" * 8, "aws access key"),
        ("xoxb-" + f"123456789012-1234567890123-{LETTERS[:24].lower()}", "slack token"),
        (f"AIza{LETTERS[:35]}", "access token"), (f"Authorization: Bearer {LETTERS}", "access token"),
        ("https://carol:" + "s3cret@example.org/x", "basic auth credentials"),
        ("root:$6$" + f"abcdefgh${LETTERS}{LETTERS}:19000::", "password hash"),
        ("password: hunter2", "password or key by its name"), ('"passwd": "hunter2",', "password or key by its name"),
        ("db_password = correct horse", "password or key by its name"),
        ("node.session.auth.password = hunter2", "password or key by its name"),
        ("mount -o username=x,password=hunter2", "password or key by its name"),
        ("password: hunter2 logfile=/var/log/x", "password or key by its name"),
        (json.dumps({"reason": "x" * 9000 + "\npassword: hunter2\n" + "y" * 9000}), "password or key by its name"),
        ("x " * 4500 + "password: hunter2", "password or key by its name"),
        ("api_key: 0123456789", "password or key by its name"),
    ],
)  # fmt: skip
def test_a_secret_has_a_form(text: str, kind: str) -> None:
    assert kind in {secret.kind for secret in secrets_in(f"a line\n{text}\nanother\n")}, text


@every_row(
    "text",
    [
        "Permission denied (publickey,password).", "Password:", "carol@host's password: ",
        "sudo: a password is required", "password: not kept", '"password": "not kept"', "password=***",
        "password: <hidden>", "PasswordAuthentication: no", "secret=$SECRET", "CONFIG_SECRETMEM=y",
        "PWD=/var/tmp/mountlab", "OLDPWD=/root", "secretfile=/etc/ceph/key", "credentials=/etc/cifs.credentials",
        "-----BEGIN CERTIFICATE-----", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExampleExample carol@x",
        "87dcc92815079577c42b1475107d0392e43b13a79cde4ffc262e8edb4d47cd77  /usr/bin/fs_mark",
        "1f0c6c86-50b1-4d5b-9b43-0a4c5f3a7d10", "da1ca844dc4bc0e620bcb857f5639",
        "lat (usec): min=2, max=140, avg= 4.11, stdev= 1.02", "10:20:30 up 3 days, load average: 0.10",
        "8:0 sda 186312 30684 40136850 35929 173138 11766 166105200 0 1 2", "https://example.org:8080/a@b",
        "bypass: 1, passes: 12, passed=3", "keyring: 4, sort_key=name",
    ],
)  # fmt: skip
def test_what_tools_print_is_no_secret(text: str) -> None:
    assert [secret.kind for secret in secrets_in(f"{text}\n")] == []


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run whose report takes no time."""
    monkeypatch.setattr(execute, "write_report", lambda run: disk.replace_file(run / "report.html", b"<p>report"))
    return written(tmp_path / "r")


def printed(run: Path, output: str | bytes) -> None:
    (run / "raw" / "t0002" / "prepare.log").write_bytes(output if isinstance(output, bytes) else output.encode())
    seal_again(run)


@pytest.mark.slow
def test_a_secret_is_refused_with_file_line_and_fingerprint_and_never_printed(run: Path, tmp_path: Path) -> None:
    printed(run, f"first\nsecond\n{KEY}last {TOKEN}\n")
    with pytest.raises(MountlabError) as caught:
        publish([run], Wishes(to=tmp_path / "b"))
    error = caught.value
    assert error.what == "the bundle would publish secrets"
    assert str(error.where).endswith("/raw/t0002/prepare.log, line 3")
    assert "line 3: private key (" in error.got
    assert "line 10: github token (" in error.got
    assert error.next_step.rpartition(" ")[0].endswith("if that is no secret: --accept")
    assert LETTERS not in str(error)
    assert BODY[:20] not in str(error)
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


@pytest.mark.slow
def test_what_is_accepted_is_published_and_nothing_else(run: Path, tmp_path: Path) -> None:
    printed(run, f"{KEY}{TOKEN}\n")
    arguments = ["publish", str(run), "--to", str(tmp_path / "b")]
    accepted: list[str] = []
    for _ in range(2):
        with pytest.raises(MountlabError) as caught:
            publish([run], Wishes(to=tmp_path / "b", accept=tuple(accepted)))
        accepted.append(caught.value.next_step.rpartition(" ")[2])
    assert len(set(accepted)) == 2
    assert main([*arguments, "--accept", accepted[0], "--accept", accepted[1]]) == 0
    assert TOKEN in next((tmp_path / "b").glob("runs/*/raw/t0002/prepare.log")).read_text()


@pytest.mark.slow
@pytest.mark.parametrize("pack", [base64.encodebytes, gzip.compress], ids=["Base64", "gzip, with identities kept"])
def test_a_secret_in_another_encoding_is_refused(pack: Callable[[bytes], bytes], run: Path, tmp_path: Path) -> None:
    printed(run, pack(f"remote: {TOKEN}\n".encode()))
    with pytest.raises(MountlabError, match="the bundle would publish secrets"):
        publish([run], Wishes(to=tmp_path / "b", keep_identities=pack is gzip.compress))


@pytest.mark.slow
def test_a_host_name_in_base64_is_refused_and_its_place_told(run: Path, tmp_path: Path) -> None:
    info = json.loads((run / "run.json").read_text())
    info["facts"]["hostname"] = "falcon"
    (run / "run.json").write_text(json.dumps(info))
    printed(run, f"one\nid {base64.b64encode(b'node falcon, rack 3').decode()}\n")
    with pytest.raises(MountlabError) as caught:
        publish([run], Wishes(to=tmp_path / "b"))
    assert caught.value.what == "the bundle would still hold identities"
    assert "prepare.log, line 2: host names in Base64 (" in caught.value.got
    assert "falcon" not in str(caught.value)

"""Lists of known host keys, as ssh itself reads them."""

from __future__ import annotations

import base64
import shutil
import socket
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mountlab.box.hostkeys import Hop, _preferring, check_host_keys, known_hosts_files
from mountlab.box.known_hosts import KnownKeys, keys_for, read_known_hosts, server_name
from mountlab.core.errors import BoxError, HostKeyError
from paramiko import RSAKey, SSHClient
from rows import every_row

KEYGEN = shutil.which("ssh-keygen")
ONE, TWO, THREE = (base64.b64encode(f"key {word}".encode()).decode() for word in ("one", "two", "three"))
ED = "ssh-ed25519"


def said(text: str, host: str = "lab", port: int = 22, alias: str = "") -> KnownKeys:
    return keys_for(read_known_hosts(text, "known_hosts"), host, port, alias)


# --- what a line says -------------------------------------------------------------------------------------------------


@every_row(
    ("names", "host", "port", "is_trusted"),
    [
        ("lab", "lab", 22, True),
        ("LAB", "lab", 22, True),
        ("lab", "Lab", 22, True),
        ("lab,10.0.0.7", "10.0.0.7", 22, True),
        ("lab", "lab2", 22, False),
        ("*.example.org", "a.b.example.org", 22, True),
        ("*.example.org,!evil.example.org", "evil.example.org", 22, False),
        ("!evil.example.org,*.example.org", "evil.example.org", 22, False),
        ("!evil.example.org", "good.example.org", 22, False),
        ("la?", "lab", 22, True),
        ("[lab]:2222", "lab", 2222, True),
        ("[lab]:2222", "lab", 22, False),
        ("[lab]:22??", "lab", 2222, True),
        ("lab", "lab", 2222, True),  # ssh: "found matching key w/out port"
        ("l", "lab", 2222, False),
    ],
)
def test_names_match_as_ssh_has_it(names: str, host: str, port: int, is_trusted: bool) -> None:
    assert said(f"{names} {ED} {ONE}\n", host, port).is_trusted(ED, ONE) is is_trusted


def test_every_key_of_a_kind_is_trusted_and_no_other() -> None:
    """A host that changes its key shows the old one or the new one for a while."""
    listed = said(f"lab {ED} {ONE} a comment\n\tlab  {ED}\t{TWO}\nother {ED} {THREE}\nlab ssh-rsa {THREE}\n")
    assert [listed.is_trusted(ED, key) for key in (ONE, TWO, THREE)] == [True, True, False]
    assert listed.is_trusted("ssh-rsa", THREE)
    assert listed.algorithms == (ED, "rsa-sha2-512", "rsa-sha2-256")


@pytest.mark.parametrize("names", ["lab", "*", "l*b"])
def test_a_revoked_key_is_not_trusted_whatever_other_lines_say(names: str) -> None:
    listed = said(f"lab {ED} {ONE}\nlab {ED} {TWO}\n@revoked {names} {ED} {ONE}\n")
    assert [listed.is_trusted(ED, key) for key in (ONE, TWO)] == [False, True]
    assert listed.is_revoked(ONE)


def test_a_key_revoked_for_another_host_is_trusted_here() -> None:
    assert said(f"lab {ED} {ONE}\n@revoked other {ED} {ONE}\n").is_trusted(ED, ONE)


def test_the_key_of_an_authority_is_no_key_of_a_host() -> None:
    listed = said(f"@cert-authority *.example.org,lab {ED} {ONE}\n")
    assert not listed.is_trusted(ED, ONE)
    assert [each.place for each in listed.authorities] == ["known_hosts, line 1"]


def test_an_alias_takes_the_place_of_name_and_port() -> None:
    text = f"rack7 {ED} {ONE}\n[lab]:2222 {ED} {TWO}\nlab {ED} {THREE}\n"
    listed = said(text, "lab", 2222, alias="rack7")
    assert [listed.is_trusted(ED, key) for key in (ONE, TWO, THREE)] == [True, False, False]
    assert server_name("lab", 2222, "rack7") == "rack7"


def test_lines_that_say_nothing_are_passed_over() -> None:
    text = (
        f"\n# lab {ED} {ONE}\n@marker lab {ED} {ONE}\nlab {ED}\nlab {ED} not-base64!\n|1|x|y {ED} {ONE}\nlab {ED} {TWO}"
    )
    assert [each.key for each in said(text).lines] == [TWO]


host_names = st.text("ab-.", min_size=1, max_size=4)
patterns = st.lists(st.text("ab*?!-.", min_size=1, max_size=5), min_size=1, max_size=3).map(",".join)


@pytest.mark.slow
@pytest.mark.requires_program("ssh-keygen")
@settings(max_examples=40, deadline=None)
@given(patterns, host_names)
def test_ssh_keygen_finds_the_same(names: str, host: str) -> None:
    """`ssh-keygen -F` is ssh's own reader; it looks at keys too, so that this one must be whole."""
    key = "AAAAC3NzaC1lZDI1NTE5AAAAIF5O7dCCGIjiqnKtPXzFEHQkXgmZSqyPBnTbSjXAHEUv"
    assert KEYGEN is not None
    argv = [KEYGEN, "-F", host, "-f", "/dev/stdin"]
    line = f"{names} {ED} {key}\n"
    found = subprocess.run(argv, input=line, capture_output=True, text=True, check=False).stdout
    assert said(line, host).is_trusted(ED, key) is (key in found)


@pytest.mark.requires_program("ssh-keygen")
def test_hashed_names_are_found(tmp_path: Path) -> None:
    key = "AAAAC3NzaC1lZDI1NTE5AAAAIF5O7dCCGIjiqnKtPXzFEHQkXgmZSqyPBnTbSjXAHEUv"
    file = tmp_path / "known_hosts"
    file.write_text(f"lab,[lab]:2222 {ED} {key}\n")
    subprocess.run([str(KEYGEN), "-q", "-H", "-f", str(file)], check=True, capture_output=True)
    text = file.read_text()
    assert text.startswith("|1|")
    assert "lab" not in text.replace(key, "")
    assert said(text).is_trusted(ED, key)
    assert said(text, "lab", 2222).is_trusted(ED, key)
    assert not said(text, "lab2").is_trusted(ED, key)


# --- what becomes of a key that is shown ------------------------------------------------------------------------------


KEY = RSAKey.generate(1024)


def shown_to(text: str, tmp_path: Path, **config: str) -> None:
    """Paramiko meets KEY on the host `lab`, whose known_hosts holds the text. Raises what a user would see."""
    file = tmp_path / "known hosts"
    file.write_text(text.replace("KEY", f"ssh-rsa {KEY.get_base64()}"))
    settings_ = {"userknownhostsfile": f'"{file}"', "globalknownhostsfile": "none", **config}
    client = SSHClient()
    hop = SimpleNamespace(host="lab", port=22, ssh_config=settings_, connect_kwargs={}, client=client)
    checked: Hop = hop  # type: ignore[assignment]  # mypy takes no attributes from a namespace
    check_host_keys(checked, "ssh lab", "params/boxes/lab.yml: host", None)
    client._policy.missing_host_key(client, "lab", KEY)


def test_a_key_that_is_known_is_let_through(tmp_path: Path) -> None:
    shown_to("lab KEY\n", tmp_path)


def test_a_revoked_key_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(HostKeyError) as caught:
        shown_to("lab KEY\n@revoked * KEY\n", tmp_path)
    assert "the host key of lab was REVOKED" in caught.value.what
    assert "do not connect" in caught.value.next_step
    assert caught.value.exit_code == 3


def test_revoked_host_keys_of_the_configuration_are_heeded(tmp_path: Path) -> None:
    listed = tmp_path / "revoked"
    listed.write_text(f"# stolen\nssh-rsa {KEY.get_base64()} lab\n")
    with pytest.raises(HostKeyError, match="REVOKED"):
        shown_to("lab KEY\n", tmp_path, revokedhostkeys=str(listed))
    with pytest.raises(BoxError, match="cannot be read"):
        shown_to("lab KEY\n", tmp_path, revokedhostkeys=str(tmp_path / "absent"))
    listed.write_bytes(b"SSHKRL\n\0\0\0\0\1")
    with pytest.raises(BoxError, match="binary form is not understood"):
        shown_to("lab KEY\n", tmp_path, revokedhostkeys=str(listed))


def test_another_key_of_the_kind_is_a_changed_one(tmp_path: Path) -> None:
    with pytest.raises(HostKeyError) as caught:
        shown_to(f"lab ssh-rsa {ONE}\n", tmp_path)
    assert "has CHANGED" in caught.value.what
    assert f"({tmp_path / 'known hosts'}, line 1)" in caught.value.allowed
    assert f"ssh-keygen -R lab -f '{tmp_path / 'known hosts'}'" in caught.value.next_step


def test_a_key_of_another_kind_is_not_known_and_shows_what_is(tmp_path: Path) -> None:
    with pytest.raises(HostKeyError) as caught:
        shown_to(f"lab {ED} {ONE}\n", tmp_path)
    assert "host key is unknown" in caught.value.what
    assert f"{ED} SHA256:" in caught.value.allowed


def test_an_authority_is_told_to_be_of_no_use(tmp_path: Path) -> None:
    with pytest.raises(HostKeyError) as caught:
        shown_to("@cert-authority lab KEY\n", tmp_path)
    assert "host key is unknown" in caught.value.what
    assert "@cert-authority" in caught.value.allowed
    assert "line: lab ssh-rsa" in caught.value.next_step


def test_the_line_to_add_has_the_alias_of_the_host(tmp_path: Path) -> None:
    with pytest.raises(HostKeyError) as caught:
        shown_to("lab KEY\n", tmp_path, hostkeyalias="rack7")
    assert "line: rack7 ssh-rsa" in caught.value.next_step


def test_files_of_the_configuration_with_quotes_and_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/users/a")
    config = {"userknownhostsfile": '"/keys/of all" %d/by/%k ~/%h none', "globalknownhostsfile": "none"}
    names = [str(file) for file in known_hosts_files({**config, "hostkeyalias": "rack7"}, "lab")]
    assert names == ["/keys/of all", "/users/a/by/rack7", "/users/a/lab"]


def test_a_server_is_asked_first_for_the_kind_of_key_that_is_known() -> None:
    near, far = socket.socketpair()
    with near, far:
        transport = _preferring(["rsa-sha2-256"])(near)
        assert transport.get_security_options().key_types[0] == "rsa-sha2-256"
        assert "ssh-ed25519" in transport.get_security_options().key_types
        transport.close()

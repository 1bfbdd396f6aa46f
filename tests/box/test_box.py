"""The box without a box: the command line that is sent, what errors say, and the test doubles."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from installed_programs import program
from mountlab.box import ssh as box_module
from mountlab.box.connection import Completed, checked, command_line, command_text
from mountlab.box.ssh import connect
from mountlab.box.testing import Call, RecordingBox, ReplayBox, UnpreparedCommand
from mountlab.core.errors import BoxError, CommandError, ParameterError, PlanError
from mountlab.core.model import Box
from rows import every_row

NASTY = (
    "two words", "it's", "back\\slash", "\\0101", "bang!", "new\nline", "%s", "$HOME", "`id`",
    "", "*", "~", "é", '"', "^", ";",
)  # fmt: skip
LOGIN_SHELLS = ("sh", "bash", "dash", "zsh", "tcsh", "fish", "ksh")


def printed_by(shell: str, words: tuple[str, ...]) -> bytes:
    """What a login shell prints when it gets the line for `printf '%s|' WORDS...`."""
    line = command_line(("printf", "%s|", *words), timeout_s=10)
    return subprocess.run([shell, "-c", line], capture_output=True, check=True).stdout


# --- the command line -------------------------------------------------------------------------------------------------


@every_row("shell", LOGIN_SHELLS)
def test_arguments_arrive_as_they_are_whatever_the_login_shell(shell: str) -> None:
    path = program(shell)
    assert printed_by(path, NASTY) == "".join(f"{word}|" for word in NASTY).encode()


argument = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=20)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.lists(argument, min_size=1, max_size=4))
def test_any_argument_arrives_as_it_is(words: list[str]) -> None:
    assert printed_by("sh", tuple(words)) == "".join(f"{word}|" for word in words).encode()


def test_the_box_keeps_the_time_limit_and_sudo_stands_above_it() -> None:
    line = command_line(("mount", "/mnt"), timeout_s=1.2, sudo=True)
    assert 'sudo -n env LC_ALL=C PATH="$PATH" timeout -k 5 2 mount /mnt </dev/null; exit $?' in line


def test_a_command_gets_the_c_locale_the_sbin_directories_and_no_input() -> None:
    line = command_line(("sh", "-c", "echo $LC_ALL; echo $PATH; cat; echo end"), timeout_s=10)
    command_text = subprocess.run(
        ["sh", "-c", line], capture_output=True, check=True, text=True, input="typed\n"
    ).stdout
    locale, path, end = command_text.splitlines()
    assert (locale, end) == ("C", "end")
    assert path.endswith(":/usr/local/sbin:/usr/sbin:/sbin")


# --- values -----------------------------------------------------------------------------------------------------------


def test_text_of_bytes_that_are_no_text() -> None:
    completed = Completed(("x",), 0, b"caf\xc3\xa9 \xff", b"\xfe", 0.1)
    assert (completed.text, completed.error_text, completed.ok) == ("café \ufffd", "\ufffd", True)


def test_checked_passes_an_answer_on_and_says_what_failed() -> None:
    box = ReplayBox().answer(("true",), "yes")
    assert checked(box, ("true",), what="asking failed").text == "yes"
    box.answer(("mkfs", "/dev/x y"), "on stdout", stderr="no such device\n", exit_status=3)
    with pytest.raises(CommandError) as caught:
        checked(box, ("mkfs", "/dev/x y"), what="the file system could not be made")
    assert str(caught.value) == (
        "the file system could not be made\n"
        "  where:   box replay\n"
        "  got:     exit status 3 from: mkfs '/dev/x y'\n"
        "  it said:\n"
        "    | no such device"
    )
    assert caught.value.exit_code == 1


def test_scripts_are_shown_by_their_first_line() -> None:
    assert command_text(("sh", "-c", "# Do it.\ndo it\n", "it's")) == """sh -c '# Do it. ...' 'it'"'"'s'"""


# --- rights -----------------------------------------------------------------------------------------------------------


@every_row(
    ("become", "is_root", "has_sudo", "rights"),
    [
        ("auto", True, False, "root"),
        ("auto", False, True, "sudo"),
        ("auto", False, False, "none"),
        ("root", True, True, "root"),
        ("sudo", True, False, "root"),
        ("sudo", False, True, "sudo"),
        ("none", True, True, "none"),
        ("login", True, False, "root"),
        ("login", False, True, "none"),
    ],
)
def test_rights_are_what_the_login_has_limited_by_become(
    become: str, is_root: bool, has_sudo: bool, rights: str
) -> None:
    box = Box(name="b", host="b", become=become)  # type: ignore[arg-type]
    assert box_module._rights(box, is_root=is_root, has_sudo=has_sudo, user="alice") == rights


@pytest.mark.parametrize(
    ("become", "has_sudo", "what", "next_step"),
    [
        ("root", True, "the box file says root, but the login is not root's", "set `user: root`"),
        ("sudo", False, "sudo asks for a password or is missing", "echo 'alice ALL=(ALL) NOPASSWD: ALL'"),
    ],
)
def test_too_few_rights_are_an_error_of_the_box_file(become: str, has_sudo: bool, what: str, next_step: str) -> None:
    box = Box(name="b", host="b", become=become)  # type: ignore[arg-type]
    with pytest.raises(ParameterError) as caught:
        box_module._rights(box, is_root=False, has_sudo=has_sudo, user="alice")
    assert what in caught.value.what
    assert caught.value.where == "params/boxes/b.yml: become"
    assert next_step in caught.value.next_step
    assert caught.value.exit_code == 2


# --- a box that cannot be reached -------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_refused() -> None:
    port = free_port()
    with pytest.raises(BoxError) as caught:
        connect(Box(name="lab", host="127.0.0.1", port=port, user="alice"))
    error = caught.value
    assert error.what == "the box refused the connection"
    assert error.where == "params/boxes/lab.yml: host"
    assert f"alice@127.0.0.1 port {port}: 127.0.0.1 port {port}: " in error.got
    assert error.next_step.endswith(f"try by hand: ssh -p {port} -l alice 127.0.0.1 true")
    assert error.exit_code == 3


def test_unknown_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_such_name(*_: object, **__: object) -> list[object]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_such_name)
    with pytest.raises(BoxError) as caught:
        connect(Box(name="lab", host="nosuch.invalid"))
    assert caught.value.what == "the box's name is unknown"
    assert "nosuch.invalid port 22" in caught.value.got
    assert "ssh nosuch.invalid true" in caught.value.next_step


def test_something_that_is_no_sshd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(box_module._CONNECT, "banner_timeout", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(BoxError) as caught:
        connect(Box(name="lab", host="127.0.0.1", port=silent.getsockname()[1]))
    assert caught.value.what == "the box cannot be reached"
    assert "banner" in caught.value.got


def test_an_ssh_configuration_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host\n")
    with pytest.raises(BoxError) as caught:
        connect(Box(name="lab", host="lab"))
    assert caught.value.what == "the ssh configuration cannot be read"
    assert "Host" in caught.value.got


def test_a_user_given_twice() -> None:
    with pytest.raises(ParameterError) as caught:
        connect(Box(name="lab", host="alice@lab", user="bob"))
    assert caught.value.what == "the box's address is contradictory"
    assert "'alice@lab'" in caught.value.got


# --- test doubles -----------------------------------------------------------------------------------------------------


def test_a_replay_box_gives_answers_in_turn_and_the_last_one_again() -> None:
    box = ReplayBox().answer(("date",), "one").answer(("date",), "two", exit_status=1)
    assert [box.run(("date",)).text for _ in range(3)] == ["one", "two", "two"]
    assert box.run(["date"]).exit_status == 1
    assert box.calls == [Call(("date",))] * 4


def test_a_replay_box_refuses_what_nobody_prepared_and_shows_the_nearest() -> None:
    box = ReplayBox().answer(("mount", "-t", "ext4", "/dev/loop0", "/mnt")).answer(("true",))
    with pytest.raises(UnpreparedCommand) as caught:
        box.run(("mount", "-t", "xfs", "/dev/loop0", "/mnt point"))
    assert str(caught.value) == (
        "no answer is prepared for\n"
        "  mount -t xfs /dev/loop0 '/mnt point'\n"
        "the nearest prepared one is\n"
        "  mount -t ext4 /dev/loop0 /mnt"
    )
    with pytest.raises(UnpreparedCommand, match="nothing is prepared"):
        ReplayBox().run(("true",))


def test_a_replay_box_answers_by_rule_raises_and_minds_rights() -> None:
    box = ReplayBox(rights="none").when(lambda argv: argv[0] == "sh", "script").answer(("sh", "x"), "itself")
    assert (box.run(("sh", "-c", "...")).text, box.run(("sh", "x")).text) == ("script", "itself")
    assert box.run(("sh", "-c", "...")).argv == ("sh", "-c", "...")
    box.fail(("umount", "/mnt"), KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        box.run(("umount", "/mnt"))
    with pytest.raises(PlanError) as caught:
        box.run(("mount", "/mnt"), root=True)
    assert "needs root on the box" in caught.value.what
    assert caught.value.got == "rights none (become: auto) for: mount /mnt"


def test_a_recording_box_keeps_commands_in_order_those_that_raise_too() -> None:
    inner = ReplayBox().answer(("true",), "yes").fail(("false",), BoxError("gone"))
    box = RecordingBox(inner)
    assert box.run(("true",), root=True).text == "yes"
    with pytest.raises(BoxError):
        box.run(("false",), timeout_s=1)
    assert box.calls == [Call(("true",), root=True), Call(("false",))]
    assert box.calls[1].timeout_s == 1
    assert (box.box, box.rights) == (inner.box, "root")

"""The keys of the box and of the jump hosts before it, checked by the user's own known_hosts before anything is sent.

Strict always: a key that is not known, has changed or was revoked ends the connection, whatever StrictHostKeyChecking
says. Nothing is ever added to the user's files.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from paramiko import MissingHostKeyPolicy, PKey, SSHClient, Transport

from mountlab.box.known_hosts import KnownKeys, Listed, fingerprint, keys_for, read_known_hosts, read_revoked, summary
from mountlab.core.errors import BoxError, HostKeyError

USER_FILES = "~/.ssh/known_hosts ~/.ssh/known_hosts2"
SYSTEM_FILES = "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2"
_KRL = b"SSHKRL\n\0"


class Hop(Protocol):
    """What is used of a Connection of Fabric's."""

    host: str
    port: int
    ssh_config: dict[str, object]
    connect_kwargs: dict[str, object]
    client: SSHClient


def check_host_keys(hop: Hop, ssh: str, where: str, private: list[Path] | None) -> None:
    """Have `hop` accept only keys that the user has listed, or that stand in the files of `private`.

    Raises BoxError where a list cannot be read.
    """
    config: Mapping[str, object] = {} if private else hop.ssh_config
    files = private or known_hosts_files(config, hop.host)
    lines = [line for file in files for line in _lines(file)]
    trusted = keys_for(lines, hop.host, hop.port, str(config.get("hostkeyalias", "")), _revoked(config))
    # Nothing is given to Paramiko's own list, so that every key comes to us.
    hop.client.set_missing_host_key_policy(_Judge(trusted, ssh, where, files))
    hop.connect_kwargs["transport_factory"] = _preferring(trusted.algorithms)


def known_hosts_files(config: Mapping[str, object], host: str) -> list[Path]:
    """Return where the user's ssh configuration has them."""
    names = shlex.split(str(config.get("userknownhostsfile", USER_FILES)))
    names += shlex.split(str(config.get("globalknownhostsfile", SYSTEM_FILES)))
    tokens = {"%d": str(Path.home()), "%h": host, "%k": str(config.get("hostkeyalias", host))}
    return [Path(_fill(name, tokens)).expanduser() for name in names if name != "none"]


def _fill(name: str, tokens: Mapping[str, str]) -> str:
    for token, value in tokens.items():
        name = name.replace(token, value)
    return name


def _lines(file: Path) -> list[Listed]:
    try:
        return read_known_hosts(file.read_text(encoding="utf-8"), str(file))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise BoxError("the list of known host keys cannot be read", where=str(file), got=str(error)) from error


def _revoked(config: Mapping[str, object]) -> frozenset[str]:
    """Return the keys of RevokedHostKeys. A list that cannot be read revokes all, as ssh has it."""
    name = str(config.get("revokedhostkeys", "none"))
    if name == "none":
        return frozenset()
    file = Path(name).expanduser()
    try:
        data = file.read_bytes()
    except OSError as error:
        raise BoxError("the list of revoked host keys cannot be read", where=str(file), got=str(error)) from error
    if data.startswith(_KRL):
        raise BoxError(
            "a list of revoked host keys in OpenSSH's binary form is not understood, so no key is trusted",
            where=f"{file}: RevokedHostKeys",
            got="a KRL",
            allowed="a text file of public keys, one a line",
        )
    return read_revoked(data.decode("utf-8", "replace"))


def _preferring(algorithms: Sequence[str]) -> Callable[..., Transport]:
    """Return what makes a transport that asks first for the kinds of keys that are known."""

    def make(sock: object, **settings: Any) -> Transport:
        transport = Transport(sock, **settings)
        options = transport.get_security_options()
        options.key_types = tuple(sorted(options.key_types, key=lambda kind: kind not in algorithms))
        return transport

    return make


class _Judge(MissingHostKeyPolicy):  # type: ignore[misc]  # paramiko has no types
    """Verifies the server's host key."""

    def __init__(self, trusted: KnownKeys, ssh: str, where: str, files: Sequence[Path]) -> None:
        self.trusted, self.ssh, self.where, self.files = trusted, ssh, where, files

    def missing_host_key(self, client: SSHClient, hostname: str, key: PKey) -> None:
        kind, text = key.get_name(), key.get_base64()
        if self.trusted.is_trusted(kind, text):
            return
        if self.trusted.is_revoked(text):
            raise self._revoked(kind, text)
        others = self.trusted.of_kind(kind)
        raise self._changed(kind, text, others) if others else self._unknown(kind, text)

    def _revoked(self, kind: str, key: str) -> HostKeyError:
        return HostKeyError(
            f"the host key of {self.trusted.server} was REVOKED: a server that shows it cannot be trusted",
            where=self.where,
            got=f"{kind} {fingerprint(key)}",
            allowed="a key that is neither in a line with @revoked nor in RevokedHostKeys",
            next_step="ask the administrator of the box for its new key; do not connect until then",
        )

    def _changed(self, kind: str, key: str, expected: Sequence[Listed]) -> HostKeyError:
        file = expected[0].place.rpartition(", line ")[0]
        return HostKeyError(
            f"the host key of {self.trusted.server} has CHANGED: this may be another machine, or somebody in between",
            where=self.where,
            got=f"{kind} {fingerprint(key)}",
            allowed=summary(expected),
            next_step="ask the administrator of the box whether it was reinstalled; only if so, "
            f"`ssh-keygen -R {shlex.quote(self.trusted.server)} -f {shlex.quote(file)}` and connect with ssh once",
        )

    def _unknown(self, kind: str, key: str) -> HostKeyError:
        """Return an error that lists the keys known for the server, and says that a @cert-authority does not help."""
        server, listed = self.trusted.server, [each for each in self.trusted.lines if not each.marker]
        allowed = summary(listed) or f"a key listed in {' or '.join(map(str, self.files))}"
        if self.trusted.authorities:
            place = self.trusted.authorities[0].place
            allowed += f"; the @cert-authority of {place} does not help: certificates of hosts are not understood"
        return HostKeyError(
            "the box's host key is unknown, so this may be another machine",
            where=self.where,
            got=f"{server} shows {kind} {fingerprint(key)}",
            allowed=allowed,
            next_step=f"compare with `ssh-keygen -lf /etc/ssh/ssh_host_{_short(kind)}_key.pub` on the box itself; "
            f"if equal, run `{self.ssh}` once and say yes, or add to {self.files[0]} the line: {server} {kind} {key}",
        )


def _short(kind: str) -> str:
    """'ed25519' of 'ssh-ed25519', as sshd names its key files."""
    return next((each for each in ("ed25519", "ecdsa", "rsa") if each in kind), "*")

"""Boxes by name of their kind: the control machine itself through a private sshd, a virtual machine on it, or a machine
of the user's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass

from mountlab.box.embedded import guest, loopback, vm
from mountlab.box.embedded.guest import Say
from mountlab.box.readiness import Ask
from mountlab.box.ssh import Endpoint, SshBox, connect
from mountlab.core.errors import ParameterError
from mountlab.core.model import Box


@dataclass(frozen=True, kw_only=True)
class EmbeddedKind:
    """One kind of embedded box."""

    start: Callable[[Box, bool], AbstractContextManager[Endpoint]]
    """Starts one, gives its Endpoint, and stops it again: (box, whether its sshd forwards sockets)."""
    prepare: Callable[[Box, bool, Ask, Say], object]
    """Brings this machine what `start` needs: (box, whether not to ask, how to ask, how to tell what goes on)."""


EMBEDDED = {
    "loopback": EmbeddedKind(
        start=loopback.private_sshd, prepare=lambda box, yes, ask, _: loopback.install_sshd(box, yes=yes, ask=ask)
    ),
    "vm": EmbeddedKind(
        start=vm.virtual_box, prepare=lambda box, yes, ask, say: guest.build(box, yes=yes, ask=ask, say=say)
    ),
}


@contextmanager
def open_box(box: Box, *, forwards: bool = False) -> Iterator[SshBox]:
    """An open connection to `box`, closed at the end; an embedded box is started first and stopped last. With
    `forwards` its sshd forwards sockets (one of the user's does what its administrator says).

    Raises BoxError or HostKeyError when the box cannot be reached, ParameterError for an unknown kind of box.
    """
    with (
        nullcontext(None) if box.embedded is None else _kind(box).start(box, forwards) as endpoint,
        closing(connect(box, endpoint)) as opened,
    ):
        yield opened


def prepare_here(box: Box, *, yes: bool, ask: Ask, say: Say) -> None:
    """Install or build what this machine needs before an embedded box can start; for other boxes nothing."""
    if box.embedded is not None:
        _kind(box).prepare(box, yes, ask, say)


def _kind(box: Box) -> EmbeddedKind:
    if box.embedded not in EMBEDDED:
        raise ParameterError(
            "unknown kind of embedded box",
            where=f"params/boxes/{box.name}.yml: embedded",
            got=str(box.embedded),
            allowed=", ".join(EMBEDDED),
        )
    return EMBEDDED[box.embedded]

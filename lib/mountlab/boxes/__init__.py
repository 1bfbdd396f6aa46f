"""Boxes by name of their kind: the control machine itself through a private sshd, or a machine of the user's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mountlab.box import BoxConnection, connect
from mountlab.boxes.loopback import private_sshd
from mountlab.errors import ParameterError
from mountlab.model import Box

EMBEDDED = {"loopback": private_sshd}
"""The embedded boxes: a context manager that starts one, gives its Endpoint, and stops it again."""


@contextmanager
def open_box(box: Box) -> Iterator[BoxConnection]:
    """An open connection to `box`, closed at the end; an embedded box is started first and stopped last.

    Raises BoxError or HostKeyError when the box cannot be reached, ParameterError for an unknown kind of box.
    """
    if box.embedded is None:
        opened = connect(box)
        try:
            yield opened
        finally:
            opened.close()
        return
    if box.embedded not in EMBEDDED:
        raise ParameterError(
            "unknown kind of embedded box",
            where=f"params/boxes/{box.name}.yml: embedded",
            got=box.embedded,
            allowed=", ".join(EMBEDDED),
        )
    with EMBEDDED[box.embedded](box) as endpoint:
        opened = connect(box, endpoint)
        try:
            yield opened
        finally:
            opened.close()

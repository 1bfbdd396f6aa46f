"""A virtual box that starts again, by a reboot of its kernel; its disks stay."""

from __future__ import annotations

from mountlab.box.embedded import vm
from mountlab.box.embedded.child import greets
from mountlab.box.ssh import Endpoint, SshBox, connect
from mountlab.core.model import Box
from waiting import wait_until


def restarted_guest(box: Box, endpoint: Endpoint, connection: SshBox) -> SshBox:
    """Reboot at once, without a word to what runs, and connect again."""
    starts = _starts(endpoint)
    assert connection.run(("sh", "-c", "sync; (sleep 5; reboot -f) >/dev/null 2>&1 &")).ok
    connection.close()
    wait_until("another start", lambda: _starts(endpoint) == starts + 1)
    wait_until("its sshd", lambda: greets(endpoint.port, vm.GREETING_TIMEOUT_S))
    return connect(box, endpoint)


def _starts(endpoint: Endpoint) -> int:
    return endpoint.log.read_text(errors="replace").count(vm.READY)

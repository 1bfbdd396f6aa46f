"""The names of the kernel's functions, and what a thread waits for whose stack holds them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from mountlab.core.errors import ParseError

Wait = Literal["lock", "writeback", "journal", "device", "unattributed"]

_LINE = re.compile(r"^([0-9a-f]{8,16}) [a-zA-Z] ([\w.$]+)", re.MULTILINE)
_KERNEL = 1 << 63
"""Addresses from here on are the kernel's."""
_CONTEXT = (1 << 64) - 4096
"""From here on an 'address' in a stack says only whose the next ones are."""
WAITS: dict[str, Wait] = {
    **dict.fromkeys(("balance_dirty_pages", "folio_wait_stable", "wait_for_stable_page"), "writeback"),
    **dict.fromkeys(
        (
            *(
                "jbd2_log_wait_commit",
                "jbd2_complete_transaction",
                "wait_transaction_locked",
                "add_transaction_credits",
            ),
            *("wait_transaction_switching", "do_get_write_access", "__jbd2_log_wait_for_space", "start_this_handle"),
            *("xlog_wait_on_iclog", "xlog_cil_force_seq", "xlog_grant_head_wait", "xlog_state_get_iclog_space"),
            *("xfs_log_force", "xfs_log_force_seq", "xfs_log_force_inode"),
            *("btrfs_sync_log", "wait_log_commit", "wait_current_trans", "btrfs_commit_transaction"),
            *("btrfs_wait_for_commit", "btrfs_wait_tree_log_extents"),
        ),
        "journal",
    ),
    **dict.fromkeys(
        (
            *(
                "rwsem_down_read_slowpath",
                "rwsem_down_write_slowpath",
                "__mutex_lock_slowpath",
                "__down",
                "__down_common",
            ),
            *("__down_read_common", "__down_write_common", "__percpu_down_read", "percpu_rwsem_wait", "__mutex_lock"),
            *(
                "mutex_lock",
                "down",
                "down_read",
                "down_write",
                "rt_mutex_slowlock",
            ),
        ),
        "lock",
    ),
}
"""Function to what its caller waits for. The innermost of them in a stack decides."""
_ANY_DEVICE: dict[str, Wait] = dict.fromkeys(
    (
        *(
            "io_schedule",
            "io_schedule_timeout",
            "blk_io_schedule",
            "submit_bio_wait",
            "bit_wait_io",
            "folio_wait_bit_common",
        ),
        *(
            "folio_wait_writeback",
            "blkdev_issue_flush",
            "wait_on_buffer",
            "__wait_on_buffer",
            "rq_qos_wait",
            "blk_mq_get_tag",
        ),
    ),
    "device",
)
"""The same of functions that many others call: they decide where none of the others is in the stack."""


@dataclass(frozen=True)
class Symbols:
    """Addresses of the kernel's functions."""

    starts: np.ndarray
    """In ascending order."""
    names: tuple[str, ...]
    _known: dict[int, str] = field(default_factory=dict, repr=False)

    def name(self, address: int) -> str:
        """Return the function that an address lies in; '' where that is not known."""
        if address not in self._known:
            self._known[address] = self._found(address)
        return self._known[address]

    def _found(self, address: int) -> str:
        if not _KERNEL <= address < _CONTEXT:
            return ""
        at = int(np.searchsorted(self.starts, np.uint64(address), side="right")) - 1
        return self.names[at] if at >= 0 else ""

    def functions(self, stack: tuple[int, ...]) -> list[str]:
        """Return the kernel's functions in a stack, innermost first."""
        return [name for address in stack if (name := self.name(address))]


def read_symbols(text: str) -> Symbols:
    """Return what /proc/kallsyms says. Raises ParseError where it shows no addresses: kernel.kptr_restrict."""
    found = sorted((int(address, 16), name) for address, name in _LINE.findall(text))
    found = [(address, name) for address, name in found if address >= _KERNEL]
    if not found:
        raise ParseError("the kernel does not show where its functions lie", got="/proc/kallsyms without addresses")
    return Symbols(np.array([address for address, _ in found], np.uint64), tuple(_plain(name) for _, name in found))


def _plain(name: str) -> str:
    """Return the name without what the compiler has put behind it: f.isra.0 is f."""
    return name.partition(".")[0]


def wait_of(functions: list[str]) -> Wait:
    """Return what a thread waits for that left the processor in these functions, innermost first."""
    for table in (WAITS, _ANY_DEVICE):
        for name in functions:
            if name in table:
                return table[name]
    return "unattributed"

"""The names of the kernel's functions, and what a thread waits for whose stack holds them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from mountlab.core.errors import ParseError

WaitKind = Literal["lock", "freeze", "reclaim", "writeback", "journal", "queue", "device", "unattributed"]


class Wait(NamedTuple):
    """What a thread waits for, by its stack."""

    kind: WaitKind
    for_checkpoint: bool = False
    """For room in a journal or log, which a checkpoint makes."""


_LINE = re.compile(r"^([0-9a-f]{8,16}) [a-zA-Z] ([\w.$]+)", re.MULTILINE)
_KERNEL = 1 << 63
"""Addresses from here on are the kernel's."""
_CONTEXT = (1 << 64) - 4096
"""From here on an 'address' in a stack says only whose the next ones are."""
WAITS: dict[str, WaitKind] = {
    **dict.fromkeys(("balance_dirty_pages", "folio_wait_stable", "wait_for_stable_page"), "writeback"),
    **dict.fromkeys(("blk_mq_get_tag", "rq_qos_wait", "blk_queue_enter", "__bio_queue_enter"), "queue"),
    **dict.fromkeys(
        (
            *("jbd2_log_wait_commit", "jbd2_complete_transaction", "wait_transaction_locked"),
            *("wait_transaction_switching", "do_get_write_access", "add_transaction_credits", "start_this_handle"),
            *("jbd2_journal_stop", "jbd2_fc_begin_commit", "jbd2_fc_wait_bufs"),
            *("xlog_wait_on_iclog", "xlog_cil_force_seq", "xlog_grant_head_wait", "xlog_state_get_iclog_space"),
            *("xfs_log_force", "xfs_log_force_seq", "xfs_log_force_inode"),
            *("btrfs_sync_log", "wait_log_commit", "wait_current_trans", "btrfs_commit_transaction"),
            *("btrfs_wait_for_commit", "btrfs_wait_tree_log_extents"),
        ),
        "journal",
    ),
    **dict.fromkeys(
        (
            *("rwsem_down_read_slowpath", "rwsem_down_write_slowpath", "__mutex_lock_slowpath", "__mutex_lock"),
            *("__down", "__down_common", "__down_read_common", "__down_write_common", "percpu_rwsem_wait"),
            *("__percpu_down_read", "mutex_lock", "mutex_lock_io", "down", "down_read", "down_write"),
            "rt_mutex_slowlock",
        ),
        "lock",
    ),
}
"""Function to what its caller waits for. The innermost of them in a stack decides."""
_ANY_DEVICE: dict[str, WaitKind] = dict.fromkeys(
    (
        *("io_schedule", "io_schedule_timeout", "blk_io_schedule", "submit_bio_wait", "bit_wait_io"),
        *("folio_wait_bit_common", "folio_wait_writeback", "blkdev_issue_flush", "wait_on_buffer", "__wait_on_buffer"),
    ),
    "device",
)
"""The same of functions that many others call: they decide where none of the others is in the stack."""
_CHECKPOINT = frozenset(
    (
        *("jbd2_log_do_checkpoint", "__jbd2_log_wait_for_space", "jbd2_log_wait_for_space"),
        *("xlog_grant_head_wait", "xlog_grant_head_check", "xfs_log_reserve"),
    )
)
"""Functions that wait for room in a journal or log, wherever they are in a stack."""
_RECLAIM = frozenset(
    (
        *("reclaim_throttle", "throttle_direct_reclaim", "mem_cgroup_handle_over_high", "try_to_free_pages"),
        *("try_to_free_mem_cgroup_pages", "shrink_node", "shrink_lruvec", "shrink_slab", "do_shrink_slab"),
        *("shrink_folio_list", "shrink_page_list", "shrink_inactive_list"),
    )
)
"""Functions that free memory: what they wait for in turn is part of that."""
_PER_CPU = frozenset(("__percpu_down_read", "percpu_rwsem_wait", "percpu_down_read"))
_WRITES_TO_SUPERBLOCK = re.compile(
    r"mnt_want_write|\w*page_mkwrite|\w*(filemap|write)_fault|xfs_trans_alloc|start_transaction|ext4_evict_inode"
    r"|(vfs|io|aio|do|ksys)_\w*(write|fallocate|truncate|copy|clone|splice)"
)
"""Functions that wait there while a file system is frozen. Others take such locks, too: of processors, of cgroups."""


@dataclass(frozen=True)
class Symbols:
    """Addresses of the kernel's functions."""

    starts: np.ndarray
    """In ascending order."""
    names: tuple[str, ...]
    _by_address: dict[int, str] = field(default_factory=dict, repr=False)
    _stacks: dict[tuple[int, ...], tuple[str, ...]] = field(default_factory=dict, repr=False)

    def name(self, address: int) -> str:
        """Return the function that an address lies in; '' where that is not known."""
        if not _KERNEL <= address < _CONTEXT:
            return ""
        if address not in self._by_address:
            at = int(np.searchsorted(self.starts, np.uint64(address), side="right")) - 1
            self._by_address[address] = self.names[at] if at >= 0 else ""
        return self._by_address[address]

    def functions(self, stack: tuple[int, ...]) -> tuple[str, ...]:
        """Return the kernel's functions in a stack, innermost first."""
        if stack not in self._stacks:
            self._stacks[stack] = tuple(name for address in stack if (name := self.name(address)))
        return self._stacks[stack]


def read_symbols(text: str) -> Symbols:
    """Return what /proc/kallsyms says. Raises ParseError where it shows no addresses: kernel.kptr_restrict."""
    functions = sorted((int(address, 16), name) for address, name in _LINE.findall(text))
    functions = [(address, name) for address, name in functions if address >= _KERNEL]
    if not functions:
        raise ParseError("the kernel does not show where its functions lie", got="/proc/kallsyms without addresses")
    names = (name.partition(".")[0] for _, name in functions)  # the compiler makes f.isra.0 of f
    return Symbols(np.array([address for address, _ in functions], np.uint64), tuple(names))


def wait_of(functions: Sequence[str]) -> Wait:
    """Return what a thread waits for that left the processor in these functions, innermost first."""
    if not _RECLAIM.isdisjoint(functions):
        return Wait("reclaim")
    kinds = (table[name] for table in (WAITS, _ANY_DEVICE) for name in functions if name in table)
    kind: WaitKind = next(kinds, "unattributed")
    if kind == "lock" and _is_frozen(functions):
        kind = "freeze"
    return Wait(kind, for_checkpoint=not _CHECKPOINT.isdisjoint(functions))


def _is_frozen(functions: Sequence[str]) -> bool:
    """Return whether the lock is that of a superblock, by the function that takes it."""
    last = max((at for at, name in enumerate(functions) if name in _PER_CPU), default=-1)
    return last >= 0 and bool(_WRITES_TO_SUPERBLOCK.match("".join(functions[last + 1 : last + 2])))

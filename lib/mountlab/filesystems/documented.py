"""Mount options that the documentation of a file system names, and their values: what is in no list is probably a
mistyped word."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from mountlab.core.errors import did_you_mean
from mountlab.filesystems.without_effect import EXT

_ANY_VALUE = ".+"
_NUMBER = r"\d+"
_GENERIC_WORDS = """
    ro rw sync async dirsync atime noatime relatime norelatime strictatime nostrictatime diratime nodiratime lazytime
    nolazytime suid nosuid dev nodev exec noexec iversion noiversion mand nomand silent loud symfollow nosymfollow
    auto noauto defaults user nouser users owner group nofail
"""
_EXT_WORDS = """
    bsddf minixdf grpid bsdgroups nogrpid sysvgroups nouid32 debug orlov oldalloc user_xattr nouser_xattr acl noacl
    norecovery noload bh nobh journal_checksum nojournal_checksum journal_async_commit abort quota noquota usrquota
    grpquota prjquota barrier nobarrier i_version delalloc nodelalloc warn_on_error nowarn_on_error mblk_io_submit
    nomblk_io_submit block_validity noblock_validity auto_da_alloc noauto_da_alloc dioread_nolock dioread_lock
    nodioread_nolock discard nodiscard init_itable noinit_itable test_dummy_encryption inlinecrypt nombcache no_mbcache
    no_prefetch_block_bitmaps prefetch_block_bitmaps dax reservation noreservation fc_debug_force nocheck
    usrjquota grpjquota
"""
_EXT_VALUES = {
    "data": "journal|ordered|writeback", "errors": "continue|remount-ro|panic", "data_err": "abort|ignore",
    "jqfmt": "vfsold|vfsv0|vfsv1", "dax": "always|never|inode", "barrier": "0|1", "check": "none|normal|strict",
    "test_dummy_encryption": "v1|v2", "usrjquota": _ANY_VALUE, "grpjquota": _ANY_VALUE,
    **dict.fromkeys(
        ("resgid", "resuid", "sb", "commit", "min_batch_time", "max_batch_time", "stripe", "debug_want_extra_isize",
         "inode_readahead_blks", "journal_ioprio", "max_dir_size_kb", "fc_debug_max_replay", "mb_optimize_scan",
         "init_itable", "auto_da_alloc"), _NUMBER,
    ),
}  # fmt: skip
_GENERIC = tuple(_GENERIC_WORDS.split())
_NEAR = 0.9
"""How alike a word and its mistyped form are at least: 'noatime' and 'noatme' are at 0.92."""
_ALONE = frozenset((*_GENERIC, *_EXT_WORDS.split()))
_SUGGESTED = (
    *_ALONE,
    *(f"{name}={value}" for name, values in _EXT_VALUES.items() if "|" in values for value in values.split("|")),
)
SOURCE = "Documentation/admin-guide/ext4.rst, mount(8)"


def undocumented(kind: str, words: Sequence[str]) -> dict[str, str]:
    """Mount options that are probably mistyped, each with what will become of it: of ext2, ext3 and ext4 those that no
    kernel documents. Of other file systems, which have no list here, those a letter or two from an option of any."""
    fates = {}
    for word in words:
        name, equals, value = word.partition("=")
        if kind not in EXT:
            near = word not in _GENERIC and difflib.get_close_matches(word, _GENERIC, n=1, cutoff=_NEAR)
            if near:
                fates[word] = f"warning: it is probably mistyped; {did_you_mean(word, near)}"
            continue
        documented = re.fullmatch(_EXT_VALUES.get(name, "(?!)"), value) if equals else name in _ALONE
        if not documented:
            hint = did_you_mean(word, _SUGGESTED)
            fates[word] = f"warning: no kernel documents it ({SOURCE}), and {kind} will probably refuse the mount" + (
                f"; {hint}" if hint else ""
            )
    return fates

"""Mount options that the documentation of a file system names, and their values: what is in no list is probably a
mistyped word."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
_F2FS_WORDS = """
    gc_merge nogc_merge disable_roll_forward norecovery discard nodiscard heap no_heap user_xattr nouser_xattr acl noacl
    disable_ext_identify inline_xattr noinline_xattr inline_data noinline_data inline_dentry noinline_dentry flush_merge
    noflush_merge nobarrier barrier fastboot extent_cache noextent_cache age_extent_cache data_flush usrquota grpquota
    prjquota quota noquota offusrjquota offgrpjquota offprjjquota test_dummy_encryption checkpoint_merge
    nocheckpoint_merge compress_chksum compress_cache inlinecrypt atgc nat_bits
"""
_F2FS_VALUES = {
    "background_gc": "on|off|sync", "active_logs": "2|4|6", "mode": "adaptive|lfs|fragment:segment|fragment:block",
    "jqfmt": "vfsold|vfsv0|vfsv1", "alloc_mode": "reuse|default", "fsync_mode": "posix|strict|nobarrier",
    "test_dummy_encryption": "v1|v2", "checkpoint": r"enable|disable(:\d+%?)?", "compress_mode": "fs|user",
    "compress_algorithm": r"(lzo|lzo-rle|lz4|zstd)(:\d+)?", "discard_unit": "block|segment|section",
    "memory": "normal|low", "errors": "panic|continue|remount-ro", "whint_mode": "off|user-based|fs-based",
    "lookup_mode": "perf|compat|auto",
    **dict.fromkeys(("usrjquota", "grpjquota", "prjjquota", "compress_extension", "nocompress_extension"), _ANY_VALUE),
    **dict.fromkeys(
        ("inline_xattr_size", "reserve_root", "reserve_node", "resuid", "resgid", "fault_injection", "fault_type",
         "io_bits", "compress_log_size"), _NUMBER,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Documented:
    """What the kernel documents for some types of file system, beside the options of every one."""

    alone: frozenset[str]
    values: Mapping[str, str]
    """Option to a pattern of its values."""
    source: str

    @property
    def suggested(self) -> tuple[str, ...]:
        """Words to choose from where one is mistyped. A pattern is none."""
        plain = [(name, values) for name, values in self.values.items() if re.fullmatch(r"[\w:|-]+", values)]
        return (*self.alone, *(f"{name}={value}" for name, values in plain for value in values.split("|")))


_EXT = Documented(
    frozenset((*_GENERIC, *_EXT_WORDS.split())), _EXT_VALUES, "Documentation/admin-guide/ext4.rst, mount(8)"
)
_F2FS = Documented(
    frozenset((*_GENERIC, *_F2FS_WORDS.split())), _F2FS_VALUES, "Documentation/filesystems/f2fs.rst, mount(8)"
)
DOCUMENTED = {**dict.fromkeys(EXT, _EXT), "f2fs": _F2FS}
"""File system type to what is documented for it."""


def undocumented(kind: str, words: Sequence[str]) -> dict[str, str]:
    """Mount options that are probably mistyped, each with what will become of it: of types in DOCUMENTED those that no
    kernel documents. Of other file systems, which have no list here, those a letter or two from an option of any."""
    fates = {}
    known = DOCUMENTED.get(kind)
    for word in words:
        name, equals, value = word.partition("=")
        if known is None:
            near = word not in _GENERIC and difflib.get_close_matches(word, _GENERIC, n=1, cutoff=_NEAR)
            if near:
                fates[word] = f"warning: it is probably mistyped; {did_you_mean(word, near)}"
            continue
        documented = re.fullmatch(known.values.get(name, "(?!)"), value) if equals else name in known.alone
        if not documented:
            hint = did_you_mean(word, known.suggested)
            fates[word] = (
                f"warning: no kernel documents it ({known.source}), and {kind} will probably refuse the mount"
                + (f"; {hint}" if hint else "")
            )
    return fates

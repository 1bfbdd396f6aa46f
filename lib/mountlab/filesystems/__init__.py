"""The file systems that Mountlab can put under test. A new family is one new file and one line here."""

from __future__ import annotations

from mountlab.filesystems.base import Family
from mountlab.filesystems.directory import Directory
from mountlab.filesystems.ext import Ext4
from mountlab.filesystems.memory import Ramfs, Tmpfs

_KNOWN: tuple[Family, ...] = (Directory(), Tmpfs(), Ramfs(), Ext4())
FAMILIES: dict[str, Family] = {family.type: family for family in _KNOWN}
"""File system type to family."""

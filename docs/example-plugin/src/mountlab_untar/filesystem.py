"""huge_tmpfs: tmpfs whose files lie in huge pages."""

from __future__ import annotations

from mountlab.core.model import Filesystem
from mountlab.filesystems.memory import Tmpfs


class HugeTmpfs(Tmpfs):
    """tmpfs mounted with `huge=always`; a kernel without transparent huge pages refuses it."""

    type = "huge_tmpfs"
    kernel_types = ("tmpfs",)

    def own_options(self, fs: Filesystem) -> tuple[str, ...]:
        return (*super().own_options(fs), "huge=always")

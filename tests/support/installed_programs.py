"""Programs of this machine that tests use: where they are, and why a test without one is skipped."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from mountlab.box.embedded import loopback
from mountlab_dev import needs

NO_PACKAGES = re.compile(
    r"no package lists|Could not (resolve|connect)|Temporary failure (in name )?resol|Connection failed"
    r"|Release file for .* is expired|NewConnectionError|ConnectTimeout|ProxyError|CERTIFICATE_VERIFY_FAILED"
)
"""What Mountlab, apt and pip say where no server of packages is within reach, or only a mirror that is out of date."""


def program(name: str) -> str:
    """Return where a program is; skip the test where this machine does not have it."""
    return needs.find(name) or pytest.skip(needs.reason(name))


def search_path_of_boxes(patch: pytest.MonkeyPatch, *directories: Path | str) -> None:
    """Have the boxes `local` that are started from now on find programs in these directories only."""
    plain = loopback.configuration

    def with_path(*given: Any, **more: Any) -> str:
        return plain(*given, **more).replace("SHLVL=2", f"SHLVL=2 PATH={':'.join(map(str, directories))}")

    patch.setattr(loopback, "configuration", with_path)

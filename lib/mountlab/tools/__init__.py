"""The benchmark tools that Mountlab runs. A new tool is one new file and one line here."""

from __future__ import annotations

from mountlab.tools.base import Tool
from mountlab.tools.command import CommandTool
from mountlab.tools.dd import Dd
from mountlab.tools.filebench import Filebench
from mountlab.tools.fio import Fio
from mountlab.tools.fs_mark import FsMark
from mountlab.tools.pg_test_fsync import PgTestFsync

_KNOWN: tuple[Tool, ...] = (CommandTool(), Dd(), Filebench(), Fio(), FsMark(), PgTestFsync())
TOOLS: dict[str, Tool] = {tool.name: tool for tool in _KNOWN}
"""Tool name to tool."""

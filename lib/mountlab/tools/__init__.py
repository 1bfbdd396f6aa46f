"""The benchmark tools that Mountlab runs. A new tool is one new file and one line here."""

from __future__ import annotations

from mountlab.tools.base import Tool
from mountlab.tools.dd import Dd
from mountlab.tools.fio import Fio

_KNOWN: tuple[Tool, ...] = (Dd(), Fio())
TOOLS: dict[str, Tool] = {tool.name: tool for tool in _KNOWN}
"""Tool name to tool."""

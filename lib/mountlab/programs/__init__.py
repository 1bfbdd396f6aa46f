"""The benchmark tools that Mountlab runs. A new tool is one new file and one line here, or a plug-in's."""

from __future__ import annotations

from collections.abc import Iterable

from mountlab.core import plugins
from mountlab.core.groups import by_key
from mountlab.core.model import Workload
from mountlab.fio.tool import Fio
from mountlab.programs.command import CommandTool
from mountlab.programs.db_bench import DbBench
from mountlab.programs.dbench import Dbench
from mountlab.programs.dd import Dd
from mountlab.programs.degrade import Degrade
from mountlab.programs.filebench import Filebench
from mountlab.programs.fs_mark import FsMark
from mountlab.programs.ioping import Ioping
from mountlab.programs.large_directory import LargeDirectory
from mountlab.programs.pg_test_fsync import PgTestFsync
from mountlab.programs.pgbench import Pgbench
from mountlab.programs.reflink import Reflink
from mountlab.programs.rsync import Rsync
from mountlab.programs.scrub import Scrub
from mountlab.programs.send import Send
from mountlab.programs.snapshot import Snapshot
from mountlab.programs.sqlite import Sqlite
from mountlab.programs.sysbench import Sysbench
from mountlab.programs.tree import Tree
from mountlab.programs.watched import Watched
from mountlab.tools.base import Tool, Written

_KNOWN: tuple[Tool, ...] = (
    CommandTool(), DbBench(), Dbench(), Dd(), Degrade(), Filebench(), Fio(), FsMark(), Ioping(), LargeDirectory(),
    PgTestFsync(), Pgbench(), Reflink(), Rsync(), Scrub(), Send(), Snapshot(), Sqlite(), Sysbench(), Tree(), Watched(),
)  # fmt: skip
TOOLS = plugins.Registry(
    plugins.TOOLS,
    {tool.name: tool for tool in _KNOWN},
    Tool,  # type: ignore[type-abstract]
    key="name",
    unchecked=("parse",),  # programs.parsing does
)
"""Tool name to tool."""


def written(workload: Workload) -> Written:
    """Return what data the workload writes, or lays out to be read, in the words of its tool."""
    return TOOLS[workload.tool].written(workload)


def data_lines(workloads: Iterable[Workload]) -> list[str]:
    """Return one line for each tool and kind of data: 'dd (copy, stream): zeros'."""
    names = by_key(((workload.tool, written(workload).text), workload.name) for workload in workloads)
    return [f"{tool} ({', '.join(dict.fromkeys(kinds))}): {text}" for (tool, text), kinds in names.items()]


def remark_lines(workloads: Iterable[Workload]) -> list[str]:
    """Return what is not run as the texts of these workloads have it, each with the name of its workload."""
    remarks = ((workload, remark) for workload in workloads for remark in TOOLS[workload.tool].remarks(workload))
    return list(dict.fromkeys(f"{workload.name}: {remark}" for workload, remark in remarks))

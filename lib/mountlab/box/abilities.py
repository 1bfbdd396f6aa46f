"""What of Mountlab works on a box, and why the rest does not: the second part of `mountlab box check`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mountlab.box.connection import BoxConnection
from mountlab.box.containment import ask_argv, read_offers
from mountlab.box.readiness import CheckRow
from mountlab.box.tracing import PROGRAMS as TRACING_PROGRAMS
from mountlab.box.tracing import tracing_facts
from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import ParameterError
from mountlab.core.model import Filesystem, Program, Scalar
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.backing import LOSETUP
from mountlab.filesystems.base import Family
from mountlab.programs import TOOLS
from mountlab.tools.base import Tool

PROBE = r"""
for file in /proc/diskstats /proc/vmstat /proc/stat /proc/pressure/io /proc/pressure/memory; do
    head -n 1 "$file" >/dev/null 2>&1 && echo "counts $file"
done
[ ! -w /proc/sys/vm/drop_caches ] || echo drops
! dd if=/dev/null iflag=nocache count=0 status=none 2>/dev/null || echo evicts
if dmesg -r >/dev/null 2>&1; then echo logs; fi
"""
"""Prints what the kernel lets this user read and write. Changes nothing."""
COUNTERS = {
    "/proc/diskstats": "bytes of each device",
    "/proc/vmstat": "page cache and writeback",
    "/proc/stat": "processor time",
    "/proc/pressure/io": "pressure on I/O",
    "/proc/pressure/memory": "pressure on memory",
}
BELOW = Filesystem(name="below", type="tmpfs")
"""The lower file system of an overlay; other families ignore it."""
SEE_RIGHTS, SEE_PROGRAMS = "rights: see above", "programs: see above"
_PLAIN_DD: Mapping[str, Scalar] = {"conv": "fdatasync", "oflag": "none", "iflag": "none"}
DD_WORKLOADS: tuple[Mapping[str, Scalar], ...] = (
    {**_PLAIN_DD, "direction": "write"},
    {**_PLAIN_DD, "direction": "write", "oflag": "direct"},
    {**_PLAIN_DD, "direction": "read", "runtime": 1.0, "cache": "cold"},
)
"""What the dd of a box may lack: the flush at the end of a write, direct I/O, cold reads again and again."""


def abilities(connection: BoxConnection, facts: BoxFacts) -> list[CheckRow]:
    """Return a row for each tool, for the file systems, and for what is recorded beside a trial. Changes nothing."""
    root = facts.rights.as_root
    probed = set(connection.run(("sh", "-c", PROBE, "mountlab-abilities"), root=root).text.splitlines())
    return [
        *(_tool_row(tool, connection, facts, root=root) for tool in TOOLS.own.values() if tool.programs),
        *_filesystem_rows(facts),
        _caches_row(probed),
        _counters_row(probed),
        _over_time_row(facts),
        _log_row(probed, facts),
        _processes_row(connection, root=root),
        _tracing_row(connection, facts),
    ]


def _tool_row(tool: Tool, connection: BoxConnection, facts: BoxFacts, *, root: bool) -> CheckRow:
    name = f"tool {tool.name}"
    if lacking := _lacking(tool.programs, facts):
        return CheckRow(name, "limited", f"does not run: {lacking}", SEE_PROGRAMS)
    if tool.name != "dd":
        return CheckRow(name, "ok", "runs")
    completed = connection.run(tool.box_help, root=root)
    reasons, steps = [], []
    for options in DD_WORKLOADS:
        try:
            tool.check_help(options, completed.text + completed.error_text, where="workloads.dd")
        except ParameterError as error:
            reasons.append(f"{error.what} ({error.where.rpartition('.')[2]}: {error.got})")
            steps.append(error.next_step)
    if reasons:
        return CheckRow(name, "limited", "; ".join(dict.fromkeys(reasons)), "; ".join(dict.fromkeys(steps)))
    return CheckRow(name, "ok", "runs, also with direct I/O, and with cold reads again and again")


def _lacking(programs: tuple[Program, ...], facts: BoxFacts) -> str:
    """Return what of these programs the box lacks, '' for nothing."""
    reasons = {program.name: facts.programs.unfit(program) for program in programs}
    absent = [name for name, reason in reasons.items() if name not in facts.programs.installed]
    unfit = [reason for name, reason in reasons.items() if reason and name not in absent]
    return "; ".join([*([f"without {', '.join(absent)}"] if absent else []), *unfit])


def _filesystem_rows(facts: BoxFacts) -> Iterator[CheckRow]:
    """Yield the types that work, and one row for each reason why others do not."""
    reasons = {kind: _reason(family, facts) for kind, family in FAMILIES.own.items()}
    usable = [kind for kind, (reason, _) in reasons.items() if not reason]
    yield CheckRow("types", "ok", f"can be measured: {', '.join(sorted(usable))}")
    for reason in dict.fromkeys(reason for reason in reasons.values() if reason[0]):
        kinds = sorted(kind for kind, other in reasons.items() if other == reason)
        yield CheckRow("types", "limited", f"not {', '.join(kinds)}: {reason[0]}", reason[1])
    if loop := "the kernel has no loop devices" if not facts.kernel.loop_devices else _lacking((LOSETUP,), facts):
        mend = "loop devices: see above" if not facts.kernel.loop_devices else SEE_PROGRAMS
        yield CheckRow("types", "limited", f"none on images (key image): {loop}", mend)


def _reason(family: Family, facts: BoxFacts) -> tuple[str, str]:
    """Return why no file system of this family can be measured, and what mends it; '' and '' where one can."""
    if family.needs_root and (not facts.rights.privileged or facts.rights.cannot_mount):
        return "mounting needs root", SEE_RIGHTS
    if absent := facts.kernel.lacks(family.kernel_types):
        return f"the kernel has no {', '.join(absent)}", "file systems: see above"
    if reason := family.unavailable(Filesystem(name=family.type, type=family.type, over=BELOW), facts):
        return reason, ""
    if lacking := _lacking(family.programs, facts):
        return lacking, SEE_PROGRAMS
    return "", ""


def _caches_row(probed: set[str]) -> CheckRow:
    if "drops" in probed:
        return CheckRow("cold reads", "ok", "all caches of the kernel are dropped before a trial")
    if "evicts" in probed:
        return CheckRow("cold reads", "limited", "only the pages of a trial's own files are dropped", SEE_RIGHTS)
    seen = "no: neither may the caches be dropped, nor can the box's dd drop the pages of a file"
    return CheckRow("cold reads", "limited", seen, f"{SEE_RIGHTS}; or install GNU coreutils")


def _counters_row(probed: set[str]) -> CheckRow:
    present = [words for file, words in COUNTERS.items() if f"counts {file}" in probed]
    absent = [words for words in COUNTERS.values() if words not in present]
    seen = f"recorded: {', '.join(present) or 'nothing'}" + (f"; not: {', '.join(absent)}" if absent else "")
    mend = "a kernel with CONFIG_PSI, started with psi=1, and /proc of the machine itself" if absent else ""
    return CheckRow("counters", "limited" if absent else "ok", seen, mend)


def _over_time_row(facts: BoxFacts) -> CheckRow:
    if shell := facts.programs.sampling_shell:
        return CheckRow("over time", "ok", f"counters during a trial, by {shell}")
    seen = "no counters during a trial: no shell of the box waits for a part of a second"
    return CheckRow("over time", "limited", seen, "install bash or busybox")


def _log_row(probed: set[str], facts: BoxFacts) -> CheckRow:
    if "logs" in probed:
        return CheckRow("kernel log", "ok", "what the kernel complains of during a trial is kept")
    if facts.rights.level == "helper":
        return CheckRow("kernel log", "ok", "by the helper, what the kernel complains of during a trial is kept")
    return CheckRow("kernel log", "limited", "cannot be read: what the kernel complains of is not kept", SEE_RIGHTS)


def _processes_row(connection: BoxConnection, *, root: bool) -> CheckRow:
    """Return whether PID namespaces keep a tool's processes within its trial. (Each trial tries a cgroup by itself.)"""
    offers = read_offers(connection.run(ask_argv(), root=root).text)
    if offers["pid_namespace"]:
        return CheckRow("processes", "ok", "a tool's processes end with its trial, also where no cgroup works")
    seen = "a tool's processes are found by their environment where no cgroup works: a daemon may outlive a trial"
    return CheckRow("processes", "limited", seen, "unshare of util-linux, and a kernel that permits PID namespaces")


def _tracing_row(connection: BoxConnection, facts: BoxFacts) -> CheckRow:
    lacking = _lacking(TRACING_PROGRAMS, facts)
    reason = lacking or tracing_facts(connection).trace_reason
    if reason:
        mend = SEE_PROGRAMS if lacking else SEE_RIGHTS if facts.rights.level in ("none", "helper") else ""
        return CheckRow("tracing", "limited", f"no `mountlab explain`: {reason}", mend)
    return CheckRow("tracing", "ok", "`mountlab explain` works")

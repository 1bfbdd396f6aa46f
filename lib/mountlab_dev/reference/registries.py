"""What is registered in code: tools, file system types, metrics, caveats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mountlab.checks import CHECKS, OF_SEVERAL_RUNS
from mountlab.checks.base import Check
from mountlab.core.errors import ParameterError
from mountlab.core.metrics import METRICS, higher_is_better
from mountlab.core.model import Filesystem, Place, Program, Step
from mountlab.core.options import Option
from mountlab.core.stack_layer import StackLayer
from mountlab.core.units import GIB, format_bytes, format_seconds
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.base import BLOCK_DEVICE, NOT_MOUNTED, Family
from mountlab.filesystems.device import DeviceFamily
from mountlab.filesystems.layers import STACK_LAYERS
from mountlab.filesystems.layers.base import Blank, LayerKind
from mountlab.filesystems.without_effect import ANY, RULES, UNDONE, Rule, Undone
from mountlab.programs import TOOLS
from mountlab.tools.base import Tool

from mountlab_dev.glossary import METRIC_MEANINGS, METRIC_SOURCES
from mountlab_dev.reference.markdown import (
    code,
    codes,
    one_line,
    page,
    paragraph,
    paragraphs_after_first,
    prose,
    table,
)

_ANY = "whatever the sweep has a pattern for, the wall time (`from: clock`), and metrics that the sweep defines"
_FURTHER = {"command": "Any other option is a value for its `{name}` in the command lines."}
_OF_EVERY_MOUNT = ("layers_time", "mkfs_time", "mount_time")
_KINDS = {
    "size": "size", "duration": "time", "int": "whole number", "flag": "`true` or `false`", "text": "text",
    "any": "text or number", "mapping": "mapping",
}  # fmt: skip


def pages() -> dict[str, str]:
    """File name to page."""
    return {
        "tools.md": tools_page(),
        "filesystems.md": filesystems_page(),
        "metrics.md": metrics_page(),
        "caveats.md": caveats_page(),
    }


# --- tools ------------------------------------------------------------------------------------------------------------


def tools_page() -> str:
    """Return every tool with its options, what it gives, and what it needs."""
    return page(
        "Tools",
        "The options of each tool in the `workloads` of a [sweep file](sweep-file.md). Sizes and times have their unit "
        "spelled out. A list of values makes an option a factor. Of every tool the plan shows the commands, and a "
        "[how-to](../how-to/extend.md#a-tool) says how one is added.",
        *(_tool(tool) for tool in TOOLS.own.values()),
    )


def _tool(tool: Tool) -> str:
    rows = [
        (code(name), _kind(option), _default(option), one_line(option.help)) for name, option in tool.options.items()
    ]
    files = [
        f"`{option.file_key}: PATH` in the place of `{name}` names a file that holds its text."
        for name, option in tool.options.items()
        if option.file_key
    ]
    more = "" if not tool.any_option else _FURTHER.get(tool.name, "Any other option of the program is handed to it.")
    gives = _ANY if len(tool.gives) == len(METRICS) else codes(tool.gives)
    return "\n\n".join(
        part
        for part in (
            f"## {tool.name}",
            prose(type(tool).__doc__),
            table(("Option", "Type", "Without it", "Meaning"), rows),
            " ".join([*files, more]).strip(),
            f"Gives: {gives}.",
            _programs(tool.programs),
            f"Its clock: steps of {_rounded(tool.clock_s)}." if tool.name != "command" else "",
            _reserved(tool.reserved),
        )
        if part
    )


def _kind(option: Option) -> str:
    values = "one of " + codes(option.choices) if option.kind == "choice" else _KINDS[option.kind]
    return f"{values} or `false`" if option.can_be_off else values


def _default(option: Option) -> str:
    if option.default is None:
        return ""
    if option.kind == "size" and isinstance(option.default, int):
        return code(format_bytes(option.default))
    if option.kind == "duration" and isinstance(option.default, float):
        return code(f"{option.default:g}s")
    return code(str(bool(option.default)).lower() if option.kind == "flag" else option.default)


def _rounded(seconds: float) -> str:
    """'1 ms' for 0.001."""
    return format_seconds(seconds).replace(".00", "")


def _programs(programs: Iterable[Program]) -> str:
    rows = [f"{code(each.name)} ({_packages(each)})." for each in programs]
    return f"Needs on the box: {' '.join(rows)}" if rows else ""


def _packages(program: Program) -> str:
    by_name: dict[str, list[str]] = {}
    for manager, package in program.packages.items():
        by_name.setdefault(package, []).append(manager)
    named = [f"{code(package)} with {', '.join(managers)}" for package, managers in by_name.items()]
    return ", ".join(named) + (f"{'. ' if named else ''}{program.hint}" if program.hint else "")


def _reserved(reserved: Mapping[str, str]) -> str:
    why: dict[str, list[str]] = {}
    for name, reason in reserved.items():
        why.setdefault(reason, []).append(name)
    rows = [(codes(names), reason) for reason, names in why.items()]
    return "Not for a sweep to set:\n\n" + table(("Option", "Why, or what to write"), rows) if rows else ""


# --- file systems -----------------------------------------------------------------------------------------------------


def filesystems_page() -> str:
    """Return every type with its keys, the steps that make it, and what is read back."""
    return page(
        "File systems",
        "The types of `filesystems` in a [sweep file](sweep-file.md#filesystems), which says what each key means. Of "
        "each: how it is made on a box, and what is read back after the mount. In the commands `DEVICE` stands for "
        "the loop device, scratch device or zram device, `MOUNTPOINT` for a directory below the run's own. "
        "[How one is added](../how-to/extend.md#a-file-system).",
        _REQUESTED,
        "Rules for options without effect. The plan names those that need no mount:",
        table(("File system", "Option", "Does nothing, since", "Source"), map(_rule, RULES)),
        "A later option of the same list turns an earlier one off:",
        table(("File system", "Option", "Turned off by", "Reason"), map(_undone, UNDONE)),
        *(_family(family) for family in FAMILIES.own.values()),
        _LAYERS,
        *(_layer(layer) for layer in STACK_LAYERS.values()),
    )


_LAYERS = """
## Layers

What a `stack` is made of, from the devices upwards ([how-to](../how-to/layers.md)). Each is undone, and made again,
with its file system. Each option is read back from the kernel.
""".strip()

_USUAL = {"md": "raid1", "lvm": "thin"}
"""Kind of layer to the value of its required option with which most people have it."""


def _layer(kind: LayerKind) -> str:
    """Return the options of a layer, what it needs, and how it is made with its usual options."""
    rows = [
        (code(name), _kind(option), ", ".join(kind.goes_with.get(name, ())), one_line(option.help))
        for name, option in kind.options.items()
    ]
    given = {kind.required: _USUAL[kind.kind]} if kind.required else {}
    usual = StackLayer(kind=kind.kind, options=given, labels=given)
    devices = ("DEVICE",) if _lies_on(kind, usual, 1) else ("DEVICE1", "DEVICE2")
    words = kind.words(usual, devices, "UUID", Blank(zeros=False))
    command = " ".join(("layer.sh", "make", "RUN_DIR", kind.kind, "UUID", *words))
    return "\n\n".join(
        (
            f"### {kind.kind}",
            prose(type(kind).__doc__),
            table(("Option", "Type", f"Of `{kind.required}`" if kind.required else "Of", "Meaning"), rows),
            _programs(kind.programs),
            f"`{usual.text}` is made so: `{command}`, with {codes(kind.modules(usual))} of the kernel.",
        )
    )


def _lies_on(kind: LayerKind, layer: StackLayer, devices: int) -> bool:
    try:
        kind.check(layer, devices, where="")
    except ParameterError:
        return False
    return True


_REQUESTED = """
## Requested and in effect

After each mount these are kept: `/proc/self/mountinfo`, `/proc/fs/ext4/*/options`, `/sys/fs/*`, `queue/*`, the super
block as dumpe2fs, xfs_info or btrfs show it, and what the kernel logged meanwhile. A file system with options is also
made once *without* them (the **control**), and tried with an option that no kernel knows.

| State | Evidence |
| --- | --- |
| in effect | The kernel shows it. |
| changed | The kernel shows another value. |
| ignored | Its opposite shows, the kernel's log says so, or it shows nowhere in a file system that accepts any word. |
| shown, but without effect here | The kernel shows it and does nothing with it, by one of the rules below. |
| not visible | It shows nowhere, but unknown words are refused, so the kernel has at least read it. |
| added | It was not requested, and shows only with the options: `data=journal` brings `nodelalloc`. |

- Values are compared by meaning: `mpol=interleave:0,1,2,3` is `interleave:0-3`, `compress=zstd:0` is `zstd:3`, ext4's
  `commit=0` is `commit=5`. The kernel shows some values by showing nothing (`huge=never`, btrfs `commit=30`).
- For ext4's journal its own super block decides: `/proc` hides `journal_async_commit` beside `nojournal_checksum`.
- An mkfs option that the super block does not name is in effect where a line differs from the control. The control is
  then made twice: a line that differs between the two (a UUID, a hash seed) proves nothing. Runs of earlier versions
  made it once; there such an option is *not visible*.
- Settings of the kernel (`tunables`, huge pages, zram devices, the pmbd module) are recorded on the box before they are
  changed, and given back after the mount. `box clean` gives back what a crash has left.
- The memory that files take on a file system in memory is the change of the box's memory in use: before a trial's files
  exist, after the tool ends, and after they are removed. In use is `MemTotal` minus free memory, droppable cache
  (`Active(file)`, `Inactive(file)`, `SReclaimable`) and memory of programs, plus swap. On hugetlbfs the used
  pages of the reserved pool count. On zram, which keeps removed data, the change is counted from before
  the first trial.
- Every command is in the run's directory: `raw/<mount>/commands.json` and `raw/<trial>/argv`.
""".strip()


def _rule(rule: Rule) -> tuple[str, ...]:
    return (*_about(rule), _conditions(rule), rule.source)


def _about(rule: Rule | Undone) -> tuple[str, str]:
    return ("any" if rule.types == ANY else codes(rule.types), codes(rule.options))


def _conditions(rule: Rule) -> str:
    beside = f" (beside {codes(rule.beside)})" if rule.beside else ""
    since = f" (from Linux {'.'.join(map(str, rule.since))})" if rule.since else ""
    return f"{rule.reason}{beside}{since}"


def _undone(rule: Undone) -> tuple[str, ...]:
    return (*_about(rule), codes(rule.by), rule.reason)


def _family(family: Family) -> str:
    lines = [
        f"- Keys: {codes(['type', *sorted(family.keys)])}.",
        f"- Rights: {'root, or password-less sudo' if family.needs_root else 'those of an ordinary user'}.",
        *(_mkfs_lines(family) if isinstance(family, DeviceFamily) else ()),
        *([f"- {_programs(family.programs)}"] if family.programs else []),
        *([f"- Kernel file system: {codes(family.kernel_types)}."] if family.kernel_types else []),
        f"- Read back: {_evidence(family)}.",
    ]
    made = "\n".join(f"{number}. {_step(step)}" for number, step in enumerate(_steps(family), start=1))
    return f"## {family.type}\n\n{prose(type(family).__doc__)}\n\n" + "\n".join(lines) + f"\n\nMade so:\n\n{made}"


def _mkfs_lines(family: DeviceFamily) -> list[str]:
    smallest = f"- Smallest image: {format_bytes(family.smallest_bytes)}."
    if not family.mkfs_with_argument:
        return [smallest]
    alone = f"; alone: {codes(sorted(family.mkfs_alone))}" if family.mkfs_alone else ""
    return [smallest, f"- `mkfs` takes, with an argument: {codes(sorted(family.mkfs_with_argument))}{alone}."]


def _evidence(family: Family) -> str:
    mounted = family.mounted_as(_example(family))
    if mounted == BLOCK_DEVICE:
        return "the attributes of the device in `/sys`; it has no mount"
    if mounted == NOT_MOUNTED:
        return "`/proc/self/mountinfo` and `df` of the file system that holds the directory; no option is asked for"
    more = ", its super block by its own tools, `/sys/fs` and the device's `queue`"
    devices = more if family.evidence_devices(_example(family)) else ""
    control = "" if family.controlled else "; it is not mounted once more without options to compare with"
    return f"`/proc/self/mountinfo`, `df`, the kernel's log{devices}{control}"


def _example(family: Family) -> Filesystem:
    """Return a file system of the family with no more than it needs."""
    below = Filesystem(name="below", type="ext4", image_bytes=GIB)
    candidates = [
        Filesystem(name=family.type, type=family.type, image_bytes=GIB),
        Filesystem(name=family.type, type=family.type, size_bytes=GIB),
        Filesystem(name=family.type, type=family.type, size_bytes=GIB, device="data"),
        Filesystem(name=family.type, type=family.type, over=below),
        Filesystem(name=family.type, type=family.type),
        Filesystem(name=family.type, type=family.type, path="/srv/data"),
    ]
    usable = [each for each in candidates if _given(each) <= family.keys and _accepted(family, each)]
    return usable[0]


def _given(fs: Filesystem) -> set[str]:
    given = {"image": fs.image_bytes, "size": fs.size_bytes, "device": fs.device, "over": fs.over}
    return {key for key, value in given.items() if value is not None}


def _accepted(family: Family, fs: Filesystem) -> bool:
    try:
        family.check(fs, where="")
    except ParameterError:
        return False
    return True


def _steps(family: Family) -> tuple[Step, ...]:
    place = Place(
        run_id="RUN",
        run_dir="RUN_DIR",
        mountpoint="MOUNTPOINT",
        image="IMAGE",
        uuid="UUID",
        journal_uuid="UUID",
        device="DEVICE",
    )
    return family.steps(_example(family), place)


def _step(step: Step) -> str:
    argv = [word.replace("{device}", "DEVICE") for word in step.argv]
    if argv[:2] == ["sh", "-c"]:  # a script of ours: its text is long, and what it runs comes after it
        argv = argv[4:] if argv[3] == "timed.sh" else []
    if argv[:2] == ["sh", "-c"]:  # another one, which is timed: by its name, as in the plan
        argv = argv[3:]
    shown = f": `{' '.join(argv)}`" if argv else ""
    return f"{step.why}{shown}"


# --- metrics and caveats ----------------------------------------------------------------------------------------------


def metrics_page() -> str:
    """Return every metric."""
    rows = [
        (code(metric), unit, METRIC_MEANINGS[metric], "more" if higher_is_better(metric) else "less", _tellers(metric))
        for metric, unit in METRICS.items()
    ]
    return page(
        "Metrics",
        "Base units in files, readable units in reports: 1 MB/s is 10⁶ B/s, 1 MiB is 2²⁰ B. How they are summed up: "
        "[METHODS.md](../../METHODS.md#estimates).",
        table(("Metric", "Unit", "Meaning", "Better", "Given by"), rows),
        "## Where each is taken from",
        "`*` stands for any text; the first row of a tool that matches counts. A metric of `tool: command` is what the "
        "patterns of the sweep find.",
        table(("Tool", "Metric", "Taken from"), METRIC_SOURCES),
        "`layers_time`, `mkfs_time` and `mount_time` are of a mount, not of a workload. They are listed with the first "
        "workload of the sweep, so that n counts mounts. On a scratch device the guard looks before the clock starts.",
    )


def _tellers(metric: str) -> str:
    if metric in _OF_EVERY_MOUNT:
        return "every mount"
    own = [name for name, tool in TOOLS.own.items() if metric in tool.gives and name != "command"]
    return ", ".join([*own, "command"])


def caveats_page() -> str:
    """Return every caveat."""
    raised = {code: paragraphs_after_first(check.find.__doc__) for code, check in CHECKS.own.items()}
    compared = {code: each.when for code, each in OF_SEVERAL_RUNS.items()}
    return page(
        "Caveats",
        "Reasons to doubt a figure, as they are in `caveats.csv` and beside the figures. With `strict: true` in the "
        "design a warning is an error. *Plan*: `make plan` foresees it from the sweep and the facts of the box. What "
        "checks, tests and severities are: [METHODS.md](../../METHODS.md#caveats).",
        "## Of a run",
        table(("Caveat", "Severity", "What it is about", "What to do", "Plan"), map(_check, CHECKS.own.values())),
        "## Of runs that are compared",
        table(
            ("Caveat", "Severity", "What it is about", "What to do"),
            [(code(name), each.severity, each.about, each.advice) for name, each in OF_SEVERAL_RUNS.items()],
        ),
        "## When each is raised",
        table(("Caveat", "Raised when"), [(code(name), text) for name, text in raised.items()]),
        "### In a comparison of runs",
        table(("Caveat", "Raised when"), [(code(name), text) for name, text in compared.items()]),
        "## Limits",
        prose(_LIMITS_OF_CAVEATS),
    )


_LIMITS_OF_CAVEATS = """
The counters are of the whole box. Bytes on a device are those of all users: a busy box can make a cached read look
real, never the other way round. Others' work in the kernel looks like the trial's: `box-busy` counts others' user mode
only.

On a file system right on a device, `other-io` cannot tell its own journal from a neighbour in the direction in which
the tool moves bytes. It looks at the other direction; below a loop image at both.

Speeds of links count on bare metal only. Heat is seen where the kernel counts throttling (Intel's x86). `on-battery`,
the governor and swap in use are facts of the beginning of a run.

The kernel's log is read after trials of half a second or more only, since reading it costs some 5 ms. Another
program's `drop_caches` hides what `fincore` would see.
"""


def _check(check: Check) -> tuple[str, ...]:
    foreseen = "yes" if check.foresee else ""
    return (code(check.code), " or ".join(check.severities), paragraph(check.find.__doc__), check.advice, foreseen)

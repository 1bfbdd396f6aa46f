"""The nouns of Mountlab, as frozen values. No behaviour beyond ids and simple questions about themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Literal, TypeVar

from mountlab.core.array import Array
from mountlab.core.conditions import SAME_PLACE, NeighbourPlace
from mountlab.core.findings import Claim
from mountlab.core.metrics import Metric, known_metric
from mountlab.core.names import cell_id
from mountlab.core.promises import Promise
from mountlab.core.search import Search
from mountlab.core.shown import Shown
from mountlab.core.stack_layer import StackLayer
from mountlab.core.state import NEW, Origin, State
from mountlab.core.vdev import Vdev

T = TypeVar("T")
Scalar = str | int | float | bool
Rights = Literal["root", "sudo", "helper", "none"]
"""`helper`: an ordinary user, for whom one program on the box does as root what it permits (mountlab.box.helper)."""
Status = Literal["ok", "failed", "skipped", "invalid", "timeout", "excluded"]
"""`timeout`: it ran into `design.trial_timeout`, which is an outcome. `excluded` is never in a journal: the user leaves
out a trial that was ok, or such a one (exclude.yml beside it), with a reason."""

COLUMNS = frozenset({
    "run_id", "box", "trial_id", "block", "warmup", "cell", "filesystem", "workload", "tool", "factors", "metric",
    "label", "unit", "value", "step", "n", "mean", "low", "high", "sd", "cv", "level", "method", "stopped", "baseline",
    "candidate", "ratio", "p", "p_adjusted", "verdict", "low_all", "high_all", "low_same", "high_same", "level_same",
    "needed", "reduce", "noise", "residual", "censored", "better", "condition", "reference", "flips",
})  # fmt: skip
"""Names that columns of derived tables have, and so no factor can: it would be a column, too."""


def everywhere(package: str, **otherwise: str) -> dict[str, str]:
    """Return a package that has the same name with every package manager, but for those named."""
    return {**dict.fromkeys(("apt", "dnf", "zypper", "pacman"), package), **otherwise}


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program that the box must have: how to ask its version, and the package that brings it."""

    name: str
    packages: Mapping[str, str]
    """Package manager (apt, dnf, zypper, pacman) to package name."""
    version: tuple[str, ...] = ()
    """Command whose first line of output names the version; () where the version is not needed."""
    places: tuple[str, ...] = ()
    """Patterns of directories where it may lie when it is not on PATH."""
    version_word: str = ""
    """A word on the line that names the version, where that is not the first."""
    hint: str = ""
    """How to get it where we do not install it; the program is then one that a box can do without."""
    busybox_lacks: str = ""
    """What Mountlab needs and BusyBox's program of this name lacks; '' where BusyBox's will do."""
    services: bool = False
    """Whether its package starts services at each boot, which listen on every address: we do not install such."""

    def by_hand(self, manager: str | None) -> bool:
        """Return whether the owner of a box with this package manager installs it, as `hint` says, and not we."""
        return self.services or (bool(self.hint) and manager not in self.packages)


@dataclass(frozen=True, kw_only=True)
class ScratchDevice:
    """A block device of the box that its owner has given to Mountlab, by stable id (/dev/disk/by-*/...)."""

    name: str
    device: str


@dataclass(frozen=True, kw_only=True)
class Box:
    """The machine under test, as params/boxes/<name>.yml describes it. Holds no secret."""

    name: str
    host: str
    """Alias or address, looked up in the user's own ssh configuration. Empty for an embedded box."""
    user: str | None = None
    port: int | None = None
    embedded: str | None = None
    """'loopback' for the control machine through a private sshd, 'vm' for a virtual machine on it; None for a machine
    of the user's."""
    become: Literal["auto", "root", "sudo", "helper", "none", "login"] = "auto"
    """login: as whom one logs in, root or not; what is watched runs so. No box file says that."""
    mount_root: str | None = None
    """Directory on the box below which everything is mounted and made; None: /var/tmp/mountlab-<user>."""
    output_root: str | None = None
    """Directory on the box for tool output during a trial; None: /dev/shm/mountlab-<user> where that exists."""
    scratch: tuple[ScratchDevice, ...] = ()
    grace_s: float = 600.0
    """How long a lost connection is waited for: by us, and by the box, which then ends what runs and unmounts."""
    label: str | None = None
    """A name that boxes share which may do each other's work: an item of a batch may ask for any of them."""
    kernel: str | None = None  # vm: of VM_KERNELS; None: the small kernel for clouds of its own Debian release
    extras: tuple[str, ...] = ()  # vm: what is built for it on the control machine: zfs

    @property
    def block_devices(self) -> dict[str, str]:
        """Scratch devices that are block devices, not ranges of memory: name to stable name."""
        return {entry.name: entry.device for entry in self.scratch if entry.device.startswith("/")}


@dataclass(frozen=True, kw_only=True)
class Filesystem:
    """What is under test: type, backing, mkfs options and mount options, as one value."""

    name: str
    type: str
    size_bytes: int | None = None
    """tmpfs: its size= option. ramfs: the cap that Mountlab keeps, since the kernel keeps none."""
    path: str | None = None
    """dir, bind: the existing directory to measure; None: the box's mount root."""
    server: str | None = None
    """nfs: the address under which clients reach the box; None: 127.0.0.1."""
    image_bytes: int | None = None
    """A loop image of this size, made by us."""
    members: int = 1
    """How many such images it lies on."""
    image_dir: str | None = None
    """The existing directory in which the image is made; None: the box's mount root."""
    direct_io: bool = True
    """Whether the loop device bypasses the page cache of the file system that holds the image."""
    preallocate: bool = True
    """Whether the image has all its blocks from the beginning, or is sparse."""
    device: str | None = None
    """The name of a scratch device in the box file."""
    more_devices: tuple[str, ...] = ()
    """The names of further ones, where it lies on several."""
    stack: tuple[StackLayer, ...] = ()
    """The layers between its devices and itself, from the devices upwards."""
    vdevs: tuple[Vdev, ...] = ()  # zfs: the parts of the pool; (): its devices are striped
    arc_bytes: int | None = None  # zfs: the most that it caches in memory
    zram_bytes: int | None = None
    """A compressed device in memory of this size."""
    zram_algorithm: str | None = None
    pmbd: str | None = None
    """The `mode` of the pmbd module, whose device in memory holds the file system."""
    journal_image_bytes: int | None = None
    """An external journal (xfs: log) on a loop image of this size."""
    journal_device: str | None = None
    """An external journal (xfs: log) on this scratch device of the box file."""
    realtime_image_bytes: int | None = None  # xfs: a realtime device, with the data of files, on such an image
    over: Filesystem | None = None
    """overlay: the file system that holds its layers."""
    mkfs: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    tunables: Mapping[str, str] = field(default_factory=dict)
    """Settings of the kernel for this file system or its device while it is mounted: `inode_readahead_blks` (below
    /sys/fs/<type>/<device>) or `queue/scheduler` (below /sys/block/<device>) to value."""

    @property
    def devices(self) -> tuple[str, ...]:
        """The names of the scratch devices that it lies on, that of its journal not among them."""
        return () if self.device is None else (self.device, *self.more_devices)

    @property
    def scratch(self) -> tuple[str, ...]:
        """The names of all its scratch devices."""
        return (*self.devices, *(() if self.journal_device is None else (self.journal_device,)))

    @property
    def images_bytes(self) -> int:
        """The size of all its loop images together, those of its journal and its realtime device among them."""
        beside = (self.journal_image_bytes or 0) + (self.realtime_image_bytes or 0)
        return (self.image_bytes or 0) * self.members + beside


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A tool and one value for each of its options (sizes in bytes, times in seconds)."""

    name: str
    tool: str
    options: Mapping[str, Scalar]
    factors: Mapping[str, str] = field(default_factory=dict)
    """The swept options only, as people read them: {'rw': 'randread', 'bs': '4KiB'}."""
    precondition: int = 0
    """Up to so many rounds of it are run first on each new mount, until they are steady; 0: none."""
    clients: tuple[str, ...] = ()
    """The boxes that drive it together, by fio's client/server mode; (): the box of the sweep alone."""
    own_metrics: Mapping[str, Metric] = field(default_factory=dict)
    """The metrics that it defines, beside METRICS."""
    search: Search | None = None
    """The search that its trials make: then they are open-loop, each at a rate of its own. None: no search."""
    state: str = ""
    """Of the file system, when its trials begin: a level of the factor `state`. '' where the sweep has no states."""
    beside: tuple[str, ...] = ()
    """Names of the neighbours that run meanwhile; (): it runs alone."""

    @cached_property
    def label(self) -> str:
        return " ".join([self.name, *(f"{key}={value}" for key, value in self.factors.items())])

    def metric(self, name: str) -> Metric:
        """Return the metric of a name: one that a workload defines, or one of METRICS."""
        return self.own_metrics.get(name) or known_metric(name)


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """A second workload that runs through the whole of a trial, and whose load is recorded."""

    name: str
    workload: Workload
    place: NeighbourPlace = SAME_PLACE
    limits: Mapping[str, Scalar] = field(default_factory=dict)
    """Of its cgroup, by their keys in a sweep file."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One treatment: one file system under one workload."""

    filesystem: Filesystem
    workload: Workload

    @property
    def id(self) -> str:
        return cell_id(self.filesystem.name, self.workload.label)


@dataclass(frozen=True, kw_only=True)
class Until:
    """A stopping rule: blocks go on until the figures are this precise. How it is kept honest: stats/sequential.py."""

    half_width: float
    """Relative half-width of the printed interval: with 0.03 both ends lie within 3 % of the mean; of
    a ratio a factor of 1.03 either way, in the interval for all comparisons together."""
    confidence: float = 0.95
    """What the interval covers, corrected for looking at it after each block."""
    min: int = 5
    """Blocks before the first look."""
    max: int = 40
    budget_s: float | None = None
    """No block is begun, after the first `min`, that would take the trials beyond this time."""
    of: Literal["cells", "comparisons"] = "cells"
    """What is to be precise: the mean of each cell, or each ratio to the baseline."""


@dataclass(frozen=True)
class Extensions:
    """A run to which blocks were added after a look at its results. How it is kept honest: stats/extended.py."""

    count: int
    """How often blocks were added, each time after a look."""


RepeatedLooks = Until | Extensions
"""Looks at results while a run could still go on. Its intervals and p values are corrected for them."""


@dataclass(frozen=True, kw_only=True)
class Design:
    """How often and in which order. `repeats` counts blocks; every block holds every cell once."""

    repeats: int = 5
    """With `until` the largest number of blocks, its `max`."""
    until: Until | None = None
    seed: int | None = None
    """Seed of the order of trials; None: drawn when the plan is made, and saved."""
    warmup: int = 1
    """Blocks that are run first, kept and marked, and not counted."""
    fresh_filesystem: Literal["block", "cell", "never"] = "block"
    """How often a file system is made: in each block, before each trial, or once for the whole run."""
    drop_caches: bool = True
    level: float = 0.95
    estimate: str = "mean"
    """How the trials of a cell are summed up: a name of stats.STATISTICS."""
    smallest_effect: float = 0.02
    """Ratios within 1 +- this do not matter to the reader."""
    on_ineffective: Literal["error", "caveat"] = "error"
    """Whether a requested option that the kernel ignored or changed is an error or a caveat."""
    shortest_trial_s: float = 1.0
    """A trial that measured for less is too short, and gets a caveat; 0: none is."""
    trial_timeout_s: float = 600.0
    retries: int = 1
    """How often a trial is tried again that failed for a reason that may pass. A time limit is no such reason."""
    strict: bool = False
    """Whether a warning is an error: foreseen, the run is refused; seen, its exit code is 1."""
    sample_every_s: float = 0.1
    """Time between two readings of the box's counters while a tool runs; 0: none in between."""
    explain: int = 0
    """How many diagnostic blocks follow the counted ones: each cell is run again and traced, and never counted."""
    profile: bool = False
    """Whether each cell is run once more after these while its system calls are recorded, and never counted."""


@dataclass(frozen=True, kw_only=True)
class Sweep(Shown):
    """One question: file systems x workloads x design."""

    name: str
    """By which runs are found; that of the file."""
    question: str
    """In words; the headline of the report."""
    box: str
    """Where it runs; of a sweep of several boxes the first of them."""
    filesystems: tuple[Filesystem, ...]
    """What is compared."""
    workloads: tuple[Workload, ...]
    """Already expanded: one for each combination of swept options that the sweep file asks for."""
    design: Design
    """How many blocks, or until when, and in which order."""
    metrics: tuple[str, ...] = ()
    """The metrics that the answer is about; () means the main metrics of each tool."""
    baseline: str | None = None
    """Name of the file system that the others are compared with."""
    expectation: str = ""
    """In words."""
    expected: Mapping[str, Mapping[str, Claim]] = field(default_factory=dict)
    """Part of the question, or name of a workload, to file system ('': each that is compared) to what is expected."""
    promised: Mapping[str, tuple[Promise, ...]] = field(default_factory=dict)
    """File system to what its device is promised to do."""
    published: tuple[str, ...] = ()
    """Names of files in params/published/."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """File systems of the sweep file that are not measured in this run, and why."""
    excluded: tuple[str, ...] = ()
    """Ids of the combinations of a file system and a workload that are no cells: the sweep file takes them out."""
    states: Mapping[str, State] = field(default_factory=dict)
    """The states that file systems are brought into, by name, beside FRESH."""
    neighbours: Mapping[str, Neighbour] = field(default_factory=dict)
    """What may run beside workloads, by name."""
    boxes: tuple[str, ...] = ()
    """The same sweep on each of them, one run a box, the box being a factor; () where it is asked of one box."""
    extended: Extension | None = None
    """How it came to have more blocks, or more cells, than it was begun with."""
    by_hand: bool = False
    """Whether its trials were asked for one by one, with no number fixed beforehand and in no random order."""
    imported: bool = False
    """Whether its figures come from logs that were made elsewhere: then options hold what is known of them."""

    @property
    def searches(self) -> bool:
        """Return whether its cells are searches for a capacity: then all of them are."""
        return any(workload.search for workload in self.workloads)

    @property
    def compared_searches(self) -> int:
        """Return how many capacities are compared with that of the baseline."""
        return (len(self.filesystems) - 1) * len(self.workloads) if self.searches and self.baseline else 0

    @property
    def decides(self) -> bool:
        """Return whether it decides from what it has measured how many blocks a cell has."""
        return self.design.until is not None or self.searches

    @property
    def repeated_looks(self) -> RepeatedLooks | None:
        """The looks that its intervals and p values are corrected for, if there were any."""
        count = sum(bool(stage.repeats_cells) for stage in self.stages)
        return self.design.until or (Extensions(count) if count else None)

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The blocks that it was begun with, and those of each extension."""
        design, whole = self.design, tuple(cell.id for cell in self.cells)
        if self.extended is None:
            return (Stage(self, whole, range(1 - design.warmup, 1), range(1, design.repeats + 1)),)
        earlier = self.extended.before.stages
        old_cells = frozenset(cell for stage in earlier for cell in stage.cells)
        cells = tuple(cell for cell in whole if cell not in old_cells or not self.extended.only_new)
        warmup, last = earlier[-1].warmup.start, earlier[-1].counted.stop
        blocks = range(warmup - design.warmup, warmup), range(last, design.repeats + 1)
        return (*earlier, Stage(self, cells, *blocks, old_cells, self.extended.at))

    def have_blocks(self, *cells: str) -> bool:
        """Return whether blocks were planned that hold all of these cells."""
        return self.extended is None or bool(frozenset.intersection(*map(self.blocks_of, cells)))

    def blocks_of(self, cell: str) -> frozenset[int]:
        """Return the counted blocks that hold a cell."""
        return frozenset(block for stage in self.stages if cell in stage.cells for block in stage.counted)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Every file system under every workload, without those that are excluded."""
        excluded = frozenset(self.excluded)
        return tuple(cell for name, cell in self.combinations.items() if name not in excluded)

    @cached_property
    def combinations(self) -> dict[str, Cell]:
        """Every file system under every workload by the id of the cell, with those that are excluded."""
        every = (Cell(filesystem=fs, workload=w) for fs in self.filesystems for w in self.workloads)
        return {cell.id: cell for cell in every}

    @property
    def clients(self) -> tuple[str, ...]:
        """The boxes that some workload is driven from, or some neighbour runs on, each once."""
        driving = (name for workload in self.workloads for name in workload.clients)
        away = (self.neighbours[name].place.client for workload in self.workloads for name in workload.beside)
        return tuple(dict.fromkeys(filter(None, (*driving, *away))))

    @cached_property
    def turns(self) -> tuple[tuple[Filesystem, str], ...]:
        """Each file system in each state that it is measured in, '' where there are none: a mount is of one of them."""
        states = {cell.filesystem.name: dict[str, None]() for cell in self.cells}
        for cell in self.cells:
            states[cell.filesystem.name][cell.workload.state] = None
        return tuple((fs, state) for fs in self.filesystems for state in states.get(fs.name, ("",)))

    @cached_property
    def own_metrics(self) -> dict[str, Metric]:
        """The metrics that its workloads define, beside METRICS."""
        return {name: metric for workload in self.workloads for name, metric in workload.own_metrics.items()}

    def metric(self, name: str) -> Metric:
        """Return the metric of a name: one that a workload defines, or one of METRICS."""
        return self.own_metrics.get(name) or known_metric(name)

    def has_cell(self, cell: str) -> bool:
        """Return whether a combination is one of the cells; `cell` is the id that its cell would have."""
        return cell not in self.excluded


@dataclass(frozen=True, kw_only=True)
class Extension:
    """Blocks that were added to a finished run."""

    before: Sweep
    """The sweep as it was measured until then."""
    at: str
    """When the run was extended, in ISO 8601."""
    only_new: bool = False
    """Whether the added blocks hold the added cells alone."""


@dataclass(frozen=True)
class Stage:
    """Blocks that were planned together."""

    sweep: Sweep
    """The sweep as it was when these blocks were planned."""
    cells: tuple[str, ...]
    """The ids of the cells in its blocks, in the order of the sweep."""
    warmup: range
    """The numbers of its blocks of warm-up: below those of the stage before."""
    counted: range
    """The numbers of its counted blocks: above those of the stage before."""
    old_cells: frozenset[str] = frozenset()
    """Ids of the cells that earlier stages hold."""
    at: str = ""
    """When the run was extended by it, in ISO 8601; '' for the blocks that the run was begun with."""

    @property
    def added_cells(self) -> tuple[str, ...]:
        """Ids of the cells that no earlier stage holds."""
        return tuple(cell for cell in self.cells if cell not in self.old_cells)

    @property
    def repeats_cells(self) -> bool:
        """Whether it measures cells again after a look at their results."""
        return bool(self.old_cells.intersection(self.cells))


class StepRole(Enum):
    """The purpose of a step: mkfs, mount, or a reading of the kernel's report."""

    OTHER = "other"
    FORMAT = "format"
    MOUNT = "mount"
    EVIDENCE = "evidence"


@dataclass(frozen=True, kw_only=True)
class Step:
    """One command on the box while a file system is made ready, and how it is undone."""

    argv: tuple[str, ...]
    """May hold '{device}', which stands for what an earlier step with binds='device' printed."""
    why: str
    undo: tuple[str, ...] | None = None
    binds: str | None = None
    keep: str | None = None
    """Keep its standard output as evidence, under this file name."""
    guard: bool = False
    """A failure means that going on would be unsafe (exit code 4)."""
    role: StepRole = StepRole.OTHER
    below: bool = False  # whether it belongs to the file system that lies below an overlay
    timeout_s: float | None = None  # of one that may take hours, and that a signal ends at once


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where on the box one file system of one run lives. Every path is below the run's own directory or given in
    the box file."""

    run_id: str
    run_dir: str
    """<mount_root>/<run_id>"""
    mountpoint: str
    image: str
    uuid: str = ""
    journal_uuid: str = ""
    """What mkfs marks the file system, and its external journal, with: by them the guard knows a device as ours."""
    device: str | None = None
    """The scratch device's stable name, for file systems on one."""
    device_id: str = ""
    """What the scratch device was when the plan was made, as the guard states it; the guard refuses another one."""
    more_devices: tuple[tuple[str, str], ...] = ()  # the same two of each further scratch device
    layer_uuids: tuple[str, ...] = ()
    """What each layer of the stack is marked with, from the devices upwards."""
    journal: str | None = None  # stable name of the external journal's scratch device
    journal_id: str = ""
    peers: tuple[str, ...] = ()  # addresses of the run's clients, as the box sees them
    origin: Origin = NEW

    @property
    def scratch_devices(self) -> tuple[tuple[str, str], ...]:
        """Stable name and identity of each scratch device of the file system, that of its journal not among them."""
        return ((self.device, self.device_id), *self.more_devices) if self.device else ()


@dataclass(frozen=True, kw_only=True)
class ClientEndpoint:
    """One of the clients that drive a workload together, as the tool on the box that asks them must know it."""

    client: str
    socket: str
    """The unix socket, on the box that asks, by which the client is reached over SSH."""
    directory: str
    """Its own directory on the shared file system, as the client sees it."""
    same_directory: str  # as the box that asks sees it
    seed: int | None = None  # of this client's random offsets: clients do not read the same places in step


@dataclass(frozen=True, kw_only=True)
class Target:
    """What a workload reads and writes."""

    kind: Literal["files", "mapped", "device"] = "files"
    """Files that it makes in its directory; files that can only be mapped (no write()); or a block device."""
    device: str = ""
    """The block device; the workload leaves its first MARK_BYTES alone."""
    endpoints: tuple[ClientEndpoint, ...] = ()
    """Clients that read and write in the place of the box, each in a directory of its own."""
    seed: int | None = None
    """What random offsets, sizes and data are drawn from, where the tool takes a seed; None: the tool's own."""
    in_memory: bool = False  # whether no I/O of it can reach a device
    fstype: str = ""  # of the file system, as the sweep names it; '' where that is not known
    rate: float = 0.0
    """Requests per second that arrive in an open-loop trial; 0 of any other trial."""
    array: Array | None = None  # below the file system, where a member of it can be lost


FILES = Target()
MARK_BYTES = 1024 * 1024
"""The beginning of a raw device that workloads leave alone: our mark lies there, by which the guard knows it again."""


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One metric of one trial, in base units. `label` tells rows of one metric apart."""

    metric: str
    value: float
    unit: str
    label: str = ""
    step: float = 0.0
    """To what the value is rounded, in its unit: the last digit of its text (core.resolution.last_digit), the bin of a
    percentile, the clock. 0: not known. The step of `Tool.steps` counts where it is coarser."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One execution of one cell in one block, as the journal keeps it."""

    trial_id: str
    block: int
    warmup: bool
    cell: str
    filesystem: str
    workload: str
    tool: str
    factors: Mapping[str, str]
    mount: str
    """Name of the raw/ directory with the evidence of the mount that it ran on."""
    status: Status
    reason: str
    started_at: str
    elapsed_s: float
    """From the first to the last effect on the box, preparation and counters included."""
    attempts: int = 1
    """How often it was tried (design.retries): the last time counts."""
    set_aside: bool = False
    """Whether its cell has no more trials because of it."""
    seed: int | None = None
    """What the tool drew its random offsets, sizes and data from; None: it was given no seed by Mountlab."""
    diagnostic: bool = False
    """Whether it was run for its cause or its profile, while it was traced: never counted, and so `warmup` as well. Its
    `block` is one of its own series, from 1."""
    exhausted: bool = False
    """Whether it failed for a reason that may pass, in each of its attempts."""

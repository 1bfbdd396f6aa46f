"""The layers of an operation: where its time goes in the kernel and below, and on whose behalf it waits there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layer:
    """How one layer is spoken of."""

    noun: str
    """As the object of a sentence: '80 % of the difference is flushes'."""
    key: str
    """In the key of a picture and in a table."""
    quantity: str = ""
    """The work that makes most of it."""


FEW = 0.01
"""Of the operations of a workload: if fewer of them read or write, its ratios of work are to all operations."""
WAITS = "processor_waits_per_op"
"""How often, per operation, it or a thread that it waits for was ready to run and had no processor."""
COMMIT_SHARE, OTHERS_SHARE = "commit_share_of_sync", "others_share_of_sync"
"""Shares of the time of syncs: in which they wait for a commit of the journal or room in it; and the part of that in
which the device writes data that the tool did not queue. `tracing.work` defines both."""
LAYERS: dict[str, Layer] = {
    "tool": Layer("time in the tool itself", "tool"),
    "processor": Layer("time on the processor", "processor"),
    "run_queue": Layer("waiting for a processor", "wait for a processor", WAITS),
    "lock": Layer("waiting for locks", "locks", "context_switches_per_op"),
    "freeze": Layer("waiting for a frozen file system", "frozen"),
    "reclaim": Layer("freeing memory", "memory"),
    "writeback": Layer("waiting for writeback", "writeback"),
    "journal": Layer("waiting for a journal or log commit", "journal or log", "commits_per_sync"),
    "queue": Layer("the block queue", "block queue", "device_ios_per_op"),
    "device": Layer("the device", "device", "device_ios_per_op"),
    "flush": Layer("flushes", "flush", "flushes_per_sync"),
    "unattributed": Layer("unattributed time", "unattributed"),
}
"""Every layer, from the tool down to the device; what is left over comes last."""
THROUGH: dict[str, str] = {
    "own": "", "journal": "for the journal", "checkpoint": "for a checkpoint", "writeback": "for writeback",
}  # fmt: skip
"""On whose behalf an operation waited, in words."""


@dataclass(frozen=True)
class Quantity:
    """One ratio of work."""

    noun: str
    """As a row of a table."""
    counted: str
    """What stands behind its figure in a sentence; {operation} is the operation's name."""


QUANTITIES: dict[str, Quantity] = {
    "device_ios_per_op": Quantity("device I/Os per operation", "device I/Os per {operation}"),
    "device_bytes_per_op": Quantity("device bytes per operation", "device bytes per {operation}"),
    "write_amplification": Quantity("device bytes per byte written", "device bytes per byte written"),
    "merges_per_io": Quantity("merges per device I/O", "merges per device I/O"),
    "flushes_per_sync": Quantity("flushes per sync", "flushes per sync"),
    "fua_per_sync": Quantity("FUA writes per sync", "FUA writes per sync"),
    "commits_per_sync": Quantity("journal or log commits per sync", "commits per sync"),
    "context_switches_per_op": Quantity("context switches per operation", "context switches per {operation}"),
    WAITS: Quantity("waits for a processor per operation", "waits for a processor per {operation}"),
    "processor_s_per_op": Quantity("processor time per operation", "of processor time per {operation}"),
    "share_of_ios": Quantity("share of device I/Os", "of the device I/Os"),
    COMMIT_SHARE: Quantity("share of a sync behind the journal", "of a sync behind the journal"),
    OTHERS_SHARE: Quantity(
        "share of a sync behind the journal beside data of others", "of a sync beside data of others"
    ),
}
"""Every ratio of work, in the order of tables."""
SHARES = frozenset({"share_of_ios", COMMIT_SHARE, OTHERS_SHARE})
"""Those that are parts of a whole."""
OF_THE_DEVICE = frozenset(
    (
        *("device_ios_per_op", "device_bytes_per_op", "write_amplification", "merges_per_io"),
        *("flushes_per_sync", "fua_per_sync", "commits_per_sync"),
    )
)
"""Those that count what a device or its journal did for all programs: they are the tool's where it is alone there."""


RAN_INSTEAD = "ran_instead_s_per_op"
"""For how long, per operation, what was on the processor that it waited for. Its label says what."""


def layer_noun(layer: str, through: str) -> str:
    """'flushes (for the journal)'; of a part that is a layer for all that it served, the layer alone, and the other way
    round."""
    behalf = "" if layer == through else THROUGH.get(through, "")
    if not layer:
        return f"what was done {behalf}" if behalf else "what the operation did for itself"
    return f"{LAYERS[layer].noun} ({behalf})" if behalf else LAYERS[layer].noun

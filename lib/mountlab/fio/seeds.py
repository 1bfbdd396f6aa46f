"""Where fio's random offsets and data come from: the seed of the block, unless the sweep says something else."""

from __future__ import annotations

from collections.abc import Mapping

from mountlab.core.model import Scalar
from mountlab.core.seeds import derived

OWN = ("randseed", "randrepeat", "allrandrepeat")
"""fio's options that say how its generators are seeded."""
_OFF = ("0", "False")


def arguments(options: Mapping[str, Scalar], seed: int | None) -> dict[str, str]:
    """Return what makes fio draw a job's offsets and data from `seed`; nothing where the job says how it is seeded.

    Both are needed: before 3.35 fio takes offsets from randseed only with randrepeat=0, which is not its default.
    """
    chosen = seed is None or any(name in options for name in OWN)
    return {} if chosen else {"randrepeat": "0", "randseed": str(seed)}


def layout_of(seed: int | None) -> int | None:
    """Return the seed of the data that is laid out before a trial, so that the trial does not write the same again."""
    return None if seed is None else derived(seed, "layout")


def replays(options: Mapping[str, Scalar]) -> bool:
    """Return whether a job's own options make every trial draw one and the same sequence.

    `randrepeat: 0` alone draws another one each time. `allrandrepeat` is another name for `randrepeat` since fio 3.35,
    and overrides all else before.
    """
    given = {name: str(options[name]) for name in OWN if name in options}
    if given.get("randrepeat") in _OFF:
        return "randseed" in given or given.get("allrandrepeat", "0") not in _OFF
    return bool(given)

"""What /proc/mdstat shows of arrays, and the kernel of pools of ZFS: recordings of Linux 6.1 with OpenZFS 2.1.11, and
the lines of the documentation."""

from __future__ import annotations

from mountlab.filesystems.arrays import POOL_STATE, unclean_arrays, unclean_pools
from rows import every_row

SYNCHRONISES = """Personalities : [raid1] [raid0] [linear] [raid6] [raid5] [raid4]
md7 : active raid5 vdg[2] vdf[1] vde[0]
      2093056 blocks super 1.2 level 5, 64k chunk, algorithm 2 [3/3] [UUU]
      [>....................]  resync =  2.0% (21204/1046528) finish=0.8min speed=21204K/sec

md127 : active raid1 loop2[1] loop1[0]
      64512 blocks super 1.2 [2/2] [UU]
      bitmap: 1/1 pages [4KB], 65536KB chunk

unused devices: <none>
"""
LACKS_ONE = """Personalities : [raid1]
md0 : active raid1 sdb1[1] sda1[0](F)
      976630464 blocks super 1.2 [2/1] [_U]

unused devices: <none>
"""
REBUILDS = LACKS_ONE.replace("[_U]\n", "[_U]\n      [=>...................]  recovery =  6.4% (6/9) finish=9min\n")
WAITS = LACKS_ONE.replace("[2/1] [_U]\n", "[2/2] [UU]\n        resync=DELAYED\n")
NO_ARRAYS = "Personalities : [raid1]\nunused devices: <none>\n"


@every_row(
    ("text", "expected"),
    [
        (SYNCHRONISES, {"md7": "resync at 2.0%"}),
        (LACKS_ONE, {"md0": "1 of 2 devices"}),
        (REBUILDS, {"md0": "recovery at 6.4%, 1 of 2 devices"}),
        (WAITS, {"md0": "resync delayed"}),
        (SYNCHRONISES.replace("resync", "check"), {"md7": "check at 2.0%"}),
        (NO_ARRAYS, {}),
    ],
)
def test_an_array_that_is_busy_or_lacks_a_device(text: str, expected: dict[str, str]) -> None:
    assert unclean_arrays({"/proc/mdstat": text}, {"/proc/mdstat": NO_ARRAYS}) == expected
    assert unclean_arrays({}, {"/proc/mdstat": text}) == expected


def test_a_kernel_without_md_tells_nothing() -> None:
    assert unclean_arrays({}, {"/proc/diskstats": ""}) is None


def around(*states: str) -> list[dict[str, str]]:
    """Snapshots in which the pool `tank` has these states; none in one with ''."""
    return [{POOL_STATE.format("tank"): f"{state}\n"} if state else {"/proc/diskstats": ""} for state in states]


@every_row(
    ("states", "expected"),
    [
        (("ONLINE", "ONLINE"), {}),
        (("ONLINE", "DEGRADED"), {"tank": "DEGRADED"}),
        (("SUSPENDED", "ONLINE"), {"tank": "SUSPENDED"}),
        (("DEGRADED", "FAULTED"), {"tank": "FAULTED"}),
        (("", ""), None),
    ],
)
def test_a_pool_that_was_not_online(states: tuple[str, str], expected: dict[str, str] | None) -> None:
    before, after = around(*states)
    assert unclean_pools(before, after) == expected

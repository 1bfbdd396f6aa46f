"""What /proc/mdstat shows of arrays, `zpool status` of pools and `dmsetup status` of volumes: recordings of Linux 6.1
with OpenZFS 2.1.11, and the lines of the documentation."""

from __future__ import annotations

from mountlab.core.stack_layer import StackLayer
from mountlab.filesystems.arrays import unclean_arrays, unclean_below
from mountlab.filesystems.layers import STACK_LAYERS
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


ONLINE = """  pool: tank
 state: ONLINE
{}config:

\tNAME        STATE     READ WRITE CKSUM
\ttank        ONLINE       0     0     0
\t  mirror-0  ONLINE       0     0     0
\t    loop0   ONLINE       0     0     0
\t    loop1   ONLINE       0     0     0

errors: No known data errors
"""
SCRUB = """  scan: scrub in progress since Tue Dec  1 05:31:24 2026
\t0B scanned at 0B/s, 0B issued at 0B/s, 40.1M total
\t0B repaired, 0.00% done, no estimated completion time
"""
RESILVER = """status: One or more devices is currently being resilvered.  The pool will
\tcontinue to function, possibly in a degraded state.
action: Wait for the resilver to complete.
  scan: resilver in progress since Tue Dec  1 05:31:27 2026
\t0B scanned at 0B/s, 0B issued at 0B/s, 39.9M total
\t0B resilvered, 0.00% done, no estimated completion time
"""
PAUSED = """  scan: scrub paused since Tue Dec  1 05:31:26 2026
\tscrub started on Tue Dec  1 05:31:24 2026
\t0B scanned, 0B issued, 40.1M total
\t0B repaired, 0.00% done
"""
RESILVERED = "  scan: resilvered 40M in 00:00:03 with 0 errors on Tue Dec  1 05:31:30 2026\n"
SEQUENTIAL = """  scan: scrub repaired 0B in 2 days 10:05:20 with 0 errors on Tue Jul 11 10:29:22 2023
  scan: resilver (draid3:19d:24c:2s-0) in progress since Mon Jul 24 19:40:55 2023
\t334T scanned at 2.13G/s, 306T issued 1.95G/s, 359T total
\t13.9T resilvered, 92.97% done, 03:22:35 to go
"""
"""Of OpenZFS 2.1.5, from a public issue."""
OFFLINE = """status: One or more devices has been taken offline by the administrator.
\tSufficient replicas exist for the pool to continue functioning in a
\tdegraded state.
action: Online the device using 'zpool online' or replace the device with
\t'zpool replace'.
"""
DEGRADED = ONLINE.format(OFFLINE + RESILVERED).replace("state: ONLINE", "state: DEGRADED")
RAID = "lvm tank/data\n0 245760 raid raid1 2 {} {} 0 -\n"
IN_STEP = RAID.format("AA", "245760/245760 idle 0")


@every_row(
    ("text", "expected"),
    [
        (ONLINE.format(""), {}),
        (ONLINE.format(PAUSED), {}),
        (ONLINE.format("  scan: scrub canceled on Tue Dec  1 05:31:26 2026\n"), {}),
        (ONLINE.format(RESILVERED), {}),
        (ONLINE.format(SCRUB), {"the pool tank": "ONLINE, scrub"}),
        (ONLINE.format(RESILVER), {"the pool tank": "ONLINE, resilver"}),
        (ONLINE.format(SEQUENTIAL), {"the pool tank": "ONLINE, resilver"}),
        (DEGRADED, {"the pool tank": "DEGRADED"}),
        (IN_STEP, {}),
        (RAID.format("AA", "0/245760 frozen 0"), {}),
        (RAID.format("aa", "15488/245760 resync 0"), {"the volume tank/data": "resync"}),
        ("lvm vg/data\n0 131072 raid raid5_ls 3 aaa 4104/65536 resync 0 0 -\n", {"the volume vg/data": "resync"}),
        (RAID.format("Aa", "15488/245760 frozen 0"), {"the volume tank/data": "not in step"}),
        (RAID.format("AA", "0/245760 check 0"), {"the volume tank/data": "check"}),
        (RAID.format("AD", "245760/245760 idle 0"), {"the volume tank/data": "1 of 2 devices"}),
        (RAID.format("A-", "1/245760 recover 0"), {"the volume tank/data": "recover, 1 of 2 devices"}),
        ("", None),
        ("cannot open 'tank': no such pool\n", None),
    ],
)
def test_a_pool_or_volume_that_was_not_clean(text: str, expected: dict[str, str] | None) -> None:
    """Before or after."""
    assert unclean_below({}, {"state": text}) == expected
    clean = f"{ONLINE.format('')}\n{IN_STEP}"
    assert unclean_below({"state": text}, {"state": clean}) == (expected or {})


def test_the_commands_that_show_it_are_about_its_own_volume_and_for_copies_and_parity_alone() -> None:
    uuid = "01234567-89ab-cdef-0123-456789abcdef"
    shown = {
        kind: STACK_LAYERS["lvm"].state_commands(StackLayer("lvm", {"kind": kind}), uuid)
        for kind in ("linear", "thin", "raid5")
    }
    volume = ("echo", "lvm", "mountlab-0123456789abcdef/data")
    assert shown == {
        "linear": (), "thin": (), "raid5": (volume, ("dmsetup", "status", "mountlab--0123456789abcdef-data"))
    }  # fmt: skip

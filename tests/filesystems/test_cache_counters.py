"""What caches beside the page cache answered, from the kernel's own text."""

from __future__ import annotations

from mountlab.filesystems.cache_counters import ARCSTATS, MOUNTSTATS, ArcReads, NfsBytes, arc_reads, nfs_bytes

NFS = """device proc mounted on /proc with fstype proc
device 127.0.0.1:/ mounted on {point} with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2,rsize=262144,wsize=262144,namlen=255,hard,proto=tcp,timeo=600,retrans=2,sec=sys
\tage:\t12
\tbytes:\t{counts}
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
device tmpfs mounted on /dev/shm with fstype tmpfs
"""
"""As Linux 6.1 prints it, shortened."""
ARC = """9 1 0x01 123 33456 1234567890 9876543210
name                            type data
hits                            4    {hits}
misses                          4    {misses}
demand_data_hits                4    77
"""
"""As OpenZFS 2.1 prints it, shortened."""


def test_bytes_of_each_nfs_mount_are_differences() -> None:
    before = {MOUNTSTATS: NFS.format(point="/mnt/a\\040b", counts="100 10 1 2 50 5 3 4")}
    after = {MOUNTSTATS: NFS.format(point="/mnt/a\\040b", counts="1100 30 2 4 550 15 9 9")}
    moved = NfsBytes(read=1000, written=20, direct_read=1, from_server=500, to_server=10)
    assert nfs_bytes(before, after) == {"/mnt/a b": moved}


def test_a_mount_that_was_made_meanwhile_has_no_difference() -> None:
    after = {MOUNTSTATS: NFS.format(point="/mnt", counts="1 2 3 4 5 6 7 8")}
    assert nfs_bytes({MOUNTSTATS: ""}, after) == {}
    assert nfs_bytes({}, {}) == {}


def test_look_ups_of_the_arc_are_differences_and_unknown_without_zfs() -> None:
    before, after = ({ARCSTATS: ARC.format(hits=h, misses=m)} for h, m in ((10, 5), (110, 25)))
    assert arc_reads(before, after) == ArcReads(hits=100, misses=20)
    assert arc_reads({}, after) is None

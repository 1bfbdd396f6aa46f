"""Which of the files that a tool has open are under test, by their names."""

from __future__ import annotations

from mountlab.tracing.explained import files_of

SEEN = """\
7 0 /dev/null
7 3 /dev/shm/mountlab-out/20261123T192700-tiny/x0001/fio.json
7 4 /dev/shm/mountlab-root/20261123T192700-tiny/mnt/ext4/x0001/mountlab.0.0
8 5 /srv/mountlab-20261123T192700-tiny-ext4/x0001/mountlab.0.0
9 6 /srv/out/20261123T192700-tiny/x0001/fio.json
9 7 /dev/loop3
"""


def test_a_mount_below_dev_shm_is_under_test_and_the_report_beside_it_is_not() -> None:
    files = files_of(SEEN, "ext4/x0001")
    assert files.tested == {(7, 4), (8, 5), (9, 7)}
    assert files.strange == {(7, 0), (7, 3)}

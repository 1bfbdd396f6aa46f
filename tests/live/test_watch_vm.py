"""A watched program whose second run a server's memory answers, in the virtual box: it serves the directory itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mountlab.box.connection import BoxConnection
from mountlab.results import store
from mountlab.runner import workflow
from mountlab.sentences.watched import watched_lines
from mountlab.sweep.sweep_file import resolve
from mountlab.sweep.watch_sweep import WatchRequest

pytestmark = [
    pytest.mark.box, pytest.mark.slow, pytest.mark.long, pytest.mark.requires_program("qemu-system-x86_64"),
]  # fmt: skip

SERVE = """
set -e
modprobe nfsd
mkdir -p /srv/served /mnt/served
truncate -s 64M /var/tmp/served.img
mkfs.ext4 -q -F /var/tmp/served.img
mount -o loop /var/tmp/served.img /srv/served
head -c 16777216 /dev/urandom > /srv/served/data
sync
[ -e /proc/fs/nfsd/threads ] || mount -t nfsd nfsd /proc/fs/nfsd
setsid rpc.mountd -F -N 2 -N 3 -u < /dev/null > /dev/null 2>&1 &
rpc.nfsd -N 3 -U -H 127.0.0.1 2
exportfs -o rw,fsid=0,no_root_squash,insecure,no_subtree_check 127.0.0.1:/srv/served
mount -t nfs4 -o vers=4.2 127.0.0.1:/ /mnt/served
echo 3 > /proc/sys/vm/drop_caches
"""
END = """
umount /mnt/served
exportfs -u 127.0.0.1:/srv/served
rpc.nfsd 0
pkill rpc.mountd
umount /proc/fs/nfsd
umount /srv/served
rm -rf /srv/served /mnt/served /var/tmp/served.img
"""
READ = "dd if=data of=/dev/null bs=1M 2>/dev/null; dd if=data iflag=nocache count=0 2>/dev/null; sleep 1"
"""Reads the file, and forgets it on the client: the next run asks the server."""


@pytest.fixture
def served(vm_runs: BoxConnection) -> Iterator[str]:
    done = vm_runs.run(("sh", "-c", SERVE), root=True, timeout_s=120)
    assert done.ok, done.error_text
    try:
        yield "/mnt/served"
    finally:
        vm_runs.run(("sh", "-c", END), root=True, timeout_s=120)


def test_a_second_run_from_the_memory_of_the_server_is_called_that(served: str, tmp_path: Path) -> None:
    watch = WatchRequest(("sh", "-c", READ), served, "vm", repeats=2)
    run = store.load_run(workflow.run(resolve(watch.parameters(), where="watch"), box="vm", results=tmp_path))
    (caveat,) = (caveat for caveat in run.caveats if caveat.code == "server-answered")
    assert "in 1 of its 2 trials (t0002)" in caveat.message
    assert "the server's memory answered the rest" in caveat.message
    seen = [record.open_files for record in run.records.values()]
    assert all(files and files.looks for files in seen)
    ((first, _),) = watched_lines(run)
    assert f"On {served} (NFS) the server delivered 100% of 16.0 MiB" in first

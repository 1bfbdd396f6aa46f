"""What a real kernel does with options, and what Mountlab makes of it: one line of the table is one mount.

A line that cannot hold on this kernel is skipped and says so. The control is mounted once for each type.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from option_bench import Bench, Request, compare, guest, local, parse, refine, set_up

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("losetup")]

# Columns: type | mkfs | mount options | their states, in order | what the kernel says of them | added, or the kernel
# that the line is true of. `refused`: the mount fails, and the kernel's log says why.
TABLE = """
ext4 | | data=journal                        | in effect  | data=journal              | + nodelalloc
ext4 | | data=writeback                      | in effect  | data=writeback            |
ext4 | | data=ordered                        | in effect  | data=ordered              |
ext4 | | data=writeback,journal_async_commit | in effect; in effect | data=writeback; journal_async_commit |
ext4 | | journal_async_commit                | refused    | data=ordered              |
ext4 | | data=journal,delalloc               | refused    | delalloc                  |
ext4 | | data=journal,data=writeback         | changed; in effect | data=writeback, which was asked for too; data=writeback |
ext4 | | nonsense                            | refused    | nonsense                  |
ext4 | | dax                                 | refused    | DAX unsupported           |
ext4 | | dax=never                           | in effect  | dax=never                 |
ext4 | | inode_readahead_blks=64             | in effect  | inode_readahead_blks=64   |
ext4 | | inode_readahead_blks=33             | refused    | power of 2                |
ext4 | | nobarrier                           | in effect  | nobarrier                 |
ext4 | | barrier=0                           | in effect  | nobarrier                 |
ext4 | | barrier=1                           | in effect  | barrier                   |
ext4 | | commit=30                           | in effect  | commit=30                 |
ext4 | | commit=0                            | in effect  | commit=5                  |
ext4 | | commit=5                            | in effect  | commit=5                  |
ext4 | | max_batch_time=20000                | in effect  | max_batch_time=20000      |
ext4 | | nojournal_checksum                  | in effect  | journal features: journal_64bit |
ext4 | | nodelalloc                          | in effect  | nodelalloc                |
ext4 | | nodelalloc,delalloc                 | ignored; in effect | delalloc, which was asked for too; delalloc |
ext4 | | noatime,nodiratime                  | in effect; in effect | noatime; nodiratime |
ext4 | | noatime,data=ordered,nobh           | in effect; in effect; ignored | ; ; Ignoring removed nobh |
ext4 | | strictatime                         | in effect  | strictatime               |
ext4 | | relatime                            | in effect  | relatime                  |
ext4 | | lazytime                            | in effect  | lazytime                  |
ext4 | | sync                                | in effect  | sync                      |
ext4 | | async                               | in effect  | sync is absent            |
ext4 | | nosuid                              | in effect  | nosuid                    |
ext4 | | exec                                | in effect  | noexec is absent          |
ext4 | | nobh                                | ignored    | Ignoring removed nobh     |
ext4 | | oldalloc                            | ignored    | Ignoring removed oldalloc |
ext4 | | mand                                | without effect | no mandatory locks    | >=5.15
ext4 | | user                                | in effect  | nosuid, nodev, noexec     |
ext4 | | users,exec                          | in effect; in effect | nosuid, nodev; noexec is absent |
ext4 | | exec,user                           | ignored; in effect | noexec, which user brings; nosuid, nodev, noexec |
ext4 | | owner                               | in effect  | nosuid, nodev             |
ext4 | | group,suid,dev                      | in effect; in effect; in effect | asks nothing; nosuid is absent; nodev is absent |
ext4 | | user=root,nogroup                   | in effect; in effect | asks nothing; asks nothing |
ext4 | | journal_async_commit,data=writeback,nojournal_checksum | in effect; in effect; without effect | journal_async_commit; data=writeback; journal_checksum |
ext4 | | data=writeback,nojournal_checksum,journal_async_commit | in effect; ignored; in effect | data=writeback; journal_checksum; journal_async_commit |
ext4 | | journal_checksum                    | in effect  | journal_checksum          |
ext4 | | nodelalloc,noauto_da_alloc          | in effect; without effect | nodelalloc; delayed allocation |
ext4 | | noauto_da_alloc                     | in effect  | noauto_da_alloc           |
ext4 | | sync,dirsync                        | in effect; in effect | sync; dirsync    |
ext4 | | prefetch_block_bitmaps              | in effect  | prefetch_block_bitmaps    | >=6.18
ext4 | | prefetch_block_bitmaps              | ignored    | Ignoring removed prefetch | <6.2
ext4 | | inlinecrypt                         | ignored    | inline encryption not supported | >=6.0
ext4 | | acl                                 | in effect  | acl                       |
ext4 | | noacl                               | refused    | noacl                     | >=6.3
ext4 | | minixdf                             | in effect  | minixdf                   |
ext4 | | grpid                               | in effect  | grpid                     |
ext4 | | bsdgroups                           | in effect  | shown as grpid            |
ext4 | | noatime,bsdgroups                   | in effect; in effect | noatime; shown as grpid |
ext4 | | data=journal,bsdgroups              | in effect; in effect | ; shown as grpid | + nodelalloc
ext4 | | noload                              | in effect  | shown as norecovery       |
ext4 | | sysvgroups                          | in effect  | grpid is absent           |
ext4 | | sysvgroups,grpid                    | ignored; in effect | grpid, which was asked for too; grpid |
ext4 | | journal_ioprio=3                    | not visible | nothing                  |
ext4 | | dioread_lock                        | in effect  | nodioread_nolock          | >=5.6
ext4 | | init_itable                         | in effect  | init_itable=10            |
ext4 | | noinit_itable                       | in effect  | noinit_itable             |
ext4 | | discard                             | in effect  | discard                   |
ext4 | | errors=panic                        | in effect  | errors=panic              |
ext4 | | resuid=1000                         | in effect  | resuid=1000               |
ext4 | | stripe=16                           | in effect  | stripe=16                 |
ext4 | | auto_da_alloc=0                     | in effect  | noauto_da_alloc           |
ext4 | | usrquota                            | without effect | only the quota tools  | + quota
ext4 | | ro                                  | in effect  | ro                        |
ext4 | | defaults,x-made.up=1,nofail         | in effect; in effect; in effect | asks nothing; asks nothing; asks nothing |
ext3 | | data=writeback                      | in effect  | data=writeback            |
ext3 | | nobh                                | ignored    | Ignoring removed nobh     |
ext3 | | commit=9                            | in effect  | commit=9                  |
ext3 | | nodelalloc                          | refused    | ext3                      |
ext2 | | noatime                             | in effect  | noatime                   |
ext2 | | data=writeback                      | refused    | ext2                      |
ext2 | | errors=panic                        | in effect  | errors=panic              |
xfs | | dax=always                           | changed    | dax=never                 | >=5.8
xfs | | dax                                  | changed    | dax=never                 | >=5.8
xfs | | logbufs=4,logbsize=256k              | in effect; in effect | logbufs=4; logbsize=256k |
xfs | | logbsize=262144                      | in effect  | logbsize=256k             |
xfs | | logbufs=9                            | refused    | invalid logbufs           |
xfs | | allocsize=1m                         | in effect  | allocsize=1024k           |
xfs | | sunit=8                              | refused    | swidth                    |
xfs | | inode32                              | without effect | fits into 32 bits     |
xfs | | largeio,allocsize=1m                 | in effect; in effect | largeio; allocsize=1024k |
xfs | | ikeep                                | not visible | deprecated               | >=6.18
xfs | | ikeep                                | in effect  | ikeep                     | <6.2
xfs | | largeio,swalloc,wsync                | without effect; without effect; in effect | no stripe; without a stripe; wsync |
xfs | | noalign                              | without effect | without a stripe      |
xfs | | nolargeio,nodiscard,nogrpid          | in effect; in effect; in effect | largeio is absent; discard is absent; grpid is absent |
xfs | | nobarrier                            | refused    | nobarrier                 |
xfs | | norecovery                           | refused    | read-only                 |
xfs | | bsdgroups                            | in effect  | shown as grpid            |
xfs | | sync                                 | in effect  | sync                      | + wsync
btrfs | | compress=zstd                      | in effect  | compress=zstd:3           |
btrfs | | compress=zstd:1                    | in effect  | compress=zstd:1           |
btrfs | | compress=zstd:99                   | changed    | compress=zstd:15          |
btrfs | | compress                           | in effect  | compress=zlib             |
btrfs | | compress=made_up                   | refused    |                           |
btrfs | | compress-force=lzo                 | in effect  | compress-force=lzo        |
btrfs | | nodatacow                          | in effect  | nodatacow                 | + nodatasum
btrfs | | compress=zstd,nodatacow            | ignored; in effect | nodatacow comes later; nodatacow |
btrfs | | nodatacow,compress=zstd            | ignored; in effect | compress=zstd comes later; compress=zstd:3 |
btrfs | | compress=zstd,nodatasum            | without effect; in effect | no file without checksums; nodatasum |
btrfs | | compress-force=zstd,nodatasum      | without effect; in effect | no file without checksums; nodatasum |
btrfs | | nodatasum,compress=zstd            | ignored; in effect | compress=zstd comes later; compress=zstd:3 |
btrfs | | compress-force=zstd,compress=lzo   | changed; in effect | compress=lzo; compress=lzo | >=6.18
btrfs | | compress,compress-force=lzo        | changed; in effect | compress-force=lzo; compress-force=lzo |
btrfs | | compress,compress=lzo              | changed; in effect | compress=lzo; compress=lzo |
btrfs | | compress=zstd:0                    | in effect  | compress=zstd:3           |
btrfs | | compress=no                        | in effect  | compress is absent        |
btrfs | | sync,dirsync,lazytime              | in effect; without effect; without effect | sync; directory; time stamps |
btrfs | | nodiscard                          | in effect  | discard=async is gone     | >=6.8
btrfs | | discard=sync                       | in effect  | discard                   | >=6.2
btrfs | | nossd                              | in effect  | nossd                     |
btrfs | | commit=30                          | in effect  | commit is absent, which means 30 |
btrfs | | commit=5                           | in effect  | commit=5                  |
btrfs | | max_inline=1m                      | changed    | max_inline=4096           |
btrfs | | thread_pool=0xc                    | in effect  | thread_pool=12            |
btrfs | | nobarrier                          | in effect  | nobarrier                 |
btrfs | | datacow,barrier,treelog,acl        | in effect; in effect; in effect; in effect | nodatacow is absent; nobarrier is absent; notreelog is absent; noacl is absent |
btrfs | | autodefrag,noacl,notreelog         | in effect; in effect; in effect | autodefrag; noacl; notreelog |
btrfs | | nonsense                           | refused    | nonsense                  |
tmpfs | | size=64m                           | in effect  | size=65536k               |
tmpfs | | size=1000000                       | in effect  | rounded up to whole pages |
tmpfs | | size=1000                          | changed    | size=4k                   |
tmpfs | | size=10%                           | in effect  | size=                     |
tmpfs | | nr_inodes=1k                       | in effect  | nr_inodes=1               |
tmpfs | | nr_blocks=1000                     | in effect  | shown as size=4000k       |
tmpfs | | mode=0755                          | in effect  | mode=755                  |
tmpfs | | mode=1777                          | in effect  | has mode 1777             |
tmpfs | | uid=nobody                         | in effect  | uid=65534                 |
tmpfs | | uid=root                           | in effect  | has uid 0                 |
tmpfs | | huge=never                         | in effect  | huge is absent, which means never |
tmpfs | | noswap                             | in effect  | noswap                    | >=6.4
tmpfs | | data=writeback                     | refused    | data                      |
tmpfs | | noatime,nodiratime                 | in effect; in effect | noatime; nodiratime |
tmpfs | | mpol=interleave                    | in effect  | mpol=interleave:0         |
tmpfs | | mpol=interleave:0-0                | in effect  | mpol=interleave:0         |
tmpfs | | mpol=bind:0,0                      | in effect  | mpol=bind:0               |
tmpfs | | mpol=bind=static:0,0               | in effect  | mpol=bind=static:0        |
tmpfs | | mpol=prefer                        | in effect  | mpol=local                |
tmpfs | | mpol=default                       | in effect  | mpol is absent            |
tmpfs | | mpol=weighted interleave:0         | in effect  | mpol=weighted interleave:0 | >=6.9
tmpfs | | sync,dirsync,lazytime              | without effect; without effect; without effect | in memory; in memory; in memory |
tmpfs | | mand                               | without effect | no mandatory locks    | >=5.15
ramfs | | nonsense                           | ignored    | ramfs accepts unknown options |
ramfs | | size=64m                           | ignored    | ramfs accepts unknown options |
ramfs | | data=writeback,nodelalloc,nobarrier | ignored; ignored; ignored | ramfs accepts unknown options; ramfs accepts unknown options; ramfs accepts unknown options |
ramfs | | noatime,nodiratime,rw              | in effect; in effect; in effect | noatime; nodiratime; rw |
ramfs | | mode=1777                          | in effect  | mode=1777                 |
ramfs | | mode=0755                          | in effect  | has mode 755              |
ramfs | | uid=1000                           | ignored    | has uid 0                 |
hugetlbfs | | pagesize=2M                    | in effect  | pagesize=2M               |
hugetlbfs | | size=4m                        | in effect  | size=4194304              |
hugetlbfs | | size=5m                        | changed    | size=4194304              |
hugetlbfs | | mode=0700                      | in effect  | mode=700                  |
hugetlbfs | | nonsense                       | refused    | nonsense                  |
overlay | | volatile                         | in effect  | volatile                  | >=5.10
overlay | | nonsense                         | refused    | nonsense                  |
overlay | | noatime                          | in effect  | noatime                   |
overlay | | sync                             | without effect | ask for it under      |
overlay | | dirsync,lazytime                 | without effect; without effect | ask for it under; ask for it under |
ext4 | -b 1024 -I 512 -m 1 -N 2000           | | in effect; in effect; in effect; in effect | block size: 1024; inode size: 512; 6553 of 655360; inode count: 19 |
ext4 | -E stride=16,stripe_width=64,root_owner=5:6 | | in effect; in effect; in effect | raid stride: 16; raid stripe width: 64; 5:6 | + stripe=64
ext4 | -O ^has_journal,bigalloc -C 65536     | | in effect; in effect; in effect | not a feature; a feature; 65536 |
ext4 | -E lazy_itable_init=0,lazy_journal_init=0 | | in effect; not visible | inode tables zeroed; nothing |
ext4 | -i 65536 -J size=8 -e panic -G 4      | | in effect; in effect; in effect; in effect | 65; 8M; Panic; 4 | + errors=panic
ext4 | -E packed_meta_blocks=1               | | not visible | |
ext4 | -O ^has_journal                       | max_batch_time=9,noload | without effect; without effect; in effect | no journal; no journal; not a feature |
ext4 | -b 4k -E resize=1000000               | | in effect; not visible | block size: 4096; nothing |
ext4 | -g 8192                               | | in effect | blocks per group: 8192 |
xfs | -d su=64k,sw=4                         | | in effect; in effect | data: sunit=16; swidth=64 | + sunit=128
xfs | -d sunit=128,swidth=512,agcount=8      | | in effect; in effect; in effect | data: sunit=16; data: swidth=64; agcount=8 |
xfs | -i size=1024,maxpct=10 -s size=4096    | | in effect; in effect; in effect | isize=1024; imaxpct=10; sectsz=4096 |
xfs | -m reflink=0,rmapbt=1,finobt=1 -n size=8192 | | in effect; in effect; in effect; in effect | reflink=0; rmapbt=1; finobt=1; bsize=8192 |
xfs | -b size=1024 -l size=64m,su=32k        | | in effect; in effect; in effect | bsize=1024; blocks=65536; sunit=32 |
btrfs | -m single -d dup -n 4096             | | in effect; in effect; in effect | metadata, single; data, DUP; nodesize: 4096 |
btrfs | --csum xxhash -O ^no-holes -s 4096   | | in effect; in effect; in effect | xxhash64; not a feature; sectorsize: 4096 |
btrfs | -O extref,skinny-metadata            | | in effect; in effect | extref is a feature; skinny-metadata is a feature |
btrfs | -R quota                             | | in effect | qgroups/enabled: 1 | >=5.9
btrfs | --nodiscard                          | | not visible | nothing |
btrfs | -K                                   | | not visible | nothing |
btrfs | -M                                   | | in effect | shown as |
xfs | -d su=64k,sw=4                         | noalign,largeio,swalloc | in effect; in effect; in effect; in effect; in effect | noalign; largeio; swalloc; sunit=16; swidth=64 |
"""  # noqa: E501

REQUESTS = [parse(refine(line)) for line in TABLE.strip().splitlines()]


@pytest.fixture(scope="module")
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with ExitStack() as stack:
        if request.param == "vm":
            machine = guest(request.getfixturevalue("vm_connection"))
            directory = machine("mktemp", "-d", "/var/tmp/mountlab-options-XXXXXX").out.strip()
        else:
            machine, directory = local, str(tmp_path_factory.mktemp("options"))
        yield set_up(machine, directory, stack)


def test_the_table_asks_enough() -> None:
    """60 requests over ext4, xfs, btrfs, tmpfs and ramfs, and every state among them."""
    assert len(REQUESTS) >= 60
    assert {"ext4", "xfs", "btrfs", "tmpfs", "ramfs"} <= {each.kind for each in REQUESTS}
    states = {state for each in REQUESTS for state in each.states}
    assert states == {"in effect", "changed", "ignored", "without effect", "not visible", "refused"}


def in_the_guest(request_: Request) -> bool:
    """A mount of the emulated guest takes seconds: only what another kernel may do otherwise, and each type's first."""
    return bool(request_.note) or request_ is next(each for each in REQUESTS if each.kind == request_.kind)


def repeats(request_: Request) -> bool:
    """Whether the same states of options of mount or mkfs are asked for by another line, of any type: before it, or
    true of every kernel. The first line of each type repeats none."""
    if request_ is next(each for each in REQUESTS if each.kind == request_.kind):
        return False
    alike = [each for each in REQUESTS if sort(each) == sort(request_)]
    return request_ is not min(alike, key=of_some_kernels)


def of_some_kernels(request_: Request) -> bool:
    return bool(request_.note) and not request_.added


def sort(request_: Request) -> tuple[object, ...]:
    return bool(request_.mkfs), frozenset(request_.states), bool(request_.added)


def marks(request_: Request) -> tuple[pytest.MarkDecorator, ...]:
    return (pytest.mark.long,) if repeats(request_) else ()


CASES = [pytest.param("local", each, id=f"local-{each}", marks=marks(each)) for each in REQUESTS]
CASES += [pytest.param("vm", each, id=f"vm-{each}", marks=pytest.mark.long) for each in REQUESTS if in_the_guest(each)]


@pytest.mark.parametrize(("bench", "request_"), CASES, indirect=["bench"])
def test_what_is_asked_for_is_told_from_what_is_in_effect(bench: Bench, request_: Request) -> None:
    compare(bench, request_)

"""Which names tell somebody anything, and which are words that stand in any file of any machine."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from mountlab.core.metrics import METRICS
from mountlab.core.places import SHIPPED
from mountlab.programs import TOOLS

_PUBLIC_USERS_WORDS = """
    root nobody daemon bin sys adm admin administrator user guest operator ubuntu debian fedora centos rocky alma
    opensuse arch vagrant docker ec2-user cloud-user core runner jovyan postgres mysql www-data
"""
_PUBLIC_GROUPS_WORDS = """
    tty disk lp mail news uucp man proxy kmem dialout fax voice cdrom floppy tape sudo audio dip backup list irc src
    shadow utmp video sasl plugdev staff games users nogroup input kvm render sgx wheel libvirt libvirt-qemu lxd lpadmin
    sambashare netdev bluetooth scanner systemd-journal storage power network everyone none unknown mem utempter
"""
PUBLIC_USERS = frozenset((*_PUBLIC_USERS_WORDS.split(), *_PUBLIC_GROUPS_WORDS.split(), "UNKNOWN"))
"""Users and groups that thousands of machines have: they identify no person."""
_PUBLIC_HOSTS_WORDS = """
    localhost localhost.localdomain localhost4 localhost6 ip6-localhost ip6-loopback (none) debian ubuntu fedora
    centos archlinux linux raspberrypi mountlab mountlab-vm
"""
PUBLIC_HOSTS = frozenset(_PUBLIC_HOSTS_WORDS.split())
OWN_BOXES = frozenset(("local", "vm"))
"""The boxes that come with Mountlab: everybody has them."""

_WORDS = """
    all any array async auto average bench benchmark block blocks boot box buffer bytes cache cell cold command control
    count counters cpu data database date default delta dev device devices direct directory disk disks done drop elapsed
    empty error errors ext2 ext3 ext4 factor factors false file files filesystem filesystems first flags free fresh
    group groups hard home host image images info input job jobs journal kernel label last latency level lines linux
    list local lock loop loops main major mark master mean memory metric minor mode model mount mounts name names node
    none note null number options order output page pages parameters part path percent point pool private process
    program queue random rate raw read reads record records repeats report result results root rounds run runs sample
    scheduler scratch second section sectors seed seq serial series server service session shared size slice source
    stage start state static status stderr stdout storage stop store summary swap sync system table target temp test
    tests text time timeout total trace trial trials true type unit units unknown update user users value values version
    virtual volume warm workload workloads write writes xfs btrfs tmpfs ramfs overlay zram hugetlbfs sudo root work
    worker primary secondary backup archive shared stack lab nas backend frontend node0 client python html notebook
    notebooks figure figures plot plots interval intervals ratio ratios verdict verdicts caveat caveats evidence
    baseline question answer estimate estimates measured measurement measurements facts published reason finished
    created design
"""
ORDINARY = frozenset(_WORDS.split()) | frozenset(word for name in METRICS for word in name.split("_")) | set(TOOLS.own)
"""Words that stand in outputs, keys and reports with a meaning of their own: replaced everywhere they would damage a
file, so a machine or user of such a name is replaced only where it stands as a name."""
_LIBRARY = Path(__file__).parents[2]
_QUOTED = re.compile(r"""\"[^"\n]*\"|'[^'\n]*'""")

_NUMBER_LIKE = re.compile(r"[0-9.,]*|\d+[a-z]{1,3}|\d+e\d+|0x[0-9a-f]+", re.IGNORECASE)
_DEVICE_LIKE = re.compile(
    r"(?:[svh]d[a-z]|nvme|loop|zram|md|dm-|sr|eth|en[ops]|tty|pts|cpu|block|[tm])\d*", re.IGNORECASE
)
_SHORTEST, _SHORTEST_NUMBER, LONG = 4, 8, 8
"""Letters that a name must have to be looked for in all text; digits of a serial number that is only digits; and
letters from which on it is found inside of longer words too."""


def distinctive(value: str) -> bool:
    """Return whether a name may be replaced wherever it stands as a word: 'nova7' and 'mybox' yes; 'vm', 'disk',
    'will', '4k' and 'sda' no."""
    if value.lower() in ORDINARY or value.lower() in _our_words() or _DEVICE_LIKE.fullmatch(value):
        return False
    if _NUMBER_LIKE.fullmatch(value):
        return value.isdecimal() and len(value) >= _SHORTEST_NUMBER
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value)) and len(value) >= _SHORTEST - 1
    return mixed or len(value) >= _SHORTEST


@cache
def _our_words() -> frozenset[str]:
    """Return the words in quotes in our sources, and those of the licence: our pages, keys and messages are made of
    them. The sources of this directory only have names as examples."""
    sources = [
        path for path in _LIBRARY.rglob("*") if path.suffix in (".py", ".sh") and Path(__file__).parent != path.parent
    ]
    ours = [text for path in sources for text in _QUOTED.findall(path.read_text())]
    licence = (SHIPPED / "LICENSE").read_text()
    return frozenset(re.findall(r"[a-z]+", " ".join([*ours, licence]).lower()))


# --- parts of paths ---------------------------------------------------------------------------------------------------

_NEUTRAL_WORDS = """
    bin boot cgroup data debug dev devices disk disks efi esp etc export exports extra fs home host hugepages img
    lib lib64 lost+found media mnt mount mounts mqueue nfs opt out overlay pool private proc pts root run sbin
    scratch sd security shm snap snapshots spare srv ssd storage swap sys test tests tmp tracing unified user
    users Users usr var vol volume volumes work workdir lower upper merged docker containers containerd lib
    overlay2 var lock log cache spool mail local share hosts hostname resolv.conf kernel config firmware efivars
    bpf fuse connections bench benchmark backup archive bulk fast slow cold hot
"""
_NEUTRAL = frozenset(_NEUTRAL_WORDS.split())
_NEUTRAL_FORM = re.compile(
    r"(?:disk|data|scratch|ssd|hdd|nvme|sd[a-z]|md|vol|volume|mnt|tmp|test|bench|raid|pool|pmem|loop|zram)?[-_]?\d*"
    r"(?:n\d+|p\d+)*",
    re.IGNORECASE,
)


def neutral(part: str) -> bool:
    """Return whether a directory's name is one that tells nothing: '/mnt/nvme0', and not '/mnt/acme-payroll'."""
    return part in _NEUTRAL or part in PUBLIC_USERS or bool(_NEUTRAL_FORM.fullmatch(part))

"""Names of machines and people: what is replaced, what only looks like it, and that it is the same everywhere."""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any
from urllib.parse import quote

import pytest
from facts import known
from hypothesis import given
from hypothesis import strategies as st
from mountlab.core.run_info import RunInfo
from mountlab.publish.identities.known import Identity, control_identities, run_identities
from mountlab.publish.identities.names import distinctive, neutral
from mountlab.publish.identities.pseudonyms import Pseudonyms
from rows import every_row

INFO: dict[str, Any] = {
    "run_id": "20261120T101902-sweep-payroll",
    "box": {"name": "payroll", "host": "nova-bench", "user": "alice", "mount_root": "/srv/acme/mountlab",
            "scratch": [{"name": "data", "device": "/dev/disk/by-id/nvme-ACME_S4EVNX0M123456"}]},
    "facts": {
        "hostname": "nova7.acme.example", "user": "alice", "mount_root": "/srv/acme/mountlab",
        "output_root": "/dev/shm/mountlab-alice", "boot_id": "8d890d65-b030-404a-b0ad-3b370d7641fa",
        "kernel": "6.1.0.9-amd64", "programs": {"fio": {"path": "/usr/bin/fio", "version": "fio 10.1.2.3"}},
        "block_devices": [{"serial": "S4EVNX0M123456", "mountpoints": ["/", "/mnt/ledger"]}],
        "device_ids": {"data": "boot=0a1b2c3d,259:0,sectors=100,wwid=eui.0025385b71b0a4b3,serial=S4EVNX0M123456"},
    },
    "parameters": {"box": "payroll", "question": "Is alice's nova7 fast?", "filesystems": {
        "ext4": {"type": "ext4", "image_dir": "/mnt/ledger", "overwrite": "1f0c6c86-50b1-4d5b-9b43-0a4c5f3a7d10"},
    }},
}  # fmt: skip
MOUNTS = """\
29 1 259:2 / / rw,relatime - ext4 /dev/nvme0n1p2 rw
30 29 0:40 / /mnt/ledger rw - nfs4 vault.acme.example:/exports/invoices rw,vers=4.2,addr=10.20.30.41,clientaddr=10.20.30.40
31 29 0:41 / /mnt/Acme\\040Ltd rw - cifs //filer9/books rw,username=eve,domain=ACMECORP,addr=10.20.30.42
32 29 0:42 / /var/lib/data rw - overlay overlay rw
"""  # noqa: E501
OF_RUN = RunInfo(**{**INFO, "facts": known(**INFO["facts"])})
RUN = Pseudonyms(run_identities(OF_RUN, [MOUNTS]), {INFO["run_id"]: "payroll"})
NOBODY = Pseudonyms([])
HOME = "/home"


# --- what is known ----------------------------------------------------------------------------------------------------


@every_row(
    ("text", "expected"),
    [
        ("nova7.acme.example", "host-2"), ("Linux nova7 6.1.0 #1 SMP", "Linux host-2 6.1.0 #1 SMP"),
        ("NOVA7: no space", "host-2: no space"), ("ssh nova-bench", "ssh host-1"),
        ("other3.acme.example:8080", "host-5:8080"), ("*.acme.example", "*.domain-1"), ("innova7x", "innova7x"),
        ("/var/tmp/mountlab-alice/x", "/var/tmp/mountlab-user-1/x"), ("uid=1000(alice)", "uid=1000(user-1)"),
        ("of=/srv/acme/mountlab/mnt/t0001/dd.img", "of=/srv/place-1/mountlab/mnt/t0001/dd.img"),
        ("/mnt/ledger/sub", "/mnt/place-2/sub"), ("/mnt/ledgers", "/mnt/ledgers"),
        ("serial S4EVNX0M123456_1", "serial serial-1_1"), ("nvme-ACME_S4EVNX0M123456-part1", "device-1-part1"),
        ("vault", "host-3"), ("//filer9/books", "//host-4/books"), ("/mnt/Acme\\040Ltd", "/mnt/place-4"),
        ("eve@filer9", "user-2@host-4"), ("ACMECORP\\eve", "domain-2\\user-2"),
    ],
)  # fmt: skip
def test_what_a_run_knows_of_its_box_is_replaced(text: str, expected: str) -> None:
    names = Pseudonyms(run_identities(OF_RUN, [MOUNTS]))
    assert names.text(text) == expected


def test_every_form_that_a_file_could_give_a_name_is_known() -> None:
    name, path = "josé müller", "/data/Köln <1>"
    names = Pseudonyms([Identity("user", name), Identity("place", path)])
    for form in (name, json.dumps(name), escape(name), quote(name), name.replace(" ", "\\040")):
        assert "josé" not in names.text(form) or form == name
        assert "M%C3" not in names.text(form)
        assert "user-1" in names.text(form), form
    for form in (path, json.dumps(path), escape(path), quote(path), path.replace(" ", "\\040")):
        assert names.text(form).strip('"') == "/data/place-1", form


@every_row("before", ["\\n", "\\t", "%2F", "%20", '"', "/", "(", "=", ",", "_", "-", "\n", "\\040"])
def test_a_name_begins_after_whatever_is_no_letter(before: str) -> None:
    names = Pseudonyms([Identity("user", "alice"), Identity("host", "nova7")])
    assert names.text(f"x{before}alice {before}nova7") == f"x{before}user-1 {before}host-1"


@every_row(
    ("name", "written"),
    [
        ("my-box", "my_box MY-BOX my--box my.box a/my_box/b my-box.log"),
        ("nova-bench", "nova_bench NovaBench novabench nova--bench log-nova.bench.txt"),
        ("payroll", "payroll Payroll PAYROLL payroll_1 x.payroll"),
    ],
)
def test_a_name_is_replaced_in_any_case_and_with_any_marks_between_its_parts(name: str, written: str) -> None:
    names = Pseudonyms([Identity("box", name)])
    text = names.text(written)
    assert not names.left(text)
    assert len(re.findall("box-1", text)) == len(written.split())
    assert not re.search("nova|my|payroll", text, re.IGNORECASE)


@every_row(
    ("kind", "word", "text", "expected"),
    [
        ("box", "data", "box data on data: BOX=data", "box box-1 on data: BOX=box-1"),
        ("box", "data", "raw/t0001/client-data-stdout", "raw/t0001/client-box-1-stdout"),
        ("box", "data", "x-ext4/t0001/data/data sock:/r/t0001.c/data raw/t0001/data-jobs.fio raw/t0001/data t1/data",
         "x-ext4/t0001/box-1/data sock:/r/t0001.c/box-1 raw/t0001/box-1-jobs.fio raw/t0001/data t1/data"),
        ("box", "archive", "root@archive https://archive/x ssh archive archive:/x archive.tar",
         "root@box-1 https://box-1/x ssh box-1 box-1:/x archive.tar"),
        ("user", "will", f"will@x it will, {HOME}/will/y (will)", f"user-1@host-1 it will, {HOME}/user-1/y (user-1)"),
        ("host", "server", "Linux server 6.1 server:/x server.log", "Linux host-1 6.1 host-1:/x server.log"),
        ("serial", "figure", "SN: figure serial=figure figure 1", "SN: serial-1 serial=serial-1 figure 1"),
        ("device", "data", "/dev/mapper/data /dev/data/root pool data data=ordered",
         "/dev/mapper/device-1 /dev/device-1/root pool device-1 data=ordered"),
        ("serial", "figure", "NAME SERIAL\nsda  figure\n\nsda  figure", "NAME SERIAL\nsda  serial-1\n\nsda  figure"),
        ("user", "will", "USER  PID\nwill  123 it will\n", "USER  PID\nuser-1  123 it will\n"),
    ],
)  # fmt: skip
def test_an_ordinary_word_is_replaced_where_it_stands_as_a_name(kind: str, word: str, text: str, expected: str) -> None:
    assert Pseudonyms([Identity(kind, word)]).text(text) == expected


def test_a_client_that_is_called_by_an_ordinary_word_is_replaced_behind_the_name_of_a_run_and_as_a_key() -> None:
    boxes = [Identity("box", "data"), Identity("box", "server")]
    names = Pseudonyms(boxes, {"20261120T101902-s-data-3f9a": "data"}, ["server"])
    assert names.text("/tmp/20261120T101902-s-data-3f9a-server/x") == "/tmp/20261120T101902-s-box-1-3f9a-box-2/x"
    told = names.value({"clients": {"server": {"kernel": "6.1"}}, "workloads": {"a": {"clients": ["server", "data"]}}})
    assert told == {"clients": {"box-2": {"kernel": "6.1"}}, "workloads": {"a": {"clients": ["box-2", "box-1"]}}}
    assert names.rows("label,value\ndata,1\nserver,2\n") == "label,value\ndata,1\nbox-2,2\n", "data drove nothing"


def test_json_is_replaced_by_what_its_keys_say() -> None:
    told = RUN.value(INFO)
    assert (told["facts"]["hostname"], told["facts"]["user"], told["box"]["host"]) == ("host-2", "user-1", "host-1")
    assert told["box"]["name"] == told["parameters"]["box"] == "box-1"
    assert told["run_id"] == "20261120T101902-sweep-box-1"
    assert told["facts"]["kernel"] == "6.1.0.9-amd64"
    assert told["facts"]["programs"]["fio"]["version"] == "fio 10.1.2.3"
    assert told["facts"]["block_devices"][0] == {"serial": "serial-1", "mountpoints": ["/", "/mnt/place-2"]}
    assert told["facts"]["device_ids"]["data"] == "boot=0a1b2c3d,259:0,sectors=100,wwid=wwn-1,serial=serial-1"
    assert told["parameters"]["question"] == "Is user-1's host-2 fast?"
    assert told["parameters"]["filesystems"]["ext4"]["overwrite"].startswith("00000000-0000-0000-0000-")
    assert not RUN.left(json.dumps(told), patterns=False)


def test_the_control_machine_is_known_too() -> None:
    found = control_identities(
        host="desk.acme.example",
        user="alice",
        home="/home/alice",
        machine_id="3d1219c7c4c5404aaa1f6d2a48adfda4",
        paths=("/opt/trents-lab/mountlab",),
        ssh={"host": ["10.9.8.7", "gatehouse"], "user": ["root"]},
    )
    names = Pseudonyms(found)
    text = (
        "alice@desk /home/alice/x /opt/trents-lab/mountlab/a 3d1219c7c4c5404aaa1f6d2a48adfda4 10.9.8.7 gatehouse root"
    )
    expected = "user-1@host-1 /home/user-1/x /opt/place-1/mountlab/a machine-1 address-1 host-2 root"
    assert names.text(text) == expected


@every_row("name", ["vm", "disk", "test", "root", "fio", "4k", "sda", "nvme0", "12", "m001", "latency"])
def test_a_machine_that_is_called_like_a_thing_is_replaced_only_as_a_machine(name: str) -> None:
    names = Pseudonyms([Identity("host", name)])
    assert not distinctive(name)
    assert names.text(f"/proc/sys/{name}/x {name}=1 {name}") == f"/proc/sys/{name}/x {name}=1 {name}"
    assert names.text(f"Linux {name} 6.1.0") == "Linux host-1 6.1.0"
    assert names.text(f"Nov 20 10:00:00 {name} kernel: oops") == "Nov 20 10:00:00 host-1 kernel: oops"
    assert names.value({"hostname": name}) == {"hostname": "host-1"}
    assert names.ordinary() == ("host",)


@every_row("name", ["root", "nobody", "ubuntu", "postgres"])
def test_users_that_everybody_has_are_left(name: str) -> None:
    names = Pseudonyms([Identity("user", name)])
    assert names.text(f"/home/{name} mountlab-{name} {name}@nova7") == f"/home/{name} mountlab-{name} {name}@host-1"


@every_row("path", ["/", "/data", "/mnt/nvme0", "/var/tmp/mountlab-root", "/mnt/disk2"])
def test_directories_that_tell_nothing_are_left(path: str) -> None:
    assert Pseudonyms([Identity("place", path)]).text(f"{path} {path}/x") == f"{path} {path}/x"
    assert not neutral("acme-payroll")


# --- what is found by its form ----------------------------------------------------------------------------------------


@every_row(
    ("text", "expected"),
    [
        ("connect to 10.1.2.3 port 22", "connect to address-1 port 22"),
        ("8.8.8.8:53, 192.168.0.1/24.", "address-1:53, address-2/24."),
        ("10.0.0.5-10.0.0.9", "address-1-address-2"),
        ("ip-10-0-0-5.ec2.internal", "host-1"),
        ("fe80::1ff:fe23:4567:890a%eth0", "address-1%eth0"),
        ("[2001:db8::7]:22", "[address-1]:22"),
        ("2001:0db8:85a3:0000:0000:8a2e:0370:7334", "address-1"),
        ("ether 52:54:00:ab:cd:ef brd", "ether mac-1 brd"),
        ("52-54-00-AB-CD-EF", "mac-1"),
        ("uuid 1f0c6c86-50b1-4d5b-9b43-0a4c5f3a7d10", "uuid 00000000-0000-0000-0000-000000000001"),
        ("/dev/disk/by-id/ata-ST1000DM003_Z1D5ABCD", "/dev/disk/by-id/device-1"),
        ("wwn-0x5000c500a1b2c3d4", "wwn-1"),
        ("naa.5000c500a1b2c3d4 eui.0025385b71b0a4b3", "wwn-1 wwn-2"),
        ("iqn.2004-01.org.acme:storage.disk1", "wwn-1"),
        ("Serial Number:    Z1D5ABCD", "Serial Number:    serial-1"),
        ('"serial": "Z1D5ABCD"', '"serial": "serial-1"'),
        ("/home/alice/.cache", "/home/user-1/.cache"),
        ("bob@nas7.acme.example: denied", "user-1@host-1: denied"),
        ("nas.fritz.lan", "host-1"),
        ("SHA256:" + "a" * 43, "SHA256:key-1"),
        ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExampleExample bob@x", "ssh-ed25519 key-1 user-1@host-1"),
        ("/var/lib/docker/containers/" + "0a" * 32 + "/hosts", "/var/lib/docker/containers/container-1/hosts"),
        ("machine-id: 3d1219c7c4c5404aaa1f6d2a48adfda4", "machine-id: machine-1"),
        ("/dev/mapper/3600508b4000c4a37 on", "/dev/mapper/device-1 on"),
        ("/dev/mapper/acme_vg-pay\\040roll: clean", "/dev/mapper/device-1: clean"),
        ("==> root <==\n755 1000 1001 bob acmedevs\n", "==> root <==\n755 1000 1001 user-1 user-2\n"),
        ("-rw-r--r-- 1 bob acmedevs 12 x", "-rw-r--r-- 1 user-1 user-2 12 x"),
        ("drwxr-xr-x. 2 root wheel 12 x", "drwxr-xr-x. 2 root wheel 12 x"),
        ("api: 10.0.0.5, build 192.168.1.44", "api: address-1, build address-2"),
        ("version 192.168.1.44 v: 172.16.3.4 rev 169.254.1.2", "version address-1 v: address-2 rev address-3"),
        ("enx001a2b3c4d5e 00:1a:2b:3c:4d:5e 001a.2b3c.4d5e", "enxmac-1 mac-1 mac-1"),
        ("hwaddr 525400abcdef, 52:54:00:AB:CD:EF, 525400ABCDEF", "hwaddr mac-1, mac-1, mac-1"),
        ('LABEL="payroll" TYPE="ext4" PARTLABEL=acme', 'LABEL="device-1" TYPE="ext4" PARTLABEL=device-2'),
        ("Filesystem volume name:   payroll\nLabel: 'acme'", "Filesystem volume name:   device-1\nLabel: 'device-2'"),
        ("  VG Name               payroll", "  VG Name               device-1"),
        ("LU WWN Device Id: 5 000c50 0a1b2c3d4", "LU WWN Device Id: wwn-1"),
        ("scsi-35000c500a1b2c3d4-part1", "wwn-1-part1"),
        ("ata-WDC_WD40EFRX-68N_WD-WCC4N1234567 ->", "device-1 ->"),
        ("SN: WD-WCC4N1234567", "SN: serial-1"),
        ("sn        : S4EVNX0M123456", "sn        : serial-1"),
        ("5.4.3.2.1.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa", "address-1"),
        ("5.0.0.10.in-addr.arpa.", "address-1."),
        ("USER=al LOGNAME=al SUDO_USER='bo'", "USER=user-1 LOGNAME=user-1 SUDO_USER='user-2'"),
        (
            "uid=1000(al) gid=1001(acmedevs) groups=1001(acmedevs),27(sudo),1002(payroll)",
            "uid=1000(user-1) gid=1001(user-2) groups=1001(user-2),27(sudo),1002(user-3)",
        ),
        ("Nov 20 10:00:00 nova9 kernel: oops", "Nov 20 10:00:00 host-1 kernel: oops"),
        ("2026-11-20T10:00:00+01:00 nova9 sshd[12]: x", "2026-11-20T10:00:00+01:00 host-1 sshd[12]: x"),
        ("Linux nova9 6.1.0-13 #1 SMP", "Linux host-1 6.1.0-13 #1 SMP"),
        ("Linux 6.1.0-13-amd64 (nova9) \t11/20/2026", "Linux 6.1.0-13-amd64 (host-1) \t11/20/2026"),
        (f"{HOME}/Ålice/x", f"{HOME}/user-1/x"),
        (f"{HOME}/\\u00c5lice/x", f"{HOME}/user-1/x"),
    ],
)
def test_what_nobody_listed_is_found_by_its_form(text: str, expected: str) -> None:
    assert Pseudonyms([]).text(text) == expected


@every_row(
    "text",
    [
        "fio-3.33.1.2", "version 1.2.3.4", "Version: 1.2.3.4", "v1.2.3.4", "ver 10.2.3.4", "1.2.3.4-rc1", "1.2.3.4.5",
        "firmware 4.1.2.3", "01.02.03.04", "256.1.1.1", "1.2.3", "127.0.0.1", "127.0.1.1:8888", "0.0.0.0",
        "255.255.255.0", "::1", "::", "10:20:30", "18:58:05.123", "2026-11-20T10:19:02+00:00", "1:2:3:4:5:6:7:8",
        "std::vector<a::b>", "0000:00:1f.2", "254:0 259:1", "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff",
        "2026-11-20-10-19-02", "20-11-26-10-19-02", "6d6f756e-746c-6162-9416-09d6b3a552cf",
        "/dev/disk/by-id/virtio-mountlab-scratch", "/dev/disk/by-path/pci-0000:00:1f.2-ata-1", "serial: none",
        "serial: true", "403 MB, 12.6 GB/s, 0.0318487 s", "user@1000.service", "getty@tty1.service", "/etc/rc.local",
        "/usr/local/bin", "https://example.org/article", "a.b.c.d", "write_bandwidth",
        "da1ca844dc4bc0e620bcb857f5639",
        "87dcc92815079577c42b1475107d0392e43b13a79cde4ffc262e8edb4d47cd77  /usr/bin/fs_mark", "0x1f",
        "M 10.2 30.4 L 1 2", "/dev/mapper/control", "/dev/mapper/mountlab-flakey", "/dev/mapper/device-1",
        "firmware 10.1.2.3", "rev 10.2.3.4", "build 4.1.2.3", "enxious", "enx12", "1234.5678.9012", "dead.beef.cafe",
        "nvme-core_2 nvme-cli usb-storage ata-1 scsi-mq_x", "virtio-mountlab-scratch_1", "SN: none", "sn: 12",
        "serial_sn", "arpa", "USER=$USER", "USER=", "uid=0(root) gid=0(root) groups=0(root),27(sudo)", "x=3(abc)",
        "f(x)=2(y),3(z)", "Nov 20 10:00:00 INFO main: x", "Fri Nov 20 10:00:00 UTC 2026", "Nov 20 10:00:00 kernel: x",
        "Linux version 6.1.0 (gcc 12)", "Rocky Linux release 9.3", "Debian GNU/Linux 12.1", "Linux 6.1 (none)",
        "-rw-r--r-- 1 1000 1000 12 x", "==> root <==\n755 0 0 root root\n", f"{HOME}/root/x", "nr_free_pages 1795592",
        "7f3c5a000000-7f3c5a021000 r-xp 55f0aa112233",
        "commit 1a2b3c4d5e6f, git: 0a1b2c3d4e5f, 0x1a2b3c4d5e6f, v1-g0a1b2c3d4e5f", "123456789012 1234e6789012.5",
        "Filesystem volume name:   <none>\nLABEL=none Label: none",
        "   7       0 loop0 186312 30684 40136850 35929 173138 11766 166105200",
    ],
)  # fmt: skip
def test_what_only_looks_like_an_address_is_left(text: str) -> None:
    assert NOBODY.text(text) == text
    assert NOBODY.left(text) == []


LVM = "33 1 254:0 / / rw - ext4 /dev/mapper/nova--bench--vg-root rw\n34 33 0:9 / /x rw - zfs acmepool/payroll rw\n"


def test_names_of_volumes_and_pools_are_replaced_wherever_they_stand() -> None:
    root = {"mount_root_fstype": "zfs", "mount_root_source": "otherpool/secret"}
    names = Pseudonyms(run_identities(RunInfo(run_id="", box={"host": "nova-bench"}, facts=known(**root)), [LVM]))
    assert names.text("/dev/mapper/nova--bench--vg-root nova--bench--vg-root") == "/dev/mapper/device-5 device-5"
    assert names.text("/dev/nova-bench-vg/root") == "/dev/place-2/root"
    assert names.text("/dev/mapper/nova--bench--vg-swap") == "/dev/mapper/device-6"
    assert names.text("acmepool/payroll acmepool otherpool/secret") == "device-3 device-4 device-1"
    assert not names.left(names.text(LVM))


def test_the_owner_of_the_mount_root_is_known_from_then_on() -> None:
    names = Pseudonyms(
        run_identities(RunInfo(run_id=""), ["==> root <==\n755 1000 1001 trent acmedevs\n==> device <==\n"])
    )
    assert names.text("by trent of acmedevs, trends") == "by user-1 of user-2, trends"


def test_mounts_of_the_run_itself_name_no_directory_of_the_user() -> None:
    mount = "33 1 0:9 / /srv/acme/mountlab/0a1b/payday rw - tmpfs tmpfs rw\n"
    assert run_identities(OF_RUN, [mount]) == run_identities(OF_RUN, [])


def test_directories_of_a_watched_program_are_places_and_those_of_every_machine_are_not() -> None:
    """Defect: directories in which it had files open, its own one and those of PATH stood in a bundle."""
    workload = {
        "tool": "watched",
        "argv": "/srv/payroll/run.sh --out=/srv/clients/x /usr/share/dict/words",
        "environment": {"PATH": "/usr/bin:/usr/local/acme/bin", "LANG": "C.UTF-8"},
    }
    info = RunInfo(run_id="", parameters={"workloads": {"w": workload}})
    opened = "==> looks <==\n3\n==> pipes <==\n0\n==> directories <==\n1 1 0 322 /data/wages 2026\n==> mountinfo <==\n"
    names = Pseudonyms(run_identities(info, [opened]))
    assert names.text(workload["argv"]) == "/srv/place-1/run.sh --out=/srv/place-2/place-3 /usr/share/dict/words"
    assert names.text(workload["environment"]["PATH"]) == "/usr/bin:/usr/local/place-4/bin"
    assert "1 1 0 322 /data/place-5" in names.text(opened)
    other = RunInfo(run_id="", parameters={"workloads": {"w": {**workload, "tool": "command"}}})
    assert run_identities(other, []) == []


def test_a_path_in_a_url_is_replaced_as_one() -> None:
    names = Pseudonyms([Identity("place", "/srv/acme")])
    assert names.text("?at=%2Fsrv%2Facme%2Fx %2fsrv%2facme") == "?at=%2Fsrv%2Fplace-1%2Fx %2fsrv%2fplace-1"


# --- always the same --------------------------------------------------------------------------------------------------


def test_one_value_has_one_placeholder_in_every_file_and_two_values_have_two() -> None:
    names = Pseudonyms([])
    assert names.text("10.0.0.1 10.0.0.2 10.0.0.1") == "address-1 address-2 address-1"
    assert names.text("10.0.0.2") == "address-2"
    assert names.summary() == [{"kind": "network addresses", "different": 2, "times": 4}]
    listed = Pseudonyms([Identity("host", "nova7")])
    assert listed.text("nova7 on nova7") == "host-1 on host-1"
    assert listed.summary() == [{"kind": "host names", "different": 1, "times": 2}]


@pytest.mark.slow
@given(st.text(alphabet="0123456789abcdef:.-/@ mnovay7\\\n", max_size=60))
def test_what_was_replaced_once_holds_nothing_more_to_replace(text: str) -> None:
    names = Pseudonyms([Identity("host", "nova7"), Identity("user", "many")])
    once = names.text(text)
    assert names.text(once) == once
    assert not names.left(once)


def test_bytes_that_are_no_text_stay_as_they_are() -> None:
    data = b"\xff\xfe\x00nova7\x80\r\n"
    assert Pseudonyms([Identity("host", "nova7")]).data(data) == b"\xff\xfe\x00host-1\x80\r\n"


def test_what_is_left_is_told_by_kind_and_never_by_value() -> None:
    assert {identity.kind for identity in RUN.left("alice on nova7 at 10.1.1.1")} == {"user", "host", "address"}
    assert "alice" not in json.dumps(RUN.summary())


def test_a_table_is_replaced_by_its_columns() -> None:
    assert RUN.rows("run_id,box,mean\n20261120T101902-sweep-payroll,payroll,1.5\n") == (
        "run_id,box,mean\n20261120T101902-sweep-box-1,box-1,1.5\n"
    )


def test_a_run_that_was_made_from_a_published_sweep_keeps_its_placeholders_and_none_is_given_twice() -> None:
    names = Pseudonyms([Identity("box", "nova9"), Identity("box", "box-1"), Identity("host", "host-2")])
    assert names.text("box-1 nova9 host-2") == "box-1 box-2 host-2"
    assert not names.left(names.text("box-1 nova9"))


def test_clients_and_the_addresses_between_them_are_known_too() -> None:
    client = {"hostname": "orion3.acme.example", "user": "bob", "mount_root": "/srv/acme/bench"}
    facts = {**INFO["facts"], "clients": {"ledger-a": client}, "peers": {"nfs": ["10.20.30.77"]}}
    parameters = {"filesystems": {"nfs": {"type": "nfs", "server": "10.20.30.70"}}}
    names = Pseudonyms(run_identities(RunInfo(run_id="", facts=known(**facts), parameters=parameters), []))
    told = names.text("client ledger-a of uid=1000(bob) on orion3 (10.20.30.77) mounts 10.20.30.70:/srv/acme/bench/x")
    for secret in ("ledger-a", "bob", "orion3", "10.20.30.7", "acme"):
        assert secret not in told

"""A run with the names of machines and people in every place where one could stand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from mountlab.core.box_facts.kernel import parse_command_line
from mountlab.publish.seal_again import seal_again
from results.test_store import written

RUN_ID, BOX = "20261120T101902-sweep-ledgerbox9", "ledgerbox9"
SECRETS = (
    "nova7", "nova-bench", "acme", "alice", "S4EVNX0M123456", "0025385b71b0a4b3", "10.20.30.4", "fd12:3456::7",
    "52:54:00:ab:cd:ef", "1f0c6c86-50b1-4d5b", "8d890d65-b030-404a", "ledger", "invoices", "vault", "filer9", "eve@",
    "trent", "5000c500a1b2c3d4", "AAAAC3NzaC1lZDI1", "José",
)  # fmt: skip
KEPT = ("6.1.0.9-amd64", "fio 10.1.2.3", "127.0.0.1", "10:20:30", "6d6f756e-746c-6162-9416-09d6b3a552cf")
"""What looks like a name or an address, is none, and stands in the run too."""
COMMAND_LINE = (
    "root=UUID=1f0c6c86-50b1-4d5b-9b43-0a4c5f3a7d10 ip=10.20.30.40:::::eth0 hostname=nova7 user=alice mitigations=off "
    "nfsroot=vault.acme.example:/exports/invoices password=trent isolcpus=2-7 -- eve@filer9"
)
NOTES = """\
alice@nova7.acme.example:/home/alice$ uname -a
Linux NOVA7 6.1.0.9-amd64 #1 SMP x86_64
inet 10.20.30.40/24 inet6 fd12:3456::7/64 ether 52:54:00:ab:cd:ef lo 127.0.0.1 at 10:20:30
/dev/disk/by-id/wwn-0x5000c500a1b2c3d4 Serial Number: S4EVNX0M123456 UUID="1f0c6c86-50b1-4d5b-9b43-0a4c5f3a7d10"
EXT4-fs (loop0): mounted filesystem 6d6f756e-746c-6162-9416-09d6b3a552cf r/w
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExampleExampleExample trent@vault by eve@filer9 in HOME/José/bench
""".replace("HOME", "/home")
MOUNTS = """\
==> mountinfo <==
90 1 0:70 / /mnt/ledger rw - nfs4 vault.acme.example:/exports/invoices rw,addr=10.20.30.41
91 1 0:71 / /mnt/Acme\\040Ltd rw - cifs //filer9/books rw,username=eve,domain=ACMECORP,addr=10.20.30.42
"""


def planted_run(results: Path) -> Path:
    """A finished run of recorded output, with a failed and an excluded trial."""
    path = written(results, failed="t0004").rename(results / RUN_ID)
    _change(path / "run.json", _info)
    journal = [json.loads(line) for line in (path / "trials.jsonl").read_text().splitlines()]
    for trial in journal:
        trial["reason"] = trial["reason"] and f"dd failed\nalice on nova7 said:\n{NOTES}"
    (path / "trials.jsonl").write_text("".join(f"{json.dumps(trial)}\n" for trial in journal))
    (path / "exclude.yml").write_text("exclude:\n  t0006: alice rebooted nova7 (10.20.30.40)\n")
    for evidence in path.glob("raw/*/evidence.txt"):
        text = evidence.read_text().replace("==> mountinfo <==\n", MOUNTS).replace("mountlab-root", "mountlab-alice")
        evidence.write_text(text)
        evidence.with_name("mount.txt").write_text(f"==> elapsed_ns <==\n100\n==> kernel <==\n{NOTES}")
    for name in ("nova7-notes.txt", "prepare.log", "warm.log"):
        (path / "raw" / "t0002" / name).write_text(NOTES)
    (path / "raw" / "t0002" / "argv").write_text(json.dumps(["dd", "of=/srv/acme/mountlab/x", "é\nalice"]))
    seal_again(path)
    return path


def _change(path: Path, change: Callable[[str], str]) -> None:
    path.write_text(change(path.read_text()))


def _info(text: str) -> str:
    info = json.loads(text)
    info |= {"run_id": RUN_ID}
    info["box"] |= {
        "name": BOX,
        "host": "nova-bench",
        "user": "alice",
        "embedded": None,
        "mount_root": "/srv/acme/mountlab",
        "scratch": [{"name": "data", "device": "/dev/disk/by-id/nvme-ACME_S4EVNX0M123456"}],
    }
    info["facts"] |= {
        "hostname": "nova7.acme.example",
        "user": "alice",
        "mount_root": "/srv/acme/mountlab",
        "output_root": "/dev/shm/mountlab-alice",
        "boot_id": "8d890d65-b030-404a-b0ad-3b370d7641fa",
        "kernel": "6.1.0.9-amd64",
        "mount_root_source": "vault.acme.example:/exports/invoices",
        "programs": {
            "dd": {"path": "/home/alice/bin/dd", "version": "dd"},
            "fio": {"path": "/usr/bin/fio", "version": "fio 10.1.2.3"},
        },
        "block_devices": [
            {
                "name": "sda",
                "path": "/dev/sda",
                "type": "disk",
                "parent": None,
                "size_bytes": 10**12,
                "model": "X",
                "rotational": False,
                "read_only": False,
                "physical_sector_bytes": 512,
                "logical_sector_bytes": 512,
                "scheduler": "none",
                "transport": "sata",
                "serial": "S4EVNX0M123456",
                "mountpoints": ["/", "/mnt/ledger"],
            }
        ],
        "device_ids": {"data": "boot=0a1b2c3d,8:0,sectors=100,wwid=eui.0025385b71b0a4b3,serial=S4EVNX0M123456"},
        "kernel_command_line": parse_command_line(COMMAND_LINE),
        "firmware": {"maker": "Dell Inc.", "version": "1.10.2.1"},
        "devices": {"ext4": "/dev/disk/by-id/nvme-ACME_S4EVNX0M123456: ext4 of José; will be written over"},
    }
    info["parameters"] |= {"box": BOX, "question": "What does alice's nova7 (10.20.30.40) read, José asks?"}
    return json.dumps(info, indent=1)

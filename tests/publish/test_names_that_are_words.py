"""Names that are words: of letters only, or even such that every report has. A bundle holds none of them as a name."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from html import unescape
from pathlib import Path
from string import Template
from urllib.parse import unquote

import pandas as pd
import pytest
from mountlab.core import disk
from mountlab.publish import reproduce
from mountlab.publish.publish import Wishes, publish
from mountlab.publish.seal_again import seal_again
from mountlab.report import execute
from results.test_store import written

pytestmark = pytest.mark.slow

OUTPUT = Template("""\
$user@$host:/home/$user$$ uname -a
Linux $host 6.1.0-13-amd64 #1 SMP x86_64
Nov 20 10:00:00 $host kernel: EXT4-fs (dm-0): mounted
2026-11-20T10:00:00.123+01:00 $host sshd[12]: session opened for user $user by (uid=0)
uid=1000($user) gid=1000($user) USER=$user HOSTNAME=$host BOX=$box --box $box user=$user,addr=$host
-rw-r--r-- 1 $user $user 12 x
$host:/exports on /mnt type nfs4 (rw)
NAME MODEL    SERIAL   LABEL
sda  Cruncher $serial   $volume

{"serial": "$serial", "label": "$volume", "hostname": "$host", "box": "$box"} ID_SERIAL_SHORT=$serial
Serial Number:    $serial
/dev/mapper/$volume-root /dev/$volume/root LABEL="$volume" /dev/disk/by-label/$volume /dev/disk/by-id/ata-WD40_$serial
Filesystem volume name:   $volume
/var/tmp/mountlab-$user/$run_id/mnt MOUNTLAB_RUN=$run_id file%3A%2F%2F%2Fhome%2F$user%2Fx
""")


@dataclass(frozen=True)
class Names:
    box: str
    user: str
    host: str
    serial: str
    volume: str
    end: str = "-3f9a"

    @property
    def run_id(self) -> str:
        return f"20261120T101902-reads-{self.box}{self.end}"


LETTERS = Names(box="mybox", user="carol", host="falcon", serial="cheese", volume="ledger")
OLD = Names(box="lab-rack", user="Carol", host="FALCON", serial="Cheese", volume="Ledger", end="-2")
WORDS = Names(box="data", user="test", host="server", serial="backup", volume="archive")
ENGLISH = Names(box="fast", user="will", host="large", serial="figure", volume="storage", end="")


def named_run(place: Path, names: Names) -> Path:
    """A finished run on such a box, whose mounts and a trial of which printed all of that."""
    path = written(place).rename(place / names.run_id)
    info = json.loads((path / "run.json").read_text())
    old, info["run_id"] = info["run_id"], names.run_id
    info["box"] |= {"name": names.box, "host": names.host, "user": names.user, "embedded": None}
    info["facts"] |= {"hostname": names.host, "user": names.user}
    info["facts"]["block_devices"] = [
        {"name": "sda", "path": "/dev/sda", "type": "disk", "serial": names.serial, "mountpoints": ["/"]}
    ]
    info["parameters"]["box"] = names.box
    (path / "run.json").write_text(json.dumps(info))
    for evidence in path.glob("raw/*/evidence.txt"):
        evidence.write_text(evidence.read_text().replace(old, names.run_id))
        said = OUTPUT.substitute(asdict(names), run_id=names.run_id)
        evidence.with_name("mount.txt").write_text(f"==> elapsed_ns <==\n100\n==> kernel <==\n{said}")
    (path / "raw" / "t0002" / "prepare.log").write_text(OUTPUT.substitute(asdict(names), run_id=names.run_id))
    (path / "raw" / "t0002" / "argv").write_text(json.dumps(["dd", f"of=/home/{names.user}/{names.run_id}/x"]))
    seal_again(path)
    return path


def readings(bundle: Path) -> Iterator[tuple[str, str]]:
    """Every file of a bundle as it is and as it reads when it is decoded; but for what is the same in all bundles."""
    for path in sorted(bundle.rglob("*")):
        name = path.relative_to(bundle).as_posix()
        if not path.is_file() or name.startswith(("environment/", "notebooks/")):
            continue
        text = pd.read_parquet(path).to_csv() if path.suffix == ".parquet" else path.read_text(errors="replace")
        for read in (text, unquote(text), unescape(text), text.replace("\\n", "\n").replace("\\/", "/")):
            yield name, f"{name}\n{read}"
        for word in re.findall(r"[A-Za-z0-9+/]{8,}", text):
            whole = word[: len(word) // 4 * 4]
            yield name, base64.b64decode(whole).decode(errors="replace")


def stated(names: Names) -> list[str]:
    """The names, each as it is."""
    return [names.box, names.user, names.host, names.serial, names.volume]


def test_names_of_letters_stand_nowhere_in_a_bundle(tmp_path: Path) -> None:
    folder, _ = publish([named_run(tmp_path / "r", LETTERS)], Wishes(to=tmp_path / "b"))
    words = re.compile(rf"(?<![a-z0-9])(?:{'|'.join(stated(LETTERS))})(?![a-z0-9])", re.IGNORECASE)
    assert {(name, found[0]) for name, text in readings(folder) for found in words.finditer(text)} == set()
    assert [path.name for path in (folder / "runs").iterdir()] == ["20261120T101902-reads-box-1-3f9a"]
    assert reproduce.check(folder).same


@pytest.mark.parametrize("names", [OLD, WORDS, ENGLISH], ids=lambda names: names.box)
def test_a_word_stands_in_a_bundle_as_a_word_and_never_as_a_name(
    names: Names, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execute, "write_report", lambda run: disk.replace_file(run / "report.html", b"<p>report"))
    folder, _ = publish([named_run(tmp_path / "r", names)], Wishes(to=tmp_path / "b"))
    (run,) = (folder / "runs").iterdir()
    assert run.name == f"20261120T101902-reads-box-1{names.end}"
    anyone = re.compile(rf"\b(?:{'|'.join(stated(names))})\b")
    printed = (run / "raw" / "t0002" / "prepare.log").read_text().splitlines()
    assert [line for line in printed if anyone.search(line)] == []
    assert len(printed) == len(OUTPUT.template.splitlines())
    assert [name for name, text in readings(folder) if names.run_id in text] == []
    info = json.loads((run / "run.json").read_text())
    assert (info["box"]["name"], info["parameters"]["box"], info["facts"]["hostname"]) == ("box-1", "box-1", "host-1")
    assert (info["facts"]["user"], info["facts"]["block_devices"][0]["serial"]) == ("user-1", "serial-1")
    assert set(pd.read_csv(run / "estimates.csv")["box"]) == {"box-1"}

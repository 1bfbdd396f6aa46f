"""What a run knows of its box, and the control machine of itself: values that need not be guessed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import ParseError
from mountlab.core.mountinfo import MountLine, mount_lines
from mountlab.core.run_info import RunInfo
from mountlab.core.trial_files import TrialFiles
from mountlab.filesystems.open_files import read_open_files
from mountlab.publish.identities.names import OWN_BOXES, PUBLIC_HOSTS, PUBLIC_USERS
from mountlab.publish.identities.patterns import PATTERNS, is_address
from mountlab.publish.sieve import Sieve


@dataclass(frozen=True)
class Identity:
    """One value that tells a machine or a person. `kind` begins its placeholder: 'host' gives 'host-1'."""

    kind: str
    value: str
    same_as: str = ""
    """Another value of this kind with which it shares the placeholder: a short name and the full one."""


def run_identities(info: RunInfo, texts: Iterable[str]) -> list[Identity]:
    """Return everything that run.json knows, and what stands in `texts` (the raw output) as a name and can be trusted
    to be one. In the order in which placeholders are to be numbered, each once."""
    identities = [*_of_box(info.box), *_of_facts(info.facts)]
    for parameters in (info.parameters, *(extension.parameters for extension in info.extensions)):
        identities += _of_parameters(parameters)
    root = info.facts.storage.mount_root or "/var/tmp/mountlab"  # noqa: S108  # a name to be left alone, no file
    sieve = Sieve(pattern.for_sieve for pattern in _TELLING)
    for text, may_tell in sieve.sift(texts, lambda text: text.encode(errors="surrogateescape")):
        identities += (
            identity
            for identity in (*_of_mounts(text), *_of_open_files(text))
            if not (identity.kind == "place" and identity.value.startswith(root))
        )
        identities += _of_forms(text) if may_tell else ()
    return list(dict.fromkeys(identities))


def control_identities(
    *, host: str, user: str, home: str, machine_id: str, paths: Iterable[str], ssh: Mapping[str, Iterable[str]]
) -> list[Identity]:
    """Return the identities of the machine that publishes. `ssh`: the boxes in its configuration, 'host' and 'user' to
    names."""
    identities = [*hosts(host), *users(user)]
    identities += [Identity("machine", machine_id)] if machine_id else []
    identities += [identity for name in ssh.get("host", ()) for identity in hosts(name)]
    identities += [identity for name in ssh.get("user", ()) for identity in users(name)]
    identities += [Identity("place", path) for path in (home, *paths) if path.count("/") > 1]
    return list(dict.fromkeys(identities))


def hosts(name: str | None) -> Iterator[Identity]:
    """Yield a machine under its full and its short name, and its domain; an address as one."""
    if not name or name.lower() in PUBLIC_HOSTS:
        return
    if is_address(name):
        yield Identity("address", name)
        return
    short, _, domain = name.partition(".")
    yield Identity("host", name)
    if domain:
        yield Identity("host", short, same_as=name)
    if "." in domain:
        yield Identity("domain", domain)


def users(name: str | None) -> Iterator[Identity]:
    """Yield a user, where the name tells anything."""
    if name and name not in PUBLIC_USERS:
        yield Identity("user", name)


def _of_box(box: Mapping[str, Any]) -> Iterator[Identity]:
    yield from hosts(box.get("host"))
    if box.get("name") and box["name"] not in OWN_BOXES:
        yield Identity("box", box["name"])
    yield from users(box.get("user"))
    for scratch in box.get("scratch") or ():
        name = re.fullmatch(r"/dev/disk/by-(?!path/)[a-z]+/(.+)", scratch.get("device") or "")
        if name and not re.match(r"virtio-mountlab-|pmem-6d6f756e-746c-6162-", name[1]):
            yield Identity("device", name[1])
    yield from _places(box.get("mount_root"), box.get("output_root"))


def _of_facts(facts: BoxFacts) -> Iterator[Identity]:
    yield from hosts(facts.machine.hostname)
    yield from users(facts.rights.user)
    for device in facts.storage.block_devices or ():
        yield from _serials(device.serial)
        yield from _places(*device.mountpoints or ())
    for text in facts.surveyed.device_ids.values():
        yield from _serials(*re.findall(r"\bserial=([^,\s]+)", text))
        yield from (Identity("wwn", value) for value in re.findall(r"\bwwid=([^,\s]+)", text))
    yield from _pool(facts.storage.mount_root_fstype, facts.storage.mount_root_source)
    yield from _places(facts.storage.mount_root, facts.storage.output_root, *facts.surveyed.image_room)
    for addresses in facts.surveyed.peers.values():
        yield from (identity for address in addresses for identity in hosts(address))
    for name, of_client in facts.clients.items():
        if name not in OWN_BOXES:
            yield Identity("box", name)
        yield from _of_facts(of_client)


def _of_parameters(parameters: Mapping[str, Any]) -> Iterator[Identity]:
    if parameters.get("box") and parameters["box"] not in OWN_BOXES:
        yield Identity("box", str(parameters["box"]))
    for entry in (parameters.get("filesystems") or {}).values():
        if isinstance(entry, Mapping):
            yield from _places(*(entry.get(key) for key in ("path", "image_dir") if isinstance(entry.get(key), str)))
            for value in (entry.get("overwrite"), entry.get("journal_overwrite")):
                if isinstance(value, str) and value.count("-") != 4:  # a UUID is found by its form
                    yield Identity("serial", value)
            yield from hosts(str(entry["server"]) if entry.get("server") else None)

    for entry in (parameters.get("workloads") or {}).values():
        if isinstance(entry, Mapping) and entry.get("tool") == "watched":
            yield from _of_watched(entry)


def _of_watched(entry: Mapping[str, Any]) -> Iterator[Identity]:
    """Yield the directories in the command line of a watched program, and in the variables that it gets: PATH is
    everybody's own. The name of the program itself stays."""
    with suppress(ValueError):
        program, *arguments = shlex.split(str(entry.get("argv") or ""))
        yield from _own_places(program.rpartition("/")[0], *(word.rpartition("=")[2] for word in arguments))
    variables = entry.get("environment")
    for value in variables.values() if isinstance(variables, Mapping) else ():
        yield from _own_places(*str(value).split(":"))


def _of_open_files(text: str) -> Iterator[Identity]:
    """Yield the directories in which a watched program had files open."""
    if "==> directories <==" in text:
        with suppress(ValueError):
            seen = read_open_files({TrialFiles.OPEN_FILES: text})
            yield from _own_places(*(directory.path for directory in seen.directories) if seen else ())


def _own_places(*paths: str) -> Iterator[Identity]:
    """Yield directories, but for those that every machine has."""
    return _places(*(path for path in paths if not _SYSTEM.match(path)))


_SYSTEM = re.compile(r"/(?:usr(?!/local/)|bin|sbin|lib\w*)(?:/|\Z)")


def _serials(*values: str | None) -> Iterator[Identity]:
    """Yield serial numbers; those that Mountlab gives to the disks of its own virtual box are everybody's."""
    yield from (Identity("serial", value) for value in values if value and not value.startswith("mountlab"))


def _places(*paths: str | None) -> Iterator[Identity]:
    """Yield directories, but for those of the kernel."""
    yield from (Identity("place", path) for path in paths if path and path.startswith("/") and not _KERNEL.match(path))


_KERNEL = re.compile(r"/(?:proc|sys|dev(?!/shm/))(?:/|\Z)")


_TELLING = [pattern for pattern in PATTERNS if pattern.tells]


def _of_forms(text: str) -> Iterator[Identity]:
    """Yield what is marked as a name or a serial number in one place, and may stand without the mark in another."""
    for pattern in _TELLING:
        for match in pattern.find(text):
            names = _NAMES_IN.get(pattern.kind)
            yield from names(match["value"]) if names else [Identity(pattern.kind, match["value"])]


def _mapped(name: str) -> Iterator[Identity]:
    """Yield a name below /dev/mapper; where it is one of LVM's, which doubles hyphens, also the path of the volume."""
    yield Identity("device", name)
    group, single, volume = re.sub("-(?!-)(?<!--)", "/", name).partition("/")
    if single and "/" not in volume:
        yield Identity("place", f"/dev/{group.replace('--', '-')}/{volume.replace('--', '-')}")


def _user(name: str) -> Iterator[Identity]:
    yield from users(re.sub(r"\\u([0-9a-fA-F]{4})", lambda code: chr(int(code[1], 16)), name))


_NAMES_IN: Mapping[str, Callable[[str], Iterable[Identity]]] = {"host": hosts, "device": _mapped, "user": _user}
"""Kind to what a value of it, found by its form, tells."""


# --- mounts -----------------------------------------------------------------------------------------------------------

_REMOTE = re.compile(r"//(?P<cifs>[^/\s]+)/|(?:\[(?P<v6>[^\]]+)\]|(?P<nfs>[^\s:/@]+)):/")
_NETWORK = ("nfs", "cifs", "smb", "ceph", "9p", "fuse.sshfs", "glusterfs", "lustre", "afs", "beegfs")
_NAMED = re.compile(r"(?:^|,)(?P<key>username|user|domain|unc|addr|clientaddr|mountaddr)=(?P<value>[^,\s]+)")


def _of_mounts(text: str) -> Iterator[Identity]:
    """Yield where each line of /proc/self/mountinfo in a text is mounted, and who serves it."""
    for line in text.splitlines():
        if " - " in line and line[:1].isdigit():
            with suppress(ParseError):
                (mount,) = mount_lines(line)
                yield from _of_mount(mount)


def _of_mount(line: MountLine) -> Iterator[Identity]:
    yield from _places(line.mountpoint)
    yield from _pool(line.fstype, line.source)
    if not line.fstype.startswith(_NETWORK):
        return
    remote = _REMOTE.match(line.source.rpartition("@")[2])
    if remote:
        yield from hosts(remote["cifs"] or remote["v6"] or remote["nfs"])
        yield from _places("/" + line.source.partition(":/")[2] if remote["nfs"] else None)
    for option in _NAMED.finditer(line.options):
        of_kind = {"username": users, "user": users, "addr": hosts, "clientaddr": hosts, "mountaddr": hosts}
        yield from of_kind.get(option["key"], _domains)(option["value"])


def _pool(fstype: object, source: object) -> Iterator[Identity]:
    """Yield a dataset of ZFS and its pool, which have no device's name."""
    if fstype == "zfs" and isinstance(source, str) and not source.startswith("/"):
        names = dict.fromkeys((source, source.partition("/")[0]))
        yield from (Identity("device", name) for name in names if name not in PUBLIC_HOSTS)


def _domains(name: str | None) -> Iterator[Identity]:
    if name:
        yield Identity("domain", name)

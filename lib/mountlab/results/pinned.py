"""The files with which a workspace names its versions: of Mountlab itself, as it is installed, and of its libraries."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

WHEELS = "wheels"
"""Folder of a workspace for the archive from which Mountlab was installed."""
_ENTRY = re.compile(r"^(?=[A-Za-z0-9])", re.MULTILINE)
_BUILD = "build a wheel there (uv build --wheel), install it, remove mountlab.lock, and run `mountlab init .` again"


@dataclass(frozen=True, kw_only=True)
class Pin:
    """A line that pip takes for the Mountlab that is installed now."""

    line: str
    remarks: tuple[str, ...] = ()
    """What others who clone the workspace should know."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """What the line needs in the workspace."""

    def text(self) -> str:
        """Return the content of mountlab.lock."""
        return "".join(f"# {remark}\n" for remark in self.remarks) + f"{self.line}\n"


def pin(version: str, record: Mapping[str, Any] | None, *, archive: bytes | None, commit: str | None) -> Pin:
    """Return the pin of an installed Mountlab.

    `record`: its direct_url.json (PEP 610), None where it came from an index. `archive`: the content of the file that
    the record names, `commit`: that of the directory which it names, '+changes' behind it where files differ; None
    where there is none.
    """
    if record is None:
        return Pin(line=f"mountlab=={version}")
    url = str(record["url"])
    if "vcs_info" in record:
        vcs, below = record["vcs_info"], record.get("subdirectory")
        return Pin(
            line=_at_commit(f"{vcs['vcs']}+{url}", vcs["commit_id"]) + (f"#subdirectory={below}" if below else "")
        )
    if "dir_info" in record:
        return _pin_of_directory(url, commit, editable=bool(record["dir_info"].get("editable")))
    return _pin_of_archive(url, _sha256(record.get("archive_info") or {}), archive)


def _pin_of_directory(url: str, commit: str | None, *, editable: bool) -> Pin:
    remarks = [f"Mountlab was installed from a directory of this machine, which others do not have: {_BUILD}."]
    if editable:
        remarks.append("It is a development install, which changes with its directory: no line can fix its version.")
    if commit is None:
        remarks.append("The directory has no commit that could be named.")
        return Pin(line=f"mountlab @ {url}", remarks=tuple(remarks))
    named, _, changed = commit.partition("+")
    if changed:
        remarks.append("Its files differ from this commit.")
    return Pin(line=_at_commit(f"git+{url}", named), remarks=tuple(remarks))


def _at_commit(url: str, commit: str) -> str:
    """Pip before 24.1, which Python 3.11 and 3.12 bring, takes no name before a git address without a host."""
    return f"{url}@{commit}" if "+file:///" in url else f"mountlab @ {url}@{commit}"


def _pin_of_archive(url: str, installed: str, archive: bytes | None) -> Pin:
    """`installed`: the SHA-256 of what was installed, '' where it was not recorded."""
    now = hashlib.sha256(archive).hexdigest() if archive is not None else ""
    if archive is not None and installed in ("", now):
        path = f"{WHEELS}/{url.rpartition('/')[2]}"
        return Pin(line=f"./{path} --hash=sha256:{now}", files={path: archive})
    line = f"mountlab @ {url}" + (f" --hash=sha256:{installed}" if installed else "")
    if not url.startswith("file:"):
        return Pin(line=line)
    what = "is not there any more" if archive is None else "has changed since"
    again = "install Mountlab from a file that you keep, remove mountlab.lock, and run `mountlab init .` again"
    return Pin(line=line, remarks=(f"The file from which Mountlab was installed {what}: {again}.",))


def _sha256(archive_info: Mapping[str, Any]) -> str:
    """Return the recorded hash, '' without one. Old installers wrote `hash` alone."""
    old = str(archive_info.get("hash") or "").removeprefix("sha256=")
    return str((archive_info.get("hashes") or {}).get("sha256") or old)


def runtime_lock(lock: str, direct: Collection[str], version: str) -> str:
    """Return the entries of a lock that these packages need, with their hashes: what only tests need is left out."""
    entries = [(_name(entry), _needed_by(entry), entry) for entry in _ENTRY.split(lock)[1:]]
    kept = set(direct)
    while more := {name for name, needed_by, _ in entries if needed_by & kept} - kept:
        kept |= more
    head = f"# The libraries of Mountlab {version}, as it was tested with them. mountlab.lock names Mountlab itself.\n"
    return head + "".join(entry for name, _, entry in entries if name in kept)


def _name(entry: str) -> str:
    return re.split(r"[=\s]", entry, maxsplit=1)[0]


def _needed_by(entry: str) -> set[str]:
    """Return the packages that an entry names in its comment, 'via'."""
    return {words.split("[")[0] for words in re.findall(r"^ +#(?: via|  ) +(\S+)$", entry, re.MULTILINE)}


def runtime_environment(shipped: str, direct: Collection[str], name: str) -> str:
    """Return the list for conda without what only builds and tests Mountlab. `direct`: what Mountlab itself needs:
    pip brings what conda-forge lacks."""
    first, *sections = re.split(r"^(?=  # to )", shipped.partition("channels:\n")[2], flags=re.MULTILINE)
    rows = first + "".join(rows for rows in sections if not rows.startswith(("  # to build", "  # to test")))
    listed = re.findall(r"^      - (\w.*)$", shipped, re.MULTILINE)
    by_pip = [row for row in listed if re.split("[<>=]", row)[0] in direct]
    head = "# For conda, mamba and Binder; `make env` takes the tested versions of requirements.lock.\n"
    pip = "".join(f"      - {row}\n" for row in (*by_pip, "-r mountlab.lock"))
    return f"{head}name: {name}\nchannels:\n{rows}  - pip:\n{pip}"

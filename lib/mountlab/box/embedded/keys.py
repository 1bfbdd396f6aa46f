"""Keys of an embedded box: made for it, and for nothing else."""

from __future__ import annotations

from pathlib import Path

from mountlab.box.embedded import here
from mountlab.box.embedded.child import HOST
from mountlab.core.errors import BoxError
from mountlab.core.model import Box


def make_keys(box: Box, keygen: str, directory: Path) -> None:
    """A new host_key and client_key in `directory`, each with its .pub. Raises BoxError with what ssh-keygen said."""
    for name in ("host_key", "client_key"):
        argv = [keygen, "-q", "-t", "ed25519", "-N", "", "-C", f"mountlab {name}", "-f", str(directory / name)]
        made = here.run(argv)
        if made.returncode != 0:
            raise BoxError("ssh-keygen failed", where=f"box {box.name}", evidence=made.stderr or made.stdout)


def known_hosts(directory: Path, port: int, host_key: Path) -> Path:
    """Return a new list of known hosts in `directory`, with only the key of the box."""
    kind, key = host_key.read_text().split()[:2]
    path = directory / "known_hosts"
    path.write_text(f"[{HOST}]:{port} {kind} {key}\n")
    return path

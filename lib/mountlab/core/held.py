"""What a run holds on its box."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Lease:
    """What a run holds on its box, as the box must know it to give all of it back by itself."""

    run_id: str
    mount_root: str
    output_root: str
    owner: str
    """The owner as `mount_root`/lock names it: host, process and run."""

    @property
    def output_dir(self) -> str:
        """The run's own directory for output."""
        return f"{self.output_root}/{self.run_id}"

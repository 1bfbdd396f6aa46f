"""What a box file can choose for a virtual box."""

from __future__ import annotations

VM_DISKS = {f"disk{number}": f"/dev/disk/by-id/virtio-mountlab-disk{number}" for number in range(1, 9)}
"""Name and stable name of each disk that a virtual box can have beside those that every one has."""

VM_KERNELS = {"6.1": "bookworm", "6.12": "trixie", "7.2": "forky"}
"""Release of each kernel that a virtual box can have, and the Debian release whose package it is."""

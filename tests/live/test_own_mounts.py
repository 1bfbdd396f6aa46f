"""What tests change of the machine is seen by their session only, and goes away with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import own_mounts
import pytest
from waiting import wait_until

pytestmark = [pytest.mark.requires_root, pytest.mark.requires_program("useradd")]
SESSION = """
import sys, time
sys.path[:0] = sys.argv[1:]
import workers
from pathlib import Path
from ordinary import allow_sudo, ordinary_user
import own_mounts
if not own_mounts.is_separate():
    sys.exit(0)
with ordinary_user() as user:
    Path("/etc/sudoers.d").mkdir(exist_ok=True)
    allow_sudo(user)
    for place in ("/usr/local/lib", "/var/lib"):
        Path(place, user.name).write_text("installed")
    (library,) = [word.partition("=")[2] for word in user.python if word.startswith("PYTHONPATH=")]
    print(user.name, workers.PLACE, library.partition(":")[0], flush=True)
    time.sleep(600)
"""


def seen_here(name: str) -> list[str]:
    """What this process sees of a user."""
    files = [Path("/etc/sudoers.d", name), Path("/usr/local/lib", name), Path("/var/lib", name), Path("/home", name)]
    accounts = Path("/etc/passwd").read_text().splitlines()
    return [
        *(str(file) for file in files if file.exists()),
        *(line for line in accounts if line.startswith(f"{name}:")),
    ]


def test_a_session_that_is_killed_leaves_no_user_no_rule_and_no_file_of_the_machine(tmp_path: Path) -> None:
    if not own_mounts.is_separate():
        pytest.skip(own_mounts.NEEDED)
    support = Path(own_mounts.__file__).parent
    # Not one of ours: it makes a place and mounts of its own, as another pytest would.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MOUNTLAB_", "PYTEST_"))}
    session = subprocess.Popen(
        [sys.executable, "-c", SESSION, str(support), str(support.parent)],
        env={**environment, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert session.stdout is not None
        printed = session.stdout.readline()
        if not printed:
            pytest.skip("needs one more level of overlayfs than the kernel stacks")
        name, place, library = printed.split()
        inside = Path(f"/proc/{session.pid}/root")
        assert (inside / "etc/sudoers.d" / name).is_file()
        assert (inside / "usr/local/lib" / name).is_file()
        assert (inside / library[1:]).is_dir()
        assert seen_here(name) == []
    finally:
        session.send_signal(signal.SIGKILL)
        session.communicate()
    assert seen_here(name) == []
    assert not Path(library).parent.exists()
    wait_until("no mount of it", lambda: place not in Path("/proc/self/mountinfo").read_text())

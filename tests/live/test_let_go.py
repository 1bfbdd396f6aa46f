"""What the user unmounts while Mountlab measures is free at once: no namespace of ours keeps it busy."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from disks import Disks, command, ext4
from mountlab.box.containment import OFFERS
from mountlab.core.shell import script_argv
from waiting import wait_until

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("losetup")]

Hold = Callable[[Disks], object]
"""Starts something of ours that takes its time in a namespace."""


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Disks]:
    with ExitStack() as undo:
        yield Disks(tmp_path, undo)


def trial(words: str) -> Hold:
    """A trial on a box that offers these words."""

    def start(made: Disks) -> None:
        if subprocess.run([*words.split(), "true"], capture_output=True, check=False).returncode != 0:
            pytest.skip(f"{words} does not work here")
        assert made.process(*words.split(), "sh", "-c", "echo in; read _").stdout.readline() == "in\n"  # type: ignore[union-attr]

    return start


def server(made: Disks) -> None:
    """fio as a server of a run with several clients."""
    place = str(made.directory / "server")
    made.process(*script_argv("serve.sh", "serve", place, "60", "root"))
    wait_until("a server", Path(place).exists)
    subprocess.run(script_argv("serve.sh", "wait", place), check=True)


HOLDERS = {words: trial(words) for offers in OFFERS.values() for words in offers}


@pytest.mark.parametrize(
    "hold",
    [
        *(pytest.param(hold, id=words) for words, hold in HOLDERS.items()),
        pytest.param(server, id="server", marks=pytest.mark.requires_program("fio")),
    ],
)
def test_a_disk_is_free_as_soon_as_it_is_unmounted(hold: Hold, made: Disks) -> None:
    device = made.loop()
    ext4(device)
    place = made.mount(device)
    hold(made)
    with pytest.raises(OSError, match="busy"):
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL))
    command("umount", str(place))
    try:
        # A namespace of ours would hold it until this test ends, one of another worker's test for a moment.
        wait_until("a disk that is free", lambda: is_free(device))
    finally:
        command("mount", device, str(place))


def is_free(device: str) -> bool:
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL))
    except OSError:
        return False
    return True


SESSION = """mount --bind --make-shared "$0" "$0" && mkdir "$0/disk" && mount "$1" "$0/disk" &&
env -u MOUNTLAB_TESTS "$2" -c 'import workers; workers.remove()' && grep -q " $0/disk " /proc/self/mountinfo
"""


def test_a_session_of_these_tests_unmounts_nothing_of_others(made: Disks, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor below a shared mount on a machine whose / is not shared, such as a container."""
    place, device = made.directory / "others", made.loop()
    ext4(device)
    place.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1] / "support"))
    command("unshare", "-m", "--propagation", "private", "sh", "-c", SESSION, str(place), device, sys.executable)

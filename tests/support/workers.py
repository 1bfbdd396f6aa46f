"""A place of its own for each worker of this session: temporary files, and a box `local` with roots of its own.

To import this sets the environment, which the library reads when it is imported, as does each process that a test
starts. Two sessions on one machine, and the user's own runs, never meet.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import yaml
from own_mounts import separate

NAME = "MOUNTLAB_TESTS"
PARAMS = Path(__file__).parents[2] / "params"
MADE_HERE = NAME not in os.environ
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")
ROOTS = ("/var/tmp", "/dev/shm")
"""What lies below the mount root and the output root of `local`, as without a file of the user's."""

if MADE_HERE:
    # pytest keeps the temporary directories of its last three sessions there.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    os.environ[NAME] = tempfile.mkdtemp(prefix="mountlab-tests-")
PLACE = Path(os.environ[NAME])
"""Of the session; its name is in the path of all that the session makes, but for pytest's own temporary directories."""


def _put_params(place: Path) -> None:
    """The repository's sweeps and boxes, and `local` with other roots."""
    (place / "boxes").mkdir(parents=True, exist_ok=True)
    for path in [*PARAMS.glob("[!b]*"), PARAMS / "batches", *(PARAMS / "boxes").glob("[!l]*")]:
        link = place / path.relative_to(PARAMS)
        link.unlink(missing_ok=True)
        link.symlink_to(path)
    mount_root, output_root = (f"{root}/{PLACE.name}-{WORKER}" for root in ROOTS)
    box = {"embedded": "loopback", "mount_root": mount_root, "output_root": output_root}
    (place / "boxes" / "local.yml").write_text(yaml.safe_dump(box))


def remove() -> None:
    """Take away the place of the session, where this process has made it."""
    if MADE_HERE:
        shutil.rmtree(PLACE)


# Products of small matrices take ten times the processor time where each wakes threads that wait for it at full speed.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
PLACE.chmod(0o755)  # tests as another user read below it
if MADE_HERE:
    separate(PLACE)
_put_params(PLACE / WORKER / "params")
os.environ["MOUNTLAB_PARAMS"] = str(PLACE / WORKER / "params")
os.environ["TMPDIR"] = tempfile.tempdir = str(PLACE / WORKER)

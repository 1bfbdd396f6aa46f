"""A device that fails under a trial: the cell fails with the kernel's words and is set aside, the rest goes on."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from mountlab.core.errors import KERNEL
from mountlab.results import store
from mountlab.results.store import Run
from mountlab.runner import workflow
from ownbox import own_box
from sweeps import as_is

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("sshd")]

FIGURES = {"elapsed": {"pattern": r"copied, ([\d.e-]+) s", "unit": "s", "from": "stderr"}}
WRITE = "dd if=/dev/zero of={directory}/x bs=1M count=8 conv=fsync"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """An image that has no blocks yet lies in memory, of which one of the workloads leaves nothing: writes to the loop
    device fail."""
    place = tmp_path_factory.mktemp("trouble")
    memory = place / "memory"
    memory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128m", "mountlab-test", memory], check=True)
    breaks = f"sh -c 'cat /dev/zero >{memory}/filler; {WRITE}; status=$?; rm {memory}/filler; exit $status'"
    workloads: dict[str, Any] = {
        name: {"tool": "command", "argv": argv, "space": "16MiB", "metrics": FIGURES}
        for name, argv in (("breaks", breaks), ("writes", WRITE))
    }
    image = {"type": "ext4", "image": "48MiB", "image_dir": str(memory), "preallocate": False, "direct_io": False}
    resolved = as_is(
        filesystems={"ext4": image},
        workloads=workloads,
        design={"repeats": 3, "warmup": 0, "fresh_filesystem": "cell"},
    )
    try:
        with pytest.MonkeyPatch.context() as patch:
            own_box(place, patch)
            yield store.load_run(workflow.run(resolved, results=place / "results"))
    finally:
        subprocess.run(["umount", memory], check=True)


def test_the_trial_fails_with_the_words_of_the_kernel_and_its_cell_is_set_aside(run: Run) -> None:
    """Where anything else on this machine calls sync meanwhile, the journal fails too, and ext4 becomes read-only: then
    it is the file system that is unfit, and the trial is invalid."""
    first, *later = run.trials[run.trials["workload"] == "breaks"].to_dict("records")
    stopped = "cannot be written" in first["reason"]
    status = "invalid" if stopped else "failed"
    assert (first["status"], first["attempts"], first["set_aside"]) == (status, 1, True)
    said, _, kernel = first["reason"].partition(KERNEL)
    assert stopped or "Input/output error" in said or "No space left" in said
    assert "loop" in kernel
    assert [each["status"] for each in later] == ["skipped"] * 2
    assert all(each["reason"].startswith(f"set aside: {first['trial_id']} {status}: ") for each in later)


def test_the_other_cell_is_measured_to_the_end(run: Run) -> None:
    assert list(run.trials[run.trials["workload"] == "writes"]["status"]) == ["ok"] * 3
    (caveat,) = [each for each in run.caveats if each.code == "failed-trials"]
    assert caveat.subject == "ext4/breaks"
    assert "It was set aside: 2 of its trials were not run any more." in caveat.message

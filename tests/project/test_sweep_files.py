"""The sweep files that come with Mountlab: whole at every size; between them they use every family of file systems."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from facts import known
from mountlab.__main__ import main
from mountlab.core.box_facts import BoxFacts
from mountlab.core.model import Box, ScratchDevice
from mountlab.core.places import SHIPPED
from mountlab.filesystems import FAMILIES
from mountlab.results import paths
from mountlab.results.paths import load_published, load_sweep
from mountlab.sweep.planner import make_plan
from rows import every_row
from sweep.test_plan import FACTS

SWEEPS = sorted((paths.PARAMS / "sweeps").glob("*.yml"))
STUDIES = ("c-", "d1-", "d2-", "d3-", "d4-", "d5-", "d6-", "d7-", "d8-", "e-")
NAMES = ("scratch", "scratch2", "scratch3", "scratch4", "journal", "pmem", "nvm")
LAYERS: dict[str, Any] = {"mdadm": {}, "lvm": {}, "cryptsetup": {}, "dmsetup": {}}
DEVICES = {name: f"/dev/disk/by-id/{name}" for name in NAMES} | {"nvm": "memory:0x100000000"}
BOX = Box(name="b", host="b", scratch=tuple(ScratchDevice(name=k, device=v) for k, v in DEVICES.items()))
LARGE = 2**46
KERNEL_FEATURES = (
    "zram", "pmbd", "raid1", "raid10", "raid456", "dm-mod", "dm-raid", "dm-crypt", "dm-integrity", "dm-thin-pool",
    "dm-snapshot",
)  # fmt: skip


def facts(sweep: Any) -> BoxFacts:
    """Of a box that has everything, and room for all of it; its clients are like it."""
    own = known(
        FACTS,
        kernel_filesystems=None,
        mount_root_free_bytes=LARGE,
        memory_available_bytes=LARGE,
        programs={**FACTS.programs.installed, "git": {}, "sh": {}, **LAYERS},
        kernel_features=[*KERNEL_FEATURES],
        room=dict.fromkeys((fs.name for fs in sweep.filesystems), LARGE),
    )
    return replace(own, clients=dict.fromkeys(sweep.clients, own))


WITH_FILEBENCH = ("d4-external-journal", "d6-inode-readahead", "d7-atime")


@every_row("name", WITH_FILEBENCH)
@every_row("preset", [["filebench"], ["small", "filebench-small"]], ids=["full", "small"])
def test_the_study_s_own_tool_is_a_preset(name: str, preset: list[str]) -> None:
    sweep = load_sweep(paths.PARAMS / "sweeps" / f"{name}.yml", {"preset": preset}).sweep
    assert {workload.tool for workload in sweep.workloads} == {"filebench"}
    assert sweep.metrics == ("operation_rate",)
    plan = make_plan(sweep, replace(BOX, name=sweep.box), facts(sweep), run_id="r1", owner="me", seed=1)
    assert plan.trials[0].command.argv[0] == "sh"


def sizes() -> list[Any]:
    return [
        pytest.param(path, preset, id=f"{path.stem}-{preset or 'full'}")
        for path in SWEEPS
        for preset in ("", "small")
        if not (preset and path.stem == "tour")
    ]


@every_row(("path", "preset"), sizes())
@pytest.mark.slow
def test_it_can_be_planned_on_a_box_that_has_what_it_names(path: Any, preset: str) -> None:
    sweep = load_sweep(path, {"preset": preset} if preset else {}).sweep
    plan = make_plan(sweep, replace(BOX, name=sweep.box), facts(sweep), run_id="r1", owner="me", seed=1)
    assert len(plan.trials) == len(sweep.cells) * (sweep.design.repeats + sweep.design.warmup + sweep.design.explain)
    assert sweep.question.endswith("?")
    assert sweep.expectation
    assert sweep.baseline in {fs.name for fs in sweep.filesystems} or sweep.searches
    load_published(sweep.published)


@every_row("path", [path for path in SWEEPS if path.stem != "tour"], ids=lambda path: path.stem)
def test_its_small_size_needs_no_disk_of_its_own_and_little_time(path: Any) -> None:
    sweep = load_sweep(path, {"preset": "small"}).sweep
    scratch = {fs.device for fs in sweep.filesystems} - {None}
    assert scratch <= ({"pmem", "nvm"} if sweep.box == "vm" else set())
    assert (
        make_plan(sweep, replace(BOX, name=sweep.box), facts(sweep), run_id="r1", owner="me", seed=1).expected_s
        < 15 * 60
    )


def test_every_study_has_its_sweep() -> None:
    assert all(any(path.stem.startswith(study) for path in SWEEPS) for study in STUDIES)


def test_every_family_is_used_by_a_sweep() -> None:
    used = {
        fs.type
        for path in SWEEPS
        for fs in load_sweep(path).sweep.filesystems
        for fs in (fs, *([fs.over] if fs.over else []))
    }
    without_root = load_sweep(paths.PARAMS / "sweeps" / "ramdisk.yml", {"preset": "no-root"}).sweep
    in_place = {"in_place"}  # `mountlab watch` writes a sweep with it for each command
    assert used | {fs.type for fs in without_root.filesystems} | in_place == set(FAMILIES)


def test_layouts_compare_all_of_their_file_systems_at_each_size() -> None:
    """Each size is the same question: the layouts of a preset are those of the sweep, on other devices."""
    path = paths.PARAMS / "sweeps" / "layouts.yml"
    full, device, all_small = (
        load_sweep(path, {"preset": preset} if preset else {}).sweep for preset in ("", "device", "all-small")
    )
    names = [fs.name for fs in full.filesystems]
    assert [fs.name for fs in device.filesystems] == [fs.name for fs in all_small.filesystems] == names
    assert {len(fs.devices) for fs in device.filesystems} == {1, 4}
    rows = load_published(full.published)
    assert {row.candidate for row in rows} == {*names} - {full.baseline}
    assert {(row.workload, row.metric) for row in rows} <= {
        (workload.name, metric) for workload in full.workloads for metric in full.metrics
    }


# --- recipes ----------------------------------------------------------------------------------------------------------

RECIPES = (
    "database-log", "mail-spool", "build-server", "vm-images", "nfs-home", "database-in-a-year", "nearly-full",
    "backup-at-night", "latency-under-load", "databases", "source-tree", "redundancy", "encryption",
    "volumes", "copy-on-write", "layouts",
)  # fmt: skip
PAGE = (SHIPPED / "docs" / "recipes.md").read_text()


def planned(name: str, overrides: dict[str, Any]) -> Any:
    sweep = load_sweep(paths.PARAMS / "sweeps" / f"{name}.yml", overrides).sweep
    return make_plan(sweep, replace(BOX, name=sweep.box), facts(sweep), run_id="r1", owner="me", seed=1)


@every_row("name", RECIPES)
def test_the_page_of_recipes_says_its_question_and_how_long_it_takes(name: str) -> None:
    (row,) = re.findall(rf"^\| \[{name}\]\(#{name}\) \| (.+) \| (\d+) min, (\d+) min \|$", PAGE, re.MULTILINE)
    question, full, small = row
    assert question == planned(name, {}).sweep.question
    assert float(full) == pytest.approx(planned(name, {}).expected_s / 60, rel=0.15)
    assert float(small) == pytest.approx(planned(name, {"preset": "small"}).expected_s / 60, rel=0.35)


@every_row("name", [name for name in RECIPES if name != "nfs-home"])
def test_a_recipe_needs_no_scratch_device_and_can_take_one(name: str) -> None:
    on_images, on_device = planned(name, {}).sweep.filesystems, planned(name, {"preset": "device"}).sweep.filesystems
    assert all(fs.device is None for fs in on_images)
    assert {fs.name for fs in on_device if fs.device == "scratch"} == {fs.name for fs in on_images if fs.image_bytes}


def test_a_home_that_is_mounted_already_is_only_a_directory() -> None:
    plan = planned("nfs-home", {"preset": "mounted", "filesystems.home.path": "/net/home/me"})
    home = next(fs for fs in plan.sweep.filesystems if fs.name == "home")
    assert (home.type, str(home.path)) == ("dir", "/net/home/me")
    steps = [step.argv[0] for mount in plan.mounts if mount.filesystem == home for step in mount.steps]
    assert steps
    assert "mount" not in steps


def test_a_copy_of_a_recipe_is_a_sweep_of_one_s_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = shutil.copy(paths.PARAMS / "sweeps" / "database-log.yml", tmp_path / "ourlog.yml")
    assert main(["sweep", "check", str(copy)]) == 0
    assert "ourlog.yml" in capsys.readouterr().out

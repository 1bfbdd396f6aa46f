"""Caveats about data that a layer below stores in less, and about trials that repeat one random sequence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from checks.test_checks import EXT4, KNOWN, READ, WRITE, build, found, make, quiet, the_only
from facts import known
from mountlab.checks import Evidence, foresee
from mountlab.core.model import Sweep
from rows import every_row

FIO = {"tool": "fio", "rw": "randread", "size": "64MiB"}
ZRAM = {"type": "ext4", "zram": "1GiB"}


def writing(filesystem: dict[str, Any], **options: Any) -> Sweep:
    return make(filesystems={"f": filesystem}, workloads={"w": {**WRITE, **options}})


def foreseen(code: str, the_sweep: Sweep, **facts: Any) -> list[tuple[str, str]]:
    return [(each.severity, each.subject) for each in foresee(the_sweep, known(KNOWN, **facts)) if each.code == code]


# --- data -------------------------------------------------------------------------------------------------------------


@every_row(
    ("filesystem", "layer"),
    [
        (ZRAM, "zram compresses it"),
        (
            {"type": "btrfs", "image": "1GiB", "options": ["noatime", "compress=zstd:3"]},
            "compress=zstd:3 compresses it",
        ),
        ({"type": "btrfs", "image": "1GiB", "options": ["compress-force"]}, "compress-force compresses it"),
        ({"type": "overlay", "over": {"type": "btrfs", "image": "1GiB", "options": ["compress"]}}, "compress"),
    ],
)
def test_zeros_on_a_layer_that_compresses_are_a_warning_before_and_after_the_run(
    filesystem: dict[str, Any], layer: str
) -> None:
    the_sweep = writing(filesystem)
    caveat = the_only("compressible-data", quiet(the_sweep))
    assert (caveat.severity, caveat.subject) == ("warning", "f/w")
    assert "dd writes zeros" in caveat.message
    assert layer in caveat.message
    assert foreseen("compressible-data", the_sweep) == [("warning", "f/w")]


def test_random_data_and_layers_that_store_what_they_get_raise_nothing() -> None:
    assert found("compressible-data", quiet(writing(ZRAM, data="random"))) == []
    assert foreseen("compressible-data", writing({"type": "btrfs", "image": "1GiB", "options": ["compress=no"]})) == []
    assert foreseen("compressible-data", make(filesystems={"z": ZRAM}, workloads={"r": FIO})) == []


def test_an_image_on_a_file_system_that_may_compress_is_noted() -> None:
    assert foreseen("compressible-data", make(), mount_root_fstype="zfs") == [("note", "ext4/r")]
    assert the_only("compressible-data", quiet(backing_types={"ext4": "btrfs"})).severity == "note"
    assert found("compressible-data", quiet(backing_types={"ext4": "xfs"})) == []
    directory = make(filesystems={"ext4": {"type": "dir", "path": "/srv/data"}})
    unseen = {"ext4": "the kernel does not tell the device below zfs"}
    assert "the zfs that holds it" in the_only("compressible-data", quiet(directory, unseen=unseen)).message


def test_a_virtual_disk_may_store_zeros_in_less_which_is_noted_once() -> None:
    both = make(workloads={"r": READ, "w": WRITE})
    caveat = the_only("compressible-data", quiet(both, facts=known(KNOWN, virtualization="kvm")))
    assert (caveat.severity, caveat.scope) == ("note", "run")
    memory = make(filesystems={"t": {"type": "tmpfs", "size": "1GiB"}})
    assert foreseen("compressible-data", memory, virtualization="kvm") == []


FIO_WRITE = {**FIO, "rw": "write"}


@every_row(
    ("workload", "reducible"),
    [
        (FIO_WRITE, False),
        ({**FIO_WRITE, "zero_buffers": 1}, True),
        ({**FIO_WRITE, "refill_buffers": False, "scramble_buffers": 0}, True),
        ({**FIO_WRITE, "refill_buffers": False}, False),
        ({**FIO_WRITE, "buffer_compress_percentage": 50}, True),
        ({**FIO_WRITE, "dedupe_percentage": 30}, True),
        ({**FIO_WRITE, "buffer_pattern": "0xdeadface"}, True),
        ({"tool": "fs_mark", "count": 10, "file_size": "4KiB"}, True),
        ({"tool": "filebench", "workload": "varmail"}, True),
        ({"tool": "pg_test_fsync"}, False),
    ],
)
def test_what_a_tool_writes_follows_from_its_options(workload: dict[str, Any], reducible: bool) -> None:
    the_sweep = make(filesystems={"z": ZRAM}, workloads={"w": workload})
    assert bool(foreseen("compressible-data", the_sweep)) == reducible


# --- sequences --------------------------------------------------------------------------------------------------------


def drawing(**options: Any) -> Sweep:
    return make(workloads={"r": {**FIO, **options}})


def ran(the_sweep: Sweep, seeds: list[int | None]) -> Evidence:
    """A run of fio whose journal holds these seeds, one for each of five blocks."""
    evidence = build(make(), facts=KNOWN)
    return replace(evidence, sweep=the_sweep, trials=evidence.trials.assign(seed=seeds))


@every_row(
    ("options", "severity"),
    [
        ({"randseed": 5}, "warning"),
        ({"randrepeat": 1}, "warning"),
        ({"randrepeat": 0, "randseed": 5}, "warning"),
        ({"allrandrepeat": 1}, "warning"),
        ({"randrepeat": 0, "allrandrepeat": 1}, "warning"),
        ({"rw": "write", "randseed": 5}, "note"),
    ],
)
def test_a_sequence_that_the_sweep_fixes_is_told_before_and_after_the_run(
    options: dict[str, Any], severity: str
) -> None:
    the_sweep = drawing(**options)
    assert foreseen("trials-replayed", the_sweep) == [(severity, "ext4/r")]
    caveat = the_only("trials-replayed", ran(the_sweep, [None] * 5))
    assert caveat.severity == severity
    assert "every trial repeats the same random" in caveat.message


@pytest.mark.parametrize("options", [{}, {"randrepeat": 0}, {"randrepeat": False, "allrandrepeat": 0}])
def test_blocks_with_seeds_of_their_own_and_draws_of_the_system_repeat_nothing(options: dict[str, Any]) -> None:
    assert foreseen("trials-replayed", drawing(**options)) == []
    seeds: list[int | None] = [None] * 5 if options else [11, 13, 17, 19, 23]
    assert found("trials-replayed", ran(drawing(**options), seeds)) == []


def test_a_run_of_an_earlier_version_which_gave_no_seed_replayed_one_sequence() -> None:
    caveat = the_only("trials-replayed", ran(drawing(), [None] * 5))
    assert caveat.severity == "warning"
    assert "fio was given no seed" in caveat.message


def test_one_job_of_a_text_that_fixes_its_sequence_is_enough() -> None:
    text = "[a]\nrw=randread\nsize=1m\n[b]\nrw=randwrite\nsize=1m\nrandseed=9\n"
    the_sweep = make(workloads={"r": {"tool": "fio", "jobs": text}})
    assert foreseen("trials-replayed", the_sweep) == [("warning", "ext4/r")]


def test_filebench_takes_no_seed_for_the_places_that_it_draws() -> None:
    def cells(name: str) -> list[tuple[str, str]]:
        return foreseen("trials-replayed", make(workloads={"r": {"tool": "filebench", "workload": name}}))

    assert cells("rread") == [("note", "ext4/r")]
    assert cells("seqread") == []


def test_a_good_run_of_a_tool_that_draws_nothing_repeats_nothing() -> None:
    assert found("trials-replayed", quiet(make(filesystems={"e": EXT4}, workloads={"r": READ}))) == []

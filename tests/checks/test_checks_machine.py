"""Caveats about the box and its devices, from the counters around each trial: raised and not raised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from checks.test_checks import CHAIN, EXT4, KNOWN, MIB, QUIET, READ, WRITE, build, found, make, moved, quiet, the_only
from facts import known
from mountlab.checks import Evidence, find_caveats, foresee
from mountlab.core.findings import OptionEvidence
from mountlab.filesystems.counters import Around
from mountlab.filesystems.evidence import DeviceBytes
from rows import every_row


def during(*changed: str, evidence: Evidence | None = None, **values: Any) -> Evidence:
    """A quiet run in which the named trials (all where none is named) saw something."""
    chosen = evidence or quiet()
    around = {
        trial_id: replace(each, **values) if not changed or trial_id in changed else each
        for trial_id, each in chosen.around.items()
    }
    return replace(chosen, around=around)


def knowing(**facts: Any) -> Evidence:
    return quiet(facts=known(KNOWN, **facts))


# --- processors -------------------------------------------------------------------------------------------------------


def test_others_who_take_the_processors_are_told_with_their_share() -> None:
    caveat = the_only("box-busy", during(others=0.4, pressure={"cpu": 0.6}))
    assert (caveat.severity, caveat.scope, caveat.subject) == ("warning", "cell", "ext4/r")
    assert "other programs took 40% of the processors while it ran, 40% in the worst of its 10 trials" in caveat.message
    assert "tasks waited for a processor in 60% of the time" in caveat.message
    assert "load" not in caveat.message, "the kernel's average counts the threads of the trial before too"
    assert "run again when the box is quiet" in caveat.message


def test_one_trial_that_others_disturbed_is_enough() -> None:
    assert "3.9% of the processors while it ran, 30% in the worst" in (
        the_only("box-busy", during("t0003", others=0.3)).message
    )


def test_tasks_that_wait_while_the_trial_is_idle_wait_for_others() -> None:
    assert the_only("box-busy", during("t0003", pressure={"cpu": 0.7}, own=0.1))
    assert found("box-busy", during("t0003", pressure={"cpu": 0.7}, own=0.9)) == [], "it waits for itself"


def test_a_quiet_box_and_a_few_ticks_of_a_short_trial_are_not_busy() -> None:
    assert found("box-busy", during(others=0.5, seconds=0.01)) == [], "50 ms in all"
    assert found("box-busy", during(others=None)) == []


def test_time_that_the_hypervisor_gave_away() -> None:
    caveat = the_only("time-stolen", during(stolen=0.15))
    assert "the hypervisor gave 15% of the processors' time to other machines" in caveat.message


def test_a_tick_that_was_stolen_is_no_caveat() -> None:
    assert found("time-stolen", during(stolen=0.01)) == []
    assert found("time-stolen", during("t0001", stolen=0.03)) == [], "0.3% over the cell"


def test_processors_that_were_too_hot() -> None:
    caveat = the_only("throttled", during("t0002", "t0004", throttled=3))
    assert "in 2 of its 10 trials (t0002, t0004) the processors were slowed because they were too hot (6 times" in (
        caveat.message
    )


def test_processors_that_stayed_cool_or_do_not_tell() -> None:
    assert found("throttled", during(throttled=None)) == []


# --- what the facts of the box tell -----------------------------------------------------------------------------------

MANY = {"KASAN": "y", "PROVE_LOCKING": "y", "DEBUG_LIST": "y"}


@every_row(
    ("code", "severity", "facts", "words"),
    [
        ("frequency-scaling", "note", {"cpu_governor": "powersave"}, "governor powersave"),
        ("frequency-scaling", "note", {"cpu_governor": "performance, schedutil"}, "governor performance, schedutil"),
        ("on-battery", "warning", {"power": "battery (64 %)"}, "ran on its battery (64 %) when the run began"),
        ("swap-in-use", "note", {"swap_used_bytes": 300 * MIB}, "300 MiB of the box's memory lay in swap"),
        ("debug-kernel", "warning", {"kernel_config": MANY}, "(KASAN, PROVE_LOCKING)"),
        ("memory-limited", "warning", {"session_limits": {"memory_bytes": MIB}}, "1.00 MiB of the box's memory"),
        ("pages-taken", "note", {"reclaim": {"damon": "running (pageout)"}}, "DAMON was running"),
        ("memory-given-back", "warning", {"reclaim": {"free_page_reporting": "on"}}, "free-page-reporting=off"),
        ("virtualised", "note", {"virtualization": "kvm"}, "a virtual machine or a container (kvm)"),
    ],
)
def test_a_fact_that_speaks_against_the_box_is_a_caveat_of_the_run(
    code: str, severity: str, facts: dict[str, Any], words: str
) -> None:
    caveat = the_only(code, knowing(**facts))
    assert (caveat.severity, caveat.scope) == (severity, "run")
    assert words in caveat.message


@every_row(
    ("code", "facts"),
    [
        ("frequency-scaling", {"cpu_governor": None}),
        ("on-battery", {"power": "mains"}),
        ("on-battery", {"power": "no battery"}),
        ("on-battery", {"power": None}),
        ("memory-limited", {"session_limits": {"memory_bytes": 15 * 1024**3}}),  # the data fit
        ("pages-taken", {"reclaim": {"damon": "running (stat)"}}),  # it only watches
        ("memory-given-back", {"reclaim": {"free_page_reporting": "off"}}),
        ("virtualised", {"virtualization": "qemu", "emulated": True}),  # `emulated` says so
    ],
)
def test_a_fact_that_does_not_is_none(code: str, facts: dict[str, Any]) -> None:
    assert found(code, knowing(**facts)) == []


# --- memory and time --------------------------------------------------------------------------------------------------


def test_pages_that_went_to_swap() -> None:
    caveat = the_only("swapping", during("t0005", swapped_pages=1024))
    assert "in 1 of its 10 trials (t0005) memory was short: the box moved up to 4.00 MiB between memory and swap" in (
        caveat.message
    )


def test_tasks_that_wait_for_memory_find_too_little_of_it() -> None:
    message = the_only("swapping", during("t0005", pressure={"memory": 0.3})).message
    assert "tasks waited for memory in up to 30% of the time" in message
    assert found("swapping", during("t0005", pressure={"memory": 0.3}, seconds=0.05)) == []


def test_a_few_pages_of_an_idle_program_are_not_swapping() -> None:
    assert found("swapping", during(swapped_pages=10)) == []


def test_data_that_fit_the_box_and_not_the_session_are_not_said_to_stay_in_the_cache() -> None:
    again = make(workloads={"r": {**READ, "cache": "as_is"}})
    facts = known(KNOWN, session_limits={"memory_bytes": MIB})
    assert [each.code for each in foresee(again, KNOWN)].count("fits-in-memory") == 1
    assert "fits-in-memory" not in {each.code for each in foresee(again, facts)}


@pytest.mark.parametrize("fact", ["kernel_config", "session_limits", "reclaim"])
def test_a_run_that_did_not_record_such_facts_says_that_it_could_not_look(fact: str) -> None:
    blind = find_caveats(knowing(**{fact: None})).not_checked
    assert f"the box does not tell ({fact})" in blind.values()


@pytest.mark.parametrize(("step", "words"), [(3600.0, "3600 s forwards"), (-0.2, "200 ms backwards")])
def test_a_clock_that_was_set(step: float, words: str) -> None:
    message = the_only("clock-stepped", during("t0001", clock_step_s=step)).message
    assert "in 1 of its 10 trials (t0001) the box's wall clock was set while it ran, by up to" in message
    assert words.split()[-1] in message


def test_a_clock_that_is_being_adjusted_is_no_step() -> None:
    assert found("clock-stepped", during(clock_step_s=0.02)) == []
    assert found("clock-stepped", during(clock_step_s=0.5, seconds=1000.0)) == [], "0.05 % of 1000 s"


# --- the device -------------------------------------------------------------------------------------------------------


def test_bytes_below_a_loop_image_that_it_did_not_ask_for_are_of_others() -> None:
    evidence = quiet(traffic=dict.fromkeys(quiet().around, moved(1.0, disk=1.5)))
    caveat = the_only("other-io", evidence)
    assert "in 10 of its 10 trials (t0001, t0002, t0003, ...) the device moved up to 512 MiB that were not the" in (
        caveat.message
    )


@every_row(("flushes", "codes"), [(0, ["other-io"]), (4034, [])])
def test_what_the_holder_of_an_image_writes_at_its_flushes_is_not_of_others(flushes: int, codes: list[str]) -> None:
    """As beside 1,000 rows that SQLite commits on ext4, in an image on ext4."""
    traffic = {"7:0": DeviceBytes(0, 26_901_504, flushes), "254:0": DeviceBytes(0, 45_147_136)}
    evidence = quiet(traffic=dict.fromkeys(quiet().around, traffic))
    assert [each.code for each in found("other-io", evidence)] == codes


def test_what_moved_in_the_other_direction_right_on_a_device_is_of_others() -> None:
    wrote = {"254:0": DeviceBytes(512 * MIB, 300 * MIB)}
    evidence = quiet(levels={"m-ext4": (("254:0",),)}, traffic=dict.fromkeys(quiet().around, wrote))
    assert "up to 300 MiB that were not the trial's" in the_only("other-io", evidence).message


def test_a_journal_a_log_and_a_loop_in_the_cache_are_not_others() -> None:
    little = quiet(traffic=dict.fromkeys(quiet().around, moved(1.0, disk=1.02)))
    assert found("other-io", little) == []
    wrote = {"254:0": DeviceBytes(512 * MIB, 8 * MIB)}
    on_disk = quiet(levels={"m-ext4": (("254:0",),)}, traffic=dict.fromkeys(quiet().around, wrote))
    assert found("other-io", on_disk) == []
    cached = quiet(traffic=dict.fromkeys(quiet().around, moved(0.1, disk=1.0)), buffered_loops=frozenset({"m-ext4"}))
    assert found("other-io", cached) == []


IO_ERROR = "blk_update_request: I/O error, dev vda, sector 2048 op 0x0:(READ) flags 0x0"


@pytest.mark.parametrize(
    "line",
    [
        IO_ERROR,
        "EXT4-fs error (device loop0): ext4_find_entry: inode #2",
        "INFO: task kworker/u4:1:27 blocked for more than 120 seconds.",
    ],
)
def test_what_the_kernel_says_of_the_device_is_told(line: str) -> None:
    caveat = the_only("kernel-message", during("t0003", kernel_log=("other: x", line)))
    assert "in 1 of its 10 trials (t0003)" in caveat.message
    assert f'"{line}"' in caveat.message


def test_a_controller_of_nvme_speaks_for_its_disk() -> None:
    evidence = during(kernel_log=("nvme nvme0: I/O 12 QID 3 timeout, aborting",), names={"259:1": "nvme0n1p2"})
    assert the_only("kernel-message", replace(evidence, levels={"m-ext4": (("259:1",),)}))


def test_what_the_kernel_says_of_other_devices_is_not() -> None:
    assert found("kernel-message", during(kernel_log=("EXT4-fs (vdb): warning", "usb 1-1: reset"))) == []


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        ("md/raid:md127: Disk failure on loop0, disabling device.", []),
        ("md/raid1:md127: Operation continuing on 1 devices. loop0", []),
        ("md/raid1:md127: loop0: unrecoverable I/O read error for block 8", ["kernel-message"]),
    ],
)
def test_what_a_tool_makes_the_kernel_say_is_no_trouble(line: str, codes: list[str]) -> None:
    """degrade takes a member out of an array; the same line is trouble beside any other tool."""
    evidence = during(kernel_log=(line,))
    sweep = evidence.sweep
    workloads = tuple(replace(workload, tool="degrade") for workload in sweep.workloads)
    degrading = replace(evidence, sweep=replace(sweep, workloads=workloads))
    assert [caveat.code for caveat in found("kernel-message", degrading)] == codes
    assert found("kernel-message", evidence)


LAZY = {**EXT4, "mkfs": ["-E", "lazy_itable_init=1"]}


def test_inode_tables_that_are_still_being_written() -> None:
    evidence = during("t0001", evidence=quiet(make(filesystems={"ext4": LAZY})), lazy_init=True)
    caveat = the_only("lazy-init", evidence)
    assert "in 1 of its 10 trials (t0001) the kernel was still writing its inode tables" in caveat.message


def test_the_thread_alone_says_nothing() -> None:
    """Since Linux 5.13 it also reads block bitmaps ahead, after every mount."""
    assert found("lazy-init", during(lazy_init=True)) == []
    assert found("lazy-init", quiet(make(filesystems={"ext4": LAZY}))) == []


EAGER = {**EXT4, "mkfs": ["-E", "lazy_itable_init=0,lazy_journal_init=0"]}


def timed_at_mkfs(*metrics: str, **filesystems: Any) -> Evidence:
    """The sweep of study D.1, whose answer is about these metrics."""
    asked = quiet(make(filesystems=filesystems, metrics=["read_bandwidth"], baseline=None))
    return replace(asked, answer_metrics={"r": metrics})


def test_a_device_that_zeroes_by_itself_leaves_lazy_initialisation_nothing_to_save() -> None:
    evidence = timed_at_mkfs("mkfs_time", ext4=LAZY, eager=EAGER)
    seen = replace(evidence, zeroes={"ext4": 2**32 - 512, "eager": 2**32 - 512})
    caveats = found("zeroed-by-device", seen)
    assert {caveat.subject for caveat in caveats} == {"ext4/r", "eager/r"}
    assert {(caveat.severity, caveat.metrics) for caveat in caveats} == {("warning", "mkfs_time")}
    assert "4.00 GiB by one command (queue/write_zeroes_max_bytes)" in caveats[0].message
    assert "on the box `vm`" in caveats[0].message
    assert the_only("zeroed-by-device", replace(evidence, zeroes={"ext4": 0, "eager": 1024})).subject == "eager/r"


@pytest.mark.parametrize(
    ("metrics", "filesystems", "zeroes"),
    [
        (("mkfs_time",), {"ext4": LAZY, "eager": EAGER}, 0),
        (("write_bandwidth",), {"ext4": LAZY, "eager": EAGER}, 2**32),
        (("mkfs_time",), {"ext4": EXT4, "eager": EAGER}, 2**32),
    ],
    ids=["a disk that is written", "mkfs is not the question", "nothing is lazy"],
)
def test_where_mkfs_writes_or_is_not_the_question_nothing_is_said(
    metrics: tuple[str, ...], filesystems: dict[str, Any], zeroes: int
) -> None:
    evidence = timed_at_mkfs(*metrics, **filesystems)
    assert found("zeroed-by-device", replace(evidence, zeroes=dict.fromkeys(filesystems, zeroes))) == []


@pytest.mark.slow
def test_where_the_kernel_does_not_tell_the_check_has_not_passed() -> None:
    missing = find_caveats(timed_at_mkfs("mkfs_time", ext4=LAZY, eager=EAGER)).not_checked
    assert missing["zeroed-by-device"] == "the kernel does not tell how devices zero blocks"
    assert "zeroed-by-device" not in find_caveats(quiet()).not_checked


def on_an_array(*changed: str, **values: Any) -> Evidence:
    """A file system whose loop device is md127 by name."""
    return during(*changed, evidence=during(names={**QUIET.names, "7:0": "md127"}), **values)


def test_an_array_below_the_file_system_that_was_not_clean() -> None:
    busy = on_an_array("t0002", arrays={"md127": "resync at 12.6%", "md0": "check at 3.0%"})
    caveat = the_only("array-not-clean", busy)
    assert (caveat.severity, caveat.subject) == ("warning", "ext4/r")
    assert "in 1 of its 10 trials (t0002) the array md127 (resync) was not clean" in caveat.message
    assert "md0" not in caveat.message, "it lies on no such array"


def on_zfs() -> Evidence:
    return quiet(make(filesystems={"ext4": {"type": "zfs", "image": "512MiB"}}))


def on_lvm() -> Evidence:
    stack = [{"layer": "lvm", "kind": "raid1"}]
    return quiet(make(filesystems={"ext4": {**EXT4, "members": 2, "stack": stack}}))


@every_row(
    ("lies", "name", "state"),
    [(on_zfs, "the pool mountlab-1", "DEGRADED"), (on_lvm, "the volume mountlab-1/data", "recover, 1 of 2 devices")],
)
def test_a_pool_or_volume_that_was_not_clean_during_a_trial(
    lies: Callable[[], Evidence], name: str, state: str
) -> None:
    caveat = the_only("array-not-clean", during("t0002", evidence=lies(), below={name: state}))
    assert (caveat.severity, caveat.subject) == ("warning", "ext4/r")
    assert f"in 1 of its 10 trials (t0002) {name} ({state}) was not clean" in caveat.message


@every_row(
    ("lies", "reason"),
    [(on_zfs, "`zpool status` showed no pool"), (on_lvm, "`dmsetup status` showed nothing of raid1 of LVM")],
)
def test_a_pool_or_volume_that_was_clean_and_one_that_nothing_was_seen_of(
    lies: Callable[[], Evidence], reason: str
) -> None:
    assert found("array-not-clean", during(evidence=lies(), below={})) == []
    assert find_caveats(lies()).not_checked["array-not-clean"] == reason


def test_md_discards_a_journal_of_its_own() -> None:
    stack = [{"layer": "md", "level": "raid5", "journal": True}]
    asked = quiet(make(filesystems={"ext4": {**EXT4, "members": 4, "stack": stack}}))
    caveat = the_only("discards", during("t0002", evidence=asked, discarded={"254:0": 40 * MIB}))
    assert "only below its loop device: md discards its journal" in caveat.message


def test_a_clean_array_and_one_that_nothing_was_seen_of() -> None:
    assert found("array-not-clean", on_an_array(arrays={})) == []
    assert find_caveats(on_an_array()).not_checked["array-not-clean"] == "/proc/mdstat does not show md127"
    assert "array-not-clean" not in find_caveats(quiet()).not_checked


@pytest.mark.parametrize(("options", "severity"), [([], "warning"), (["discard"], "note")])
def test_blocks_that_the_device_was_told_to_forget(options: list[str], severity: str) -> None:
    asked = quiet(make(filesystems={"ext4": {**EXT4, "options": options}}))
    caveat = the_only("discards", during("t0002", evidence=asked, discarded={"7:0": 40 * MIB, "254:0": 40 * MIB}))
    assert caveat.severity == severity
    assert "discarded up to 40.0 MiB (TRIM)" in caveat.message


@every_row(
    ("given", "said", "unsaid"),
    [
        ({"options": ["noatime", "discard"]}, "as the mount option discard asks. Compare with `nodiscard`", "fstrim"),
        ({"in_effect": {"discard": "async"}}, "discard=async has it, which is in effect although", "fstrim"),
        ({"in_effect": {"rw": ""}}, "no option to discard is in effect: a program trimmed it (fstrim", "nodiscard"),
        ({}, "not known by what: the mount options in effect were not kept", "nodiscard"),
        ({"below": True, "in_effect": {"discard": ""}}, "only below its loop device: the file system", "nodiscard"),
    ],
)
def test_what_discards_is_named_by_what_the_cell_has(given: dict[str, Any], said: str, unsaid: str) -> None:
    """Trap: an option was blamed that the cell did not have."""
    the_sweep = make(filesystems={"ext4": {**EXT4, "options": given.get("options", [])}})
    evidence = replace(quiet(), sweep=the_sweep)
    if "in_effect" in given:
        evidence = replace(evidence, in_effect={"ext4": given["in_effect"]})
    discarded = {"254:0": 40 * MIB, **({} if given.get("below") else {"7:0": 40 * MIB})}
    message = the_only("discards", during("t0002", evidence=evidence, discarded=discarded)).message
    assert said in message
    assert unsaid not in message


def heated(celsius: float, **sensor: Any) -> Evidence:
    """A drive below the trials, at this temperature in one of them."""
    file = "/sys/class/hwmon/hwmon2/temp1_input"
    facts = known(KNOWN, drive_sensors={"vda": {"file": file, **sensor}})
    return replace(during("t0002", celsius={file: celsius}), facts=facts)


def test_a_drive_as_hot_as_where_it_warns() -> None:
    caveat = the_only("drive-hot", heated(82.0, warning_celsius=81.85))
    assert (caveat.severity, caveat.subject) == ("warning", "ext4/r")
    assert "in 1 of its 10 trials (t0002) drive vda was at up to 82 °C; it warns at 82 °C" in caveat.message


def test_a_drive_that_counted_heat_or_slowed_itself_down() -> None:
    caveat = the_only("drive-hot", during("t0003", drive_alarms={"vda": 2, "sdb": 1}))
    assert "in 1 of its 10 trials (t0003) drive vda counted that it was too hot, or that it slowed itself down" in (
        caveat.message
    )
    assert found("drive-hot", during(drive_alarms={"vda": 0, "sdb": 1})) == []


def test_a_drive_that_stays_cooler_or_has_no_limit_or_is_another_is_not_hot() -> None:
    assert found("drive-hot", heated(80.0, warning_celsius=81.85)) == []
    assert found("drive-hot", heated(80.0)) == [], "it does not tell where it warns"
    facts = {"drive_sensors": {"sdb": {"file": "/sys/class/hwmon/hwmon2/temp1_input", "warning_celsius": 30.0}}}
    assert found("drive-hot", quiet(facts=known(KNOWN, **facts))) == [], "not below the trials"
    assert "hwmon" in find_caveats(during(celsius={})).not_checked["drive-hot"]


def test_discards_on_other_devices_and_of_a_few_blocks_are_not_told() -> None:
    assert found("discards", during(discarded={"8:16": 400 * MIB, "254:0": 4096})) == []


FLASH = {"block_devices": [{"name": "vda", "type": "disk", "rotational": False, "parent": None}]}


def falling(values: list[float], **facts: Any) -> Evidence:
    the_sweep = make(workloads={"w": WRITE})
    evidence = build(the_sweep, values={"ext4/w": values}, facts=known(KNOWN, **facts))
    return replace(evidence, around=dict.fromkeys(evidence.around, QUIET))


def test_writes_that_become_slower_on_flash_may_be_its_garbage_collection() -> None:
    caveat = the_only("garbage-collection", falling([(100 - 3 * i) * 1e6 for i in range(10)], **FLASH))
    assert (caveat.severity, caveat.metrics) == ("note", "write_bandwidth")
    assert "write_bandwidth became worse over the run, on a device that does not rotate" in caveat.message


def test_writes_that_become_faster_or_rotate_are_no_garbage_collection() -> None:
    assert found("garbage-collection", falling([(100 + 3 * i) * 1e6 for i in range(10)], **FLASH)) == []
    assert found("garbage-collection", falling([(100 - 3 * i) * 1e6 for i in range(10)])) == []


# --- caches -----------------------------------------------------------------------------------------------------------


DIRECT = {"r": {**READ, "iflag": "direct"}}


def test_direct_io_that_is_in_the_page_cache_afterwards_was_not_honoured() -> None:
    """ext4 with data=journal: 122k "direct" IOPS against 26k."""
    caveat = the_only("direct-not-honoured", during(evidence=quiet(make(workloads=DIRECT)), resident_bytes=512 * MIB))
    assert (caveat.severity, caveat.subject) == ("warning", "ext4/r")
    assert "100% of what was read and written was in the page cache afterwards" in caveat.message


def test_direct_io_in_memory_is_noted() -> None:
    memory = make(filesystems={"tmpfs": {"type": "tmpfs", "size": "1GiB"}}, workloads=DIRECT)
    assert the_only("direct-not-honoured", quiet(memory, traffic={})).severity == "note"


def test_direct_io_that_leaves_the_cache_alone_was_honoured() -> None:
    assert found("direct-not-honoured", quiet(make(workloads=DIRECT))) == []
    assert found("direct-not-honoured", during(resident_bytes=512 * MIB)) == [], "nobody asked for it"
    left = make(workloads={"r": {**DIRECT["r"], "cache": "as_is"}})
    assert found("direct-not-honoured", during(evidence=quiet(left), resident_bytes=512 * MIB)) == [], "it was there"


def test_without_fincore_nobody_knows() -> None:
    blind = during(evidence=quiet(make(workloads=DIRECT)), resident_bytes=None)
    assert "fincore, of util-linux or util-linux-extra" in find_caveats(blind).not_checked["direct-not-honoured"]


def fast(**facts: Any) -> Evidence:
    """512 MiB in half a second."""
    evidence = quiet(facts=known(KNOWN, **facts))
    frame = evidence.measurements.copy()
    frame.loc[frame["metric"] == "elapsed", "value"] = 0.5
    return replace(evidence, measurements=frame)


def test_a_disk_that_rotates_and_is_faster_than_any_is_implausible() -> None:
    caveat = the_only("implausible", replace(fast(), levels={"m-ext4": CHAIN}))
    assert (caveat.severity, caveat.metrics) == ("warning", "read_")
    assert (
        "the device moved up to 1.07 GB/s, more than 600 MB/s, the ceiling of a rotating disk, which it claims to be"
        in caveat.message.replace("\u00a0", " ")
    )


def test_a_disk_that_is_faster_than_its_link_is_implausible() -> None:
    disks = [{"name": "sda", "type": "disk", "rotational": False, "parent": None},
             {"name": "vda", "type": "part", "rotational": False, "parent": "sda"}]  # fmt: skip
    links = {"sda": {"bytes_per_s": 300e6, "what": "SATA 3 Gb/s"}}
    assert "300 MB/s, the limit of its link (SATA 3 Gb/s)" in (
        the_only("implausible", fast(block_devices=disks, disk_links=links)).message.replace("\u00a0", " ")
    )


def test_in_a_virtual_machine_it_is_a_note_and_links_are_not_believed() -> None:
    """The host sets what such a disk claims to be."""
    caveat = the_only("implausible", fast(virtualization="kvm"))
    assert caveat.severity == "note"
    assert "On a virtual machine the host sets that claim" in caveat.message
    links = {"vda": {"bytes_per_s": 1e6, "what": "PCI Express 2.5 GT/s x1"}}
    assert found("implausible", fast(virtualization="kvm", disk_links=links, **FLASH)) == []


def test_speeds_that_a_device_can_have_are_plausible() -> None:
    assert found("implausible", fast(**FLASH)) == []


def test_a_warm_or_repeated_read_of_less_than_the_memory_is_told() -> None:
    warm = quiet(make(workloads={"r": {**READ, "cache": "warm"}}), traffic={})
    caveat = the_only("fits-in-memory", warm)
    assert caveat.severity == "note"
    assert "this reads 512 MiB buffered on a box with 16.0 GiB of memory" in caveat.message
    assert the_only(
        "fits-in-memory", quiet(make(workloads={"r": {**READ, "cache": "as_is"}}), traffic={})
    ).severity == ("warning")


def test_reads_that_the_counters_show_to_come_from_a_device_are_not() -> None:
    assert found("fits-in-memory", quiet(make(workloads={"r": {**READ, "cache": "as_is"}}))) == []
    assert found("fits-in-memory", quiet(traffic={})) == [], "a cold file that is read once"
    tiny = quiet(
        make(workloads={"r": {**READ, "cache": "as_is"}}),
        traffic={},
        facts=known(KNOWN, memory_bytes=256 * MIB),
    )
    assert found("fits-in-memory", tiny) == []


# --- compared sides ---------------------------------------------------------------------------------------------------


def sides(**changes: Any) -> Evidence:
    filesystems = {"ext4": EXT4, "other": {**EXT4, **changes}}
    return quiet(make(filesystems=filesystems, baseline="ext4"), levels={"m-ext4": CHAIN, "m-other": CHAIN})


def test_sides_that_differ_in_more_than_one_thing_are_noted() -> None:
    caveat = the_only("sides-differ", sides(options=["noatime"], image="2GiB"))
    assert (caveat.severity, caveat.scope, caveat.subject) == ("note", "filesystem", "other")
    assert "differs from the baseline ext4 in 2 things: mount options (noatime; none); size (2GiB; 1GiB)" in (
        caveat.message
    )


def test_options_that_the_kernel_added_count() -> None:
    """data=journal brings nodelalloc."""
    row = OptionEvidence(filesystem="other", option="", kind="mount", state="added", kernel_says="nodelalloc")
    evidence = replace(sides(options=["data=journal"]), options=[row])
    assert "options that the kernel added by itself (nodelalloc; none)" in the_only("sides-differ", evidence).message


def test_sides_on_different_disks_are_told() -> None:
    evidence = replace(sides(options=["noatime"]), levels={"m-ext4": CHAIN, "m-other": (("7:1",), ("8:0",))})
    names = {**QUIET.names, "8:0": "sda"}
    named = replace(evidence, around={key: replace(each, names=names) for key, each in evidence.around.items()})
    assert "disk (sda; vda)" in the_only("sides-differ", named).message


def test_sides_that_differ_in_one_thing_are_not() -> None:
    assert found("sides-differ", sides(options=["noatime"])) == []
    assert found("sides-differ", sides(type="xfs")) == []
    memory = make(filesystems={"ext4": EXT4, "tmpfs": {"type": "tmpfs", "size": "64MiB"}}, baseline="ext4")
    assert found("sides-differ", quiet(memory)) == [], "memory is what tmpfs is"


# --- excluded ---------------------------------------------------------------------------------------------------------


def test_excluded_trials_are_named_with_their_reasons() -> None:
    evidence = quiet()
    trials = evidence.trials.copy()
    trials.loc[trials["trial_id"] == "t0003", ["status", "reason"]] = ["excluded", "the backup ran"]
    caveat = the_only("excluded", replace(evidence, trials=trials))
    assert (caveat.severity, caveat.subject) == ("warning", "ext4/r")
    assert "these trials do not count: t0003 (the backup ran). 9 are left." in caveat.message
    assert found("failed-trials", replace(evidence, trials=trials)) == []


def test_what_a_box_does_not_count_is_not_known() -> None:
    """Around() of nothing knows nothing, and every check that needs it stays silent."""
    silent = replace(quiet(), around=dict.fromkeys(quiet().around, Around()))
    for code in ("box-busy", "time-stolen", "throttled", "swapping", "clock-stepped", "kernel-message", "discards"):
        assert found(code, silent) == []


def test_trials_that_only_their_environment_held_are_noted() -> None:
    caveat = the_only("not-contained", during("t0003", "t0004", contained_by="environment"))
    assert (caveat.severity, caveat.scope) == ("note", "run")
    assert (
        f"in 2 of {len(quiet().around)} trials the box allowed neither a cgroup nor a PID namespace" in caveat.message
    )


@pytest.mark.parametrize("held", ["cgroup v2", "cgroup v1 (freezer)", "PID namespace"])
def test_trials_that_a_cgroup_or_a_pid_namespace_held_are_not(held: str) -> None:
    assert found("not-contained", during(contained_by=held)) == []

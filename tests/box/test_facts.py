"""Facts: parsers on recorded output, and the gathering script on a machine that lacks nearly everything."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from installed_programs import program
from mountlab.box import facts
from mountlab.box.testing import ReplayBox
from mountlab.core.box_facts import AREAS, FACTS, SECTIONS, BoxFacts, InstalledProgram
from mountlab.core.box_facts.kernel import parse_os
from mountlab.core.box_facts.machine import parse_emulated, parse_power, parse_virtualization
from mountlab.core.box_facts.memory import meminfo, parse_used_swap
from mountlab.core.box_facts.processors import parse_cpu_model
from mountlab.core.box_facts.storage import parse_block_devices, parse_free, parse_holder, parse_links
from mountlab.core.errors import BoxError, CommandError
from mountlab.core.model import Box, Program
from mountlab.core.mountinfo import unescape
from rows import every_row

DATA = Path(__file__).parents[1] / "data" / "box"
FIO = Program(name="fio", packages={"apt": "fio"}, version=("fio", "--version"))
MARKS = Program(name="fs_mark", packages={"apt": "fsmark"}, version=("fs_mark",))


def recorded(name: str) -> str:
    return (DATA / name).read_text()


@pytest.mark.requires_program("setpriv")
@pytest.mark.parametrize(("confined", "expected"), [((), True), (("setpriv", "--bounding-set=-sys_admin"), False)])
def test_whether_root_may_mount_is_read_from_the_capabilities(confined: tuple[str, ...], expected: bool) -> None:
    if os.geteuid():
        pytest.skip("skipped: only root can give capabilities up")
    fact = FACTS["may_mount"]
    printed = subprocess.run([*confined, "sh", "-c", fact.script], capture_output=True, text=True, check=True).stdout
    assert fact.parse(printed.strip()) is expected


# --- the registry -----------------------------------------------------------------------------------------------------


def test_every_fact_is_complete() -> None:
    """Each stands in a section of the report; one that is compared has a place of its own in its area."""
    places = [(fact.area, fact.rank) for fact in FACTS.values() if fact.area]
    assert len(set(places)) == len(places)
    assert {area for area, _ in places} == {*AREAS}
    assert {fact.section for fact in FACTS.values()} == {*SECTIONS}
    assert all(fact.words and fact.words not in (key for key in FACTS if "_" in key) for fact in FACTS.values())


def test_nothing_printed_is_unknown_and_never_invented() -> None:
    record = facts.parse_sections("").as_record()
    assert record.pop("programs") == {}
    assert set(record.values()) == {None}
    assert {key for key, fact in FACTS.items() if fact.script} == {*record}


def test_nonsense_is_unknown() -> None:
    names = ("cpus", "uid", "memory_bytes", "swap_bytes", "mount_root_free_bytes", "block_devices", "os", "cpu_model")
    values = facts.parse_sections("".join(f"{name}\tzzz qqq\n" for name in names))
    assert {name: values.value(name) for name in names} == dict.fromkeys(names)


def test_a_fact_cannot_be_taken_for_another() -> None:
    values = facts.parse_sections("hostname\tcpus\t64\nhostname\t\nnobody\t1\nno tab\ncpus\t2\n")
    assert (values.machine.hostname, values.processors.count) == ("cpus\t64", 2)


# --- the script -------------------------------------------------------------------------------------------------------


def run_script(path: str, *programs: Program, mount_root: str = "", output_root: str = "") -> BoxFacts:
    script = facts.gather_script(FACTS.values(), programs)
    argv = [shutil.which("sh") or "sh", "-c", script, "mountlab-facts", mount_root, output_root]
    done = subprocess.run(argv, env={"PATH": path, "LC_ALL": "C"}, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return facts.parse_sections(done.stdout)


def bare_path(directory: Path, *names: str) -> str:
    for name in ("sed", "cat", "id", "dirname", "head", "tr", *names):
        target = shutil.which(name)
        assert target is not None
        (directory / name).symlink_to(target)
    return str(directory)


def test_the_script_on_this_machine(tmp_path: Path) -> None:
    before = shutil.disk_usage(tmp_path).free
    values = run_script(
        "/usr/bin:/bin:/usr/sbin:/sbin", mount_root=str(tmp_path / "new" / "er"), output_root="/dev/shm/x"
    )
    low, high = sorted((before, shutil.disk_usage(tmp_path).free))
    assert values.processors.count >= 1
    assert values.memory.total_bytes >= values.memory.available_bytes > 0
    assert (values.storage.mount_root, values.storage.output_root) == (str(tmp_path / "new" / "er"), "/dev/shm/x")
    assert 0.95 * low <= values.storage.mount_root_free_bytes <= 1.05 * high
    assert "tmpfs" in values.kernel.filesystems
    assert BoxFacts.from_record(json.loads(json.dumps(values.as_record()))) == values
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_the_script_where_most_programs_are_missing(tmp_path: Path) -> None:
    values = run_script(bare_path(tmp_path), FIO)
    assert values.programs.installed == {}
    assert values.programs.package_manager is None
    assert values.machine.hostname is None
    assert values.memory.total_bytes > 0
    assert all(device.size_bytes is not None for device in values.storage.block_devices)


@pytest.mark.slow
def test_programs_with_their_versions(tmp_path: Path) -> None:
    path = bare_path(tmp_path)
    fio, fs_mark = tmp_path / "fio", tmp_path / "fs_mark"
    fio.write_text("#!/bin/sh\necho fio-3.33 >&2\necho more\n")
    fs_mark.write_text("#!/bin/sh\necho 'Usage: fs_mark'\nexit 1\n")
    for path_of in (fio, fs_mark):
        path_of.chmod(0o755)
    assert run_script(path, FIO, MARKS).programs.installed == {
        "fio": InstalledProgram(path=str(fio), version="fio-3.33"),
        "fs_mark": InstalledProgram(path=str(fs_mark), version=None),
    }


@pytest.mark.slow
@pytest.mark.requires_program("shellcheck")
def test_the_script_passes_shellcheck(tmp_path: Path) -> None:
    script = tmp_path / "facts.sh"
    script.write_text(facts.gather_script(FACTS.values(), [FIO]))
    done = subprocess.run(["shellcheck", "-s", "sh", str(script)], capture_output=True, text=True, check=False)
    assert done.stdout == ""


@pytest.mark.slow
@pytest.mark.parametrize(("programs", "expected"), [(("bash",), "bash"), (("busybox",), "busybox sh"), ((), None)])
def test_the_shell_that_samples_is_one_that_waits_for_a_part_of_a_second(
    tmp_path: Path, programs: tuple[str, ...], expected: str | None
) -> None:
    """That of Debian, dash, cannot."""
    dash = program("dash")
    (tmp_path / "sh").symlink_to(dash)
    for name in ("sleep", "cat", *programs):
        (tmp_path / name).symlink_to(program(name))
    script = FACTS["sampling_shell"].script
    said = subprocess.run([dash, "-c", script], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=True)
    assert (said.stdout.strip() or None) == expected


# --- gathering --------------------------------------------------------------------------------------------------------


def test_gather_takes_one_round_trip_as_the_user_who_logs_in() -> None:
    box = ReplayBox(Box(name="b", host="b", mount_root="/srv/m"), rights="sudo")
    box.when(
        lambda argv: argv[-3:] == ("mountlab-facts", "/srv/m", ""),
        "kernel\t6.1.0\ncpus\t4\nprograms\tfio\t/bin/fio\t\n",
    )
    values = facts.gather(box, [FIO])
    assert (values.kernel.release, values.processors.count, values.rights.level) == ("6.1.0", 4, "sudo")
    assert values.programs.installed == {"fio": InstalledProgram(path="/bin/fio", version=None)}
    assert len(box.calls) == 1
    assert not box.calls[0].root


def test_gather_says_what_failed() -> None:
    with pytest.raises(CommandError, match="the box's facts could not be read"):
        facts.gather(ReplayBox().when(lambda _: True, exit_status=127), [])


@every_row(
    ("keys", "words"), [({}, ("", "")), ({"mount_root": "/srv/m", "output_root": "/srv/o"}, ("/srv/m", "/srv/o"))]
)
def test_the_roots_of_the_box_file_are_what_the_box_is_asked_for(keys: dict[str, str], words: tuple[str, str]) -> None:
    box = ReplayBox(Box(name="b", host="b", **keys))
    box.when(lambda argv: argv[-2:] == words, "/disk/m\n/disk/o\n")
    assert facts.roots(box) == ("/disk/m", "/disk/o")


def test_roots_must_be_absolute() -> None:
    box = ReplayBox(Box(name="b", host="b", mount_root="here"))
    box.when(lambda _: True, "here\n/dev/shm/mountlab-root\n")
    with pytest.raises(BoxError) as caught:
        facts.roots(box)
    assert caught.value.where == "params/boxes/b.yml: mount_root, output_root"
    assert "'here'" in caught.value.got


# --- parsers ----------------------------------------------------------------------------------------------------------


def test_a_recorded_busybox_machine() -> None:
    values = facts.parse_sections(recorded("facts_busybox.txt"))
    assert values.kernel.os == "Debian GNU/Linux 12 (bookworm)"
    assert values.processors.model == "AMD EPYC"
    assert (values.storage.mount_root_fstype, values.storage.mount_root_source) == ("ext4", "/dev/vda")
    assert values.storage.output_root_fstype == "tmpfs"
    assert values.machine.virtualization == "unknown kind"
    vda = next(device for device in values.storage.block_devices if device.name == "vda")
    assert vda.size_bytes == 256 * 1024**3
    assert (vda.scheduler, vda.rotational, vda.mountpoints) == ("mq-deadline", True, None)


def test_lscpu_and_cpuinfo() -> None:
    assert parse_cpu_model(recorded("lscpu.txt")) == "AMD EPYC"
    assert parse_cpu_model("processor\t: 0\nHardware\t: BCM2835\n") == "BCM2835"


def test_meminfo_is_in_kib() -> None:
    text = recorded("meminfo.txt")
    assert meminfo("MemTotal")(text) == 24684096 * 1024
    assert meminfo("SwapTotal")(text) == 0
    with pytest.raises(ValueError, match="unpack"):
        meminfo("Nothing")(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            'NAME="Fedora Linux"\nPRETTY_NAME="Fedora Linux 42 (Server Edition)"\nID=fedora',
            "Fedora Linux 42 (Server Edition)",
        ),
        ("ID=arch\nNAME='Arch Linux'", "Arch Linux"),
        ("ID=alpine", "alpine"),
    ],
)
def test_os_release(text: str, name: str) -> None:
    assert parse_os(text) == name


def test_df_with_a_blank_in_the_device_name() -> None:
    head = "Filesystem     1024-blocks     Used Available Capacity Mounted on\n"
    assert parse_free(head + "//nas/my share  1000  400  600  40% /mnt/a b") == 600 * 1024
    with pytest.raises((ValueError, IndexError)):
        parse_free(head)


@every_row(
    ("directory", "fstype", "source"),
    [
        ("/", "ext4", "/dev/vda"),
        ("/srv/bench", "ext4", "/dev/vda"),
        ("/srv/bench/a b", "ext4", "/dev/loop0"),
        ("/srv/bench/a b/below", "ext4", "/dev/loop0"),
        ("/srv/bench/a bit", "ext4", "/dev/vda"),
        ("/dev/shm", "tmpfs", "tmpfs"),
        ("/dev", "devtmpfs", "devtmpfs"),
    ],
)
def test_the_mount_that_holds_a_directory(directory: str, fstype: str, source: str) -> None:
    mount = parse_holder(f"{directory}\n{recorded('mountinfo.txt')}")
    assert (mount.fstype, mount.source) == (fstype, source)


def test_a_later_mount_covers_an_earlier_one() -> None:
    table = "1 0 8:1 / /m rw - ext4 /dev/a rw\n2 1 8:2 / /m rw - xfs /dev/b rw\n"
    assert parse_holder(f"/m/x\n{table}").fstype == "xfs"


@pytest.mark.slow
@given(st.text(st.characters(min_codepoint=1, max_codepoint=126)))
def test_octal_escapes_of_the_kernel_come_back(path: str) -> None:
    escaped = "".join(f"\\{ord(char):03o}" if char in " \t\n\\" else char for char in path)
    assert unescape(escaped) == path


def test_lsblk() -> None:
    devices = {device.name: device for device in parse_block_devices(recorded("lsblk_b.json"))}
    assert devices["vda"].size_bytes == 256 * 1024**3
    assert devices["vda"].mountpoints == ("/",)
    assert devices["zram0"].mountpoints == ()
    assert devices["loop0"].mountpoints == ("/srv/bench/a b",)
    assert devices["vda"].rotational is True
    assert devices["vda"].logical_sector_bytes == 512


def test_lsblk_of_older_versions_with_partitions() -> None:
    child = {"name": "sda1", "type": "part", "size": "1048576", "rota": "0", "ro": "1", "mountpoint": "/boot"}
    disk = {
        "name": "sda",
        "type": "disk",
        "size": "2097152",
        "rota": "0",
        "ro": "0",
        "mountpoint": None,
        "model": " Q ",
    }
    devices = parse_block_devices(json.dumps({"blockdevices": [{**disk, "children": [child]}]}))
    assert [(d.name, d.parent, d.size_bytes, d.read_only) for d in devices] == [
        ("sda", None, 2097152, False),
        ("sda1", "sda", 1048576, True),
    ]
    assert (devices[0].model, devices[0].rotational, devices[0].path) == ("Q", False, "/dev/sda")
    assert (devices[0].mountpoints, devices[1].mountpoints) == ((), ("/boot",))


def test_where_there_is_no_lsblk_the_same_is_told_of_a_disk() -> None:
    (device,) = parse_block_devices("sda\t4096\t1\t0\t4096\t512\tnone [mq-deadline]\t Q \tS1\n")
    assert device.as_record().keys() == parse_block_devices(recorded("lsblk_b.json"))[0].as_record().keys()
    told = {"name": "sda", "path": "/dev/sda", "type": "disk", "size_bytes": 4096 * 512, "rotational": True}
    told |= {"read_only": False, "model": "Q", "serial": "S1", "logical_sector_bytes": 512, "scheduler": "mq-deadline"}
    assert {key: getattr(device, key) for key in told} == told


@every_row(
    ("text", "kind"),
    [
        ("detected=kvm\ncontainer=\nhypervisor=hypervisor\nflags=flags", "kvm"),
        ("detected=none\nflags=flags", "none"),
        ("detected=\nhypervisor=hypervisor\nflags=flags\nvendor=QEMU\nproduct=Standard PC", "QEMU Standard PC"),
        ("detected=\nhypervisor=hypervisor\nflags=flags", "unknown kind"),
        ("detected=\ncontainer=podman\nflags=flags", "podman"),
        ("detected=\ncontainer=docker\nhypervisor=hypervisor\nvendor=QEMU", "docker on a virtual machine (QEMU)"),
        ("detected=\nhypervisor=\nflags=flags\nvendor=Dell Inc.", "none"),
    ],
)
def test_virtualization(text: str, kind: str) -> None:
    assert parse_virtualization(text) == kind


@every_row(
    ("text", "emulated"),
    [
        ("accelerator=tcg\nmodel=QEMU Virtual CPU", True),
        ("accelerator=kvm\nmodel=AMD EPYC\nhypervisor=hypervisor\ndetected=qemu", False),
        ("accelerator=\nmodel=QEMU TCG CPU version 2.5+\nhypervisor=hypervisor", True),
        ("accelerator=\nmodel=Intel Core Processor (Haswell)\nhypervisor=hypervisor\ndetected=qemu", True),
        (
            "accelerator=\nmodel=AMD EPYC\nhypervisor=\ndetected=qemu",
            False,
        ),  # KVM that hides itself: only DMI says QEMU
        ("accelerator=\nmodel=AMD EPYC\nhypervisor=hypervisor\ndetected=kvm", False),
        ("accelerator=\nmodel=AMD EPYC\nhypervisor=\ndetected=", False),
    ],
)
def test_emulated(text: str, emulated: bool) -> None:
    assert parse_emulated(text) is emulated


def test_a_processor_without_a_name_may_be_emulated() -> None:
    assert facts.parse_sections("emulated\taccelerator=\nemulated\tmodel=\n").machine.emulated is None


def test_a_processor_that_tells_nothing_of_a_hypervisor_is_unknown() -> None:
    assert (
        facts.parse_sections("virtualization\tdetected=\nvirtualization\tvendor=Raspberry\n").machine.virtualization
        is None
    )


# --- what the caveats look at -----------------------------------------------------------------------------------------


@every_row(
    ("lines", "power"),
    [
        ("known", "no battery"),
        ("known\nsupply\tMains\t\t1\t\t\nsupply\tBattery\t\t\tCharging\t80", "mains"),
        ("known\nsupply\tMains\t\t0\t\t\nsupply\tBattery\tSystem\t\tDischarging\t64", "battery (64 %)"),
        ("known\nsupply\tBattery\tDevice\t\tDischarging\t20", "no battery"),
        ("known\nsupply\tBattery\t\t\tFull\t100", "mains"),
    ],
    ids=["none", "charging", "on battery", "of a mouse", "full"],
)
def test_where_the_power_comes_from(lines: str, power: str) -> None:
    assert parse_power(lines) == power


@every_row(
    ("lines", "rate", "what"),
    [
        ("sda\tsata\t6.0 Gbps\t", 600e6, "SATA 6 Gb/s"),
        ("sda\tusb\t480\t", 48e6, "USB 480 Mb/s"),
        ("sda\tpci\t8.0 GT/s PCIe\t4", 8e9 * 128 / 130 * 4 / 8, "PCI Express 8 GT/s x4"),
        ("sda\tpci\t5.0 GT/s PCIe\t2\nsda\tpci\t16.0 GT/s\t16", 1e9, "PCI Express 5 GT/s x2"),
        ("sda\tpci\tUnknown\t255\nsda\tusb\t10000\t", 1.25e9, "USB 10000 Mb/s"),
        ("sda\tusb\t5000\t", 500e6, "USB 5000 Mb/s"),
    ],
)
def test_the_slowest_link_to_a_disk(lines: str, rate: float, what: str) -> None:
    (link,) = parse_links(lines).values()
    assert (link.bytes_per_s, link.what) == (pytest.approx(rate), what)


@every_row("link", ["Unknown\t0", "8.0 GT/s PCIe\t0", "8.0 GT/s PCIe\t63"])
def test_disks_whose_links_do_not_tell_have_none(link: str) -> None:
    with pytest.raises(ValueError, match="no link that tells its speed"):
        parse_links(f"sda\tpci\t{link}\n")


def test_swap_in_use_is_what_is_not_free() -> None:
    assert parse_used_swap("SwapTotal: 1000 kB\nSwapFree: 400 kB") == 600 * 1024

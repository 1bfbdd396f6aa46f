"""Facts that explain why two machines differ: parsers on what kernels print, and what must never be kept."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from facts import known
from installed_programs import program
from mountlab.core.box_facts import FACTS, IdleState
from mountlab.core.box_facts.kernel import WITHHELD, parse_command_line
from mountlab.core.box_facts.parsing import FUNCTIONS
from mountlab.core.box_facts.processors import parse_idle
from mountlab.core.fact_words import fact_text

GIB = 1024**3
NEW = (
    "machine_model", "firmware", "cpu_microcode", "cpu_mitigations", "cpu_frequency", "cpu_idle", "smt", "numa",
    "huge_pages", "swap_areas", "reclaim", "vm_settings", "kernel_build", "kernel_command_line", "kernel_config",
    "security_modules", "session_limits", "disk_settings",
)  # fmt: skip
SECRETS = (
    "3f1c2d4e-50b1", "nova7", "10.20.30.40", "vault.acme", "alice", "hunter2", "luks-", "subvol", "AA:BB", "acme",
    "S4EVNX0M123456", "--token",
)  # fmt: skip
COMMAND_LINE = (
    "BOOT_IMAGE=/boot/acme/vmlinuz-6.1.0 root=UUID=3f1c2d4e-50b1-4d5b-9b43-0a4c5f3a7d10 rootflags=subvol=@alice ro "
    "rd.luks.uuid=luks-3f1c2d4e-50b1-4d5b-9b43-0a4c5f3a7d10 luks-3f1c2d4e-50b1-4d5b-9b43-0a4c5f3a7d10 "
    "ip=10.20.30.40::10.20.30.1:255.255.255.0:nova7:eth0:off nfsroot=vault.acme.example:/exports/nova7 hostname=nova7 "
    "BOOTIF=01-AA:BB:CC:DD:EE:FF ds=nocloud;s=/cidata/alice user=alice password=hunter2 disk=S4EVNX0M123456 "
    "nvme_core.hostid=3f1c2d4e-50b1-4d5b-9b43-0a4c5f3a7d10 systemd.hostname=nova7 serial=123456789 "
    "mitigations=auto,nosmt isolcpus=managed_irq,2-7 transparent_hugepage=madvise nvme.poll_queues=4 quiet "
    "hugepagesz=1G hugepagesz=2M intel_pstate=passive -- --token hunter2 mitigations=off"
)


def test_what_a_parameter_of_the_kernel_may_tell_of_machines_and_people_is_never_kept() -> None:
    kept = parse_command_line(COMMAND_LINE)
    assert [secret for secret in SECRETS if secret.lower() in str(kept).lower()] == []
    assert "123456789" not in str(kept)
    assert {name for name, value in kept.items() if value == WITHHELD} >= {"root", "ip", "password", "hostname"}


def test_what_parameters_of_the_kernel_choose_is_kept() -> None:
    kept = parse_command_line(COMMAND_LINE)
    told = {
        "mitigations": "auto,nosmt", "isolcpus": "managed_irq,2-7", "transparent_hugepage": "madvise",
        "nvme.poll_queues": "4", "quiet": "set", "ro": "set", "hugepagesz": "1G, 2M", "intel_pstate": "passive",
    }  # fmt: skip
    assert {name: kept[name] for name in told} == told


def test_no_serial_number_and_no_uuid_of_the_machine_is_read() -> None:
    texts = " ".join(FACTS[key].script for key in NEW)
    assert "serial" not in texts
    assert "uuid" not in texts.lower()
    assert "asset" not in texts


# --- on a tree of files that stands for a machine ---------------------------------------------------------------------


def printed(tree: Path, key: str, path: str = "") -> str:
    """What the script of a fact prints where /sys, /proc and /boot lie below `tree`."""
    script = f"{path}\n{FUNCTIONS}{FACTS[key].script}"
    there = re.sub(r"(?<![\w}])/(sys|proc|boot|lib/modules)/", rf"{tree}/\1/", script)
    done = subprocess.run(["sh", "-c", there], capture_output=True, text=True, check=False)
    return done.stdout.strip("\n")


def gathered(tree: Path, key: str) -> Any:
    """The fact that is made of it, as run.json has it."""
    fact = FACTS[key]
    return known(**{key: fact.parse(printed(tree, key))}).as_record()[key]


def files(tree: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tree


MOUNTED = "30 25 0:26 {root} /sys/fs/cgroup rw - {rest}\n"


def limits(tree: Path, *, own: str, mounted: str, **more: str) -> dict[str, object]:
    files(tree, {"proc/self/cgroup": own, "proc/self/status": "Cpus_allowed_list:\t0-1\n", **more})
    files(tree, {"sys/devices/system/cpu/online": "0-3\n"})
    table = mounted.replace(" /sys/", f" {tree}/sys/")
    files(tree, {"proc/self/mountinfo": table})
    return gathered(tree, "session_limits")


def test_the_smallest_limit_of_the_session_and_of_what_is_above_it_holds(tmp_path: Path) -> None:
    found = limits(
        tmp_path,
        own="0::/a/b\n",
        mounted=MOUNTED.format(root="/", rest="cgroup2 cgroup2 rw"),
        **{
            "sys/fs/cgroup/cgroup.controllers": "cpu io memory pids",
            "sys/fs/cgroup/a/memory.max": f"{4 * GIB}\n",
            "sys/fs/cgroup/a/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/a/b/memory.max": "max\n",
            "sys/fs/cgroup/a/b/memory.high": f"{3 * GIB}\n",
            "sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
            "sys/fs/cgroup/a/b/pids.max": "max\n",
            "sys/fs/cgroup/a/b/io.max": "8:0 rbps=max wbps=1048576 riops=max wiops=max\n",
            "sys/fs/cgroup/other/memory.max": "4096\n",
        },
    )
    assert found == {
        "memory_bytes": 4 * GIB, "memory_high_bytes": 3 * GIB, "processors": 1.5, "processors_allowed": "0-1",
        "tasks": "no limit", "disks": "8:0 wbps=1048576",
    }  # fmt: skip


def test_limits_of_the_first_version_of_control_groups(tmp_path: Path) -> None:
    mounted = "".join(
        MOUNTED.format(root=root, rest=f"cgroup cgroup rw,{names}").replace("/cgroup ", f"/cgroup/{names} ", 1)
        for root, names in (("/", "memory"), ("/docker/c1", "cpu,cpuacct"), ("/", "pids"), ("/", "blkio"))
    )
    found = limits(
        tmp_path,
        own="4:memory:/m\n3:cpu,cpuacct:/docker/c1\n2:pids:/\n1:blkio:/\n0::/\n",
        mounted=mounted,
        **{
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/memory/m/memory.limit_in_bytes": f"{GIB}\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "50000\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/pids/pids.max": "512\n",
            "sys/fs/cgroup/blkio/blkio.throttle.read_bps_device": "8:0 1048576\n",
        },
    )
    told = {"memory_bytes": GIB, "processors": 0.5, "tasks": 512, "disks": "8:0 rbps=1048576"}
    assert {key: found[key] for key in told} == told


def test_a_machine_that_shows_no_control_group_has_no_limits_that_are_known(tmp_path: Path) -> None:
    assert limits(tmp_path, own="0::/\n", mounted="") == {"processors_allowed": "0-1"}


def test_processors_that_are_all_allowed_are_no_list(tmp_path: Path) -> None:
    files(tmp_path, {"sys/devices/system/cpu/online": "0-1\n"})
    own = {"proc/self/status": "Cpus_allowed_list:\t0-1\n", "proc/self/cgroup": "", "proc/self/mountinfo": ""}
    found = gathered(files(tmp_path, own), "session_limits")
    assert found == {"processors_allowed": "all"}


@pytest.mark.parametrize("shell", [["sh"], ["busybox", "sh"]], ids=" ".join)
def test_settings_of_the_kernel_come_whole_in_any_shell(shell: list[str]) -> None:
    """The `read` of busybox takes a file below /proc/sys in bytes, and gets one digit."""
    script = FUNCTIONS + FACTS["vm_settings"].script
    done = subprocess.run([program(shell[0]), *shell[1:], "-c", script], capture_output=True, text=True, check=True)
    expected = Path("/proc/sys/vm/dirty_expire_centisecs").read_text().strip()
    assert FACTS["vm_settings"].parse(done.stdout)["dirty_expire_centisecs"] == int(expected)


def test_the_configuration_of_the_kernel_is_a_hash_and_the_options_that_matter(tmp_path: Path) -> None:
    release = subprocess.run(["uname", "-r"], capture_output=True, text=True, check=True).stdout.strip()
    text = 'CONFIG_DEFAULT_HOSTNAME="nova7"\nCONFIG_HZ=250\nCONFIG_KASAN=y\n# CONFIG_LRU_GEN is not set\nCONFIG_X=m\n'
    files(tmp_path, {f"boot/config-{release}": text})
    assert "nova7" not in printed(tmp_path, "kernel_config")
    found = gathered(tmp_path, "kernel_config")
    expected = subprocess.run(["sha256sum"], input=text, capture_output=True, text=True, check=True).stdout[:16]
    assert found["sha256"] == expected
    assert (found["HZ"], found["KASAN"], found["LRU_GEN"], found["DAMON"]) == ("250", "y", "n", "n")
    assert known(kernel_config=found).kernel.debug_options == ["KASAN"]
    assert "X" not in found


def test_a_machine_of_a_data_centre(tmp_path: Path) -> None:
    dmi, cpu = "sys/class/dmi/id", "sys/devices/system/cpu"
    files(
        tmp_path,
        {
            f"{dmi}/sys_vendor": "Dell Inc.\n", f"{dmi}/product_name": "PowerEdge  R650\n",
            f"{dmi}/product_version": "Not Specified\n", f"{dmi}/product_serial": "ABC1234\n",
            f"{dmi}/product_uuid": "3f1c2d4e-50b1-4d5b-9b43-0a4c5f3a7d10\n", f"{dmi}/bios_vendor": "Dell Inc.\n",
            f"{dmi}/bios_version": "1.10.2\n", f"{dmi}/bios_date": "02/14/2024\n",
            f"{cpu}/vulnerabilities/spectre_v2": "Mitigation: Enhanced / Automatic IBRS; RSB filling\n",
            f"{cpu}/vulnerabilities/retbleed": "Vulnerable\n",
            f"{cpu}/cpu0/cpufreq/scaling_driver": "intel_pstate\n", f"{cpu}/cpu0/cpufreq/scaling_max_freq": "3500000\n",
            f"{cpu}/intel_pstate/no_turbo": "1\n", f"{cpu}/intel_pstate/status": "active\n",
            f"{cpu}/cpuidle/current_driver": "intel_idle\n", f"{cpu}/cpuidle/current_governor": "menu\n",
            f"{cpu}/cpu0/cpuidle/state0/name": "POLL\n", f"{cpu}/cpu0/cpuidle/state0/latency": "0\n",
            f"{cpu}/cpu0/cpuidle/state1/name": "C1\n", f"{cpu}/cpu0/cpuidle/state1/latency": "1\n",
            f"{cpu}/cpu0/cpuidle/state2/name": "C6\n", f"{cpu}/cpu0/cpuidle/state2/latency": "133\n",
            f"{cpu}/cpu0/cpuidle/state0/disable": "0\n", f"{cpu}/cpu0/cpuidle/state1/disable": "0\n",
            f"{cpu}/cpu0/cpuidle/state2/disable": "1\n", f"{cpu}/cpu0/cpuidle/state0/residency": "0\n",
            f"{cpu}/cpu0/cpuidle/state1/residency": "2\n", f"{cpu}/cpu0/cpuidle/state2/residency": "600\n",
            "sys/devices/system/node/online": "0-1\n", "proc/sys/kernel/numa_balancing": "1\n",
            "sys/block/nvme0n1/device/firmware_rev": "2.0.1 \n", "sys/block/nvme0n1/device/serial": "S4EVNX0M123456\n",
            "sys/block/nvme0n1/queue/read_ahead_kb": "128\n", "sys/block/nvme0n1/queue/wbt_lat_usec": "0\n",
            "sys/block/loop0/queue/read_ahead_kb": "128\n",
        },
    )  # fmt: skip
    model = gathered(tmp_path, "machine_model")
    assert model == {"maker": "Dell Inc.", "product": "PowerEdge R650"}
    firmware = gathered(tmp_path, "firmware")
    assert firmware == {"maker": "Dell Inc.", "version": "1.10.2", "date": "02/14/2024"}
    weak = gathered(tmp_path, "cpu_mitigations")
    assert (
        fact_text("cpu_mitigations", weak["spectre_v2"], "spectre_v2") == "on (Enhanced / Automatic IBRS; RSB filling)"
    )
    assert fact_text("cpu_mitigations", weak["retbleed"], "retbleed") == "off"
    frequency = gathered(tmp_path, "cpu_frequency")
    assert frequency == {"driver": "intel_pstate", "mode": "active", "boost": "off", "highest_hz": 3_500_000_000}
    idle = gathered(tmp_path, "cpu_idle")
    assert (idle["deepest"], idle["states"], idle["switched_off"]) == ("C1 (1 µs)", "POLL, C1", "C6")
    assert known(cpu_idle=idle).idle_states == [
        IdleState("POLL", 0.0, 0.0), IdleState("C1", 1e-6, 2e-6)
    ]  # fmt: skip
    assert gathered(tmp_path, "numa") == {"nodes": 2, "balancing": "on"}
    disks = gathered(tmp_path, "disk_settings")
    disk = {"firmware": "2.0.1", "read_ahead_bytes": 128 * 1024, "writeback_throttling": "off"}
    assert disks == {"nvme0n1": disk}


@pytest.mark.parametrize(("limit", "kept"), [("  2000000000", None), ("0", "0 µs"), (" 20", "20 µs")])
def test_a_limit_of_the_latency_is_kept_where_somebody_asks_for_one(limit: str, kept: str | None) -> None:
    assert parse_idle(f"state0 name\tPOLL\nlimit\t{limit}\n").limit == kept


def test_drives_tell_their_temperature(tmp_path: Path) -> None:
    """Of an NVMe drive and of a disk by drivetemp; other sensors are not asked, which may take long."""
    nvme, disk, board = (f"sys/class/hwmon/hwmon{number}" for number in (1, 2, 3))
    files(
        tmp_path,
        {
            f"{nvme}/name": "nvme\n", f"{nvme}/temp1_max": "81850\n", f"{nvme}/temp1_crit": "84850\n",
            f"{disk}/name": "drivetemp\n", f"{disk}/temp1_max": "60000\n", f"{board}/name": "coretemp\n",
            f"{board}/temp1_max": "90000\n", "sys/devices/pci0/nvme/nvme0/model": "x\n",
            "sys/devices/ata1/block/sda/size": "1\n", "sys/devices/board/name": "x\n",
        },
    )  # fmt: skip
    for sensor, device in ((nvme, "pci0/nvme/nvme0"), (disk, "ata1"), (board, "board")):
        (tmp_path / sensor / "device").symlink_to(tmp_path / "sys/devices" / device)
    kept = gathered(tmp_path, "drive_sensors")
    for each in kept.values():
        each.pop("log", None)
    places = {drive: each.pop("file").removeprefix(f"{tmp_path}/") for drive, each in kept.items()}
    assert kept == {"nvme0": {"warning_celsius": 81.85, "critical_celsius": 84.85}, "sda": {"warning_celsius": 60.0}}
    assert places == {"nvme0": f"{nvme}/temp1_input", "sda": f"{disk}/temp1_input"}
    assert known(drive_sensors=None).storage.sensor_files == []


def test_the_log_of_a_drive_is_asked_for_by_root_only(tmp_path: Path) -> None:
    files(tmp_path, {"sys/class/hwmon/hwmon1/name": "nvme\n", "sys/devices/nvme0/model": "x\n", "nvme": "#!/bin/sh\n"})
    (tmp_path / "sys/class/hwmon/hwmon1/device").symlink_to(tmp_path / "sys/devices/nvme0")
    (tmp_path / "nvme").chmod(0o755)
    sensors = FACTS["drive_sensors"].parse(printed(tmp_path, "drive_sensors", f"PATH={tmp_path}:$PATH"))
    log = {"nvme0": ("nvme", "smart-log", "-o", "json", "/dev/nvme0")}
    assert known(drive_sensors=sensors, rights="sudo").drive_logs == log
    assert known(drive_sensors=sensors, rights="none").drive_logs == {}
    assert known(rights="root").drive_logs == {}


def test_memory_that_is_taken_back_and_swap(tmp_path: Path) -> None:
    mm, damon = "sys/kernel/mm", "sys/kernel/mm/damon/admin/kdamonds/0"
    files(
        tmp_path,
        {
            f"{mm}/transparent_hugepage/enabled": "always [madvise] never\n",
            f"{mm}/lru_gen/enabled": "0x0007\n", f"{mm}/ksm/run": "0\n", f"{damon}/state": "on\n",
            f"{damon}/contexts/0/schemes/0/action": "pageout\n", "sys/module/zswap/parameters/enabled": "Y\n",
            "sys/module/zswap/parameters/compressor": "zstd\n", "sys/block/zram0/comp_algorithm": "lzo [lz4]\n",
            "proc/swaps": "Filename Type Size Used Priority\n/dev/zram0 partition 1048576 0 100\n"
            "/home/alice/swap file 2048 0 -2\n", "proc/2/comm": "sh\n",
        },
    )  # fmt: skip
    huge = gathered(tmp_path, "huge_pages")
    assert huge == {"enabled": "madvise"}
    reclaim = gathered(tmp_path, "reclaim")
    assert reclaim == {"lru_gen": "on (0x0007)", "damon": "running (pageout)", "same_page_merging": "off"}
    swap = gathered(tmp_path, "swap_areas")
    assert swap == {"areas": "zram 1,024 MiB, file 2 MiB", "zram": "lz4", "zswap": "on (zstd)"}


@pytest.mark.parametrize(
    ("device", "features", "said"),
    [("0x0005", "011001", "on"), ("0x0005", "011000", "off"), ("0x0002", "011001", None)],
)
def test_a_balloon_says_whether_free_pages_go_back_to_the_host(
    tmp_path: Path, device: str, features: str, said: str | None
) -> None:
    place = "sys/bus/virtio/devices/virtio0"
    files(tmp_path, {f"{place}/device": f"{device}\n", f"{place}/features": f"{features}{'0' * 58}\n"})
    files(tmp_path, {"sys/kernel/mm/ksm/run": "0\n"})
    found = gathered(tmp_path, "reclaim")
    assert found.get("free_page_reporting") == said


RELEASE = os.uname().release


@pytest.mark.parametrize(
    ("texts", "able"),
    [
        ({f"lib/modules/{RELEASE}/modules.dep": ""}, set()),
        (
            {
                f"lib/modules/{RELEASE}/modules.dep": "kernel/drivers/md/raid1.ko.xz: kernel/drivers/md/md-mod.ko.xz\n"
                "kernel/drivers/md/dm-thin-pool.ko: kernel/drivers/md/dm-crypt.ko\nextra/pmbd.ko.zst:\n",
                f"lib/modules/{RELEASE}/modules.builtin": "kernel/drivers/md/linear.ko\nkernel/drivers/md/md-mod.ko\n",
            },
            {"raid1", "dm-thin-pool", "pmbd", "linear"},
        ),
        (
            {f"lib/modules/{RELEASE}/modules.dep": "", "sys/module/dm_crypt/refcnt": "0\n",
             "sys/class/zram-control/hot_add": "0\n", "sys/module/raid6_pq/x": ""},
            {"dm-crypt", "zram"},
        ),
        (
            {"proc/config": "CONFIG_MD_RAID456=y\nCONFIG_MD_LINEAR=m\n# CONFIG_DM_CACHE is not set\nCONFIG_ZRAM=y\n"
             "CONFIG_DM_THIN_PROVISIONING=y\nCONFIG_DM_SNAPSHOT=y\nCONFIG_RAID6_PQ=y\nCONFIG_BLK_DEV_DM=y\n"},
            {"raid456", "zram", "dm-thin-pool", "dm-snapshot", "dm-mod"},
        ),
    ],
    ids=["none", "modules", "in use", "configuration"],
)  # fmt: skip
def test_the_devices_that_a_kernel_can_make(tmp_path: Path, texts: dict[str, str], able: set[str]) -> None:
    files(tmp_path, texts)
    for config in (tmp_path / "proc").glob("config"):
        config.with_suffix(".gz").write_bytes(gzip.compress(config.read_bytes()))
    assert set(gathered(tmp_path, "kernel_features")) == {"loop"} | able


def test_a_kernel_without_a_list_of_its_modules_may_make_any_device(tmp_path: Path) -> None:
    files(tmp_path, {"sys/module/dm_crypt/refcnt": "0\n"})
    assert gathered(tmp_path, "kernel_features") == []


@pytest.mark.parametrize(("threads", "said"), [("kdamond.0\n", "running"), ("kswapd0\n", "not running")])
def test_a_user_who_may_not_read_its_settings_sees_the_thread_of_damon(tmp_path: Path, threads: str, said: str) -> None:
    files(tmp_path, {"proc/2/comm": "kthreadd\n", "proc/77/comm": threads})
    assert gathered(tmp_path, "reclaim") == {"damon": said}


def test_a_machine_that_tells_nothing_has_no_such_fact(tmp_path: Path) -> None:
    """As in a container without /sys: every script is quiet, and every fact is absent."""
    keys = [key for key in NEW if key != "kernel_build"]
    assert {key: printed(tmp_path, key) for key in keys} == dict.fromkeys(keys, "")

"""What the box is: kernel, processor, memory, devices, programs.

One entry of `FACTS` is one fact: the shell text that prints it, how that is parsed, and how it is shown. A fact whose
text prints nothing, or something that does not parse, is None: unknown. All of them are read in one round trip.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mountlab.box import fact_parsers as parsers
from mountlab.box import machine_parsers as machine
from mountlab.box import machine_scripts as scripts
from mountlab.box.connection import BoxConnection, checked
from mountlab.core.errors import BoxError
from mountlab.core.model import Program
from mountlab.core.units import format_bytes

Facts = dict[str, Any]
"""Name of a fact to its value, as JSON can hold it; None where the box does not tell."""

UNKNOWN = "unknown"
GATHER_TIMEOUT_S = 300.0
"""The script starts some hundred programs: an emulated guest on a busy machine has taken over a minute for them."""


@dataclass(frozen=True)
class Fact:
    """One thing to know of a box.

    `script` is POSIX sh with $mount_root, $output_root and $user set; its standard error is thrown away. `parse` gets
    what it printed, without blank space around it, and never ''; a ValueError from it means unknown.
    """

    name: str
    """Its words for people are in mountlab.core.fact_words."""
    script: str
    parse: Callable[[str], Any] = str
    show: Callable[[Any], str] = str


ROOTS_SCRIPT = r"""
user=$(id -un)
mount_root=${1:-/var/tmp/mountlab-$user}
output_root=${2:-}
if [ -z "$output_root" ]; then
    output_root=$mount_root/out
    if [ -d /dev/shm ] && [ -w /dev/shm ]; then output_root=/dev/shm/mountlab-$user; fi
fi
# Without a link above it: the kernel names mount points so. A root that is a link itself stays one: open.sh refuses it.
resolved() {
    above=${1%/*} last=${1##*/}
    while [ ! -d "$above/" ]; do
        last=${above##*/}/$last
        above=${above%/*}
    done
    above=$(CDPATH='' cd -- "$above/" 2>/dev/null && pwd -P) || { printf '%s' "$1"; return; }
    printf '%s/%s' "${above%/}" "$last"
}
case $mount_root in /*) mount_root=$(resolved "$mount_root") ;; esac
case $output_root in /*) output_root=$(resolved "$output_root") ;; esac
"""
"""Where our directories are: $1 and $2 are mount_root and output_root of the box file, '' where it has none."""

_FUNCTIONS = r"""
# The nearest directory to $1 that exists: $1 itself, or the one in which it would be made.
existing() {
    directory=$1
    while [ ! -d "$directory" ]; do directory=$(dirname -- "$directory"); done
    (CDPATH='' cd -- "$directory" && pwd -P)
}
free_kib() { df -P -k "$(existing "$1")"; }
holder() { existing "$1"; cat /proc/self/mountinfo; }
newline='
'
# What a program says that has no version: of BusyBox's it is the help, which names it.
unversioned() { case $version in *BusyBox\ v*) version=BusyBox${version#*BusyBox} ;; *) version='' ;; esac; }
# Where $1 is BusyBox, the version is BusyBox's, whatever the program makes of the option: mount lists all mounts.
of_busybox() { case ${1##*/} in busybox*) version=$("$1" 2>&1 </dev/null) ;; esac; }
# Print each line of $2 behind $1 and a tab. There are many facts: it takes no process of its own.
section() {
    IFS=$newline
    set -f
    for line in $2; do printf '%s\t%s\n' "$1" "$line"; done
    set +f
    unset IFS
}
"""


def gather(connection: BoxConnection, programs: Iterable[Program]) -> Facts:
    """Return everything that FACTS lists, and path and version of each of `programs` that the box has.

    One round trip, as the user who logs in. Raises CommandError or BoxError when the box cannot run the script.
    """
    script = gather_script(FACTS, programs)
    argv = ("sh", "-c", script, "mountlab-facts", connection.box.mount_root or "", connection.box.output_root or "")
    printed = checked(connection, argv, what="the box's facts could not be read", timeout_s=GATHER_TIMEOUT_S).text
    return {**parse_sections(printed), "rights": connection.rights}


def roots(connection: BoxConnection) -> tuple[str, str]:
    """(mount_root, output_root) of the box, as `gather` finds them, in a round trip of its own."""
    script = ROOTS_SCRIPT + 'printf "%s\\n%s\\n" "$mount_root" "$output_root"'
    argv = ("sh", "-c", script, "mountlab-roots", connection.box.mount_root or "", connection.box.output_root or "")
    lines = checked(connection, argv, what="the box's directories could not be found").text.splitlines()
    if len(lines) != 2 or not all(line.startswith("/") for line in lines):
        raise BoxError(
            "the box's directories must be absolute paths",
            where=f"params/boxes/{connection.box.name}.yml: mount_root, output_root",
            got=" and ".join(map(repr, lines)),
        )
    return lines[0], lines[1]


def gather_script(facts: Iterable[Fact], programs: Iterable[Program]) -> str:
    """Return one script for all. Each line of output begins with the name of its fact and a tab: nothing a fact prints
    can be taken for another's."""
    blocks = [_block(fact.name, fact.script) for fact in facts]
    blocks += [_block("programs", _program_script(program)) for program in programs]
    return "\n".join([ROOTS_SCRIPT, _FUNCTIONS, scripts.FUNCTIONS, *blocks, "exit 0", ""])


def _block(name: str, script: str) -> str:
    return f'section {name} "$({{\n{script.strip()}\n}} 2>/dev/null)"'


def _program_script(program: Program) -> str:
    places = [f'PATH="$PATH:$(echo {place} | tr " " :)"' for place in program.places]
    line = '"${version%%"$newline"*}"'
    if program.version_word:
        line = f'"$(printf "%s" "$version" | grep -m 1 -- {shlex.quote(program.version_word)})"'
    return "\n".join(
        [
            *places,
            f"if path=$(command -v {shlex.quote(program.name)}); then",
            f"    version=$({shlex.join(program.version)} 2>&1 </dev/null) || unversioned",
            '    [ ! -h "$path" ] || of_busybox "$(readlink -f "$path")"',
            f'    printf "%s\\t%s\\t%s\\n" {shlex.quote(program.name)} "$path" {line}',
            "fi",
        ]
    )


def parse_sections(printed: str) -> Facts:
    """Return values of all facts from what `gather_script` printed."""
    texts: dict[str, list[str]] = {name: [] for name in (*(fact.name for fact in FACTS), "programs")}
    for line in printed.split("\n"):
        name, tab, rest = line.partition("\t")
        if tab and name in texts:
            texts[name].append(rest)
    values = {fact.name: _value(fact.parse, texts[fact.name]) for fact in FACTS}
    return {**values, "programs": parsers.parse_programs("\n".join(texts["programs"]))}


def _value(parse: Callable[[str], Any], lines: list[str]) -> Any:
    text = "\n".join(lines).strip("\n ")
    try:
        return parse(text) if text else None
    except ValueError:
        return None


def show(name: str, value: object) -> str:
    """Return a fact as a report shows it. Unknown names are shown as they are; None is 'unknown'."""
    if value is None:
        return UNKNOWN
    fact = _BY_NAME.get(name)
    return fact.show(value) if fact else str(value)


# --- how they are shown -----------------------------------------------------------------------------------------------


def _show_bytes(value: int) -> str:
    return format_bytes(float(value))


def _show_list(values: Iterable[str]) -> str:
    return ", ".join(values) or "none"


def _show_devices(devices: Iterable[Mapping[str, Any]]) -> str:
    return "; ".join(_show_device(device) for device in devices if device["size_bytes"]) or "none"


def _show_device(device: Mapping[str, Any]) -> str:
    kind = {True: "rotational", False: "not rotational", None: None}[device["rotational"]]
    parts = [device["model"], _show_bytes(device["size_bytes"]), kind, device["scheduler"]]
    return f"{device['path']} ({', '.join(part for part in parts if part)})"


def _show_links(links: Mapping[str, Mapping[str, Any]]) -> str:
    return "; ".join(f"{disk}: {link['what']}" for disk, link in links.items())


def show_programs(programs: Mapping[str, Mapping[str, str | None]]) -> str:
    return "; ".join(f"{name}: {found['version'] or UNKNOWN}" for name, found in programs.items()) or "none"


# --- the registry -----------------------------------------------------------------------------------------------------

_LSBLK_COLUMNS = "NAME,PATH,TYPE,SIZE,ROTA,RO,MODEL,SERIAL,{mounts},PHY-SEC,LOG-SEC,SCHED,TRAN"
_BLOCK_DEVICES = rf"""
lsblk -J -b -o {_LSBLK_COLUMNS.format(mounts="MOUNTPOINTS")} ||
    lsblk -J -b -o {_LSBLK_COLUMNS.format(mounts="MOUNTPOINT")} ||
    for device in /sys/block/*; do
        [ -e "$device/size" ] || continue
        line=${{device##*/}}
        for file in size queue/rotational ro queue/physical_block_size queue/logical_block_size queue/scheduler \
            device/model device/serial; do
            line="$line	$(tr -d '\t' <"$device/$file")"
        done
        printf '%s\n' "$line"
    done
"""
_VIRTUALIZATION = r"""
printf 'detected=%s\n' "$(systemd-detect-virt)"
printf 'container=%s\n' "$(tr '\0' '\n' </proc/1/environ | sed -n 's/^container=//p')"
[ ! -e /.dockerenv ] || echo container=docker
printf 'hypervisor=%s\n' "$(grep -m 1 -o -w hypervisor /proc/cpuinfo)"
printf 'flags=%s\n' "$(grep -m 1 -o '^flags' /proc/cpuinfo)"
printf 'vendor=%s\n' "$(cat /sys/class/dmi/id/sys_vendor)"
printf 'product=%s\n' "$(cat /sys/class/dmi/id/product_name)"
"""
_POWER = r"""
cd /sys/class/power_supply && {
    echo known
    for supply in *; do
        [ -e "$supply/type" ] || continue
        line=supply
        for file in type scope online status capacity; do line="$line	$(cat "$supply/$file")"; done
        printf '%s\n' "$line"
    done
}
"""
_LINKS = r"""
for disk in /sys/block/*; do
    at=$(CDPATH='' cd -- "$disk/device" && pwd -P) || continue
    while [ "${at#/sys/devices/}" != "$at" ]; do
        [ ! -e "$at/max_link_speed" ] ||
            printf '%s\tpci\t%s\t%s\n' "${disk##*/}" "$(cat "$at/max_link_speed")" "$(cat "$at/max_link_width")"
        for file in "$at"/link*/ata_link/link*/sata_spd; do
            [ ! -e "$file" ] || printf '%s\tsata\t%s\t\n' "${disk##*/}" "$(cat "$file")"
        done
        [ ! -e "$at/busnum" ] || printf '%s\tusb\t%s\t\n' "${disk##*/}" "$(cat "$at/speed")"
        at=${at%/*}
    done
done
"""
_EMULATED = r"""
printf 'accelerator=%s\n' "$(tr ' ' '\n' </proc/cmdline | sed -n 's/^mountlab.accelerator=//p')"
printf 'model=%s\n' "$(sed -n '/^model name/{s/^[^:]*: *//p;q;}' /proc/cpuinfo)"
printf 'hypervisor=%s\n' "$(grep -m 1 -o -w hypervisor /proc/cpuinfo)"
printf 'detected=%s\n' "$(systemd-detect-virt --vm)"
"""
_FEATURES = """
for module in zram pmbd; do
    if [ -e "/sys/module/$module" ] || [ -e "/sys/class/$module-control" ] || modinfo "$module" >/dev/null; then
        echo "$module"
    fi
done
echo loop
"""
"""`loop` is what every Linux can have: so the list is never empty, which would mean unknown."""
_FILESYSTEMS = r"""
awk '{ print $NF }' /proc/filesystems
sed -n 's/^alias fs-\([^ ]*\) .*/\1/p' "/lib/modules/$(uname -r)/modules.alias"
"""
_PACKAGE_MANAGER = r"""
for manager in apt-get dnf zypper pacman; do
    if command -v "$manager" >/dev/null; then echo "${manager%-get}"; break; fi
done
"""
_SAMPLING = r"""
# shellcheck disable=SC2016 # the words of another shell
for shell in bash sh 'busybox sh' ksh mksh; do
    took=$(sleep 0.1 | $shell -c '
        read -r began _ < /proc/uptime
        read -r -t 0.03 never
        read -r ended _ < /proc/uptime
        read -r -d "" text < /proc/loadavg
        [ -z "$text" ] || echo "$((${ended%.*}${ended#*.} - ${began%.*}${began#*.}))"' 2>&1)
    case $took in 0 | 1 | '' | *[!0-9]*) ;; *) echo "$shell"; break ;; esac
done
"""
"""A shell whose `read` waits for a part of a second, and reads a whole file: what sampler.sh is run by."""

FACTS: tuple[Fact, ...] = (
    Fact("hostname", "uname -n"),
    Fact("kernel", "uname -r"),
    Fact("os", "cat /etc/os-release || cat /usr/lib/os-release", parsers.parse_os),
    Fact("machine", "uname -m"),
    Fact("cpu_model", "lscpu || cat /proc/cpuinfo", parsers.parse_cpu_model),
    Fact("cpus", "getconf _NPROCESSORS_ONLN || nproc", int),
    Fact("cpu_governor", "cat /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor",
        parsers.parse_governor),
    Fact("memory_bytes", "cat /proc/meminfo", parsers.meminfo("MemTotal"), _show_bytes),
    Fact("memory_available_bytes", "cat /proc/meminfo", parsers.meminfo("MemAvailable"),
        _show_bytes),
    Fact("swap_bytes", "cat /proc/meminfo", parsers.meminfo("SwapTotal"), _show_bytes),
    Fact("swap_used_bytes", "cat /proc/meminfo", parsers.parse_used_swap, _show_bytes),
    Fact("page_bytes", "getconf PAGESIZE", int, _show_bytes),
    Fact("power", _POWER, parsers.parse_power),
    Fact("virtualization", _VIRTUALIZATION, parsers.parse_virtualization),
    Fact("emulated", _EMULATED, parsers.parse_emulated, lambda value: "yes" if value else "no"),
    Fact("clocksource", "cat /sys/devices/system/clocksource/clocksource0/current_clocksource"),
    Fact("boot_id", "cat /proc/sys/kernel/random/boot_id"),
    Fact("user", "id -un"),
    Fact("uid", "id -u", int),
    Fact("mount_root", 'printf "%s" "$mount_root"'),
    Fact("mount_root_free_bytes", 'free_kib "$mount_root"', parsers.parse_free,
        _show_bytes),
    Fact("mount_root_fstype", 'holder "$mount_root"',
        lambda text: parsers.parse_holder(text).fstype),
    Fact("mount_root_source", 'holder "$mount_root"',
        lambda text: parsers.parse_holder(text).source),
    Fact("output_root", 'printf "%s" "$output_root"'),
    Fact("output_root_free_bytes", 'free_kib "$output_root"', parsers.parse_free,
        _show_bytes),
    Fact("output_root_fstype", 'holder "$output_root"',
        lambda text: parsers.parse_holder(text).fstype),
    Fact("kernel_filesystems", _FILESYSTEMS, parsers.parse_words,
        _show_list),
    Fact("kernel_features", _FEATURES, parsers.parse_words,
        _show_list),
    Fact("may_mount", "sed -n 's/^CapBnd:[[:space:]]*//p' /proc/self/status", parsers.parse_may_mount,
        lambda value: "yes" if value else "no, not even root: CAP_SYS_ADMIN is missing"),
    Fact("loop_devices", "if [ -e /dev/loop-control ]; then echo 1; else echo 0; fi",
        lambda text: text == "1", lambda value: "available" if value else "not available"),
    Fact("block_devices", _BLOCK_DEVICES, parsers.parse_block_devices, _show_devices),
    Fact("disk_links", _LINKS, parsers.parse_links, _show_links),
    Fact("package_manager", _PACKAGE_MANAGER),
    Fact("machine_model", scripts.MODEL, machine.parse_model),
    Fact("firmware", scripts.FIRMWARE, machine.parse_firmware),
    Fact("cpu_microcode", scripts.MICROCODE, machine.parse_different),
    Fact("cpu_mitigations", scripts.MITIGATIONS, machine.parse_mitigations),
    Fact("cpu_frequency", scripts.FREQUENCY, machine.parse_frequency),
    Fact("cpu_idle", scripts.IDLE, machine.parse_idle),
    Fact("smt", "cat /sys/devices/system/cpu/smt/control", machine.parse_smt),
    Fact("numa", scripts.NUMA, machine.parse_numa),
    Fact("huge_pages", scripts.HUGE_PAGES, machine.parse_huge_pages),
    Fact("swap_areas", scripts.SWAP, machine.parse_swap),
    Fact("reclaim", scripts.RECLAIM, machine.parse_reclaim),
    Fact("vm_settings", scripts.VM_SETTINGS, machine.parse_values),
    Fact("kernel_build", scripts.BUILD),
    Fact("kernel_command_line", scripts.COMMAND_LINE, machine.parse_command_line),
    Fact("kernel_config", scripts.KERNEL_CONFIG, machine.parse_kernel_config),
    Fact("security_modules", scripts.SECURITY, lambda text: text.split("\t")[-1]),
    Fact("session_limits", scripts.LIMITS, machine.parse_limits),
    Fact("disk_settings", scripts.DISKS, machine.parse_disks),
    Fact("drive_sensors", scripts.SENSORS, machine.parse_sensors),
    Fact("sampling_shell", _SAMPLING),
)  # fmt: skip
"""Every fact. `rights` and `programs` are added by `gather`."""

_BY_NAME = {fact.name: fact for fact in FACTS} | {
    "programs": Fact("programs", "", show=show_programs),
    "rights": Fact("rights", ""),
}

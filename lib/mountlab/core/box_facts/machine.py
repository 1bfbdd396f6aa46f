"""Facts about the machine as a whole: its name, its maker, its firmware, whether it is virtual, its power."""

from __future__ import annotations

import re
from typing import ClassVar

from mountlab.core.box_facts.base import FactPart, Group, fact
from mountlab.core.box_facts.parsing import key_values, lines

_MODEL = r"""
values dmi_ /sys/class/dmi/id/sys_vendor /sys/class/dmi/id/product_name /sys/class/dmi/id/product_version \
    /sys/class/dmi/id/board_name
tr -d '\0' </sys/firmware/devicetree/base/model | sed 's/^/tree	/'
"""
_FIRMWARE = (
    "values '' /sys/class/dmi/id/bios_vendor /sys/class/dmi/id/bios_version /sys/class/dmi/id/bios_release "
    "/sys/class/dmi/id/bios_date"
)
_VIRTUALIZATION = r"""
printf 'detected=%s\n' "$(systemd-detect-virt)"
printf 'container=%s\n' "$(tr '\0' '\n' </proc/1/environ | sed -n 's/^container=//p')"
[ ! -e /.dockerenv ] || echo container=docker
printf 'hypervisor=%s\n' "$(grep -m 1 -o -w hypervisor /proc/cpuinfo)"
printf 'flags=%s\n' "$(grep -m 1 -o '^flags' /proc/cpuinfo)"
printf 'vendor=%s\n' "$(cat /sys/class/dmi/id/sys_vendor)"
printf 'product=%s\n' "$(cat /sys/class/dmi/id/product_name)"
"""
_EMULATED = r"""
printf 'accelerator=%s\n' "$(tr ' ' '\n' </proc/cmdline | sed -n 's/^mountlab.accelerator=//p')"
printf 'model=%s\n' "$(sed -n '/^model name/{s/^[^:]*: *//p;q;}' /proc/cpuinfo)"
printf 'hypervisor=%s\n' "$(grep -m 1 -o -w hypervisor /proc/cpuinfo)"
printf 'detected=%s\n' "$(systemd-detect-virt --vm)"
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
_PLACEHOLDER = re.compile(
    r"|to be filled.*|default.*|none|not (specified|applicable|available)|unknown|system (product name|manufacturer|"
    r"version)|[x0 .-]+",
    re.IGNORECASE,
)


class MachineModel(FactPart):
    """Of a machine with a device tree only the product is known."""

    maker: str | None = None
    product: str | None = None
    version: str | None = None
    board: str | None = None


class Firmware(FactPart):
    """The firmware that starts the machine."""

    maker: str | None = None
    version: str | None = None
    release: str | None = None
    date: str | None = None


def _maker_texts(text: str) -> dict[str, str]:
    """Return names and values, without what a maker left as it was."""
    return {name: " ".join(value.split()) for name, value in lines(text) if not _PLACEHOLDER.fullmatch(value)}


def parse_model(text: str) -> MachineModel:
    """Return the model. A board of the same name as the product is left out."""
    texts = _maker_texts(text)
    board = texts.get("dmi_board_name")
    return MachineModel.of(
        maker=texts.get("dmi_sys_vendor"),
        product=texts.get("dmi_product_name") or texts.get("tree"),
        version=texts.get("dmi_product_version"),
        board=None if board == texts.get("dmi_product_name") else board,
    )


def parse_firmware(text: str) -> Firmware:
    """Return the firmware, by the DMI fields of the BIOS."""
    texts = _maker_texts(text)
    names = {"maker": "vendor", "version": "version", "release": "release", "date": "date"}
    return Firmware.of(**{key: texts.get(f"bios_{name}") for key, name in names.items()})


def parse_virtualization(text: str) -> str:
    """'none', the kind of machine or container, or 'unknown kind' where only a hypervisor's flag is seen."""
    values = key_values(text, "=")
    if values.get("detected"):
        return values["detected"]
    maker = " ".join(values[key] for key in ("vendor", "product") if values.get(key))
    machine = (maker or "unknown kind") if values.get("hypervisor") else ""
    if values.get("container"):
        return f"{values['container']} on a virtual machine ({machine})" if machine else values["container"]
    if machine:
        return machine
    if values.get("flags"):  # x86 names its hypervisor among the flags; other processors tell nothing either way
        return "none"
    raise ValueError("no evidence")


def parse_emulated(text: str) -> bool:
    """Return whether the processor is a program: Mountlab's own virtual box says so, QEMU's processor by its name, and
    systemd finds 'qemu' where there is a hypervisor that is not KVM."""
    values = key_values(text, "=")
    if values.get("accelerator"):
        return values["accelerator"] == "tcg"
    if values.get("hypervisor") and values.get("detected") == "qemu":
        return True
    if values.get("model"):
        return "QEMU TCG" in values["model"]
    raise ValueError("no evidence")


def parse_power(text: str) -> str:
    """'mains', 'battery (64 %)' or 'no battery', from the power supplies that /sys/class/power_supply lists."""
    supplies = [line.split("\t") for line in text.splitlines() if line.startswith("supply\t")]
    own = [(kind, online, status, share) for _, kind, scope, online, status, share in supplies if scope != "Device"]
    if any(kind != "Battery" and online == "1" for kind, online, _, _ in own):
        return "mains"
    batteries = [(status, share) for kind, _, status, share in own if kind == "Battery"]
    if not batteries:
        return "no battery"
    discharging = [share for status, share in batteries if status == "Discharging"]
    return f"battery ({discharging[0]} %)" if discharging else "mains"


class MachineFacts(Group):
    """The machine as a whole."""

    section: ClassVar = "Machine"
    hostname: str | None = fact("host name", "uname -n", area="machine", rank=10)
    model: MachineModel | None = fact("model", _MODEL, parse_model, key="machine_model", area="machine", rank=150)
    firmware: Firmware | None = fact("firmware", _FIRMWARE, parse_firmware, area="machine", rank=160)
    virtualization: str | None = fact(
        "virtualisation", _VIRTUALIZATION, parse_virtualization, area="virtualisation", rank=10
    )
    emulated: bool | None = fact("emulated", _EMULATED, parse_emulated, area="virtualisation", rank=20)
    power: str | None = fact("power", _POWER, parse_power, area="machine", rank=120)
    """'mains', 'battery (64 %)' or 'no battery'."""
    boot_id: str | None = fact("boot id", "cat /proc/sys/kernel/random/boot_id", section="Mountlab's own")

    @property
    def bare(self) -> bool:
        """Whether it is known to be no virtual machine and no container."""
        return self.virtualization == "none"

    @property
    def virtual(self) -> bool:
        """Whether it is known to be a virtual machine or a container."""
        return self.virtualization not in (None, "none")

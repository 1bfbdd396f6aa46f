"""What every layer between a file system and its devices must keep, the exact words of each, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest
from mountlab.core.errors import ParameterError
from mountlab.core.model import Filesystem
from mountlab.core.shell import script_text
from mountlab.core.stack_layer import StackLayer
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.guard import GUARD, formatted, permitting, uuid_for
from mountlab.filesystems.layers import STACK_LAYERS
from mountlab.filesystems.layers.base import Blank
from mountlab.filesystems.stack import layers_in_effect, top_bytes
from mountlab.runner.conformance.filesystems import PACKAGE_MANAGERS, PLACE, shortened
from mountlab.sweep.filesystem_entry import FilesystemFile, read_filesystem
from mountlab.sweep.layer_entry import read_stack
from rows import every_row

MIB = 1024**2
UUIDS = tuple(uuid_for("", "r1", "m1", f"layer{number}") for number in (1, 2, 3))

EXAMPLES: dict[str, tuple[int, dict[str, Any]]] = {
    "md": (4, {"level": "raid10", "chunk": "64KiB", "layout": "f2", "bitmap": "none"}),
    "lvm": (4, {"kind": "raid10", "stripe": "64KiB"}),
    "integrity": (1, {"algorithm": "sha256", "mode": "bitmap", "sector_size": "4KiB", "discards": False}),
    "luks": (1, {"cipher": "aes-xts-plain64", "key_size": 256, "sector_size": "4KiB", "no_read_workqueue": True}),
}
"""Layer to the number of devices below it, and its options as in a sweep file."""
each_layer = every_row("kind", list(STACK_LAYERS))


def layer(kind: str, /, **options: Any) -> StackLayer:
    (read,) = read_stack([{"layer": kind, **options}], "f.stack")
    return read


def entry(**keys: Any) -> Filesystem:
    return read_filesystem("f", FilesystemFile(**{"type": "ext4", "image": "64MiB", **keys}), "f")


def words(kind: str, below: int, /, *, zeros: bool = True, **options: Any) -> list[str]:
    members = tuple(f"/dev/d{number}" for number in range(below))
    return list(STACK_LAYERS[kind].words(layer(kind, **options), members, UUIDS[0], Blank(zeros=zeros)))


# --- conformance ------------------------------------------------------------------------------------------------------


def test_every_layer_has_an_example_here() -> None:
    assert set(EXAMPLES) == set(STACK_LAYERS)


@each_layer
def test_its_script_makes_finds_shows_and_undoes_it(kind: str) -> None:
    script = files("mountlab.filesystems.layers").joinpath(f"{kind}.sh").read_text()
    functions = [f"{verb}_{kind}() {{" for verb in ("make", "find", "show", "undo")]
    assert [line for line in functions if line not in script.splitlines()] == []
    assert script in script_text("layer.sh")


@each_layer
def test_its_programs_tell_their_version_and_where_to_get_them(kind: str) -> None:
    for program in STACK_LAYERS[kind].programs:
        assert program.version[:1] == (program.name,)
        assert {*program.packages} >= PACKAGE_MANAGERS


@each_layer
def test_what_it_is_and_each_option_are_described(kind: str) -> None:
    assert STACK_LAYERS[kind].__doc__
    assert all(option.help for option in STACK_LAYERS[kind].options.values())


@each_layer
def test_it_offers_less_than_its_devices_hold_and_more_with_larger_ones(kind: str) -> None:
    below, options = EXAMPLES[kind]
    sizes = [STACK_LAYERS[kind].holds(layer(kind, **options), size * MIB, below) for size in (64, 128)]
    assert 0 < sizes[0] < sizes[1] < 128 * MIB * below


@each_layer
def test_each_option_of_an_example_is_judged_and_nothing_shown_is_not_in_effect(kind: str) -> None:
    _, options = EXAMPLES[kind]
    judged = dict(STACK_LAYERS[kind].judge(layer(kind, **options), {}))
    assert [option.partition(": ")[2].partition("=")[0] for option in judged] == [
        name for name in STACK_LAYERS[kind].options if name in options
    ]
    assert "in effect" not in {state for state, _ in judged.values()}


@each_layer
def test_its_words_end_with_its_devices(kind: str) -> None:
    below, options = EXAMPLES[kind]
    told = words(kind, below, **options)
    assert told[told.index("--") + 1 :] == [f"/dev/d{number}" for number in range(below)]


# --- the exact words of each ------------------------------------------------------------------------------------------


@every_row(
    ("kind", "below", "zeros", "options", "expected"),
    [
        ("md", 2, True, {"level": "raid1"}, "--level=raid1 --raid-devices=2 --assume-clean -- /dev/d0 /dev/d1"),
        ("md", 2, False, {"level": "raid1"}, "--level=raid1 --raid-devices=2 -- /dev/d0 /dev/d1"),
        ("md", 2, True, {"level": "raid0", "chunk": "16KiB"},
         "--level=raid0 --raid-devices=2 --chunk=16 -- /dev/d0 /dev/d1"),
        ("md", 3, False, {"level": "raid1", "write_mostly": 2, "bitmap": "internal"},
         "--level=raid1 --raid-devices=3 --bitmap=internal -- /dev/d0 --write-mostly /dev/d1 /dev/d2"),
        ("md", 4, False, {"level": "raid5", "journal": True},
         "--level=raid5 --raid-devices=3 --write-journal=/dev/d3 -- /dev/d0 /dev/d1 /dev/d2"),
        ("luks", 1, True, {}, "-- /dev/d0"),
        ("luks", 1, True, {"sector_size": "4KiB", "no_write_workqueue": True, "no_read_workqueue": False},
         "--sector-size=4096 --perf-no_write_workqueue -- /dev/d0"),
        ("luks", 1, True, {"integrity": "hmac-sha256"}, "--integrity=hmac-sha256 -- /dev/d0"),
        ("integrity", 1, True, {}, "-- /dev/d0"),
        ("integrity", 1, True, {"algorithm": "sha256", "mode": "bitmap", "sector_size": "4KiB"},
         "--integrity=sha256 --sector-size=4096 --integrity-bitmap-mode -- /dev/d0"),
        ("integrity", 1, True, {"mode": "none", "discards": True},
         "--integrity-no-journal --allow-discards -- /dev/d0"),
        ("integrity", 1, True, {"mode": "journal"}, "-- /dev/d0"),
    ],
)  # fmt: skip
def test_the_words_that_make_it(kind: str, below: int, zeros: bool, options: dict[str, Any], expected: str) -> None:
    """On devices of zeros copies and parity are right from the beginning; on others they are made first."""
    assert " ".join(words(kind, below, zeros=zeros, **options)) == expected


@every_row(
    ("below", "zeros", "options", "expected"),
    [
        (1, True, {"kind": "linear"}, ["--type=linear"]),
        (3, True, {"kind": "striped", "stripe": "64KiB"}, ["--type=striped", "--stripes=3", "--stripesize=64k"]),
        (3, True, {"kind": "raid1"}, ["--type=raid1", "--mirrors=2", "--nosync"]),
        (3, False, {"kind": "raid5"}, ["--type=raid5", "--stripes=2"]),
        (5, True, {"kind": "raid6"}, ["--type=raid6", "--stripes=3"]),
        (4, True, {"kind": "raid10"}, ["--type=raid10", "--stripes=2", "--mirrors=1", "--nosync"]),
        (
            4,
            True,
            {"kind": "raid10", "integrity": "journal"},
            [
                "--type=raid10",
                "--stripes=2",
                "--mirrors=1",
                "--nosync",
                "--raidintegrity=y",
                "--raidintegritymode=journal",
            ],
        ),
        (1, True, {"kind": "thin", "chunk": "128KiB"}, ["--type=thin-pool", "--chunksize=128k"]),
        (1, True, {"kind": "snapshot", "chunk": "4KiB"}, ["--type=snapshot", "--chunksize=4k"]),
        (
            3,
            True,
            {"kind": "cache", "chunk": "32KiB", "mode": "writeback"},
            ["--type=cache", "--chunksize=32k", "--cachemode=writeback"],
        ),
        (
            2,
            True,
            {"kind": "writecache", "block_size": "512B"},
            ["--type=writecache", "--cachesettings=block_size=512"],
        ),
    ],
)
def test_the_words_that_make_a_volume(below: int, zeros: bool, options: dict[str, Any], expected: list[str]) -> None:
    """raid6 of LVM cannot do without its first synchronisation (lvmraid(7), --nosync)."""
    first, *others = words("lvm", below, zeros=zeros, **options)
    volumes = first.removeprefix("volumes=").split(",")
    assert len({*volumes}) == below
    assert others[: others.index("--")] == expected


def test_a_stack_is_made_from_below_and_undone_from_above() -> None:
    fs = entry(members=3, stack=[{"layer": "md", "level": "raid5"}, {"layer": "luks"}])
    steps = FAMILIES["ext4"].steps(fs, replace(PLACE, layer_uuids=UUIDS[:2]))
    told = [shortened(step.argv) for step in steps]
    made = [line.removeprefix("timed.sh ") for line in told if "layer.sh make" in line]
    assert made == [
        f"layer.sh make /mr/r1 md {UUIDS[0]} images --level=raid5 --raid-devices=3 --assume-clean -- {{member1}} "
        "{member2} {member3}",
        f"layer.sh make /mr/r1 luks {UUIDS[1]} images -- {{layer1}}",
    ]
    assert [step.binds for step in steps if step.binds] == ["member1", "member2", "member3", "layer1", "device"]
    undone = [shortened(step.undo) for step in reversed(steps) if step.undo]
    assert [line for line in undone if "layer.sh" in line or "detach" in line] == [
        f"layer.sh back /mr/r1 {UUIDS[1]}",
        f"layer.sh back /mr/r1 {UUIDS[0]}",
        "detach.sh {member3} /mr/r1/img/f-3.img",
        "detach.sh {member2} /mr/r1/img/f-2.img",
        "detach.sh {member1} /mr/r1/img/f.img",
    ]


# --- scratch devices --------------------------------------------------------------------------------------------------

SCRATCH = replace(
    PLACE, device="/dev/disk/by-id/a", device_id="8:0,a", more_devices=(("/dev/disk/by-id/b", "8:16,b"),),
    layer_uuids=UUIDS[:1],
)  # fmt: skip


def test_a_layer_on_scratch_devices_runs_below_the_guard_of_each() -> None:
    fs = entry(image=None, device=["a", "b"], stack=[{"layer": "md", "level": "raid1"}])
    steps = FAMILIES["ext4"].steps(fs, SCRATCH)
    (made,) = [step for step in steps if "make" in step.argv]
    assert shortened(made.argv).startswith(
        f"{GUARD} /dev/disk/by-id/a '' 8:0,a {GUARD} /dev/disk/by-id/b '' 8:16,b "
        f"timed.sh layer.sh make /mr/r1 md {UUIDS[0]} marked --level=raid1"
    )
    assert "marked" in made.argv
    assert "--assume-clean" not in made.argv, "what lies on them is not known"
    assert [*formatted(made.argv)] == ["/dev/disk/by-id/a", "/dev/disk/by-id/b"]
    again = permitting(made.argv, ["/dev/disk/by-id/b"])
    assert [again[at + 2] for at, word in enumerate(again) if word == GUARD and at > 3] == ["-"]
    mkfs = next(step for step in steps if "mke2fs" in step.argv)
    assert GUARD not in mkfs.argv, "what it writes to was made a moment ago"


def test_a_file_system_that_takes_several_devices_is_made_below_the_guard_of_each() -> None:
    fs = entry(type="btrfs", image=None, device=["a", "b"])
    steps = FAMILIES["btrfs"].steps(fs, replace(SCRATCH, layer_uuids=()))
    mkfs = next(step for step in steps if "mkfs.btrfs" in step.argv)
    assert [*formatted(mkfs.argv)] == ["/dev/disk/by-id/a", "/dev/disk/by-id/b"]
    assert mkfs.argv[-2:] == ("{device}", "{member2}")


# --- what is refused --------------------------------------------------------------------------------------------------


@every_row(
    ("keys", "parts"),
    [
        ({"members": 2, "stack": [{"layer": "md", "level": "raid6"}]},
         ["md (level raid6) cannot lie on 2 devices", "f.stack[0]", "2 devices below it", "4 or more"]),
        ({"members": 3, "stack": [{"layer": "md", "level": "raid5", "journal": True}]}, ["3 devices", "4 or more"]),
        ({"members": 2, "stack": [{"layer": "luks"}]}, ["luks cannot lie on 2 devices", "2 devices below it", "1"]),
        ({"members": 2, "stack": [{"layer": "luks"}]}, ["put md or lvm below it"]),
        ({"stack": [{"layer": "lvm", "kind": "linear"}, {"layer": "lvm", "kind": "thin"}]},
         ["f.stack[1]", "lvm on lvm"]),
        ({"members": 3, "stack": [{"layer": "md", "level": "raid5", "chunk": "64MiB"}]}, ["the layers offer 0 B"]),
        ({"stack": [{"layer": "luks", "key_size": 128}]}, ["key_size", "128", "xts", "256, 384, 512 bits"]),
        ({"stack": [{"layer": "luks", "cipher": "aes-xts-plain64", "key_size": 320}]}, ["320", "256, 384, 512 bits"]),
        ({"stack": [{"layer": "luks", "cipher": "aes-cbc-essiv:sha256", "key_size": 512}]},
         ["not a size of a key for cbc", "128, 192, 256 bits", "leave key_size out"]),
        ({"stack": [{"layer": "luks", "cipher": "aes-xts"}]}, ["not a cipher", "'aes-xts'", "write all three"]),
        ({"stack": [{"layer": "luks", "cipher": "aes-cbc-essiv"}]}, ["aes-cbc-essiv:sha256"]),
        ({"stack": [{"layer": "luks", "cipher": "aes-xts-random"}]}, ["IV: plain, plain64"]),
        ({"stack": [{"layer": "luks", "integrity": "hmac-sha256", "discards": True}]},
         ["f.stack[0].discards", "no discards", "take discards out"]),
        ({"stack": [{"layer": "integrity", "algorithm": "hmac-sha256"}]}, ["f.stack[0].algorithm", "crc32c, crc32"]),
        ({"members": 2, "stack": [{"layer": "integrity"}]}, ["integrity cannot lie on 2 devices"]),
        ({"members": 2, "stack": [{"layer": "md", "level": "raid1"}, {"layer": "md", "level": "raid1"}]},
         ["f.stack[1]", "1 device below it", "2 or more"]),
        ({"members": 5, "stack": [{"layer": "lvm", "kind": "raid10"}]}, ["even number", "4, 6, 8"]),
        ({"stack": [{"layer": "lvm", "kind": "cache"}]}, ["lvm (kind cache) cannot lie on one device", "2 or more"]),
        ({"members": 2, "stack": [{"layer": "lvm", "kind": "linear", "mode": "writeback"}]},
         ["mode has no meaning here", "kind: cache"]),
        ({"members": 2, "stack": [{"layer": "lvm", "kind": "striped", "integrity": "journal"}]},
         ["integrity has no meaning here", "kind: raid1, raid5, raid6, raid10"]),
        ({"members": 2, "stack": [{"layer": "lvm", "kind": "cache", "mode": "passthrough"}]},
         ["f.stack[0].mode", "writethrough, writeback"]),
        ({"members": 2, "stack": [{"layer": "lvm", "kind": "writecache", "chunk": "64KiB"}]},
         ["chunk has no meaning here", "kind: thin, cache, snapshot"]),
        ({"members": 2, "stack": [{"layer": "lvm", "kind": "writecache", "block_size": "1KiB"}]},
         ["f.stack[0].block_size", "1KiB", "512B or 4KiB"]),
        ({"stack": [{"layer": "lvm", "kind": "linear", "volume": "32MiB"}]},
         ["volume has no meaning here", "kind: thin"]),
        ({"stack": [{"layer": "lvm", "kind": "thin", "volume": "33MiB"}]},
         ["not a value for volume", "f.stack[0].volume", "33MiB", "whole 4 MiB"]),
        ({"stack": [{"layer": "lvm", "kind": "thin", "volume": "1GiB"}]},
         ["lvm (kind thin, volume 1GiB) does not fit", "f.stack[0].volume", "a smaller volume"]),
        ({"stack": [{"layer": "lvm", "kind": "snapshot", "chunk": "1MiB"}]},
         ["f.stack[0].chunk", "from 4.00 KiB to 512 KiB"]),
        ({"members": 2, "stack": [{"layer": "md"}]}, ["md needs a level", "linear, raid0, raid1"]),
        ({"members": 2, "stack": [{"layer": "md", "level": "raid2"}]}, ["f.stack[0].level", "raid2", "raid10"]),
        ({"members": 2, "stack": [{"layer": "md", "level": "raid1", "chunk": "64KiB"}]},
         ["chunk has no meaning here", "chunk: 64KiB with level: raid1", "take chunk out"]),
        ({"members": 2, "stack": [{"layer": "md", "level": "raid0", "chunk": "48KiB"}]},
         ["f.stack[0].chunk", "48KiB", "a power of two from 4.00 KiB"]),
        ({"members": 2, "stack": [{"layer": "md", "level": "raid1", "write_mostly": 2}]}, ["write_mostly", "ed: 1"]),
        ({"members": 4, "stack": [{"layer": "md", "level": "raid5", "journal": True, "bitmap": "internal"}]},
         ["an array has a journal or a bitmap"]),
        ({"members": 2, "stack": [{"layer": "raid"}]},
         ["unknown layer", "f.stack[0].layer", "integrity, luks, lvm, md"]),
        ({"stack": [{"level": "raid1"}]}, ["each layer of a stack says which it is", "md, lvm, luks, integrity"]),
        ({"stack": [{"layer": "luks", "sector": "4KiB"}]}, ["unknown key for layer luks", "sector_size"]),
        ({"stack": [{"layer": "luks", "cipher": "AES; rm"}]}, ["not a cipher", "aes-xts-plain64"]),
        ({"stack": [{"layer": "luks", "key_size": 100}]}, ["key_size", "100", "bits"]),
        ({"members": 2}, ["ext4 lies on one device", "2 devices", "layer: md", "btrfs, f2fs and zfs take several"]),
        ({"image": None, "device": ["a", "b"]}, ["ext4 lies on one device", "2 devices"]),
        ({"image": None, "device": ["a", "a"], "stack": [{"layer": "md", "level": "raid1"}]},
         ["each device can be named once", "a, a"]),
        ({"image": None, "device": "a", "members": 2}, ["members says how many images", "a list, device: [a, b]"]),
        ({"members": 0}, ["members says how many images", "1 to 16"]),
        ({"image": "20MiB", "stack": [{"layer": "luks"}]},
         ["too small for ext4", "and the layers offer 4", "or more of what they offer"]),
        ({"type": "tmpfs", "image": None, "size": "64MiB", "stack": [{"layer": "luks"}]},
         ["tmpfs has no devices below it", "f.stack", "stack of ext", "take stack out"]),
        ({"type": "tmpfs", "image": None, "size": "64MiB", "members": 2},
         ["f.members", "members of", "take members out"]),
        ({"members": 3, "stack": [{"layer": "md", "level": "raid5", "layout": "left-symmetric"}]},
         ["layout has no meaning here", "layout: left-symmetric with level: raid5", "level: raid10"]),
        ({"members": 3, "stack": [{"layer": "md", "level": "raid1", "write_mostly": 3}]}, ["write_mostly", "1 to 2"]),
        ({"image": None, "device": []}, ["device names no device", "f.device", "[]", "a list of them"]),
        ({"stack": [{"layer": "zfs"}]}, ["zfs is a file system", "f.stack[0].layer", "md, lvm, luks, integrity"]),
        ({"stack": [{"layer": "btrfs"}]}, ["btrfs is a file system", "{type: btrfs, ...}"]),
        ({"stack": [{"layer": "vdo"}]},
         ["vdo is not offered", "f.stack[0].layer", "Linux 6.9", "vdoformat", "not run by us"]),
        ({"stack": [{"layer": "lvm", "kind": "vdo"}]},
         ["vdo is not offered", "f.stack[0].kind", "linear, striped", "Linux 6.9"]),
        ({"stack": [{"layer": "lvm", "kind": "thin", "chunk": "1GiB"}]},
         ["lvm (kind thin, chunk 1GiB) does not fit", "f.stack[0].chunk", "64.0 MiB below it", "a smaller chunk"]),
        ({"members": 2, "stack": [{"layer": "lvm", "kind": "cache", "chunk": "64MiB"}]},
         ["f.stack[0].chunk", "64.0 MiB each"]),
        ({"members": 2, "stack": [{"layer": "md", "level": "raid0", "chunk": "32MiB"}]},
         ["md (level raid0", "a smaller chunk"]),
    ],
)  # fmt: skip
def test_what_cannot_be_made_is_refused_with_what_is_allowed(keys: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(ParameterError) as refused:
        entry(**keys)
    assert [part for part in parts if part not in str(refused.value)] == []


# --- how much it holds ------------------------------------------------------------------------------------------------


@every_row(
    ("keys", "most"),
    [
        ({"members": 2, "stack": [{"layer": "md", "level": "raid1"}]}, 64),
        ({"members": 4, "stack": [{"layer": "md", "level": "raid5"}]}, 192),
        ({"members": 4, "stack": [{"layer": "md", "level": "raid5", "journal": True}]}, 128),
        ({"members": 4, "stack": [{"layer": "md", "level": "raid6"}]}, 128),
        ({"members": 4, "stack": [{"layer": "md", "level": "raid10"}, {"layer": "luks"}]}, 112),
        ({"members": 3, "stack": [{"layer": "lvm", "kind": "linear"}]}, 192),
        ({"members": 3, "stack": [{"layer": "lvm", "kind": "cache"}]}, 128),
        ({"members": 2, "stack": [{"layer": "lvm", "kind": "writecache"}]}, 64),
        ({"members": 4, "stack": [{"layer": "lvm", "kind": "snapshot"}]}, 124),
        ({"members": 4, "stack": [{"layer": "lvm", "kind": "thin", "volume": "64MiB"}]}, 64),
        ({"type": "btrfs", "image": "128MiB", "members": 2}, 256),
    ],
)
def test_a_stack_offers_what_copies_and_parity_leave(keys: dict[str, Any], most: int) -> None:
    """By the definition of each level, in MiB; what the layers keep for themselves is less than a quarter of these."""
    fs = entry(**keys)
    assert 0.7 * most * MIB < top_bytes(fs, fs.image_bytes or 0) <= most * MIB


@every_row(
    ("level", "below", "chunk", "each", "made"),
    [
        ("raid1", 2, None, 64, 63 * MIB),
        ("raid1", 2, None, 16 * 1024, 17162043392),
        ("raid1", 2, None, 200 * 1024, 214613098496),
        ("raid1", 2, None, 2 * MIB, 2198887989248),
        ("raid5", 3, None, 12 * MIB, 26388008534016),
        ("raid5", 4, "512KiB", 200, 622854144),
        ("raid5", 4, "16MiB", 200, 503316480),
        ("raid0", 3, "64MiB", 200, 201326592),
    ],
)
def test_an_array_offers_no_more_than_mdadm_makes(
    level: str, below: int, chunk: str | None, each: int, made: int
) -> None:
    """`each` in MiB; `made` as blockdev --getsize64 has shown it: mdadm 4.2, metadata 1.2."""
    array = layer("md", level=level, **({"chunk": chunk} if chunk else {}))
    assert 0.8 * made < STACK_LAYERS["md"].holds(array, each * MIB, below) <= made


@every_row(("each", "made"), [(24, 8388608), (64, 46137344), (1024, 952107008), (15 * MIB, 14843176288256)])
def test_a_thin_volume_offers_no_more_than_lvcreate_makes(each: int, made: int) -> None:
    """`each` in MiB; `made` as blockdev --getsize64 has shown it: LVM 2.03.16."""
    assert 0.8 * made < STACK_LAYERS["lvm"].holds(layer("lvm", kind="thin"), each * MIB, 1) <= made


@every_row(
    ("below", "options", "made"),
    [
        (3, {"kind": "thin", "chunk": "32MiB"}, 4 * 32 * MIB),
        (3, {"kind": "thin", "chunk": "64MiB"}, 2 * 64 * MIB),
        (1, {"kind": "thin", "chunk": "64MiB"}, 0),
        (3, {"kind": "cache", "chunk": "32MiB"}, 125829120),
        (3, {"kind": "cache", "chunk": "64MiB"}, 0),
        (3, {"kind": "snapshot"}, 88080384),
        (3, {"kind": "writecache"}, 125829120),
        (3, {"kind": "striped", "stripe": "4MiB"}, 188743680),
    ],
)
def test_a_volume_of_large_chunks_offers_whole_ones_alone(below: int, options: dict[str, Any], made: int) -> None:
    """On devices of 64 MiB; of a thin pool the part that is no whole chunk cannot be written. LVM 2.03.16."""
    holds = STACK_LAYERS["lvm"].holds(layer("lvm", **options), 64 * MIB, below)
    assert (0.5 * made < holds <= made) if made else holds == 0


def test_copies_with_checksums_offer_no_more_than_lvcreate_makes() -> None:
    """On four devices of 320 MiB; `made` as lvs has shown it: LVM 2.03.16."""
    made = 595591168
    held = STACK_LAYERS["lvm"].holds(layer("lvm", kind="raid10", integrity="journal"), 320 * MIB, 4)
    assert 0.8 * made < held <= made
    assert STACK_LAYERS["lvm"].holds(layer("lvm", kind="raid10", integrity="journal"), 64 * MIB, 4) == 0, "no room"


@every_row(
    ("kind", "options", "each", "made"),
    [
        ("integrity", {}, 64, 66129920),
        ("integrity", {"algorithm": "sha256"}, 64, 62414848),
        ("integrity", {"algorithm": "sha1"}, 64, 64004096),
        ("integrity", {"algorithm": "xxhash64"}, 64, 65605632),
        ("integrity", {"sector_size": "4KiB"}, 64, 66637824),
        ("integrity", {}, 1024, 1056968704),
        ("integrity", {"algorithm": "sha256"}, 1024, 1002442752),
        ("integrity", {"algorithm": "sha256"}, 20 * 1024, 20148404224),
        ("luks", {"integrity": "hmac-sha256"}, 32, 15499264),
        ("luks", {"integrity": "hmac-sha512", "sector_size": "4KiB"}, 32, 16306176),
    ],
)  # fmt: skip
def test_checksums_leave_no_more_than_the_tools_make(kind: str, options: dict[str, Any], each: int, made: int) -> None:
    """`each` in MiB; `made` as blockdev --getsize64 has shown it: cryptsetup 2.6.1, Linux 6.1."""
    assert 0.8 * made < STACK_LAYERS[kind].holds(layer(kind, **options), each * MIB, 1) <= made


# --- what the kernel says ---------------------------------------------------------------------------------------------

RAID10 = """==> /sys/block/md127/md/level <==
raid10
==> /sys/block/md127/md/chunk_size <==
65536
==> /sys/block/md127/md/layout <==
513
==> /sys/block/md127/md/bitmap/location <==
none
"""


def test_the_options_of_an_array_are_those_of_sysfs() -> None:
    """A recording of mdadm 4.2 and Linux 6.1: f2 is 1 near and 2 far copies, 1 + 2 * 256."""
    fs = entry(members=4, stack=[{"layer": "md", **EXAMPLES["md"][1]}])
    rows = [*layers_in_effect(fs, {"layer1.txt": RAID10})]
    assert {row.state for row in rows} == {"in effect"}
    assert [row.option for row in rows] == ["md: level=raid10", "md: chunk=64KiB", "md: layout=f2", "md: bitmap=none"]
    other = RAID10.replace("513", "258").replace("none", "+8")
    assert {row.option: (row.state, row.kernel_says) for row in layers_in_effect(fs, {"layer1.txt": other})} == {
        "md: level=raid10": ("in effect", "md/level says raid10"),
        "md: chunk=64KiB": ("in effect", "md/chunk_size says 65536"),
        "md: layout=f2": ("changed", "md/layout says 258"),
        "md: bitmap=none": ("changed", "md/bitmap/location says internal"),
    }


@every_row(
    ("version", "size", "sector"),
    [("2.6", "512 bits", "4096"), ("2.8", "512 [bits]", "4096 [bytes]")],
)
def test_the_options_of_encryption_are_read_in_the_words_of_each_version(version: str, size: str, sector: str) -> None:
    """cryptsetup 2.8 puts units into brackets."""
    status = f"/dev/mapper/m is active.\n  type:    LUKS2\n  keysize: {size}\n  sector size:  {sector}\n"
    fs = entry(stack=[{"layer": "luks", "key_size": 512, "sector_size": "4KiB"}])
    rows = [*layers_in_effect(fs, {"layer1.txt": f"==> status <==\n{status}"})]
    assert [(row.option, row.state) for row in rows] == [
        ("luks: key_size=512", "in effect"),
        ("luks: sector_size=4KiB", "in effect"),
    ]


TABLE = "0 121904 integrity 7:1 0 32 B 8 block_size:4096 journal_sectors:968 fix_padding internal_hash:sha256"


def test_the_options_of_checksums_are_those_of_the_mapping_s_table() -> None:
    """A recording of integritysetup 2.6.1 and Linux 6.1; without block_size it is 512."""
    fs = entry(stack=[{"layer": "integrity", **EXAMPLES["integrity"][1]}])
    shown = [*layers_in_effect(fs, {"layer1.txt": f"==> table <==\n{TABLE}\n"})]
    assert {row.state for row in shown} == {"in effect"}
    other = TABLE.replace("sha256", "crc32c").replace(" B 8", " J 8").replace("block_size:4096 ", "allow_discards ")
    assert [row.kernel_says for row in layers_in_effect(fs, {"layer1.txt": f"==> table <==\n{other}\n"})] == [
        "the table: algorithm says crc32c",
        "the table: mode says journal",
        "the table: sector_size says 512",
        "the table has allow_discards",
    ]


def test_the_key_of_encryption_with_checksums_is_shown_without_that_of_the_checksums() -> None:
    """A recording of cryptsetup 2.6.1: 512 bits of xts, and 256 of the checksums."""
    status = "/dev/mapper/m is active.\n  keysize: 768 bits\n  integrity: hmac(sha256)\n  integrity keysize: 256 bits\n"
    fs = entry(stack=[{"layer": "luks", "key_size": 512, "integrity": "hmac-sha256"}])
    rows = [*layers_in_effect(fs, {"layer1.txt": f"==> status <==\n{status}"})]
    assert [(row.option, row.state) for row in rows] == [
        ("luks: key_size=512", "in effect"),
        ("luks: integrity=hmac-sha256", "in effect"),
    ]


def in_effect(below: int, options: dict[str, Any], report: str) -> dict[str, str]:
    fs = entry(image="320MiB", members=below, stack=[{"layer": "lvm", **options}])
    return {row.option.partition("=")[0]: row.state for row in layers_in_effect(fs, {"layer1.txt": report})}


CACHE = """==> lvs <==
  data|cache|1|0|65536|125829120|0.00||0.00|0.63
  [data_corig]|linear|1|0|0|125829120||||
  [fast_cvol]|linear|1|0|0|62914560||||
==> table <==
mountlab--1-data: 0 245760 cache 253:3 253:2 253:4 128 2 metadata2 writethrough mq 0
mountlab--1-fast_cvol: 0 122880 linear 7:3 2048
"""
WRITECACHE = """==> lvs <==
  data|writecache|1|0|0|125829120||||
==> table <==
mountlab--1-data: 0 245760 writecache s 253:2 253:1 4096 0
"""
SNAPSHOT = """==> lvs <==
  data|linear|1|0|0|88080384||||
  kept|linear|1|0|4096|92274688|||0.00|
==> table <==
mountlab--1-data: 0 172032 snapshot-origin 253:1
mountlab--1-data-real: 0 122880 linear 7:1 2048
mountlab--1-kept: 0 172032 snapshot 253:1 253:2 P 8
"""
CHECKSUMS = """==> lvs <==
  data|raid10|4|65536|0|595591168|100.00|idle||
  [data_rimage_0]|integrity|1|0|0|297795584|100.00|||
==> table <==
mountlab--1-data: 0 1163264 raid raid10 6 128 nosync region_size 4096 raid10_copies 2 4 253:0 253:3 253:4 253:7
mountlab--1-data_rimage_0: 0 581632 integrity 253:2 0 4 J 8 meta_device:253:1 recalculate journal_sectors:4400
mountlab--1-data_rimage_0_imeta: 0 16384 linear 7:0 591872
mountlab--1-data_rimage_1: 0 581632 integrity 253:6 0 4 J 8 meta_device:253:5 recalculate journal_sectors:4400
"""
_PLAIN = "\n".join(line for line in CHECKSUMS.splitlines() if " integrity " not in line)


@every_row(
    ("below", "options", "report", "states"),
    [
        (4, {"kind": "raid10", "integrity": "journal"}, CHECKSUMS, ["in effect"] * 2),
        (
            4,
            {"kind": "raid10", "integrity": "journal"},
            CHECKSUMS.replace("6 0 4 J", "6 0 4 B"),
            ["in effect", "changed"],
        ),
        (
            4,
            {"kind": "raid10", "integrity": "journal"},
            CHECKSUMS.replace("6 0 4 J", "6 0 4 D"),
            ["in effect", "changed"],
        ),
        (4, {"kind": "raid10", "integrity": "journal"}, _PLAIN, ["in effect", "not visible"]),
        (2, {"kind": "cache", "mode": "writethrough", "chunk": "64KiB"}, CACHE, ["in effect"] * 3),
        (2, {"kind": "cache", "mode": "writeback", "chunk": "32KiB"}, CACHE, ["in effect", "changed", "changed"]),
        (2, {"kind": "writecache", "block_size": "4KiB"}, WRITECACHE, ["in effect"] * 2),
        (2, {"kind": "writecache", "block_size": "512B"}, WRITECACHE, ["in effect", "changed"]),
        (1, {"kind": "snapshot", "chunk": "4KiB"}, SNAPSHOT, ["in effect"] * 2),
        (1, {"kind": "linear"}, SNAPSHOT, ["changed"]),
    ],
)
def test_the_options_of_caches_snapshots_and_checksums_are_those_of_the_kernel(
    below: int, options: dict[str, Any], report: str, states: list[str]
) -> None:
    """Recordings of LVM 2.03.16 and Linux 6.1. What LVM lists is what it was asked for; the table is what runs."""
    assert sorted(in_effect(below, options, report).values()) == sorted(states)

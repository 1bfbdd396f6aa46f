"""Parameter files: what is refused, in which words, and how lists become cells."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from mountlab.core.errors import ParameterError, StoreError
from mountlab.core.model import Filesystem
from mountlab.core.safe_yaml import parse_yaml
from mountlab.filesystems.evidence import split_options
from mountlab.programs import TOOLS
from mountlab.results.paths import PARAMS, load_box, load_published, load_sweep
from mountlab.sweep.box_file import parse_box
from mountlab.sweep.filesystem_entry import FilesystemFile, read_filesystem
from mountlab.sweep.published_file import parse_published
from mountlab.sweep.sweep_file import SWEEP_KEYS, parse_override, resolve, unknown_names
from rows import every_row

EXT4 = {"type": "ext4", "image": "1GiB"}
TMPFS = {"type": "tmpfs", "size": "64MiB"}
DD = {"tool": "dd", "direction": "write", "count": 8}
FIO = {"tool": "fio", "rw": "randread", "size": "8MiB"}
BASE: dict[str, Any] = {
    "name": "s", "question": "Why?", "filesystems": {"tmpfs": TMPFS}, "workloads": {"w": DD},
}  # fmt: skip
NOT_PLAIN = "an absolute path of two parts or more, in plain characters"


def changed(**changes: Any) -> dict[str, Any]:
    return {**BASE, **changes}


def refusal(raw: dict[str, Any], **overrides: Any) -> ParameterError:
    with pytest.raises(ParameterError) as caught:
        resolve(raw, where="s.yml", overrides=overrides)
    return caught.value


def refused_fs(**entry: Any) -> ParameterError:
    return refusal(changed(filesystems={"f": entry}))


def refused_workload(**entry: Any) -> ParameterError:
    return refusal(changed(workloads={"w": entry}))


# --- unknown keys and wrong types -------------------------------------------------------------------------------------


@every_row(
    ("raw", "what", "where", "got", "next_step"),
    [
        (changed(desing={}), "unknown key", "s.yml", "'desing'", "did you mean 'design'?"),
        (changed(design={"repeat": 3}), "unknown key", "s.yml: design.repeat", "'repeat'", "did you mean 'repeats'?"),
        (
            changed(filesystems={"f": {**TMPFS, "sise": "1MiB"}}),
            "unknown key",
            "s.yml: filesystems.f.sise",
            "'sise'",
            "did you mean 'size'?",
        ),
        (
            changed(filesystems={"f": {**TMPFS, "image": "1GiB"}}),
            "unknown key for tmpfs",
            "s.yml: filesystems.f.image",
            "'image'",
            "remove it, or use one of the allowed ones",
        ),
        (
            changed(filesystems={"f": {"type": "tempfs", "size": "1MiB"}}),
            "unknown file system type",
            "s.yml: filesystems.f.type",
            "'tempfs'",
            "did you mean 'tmpfs'?",
        ),
        (
            changed(workloads={"w": {"tool": "ddd"}}),
            "unknown tool",
            "s.yml: workloads.w.tool",
            "'ddd'",
            "did you mean 'dd'?",
        ),
        (
            changed(workloads={"w": {}}),
            "unknown tool",
            "s.yml: workloads.w.tool",
            "None",
            "remove it, or use one of the allowed ones",
        ),
        (
            changed(workloads={"w": {**DD, "cont": 1}}),
            "unknown option for dd",
            "s.yml: workloads.w.cont",
            "'cont'",
            "did you mean 'count'?",
        ),
        (
            changed(metrics=["write_bandwith"]),
            "unknown metric",
            "s.yml: metrics",
            "'write_bandwith'",
            "did you mean 'write_bandwidth'?",
        ),
        (changed(baseline="tmpf"), "unknown file system", "s.yml: baseline", "'tmpf'", "did you mean 'tmpfs'?"),
        (
            changed(preset="smal", presets={"small": {}}),
            "unknown preset",
            "s.yml: preset",
            "'smal'",
            "did you mean 'small'?",
        ),
    ],
)
def test_an_unknown_word_is_an_error_at_every_level(
    raw: dict[str, Any], what: str, where: str, got: str, next_step: str
) -> None:
    """Trap: papermill only warns of unknown parameters."""
    error = refusal(raw)
    assert (error.what, error.where, error.got, error.next_step) == (what, where, got, next_step)
    assert error.allowed


@every_row(
    ("yaml_text", "where", "got", "hint"),
    [
        (
            "filesystems: {t: {type: no, size: 1MiB}}",
            "s.yml: filesystems.t.type",
            "False (bool)",
            "put the word in quotes",
        ),
        ("design: {drop_caches: 1:30}", "s.yml: design.drop_caches", "90 (int)", "YAML reads 1:30"),
        ("design: {repeats: on}", "s.yml: design.repeats", "True (bool)", "yes, no, on and off"),
        ("design: {repeats: '5'}", "s.yml: design.repeats", "'5' (str)", ""),
        ("question: yes", "s.yml: question", "True (bool)", "put the word in quotes"),
        ("workloads: [a]", "s.yml: workloads", "['a'] (list)", ""),
        ("design: {fresh_filesystem: always}", "s.yml: design.fresh_filesystem", "'always' (str)", ""),
        ("published: a-study", "s.yml: published", "'a-study' (str)", ""),
    ],
)
def test_a_wrong_type_names_file_key_and_what_was_got(yaml_text: str, where: str, got: str, hint: str) -> None:
    """YAML reads `no` and `on` as booleans and 1:30 as the integer 90."""
    error = refusal(changed(**parse_yaml(yaml_text, where="s.yml")))
    assert (error.what, error.where, error.got) == ("wrong type or value", where, got)
    assert error.allowed
    assert hint in error.next_step


@every_row("key", ["question", "filesystems", "workloads", "name"])
def test_a_missing_key_is_named(key: str) -> None:
    error = refusal({name: value for name, value in BASE.items() if name != key})
    assert (error.what, error.where, error.allowed) == ("a key is missing", f"s.yml: {key}", f"{key}: ...")


@every_row(
    ("design", "where", "allowed"),
    [
        ({"repeats": 0}, "repeats", "1 or more, 10000 or less"),
        ({"repeats": 10**9}, "repeats", "10000 or less"),
        ({"repeats": 10**99}, "repeats", "10000 or less"),
        ({"warmup": -1}, "warmup", "0 or more, 100 or less"),
        ({"retries": 10**9}, "retries", "0 or more, 10 or less"),
        ({"smallest_effect": 1.5}, "smallest_effect", "0 or more, less than 1"),
        ({"smallest_effect": math.nan}, "smallest_effect", "0 or more, less than 1"),
        ({"seed": -1}, "seed", "0 or more"),
        ({"trial_timeout": "infinite"}, "trial_timeout", "'60s'"),
        ({"trial_timeout": "9" * 90 + "h"}, "trial_timeout", "at most 168h"),
        ({"sample_every": "50ms"}, "sample_every", "100ms or more; false for never"),
        ({"sample_every": "0s"}, "sample_every", "100ms or more"),
        ({"until": {"half_width": "3%", "budget": "9" * 90 + "h"}}, "until.budget", "at most 8784h"),
        ({"until": {"half_width": "9" * 90 + "%"}}, "until.half_width", "above 0%, up to 50%"),
        ({"until": {"half_width": "3%", "confidence": "99.9999999%"}}, "until.confidence", "up to 99.9%"),
    ],
)
def test_a_design_out_of_bounds_is_refused_with_the_whole_range(
    design: dict[str, Any], where: str, allowed: str
) -> None:
    error = refusal(changed(design=design))
    assert error.where == f"s.yml: design.{where}"
    assert allowed in error.allowed


@every_row(
    "level",
    [0.9999999999999999, 1 - 1e-12, 0.9999995, 1, 1.0, 0, -0.5, 0.4999, 95, math.nan, math.inf, "0.95", "49%", True],
)
def test_a_level_out_of_range_is_refused_with_the_range(level: object) -> None:
    """At 0.9999999999999999 nothing is left over to be corrected: a report once ended in a traceback."""
    error = refusal(changed(design={"level": level}))
    assert error.where == "s.yml: design.level"
    assert error.allowed.endswith("0.5 or more, 0.999999 or less")
    assert error.got.startswith(repr(level))


@every_row("level", [0.5, 0.95, 0.9999, 0.999999])
def test_a_level_in_range_is_taken(level: float) -> None:
    assert resolve(changed(design={"level": level}), where="s.yml").sweep.design.level == level


@every_row("name", ["../x", "/etc/passwd", "a/b", "..", "", "a\\b", "a b"])
def test_published_figures_are_named_and_not_a_path(name: str) -> None:
    error = refusal(changed(published=["a-ramdisk-2013", name]))
    assert (error.where, error.got) == ("s.yml: published", repr(name))
    with pytest.raises(StoreError, match="lead elsewhere"):
        load_published((name,))


def test_a_box_that_waits_for_ever_is_refused() -> None:
    with pytest.raises(ParameterError, match="never be cleaned") as caught:
        parse_box({"host": "lab", "grace": "9" * 90 + "h"}, name="b", where="b.yml")
    assert caught.value.allowed == "5s to 168h"


@pytest.mark.parametrize(
    ("given", "seconds"), [({}, 0.1), ({"sample_every": "2s"}, 2.0), ({"sample_every": False}, 0.0)]
)
def test_counters_are_read_ten_times_a_second_or_as_often_as_is_asked(given: dict[str, Any], seconds: float) -> None:
    assert resolve(changed(design=given), where="s.yml").sweep.design.sample_every_s == seconds


def test_a_trial_without_time_is_refused() -> None:
    """timeout(1) takes 0 for no limit at all."""
    error = refusal(changed(design={"trial_timeout": "0s"}))
    assert (error.what, error.where, error.allowed) == (
        "a trial needs some time, and an end",
        "s.yml: design.trial_timeout",
        "more than 0s, at most 168h",
    )


@every_row("name", ["a/b", "", "-a", "a b", "../up", "é"])
def test_names_become_paths_and_must_be_plain(name: str) -> None:
    assert "a name may hold letters" in refusal(changed(filesystems={name: TMPFS})).what
    assert "a name may hold letters" in refusal(changed(workloads={name: DD})).what
    assert "a name may hold letters" in refusal(changed(name=name)).what


# --- YAML -------------------------------------------------------------------------------------------------------------


def test_a_key_given_twice_is_an_error_and_not_the_last_one_silently() -> None:
    text = "question: a\nfilesystems:\n  t: {type: tmpfs}\n  t: {type: ramfs}\n"
    with pytest.raises(ParameterError) as caught:
        parse_yaml(text, where="s.yml")
    assert (caught.value.what, caught.value.where, caught.value.got) == ("a key is given twice", "s.yml, line 4", "'t'")


@every_row(
    ("text", "what", "got"),
    [
        ("a: [1", "not valid YAML", "line 1"),
        ("- a", "a mapping of keys to values is needed", "list"),
        ("", "a mapping of keys to values is needed", "NoneType"),
        ("!!python/object/apply:os.getcwd []", "not valid YAML", "python/object"),
        ("? [a]\n: b", "not valid YAML", "unhashable"),
    ],
)
def test_a_file_that_is_no_mapping_is_refused(text: str, what: str, got: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_yaml(text, where="s.yml")
    assert caught.value.what == what
    assert got in f"{caught.value.where}: {caught.value.got}"
    assert "<unicode string>" not in str(caught.value)


# --- factors ----------------------------------------------------------------------------------------------------------


def test_lists_are_factors_and_every_combination_is_a_workload_in_order() -> None:
    entry = {"tool": "fio", "rw": ["read", "randread"], "bs": ["4KiB", "1MiB"], "size": "8MiB", "direct": [True, False]}
    workloads = resolve(changed(workloads={"w": entry}), where="s.yml").sweep.workloads
    assert [w.label for w in workloads] == [
        f"w rw={rw} bs={bs} direct={direct}"
        for rw in ("read", "randread")
        for bs in ("4KiB", "1MiB")
        for direct in ("1", "0")
    ]
    assert workloads[2].factors == {"rw": "read", "bs": "1MiB", "direct": "1"}
    assert workloads[2].options["bs"] == 1024**2
    assert workloads[2].options["size"] == 8 * 1024**2
    assert "size" not in workloads[2].factors


def test_cells_are_file_systems_times_workloads_with_distinct_ids() -> None:
    raw = changed(filesystems={"a": TMPFS, "b": TMPFS}, workloads={"w": {**DD, "count": [1, 2]}, "v": DD})
    sweep = resolve(raw, where="s.yml").sweep
    assert [cell.id for cell in sweep.cells] == [
        "a/w count=1",
        "a/w count=2",
        "a/v",
        "b/w count=1",
        "b/w count=2",
        "b/v",
    ]


def test_a_list_of_one_is_a_factor_of_one_level() -> None:
    (workload,) = resolve(changed(workloads={"w": {**DD, "count": [4]}}), where="s.yml").sweep.workloads
    assert workload.label == "w count=4"


def test_a_level_given_twice_is_an_error() -> None:
    error = refused_workload(**{**DD, "count": [1, 2, 1]})
    assert (error.what, error.where, error.got) == ("a level is given twice", "s.yml: workloads.w.count", "1")


@every_row(
    ("entry", "key", "got"),
    [
        ({**DD, "bs": ["4KiB", "4096B"]}, "bs", "'4096B'"),
        ({**FIO, "time_based": True, "runtime": ["1s", "1000ms"]}, "runtime", "'1000ms'"),
        ({**FIO, "direct": [True, 1]}, "direct", "1"),
        ({**FIO, "thread": [1, "1"]}, "thread", "'1'"),
    ],
)
def test_two_ways_to_write_one_level_are_that_level_twice(entry: dict[str, Any], key: str, got: str) -> None:
    """Cells with one id would be taken for one cell."""
    error = refused_workload(**entry)
    assert (error.what, error.where) == ("a level is given twice", f"s.yml: workloads.w.{key}")
    assert error.got == got


def test_a_tool_is_no_factor() -> None:
    error = refused_workload(**{**DD, "tool": ["dd", "fio"]})
    assert (error.what, error.got) == ("unknown tool", "['dd', 'fio']")


def test_an_empty_list_is_an_error() -> None:
    error = refused_workload(**{**DD, "count": []})
    assert (error.what, error.where) == ("a factor needs at least one level", "s.yml: workloads.w.count")


def test_a_wrong_level_is_named_like_any_value() -> None:
    error = refused_workload(**{**DD, "bs": ["4KiB", "4k"]})
    assert (error.where, error.got) == ("s.yml: workloads.w.bs", "'4k' (str)")


def test_options_that_are_not_given_take_their_defaults() -> None:
    (workload,) = resolve(BASE, where="s.yml").sweep.workloads
    defaults = {key: option.default for key, option in TOOLS["dd"].options.items() if option.default is not None}
    assert workload.options == {**defaults, "direction": "write", "count": 8}
    assert workload.options["conv"] == "fdatasync"
    assert workload.factors == {}


# --- tools ------------------------------------------------------------------------------------------------------------


@every_row("option", sorted(TOOLS["fio"].reserved))
def test_reserved_options_of_fio_are_refused_with_the_reason(option: str) -> None:
    """Formatting or overwriting what the user named: fio writes in a directory of ours and nowhere else."""
    error = refused_workload(**FIO, **{option: "/dev/sda"})
    assert error.what == f"fio's option {option} is not for a sweep to set"
    assert error.where == f"s.yml: workloads.w.{option}"
    assert error.allowed == TOOLS["fio"].reserved[option]


@pytest.mark.parametrize("option", ["if", "of"])
def test_the_files_of_dd_are_not_for_a_sweep_to_name(option: str) -> None:
    assert refused_workload(**DD, **{option: "/dev/sda"}).what == f"dd's option {option} is not for a sweep to set"


@every_row(
    ("entry", "what", "where"),
    [
        ({"tool": "dd", "count": 8}, "dd needs direction", "direction"),
        ({"tool": "dd", "direction": "write"}, "dd needs count", "count"),
        ({**DD, "count": 0}, "dd would copy nothing", "count"),
        ({**DD, "bs": "0B"}, "dd would copy nothing", "bs"),
        ({**DD, "iflag": "direct"}, "iflag would not be in effect", "iflag"),
        ({**DD, "direction": "read", "oflag": "dsync"}, "oflag would not be in effect", "oflag"),
        ({"tool": "fio", "size": "8MiB"}, "fio needs rw", "rw"),
        ({"tool": "fio", "rw": "read"}, "fio needs size", "size"),
        ({**FIO, "time_based": True}, "time_based without a runtime never ends", "runtime"),
        ({**FIO, "time_based": True, "runtime": "0s"}, "time_based without a runtime never ends", "runtime"),
    ],
)
def test_options_that_make_no_sense_together_are_refused(entry: dict[str, Any], what: str, where: str) -> None:
    error = refused_workload(**entry)
    assert (error.what, error.where) == (what, f"s.yml: workloads.w.{where}")
    assert error.got
    assert error.allowed


# --- file systems -----------------------------------------------------------------------------------------------------


@every_row(
    ("entry", "what", "where", "got"),
    [
        ({"type": "tmpfs"}, "tmpfs needs a size", ".size", "nothing"),
        ({"type": "ramfs"}, "ramfs needs a size", ".size", "nothing"),
        ({"type": "ext4"}, "ext4 needs one device", "", "none"),
        ({"type": "ext4", "image": "1GiB", "device": "data"}, "ext4 needs one device", "", "image and device"),
        ({"type": "ext4", "image": "1MiB"}, "too small for ext4", ".image", "1.00 MiB"),
        ({"type": "xfs", "zram": "64MiB"}, "too small for xfs", ".zram", "64.0 MiB"),
        (
            {**EXT4, "journal_image": "16MiB", "journal_device": "j"},
            "one external journal at most",
            "",
            "journal_image and journal_device",
        ),
        (
            {"type": "ext4", "device": "d", "journal_device": "d"},
            "an external journal needs a device of its own",
            ".journal_device",
            "d",
        ),
        (
            {"type": "ext2", "image": "64MiB", "journal_image": "16MiB"},
            "unknown key for ext2",
            ".journal_image",
            "'journal_image'",
        ),
        (
            {"type": "ext4", "device": "d", "overwrite": "1111-2222"},
            "a sweep cannot allow that a device is overwritten",
            ".overwrite",
            "'1111-2222'",
        ),
        (
            {"type": "overlay", "over": {"type": "xfs", "device": "d", "journal_overwrite": "1111"}},
            "a sweep cannot allow that a device is overwritten",
            ".over.journal_overwrite",
            "'1111'",
        ),
        (
            {"type": "ext4", "zram": "64MiB", "zram_algorithm": "lz4; rm"},
            "not a value for zram_algorithm",
            ".zram_algorithm",
            "'lz4; rm'",
        ),
        ({"type": "ext4", "pmbd": "a b"}, "not a value for pmbd", ".pmbd", "'a b'"),
        ({**EXT4, "tunables": {"../x": 1}}, "not a tunable", ".tunables", "../x"),
        (
            {**EXT4, "tunables": {"queue/scheduler": "$(x)"}},
            "not a value for a tunable",
            ".tunables.queue/scheduler",
            "'$(x)'",
        ),
        ({"type": "overlay"}, "an overlay lies over another file system", ".over", "nothing"),
        (
            {"type": "overlay", "over": {"type": "raw", "image": "64MiB"}},
            "an overlay lies over another file system",
            ".over",
            "raw",
        ),
        ({"type": "overlay", "over": {"type": "tmpfs"}}, "tmpfs needs a size", ".over.size", "nothing"),
        ({"type": "pmfs", "size": "1GiB"}, "pmfs needs a device and a size", "", "size"),
        ({"type": "shmfs", "options": ["noatime"]}, "options need a mount of its own", ".options", "noatime"),
        (
            {"type": "shmfs", "size": "1GiB", "options": ["size=2g"]},
            "the size is a key of its own",
            ".options",
            "size=2g",
        ),
        (
            {"type": "xfs", "image": "1GiB", "mkfs": ["-l", "logdev=/dev/sda"]},
            "not options for mkfs.xfs",
            ".mkfs",
            "-l logdev=/dev/sda",
        ),
        (
            {"type": "xfs", "image": "1GiB", "mkfs": ["-d", "agcount=2,name=x"]},
            "not options for mkfs.xfs",
            ".mkfs",
            "-d agcount=2,name=x",
        ),
        ({"type": "btrfs", "image": "1GiB", "mkfs": ["-r", "x"]}, "not options for mkfs.btrfs", ".mkfs", "-r"),
        (
            {"type": "xfs", "image": "1GiB", "options": ["logdev=x"]},
            "a mount option that reaches beyond",
            ".options",
            "'logdev=x'",
        ),
        ({**EXT4, "mkfs": ["-J", "size=4,device=x"]}, "not options for mke2fs", ".mkfs", "-J size=4,device=x"),
        ({**EXT4, "image_dir": "/"}, "not a directory that can be measured", ".image_dir", "'/'"),
        ({"type": "ext4", "image": "1g"}, "a number with its unit is needed", ".image", "'1g' (str)"),
        ({"type": "dir", "path": "/"}, "not a directory that can be measured", ".path", "'/'"),
        ({"type": "dir", "path": "/srv/"}, "not a directory that can be measured", ".path", "'/srv/'"),
        ({"type": "dir", "path": "/dev/sdb"}, "not a directory that can be measured", ".path", "'/dev/sdb'"),
        ({"type": "dir", "path": "/dev/shmx"}, "not a directory that can be measured", ".path", "'/dev/shmx'"),
        ({"type": "bind", "path": "/sys"}, "not a directory that can be measured", ".path", "'/sys'"),
        ({**EXT4, "image_dir": "/dev/disk/by-id/x"}, "not a directory that", ".image_dir", "'/dev/disk/by-id/x'"),
        ({"type": "xfs", "device": "/dev/sdb"}, "a sweep knows a scratch device by its name", ".device", "'/dev/sdb'"),
        ({"type": "dir", "path": "relative/path"}, "not a directory that can be measured", ".path", "'relative/path'"),
        ({"type": "dir", "path": "/srv/../etc"}, "not a directory that can be measured", ".path", "'/srv/../etc'"),
        ({**TMPFS, "options": ["size=64g"]}, "the size is a key of its own", ".options", "size=64g"),
        ({**EXT4, "mkfs": ["-z", "/etc/passwd"]}, "not options for mke2fs", ".mkfs", "-z"),
        ({**EXT4, "mkfs": ["-b", "/dev/sda"]}, "not options for mke2fs", ".mkfs", "-b /dev/sda"),
        ({**EXT4, "mkfs": ["loop0"]}, "not options for mke2fs", ".mkfs", "loop0"),
        ({**EXT4, "mkfs": ["-b"]}, "not options for mke2fs", ".mkfs", "-b"),
        ({"type": "dir", "path": "/home/$USER"}, "not a directory that can be measured", ".path", "'/home/$USER'"),
        ({**TMPFS, "options": ["noatime,size=64g"]}, "not a mount option", ".options", "'noatime,size=64g'"),
        (
            {**TMPFS, "options": ["mpol=weighted interleave:0 x"]},
            "not a mount option",
            ".options",
            "'mpol=weighted interleave:0 x'",
        ),
        ({**TMPFS, "options": ["mpol=a b:0"]}, "not a mount option", ".options", "'mpol=a b:0'"),
        ({**TMPFS, "options": ["no atime"]}, "not a mount option", ".options", "'no atime'"),
    ],
)
def test_a_file_system_that_cannot_be_made_is_refused(entry: dict[str, Any], what: str, where: str, got: str) -> None:
    error = refused_fs(**entry)
    assert (error.where, error.got) == (f"s.yml: filesystems.f{where}", got)
    assert error.what.startswith(what)
    assert error.allowed


@every_row(
    "option",
    [
        "mpol=weighted interleave:0",
        "mpol=weighted interleave=static:0-3,5",
        "mpol=prefer (many):0,1",
        "mpol=bind:0-7:1/2",
    ],
)
def test_a_memory_policy_may_have_a_blank_in_its_name(option: str) -> None:
    """Legal: the kernel calls them so (mm/mempolicy.c: policy_modes)."""
    fs = read_filesystem("t", FilesystemFile(type="tmpfs", size="1GiB", options=[option]), "w")
    assert fs.options == (option,)
    assert split_options(f"noatime,{option},size=1m") == ["noatime", option, "size=1m"]


@every_row("path", ["/srv", "/tmp", "/dev/shm", "/dev/shm/x", "/devices/x", "/mnt/disk", "/a.b/c"])
def test_a_directory_may_lie_anywhere_below_the_root(path: str) -> None:
    """Trap: /srv was refused, which many machines have for their data, and the error did not say why."""
    assert read_filesystem("d", FilesystemFile(type="dir", path=path), "w").path == path
    assert read_filesystem("e", FilesystemFile(type="ext4", image="1GiB", image_dir=path), "w").image_dir == path


@every_row(
    "entry",
    [{"type": "dir", "path": "/dev/sdb"}, {**EXT4, "image_dir": "/proc"}, {"type": "xfs", "device": "/dev/sdb"}],
)
def test_a_device_in_the_place_of_a_directory_or_a_name_is_answered_with_the_way_to_measure_it(
    entry: dict[str, Any],
) -> None:
    assert refused_fs(**entry).next_step == (
        "a device is measured as {type: ext4, device: NAME}, after `mountlab box claim BOX DEVICE`"
    )


def test_a_file_system_is_read_whole() -> None:
    entry = {
        "type": "ext4",
        "image": "1GiB",
        "direct_io": False,
        "mkfs": ["-O", "^has_journal"],
        "options": ["noatime"],
    }
    (fs,) = resolve(changed(filesystems={"f": entry}), where="s.yml").sweep.filesystems
    assert fs == Filesystem(
        name="f", type="ext4", image_bytes=1024**3, direct_io=False, mkfs=("-O", "^has_journal"), options=("noatime",)
    )


# --- presets and overrides --------------------------------------------------------------------------------------------

WITH_PRESETS = changed(
    filesystems={"tmpfs": TMPFS, "disk": {"type": "dir"}},
    design={"repeats": 10, "warmup": 1},
    presets={
        "small": {"design": {"repeats": 3}, "workloads": {"w": {"count": 2}}},
        "no-root": {"filesystems": {"tmpfs": None}},
        "again": {"design": {"repeats": 4}},
    },
)


def test_a_preset_changes_some_keys_and_leaves_the_others() -> None:
    sweep = resolve({**WITH_PRESETS, "preset": "small"}, where="s.yml").sweep
    assert (sweep.design.repeats, sweep.design.warmup) == (3, 1)
    assert sweep.workloads[0].options["count"] == 2
    assert sweep.workloads[0].options["direction"] == "write"


def test_presets_are_applied_in_the_order_given() -> None:
    sweep = resolve(WITH_PRESETS, where="s.yml", overrides={"preset": ["small", "no-root", "again"]}).sweep
    assert sweep.design.repeats == 4
    assert [fs.name for fs in sweep.filesystems] == ["disk"]


def test_null_in_a_preset_removes_a_key() -> None:
    sweep = resolve(WITH_PRESETS, where="s.yml", overrides={"preset": "no-root"}).sweep
    assert [fs.name for fs in sweep.filesystems] == ["disk"]
    assert sweep.design.repeats == 10


def test_without_a_preset_presets_change_nothing() -> None:
    resolved = resolve(WITH_PRESETS, where="s.yml")
    assert resolved.sweep.design.repeats == 10
    assert "presets" not in resolved.parameters


def test_presets_must_be_a_mapping() -> None:
    error = refusal(changed(presets=["small"]))
    assert (error.what, error.where, error.got) == ("presets must be a mapping", "s.yml: presets", "list")


@every_row(
    ("changes", "what", "where", "got"),
    [
        ({"preset": 5}, "preset must be a name or a list of names", "s.yml: preset", "5"),
        ({"preset": [["a"]]}, "preset must be a name or a list of names", "s.yml: preset", "[['a']]"),
        ({"preset": "a", "presets": {"a": None}}, "a preset must be a mapping", "s.yml: presets.a", "NoneType"),
        ({"preset": "a", "presets": {"a": 3}}, "a preset must be a mapping", "s.yml: presets.a", "int"),
    ],
)
def test_presets_of_the_wrong_type_are_refused(changes: dict[str, Any], what: str, where: str, got: str) -> None:
    error = refusal(changed(**changes))
    assert (error.what, error.where, error.got) == (what, where, got)


def test_an_override_through_a_value_without_keys_is_refused() -> None:
    error = refusal(changed(metrics=["elapsed"]), **{"metrics.x": 1})
    assert (error.what, error.where) == ("an override goes through a value that has no keys", "-p metrics.x")
    assert error.got == "metrics is ['elapsed']"


def test_overrides_win_over_presets_and_may_name_a_key_of_the_design_shortly() -> None:
    overrides = {
        "preset": "small",
        "repeats": 7,
        "design.seed": 5,
        "filesystems.tmpfs.size": "1MiB",
        "baseline": "disk",
    }
    sweep = resolve(WITH_PRESETS, where="s.yml", overrides=overrides).sweep
    assert (sweep.design.repeats, sweep.design.seed) == (7, 5)
    assert sweep.filesystems[0].size_bytes == 1024**2
    assert sweep.baseline == "disk"


def test_overrides_do_not_change_the_mapping_that_they_were_given() -> None:
    before = yaml.safe_dump(WITH_PRESETS)
    resolve(WITH_PRESETS, where="s.yml", overrides={"repeats": 7, "filesystems.tmpfs.size": "1MiB", "preset": "small"})
    assert yaml.safe_dump(WITH_PRESETS) == before


def test_an_unknown_override_is_an_error() -> None:
    assert refusal(BASE, repeat=3).got == "'repeat'"
    assert refusal(BASE, **{"design.repeat": 3}).where == "s.yml: design.repeat"


@every_row(
    ("text", "expected"),
    [
        ("repeats=3", ("repeats", 3)),
        ("preset=small", ("preset", "small")),
        ("drop_caches=no", ("drop_caches", False)),
        ("workloads.w.bs=[4KiB, 1MiB]", ("workloads.w.bs", ["4KiB", "1MiB"])),
        ("expectation=a=b", ("expectation", "a=b")),
        ("baseline=", ("baseline", None)),
    ],
)
def test_an_override_is_key_equals_yaml(text: str, expected: tuple[str, Any]) -> None:
    assert parse_override(text) == expected


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("repeats", "an override is KEY=VALUE"),
        ("=3", "an override is KEY=VALUE"),
        ("a=[1", "the value is not valid YAML"),
    ],
)
def test_an_override_that_cannot_be_read_is_refused(text: str, what: str) -> None:
    with pytest.raises(ParameterError, match=what) as caught:
        parse_override(text)
    assert caught.value.where == f"-p {text}"


def test_resolved_parameters_resolve_to_the_same_sweep_again() -> None:
    """A resume and a re-run read what the first run resolved."""
    first = resolve(WITH_PRESETS, where="s.yml", overrides={"preset": ["small", "no-root"], "seed": 3})
    again = resolve(first.parameters, where="run.json")
    assert again.sweep == first.sweep
    assert again.parameters == first.parameters


# --- boxes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "got"), [({}, "nothing"), ({"host": "h", "embedded": "loopback"}, "both host and embedded")]
)
def test_a_box_needs_a_host_or_is_embedded(raw: dict[str, Any], got: str) -> None:
    with pytest.raises(ParameterError, match="a box needs a host") as caught:
        parse_box(raw, name="b", where="b.yml")
    assert (caught.value.where, caught.value.got) == ("b.yml: host", got)
    assert "embedded: loopback" in caught.value.allowed


@every_row("device", ["/dev/sdb", "sdb", "/dev/disk/by-id/../sdb", "/dev/disk/by-id/a b", "UUID=1"])
def test_a_scratch_device_must_be_named_by_a_stable_id(device: str) -> None:
    """Trap: formatting a device because the user typed its name. Names such as sdb move from boot to boot."""
    with pytest.raises(ParameterError, match="a scratch device must be named by a stable id") as caught:
        parse_box({"host": "h", "scratch": {"data": device}}, name="b", where="b.yml")
    assert caught.value.where == "b.yml: scratch.data"
    assert caught.value.got == repr(device)
    assert "/dev/disk/by-id/" in caught.value.allowed


DISK = "/dev/disk/by-id/virtio-mountlab-disk"


@pytest.mark.parametrize(
    ("disks", "scratch", "devices"),
    [
        (0, {"data": "/dev/pmem0"}, {"data": "/dev/pmem0"}),
        (2, {"data": "/dev/pmem0"}, {"data": "/dev/pmem0", "disk1": f"{DISK}1", "disk2": f"{DISK}2"}),
        (1, {"disk1": f"{DISK}1", "disk2": "/dev/pmem0"}, {"disk1": f"{DISK}1", "disk2": "/dev/pmem0"}),
        (8, {}, {f"disk{number}": f"{DISK}{number}" for number in range(1, 9)}),
    ],
)
def test_disks_of_the_virtual_box_are_scratch_devices(
    disks: int, scratch: dict[str, str], devices: dict[str, str]
) -> None:
    box = parse_box({"embedded": "vm", "disks": disks, "scratch": scratch}, name="b", where="b.yml")
    assert {each.name: each.device for each in box.scratch} == devices


@pytest.mark.parametrize(
    ("keys", "where", "got"),
    [
        ({"embedded": "vm", "disks": 9}, "b.yml: disks", "9"),
        ({"embedded": "vm", "disks": -1}, "b.yml: disks", "-1"),
        ({"embedded": "loopback", "disks": 1}, "b.yml: disks", "1"),
        ({"host": "h", "disks": 2}, "b.yml: disks", "2"),
        ({"embedded": "vm", "disks": 1, "scratch": {"disk1": "/dev/pmem0"}}, "b.yml: scratch.disk1", "/dev/pmem0"),
    ],
)
def test_disks_that_a_box_cannot_have(keys: dict[str, object], where: str, got: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_box(keys, name="b", where="b.yml")
    assert caught.value.where == where
    assert got in str(caught.value.got)


@pytest.mark.parametrize(("text", "kernel"), [("6.1", "6.1"), ("'6.1'", "6.1"), ("6.12", "6.12"), ("7.2", "7.2")])
def test_the_kernel_of_a_virtual_box_is_a_number_or_a_text(text: str, kernel: str) -> None:
    raw = parse_yaml(f"embedded: vm\nkernel: {text}\n", where="b.yml")
    assert parse_box(raw, name="b", where="b.yml").kernel == kernel


def test_a_virtual_box_with_zfs() -> None:
    raw = parse_yaml("embedded: vm\nwith: [zfs, zfs]\n", where="b.yml")
    assert parse_box(raw, name="b", where="b.yml").extras == ("zfs",)


@pytest.mark.parametrize(
    ("keys", "where", "allowed"),
    [
        ({"embedded": "vm", "with": "zfs"}, "b.yml: with", "a list"),
        ({"embedded": "vm", "with": ["btrfs"]}, "b.yml: with.0", "'zfs'"),
        ({"host": "h", "with": ["zfs"]}, "b.yml: with", "embedded: vm beside it"),
        ({"embedded": "vm", "with_": ["zfs"]}, "b.yml: with_", "become, disks"),
    ],
)
def test_what_a_box_cannot_have_beside_it(keys: dict[str, object], where: str, allowed: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_box(keys, name="b", where="b.yml")
    assert caught.value.where == where
    assert caught.value.allowed.startswith(allowed)


@pytest.mark.parametrize(
    ("keys", "got", "allowed"),
    [
        ({"embedded": "vm", "kernel": 6.2}, "6.2", "6.1, 6.12, 7.2"),
        ({"embedded": "vm", "kernel": "6.10"}, "6.10", "6.1, 6.12, 7.2"),
        ({"embedded": "vm", "kernel": 6}, "6 (int)", "text"),
        ({"embedded": "loopback", "kernel": 6.1}, "6.1", "embedded: vm beside it"),
        ({"host": "h", "kernel": 7.2}, "7.2", "embedded: vm beside it"),
    ],
)
def test_kernels_that_a_box_cannot_have(keys: dict[str, object], got: str, allowed: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_box(keys, name="b", where="b.yml")
    assert (caught.value.where, caught.value.got) == ("b.yml: kernel", got)
    assert caught.value.allowed.startswith(allowed)


@every_row("path", ["/", "/srv", "srv/x", "/srv/a b", "/srv/$(id)", "/srv/x/", "~/x", "/srv/../etc", "/srv/."])
@every_row("key", ["mount_root", "output_root"])
def test_the_directories_of_a_box_are_plain_paths_below_another(key: str, path: str) -> None:
    with pytest.raises(ParameterError, match="not a directory for Mountlab") as caught:
        parse_box({"host": "h", key: path}, name="b", where="b.yml")
    assert caught.value.where == f"b.yml: {key}"
    assert NOT_PLAIN in caught.value.allowed


def test_a_box_is_read_whole() -> None:
    raw = {"host": "h", "user": "u", "port": 2222, "become": "sudo", "mount_root": "/srv/mountlab",
           "scratch": {"data": "/dev/disk/by-id/nvme-X_1"}}  # fmt: skip
    box = parse_box(raw, name="b", where="b.yml")
    assert (box.name, box.host, box.user, box.port, box.become) == ("b", "h", "u", 2222, "sudo")
    assert [(each.name, each.device) for each in box.scratch] == [("data", "/dev/disk/by-id/nvme-X_1")]


@every_row(
    ("raw", "where"),
    [
        ({"hots": "h"}, "b.yml: hots"),
        ({"host": "h", "port": 0}, "b.yml: port"),
        ({"host": "h", "port": "22"}, "b.yml: port"),
        ({"host": "h", "become": "su"}, "b.yml: become"),
        ({"host": "h", "password": "x"}, "b.yml: password"),
    ],
)
def test_a_wrong_key_or_value_of_a_box_is_refused(raw: dict[str, Any], where: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_box(raw, name="b", where="b.yml")
    assert caught.value.where == where


# --- published figures ------------------------------------------------------------------------------------------------

ROW = {"what": "w", "workload": "dd-write", "metric": "write_bandwidth", "candidate": "tmpfs", "baseline": "ext4",
       "candidate_value": 598e6, "baseline_value": 54e6, "unit": "B/s"}  # fmt: skip


def test_a_published_ratio_is_computed_and_never_typed() -> None:
    """Trap: 380 MB/s to 2.7 GB/s called '71 times'."""
    (figure,) = parse_published(
        {"study": "B", "source": "s", "rows": [{**ROW, "candidate_value": 2.7e9, "baseline_value": 380e6}]},
        where="p.yml",
    )
    assert figure.ratio == pytest.approx(7.105, abs=1e-3)
    assert (figure.study, figure.factors) == ("B", {})


@pytest.mark.parametrize(
    ("change", "what", "where"),
    [
        ({"metric": "speed"}, "unknown metric", "p.yml: w"),
        ({"ratio": 71}, "unknown key", "p.yml: rows.0.ratio"),
        ({"unit": 5}, "wrong type or value", "p.yml: rows.0.unit"),
    ],
)
def test_a_wrong_row_of_published_figures_is_refused(change: dict[str, Any], what: str, where: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_published({"study": "B", "source": "s", "rows": [{**ROW, **change}]}, where="p.yml")
    assert (caught.value.what, caught.value.where) == (what, where)


# --- the files of the repository, and notebooks -----------------------------------------------------------------------


@pytest.mark.slow
@every_row("path", sorted((PARAMS / "sweeps").glob("*.yml")), ids=lambda path: path.stem)
def test_every_sweep_file_loads_with_each_of_its_presets(path: Path) -> None:
    raw = parse_yaml(path.read_text(), where=path.name)
    assert raw["question"].strip()
    for preset in [[], *raw.get("presets", {})]:
        resolved = load_sweep(path, {"preset": preset})
        assert resolved.sweep.cells
        assert resolve(resolved.parameters, where="again").sweep == resolved.sweep
        assert load_box(resolved.sweep.box).name == resolved.sweep.box
        assert load_published(resolved.sweep.published) or not resolved.sweep.published


@pytest.mark.parametrize("path", sorted((PARAMS / "boxes").glob("*.yml")), ids=lambda path: path.stem)
def test_every_box_file_loads(path: Path) -> None:
    box = load_box(path.stem)
    assert box.name == path.stem
    assert box.host or box.embedded


@every_row("path", sorted((PARAMS / "published").glob("*.yml")), ids=lambda path: path.stem)
def test_every_file_of_published_figures_loads(path: Path) -> None:
    figures = load_published((path.stem,))
    assert figures
    assert all(figure.source and (figure.ratio > 0 or (figure.claim and figure.says)) for figure in figures)


def test_an_unknown_notebook_parameter_is_an_error() -> None:
    """Trap: papermill warns only on unknown parameters."""
    unknown_names([*SWEEP_KEYS, "extra"], extra=("extra",))
    with pytest.raises(ParameterError) as caught:
        unknown_names(["question", "workload"])
    assert caught.value.where == "notebook parameter workload"
    assert caught.value.next_step == "did you mean 'workloads'?"
    assert "workloads" in caught.value.allowed


@pytest.mark.parametrize(
    "entry",
    [
        {"tool": "dd", "direction": "write", "count": 1, "cache": "warm"},
        {"tool": "fio", "rw": "randwrite", "size": "1MiB", "cache": "warm"},
    ],
)
def test_a_write_cannot_start_with_a_warm_cache(entry: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="a write has no file to fill the page cache with") as caught:
        resolve({"name": "s", "question": "?", "filesystems": {"t": TMPFS}, "workloads": {"w": entry}}, where="s.yml")
    assert caught.value.where == "s.yml: workloads.w.cache"
    assert caught.value.allowed == "warm for reads; cold or as_is for writes"


def test_a_blank_question_is_no_question() -> None:
    raw = {"name": "s", "question": "  ", "filesystems": {"t": TMPFS}, "workloads": {"w": {"tool": "dd"}}}
    with pytest.raises(ParameterError, match="wrong type or value") as caught:
        resolve(raw, where="s.yml")
    assert caught.value.where == "s.yml: question"


@pytest.mark.parametrize(("key", "meant"), [("repaets", "repeats"), ("qestion", "question"), ("warmpu", "warmup")])
def test_an_override_that_nobody_knows_is_no_fault_of_the_file(key: str, meant: str) -> None:
    with pytest.raises(ParameterError) as caught:
        resolve({"name": "x"}, where="x.yml", overrides={key: 2})
    assert caught.value.where == f"override {key}"
    assert f"did you mean '{meant}'?" in str(caught.value)
    assert {"repeats", "filesystems"} <= set(caught.value.allowed.split(", "))


@pytest.mark.parametrize(("key", "option"), [("runtime", "runtime"), ("run_time", "runtime"), ("bs", "bs")])
def test_an_override_of_an_option_says_where_options_stand(key: str, option: str) -> None:
    with pytest.raises(ParameterError, match="unknown key") as caught:
        resolve({"name": "x"}, where="x.yml", overrides={key: "5s"})
    assert caught.value.next_step == f"it is an option of a workload: -p workloads.NAME.{option}=VALUE"

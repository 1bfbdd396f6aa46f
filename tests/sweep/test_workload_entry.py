"""Which combinations of levels become cells: all, without some, with some more, or one factor at a time."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mountlab.core.errors import ParameterError
from mountlab.core.model import Sweep
from mountlab.programs import TOOLS
from mountlab.sweep.design import mount_groups
from mountlab.sweep.plan_text import thinned
from mountlab.sweep.sweep_file import SWEEP_KEYS, resolve
from mountlab.sweep.workload_entry import DESIGN_KEYS
from rows import every_row

FILESYSTEMS = {"tmpfs": {"type": "tmpfs", "size": "64MiB"}, "ext4": {"type": "ext4", "image": "1GiB"}}
FIO = {"tool": "fio", "rw": ["read", "write"], "bs": ["4KiB", "64KiB", "1MiB"], "size": "8MiB"}
DD = {"tool": "dd", "direction": "write", "count": 8}
ALL = ["read 4KiB", "read 64KiB", "read 1MiB", "write 4KiB", "write 64KiB", "write 1MiB"]


def make(*, exclude: Any = None, workloads: dict[str, Any] | None = None, **fio: Any) -> Sweep:
    """A sweep of two file systems under `fio`, with what a test changes of it."""
    raw = {
        "name": "s",
        "question": "Why?",
        "filesystems": FILESYSTEMS,
        "workloads": workloads or {"fio": {**FIO, **fio}},
        "exclude": exclude,
        "design": {"repeats": 3, "seed": 1},
    }
    return resolve(raw, where="s.yml").sweep


def levels(sweep: Sweep) -> list[str]:
    return [" ".join(workload.factors.values()) for workload in sweep.workloads]


def fio(**changes: Any) -> list[str]:
    """The combinations of the workload with these keys."""
    return levels(make(workloads={"fio": {**FIO, **changes}}))


def refused_fio(**changes: Any) -> ParameterError:
    with pytest.raises(ParameterError) as caught:
        fio(**changes)
    return caught.value


def refused(exclude: Any, **changes: Any) -> ParameterError:
    with pytest.raises(ParameterError) as caught:
        make(exclude=exclude, **changes)
    return caught.value


# ── combinations of a workload ───────────────────────────────────────────────────────────────────────────────────────


@every_row(
    ("changes", "expected"),
    [
        ({}, ALL),
        ({"vary": "all-combinations"}, ALL),
        ({"exclude": [{"rw": "read", "bs": "1MiB"}]}, [each for each in ALL if each != "read 1MiB"]),
        ({"exclude": [{"bs": "64KiB"}]}, ["read 4KiB", "read 1MiB", "write 4KiB", "write 1MiB"]),
        ({"exclude": [{"bs": ["64KiB", "1MiB"]}]}, ["read 4KiB", "write 4KiB"]),
        ({"exclude": [{"bs": "4096B", "rw": "read"}]}, ALL[1:]),
        (
            {"exclude": [{"bs": "1MiB"}, {"rw": "read", "bs": "1MiB"}, {"rw": "write", "bs": "4KiB"}]},
            ["read 4KiB", "read 64KiB", "write 64KiB"],
        ),
        ({"also": [{"rw": "randread", "bs": "4KiB"}]}, [*ALL, "randread 4KiB"]),
        ({"also": [{"bs": "4MiB"}]}, [*ALL, "read 4MiB", "write 4MiB"]),
        ({"also": [{"rw": "randread", "bs": ["4KiB", "8KiB"]}]}, [*ALL, "randread 4KiB", "randread 8KiB"]),
        (
            {"exclude": [{"bs": "1MiB"}], "also": [{"rw": "write", "bs": "1MiB"}]},
            ["read 4KiB", "read 64KiB", "write 4KiB", "write 64KiB", "write 1MiB"],
        ),
        ({"vary": "one-at-a-time"}, ["read 4KiB", "write 4KiB", "read 64KiB", "read 1MiB"]),
        ({"vary": "one-at-a-time", "exclude": [{"bs": "64KiB"}]}, ["read 4KiB", "write 4KiB", "read 1MiB"]),
        (
            {"vary": "one-at-a-time", "also": [{"rw": "write", "bs": "1MiB"}]},
            ["read 4KiB", "write 4KiB", "read 64KiB", "read 1MiB", "write 1MiB"],
        ),
        (
            {"vary": "one-at-a-time", "also": [{"rw": "randread"}]},
            ["read 4KiB", "write 4KiB", "read 64KiB", "read 1MiB", "randread 4KiB"],
        ),
    ],
)
def test_which_combinations_there_are(changes: dict[str, Any], expected: list[str]) -> None:
    assert fio(**changes) == expected


def test_an_addition_may_name_what_is_no_factor_elsewhere() -> None:
    sweep = make(vary="one-at-a-time", also=[{"rw": "randrw", "rwmixread": [70, 30]}])
    added = sweep.workloads[-2:]
    assert [each.label for each in added] == [
        "fio rw=randrw bs=4KiB rwmixread=70",
        "fio rw=randrw bs=4KiB rwmixread=30",
    ]
    assert [each.options["rwmixread"] for each in added] == [70, 30]
    assert "rwmixread" not in sweep.workloads[0].factors


@pytest.mark.slow
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_one_at_a_time_is_a_baseline_and_each_other_level_once(sizes: list[int]) -> None:
    values: dict[str, list[Any]] = {
        "rw": ["read", "write", "randread", "randwrite"], "bs": ["1KiB", "2KiB", "4KiB", "8KiB"],
        "iodepth": [1, 2, 4, 8], "numjobs": [1, 2, 3, 4],
    }  # fmt: skip
    swept = {key: values[key][:size] for key, size in zip(values, sizes, strict=False)}
    sweep = make(workloads={"fio": {"tool": "fio", "size": "8MiB", **swept, "vary": "one-at-a-time"}})
    baseline = sweep.workloads[0].factors
    assert baseline == {key: str(levels[0]) for key, levels in swept.items()}
    apart = [[key for key in baseline if each.factors[key] != baseline[key]] for each in sweep.workloads[1:]]
    assert all(len(keys) == 1 for keys in apart)
    assert Counter(key for keys in apart for key in keys) == Counter(
        {key: len(each) - 1 for key, each in swept.items()}
    )


def test_a_combination_that_is_excluded_need_not_make_sense() -> None:
    """dd takes iflag for what it reads: a write with it is refused, unless it is excluded."""
    entry = {"tool": "dd", "direction": ["read", "write"], "count": 8, "iflag": ["direct"]}
    with pytest.raises(ParameterError, match="iflag would not be in effect"):
        make(workloads={"dd": entry})
    sweep = make(workloads={"dd": {**entry, "exclude": [{"direction": "write"}]}})
    assert levels(sweep) == ["read direct"]


@every_row(
    ("changes", "what", "where", "got", "next_step"),
    [
        (
            {"exclude": [{"rw": "raed"}]},
            "wrong value for an option",
            "exclude[0].rw",
            "'raed' (str)",
            "did you mean 'read'?",
        ),
        ({"exclude": [{"bs": "8KiB"}]}, "no such level", "exclude[0].bs", "'8KiB'", "did you mean '4KiB'?"),
        ({"exclude": [{"rw": "randread"}]}, "no such level", "exclude[0].rw", "'randread'", "did you mean 'read'?"),
        (
            {"exclude": [{"rww": "read"}]},
            "unknown factor of this workload",
            "exclude[0].rww",
            "'rww'",
            "did you mean 'rw'?",
        ),
        (
            {"exclude": [{"size": "8MiB"}]},
            "unknown factor of this workload",
            "exclude[0].size",
            "'size'",
            "size has one value here: give it a list of levels, or exclude the whole workload",
        ),
        (
            {"exclude": [{"bs": "4KiB"}, {"bs": ["64KiB", 4096]}]},
            "a number with its unit is needed",
            "exclude[1].bs",
            "4096 (int)",
            None,
        ),
        (
            {"vary": "one-at-a-time", "exclude": [{"rw": "write", "bs": "1MiB"}]},
            "an exclusion matches nothing",
            "exclude[0]",
            "{'rw': 'write', 'bs': '1MiB'}",
            "with vary: one-at-a-time one factor at most leaves its first level",
        ),
        (
            {"exclude": [{"rw": ["read", "write"]}]},
            "no combination is left",
            "exclude",
            "all 6 are excluded",
            "remove the workload, or an exclusion",
        ),
        ({"exclude": {"rw": "read"}}, "a list of combinations is needed", "exclude", "{'rw': 'read'}", ""),
        ({"exclude": []}, "a list of combinations is needed", "exclude", "[]", ""),
        ({"exclude": [{}]}, "a combination names options and their values", "exclude[0]", "{}", ""),
        ({"also": ["read"]}, "a combination names options and their values", "also[0]", "'read'", ""),
        (
            {"also": [{"rw": "read", "bs": "4KiB"}]},
            "an addition is there already",
            "also[0]",
            "{'rw': 'read', 'bs': '4KiB'}",
            "it is the cell fio rw=read bs=4KiB",
        ),
        (
            {"also": [{"rw": "randrw", "bs": "4KiB"}, {"rw": "randrw", "bs": "4096B"}]},
            "an addition is there already",
            "also[1]",
            "{'rw': 'randrw', 'bs': '4096B'}",
            "it is the cell fio rw=randrw bs=4KiB",
        ),
        (
            {"also": [{"rw": "randrw", "bs": ["4KiB", "4096B"]}]},
            "a level is given twice",
            "also[0].bs",
            "'4096B'",
            None,
        ),
        ({"also": [{"tool": "dd"}]}, "unknown option for fio", "also[0].tool", "'tool'", None),
        ({"vary": "one at a time"}, "unknown way to vary", "vary", "'one at a time'", "did you mean 'one-at-a-time'?"),
        ({"vary": True}, "unknown way to vary", "vary", "True", "remove it, or use one of the allowed ones"),
        (
            {"vary": "one-at-a-time", "rw": "read", "bs": "4KiB"},
            "nothing varies",
            "vary",
            "no option with a list of levels",
            "give an option a list, such as bs: [4KiB, 64KiB]; its first level is the baseline",
        ),
    ],
)
def test_what_cannot_be_meant_is_an_error(
    changes: dict[str, Any], what: str, where: str, got: str, next_step: str | None
) -> None:
    error = refused_fio(**changes)
    assert (error.what, error.where, error.got) == (what, f"s.yml: workloads.fio.{where}", got)
    if next_step is not None:
        assert error.next_step == next_step


@every_row("tool", sorted(TOOLS))
def test_no_tool_has_an_option_of_these_names(tool: str) -> None:
    assert not {*TOOLS[tool].options, *TOOLS[tool].reserved} & {*DESIGN_KEYS, "tool", "filesystem"}


# ── cells across file systems ────────────────────────────────────────────────────────────────────────────────────────


def cells(sweep: Sweep, filesystem: str) -> list[str]:
    return [" ".join(c.workload.factors.values()) for c in sweep.cells if c.filesystem.name == filesystem]


def test_the_sweep_excludes_cells() -> None:
    sweep = make(exclude=[{"filesystem": "tmpfs", "workload": "fio", "rw": "write", "bs": ["4KiB", "64KiB"]}])
    assert cells(sweep, "tmpfs") == ["read 4KiB", "read 64KiB", "read 1MiB", "write 1MiB"]
    assert cells(sweep, "ext4") == ALL
    assert sweep.excluded == ("tmpfs/fio rw=write bs=4KiB", "tmpfs/fio rw=write bs=64KiB")
    assert not sweep.has_cell("tmpfs/fio rw=write bs=4KiB")
    assert sweep.has_cell("ext4/fio rw=write bs=4KiB")


def test_an_exclusion_may_name_several_and_options_that_are_not_swept() -> None:
    workloads = {"fio": {**FIO, "rw": "read"}, "w": DD, "big": {**DD, "bs": "8MiB", "count": [8, 16]}}
    assert cells(make(workloads=workloads, exclude=[{"filesystem": "ext4", "bs": "8MiB"}]), "ext4") == [
        "4KiB",
        "64KiB",
        "1MiB",
        "",
    ]
    both = make(workloads=workloads, exclude=[{"filesystem": ["ext4"], "workload": ["w", "big"]}])
    assert cells(both, "ext4") == ["4KiB", "64KiB", "1MiB"]
    one = make(workloads=workloads, exclude=[{"filesystem": "ext4", "workload": "big count=8"}])
    assert one.excluded == ("ext4/big count=8",)
    by_option = make(workloads=workloads, exclude=[{"filesystem": "tmpfs", "size": "8MiB"}])
    assert cells(by_option, "tmpfs") == ["", "8", "16"]


@every_row(
    ("exclude", "what", "where", "got", "next_step"),
    [
        (
            [{"filesystem": "tmpf", "rw": "read"}],
            "unknown file system",
            "exclude[0].filesystem",
            "'tmpf'",
            "did you mean 'tmpfs'?",
        ),
        ([{"workload": "foi"}], "unknown workload", "exclude[0].workload", "'foi'", "did you mean 'fio'?"),
        (
            [{"filesystem": "tmpfs"}, {"filesystm": "ext4"}],
            "unknown factor of these cells",
            "exclude[1].filesystm",
            "'filesystm'",
            "did you mean 'filesystem'?",
        ),
        (
            [{"filesystem": "tmpfs", "rww": "read"}],
            "unknown factor of these cells",
            "exclude[0].rww",
            "'rww'",
            "did you mean 'rw'?",
        ),
        (
            [{"filesystem": "tmpfs", "rw": "randread"}],
            "no such level",
            "exclude[0].rw",
            "'randread'",
            "did you mean 'read'?",
        ),
        (
            [{"filesystem": "tmpfs", "size": "9MiB"}],
            "no such level",
            "exclude[0].size",
            "'9MiB'",
            "did you mean '8MiB'?",
        ),
        (
            [{"filesystem": "tmpfs", "bs": "4k"}],
            "a number with its unit is needed",
            "exclude[0].bs",
            "'4k' (str)",
            None,
        ),
        (
            [{"filesystem": "tmpfs", "bs": "1MiB", "rw": "write"}],
            "an exclusion matches nothing",
            "exclude[0]",
            "{'filesystem': 'tmpfs', 'bs': '1MiB', 'rw': 'write'}",
            "each of these values occurs, but never together",
        ),
        (
            [{"filesystem": "tmpfs"}],
            "no cell of a file system is left",
            "exclude",
            "tmpfs",
            "remove the file system, or an exclusion",
        ),
        (
            [{"rw": "write"}],
            "no cell of a workload is left",
            "exclude",
            "fio rw=write bs=4KiB",
            "remove the workload, or an exclusion",
        ),
        ([{}], "a combination names options and their values", "exclude[0]", "{}", None),
        ([], "a list of combinations is needed", "exclude", "[]", None),
    ],
)
def test_an_exclusion_that_takes_out_nothing_or_too_much_is_an_error(
    exclude: list[dict[str, Any]], what: str, where: str, got: str, next_step: str | None
) -> None:
    error = refused(exclude, vary="one-at-a-time")
    assert (error.what, error.where, error.got) == (what, f"s.yml: {where}", got)
    if next_step is not None:
        assert error.next_step == next_step


def test_a_baseline_without_a_workload_to_compare_is_an_error() -> None:
    raw = {
        "name": "s", "question": "Why?", "filesystems": FILESYSTEMS, "workloads": {"w": DD, "v": DD},
        "exclude": [{"filesystem": "tmpfs", "workload": "w"}, {"filesystem": "ext4", "workload": "v"}],
    }  # fmt: skip
    assert len(resolve(raw, where="s.yml").sweep.cells) == 2
    with pytest.raises(ParameterError) as caught:
        resolve({**raw, "baseline": "ext4"}, where="s.yml")
    assert caught.value.what == "the baseline shares no workload with another file system"
    assert (caught.value.where, caught.value.got) == ("s.yml: exclude", "baseline ext4")


@pytest.mark.parametrize("exclude", [{"filesystem": "tmpfs"}, ["tmpfs"], "tmpfs"])
def test_exclude_is_a_list_of_mappings(exclude: Any) -> None:
    error = refused(exclude)
    assert error.what == "wrong type or value"
    assert error.where.startswith("s.yml: exclude")


# ── who lives with cells that do not exist ───────────────────────────────────────────────────────────────────────────


HOLES = [{"filesystem": "tmpfs", "rw": "write"}, {"filesystem": "ext4", "rw": "read", "bs": "1MiB"}]


@pytest.mark.parametrize("fresh", ["block", "cell", "never"])
def test_each_block_holds_the_cells_that_there_are(fresh: str) -> None:
    raw = {
        "name": "s", "question": "Why?", "filesystems": FILESYSTEMS, "workloads": {"fio": FIO}, "exclude": HOLES,
        "design": {"repeats": 3, "warmup": 1, "fresh_filesystem": fresh},
    }  # fmt: skip
    sweep = resolve(raw, where="s.yml").sweep
    order = mount_groups(sweep, 5)
    expected = {cell.id: 1 for cell in sweep.cells}
    assert len(expected) == 8
    for block in range(4):
        assert Counter(c.id for group in order if group.block == block for c in group.cells) == expected
    assert all(group.cells for group in order)


def test_the_key_is_a_parameter_of_the_notebook_and_stays_when_resolved_again() -> None:
    assert "exclude" in SWEEP_KEYS
    raw = {"name": "s", "question": "Why?", "filesystems": FILESYSTEMS, "workloads": {"fio": FIO}, "exclude": HOLES}
    once = resolve(raw, where="s.yml")
    assert resolve(once.parameters, where="run.json").sweep == once.sweep
    without = resolve(raw, where="s.yml", overrides={"exclude": None})
    assert without.sweep.excluded == ()


def test_a_preset_may_take_the_place_of_exclusions() -> None:
    raw = {
        "name": "s", "question": "Why?", "filesystems": FILESYSTEMS, "workloads": {"fio": FIO}, "exclude": HOLES,
        "presets": {"small": {"workloads": {"fio": {"bs": ["4KiB"]}}, "exclude": None}},
    }  # fmt: skip
    with pytest.raises(ParameterError, match="no such level"):
        resolve(raw, where="s.yml", overrides={"workloads.fio.bs": ["4KiB"]})
    assert len(resolve(raw, where="s.yml", overrides={"preset": "small"}).sweep.cells) == 4


def test_the_plan_says_what_is_thinned() -> None:
    assert thinned(make()) == []
    assert thinned(make(exclude=HOLES)) == [
        "tmpfs: without fio rw=write bs=4KiB, fio rw=write bs=64KiB, fio rw=write bs=1MiB",
        "ext4: without fio rw=read bs=1MiB",
    ]
    assert thinned(make(vary="one-at-a-time")) == ["fio: 4 of the 6 combinations of rw (2) and bs (3)"]
    many = make(
        rw=["read", "write", "randread", "randwrite"], exclude=[{"filesystem": "tmpfs", "bs": ["4KiB", "1MiB"]}]
    )
    assert thinned(many) == [
        "tmpfs: without fio rw=read bs=4KiB, fio rw=read bs=1MiB, fio rw=write bs=4KiB, fio rw=write bs=1MiB and 4 more"
    ]


@every_row("name", ["n", "mean", "block", "filesystem", "label"])
def test_a_factor_is_not_named_like_a_column_of_the_results(name: str) -> None:
    """It would be written over the figure of that name."""
    metrics = {"elapsed": {"pattern": "([0-9.]+) s", "unit": "s"}}
    entry = {
        "tool": "command",
        "argv": f"echo {{{name}}} {{directory}}",
        name: [1, 2],
        "space": "1MiB",
        "metrics": metrics,
    }
    with pytest.raises(ParameterError, match="name of a column") as caught:
        resolve(
            {"name": "s", "question": "?", "filesystems": {"d": {"type": "dir"}}, "workloads": {"w": entry}},
            where="s.yml",
        )
    assert caught.value.where.endswith(f"workloads.w.{name}")

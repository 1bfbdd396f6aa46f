"""What the name of a file says by a pattern: a name in braces may hold the character that follows it."""

from __future__ import annotations

import random
from typing import Any

import pytest
from mountlab.core.errors import ParameterError
from mountlab.results.import_file import Layout, layout, read_import
from mountlab.results.import_names import ways
from rows import every_row
from waiting import no_hang


def placed(names: list[str], **raw: Any) -> Layout:
    file = read_import({"name": "n", "question": "?", "tool": "fio", **raw}, where="old.yml")
    return layout(file, names, where="old.yml")


def found(name: str, **raw: Any) -> dict[str, str]:
    """What the only log says of itself."""
    (log,) = placed([name], **raw).logs
    return {"filesystem": log.filesystem, "workload": log.workload.name, **log.workload.factors, "repeat": log.repeat}


def refusal(name: str, **raw: Any) -> ParameterError:
    with pytest.raises(ParameterError) as caught:
        placed([name], **raw)
    return caught.value


TWO = "{filesystem}-{workload}.log"


def test_a_named_file_system_may_hold_the_character_that_follows_it() -> None:
    named = {"filesystems": {"do-5bucks": {}}, "files": TWO}
    assert found("do-5bucks-nightly.log", **named) == {"filesystem": "do-5bucks", "workload": "nightly", "repeat": ""}
    assert found("do-5bucks-a-b.log", **named)["workload"] == "a-b"


def test_a_named_workload_tells_where_the_file_system_ends() -> None:
    said = found("do-5bucks-big-files.log", files=TWO, workloads={"big-files": {}})
    assert (said["filesystem"], said["workload"]) == ("do-5bucks", "big-files")


def test_the_baseline_names_a_file_system() -> None:
    names = ["do-5bucks-nightly.log", "ext4-nightly.log"]
    assert {log.filesystem for log in placed(names, files=TWO, baseline="do-5bucks").logs} == {"do-5bucks", "ext4"}


def test_a_workload_and_levels_that_the_tool_knows_tell_where_a_name_ends() -> None:
    assert found("do-5bucks-randwrite.log", files=TWO)["filesystem"] == "do-5bucks"
    said = found("do-5bucks-randwrite-4k-1.log", files="{filesystem}-{rw}-{bs}-{repeat}.log")
    assert said == {"filesystem": "do-5bucks", "workload": "fio", "rw": "randwrite", "bs": "4k", "repeat": "1"}


def test_a_name_that_fits_in_several_ways_is_refused_and_shows_them() -> None:
    error = refusal("do-5bucks-nightly.log", files=TWO)
    assert (error.what, error.where) == (
        "the name of a log fits its pattern in several ways",
        "old.yml: do-5bucks-nightly.log",
    )
    assert error.got == "filesystem=do, workload=5bucks-nightly; filesystem=do-5bucks, workload=nightly"
    assert TWO in error.allowed
    assert "filesystems: {NAME: {}}" in error.next_step
    both = refusal("do-5bucks-nightly.log", files=TWO, filesystems={"do": {}, "do-5bucks": {}})
    assert both.got == error.got, "named both"


def test_levels_that_hold_the_character_do_not_shift_into_the_next() -> None:
    """Before, `lazy` was the block size and `1M-1` the repeat."""
    pattern = "{filesystem}-{bs}-{repeat}.txt"
    assert found("ext4-lazy-1M-1.txt", files=pattern) == {
        "filesystem": "ext4-lazy",
        "workload": "fio",
        "bs": "1M",
        "repeat": "1",
    }
    assert "several ways" in refusal("ext4-lazy-big-1.txt", files=pattern).what


@every_row(
    ("name", "pattern", "filesystem"),
    [
        ("ext4-1M-3.txt", "{filesystem}-*.txt", "ext4"),
        ("read-ext4-run-1.log", "read-{filesystem}-*.log", "ext4"),
        ("a/b/ext4.txt", "**/{filesystem}.txt", "ext4"),
        ("ext4.old.txt", "{filesystem}.txt", "ext4.old"),
        ("ext4/ext4-1.txt", "{filesystem}/{filesystem}-{repeat}.txt", "ext4"),
        ("ext4-1/ext4-1-2.txt", "{filesystem}/{filesystem}-{repeat}.txt", "ext4-1"),
    ],
)
def test_a_wildcard_stands_for_as_much_as_it_can(name: str, pattern: str, filesystem: str) -> None:
    assert found(name, files=pattern)["filesystem"] == filesystem


def test_names_without_a_separator_between_them_need_to_be_known() -> None:
    assert "several ways" in refusal("ext41.txt", files="{filesystem}{repeat}.txt").what
    said = found("ext41.txt", files="{filesystem}{repeat}.txt", filesystems={"ext4": {}})
    assert (said["filesystem"], said["repeat"]) == ("ext4", "1")


def test_the_order_of_names_in_two_patterns_makes_no_other_cell() -> None:
    names = ["a/ext4-read-4k-1.json", "b/4k-read-ext4-2.json"]
    whole = placed(names, files=["a/{filesystem}-{rw}-{bs}-{repeat}.json", "b/{bs}-{rw}-{filesystem}-{repeat}.json"])
    assert [workload.label for workload in whole.workloads] == ["fio rw=read bs=4k"]
    assert {log.workload.label for log in whole.logs} == {"fio rw=read bs=4k"}


@every_row("seed", range(100))
def test_the_way_in_which_a_name_was_made_is_among_those_found(seed: int) -> None:
    rng = random.Random(seed)
    words = {key: "".join(rng.choices("ab-.", k=rng.randrange(1, 5))) for key in ("x", "y", "z")}
    pattern = rng.choice(["{x}-{y}.{z}", "{x}{y}-*-{z}", "l/{x}/{y}?{z}", "{x}-{x}-{y}-{z}.log", "*{x}.{y}-{z}"])
    name = pattern.replace("*", "a-").replace("?", "-")
    for key, word in words.items():
        name = name.replace(f"{{{key}}}", word)
    every = [dict(way.says) for way in ways(pattern, name)]
    assert words in every
    for says in every:
        made = pattern
        for key, word in says.items():
            made = made.replace(f"{{{key}}}", word)
        assert len(made.replace("*", "").replace("?", "")) <= len(name)


@pytest.mark.slow
def test_a_hostile_name_does_not_hang() -> None:
    """Where each way were tried it would be years."""
    with no_hang():
        ways("*-*-*-{a}-{b}-{c}-{d}-{e}.log", "-".join(["a"] * 100) + ".log")
        ways("{a}{b}{c}{d}{e}{f}", "a" * 250)
        ways("{a}-{b}-{c}-{d}-{e}-{f}y{g}.log", "a-y" + "-a" * 120 + ".log")

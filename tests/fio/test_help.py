"""What the box's own fio says of its options (recorded from fio 3.33), and what a sweep may not ask of it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from mountlab.box.survey import _help_command
from mountlab.core.errors import ParameterError
from mountlab.core.model import Scalar, Sweep
from mountlab.fio.help import read_help
from mountlab.fio.options import ENGINES, OPTIONS, RESERVED
from mountlab.fio.tool import Fio
from mountlab.sweep.sweep_file import resolve
from rows import every_row

HELP = (Path(__file__).parents[1] / "data" / "fio" / "help-3.33.txt").read_text()
DEFAULTS: dict[str, Scalar] = {key: o.default for key, o in OPTIONS.items() if o.default is not None}


def check(text: str = HELP, **options: Any) -> None:
    needed: dict[str, Scalar] = {"size": 2**20} if "jobs" in options else {"size": 2**20, "rw": "randread"}
    Fio().check_help({**DEFAULTS, **needed, **options}, text, where="s.yml: workloads.w")


def refused(**options: Any) -> ParameterError:
    with pytest.raises(ParameterError) as caught:
        check(**options)
    return caught.value


@every_row(
    "options",
    [
        {"hipri": 1, "ioengine": "io_uring"}, {"nowait": 1, "ioengine": "libaio"}, {"sync": 1}, {"bs": 1 << 31},
        {"rwmixread": 100}, {"sync_file_range": "wait_before,write:8"}, {"jobs": "[a]\nnorandommap\n[b]\nrw=write\n"},
    ],
)  # fmt: skip
def test_what_fio_takes_passes(options: dict[str, Any]) -> None:
    check(**options)


def test_an_option_of_another_engine_is_refused_with_that_engine() -> None:
    error = refused(sqthread_poll=1)
    assert error.what == "the box's fio has no such option with ioengine psync"
    assert error.allowed == "with ioengine io_uring"


@pytest.mark.parametrize(
    ("options", "name", "allowed"),
    [
        ({"rwmixread": 101}, "rwmixread", "from 0 to 100"), ({"iodepth": 0}, "iodepth", "from 1 on"),
        ({"direct": 2}, "direct", "from 0 to 1"),
    ],
)  # fmt: skip
def test_a_value_beyond_the_range_is_refused(options: dict[str, Any], name: str, allowed: str) -> None:
    error = refused(**options)
    assert (error.what, error.where) == ("beyond what the box's fio takes", f"s.yml: workloads.w.{name}")
    assert (error.got, error.allowed) == (str(options[name]), allowed)


@pytest.mark.parametrize("options", [{"verify": "crc32d"}, {"fallocate": "nativ"}, {"random_distribution": "zip:1"}])
def test_a_value_that_is_none_of_the_choices_is_refused_with_the_nearest(options: dict[str, Any]) -> None:
    error = refused(**options)
    assert error.what == "the box's fio does not take this value"
    assert error.allowed
    assert error.next_step


INTEGER = "{0}\noption {1}\n    {1}: Some option\n     type: {2}\n  default: 0\n"


@every_row(
    ("name", "type_", "value", "allowed"),
    [
        ("rate_iops", "integer value (opt=100)", "fast", "a whole number, as 100 or 4k"),
        ("verify_backlog", "integer value (opt=100)", 1.5, "a whole number, as 100 or 4k"),
        ("overwrite", "boolean value (opt=1)", "maybe", "0 or 1"),
        ("norandommap", "empty or boolean value ([0|1])", "maybe", "0 or 1"),
    ],
)
def test_a_word_where_the_help_of_the_box_says_a_number_is_refused(
    name: str, type_: str, value: Scalar, allowed: str
) -> None:
    with pytest.raises(ParameterError) as caught:
        check(INTEGER.format(HELP, name, type_), **{name: value})
    assert (caught.value.what, caught.value.where) == (
        "the box's fio takes a number here",
        f"s.yml: workloads.w.{name}",
    )
    assert (caught.value.got, caught.value.allowed) == (repr(str(value)), allowed)


@every_row("value", [100, "100,200", "4k", "10ms", "-3", ",5", 2**63])
def test_a_number_where_the_help_of_the_box_says_one_passes(value: Scalar) -> None:
    check(INTEGER.format(HELP, "nice", "integer value (opt=100)"), nice=value)


def test_an_option_in_a_job_file_is_refused_with_its_job() -> None:
    error = refused(jobs="[log]\nrw=write\niodpeth=4\n")
    assert error.where == "s.yml: workloads.w.jobs: [log].iodpeth"


@pytest.mark.parametrize("text", ["", "sh: 1: fio: not found\n", "fio: unrecognized option '--cmdhelp=all'\n"])
def test_a_box_that_says_nothing_of_use_is_not_asked(text: str) -> None:
    """Whether it has fio at all is checked elsewhere."""
    assert read_help(text) is None
    check(text, iodpeth=4)


def test_the_command_is_given_the_names_of_the_options_of_its_workloads() -> None:
    entries = {"f": {"tool": "fio", "rw": "read", "size": "1MiB", "thinktime": 5},
               "d": {"tool": "dd", "direction": "write", "count": 1}}  # fmt: skip
    raw = {"name": "s", "question": "?", "filesystems": {"d": {"type": "dir"}}, "workloads": entries}
    swept: Sweep = resolve(raw, where="tests").sweep
    argv = _help_command(Fio(), swept)
    assert argv[:2] == ("sh", "-c")
    assert argv[3] == "fio-help"
    assert argv[4:] == ("bs", "ioengine", "numjobs", "refill_buffers", "rw", "size", "thinktime")


@pytest.mark.slow
@pytest.mark.requires_program("fio")
def test_the_fio_that_is_installed_here_answers_in_the_same_form() -> None:
    argv = (*Fio.box_help[:-1], "cache", "rw", "rwmixread", "ioengine", "jobs")
    text = subprocess.run(argv, capture_output=True, text=True, check=False).stdout
    assert "No such command" not in text, "what Mountlab itself takes is not asked for"
    known = read_help(text)
    assert known is not None
    assert known.described["rwmixread"].high == 100
    assert "randread" in known.described["rw"].values
    assert known.names >= {*OPTIONS} - {"cache", "jobs", "variables"}
    assert set(ENGINES) & {*known.described["ioengine"].values} >= {"psync", "sync", "mmap"}
    assert known.engines["io_uring"] | known.engines["libaio"]


def test_no_other_name_of_an_option_slips_past_the_reserved_ones() -> None:
    """--cmdhelp lists real names only, so whatever is an alias to fio is unknown to the plan."""
    known = read_help(HELP)
    assert known is not None
    aliases = {"readwrite", "blocksize", "io_limit", "fileoffset", "iomem", "timeout", "fill_fs", "ss"}
    assert aliases <= set(RESERVED)
    assert not aliases & known.names

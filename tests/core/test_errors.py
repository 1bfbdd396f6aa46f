"""The tree of errors, and the text that people read."""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from io import StringIO

import pytest
from mountlab.core import errors
from mountlab.core.errors import (
    BoxError,
    InputError,
    MountlabError,
    ToolError,
    TrialError,
    UnsafeError,
    did_you_mean,
    failure_headline,
    in_one_line,
)
from rows import every_row

TREE = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, MountlabError)]
NEXT_TO_NAME = re.compile(r"[├└]── (\w+)\s+(\d)")


def test_an_error_shows_each_part_on_a_labelled_line() -> None:
    error = InputError("a size is wrong", where="x.yml: size", got="4k", allowed="4KiB", next_step="write 4KiB")
    assert str(error).splitlines() == [
        "a size is wrong",
        "  where:   x.yml: size",
        "  got:     4k",
        "  allowed: 4KiB",
        "  next:    write 4KiB",
    ]


def test_a_notebook_shows_the_message_and_no_way_through_our_code() -> None:
    """IPython itself, on a file that is not there."""
    interactiveshell = pytest.importorskip("IPython.core.interactiveshell")
    # Else the history is written at the end, when the user's home is gone.
    no_history = pytest.importorskip("traitlets.config").Config({"HistoryManager": {"enabled": False}})
    shell = interactiveshell.InteractiveShell(config=no_history)
    with redirect_stdout(StringIO()) as said:
        shell.run_cell('import mountlab\nmountlab.load_sweep("params/sweeps/none.yml")')
    lines = said.getvalue().strip().splitlines()
    assert len(lines) <= 6, said.getvalue()
    assert lines[0].startswith("no such")
    assert lines[1].split() == ["where:", "params/sweeps/none.yml"]


def test_parts_that_are_not_known_take_no_line() -> None:
    assert str(MountlabError("it broke")) == "it broke"
    assert str(MountlabError("it broke", got="3")) == "it broke\n  got:     3"


def test_long_evidence_is_shown_by_both_its_ends() -> None:
    """mkfs.xfs says why first and then how it is used; others the other way round."""
    error = MountlabError("mkfs failed", evidence="\n".join(f"line {i}" for i in range(30)))
    said = str(error).splitlines()
    assert said[:2] == ["mkfs failed", "  it said:"]
    ends = [*range(3), *range(22, 30)]
    assert [line for line in said[2:] if "..." not in line] == [f"    | line {i}" for i in ends]
    assert said[5] == "    | ... (19 lines)"


@every_row(
    ("evidence", "best"),
    [
        (
            "mount: wrong fs type\nthe kernel logged:\nfirst\nxfs: Unknown parameter 'nobarrier'",
            "mount: wrong fs type; xfs: Unknown parameter 'nobarrier'",
        ),
        ("the kernel logged:\nfirst\nlast", "last"),
        ("sh: printf: I/O error\nrefused: the kernel does not take 3", "the kernel does not take 3"),
        ("mke2fs: no\nsecond", "mke2fs: no"),
    ],
)
def test_in_one_line_what_tells_most_is_said(evidence: str, best: str) -> None:
    """Traps: mount says 'wrong fs type, bad option, bad superblock' of everything, and the kernel may have logged
    something of another device."""
    assert in_one_line(str(MountlabError("mount x failed", evidence=evidence))) == f"mount x failed ({best})"


@every_row(
    ("said", "headline"),
    [
        ("could not change directory: denied\ninitdb: error: cannot enter x\n\n", "initdb: error: cannot enter x"),
        ("  File x, line 3\n    raise ValueError(n)\nValueError: 7\n", "ValueError: 7"),
        (
            "tar: unrecognized option '--x'\nTry 'tar --help' or 'tar --usage' for more information.",
            "tar: unrecognized option '--x'; Try 'tar --help' or 'tar --usage' for more information.",
        ),
        (
            "initdb: error: cannot be run as root\ninitdb: hint: Please log in as the user.",
            "initdb: error: cannot be run as root; initdb: hint: Please log in as the user.",
        ),
        (
            "dd: error writing '/x': No space left on device\n3+0 records in\n2+0 records out\n"
            "2097152 bytes (2.1 MB, 2.0 MiB) copied, 0.01 s, 200 MB/s",
            "dd: error writing '/x': No space left on device",
        ),
    ],
)
def test_a_program_that_failed_is_quoted_by_its_last_words(said: str, headline: str) -> None:
    what = failure_headline("it failed", said)
    assert what == f"it failed: {headline}"
    assert in_one_line(str(ToolError(what, evidence=said))) == what
    assert all(line.strip() in str(ToolError(what, evidence=said)) for line in said.splitlines())


def test_a_program_that_failed_without_a_word_is_not_quoted() -> None:
    assert failure_headline("it failed", " \n") == "it failed"
    assert str(ToolError("it failed: why", evidence="why\n")) == "it failed: why", "not the same line twice"


def test_the_docstring_draws_every_class_with_its_exit_code() -> None:
    drawn = dict(NEXT_TO_NAME.findall(errors.__doc__ or ""))
    classes = {kind.__name__: str(kind.exit_code) for kind in TREE if kind is not MountlabError}
    assert drawn == classes


@every_row("kind", TREE, ids=lambda kind: kind.__name__)
def test_exit_codes_follow_the_contract_of_the_command_line(kind: type[MountlabError]) -> None:
    """0 done, 1 some trial failed, 2 bad input, 3 box unreachable, 4 unsafe."""
    expected = {errors.RunInUse: 3, InputError: 2, BoxError: 3, errors.SchedulerError: 3, UnsafeError: 4}
    assert kind.exit_code == next((code for parent, code in expected.items() if issubclass(kind, parent)), 1)


def test_a_tool_that_failed_and_output_that_cannot_be_read_are_failed_trials() -> None:
    assert issubclass(errors.ToolError, TrialError)
    assert issubclass(errors.ParseError, TrialError)
    assert not issubclass(errors.BoxTimeout, TrialError)


@pytest.mark.parametrize(
    ("got", "allowed", "meant"),
    [
        ("repeat", ["repeats", "seed"], "repeats"),
        ("zzz", ["repeats", "seed"], None),
        ("run_time", ["runtime", "ramp_time", "until"], "runtime"),
        ("Base-Line", ["baseline", "boxes"], "baseline"),
        ("write_bw", ["write_bandwidth", "write_ios", "write_iops"], "write_bandwidth"),
        ("read_lat_p99", ["read_ios", "read_latency_p50", "read_latency_p99"], "read_latency_p99"),
        ("sync_lat", ["sync_latency_p99", "sync_rate"], "sync_latency_p99"),
        ("bw", ["bandwidth", "bytes"], "bandwidth"),
        ("raed", ["read", "randread"], "read"),  # a slip of the keys is nearer than letters left out
    ],
)
def test_a_near_word_is_suggested_and_a_far_one_is_not(got: str, allowed: list[str], meant: str | None) -> None:
    """Near: of the same letters, of few other ones, or with letters left out."""
    assert did_you_mean(got, allowed) == (f"did you mean '{meant}'?" if meant else "")


def test_in_one_line_an_error_keeps_the_first_words_of_its_evidence() -> None:
    error = MountlabError("dd failed", where="here", evidence="dd: No space left\n0 bytes copied")
    assert in_one_line(str(error)) == "dd failed (dd: No space left)"
    assert in_one_line("ran too long") == "ran too long"
    assert in_one_line("") == ""

"""What a sweep file says that a device is promised to do: read, refused, and kept wherever a sweep is kept."""

from __future__ import annotations

from typing import Any

import pytest
from mountlab.core.errors import ParameterError
from mountlab.core.model import Sweep
from mountlab.core.promises import Promise
from mountlab.core.safe_yaml import as_yaml, parse_yaml
from mountlab.sweep.extension import extended
from mountlab.sweep.sweep_file import Resolved, resolve
from pydantic import TypeAdapter
from rows import every_row

FIO = {"tool": "fio", "size": "64MiB", "bs": "4KiB"}
SWEEP = {
    "name": "s", "question": "Is it kept?",
    "filesystems": {"ebs": {"type": "ext4", "image": "256MiB"}},
    "workloads": {"random-read": {**FIO, "rw": "randread"}, "write": {**FIO, "rw": "write"}},
}  # fmt: skip
WHOLE = {"read_iops": 3000, "write_bandwidth": "125MiB", "by": ["random-read"], "burst": {"read_iops": 16000}}


def read(promised: Any, **filesystem: Any) -> Resolved:
    entry = {**SWEEP["filesystems"]["ebs"], **filesystem, "promised": promised}  # type: ignore[index]
    return resolve({**SWEEP, "filesystems": {"ebs": entry}}, where="s.yml")


@every_row(
    ("entry", "promises"),
    [
        (
            WHOLE,
            [
                Promise(metric="read_iops", value=3000.0, by=("random-read",), burst=16000.0),
                Promise(metric="write_bandwidth", value=125 * 2.0**20, by=("random-read",)),
            ],
        ),
        ({"read_bandwidth": "125MB/s"}, [Promise(metric="read_bandwidth", value=125e6)]),
        ({"write_latency_p99": "2ms"}, [Promise(metric="write_latency_p99", value=0.002)]),
        ({"write_iops": 0.5}, [Promise(metric="write_iops", value=0.5)]),
    ],
)
def test_figures_are_read_in_base_units(entry: Any, promises: list[Promise]) -> None:
    assert read(entry).sweep.promised == {"ebs": tuple(promises)}


@every_row(
    ("entry", "words"),
    [
        ({}, ["s.yml: filesystems.ebs.promised", "nothing is promised", "read_iops: 3000"]),
        ({"by": ["write"]}, ["nothing is promised"]),
        ({"read_iop": 1}, ["promised.read_iop", "unknown promise", "read_iops", "write_iops"]),
        ({"file_rate": 1}, ["promised.file_rate", "unknown promise"]),
        ({"read_iops": "3k"}, ["promised.read_iops", "'3k'", "a number of I/Os per second above zero"]),
        ({"read_iops": 0}, ["promised.read_iops", "0 (int)", "above zero"]),
        ({"read_iops": True}, ["promised.read_iops", "True"]),
        ({"write_bandwidth": 125}, ["promised.write_bandwidth", "125", "64KiB"]),
        ({"write_bandwidth": "0B"}, ["promised.write_bandwidth", "a size above zero"]),
        ({"read_latency_p99": 2}, ["promised.read_latency_p99", "2", "60s"]),
        ({"read_iops": 1, "by": ["randread"]}, ["promised.by", "randread", "random-read", "write"]),
        ({"read_iops": 1, "by": "random-read"}, ["promised.by", "[random-read, write]"]),
        ({"read_iops": 1, "burst": {"write_iops": 2}}, ["promised.burst", "write_iops", "read_iops"]),
        ({"read_iops": 10, "burst": {"read_iops": 10}}, ["promised.burst.read_iops", "more than read_iops itself"]),
        ({"read_iops": 1, "burst": 5}, ["promised.burst", "5", "burst: {read_iops: 16000}"]),
        ({"read_latency_p50": "1s", "burst": {"read_latency_p50": "2s"}}, ["promised.burst", "read_latency_p50"]),
    ],
)
def test_what_is_no_promise_is_refused_with_what_is_allowed(entry: Any, words: list[str]) -> None:
    with pytest.raises(ParameterError) as refused:
        read(entry)
    assert all(word in str(refused.value) for word in words), str(refused.value)


@every_row(
    ("filesystem", "words"),
    [
        (
            {"type": "tmpfs", "size": "1GiB", "promised": WHOLE},
            ["no device", "type: tmpfs", "take `promised`"],
        ),
        (
            {"type": "overlay", "over": {"type": "ext4", "image": "256MiB", "promised": WHOLE}},
            ["filesystems.ebs.over.promised", "unknown key for ext4"],
        ),
    ],
)
def test_a_device_is_promised_something_at_the_file_system_that_has_one(filesystem: Any, words: list[str]) -> None:
    with pytest.raises(ParameterError) as refused:
        resolve({**SWEEP, "filesystems": {"ebs": filesystem}}, where="s.yml")
    assert all(word in str(refused.value) for word in words), str(refused.value)


def test_promises_survive_the_sweep_file_of_a_bundle_and_the_record_of_an_import() -> None:
    resolved = read(WHOLE)
    again = resolve(parse_yaml(as_yaml(resolved.parameters), where="sweep.yml"), where="sweep.yml", kept=True).sweep
    kinds = TypeAdapter(Sweep)
    assert again.promised == kinds.validate_json(kinds.dump_json(again)).promised == resolved.sweep.promised


def test_an_extension_keeps_promises_and_may_bring_those_of_new_file_systems() -> None:
    before = read(WHOLE)
    more = {**before.parameters, "design": {"repeats": 9}}
    other = {"type": "xfs", "image": "512MiB", "promised": {"write_iops": 7}}
    wider = resolve({**more, "filesystems": {**more["filesystems"], "xfs": other}}, where="s.yml")
    whole = extended(before, wider, at="", only_new=False, where="s.yml").sweep
    assert whole.promised == {**before.sweep.promised, "xfs": (Promise(metric="write_iops", value=7.0),)}


def test_an_extension_does_not_change_what_was_promised() -> None:
    before, changed = read(WHOLE), read({**WHOLE, "read_iops": 2000})
    grown = resolve({**changed.parameters, "design": {"repeats": 9}}, where="s.yml")
    with pytest.raises(ParameterError, match=r"filesystems\.ebs\.promised\.read_iops: 2000"):
        extended(before, grown, at="", only_new=False, where="s.yml")

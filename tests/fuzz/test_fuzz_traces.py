"""Traces that were cut, torn or changed: ParseError, or a trace whose parts are sound, and never anything else."""

from __future__ import annotations

import math
import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mountlab.core.errors import ParseError
from mountlab.tracing.explained import Explained
from mountlab.tracing.perf_data import read_trace
from synthetic_trace import FORMATS, WITH_STACK, PerfData
from tracing import test_recordings
from tracing.test_perf_data import FILE, HUGE, explain

RECORDED = "tmpfs_write"
RECORDING = test_recordings.data_of(RECORDED)
LONGEST_S = 1e10
"""Of what is read as a time: 62 bits of ns."""

places = st.integers(0, len(FILE) - 1)
damages = st.lists(
    st.one_of(
        st.tuples(st.just("cut"), places, st.integers(0, 40)),
        st.tuples(st.just("flip"), places, st.integers(0, 7)),
        st.tuples(st.just("put"), places, st.binary(min_size=1, max_size=8)),
        st.tuples(st.just("insert"), places, st.binary(min_size=1, max_size=16)),
        st.tuples(st.just("number"), places, st.sampled_from([0, 1, 255, *HUGE])),
    ),
    min_size=1,
    max_size=4,
)


def spoilt(data: bytes, harm: list[tuple[str, int, object]], scale: float = 1) -> bytes:
    found = bytearray(data)
    for kind, where, what in harm:
        at = int(where * scale)
        if kind == "cut":
            del found[at : at + what]  # type: ignore[operator]
        elif kind == "flip" and at < len(found):
            found[at] ^= 1 << what  # type: ignore[operator]
        elif kind == "put":
            found[at : at + len(what)] = what  # type: ignore[arg-type,call-overload]
        elif kind == "insert":
            found[at:at] = what  # type: ignore[call-overload]
        elif kind == "number":
            found[at : at + 8] = struct.pack("<Q", what)
    return bytes(found)


def check_harmless(data: bytes) -> None:
    try:
        trace = read_trace(data)
    except ParseError:
        return
    for rows in trace.events.values():
        assert (np.diff(rows["TIME"].astype(np.int64)) >= 0).all()
        assert (rows["STACK"] < len(trace.stacks)).all()
    check_sound(explain(data))


@pytest.mark.slow
@given(harm=damages)
def test_a_spoilt_file_is_a_trace_or_an_error(harm: list[tuple[str, int, object]]) -> None:
    check_harmless(spoilt(FILE, harm))


@given(size=st.integers(0, len(FILE)))
def test_a_file_that_is_cut_is_an_error(size: int) -> None:
    check_harmless(FILE[:size])


@pytest.mark.slow
@given(body=st.binary(max_size=200))
def test_any_bytes_as_records(body: bytes) -> None:
    check_harmless(
        replace(
            PerfData(events={name: 100 + at for at, name in enumerate([*FORMATS, *WITH_STACK])}),
            records=bytearray(body),
        ).bytes()
    )


recorded_places = st.integers(0, len(RECORDING) - 1)
patches = st.one_of(
    st.binary(min_size=1, max_size=8), st.integers(0, (1 << 64) - 1).map(lambda each: struct.pack("<Q", each))
)


@pytest.mark.slow
@given(harm=st.lists(st.tuples(recorded_places, st.integers(0, 8), patches), min_size=1, max_size=5))
def test_a_damaged_recording_is_explained_or_an_error(harm: list[tuple[int, int, bytes]]) -> None:
    data = bytearray(RECORDING)
    for at, instead_of, patch in harm:
        data[at : at + instead_of] = patch
    try:
        check_sound(test_recordings.explain(bytes(data), RECORDED))
    except ParseError:
        return


def check_sound(found: Explained) -> None:
    assert all(0 <= row.seconds < LONGEST_S for row in (*found.layers, *found.slowest))
    assert all(np.isfinite(row.value) for row in found.work)
    for name in {row.operation for row in found.layers}:
        (judged,) = (row for row in found.trace if row.operation == name)
        whole = sum(row.seconds for row in found.layers if (row.operation, row.statistic) == (name, "mean"))
        assert math.isclose(whole, judged.traced_mean, rel_tol=1e-9)

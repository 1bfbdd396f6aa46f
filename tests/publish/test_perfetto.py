"""The file for Perfetto, against the Trace Event Format."""

from __future__ import annotations

import json

import pytest
from mountlab.analysis.why_frames import Why
from mountlab.core.errors import StoreError
from mountlab.publish.perfetto import FILE, perfetto_files
from simulated_why import simulated_why, sweep_of


def test_each_piece_is_a_slice_on_the_track_of_its_operation() -> None:
    slow = simulated_why(sweep_of("ext4", "xfs"), blocks=2).slowest
    events = json.loads(perfetto_files(slow, "results/x")[FILE])["traceEvents"]
    slices = [each for each in events if each["ph"] == "X"]
    assert len(slices) == len(slow)
    tracks: dict[tuple[int, int], float] = {}
    for each in slices:  # in microseconds, without a gap
        track = each["pid"], each["tid"]
        assert each["ts"] == pytest.approx(tracks.get(track, 0.25e6))
        tracks[track] = each["ts"] + each["dur"]
    names = {each["args"]["name"] for each in events if each["ph"] == "M"}
    assert {"ext4/fsync (x0001)", "sync 1"} <= names
    assert {each["name"] for each in slices} >= {"flushes (for the journal)", "time on the processor"}


def test_without_diagnostic_trials_the_error_says_how_to_get_them() -> None:
    with pytest.raises(StoreError, match="no timelines of operations") as caught:
        perfetto_files(Why().slowest, "results/x")
    assert "mountlab explain" in str(caught.value)

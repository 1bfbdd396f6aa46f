"""Which plots a report shows: a table of shapes of sweeps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mountlab.core.model import Design, Filesystem, Sweep, Workload
from mountlab.report.sections.choice import Picture, Shape, chosen, shape_of
from rows import every_row

W = "read_bandwidth"


def swept(**levels: list[str]) -> Shape:
    return Shape(levels={("fio", W, ""): levels})


def told(shape: Shape) -> list[tuple[str, ...]]:
    return [(picture.kind, *picture.factors) for picture in chosen(shape)]


@every_row(
    ("levels", "expected"),
    [
        ({}, []),
        ({"bs": ["4KiB"]}, []),
        ({"bs": ["4KiB", "64KiB"]}, [("response", "bs")]),
        ({"numjobs": ["1", "2", "4"]}, [("response", "numjobs")]),
        ({"rw": ["read", "write"]}, []),
        ({"rw": ["read", "randread"], "bs": ["4KiB", "1MiB"]}, [("response", "bs"), ("heat", "bs", "rw")]),
        (
            {"numjobs": ["1", "2", "4"], "bs": ["4KiB", "1MiB"]},
            [("response", "bs"), ("clustered", "numjobs", "bs"), ("heat", "bs", "numjobs")],
        ),
        (
            {"numjobs": ["1", "2"], "bs": ["4KiB", "1MiB"]},
            [("response", "bs"), ("clustered", "numjobs", "bs"), ("heat", "bs", "numjobs")],
        ),
        (
            {"numjobs": ["1", "2"], "qd": ["1", "8", "32"]},
            [("response", "qd"), ("clustered", "qd", "numjobs"), ("heat", "qd", "numjobs")],
        ),
        (
            {"numjobs": ["1", "2", "4", "8", "16"], "bs": ["1KiB", "2KiB", "4KiB", "8KiB", "16KiB"]},
            [("response", "bs"), ("heat", "bs", "numjobs")],
        ),
        ({"cache": ["cold", "warm"], "rw": ["read", "randread"]}, [("heat", "cache", "rw")]),
        (
            {"a": ["x", "y"], "numjobs": ["1", "2"], "bs": ["4KiB", "8KiB"], "one": ["1"]},
            [("response", "bs"), ("clustered", "numjobs", "bs"), ("heat", "bs", "numjobs")],
        ),
    ],
)
def test_swept_options_ask_for_responses_and_maps(levels: dict[str, list[str]], expected: list[Any]) -> None:
    kinds = {kind for kind, *_ in expected}
    without_baseline = [row for row in expected if row[0] != "heat" or "clustered" not in kinds]
    assert told(swept(**levels)) == without_baseline, "clusters of bars stand in the place of a map of means"
    with_baseline = [("ratio heat" if kind == "heat" else kind, *factors) for kind, *factors in expected]
    assert told(replace(swept(**levels), compared=True)) == with_baseline, "then a map is of the ratios"


def test_what_was_kept_beside_the_figures_asks_for_its_plots() -> None:
    shape = Shape(places=["read.clat_ns", "sync.lat_ns"], logged=["read_bandwidth"], counters=True)
    assert chosen(shape) == [
        Picture("percentiles", place="read.clat_ns"),
        Picture("percentiles", place="sync.lat_ns"),
        Picture("latencies", place="read.clat_ns"),
        Picture("latencies", place="sync.lat_ns"),
        Picture("series", metric="read_bandwidth"),
        Picture("bytes"),
    ]


def test_of_a_metric_in_parts_the_whole_is_shown_or_the_first_parts() -> None:
    sizes = {"bs": ["4KiB", "8KiB"]}
    parts = {("pg", "sync_rate", f"m{i}"): sizes for i in range(6)}
    assert [picture.label for picture in chosen(Shape(levels=parts))] == ["m0", "m1", "m2", "m3"]
    assert [picture.label for picture in chosen(Shape(levels={**parts, ("pg", "sync_rate", ""): sizes}))] == [""]


def test_the_shape_of_a_sweep_holds_what_has_a_figure_and_belongs_to_the_answer() -> None:
    workloads = tuple(
        Workload(name="fio", tool="fio", options={}, factors={"rw": rw, "bs": bs})
        for rw in ("read", "write")
        for bs in ("4KiB", "64KiB")
    )
    filesystems = (Filesystem(name="a", type="tmpfs"),)
    sweep = Sweep(name="s", question="?", box="b", filesystems=filesystems, workloads=workloads, design=Design())
    answers = {w.label: (f"{w.factors['rw']}_bandwidth",) for w in workloads}
    measured = [(f"a/{w.label}", metric, "") for w in workloads[:3] for metric in ("read_bandwidth", "elapsed")]
    shape = shape_of(sweep, answers, measured)
    assert shape.levels == {("fio", "read_bandwidth", ""): {"rw": ["read"], "bs": ["4KiB", "64KiB"]}}
    assert told(shape) == [("response", "bs")]

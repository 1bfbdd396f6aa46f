"""The section on what each program does, and the files beside it, from recordings of real programs."""

from __future__ import annotations

import gzip
import json
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

import pytest
import yaml
from mountlab import plots
from mountlab.analysis.program import ProgramTrial, Slower, fio_sweep, main_programs, readable, slower_text
from mountlab.core.model import Trial
from mountlab.report import sections
from mountlab.report.sections.program import program_plots
from mountlab.results.programs import FIO, KEPT, YAML, derived_files, profile_text, read_programs
from mountlab.sweep.sweep_file import resolve
from mountlab.tracing.program import Hidden, Profile
from mountlab.tracing.program_words import facts, unseen
from rows import every_row
from strace_text import profile_text as profiled
from synthetic_run import WORKLOADS, SyntheticRun, synthetic_run

DATA = Path(__file__).parents[1] / "data" / "strace"
FEW = WORKLOADS[:2]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("program")


@cache
def recorded(name: str, directory: Path) -> Profile:
    return profiled(gzip.decompress((DATA / f"{name}.txt.gz").read_bytes()).decode(), directory)


def program(number: int, filesystem: str, label: str, profile: Profile | None, reason: str = "") -> ProgramTrial:
    return ProgramTrial(
        trial_id=f"p{number:04d}", cell=f"{filesystem}/{label}", filesystem=filesystem, workload_label=label,
        profile=profile, reason=reason,
    )  # fmt: skip


def run_with(directory: Path, **more: str) -> SyntheticRun:
    """A run of two workloads, the first of them on two file systems; `more`: recording of a file system of its."""
    run = synthetic_run(workloads=FEW)
    names = [fs.name for fs in run.sweep.filesystems]
    first, second = (workload.label for workload in run.sweep.workloads)
    programs = [
        program(1, names[0], first, recorded(more.get("first", "sqlite"), directory)),
        program(2, names[1], first, recorded(more.get("second", "tar"), directory)),
        program(3, names[0], second, None, "the trial is failed: it was killed"),
    ]
    return replace(run, programs=programs)


def test_a_run_without_recorded_calls_says_how_to_get_them() -> None:
    assert "design: {profile: true}" in repr(sections.program(synthetic_run(workloads=FEW)))


@pytest.mark.slow
def test_the_section_has_sentences_pictures_work_and_a_workload_of_fio(directory: Path) -> None:
    run = run_with(directory)
    part = sections.program(run)
    text = repr(part)
    first = run.sweep.workloads[0].label
    assert f"{first} : trial p0001 on tmpfs." in text
    assert "It has no profile: the trial is failed: it was killed" in text
    assert part.count("<svg") == len(list(program_plots(run))) >= 4
    assert f"Work of one trial under {first}" in text
    assert "not validated" in text
    assert 'data-beside="program.yml"' in part
    assert set(part.frame["place"]) >= {"under test", "elsewhere"}
    assert len(part.frame[part.frame["trial_id"] == "p0003"]) == 0


def test_the_baseline_stands_for_a_workload_and_another_file_system_where_it_has_no_profile(directory: Path) -> None:
    run = run_with(directory)
    label, baseline = run.sweep.workloads[0].label, run.sweep.baseline
    programs = [program(1, "x", label, recorded("tar", directory)), program(2, str(baseline), label, None, "no")]
    assert main_programs(replace(run, programs=programs))[label].filesystem == "x"
    programs[1] = replace(programs[1], profile=recorded("tar", directory))
    assert main_programs(replace(run, programs=programs))[label].filesystem == baseline


@every_row(
    ("name", "subject", "words"),
    [
        ("fio-randread", "Reads", "random: 512 calls, 2.00 MiB in 1 file; sizes 4KiB (100 %)"),
        ("fio-aio-write", "Writes", "100 % of the bytes by O_DIRECT; 100 % by io_submit"),
        ("fio-aio-write", "Syncs", "each makes 4 writes and 32.0 KiB safe (medians; at most 4 and 32.0 KiB)"),
        ("fio-aio-write", "Flags of open", "O_DIRECT 2, of 5 opens"),
        ("sqlite", "Syncs", "fdatasync 44"),
        ("sqlite", "Files", "13 opened, 12 created, 1 read, 12 written, 11 removed"),
        ("tar", "Syncs", "none"),
        ("python", "At a time", "6 threads in 2 processes, at most 4 of them reading or writing over the same time"),
    ],
)
def test_a_sentence_for_each_subject(name: str, subject: str, words: str, directory: Path) -> None:
    assert words in facts(recorded(name, directory))[subject].replace("\u00a0", " ")


def test_what_could_not_be_seen_is_said(directory: Path) -> None:
    whole = recorded("tar", directory)
    assert list(unseen(whole)) == []
    hidden = Hidden(map_calls=2, map_bytes=8192, shared_maps=1, uring_calls=3, uring_requests=9, unknown_positions=4)
    seen = replace(whole.seen, skipped=1000, seen_s=whole.seen.seconds / 4, unread=1, is_whole=False)
    text = " ".join(unseen(replace(whole, hidden=hidden, seen=seen))).replace("\u202f", " ").replace("\u00a0", " ")
    for words in (
        "25 % of the time", "1 000 more calls were counted only", "The record ends before the program did",
        "1 line of the tracer could not be read", "cannot be seen", "2 times, 8.00 KiB, 1 of them to write through",
        "9 requests went through io_uring in 3 calls", "The position of 4 reads or writes is unknown",
    ):  # fmt: skip
        assert words in text


def test_how_much_slower_the_tool_was() -> None:
    row = Slower(cell="ext4/w", recorded_s=3.0, counted_s=2.0, n=5)
    assert slower_text(row) == "1.5 times as long as in 5 counted trials (ext4/w)"


def test_pictures_state_their_finding(directory: Path) -> None:
    profile = recorded("fio-mix", directory)
    titles = [
        draw(profile, "mix").title
        for draw in (
            plots.plot_operations, plots.plot_sizes, plots.plot_offsets, plots.plot_syncs, plots.plot_concurrency,
        )
    ]  # fmt: skip
    assert "of the calls of mix: write" in titles[0]
    assert "16KiB" in titles[1]
    assert titles[2].startswith("Offsets of the busiest files under mix: reads sequential, writes sequential")
    assert titles[3].startswith("17 syncs under mix")
    assert "2 threads of 2 processes" in titles[4]


@pytest.mark.slow
def test_the_files_hold_the_figures_and_a_sweep_of_fio(directory: Path) -> None:
    run = run_with(directory, first="fio-randread")
    run = replace(run, info=replace(run.info, parameters={"filesystems": {"tmpfs": {"type": "tmpfs", "size": "1GiB"}}}))
    run = replace(run, sweep=replace(run.sweep, baseline="tmpfs"))
    files = derived_files(run)
    assert set(files) == {YAML, FIO, KEPT}
    label = run.sweep.workloads[0].label
    figures = yaml.safe_load(files[YAML])
    assert figures == yaml.safe_load(yaml.safe_dump(readable(run)))
    assert figures[run.sweep.workloads[1].label]["tmpfs"]["no_profile"] == "the trial is failed: it was killed"
    assert figures[label]["tmpfs"]["reads"]["sizes"] == {4096: 512}
    made = yaml.safe_load(files[FIO])
    assert made == fio_sweep(run)
    assert resolve({"name": "again", **made}, where="again.yml").sweep.workloads[0].options["rw"] == "randread"
    assert b"NOT VALIDATED" in files[FIO]
    watched = {"filesystems": {"tmpfs": {"type": "in_place", "path": "/srv"}}}
    in_place = fio_sweep(replace(run, info=replace(run.info, parameters=watched)))
    assert in_place["filesystems"] == {"tmpfs": {"type": "dir", "path": "/srv"}}, "fio makes a directory of its own"
    assert json.loads(files[KEPT])[0]["trial_id"] == "p0001"


def test_a_published_copy_has_the_same_profile_without_the_calls(directory: Path, tmp_path: Path) -> None:
    profile = recorded("sqlite", directory)
    run = synthetic_run(workloads=FEW)
    trial = replace(run_trial(run), trial_id="p0001", diagnostic=True)
    raw = tmp_path / "raw" / "p0001"
    raw.mkdir(parents=True)
    (raw / "program_profile.json").write_text(profile_text(profile))
    (program_trial,) = read_programs(tmp_path, [trial])
    assert program_trial.profile is not None
    assert asdict(program_trial.profile) == asdict(profile)
    (raw / "program_profile.json").write_text('{"seen": 1}')
    (program_trial,) = read_programs(tmp_path, [trial])
    assert program_trial.profile is None
    assert program_trial.reason.startswith("its record cannot be read")


def run_trial(run: SyntheticRun) -> Trial:
    row = run.trials.drop(columns="seq").to_dict("records")[0]
    return Trial(**{str(name): value for name, value in row.items()})

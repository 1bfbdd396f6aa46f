"""Logs from elsewhere become a run: which file is whose, what is kept, and that all that reads runs reads it too."""

from __future__ import annotations

import json
import math
import re
import shlex
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from mountlab.__main__ import main
from mountlab.core import disk
from mountlab.core.errors import ParameterError, StoreError
from mountlab.core.places import SHIPPED
from mountlab.plots import Plot
from mountlab.publish import figure_files
from mountlab.report import execute
from mountlab.report.sections import answer, box, question, reproduce, trials, versions
from mountlab.results import paths, run_file, store
from mountlab.results.import_file import Layout, blocks, layout, natural, read_import
from mountlab.results.imported import import_file, import_patterns
from mountlab.results.info import read_info, read_sweep
from mountlab.results.journal import read_journal
from mountlab.results.store import Run, load_run
from repetition import few_then_many
from rows import every_row
from synthetic_report import execute_here

ROOT = Path(__file__).parents[2]
DATA, PAGE = ROOT / "tests" / "data", ROOT / "docs" / "how-to" / "import-logs.md"
DD = "{n}+0 records in\n{n}+0 records out\n209715200 bytes (210 MB, 200 MiB) copied, {seconds} s, {rate} MB/s\n"


def dd(seconds: float, bs: str = "1M") -> str:
    return DD.format(n={"1M": 200, "64K": 3200}[bs], seconds=seconds, rate=round(209.7152 / seconds))


def write(directory: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)


def logs(directory: Path, repeats: int = 3) -> None:
    """ext4 at about 750 MB/s, tmpfs twice as fast."""
    write(directory, {f"logs/ext4-{n}.txt": dd(0.279 + n / 1000) for n in range(1, repeats + 1)})
    write(directory, {f"logs/tmpfs-{n}.txt": dd(0.139 + n / 1000) for n in range(1, repeats + 1)})


MAP = """
question: Is tmpfs worth it?
tool: dd
baseline: ext4
workloads: {write: {direction: write, bs: 1MiB, count: 200}}
files: logs/{filesystem}-{repeat}.txt
"""


@pytest.fixture
def imported(tmp_path: Path, results_dir: Path) -> Run:
    logs(tmp_path)
    (tmp_path / "old.yml").write_text(MAP)
    return load_run(import_file(tmp_path / "old.yml", results=results_dir))


# --- a run ------------------------------------------------------------------------------------------------------------


def test_imported_logs_are_compared_like_any_run(imported: Run) -> None:
    (ratio,) = imported.comparisons
    assert (ratio.baseline, ratio.candidate, ratio.metric, ratio.n) == ("ext4", "tmpfs", "write_bandwidth", 3)
    expected = math.prod((0.279 + n / 1000) / (0.139 + n / 1000) for n in (1, 2, 3)) ** (1 / 3)
    assert ratio.ratio == pytest.approx(expected, rel=1e-9)
    assert ratio.verdict == "faster"
    assert imported.answer_metrics == {"write": ("write_bandwidth",)}


def test_an_imported_run_is_marked_and_says_what_nobody_knows(imported: Run) -> None:
    assert imported.sweep.imported
    assert "imported" in {caveat.code for caveat in imported.caveats}
    assert "cache-served" not in imported.checks_passed, "nobody looked"
    facts = imported.info.facts.as_record()
    assert {key for key, value in facts.items() if value is not None} == {"programs", "stated"}
    assert facts["programs"] == {"dd": {"version": "dd's summary", "path": "not known"}}
    assert imported.info.seed is None
    assert imported.trials["elapsed_s"].isna().all()
    assert (imported.trials["started_at"] == "").all()


def test_the_bytes_of_each_log_are_kept_with_their_origin(imported: Run, tmp_path: Path) -> None:
    for trial in read_journal(imported.path):
        raw = imported.path / "raw" / trial.trial_id
        source = json.loads((raw / "source.json").read_text())
        assert (raw / "log.txt").read_bytes() == (tmp_path / source["file"]).read_bytes()
        assert source["file"].startswith(f"logs/{trial.filesystem}-{trial.block}")
    assert set(imported.info.imported["files"]) == {f"logs/{fs}-{n}.txt" for fs in ("ext4", "tmpfs") for n in (1, 2, 3)}
    assert str(tmp_path) not in (imported.path / "run.json").read_text(), "no path of this machine"


def test_the_sweep_of_an_imported_run_comes_back_as_it_was(imported: Run) -> None:
    sweep = read_sweep(imported.path).sweep
    assert sweep == imported.sweep
    assert sweep.workloads[0].options == {"direction": "write", "bs": 1024**2, "count": 200}
    assert [(fs.name, fs.type) for fs in sweep.filesystems] == [("ext4", "not known"), ("tmpfs", "not known")]
    assert (sweep.design.repeats, sweep.metrics) == (3, ("write_bandwidth",))


def test_the_parts_of_a_report_cope(imported: Run) -> None:
    assert "measured elsewhere" in repr(question(imported))
    assert "n = 3 blocks" in repr(question(imported))
    assert "took" not in repr(question(imported))
    assert "tmpfs looks faster than ext4 for writes (×1.993). Trust: low" in repr(answer(imported))
    assert "Nothing is known of the box itself." in repr(box(imported))
    assert "Seed none" in repr(versions(imported))
    assert "nan" not in repr(trials(imported)).lower()
    assert "mountlab reparse" in repr(reproduce(imported))


def test_runs_of_the_format_before_this_one_are_read(imported: Run) -> None:
    assert read_info(imported.path).schema == run_file.SCHEMA == 6
    assert read_info(SHIPPED / "tests" / "data" / "earlier_run").schema == 1


def test_a_log_that_failed_is_a_failed_trial_with_its_line(tmp_path: Path, results_dir: Path) -> None:
    logs(tmp_path)
    write(
        tmp_path,
        {"logs/tmpfs-2.txt": (DATA / "dd" / "no-space.stderr").read_text(), "logs/tmpfs-3.txt": "Segmentation fault\n"},
    )
    (tmp_path / "old.yml").write_text(MAP)
    run = load_run(import_file(tmp_path / "old.yml", results=results_dir))
    bad = run.trials[run.trials["status"] == "failed"]
    assert list(zip(bad["filesystem"], bad["block"], strict=True)) == [("tmpfs", 2), ("tmpfs", 3)]
    assert "logs/tmpfs-2.txt, line 1" in bad["reason"].iloc[0]
    assert "no output of dd in it" in bad["reason"].iloc[1]
    assert run.comparisons[0].n == 1
    assert "failed-trials" in {caveat.code for caveat in run.caveats}


@pytest.mark.slow
def test_reparse_reads_the_kept_logs_again(imported: Run) -> None:
    assert main(["reparse", str(imported.path)]) == 0
    assert (imported.path / "estimates.csv").read_text().count("write_bandwidth") == 2


def test_a_log_that_was_changed_after_the_import_is_not_read_as_another_figure(
    imported: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    (log,) = (imported.path / "raw" / "t0001").glob("log.txt")
    log.write_text(log.read_text().replace("0.28 s", "0.14 s"))
    assert main(["reparse", str(imported.path)]) == 2
    assert "a file of the raw output of t0001 was changed" in capsys.readouterr().err
    assert main(["reparse", str(imported.path), "--accept-altered"]) == 1, "nor is it what dd would say"


def test_how_imported_file_systems_were_mounted_is_not_known(imported: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fstab", str(imported.path), "ext4"]) == 2
    assert "is not known" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tool", "files", "metric"),
    [
        ("fio", {"a": "fio/psync-randread-direct.jsonplus", "b": "fio/human-randrw.stdout"}, "read_bandwidth"),
        ("fio", {"a": "fio/2.1.10-write.json", "b": "fio/human-write.stdout"}, "write_bandwidth"),
        ("filebench", {"a": "filebench/1.4.9.1.stdout", "b": "filebench/samples/seqread.stdout"}, "operation_rate"),
        ("fs_mark", {"a": "fs_mark/S1-L2.stdout", "b": "fs_mark/S2-L2.stdout"}, "file_rate"),
        ("pg_test_fsync", {"a": "pg_test_fsync/ext4.stdout", "b": "pg_test_fsync/ramfs-ja.stdout"}, "sync_rate"),
    ],
)
def test_logs_of_every_tool_make_a_run(
    tool: str, files: dict[str, str], metric: str, tmp_path: Path, results_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {f"{name}.log": (DATA / path).read_text() for name, path in files.items()})
    monkeypatch.chdir(tmp_path)
    raw = {"question": "?", "tool": tool, "files": "{filesystem}.log", "baseline": "a"}
    run = load_run(import_patterns(raw, results=results_dir))
    assert run.trials["status"].tolist() == ["ok", "ok"]
    assert metric in run.answer_metrics[tool]
    assert {c.metric for c in run.comparisons} >= {metric}


def test_every_output_of_a_file_is_a_block(tmp_path: Path, results_dir: Path) -> None:
    write(tmp_path, {"a.log": dd(0.2) + dd(0.21) + dd(0.22), "b.log": dd(0.1) + dd(0.11) + dd(0.12)})
    (tmp_path / "m.yml").write_text(
        "{question: '?', tool: dd, filesystems: {a: {files: a.log}, b: {files: b.log, type: tmpfs}}, baseline: a}"
    )
    run = load_run(import_file(tmp_path / "m.yml", results=results_dir))
    assert sorted(zip(run.trials["filesystem"], run.trials["block"], strict=True)) == [
        (fs, block) for fs in ("a", "b") for block in (1, 2, 3)
    ]
    assert (run.comparisons[0].metric, run.comparisons[0].n) == ("bandwidth", 3)
    assert run.sweep.filesystems[1].type == "tmpfs"
    sources = [json.loads((run.path / "raw" / t / "source.json").read_text())["line"] for t in run.trials["trial_id"]]
    assert sorted(sources) == [1, 1, 4, 4, 7, 7]


# --- which file is whose ----------------------------------------------------------------------------------------------


def placed(names: list[str], **raw: Any) -> Layout:
    file = read_import({"name": "n", "question": "?", "tool": "fio", **raw}, where="m.yml")
    return layout(file, names, where="m.yml")


def test_names_in_braces_are_factors_and_their_levels() -> None:
    found = placed(
        ["l/pmfs/randread-4k-1.json", "l/pmfs/randread-4k-2.json", "l/ext4/read-8k-1.json"],
        files="l/{filesystem}/{rw}-{bs}-{repeat}.json",
    )
    assert [(log.filesystem, dict(log.workload.factors), log.repeat) for log in found.logs] == [
        ("ext4", {"rw": "read", "bs": "8k"}, "1"),
        ("pmfs", {"rw": "randread", "bs": "4k"}, "1"),
        ("pmfs", {"rw": "randread", "bs": "4k"}, "2"),
    ]
    assert [workload.label for workload in found.workloads] == ["fio rw=read bs=8k", "fio rw=randread bs=4k"]


def test_a_level_that_is_a_choice_of_the_tool_is_an_option() -> None:
    found = placed(["ext4-read.txt", "ext4-write.txt"], tool="dd", files="{filesystem}-{direction}.txt")
    assert [dict(w.options) for w in found.workloads] == [{"direction": "read"}, {"direction": "write"}]


def test_files_may_be_listed_by_file_system_and_workload() -> None:
    found = placed(
        ["a/r1.txt", "a/w1.txt", "b/r1.txt"],
        workloads={"read": {"tool": "dd", "direction": "read"}, "write": {"tool": "dd", "direction": "write"}},
        filesystems={
            "ext4": {"files": {"read": "a/r*.txt", "write": ["a/w1.txt"]}},
            "xfs": {"files": {"read": "b/*.txt"}},
        },
    )
    assert [(log.name, log.filesystem, log.workload.name) for log in found.logs] == [
        ("a/r1.txt", "ext4", "read"),
        ("a/w1.txt", "ext4", "write"),
        ("b/r1.txt", "xfs", "read"),
    ]


def test_a_repeat_that_is_missing_shifts_no_other() -> None:
    names = ["x-1.txt", "x-2.txt", "x-10.txt", "y-1.txt", "y-10.txt"]
    found = placed(names, files="{filesystem}-{repeat}.txt")
    assert blocks(found.logs, dict.fromkeys(names, 1)) == {
        "x-1.txt": 1,
        "x-2.txt": 2,
        "x-10.txt": 3,
        "y-1.txt": 1,
        "y-10.txt": 3,
    }


def test_without_repeats_files_count_in_the_order_of_their_names() -> None:
    names = ["x/run9.txt", "x/run10.txt", "y/other.txt"]
    found = placed(names, files="{filesystem}/*.txt")
    assert blocks(found.logs, {"x/run9.txt": 2, "x/run10.txt": 1, "y/other.txt": 1}) == {
        "x/run9.txt": 1,
        "x/run10.txt": 3,
        "y/other.txt": 1,
    }
    assert sorted(["b10", "b9", "a"], key=natural) == ["a", "b9", "b10"]


@every_row(
    ("raw", "names", "what", "where"),
    [
        ({"files": "x/{filesystem}.txt"}, ["y.txt"], "no file fits a pattern", "m.yml: files"),
        ({"files": "*.txt"}, ["y.txt"], "which file system a log is of is not said", "m.yml: y.txt"),
        ({"files": ["{filesystem}.txt", "y*"]}, ["y.txt"], "a file fits two patterns", "m.yml: y.txt"),
        ({}, [], "no files are named", "m.yml: files"),
        ({"files": "{filesystem}", "tool": "bonnie"}, ["y"], "unknown tool with logs to read", "m.yml: tool"),
        ({"files": "{filesystem}", "tool": None}, ["y"], "which workload a log is of is not said", "m.yml: y"),
        ({"files": "{filesystem}", "baseline": "z"}, ["y"], "unknown file system", "m.yml: baseline"),
        ({"files": "{filesystem}", "metrics": ["speed"]}, ["y"], "unknown metric", "m.yml: metrics"),
        ({"files": "{filesystem}", "sped": 1}, ["y"], "unknown key", "m.yml: sped"),
        ({"filesystems": {"y": {"file": "y"}}}, ["y"], "unknown key", "m.yml: filesystems.y.file"),
        (
            {"filesystems": {"y": {"files": "y", "type": "ext5"}}},
            ["y"],
            "unknown file system type",
            "m.yml: filesystems.y.type",
        ),
        (
            {"files": "{filesystem}", "filesystems": {"z": {}}},
            ["y"],
            "a file system without a log",
            "m.yml: filesystems.z",
        ),
        ({"files": "{filesystem}", "workloads": {"a": {"rw": 1}}}, ["y"], "wrong value for an option", "m.yml: y: rw"),
        (
            {"files": "{filesystem}", "tool": "dd", "workloads": {"a": {"size": 1}}},
            ["y"],
            "unknown option for dd",
            "m.yml: y: size",
        ),
        ({"files": "{filesystem}", "name": "a b"}, ["y"], "a name may hold letters", "m.yml"),
        ({"files": "{filesystem}"}, ["y y"], "a name may hold letters", "m.yml: y y"),
    ],
)
def test_what_an_import_file_gets_wrong_is_said(raw: dict[str, Any], names: list[str], what: str, where: str) -> None:
    with pytest.raises(ParameterError) as caught:
        placed(names, **raw)
    assert caught.value.what.startswith(what)
    assert caught.value.where == where
    if what == "unknown key" and "filesystems" in raw:
        assert "did you mean 'files'" in caught.value.next_step


def test_files_deep_below_the_import_file_are_found(tmp_path: Path, results_dir: Path) -> None:
    write(tmp_path, {"old/x/y/ext4.txt": dd(0.3), "new/tmpfs.txt": dd(0.1), "old/.hidden/xfs.txt": dd(0.2)})
    (tmp_path / "m.yml").write_text(
        "{question: '?', tool: dd, files: ['old/**/{filesystem}.txt', 'new/{filesystem}.txt']}"
    )
    run = load_run(import_file(tmp_path / "m.yml", results=results_dir))
    assert set(run.trials["filesystem"]) == {"ext4", "tmpfs"}


@pytest.mark.parametrize(
    "pattern",
    [
        "../old/{filesystem}.txt",
        "{tmp}/old/{filesystem}.txt",
        "x/../../old/{filesystem}.txt",
        "out/{filesystem}.txt",
        ".h/{filesystem}.txt",
    ],
)
def test_an_import_file_reads_no_log_outside_of_its_directory(pattern: str, tmp_path: Path, results_dir: Path) -> None:
    """What it names is kept in the run, word for word, and published with it."""
    write(tmp_path, {"old/ext4.txt": dd(0.3), "maps/.h/ext4.txt": dd(0.3)})
    (tmp_path / "maps" / "out").symlink_to(tmp_path / "old")
    asked = {"question": "?", "tool": "dd", "files": pattern.replace("{tmp}", str(tmp_path))}
    (tmp_path / "maps" / "m.yml").write_text(json.dumps(asked))
    with pytest.raises(StoreError, match=r"lies beside it|leads out") as caught:
        import_file(tmp_path / "maps" / "m.yml", results=results_dir)
    assert caught.value.where.endswith("m.yml: files")
    assert not results_dir.exists() or list(results_dir.iterdir()) == []


def test_who_types_a_pattern_may_name_logs_anywhere(tmp_path: Path, results_dir: Path) -> None:
    write(tmp_path, {"old/ext4.txt": dd(0.3)})
    raw = {"question": "?", "tool": "dd", "files": [f"{tmp_path}/old/{{filesystem}}.txt"]}
    assert set(load_run(import_patterns(raw, results=results_dir)).trials["filesystem"]) == {"ext4"}


def test_no_import_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such import file"):
        import_file(tmp_path / "x.yml")


# --- the verbs --------------------------------------------------------------------------------------------------------


def test_parse_shows_figures_and_errors_and_fails_for_the_latter(capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = DATA / "dd" / "write-1m.stderr", DATA / "dd" / "no-space.stderr"
    assert main(["parse", "dd", str(good)]) == 0
    assert "751.3 MB/s" in capsys.readouterr().out
    assert main(["parse", "dd", str(good), str(bad), "--json"]) == 1
    said = capsys.readouterr()
    entries = json.loads(said.out)
    assert [bool(entry["error"]) for entry in entries] == [False, True]
    assert "error: dd failed" in said.err
    assert main(["parse", "dd", str(DATA / "nothing.txt")]) == 2
    assert main(["parse", "bonnie", str(good)]) == 2


def some_of_a_page(run_path: Path) -> Path:
    """Two sections in the place of the report."""
    run = load_run(run_path)
    disk.replace_file(run_path / "report.html", f"{question(run)}{box(run)}".encode())
    return run_path / "report.html"


@pytest.mark.slow
@pytest.mark.parametrize("whole", few_then_many(False, True))
def test_import_reports_what_it_read(
    whole: bool, tmp_path: Path, results_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a page that no kernel makes, which takes seconds."""
    logs(tmp_path, repeats=5)
    if whole:
        monkeypatch.setattr(execute, "execute", execute_here)
    else:
        monkeypatch.setattr(execute, "write_report", some_of_a_page)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mountlab.results.imported.import_patterns.__kwdefaults__", {"results": results_dir})
    arguments = [
        "logs/{filesystem}-{repeat}.txt",
        "--tool",
        "dd",
        "--baseline",
        "ext4",
        "--question",
        "Which is faster?",
    ]
    assert main(["import", *arguments]) == 0
    said = capsys.readouterr().out
    assert "tmpfs / ext4" in said
    (page,) = results_dir.glob("*/report.html")
    text = page.read_text()
    assert "measured elsewhere" in text
    assert "not known" in text or not whole
    assert "Nothing is known of the box itself." in text


@pytest.mark.slow
def test_what_the_docs_say_of_logs_is_what_happens(
    tmp_path: Path, results_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, seconds in (("ext4", 0.279), ("tmpfs", 0.139)):
        write(
            tmp_path,
            {f"logs/{name}-{bs}-{n}.txt": dd(seconds + n / 1000, bs) for bs in ("64K", "1M") for n in (1, 2, 3)},
        )
    shutil.copytree(ROOT / "tests" / "data" / "earlier_run", tmp_path / "results" / "tour")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    for verb in ("import_patterns", "import_file"):
        monkeypatch.setattr(f"mountlab.results.imported.{verb}.__kwdefaults__", {"results": results_dir})
    monkeypatch.setattr("mountlab.report.execute.write_report", lambda path: path / "report.html")  # others test it
    page = PAGE.read_text()
    (file,) = re.findall(r"^`old\.yml`.*\n\n```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "old.yml").write_text(file)
    others = (PAGE.parent / "custom-figures.md", PAGE.parents[1] / "publishing.md")
    typed = "\n".join([page, *(other.read_text() for other in others)])
    lines = re.findall(r"^\.venv/bin/mountlab ((?:parse|import|export) .*)", typed, re.MULTILINE)
    # That each plot becomes a file is tested in report/test_paper.py; and nothing changes the run between two lines.
    monkeypatch.setattr(figure_files, "PLOTS", {})
    monkeypatch.setattr(Plot, "save_bytes", lambda _, form, width_in: f"{form} {width_in}".encode())
    monkeypatch.setattr(store, "load_run", cache(store.load_run))
    said = {}
    for line in dict.fromkeys(lines):
        assert main(shlex.split(line, comments=True)) == 0, line
        said[line.split()[0]] = said.get(line.split()[0], "") + capsys.readouterr().out
    assert set(said) == {"parse", "import", "export"}
    assert "bandwidth         749.0 MB/s" in said["parse"]
    assert "bs=64K" in said["import"]
    made = {path.suffix for path in (tmp_path / "results" / "tour" / "export").iterdir()}
    asked = {"latex": ".tex", "markdown": ".md"}
    formats = re.findall(r"--(?:format|figures) (\w+)", typed)
    assert made >= {asked.get(name, f".{name}") for name in formats} >= {".xlsx", ".csv"}


def test_a_named_metric_that_no_log_has_is_refused(tmp_path: Path, results_dir: Path) -> None:
    logs(tmp_path)
    (tmp_path / "old.yml").write_text(MAP + "metrics: [write_bandwidth, file_rate]\n")
    with pytest.raises(ParameterError) as caught:
        import_file(tmp_path / "old.yml", results=results_dir)
    assert caught.value.what == "a metric that no log has"
    assert caught.value.where.endswith("old.yml: metrics")
    assert caught.value.got == "file_rate"
    assert "write_bandwidth" in caught.value.allowed
    assert not list(results_dir.glob("*")) or not any(path.name.startswith("old") for path in results_dir.iterdir())


def test_logs_that_all_failed_are_kept_whatever_metric_is_named(tmp_path: Path, results_dir: Path) -> None:
    write(tmp_path, {f"logs/{fs}-{n}.txt": "dd: failed\n" for fs in ("ext4", "tmpfs") for n in (1, 2)})
    (tmp_path / "old.yml").write_text(MAP + "metrics: [write_bandwidth]\n")
    run = import_file(tmp_path / "old.yml", results=results_dir)
    assert {trial.status for trial in read_journal(run)} == {"failed"}

"""A bundle that was damaged, changed or made to harm is told as such; a whole one reproduces for anybody."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import shutil
import stat
import subprocess
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mountlab.__main__ import main
from mountlab.core import disk
from mountlab.core.checksums import MANIFEST, manifest, read_manifest, safe_parts
from mountlab.core.errors import StoreError, UnsafeError
from mountlab.publish import reproduce
from mountlab.publish.bundle import Damage, differences, slug, without_clock
from mountlab.publish.publish import Wishes, publish
from mountlab.publish.seal_again import seal_again
from mountlab.report import execute
from mountlab.results import info, paths
from mountlab.results.info import read_sweep
from mountlab.runner import workflow
from ordinary import ordinary_user
from planted import planted_run
from rows import every_row


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A bundle whose report is not a real one: reports are not what is checked here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execute, "write_report", lambda run: disk.replace_file(run / "report.html", b"<p>report"))
        results = tmp_path_factory.mktemp("whole")
        return publish([planted_run(results)], Wishes(title="Reads", to=results / "b"))


@pytest.fixture
def bundle(whole: tuple[Path, Path], tmp_path: Path) -> Path:
    """A copy to spoil."""
    return shutil.copytree(whole[0], tmp_path / "b")


def run_of(bundle: Path) -> Path:
    (path,) = (bundle / "runs").iterdir()
    return path


def signed(bundle: Path) -> Path:
    """The checksums made again, as somebody would who changes what was published."""
    files = {path.relative_to(bundle).as_posix(): path for path in bundle.rglob("*") if path.is_file()}
    sums = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items() if name != MANIFEST}
    (bundle / MANIFEST).write_text(manifest(sums))
    return bundle


# --- whole ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_whole_bundle_is_as_published_as_folder_and_as_zip(
    whole: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for path in whole:
        assert main(["reproduce", str(path)]) == 0
        said = capsys.readouterr().out
        assert "Files: all as published, by their checksums." in said
        assert re.search(r"Figures: all \d{2,} figures made again .* to the last digit\.", said)


@pytest.mark.long
@pytest.mark.requires_root
@pytest.mark.requires_program("setpriv")
@pytest.mark.box  # it mounts, as the tests of other users do
def test_another_user_reproduces_it_from_a_read_only_place_in_an_empty_directory(whole: tuple[Path, Path]) -> None:
    with ordinary_user() as user:
        place = Path(shutil.copytree(whole[0], user.home / "b"))
        archive = Path(shutil.copy(whole[1], user.home / "b.zip"))
        for path in [*place.rglob("*"), place, archive]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        empty = user.home / "empty"
        empty.mkdir()
        empty.chmod(0o555)
        bundles = [str(place), str(archive)]
        both = f"from mountlab.__main__ import main; raise SystemExit(any(main(['reproduce', b]) for b in {bundles}))"
        done = subprocess.run([*user.python, "-c", both], cwd=empty, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("to the last digit") == 2
        assert list(empty.iterdir()) == []


# --- damaged or changed -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_each_damaged_missing_and_extra_file_is_named(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_of(bundle)
    (run / "raw" / "t0001" / "stderr").write_bytes(b"x")
    (run / "sweep.yml").unlink()
    (run / "more.txt").write_text("x")
    assert main(["reproduce", str(bundle)]) == 1
    said = capsys.readouterr().out
    for line in (
        f"damaged: runs/{run.name}/raw/t0001/stderr",
        f"missing: runs/{run.name}/sweep.yml",
        f"extra: runs/{run.name}/more.txt",
        "3 files not as published",
    ):
        assert line in said
    (bundle / MANIFEST).unlink()
    assert reproduce.damaged(bundle) == [Damage("missing", MANIFEST)]


def one_digit_off(file: Path, column: str) -> tuple[str, str]:
    """Change the last digit of the first figure of a table: the new one and the old one."""
    head, *rows = csv.reader(io.StringIO(file.read_text()))
    row = next(row for row in rows if row[head.index(column)])
    old = row[head.index(column)]
    new = row[head.index(column)] = old[:-1] + ("1" if old[-1] != "1" else "2")
    with file.open("w") as sink:
        csv.writer(sink, lineterminator="\n").writerows([head, *rows])
    return new, old


@pytest.mark.slow
def test_a_published_figure_that_is_one_digit_off_is_listed(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = {"estimates": "mean", "measurements": "value", "comparisons": "ratio"}
    changed = {name: one_digit_off(run_of(bundle) / f"{name}.csv", column) for name, column in columns.items()}
    description = json.loads((bundle / "bundle.json").read_text())
    description["versions"]["numpy"] = "1.0"
    (bundle / "bundle.json").write_text(json.dumps(description))
    assert main(["reproduce", str(signed(bundle))]) == 1
    said = capsys.readouterr().out
    assert "Files: all as published" in said, "its sums were made again"
    for table, (new, old) in changed.items():
        (line,) = (line for line in said.splitlines() if f", {table}: " in line)
        assert f"{columns[table]}: {new}; now {old}" in line
        assert "filesystem=" in line or "baseline=" in line or "cell=" in line
    assert "The likely reason: other versions of libraries: numpy 1.0, here " in said


@pytest.mark.slow
def test_raw_output_that_was_changed_shows_in_the_figures(bundle: Path) -> None:
    stderr = run_of(bundle) / "raw" / "t0006" / "stderr"
    if "copied" not in stderr.read_text():
        pytest.fail("the planted run has another layout")
    changed = next(path for path in sorted(run_of(bundle).glob("raw/t*/stderr")) if path.parent.name > "t0006")
    changed.write_text(re.sub(r"copied, 0\.0?1", "copied, 0.2", changed.read_text()))
    found = reproduce.check(signed(bundle))
    assert not found.damage
    assert {difference.table for difference in found.differences} >= {"measurements", "estimates"}
    assert not found.same


def test_a_row_too_many_or_too_few_is_a_difference() -> None:
    assert [str(change) for change in differences("r", "t", "cell,mean\na,1\nb,2\n", "cell,mean\na,1.0\nc,2\n")] == [
        "r, t: cell=a, mean: 1; now 1.0",
        "r, t: cell=b, the row: present; now absent",
        "r, t: cell=c, the row: absent; now present",
    ]
    assert differences("r", "t", "cell,mean\na,1\na,2\n", "cell,mean\na,1\na,2\n") == []
    assert len(differences("r", "t", "cell,mean\na,1\na,2\n", "cell,mean\na,1\na,3\n")) == 1


@pytest.mark.long
def test_many_rows_of_one_name_are_compared_in_time_that_grows_as_they_do() -> None:
    table = "cell,mean\n" + "a,1\n" * 50_000
    assert differences("r", "t", table, table) == []
    assert len(differences("r", "t", table, f"{table}a,2\n")) == 1


@pytest.mark.slow
def test_conclusions_that_were_changed_are_listed_though_all_sums_were_made_again(
    bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(bundle)
    for file, kept in ((run / "caveats.csv", slice(1)), (run / "sweep.yml", slice(-1))):
        file.write_text("".join(file.read_text().splitlines(keepends=True)[kept]))
    description = json.loads((bundle / "bundle.json").read_text())
    description["runs"][0]["sentences"] = ["tmpfs is a thousand times faster."]
    (bundle / "bundle.json").write_text(json.dumps(description))
    entry = json.loads((bundle / "entry.json").read_text())
    (bundle / "entry.json").write_text(json.dumps({**entry, "verdict": "tmpfs is faster."}))
    assert main(["reproduce", str(signed(bundle))]) == 1
    said = capsys.readouterr().out
    for where in ("caveats", "bundle.json", "entry.json", "sweep.yml"):
        assert f"{run_of(bundle).name}, {where}: " in said
    assert "Only their checksums are checked." in said.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.json", "[" * 100_000), ("run.json", "{"), ("run.json", '{"facts": []}'), ("run.json", "box"),
        ("trials.jsonl", "{\n"), ("estimates.csv", f"cell,mean\n{'x' * 200_000},1\n"),
    ],
    ids=["nested", "torn", "foreign", "no-box", "journal", "cell"],
)  # fmt: skip
@pytest.mark.parametrize("sums", ["old", "new"])
def test_a_file_without_which_no_figure_can_be_made_is_named_with_its_run(
    name: str, text: str, sums: str, bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = run_of(bundle) / name
    if text == "box":
        text = json.dumps({**json.loads(file.read_text()), "box": None, "facts": []})
    file.write_text(text)
    assert main(["reproduce", str(signed(bundle) if sums == "new" else bundle)]) == 1
    said = capsys.readouterr().out
    assert (f"damaged: runs/{run_of(bundle).name}/{name}" in said) == (sums == "old")
    assert "none can be made again: " in said
    assert f"Figures: of 1 run none could be made again: {run_of(bundle).name}." in said


@pytest.mark.slow
def test_names_of_files_steer_no_terminal(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (bundle / "a\x1b[31m\u202egnp.exe").write_text("x")
    assert main(["reproduce", str(bundle)]) == 1
    said = capsys.readouterr().out
    assert "extra: a[U+001B][31m[U+202E]gnp.exe" in said
    assert all(line.isprintable() for line in said.splitlines())


# --- made to harm -----------------------------------------------------------------------------------------------------


def zipped(tmp_path: Path, *entries: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    path = tmp_path / "evil.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in entries:
            packed.writestr(name, data)
    return path


def link(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.create_system, entry.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    return entry


@pytest.mark.parametrize(
    ("entries", "what"),
    [
        ([("../evil", b"x")], "a name that no file of a bundle may have"),
        ([("b/../../evil", b"x")], "a name that no file of a bundle may have"),
        ([("/etc/evil", b"x")], "a name that no file of a bundle may have"),
        ([("b\\..\\evil", b"x")], "a name that no file of a bundle may have"),
        ([("C:/evil", b"x")], "a name that no file of a bundle may have"),
        ([("b/\n", b"x")], "a name that no file of a bundle may have"),
        ([(link("b/evil"), b"/etc/passwd")], "a bundle holds files and directories only, each once"),
        ([("b/x", b"1"), ("b/X", b"2")], "a bundle holds files and directories only, each once"),
        ([("b/x", b"1")], "not a bundle"),
        ([("b/bundle.json", b"{")], "the bundle's description is not whole"),
        ([("b/bundle.json", b"[" * 100_000)], "the bundle's description is not whole"),
        ([("b/x", b"x"), ("b/x/y", b"x")], "the archive cannot be unpacked"),
        ([(f"b/{'x' * 300}", b"x")], "the archive cannot be unpacked"),
        ([("b/bundle.json", b"[]")], "not a bundle of Mountlab's"),
        ([("b/bundle.json", b'{"runs": [{"run_id": "r"}], "format": 99}')], "a bundle of another format"),
        (
            [("b/bundle.json", b'{"runs": [{"run_id": "../r"}], "format": 1}')],
            "a name that no file of a bundle may have",
        ),
        (
            [("b/bundle.json", b'{"runs": [{"run_id": "a/r"}], "format": 1}')],
            "a name that would lead to another directory",
        ),
    ],
)
def test_an_archive_that_would_harm_is_refused(entries: Any, what: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = zipped(tmp_path / "in", *entries)
    with pytest.raises(StoreError) as caught, reproduce.opened(path) as place:
        reproduce.check(place)
    assert caught.value.what == what
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_bomb_is_refused_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduce, "LARGEST", 1000)
    with (
        pytest.raises(StoreError, match="too large for a bundle"),
        reproduce.opened(zipped(tmp_path, ("b/x", b"0" * 1001))),
    ):
        pass


def test_a_file_that_is_larger_than_it_says_is_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = zipped(tmp_path, ("b/x", b"0"))
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_, **__: io.BytesIO(b"0" * 100))
    with pytest.raises(StoreError, match="larger than it says"), reproduce.opened(path):
        pass


def test_what_is_no_archive_and_what_is_not_there_is_said(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"PK nothing")
    for path, what in ((tmp_path / "x.zip", "cannot be unpacked"), (tmp_path / "y", "no such bundle")):
        with pytest.raises(StoreError, match=what), reproduce.opened(path):
            pass
    with pytest.raises(StoreError, match="not a bundle"):
        reproduce.check(tmp_path)


@pytest.mark.slow
def test_an_archive_that_was_damaged_on_its_way_is_told(whole: tuple[Path, Path], tmp_path: Path) -> None:
    data = bytearray(whole[1].read_bytes())
    with zipfile.ZipFile(whole[1]) as packed:
        entry = max(packed.infolist(), key=lambda packed_file: packed_file.compress_size)
    for place in range(entry.header_offset + 200, entry.header_offset + 240):
        data[place] ^= 0xFF
    (tmp_path / "b.zip").write_bytes(data)
    with pytest.raises(StoreError, match="cannot be unpacked"), reproduce.opened(tmp_path / "b.zip"):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("target", ["/etc/passwd", "nowhere"])
def test_links_in_a_folder_are_not_followed(target: str, bundle: Path) -> None:
    (run_of(bundle) / "raw" / "t0001" / "stdout").unlink()
    (run_of(bundle) / "raw" / "t0001" / "stdout").symlink_to(target)
    with pytest.raises(StoreError, match="files and directories only"):
        reproduce.check(bundle)


@pytest.mark.slow
def test_a_pipe_in_a_folder_is_not_waited_for(bundle: Path) -> None:
    os.mkfifo(run_of(bundle) / "raw" / "t0001" / "pipe")
    with pytest.raises(StoreError, match="files and directories only"):
        reproduce.check(bundle)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["../../../../etc", "/etc", "a/b", ".."])
@pytest.mark.parametrize("key", ["trial_id", "mount"])
def test_names_in_the_journal_lead_nowhere_else(key: str, name: str, bundle: Path) -> None:
    journal = run_of(bundle) / "trials.jsonl"
    first, *rest = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join([json.dumps({**json.loads(first), key: name}) + "\n", *rest]))
    with pytest.raises(StoreError):
        reproduce.check(signed(bundle))


@every_row("text", ["x", f"{'0' * 64}  ../../etc/passwd\n", f"{'0' * 64}  a\n{'1' * 64}  a\n", "../x"])
def test_checksums_that_name_other_places_are_refused(text: str) -> None:
    with pytest.raises(StoreError):
        read_manifest(text)


def test_names_of_files_and_titles() -> None:
    assert safe_parts("runs/r1/raw/t1/a b.log") == ["runs", "r1", "raw", "t1", "a b.log"]
    assert slug("Is tmpfs worth it? ../x") == "is-tmpfs-worth-it-x"
    assert slug("日本") == "untitled"


def test_an_executed_notebook_is_cleaned_of_times_places_and_random_ids() -> None:
    cell = {"cell_type": "code", "id": "r4nd0m", "source": ["run = '/x/y'"], "outputs": [{"text": ["/x/y"]}],
            "metadata": {"tags": ["injected-parameters"], "papermill": {"duration": 1}, "execution": {}}}  # fmt: skip
    told = {"papermill": {"parameters": {"run": "/x/y"}, "start_time": "now", "input_path": "/x/y/z"}}
    cleaned = without_clock({"metadata": told, "cells": [cell], "nbformat": 4}, lambda text: text.replace("/x/y", "."))
    injected = {"tags": ["injected-parameters"]}
    assert cleaned == {
        "metadata": {"papermill": {"parameters": {"run": "."}}},
        "nbformat": 4,
        "cells": [{**cell, "id": "injected-parameters", "source": ["run = '.'"], "outputs": [{"text": ["."]}],
                   "metadata": injected}],
    }  # fmt: skip


# --- run again --------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.slow
def test_a_box_runs_the_sweeps_again_and_the_two_are_compared(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the same functions as `run`, `report` and `compare`, which have tests of their own."""
    done: list[Any] = []
    again = planted_run(tmp_path)
    info = json.loads((again / "run.json").read_text())
    (again / "run.json").write_text(json.dumps({**info, "run_id": "again"}))
    seal_again(again)

    def run(resolved: Any, *, box: str) -> Path:
        done.append((box, resolved.sweep.name, resolved.sweep.published))
        return again

    monkeypatch.setattr(workflow, "run", run)
    monkeypatch.setattr(execute, "write_report", done.append)
    monkeypatch.setattr(execute, "write_comparison", lambda a, b: tmp_path / f"{a.name}-{b.name}")
    assert main(["reproduce", str(bundle), "--box", "mine"]) == 0
    assert done == [("mine", read_sweep(again).sweep.name, ("b-tmpfs-cloud",)), again]
    said = capsys.readouterr().out
    assert "in A" in said or "A:" in said or "B" in said
    assert f"report: {tmp_path}/{run_of(bundle).name}-{again.name}" in said


@pytest.mark.slow
def test_a_damaged_bundle_is_not_run_again(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[object] = []
    monkeypatch.setattr(workflow, "run", lambda *_, **__: ran.append(1))
    (run_of(bundle) / "sweep.yml").write_text("x")
    assert main(["reproduce", str(bundle), "--box", "mine"]) == 1
    assert ran == []


@pytest.mark.slow
@every_row(
    ("tool", "options", "beside", "lines"),
    [
        ("command", {"argv": "sh -c evil {directory}", "prepare": "true"}, False, "sh -c evil {directory}; true"),
        ("watched", {"argv": "sh -c evil", "environment": "{}"}, False, "sh -c evil"),
        ("watched", {"argv": "sh", "environment": '{"BASH_ENV": "x"}'}, False, 'sh; {"BASH_ENV": "x"}'),
        ("command", {"argv": "sh -c evil"}, True, "sh -c evil"),
    ],
)
def test_command_lines_of_a_bundle_are_not_run_unread(
    bundle: Path, monkeypatch: pytest.MonkeyPatch, tool: str, options: dict[str, str], beside: bool, lines: str
) -> None:
    """Defect: those of watched programs and of neighbours ran unread."""
    workload = SimpleNamespace(tool=tool, options=options)
    neighbours = {"n": SimpleNamespace(workload=workload)} if beside else {}
    sweep = SimpleNamespace(workloads=[] if beside else [workload], neighbours=neighbours, filesystems=[])
    monkeypatch.setattr(info, "read_sweep", lambda path: SimpleNamespace(sweep=sweep))
    with pytest.raises(UnsafeError) as caught:
        reproduce.refuse_commands(bundle, allowed=False)
    assert caught.value.got == lines
    assert "--allow-commands" in caught.value.next_step
    reproduce.refuse_commands(bundle, allowed=True)


def test_figures_that_are_not_installed_here_are_left_out_of_the_sweep(
    whole: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert reproduce.sweep_of(run_of(whole[0])).sweep.published == ("b-tmpfs-cloud",)
    monkeypatch.setattr(paths, "PARAMS", tmp_path)
    assert reproduce.sweep_of(run_of(whole[0])).sweep.published == ("b-tmpfs-cloud",), "it comes with Mountlab"
    monkeypatch.setattr(paths, "SHIPPED", tmp_path)
    assert reproduce.sweep_of(run_of(whole[0])).sweep.published == ()

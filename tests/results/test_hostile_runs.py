"""Run directories from others: looked at, they execute nothing, wait for nothing, and read nothing but themselves."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import pickle
import random
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
import pyarrow
import pyarrow.parquet
import pytest
import yaml
from hostile_input import CANARY, STRINGS, Hostile
from mountlab.batch.batch_file import parse_batch
from mountlab.core.errors import MountlabError, ParameterError, StoreError
from mountlab.core.model import Box, ScratchDevice
from mountlab.core.places import SHIPPED
from mountlab.publish import export, reproduce
from mountlab.report import execute
from mountlab.report.kernels import Kernels
from mountlab.results import store
from mountlab.results.imported import import_patterns
from mountlab.results.info import read_info, runs_below
from mountlab.results.tables import tables as tables_
from mountlab.sweep.untrusted import kept_box
from rows import every_row
from sweep.test_hostile_input import no_control_characters, nothing_is_touched

MANY = int(os.environ.get("MOUNTLAB_HOSTILE_RUNS", "12"))
MANY_TRIALS = 6
SECRET = "the words of a file elsewhere"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The beginning of the recorded run, as if it had been stopped there: small, so that it is soon read."""
    path, recorded = tmp_path / "results" / "tour", SHIPPED / "tests" / "data" / "earlier_run"
    lines = (recorded / "trials.jsonl").read_text().splitlines()[:MANY_TRIALS]
    kept = {name for line in lines for name in (json.loads(line)["trial_id"], json.loads(line)["mount"])}
    for name in kept:
        shutil.copytree(recorded / "raw" / name, path / "raw" / name)
    shutil.copy(recorded / "run.json", path)
    (path / "trials.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret").write_text(SECRET)
    return path


@contextmanager
def not_for_ever() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise AssertionError("it waits for ever")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 60)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def changed(run: Path, **keys: Any) -> None:
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**info, **keys}))


def journal(run: Path, **keys: Any) -> None:
    first, *rest = (run / "trials.jsonl").read_text().splitlines()
    (run / "trials.jsonl").write_text("\n".join([json.dumps({**json.loads(first), **keys}), *rest]) + "\n")


PIECES = (
    "raw/t0001/stdout", "raw/t0001", "raw/m001-tmpfs/evidence.txt", "raw", "run.json", "trials.jsonl", "exclude.yml",
    "raw/t0001/more",
)  # fmt: skip


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("kind", ["link to a file", "link to a directory", "dangling link", "pipe"])
def test_a_link_or_a_pipe_in_the_place_of_a_piece_is_refused(piece: str, kind: str, run: Path) -> None:
    place = run / piece
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    targets = {"link to a file": "secret", "link to a directory": ".", "dangling link": "nothing"}
    if kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(run.parent.parent / "elsewhere" / targets[kind])
    with not_for_ever(), nothing_is_touched(), pytest.raises(StoreError) as caught:
        store.load_run(run)
    assert SECRET not in str(caught.value)


def test_a_pipe_in_the_place_of_a_run_is_passed_over_in_the_index(run: Path) -> None:
    (run / "run.json").unlink()
    os.mkfifo(run / "run.json")
    with not_for_ever():
        assert runs_below(run.parent) == []
        execute.write_index(run.parent)


NAMES = ("../elsewhere", "..", ".", "/etc", "a/../../elsewhere", "-rf", "a\0b", "a\nb", "$(id)", "x" * 300)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("key", ["trial_id", "mount"])
def test_a_name_in_the_journal_leads_nowhere_else(key: str, name: str, run: Path) -> None:
    journal(run, **{key: name})
    with nothing_is_touched(), pytest.raises(StoreError):
        store.load_run(run)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_in_run_json_leads_nowhere_else(name: str, run: Path) -> None:
    changed(run, run_id=name)
    with nothing_is_touched(), pytest.raises(StoreError):
        store.load_run(run)
    info = json.loads((run / "run.json").read_text())
    changed(run, run_id="tour", box={**info["box"], "name": name})
    with nothing_is_touched(), pytest.raises(StoreError):
        store.load_run(run)


@every_row(
    "change",
    [
        {"host": "-oProxy=x"},
        {"mount_root": "/"},
        {"mount_root": "/srv/$(id)/x"},
        {"output_root": "/a/../b"},
        {"scratch": [{"name": "a", "device": "/dev/sda"}]},
        {"scratch": "x"},
        {"become": "maybe"},
        {"more": 1},
        {"port": "x"},
        {"user": "-l"},
    ],
)
def test_the_box_of_a_run_is_held_against_the_rules_of_a_box_file(change: dict[str, Any]) -> None:
    kept = {"name": "lab", "host": "lab", "user": None, "port": None, "embedded": None, "become": "auto",
            "mount_root": None, "output_root": None, "scratch": []}  # fmt: skip
    assert kept_box(kept, "run.json") == Box(name="lab", host="lab")
    whole = {**kept, "scratch": [{"name": "data", "device": "/dev/pmem0"}], "mount_root": "/srv/a"}
    assert kept_box(whole, "run.json").scratch == (ScratchDevice(name="data", device="/dev/pmem0"),)
    with pytest.raises(StoreError, match="box is not one of Mountlab's"):
        kept_box({**kept, **change}, "run.json")


def test_the_box_of_a_watched_program_is_read_although_no_box_file_may_say_as_whom_it_ran() -> None:
    """Defect: a run of `mountlab watch` could not be published."""
    assert kept_box({"name": "local", "embedded": "loopback", "become": "login"}, "run.json").embedded == "loopback"


def test_a_virtual_box_with_zfs_and_a_kernel_is_read_as_it_was_written() -> None:
    box = Box(name="v", host="", embedded="vm", kernel="6.1", extras=("zfs",))
    assert kept_box(json.loads(json.dumps(dataclasses.asdict(box))), "run.json") == box


def test_a_run_of_a_schema_that_is_no_number_is_refused(run: Path) -> None:
    for value in ("2", None, [], 2.5, True):
        changed(run, schema=value)
        with pytest.raises(StoreError, match="not a run of Mountlab's"):
            read_info(run)


class Harmful:
    """What would run a command where a pickle of it is read."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return os.mkdir, (CANARY,)


def test_a_pickle_in_a_table_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old versions of pyarrow made objects of a column's metadata."""
    monkeypatch.chdir(tmp_path)
    name = {b"ARROW:extension:name": b"arrow.py_extension_type", b"ARROW:extension:metadata": pickle.dumps(Harmful())}
    table = pyarrow.table({"a": [1]}, schema=pyarrow.schema([pyarrow.field("a", pyarrow.int64(), metadata=name)]))
    pyarrow.parquet.write_table(table, tmp_path / "measurements.parquet")
    with nothing_is_touched():
        assert reproduce.parquet_text(tmp_path / "measurements.parquet").startswith("a")
    (tmp_path / CANARY).mkdir()
    with pytest.raises(FileExistsError):
        pickle.loads(pickle.dumps(Harmful()))  # it is harmful indeed


@every_row("name", ["../x", "a b", "-x", "$(id)", "a\nb", ""])
def test_a_batch_has_a_plain_name(name: str) -> None:
    with pytest.raises(MountlabError, match="a name that would lead elsewhere"):
        parse_batch({"groups": {}}, name=name, where="b.yml")


def test_a_report_is_not_written_through_a_link(run: Path) -> None:
    elsewhere = run.parent.parent / "elsewhere"
    (run / "notebooks").symlink_to(elsewhere)
    with nothing_is_touched(), pytest.raises(StoreError, match="files and directories only"):
        execute.write_report(run)
    assert [each.name for each in elsewhere.iterdir()] == ["secret"]


def test_a_comparison_has_a_place_below_the_results(run: Path, tmp_path: Path) -> None:
    changed(run, run_id="../../elsewhere")
    with nothing_is_touched(), pytest.raises(StoreError, match="lead elsewhere"):
        execute.write_comparison(run, run, results=tmp_path / "results")


def test_what_starts_a_kernel_for_a_report_imports_nothing_from_here(tmp_path: Path) -> None:
    """The environment and the words of the kernel, without its start, which takes seconds."""
    spec = Kernels(alone=True).manager(tmp_path / "kernel.json")().kernel_spec
    assert "--IPKernelApp.ignore_cwd=True" in spec.argv
    (tmp_path / "planted.py").write_text(f"open({str(tmp_path / CANARY)!r}, 'w')\n")
    argv, environment = [spec.argv[0], "-c", "import planted"], {**os.environ, **spec.env}
    done = subprocess.run(argv, check=False, cwd=tmp_path, env=environment, capture_output=True)
    assert b"No module named 'planted'" in done.stderr
    assert not (tmp_path / CANARY).exists()


@pytest.mark.long
def test_a_kernel_for_a_report_imports_nothing_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who looks at a run from inside of its directory must not have its files imported."""
    for name in ("pathlib", "pandas", "planted"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / CANARY)!r}, 'w')\n")
    cell = nbformat.v4.new_code_cell(
        "import pandas, pathlib\ntry:\n    import planted\nexcept ImportError:\n    print('no')"
    )
    spec = {"display_name": "Python", "language": "python", "name": "python3"}
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"kernelspec": spec})
    nbformat.write(notebook, tmp_path / "n.ipynb")
    monkeypatch.chdir(tmp_path)
    execute.execute(tmp_path / "n.ipynb", tmp_path / "out" / "n.ipynb", {})
    assert "no\\n" in (tmp_path / "out" / "n.ipynb").read_text()
    assert not (tmp_path / CANARY).exists()


@pytest.mark.slow
@pytest.mark.parametrize("key", ["candidate_value", "baseline_value"])
@pytest.mark.parametrize("value", [math.inf, 1e308, 1e-320, 0, -1, "x", [1], True])
def test_a_published_figure_of_a_run_is_a_figure(key: str, value: Any, run: Path) -> None:
    info = json.loads((run / "run.json").read_text())
    changed(run, published=[{**info["published"][0], key: value}])
    with pytest.raises(ParameterError, match="wrong type or value") as caught:
        store.load_run(run)
    assert caught.value.where.endswith(f"run.json: published: {key}")


def test_a_claim_without_figures_is_one(run: Path) -> None:
    info = json.loads((run / "run.json").read_text())
    row = {key: value for key, value in info["published"][0].items() if not key.endswith("_value")}
    changed(run, published=[{**row, "claim": "same", "within": 0.1}])
    (claim,) = store.load_run(run).published
    assert (claim.claim, claim.within, math.isnan(claim.ratio)) == ("same", 0.1, True)


@pytest.mark.slow
def test_a_run_with_a_level_of_an_earlier_version_stays_readable(run: Path) -> None:
    info = json.loads((run / "run.json").read_text())
    changed(run, parameters={**info["parameters"], "design": {"level": 0.9999999999999999}})
    assert store.load_run(run).sweep.design.level == 0.999999
    for level in (1.0, 1.5, math.nan, "0.95"):
        changed(run, parameters={**info["parameters"], "design": {"level": level}})
        with pytest.raises(ParameterError, match="wrong type or value"):
            store.load_run(run)


@pytest.fixture(scope="module")
def brought(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one imported log."""
    place = tmp_path_factory.mktemp("brought")
    (place / "ext4-1.txt").write_text("1048576 bytes (1.0 MB, 1.0 MiB) copied, 0.5 s, 2.1 MB/s\n")
    raw = {"question": "?", "tool": "dd", "files": [f"{place}/{{filesystem}}-{{repeat}}.txt"]}
    path = import_patterns(raw, results=place / "results")
    assert len(store.load_run(path).trials) == 1
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", ["../x", "/etc", "a\nb", "a\x1b[2Jb", ""])
@pytest.mark.parametrize("place", ["name", "box", "filesystems", "workloads", "published"])
def test_a_name_in_an_imported_sweep_is_one(place: str, name: str, brought: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(brought, tmp_path / brought.name))
    imported = json.loads((path / "run.json").read_text())["imported"]
    sweep = imported["sweep"]
    if place in ("filesystems", "workloads"):
        sweep[place][0]["name"] = name
    else:
        sweep[place] = [name] if place == "published" else name
    changed(path, imported=imported)
    with nothing_is_touched(), pytest.raises(StoreError, match="lead elsewhere"):
        store.load_run(path)


# --- anything at all --------------------------------------------------------------------------------------------------


def look_at(run: Path) -> str:
    """What people do with a run that is not theirs, but for executing its report."""
    try:
        read = store.load_run(run)
        tables = tables_(read)
        export.export_files(tables, read.sweep, "csv", export.Pivot.read(None, None, None))
        repr(read)
        str(read)
    except MountlabError as error:
        no_control_characters(str(error))
        return type(error).__name__
    return "read"


class Damage:
    """One change to a run directory, drawn by a seed."""

    def __init__(self, seed: int) -> None:
        self.random, self.hostile = random.Random(seed), Hostile(seed)
        self.ways: tuple[Callable[[Path], None], ...] = (
            self.info,
            self.info,
            self.line,
            self.line,
            self.raw,
            self.text,
        )

    def change(self, run: Path) -> None:
        self.random.choice(self.ways)(run)

    def info(self, run: Path) -> None:
        info = json.loads((run / "run.json").read_text())
        self.random.choice(self.hostile.changes)(info)
        (run / "run.json").write_text(json.dumps(info, default=str))

    def line(self, run: Path) -> None:
        lines = (run / "trials.jsonl").read_text().splitlines()
        number = self.random.randrange(len(lines))
        trial = json.loads(lines[number])
        trial[self.random.choice(list(trial))] = self.random.choice([*STRINGS[:40], 1, None, [], {}, -1.5, True])
        lines[number] = json.dumps(trial)
        (run / "trials.jsonl").write_text("\n".join(lines) + "\n")

    def raw(self, run: Path) -> None:
        files = sorted(each for each in (run / "raw").rglob("*") if each.is_file())
        file = self.random.choice(files)
        data = file.read_bytes()
        at = self.random.randrange(len(data) + 1)
        word = self.hostile.word().encode("utf-8", "surrogatepass")
        file.write_bytes(self.random.choice((b"", data[:at], data[:at] + word + data[at:], data * 2, b"\xff\0" * 500)))

    def text(self, run: Path) -> None:
        (run / "exclude.yml").write_text(
            yaml.safe_dump({"exclude": {"t0001": self.hostile.word(), self.hostile.word(): 1}})
        )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of numbers that no number of trials can be
@pytest.mark.long
def test_runs_that_were_damaged_or_made_up_are_read_or_refused(run: Path) -> None:
    damage, seen = Damage(7), Counter[str]()
    assert look_at(run) == "read"  # what libraries set up when they are imported is touched before anybody looks
    for number in range(MANY):
        copy = run.parent / f"damaged-{number}"
        shutil.copytree(run, copy)
        damage.change(copy)
        try:
            with not_for_ever(), nothing_is_touched():
                seen[look_at(copy)] += 1
        except Exception as error:
            changes = [
                each for each in ("run.json", "trials.jsonl") if (copy / each).read_bytes() != (run / each).read_bytes()
            ]
            raise AssertionError(f"{error!r} of {copy}, {changes}") from error
        shutil.rmtree(copy)
    assert seen["read"] > 0
    assert seen["StoreError"] + seen["ParameterError"] > 0

"""Files that a sweep names (`job_file`, ...): those beside it, and nothing else of the machine that reads it.

Their text is kept in the run and published with it: a sweep of others must not name what it does not bring.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from mountlab.__main__ import main
from mountlab.batch import boxes
from mountlab.core.errors import MountlabError, StoreError
from mountlab.jupyter import api
from mountlab.programs import TOOLS
from mountlab.results import paths
from mountlab.results.plain_files import LARGEST_NAMED
from mountlab.sweep.sweep_file import resolve
from results.test_hostile_runs import not_for_ever
from rows import every_row

PRIVATE = "a_private_name"
JOBS = f"[{PRIVATE}]\nrw=read\nsize=1m\n"
WML = (
    f"define fileset name={PRIVATE},path=$dir,size=1k,entries=1\ndefine process name=p {{\n thread name=t {{\n"
    f" flowop createfile name=c,filesetname={PRIVATE}\n }}\n}}\nrun 1\n"
)
KEYS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "job_file": ("fio", JOBS, {}),
    "script_file": ("pgbench", f"SELECT 1 AS {PRIVATE};\n", {"scale": 1, "runtime": "1s"}),
    "wml_file": ("filebench", WML, {"space": "1MiB"}),
}
PLACES = (
    "{tmp}/outside", "../outside", "x/../../outside", "out/outside", "link", "circle", "pipe", "socket", ".", "sub",
    "/dev/zero", "/proc/self/environ", "huge", ".hidden", "sub/.hidden", "nothing", "a\0b", "x" * 5000, "chain",
    "//etc/passwd", "sub/up/outside",
)  # fmt: skip


def test_every_key_of_a_tool_that_names_a_file_is_tested_here() -> None:
    named = {option.file_key for tool in TOOLS.values() for option in tool.options.values() if option.file_key}
    assert named == set(KEYS)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Path]:
    """A directory as others could send it, below one with files that are nobody else's."""
    lab = tmp_path / "lab"
    (lab / "sub").mkdir(parents=True)
    for text in (JOBS,):
        for name in ("outside", "lab/.hidden", "lab/sub/.hidden", "lab/good", "lab/sub/good"):
            (tmp_path / name).write_text(text)
    (lab / "out").symlink_to(tmp_path)
    (lab / "sub" / "up").symlink_to("../..")
    (lab / "link").symlink_to(tmp_path / "outside")
    (lab / "chain").symlink_to("link")
    (lab / "circle").symlink_to("circle")
    (lab / "inner").symlink_to("sub/good")
    os.mkfifo(lab / "pipe")
    (lab / "huge").write_bytes(b"[a]\n" + b"#" * LARGEST_NAMED)
    with _listening(lab / "socket"):
        yield lab


@contextmanager
def _listening(path: Path) -> Iterator[None]:
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket may have a hundred characters
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
            yield
    finally:
        os.chdir(here)


def sweep(lab: Path, key: str, name: str | None) -> dict[str, Any]:
    tool, text, more = KEYS[key]
    for path in (lab.parent / "outside", *(lab / each for each in ("good", ".hidden", "sub/good", "sub/.hidden"))):
        path.write_text(text)
    entry = {"tool": tool, **more, **({key: name} if name is not None else {"jobs" if tool == "fio" else "wml": text})}
    return {"question": "Q", "filesystems": {"d": {"type": "dir"}}, "workloads": {"w": entry}}


def by_file(lab: Path, key: str, name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    (lab / "s.yml").write_text(yaml.safe_dump(sweep(lab, key, name)))
    return paths.load_sweep(lab / "s.yml")


def by_command_line(lab: Path, key: str, name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`-p` is of the person who types it, and stands for a line of the sweep file: the same rule, whoever says it."""
    (lab / "s.yml").write_text(yaml.safe_dump(sweep(lab, key, "good")))
    return paths.load_sweep(lab / "s.yml", {f"workloads.w.{key}": name})


def by_parameters(lab: Path, key: str, name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """papermill -f sweep.yml: there is no sweep file, and the directory is the one where the notebook runs."""
    monkeypatch.chdir(lab)
    return api.sweep_from_notebook({**sweep(lab, key, name), "In": []})


def by_preset(lab: Path, key: str, name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    raw = {**sweep(lab, key, "good"), "presets": {"p": {"workloads": {"w": {key: name}}}}}
    (lab / "s.yml").write_text(yaml.safe_dump(raw))
    return paths.load_sweep(lab / "s.yml", {"preset": "p"})


WAYS = (by_file, by_command_line, by_parameters, by_preset)
Way = Callable[[Path, str, str, pytest.MonkeyPatch], Any]


@pytest.mark.slow
@every_row("way", WAYS)
@every_row("place", PLACES)
@every_row("key", KEYS)
def test_a_sweep_reads_nothing_that_does_not_lie_beside_it(
    key: str, place: str, way: Way, lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = place.replace("{tmp}", str(lab.parent))
    with not_for_ever(), pytest.raises(MountlabError) as caught:
        way(lab, key, name, monkeypatch)
    assert PRIVATE not in str(caught.value)
    assert "root:" not in str(caught.value)
    if isinstance(caught.value, StoreError):
        assert caught.value.where.endswith(f"workloads.w.{key}")


@every_row("way", WAYS)
@every_row("name", ["good", "./good", "sub/good", "inner"])
@every_row("key", KEYS)
def test_a_file_beside_a_sweep_or_below_it_is_read_also_through_a_link_that_stays_there(
    key: str, name: str, way: Way, lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = way(lab, key, name, monkeypatch).parameters["workloads"]["w"]
    assert PRIVATE in read["jobs" if key == "job_file" else key.removesuffix("_file")]
    assert key not in read


def test_a_refusal_says_where_what_is_allowed_and_what_to_do(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (lab / "s.yml").write_text(yaml.safe_dump(sweep(lab, "job_file", "../outside")))
    assert main(["plan", str(lab / "s.yml")]) == 2
    said = capsys.readouterr().err
    for part in ("s.yml: workloads.w.job_file", "'../outside'", "or below it", "copy it there"):
        assert part in said


@pytest.mark.parametrize("key", KEYS)
def test_a_run_of_others_that_names_a_file_reads_none(key: str, lab: Path) -> None:
    """A run keeps the text: a name in its run.json is not ours."""
    with pytest.raises(MountlabError, match="no directory here"):
        resolve({**sweep(lab, key, "good"), "name": "s"}, where="run.json", kept=True)


def test_a_batch_reads_what_lies_beside_its_sweep(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each item is told the file of its sweep, and a batch over boxes has the text already."""
    raw = {**sweep(lab, "job_file", "good"), "boxes": ["a", "b"]}
    (lab / "s.yml").write_text(yaml.safe_dump(raw))
    (item, _) = boxes.batch_of(paths.load_sweep(lab / "s.yml"), lab / "results").items
    assert "job_file" not in json.dumps([item.sweep, dict(item.parameters), dict(item.overrides)])
    (lab / "s.yml").write_text(yaml.safe_dump({**raw, "workloads": {"w": {"tool": "fio", "job_file": "../outside"}}}))
    with pytest.raises(StoreError, match="lies beside it"):
        paths.load_sweep(lab / "s.yml")

"""Tab in bash, zsh and fish: verbs, options, and the names that a verb takes."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mountlab.__main__ import main
from mountlab.cli import arguments, parser
from mountlab.cli.arguments import ArgumentKind
from mountlab.core.places import SHIPPED
from mountlab.logs import FORMATS
from mountlab.results import paths
from mountlab.results import run_names as run_names_module
from mountlab.results.run_names import run_names
from shell_tab import COMMANDS, SHELLS, Terminal, terminal

HOSTILE = ("a b;$(touch ran)", "c'`touch ran`\"&|x", "e*?[~]#{f,g}:=\\", "z!")
"""Names of directories of results; in a shell each would do something if it were not quoted."""
FREE_TEXT = {
    "--accept", "--as", "--at", "--at-once", "--author", "--baseline", "--cell", "--check", "--commit-clients",
    "--env", "--erase", "--filesystem", "--kernel", "--licence", "--metric", "--name", "--pivot", "--port",
    "--question", "--reason", "--repeats", "--runs-differ", "--scheduler", "--since", "--size", "--time-limit",
    "--timeout", "--title", "--unit", "--until", "--user", "--var", "--width-cm", "--worse-than", "-p", "COMMAND",
    "DEVICE", "FILESYSTEM", "SQL", "TRIAL", "sweep new NAME",
}  # fmt: skip
"""Arguments whose values no file has. A new argument stands here, or has choices, or is of a `ArgumentKind`."""
HEAVY = {"dask", "duckdb", "matplotlib", "numpy", "pandas", "papermill", "pydantic", "pyarrow", "scipy", "yaml"}
KINDS = {name: kind for name, kind in vars(arguments).items() if isinstance(kind, ArgumentKind)}


def verbs(of: argparse.ArgumentParser, before: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield f"{before}{name}", below
                yield from verbs(below, f"{before}{name} ")


def without_values_to_offer(verb: str, declared: argparse.ArgumentParser) -> Iterator[str]:
    """Yield arguments of a verb for whose values Tab has nothing."""
    for action in declared._actions:
        takes_a_value = action.nargs != 0 and not isinstance(action, argparse._SubParsersAction)
        offered = action.choices or isinstance(getattr(action, "completer", None), ArgumentKind)
        if takes_a_value and not offered:
            yield action.option_strings[-1] if action.option_strings else str(action.metavar or action.dest).upper()


def test_tab_offers_the_values_of_every_argument_that_has_some() -> None:
    free = {(verb, name) for verb, declared in verbs(parser()) for name in without_values_to_offer(verb, declared)}
    assert {name if name in FREE_TEXT else f"{verb} {name}" for verb, name in free} == FREE_TEXT


def test_an_argument_of_no_kind_is_seen() -> None:
    declared = argparse.ArgumentParser()
    declared.add_argument("sweep", type=Path)
    arguments.argument(declared, arguments.BOX, "--box")
    declared.add_argument("--plan", action="store_true")
    assert list(without_values_to_offer("plan", declared)) == ["SWEEP"]


# --- what is offered --------------------------------------------------------------------------------------------------


def put_run(results: Path, name: str, created: str = "", file: str = "run.json") -> None:
    (results / name).mkdir()
    (results / name / file).write_text(json.dumps({"schema": 6, "created_at": created}, indent=1))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with files, a study of its own and results, where the shell is."""
    (tmp_path / "results").mkdir()
    for folder in ("sweeps/mine", "boxes", "batches"):
        (tmp_path / "params" / folder).mkdir(parents=True)
    for file in ("sweeps/disk.yml", "sweeps/mine/disk.yml", "boxes/db1.yml", "batches/nightly.yml"):
        (tmp_path / "params" / file).write_text("")
    for file in ("other.yml", "notes.txt", ".hidden.yml", "bundle.zip"):
        (tmp_path / file).write_text("")
    for module in (paths, run_names_module):
        monkeypatch.setattr(module, "SHIPPED", tmp_path / "shipped")
    monkeypatch.setattr(paths, "PARAMS", tmp_path / "params")
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def offered(kind: ArgumentKind, prefix: str = "") -> list[str]:
    return list(kind(prefix=prefix, action=None, parser=None, parsed_args=argparse.Namespace()))


def test_names_come_first_and_paths_where_no_name_fits(place: Path) -> None:
    assert offered(arguments.SWEEP) == ["disk", "mine/disk"]
    assert offered(arguments.SWEEP, "o") == ["other.yml"]
    assert offered(arguments.SWEEP, "mine/") == ["mine/disk"]
    assert offered(arguments.SWEEP, "params/sweeps/") == ["params/sweeps/disk.yml", "params/sweeps/mine/"]
    assert offered(arguments.BATCH) == ["nightly"]
    assert offered(arguments.BOX) == ["db1"]
    assert offered(arguments.DIRECTORY) == ["params/", "results/"]
    assert offered(arguments.BUNDLE) == ["bundle.zip", "params/", "results/"]
    assert offered(arguments.FILE, "./.") == ["./.hidden.yml"]
    assert offered(arguments.FILE, "absent/x") == []


def test_a_home_directory_stays_as_it_is_typed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(place))
    assert offered(arguments.SWEEP, "~/o") == ["~/other.yml"]


def test_runs_are_offered_the_newest_first(place: Path) -> None:
    results = place / "results"
    put_run(results, "old", "2026-01-01T10:00:00+00:00")
    put_run(results, "new", "2026-03-01T10:00:00+00:00")
    put_run(results, "batch-x", "2026-02-01T10:00:00+00:00", "batch.json")
    put_run(results, ".new", "2026-04-01T10:00:00+00:00")
    (results / "no-run").mkdir()
    assert run_names() == ["new", "batch-x", "old"]
    assert offered(arguments.RUN) == ["latest", "interrupted", "new", "batch-x", "old"]
    assert offered(arguments.RUN, "results/n") == ["results/new/", "results/no-run/"]


def test_what_comes_with_mountlab_is_offered_too(place: Path) -> None:
    for folder in ("results", "params/sweeps"):
        (place / "shipped" / folder).mkdir(parents=True)
    (place / "shipped" / "params" / "sweeps" / "ramdisk.yml").write_text("")
    put_run(place / "shipped" / "results", "tour", "2026-05-01T10:00:00+00:00")
    put_run(place / "results", "own", "2026-01-01T10:00:00+00:00")
    assert run_names() == ["own", "tour"]
    assert offered(arguments.SWEEP) == ["disk", "mine/disk", "ramdisk"]


def test_a_workspace_without_files_offers_what_is_always_there(place: Path) -> None:
    for folder in ("params", "results"):
        shutil.rmtree(place / folder)
    assert offered(arguments.RUN) == ["latest", "interrupted"]
    assert (offered(arguments.SWEEP, "d"), offered(arguments.BOX)) == ([], [])


def test_the_tools_whose_logs_are_read_are_offered() -> None:
    assert set(offered(arguments.TOOL)) == {*FORMATS}


# --- how it is asked for ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", SHELLS)
def test_the_verb_says_how_it_is_installed(
    shell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(COMMANDS), prepend=os.pathsep)
    assert main(["completion", shell]) == 0
    assert SHELLS[shell].install in capsys.readouterr().out.splitlines()[-1]


def test_a_command_that_is_not_on_the_path_is_named_with_its_place(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    for shell in SHELLS:
        assert main(["completion", shell]) == 0
        assert f"{COMMANDS / 'mountlab'} completion {shell}" in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.slow
def test_a_tab_loads_no_library_that_takes_long() -> None:
    """To load pandas and scipy takes a second: a person waits for a Tab."""
    code = (
        "import sys; from mountlab.__main__ import main; from mountlab.cli import arguments, parser; parser()\n"
        "kinds = [kind for kind in vars(arguments).values() if isinstance(kind, arguments.ArgumentKind)]\n"
        "print(*(list(kind(prefix='')) and '' for kind in kinds), *{name.split('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) & HEAVY == set()
    assert "mountlab" in done.stdout.split()


# --- in shells --------------------------------------------------------------------------------------------------------

LINES = {
    "mountlab pl": {"plan"},
    "mountlab box ": {"list", "check", "prepare", "claim", "clean", "helper"},
    "mountlab run ra": {"ramdisk"},
    "mountlab run --box=lo": {"--box=local"},
    "mountlab box check l": {"local"},
    "mountlab report la": {"latest"},
    "mountlab batch st": {"studies"},
    "mountlab export plain --figures ": {"svg", "png", "pdf"},
    "mountlab parse fs": {"fs_mark"},
    "mountlab plan ramdisk --": {"--help", "--box", "--json", "--pilot"},
    "mountlab publish --title ": set[str](),
    "mountlab report ": {"latest", "interrupted", "plain", *HOSTILE, *run_names(SHIPPED / "results")},
}
"""What is typed to what is offered."""


@pytest.fixture(
    scope="module", params=[pytest.param(shell, marks=pytest.mark.requires_program(shell)) for shell in SHELLS]
)
def typed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """A shell that has evaluated what `mountlab completion` prints, in a directory with hostile results."""
    place = tmp_path_factory.mktemp(request.param)
    (place / "results").mkdir()
    for name in ("plain", *HOSTILE, "moves\x1b[2Jthe cursor", "two\nlines", "vertical\x0btab"):
        put_run(place / "results", name)
    with terminal(request.param, place, MOUNTLAB_RESULTS=str(place / "results")) as shell:
        yield shell


@pytest.mark.slow
@pytest.mark.requires_program("setsid")
def test_a_shell_offers_what_fits(typed: Terminal) -> None:
    assert {line: typed.offers(line) for line in LINES} == LINES


@pytest.mark.slow
@pytest.mark.requires_program("setsid")
@pytest.mark.parametrize("quote", ["", "'", '"'])
def test_a_name_that_a_shell_would_run_is_quoted(typed: Terminal, quote: str) -> None:
    """Its first letter and a Tab make one word of it, which the shell gives to a program as it is."""
    for name in HOSTILE[:2] if quote else HOSTILE:
        line = typed.line_after_tab(f"mountlab report {quote}{name[0]}")
        assert typed.words_of(line) == ["mountlab", "report", name]
        if not quote:
            line = typed.line_after_tab(line.removesuffix(" "))
            assert typed.words_of(line) == ["mountlab", "report", name]
    assert "ran" not in os.listdir(typed.place)

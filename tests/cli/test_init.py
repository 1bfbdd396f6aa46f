"""`mountlab init DIR`: a workspace with Mountlab as a dependency at a fixed version."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
import yaml
from mountlab import cli
from mountlab.__main__ import main
from mountlab.core.places import SHIPPED
from mountlab.results.pinned import Pin, pin, runtime_environment, runtime_lock
from mountlab.results.workspace import installed_pin
from mountlab.sweep.new_sweep import new_sweep
from rows import every_row

ROOT = SHIPPED
MADE = {
    ".gitattributes", ".gitignore", "Makefile", "README.md", "environment.yml", "mountlab.lock", "requirements.lock",
    "params/boxes/example.yml", "params/boxes/local.yml", "params/sweeps/mine.yml", "results/.gitignore",
    *(f"notebooks/{path.name}" for path in (ROOT / "notebooks").glob("*.ipynb")),
}  # fmt: skip
WHEEL = b"not a wheel, but as good as one here"
SHA256 = hashlib.sha256(WHEEL).hexdigest()
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def content(place: Path) -> dict[str, bytes]:
    """Path below a directory to what is in the file."""
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace, made once."""
    place = tmp_path_factory.mktemp("workspace") / "study"
    assert main(["init", str(place)]) == 0
    return place


@pytest.fixture
def study(first: Path, tmp_path: Path) -> Path:
    """A workspace that a test may change."""
    return Path(shutil.copytree(first, tmp_path / "study"))


# --- the files --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_workspace_has_all_that_a_researcher_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "my study"]) == 0
    said = capsys.readouterr().out
    assert f"written: {len(MADE)} files of the workspace my study\n" in said
    assert "next:    cd 'my study' && make demo, or change params/sweeps/mine.yml; `git init` is yours to run" in said
    study = tmp_path / "my study"
    made = content(study)
    assert made.keys() == MADE
    assert made["params/sweeps/mine.yml"].decode() == new_sweep("mine")
    assert made["README.md"].startswith(b"# my study\n\n**Question.**")
    assert yaml.safe_load(made["environment.yml"])["name"] == "my-study"
    for name in ("params/boxes/local.yml", "notebooks/10_run_sweep.ipynb"):
        assert made[name] == (ROOT / name).read_bytes()


def test_a_second_call_replaces_nothing_and_names_what_it_keeps(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (study / "README.md").write_text("My question.\n")
    (study / "results/.gitignore").unlink()
    (study / "environment.yml").unlink()
    (study / "environment.yml").symlink_to("nowhere")
    before = content(study)
    monkeypatch.chdir(study)
    capsys.readouterr()
    assert main(["init", "."]) == 0
    said = capsys.readouterr().out
    kept = re.findall("^kept:    (.*), which was there$", said, re.MULTILINE)
    assert {*kept} == MADE - {"results/.gitignore"}
    assert "written: 1 files of the workspace .\n" in said
    assert "next:    make demo, or" in said
    after = content(study)
    assert b"!/.gitignore" in after.pop("results/.gitignore")
    assert after == before


def test_git_keeps_a_run_that_the_workspace_names_and_no_other(study: Path) -> None:
    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=study, capture_output=True, text=True, check=False)
        return done.stdout

    git("init")
    for path in ("results/run-1/run.json", "results/run-2/run.json", ".venv/bin/python"):
        (study / path).parent.mkdir(parents=True)
        (study / path).write_text("")
    assert set(git("ls-files", "--others", "--exclude-standard").splitlines()) == MADE
    ignored = study / "results/.gitignore"
    ignored.write_text(ignored.read_text().replace("# !/20261123T171828-ramdisk-local-1a35/", "") + "!/run-1/\n")
    assert set(git("ls-files", "--others", "--exclude-standard").splitlines()) == {*MADE, "results/run-1/run.json"}
    assert "notebooks/00_tour.ipynb: filter: nbstripout" in git("check-attr", "filter", "notebooks/00_tour.ipynb")


@every_row(
    ("directory", "words"),
    [
        (str(ROOT / "study"), ("cannot lie inside a clone of Mountlab", f"in the clone {ROOT}", "mountlab sweep new")),
        (str(ROOT), ("cannot lie inside a clone", "allowed: a directory outside it")),
        ("/dev/null", ("a workspace is a directory", "where:   /dev/null", "name another one")),
    ],
)
def test_a_directory_that_cannot_be_a_workspace_is_refused(
    directory: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", directory]) == 2
    said = capsys.readouterr().err
    assert [word for word in words if word not in said] == []
    assert not (ROOT / "study").exists()


def test_the_readme_names_commands_and_files_that_exist(study: Path) -> None:
    text = (study / "README.md").read_text()
    assert set(re.findall(r"\bmake ([a-z-]+)", text)) <= targets((study / "Makefile").read_text()).keys()
    verbs = {name.removesuffix("_") for group in cli.GROUPS.values() for name in group}
    assert set(re.findall(r"`mountlab ([a-z]+)", text)) <= verbs
    made_later = {"wheels/", "results/.gitignore"}
    named = set(re.findall(r"^\| `([^`]+)`", text, re.MULTILINE))
    assert all((study / name).exists() for name in named | made_later - {"wheels/"})


# --- the versions -----------------------------------------------------------------------------------------------------

HERE, WHEEL_URL = "file:///src/mountlab", "file:///src/mountlab-9.9-py3-none-any.whl"
HASHES = {"hashes": {"sha256": SHA256}}


@every_row(
    ("record", "archive", "commit", "line", "remarks"),
    [
        (None, None, None, "mountlab==9.9", ()),
        (
            {"url": "https://git.example/m.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
            None, None, f"mountlab @ git+https://git.example/m.git@{COMMIT}", (),
        ),
        (
            {"url": "https://git.example/m.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}, "subdirectory": "x"},
            None, None, f"mountlab @ git+https://git.example/m.git@{COMMIT}#subdirectory=x", (),
        ),
        ({"url": HERE, "vcs_info": {"vcs": "git", "commit_id": COMMIT}}, None, None, f"git+{HERE}@{COMMIT}", ()),
        ({"url": WHEEL_URL, "archive_info": HASHES}, WHEEL, None,
         f"./wheels/mountlab-9.9-py3-none-any.whl --hash=sha256:{SHA256}", ()),
        ({"url": WHEEL_URL, "archive_info": {}}, WHEEL, None,
         f"./wheels/mountlab-9.9-py3-none-any.whl --hash=sha256:{SHA256}", ()),
        ({"url": WHEEL_URL, "archive_info": {"hash": f"sha256={SHA256}"}}, None, None,
         f"mountlab @ {WHEEL_URL} --hash=sha256:{SHA256}", ("is not there any more",)),
        ({"url": WHEEL_URL, "archive_info": HASHES}, b"another", None,
         f"mountlab @ {WHEEL_URL} --hash=sha256:{SHA256}", ("has changed since",)),
        ({"url": "https://host.example/m.whl", "archive_info": HASHES}, None, None,
         f"mountlab @ https://host.example/m.whl --hash=sha256:{SHA256}", ()),
        ({"url": HERE, "dir_info": {}}, None, COMMIT, f"git+{HERE}@{COMMIT}", ("others do not have",)),
        ({"url": HERE, "dir_info": {"editable": True}}, None, f"{COMMIT}+changes", f"git+{HERE}@{COMMIT}",
         ("others do not have", "no line can fix its version", "differ from this commit")),
        ({"url": HERE, "dir_info": {}}, None, None, f"mountlab @ {HERE}", ("uv build --wheel", "no commit")),
    ],
)  # fmt: skip
def test_the_lock_names_the_version_as_it_was_installed(
    record: dict[str, object] | None, archive: bytes | None, commit: str | None, line: str, remarks: tuple[str, ...]
) -> None:
    made = pin("9.9", record, archive=archive, commit=commit)
    assert made.line == line
    assert len(made.remarks) == len(remarks)
    assert all(words in remark for words, remark in zip(remarks, made.remarks, strict=True))
    assert made.text().splitlines() == [*(f"# {remark}" for remark in made.remarks), line]
    assert made.files == ({"wheels/mountlab-9.9-py3-none-any.whl": WHEEL} if line.startswith("./") else {})


def installed(place: Path, record: dict[str, object] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install Mountlab 9.9 in a directory, as far as Python's records of it go."""
    place = place / "mountlab-9.9.dist-info"
    place.mkdir(parents=True)
    needs = "".join(f"Requires-Dist: {text}\n" for text in distribution("mountlab").requires or [])
    (place / "METADATA").write_text(f"Metadata-Version: 2.4\nName: mountlab\nVersion: 9.9\n{needs}")
    if record is not None:
        (place / "direct_url.json").write_text(json.dumps(record))
    monkeypatch.syspath_prepend(place.parent)


@pytest.mark.slow
def test_a_wheel_comes_along_so_that_others_can_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = tmp_path / "my wheels" / "mountlab-9.9-py3-none-any.whl"
    wheel.parent.mkdir()
    wheel.write_bytes(WHEEL)
    installed(tmp_path / "site", {"url": wheel.as_uri(), "archive_info": HASHES}, monkeypatch)
    assert main(["init", str(tmp_path / "study")]) == 0
    lock = (tmp_path / "study/mountlab.lock").read_text()
    assert lock == f"./wheels/mountlab-9.9-py3-none-any.whl --hash=sha256:{SHA256}\n"
    assert (tmp_path / "study/wheels/mountlab-9.9-py3-none-any.whl").read_bytes() == WHEEL
    assert (tmp_path / "study/requirements.lock").read_text().startswith("# The libraries of Mountlab 9.9, ")


def test_without_its_locks_a_workspace_takes_the_version_that_runs(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the page on workspaces says. All else stays."""
    before = content(study)
    for name in ("requirements.lock", "mountlab.lock"):
        (study / name).unlink()
    installed(study.parent / "site", None, monkeypatch)
    monkeypatch.chdir(study)
    assert main(["init", "."]) == 0
    after = content(study)
    assert {name for name in MADE if after[name] != before[name]} == {"requirements.lock", "mountlab.lock"}
    assert after["mountlab.lock"] == b"mountlab==9.9\n"


def test_what_is_in_a_clone_is_copied_as_the_page_says(study: Path) -> None:
    page = (ROOT / "docs/how-to/workspace.md").read_text()
    lines = re.findall(r"^cp .*$", page, re.MULTILINE)
    sources = [line.split()[-2] for line in lines]
    for path in (study.parent / "clone" / source for source in sources):
        (path if path.suffix == "" else path.parent).mkdir(parents=True)
        (path if path.suffix else path / "run.json").write_text("mine")
    subprocess.run(["sh", "-e", "-c", "\n".join(lines)], cwd=study.parent / "clone", check=True)
    assert [(study / path).exists() for path in sources] == [True, True]


def test_a_version_of_an_index_and_one_of_a_clone_are_read_from_the_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path / "index", None, monkeypatch)
    assert installed_pin() == Pin(line="mountlab==9.9")
    clone = tmp_path / "clone"
    (clone / "lib").mkdir(parents=True)
    (clone / "lib/a.py").write_text("")
    author = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
    for arguments in (["init", "--quiet"], ["add", "."], [*author, "commit", "--quiet", "-m", "one"]):
        subprocess.run(["git", *arguments], cwd=clone, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=clone, check=True, capture_output=True, text=True).stdout
    installed(tmp_path / "site", {"url": clone.as_uri(), "dir_info": {"editable": True}}, monkeypatch)
    assert installed_pin().line == f"git+{clone.as_uri()}@{head.strip()}"
    (clone / "lib/a.py").write_text("1\n")
    assert installed_pin().remarks[-1] == "Its files differ from this commit."


def test_the_lock_has_what_runs_with_its_hashes_and_nothing_that_only_tests(study: Path) -> None:
    text = (study / "requirements.lock").read_text()
    whole = (ROOT / "requirements.lock").read_text()
    entries = re.findall(r"^[A-Za-z].*\n(?:    .*\n)+", text, re.MULTILINE)
    assert all(entry in whole and "--hash=sha256:" in entry for entry in entries)
    names = {entry.partition("==")[0] for entry in entries}
    assert {"pandas", "numpy", "jupyterlab", "tornado", "duckdb", "nbstripout"} <= names
    assert not {"pytest", "ruff", "uv", "hatchling", "playwright", "rdflib", "mountlab"} & names


@pytest.mark.parametrize(("direct", "kept"), [({"a"}, "a b c"), ({"b"}, "b c"), ({"d"}, "d c"), (set[str](), "")])
def test_an_entry_stays_where_one_that_stays_needs_it(direct: set[str], kept: str) -> None:
    via = {
        "a": " mountlab (pyproject.toml)",
        "b": "\n    #   a\n    #   x",
        "c": "\n    #   b[more]\n    #   d",
        "d": " x",
    }
    lock = "# made\n" + "".join(f"{name}==1 \\\n    --hash=sha256:0\n    # via{needs}\n" for name, needs in via.items())
    assert {*re.findall(r"^([a-z]+)==", runtime_lock(lock, direct, "9"), re.MULTILINE)} == {*kept.split()}


def test_conda_has_what_runs_and_takes_mountlab_from_its_lock() -> None:
    shipped = (ROOT / "environment.yml").read_text()
    made = yaml.safe_load(runtime_environment(shipped, {"pandas", "detect-secrets"}, "study"))
    listed = yaml.safe_load(shipped)
    assert (made["name"], made["channels"]) == ("study", listed["channels"])
    assert made["dependencies"][-1] == {"pip": ["detect-secrets>=1.5", "-r mountlab.lock"]}
    assert {"pandas>=3.0", "pip"} < set(made["dependencies"][:-1]) < {str(entry) for entry in listed["dependencies"]}
    assert not [entry for entry in made["dependencies"] if str(entry).startswith(("pytest", "hatchling"))]


# --- make -------------------------------------------------------------------------------------------------------------

OF_THE_CLONE = {
    "studies", "bench", "bench-gate", "calibrate", "docs", "check", "test", "test-all", "fuzz", "soak", "audit", "lint",
    "style", "lock", "coverage", "dist", "needs", "upload", "test-install",
}  # fmt: skip
"""Targets for those who change Mountlab, or that need what only its clone has."""
OTHERWISE = {"help", "env"}
"""Targets of both with lines of their own."""


def targets(makefile: str) -> dict[str, tuple[str, list[str]]]:
    """Target to its line without the name (what it needs, its help) and its recipe."""
    found = re.findall(r"^([a-z-]+):(?!=)(.*)\n((?:\t.*\n)*)", makefile, re.MULTILINE)
    return {name: (line, recipe.replace("@lib/env.sh", "@$(MAKE) env").splitlines()) for name, line, recipe in found}


def test_its_targets_are_those_of_the_clone(study: Path) -> None:
    """Not a copy that drifts: the same words, and the same calls of Mountlab."""
    ours, theirs = (targets((place / "Makefile").read_text()) for place in (ROOT, study))
    assert theirs.keys() == {name for name in ours if name not in OF_THE_CLONE}
    assert {*OF_THE_CLONE} <= ours.keys()
    assert {name: theirs[name] for name in theirs.keys() - OTHERWISE} == {
        name: ours[name] for name in theirs.keys() - OTHERWISE
    }
    text = (ROOT / "lib/env.sh").read_text()
    keys = re.findall(r"\$LANGUAGE\.(\w+)", text)
    assert f"$(LANGUAGE).%,{' '.join(keys)})" in (study / "Makefile").read_text()


STAND_IN = """#!/bin/sh
# A Python that is new enough, makes an environment of itself, and notes how it is called.
echo "$*" >>calls
case "$*" in "-m venv --clear .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;; esac
"""


@pytest.mark.requires_program("make")
def test_make_builds_the_environment_once_from_both_locks(study: Path) -> None:
    python = study / "python"
    python.write_text(STAND_IN)
    python.chmod(0o755)
    subprocess.run(["git", "init", "--quiet"], cwd=study, check=True)

    def made(*arguments: str) -> list[str]:
        (study / "calls").write_text("")
        command = ["make", "PYTHON=./python", *arguments]
        done = subprocess.run(command, cwd=study, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return (study / "calls").read_text().splitlines()

    pip = "-m pip install --quiet --disable-pip-version-check --no-deps"
    kernel = "-m ipykernel install --sys-prefix --frozen_modules --name python3 --display-name "
    assert kernel in (ROOT / "lib/env.sh").read_text()
    build = [
        f"{pip} --require-hashes -r requirements.lock",
        f"{pip} --force-reinstall -r mountlab.lock",
        f"{kernel}Mountlab (.venv)",
    ]
    assert made("plan", "SWEEP=mine")[-5:] == ["-m venv --clear .venv", *build, "-m mountlab plan mine"]
    assert made("demo") == ["-m mountlab demo"]
    (study / "mountlab.lock").touch()
    assert made("env")[-3:] == build
    command = ["git", "config", "--local", "filter.nbstripout.clean"]
    stripping = subprocess.run(command, cwd=study, capture_output=True, text=True, check=True).stdout
    assert stripping.startswith(
        ".venv/bin/python -m nbstripout --keep-id --extra-keys 'metadata.language_info.codemirror"
    )


@pytest.mark.requires_program("make")
def test_make_says_which_python_it_needs(study: Path) -> None:
    look = "import sys; sys.version_info = (3, 10, 0); exec(sys.argv[1])"
    (study / "old").write_text(f"#!/bin/sh\nexec {sys.executable} -c '{look}' \"$2\"\n")
    (study / "old").chmod(0o755)
    done = subprocess.run(["make", "env", "PYTHON=./old"], cwd=study, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(
        "make env: Mountlab needs Python 3.11 or later, for example: make env PYTHON=python3.12"
    )
    assert not (study / ".venv").exists()

"""make: its help, what it calls, what it says when something is missing; and how `make env` builds and mends .venv."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import last_result
import pytest
from data_files import replaced
from installed_programs import program
from mountlab import cli
from mountlab_dev import evidence
from mountlab_dev.__main__ import parser
from rows import every_row

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = ("env", "demo", "test", "test-all", "check", "lab", "help", "plan", "run", "resume", "report", "index",
           "compare", "batch", "studies", "publish", "reproduce", "bench", "bench-gate", "fuzz", "soak",
           "lock", "needs", "lint", "coverage", "audit", "docs", "calibrate", "dist", "upload",
           "test-install")  # fmt: skip

pytestmark = pytest.mark.requires_program("make")


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


# --- targets ----------------------------------------------------------------------------------------------------------


def test_help_is_what_make_says_first() -> None:
    assert make().stdout == make("help").stdout


def test_help_lists_every_target() -> None:
    listed = re.findall(r"^  make ([a-z-]+) +\S", make("help").stdout, re.MULTILINE)
    assert set(TARGETS) <= set(listed)


def test_help_explains_exit_codes() -> None:
    assert "0 done, 1 some trial failed, 2 bad input, 3 box unreachable, 4 unsafe" in make("help").stdout


def test_no_target_is_a_file() -> None:
    """All targets are .PHONY: a file named `test` must not switch one off."""
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    phony = re.search(r"^\.PHONY: (.+)$", MAKEFILE.replace("\\\n", " "), re.MULTILINE)
    assert phony is not None
    assert targets == set(phony[1].split())


NOTES_ITS_ARGUMENTS = """#!/bin/sh
printf '%s\\0' "$@" >"$CALLED"
"""


@pytest.fixture(scope="module")
def cabin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Makefile alone, with an environment that is in order and a Python that only notes how it is called."""
    place = tmp_path_factory.mktemp("cabin")
    shutil.copy(ROOT / "Makefile", place)
    nothing = "#!/bin/sh\n"
    for name, text in (
        ("lib/env.sh", nothing), (".venv/bin/uv", nothing), (".venv/bin/python", NOTES_ITS_ARGUMENTS),
    ):  # fmt: skip
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
        (place / name).chmod(0o755)
    return place


SWEEP, RUN = "my sweeps/a.yml", "results/my run"


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["demo"], {}),
        (["plan", f"SWEEP={SWEEP}"], {"sweep": SWEEP, "box": None, "json": False}),
        (["plan", f"SWEEP={SWEEP}", "ARGS=--json"], {"sweep": SWEEP, "json": True}),
        (["run", f"SWEEP={SWEEP}", "BOX=db1", "ARGS=-p repeats=3"], {"box": "db1", "overrides": ["repeats=3"]}),
        (["resume", f"RUN={RUN}"], {"run": RUN}),
        (["report", f"RUN={RUN}"], {"run": RUN}),
        (["run", "SWEEP=tour"], {"sweep": "tour"}),
        (["report", "RUN=latest"], {"run": "latest"}),
        (["index"], {}),
        (["compare", f"A={RUN}", "B=results/y"], {"run_a": RUN, "run_b": "results/y"}),
        (["batch", f"BATCH={SWEEP}", "ARGS=--plan"], {"file": SWEEP, "plan": True, "scheduler": None}),
        (["batch", f"BATCH={SWEEP}", "SCHEDULER=tcp://h:1"], {"file": SWEEP, "plan": False, "scheduler": "tcp://h:1"}),
        (["studies"], {"file": "params/batches/studies.yml"}),
        (["publish", "RUNS=results/x results/y"], {"runs": ["results/x", "results/y"]}),
        (["reproduce", "BUNDLE=b.zip", "BOX=local"], {"bundle": "b.zip", "box": "local"}),
        (["lab"], {}),
        (["bench", "ARGS=--repeats 3"], {"repeats": 3}),
        (["bench-gate", "ARGS=--only logs --against HEAD~3"], {"only": ["logs"], "against": "HEAD~3"}),
        (["calibrate"], {"short": False}),
        (["docs", "ARGS=--unexecuted"], {"unexecuted": True}),
        (["needs"], {"all": True}),
        (["dist", "TAG=v0.1.0"], {"tag": "v0.1.0"}),
    ],
)
def test_the_library_understands_what_make_says_to_it(cabin: Path, arguments: list[str], meant: dict[str, Any]) -> None:
    said = cabin / "said"
    done = subprocess.run(
        ["make", *arguments],
        cwd=cabin,
        env=os.environ | {"CALLED": str(said)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    option, program, *words = said.read_text().split("\0")[:-1]
    assert option == "-m"
    parsed = vars({"mountlab": cli.parser, "mountlab_dev": parser}[program]().parse_args(words))
    shown = json.loads(json.dumps(parsed, default=str))
    assert {name: shown[name] for name in meant} == meant
    assert words[0] == {"studies": "batch", "dist": "tag"}.get(arguments[0], arguments[0])


@every_row(
    ("target", "said"),
    [
        ("plan", "make plan: SWEEP is missing, for example: make plan SWEEP=ramdisk"),
        ("run", "make run: SWEEP is missing, for example: make run SWEEP=ramdisk"),
        ("resume", "make resume: RUN is missing, for example: make resume RUN=latest"),
        ("report", "make report: RUN is missing, for example: make report RUN=latest"),
        (
            "publish",
            'make publish: RUNS is missing, for example: make publish RUNS="tour latest"',
        ),
        (
            "reproduce",
            "make reproduce: BUNDLE is missing, for example: make reproduce BUNDLE=results/bundle-<title>-<date>.zip",
        ),
        ("compare", "make compare: A is missing, for example: make compare A=tour B=latest"),
    ],
)
def test_missing_argument_is_named(target: str, said: str) -> None:
    done = make(target)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == said
    assert done.stdout == ""


# --- the environment --------------------------------------------------------------------------------------------------

PROGRAMS = ("sh", "awk", "cat", "chmod", "cksum", "cp", "dirname", "grep", "head", "mkdir", "mv", "rm", "tail")
"""All that lib/env.sh may use besides a Python (cp, chmod and mkdir are for the stand-in)."""

STAND_IN = """#!/bin/sh
# A Python that runs what asks for its version, and only notes what it is told to install.
case "$*" in
    -) exec {python} -c 'import sys; sys.version_info = {version}; {more}; exec(sys.stdin.read())' ;;
    "-m venv --clear "*) echo venv >>"$LOG"; rm -rf "$4"; mkdir -p "$4/bin"; cp "$0" "$4/bin/python" ;;
    "-c import sys; print(sys.base_prefix"*) echo "{name} {version}" ;;
    "-m pip install "*uv.lock) echo "pip installs uv" >>"$LOG"; cp "$UV" "${{0%/*}}/uv" ;;
    "-m pip install "*" --no-deps "*) echo "pip installs all" >>"$LOG" ;; # else one of Debian 12 refuses this lock
    "-c"*) echo "imports tried" >>"$LOG" ;;
    "-m ipykernel install --sys-prefix "*"--name python3 "*) echo "kernel named" >>"$LOG" ;;
    *) echo "unexpected: $*" >&2; exit 99 ;;
esac
"""
UV_STAND_IN = """#!/bin/sh
echo "uv $2" >>"$LOG"
[ "$2" != sync ] || case "$UV_DOES" in
    fail) exit 1 ;;
    "be killed") kill -KILL $PPID ;;
esac
"""
BUILD = ["pip installs uv", "uv sync", "uv install", "imports tried", "kernel named"]


class Machine:
    """A copy of what `make env` reads, on a machine whose PATH holds only what a test put there."""

    def __init__(self, place: Path) -> None:
        self.bin, self.log = place / "bin", place / "log"
        self.project = place / "project"
        (self.project / "lib").mkdir(parents=True)
        for name in ("lib/env.sh", "requirements.lock", "pyproject.toml"):
            shutil.copy(ROOT / name, self.project / name)
        self.bin.mkdir()
        for name in PROGRAMS:
            (self.bin / name).symlink_to(shutil.which(name) or pytest.fail(f"{name} is not on this machine"))
        self._script(place / "uv", UV_STAND_IN)
        self.environment = {"PATH": str(self.bin), "LOG": str(self.log), "UV": str(place / "uv"), "UV_DOES": ""}

    def _script(self, path: Path, text: str) -> Path:
        path.write_text(text)
        path.chmod(0o755)
        return path

    def program(self, name: str) -> None:
        self._script(self.bin / name, "#!/bin/sh\n")

    def python(self, name: str, version: tuple[int, int, int], *, lacks: str = "") -> Path:
        more = f'sys.modules["{lacks}"] = None' if lacks else "None"
        text = STAND_IN.format(python=sys.executable, version=version, more=more, name=name)
        return self._script(self.bin / name, text)

    def env(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        self.log.write_text("")
        command = [str(self.project / "lib" / "env.sh"), *arguments]
        variables = self.environment | environment
        return subprocess.run(command, env=variables, cwd="/", capture_output=True, text=True, check=False)

    @property
    def steps(self) -> list[str]:
        return self.log.read_text().splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def built(machine: Machine) -> Machine:
    """A machine on which `make env` is done."""
    machine.python("python3", (3, 12, 1))
    done = machine.env()
    assert done.returncode == 0, done.stderr
    assert machine.steps == ["venv", *BUILD]
    return machine


def test_a_kernel_of_papermill_does_not_warn_of_its_loopback(built: Machine) -> None:
    """Trap: "Kernel is running over TCP without encryption" stood on the terminal before every notebook."""
    settings = built.project / ".venv" / "etc" / "ipython" / "ipython_kernel_config.py"
    assert settings.read_text() == "c.IPKernelApp.log_level = 'ERROR'\n"


def test_first_python_that_will_do_is_taken(machine: Machine) -> None:
    (machine.bin / "python3.13").write_text("#!/bin/sh\necho 'python3.13: command not found' >&2\nexit 127\n")
    (machine.bin / "python3.13").chmod(0o755)
    machine.python("python3.12", (3, 12, 1), lacks="ensurepip")
    machine.python("python3.11", (3, 11, 2))
    machine.python("python3", (3, 12, 1))
    assert machine.env("find").stdout == "python3.11\n"


def test_user_chooses_the_python(machine: Machine) -> None:
    machine.python("python3.13", (3, 13, 0))
    mine = machine.python("my python", (3, 11, 0))
    assert machine.env("find", PYTHON=str(mine)).stdout == f"{mine}\n"


@pytest.mark.parametrize(
    ("manager", "advice"),
    [
        ("apt-get", "apt install python3 python3-venv   (Debian 12, Ubuntu 24.04 or later)"),
        ("dnf", "dnf install python3.12"),
        ("zypper", "zypper install python312"),
        ("pacman", "pacman -S python"),
        ("", "install Python 3.11 or later, with its venv module, by this machine's package manager"),
    ],
)
def test_too_old_a_python_is_named(machine: Machine, manager: str, advice: str) -> None:
    machine.python("python3", (3, 9, 2))
    if manager:
        machine.program(manager)
    done = machine.env()
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "make env: Python 3.11 or later is needed",
        "  found: python3 (3.9.2)",
        f"  next:  {advice}",
        "  or:    make env PYTHON=/path/to/python3.11",
    ]
    assert not (machine.project / ".venv").exists()


def test_no_python_at_all(machine: Machine) -> None:
    done = machine.env()
    assert done.returncode == 1
    assert "found: none of python3.13 python3.12 python3.11 python3.14 python3" in done.stderr


@pytest.mark.parametrize("module", ["venv", "ensurepip"])
def test_missing_venv_is_named(machine: Machine, module: str) -> None:
    machine.python("python3", (3, 11, 2), lacks=module)
    machine.program("apt-get")
    done = machine.env()
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "make env: python3 cannot make virtual environments: its venv or ensurepip module is missing",
        "  found: python3 (3.11.2)",
        "  next:  apt install python3.11-venv   (for the distribution's own Python: python3-venv)",
    ]


def test_wrong_choice_of_python_is_named(machine: Machine) -> None:
    machine.python("python3", (3, 12, 1))
    machine.python("python3.8", (3, 8, 1))
    done = machine.env(PYTHON="python3.8")
    assert done.returncode == 1
    assert "PYTHON=python3.8 is no Python 3.11 or later" in done.stderr
    assert "found: python3.8 (3.8.1)" in done.stderr


def test_uv_is_installed_by_its_hashes(built: Machine) -> None:
    lines = (built.project / ".venv" / "uv.lock").read_text().splitlines()
    assert lines[0].startswith("uv==")
    assert len(lines) > 1
    assert all(line.strip().startswith("--hash=sha256:") for line in lines[1:])


def test_nothing_is_done_twice(built: Machine) -> None:
    done = built.env()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert built.steps == []


def test_changed_lock_is_followed(built: Machine) -> None:
    with (built.project / "requirements.lock").open("a") as lock:
        lock.write("# another\n")
    assert built.env().returncode == 0
    assert built.steps == BUILD


@pytest.mark.slow
def test_interrupted_build_is_made_anew(built: Machine) -> None:
    with (built.project / "requirements.lock").open("a") as lock:
        lock.write("# another\n")
    assert built.env(UV_DOES="be killed").returncode == -9
    done = built.env()
    assert built.steps == ["venv", *BUILD]
    assert "make env: .venv was interrupted, moved, or made by another Python: rebuilding it" in done.stderr
    assert built.env().stderr == ""


@pytest.mark.slow
def test_moved_tree_is_made_anew(built: Machine) -> None:
    built.project = built.project.rename(built.project.with_name("moved"))
    assert built.env().returncode == 0
    assert built.steps == ["venv", *BUILD]


def test_vanished_python_is_replaced(built: Machine) -> None:
    (built.project / ".venv" / "bin" / "python").unlink()
    assert built.env().returncode == 0
    assert built.steps == ["venv", *BUILD]


def test_another_python_is_followed(built: Machine) -> None:
    built.python("python3.13", (3, 13, 0))
    assert built.env(PYTHON="python3").returncode == 0
    assert built.steps == []
    assert built.env(PYTHON="python3.13").returncode == 0
    assert built.steps == ["venv", *BUILD]


def test_pip_takes_over_where_uv_cannot(machine: Machine) -> None:
    machine.python("python3", (3, 12, 1))
    done = machine.env(UV_DOES="fail")
    assert done.returncode == 0
    assert "make env: uv could not; trying pip, which has settings of its own" in done.stderr
    assert machine.steps == ["venv", "pip installs uv", "uv sync", "pip installs all", *BUILD[2:]]


def test_unknown_argument_is_refused(machine: Machine) -> None:
    done = machine.env("mend")
    assert done.returncode == 1
    assert "unknown argument: mend" in done.stderr


# --- notebooks in git -------------------------------------------------------------------------------------------------

CELL: dict[str, Any] = {
    "id": "my-cell", "cell_type": "code", "source": ["1"], "execution_count": 3, "metadata": {"tags": ["parameters"]},
    "outputs": [{"output_type": "stream", "name": "stdout", "text": "from a run"}],
}  # fmt: skip
KERNEL = {"name": "python3", "display_name": "Mountlab (.venv)", "language": "python"}


@pytest.fixture
def checkout(built: Machine, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of git in which `make env` is done, with an environment that can strip."""
    (built.bin / "git").symlink_to(program("git"))
    monkeypatch.setenv("HOME", str(built.bin.parent))
    shutil.copy(ROOT / ".gitattributes", built.project)
    subprocess.run(["git", "init", "--quiet"], cwd=built.project, check=True)
    assert built.env().returncode == 0
    assert built.steps == [], "the environment itself was in order"
    (built.project / ".venv" / "bin" / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    return built.project


def git_of(checkout: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=checkout, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.slow
def test_outputs_are_taken_out_on_their_way_into_git(checkout: Path) -> None:
    language = {"name": "python", "version": "3.11.2", "mimetype": "text/x-python"}
    metadata = {"kernelspec": KERNEL, "language_info": language, "widgets": {"state": {}}}
    notebook = {"cells": [CELL], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    (checkout / "notebooks").mkdir()
    path = checkout / "notebooks" / "x.ipynb"
    path.write_text(json.dumps(notebook))
    git_of(checkout, "add", "notebooks")
    kept = json.loads(git_of(checkout, "show", ":notebooks/x.ipynb"))
    assert kept["cells"] == [{**CELL, "outputs": [], "execution_count": None}]
    assert kept["metadata"] == {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    assert json.loads(path.read_text()) == notebook, "the file on disk stays as it is"


@pytest.mark.slow
def test_a_filter_of_the_users_own_is_left_alone(built: Machine, checkout: Path) -> None:
    git_of(checkout, "config", "filter.nbstripout.clean", "mine")
    built.env()
    assert git_of(checkout, "config", "--get-all", "filter.nbstripout.clean") == "mine\n"


# --- CI ---------------------------------------------------------------------------------------------------------------


def test_scripts_can_be_executed() -> None:
    assert all(os.access(ROOT / script, os.X_OK) for script in (".ci/run", "lib/env.sh"))


def test_a_release_is_built_by_what_is_installed_and_uploaded_without_a_password() -> None:
    """Isolated, uv would fetch a build backend that no lock names, in the job whose packages are uploaded."""
    checked, built = make("-n", "dist", "TAG=v0.1.0").stdout.splitlines()[-2:]
    assert checked.endswith('mountlab_dev tag "$TAG"')
    assert {"--offline", "--no-build-isolation", "--clear"} <= set(built.split())
    (uploaded,) = make("-n", "upload").stdout.splitlines()[-1:]
    assert uploaded.endswith("uv publish --trusted-publishing always")


@every_row(("failing", "status"), [("no such target", 0), ("check test", 2), ("test-install", 2), ("needs", 2)])
def test_ci_runs_the_tests_that_the_readme_names_and_fails_with_any_of_them(
    failing: str, status: int, tmp_path: Path
) -> None:
    """Where the programs are missing that tests need, none is run."""
    for name, text in {
        ".ci/run": (ROOT / ".ci" / "run").read_text(),
        "lib/env.sh": "#!/bin/sh\n",
        "bin/make": f'#!/bin/sh\necho "made $*"\n[ "$*" != "{failing}" ] || exit 2\n',
    }.items():
        path = tmp_path / failing / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
        path.chmod(0o755)
    path = f"{tmp_path / failing / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        [tmp_path / failing / ".ci" / "run"],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    tests = [] if failing == "needs" else ["made check test", "made test-install"]
    assert (done.returncode, done.stdout.splitlines()) == (status, ["made needs", *tests])


MARKS = ("alone", "long", "repository", "slow", "box", "browser")


def test_every_test_is_in_one_part_of_test_all_and_those_that_are_not_long_in_one_of_check_and_test() -> None:
    parts, alone, both = (
        re.findall(r'-m "([^"]+)"', make("-n", *goals).stdout) for goals in (["test-all"], ["test"], ["check", "test"])
    )
    assert (len(parts), len(alone), len(both)) == (3, 1, 1)
    for marked in product((False, True), repeat=len(MARKS)):
        marks = dict(zip(MARKS, marked, strict=True))
        if marks["alone"] > marks["long"] or (marks["repository"] and (marks["box"] or marks["browser"])):
            continue  # no test has these marks
        assert [bool(eval(part, dict(marks))) for part in parts].count(True) == 1, marks
        assert [bool(eval(part, dict(marks))) for part in both].count(True) == (not marks["long"]), marks
        assert bool(eval(alone[0], dict(marks))) is not (marks["long"] or marks["repository"]), marks


def test_a_commit_is_marked_where_more_than_the_page_of_results_was_changed(tmp_path: Path) -> None:
    """The parts before it have written to that page."""
    page, other = tmp_path / "docs" / "page.md", tmp_path / "other.py"
    page.parent.mkdir()
    assert last_result.commit(page) == "unknown"
    git = ("git", "-C", str(tmp_path), "-c", "user.name=t", "-c", "user.email=t@t")
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message=one"]):
        page.write_text("one")
        other.write_text("one")
        subprocess.run([*git, *words], check=True)
    page.write_text("two")
    clean = last_result.commit(page)
    assert re.fullmatch("[0-9a-f]{8}", clean)
    other.write_text("two")
    assert last_result.commit(page) == f"{clean}+"


def test_the_last_result_of_a_part_takes_the_place_of_the_one_before() -> None:
    table = [["part", "commit"], ["`one`", "old"], ["`two`", "old"]]
    assert replaced(table, [["`one`", "new"]]) == [["part", "commit"], ["`one`", "new"], ["`two`", "old"]]
    assert [row[0] for row in evidence.rows(last_result.DATA)] == ["part", "`together`", "`alone`"]

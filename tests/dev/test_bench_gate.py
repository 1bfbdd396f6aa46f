"""`make bench-gate`: its record, its verdicts, and a commit that does twice the work of the one before."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from mountlab.core.errors import CommandError, ParameterError
from mountlab.core.places import SHIPPED
from mountlab_dev.bench import cheap, gate, record
from mountlab_dev.bench.gate import Side, Subject, Turn
from mountlab_dev.bench.record import Recording
from rows import every_row

FIRST = Recording("a" * 12, "2026-11-26", "logs", "decoding them", 9.1, 8.9, 9.25, 7)
LATER = Recording("b" * 12, "2026-11-27", "logs", "decoding them", 12.0, 11.5, 12.5, 7)
OTHER = Recording("c" * 12, "2026-11-28", "plan", "import pandas", 2.0, 2.0, 2.0, 7)
HEADER = "commit,date,subject,in_times_of,ratio,low,high,n\n"

# --- the record -------------------------------------------------------------------------------------------------------


def test_rows_are_added_to_the_record_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "record.csv"
    record.append(path, [FIRST])
    record.append(path, [LATER, OTHER])
    assert record.read(path.read_text()) == [FIRST, LATER, OTHER]
    assert path.read_text().splitlines()[:2] == [
        HEADER.strip(),
        "aaaaaaaaaaaa,2026-11-26,logs,decoding them,9.1,8.9,9.25,7",
    ]


@every_row(
    ("text", "where"),
    [
        ("commit,ratio\n", "line 1"),
        (HEADER + "a,2026-11-26,logs,x,1,1,1\n", "line 2"),
        (HEADER + "a,2026-11-26,logs,x,1,1,1,7\na,2026-11-26,logs,x,one,1,1,7\n", "line 3"),
        (HEADER + "a,2026-11-26,logs,x,1,2,3,7\n", "line 2"),
        (HEADER + "a,2026-11-26,logs,x,nan,1,1,7\n", "line 2"),
        (HEADER + "<<<<<<< HEAD\n", "line 2"),
    ],
)
def test_a_damaged_record_is_refused_with_its_line(text: str, where: str) -> None:
    with pytest.raises(ParameterError, match="a line of the record is damaged") as error:
        record.read(text)
    assert error.value.where == f"docs/what-it-costs.csv, {where}"


def test_the_repositorys_record_is_read_and_names_subjects_that_there_are() -> None:
    rows = record.read((SHIPPED / record.FILE).read_text())
    assert {(row.subject, row.in_times_of) for row in rows} >= {
        (name, subject.in_times_of) for name, subject in gate.SUBJECTS.items()
    }


def test_the_last_commit_is_another_than_this_one() -> None:
    assert record.last_commit([FIRST, LATER], "f" * 40) == "b" * 12
    assert record.last_commit([FIRST, LATER], "b" * 40) == "a" * 12
    with pytest.raises(ParameterError, match="no earlier commit to compare with"):
        record.last_commit([FIRST], "a" * 40)


def test_the_least_is_of_the_same_subject_beside_the_same() -> None:
    assert record.least([LATER, FIRST, OTHER], "logs", "decoding them") == FIRST
    assert record.least([FIRST], "logs", "something else") is None


# --- verdicts ---------------------------------------------------------------------------------------------------------


def taken(ratios: Sequence[float]) -> list[Turn]:
    return [{"then": 2.0, "now": 2.0 * ratio, "beside": 0.5} for ratio in ratios]


SPREAD = (1.1, 1.2, 1.22, 1.3, 1.35, 1.4, 1.5)


@every_row(
    ("ratios", "verdict"),
    [
        ([2.0] * 7, "worse"),
        ([1.26] * 7, "worse"),
        ([1.25] * 7, "not worse"),
        ([1.0] * 7, "not worse"),
        ([0.2] * 7, "not worse"),
        (SPREAD, "inconclusive"),
        ([*SPREAD, *SPREAD, *SPREAD], "inconclusive"),
        ([1.0] * 6 + [1.3], "inconclusive"),  # seven turns: the interval reaches from the least to the largest
        ([1.0] * 12 + [9.0, 9.0], "not worse"),  # of fourteen, the third from either end
        ([2.0] * 12 + [1.0, 1.0], "worse"),
    ],
)
def test_a_verdict_needs_the_whole_interval(ratios: Sequence[float], verdict: str) -> None:
    assert gate.verdict(gate.ratio_of(taken(ratios))) == verdict


@every_row(
    ("verdicts", "code"),
    [
        (["not worse", "not worse"], 0),
        (["not worse", "worse", "inconclusive"], 1),
        (["not worse", "inconclusive"], 5),
        (["not worse", "not measured"], 5),
    ],
)
def test_exit_codes(verdicts: list[str], code: int) -> None:
    assert gate.exit_code(verdicts) == code


@every_row(
    ("ratios", "count"),
    [
        (itertools.repeat(1.0), 7),
        (itertools.repeat(2.0), 7),
        (itertools.cycle([1.0, 1.5]), 21),
        (itertools.chain([1.5], itertools.repeat(1.0)), 14),
    ],
)
def test_turns_are_taken_until_a_look_decides(ratios: Iterator[float], count: int) -> None:
    assert len(gate.decided(turn for ratio in ratios for turn in taken([ratio]))) == count


def test_commits_are_measured_in_turns_with_the_baseline_between_them() -> None:
    asked: list[str] = []

    def measure(tree: Path, action: str) -> float:
        asked.append(f"{tree}:{action}")
        return float(len(asked))

    sides = {name: Side(name, Path(name)) for name in ("then", "now")}
    found = list(itertools.islice(gate.turns(Subject("?", "own", "base", "?"), sides, measure), 2))
    assert asked[:2] == ["then:own", "now:own"], "not counted"
    assert asked[2:] == ["then:own", "now:base", "now:own", "now:own", "now:base", "then:own"]
    assert found == [{"then": 3, "beside": 4, "now": 5}, {"now": 6, "beside": 7, "then": 8}]


def test_every_subject_is_an_action_that_there_is() -> None:
    for subject in gate.SUBJECTS.values():
        assert {subject.action, subject.baseline} <= set(cheap.ACTIONS)


# --- two commits ------------------------------------------------------------------------------------------------------

SUBJECTS = {
    "counted": Subject("lines to read", "work.txt", "one", "one line"),
    "gone": Subject("lines of a file that is new", "new.txt", "one", "one line"),
}


def counts_lines(example: Path) -> gate.Measure:
    """Measures by counting, in place of a clock."""

    def measure(tree: Path, action: str) -> float:
        if action == "one":
            return 1.0
        if not (tree / "lib" / action).exists():
            raise CommandError(f"no {action}")
        return float(len((tree / "lib" / action).read_text().splitlines()))

    return measure


def git(root: Path, *words: str) -> str:
    own = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", "-C", str(root), *own, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(root: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "a commit")
    return git(root, "rev-parse", "HEAD")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository of two commits: the first is recorded, the second has twice as many lines."""
    git(tmp_path, "init", "--quiet")
    first = commit(tmp_path, {"lib/work.txt": "line\n" * 10})
    (tmp_path / "docs").mkdir()
    record.append(tmp_path / record.FILE, [Recording(first[:12], "2026-11-26", "counted", "one line", 10, 10, 10, 7)])
    commit(tmp_path, {"lib/work.txt": "line\n" * 20, "lib/new.txt": "line\n"})
    return tmp_path


def asked(root: Path, only: str = "counted", against: str = "") -> tuple[int, list[str]]:
    lines: list[str] = []
    code = gate.gate(root, against=against, only=[only], subjects=SUBJECTS, measured_by=counts_lines, say=lines.append)
    return code, lines


pytestmark = pytest.mark.requires_program("git")


def test_a_commit_that_does_twice_the_work_is_worse(root: Path) -> None:
    first, second = git(root, "rev-parse", "HEAD~"), git(root, "rev-parse", "HEAD")
    code, lines = asked(root)
    assert code == 1
    assert f"then {first[:12]}, now {second[:12]}" in lines[0]
    assert lines[2].split() == ["counted", "10.0", "s", "20.0", "s", "2.00", "2.00", "to", "2.00", "7", "worse"]
    assert lines[3] == (
        f"counted takes 20 times one line, and took 10 at {first[:12]} (2026-11-26): see the record, "
        "docs/what-it-costs.csv"
    )
    assert git(root, "worktree", "list").count("\n") == 0, "the repository is left as it was"
    assert git(root, "status", "--porcelain") == ""


def test_a_commit_that_does_half_the_work_is_not_worse(root: Path) -> None:
    commit(root, {"lib/work.txt": "line\n" * 5})
    assert asked(root)[0] == 0
    assert asked(root, against="HEAD~")[0] == 0
    assert asked(root, against="HEAD")[0] == 0


def test_what_an_old_commit_does_not_have_is_no_pass(root: Path) -> None:
    code, lines = asked(root, "gone")
    assert code == 5
    assert lines[2].split(maxsplit=1)[1] == f"cannot be measured at {git(root, 'rev-parse', 'HEAD~')[:12]}: no new.txt"


def test_what_is_not_committed_is_refused_not_ignored(root: Path) -> None:
    (root / "README.md").write_text("a page costs nothing")
    assert asked(root)[0] == 1
    (root / "lib" / "work.txt").write_text("line\n")
    with pytest.raises(ParameterError, match="uncommitted changes would not be measured") as error:
        asked(root)
    assert error.value.got == "M lib/work.txt"
    (row,) = gate.rows(root, counts_lines)
    assert row.why_not.endswith(": M lib/work.txt")


def test_an_unknown_commit_or_subject_is_refused(root: Path) -> None:
    with pytest.raises(ParameterError, match="this clone has no such commit"):
        asked(root, against="f" * 40)
    with pytest.raises(ParameterError, match="no such subject") as error:
        asked(root, "countd")
    assert error.value.next_step == "did you mean 'counted'?"


def test_a_commit_that_needs_other_libraries_is_refused(root: Path) -> None:
    project = '[project]\nname = "x"\ndependencies = ["numpy>=999", "pandas", "no-such-library-anywhere"]\n'
    commit(root, {"pyproject.toml": project})
    with pytest.raises(ParameterError, match="cannot run the library of a commit") as error:
        asked(root)
    assert error.value.got.startswith("numpy>=999 needed, ")
    assert error.value.got.endswith(", no-such-library-anywhere needed, none installed")


# --- the processes ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_process_measures_the_library_of_its_tree_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "example").mkdir()
    measure = gate.Processes(tmp_path / "example")
    (tmp_path / "now").mkdir()
    (tmp_path / "now" / "lib").symlink_to(SHIPPED / "lib")
    assert measure(tmp_path / "now", "pandas_alone") > 0
    (tmp_path / "then" / "lib").mkdir(parents=True)
    with pytest.raises(CommandError, match="another library would be measured"):
        measure(tmp_path / "then", "pandas_alone")


@pytest.mark.slow
def test_a_name_that_has_moved_says_so(tmp_path: Path) -> None:
    (tmp_path / "example").mkdir()
    (tmp_path / "then" / "lib" / "mountlab").mkdir(parents=True)
    (tmp_path / "then" / "lib" / "mountlab" / "__init__.py").touch()
    with pytest.raises(CommandError, match=r"ModuleNotFoundError: No module named 'mountlab.logs'"):
        gate.Processes(tmp_path / "example")(tmp_path / "then", "logs")

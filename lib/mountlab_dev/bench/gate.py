"""`make bench-gate`: whether this commit is slower than the last recorded one, subject by subject.

Both commits are checked out beside each other and measured in turns, then now, now then, each time in a new process:
what slows the machine for a while slows both. A figure is processor time, since the machine is shared; what only waits
is not seen. The interval is that of the median of the ratios, now / then, by order statistics (stats.estimates). After
each of LOOKS a subject is decided that can be; at LEVEL each, all looks together are wrong about it in at most 5 % of
cases (Bonferroni).
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from shutil import copytree
from statistics import median
from typing import NamedTuple

from mountlab.core.errors import CommandError, ParameterError, did_you_mean
from mountlab.core.units import format_seconds
from mountlab.stats.estimates import order_statistic
from packaging.requirements import Requirement

from mountlab_dev.bench import cheap, record
from mountlab_dev.bench.record import Recording
from mountlab_dev.bench.table import Row

LIMIT = 1.25
"""now / then: beyond it a subject is worse."""
LOOKS = (7, 14, 21)
"""Turns after which it is seen whether a subject is decided."""
LEVEL = 1 - 0.05 / len(LOOKS)
MEASURED = ("lib", "notebooks", "params", "results/tour", "tests/data/fio", "pyproject.toml", "requirements.lock")
"""What of a tree the subjects use."""
EXAMPLE = Path("results", "tour")


@dataclass(frozen=True)
class Subject:
    """What is measured, and beside what. Names of functions of cheap.py."""

    what: str
    action: str
    baseline: str
    in_times_of: str


SUBJECTS = {
    "logs": Subject(f"{cheap.LOGS} fio json+ logs to one tidy frame", "logs", "decoding", "decoding them"),
    "statistics": Subject(
        f"estimates and comparisons of {cheap.CELLS} cells", "statistics", "arithmetic", "sorting and summing up"
    ),
    "plan": Subject("mountlab plan of a small sweep", "plan", "pandas_alone", "import pandas"),
    "import": Subject("import of all public names", "importing", "pandas_alone", "import pandas"),
    "report": Subject("report of the example run", "report", "pandas_alone", "import pandas"),
}


@dataclass(frozen=True)
class Side:
    """One of the two commits, with its tree."""

    commit: str
    tree: Path

    @property
    def name(self) -> str:
        """The commit as the record has it."""
        return self.commit[:12]


Measure = Callable[[Path, str], float]
"""A tree and a name of cheap.ACTIONS to seconds. Raises CommandError where that cannot be measured."""
Turn = Mapping[str, float]
"""Seconds of `then`, `now` and `beside`, the baseline."""


# --- trees ------------------------------------------------------------------------------------------------------------


def full_id(root: Path, revision: str) -> str:
    """Return the id of a commit. Raises ParameterError where the clone does not have it."""
    said = _git(root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", check=False)
    if not said:
        raise ParameterError(
            "this clone has no such commit",
            where=str(root),
            got=revision,
            next_step="git fetch --unshallow, or name another with --against; after a rebase, record this commit",
        )
    return said.decode().strip()


def check_clean(root: Path) -> None:
    """Raise ParameterError where something that is measured is not committed: commits are measured, not the tree."""
    changed = _git(root, "status", "--porcelain", "--", *MEASURED).decode().splitlines()
    if changed:
        raise ParameterError(
            "uncommitted changes would not be measured, only the commit",
            where=str(root),
            got=", ".join(line.strip() for line in changed[:5]),
            next_step="commit them first, or put them aside: git stash",
        )


def check_out(root: Path, commit: str, place: Path) -> Path:
    """Return the tree of a commit below `place`, without touching the repository. Raises ParameterError where this
    environment lacks what the commit needs."""
    place.mkdir()
    # By tar: the tarfile of Debian 12 has no filter, and later ones warn without one.
    subprocess.run(["tar", "-x", "-C", str(place)], input=_git(root, "archive", commit), check=True)
    lacking = list(_lacking(place / "pyproject.toml"))
    if lacking:
        raise ParameterError(
            "this environment cannot run the library of a commit",
            where=f"pyproject.toml of {commit[:12]}",
            got=", ".join(lacking),
            next_step="record a newer commit, `make bench ARGS='--only ratios'`, or name one with --against",
        )
    return place


def _lacking(project: Path) -> Iterator[str]:
    """Yield requirements of a project that are not installed here, each with what is."""
    needed = tomllib.loads(project.read_text())["project"].get("dependencies", []) if project.exists() else []
    for requirement in map(Requirement, needed):
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            version = ""
        if not version or not requirement.specifier.contains(version, prereleases=True):
            yield f"{requirement} needed, {version or 'none'} installed"


def _git(root: Path, *words: str, check: bool = True) -> bytes:
    done = subprocess.run(["git", "--no-optional-locks", "-C", str(root), *words], capture_output=True, check=False)
    if check and done.returncode != 0:
        raise CommandError(f"git {words[0]} failed", where=str(root), evidence=done.stderr.decode())
    return done.stdout


# --- measuring --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Processes:
    """Measures by cheap.py of this commit, with the library of a tree. Every tree reports on a copy of one run."""

    example: Path

    def __call__(self, tree: Path, action: str) -> float:
        results = tree.with_name(f"{tree.name}-results")
        if not results.exists():
            copytree(self.example, results / "tour")
        own = {name: value for name, value in os.environ.items() if not name.startswith(("MOUNTLAB_", "PYTHON"))}
        done = subprocess.run(
            [sys.executable, "-P", cheap.__file__, action],
            env={**own, "PYTHONPATH": str(tree / "lib"), "MOUNTLAB_RESULTS": str(results)},
            cwd=results,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            raise CommandError(next((line for line in lines if line.startswith("error: ")), lines[-1]))
        library, seconds = done.stdout.splitlines()
        if not Path(library).is_relative_to(tree / "lib"):
            raise CommandError(f"another library would be measured: {library}")
        return float(seconds)


def turns(subject: Subject, sides: Mapping[str, Side], measure: Measure) -> Iterator[Turn]:
    """Yield turns without end, after one that is not counted: it compiles, and fills caches. Raises CommandError with
    the commit where one cannot be measured."""

    def measured(side: Side, action: str) -> float:
        try:
            return measure(side.tree, action)
        except CommandError as error:
            raise CommandError(f"cannot be measured at {side.name}: {error.what}") from error

    for side in sides.values():
        measured(side, subject.action)
    for number in itertools.count():
        order = [(name, side, subject.action) for name, side in sides.items()]
        if number % 2:
            order.reverse()
        order.insert(1, ("beside", sides["now"], subject.baseline))
        yield {name: measured(side, action) for name, side, action in order}


def in_times_of_baseline(taken: Sequence[Turn]) -> list[float]:
    """Return this commit in times of the baseline, by turn."""
    return [turn["now"] / turn["beside"] for turn in taken]


class Ratio(NamedTuple):
    """now / then: the median over turns with its interval."""

    median: float
    low: float
    high: float


def ratio_of(taken: Sequence[Turn]) -> Ratio:
    """Return the ratio of as many turns as LOOKS[0] or more: fewer have no interval at LEVEL."""
    ordered = sorted(turn["now"] / turn["then"] for turn in taken)
    rank = order_statistic(len(ordered), LEVEL)
    return Ratio(median(ordered), ordered[rank - 1], ordered[-rank])


def verdict(ratio: Ratio) -> str:
    """Return 'worse' or 'not worse' where the whole interval lies on one side of LIMIT, else 'inconclusive'."""
    if ratio.low > LIMIT:
        return "worse"
    return "not worse" if ratio.high <= LIMIT else "inconclusive"


def decided(endless: Iterator[Turn]) -> list[Turn]:
    """Return the turns up to the first of LOOKS after which the verdict is not 'inconclusive', else up to the last."""
    taken: list[Turn] = []
    for look in LOOKS:
        taken += itertools.islice(endless, look - len(taken))
        if verdict(ratio_of(taken)) != "inconclusive":
            break
    return taken


def exit_code(verdicts: Collection[str]) -> int:
    """Return 1 where any subject is worse, else 5 where any is inconclusive or could not be measured, else 0."""
    if "worse" in verdicts:
        return 1
    return 0 if set(verdicts) <= {"not worse"} else 5


# --- the gate, and the record -----------------------------------------------------------------------------------------


def gate(
    root: Path,
    *,
    against: str = "",
    only: Collection[str] = (),
    subjects: Mapping[str, Subject] = SUBJECTS,
    measured_by: Callable[[Path], Measure] = Processes,
    say: Callable[[str], None],
) -> int:
    """Compare the last commit of `root` with `against`, else with the last recorded one; return the exit code.

    `measured_by` makes, from the example run, what measures a tree. Raises ParameterError for an unknown subject or
    commit, and where changes are not committed.
    """
    unknown = next((name for name in only if name not in subjects), "")
    if unknown:
        allowed, near = ", ".join(subjects), did_you_mean(unknown, subjects)
        raise ParameterError("no such subject", where="bench-gate --only", got=unknown, allowed=allowed, next_step=near)
    check_clean(root)
    recordings, now = _recordings(root), full_id(root, "HEAD")
    then = full_id(root, against or record.last_commit(recordings, now))
    verdicts, crept = [], []
    with tempfile.TemporaryDirectory(prefix="mountlab-gate-") as place:
        sides = {
            name: Side(commit, check_out(root, commit, Path(place, name)))
            for name, commit in (("then", then), ("now", now))
        }
        measure = measured_by(sides["then"].tree / EXAMPLE)
        say(f"seconds of processor time, medians: then {sides['then'].name}, now {sides['now'].name}, in turns")
        say(f"{'':10} {'then':>8} {'now':>8} {'now/then':>9}  {f'{LEVEL:.1%} interval':16} {'turns':>5}")
        for name in only or subjects:
            try:
                taken = decided(turns(subjects[name], sides, measure))
            except CommandError as error:
                verdicts.append("not measured")
                say(f"{name:10} {error.what}")
                continue
            verdicts.append(verdict(ratio_of(taken)))
            say(f"{_line(name, taken)}  {verdicts[-1]}")
            crept += _creeping(name, subjects[name], taken, recordings)
    for line in crept:
        say(line)
    return exit_code(verdicts)


def _recordings(root: Path) -> list[Recording]:
    path = root / record.FILE
    return record.read(path.read_text()) if path.exists() else []


def _line(name: str, taken: Sequence[Turn]) -> str:
    then, now = (format_seconds(median(turn[side] for turn in taken)) for side in ("then", "now"))
    ratio = ratio_of(taken)
    interval = f"{ratio.low:.2f} to {ratio.high:.2f}"
    return f"{name:10} {then:>8} {now:>8} {ratio.median:9.2f}  {interval:16} {len(taken):5}"


def _creeping(name: str, subject: Subject, taken: Sequence[Turn], recordings: Sequence[Recording]) -> list[str]:
    """Say where a subject is worse than it ever was, in steps that are each below the limit."""
    least, ratio = record.least(recordings, name, subject.in_times_of), median(in_times_of_baseline(taken))
    if least is None or ratio <= LIMIT * least.ratio:
        return []
    before = f"{least.ratio:g} at {least.commit} ({least.date})"
    return [f"{name} takes {ratio:.3g} times {subject.in_times_of}, and took {before}: see the record, {record.FILE}"]


def rows(root: Path, measured_by: Callable[[Path], Measure] = Processes) -> Iterator[Row]:
    """Yield each subject of the last commit in times of its baseline, and at the end add them to the record."""
    try:
        check_clean(root)
    except ParameterError as error:
        yield Row("ratios of this commit, for the record", [], why_not=f"{error.what}: {error.got}")
        return
    commit, today, added = full_id(root, "HEAD"), f"{datetime.now(UTC):%Y-%m-%d}", []
    with tempfile.TemporaryDirectory(prefix="mountlab-record-") as place:
        sides = {"now": Side(commit, check_out(root, commit, Path(place, "now")))}
        measure = measured_by(sides["now"].tree / EXAMPLE)
        for name, subject in SUBJECTS.items():
            shown = f"{subject.what}, in times of {subject.in_times_of}"
            try:
                taken = list(itertools.islice(turns(subject, sides, measure), LOOKS[0]))
            except CommandError as error:
                yield Row(shown, [], why_not=error.what)
                continue
            row = Row(shown, in_times_of_baseline(taken), "times")
            own = (sides["now"].name, today, name, subject.in_times_of, row.median, *row.quartiles, len(taken))
            added.append(Recording(*own))
            yield row
    record.append(root / record.FILE, added)

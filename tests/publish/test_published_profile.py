"""A run whose programs were profiled is published with figures and without names, and is verified from the bundle."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest
from mountlab.core import disk
from mountlab.publish import reproduce
from mountlab.publish.publish import Wishes, publish
from mountlab.publish.seal_again import seal_again
from mountlab.report import execute
from mountlab.results import derived, store
from mountlab.results.programs import CALLS, FIO, KEPT, PROFILE, YAML
from mountlab.tracing.program import Profile
from publish.test_reproduce import run_of, signed
from results.test_store import written
from rows import every_row
from strace_text import Strace, without_names

pytestmark = pytest.mark.slow

SECRETS = ("payroll", "wages")
OPEN_FILES = """\
==> looks <==
3
==> pipes <==
0
==> directories <==
1 1 0 322 /srv/payroll/wages-2026
==> mountinfo <==
27 1 254:0 / / rw - ext4 /dev/vda rw
"""


def profiled(results: Path, calls: Path) -> Path:
    """A run with a diagnostic trial, in which a program wrote and synced files with names that tell something."""
    run = written(results)
    program = Strace()
    program.open("payroll/wages.db", 3)
    for number in range(8):
        program.move("write", 3, 4096, 4096 * number)
    program.sync(3)
    lines = (run / "trials.jsonl").read_text().splitlines()
    counted = next(trial for trial in map(json.loads, lines) if not trial["warmup"])
    trial = {**counted, "trial_id": "p0001", "warmup": True, "diagnostic": True}
    (run / "trials.jsonl").write_text("".join(f"{line}\n" for line in [*lines, json.dumps(trial)]))
    raw = shutil.copytree(run / "raw" / counted["trial_id"], run / "raw" / "p0001")
    without_names(program.text, calls)
    shutil.copy(calls / CALLS, raw / CALLS)
    (raw / "open_files.txt").write_text(OPEN_FILES)
    seal_again(run)
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return profiled(tmp_path_factory.mktemp("results"), tmp_path_factory.mktemp("calls"))


@pytest.fixture(scope="module")
def made(run: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execute, "write_report", lambda path: disk.replace_file(path / "report.html", b"<p>report"))
        return publish([run], Wishes(title="Profile", to=tmp_path_factory.mktemp("bundles") / "b"))


@pytest.fixture
def bundle(made: tuple[Path, Path], tmp_path: Path) -> Path:
    """A copy to spoil."""
    return shutil.copytree(made[0], tmp_path / "b")


def profile_of(run: Path) -> Profile:
    (program,) = store.load_run(run).programs
    assert program.profile is not None, program.reason
    return program.profile


def test_a_bundle_has_the_profile_in_the_place_of_the_calls(run: Path, bundle: Path) -> None:
    published = run_of(bundle)
    assert profile_of(published) == profile_of(run)
    assert (published / "raw" / "p0001" / PROFILE).exists()
    assert list(bundle.rglob(str(CALLS))) == []
    for name in (YAML, FIO, KEPT):
        assert (published / name).stat().st_size, name


def test_a_bundle_has_no_name_of_a_file_or_directory_of_the_program(made: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(made[1]) as packed:
        left = [(name, word) for name in packed.namelist() for word in SECRETS if word.encode() in packed.read(name)]
        assert left == []
        assert [name for name in packed.namelist() if any(word in name for word in SECRETS)] == []


def test_a_profile_is_verified_from_the_bundle(bundle: Path) -> None:
    found = reproduce.check(bundle)
    assert (found.damage, found.differences) == ((), ())


@every_row("name", [YAML, FIO, KEPT])
def test_figures_of_a_profile_that_were_changed_with_all_checksums_are_found(
    made: tuple[Path, Path], name: str, tmp_path: Path
) -> None:
    """Defect: the figures of a profile were held against checksums alone, which a forger computes."""
    forged = shutil.copytree(made[0], tmp_path / name)
    run = run_of(forged)
    seal = derived.read(run)
    assert seal is not None
    files = {file: (run / file).read_bytes() for file in seal.files if (run / file).exists()}
    changed = files[name].replace(b"4096", b"8192")
    assert changed != files[name]
    derived.write(run, seal.made_from, {**files, name: changed})
    found = reproduce.check(signed(forged))
    assert found.damage == ()
    assert [difference.table for difference in found.differences] == [name]


def test_a_profile_that_was_changed_where_it_is_read_from_is_found(bundle: Path) -> None:
    file = run_of(bundle) / "raw" / "p0001" / PROFILE
    file.write_bytes(file.read_bytes().replace(b"4096", b"8192"))
    found = reproduce.check(signed(bundle))
    assert "checksums" in {difference.table for difference in found.differences}

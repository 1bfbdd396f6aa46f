"""A run that was altered after it was written, through the commands that people type: none prints its figures as if
nothing had happened, derived files are made again from raw output, and there is a way to go on."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from copied_run import copied
from mountlab.__main__ import main
from mountlab.publish.seal_again import seal_again
from mountlab.report import execute
from mountlab.results import derived, paths, records, stamp, store, tables
from mountlab.results.info import read_info, read_verdicts
from mountlab.results.journal import read_as_it_is, read_journal
from mountlab.results.raw import read_trial
from mountlab.results.store import load_run
from mountlab.results.writer import RunWriter
from pyarrow import parquet
from results.test_store import written

Change = Callable[[Path], None]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with two finished runs of one sweep."""
    results = tmp_path_factory.mktemp("two")
    tables.derive(written(results))
    other = Path(shutil.copytree(results / "r1", results / "r2"))
    info = json.loads((other / "run.json").read_text())
    (other / "run.json").write_text(json.dumps({**info, "run_id": "r2"}))
    seal_again(other)
    tables.derive(other)
    old = 1_700_000_000
    for path in results.rglob("*"):
        os.utime(path, (old, old))
    return results


@pytest.fixture
def results(two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy whose first run is to be spoilt; pages are not what is tested here."""
    copy = tmp_path / "results"
    shutil.copytree(two / "r1", copy / "r1")
    copied(two / "r2", copy / "r2")
    monkeypatch.setattr(paths, "RESULTS", copy)
    monkeypatch.setattr(execute, "write_report", lambda run: run / "report.html")
    monkeypatch.setattr(execute, "write_comparison", lambda *_, **__: copy / "page.html")
    return copy


def lines(change: Callable[[list[str]], list[str]]) -> Change:
    def do(run: Path) -> None:
        journal = run / "trials.jsonl"
        journal.write_text("".join(change(journal.read_text().splitlines(keepends=True))))

    return do


def in_file(name: str, old: str, new: str) -> Change:
    def do(run: Path) -> None:
        text = (run / name).read_text()
        assert old in text
        (run / name).write_text(text.replace(old, new, 1))

    return do


JOURNAL: dict[str, tuple[Change, str]] = {
    "a status": (lines(lambda all_of: [*all_of[:4], all_of[4].replace('"ok"', '"failed"'), *all_of[5:]]), "t0005"),
    "a line is gone": (lines(lambda all_of: [*all_of[:4], *all_of[5:]]), "t0006"),
    "two are swapped": (lines(lambda all_of: [*all_of[:4], all_of[5], all_of[4], *all_of[6:]]), "t0006"),
    "the last is gone": (lines(lambda all_of: all_of[:-1]), "lines are missing after the last one: 1"),
    "a duration": (in_file("trials.jsonl", '"elapsed_s": 1.5', '"elapsed_s": 1.4'), "t0001"),
    "a parameter": (in_file("run.json", '"seed": 7', '"seed": 8'), "run.json"),
}
RAW: dict[str, tuple[Change, str]] = {
    "what a tool printed": (in_file("raw/t0007/stderr", " s, 3 GB/s", "1 s, 3 GB/s"), "t0007"),
    "evidence of a mount": (in_file("raw/m001-tmpfs/evidence.txt", "==> mountinfo <==", "==> mountinfo <==\n"), "m001"),
    "raw output is gone": (lambda run: shutil.rmtree(run / "raw" / "t0007"), "t0007 is missing"),
    "a file is added": (lambda run: (run / "raw" / "t0007" / "x").touch(), "t0007"),
}


def twice_as_fast(run: Path) -> None:
    """With the stamp that says what it was made from, which pyarrow keeps."""
    file = run / store.MEASUREMENTS
    table = parquet.read_table(file)
    at = table.schema.get_field_index("value")
    parquet.write_table(table.set_column(at, table.schema.field(at), pc.multiply(table["value"], 2.0)), file)


DERIVED: dict[str, tuple[Change, str]] = {
    "measurements.parquet": (twice_as_fast, store.MEASUREMENTS),
    "estimates.csv": (in_file("estimates.csv", ",3,", ",4,"), "estimates.csv"),
    "comparisons.csv": (in_file("comparisons.csv", "not usable", "slower"), "comparisons.csv"),
    "caveats.csv": (in_file("caveats.csv", "warning", "note"), "caveats.csv"),
    "derived.json": (in_file("derived.json", '"figures"', '"figure"'), "derived.json"),
}


def some(kinds: Iterable[str], *kept: str) -> list[Any]:
    """Names of changes; those that are not kept say the same again."""
    return [kind if kind in kept else pytest.param(kind, marks=pytest.mark.long) for kind in kinds]


COMMANDS = ("report", "reparse", "compare", "gate", "export", "fstab")
ALTERED = [
    # Each change and each command once or more; the others say the same again.
    case
    for place, what in enumerate((*JOURNAL, *RAW))
    for chosen in [COMMANDS[place % len(COMMANDS)]]
    for case in (
        pytest.param(what, [chosen], id=f"{what}-{chosen}"),
        pytest.param(
            what,
            [each for each in COMMANDS if each != chosen],
            id=f"{what}-all but {chosen}",
            marks=pytest.mark.long,
        ),
    )
]


@pytest.mark.slow
@pytest.mark.parametrize(("what", "commands"), ALTERED)
def test_what_was_measured_and_altered_is_refused_by_every_command_with_what_to_do(
    what: str, commands: Sequence[str], results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, other = results / "r1", results / "r2"
    change, named = {**JOURNAL, **RAW}[what]
    before = (run / "estimates.csv").read_bytes()
    change(run)
    for command in commands:
        more = {"compare": [str(other)], "gate": ["--against", str(other)], "fstab": ["ext4"]}.get(command, [])
        assert main([command, str(run), *more]) == 2, command
        printed = capsys.readouterr()
        assert printed.out == "", f"no figure by {command}"
        assert "was altered after it was written" in printed.err, command
        assert named in printed.err, command
        assert f"reparse {run} --accept-altered" in printed.err, command
        assert (run / "estimates.csv").read_bytes() == before, command


@pytest.mark.slow
@pytest.mark.parametrize("what", some(("a status", "the last is gone", "a parameter"), "a status"))
def test_the_catalog_and_the_index_say_it_and_have_no_figure_of_it(
    what: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, named = JOURNAL[what]
    change(results / "r1")
    assert main(["catalog", str(results)]) == 0
    (said,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("cannot be read: r1: ")]
    assert "was altered after it was written" in said
    assert named in said or named == "run.json"
    assert main(["query", "SELECT DISTINCT run FROM measurements", "--results", str(results), "--csv"]) == 0
    printed = capsys.readouterr()
    assert printed.out.split() == ["run", "r2"]
    assert "note: 1 run cannot be read; `mountlab catalog` says why" in printed.err
    assert main(["index", str(results)]) == 0
    page = re.sub(r"<[^>]+>", " ", (results / "index.html").read_text())
    assert page.count("was altered after it was written") == 1


@pytest.mark.slow
@pytest.mark.parametrize("what", some(RAW, "raw output is gone"))
def test_the_catalog_finds_raw_output_that_was_altered_where_it_is_asked_to(
    what: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its figures are those of the derived file, which are right; it reads raw output only to check."""
    change, named = RAW[what]
    change(results / "r1")
    assert main(["catalog", str(results), "--check", "2"]) == 1
    (said,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("WRONG: r1: ")]
    assert "raw output was altered after it was written" in said
    assert named in said


@pytest.mark.slow
@pytest.mark.parametrize("what", some(DERIVED, "comparisons.csv", "derived.json"))
def test_altered_derived_files_are_said_and_made_again_from_raw_output(
    what: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, (change, named) = results / "r1", DERIVED[what]
    names = ("estimates.csv", "comparisons.csv", "caveats.csv", "derived.json", store.MEASUREMENTS)
    whole = {name: (run / name).read_bytes() for name in names}
    main(["compare", str(results / "r2"), str(run)])
    right = capsys.readouterr()
    assert right.err == ""
    change(run)
    assert main(["compare", str(results / "r2"), str(run)]) == 0
    printed = capsys.readouterr()
    assert printed.out == right.out, "the figures of the raw output"
    assert printed.err.startswith(
        f"warning: altered after it was written: {run}/{named}. The figures are derived again"
    )
    assert printed.err.count("warning:") == 1
    assert main(["report", str(run)]) == 0
    assert f"altered after it was written: {run}/{named}" in capsys.readouterr().err
    assert {name: (run / name).read_bytes() for name in whole} == whole
    assert main(["report", str(run)]) == 0
    assert capsys.readouterr().err == "", "once they are written again"


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("what", [store.MEASUREMENTS, "comparisons.csv", "derived.json"])
def test_the_catalog_reads_raw_output_in_their_place_and_says_so_until_they_are_written_again(
    what: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def values() -> str:
        sql = "SELECT * EXCLUDE run FROM measurements WHERE run = 'r1' ORDER BY ALL"
        assert main(["query", sql, "--results", str(results), "--csv"]) == 0
        return capsys.readouterr().out

    run, (change, named), right = results / "r1", DERIVED[what], values()
    change(run)
    for _ in range(2):
        assert main(["catalog", str(results)]) == 0
        assert f"altered after it was written: r1: {named}; its figures are derived again" in capsys.readouterr().out
        assert values() == right
    assert main(["reparse", str(run)]) == 0
    capsys.readouterr()
    assert main(["catalog", str(results)]) == 0
    assert "altered" not in capsys.readouterr().out


@pytest.mark.slow
def test_an_altered_verdict_is_not_shown_in_the_index(results: Path) -> None:
    in_file("comparisons.csv", "not usable", "slower")(results / "r1")
    assert main(["index", str(results)]) == 0
    page = re.sub(r"<[^>]+>", " ", (results / "index.html").read_text())
    assert page.count("altered after it was written") == 1
    assert "altered" not in json.dumps(read_verdicts(results / "r2"))


@pytest.mark.long
@pytest.mark.slow
def test_a_kill_while_files_are_derived_is_no_alteration(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each file that is written, as a kill there would leave it."""
    (results / "r1" / "exclude.yml").write_text("exclude: {t0007: a test}\n")
    real = derived.replace_file
    for last in range(5):
        done: list[str] = []

        def write(path: Path, data: bytes, done: list[str] = done, last: int = last) -> None:
            if len(done) == last:
                raise KeyboardInterrupt
            done.append(path.name)
            real(path, data)

        monkeypatch.setattr(derived, "replace_file", write)
        with pytest.raises(KeyboardInterrupt):
            tables.derive(results / "r1")
        monkeypatch.setattr(derived, "replace_file", real)
        assert derived.altered(results / "r1") == []
        assert main(["compare", str(results / "r2"), str(results / "r1")]) == 0


# --- the way to go on -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "what",
    some(
        [kind for kind in (*JOURNAL, *RAW) if kind not in ("a duration", "raw output is gone")], "what a tool printed"
    ),
)
def test_an_altered_run_that_is_accepted_is_read_and_says_so(
    what: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, (change, named) = results / "r1", {**JOURNAL, **RAW}[what]
    change(run)
    journal = (run / "trials.jsonl").read_bytes()
    assert main(["reparse", str(run), "--accept-altered"]) == 0
    assert named in capsys.readouterr().out
    assert (run / "trials.jsonl").read_bytes() == journal, "nothing is repaired"
    (caveat,) = [each for each in load_run(run).caveats if each.code == "altered"]
    assert caveat.severity == "warning"
    assert named in caveat.message
    assert main(["compare", str(results / "r2"), str(run)]) == 0
    printed = capsys.readouterr()
    assert "altered" in (printed.out + printed.err).lower()
    assert main(["reparse", str(run), "--accept-altered"]) == 0
    assert "nothing was altered" in capsys.readouterr().out
    in_file("trials.jsonl", '"block": 1', '"block": 2')(run)
    assert main(["report", str(run)]) == 2, "a later alteration is found"


@pytest.mark.slow
def test_a_trial_whose_line_is_gone_is_measured_again_by_resume(results: Path) -> None:
    run = results / "r1"
    JOURNAL["a line is gone"][0](run)
    assert main(["reparse", str(run), "--accept-altered"]) == 0
    assert read_info(run).status == "interrupted"
    writer = RunWriter(run)
    assert not writer.has("t0005")
    gone = next(trial for trial in read_journal(results / "r2") if trial.trial_id == "t0005")
    files = {file.name: file.read_bytes() for file in (run / "raw" / "t0005").iterdir()}
    writer.record(gone, files)
    writer.finish("complete")
    assert len(load_run(run).trials) == len(load_run(results / "r2").trials)


@pytest.mark.slow
def test_bringing_the_files_back_heals_a_run(results: Path, two: Path) -> None:
    run = results / "r1"
    JOURNAL["a status"][0](run)
    assert main(["report", str(run)]) == 2
    shutil.copy(two / "r1" / "trials.jsonl", run / "trials.jsonl")
    assert main(["report", str(run)]) == 0


@pytest.mark.slow
def test_a_trial_with_altered_raw_output_may_be_left_out(results: Path) -> None:
    run = results / "r1"
    RAW["what a tool printed"][0](run)
    (run / "exclude.yml").write_text("exclude: {t0007: its raw output was altered}\n")
    assert main(["report", str(run)]) == 0
    assert load_run(run).trials.set_index("trial_id").loc["t0007", "status"] == "excluded"


@pytest.mark.slow
def test_resume_refuses_an_altered_run_before_it_connects(
    results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = results / "r1"
    in_file("run.json", '"status": "complete"', '"status": "interrupted"')(run)
    JOURNAL["a status"][0](run)
    monkeypatch.setattr("mountlab.runner.workflow.planned", lambda *_, **__: pytest.fail("it connects"))
    assert main(["resume", str(run)]) == 2
    assert "was altered after it was written" in capsys.readouterr().err


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The trials whose raw output was parsed, in order."""
    found: list[str] = []

    def read(directory: Path, *rest: Any) -> Any:
        found.append(directory.name)
        return read_trial(directory, *rest)

    monkeypatch.setattr(records, "read_trial", read)
    return found


def trials_of(run: Path) -> list[str]:
    return [trial.trial_id for trial in read_journal(run)]


@pytest.mark.slow
def test_raw_output_is_parsed_once_and_later_readers_take_the_records(results: Path, parsed: list[str]) -> None:
    run = results / "r1"
    later = load_run(run)
    tables.derive_outdated(run)
    tables.derive(run, None)
    assert not parsed
    again = load_run(run, as_it_is=True)
    assert parsed == trials_of(run), "as it is: from raw output"
    assert later.measurements.equals(again.measurements)
    assert later.measurements.dtypes.equals(again.measurements.dtypes)
    assert tables.comparison_frame(later).equals(tables.comparison_frame(again))
    assert later.all_records == again.all_records
    tables.derive(run)
    assert parsed == 2 * trials_of(run)


def with_another_record(run: Path) -> None:
    """As an earlier parser, or somebody who seals what was altered, would have written it."""
    made = dict.fromkeys(trials_of(run), "0" * 64)
    seal = derived.read(run)
    assert seal is not None
    files = {name: (run / name).read_bytes() for name in seal.files}
    derived.write(run, seal.made_from, files | {records.FILE: records.as_parquet(load_run(run).all_records, made)})


RECORDS_LOST: dict[str, Change] = {
    "altered": lambda run: (run / records.FILE).write_bytes((run / records.FILE).read_bytes()[:-1] + b"?"),
    "cut off": lambda run: os.truncate(run / records.FILE, 100),
    "no checksums of derived files": lambda run: (run / derived.FILE).unlink(),
    "other checksums": in_file(derived.FILE, '"figures"', '"figure"'),
    "no records": lambda run: (run / records.FILE).unlink(),
    "made from other files": with_another_record,
}


@pytest.mark.slow
@pytest.mark.parametrize("what", some(RECORDS_LOST, "altered", "made from other files"))
@pytest.mark.filterwarnings("ignore::mountlab.core.errors.MountlabWarning")
def test_records_that_are_not_those_of_the_run_as_it_is_are_not_taken(
    what: str, results: Path, parsed: list[str]
) -> None:
    run = results / "r1"
    RECORDS_LOST[what](run)
    parsed.clear()
    found = load_run(run)
    assert parsed == trials_of(run)
    assert found.measurements.equals(load_run(run, as_it_is=True).measurements)


@pytest.mark.slow
def test_a_trial_that_is_excluded_keeps_its_record_until_its_raw_output_is_altered(
    results: Path, parsed: list[str]
) -> None:
    run = results / "r1"
    (run / "exclude.yml").write_text("exclude: {t0007: noise}")
    assert "t0007" not in set(load_run(run).measurements["trial_id"])
    assert not parsed
    (run / "raw" / "t0007" / "stdout").write_text("altered")
    found = load_run(run)
    assert parsed == ["t0007"]
    assert found.exclusions.unread == ("t0007",)
    tables.write_derived(found)
    assert "t0007" not in records.read_kept(run, records.made_from(read_as_it_is(run)))


@pytest.mark.slow
def test_figures_of_other_parsers_are_made_again(
    results: Path, parsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = results / "r1"
    for module in (derived, records, stamp):
        monkeypatch.setattr(module, "FIGURES", stamp.FIGURES + 1)
    load_run(run)
    assert parsed == trials_of(run)
    tables.derive_outdated(run)
    assert parsed == 2 * trials_of(run)


@pytest.mark.slow
def test_tables_of_other_statistics_are_made_again_from_the_records(results: Path, parsed: list[str]) -> None:
    """A run of an earlier version: derived.json names no tables, and there is no latency_comparisons.csv."""
    run = results / "r1"
    said = json.loads((run / derived.FILE).read_text())
    old = {key: value for key, value in said.items() if key not in ("tables", "checksum")}
    old["files"].pop("latency_comparisons.csv")
    (run / derived.FILE).write_text(json.dumps({**old, "checksum": derived._checksum(old)}))
    (run / "latency_comparisons.csv").unlink()
    assert read_verdicts(run)
    tables.derive_outdated(run)
    assert (run / "latency_comparisons.csv").read_text().startswith("baseline,candidate,workload,tool")
    assert not parsed

"""The checksum chain: every change of a journal is noticed, and what Mountlab itself does is no alteration."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest
from mountlab.core import chain
from mountlab.core.chain import Anchor, follow
from mountlab.core.errors import AlteredError
from mountlab.results.journal import read_journal
from mountlab.results.store import load_run
from mountlab.results.writer import RunWriter
from results.test_store import brought_back, create, ok, the_plan, written

LINES = 6


@pytest.fixture
def run(results_dir: Path) -> Path:
    """Six trials of a run that was stopped."""
    writer = create(results_dir)
    for planned in the_plan().trials[:LINES]:
        writer.record(ok(planned), brought_back(planned))
    writer.finish("interrupted")
    return writer.path


def lines_of(run: Path) -> list[bytes]:
    return (run / "trials.jsonl").read_bytes().splitlines()


def anchor_of(run: Path) -> Anchor:
    return chain.anchor(json.loads((run / "run.json").read_text()))


def test_the_chain_is_what_the_documentation_says(run: Path) -> None:
    """By the formula in docs/safety.md, without the module that wrote it."""
    before = json.loads((run / "run.json").read_text())["chain"]
    for line in (run / "trials.jsonl").read_text().splitlines():
        said, _, rest = line.rpartition(', "chain": "')
        before = hashlib.sha256(f"{before}\n{said}".encode()).hexdigest()
        assert rest == f'{before}"}}'
        raw = run / "raw" / json.loads(line)["trial_id"]
        sums = "".join(
            f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(raw.iterdir())
        )
        assert json.loads(line)["raw"] == hashlib.sha256(sums.encode()).hexdigest()


def test_any_line_that_is_changed_removed_moved_added_or_given_twice_is_noticed(run: Path) -> None:
    whole, at = lines_of(run), anchor_of(run)
    assert follow(whole, at).broken == ()
    for place in range(LINES):
        removed = [*whole[:place], *whole[place + 1 :]]
        changed = [*whole[:place], whole[place].replace(b'"ok"', b'"failed"'), *whole[place + 1 :]]
        found = follow(removed, at)
        assert found.broken[:1] == ((place + 1,) if place < LINES - 1 else ())
        assert found.missing == 1
        assert follow(changed, at).broken == (place + 1,)
        assert follow([*whole[:place], whole[place], *whole[place:]], at).broken
    for one, other in combinations(range(LINES), 2):
        swapped = list(whole)
        swapped[one], swapped[other] = whole[other], whole[one]
        assert follow(swapped, at).broken[0] == one + 1


def test_any_byte_of_a_line_counts(run: Path) -> None:
    whole, at = lines_of(run), anchor_of(run)
    for place in range(len(whole[2])):
        byte = bytes([whole[2][place] ^ 1])
        changed = [*whole[:2], whole[2][:place] + byte + whole[2][place + 1 :], *whole[3:]]
        assert follow(changed, at).broken, place


def test_a_line_that_is_added_to_a_complete_run_is_noticed(results_dir: Path) -> None:
    path = written(results_dir)
    at, whole = anchor_of(path), lines_of(path)
    more, _ = chain.chained({"trial_id": "t9999"}, follow(whole, at).head)
    assert follow([*whole, more], at).broken == (len(whole) + 1,)


def test_a_run_goes_on_with_the_chain(run: Path) -> None:
    writer = RunWriter(run)
    for planned in the_plan().trials[LINES:]:
        writer.record(ok(planned), brought_back(planned))
    assert len(read_journal(run)) == len(the_plan().trials)
    writer.finish("complete")
    assert follow(lines_of(run), anchor_of(run)).broken == ()


def test_a_torn_last_line_is_no_alteration_while_a_run_is_measured(results_dir: Path) -> None:
    writer = create(results_dir)
    for planned in the_plan().trials[:2]:
        writer.record(ok(planned), brought_back(planned))
    journal = writer.path / "trials.jsonl"
    whole = journal.read_bytes()
    for size in range(len(whole) - 40, len(whole)):
        journal.write_bytes(whole[:size])
        assert [trial.trial_id for trial in read_journal(writer.path)] == ["t0001"]
    with pytest.warns(UserWarning, match="was torn"):
        again = RunWriter(writer.path)
    again.record(ok(the_plan().trials[1]), brought_back(the_plan().trials[1]))
    assert [trial.trial_id for trial in read_journal(writer.path)] == ["t0001", "t0002"]


@pytest.mark.slow
def test_a_journal_of_an_earlier_version_is_read_and_gone_on_with(run: Path) -> None:
    """Lines without checksums come first; once a line with one follows them, they are bound by it."""
    info = {
        key: value
        for key, value in json.loads((run / "run.json").read_text()).items()
        if key not in ("chain", "journal")
    }
    (run / "run.json").write_text(json.dumps(info))
    text = (run / "trials.jsonl").read_text()
    (run / "trials.jsonl").write_text(re.sub(r', "raw": "\w+", "chain": "\w+"', "", text))
    assert len(load_run(run).trials) == LINES
    assert load_run(run).not_checked["altered"].startswith("an earlier version")
    writer = RunWriter(run)
    writer.record(ok(the_plan().trials[LINES]), brought_back(the_plan().trials[LINES]))
    assert len(read_journal(run)) == LINES + 1
    journal = run / "trials.jsonl"
    journal.write_text(journal.read_text().replace('"ok"', '"skipped"', 1))
    with pytest.raises(AlteredError) as caught:
        read_journal(run)
    assert caught.value.where.endswith(f"trials.jsonl, line {LINES + 1}")


@pytest.mark.parametrize(
    "change",
    [
        lambda info: {**info, "seed": 8},
        lambda info: {**info, "parameters": {**info["parameters"], "baseline": "tmpfs"}},
        lambda info: {**info, "facts": {**info["facts"], "kernel": "9.9"}},
        lambda info: {**info, "run_id": "another"},
    ],
)
def test_what_a_run_began_with_cannot_be_changed(change: Callable[[dict[str, object]], object], run: Path) -> None:
    (run / "run.json").write_text(json.dumps(change(json.loads((run / "run.json").read_text()))))
    with pytest.raises(AlteredError, match=r"run\.json was altered after it was written") as caught:
        load_run(run)
    assert caught.value.where == str(run / "run.json")


def test_what_mountlab_writes_there_again_is_no_alteration(run: Path) -> None:
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**info, "status": "running", "finished_at": None, "stopped": {}}))
    assert len(read_journal(run)) == LINES

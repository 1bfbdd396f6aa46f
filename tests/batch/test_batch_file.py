"""Batch files: what they expand to, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from mountlab.batch.batch_file import Batch, Item, ItemOutcome, notebook_parameters, parse_batch, unfinished
from mountlab.batch.store import load_batch, sweep_path
from mountlab.core.errors import ParameterError, StoreError
from mountlab.results import paths
from rows import every_row


def batch(groups: dict[str, Any], **more: Any) -> Batch:
    return parse_batch({"title": "Some", "groups": groups, **more}, name="b", where="b.yml")


def outcome(item: str, **changes: Any) -> ItemOutcome:
    return ItemOutcome(
        **{"item": item, "state": "done", "ended_at": "2026-11-20T10:00:00+00:00", "elapsed_s": 5.0, **changes}
    )


def test_lists_are_factors() -> None:
    made = batch({"g": {"sweep": ["a", "b"], "box": ["x", "y"], "overrides": [{"repeats": 3}, {"repeats": 5}]}})
    assert [(i.sweep, i.box, i.overrides["repeats"]) for i in made.items] == [
        (sweep, box, repeats) for sweep in "ab" for box in "xy" for repeats in (3, 5)
    ]
    assert [i.id for i in made.items][:3] == ["01-a-x", "02-a-x", "03-a-y"]
    assert {i.notebook for i in made.items} == {"10_run_sweep"}


def test_one_value_needs_no_list_and_a_notebook_no_sweep() -> None:
    other = {"notebook": ["05_check_box.ipynb"], "box": "local", "parameters": {"pause": 1.0}, "optional": True}
    ours, check = batch(
        {"one": {"sweep": "params/sweeps/ramdisk.yml", "overrides": {"preset": "small"}}, "check": other}
    ).items
    assert (ours.id, ours.label) == ("01-ramdisk", "ramdisk, preset=small")
    assert (check.id, check.notebook, check.optional) == ("02-05_check_box-local", "05_check_box", True)
    assert check.label == "05_check_box on local, pause=1.0"


def test_names_of_items_are_plain_whatever_the_files_are_called() -> None:
    (item,) = batch({"g": {"sweep": "../x/<b>ä $(rm).yml"}}).items
    assert item.id == "01-_b_rm_"


@every_row(
    ("groups", "told"),
    [
        ({"g": {"sweeps": "a"}}, ["unknown key", "groups.g.sweeps", "did you mean 'sweep'?"]),
        ({"g": {"sweep": 3}}, ["wrong type", "groups.g.sweep", "3 (int)"]),
        ({"g": {"sweep": [True]}}, ["groups.g.sweep.0", "True (bool)", "in quotes"]),
        ({"g": {"sweep": "a", "optional": "yes"}}, ["groups.g.optional", "'yes' (str)", "true or false"]),
        ({"g": {"sweep": "a", "overrides": 3}}, ["groups.g.overrides", "3 (int)"]),
        ({"g": {"sweep": []}}, ["an empty list makes no item", "groups.g.sweep"]),
        ({"g": {}}, ["a key is missing", "groups.g.sweep"]),
        ({"g": {"notebook": "05", "overrides": {"a": 1}}}, ["overrides change a sweep", "groups.g.overrides"]),
        ({"g": {"sweep": "a", "parameters": {"box": "x"}}}, ["a key of its own", "groups.g.parameters.box"]),
        ({"g": {"sweep": "a"}, "h": {"sweep": "a"}}, ["the same item is there twice", "groups.g has it"]),
        ({"a b": {"sweep": "a"}}, ["a name may hold letters", "'a b'"]),
        ({}, ["groups", "one entry or more"]),
        ({"g": {"sweep": "a"}, "file": {"box": "local"}}, ["unknown key", "b.yml: box", "allowed: groups, title"]),
    ],
)
def test_what_is_wrong_is_said_with_its_place(groups: dict[str, Any], told: list[str]) -> None:
    changes = groups.pop("file", {})
    with pytest.raises(ParameterError) as raised:
        batch(groups, **changes)
    for text in ("where:   b.yml", *told):
        assert text in str(raised.value)


def test_a_notebook_gets_only_what_it_takes() -> None:
    item = Item(id="1", group="g", notebook="n", sweep="s", box="b", overrides={"repeats": 3}, parameters={"x": 1})
    takes = ["sweep_file", "box", "overrides", "x", "y"]
    given = notebook_parameters(item, takes=takes, sweep_file="/s.yml")
    assert given == {"sweep_file": "/s.yml", "box": "b", "overrides": {"repeats": 3}, "x": 1}
    with pytest.raises(ParameterError) as raised:
        notebook_parameters(item, takes=["sweep_file", "boxx"], sweep_file="/s.yml")
    assert "unknown parameter of this notebook" in str(raised.value)
    assert "groups.g, notebook n" in str(raised.value)
    assert "did you mean 'boxx'?" in str(raised.value)


def test_only_what_is_not_finished_is_left() -> None:
    made = batch({"g": {"sweep": list("abcde")}})
    names = [item.id for item in made.items]
    states = dict(zip(names, ("done", "failed", "left out", "stopped"), strict=False))
    left = unfinished(made, {name: outcome(name, state=state) for name, state in states.items()})
    assert [item.sweep for item in left] == ["b", "d", "e"]


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted((paths.PARAMS / "batches").glob("*.yml")), ids=lambda path: path.stem)
def test_every_batch_file_names_what_is_there(path: Any) -> None:
    from mountlab.batch.commands import check

    made = load_batch(path)
    check(made)
    assert all(sweep_path(item) for item in made.items)


def test_the_studies_are_all_there() -> None:
    made = load_batch(paths.PARAMS / "batches" / "studies.yml")
    recipes = {"database-log", "mail-spool", "build-server", "vm-images", "nfs-home", "database-in-a-year",
               "nearly-full", "backup-at-night", "latency-under-load", "databases", "source-tree", "redundancy",
               "encryption", "copy-on-write", "volumes", "layouts"}  # fmt: skip
    files = {sweep.stem for sweep in (paths.PARAMS / "sweeps").glob("*.yml")}
    studies = files - recipes - {"tour", "families", "flash", "nfs-clients", "why-sync", "how-much"}
    assert {item.sweep for item in made.items} == studies
    assert {item.sweep for item in made.items if item.optional} == {
        "d1-lazy-init",
        "d4-external-journal",
        "d6-inode-readahead",
        "d7-atime",
        "e-nvm",
    }


def test_a_file_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(StoreError) as raised:
        load_batch(paths.PARAMS / "batches" / "absent.yml")
    assert "name one of params/batches: studies" in str(raised.value)

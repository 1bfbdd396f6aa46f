"""`mountlab_dev mutate`: which places it breaks, how it draws them, and that a test which notices is named."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest
from mountlab_dev.mutate import Copy, Mutation, judge_all, places, probed, python_mutations, sample, shell_mutations

SOURCE = '''"""A docstring with 3 and a == b."""
from typing import TYPE_CHECKING, Literal
if TYPE_CHECKING:
    import re
Kind = Literal["a", "b"]


def half(values: list[int], text: str = f"{1 + 1}") -> int:
    """Not 2."""
    assert len(values) > 0
    if not values and text["key"] == "x":
        values.clear()
    elif len(values) > 3:
        values.sort()
    return values[0] + 1
'''


def changes(source: str = SOURCE) -> dict[str, list[str]]:
    """Kind to the changed lines."""
    found: dict[str, list[str]] = {}
    for each in python_mutations("lib/mountlab/core/x.py", source):
        found.setdefault(each.kind, []).append(each.becomes.strip())
    return found


def test_each_operator_finds_its_places_and_none_in_words_and_types() -> None:
    assert changes() == {
        "comparison turned": ["if not values and (text['key'] != 'x'):", "elif (len(values) <= 3):"],
        "arithmetic turned": ["return (values[0] - 1)"],
        "and/or turned": ["if (not values or text['key'] == 'x'):"],
        "`not` removed": ['if (values) and text["key"] == "x":'],
        "constant off by one": ["elif len(values) > (4):", "return values[(1)] + 1", "return values[0] + (2)"],
        "returns None": ["return None"],
        "call removed": ["pass", "pass"],
        "condition negated": ["if (not (not values and text['key'] == 'x')):", "elif (not len(values) > 3):"],
        "key changed": ["if not values and text['key_'] == \"x\":"],
    }
    for each in python_mutations("lib/mountlab/core/x.py", SOURCE):
        ast.parse(each.put(SOURCE) or "(")


def test_a_script_has_tests_to_turn_and_commands_to_leave_out() -> None:
    script = '# [ -f x ] && y\nif [ -f "$a" ] || b; then\n    umount "$a"\nfi\n'
    found = {(each.kind, each.becomes.strip()) for each in shell_mutations("lib/mountlab/box/x.sh", script)}
    assert found == {
        ("turned test", 'if [ ! -f "$a" ] || b; then'),
        ("turned test", 'if [ -f "$a" ] && b; then'),
        ("removed line", ":"),
    }


def test_a_draw_has_each_room_and_is_the_same_again() -> None:
    found = {room: [Mutation(f"{room}.py", n, "k", "", "") for n in range(9)] for room in ("a", "b", "c")}
    drawn = sample(found, 7, seed=1)
    assert drawn == sample(found, 7, seed=1) != sample(found, 7, seed=2)
    assert {each.path for each in drawn[:3]} == {"a.py", "b.py", "c.py"}
    assert len(set(drawn)) == 7


def test_lines_that_have_moved_are_found_and_those_that_are_gone_are_not() -> None:
    mutation = Mutation("x", 5, "k", "a\n", "b\n")
    assert mutation.put("a\n1\n2\n3\n4\na\n") == "a\n1\n2\n3\n4\nb\n"
    assert mutation.put("c\n") is None


def test_a_place_in_a_function_tells_that_it_is_reached() -> None:
    text, noticed = probed(SOURCE, {7: 3, 8: 13, 9: 15})
    assert noticed == {8, 9}, "a line of the module is reached by all"
    hits = [line for line in text.splitlines() if "hit" in line]
    assert hits == [f"    __import__('mountlab_probe').hit({number})" for number in (8, 9)]
    ast.parse(text)


@pytest.mark.long
@pytest.mark.requires_root
@pytest.mark.requires_program("git", "unshare")
def test_the_test_that_notices_is_named(tmp_path: Path) -> None:
    """A tree of one room, one of whose two functions has a test; a test that fails in any case is not asked."""
    origin = tmp_path / "origin"
    files = {
        "pyproject.toml": '[tool.pytest.ini_options]\nmarkers = ["box", "browser", "long", "slow"]\n',
        "lib/mountlab/__init__.py": "",
        "lib/mountlab_dev/__init__.py": "",
        "lib/mountlab/core/__init__.py": "",
        "lib/mountlab/core/x.py": "def seen(a):\n    return a + 1\n\n\ndef unseen(a):\n    return a - 1\n",
        "tests/core/test_x.py": "from mountlab.core.x import seen\n\n\ndef test_fails():\n    assert 0\n\n\n"
        "def test_sees():\n    assert seen(1) == 2\n",
    }
    for name, text in files.items():
        (origin / name).parent.mkdir(parents=True, exist_ok=True)
        (origin / name).write_text(text)
    user = ("-c", "user.name=x", "-c", "user.email=x@y")
    for words in (("init", "-q"), ("add", "."), (*user, "commit", "-qm", "x")):
        subprocess.run(["git", "-C", str(origin), *words], check=True)
    (tmp_path / "copy").mkdir()
    copy = Copy(tmp_path / "copy", workers=1, limit_s=120)
    copy.prepare(origin)
    sums = [each for each in places(copy.tree)["core"] if each.kind == "arithmetic turned"]
    copy.look(sums)
    assert [copy.reached[each] for each in sums] == [["tests/core/test_x.py"], []]
    said: list[Mutation] = []
    assert judge_all(sums, copy, said.append) == sums[1:]
    assert said[-1].test == "tests/core/test_x.py::test_sees"
    assert copy.fails_anyway == {"tests/core/test_x.py::test_fails"}
    assert (origin / "lib/mountlab/core/x.py").read_text() == files["lib/mountlab/core/x.py"]

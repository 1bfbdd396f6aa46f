"""`mountlab_dev mutate`: which places it breaks, how it draws them, and that a test which notices is named."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from mountlab_dev import mutate_probe
from mountlab_dev.mutate import (
    Copy,
    Mutation,
    judge_all,
    note,
    places,
    probed,
    python_mutations,
    read,
    sample,
    shell_mutations,
)

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
    text, outside = probed(SOURCE, {7: 3, 8: 13, 9: 15})
    assert outside == {7}
    hits = [line for line in text.splitlines() if "hit" in line]
    assert hits == [f"    __import__('mountlab_probe').hit({number})" for number in (7, 8, 9)], "7: by each function"
    assert ast.get_docstring(ast.parse(text).body[-1]) == "Not 2."  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "reached", "outside"),
    [
        ("0 tests/test_x.py", {"tests/test_x.py"}, False),
        ("0 ", set(), True),
        ("0 test_of_a_test.py", set(), True),
        ("0 a page.ipynb (call)", set(), True),
    ],
    ids=["a test", "collection", "a pytest of a test", "no name of a function"],
)
def test_who_reaches_a_place_is_a_file_of_tests_or_unknown(
    line: str, reached: set[str], outside: bool, tmp_path: Path
) -> None:
    (tmp_path / "tree" / "tests").mkdir(parents=True)
    (tmp_path / "tree" / "tests" / "test_x.py").touch()
    copy, mutation = Copy(tmp_path, 1, 9), Mutation("x", 1, "k", "a\n", "b\n")
    copy.note_reached([mutation], f"{line}\n")
    assert (copy.reached, mutation in copy.outside) == ({mutation: reached}, outside)


def test_what_a_process_of_a_test_reaches_is_reached_by_that_test_whatever_tests_it_runs_itself(tmp_path: Path) -> None:
    (tmp_path / "tree" / "lib").mkdir(parents=True)
    probe = Path(mutate_probe.__file__).read_text()
    (tmp_path / "tree" / "lib" / "mountlab_probe.py").write_text(probe)
    code = (
        "import os, mountlab_probe; os.environ['PYTEST_CURRENT_TEST'] = 'own test.py::b (call)'; mountlab_probe.hit(3)"
    )
    path = {"PYTHONPATH": str(tmp_path / "tree" / "lib")}
    for outer in ({"PYTEST_CURRENT_TEST": "tests/test_x.py::a (call)"}, {}):
        subprocess.run([sys.executable, "-c", code], env=path | outer, check=True)
    assert (tmp_path / "hits").read_text() == "3 tests/test_x.py\n3 own test.py\n"


def test_a_record_has_the_test_of_each_stage_and_gives_each_as_judged_last(tmp_path: Path) -> None:
    caught, missed = (Mutation("lib/mountlab/core/x.py", line, "k", "a\n", "b\n") for line in (1, 2))
    stages = {"fast": "", "live": "tests/x.py::test_y"}
    for each in (
        replace(caught, test="tests/wrong.py::test_z", stages={"fast": "tests/wrong.py::test_z"}),
        missed,
        replace(caught, test="tests/x.py::test_y", stages=stages),
    ):
        note(each, tmp_path / "record")
    again, not_caught = read(tmp_path / "record").values()
    assert (not_caught, not_caught.test) == (missed, "")
    assert (again, again.test, again.stages, again.stage) == (caught, "tests/x.py::test_y", stages, "live")
    assert str(again).endswith("| live | tests/x.py::test_y |")


FILES = {
    "pyproject.toml": '[tool.pytest.ini_options]\nmarkers = ["box", "browser", "long", "slow"]\n',
    "lib/mountlab/__init__.py": "",
    "lib/mountlab_dev/__init__.py": "",
    "lib/mountlab/core/__init__.py": "",
    "lib/mountlab/core/x.py": """
def seen(a):
    return a + 1


def unseen(a):
    return a - 1


def boxed(a):
    return a * 3
""",
    "tests/core/test_x.py": """
from mountlab.core.x import seen


def test_fails():
    assert 0


def test_sees():
    assert seen(1) == 2
""",
    "tests/live/test_box.py": """
import os, stat, subprocess
from pathlib import Path
import pytest
from mountlab.core.x import boxed

pytestmark = pytest.mark.box


def test_can_change_only_what_goes_with_it(tmp_path):
    assert not [path for path in ("/", "/usr", "/dev", "/proc/sys/vm/swappiness") if os.access(path, os.W_OK)]
    for path in ("/etc/mutated", "/run/mutated", "/var/tmp/mutated", "/dev/shm/mutated"):
        Path(path).touch()
    disks = [path.name for path in Path("/dev").rglob("*") if stat.S_ISBLK(path.lstat().st_mode)]
    assert all(name.startswith(("loop", "zram")) for name in disks)
    (tmp_path / "image").write_bytes(bytes(2**20))
    subprocess.run(["losetup", "--find", str(tmp_path / "image")], check=True)


def test_sees_on_the_box():
    assert boxed(2) == 6
""",
}
STAGES = ("fast", "live")


def commit(origin: Path, *words: str) -> None:
    user = ("-c", "user.name=x", "-c", "user.email=x@y")
    for each in (words, ("add", "."), (*user, "commit", "-qm", "x")):
        subprocess.run(["git", "-C", str(origin), *each], check=True)


@pytest.mark.long
@pytest.mark.requires_root
@pytest.mark.requires_program("git")
@pytest.mark.requires_program("unshare")
@pytest.mark.requires_program("losetup")
def test_the_test_that_notices_is_named_stage_by_stage_and_again_when_tests_have_moved(tmp_path: Path) -> None:
    """A tree with one room and three functions: one has a test, one has a test on the box, one has none. A test that
    fails in any case is not asked. A loop device that a test leaves is detached."""
    origin = tmp_path / "origin"
    for name, text in FILES.items():
        (origin / name).parent.mkdir(parents=True, exist_ok=True)
        (origin / name).write_text(text)
    commit(origin, "init", "-q")
    copy = copy_of(origin, tmp_path / "copy")
    places_of = {each.becomes.strip(): each for each in places(copy.tree)["core"] if each.kind == "arithmetic turned"}
    seen, unseen, boxed = places_of.values()
    said = list(judge_all([seen, unseen, boxed], copy, STAGES, {}))
    assert said == [seen, unseen, boxed, unseen, boxed]
    found = {each: each.stages for each in said}
    sees, on_the_box = "tests/core/test_x.py::test_sees", "tests/live/test_box.py::test_sees_on_the_box"
    assert copy.reached == {unseen: set(), boxed: {"tests/live/test_box.py"}}
    assert found == {
        seen: {"fast": sees},
        boxed: {"fast": "", "live": on_the_box},
        unseen: {"fast": "", "live": ""},
    }
    assert copy.fails_anyway == {"tests/core/test_x.py::test_fails"}
    assert (origin / "lib/mountlab/core/x.py").read_text() == FILES["lib/mountlab/core/x.py"]
    assert copy.left
    assert all(each.endswith("/image") for each in copy.left)
    listed = subprocess.run(["losetup", "--list", "--output", "BACK-FILE"], capture_output=True, text=True, check=True)
    assert copy.word not in listed.stdout
    assert not Path("/etc/mutated").exists()

    commit(origin, "mv", "tests/live/test_box.py", "tests/core/test_y.py")
    caught, moved = [each for each in said if each.test], copy_of(origin, tmp_path / "moved")
    again = list(judge_all(caught, moved, STAGES, {}))
    assert [each.test for each in again if each.test] == [sees, "tests/core/test_y.py::test_sees_on_the_box"]
    assert not list(judge_all([seen, unseen, boxed], moved, STAGES, {each: each for each in said}))
    interrupted = {each: each for each in said[:4]}
    assert list(judge_all([seen, unseen, boxed], copy, STAGES, interrupted)) == [boxed]


def copy_of(origin: Path, place: Path) -> Copy:
    place.mkdir()
    copy = Copy(place, workers=1, limit_s=120)
    copy.prepare(origin)
    return copy

"""Mutations: break the product in a few places, one at a time, and see which test fails. A sample, drawn from a seed.

It works on a clone of the tree, with the rest of the machine read-only: a mutated product may remove what it should
keep. mutmut and cosmic-ray mutate all places or those of one path, no scripts of the shell, and draw no sample.
"""

from __future__ import annotations

import ast
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from mountlab.core.errors import CommandError, UnsafeError

ALL, FAST = "not (box or browser or long)", "not (box or browser or long or slow)"
SLOW = "slow and not (box or browser or long)"
ROOMS, SCRIPTS = Path("lib/mountlab"), "scripts"
_OF_OTHERS = ("MOUNTLAB_", "PYTEST_")
"""Variables that would lead the tests of the copy to places outside of it."""
_NOT_JUDGES = ("tests/live", "tests/browser", "tests/project/test_architecture.py")
"""Tests that need a box or a browser, and those that read the source: they see a mutation, and not what it does."""
_TURNED: dict[type[Any], type[Any]] = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
_SHELL = (
    ("turned test", r"\[ (?=[^!])", "[ ! "),
    ("turned test", r" && ", " || "),
    ("turned test", r" \|\| ", " && "),
    ("removed line", r"(?<=^)[ \t]*(?!(?:if|then|else|elif|fi|for|while|until|do|done|case|esac|return|local|in)\b)"
                     r"[a-z_]+(?: [^(){};\\|&]*)?$", ":"),
)  # fmt: skip
_CLOSED_OFF = """grep -o ' /[^ ]*mountlab[^ ]* ' /proc/self/mountinfo | xargs -r umount -l
mount --bind "$0" "$0" && mount -o remount,bind,ro / && exec "$@"
"""
"""In namespaces of its own: it holds no mounts of others, sees none of their processes, and may write one directory."""
_FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/\S+?\.py(?:::.+?)?)(?: - .*)?$", re.MULTILINE)
_FEW = 8
"""Files of tests that one process has run before two have started."""
PROBE = """
import contextlib, os
seen = set()
def hit(number):
    hit = f"{number} {os.environ.get('PYTEST_CURRENT_TEST', '').partition('::')[0]}"
    if hit not in seen:
        seen.add(hit)
        with contextlib.suppress(OSError), open(%r, "a") as file:
            print(hit, file=file)
"""
"""Writes down which file of tests reaches a place; '' while tests are collected."""


@dataclass(frozen=True)
class Mutation:
    """Lines of a file, and what stands there instead. `test` is the first that failed; '' where all passed."""

    path: str
    line: int
    kind: str
    was: str
    becomes: str
    test: str = ""

    @property
    def room(self) -> str:
        """The room whose tests are asked first."""
        return Path(self.path).relative_to(ROOMS).parts[0]

    def put(self, source: str) -> str | None:
        """Return the mutated source; None where it no longer has those lines; the nearest where it has them twice."""
        starts = [match.start() for match in re.finditer(re.escape(self.was), source)]
        if not starts:
            return None
        start = min(starts, key=lambda at: abs(source.count("\n", 0, at) + 1 - self.line))
        return source[:start] + self.becomes + source[start + len(self.was) :]

    def __str__(self) -> str:
        was, becomes = (" ".join(text.split())[:100] for text in (self.was, self.becomes))
        return f"| {self.path}:{self.line} | {self.kind} | `{was}` → `{becomes}` | {self.test or 'NOT CAUGHT'} |"


# --- places -----------------------------------------------------------------------------------------------------------


def python_mutations(path: str, source: str) -> Iterator[Mutation]:
    """Yield one for each place of a module that an operator fits."""
    lines = source.encode().splitlines(keepends=True)
    for node in _seen(ast.parse(source)):
        for kind, at, becomes in _edits(node):
            yield _of_lines(path, lines, kind, at, becomes)


def _seen(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that a test could see: no types, no assertions of types, no texts that are put together."""
    yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not _is_unseen(child):
                    yield from _seen(child)


def _is_unseen(node: ast.AST) -> bool:
    typed = isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("Literal", "Annotated")
    guarded = isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "__name__ == '__main__'")
    return typed or guarded or isinstance(node, ast.JoinedStr | ast.Assert)


def _edits(node: ast.AST) -> Iterator[tuple[str, ast.expr | ast.stmt, str]]:
    """Kind, what is replaced, by what."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in _TURNED:
            yield "comparison turned", node, _text(ast.Compare(node.left, [_turn(operator)], node.comparators))
        case ast.BinOp(op=operator) if type(operator) in _TURNED:
            yield "arithmetic turned", node, _text(ast.BinOp(node.left, _turn(operator), node.right))
        case ast.BoolOp(op=operator):
            yield "and/or turned", node, _text(ast.BoolOp(_turn(operator), node.values))
        case ast.UnaryOp(op=ast.Not()):
            yield "`not` removed", node, _text(node.operand)
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            yield "constant off by one", node, f"({number + 1})"
        case ast.Return(value=ast.expr()):
            yield "returns None", node, "return None"
        case ast.Expr(value=ast.Call()):
            yield "call removed", node, "pass"
        case ast.If() | ast.While() | ast.IfExp():
            yield "condition negated", node.test, _text(ast.UnaryOp(ast.Not(), node.test))
        case ast.Subscript(slice=ast.Constant(value=str(text)) as key):
            yield "key changed", key, repr(f"{text}_")
        case ast.Dict():
            texts = ((key, key.value) for key in node.keys if isinstance(key, ast.Constant))
            yield from (("key changed", key, repr(f"{text}_")) for key, text in texts if isinstance(text, str))


def _turn(operator: ast.AST) -> Any:
    return _TURNED[type(operator)]()


def _text(node: ast.AST) -> str:
    return f"({ast.unparse(node)})"


def _of_lines(path: str, lines: list[bytes], kind: str, at: ast.expr | ast.stmt, becomes: str) -> Mutation:
    first, last = at.lineno - 1, (at.end_lineno or at.lineno) - 1
    head, tail = lines[first][: at.col_offset], lines[last][at.end_col_offset :]
    was = b"".join(lines[first : last + 1])
    return Mutation(path, at.lineno, kind, was.decode(), head.decode() + becomes + tail.decode())


def shell_mutations(path: str, source: str) -> Iterator[Mutation]:
    """Yield one for each test of a script that can be turned, and each plain command that can be left out."""
    for number, line in enumerate(source.splitlines(keepends=True), 1):
        for kind, pattern, becomes in () if line.lstrip().startswith("#") else _SHELL:
            changed = re.sub(pattern, becomes, line, count=1, flags=re.MULTILINE)
            if changed != line:
                yield Mutation(path, number, kind, line, changed)


def places(tree: Path) -> dict[str, list[Mutation]]:
    """Room to all that can be mutated in it; the scripts of all rooms count as one more."""
    found: dict[str, list[Mutation]] = {SCRIPTS: []}
    for file in sorted((tree / ROOMS).glob("*/**/*")):
        name = file.relative_to(tree).as_posix()
        if file.suffix == ".py":
            found.setdefault(file.relative_to(tree / ROOMS).parts[0], []).extend(
                python_mutations(name, file.read_text())
            )
        elif file.suffix == ".sh":
            found[SCRIPTS].extend(shell_mutations(name, file.read_text()))
    return {room: mutations for room, mutations in found.items() if mutations}


def sample(found: dict[str, list[Mutation]], number: int, seed: int) -> list[Mutation]:
    """Return one of each room, the rest by the rooms' sizes; of each kind equally often, so that rare kinds are
    drawn."""
    drawn: dict[Mutation, None] = {}
    generator = random.Random(seed)  # noqa: S311  # nothing secret
    rooms = sorted(found)
    rest = generator.choices(rooms, weights=[len(found[room]) for room in rooms], k=max(0, number - len(rooms)))
    for room in (rooms + rest)[:number]:
        left = [each for each in found[room] if each not in drawn]
        kind = generator.choice(sorted({each.kind for each in left}))
        drawn[generator.choice([each for each in left if each.kind == kind])] = None
    return list(drawn)


def probed(source: str, lines: dict[int, int]) -> tuple[str, set[int]]:
    """Return a module that reports when a place is reached, and the places that it reports: those inside functions."""
    written, noticed = source.splitlines(keepends=True), set[int]()
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    inside = {node for function in functions for each in function.body for node in ast.walk(each)}
    starts = sorted((node.lineno, node.end_lineno or 0) for node in inside if isinstance(node, ast.stmt))
    probes: list[tuple[int, str]] = []
    for number, line in lines.items():
        around = [first for first, last in starts if first <= line <= last and _begins(written[first - 1])]
        if around:
            indent = re.match(r" *", written[around[-1] - 1])
            probes.append((around[-1] - 1, f"{indent and indent[0]}__import__('mountlab_probe').hit({number})\n"))
            noticed.add(number)
    for at, text in sorted(probes, reverse=True):
        written.insert(at, text)
    return "".join(written), noticed


def _begins(line: str) -> bool:
    return not re.match(r" *(elif|@)", line)


# --- judging ----------------------------------------------------------------------------------------------------------


@dataclass
class Copy:
    """A clone of a commit below `place`, and its tests, which import the library of the clone."""

    place: Path
    workers: int
    limit_s: int
    fails_anyway: set[str] = field(default_factory=set)
    reached: dict[Mutation, list[str]] = field(default_factory=dict)

    @property
    def tree(self) -> Path:
        """The clone."""
        return self.place / "tree"

    def prepare(self, origin: Path) -> None:
        """Clone HEAD of `origin`. Raises CommandError where its library would not be the one that is imported."""
        if os.geteuid() != 0:
            raise UnsafeError("a mutated product may remove what it should keep: this needs root, to close it off")
        subprocess.run(
            ["git", "-c", "advice.detachedHead=false", "clone", "--quiet", "--shared", str(origin), str(self.tree)],
            check=True,
        )
        (self.place / "tmp").mkdir()
        said = self._run(
            [sys.executable, "-c", "import mountlab, mountlab_dev; print(mountlab.__file__)"], self.limit_s
        )
        if not said.stdout.startswith(str(self.tree)):
            raise CommandError("the tests would import another library", evidence=said.stdout + said.stderr)

    def look(self, mutations: list[Mutation]) -> None:
        """Run the fast tests once, to see which files of them reach which mutation."""
        reached, noticed = self.place / "reached", set[int]()
        (self.tree / "lib" / "mountlab_probe.py").write_text(PROBE % str(reached))
        numbered = dict(enumerate(mutations))
        for path in {each.path for each in mutations if each.path.endswith(".py")}:
            file = self.tree / path
            lines = {number: each.line for number, each in numbered.items() if each.path == path}
            text, found = probed(file.read_text(), lines)
            file.write_text(text)
            noticed |= found
        self._pytest(["tests"], FAST, limit_s=None)
        subprocess.run(["git", "checkout", "--quiet", "."], cwd=self.tree, check=True)
        hits = [line.split(" ") for line in reached.read_text().splitlines()] if reached.exists() else []
        for number in noticed:
            files = {file for hit, file in hits if int(hit) == number}
            while_collected = {f"tests/{mutations[number].room}"} if "" in files else set()
            self.reached[mutations[number]] = sorted(files - {""} | while_collected)

    def judge(self, mutation: Mutation, *, slow: bool = False) -> Mutation:
        """With the first test that fails by it: of the files that reach it, else of its room and then of all."""
        path = self.tree / mutation.path
        source = path.read_text()
        mutated = mutation.put(source)
        if mutated is None:
            return replace(mutation, test="the place is gone")
        path.write_text(mutated)
        try:
            asked = (self._first_failure(*stage) for stage in self._stages(mutation, slow=slow))
            return replace(mutation, test=next(filter(None, asked), ""))
        finally:
            path.write_text(source)

    def leave_out(self, tests: set[str]) -> set[str]:
        """Return which of these tests fail without a mutation, too: they are asked no more."""
        functions = {name: name.partition("[")[0] for name in tests if ".py" in name}
        said = self._pytest(sorted(set(functions.values())), ALL, limit_s=None).stdout if functions else ""
        wrong = {name.partition("[")[0] for name in _FAILED.findall(said)}
        self.fails_anyway |= wrong
        return {name for name, function in functions.items() if function in wrong}

    def _stages(self, mutation: Mutation, *, slow: bool) -> Iterator[tuple[list[str], str]]:
        """Yield which tests to ask, one after the other: first the one that caught it before."""
        room = [f"tests/{mutation.room}"]
        if slow:
            yield room, SLOW
            return
        before = mutation.test.partition("::")[0]
        if before.endswith(".py") and (self.tree / before).exists():
            yield [before], ALL
        if mutation in self.reached:
            files = self.reached[mutation]
            yield from [(files, FAST)] if files else []
        else:
            yield room, FAST
            yield ["tests"], FAST

    def _first_failure(self, tests: list[str], marks: str) -> str:
        try:
            said = self._pytest(tests, marks, "-x", limit_s=self.limit_s)
        except subprocess.TimeoutExpired:
            return f"does not end within {self.limit_s} s"
        failed = _FAILED.search(said.stdout)
        return failed[1] if failed else "" if said.returncode in (0, 5) else f"pytest ends with {said.returncode}"

    def _pytest(
        self, tests: list[str], marks: str, *more: str, limit_s: int | None
    ) -> subprocess.CompletedProcess[str]:
        left_out = [f"--ignore={name}" for name in _NOT_JUDGES] + [f"--deselect={name}" for name in self.fails_anyway]
        few = len(tests) <= _FEW and all(".py" in name for name in tests)
        workers = [] if few else [f"-n{self.workers}", "--dist=loadgroup"]
        options = ["-q", "-rfE", "-p", "no:cacheprovider", *workers, *left_out, "-m", marks]
        return self._run([sys.executable, "-m", "pytest", *options, *more, *tests], limit_s)

    def _run(self, command: list[str], limit_s: int | None) -> subprocess.CompletedProcess[str]:
        closed = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "--propagation=slave"]
        own = {"PYTHONPATH": str(self.tree / "lib"), "TMPDIR": str(self.place / "tmp"), "PYTHONDONTWRITEBYTECODE": ""}
        return subprocess.run(
            [*closed, "sh", "-c", _CLOSED_OFF, str(self.place), *command],
            cwd=self.tree,
            env={name: value for name, value in os.environ.items() if not name.startswith(_OF_OTHERS)} | own,
            timeout=limit_s,
            capture_output=True,
            text=True,
            check=False,
        )


def read(record: Path) -> list[Mutation]:
    """Return the mutations of an earlier run that were caught. What was judged twice counts as it was judged last."""
    judged = [Mutation(**json.loads(line)) for line in record.read_text().splitlines()]
    last = {replace(each, test=""): each for each in judged}
    return [each for each in last.values() if each.test]


def judge_all(
    mutations: list[Mutation], copy: Copy, say: Callable[[Mutation], None], *, slow: bool = False
) -> list[Mutation]:
    """Say each as soon as it is judged, and again where its test fails without it, too; return those not caught."""
    missed: list[Mutation] = []
    left = mutations
    while left:
        judged: dict[Mutation, Mutation] = {}
        for each in left:
            judged[each] = copy.judge(each, slow=slow)
            say(judged[each])
        wrong = copy.leave_out({found.test for found in judged.values()})
        missed += [each for each, found in judged.items() if not found.test]
        left = [each for each, found in judged.items() if found.test in wrong]
    return missed


def note(judged: Mutation, record: Path) -> None:
    """Add a line to the record."""
    with record.open("a") as file:
        file.write(json.dumps(asdict(judged)) + "\n")

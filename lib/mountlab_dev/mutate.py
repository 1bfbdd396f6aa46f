"""Mutations: break the product in a few places, one at a time, and see which test fails. A sample, drawn from a seed.

It works on a clone of the tree, closed off from the rest of the machine (closed_off.sh): a mutated product may remove
what it should keep. mutmut and cosmic-ray mutate all places or those of one path, no scripts of the shell, and draw
no sample.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import random
import re
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from mountlab.core.errors import CommandError, UnsafeError

STAGES = {
    "fast": "not (box or browser or long or slow)",
    "slow": "slow and not (box or browser or long)",
    "live": "(box or browser) and not long",
}
"""Marks of the tests that are asked, stage by stage: only for mutations that no earlier stage has caught."""
ANY = "not long"
ROOMS, SCRIPTS = Path("lib/mountlab"), "scripts"
_OF_OTHERS = ("MOUNTLAB_", "PYTEST_")
"""Variables that would lead the tests of the copy to places outside of it."""
_NOT_JUDGES = ("tests/project/test_architecture.py",)
"""Tests that read the source: they see a mutation, and not what it does."""
GONE = "the place is gone"
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
_CLOSED_OFF = (
    *("unshare", "--mount", "--pid", "--ipc", "--fork", "--mount-proc", "--kill-child", "--propagation=slave"),
    *("sh", str(Path(__file__).with_name("closed_off.sh"))),
)
_PROBE = Path(__file__).with_name("mutate_probe.py")
_FAILED = re.compile(
    r"^(?:FAILED|ERROR) (tests/\S+?\.py(?:::.+?)?|nothing is left behind)(?:@\w+)?(?: - .*)?$", re.MULTILINE
)
"""Without the group that pytest-xdist adds to the name of a test."""
_FEW = 8
"""Files of tests that one process has run before two have started."""


@dataclass(frozen=True)
class Mutation:
    """Lines of a file, and what stands there instead.

    `test` is the first that failed; '' where all passed. `stages` has the same for each stage that was asked.
    """

    path: str
    line: int
    kind: str
    was: str
    becomes: str
    test: str = field(default="", compare=False)
    stages: dict[str, str] = field(default_factory=dict, compare=False)

    @property
    def room(self) -> str:
        """The room whose tests are asked first."""
        return Path(self.path).relative_to(ROOMS).parts[0]

    @property
    def stage(self) -> str:
        """The last stage that was asked: the one that caught it, where one did."""
        return next(reversed(self.stages), "")

    def is_settled(self, stage: str) -> bool:
        """Whether it is caught, or was judged by this stage already."""
        return bool(self.test) or stage in self.stages

    def start(self, source: str) -> int | None:
        """Return where its lines begin: the nearest place where the source has them twice, None where it has them no
        more."""
        starts = [match.start() for match in re.finditer(re.escape(self.was), source)]
        return min(starts, key=lambda at: abs(_line(source, at) - self.line), default=None)

    def put(self, source: str) -> str | None:
        """Return the mutated source; None where it no longer has those lines."""
        start = self.start(source)
        return None if start is None else source[:start] + self.becomes + source[start + len(self.was) :]

    def __str__(self) -> str:
        was, becomes = (" ".join(text.split())[:100] for text in (self.was, self.becomes))
        caught = f"{self.stage} | {self.test or 'NOT CAUGHT'}"
        return f"| {self.path}:{self.line} | {self.kind} | `{was}` → `{becomes}` | {caught} |"


def _line(source: str, at: int) -> int:
    return source.count("\n", 0, at) + 1


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
    """Return a module that reports when a place is reached, and the places outside of functions, for which each of its
    functions reports. `lines`: number of the place to its line."""
    written, outside = source.splitlines(keepends=True), set[int]()
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    entries = [_begin(each) for each in (_code(function) for function in functions) if each]
    inside = {node for function in functions for each in function.body for node in ast.walk(each)}
    statements = sorted((_begin(node), node.end_lineno or 0) for node in inside if isinstance(node, ast.stmt))
    probes: list[tuple[int, str]] = []
    for number, line in lines.items():
        around = [first for first, last in statements if first <= line <= last and _may_follow(written[first - 1])]
        if not around:
            outside.add(number)
        for first in around[-1:] or entries:
            indent = re.match(r" *", written[first - 1])
            probes.append((first - 1, f"{indent and indent[0]}__import__('mountlab_probe').hit({number})\n"))
    for at, text in sorted(probes, reverse=True):
        written.insert(at, text)
    return "".join(written), outside


def _code(function: ast.FunctionDef) -> ast.stmt | None:
    """Return the first statement behind the docstring."""
    body = function.body
    return next(
        (each for each in body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))), None
    )


def _begin(node: ast.stmt) -> int:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
    return min([node.lineno, *(each.lineno for each in decorators)])


def _may_follow(line: str) -> bool:
    return not line.lstrip().startswith("elif")


# --- judging ----------------------------------------------------------------------------------------------------------


@dataclass
class Copy:
    """A clone of a commit below `place`, and its tests, which import the library of the clone."""

    place: Path
    workers: int
    limit_s: int
    fails_anyway: set[str] = field(default_factory=set)
    reached: dict[Mutation, set[str]] = field(default_factory=dict)
    """Files of tests, of the stage that was looked at last."""
    outside: set[Mutation] = field(default_factory=set)
    """No function holds them, so more tests may reach them than those that were seen."""
    left: list[str] = field(default_factory=list)
    """Loop devices that tests have left, by their files. They are detached."""
    word: str = field(default_factory=lambda: secrets.token_hex(4))
    """In the path of all temporary files, as the kernel shows it when the namespace is gone."""
    took_s: float = 0.0

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
        self.place.chmod(0o755)  # tests as another user read below it
        for name, mode in (("changes", 0o700), ("var", 0o1777), (self.word, 0o1777)):
            (self.place / name).mkdir()
            (self.place / name).chmod(mode)
        shutil.copy(_PROBE, self.tree / "lib" / "mountlab_probe.py")
        said = self._run(
            [sys.executable, "-c", "import mountlab, mountlab_dev; print(mountlab.__file__)"], self.limit_s
        )
        if not said.stdout.startswith(str(self.tree)):
            raise CommandError("the tests would import another library", evidence=said.stdout + said.stderr)

    def look(self, mutations: list[Mutation], stage: str) -> None:
        """Run the tests of a stage once, to see which files of them reach which mutation, and which tests fail without
        one."""
        hits, of_scripts = self.place / "hits", self.place / "hits-of-scripts"
        for file in (hits, of_scripts):
            file.write_text("")
            file.chmod(0o666)  # the product runs as other users, too
        self.outside = set()
        for path in {each.path for each in mutations if (self.tree / each.path).exists()}:
            file = self.tree / path
            source = file.read_text()
            starts = {number: each.start(source) for number, each in enumerate(mutations) if each.path == path}
            lines = {number: _line(source, at) for number, at in starts.items() if at is not None}
            if path.endswith(".py"):
                text, outside = probed(source, lines)
            else:
                text = "".join(f"{{ echo {each} >>{of_scripts}; }} 2>/dev/null || :\n" for each in lines) + source
                outside = set(lines)
            file.write_text(text)
            self.outside |= {mutations[number] for number in outside}
        began = time.monotonic()
        said = self._pytest(["tests"], STAGES[stage], limit_s=None)
        self.took_s = time.monotonic() - began
        subprocess.run(["git", "checkout", "--quiet", "."], cwd=self.tree, check=True)
        self.note_reached(mutations, hits.read_text())
        self.leave_out(set(_FAILED.findall(said.stdout)))

    def note_reached(self, mutations: list[Mutation], hits: str) -> None:
        """Keep which files of tests reach which mutation, from lines of the probe: its number, and the file."""
        self.reached = {each: set() for each in mutations}
        for number, _, test in (line.partition(" ") for line in hits.splitlines()):
            mutation = mutations[int(number)]
            if (self.tree / test).is_file():
                self.reached[mutation].add(test)
            else:  # while tests are collected, or by a pytest within a test, whose files lie elsewhere
                self.outside.add(mutation)

    def judge(self, mutation: Mutation, stage: str) -> Mutation:
        """With the first test of a stage that fails by it."""
        path = self.tree / mutation.path
        source = path.read_text() if path.exists() else ""
        mutated = mutation.put(source)
        if mutated is None:
            return replace(mutation, test=GONE, stages={})
        path.write_text(mutated)
        try:
            asked = (self._first_failure(tests, stage) for tests in self._groups(mutation, stage))
            test = next(filter(None, asked), "")
        finally:
            path.write_text(source)
        earlier = list(STAGES)[: list(STAGES).index(stage)]
        stages = {each: mutation.stages[each] for each in earlier if each in mutation.stages}
        return replace(mutation, test=test, stages=stages | {stage: test})

    def leave_out(self, tests: set[str]) -> set[str]:
        """Return which of these tests fail without a mutation, too: they are asked no more."""
        functions = {name: name.partition("[")[0] for name in tests if ".py" in name}
        said = self._pytest(sorted(set(functions.values())), ANY, limit_s=None).stdout if functions else ""
        wrong = {name.partition("[")[0] for name in _FAILED.findall(said)}
        self.fails_anyway |= wrong
        return {name for name, function in functions.items() if function in wrong}

    def _groups(self, mutation: Mutation, stage: str) -> list[list[str]]:
        """Return the files of tests to ask, one list after the other: first the file that caught it before."""
        before = mutation.stages.get(stage, "").partition("::")[0]
        groups = [sorted(self.reached[mutation], key=lambda file: (file != before, file))]
        room = f"tests/{mutation.room}"
        if mutation in self.outside and (self.tree / room).exists():
            groups.append([room])
        if mutation in self.outside and stage == "fast":
            groups.append(["tests"])
        return [each for each in groups if each]

    def _first_failure(self, tests: list[str], stage: str) -> str:
        limit_s = self.limit_s + 2 * self.took_s
        try:
            said = self._pytest(tests, STAGES[stage], "-x", limit_s=limit_s)
        except subprocess.TimeoutExpired:
            return f"does not end within {limit_s:.0f} s"
        failed = _FAILED.search(said.stdout)
        return failed[1] if failed else "" if said.returncode in (0, 5) else f"pytest ends with {said.returncode}"

    def _pytest(
        self, tests: list[str], marks: str, *more: str, limit_s: float | None
    ) -> subprocess.CompletedProcess[str]:
        left_out = [f"--ignore={name}" for name in _NOT_JUDGES] + [f"--deselect={name}" for name in self.fails_anyway]
        few = len(tests) <= _FEW and all(".py" in name for name in tests)
        workers = self.workers * (2 if marks == STAGES["live"] else 1)  # tests on a box mostly wait
        spread = [] if few else [f"-n{workers}", "--dist=loadgroup"]
        options = ["-q", "-rfE", "-p", "no:cacheprovider", "-p", "mountlab_probe", *spread, *left_out, "-m", marks]
        return self._run([sys.executable, "-m", "pytest", *options, *more, *tests], limit_s)

    def _run(self, command: list[str], limit_s: float | None) -> subprocess.CompletedProcess[str]:
        own = {
            "PYTHONPATH": str(self.tree / "lib"),
            "TMPDIR": str(self.place / self.word),
            "PYTHONDONTWRITEBYTECODE": "",
        }
        try:
            return subprocess.run(
                [*_CLOSED_OFF, str(self.place), *command],
                cwd=self.tree,
                env={name: value for name, value in os.environ.items() if not name.startswith(_OF_OTHERS)} | own,
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # a signal to "our group" would reach us, although we are in another namespace
                timeout=limit_s,
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            self._detach()

    def _detach(self) -> None:
        """Detach the loop devices on files of these tests. Mounts and processes ended with their namespaces."""
        sessions = self.place / "sessions"
        names = {self.word, *(sessions.read_text().split() if sessions.exists() else ())}
        for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
            with contextlib.suppress(OSError):  # it was detached meanwhile
                file = backing.read_text().strip()
                if any(name in file for name in names):
                    device = f"/dev/{backing.parts[3]}"
                    self.left.append(f"{device} on {file}")
                    for argv in (
                        ("swapoff", device, *map(str, Path("/dev").glob(f"{device[5:]}p*"))),
                        ("partx", "--delete", device),
                        ("losetup", "--detach", device),
                    ):
                        subprocess.run(argv, capture_output=True, check=False)


def once() -> dict[str, str]:
    """Return what a machine has once, and a mutated product may have changed: other programs may have, too."""
    cgroups = Path("/sys/fs/cgroup").glob("**/mountlab-*")
    pages = Path("/proc/sys/vm/nr_hugepages")
    return {
        "huge pages": pages.read_text().strip() if pages.exists() else "",
        "zram devices": " ".join(sorted(path.name for path in Path("/sys/block").glob("zram*"))),
        "cgroups": " ".join(sorted(str(path) for path in cgroups)),
    }


def read(record: Path) -> dict[Mutation, Mutation]:
    """Return the mutations of earlier runs as they were judged last."""
    judged = [Mutation(**json.loads(line)) for line in record.read_text().splitlines()]
    return {each: each for each in judged}


def judge_all(
    mutations: list[Mutation], copy: Copy, stages: Sequence[str], judged: dict[Mutation, Mutation]
) -> Iterator[Mutation]:
    """Judge each, stage by stage, until a test has caught it that passes without it. `judged`: as an earlier run judged
    them, which no stage judges once more; and from now on as this one does."""
    for stage in stages:
        left = [each for each in mutations if each not in judged or not judged[each].is_settled(stage)]
        if left:
            copy.look(left, stage)
        for each in left:
            latest = judged.get(each, each)
            found = copy.judge(latest, stage)
            while found.test in copy.leave_out({found.test}):
                found = copy.judge(latest, stage)
            judged[each] = found
            yield found


def note(judged: Mutation, record: Path) -> None:
    """Add a line to the record."""
    with record.open("a") as file:
        file.write(json.dumps(asdict(judged)) + "\n")

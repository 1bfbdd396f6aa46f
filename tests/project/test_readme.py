"""Whatever the README tells people to type is run by a test or by CI."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from textwrap import dedent

from mountlab.cli import COMMANDS
from mountlab.results import paths
from mountlab.runner import demo
from rows import every_row

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
SHELL = {"sh", "console", "bash", "shell"}

COVERED_BY = [
    # command, as a regular expression; where it is run; a text in there that runs it
    (r"git clone \S+( \S+)?", ".ci/run", "fresh clone"),
    (r"cd \S+", ".ci/run", "cd "),
    (r"make test", ".ci/run", "make check test"),
    (r"make check", "Makefile", "check: env lint"),
    (r"make test-install", ".ci/run", "make test-install"),
    (r"make lab", "tests/project/test_makefile.py", '"lab"'),
    (r"make demo", "tests/live/test_demo.py", '"demo", "--yes"'),
    (r"make plan SWEEP=\S+( BOX=\S+)?", "tests/live/test_make.py", '"plan"'),
    (r"make run SWEEP=\S+( BOX=\S+)?( ARGS=.+)?", "tests/live/test_make.py", '"run"'),
    (r"make resume RUN=\S+", "tests/live/test_make.py", '"resume"'),
    (r"make report RUN=\S+", "tests/live/test_make.py", '"report"'),
    (r"make plan SWEEP=\S+( BOX=\S+)? ARGS=\"--pilot \S+\"", "tests/live/test_factors_live.py", '"--pilot"'),
    (r"make compare A=\S+ B=\S+", "tests/project/test_makefile.py", '"compare", f"A={RUN}"'),
    (r"make batch BATCH=\S+", "tests/project/test_makefile.py", '"batch", f"BATCH='),
    (r"make batch BATCH=\S+ SCHEDULER=\S+", "tests/project/test_makefile.py", '"SCHEDULER=tcp://'),
    (r"\.venv/bin/mountlab catalog", "tests/report/test_history.py", 'main(["catalog"'),
    (r"\.venv/bin/mountlab history", "tests/report/test_history.py", 'main(["history"'),
    (r"\.venv/bin/mountlab query \".+\"", "tests/results/test_catalog.py", 'main(["query"'),
    (r"make studies", "tests/project/test_makefile.py", '"studies"'),
    (r"make publish RUNS=.+", "tests/project/test_makefile.py", '"publish", "RUNS='),
    (r"\.venv/bin/mountlab reproduce BUNDLE", "tests/publish/test_reproduce.py", 'main(["reproduce"'),
    (r"(\.venv/bin/)?mountlab box (check|prepare|clean) \S+", "tests/live/test_box_verbs.py", '"prepare"'),
    (r"\.venv/bin/mountlab box list", "tests/cli/test_sweep_verbs.py", 'main(["box", "list"'),
    (r"\.venv/bin/mountlab sweep new \S+", "tests/cli/test_sweep_verbs.py", 'main(["sweep", "new"'),
    (
        r"\.venv/bin/mountlab sweep import-job \S+( --\w+ \S+)*",
        "tests/cli/test_sweep_verbs.py",
        'main(["sweep", "import-job"',
    ),
    (r"\.venv/bin/mountlab sweep check \S+", "tests/cli/test_sweep_verbs.py", 'main(["sweep", "check"'),
    (r"(\.venv/bin/)?mountlab fstab \S+ \S+", "tests/filesystems/test_fstab.py", '"fstab"'),
    (
        r"(\.venv/bin/)?mountlab (parse|import|export) .+",
        "tests/results/test_imported.py",
        "PAGE.read_text()",
    ),
    (
        r"(\.venv/bin/)?papermill notebooks/\S+ \S+ -f params/sweeps/\S+\.yml -p box \S+( -p \S+ \S+)*",
        "tests/live/test_papermill.py",
        '"papermill"',
    ),
]


def commands(markdown: str) -> list[str]:
    """What is typed in the shell blocks of a page: lines of `sh`, lines after `$ ` of `console`; '\\\\' joins lines."""
    found = []
    for _, language, block in re.findall(r"^( *)```(\w+)\n(.*?)^\1```", markdown, re.MULTILINE | re.DOTALL):
        if language in SHELL:
            lines = re.sub(r"\s*\\\n(>)?\s*", " ", dedent(block)).splitlines()
            typed = [line[2:] for line in lines if line.startswith("$ ")] if language == "console" else lines
            found += [re.sub(r"\s+#.*", "", line).strip() for line in typed if line.strip() and line[0] != "#"]
    return found


def in_file_or_folder(place: str, text: str) -> bool:
    path = ROOT / place
    files = path.rglob("*.py") if path.is_dir() else [path]
    return any(text in file.read_text() for file in files)


def test_every_command_is_run_somewhere() -> None:
    typed = commands(README.read_text())
    assert typed, "the README shows no command"
    unknown = [command for command in typed if not any(re.fullmatch(pattern, command) for pattern, *_ in COVERED_BY)]
    assert not unknown, "a command without a test: add the test, then its line to COVERED_BY"
    for pattern, place, text in COVERED_BY:
        if any(re.fullmatch(pattern, command) for command in typed):
            assert in_file_or_folder(place, text), f"{place} does not run {pattern}"


@every_row(
    ("markdown", "expected"),
    [
        ("```sh\nmake demo   # two minutes\n# a remark\n\nmake test\n```\n", ["make demo", "make test"]),
        ("```console\n$ make plan \\\n>     SWEEP=x.yml\n18 trials\n```\n", ["make plan SWEEP=x.yml"]),
        ("```sh\nmake run \\\n    SWEEP=x.yml\n```\n", ["make run SWEEP=x.yml"]),
        ("1. First:\n\n   ```sh\n   make lab\n   ```\n", ["make lab"]),
        ("```yaml\nhost: db1\n```\n\n`make lab`\n", []),
    ],
)
def test_commands_are_found(markdown: str, expected: list[str]) -> None:
    assert commands(markdown) == expected


def test_the_output_of_the_demo_is_whole() -> None:
    """As the terminal prints it: a row for each comparison of the small sweep, the caveats, the path of the report."""
    (shown,) = re.findall(r"^\$ make demo\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    sweep = paths.load_sweep(demo.SWEEP, {"preset": "small"}).sweep
    lines = shown.splitlines()
    assert lines[0] == sweep.question
    assert lines[2].split() == ["workload", "compared", "ratio", "95%", "interval", "n", "verdict"]
    end = lines.index("", 3)
    rows = [re.split(r"  +", line) for line in lines[3:end] if not line.startswith("(")]
    cells = {(cell.workload.label, cell.filesystem.name) for cell in sweep.cells}
    compared = {(label, f"{name} / {sweep.baseline}") for label, name in cells if name != sweep.baseline}
    assert {(row[0], row[1]) for row in rows} == compared
    assert len(rows) == len(compared)
    assert all(re.match(r"(error|warning|\d+ notes?): ", line) for line in lines[end + 1 : -2])
    assert re.fullmatch(r"report: results/\S+-ramdisk-local-[0-9a-f]{4}/report\.html", lines[-1])
    assert "…" not in shown


def texts(file: Path) -> list[str]:
    """The texts of a module that are no docstrings."""
    tree = ast.parse(file.read_text())
    parents = (node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef))
    docstrings = {id(node.body[0].value) for node in parents if node.body and isinstance(node.body[0], ast.Expr)}
    values = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docstrings)
    return [node.value for node in values if isinstance(node.value, str)]


def test_messages_and_pages_say_mountlab_and_not_make() -> None:
    """The README says so. Trap: one stopped run was resumed by `mountlab resume RUN`, another by `make resume RUN=`."""
    assert "Messages and pages say `mountlab`" in README.read_text()
    targets = re.compile(
        rf"\bmake ({'|'.join(command.__name__.rpartition('.')[2] for command in COMMANDS)})\b|\bmake {{"
    )
    files = sorted((ROOT / "lib" / "mountlab").rglob("*.py"))
    wrong = {f"{file.name}: {text}" for file in files for text in texts(file) if targets.search(text)}
    first_step = {text for text in wrong if text.startswith("init.py: make demo, ")}
    assert len(first_step) == 1, "a new workspace has no .venv yet: its Makefile builds it"
    assert wrong - first_step == set()

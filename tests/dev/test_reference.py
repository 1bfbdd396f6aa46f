"""The reference leaves nothing out, and says what is so."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import shutil
from fnmatch import fnmatch
from pathlib import Path
from typing import get_args

import mountlab
import pandas as pd
import pytest
from built_pages import built_pages
from mountlab.__main__ import INTERRUPTED, PIPE_CLOSED
from mountlab.analysis import gate
from mountlab.batch.batch_file import BatchFile, GroupFile
from mountlab.checks import CHECKS, OF_SEVERAL_RUNS
from mountlab.core.errors import EXIT_CODES, MountlabError
from mountlab.core.findings import Verdict
from mountlab.core.metrics import METRICS
from mountlab.core.model import COLUMNS, Status
from mountlab.core.places import SHIPPED
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.layers import STACK_LAYERS
from mountlab.filesystems.without_effect import RULES, UNDONE
from mountlab.logs import FORMATS, read_log
from mountlab.programs import TOOLS
from mountlab.results import paths, store, tables
from mountlab.results.import_file import ImportedFilesystem, ImportFile
from mountlab.sweep.box_file import BoxFile
from mountlab.sweep.capacity_entry import CapacityFile
from mountlab.sweep.design_entry import DesignFile
from mountlab.sweep.exclude_file import ExcludeFile, ExclusionFile
from mountlab.sweep.filesystem_entry import FilesystemFile
from mountlab.sweep.published_file import PublishedFile, PublishedRow
from mountlab.sweep.sweep_file import SweepFile
from mountlab.sweep.until_entry import UntilFile
from mountlab_dev import glossary
from mountlab_dev.reference.files import kind
from mountlab_dev.reference.names import members, signature
from pydantic import BaseModel
from rows import every_row

DATA = Path(__file__).parents[1] / "data"
MODELS: list[type[BaseModel]] = [
    SweepFile, DesignFile, UntilFile, CapacityFile, FilesystemFile, BoxFile, ImportFile, ImportedFilesystem,
    PublishedFile, PublishedRow, ExcludeFile, ExclusionFile, BatchFile, GroupFile,
]  # fmt: skip
NOT_IN_LOGS: dict[str, set[str]] = {
    "dd": {"read_bandwidth", "write_bandwidth"},
    "filebench": {"bytes"},
    "fs_mark": set(),
    "pg_test_fsync": set(),
    "fio": {
        *("capacity", "asked_rate", "arrival_rate", "completion_rate", "largest_lateness", "objective_used"),
        *(f"{side}_total_latency_{part}" for side in ("read", "write") for part in ("p50", "p95", "p99", "p99_9")),
        *(f"{side}_submission_latency_{part}" for side in ("read", "write") for part in ("p95", "p99", "p99_9")),
        *("sync_latency_p99_9", "operation_latency_p99_9"),
    },
}
"""What no recording has; some percentiles since the recordings have too few I/Os for them."""


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    begin = "docs/reference/"
    return {name.removeprefix(begin): text for name, text in built_pages().items() if name.startswith(begin)}


def test_no_page_names_a_path_of_the_machine_it_was_made_on(made: dict[str, str]) -> None:
    assert not [name for name, text in made.items() if str(SHIPPED) in text or "PosixPath" in text]


# --- nothing is left out, nothing is unsaid ---------------------------------------------------------------------------


@every_row("model", MODELS, ids=lambda model: model.__name__)
def test_every_key_of_a_parameter_file_is_explained_in_the_reference(
    model: type[BaseModel], made: dict[str, str]
) -> None:
    text = "\n".join(made.values())
    for name, field in model.model_fields.items():
        assert field.description, f"{model.__name__}.{name}: a docstring below it"
        assert f"| `{field.alias or name}` |" in text
        assert " ".join(field.description.split()).replace("|", "\\|") in text


def test_every_option_of_every_tool_says_what_it_is(made: dict[str, str]) -> None:
    for tool in TOOLS.values():
        section = made["tools.md"].split(f"\n## {tool.name}\n")[1].split("\n## ")[0]
        for name, option in tool.options.items():
            assert option.help, f"{tool.name}: {name}"
            assert f"| `{name}` |" in section
        assert all(f"`{name}`" in section for name in tool.reserved)


def test_every_type_of_file_system_has_its_keys_and_steps(made: dict[str, str]) -> None:
    for family in FAMILIES.values():
        section = made["filesystems.md"].split(f"\n## {family.type}\n")[1].split("\n## ")[0]
        assert all(f"`{key}`" in section for key in family.keys)
        assert ("\n1. " in section) != family.in_place, "the steps that make it, where there are any"
    assert "`mount -t tmpfs -o size=1073741824 mountlab MOUNTPOINT`" in made["filesystems.md"]
    assert re.search(r"`mke2fs -t ext4 .*lazy_itable_init=0\S* DEVICE`", made["filesystems.md"])


@every_row("kind", list(STACK_LAYERS))
def test_every_layer_has_its_options_and_how_it_is_made(made: dict[str, str], kind: str) -> None:
    (text,) = re.findall(rf"^### {kind}\n(.*?)(?=^### |\Z)", made["filesystems.md"], re.MULTILINE | re.DOTALL)
    for name, option in STACK_LAYERS[kind].options.items():
        assert f"| `{name}` |" in text
        assert option.help in text
    assert f"`layer.sh make RUN_DIR {kind} UUID " in text


def test_no_step_shows_the_text_of_its_script(made: dict[str, str]) -> None:
    """A comment of a script would be read as a title of the page."""
    titles = [line for line in made["filesystems.md"].splitlines() if line.startswith("# ")]
    assert titles == ["# File systems"]


def test_every_metric_and_column_has_its_meaning(made: dict[str, str]) -> None:
    assert set(glossary.METRIC_MEANINGS) == set(METRICS)
    assert COLUMNS - {"residual"} <= set(glossary.COLUMN_MEANINGS), "residual is a row of the analysis of variance"
    assert all(f"| `{metric}` | {unit} |" in made["metrics.md"] for metric, unit in METRICS.items())


def test_every_metric_of_a_tool_has_its_source() -> None:
    patterns: dict[str, list[str]] = {}
    for tool, pattern, _ in glossary.METRIC_SOURCES:
        patterns.setdefault(tool, []).append(pattern)
    assert set(patterns) == {*TOOLS} - {"command", "watched"}
    for name, own in patterns.items():
        used = [next((each for each in own if fnmatch(metric, each)), None) for metric in TOOLS[name].gives]
        assert None not in used
        assert set(used) == set(own), "a pattern that no metric needs"


def test_every_rule_of_an_option_without_effect_is_listed(made: dict[str, str]) -> None:
    rows = made["filesystems.md"].partition("Rules for options without effect")[2].partition("\n## ")[0]
    assert all(rule.reason in rows and rule.source.replace("|", "\\|") in rows for rule in RULES)
    assert all(rule.reason in rows for rule in UNDONE)


def test_the_glossary_has_the_words_of_verdicts_and_states_in_order() -> None:
    words = {word for term in glossary.TERMS for word in term.split(", ")}
    assert set(get_args(Verdict)) <= words
    said = set(re.findall(r"`(\w+)`", glossary.TERMS["status"]))
    assert said == set(get_args(Status))
    assert [*glossary.TERMS] == sorted(glossary.TERMS, key=str.lower)
    assert {"box", "sweep", "run", "batch", "cell", "block", "trial", "caveat", "ratio", "interval"} <= words
    assert not [text for text in glossary.TERMS.values() if not text.endswith((".",))]


def test_every_caveat_says_how_bad_it_is_and_what_to_do(made: dict[str, str]) -> None:
    for code, check in CHECKS.items():
        assert check.find.__doc__, code
        assert check.advice.endswith("."), code
        assert f"| `{code}` | {' or '.join(check.severities)} |" in made["caveats.md"]
    assert all(f"| `{code}` | {each.severity} |" in made["caveats.md"] for code, each in OF_SEVERAL_RUNS.items())


def test_every_caveat_says_when_it_is_raised(made: dict[str, str]) -> None:
    raised = made["caveats.md"].partition("## When each is raised")[2]
    of_runs = raised.partition("### In a comparison of runs")[2]
    assert all(re.search(rf"^\| `{code}` \| \S.*\. \|$", raised, re.MULTILINE) for code in CHECKS)
    assert all(f"| `{code}` | {each.when} |" in of_runs for code, each in OF_SEVERAL_RUNS.items())


def test_every_caveat_in_the_code_is_in_one_of_the_two_tables() -> None:
    sources = [path.read_text() for path in (SHIPPED / "lib" / "mountlab").rglob("*.py")]
    codes = {code for text in sources for code in re.findall(r'(?:Caveat\(\s*code=|of_run\(\s*)"([a-z-]+)"', text)}
    assert codes
    assert codes <= {*CHECKS, *OF_SEVERAL_RUNS}


def test_every_verb_and_option_of_the_command_line_has_a_word_said_of_it(made: dict[str, str]) -> None:
    rows = re.findall(r"^\| (`.*?`(?:, `.*?`)*) \| (.*) \|$", made["command-line.md"], re.MULTILINE)
    assert rows
    assert [row for row in rows if not row[1]] == []
    helped = re.findall(r"^## ([a-z ]+)$", made["command-line.md"], re.MULTILINE)
    assert {"run", "compare", "box check", "box clean", "export"} <= set(helped)


def test_every_exit_code_of_an_error_is_explained() -> None:
    def below(kind: type[MountlabError]) -> set[int]:
        return {kind.exit_code}.union(*(below(each) for each in kind.__subclasses__()))

    assert below(MountlabError) | {0, *gate.EXIT_CODES.values(), INTERRUPTED, PIPE_CLOSED} == set(EXIT_CODES)


def test_every_public_name_is_there(made: dict[str, str]) -> None:
    assert all(f"\n## {name}\n" in made["python.md"] for name in mountlab.__all__)


# --- what it says is so -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_columns_are_those_of_the_files_that_a_run_has(tmp_path: Path) -> None:
    path = tmp_path / "tour"
    shutil.copytree(SHIPPED / "results" / "tour", path)
    tables.write_derived(store.load_run(path))
    told = tables.columns()
    frames = {name: pd.read_csv(path / name) for name in ("estimates.csv", "comparisons.csv", "caveats.csv")}
    frames["measurements.parquet"] = pd.read_parquet(path / "measurements.parquet")
    for name, frame in frames.items():
        assert [each for each in told[name] if each != "stopped"] == list(frame.columns), name


def test_the_files_of_a_run_are_those_in_the_reference() -> None:
    tour = SHIPPED / "results" / "tour"
    patterns = [name.replace("NNNN", "*").replace("NNN", "*").replace("NAME", "*") for name in glossary.RUN_FILES]
    known = {found for pattern in patterns for found in tour.glob(pattern)}
    tracked = {*(each for each in tour.iterdir() if each.name != "raw"), *(tour / "raw").iterdir()}
    generated = {tour / name for name in ("export",)}
    assert tracked - generated <= known


@every_row("tool", FORMATS)
def test_the_metrics_that_a_tool_gives_are_those_of_its_recordings(tool: str) -> None:
    """Every metric of a recording is listed, and every one that is listed is met in some recording, or needs what only
    a trial knows: which side dd was on, the text of filebench's workload."""
    found: set[str] = set()
    for path in sorted(each for each in (DATA / tool).rglob("*") if each.is_file()):
        try:
            outputs = read_log(tool, path.read_text(errors="replace"), where=path.name)
        except MountlabError:  # what is damaged on purpose, or belongs to a recording beside it
            continue
        found |= {figure.measurement.metric for output in outputs for figure in output.figures}
    assert found <= set(TOOLS[tool].gives)
    assert set(TOOLS[tool].gives) - found <= NOT_IN_LOGS[tool]


@every_row(
    ("annotation", "said"),
    [
        (str | None, "text"),
        (list[str] | None, "list of text"),
        (dict[str, str | int], "mapping of names to text or whole number"),
        (DesignFile.model_fields["seed"].annotation, "whole number, 0 or more"),
        (FilesystemFile.model_fields["size"].annotation, "a size with its unit, such as `64KiB`"),
        (BoxFile.model_fields["embedded"].annotation, "one of `loopback`, `vm`"),
    ],
)
def test_types_are_said_as_people_say_them(annotation: object, said: str) -> None:
    assert kind(annotation) == said


# --- the Python names -------------------------------------------------------------------------------------------------

PUBLIC = {name: inspect.unwrap(getattr(mountlab, name)) for name in mountlab.__all__}
FUNCTIONS = {
    **{name: each for name, each in PUBLIC.items() if inspect.isfunction(each)},
    **{
        f"{module.__name__.rpartition('.')[2]}.{name}": getattr(module, name)
        for module in PUBLIC.values()
        if inspect.ismodule(module)
        for name in module.__all__
        if inspect.isfunction(getattr(module, name))
    },
}


def test_no_public_member_lacks_a_meaning(made: dict[str, str]) -> None:
    rows = re.findall(r"^\| `(.+?)` \| (.*) \|$", made["python.md"], re.MULTILINE)
    assert len(rows) > 150
    assert not [name for name, meaning in rows if not meaning.strip()]
    assert not [name for name, each in FUNCTIONS.items() if not inspect.getdoc(each)]


def test_every_field_and_method_of_a_run_is_among_the_members() -> None:
    listed = {re.split(r"\W", name.strip("`"))[0] for name, _ in members(store.Run)}
    own = {name for name in vars(store.Run) if not name.startswith("_")}
    assert listed == own | {each.name for each in dataclasses.fields(store.Run)}


@every_row("name", FUNCTIONS)
def test_a_printed_signature_is_that_of_the_function(name: str, made: dict[str, str]) -> None:
    """What is printed is parsed as Python, and evaluated where it is a default."""
    what = FUNCTIONS[name]
    text = signature(what)
    short = name.rpartition(".")[2]
    assert f"{short}{text}" in made["python.md"].replace(r"\|", "|")
    (parsed,) = ast.parse(f"def f{text}: ...").body
    assert isinstance(parsed, ast.FunctionDef)
    expected = inspect.signature(what)
    assert ast.unparse(parsed.returns or ast.Constant(None)) == _plain(expected.return_annotation)
    assert _parameters(parsed.args) == [
        (each.name, _plain(each.annotation), _default(each.default)) for each in expected.parameters.values()
    ]


def _plain(annotation: str) -> str:
    return ast.unparse(ast.parse(annotation, mode="eval"))


def _default(value: object) -> object:
    return None if value is inspect.Parameter.empty else (value,)


def _parameters(parsed: ast.arguments) -> list[tuple[str, str, object]]:
    missing: list[ast.expr | None] = [None] * (len(parsed.args) - len(parsed.defaults))
    pairs = [*zip(parsed.args, [*missing, *parsed.defaults], strict=True),
             *([(parsed.vararg, None)] if parsed.vararg else []),
             *zip(parsed.kwonlyargs, parsed.kw_defaults, strict=True),
             *([(parsed.kwarg, None)] if parsed.kwarg else [])]  # fmt: skip
    return [
        (each.arg, ast.unparse(each.annotation) if each.annotation else "", default and (_value(default),))
        for each, default in pairs
    ]


def _value(default: ast.expr) -> object:
    known = {"Path": lambda name: paths.RESULTS if name == "results" else SHIPPED / name}
    return eval(ast.unparse(default), known)

"""README, METHODS and docs/ do not rot: links lead somewhere, commands are run, names exist, YAML is accepted."""

from __future__ import annotations

import argparse
import json
import posixpath
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from built_pages import built_pages
from mountlab import cli
from mountlab.batch.batch_file import BatchFile, GroupFile, parse_batch
from mountlab.core.metrics import METRICS
from mountlab.core.places import SHIPPED
from mountlab.programs import TOOLS
from mountlab.programs.command import COMMITS
from mountlab.programs.printed import METRIC_KEYS
from mountlab.results.import_file import ImportedFilesystem, ImportFile, read_import
from mountlab.sweep.box_file import BoxFile, parse_box
from mountlab.sweep.design_entry import DesignFile
from mountlab.sweep.filesystem_entry import RETIRED, FilesystemFile
from mountlab.sweep.neighbour_entry import NEIGHBOUR_KEYS
from mountlab.sweep.new_sweep import new_sweep
from mountlab.sweep.published_file import PublishedRow, parse_published
from mountlab.sweep.state_entry import StateFile
from mountlab.sweep.sweep_file import SWEEP_KEYS, resolve
from mountlab.sweep.until_entry import UntilFile
from mountlab.sweep.validated import file_keys
from mountlab.sweep.workload_entry import DESIGN_KEYS
from mountlab_dev import evidence
from project.test_readme import COVERED_BY
from rows import every_row

ROOT = SHIPPED
DOCS = ROOT / "docs"
WRITTEN = [
    *sorted(ROOT.glob("*.md")),
    *sorted(DOCS.glob("*.md")),
    *sorted((DOCS / "how-to").glob("*.md")),
]
EVIDENCE = {DOCS / name: text for name, text in evidence.pages().items()}
"""Pages that are built from words that people wrote and from data."""
each_written = every_row("page", [*WRITTEN, *EVIDENCE], ids=lambda page: str(page.relative_to(ROOT)))
SAFETY = (DOCS / "safety.md").read_text()
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^`([\w./-]+)`[^\n]*:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
"""A file that a page shows whole: its name at the beginning of the line above."""


def text_of(page: Path) -> str:
    """The text of a page, also of one that is built."""
    return EVIDENCE[page] if page in EVIDENCE else page.read_text()


# --- links ------------------------------------------------------------------------------------------------------------


@cache
def pages() -> dict[str, str]:
    """Every page of the documentation, written and built: path in the repository to Markdown."""
    return {**{page.relative_to(ROOT).as_posix(): page.read_text() for page in WRITTEN}, **built_pages()}


def is_there(name: str) -> bool:
    """Whether a page, a file or a folder exists, or is built."""
    return (ROOT / name).exists() or any(name in (page, posixpath.dirname(page)) for page in built_pages())


@cache
def anchors(page: str) -> frozenset[str]:
    """The anchors of the headings of a page, as forges make them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", FENCE.sub("", pages()[page]), re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
        numbered = (slug if not number else f"{slug}-{number}" for number in range(100))
        found.add(next(each for each in numbered if each not in found))
    return frozenset(found)


def targets(page: str) -> Iterator[tuple[str, str, str]]:
    """Yield each link that a page has into the repository: as it is written, the path that it leads to, the anchor."""
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", pages()[page])):
        if "://" not in target:
            name, _, anchor = target.partition("#")
            yield target, posixpath.normpath(posixpath.join(posixpath.dirname(page), name)) if name else page, anchor


@every_row("page", [*(page.relative_to(ROOT).as_posix() for page in WRITTEN), "built"])
def test_every_link_and_anchor_leads_somewhere(page: str) -> None:
    for source in built_pages() if page == "built" else [page]:
        broken = [
            target
            for target, name, anchor in targets(source)
            if not is_there(name) or (anchor and anchor not in anchors(name))
        ]
        assert not broken, source


def test_the_readme_leads_to_nothing_that_is_not_in_git() -> None:
    assert not [target for target, name, _ in targets("README.md") if name in built_pages()]


def test_every_page_is_reached_from_the_index() -> None:
    reached: set[str] = set()
    todo = ["docs/README.md"]
    while todo:
        one = todo.pop()
        if one not in reached and one.startswith("docs/") and one in pages():
            reached.add(one)
            todo += [name for _, name, _ in targets(one)]
    assert {name for name in pages() if name.startswith("docs/")} == reached


# --- length -----------------------------------------------------------------------------------------------------------


def release(version: str) -> str:
    """The section of CHANGELOG.md on one version, with its heading."""
    (found,) = re.findall(rf"^## {re.escape(version)}$.*?(?=^## |\Z)", (ROOT / "CHANGELOG.md").read_text(), re.M | re.S)
    return str(found)


@pytest.mark.parametrize(
    ("text", "at_most"),
    [
        pytest.param((ROOT / "README.md").read_text, 1200, id="README"),
        pytest.param(lambda: release("0.1.0"), 600, id="CHANGELOG 0.1.0"),
        pytest.param(lambda: SAFETY, 2600, id="safety"),
        pytest.param((ROOT / "METHODS.md").read_text, 8_000, id="METHODS"),
    ],
)
def test_a_page_is_no_longer_than_its_reader_has_time(text: Callable[[], str], at_most: int) -> None:
    """In words as `wc -w` counts them."""
    assert len(text().split()) <= at_most


# --- commands ---------------------------------------------------------------------------------------------------------

COVERED_IN_DOCS = [
    *COVERED_BY,
    (r"make env", "tests/project/test_makefile.py", "env.sh"),
    (r"python3 -m venv study/\.venv", "tests/cli/test_init.py", "-m venv --clear .venv"),
    (r"\S+/bin/pip install( --force-reinstall --no-deps)? \S+\.whl", "tests/cli/test_init.py", "--force-reinstall"),
    (r"\S*\.venv/bin/mountlab init \S+", "tests/cli/test_init.py", 'main(["init", "my study"])'),
    (r"git init", "tests/cli/test_init.py", 'git("init")'),
    (r"rm requirements\.lock mountlab\.lock", "tests/cli/test_init.py", '("requirements.lock", "mountlab.lock")'),
    (r"cp (-r )?(params/sweeps|results)/\S+ \.\./study/(params/sweeps|results)/", "tests/cli/test_init.py", r"^cp .*$"),
    (r"make batch BATCH=\S+ ARGS=--plan", "tests/project/test_makefile.py", '"ARGS=--plan"'),
    (r"\.venv/bin/mountlab batch --resume \S+", "tests/cli/test_names.py", '["batch", "--resume"'),
    (r"make reproduce BUNDLE=\S+( BOX=\S+)?", "tests/project/test_makefile.py", '"reproduce", "BUNDLE='),
    (r"\.venv/bin/mountlab box claim \S+ \S+", "tests/live/test_claim_live.py", '"box", "claim"'),
    (r"\.venv/bin/mountlab box helper \S+ > install\.sh", "tests/live/test_helper.py", '"box", "helper"'),
    (r"scp install\.sh \S+ && ssh \S+ sh install\.sh", "tests/live/test_helper.py", '"--as", "root"'),
    (r"useradd --create-home --shell /bin/sh \S+", "tests/support/ordinary.py", '"useradd", "--create-home"'),
    (r"\.venv/bin/papermill --help-notebook \S+", "tests/project/test_notebooks.py", "inspect_notebook"),
    (r"dask (scheduler|worker) .+", "tests/support/rack.py", '"dask"'),
    (r"ssh -N -L \S+ \S+", "tests/jupyter/test_lab.py", "ssh -N -L"),
    (r"make bench ARGS=.*", "tests/dev/test_bench.py", '"--only", "startup", "--repeats"'),
    (r"make bench-gate( ARGS=.*)?", "tests/project/test_makefile.py", '"bench-gate", "ARGS='),
    (r"ssh mybox true", "tests/live/test_loopback.py", "test_a_box_of_the_users_own_configuration"),
    (
        r"\.venv/bin/mountlab gate( \S+)+ --against( \S+)+",
        "tests/analysis/test_gate.py",
        '"gate"',
    ),
    (r"\.venv/bin/mountlab run \S+ --box \S+", "tests/live", 'main(["run", '),
    (
        r"\.venv/bin/mountlab run \S+( -p \S+)+( --box \S+)?",
        "tests/live/test_stopping.py",
        '"run", str(sweep_file), "-p"',
    ),
    (r"\.venv/bin/mountlab compare( --boxes \S+)? \S+ \S+", "tests/cli/test_compare_verb.py", '"compare"'),
    (r"\.venv/bin/mountlab reparse \S+", "tests/live/test_tutorial.py", '"reparse"'),
    (r"\.venv/bin/mountlab catalog", "tests/results/test_catalog.py", 'main(["catalog"'),
    (r"\.venv/bin/mountlab history.*", "tests/report/test_history.py", 'main(["history"'),
    (r"\.venv/bin/mountlab query \".*\"", "tests/results/test_catalog.py", 'main(["query"'),
    (r"cp params/sweeps/\S+ params/sweeps/\S+", "tests/project/test_sweep_files.py", '"database-log.yml"'),
    (r"\.venv/bin/mountlab (extend|exclude) .*", "tests/runner/test_extend.py", "go-on.md"),
    (r"\.venv/bin/mountlab watch .*-- .+", "tests/live/test_watch_live.py", '"watch", "--in"'),
    (r"\.venv/bin/mountlab explain .*", "tests/runner/test_explain.py", "why.md"),
    (r"\.venv/bin/uv pip install \S+", "tests/live/test_plugin_live.py", '"pip", "install"'),
    (r"\.venv/bin/mountlab conform \S+", "tests/live/test_plugin_live.py", '"conform", "mountlab-untar"'),
    (r"\.venv/bin/mountlab run docs/example-plugin/unpack\.yml", "tests/live/test_plugin_live.py", '"unpack.yml"'),
    (r"ci/gate\.sh( \S+)+", "tests/project/test_how_to.py", '"ci/gate.sh"'),
    (r"make batch BATCH=\S+ ARGS=--plan", "tests/project/test_makefile.py", '"ARGS=--plan"'),
    (r"\.venv/bin/mountlab batch --resume \S+", "tests/cli/test_names.py", '"--resume"'),
    (r"make reproduce BUNDLE=\S+( BOX=\S+)?", "tests/project/test_makefile.py", '["reproduce", "BUNDLE=b.zip"'),
    (r"make publish RUNS=\".+\" ARGS='.+'", "tests/publish/test_publish.py", '"--author"'),
    (r"make test-all", "tests/project/test_makefile.py", '"test-all"'),
    (r"\.venv/bin/mountlab box helper \S+ > install\.sh", "tests/box/test_helper.py", '["box", "helper", "b"]'),
    (r"(\.venv/bin/)?papermill --help-notebook notebooks/\S+", "tests/project/test_notebooks.py", "--help-notebook"),
    (
        r"(\.venv/bin/)?papermill notebooks/\S+ \S+ -f params/sweeps/\S+\.yml -p box \S+ -p preset \S+",
        "tests/live/test_papermill.py",
        '"papermill"',
    ),
    (r"dask (scheduler|worker) .+", "tests/support/rack.py", 'with_name("dask")'),
]
"""Commands, where they are run, and a text in there that runs them: test_blocks.py holds every page against it."""
SCRIPTS = {"ci-gate.md": "#!/bin/sh"}
"""Shell blocks that are a file, by how they begin: a test runs the file."""


@each_written
def test_every_block_says_what_it_is(page: Path) -> None:
    """A block of commands without `sh` is not looked at below; one that is indented like text neither."""
    text = text_of(page)
    opened = re.findall(r"^ *```(.*)$", text, re.MULTILINE)[::2]
    assert all(opened)
    assert not re.findall(r"^ {4,}(?:make|mountlab|\.venv/bin/\S+) .*", FENCE.sub("", text), re.MULTILINE)


# --- YAML -------------------------------------------------------------------------------------------------------------


def yaml_blocks() -> list[Any]:
    found = []
    for page in WRITTEN:
        blocks = [body for language, body in FENCE.findall(page.read_text()) if language == "yaml"]
        found += [pytest.param(body, id=f"{page.stem}-{number}") for number, body in enumerate(blocks)]
    return found


@pytest.mark.parametrize("text", yaml_blocks())
def test_every_parameter_file_in_the_docs_is_accepted(text: str) -> None:
    """A part of a sweep is completed with what it does not say."""
    raw = yaml.safe_load(text)
    if "groups" in raw:
        assert parse_batch(raw, name="docs", where="docs").items
    elif "rows" in raw:
        assert parse_published({"study": "?", "source": "?", **raw}, where="docs")
    elif "host" in raw:
        assert parse_box(raw, name="mybox", where="docs").host == raw["host"]
    elif any("files" in (entry or {}) for entry in (raw.get("filesystems") or {}).values()) or "files" in raw:
        assert read_import({"name": "old", **raw}, where="docs").question
    else:
        base = {"name": "docs", "question": "?", "baseline": "ext4",
                "filesystems": {"ext4": {"type": "ext4", "image": "2GiB"}, "tmpfs": {"type": "tmpfs", "size": "1GiB"}},
                "workloads": {"w": {"tool": "dd", "direction": "write", "count": 8}}}  # fmt: skip
        whole = raw if {"filesystems", "workloads"} <= raw.keys() else {**base, **raw}
        own_tool = {
            name: {**entry, "tool": "dd", "direction": "write", "count": 8} if entry["tool"] == "xfs_io" else entry
            for name, entry in whole["workloads"].items()
        }
        shown = {
            name: {key: value for key, value in entry.items() if entry["tool"] != "dd" or key != "size"}
            for name, entry in own_tool.items()
        }
        assert resolve({"name": "docs", **whole, "workloads": shown}, where="docs").sweep.cells


def test_the_sweep_in_one_minute_is_the_one_that_a_new_sweep_begins_with() -> None:
    """tests/sweep/test_new_sweep.py resolves it, with each entry that is off and without a gap."""
    blocks = FENCE.findall((DOCS / "a-sweep-in-one-minute.md").read_text())
    assert [body for language, body in blocks if language == "yaml"] == [new_sweep("example")]


# --- names ------------------------------------------------------------------------------------------------------------

KEYS = {
    *SWEEP_KEYS,
    *DESIGN_KEYS,
    *NEIGHBOUR_KEYS,
    "tool",
    "filesystem",
    "workload",
    *(
        key
        for model in (
            DesignFile,
            UntilFile,
            FilesystemFile,
            StateFile,
            BoxFile,
            ImportFile,
            ImportedFilesystem,
            PublishedRow,
            BatchFile,
            GroupFile,
        )
        for key in file_keys(model)
    ),
    *(option for tool in TOOLS.values() for option in (*tool.options, *tool.reserved)),
    *(option.file_key for tool in TOOLS.values() for option in tool.options.values() if option.file_key),
    *RETIRED,
    *METRIC_KEYS,
}
OF_FIO = {"invalidate", "lat_percentiles", "norandommap", "random_distribution"}
"""Options that only fio itself knows."""
FOLDERS = ("params/", "lib/", "tests/", "notebooks/", "docs/", "ci/")
OF_THE_READER = {"params/boxes/mybox.yml", "params/sweeps/ci.yml", "params/sweeps/flush.yml", "ci/gate.sh",
                 "params/sweeps/example.yml", "params/boxes/NAME.yml", "params/sweeps/x.yml"}  # fmt: skip
"""Files that a page tells its reader to write."""


def words_in_code(page: Path) -> set[str]:
    return set(re.findall(r"`([^`\n]+)`", FENCE.sub("", text_of(page))))


@each_written
def test_every_file_that_is_named_exists(page: Path) -> None:
    shown = {name for name, _ in FILE.findall(text_of(page))}
    named = {word for word in words_in_code(page) if word.startswith(FOLDERS) and re.fullmatch(r"[\w./-]+", word)}
    named = {word.partition("::")[0] for word in named} - shown - OF_THE_READER
    by_make_docs = {name for name in named if name.startswith("docs/_build/")}
    assert not sorted(name for name in named - by_make_docs if not is_there(name.rstrip("/")))


@each_written
def test_every_key_that_is_named_is_one(page: Path) -> None:
    keys = {match[1] for word in words_in_code(page) if (match := re.match(r"([a-z_]+): ", word))}
    assert not sorted(keys - KEYS - OF_FIO)


@each_written
def test_every_target_and_verb_that_is_named_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    known = {name for name, parser in _verbs(cli.parser())}
    words = words_in_code(page)
    assert not {match[1] for word in words if (match := re.match(r"make ([a-z-]+)", word))} - targets
    said = {match[1] for word in words if (match := re.match(r"(?:\.venv/bin/|python -m )?mountlab ([a-z]+)\b", word))}
    assert not said - known


def _verbs(parser: argparse.ArgumentParser) -> list[tuple[str, argparse.ArgumentParser]]:
    actions = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    return [pair for action in actions for pair in action.choices.items()]


def test_every_word_with_an_underscore_is_known_to_the_code() -> None:
    """Keys, metrics, columns, functions: a name that no source, script or notebook holds is a dead one."""
    suffixes = {".py", ".sh", ".yml", ".ipynb", ".toml"}
    places = [ROOT / name for name in ("lib", "tests", "params", "notebooks", "pyproject.toml")]
    files = [file for place in places for file in (place.rglob("*") if place.is_dir() else [place])]
    source = "\n".join(
        file.read_text(errors="replace")
        for file in files
        if file.suffix in suffixes and "data" not in file.relative_to(ROOT).parts and file.name != Path(__file__).name
    )
    dead = {
        f"{page.relative_to(ROOT)}: {word}"
        for page in (*WRITTEN, *EVIDENCE)
        for word in words_in_code(page)
        if re.fullmatch(r"[a-z]+(_[a-z0-9]+)+", word) and word not in source
    }
    assert not dead


@every_row("page", [DOCS / "tutorial.md", *sorted((DOCS / "how-to").glob("*.md"))], ids=lambda p: p.name)
def test_every_caveat_and_metric_that_is_named_exists(page: Path) -> None:
    """In tables and prose of the docs: a code of two words with a dash, or a metric."""
    known = built_pages()["docs/reference/caveats.md"]
    spoken = {word for word in words_in_code(page) if re.fullmatch(r"[a-z]+(-[a-z]+)+", word)}
    made_here = {"in-a-burst", "few-files", "time-per-file", "mountlab-untar"}
    assert not sorted(word for word in spoken - made_here if f"`{word}`" not in known)
    metrics = {word for word in words_in_code(page) if word.endswith(("_bandwidth", "_iops", "_rate"))}
    assert metrics <= {*METRICS, COMMITS}


# --- safety -----------------------------------------------------------------------------------------------------------


def test_every_promise_names_a_test_that_exists() -> None:
    """A row has the claim first, and the tests last."""
    sections = json.loads((evidence.DATA / "promises.json").read_text()).values()
    claims = [row for section in sections for row in section["rows"][1:]]
    assert len(claims) >= 150
    for row in claims:
        named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", row[-1])
        assert named, f"a claim without a test: {row}"
        for file, name in named:
            assert f"def {name}(" in (ROOT / file).read_text(), f"{file} has no {name}"


def test_what_the_promises_quote_of_the_soak_is_in_its_table() -> None:
    (quoted,) = re.findall(r"^`make soak` breaks Mountlab on purpose.*?\n\n", SAFETY, re.MULTILINE | re.DOTALL)
    counts = set(re.findall(r"(?<![\w-])\d[\d,]*(?= )", quoted))
    rows = evidence.rows("soak")[1:]
    assert len(counts) == 6
    assert counts <= {tries for _, tries, *_ in rows}
    assert {zero for row in rows for zero in row[2:5]} == {"0"}


def test_every_notebook_is_listed_with_its_question() -> None:
    page = (ROOT / "docs" / "jupyterlab.md").read_text()
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        title = "".join(json.loads(path.read_text())["cells"][0]["source"]).splitlines()[0].removeprefix("# ")
        assert f"| `{path.stem}` | {title} |" in page

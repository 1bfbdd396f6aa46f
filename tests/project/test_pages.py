"""Pages of docs/ that quote figures or messages: what they quote is so."""

from __future__ import annotations

import ast
import json
import re
from functools import cache

import pytest
from mountlab.checks import CHECKS
from mountlab.core.places import SHIPPED
from mountlab.results import paths, store
from rows import every_row

ROOT = SHIPPED
DOCS = ROOT / "docs"
UNITS = {"GB/s": 1e9, "µs": 1e-6, "thousand/s": 1e3}


# --- what to expect ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_figures_of_the_own_machine_are_those_of_the_recorded_run() -> None:
    text = (DOCS / "what-to-expect.md").read_text().partition("<!-- tour")[2]
    rows = re.findall(r"^\| (\S+/.+?) \| (\w+) \| ([\d.]+) \| ([\d.]+) \| (\S+) \|$", text, re.MULTILINE)
    assert len(rows) == 10
    estimates = store.load_run(ROOT / "results" / "tour").estimates
    for cell, metric, low, high, unit in rows:
        measured = estimates[(estimates["cell"] == cell) & (estimates["metric"] == metric)].iloc[0]
        assert float(low) == pytest.approx(measured["low"] / UNITS[unit], rel=0.005)
        assert float(high) == pytest.approx(measured["high"] / UNITS[unit], rel=0.005)


def test_every_range_names_a_source_that_is_listed() -> None:
    text = (DOCS / "what-to-expect.md").read_text()
    ranges, _, rest = text.partition("## What one small")
    listed = set(re.findall(r"^\| (\d+) \|", rest.partition("## Sources")[2], re.MULTILINE))
    assert set(re.findall(r"\[(\d+)\]\(#sources\)", ranges)) == listed
    rows = [row for row in ranges.splitlines() if row.startswith("| ") and "---" not in row][1:]
    for cell in (cell for row in rows for cell in row.split("|")[2:-1]):
        assert "(#sources)" in cell or not re.search(r"\d", cell.replace("7,200/min", "").replace("8.3 ms", "")), cell


def test_the_published_figures_of_the_page_are_those_of_their_files() -> None:
    rows = [*paths.load_published(("c-memory-fsync",)), *paths.load_published(("b-tmpfs-cloud", "a-ramdisk-2013"))]
    known = {f"{value:.0f}" for row in rows for value in (row.candidate_value, row.baseline_value)}
    text = (DOCS / "what-to-expect.md").read_text().partition("## Sources")[2]
    (line,) = (line for line in text.splitlines() if "pg_test_fsync" in line)
    assert {figure.replace(",", "") for figure in re.findall(r"\d+,\d+(?:,\d+)?", line)} <= known


# --- troubleshooting --------------------------------------------------------------------------------------------------

LABEL = re.compile(r"^(?:(?:error|warning|note|failed|make env|  next|  allowed): *|(?:ok|limited|missing) {2,})")
VALUE = re.compile(r"^  (?:where|got): ")
LITERAL = 8
"""So many characters of a line must be those of a text of the code, and more than a fourth of it."""
Parts = tuple[str | None, ...]
"""The pieces of a text of the code; None for what is put in."""


def quoted_messages() -> list[str]:
    """The lines of the quoted messages, but for those that hold only a value."""
    blocks = re.findall(r"^```text\n(.*?)^```", (DOCS / "troubleshooting.md").read_text(), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if not VALUE.match(line)]


@cache
def texts_of_the_code() -> tuple[Parts, ...]:
    files = sorted((ROOT / "lib" / "mountlab").rglob("*.py"))
    nodes = [node for path in files for node in ast.walk(ast.parse(path.read_text()))]
    shell = re.findall(r'die "([^"]+)"', (ROOT / "lib" / "env.sh").read_text())
    return (*filter(None, map(parts_of, nodes)), *(parts_of_shell(text) for text in shell))


def parts_of(node: ast.AST) -> Parts | None:
    match node:
        case ast.Constant(value=str(text)):
            return (text,)
        case ast.JoinedStr(values=values):
            return tuple(str(each.value) if isinstance(each, ast.Constant) else None for each in values)
    return None


def parts_of_shell(text: str) -> Parts:
    words = [None if word.startswith("$") else word for word in re.split(r"(\$\w+)", text)]
    return tuple(word for word in words if word != "")


def explained(line: str, parts: Parts) -> int:
    """How many characters of a line are the fixed ones of a text, in their order and from its beginning on; 0 where
    the text is another. The line may stop before the text does."""
    at, found, free = 0, 0, False
    for part in parts:
        if part is None:
            free = True
            continue
        begins = line.find(part, at) if free else at if line.startswith(part, at) else -1
        if begins < 0:
            tail = next((i for i in range(at, len(line) if free else at + 1) if part.startswith(line[i:])), None)
            return found + len(line) - tail if tail is not None else found if free else 0
        at, found, free = begins + len(part), found + len(part), False
    return found if free or at == len(line) else 0


def is_of_the_code(line: str) -> bool:
    said = LABEL.sub("", line)
    title, _, message = said.partition(": ")
    if line.startswith(("error", "warning", "note")) and title.lower().replace(" ", "-") in CHECKS:
        return not message or is_of_the_code(message)
    said = re.split(r" {3,}|\b {2}", said)[-1]  # a table has a text in its last column
    return any(
        explained(text, parts) >= max(LITERAL, 0.28 * len(text))
        for text in (said, re.sub(r" \(.*\)$", "", said))  # what the kernel said stands in parentheses
        for parts in texts_of_the_code()
    )


@every_row("line", quoted_messages())
def test_a_message_that_is_quoted_is_one_of_the_code(line: str) -> None:
    assert is_of_the_code(line)


@every_row(
    "line",
    [
        "error: the box lost its network card",
        "warning: Too blue",
        "error: the box's host key is not known, so somebody can tell",
        "error: this disk is too old for Linux",
        "  next:    make it larger, or the file system smaller",
    ],
)
def test_a_message_that_no_code_gives_is_noticed(line: str) -> None:
    assert not is_of_the_code(line)


# --- names ------------------------------------------------------------------------------------------------------------

NEW = ("troubleshooting.md", "what-to-expect.md", "recipes.md")


@pytest.mark.parametrize("page", NEW)
def test_a_caveat_that_is_named_exists(page: str) -> None:
    sweeps = {path.stem for path in (paths.PARAMS / "sweeps").glob("*.yml")}
    named = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", (DOCS / page).read_text()))
    others = {"bench-fio", "btrfs-nocow", "look-and-remove", "index-url", "ssh-add"}
    assert named - sweeps - others <= set(CHECKS)


# --- read a report ----------------------------------------------------------------------------------------------------


def test_the_pictures_of_a_report_are_small_and_every_number_in_them_is_explained() -> None:
    text = (DOCS / "read-a-report.md").read_text()
    pictures = re.findall(r"!\[([^]]+)\]\((images/read-[\w-]+\.png)\)\n\n(.*?)(?=\n#|\n!|\Z)", text, re.DOTALL)
    assert len(pictures) == 5
    for says, name, below in pictures:
        assert (DOCS / name).stat().st_size < 300_000
        (last,) = re.findall(r"1 to (\d+)", says)
        numbers = re.findall(r"^(\d+)\. ", below, re.MULTILINE)
        assert numbers == [str(n + 1) for n in range(int(last))]


def test_the_sections_that_are_named_are_those_of_the_report() -> None:
    cells = json.loads((ROOT / "notebooks" / "20_report.ipynb").read_text())["cells"]
    titles = re.findall(r"^#+ (.+)$", "\n".join("".join(cell["source"]) for cell in cells), re.MULTILINE)
    evidence = (DOCS / "read-a-report.md").read_text().partition("\n## Evidence\n")[2].partition("\n## ")[0]
    named = re.findall(r"^- \*\*(.+?)\*\*:", evidence, re.MULTILINE)
    assert len(named) == 4
    assert {*named, "Trials in run order", "Trials", "Downloads", "Caveats", "Options in effect", "Results"} <= set(
        titles
    )
    headings = re.findall(r"^## (.+)$", (DOCS / "read-a-report.md").read_text(), re.MULTILINE)
    assert {"Caveats", "Options in effect", "Results", "Trials"} <= set(headings) & set(titles)


def test_every_sign_of_a_wrong_number_names_caveats_that_exist() -> None:
    signs = (DOCS / "what-to-expect.md").read_text().partition("## Signs")[2].partition("## Sources")[0]
    says = [row.split("|")[3] for row in signs.splitlines() if row.startswith("| ")][2:]
    named = {code for cell in says for code in re.findall(r"`([a-z-]+)`", cell)}
    assert named
    assert named <= set(CHECKS)

"""What surrounds the code: workflows, hooks, issue forms, dev container, Binder, citation, security, release."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from mountlab.core.errors import InputError
from mountlab_dev.needs import PACKAGES
from mountlab_dev.release import check_tag
from rows import every_row

ROOT = Path(__file__).parents[2]
TARGETS = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
WORKFLOWS = {path.stem: path for path in (ROOT / ".github" / "workflows").glob("*.yml")}
FORMS = {path.stem: path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config"}
PROJECT: Mapping[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CITATION: Mapping[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text())


def is_a_target(command: str) -> bool:
    """Whether a command is targets of make and nothing else, or .ci/run."""
    program, *words = command.strip().split(" ")
    return command.strip() == ".ci/run" or (program == "make" and bool(words) and set(words) <= TARGETS)


def test_a_command_with_logic_of_its_own_is_noticed() -> None:
    refused = ("make", "make check || true", "make no-such", "make check && make test", "pip install .", "make\ncheck")
    assert not any(map(is_a_target, refused))


# --- workflows --------------------------------------------------------------------------------------------------------


def workflow(name: str) -> dict[Any, Any]:
    parsed: dict[Any, Any] = yaml.safe_load(WORKFLOWS[name].read_text())
    return parsed


def steps(name: str) -> Iterator[dict[str, Any]]:
    for job in workflow(name)["jobs"].values():
        yield from job["steps"]


def runs(name: str) -> list[str]:
    return [step["run"] for step in steps(name) if "run" in step]


def test_each_workflow_runs_the_targets_of_its_purpose() -> None:
    assert {name: runs(name) for name in sorted(WORKFLOWS)} == {
        "ci": ["make check", ".ci/run"],
        "docs": ["make docs"],
        "nightly": ["make needs", "make test-all", "make coverage"],
        "release": ["make dist", "make upload"],
    }
    assert all(is_a_target(command) for name in WORKFLOWS for command in runs(name))


@every_row("name", sorted(WORKFLOWS))
def test_a_workflow_may_only_read_runs_once_at_a_time_and_stops_by_itself(name: str) -> None:
    parsed = workflow(name)
    assert parsed["permissions"] == {"contents": "read"}
    assert parsed["concurrency"]["group"].startswith("${{ github.workflow }}")
    for job in parsed["jobs"].values():
        assert 5 <= job["timeout-minutes"] <= 180
        assert job["runs-on"] == "ubuntu-24.04"


def test_only_what_uploads_gets_a_token_of_identity_and_in_an_environment() -> None:
    more = {
        (name, key): (job["permissions"], job.get("environment"))
        for name in WORKFLOWS
        for key, job in workflow(name)["jobs"].items()
        if "permissions" in job
    }
    assert more == {
        ("docs", "deploy"): (
            {"pages": "write", "id-token": "write"},
            {"name": "github-pages", "url": "${{ steps.deployment.outputs.page_url }}"},
        ),
        ("release", "publish"): ({"contents": "read", "id-token": "write"}, "release"),
    }
    assert "secrets." not in "".join(path.read_text() for path in WORKFLOWS.values())


def test_every_action_is_pinned_by_its_commit_with_its_version_beside_it() -> None:
    used = [line for path in WORKFLOWS.values() for line in path.read_text().splitlines() if "uses:" in line]
    assert len(used) >= 8
    for line in used:
        assert re.fullmatch(r" +(- )?uses: actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


def test_no_checkout_keeps_its_token() -> None:
    checkouts = [step for name in WORKFLOWS for step in steps(name) if "checkout@" in step.get("uses", "")]
    assert len(checkouts) >= 5
    assert all(step["with"] == {"persist-credentials": False} for step in checkouts)


def test_a_text_of_others_reaches_no_command_line() -> None:
    """`${{ }}` in `run:` puts the name of a tag or a branch into a shell."""
    assert not [command for name in WORKFLOWS for command in runs(name) if "${{" in command]
    (tag,) = (job["env"] for job in workflow("release")["jobs"].values() if "env" in job)
    assert tag == {"TAG": "${{ github.ref_name }}"}


def test_tests_on_real_mounts_run_where_these_are_allowed() -> None:
    for name, key in (("ci", "test"), ("nightly", "test-all")):
        container = workflow(name)["jobs"][key]["container"]
        assert container == {"image": f"python:{oldest_python()}-bookworm", "options": "--privileged"}


def oldest_python() -> str:
    version: str = PROJECT["requires-python"].removeprefix(">=")
    return version


# --- hooks, dev container, Binder -------------------------------------------------------------------------------------


def test_hooks_are_targets_of_make_and_fetch_nothing() -> None:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local"
    assert {hook["entry"]: hook["stages"] for hook in repository["hooks"]} == {
        "make lint": ["pre-commit"],
        "make check": ["pre-push"],
    }
    for hook in repository["hooks"]:
        assert is_a_target(hook["entry"])
        assert (hook["language"], hook["pass_filenames"]) == ("system", False)


def test_the_dev_container_is_made_by_make_and_cannot_reach_disks_of_its_host() -> None:
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    assert is_a_target(container["postCreateCommand"])
    assert container["image"].endswith(f":{oldest_python()}-bookworm")
    assert not {"privileged", "runArgs", "capAdd", "mounts"} & set(container)


def test_binder_reads_the_one_list_of_libraries() -> None:
    """With a folder of this name repo2docker would ignore environment.yml at the root."""
    assert not (ROOT / "binder").exists()
    assert not (ROOT / ".binder").exists()
    packages = (ROOT / "apt.txt").read_text().split()
    assert "fio" in packages
    assert set(packages) <= set(PACKAGES.values())


# --- issue forms ------------------------------------------------------------------------------------------------------

ATTRIBUTES = {
    "markdown": {"value"}, "input": {"label", "description", "placeholder"},
    "textarea": {"label", "description", "render"},
}  # fmt: skip
ASKED = {
    "wrong-figure": (["version", "figure", "expected", "bundle"], []),
    "box-fails": (["version", "check", "command"], ["sweep", "left"]),
    "log-not-read": (["version", "tool", "command", "log", "output"], []),
}
"""Of each form: what must be filled in, and what may be."""
COMMANDS = {
    "wrong-figure": ("mountlab --version", "mountlab publish RUN"),
    "box-fails": ("mountlab --version", "mountlab box check NAME", "mountlab box clean NAME"),
    "log-not-read": ("mountlab --version", "mountlab parse", "mountlab import"),
}


def fields(name: str) -> list[dict[str, Any]]:
    body: list[dict[str, Any]] = yaml.safe_load(FORMS[name].read_text())["body"]
    return body


def test_each_form_has_its_fields_and_no_others() -> None:
    required, optional = (
        {
            name: [
                field["id"]
                for field in fields(name)
                if "id" in field and field.get("validations", {}).get("required", False) is wanted
            ]
            for name in FORMS
        }
        for wanted in (True, False)
    )
    assert {name: (required[name], optional[name]) for name in FORMS} == ASKED


@every_row("name", sorted(ASKED))
def test_a_form_is_one_that_the_forge_shows(name: str) -> None:
    form = yaml.safe_load(FORMS[name].read_text())
    assert set(form) == {"name", "description", "labels", "body"}
    for field in form["body"]:
        kind = field["type"]
        assert set(field) <= {"type", "id", "attributes", "validations"}
        assert set(field["attributes"]) <= ATTRIBUTES[kind]
        assert ("value" if kind == "markdown" else "label") in field["attributes"]
        assert (kind == "markdown") is ("id" not in field)


@every_row("name", sorted(COMMANDS))
def test_a_form_names_the_commands_whose_output_it_asks_for(name: str) -> None:
    text = FORMS[name].read_text()
    assert all(f"`{command}" in text for command in COMMANDS[name])


# --- citation, security, release --------------------------------------------------------------------------------------


def test_the_citation_is_that_of_the_project() -> None:
    assert CITATION["cff-version"] == "1.2.0"
    assert CITATION["type"] == "software"
    assert CITATION["title"].lower() == PROJECT["name"]
    assert CITATION["version"] == PROJECT["version"]
    assert CITATION["license"] == PROJECT["license"]
    assert CITATION["authors"] == PROJECT["authors"]
    assert CITATION["abstract"].rstrip(".") == PROJECT["description"]
    assert isinstance(CITATION["date-released"], date)
    assert not {"doi", "url", "identifiers", "repository-code"} & set(CITATION), "none of them exists yet"


def test_the_version_is_named_by_the_citation_and_the_changelog() -> None:
    check_tag(f"v{PROJECT['version']}", ROOT)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    (tmp_path / "CITATION.cff").write_text("version: 1.2.0\n")
    (tmp_path / "CHANGELOG.md").write_text("## Unreleased\n\n## 1.2.0\n")
    check_tag("v1.2.0", tmp_path)
    return tmp_path


@every_row(
    ("tag", "file", "text", "parts"),
    [
        ("1.2.0", "", "", ("another version than the project", "tag 1.2.0, version 1.2.0", "v1.2.0")),
        ("v1.3.0", "", "", ("project.version", "tag v1.3.0, version 1.2.0", "tag that commit")),
        ("v1.2.0", "CITATION.cff", "version: 1.1.0\n", ("CITATION.cff: version", "1.1.0", "date-released")),
        ("v1.2.0", "CHANGELOG.md", "## 1.2.0rc1\n", ("no section of this version", "`## 1.2.0`", "Unreleased")),
    ],
)
def test_a_tag_that_does_not_fit_is_refused(
    tag: str, file: str, text: str, parts: tuple[str, ...], project: Path
) -> None:
    before = (project / file).read_text() if file else ""
    if file:
        (project / file).write_text(text)
    with pytest.raises(InputError) as refused:
        check_tag(tag, project)
    if file:
        (project / file).write_text(before)
    assert [part for part in parts if part not in str(refused.value)] == []


def test_security_says_where_to_report_and_what_counts() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings == ["Report a vulnerability", "What counts", "Supported versions"]
    assert "Report it in private" in text
    assert not re.search(r"\S@\S|://", text), "an address that does not exist yet"
    for page in ("CONTRIBUTING.md", ".github/ISSUE_TEMPLATE/box-fails.yml"):
        assert "SECURITY.md" in (ROOT / page).read_text()


def test_the_release_is_one_page_and_its_commands_are_targets() -> None:
    text = (ROOT / "docs" / "releasing.md").read_text()
    assert len(text.split()) <= 350
    named = re.findall(r"`make ([a-z-]+)[^`]*`", text)
    assert {"audit", "bench-gate", "env", "test-all", "dist"} <= set(named) <= TARGETS
    assert set(re.findall(r"workflow `([\w.]+)`", text)) == {"release", "release.yml"}

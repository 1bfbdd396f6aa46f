"""A bundle as RO-Crate 1.1 tells it to other programs: what its files are, who made them, and by which runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mountlab.core.numbers import listed
from mountlab.publish.bundle import DEFAULT_AUTHOR, Bundle, PublishedRun

SPDX = "https://spdx.org/licenses/"
_TYPES = {
    ".html": "text/html", ".json": "application/json", ".jsonl": "application/jsonl", ".csv": "text/csv",
    ".md": "text/markdown", ".ipynb": "application/x-ipynb+json", ".parquet": "application/vnd.apache.parquet",
    ".yml": "application/yaml", ".cff": "application/yaml", ".lock": "text/plain", ".zip": "application/zip",
}  # fmt: skip
_ABOUT = {
    "index.html": "The bundle, as a page", "README.md": "The bundle, in words", "LICENSE": "The licence",
    "CITATION.cff": "How to cite the bundle", "bundle.json": "The bundle, for programs",
    "identities.json": "What was replaced, by kind and count", "run.json": "Parameters, box facts, versions, order",
    "sweep.yml": "The sweep that was run", "box.yml": "The box file",
    "entry.json": "The bundle, for an index of results",
    "10_run_sweep.ipynb": "The notebook that runs a sweep", "20_report.ipynb": "The notebook that makes a report",
    "50_compare_runs.ipynb": "The notebook that compares runs",
    "trials.jsonl": "The journal: one line a trial", "measurements.parquet": "Every figure of every trial",
    "measurements.csv": "Every figure of every trial", "estimates.csv": "Mean and interval of each cell",
    "comparisons.csv": "Ratios to the baseline, with verdicts",
    "latency_comparisons.csv": "Ratios of latency percentiles to the baseline",
    "condition_changes.csv": "How figures and ratios change in other states and beside neighbours",
    "caveats.csv": "Reasons to doubt a figure",
    "report.html": "The report, one page", "requirements.lock": "The tested version of every library",
    "environment.yml": "The environment for conda", "versions.json": "The versions that made this bundle",
    "published.json": "Published figures that ours stand beside", "exclude.yml": "Trials that do not count, and why",
    "derived.json": "Checksums of the tables, and of what they were made from",
    "SHA256SUMS": "Checksums of the files beside it",
}  # fmt: skip


def metadata(bundle: Bundle, files: Sequence[str]) -> dict[str, Any]:
    """ro-crate-metadata.json of a bundle with these files; the raw output of a run is described as one directory."""
    from rocrate.rocrate import ROCrate

    crate = ROCrate(version="1.1")
    crate.name, crate.description = bundle.title, description(bundle)
    crate.datePublished, crate.license = bundle.date, {"@id": f"{SPDX}{bundle.licence}"}
    licence = {"@type": "CreativeWork", "name": bundle.licence, "description": f"The licence {bundle.licence} of SPDX"}
    _add(crate, f"{SPDX}{bundle.licence}", licence)
    authors = [
        _add(crate, f"#author-{place}", {"@type": "Organization" if name == DEFAULT_AUTHOR else "Person", "name": name})
        for place, name in enumerate(bundle.authors, start=1)
    ]
    crate.root_dataset["author"] = authors[0] if len(authors) == 1 else authors
    publisher = {"@type": "Organization", "name": listed(bundle.authors)}
    crate.root_dataset["publisher"] = _add(crate, "#publisher", publisher)
    software = {"@type": "SoftwareApplication", "name": "Mountlab", "version": bundle.mountlab_version}
    tool = _add(crate, "#mountlab", software)
    for name in files:
        if "/raw/" not in name:
            crate.add_file(dest_path=name, source=None, properties=_file(name, bundle), validate_url=False)
    for run in bundle.runs:
        _add_run(crate, run, tool)
    generated: dict[str, Any] = crate.metadata.generate()
    return generated


def description(bundle: Bundle) -> str:
    """Return what the bundle is, in a sentence for each run."""
    questions = " ".join(" ".join(run.question.split()) for run in bundle.runs)
    return f"Measurements of file systems, with raw output, figures and reports. {questions}"


def _file(name: str, bundle: Bundle) -> dict[str, Any]:
    last = name.rpartition("/")[2]
    about = _ABOUT.get(last, f"{last} of the bundle")
    if last == "box.yml" and bundle.replaced is not None:
        about += ", without the names in it"
    if last.endswith(".ipynb"):
        about += ", as it was executed" if name.startswith(("runs/", "comparisons/")) else ", before it is run"
    suffix = f".{last.rpartition('.')[2]}"
    return {"name": last, "description": about, "encodingFormat": _TYPES.get(suffix, "text/plain")}


def _add(crate: Any, identifier: str, properties: dict[str, Any]) -> Any:
    from rocrate.model.contextentity import ContextEntity

    return crate.add(ContextEntity(crate, identifier, properties=properties))


def _add_run(crate: Any, run: PublishedRun, tool: Any) -> None:
    """The run's directory, its raw output, and the action that made them."""
    properties = {"name": run.run_id, "description": " ".join(run.question.split())}
    directory = crate.add_dataset(dest_path=f"{run.path}/", source=None, properties=properties)
    raw = {"name": f"raw output of {run.run_id}", "description": "What was run in each trial, and what it said"}
    crate.add_dataset(dest_path=f"{run.path}/raw/", source=None, properties=raw)
    action = {
        "@type": "CreateAction",
        "name": f"run of the sweep {run.name} on {run.box}",
        "startTime": run.created_at,
        "endTime": run.finished_at or run.created_at,
        "instrument": {"@id": tool.id},
        "object": {"@id": f"{run.path}/sweep.yml"},
        "result": {"@id": directory.id},
        "description": " ".join(run.question.split()),
    }
    _add(crate, f"#run-{run.run_id}", action)

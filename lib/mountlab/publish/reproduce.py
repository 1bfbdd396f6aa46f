"""A published bundle, checked as a stranger would: its checksums, and its figures made again from its raw output.

Nothing in a bundle is executed by that. Archives are unpacked without links, without names that lead elsewhere, and up
to a size; the bundle itself is only read.
"""

from __future__ import annotations

import csv
import hashlib
import json
import lzma
import os
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from mountlab.analysis.compare.runs import compare_runs
from mountlab.analysis.promises import answer_sentence
from mountlab.analysis.trust import trust_of
from mountlab.core import disk
from mountlab.core.checksums import MANIFEST, read_manifest, safe_parts
from mountlab.core.errors import MountlabError, StoreError, UnsafeError, in_one_line
from mountlab.core.safe_yaml import as_yaml
from mountlab.core.text import visible
from mountlab.core.units import GIB, format_bytes
from mountlab.programs import TOOLS
from mountlab.programs.command import CommandTool
from mountlab.publish import bundle
from mountlab.publish.bundle import DESCRIPTION, TABLES, BundleCheck, Damage, Difference, PublishedRun, differences
from mountlab.report import execute
from mountlab.results import altered, info, programs, store, tables, writer
from mountlab.results import paths as places
from mountlab.results.journal import read_as_it_is
from mountlab.results.listing import DAMAGE
from mountlab.results.store import Run
from mountlab.results.why import file_of
from mountlab.sentences.comparison import comparison_text
from mountlab.sweep.sweep_file import Resolved
from mountlab.wording.caveats import caveat_counts

LARGEST, MOST_FILES = 16 * GIB, 1_000_000
"""What is unpacked at most: far more than any bundle has, and less than would fill most disks unseen."""
_LARGEST_DESCRIPTION = 64 * 1024 * 1024
_PIECE = 1024 * 1024
_ALL = "all tables"


@contextmanager
def opened(path: Path) -> Iterator[Path]:
    """Open a bundle as a folder; a zip is unpacked for the time. Raises StoreError."""
    if path.is_dir():
        yield path.resolve()
        return
    if not path.exists():
        raise StoreError("no such bundle", where=disk.path_text(path), next_step="name a folder or a zip of `publish`")
    with tempfile.TemporaryDirectory(prefix="mountlab-bundle-") as place:
        folder = Path(place).resolve()
        _unpack(path, folder)
        inside = list(folder.iterdir())
        if (folder / DESCRIPTION).exists():
            yield folder
        elif len(inside) == 1 and inside[0].is_dir():
            yield inside[0]
        else:
            raise StoreError("not a bundle", where=disk.path_text(path), got=f"no {DESCRIPTION} in it")


def check(place: Path) -> BundleCheck:
    """Check the checksums, and make all figures again. Reads only.

    Raises StoreError for what is no bundle. Where a file is damaged, figures are still made of what is there.
    """
    description = _description(place)
    paths = _paths(place, description)
    damage = damaged(place)
    read = [_read_again(path) for path in paths]
    changes = [difference for _, of_run in read for difference in of_run]
    lost = tuple(difference.run_id for difference in changes if difference.table == _ALL)
    if not lost:
        changes += _contradictions(place, description, [run for run, _ in read if run is not None])
    return BundleCheck(
        title=str(description.get("title", "")),
        runs=tuple(path.name for path in paths),
        damage=tuple(damage),
        differences=tuple(changes),
        figures=sum(map(_count_figures, paths)),
        versions=tuple(_other_versions(description)),
        lost=lost,
    )


def again(place: Path, box: str) -> Iterator[tuple[str, Path]]:
    """Run each sweep of a bundle on a box of ours, as `mountlab run` does. Yields what the two runs say beside each
    other, and the page that does. Published figures stand in it where this Mountlab has them.
    """
    from mountlab.results.earlier import runs_differ  # slow to import; the next one connects to a box
    from mountlab.runner import workflow

    for path in _runs(place, _description(place)):
        new = workflow.run(sweep_of(path), box=box)
        execute.write_report(new)
        page = execute.write_comparison(path, new)
        runs = store.load_run(path), store.load_run(new)
        yield comparison_text(compare_runs(runs, runs_differ(runs))), page


def sweep_of(path: Path) -> Resolved:
    """Return the sweep of a published run, to be run again. Raises StoreError for logs, which cannot be run again."""
    resolved = info.read_sweep(path)
    if resolved.sweep.imported:
        raise StoreError("imported logs cannot be run again", where=path.name, got="no sweep, only its logs")
    published = tuple(name for name in resolved.sweep.published if places.params_file(places.PUBLISHED, name).is_file())
    sweep = replace(resolved.sweep, published=published, extended=None)  # an extended run is repeated in one go
    return Resolved(sweep, {**resolved.parameters, "published": list(sweep.published)})


def refuse_commands(place: Path, *, allowed: bool) -> None:
    """Raise UnsafeError where running the sweeps again would run command lines that the bundle brings with it."""
    sweeps = [info.read_sweep(path).sweep for path in _runs(place, _description(place))]
    neighbours = [neighbour.workload for sweep in sweeps for neighbour in sweep.neighbours.values()]
    workloads = [*(workload for sweep in sweeps for workload in sweep.workloads), *neighbours]
    options = [workload.options for workload in workloads if isinstance(TOOLS.own.get(workload.tool), CommandTool)]
    texts = (str(chosen.get(key, "")) for chosen in options for key in _COMMAND_LINES)
    lines = dict.fromkeys(text for text in texts if text not in ("", "{}"))
    if lines and not allowed:
        raise UnsafeError(
            "the bundle brings command lines of its own, which would run on your box",
            where="bundle",
            got="; ".join(lines),
            next_step="read them; then add --allow-commands",
        )


_COMMAND_LINES = ("argv", "prepare", "version", "environment")
"""Options that say what runs; a variable of the environment, such as BASH_ENV, can too."""


# --- what a bundle states about itself --------------------------------------------------------------------------------


def _description(place: Path) -> dict[str, Any]:
    file = place / DESCRIPTION
    if not _is_regular(file) or file.stat().st_size > _LARGEST_DESCRIPTION:
        raise StoreError(
            "not a bundle", where=disk.path_text(place), got=f"no {DESCRIPTION}", next_step="see `publish`"
        )
    try:
        description = json.loads(file.read_text())
    except (ValueError, RecursionError) as error:
        raise StoreError("the bundle's description is not whole", where=DESCRIPTION, got=str(error)) from error
    runs = description.get("runs") if isinstance(description, dict) else None
    if not isinstance(description, dict) or not isinstance(runs, list) or not runs:
        raise StoreError("not a bundle of Mountlab's", where=DESCRIPTION, got="no runs")
    if description.get("format") != bundle.FORMAT:
        got, hint = str(description.get("format")), "use the Mountlab that made it, or a later one"
        raise StoreError(
            "a bundle of another format", where=DESCRIPTION, got=got, allowed=str(bundle.FORMAT), next_step=hint
        )
    return description


def _paths(place: Path, description: Mapping[str, Any]) -> list[Path]:
    """Return the directories of the runs of a bundle. Raises StoreError for a name that would lead elsewhere."""
    ids = [run.get("run_id") if isinstance(run, dict) else None for run in description["runs"]]
    return [place / "runs" / bundle.plain_name(str(run_id), DESCRIPTION) for run_id in ids]


def _runs(place: Path, description: Mapping[str, Any]) -> list[Path]:
    """Return the directories of the runs after a check of the names in them that are used as names of files."""
    paths = _paths(place, description)
    for path in paths:
        _refuse_links(path)
        _check_names(path, _names(path))
    return paths


def _names(run: Path) -> list[str]:
    """Return the names in a run that a reader of it uses as names of files."""
    sweep = info.read_sweep(run).sweep
    trials = read_as_it_is(run).trials
    mounts = [trial.mount for trial in trials if trial.mount or not sweep.imported]  # no mount of ours is in logs
    return list(dict.fromkeys([*(trial.trial_id for trial in trials), *mounts, *(fs.name for fs in sweep.filesystems)]))


def _check_names(run: Path, names: list[str]) -> None:
    for name in names:
        bundle.plain_name(name, f"{run.name}: trials.jsonl")


def _refuse_links(place: Path) -> None:
    """Raise StoreError for a link, which could lead anywhere on this machine, and a pipe, which would wait for ever."""
    for path in [place, *place.rglob("*")]:
        kind = path.lstat().st_mode if path.exists() or path.is_symlink() else stat.S_IFLNK
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
            raise StoreError(
                "a bundle holds files and directories only", where=disk.path_text(path), got="a link, or another kind"
            )


def _is_regular(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _other_versions(description: Mapping[str, Any]) -> Iterator[str]:
    stated = description.get("versions")
    here = writer.versions()
    for name, version in stated.items() if isinstance(stated, dict) else ():
        if name != "control kernel" and here.get(name) != version:
            yield f"{name} {version}, here {here.get(name, 'absent')}"


# --- checksums --------------------------------------------------------------------------------------------------------


def damaged(place: Path) -> list[Damage]:
    """Return every file that is damaged, missing or extra, by the checksums. Raises StoreError for links."""
    _refuse_links(place)
    if not _is_regular(place / MANIFEST):
        return [Damage("missing", MANIFEST)]
    sums = read_manifest((place / MANIFEST).read_text(errors="replace"))
    present = {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()} - {MANIFEST}
    files = [Damage("missing", name) for name in sums if name not in present]
    files += [Damage("extra", name) for name in present if name not in sums]
    for name, digest in sums.items():
        if name in present:
            with (place / name).open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                    files.append(Damage("damaged", name))
    return sorted(files, key=lambda damage: (damage.what, damage.name))


# --- figures ----------------------------------------------------------------------------------------------------------


def differing(run: Path, again: Run) -> list[Difference]:
    """Return where the published tables, profiles and sweep of a run are not what its raw output and its run.json give.
    `again`: the run as it is, with its figures from the raw output."""
    texts = tables.texts(again, *TABLES, "caveats")
    changes = [
        difference
        for name, text in texts.items()
        for difference in differences(run.name, name, _published(run, name), text)
    ]
    binary = {"measurements.parquet": texts["measurements"]}
    if again.why:
        binary |= {file_of(name): tables.csv_text(frame) for name, frame in again.why.frames.items()}
    for name, text in binary.items():
        file = run / name
        changes += differences(run.name, name, parquet_text(file) if _is_regular(file) else "", text)
    for name, data in programs.derived_files(again).items():
        if not _is_regular(run / name) or (run / name).read_bytes() != data:
            got, made = "other ones", "those of its recorded system calls"
            changes.append(Difference(run.name, name, "all programs", "figures", got, made))
    sweep = run / "sweep.yml"
    if not _is_regular(sweep) or sweep.read_bytes() != as_yaml(again.info.parameters).encode():
        changes.append(Difference(run.name, sweep.name, "all keys", "parameters", "other ones", "those of run.json"))
    for change in altered.altered(run):
        row = os.path.relpath(change.where, disk.path_text(run))
        changes.append(Difference(run.name, "checksums", row, "what was measured", "as it was written", change.what))
    return changes


def _read_again(run: Path) -> tuple[Run | None, list[Difference]]:
    """Return a run as it is, and where it differs; where no figures can be made of a damaged run, that is the one
    difference. Raises StoreError for names that would lead elsewhere."""
    try:
        names = _names(run)
    except DAMAGE as error:
        return None, [_lost(run, error)]
    _check_names(run, names)
    try:
        again = store.load_run(run, as_it_is=True)
        return again, differing(run, again)
    except DAMAGE as error:
        return None, [_lost(run, error)]


def _lost(run: Path, error: BaseException) -> Difference:
    parts = [error.what, error.where, error.got] if isinstance(error, MountlabError) else [type(error).__name__, error]
    why = "; ".join(in_one_line(str(part))[:300] for part in parts if part)
    return Difference(run.name, _ALL, "all rows", "figures", "published", f"none can be made again: {why}")


def _count_figures(run: Path) -> int:
    """Return how many figures a run publishes; none in a table that cannot be read."""
    try:
        return sum(bundle.count_figures(_published(run, table)) for table in TABLES)
    except csv.Error:
        return 0


def _contradictions(place: Path, description: Mapping[str, Any], again: Sequence[Run]) -> Iterator[Difference]:
    """Yield where the descriptions of a bundle, which its index shows, contradict the figures."""
    runs = [published_run(run) for run in again]
    try:
        entry = json.loads((place / bundle.ENTRY).read_text())
    except DAMAGE:
        entry = None
    stated = [
        (run.run_id, DESCRIPTION, of_run, json.loads(json.dumps(run.described())))
        for run, of_run in zip(runs, description["runs"], strict=True)
    ]
    stated.append(
        (runs[0].run_id, bundle.ENTRY, entry if isinstance(entry, dict) else {}, bundle.entry_of_figures(runs))
    )
    for run_id, file, theirs, ours in stated:
        for key, value in ours.items():
            if theirs.get(key) != value:
                yield Difference(run_id, file, "the run", key, str(theirs.get(key, "absent")), str(value))


def parquet_text(path: Path) -> str:
    """Return a Parquet file as CSV. Raises StoreError where it is none."""
    try:
        return tables.csv_text(pd.read_parquet(path))
    except (ValueError, OSError) as error:
        raise StoreError("the table cannot be read", where=disk.path_text(path), got=str(error)) from error


def _published(run: Path, table: str) -> str:
    file = run / f"{table}.csv"
    return visible(file.read_text(errors="replace")) if _is_regular(file) else ""


def published_run(run: Run) -> PublishedRun:
    """Return what the pages of a bundle show of a run, by its figures."""
    return PublishedRun(
        run_id=run.info.run_id,
        name=run.sweep.name,
        question=" ".join(run.sweep.question.split()),
        box=run.info.box_name,
        created_at=run.info.created_at,
        finished_at=run.info.finished_at,
        status=run.info.status,
        sentences=(answer_sentence(run, trust_of(run)),),
        trials=len(run.trials),
        caveats=caveat_counts((caveat.severity, caveat.code) for caveat in run.caveats),
    )


# --- archives ---------------------------------------------------------------------------------------------------------


def _unpack(archive: Path, place: Path) -> None:
    """A zip into an empty directory. Raises StoreError for what no bundle has: before anything is written, where its
    list of names tells it."""
    try:
        with zipfile.ZipFile(archive) as packed:
            entries = packed.infolist()
            _check_entries(entries)
            for entry in entries:
                _unpack_one(packed, entry, place)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError, EOFError, OSError) as error:
        why = str(error) or type(error).__name__
        raise StoreError("the archive cannot be unpacked", where=disk.path_text(archive), got=why) from error


def _check_entries(entries: list[zipfile.ZipInfo]) -> None:
    total, seen = sum(entry.file_size for entry in entries), set[str]()
    if total > LARGEST or len(entries) > MOST_FILES:
        raise StoreError(
            "too large for a bundle",
            where="archive",
            got=f"{format_bytes(total)} in {len(entries)} files",
            allowed=f"{format_bytes(LARGEST)} in {MOST_FILES}",
        )
    for entry in entries:
        name = entry.filename.rstrip("/")
        safe_parts(name)
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR) or name.lower() in seen:
            raise StoreError("a bundle holds files and directories only, each once", where="archive", got=repr(name))
        seen.add(name.lower())


def _unpack_one(packed: zipfile.ZipFile, entry: zipfile.ZipInfo, place: Path) -> None:
    target = place.joinpath(*safe_parts(entry.filename.rstrip("/")))
    if entry.is_dir():
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    left = entry.file_size
    with packed.open(entry) as source, target.open("xb") as sink:
        while piece := source.read(_PIECE):
            left -= len(piece)
            if left < 0:
                raise StoreError("a file is larger than it says", where="archive", got=repr(entry.filename))
            sink.write(piece)

"""Runs to a bundle: a folder and a zip that stand alone, without the names of machines and people.

The order of it: copy each run with its identities replaced, derive figures and reports from the copy, describe it all,
and then check the finished bundle as a stranger would. It appears whole, or not at all.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import re
import shutil
import stat
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from mountlab.analysis.compare.runs import compare_runs
from mountlab.box import ssh as box
from mountlab.core import disk
from mountlab.core.checksums import MANIFEST, manifest, safe_parts
from mountlab.core.errors import MountlabError, PlanError, StoreError
from mountlab.core.places import SHIPPED, WORKSPACE
from mountlab.core.run_info import RunInfo
from mountlab.core.safe_yaml import as_yaml
from mountlab.core.trial_files import TrialFiles
from mountlab.publish import bundle, bundle_view, crate, reproduce
from mountlab.publish.bundle import DESCRIPTION, ENTRY, TABLES, Bundle
from mountlab.publish.decoded import COMPRESSED, unpacked
from mountlab.publish.identities.known import control_identities, run_identities
from mountlab.publish.identities.pages import page_with
from mountlab.publish.identities.pseudonyms import Pseudonyms
from mountlab.publish.last_search import Leak, search
from mountlab.publish.seal_again import seal_again
from mountlab.publish.sieve import Sieve
from mountlab.publish.staging import ARCHIVE, BUNDLE, staging
from mountlab.report import execute
from mountlab.results import programs, records, store, tables, why, writer
from mountlab.results.info import read_box
from mountlab.results.journal import whole_lines
from mountlab.results.paths import RESULTS, notebook_path
from mountlab.results.run_file import read_record, write_record
from mountlab.results.store import Run
from mountlab.sentences.comparison import run_titles

DEFAULT_LICENCE = "CC-BY-4.0"
CLEAN_NOTEBOOKS = ("10_run_sweep.ipynb", "20_report.ipynb", "50_compare_runs.ipynb")
ENVIRONMENT = ("requirements.lock", "environment.yml")
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest moment that a zip can tell: the same in every zip."""

Replace = Callable[[str], str]
Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """How a bundle is to be made."""

    to: Path | None = None
    title: str | None = None
    authors: tuple[str, ...] = ()
    licence: str = DEFAULT_LICENCE
    keep_identities: bool = False
    accept: tuple[str, ...] = ()
    """Fingerprints of what looks like a secret or a name, and is none."""


def publish(
    paths: Sequence[Path], wishes: Wishes, *, results: Path = RESULTS, say: Say = lambda _: None
) -> tuple[Path, Path]:
    """Make a bundle of runs, and return its folder and its zip. `say` is given a line as each step begins.

    Raises StoreError where a run cannot be read, is named twice, or the place is taken; MountlabError where the
    finished bundle does not hold the figures of the runs, or still holds what should have been replaced.
    """
    wishes = replace(wishes, licence=bundle.check_licence(wishes.licence))
    runs = [store.load_run(path) for path in paths]
    ids = [run.info.run_id for run in runs]
    if twice := sorted({run_id for run_id in ids if ids.count(run_id) > 1}):
        raise StoreError("a run is in a bundle once", where="publish", got=", ".join(twice))
    names = None if wishes.keep_identities else _pseudonyms(runs)
    sweeps = (names.text(run.sweep.name) if names else run.sweep.name for run in runs)
    title = wishes.title or bundle.of_same_title(sweeps)
    target = wishes.to.absolute() if wishes.to else _free_place(results, title, runs)
    if target.exists() or _zip_of(target).exists():
        raise StoreError("the place is taken", where=disk.path_text(target), next_step="name another with --to")
    with staging(target.parent) as directory:
        place, archive = directory / BUNDLE, directory / ARCHIVE
        place.mkdir()
        _fill(place, runs, names, title, wishes, say)
        say("checking the figures of the bundle against its raw output")
        _check(place, runs, names)
        say("searching the bundle for names and secrets")
        _check_leaks(place, names, title, wishes)
        say("packing the zip")
        _pack(place, archive, target.name)
        place.replace(target)
        try:
            archive.replace(_zip_of(target))
        except BaseException:
            shutil.rmtree(target)
            raise
    return target, _zip_of(target)


def _zip_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.zip")


def _free_place(results: Path, title: str, runs: Sequence[Run]) -> Path:
    """Return a name that no bundle has: old ones are never overwritten."""
    day = max((run.info.finished_at or run.info.created_at) for run in runs)[:10]
    base = f"bundle-{bundle.slug(title)}-{day}"
    names = (base, *(f"{base}-{number}" for number in range(2, 1000)))
    return next(results / name for name in names if not ((results / name).exists() or _zip_of(results / name).exists()))


# --- what tells a machine or a person ---------------------------------------------------------------------------------


def _pseudonyms(runs: Sequence[Run]) -> Pseudonyms:
    identities = [identity for run in runs for identity in run_identities(run.info, _texts(run.path))]
    ssh = [box.ssh_names(read_box(run.path)) for run in runs if not run.sweep.imported]  # that was on no box of ours
    named = {key: [name for names in ssh for name in names.get(key, ())] for key in ("host", "user")}
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user number without a name
        user = ""
    machine_id = Path("/etc/machine-id")
    identities += control_identities(
        host=os.uname().nodename,
        user=user,
        home=str(Path.home()),
        machine_id=machine_id.read_text().strip() if machine_id.exists() else "",
        ssh=named,
        paths=(str(SHIPPED), str(WORKSPACE), str(RESULTS), str(Path.cwd()), *(str(run.path.parent) for run in runs)),
    )
    clients = {name for run in runs for name in run.sweep.clients}
    return Pseudonyms(identities, {run.info.run_id: run.info.box_name for run in runs}, clients)


def _texts(run: Path) -> Iterator[str]:
    for file in (run / "run.json", run / "trials.jsonl", *_published_files(run / "raw")):
        yield file.read_text(errors="surrogateescape")


def _published_files(raw: Path) -> list[Path]:
    """Return the files of raw output that are published with identities replaced: traces are not."""
    return [file for file in _files(raw) if file.name not in (*why.NAMES_A_MACHINE, programs.CALLS)]


def _files(directory: Path) -> list[Path]:
    """Return every file below a directory, sorted. Raises StoreError for anything that is neither file nor
    directory."""
    paths = sorted(directory.rglob("*"))
    for path in paths:
        kind = path.lstat().st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
            raise StoreError(
                "only files and directories can be published", where=disk.path_text(path), got="another kind"
            )
    return [path for path in paths if path.is_file()]


# --- the content ------------------------------------------------------------------------------------------------------


def _fill(place: Path, runs: Sequence[Run], names: Pseudonyms | None, title: str, wishes: Wishes, say: Say) -> None:
    """Write everything but the zip, the checksums last."""
    copied_runs = []
    for number, run in enumerate(runs, start=1):
        say(f"copying run {number} of {len(runs)}, and making its report: {run.info.run_id}")
        copied_runs.append(_derive(_copy_run(place, run, names)))
    if len(runs) > 1:
        say("comparing the runs")
    comparisons = dict(_compare(place, copied_runs))
    replace_places = _without_places(place, names)
    for notebook in sorted(place.rglob("*.ipynb")):
        cleaned = bundle.without_clock(json.loads(notebook.read_text()), replace_places)
        _put(notebook, json.dumps(cleaned, indent=1) + "\n")
    for page in sorted(place.rglob("report.html")):
        _put(page, page_with(page.read_text(), replace_places))
    for name in CLEAN_NOTEBOOKS:
        clean = bundle.without_outputs(json.loads(notebook_path(Path(name).stem).read_text()))
        _put(place / "notebooks" / name, json.dumps(clean, indent=1) + "\n")
    for name in ENVIRONMENT:
        _put(place / "environment" / name, (SHIPPED / name).read_bytes())
    _put(place / "environment" / "versions.json", json.dumps(writer.versions(), indent=1))
    described = Bundle(
        title=title,
        authors=wishes.authors or (bundle.DEFAULT_AUTHOR,),
        licence=wishes.licence,
        runs=tuple(map(reproduce.published_run, copied_runs)),
        comparisons=comparisons,
        replaced=tuple(names.summary()) if names else None,
        ordinary=names.ordinary() if names else (),
        versions=writer.versions(),
        mountlab_version=metadata.version("mountlab"),
    )
    _describe(place, described)
    sums = {_name(place, file): hashlib.sha256(file.read_bytes()).hexdigest() for file in _files(place)}
    _put(place / MANIFEST, manifest(sums))


def _copy_run(place: Path, run: Run, names: Pseudonyms | None) -> Path:
    """Copy the measurements, with identities replaced; derived files are made again."""
    value: Callable[[Any], Any] = names.value if names else lambda record: record
    record = value(read_record(run.path))
    info = RunInfo.from_record(record)
    copy = place / "runs" / info.run_id
    copy.mkdir(parents=True)
    write_record(copy, record)
    _put(copy / "sweep.yml", as_yaml(info.parameters))
    _put(copy / "box.yml", as_yaml({key: entry for key, entry in info.box.items() if entry not in (None, "", [])}))
    if info.published:
        _put(copy / "published.json", json.dumps(info.published, indent=1))
    lines = whole_lines(run.path / "trials.jsonl")
    _put(copy / "trials.jsonl", "".join(f"{json.dumps(value(json.loads(line)))}\n" for line in lines))
    if (run.path / "exclude.yml").exists():
        _put(copy / "exclude.yml", (names.text if names else str)((run.path / "exclude.yml").read_text()))
    raw = run.path / "raw"
    for file, content in _replaced(_published_files(raw), names) if names else _as_they_are(_files(raw)):
        name = _name(run.path, file)
        _put(copy / (names.text(name) if names else name), content)
    if names:
        # What the traces of a run explain stands in their place: they cannot be searched for identities.
        for trial_id, explained in run.explained().items():
            replaced = names.value(json.loads(why.as_json(explained)))
            _put(copy / "raw" / names.text(trial_id) / why.EXPLAINED, json.dumps(replaced))
        for trial in run.programs:
            if trial.profile:
                text = programs.profile_text(trial.profile)
                _put(copy / "raw" / names.text(trial.trial_id) / programs.PROFILE, text)
    seal_again(copy)
    return copy


def _as_they_are(files: Iterable[Path]) -> Iterator[tuple[Path, bytes]]:
    return ((file, file.read_bytes()) for file in files)


def _replaced(files: Iterable[Path], names: Pseudonyms) -> Iterator[tuple[Path, bytes]]:
    """Yield files and their contents with identities replaced."""
    for (file, data), may_tell in Sieve(names.expressions()).sift(_as_they_are(files), lambda read: read[1]):
        yield file, _content(file, data, names, may_tell=may_tell)


def _content(file: Path, data: bytes, names: Pseudonyms, *, may_tell: bool) -> bytes:
    if data.startswith(COMPRESSED):
        if _NUMBERS.fullmatch(b"".join(unpacked(data, disk.path_text(file)))):
            return data
        raise StoreError(
            "a compressed file cannot be searched for identities",
            where=disk.path_text(file),
            next_step="unpack it, or publish with --keep-identities",
        )
    if file.name in _COMMANDS:
        with suppress(ValueError, RecursionError):  # not as we wrote it
            return json.dumps(names.value(json.loads(data))).encode()
    return names.data(data) if may_tell else data


_NUMBERS = re.compile(rb"[\d,\s]*")
"""What the log of a search holds: times and sizes, no name of anything."""
_COMMANDS = (TrialFiles.ARGV, TrialFiles.COMMANDS)
"""Files of raw output that hold commands as JSON: in its text a name could run into an escape before it."""


def _name(place: Path, file: Path) -> str:
    name = file.relative_to(place).as_posix()
    safe_parts(name)
    return name


def _put(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode(errors="surrogateescape") if isinstance(content, str) else content)


def _derive(copy: Path) -> Run:
    """Make tables and report from the copy alone, and return it."""
    run = store.load_run(copy)
    tables.write_derived(run)
    _put(copy / "measurements.csv", tables.texts(run, "measurements")["measurements"])
    execute.write_report(copy)
    (copy / records.FILE).unlink()  # made again from raw output, which is searched for identities
    return run


def _compare(place: Path, runs: Sequence[Run]) -> Iterator[tuple[str, str]]:
    """Yield each run beside the first before it with which it has figures in common."""
    for number, other in enumerate(runs):
        earlier = next((run for run in runs[:number] if _comparable(run, other)), None)
        if earlier:
            page = execute.write_comparison(earlier.path, other.path, results=place / "comparisons")
            yield _name(place, page.parent), " and ".join(run_titles((earlier, other)))


def _comparable(a: Run, b: Run) -> bool:
    try:
        compare_runs((a, b))
    except PlanError:  # nothing in common
        return False
    return True


def _without_places(place: Path, names: Pseudonyms | None) -> Replace:
    """Return what takes the places of this machine out of a text: those of the bundle begin at the bundle."""
    ours = {f"{place}/": "", str(place): ".", f"{disk.path_text(place)}/": "", disk.path_text(place): "."}

    def replaced(text: str) -> str:
        for old, new in ours.items():
            text = text.replace(old, new)
        return names.text(text, patterns=False) if names else text

    return replaced


def _describe(place: Path, whole: Bundle) -> None:
    """Write the files that describe the others."""
    _put(place / DESCRIPTION, json.dumps(whole.described(), indent=1) + "\n")
    _put(place / ENTRY, json.dumps(whole.entry(), indent=1) + "\n")
    replaced = {"replaced": whole.replaced, "ordinary_words": whole.ordinary}
    _put(place / bundle.REPLACED, json.dumps(replaced, indent=1) + "\n")
    _put(place / "README.md", bundle_view.readme(whole))
    _put(place / "LICENSE", bundle_view.licence_text(whole, (SHIPPED / "LICENSE").read_text()))
    _put(place / "CITATION.cff", as_yaml(bundle_view.citation(whole)))
    described = [*(_name(place, file) for file in _files(place)), "index.html"]
    linked = [*described, "ro-crate-metadata.json", MANIFEST]
    _put(place / "index.html", bundle_view.index_page(whole, sorted(linked)))
    _put(place / "ro-crate-metadata.json", json.dumps(crate.metadata(whole, sorted(described)), indent=1) + "\n")


# --- the check of what is finished ------------------------------------------------------------------------------------


def _check(place: Path, runs: Sequence[Run], names: Pseudonyms | None) -> None:
    """Check the bundle as its receiver would: its sums, its figures from its raw output, and those of the runs."""
    problems: list[object] = [*reproduce.damaged(place)]
    for run in runs:
        run_id = run.info.run_id
        copy = place / "runs" / (names.text(run_id) if names else run_id)
        again = store.load_run(copy, as_it_is=True)
        problems += reproduce.differing(copy, again)
        before, after = tables.texts(run, *TABLES), tables.texts(again, *TABLES)
        for table, text in before.items():
            problems += bundle.differences(copy.name, table, names.rows(text) if names else text, after[table])
    if problems:
        raise MountlabError(
            "the bundle would not hold the figures of the runs: replacing a name changed what its raw output says",
            where="publish",
            got="; ".join(map(str, problems[:5])),
            next_step="publish with --keep-identities, and tell us of it",
        )


def _check_leaks(place: Path, names: Pseudonyms | None, title: str, wishes: Wishes) -> None:
    """Search every file for what must not be published. Raises MountlabError: secrets first, each value once."""
    files = {_name(place, file): file for file in _files(place)}
    leaks = sorted(
        leak for leak in search(files, names, (title, *wishes.authors)) if leak.fingerprint not in wishes.accept
    )
    if not leaks:
        return
    secret = any(leak.is_secret for leak in leaks)
    first: dict[str, Leak] = {}
    for leak in leaks:
        if leak.is_secret == secret:
            first.setdefault(leak.fingerprint, leak)
    shown = list(first.values())
    more = f"; and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    wrong, mend = ("secret", "run it without them in its output") if secret else ("name", "rename it, and run it again")
    raise MountlabError(
        "the bundle would publish secrets" if secret else "the bundle would still hold identities",
        where=shown[0].place,
        got="; ".join(map(str, shown[:_SHOWN])) + more,
        next_step=f"{mend}; or, if that is no {wrong}: --accept {shown[0].fingerprint}",
    )


_SHOWN = 5
"""Leaks that an error names; each may stand in several places."""


# --- the zip ----------------------------------------------------------------------------------------------------------


def _pack(place: Path, archive: Path, name: str) -> None:
    """Zip a folder, the same bytes for the same files."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for file in _files(place):
            entry = zipfile.ZipInfo(f"{name}/{_name(place, file)}", _EPOCH)
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o100644 << 16
            packed.writestr(entry, file.read_bytes())

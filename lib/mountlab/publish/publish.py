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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from mountlab.analysis.compare.runs import compare_runs
from mountlab.box import ssh as box
from mountlab.core import disk
from mountlab.core.checksums import MANIFEST, manifest, safe_parts
from mountlab.core.errors import MountlabError, PlanError, StoreError
from mountlab.core.run_info import RunInfo
from mountlab.core.safe_yaml import as_yaml
from mountlab.core.trial_files import TrialFiles
from mountlab.filesystems.making import COMMANDS
from mountlab.publish import bundle, bundle_view, crate, reproduce
from mountlab.publish.bundle import DESCRIPTION, ENTRY, TABLES, Bundle
from mountlab.publish.decoded import COMPRESSED, unpacked
from mountlab.publish.identities.known import control_identities, run_identities
from mountlab.publish.identities.pages import page_with
from mountlab.publish.identities.pseudonyms import Pseudonyms
from mountlab.publish.last_search import Leak, search
from mountlab.publish.seal_again import seal_again
from mountlab.publish.staging import ARCHIVE, BUNDLE, staging
from mountlab.report import execute
from mountlab.results import records, store, tables, why, writer
from mountlab.results.info import read_box
from mountlab.results.journal import whole_lines
from mountlab.results.paths import NOTEBOOKS, RESULTS
from mountlab.results.run_file import read_record, write_record
from mountlab.results.store import Run

DEFAULT_LICENCE = "CC-BY-4.0"
CLEAN_NOTEBOOKS = ("10_run_sweep.ipynb", "20_report.ipynb", "50_compare_runs.ipynb")
ENVIRONMENT = ("requirements.lock", "environment.yml")
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest moment that a zip can tell: the same in every zip."""

Replace = Callable[[str], str]


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What the one who publishes says."""

    to: Path | None = None
    title: str | None = None
    authors: tuple[str, ...] = ()
    licence: str = DEFAULT_LICENCE
    keep_identities: bool = False
    accept: tuple[str, ...] = ()
    """Fingerprints of what looks like a secret or a name, and is none."""


def publish(paths: Sequence[Path], wishes: Wishes, *, results: Path = RESULTS) -> tuple[Path, Path]:
    """Make a bundle of runs, and return its folder and its zip.

    Raises StoreError where a run cannot be read, is named twice, or the place is taken; MountlabError where the
    finished bundle does not hold the figures of the runs, or still holds what should have been replaced.
    """
    wishes = replace(wishes, licence=bundle.check_licence(wishes.licence))
    runs = [store.load_run(path) for path in paths]
    _check_distinct(runs)
    names = None if wishes.keep_identities else _pseudonyms(runs)
    sweeps = (names.text(run.sweep.name) if names else run.sweep.name for run in runs)
    title = wishes.title or bundle.of_same_title(sweeps)
    target = wishes.to.absolute() if wishes.to else _free_place(results, title, runs)
    if target.exists() or _zip_of(target).exists():
        raise StoreError("the place is taken", where=disk.shown(target), next_step="name another with --to")
    with staging(target.parent) as directory:
        place, archive = directory / BUNDLE, directory / ARCHIVE
        place.mkdir()
        _fill(place, runs, names, title, wishes)
        _check(place, runs, names)
        _check_leaks(place, names, title, wishes)
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


def _check_distinct(runs: Sequence[Run]) -> None:
    ids = [run.info.run_id for run in runs]
    twice = sorted({run_id for run_id in ids if ids.count(run_id) > 1})
    if twice:
        raise StoreError("a run is in a bundle once", where="publish", got=", ".join(twice))


def _free_place(results: Path, title: str, runs: Sequence[Run]) -> Path:
    """Return a name that no bundle has: old ones are never overwritten."""
    day = max((run.info.finished_at or run.info.created_at) for run in runs)[:10]
    base = f"bundle-{bundle.slug(title)}-{day}"
    names = (base, *(f"{base}-{number}" for number in range(2, 1000)))
    return next(results / name for name in names if not ((results / name).exists() or _zip_of(results / name).exists()))


# --- what tells a machine or a person ---------------------------------------------------------------------------------


def _pseudonyms(runs: Sequence[Run]) -> Pseudonyms:
    found = [each for run in runs for each in run_identities(run.info, _texts(run.path))]
    ssh = [box.ssh_names(read_box(run.path)) for run in runs if not run.sweep.imported]  # that was on no box of ours
    named = {key: [name for each in ssh for name in each.get(key, ())] for key in ("host", "user")}
    found += control_identities(
        host=os.uname().nodename,
        user=_user(),
        home=str(Path.home()),
        machine_id=_machine_id(),
        ssh=named,
        paths=(str(disk.ROOT), str(RESULTS), str(Path.cwd()), *(str(run.path.parent) for run in runs)),
    )
    clients = {name for run in runs for cell in run.sweep.cells for name in cell.workload.clients}
    return Pseudonyms(found, {run.info.run_id: run.info.box_name for run in runs}, clients)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user number without a name
        return ""


def _machine_id() -> str:
    file = Path("/etc/machine-id")
    return file.read_text().strip() if file.exists() else ""


def _texts(run: Path) -> Iterator[str]:
    for file in (run / "run.json", run / "trials.jsonl", *_published_files(run / "raw")):
        yield file.read_text(errors="surrogateescape")


def _published_files(raw: Path) -> list[Path]:
    """Return the files of raw output that are published with identities replaced: traces are not."""
    return [file for file in _files(raw) if file.name not in why.NAMES_A_MACHINE]


def _files(directory: Path) -> list[Path]:
    """Return every file below a directory, sorted. Raises StoreError for anything that is neither file nor
    directory."""
    found = sorted(directory.rglob("*"))
    for path in found:
        kind = path.lstat().st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
            raise StoreError("only files and directories can be published", where=disk.shown(path), got="another kind")
    return [path for path in found if path.is_file()]


# --- the content ------------------------------------------------------------------------------------------------------


def _fill(place: Path, runs: Sequence[Run], names: Pseudonyms | None, title: str, wishes: Wishes) -> None:
    """Everything but the zip, the checksums last."""
    copies = [_copy_run(place, run, names) for run in runs]
    copied = [_derive(copy) for copy in copies]
    comparisons = dict(_compare(place, copies))
    for notebook in sorted(place.rglob("*.ipynb")):
        _clean(notebook, _machine_free(place, names))
    for page in sorted(place.rglob("report.html")):
        _put(page, page_with(page.read_text(), _machine_free(place, names)))
    _add_surroundings(place)
    _describe(place, _bundle(copied, comparisons, names, title, wishes))
    sums = {_name(place, file): hashlib.sha256(file.read_bytes()).hexdigest() for file in _files(place)}
    _put(place / MANIFEST, manifest(sums))


def _copy_run(place: Path, run: Run, names: Pseudonyms | None) -> Path:
    """Copy the measurements, with identities replaced; derived files are made again."""
    value: Callable[[Any], Any] = names.value if names else lambda each: each
    record = value(read_record(run.path))
    info = RunInfo.from_record(record)
    copy = place / "runs" / info.run_id
    copy.mkdir(parents=True)
    write_record(copy, record)
    _put(copy / "sweep.yml", as_yaml(info.parameters))
    _put(copy / "box.yml", as_yaml({key: each for key, each in info.box.items() if each not in (None, "", [])}))
    if info.published:
        _put(copy / "published.json", json.dumps(info.published, indent=1))
    lines = whole_lines(run.path / "trials.jsonl")
    _put(copy / "trials.jsonl", "".join(f"{json.dumps(value(json.loads(line)))}\n" for line in lines))
    if (run.path / "exclude.yml").exists():
        _put(copy / "exclude.yml", (names.text if names else str)((run.path / "exclude.yml").read_text()))
    for file in _published_files(run.path / "raw") if names else _files(run.path / "raw"):
        name = _name(run.path, file)
        _put(copy / (names.text(name) if names else name), _content(file, names))
    if names:
        _put_explained(copy, run, names)
    seal_again(copy)
    return copy


def _put_explained(copy: Path, run: Run, names: Pseudonyms) -> None:
    """Put what the traces of a run explain in their place: they cannot be searched for identities."""
    for trial_id, found in run.explained().items():
        said = names.value(json.loads(why.as_json(found)))
        _put(copy / "raw" / names.text(trial_id) / why.EXPLAINED, json.dumps(said))


def _content(file: Path, names: Pseudonyms | None) -> bytes:
    data = file.read_bytes()
    if names is None:
        return data
    if data.startswith(COMPRESSED):
        if _NUMBERS.fullmatch(b"".join(unpacked(data, disk.shown(file)))):
            return data
        raise StoreError(
            "a compressed file cannot be searched for identities",
            where=disk.shown(file),
            next_step="unpack it, or publish with --keep-identities",
        )
    return _commands(data, names) if file.name in _COMMANDS else names.data(data)


_NUMBERS = re.compile(rb"[\d,\s]*")
"""What the log of a search holds: times and sizes, no name of anything."""
_COMMANDS = (TrialFiles.ARGV, COMMANDS)
"""Files of raw output that hold commands as JSON: in its text a name could run into an escape before it."""


def _commands(data: bytes, names: Pseudonyms) -> bytes:
    try:
        return json.dumps(names.value(json.loads(data))).encode()
    except (ValueError, RecursionError):  # not as we wrote it
        return names.data(data)


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


def _compare(place: Path, copies: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Yield each run beside the first before it with which it has figures in common."""
    for number, other in enumerate(copies):
        earlier = next((copy for copy in copies[:number] if _comparable(copy, other)), None)
        if earlier:
            page = execute.write_comparison(earlier, other, results=place / "comparisons")
            yield _name(place, page.parent), f"{earlier.name} and {other.name}"


def _comparable(a: Path, b: Path) -> bool:
    try:
        compare_runs((store.load_run(a), store.load_run(b)))
    except PlanError:  # nothing in common
        return False
    return True


def _machine_free(place: Path, names: Pseudonyms | None) -> Replace:
    """Takes the places of this machine out of a text: those of the bundle begin at the bundle."""
    ours = {f"{place}/": "", str(place): ".", f"{disk.shown(place)}/": "", disk.shown(place): "."}

    def replaced(text: str) -> str:
        for old, new in ours.items():
            text = text.replace(old, new)
        return names.text(text, patterns=False) if names else text

    return replaced


def _clean(notebook: Path, replace: Replace) -> None:
    _put(notebook, json.dumps(bundle.without_clock(json.loads(notebook.read_text()), replace), indent=1) + "\n")


def _add_surroundings(place: Path) -> None:
    """The notebooks as they are before they are run, and the environment that runs them."""
    for name in CLEAN_NOTEBOOKS:
        clean = bundle.without_outputs(json.loads((NOTEBOOKS / name).read_text()))
        _put(place / "notebooks" / name, json.dumps(clean, indent=1) + "\n")
    for name in ENVIRONMENT:
        _put(place / "environment" / name, (disk.ROOT / name).read_bytes())
    _put(place / "environment" / "versions.json", json.dumps(writer.versions(), indent=1))


def _bundle(
    copied: Sequence[Run], comparisons: Mapping[str, str], names: Pseudonyms | None, title: str, wishes: Wishes
) -> Bundle:
    return Bundle(
        title=title,
        authors=wishes.authors or (bundle.DEFAULT_AUTHOR,),
        licence=wishes.licence,
        runs=tuple(map(reproduce.published_run, copied)),
        comparisons=comparisons,
        replaced=tuple(names.summary()) if names else None,
        ordinary=names.ordinary() if names else (),
        versions=writer.versions(),
        mountlab_version=metadata.version("mountlab"),
    )


def _describe(place: Path, whole: Bundle) -> None:
    """The files that tell what the others are."""
    _put(place / DESCRIPTION, json.dumps(whole.described(), indent=1) + "\n")
    _put(place / ENTRY, json.dumps(whole.entry(), indent=1) + "\n")
    replaced = {"replaced": whole.replaced, "ordinary_words": whole.ordinary}
    _put(place / bundle.REPLACED, json.dumps(replaced, indent=1) + "\n")
    _put(place / "README.md", bundle_view.readme(whole))
    _put(place / "LICENSE", bundle_view.licence_text(whole, (disk.ROOT / "LICENSE").read_text()))
    _put(place / "CITATION.cff", as_yaml(bundle_view.citation(whole)))
    described = [*(_name(place, file) for file in _files(place)), "index.html"]
    linked = [*described, "ro-crate-metadata.json", MANIFEST]
    _put(place / "index.html", bundle_view.index_page(whole, sorted(linked)))
    _put(place / "ro-crate-metadata.json", json.dumps(crate.metadata(whole, sorted(described)), indent=1) + "\n")


# --- the check of what is finished ------------------------------------------------------------------------------------


def _check(place: Path, runs: Sequence[Run], names: Pseudonyms | None) -> None:
    """Check the bundle as its receiver would: its sums, its figures from its raw output, and those of the runs."""
    found = [str(each) for each in reproduce.damaged(place)]
    for run, copy in zip(runs, _copies(place, runs, names), strict=True):
        again = store.load_run(copy, as_it_is=True)
        found += [str(each) for each in reproduce.differing(copy, again)]
        found += [str(each) for each in _changed(run, again, names)]
    if found:
        raise MountlabError(
            "the bundle would not hold the figures of the runs: replacing a name changed what its raw output says",
            where="publish",
            got="; ".join(found[:5]),
            next_step="publish with --keep-identities, and tell us of it",
        )


def _check_leaks(place: Path, names: Pseudonyms | None, title: str, wishes: Wishes) -> None:
    """Search every file for what must not be published. Raises MountlabError: secrets first, each value once."""
    files = {_name(place, file): file for file in _files(place)}
    found = search(files, names, (title, *wishes.authors))
    leaks = sorted(leak for leak in found if leak.fingerprint not in wishes.accept)
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


def _copies(place: Path, runs: Iterable[Run], names: Pseudonyms | None) -> list[Path]:
    ids = [run.info.run_id for run in runs]
    return [place / "runs" / (names.text(run_id) if names else run_id) for run_id in ids]


def _changed(run: Run, again: Run, names: Pseudonyms | None) -> Iterator[object]:
    """Yield where the figures of the copy are not those of the run."""
    before, after = (tables.texts(each, *TABLES) for each in (run, again))
    for table, text in before.items():
        yield from bundle.differences(again.path.name, table, names.rows(text) if names else text, after[table])


# --- the zip ----------------------------------------------------------------------------------------------------------


def _pack(place: Path, archive: Path, name: str) -> None:
    """A zip of a folder, the same bytes for the same files."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for file in _files(place):
            entry = zipfile.ZipInfo(f"{name}/{_name(place, file)}", _EPOCH)
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o100644 << 16
            packed.writestr(entry, file.read_bytes())

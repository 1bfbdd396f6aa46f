"""Parameter files: every key of a sweep, a box and the others, from the models that read them."""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from mountlab.batch.batch_file import BatchFile, GroupFile
from mountlab.results.import_file import ImportedFilesystem, ImportFile
from mountlab.sweep.box_file import BoxFile
from mountlab.sweep.capacity_entry import CapacityFile
from mountlab.sweep.design_entry import DesignFile
from mountlab.sweep.exclude_file import ExcludeFile, ExclusionFile
from mountlab.sweep.filesystem_entry import FilesystemFile
from mountlab.sweep.neighbour_entry import NEIGHBOUR_KEYS
from mountlab.sweep.published_file import PublishedFile, PublishedRow
from mountlab.sweep.state_entry import StateFile
from mountlab.sweep.sweep_file import PRESET_KEYS, SweepFile
from mountlab.sweep.until_entry import UntilFile
from mountlab.sweep.workload_entry import DESIGN_KEYS
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from mountlab_dev.reference.markdown import code, codes, one_line, page, table

_PLACES: dict[type[BaseModel], str] = {
    DesignFile: "[design](#design)", UntilFile: "[design.until](#designuntil)",
    FilesystemFile: "[filesystems](#filesystems)", StateFile: "[states](#states)",
    ImportedFilesystem: "[filesystems of an import](#filesystems-of-an-import)",
    PublishedRow: "[rows](#rows)", GroupFile: "[groups](#groups)",
}  # fmt: skip
Row = tuple[str, ...]
_PLAIN = {str: "text", int: "whole number", float: "number", bool: "`true` or `false`", Any: "anything"}
_BOUNDS = {"ge": "{} or more", "gt": "more than {}", "le": "{} or less", "lt": "less than {}"}


def pages() -> dict[str, str]:
    """File name to page."""
    return {"sweep-file.md": sweep_page(), "box-file.md": box_page(), "other-files.md": other_page()}


def sweep_page() -> str:
    """Return every key of a sweep file, section by section."""
    presets = [(code(key), "a mapping or names", "", text) for key, text in PRESET_KEYS.items()]
    design = [
        (code("tool"), "text", "needed", "One of the [tools](tools.md): whose options the other keys are."),
        *((code(key), "", "", text) for key, text in DESIGN_KEYS.items()),
        (
            "any other",
            "as the tool says, or a list of such",
            "",
            "An option of the tool. A list makes it a factor: the workload is run once for each of its values.",
        ),
    ]
    neighbours = [(code(key), "", "", text) for key, text in NEIGHBOUR_KEYS.items()]
    return page(
        "Sweep files",
        "One question in one YAML file: `params/sweeps/*.yml`. The same file is a papermill parameter file, and every "
        "key can be changed from outside: `-p design.repeats=3`, or shorter `-p repeats=3`. Unknown keys, wrong types "
        "and sizes or times without a unit are errors that name file, key, what was got and what is allowed.",
        _section("The file", SweepFile, more=presets),
        _section(
            "filesystems",
            FilesystemFile,
            "An entry. Which keys a type understands stands in [filesystems.md](filesystems.md).",
        ),
        _section("states", StateFile, "An entry."),
        "## workloads\n\nAn entry.\n\n" + _table(design),
        "## neighbours\n\nAn entry has a tool and its options, as one of workloads, and:\n\n" + _table(neighbours),
        _section(
            "workloads.capacity",
            CapacityFile,
            "A search for the highest rate of arriving requests, in [how-to/capacity.md](../how-to/capacity.md).",
        ),
        _section("design", DesignFile),
        _section(
            "design.until",
            UntilFile,
            "A stopping rule, and [how its intervals are corrected](../../METHODS.md#stopping-rule).",
        ),
    )


def box_page() -> str:
    """Return every key of a box file."""
    return page(
        "Box files",
        "The machine under test: `params/boxes/NAME.yml`. It holds no secret: keys, jump hosts and addresses stay in "
        "`~/.ssh/config`. How to write one: [own box](../how-to/own-box.md).",
        _section("The file", BoxFile),
    )


def other_page() -> str:
    """Return every key of the files that are written now and then."""
    return page(
        "Other parameter files",
        _section(
            "Imports",
            ImportFile,
            "What `mountlab import FILE.yml` takes: [logs that you already have](../how-to/import-logs.md).",
        ),
        _section("filesystems of an import", ImportedFilesystem),
        _section("Published figures", PublishedFile, "`params/published/*.yml`: figures of others, with their source."),
        _section("rows", PublishedRow),
        _section("Batches", BatchFile, "`params/batches/*.yml`: many sweeps on many boxes, and one page on all."),
        _section("groups", GroupFile, "An entry. One value may stand for a list of one."),
        _section(
            "exclude.yml",
            ExcludeFile,
            "Beside a run: trials that do not count, as `mountlab exclude` writes it. The journal and raw/ stay as they"
            " are, a caveat names each trial.",
        ),
        _section("exclude of exclude.yml", ExclusionFile, "An entry. A text alone is its `reason`."),
    )


def _section(title: str, model: type[BaseModel], text: str = "", more: Sequence[Row] = ()) -> str:
    rows = [_row(field.alias or name, field) for name, field in model.model_fields.items()]
    return "\n\n".join(part for part in (f"## {title}", text, _table([*rows, *more])) if part)


def _table(rows: Sequence[Row]) -> str:
    """Rows of key, type, default and meaning."""
    return table(("Key", "Type", "Without it", "Meaning"), rows)


def _row(name: str, field: FieldInfo) -> Row:
    written = ", ".join(part for part in (kind(field.annotation), *_bounds(field.metadata)) if part)
    stated = [text for text in field.metadata if isinstance(text, str)]
    return (code(name), stated[0] if stated else written, _default(field), one_line(field.description or ""))


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "needed"
    value = field.default
    if isinstance(value, BaseModel) or value in (None, "", {}, []):
        return ""
    if isinstance(value, list):
        return codes(value)
    return code(str(value).lower() if isinstance(value, bool) else value)


def kind(annotation: Any) -> str:
    """Return a type as people say it: 'list of text', 'one of `a`, `b`'."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        stated = [each for each in arguments[1:] if isinstance(each, str)]
        inner = [each for each in arguments[1:] if isinstance(each, FieldInfo)]
        bounds = [text for each in inner for text in _bounds(each.metadata)]
        return stated[0] if stated else ", ".join([kind(arguments[0]), *bounds])
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(kind(each) for each in arguments if each is not type(None)))
    if origin is Literal:
        words = [str(each).lower() if isinstance(each, bool) else each for each in arguments]
        return ("one of " if len(words) > 1 else "") + ", ".join(map(code, words))
    if origin is list:
        return f"list of {kind(arguments[0])}"
    if origin is dict:
        return f"mapping of names to {kind(arguments[1])}"
    if annotation in _PLACES:
        return _PLACES[annotation]
    return _PLAIN[annotation]


def _bounds(metadata: list[Any]) -> Iterator[str]:
    for each in metadata:
        found = {name: getattr(each, name, None) for name in _BOUNDS}
        yield from (_BOUNDS[name].format(value) for name, value in found.items() if value is not None)

"""What a run directory from others may say: names that are used as those of files, an address that ssh is given, and
values of the type that is read. Nothing in it is believed before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from mountlab.core.errors import MountlabError, StoreError
from mountlab.core.model import Box, Sweep, Trial
from mountlab.core.units import LEVELS, as_share, check_level
from mountlab.sweep.box_file import parse_box
from mountlab.sweep.sweep_file import MOST_DIAGNOSTIC

PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,199}\Z")
"""A name of ours: no directory, no '..', no option, nothing that has a meaning to a shell or a terminal."""
_TYPES: Mapping[str, tuple[type, ...]] = {
    "schema": (int,), "run_id": (str,), "status": (str,), "box": (dict,), "seed": (int, type(None)),
    "parameters": (dict,), "facts": (dict,), "order": (list,), "left_out": (dict,), "published": (list,),
    "imported": (dict,), "versions": (dict,), "created_at": (str,), "finished_at": (str, type(None)),
    "stopped": (dict,), "batch": (str,), "chain": (str,), "journal": (dict,), "altered": (list,),
    "extensions": (list,), "explained": (list,),
    "plugins": (dict,), "journal_start": (str,), "by_hand": (str,),
}  # fmt: skip


def check_record(record: Mapping[str, Any], where: str) -> None:
    """Raise StoreError for a run.json whose values are of other types than ours; BoxFacts checks those of `facts`."""
    for key, types in _TYPES.items():
        if key in record and (not isinstance(record[key], types) or isinstance(record[key], bool)):
            raise StoreError(
                "not a run of Mountlab's",
                where=f"{where}: {key}",
                got=type(record[key]).__name__,
                allowed=" or ".join("null" if each is type(None) else each.__name__ for each in types),
            )
    name = record["box"].get("name")
    if not isinstance(name, str):
        raise StoreError("not a run of Mountlab's", where=f"{where}: box.name", got=repr(name)[:200])


def check_extension(entry: object, where: str) -> None:
    """Raise StoreError for an extension whose values are of other types than ours."""
    types: Mapping[str, type] = {"at": str, "finished_at": str, "only_new": bool, "parameters": dict, "programs": dict}
    said = entry if isinstance(entry, dict) else {}
    wrong = [key for key, expected in types.items() if not isinstance(said.get(key), expected)]
    if wrong:
        raise StoreError("not a run of Mountlab's", where=f"{where}: {', '.join(wrong)}", got=repr(entry)[:200])


def check_explained(entry: object, where: str) -> None:
    """Raise StoreError for an explanation whose values are of other types than ours."""
    types: Mapping[str, type] = {"at": str, "finished_at": str, "blocks": int, "events": list, "programs": dict}
    said = entry if isinstance(entry, dict) else {}
    wrong = [key for key, expected in types.items() if not isinstance(said.get(key), expected)]
    wrong += [] if wrong or 1 < said["blocks"] <= MOST_DIAGNOSTIC else ["blocks"]
    wrong += [] if wrong or all(isinstance(event, str) for event in said["events"]) else ["events"]
    if wrong:
        raise StoreError("not a run of Mountlab's", where=f"{where}: {', '.join(wrong)}", got=repr(entry)[:200])


def check_trials(trials: Iterable[Trial], where: str) -> None:
    """Raise StoreError for a trial whose name, or whose mount's name, would lead out of the run's own directory."""
    named = list(trials)
    mounts = {trial.mount for trial in named} - {""}  # imported logs have none
    check_plain([*(trial.trial_id for trial in named), *mounts], where)


def check_plain(names: Iterable[object], where: str) -> None:
    """Raise StoreError for a name that would be another file than one of the run."""
    for name in names:
        if not isinstance(name, str) or not PLAIN.match(name):
            raise StoreError(
                "a name that would lead elsewhere",
                where=where,
                got=ascii(name)[:200],
                allowed="letters, digits, '_', '.', '+' and '-', the first of them a letter or a digit",
            )


def check_imported(sweep: Sweep, where: str) -> None:
    """Raise StoreError for a name in a sweep of imported logs that would lead elsewhere, ParameterError for a level out
    of range."""
    named = (sweep.name, sweep.box, *(fs.name for fs in sweep.filesystems), *(each.name for each in sweep.workloads))
    check_plain([*named, *sweep.published], where)
    check_level(sweep.design.level, where=f"{where}.sweep.design.level")


def known_level(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parameters of a run, its level lowered to the highest of today: earlier versions took any below 1, and
    what such a run has measured stays readable."""
    design = parameters.get("design")
    level = as_share(design.get("level")) if isinstance(design, Mapping) else None
    if not isinstance(level, float) or not LEVELS[1] < level < 1:
        return parameters
    return {**parameters, "design": {**(design or {}), "level": LEVELS[1]}}


def kept_box(kept: Mapping[str, Any], where: str) -> Box:
    """Return the box of a run.json, held against the same rules as a box file. Raises StoreError."""
    own = ("name", "scratch", "grace_s")
    said = {key: value for key, value in kept.items() if value is not None and key not in own}
    try:
        if "grace_s" in kept:
            said["grace"] = f"{float(kept['grace_s']):g}s"
        scratch = {str(each["name"]): each["device"] for each in kept.get("scratch") or ()}
        raw = {**said, **({"scratch": scratch} if scratch else {})}
        return parse_box({key: value for key, value in raw.items() if value != ""}, name=str(kept["name"]), where=where)
    except (MountlabError, LookupError, TypeError, ValueError) as error:
        got = f"{error.what}: {error.where} {error.got}" if isinstance(error, MountlabError) else repr(error)
        raise StoreError("the run's box is not one of Mountlab's", where=where, got=got[:300]) from error

"""Checks of a run directory from others: names that become names of files, an address that ssh gets, and types of
values. Nothing in it is used before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from mountlab.core.errors import MountlabError, StoreError
from mountlab.core.model import Box, Sweep, Trial
from mountlab.core.units import LEVELS, as_share, check_level
from mountlab.sweep.box_file import parse_box
from mountlab.sweep.design_entry import MOST_DIAGNOSTIC

PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,199}\Z")
"""A plain name: no directory, no '..', no option, nothing that has a meaning to a shell or a terminal."""
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
                allowed=" or ".join("null" if kind is type(None) else kind.__name__ for kind in types),
            )
    name = record["box"].get("name")
    if not isinstance(name, str):
        raise StoreError("not a run of Mountlab's", where=f"{where}: box.name", got=repr(name)[:200])


def check_extension(entry: object, where: str) -> None:
    """Raise StoreError for an extension whose values are of other types than ours."""
    types: Mapping[str, type] = {"at": str, "finished_at": str, "only_new": bool, "parameters": dict, "programs": dict}
    _check_entry(entry, types, where)


def check_explained(entry: object, where: str) -> None:
    """Raise StoreError for an explanation whose values are of other types than ours."""
    types: Mapping[str, type] = {"at": str, "finished_at": str, "blocks": int, "events": list, "programs": dict}
    explanation = _check_entry(entry, types, where)
    profile, blocks = explanation.get("profile", False), explanation["blocks"]
    bad_key = "" if isinstance(profile, bool) else "profile"
    if not (1 < blocks <= MOST_DIAGNOSTIC or (profile is True and blocks == 0)):
        bad_key = "blocks"
    if not bad_key and not all(isinstance(event, str) for event in explanation["events"]):
        bad_key = "events"
    if bad_key:
        raise StoreError("not a run of Mountlab's", where=f"{where}: {bad_key}", got=repr(entry)[:200])


def _check_entry(entry: object, types: Mapping[str, type], where: str) -> dict[str, Any]:
    """Raise StoreError for an entry that lacks one of these keys, or has a value of another type."""
    values = entry if isinstance(entry, dict) else {}
    bad_keys = [key for key, expected in types.items() if not isinstance(values.get(key), expected)]
    if bad_keys:
        raise StoreError("not a run of Mountlab's", where=f"{where}: {', '.join(bad_keys)}", got=repr(entry)[:200])
    return values


def check_trials(trials: Iterable[Trial], where: str) -> None:
    """Raise StoreError for a trial whose name, or whose mount's name, would lead out of the run's own directory."""
    checked = list(trials)
    mounts = {trial.mount for trial in checked} - {""}  # imported logs have none
    check_plain([*(trial.trial_id for trial in checked), *mounts], where)


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
    names = [sweep.name, sweep.box, *(fs.name for fs in sweep.filesystems)]
    names += [workload.name for workload in sweep.workloads]
    check_plain([*names, *sweep.published], where)
    check_level(sweep.design.level, where=f"{where}.sweep.design.level")


def known_level(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parameters of a run with its level lowered to the highest allowed one. Earlier versions took any level
    below 1, and their runs stay readable."""
    design = parameters.get("design")
    level = as_share(design.get("level")) if isinstance(design, Mapping) else None
    if not isinstance(level, float) or not LEVELS[1] < level < 1:
        return parameters
    return {**parameters, "design": {**(design or {}), "level": LEVELS[1]}}


def kept_box(box: Mapping[str, Any], where: str) -> Box:
    """Return the box of a run.json, checked by the rules of a box file. Raises StoreError.

    Of a watched program it says `become: login`, which is set for each such run, and which no box file may say.
    """
    converted = ("name", "scratch", "grace_s", "extras")
    entries = {key: value for key, value in box.items() if value is not None and key not in converted}
    if entries.get("become") == "login":
        del entries["become"]
    try:
        if "grace_s" in box:
            entries["grace"] = f"{float(box['grace_s']):g}s"
        scratch = {str(device["name"]): device["device"] for device in box.get("scratch") or ()}
        raw = {**entries, **({"scratch": scratch} if scratch else {})}
        if box.get("extras"):
            raw["with"] = list(box["extras"])
        return parse_box({key: value for key, value in raw.items() if value != ""}, name=str(box["name"]), where=where)
    except (MountlabError, LookupError, TypeError, ValueError) as error:
        got = f"{error.what}: {error.where} {error.got}" if isinstance(error, MountlabError) else repr(error)
        raise StoreError("the run's box is not one of Mountlab's", where=where, got=got[:300]) from error

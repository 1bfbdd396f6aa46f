"""Files of parameters against their models: each error names the file, the key, what was got and what is allowed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from mountlab.core.errors import ParameterError, did_you_mean
from mountlab.core.options import unknown_key
from mountlab.core.safe_yaml import check_texts
from mountlab.core.units import PercentText, SizeText, TimeText, as_share, parse_bytes, parse_percent, parse_seconds

Model = TypeVar("Model", bound=BaseModel)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}\Z")


AS_SHARE = BeforeValidator(as_share)
"""Of a number that is a share: the text `95%` is 0.95."""
AS_TEXT = BeforeValidator(lambda value: repr(value) if isinstance(value, float) else value)
"""Of a share that is kept as a text: the number 0.95 is '0.95'."""


class File(BaseModel):
    """What holds for every file of parameters: no unknown key, no conversion, no change."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)


def validated(
    model: type[Model], raw: Mapping[str, object], where: str, *, kept: bool = False, inside: bool = False
) -> Model:
    """Return a file's mapping in its form. Raises ParameterError for the first thing that is wrong; `kept`: whatever
    characters its texts have; `inside`: `where` names a key of the file, and not the file."""
    if not kept:
        check_texts(raw, where)
    try:
        return model.model_validate(dict(raw))
    except ValidationError as error:
        raise _as_parameter_error(error, model, raw, where + ("." if inside else ": ")) from error


def _as_parameter_error(
    error: ValidationError, model: type[BaseModel], raw: Mapping[str, object], before: str
) -> ParameterError:
    first = error.errors(include_url=False)[0]
    path = [str(part) for part in first["loc"]]
    place = f"{before}{'.'.join(path)}"
    if first["type"] == "extra_forbidden":
        return unknown_key(path[-1], file_keys(_model_at(model, path[:-1])), where=place, what="key")
    if first["type"] == "missing":
        return ParameterError("a key is missing", where=place, got="nothing", allowed=f"{path[-1]}: ...")
    path = path[: _depth(raw, first["loc"])]
    place = f"{before}{'.'.join(path)}"
    got = first.get("input")
    return _quantity_error(model, path, got, place) or ParameterError(
        "wrong type or value",
        where=place,
        got=f"{got!r} ({type(got).__name__})",
        allowed=_allowed(first, _range(model, path)),
        next_step=_hint(first),
    )


def file_keys(model: type[BaseModel]) -> list[str]:
    """Return the keys of a model as a file has them: `with`, a word of Python, is an alias of a field."""
    return [field.alias or name for name, field in model.model_fields.items()]


def _depth(raw: object, path: tuple[int | str, ...]) -> int:
    """Return how many parts of a path are in the file: pydantic adds the name of the type that it tried."""
    for depth, part in enumerate(path):
        inside = range(len(raw)) if isinstance(raw, list) else raw if isinstance(raw, Mapping) else ()
        if part not in inside:
            return depth
        raw = raw[part]  # type: ignore[index]
    return len(path)


_QUANTITIES: dict[Any, Callable[..., object]] = {
    get_args(kind)[1]: parse
    for kind, parse in ((SizeText, parse_bytes), (TimeText, parse_seconds), (PercentText, parse_percent))
}


def _quantity_error(model: type[BaseModel], path: list[str], got: object, where: str) -> ParameterError | None:
    """Return the error that a size, a time or a share has wherever it stands; None for a value of another kind."""
    notes = _notes(model, path)
    parse = next((_QUANTITIES[note] for note in notes if isinstance(note, str) and note in _QUANTITIES), None)
    if parse is None:
        return None
    try:
        parse(got, where=where)
    except ParameterError as error:
        return error
    return None


def _notes(model: type[BaseModel], path: list[str]) -> list[Any]:
    """Return what is noted at the type of a key, and at the members of a union such as `SizeText | None`."""
    field = _model_at(model, path[:-1]).model_fields.get(path[-1]) if path else None
    if field is None:
        return []
    notes = [note for member in get_args(field.annotation) for note in getattr(member, "__metadata__", ())]
    return [part for note in (*field.metadata, *notes) for part in (note, *getattr(note, "metadata", ()))]


_KINDS = {
    "string_type": "text", "int_type": "a whole number", "int_from_float": "a whole number",
    "int_parsing_size": "a whole number", "float_type": "a number", "finite_number": "a number",
    "bool_type": "true or false", "list_type": "a list", "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values", "model_attributes_type": "a mapping of keys to values",
    "string_too_short": "a text that is not empty", "too_short": "one entry or more",
}  # fmt: skip
"""Type of an error of pydantic's to what is allowed, in our words."""


def _allowed(first: Any, ends: str) -> str:
    kind = first["type"]
    if kind.startswith(("greater_than", "less_than")) and ends:
        return ends
    if kind == "literal_error":
        return str(first["ctx"]["expected"])
    text = _KINDS.get(kind, first["msg"])
    return ", ".join(part for part in (text, ends) if part)


def _hint(first: Any) -> str:
    got, kind = first.get("input"), first["type"]
    if kind == "literal_error" and isinstance(got, str):
        return did_you_mean(got, re.findall(r"'([^']*)'", first["ctx"]["expected"]))
    if isinstance(got, bool):
        return "YAML reads yes, no, on and off as true and false: put the word in quotes"
    if isinstance(got, int) and kind in ("string_type", "bool_type"):
        return "YAML reads 1:30 and 0o17 as numbers: put text in quotes, and give sizes and times their units"
    return ""


_ENDS = {"ge": "{} or more", "gt": "more than {}", "le": "{} or less", "lt": "less than {}"}


def _range(model: type[BaseModel], path: list[str]) -> str:
    """Return both ends of the range of a number, where pydantic names only the one that was missed; '' where none is
    known."""
    ends = [(text, getattr(note, name, None)) for note in _notes(model, path) for name, text in _ENDS.items()]
    return ", ".join(text.format(value) for text, value in ends if value is not None)


def _model_at(model: type[BaseModel], path: list[str]) -> type[BaseModel]:
    """Return the model of a part of a file: a model names those of its parts in `sections`."""
    for part in path:
        model = getattr(model, "sections", {}).get(part, model)
    return model


def check_text(text: str, shape: str | re.Pattern[str], what: str, where: str, allowed: str) -> None:
    """Raise ParameterError for a text that has not this shape, all of it."""
    if not re.fullmatch(shape, text):
        raise ParameterError(what, where=where, got=repr(text), allowed=allowed)


def check_names(names: Iterable[str], where: str) -> None:
    """Raise ParameterError for what cannot be a part of the name of a file: of a box, a run, published figures."""
    what = "a name may hold letters, digits, '_', '.' and '-'"
    allowed = "a letter or a digit first, 60 characters at most"
    for name in names:
        check_text(name, _NAME, what, where, allowed)


def check_choices(names: list[str], allowed: Mapping[str, object], where: str, what: str) -> None:
    """Raise ParameterError for a name that is not allowed."""
    for name in names:
        if name not in allowed:
            raise unknown_key(name, allowed, where=where, what=what)

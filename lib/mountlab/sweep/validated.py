"""Files of parameters against their models: each error names the file, the key, what was got and what is allowed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from mountlab.core.errors import ParameterError
from mountlab.core.options import unknown_key
from mountlab.core.safe_yaml import check_texts

Model = TypeVar("Model", bound=BaseModel)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}\Z")


class File(BaseModel):
    """What holds for every file of parameters: no unknown key, no conversion, no change."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)


def validated(model: type[Model], raw: Mapping[str, Any], where: str, *, kept: bool = False) -> Model:
    """A file's mapping in its form. Raises ParameterError for the first thing that is wrong; `kept`: whatever
    characters its texts have."""
    if not kept:
        check_texts(raw, where)
    try:
        return model.model_validate(dict(raw))
    except ValidationError as error:
        raise _as_parameter_error(error, model, where) from error


def _as_parameter_error(error: ValidationError, model: type[BaseModel], where: str) -> ParameterError:
    first = error.errors(include_url=False)[0]
    path = [str(part) for part in first["loc"]]
    place = f"{where}: {'.'.join(path)}"
    if first["type"] == "extra_forbidden":
        return unknown_key(path[-1], list(_model_at(model, path[:-1]).model_fields), where=place, what="key")
    if first["type"] == "missing":
        return ParameterError("a key is missing", where=place, got="nothing", allowed=f"{path[-1]}: ...")
    got = first.get("input")
    hint = ""
    if isinstance(got, bool):
        hint = "YAML reads yes, no, on and off as true and false: put the word in quotes"
    elif isinstance(got, int) and first["type"] in ("string_type", "bool_type"):
        hint = "YAML reads 1:30 and 0o17 as numbers: put text in quotes, and give sizes and times their units"
    ends = _range(model, path)
    allowed = ends if ends and first["type"].startswith(("greater_than", "less_than")) else first["msg"]
    return ParameterError(
        "wrong type or value",
        where=place,
        got=f"{got!r} ({type(got).__name__})",
        allowed=", ".join(dict.fromkeys(part for part in (allowed, ends) if part)),
        next_step=hint,
    )


_ENDS = {"ge": "{} or more", "gt": "more than {}", "le": "{} or less", "lt": "less than {}"}


def _range(model: type[BaseModel], path: list[str]) -> str:
    """Both ends of the range of a number, where pydantic names only the one that was missed; '' where none is known."""
    field = _model_at(model, path[:-1]).model_fields.get(path[-1])
    ends = (
        [(text, getattr(each, name, None)) for each in field.metadata for name, text in _ENDS.items()] if field else []
    )
    return ", ".join(text.format(value) for text, value in ends if value is not None)


def _model_at(model: type[BaseModel], path: list[str]) -> type[BaseModel]:
    """The model of a part of a file: a model names those of its parts in `sections`."""
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

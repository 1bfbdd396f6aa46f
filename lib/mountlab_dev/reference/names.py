"""The public names of `mountlab`: every function with its signature, every value and module with its members."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
import typing
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

from mountlab.core.places import SHIPPED
from mountlab.core.shown import Shown
from mountlab.results.paths import RESULTS

from mountlab_dev.glossary import COLUMN_MEANINGS
from mountlab_dev.reference.markdown import code, one_line, page, prose, table

Member = tuple[str, str]
"""How a member is written, and its meaning."""


def names_page(public: Mapping[str, object]) -> str:
    """Return every public name of the package with its docstring, then the values that these names give."""
    given = values(public)
    return page(
        "Python names",
        "What `import mountlab` offers to notebooks and scripts. [Own plots](../how-to/extend.md#a-plot) and "
        '[custom figures](../how-to/custom-figures.md) use them. `Path("results")` is the `results/` of the '
        "workspace, or what `MOUNTLAB_RESULTS` names.",
        *(_name(name, each) for name, each in sorted(public.items(), key=lambda pair: pair[0].lower())),
        "# Values",
        "What the names above return or hold. `import mountlab` does not offer them: you need not make one yourself.",
        *(_value(name, each) for name, each in sorted(given.items())),
    )


def values(public: Mapping[str, object]) -> dict[str, type]:
    """Return the classes of Mountlab that public functions return, or that fields of public classes hold."""
    found: set[type] = set()
    for each in public.values():
        hints = {} if inspect.ismodule(each) else typing.get_type_hints(each)
        shown = hints if inspect.isclass(each) else {"return": hints.get("return")}
        found |= {kind for hint in shown.values() for kind in _classes(hint)}
    return {kind.__name__: kind for kind in found - {each for each in public.values() if inspect.isclass(each)}}


def _classes(hint: Any) -> Iterator[type]:
    for argument in typing.get_args(hint):
        yield from _classes(argument)
    if inspect.isclass(hint) and hint.__module__.startswith("mountlab."):
        yield hint


# --- one name ---------------------------------------------------------------------------------------------------------


def _name(name: str, what: object) -> str:
    if inspect.ismodule(what):
        return _module(name, what)
    if inspect.isclass(what):
        return _value(name, what, declared=_declared("class", name))
    return f"## {name}\n\n{_declared('function', name + signature(what))}{prose(inspect.getdoc(what))}"


def _declared(kind: str, text: str) -> str:
    """Return a name as an object of Sphinx, which lists it in objects.inv: the sites of plug-ins can link to it."""
    return f":::{{py:{kind}}} mountlab.{text}\n:::\n\n"


def _value(name: str, what: type[Any], *, heading: str = "##", declared: str = "") -> str:
    rows = members(what)
    listed = f"\n\n{table(('Name', 'Meaning'), rows)}" if rows else ""
    return f"{heading} {name}\n\n{declared}{prose(inspect.getdoc(what))}{listed}"


def _module(name: str, module: ModuleType) -> str:
    public = {each: getattr(module, each) for each in sorted(module.__all__)}
    rows = [(code(_written(each, what)), meaning(module, each)) for each, what in public.items()]
    kinds = [(each, what) for each, what in public.items() if inspect.isclass(what) and members(what)]
    return "\n\n".join(
        [
            f"## {name}\n\nA module. {prose(inspect.getdoc(module))}",
            table(("Name", "Meaning"), rows),
            *(_value(f"{name}.{each}", what, heading="###") for each, what in kinds),
        ]
    )


def _written(name: str, what: object) -> str:
    return f"{name}{signature(what)}" if inspect.isfunction(what) else name


def meaning(module: ModuleType, name: str) -> str:
    """Return the meaning of a public name of a module: its docstring, or the text below it where it is a constant."""
    what = getattr(module, name)
    if inspect.isfunction(what) or inspect.isclass(what):
        return first_sentence(inspect.getdoc(what))
    below = [loaded for path, loaded in sys.modules.items() if path.startswith(f"{module.__name__}.")]
    texts = (_below(ast.parse(inspect.getsource(each)).body).get(name, "") for each in below)
    return first_sentence(next((text for text in texts if text), ""))


# --- signatures -------------------------------------------------------------------------------------------------------


class _Bare(str):
    """Text that `inspect` prints as it is, without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def signature(what: Any) -> str:
    """Return the signature as it can be typed: annotations without quotes, defaults as Python writes them."""
    found = inspect.signature(what)
    own = [_typed(each) for each in found.parameters.values() if each.name != "self"]
    return str(found.replace(parameters=own, return_annotation=_annotation(found.return_annotation)))


def _typed(parameter: inspect.Parameter) -> inspect.Parameter:
    default = parameter.default
    if isinstance(default, Path):
        inside = "results" if default == RESULTS else default.relative_to(SHIPPED).as_posix()
        default = _Bare(f'Path("{inside}")')
    return parameter.replace(annotation=_annotation(parameter.annotation), default=default)


def _annotation(annotation: Any) -> Any:
    return _Bare(annotation) if isinstance(annotation, str) else annotation


# --- members ----------------------------------------------------------------------------------------------------------


def members(what: type[Any]) -> list[Member]:
    """Return every public field, property and method of a class: those of its own, and of its parents in Mountlab."""
    own = [kind for kind in reversed(what.__mro__) if kind.__module__.startswith("mountlab.") and kind is not Shown]
    found: dict[str, Member] = {}
    for kind in own:
        found |= _fields(kind) | _methods(kind)
    return list(found.values())


def _fields(kind: type[Any]) -> dict[str, Member]:
    """Return the fields of a class; a name without a text below it is one of the vocabulary that columns have, too."""
    (body,) = (each.body for each in ast.parse(textwrap.dedent(inspect.getsource(kind))).body if _is_class(each))
    texts = _below(body)
    types = {ast.unparse(each.target): ast.unparse(each.annotation) for each in body if isinstance(each, ast.AnnAssign)}
    return {
        name: (code(f"{name}: {annotation}"), first_sentence(texts.get(name) or COLUMN_MEANINGS.get(name)))
        for name, annotation in types.items()
        if not name.startswith("_")
    }


def _is_class(node: ast.stmt) -> typing.TypeGuard[ast.ClassDef]:
    return isinstance(node, ast.ClassDef)


def _below(body: list[ast.stmt]) -> dict[str, str]:
    """Return each name that is assigned to its text: the string in the next statement."""
    found: dict[str, str] = {}
    for node, after in pairwise(body):
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            found |= {ast.unparse(target): str(after.value.value) for target in _targets(node)}
    return found


def _targets(node: ast.stmt) -> list[ast.expr]:
    if isinstance(node, ast.AnnAssign):
        return [node.target]
    return node.targets if isinstance(node, ast.Assign) else []


def _methods(kind: type[Any]) -> dict[str, Member]:
    found = {}
    for name, each in vars(kind).items():
        if name.startswith("_"):
            continue
        if isinstance(each, property | cached_property):
            getter = each.fget if isinstance(each, property) else each.func
            hint = inspect.signature(getter).return_annotation if getter else ""
            found[name] = (code(f"{name}: {hint}"), first_sentence(inspect.getdoc(each)))
        elif inspect.isfunction(each) or isinstance(each, classmethod | staticmethod):
            found[name] = (code(f"{name}{signature(getattr(kind, name))}"), first_sentence(inspect.getdoc(each)))
    return found


def first_sentence(doc: str | None) -> str:
    """Up to the first blank line."""
    return one_line((doc or "").split("\n\n")[0])

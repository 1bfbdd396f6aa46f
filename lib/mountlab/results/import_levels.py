"""What a word in the name of a file means as the value of an option: '4k', 'qd32', 'seq-read'."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from mountlab.core.model import Scalar
from mountlab.core.options import Option
from mountlab.core.units import KIB, TIME_UNITS
from mountlab.fio.options import ENGINES

MAIN: Mapping[str, str] = {"fio": "rw", "filebench": "workload"}
"""Tool to the option for which people name a workload."""
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,3})?)([kmgt]?)(i?)(?:b|bytes?)?", re.IGNORECASE)
_TIME = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)([a-z]*)", re.IGNORECASE)
_SECONDS = {**{unit: float(value) for unit, value in TIME_UNITS.items()}, "sec": 1.0, "": 1.0}
_YES, _NO = frozenset({"1", "true", "yes", "on"}), frozenset({"0", "false", "no", "off"})


def _pattern(word: str) -> str:
    word = re.sub("^seq(uential)?", "", word.replace("random", "rand"))
    return "rw" if word == "readwrite" else word


_WORDS: Mapping[str, Callable[[str], str]] = {"rw": _pattern}


def normal(name: str, value: Scalar) -> Scalar:
    """Return one word for what has two."""
    return _WORDS[name](value) if name in _WORDS and isinstance(value, str) else value


def readings(name: str, level: str, option: Option) -> tuple[Scalar, ...]:
    """Return every value of an option that a word in the name of a file may mean; () for a word that means none."""
    word = re.sub(r"[\s_-]", "", level).lower()
    word = re.sub(rf"^{name.replace('_', '')}(=|(?=\d))", "", word)
    if option.kind == "size":
        return _sizes(word)
    if option.kind == "duration":
        match = _TIME.fullmatch(word)
        return (float(match[1]) * _SECONDS[match[2]],) if match and match[2] in _SECONDS else ()
    if option.kind == "int":
        numbers = re.findall(r"\d{1,15}", word)
        return (int(numbers[0]),) if len(numbers) == 1 else ()
    if option.kind == "flag":
        return (1,) if word in _YES | {name} else (0,) if word in _NO | {f"no{name}", f"non{name}"} else ()
    choices = option.choices or (ENGINES if name == "ioengine" else ())
    word = str(normal(name, word))
    return next(((choice,) for choice in choices if re.sub("[_-]", "", choice) == word), ())


def _sizes(word: str) -> tuple[Scalar, ...]:
    """Of 4k both 4096 and 4000; a number without a unit may be in any."""
    match = _SIZE.fullmatch(word)
    if not match:
        return ()
    units = [match[2].lower()] if match[2] else ["", "k", "m", "g"]
    bases = (KIB,) if match[3] else (KIB, 1000)
    return tuple({float(match[1]) * float(base ** " kmgt".index(unit or " ")) for unit in units for base in bases})

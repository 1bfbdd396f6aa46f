"""Values of tool options as people write them in YAML."""

from __future__ import annotations

import pytest
from mountlab.core.errors import ParameterError
from mountlab.core.options import Option, read_value, unknown_key
from rows import every_row

SIZE, DURATION, INT = Option(kind="size"), Option(kind="duration"), Option(kind="int")
FLAG, TEXT, ANY = Option(kind="flag"), Option(kind="text"), Option(kind="any")
MAPPING = Option(kind="mapping")
CHOICE = Option(kind="choice", choices=("cold", "warm", "as_is"))


@every_row(
    ("raw", "option", "value", "label"),
    [
        ("64KiB", SIZE, 65536, "64KiB"),
        ("65536B", SIZE, 65536, "64KiB"),
        ("500ms", DURATION, 0.5, "500ms"),
        (8, INT, 8, "8"),
        (0, INT, 0, "0"),
        (True, FLAG, 1, "1"),
        (False, FLAG, 0, "0"),
        (1, FLAG, 1, "1"),
        ("psync", TEXT, "psync", "psync"),
        ("warm", CHOICE, "warm", "warm"),
        ("1m", ANY, "1m", "1m"),
        (True, ANY, 1, "1"),
        (2.5, ANY, 2.5, "2.5"),
        ({"a": {"b": "ä", "c": 1}}, MAPPING, '{"a": {"b": "ä", "c": 1}}', '{"a": {"b": "ä", "c": 1}}'),
    ],
)
def test_a_value_is_read_in_base_units_and_kept_as_people_read_it(
    raw: object, option: Option, value: object, label: str
) -> None:
    read = read_value(raw, option, where="w")
    assert (read.value, read.label) == (value, label)
    assert type(read.value) is type(value)


@every_row(
    ("raw", "option", "got", "allowed"),
    [
        ("8", INT, "'8' (str)", "a whole number"),
        (-1, INT, "-1 (int)", "a whole number"),
        (True, INT, "True (bool)", "a whole number"),
        (1.0, INT, "1.0 (float)", "a whole number"),
        (2, FLAG, "2 (int)", "true or false"),
        ("yes", FLAG, "'yes' (str)", "true or false"),
        (None, FLAG, "None (NoneType)", "true or false"),
        (3, TEXT, "3 (int)", "text"),
        ("hot", CHOICE, "'hot' (str)", "cold, warm, as_is"),
        (None, ANY, "None (NoneType)", "text, a number, true or false"),
        ({"a": 1}, ANY, "{'a': 1} (dict)", "text, a number, true or false"),
        ({}, MAPPING, "{} (dict)", "a mapping of names to text, numbers and mappings"),
        ({"a": None}, MAPPING, "{'a': None} (dict)", "a mapping of names to text, numbers and mappings"),
        ({1: "a"}, MAPPING, "{1: 'a'} (dict)", "a mapping of names to text, numbers and mappings"),
        ({"a": float("nan")}, MAPPING, "{'a': nan} (dict)", "a mapping of names to text, numbers and mappings"),
        ("a", MAPPING, "'a' (str)", "a mapping of names to text, numbers and mappings"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(raw: object, option: Option, got: str, allowed: str) -> None:
    with pytest.raises(ParameterError) as caught:
        read_value(raw, option, where="x.yml: workloads.w.o")
    error = caught.value
    assert (error.what, error.where) == ("wrong value for an option", "x.yml: workloads.w.o")
    assert (error.got, error.allowed) == (got, allowed)
    assert error.next_step


def test_a_misspelt_choice_gets_the_near_one_suggested() -> None:
    with pytest.raises(ParameterError, match="did you mean 'warm'"):
        read_value("warn", CHOICE, where="w")


def test_a_word_that_yaml_read_as_a_boolean_is_told_so() -> None:
    """YAML reads `no` as false, so `sync: no` reaches us as a boolean."""
    with pytest.raises(ParameterError, match="YAML reads yes, no, on and off as true and false"):
        read_value(False, CHOICE, where="w")


@pytest.mark.parametrize("option", [SIZE, DURATION], ids=["size", "duration"])
def test_sizes_and_times_need_their_unit(option: Option) -> None:
    with pytest.raises(ParameterError, match="a number with its unit is needed") as caught:
        read_value(90, option, where="w")
    assert caught.value.got == "90 (int)"


def test_an_unknown_key_names_the_allowed_ones_and_the_near_one() -> None:
    error = unknown_key("repeat", ["seed", "repeats"], where="x.yml: design", what="key")
    assert str(error).splitlines() == [
        "unknown key",
        "  where:   x.yml: design",
        "  got:     'repeat'",
        "  allowed: repeats, seed",
        "  next:    did you mean 'repeats'?",
    ]
    assert unknown_key(7, ["seed"], where="w", what="key").next_step == "remove it, or use one of the allowed ones"

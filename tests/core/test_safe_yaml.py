"""YAML that would be endless, large, deep or dangerous once it is read; and sweeps that would never be planned."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hostile_input import BOMBS, CANARY, TEXTS
from mountlab.core.errors import LONGEST_PART, ParameterError
from mountlab.core.safe_yaml import DEEPEST, LONGEST, MOST_NODES, check_texts, parse_yaml
from mountlab.sweep import workload_entry
from mountlab.sweep.box_file import parse_box
from mountlab.sweep.sweep_file import parse_override
from repetition import others_long
from rows import every_row
from sweeps import DIR, sweep
from waiting import no_hang


def refusal(text: str) -> ParameterError:
    with no_hang(), pytest.raises(ParameterError) as caught:
        parse_yaml(text, where="s.yml")
    assert caught.value.where.startswith("s.yml")
    return caught.value


@pytest.mark.slow
@pytest.mark.parametrize("number", others_long(range(len(BOMBS)), kept=range(0, len(BOMBS), 4)))
def test_bombs_are_read_or_refused(number: int) -> None:
    with no_hang(), suppress(ParameterError):  # and nothing else
        parse_yaml(BOMBS[number], where="s.yml")


def test_aliases_are_counted_as_written_out() -> None:
    doubled = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
    assert refusal(doubled).what == "too large with its aliases written out"
    merged = "a0: &a0 {k: v}\n" + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 40))
    assert refusal(merged).what == "too large with its aliases written out"


def test_an_alias_that_is_of_use_is_read() -> None:
    assert parse_yaml("a: &a {k: v}\nb: {<<: *a, l: w}\nc: *a", where="s.yml") == {
        "a": {"k": "v"},
        "b": {"k": "v", "l": "w"},
        "c": {"k": "v"},
    }


@pytest.mark.slow
def test_depth_and_length_have_a_limit() -> None:
    assert refusal("a: " + "[" * (DEEPEST + 1) + "]" * (DEEPEST + 1)).what == "nested too deeply, or within itself"
    assert refusal("a: &a [*a]").what == "nested too deeply, or within itself"
    assert refusal("#" * (LONGEST + 1)).what == "too long for a parameter file"
    assert parse_yaml("a: " + "[" * (DEEPEST - 2) + "]" * (DEEPEST - 2), where="s.yml")
    assert len(parse_yaml("a: [" + "x," * 50_000 + "]", where="s.yml")["a"]) == 50_000 < MOST_NODES


@every_row("text", ["a: " + "9" * 5000, "a: 0x" + "f" * 5000, "a: 1" + ":59" * 3000, "a: !!int " + "7" * 200])
def test_a_number_without_end_is_refused(text: str) -> None:
    assert refusal(text).what == "too long for a number or a date"


@pytest.mark.parametrize(
    "text", [f"a: !!python/object/apply:os.system ['touch {CANARY}']", "a: !!python/name:os.system", "a: !mine x"]
)
def test_no_tag_makes_an_object(text: str) -> None:
    assert "could not determine a constructor" in refusal(text).got


@every_row("text", [each for each in TEXTS if any(ord(c) < 32 and c not in "\t\n" for c in each)])
def test_a_text_that_could_steer_a_terminal_is_refused_wherever_it_stands(text: str) -> None:
    for raw in ({"host": text}, {text: "x"}, {"scratch": {text: "/dev/pmem0"}}, {"scratch": {"a": [text]}}):
        with pytest.raises(ParameterError) as caught:
            parse_box(raw, name="b", where="b.yml")
        assert caught.value.what == "a control character in a text"
        assert str(caught.value).replace("\n", "").isprintable()


@every_row("code", ["202e", "2066", "2028", "009b", "0007"])
def test_text_that_shows_itself_as_another_is_refused_in_a_file(code: str) -> None:
    assert refusal(f'a: [b, {{c: "x\\u{code}y"}}]').what == "a control character in a text"


def test_a_run_that_has_such_text_can_be_read() -> None:
    """Its pages show it by name."""
    check_texts({"a": "x\u202ey"}, "run.json")
    with pytest.raises(ParameterError):
        check_texts({"a": "x\x1by"}, "run.json")


def test_other_alphabets_and_signs_are_text() -> None:
    check_texts({"frage": "Wie schnell? 速度 سرعة 😀\tµ −\n"}, "here")


def test_an_override_is_as_strict() -> None:
    for value in ("&a [*a]", "9" * 300, "!!python/name:os.system", "[" * 100):
        with pytest.raises(ParameterError, match="the value is not valid YAML"):
            parse_override(f"repeats={value}")


def test_an_error_is_no_longer_than_people_read() -> None:
    with pytest.raises(ParameterError) as caught:
        sweep(filesystems={"d": {"type": ["x" * 1_000_000]}})
    assert len(str(caught.value)) < 2 * LONGEST_PART
    assert "characters) ..." in str(caught.value)


# --- sweeps that would never be planned -------------------------------------------------------------------------------


def of_dd(**more: Any) -> dict[str, Any]:
    return {"d": {"tool": "dd", "direction": "write", "bs": "4KiB", "count": 1, **more}}


def levels(many: int) -> list[str]:
    return [f"{number}KiB" for number in range(1, many + 1)]


@pytest.mark.slow
@every_row(
    ("workloads", "design", "what"),
    [
        (of_dd(bs=levels(1001)), {}, "too many levels for one factor"),
        (of_dd(bs=levels(1000), count=list(range(1, 1001))), {}, "too many combinations for one workload"),
        (
            {"f": {"tool": "fio", "rw": "read", "size": "1MiB", **{f"x{n}": list(range(10)) for n in range(9)}}},
            {},
            "too many combinations for one workload",
        ),
        (
            of_dd(also=[{"bs": levels(1000), "count": list(range(2, 1000))}]),
            {},
            "too many combinations for one workload",
        ),
        (of_dd(bs=levels(1000), exclude=[{"bs": "1KiB"}] * 1001), {}, "too many exclusions for so many combinations"),
        (of_dd(bs=levels(101)), {"repeats": 10_000, "warmup": 0}, "too many trials for one sweep"),
    ],
)
def test_a_sweep_without_end_is_refused(workloads: dict[str, Any], design: dict[str, Any], what: str) -> None:
    with no_hang(), pytest.raises(ParameterError) as caught:
        sweep(filesystems={"d": DIR}, workloads=workloads, design=design)
    assert caught.value.what == what


def test_a_large_sweep_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload_entry, "MOST_CELLS", 20)
    assert len(sweep(workloads=of_dd(bs=levels(20))).sweep.workloads) == 20
    with pytest.raises(ParameterError, match="too many combinations"):
        sweep(workloads=of_dd(bs=levels(21)))


# --- addresses --------------------------------------------------------------------------------------------------------


@every_row(
    "host",
    [
        "-oProxyCommand=touch x",
        "a b",
        "a;b",
        "$(id)",
        "`id`",
        "a|b",
        "../a",
        "a/b",
        "'a'",
        '"',
        "a\\b",
        "a@b@c",
        "*",
        "!a",
    ],
)
def test_a_host_is_no_option_and_no_command(host: str) -> None:
    with pytest.raises(ParameterError, match="not a host"):
        parse_box({"host": host}, name="b", where="b.yml")


@every_row("host", ["lab", "lab.example.org", "10.0.0.7", "::1", "fe80::1%eth0", "[::1]:2222", "alice@lab", "lab:2222"])
def test_a_host_is_an_alias_a_name_or_an_address(host: str) -> None:
    assert parse_box({"host": host}, name="b", where="b.yml").host == host


@every_row("user", ["-l", "a b", "a;b", "$(id)", "root\\x y"])
def test_a_user_is_no_option_and_no_command(user: str) -> None:
    with pytest.raises(ParameterError, match="not a user"):
        parse_box({"host": "lab", "user": user}, name="b", where="b.yml")


@pytest.mark.parametrize("raw", [{"host": "alice:hunter2@lab"}, {"host": "lab", "user": "alice:hunter2@lab"}])
def test_a_password_is_refused_and_not_shown(raw: dict[str, str]) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_box(raw, name="b", where="b.yml")
    assert "password" in caught.value.what
    assert "hunter2" not in str(caught.value)

"""Shell programs that are put together from several files: each has all that it calls."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mountlab.core.places import SHIPPED
from mountlab.core.shell import ROOMS, script_text

FILES = {file.name: file for room in ROOMS for file in Path(SHIPPED, "lib/mountlab", room).glob("*.sh")}
FUNCTION = re.compile(r"^(?P<name>\w+)\(\) \{(?P<body>[^\n]*\}$|.*?^\}[^\n]*$)", re.MULTILINE | re.DOTALL)
WORD_BEFORE = r"(?:do|then|else|elif|if|while|until|!)"
COMMAND = rf"(?:^|[;&|{{)]|\b{WORD_BEFORE})[ \t]*(?:{WORD_BEFORE}[ \t]+)*(\w+)(?=[ \t\n;&|]|$)"
SUBSHELL = r"\([ \t]*(\w+)(?=[ \t\n;&|)])"
CALL = re.compile(f"{COMMAND}|{SUBSHELL}", re.MULTILINE)
"""A word where a command stands."""
SKIPPED = re.compile(r"\\.|'[^']*'|\$\(\(.*?\)\)|\$\{(?:[^{}]|\$\{[^}]*\})*\}|\$[#*@?$!]|(?<![^\s])#[^\n]*", re.DOTALL)
"""Escaped signs, text in single quotes, sums, variables, comments."""
PARTS = {"claim_record.sh", "contain.sh", "device.sh", "ownership.sh", "trace.sh"}
"""They have functions only, and are no program alone."""
OF_TRIAL = {"contain.sh", "trace.sh", "trial.sh"}
"""Put together with a head that is written for each trial (tests/sweep/test_trial_script.py runs them)."""


def commands_only(text: str) -> str:
    """Return a script without texts and comments. What it runs inside of a text, `"$(command)"`, stays."""
    kept, inside, at = list[str](), [""], 0
    while at < len(text):
        skipped = None if inside[-1] == '"' and text[at] in "'#" else SKIPPED.match(text, at)
        if skipped:
            at = skipped.end()
            continue
        sign, at = text[at], at + 1
        if sign == '"':
            inside[-1:] = [] if inside[-1] == '"' else [inside[-1], '"']
        elif sign == "(" and (inside[-1] != '"' or text[at - 2] == "$"):
            inside.append("(")
        elif sign == ")" and inside[-1] == "(":
            inside.pop()
        if inside[-1] != '"' and sign != '"':
            kept.append(sign)
    return "".join(kept)


def functions(text: str) -> dict[str, set[str]]:
    """Return each function of a script to the commands in it; '' to those outside of all."""
    code = commands_only(text)
    bodies = {match["name"]: match["body"] for match in FUNCTION.finditer(code)} | {"": FUNCTION.sub("", code)}
    return {name: {word for match in CALL.findall(body) for word in match if word} for name, body in bodies.items()}


SHARED = {name for part in PARTS for name in functions(FILES[part].read_text()) if name} | {"foreign", "stuck", "a_run"}
"""Functions of one file that others call; the last three are given by the programs that call ownership.sh."""


@pytest.mark.parametrize("name", sorted(FILES.keys() - PARTS))
def test_a_program_has_every_function_that_it_calls(name: str) -> None:
    before = script_text("trace.sh") if name == "trial.sh" else ""  # of a diagnostic trial, which calls most
    has = functions(before + script_text(name))
    reached, new = set[str](), {""}
    while new:
        reached |= new
        new = {word for function in new for word in has[function] & (SHARED | has.keys())} - reached
        assert new - has.keys() == set()


def test_no_two_scripts_have_the_same_name() -> None:
    assert len(FILES) == sum(len(list(Path(SHIPPED, "lib/mountlab", room).glob("*.sh"))) for room in ROOMS)

"""Reads the facts about a box (mountlab.core.box_facts) by one script, in one round trip."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any

from mountlab.box.connection import BoxConnection, checked
from mountlab.core.box_facts import FACTS, BoxFacts, Fact
from mountlab.core.box_facts.parsing import FUNCTIONS
from mountlab.core.box_facts.programs import parse_programs
from mountlab.core.errors import BoxError
from mountlab.core.model import Program, Rights

GATHER_TIMEOUT_S = 300.0
"""The script starts some hundred programs: an emulated guest on a busy machine has taken over a minute for them."""
_PROGRAMS = FACTS["programs"]

ROOTS_SCRIPT = r"""
user=$(id -un)
mount_root=${1:-/var/tmp/mountlab-$user}
output_root=${2:-}
if [ -z "$output_root" ]; then
    output_root=$mount_root/out
    if [ -d /dev/shm ] && [ -w /dev/shm ]; then output_root=/dev/shm/mountlab-$user; fi
fi
# Without a link above it: the kernel names mount points so. A root that is a link itself stays one: open.sh refuses it.
resolved() {
    above=${1%/*} last=${1##*/}
    while [ ! -d "$above/" ]; do
        last=${above##*/}/$last
        above=${above%/*}
    done
    above=$(CDPATH='' cd -- "$above/" 2>/dev/null && pwd -P) || { printf '%s' "$1"; return; }
    printf '%s/%s' "${above%/}" "$last"
}
case $mount_root in /*) mount_root=$(resolved "$mount_root") ;; esac
case $output_root in /*) output_root=$(resolved "$output_root") ;; esac
"""
"""Where our directories are: $1 and $2 are mount_root and output_root of the box file, '' where it has none."""


_FUNCTIONS = r"""
newline='
'
# What a program says that has no version: of BusyBox's it is the help, which names it.
unversioned() { case $version in *BusyBox\ v*) version=BusyBox${version#*BusyBox} ;; *) version='' ;; esac; }
# Where $1 is BusyBox, the version is BusyBox's, whatever the program makes of the option: mount lists all mounts.
of_busybox() { case ${1##*/} in busybox*) version=$("$1" 2>&1 </dev/null) ;; esac; }
# Print each line of $2 behind $1 and a tab. There are many facts: it takes no process of its own.
section() {
    IFS=$newline
    set -f
    for line in $2; do printf '%s\t%s\n' "$1" "$line"; done
    set +f
    unset IFS
}
"""


def gather(connection: BoxConnection, programs: Iterable[Program]) -> BoxFacts:
    """Return all facts of a box that a script prints, and path and version of each of `programs` that it has.

    One round trip, as the user who logs in. Raises CommandError or BoxError when the box cannot run the script.
    """
    script = gather_script(FACTS.values(), programs)
    argv = ("sh", "-c", script, "mountlab-facts", connection.box.mount_root or "", connection.box.output_root or "")
    printed = checked(connection, argv, what="the box's facts could not be read", timeout_s=GATHER_TIMEOUT_S).text
    return parse_sections(printed, rights=connection.rights)


def roots(connection: BoxConnection) -> tuple[str, str]:
    """Return (mount_root, output_root) of the box, as `gather` does, in one round trip."""
    script = ROOTS_SCRIPT + 'printf "%s\\n%s\\n" "$mount_root" "$output_root"'
    argv = ("sh", "-c", script, "mountlab-roots", connection.box.mount_root or "", connection.box.output_root or "")
    lines = checked(connection, argv, what="the box's directories could not be found").text.splitlines()
    if len(lines) != 2 or not all(line.startswith("/") for line in lines):
        raise BoxError(
            "the box's directories must be absolute paths",
            where=f"params/boxes/{connection.box.name}.yml: mount_root, output_root",
            got=" and ".join(map(repr, lines)),
        )
    return lines[0], lines[1]


def gather_script(facts: Iterable[Fact], programs: Iterable[Program]) -> str:
    """Return one script for all. Each line of output begins with the key of its fact and a tab: nothing a fact
    prints can be taken for another's."""
    blocks = [(fact.key, fact.script) for fact in facts if fact.script]
    blocks += [(_PROGRAMS.key, _program_script(program)) for program in programs]
    sections = (f'section {key} "$({{\n{script.strip()}\n}} 2>/dev/null)"' for key, script in blocks)
    return "\n".join([ROOTS_SCRIPT, _FUNCTIONS, FUNCTIONS, *sections, "exit 0", ""])


def _program_script(program: Program) -> str:
    places = [f'PATH="$PATH:$(echo {place} | tr " " :)"' for place in program.places]
    line = '"${version%%"$newline"*}"'
    if program.version_word:
        line = f'"$(printf "%s" "$version" | grep -m 1 -- {shlex.quote(program.version_word)})"'
    return "\n".join(
        [
            *places,
            f"if path=$(command -v {shlex.quote(program.name)}); then",
            f"    version=$({shlex.join(program.version)} 2>&1 </dev/null) || unversioned",
            '    [ ! -h "$path" ] || of_busybox "$(readlink -f "$path")"',
            f'    printf "%s\\t%s\\t%s\\n" {shlex.quote(program.name)} "$path" {line}',
            "fi",
        ]
    )


def parse_sections(printed: str, rights: Rights | None = None) -> BoxFacts:
    """Return the facts from what `gather_script` printed; what it did not print, or what does not parse, is unknown."""
    texts: dict[str, list[str]] = {key: [] for key, fact in FACTS.items() if fact.script or fact is _PROGRAMS}
    for line in printed.split("\n"):
        key, tab, rest = line.partition("\t")
        if tab and key in texts:
            texts[key].append(rest)
    record = {key: _parse(FACTS[key], "\n".join(text).strip("\n ")) for key, text in texts.items()}
    record[_PROGRAMS.key] = parse_programs("\n".join(texts[_PROGRAMS.key]))
    return BoxFacts.from_record({**record, **({"rights": rights} if rights else {})}, "the box")


def _parse(fact: Fact, text: str) -> Any:
    try:
        return fact.parse(text) if text else None
    except ValueError:
        return None

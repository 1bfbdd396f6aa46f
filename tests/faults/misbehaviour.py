"""Tools that misbehave: a program under the name of each, which does to it what its number asks for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mountlab_dev import needs

MARK = 700
"""A tool is asked for the n-th way by this number plus n: of blocks, of files, or of KiB."""


@dataclass(frozen=True)
class Way:
    """One way to misbehave: a piece of a shell script, in which `real` runs the tool as it was asked to."""

    name: str
    script: str
    honest: bool = False
    """Whether what it measures is right all the same, so that the trial may be ok."""
    short: bool = False
    """Whether the short form tries it too."""


WAYS = (
    Way("as it should", "real", honest=True, short=True),
    Way("says nothing, and that all is well", "exit 0", short=True),
    Way("says nothing, and fails", "exit 3"),
    Way("dies of a signal", "kill -SEGV $$"),
    Way("is killed", "kill -KILL $$"),
    Way("is killed when it is done", "real; kill -KILL $$", short=True),
    Way("fails when it is done", "real; exit 1"),
    Way("prints binary", 'head -c 300000 /dev/urandom | tee "${report:-/dev/null}" | tee /dev/stderr', short=True),
    Way("prints zero bytes", "changed 'tr 0-9 \"\\0\"'"),
    Way("loses the second half of what it says", "changed 'head -c 60'", short=True),
    Way("says the first two lines and no more", "changed 'head -n 2'"),
    Way("has done nothing at all", "changed 'tr 1-9 0'"),
    Way("has done more than anybody can", "changed 'tr 0-8 9'"),
    Way("says that it is not a number", "changed 'sed s/[0-9][0-9]*/nan/g'"),
    Way("answers with another program's words", "echo '{\"a\": [1, 2]}'; echo done >&2"),
    Way("leaves children behind", "for i in 1 2 3 4 5 6 7 8; do sleep 300 & done; real", short=True),
    Way(
        "forks and forks, and all of them talk",
        "fork() { for i in 1 2 3 4 5 6; do (eval \"$1\") & done; }; talk='yes $i | head -c 100000; sleep 300'; "
        "fork 'fork \"$talk\"; sleep 300'; exit 0",
    ),
    Way("hangs", "exec sleep 300"),
    Way("hangs, and ignores that it is to end", "trap '' TERM INT HUP; while :; do sleep 1; done"),
    Way("is stopped", "kill -STOP $$"),
    Way("floods its output", "yes | head -c 200000000; exit 0"),
)
SCRIPT = """#!/bin/sh
way=
for word in "$@"; do
    number=${{word##*[!0-9]}}
    case $number in ??????) number=$((number / 1024)) ;; esac
    case $number in 7[0-9][0-9]) way=$((number - {mark})) ;; esac
done
[ -n "$way" ] || exec {real} "$@"
report=
for word in "$@"; do case $word in --output=*) report=${{word#--output=}} ;; esac; done
words=$(mktemp -d) || exit 99
trap 'rm -rf "$words"' EXIT
asked() {{ {asked}; }}
real() {{ eval "asked $arguments"; }}
changed() {{
    real >"$words/out" 2>"$words/err"
    status=$?
    sh -c "$1" <"$words/out"
    sh -c "$1" <"$words/err" >&2
    [ -z "$report" ] || {{ sh -c "$1" <"$report" >"$words/report"; cat "$words/report" >"$report"; }}
    return "$status"
}}
arguments=
for word in "$@"; do arguments="$arguments '$word'"; done
case $way in
{ways}
esac
"""


RECORDED = Path(__file__).parents[1] / "data" / "pg_test_fsync" / "ext4.stdout"
REPLAYED = {"pg_test_fsync": f'sed "1s/.*/$2 seconds per test/" {RECORDED}'}
"""Tools that would take longer than anybody waits: what they said once, as if they had been asked for this."""


def put(directory: Path, tool: str) -> None:
    """A program of the tool's name in `directory`."""
    real = needs.find(tool)
    ways = "\n".join(f"{n}) {way.script} ;;" for n, way in enumerate(WAYS))
    program = directory / tool
    asked = REPLAYED.get(tool, f'{real} "$@"')
    program.write_text(SCRIPT.format(mark=MARK, real=real, asked=asked, ways=ways))
    program.chmod(0o755)

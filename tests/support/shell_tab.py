"""A shell at a terminal of its own, in which a test types and presses Tab."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from waiting import wait_until

COMMANDS = Path(sys.executable).parent
_TAB, _CLEAR = "\t", "\x15"
_LINE, _OFFERS, _WORDS = "\x18d", "\x18e", "\x18w"
"""Keys, Ctrl-X and a letter, that write into a file what is typed, what may follow, and the words of what is typed."""


class Shell(NamedTuple):
    """How a shell is started, and what it does at the keys above."""

    install: str
    command: tuple[str, ...]
    settings: str


_BASH = r"""
PS1='> '; set +o history +o histexpand
bind 'set bell-style none'; bind 'set enable-bracketed-paste off'
write() { printf '%s\0' "$@" >"$OUT.new"; mv "$OUT.new" "$OUT"; }
line() { write "$READLINE_LINE"; }
words() { eval "write $READLINE_LINE"; }
bind -x '"\C-xd": line'; bind -x '"\C-xw": words'
bind '"\C-xi": insert-completions'; bind '"\C-xe": "\C-xi\C-xw"'
"""
_ZSH = r"""
PS1='> '; autoload -Uz compinit; compinit -D -u
write() { print -rN -- "$@" >"$OUT.new"; mv "$OUT.new" "$OUT"; }
line() { write "$BUFFER"; }
words() { eval "write $BUFFER"; }
compadd() { local fitting=(); builtin compadd -O fitting "$@"; offered+=("${fitting[@]}"); builtin compadd "$@"; }
offers() { typeset -ga offered=(); zle list-choices; write "${offered[@]}"; }
for key in line:d words:w offers:e; do zle -N ${key%:*}; bindkey "^X${key#*:}" ${key%:*}; done
"""
_FISH = r"""
function fish_prompt; echo '> '; end
function write; string join0 -- $argv >$OUT.new; mv $OUT.new $OUT; end
function line; write (commandline | string collect); end
function words; eval write (commandline | string collect); end
function offers; write (complete -C | string replace -r '\t.*' ''); end
bind \cxd line; bind \cxw words; bind \cxe offers
"""
SHELLS = {
    "bash": Shell('eval "$(mountlab completion bash)"', ("bash", "--rcfile", "rc", "-i"), _BASH),
    "zsh": Shell('eval "$(mountlab completion zsh)"', ("zsh", "-d", "-i"), _ZSH),
    "fish": Shell("mountlab completion fish | source", ("fish", "--no-config", "--init-command", "source rc"), _FISH),
}


@dataclass
class Terminal:
    """A shell that waits for keys."""

    name: str
    place: Path
    """Where it is."""
    keyboard: int

    def line_after_tab(self, line: str) -> str:
        """Return what stands on the line once Tab was pressed behind it."""
        return self._written(line, _TAB, _LINE)[0]

    def words_of(self, line: str) -> list[str]:
        """Return the arguments that the shell would give to a program."""
        return self._written(line, _WORDS)

    def offers(self, line: str) -> set[str]:
        """Return what may stand for the last word of a line."""
        words = self._written(line, _OFFERS)
        if self.name == "bash":  # it puts all of them in the place of the word
            words = words[len(line.split(" ")) - 1 :]
        return {*words} - {""}

    def _written(self, *keys: str) -> list[str]:
        """Press keys of which the last one writes the file, and return its strings."""
        out = self.place / "out"
        os.write(self.keyboard, "".join(keys).encode())
        text = wait_until(f"what {self.name} writes", lambda: out.exists() and (out.read_text() or "\0"))
        out.unlink()
        os.write(self.keyboard, _CLEAR.encode())
        return text.removesuffix("\0").split("\0")


@contextmanager
def terminal(name: str, place: Path, **environment: str) -> Iterator[Terminal]:
    """Start a shell in a directory, which becomes its home."""
    shell = SHELLS[name]
    for file in ("rc", ".zshrc"):
        (place / file).write_text(shell.settings + shell.install)
    inherited = {key: value for key, value in os.environ.items() if key.startswith(("MOUNTLAB_", "LANG"))}
    paths = {"PATH": f"{COMMANDS}:{os.environ['PATH']}", "HOME": str(place), "ZDOTDIR": str(place)}
    environment = {**inherited, **paths, "TERM": "xterm", "OUT": str(place / "out"), **environment}
    keyboard, screen = pty.openpty()
    argv = ["setsid", "--ctty", "--wait", *shell.command]
    process = subprocess.Popen(argv, stdin=screen, stdout=screen, stderr=screen, cwd=place, env=environment)
    os.close(screen)
    reader = threading.Thread(target=_read_away, args=(keyboard,))
    reader.start()
    try:
        yield Terminal(name, place, keyboard)
    finally:
        os.write(keyboard, f"{_CLEAR}exit\r".encode())
        process.wait()
        reader.join()
        os.close(keyboard)


def _read_away(keyboard: int) -> None:
    """Take what a terminal shows, until the last program at it has ended: it holds little."""
    with suppress(OSError):
        while os.read(keyboard, 4096):
            pass

"""completion: let a shell complete verbs, options, and the names of sweeps, runs, boxes and batches."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path
from shlex import quote
from typing import Any

from mountlab.cli.shared import Arguments, verb

_INSTALL = {
    "bash": 'eval "$({} completion bash)" in ~/.bashrc',
    "zsh": 'eval "$({} completion zsh)" in ~/.zshrc, after compinit',
    "fish": "{} completion fish | source in ~/.config/fish/config.fish",
}
"""Shell to the line that installs it, where {} is the command."""
_IN_BASH = ("-o", "nospace", "-o", "nosort")
"""Of the builtin `complete`. argcomplete gives the space back where a word is whole."""
_IN_ZSH = "zstyle ':completion:*:mountlab:*' list-grouped false"
"""Names without a description would be shown in columns of several orders."""


def add(verbs: Any) -> None:
    text = "let Tab complete verbs, options and names in a shell: print what it evaluates, and how to install that"
    completion = verb(verbs, "completion", _completion, text)
    completion.add_argument("shell", choices=tuple(_INSTALL), help="bash 4.4 or later, zsh or fish")


def _completion(arguments: Arguments) -> int:
    from argcomplete.shell_integration import shellcode

    here = Path(sys.executable).with_name("mountlab")
    command = "mountlab" if shutil.which("mountlab") or not here.exists() else quote(str(here))
    shell: str = arguments.shell
    in_fish = command if shell == "fish" else None
    code = shellcode(["mountlab"], shell=shell, complete_arguments=_IN_BASH, argcomplete_script=in_fish)
    if shell == "zsh":
        code += _IN_ZSH
    elif shell == "fish":
        code = code.replace(" -f -a ", " -f --keep-order -a ")
    # First stands what zsh reads where this is kept as a file: #compdef.
    print(f"{code.strip()}\n# To install it: {_INSTALL[shell].format(command)}")
    return 0


def answer_tab(parser: argparse.ArgumentParser) -> None:
    """Where a shell asks what may be typed next, write that to it and end this process."""
    if "_ARGCOMPLETE" not in os.environ:
        return
    from argcomplete import autocomplete
    from argcomplete.completers import SuppressCompleter

    autocomplete(
        parser,
        always_complete_options=False,
        validator=_is_offered,
        default_completer=SuppressCompleter(),
    )


def _is_offered(name: str, prefix: str) -> bool:
    """Return whether a name fits; one with a character that no terminal shows could pass for another, or move the
    cursor."""
    return name.startswith(prefix) and name.isprintable()

"""The sweep of `mountlab watch`: one program, in one directory, so many times."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mountlab.core.errors import ParameterError
from mountlab.core.safe_yaml import Raw
from mountlab.tools.own_metrics import BETTER

PLACE, LONGEST = "here", "24h"
"""The name of the directory in the sweep, and how long a program may run."""
_WORD = re.compile(r"[\w./][\w./-]{0,60}", re.ASCII)
_EXAMPLE = "NAME=PATTERN:UNIT:BETTER, such as 'tps=tps = ([0-9.]+):1/s:higher', or NAME=$.path.in.json:UNIT:BETTER"


@dataclass(frozen=True)
class WatchRequest:
    """What `mountlab watch` was asked for."""

    argv: Sequence[str]
    directory: str
    box: str
    repeats: int = 1
    label: str = ""
    """What tables call it; '' for a name that is made of its words."""
    metrics: Sequence[str] = ()
    """As they are typed: NAME=PATTERN:UNIT:BETTER."""
    environment: Mapping[str, str] = field(default_factory=dict)
    cold: bool = False
    trace: bool = False
    """Whether it runs once more after that, with its system calls recorded."""
    commit_clients: int = 1
    """How many can wait for a commit at the same time, where a metric is commits."""
    longest: str = LONGEST

    @property
    def name(self) -> str:
        """The name of the program, for tables and for the run directory, with what it is to do: git-status."""
        if self.label:
            return self.label
        program, *others = self.argv
        words = [program, *(word for word in others[:1] if _WORD.fullmatch(word))]
        name = "-".join(re.sub(r"[^a-z0-9]+", "-", word.rpartition("/")[2].lower()).strip("-") for word in words)
        return name[:40].strip("-") or "program"

    def parameters(self) -> Raw:
        """Return the mapping of a sweep file that does the same. Raises ParameterError for a metric that cannot be
        read."""
        workload: dict[str, Any] = {"tool": "watched", "argv": shlex.join(self.argv)}
        clock = {"elapsed": {"from": "clock"}}
        workload["metrics"] = clock | dict(map(read_metric_text, self.metrics))
        if self.environment:
            workload["environment"] = dict(self.environment)
        if self.commit_clients != 1:
            workload["commit_clients"] = self.commit_clients
        if self.cold:
            workload["cache"] = "cold"
        return {
            "name": f"watch-{self.name}",
            "question": f"What does {self.name} do in {self.directory}, and what answers it?",
            "box": self.box,
            "filesystems": {PLACE: {"type": "in_place", "path": self.directory}},
            "workloads": {self.name: workload},
            "design": {
                "repeats": self.repeats,
                "warmup": 0,
                "fresh_filesystem": "never",
                "drop_caches": False,
                "shortest_trial": "0s",
                "trial_timeout": self.longest,
                "retries": 0,
                "profile": self.trace,
            },
        }


def read_metric_text(text: str) -> tuple[str, Raw]:
    """Return the name of a metric and its entry in a sweep file. The pattern may hold colons. Raises ParameterError."""
    name, equals, rest = text.partition("=")
    parts = rest.split(":")
    better = parts.pop() if parts[-1] in BETTER else ""
    unit = parts.pop() if len(parts) > 1 else ""
    place = ":".join(parts)
    if not equals or not name or not place or not unit:
        raise ParameterError("not a metric", where="--metric", got=repr(text), allowed=_EXAMPLE)
    source, colon, pattern = place.partition(":")
    from_stderr = source == "stderr" and bool(colon)
    place = pattern if from_stderr else place
    entry: Raw = {"json" if place.startswith(("$.", "$[")) else "pattern": place, "unit": unit}
    more = {"better": better} if better else {}
    return name, entry | more | ({"from": "stderr"} if from_stderr else {})

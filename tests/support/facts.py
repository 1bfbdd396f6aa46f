"""Facts about a box, as tests give them: by the keys of run.json."""

from __future__ import annotations

from typing import Any

from mountlab.core.box_facts import BoxFacts


def known(before: BoxFacts | None = None, /, **changes: Any) -> BoxFacts:
    """These facts, and others in the place of what was known before."""
    return BoxFacts.from_record({**(before.as_record() if before else {}), **changes})

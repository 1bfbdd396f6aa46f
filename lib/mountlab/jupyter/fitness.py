"""Is a box fit to measure on: look at it, and show what was found."""

from __future__ import annotations

from mountlab.report.views.fitness import checks, idle, verdict, work_sentence
from mountlab.runner.fitness import look

__all__ = ["checks", "idle", "look", "verdict", "work_sentence"]

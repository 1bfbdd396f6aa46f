"""Which file system for a workload: ranks with their uncertainty, from all pairs of file systems of one run."""

from __future__ import annotations

from mountlab.analysis.ranks import choice_sentences, condition_sentences, rank_frame, ranks

__all__ = ["choice_sentences", "condition_sentences", "rank_frame", "ranks"]

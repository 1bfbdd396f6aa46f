"""Estimates, comparisons, history, gate and forecast: what the measurements of runs say, and the words of verdicts."""

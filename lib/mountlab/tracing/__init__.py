"""Kernel traces: perf.data in, the parts of each operation out. It does not know of runs."""

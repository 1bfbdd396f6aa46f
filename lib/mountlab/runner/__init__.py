"""The order of effects of one run, from the guard to the last trial, and what it shows meanwhile."""

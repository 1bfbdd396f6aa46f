"""`make fuzz` is `make test` with more examples: the same properties, for longer."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "fuzz", derandomize=False, max_examples=20_000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

"""What holds for all tests: how hard hypothesis tries, and that CI does not skip (see skip_gate.py)."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

pytest_plugins = ["skip_gate"]

# `nox -s fuzz` runs rounds of this profile, each with a seed of its own.
settings.register_profile(
    "fuzz", max_examples=2_000, derandomize=False, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

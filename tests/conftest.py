"""What holds for all tests: how hard hypothesis tries, no skips in CI (skip_gate.py), answers that fit (answers.py)."""

from __future__ import annotations

import signal

from hypothesis import HealthCheck, settings

pytest_plugins = ["answers", "skip_gate"]

# A shell that runs the tests in the background has them ignore Ctrl-C, which every process they start would inherit:
# tests that interrupt one would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long one example takes says more about the machine than about us.
settings.register_profile("tests", deadline=None)
# `nox -s fuzz` runs rounds of this profile until its time is up, each with a seed of its own: short rounds, so that a
# short time is kept to.
settings.register_profile(
    "fuzz", max_examples=200, derandomize=False, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tests")

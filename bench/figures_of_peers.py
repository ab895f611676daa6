"""Measures a peer's step alternately with the floor, so that both see the same disk and the same load.

Imported by the peer programs, which run in separate environments; it needs only the standard library.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

ROUNDS = 150
TEXT = "x" * 1000


def durable_append(file: Path) -> Callable[[], object]:
    """The floor for a file: write and sync the text."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def append() -> None:
        os.write(descriptor, TEXT.encode())
        os.fdatasync(descriptor)

    return append


def beside_the_floor(floor: Callable[[], object], step: Callable[[int], object]) -> dict[str, float]:
    """Return the median time of a step, and its multiple of the floor."""
    floors, steps = [], []
    for number in range(ROUNDS):
        began = time.perf_counter()
        floor()
        floors.append(time.perf_counter() - began)
        began = time.perf_counter()
        step(number)
        steps.append(time.perf_counter() - began)
    return {
        "wall_ms": statistics.median(steps) * 1e3,
        "floor_ms": statistics.median(floors) * 1e3,
        "times_floor": statistics.median(steps) / statistics.median(floors),
    }


def tell(figures: dict[str, float]) -> None:
    print(json.dumps(figures), flush=True)

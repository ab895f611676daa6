"""A progress bar, on a terminal, for work that takes longer than a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

_PATIENCE = 1.0
_INTERVAL = 0.1
_WIDTH = 30


def progress_bar() -> Callable[[int, int], None]:
    """A function to call with (done, all). It draws on standard error, so that output stays clean."""
    if not sys.stderr.isatty():
        return lambda _done, _all: None
    started = drawn = time.monotonic()

    def draw(done: int, everything: int) -> None:
        nonlocal drawn
        now = time.monotonic()
        if done >= everything:
            if drawn > started:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
        elif now - started > _PATIENCE and now - drawn > _INTERVAL:
            drawn = now
            filled = _WIDTH * done // everything
            sys.stderr.write(f"\r[{'#' * filled}{'.' * (_WIDTH - filled)}] {done} of {everything} files")
            sys.stderr.flush()

    return draw

"""`check --watch`: checks again whenever a file changes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from workpacket.shell.tree import find_documents

_INTERVAL = 0.3


def watch(check: Callable[[], int], root: str) -> int:
    """Runs `check` at once and after every change, until interrupted. Looking at all files is cheap."""
    seen: list[tuple[str, str]] | None = None
    status = 0
    try:
        while True:
            now = [(found.path, found.state) for found in find_documents(root)]
            if now != seen:
                seen = now
                if sys.stdout.isatty():
                    sys.stdout.write("\x1b[2J\x1b[H")
                status = check()
                sys.stdout.flush()
            time.sleep(_INTERVAL)
    except KeyboardInterrupt:
        return status

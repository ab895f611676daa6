"""A fingerprint of the tool itself: its caches are invalid once any part of it has changed."""

from __future__ import annotations

import os

from workpacket import __version__


def package_fingerprint() -> str:
    """Return the identity of an installed package; for a checkout, the count, size and time of all source and schema
    files.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    schemas = schema_folder()
    if schemas.startswith(package):
        # Installed packages are replaced as a whole, never edited.
        status = os.stat(__file__)
        return f"{__version__}-{status.st_mtime_ns}-{status.st_ino}"
    count = size = newest = 0
    for folder in (package, schemas):
        for name, status in _files(folder):
            if name.endswith((".py", ".json")):
                count += 1
                size += status.st_size
                newest = max(newest, status.st_mtime_ns)
    return f"{__version__}-{count}-{size}-{newest}"


def schema_folder() -> str:
    """Return the folder of the JSON Schemas: inside an installed package, or next to `tools` in a checkout."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed = os.path.join(package, "schemas")
    return installed if os.path.isdir(installed) else os.path.join(os.path.dirname(os.path.dirname(package)), "schemas")


def _files(folder: str) -> list[tuple[str, os.stat_result]]:
    found: list[tuple[str, os.stat_result]] = []
    waiting = [folder]
    while waiting:
        current = waiting.pop()
        with os.scandir(current) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != "__pycache__":
                        waiting.append(entry.path)
                else:
                    found.append((entry.name, entry.stat()))
    return found

"""Folders on a disk, and mounts that only one process sees: the superuser may make one, others where the kernel lets
them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

_DISK = Path("/var/tmp")
PRIVATE_MOUNT = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]


def folder_on_disk() -> tempfile.TemporaryDirectory[str]:
    """A temporary folder on a disk, which the usual ones are not (conftest.py)."""
    return tempfile.TemporaryDirectory(prefix="workpacket-test-", dir=_DISK if _DISK.is_dir() else None)


def can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    command = [*PRIVATE_MOUNT, "mount", "-t", "tmpfs", "tmpfs", str(Path(__file__).parent)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0

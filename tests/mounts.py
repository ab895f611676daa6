"""A mount that only one process sees: the superuser may make one, others where the kernel lets them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

PRIVATE_MOUNT = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]


def can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    command = [*PRIVATE_MOUNT, "mount", "-t", "tmpfs", "tmpfs", str(Path(__file__).parent)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0

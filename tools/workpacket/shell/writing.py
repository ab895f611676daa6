"""Replaces one file whole: readers see the old bytes or the new ones, also after a crash."""

from __future__ import annotations

import hashlib
import os
import tempfile

from workpacket.errors import WorkpacketError
from workpacket.shell.tree import read_bytes


def replace_file(root: str, path: str, digest: str, data: bytes) -> None:
    """Writes `data` to `path`, if the file still is the one with `digest`; keeps its permissions."""
    full = os.path.join(root, path)
    if hashlib.sha256(read_bytes(root, path, os.stat(full).st_size)).hexdigest() != digest:
        raise WorkpacketError("changed_meanwhile", f"{path} was changed by somebody else", hint="run the command again")
    descriptor, temporary = tempfile.mkstemp(prefix=".workpacket-", dir=os.path.dirname(full))
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fchmod(descriptor, os.stat(full).st_mode & 0o7777)
            os.fsync(descriptor)
        os.replace(temporary, full)
    except BaseException:
        os.unlink(temporary)
        raise

"""The ways in which writing fails, as errors that say what state things are in."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from workpacket.errors import WorkpacketError

_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN: Final = (errno.EACCES, errno.EPERM, errno.EROFS)
_REMEDIES: Final = {
    "no_space_left": "Make room on the disk, then repeat the command",
    "permission_denied": "See to it that you may write there, then repeat the command",
    "disk_failed": "Look after the disk, then repeat the command",
}


def nothing_changed(error: OSError) -> WorkpacketError:
    """The disk refused, and everything is as it was."""
    code = _code(error)
    message = f"{said(error)}; nothing was changed"
    return WorkpacketError(code, message, hint=_REMEDIES[code], path=str(error.filename or ""))


@contextmanager
def changing_nothing() -> Iterator[None]:
    """Around what only reads or prepares: a failure of the disk there leaves everything as it was."""
    try:
        yield
    except OSError as error:
        raise nothing_changed(error) from error


def changed_meanwhile(path: str) -> WorkpacketError:
    """Somebody else was faster, and everything is as they left it."""
    return WorkpacketError(
        "changed_meanwhile",
        f"{path} was changed by somebody else after it was read; nothing was written",
        hint="Look at the change, then repeat the command",
        path=path,
    )


def unfinished(command: str, tx: str, error: Exception) -> WorkpacketError:
    """The disk failed after the commit and again while undoing it; the journal knows what is to be done."""
    reason = said(error) if isinstance(error, OSError) else str(error)
    return WorkpacketError(
        "transaction_unfinished",
        f"{command} ({tx}) is committed but could not be finished: {reason}",
        hint="The next command that writes finishes it; or say which way: workpacket recover --forward|--back",
    )


def said(error: OSError) -> str:
    """What the operating system says, and about what."""
    words = os.strerror(error.errno) if error.errno else str(error)
    return f"{error.filename}: {words}" if error.filename else words


def _code(error: OSError) -> str:
    if error.errno in _NO_ROOM:
        return "no_space_left"
    return "permission_denied" if error.errno in _FORBIDDEN else "disk_failed"

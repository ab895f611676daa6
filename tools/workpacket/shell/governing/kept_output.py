"""The end of what a proof printed, kept outside of the history: in the folder that all work trees share, by digest.

No output of a proof enters an event, because what is in git stays there for everybody. An event names the digest; where
the proof was run, the cleaned end of the output can be looked at under that name. It may be deleted at any time.
"""

from __future__ import annotations

import os
from typing import Final

from workpacket.git.repository import Repository

TAIL_LINES: Final = 40
TAIL_LENGTH: Final = 4000
# Of so many outputs the ends are kept, the latest.
MOST: Final = 1000


def end_of(text: str) -> str:
    return "\n".join(text.replace("\r\n", "\n").split("\n")[-TAIL_LINES:])[-TAIL_LENGTH:]


def keep_output(repository: Repository, digest: str, text: str) -> None:
    """Keep the end of a cleaned output for its owner alone; where that is not possible, there is nothing to look at."""
    import tempfile

    folder = _folder(repository)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=".new-", dir=folder)  # readable by nobody else
        with os.fdopen(descriptor, "wb") as file:
            file.write(end_of(text).encode("utf-8", "replace"))
        os.replace(temporary, os.path.join(folder, digest))
        _forget_oldest(folder)
    except OSError:
        return


def kept_output(repository: Repository, digest: str, recorded: str = "") -> str | None:
    """The end of the output with this digest; None where it is not kept here.

    `recorded` is the end as an older event holds it itself.
    """
    try:
        with open(os.path.join(_folder(repository), digest), "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return recorded or None


def _folder(repository: Repository) -> str:
    return str(repository.common_dir / "workpacket" / "proofs")


def _forget_oldest(folder: str) -> None:
    names = os.listdir(folder)
    if len(names) > MOST:
        ages = sorted((os.stat(os.path.join(folder, name)).st_mtime_ns, name) for name in names)
        for _, name in ages[: len(names) - MOST]:
            os.unlink(os.path.join(folder, name))

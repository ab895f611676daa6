"""Which of the runtime's folders git does not leave out yet, and the file in which they could be named."""

from __future__ import annotations

from workpacket.git.ignoring import is_ignored
from workpacket.git.repository import Repository
from workpacket.plans.ignoring import FOLDERS, GITIGNORE
from workpacket.shell.tree import read_bytes
from workpacket.text.limits import DATA


def not_ignored(repository: Repository) -> tuple[bytes | None, tuple[str, ...]]:
    """The bytes of `.gitignore`, None if there is none, and the folders. A file that is a link is somebody else's."""
    try:
        before = read_bytes(str(repository.root), GITIGNORE, DATA.size)
    except FileNotFoundError:
        before = None
    except OSError:
        return None, ()
    return before, tuple(folder for folder in FOLDERS if not is_ignored(repository, f"{folder}/x"))

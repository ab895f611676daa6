"""Find and read governance documents on disk, without following symbolic links."""

from __future__ import annotations

import os
import stat as stat_module

from workpacket.documents.places import ROOTS, SKIPPED_FOLDERS, is_near_miss, kind_of_name, names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Without O_NONBLOCK, opening a named pipe would wait until someone writes to it.
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


UNKNOWN_KIND = "unknown"
NOT_A_FILE = "is not a regular file"
NEAR_MISS = "has almost the same name as a document"
FOLDER_SHUT = "is an unreadable folder"


def refusal(error: OSError) -> str:
    """Return the system's message in a form that can follow a file name."""
    return NOT_A_FILE if error.strerror == NOT_A_FILE else f"cannot be read ({error.strerror or error})"


class Found:
    """A file that `check` must read. `state` changes when the file changes; '' if it could not be read."""

    __slots__ = ("kind", "mtime_ns", "path", "problem", "state")

    def __init__(self, path: str, kind: str, state: str, mtime_ns: int, problem: str = "") -> None:
        self.path = path
        self.kind = kind
        self.state = state
        self.mtime_ns = mtime_ns
        self.problem = problem


def find_documents(root: str, folders: Iterable[str] = ROOTS) -> list[Found]:
    """Return every governance document below `root`, by path. A link in place of a document or folder is a problem."""
    found: list[Found] = []
    for folder in folders:
        found.extend(_walk(root, folder))
    found.sort(key=lambda file: file.path)
    return found


def look_at(root: str, path: str, kind: str = UNKNOWN_KIND) -> Found:
    """Return the state of a single file."""
    try:
        status = os.lstat(os.path.join(root, path))
    except OSError as error:
        return Found(path, kind, "", 0, problem=refusal(error))
    return _found(path, kind, status)


def _walk(root: str, folder: str) -> Iterator[Found]:
    link = link_on_the_way(root, folder)
    if link:
        yield Found(link, UNKNOWN_KIND, "", 0, problem="is a symbolic link")
        return
    waiting = [folder]
    while waiting:
        current = waiting.pop()
        names = names_in(current)
        try:
            with os.scandir(os.path.join(root, current)) as entries:
                for entry in entries:
                    kind = kind_of_name(entry.name, names)
                    path = f"{current}/{entry.name}"
                    if kind is not None or _leads_to_a_folder(entry):
                        yield _found(path, kind or UNKNOWN_KIND, entry.stat(follow_symlinks=False))
                    elif entry.is_dir(follow_symlinks=False) and path not in SKIPPED_FOLDERS:
                        waiting.append(path)
                    elif names and entry.is_file(follow_symlinks=False) and is_near_miss(entry.name, names):
                        yield Found(path, UNKNOWN_KIND, "", 0, problem=NEAR_MISS)
        except FileNotFoundError:
            continue
        except OSError as error:
            yield Found(current, UNKNOWN_KIND, "", 0, problem=f"{FOLDER_SHUT} ({error.strerror or error})")


def look_below(root: str, folder: str) -> list[Found]:
    """Return the state of every file below a folder, by path."""
    found: list[Found] = []
    waiting = [folder]
    while waiting:
        current = waiting.pop()
        try:
            with os.scandir(os.path.join(root, current)) as entries:
                for entry in entries:
                    path = f"{current}/{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(path)
                    else:
                        found.append(_found(path, "", entry.stat(follow_symlinks=False)))
        except OSError:
            continue
    return sorted(found, key=lambda file: file.path)


def _leads_to_a_folder(entry: os.DirEntry[str]) -> bool:
    """Whether the entry is a symbolic link to what may be a folder of documents."""
    try:
        return entry.is_symlink() and entry.is_dir()
    except OSError:
        return True  # a link to itself, or into a folder that cannot be entered


def link_on_the_way(root: str, folder: str) -> str:
    """Return the first component of `folder` that is a symbolic link."""
    parts = folder.split("/")
    for count in range(1, len(parts) + 1):
        path = "/".join(parts[:count])
        if os.path.islink(os.path.join(root, path)):
            return path
    return ""


def named_document(root: str, path: str, kind: str) -> Found:
    """Return a document named by the user.

    A document behind a symbolic link is not read, because it may be anywhere.
    """
    link = link_on_the_way(root, os.path.dirname(path)) if "/" in path else ""
    return Found(path, kind, "", 0, f"is behind the symbolic link {link}") if link else look_at(root, path, kind)


def _found(path: str, kind: str, status: os.stat_result) -> Found:
    if not path.isascii() and not _is_utf8(path):
        return Found(path, kind, "", 0, problem="has a name that is not UTF-8")
    if not stat_module.S_ISREG(status.st_mode):
        is_link = stat_module.S_ISLNK(status.st_mode)
        return Found(path, kind, "", 0, problem="is a symbolic link" if is_link else NOT_A_FILE)
    changed, modified = status.st_ctime_ns, status.st_mtime_ns
    state = f"{status.st_size}.{modified}.{changed}.{status.st_ino}"
    return Found(path, kind, state, max(modified, changed))


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_bytes(root: str, path: str, limit: int) -> bytes:
    """Return the bytes of a regular file: at most `limit`, plus one more that shows that the file is too large.

    A checkout with CRLF is read as git stores it, with LF: all clones then compute the same digests.
    """
    descriptor = os.open(os.path.join(root, path), os.O_RDONLY | _NO_FOLLOW)
    try:
        # Asked of the open file, so that what was checked is what is read.
        status = os.fstat(descriptor)
        if not stat_module.S_ISREG(status.st_mode):
            raise OSError(0, NOT_A_FILE)
        # Without a stream object, which takes as long as reading a small file.
        data = os.read(descriptor, min(status.st_size, limit) + 1)
        # A file of exactly the expected size is complete, which saves one call of the system for each event.
        while len(data) not in (0, status.st_size) and len(data) <= limit:
            more = os.read(descriptor, limit + 1 - len(data))
            if not more:
                break
            data += more
    finally:
        os.close(descriptor)
    if b"\r\n" in data and len(data) <= limit:
        from workpacket.git.index import as_stored  # few files have CRLF, and every command imports this module

        return as_stored(root, path, data)
    return data


def may_name(policy: bytes, key: bytes) -> bool:
    """Whether a policy may have this key, without parsing it. A quoted key can be written with escapes."""
    return key in policy or b"\\" in policy

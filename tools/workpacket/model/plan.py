"""A plan: the changes that a command makes, all or nothing, as a value that can be shown before it is applied. A plan
is made from facts and applied by the shell. It contains the digests that it expects, so that a file that was changed in
between stops the plan and is not overwritten.
"""

from __future__ import annotations

from workpacket.model.layout import LOG_FOLDER
from workpacket.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from workpacket.model.events import LogEvent


class Moment(Value):
    """Impure inputs that are part of the facts: the time, a new transaction id, and sixteen random bytes."""

    now: str
    tx: str
    nonce: str


class FileChange(Value):
    """One file: the digest it must have before (None: it must not exist), and the bytes after (None: it is deleted)."""

    path: str
    old: str | None
    new: bytes | None


class FileSeen(Value):
    """A file that the plan depends on without changing it: it must still have this digest, or still be missing."""

    path: str
    digest: str | None


class FolderSeen(Value):
    """A folder that the plan depends on: it must still contain exactly these names. A missing folder counts as
    empty."""

    path: str
    names: frozenset[str]


class Plan(Value):
    """The changes of `command`. `during_merge` is for plans that only regenerate projections: see
    `docs/architecture.md`. `restored` are write-once files that git still has.
    """

    command: str
    tx: str
    changes: tuple[FileChange, ...] = ()
    events: tuple[LogEvent, ...] = ()
    rests_on: tuple[FileSeen | FolderSeen, ...] = ()
    during_merge: bool = False
    restored: tuple[FileChange, ...] = ()

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for change in self.all_changes():
            name = change.path.casefold()
            if name in seen:
                raise ValueError(f"the plan changes {change.path} twice")
            seen.add(name)
        for change in self.changes:
            if change.path.startswith(f"{LOG_FOLDER}/"):
                raise ValueError(f"{change.path}: log files are written once, and only from events")
        for change in self.restored:
            if change.new is None or not change.path.rpartition("/")[2].startswith(digest(change.new)):
                raise ValueError(f"the name of {change.path} does not match the content that would be restored")
        for event in self.events:
            if event.tx != self.tx:
                raise ValueError(f"event {event.type} of {event.packet} belongs to transaction {event.tx}")

    def all_changes(self) -> Iterator[FileChange]:
        """Yield the changes to files and, after them, the new event files."""
        yield from self.changes
        yield from self.restored
        for event in self.events:
            yield FileChange(event.path, None, event.encode())


def digest(data: bytes) -> str:
    from workpacket.digests import sha256  # cached answers need a moment, but no digest

    return sha256(data).hexdigest()


def log_seen(packet: str, events: Iterable[LogEvent]) -> FolderSeen:
    """Return the log of a packet in the state that the plan expects: a newer event stops the plan."""
    return FolderSeen(f"{LOG_FOLDER}/{packet}", frozenset(f"{event.id}.json" for event in events))

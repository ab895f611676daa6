"""Find and read the files of packets, by id, and the log and the approvals, in the work tree and in a revision."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path

from workpacket.git.objects import list_tree, object_names
from workpacket.git.repository import (
    Repository,
    default_branch,
    find_repository,
    head_commit,
    local_branches,
    reference_tips,
    remote_branches,
)
from workpacket.git.run import run_git
from workpacket.ledger.log import Log, read_log, read_logs
from workpacket.lifecycle.facts import PacketFacts
from workpacket.model.event_types import CHECKPOINT_LOG
from workpacket.model.ids import WorkPacketId, is_packet_id, nearest
from workpacket.model.layout import (
    APPEND_ONLY_FOLDERS,
    CHECKPOINTS_FOLDER,
    LARGEST_WRITE_ONCE,
    LOG_FOLDER,
    PACKETS,
    REFINEMENTS,
    STUBS,
    TEMPORARY_PREFIX,
)
from workpacket.problem import Problem, WorkpacketError
from workpacket.shell import held
from workpacket.shell.held import require_found, unreadable
from workpacket.shell.tree import read_bytes
from workpacket.text.source import REGISTER, Source
from workpacket.value import NOTHING

# In the listing, this represents the folders below the folder of packets.
_FOLDERS = f"{PACKETS}/"


class GovernedFiles(Collection[str]):
    """The ids of all packets, and the locations of the files of each, from one listing of the folders. `names` are the
    names in each folder; they are judged when they are needed, because most commands are about one packet of many.
    """

    def __init__(self, root: str, names: Mapping[str, Sequence[str]] = NOTHING) -> None:
        self.root = root
        self._listed = names

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self.beginning(name).known

    def __iter__(self) -> Iterator[str]:
        return iter(self.known)

    def __len__(self) -> int:
        return len(self.known)

    def beginning(self, start: str) -> GovernedFiles:
        """Return the files of the packets whose ids begin with this string."""
        narrowed = {
            folder: [name for name in names if name.startswith(start)] for folder, names in self._listed.items()
        }
        return GovernedFiles(self.root, narrowed)

    @cached_property
    def stubs(self) -> dict[str, str]:
        return dict(self._documents(STUBS))

    @cached_property
    def packets(self) -> dict[str, str]:
        found = dict(self._documents(PACKETS))
        return found | {name: path for name, path in self._in_folders("packet") if name not in found}

    @cached_property
    def refinements(self) -> dict[str, str]:
        found = dict(self._documents(REFINEMENTS))
        return found | {name: path for name, path in self._in_folders("refinement") if name not in found}

    @cached_property
    def logs(self) -> frozenset[str]:
        names = self._listed.get(LOG_FOLDER, ())
        return frozenset(name for name in names if name != CHECKPOINT_LOG and _is_id(name))

    @cached_property
    def known(self) -> frozenset[str]:
        return frozenset((*self.stubs, *self.packets, *self.logs))

    def _documents(self, folder: str) -> Iterator[tuple[str, str]]:
        for name in sorted(self._listed.get(folder, ())):
            stem, _, ending = name.rpartition(".")
            if ending == "md" and _is_id(stem):
                yield stem, f"{folder}/{name}"

    def _in_folders(self, kind: str) -> Iterator[tuple[str, str]]:
        for name in sorted(self._listed.get(_FOLDERS, ())):
            path = f"{PACKETS}/{name}/{kind}.md"
            if _is_id(name) and _is_file(self.root, path):
                yield name, path

    def read(self, path: str) -> Source | None:
        """Return the file; None if it is missing. An unreadable file is an error."""
        try:
            data = read_bytes(self.root, path, REGISTER.size)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise WorkpacketError("file_unreadable", error.strerror or "cannot be read", path=path) from error
        if len(data) > REGISTER.size:
            raise WorkpacketError("limit_size", f"the file is larger than {REGISTER.size:,} bytes", path=path)
        return Source.from_bytes(path, data)

    def packet(self, wp_id: WorkPacketId) -> PacketFacts:
        name = wp_id.text
        stub, packet, refinement = (
            self.document(paths, name) for paths in (self.stubs, self.packets, self.refinements)
        )
        return PacketFacts(wp_id, self.log(name), stub, packet, refinement)

    def log(self, name: str) -> Log:
        return read_log(name, dict(self.events(name))) if name in self.logs else read_log(name, {})

    def look_for_log(self, name: str) -> None:
        """Find only the log of this packet."""
        if _is_id(name) and os.path.isdir(os.path.join(self.root, LOG_FOLDER, name)):
            self.logs |= {name}

    def events(self, name: str) -> Iterator[tuple[str, bytes]]:
        folder = f"{LOG_FOLDER}/{name}"
        for entry in _names(self.root, folder):
            if not entry.startswith(TEMPORARY_PREFIX):
                yield entry, read_logged(self.root, f"{folder}/{entry}")

    def document(self, paths: Mapping[str, str], name: str) -> Source | None:
        return self.read(paths[name]) if name in paths else None


def log_here(root: str, name: str) -> Log:
    """Return the log of a packet without an error if there is a folder among its events, such as a submodule: checks
    report it.
    """
    logs, _ = read_logs({path: read_logged(root, path) for path in paths_below(root, f"{LOG_FOLDER}/{name}")})
    return logs.get(name) or read_log(name, {})


# Logs with more events than this are not kept together.
_MOST_EVENTS = 50_000


class LogsOnDemand(Mapping[str, Log]):
    """The logs of all packets except renamed ones, each read when it is asked for. There may be more events than fit
    into memory, so only the logs that were read last are kept, and those that are `known`.
    """

    def __init__(self, governed: GovernedFiles, known: Mapping[str, Log]) -> None:
        self._governed = governed
        self._known = known
        self._kept: dict[str, Log] = {}
        self._events = 0

    def _log(self, name: str) -> Log:
        log = self._known.get(name) or self._kept.get(name)
        if log is None:
            log = self._kept[name] = log_here(self._governed.root, name)
            self._events += len(log.by_id)
            while self._events > _MOST_EVENTS and len(self._kept) > 1:
                self._events -= len(self._kept.pop(next(iter(self._kept))).by_id)
        return log

    def __getitem__(self, name: str) -> Log:
        if name not in self._governed.logs or self._log(name).is_renamed:
            raise KeyError(name)
        return self._log(name)

    def __iter__(self) -> Iterator[str]:
        return (name for name in sorted(self._governed.logs) if not self._log(name).is_renamed)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def revisions(self, name: str) -> Iterator[Log]:
        """Yield the logs of this packet, or of every revision of this base id."""
        for each in sorted(self._governed.logs):
            if (each == name or each.startswith(f"{name}-v")) and not self._log(each).is_renamed:
                yield self._log(each)


def find_governed(root: str) -> GovernedFiles:
    """List the folders once."""
    names = {folder: _names(root, folder) for folder in (STUBS, REFINEMENTS, LOG_FOLDER)}
    names[PACKETS], names[_FOLDERS] = _names_and_folders(root, PACKETS)
    return GovernedFiles(root, names)


def packets_that_say(root: str, words: bytes) -> Iterator[Log]:
    """Return the logs in which any file contains these words. Searching is faster than reading each log."""
    governed = GovernedFiles(root)
    for name in _names(root, LOG_FOLDER):
        if name == CHECKPOINT_LOG or not _is_id(name):
            continue
        governed.logs = frozenset({name})
        files = dict(governed.events(name))
        if any(words in data for data in files.values()):
            yield read_log(name, files)


def _names(root: str, folder: str) -> list[str]:
    try:
        return sorted(os.listdir(os.path.join(root, folder)))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise unreadable(root, error) from error


def _names_and_folders(root: str, folder: str) -> tuple[list[str], list[str]]:
    """Return the names in a folder, and those that are folders, without calling stat for each of ten thousand files."""
    try:
        with os.scandir(os.path.join(root, folder)) as listed:
            entries = list(listed)
        return [entry.name for entry in entries], [entry.name for entry in entries if entry.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return [], []
    except OSError as error:
        raise unreadable(root, error) from error


def _is_file(root: str, path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(os.path.join(root, path)).st_mode)
    except PermissionError as error:
        raise unreadable(root, PermissionError(error.errno, error.strerror, os.path.dirname(error.filename))) from error
    except OSError:
        return False


_is_id = cache(is_packet_id)  # each name is in several folders


def packet_called(root: str, word: str) -> WorkPacketId:
    """Like `packet_named`, but does not list all packets if the word is the id of a packet that has a log."""
    parsed = WorkPacketId.try_parse(word)
    if parsed is not None and parsed.kind == "packet" and os.path.isdir(os.path.join(root, LOG_FOLDER, parsed.text)):
        return parsed
    return packet_named(find_governed(root), word)


def require_packets(root: str, words: Iterable[str], mentioned: Iterable[str]) -> None:
    """Raise the error of `packet_called` for a word that is neither a packet nor `mentioned`: it must not look as if it
    had been verified.
    """
    known = frozenset(mentioned)
    for word in words:
        if word not in known:
            packet_called(root, word)


def packet_named(governed: GovernedFiles, word: str) -> WorkPacketId:
    """Return the packet that a person specified; if there is none, raise an error with the most similar id."""
    parsed = WorkPacketId.try_parse(word)
    if parsed is not None and parsed.text in governed.known:
        return parsed
    ids = [found for name in sorted(governed.known) if (found := WorkPacketId.try_parse(name)) is not None]
    revisions = [found.text for found in ids if parsed is not None and found.base == parsed.text]
    if revisions:
        hint = f"name the revision: {', '.join(revisions)}"
        raise WorkpacketError("packet_ambiguous", f"{word} is a base id, not a packet id", hint=hint)
    require_found(governed.root, parsed.text if parsed is not None else "")
    branch = _branch_of(governed, parsed.text) if parsed is not None else ""
    if branch:
        message = f"packet {word} is not on this branch, but on {branch}"
        raise WorkpacketError("packet_unknown", message, hint=f"git switch {branch}")
    near = nearest(word, ids)
    hint = f"did you mean {near}?" if near is not None else "workpacket list shows all; workpacket new creates one"
    raise WorkpacketError("packet_unknown", f"packet {word} not found", hint=hint)


def _branch_of(governed: GovernedFiles, name: str) -> str:
    with suppress(WorkpacketError):  # documents can be read without git
        return packets_elsewhere(find_repository(Path(governed.root))).get(name, "")
    return ""


# In the list of files that an output depends on, these represent everything below the log and the checkpoints.
LOG_STATE = f"{LOG_FOLDER}/"
CHECKPOINTS_STATE = f"{CHECKPOINTS_FOLDER}/"


def append_only_paths(root: str) -> list[str]:
    """Return every write-once file."""
    return [path for folder in APPEND_ONLY_FOLDERS for path in paths_below(root, folder)]


def logged_packets(root: str) -> list[str]:
    """Return the names directly below the log folder: the packets, and anything that does not belong there."""
    place = os.path.join(root, LOG_FOLDER)
    try:
        with os.scandir(place) as entries:
            # Nothing behind a link is read, here or below.
            return sorted(entry.name for entry in entries if not (entry.is_symlink() and entry.is_dir()))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise held.unreadable(root, error) from error


def read_logged(root: str, path: str) -> bytes:
    """Return one write-once file; raise WorkpacketError if it cannot be read."""
    try:
        return read_bytes(root, path, LARGEST_WRITE_ONCE)
    except OSError as error:
        raise WorkpacketError("file_unreadable", error.strerror or "cannot be read", path=path) from error


def paths_below(root: str, folder: str) -> Iterator[str]:
    """Yield every file below a folder except temporary ones; an unreadable folder is an error."""
    return (path for path in held.paths_below(root, folder) if not is_temporary(path))


def is_temporary(path: str) -> bool:
    """Whether a command is about to move the file into place; comparisons ignore such a file on both sides."""
    return path.rpartition("/")[2].startswith(TEMPORARY_PREFIX)


def committed_ids(repository: Repository, commit: str, *folders: str) -> dict[str, str]:
    """Return the object ids of the append-only files at a commit, or only of those below some `folders`."""
    entries = list_tree(repository, commit, *(folders or APPEND_ONLY_FOLDERS))
    return {entry.path: entry.object_id for entry in entries if entry.is_file and not is_temporary(entry.path)}


def require_no_log_elsewhere(repository: Repository, names: Sequence[str]) -> None:
    """Raise WorkpacketError `log_elsewhere` if any branch, tag or other reference has a log of one of these packets."""
    if not names:
        return
    main = default_branch(repository)
    # If several branches have it, the main one is named.
    tips = reference_tips(repository)
    if main is not None:
        tips = {main.commit: main.ref, **{commit: ref for commit, ref in tips.items() if commit != main.commit}}
    folders = object_names(repository, (f"{commit}:{LOG_FOLDER}" for commit in tips))
    # Many branches have the same log: each state of it is looked up once.
    holders: dict[str, str] = {}
    for name, folder in folders.items():
        holders.setdefault(folder, tips[name.partition(":")[0]])
    found = object_names(repository, (f"{folder}:{name}" for folder in holders for name in names))
    if not found:
        return
    folder, _, packet = next(iter(found)).partition(":")
    branch = holders[folder].removeprefix("refs/heads/").removeprefix("refs/remotes/")
    others = len({place.partition(":")[2] for place in found}) - 1
    more = f" and of {others} more" if others else ""
    raise WorkpacketError(
        "log_elsewhere",
        f"{branch} has the log of {packet}{more}; another first event would permanently conflict with it",
        hint=f"merge the log first: git merge {branch}",
        path=f"{LOG_FOLDER}/{packet}",
    )


def packets_elsewhere(repository: Repository) -> dict[str, str]:
    """Return the packets that another branch has, or has moved on, each with one such branch: local branches, and
    branches of the main remote as last fetched.
    """
    head = head_commit(repository)
    tips = {branch.name: branch.commit for branch in remote_branches(repository)} | local_branches(repository)
    if {*tips.values()} <= {head}:
        return {}
    # Only what HEAD lacks is listed: branches share almost all of their history.
    wanted = [*dict.fromkeys(tips.values()), *([f"^{head}"] if head is not None else [])]
    request = "".join(f"{commit}\n" for commit in wanted).encode()
    listed = run_git(repository.root, "rev-list", "--objects", "--stdin", "--", LOG_FOLDER, stdin=request).text
    events = (line.partition(" ")[2] for line in listed.splitlines())
    # A branch that was squashed has commits that HEAD lacks, but no events.
    missing = {
        path.split("/")[2]: path for path in events if path.count("/") == 3 and not (repository.root / path).exists()
    }
    places = {f"{tip}:{path}": (name, branch) for branch, tip in tips.items() for name, path in missing.items()}
    return dict(places[place] for place in object_names(repository, places) if is_packet_id(places[place][0]))


# The commits of HEAD in which a removed event is looked for in passing; `log recover` looks at all.
_RECENT = 100


def removed_lately(repository: Repository, packet: str) -> Problem | None:
    """Return why the packet's log is incomplete, if one of the last commits removed one of its events."""
    head = head_commit(repository)
    if head is None:
        return None
    commits = run_git(repository.root, "rev-list", f"--max-count={_RECENT}", "--end-of-options", head).output
    folder = f"{LOG_FOLDER}/{packet}"
    with suppress(WorkpacketError):  # a shallow or partial clone lacks what a merge joined
        answer = run_git(
            repository.root, "diff-tree", "--stdin", "-m", "-r", "-z", "--no-renames", "--no-commit-id",
            "--name-only", "--diff-filter=D", "--", folder, stdin=commits,
        )  # fmt: skip
        gone = {path for path in answer.text.split("\0") if path.startswith(f"{folder}/")}
        missing = [path for path in gone if not (repository.root / path).exists()]
        if missing:
            message = (
                f"the log of {packet} is incomplete: {len(missing)} of its events are in HEAD's history, but "
                "missing here"
            )
            return Problem("log_event_missing", message, hint=f"workpacket log recover {packet}")
    return None

"""The checkpoint of a role: its file, the files next to it, its log, and the files that its notes mention.

The log starts with the file as it was found, or with the first milestone, and contains each milestone since. Replaying
it yields front matter and notes, so a file that was lost, or is late because its writer was killed, can be rewritten.
Anything else that people write into the file does not contradict the log.

A note names a file by its path, as in `Drafted docs/plan.md`. Every milestone records the digests of all files ever
mentioned, so that changes are relative to the last milestone. A change does not block: a role that is interrupted
between two milestones leaves files that are ahead of the last milestone.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, cast

from workpacket.bridges import foreign
from workpacket.bridges.foreign import CheckpointState, Foreign, StreamRecord, refusal_of_file, state_of, stream_named
from workpacket.documents.role_progress import (
    EMPTY_BODY,
    KEYS,
    RoleProgress,
    body_of,
    canonical,
    closing_of,
    front_of,
    is_open,
    noted,
)
from workpacket.model.canonical import Json
from workpacket.problem import Location, Problem, WorkpacketError
from workpacket.runtime.records.events import RecordKind
from workpacket.runtime.runtime import Runtime
from workpacket.runtime.stores.contract import Lease, Store
from workpacket.shell.judging.log_verification import digest_here
from workpacket.shell.transactions.storage import split_path
from workpacket.shell.tree import link_on_the_way, look_below, read_bytes
from workpacket.text.source import MARKDOWN, Plain, Source, unreadable
from workpacket.value import Value

ADVANCED = "role.advanced"
IMPORTED = foreign.IMPORTED.type
FORM = "role"

KINDS: Mapping[str, RecordKind] = {
    **foreign.KINDS,
    ADVANCED: RecordKind(ADVANCED, {
        "milestone": "public", "feature": "scan", "team": "scan", "agent": "scan", "phase": "scan", "status": "public",
        "last_action": "scan", "updated": "public", "note": "scan", "instance": "scan", "artifacts": "scan",
    }),
}  # fmt: skip


def stream_of(feature: str, team: str, agent: str) -> str:
    """Return the stream of one role in one feature. Its lease ensures that the file has a single writer."""
    return stream_named(FORM, feature, team, agent)


class RoleFields(NamedTuple):
    """The seven fields, in the order of the published format."""

    feature: str
    team: str
    agent: str
    phase: str
    status: str
    last_action: str
    updated: str


@dataclass(slots=True)
class RoleState(CheckpointState[RoleFields]):
    """The state of one role. `artifacts` are the files that the role has named, with their digests at its last
    milestone.
    """

    kinds = KINDS

    front: dict[str, Plain] = field(default_factory=dict)
    body: str = EMPTY_BODY
    note: str = ""
    artifacts: dict[str, str] = field(default_factory=dict)

    @property
    def fields(self) -> RoleFields:
        return fields_of(self.front)

    @property
    def logged(self) -> RoleFields:
        return self.fields

    def change(self, record: StreamRecord) -> None:
        if record.type == IMPORTED and isinstance(record.payload, Mapping):
            front = record.payload.get("front")
            self.front = dict(cast("Mapping[str, Plain]", front)) if isinstance(front, Mapping) else {}
            self.body, self.note = str(record.payload.get("body") or ""), ""
        elif record.type == ADVANCED:
            self.front |= {key: str(record.data.get(key) or "") for key in KEYS}
            self.note = str(record.data.get("note") or "")
            self.body = with_note(self.body, self.note)
            self.artifacts = _artifacts(record.data.get("artifacts"))


def fields_of(front: Mapping[str, object]) -> RoleFields:
    """Return the seven fields that the log and the file have in common."""
    return RoleFields(*(str(front[key]) if front.get(key) is not None else "" for key in KEYS))


def artifact_rows(artifacts: Mapping[str, str]) -> list[Json]:
    """Return artifacts in stored form: as rows, because a mapping key may look like the name of a secret."""
    return [{"path": path, "sha256": digest} for path, digest in artifacts.items()]


def _artifacts(rows: Json) -> dict[str, str]:
    """Return the artifacts; none for records written before artifacts existed."""
    found = [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
    return {str(row["path"]): str(row["sha256"]) for row in found}


def with_note(body: str, note: str) -> str:
    """Return the text below the front matter with one more note."""
    start = "---\n---\n"
    return noted(Source("", start + body), note).text.removeprefix(start)


FOLDER = "docs/progress"
# A name is part of a single-line file name that is valid on every system.
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._#-]{0,98}[A-Za-z0-9#])?\Z")

# The names in the folder, and a function that returns the bytes of one of its files.
Names = Callable[[str], Iterable[str]]
Read = Callable[[str], bytes | None]


class RoleKey(Value):
    """A reference to a role: `team` may be '' if the file states it."""

    feature: str
    agent: str
    team: str = ""

    def __post_init__(self) -> None:
        if not self.team.isprintable():
            raise WorkpacketError("invalid_value", f"{self.team!r} is not a valid team name")
        for what in ("feature", "agent"):
            word = getattr(self, what)
            if not _NAME.match(word):
                message = (
                    f"{word!r} is not a valid name for {what}: use at most 100 letters, digits, '-', '_', '.' and '#'"
                )
                raise WorkpacketError("invalid_value", message)

    @property
    def path(self) -> str:
        return f"{FOLDER}/{self.feature}-{self.agent}.md"


class RoleFacts(Value):
    """The facts about one role. `names` are feature, team and agent. `contradictions` are the differences between file
    and log. `late` means that the writer of the file was killed. `closed_by` is what marks the feature as complete;
    `twins` are other files of the same role.
    """

    path: str
    names: tuple[str, str, str]
    document: RoleProgress | None
    state: RoleState
    contradictions: tuple[str, ...] = ()
    late: bool = False
    lease: Lease | None = None
    closed_by: str = ""
    twins: tuple[str, ...] = ()

    @property
    def fields(self) -> RoleFields:
        """Return the fields of the role: from its log, or from its file if there is no log."""
        if not self.state.version and self.document is not None:
            return fields_of(front_of(self.document))
        return self.state.fields

    @property
    def operand(self) -> str:
        return f"{self.names[0]} {self.names[2]}"

    @property
    def stream(self) -> str:
        return stream_of(*self.names)

    @property
    def is_unlogged(self) -> bool:
        return not self.state.version and self.document is not None

    @property
    def is_astray(self) -> bool:
        """Whether the file name differs from the fields in the file."""
        return self.path != f"{FOLDER}/{self.names[0]}-{self.names[2]}.md"

    @property
    def is_open(self) -> bool:
        return is_open(self.fields.status)


def read_folder(names: Names, read: Read, *, about: str = "") -> dict[str, RoleProgress]:
    """Return every note in the folder, by path, or only those that contain the word `about`, which saves time."""
    word = about.casefold().encode()
    found: dict[str, RoleProgress] = {}
    for name in sorted(names(FOLDER)):
        path = f"{FOLDER}/{name}"
        data = read(path) if name.endswith(".md") else None
        if data is not None and (word in data.lower() or word in name.casefold().encode()):
            found[path] = RoleProgress(Source.from_bytes(path, data))
    return found


def notes_here(root: str, *, about: str = "") -> dict[str, RoleProgress]:
    """Return the notes of a work tree, read without a lock, for read-only commands. Unreadable files are left out."""

    def read(path: str) -> bytes | None:
        try:
            return read_bytes(root, path, MARKDOWN.size)
        except OSError:
            return None

    files = [] if link_on_the_way(root, FOLDER) else look_below(root, FOLDER)
    names = [found.path.rpartition("/")[2] for found in files if found.path.count("/") == FOLDER.count("/") + 1]
    return read_folder(lambda _: names, read, about=about)


def unreadable_bytes(note: RoleProgress) -> Problem | None:
    """Return why a file cannot be trusted or edited: it is not UTF-8, or it is too large to be read completely."""
    return next(iter(unreadable(note.source.text, 0, MARKDOWN)), None)


def facts_of(key: RoleKey, runtime: Runtime, notes: Mapping[str, RoleProgress], lanes: Mapping[str, str]) -> RoleFacts:
    """Return the facts about one role. A role that cannot be distinguished from another is refused."""
    document = notes.get(key.path)
    names = (key.feature, key.team, key.agent)
    twins = tuple(path for path, note in notes.items() if path != key.path and _is_of(note, names))
    if document is not None:
        _require_identity(key, document)
    elif twins:
        message = f"{twins[0]} is the checkpoint of {key.agent} in {key.feature}, but has an unexpected file name"
        raise WorkpacketError("role_identity_mismatch", message, path=twins[0], hint=f"rename it to {key.path}")
    stated = document.team.value if document is not None and document.team is not None else ""
    team = key.team or stated or _team_in_log(key, runtime)
    if not team:
        raise WorkpacketError(
            "missing_argument", f"{key.path} does not exist yet: specify the team", hint="--team TEAM"
        )
    return _facts(key.path, (key.feature, team, key.agent), document, runtime, notes, lanes, twins)


def _team_in_log(key: RoleKey, runtime: Runtime) -> str:
    """Return the team of a role whose file is missing, if the log contains only one team."""
    teams = {
        fields.team
        for head in runtime.store.heads(f"{stream_named(FORM, key.feature)}/")
        if (fields := state_of(RoleState, runtime.store, head.stream).fields).agent == key.agent
    }
    return teams.pop() if len(teams) == 1 else ""


def scan_roles(
    runtime: Runtime, notes: Mapping[str, RoleProgress], lanes: Mapping[str, str]
) -> tuple[list[RoleFacts], list[tuple[str, str]]]:
    """Return the facts about every role with a file or a log, and the files that cannot be judged, with the reason. A
    role whose file is missing is found through its log.
    """
    scanned: list[RoleFacts] = []
    unread: list[tuple[str, str]] = []
    seen: set[str] = set()
    for path, note in notes.items():
        illegible = unreadable_bytes(note)
        if illegible is not None or note.faults:
            unread.append((path, illegible.code if illegible is not None else note.faults[0].code))
        if illegible is not None:
            continue
        if not note.is_checkpoint:
            continue
        names = fields_of(front_of(note))[:3]
        twins = tuple(p for p, other in notes.items() if p != path and _is_of(other, names))
        scanned.append(_facts(path, names, note, runtime, notes, lanes, twins))
        seen.add(stream_of(*names))
    for head in runtime.store.heads(f"{FORM}/"):
        if head.stream not in seen:
            names = state_of(RoleState, runtime.store, head.stream).fields[:3]
            scanned.append(_facts(f"{FOLDER}/{names[0]}-{names[2]}.md", names, None, runtime, notes, lanes, ()))
    return scanned, unread


def _facts(
    path: str, names: tuple[str, str, str], document: RoleProgress | None, runtime: Runtime,
    notes: Mapping[str, RoleProgress], lanes: Mapping[str, str], twins: tuple[str, ...],
) -> RoleFacts:  # fmt: skip
    """Compare file and log."""
    stream = stream_of(*names)
    state = state_of(RoleState, runtime.store, stream)
    contradictions, late = state.compared(fields_of(front_of(document)) if document is not None else None, _differences)
    closed_by = closing_of(names[0], ((p, note.finishes) for p, note in notes.items()), lanes)
    lease = runtime.store.lease(stream)
    return RoleFacts(path, names, document, state, contradictions, late, lease, closed_by, twins)


def _differences(logged: RoleFields, stated: RoleFields) -> list[str]:
    pairs = zip(KEYS, stated, logged, strict=True)
    return [f"{key} is {told!r} in the file, but {kept!r} in the log" for key, told, kept in pairs if told != kept]


def _is_of(note: RoleProgress, names: tuple[str, str, str]) -> bool:
    feature, team, agent = (name.casefold() for name in names)
    if not note.is_checkpoint or note.feature is None or note.agent is None:
        return False
    same_team = not team or note.team is None or note.team.value.casefold() == team
    return same_team and (note.feature.value.casefold(), note.agent.value.casefold()) == (feature, agent)


def _require_identity(key: RoleKey, document: RoleProgress) -> None:
    """Require that the file belongs to this role: `a-b` of `c` and `a` of `b-c` have the same file name."""
    illegible = unreadable_bytes(document)
    if illegible is not None:
        raise refusal_of_file(document.source, illegible, key.path)
    if not document.is_checkpoint:
        fault = document.faults[0].message if document.faults else f"it is a {document.note}"
        raise WorkpacketError("checkpoint_malformed", f"{key.path} is not a role checkpoint: {fault}", path=key.path)
    stated = {name: text.value for name in ("feature", "team", "agent") if (text := document.text_at(name)) is not None}
    wanted = {"feature": key.feature, "agent": key.agent, **({"team": key.team} if key.team else {})}
    wrong = [f"{name} {stated.get(name, '')!r}" for name, word in wanted.items() if stated.get(name, "") != word]
    if wrong:
        message = f"{key.path} is the checkpoint of a different role: it has {', '.join(wrong)}"
        raise WorkpacketError("role_identity_mismatch", message, path=key.path)


MOST: Final = 100  # the files named first are dropped first
_QUOTED = re.compile(r"`([^`\n]+)`")
_WORD = re.compile(r"[^\s`\"'()\[\]{}<>|,;]+")
_LINES = re.compile(r":[0-9]+(?:[-:][0-9]+)?\Z")


class ArtifactChange(NamedTuple):
    path: str
    what: Literal["has changed", "is gone"]

    @property
    def message(self) -> str:
        return f"{self.path} {self.what} since the last milestone"

    @property
    def choice(self) -> str:
        """Return the options open to a person who does not accept the current state."""
        return f"git {'log --stat' if self.what == 'is gone' else 'diff'} -- {shlex.quote(self.path)}"


def named_in(texts: Iterable[str]) -> Iterator[str]:
    """Yield possible paths: anything in backticks, and every word with a slash or a dot."""
    for text in texts:
        for found in _QUOTED.findall(text):
            yield _path(found)
        for word in _WORD.findall(text):
            if "/" in word or "." in word:
                yield _path(word)


def _path(word: str) -> str:
    return _LINES.sub("", word.lstrip("*").rstrip(".:!?*")).removeprefix("./")


def digest_of(root: str, path: str) -> str | None:
    """Return the digest of a file in the repository; None for anything else, including files behind a symbolic link."""
    try:
        *folders, _ = split_path(path)
    except WorkpacketError:
        return None
    # A link could lead out of the repository, to a file that no commit has.
    return None if folders and link_on_the_way(root, "/".join(folders)) else digest_here(root, path)


def digests(root: str, paths: Iterable[str], own: str) -> dict[str, str]:
    """Return the paths that are files, with their digests, except the role's own file, which changes with every
    milestone.
    """
    found = {path: digest for path in dict.fromkeys(paths) if path != own and (digest := digest_of(root, path))}
    return dict([*found.items()][-MOST:])


def changes(root: str, artifacts: Mapping[str, str]) -> tuple[ArtifactChange, ...]:
    """Return what has changed since the last milestone."""
    now = {path: digest_of(root, path) for path in artifacts}
    return tuple(
        ArtifactChange(path, "is gone" if now[path] is None else "has changed")
        for path, digest in artifacts.items()
        if now[path] != digest
    )


# Known files found next to checkpoints.
_BESIDE: Mapping[str, str] = {"summary": "summary", "cost_summary": "cost summary", "template": "template"}


class RoleBridge:
    """Converts checkpoints of roles, `docs/progress/<feature>-<agent>.md`: every key of the front matter, and the text
    below it.

    For a role that this store manages, the current checkpoint is exported. Files that lack one of the seven fields, or
    whose fields show that they are not checkpoints, are refused.
    """

    name = FORM
    lossy: tuple[str, ...] = (
        "the digests of the files that a role listed",
        "comments, quotes and layout of the front matter, and the order of the keys after the seven fields",
        "a byte order mark",
        "for a role managed by `workpacket runtime progress`: text written by hand since the import",
    )

    def read(self, path: str, data: bytes) -> tuple[Foreign, ...] | tuple[Problem, ...]:
        document = RoleProgress(Source.from_bytes(path, data))
        illegible = unreadable_bytes(document)
        if illegible is not None:
            return (illegible,)
        faults = tuple(document.faults) or tuple(_faults(document))
        return faults or (foreign_of(document),)

    def other_kind(self, path: str, data: bytes) -> str:
        """Describe the file; return '' for `other` or an older form: such files may be broken checkpoints and are
        refused."""
        document = RoleProgress(Source.from_bytes(path, data))
        return "" if unreadable_bytes(document) is not None else _BESIDE.get(document.note, "")

    def write(self, checkpoints: Sequence[Foreign]) -> bytes:
        (checkpoint,) = checkpoints
        front = cast("Mapping[str, Plain]", checkpoint.values["front"])
        return canonical(front, str(checkpoint.values["body"]))

    def from_runs(self, store: Store, key: str) -> tuple[Foreign, ...]:
        stream = f"{FORM}/{key}"
        if store.head(stream) is None:
            return ()
        state = state_of(RoleState, store, stream)
        return (Foreign(FORM, stream, _values(state.front, state.body)),)

    def same(self, held: Foreign, found: Foreign) -> bool:
        """Whether the seven fields are equal: the text and the other keys belong to their writers."""
        mine, theirs = (cast("Mapping[str, Json]", one.values["front"]) for one in (held, found))
        return fields_of(mine) == fields_of(theirs)


def foreign_of(document: RoleProgress) -> Foreign:
    """Return the checkpoint in a file."""
    front = front_of(document)
    feature, team, agent = fields_of(front)[:3]
    return Foreign(FORM, stream_of(feature, team, agent), _values(front, body_of(document)))


def _values(front: Mapping[str, Plain], body: str) -> dict[str, Json]:
    return {"front": cast("Json", dict(front)), "body": body}


def _faults(document: RoleProgress) -> list[Problem]:
    root = document.root
    if root is None or not document.has_front_matter:
        return [
            Problem(
                "checkpoint_malformed", "the front matter is missing, so this is not a checkpoint", Location.span(0, 0)
            )
        ]
    place = (root.start, root.start)
    missing = [key for key, value in zip(KEYS, fields_of(front_of(document)), strict=True) if not value.strip()]
    if missing:
        return [Problem("role_key_missing", f"the checkpoint lacks {', '.join(missing)}", Location.span(*place))]
    if not document.is_checkpoint:
        return [
            Problem(
                "checkpoint_malformed", f"this is not a role checkpoint but a {document.note}", Location.span(*place)
            )
        ]
    return []

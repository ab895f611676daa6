"""Import and export of checkpoints in foreign formats. The log is authoritative. A foreign file is a view of it: it is
read completely or not at all, kept with every unknown key, and can be written again. A bridge consists of two pure
functions and a list of what its format cannot represent; this module appends to the log for all bridges.

An import is planned as a whole, then appended. The file is compared with the stream:

    no stream                           genesis: everything is appended
    the same                            unchanged: nothing is appended
    more, and the same up to there      extended: the rest is appended, as an event log grows
    anything else                       the import is refused with `view_conflict`; nothing from any file is appended

A crash between the appends of two streams leaves the first one imported; a repeated import continues after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from workpacket.bridges.desk import StreamLog, record_of
from workpacket.errors import WorkpacketError
from workpacket.model.canonical import Json
from workpacket.problem import Location, Problem
from workpacket.runtime.attempts.recorder import RecordDraft
from workpacket.runtime.errors import LogDamaged, RedactionFailed, RunBlocked
from workpacket.runtime.records.events import Event, RecordKind
from workpacket.runtime.records.jcs import jcs_hash, stored_text
from workpacket.runtime.records.redaction import Redactor
from workpacket.runtime.runtime import Runtime
from workpacket.runtime.stores.contract import Store
from workpacket.shell.package_files import schemas
from workpacket.text.source import Node, Source


class Foreign(NamedTuple):
    """One checkpoint as stated in its file. `stream` is its place in the log: `<format>/<key>`."""

    format: str
    stream: str
    values: Mapping[str, Json]


class Bridge(Protocol):
    """One foreign format. `lossy` lists what the format cannot represent, and what is therefore lost on export."""

    name: str
    lossy: tuple[str, ...]

    def read(self, path: str, data: bytes) -> tuple[Foreign, ...] | tuple[Problem, ...]:
        """Return everything in the file, or everything that is wrong with it; never a part of it."""
        ...

    def write(self, checkpoints: Sequence[Foreign]) -> bytes:
        """Return the canonical file. For a file that was canonical, `write(read(file)) == file`."""
        ...


def stream_named(form: str, *key: str) -> str:
    """Return the stream of a checkpoint. The parts of the key are quoted, so that '/' and '@' have no special
    meaning.
    """
    from urllib.parse import quote  # slows start-up, and most uses only read

    return "/".join((form, *(quote(part, safe=" :#+=,()") for part in key)))


def misfits(root: Node, schema: str, code: str = "") -> Iterator[Problem]:
    """Yield schema violations with their places; with `code`, all of them have that code."""
    for wrong in schemas().violations(schema, root.plain()):
        place = Location.span(*root.nearest(wrong.location.keys).span)
        yield Problem(code or wrong.code, wrong.message, place, wrong.hint)


def refusal_of_file(source: Source, problem: Problem, path: str = "") -> WorkpacketError:
    """Return the refusal of an invalid file. Its message says where the fault is."""
    found = source.placed(problem)
    message = f"{found.path}:{found.line}:{found.column}: {found.message}"
    return WorkpacketError(found.code, message, hint=found.hint, path=path)


# Each format, with the module and class of its bridge, which is imported on first use.
BRIDGES: dict[str, str] = {
    "batch": "batch_facts.BatchBridge",
    "commit": "commit_checkpoints.CommitBridge",
    "role": "role_facts.RoleBridge",
    "runstate": "checkpoint_files.RunStateBridge",
    "session": "checkpoint_files.SessionBridge",
    "step": "checkpoint_files.StepBridge",
}


def bridge_named(name: str) -> Bridge:
    """Return the bridge for a format in `BRIDGES`."""
    module, _, cls = BRIDGES[name].partition(".")
    bridge: Bridge = getattr(import_module(f"workpacket.bridges.{module}"), cls)()
    return bridge


IMPORTED = RecordKind(
    "checkpoint.imported", {"format": "public", "position": "public", "digest": "public", "file": "scan"}
)
KINDS = {IMPORTED.type: IMPORTED}

Outcome = Literal["genesis", "unchanged", "extended"]


@runtime_checkable
class OfRuns(Protocol):
    """A bridge whose checkpoints this store also manages: the file is a view of the stream's state."""

    def from_runs(self, store: Store, key: str) -> tuple[Foreign, ...]:
        """Return the current checkpoint for this key; None if the store does not have it."""
        ...

    def same(self, held: Foreign, found: Foreign) -> bool:
        """Whether a file matches the stream's state."""
        ...


@runtime_checkable
class AmongOthers(Protocol):
    """A bridge whose checkpoints share a folder with files of other kinds."""

    def other_kind(self, path: str, data: bytes) -> str:
        """Describe the file if its name or fields show that it should not be imported; '' otherwise."""
        ...


class Placed(NamedTuple):
    """A checkpoint, the file it was read from, and its position in that file."""

    checkpoint: Foreign
    file: str
    position: int


class ImportPlan(NamedTuple):
    stream: str
    known: int
    new: tuple[Placed, ...]

    @property
    def outcome(self) -> Outcome:
        if not self.new:
            return "unchanged"
        return "extended" if self.known else "genesis"


def plan_import(store: Store, bridge: Bridge, placed: Iterable[Placed]) -> tuple[ImportPlan, ...]:
    """Return what an import would append; raise `RunBlocked` with `view_conflict` if a view differs from its stream."""
    streams: dict[str, list[Placed]] = {}
    for one in placed:
        streams.setdefault(one.checkpoint.stream, []).append(one)
    return tuple(_planned(store, bridge, stream, found) for stream, found in streams.items())


def append_planned(runtime: Runtime, planned: Sequence[ImportPlan]) -> None:
    """Append the planned records; raise `VersionConflict` if another writer appended to a stream in the meantime."""
    for plan in planned:
        for one in plan.new:
            require_no_secret(one.checkpoint, one.file, runtime.settings.redactor)
    for plan in planned:
        if plan.new:
            _append(runtime, plan)


def imported(store: Store, stream: str) -> tuple[Placed, ...]:
    """Return the imported checkpoints in the stream, in order."""
    if store.head(stream) is None:
        return ()
    return tuple(_placed(store, event) for event in store.read(stream) if event.type == IMPORTED.type)


def _planned(store: Store, bridge: Bridge, stream: str, found: Sequence[Placed]) -> ImportPlan:
    held = [one.checkpoint for one in imported(store, stream)]
    if isinstance(bridge, OfRuns):
        held = list(bridge.from_runs(store, stream.partition("/")[2])) or held
    pairs = list(zip(held, [one.checkpoint for one in found], strict=False))
    for number, (old, new) in enumerate(pairs, start=1):
        if not (bridge.same(old, new) if isinstance(bridge, OfRuns) else alike(old, new)):
            raise _conflict(stream, found[0].file, f"checkpoint {number}", _differences(old.values, new.values))
    if len(held) > len(found):
        raise _conflict(
            stream,
            found[0].file,
            f"the stream contains {len(held)} checkpoints, but the file contains {len(found)}",
            {},
        )
    return ImportPlan(stream, len(held), tuple(found[len(held) :]))


def alike(held: Foreign, found: Foreign) -> bool:
    """Whether two checkpoints agree in every key."""
    return jcs_hash(held.values) == jcs_hash(found.values)


def _conflict(stream: str, file: str, what: str, differences: dict[str, Json]) -> RunBlocked:
    named = f": {', '.join(differences)}" if differences else ""
    return RunBlocked(f"{file} differs from stream {stream}, {what}{named}", code="view_conflict",
                      details={"stream": stream, "file": file, "differences": differences})  # fmt: skip


def _differences(old: Mapping[str, Json], new: Mapping[str, Json]) -> dict[str, Json]:
    sides = {"stream": old, "file": new}
    changed = [key for key in sorted({*old, *new}) if key not in old or key not in new or old[key] != new[key]]
    return {key: {side: values[key] for side, values in sides.items() if key in values} for key in changed}


def require_no_secret(checkpoint: Foreign, file: str, redactor: Redactor) -> None:
    if redactor.clean_value(checkpoint.values, stored_text(checkpoint.values))[1]:
        raise RedactionFailed(f"{file} contains a secret; remove it, then import the file")


def _append(runtime: Runtime, plan: ImportPlan) -> None:
    head = runtime.store.head(plan.stream)
    drafts = [
        RecordDraft(IMPORTED.type, genesis_of(one), stored_text(one.checkpoint.values).encode("utf-8"))
        for one in plan.new
    ]
    StreamLog(runtime, plan.stream, KINDS).append(*drafts, expected_version=0 if head is None else head.version)


def genesis_of(one: Placed) -> dict[str, Json]:
    """Return the data of the record that imports a checkpoint into the log; its payload is the values."""
    values = one.checkpoint.values
    return {"format": one.checkpoint.format, "position": one.position, "digest": jcs_hash(values), "file": one.file}


def _placed(store: Store, event: Event) -> Placed:
    record = record_of(store, event, KINDS)
    data, values, position = record.data, record.payload, record.data.get("position")
    if not isinstance(values, Mapping) or not isinstance(position, int):
        raise LogDamaged(event.stream, event.version, "it contains no checkpoint")
    return Placed(Foreign(str(data.get("format")), event.stream, values), str(data.get("file")), position)


class Exported(NamedTuple):
    keys: tuple[str, ...]
    data: bytes


def export(store: Store, bridge: Bridge, key: str) -> Exported:
    """Return the file for one key, or for all keys from one file: `key` may be empty or end before a '/'."""
    own = bridge.from_runs(store, key) if isinstance(bridge, OfRuns) and key else ()
    found = own or _imported(store, bridge, key)
    keys = tuple(dict.fromkeys(one.stream.partition("/")[2] for one in found))
    return Exported(keys, bridge.write(found))


def _imported(store: Store, bridge: Bridge, key: str) -> tuple[Foreign, ...]:
    prefix = f"{bridge.name}/{key}"
    found: list[Placed] = []
    for head in store.heads(prefix):
        if not key or head.stream == prefix or head.stream.startswith(f"{prefix}/"):
            found += _held(store, bridge, head.stream)
    if not found:
        raise WorkpacketError("checkpoint_missing", f"the log contains no {bridge.name} checkpoint {key!r}",
                              hint=f"workpacket log import {bridge.name} PATH")  # fmt: skip
    if any(one.checkpoint.stream == prefix for one in found):  # a key that is complete names that checkpoint alone
        found = [one for one in found if one.checkpoint.stream == prefix]
    files = sorted({one.file for one in found})
    if len(files) > 1:
        keys = sorted({one.checkpoint.stream.partition("/")[2] for one in found})
        raise WorkpacketError("checkpoint_missing", f"{key or bridge.name!r} is ambiguous; it matches several files: "
                              f"{', '.join(files)}", hint=f"name one of {', '.join(keys)}")  # fmt: skip
    return tuple(one.checkpoint for one in sorted(found, key=lambda one: one.position))


def _held(store: Store, bridge: Bridge, stream: str) -> list[Placed]:
    """Return the content of the stream: its current state if this store manages such streams, or else what was
    imported.
    """
    found = list(imported(store, stream))
    own = bridge.from_runs(store, stream.partition("/")[2]) if isinstance(bridge, OfRuns) else ()
    return [Placed(one, found[-1].file if found else stream, 0) for one in own] or found


_HEAD = """# Checkpoints in other formats

Generated by `just reference`. `workpacket log import FORMAT PATH...` imports checkpoint files of another format into
the log, and `workpacket log export FORMAT [KEY]` writes them again. An invalid file is refused with line and column,
and no part of it is imported. Unknown keys are kept. A file in its canonical form is exported byte for byte as it was
imported.

A checkpoint belongs to the stream `<format>/<key>`. If the stream does not exist, the import begins it. Importing the
same file again changes nothing, and an event log to which events were only added extends the stream; anything else is
refused with `view_conflict`. A file that contains a secret is refused with `redaction_failed`.

An export lacks what the format cannot represent:
"""


def formats_page() -> str:
    """Return docs/runtime/formats.md, generated from the bridges."""
    from inspect import cleandoc

    parts = [_HEAD]
    for name in sorted(BRIDGES):
        bridge = bridge_named(name)
        about = cleandoc(type(bridge).__doc__ or "").strip()
        lost = "".join(f"- {what}\n" for what in bridge.lossy) or "- nothing\n"
        parts.append(f"\n## {name}\n\n{about}\n\nLost:\n\n{lost}")
    return "".join(parts)

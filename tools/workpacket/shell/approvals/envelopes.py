"""What a gate rests on, read from the work tree: envelopes, the log of a packet, the files that are approved.

Every component of a path is opened without following links. A name that could not be an envelope or an event is passed
on without being opened; the layers below say what is wrong with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from workpacket import __version__
from workpacket.approvals.envelope import EnvelopeFile
from workpacket.approvals.policy import POLICY_GATE
from workpacket.errors import WorkpacketError
from workpacket.git.objects import blob_id, read_blobs
from workpacket.git.repository import Repository
from workpacket.lazy_pattern import lazy_pattern
from workpacket.ledger.log import Log, is_event_name, read_log
from workpacket.model.layout import ATTESTATIONS_FOLDER, LOG_FOLDER, TEMPORARY_PREFIX
from workpacket.shell.base import Base, settings_folder, tree_at
from workpacket.shell.transactions.safe_paths import Tree
from workpacket.shell.transactions.storage import changing_nothing, platform_storage

# What the gate `policy` is about has no id of its own.
POLICY_MATTER = "policy"

_ENVELOPE_NAME = lazy_pattern(r"[0-9a-f]{64}\.dsse\.json")


@contextmanager
def work_tree(repository: Repository) -> Iterator[Tree]:
    """The files of the work tree, for reading."""
    storage = platform_storage()
    with changing_nothing():
        top = storage.open_top(repository.root)
    with Tree(storage, top) as tree:
        yield tree


def read_attestations(tree: Tree, leave_out: Container[str] = ()) -> tuple[EnvelopeFile, ...]:
    """The files of the folder of attestations, in the order of their names; strange ones with empty contents."""
    return tuple(_envelopes(tree, leave_out))


def envelope_digests(tree: Tree, base: Base) -> frozenset[str]:
    """The digests that the names of all envelopes say, of those here and of those of the base."""
    names = {*tree.names(ATTESTATIONS_FOLDER), *_names_at(base)}
    return frozenset(name.partition(".")[0] for name in names if _ENVELOPE_NAME.fullmatch(name))


def _envelopes(tree: Tree, leave_out: Container[str]) -> Iterator[EnvelopeFile]:
    for name in sorted(tree.names(ATTESTATIONS_FOLDER)):
        if name.startswith(TEMPORARY_PREFIX) or name.partition(".")[0] in leave_out:
            continue
        if not _ENVELOPE_NAME.fullmatch(name):
            yield EnvelopeFile(name, b"")
            continue
        data = read_file(tree, f"{ATTESTATIONS_FOLDER}/{name}")
        if data is not None:
            yield EnvelopeFile(name, data)


def with_those_of_base(
    files: tuple[EnvelopeFile, ...], base: Base, leave_out: Container[str] = ()
) -> tuple[EnvelopeFile, ...]:
    """And those that the base holds otherwise: a no or a revocation is undone neither by deleting nor by editing it."""
    here = {file.name: file.data for file in files}
    other = {
        name: identity
        for name, identity in _names_at(base).items()
        if name.partition(".")[0] not in leave_out and (name not in here or blob_id(here[name], identity) != identity)
    }
    contents = read_blobs(base.repository, other.values())
    kept = (file for file in files if file.name not in other)
    return (*kept, *(EnvelopeFile(name, contents[identity]) for name, identity in other.items()))


def _names_at(base: Base) -> dict[str, str]:
    """The names of the base's envelopes, with the ids of their contents."""
    return {
        path.removeprefix(f"{ATTESTATIONS_FOLDER}/"): identity
        for path, identity in tree_at(base.repository, base.commit, ATTESTATIONS_FOLDER).items()
    }


def read_packet_log(tree: Tree, packet: str) -> Log:
    folder = f"{LOG_FOLDER}/{packet}"
    names = (name for name in tree.names(folder) if not name.startswith(TEMPORARY_PREFIX))
    files = {name: (read_file(tree, f"{folder}/{name}") or b"") if is_event_name(name) else b"" for name in names}
    return read_log(packet, files)


def logged_packets(tree: Tree) -> list[str]:
    return sorted(tree.names(LOG_FOLDER))


def read_file(tree: Tree, path: str) -> bytes | None:
    """The bytes of a governed file, None if there is none; WorkpacketError where something else stands there."""
    try:
        found = tree.read(path)
    except OSError as error:
        raise WorkpacketError("file_unreadable", error.strerror or "it cannot be read", path=path) from error
    return None if found is None else found.data


_NOTHING = "-"
# Up to here it takes less time to read all envelopes than to open the cache.
_FEW = 20


class EnvelopeClaim(NamedTuple):
    """`revokes` are the envelopes that it takes back, separated by commas; '-' where there is nothing."""

    packet: str
    gate: str
    revokes: str


def others_than(tree: Tree, base: Base, packet: str, named: Iterable[str]) -> frozenset[str]:
    """The envelopes that are neither about the packet, nor named by its events, nor revoke one of these.

    The name of an envelope is the digest of its bytes, so what is known of a name holds for ever. Only what is left out
    rests on the cache: what counts is read and verified every time, as is every envelope that is not known yet. The
    cache lies in the person's own folder; in the repository, someone who writes there could hide a rejection.
    """
    present = envelope_digests(tree, base)
    if len(present) <= _FEW:
        return frozenset()
    from workpacket.shell.cache import Cache

    cache = Cache(str(settings_folder()), __version__, ("claims", base.root_commit))
    try:
        rows = {digest: text.split(" ") for digest, text in cache.recall("claim", present).items()}
        # A damaged row counts as unknown: its envelope is read.
        claims = {digest: EnvelopeClaim(*row) for digest, row in rows.items() if len(row) == len(EnvelopeClaim._fields)}
        if len(claims) < len(present):
            learned = dict(_claims_in(with_those_of_base(read_attestations(tree, claims), base, claims)))
            cache.keep("claim", ((digest, " ".join(claim)) for digest, claim in learned.items()))
            claims |= learned
    finally:
        cache.close()
    return frozenset(claims.keys() - _concerning(packet, named, claims))


def _claims_in(files: Iterable[EnvelopeFile]) -> Iterator[tuple[str, EnvelopeClaim]]:
    """What can be kept of these: nothing of a file whose bytes are not those that its name says."""
    for file in files:
        digest = file.name.partition(".")[0]
        if hashlib.sha256(file.data).hexdigest() == digest:
            said = file.claim
            if said is None:
                yield digest, EnvelopeClaim(_NOTHING, _NOTHING, _NOTHING)
            elif said.decision == "revoke":
                yield digest, EnvelopeClaim(said.packet, said.gate, ",".join(each.sha256 for each in said.subjects))
            else:
                yield digest, EnvelopeClaim(said.packet, said.gate, _NOTHING)


def _concerning(packet: str, named: Iterable[str], claims: Mapping[str, EnvelopeClaim]) -> frozenset[str]:
    gate = POLICY_GATE if packet == POLICY_MATTER else ""
    own = {digest for digest, claim in claims.items() if claim.packet == packet or claim.gate == gate} | set(named)
    revoking = (
        digest
        for digest, claim in claims.items()
        if claim.revokes != _NOTHING and not own.isdisjoint(claim.revokes.split(","))
    )
    return frozenset(own.union(revoking))

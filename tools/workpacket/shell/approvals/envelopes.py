"""Reading what a gate rests on from the work tree: envelopes, the log of a packet, the files that are approved.

Every component of a path is opened without following links. A name that could not be an envelope or an event is passed
on without being opened; the layers below say what is wrong with it.

What each envelope claims to be about, remembered: so that one gate of one packet need not read all envelopes.

The name of an envelope is the digest of its bytes, so what is known of a name holds for ever: a file with other bytes
is no envelope. Only what is left out is decided by this memory; whatever counts is read and verified as ever, and an
envelope that is not known is read. It lies in the person's own folder beside the policy last seen, not in the
repository, where a no could be hidden by whoever writes there. `approvals verify` and `check` never ask it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from workpacket import __version__
from workpacket.approvals.opening import EnvelopeFile
from workpacket.approvals.policy import POLICY_GATE
from workpacket.errors import WorkpacketError
from workpacket.git.objects import blob_id, read_blobs
from workpacket.git.repository import Repository
from workpacket.lazy_pattern import lazy_pattern
from workpacket.ledger.log import Log, is_event_name, read_log
from workpacket.model.layout import ATTESTATIONS_FOLDER, LOG_FOLDER, TEMPORARY_PREFIX
from workpacket.shell.base import Base, keep, settings_folder, tree_at
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


_HEADER = f"workpacket {__version__}: what envelopes claim"
_NOTHING = "-"


class EnvelopeClaim(NamedTuple):
    """`revokes` are the envelopes that it takes back, separated by commas; '-' where there is nothing."""

    packet: str
    gate: str
    revokes: str


def known_claims(root_commit: str) -> dict[str, EnvelopeClaim]:
    """By digest of the envelope. What is damaged, or of another version, counts as unknown."""
    try:
        lines = _path(root_commit).read_text("ascii").split("\n")
    except (OSError, UnicodeDecodeError):
        return {}
    rows = (line.split(" ") for line in lines[1:]) if lines[0] == _HEADER else ()
    return {row[0]: EnvelopeClaim(*row[1:]) for row in rows if len(row) == 4}


def claims_in(files: Iterable[EnvelopeFile]) -> Iterator[tuple[str, EnvelopeClaim]]:
    """What can be remembered of these: nothing of a file whose bytes are not those that its name says."""
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


def remember_claims(root_commit: str, claims: Mapping[str, EnvelopeClaim]) -> bool:
    rows = (" ".join((digest, *claim)) for digest, claim in sorted(claims.items()))
    return keep(_path(root_commit), "\n".join((_HEADER, *rows)).encode())


def others_than(tree: Tree, base: Base, packet: str, named: Iterable[str]) -> frozenset[str]:
    """The envelopes that are neither about the packet, nor named by its events, nor revoke one of these."""
    present = envelope_digests(tree, base)
    claims = known_claims(base.root_commit)
    known = claims.keys() & present
    if len(known) < len(present):
        unknown = with_those_of_base(read_attestations(tree, known), base, known)
        learned = dict(claims_in(unknown))
        claims |= learned
        known |= learned.keys()
        remember_claims(base.root_commit, claims)
    return frozenset(known - concerning(packet, named, claims))


def concerning(packet: str, named: Iterable[str], claims: Mapping[str, EnvelopeClaim]) -> frozenset[str]:
    gate = POLICY_GATE if packet == POLICY_MATTER else ""
    own = {digest for digest, claim in claims.items() if claim.packet == packet or claim.gate == gate} | set(named)
    revoking = (
        digest
        for digest, claim in claims.items()
        if claim.revokes != _NOTHING and not own.isdisjoint(claim.revokes.split(","))
    )
    return frozenset(own.union(revoking))


def _path(root_commit: str) -> Path:
    return settings_folder() / "envelopes" / root_commit

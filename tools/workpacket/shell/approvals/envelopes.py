"""Read the input of a gate from the work tree: envelopes, the log of a packet, and the approved files.

Every path component is opened without following links. A file whose name cannot belong to an envelope or event is
passed on unopened; the layers below report what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager

from workpacket import __version__
from workpacket.approvals.envelope import EnvelopeFile
from workpacket.approvals.policy import POLICY_GATE
from workpacket.digests import sha256
from workpacket.git.objects import blob_id, read_blobs
from workpacket.git.repository import Repository
from workpacket.lazy_pattern import lazy_pattern
from workpacket.ledger.log import Log, is_event_name, read_log
from workpacket.model.layout import ATTESTATIONS_FOLDER, LOG_FOLDER, TEMPORARY_PREFIX
from workpacket.problem import WorkpacketError
from workpacket.shell.base import Base, settings_folder, tree_at
from workpacket.shell.transactions.storage import Tree, changing_nothing, platform_storage
from workpacket.value import NamedTuple

# The subject of the gate `policy` has no id.
POLICY_MATTER = "policy"

_ENVELOPE_NAME = lazy_pattern(r"[0-9a-f]{64}\.dsse\.json")


@contextmanager
def work_tree(repository: Repository) -> Iterator[Tree]:
    """Open the files in the work tree for reading."""
    storage = platform_storage()
    with changing_nothing():
        top = storage.open_top(repository.root)
    with Tree(storage, top) as tree:
        yield tree


def read_attestations(tree: Tree, leave_out: Container[str] = ()) -> tuple[EnvelopeFile, ...]:
    """Return the files in the attestation folder, ordered by name; foreign files get empty contents."""
    return tuple(_envelopes(tree, leave_out))


def envelope_digests(tree: Tree, base: Base) -> frozenset[str]:
    """Return the digests in the names of all envelopes, both here and on the base."""
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
    """Add the envelopes whose bytes differ on the base: deleting or editing a file must not undo a rejection or a
    revocation.
    """
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
    """Return the names of the base's envelopes, with the object ids of their contents."""
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
    """Return the bytes of a governed file, or None if it is missing; raise WorkpacketError if it is not a regular
    file."""
    try:
        found = tree.read(path)
    except OSError as error:
        raise WorkpacketError("file_unreadable", error.strerror or "it cannot be read", path=path) from error
    return None if found is None else tree.as_stored(path, found.data)


_NOTHING = "-"
# Up to this number, reading all envelopes is faster than opening the cache.
_FEW = 20


class EnvelopeClaim(NamedTuple):
    """The cached claim of an envelope. `revokes` are the envelopes that it revokes, separated by commas;
    '-' for none.
    """

    packet: str
    gate: str
    revokes: str


def others_than(tree: Tree, base: Base, packet: str, named: Iterable[str]) -> frozenset[str]:
    """Return the envelopes that do not concern the packet: they are not about it, its events do not list them, and they
    revoke no envelope of either kind. The name of an envelope is the digest of its bytes, so facts about a name remain
    true. The cache only excludes envelopes: those that count are read and verified every time, as is every unknown one.
    The cache is in the user's home directory; inside the repository, anyone with write access could hide a rejection.
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
    """Yield what can be cached about these files; nothing for a file whose bytes do not match its name."""
    for file in files:
        digest = file.name.partition(".")[0]
        if sha256(file.data).hexdigest() == digest:
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

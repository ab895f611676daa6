"""Rules that compare refinements, signatures and gate logs with the packets they speak of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from workpacket.documents.document import stem_of
from workpacket.documents.places import kind_of
from workpacket.documents.summary import Mention
from workpacket.model.layout import refinement_paths
from workpacket.problem import Problem
from workpacket.rules.repository import RepositorySummaries
from workpacket.rules.rule import RepositoryRule
from workpacket.text.formats import legacy_signature


class RefinementWithoutWork(RepositoryRule):
    """Refinement of an unknown packet

    Its findings, and perhaps its approval, do not belong to any work.

    Remedy: correct its id, restore the stub, or delete it.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        for path, refinement in repository.refinements.items():
            name = stem_of(path)
            if name not in work.known:
                message = f"there is no stub or packet {name}"
                yield self.finding(path, refinement["place"], message, hint=work.suggestions.hint(name))


class RefinementFileMissing(RepositoryRule):
    """Packet that names a missing refinement

    What the packet was approved for cannot be read.

    Remedy: restore the file, or correct the path.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for packet in repository.work.packets.values():
            written, line, column = packet.summary["refinement"]
            path = written.partition(" ")[0].strip("`").removeprefix("./")
            if kind_of(path) == "refinement" and path not in repository.refinements:
                yield self.finding(packet.path, (line, column), f"there is no file {path}")


class SignatureUse(NamedTuple):
    """A signature on a packet or a refinement. `name` is the packet's id."""

    name: str
    path: str
    signature: Mention


def _uses(repository: RepositorySummaries) -> Iterator[SignatureUse]:
    """Every use of a signature that is one: packets first, in the order of their paths."""
    for file in repository.work.packets.values():
        signature = file.summary["signature"]
        if signature[0] and not legacy_signature(signature[0]):
            yield SignatureUse(file.id, file.path, signature)
    for path, refinement in sorted(repository.refinements.items()):
        signature = refinement["signature"]
        if signature[0] and not legacy_signature(signature[0]):
            yield SignatureUse(stem_of(path), path, signature)


class SignatureReused(RepositoryRule):
    """Signature that was given for another packet

    Each token approves one packet. On a second packet it is a copy, and that packet was not approved.

    Remedy: have the packet approved on its own: `workpacket approve <WP_ID>`.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        owners = _audited_owners(repository)
        for use in _uses(repository):
            token = use.signature[0]
            where, names = owners.setdefault(token, (use.path, {use.name}))
            if names and use.name not in names:
                message = f"the signature {token} was given for {', '.join(sorted(names))} ({where})"
                yield self.finding(use.path, use.signature[1:], message)


def _audited_owners(repository: RepositorySummaries) -> dict[str, tuple[str, set[str]]]:
    """Which packets each audited signature was given for; a row that names none says nothing."""
    owners: dict[str, tuple[str, set[str]]] = {}
    for path, audit in repository.signature_audits.items():
        for row in audit["rows"]:
            if row["packets"]:
                names = {mention[0] for mention in row["packets"]}
                owners.setdefault(row["signature"][0], (f"{path}:{row['signature'][1]}", names))
    return owners


class SignatureNotAudited(RepositoryRule):
    """Signature that is missing from the audit

    The audit shows whether a token was used twice; this one bypassed it.

    Remedy: find out who gave it; `workpacket approve <WP_ID>` records an approval in the right places.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        audits = repository.signature_audits
        if not any(audit["has_table"] for audit in audits.values()):
            return
        audited = {row["signature"][0] for audit in audits.values() for row in audit["rows"]}
        for use in _uses(repository):
            if use.signature[0] not in audited:
                message = f"the signature {use.signature[0]} is not in {', '.join(sorted(audits))}"
                yield self.finding(use.path, use.signature[1:], message)


class SignatureMismatch(RepositoryRule):
    """Packet and refinement with different signatures

    The refinement was approved with one token; the origin of the other is unknown.

    Remedy: find out which one was given; if neither was, have the packet approved again.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        signed: dict[str, SignatureUse] = {}
        for use in _uses(repository):
            first = signed.setdefault(use.name, use)
            if first.signature[0] != use.signature[0]:
                other = f"{use.signature[0]} ({use.path}:{use.signature[1]})"
                message = f"the packet is signed with {first.signature[0]}, its refinement with {other}"
                yield self.finding(first.path, first.signature[1:], message)


class AuditPacketUnknown(RepositoryRule):
    """Audited signature for an unknown packet

    A person approved something that no longer exists.

    Remedy: correct the id in the row, or restore the packet.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for path, audit in repository.signature_audits.items():
            for row in audit["rows"]:
                for name, line, column in row["packets"]:
                    if not _is_known(repository, name):
                        hint = repository.work.suggestions.hint(name)
                        yield self.finding(path, (line, column), f"there is no packet {name}", hint=hint)


class GatePacketUnknown(RepositoryRule):
    """Gate recorded for an unknown packet

    The packet that passed it does not exist.

    Remedy: correct the id, or restore the packet.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for path, log in repository.gate_logs.items():
            said: set[str] = set()
            for name, line, column in log["packets"]:
                if name not in said and name.startswith("WP-") and not _is_known(repository, name):
                    said.add(name)
                    hint = repository.work.suggestions.hint(name)
                    yield self.finding(path, (line, column), f"there is no packet {name}", hint=hint)


def _is_known(repository: RepositorySummaries, name: str) -> bool:
    """Whether anything but an approval knows the id; a refinement is enough."""
    return name in repository.work.known or any(path in repository.refinements for path in refinement_paths(name))

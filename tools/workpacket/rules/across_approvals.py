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
    """Refinement of a packet that nobody knows

    What was found out and perhaps approved belongs to no work.

    Remedy: correct its id, bring the stub back, or delete it.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        for path, refinement in repository.refinements.items():
            name = stem_of(path)
            if name not in work.known:
                message = f"there is neither a stub nor a packet {name}"
                yield self.finding(path, refinement["place"], message, hint=work.suggestions.hint(name))


class RefinementFileMissing(RepositoryRule):
    """Packet that names a refinement which does not exist

    What the packet was approved for cannot be read.

    Remedy: bring the file back, or correct the path.
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

    A person approves one packet with one token. On a second packet it is a copy, and nobody approved anything.

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
    """Signature that the audit does not have

    The audit is where it would be seen that a token was used twice; this one was entered past it.

    Remedy: find out who gave it; `workpacket approve <WP_ID>` enters an approval where it belongs.
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

    The refinement was approved with one token; where the other comes from, nobody can say.

    Remedy: find out which one was given; have the packet approved anew if neither was.
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
    """Audited signature for a packet that nobody knows

    A person approved something that cannot be found.

    Remedy: correct the id in the row, or bring the packet back.
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
    """Gate recorded for a packet that nobody knows

    It was passed for nothing that can be found.

    Remedy: correct the id, or bring the packet back.
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

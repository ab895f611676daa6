"""Rules that compare packets and stubs with one another (their ids and dependencies), and with their refinements,
signatures and gate logs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from workpacket.documents.document import stem_of
from workpacket.documents.places import kind_of
from workpacket.documents.summary import Mention, circles
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.lanes import MAY_BE_STUB
from workpacket.model.layout import refinement_paths
from workpacket.problem import Problem
from workpacket.rules.repository import Listed, RepositorySummaries, WorkFile, WorkIndex, base_of, is_open, revision_of
from workpacket.rules.rule import RepositoryRule, repeated
from workpacket.rules.structured import PLACEHOLDER, says_something
from workpacket.text.formats import legacy_signature

# For a longer cycle, the message names this many packets at the beginning, and one at the end.
_NAMED = 6


class IdTwice(RepositoryRule):
    """Two files for one packet

    People may edit one file while tools read the other.

    Remedy: keep only one of them.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for work, earlier in repository.work.repeated:
            message = f"{work.id} already has a file: {earlier.path}"
            yield self.finding(work.path, work.summary["place"], message, hint="keep only one of them")


class IdCaseCollision(RepositoryRule):
    """Ids that differ only in case

    On case-insensitive file systems, their files are the same, so one packet overwrites the other.

    Remedy: change one of the ids.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for work, earlier in repeated(repository.work.files(), lambda work: work.id.casefold()):
            if earlier.id != work.id:
                message = f"{work.id} and {earlier.id} ({earlier.path}) differ only in case"
                yield self.finding(work.path, work.summary["place"], message)


class DependencyUnknown(RepositoryRule):
    """Dependency on an unknown packet

    The work is waiting for something that will never be done.

    Remedy: correct the id, or delete the dependency.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        for file in work.files():
            for mention in file.summary["depends"]:
                if mention[0] not in work.known and mention[0].startswith("WP-"):
                    message = f"{file.id} depends on {mention[0]}, which does not exist"
                    hint = work.suggestions.hint(mention[0]) or "correct the id, or create that packet: workpacket new"
                    yield self.finding(file.path, mention[1:], message, hint=hint)


class DependencySuperseded(RepositoryRule):
    """Dependency on a superseded packet

    Work on the superseded packet has ended, so this packet would wait forever.

    Remedy: name the superseding packet as the dependency instead.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        waiting = [stub for stub in work.stubs.values() if work.is_live_stub(stub)]
        waiting += [one for one in work.packets.values() if is_open(one.summary["lanes"], repository.known_lanes)]
        for file in waiting:
            for mention in file.summary["depends"]:
                known = work.superseded.get(mention[0])
                target = work.packets.get(mention[0])
                base = target.base if target is not None else mention[0]
                # A base stands for whichever of its packets is in force.
                if known is not None and base not in {mention[0], file.base}:
                    by = f"; {known.by} replaced it" if known.by else ""
                    message = f"{file.id} depends on {mention[0]}, which is superseded{by}"
                    yield self.finding(file.path, mention[1:], message)


class DependencyCycle(RepositoryRule):
    """Circular dependency between packets

    None of the packets can ever start.

    Remedy: delete one of the dependencies, or split a packet.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        edges = _dependencies(repository.work)
        for circle in circles(edges, edges):
            file, mention = edges[circle[-2]][circle[-1]]
            left_out = len(circle) - _NAMED - 2
            named = [*circle[:_NAMED], f"({left_out} more)", *circle[-2:]] if left_out > 0 else circle
            steps = [edges[one][other] for one, other in pairwise(circle[: _NAMED + 1])]
            others = ", ".join(f"{step.path}:{place[1]}" for step, place in steps if step is not file)
            message = f"circular dependency: {' -> '.join(named)}"
            yield self.finding(file.path, mention[1:], message, hint=f"see also {others}" if others else "")


# The dependencies of each packet, with the file and the place that state them.
_Edges = Mapping[str, Mapping[str, tuple[WorkFile, Mention]]]


def _dependencies(work: WorkIndex) -> _Edges:
    edges: dict[str, dict[str, tuple[WorkFile, Mention]]] = {}
    for file in work.files():
        for mention in file.summary["depends"]:
            target = mention[0] if work.has_file(mention[0]) else work.packet_of_base(mention[0])
            # A packet that names its own base depends on the previous revision.
            if target and target != file.id:
                edges.setdefault(file.id, {}).setdefault(target, (file, mention))
    return edges


class DependencyContradiction(RepositoryRule):
    """Stub and packet with different dependencies

    The stub and the packet disagree about what the work is waiting for, and the gate can follow only one of them.

    Remedy: fix the packet, and make the stub agree.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        for name, packet in work.packets.items():
            stub = work.stubs.get(name)
            if stub is None:
                continue
            ours, theirs = _by_base(packet), _by_base(stub)
            if not ours or not theirs or ours.keys() == theirs.keys():
                continue
            more = [ours[base][0] for base in ours if base not in theirs]
            less = [theirs[base][0] for base in theirs if base not in ours]
            parts = [f"{kind} {', '.join(names)}" for kind, names in (("also", more), ("not", less)) if names]
            differing = [mention for base, mention in ours.items() if base not in theirs]
            place = (differing or list(ours.values()))[0][1:]
            message = f"the packet depends {' and '.join(parts)}, unlike its stub ({stub.path})"
            yield self.finding(packet.path, place, message)


def _by_base(file: WorkFile) -> dict[str, Mention]:
    """Return dependencies by base: a later revision of the same work does not contradict an earlier one."""
    found: dict[str, Mention] = {}
    for mention in file.summary["depends"]:
        found.setdefault(base_of(mention[0]), mention)
    return found


class RefinementWithoutWork(RepositoryRule):
    """Refinement of an unknown packet

    The refinement, and perhaps its approval, does not belong to any work packet.

    Remedy: correct its id, restore the stub, or delete the refinement.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        for path, refinement in repository.refinements.items():
            name = stem_of(path)
            if name not in work.known:
                message = f"stub or packet {name} not found"
                yield self.finding(path, refinement["place"], message, hint=work.suggestions.hint(name))


class RefinementFileMissing(RepositoryRule):
    """Packet that names a missing refinement

    The text approved for the packet cannot be read.

    Remedy: restore the file, or correct the path.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for packet in repository.work.packets.values():
            written, line, column = packet.summary["refinement"]
            path = written.partition(" ")[0].strip("`").removeprefix("./")
            if kind_of(path) == "refinement" and path not in repository.refinements:
                yield self.finding(packet.path, (line, column), f"file {path} not found")
            elif written and kind_of(path) != "refinement" and says_something(written):
                message = f"{written!r} is not the path of a refinement"
                hint = f"write {refinement_paths(packet.id)[0]}"
                if not PLACEHOLDER.match(written):
                    yield self.finding(packet.path, (line, column), message, hint=hint)


class RefinementUnapproved(RepositoryRule):
    """Activated packet with an unapproved refinement

    Work may start only from a refinement that a person has approved and that needs no new text in the specification.

    Remedy: have it approved: `workpacket approve <WP_ID>`; until then, the packet remains a stub.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for packet in repository.work.packets.values():
            lanes = [repository.known_lanes.lane(token) for token in packet.summary["lanes"]]
            if not lanes or any(lane is None or lane.may_be_stub or lane.archived for lane in lanes):
                continue
            written, line, column = packet.summary["refinement"]
            named = written.partition(" ")[0].strip("`").removeprefix("./")
            paths = [path for path in (named, *refinement_paths(packet.id)) if path in repository.refinements]
            refinement = repository.refinements[paths[0]] if paths else None
            if refinement is None or refinement["id"] != packet.id:
                continue  # other rules report a missing refinement, and that of another packet
            place = (line, column) if written else packet.summary["status_place"]
            state = packet.summary["lanes"][0]
            if refinement["review_status"] not in {"", "APPROVED"}:  # another rule reports that it is missing
                yield self.finding(packet.path, place, f"the packet is {state}, but {paths[0]} is not approved")
            elif refinement["enrichment_needed"] and "enrichment" not in packet.id.casefold():
                # The packet that carries out the enrichment is approved with it.
                message = f"the packet is {state}, but {paths[0]} has ENRICHMENT_NEEDED: YES"
                yield self.finding(packet.path, place, message)


class RefinementOtherVersion(RepositoryRule):
    """Packet and refinement based on different versions of the specification

    The approval applies to the version that the refinement names.

    Remedy: look up the passages in the refinement's version, and correct SPEC_BASELINE and SPEC_ANCHOR.
    """

    # An enrichment makes the next version, after the packet's baseline was recorded.
    severity = "warning"
    strict_severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for packet in repository.work.packets.values():
            paths = (path for path in refinement_paths(packet.id) if path in repository.refinements)
            refinement = next((repository.refinements[path] for path in paths), None)
            pinned = _VERSION.search(refinement["spec"]) if refinement is not None else None
            named = [(mention, _VERSION.search(mention[0])) for mention in packet.summary["spec_versions"]]
            other = [mention for mention, match in named if match and pinned and match[0] != pinned[0]]
            if other and pinned is not None:
                more = f" (also line {other[1][1]})" if len(other) > 1 else ""
                message = f"this is {other[0][0].partition(' ')[0]}, but the refinement is based on {pinned[0]}{more}"
                yield self.finding(packet.path, other[0][1:], message)


_VERSION = lazy_pattern(r"v\d+(?:\.\d+)+(?=\.md\b)")


class SpecDigestContradicts(RepositoryRule):
    """One version of the specification with two digests

    Two refinements name the same file, but were approved for different versions of its text.

    Remedy: find out which version was current, and refine the other packet again.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        first: dict[tuple[str, int], tuple[str, str, int]] = {}
        for path, refinement in sorted(repository.refinements.items()):
            digest, place = refinement["spec_digest"], refinement["spec_place"]
            # A pointer such as SPEC_CURRENT.md stands for many versions.
            if not digest or not any(map(str.isdigit, refinement["spec"])):
                continue
            earlier = first.setdefault((refinement["spec"], len(digest)), (digest, path, place[0]))
            if earlier[0] != digest:
                message = f"{refinement['spec']} has the digest {earlier[0][:12]}... in {earlier[1]}:{earlier[2]}"
                yield self.finding(path, place, f"{message}, here {digest[:12]}...")


class ValidatedUnproven(RepositoryRule):
    """Validated packet without a verdict or evidence

    The packet has no log either, so it is unknown who judged the work and what was examined.

    Remedy: add the report with its verdict and evidence to VALIDATION_REPORTS, or correct the status.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for packet in repository.work.packets.values():
            if packet.summary["lanes"] != ["VALIDATED"] or packet.id in repository.lanes:
                continue
            if packet.summary["unproven"]:
                lacks = " and no ".join(packet.summary["unproven"])
                message = f"the status is VALIDATED, but the packet contains no {lacks}"
                yield self.finding(packet.path, packet.summary["status_place"], message)


class GateContradicts(RepositoryRule):
    """Gate log that contradicts the packet

    The verdict or the signature in the log differs from the one in the packet.

    Remedy: find out which one is right; do not edit the log, because it is evidence.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for path, log in repository.gate_logs.items():
            for name, what, (value, line, column) in log["stated"]:
                packet = repository.work.packets.get(name)
                if packet is None:
                    continue
                said = packet.summary["signature"][0]
                known = (said, *packet.summary["earlier_signatures"])
                if what == "signature" and not legacy_signature(said) and value and value not in known:
                    message = f"the log has the signature {value}, but {packet.path} has {said}"
                    yield self.finding(path, (line, column), message)
                lanes = packet.summary["lanes"]
                if what == "verdict" and value.upper() == "FAIL" and lanes == ["VALIDATED"]:
                    message = f"the log has the verdict FAIL, but {packet.path} is VALIDATED"
                    yield self.finding(path, (line, column), message)


class SignatureUse(NamedTuple):
    """A signature on a packet or a refinement. `name` is the packet's id."""

    name: str
    path: str
    signature: Mention


def _uses(repository: RepositorySummaries) -> Iterator[SignatureUse]:
    """Yield every use of a well-formed signature: packets first, ordered by path."""
    for file in repository.work.packets.values():
        signature = file.summary["signature"]
        if signature[0] and not legacy_signature(signature[0]):
            yield SignatureUse(file.id, file.path, signature)
    for path, refinement in sorted(repository.refinements.items()):
        signature = refinement["signature"]
        if signature[0] and not legacy_signature(signature[0]):
            yield SignatureUse(stem_of(path), path, signature)


class SignatureReused(RepositoryRule):
    """Signature given for a different packet

    Each token approves one packet. On a second packet, the token is a copy, and that second packet was not approved.
    Where a signed envelope approved the packet, the token proves nothing and is not compared.

    Remedy: have the packet approved separately: `workpacket approve <WP_ID>`.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        owners = _audited_owners(repository)
        for path, audit in repository.signature_audits.items():
            for row in audit["rows"]:
                where, names = owners.get(row["signature"][0], ("", set()))
                others = {mention[0] for mention in row["packets"]} - names
                if names and others - set(repository.attested):
                    message = f"the signature {row['signature'][0]} was given for {', '.join(sorted(names))} ({where})"
                    yield self.finding(path, row["signature"][1:], message)
        for use in _uses(repository):
            token = use.signature[0]
            where, names = owners.setdefault(token, (use.path, {use.name}))
            if names and use.name not in names and use.name not in repository.attested:
                message = f"the signature {token} was given for {', '.join(sorted(names))} ({where})"
                yield self.finding(use.path, use.signature[1:], message)


def _audited_owners(repository: RepositorySummaries) -> dict[str, tuple[str, set[str]]]:
    """Return, for each audited signature, the packets for which it was given. A row that lists none is skipped."""
    owners: dict[str, tuple[str, set[str]]] = {}
    for path, audit in repository.signature_audits.items():
        for row in audit["rows"]:
            if row["packets"]:
                names = {mention[0] for mention in row["packets"]}
                owners.setdefault(row["signature"][0], (f"{path}:{row['signature'][1]}", names))
    return owners


class SignatureNotAudited(RepositoryRule):
    """Signature missing from the audit

    The audit shows whether a token was used twice, but it does not list this one.

    Remedy: find out who gave the signature; `workpacket approve <WP_ID>` records an approval and adds it to the audit.
    """

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        audits = repository.signature_audits
        if not any(audit["has_table"] for audit in audits.values()) or repository.board in {"base", "never"}:
            return
        audited = {row["signature"][0] for audit in audits.values() for row in audit["rows"]}
        for use in _uses(repository):
            if use.signature[0] not in audited:
                message = f"the signature {use.signature[0]} is not in {', '.join(sorted(audits))}"
                yield self.finding(use.path, use.signature[1:], message)


class SignatureMismatch(RepositoryRule):
    """Packet and refinement with different signatures

    The refinement was approved with one token; the origin of the other is unknown.

    Remedy: find out which token was really given; if neither was, have the packet approved again.
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
                        message = f"packet {name} not found"
                        yield self.finding(path, (line, column), message, hint=_where_is(repository, name))


class GatePacketUnknown(RepositoryRule):
    """Gate recorded for an unknown packet

    The packet that supposedly passed the gate does not exist.

    Remedy: correct the id, or restore the packet.
    """

    severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        for path, log in repository.gate_logs.items():
            said: set[str] = set()
            for name, line, column in log["packets"]:
                if name not in said and name.startswith("WP-") and not _is_known(repository, name):
                    said.add(name)
                    message = f"packet {name} not found"
                    yield self.finding(path, (line, column), message, hint=_where_is(repository, name))


def _where_is(repository: RepositorySummaries, name: str) -> str:
    """Return the file that states the id under a different name, or else an id that is spelled almost the same."""
    stated = next((file.path for file in repository.work.files() if file.summary["id"] == name), "")
    return f"{stated} states this id" if stated else repository.work.suggestions.hint(name)


def _is_known(repository: RepositorySummaries, name: str) -> bool:
    """Whether a document other than an approval has the id; a refinement is sufficient."""
    return name in repository.work.known or any(path in repository.refinements for path in refinement_paths(name))


class StubActivated(RepositoryRule):
    """Stub that does not say that it became a packet

    Without a log, readers of the stub believe that the work has not begun, and may plan it again.

    Remedy: delete the stub, or archive it; with a log (`workpacket adopt`), the board and `show` say what became of it.
    """

    severity = "info"
    strict_severity = "warning"

    def check(self, repository: RepositorySummaries) -> Iterator[Problem]:
        work = repository.work
        for stub in work.stubs.values():
            if stub.id in repository.lanes or stub.summary["lanes"] != ["STUB"]:
                continue
            packet, listed = _made_of(work, stub)
            if packet is not None:
                message = f"the status is {stub.summary['status']!r}, but {packet.path} exists"
                yield self.finding(stub.path, stub.summary["status_place"], message)
            elif listed is not None:
                entry = listed.entry
                message = (
                    f"the status is {stub.summary['status']!r}, but the board has {entry['id']} as {entry['token']}"
                )
                where = f"{listed.path}:{entry['place'][0]}"
                yield self.finding(stub.path, stub.summary["status_place"], f"{message} ({where})")


def _made_of(work: WorkIndex, stub: WorkFile) -> tuple[WorkFile | None, Listed | None]:
    """Return the packet, or else the board entry, of the same or a later revision than the stub."""
    row = work.rows.get(stub.base)
    active = row.row["active"] if row is not None else ""
    for packet in work.packets_of.get(stub.base, ()):
        if packet.id == stub.id or revision_of(packet.id) >= revision_of(stub.id):
            return packet, None
    for name in (stub.id, active):
        listed = work.entries.get(name)
        at_work = listed is not None and listed.entry["token"] not in {*MAY_BE_STUB, "", "SUPERSEDED"}
        if at_work and (name == stub.id or revision_of(name) >= revision_of(stub.id)):
            return None, listed
    return None, None

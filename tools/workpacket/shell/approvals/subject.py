"""The subject of a gate: the approved files, the specification, the paths in scope; and the contract that the gate is
about.

- activation: the refinement, with the scope of the stub;
- policy: all files in `.GOV/policy`, in their new state;
- every other gate: the packet, with its own IN_SCOPE_PATHS.

Before activation, the contract is the one in the stub and the refinement; for an amendment, the one that the packet and
the stub will have. Every other gate is about the current contract according to the log, regardless of the files. A log
that records none is older than contracts; then the contract in the packet counts.

The specification is the current one on the base, because a change must not supply the specification by which it is
judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, partial

from workpacket.approvals.envelope import Spec, Subject
from workpacket.approvals.policy import POLICY_GATE
from workpacket.digests import sha256
from workpacket.documents.document import read_once
from workpacket.documents.packet import Packet, is_light
from workpacket.documents.refinement import Refinement
from workpacket.documents.spec_pointer import specification_places
from workpacket.documents.stub import Stub
from workpacket.git.objects import read_objects
from workpacket.git.repository import Repository, head_commit
from workpacket.git.run import run_git
from workpacket.lazy_pattern import lazy_pattern
from workpacket.ledger.fold import in_force
from workpacket.ledger.log import Log
from workpacket.lifecycle.contract import Contract, stated
from workpacket.lifecycle.contract_drift import contract_before, contract_findings
from workpacket.lifecycle.gates import ACTIVATING, AMENDMENT_GATE
from workpacket.model.events import LogEvent
from workpacket.model.layout import POLICY_FOLDER, SPEC_POINTER, packet_paths, refinement_paths, stub_path
from workpacket.problem import Problem
from workpacket.shell.approvals.envelopes import read_file
from workpacket.shell.transactions.storage import Tree
from workpacket.text.source import DATA, MARKDOWN, Source
from workpacket.value import Value

_LONGEST_TEXT = 240
_NOT_TEXT = lazy_pattern(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")

# Returns the bytes of a file, from the work tree or a commit.
Reader = Callable[[str], "bytes | None"]
# Returns the bytes of several files of a commit, in one call.
Committed = Callable[[tuple[str, ...]], Mapping[str, bytes]]


class ApprovalSubject(Value):
    """`files` are the approved files by path; empty if there are none. `refinement` is the file that names passages in
    the specification. `light` means that the packet is in the light form, whose contract contains the section of the
    specification that it is based on.
    """

    files: tuple[tuple[str, bytes], ...]
    scope: tuple[str, ...] = ()
    refinement: tuple[tuple[str, bytes], ...] = ()
    light: bool = False

    @cached_property
    def anchor(self) -> str:
        """Return the passages in the specification that the refinement names, if the repository has a specification."""
        for path, data in self.refinement:
            from workpacket.documents.refinement import Refinement

            anchors = (anchor.get("spec_anchor") for anchor in read_once(Refinement, _source(path, data)).anchors)
            return "; ".join(node.text or "" for node in anchors if node is not None)
        return ""

    @property
    def subjects(self) -> tuple[Subject, ...]:
        return tuple(sorted(Subject(path, sha256(data).hexdigest()) for path, data in self.files))


def matter_of(read: Reader, tree: Tree, packet: str, gate: str) -> ApprovalSubject:
    """Return the subject. `read` returns the files of the packet; the policy files always come from the work tree."""
    if gate == POLICY_GATE:
        return ApprovalSubject(tuple(policy_files(tree).items()))
    if gate in ACTIVATING:
        files = refinement_of(read, packet)
        light = _light_document(read, packet)
        if light:
            return ApprovalSubject(light, _packet_scope(light), light=True)
        return ApprovalSubject(files, _stub_scope(read, packet), files)
    files = _first(read, packet_paths(packet))
    return ApprovalSubject(
        files, _packet_scope(files), refinement_of(read, packet), bool(_light_document(read, packet))
    )


def _light_document(read: Reader, packet: str) -> tuple[tuple[str, bytes], ...]:
    """Return the only document of a packet in the light form; empty if the packet is in the full form."""
    return tuple((path, data) for path, data in _first(read, packet_paths(packet)) if is_light(_source(path, data)))


def refinement_of(read: Reader, packet: str) -> tuple[tuple[str, bytes], ...]:
    """Return the subject of the `activation` gate with its path; empty if there is none."""
    return _first(read, refinement_paths(packet))


def policy_files(tree: Tree) -> dict[str, bytes]:
    """Return the files in `.GOV/policy` in the work tree, by path."""
    paths = (f"{POLICY_FOLDER}/{name}" for name in sorted(tree.names(POLICY_FOLDER)))
    return {path: data for path in paths if (data := read_file(tree, path)) is not None}


def spec_in_force(read: Committed, matter: ApprovalSubject) -> Spec | None:
    """Return the specification in the pointer; None if the pointer or its target is missing."""
    places = spec_places(read)
    found = read(places)
    for path in places:
        if path in found:
            anchored = f"{path}: {matter.anchor}" if matter.anchor else path
            return Spec(_text(anchored), sha256(found[path]).hexdigest())
    return None


def spec_places(read: Committed) -> tuple[str, ...]:
    """Return the paths in the pointer that could be the specification; none if there is no pointer."""
    pointer = read((SPEC_POINTER,)).get(SPEC_POINTER)
    return specification_places(_source(SPEC_POINTER, pointer)) if pointer is not None else ()


def _first(read: Reader, paths: Iterable[str]) -> tuple[tuple[str, bytes], ...]:
    return next((((path, data),) for path in paths if (data := read(path)) is not None), ())


def _stub_scope(read: Reader, packet: str) -> tuple[str, ...]:
    path = stub_path(packet)
    data = read(path)
    return _scope(item.value for item in read_once(Stub, _source(path, data)).in_scope) if data is not None else ()


def _packet_scope(files: tuple[tuple[str, bytes], ...]) -> tuple[str, ...]:
    return _scope(item.value for path, data in files for item in read_once(Packet, _source(path, data)).in_scope_paths)


def _scope(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({_text(item) for item in items if item.strip()}))


def _text(text: str) -> str:
    """Return the string in a form that a statement can contain: one line without control characters; a long string is
    replaced by its digest.
    """
    line = _NOT_TEXT.sub("?", " ".join(text.split()))
    if len(line) <= _LONGEST_TEXT:
        return line
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{line[:150]} (sha256 {digest})"


def _source(path: str, data: bytes) -> Source:
    """Return as much of the file as a document reader accepts; the digest of the subject covers all of it."""
    limit = MARKDOWN.size if path.endswith(".md") else DATA.size
    return Source.from_bytes(path, data[: limit + 1])


# The gates of the events that define the contract in force.
_SETTING = ACTIVATING | {AMENDMENT_GATE}
# The number of commits searched for an earlier version of a contract, newest first.
_MOST = 500


class Documents(Value):
    """The files that state the contract of a packet."""

    stub: Stub | None
    packet: Packet | None
    refinement: Refinement | None


def documents_of(read: Reader, packet: str) -> Documents:
    stub, found, refinement = (
        next((_source(path, data) for path, data in _first(read, paths)), None)
        for paths in ((stub_path(packet),), packet_paths(packet), refinement_paths(packet))
    )
    return Documents(
        read_once(Stub, stub) if stub is not None else None,
        read_once(Packet, found) if found is not None else None,
        read_once(Refinement, refinement) if refinement is not None else None,
    )


def contract_to_approve(read: Reader, log: Log, packet: str, gate: str) -> Contract | Problem:
    """Return the contract in the files, which would be approved now, or why there is none."""
    found = documents_of(read, packet)
    light = found.packet is not None and found.packet.light
    document = found.stub if gate in ACTIVATING and not light else found.packet or found.stub
    if document is None:
        message = f"{packet} has no {'stub' if gate in ACTIVATING else 'packet'}"
        return Problem("contract_unreadable", message)
    said = stated(document, found.refinement)
    if isinstance(said, str):
        return Problem("contract_unreadable", said)
    if gate in ACTIVATING:
        return said
    if gate == AMENDMENT_GATE:
        other = stated(found.stub, found.refinement) if found.stub is not None else said
        if isinstance(other, str):
            return Problem("contract_unreadable", other)
        message = "the stub and the packet state different contracts; write the same contract into both"
        return said if other == said else Problem("contract_changed", message)
    held = in_force(log) or frozenset({said.digest})
    message = "the files state a different contract from the approved one"
    return said if held == {said.digest} else Problem("contract_changed", message)


def contract_asked(read: Reader, log: Log, packet: str, gate: str, consumer: LogEvent | None) -> tuple[str | None, str]:
    """Return the digest that an approval at this gate must contain, for this event or one yet to be written; or why
    there is none.
    """
    if gate == POLICY_GATE:
        return None, ""
    if consumer is not None and gate in _SETTING:
        named = consumer.text("contract")
        return named, "" if named else f"the {consumer.type} event does not refer to a contract"
    if gate not in _SETTING:
        held = in_force(log, log.heads if consumer is None else consumer.parents)
        if len(held) > 1:
            return None, f"{packet} was amended on two branches, so it has two current contracts"
        named = next(iter(held), "") or contract_before(log)
        if named:
            return named, ""
    said = contract_to_approve(read, log, packet, gate)
    return (None, said.message) if isinstance(said, Problem) else (said.digest, "")


def drift(read: Reader, log: Log) -> Iterator[Problem]:
    """Report differences between the contract in a packet's files and the one in its log. Nothing is read if the log
    records none.
    """
    if in_force(log):
        found = documents_of(read, log.packet)
        yield from contract_findings(log, found.stub, found.packet, found.refinement)


def contract_version(repository: Repository, packet: str, digest: str) -> Contract | None:
    """Return the contract with this digest, found in the latest commits; None if none of them has it."""
    if head_commit(repository) is None:
        return None
    paths = (stub_path(packet), *packet_paths(packet), *refinement_paths(packet))
    answer = run_git(repository.root, "log", "--all", f"--max-count={_MOST}", "--format=%H", "--", *paths)
    for commit in answer.text.split():
        versions = read_objects(repository, (f"{commit}:{path}" for path in paths))
        found = documents_of(partial(_version, versions, commit), packet)
        for document in (found.packet, found.stub):
            said = stated(document, found.refinement) if document is not None else ""
            if isinstance(said, Contract) and said.digest == digest:
                return said
    return None


def _version(versions: dict[str, bytes], commit: str, path: str) -> bytes | None:
    return versions.get(f"{commit}:{path}")

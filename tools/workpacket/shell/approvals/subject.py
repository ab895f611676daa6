"""The subject of a gate: the approved files, the specification, the paths in scope.

- activation: the refinement; the scope is that of the stub;
- policy: all files in `.GOV/policy`, in their new state;
- every other gate: the packet, with its own IN_SCOPE_PATHS.

The specification is the one in force on the base, because a change must not bring the specification by which it is
judged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

from workpacket.approvals.policy import POLICY_GATE
from workpacket.approvals.statement import Spec, Subject
from workpacket.documents.document import read_once
from workpacket.documents.spec_pointer import specification_places
from workpacket.lazy_pattern import lazy_pattern
from workpacket.lifecycle.gates import ACTIVATING
from workpacket.model.layout import POLICY_FOLDER, SPEC_POINTER, packet_paths, refinement_paths, stub_path
from workpacket.shell.approvals.envelopes import read_file
from workpacket.shell.transactions.safe_paths import Tree
from workpacket.text.limits import DATA, MARKDOWN
from workpacket.text.source import Source
from workpacket.value import Value

_LONGEST_TEXT = 240
_NOT_TEXT = lazy_pattern(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")

# Returns the bytes of a file, from the work tree or a commit.
Reader = Callable[[str], "bytes | None"]
# Returns the bytes of several files of a commit, in one call.
Committed = Callable[[tuple[str, ...]], Mapping[str, bytes]]


class ApprovalSubject(Value):
    """`files` are the approved files by path; empty if there are none. `refinement` is the file that names places in
    the specification. `light` means that the packet is in the light form, whose contract contains the section of the
    specification that it is based on.
    """

    files: tuple[tuple[str, bytes], ...]
    scope: tuple[str, ...] = ()
    refinement: tuple[tuple[str, bytes], ...] = ()
    light: bool = False

    @cached_property
    def anchor(self) -> str:
        """Return the places in the specification that the refinement names, if the repository has a specification."""
        for path, data in self.refinement:
            from workpacket.documents.refinement import Refinement

            anchors = (anchor.get("spec_anchor") for anchor in read_once(Refinement, _source(path, data)).anchors)
            return "; ".join(node.text or "" for node in anchors if node is not None)
        return ""

    @property
    def subjects(self) -> tuple[Subject, ...]:
        return tuple(sorted(Subject(path, hashlib.sha256(data).hexdigest()) for path, data in self.files))


def matter_of(read: Reader, tree: Tree, packet: str, gate: str) -> ApprovalSubject:
    """Return the subject. `read` returns the files of the packet; those of the policy always come from the work
    tree.
    """
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
    from workpacket.documents.packet import is_light

    return tuple((path, data) for path, data in _first(read, packet_paths(packet)) if is_light(_source(path, data)))


def refinement_of(read: Reader, packet: str) -> tuple[tuple[str, bytes], ...]:
    """Return the subject of the gate `activation` with its path; empty if there is none."""
    return _first(read, refinement_paths(packet))


def policy_files(tree: Tree) -> dict[str, bytes]:
    """Return the files of `.GOV/policy` in the work tree, by path."""
    paths = (f"{POLICY_FOLDER}/{name}" for name in sorted(tree.names(POLICY_FOLDER)))
    return {path: data for path in paths if (data := read_file(tree, path)) is not None}


def spec_in_force(read: Committed, matter: ApprovalSubject) -> Spec | None:
    """Return the specification named by the pointer; None if the pointer or its target is missing."""
    places = spec_places(read)
    found = read(places)
    for path in places:
        if path in found:
            anchored = f"{path}: {matter.anchor}" if matter.anchor else path
            return Spec(_text(anchored), hashlib.sha256(found[path]).hexdigest())
    return None


def spec_places(read: Committed) -> tuple[str, ...]:
    """Return the possible paths of the specification named by the pointer; none without a pointer."""
    pointer = read((SPEC_POINTER,)).get(SPEC_POINTER)
    return specification_places(_source(SPEC_POINTER, pointer)) if pointer is not None else ()


def _first(read: Reader, paths: Iterable[str]) -> tuple[tuple[str, bytes], ...]:
    return next((((path, data),) for path in paths if (data := read(path)) is not None), ())


def _stub_scope(read: Reader, packet: str) -> tuple[str, ...]:
    from workpacket.documents.stub import Stub

    path = stub_path(packet)
    data = read(path)
    return _scope(item.value for item in read_once(Stub, _source(path, data)).in_scope) if data is not None else ()


def _packet_scope(files: tuple[tuple[str, bytes], ...]) -> tuple[str, ...]:
    from workpacket.documents.packet import Packet

    return _scope(item.value for path, data in files for item in read_once(Packet, _source(path, data)).in_scope_paths)


def _scope(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({_text(item) for item in items if item.strip()}))


def _text(text: str) -> str:
    """Return the text in a form that a statement can contain: one line without control characters; a long text is
    replaced by its digest.
    """
    line = _NOT_TEXT.sub("?", " ".join(text.split()))
    if len(line) <= _LONGEST_TEXT:
        return line
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{line[:150]} (sha256 {digest})"


def _source(path: str, data: bytes) -> Source:
    """Return as much of the file as a document reader accepts; the digest of the subject covers all of it."""
    limit = MARKDOWN.size if path.endswith(".md") else DATA.size
    return Source.from_bytes(path, data[: limit + 1])

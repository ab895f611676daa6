"""Read documents: select the reader for a kind, and import no other."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple, cast

from workpacket.documents.document import Document
from workpacket.model.lanes import BUILT_IN, LaneTable
from workpacket.text.source import DATA, MARKDOWN, REGISTER, Limits, Source


class DocumentKind(NamedTuple):
    """A kind of document: the class that reads it, in the module named after the kind or in the given one, and its
    rules. `rules` are the modules of `workpacket.rules` for this kind, in addition to those for every kind; the JSON
    Schema is named after the kind.
    """

    name: str
    title: str
    reader: str
    limits: Limits
    rules: tuple[str, ...]
    module: str = ""


# The rules for every document that has a layout.
_STRUCTURED = ("structured", "identity", "dates", "anchors", "sentences")
# The rules for every document with keys and dates.
_KEYED = ("dates", "keys")

KINDS: tuple[DocumentKind, ...] = (
    DocumentKind("stub", "work packet stub", "Stub", MARKDOWN, (*_STRUCTURED, "stub")),
    DocumentKind("refinement", "technical refinement", "Refinement", MARKDOWN, (*_STRUCTURED, "refinement")),
    DocumentKind(
        "packet", "task packet", "Packet", MARKDOWN, (*_STRUCTURED, "packet", "packet_reports", "scope_paths")
    ),
    DocumentKind("task_board", "task board", "TaskBoard", REGISTER, ("dates", "task_board")),
    DocumentKind("registry", "traceability registry", "TraceabilityRegistry", REGISTER, ("registers",)),
    DocumentKind("signature_audit", "signature audit", "SignatureAudit", REGISTER, ("registers",), "registry"),
    DocumentKind(
        "orchestrator_gates",
        "orchestrator gate log",
        "OrchestratorGates",
        REGISTER,
        (*_KEYED, "registers"),
        "gate_logs",
    ),
    DocumentKind(
        "validator_gates",
        "validator gate sessions",
        "ValidatorGates",
        DATA,
        (*_KEYED, "registers"),
        "gate_logs",
    ),
    DocumentKind("spec_pointer", "pointer to the specification in force", "SpecPointer", MARKDOWN, ("refinement",)),
    DocumentKind("policy", "policy", "PolicyDocument", DATA, ("policy",)),
    DocumentKind(
        "work_package",
        "spec-kitty work package",
        "WorkPackage",
        MARKDOWN,
        (*_KEYED, "scope_paths", "work_package"),
    ),
    DocumentKind(
        "batch_checkpoint",
        "batch checkpoint",
        "BatchCheckpoint",
        DATA,
        (*_KEYED, "scope_paths", "batch"),
        "batch",
    ),
    DocumentKind(
        "batch_tasks", "tasks of a batch scope", "BatchTasks", DATA, ("keys", "scope_paths", "batch"), "batch"
    ),
    DocumentKind("batch_dependencies", "dependencies of a batch scope", "BatchDependencies", DATA, ("batch",), "batch"),
    DocumentKind("batch_validation", "validation of a batch scope", "BatchValidation", DATA, ("batch",), "batch"),
    DocumentKind("role_progress", "role progress", "RoleProgress", MARKDOWN, (*_KEYED, "role_progress")),
    DocumentKind("commit_sidecar", "commit checkpoint sidecar", "CommitSidecar", DATA, (*_KEYED, "commit_sidecar")),
)

_BY_NAME = {kind.name: kind for kind in KINDS}


def kind_named(name: str) -> DocumentKind:
    return _BY_NAME[name]


# Kinds whose structure, and not only whose words, depends on the defined lanes.
_LAID_OUT_BY_LANES = frozenset({"task_board", "registry"})


def reader_of(kind: str) -> type[Document]:
    """Return the class that reads documents of `kind`."""
    known = _BY_NAME[kind]
    module = import_module(f"workpacket.documents.{known.module or known.name}")
    return cast("type[Document]", getattr(module, known.reader))


def read_document(kind: str, source: Source, lanes: LaneTable = BUILT_IN) -> Document:
    """Read `source` as a document of `kind`. Errors are in the document's `faults`."""
    reader = reader_of(kind)
    if kind in _LAID_OUT_BY_LANES:
        return cast("Callable[[Source, LaneTable], Document]", reader)(source, lanes)
    document = cast("Callable[[Source], Document]", reader)(source)
    document.lanes = lanes
    return document

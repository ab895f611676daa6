"""From a source to a document: picks the reader of its kind, and imports no other."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple, cast

from workpacket.documents.document import Document
from workpacket.model.lanes import BUILT_IN, LaneTable
from workpacket.text.limits import DATA, MARKDOWN, REGISTER, Limits
from workpacket.text.source import Source


class DocumentKind(NamedTuple):
    """A kind of document: the class that reads it, in the module of the kind's name or the one given."""

    name: str
    title: str
    reader: str
    limits: Limits
    module: str = ""


KINDS: tuple[DocumentKind, ...] = (
    DocumentKind("stub", "work packet stub", "Stub", MARKDOWN),
    DocumentKind("refinement", "technical refinement", "Refinement", MARKDOWN),
    DocumentKind("packet", "task packet", "Packet", MARKDOWN),
    DocumentKind("task_board", "task board", "TaskBoard", REGISTER),
    DocumentKind("registry", "traceability registry", "TraceabilityRegistry", REGISTER),
    DocumentKind("signature_audit", "signature audit", "SignatureAudit", REGISTER),
    DocumentKind("orchestrator_gates", "orchestrator gate log", "OrchestratorGates", REGISTER, "gate_logs"),
    DocumentKind("validator_gates", "validator gate sessions", "ValidatorGates", DATA, "gate_logs"),
    DocumentKind("spec_pointer", "pointer to the specification in force", "SpecPointer", MARKDOWN),
    DocumentKind("policy", "policy", "PolicyDocument", DATA),
    DocumentKind("work_package", "spec-kitty work package", "WorkPackage", MARKDOWN),
    DocumentKind("batch_checkpoint", "batch checkpoint", "BatchCheckpoint", DATA, "batch"),
    DocumentKind("batch_tasks", "tasks of a batch scope", "BatchTasks", DATA, "batch"),
    DocumentKind("batch_dependencies", "dependencies of a batch scope", "BatchDependencies", DATA, "batch"),
    DocumentKind("batch_validation", "validation of a batch scope", "BatchValidation", DATA, "batch"),
    DocumentKind("role_progress", "role progress", "RoleProgress", MARKDOWN),
    DocumentKind("commit_sidecar", "commit checkpoint sidecar", "CommitSidecar", DATA),
)

_BY_NAME = {kind.name: kind for kind in KINDS}


def kind_named(name: str) -> DocumentKind:
    return _BY_NAME[name]


# Kinds whose structure, and not only whose words, depends on which lanes there are.
_LAID_OUT_BY_LANES = frozenset({"task_board", "registry"})


def read_document(kind: str, source: Source, lanes: LaneTable = BUILT_IN) -> Document:
    """Reads `source` as a document of `kind`. What is wrong with it is in the document's faults."""
    known = _BY_NAME[kind]
    module = import_module(f"workpacket.documents.{known.module or known.name}")
    reader = getattr(module, known.reader)
    if kind in _LAID_OUT_BY_LANES:
        return cast("Callable[[Source, LaneTable], Document]", reader)(source, lanes)
    document = cast("Callable[[Source], Document]", reader)(source)
    document.lanes = lanes
    return document

"""From a source to a document: picks the reader of its kind, and imports no other."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple, cast

from workpacket.documents.document import Document
from workpacket.model.lanes import BUILT_IN, LaneTable
from workpacket.text.limits import DATA, MARKDOWN, REGISTER, Limits
from workpacket.text.source import Source


class Kind(NamedTuple):
    """A kind of document: the class that reads it, in the module of the kind's name or the one given."""

    name: str
    title: str
    reader: str
    limits: Limits
    module: str = ""


KINDS: tuple[Kind, ...] = (
    Kind("stub", "work packet stub", "Stub", MARKDOWN),
    Kind("refinement", "technical refinement", "Refinement", MARKDOWN),
    Kind("packet", "task packet", "Packet", MARKDOWN),
    Kind("task_board", "task board", "TaskBoard", REGISTER),
    Kind("registry", "traceability registry", "TraceabilityRegistry", REGISTER),
    Kind("signature_audit", "signature audit", "SignatureAudit", REGISTER),
    Kind("orchestrator_gates", "orchestrator gate log", "OrchestratorGates", REGISTER),
    Kind("validator_gates", "validator gate sessions", "ValidatorGates", DATA),
    Kind("spec_pointer", "pointer to the specification in force", "SpecPointer", MARKDOWN),
    Kind("policy", "policy", "Policy", DATA),
    Kind("work_package", "spec-kitty work package", "WorkPackage", MARKDOWN),
    Kind("batch_checkpoint", "batch checkpoint", "BatchCheckpoint", DATA, "batch"),
    Kind("batch_tasks", "tasks of a batch scope", "BatchTasks", DATA, "batch"),
    Kind("batch_dependencies", "dependencies of a batch scope", "BatchDependencies", DATA, "batch"),
    Kind("batch_validation", "validation of a batch scope", "BatchValidation", DATA, "batch"),
    Kind("role_progress", "role progress", "RoleProgress", MARKDOWN),
    Kind("commit_sidecar", "commit checkpoint sidecar", "CommitSidecar", DATA),
)

_BY_NAME = {kind.name: kind for kind in KINDS}


def kind_named(name: str) -> Kind:
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

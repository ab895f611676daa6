"""The rules about refinements: what activation asks, which is not to import the rules of all other kinds."""

from __future__ import annotations

from workpacket.rules import fields, identity, refinement, specification, structured, text
from workpacket.rules.rule import Rule

IN_MANY_KINDS: tuple[type[Rule], ...] = (
    text.NotUtf8,
    text.ByteOrderMark,
    text.LineEnds,
    text.BlankLinesAtEnd,
    text.NoFinalNewline,
    text.ControlCharacter,
    text.BidiControl,
    text.ConflictMarker,
    text.HomePath,
    text.Mojibake,
    structured.SectionMissing,
    structured.PacketSectionMissing,
    structured.SectionEmpty,
    structured.FenceUnclosed,
    structured.SectionDuplicate,
    structured.SectionOrder,
    structured.SectionUnknown,
    structured.OldHeading,
    structured.HeadingLevel,
    fields.FieldDuplicate,
    fields.FieldEmpty,
    fields.MetadataFieldUnknown,
    fields.FieldSyntax,
    identity.HintTextLeft,
    identity.IdMalformed,
    identity.IdFileMismatch,
    identity.BaseIdMismatch,
    identity.TitleMismatch,
    identity.DateOnly,
    identity.DateMalformed,
    identity.SignatureMalformed,
    identity.PlaceholderLeft,
)
ABOUT_REFINEMENTS: tuple[type[Rule], ...] = (
    refinement.ApprovedUnsigned,
    refinement.ApprovalEvidenceMismatch,
    refinement.VerdictContradiction,
    refinement.AmbiguityContradiction,
    refinement.EnrichmentReasonMissing,
    refinement.EnrichmentTextMissing,
    refinement.AnchorsMissing,
    refinement.AnchorIncomplete,
    refinement.AnchorLines,
    refinement.RefinementNotAscii,
    specification.SpecificationMissing,
    specification.SpecMoved,
    specification.AnchorNotFound,
)
REFINEMENT_RULES = (*IN_MANY_KINDS, *ABOUT_REFINEMENTS)

"""Rewrites a stub of the older family into the canonical form, losing none of its words."""

from __future__ import annotations

from workpacket.documents.structured import PlacedSection, body_of
from workpacket.documents.stub import Stub
from workpacket.documents.stub_text import SPEC_POINTER, StubText, render_stub
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.ids import WorkPacketId
from workpacket.text.formats import date
from workpacket.text.outline import Section
from workpacket.text.source import Source

# Sections whose content has a place of its own in the canonical form.
_MAPPED = frozenset(
    {"metadata", "why", "anchors", "roadmap_pointer", "intent", "scope", "acceptance_criteria", "dependencies", "risks"}
)
_DATE = lazy_pattern(r"\d{4}-\d{2}-\d{2}")


def upgraded(source: Source) -> Source | None:
    """The canonical form of an older stub; None if it is none, or states no id to upgrade it under."""
    stub = Stub(source)
    wp_id = WorkPacketId.try_parse(stub.own_id)
    if not stub.is_older or wp_id is None:
        return None
    target, remark = _target_and_remark(stub)
    why = _prose(stub, "why") or _prose(stub, "intent")
    text = StubText(
        wp_id=wp_id,
        created_at=_created(stub),
        roadmap_pointer=_one_line(_prose(stub, "roadmap_pointer")) or "none stated",
        what=_one_line(stub.what.value if stub.what is not None else "") or _one_line(why) or f"see {wp_id.base}",
        why=_one_line(why) or "see PROBLEM_STATEMENT",
        spec_target=target,
        anchors=[item.value for item in stub.texts_at("anchors")],
        in_scope=[item.value for item in stub.in_scope],
        out_of_scope=[item.value for item in stub.out_of_scope],
        acceptance_criteria=[item.value for item in stub.acceptance_criteria],
        dependencies=[item.value for item in stub.dependencies],
        risks=[item.value for item in stub.risks],
        sections={"PROBLEM_STATEMENT (DRAFT)": _carried(stub, remark)},
    )
    return Source(source.path, render_stub(text), bom=False)


def _target_and_remark(stub: Stub) -> tuple[str, str]:
    value = stub.spec_target.value if stub.spec_target is not None else SPEC_POINTER
    path, _, remark = value.partition(" ")
    return path.strip("`"), remark.strip()


def _created(stub: Stub) -> str:
    value = stub.created_at.value if stub.created_at is not None else ""
    match = _DATE.match(value)
    return f"{match.group()}T00:00:00Z" if match and not date(match.group()) else value


def _prose(stub: Stub, key: str) -> str:
    placed = stub.placed_section(key)
    return _body(stub.source, placed.section) if placed is not None else ""


def _body(source: Source, section: Section) -> str:
    return body_of(source, section).replace("\r\n", "\n")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _carried(stub: Stub, remark: str) -> str:
    """What has no place of its own: other sections, and the remark behind SPEC_TARGET."""
    parts = [f"SPEC_TARGET was noted as {remark}."] if remark else []
    parts += [f"### {section.title}\n{_body(stub.source, section)}" for section in _rest(stub)]
    return "\n\n".join(parts) or "None stated."


def _rest(stub: Stub) -> list[Section]:
    placed = [known.section for known in stub.placed if _is_rest(known)]
    return sorted([*placed, *stub.unknown], key=lambda section: section.line)


def _is_rest(known: PlacedSection) -> bool:
    return known.spec.key not in _MAPPED and known.spec.key != "activation_checklist"

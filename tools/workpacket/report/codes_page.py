"""The page of all reason codes, `docs/reference/codes.md`, made from the registry that the commands use."""

from __future__ import annotations

from workpacket.model.reasons import Reason, Registry
from workpacket.model.stops import StopReason
from workpacket.report.explain import facts_of, remedies_of

_INTRODUCTION = (
    "# Reason codes",
    "",
    "Every message that asks for an action carries one of these codes; `workpacket explain CODE` shows the same text.",
    "This page is made from the registry of the package: change the code there, not here.",
)


def render_codes_page(registry: Registry) -> str:
    """Markdown: a table of contents by family, then one section a code."""
    families: dict[str, list[Reason]] = {}
    for reason in sorted(registry.values(), key=lambda reason: reason.code):
        families.setdefault(reason.family, []).append(reason)
    lines = [*_INTRODUCTION, ""]
    for family in sorted(families):
        # One line a code: two branches that each add one do not conflict.
        lines += [f"- **{family}**", *(f"  - [`{reason.code}`](#{reason.code})" for reason in families[family])]
    for family in sorted(families):
        lines += ["", f"## {family}"]
        for reason in families[family]:
            lines += _section(reason)
    return "\n".join(lines) + "\n"


def _section(reason: Reason) -> list[str]:
    facts = "; ".join(f"{name}: {value}" for name, value in facts_of(reason) if name != "family")
    return [
        "",
        f"### {reason.code}",
        "",
        f"**{reason.title}.** {reason.explanation}",
        "",
        *([f"To find out what happened: {reason.diagnosis}", ""] if isinstance(reason, StopReason) else []),
        f"What to do: {' '.join(remedies_of(reason))}",
        "",
        f"_{facts}_",
    ]

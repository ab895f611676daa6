"""The meaning of a reason code, for `workpacket explain CODE`.

Also renders the page of all reason codes, `docs/reference/codes.md`, from the catalogue that the commands use, and
suggests codes for a misspelled one (only then is difflib imported).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from workpacket.model.reasons import Family, Reason, StopReason
from workpacket.report.terminal import PLAIN, Style, wrap


def nearest_codes(word: str, codes: Iterable[str]) -> list[str]:
    """Return the codes that `word` may be a misspelling of, most likely first."""
    typed = word.lower().replace("-", "_")
    known = list(codes)
    close = get_close_matches(typed, known, n=3, cutoff=0.6)
    return close or [code for code in known if typed and typed in code][:3]


_FIXES = {
    "none": "by hand",
    "safe": "workpacket check --fix",
    "unsafe": "workpacket check --unsafe-fixes, then review the changes",
}
# Only findings in a file can be fixed or ignored there: a refusal or a missing program cannot.
_ABOUT_DOCUMENTS: frozenset[Family] = frozenset({"reading", "text", "document", "cross-file", "approval", "integrity"})
_BY_ITSELF = {"never": "no", "with_backoff": "yes, after a pause", "after_confirm": "after a person confirms"}
_READABLE = 100  # longer lines of prose are hard to follow, however wide the terminal is


def render_explanation(reason: Reason, style: Style = PLAIN) -> str:
    """Return one page, which ends with a newline."""
    room = min(style.columns or _READABLE, _READABLE)
    facts = facts_of(reason)
    widest = max(len(name) for name, _ in facts)
    lines = [f"{style.paint(reason.code, 'code')}: {reason.title}", ""]
    lines += [*_paragraph(reason.explanation, room), ""]
    if isinstance(reason, StopReason):
        lines += [style.paint("How to find out what happened", "help"), *_paragraph(reason.diagnosis, room), ""]
    lines += [style.paint("What to do", "help"), *_paragraph("\n".join(remedies_of(reason)), room), ""]
    lines += [f"  {name.ljust(widest)}  {value}" for name, value in facts]
    return "\n".join(lines) + "\n"


def remedies_of(reason: Reason) -> list[str]:
    """Return the remedies, the usual one first."""
    others = reason.remedies[1:] if isinstance(reason, StopReason) else ()
    return [reason.remedy, *(f"Or: {other}." for other in others)]


def facts_of(reason: Reason) -> list[tuple[str, str]]:
    """Return what applies to every problem with this code, in the same lines that the documentation uses."""
    severity: str = reason.severity
    if reason.strict_severity != reason.severity:
        severity += f" (under the strict profile: {reason.strict_severity})"
    facts = [("family", reason.family), ("severity", severity), ("exit status", str(reason.exit_code))]
    if reason.family in _ABOUT_DOCUMENTS:
        facts.append(("fix", _FIXES[reason.fix]))
        facts.append(("ignore", "with a written reason, in the policy" if reason.ignorable else "never"))
    if isinstance(reason, StopReason):
        facts += [("stop family", reason.stops), ("continues automatically", _BY_ITSELF[reason.auto_resume])]
    if reason.aliases:
        facts.append(("earlier names", ", ".join(reason.aliases)))
    return facts


def _paragraph(text: str, room: int) -> list[str]:
    return [f"  {line}" for part in text.split("\n") for line in wrap(part, room - 2)]


_INTRODUCTION = (
    "# Reason codes",
    "",
    "Every message that requests an action carries one of these codes; `workpacket explain CODE` shows the same text.",
    "This page is generated from the catalog in the package: change the text there, not here.",
)


def render_codes_page(registry: Mapping[str, Reason]) -> str:
    """Return Markdown: a table of contents by family, then one section per code."""
    families: dict[str, list[Reason]] = {}
    for reason in sorted(registry.values(), key=lambda reason: reason.code):
        families.setdefault(reason.family, []).append(reason)
    lines = [*_INTRODUCTION, ""]
    for family in sorted(families):
        # One line per code: two branches that each add one do not conflict.
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

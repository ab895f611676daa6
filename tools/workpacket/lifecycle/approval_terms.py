"""What an approval is given for beside the bytes: the verdict itself, or the rule that is waived and until when.

The packet's bytes alone would let a yes to one verdict pass for another. The terms stand in the statement's `scope`
beside the paths, so they are shown, signed and compared like these.
"""

from __future__ import annotations

from collections.abc import Mapping

from workpacket.model.events import Event

# The events that rest on an approval, and the gate it has to be of.
CONSUMING: Mapping[str, str] = {
    "activated": "activation",
    "verdict.given": "verdict",
    "overridden": "override",
    "waived": "waiver",
}

# The gates that are human only where the policy says so. A waiver that nobody signed is a note, which lifts nothing.
OPTIONAL_GATES = frozenset({"verdict", "override", "waiver"})
HUMAN_GATES = frozenset(CONSUMING.values()) - OPTIONAL_GATES

# For each gate that has terms: how a term is called in the statement, and under which key the event holds it.
_LIFTING: Mapping[str, str] = {"rule": "rule", "until": "expires_at", "reason": "reason", "target": "target"}
TERMS: Mapping[str, Mapping[str, str]] = {
    "verdict": {"verdict": "verdict"},
    "override": _LIFTING,
    "waiver": _LIFTING,
}
# Without it the rule is lifted for whatever it is about.
OPTIONAL = frozenset({"target"})


def terms_of(event: Event, gate: str) -> dict[str, str]:
    """The terms that the event claims approval for at one of the gates that it rests upon."""
    wanted = TERMS.get(gate, {})
    return {name: event.text(key) or "" for name, key in wanted.items()}


def written(terms: Mapping[str, str]) -> tuple[str, ...]:
    """As the scope of a statement holds them."""
    return tuple(f"{name}: {value}" for name, value in sorted(terms.items()) if value or name not in OPTIONAL)


def terms_in(gate: str, scope: tuple[str, ...]) -> tuple[str, ...]:
    """Those lines of a statement's scope that are terms of its gate."""
    starts = tuple(f"{name}: " for name in TERMS.get(gate, {}))
    return tuple(line for line in scope if starts and line.startswith(starts))

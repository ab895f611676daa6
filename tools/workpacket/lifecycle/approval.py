"""What the gates ask of the approvals, and the answer as far as plain tokens can give one.

A gate knows an `ApprovalAnswer` and nothing of keys. Signed approvals are judged by the approvals layer, which gives
the same kind of answer. A plain token (`ann010220261200`) is something that anyone can type: it counts only where the
policy at the base says so in words, and even then only with a real date, once, and after time to read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from workpacket.text.node import Node
from workpacket.value import Value

ACTIVATION_GATE: Final = "activation"
WAIVER_GATE: Final = "waiver"
LEGACY_WORDS: Final = "accepted although anyone can type them"
REVIEW_PAUSE: Final = timedelta(minutes=5)

_TOKEN = re.compile(r"(?P<user>[a-z]+)(\d\d)(\d\d)(\d{4})(\d\d)(\d\d)\Z", re.ASCII)


class ApprovalAnswer(Value):
    """`objections` is empty if and only if the gate is satisfied: (code, message) each."""

    assurance: Literal["none", "legacy", "signed"]
    objections: tuple[tuple[str, str], ...]
    attest: tuple[str, ...] = ()


class Trust(Value):
    """For which gates plain tokens count, and which events of the log have an attestation that was verified.

    `anchored`: whether the policy was read from a commit of the base.
    """

    legacy_gates: frozenset[str] = frozenset()
    anchored: bool = False
    attested: frozenset[str] = frozenset()


def trust_of(root: Node | None, *, anchored: bool) -> Trust:
    gates = root.get("approvals", "gates") if root is not None else None
    named = gates.mapping if gates is not None else {}
    words = {name: node.get("legacy_tokens") for name, node in named.items()}
    accepting = (name for name, node in words.items() if node is not None and node.value == LEGACY_WORDS)
    return Trust(frozenset(accepting), anchored)


def judge_token(
    packet: str, token: str, uses: Mapping[str, frozenset[str]], presented_at: str, now: str, trust: Trust
) -> ApprovalAnswer:
    """The answer for the activation gate, where the refinement holds nothing but a plain token."""
    objections = tuple(_objections(packet, token, uses, presented_at, now, trust))
    return ApprovalAnswer("none" if objections else "legacy", objections)


def _objections(
    packet: str, token: str, uses: Mapping[str, frozenset[str]], presented_at: str, now: str, trust: Trust
) -> Iterator[tuple[str, str]]:
    if not trust.anchored:
        yield "policy_not_anchored", "no commit of the base holds .GOV/policy/policy.toml, so nobody may approve yet"
    if ACTIVATION_GATE not in trust.legacy_gates:
        yield (
            "approval_not_accepted",
            "the policy takes no plain token, a name with a date that anyone can type, for a signature",
        )
    if not token or token.startswith("<"):
        return
    match = _TOKEN.match(token)
    if match is None:
        yield "approval_token_malformed", f"{token!r} is not a lower-case name followed by DDMMYYYYHHMM"
        return
    if not _is_real(match):
        yield "approval_token_malformed", f"{token!r} names a day or an hour that does not exist"
    others = uses.get(token, frozenset()) - {packet}
    if others:
        yield "approval_token_reused", f"{token!r} stands for {', '.join(sorted(others))} already"
    if not presented_at:
        yield "approval_hasty", "it is not recorded when the refinement was presented for review"
    elif _instant(now) - _instant(presented_at) < REVIEW_PAUSE:
        minutes = REVIEW_PAUSE // timedelta(minutes=1)
        yield "approval_hasty", f"the refinement was presented at {presented_at}; reading it takes {minutes} minutes"


def _is_real(match: re.Match[str]) -> bool:
    day, month, year, hour, minute = (int(part) for part in match.groups()[1:])
    try:
        datetime(year, month, day, hour, minute, tzinfo=UTC)
    except ValueError:
        return False
    return True


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)

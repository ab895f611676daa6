"""The verdict of one gate: whether enough different people approved it and no entitled person rejected it, and if not,
everything that is missing.

Counting rules:

- people count, not keys, names or envelopes: two keys of one principal count once, and so do two principals who are
  one person according to `[actors]`;
- an approval or rejection does not count if its author, someone with a role at the gate, or an operator has revoked it,
  even if it was used long ago;
- a rejection applies until the same person later approves the same bytes; one rejection by anyone with a role at the
  gate is enough;
- two different statements with the same nonce invalidate each other.

The old kind of signature is a name with a date, such as `ana310120261200`, that anyone can type. It is shown as
`assurance: legacy`, and satisfies a gate only if the policy says so explicitly. Everything that can be checked is
checked: the date exists and matches the record, the token is used only once in the whole history, and there was time to
read the text before the token was recorded.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from workpacket.approvals.facts import Assurance, GateFacts, LegacyUse, Verdict, Voice
from workpacket.approvals.fields import CLOCK_SKEW
from workpacket.approvals.policy import OPERATOR, GatePolicy, Trusted, read_policy_files
from workpacket.approvals.verify import Judged, Opened, judge_envelope, own_work
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.wording import counted
from workpacket.problem import Problem
from workpacket.value import Value


def decide(facts: GateFacts) -> Verdict:
    """Decide whether the approvals satisfy the gate under the base's policy."""
    trusted = read_policy_files(facts.policy, facts.revoked_keys_now)
    if isinstance(trusted, tuple):
        return Verdict(facts.gate, "none", (), trusted)
    gate = trusted.policy.rules_of(facts.gate)
    if gate is None:
        unknown = Problem("gate_without_policy", f"the policy on the base does not define gate {facts.gate!r}")
        return Verdict(facts.gate, "none", (), (unknown,))
    # The verdict must not depend on the order in which a file system lists files.
    files = sorted(facts.envelopes, key=lambda file: file.name)
    judged = [judge_envelope(file, facts, gate, trusted) for file in files]
    # Revoked ones first: a statement that no longer counts does not invalidate another one.
    judged = _without_shared_nonces(_without_revoked(judged, gate, trusted))
    return _count(judged, facts, gate)


def _count(judged: list[Judged], facts: GateFacts, gate: GatePolicy) -> Verdict:
    approvals = _counting(judged, "approve")
    persons = {facts.person(opened.statement.approver) for opened in approvals}
    tokens = _judge_tokens(facts, gate)
    assurance: Assurance = "signed" if len(persons) >= gate.threshold else "legacy" if () in tokens else "none"
    unmet = _standing_noes(_counting(judged, "reject"), approvals, facts)
    if assurance == "none":
        unmet.append(_too_few(judged, persons, gate))
        unmet += (refusal for each in judged for refusal in each.refusals)
        unmet += (refusal for refusals in tokens for refusal in refusals)
    voices = tuple(_voice(opened) for opened in approvals)
    return Verdict(facts.gate, "none" if unmet else assurance, voices, tuple(dict.fromkeys(unmet)), tuple(judged))


def _counting(judged: list[Judged], decision: str) -> list[Opened]:
    """Return the envelopes that are valid for their kind."""
    opened = (each.opened for each in judged if not each.refusals)
    return [each for each in opened if each is not None and each.statement.decision == decision]


def _without_revoked(judged: list[Judged], gate: GatePolicy, trusted: Trusted) -> list[Judged]:
    revocations = _counting(judged, "revoke")
    return [_unless_revoked(each, revocations, gate, trusted) for each in judged]


def _unless_revoked(each: Judged, revocations: list[Opened], gate: GatePolicy, trusted: Trusted) -> Judged:
    if each.opened is None:
        return each
    digest, approver = each.opened.envelope.digest, each.opened.statement.approver
    for revocation in revocations:
        by = revocation.statement.approver
        entitled = by == approver or any(trusted.policy.holds(by, role) for role in (*gate.roles, OPERATOR))
        if entitled and digest in {subject.sha256 for subject in revocation.statement.subjects}:
            return each.also(Problem("approval_revoked", f"{by} revoked it"))
    return each


def _without_shared_nonces(judged: list[Judged]) -> list[Judged]:
    """Reject different statements that share a nonce: a nonce is valid for one statement only. Signing the same
    statement twice is not a conflict.
    """
    payloads: dict[str, set[bytes]] = defaultdict(set)
    for opened in _counting(judged, "approve"):
        payloads[opened.statement.nonce].add(opened.envelope.payload)
    shared = {nonce for nonce, different in payloads.items() if len(different) > 1}
    repeated = Problem("nonce_repeated", "another statement has the same nonce")
    return [each.also(repeated) if each.opened and each.opened.statement.nonce in shared else each for each in judged]


def _standing_noes(noes: list[Opened], approvals: list[Opened], facts: GateFacts) -> list[Problem]:
    """Report rejections that still apply. Once an approval has been used on the base, a rejection comes too late; only
    revocation is possible then.
    """
    yes = [(facts.person(opened.statement.approver), opened.statement.issued_at) for opened in approvals]
    return [
        Problem("approval_rejected", f"{no.statement.approver} has rejected this text")
        for no in noes
        if not any(who == facts.person(no.statement.approver) and at > no.statement.issued_at for who, at in yes)
        and not (facts.settled and no.statement.issued_at > facts.judged_at)
    ]


def _too_few(judged: list[Judged], persons: set[str], gate: GatePolicy) -> Problem:
    if not judged:
        return Problem(
            "approval_missing", f"needs {counted(gate.threshold, 'approval')} from {' or '.join(gate.roles)}"
        )
    return Problem("threshold_unmet", f"{len(persons)} of {gate.threshold} required people have given a valid approval")


def _judge_tokens(facts: GateFacts, gate: GatePolicy) -> list[tuple[Problem, ...]]:
    """Return why each legacy token of this gate does not count; an empty tuple means that it counts."""
    here = [use for use in facts.legacy_uses if (use.packet, use.gate) == (facts.packet, facts.gate)]
    if not gate.legacy_tokens:
        refused = Problem("legacy_refused", "the policy does not accept a typed name and date as a signature")
        return [(refused,) for _ in here]
    return [judge_token(use, facts.legacy_uses, facts.now) + tuple(_own_token(use, facts, gate)) for use in here]


def _own_token(use: LegacyUse, facts: GateFacts, gate: GatePolicy) -> Iterator[Problem]:
    token = read_token(use.token)
    if isinstance(token, LegacyToken):
        yield from own_work(token.user, facts, gate)


def _voice(opened: Opened) -> Voice:
    statement, key = opened.statement, opened.signature.key
    return Voice(statement.approver, statement.role, opened.envelope.digest, statement.nonce, key.fingerprint)


REVIEW_PAUSE = timedelta(minutes=5)

# A token has local time without its zone; no zone is further from UTC.
_WIDEST_ZONE = timedelta(hours=14)
# People enter the date of the day on which they review.
_LONGEST_LEAD = timedelta(days=1)
_FORM = lazy_pattern(r"([a-z]+)(\d\d)(\d\d)(\d{4})(\d\d)(\d\d)\Z", re.ASCII)


class LegacyToken(Value):
    """A parsed token. `written_at` is the token's local time, read as if it were UTC."""

    user: str
    written_at: datetime


def read_token(token: str) -> LegacyToken | Problem:
    match = _FORM.match(token)
    if match is None:
        return Problem("legacy_malformed", f"{token[:80]!r} is not a lower-case name followed by DDMMYYYYHHMM")
    day, month, year, hour, minute = (int(part) for part in match.groups()[1:])
    try:
        written_at = datetime(year, month, day, hour, minute, tzinfo=UTC)
    except ValueError:
        return Problem("legacy_date_unreal", f"{token[:80]!r} is not a valid date or time")
    return LegacyToken(match.group(1), written_at)


def judge_token(use: LegacyUse, history: tuple[LegacyUse, ...], now: datetime) -> tuple[Problem, ...]:
    """Return every reason why the token does not count, even if the policy accepts tokens."""
    token = read_token(use.token)
    if isinstance(token, Problem):
        return (token,)
    refusals: list[Problem] = []
    lead = use.recorded_at - token.written_at
    if use.recorded_at > now + CLOCK_SKEW or not -_WIDEST_ZONE <= lead <= _WIDEST_ZONE + _LONGEST_LEAD:
        refusals.append(
            Problem(
                "legacy_date_off", f"the time in {use.token[:80]!r} differs from the time when the token was recorded"
            )
        )
    others = {(other.packet, other.gate) for other in history if other.token == use.token} - {(use.packet, use.gate)}
    if others:
        packet, gate = min(others)
        refusals.append(Problem("legacy_reused", f"{use.token[:80]!r} was also used at gate {gate} of {packet}"))
    if use.presented_at is None:
        refusals.append(Problem("legacy_unpresented", "there is no record of when the text was shown for review"))
    elif use.recorded_at - use.presented_at < REVIEW_PAUSE:
        minutes = REVIEW_PAUSE // timedelta(minutes=1)
        refusals.append(
            Problem("legacy_hasty", f"the token was recorded less than {minutes} minutes after the text was shown")
        )
    return tuple(refusals)

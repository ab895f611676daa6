"""Decisions given with real keys: what `approve` and `revoke` do, without the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workpacket.git.repository import find_repository
from workpacket.model.plan import Moment
from workpacket.shell.approvals.decisions import (
    StatementDraft,
    Wish,
    Written,
    draft_decision,
    draft_revocation,
    write_decision,
)
from workpacket.shell.approvals.facts import open_approvals
from workpacket.shell.keys import find_key, sign


def drafted(root: Path, key: Path, now: Moment, packet: str, gate: str, decision: str, **wished: Any) -> StatementDraft:
    with open_approvals(find_repository(root, {}), None, now) as approvals:
        wish = Wish(packet, gate, decision, find_key(str(key)).public, **wished)
        return draft_decision(approvals, wish, now)


def revocation(root: Path, key: Path, now: Moment, envelope: str) -> StatementDraft:
    with open_approvals(find_repository(root, {}), None, now) as approvals:
        return draft_revocation(approvals, envelope, find_key(str(key)).public, now)


def written(root: Path, key: Path, now: Moment, draft: StatementDraft) -> Written:
    with open_approvals(find_repository(root, {}), None, now) as approvals:
        return write_decision(approvals, draft, sign(draft.message, str(key)))


def digest_of(decision: Written) -> str:
    """The digest of the envelope."""
    return decision.envelope.rpartition("/")[2].partition(".")[0]

"""What the approvals say of a gate, as conditions of that gate.

Whether a gate is approved is decided in one place, `approvals.decide`, for signatures and plain tokens alike. Here its
verdict becomes what every gate answers with: unmet conditions, each with the command that supplies it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Final

from workpacket.lifecycle.policy import POLICY_PATH
from workpacket.lifecycle.unmet import Unmet

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Only its shape is needed here, and what judges signatures is loaded by whoever asks for a verdict.
    from workpacket.approvals.decide import Verdict

ACTIVATION_GATE: Final = "activation"
VERDICT_GATE: Final = "verdict"
ANCHORING: Final = "git add .GOV/policy && git commit -m 'Anchor the policy'"

_APPROVING: Final = "workpacket approve {packet} --gate {gate}"
# What supplies a condition, where it is not one more approval.
_COMMANDS: Final[Mapping[str, str]] = {
    "policy_unanchored": ANCHORING,
    "approvers_unnamed": "workpacket policy trust",
    "policy_malformed": "workpacket policy test",
    "signers_malformed": "edit .GOV/policy/allowed_signers",
    "revoked_keys_malformed": "edit .GOV/policy/revoked_keys",
    "gate_without_policy": "edit .GOV/policy/policy.toml: [approvals.gates.{gate}], then: "
    "workpacket approve policy --gate policy",
    "policy_rolled_back": "workpacket approvals verify",
    "trust_file_malformed": "workpacket approvals verify",
    "trust_file_foreign": "workpacket approvals verify",
    "approval_rejected": "workpacket approvals list {packet}",
    "legacy_unpresented": "workpacket refine {packet} --present",
}


def approval_unmet(verdict: Verdict, packet: str, terms: Mapping[str, str] | None = None) -> Iterator[Unmet]:
    """Everything that stands between the approvals and the gate; nothing if it is approved."""
    approve = " ".join([_APPROVING, *(f"--{name} {shlex.quote(text)}" for name, text in (terms or {}).items() if text)])
    for refusal in verdict.unmet:
        command = _COMMANDS.get(refusal.code, approve)
        if refusal.code.startswith("log_"):
            command = "workpacket log verify {packet}"
        supplies = command.replace("{packet}", packet).replace("{gate}", verdict.gate)
        yield Unmet(refusal.code, refusal.message, supplies, _place(refusal.path), refusal.line)


def satisfying(verdict: Verdict) -> tuple[str, ...]:
    """The envelopes that an event names which passes this gate."""
    return tuple(sorted({voice.envelope for voice in verdict.voices}))


def _place(path: str) -> str:
    if path == "policy.toml":
        return POLICY_PATH
    return f".GOV/attestations/{path}" if path.endswith(".dsse.json") and "/" not in path else path

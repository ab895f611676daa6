"""Reasons about the policy files, the memory of them, and the old tokens that a policy may accept."""

from __future__ import annotations

from workpacket.model.reason_tables.approval import gate, tampered
from workpacket.model.reasons import Reason

_REPAIR_POLICY = "Repair the file on the base revision; `workpacket policy test` shows what is read from it."
_APPROVE = "Have the packet approved by `workpacket approve`."

POLICY: tuple[Reason, ...] = (
    gate(
        "policy_unanchored",
        "Base revision without a policy",
        "Who may approve is read from the base revision only. Until a policy is there, no gate can be passed.",
        "Commit `.GOV/policy/` (`workpacket init` writes it) on the main branch: the first such commit is the anchor.",
    ),
    gate(
        "policy_malformed",
        "Policy that cannot be read",
        "A rule that is not understood would not be applied, so no gate is passed under a policy with a fault.",
        _REPAIR_POLICY,
    ),
    gate(
        "approvers_unnamed",
        "Policy that names nobody who may approve",
        "Who has a say at which gate is written down in the table [approvals], and nobody has one without it.",
        "`workpacket policy trust` adds the table and your key; commit both to the main branch.",
    ),
    gate(
        "signers_malformed",
        "Line of allowed_signers outside the accepted form",
        "One literal person, namespaces, optional dates in UTC, one key. A list read by half is not the list approved.",
        _REPAIR_POLICY,
    ),
    gate(
        "principal_pattern",
        "Pattern instead of a person in allowed_signers",
        "With a pattern, one key speaks for many persons, and a threshold counts nothing.",
        "Write one line for each person, with the name in full.",
    ),
    gate(
        "principal_ambiguous",
        "Person spelled in two ways in allowed_signers",
        "Two spellings would count as two persons at a threshold.",
        "Use one spelling on all lines of the person, and in the roles of the policy.",
    ),
    gate(
        "key_shared",
        "Key on two lines of allowed_signers",
        "A key that two persons share proves neither of them.",
        "Leave the key with one person; make another with `workpacket key init`.",
    ),
    gate(
        "revoked_keys_malformed",
        "Line of revoked_keys that is not a public key",
        "A revocation that cannot be read would not be applied.",
        "List public keys, one a line as in a `.pub` file; binary lists are not read.",
    ),
    gate(
        "gate_without_policy",
        "Gate that the policy does not know",
        "A human gate without a rule for it stays shut.",
        "Add `[approvals.gates.<gate>]` to `.GOV/policy/policy.toml` by an approved change of the policy.",
    ),
    tampered(
        "policy_rolled_back",
        "Base with another policy than the one last seen here",
        "The base lacks the commit at which this machine last saw the policy, and holds a different policy: "
        "an older one may have been brought back together with a key that was removed.",
        "Fetch the base again. If its history was rewritten on purpose, compare policies and remove the trust file.",
    ),
    tampered(
        "trust_file_foreign",
        "Trust file of another repository",
        "The memory of the policy last seen belongs to a repository with another root commit.",
        "Give each repository a trust file of its own.",
    ),
    tampered(
        "trust_file_malformed",
        "Trust file that cannot be read",
        "Without it a policy that was rolled back would not be noticed.",
        "Restore the file, or remove it after comparing the base's policy with one you trust.",
    ),
)

LEGACY: tuple[Reason, ...] = (
    gate(
        "legacy_refused",
        "Name and date in place of a signature",
        "Anyone can type it, it binds no text, and it can be used again.",
        _APPROVE,
    ),
    gate(
        "legacy_malformed",
        "Token that is not a name and a date",
        "The old form is a lower-case name followed by DDMMYYYYHHMM.",
        _APPROVE,
    ),
    gate(
        "legacy_date_unreal",
        "Token with a date that does not exist",
        "A date that no calendar has was not typed by somebody looking at one.",
        _APPROVE,
    ),
    gate(
        "legacy_date_off",
        "Token recorded at another time than it names",
        "Date and record disagree by more than time zones explain.",
        _APPROVE,
    ),
    gate(
        "legacy_reused",
        "Token used more than once",
        "One token stands for one decision over the whole history.",
        _APPROVE,
    ),
    gate(
        "legacy_unpresented",
        "Token for a text that was never presented",
        "It is not on record when the text was shown, so nobody can be shown to have read it.",
        "Present the refinement (`workpacket refine --present`), then have it approved.",
    ),
    gate(
        "legacy_hasty",
        "Token that came too soon after the text",
        "There was no time to read between presenting the text and recording the token.",
        _APPROVE,
    ),
)

REASONS: tuple[Reason, ...] = (*POLICY, *LEGACY)

"""Reasons of the family `approval`: why a signature, a statement or a policy does not carry a gate."""

from __future__ import annotations

from workpacket.model import exits
from workpacket.model.reasons import Reason


def _gate(code: str, title: str, explanation: str, remedy: str) -> Reason:
    return Reason(code, title, explanation, remedy, "approval", exit_code=exits.REFUSED)


def _tampered(code: str, title: str, explanation: str, remedy: str) -> Reason:
    return Reason(code, title, explanation, remedy, "approval", exit_code=exits.INTEGRITY)


_APPROVE_ANEW = "Have the approver run `workpacket approve` again."
_REPAIR_POLICY = "Repair the file on the base revision; `workpacket policy test` shows what is read from it."
_RESTORE_FILE = "Restore the file from the base revision with `git checkout`; approvals are never edited."

ENVELOPE: tuple[Reason, ...] = (
    _tampered(
        "envelope_renamed",
        "Approval file whose name is not the digest of its bytes",
        "The name of an approval file is the SHA-256 of its content, so that an edit cannot go unnoticed.",
        _RESTORE_FILE,
    ),
    _tampered(
        "envelope_malformed",
        "Approval file that is not a DSSE envelope",
        "Only the closed form payload, payloadType, signatures is read; whatever else is in the file was not signed.",
        _RESTORE_FILE,
    ),
    _tampered(
        "envelope_not_canonical",
        "Approval file in another spelling than the canonical one",
        "One approval is one file. Other spellings would let the same approval appear under many names.",
        _RESTORE_FILE,
    ),
    _tampered(
        "json_refused",
        "JSON that readers would not all understand alike",
        "Inexact numbers, deep nesting, and bytes that are not UTF-8 mean different things to different readers.",
        _RESTORE_FILE,
    ),
    _tampered(
        "json_duplicate_key",
        "JSON object with a key twice",
        "One reader takes the first value and another the last, so two programs would see different approvals.",
        _RESTORE_FILE,
    ),
    _tampered(
        "payload_type_wrong",
        "Envelope with another payload type",
        "The type is part of what is signed; under another type the same bytes could mean something else.",
        _RESTORE_FILE,
    ),
    _tampered(
        "signature_missing",
        "Envelope without a signature",
        "An unsigned statement is a claim that anyone can write.",
        _APPROVE_ANEW,
    ),
    _tampered(
        "signature_surplus",
        "Envelope with more than one signature",
        "A statement names one approver. Further persons sign statements of their own.",
        "Have each approver run `workpacket approve`; one file each.",
    ),
    _tampered(
        "statement_malformed",
        "Signed statement that is not an approval",
        "The statement lacks a field, has one that is not known, or holds a value of the wrong form.",
        _APPROVE_ANEW,
    ),
    _tampered(
        "statement_not_canonical",
        "Signed statement in another spelling than the canonical one",
        "One statement is one sequence of bytes; others are refused so that nobody can hide a difference in them.",
        _APPROVE_ANEW,
    ),
)

SIGNATURE: tuple[Reason, ...] = (
    _tampered(
        "sshsig_malformed",
        "Signature that is not a well-formed SSH signature",
        "Lengths, numbers and the version have one permitted form; leniency here is where forgeries begin.",
        "Sign again with `ssh-keygen -Y sign`, best by `workpacket approve`.",
    ),
    _gate(
        "namespace_wrong",
        "Signature made for another purpose",
        "The namespace keeps a signature on a commit, a file or a mail from being passed off as an approval.",
        "Sign with `-n workpacket-approval@v1`, best by `workpacket approve`.",
    ),
    _gate(
        "hash_forbidden",
        "Message hashed with a weak or unknown algorithm",
        "Only SHA-256 and SHA-512 are accepted under a signature.",
        "Sign again with a current `ssh-keygen`.",
    ),
    _gate(
        "algorithm_forbidden",
        "Signature algorithm that is not accepted for this key",
        "An RSA key must sign with SHA-2; SHA-1 can be forged by a collision. Other keys have one algorithm each.",
        "Sign again with a current `ssh-keygen`.",
    ),
    _tampered(
        "signature_invalid",
        "Signature that is not over these bytes",
        "The statement or the signature was changed after signing, or the key is not the one that signed.",
        _RESTORE_FILE,
    ),
    _tampered(
        "key_id_wrong",
        "Envelope that names another key than the one that signed",
        "The key id is only a hint, but a wrong one misleads whoever reads the file.",
        _RESTORE_FILE,
    ),
    _gate(
        "key_malformed",
        "Public key that is not well formed",
        "A key is read in its only form, so that one key cannot pass for two.",
        "Copy the line from the person's `.pub` file.",
    ),
    _gate(
        "key_kind_unsupported",
        "Kind of key that cannot approve",
        "Accepted are ed25519, ECDSA on NIST curves, RSA from 3072 bits, and FIDO keys. Certificates and DSA are not.",
        "Make a key with `workpacket key init`.",
    ),
    _gate(
        "key_weak",
        "Key that is too weak",
        "A short RSA key, or a point of small order, can be signed for by somebody else.",
        "Make a key with `workpacket key init` and have it entered in `.GOV/policy/allowed_signers`.",
    ),
    _gate(
        "touch_missing",
        "Token that signed without being touched",
        "Without the touch a program can have the token sign unseen. `ssh-keygen` does not check this.",
        "Make the FIDO key without `-O no-touch-required`, and approve again.",
    ),
    _gate(
        "pin_missing",
        "Token that signed without asking for PIN or fingerprint",
        "The gate asks that the token itself has recognised its owner.",
        "Make a FIDO key with `-O verify-required`, and approve again.",
    ),
    _gate(
        "hardware_required",
        "Key in a file at a gate that asks for a token",
        "A key file can be copied by whatever runs under the person's account; a token has to be touched.",
        "Approve with a FIDO key (`ssh-keygen -t ed25519-sk`).",
    ),
    _gate(
        "fido_application_wrong",
        "Token key that belongs to another application",
        "The key was made for a web site or another program, which could obtain signatures for its own ends.",
        "Make the FIDO key with `ssh-keygen`, whose keys belong to 'ssh:'.",
    ),
)

SIGNER: tuple[Reason, ...] = (
    _gate(
        "signer_unknown",
        "Key that no line of allowed_signers holds",
        "Only keys that the base revision names can approve; an agent's own key is not among them.",
        "Have the key entered in `.GOV/policy/allowed_signers` by an approved change of the policy.",
    ),
    _gate(
        "key_not_for_approvals",
        "Key that may sign, but not approvals",
        "The line of the key lists the namespaces it is trusted for, and ours is not among them.",
        'Add `workpacket-approval@v1` to namespaces="..." of the line, by an approved change of the policy.',
    ),
    _gate(
        "approver_mismatch",
        "Statement in another person's name",
        "The approver that the statement names must be the principal of the key that signed it.",
        "Let the named person sign, or sign in your own name.",
    ),
    _gate(
        "key_revoked",
        "Revoked key",
        "Nothing that a revoked key has signed is believed, whenever it was signed.",
        "Approve again with a key that is not in `.GOV/policy/revoked_keys`.",
    ),
    _gate(
        "key_out_of_time",
        "Key outside its period of validity",
        "The line of the key in allowed_signers says from when and until when it may sign.",
        "Approve with a valid key, or have valid-before extended by an approved change of the policy.",
    ),
    _gate(
        "role_not_accepted",
        "Role that this gate does not ask for",
        "Each gate names the roles whose yes counts.",
        "Let a person with one of the gate's roles approve; `workpacket policy show` lists them.",
    ),
    _gate(
        "role_not_held",
        "Role that the approver does not hold",
        "A statement may claim any role; the policy of the base says who holds it.",
        "Let a person who holds the role approve; `workpacket policy show` lists them.",
    ),
    _gate(
        "own_work",
        "Approval of one's own work",
        "The gate asks for a second pair of eyes: the author may not approve, the coder may not validate.",
        "Let another person approve.",
    ),
    _gate(
        "party_unknown",
        "Nobody recorded from whom the approver must differ",
        "Without knowing the author or coder, it cannot be shown that the approver is somebody else.",
        "Record the party in the packet's documents, then judge again.",
    ),
)

FIT: tuple[Reason, ...] = (
    _gate(
        "packet_mismatch",
        "Approval of another packet",
        "A yes to one packet is not a yes to another.",
        _APPROVE_ANEW,
    ),
    _gate(
        "gate_mismatch",
        "Approval for another gate",
        "A yes to begin is not a yes to the result.",
        _APPROVE_ANEW,
    ),
    _gate(
        "repository_mismatch",
        "Approval from another repository",
        "Forks and copies hold the same packets; a yes given there was not given here.",
        _APPROVE_ANEW,
    ),
    _gate(
        "subject_mismatch",
        "Text that is not the one approved",
        "The approval covers the very bytes of the file. One byte more, and it was not what the person read.",
        "Restore the approved text, or have the new text approved: `workpacket approve` shows the difference.",
    ),
    _gate(
        "spec_moved",
        "Specification that has changed since the approval",
        "The person judged the work against another version of the specification, or another place in it.",
        "Check the packet against the specification in force, then have it approved again.",
    ),
    _gate(
        "policy_moved",
        "Policy that has changed since the approval",
        "The approval was given under other rules than those at the base.",
        _APPROVE_ANEW,
    ),
    _gate(
        "scope_moved",
        "Paths in scope that were not approved",
        "The approval covers work on named paths; a wider scope is another decision.",
        "Restore the approved scope, or have the new one approved.",
    ),
    _gate(
        "base_unknown",
        "Approval that saw a base this repository does not have",
        "The commit that the approver saw is not part of the base's history: another branch, or a history rewritten.",
        "In a shallow clone run `git fetch --unshallow`; otherwise have the packet approved again.",
    ),
    _gate(
        "log_head_unknown",
        "Approval that saw events this log does not have",
        "The approver saw another history of the packet than the one presented.",
        "Restore the packet's log from the base (`workpacket log verify --base`), or have it approved again.",
    ),
    _gate(
        "log_moved",
        "Packet that changed its lane behind the approver's back",
        "A move that the approver did not see may be the reason why the answer would have been no.",
        _APPROVE_ANEW,
    ),
)

TIME: tuple[Reason, ...] = (
    _gate(
        "issued_in_future",
        "Approval dated in the future",
        "An approval from tomorrow was made by a wrong clock or to outlive its time.",
        "Set the clock of the approver's machine, and approve again.",
    ),
    _gate(
        "approval_expired",
        "Approval that was not used in time",
        "An approval must be used before it expires; once used, it stays good.",
        _APPROVE_ANEW,
    ),
    _gate(
        "approval_too_old",
        "Approval older than the gate accepts",
        "The gate sets a maximum age, however long the approval says it is valid.",
        _APPROVE_ANEW,
    ),
    _gate(
        "validity_too_long",
        "Approval valid for longer than 30 days",
        "A yes for ten years is a blank cheque.",
        _APPROVE_ANEW,
    ),
    _gate(
        "nonce_used",
        "Approval that was already used",
        "An approval is for one event. Used twice, it would say yes to something nobody asked about.",
        _APPROVE_ANEW,
    ),
    _gate(
        "nonce_repeated",
        "Two different statements with one nonce",
        "A nonce is made for one statement; two with the same are a mistake of the signing tool, or a trick.",
        _APPROVE_ANEW,
    ),
)

COUNT: tuple[Reason, ...] = (
    _gate(
        "approval_missing",
        "No approval at all",
        "The gate is human: it opens for a signature and nothing else.",
        "Ask a person with one of the gate's roles to run `workpacket approve`.",
    ),
    _gate(
        "threshold_unmet",
        "Too few persons whose approval counts",
        "The gate asks for several persons. Several keys or several files of one person are one voice.",
        "Ask further persons with one of the gate's roles to run `workpacket approve`.",
    ),
    _gate(
        "approval_rejected",
        "Person with a say who said no",
        "A no to this text stands until the same person says yes to it, revokes the no, or the text changes.",
        "Read the reason, change the text, and have it approved again.",
    ),
    _gate(
        "approval_revoked",
        "Approval that was taken back",
        "A revocation holds for ever, also for approvals that were used before.",
        _APPROVE_ANEW,
    ),
)

POLICY: tuple[Reason, ...] = (
    _gate(
        "policy_unanchored",
        "Base revision without a policy",
        "Who may approve is read from the base revision only. Until a policy is there, no gate can be passed.",
        "Commit `.GOV/policy/` (`workpacket init` writes it) on the main branch: the first such commit is the anchor.",
    ),
    _gate(
        "policy_malformed",
        "Policy that cannot be read",
        "A rule that is not understood would not be applied, so no gate is passed under a policy with a fault.",
        _REPAIR_POLICY,
    ),
    _gate(
        "signers_malformed",
        "Line of allowed_signers outside the accepted form",
        "One literal person, namespaces, optional dates in UTC, one key. A list read by half is not the list approved.",
        _REPAIR_POLICY,
    ),
    _gate(
        "principal_pattern",
        "Pattern instead of a person in allowed_signers",
        "With a pattern, one key speaks for many persons, and a threshold counts nothing.",
        "Write one line for each person, with the name in full.",
    ),
    _gate(
        "principal_ambiguous",
        "Person spelled in two ways in allowed_signers",
        "Two spellings would count as two persons at a threshold.",
        "Use one spelling on all lines of the person, and in the roles of the policy.",
    ),
    _gate(
        "key_shared",
        "Key on two lines of allowed_signers",
        "A key that two persons share proves neither of them.",
        "Leave the key with one person; make another with `workpacket key init`.",
    ),
    _gate(
        "revoked_keys_malformed",
        "Line of revoked_keys that is not a public key",
        "A revocation that cannot be read would not be applied.",
        "List public keys, one a line as in a `.pub` file; binary lists are not read.",
    ),
    _gate(
        "gate_without_policy",
        "Gate that the policy does not know",
        "A human gate without a rule for it stays shut.",
        "Add `[approvals.gates.<gate>]` to `.GOV/policy/policy.toml` by an approved change of the policy.",
    ),
    _tampered(
        "policy_rolled_back",
        "Base with another policy than the one last seen here",
        "The base lacks the commit at which this machine last saw the policy, and holds a different policy: "
        "an older one may have been brought back together with a key that was removed.",
        "Fetch the base again. If its history was rewritten on purpose, compare policies and remove the trust file.",
    ),
    _tampered(
        "trust_file_foreign",
        "Trust file of another repository",
        "The memory of the policy last seen belongs to a repository with another root commit.",
        "Give each repository a trust file of its own.",
    ),
    _tampered(
        "trust_file_malformed",
        "Trust file that cannot be read",
        "Without it a policy that was rolled back would not be noticed.",
        "Restore the file, or remove it after comparing the base's policy with one you trust.",
    ),
)

LEGACY: tuple[Reason, ...] = (
    _gate(
        "legacy_refused",
        "Name and date in place of a signature",
        "Anyone can type it, it binds no text, and it can be used again.",
        "Have the packet approved by `workpacket approve`.",
    ),
    _gate(
        "legacy_malformed",
        "Token that is not a name and a date",
        "The old form is a lower-case name followed by DDMMYYYYHHMM.",
        "Have the packet approved by `workpacket approve`.",
    ),
    _gate(
        "legacy_date_unreal",
        "Token with a date that does not exist",
        "A date that no calendar has was not typed by somebody looking at one.",
        "Have the packet approved by `workpacket approve`.",
    ),
    _gate(
        "legacy_date_off",
        "Token recorded at another time than it names",
        "Date and record disagree by more than time zones explain.",
        "Have the packet approved by `workpacket approve`.",
    ),
    _gate(
        "legacy_reused",
        "Token used more than once",
        "One token stands for one decision over the whole history.",
        "Have the packet approved by `workpacket approve`.",
    ),
    _gate(
        "legacy_unpresented",
        "Token for a text that was never presented",
        "It is not on record when the text was shown, so nobody can be shown to have read it.",
        "Present the refinement (`workpacket refine --present`), then have it approved.",
    ),
    _gate(
        "legacy_hasty",
        "Token that came too soon after the text",
        "There was no time to read between presenting the text and recording the token.",
        "Have the packet approved by `workpacket approve`.",
    ),
)

REASONS: tuple[Reason, ...] = (
    *ENVELOPE,
    *SIGNATURE,
    *SIGNER,
    *FIT,
    *TIME,
    *COUNT,
    *POLICY,
    *LEGACY,
)

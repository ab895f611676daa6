"""Reasons about the envelope, the signature in it, and the person who signed."""

from __future__ import annotations

from workpacket.model.reason_tables.approval import APPROVE_ANEW, gate, tampered
from workpacket.model.reasons import Reason

_RESTORE_FILE = "Restore the file from the base revision with `git checkout`; approvals are never edited."

ENVELOPE: tuple[Reason, ...] = (
    tampered(
        "envelope_renamed",
        "Approval file whose name is not the digest of its bytes",
        "The name of an approval file is the SHA-256 of its content, so that an edit cannot go unnoticed.",
        _RESTORE_FILE,
    ),
    tampered(
        "envelope_malformed",
        "Approval file that is not a DSSE envelope",
        "Only the closed form payload, payloadType, signatures is read; whatever else is in the file was not signed.",
        _RESTORE_FILE,
    ),
    tampered(
        "envelope_not_canonical",
        "Approval file in another spelling than the canonical one",
        "One approval is one file. Other spellings would let the same approval appear under many names.",
        _RESTORE_FILE,
    ),
    tampered(
        "approval_not_json",
        "Approval in JSON that readers would not all understand alike",
        "Inexact numbers, deep nesting, and bytes that are not UTF-8 mean different things to different readers.",
        _RESTORE_FILE,
    ),
    tampered(
        "approval_duplicate_key",
        "Approval with a key that stands twice",
        "One reader takes the first value and another the last, so two programs would see different approvals.",
        _RESTORE_FILE,
    ),
    tampered(
        "payload_type_wrong",
        "Envelope with another payload type",
        "The type is part of what is signed; under another type the same bytes could mean something else.",
        _RESTORE_FILE,
    ),
    tampered(
        "signature_missing",
        "Envelope without a signature",
        "An unsigned statement is a claim that anyone can write.",
        APPROVE_ANEW,
    ),
    tampered(
        "signature_surplus",
        "Envelope with more than one signature",
        "A statement names one approver. Further persons sign statements of their own.",
        "Have each approver run `workpacket approve`; one file each.",
    ),
    tampered(
        "statement_malformed",
        "Signed statement that is not an approval",
        "The statement lacks a field, has one that is not known, or holds a value of the wrong form.",
        APPROVE_ANEW,
    ),
    tampered(
        "statement_not_canonical",
        "Signed statement in another spelling than the canonical one",
        "One statement is one sequence of bytes; others are refused so that nobody can hide a difference in them.",
        APPROVE_ANEW,
    ),
)

SIGNATURE: tuple[Reason, ...] = (
    tampered(
        "sshsig_malformed",
        "Signature that is not a well-formed SSH signature",
        "Lengths, numbers and the version have one permitted form; leniency here is where forgeries begin.",
        "Sign again with `ssh-keygen -Y sign`, best by `workpacket approve`.",
    ),
    gate(
        "namespace_wrong",
        "Signature made for another purpose",
        "The namespace keeps a signature on a commit, a file or a mail from being passed off as an approval.",
        "Sign with `-n workpacket-approval@v1`, best by `workpacket approve`.",
    ),
    gate(
        "hash_forbidden",
        "Message hashed with a weak or unknown algorithm",
        "Only SHA-256 and SHA-512 are accepted under a signature.",
        "Sign again with a current `ssh-keygen`.",
    ),
    gate(
        "algorithm_forbidden",
        "Signature algorithm that is not accepted for this key",
        "An RSA key must sign with SHA-2; SHA-1 can be forged by a collision. Other keys have one algorithm each.",
        "Sign again with a current `ssh-keygen`.",
    ),
    tampered(
        "signature_invalid",
        "Signature that is not over these bytes",
        "The statement or the signature was changed after signing, or the key is not the one that signed.",
        _RESTORE_FILE,
    ),
    tampered(
        "key_id_wrong",
        "Envelope that names another key than the one that signed",
        "The key id is only a hint, but a wrong one misleads whoever reads the file.",
        _RESTORE_FILE,
    ),
    gate(
        "key_malformed",
        "Public key that is not well formed",
        "A key is read in its only form, so that one key cannot pass for two.",
        "Copy the line from the person's `.pub` file.",
    ),
    gate(
        "key_kind_unsupported",
        "Kind of key that cannot approve",
        "Accepted are ed25519, ECDSA on NIST curves, RSA from 3072 bits, and FIDO keys. Certificates and DSA are not.",
        "Make a key with `workpacket key init`.",
    ),
    gate(
        "key_weak",
        "Key that is too weak",
        "A short RSA key, or a point of small order, can be signed for by somebody else.",
        "Make a key with `workpacket key init` and have it entered in `.GOV/policy/allowed_signers`.",
    ),
    gate(
        "touch_missing",
        "Token that signed without being touched",
        "Without the touch a program can have the token sign unseen. `ssh-keygen` does not check this.",
        "Make the FIDO key without `-O no-touch-required`, and approve again.",
    ),
    gate(
        "pin_missing",
        "Token that signed without asking for PIN or fingerprint",
        "The gate asks that the token itself has recognised its owner.",
        "Make a FIDO key with `-O verify-required`, and approve again.",
    ),
    gate(
        "hardware_required",
        "Key in a file at a gate that asks for a token",
        "A key file can be copied by whatever runs under the person's account; a token has to be touched.",
        "Approve with a FIDO key (`ssh-keygen -t ed25519-sk`).",
    ),
    gate(
        "fido_application_wrong",
        "Token key that belongs to another application",
        "The key was made for a web site or another program, which could obtain signatures for its own ends.",
        "Make the FIDO key with `ssh-keygen`, whose keys belong to 'ssh:'.",
    ),
)

SIGNER: tuple[Reason, ...] = (
    gate(
        "signer_unknown",
        "Key that no line of allowed_signers holds",
        "Only keys that the base revision names can approve; an agent's own key is not among them.",
        "Have the key entered in `.GOV/policy/allowed_signers` by an approved change of the policy.",
    ),
    gate(
        "key_not_for_approvals",
        "Key that may sign, but not approvals",
        "The line of the key lists the namespaces it is trusted for, and ours is not among them.",
        'Add `workpacket-approval@v1` to namespaces="..." of the line, by an approved change of the policy.',
    ),
    gate(
        "approver_mismatch",
        "Statement in another person's name",
        "The approver that the statement names must be the principal of the key that signed it.",
        "Let the named person sign, or sign in your own name.",
    ),
    gate(
        "key_revoked",
        "Revoked key",
        "Nothing that a revoked key has signed is believed, whenever it was signed.",
        "Approve again with a key that is not in `.GOV/policy/revoked_keys`.",
    ),
    gate(
        "key_out_of_time",
        "Key outside its period of validity",
        "The line of the key in allowed_signers says from when and until when it may sign.",
        "Approve with a valid key, or have valid-before extended by an approved change of the policy.",
    ),
    gate(
        "role_not_accepted",
        "Role that this gate does not ask for",
        "Each gate names the roles whose yes counts.",
        "Let a person with one of the gate's roles approve; `workpacket policy show` lists them.",
    ),
    gate(
        "role_not_held",
        "Role that the approver does not hold",
        "A statement may claim any role; the policy of the base says who holds it.",
        "Let a person who holds the role approve; `workpacket policy show` lists them.",
    ),
    gate(
        "own_work",
        "Approval of one's own work",
        "The gate asks for a second pair of eyes: the author may not approve, the coder may not validate.",
        "Let another person approve.",
    ),
    gate(
        "party_unknown",
        "Nobody recorded from whom the approver must differ",
        "Without knowing the author or coder, it cannot be shown that the approver is somebody else.",
        "Record the party in the packet's documents, then judge again.",
    ),
)

REASONS: tuple[Reason, ...] = (*ENVELOPE, *SIGNATURE, *SIGNER)

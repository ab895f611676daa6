"""Why an approval does not count: its file, its signature, the policy that judges it, or its gate."""

from __future__ import annotations

from functools import partial

from workpacket.model import exits
from workpacket.model.reasons import reasons

_refused = partial(reasons, "approval")
_forged = partial(reasons, "approval", exit_code=exits.INTEGRITY)
_conflict = partial(reasons, "conflict")
_usage = partial(reasons, "usage")
_environment = partial(reasons, "environment")
_finding = partial(reasons, "approval", exit_code=exits.FINDINGS)

APPROVE_ANEW = "Have the approver run `workpacket approve` again."
_REPAIR_POLICY = "Fix the file on the base revision; `workpacket policy test` shows what is wrong."
_APPROVE = "Have the packet approved with `workpacket approve`."
_APPROVE_AND_REPLACE = (
    "Have it approved again with `workpacket approve`. If an event already uses the old approval, then run "
    "`workpacket packet reapprove WP_ID`, which records the new approvals for that event."
)
_RESTORE_FILE = "Restore the file from the base revision with `git checkout`; approvals are never edited."

FIT = _refused(f"""
    packet_mismatch: Approval of a different packet
        Approving one packet does not approve another packet.
        Remedy: {APPROVE_ANEW}

    gate_mismatch: Approval for a different gate
        Approving the start of the work does not approve its result.
        Remedy: {APPROVE_ANEW}

    repository_mismatch: Approval from a different repository
        Forks and copies contain the same packets, but an approval given in one does not apply to another.
        Remedy: {APPROVE_ANEW}

    subject_mismatch: Text differs from the approved text
        The approval covers the exact bytes of the file. If a single byte differs, the person read a different text.
        Remedy: Restore the approved text, or have the new text approved: `workpacket approve` shows the difference.

    approved_spec_moved: Specification changed since the approval
        The person judged the work against a different version of the specification, or against a different passage in
        it.
        Remedy: Check the packet against the current specification. {_APPROVE_AND_REPLACE}

    contract_mismatch: Approval of a different contract
        The person approved a different contract (what, why, criteria, scope, risk, dependencies, required evidence).
        Remedy: Restore the approved contract, or have the new one approved; `workpacket packet contract WP` shows it.

    contract_unreadable: Packet without a valid contract
        A part of the contract is missing, appears twice, or is ambiguous, so it is unclear what would be approved.
        Remedy: Fix the part that the message names; docs/approvals/contract.md says where each part belongs.

    statement_outdated: Approval that covers only the refinement
        The approval was given before approvals covered the contract. Events on the base that used it remain valid, but
        no new event can use it.
        Remedy: {APPROVE_ANEW}

    policy_moved: Policy changed since the approval
        The approval was given under different rules from those on the base, and has not been merged yet. Packets that
        were merged before the policy changed are not affected.
        Remedy: {_APPROVE_AND_REPLACE}

    scope_moved: Paths in scope that were not approved
        The approval covers work on the listed paths; a wider scope requires a new decision.
        Remedy: Restore the approved scope, or have the new one approved.

    base_unknown: Approval that refers to an unknown base
        The commit that the approver saw is not in the base's history: it is on another branch, or the history was
        rewritten.
        Remedy: In a shallow clone, run `git fetch --unshallow`; otherwise have the packet approved again.

    log_head_unknown: Approval that refers to unknown events
        The approver saw a different history of the packet.
        Remedy: Restore the packet's log from the base (`workpacket log verify --base`), or have the packet approved
        again.

    log_moved: Packet moved after the approver last saw it
        The approver might have refused if they had seen the later move.
        Remedy: {APPROVE_ANEW}
    """)

TIME = _refused(f"""
    issued_in_future: Approval dated in the future
        The approver's clock was wrong, or the approval was meant to remain valid for longer than allowed.
        Remedy: Correct the clock on the approver's machine, then approve again.

    approval_expired: Approval not used in time
        An approval must be used, and the event that uses it merged, before the approval expires; after that, the
        approval remains valid.
        Remedy: {_APPROVE_AND_REPLACE}

    approval_too_old: Approval older than the gate accepts
        The gate sets a maximum age, regardless of the validity stated in the approval.
        Remedy: {_APPROVE_AND_REPLACE}

    validity_too_long: Approval valid for more than 30 days
        An approval that remains valid for years would be a blank check.
        Remedy: {APPROVE_ANEW}

    nonce_used: Approval already used
        An approval is for one event. If it were used twice, it would approve something that the person never saw.
        Remedy: {APPROVE_ANEW}

    nonce_repeated: Two different statements with the same nonce
        Every statement has its own nonce; a duplicate indicates a bug in the signing tool, or an attack.
        Remedy: {APPROVE_ANEW}
    """)

COUNT = _refused(f"""
    approval_missing: No approval
        Only a person's signature opens this gate.
        Remedy: Ask a person with one of the gate's roles to run `workpacket approve`.

    threshold_unmet: Too few valid approvals
        The gate requires several people. Several keys or files from one person count only once.
        Remedy: Ask more people with one of the gate's roles to run `workpacket approve`.

    approval_rejected: Rejected by an approver
        A rejection of this text applies until the person who rejected the text approves it or revokes the rejection, or
        until the text changes.
        Remedy: Read the reason, change the text, and have it approved again.

    approval_revoked: Revoked approval
        A revocation is permanent and also applies to approvals that have already been used.
        Remedy: {_APPROVE_AND_REPLACE}
    """)

ENVELOPE = _forged(f"""
    envelope_renamed: Approval file with a name that is not the digest of its content
        The name of an approval file is the SHA-256 digest of its content, so that edits are detected.
        Remedy: {_RESTORE_FILE}

    envelope_malformed: Approval file that is not a DSSE envelope
        The file may contain only payload, payloadType and signatures; the signature covers nothing else.
        Remedy: {_RESTORE_FILE}

    envelope_not_canonical: Approval file that is not in canonical form
        Each approval is exactly one file. If other forms were allowed, the same approval could appear under many names.
        Remedy: {_RESTORE_FILE}

    approval_not_json: Approval in JSON that parsers may interpret differently
        Parsers disagree about inexact numbers, deep nesting, and bytes that are not UTF-8.
        Remedy: {_RESTORE_FILE}

    approval_duplicate_key: Approval with a duplicate JSON key
        Some parsers use the first value and others the last, so two programs would see different approvals.
        Remedy: {_RESTORE_FILE}

    payload_type_wrong: Envelope with the wrong payload type
        The signature covers the type; under a different type, the same bytes could mean something else.
        Remedy: {_RESTORE_FILE}

    signature_missing: Envelope without a signature
        Anyone can write an unsigned statement.
        Remedy: {APPROVE_ANEW}

    signature_surplus: Envelope with more than one signature
        A statement has one approver. Other approvers sign their own statements.
        Remedy: Have each approver run `workpacket approve`, which writes a separate file.

    statement_malformed: Signed statement that is not an approval
        The statement has a missing field, an unknown field, or an invalid value.
        Remedy: {APPROVE_ANEW}

    statement_not_canonical: Signed statement that is not in canonical form
        A statement has only one permitted encoding, so that nothing can be hidden in a different encoding.
        Remedy: {APPROVE_ANEW}
    """)

SIGNATURE = (
    *_forged(f"""
    sshsig_malformed: Invalid SSH signature
        Lengths, numbers and the version each have only one permitted form, because lenient parsing would allow forged
        signatures.
        Remedy: Sign again, preferably with `workpacket approve`, otherwise with `ssh-keygen -Y sign`.

    signature_invalid: Signature that does not match the signed bytes
        The statement or the signature was changed after signing, or was made with a different key.
        Remedy: {_RESTORE_FILE}

    key_id_wrong: Envelope with a key id that does not match the signing key
        The key id is only a hint, but a wrong one misleads anyone who reads the file.
        Remedy: {_RESTORE_FILE}
    """),
    *_refused("""
    namespace_wrong: Signature made for a different purpose
        The namespace ensures that a signature on a commit, a file or an email cannot pass for an approval.
        Remedy: Sign again with `workpacket approve`, or pass `-n workpacket-approval@v1` to `ssh-keygen`.

    hash_forbidden: Message hashed with a weak or unknown algorithm
        Only SHA-256 and SHA-512 are accepted.
        Remedy: Sign again with a current `ssh-keygen`.

    algorithm_forbidden: Signature algorithm that is not accepted for this key
        An RSA key must sign with SHA-2; SHA-1 can be forged by a collision. Every other kind of key has only one
        algorithm.
        Remedy: Sign again with a current `ssh-keygen`.

    key_malformed: Malformed public key
        Each key has only one accepted form, so that one key cannot pass for two.
        Remedy: Copy the line from the person's `.pub` file.

    key_kind_unsupported: Unsupported key type
        Only ed25519, ECDSA on NIST curves, RSA with at least 3072 bits, and FIDO keys are accepted; certificates and
        DSA are not.
        Remedy: Create a key with `workpacket key init`.

    key_weak: Weak key
        Signatures made with a short RSA key, or with a key that is a point of small order, can be forged.
        Remedy: Create a key with `workpacket key init`, and have it added to `.GOV/policy/allowed_signers`.

    touch_missing: Security key that signed without being touched
        If no touch is required, a program can make the security key sign without anyone noticing. `ssh-keygen` does not
        check this.
        Remedy: Create the FIDO key without `-O no-touch-required`, and approve again.

    pin_missing: Security key that signed without a PIN or fingerprint
        The gate requires the security key to verify its owner.
        Remedy: Create a FIDO key with `-O verify-required`, and approve again.

    client_data_wrong: Signature made on a web page, but over different data
        The browser's record of the request contains different bytes, a different kind of request, or a page embedded in
        another site's page.
        Remedy: Approve again with `workpacket approve --browser`.

    webauthn_not_accepted: Signature from a web page that the policy does not list
        Any web page can ask a security key for a signature. Only pages listed under [approvals.webauthn] in the policy
        count.
        Remedy: Approve with `workpacket approve`, or have the page listed in an approved policy change.

    passkey_synced: Signature by a passkey that can be copied to other devices
        Anyone with access to the account that stores the passkey can sign with it.
        Remedy: Register a key that stays on its device, or set `synced = true` in an approved policy change.

    hardware_required: File-based key at a gate that requires a hardware token
        Any program that runs under the person's account can copy a key file; a security key must be touched.
        Remedy: Approve with a FIDO key (`ssh-keygen -t ed25519-sk`).

    fido_application_wrong: Security key created for a different application
        The key was created for a web site or another program, which could obtain any signature from it.
        Remedy: Create the FIDO key with `ssh-keygen`, which uses the application 'ssh:'.
    """),
)

SIGNER = _refused(f"""
    signer_unknown: Key not in allowed_signers
        Only keys listed on the base can approve. An agent's own key is not among them.
        Remedy: Have the key added to `.GOV/policy/allowed_signers` in an approved policy change.

    key_not_for_approvals: Key not trusted for approvals
        The key's line in allowed_signers lists the namespaces for which the key is trusted, and the one for approvals
        is missing.
        Remedy: Add `workpacket-approval@v1` to namespaces="..." on that line, in an approved policy change.

    approver_mismatch: Statement in another person's name
        The approver named in the statement must be the owner of the key that signed it.
        Remedy: Have the person named in the statement sign it, or sign in your own name.

    key_revoked: Revoked key
        No signature by a revoked key is trusted, regardless of when it was made.
        Remedy: {_APPROVE_AND_REPLACE}

    key_out_of_time: Key outside its period of validity
        The key's line in allowed_signers gives the period during which the key may sign.
        Remedy: Approve with a valid key, or have valid-before extended in an approved policy change. If an event
        already uses the approval, then run `workpacket packet reapprove WP_ID`.

    event_key_at_gate: Approval signed by an event key
        An event key has no passphrase, so any program running under its owner's account can sign with it. The key
        identifies who wrote an event, and never opens a gate.
        Remedy: Approve with a key that is not listed under [actors]; `workpacket key init` creates one.

    role_not_accepted: Role that this gate does not accept
        Each gate lists the roles that may approve.
        Remedy: Ask someone with one of the gate's roles to approve; `workpacket policy show` lists the people with each
        role.

    role_not_held: Role that the approver does not have
        A statement may claim any role, but the policy on the base determines who has that role.
        Remedy: Ask a person who has the role to approve; `workpacket policy show` lists the people with each role.

    own_work: Approval of the approver's own work
        The gate requires a second person: authors may not approve, and coders may not validate, their own work.
        Remedy: Have another person approve.

    party_unknown: Unknown author or coder
        The approver must not be the author or coder, but the packet does not record who that is.
        Remedy: Record the author or coder in the packet's documents, then try again.
    """)

POLICY = (
    *_refused(f"""
    policy_unanchored: Base revision without a policy
        Only the policy on the base revision says who may approve. Without a policy, no gate can be passed.
        Remedy: Commit `.GOV/policy/` (`workpacket init` creates it) to the main branch; the first such commit is the
        anchor.

    policy_malformed: Policy that cannot be read
        A rule that cannot be read would not be applied, so no gate can be passed while the policy contains an error.
        Remedy: {_REPAIR_POLICY}

    approvers_unnamed: Policy that does not say who may approve
        The [approvals] table says who may approve at which gate; without it, no one may.
        Remedy: `workpacket policy trust` adds the table and your key; commit both to the main branch.

    signers_malformed: Invalid line in allowed_signers
        Each line has one literal name, namespaces, optional dates in UTC, and one key. A single invalid line makes the
        whole list invalid, because the remaining lines are not the list that was approved.
        Remedy: {_REPAIR_POLICY}

    principal_pattern: Pattern instead of a name in allowed_signers
        With a pattern, one key could act for many people, and a threshold would mean nothing.
        Remedy: Write one line for each person, with their full name.

    principal_ambiguous: Name with two spellings in allowed_signers
        Two spellings would count as two people towards a threshold.
        Remedy: Use the same spelling on all of the person's lines and in the roles of the policy.

    key_shared: Key on two lines of allowed_signers
        A key that two people share identifies neither of them.
        Remedy: Leave the key with one person; create a new key for the other with `workpacket key init`.

    revoked_keys_malformed: Invalid line in revoked_keys
        A revocation that cannot be read would not be applied.
        Remedy: List public keys, one per line, as in a `.pub` file; binary lists are not supported.

    gate_without_policy: Gate that the policy does not define
        A gate that requires a person remains closed if the policy has no rule for it.
        Remedy: Add `[approvals.gates.<gate>]` to `.GOV/policy/policy.toml` in an approved policy change.
    """),
    *_forged("""
    reanchor_unfit: Record of a new root of trust that does not match its policy
        A new root of trust replaces the policy on the base with exactly one other policy, once. Entries can only be
        added to the record.
        Remedy: Restore `.GOV/policy/reanchored.toml` from the base, then run `workpacket policy re-anchor`.

    reanchor_unnamed: New root of trust not confirmed by the CI configuration on the base
        No key approves a new root of trust, so it counts only if the base contains the digest of the new policy.
        Remedy: Ask someone with write access to the base to add the line from the message to the CI configuration
    there. """),
    *_forged("""
    policy_rolled_back: Base with an older policy than the one last seen on this machine
        The base does not contain the commit at which this machine last saw the policy, and has a different policy: an
        old policy may have been restored, together with a key that had been removed.
        Remedy: Fetch the base again. If its history was rewritten on purpose, compare the policies and remove the trust
        file.

    trust_file_foreign: Trust file from a different repository
        The trust file, which records the policy last seen, is for a repository with a different root commit.
        Remedy: Use a separate trust file for each repository.

    trust_file_malformed: Trust file that cannot be read
        Without this file, a rollback of the policy would not be detected.
        Remedy: Restore the file, or remove it after comparing the base's policy with one you trust.
    """),
)

LEGACY = _refused(f"""
    legacy_refused: Name and date in place of a signature
        Anyone can type a name and a date; they are not tied to any text, and can be reused.
        Remedy: {_APPROVE}

    legacy_malformed: Token that is not a name and a date
        The old form is a lower-case name followed by DDMMYYYYHHMM.
        Remedy: {_APPROVE}

    legacy_date_unreal: Token with a date that does not exist
        A nonexistent date suggests that the token was invented.
        Remedy: {_APPROVE}

    legacy_date_off: Token with a date that differs from the time when it was recorded
        The date differs from the recorded time by more than time zones can explain.
        Remedy: {_APPROVE}

    legacy_reused: Token used more than once
        Each token records one decision and must be unique in the entire history.
        Remedy: {_APPROVE}

    legacy_unpresented: Token for a text that was never shown
        There is no record that the text was shown, so nothing suggests that anyone has read it.
        Remedy: Show the refinement (`workpacket refine --present`), then have it approved.

    legacy_hasty: Token recorded too soon after the text was shown
        There was not enough time to read the text.
        Remedy: {_APPROVE}
    """)

ASKING = (
    *_refused("""
    contract_unchanged: Amendment without a change
        Stub and packet still state the current contract.
        Remedy: First write the new contract into the stub and the packet; `workpacket packet contract WP` shows the
    current one. """),
    *_forged("""
    attest_unfit: Event that refers to an envelope for something else
        An event lists the envelopes that opened its gate. Envelopes for another packet or gate cannot open it.
        Remedy: Remove the event, and move the packet with its command, which refers to the right envelopes.

    reapproval_unfit: New approvals without a matching event
        `reapproved` lists new approvals for an earlier event whose own approvals used to count but no longer do. No
        event like that exists.
        Remedy: Remove the event; `workpacket packet reapprove WP_ID` writes one if it is needed.
    """),
    *reasons(
        "approval",
        """
    revocation_lands: Revocation of an approval that has been used
        Once the revocation is on the base, events that used the approval no longer count, and every check reports them.
        Remedy: Once the revocation is on the base, have the packet approved again, then run
    `workpacket packet reapprove WP_ID`. """,
        severity="info",
        strict_severity="info",
    ),
    *_refused("""
    approval_needs_terminal: Approval without a terminal
        The text is shown in full to a person in a terminal; without a terminal, a program could approve it.
        Remedy: Run the command in a terminal, or write the statement with `--statement-out FILE` and sign it elsewhere.

    approval_not_given: Approval not confirmed
        Only the exact words count, so that no one approves by accidentally pressing a key.
        Remedy: Run the command again and type the words that it shows.

    nothing_to_approve: The file to approve does not exist
        An approval covers the bytes of a file: the refinement, the packet, or a changed policy. There is no such file.
        Remedy: Write the file first; `workpacket list` shows the existing packets.

    refinement_unfillable: Refinement without the fields for the signature
        The signed text must itself state that it was approved, in USER_REVIEW_STATUS and USER_SIGNATURE of METADATA.
        Remedy: Add the fields that `workpacket check` lists, then approve.
    """),
    *_conflict("""
    statement_unfit: Statement about a different text
        The statement was created for different bytes or a different packet, so it would not count here.
        Remedy: Create a new one with `workpacket approve WP --statement-out FILE`, and sign that file.

    signature_minute_taken: Too many recent approvals
        The token in the file consists of a name and a minute; each packet gets the next free minute, up to an hour
        ahead.
        Remedy: Run the command again in a minute.

    key_exists: A key already exists
        Overwriting the file could destroy a key that is listed in allowed_signers.
        Remedy: Name another file: `workpacket key init PATH`.
    """),
    *_usage("""
    approval_unknown: No envelope has this digest
        Only an existing approval can be revoked.
        Remedy: Look up the digest with `workpacket approvals list`.

    revision_ambiguous: The base name is ambiguous
        A tag and a branch both have this name. Git would use the tag, which people without permission to merge may have
        pushed.
        Remedy: Name the base in full: `--base refs/remotes/origin/main`; or delete the tag or branch that you do not
        need.
    """),
    *_environment("""
    approval_key_missing: No approval key found
        The public half of the key is needed to find out who owns it.
        Remedy: Create a key with `workpacket key init`, or specify yours with `--key`.

    key_without_passphrase: Key without a passphrase
        Any program that runs under the person's account could approve with it.
        Remedy: Run `workpacket key init` again and give a passphrase.

    history_shallow: Shallow clone
        The first commit, the base, and the time at which an approval was used are looked up in the history, which is
        truncated here.
        Remedy: Run `git fetch --unshallow`; in CI, check out with the full history (`fetch-depth: 0`).

    object_missing: Object missing from the clone
        An object that a commit refers to is not in this clone. Either the repository was cloned with `--filter`, or the
        disk is damaged.
        Remedy: Fetch everything: `git config --unset remote.origin.partialclonefilter && git fetch --refetch`, or clone
        again without a filter; `git fsck` shows damage.
    """),
    *_finding("""
    contract_changed: Contracts in stub, packet and log differ
        After activation, the approved contract is fixed. Status, evidence and notes can still change.
        Remedy: Restore the approved contract (`workpacket packet contract WP` shows it), or write the new contract into
        the stub and the packet and have it approved: `workpacket approve WP --gate amendment`, then
        `workpacket packet amend WP`.

    agent_could_approve: A program running under this account could approve
        A key with permission to approve made a signature without asking anyone, so it would also sign for an agent.
        Remedy: Follow the steps that `workpacket key doctor` lists, from least effort to most protection.
    """),
)

SIGNING = _environment("""
    ssh_keygen_missing: The ssh-keygen program is not installed
        OpenSSH makes the signatures, so that this package never touches a private key. Verification works without it.
        Remedy: Install OpenSSH 8.2 or later (Debian, Ubuntu: `apt install openssh-client`; macOS and Windows 10 include
        it).

    ssh_keygen_doubtful: The ssh-keygen in PATH might not be OpenSSH's
        The program is in the work tree, or in a folder that others can write to. It receives the passphrase, and could
        sign anything.
        Remedy: Put the folder that contains OpenSSH, such as `/usr/bin`, first in PATH.

    event_key_missing: No event key on this machine is allowed to sign under this name
        The policy on the base lists the actors, and each event must be signed by a key listed for its actor.
        Remedy: Create a key with `workpacket key init --event` or `key init --agent NAME`, and add its fingerprint to
        [actors.NAME] in an approved policy change.

    event_key_unfit: The event key cannot be used
        The key file is missing, or users other than its owner can read it.
        Remedy: Run `chmod 600 FILE`, or specify a different key in WORKPACKET_EVENT_KEY.

    event_key_in_repository: The event key is in the work tree
        A file in the work tree can be read by everyone who works there, and will sooner or later be committed.
        Remedy: Keep the key elsewhere; `workpacket key init --event` stores it in your settings folder.

    machine_key_unfit: The key cannot sign a machine's statements
        Statements for other tools require a key that those tools can read and that can sign unattended.
        Remedy: Create a key with `openssl genpkey -algorithm ed25519 -out machine.pem`, and keep it out of the
        repository.

    page_port_taken: The port for the page is in use
        Signatures count only if they come from the one address that the policy specifies, so the page can be served
        only at that address.
        Remedy: Stop the program that uses the port, or approve in a terminal, without `--browser`.

    page_answer_unfit: The page's response is not a signature or key
        The response from the browser or the key does not match the request; nothing was written.
        Remedy: Run the command again; if the same message appears, try a different browser or key.

    signing_failed: Signing with ssh-keygen failed
        The passphrase was wrong, the token was not touched, or the agent does not have the key.
        Remedy: Read the output of `ssh-keygen`, then run the command again.

    signing_key_unfit: The key signs, but its signatures cannot approve
        Every gate would refuse its signatures, so none was written.
        Remedy: Choose a different key, or create one with `workpacket key init`.
    """)

# Reasons found when an approval file is judged; the others arise while one is created, or are reported only by a check
# of the whole repository.
ROOT = (
    *_forged("""
    reanchor_named: Change that sets a new root of trust in the CI configuration
        A digest in the CI configuration replaces the root of trust; the change being judged must not do this itself.
        Remedy: Remove the line from the change. Someone with write access to the base must commit it there.
    """),
    *reasons(
        "approval",
        """
    policy_reanchored: Policy with a replaced root of trust
        The keys of the previous policy were lost, so this policy has no approval; the CI configuration on the base
        vouched for it. Earlier approvals are judged by the policy that applied at the time.
        Remedy: Nothing needs to be done, but check that the policy lists the people you expect.
    """,
        exit_code=exits.FINDINGS,
        severity="info",
        strict_severity="info",
    ),
)

JUDGING = (*FIT, *TIME, *COUNT, *ENVELOPE, *SIGNATURE, *SIGNER, *POLICY, *LEGACY)

REASONS = (*JUDGING, *ROOT, *ASKING, *SIGNING)
